//! Does the JSON of each kind of failure have everything that is known about it?

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::thread;
use serde_json::Value;

use super::programs::{Slot, held_for_ever, unordered_flag, used_after_free};
use super::{event, failure, list, parsed};

#[test]
fn a_data_race_has_both_accesses_and_the_events_that_were_too_weak() {
    let execution = parsed(&failure(unordered_flag));
    let outcome = &execution["outcome"];
    assert_eq!(outcome["kind"], "data_race");
    let race = &outcome["data_race"];
    assert_eq!(
        (&race["first"]["thread"], &race["first"]["effect"]),
        (&1.into(), &"write".into())
    );
    assert_eq!(
        (&race["second"]["thread"], &race["second"]["effect"]),
        (&0.into(), &"read".into())
    );
    let load = event(&execution, "ready = true");
    assert_eq!(race["second"]["after"], load["number"]);
    let weak = serde_json::json!({ "first": load["reads_from"], "second": load["number"] });
    assert_eq!(race["weak"], weak);
    assert_eq!(
        (&race["lasts_through"], &race["goes_on"]),
        (&().into(), &false.into())
    );
}

#[test]
fn an_access_that_lasts_says_through_which_event_or_that_it_goes_on() {
    let raced = |joins: bool| {
        let execution = parsed(&failure(move || {
            let slot = Arc::new(Slot {
                data: UnsafeCell::new(0),
                ready: AtomicBool::new(false),
            });
            let theirs = slot.clone();
            let mut other = Some(thread::spawn(move || {
                if theirs.ready.load(Relaxed) {
                    // SAFETY: the model stops before an access that is not ordered with another one.
                    theirs.data.with_mut(|data| unsafe { *data = 1 });
                }
            }));
            slot.data.with_mut(|_| {
                slot.ready.store(true, Relaxed);
                if joins && let Some(other) = other.take() {
                    other.join().unwrap();
                }
            });
            if let Some(other) = other {
                other.join().unwrap();
            }
        }));
        let race = execution["outcome"]["data_race"].clone();
        (race, event(&execution, "ready := true")["number"].clone())
    };
    let (race, store) = raced(false);
    assert_eq!(
        (&race["lasts_through"], &race["goes_on"]),
        (&store, &false.into())
    );
    let (race, _) = raced(true);
    assert_eq!(
        (&race["lasts_through"], &race["goes_on"]),
        (&().into(), &true.into())
    );
}

#[test]
fn a_wrong_use_of_memory_has_the_block_and_who_freed_it() {
    let failure = failure(used_after_free);
    let execution = parsed(&failure);
    let outcome = &execution["outcome"];
    assert_eq!(
        (&outcome["kind"], &outcome["thread"]),
        (&"use_after_free".into(), &1.into())
    );
    let block = &outcome["block"];
    assert_eq!((&block["size"], &block["thread"]), (&8.into(), &0.into()));
    let place = block["allocated"]
        .as_str()
        .expect("tests have debug information");
    assert!(
        place.starts_with("tests/reports/pictures/programs.rs:"),
        "{place}"
    );
    let misuse = &outcome["misuse"];
    assert_eq!(
        (&misuse["thread"], &misuse["freed_by"]),
        (&1.into(), &0.into())
    );
    let words = misuse["words"].as_str().expect("text");
    assert!(words.starts_with("load "), "{words}");
    assert!(failure.dot().contains("gone -> use ["), "{}", failure.dot());
}

#[test]
fn a_block_that_is_left_has_its_size_and_its_place() {
    let execution = parsed(&failure(|| {
        let left = Box::leak(Box::new(AtomicUsize::new(0)));
        left.store(1, SeqCst);
    }));
    let outcome = &execution["outcome"];
    assert_eq!(outcome["kind"], "leak");
    let blocks = list(outcome, "leaked_blocks");
    assert_eq!(blocks.len(), 1);
    assert_eq!(
        (&blocks[0]["size"], &blocks[0]["align"]),
        (&8.into(), &8.into())
    );
    assert_eq!(blocks[0], outcome["block"]);
}

#[test]
fn a_deadlock_has_the_threads_that_wait_and_who_holds_what() {
    let execution = parsed(&failure(held_for_ever));
    let waiting = list(&execution["outcome"], "waiting");
    assert_eq!(waiting.len(), 2);
    let main = waiting
        .iter()
        .find(|it| it["thread"] == 0)
        .expect("main waits");
    assert_eq!(
        (&main["operation"], &main["held_by"]),
        (&"join".into(), &Value::Null)
    );
    let child = waiting
        .iter()
        .find(|it| it["thread"] == 1)
        .expect("main.1 waits");
    assert_eq!(
        (&child["operation"], &child["held_by"]),
        (&"lock".into(), &0.into())
    );
    let object = child["object"].as_u64().expect("a lock") as usize;
    assert_eq!(list(&execution, "objects")[object]["kind"], "Mutex");
}
