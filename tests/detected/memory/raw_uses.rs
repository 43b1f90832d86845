//! Is a use of a freed block found that goes through nothing of this crate's, as by a plain field of a node?

use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::Mutex;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
use dpor::sync::{Arc, mpsc};
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
            "\n  main       use byte 0 of it   at tests/detected/memory/raw_uses.rs:{}\n",
            line("let next = node.next;")
        ),
        format!(
            "\n  main.1     free               at tests/detected/memory/raw_uses.rs:{}\n",
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

/// What is kept with a pointer in a word, and in which of its bits.
#[derive(Clone, Copy)]
enum Tag {
    /// A mark in the lowest bit.
    Low,
    /// A count of the changes above the address.
    High,
}

impl Tag {
    fn pack(self, pointer: *mut Plain, changes: u64) -> u64 {
        let address = pointer.expose_provenance() as u64;
        match self {
            Tag::Low => address | (changes & 1),
            Tag::High => address | changes << 48,
        }
    }

    fn unpack(self, word: u64) -> (*mut Plain, u64) {
        let (address, changes) = match self {
            Tag::Low => (word & !1, word & 1),
            Tag::High => (word & ((1 << 48) - 1), word >> 48),
        };
        (with_exposed_provenance_mut(address as usize), changes)
    }
}

/// A node without anything of dpor's.
struct Plain {
    next: *mut Plain,
}

/// A stack whose nodes are freed as soon as they are taken, with a tag at each pointer to them. Two threads take, and
/// `behind` comes last of all.
fn tagged<A: Word>(tag: Tag, nodes: u32, behind: fn()) -> impl Fn() + Send + Sync + 'static {
    move || {
        let head = Arc::new(A::new(0));
        for changes in 0..u64::from(nodes) {
            let (next, _) = tag.unpack(head.load());
            let node = Box::into_raw(Box::new(Plain { next }));
            head.store(tag.pack(node, changes + 1));
        }
        let pop = move |head: &A| loop {
            let seen = head.load();
            let (first, changes) = tag.unpack(seen);
            // SAFETY: none, which is what is to be found.
            let Some(node) = (unsafe { first.as_ref() }) else {
                return;
            };
            if head.compare_exchange(seen, tag.pack(node.next, changes + 1)) {
                // SAFETY: it was taken, and nobody takes it twice.
                drop(unsafe { Box::from_raw(first) });
                return;
            }
        };
        let theirs = head.clone();
        let other = thread::spawn(move || pop(&theirs));
        pop(&head);
        other.join().unwrap();
        behind();
    }
}

/// An atomic with room for a pointer and a tag.
trait Word: Send + Sync + 'static {
    fn new(value: u64) -> Self;
    fn load(&self) -> u64;
    fn store(&self, value: u64);
    fn compare_exchange(&self, seen: u64, new: u64) -> bool;
}

macro_rules! word {
    ($atomic:ty, $value:ty) => {
        impl Word for $atomic {
            fn new(value: u64) -> Self {
                <$atomic>::new(value as $value)
            }
            #[track_caller]
            fn load(&self) -> u64 {
                self.load(Acquire) as u64
            }
            #[track_caller]
            fn store(&self, value: u64) {
                self.store(value as $value, Release);
            }
            #[track_caller]
            fn compare_exchange(&self, seen: u64, new: u64) -> bool {
                let (seen, new) = (seen as $value, new as $value);
                self.compare_exchange(seen, new, AcqRel, Acquire).is_ok()
            }
        }
    };
}

word!(AtomicUsize, usize);
word!(AtomicU64, u64);

#[test]
fn a_block_whose_pointer_has_a_tag_is_not_to_be_used_either() {
    for tag in [Tag::Low, Tag::High] {
        fails(
            FailureKind::UseAfterFree,
            tagged::<AtomicUsize>(tag, 2, || {}),
        );
        fails(
            FailureKind::UseAfterFree,
            tagged::<AtomicU64>(tag, 2, || {}),
        );
    }
}

#[test]
fn a_block_whose_pointer_has_a_tag_must_be_freed() {
    for tag in [Tag::Low, Tag::High] {
        fails(FailureKind::Leak, tagged::<AtomicU64>(tag, 3, || {}));
    }
}

