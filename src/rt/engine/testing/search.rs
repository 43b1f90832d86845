//! How is an abstract program explored, and which traces does it have for certain?

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use crate::rt::engine::driver::{Bounds, Driver, Next};
use crate::rt::engine::order::{Order, Turns};
use crate::rt::engine::rng::Rng;
use crate::rt::engine::stats::Stats;
use crate::rt::engine::strategies::context_sensitive::ContextSensitive;
use crate::rt::engine::strategies::frontier::Frontier;
use crate::rt::engine::strategies::parsimonious::Parsimonious;
use crate::rt::engine::strategies::{backtrack, exhaustive, optimal};
use crate::rt::engine::testing::{Code, Final, Program, site};
use crate::rt::engine::{Explorer, TieBreak};
use crate::rt::event::Trace;
use crate::rt::event::fence::MadeSoFar;
use crate::rt::event::operation::{OpKind, Step};
use crate::rt::event::verdict::{End, Pruned};
use crate::rt::object::machine::{Limits, Machine, Pending};
use crate::rt::pooled::{Pooled, pooled};
use crate::rt::relation::happens_before::HappensBefore;
use crate::rt::relation::key::{Hashes, TraceKey};

/// The result of an exploration.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// Each trace, with the number of its complete executions.
    pub(crate) traces: BTreeMap<TraceKey, u32>,
    pub(crate) finals: FxHashSet<Final>,
    pub(crate) deadlocks: usize,
    pub(crate) livelocks: usize,
    pub(crate) given_up: usize,
    pub(crate) stats: Stats,
}

impl Found {
    pub(crate) fn keys(&self) -> BTreeSet<TraceKey> {
        self.traces.keys().copied().collect()
    }
}

/// The key of a whole execution. An exploration has one of these `hashes`.
pub(crate) fn key_of(
    hashes: &mut Hashes,
    trace: &Trace,
    clocks: &HappensBefore,
    machine: &Machine,
) -> TraceKey {
    let mut key = TraceKey::default();
    let names = (&machine.names, &machine.sets);
    for position in 0..trace.len() as u32 {
        key.add(hashes, trace, clocks, names, position);
    }
    key
}

/// The algorithms by name.
pub(crate) const ALGORITHMS: [&str; 6] = [
    "naive",
    "sleep_sets",
    "classic",
    "source",
    "optimal",
    "parsimonious",
];

pub(crate) fn explorer(name: &str, free: TieBreak) -> Box<dyn Explorer> {
    match name {
        "naive" => Box::new(exhaustive::Exhaustive::naive(free)),
        "sleep_sets" => Box::new(exhaustive::Exhaustive::sleep_sets(free)),
        "classic" => Box::new(backtrack::Backtrack::classic(free)),
        "source" => Box::new(backtrack::Backtrack::source(free)),
        "optimal" => optimal::Optimal::new(free),
        "parsimonious" => Box::new(Parsimonious::new(free)),
        "final_states" => Box::new(ContextSensitive::new(free)),
        other => Box::new(Frontier::new(free, order(other))),
    }
}

/// The orders of search by name, besides depth-first.
pub(crate) const ORDERS: [&str; 5] = [
    "bit_reversal",
    "round_robin",
    "stride",
    "conflict_first",
    "random",
];

/// The order of this name.
pub(crate) fn order(name: &str) -> Order {
    match name {
        "bit_reversal" => Order::BitReversal(0),
        "round_robin" => Order::RoundRobin(Turns::new()),
        "stride" => Order::Stride(0),
        "conflict_first" => Order::ConflictFirst(Turns::new()),
        "random" => Order::Random(Rng::new(1, 0)),
        other => panic!("no algorithm and no order is called {other}"),
    }
}

fn limits(program: &Program) -> Limits {
    let mut limits = Limits {
        spin_bound: program.spin_bound,
        rounds_of_turn: program.rounds_of_turn,
        livelock_bound: 3,
        unhinted_livelock_bound: 2,
        stale_try_lock: program.orderings.is_some(),
        ..Limits::default()
    };
    limits.learnt.ends_are_events = program.has_ends();
    limits
}

/// Explores `program` and collects its traces and final states; `None` beyond `most` executions.
pub(crate) fn explore_up_to(
    program: &Program,
    algorithm: &str,
    free: TieBreak,
    most: u64,
) -> Option<Found> {
    explore_with(program, explorer(algorithm, free), true, most)
}

/// The number of executions that `algorithm` runs to their end.
pub(crate) fn count(program: &Program, algorithm: &str) -> u64 {
    let stats = stats(program, algorithm);
    if ["optimal", "parsimonious"].contains(&algorithm) {
        assert_eq!(stats.asleep, 0, "{algorithm} prunes nothing");
    }
    stats.numbered()
}

