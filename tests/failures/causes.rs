//! Is a failure called a lost update, or check-then-act, only where it is one?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::thread;

use super::failure;

#[test]
fn what_was_seen_before_it_was_overwritten_is_no_lost_update() {
    let report = |looks_again: bool| {
        let found = failure(move || {
            let x = Arc::new(AtomicUsize::new(0));
            let theirs = x.clone();
            let other = thread::spawn(move || theirs.store(1, SeqCst));
            let early = x.load(SeqCst);
            other.join().unwrap();
            let late = if looks_again { x.load(SeqCst) } else { early };
            x.store(late + 1, SeqCst);
            assert_eq!(early, 1);
        });
        found.to_string()
    };
    let (lost, seen) = (report(false), report(true));
    assert!(lost.contains("a lost update: main read x"), "{lost}");
    assert!(!seen.contains("lost update"), "{seen}");
    // Who looks again does not act on what it saw before either.
    assert!(!seen.contains("check, then act"), "{seen}");
}

#[test]
fn a_loop_that_looks_until_something_changes_does_not_check_and_act() {
    let found = failure(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let other = thread::spawn(move || theirs.store(true, SeqCst));
        let mut rounds = 0;
        while !flag.load(SeqCst) {
            rounds += 1;
            dpor::hint::spin_loop();
        }
        other.join().unwrap();
        assert!(rounds < 3, "it has not come soon");
    });
    let text = found.to_string();
    assert!(
        text.contains("it fails because main's \"flag = false\""),
        "{text}"
    );
    assert!(!text.contains("check, then act"), "{text}");
}
