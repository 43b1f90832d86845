//! Is the reversal of a race planned already?
//!
//! Most reversals are: a step in the sleep set covers the sequence, or a branch of the wakeup tree
//! does. The execution itself shows both, without building the sequence. The items of the sequence
//! are the events behind the first one that do not happen after it. So the first item of a thread
//! is the thread's next event; the events that precede an event are the first events of its races
//! and the event before it in its thread; and only events on the object of a label can fail to
//! commute with that label. A [`Walk`] descends a wakeup tree in this way, and remembers for each
//! thread how many of its events it has consumed.
//!
//! Only the sequence of a writer, which leaves out readers, is built before the walk
//! ([`Reversal`]).
//!
//! A walk may also consume steps that are not in the sequence and commute with the rest of it. They
//! happen before that rest and change the counts in it. Example: three threads release an object,
//! and two of the releases are such steps. Then the third release, the only one in the sequence, is
//! the last.
//!
//! The next execution often has the two events of the race too, and differs only behind them. Its
//! sequence then begins alike and ends otherwise. If the end of the sequence was not needed to see
//! that the reversal is covered (or to plan it), the reversal is covered in that execution as well
//! and needs no second check: the walk is *settled*. Each consumed event of a settled walk lies
//! before the second event in the execution, or is that event and has the same label in every such
//! sequence.

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

/// A walk through the sequence that executes `second` without `first`.
pub(crate) struct Walk<'a> {
    pub(super) execution: &'a Execution<'a>,
    pub(super) trace: &'a Trace,
    pub(super) clocks: &'a HappensBefore,
    pub(super) first: u32,
    /// The thread of the first event, and the event's index in this thread.
    pub(super) owner: (ThreadId, u32),
    pub(super) second: &'a ReversedEvent,
    /// The parts of [`Consumed`].
    pub(super) gone: &'a mut [u32],
    pub(super) others: &'a mut Vec<Label>,
    pub(super) taken: &'a mut bool,
    /// The label of the reversed event behind the items of the sequence alone, once a caller has
    /// asked for it.
    pub(super) label: Option<Label>,
    /// The position of the second event, if the reversed event is known to have its label, and if
    /// the same events can precede it in the sequence and in the execution.
    pub(super) unchanged: Option<u32>,
    /// The built sequence, if it differs from the events that do not happen after `first`.
    pub(super) known: Option<&'a Reversal>,
    /// Whether the sequence is found not to exist.
    pub(super) impossible: bool,
    /// The position of the second event, if its race has only this reversal.
    pub(super) second_at: Option<u32>,
    /// The index of the second event in its thread; [`NOWHERE`] if its race has several reversals.
    pub(super) second_index: u32,
    /// Whether no event behind the second event has made a difference to the walk so far.
    pub(super) settled: bool,
}

/// Whether the reversed event is known to come first in the sequence, regardless of the events
/// behind the race. If its step is in the sleep set at the first event's point, the reversal is
/// covered. This test finds most of the covered reversals without a walk.
#[inline]
pub(crate) fn comes_first(execution: &Execution<'_>, first: u32, second: &ReversedEvent) -> bool {
    // Otherwise its thread has other items before it.
    second.predecessor.is_none_or(|p| p < first)
        && nothing_on_its_object_comes_before(execution, first, second)
}

/// Whether a quick check shows that no event of the sequence on its object precedes the reversed
/// event. Either all events on the object happen after the first event. Or the first events of the
/// reversed event's races do not lie behind the first event, and the reversed event has the label
/// of the second one.
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

/// Whether everything on `object` behind the event at `first` happens after it.
#[inline]
fn is_cut(execution: &Execution<'_>, first: u32, object: ObjectId) -> bool {
    execution.trace.at(first).label.is_total_on(object)
}

/// The first item of a thread in the rest of the sequence.
#[cfg_attr(test, derive(PartialEq, Debug))]
pub(super) enum Head<'a> {
    Event(Look<'a>),
    ReversedEvent,
    Nothing,
}

impl<'a> Walk<'a> {
    /// A walk at the beginning of the sequence.
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
        // Most sleepers do not commute with the reversed event, so its label is set from the
        // beginning if it needs no computation.
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

    /// The walk uses this sequence, which is built already.
    #[inline(never)]
    pub(crate) fn keep_to(&mut self, known: &'a Reversal) {
        self.label = known.items.last().map(|item| item.label);
        self.known = Some(known);
        self.settled = false;
    }

    /// The position of the second event, if the sequence continues from here to the reversed event
    /// in the same way in every execution that has the same events up to there.
    pub(crate) fn settled_at(&self) -> Option<u32> {
        let settled = self.settled && (*self.taken || self.second_is_always_alike());
        self.second_at.filter(|_| settled)
    }

    /// Whether the reversal, if it is covered or impossible in this execution, is so in every
    /// execution that has the same events up to the second one.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Whether the reversed event has the same label whatever the other items are: because its
    /// operation has only one label, or because no other item can be on its object.
    pub(super) fn second_is_always_alike(&self) -> bool {
        let Operation { object, kind } = self.second.operation;
        match kind {
            OpKind::Wait { .. } => false,
            kind => kind.is_always_alike() || self.ends_history(object),
        }
    }

