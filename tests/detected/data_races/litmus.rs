//! Is each ordering of a well-known algorithm needed exactly where the language needs it?
//!
//! Plain memory stands for what the algorithm protects or hands over. Values are those of some interleaving, so an
//! ordering is only needed for what it orders. Some algorithms need one more on a machine whose values are not, and their
//! rows say so.

use std::ptr::null_mut;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::hint::spin_loop;
use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize, fence};
use dpor::thread;

use super::{Plain, check};

/// An ordering in place of the one at this position: whether there is a race then, and why.
type Row = (usize, Ordering, bool, &'static str);

/// Runs the algorithm with the orderings that are `right`, and with each of these rows.
#[track_caller]
fn weakened<const N: usize>(
    name: &'static str,
    right: [Ordering; N],
    rows: &[Row],
    run: fn([Ordering; N]),
) {
    check(name, "as it should be", false, move || run(right));
    for &(at, order, racy, why) in rows {
        let mut orders = right;
        orders[at] = order;
        let name = format!("{name}: {order:?} for {:?} at {at}", right[at]);
        check(&name, why, racy, move || run(orders));
    }
}

/// Runs `f` in so many threads, which are numbered from 0, with what they share.
fn together<S: Default + Send + Sync + 'static>(
    threads: usize,
    f: impl Fn(&S, usize) + Clone + Send + 'static,
) {
    let shared = Arc::new(S::default());
    let spawn = |me| {
        let (shared, f) = (shared.clone(), f.clone());
        thread::spawn(move || f(&shared, me))
    };
    let others: Vec<_> = (1..threads).map(spawn).collect();
    f(&shared, 0);
    for other in others {
        other.join().unwrap();
    }
}

const RELEASE: &str = "what came before is not published";
const ACQUIRE: &str = "what was published is not learnt";
const NOTHING: &str = "it hands nothing over";
const VALUES: &str = "it matters only for values, and they are those of an interleaving";

#[derive(Default)]
struct Two {
    x: AtomicUsize,
    y: AtomicUsize,
    data: Plain,
    other: Plain,
}

#[test]
fn a_message_that_is_passed_on() {
    let rows = [
        (0, Relaxed, true, RELEASE),
        (1, Relaxed, true, ACQUIRE),
        (2, Relaxed, true, RELEASE),
        (3, Relaxed, true, ACQUIRE),
    ];
    weakened(
        "a chain of three",
        [Release, Acquire, Release, Acquire],
        &rows,
        |[said, read, told, heard]| {
            together(3, move |it: &Two, me| match me {
                0 => {
                    it.data.set(1);
                    it.x.store(1, said);
                }
                1 if it.x.load(read) == 1 => it.y.store(1, told),
                1 => {}
                _ if it.y.load(heard) == 1 => assert_eq!(it.data.get(), 1),
                _ => {}
            });
        },
    );
}

#[test]
fn two_messages_to_two_readers() {
    let rows = [
        (0, Relaxed, true, RELEASE),
        (1, Relaxed, true, ACQUIRE),
        (0, SeqCst, false, "it is a release operation, too"),
    ];
    weakened(
        "independent reads of independent writes",
        [Release, Acquire],
        &rows,
        |[write, read]| {
            together(4, move |it: &Two, me| match me {
                0 => {
                    it.data.set(1);
                    it.x.store(1, write);
                }
                1 => {
                    it.other.set(1);
                    it.y.store(1, write);
                }
                _ => {
                    if it.x.load(read) == 1 {
                        it.data.get();
                    }
                    if it.y.load(read) == 1 {
                        it.other.get();
                    }
                }
            });
        },
    );
}

