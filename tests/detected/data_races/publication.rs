//! Who may use what is in a new block, and what does the report say if its maker has told nobody?

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::hint::spin_loop;
use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize, fence};
use dpor::thread;

use dpor::{Builder, FailureKind};

use super::{Plain, check, race};

/// A node that one thread makes and another one finds.
struct Node {
    value: UnsafeCell<usize>,
    mark: AtomicUsize,
}

/// One thread publishes a node with this ordering; another one, that sees it with this, does this to it.
fn published(
    write: Ordering,
    read: Ordering,
    look: impl Fn(&Node) + Copy + Send + Sync + 'static,
) -> impl Fn() + Send + Sync + 'static {
    move || {
        let head = Arc::new(AtomicPtr::new(std::ptr::null_mut()));
        let theirs = head.clone();
        let other = thread::spawn(move || {
            let node = Box::new(Node {
                value: UnsafeCell::new(7),
                mark: AtomicUsize::new(0),
            });
            theirs.store(Box::into_raw(node), write);
        });
        let found: *mut Node = head.load(read);
        // SAFETY: nobody frees the node before both threads are at their ends.
        if let Some(node) = unsafe { found.as_ref() } {
            look(node);
        }
        other.join().unwrap();
        // SAFETY: the other thread has ended, and this one does not look any more.
        drop(unsafe { Box::from_raw(head.load(Relaxed)) });
    }
}

#[test]
fn what_is_in_a_new_block_may_be_used_by_who_has_learnt_of_it() {
    // SAFETY: whether the access is ordered is what is to be found.
    let value = |node: &Node| assert_eq!(node.value.with(|it| unsafe { *it }), 7);
    let mark = |node: &Node| assert_eq!(node.mark.load(Acquire), 0);
    let again = |node: &Node| {
        node.mark.store(1, Relaxed);
    };
    for (write, read, racy) in [
        (Release, Acquire, false),
        (SeqCst, SeqCst, false),
        (Relaxed, Acquire, true),
        (Release, Relaxed, true),
        (Relaxed, Relaxed, true),
    ] {
        let why = match racy {
            false => "the pointer is published",
            true => "the node is made without anybody being told",
        };
        check("a cell in a node", why, racy, published(write, read, value));
        check(
            "an atomic in a node",
            why,
            racy,
            published(write, read, mark),
        );
        check(
            "a store to a node",
            why,
            racy,
            published(write, read, again),
        );
    }
}

#[test]
fn a_report_says_what_was_made_where_and_what_would_have_told_of_it() {
    // SAFETY: as above.
    let value = |node: &Node| assert_eq!(node.value.with(|it| unsafe { *it }), 7);
    let text = race(published(Relaxed, Acquire, value)).expect("a race");
    let first = text.lines().next().unwrap_or_default();
    assert!(first.starts_with("data race: main uses "), "{text}");
    assert!(
        first.contains("nothing orders that behind the making of it by main.1"),
        "{text}"
    );
    // A build without symbols has the line of the event before.
    let made = text.lines().nth(1).unwrap_or_default();
    assert!(made.starts_with("  main.1     allocate "), "{text}");
    assert!(
        made.contains("tests/detected/data_races/publication.rs:"),
        "{text}"
    );
    assert!(text.contains("is Relaxed, and main's load"), "{text}");
    // That both have used it is no answer to how the one should have learnt of it.
    let text = race(|| {
        let head = Arc::new(AtomicPtr::new(std::ptr::null_mut()));
        let theirs = head.clone();
        let other = thread::spawn(move || {
            let mark = Box::new(AtomicUsize::new(0));
            mark.fetch_add(1, Relaxed);
            theirs.store(Box::into_raw(mark), Relaxed);
        });
        let found: *mut AtomicUsize = head.load(Acquire);
        // SAFETY: it is not freed before both threads are at their ends.
        if let Some(mark) = unsafe { found.as_ref() } {
            mark.fetch_add(1, Relaxed);
        }
        other.join().unwrap();
        // SAFETY: the other thread has ended, and this one does not look any more.
        drop(unsafe { Box::from_raw(head.load(Relaxed)) });
    });
    let text = text.expect("a race");
    assert!(
        text.contains("is Relaxed, and main's load theirs"),
        "{text}"
    );
}

