//! Does the search over graphs find every graph of a program once, with every kind of object?
//!
//! With `SeqCst` alone it must find what `Optimal` finds. With any orderings brute force is the
//! judge: it adds any step with any alternative, memoised on the graph.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::checkpoints::{NoStatics, check_damage};
use super::random::{Rng, number, program};
use crate::rt::engine::driver::Driver;
use crate::rt::engine::plan::Plan;
use crate::rt::engine::price::Price;
use crate::rt::engine::strategies::bounded_graphs::BoundedGraphs;
use crate::rt::engine::strategies::graphs::Graphs;
use crate::rt::engine::testing::programs::{load, store, var};
use crate::rt::engine::testing::*;
use crate::rt::engine::weak_memory::WeakMemory;
use crate::rt::engine::{Choice, Coverage, Execution, Explorer, Point, TieBreak};
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{ObjectKind, OpKind, Rmw, Step};
use crate::rt::event::verdict::Pruned;
use crate::rt::memory::MemoryModel;
use crate::rt::memory::graph::Graph;
use crate::rt::memory::search::{Free, Trap};
use crate::rt::memory::{Outcome, StoreRef};
use crate::rt::pooled::Pooled;

/// The parts of a graph that make it another one.
type Key = Vec<u64>;

fn name(store: StoreRef) -> u64 {
    match store.event() {
        Some((thread, index)) => u64::from(thread.0) << 32 | u64::from(index),
        None => 1 << 62,
    }
}

fn key(graph: &Graph) -> Key {
    let mut words = Vec::new();
    for thread in graph.threads() {
        words.push(u64::MAX);
        for &position in graph.steps_of(thread) {
            let event = graph.at(position);
            match event.outcome {
                Outcome::Done => words.push(1),
                Outcome::Reads(store) => words.extend([2, name(store)]),
                Outcome::Modifies(store) => words.extend([3, name(store)]),
                Outcome::Behind(_) => {
                    let object = event.object();
                    let place = graph.place(object, event.name());
                    words.extend([4, name(graph.store_at(object, place - 1))]);
                }
                Outcome::Other { alternative, label } => {
                    words.extend([5, u64::from(alternative), label.class() as u64]);
                    // Its order with the other operations on the object.
                    let past = graph.past(position).iter().enumerate();
                    words.extend(
                        past.filter(|(_, n)| **n > 0)
                            .flat_map(|(t, &n)| [t as u64, u64::from(n)]),
                    );
                }
            }
        }
    }
    words
}

/// The graphs of a program, each with the number of its executions, and its final states.
#[derive(Default)]
struct Graphed {
    graphs: FxHashMap<Key, u32>,
    finals: FxHashSet<Final>,
}

impl Graphed {
    fn keys(&self) -> BTreeSet<Key> {
        self.graphs.keys().cloned().collect()
    }
}

/// A driver of this explorer that adds the graph of each execution to these.
fn drive(
    program: &Program,
    graphs: Graphs,
    weak: &Rc<RefCell<WeakMemory>>,
    keys: &Rc<RefCell<Vec<Key>>>,
) -> Pooled<Box<Driver>> {
    let mut driver = driver(program, Box::new(graphs));
    driver.weaken(weak.clone());
    let is_strong = program.orderings.is_none();
    weak.borrow_mut().search.model.graph_mut().is_strong = is_strong;
    // The graph is gone when the search has learnt from an execution.
    let into = keys.clone();
    let note = move |graph: &Graph| into.borrow_mut().push(key(graph));
    weak.borrow_mut().at_end = Some(Box::new(note));
    driver
}

/// The graphs that the search finds; `None` beyond `most` executions.
fn searched(program: &Program, free: Free, most: u64) -> Option<(Graphed, Found)> {
    searched_without(program, free, None, most)
}

/// [`searched`] without a rule.
fn searched_without(
    program: &Program,
    free: Free,
    left_out: Option<Trap>,
    most: u64,
) -> Option<(Graphed, Found)> {
    let mut found = Found::default();
    let keys: Rc<RefCell<Vec<Key>>> = Rc::default();
    let weak = Rc::new(RefCell::new(WeakMemory::new(free)));
    if let Some(trap) = left_out {
        weak.borrow_mut().search.leave_out(trap);
    }
    let mut driver = drive(program, Graphs::new(weak.clone()), &weak, &keys);
    let ended = explore_on(program, &mut driver, true, &mut found, |driver: &Driver| {
        driver.stats.begun() <= most
    });
    let mut graphed = Graphed {
        finals: found.finals.clone(),
        ..Graphed::default()
    };
    for key in keys.take() {
        *graphed.graphs.entry(key).or_default() += 1;
    }
    ended.then_some((graphed, found))
}