/// The cost of an exploration of `program`.
pub(crate) fn stats(program: &Program, algorithm: &str) -> Stats {
    explore_with(
        program,
        explorer(algorithm, TieBreak::Last),
        false,
        u64::MAX,
    )
    .map_or_else(Stats::default, |f| f.stats)
}

/// Explores `program`; `None` beyond `most` executions. Traces and final states are collected if
/// `record` says so.
pub(crate) fn explore_with(
    program: &Program,
    explorer: Box<dyn Explorer>,
    record: bool,
    most: u64,
) -> Option<Found> {
    let mut driver = driver(program, explorer);
    let mut found = Found::default();
    let within = |driver: &Driver| driver.stats.begun() <= most;
    explore_on(program, &mut driver, record, &mut found, within).then_some(found)
}

pooled!(Box<Driver>);

/// The loop that explores `program` with `explorer`.
pub(crate) fn driver(program: &Program, explorer: Box<dyn Explorer>) -> Pooled<Box<Driver>> {
    driver_up_to(program, explorer, Bounds::default().events_max)
}

/// [`driver`] for executions with at most this many events.
pub(crate) fn driver_up_to(
    program: &Program,
    explorer: Box<dyn Explorer>,
    events_max: usize,
) -> Pooled<Box<Driver>> {
    let mut driver = Pooled::<Box<Driver>>::default();
    let bounds = Bounds {
        events_max,
        ..Bounds::default()
    };
    driver.prepare(explorer, limits(program), bounds);
    driver
}

/// Runs the next execution; `None` if there is none.
fn execute(program: &Program, driver: &mut Driver) -> Option<(End, Code)> {
    if !driver.begin(site()) {
        return None;
    }
    let mut code = Code::new(program);
    let end = loop {
        match driver.next() {
            Next::Ran(thread, outcome) => {
                code.happened(program, &mut driver.machine, thread, outcome);
            }
            Next::Begins(thread) => code.begin(program, &mut driver.machine, thread),
            Next::Tries(..) => unreachable!("abstract programs have no hints"),
            Next::Ended => break driver.take_end(),
        }
        for (thread, order) in code.fences.drain(..) {
            driver.note_fence(thread, order, MadeSoFar::new(), site());
        }
    };
    driver.finish(&end);
    Some((end, code))
}

/// Runs the next execution and returns its end; `None` if there is none.
pub(crate) fn run(program: &Program, driver: &mut Driver) -> Option<End> {
    execute(program, driver).map(|(end, _)| end)
}

/// Continues an exploration until `go_on`, which is called after each execution, returns false;
/// then the result is false.
pub(crate) fn explore_on(
    program: &Program,
    driver: &mut Driver,
    record: bool,
    found: &mut Found,
    mut go_on: impl FnMut(&Driver) -> bool,
) -> bool {
    let mut hashes = Hashes::default();
    while let Some((end, code)) = execute(program, driver) {
        match &end {
            End::Pruned(Pruned::Asleep) => {}
            End::Pruned(_) => found.given_up += 1,
            End::Deadlock(_) => found.deadlocks += 1,
            End::Livelock { .. } => found.livelocks += 1,
            End::Complete => {}
            other => panic!("{program:?} ended with {other:?}"),
        }
        if record && !matches!(end, End::Pruned(Pruned::Asleep)) {
            driver.compute_clocks();
            let key = key_of(&mut hashes, &driver.trace, &driver.clocks, &driver.machine);
            *found.traces.entry(key).or_default() += 1;
            found.finals.insert(code.final_state(&driver.machine));
        }
        if !go_on(driver) {
            return false;
        }
    }
    found.stats = driver.stats;
    true
}

/// Every final state of `program`, by enumerating all states; `None` beyond `most` of them. The
/// state of a program without hints is that of its threads and objects.
#[cfg(test)]
pub(crate) fn final_states(program: &Program, most: usize) -> Option<FxHashSet<Final>> {
    let mut machine = Machine::new(limits(program));
    machine.reset(site());
    let (mut finals, mut seen) = (FxHashSet::default(), FxHashSet::default());
    let mut stack = vec![(machine, Code::new(program))];
    while let Some((mut machine, mut code)) = stack.pop() {
        while let Some(thread) = machine.next_to_begin() {
            machine.begin(thread);
            code.begin(program, &mut machine, thread);
        }
        let live = machine.live().iter().copied();
        let steps: Vec<Step> = live
            .filter(|&thread| machine.enabled(thread))
            .flat_map(|thread| {
                (0..machine.alternatives(thread)).map(move |alternative| Step {
                    thread,
                    alternative,
                })
            })
            .collect();
        if steps.is_empty() {
            finals.insert(code.final_state(&machine));
        }
        for step in steps {
            let (mut machine, mut code) = (machine.clone(), code.clone());
            let Pending { operation, site } = machine.take(step.thread);
            let executed = machine.perform(step, &operation, site);
            code.happened(program, &mut machine, step.thread, executed.outcome);
            // The end of a thread may be an event that its code does not see.
            if seen.insert((code.final_state(&machine), machine.live().to_vec())) {
                stack.push((machine, code));
            }
        }
        if seen.len() > most {
            return None;
        }
    }
    Some(finals)
}

