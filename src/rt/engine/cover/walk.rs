//! Is the reversal of a race planned already?
//!
//! Most are: a sleeping thread covers the sequence, or a branch of the wakeup tree does. Both can
//! be told from the execution itself, without making the sequence: its items are the events behind
//! the first one that do not happen after it, so its first item of a thread is the thread's next
//! event, what precedes an event are its races and the event before it, and what may not commute
//! with a label are the events on its object. A [`Walk`] goes down a tree like that, and remembers
//! for each thread how far it has come.
//!
//! Only the sequence of a writer, which leaves out readers, has to be made before ([`Reversal`]).
//!
//! A walk may also come by steps that are not in the sequence and commute with the rest of it. They
//! happen before that rest, which therefore finds counts changed: three threads release an object,
//! and two of them are such steps; then the third one, of which the sequence has no more than the
//! release, is the last.
//!
//! The next execution often has the two events of the race too, and differs only behind them. Its
//! sequence then begins alike and ends otherwise. If nothing of the end was needed to see that the
//! reversal is covered (or to plan it), it is covered in that execution as well, and need not be
//! looked at again: the walk is *settled*. Then what it came by lies before the second event in the
//! execution, or is that event itself and has the same label whatever comes before it.

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Operation, Step};
use crate::rt::event::{NOWHERE, Trace};
use crate::rt::rare::Roomy;
use crate::rt::relation::happens_before::{HappensBefore, Look};
use crate::rt::relation::independence::{Class, Label, commutes};

use crate::rt::engine::Execution;
use crate::rt::engine::cover::consumed::Consumed;
use crate::rt::engine::relabel::{relabel, state_without};
use crate::rt::engine::reversal::Reversal;
use crate::rt::engine::sequence::{ReversedEvent, ReversibleRace};
use crate::rt::engine::sleep::Sleeper;
use crate::rt::engine::wakeup_tree::{Arena, List, NodeId};

/// A way through the sequence that executes `second` without `first`.
pub(crate) struct Walk<'a> {
    pub(super) execution: &'a Execution<'a>,
    pub(super) trace: &'a Trace,
    pub(super) clocks: &'a HappensBefore,
    pub(super) first: u32,
    /// The thread of the first event, and which of its events it is.
    pub(super) owner: (ThreadId, u32),
    pub(super) second: &'a ReversedEvent,
    /// The parts of what it has come by ([`Consumed`]).
    pub(super) gone: &'a mut [u32],
    pub(super) others: &'a mut Vec<Label>,
    pub(super) taken: &'a mut bool,
    /// The label of the reversed event where nothing but the sequence is executed, once it was
    /// asked for.
    pub(super) label: Option<Label>,
    /// The position of the second event, if it is known that the reversed event has its label, and
    /// that what may come before it in the sequence is what does so in the execution.
    pub(super) unchanged: Option<u32>,
    /// The sequence, if it is not simply what does not happen after `first`.
    pub(super) known: Option<&'a Reversal>,
    /// Whether there is no such sequence.
    pub(super) impossible: bool,
    /// The position of the second event, if its race has only this reversal.
    pub(super) second_at: Option<u32>,
    /// Which event of its thread that is; [`NOWHERE`] if its race has several reversals.
    pub(super) second_index: u32,
    /// Whether nothing behind the second event makes a difference to the walk so far.
    pub(super) settled: bool,
}

/// Whether the reversed event is known to come first in the sequence, whatever comes behind the
/// race. If it is asleep where the first one is, the reversal is covered: most that are covered are
/// so by this, which can be told without a walk.
#[inline]
pub(crate) fn comes_first(execution: &Execution<'_>, first: u32, second: &ReversedEvent) -> bool {
    // Else its thread has other items before it.
    second.predecessor.is_none_or(|p| p < first)
        && nothing_on_its_object_comes_before(execution, first, second)
}