#[test]
fn what_was_handed_over_by_a_primitive_that_is_not_swapped_is_told_so() {
    const HINT: &str = "  nothing that dpor sees has brought it to main.2: swap the import";
    let text = race(|| {
        let slot = std::sync::Arc::new(std::sync::Mutex::new(None));
        let theirs = slot.clone();
        let one = thread::spawn(move || {
            *theirs.lock().unwrap() = Some(Box::new(AtomicUsize::new(1)));
        });
        let other = thread::spawn(move || {
            if let Some(number) = &*slot.lock().unwrap() {
                number.load(Relaxed);
            }
        });
        one.join().unwrap();
        other.join().unwrap();
    });
    let text = text.expect("a race");
    assert!(text.contains(HINT), "{text}");
    // A third thread hands it on, which is seen, but too weak.
    let text = race(|| {
        let [first, second] = [0; 2].map(|_| Arc::new(AtomicPtr::new(std::ptr::null_mut())));
        let (here, there) = (first.clone(), second.clone());
        let one = thread::spawn(move || {
            let number = Box::leak(Box::new(AtomicUsize::new(1)));
            here.store(number, Relaxed);
        });
        let other = thread::spawn(move || {
            let number: *mut AtomicUsize = there.load(Relaxed);
            // SAFETY: it is leaked.
            if let Some(number) = unsafe { number.as_ref() } {
                number.load(Relaxed);
            }
        });
        second.store(first.load(Relaxed), Relaxed);
        one.join().unwrap();
        other.join().unwrap();
        let number = first.load(Relaxed);
        // SAFETY: both threads have ended.
        drop(unsafe { Box::from_raw(number) });
    });
    let text = text.expect("a race");
    assert!(!text.contains("nothing that dpor sees"), "{text}");
}

/// A thread that waits puts what is to wake it, which is on its stack, where others find it, as the queues of locks do.
fn waits_on_its_stack(write: Ordering, read: Ordering) -> impl Fn() + Send + Sync + 'static {
    struct Waiter {
        ticket: UnsafeCell<usize>,
        woken: AtomicUsize,
    }
    move || {
        let queue = Arc::new(AtomicPtr::new(std::ptr::null_mut()));
        let theirs = queue.clone();
        let waits = thread::spawn(move || {
            let waiter = Waiter {
                ticket: UnsafeCell::new(7),
                woken: AtomicUsize::new(0),
            };
            theirs.store((&raw const waiter).cast_mut(), write);
            while waiter.woken.load(Acquire) == 0 {
                spin_loop();
            }
        });
        let mut first: *mut Waiter = queue.load(read);
        while first.is_null() {
            spin_loop();
            first = queue.load(read);
        }
        // SAFETY: it waits until it has been woken.
        let first = unsafe { &*first };
        // SAFETY: whether the access is ordered is what is to be found.
        assert_eq!(first.ticket.with(|it| unsafe { *it }), 7);
        first.woken.store(1, Release);
        waits.join().unwrap();
    }
}

#[test]
fn what_is_on_the_stack_of_another_thread_may_be_used_by_who_has_learnt_of_it() {
    for (write, read, racy) in [
        (Release, Acquire, false),
        (Relaxed, Acquire, true),
        (Release, Relaxed, true),
    ] {
        let why = "the pointer is all that comes of its making";
        check("a waiter", why, racy, waits_on_its_stack(write, read));
    }
    let text = race(waits_on_its_stack(Relaxed, Acquire)).expect("a race");
    let lines: Vec<&str> = text.lines().collect();
    let first = "data race: main uses first.ticket, and nothing orders that behind the making of it by main.1";
    assert!(lines[0].starts_with(first), "{text}");
    assert_eq!(
        lines[1].trim_end(),
        "  main.1     make   a variable on its stack",
        "{text}"
    );
    assert!(text.contains("is Relaxed, and main's load"), "{text}");
}

