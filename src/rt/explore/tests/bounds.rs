//! Does a bounded search visit the traces that it owes, and no others?
//!
//! The oracle forgets nothing and shares nothing: it runs every interleaving, counts its preemptions,
//! and keeps for each trace the least of them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::bound::Bounded;
use super::super::driver::Plan;
use super::super::testing::*;
use super::super::{Choice, Explorer, Finished, Point};
use super::random::{number, program};
use super::{load, lost_update, store, var};
use crate::rt::trace::id::ThreadId;
use crate::rt::trace::key::TraceKey;
use crate::rt::trace::operation::{ObjectKind, OpKind, Step};

type Costs = BTreeMap<TraceKey, usize>;

struct Oracle {
    costs: Rc<RefCell<Costs>>,
    /// For each point which threads could go on, and what is still to be tried.
    levels: Vec<(Vec<ThreadId>, Vec<Step>)>,
    /// Whether the end of a thread commutes with everything.
    quiet_ends: bool,
    started: bool,
}

impl Explorer for Oracle {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        if !self.started {
            self.started = true;
            return true;
        }
        while let Some((_, todo)) = self.levels.last_mut() {
            if let Some(step) = todo.pop() {
                plan.kept = self.levels.len() - 1;
                plan.steps.push((step, None));
                return true;
            }
            self.levels.pop();
        }
        false
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        let kind = |thread| at.machine.pending(thread).map(|p| p.operation.kind);
        let could = at.enabled();
        let could = could.filter(|&t| !matches!(kind(t), Some(OpKind::Wait { .. })));
        let could = could.collect();
        let moved = at.trace.events().iter().rev();
        let mut moved = moved.filter(|event| event.operation.kind != OpKind::Start);
        let last = moved.next().map(|event| event.thread);
        // What commutes with everything and costs nothing needs only one place.
        let anywhere = at.enabled().find(|&thread| match kind(thread) {
            Some(OpKind::Start) => true,
            Some(OpKind::Exit) => self.quiet_ends && last == Some(thread),
            _ => false,
        });
        let threads: Vec<ThreadId> = match anywhere {
            Some(thread) => vec![thread],
            None => at.enabled().collect(),
        };
        let mut todo = Vec::new();
        for thread in threads {
            todo.extend(
                (0..at.machine.alternatives(thread)).map(|alternative| Step {
                    thread,
                    alternative,
                }),
            );
        }
        self.levels.truncate(at.trace.len());
        let step = todo.pop();
        self.levels.push((could, todo));
        step.map_or(Choice::NothingEnabled, Choice::Run)
    }

    fn finish(&mut self, run: &Finished<'_>) {
        let (mut last, mut cost) = (ThreadId::MAIN, 0);
        for (event, (could, _)) in run.trace.events().iter().zip(&self.levels) {
            if event.operation.kind != OpKind::Start {
                cost += usize::from(event.thread != last && could.contains(&last));
                last = event.thread;
            }
        }
        let key = key_of(run.trace, run.clocks, run.machine);
        let mut costs = self.costs.borrow_mut();
        let least = costs.entry(key).or_insert(cost);
        *least = cost.min(*least);
    }
}

/// For each trace the fewest preemptions it needs; `None` beyond `most` interleavings.
fn oracle(program: &Program, most: u64) -> Option<Costs> {
    let costs = Rc::new(RefCell::new(Costs::new()));
    let explorer = Oracle {
        costs: costs.clone(),
        levels: Vec::new(),
        quiet_ends: !program
            .threads
            .iter()
            .flatten()
            .any(|ins| matches!(ins, Ins::Join(_) | Ins::IsFinished { .. })),
        started: false,
    };
    explore_with(program, Box::new(explorer), true, most)?;
    Some(costs.take())
}

fn bounded(program: &Program, most: usize) -> Found {
    let explorer = Box::new(Bounded::new(most));
    explore_with(program, explorer, true, u64::MAX).expect("no limit")
}