/// A key that distinguishes the prefixes of executions.
pub(crate) type KeyOf = fn(&Program, &Trace, &Machine) -> TraceKey;

/// Every trace of `program`, by enumerating all executions; `None` beyond `most` prefixes.
pub(crate) fn brute_force(program: &Program, most: usize) -> Option<Found> {
    brute_force_by(program, most, None)
}

/// [`brute_force`] where this key distinguishes traces, instead of labels and clocks.
pub(crate) fn brute_force_by(program: &Program, most: usize, by: Option<KeyOf>) -> Option<Found> {
    struct Node {
        machine: Machine,
        code: Code,
        trace: Trace,
        clocks: HappensBefore,
        /// Each node has names of its own, which may mean different things in another node.
        hashes: Hashes,
        key: TraceKey,
    }
    let mut machine = Machine::new(limits(program));
    machine.reset(site());
    let mut found = Found::default();
    let mut seen = FxHashSet::default();
    let mut stack = vec![Node {
        machine,
        code: Code::new(program),
        trace: Trace::new(),
        clocks: HappensBefore::default(),
        hashes: Hashes::default(),
        key: TraceKey::default(),
    }];
    while let Some(mut node) = stack.pop() {
        while let Some(thread) = node.machine.next_to_begin() {
            node.machine.begin(thread);
            node.code.begin(program, &mut node.machine, thread);
        }
        let mut steps = Vec::new();
        loop {
            for &thread in node.machine.live() {
                if node.machine.enabled(thread) {
                    for alternative in 0..node.machine.alternatives(thread) {
                        steps.push(Step {
                            thread,
                            alternative,
                        });
                    }
                }
            }
            let livelock = node.machine.livelock(0, usize::MAX).is_some();
            let gave_up = node.machine.live().iter().any(|&t| {
                let pending = node.machine.pending(t).expect("announced");
                matches!(pending.operation.kind, OpKind::GiveUp { .. })
            });
            let quiet = steps.is_empty();
            if !quiet
                || livelock
                || gave_up
                || !node.machine.release_waiters(node.trace.len() as u32)
            {
                if quiet {
                    found.traces.insert(node.key, 1);
                    found.finals.insert(node.code.final_state(&node.machine));
                    if gave_up {
                        found.given_up += 1;
                    } else if livelock {
                        found.livelocks += 1;
                    } else if !node.machine.live().is_empty() {
                        found.deadlocks += 1;
                    }
                }
                break;
            }
        }
        // A spawn commutes with everything, so taking it first loses no trace.
        let first = steps.iter().copied().find(|step| {
            let pending = node.machine.pending(step.thread).expect("announced");
            matches!(pending.operation.kind, OpKind::Spawn { .. })
        });
        if let Some(step) = first {
            steps = vec![step];
        }
        for step in steps {
            let mut next = Node {
                machine: node.machine.clone(),
                code: node.code.clone(),
                trace: node.trace.clone(),
                clocks: node.clocks.clone(),
                hashes: node.hashes.clone(),
                key: node.key,
            };
            let Pending { operation, site } = next.machine.take(step.thread);
            let executed = next.machine.perform(step, &operation, site);
            next.trace.push(executed.event(step, 0, &operation, site));
            next.clocks.extend(&next.trace, &next.machine.sets);
            let names = (&next.machine.names, &next.machine.sets);
            let position = next.trace.len() as u32 - 1;
            match by {
                Some(by) => next.key = by(program, &next.trace, &next.machine),
                None => {
                    (next.key).add(&mut next.hashes, &next.trace, &next.clocks, names, position);
                }
            }
            if seen.insert(next.key) {
                if seen.len() > most {
                    return None;
                }
                let (thread, outcome) = (step.thread, executed.outcome);
                next.code
                    .happened(program, &mut next.machine, thread, outcome);
                stack.push(next);
            }
        }
    }
    Some(found)
}