/// No cell is in the test, so nothing watches plain memory before the variable is used.
#[test]
fn an_atomic_on_the_stack_of_another_thread_is_enough_for_a_race() {
    let waits = |write: Ordering, read: Ordering| {
        move || {
            let place = Arc::new(AtomicPtr::new(std::ptr::null_mut()));
            let theirs = place.clone();
            let waits = thread::spawn(move || {
                let woken = AtomicUsize::new(0);
                theirs.store((&raw const woken).cast_mut(), write);
                thread::park();
                assert_eq!(woken.load(Relaxed), 1);
            });
            let found: *mut AtomicUsize = place.load(read);
            dpor::assume(!found.is_null());
            // SAFETY: it waits until it is woken below.
            unsafe { &*found }.store(1, Relaxed);
            waits.thread().unpark();
            waits.join().unwrap();
        }
    };
    for (write, read, racy) in [
        (Release, Acquire, false),
        (Relaxed, Acquire, true),
        (Release, Relaxed, true),
    ] {
        let mut builder = Builder::new();
        // The `park` stands in no loop.
        builder.thorough = dpor::Thorough::Off;
        let explored = builder.explore(waits(write, read));
        let failed = explored.err().map(|failure| failure.kind());
        let expected = racy.then_some(FailureKind::DataRace);
        assert_eq!(failed, expected, "{write:?}, {read:?}");
    }
}

/// What is told by an operation that comes before the variable is made tells nothing of it.
#[test]
fn only_what_comes_behind_the_making_of_a_variable_is_said_to_order_its_use() {
    let text = race(|| {
        let shared = Arc::new((AtomicUsize::new(0), AtomicPtr::new(std::ptr::null_mut())));
        let theirs = shared.clone();
        let waits = thread::spawn(move || {
            theirs.0.store(1, Relaxed);
            let woken = AtomicUsize::new(0);
            theirs.1.store((&raw const woken).cast_mut(), Relaxed);
            thread::park();
        });
        let first = shared.0.load(Relaxed);
        let found: *mut AtomicUsize = shared.1.load(Relaxed);
        dpor::assume(first == 1 && !found.is_null());
        // SAFETY: it waits until it is woken below.
        unsafe { &*found }.store(1, Relaxed);
        waits.thread().unpark();
        waits.join().unwrap();
    });
    let text = text.expect("a race");
    assert!(
        text.contains("store to theirs.1 at") && text.contains("with at least Release and Acquire"),
        "{text}"
    );
    assert!(!text.contains("store to theirs.0 at"), "{text}");
}

/// Each method has its own name for the node, and the report has one.
#[test]
fn what_is_used_too_early_is_called_what_the_table_calls_it() {
    struct Node {
        next: AtomicUsize,
    }
    fn strip(node: *mut Node) -> *mut Node {
        node.map_addr(|address| address & !1)
    }
    let text = race(|| {
        let head = Arc::new(AtomicPtr::new(std::ptr::null_mut::<Node>()));
        let theirs = head.clone();
        let other = thread::spawn(move || {
            let node = Box::leak(Box::new(Node {
                next: AtomicUsize::new(0),
            }));
            dpor::alloc::may_leak(&*node);
            node.next.store(1, Relaxed);
            theirs.store(node, Relaxed);
        });
        let found = head.load(Acquire);
        if !found.is_null() {
            // SAFETY: whether the access is ordered is what is to be found.
            unsafe { (*strip(found)).next.load(Relaxed) };
        }
        other.join().unwrap();
    });
    let text = text.expect("a race");
    let first =
        "data race: main uses node.next, and nothing orders that behind the making of it by main.1";
    assert!(text.starts_with(first), "{text}");
}

#[test]
fn a_reference_that_comes_too_late_is_not_called_publication() {
    for (leave, come) in [
        ("fetch_sub", Relaxed),
        ("fetch_sub", Acquire),
        ("swap", Relaxed),
    ] {
        let text = race(move || {
            let shared = Arc::new((AtomicUsize::new(1), Plain::default()));
            let theirs = shared.clone();
            let last = thread::spawn(move || {
                let references = &theirs.0;
                let left = match leave {
                    "swap" => references.swap(0, Release),
                    _ => references.fetch_sub(1, Release),
                };
                if left == 1 {
                    fence(Acquire);
                    theirs.1.set(7);
                }
            });
            // One step too many: what was looked at may have gone when the reference is taken.
            if shared.0.load(Relaxed) > 0 {
                shared.0.fetch_add(1, come);
                shared.1.get();
            }
            last.join().unwrap();
        });
        let text = text.expect("a race");
        assert!(!text.contains("published before"), "{leave}: {text}");
    }
}

/// What two threads have for a lock made of atomics, and what it protects.
#[derive(Default)]
struct Protocol {
    choosing: [AtomicUsize; 2],
    says: [AtomicUsize; 2],
    turn: AtomicUsize,
    data: Plain,
}

