//! Which send into a channel belongs to a receive?
//!
//! A receive is ordered with one or two sends, which are found by their numbers. Thousands of later
//! sends that do not happen before the receive may follow these, so a search through all of them
//! would take long.

use crate::rt::event::Trace;
use crate::rt::rare::{cold_path, rarely};
use crate::rt::relation::independence::{Class, Label};

/// The successful sends into a channel and receives from it. For other objects it is empty.
#[derive(Default, Clone, Debug)]
pub(super) struct Messages(Option<Box<Lists>>);

/// The positions of events in order. The messages of a list have consecutive numbers.
#[derive(Default, Clone, Debug)]
struct Lists {
    sent: Vec<u32>,
    received: Vec<u32>,
}

impl Messages {
    /// Notes the event, with this label.
    #[inline]
    pub(super) fn note(&mut self, label: Label, event: u32) {
        if rarely!(label.is_message()) {
            self.add(label, event);
        }
    }

    #[inline(never)]
    fn add(&mut self, label: Label, event: u32) {
        let lists = self.0.get_or_insert_default();
        match label.class() {
            Class::Received => lists.received.push(event),
            _ => lists.sent.push(event),
        }
    }

    /// Forgets the event, which is the last one on the object.
    #[inline]
    pub(super) fn forget(&mut self, event: u32) {
        if let Some(lists) = &mut self.0 {
            cold_path();
            lists.sent.pop_if(|last| *last == event);
            lists.received.pop_if(|last| *last == event);
        }
    }

    /// Whether there are no messages.
    #[inline]
    pub(super) fn are_none(&self) -> bool {
        self.0.is_none()
    }

    /// Calls `found` for every event in one of the `slots` that, by its number, may be ordered with
    /// an event of this label. Returns the slots that need no further search.
    #[inline]
    pub(super) fn find(
        &self,
        trace: &Trace,
        label: Label,
        slots: u32,
        found: impl FnMut(u32),
    ) -> u32 {
        match &self.0 {
            Some(lists) => lists.find(trace, label, slots, found),
            None => 0,
        }
    }
}

impl Lists {
    #[inline(never)]
    fn find(&self, trace: &Trace, label: Label, slots: u32, mut found: impl FnMut(u32)) -> u32 {
        let receives = label.class() == Class::Received;
        let list = match label.class() {
            Class::Sent | Class::HandOver => &self.received,
            Class::Received => &self.sent,
            _ => return 0,
        };
        let Some(&last) = list.last() else {
            return 0;
        };
        let last = trace.at(last).label;
        let mut tell = |number: u16| {
            // The numbers begin again at 0 after 65,536 messages.
            let back = usize::from(last.count().wrapping_sub(number));
            list.iter()
                .rev()
                .skip(back)
                .step_by(1 << 16)
                .for_each(|&event| found(event));
        };
        let (number, room) = (label.count(), label.room().max(last.room()));
        // A label does not have the exact size of a large room.
        if room == u8::MAX {
            return 0;
        }
        tell(number);
        if room > 0 && receives {
            tell(number.wrapping_add(room.into()));
        } else if room > 0 {
            tell(number.wrapping_sub(room.into()));
        }
        let theirs = if receives {
            Class::Sent.slots() | Class::HandOver.slots()
        } else {
            Class::Received.slots()
        };
        slots & theirs
    }
}
