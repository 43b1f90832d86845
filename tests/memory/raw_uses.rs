//! Is a use of a freed block found that goes through nothing of this crate's, as by a plain field of a node?

use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::{Builder, FailureKind, replay, thread};

use super::{each_finds_it, fails};

struct Node {
    next: *mut Node,
}

/// A stack whose nodes are freed as soon as they are taken, although others may be about to look into them.
fn stack() {
    let push = |head: &AtomicPtr<Node>| {
        let next = head.load(Acquire);
        head.store(Box::into_raw(Box::new(Node { next })), Release);
    };
    let pop = |head: &AtomicPtr<Node>| loop {
        let first = head.load(Acquire);
        // SAFETY: none, which is what is to be found.
        let Some(node) = (unsafe { first.as_ref() }) else {
            return;
        };
        let next = node.next;
        if head.compare_exchange(first, next, AcqRel, Acquire).is_ok() {
            // SAFETY: it was taken, and nobody takes it twice.
            drop(unsafe { Box::from_raw(first) });
            return;
        }
    };
    let head = Arc::new(AtomicPtr::new(null_mut()));
    push(&head);
    push(&head);
    let theirs = head.clone();
    let other = thread::spawn(move || pop(&theirs));
    pop(&head);
    other.join().unwrap();
}

#[test]
fn a_plain_field_of_a_freed_node_is_not_to_be_read() {
    let failure = fails(FailureKind::UseAfterFree, stack);
    let text = failure.to_string();
    let lines = include_str!("raw_uses.rs").lines();
    let line = |text: &str| lines.clone().position(|line| line.contains(text)).unwrap() + 1;
    for told in [
        "use after free: main uses what is in a block that has been freed".to_owned(),
        format!(
            "\n  main       use byte 0 of it   at tests/memory/raw_uses.rs:{}\n",
            line("let next = node.next;")
        ),
        format!(
            "\n  main.1     free               at tests/memory/raw_uses.rs:{}\n",
            line("drop(unsafe { Box::from_raw(first) })")
        ),
        "\n  main is held up behind event 7 and goes on with its code only in event 10, as a slow thread may\n"
            .to_owned(),
        "\nschedule   v2 held main*7 main*7 main.1*2 main\n".to_owned(),
    ] {
        assert!(text.contains(&told), "{told}\n{text}");
    }
    // The row of what is held up has the place behind which it is.
    let loads = format!("raw_uses.rs:{} ", line("let first = head.load"));
    let mut rows = text.lines();
    let goes_on = |row: &str| row.contains("go on") && row.contains(&loads);
    assert!(rows.any(goes_on), "{text}");
}

#[test]
fn each_algorithm_finds_a_raw_use() {
    each_finds_it(stack);
}

#[test]
fn a_raw_use_comes_again_from_its_schedule() {
    let failure = fails(FailureKind::UseAfterFree, stack);
    let schedule = failure.schedule().to_owned();
    let again = std::panic::catch_unwind(|| replay(&schedule, stack));
    let again = again.expect_err("it fails again");
    let text = again.downcast_ref::<String>().expect("a report");
    assert!(text.starts_with("use after free: main uses "), "{text}");
    // Without anybody held up it is an execution as any other.
    let passes = schedule.replace("held main*7 ", "");
    let passes = passes.strip_suffix(" main").expect("it goes on last");
    replay(passes, stack);
}

/// What can be wrong with a hazard pointer.
#[derive(Clone, Copy, PartialEq)]
enum Hazard {
    Right,
    /// It is not looked again whether the block is still there.
    Unchecked,
    /// It is given up before the block was used.
    Early,
    /// The pointer is only compared.
    Unused,
}

