//! Are schemes that free memory under readers told right from wrong?
//!
//! Each row is a sketch of a scheme with one thing that can be left out, and the line of the standard
//! (C++20) that decides it. What is freed too early is found as a use after the free, or as a free that
//! nothing orders after the use; whichever execution comes first.

use std::ptr::null_mut;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize, fence};
use dpor::{Builder, FailureKind, thread};

/// How the model ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Nothing,
    Race,
    Use,
}

use Found::{Nothing, Race, Use};

fn check(name: &str, why: &str, expected: Found, f: impl Fn() + Send + Sync + 'static) {
    let (found, text) = match Builder::new().explore(f) {
        Ok(report) => {
            assert!(report.complete);
            (Nothing, String::new())
        }
        Err(failure) => match failure.kind() {
            FailureKind::DataRace => (Race, failure.to_string()),
            FailureKind::UseAfterFree => (Use, failure.to_string()),
            _ => panic!("{name}: {failure}"),
        },
    };
    assert_eq!(found, expected, "{name}: {why}\n{text}");
}

/// Plain data behind a pointer.
struct Node {
    data: UnsafeCell<usize>,
    next: *mut Node,
}

fn node(data: usize, next: *mut Node) -> *mut Node {
    let data = UnsafeCell::new(data);
    Box::into_raw(Box::new(Node { data, next }))
}

fn read(node: *mut Node) -> usize {
    // SAFETY: whether the node is there, and nobody writes to it, is what the tests ask; the model
    // keeps freed memory until the execution ends.
    unsafe { (*node).data.with(|data| *data) }
}

fn free(node: *mut Node) {
    // SAFETY: as in `read`.
    drop(unsafe { Box::from_raw(node) });
}

#[test]
fn a_count_of_references_that_frees() {
    struct Inner {
        count: AtomicUsize,
        data: UnsafeCell<usize>,
    }
    struct Mine(*mut Inner);
    // SAFETY: the references are what is to be judged.
    unsafe impl Send for Mine {}
    let counted = |drop_order: Ordering, last: Ordering| {
        move || {
            let inner = Box::into_raw(Box::new(Inner {
                count: AtomicUsize::new(2),
                data: UnsafeCell::new(3),
            }));
            let release = move |mine: Mine| {
                // SAFETY: this thread has a reference.
                let inner = unsafe { &*mine.0 };
                inner.data.with(|_| ());
                if inner.count.fetch_sub(1, drop_order) == 1 {
                    if last != Relaxed {
                        fence(last);
                    }
                    // SAFETY: it was the last one, if the orderings are right.
                    drop(unsafe { Box::from_raw(mine.0) });
                }
            };
            let theirs = Mine(inner);
            let other = thread::spawn(move || release(theirs));
            release(Mine(inner));
            other.join().unwrap();
        }
    };
    let fences = "[atomics.fences] 4: the fence sees what both released";
    check(
        "Release, Acquire fence",
        fences,
        Nothing,
        counted(Release, Acquire),
    );
    let rmw = "[atomics.order] 2: the last one reads from the other";
    check("AcqRel", rmw, Nothing, counted(AcqRel, Relaxed));
    let relaxed = "[atomics.order] 2: a relaxed decrement releases nothing";
    check("Relaxed", relaxed, Race, counted(Relaxed, Acquire));
    let no_fence = "[atomics.order] 2: the last decrement acquires nothing";
    check("no fence", no_fence, Race, counted(Release, Relaxed));
}

/// An `Arc` of the program's own with room for weak references. Its block begins with two counts that both go down to 0,
/// as that of std's does, whose orderings no event shows; these are seen, and they count.
#[test]
fn two_counts_of_references_that_look_like_those_of_std() {
    #[repr(C)]
    struct Inner {
        strong: AtomicUsize,
        weak: AtomicUsize,
        data: UnsafeCell<usize>,
    }
    struct Mine(*mut Inner);
    // SAFETY: the references are what is to be judged.
    unsafe impl Send for Mine {}
    let counted = |drop_order: Ordering, last: Ordering| {
        move || {
            let inner = Box::into_raw(Box::new(Inner {
                strong: AtomicUsize::new(2),
                weak: AtomicUsize::new(1),
                data: UnsafeCell::new(3),
            }));
            let release = move |mine: Mine| {
                // SAFETY: this thread has a reference.
                let inner = unsafe { &*mine.0 };
                inner.data.with(|_| ());
                if inner.strong.fetch_sub(1, drop_order) == 1 {
                    if last != Relaxed {
                        fence(last);
                    }
                    if inner.weak.fetch_sub(1, AcqRel) == 1 {
                        // SAFETY: it was the last one, if the orderings are right.
                        drop(unsafe { Box::from_raw(mine.0) });
                    }
                }
            };
            let theirs = Mine(inner);
            let other = thread::spawn(move || release(theirs));
            release(Mine(inner));
            other.join().unwrap();
        }
    };
    let fences = "[atomics.fences] 4: the fence sees what both released";
    let released = counted(Release, Acquire);
    check("Release, Acquire fence", fences, Nothing, released);
    let relaxed = "[atomics.order] 2: a relaxed decrement releases nothing";
    check("Relaxed", relaxed, Race, counted(Relaxed, Acquire));
    let no_fence = "[atomics.order] 2: the last decrement acquires nothing";
    check("no fence", no_fence, Race, counted(Release, Relaxed));
}

