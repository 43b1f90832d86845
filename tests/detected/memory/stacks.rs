//! Is it found if a variable is used after its stack has gone?

use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Condvar, Mutex};
use dpor::{Algorithm, Builder, FailureKind, thread};

use super::{At, fails, passes, tells};

#[test]
fn a_variable_of_a_thread_that_has_ended() {
    /// A pointer for another thread.
    struct Sent(*const AtomicUsize);
    // SAFETY: it is a number as far as this test is concerned.
    unsafe impl Send for Sent {}
    let failure = fails(FailureKind::UseAfterFree, || {
        let other = thread::spawn(|| {
            let local = AtomicUsize::new(3);
            local.store(4, SeqCst);
            Sent(&raw const local)
        });
        let Sent(dangling) = other.join().unwrap();
        // SAFETY: it is not; the stack is there as long as the model, so nothing is read that is not.
        unsafe { &*dangling }.load(SeqCst);
    });
    tells(
        &failure,
        &["main uses a variable on the stack of main.1, which has ended"],
    );
}

#[test]
fn a_thread_must_not_end_while_another_is_about_to_use_its_stack() {
    let failure = fails(FailureKind::UseAfterFree, || {
        let waits = thread::spawn(|| {
            let latch = AtomicUsize::new(0);
            let at = At(&raw const latch);
            thread::spawn(move || at.announce());
            while latch.load(Acquire) == 0 {
                thread::yield_now();
            }
        });
        waits.join().unwrap();
    });
    tells(
        &failure,
        &["use after the end of a thread: main.1.1 uses", "store to"],
    );
    passes(|| {
        let waits = thread::spawn(|| {
            let latch = AtomicUsize::new(0);
            let at = At(&raw const latch);
            thread::spawn(move || at.announce());
            while latch.load(Acquire) != 2 {
                thread::yield_now();
            }
        });
        waits.join().unwrap();
    });
}

#[test]
fn a_use_of_a_stack_must_be_ordered_before_the_end_of_its_thread() {
    // Who waits may wake up and return between the unlock and the notification.
    struct Latch {
        is_set: Mutex<bool>,
        told: Condvar,
    }
    struct To(*const Latch);
    // SAFETY: it is only used where that is tested.
    unsafe impl Send for To {}
    impl To {
        fn set(&self, held: bool) {
            // SAFETY: as above.
            let latch = unsafe { &*self.0 };
            let mut is_set = latch.is_set.lock().unwrap();
            *is_set = true;
            if held {
                latch.told.notify_one();
            }
            drop(is_set);
            if !held {
                latch.told.notify_one();
            }
        }
    }
    let body = |held| {
        move || {
            let waits = thread::spawn(move || {
                let latch = Latch {
                    is_set: Mutex::new(false),
                    told: Condvar::new(),
                };
                let to = To(&raw const latch);
                let sets = thread::spawn(move || to.set(held));
                let mut is_set = latch.is_set.lock().unwrap();
                while !*is_set {
                    is_set = latch.told.wait(is_set).unwrap();
                }
                drop(is_set);
                sets
            });
            waits.join().unwrap().join().unwrap();
        }
    };
    for algorithm in [Algorithm::Optimal, Algorithm::Source, Algorithm::Bounded] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let failure = *builder.explore(body(false)).expect_err("a failure");
        let found = [FailureKind::DataRace, FailureKind::UseAfterFree];
        assert!(found.contains(&failure.kind()), "{failure}");
    }
    let failure = fails(FailureKind::DataRace, body(false));
    tells(
        &failure,
        &[
            "data race: main.1 ends with the variable on its stack, and nothing orders main.1.1's notify_one",
            "  main.1     end",
        ],
    );
    let mut again = Builder::new();
    again.replay = Some(failure.schedule().to_owned());
    assert_eq!(
        again.explore(body(false)).expect_err("a failure").kind(),
        FailureKind::DataRace
    );
    // Under the lock the notification comes before who waits can go on.
    passes(body(true));
}

#[test]
fn a_stack_is_gone_when_the_code_of_its_thread_has_returned() {
    // The first use comes after that, when another thread could have got the stack.
    let uses = |of_main: bool| {
        move || {
            let spawns = || {
                let value = AtomicUsize::new(0);
                let at = At(&raw const value);
                thread::spawn(move || at.look())
            };
            match of_main {
                true => drop(spawns()),
                false => thread::spawn(spawns).join().unwrap().join().unwrap(),
            }
        }
    };
    let failure = fails(FailureKind::UseAfterFree, uses(false));
    tells(
        &failure,
        &["main.1.1 uses a variable on the stack of main.1, which has ended"],
    );
    let cell = || {
        let value = UnsafeCell::new(0);
        let at = Cell(&raw const value);
        thread::spawn(move || at.read())
    };
    let failure = fails(FailureKind::UseAfterFree, move || {
        thread::spawn(cell).join().unwrap().join().unwrap();
    });
    tells(
        &failure,
        &["main.1.1 uses a variable on the stack of main.1, which has ended"],
    );
    let failure = fails(FailureKind::UseAfterFree, || {
        let value = AtomicUsize::new(0);
        let at = At(&raw const value);
        thread::spawn(move || at.look());
    });
    tells(
        &failure,
        &["main.1 uses a variable on the stack of main, which has ended"],
    );
}

/// A cell that a thread knows the address of.
struct Cell(*const UnsafeCell<usize>);

// SAFETY: it is only used where that is tested.
unsafe impl Send for Cell {}

impl Cell {
    fn read(&self) -> usize {
        // SAFETY: as above.
        unsafe { (*self.0).with(|it| *it) }
    }
}

#[test]
fn what_is_borrowed_from_a_stack_is_in_order() {
    // Scopes and joins order what others have done before the end, and so does a counter of std's that nobody sees.
    passes(|| {
        let lends = || {
            let (count, cell) = (AtomicUsize::new(0), Mutex::new(0));
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        count.fetch_add(1, Relaxed);
                        *cell.lock().unwrap() += 1;
                    });
                }
            });
            count.load(Relaxed)
        };
        let other = thread::spawn(lends);
        assert_eq!(lends() + other.join().unwrap(), 4);
    });
    let body = || {
        let waits = thread::spawn(|| {
            let (value, own) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let at = At(&raw const value);
            let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            let is_done = done.clone();
            let adds = thread::spawn(move || {
                at.get().fetch_add(1, Relaxed);
                is_done.store(true, std::sync::atomic::Ordering::Release);
            });
            own.load(Relaxed);
            match done.load(std::sync::atomic::Ordering::Acquire) {
                true => Some(adds),
                false => adds.join().map(|()| None).unwrap(),
            }
        });
        if let Some(adds) = waits.join().unwrap() {
            adds.join().unwrap();
        }
    };
    // No event tells of the two orders, so they are not explored but by who tries all.
    let mut builder = Builder::new();
    builder.algorithm = Algorithm::Naive;
    builder.explore(body).unwrap_or_else(|f| panic!("{f}"));
}
