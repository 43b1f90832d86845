//! Which sequence reverses a race?
//!
//! For an event e of an execution E and another event e' that could run before e, the sequence is
//! `v = notdep(e, E) . e'`: all events behind e that do not happen after e, over the *whole* of E,
//! and then e'. Three groups of pairs are reversed:
//!
//! * direct: the races of happens-before;
//! * blocking (\[SS\] 8.1): an acquisition, and a later or still blocked operation that it shut
//!   out;
//! * choices: an event, and the same event with another outcome.
//!
//! The reversed event may have another outcome than in E: a compare-exchange that failed after e
//! may succeed before it. So its label is not the one it has in E. Instead, the history of its
//! object in `pre(E,e).w` runs through the pure model, and if the operation is disabled there, the
//! pair cannot be reversed. This one rule also excludes unlock before lock and unpark before park.
//! The labels of the other events of v do not depend on e, except for the counts in them, which are
//! computed anew in the same way.

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Outcome, Step};
use crate::rt::event::{NOWHERE, Trace};
use crate::rt::object::State;
use crate::rt::object::machine::is_among;
use crate::rt::pooled::Empty;
use crate::rt::rare::rarely;
use crate::rt::relation::independence::{Class, Label, changes_value, commutes, ordered};

use crate::rt::engine::Execution;
use crate::rt::engine::blocking_pairs::{BlockingPairs, blocking_pairs};
use crate::rt::engine::cover::consumed::Consumed;
use crate::rt::engine::enabling::is_enabling_pair;
use crate::rt::engine::relabel::{relabel, state_before};
use crate::rt::engine::sequence::{ReversedEvent, ReversibleRace, SequenceEvent};
use crate::rt::engine::sleep::Sleeper;

/// After this many events in a row of threads that are done, the next event of another thread is
/// looked up.
const IN_VAIN: u32 = if cfg!(test) { 2 } else { 32 };

/// A sequence that reverses a race; the buffer is reused.
#[derive(Default, Debug)]
pub(crate) struct Reversal {
    pub(crate) items: Vec<SequenceEvent>,
    /// For each thread whether its remaining events are known to be outside of the sequence; the
    /// buffer of one call.
    done: Vec<bool>,
    /// The predecessor of the last item.
    predecessor: Option<u32>,
    /// The buffers of [`Reversal::trim`].
    needed: Vec<bool>,
    clock: Vec<u32>,
    counted: Vec<ObjectId>,
}

impl Empty for Reversal {
    fn empty(&mut self) {
        let Reversal {
            items,
            done,
            predecessor,
            needed,
            clock,
            counted,
        } = self;
        items.empty();
        done.empty();
        *predecessor = None;
        needed.empty();
        clock.empty();
        counted.empty();
    }
}

/// Finds the pairs to reverse in an execution: calls `found(e, second)` for every pair of the three
/// groups. Once `found` returns false for an outcome of a choice, it gets no further outcomes of
/// that choice.
pub(crate) fn pairs(execution: &Execution<'_>, mut found: impl FnMut(u32, &ReversedEvent) -> bool) {
    for number in 0..execution.clocks.races().len() {
        direct(execution, number, |first, second| {
            found(first, second);
            false
        });
    }
    indirect(execution, found);
}

/// (a) Direct: calls `found(e, second)` for each way to reverse the race with this number. Returns
/// whether the result for this race is independent of all events behind it: the race cannot be
/// reversed, or it can be reversed in one way and `found` returns true for that.
#[inline]
pub(crate) fn direct(
    execution: &Execution<'_>,
    number: usize,
    mut found: impl FnMut(u32, &ReversedEvent) -> bool,
) -> bool {
    let race = &execution.clocks.races()[number];
    let event = execution.trace.at(race.second);
    let kind = &event.operation.kind;
    // A wait is disabled where its thread goes round with the value before the first event.
    let passed = (execution.machine).passed_at(race.second);
    if rarely!(passed.is_some()) && passed.is_some_and(|it| it.shut_out_by.contains(&race.first)) {
        return true;
    }
    if kind.may_have_to_wait() && is_enabling_pair(execution, race) {
        return true;
    }
    let outcomes = outcomes(execution, kind);
    if outcomes == 1 {
        let of_race = ReversibleRace {
            number,
            position: race.second,
            index: event.index,
            label: event.label,
        };
        let second = ReversedEvent {
            race: Some(of_race),
            ..executed(execution, race.second, 0)
        };
        return found(race.first, &second);
    }
    for alternative in 0..outcomes {
        found(race.first, &executed(execution, race.second, alternative));
    }
    false
}