/// Who drops the last reference only hands the block on, to a thread that has never had one and frees it.
#[test]
fn a_count_of_references_and_a_collector_that_frees() {
    struct Inner {
        count: AtomicUsize,
        data: UnsafeCell<usize>,
    }
    let collected = |drop_order: Ordering, last: Ordering, hand_on: Ordering| {
        move || {
            let inner = Box::into_raw(Box::new(Inner {
                count: AtomicUsize::new(2),
                data: UnsafeCell::new(3),
            }));
            let dropped = Arc::new(AtomicPtr::new(null_mut()));
            let collect = |dropped: &AtomicPtr<Inner>| {
                let inner = dropped.swap(null_mut(), Acquire);
                if !inner.is_null() {
                    // SAFETY: it is freed only here, and whether it is used no more is to be judged.
                    drop(unsafe { Box::from_raw(inner) });
                }
            };
            let owners = [(); 2].map(|()| {
                let (inner, dropped) = (AtomicPtr::new(inner), dropped.clone());
                thread::spawn(move || {
                    let pointer = inner.into_inner();
                    // SAFETY: this thread has a reference.
                    let inner = unsafe { &*pointer };
                    inner.data.with(|_| ());
                    if inner.count.fetch_sub(1, drop_order) == 1 {
                        if last != Relaxed {
                            fence(last);
                        }
                        dropped.store(pointer, hand_on);
                    }
                })
            });
            collect(&dropped);
            for owner in owners {
                owner.join().unwrap();
            }
            collect(&dropped);
        }
    };
    let fences = "[atomics.fences] 4: the fence sees what both released";
    let right = collected(Release, Acquire, Release);
    check("Release, Acquire fence", fences, Nothing, right);
    let relaxed = "[atomics.order] 2: a relaxed decrement releases nothing";
    let wrong = collected(Relaxed, Acquire, Release);
    check("Relaxed", relaxed, Race, wrong);
    let no_fence = "[atomics.order] 2: the last decrement acquires nothing";
    let wrong = collected(Release, Relaxed, Release);
    check("no fence", no_fence, Race, wrong);
    let handed_on = "[atomics.order] 2: a relaxed store releases nothing";
    let wrong = collected(Release, Acquire, Relaxed);
    check("handed on by a relaxed store", handed_on, Race, wrong);
}

#[test]
fn a_stack_whose_pop_frees() {
    struct Stack(AtomicPtr<Node>);
    impl Stack {
        fn pop(&self) -> *mut Node {
            loop {
                let head = self.0.load(Acquire);
                if head.is_null() {
                    return head;
                }
                // The cell stands for the whole node: `next` itself is not watched.
                read(head);
                // SAFETY: as in `read`.
                let next = unsafe { (*head).next };
                if self.0.compare_exchange(head, next, AcqRel, Acquire).is_ok() {
                    return head;
                }
            }
        }
    }
    let pops = |at_once: bool| {
        move || {
            let stack = Arc::new(Stack(AtomicPtr::new(node(1, node(2, null_mut())))));
            let theirs = stack.clone();
            let pop = move |stack: &Stack| {
                let node = stack.pop();
                if at_once {
                    free(node);
                }
                node as usize
            };
            let other = thread::spawn(move || pop(&theirs));
            let mine = pop(&stack);
            let theirs = other.join().unwrap();
            if !at_once {
                free(mine as *mut Node);
                free(theirs as *mut Node);
            }
        }
    };
    let why = "[basic.stc.general] 4: the other pop may still look into the node";
    check("freed by the pop", why, Race, pops(true));
    let why = "[thread.thread.member] 5: the join comes after every use";
    check("freed after the join", why, Nothing, pops(false));
}

/// A value that readers look at while a writer replaces it.
struct Shared {
    current: AtomicPtr<Node>,
    /// What the reader protects, or whether it reads at all.
    guard: AtomicPtr<Node>,
}

