//! Is the sum of all tasks the whole exploration?

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Failure;
use crate::config::{Builder, Memory};
use crate::exploration::workers::tests::{MODELS, Model, folder, settings};
use crate::verdict::report::Report;

/// The number behind this name in a result.
fn number(result: &str, name: &str) -> u64 {
    let behind = result.split(&format!("\"{name}\":")).nth(1);
    let behind = behind.expect("the field is there");
    let end = behind.find([',', '}']).expect("more follows");
    behind[..end].parse().expect("a number")
}

/// The names of the further tasks in a result.
fn made(result: &str) -> Vec<String> {
    let list = result.split("\"tasks\":[").nth(1).expect("a list");
    let list = list.split(']').next().expect("an end");
    let names = list.split(',').filter(|name| !name.is_empty());
    names
        .map(|name| name.trim_matches('"').to_owned())
        .collect()
}

/// Explores at one place, because a task belongs to the place of its model.
fn explored(settings: &Builder, model: Model) -> Result<Report, Box<Failure>> {
    settings.explore(model)
}

fn explore(task: &Path, result: &Path, executions: u64, model: Model) -> String {
    let of_task = Builder {
        task: Some(task.to_owned()),
        result: Some(result.to_owned()),
        task_executions: executions,
        memory: Memory::Sc,
        workers: None,
        ..settings(1)
    };
    // A failure is in the result.
    let _ = explored(&of_task, model);
    let text = fs::read_to_string(result).expect("a result");
    let (told, sum) = text.trim_end().rsplit_once('\n').expect("two lines");
    let expected = crate::exploration::checkpoint_file::fnv(told.as_bytes());
    assert_eq!(sum, format!("{expected:016x}"));
    told.to_owned()
}

#[test]
fn the_sum_of_all_tasks_is_the_whole() {
    for (name, model) in MODELS {
        let sc = Builder {
            memory: Memory::Sc,
            ..settings(1)
        };
        let whole = sc.explore(model);
        let folder = folder("tasks");
        let result = folder.join("result.json");
        // Each task with the executions that come before it, in the order of one process.
        let mut waiting = vec![std::path::PathBuf::from("root")];
        let (mut executions, mut events, mut tasks) = (0, 0, 0);
        let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
        let mut failed = None;
        while let Some(task) = waiting.pop() {
            let first = explore(&task, &result, 25, model);
            if tasks % 3 == 0 {
                let again = explore(&task, &result, 25, model);
                // A report has the number of the model among those of the test.
                let told = |text: &str| text.split("\"failure\":{").next().map(str::to_owned);
                assert_eq!(told(&again), told(&first), "{name}: a task has one result");
            }
            let told = first;
            tasks += 1;
            executions += number(&told, "executions");
            events += number(&told, "events");
            if told.contains("\"verdict\":\"failed\"") {
                failed = Some(told);
                break;
            }
            if let Ok(whole) = &whole {
                for outcome in whole.outcomes.keys() {
                    let text = format!("\"{outcome}\":");
                    if told.contains(&text) {
                        *outcomes.entry(outcome.clone()).or_default() += number(&told, outcome);
                    }
                }
            }
            let made = made(&told);
            waiting.extend(made.iter().rev().map(|task| folder.join(task)));
        }
        match whole {
            Ok(whole) => {
                assert!(failed.is_none(), "{name}");
                assert_eq!(
                    (executions, events),
                    (whole.executions, whole.events),
                    "{name}"
                );
                assert_eq!(outcomes, whole.outcomes, "{name}");
                assert!(tasks > 1 || whole.executions < 25, "{name}: {tasks} tasks");
            }
            Err(failure) => {
                let told = failed.expect("it fails");
                assert_eq!(executions, failure.executions, "{name}");
                assert!(told.contains(&format!("\"schedule\":\"{}\"", failure.schedule())));
            }
        }
        fs::remove_dir_all(folder).expect("it is there");
    }
}

#[test]
fn what_is_no_task_of_this_model_is_refused() {
    let folder = folder("refused");
    let result = folder.join("result.json");
    let (_, first) = MODELS[0];
    let made = made(&explore(Path::new("root"), &result, 25, first));
    let task = folder.join(&made[0]);
    let refused = |settings: Builder| {
        let explored = std::panic::catch_unwind(|| explored(&settings, first));
        let payload = explored.expect_err("it is refused");
        let text = payload.downcast_ref::<String>().cloned();
        text.unwrap_or_default()
    };
    let of = |task: &Path| Builder {
        task: Some(task.to_owned()),
        result: Some(result.clone()),
        memory: Memory::Sc,
        workers: None,
        ..settings(1)
    };
    let other = Builder {
        spurious_wakeups: 1,
        ..of(&task)
    };
    let told = refused(other);
    assert!(
        told.contains("(DPOR_TASK) was written with the setting"),
        "{told}"
    );
    let mut bytes = fs::read(&task).expect("a task");
    let end = bytes.len() - 9;
    bytes[end] ^= 1;
    fs::write(&task, bytes).expect("a task");
    let told = refused(of(&task));
    assert!(told.contains("is damaged"), "{told}");
    let told = refused(of(&folder.join("none.task")));
    assert!(told.contains("is no file"), "{told}");
    let told = refused(Builder {
        result: None,
        ..of(&task)
    });
    assert!(told.contains("its result has no file"), "{told}");
    let told = refused(Builder {
        memory: Memory::C11,
        ..of(&task)
    });
    assert!(told.contains("the exploration has no tasks"), "{told}");
    fs::remove_dir_all(folder).expect("it is there");
}