/// The event at `position`, with this outcome, as a reversed event.
#[inline]
fn executed(execution: &Execution<'_>, position: u32, alternative: u32) -> ReversedEvent {
    let event = execution.trace.at(position);
    ReversedEvent {
        step: Step {
            thread: event.thread,
            alternative,
        },
        operation: event.operation,
        predecessor: execution.trace.predecessor(position),
        race: None,
    }
}

/// The pairs that are not races: calls `found` as [`pairs`] does.
pub(crate) fn indirect(
    execution: &Execution<'_>,
    mut found: impl FnMut(u32, &ReversedEvent) -> bool,
) {
    let trace = execution.trace;
    let mut far = BlockingPairs::default();
    for &position in trace.notable() {
        let event = trace.at(position);
        // (b) Blocking. Many locks are taken once. Only another park shuts a park out, and no park
        // before one of the same thread does.
        let is_let_in = execution.clocks.is_first_on_its_object(position)
            || event.label.class() == Class::Park && execution.clocks.comes_back(position);
        // Tests look at all pairs that are left out.
        if cfg!(test) || !is_let_in {
            // Since a wait was released, no event has shut it out.
            let since = match event.outcome {
                Outcome::Released { quiescent_at } => quiescent_at as u32,
                _ => position,
            };
            let waiting = (event.thread, event.operation);
            blocking_pairs(execution, waiting, since, &mut far, |first| {
                let second = executed(execution, position, 0);
                let is_known = second.is_behind(execution, first);
                assert!(!cfg!(test) || is_known || !is_let_in, "{first}, {position}");
                // A wait races with the event that enabled it, and `direct` reports that race.
                let mut races = execution.clocks.races_of(position);
                if !is_known && !races.any(|race| race.first == first) {
                    found(first, &second);
                }
                is_known
            });
        }
        // (c) Choices.
        if event.alternatives > 1 {
            otherwise(execution, position, &mut found);
        }
    }
    for passed in execution.machine.passed() {
        let second = executed(execution, passed.position, 0);
        let by = |first| passed.shut_out_by.contains(&first);
        for first in comes_before(execution, &second, passed.position, by) {
            let mut races = execution.clocks.races_of(passed.position);
            if !races.any(|race| race.first == first) {
                found(first, &second);
            }
        }
    }
    if !execution.blocked.is_empty() {
        pending(execution, &mut far, found);
    }
    if rarely!(far.has_any()) {
        drop(far);
    } else {
        // An empty table owns no memory, so nothing leaks.
        std::mem::forget(far);
    }
}

/// The events before `position` on the object of this wait that it could come before. The wait is
/// disabled before the events by which it `is_shut_out`. Such an event may lie between the wait and
/// one that it could come before, so that the two do not race.
#[cold]
fn comes_before(
    execution: &Execution<'_>,
    second: &ReversedEvent,
    position: u32,
    is_shut_out: impl Fn(u32) -> bool,
) -> Vec<u32> {
    let object = second.operation.object;
    let (earlier, _) = execution.clocks.split_on(object, position);
    let others = earlier.iter().rev().copied().take_while(|&first| {
        let event = execution.trace.at(first);
        event.thread != second.step.thread
    });
    let enables = |&first: &u32| {
        let event = execution.trace.at(first);
        changes_value(event.label.class())
            && !is_shut_out(first)
            && !second.is_behind(execution, first)
    };
    others.filter(enables).collect()
}

/// The event at `position` with its other outcomes: calls `found` as [`pairs`] does.
#[inline(never)]
fn otherwise(
    execution: &Execution<'_>,
    position: u32,
    mut found: impl FnMut(u32, &ReversedEvent) -> bool,
) {
    let event = execution.trace.at(position);
    let mut others = (0..event.alternatives).filter(|&other| other != event.alternative);
    others.all(|other| found(position, &executed(execution, position, other)));
}

