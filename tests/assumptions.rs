//! Does a report say what an exploration took for granted?
// The feature has other signatures, and `loom_signatures` tests those.
#![cfg(not(feature = "loom"))]

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Condvar, Mutex, Notify};
use dpor::{AssumptionKind, Builder, Report, thread};

/// The kinds of the assumptions of a report, each with the lines of code at its places.
fn assumed(report: &Report) -> Vec<(AssumptionKind, Vec<&'static str>)> {
    let code = |place: &String| {
        let place = place.strip_prefix("tests/assumptions.rs:");
        let (line, _) = place
            .expect("in this file")
            .split_once(':')
            .expect("two numbers");
        let line: usize = line.parse().expect("a number");
        let source = include_str!("assumptions.rs").lines();
        source.map(str::trim).nth(line - 1).expect("a line")
    };
    let assumption = |it: &dpor::Assumption| (it.kind, it.places.iter().map(code).collect());
    report.assumptions.iter().map(assumption).collect()
}

/// The report of an exploration with these settings.
fn explored(set: impl FnOnce(&mut Builder), f: fn()) -> Report {
    let mut builder = Builder::new();
    set(&mut builder);
    builder.check(f)
}

const SECOND: Duration = Duration::from_secs(1);

/// A flag under a lock, and a thread that sets it.
fn waits(wait: fn(&Condvar, &Mutex<bool>)) {
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let theirs = pair.clone();
    let other = thread::spawn(move || {
        *theirs.0.lock().unwrap() = true;
        theirs.1.notify_one();
    });
    wait(&pair.1, &pair.0);
    other.join().unwrap();
}

fn waits_in_a_loop() {
    waits(|condvar, lock| {
        let mut set = lock.lock().unwrap();
        while !*set {
            set = condvar.wait(set).unwrap();
        }
    });
}

fn waits_with_a_timeout() {
    waits(|condvar, lock| {
        let set = lock.lock().unwrap();
        drop(condvar.wait_timeout(set, SECOND).unwrap());
    });
}

fn waits_by_a_token() {
    let main = thread::current();
    let other = thread::spawn(move || main.unpark());
    thread::park();
    other.join().unwrap();
}

#[test]
fn waits_that_did_not_end_spuriously_are_assumed_not_to() {
    let wakeups = AssumptionKind::SpuriousWakeups;
    let tests: [(fn(), &str); 3] = [
        (waits_in_a_loop, "set = condvar.wait(set).unwrap();"),
        (
            waits_with_a_timeout,
            "drop(condvar.wait_timeout(set, SECOND).unwrap());",
        ),
        (waits_by_a_token, "thread::park();"),
    ];
    for (f, line) in tests {
        let report = explored(|_| (), f);
        assert_eq!(assumed(&report), [(wakeups, vec![line])]);
        assert!(report.complete);
        let text = report.to_string();
        let told = " s; no weak behaviour is possible; not explored: spurious wake-ups (1 wait)";
        assert!(text.ends_with(told), "{text}");
        let report = explored(|it| it.spurious_wakeups = 1, f);
        assert_eq!(assumed(&report), []);
        assert!(!report.to_string().contains("not explored"), "{report}");
    }
}

#[test]
fn every_place_is_named_once_whatever_threads_and_executions_meet_it() {
    let report = explored(
        |_| (),
        || {
            let notify = Arc::new(Notify::new());
            let theirs = notify.clone();
            let other = thread::spawn(move || {
                theirs.wait();
                theirs.notify();
            });
            notify.notify();
            for _ in 0..dpor::choose(3) {
                notify.wait();
                notify.notify();
            }
            dpor::future::block_on(std::future::ready(()));
            other.join().unwrap();
        },
    );
    let wakeups = AssumptionKind::SpuriousWakeups;
    let waits = vec!["theirs.wait();", "notify.wait();"];
    assert_eq!(assumed(&report), [(wakeups, waits)]);
    let told = report.assumptions[0].to_string();
    assert_eq!(told, "spurious wake-ups (2 waits)");
}

