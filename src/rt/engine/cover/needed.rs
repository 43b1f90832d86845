//! What of a sequence has to be planned?
//!
//! That is what `Reversal::trim` leaves of it, a handful of items. They can be told like whether
//! the sequence is covered, without making it: who wakes a sleeper is looked for among the events
//! on its object, unless the reversed event does, and what comes before an event is in its clock.
//!
//! That goes if the items have the labels of their events, so that none has a count, and if what
//! comes before the reversed event is what does so in the execution, or only what comes before the
//! event directly before it, because all else on its object happens after the first event.
//! Otherwise the sequence is made.

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

/// What has to be planned; the buffer is used again and again.
#[derive(Default, Debug)]
pub(crate) struct Needed {
    /// In order; the reversed event is the last, if it is among them.
    pub(crate) items: Vec<SequenceEvent>,
    /// For each thread how many of its events are needed; the scratch of one call.
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
    /// Tells what has to be planned of the rest of the sequence, which must wake those who are
    /// `asleep`, of whom the [`waker`](Walk::waker) wakes none; the reversed event [may come
    /// first](crate::rt::engine::cover::comes_first) in it. False if the sequence must be made to
    /// tell.
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
            // It happens after the first event, and is not among what is needed before it.
            Some(second_at) => (Some(second_at), 1),
            None if is_cut && self.is_plain(label) => (self.second.predecessor, 0),
            None => return false,
        };
        let (trace, clocks) = (self.execution.trace, self.execution.clocks);
        let Needed { items, clock } = needed;
        items.clear();
        // Mostly nobody else has to be woken, and nothing comes before the reversed event.
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

    /// Joins the clocks of the events that wake those who are `asleep`. False if it cannot be told
    /// which these are.
    #[inline(never)]
    pub(super) fn join_wakers(&mut self, asleep: &[Sleeper], clock: &mut [u32]) -> bool {
        // Several often sleep with the same label.
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
    /// step that has this label, or [`NOWHERE`]; `None` if it cannot be told.
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
                        // Everything behind this one happens after it, and so after the first
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
