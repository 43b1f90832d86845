//! Does every failure print what a stranger needs?
//!
//! The whole text of each report, in a file beside this one. `DPOR_BLESS=1 cargo test --test reports`
//! writes them anew; read what has changed before you keep it.
// The feature has other signatures; their tests are in `tests/surface/loom_signatures.rs`.
#![cfg(not(feature = "loom"))]

mod browser;
#[path = "../support/children.rs"]
mod children;
mod elements;
mod failures;
mod forms;
mod locks;
mod many;
#[path = "../support/needs.rs"]
mod needs;
mod old_values;
mod pictures;
mod pointers;
#[path = "../support/portable.rs"]
mod portable;
mod progress;
mod shown;
#[path = "../support/mod.rs"]
mod support;
mod values;
mod waits;

use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicBool;
use dpor::sync::{Arc, Condvar, Mutex};
use dpor::thread;
use pretty_assertions::assert_eq;

/// The failures whose reports are kept.
fn all() -> impl Iterator<Item = &'static failures::Named> {
    let more = waits::ALL.iter().chain(pointers::ALL).chain(values::ALL);
    let more = more.chain(many::ALL).chain(elements::ALL);
    let more = more.chain(old_values::ALL).chain(locks::ALL);
    failures::ALL.iter().chain(more)
}

/// The report of a failure, as a test of this name prints it.
fn report(name: &'static str, run: fn() -> dpor::Failure) -> String {
    let thread = std::thread::Builder::new().name(name.to_owned());
    let failure = thread.spawn(run).expect("a thread").join();
    portable::portable(&failure.expect("the failure").to_string())
}

#[test]
fn reports_are_what_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    let bless = std::env::var_os("DPOR_BLESS").is_some();
    for (name, run) in all() {
        let path = folder.join(format!("{name}.txt"));
        let found = format!("{}\n", report(name, *run));
        if bless {
            std::fs::write(&path, &found).expect("the folder can be written");
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn every_report_is_of_a_failure_that_exists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let name = path.file_stem().and_then(|name| name.to_str());
            let known = all().any(|(known, _)| Some(*known) == name);
            assert!(known, "{}", path.display());
        }
    }
}

#[test]
fn what_is_shown_replays_to_the_same_failure_and_is_shown_again() {
    for (name, run) in all() {
        let failure = run();
        if matches!(
            failure.kind(),
            dpor::FailureKind::Schedule | dpor::FailureKind::NotDeterministic
        ) {
            continue;
        }
        failures::REPLAY.with(|replay| replay.replace(Some(failure.schedule().to_owned())));
        let again = run();
        failures::REPLAY.with(|replay| replay.replace(None));
        assert_eq!(again.kind(), failure.kind(), "{name}");
        assert_eq!(again.schedule(), failure.schedule(), "{name}");
    }
}

#[test]
fn the_documents_quote_what_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path| std::fs::read_to_string(root.join(path)).expect("a file");
    let documents = read("docs/REPORTS.md");
    let quoted = documents.lines().find(|line| line.starts_with("  event "));
    let report = read("tests/reports/old_number_of_a_seqlock.txt");
    let printed = report.lines().find(|line| line.starts_with("  event "));
    assert!(printed.is_some());
    assert_eq!(quoted, printed);
}

/// A permit, a thread that takes it if it is there, and one that waits for it.
fn stolen_permit() -> dpor::Failure {
    failures::fails(|| {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let (quick, patient) = (shared.clone(), shared.clone());
        let thief = thread::spawn(move || {
            let mut permits = quick.0.lock().unwrap();
            if *permits > 0 {
                *permits -= 1;
            }
        });
        let waiter = thread::spawn(move || {
            let mut permits = patient.0.lock().unwrap();
            while *permits == 0 {
                permits = patient.1.wait(permits).unwrap();
            }
        });
        *shared.0.lock().unwrap() += 1;
        shared.1.notify_all();
        thief.join().unwrap();
        waiter.join().unwrap();
    })
}

/// A flag is set. The thread that is to wait for it tries once to take it, which may fail for no
/// reason, or looks at it.
fn flag(waits: fn(&AtomicBool) -> bool) -> dpor::Failure {
    let mut builder = failures::builder();
    builder.spurious_failures = true;
    let model = move || {
        let shared = Arc::new((AtomicBool::new(false), Mutex::new(()), Condvar::new()));
        let theirs = shared.clone();
        let waiter = thread::spawn(move || {
            if waits(&theirs.0) {
                let guard = theirs.1.lock().unwrap();
                drop(theirs.2.wait(guard).unwrap());
            }
        });
        shared.0.store(true, SeqCst);
        shared.2.notify_one();
        waiter.join().unwrap();
    };
    *builder.explore(model).expect_err("a wait for ever")
}

#[test]
fn a_wake_up_is_lost_only_if_the_waiter_has_not_looked_since() {
    let takes = |flag: &AtomicBool| {
        flag.load(SeqCst) && (flag.compare_exchange_weak(true, false, SeqCst, SeqCst)).is_err()
    };
    for (what, failure, is_lost) in [
        ("a stolen permit", stolen_permit(), false),
        ("a failure for no reason", flag(takes), false),
        ("a look before", flag(|flag| !flag.load(SeqCst)), true),
    ] {
        let text = failure.to_string();
        assert!(text.starts_with("deadlock"), "{what}: {text}");
        assert_eq!(text.contains("a lost wake-up"), is_lost, "{what}: {text}");
    }
}
