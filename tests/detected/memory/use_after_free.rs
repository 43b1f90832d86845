//! Is it found if memory is used after it was freed, or could be?

use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::{Algorithm, Builder, FailureKind, thread};

use super::{At, Node, Slot, beside, fails, passes, take_and_free, tells, value};

/// Keeps the pointer that the slot had at first, waits for a thread that frees the node, and calls `use_it`.
fn after_the_free(use_it: fn(*mut Node)) -> impl Fn() + Send + Sync + 'static {
    move || {
        let slot = Arc::new(Slot::full());
        let theirs = slot.clone();
        let stale = slot.0.load(Acquire);
        thread::spawn(move || take_and_free(&theirs))
            .join()
            .unwrap();
        use_it(stale);
    }
}

#[test]
fn a_shim_that_is_used_after_its_block_was_freed() {
    let look = |node| {
        value(node);
    };
    let failure = fails(FailureKind::UseAfterFree, after_the_free(look));
    tells(
        &failure,
        &[
            "use after free: main uses what is in a block that has been freed",
            "main       load ",
            "at tests/detected/memory/mod.rs:",
            "main.1     free ",
            "at tests/detected/memory/mod.rs:",
            "the block: ptr1, 16 bytes, allocated by main at tests/detected/memory/mod.rs:",
        ],
    );
}

#[test]
fn a_cell_that_is_used_after_its_block_was_freed() {
    // SAFETY: as in `free`.
    let write = |node: *mut Node| unsafe { (*node).plain.with_mut(|value| *value = 1) };
    let failure = fails(FailureKind::UseAfterFree, after_the_free(write));
    tells(
        &failure,
        &[
            "use after free: main",
            "write ptr1.plain",
            "main.1     free",
        ],
    );
}

/// Each side calls it something else, and the test has a name for it.
#[test]
fn a_cell_that_the_test_has_named_is_called_so_when_it_is_gone() {
    fn named(slot: &Slot) {
        slot.with(|node| dpor::name(&node.plain, "payload"));
    }
    fn read(node: *mut Node) -> usize {
        // SAFETY: as in `free`.
        unsafe { (*node).plain.with(|value| *value) }
    }
    let failure = fails(FailureKind::UseAfterFree, || {
        let slot = Slot::full();
        named(&slot);
        let stale = slot.0.load(Acquire);
        take_and_free(&slot);
        read(stale);
    });
    let told = ["main       read payload   at ", " -  read payload  "];
    tells(&failure, &told);
    assert!(!failure.to_string().contains("(*node)"), "{failure}");
    assert!(failure.json().contains("reads payload"), "{failure}");
    // Where the free only could come before.
    let failure = fails(FailureKind::DataRace, || {
        let slot = Arc::new(Slot::full());
        named(&slot);
        let theirs = slot.clone();
        let other = thread::spawn(move || take_and_free(&theirs));
        let node = slot.0.load(Acquire);
        if !node.is_null() {
            read(node);
        }
        other.join().unwrap();
    });
    let told = [
        "main.1 frees the block, and nothing orders a read of payload by main before that",
        " -  read payload (7)  ",
    ];
    tells(&failure, &told);
    assert!(!failure.to_string().contains("(*node)"), "{failure}");
}

#[test]
fn what_the_test_has_named_on_a_stack_is_called_so_when_that_thread_has_ended() {
    struct Waiter {
        ticket: UnsafeCell<usize>,
        woken: AtomicUsize,
    }
    let left_by_a_thread = |use_it: fn(&Waiter)| {
        move || {
            let slot = Arc::new(AtomicPtr::new(null_mut()));
            let theirs = slot.clone();
            let other = thread::spawn(move || {
                let waiter = Waiter {
                    ticket: UnsafeCell::new(7),
                    woken: AtomicUsize::new(0),
                };
                dpor::name(&waiter.ticket, "ticket of one");
                dpor::name(&waiter.woken, "woken of one");
                waiter.woken.store(1, Release);
                theirs.store((&raw const waiter).cast_mut(), Release);
            });
            other.join().unwrap();
            // SAFETY: none. The model ends before memory is used that is no more.
            use_it(unsafe { &*slot.load(Acquire) });
        }
    };
    // SAFETY: as above.
    let read = |gone: &Waiter| assert_eq!(gone.ticket.with(|value| unsafe { *value }), 7);
    let load = |gone: &Waiter| assert_eq!(gone.woken.load(Acquire), 1);
    for (use_it, told) in [
        (read as fn(&Waiter), "read ticket of one   at "),
        (load, "load woken of one   at "),
    ] {
        let failure = fails(FailureKind::UseAfterFree, left_by_a_thread(use_it));
        let first = "use after the end of a thread: main uses a variable on the stack of main.1";
        tells(&failure, &[first, told]);
        assert!(!failure.to_string().contains("gone."), "{failure}");
    }
}