/// The explorer that makes these steps, and then notes which steps are possible at which price.
struct Script {
    steps: Vec<Step>,
    price: Price,
    options: Rc<RefCell<Vec<(Step, u32)>>>,
    started: bool,
}

impl Explorer for Script {
    fn begin(&mut self, _: &mut Plan) -> bool {
        !std::mem::replace(&mut self.started, true)
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        if let Some(&step) = self.steps.get(at.trace.len()) {
            if !at.is_able(step.thread) {
                return Choice::NothingEnabled;
            }
            return Choice::Run(step);
        }
        let weak = at.weak.expect("memory is weak");
        let mut options = self.options.borrow_mut();
        let live = at.machine.live().iter().copied();
        let able: Vec<_> = live.filter(|&thread| at.is_able(thread)).collect();
        let mut costs = Vec::new();
        self.price.of_each(at, &able, at.last, &mut costs);
        for (thread, cost) in costs {
            let kind = at.machine.pending(thread).map(|it| it.operation.kind);
            let is_old = |alternative: u32| match kind {
                Some(OpKind::Wait { .. }) => alternative >= 256,
                Some(OpKind::TryLock) => alternative >= 2,
                Some(kind) if kind.is_atomic() => alternative >= 2,
                _ => false,
            };
            let cost_of = |alternative| match self.price {
                Price::OldValues => u32::from(is_old(alternative)),
                _ => cost,
            };
            let all = weak.borrow_mut().alternatives(at.machine, at.trace, thread);
            let all = if all.is_empty() { vec![0] } else { all };
            options.extend(all.into_iter().map(|alternative| {
                let step = Step {
                    thread,
                    alternative,
                };
                (step, cost_of(alternative))
            }));
        }
        if options.is_empty() {
            return Choice::NothingEnabled;
        }
        Choice::Prune(Pruned::Asleep)
    }

    fn has_all_begin(&self) -> bool {
        true
    }

    fn asks_for_clocks(&self) -> bool {
        false
    }

