//! Who is the leader of a barrier, and does anybody pass it alone?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Barrier;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, FailureKind, thread};

use super::outcomes;

#[test]
fn a_barrier_has_every_thread_as_leader_and_nobody_passes_alone() {
    let (seen, executions) = outcomes(|| {
        let barrier = Barrier::new(3);
        let before = AtomicUsize::new(0);
        thread::scope(|s| {
            let all: Vec<_> = (0..3)
                .map(|_| {
                    s.spawn(|| {
                        before.fetch_add(1, SeqCst);
                        let leader = barrier.wait().is_leader();
                        assert_eq!(before.load(SeqCst), 3);
                        leader
                    })
                })
                .collect();
            let leaders: Vec<bool> = all.into_iter().map(|h| h.join().unwrap()).collect();
            leaders.iter().position(|&leader| leader)
        })
    });
    assert_eq!(
        seen.into_keys().collect::<Vec<_>>(),
        [Some(0), Some(1), Some(2)]
    );
    // Six orders of the additions, each with three leaders.
    assert_eq!(executions, 18);
}

#[test]
fn a_group_larger_than_any_number_of_threads_is_never_complete() {
    for size in [1 << 32, (1 << 32) + 1, usize::MAX] {
        let failure = Builder::new().explore(move || {
            Barrier::new(size).wait();
        });
        let failure = failure.expect_err("nobody else comes");
        assert_eq!(failure.kind(), FailureKind::Deadlock);
    }
}

#[test]
fn arrivals_at_a_barrier_for_two_have_one_execution_for_each_order() {
    for (threads, orders) in [(2, 2), (4, 24), (6, 720)] {
        let (_, executions) = outcomes(move || {
            let barrier = Barrier::new(2);
            thread::scope(|s| {
                for _ in 0..threads {
                    s.spawn(|| barrier.wait());
                }
            });
        });
        assert_eq!(executions, orders, "{threads} threads");
    }
}

/// The place of the second one is known as that of a barrier for one, whom nobody has to wait for.
#[test]
fn a_barrier_in_the_place_of_another_one_waits_for_as_many_as_it_is_for() {
    let (seen, executions) = outcomes(|| {
        let mut barrier = Barrier::new(1);
        assert!(barrier.wait().is_leader());
        barrier = Barrier::new(2);
        thread::scope(|s| {
            let other = s.spawn(|| barrier.wait().is_leader());
            (barrier.wait().is_leader(), other.join().unwrap())
        })
    });
    assert_eq!(
        seen.into_keys().collect::<Vec<_>>(),
        [(false, true), (true, false)]
    );
    assert_eq!(executions, 2);
}
