//! Do operations on different keys commute, and nothing that does not?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dpor::cell::UnsafeCell;
use dpor::collections::{KeyedMap, KeyedSet};
use dpor::engine::{Access, Relation};
use dpor::{Algorithm, Builder, FailureKind, Memory, thread};

/// An operation on a map with numbers for keys and values.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Step {
    Get(u8),
    Insert(u8, u8),
    Replace(u8, u8),
    GetOrInsert(u8, u8),
    Remove(u8),
    Len,
    Keys,
    Values,
    Clear,
}

/// What an operation returns, as numbers.
type Found = Vec<u8>;

fn one(value: Option<u8>) -> Found {
    value.into_iter().collect()
}

fn on_map(map: &KeyedMap<u8, u8>, step: Step) -> Found {
    match step {
        Step::Get(key) => one(map.get(&key)),
        Step::Insert(key, value) => one(map.insert(key, value)),
        Step::Replace(key, value) => one(map.replace(&key, value)),
        Step::GetOrInsert(key, value) => vec![map.get_or_insert(key, value)],
        Step::Remove(key) => one(map.remove(&key)),
        Step::Len => vec![map.len() as u8],
        Step::Keys => map.keys(),
        Step::Values => map.iter().flat_map(|(key, value)| [key, value]).collect(),
        Step::Clear => {
            map.clear();
            vec![]
        }
    }
}

/// The same on a map of one thread.
fn on_reference(map: &mut BTreeMap<u8, u8>, step: Step) -> Found {
    match step {
        Step::Get(key) => one(map.get(&key).copied()),
        Step::Insert(key, value) => one(map.insert(key, value)),
        Step::Replace(key, value) => one(map
            .get_mut(&key)
            .map(|entry| std::mem::replace(entry, value))),
        Step::GetOrInsert(key, value) => vec![*map.entry(key).or_insert(value)],
        Step::Remove(key) => one(map.remove(&key)),
        Step::Len => vec![map.len() as u8],
        Step::Keys => map.keys().copied().collect(),
        Step::Values => map.iter().flat_map(|(&key, &value)| [key, value]).collect(),
        Step::Clear => {
            map.clear();
            vec![]
        }
    }
}

/// Whether two operations may not be swapped, as the docs of `dpor::collections` have it.
fn conflict(a: Step, b: Step) -> bool {
    let key = |step| match step {
        Step::Get(key)
        | Step::Insert(key, _)
        | Step::Replace(key, _)
        | Step::GetOrInsert(key, _)
        | Step::Remove(key) => Some(key),
        _ => None,
    };
    let shapes = |step| {
        matches!(
            step,
            Step::Insert(..) | Step::GetOrInsert(..) | Step::Remove(_)
        )
    };
    let changes = |step| shapes(step) || matches!(step, Step::Replace(..));
    let one_way = |a, b| match a {
        Step::Clear => true,
        Step::Values => changes(b),
        Step::Len | Step::Keys => shapes(b),
        _ => key(a).is_some() && key(a) == key(b) && (changes(a) || changes(b)),
    };
    one_way(a, b) || one_way(b, a)
}

