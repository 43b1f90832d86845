//! Does a step have the same outcome as before, or as planned?
//!
//! The driver first makes the events of the common prefix again, and then the planned steps. Both
//! are known in advance, so the comparison here finds a program that depends on more than its
//! schedule.

use std::mem::discriminant;

use crate::rt::event::Site;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Operation, Outcome, Step};
use crate::rt::event::verdict::{Divergence, End};
use crate::rt::object::machine::{Executed, Pending};
use crate::rt::rare::{cold_path, mostly, rarely};
use crate::rt::relation::independence::Label;

use crate::rt::engine::driver::{Driver, Next};

/// The result of a step, or the end of the execution if the step ends it.
pub(crate) type Made<T> = Result<T, Box<End>>;

impl Driver {
    /// Repeats the next event of the common prefix, or makes the thread begin that began before it.
    #[inline]
    pub(super) fn replay(&mut self) -> Next {
        if let Some((position, thread)) = self.trace.begun(self.begun)
            && position == self.position
        {
            self.begun += 1;
            self.find_break();
            self.machine.begin(thread);
            return Next::Begins(thread);
        }
        let event = self.trace.at(self.position as u32);
        let (step, label) = (event.step(), event.label);
        if let Outcome::Released { quiescent_at } = event.outcome
            && quiescent_at as usize == self.position
        {
            cold_path();
            self.machine.release_waiters(quiescent_at as u32);
        }
        let pending = self.machine.pending(step.thread).filter(|found| {
            let Operation { object, ref kind } = found.operation;
            alike(&event.operation, object, kind)
                // An older store may have ended a wait.
                && (self.is_weak() || self.machine.can_perform(step.thread, &found.operation))
        });
        let Some(&Pending { operation, site }) = pending else {
            cold_path();
            let expected = (event.operation, event.site);
            return self.misfit(step.thread, Some(expected));
        };
        self.machine.take_announced(step.thread);
        let made = self.repeat(step, label, &operation, site);
        self.made(step.thread, made)
    }

    /// Makes a step of the common prefix, and compares it with its event in the execution before.
    #[inline(always)]
    pub(super) fn repeat(
        &mut self,
        step: Step,
        expected: Label,
        operation: &Operation,
        site: Site,
    ) -> Made<Outcome> {
        if operation.kind.is_of_a_life() {
            return self.repeat_in_life(step, operation, site);
        }
        // The result of an atomic operation stays in registers, as long as no code path merges it
        // with the result of another kind of operation.
        if operation.kind.is_atomic() {
            let executed = self.machine.perform_atomic(step, operation, site);
            return self.compare(&executed, step, expected, (operation, site));
        }
        self.repeat_another(step, expected, operation, site)
    }

    /// [`Driver::repeat`] for the spawn, exit or join of a thread, which mostly takes the fast
    /// path.
    #[inline(never)]
    fn repeat_in_life(&mut self, step: Step, operation: &Operation, site: Site) -> Made<Outcome> {
        self.machine.thread_op(step.thread, operation, site);
        // The event is the same in every respect, so the trace needs no comparison and no update.
        self.after(step, &operation.kind)?;
        Ok(Outcome::Done)
    }

    /// [`Driver::repeat`] for a step that is neither a spawn, exit or join nor on an atomic.
    #[inline(never)]
    fn repeat_another(
        &mut self,
        step: Step,
        expected: Label,
        operation: &Operation,
        site: Site,
    ) -> Made<Outcome> {
        let executed = self.machine.perform_another(step, operation, site);
        self.compare(&executed, step, expected, (operation, site))
    }

    /// Compares the result of a step with its event in the execution before.
    #[inline(always)]
    fn compare(
        &mut self,
        executed: &Executed,
        step: Step,
        expected: Label,
        (operation, site): (&Operation, Site),
    ) -> Made<Outcome> {
        if rarely!(!same(executed.label, expected)) {
            return Err(self.diverged(step.thread, (operation, site)));
        }
        let outcome = executed.outcome;
        (self.trace.again(self.position)).refresh(operation, outcome, executed.before);
        self.advance(step.thread);
        Ok(outcome)
    }

