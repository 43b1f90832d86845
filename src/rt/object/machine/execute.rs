//! What does a step do to the objects, and to its thread?
//!
//! Most operations are on atomics and reference counts, and after them on mutexes and park tokens,
//! so these have paths of their own. The outcome of an operation is the same on each path.

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{AtomicType, OpKind, Operation, Outcome, Step};
use crate::rt::event::{Event, Site};
use crate::rt::loops::spin::{Meaning, meaning, meaning_of_count};
use crate::rt::object::mutex::Mutex;
use crate::rt::object::thread::token_apply;
use crate::rt::object::{State, atomic, count};
use crate::rt::rare::{cold_path, rarely};
use crate::rt::relation::independence::{Class, Label, Nature, classify};

use super::{Loop, Machine, Object, Pending, Thread, asks, is_timed, looks, unannounced, unmet};
use crate::rt::object::machine::blocks::{Effect, Outside, is_for_blocks};
use crate::rt::object::machine::transition::{on_count, on_mutex};

/// The result of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Executed {
    pub(crate) outcome: Outcome,
    pub(crate) label: Label,
    pub(crate) alternatives: u32,
    pub(crate) before: Option<u64>,
}

/// The value that a thread found in an object and the value that it left there, if the thread could
/// see one. `all` is false if [`Machine::note_more`] has to complete the note.
#[derive(Clone, Copy)]
pub(crate) struct Noticed {
    pub(crate) all: bool,
    pub(crate) found: u64,
    pub(crate) left: u64,
}

impl Noticed {
    pub(super) const NOTHING: Noticed = Noticed {
        all: true,
        found: 0,
        left: 0,
    };
}

impl Thread {
    /// Notes an operation on an atomic in the thread's spin log, which detects loops that only
    /// look.
    #[inline(always)]
    pub(super) fn notice_access(
        &mut self,
        object: ObjectId,
        (found, left): (u64, u64),
        outcome: Outcome,
        is_kept: bool,
    ) -> Noticed {
        if rarely!(left == found && !is_look(found, left, outcome)) {
            return Noticed::NOTHING;
        }
        let all = self.spin.note(object, found, left, is_kept);
        if all && left != found {
            self.consecutive_releases = 0;
        }
        Noticed { all, found, left }
    }

    /// Completes a note, if anything is missing from it.
    #[inline]
    fn note_more(&mut self, object: ObjectId, noted: Noticed) {
        if !noted.all {
            self.spin.note_more(object, noted.found, noted.left);
        }
    }

    /// Notes the result of a compare-exchange at this atomic. A spurious failure stays noted until
    /// a compare-exchange succeeds there.
    #[inline(never)]
    fn note_failure(&mut self, (object, kind): (ObjectId, &OpKind), outcome: Outcome) {
        if fails_for_no_reason(kind, outcome) {
            self.failed.push(object);
            self.failures += 1;
        } else {
            self.note_success(object, outcome);
        }
    }

    /// [`Thread::note_failure`] for an operation that did not fail spuriously.
    #[inline(always)]
    pub(super) fn note_success(&mut self, object: ObjectId, outcome: Outcome) {
        if rarely!(!self.failed.is_empty()) && matches!(outcome, Outcome::Success(_)) {
            self.failed.retain(|&failed| failed != object);
        }
    }

    /// Notes the meaning of an operation of the thread on an object.
    #[inline(always)]
    pub(super) fn notice(&mut self, object: ObjectId, meaning: Meaning) -> Noticed {
        match meaning {
            Meaning::Nothing => Noticed::NOTHING,
            Meaning::Change => {
                self.spin.change();
                self.consecutive_releases = 0;
                Noticed::NOTHING
            }
            Meaning::Look(seen) => self.look_at(object, seen),
        }
    }

    /// Notes that the thread has seen this value in an object.
    #[inline(always)]
    fn look_at(&mut self, object: ObjectId, seen: u64) -> Noticed {
        Noticed {
            all: self.spin.note(object, seen, seen, false),
            found: seen,
            left: seen,
        }
    }

    /// Notes that the thread has made this token available. A loop that does so in each round
    /// continues when another thread has taken the token.
    #[inline(always)]
    pub(super) fn note_unpark(&mut self, token: ObjectId) -> Noticed {
        self.unparked = Some(token);
        self.look_at(token, 1)
    }