impl Protocol {
    /// Peterson's lock, in the wrong order: whose turn it is comes before the wish.
    fn turn_before_wish(&self, me: usize) {
        self.turn.store(1 - me, SeqCst);
        self.says[me].store(1, SeqCst);
        while self.says[1 - me].load(SeqCst) == 1 && self.turn.load(SeqCst) == 1 - me {
            spin_loop();
        }
    }

    /// Takes a ticket behind the other's, as in Lamport's bakery.
    fn take_a_ticket(&self, me: usize) {
        let theirs = self.says[1 - me].load(SeqCst);
        self.says[me].store(theirs + 1, SeqCst);
    }

    /// Lamport's bakery, in which nobody waits for who is choosing a ticket.
    fn choosing_is_not_awaited(&self, me: usize) {
        self.take_a_ticket(me);
        let wait = |theirs| theirs != 0 && (theirs, 1 - me) < (self.says[me].load(SeqCst), me);
        while wait(self.says[1 - me].load(SeqCst)) {
            spin_loop();
        }
    }

    /// Lamport's bakery, in which the first thread waits for nobody behind it.
    fn only_the_second_waits(&self, me: usize) {
        self.choosing[me].store(1, SeqCst);
        self.take_a_ticket(me);
        self.choosing[me].store(0, SeqCst);
        if me == 0 {
            return;
        }
        while self.choosing[0].load(SeqCst) == 1 {
            spin_loop();
        }
        let ticket = self.says[1].load(SeqCst);
        while (1..=ticket).contains(&self.says[0].load(SeqCst)) {
            spin_loop();
        }
    }
}

#[test]
fn what_a_thread_says_to_get_a_lock_is_not_called_publication() {
    type Enter = fn(&Protocol, usize);
    let protocols: [(&str, Enter); 3] = [
        ("Peterson", Protocol::turn_before_wish),
        ("bakery", Protocol::choosing_is_not_awaited),
        ("half a bakery", Protocol::only_the_second_waits),
    ];
    let texts = protocols.map(|(name, lock)| {
        let text = race(move || {
            let protocol = Arc::new(Protocol::default());
            let theirs = protocol.clone();
            let in_turn = move |protocol: &Protocol, me: usize| {
                lock(protocol, me);
                protocol.data.set(me);
                protocol.says[me].store(0, SeqCst);
            };
            let other = thread::spawn(move || in_turn(&theirs, 1));
            in_turn(&protocol, 0);
            other.join().unwrap();
        });
        (name, text.expect("a race"))
    });
    let called = texts.map(|(name, text)| (name, text.contains("published before")));
    assert_eq!(called, protocols.map(|(name, _)| (name, false)));
}

#[test]
fn who_has_looked_at_what_only_others_write_may_have_published_too_early() {
    let text = race(|| {
        let shared = Arc::new((AtomicUsize::new(3), AtomicUsize::new(0), Plain::default()));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            let (limit, ready, data) = &*theirs;
            ready.store(1, Release);
            data.set(limit.load(Acquire));
        });
        let (_, ready, data) = &*shared;
        if ready.load(Acquire) == 1 {
            data.get();
        }
        other.join().unwrap();
    });
    let text = text.expect("a race");
    assert!(
        text.contains("published before it was written: main.1 told by \"ready := 1 (was 0)\""),
        "{text}"
    );
}

#[test]
fn what_was_published_before_something_newer_was_seen_is_not_called_too_early() {
    let text = race(|| {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), Plain::default()));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            let (begun, ready, data) = &*theirs;
            begun.store(1, Release);
            data.set(7);
            ready.store(1, Relaxed);
        });
        let (begun, ready, data) = &*shared;
        if begun.load(Acquire) == 1 && ready.load(Acquire) == 1 {
            data.get();
        }
        other.join().unwrap();
    });
    let text = text.expect("a race");
    assert!(text.contains("store to ready"), "{text}");
    assert!(text.contains("is Relaxed, and main's load"), "{text}");
    assert!(!text.contains("published before"), "{text}");
}

/// Makes a value once: whoever changes the flag first writes, and everybody else reads.
fn made_once(
    is_first: impl Fn(&AtomicUsize) -> bool + Copy + Send + Sync + 'static,
    then: impl Fn(&AtomicUsize) + Copy + Send + Sync + 'static,
) -> Option<String> {
    race(move || {
        let shared: Arc<(AtomicUsize, Plain)> = Arc::default();
        let theirs = shared.clone();
        let look = move |(flag, data): &(AtomicUsize, Plain)| {
            if is_first(flag) {
                data.set(7);
                then(flag);
            } else {
                data.get();
            }
        };
        let other = thread::spawn(move || look(&theirs));
        look(&shared);
        other.join().unwrap();
    })
}