/// A reader protects a block by a hazard pointer, and another thread takes the block away and frees it, or leaves that to the
/// end if it is protected.
fn hazard(hazard: Hazard) -> impl Fn() + Send + Sync + 'static {
    move || {
        let place = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(7))));
        let slot = Arc::new(AtomicPtr::new(null_mut()));
        let (place_of_reader, slot_of_reader) = (place.clone(), slot.clone());
        let reader = thread::spawn(move || {
            let (place, slot) = (place_of_reader, slot_of_reader);
            let seen = place.load(SeqCst);
            slot.store(seen, SeqCst);
            let is_there = hazard == Hazard::Unchecked || place.load(SeqCst) == seen;
            if seen.is_null() || !is_there {
                return;
            }
            if hazard == Hazard::Early {
                slot.store(null_mut(), SeqCst);
            }
            match hazard {
                Hazard::Unused => assert!(!seen.is_null()),
                // SAFETY: nobody frees what is protected, if that is done right.
                _ => assert_eq!(unsafe { *seen }, 7),
            }
            slot.store(null_mut(), SeqCst);
        });
        let taken = place.swap(null_mut(), SeqCst);
        // SAFETY: it was taken.
        let free = || drop(unsafe { Box::from_raw(taken) });
        let is_protected = hazard != Hazard::Unused && slot.load(SeqCst) == taken;
        if !is_protected {
            free();
        }
        reader.join().unwrap();
        if is_protected {
            free();
        }
    }
}

#[test]
fn a_hazard_pointer_that_protects_is_left_in_peace() {
    assert!(Builder::new().check(hazard(Hazard::Right)).complete);
}

#[test]
fn who_only_compares_a_pointer_does_not_use_the_block() {
    assert!(Builder::new().check(hazard(Hazard::Unused)).complete);
}

#[test]
fn a_hazard_pointer_that_does_not_protect_is_found() {
    for wrong in [Hazard::Unchecked, Hazard::Early] {
        fails(FailureKind::UseAfterFree, hazard(wrong));
    }
}

#[test]
fn a_use_behind_a_write_is_found() {
    // Whoever takes the last turn frees, and does not wait for the other one.
    fails(FailureKind::UseAfterFree, || {
        let block = Arc::new(AtomicPtr::new(Box::into_raw(Box::new([0_u8; 3]))));
        let turns = Arc::new(AtomicUsize::new(0));
        let (block_of_other, turns_of_other) = (block.clone(), turns.clone());
        let work = |block: &AtomicPtr<[u8; 3]>, turns: &AtomicUsize, by: usize| {
            let seen = block.load(Relaxed);
            if turns.fetch_add(1, AcqRel) == 1 {
                // SAFETY: the other one has had its turn, but may not be done.
                drop(unsafe { Box::from_raw(seen) });
            } else {
                // SAFETY: none, as above.
                unsafe { (*seen)[by] = 1 };
            }
        };
        let other = thread::spawn(move || work(&block_of_other, &turns_of_other, 1));
        work(&block, &turns, 2);
        other.join().unwrap();
    });
}

#[test]
fn how_often_it_was_tried_does_not_show() {
    let tried = Builder::new().check(hazard(Hazard::Right));
    // The same with nothing that could be used.
    let not_tried = Builder::new().check(|| {
        let place = Arc::new(AtomicUsize::new(8));
        let slot = Arc::new(AtomicUsize::new(0));
        let (place_of_reader, slot_of_reader) = (place.clone(), slot.clone());
        let reader = thread::spawn(move || {
            let (place, slot) = (place_of_reader, slot_of_reader);
            let seen = place.load(SeqCst);
            slot.store(seen, SeqCst);
            if seen != 0 && place.load(SeqCst) == seen {
                slot.store(0, SeqCst);
            }
        });
        place.swap(0, SeqCst);
        slot.load(SeqCst);
        reader.join().unwrap();
    });
    assert_eq!(tried.executions, not_tried.executions);
}

#[test]
fn what_outlives_an_execution_in_which_somebody_is_held_up_can_be_freed() {
    static KEPT: Mutex<Vec<Vec<u64>>> = Mutex::new(Vec::new());
    let failure = fails(FailureKind::UseAfterFree, || {
        KEPT.lock().unwrap().push(vec![3; 5]);
        stack();
    });
    assert!(failure.schedule().contains("held"), "{failure}");
    let mut kept = std::mem::take(&mut *KEPT.lock().unwrap());
    for list in &mut kept {
        // It moves, and the old block is freed.
        list.extend(0..100);
        assert_eq!(list[..6], [3, 3, 3, 3, 3, 0]);
    }
    drop(kept);
}