#[test]
fn fences_of_all_threads_without_an_atomic_between_them() {
    let why = "[atomics.fences] 2: a fence synchronises through an atomic that one thread writes and the other reads";
    check("two fences and nothing else", why, true, || {
        together(2, |it: &Two, me| {
            if me == 0 {
                it.data.set(1);
                fence(SeqCst);
            } else {
                fence(SeqCst);
                it.data.get();
            }
        });
    });
    check("a value that both have only written", why, true, || {
        together(2, |it: &Two, me| {
            if me == 0 {
                it.data.set(1);
                fence(SeqCst);
                it.x.store(1, Relaxed);
            } else {
                it.x.store(2, Relaxed);
                fence(SeqCst);
                it.data.get();
            }
        });
    });
    let why = "[atomics.order] 4: the order of all fences is not part of happens before";
    check(
        "a load that came too early to see the store",
        why,
        true,
        || {
            together(2, |it: &Two, me| {
                if me == 0 {
                    it.data.set(1);
                    fence(SeqCst);
                    if it.x.load(Relaxed) == 0 {
                        it.y.store(1, Relaxed);
                    }
                } else {
                    it.x.store(1, Relaxed);
                    fence(SeqCst);
                    if it.y.load(Relaxed) == 1 {
                        it.data.get();
                    }
                }
            });
        },
    );
    let why = "[atomics.order] 2: a SeqCst load acquires only from what releases";
    check("SeqCst loads of a relaxed store", why, true, || {
        together(2, |it: &Two, me| {
            if me == 0 {
                it.data.set(1);
                it.x.store(1, Relaxed);
            } else if it.x.load(SeqCst) == 1 {
                it.data.get();
            }
        });
    });
}

#[test]
fn whoever_sees_that_the_other_does_not_want_to() {
    // [atomics.fences]: neither fence is behind the load that lets its thread in.
    let rows = [(0, Relaxed, true, ACQUIRE), (1, Relaxed, true, RELEASE)];
    weakened(
        "Dekker, who does not wait, with SeqCst fences",
        [Acquire, Release],
        &rows,
        |[look, leave]| {
            together(2, move |it: &[(AtomicUsize, Plain); 2], me| {
                it[me].0.store(1, Relaxed);
                fence(SeqCst);
                if it[1 - me].0.load(look) == 0 {
                    it[0].1.set(me);
                }
                it[me].0.store(0, leave);
            });
        },
    );
}

#[test]
fn locks_that_stand_in_line() {
    #[derive(Default)]
    struct Line {
        tail: AtomicUsize,
        serving: AtomicUsize,
        locked: [AtomicUsize; 3],
        next: [AtomicUsize; 3],
        data: Plain,
    }
    let rows = [
        (0, Acquire, false, NOTHING),
        (1, Relaxed, true, ACQUIRE),
        (2, Relaxed, true, RELEASE),
    ];
    weakened(
        "a ticket lock",
        [Relaxed, Acquire, Release],
        &rows,
        |[take, wait, serve]| {
            together(2, move |line: &Line, me| {
                let ticket = line.tail.fetch_add(1, take);
                while line.serving.load(wait) != ticket {
                    spin_loop();
                }
                line.data.set(me);
                line.serving.store(ticket + 1, serve);
            });
        },
    );
    let rows = [
        (0, Relaxed, false, VALUES),
        (1, Relaxed, true, ACQUIRE),
        (2, Relaxed, true, RELEASE),
    ];
    weakened(
        "CLH",
        [AcqRel, Acquire, Release],
        &rows,
        |[enter, wait, leave]| {
            together(2, move |line: &Line, me| {
                // The first node is nobody's, and not locked.
                let mine = me + 1;
                line.locked[mine].store(1, Relaxed);
                let before = line.tail.swap(mine, enter);
                while line.locked[before].load(wait) == 1 {
                    spin_loop();
                }
                line.data.set(me);
                line.locked[mine].store(0, leave);
            });
        },
    );
    let rows = [
        (
            0,
            Release,
            true,
            "who finds the line empty learns nothing of who left it",
        ),
        (0, Acquire, false, VALUES),
        (1, Relaxed, false, VALUES),
        (2, Relaxed, true, ACQUIRE),
        (3, Relaxed, false, VALUES),
        (
            4,
            Relaxed,
            true,
            "who leaves the line empty publishes nothing",
        ),
        (5, Relaxed, true, RELEASE),
    ];
    weakened(
        "MCS",
        [AcqRel, Release, Acquire, Acquire, Release, Release],
        &rows,
        |[enter, link, wait, look, close, hand_over]| {
            together(2, move |line: &Line, me| {
                let mine = me + 1;
                line.locked[mine].store(1, Relaxed);
                let before = line.tail.swap(mine, enter);
                if before != 0 {
                    line.next[before].store(mine, link);
                    while line.locked[mine].load(wait) == 1 {
                        spin_loop();
                    }
                }
                line.data.set(me);
                if line.next[mine].load(look) == 0
                    && (line.tail.compare_exchange(mine, 0, close, Relaxed)).is_ok()
                {
                    return;
                }
                while line.next[mine].load(look) == 0 {
                    spin_loop();
                }
                line.locked[line.next[mine].load(look)].store(0, hand_over);
            });
        },
    );
}