/// The pending operations, each with the acquisitions that shut it out: calls `found` as [`pairs`]
/// does.
#[inline(never)]
fn pending(
    execution: &Execution<'_>,
    far: &mut BlockingPairs,
    mut found: impl FnMut(u32, &ReversedEvent) -> bool,
) {
    let trace = execution.trace;
    for blocked in execution.blocked {
        let second = ReversedEvent {
            step: Step::of(blocked.thread),
            operation: blocked.operation,
            predecessor: trace.predecessor_of_next(blocked.thread),
            race: None,
        };
        if let Some(values) = execution.machine.goes_round_with(blocked.thread) {
            let object = blocked.operation.object;
            let by = |first| is_among(execution.machine, values, object, trace.at(first));
            for first in comes_before(execution, &second, trace.len() as u32, by) {
                found(first, &second);
            }
            continue;
        }
        let waiting = (blocked.thread, blocked.operation);
        // The execution may have ended early, before a released wait made its step. As with a wait
        // that has made its step, no event has shut it out since its release: at every later point
        // it is released, whatever has changed.
        let since = execution.machine.was_let_go_at(blocked.thread);
        let since = since.unwrap_or(trace.len() as u32);
        blocking_pairs(execution, waiting, since, far, |first| {
            let is_known = second.is_behind(execution, first);
            if !is_known {
                found(first, &second);
            }
            is_known
        });
    }
}

/// The number of outcomes that an operation can have in another state of its object. Each outcome
/// is a reversal of its own: a sleeper may cover one and not the other. A notification can wake any
/// waiting thread.
fn outcomes(execution: &Execution<'_>, kind: &OpKind) -> u32 {
    match kind {
        OpKind::CompareExchange { spurious: true, .. } => 2,
        OpKind::NotifyOne => execution.trace.threads() as u32,
        _ => 1,
    }
}

impl Reversal {
    /// Makes the sequence of this one step.
    pub(crate) fn only(&mut self, step: Step, label: Label, index: u32) {
        self.items.clear();
        self.items.push(SequenceEvent {
            step,
            label,
            index,
            position: NOWHERE,
        });
    }

    /// Whether the event at `position` is in the sequence.
    #[inline(never)]
    pub(super) fn has(&self, position: u32) -> bool {
        let found = (self.items).binary_search_by_key(&position, |item| item.position);
        found.is_ok()
    }

    /// Builds the sequence that executes `second` without `first`; false if there is none. `label`
    /// is the label of the reversed event, if it is already known.
    pub(crate) fn build_notdep(
        &mut self,
        execution: &Execution<'_>,
        first: u32,
        second: &ReversedEvent,
        label: Option<Label>,
    ) -> bool {
        let Execution { trace, clocks, .. } = *execution;
        if second.is_behind(execution, first) {
            return false;
        }
        self.items.clear();
        self.predecessor = second.predecessor;
        let e = trace.at(first);
        let mut counts = false;
        // A thread is done when it has no more events, or has reached an event that happens after
        // `first`, because then all its later events happen after `first` too. When all threads are
        // done, the rest of the execution is irrelevant. In a long execution in which threads
        // follow each other closely, all are done early.
        let threads = trace.threads();
        self.done.clear();
        self.done.resize(threads, false);
        let mut left = 0;
        for thread in (0..threads as u32).map(ThreadId) {
            let over = thread == e.thread || trace.last_of(thread).is_none_or(|p| p <= first);
            self.done[thread.index()] = over;
            left += !over as usize;
        }
        let mut position = first;
        let mut in_vain = 0;
        while left > 0 {
            position += 1;
            let event = trace.at(position);
            let thread = event.thread;
            if self.done[thread.index()] {
                in_vain += 1;
                if rarely!(in_vain == IN_VAIN) {
                    in_vain = 0;
                    position = self.last_in_vain(trace, position);
                }
                continue;
            }
            in_vain = 0;
            let outside = clocks.clock(position, e.thread) > e.index;
            if !outside {
                counts |= event.label.has_count();
                self.items.push(SequenceEvent {
                    step: event.step(),
                    label: event.label,
                    index: event.index,
                    position,
                });
            }
            if outside || trace.last_of(thread) == Some(position) {
                self.done[thread.index()] = true;
                left -= 1;
            }
        }
        if second.operation.kind == OpKind::WriteLock
            && !self.drop_readers(execution, second.operation.object)
        {
            return false;
        }
        // The readers that were dropped, and the events after them, are not counted.
        if counts {
            self.recount(execution, first, second, None);
        }
        let state = |object| self.state_after(execution, first, object);
        let Some(label) = label.or_else(|| relabel(execution, second, state)) else {
            return false;
        };
        self.items.push(SequenceEvent {
            step: second.step,
            label,
            index: second.index(execution),
            position: NOWHERE,
        });
        // With its new label the reversed event may be independent of the first one: two failures
        // of a compare-exchange commute. Then the sequence belongs to the same trace as E.
        second.step.thread == e.thread
            || self
                .items
                .iter()
                .any(|item| !commutes(&execution.machine.sets, e.label, item.label))
    }

