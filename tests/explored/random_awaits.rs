//! Is nothing lost where a loop that waits is taken for one step, and nothing done twice?
//!
//! Random programs of threads that wait for each other are explored with `await_loops` and without. All that a thread does
//! is written down but for the looks that were in vain, and each value is written once, so what is written down says which
//! trace it was, apart from those looks. With `await_loops` there must be the same of them, each once.
//! `DPOR_AWAITS` says how many programs there are to be, and `DPOR_AWAITS_FROM` the first one's seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{Algorithm, Builder, hint, thread};

use crate::drawn::{Numbers, setting, smallest, without_one};

/// More executions than this are too many for a test that has hundreds of programs.
const EXECUTIONS_MAX: usize = 4_000;

/// The same under C11, where an execution takes longer.
const WEAK_EXECUTIONS_MAX: usize = 1_000;

/// What a thread does next. Places are indices of atomics.
#[derive(Clone, Copy, Debug)]
enum Step {
    Swap(usize),
    Load(usize),
    /// Waits until somebody has written there.
    Await(usize),
    /// Until somebody has written to one of two, of which the second is looked at only if the first is as it was.
    AwaitEither(usize, usize),
    /// Looks once before its loop.
    AwaitLater(usize),
    /// Until somebody has written to the first, and takes the second meanwhile if it can.
    AwaitOrTake(usize, usize),
    /// Waits for a lock, and counts itself in there.
    Lock,
    /// The same, and waits there until somebody has written.
    LockAndAwait(usize),
    /// Gives up after two looks.
    Try(usize),
}

impl Step {
    /// Whether each round of its loop, if it has one, looks once. Then none is given up.
    fn looks_once(&self) -> bool {
        !matches!(self, Step::AwaitEither(..) | Step::AwaitOrTake(..))
    }
}

type Program = Vec<Vec<Step>>;

/// How many atomics there are.
const PLACES: usize = 2;

fn draw(seed: u64) -> Program {
    let mut numbers = Numbers(seed);
    let threads = 2 + numbers.below(2);
    let mut thread = |_| {
        let steps = 1 + numbers.below(if threads == 2 { 3 } else { 2 });
        let mut step = |_| {
            let (one, other) = (numbers.below(PLACES), numbers.below(PLACES));
            match numbers.below(13) {
                0..4 => Step::Swap(one),
                4 => Step::Load(one),
                5 | 6 => Step::Await(one),
                7 => Step::AwaitEither(one, other),
                8 => Step::AwaitLater(one),
                // With one place it would never wait.
                9 if one != other => Step::AwaitOrTake(one, other),
                10 => Step::Lock,
                11 => Step::LockAndAwait(one),
                _ => Step::Try(one),
            }
        };
        (0..steps).map(&mut step).collect()
    };
    (0..threads).map(&mut thread).collect()
}

/// The orderings of a program's loads and swaps. The lock is a correct one.
#[derive(Clone, Copy, Debug)]
struct Orders {
    load: Ordering,
    swap: Ordering,
}

impl Orders {
    const STRONG: Orders = Orders {
        load: SeqCst,
        swap: SeqCst,
    };

    /// Those of the program with this seed under C11.
    fn draw(seed: u64) -> Orders {
        let mut numbers = Numbers(seed ^ 0xc11);
        Orders {
            load: [Relaxed, Relaxed, Acquire, SeqCst][numbers.below(4)],
            swap: [Relaxed, Release, AcqRel, SeqCst][numbers.below(4)],
        }
    }

    /// The memory model under which a program with these orderings is explored.
    fn memory(&self) -> dpor::Memory {
        match (self.load, self.swap) {
            (SeqCst, SeqCst) => dpor::Memory::Sc,
            _ => dpor::Memory::C11,
        }
    }
}

struct Memory {
    places: [AtomicUsize; PLACES],
    locked: AtomicBool,
    holders: AtomicUsize,
    orders: Orders,
    /// Whether a thread gives the execution up instead of a second look in vain.
    gives_up: bool,
}

