//! Does a bounded search visit exactly the traces within its bound?
//!
//! The oracle forgets nothing and shares nothing: it runs every interleaving, counts its
//! preemptions, its switches and its delays, and keeps for each trace the least of each.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use crate::rt::engine::plan::Plan;
use crate::rt::engine::price::Price;
use crate::rt::engine::strategies::bound::Bounded;
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::blocks;
use crate::rt::engine::tests::random::{MUTEX, Rng, number, program};
use crate::rt::engine::tests::{load, lost_update, store, var};
use crate::rt::engine::{Choice, Coverage, Execution, Explorer, Point};
use crate::rt::event::id::{Names, ThreadId};
use crate::rt::event::operation::{ObjectKind, OpKind, Step};
use crate::rt::relation::key::{Hashes, TraceKey};

/// For each trace the fewest preemptions, switches and delays it needs.
type Costs = BTreeMap<TraceKey, [usize; 3]>;

const PRICES: [Price; 3] = [Price::Preemptions, Price::Switches, Price::Delays];

/// The number of a thread among its creator's children, that of its creator, and so on, in order
/// from main.
type Births = Vec<u32>;

fn births(names: &Names, thread: ThreadId) -> Births {
    let Some((creator, nth)) = names.creator(thread) else {
        return Births::new();
    };
    let mut births = births(names, creator);
    births.push(nth);
    births
}

struct Level {
    /// The enabled threads, each with whether it has given up its turn: it waits for a change, or
    /// has just reached a hint.
    enabled: Vec<(Births, bool)>,
    /// The ones that look again because no other thread is enabled.
    let_go: Vec<Births>,
    /// The steps that are still to be tried.
    todo: Vec<Step>,
}

impl Level {
    /// The price of a step of `thread` here where `last` made the last step: in preemptions,
    /// switches and delays.
    fn cost(&self, thread: &Births, last: &Births) -> [usize; 3] {
        let switch = usize::from(thread != last);
        let could = self.enabled.contains(&(last.clone(), false));
        // The threads before the last one have their turn after all others.
        let turn = |births: &Births| (births < last || births == last && !could, births.clone());
        let enabled = self.enabled.iter();
        let passed = enabled.filter(|(other, _)| turn(other) < turn(thread));
        let preemptions = if could { switch } else { 0 };
        let switches = if self.let_go.contains(thread) {
            0
        } else {
            switch
        };
        [preemptions, switches, passed.count()]
    }
}