/// Whether it can be told at once that nothing in the sequence comes before the reversed event
/// because of its object: all on the object happens after the first event, or what races with the
/// reversed event comes before the first one, and it has the label of the second one.
#[inline]
fn nothing_on_its_object_comes_before(
    execution: &Execution<'_>,
    first: u32,
    second: &ReversedEvent,
) -> bool {
    let Operation { object, kind } = second.operation;
    if is_cut(execution, first, object) && !matches!(kind, OpKind::Wait { .. }) {
        return true;
    }
    let is_latest = |race: ReversibleRace| execution.clocks.is_latest_of_its_event(race.number);
    kind.is_always_alike() && second.race.is_some_and(is_latest)
}

/// Whether the event at `first` is such that everything on `object` behind it happens after it.
#[inline]
fn is_cut(execution: &Execution<'_>, first: u32, object: ObjectId) -> bool {
    execution.trace.at(first).label.is_total_on(object)
}

/// What comes first of a thread in the rest of the sequence.
#[cfg_attr(test, derive(PartialEq, Debug))]
pub(super) enum Head<'a> {
    Event(Look<'a>),
    ReversedEvent,
    Nothing,
}

impl<'a> Walk<'a> {
    /// The beginning of the sequence.
    #[inline(always)]
    pub(crate) fn new(
        execution: &'a Execution<'a>,
        first: u32,
        second: &'a ReversedEvent,
        consumed: &'a mut Consumed,
    ) -> Walk<'a> {
        consumed.clear(execution.trace.threads());
        let Consumed {
            gone,
            others,
            second: taken,
        } = consumed;
        debug_assert!(!second.is_behind(execution, first));
        let second_at = second.race.map(|race| race.position);
        // What most sleeping threads do not commute with is the reversed event, so its label is
        // known from the beginning where it need not be made.
        let alike = second.known_label();
        Walk {
            execution,
            trace: execution.trace,
            clocks: execution.clocks,
            first,
            owner: (
                execution.trace.at(first).thread,
                execution.trace.at(first).index,
            ),
            second,
            gone,
            others,
            taken,
            label: alike,
            unchanged: second_at.filter(|_| alike.is_some()),
            known: None,
            impossible: false,
            second_at,
            second_index: second.race.map_or(NOWHERE, |race| race.index),
            settled: second_at.is_some(),
        }
    }

    /// The sequence is this one, which was made.
    #[inline(never)]
    pub(crate) fn keep_to(&mut self, known: &'a Reversal) {
        self.label = known.items.last().map(|item| item.label);
        self.known = Some(known);
        self.settled = false;
    }

    /// The position of the second event, if the sequence goes on from here to the reversed event
    /// alike in every execution that has the same events up to there.
    pub(crate) fn settled_at(&self) -> Option<u32> {
        let settled = self.settled && (*self.taken || self.second_is_always_alike());
        self.second_at.filter(|_| settled)
    }

    /// Whether the reversal is covered, or impossible, in all those executions if it is in this
    /// one.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Whether the reversed event has the same label whatever else is in the sequence: because it
    /// has only one, or because nothing else in the sequence can be on its object.
    pub(super) fn second_is_always_alike(&self) -> bool {
        let Operation { object, kind } = self.second.operation;
        match kind {
            OpKind::Wait { .. } => false,
            kind => kind.is_always_alike() || self.ends_history(object),
        }
    }

    /// The way is what it is because this comes next of a thread.
    #[inline]
    pub(super) fn rely_on(&mut self, head: &Head<'_>) {
        if !self.settled {
            return;
        }
        self.settled = match *head {
            Head::Event(at) => self.second_at.is_some_and(|second| at.position < second),
            Head::ReversedEvent => self.second_is_always_alike(),
            Head::Nothing => false,
        };
    }

    /// Whether there turned out to be no such sequence.
    pub(crate) fn is_impossible(&self) -> bool {
        self.impossible
    }

    /// Whether this step, of an event with this label, may come first in the rest of the sequence.
    #[inline(never)]
    pub(crate) fn has_weak_initial(&mut self, step: Step, label: Label) -> bool {
        let head = self.head(step.thread);
        let begins = self.begins_as(&head, step, label);
        if begins {
            self.rely_on(&head);
        }
        begins
    }

    /// [`Walk::has_weak_initial`] at the beginning of the sequence for a thread that is asleep
    /// there, where the reversed event was not found to be if it [comes first](comes_first).
    ///
    /// Most sleepers do not commute with the reversed event. Such a one does not come first: if the
    /// next event of its thread is in the sequence, so is what has woken the thread before that,
    /// with which it does not commute, either.
    #[inline(always)]
    pub(crate) fn has_weak_initial_sleeper(&mut self, sleeper: &Sleeper) -> bool {
        let &Sleeper { step, label } = sleeper;
        if self.unchanged.is_some()
            && let Some(second) = self.label
        {
            let is_told = match step.thread == self.second.step.thread {
                true => self.second_was_asked_for(),
                false => !commutes(&self.execution.machine.sets, label, second),
            };
            if is_told {
                assert!(!cfg!(test) || !self.has_weak_initial(step, label));
                return false;
            }
        }
        self.has_weak_initial(step, label)
    }

    /// Whether the reversed event comes first of its thread and has its label whatever comes before
    /// it, so that it is known not to be asleep.
    #[inline]
    pub(super) fn second_was_asked_for(&self) -> bool {
        let ReversedEvent {
            predecessor,
            operation,
            ..
        } = self.second;
        operation.kind.is_always_alike() && predecessor.is_none_or(|p| p < self.first)
    }

    /// Goes down the tree with these roots as far as the sequence leads, and adds to `path` the
    /// nodes by which it comes. Says whether a branch of the tree covers the sequence, or there
    /// turned out to be none.
    #[inline(always)]
    pub(crate) fn descend(&mut self, arena: &Arena, roots: List, path: &mut Vec<NodeId>) -> bool {
        let mut children = arena.iter(roots);
        while let Some((id, child)) = children.next() {
            let head = self.head_at(child.step.thread, child.index);
            #[cfg(test)]
            assert_eq!(head, self.head(child.step.thread));
            let begins = self.begins_as(&head, child.step, child.label);
            // The first one that may come first is the way, so it also hangs on those that may not.
            self.rely_on(&head);
            if begins {
                if child.children.is_empty() {
                    return true;
                }
                self.pass(&head, child.step.thread, child.index, child.label);
                path.push(id);
                children = arena.iter(child.children);
            } else if self.impossible {
                return true;
            }
        }
        false
    }

    /// [`Walk::has_weak_initial`] where this comes first of the step's thread.
    #[inline(always)]
    pub(super) fn begins_as(&mut self, head: &Head<'_>, step: Step, label: Label) -> bool {
        match *head {
            Head::Event(at) => {
                let event = self.trace.at(at.position);
                event.alternative == step.alternative && self.is_initial(&at, event)
            }
            Head::ReversedEvent => self.second.step == step && self.second_is_initial(),
            Head::Nothing => self.commutes_with_all(label),
        }
    }

    /// Goes by the first item of the thread, or by a step with this label if it has none. Whether
    /// the way leads there has been asked.
    pub(crate) fn go_by(&mut self, thread: ThreadId, label: Label) {
        let index = self.look_up(thread);
        let head = self.head_at(thread, index);
        self.pass(&head, thread, index, label);
    }

    /// [`Walk::go_by`] where this comes first of the thread, and would be the event of the thread
    /// with this index.
    #[inline(always)]
    pub(super) fn pass(&mut self, head: &Head<'_>, thread: ThreadId, index: u32, label: Label) {
        match *head {
            Head::Event(_) => self.gone[thread.index()] = index + 1,
            Head::ReversedEvent => *self.taken = true,
            Head::Nothing if label.changes_count() => self.others.put(label),
            Head::Nothing => {}
        }
    }

    #[inline]
    pub(super) fn head(&mut self, thread: ThreadId) -> Head<'a> {
        let index = self.look_up(thread);
        self.head_at(thread, index)
    }

    /// What comes first of the thread, of which so many events lie before the sequence or the way
    /// has come by them.
    #[inline(always)]
    pub(super) fn head_at(&self, thread: ThreadId, index: u32) -> Head<'a> {
        // The second event of a race happens after the first one, and so is no item.
        if index == self.second_index && thread == self.second.step.thread && !*self.taken {
            return Head::ReversedEvent;
        }
        if let Some(position) = self.trace.nth_of(thread, index) {
            let at = self.clocks.look_at(position);
            if self.has(&at) {
                return Head::Event(at);
            }
        }
        match thread == self.second.step.thread && !*self.taken {
            true => Head::ReversedEvent,
            false => Head::Nothing,
        }
    }

    /// How many events of the thread lie before the sequence or the way has come by them.
    #[inline]
    pub(super) fn look_up(&mut self, thread: ThreadId) -> u32 {
        let Some(gone) = self.gone.get_mut(thread.index()) else {
            return 0;
        };
        if *gone == 0 {
            let positions = self.trace.positions_of(thread);
            // Many threads have not begun.
            if positions.first().is_some_and(|&start| start <= self.first) {
                *gone = positions.partition_point(|&p| p <= self.first) as u32;
            }
        }
        *gone
    }

    /// Whether the event at `position`, which is behind the first one, is in the sequence.
    #[inline]
    pub(super) fn is_item(&self, position: u32) -> bool {
        self.has(&self.clocks.look_at(position))
    }

    /// [`Walk::is_item`] for an event that was looked up.
    #[inline]
    pub(super) fn has(&self, at: &Look<'_>) -> bool {
        match self.known {
            None => {
                let (thread, index) = self.owner;
                !at.knows(thread, index)
            }
            Some(known) => known.has(at.position),
        }
    }

    /// Whether the first event is such that everything on `object` behind it happens after it.
    #[inline]
    pub(super) fn is_cut(&self, object: ObjectId) -> bool {
        is_cut(self.execution, self.first, object)
    }

    /// [`Walk::is_cut`] where that is hardly ever asked.
    #[inline(never)]
    pub(super) fn ends_history(&self, object: ObjectId) -> bool {
        self.is_cut(object)
    }

    /// Whether the way has come by the event at `position`, or the sequence begins behind it. No
    /// other event may happen after the first one.
    #[inline(always)]
    pub(super) fn is_gone(&self, position: u32) -> bool {
        position <= self.first || self.is_passed(position)
    }

    /// [`Walk::is_gone`] for an event behind the first one.
    #[inline]
    pub(super) fn is_passed(&self, position: u32) -> bool {
        let event = self.trace.at(position);
        event.index < self.gone[event.thread.index()]
    }

    /// The label that the reversed event has in the sequence if nothing else is executed.
    #[inline]
    pub(crate) fn second_label(&mut self) -> Option<Label> {
        if self.label.is_none() {
            self.make_label();
        }
        self.label
    }

    /// [`Walk::second_label`] for the first time.
    #[inline(never)]
    pub(super) fn make_label(&mut self) {
        let state = |object| state_without(self.execution, self.first, object);
        self.label = relabel(self.execution, self.second, state);
        let Some(label) = self.label else {
            self.impossible = true;
            self.settled &= self.second_is_always_alike();
            return;
        };
        let executed = self.second.race.map(|race| race.label);
        if executed == Some(label) && self.is_plain(label) {
            self.unchanged = self.second_at;
        }
    }

    /// Whether what is ordered with an event that has this label is told by the label alone.
    pub(super) fn is_plain(&self, label: Label) -> bool {
        label.class() != Class::Wait
            && !label.has_count()
            && !self.clocks.is_counted(label.object())
    }

    /// The thread and the label of the reversed event, if it is in the rest of the sequence, and
    /// the steps by which the way has come do not change its label.
    pub(crate) fn waker(&self) -> Option<(ThreadId, Label)> {
        let label = self
            .label
            .filter(|label| !*self.taken && !label.has_count())?;
        Some((self.second.step.thread, label))
    }
}