/// What each thread has found, but for the looks in vain.
type Found = Vec<Vec<usize>>;

/// A thread that makes these steps. What it writes it writes only once.
fn run(steps: &[Step], memory: &Memory, first: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let orders = memory.orders;
    let look = |place: usize| memory.places[place].load(orders.load);
    for (step, mine) in steps.iter().zip(first..) {
        match *step {
            Step::Swap(place) => found.push(memory.places[place].swap(mine, orders.swap)),
            Step::Load(place) => found.push(look(place)),
            Step::Await(place) => found.push(wait(memory, place)),
            Step::AwaitEither(one, other) => loop {
                let first = look(one);
                if first != 0 {
                    found.push(first);
                    break;
                }
                let second = look(other);
                if second != 0 {
                    found.extend([first, second]);
                    break;
                }
                hint::spin_loop();
            },
            Step::AwaitLater(place) => {
                // Not where it looks in its loop, so this look is not in vain: it is known that it was made.
                let mut seen = memory.places[place].load(orders.load);
                let (mut looks, mut again) = (0, false);
                found.push(seen);
                while seen == 0 {
                    match memory.gives_up {
                        true if looks > 0 => go_round(&mut again),
                        _ => hint::spin_loop(),
                    }
                    looks = 1;
                    seen = look(place);
                }
                found.push(seen);
            }
            Step::AwaitOrTake(place, other) => loop {
                let seen = look(place);
                if seen != 0 {
                    found.push(seen);
                    break;
                }
                let taken = memory.places[other].compare_exchange(0, mine, orders.swap, Relaxed);
                // Then the look before was none in vain, either: it has come to this.
                if taken.is_ok() {
                    found.push(0);
                }
                thread::yield_now();
            },
            Step::Lock => lock(memory, &mut found, |_| {}),
            Step::LockAndAwait(place) => lock(memory, &mut found, |found| {
                found.push(wait(memory, place));
            }),
            Step::Try(place) => {
                for _ in 0..2 {
                    found.push(look(place));
                    hint::spin_loop();
                }
            }
        }
    }
    found
}

/// The thread gives the execution up if it has been here before.
fn go_round(again: &mut bool) {
    dpor::assume(!std::mem::replace(again, true));
}

fn wait(memory: &Memory, place: usize) -> usize {
    let mut again = false;
    loop {
        match memory.places[place].load(memory.orders.load) {
            0 if memory.gives_up => go_round(&mut again),
            0 => hint::spin_loop(),
            seen => break seen,
        }
    }
}

fn lock(memory: &Memory, found: &mut Vec<usize>, then: impl FnOnce(&mut Vec<usize>)) {
    let mut again = false;
    while memory.locked.swap(true, Acquire) {
        match memory.gives_up {
            true => go_round(&mut again),
            false => thread::yield_now(),
        }
    }
    found.push(memory.holders.fetch_add(1, Relaxed));
    then(found);
    memory.locked.store(false, Release);
}

/// The model of the program.
fn model(program: &Program, orders: Orders, gives_up: bool) -> Found {
    let memory = Arc::new(Memory {
        places: Default::default(),
        locked: AtomicBool::new(false),
        holders: AtomicUsize::new(0),
        orders,
        gives_up,
    });
    let thread = |(at, steps): (usize, &Vec<Step>)| {
        let (memory, steps) = (memory.clone(), steps.clone());
        thread::spawn(move || run(&steps, &memory, 10 * (at + 1)))
    };
    let threads: Vec<_> = program.iter().enumerate().map(thread).collect();
    let found = threads.into_iter().map(|it| it.join().unwrap());
    found.collect()
}

/// What an exploration has come to.
#[derive(Debug)]
enum Explored {
    /// How many executions have found what, and how many were given up.
    Passed(BTreeMap<Found, u64>, u64),
    /// What was found where all went well, and how the others have failed.
    Failed(BTreeSet<Found>, BTreeSet<String>),
}

