//! Which part of a sequence must be planned?
//!
//! The part that `Reversal::trim` leaves of the sequence, a handful of items. Like the coverage of
//! the sequence, this part can be computed without building the sequence. The event that wakes a
//! sleeper is either the reversed event or one of the events on the sleeper's object, and the clock
//! of an event gives the events that precede it.
//!
//! This works if the items have the labels of their events, so that no label has a count. It also
//! needs one of two conditions on the reversed event. Either the same events precede it in the
//! sequence and in the execution. Or only its predecessor and the events before that precede it,
//! because all other events on its object happen after the first event. Otherwise the sequence is
//! built.

use crate::rt::event::NOWHERE;
use crate::rt::event::id::ThreadId;
use crate::rt::pooled::Empty;
use crate::rt::rare::Roomy;
use crate::rt::relation::independence::{Label, commutes};

use crate::rt::engine::Execution;
use crate::rt::engine::sequence::SequenceEvent;
use crate::rt::engine::sleep::Sleeper;

use crate::rt::engine::cover::initials::touched;
use crate::rt::engine::cover::walk::{Head, Walk};

/// The items that must be planned; the buffer is reused.
#[derive(Default, Debug)]
pub(crate) struct Needed {
    /// In order; the reversed event is the last, if it is an item.
    pub(crate) items: Vec<SequenceEvent>,
    /// For each thread the number of its events that are needed; the buffer of one call.
    clock: Vec<u32>,
}

impl Empty for Needed {
    fn empty(&mut self) {
        let Needed { items, clock } = self;
        items.empty();
        clock.empty();
    }
}

impl Walk<'_> {
    /// Computes which items of the rest of the sequence must be planned. They must wake the
    /// sleepers in `asleep`, none of which the [`waker`](Walk::waker) wakes. `comes_first` says
    /// whether the reversed event [comes first](crate::rt::engine::cover::comes_first). False if
    /// the answer needs the built sequence.
    #[inline(never)]
    pub(crate) fn gather(
        &mut self,
        asleep: &[Sleeper],
        comes_first: bool,
        needed: &mut Needed,
    ) -> bool {
        let Some(label) = self.label else {
            return false;
        };
        let is_cut = self.is_cut(self.second.operation.object);
        let (before, itself) = match self.unchanged {
            // The second event happens after the first event, and is not an item before the
            // reversed event.
            Some(second_at) => (Some(second_at), 1),
            None if is_cut && self.is_plain(label) => (self.second.predecessor, 0),
            None => return false,
        };
        let (trace, clocks) = (self.execution.trace, self.execution.clocks);
        let Needed { items, clock } = needed;
        items.clear();
        // Mostly there is no other sleeper to wake, and no event precedes the reversed event.
        if asleep.is_empty() && (*self.taken || comes_first) {
            items.extend((!*self.taken).then(|| self.reversed(label)));
            return true;
        }
        clock.clear();
        clock.resize(trace.threads(), 0);
        if !*self.taken {
            if let Some(before) = before {
                clocks.join_into(before, clock);
            }
            clock[self.second.step.thread.index()] -= itself;
        }
        if !asleep.is_empty() && !self.join_wakers(asleep, clock) {
            return false;
        }
        let clock = clock.iter().enumerate();
        for (thread, &end) in clock.filter(|&(_, &end)| end > 0) {
            let thread = ThreadId(thread as u32);
            let events = &trace.positions_of(thread)[..end as usize];
            for &position in events.iter().rev() {
                if self.is_gone(position) {
                    break;
                }
                let event = trace.at(position);
                if clocks.is_counted(event.operation.object) {
                    return false;
                }
                items.put(SequenceEvent {
                    step: event.step(),
                    label: event.label,
                    index: event.index,
                    position,
                });
            }
        }
        items.sort_unstable_by_key(|item| item.position);
        items.extend((!*self.taken).then(|| self.reversed(label)));
        true
    }

    /// Joins the clocks of the events that wake the sleepers in `asleep`. False if these events
    /// cannot be determined.
    #[inline(never)]
    pub(super) fn join_wakers(&mut self, asleep: &[Sleeper], clock: &mut [u32]) -> bool {
        // Several sleepers often have the same label.
        let mut last = None;
        for sleeper in asleep {
            let found = match last {
                Some((label, found)) if label == sleeper.label => Some(found),
                _ => self.first_against(sleeper.label),
            };
            let Some(found) = found else {
                return false;
            };
            last = Some((sleeper.label, found));
            let waker = match self.head(sleeper.step.thread) {
                Head::Event(at) => found.min(at.position),
                _ => found,
            };
            if waker == NOWHERE {
                return false;
            }
            self.clocks.join_into(waker, clock);
        }
        true
    }

    /// The reversed event, which has this label, as an item.
    #[inline]
    pub(super) fn reversed(&self, label: Label) -> SequenceEvent {
        SequenceEvent {
            step: self.second.step,
            label,
            index: self.second.index(self.execution),
            position: NOWHERE,
        }
    }

    /// The position of the first event in the rest of the sequence that does not commute with a
    /// step that has this label, or [`NOWHERE`]; `None` if it cannot be determined.
    pub(super) fn first_against(&mut self, label: Label) -> Option<u32> {
        let Execution {
            trace,
            clocks,
            machine,
            ..
        } = *self.execution;
        let own = [label.object()];
        let mut found = NOWHERE;
        for &object in touched(self.execution, label, &own) {
            if clocks.is_counted(object) {
                return None;
            }
            if self.is_cut(object) {
                continue;
            }
            let (_, later) = clocks.split_on(object, self.first);
            for &position in later {
                if position >= found {
                    break;
                }
                let other = trace.at(position).label;
                if commutes(&machine.sets, label, other) {
                    continue;
                }
                if !self.is_item(position) {
                    if other.is_total_on(object) {
                        // Everything behind this event happens after it, and so after the first
                        // event.
                        break;
                    }
                } else if !self.is_gone(position) {
                    found = position;
                }
            }
        }
        Some(found)
    }
}
