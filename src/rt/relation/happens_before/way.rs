//! Up to which event has a slot of an object been searched?

use crate::rt::event::NOWHERE;
use crate::rt::relation::happens_before::record::Record;
use crate::rt::relation::independence::Label;

/// The state of the search through the events of one slot, from the latest to the earliest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The next event.
    at: u32,
    /// The first event that counts.
    from: u32,
    is_uncertain: bool,
}

impl Way {
    /// The way through this slot of an object, from the latest event back to the first one behind
    /// the latest total event.
    #[inline(always)]
    pub(super) fn through(record: &Record, slot: u32, label: Label) -> Way {
        let mut way = Way {
            at: NOWHERE,
            from: record.since_total(),
            is_uncertain: label.uncertain_slots() >> slot & 1 == 1,
        };
        way.lead_to(record.heads[slot as usize]);
        way
    }

    /// The way to this event only. Its label decides more than its slot.
    #[inline(always)]
    pub(super) fn to(event: u32) -> Way {
        Way {
            at: event,
            from: event,
            is_uncertain: true,
        }
    }

    /// The next event, or [`NOWHERE`].
    #[inline(always)]
    pub(super) fn next(&self) -> u32 {
        self.at
    }

    /// Whether the labels of the events decide more than their slot.
    #[inline(always)]
    pub(super) fn is_uncertain(&self) -> bool {
        self.is_uncertain
    }

    /// Sets the next event, if it counts.
    #[inline(always)]
    pub(super) fn lead_to(&mut self, next: u32) {
        let counts = next != NOWHERE && next >= self.from;
        self.at = if counts { next } else { NOWHERE };
    }
}
