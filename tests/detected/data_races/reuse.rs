//! Is memory that is used again mistaken for what was there before?

use dpor::thread;

use super::{Plain, check};

#[test]
fn memory_that_is_used_again_is_not_confused_with_what_was_there() {
    check(
        "boxes and stack slots that follow each other",
        "an object's lifetime ends",
        false,
        || {
            for round in 0..3 {
                let shared = Box::new(Plain::default());
                let local = Plain::default();
                thread::scope(|s| {
                    s.spawn(|| shared.set(round));
                    s.spawn(|| local.set(round));
                });
                assert_eq!(shared.get() + local.get(), 2 * round);
            }
        },
    );
}

#[test]
fn cells_on_a_stack_that_is_used_again_are_others() {
    let local = || {
        let cell = Plain::default();
        cell.set(1);
        assert_eq!(cell.get(), 1);
    };
    check("locals", "each thread has its own cell", false, move || {
        let threads = [thread::spawn(local), thread::spawn(local)];
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
