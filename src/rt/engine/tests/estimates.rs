//! How good are the estimates of the number of executions?
//!
//! `cargo test --lib estimates -- --nocapture` prints the table of `docs/BIG_STATE_SPACES.md`.

use std::cell::RefCell;
use std::rc::Rc;

use crate::rt::engine::estimate::Estimator;
use crate::rt::engine::plan::Plan;
use crate::rt::engine::strategies::optimal::Optimal;
use crate::rt::engine::testing::programs::{indexer, lastzero, readers, wakeup_stress};
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::{load, lost_update, store, var};
use crate::rt::engine::{Choice, Execution, Explorer, Point, TieBreak};
use crate::rt::event::operation::Rmw;

/// Asks both estimators after these numbers of executions.
struct Watched {
    inner: Optimal,
    estimator: Estimator,
    ended: u64,
    ask: Vec<u64>,
    answers: Rc<RefCell<Vec<(f64, f64)>>>,
    begun: bool,
}

impl Explorer for Watched {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        if !self.inner.begin(plan) {
            return false;
        }
        if self.begun {
            self.estimator.branch(plan.common_prefix);
        }
        self.begun = true;
        true
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        self.inner.choose(at)
    }

    fn finish(&mut self, run: &Execution<'_>) {
        self.inner.finish(run);
        self.estimator.leaf();
        self.ended += 1;
        if self.ask.contains(&self.ended) {
            let mut planned = Vec::new();
            self.inner.planned(&mut planned);
            let answer = (
                self.estimator.recursive(&planned),
                self.estimator.weighted(&planned),
            );
            self.answers.borrow_mut().push(answer);
        }
    }
}

/// The estimates after 1 %, 10 % and all of the executions.
fn estimates(program: &Program, total: u64) -> Vec<(f64, f64)> {
    let answers = Rc::new(RefCell::new(Vec::new()));
    let explorer = Watched {
        inner: *Optimal::new(TieBreak::Last),
        estimator: Estimator::default(),
        ended: 0,
        ask: vec![total / 100, total / 10, total],
        answers: answers.clone(),
        begun: false,
    };
    let found = explore_with(program, Box::new(explorer), false, u64::MAX).expect("no limit");
    assert_eq!(found.stats.complete, total);
    answers.take()
}

/// Two threads add each other's numbers, n times, and main adds both.
fn fib_bench(n: usize) -> Program {
    let turn = |a: i64, b: i64| {
        let sum = Ins::Store {
            var: var(a),
            value: Val::Reg(0),
        };
        [load(a, 0), load(b, 1), sum]
    };
    let body = |a, b| (0..n).flat_map(|_| turn(a, b)).collect::<Vec<_>>();
    let mut program = Program::of(vec![body(0, 1), body(1, 0)]);
    program.threads[0].extend([load(0, 0), load(1, 0)]);
    program
}

fn race_param(n: usize) -> Program {
    let body = |t| (0..n).flat_map(|_| [store(0, t), load(0, 0)]).collect();
    Program::of((1..=2).map(body).collect())
}

fn stores(threads: i64, each: i64) -> Program {
    let body = |t| (0..each).map(|i| store(0, 10 * t + i)).collect();
    Program::of((1..=threads).map(body).collect())
}

/// Programs with known numbers of traces, which are neither few nor very many.
pub(super) fn of_known_size() -> [(&'static str, Program, u64); 8] {
    [
        ("readers(10)", readers(10), 1024),
        ("readers(13)", readers(13), 8192),
        ("lastzero(10)", lastzero(10), 3328),
        ("lastzero(12)", lastzero(12), 15_360),
        ("lost update, 5 threads", lost_update(5), 14_400),
        ("wakeup_stress(6)", wakeup_stress(6), 1440),
        ("wakeup_stress(7)", wakeup_stress(7), 10_080),
        ("indexer(15)", indexer(15), 4096),
    ]
}

#[test]
fn the_recursive_estimate_is_of_the_right_magnitude_after_a_tenth() {
    let others = [
        ("fib_bench(3)", fib_bench(3), 1698),
        ("fib_bench(4)", fib_bench(4), 19_605),
        ("race_param(4)", race_param(4), 3334),
        ("3 stores, 3 threads", stores(3, 3), 1680),
    ];
    println!("| program | traces | recursive, 1 % | 10 % | weighted, 1 % | 10 % |");
    println!("|---|---|---|---|---|---|");
    let mut errors = [0.0; 2];
    for (name, program, total) in of_known_size().into_iter().chain(others) {
        let answers = estimates(&program, total);
        let [(r1, w1), (r10, w10), (r100, w100)] = answers[..] else {
            panic!("three answers of {name}");
        };
        println!("| {name} | {total} | {r1:.0} | {r10:.0} | {w1:.0} | {w10:.0} |");
        assert_eq!(r100.round(), total as f64, "{name}, all done");
        assert_eq!(w100.round(), total as f64, "{name}, all done");
        for (error, estimate) in errors.iter_mut().zip([r10, w10]) {
            *error += (estimate / total as f64).ln().abs() / 12.0;
        }
    }
    let [recursive, weighted] = errors.map(f64::exp);
    println!("typical factor at 10 %: recursive {recursive:.2}, weighted {weighted:.2}");
    assert!(recursive < 3.0, "off by {recursive}");
}

fn adds(threads: i64, each: i64) -> Program {
    let add = Ins::Rmw {
        var: 0,
        rmw: Rmw::Add,
        operand: Val::Const(1),
        to: 0,
    };
    Program::of((1..=threads).map(|_| vec![add; each as usize]).collect())
}

/// The estimate after 2^15 executions, and the number of executions after which an estimate has
/// settled first.
fn settled(program: &Program) -> (f64, Option<u64>) {
    let mut driver = driver(program, Optimal::new(TieBreak::Last));
    let mut first = None;
    explore_on(
        program,
        &mut driver,
        false,
        &mut Found::default(),
        |driver| {
            let begun = driver.stats.begun();
            if begun.is_power_of_two()
                && first.is_none()
                && driver.estimate().is_some_and(|it| driver.has_settled(it))
            {
                first = Some(begun);
            }
            begun < 1 << 15
        },
    );
    (driver.estimate().expect("something is planned"), first)
}

#[test]
fn an_estimate_that_is_too_low_by_orders_of_magnitude_has_not_settled() {
    for (program, traces) in [
        (adds(4, 4), 63_063_000.0),
        (adds(3, 7), 399_072_960.0),
        (adds(2, 12), 2_704_156.0),
        (lost_update(7), 25_401_600.0),
    ] {
        let (estimate, first) = settled(&program);
        assert!(estimate < traces / 20.0, "{estimate} of {traces}");
        assert_eq!(first, None, "{traces}");
    }
    // The size of a tree with branches of equal size is known soon.
    let (estimate, first) = settled(&readers(20));
    assert!(
        (estimate / f64::from(1 << 20) - 1.0).abs() < 0.05,
        "{estimate}"
    );
    assert_eq!(first, Some(2048));
}