    /// The last event before the next one of a thread that is not done; the search begins at
    /// `position`.
    #[inline(never)]
    fn last_in_vain(&self, trace: &Trace, position: u32) -> u32 {
        let threads = (0..self.done.len()).filter(|&thread| !self.done[thread]);
        let next = threads.filter_map(|thread| {
            let positions = trace.positions_of(ThreadId(thread as u32));
            (positions.get(positions.partition_point(|&at| at <= position))).copied()
        });
        next.min().map_or(position, |next| next - 1)
    }

    /// The state of `object` after `pre(E, first)` and the items.
    fn state_after(&self, execution: &Execution<'_>, first: u32, object: ObjectId) -> State {
        let mut state = state_before(execution, first, object);
        for item in &self.items {
            if item.position != NOWHERE {
                let event = execution.trace.at(item.position);
                if event.operation.object == object {
                    state.apply(event.thread, &event.operation.kind, event.alternative);
                }
            }
        }
        state
    }

    /// Leaves out the read locks of the items that are not released in the sequence, and all items
    /// that happen after them, so that a writer can acquire the lock (\[SS\] Algorithm 6). False if
    /// the writer happens after such a read lock.
    fn drop_readers(&mut self, execution: &Execution<'_>, object: ObjectId) -> bool {
        loop {
            let class = |item: &SequenceEvent, class: Class| {
                item.label.class() == class && item.label.object() == object
            };
            let items = &self.items;
            let kept = items.iter().enumerate().find(|&(at, item)| {
                let mine = |other: &&SequenceEvent| other.step.thread == item.step.thread;
                class(item, Class::ReadAcquire)
                    && items[at..]
                        .iter()
                        .filter(mine)
                        .map(|other| {
                            class(other, Class::ReadAcquire) as i32
                                - class(other, Class::ReadRelease) as i32
                        })
                        .scan(0, |held, change| {
                            *held += change;
                            Some(*held)
                        })
                        .all(|held| held > 0)
            });
            let Some((_, &SequenceEvent { position, .. })) = kept else {
                return true;
            };
            if let Some(predecessor) = self.predecessor
                && execution.clocks.before(position, predecessor)
            {
                return false;
            }
            self.items
                .retain(|item| !execution.clocks.before(position, item.position));
        }
    }

    /// Computes the counts of the items anew: the history of each count runs through the model,
    /// first the part that a walk has `consumed`, if there was a walk, then the other items.
    fn recount(
        &mut self,
        execution: &Execution<'_>,
        first: u32,
        second: &ReversedEvent,
        consumed: Option<&Consumed>,
    ) {
        let operation = |item: &SequenceEvent| match item.position {
            NOWHERE => second.operation,
            position => execution.trace.at(position).operation,
        };
        for i in 0..self.items.len() {
            let object = self.items[i].label.object();
            let seen =
                |item: &SequenceEvent| item.label.has_count() && item.label.object() == object;
            if !seen(&self.items[i]) || self.items[..i].iter().any(seen) {
                continue;
            }
            let mut state = state_before(execution, first, object);
            let mut go_by = |item: &mut SequenceEvent| {
                let operation = operation(item);
                if item.label.is_block() && item.position != NOWHERE {
                    let event = execution.trace.at(item.position);
                    execution.machine.apply(event, object, &mut state);
                } else if operation.object == object {
                    let Step {
                        thread,
                        alternative,
                    } = item.step;
                    let outcome = state.apply(thread, &operation.kind, alternative);
                    item.label = state.label(&operation, outcome);
                }
            };
            let Some(consumed) = consumed else {
                self.items.iter_mut().for_each(go_by);
                continue;
            };
            let gone = self.items.iter_mut().filter(|item| consumed.has(item));
            gone.for_each(&mut go_by);
            for item in self.items.iter_mut().filter(|item| !consumed.has(item)) {
                go_by(item);
                if item.label.object() == object {
                    item.label = consumed.count_in(item.label);
                }
            }
        }
    }