#[test]
fn a_pointer_with_a_tag_is_told_as_one() {
    let behind = || panic!("to be told");
    for (tag, told) in [(Tag::Low, "ptr1+1"), (Tag::High, "ptr1 | 1 << 48")] {
        let failure = fails(FailureKind::Panic, tagged::<AtomicUsize>(tag, 2, behind));
        let text = failure.to_string();
        assert!(text.contains(told), "{told}\n{text}");
    }
}

#[test]
fn a_pointer_into_a_block_is_told_by_the_first_one() {
    // What an `Arc` points to is behind its counts.
    let failure = fails(FailureKind::Panic, || {
        let pair = std::sync::Arc::into_raw(std::sync::Arc::new([1_u32, 2])).cast_mut();
        let place = AtomicPtr::new(pair.cast::<u32>());
        // SAFETY: it is in the block.
        place.store(unsafe { pair.cast::<u32>().add(1) }, Relaxed);
        // SAFETY: it comes from `into_raw`, and is not used any more.
        drop(unsafe { std::sync::Arc::from_raw(pair) });
        panic!("to be told");
    });
    let text = failure.to_string();
    assert!(text.contains("place := ptr1+4 (was ptr1)"), "{text}");
}

#[test]
fn a_block_that_a_word_was_made_with_must_be_freed() {
    fails(FailureKind::Leak, || {
        let node = Box::into_raw(Box::new(Plain { next: null_mut() }));
        let word = AtomicUsize::new(node.expose_provenance() | 1);
        word.load(Relaxed);
    });
}

/// What is counted by hand.
struct Owned {
    owners: AtomicUsize,
    size: u64,
}

struct Owner(*mut Owned);

// SAFETY: that is what the count is for.
unsafe impl Send for Owner {}

impl Owner {
    /// Gives it up, and looks at its size before that, or after it.
    fn give_up(self, too_late: bool) -> u64 {
        // SAFETY: this owner has not given it up yet, so nobody frees it.
        let (owners, size) = unsafe { (&(*self.0).owners, &raw const (*self.0).size) };
        // SAFETY: as above.
        let before = unsafe { *size };
        if owners.fetch_sub(1, AcqRel) == 1 {
            // SAFETY: it was the last one.
            drop(unsafe { Box::from_raw(self.0) });
        } else if too_late {
            // SAFETY: none, which is what is to be found.
            return unsafe { *size };
        }
        before
    }
}

#[test]
fn what_is_counted_by_hand_is_not_to_be_used_behind_the_decrement() {
    fn two_owners(too_late: bool) {
        let owned = Box::into_raw(Box::new(Owned {
            owners: AtomicUsize::new(2),
            size: 3,
        }));
        let (one, other) = (Owner(owned), Owner(owned));
        let other = thread::spawn(move || other.give_up(too_late));
        assert_eq!(one.give_up(too_late), 3);
        assert_eq!(other.join().unwrap(), 3);
    }
    assert!(Builder::new().check(|| two_owners(false)).complete);
    let failure = fails(FailureKind::UseAfterFree, || two_owners(true));
    assert!(failure.schedule().contains("held"), "{failure}");
    each_finds_it(|| two_owners(true));
}

#[test]
fn what_an_arc_holds_is_not_to_be_used_by_who_has_read_a_pointer_to_it() {
    fn swapped(joins_first: bool) {
        let place = Arc::new(AtomicPtr::new(Arc::into_raw(Arc::new(1_u32)).cast_mut()));
        let theirs = place.clone();
        let reader = thread::spawn(move || {
            let seen = theirs.load(Acquire);
            // SAFETY: none, as the writer does not wait for the reader.
            assert!(unsafe { *seen } > 0);
        });
        if joins_first {
            reader.join().unwrap();
            let old = place.swap(Arc::into_raw(Arc::new(2)).cast_mut(), AcqRel);
            // SAFETY: it comes from `into_raw`.
            drop(unsafe { Arc::from_raw(old) });
        } else {
            let old = place.swap(Arc::into_raw(Arc::new(2)).cast_mut(), AcqRel);
            // SAFETY: as above.
            drop(unsafe { Arc::from_raw(old) });
            reader.join().unwrap();
        }
        // SAFETY: as above.
        drop(unsafe { Arc::from_raw(place.load(Relaxed)) });
    }
    assert!(Builder::new().check(|| swapped(true)).complete);
    let failure = fails(FailureKind::UseAfterFree, || swapped(false));
    assert!(failure.schedule().contains("held"), "{failure}");
}