/// The number of traces within 0, 1, 2, ... preemptions, up to all of them.
fn owed(program: &Program) -> Vec<usize> {
    let all = bounded(program, usize::MAX).traces.len();
    let mut counts = Vec::new();
    while counts.last() != Some(&all) {
        let found = bounded(program, counts.len());
        assert_eq!(
            found.stats.complete as usize,
            found.traces.len(),
            "one run per trace"
        );
        counts.push(found.traces.len());
    }
    counts
}

#[test]
fn a_bounded_search_visits_exactly_the_traces_of_random_programs_within_the_bound() {
    let mut checked = 0;
    let mut beyond = [0; 4];
    for seed in 1..=number("DPOR_FUZZ", 45_000).div_ceil(100).max(100) {
        let program = program(seed);
        let Some(costs) = oracle(&program, 2000) else {
            continue;
        };
        checked += 1;
        for (bound, beyond) in beyond.iter_mut().enumerate() {
            let found = bounded(&program, bound);
            let within = costs.iter().filter(|&(_, &cost)| cost <= bound);
            let within: BTreeMap<TraceKey, u32> = within.map(|(&key, _)| (key, 1)).collect();
            assert_eq!(
                found.traces, within,
                "bound {bound}, seed {seed}: {program:#?}"
            );
            *beyond += costs.len() - within.len();
        }
        let all: Vec<TraceKey> = costs.keys().copied().collect();
        let found: Vec<TraceKey> = bounded(&program, usize::MAX).keys().into_iter().collect();
        assert_eq!(found, all, "no bound, seed {seed}: {program:#?}");
    }
    println!("{checked} programs; traces beyond the bounds: {beyond:?}");
    assert!(
        checked > 20 && beyond[2] > 0,
        "{checked} programs, {beyond:?}"
    );
}

#[test]
fn the_number_of_traces_within_each_bound_is_the_known_one() {
    const X: i64 = 0;
    let stores = |values: &[i64]| values.iter().map(|&v| store(X, v)).collect::<Vec<_>>();
    let check = |name: &str, program: Program, expected: &[usize]| {
        assert_eq!(owed(&program), expected, "{name}");
    };
    check("lost update, 2 threads", lost_update(2), &[2, 4]);
    check("lost update, 3 threads", lost_update(3), &[6, 24, 36]);
    let two = Program::of((1..=3).map(|t| stores(&[2 * t, 2 * t + 1])).collect());
    check("two stores, 3 threads", two, &[6, 24, 60, 90]);
    let three = Program::of(vec![stores(&[1, 2, 3]), stores(&[4, 5, 6])]);
    check("three stores, 2 threads", three, &[2, 6, 14, 18, 20]);
    let row = || (1..=3).map(|v| store(v, 1)).collect::<Vec<_>>();
    check(
        "three variables in a row",
        Program::of(vec![row(), row()]),
        &[2, 6, 8],
    );
    let buffer = |mine, other| vec![store(mine, 1), load(other, 0)];
    let buffering = Program::of(vec![buffer(0, 1), buffer(1, 0)]);
    check("store buffering", buffering, &[2, 3]);
}

#[test]
fn the_deadlock_of_three_philosophers_needs_one_preemption() {
    let eat = |right, left| {
        vec![
            Ins::Lock(var(right)),
            Ins::Lock(var(left)),
            Ins::Unlock(var(left)),
            Ins::Unlock(var(right)),
        ]
    };
    let mut program = Program::of(vec![eat(0, 1), eat(1, 2), eat(2, 0)]);
    for fork in 0..3 {
        program = program.with(fork, ObjectKind::Mutex, 0);
    }
    let counts = |bound| {
        let found = bounded(&program, bound);
        (found.traces.len(), found.deadlocks)
    };
    assert_eq!(counts(0), (6, 0));
    assert_eq!(counts(1), (7, 1));
}
