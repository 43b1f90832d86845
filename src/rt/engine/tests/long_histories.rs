//! Does the work for each event stay the same on objects with a long history?

use crate::rt::engine::TieBreak;
use crate::rt::engine::driver::Driver;
use crate::rt::engine::relabel::state_before;
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::{load, var};
use crate::rt::event::operation::{ObjectKind, OpKind};
use crate::rt::event::verdict::End;
use crate::rt::pooled::Pooled;
use crate::rt::relation::independence::Class;

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

/// The first execution of a ring.
fn executed(threads: i64, rounds: i64) -> (Pooled<Box<Driver>>, End) {
    let program = ring(threads, rounds);
    let mut driver = driver(&program, explorer("optimal", TieBreak::Last));
    let end = run(&program, &mut driver).expect("it runs");
    assert!(matches!(end, End::Complete), "{end:?}");
    let events = driver.trace.len();
    assert!(events as i64 > 8 * threads * rounds, "{events}");
    (driver, end)
}

/// For each event, the candidates for races that are examined.
fn visited(threads: i64, rounds: i64) -> f64 {
    let (driver, _) = executed(threads, rounds);
    driver.clocks.visited() as f64 / driver.trace.len() as f64
}

/// For each event on the condition variable, the events that are applied to find the state before
/// it.
fn applied(threads: i64, rounds: i64) -> f64 {
    let (mut driver, end) = executed(threads, rounds);
    let asked = driver.ended(&end, |execution| {
        let events = execution.trace.events().iter().zip(0..);
        let on_it = events.filter(|(event, _)| event.label.class() == Class::Enqueue);
        let found = on_it.map(|(event, position)| {
            state_before(execution, position, event.operation.object);
        });
        (found.count(), execution.snapshots.applied.get())
    });
    asked.1 as f64 / asked.0 as f64
}

#[test]
fn a_ring_has_as_many_candidates_for_races_for_each_event_however_long_it_is() {
    for threads in [3, 6] {
        let [few, many] = [20, 200].map(|rounds| visited(threads, rounds));
        assert!(many < 1.5 * few, "{few}, {many}");
    }
}

#[test]
fn a_state_of_a_ring_is_found_from_as_many_events_however_long_it_is() {
    // The state with more than three waiting threads does not fit into an event.
    let [few, many] = [20, 200].map(|rounds| applied(6, rounds));
    assert!(few > 0.1 && many < 1.5 * few, "{few}, {many}");
}