    /// Applies this operation of the thread to a mutex.
    #[inline(always)]
    fn use_mutex(
        &mut self,
        mutex: &mut Mutex,
        thread: ThreadId,
        (object, kind): (ObjectId, &OpKind),
    ) -> Executed {
        let (after, executed, meaning) = on_mutex(*mutex, thread, (object, kind));
        *mutex = after;
        let noted = self.notice(object, meaning);
        self.note_more(object, noted);
        executed
    }

    /// Applies this operation to an object in this state as a part of a block.
    pub(super) fn use_inside(&mut self, state: &mut State, step: Step, operation: &Operation) {
        let Operation { object, ref kind } = *operation;
        let State::Atomic { ty, value } = state else {
            self.use_object(state, step, operation);
            return;
        };
        let before = *value;
        let (after, executed) = on_atomic(*ty, before, step, (object, kind));
        *value = after;
        if let OpKind::Rmw { blind: true, .. } = kind {
            self.notice(object, Meaning::Change);
            return;
        }
        let noted = self.notice_access(object, (before, after), executed.outcome, false);
        self.note_more(object, noted);
    }

    /// Applies this operation of the thread to an object in this state.
    #[inline(always)]
    fn use_object(&mut self, state: &mut State, step: Step, operation: &Operation) -> Executed {
        let kind = &operation.kind;
        let alternatives = state.alternatives(kind);
        let before = state.pack();
        let shown = state.polled();
        let outcome = state.apply(step.thread, kind, step.alternative);
        let meaning = meaning(kind, outcome, (shown, state.polled()));
        let noted = self.notice(operation.object, meaning);
        self.note_more(operation.object, noted);
        Executed {
            alternatives,
            ..Executed::plainly(outcome, state.label(operation, outcome), before)
        }
    }
}

/// Whether the operation is a compare-exchange that found the expected value, and failed.
#[inline(always)]
pub(super) fn fails_for_no_reason(kind: &OpKind, outcome: Outcome) -> bool {
    matches!(*kind, OpKind::CompareExchange { expected, .. } if outcome == Outcome::Failure(expected))
}

/// Whether the operation on an atomic only showed its value to the thread.
#[inline(always)]
fn is_look(before: u64, after: u64, outcome: Outcome) -> bool {
    after == before && outcome != Outcome::Done
}

impl Executed {
    /// The result of a step with only one possible outcome.
    #[inline]
    pub(super) fn plainly(outcome: Outcome, label: Label, before: Option<u64>) -> Executed {
        Executed {
            outcome,
            label,
            alternatives: 1,
            before,
        }
    }

    /// The event of this step of an announced operation. `index` counts the events of the thread
    /// from 0.
    #[inline(always)]
    pub(crate) fn event(&self, step: Step, index: u32, operation: &Operation, site: Site) -> Event {
        Event {
            thread: step.thread,
            index,
            operation: *operation,
            outcome: self.outcome,
            label: self.label,
            alternative: step.alternative,
            alternatives: self.alternatives,
            before: self.before,
            site,
        }
    }
}

/// The label of an operation on an atomic with this outcome. Only an update has a number.
#[inline(always)]
fn label_on_atomic(object: ObjectId, kind: &OpKind, outcome: Outcome) -> Label {
    if let OpKind::Rmw { blind: true, .. } = kind {
        cold_path();
        return Label::new(object, kind, outcome, Nature::Plain);
    }
    Label::of(object, classify(kind, outcome, Nature::Plain))
}

/// The result of an operation on an atomic that holds `before`, and the value that the atomic holds
/// then.
#[inline(always)]
pub(super) fn on_atomic(
    ty: AtomicType,
    before: u64,
    step: Step,
    (object, kind): (ObjectId, &OpKind),
) -> (u64, Executed) {
    let (after, outcome) = atomic::apply(ty, before, kind, step.alternative);
    let label = label_on_atomic(object, kind, outcome);
    let executed = Executed {
        alternatives: atomic::alternatives(before, kind),
        ..Executed::plainly(outcome, label, Some(before))
    };
    (after, executed)
}