    /// Records that the path of the walk depends on `head`, the first item of a thread.
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

    /// Whether the walk has found that the sequence does not exist.
    pub(crate) fn is_impossible(&self) -> bool {
        self.impossible
    }

    /// Whether this step, with an event of this label, is a weak initial of the rest of the
    /// sequence.
    #[inline(never)]
    pub(crate) fn has_weak_initial(&mut self, step: Step, label: Label) -> bool {
        let head = self.head(step.thread);
        let begins = self.begins_as(&head, step, label);
        if begins {
            self.rely_on(&head);
        }
        begins
    }

    /// [`Walk::has_weak_initial`] at the beginning of the sequence for a sleeper there. The caller
    /// has found that the reversed event, if it [comes first](comes_first), is not in the sleep
    /// set.
    ///
    /// Most sleepers do not commute with the reversed event. Such a sleeper is no weak initial. If
    /// the next event of its thread is in the sequence, an event that wakes the thread comes before
    /// that event in the sequence, and does not commute with the sleeper, either.
    #[inline(always)]
    pub(crate) fn has_weak_initial_sleeper(&mut self, sleeper: &Sleeper) -> bool {
        let &Sleeper { step, label } = sleeper;
        if self.unchanged.is_some()
            && let Some(second) = self.label
        {
            let is_told = if step.thread == self.second.step.thread {
                self.second_was_asked_for()
            } else {
                !commutes(&self.execution.machine.sets, label, second)
            };
            if is_told {
                assert!(!cfg!(test) || !self.has_weak_initial(step, label));
                return false;
            }
        }
        self.has_weak_initial(step, label)
    }

    /// Whether the reversed event comes first of its thread and always has its label, so that the
    /// caller has already found that it is not in the sleep set.
    #[inline]
    pub(super) fn second_was_asked_for(&self) -> bool {
        let ReversedEvent {
            predecessor,
            operation,
            ..
        } = self.second;
        operation.kind.is_always_alike() && predecessor.is_none_or(|p| p < self.first)
    }

    /// Descends the tree with these roots as far as the sequence leads, and adds the nodes on the
    /// way to `path`. Returns whether a branch of the tree covers the sequence, or the sequence
    /// does not exist.
    #[inline(always)]
    pub(crate) fn descend(&mut self, arena: &Arena, roots: List, path: &mut Vec<NodeId>) -> bool {
        let mut children = arena.iter(roots);
        while let Some((id, child)) = children.next() {
            let head = self.head_at(child.step.thread, child.index);
            #[cfg(test)]
            assert_eq!(head, self.head(child.step.thread));
            let begins = self.begins_as(&head, child.step, child.label);
            // The walk takes the first child that is a weak initial, so its path also depends on
            // the children that are none.
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

    /// [`Walk::has_weak_initial`] where `head` is the first item of the step's thread.
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

    /// Consumes the first item of the thread, or a step with this label if the thread has no item.
    /// The caller has checked that it is a weak initial.
    pub(crate) fn go_by(&mut self, thread: ThreadId, label: Label) {
        let index = self.look_up(thread);
        let head = self.head_at(thread, index);
        self.pass(&head, thread, index, label);
    }

    /// [`Walk::go_by`] where `head` is the first item of the thread, and `index` is the index that
    /// its event has in the thread.
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

    /// The first item of the thread in the rest of the sequence. `index` events of the thread lie
    /// before the sequence or are consumed.
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
        if thread == self.second.step.thread && !*self.taken {
            Head::ReversedEvent
        } else {
            Head::Nothing
        }
    }

    /// The number of events of the thread that lie before the sequence or are consumed.
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

    /// Whether everything on `object` behind the first event happens after the first event.
    #[inline]
    pub(super) fn is_cut(&self, object: ObjectId) -> bool {
        is_cut(self.execution, self.first, object)
    }

    /// [`Walk::is_cut`] for code that rarely runs.
    #[inline(never)]
    pub(super) fn ends_history(&self, object: ObjectId) -> bool {
        self.is_cut(object)
    }

    /// Whether the walk has consumed the event at `position`, or the sequence begins behind it. The
    /// event must not happen after the first one.
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

    /// The label that the reversed event has in the sequence if no other steps are executed.
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

    /// Whether the label alone tells which events are ordered with an event that has it.
    pub(super) fn is_plain(&self, label: Label) -> bool {
        !matches!(label.class(), Class::Wait | Class::Block)
            && !label.has_count()
            && !self.clocks.is_counted(label.object())
    }

    /// The thread and the label of the reversed event, if it is in the rest of the sequence, and
    /// the consumed steps do not change its label.
    pub(crate) fn waker(&self) -> Option<(ThreadId, Label)> {
        let label = self
            .label
            .filter(|label| !*self.taken && !label.has_count())?;
        Some((self.second.step.thread, label))
    }
}
