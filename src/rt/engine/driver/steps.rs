//! How is one step made?
//!
//! The thread that announces the step makes it ([`Driver::try_fast`], [`Driver::at_once`]) if this
//! thread makes the next step in any case; otherwise [`Driver::next`] picks the thread. Either way
//! the step belongs to one of three groups: the common prefix, where it must have the same outcome
//! as before; the planned sequence; or the new steps, of threads that the explorer chooses.

use std::sync::atomic::Ordering;

use crate::rt::engine::enabled_set::leaves_the_others;
use crate::rt::engine::{Choice, Point, default_thread};
use crate::rt::event::fence::{Fence, MadeSoFar, Part, Past, What};
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{ObjectKind, OpKind, Operation, Outcome, Reason, Step};
use crate::rt::event::schedule::Hold;
use crate::rt::event::verdict::{End, Pruned};
use crate::rt::event::{Site, Trace};
use crate::rt::object::machine::{Executed, Machine, Noticed, Pending, outcome_of_thread_op};
use crate::rt::rare::{cold_path, rarely};

use crate::rt::engine::driver::repeat::{Made, alike, same};
use crate::rt::engine::driver::{Driver, Next};

/// The number of steps that a thread makes without a check of their events, where the thread of the
/// last step always continues. The records of these steps fit into the second-level cache of a
/// processor several times over.
pub(super) const AT_ONCE: usize = if cfg!(test) { 3 } else { 2048 };

/// The result of a step on the fast path.
pub(crate) struct Short {
    pub(crate) outcome: Outcome,
    /// The number of events that its thread has performed.
    pub(crate) events: u32,
    /// The part of the step that is not yet recorded for its thread, if there is one.
    pub(crate) noted: Noticed,
}