/// The row of a drop has the place where the reference was made. Where the failure is about the drop, that is not the place
/// to look at.
#[test]
fn a_reference_that_is_dropped_after_its_block_was_freed() {
    let (first, second) = (line!() + 4, line!() + 6);
    let failure = fails(FailureKind::UseAfterFree, || {
        let shared = Arc::into_raw(Arc::new(0));
        // SAFETY: it is the one reference that there is.
        drop(unsafe { Arc::from_raw(shared) });
        // SAFETY: there is no other reference, which is what is to be found before anything is read.
        drop(unsafe { Arc::from_raw(shared) });
    });
    tells(
        &failure,
        &[
            &format!("main       drop arc   at tests/detected/memory/use_after_free.rs:{second}\n"),
            &format!("main       free       at tests/detected/memory/use_after_free.rs:{first}\n"),
            &format!(
                "  -  drop arc                tests/detected/memory/use_after_free.rs:{second}\n"
            ),
        ],
    );
}

#[test]
fn a_use_that_nothing_orders_before_the_free() {
    let look = |slot: &Slot| {
        let node = slot.0.load(Acquire);
        if !node.is_null() {
            value(node);
        }
    };
    let failure = fails(FailureKind::DataRace, beside(take_and_free, look));
    tells(
        &failure,
        &[
            "data race: main.1 frees the block, and nothing orders main's load ptr1.value before that",
            "main       ptr1.value = 7 (Acquire) at tests/detected/memory/mod.rs:",
            "main.1     free ",
            " at tests/detected/memory/mod.rs:",
            "the block: ptr1, 16 bytes, allocated by main at tests/detected/memory/mod.rs:",
        ],
    );
}

#[test]
fn a_block_that_grows_is_another_one() {
    let grow = |reserve: usize| {
        move || {
            let mut list = Vec::with_capacity(reserve);
            list.push(AtomicUsize::new(1));
            let first: *const AtomicUsize = &raw const list[0];
            list.push(AtomicUsize::new(2));
            // SAFETY: only where the list has not moved; the model keeps the memory either way.
            assert_eq!(unsafe { &*first }.load(SeqCst), 1);
        }
    };
    fails(FailureKind::UseAfterFree, grow(1));
    assert_eq!(passes(grow(2)), 1);
}

#[test]
fn what_is_freed_must_not_be_about_to_be_used() {
    // The first store is ordered before the free. The second comes too late in each execution with a free, and its
    // thread had come to it before that.
    let failure = fails(FailureKind::UseAfterFree, || {
        let latch = Box::new(AtomicUsize::new(0));
        let at = At(&raw const *latch);
        thread::spawn(move || at.announce());
        match latch.load(Acquire) {
            1 => drop(latch),
            _ => dpor::alloc::may_leak(Box::leak(latch)),
        }
    });
    tells(
        &failure,
        &["use after free: main.1 uses", "store to", "main       free"],
    );
}

#[test]
fn the_schedule_has_the_beginning_of_who_has_freed_what_is_used() {
    #[derive(Clone, Copy)]
    struct Place(*const AtomicUsize);
    // SAFETY: it is only a number until somebody uses it.
    unsafe impl Send for Place {}
    impl Place {
        fn free(self) {
            // SAFETY: nobody else frees it.
            drop(unsafe { Box::from_raw(self.0.cast_mut()) });
        }
    }
    let body = || {
        let place = Place(Box::into_raw(Box::new(AtomicUsize::new(0))));
        let other = thread::spawn(move || place.free());
        // SAFETY: none, which is what is to be found.
        unsafe { &*place.0 }.fetch_add(1, SeqCst);
        other.join().unwrap();
    };
    for algorithm in [Algorithm::Source, Algorithm::Classic, Algorithm::SleepSets] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let found = builder.explore(body).unwrap_err();
        assert_eq!(found.kind(), FailureKind::UseAfterFree, "{found}");
        let mut builder = Builder::new();
        builder.replay = Some(found.schedule().to_owned());
        let again = builder.explore(body).unwrap_err();
        assert_eq!(again.kind(), FailureKind::UseAfterFree, "{again}");
    }
}