struct Oracle {
    costs: Rc<RefCell<Costs>>,
    /// The points of the current execution.
    levels: Vec<Level>,
    hashes: Hashes,
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
        while let Some(level) = self.levels.last_mut() {
            if let Some(step) = level.todo.pop() {
                plan.common_prefix = self.levels.len() - 1;
                plan.steps.push((step, None));
                return true;
            }
            self.levels.pop();
        }
        false
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        let kind = |thread| at.machine.pending(thread).map(|p| p.operation.kind);
        let waits = |thread| matches!(kind(thread), Some(OpKind::Wait { .. }));
        let names = &at.machine.names;
        let gave_up = |thread| waits(thread) || at.machine.has_yielded(thread);
        let enabled = at.enabled().map(|t| (births(names, t), gave_up(t)));
        let enabled = enabled.collect();
        let let_go = at
            .enabled()
            .filter(|&t| at.machine.was_let_go_at(t).is_some());
        let let_go = let_go.map(|t| births(names, t)).collect();
        let last = at.trace.events().last().map(|event| event.thread);
        // A step that commutes with everything and costs nothing needs only one place.
        let anywhere = at.enabled().find(|&thread| {
            kind(thread) == Some(OpKind::Exit) && self.quiet_ends && last == Some(thread)
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
        self.levels.push(Level {
            enabled,
            let_go,
            todo,
        });
        step.map_or(Choice::NothingEnabled, Choice::Run)
    }

    fn has_all_begin(&self) -> bool {
        true
    }

    fn finish(&mut self, run: &Execution<'_>) {
        let (mut last, mut cost) = (Births::new(), [0; 3]);
        for (event, level) in run.trace.events().iter().zip(&self.levels) {
            let thread = births(&run.machine.names, event.thread);
            let here = level.cost(&thread, &last);
            cost.iter_mut().zip(here).for_each(|(sum, one)| *sum += one);
            last = thread;
        }
        let key = key_of(&mut self.hashes, run.trace, run.clocks, run.machine);
        let mut costs = self.costs.borrow_mut();
        let least = costs.entry(key).or_insert(cost);
        (least.iter_mut().zip(cost)).for_each(|(least, cost)| *least = cost.min(*least));
    }
}

/// The price of each trace; `None` beyond `most` interleavings.
fn oracle(program: &Program, most: u64) -> Option<Costs> {
    let costs = Rc::new(RefCell::new(Costs::new()));
    let explorer = Oracle {
        costs: costs.clone(),
        levels: Vec::new(),
        hashes: Hashes::default(),
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

fn bounded(program: &Program, price: Price, most: usize) -> Found {
    bounded_within(program, price, most).0
}

/// The traces that the search finds within a bound, and whether it reports them as all traces.
fn bounded_within(program: &Program, price: Price, most: usize) -> (Found, bool) {
    let mut driver = driver(program, Box::new(Bounded::new(price, most)));
    let mut found = Found::default();
    explore_on(program, &mut driver, true, &mut found, |_| true);
    let is_all = driver.coverage() == Coverage::All;
    (found, is_all)
}

/// The number of traces with a price of at most 0, 1, 2, ..., up to all of them.
fn owed(program: &Program, price: Price) -> Vec<usize> {
    let all = bounded(program, price, usize::MAX).traces.len();
    let mut counts = Vec::new();
    while counts.last() != Some(&all) {
        let found = bounded(program, price, counts.len());
        assert_eq!(
            found.stats.complete as usize,
            found.traces.len(),
            "one run per trace"
        );
        counts.push(found.traces.len());
    }
    counts
}

/// For each way to count, how often a bound allowed every trace, and how often the search did not
/// report this.
#[derive(Debug, Default)]
struct Told {
    all: [usize; 3],
    unsaid: [usize; 3],
}

/// Checks that each bound has its traces, and that the search reports no bound as complete that is
/// not. Returns, for each price and bound, the number of traces beyond it; `None` for a program
/// with too many interleavings.
fn check(program: &Program, most: u64, told: &mut Told) -> Option<[[usize; 4]; 3]> {
    let costs = oracle(program, most)?;
    let mut beyond = [[0; 4]; 3];
    let all: Vec<TraceKey> = costs.keys().copied().collect();
    for (index, price) in PRICES.into_iter().enumerate() {
        for (bound, beyond) in beyond[index].iter_mut().enumerate() {
            let (found, is_all) = bounded_within(program, price, bound);
            let within = costs.iter().filter(|(_, cost)| cost[index] <= bound);
            let within: BTreeMap<TraceKey, u32> = within.map(|(&key, _)| (key, 1)).collect();
            assert_eq!(found.traces, within, "{price:?} up to {bound}");
            *beyond = costs.len() - within.len();
            assert!(!is_all || *beyond == 0, "not all: {price:?} up to {bound}");
            told.all[index] += usize::from(*beyond == 0);
            told.unsaid[index] += usize::from(*beyond == 0 && !is_all);
        }
        let found = bounded(program, price, usize::MAX).keys();
        let found: Vec<TraceKey> = found.into_iter().collect();
        assert_eq!(found, all, "{price:?}, no bound");
    }
    Some(beyond)
}

/// The program with hints in some places, behind which a switch costs nothing. None of them is in a
/// loop, so no thread waits there.
fn with_hints(mut program: Program, seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    for code in &mut program.threads {
        let jumps = |ins: &Ins| {
            matches!(
                ins,
                Ins::Jump(_) | Ins::Unless { .. } | Ins::BackUnless { .. }
            )
        };
        if !code.iter().any(jumps) {
            for at in (0..=code.len()).rev().filter(|_| rng.one_in(3)) {
                code.insert(at, Ins::Hint);
            }
        }
    }
    program
}

/// Seeds of programs that have exposed errors: the search reached the end of an execution twice
/// (the second one is pruned while a thread waits), and the count in a label had changed.
const TELLING: [u64; 3] = [85, 501_610, 1290];

#[test]
fn a_bounded_search_visits_exactly_the_traces_of_random_programs_within_the_bound() {
    let mut checked = 0;
    let mut bounds = Told::default();
    let mut beyond = [[0; 4]; 3];
    let start = number("DPOR_FUZZ_SEED", 1);
    let random = start..start + number("DPOR_FUZZ", 45_000).div_ceil(100).max(100);
    let plain = random.clone().chain(TELLING);
    let programs = plain.map(|seed| (seed, program(seed)));
    let hinted = random.map(|seed| (seed, with_hints(program(seed), seed)));
    for (seed, program) in programs.chain(hinted) {
        let told = || println!("seed {seed}:\n{}", program.listing());
        let found = catch_unwind(AssertUnwindSafe(|| check(&program, 2000, &mut bounds)));
        let Some(found) = found.unwrap_or_else(|panic| {
            told();
            resume_unwind(panic)
        }) else {
            continue;
        };
        checked += 1;
        let sums = beyond.as_flattened_mut().iter_mut();
        sums.zip(found.as_flattened())
            .for_each(|(sum, one)| *sum += one);
    }
    println!("{checked} programs; traces beyond the bounds: {beyond:?}; {bounds:?}");
    // In each execution the left-out step may come behind other steps, so that the search never
    // visits the place directly behind it.
    let [unsaid, all]: [usize; 2] = [bounds.unsaid, bounds.all].map(|each| each.iter().sum());
    assert!(unsaid * 4 <= all, "{bounds:?}");
    assert!(
        checked > 20 && beyond.iter().all(|beyond| beyond[2] > 0),
        "{checked} programs, {beyond:?}"
    );
}

#[test]
fn a_bounded_search_visits_exactly_the_traces_of_blocks_within_the_bound() {
    let (mut checked, mut bounds) = (0, Told::default());
    for seed in 1..=number("DPOR_FUZZ", 45_000).div_ceil(100) {
        let program = blocks::program(seed);
        let told = || println!("seed {seed}:\n{}", program.listing());
        let found = catch_unwind(AssertUnwindSafe(|| check(&program, 2000, &mut bounds)));
        let found = found.unwrap_or_else(|panic| {
            told();
            resume_unwind(panic)
        });
        checked += u64::from(found.is_some());
    }
    assert!(checked > 20, "{checked} programs");
}

#[test]
fn a_bound_that_leaves_nothing_out_is_said_to_be_complete() {
    let choose = |options| Ins::Choose { options, to: 0 };
    let load_own = || load(7, 1);
    let nothing_shared = Program::of(vec![
        vec![choose(3)],
        vec![load_own(), load_own(), choose(2)],
        vec![choose(2)],
    ]);
    let (found, is_all) = bounded_within(&nothing_shared, Price::Preemptions, 0);
    assert_eq!((found.traces.len(), is_all), (12, true));
    let one_race = Program::of(vec![vec![store(0, 1)], vec![store(0, 2), load(1, 0)]]);
    for (bound, traces) in [(0, 2), (1, 2), (2, 2)] {
        let (found, is_all) = bounded_within(&one_race, Price::Preemptions, bound);
        assert_eq!(
            (found.traces.len(), is_all),
            (traces, true),
            "up to {bound}"
        );
    }
    // The lost update is beyond the bound.
    let (found, is_all) = bounded_within(&lost_update(2), Price::Preemptions, 0);
    assert_eq!((found.traces.len(), is_all), (2, false));
}

#[test]
fn threads_take_turns_in_the_order_of_their_births_whoever_spawned_first() {
    const X: i64 = 0;
    let parent = |child: u32| vec![store(X, child as i64), Ins::Spawn(child), store(X, 9)];
    let program = Program {
        threads: vec![
            vec![Ins::Spawn(1), Ins::Spawn(2)],
            parent(3),
            parent(4),
            vec![store(X, 1)],
            vec![store(X, 2)],
        ],
        ..Program::default()
    };
    let beyond = check(&program, u64::MAX, &mut Told::default()).expect("no limit");
    assert_eq!(beyond[2], [79, 74, 59, 35], "of 80 traces");
}

#[test]
fn the_number_of_traces_within_each_bound_is_the_known_one() {
    const X: i64 = 0;
    let stores = |values: &[i64]| values.iter().map(|&v| store(X, v)).collect::<Vec<_>>();
    let check = |name: &str, program: Program, expected: &[usize]| {
        assert_eq!(owed(&program, Price::Preemptions), expected, "{name}");
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
fn nothing_is_begun_in_vain_where_all_operations_depend_on_each_other() {
    for (most, traces) in [(1, 24), (2, 36), (3, 36)] {
        let stats = bounded(&lost_update(3), Price::Preemptions, most).stats;
        assert_eq!((stats.complete, stats.asleep), (traces, 0), "up to {most}");
    }
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
        let found = bounded(&program, Price::Preemptions, bound);
        (found.traces.len(), found.deadlocks)
    };
    assert_eq!(counts(0), (6, 0));
    assert_eq!(counts(1), (7, 1));
}

/// A program with more interleavings than an oracle can run.
fn long_program(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let threads = 2 + rng.below(2) as u32;
    let vars = 2 + rng.below(2);
    let mut all = Vec::new();
    for _ in 0..threads {
        let mut code = Vec::new();
        for _ in 0..3 + rng.below(5 - u64::from(threads)) {
            let var = rng.below(vars) as i64;
            match rng.below(6) {
                0 | 1 => code.push(load(var, rng.below(2) as u8)),
                2 | 3 => code.push(store(var, rng.below(3) as i64)),
                4 => {
                    let inner = rng.below(vars) as i64;
                    let mutex = || Val::Const(i64::from(MUTEX));
                    code.push(Ins::Lock(mutex()));
                    code.push(store(inner, rng.below(3) as i64));
                    code.push(Ins::Unlock(mutex()));
                }
                _ => code.extend([
                    load(var, 0),
                    Ins::Unless {
                        reg: 0,
                        value: Val::Const(1),
                        by: 1,
                    },
                    store(var, 2),
                ]),
            }
        }
        all.push(code);
    }
    Program::of(all).with(MUTEX, ObjectKind::Mutex, 0)
}

#[test]
fn what_is_left_out_makes_no_difference() {
    let start = number("DPOR_FUZZ_SEED", 1);
    let mut saved = 0;
    for seed in start..start + number("DPOR_FUZZ", 45_000).div_ceil(200) {
        let program = long_program(seed);
        for price in [Price::Preemptions, Price::Switches] {
            for bound in 0..=3 + usize::from(price == Price::Switches) {
                let found = bounded(&program, price, bound);
                let explorer = Box::new(Bounded::without_reduction(price, bound));
                let all = explore_with(&program, explorer, true, u64::MAX).expect("no limit");
                let explorer = Box::new(Bounded::new(price, bound).early());
                let early = explore_with(&program, explorer, true, u64::MAX).expect("no limit");
                if found.traces != all.traces || early.traces != all.traces {
                    println!("seed {seed}:\n{}", program.listing());
                    assert_eq!(found.traces, all.traces, "{price:?} up to {bound}");
                    assert_eq!(early.traces, all.traces, "{price:?} up to {bound}, early");
                }
                saved += all.stats.asleep.saturating_sub(found.stats.asleep);
            }
        }
    }
    assert!(saved > 0);
}
