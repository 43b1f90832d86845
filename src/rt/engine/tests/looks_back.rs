//! How many events does the search for blocking pairs pass in a long execution?

use std::cell::Cell;
use std::rc::Rc;

use crate::rt::engine::blocking_pairs::{BlockingPairs, blocking_pairs};
use crate::rt::engine::plan::Plan;
use crate::rt::engine::testing::*;
use crate::rt::engine::{Choice, Execution, Explorer, Point, TieBreak};
use crate::rt::event::operation::{ObjectKind, OpKind};

/// The number of repetitions in each of the two threads.
const TIMES: usize = 500;

/// Runs one execution, and searches the blocking pairs of each operation that may have waited.
struct Asks {
    has_begun: bool,
    /// The number of these operations, and the number of events passed.
    counted: Rc<Cell<(usize, usize)>>,
}

impl Explorer for Asks {
    fn begin(&mut self, _plan: &mut Plan) -> bool {
        !std::mem::replace(&mut self.has_begun, true)
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        TieBreak::Last.choose(at)
    }

    fn finish(&mut self, run: &Execution<'_>) {
        let mut far = BlockingPairs::default();
        for &position in run.trace.notable() {
            let event = run.trace.at(position);
            let (mut operations, mut looks) = self.counted.get();
            operations += 1;
            let waiting = (event.thread, event.operation);
            let before = run.trace.predecessor(position);
            blocking_pairs(run, waiting, position, &mut far, |first| {
                looks += 1;
                before.is_some_and(|before| run.clocks.before(first, before))
            });
            self.counted.set((operations, looks));
        }
    }
}

/// The number of operations that may have waited, and the number of events passed.
fn looks(program: &Program) -> (usize, usize) {
    let counted = Rc::new(Cell::new((0, 0)));
    let asks = Asks {
        has_begun: false,
        counted: counted.clone(),
    };
    explore_with(program, Box::new(asks), false, 1).expect("one execution");
    counted.get()
}

fn op(var: u32, kind: OpKind) -> Ins {
    Ins::Op { var, kind, to: 7 }
}

/// Polls a channel until there is a message.
fn poll(channel: u32) -> [Ins; 5] {
    [
        op(channel, OpKind::TryRecv),
        Ins::Unless {
            reg: 7,
            value: Val::Const(0),
            by: 2,
        },
        Ins::Hint,
        Ins::Jump(-3),
        Ins::Set {
            to: 7,
            value: Val::Const(0),
        },
    ]
}

/// No event on a channel is ordered with all events on it.
#[test]
fn threads_that_poll_channels_in_turns_do_not_look_back_to_the_first_message() {
    let send = |var| Ins::Send { var, to: 0 };
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        one.push(send(0));
        one.extend(poll(1));
        other.extend(poll(0));
        other.push(send(1));
    }
    let program = Program::of(vec![one, other]);
    let program = program.with(0, ObjectKind::Channel, 0);
    let program = program.with(1, ObjectKind::Channel, 0);
    let (operations, looks) = looks(&program);
    assert!(operations >= 2 * TIMES, "{operations}");
    assert!(looks <= 3 * operations, "{looks} for {operations}");
}

/// Readers are not ordered with each other.
#[test]
fn who_tries_to_write_again_and_again_does_not_look_back_to_the_first_reader() {
    let read = [op(0, OpKind::ReadLock), op(0, OpKind::UnlockRead)];
    // The last reader keeps the lock.
    let reader = [
        &read.repeat(TIMES)[..],
        &read[..1],
        &[crate::rt::engine::tests::store(1, 1)],
    ]
    .concat();
    let writer = [
        &[crate::rt::engine::tests::load(1, 0)][..],
        &[op(0, OpKind::TryWrite); TIMES],
    ]
    .concat();
    let program = Program::of(vec![reader, writer]).with(0, ObjectKind::RwLock, 0);
    let (operations, looks) = looks(&program);
    assert!(operations >= 2 * TIMES, "{operations}");
    assert!(looks <= 3 * operations, "{looks} for {operations}");
}