fn takes(flag: &AtomicUsize) -> bool {
    flag.compare_exchange(0, 1, SeqCst, Acquire).is_ok()
}

#[test]
fn who_claims_before_it_writes_and_tells_no_more_has_published_too_early() {
    type First = fn(&AtomicUsize) -> bool;
    let ways: [(&str, First); 4] = [
        ("swap", |flag| flag.swap(1, AcqRel) == 0),
        ("fetch_or", |flag| flag.fetch_or(1, SeqCst) == 0),
        ("compare_exchange", takes),
        ("look and take", |flag| {
            flag.load(Acquire) == 0 && takes(flag)
        }),
    ];
    for (name, is_first) in ways {
        let text = made_once(is_first, |_| ()).expect("a race");
        let said = "published before it was written: main told by \"";
        assert!(text.contains(said), "{name}: {text}");
    }
}

/// Whoever finds it taken does not wait, as it should.
#[test]
fn who_takes_a_lock_or_a_turn_before_it_writes_is_not_said_to_have_published() {
    let texts = [
        // It gives the lock back.
        made_once(takes, |flag| flag.store(0, Release)),
        // It says by the same that it has written.
        made_once(takes, |flag| flag.store(2, Release)),
        // It takes an order from the value, and so does the reader.
        made_once(|flag| flag.fetch_add(1, AcqRel) == 0, |_| ()),
        // It says so by something else.
        race(|| {
            let shared: Arc<(AtomicUsize, AtomicUsize, Plain)> = Arc::default();
            let theirs = shared.clone();
            let look = |(begun, done, data): &(AtomicUsize, AtomicUsize, Plain)| {
                if begun.swap(1, AcqRel) == 0 {
                    data.set(7);
                    done.store(1, Release);
                }
                data.get();
            };
            let other = thread::spawn(move || look(&theirs));
            look(&shared);
            other.join().unwrap();
        }),
        // Another thread gives the lock back for it, once it has been joined.
        race(|| {
            let shared: Arc<(AtomicUsize, Plain)> = Arc::default();
            let [theirs, last] = [shared.clone(), shared.clone()];
            let writes = thread::spawn(move || {
                if takes(&theirs.0) {
                    theirs.1.set(7);
                }
            });
            let gives_back = thread::spawn(move || {
                writes.join().unwrap();
                last.0.store(0, Release);
            });
            if !takes(&shared.0) {
                shared.1.get();
            }
            gives_back.join().unwrap();
        }),
        // Both write.
        race(|| {
            let shared: Arc<(AtomicUsize, Plain)> = Arc::default();
            let theirs = shared.clone();
            let write = |(lock, data): &(AtomicUsize, Plain)| {
                let _ = takes(lock);
                data.set(7);
            };
            let other = thread::spawn(move || write(&theirs));
            write(&shared);
            other.join().unwrap();
        }),
    ];
    let said = texts.map(|text| text.expect("a race").contains("published before"));
    assert_eq!(said, [false; 6]);
}

#[test]
fn nobody_knows_of_a_node_what_was_known_in_the_execution_before() {
    check("a node of a late thread", "[intro.races] 21", true, || {
        // From the eighth thread on clocks have their numbers elsewhere.
        for _ in 0..9 {
            thread::spawn(|| ()).join().unwrap();
        }
        let head = AtomicPtr::new(std::ptr::null_mut::<Node>());
        let shared = Arc::new((AtomicUsize::new(0), head));
        let theirs = shared.clone();
        let maker = thread::spawn(move || {
            let node = Node {
                value: UnsafeCell::new(7),
                mark: AtomicUsize::new(0),
            };
            node.value.with(|_| ());
            theirs.1.store(Box::into_raw(Box::new(node)), Relaxed);
            theirs.0.store(1, Release);
        });
        let theirs = shared.clone();
        let taker = thread::spawn(move || {
            theirs.0.load(Acquire);
            // SAFETY: it is freed when both threads are at their ends.
            if let Some(node) = unsafe { theirs.1.load(Relaxed).as_ref() } {
                node.mark.load(Relaxed);
            }
        });
        maker.join().unwrap();
        taker.join().unwrap();
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(shared.1.load(Relaxed)) });
    });
}
