//! Is it told where a block is freed that another thread may still use, if nobody would see such a use?

use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::sync::{Arc, Mutex};
use dpor::{Builder, FailureKind, thread};

use super::captured;

/// What a node keeps its link in.
trait Link: Send + 'static {
    fn new(next: *mut Node<Self>) -> Self;
    fn get(&self) -> *mut Node<Self>;
}

struct Node<L: ?Sized> {
    _value: [usize; 2],
    next: L,
}

/// As a plain field.
struct Plain(*mut Node<Plain>);

// SAFETY: nobody writes to it once it is in a stack.
unsafe impl Send for Plain {}

impl Link for Plain {
    fn new(next: *mut Node<Plain>) -> Plain {
        Plain(next)
    }

    fn get(&self) -> *mut Node<Plain> {
        self.0
    }
}

/// In a cell.
struct Watched(UnsafeCell<*mut Node<Watched>>);

// SAFETY: as above.
unsafe impl Send for Watched {}

impl Link for Watched {
    fn new(next: *mut Node<Watched>) -> Watched {
        Watched(UnsafeCell::new(next))
    }

    fn get(&self) -> *mut Node<Watched> {
        // SAFETY: dpor stops a thread before it uses what is gone.
        self.0.with(|next| unsafe { *next })
    }
}

/// A stack whose nodes are freed as soon as they are taken, although others may be about to look into them.
fn stack<L: Link>() {
    let push = |head: &AtomicPtr<Node<L>>| {
        let next = L::new(head.load(Acquire));
        let _value = [0; 2];
        head.store(Box::into_raw(Box::new(Node { _value, next })), Release);
    };
    let pop = |head: &AtomicPtr<Node<L>>| loop {
        let first = head.load(Acquire);
        // SAFETY: the memory stays until the execution ends, even if it was freed.
        let Some(node) = (unsafe { first.as_ref() }) else {
            return;
        };
        let next = node.next.get();
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

/// Not a test of its own: what [`a_use_that_nobody_would_see_is_told_once`] runs.
#[test]
fn child_with_plain_nodes() {
    assert!(Builder::new().check(stack::<Plain>).complete);
    // Nor again by another model.
    for _ in 0..3 {
        assert!(Builder::new().explore(stack::<Plain>).is_ok());
    }
}

#[test]
fn a_use_that_nobody_would_see_is_told_once() {
    let lines = include_str!("raw_uses.rs").lines();
    let line = |text: &str| lines.clone().position(|line| line.contains(text)).unwrap() + 1;
    let text = captured("raw_uses::child_with_plain_nodes", &[]);
    let start = format!(
        "dpor: in the model at tests/limits/raw_uses.rs:{}:",
        line("check(stack::<Plain>)")
    );
    assert!(text.starts_with(&start), "{text}");
    let freed = format!(
        " a block is freed (after tests/limits/raw_uses.rs:{}:",
        line("if head.compare_exchange")
    );
    assert!(text.contains(&freed), "{text}");
    let read = format!(
        "that it has read (head at tests/limits/raw_uses.rs:{}:",
        line("let first = head.load")
    );
    assert!(text.contains(&read), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    // Who follows a schedule knows what to look for.
    let replayed = captured("raw_uses::child_with_plain_nodes", &[("DPOR_REPLAY", "v2")]);
    assert!(!replayed.contains("a block is freed"), "{replayed}");
}

#[test]
fn with_a_cell_in_the_node_the_use_is_found() {
    let failure = Builder::new().explore(stack::<Watched>);
    let failure = failure.expect_err("a node is freed that is still used");
    assert_eq!(failure.kind(), FailureKind::DataRace, "{failure}");
    assert!(
        failure
            .to_string()
            .contains(" frees the block, and nothing orders a read "),
        "{failure}"
    );
}

/// Reads a pointer to what `make` makes, and gives it to `look` if it is still there; another thread takes it away, as the last
/// thing that it does or not, and frees it, while a third one is there.
fn taken_away<T: 'static>(
    make: impl Fn() -> T + Send + Sync + 'static,
    look: impl Fn(&T) + Send + Sync + 'static,
) -> impl Fn() + Send + Sync + 'static {
    let look = std::sync::Arc::new(look);
    move || {
        let place = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(make()))));
        let lock = Arc::new(Mutex::new(()));
        let (place_of_reader, lock_of_reader, look) = (place.clone(), lock.clone(), look.clone());
        let reader = thread::spawn(move || {
            let seen = place_of_reader.load(SeqCst);
            let _held = lock_of_reader.lock().unwrap();
            if !seen.is_null() && place_of_reader.load(SeqCst) == seen {
                // SAFETY: nobody takes it away meanwhile.
                look(unsafe { &*seen });
            }
        });
        let third = thread::spawn(|| ());
        let held = lock.lock().unwrap();
        let taken = place.swap(null_mut(), SeqCst);
        drop(held);
        // SAFETY: it is nobody else's.
        drop(unsafe { Box::from_raw(taken) });
        reader.join().unwrap();
        third.join().unwrap();
    }
}