    /// Makes a step of a wakeup sequence.
    #[inline(never)]
    pub(super) fn follow(&mut self, step: Step, label: Option<Label>) -> Next {
        if rarely!(!self.machine.enabled(step.thread)) {
            if let Some(thread) = self.machine.next_to_begin() {
                // This thread had begun, and was blocked, where the step was planned.
                self.begin_thread(thread);
                return Next::Begins(thread);
            }
            // The step may be one of several waits that were released at this point.
            let mut live = self.machine.live().iter();
            if live.all(|&thread| !self.machine.enabled(thread)) {
                self.machine.release_waiters(self.position as u32);
            }
            if !self.machine.enabled(step.thread) {
                return self.misfit(step.thread, None);
            }
        }
        if let Some(next) = self.instead_of_step(step.thread) {
            return next;
        }
        if rarely!(self.takes_awaits)
            && let Some(next) = self.try_round(step.thread)
        {
            return next;
        }
        self.machine.take_announced(step.thread);
        let Pending { operation, site } = *self.machine.last(step.thread);
        let planned = (step, label);
        // The result of an atomic operation stays in registers, as long as no code path merges it
        // with the result of another kind of operation.
        let made = if operation.kind.is_atomic() {
            let executed = self.machine.perform_atomic(step, &operation, site);
            self.record(&executed, step, (&operation, site));
            self.advance(step.thread);
            self.as_planned(&executed, planned, (&operation, site))
        } else {
            self.follow_another(planned, &operation, site)
        };
        self.made(step.thread, made)
    }

    /// [`Driver::follow`] for an announced step that is not on an atomic.
    #[inline(never)]
    fn follow_another(
        &mut self,
        planned: (Step, Option<Label>),
        operation: &Operation,
        site: Site,
    ) -> Made<Outcome> {
        let step = planned.0;
        let executed = self.machine.perform(step, operation, site);
        self.record(&executed, step, (operation, site));
        self.after(step, &operation.kind)?;
        self.as_planned(&executed, planned, (operation, site))
    }

    /// Compares the result of a step of a wakeup sequence with the planned label.
    #[inline(always)]
    fn as_planned(
        &mut self,
        executed: &Executed,
        (step, planned): (Step, Option<Label>),
        (operation, site): (&Operation, Site),
    ) -> Made<Outcome> {
        let (label, outcome) = (executed.label, executed.outcome);
        let Some(planned) = planned else {
            return Ok(outcome);
        };
        if rarely!(!same(label, planned)) {
            return Err(Box::new(End::NotDeterministic(Box::new(Divergence {
                thread: step.thread,
                position: self.position - 1,
                expected: None,
                found: Some((*operation, site)),
                outcome_differs: true,
            }))));
        }
        // A count in a plan decides which threads wake, so it must be right.
        #[cfg(test)]
        assert!(label == planned);
        Ok(outcome)
    }

    /// Ends the execution: the thread's announced operation differs from the expected one (if that
    /// is known) or cannot be performed.
    #[cold]
    pub(super) fn misfit(&mut self, thread: ThreadId, expected: Option<(Operation, Site)>) -> Next {
        let found = self.machine.pending(thread);
        self.over(End::NotDeterministic(Box::new(Divergence {
            thread,
            position: self.position,
            expected,
            found: found.map(|pending| (pending.operation, pending.site)),
            outcome_differs: false,
        })))
    }

    #[cold]
    fn diverged(&self, thread: ThreadId, (operation, site): (&Operation, Site)) -> Box<End> {
        let event = self.trace.at(self.position as u32);
        Box::new(End::NotDeterministic(Box::new(Divergence {
            thread,
            position: self.position,
            expected: Some((event.operation, event.site)),
            found: Some((*operation, site)),
            outcome_differs: true,
        })))
    }
}

/// Whether an operation of this kind on `object` can be the repetition of `a`: operands may be
/// addresses, which differ.
#[inline]
pub(super) fn alike(a: &Operation, object: ObjectId, kind: &OpKind) -> bool {
    a.object == object && discriminant(&a.kind) == discriminant(kind)
}

/// Whether two labels name the same event, as far as two executions can agree: the number of a
/// wait's read set and a count belong to the label, values do not.
#[inline(always)]
pub(super) fn same(a: Label, b: Label) -> bool {
    mostly!(a == b) || a.canonical() == b.canonical()
}