impl Driver {
    /// The events of this execution so far, its fences, and the parts of its blocks.
    pub(crate) fn past(&self) -> Past<'_> {
        Past {
            events: self.executed(),
            fences: self.trace.fences(),
            parts: self.trace.parts(),
        }
    }

    /// Records a fence of a thread, which is no step. `None` if there are too many fences.
    pub(crate) fn note_fence(
        &mut self,
        thread: ThreadId,
        order: Ordering,
        made: MadeSoFar,
        site: Site,
    ) -> Option<&Fence> {
        self.trace.note_fence(Fence {
            thread,
            after: self.machine.events_of(thread),
            before: self.position as u32,
            order,
            site,
            made,
        })
    }

    /// Records a part of the open block, which is no step.
    pub(crate) fn note_part(&mut self, what: What, made: MadeSoFar) -> Option<&Part> {
        let (thread, _) = self.machine.open_block()?;
        self.trace.note_part(Part {
            thread,
            before: self.position as u32,
            after: self.machine.events_of(thread),
            what,
            made,
        });
        self.trace.parts().last()
    }

    /// A thread begins to drop its thread-local variables, which is no event.
    pub(crate) fn note_locals_dropped(&mut self, thread: ThreadId) {
        self.trace.note_locals_dropped(thread, self.position as u32);
    }

    /// The execution and the objects as they were after so many events.
    #[cold]
    pub(crate) fn as_it_was(&self, events: usize) -> (Trace, Machine) {
        let (mut trace, mut machine) = (self.trace.clone(), self.machine.clone());
        trace.cut(self.position, self.begun);
        if events < self.position {
            trace.cut(events, self.begun);
            machine.rewind(trace.events());
        }
        (trace, machine)
    }

    /// The most events that an execution may have, the hints that count among them.
    pub(crate) fn events_limit(&self) -> usize {
        self.bounds.events_max
    }

    /// [`Driver::at_once`] for an operation of this kind on an atomic, a reference count or a
    /// mutex; `known` is the content of its memory. Most operations are of these kinds, so they
    /// have a fast path; `None` if the fast path does not apply.
    #[inline(always)]
    pub(crate) fn try_fast(
        &mut self,
        thread: ThreadId,
        (object, kind, site): (ObjectId, &OpKind, Site),
        known: (ObjectKind, u64),
    ) -> Option<Short> {
        // The operation is in pieces, because it was written just now: a copy of the whole would
        // have to wait for these writes, and is made only for the trace.
        let whole = Operation {
            object,
            kind: *kind,
        };
        let position = self.position;
        // Where exploration is off, each step must record that.
        if rarely!(self.regions.off()) || rarely!(self.machine.has_withdrawn()) {
            return None;
        }
        // A look in vain and its repetition take the same way.
        if rarely!(self.takes_awaits || self.proves_awaits) && self.machine.may_wait_by(kind, site)
        {
            return None;
        }
        let (outcome, events, noted);
        // This condition comes first, because most steps of a long execution satisfy it.
        if self.is_free(position) {
            debug_assert!(position >= self.unbroken);
            if !self.last_goes_on && !leaves_the_others(kind) {
                return None;
            }
            let step = Step::of(thread);
            let computed = (self.machine).compute(step, (object, kind), known)?;
            let event = computed.event(step, &whole, site);
            (outcome, events) = (event.outcome, event.index + 1);
            if rarely!(!self.trace.append_in_place(event)) {
                return None;
            }
            noted = computed.make((object, kind, site));
        } else if position < self.unbroken {
            let event = self.trace.again(position);
            if event.thread != thread || rarely!(!alike(&event.operation, object, kind)) {
                return None;
            }
            let computed = (self.machine).compute(event.step(), (object, kind), known)?;
            let executed = computed.executed;
            if rarely!(!same(executed.label, event.label)) {
                return None;
            }
            (outcome, events) = (executed.outcome, event.index + 1);
            event.refresh(&whole, outcome, executed.before);
            noted = computed.make((object, kind, site));
        } else {
            return None;
        }
        self.position = position + 1;
        self.current = thread;
        Some(Short {
            outcome,
            events,
            noted,
        })
    }

    /// [`Driver::at_once`] for a spawn, exit or join ([`OpKind::is_of_a_life`]), which has a fast
    /// path, too. Returns the number of events that the thread has performed; `None` if the fast
    /// path does not apply and no step was made.
    #[inline(always)]
    pub(crate) fn step_thread_op(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
        site: Site,
    ) -> Option<u32> {
        let position = self.position;
        let Operation { object, ref kind } = *operation;
        let spawns = matches!(kind, OpKind::Spawn { .. });
        if self.regions.off()
            || self.machine.has_withdrawn()
            || spawns && self.machine.live().len() >= self.bounds.threads_max
        {
            return None;
        }
        let repeats = position < self.unbroken;
        let may_go_on = if repeats {
            let event = self.trace.at(position as u32);
            event.thread == thread && alike(&event.operation, object, kind)
        } else {
            self.is_free(position)
        };
        if !may_go_on || !self.machine.can_perform(thread, operation) {
            return None;
        }
        let index = self.machine.thread_op(thread, operation, site)?;
        if !repeats {
            let executed = outcome_of_thread_op(operation);
            (self.trace).append(executed.event(Step::of(thread), index, operation, site));
            if !self.last_goes_on && !leaves_the_others(kind) {
                self.free_for = 0;
            }
        }
        self.position = position + 1;
        self.current = thread;
        Some(index + 1)
    }

    /// Whether the running thread makes the next step, as far as that is known without its
    /// operation.
    #[inline]
    pub(crate) fn goes_on(&self, thread: ThreadId) -> bool {
        let position = self.position;
        if position < self.unbroken {
            self.trace.at(position as u32).thread == thread
        } else {
            self.is_free(position)
        }
    }

    /// Whether the thread of the last step also makes the step at this position.
    #[inline]
    fn is_free(&self, position: usize) -> bool {
        position.wrapping_sub(self.free_from) < self.free_for
    }

    /// The thread makes this many steps behind the next one without a call of the explorer. If the
    /// thread `begins`, it has not announced its next step yet.
    #[inline]
    fn let_go_on(&mut self, further: usize, begins: bool) {
        let announced = usize::from(!begins);
        self.free_from = self.position + announced;
        let most = self.events_max().saturating_sub(self.free_from);
        self.free_for = further.saturating_add(1 - announced).min(most);
    }

    /// Computes the clocks of the last steps before these leave the caches, because a long
    /// execution does not fit into a cache. Then the thread `next`, which makes the next step,
    /// continues.
    #[cold]
    #[inline(never)]
    fn look_back(&mut self, next: ThreadId) {
        if self.looks_back {
            self.trace.place();
            let (trace, sets) = (&self.trace, &self.machine.sets);
            let has_room = self.clocks.lack(trace).is_none();
            self.looks_back = has_room && self.clocks.extend_if_known(trace, sets, true);
        }
        let begins = self.machine.is_to_begin(next);
        self.let_go_on(AT_ONCE, begins);
    }

    /// Makes the driver ask the explorer before the next step, unless the explorer's answer is
    /// always the same.
    #[inline]
    pub(super) fn ask_again(&mut self) {
        if !self.last_goes_on {
            self.free_for = 0;
        }
    }

    /// Whether a thread that may continue makes a step of this kind without a call of the explorer.
    /// After a step that may affect other threads the driver asks the explorer again.
    #[inline]
    fn goes_on_with(&mut self, kind: &OpKind) -> bool {
        if self.last_goes_on {
            return true;
        }
        if matches!(kind, OpKind::Choose { .. }) || kind.may_have_alternatives() {
            return false;
        }
        if !leaves_the_others(kind) {
            self.free_for = 0;
        }
        true
    }

    /// Makes the step that the thread of the last step is about to announce, if this is the next
    /// step in any case. Then there is no announcement and no call of the explorer; most steps are
    /// such steps. `None` if no step was made.
    #[inline(always)]
    pub(crate) fn at_once(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
        site: Site,
    ) -> Made<Option<Outcome>> {
        if self.goes_on(thread) {
            self.make_at_once(thread, operation, site)
        } else {
            Ok(None)
        }
    }

    /// [`Driver::at_once`] where the thread continues. The fast paths leave few steps for this
    /// function.
    #[inline(never)]
    fn make_at_once(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
        site: Site,
    ) -> Made<Option<Outcome>> {
        let position = self.position;
        if position < self.unbroken {
            let event = self.trace.at(position as u32);
            let fits = alike(&event.operation, operation.object, &operation.kind)
                && !event.outcome.is_released()
                && self.machine.can_perform(thread, operation);
            if !fits {
                return Ok(None);
            }
            let (expected, step) = (event.label, event.step());
            let outcome = self.repeat(step, expected, operation, site)?;
            return Ok(Some(outcome));
        }
        if !self.machine.can_perform(thread, operation)
            || self.machine.would_look_in_vain(thread, operation)
            || rarely!(self.takes_awaits) && self.untried(thread, operation, site).is_some()
            || !self.goes_on_with(&operation.kind)
        {
            return Ok(None);
        }
        let step = Step::of(thread);
        let executed = self.machine.perform(step, operation, site);
        self.record(&executed, step, (operation, site));
        self.after(step, &operation.kind)?;
        Ok(Some(executed.outcome))
    }

    /// Makes the next step: picks a thread with an enabled announced operation, and executes the
    /// operation; or returns the thread that begins. Every live thread that has begun must have
    /// announced its operation.
    #[inline]
    pub(crate) fn next(&mut self) -> Next {
        if self.position < self.replayed {
            return self.replay();
        }
        if self.has_all_begin {
            cold_path();
            if let Some(thread) = self.machine.next_to_begin() {
                self.begin_thread(thread);
                return Next::Begins(thread);
            }
        }
        let planned = self.position - self.plan.common_prefix;
        if planned < self.plan.steps.len() {
            let (step, label) = self.plan.steps[planned];
            return self.follow(step, label);
        }
        if self.last_goes_on
            && let Some(thread) = default_thread(&self.machine, self.current, |_| true)
        {
            // The explorer would choose the same step.
            if !self.is_free(self.position) {
                self.look_back(thread);
            }
            return self.run(Step::of(thread));
        }
        self.ask()
    }

    /// Makes the step that the explorer chooses, or makes the chosen thread begin.
    #[inline(never)]
    fn ask(&mut self) -> Next {
        self.ask_again();
        self.catch_up();
        if rarely!(self.machine.limits.compares_states) && self.machine.look_for_unfit() {
            return self.over(End::Pruned(Pruned::Asleep));
        }
        loop {
            let point = Point {
                trace: &self.trace,
                machine: &self.machine,
                last: self.current,
                fixed: self.regions.off(),
                weak: self.weak.as_deref(),
            };
            let choice = self.explorer.choose(&point);
            self.last_goes_on = self.explorer.lets_the_last_go_on();
            let step = match choice {
                Choice::Run(step) => step,
                Choice::RunOn(step, _) if rarely!(self.holds_up() || self.is_weak()) => step,
                Choice::RunOn(step, further) => {
                    let begins = self.machine.is_to_begin(step.thread);
                    self.let_go_on(further, begins);
                    step
                }
                Choice::Prune(reason) => return self.over(End::Pruned(reason)),
                Choice::Stale { misfit } => return self.over(End::Stale { misfit }),
                Choice::Diverged(thread) => return self.misfit(thread, None),
                Choice::NothingEnabled if self.machine.live().is_empty() => {
                    return self.over(End::Complete);
                }
                Choice::NothingEnabled => {
                    if rarely!(self.takes_awaits)
                        && let Some(next) = self.try_any_round()
                    {
                        return next;
                    }
                    match self.stuck() {
                        Some(end) => return self.over(end),
                        None => continue,
                    }
                }
            };
            return self.run(step);
        }
    }

    /// The graph of C11 gets the steps that it has not yet. It is asked for nothing in between: a
    /// step behind the plan reads the newest store, or goes last.
    #[inline]
    pub(super) fn catch_up(&mut self) {
        if let Some(weak) = &self.weak {
            cold_path();
            weak.borrow_mut()
                .catch_up(&self.machine, &self.trace, self.position);
        }
    }

    /// Whether the execution delays a thread.
    #[inline]
    fn holds_up(&self) -> bool {
        self.machine.limits.learnt.held.is_some()
    }

    /// Whether this thread is delayed now.
    pub(crate) fn is_delayed(&self, thread: ThreadId) -> bool {
        let machine = &self.machine;
        let is_here = |hold: &Hold| {
            hold.events == machine.events_of(thread) && hold.path == machine.names.path(thread)
        };
        // In a block no other thread runs.
        let is_inside = || machine.open_block().is_some();
        machine.limits.learnt.held.as_ref().is_some_and(is_here) && !is_inside()
    }

    /// There are threads, and none is enabled: releases waiting ones, or returns the end of the
    /// execution.
    #[cold]
    #[inline(never)]
    fn stuck(&mut self) -> Option<End> {
        let stuck = self.blocked();
        // Each further step of a waiting thread would come after all other steps, so leaving these
        // steps out loses no trace.
        for (why, pruned) in [
            (Reason::Assumed, Pruned::Assumed),
            (Reason::Rounds, Pruned::Rounds),
            (Reason::Stopped, Pruned::Stopped),
        ] {
            let gives_up = OpKind::GiveUp { why };
            if stuck.iter().any(|b| b.operation.kind == gives_up) {
                return Some(End::Pruned(pruned));
            }
        }
        let in_vain = self.machine.in_vain_has_changed();
        if in_vain == Some(true) {
            return Some(End::Pruned(Pruned::InVain));
        }
        let livelock = (self.machine).livelock(self.position, self.events_max());
        if livelock.is_none() && self.machine.release_waiters(self.position as u32) {
            return None;
        }
        let may_block = self.machine.limits.detached_may_block
            && !self.machine.live().contains(&ThreadId::MAIN);
        Some(match livelock {
            _ if may_block => End::Complete,
            Some(rounds) => End::Livelock { stuck, rounds },
            // These threads would look again for ever. Where each of their rounds is made of steps,
            // the exploration shows that.
            None if in_vain.is_some() || self.machine.any_goes_round() => {
                End::Livelock { stuck, rounds: 1 }
            }
            None => End::Deadlock(stuck),
        })
    }

    /// The thread has reached a spin hint. Returns the operation that the thread announces there,
    /// if there is one.
    #[inline(never)]
    pub(crate) fn hint(&mut self, thread: ThreadId, site: Site) -> Option<Operation> {
        if !self.machine.limits.learnt.awaits.is_empty() {
            // The hint may follow another one, as in a backoff.
            if self.machine.rests(thread) || self.withdraw_look(thread, site) {
                return None;
            }
            if self.machine.limits.proves_awaits {
                return self.machine.hint(thread, site);
            }
            // The same as [`Driver::executed`], which would borrow the machine too.
            let events = self.trace.events();
            let executed = &events[..self.position.min(events.len())];
            let in_vain = self.machine.looked_in_vain(thread, site, executed);
            if in_vain.is_some() {
                return in_vain;
            }
        }
        self.machine.hint(thread, site)
    }

    /// Withdraws the last event, if it is a look in vain of this thread that was a whole round of a
    /// known loop up to this hint. The thread then waits with its next look, and no event shows
    /// that it has looked before. False if the event stays: it was planned, so that others are
    /// known to come behind it.
    #[cold]
    fn withdraw_look(&mut self, thread: ThreadId, site: Site) -> bool {
        let planned = self.replayed.max(self.planned());
        let last = self.position.checked_sub(1).filter(|&at| at >= planned);
        let Some(at) = last.filter(|_| self.takes_awaits && !self.is_weak()) else {
            return false;
        };
        let event = *self.trace.at(at as u32);
        if self.regions.off() || event.thread != thread || !self.machine.is_round(site, &event) {
            return false;
        }
        self.trace.cut(at, self.begun);
        self.clocks.truncate(at);
        self.clocks.expect(thread, &event.operation);
        if let Some(uses) = &mut self.raw_uses {
            uses.forget_after(at);
        }
        self.machine.withdraw(at as u32, &event);
        self.position = at;
        (self.free_from, self.free_for) = (at, 0);
        true
    }

    /// Whether the thread, after a look in vain that was withdrawn, does something else than to
    /// look again: this operation, or it ends. Then the exploration is void.
    #[inline]
    pub(crate) fn breaks_off(
        &mut self,
        thread: ThreadId,
        operation: Option<(&Operation, Site)>,
    ) -> bool {
        rarely!(self.machine.has_withdrawn()) && self.refuses(thread, operation)
    }

    #[cold]
    fn refuses(&mut self, thread: ThreadId, operation: Option<(&Operation, Site)>) -> bool {
        let breaks = self.machine.does_not_look_again(thread, operation);
        if breaks {
            self.refused = self.machine.loop_of(thread);
        }
        breaks
    }

    /// Makes the code of a thread begin. The caller constructs the [`Next`]: from memory it would
    /// be read in larger pieces than it was written in, and a processor stalls on that.
    #[inline]
    pub(super) fn begin_thread(&mut self, thread: ThreadId) {
        self.trace.note_begin(self.position, thread);
        self.begun += 1;
        self.machine.begin(thread);
    }

    /// Finds the position up to which the repeated events follow each other without the beginning
    /// of a thread in between.
    #[inline]
    pub(super) fn find_break(&mut self) {
        let next = self.trace.begun(self.begun);
        self.unbroken = next.map_or(self.replayed, |(position, _)| position.min(self.replayed));
    }

    /// The result in place of this thread's next step, if the step cannot be made: the thread
    /// begins, or there are too many events.
    #[inline(always)]
    pub(super) fn instead_of_step(&mut self, thread: ThreadId) -> Option<Next> {
        if self.machine.is_to_begin(thread) {
            self.begin_thread(thread);
            return Some(Next::Begins(thread));
        }
        if rarely!(self.position >= self.events_max()) {
            return Some(self.too_long());
        }
        None
    }

    /// Makes the announced step of this thread, or makes the thread begin.
    #[inline(always)]
    fn run(&mut self, step: Step) -> Next {
        if let Some(next) = self.instead_of_step(step.thread) {
            return next;
        }
        if rarely!(self.takes_awaits)
            && let Some(next) = self.try_round(step.thread)
        {
            return next;
        }
        let Pending { operation, site } = self.machine.take(step.thread);
        // The result of a step stays in registers, as long as no code path merges it with the
        // result of another kind of step.
        let made = if operation.kind.is_of_a_life() {
            self.new_thread_op(step, &operation, site)
        } else {
            self.make_anew(step, &operation, site)
        };
        self.made(step.thread, made)
    }

    /// [`Driver::run`] for a spawn, exit or join. Mostly the announced operation is a join, because
    /// only a join can be blocked. Once the compiler sees this kind, it removes most of the code.
    #[inline(never)]
    fn new_thread_op(&mut self, step: Step, operation: &Operation, site: Site) -> Made<Outcome> {
        let Operation { object, kind } = *operation;
        if let OpKind::Join { child } = kind {
            let kind = OpKind::Join { child };
            return self.new_thread_op_as(step, &Operation { object, kind }, site);
        }
        self.new_thread_op_as(step, operation, site)
    }

    #[inline(always)]
    fn new_thread_op_as(&mut self, step: Step, operation: &Operation, site: Site) -> Made<Outcome> {
        self.machine.thread_op(step.thread, operation, site);
        let executed = outcome_of_thread_op(operation);
        self.record(&executed, step, (operation, site));
        self.after(step, &operation.kind)?;
        Ok(executed.outcome)
    }

    /// [`Driver::run`] for any other step.
    #[inline(always)]
    fn make_anew(&mut self, step: Step, operation: &Operation, site: Site) -> Made<Outcome> {
        let executed = self.machine.perform(step, operation, site);
        self.record(&executed, step, (operation, site));
        self.advance(step.thread);
        Ok(executed.outcome)
    }

    /// Appends the step that was made to the trace.
    #[inline(always)]
    pub(super) fn record(
        &mut self,
        executed: &Executed,
        step: Step,
        (operation, site): (&Operation, Site),
    ) {
        let index = self.machine.events_of(step.thread) - 1;
        if rarely!(self.machine.has_withdrawn()) {
            self.note_passed((step.thread, index), operation.object);
        }
        (self.trace).append(executed.event(step, index, operation, site));
    }

    /// Counts the step of this thread that has been made.
    #[inline(always)]
    pub(super) fn advance(&mut self, thread: ThreadId) {
        self.regions.push(self.position);
        self.position += 1;
        self.current = thread;
    }

    /// [`Driver::advance`], unless there are too many threads now.
    #[inline(always)]
    pub(super) fn after(&mut self, step: Step, kind: &OpKind) -> Made<()> {
        self.advance(step.thread);
        match kind {
            OpKind::Spawn { .. }
                if rarely!(self.machine.live().len() > self.bounds.threads_max) =>
            {
                let limit = self.bounds.threads_max;
                Err(Box::new(End::TooManyThreads { limit }))
            }
            _ => Ok(()),
        }
    }

    /// Turns the result of this thread's step into a [`Next`].
    #[inline(always)]
    pub(super) fn made(&mut self, thread: ThreadId, made: Made<Outcome>) -> Next {
        match made {
            Ok(outcome) => Next::Ran(thread, outcome),
            Err(end) => self.over_early(end),
        }
    }

    /// [`Driver::over`] where the execution has ended with a step.
    #[cold]
    #[inline(never)]
    #[expect(
        clippy::boxed_local,
        reason = "what is in the box is moved out of the way"
    )]
    fn over_early(&mut self, end: Box<End>) -> Next {
        self.over(*end)
    }

    /// Ends an execution that has the maximal number of events, and would have another one.
    #[cold]
    fn too_long(&mut self) -> Next {
        let end = self.too_many();
        self.over(end)
    }

    /// The end of an execution that has the maximal number of events.
    fn too_many(&self) -> End {
        End::TooManyEvents {
            limit: self.bounds.events_max,
            hints: self.hints,
        }
    }

    /// The most events beside the hints that count.
    #[inline]
    fn events_max(&self) -> usize {
        self.bounds.events_max.saturating_sub(self.hints)
    }

    /// Whether a spin hint counts as an event.
    #[inline]
    pub(crate) fn hints_count(&self) -> bool {
        self.bounds.hints_count
    }

    /// A thread has reached a spin hint. Returns the end of the execution if the hint is one event
    /// too many.
    pub(crate) fn count_hint(&mut self) -> Option<End> {
        if !self.bounds.hints_count {
            return None;
        }
        self.hints += 1;
        // The number of free steps was computed from the former limit of events.
        self.free_for = 0;
        (self.position + self.hints > self.bounds.events_max).then(|| self.too_many())
    }

    /// Ends the execution with `end`.
    pub(super) fn over(&mut self, end: End) -> Next {
        self.end = Some(end);
        Next::Ended
    }

    /// The end of the execution, after [`Driver::next`] has returned [`Next::Ended`].
    pub(crate) fn take_end(&mut self) -> End {
        self.end.take().expect("dpor bug: it has not ended")
    }
}
