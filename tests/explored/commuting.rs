//! Do updates that return nothing commute, and nothing else?

use std::collections::BTreeSet;

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use dpor::sync::atomic::{AtomicU32, Commuting, fence};
use dpor::{Algorithm, Builder, FailureKind, Memory, Shared, Thorough, thread};

/// The number of executions, under sequential consistency.
fn executions(f: impl Fn() + Send + Sync + 'static) -> u64 {
    let mut settings = Builder::new();
    settings.memory = Memory::Sc;
    settings.explore(f).expect("no failure").executions
}

#[test]
fn additions_of_any_number_of_threads_are_one_execution() {
    for threads in 1..=8 {
        let found = Builder::new().check(move || {
            let number = Commuting::new(0_u64);
            thread::scope(|s| {
                for _ in 0..threads {
                    s.spawn(|| number.add(1));
                }
            });
            assert_eq!(number.load(SeqCst), threads);
        });
        assert_eq!(found.executions, 1, "{threads} threads");
        assert!(found.complete);
    }
}

#[test]
fn updates_of_two_groups_are_explored_in_both_orders() {
    type Update = fn(&Commuting<u8>);
    let groups: [&[Update]; 6] = [
        &[|n| n.add(1), |n| n.sub(2)],
        &[|n| n.or(1)],
        &[|n| n.and(2)],
        &[|n| n.xor(3)],
        &[|n| n.max(4)],
        &[|n| n.min(5)],
    ];
    let all: Vec<(usize, Update)> = groups
        .iter()
        .enumerate()
        .flat_map(|(group, updates)| updates.iter().map(move |&update| (group, update)))
        .collect();
    for &(group, one) in &all {
        for &(other, another) in &all {
            let found = executions(move || {
                let number = Commuting::new(6_u8);
                thread::scope(|s| {
                    s.spawn(|| one(&number));
                    another(&number);
                });
            });
            assert_eq!(found, 1 + u64::from(group != other), "{group} and {other}");
        }
    }
}

#[test]
fn a_load_sees_each_sum_that_it_can_see() {
    let seen = Builder::new().outcomes(|| {
        let number = Commuting::new(0_i32);
        thread::scope(|s| {
            s.spawn(|| number.add(1));
            s.spawn(|| number.sub(10));
            number.load(SeqCst)
        })
    });
    // Each update is on one side of the load.
    assert_eq!(seen.values().sum::<u64>(), 4);
    assert_eq!(seen.into_keys().collect::<Vec<_>>(), [-10, -9, 0, 1]);
}

#[test]
fn each_method_does_what_its_name_says_also_outside_of_a_model() {
    let ends = || {
        let number = Commuting::new(12_i16);
        number.add(3);
        number.sub(20);
        number.max(-7);
        number.min(-6);
        number.or(1);
        number.xor(2);
        number.and(0x7f);
        assert_eq!(number.swap(5, SeqCst), ((((-6_i16) | 1) ^ 2) & 0x7f));
        number.store(6, SeqCst);
        assert_eq!(format!("{number:?}"), "Commuting(6)");
        number.into_inner()
    };
    assert_eq!(ends(), 6);
    assert_eq!(executions(move || assert_eq!(ends(), 6)), 1);
    let wraps = Commuting::new(0_u8);
    wraps.sub(1);
    assert_eq!(wraps.load(SeqCst), 255);
}

/// Plain memory that threads share.
#[derive(Default)]
struct Plain(UnsafeCell<u32>);

// SAFETY: whether accesses are ordered is what the tests ask; the model runs one thread at a time.
unsafe impl Sync for Plain {}

impl Plain {
    fn get(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|value| unsafe { *value })
    }

    fn set(&self, new: u32) {
        // SAFETY: as above.
        self.0.with_mut(|value| unsafe { *value = new });
    }
}

/// The failure of two threads with plain memory: the first one uses it and updates a number, and
/// the second one does `second`.
fn race(
    second: impl Fn(&Commuting<u32>, &Plain) + Copy + Send + Sync + 'static,
) -> Option<FailureKind> {
    let mut settings = Builder::new();
    settings.memory = Memory::Sc;
    settings.thorough = Thorough::Off;
    let result = settings.explore(move || {
        let (number, plain) = (Commuting::new(0), Plain::default());
        thread::scope(|s| {
            s.spawn(|| {
                plain.set(1);
                number.add(1);
            });
            second(&number, &plain);
        });
    });
    result.err().map(|failure| failure.kind())
}

#[test]
fn an_update_releases_and_never_acquires() {
    let found = race(|number, plain| {
        if number.load(Acquire) == 1 {
            assert_eq!(plain.get(), 1);
        }
    });
    assert_eq!(found, None, "an acquire load learns of the update");
    let relaxed = race(|number, plain| {
        if number.load(Relaxed) == 1 {
            plain.get();
        }
    });
    assert_eq!(relaxed, Some(FailureKind::DataRace));
    let updated = race(|number, plain| {
        number.add(1);
        plain.set(2);
    });
    assert_eq!(updated, Some(FailureKind::DataRace));
    let fenced = race(|number, plain| {
        number.add(1);
        fence(Acquire);
        plain.set(2);
    });
    assert_eq!(fenced, Some(FailureKind::DataRace));
}

#[test]
fn a_load_behind_several_updates_learns_of_all_of_them() {
    let report = Builder::new().check(|| {
        let (number, cells) = (Commuting::new(0), [Plain::default(), Plain::default()]);
        thread::scope(|s| {
            for (cell, by) in cells.iter().zip([1, 2]) {
                let number = &number;
                s.spawn(move || {
                    cell.set(by);
                    number.add(by);
                });
            }
            if number.load(Acquire) == 3 {
                assert_eq!(cells.each_ref().map(Plain::get), [1, 2]);
            }
        });
    });
    assert!(report.complete);
}