fn adds() {
    let x = Arc::new(AtomicUsize::new(0));
    let theirs = x.clone();
    let other = thread::spawn(move || {
        let add = |it| Some(it + 1);
        theirs.fetch_update(SeqCst, SeqCst, add).unwrap();
    });
    let found = x.load(SeqCst);
    let _ = x.compare_exchange_weak(found, 7, SeqCst, SeqCst);
    let _ = x.compare_exchange(7, 8, SeqCst, SeqCst);
    other.join().unwrap();
}

#[test]
fn a_weak_compare_exchange_that_did_not_fail_spuriously_is_assumed_not_to() {
    let failures = AssumptionKind::SpuriousFailures;
    let report = explored(|_| (), adds);
    let places = vec![
        "theirs.fetch_update(SeqCst, SeqCst, add).unwrap();",
        "let _ = x.compare_exchange_weak(found, 7, SeqCst, SeqCst);",
    ];
    assert_eq!(assumed(&report), [(failures, places)]);
    let told = "; not explored: spurious failures of weak compare-exchanges (2 places)";
    assert!(report.to_string().ends_with(told), "{report}");
    assert_eq!(
        assumed(&explored(|it| it.spurious_failures = true, adds)),
        []
    );
}

struct Shared(UnsafeCell<u8>);

// SAFETY: no thread writes.
unsafe impl Sync for Shared {}

impl Shared {
    fn read(&self) -> u8 {
        // SAFETY: no thread writes.
        self.0.with(|value| unsafe { *value })
    }
}

#[test]
fn a_free_that_an_arc_of_std_orders_is_named() {
    let report = explored(
        |_| (),
        || {
            let x = std::sync::Arc::new(Shared(UnsafeCell::new(1)));
            let theirs = x.clone();
            let other = thread::spawn(move || theirs.read());
            x.read();
            drop(x);
            other.join().unwrap();
        },
    );
    let kinds: Vec<_> = report.assumptions.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [AssumptionKind::Unswapped], "{report}");
    let told = "; not explored: primitives that are not swapped (";
    assert!(report.to_string().contains(told), "{report}");
    // The counts of this crate's `Arc` are seen.
    let report = explored(|_| (), || drop(Arc::new(AtomicUsize::new(0)).clone()));
    assert_eq!(assumed(&report), []);
}

#[test]
fn a_program_that_waits_for_no_other_thread_assumes_nothing() {
    let report = explored(
        |_| (),
        || {
            let x = Arc::new(AtomicUsize::new(0));
            let theirs = x.clone();
            let (sender, receiver) = dpor::sync::mpsc::channel();
            let other = thread::spawn(move || {
                theirs.fetch_add(1, SeqCst);
                sender.send(()).unwrap();
            });
            receiver.recv().unwrap();
            x.compare_exchange(1, 2, SeqCst, SeqCst).unwrap();
            other.join().unwrap();
        },
    );
    assert_eq!(assumed(&report), []);
}

#[test]
fn a_resumed_exploration_knows_the_places_from_before() {
    let file = std::env::temp_dir().join(format!("dpor-assumptions-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    // Only the first execution waits, and the rest is explored from the file.
    let f = || {
        if dpor::choose(5) == 0 {
            let notify = Notify::new();
            notify.notify();
            notify.wait();
        }
    };
    let mut builder = Builder::new();
    builder.checkpoint_file = Some(file.clone());
    builder.max_permutations = Some(3);
    let reports = [(); 2].map(|()| builder.check(f));
    assert!(!reports[0].complete && reports[1].complete);
    for report in &reports {
        let wakeups = AssumptionKind::SpuriousWakeups;
        assert_eq!(assumed(report), [(wakeups, vec!["notify.wait();"])]);
    }
    assert!(!file.exists());
}