/// The result of an operation on a thread (spawn, exit, join), which is always the same.
#[inline(always)]
pub(crate) fn outcome_of_thread_op(operation: &Operation) -> Executed {
    let Operation { object, ref kind } = *operation;
    let class = classify(kind, Outcome::Done, Nature::Plain);
    // Only a finished thread can be joined. A spawn and an exit come before the thread has
    // finished.
    let finished = matches!(kind, OpKind::Join { .. }) as u64;
    let before = (object != ObjectId::NONE).then_some(finished);
    Executed::plainly(Outcome::Done, Label::of(object, class), before)
}

impl Machine {
    /// Completes the note of a step of `thread`.
    pub(crate) fn note_more(&mut self, thread: ThreadId, object: ObjectId, noted: Noticed) {
        self.threads[thread.index()].note_more(object, noted);
    }

    /// Takes the announced operation of an enabled thread in order to execute it.
    #[inline(always)]
    pub(crate) fn take(&mut self, thread: ThreadId) -> Pending {
        let entry = &mut self.threads[thread.index()];
        if !std::mem::take(&mut entry.announced) {
            unannounced(thread)
        }
        entry.last
    }

    /// The last announced operation of `thread`.
    #[inline]
    pub(crate) fn last(&self, thread: ThreadId) -> &Pending {
        &self.threads[thread.index()].last
    }

    /// Takes back the announcement of `thread`, because its step is about to be made.
    #[inline(always)]
    pub(crate) fn take_announced(&mut self, thread: ThreadId) {
        self.threads[thread.index()].announced = false;
    }

    /// Whether a thread that has announced this operation, or is about to, can perform it now.
    #[inline(always)]
    pub(crate) fn can_perform(&self, thread: ThreadId, operation: &Operation) -> bool {
        match operation.kind {
            // Each thread is joined, and parks are frequent waits. So these two questions are the
            // most frequent, and they are short because the kind is a constant here.
            OpKind::Join { .. } => self.has_finished(operation.object),
            OpKind::Park => self.is_available(operation.object),
            ref kind if kind.may_have_to_wait() => {
                let entry = &self.threads[thread.index()];
                self.can_happen(thread, entry, operation)
            }
            _ => true,
        }
    }

    /// Executes a step that its thread has not announced before.
    #[inline(always)]
    pub(crate) fn perform(&mut self, step: Step, operation: &Operation, site: Site) -> Executed {
        if operation.kind.is_of_a_life() {
            return self.perform_in_life(step.thread, operation, site);
        }
        // Operations on atomics are by far the most frequent.
        if operation.kind.is_atomic() {
            self.perform_atomic(step, operation, site)
        } else {
            self.perform_another(step, operation, site)
        }
    }

    /// [`Machine::perform`] for an operation on a thread. An announced one is mostly a join,
    /// because only a join may have to wait. With the kind as a constant, little code remains.
    #[inline(never)]
    fn perform_in_life(&mut self, thread: ThreadId, operation: &Operation, site: Site) -> Executed {
        let Operation { object, kind } = *operation;
        if let OpKind::Join { child } = kind {
            let kind = OpKind::Join { child };
            self.thread_op(thread, &Operation { object, kind }, site);
            return outcome_of_thread_op(&Operation { object, kind });
        }
        self.thread_op(thread, operation, site);
        outcome_of_thread_op(operation)
    }

    /// [`Machine::perform`] for an operation on an atomic.
    #[inline(always)]
    pub(crate) fn perform_atomic(
        &mut self,
        step: Step,
        operation: &Operation,
        site: Site,
    ) -> Executed {
        let Operation { object, ref kind } = *operation;
        let entry = &mut self.threads[step.thread.index()];
        entry.events += 1;
        let Some(Object {
            state: State::Atomic { ty, value },
            ..
        }) = &mut self.objects[object.index()]
        else {
            unmet(object)
        };
        let (before, after, executed);
        if let Some(orders) = &mut self.orders
            && ty.is_weak()
        {
            cold_path();
            let of = (step.thread, object);
            let made = orders.apply(of, (*ty, *value), kind, step.alternative);
            let label = label_on_atomic(object, kind, made.outcome);
            executed = Executed::plainly(made.outcome, label, Some(made.before));
            *value = made.last;
            (before, after) = (made.found, made.after);
        } else {
            before = *value;
            (after, executed) = on_atomic(*ty, before, step, (object, kind));
            *value = after;
        }
        let bound = self.limits.unhinted_spin_bound;
        let is_kept = looks(kind) && entry.spin.come_back(site, object, before, bound);
        if let OpKind::CompareExchange { .. } = kind {
            entry.note_failure((object, kind), executed.outcome);
        }
        if let OpKind::Rmw { blind: true, .. } = kind {
            cold_path();
            entry.notice(object, Meaning::Change);
            return executed;
        }
        let noted = entry.notice_access(object, (before, after), executed.outcome, is_kept);
        entry.note_more(object, noted);
        executed
    }