/// Explores the program; `None` if that takes too long.
fn explore(
    program: &Program,
    orders: Orders,
    algorithm: Algorithm,
    (await_loops, gives_up): (Option<bool>, bool),
) -> Option<Explored> {
    let mut builder = Builder::new();
    (builder.algorithm, builder.await_loops) = (algorithm, await_loops);
    builder.memory = orders.memory();
    let most = match builder.memory {
        dpor::Memory::C11 => WEAK_EXECUTIONS_MAX,
        _ => EXECUTIONS_MAX,
    };
    builder.max_permutations = Some(most);
    builder.max_failures = usize::MAX;
    builder.progress = Some(false);
    builder.simplify = 0;
    let all: Arc<Mutex<BTreeSet<Found>>> = Arc::default();
    let begun = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (body, collect, counted) = (program.clone(), all.clone(), begun.clone());
    // What is given up runs on, and comes to what another execution comes to.
    let explored = builder.explore(move || {
        counted.fetch_add(1, SeqCst);
        let found = model(&body, orders, gives_up);
        collect.lock().unwrap().insert(found);
    });
    // One that has failed does not say that a limit has stopped it.
    if begun.load(SeqCst) >= most {
        return None;
    }
    match explored {
        Ok(report) if !report.complete => None,
        Ok(report) => {
            let body = program.clone();
            let found = builder.outcomes(move || model(&body, orders, gives_up));
            Some(Explored::Passed(found, report.pruned))
        }
        Err(failure) => {
            let kinds = [&*failure].into_iter().chain(failure.others());
            let kinds = kinds.map(|failure| format!("{:?}", failure.kind()));
            let kinds = kinds.collect();
            let all = std::mem::take(&mut *all.lock().unwrap());
            Some(Explored::Failed(all, kinds))
        }
    }
}

/// What is wrong with the exploration of `program` by default, where only the looks behind the
/// first one in vain leave no event; `None` if it is too large. A value that is not there yet is 0,
/// and a lock that is taken holds 1, so in each loop one look is in vain, or none. As many
/// executions find the same as where a thread that looks in vain again gives up.
fn by_default(program: &Program, orders: Orders) -> Option<Result<(), String>> {
    let explore = |how| explore(program, orders, Algorithm::Optimal, how);
    let plain = explore((Some(false), false))?;
    let proven = explore((None, false))?;
    let why = match (&plain, &proven) {
        (Explored::Passed(plain, _), Explored::Passed(proven, given_up)) => {
            let once = explore((Some(false), true))?;
            let Explored::Passed(once, _) = once else {
                return Some(Err(format!("{once:?}")));
            };
            // A loop behind a look of another place may count as one of which each look is an
            // event, and under C11 each look of a lock is one.
            let may_be_more = |step: &Step| match step {
                Step::AwaitLater(_) => true,
                Step::Lock | Step::LockAndAwait(_) => orders.memory() == dpor::Memory::C11,
                _ => false,
            };
            let may_be_more = program.iter().flatten().any(may_be_more);
            let same = once == *proven
                || may_be_more
                    && once.keys().eq(proven.keys())
                    && proven.iter().all(|(found, &times)| {
                        times >= once[found] && plain.get(found).is_some_and(|&most| times <= most)
                    });
            (!same || *given_up > 0)
                .then(|| format!("{proven:?}, {given_up} given up, but {once:?}"))
        }
        (Explored::Failed(plain, how), Explored::Failed(proven, how_else)) => {
            ((plain, how) != (proven, how_else)).then(|| {
                let missing: Vec<_> = plain.difference(proven).collect();
                let extra: Vec<_> = proven.difference(plain).collect();
                format!("{how:?} and {how_else:?}, missing {missing:?}, extra {extra:?}")
            })
        }
        _ => Some(format!("{plain:?}, but {proven:?}")),
    };
    Some(why.map_or(Ok(()), Err))
}