#[test]
fn a_use_that_comes_behind_the_free_in_each_execution_is_found() {
    // The two reads change nothing for each other, so they are explored in one order only, and that has the free first.
    fails(FailureKind::UseAfterFree, || {
        let place = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(7))));
        let theirs = place.clone();
        // SAFETY: none, which is what is to be found.
        let other = thread::spawn(move || unsafe { *theirs.load(SeqCst) });
        // SAFETY: nobody else frees it.
        drop(unsafe { Box::from_raw(place.load(SeqCst)) });
        other.join().unwrap();
    });
    // Who has freed it has handed it over before.
    fails(FailureKind::UseAfterFree, || {
        let place = Arc::new(AtomicPtr::new(null_mut()));
        let theirs = place.clone();
        let other = thread::spawn(move || {
            let block = Box::into_raw(Box::new(7));
            theirs.store(block, SeqCst);
            // SAFETY: nobody else frees it.
            drop(unsafe { Box::from_raw(block) });
        });
        // SAFETY: none, as above.
        let seen = unsafe { place.load(SeqCst).as_ref() };
        assert!(seen.is_none_or(|&seen| seen == 7));
        other.join().unwrap();
    });
}

/// A reader of an epoch scheme that unpins before it reads. In most executions it has the new block when the old one is freed:
/// these are not to use up the tries of those in which it has the old one.
fn unpinned_too_early() {
    struct Epochs {
        global: AtomicUsize,
        pinned: AtomicUsize,
        slot: AtomicPtr<u32>,
    }
    let epochs = Arc::new(Epochs {
        global: AtomicUsize::new(0),
        pinned: AtomicUsize::new(0),
        slot: AtomicPtr::new(Box::into_raw(Box::new(7))),
    });
    let theirs = epochs.clone();
    let reader = thread::spawn(move || {
        let now = theirs.global.load(SeqCst);
        theirs.pinned.store(now * 2 + 1, SeqCst);
        let read = theirs.slot.load(Acquire);
        theirs.pinned.store(0, Release);
        // SAFETY: none, which is what is to be found.
        assert!(unsafe { *read } <= 9);
    });
    let old = epochs.slot.swap(Box::into_raw(Box::new(8)), AcqRel);
    for _ in 0..2 {
        let now = epochs.global.load(SeqCst);
        let pinned = epochs.pinned.load(SeqCst);
        if pinned == 0 || pinned / 2 == now {
            epochs.global.store(now + 1, SeqCst);
        }
    }
    let is_over = epochs.global.load(SeqCst) >= 2;
    // SAFETY: nobody frees it twice.
    let free = |block| drop(unsafe { Box::from_raw(block) });
    if is_over {
        free(old);
    }
    reader.join().unwrap();
    if !is_over {
        free(old);
    }
    free(epochs.slot.load(Acquire));
}

#[test]
fn who_may_have_the_pointer_does_not_use_up_the_tries_of_who_has_it() {
    fails(FailureKind::UseAfterFree, unpinned_too_early);
}

