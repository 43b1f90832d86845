//! With which earlier values of its atomic does a thread in a loop that waits go round?
//!
//! The reversal of a race may place the look of a wait before a write. Whether the look is enabled
//! there depends on a condition that only the code knows. So before the look is made, and where the
//! thread waits for ever, its thread *tries* each value that the atomic had before a write that the
//! look could come before: it makes a round in which the look finds that value. If the thread comes
//! back to its hint, it goes round with the value. Nothing else has happened meanwhile, so the look
//! leaves no event.
//!
//! Otherwise the thread has left the loop, in a state that belongs to another execution. Then this
//! execution is abandoned and made again, with that knowledge.

use crate::rt::engine::driver::{Driver, Next};
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::mix::mix;
use crate::rt::event::operation::{OpKind, Operation, Outcome};
use crate::rt::event::{Event, Site};
use crate::rt::object::State;
use crate::rt::object::machine::Pending;
use crate::rt::relation::independence::changes_value;

impl Driver {
    /// The thread is about to make its announced step. Makes it try a round before, if its step is
    /// the look of a wait and there is an untried value.
    #[cold]
    #[inline(never)]
    pub(super) fn try_round(&mut self, thread: ThreadId) -> Option<Next> {
        let &Pending { operation, site } = self.machine.pending(thread)?;
        let value = self.untried(thread, &operation, site)?;
        let outcome = self.machine.try_round(thread, value);
        self.free_for = 0;
        self.tried.rounds += 1;
        Some(Next::Tries(thread, outcome))
    }

    /// Whether loops are known in which a thread waits once a round has left its state as it was.
    pub(crate) fn proves_awaits(&self) -> bool {
        self.proves_awaits
    }

    /// The last event, if it is a look in vain of this thread that was a whole round of a loop, up
    /// to this hint or to any. The thread waits there if another round leaves its state as it was.
    pub(crate) fn vain_look(&self, thread: ThreadId, hint: Option<Site>) -> Option<&Event> {
        if !self.proves_awaits || self.regions.off() || self.machine.rests(thread) {
            return None;
        }
        let look = self.machine.vain_look(thread, hint, self.executed())?;
        // Under C11 a swap that leaves the value as it is is a store, which other threads that wait
        // read: they would keep each other going.
        let writes_nothing = matches!(
            (look.operation.kind, self.machine.state(look.operation.object)),
            (OpKind::Load { .. } | OpKind::CompareExchange { .. }, State::Atomic { ty, .. }) if ty.is_weak()
        );
        (writes_nothing || !self.is_weak()).then_some(look)
    }

    /// What the operation comes out as if it is the last event, a look in vain, once more.
    pub(crate) fn looks_again(&self, operation: &Operation) -> Option<Outcome> {
        let found = self.executed().last()?.outcome.value()?;
        self.machine.looks_only(operation, found)
    }

    /// Whether it is to be found out, at the hint to which the thread comes, if another round
    /// leaves the state of the thread as it was.
    pub(crate) fn is_to_prove(&self, thread: ThreadId) -> bool {
        self.vain_look(thread, None).is_some() && !self.is_proven()
    }

    /// Whether an execution with the same events has shown that the thread of the last event waits
    /// behind it.
    pub(crate) fn is_proven(&self) -> bool {
        let last = self.position.checked_sub(1).map(|last| last as u32);
        last.is_some_and(|last| self.proven.binary_search(&last).is_ok())
    }

    /// Forgets what has been shown of waits behind the first `length` events.
    pub(super) fn forget_proven(&mut self, length: usize) {
        self.proven.retain(|&position| (position as usize) < length);
    }

    /// The thread of the last event, a look in vain, waits with the same look.
    pub(crate) fn wait_behind_look(&mut self) {
        let last = self.executed().last().copied();
        if !self.is_proven() {
            self.forget_proven(self.position);
            self.proven.extend(last.map(|_| self.position as u32 - 1));
        }
        last.iter().for_each(|look| self.machine.wait_behind(look));
        self.free_for = 0;
    }

    /// [`Driver::try_round`] for any thread that waits.
    #[cold]
    pub(super) fn try_any_round(&mut self) -> Option<Next> {
        let live = self.machine.live().to_vec();
        live.into_iter().find_map(|thread| self.try_round(thread))
    }