/// What is wrong with the exploration of `program`, also under C11 with these orderings; `None` if
/// it is too large.
fn verdict(program: &Program, weak: Orders) -> Option<Result<bool, String>> {
    if let Err(wrong) = by_default(program, Orders::STRONG)? {
        return Some(Err(format!("by default: {wrong}")));
    }
    let explore = |algorithm, awaits| explore(program, Orders::STRONG, algorithm, (awaits, false));
    let plain = explore(Algorithm::Optimal, Some(false))?;
    // Threads that wait for ever make thousands of looks, each with a graph that is larger.
    if let Explored::Passed(..) = plain
        && let Some(Err(wrong)) = by_default(program, weak)
    {
        return Some(Err(format!("{weak:?}: {wrong}")));
    }
    let awaits = explore(Algorithm::Optimal, Some(true))?;
    match (&plain, &awaits) {
        (Explored::Passed(plain, _), Explored::Passed(awaits, given_up)) => {
            if !plain.keys().eq(awaits.keys()) {
                let (plain, awaits): (BTreeSet<_>, BTreeSet<_>) =
                    (plain.keys().collect(), awaits.keys().collect());
                let missing: Vec<_> = plain.difference(&awaits).collect();
                let extra: Vec<_> = awaits.difference(&plain).collect();
                return Some(Err(format!("missing {missing:?}, extra {extra:?}")));
            }
            if let Some((found, times)) = awaits.iter().find(|(_, times)| **times != 1) {
                return Some(Err(format!("{times} executions have found {found:?}")));
            }
            if *given_up > 0 && program.iter().flatten().all(|step| step.looks_once()) {
                return Some(Err(format!("{given_up} executions were given up")));
            }
            for algorithm in [Algorithm::Source, Algorithm::SleepSets] {
                match explore(algorithm, Some(true)) {
                    Some(Explored::Passed(other, _)) if other == *awaits => {}
                    None => {}
                    other => return Some(Err(format!("{algorithm:?}: {other:?}"))),
                }
            }
            let executions: u64 = plain.values().sum();
            Some(Ok(executions > awaits.len() as u64))
        }
        (Explored::Failed(plain, how), Explored::Failed(awaits, how_else)) => {
            let same = (plain, how) == (awaits, how_else);
            let missing: Vec<_> = plain.difference(awaits).collect();
            let extra: Vec<_> = awaits.difference(plain).collect();
            let what = format!("{how:?} and {how_else:?}, missing {missing:?}, extra {extra:?}");
            Some(same.then_some(true).ok_or(what))
        }
        _ => Some(Err(format!("{plain:?}, but {awaits:?}"))),
    }
}

#[test]
fn a_loop_that_is_one_step_loses_nothing() {
    let (from, count) = (setting("DPOR_AWAITS_FROM", 0), setting("DPOR_AWAITS", 250));
    let check = |half: u64| {
        let (mut checked, mut fewer) = (0, 0);
        for seed in (from..from + count).filter(|seed| seed % 2 == half) {
            let (program, weak) = (draw(seed), Orders::draw(seed));
            match verdict(&program, weak) {
                None => {}
                Some(Ok(is_fewer)) => {
                    checked += 1;
                    fewer += u64::from(is_fewer);
                }
                Some(Err(_)) => {
                    let simpler = |program: &Program| without_one(program).collect();
                    let wrong = |program: &Program| matches!(verdict(program, weak), Some(Err(_)));
                    let program = smallest(program, simpler, wrong);
                    let why = verdict(&program, weak).map(|it| it.expect_err("it is wrong"));
                    panic!("seed {seed}: {}\n{program:#?}", why.unwrap_or_default());
                }
            }
        }
        (checked, fewer)
    };
    let [even, odd] = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| scope.spawn(move || check(half)));
        halves.map(|half| {
            half.join()
                .unwrap_or_else(|it| std::panic::resume_unwind(it))
        })
    });
    let (checked, fewer) = (even.0 + odd.0, even.1 + odd.1);
    eprintln!("{checked} programs checked, {fewer} of them wait");
    assert!(
        checked > count / 2 && fewer > count / 4,
        "{checked}, {fewer}"
    );
}
