//! Which orderings and fences order a write before a read in another thread?

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicUsize, fence};
use dpor::thread;

use super::{Plain, check, message, race};

#[test]
fn message_passing_with_each_pair_of_orderings() {
    for write in [Relaxed, Release, SeqCst] {
        for read in [Relaxed, Acquire, SeqCst] {
            let racy = write == Relaxed || read == Relaxed;
            check(
                &format!("store {write:?}, load {read:?}"),
                "[atomics.order] 2: only a release operation synchronises with an acquire operation",
                racy,
                message(move |x| x.store(1, write), move |x| x.load(read) == 1),
            );
        }
    }
}

#[test]
fn message_passing_through_read_modify_writes() {
    for (order, racy) in [
        (Relaxed, true),
        (Release, false),
        (AcqRel, false),
        (Acquire, true),
    ] {
        check(
            &format!("fetch_add {order:?}"),
            "[atomics.order] 2: a read-modify-write releases with Release and AcqRel",
            racy,
            message(
                move |x| {
                    x.fetch_add(1, order);
                },
                |x| x.load(Acquire) == 1,
            ),
        );
    }
    for (failure, racy) in [(Relaxed, true), (Acquire, false)] {
        check(
            &format!("a compare_exchange that fails with {failure:?}"),
            "[atomics.types.operations] a failed one is a load with the failure ordering",
            racy,
            message(
                |x| x.store(1, Release),
                move |x| x.compare_exchange(5, 6, AcqRel, failure) == Err(1),
            ),
        );
    }
    for (success, racy) in [(Relaxed, true), (Acquire, false), (Release, true)] {
        check(
            &format!("a compare_exchange that succeeds with {success:?}"),
            "[atomics.types.operations] a successful one has the success ordering",
            racy,
            message(
                |x| x.store(1, Release),
                move |x| x.compare_exchange(1, 2, success, Relaxed).is_ok(),
            ),
        );
    }
    for (order, racy) in [(Relaxed, true), (Acquire, false)] {
        check(
            &format!("a swap with {order:?}"),
            "[atomics.order] 2",
            racy,
            message(|x| x.store(1, Release), move |x| x.swap(7, order) == 1),
        );
    }
}

#[test]
fn fences_on_either_and_both_sides() {
    let rows: [(&str, bool, Ordering, Ordering, Ordering, Ordering); 7] = [
        (
            "release fence, relaxed store; acquire load",
            false,
            Release,
            Relaxed,
            Acquire,
            Relaxed,
        ),
        (
            "release store; relaxed load, acquire fence",
            false,
            Relaxed,
            Release,
            Relaxed,
            Acquire,
        ),
        ("both fences", false, Release, Relaxed, Relaxed, Acquire),
        ("SeqCst fences", false, SeqCst, Relaxed, Relaxed, SeqCst),
        ("AcqRel fences", false, AcqRel, Relaxed, Relaxed, AcqRel),
        (
            "an acquire fence where a release fence is needed",
            true,
            Acquire,
            Relaxed,
            Relaxed,
            Acquire,
        ),
        (
            "a release fence where an acquire fence is needed",
            true,
            Release,
            Relaxed,
            Relaxed,
            Release,
        ),
    ];
    for (name, racy, before, write, read, after) in rows {
        let barrier = |order| {
            if order != Relaxed {
                fence(order);
            }
        };
        check(
            name,
            "[atomics.fences] 2-4",
            racy,
            message(
                move |x| {
                    barrier(before);
                    x.store(1, write);
                },
                move |x| {
                    let ready = x.load(read) == 1;
                    barrier(after);
                    ready
                },
            ),
        );
    }
    check(
        "fences on the wrong sides of the accesses",
        "[atomics.fences] 2: the release fence comes before the store",
        true,
        message(
            |x| {
                x.store(1, Relaxed);
                fence(Release);
            },
            |x| {
                fence(Acquire);
                x.load(Relaxed) == 1
            },
        ),
    );
}

#[test]
fn release_sequences() {
    let third = |by: fn(&AtomicUsize)| {
        move || {
            let shared = Arc::new((Plain::default(), AtomicUsize::new(0)));
            let (a, b) = (shared.clone(), shared.clone());
            let writer = thread::spawn(move || {
                a.0.set(1);
                a.1.store(1, Release);
            });
            let middle = thread::spawn(move || {
                if b.1.load(Relaxed) == 1 {
                    by(&b.1);
                }
            });
            if shared.1.load(Acquire) == 2 {
                assert_eq!(shared.0.get(), 1);
            }
            writer.join().unwrap();
            middle.join().unwrap();
        }
    };
    check(
        "continued by a relaxed read-modify-write of another thread",
        "[intro.races] 5: read-modify-writes belong to the release sequence",
        false,
        third(|x| {
            x.fetch_add(1, Relaxed);
        }),
    );
    check(
        "broken by a relaxed store of another thread",
        "[intro.races] 5: a store does not",
        true,
        third(|x| x.store(2, Relaxed)),
    );
    check(
        "broken by a relaxed store of the same thread",
        "[intro.races] 5, since C++20",
        true,
        message(
            |x| {
                x.store(1, Release);
                x.store(2, Relaxed);
            },
            |x| x.load(Acquire) == 2,
        ),
    );
}

/// A stronger write is one for all of its readers, but the second thread learns nothing of what another one reads.
#[test]
fn what_another_thread_reads_of_the_same_write_is_not_named() {
    let text = race(|| {
        let shared = Arc::new((Plain::default(), AtomicUsize::new(0), AtomicUsize::new(0)));
        let (writes, passes) = (shared.clone(), shared.clone());
        let writer = thread::spawn(move || {
            writes.0.set(1);
            writes.1.store(1, Relaxed);
        });
        let other = thread::spawn(move || {
            if passes.1.load(Acquire) == 1 {
                passes.2.store(1, Relaxed);
            }
        });
        if shared.2.load(Relaxed) == 1 && shared.1.load(Acquire) == 1 {
            shared.0.get();
        }
        writer.join().unwrap();
        other.join().unwrap();
    });
    let text = text.expect("a race");
    let named: Vec<&str> = (text.lines())
        .filter(|line| line.contains(" is Relaxed, and "))
        .collect();
    let [named] = named[..] else {
        panic!("{text}");
    };
    assert!(named.starts_with("  main.1's store to "), "{text}");
    assert!(named.contains(", and main's load "), "{text}");
}