#[test]
fn who_has_spawned_the_thread_that_frees_is_not_to_use_what_it_frees() {
    #[derive(Clone, Copy)]
    struct Block(*mut u32);
    // SAFETY: it is only a number until somebody uses it.
    unsafe impl Send for Block {}
    impl Block {
        fn free(self) {
            // SAFETY: nobody else frees it.
            drop(unsafe { Box::from_raw(self.0) });
        }
        fn read(self) -> u32 {
            // SAFETY: none, which is what is to be found.
            unsafe { self.0.read_volatile() }
        }
    }
    let block = || Block(Box::into_raw(Box::new(7)));
    let found = fails(FailureKind::UseAfterFree, move || {
        let block = block();
        let other = thread::spawn(move || block.free());
        let _ = block.read();
        other.join().unwrap();
    });
    assert!(found.schedule().contains("held main*"), "{found}");
    fails(FailureKind::UseAfterFree, move || {
        let block = block();
        let other = thread::spawn(move || block.read());
        block.free();
        let _ = other.join();
    });
    // Whoever has it from the beginning need not look at anything that has to do with it.
    fails(FailureKind::UseAfterFree, move || {
        let block = block();
        let flag = Arc::new(AtomicUsize::new(0));
        let other = thread::spawn(move || block.free());
        flag.load(SeqCst);
        let _ = block.read();
        other.join().unwrap();
    });
    // Whatever the order is in which the threads begin.
    each_finds_it(move || {
        let block = block();
        let flag = Arc::new(AtomicUsize::new(0));
        let other = thread::spawn(move || block.read());
        flag.store(1, SeqCst);
        block.free();
        other.join().unwrap();
    });
    // Nor need it be who has spawned the other one, or have made a step before.
    for looks in [true, false] {
        fails(FailureKind::UseAfterFree, move || {
            let block = block();
            let flag = Arc::new(AtomicUsize::new(0));
            let first = thread::spawn(move || {
                if looks {
                    flag.load(SeqCst);
                }
                block.read();
            });
            let second = thread::spawn(move || block.free());
            first.join().unwrap();
            second.join().unwrap();
        });
    }
    let passes = |test: fn()| assert!(Builder::new().explore(test).unwrap().complete);
    passes(|| {
        let block = Block(Box::into_raw(Box::new(7)));
        let other = thread::spawn(move || block.read());
        other.join().unwrap();
        block.free();
    });
}

struct Linked {
    next: AtomicPtr<Linked>,
    plain: u64,
}

/// A list that one thread makes and another frees, while the first one may use one of its nodes.
fn list(nodes: usize, used: Option<usize>) -> impl Fn() + Send + Sync + 'static {
    move || {
        let (sender, receiver) = mpsc::channel();
        let frees = thread::spawn(move || {
            let mut first: *mut Linked = with_exposed_provenance_mut(receiver.recv().unwrap());
            while !first.is_null() {
                // SAFETY: the nodes are this thread's.
                let node = unsafe { Box::from_raw(first) };
                first = node.next.load(SeqCst);
            }
        });
        let mut all: Vec<*mut Linked> = Vec::new();
        for plain in 0..nodes as u64 {
            let next = AtomicPtr::new(null_mut());
            let node = Box::into_raw(Box::new(Linked { next, plain }));
            // SAFETY: the node has just been made.
            unsafe {
                (*node)
                    .next
                    .store(all.last().copied().unwrap_or_default(), SeqCst)
            };
            all.push(node);
        }
        sender.send(all[nodes - 1].expose_provenance()).unwrap();
        AtomicUsize::new(0).fetch_add(1, SeqCst);
        if let Some(used) = used {
            // SAFETY: none, which is what is to be found.
            assert_eq!(unsafe { (*all[used]).plain }, used as u64);
        }
        frees.join().unwrap();
    }
}

/// One try is made for many that differ only in the block, and it finds what each of them would.
#[test]
fn any_of_many_blocks_is_not_to_be_used_and_their_number_costs_no_tries() {
    let reruns = |nodes| Builder::new().check(list(nodes, None)).reruns;
    let few = reruns(30);
    assert!((2..10).contains(&few), "{few}");
    assert_eq!(reruns(300), few);
    for nodes in [30, 1_000] {
        for used in [0, 1, nodes / 2, nodes - 2, nodes - 1] {
            fails(FailureKind::UseAfterFree, list(nodes, Some(used)));
        }
    }
}

#[test]
fn a_schedule_that_guards_blocks_is_read_as_it_is_written() {
    let test = || {
        let place = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(7))));
        let theirs = place.clone();
        // SAFETY: none, which is what is to be found.
        let other = thread::spawn(move || unsafe { *theirs.load(SeqCst) });
        // SAFETY: nobody else frees it.
        drop(unsafe { Box::from_raw(place.load(SeqCst)) });
        other.join().unwrap();
    };
    let found = fails(FailureKind::UseAfterFree, test);
    let schedule = found.schedule().to_string();
    assert!(schedule.starts_with("v2 guarded main"), "{schedule}");
    let replayed = |schedule: &str| {
        let mut builder = Builder::new();
        builder.replay = Some(schedule.to_owned());
        builder.explore(test)
    };
    let again = replayed(&schedule).unwrap_err();
    assert_eq!(again.kind(), FailureKind::UseAfterFree);
    assert_eq!(again.schedule(), schedule);
    // Without that word nobody looks.
    replayed(&schedule.replace(" guarded", "")).unwrap();
}
