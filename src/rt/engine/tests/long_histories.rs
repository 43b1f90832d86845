//! Does the work for each event stay the same on objects with a long history?

use crate::rt::engine::TieBreak;
use crate::rt::engine::snapshots::APPLIED;
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::{load, var};
use crate::rt::event::operation::{ObjectKind, OpKind};
use crate::rt::event::verdict::End;

const TURN: i64 = 0;
const MUTEX: u32 = 10;
const CONDVAR: u32 = 20;

/// Threads that take turns, each for so many rounds. A thread waits at the condition variable until
/// it is its turn, and then notifies all others.
fn ring(threads: i64, rounds: i64) -> Program {
    let op = |kind| Ins::Op {
        var: CONDVAR,
        kind,
        to: 7,
    };
    let mutex = var(i64::from(MUTEX));
    let round = |turn: i64| {
        [
            Ins::Lock(mutex),
            load(TURN, 0),
            Ins::Unless {
                reg: 0,
                value: Val::Const(turn),
                by: 1,
            },
            Ins::Jump(6),
            Ins::Enqueue(CONDVAR),
            Ins::Unlock(mutex),
            op(OpKind::Awake { timed: false }),
            Ins::Lock(mutex),
            Ins::Jump(-7),
            Ins::Store {
                var: var(TURN),
                value: Val::Const(turn + 1),
            },
            op(OpKind::NotifyAll),
            Ins::Unlock(mutex),
        ]
    };
    let code = |me| {
        (0..rounds)
            .flat_map(|nth| round(nth * threads + me))
            .collect()
    };
    Program::of((0..threads).map(code).collect())
        .with(MUTEX, ObjectKind::Mutex, 0)
        .with(CONDVAR, ObjectKind::Condvar, 0)
}

/// For each event of the first execution: the candidates for races that are examined, and the
/// events that are applied to find the states of objects.
fn work(threads: i64, rounds: i64) -> (f64, f64) {
    let program = ring(threads, rounds);
    let mut driver = driver(&program, explorer("optimal", TieBreak::Last));
    let before = APPLIED.get();
    let end = run(&program, &mut driver);
    assert!(matches!(end, Some(End::Complete)), "{end:?}");
    let events = driver.trace.len();
    assert!(events as i64 > 8 * threads * rounds, "{events}");
    let each = |work: usize| work as f64 / events as f64;
    (each(driver.clocks.visited()), each(APPLIED.get() - before))
}

#[test]
fn a_ring_has_as_many_candidates_for_races_for_each_event_however_long_it_is() {
    for threads in [3, 6] {
        let [few, many] = [20, 200].map(|rounds| work(threads, rounds).0);
        assert!(many < 1.5 * few, "{few}, {many}");
    }
}

#[test]
fn a_state_of_a_ring_is_found_from_as_many_events_however_long_it_is() {
    // The state with more than three waiting threads does not fit into an event.
    let [few, many] = [20, 200].map(|rounds| work(6, rounds).1);
    assert!(few > 0.1 && many < 1.5 * few, "{few}, {many}");
}