    fn finish(&mut self, _: &Execution<'_>) {}
}

/// Every graph of the program; `None` beyond `most` prefixes.
fn enumerated(program: &Program, most: usize) -> Option<Graphed> {
    Some(priced(program, Price::OldValues, most)?.0)
}

/// Every graph of the program, and the price of each; `None` beyond `most` prefixes.
fn priced(program: &Program, price: Price, most: usize) -> Option<(Graphed, FxHashMap<Key, u32>)> {
    let mut graphed = Graphed::default();
    let mut prices: FxHashMap<Key, u32> = FxHashMap::default();
    let mut seen: FxHashSet<(Key, Option<ThreadId>)> = FxHashSet::default();
    // The prefixes of each price that are still to be extended.
    let mut open: BTreeMap<u32, Vec<Vec<Step>>> = BTreeMap::from([(0, vec![Vec::new()])]);
    while let Some(mut entry) = open.first_entry() {
        let cost = *entry.key();
        let Some(steps) = entry.get_mut().pop() else {
            entry.remove();
            continue;
        };
        let options: Rc<RefCell<Vec<(Step, u32)>>> = Rc::default();
        let script = Script {
            steps: steps.clone(),
            price,
            options: options.clone(),
            started: false,
        };
        let weak = Rc::new(RefCell::new(WeakMemory::new(Free::Last)));
        let mut driver = driver(program, Box::new(script));
        driver.weaken(weak.clone());
        let mut found = Found::default();
        explore_on(program, &mut driver, true, &mut found, |_| false);
        let key = key(weak.borrow().search.model.graph());
        let last = steps.last().map(|step| step.thread);
        let last = last.filter(|_| price != Price::OldValues);
        if !seen.insert((key.clone(), last)) {
            continue;
        }
        if seen.len() > most {
            return None;
        }
        let options = options.take();
        if options.is_empty() {
            prices.entry(key.clone()).or_insert(cost);
            graphed.graphs.insert(key, 1);
            graphed.finals.extend(found.finals);
        }
        for (step, more) in options {
            let mut next = steps.clone();
            next.push(step);
            open.entry(cost + more).or_default().push(next);
        }
    }
    Some((graphed, prices))
}

#[test]
fn within_a_bound_exactly_the_graphs_of_that_price_are_found_once() {
    let (mut checked, mut cut, mut whole) = (0, 0, 0);
    let programs = number("DPOR_FUZZ", 20_000).div_ceil(40);
    let start = number("DPOR_FUZZ_SEED", 1);
    for seed in start..start + programs {
        let mut program = one_of_both(seed);
        program.orderings = Some(seed);
        let others = [Price::Preemptions, Price::Switches, Price::Delays];
        for price in [Price::OldValues, others[seed as usize % 3]] {
            let Some((_, prices)) = priced(&program, price, 300) else {
                continue;
            };
            for most in 0..3 {
                let within = prices.iter().filter(|(_, cost)| **cost <= most);
                let mut within: Vec<Key> = within.map(|(key, _)| key.clone()).collect();
                within.sort();
                let (mut found, is_all) = bounded(&program, price, most as usize);
                found.sort();
                let context = format!("{price:?} {most}, seed {seed}: {}", program.listing());
                assert!(
                    found == within,
                    "{} of {}, {context}",
                    found.len(),
                    within.len()
                );
                let has_more = within.len() < prices.len();
                assert!(!(is_all && has_more), "{context}");
                // Where threads count, a place may be too dear that adds no graph.
                assert!(is_all || has_more || price != Price::OldValues, "{context}");
                checked += 1;
                cut += u32::from(has_more);
                whole += u32::from(is_all);
            }
        }
    }
    println!("{checked} bounds, {cut} of them with more behind them, {whole} not needed");
    assert!(cut > 10 && whole > 10);
}

/// The graph of each execution within the bound, and whether these are said to be all.
fn bounded(program: &Program, price: Price, most: usize) -> (Vec<Key>, bool) {
    let explorer = BoundedGraphs::new(price, most);
    let weak = explorer.weak().expect("memory is weak");
    let mut driver = driver(program, Box::new(explorer));
    driver.weaken(weak.clone());
    let mut found = Found::default();
    let mut keys = Vec::new();
    let mut complete = 0;
    explore_on(program, &mut driver, false, &mut found, |driver| {
        if driver.stats.numbered() > complete {
            complete = driver.stats.numbered();
            keys.push(key(weak.borrow().search.model.graph()));
        }
        true
    });
    (keys, driver.coverage() == Coverage::All)
}

/// The ways to choose behind a wakeup sequence.
fn free(seed: u64) -> Free {
    match seed % 3 {
        0 => Free::Last,
        1 => Free::Random(seed | 1),
        _ => Free::Any(seed | 1),
    }
}

#[test]
fn with_seq_cst_alone_the_search_over_graphs_finds_what_optimal_finds() {
    let mut checked = 0;
    let programs = number("DPOR_FUZZ", 20_000).div_ceil(8);
    let start = number("DPOR_FUZZ_SEED", 1);
    for seed in start..start + programs {
        let program = program(seed);
        let waits = program
            .threads
            .iter()
            .flatten()
            .any(|ins| *ins == Ins::Hint);
        // A wait reads one store here, and depends on all stores there.
        if waits {
            continue;
        }
        let Some(strong) = explore_up_to(&program, "optimal", TieBreak::Last, 400) else {
            continue;
        };
        checked += 1;
        let weak = std::panic::catch_unwind(|| searched(&program, free(seed), 2_000));
        let Ok(Some((_, found))) = weak else {
            panic!("seed {seed}: {}", program.listing())
        };
        let counts = |found: &Found| (found.stats.complete, found.stats.asleep, found.given_up);
        assert_eq!(
            counts(&found),
            counts(&strong),
            "seed {seed}: {}",
            program.listing()
        );
        assert!(
            found.finals == strong.finals,
            "seed {seed}: {}",
            program.listing()
        );
    }
    println!("{checked} programs");
}

#[test]
fn every_graph_of_random_programs_with_every_kind_of_object_is_found_once() {
    let (mut checked, mut all) = (0, 0);
    let programs = number("DPOR_FUZZ", 20_000).div_ceil(8);
    let start = number("DPOR_FUZZ_SEED", 1);
    for seed in start..start + programs {
        let mut program = one_of_both(seed);
        program.orderings = Some(seed);
        let Some(oracle) = enumerated(&program, 600) else {
            continue;
        };
        let most = oracle.graphs.len() as u64 + 1;
        let found = std::panic::catch_unwind(|| searched(&program, free(seed), most));
        let Ok(Some((found, _))) = found else {
            panic!(
                "seed {seed}, {} graphs: {}",
                oracle.graphs.len(),
                program.listing()
            )
        };
        let missing = oracle.keys().difference(&found.keys()).count();
        let more = found.keys().difference(&oracle.keys()).count();
        let twice = found.graphs.values().filter(|&&times| times > 1).count();
        assert_eq!(
            (missing, more, twice),
            (0, 0, 0),
            "seed {seed}, {} graphs: {}",
            oracle.graphs.len(),
            program.listing()
        );
        assert!(
            found.finals == oracle.finals,
            "seed {seed}: {}",
            program.listing()
        );
        checked += 1;
        all += oracle.graphs.len();
    }
    println!("{checked} programs, {all} graphs");
}

#[test]
fn every_order_finds_every_graph_of_random_programs_once() {
    let (mut checked, mut all) = (0, 0);
    let programs = number("DPOR_FUZZ", 20_000).div_ceil(32);
    let start = number("DPOR_FUZZ_SEED", 1);
    for seed in start..start + programs {
        let mut program = one_of_both(seed);
        program.orderings = Some(seed);
        let Some((known, _)) = searched(&program, Free::Last, 400) else {
            continue;
        };
        for name in ORDERS {
            let weak = Rc::new(RefCell::new(WeakMemory::new(free(seed))));
            let keys: Rc<RefCell<Vec<Key>>> = Rc::default();
            let mut driver = drive(&program, graphs_in(name, &weak), &weak, &keys);
            let mut found = Found::default();
            let most = known.graphs.len() as u64 + 1;
            let ended = explore_on(
                &program,
                &mut driver,
                true,
                &mut found,
                |driver: &Driver| driver.stats.begun() <= most,
            );
            let keys = keys.take();
            let context = || format!("{name}, seed {seed}: {}", program.listing());
            assert!(ended, "more executions than graphs: {}", context());
            assert_eq!(keys.len(), known.graphs.len(), "{}", context());
            let keys: BTreeSet<Key> = keys.into_iter().collect();
            assert!(keys == known.keys(), "{}", context());
            assert!(found.finals == known.finals, "{}", context());
        }
        checked += 1;
        all += known.graphs.len();
    }
    println!("{checked} programs, {all} graphs");
}

/// The graphs in the order in which they are found, if the driver is dropped after each `every`
/// executions and only the bytes of a checkpoint reach the next one. Without a number it is never
/// dropped. `None` beyond `most` executions.
fn in_parts(
    program: &Program,
    order_of: &str,
    every: Option<u64>,
    most: u64,
) -> Option<(Vec<Key>, Found)> {
    let (mut found, keys) = (Found::default(), Rc::default());
    let mut saved: Option<(Vec<u8>, Option<f64>)> = None;
    loop {
        let weak = Rc::new(RefCell::new(WeakMemory::new(Free::Last)));
        let mut driver = drive(program, graphs_in(order_of, &weak), &weak, &keys);
        if let Some((bytes, estimate)) = &saved {
            assert!(driver.restore(bytes, &NoStatics), "its own checkpoint");
            assert_eq!(driver.estimate(), *estimate);
            let again = driver.save(&NoStatics);
            assert!(again.is_none(), "nothing new before the first execution");
        }
        let end = every.map_or(u64::MAX, |every| driver.stats.begun() + every);
        let go_on = |driver: &Driver| driver.stats.begun() < end.min(most);
        if explore_on(program, &mut driver, true, &mut found, go_on) {
            return Some((keys.take(), found));
        }
        if driver.stats.begun() >= most {
            return None;
        }
        saved = match driver.save(&NoStatics) {
            Some(bytes) => Some((bytes.expect("no statics"), driver.estimate())),
            None => {
                found.stats = driver.stats;
                return Some((keys.take(), found));
            }
        };
    }
}

/// The search over graphs in this order, or depth-first.
fn graphs_in(order_of: &str, weak: &Rc<RefCell<WeakMemory>>) -> Graphs {
    let graphs = Graphs::new(weak.clone());
    match order_of {
        "depth_first" => graphs,
        name => graphs.in_order(order(name)),
    }
}

#[test]
fn a_search_over_graphs_in_parts_is_the_same_as_one_in_a_piece() {
    let mut interruptions = 0;
    let programs = number("DPOR_FUZZ", 20_000).div_ceil(40);
    let start = number("DPOR_FUZZ_SEED", 1);
    for seed in start..start + programs {
        let mut program = one_of_both(seed);
        program.orderings = (!seed.is_multiple_of(8)).then_some(seed);
        let Some((mut whole, found)) = in_parts(&program, "depth_first", None, 200) else {
            continue;
        };
        for every in [1, 3, 10] {
            let parts = in_parts(&program, "depth_first", Some(every), 201);
            let (parts, of_parts) = parts.expect("no more executions than in a piece");
            let context = format!("every {every}, seed {seed}: {}", program.listing());
            assert!(parts == whole, "{context}");
            assert_eq!(of_parts, found, "{context}");
            interruptions += whole.len() as u64 / every;
        }
        // An order begins anew behind each interruption, so another branch may be next.
        whole.sort_unstable();
        for name in ORDERS {
            let every = 1 + seed % 5;
            let parts = in_parts(&program, name, Some(every), 201);
            let context = || format!("{name}, every {every}, seed {seed}: {}", program.listing());
            let Some((mut parts, of_parts)) = parts else {
                panic!("more executions than in a piece: {}", context())
            };
            parts.sort_unstable();
            assert!(
                parts == whole,
                "{} of {}: {}",
                parts.len(),
                whole.len(),
                context()
            );
            assert_eq!(of_parts.finals, found.finals, "{}", context());
            interruptions += whole.len() as u64 / every;
        }
    }
    println!("{interruptions} interruptions");
    assert!(interruptions > 1000, "only {interruptions} interruptions");
}

#[test]
fn damaged_graphs_are_no_checkpoint_or_still_one_but_never_a_crash() {
    let mut program = crate::rt::engine::tests::lost_update(3);
    program.orderings = Some(1);
    let of = |name| {
        let weak = Rc::new(RefCell::new(WeakMemory::new(Free::Last)));
        drive(&program, graphs_in(name, &weak), &weak, &Rc::default())
    };
    for (name, other) in [("depth_first", "stride"), ("stride", "depth_first")] {
        let mut first = of(name);
        let mut found = Found::default();
        let go_on = |driver: &Driver| driver.stats.begun() < 10;
        explore_on(&program, &mut first, false, &mut found, go_on);
        let bytes = first.save(&NoStatics).expect("unfinished");
        let bytes = bytes.expect("no statics");
        check_damage(&bytes, |bytes| of(name).restore(bytes, &NoStatics));
        assert!(!of(other).restore(&bytes, &NoStatics), "another order");
        let mut optimal = driver(&program, explorer("optimal", TieBreak::Last));
        assert!(!optimal.restore(&bytes, &NoStatics), "another search");
    }
}

/// Every graph that the program has under sequential consistency; `None` beyond `most` executions.
fn sequential(program: &Program, most: u64) -> Option<BTreeSet<Key>> {
    let weak = Rc::new(RefCell::new(WeakMemory::new(Free::Last)));
    let mut driver = driver(program, explorer("naive", TieBreak::Last));
    driver.weaken(weak.clone());
    let mut found = Found::default();
    let mut keys = BTreeSet::new();
    let ended = explore_on(
        program,
        &mut driver,
        false,
        &mut found,
        |driver: &Driver| {
            keys.insert(key(weak.borrow().search.model.graph()));
            driver.stats.begun() <= most
        },
    );
    ended.then_some(keys)
}

/// Two or three threads with accesses to two atomics and critical sections, and main, which joins
/// them and reads. The check by clocks knows all of that.
fn plain(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let lock = var(2);
    let mut threads: Vec<Vec<Ins>> = Vec::new();
    for _ in 0..2 + rng.below(2) {
        let mut code = Vec::new();
        for _ in 0..2 + rng.below(2) {
            let at = rng.below(2) as i64;
            let access = match rng.below(5) {
                0 | 1 => load(at, 0),
                2 | 3 => store(at, 1 + rng.below(2) as i64),
                _ => Ins::Rmw {
                    var: at as u32,
                    rmw: Rmw::Add,
                    operand: Val::Const(1),
                    to: 0,
                },
            };
            match rng.below(4) {
                0 => code.extend([Ins::Lock(lock), access, Ins::Unlock(lock)]),
                _ => code.push(access),
            }
        }
        threads.push(code);
    }
    let count = threads.len() as u32;
    let mut program = Program::of(threads).with(2, ObjectKind::Mutex, 0);
    program.threads[0].extend((1..=count).map(Ins::Join));
    program.threads[0].push(load(0, 0));
    program.has_no_fences = true;
    program
}

/// A load or a store of the atomic with this number.
fn access(rng: &mut Rng, at: i64) -> Ins {
    match rng.below(2) {
        0 => load(at, 0),
        _ => store(at, 1 + rng.below(2) as i64),
    }
}

/// Skips so many instructions if the register has another value.
fn unless(reg: u8, value: i64, by: u8) -> Ins {
    let value = Val::Const(value);
    Ins::Unless { reg, value, by }
}

/// Two or three threads with critical sections and attempts at some, some of them in loops that
/// wait, and accesses to two atomics.
fn tries(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let lock = 2;
    let mut threads: Vec<Vec<Ins>> = Vec::new();
    for _ in 0..2 + rng.below(2) {
        let mut code = Vec::new();
        for _ in 0..2 + rng.below(2) {
            let at = rng.below(2) as i64;
            let access = access(&mut rng, at);
            match rng.below(8) {
                0 | 1 => code.extend([Ins::Lock(var(lock)), Ins::Unlock(var(lock))]),
                2 | 3 => code.extend([
                    Ins::TryLock { mutex: 2, to: 7 },
                    unless(7, 1, 1),
                    Ins::Unlock(var(lock)),
                ]),
                4 => code.extend([
                    Ins::TryLock { mutex: 2, to: 6 },
                    unless(6, 0, 2),
                    Ins::Hint,
                    Ins::Jump(-3),
                    Ins::Unlock(var(lock)),
                ]),
                _ => code.push(access),
            }
        }
        threads.push(code);
    }
    let count = threads.len() as u32;
    let mut program = Program::of(threads).with(2, ObjectKind::Mutex, 0);
    if rng.below(2) == 0 {
        program.threads[0].extend((1..=count).map(Ins::Join));
        program.threads[0].push(load(0, 0));
    }
    program.has_no_fences = rng.below(4) == 0;
    program
}

/// Threads that read and write behind one `RwLock`. Some read twice in a row, and some release a
/// lock never, or not if they have read a certain value.
fn locks(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    const LOCK: u32 = 2;
    let op = |kind: OpKind| Ins::Op {
        var: LOCK,
        kind,
        to: 7,
    };
    let unlock_write = OpKind::UnlockWrite { changed: true };
    let mut threads: Vec<Vec<Ins>> = Vec::new();
    for _ in 0..2 + rng.below(3) {
        let mut code = Vec::new();
        for _ in 0..1 + rng.below(2) {
            let at = rng.below(2) as i64;
            let access = access(&mut rng, at);
            match rng.below(8) {
                0..=3 => {
                    let times = 1 + rng.below(2);
                    for _ in 0..times {
                        code.push(op(OpKind::ReadLock));
                        if rng.one_in(3) {
                            code.push(access);
                        }
                    }
                    for _ in 0..times {
                        match rng.below(4) {
                            0 => {}
                            1 => {
                                code.extend([load(at, 1), unless(1, 0, 1), op(OpKind::UnlockRead)])
                            }
                            _ => code.push(op(OpKind::UnlockRead)),
                        }
                    }
                }
                4 | 5 => {
                    code.push(op(OpKind::WriteLock));
                    if rng.one_in(2) {
                        code.push(access);
                    }
                    if !rng.one_in(5) {
                        code.push(op(unlock_write));
                    }
                }
                6 => {
                    let kind = [OpKind::TryRead, OpKind::TryWrite][rng.below(2) as usize];
                    let release = match kind {
                        OpKind::TryRead => OpKind::UnlockRead,
                        _ => unlock_write,
                    };
                    code.extend([op(kind), unless(7, 1, 1), op(release)]);
                }
                _ => code.push(access),
            }
        }
        threads.push(code);
    }
    Program::of(threads).with(LOCK, ObjectKind::RwLock, 0)
}

/// A program with every kind of object, or one that tries to lock a mutex.
fn one_of_both(seed: u64) -> Program {
    match seed % 4 {
        1 => tries(seed),
        3 => locks(seed),
        _ => program(seed),
    }
}

/// Compares the look-out with graphs beyond sequential consistency. Returns whether there are some;
/// `None` if the program is too large.
fn check_look_out(program: &Program, seed: u64) -> Option<bool> {
    let (all, _) = searched(program, Free::Last, 300)?;
    let sequential = sequential(program, 1_000)?;
    let mut driver = driver(program, explorer("optimal", TieBreak::Last));
    driver.look_out();
    let mut found = Found::default();
    explore_on(program, &mut driver, false, &mut found, |_| true);
    let says = driver.looked_out().is_some_and(|found| found.is_some());
    let has_more = !all.keys().is_subset(&sequential);
    assert_eq!(says, has_more, "seed {seed}: {}", program.listing());
    Some(says)
}

#[test]
fn the_look_out_finds_weak_behaviour_where_there_is_some() {
    let (mut weak, mut strong) = (0, 0);
    let programs = number("DPOR_FUZZ", 20_000).div_ceil(20);
    let start = number("DPOR_FUZZ_SEED", 1);
    for seed in start..start + programs {
        for mut program in [program(seed), plain(seed), tries(seed)] {
            program.orderings = Some(seed);
            match check_look_out(&program, seed) {
                Some(true) => weak += 1,
                Some(false) => strong += 1,
                None => {}
            }
        }
    }
    println!("{weak} programs with weak behaviour, {strong} without");
}

#[test]
fn the_look_out_keeps_the_lists_of_the_waits_of_one_execution() {
    // Two threads wait for a flag each, which main sets.
    let waits = |flag: i64| {
        vec![
            Ins::Load {
                var: Val::Const(flag),
                to: 0,
            },
            Ins::Unless {
                reg: 0,
                value: Val::Const(0),
                by: 2,
            },
            Ins::Hint,
            Ins::Jump(-3),
        ]
    };
    let sets = |flag: i64| Ins::Store {
        var: Val::Const(flag),
        value: Val::Const(1),
    };
    let program = Program::of(vec![waits(0), waits(1), vec![sets(0), sets(1)]]);
    let mut driver = driver(&program, explorer("optimal", TieBreak::Last));
    driver.look_out();
    let mut most = 0;
    let mut found = Found::default();
    loop {
        let goes_on = explore_on(&program, &mut driver, false, &mut found, |_| false);
        most = most.max(driver.waits_looked_at());
        if goes_on {
            break;
        }
    }
    assert!(found.stats.complete > 4, "{found:?}");
    assert!(most <= 4, "{most} lists");
}

/// A rule on read locks, and threads that are explored wrongly without it.
fn kept_locks() -> [(Trap, Vec<Vec<Ins>>); 2] {
    let op = |kind: OpKind| Ins::Op {
        var: 0,
        kind,
        to: 7,
    };
    let read = || vec![op(OpKind::ReadLock)];
    let write = || vec![op(OpKind::WriteLock)];
    let twice = [OpKind::ReadLock, OpKind::ReadLock, OpKind::UnlockRead];
    let twice = twice.map(op).to_vec();
    [
        (Trap::Readers, vec![read(), read(), write()]),
        (Trap::Outermost, vec![read(), twice, write()]),
    ]
}

#[test]
fn no_rule_on_read_locks_can_be_left_out() {
    for (trap, threads) in kept_locks() {
        let program = Program::of(threads).with(0, ObjectKind::RwLock, 0);
        // The writer comes first and keeps the readers out, or both of them read and keep it out.
        let oracle = enumerated(&program, 600).expect("small").keys();
        assert_eq!(oracle.len(), 2, "{trap:?}");
        let faults = |left_out: Option<Trap>| {
            let choices = (1..60).map(|seed| free(seed * 7919));
            let found = choices.map(|free| searched_without(&program, free, left_out, 100));
            let found = found.map(|found| found.expect("few executions").0);
            found.filter(|found| found.keys() != oracle).count()
        };
        assert_eq!(faults(None), 0, "{trap:?}");
        assert!(faults(Some(trap)) > 0, "{trap:?}");
    }
}
