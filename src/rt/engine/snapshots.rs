//! Which states did the objects of an execution have on the way?
//!
//! A reversal asks for the state of an object before an event. Most events store that state. Where
//! the state does not fit in the event, as that of a condition variable with waiting threads, the
//! history of the object runs through the model. Snapshots of the state make each such run short.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use crate::rt::event::Trace;
use crate::rt::event::id::ObjectId;
use crate::rt::object::State;
use crate::rt::object::machine::Machine;

/// The number of events on an object between two snapshots.
pub(super) const STEP: usize = if cfg!(test) { 2 } else { 32 };

/// The snapshots of one execution that has ended.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    /// By object, its state before the first event, and after each so many.
    states: RefCell<FxHashMap<ObjectId, Vec<State>>>,
    /// The number of events that were applied.
    #[cfg(test)]
    pub(super) applied: std::cell::Cell<usize>,
}

impl Snapshots {
    /// The state of `object` after its events `earlier`, which are its first ones in the trace.
    /// `initial` returns the state before all of them.
    pub(super) fn state_after(
        &self,
        earlier: &[u32],
        of: (&Trace, &Machine),
        object: ObjectId,
        initial: impl FnOnce() -> State,
    ) -> State {
        let mut all = self.states.borrow_mut();
        let snapshots = all.entry(object).or_insert_with(|| vec![initial()]);
        while let last = snapshots.len() - 1
            && let Some(next) = earlier.get(last * STEP..snapshots.len() * STEP)
        {
            let mut state = snapshots[last].clone();
            self.run(&mut state, next, of, object);
            snapshots.push(state);
        }
        let last = earlier.len() / STEP;
        let mut state = snapshots[last].clone();
        self.run(&mut state, &earlier[last * STEP..], of, object);
        state
    }

    fn run(&self, state: &mut State, positions: &[u32], of: (&Trace, &Machine), object: ObjectId) {
        #[cfg(test)]
        self.applied.set(self.applied.get() + positions.len());
        run(state, positions, of, object);
    }
}

/// Applies these events to the state of the object.
pub(super) fn run(
    state: &mut State,
    positions: &[u32],
    (trace, machine): (&Trace, &Machine),
    object: ObjectId,
) {
    for &position in positions {
        machine.apply(trace.at(position), object, state);
    }
}
