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
            .contains("  made at tests/verdict/failures/leaks.rs:"),
        "{found}"
    );
}

/// Two threads may see that a slot is full before one of them empties it.
fn taken_by_two(takes: fn(std::mem::MaybeUninit<dpor::alloc::Track<u32>>)) -> dpor::Failure {
    use dpor::alloc::Track;
    use std::mem::MaybeUninit;
    struct Slot(AtomicUsize, std::cell::UnsafeCell<MaybeUninit<Track<u32>>>);
    // SAFETY: that is what is to be tested.
    unsafe impl Sync for Slot {}
    let found = Builder::new().explore(move || {
        let value = MaybeUninit::new(Track::new(7));
        let slot = Arc::new(Slot(AtomicUsize::new(1), value.into()));
        let take = move |slot: &Slot| {
            if slot.0.load(SeqCst) == 1 {
                slot.0.store(0, SeqCst);
                // SAFETY: none, which is what is to be found.
                takes(unsafe { slot.1.get().read() });
            }
        };
        let theirs = slot.clone();
        let other = thread::spawn(move || take(&theirs));
        take(&slot);
        other.join().unwrap();
    });
    *found.expect_err("both take it in one order")
}

#[test]
fn a_tracked_value_that_is_dropped_twice_is_a_failure() {
    type Slot = std::mem::MaybeUninit<dpor::alloc::Track<u32>>;
    // SAFETY: it was initialised.
    let drops: fn(Slot) = |slot| drop(unsafe { slot.assume_init() });
    // SAFETY: as above.
    let takes_out: fn(Slot) = |slot| assert_eq!(unsafe { slot.assume_init() }.into_inner(), 7);
    for takes in [drops, takes_out] {
        let found = taken_by_two(takes);
        assert_eq!(found.kind(), FailureKind::Panic);
        let text = found.to_string();
        let said = "a `Track` is dropped, or taken out, a second time: the one that was made by main at tests/verdict/failures/leaks.rs:";
        assert!(text.contains(said), "{text}");
    }
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
    let made =
        "  made in std by main.1 after \"theirs add: 0 -> 1\" (tests/verdict/failures/leaks.rs:";
    assert!(text.contains(made), "{text}");
}
