//! Are all parts together the whole exploration?

use std::collections::BTreeMap;

use crate::config::{Builder, Memory, Shard};
use crate::exploration::workers::tests::{MODELS, Model, folder, settings, waits, weak};
use crate::verdict::report::{Report, Verdict};
use crate::verdict::weak::WeakMemory;

fn parts(settings: &Builder, of: usize, model: Model) -> Vec<Report> {
    let part = |index| {
        let part = Builder {
            shard: Shard::new(index, of),
            ..settings.clone()
        };
        part.explore(model).expect("it passes")
    };
    (1..=of).map(part).collect()
}

/// The executions, events and outcomes of all these parts together.
fn sum(reports: &[Report]) -> (u64, u64, BTreeMap<String, u64>) {
    let mut sum = (0, 0, BTreeMap::new());
    for report in reports {
        sum.0 += report.executions;
        sum.1 += report.events;
        for (outcome, executions) in &report.outcomes {
            *sum.2.entry(outcome.clone()).or_default() += executions;
        }
    }
    sum
}

#[test]
fn all_parts_together_are_the_whole() {
    let sc = Builder {
        memory: Memory::Sc,
        ..settings(1)
    };
    for (name, model) in MODELS {
        let Ok(whole) = sc.explore(model) else {
            continue;
        };
        let expected = sum(std::slice::from_ref(&whole));
        for of in [1, 2, 5, 8] {
            for workers in [None, Some(3)] {
                let of_part = Builder {
                    workers,
                    ..sc.clone()
                };
                let all = parts(&of_part, of, model);
                if all.iter().all(|part| part.verdict == Verdict::Complete) {
                    assert!(whole.events < 1000, "{name} has parts");
                    continue;
                }
                for (at, part) in all.iter().enumerate() {
                    let shard = Shard::new(at + 1, of).expect("it exists");
                    assert_eq!(part.verdict, Verdict::Shard(shard), "{name}");
                }
                assert_eq!(sum(&all), expected, "{name}, {of} parts, {workers:?}");
                let most = all.iter().map(|part| part.executions).max();
                println!(
                    "{name}, {of} parts: the largest one has {most:?} of {} executions",
                    whole.executions
                );
            }
        }
    }
}

#[test]
fn a_failure_is_in_a_part() {
    for (name, model) in MODELS {
        let Err(whole) = settings(1).explore(model) else {
            continue;
        };
        for of in [2, 5] {
            let failed = |index| {
                let part = Builder {
                    shard: Shard::new(index, of),
                    ..settings(1)
                };
                part.explore(model).err()
            };
            let failures: Vec<_> = (1..=of).filter_map(failed).collect();
            assert!(!failures.is_empty(), "{name}");
            let kinds = failures.iter().all(|it| it.kind() == whole.kind());
            assert!(kinds, "{name}");
        }
    }
}

#[test]
fn a_part_that_finds_weak_behaviour_explores_it() {
    let expected = settings(1).explore(weak).expect("it passes").weak;
    assert!(matches!(expected, WeakMemory::Explored { .. }));
    let all = parts(&settings(1), 3, weak);
    let explored = |part: &&Report| matches!(part.weak, WeakMemory::Explored { .. });
    assert!(all.iter().filter(explored).count() > 0);
    assert!(all.iter().all(|part| part.weak != WeakMemory::Unasked));
    let sc = Builder {
        memory: Memory::Sc,
        ..settings(1)
    };
    let whole = sc.explore(weak).expect("it passes");
    assert_eq!(sum(&all).0, whole.executions);
}

#[test]
fn a_part_is_resumed() {
    let folder = folder("shards");
    let whole = settings(1).explore(waits).expect("it passes");
    let mut executions = 0;
    for index in 1..=3 {
        let file = folder.join(format!("{index}"));
        let part = Builder {
            shard: Shard::new(index, 3),
            checkpoint_file: Some(file.clone()),
            max_permutations: Some(60),
            ..settings(1)
        };
        for times in 0.. {
            let report = part.explore(waits).expect("it passes");
            if !file.exists() {
                assert_eq!(report.verdict, Verdict::Shard(part.shard.expect("set")));
                executions += report.executions;
                break;
            }
            assert!(times < 100, "it comes to its end");
        }
    }
    assert_eq!(executions, whole.executions);
    std::fs::remove_dir_all(folder).expect("it is there");
}