    /// [`Machine::perform`] for an operation that is neither on a thread nor on an atomic.
    #[inline(always)]
    pub(crate) fn perform_another(
        &mut self,
        step: Step,
        operation: &Operation,
        site: Site,
    ) -> Executed {
        self.threads[step.thread.index()].events += 1;
        self.execute(step, operation, site)
    }

    /// Executes an operation on an object that is no atomic.
    fn execute(&mut self, step: Step, operation: &Operation, site: Site) -> Executed {
        let thread = step.thread;
        let label = |class| Label::of(operation.object, class);
        if asks(&operation.kind) {
            self.come_back(step, operation, site);
        }
        match operation.kind {
            OpKind::Park | OpKind::Unpark => {
                let kind = &operation.kind;
                let available = self.token(operation.object);
                let before = *available;
                let (after, outcome) = token_apply(before, kind);
                *available = after;
                // A park after an unpark by the same thread is neither a change nor a look. A task
                // that wakes itself in order to be polled again does this.
                let entry = &mut self.threads[thread.index()];
                if matches!(kind, OpKind::Unpark) {
                    let noted = entry.note_unpark(operation.object);
                    entry.note_more(operation.object, noted);
                } else if entry.unparked.take() == Some(operation.object) {
                    entry.spin.take_own(operation.object);
                } else {
                    entry.spin.change();
                    entry.consecutive_releases = 0;
                }
                let class = classify(kind, outcome, Nature::Plain);
                Executed::plainly(outcome, label(class), Some(before as u64))
            }
            ref kind if kind.counts() => self.execute_count(thread, (operation.object, kind)),
            _ => self.execute_another(step, operation, site),
        }
    }

    /// Notes that the thread queries an object that is no atomic, as a loop without a hint may do.
    #[inline(never)]
    fn come_back(&mut self, step: Step, operation: &Operation, site: Site) {
        let state = self.state(operation.object);
        let mut shown = state.polled_by(&operation.kind);
        if step.alternative > 0
            && let State::Mutex(mutex) = *state
            && let Some(orders) = &mut self.orders
        {
            let of = (operation.object, &operation.kind);
            shown = orders.before_lock(of, mutex, step.alternative).polled();
        }
        let bound = self.limits.unhinted_spin_bound;
        let log = &mut self.threads[step.thread.index()].spin;
        log.come_back(site, operation.object, shown, bound);
    }

    /// Executes an operation on a reference count. A loop that clones an `Arc` and drops it again
    /// is as idle as a loop that does not.
    #[inline(always)]
    fn execute_count(&mut self, thread: ThreadId, (object, kind): (ObjectId, &OpKind)) -> Executed {
        let Some(Object {
            state: State::Count { observed, count },
            ..
        }) = &mut self.objects[object.index()]
        else {
            unmet(object)
        };
        let before = *count;
        let (after, executed) = on_count(*observed, before, (object, kind));
        *count = after;
        let shown = count::polled_by(before, kind);
        let meaning = meaning_of_count(kind, executed.outcome, (shown, count::polled(after)));
        if let Meaning::Look(seen) = meaning {
            let entry = &mut self.threads[thread.index()];
            let noted = entry.look_at(object, seen);
            entry.note_more(object, noted);
        }
        executed
    }