#[test]
fn locks_with_one_word() {
    let rows = [
        (0, Acquire, false, NOTHING),
        (1, Relaxed, true, ACQUIRE),
        (1, Release, true, ACQUIRE),
        (2, Relaxed, true, RELEASE),
    ];
    weakened(
        "test and test and set",
        [Relaxed, Acquire, Release],
        &rows,
        |[look, lock, unlock]| {
            together(2, move |it: &Two, me| {
                while it.x.load(look) == 1 || (it.x.compare_exchange(0, 1, lock, Relaxed)).is_err()
                {
                    spin_loop();
                }
                it.data.set(me);
                it.x.store(0, unlock);
            });
        },
    );
    const WRITER: usize = 100;
    let rows = [
        (0, Relaxed, true, "a reader does not learn of the writer"),
        (1, Relaxed, true, "a writer does not learn of the readers"),
        (2, Relaxed, true, "a writer does not learn of the readers"),
        (3, Relaxed, true, "a reader does not learn of the writer"),
    ];
    weakened(
        "readers and a writer",
        [Acquire, Release, Acquire, Release],
        &rows,
        |[come, go, lock, unlock]| {
            together(3, move |it: &Two, me| {
                if me > 0 {
                    if it.x.fetch_add(1, come) < WRITER {
                        it.data.get();
                    }
                    it.x.fetch_sub(1, go);
                } else if it.x.compare_exchange(0, WRITER, lock, Relaxed).is_ok() {
                    it.data.set(1);
                    it.x.fetch_sub(WRITER, unlock);
                }
            });
        },
    );
}

#[test]
fn a_barrier() {
    #[derive(Default)]
    struct Barrier {
        arrived: AtomicUsize,
        open: AtomicUsize,
        data: [Plain; 2],
    }
    let rows = [
        (
            0,
            Release,
            true,
            "the last one does not learn of the first one",
        ),
        (0, Acquire, true, "the first one publishes nothing"),
        (1, Relaxed, true, RELEASE),
        (2, Relaxed, true, ACQUIRE),
    ];
    weakened(
        "a barrier for two",
        [AcqRel, Release, Acquire],
        &rows,
        |[arrive, open, wait]| {
            together(2, move |it: &Barrier, me| {
                it.data[me].set(1);
                if it.arrived.fetch_add(1, arrive) == 1 {
                    it.open.store(1, open);
                }
                while it.open.load(wait) == 0 {
                    spin_loop();
                }
                it.data[1 - me].get();
            });
        },
    );
}