#[test]
fn under_c11_an_update_is_a_read_modify_write_in_every_order() {
    let explore = |memory| {
        let mut settings = Builder::new();
        settings.memory = memory;
        let seen = settings.outcomes(|| {
            let (number, flag) = (Commuting::new(0), AtomicU32::new(0));
            thread::scope(|s| {
                s.spawn(|| {
                    flag.store(1, Relaxed);
                    number.add(1);
                });
                s.spawn(|| number.add(2));
                (number.load(Acquire), flag.load(Relaxed))
            })
        });
        seen.into_keys().collect::<BTreeSet<_>>()
    };
    let (sc, c11) = (explore(Memory::Sc), explore(Memory::C11));
    // With an addition found, what came before is known, under both models.
    let all = [(0, 0), (0, 1), (1, 1), (2, 0), (2, 1), (3, 1)];
    assert_eq!(sc, BTreeSet::from(all));
    assert_eq!(c11, sc);
}

/// The numbers of executions of two threads that make these steps on one shared list.
fn of_two(one: fn(&Shared<Vec<u8>>), other: fn(&Shared<Vec<u8>>)) -> [u64; 2] {
    [Algorithm::Optimal, Algorithm::Parsimonious].map(|algorithm| {
        let mut settings = Builder::new();
        (settings.algorithm, settings.memory) = (algorithm, Memory::Sc);
        let report = settings.check(move || {
            let list = Shared::new(vec![1, 2]);
            thread::scope(|s| {
                s.spawn(|| one(&list));
                other(&list);
            });
        });
        assert!(report.complete, "{report}");
        report.executions
    })
}

#[test]
fn updates_of_a_shared_value_commute_with_those_of_their_tag_alone() {
    type Step = fn(&Shared<Vec<u8>>);
    // The first two have one tag.
    let steps: [Step; 5] = [
        |list| list.update_commuting(0, |all| all[0] += 1),
        |list| list.update_commuting(0, |all| all[0] += 2),
        |list| list.update_commuting(13, |all| all[1] += 1),
        |list| list.update(|all| all[0] += 1),
        |list| _ = list.read(|all| all[0]),
    ];
    for (at, &one) in steps.iter().enumerate() {
        for (beside, &other) in steps.iter().enumerate() {
            let commute = at < 2 && beside < 2 || at == 2 && beside == 2 || at == 4 && beside == 4;
            let expected = if commute { 1 } else { 2 };
            assert_eq!(of_two(one, other), [expected; 2], "{at} and {beside}");
        }
    }
}

#[test]
fn n_updates_of_a_shared_value_are_one_execution_for_any_n() {
    for threads in 1..=8_u32 {
        let report = Builder::new().check(move || {
            let all = Shared::new(BTreeSet::new());
            thread::scope(|s| {
                for number in 0..threads {
                    let all = &all;
                    s.spawn(move || all.update_commuting(1, move |all| _ = all.insert(number)));
                }
            });
            assert_eq!(all.read(|all| all.len()), threads as usize);
        });
        assert_eq!((report.executions, report.complete), (1, true), "{threads}");
    }
}

#[test]
fn updates_that_do_not_commute_are_a_failure_with_both_places() {
    let failure = Builder::new().explore(|| {
        let list = Shared::new(Vec::new());
        thread::scope(|s| {
            s.spawn(|| list.update_commuting(0, |all| all.push(1)));
            list.update_commuting(0, |all| all.push(2));
        });
    });
    let text = failure.expect_err("the order counts").to_string();
    assert!(!text.contains("does not decide alone"), "{text}");
    assert!(
        text.contains("with tag 0 do not commute: the one at "),
        "{text}"
    );
    assert!(text.matches("commuting.rs:").count() >= 2, "{text}");
    // With tags of their own they are explored in both orders.
    let outcomes = Builder::new().outcomes(|| {
        let list = Shared::new(Vec::new());
        thread::scope(|s| {
            s.spawn(|| list.update_commuting(0, |all| all.push(1)));
            list.update_commuting(1, |all| all.push(2));
        });
        list.read(Vec::clone)
    });
    assert_eq!(outcomes.into_keys().collect::<Vec<_>>(), [[1, 2], [2, 1]]);
}

/// An update tells a later one with the same tag nothing, and tells a reader.
#[test]
fn a_shared_update_releases_and_does_not_acquire() {
    fn cell_behind(acquires: fn(&Shared<u8>) -> u8) -> Result<u64, FailureKind> {
        let explored = Builder::new().explore(move || {
            let (cell, sum) = (Plain::default(), Shared::new(0));
            thread::scope(|s| {
                s.spawn(|| {
                    cell.set(1);
                    sum.update_commuting(0, |sum| *sum += 1);
                });
                if acquires(&sum) == 1 {
                    cell.get();
                }
            });
        });
        let executions = explored.map(|report| report.executions);
        executions.map_err(|failure| failure.kind())
    }
    assert_eq!(cell_behind(|sum| sum.read(|&sum| sum)), Ok(2));
    let by_update = cell_behind(|sum| {
        sum.update_commuting(0, |sum| *sum += 1);
        1
    });
    assert_eq!(by_update, Err(FailureKind::DataRace));
}

#[test]
#[should_panic = "tag 14: the tags of a `Shared` are below 14"]
fn a_tag_that_is_too_large_is_an_error() {
    Shared::new(0).update_commuting(14, |_| ());
}