/// Runs the program in this map: what each thread finds, and what is left.
fn run(program: &[Vec<Step>]) -> (Vec<Vec<Found>>, Found) {
    let map: KeyedMap<u8, u8> = [(1, 1)].into_iter().collect();
    let found = thread::scope(|s| {
        let threads: Vec<_> = program
            .iter()
            .map(|steps| s.spawn(|| steps.iter().map(|&step| on_map(&map, step)).collect()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    (found, on_map(&map, Step::Values))
}

/// What executions find, and what they leave.
type Outcomes = BTreeSet<(Vec<Vec<Found>>, Found)>;

/// The number of traces, and their outcomes, by all interleavings.
fn brute_force(program: &[Vec<Step>]) -> (usize, Outcomes) {
    let (mut traces, mut outcomes) = (BTreeSet::new(), BTreeSet::new());
    let mut stack = vec![Vec::new()];
    while let Some(order) = stack.pop() {
        let made = |thread: usize| order.iter().filter(|&&it| it == thread).count();
        let mut is_whole = true;
        for (thread, steps) in program.iter().enumerate() {
            if made(thread) < steps.len() {
                is_whole = false;
                let mut longer = order.clone();
                longer.push(thread);
                stack.push(longer);
            }
        }
        if !is_whole {
            continue;
        }
        let mut map = BTreeMap::from([(1, 1)]);
        let mut found = vec![Vec::new(); program.len()];
        let mut events = Vec::new();
        for &thread in &order {
            let step = program[thread][found[thread].len()];
            events.push((thread, found[thread].len(), step));
            found[thread].push(on_reference(&mut map, step));
        }
        // A trace is the set of pairs of conflicting events, each in its order.
        let mut pairs = BTreeSet::new();
        for (at, &(thread, index, step)) in events.iter().enumerate() {
            for &(other, later, behind) in &events[at + 1..] {
                if other != thread && conflict(step, behind) {
                    pairs.insert(((thread, index), (other, later)));
                }
            }
        }
        traces.insert(pairs);
        outcomes.insert((found, on_reference(&mut map, Step::Values)));
    }
    (traces.len(), outcomes)
}

/// Explores the program: the number of executions, and the outcomes.
fn explore(program: &[Vec<Step>], settings: &Builder) -> (usize, Outcomes) {
    let program = program.to_vec();
    let outcomes = settings.outcomes(move || run(&program));
    let executions = outcomes.values().sum::<u64>() as usize;
    (executions, outcomes.into_keys().collect())
}

fn executions(program: &[Vec<Step>]) -> usize {
    let found = explore(program, &Builder::new());
    assert_eq!(found, brute_force(program), "{program:?}");
    found.0
}

#[test]
fn different_keys_are_one_trace_and_the_same_key_two() {
    let insert = |key| vec![Step::Insert(key, 7)];
    assert_eq!(executions(&[insert(2), insert(3)]), 1);
    assert_eq!(executions(&[insert(2), insert(2)]), 2);
    for threads in 1..=5 {
        let all: Vec<_> = (0..threads).map(|thread| insert(10 + thread)).collect();
        assert_eq!(executions(&all), 1, "{threads} threads");
    }
}

#[test]
fn an_iteration_or_the_length_beside_an_insertion_is_two() {
    let insert = vec![Step::Insert(2, 7)];
    for look in [Step::Len, Step::Keys, Step::Values] {
        assert_eq!(executions(&[insert.clone(), vec![look]]), 2, "{look:?}");
    }
    // Key 1 has a value.
    let replace = vec![Step::Replace(1, 7)];
    assert_eq!(executions(&[replace.clone(), vec![Step::Len]]), 1);
    assert_eq!(executions(&[replace.clone(), vec![Step::Keys]]), 1);
    assert_eq!(executions(&[replace, vec![Step::Values]]), 2);
    let gets = [
        vec![Step::Get(1)],
        vec![Step::Get(1)],
        vec![Step::Remove(2)],
    ];
    assert_eq!(executions(&gets), 1);
    assert_eq!(executions(&[vec![Step::Clear], vec![Step::Get(9)]]), 2);
}

#[test]
fn random_programs_are_explored_as_by_brute_force() {
    let mut seed: u64 = 9;
    let mut below = move |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    let mut traces = 0;
    for nth in 0..250 {
        let threads = 2 + below(2);
        let program: Vec<Vec<Step>> = (0..threads)
            .map(|_| {
                let steps = 1 + below(5 - threads);
                let any = |_| {
                    let (key, value) = (1 + below(2) as u8, below(3) as u8);
                    match below(11) {
                        0 | 1 => Step::Get(key),
                        2 | 3 => Step::Insert(key, value),
                        4 => Step::Replace(key, value),
                        5 => Step::GetOrInsert(key, value),
                        6 => Step::Remove(key),
                        7 => Step::Len,
                        8 => Step::Keys,
                        9 => Step::Values,
                        _ => Step::Clear,
                    }
                };
                (0..steps).map(any).collect()
            })
            .collect();
        let oracle = brute_force(&program);
        traces += oracle.0;
        let algorithm = match nth % 3 {
            0 => Algorithm::Optimal,
            1 => Algorithm::Parsimonious,
            _ => Algorithm::Source,
        };
        let mut settings = Builder::new();
        settings.algorithm = algorithm;
        assert_eq!(
            explore(&program, &settings),
            oracle,
            "{algorithm:?}: {program:?}"
        );
        // Under C11 the map is an object that synchronises, as a lock.
        let mut weak = Builder::new();
        weak.memory = Memory::C11;
        assert_eq!(explore(&program, &weak), oracle, "C11: {program:?}");
    }
    assert!(traces > 1_000, "{traces}");
}

#[test]
fn a_check_and_the_insertion_behind_it_are_two_steps() {
    let register = |map: &KeyedMap<&str, u32>, id| {
        if !map.contains_key("name") {
            map.insert("name", id);
            return true;
        }
        false
    };
    let broken = Builder::new().explore(move || {
        let map = KeyedMap::new();
        let both = thread::scope(|s| {
            let other = s.spawn(|| register(&map, 1));
            register(&map, 2) & other.join().unwrap()
        });
        assert!(!both, "both have registered the name");
    });
    let failure = broken.expect_err("the bug is found");
    assert_eq!(failure.kind(), FailureKind::Panic);
    assert!(
        failure
            .to_string()
            .contains("both have registered the name")
    );
    let fixed = Builder::new().explore(|| {
        let map = KeyedMap::new();
        let won = thread::scope(|s| {
            let other = s.spawn(|| map.get_or_insert("name", 1) == 1);
            (map.get_or_insert("name", 2) == 2) as u32 + other.join().unwrap() as u32
        });
        assert_eq!(won, 1);
    });
    assert_eq!(fixed.expect("no bug is left").executions, 2);
}

/// Plain memory that threads share.
struct Plain(UnsafeCell<i32>);

// SAFETY: whether accesses are ordered is what the test asks; the model runs one thread at a time.
unsafe impl Sync for Plain {}

/// The failure of two threads of which one writes plain memory and inserts key 1 then, and the
/// other reads it if it finds this key.
fn publish(looks_at: u8) -> Option<FailureKind> {
    let result = Builder::new().explore(move || {
        let (map, plain) = (KeyedMap::new(), Plain(UnsafeCell::new(0)));
        map.insert(2, ());
        let shared = &plain;
        thread::scope(|s| {
            s.spawn(|| {
                // SAFETY: as above.
                shared.0.with_mut(|value| unsafe { *value = 1 });
                map.insert(1, ());
            });
            s.spawn(|| {
                if map.get(&looks_at).is_some() {
                    // SAFETY: as above.
                    shared.0.with(|value| unsafe { *value });
                }
            });
        });
    });
    result.err().map(|failure| failure.kind())
}

#[test]
fn what_was_done_before_an_insertion_is_known_to_a_thread_that_finds_the_key() {
    assert_eq!(publish(1), None);
    // Another key says nothing.
    assert_eq!(publish(2), Some(FailureKind::DataRace));
}

#[test]
fn values_that_are_operations_themselves_are_cloned_and_dropped_outside_of_the_map() {
    let report = Builder::new().check(|| {
        use dpor::sync::Arc;
        use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
        let map: Arc<KeyedMap<u8, Arc<AtomicUsize>>> = Arc::default();
        let count = |map: &KeyedMap<u8, Arc<AtomicUsize>>| {
            let counter = map.get_or_insert(0, Arc::new(AtomicUsize::new(0)));
            counter.fetch_add(1, SeqCst);
        };
        let theirs = map.clone();
        let other = thread::spawn(move || count(&theirs));
        count(&map);
        other.join().unwrap();
        assert_eq!(map.get(&0).unwrap().load(SeqCst), 2);
    });
    assert!(report.complete);
}

#[test]
fn a_set_has_each_key_once_whatever_the_order() {
    let report = Builder::new().check(|| {
        let set = KeyedSet::new();
        let added = thread::scope(|s| {
            let other = s.spawn(|| [set.insert(1), set.insert(2)]);
            let mine = [set.insert(1), set.insert(3)];
            let theirs = other.join().unwrap();
            assert!(mine[0] != theirs[0]);
            mine.into_iter().chain(theirs).filter(|&it| it).count()
        });
        assert_eq!((added, set.len()), (3, 3));
        assert_eq!(set.iter().collect::<Vec<_>>(), [1, 2, 3]);
        assert!(set.remove(&2) && !set.contains(&2));
        set.clear();
        assert!(set.is_empty());
    });
    assert_eq!(report.executions, 2);
}

#[test]
fn outside_of_a_model_they_are_ordinary_collections() {
    let map = KeyedMap::new();
    std::thread::scope(|s| {
        for key in 0..4 {
            let map = &map;
            s.spawn(move || map.insert(key, key * 2));
        }
    });
    assert_eq!(map.values(), [0, 2, 4, 6]);
    assert_eq!(map.replace(&1, 9), Some(2));
    assert_eq!(map.replace(&7, 9), None);
    assert_eq!(map.iter().nth(1), Some((1, 9)));
}

#[test]
fn a_type_of_ones_own_says_what_its_operations_touch() {
    struct Slots([AtomicU64; 2]);
    let count = |first: Access, second: Access| {
        let report = Builder::new().check(move || {
            let slots = Slots([AtomicU64::new(0), AtomicU64::new(0)]);
            thread::scope(|s| {
                s.spawn(|| {
                    dpor::access(&slots, first);
                    slots.0[0].fetch_add(1, Relaxed);
                });
                dpor::access(&slots, second);
                slots.0[1].fetch_add(1, Relaxed);
            });
        });
        report.executions
    };
    assert_eq!(count(Access::KeyWrite(0), Access::KeyWrite(1)), 1);
    assert_eq!(count(Access::KeyWrite(0), Access::KeyWrite(0)), 2);
    assert_eq!(count(Access::WeakWrite, Access::WeakWrite), 1);
    assert_eq!(count(Access::Read, Access::WeakWrite), 2);
    let deposits = Builder::new().check(|| {
        // 0: deposit; 1: read the balance.
        let relation = Relation::new(2, &[(0, 1)]);
        let account = AtomicU64::new(0);
        let deposit = || {
            dpor::access_in(&account, &relation, 0);
            account.fetch_add(1, Relaxed);
        };
        thread::scope(|s| {
            s.spawn(deposit);
            s.spawn(deposit);
            dpor::access_in(&account, &relation, 1);
            account.load(Relaxed);
        });
    });
    // The reader comes before, between or behind the deposits: each deposit on one side of it.
    assert_eq!(deposits.executions, 4);
}