    /// Leaves the consumed part out of the sequence.
    pub(super) fn leave_behind(
        &mut self,
        execution: &Execution<'_>,
        first: u32,
        second: &ReversedEvent,
        consumed: &Consumed,
    ) {
        let mut items = self.items.iter();
        if consumed.has_others()
            || items.any(|item| item.label.changes_count() && consumed.has(item))
        {
            self.recount(execution, first, second, Some(consumed));
        }
        self.items.retain(|item| !consumed.has(item));
    }

    /// Leaves out the items that are not needed to execute the last item and to wake the sleepers
    /// in `asleep` where the sequence begins. Needed are, for each sleeper, the first item that
    /// wakes it unless the last one does, and the items that happen before that one. The items left
    /// out are executed anyway, in one order or the other, because the sleep set is empty behind
    /// the sequence.
    pub(crate) fn trim(&mut self, execution: &Execution<'_>, asleep: &[Sleeper]) {
        let sets = &execution.machine.sets;
        self.needed.clear();
        self.needed.resize(self.items.len(), false);
        // The reversed event is needed anyway, so the sleepers that it wakes need no other item.
        let second = self.items.last().filter(|last| last.position == NOWHERE);
        if let (Some(_), Some(needed)) = (second, self.needed.last_mut()) {
            *needed = true;
        }
        for sleeper in asleep {
            let wakes =
                |item: &SequenceEvent| !sleeper.survives(sets, item.step.thread, item.label);
            if second.is_some_and(wakes) {
                continue;
            }
            let Some(at) = self.items.iter().position(wakes) else {
                return;
            };
            self.needed[at] = true;
        }
        // For each thread the number of its events that are needed.
        self.clock.clear();
        self.clock.resize(execution.trace.threads(), 0);
        self.counted.clear();
        for at in (0..self.items.len()).rev() {
            let item = self.items[at];
            let object = match item.position {
                NOWHERE => item.label.object(),
                position => {
                    let event = execution.trace.at(position);
                    self.needed[at] |= event.index < self.clock[event.thread.index()]
                        // A count depends on every event on its object.
                        || self.counted.contains(&event.operation.object);
                    event.operation.object
                }
            };
            if !self.needed[at] {
                continue;
            }
            if item.label.has_count() && !self.counted.contains(&object) {
                self.counted.push(object);
            }
            if item.position != NOWHERE {
                execution.clocks.join_into(item.position, &mut self.clock);
                continue;
            }
            for earlier in 0..at {
                if self.precedes(execution, earlier, at) {
                    self.needed[earlier] = true;
                }
            }
        }
        let mut needed = self.needed.iter();
        self.items
            .retain(|_| needed.next().is_some_and(|&needed| needed));
    }

    /// Whether the sequence can begin with the item at `at`: it is the first one of its thread, and
    /// no item before it happens before it.
    pub(crate) fn is_initial(&self, execution: &Execution<'_>, at: usize) -> bool {
        let thread = self.items[at].step.thread;
        (0..at).all(|j| self.items[j].step.thread != thread && !self.precedes(execution, j, at))
    }

    /// Whether the item at `later` happens after the one at `earlier`.
    pub(crate) fn precedes(&self, execution: &Execution<'_>, earlier: usize, later: usize) -> bool {
        let (a, b) = (&self.items[earlier], &self.items[later]);
        if b.position != NOWHERE {
            return execution.clocks.before(a.position, b.position);
        }
        a.step.thread == b.step.thread
            || ordered(&execution.machine.sets, a.label, b.label)
            || self
                .predecessor
                .is_some_and(|p| execution.clocks.before(a.position, p))
    }
}
