//! Does each event name those that come before it, and the one that let it happen?

use dpor::sync::{Arc, Barrier, Condvar, Mutex, RwLock, mpsc};
use dpor::thread;
use serde_json::Value;

use super::programs::lost_update;
use super::support::bugs::BUGS;
use super::{event, failure, list, parsed};

#[test]
fn direct_predecessors_and_clocks_are_the_same_order() {
    for (_, bug, _) in BUGS {
        check_order(&parsed(&failure(bug)));
    }
}

fn check_order(execution: &Value) {
    let events = list(execution, "events");
    // What the direct predecessors reach, going backwards.
    let mut reached: Vec<Vec<usize>> = Vec::new();
    for event in events {
        let mut all: Vec<usize> = Vec::new();
        // What is later cannot be reached from what is earlier, so this order finds what is not direct.
        for before in list(event, "after").iter().rev() {
            let before = before.as_u64().expect("a number") as usize;
            assert!(!all.contains(&before), "{before} is not direct in {event}");
            all.extend(&reached[before - 1]);
            all.push(before);
        }
        all.sort_unstable();
        all.dedup();
        reached.push(all);
    }
    for (event, before) in events.iter().zip(&reached) {
        let happens_before = |other: &&Value| {
            let thread = other["thread"].as_u64().expect("a number") as usize;
            other["number"] != event["number"]
                && event["clock"][thread].as_u64() >= other["nth"].as_u64()
        };
        let clocks = events.iter().filter(happens_before);
        let clocks: Vec<usize> = clocks
            .map(|e| e["number"].as_u64().expect("one") as usize)
            .collect();
        assert_eq!(before, &clocks, "{event}");
    }
}

/// The last event of this operation was let happen by one of that operation.
fn linked(execution: &Value, of: &str, to: &str) {
    let events = list(execution, "events");
    let event = events.iter().rfind(|event| event["operation"] == of);
    let event = event.unwrap_or_else(|| panic!("there is a {of}"));
    let by = event["enabled_by"].as_u64();
    let by = by.unwrap_or_else(|| panic!("{event} is enabled by one"));
    assert_eq!(events[by as usize - 1]["operation"], to, "{event}");
}

#[test]
fn a_park_a_barrier_a_full_channel_and_a_lock_for_all_name_it_too() {
    let execution = parsed(&failure(|| {
        let shared = Arc::new((Barrier::new(2), RwLock::new(0)));
        let (send, receive) = mpsc::sync_channel(1);
        let main = thread::current();
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            main.unpark();
            theirs.0.wait();
            *theirs.1.write().unwrap() = 1;
            send.send(1).unwrap();
            send.send(2).unwrap();
        });
        thread::park();
        shared.0.wait();
        assert_eq!(receive.recv().unwrap() + receive.recv().unwrap(), 3);
        other.join().unwrap();
        panic!("{}", shared.1.read().unwrap());
    }));
    linked(&execution, "park", "unpark");
    linked(&execution, "barrier_leave", "barrier_arrive");
    linked(&execution, "read", "unlock_write");
    linked(&execution, "send", "recv");
    linked(&execution, "recv", "send");
}

#[test]
fn an_event_names_the_one_that_let_it_happen() {
    let execution = parsed(&failure(|| {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let (send, receive) = mpsc::channel();
        let shared = pair.clone();
        let other = thread::spawn(move || {
            receive.recv().unwrap();
            *shared.0.lock().unwrap() = true;
            shared.1.notify_one();
        });
        let mut ready = pair.0.lock().unwrap();
        send.send(()).unwrap();
        while !*ready {
            ready = pair.1.wait(ready).unwrap();
        }
        drop(ready);
        other.join().unwrap();
        panic!("seen");
    }));
    let link = |of: &str, to: &str| linked(&execution, of, to);
    link("recv", "send");
    link("lock", "unlock");
    link("awake", "notify_one");
    // The last event of the thread; its end is none.
    link("join", "arc_drop");
    let receive = event(&execution, "receive message 0");
    assert_eq!(receive["reads_from"], receive["enabled_by"]);
    // Nothing but its spawn lets the first event of a thread happen.
    let stores = parsed(&failure(lost_update));
    let events = list(&stores, "events");
    let first = events.iter().find(|e| e["thread"] == 1 && e["nth"] == 1);
    let spawn = first.expect("one")["enabled_by"]
        .as_u64()
        .expect("an event");
    assert_eq!(events[spawn as usize - 1]["operation"], "spawn");
    let notify = event(&execution, "notify_one");
    assert_eq!(notify["holds"], "notified: main");
}

#[test]
fn a_join_names_the_last_event_of_the_thread_also_if_that_is_on_no_object() {
    let execution = parsed(&failure(|| {
        let other = thread::spawn(|| {
            thread::yield_now();
            dpor::choose(1);
        });
        other.join().unwrap();
        panic!("joined");
    }));
    linked(&execution, "join", "choose");
}

#[test]
fn a_fence_is_told_where_it_was_made_and_is_no_event() {
    let failure = failure(|| {
        let other = thread::spawn(|| {
            thread::yield_now();
            dpor::choose(1);
            dpor::sync::atomic::fence(dpor::sync::atomic::Ordering::Acquire);
        });
        other.join().unwrap();
        dpor::sync::atomic::fence(dpor::sync::atomic::Ordering::SeqCst);
        panic!("joined");
    });
    let execution = parsed(&failure);
    let choice = event(&execution, "choose")["number"].clone();
    let join = event(&execution, "join")["number"].clone();
    let told: Vec<_> = (list(&execution, "fences").iter())
        .map(|fence| {
            (
                fence["thread"].clone(),
                fence["after"].clone(),
                fence["ordering"].clone(),
            )
        })
        .collect();
    let expected: [(Value, Value, Value); 2] = [
        (1.into(), choice, "Acquire".into()),
        (0.into(), join, "SeqCst".into()),
    ];
    assert_eq!(told, expected);
    assert_eq!(failure.dot().matches("label=\"fence").count(), 2);
}

#[test]
fn the_pair_that_the_failure_hangs_on_is_told() {
    let failure = failure(lost_update);
    let execution = parsed(&failure);
    let pair = &execution["pair"];
    let number = |field: &str| pair[field].as_u64().expect("an event") as usize;
    let (first, second) = (number("first"), number("second"));
    let events = list(&execution, "events");
    let (one, other) = (&events[first - 1], &events[second - 1]);
    assert_eq!(one["object"], other["object"]);
    assert_ne!(one["thread"], other["thread"]);
    assert_eq!(pair["words"], other["words"]);
    let arrow = format!("  e{first} -> e{second} [color=red, style=bold");
    assert!(failure.dot().contains(&arrow), "{}", failure.dot());
}