#[test]
fn queues_of_one_slot() {
    // What one side has let go of is used again by the other one.
    let rows = [
        (
            0,
            Relaxed,
            true,
            "the producer does not learn that the slot is free",
        ),
        (1, Relaxed, true, RELEASE),
        (2, Relaxed, true, ACQUIRE),
        (3, Relaxed, true, "that the slot is free is not published"),
    ];
    weakened(
        "one producer, one consumer",
        [Acquire, Release, Acquire, Release],
        &rows,
        |[room, full, look, empty]| {
            together(2, move |it: &Two, me| {
                for round in 0..2 {
                    if me == 0 && it.y.load(room) == round {
                        it.data.set(round);
                        it.x.store(round + 1, full);
                    } else if me == 1 && it.x.load(look) == round + 1 {
                        it.data.get();
                        it.y.store(round + 1, empty);
                    }
                }
            });
        },
    );
    let rows = [
        (
            0,
            Relaxed,
            true,
            "the owner does not learn that the slot is free",
        ),
        (
            1,
            Acquire,
            true,
            "[atomics.fences] 2: only a release fence publishes",
        ),
        (2, Relaxed, true, "the SeqCst fence comes before the load"),
        (3, Relaxed, true, "that the slot is free is not published"),
        (3, Acquire, true, "that the slot is free is not published"),
    ];
    weakened(
        "Chase and Lev: the owner and a thief",
        [Acquire, Release, Acquire, SeqCst],
        &rows,
        |[room, publish, look, take]| {
            together(2, move |it: &Two, me| {
                let (top, bottom, slot) = (&it.x, &it.y, &it.data);
                if me == 0 {
                    for at in 0..2 {
                        if top.load(room) == at {
                            slot.set(at);
                            fence(publish);
                            bottom.store(at + 1, Relaxed);
                        }
                    }
                    return;
                }
                let at = top.load(Acquire);
                fence(SeqCst);
                if bottom.load(look) > at {
                    slot.get();
                    let _ = top.compare_exchange(at, at + 1, take, Relaxed);
                }
            });
        },
    );
}

/// A node that is made before the threads begin, so that its own making is no matter.
#[derive(Default)]
struct Node {
    next: Plain,
    data: Plain,
}

#[test]
fn a_stack() {
    #[derive(Default)]
    struct Stack {
        /// The number of a node, from 1 on.
        head: AtomicUsize,
        nodes: [Node; 2],
    }
    let rows = [
        (0, Relaxed, true, RELEASE),
        (0, Acquire, true, RELEASE),
        (1, Relaxed, true, ACQUIRE),
        (2, AcqRel, false, "it is stronger than need be"),
    ];
    weakened(
        // [intro.races] 5: what pops continues the release sequences of all that push.
        "Treiber, who pops with a relaxed exchange",
        [Release, Acquire, Relaxed],
        &rows,
        |[push, look, pop]| {
            together(3, move |it: &Stack, me| {
                if me > 0 {
                    let node = &it.nodes[me - 1];
                    node.data.set(me);
                    loop {
                        let head = it.head.load(Relaxed);
                        node.next.set(head);
                        if it.head.compare_exchange(head, me, push, Relaxed).is_ok() {
                            return;
                        }
                    }
                }
                for _ in 0..2 {
                    let head = it.head.load(look);
                    if head == 0 {
                        continue;
                    }
                    let node = &it.nodes[head - 1];
                    let next = node.next.get();
                    if it.head.compare_exchange(head, next, pop, Relaxed).is_ok() {
                        node.data.set(0);
                    }
                }
            });
        },
    );
}

#[test]
fn a_pointer_that_is_made_once() {
    let rows = [
        (0, Relaxed, true, ACQUIRE),
        (1, Relaxed, true, RELEASE),
        (1, Acquire, true, RELEASE),
        (1, AcqRel, false, "it is stronger than need be"),
        (
            2,
            Relaxed,
            true,
            "who comes too late does not learn of the other one's",
        ),
    ];
    weakened(
        "a value that the first one makes",
        [Acquire, Release, Acquire],
        &rows,
        |[look, publish, lose]| {
            let made = Arc::new(AtomicPtr::new(null_mut()));
            let get = move |made: &AtomicPtr<Plain>| {
                let mut it = made.load(look);
                if it.is_null() {
                    let mine = Box::into_raw(Box::new(Plain::default()));
                    // SAFETY: nobody else has it yet.
                    unsafe { &*mine }.set(7);
                    it = match made.compare_exchange(null_mut(), mine, publish, lose) {
                        Ok(_) => mine,
                        Err(other) => {
                            // SAFETY: nobody else has it.
                            drop(unsafe { Box::from_raw(mine) });
                            other
                        }
                    };
                }
                // SAFETY: it is freed when both threads have used it.
                unsafe { &*it }.get();
            };
            let theirs = made.clone();
            let other = thread::spawn(move || get(&theirs));
            get(&made);
            other.join().unwrap();
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(made.load(Relaxed)) });
        },
    );
}