    /// An earlier value of the atomic with which the thread has not tried its look, if this is a
    /// look of a wait.
    pub(super) fn untried(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
        site: Site,
    ) -> Option<u64> {
        if !self.takes_awaits
            || self.regions.off()
            || !self.tried.may_abandon()
            || !self.machine.may_wait_by(&operation.kind, site)
        {
            return None;
        }
        self.clocks.expect(thread, operation);
        let now = self.machine.value_of(operation.object);
        let mut values: Vec<u64> = Vec::new();
        for (_, before) in self.writes_apart(thread, operation.object) {
            if now != Some(before) && !values.contains(&before) {
                values.push(before);
            }
        }
        let index = self.machine.events_of(thread);
        values.retain(|&value| self.machine.is_untried(thread, operation, value));
        let leaves = &self.tried.leaves;
        values.retain(|&value| !leaves.contains(&(thread, index, value)));
        if values.is_empty() {
            return None;
        }
        let past = self.past_of(thread);
        let guesses = &self.tried.guesses;
        values
            .into_iter()
            .find(|&value| !guesses.contains(&(past, value)))
    }

    /// The writes to this atomic that the next event of the thread could come before, the latest
    /// first, each with the value that it found.
    fn writes_apart(&mut self, thread: ThreadId, object: ObjectId) -> Vec<(u32, u64)> {
        self.compute_clocks();
        let predecessor = self.trace.predecessor_of_next(thread);
        let mut writes = Vec::new();
        for &position in self.clocks.events_on(object).iter().rev() {
            let event = self.trace.at(position);
            let writes_there = changes_value(event.label.class());
            if predecessor.is_some_and(|it| self.clocks.before(position, it)) {
                // Writes are ordered, so those before this one are before it.
                if event.thread == thread || writes_there {
                    break;
                }
            } else if writes_there {
                let before = self.machine.before(event, object);
                writes.extend(before.map(|before| (position, before)));
            }
        }
        writes
    }

    /// The thread, which had so many events, is about to have one on this object. If it is a look
    /// of a wait, notes the events that shut it out.
    #[cold]
    pub(super) fn note_passed(&mut self, (thread, events): (ThreadId, u32), object: ObjectId) {
        if self.is_weak() || self.machine.went_round_with(thread, events).is_none() {
            return;
        }
        let writes = self.writes_apart(thread, object);
        let values = self.machine.went_round_with(thread, events);
        let values = values.unwrap_or_default();
        let shut_out = writes.iter().filter(|(_, before)| values.contains(before));
        let shut_out: Vec<u32> = shut_out.map(|&(position, _)| position).collect();
        self.machine.note_passed(self.position as u32, shut_out);
    }

    /// A mix of the events of the thread.
    fn past_of(&self, thread: ThreadId) -> u64 {
        let theirs = self
            .executed()
            .iter()
            .filter(|event| event.thread == thread);
        theirs.fold(u64::from(thread.0), |so_far, event| {
            let site = std::ptr::from_ref(event.site).addr() as u64;
            let (value, object) = (event.outcome.value(), event.operation.object);
            let outcome = value.unwrap_or(u64::from(event.outcome.succeeded()));
            [site, outcome, u64::from(object.0)]
                .into_iter()
                .fold(so_far, |so_far, it| mix(so_far.rotate_left(7) ^ it))
        })
    }

    /// The thread, which has tried a round, has left its loop. If it should have repeated its last
    /// round, the exploration is void.
    #[cold]
    pub(crate) fn leaves_loop(&mut self, thread: ThreadId) {
        if self.proves_awaits {
            let look = self.executed().last().filter(|look| look.thread == thread);
            self.refused = look.and_then(|look| self.machine.loop_with(look)).cloned();
            return;
        }
        let past = self.past_of(thread);
        let index = self.machine.events_of(thread);
        if let Some(tried) = self.machine.tried_in_memory(thread) {
            self.tried.leaves.push((thread, index, tried.before));
            self.tried.guesses.insert((past, tried.before));
        }
        self.tried.abandoned += 1;
    }
}