/// Not tests of their own: what [`blocks_of_which_something_is_seen_are_not_told_of`] runs.
#[test]
fn child_with_nothing_in_it() {
    Builder::new().check(taken_away(|| [0_u64; 5], |_| ()));
}

#[test]
fn child_with_a_cell_in_it() {
    // SAFETY: nobody writes.
    let look = |it: &[UnsafeCell<u64>; 5]| assert_eq!(it[0].with(|it| unsafe { *it }), 0);
    Builder::new().check(taken_away(|| [0; 5].map(UnsafeCell::new), look));
}

#[test]
fn child_with_an_atomic_in_it() {
    let look = |it: &[AtomicUsize; 5]| assert_eq!(it[0].load(SeqCst), 0);
    Builder::new().check(taken_away(|| [0; 5].map(AtomicUsize::new), look));
}

#[test]
fn blocks_of_which_something_is_seen_are_not_told_of() {
    // Where it is freed before the reader looks again, nothing in it was used yet. It may be so in another execution.
    let text = captured("raw_uses::child_with_nothing_in_it", &[]);
    assert!(text.contains(" a block is freed "), "{text}");
    assert_eq!(captured("raw_uses::child_with_a_cell_in_it", &[]), "");
    assert_eq!(captured("raw_uses::child_with_an_atomic_in_it", &[]), "");
}

/// Not a test of its own: what [`what_is_freed_behind_all_uses_is_not_told_of`] runs.
#[test]
fn child_that_frees_when_nobody_reads() {
    Builder::new().check(|| {
        let place = Arc::new(AtomicPtr::new(Box::into_raw(Box::new([0_u64; 5]))));
        let done = Arc::new(AtomicUsize::new(0));
        let look = |place: &AtomicPtr<[u64; 5]>| {
            // SAFETY: it is freed when this is over.
            assert_eq!(unsafe { *place.load(Acquire) }, [0; 5]);
        };
        let (theirs, says) = (place.clone(), done.clone());
        let tells = thread::spawn(move || {
            look(&theirs);
            says.store(1, Release);
            // It is still there when the block is freed.
            while says.load(Acquire) != 2 {
                dpor::hint::spin_loop();
            }
        });
        let theirs = place.clone();
        // To look is the last that it does.
        let is_joined = thread::spawn(move || {
            look(&theirs);
            theirs
        });
        drop(is_joined.join().unwrap());
        while done.load(Acquire) == 0 {
            dpor::hint::spin_loop();
        }
        // SAFETY: nobody uses it any more.
        drop(unsafe { Box::from_raw(place.load(Acquire)) });
        done.store(2, Release);
        tells.join().unwrap();
    });
}

#[test]
fn what_is_freed_behind_all_uses_is_not_told_of() {
    let text = captured("raw_uses::child_that_frees_when_nobody_reads", &[]);
    assert_eq!(text, "");
}