/// One reader, and a writer that replaces the node and frees the old one if `unused` says so.
fn replaced(
    reader: impl Fn(&Shared) + Clone + Send + Sync + 'static,
    unused: impl Fn(&Shared, *mut Node) -> bool + Send + Sync + 'static,
) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new(Shared {
            current: AtomicPtr::new(node(1, null_mut())),
            guard: AtomicPtr::new(null_mut()),
        });
        let (theirs, reader) = (shared.clone(), reader.clone());
        let other = thread::spawn(move || reader(&theirs));
        let old = shared.current.swap(node(2, null_mut()), SeqCst);
        let freed = unused(&shared, old);
        if freed {
            free(old);
        }
        other.join().unwrap();
        if !freed {
            free(old);
        }
        free(shared.current.load(Relaxed));
    }
}

#[test]
fn hazard_pointers() {
    let reader = |validate: bool, clear: Ordering| {
        move |shared: &Shared| {
            let mut node = shared.current.load(Acquire);
            loop {
                shared.guard.store(node, SeqCst);
                let now = shared.current.load(SeqCst);
                if !validate || now == node {
                    break;
                }
                node = now;
            }
            read(node);
            shared.guard.store(null_mut(), clear);
        }
    };
    let unused = |shared: &Shared, old| shared.guard.load(SeqCst) != old;
    let why = "[atomics.order] 4: who is not seen to protect it sees that it was replaced";
    check(
        "looks again",
        why,
        Nothing,
        replaced(reader(true, Release), unused),
    );
    let why = "[basic.stc.general] 4: it was replaced before it was protected";
    check(
        "does not look again",
        why,
        Use,
        replaced(reader(false, Release), unused),
    );
    let why = "[atomics.order] 2: the cleared hazard tells nothing of the read before";
    check(
        "clears relaxed",
        why,
        Race,
        replaced(reader(true, Relaxed), unused),
    );
}

#[test]
fn epochs() {
    // One epoch is enough to show it: whoever reads is pinned.
    let pin = std::ptr::dangling_mut::<Node>();
    let pin = pin as usize;
    let reader = |pin_first: bool, unpin: Ordering| {
        move |shared: &Shared| {
            let early = shared.current.load(Acquire);
            shared.guard.store(pin as *mut Node, SeqCst);
            let node = match pin_first {
                true => shared.current.load(SeqCst),
                false => early,
            };
            read(node);
            shared.guard.store(null_mut(), unpin);
        }
    };
    let unused = |shared: &Shared, _| shared.guard.load(SeqCst).is_null();
    let why = "[atomics.order] 4: who pins after the look sees the new node";
    check(
        "pins first",
        why,
        Nothing,
        replaced(reader(true, Release), unused),
    );
    let why = "[basic.stc.general] 4: the node was got before the pin was seen";
    check(
        "pins too late",
        why,
        Use,
        replaced(reader(false, Release), unused),
    );
    let why = "[atomics.order] 2: the unpin tells nothing of the read before";
    check(
        "unpins relaxed",
        why,
        Race,
        replaced(reader(true, Relaxed), unused),
    );
}

#[test]
fn sequence_locks() {
    struct SeqLock {
        sequence: AtomicUsize,
        plain: UnsafeCell<usize>,
        atomic: AtomicUsize,
    }
    // SAFETY: whether accesses are ordered is what the test asks.
    unsafe impl Sync for SeqLock {}
    let run = |plain: bool| {
        move || {
            let lock = Arc::new(SeqLock {
                sequence: AtomicUsize::new(0),
                plain: UnsafeCell::new(0),
                atomic: AtomicUsize::new(0),
            });
            let theirs = lock.clone();
            let other = thread::spawn(move || {
                theirs.sequence.store(1, Relaxed);
                fence(Release);
                match plain {
                    // SAFETY: as above.
                    true => theirs.plain.with_mut(|data| unsafe { *data = 5 }),
                    false => theirs.atomic.store(5, Relaxed),
                }
                theirs.sequence.store(2, Release);
            });
            let before = lock.sequence.load(Acquire);
            let data = match plain {
                // SAFETY: as above.
                true => lock.plain.with(|data| unsafe { *data }),
                false => lock.atomic.load(Relaxed),
            };
            fence(Acquire);
            let after = lock.sequence.load(Relaxed);
            if before == after && before.is_multiple_of(2) {
                assert_eq!(data, if before == 2 { 5 } else { 0 });
            }
            other.join().unwrap();
        }
    };
    let why = "[intro.races] 21: that the value is thrown away does not make the read ordered";
    check("plain data", why, Race, run(true));
    let why = "[intro.races] 21: atomics do not race, and the sequence tells torn reads";
    check("relaxed data", why, Nothing, run(false));
}
