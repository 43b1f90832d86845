//! Can this step come first in the rest of the sequence?
//!
//! An event of the sequence is an initial if all events that precede it are consumed: the first
//! events of its races, and the spawn of its thread. The reversed event is an initial if no event
//! on its object precedes it. A step that is not in the sequence is a weak initial if it commutes
//! with all events on the objects that it touches.

use crate::rt::event::Event;
use crate::rt::event::id::ObjectId;
use crate::rt::event::operation::{OpKind, Operation, Step};
use crate::rt::rare::rarely;
use crate::rt::relation::happens_before::Look;
use crate::rt::relation::independence::{CONFLICTING_SLOTS, Class, Label, commutes, ordered};

use crate::rt::engine::Execution;
use crate::rt::engine::cover::consumed::count_after;
use crate::rt::engine::cover::walk::Walk;
use crate::rt::engine::relabel::state_before;

/// Up to this many events behind the first one, a search reads the accesses from the end.
const LONG: usize = if cfg!(test) { 4 } else { 200 };

impl Walk<'_> {
    /// Whether no event in the rest of the sequence precedes this event, which is the first one of
    /// its thread there. No other event of the sequence precedes a join: the callers ask this of
    /// steps that were enabled at the beginning of the sequence, or behind the consumed part, and
    /// at that point the joined thread had ended.
    #[inline(always)]
    pub(super) fn is_initial(&mut self, at: &Look<'_>, event: &Event) -> bool {
        let trace = self.trace;
        #[cfg(test)]
        if let OpKind::Join { child } = event.operation.kind {
            let last = trace.predecessor_of_next(child);
            assert!(last.is_none_or(|last| self.is_gone(last)));
        }
        at.races().all(|race| self.is_gone(race.first))
            && (event.index != 0
                || (trace.spawn_of(event.thread)).is_none_or(|spawn| self.is_gone(spawn)))
    }

    /// Whether no event in the rest of the sequence precedes the reversed event. Its thread has no
    /// more items before it, so the walk has consumed its predecessor and all events that happen
    /// before the predecessor.
    #[inline(always)]
    pub(super) fn second_is_initial(&mut self) -> bool {
        let Operation { object, kind } = self.second.operation;
        // For an unchanged event its races tell that as quickly.
        let is_unchanged = self.unchanged.is_some();
        if !is_unchanged && self.ends_history(object) && !matches!(kind, OpKind::Wait { .. }) {
            return true;
        }
        let Some(label) = self.second_label() else {
            return false;
        };
        let Some(position) = self.unchanged else {
            return self.is_before_all(label);
        };
        // An event that precedes the reversed event is the first event of one of its races, or
        // happens before such an event. None of these lies before the first event of the pair or
        // happens after it.
        let first = self.first;
        let races = self.clocks.races_of(position);
        let mut behind = races.take_while(|race| race.first > first);
        behind.all(|race| self.is_passed(race.first))
    }

    /// Whether no event in the rest of the sequence precedes an event with this label.
    #[inline(never)]
    pub(super) fn is_before_all(&mut self, label: Label) -> bool {
        let sets = &self.execution.machine.sets;
        self.all_related(label, |other| !ordered(sets, other, label))
    }

    #[inline(always)]
    pub(super) fn commutes_with_all(&mut self, label: Label) -> bool {
        // The label of the reversed event is computed only if it matters; a known label is compared
        // first.
        let taken = *self.taken;
        let second = self.label.filter(|_| !taken);
        second.is_none_or(|second| self.commutes_with(label, second))
            && self.commutes_with_items(label)
            && (taken || second.is_some() || self.commutes_with_second(label))
    }

    #[inline(never)]
    pub(super) fn commutes_with_items(&mut self, label: Label) -> bool {
        let sets = &self.execution.machine.sets;
        self.all_related(label, |other| commutes(sets, label, other))
    }

    /// Whether the reversed event commutes with a step that has this label. The label of the
    /// reversed event is not computed yet.
    #[inline(never)]
    pub(super) fn commutes_with_second(&mut self, label: Label) -> bool {
        let second = self.second_label();
        second.is_some_and(|second| self.commutes_with(label, second))
    }

    /// Whether the reversed event, if it has the label `second`, commutes with a step that has this
    /// label.
    #[inline]
    pub(super) fn commutes_with(&self, label: Label, second: Label) -> bool {
        let second = count_after(self.others, second);
        commutes(&self.execution.machine.sets, label, second)
    }

    /// Whether `holds` is true for the label of each event in the rest of the sequence on the
    /// objects that an event with this label touches.
    pub(super) fn all_related(&mut self, label: Label, holds: impl Fn(Label) -> bool) -> bool {
        let own = [label.object()];
        let (trace, clocks) = (self.trace, self.clocks);
        for &object in touched(self.execution, label, &own) {
            if self.is_cut(object) {
                continue;
            }
            if clocks.is_counted(object) {
                if !self.all_counted(object, &holds) {
                    return false;
                }
                continue;
            }
            // Mostly the slot of an access already shows that it does not commute.
            let (slots, uncertain) = match label.class() {
                Class::Wait => (clocks.changing_slots(object), !0),
                Class::Block => (!0, !0),
                class => (CONFLICTING_SLOTS[class as usize], label.uncertain_slots()),
            };
            let first = self.first;
            if rarely!(trace.len() - first as usize > LONG) {
                if !self.all_items(object, &holds) {
                    return false;
                }
                continue;
            }
            // The cheapest conditions come first.
            let against = |position, slot: usize| {
                let is_certain = uncertain >> slot & 1 == 0;
                assert!(!cfg!(test) || !is_certain || !holds(trace.at(position).label));
                (is_certain || !holds(trace.at(position).label))
                    && self.is_item(position)
                    && !self.is_gone(position)
            };
            if clocks.any_access(object, slots, first + 1, against) {
                return false;
            }
        }
        true
    }

    /// Whether `holds` is true for the label of each event on `object` in the rest of the sequence.
    /// Where the execution is long, the sequence may have few of its events.
    #[inline(never)]
    pub(super) fn all_items(&self, object: ObjectId, holds: impl Fn(Label) -> bool) -> bool {
        let mut items = self.items_on(object);
        items.all(|position| self.is_gone(position) || holds(self.trace.at(position).label))
    }

    /// The events on `object` in the sequence, in order.
    pub(super) fn items_on(&self, object: ObjectId) -> impl Iterator<Item = u32> {
        let (_, later) = self.clocks.split_on(object, self.first);
        // The first event counts as behind itself, and is no item.
        let items = later.iter().zip(1u32..).map_while(|(&position, number)| {
            let is_item = self.is_item(position);
            let is_over = !is_item && self.execution.nothing_is_left(self.first, position, number);
            (!is_over).then_some(is_item.then_some(position))
        });
        items.flatten()
    }

    /// Whether `holds` is true for the label of each event on `object` in the rest of the sequence,
    /// where labels have counts, which depend on the earlier events on the object.
    #[inline(never)]
    pub(super) fn all_counted(&self, object: ObjectId, holds: impl Fn(Label) -> bool) -> bool {
        let (_, later) = self.clocks.split_on(object, self.first);
        let is_own = |&position: &u32| self.trace.at(position).operation.object == object;
        if !later.iter().any(is_own) {
            // The label may be from another execution, and this execution may not have met the
            // object. Then there is nothing but blocks that may touch everything.
            return self.all_items(object, holds);
        }
        let mut state = state_before(self.execution, self.first, object);
        // The consumed events happen first, in any order.
        for gone in [true, false] {
            for position in self.items_on(object) {
                if self.is_gone(position) != gone {
                    continue;
                }
                let event = self.trace.at(position);
                let mut other = event.label;
                if other.is_block() {
                    let machine = self.execution.machine;
                    machine.apply(event, object, &mut state);
                } else if event.operation.object == object {
                    let outcome = state.apply(event.thread, &event.operation.kind, 0);
                    other = count_after(self.others, state.label(&event.operation, outcome));
                }
                if !gone && !holds(other) {
                    return false;
                }
            }
            let Operation { object: on, kind } = self.second.operation;
            if gone && *self.taken && on == object {
                let Step {
                    thread,
                    alternative,
                } = self.second.step;
                state.apply(thread, &kind, alternative);
            }
        }
        true
    }
}

/// The objects that an event with this label touches; `own` is the object of the label.
pub(crate) fn touched<'a>(
    execution: &'a Execution<'_>,
    label: Label,
    own: &'a [ObjectId],
) -> &'a [ObjectId] {
    let set = (execution.clocks).set_of(&execution.machine.sets, label);
    set.unwrap_or(own)
}
