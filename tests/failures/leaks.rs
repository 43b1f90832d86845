//! Is a value that is forgotten on one path reported as a leak?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, FailureKind, thread};

#[test]
fn a_tracked_value_that_is_not_dropped_on_one_path_is_a_leak() {
    use dpor::alloc::Track;
    let run = |leaks: bool| {
        Builder::new().explore(move || {
            let slot = Arc::new(AtomicUsize::new(0));
            let theirs = slot.clone();
            let other = thread::spawn(move || theirs.store(1, SeqCst));
            let value = Track::new(String::from("kept"));
            if leaks && slot.load(SeqCst) == 1 {
                std::mem::forget(value);
            }
            other.join().unwrap();
        })
    };
    assert!(run(false).expect("nothing leaks").complete);
    let found = run(true).expect_err("one path leaks");
    assert_eq!(found.kind(), FailureKind::Leak);
    assert!(
        found
            .to_string()
            .contains("  made at tests/failures/leaks.rs:"),
        "{found}"
    );
}

/// What std calls stands nowhere in the program, so the report says who called it and when.
#[test]
fn a_tracked_value_that_std_made() {
    use dpor::alloc::Track;
    let found = Builder::new().explore(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let other = thread::spawn(move || {
            theirs.fetch_add(1, SeqCst);
            std::mem::forget(["kept"].map(Track::new));
        });
        other.join().unwrap();
    });
    let found = found.expect_err("it leaks");
    assert_eq!(found.kind(), FailureKind::Leak);
    let text = found.to_string();
    let made = "  made in std by main.1 after \"theirs add: 0 -> 1\" (tests/failures/leaks.rs:";
    assert!(text.contains(made), "{text}");
}