    /// Executes a step that its thread has not announced before, if it is an operation on a thread
    /// ([`OpKind::is_of_a_life`]). The result of such an operation is always the same
    /// ([`outcome_of_thread_op`]). Returns the number of events of the thread before the step;
    /// `None` if it is another operation, and then nothing has changed.
    #[inline(always)]
    pub(crate) fn thread_op(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
        site: Site,
    ) -> Option<u32> {
        if !operation.kind.is_of_a_life() {
            return None;
        }
        let entry = &mut self.threads[thread.index()];
        let before = entry.events;
        entry.events += 1;
        match operation.kind {
            OpKind::Spawn { child } => {
                entry.children += 1;
                entry.spin.change();
                if thread == ThreadId::MAIN {
                    self.first_spawn.get_or_insert(before);
                }
                self.add_thread(child, site);
            }
            OpKind::Exit => self.end(thread),
            OpKind::Join { child } => {
                let joined = &mut self.threads[child.index()].joined;
                self.unjoined -= !*joined as u32;
                *joined = true;
            }
            _ => {}
        }
        Some(before)
    }

    /// Whether the thread that this object stands for has finished.
    #[inline(always)]
    fn has_finished(&self, object: ObjectId) -> bool {
        match *self.state(object) {
            State::Thread { finished } => finished,
            _ => unmet(object),
        }
    }

    /// Whether this token is available.
    #[inline]
    fn is_available(&self, object: ObjectId) -> bool {
        match *self.state(object) {
            State::Token { available } => available,
            _ => unmet(object),
        }
    }

    /// [`Machine::has_finished`], as a mutable reference.
    pub(super) fn finished(&mut self, object: ObjectId) -> &mut bool {
        match &mut self.objects[object.index()] {
            Some(Object {
                state: State::Thread { finished },
                ..
            }) => finished,
            _ => unmet(object),
        }
    }

    /// [`Machine::is_available`], as a mutable reference.
    fn token(&mut self, object: ObjectId) -> &mut bool {
        match &mut self.objects[object.index()] {
            Some(Object {
                state: State::Token { available },
                ..
            }) => available,
            _ => unmet(object),
        }
    }

    /// Executes an operation that is none of the most frequent ones.
    fn execute_another(&mut self, step: Step, operation: &Operation, site: Site) -> Executed {
        let thread = step.thread;
        let local = Label::of(operation.object, Class::Local);
        let mut executed = Executed::plainly(Outcome::Done, local, None);
        match operation.kind {
            OpKind::Choose { options, .. } => {
                executed.alternatives = options;
                executed.outcome = Outcome::Value(step.alternative as u64);
            }
            OpKind::GiveUp { .. } | OpKind::Resume => {}
            OpKind::Atomically { footprint } => {
                executed.label = Label::of(ObjectId(footprint), Class::Block);
                self.begin_block(thread, footprint);
            }
            OpKind::Wait { .. } => {
                let entry = &mut self.threads[thread.index()];
                match entry.released.take() {
                    Some(events) => {
                        let quiescent_at = u64::from(events);
                        executed.outcome = Outcome::Released { quiescent_at };
                        entry.consecutive_releases += 1;
                    }
                    None => {
                        entry.consecutive_releases = 0;
                        self.hintless_ends |= entry.loops == Loop::Unhinted;
                    }
                }
                executed.label = Label::new(
                    operation.object,
                    &operation.kind,
                    executed.outcome,
                    Nature::Plain,
                );
            }
            ref kind => {
                let Some(object) = &mut self.objects[operation.object.index()] else {
                    unmet(operation.object)
                };
                let entry = &mut self.threads[thread.index()];
                if let State::Mutex(mutex) = &mut object.state {
                    let of = (operation.object, kind);
                    let Some(orders) = &mut self.orders else {
                        return entry.use_mutex(mutex, thread, of);
                    };
                    cold_path();
                    let found = orders.before_lock(of, *mutex, step.alternative);
                    if step.alternative == 0 {
                        let executed = entry.use_mutex(mutex, thread, of);
                        orders.note_lock(of, *mutex, executed.outcome);
                        return executed;
                    }
                    let (_, executed, meaning) = on_mutex(found, thread, of);
                    let noted = entry.notice(operation.object, meaning);
                    entry.note_more(operation.object, noted);
                    return executed;
                }
                executed = entry.use_object(&mut object.state, step, operation);
                if is_timed(kind) {
                    if executed.outcome.succeeded() {
                        entry.timeouts.reset()
                    } else {
                        let seen = object.state.awaited_by(thread);
                        entry.timeouts.count(site, operation.object, seen);
                    }
                }
            }
        }
        executed
    }
}

impl Machine {
    /// The thread, which has just made this event, is in a block until its end.
    pub(super) fn begin_block(&mut self, thread: ThreadId, footprint: u32) {
        let at = (thread, self.threads[thread.index()].events - 1);
        self.blocks.made.remove(&at);
        self.blocks.open = Some((at, footprint));
    }

    /// Ends the open block. Returns a lock that the block found in another state than it leaves it,
    /// if there is one: no thread holds a lock across the edge of a block.
    pub(crate) fn end_block(&mut self) -> Option<ObjectId> {
        let (at, _) = self.blocks.open.take()?;
        let effects = self.blocks.made.get(&at)?;
        let changes = |effect: &&Effect| {
            matches!(effect.before, State::Mutex(_) | State::RwLock(_))
                && effect.before.visible() != effect.after.visible()
        };
        effects.iter().find(changes).map(|effect| effect.object)
    }

    /// The thread in the open block, and the footprint of the block.
    #[inline]
    pub(crate) fn open_block(&self) -> Option<(ThreadId, u32)> {
        let ((thread, _), footprint) = self.blocks.open?;
        Some((thread, footprint))
    }

    /// Makes an operation as a part of the open block; nothing changes if it is none. Returns the
    /// label that the operation would have as an event, too.
    pub(crate) fn perform_inside(
        &mut self,
        operation: &Operation,
    ) -> Result<(Outcome, Label), Outside> {
        let Some((at, footprint)) = self.blocks.open else {
            panic!("dpor bug: an operation is in no block")
        };
        let Operation { object, ref kind } = *operation;
        if object == ObjectId::NONE || is_timed(kind) {
            return Err(Outside::Kind);
        }
        let thread = at.0;
        let Some(Object { state, .. }) = &mut self.objects[object.index()] else {
            unmet(object)
        };
        if !is_for_blocks(state.kind()) {
            return Err(Outside::Kind);
        }
        let footprint = self.sets.footprint(footprint);
        if footprint.writes(object).is_none() {
            return Err(Outside::Footprint);
        }
        if !state.enabled(thread, kind) {
            return Err(Outside::Waits);
        }
        let before = state.clone();
        let mut after = before.clone();
        let outcome = after.apply(thread, kind, 0);
        let label = before.label(operation, outcome);
        if !footprint.permits(object, label.class()) {
            return Err(Outside::ReadOnly);
        }
        let entry = &mut self.threads[thread.index()];
        entry.use_inside(state, Step::of(thread), operation);
        let effects = self.blocks.made.entry(at).or_default();
        match effects.iter_mut().find(|effect| effect.object == object) {
            Some(known) => known.after = after,
            None => effects.push(Effect {
                object,
                before,
                after,
            }),
        }
        Ok((outcome, label))
    }

    /// Applies the part of this event that belongs to `object` to the state of this object.
    #[inline]
    pub(crate) fn apply(&self, event: &Event, object: ObjectId, state: &mut State) {
        if event.operation.object == object {
            state.apply(event.thread, &event.operation.kind, event.alternative);
        } else if event.label.is_block()
            && let Some(effect) = self.effect(event, object)
        {
            state.clone_from(&effect.after);
        }
    }

    /// The value that an event on this object found there, if it is one number.
    pub(crate) fn before(&self, event: &Event, object: ObjectId) -> Option<u64> {
        if event.label.is_block() {
            return self.effect(event, object)?.before.pack();
        }
        event.before.filter(|_| event.operation.object == object)
    }

    fn effect(&self, event: &Event, object: ObjectId) -> Option<&Effect> {
        let effects = self.blocks.made.get(&(event.thread, event.index))?;
        effects.iter().find(|effect| effect.object == object)
    }

    /// Gives the objects the states in which the block of this event left them.
    pub(super) fn repeat_block(&mut self, event: &Event) {
        let Machine {
            blocks, objects, ..
        } = self;
        let effects = blocks.made.get(&(event.thread, event.index));
        for effect in effects.into_iter().flatten() {
            if let Some(object) = &mut objects[effect.object.index()] {
                object.state.clone_from(&effect.after);
            }
        }
    }
}
