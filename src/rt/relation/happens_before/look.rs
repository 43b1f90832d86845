//! Why is an event looked up only once?
//!
//! A caller with several questions about an event finds its row once, and not for each question.

use crate::rt::event::id::ThreadId;
use crate::rt::relation::happens_before::past::{Past, Race};
use crate::rt::relation::happens_before::rows::{Row, Whose};

/// An event after its look-up.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Look<'a> {
    pub(crate) position: u32,
    past: &'a Past,
    /// The row of the event, and the distance of the event behind the first event with this row.
    row: &'a Row,
    further: usize,
}

impl Past {
    /// Looks up the event at `position`.
    #[inline]
    pub(super) fn look_at(&self, position: u32) -> Look<'_> {
        let (row, further) = self.rows.find(position);
        Look {
            position,
            past: self,
            row,
            further,
        }
    }
}

impl<'a> Look<'a> {
    /// Whether the event of `thread` with this index happens before this one, or is it.
    #[inline]
    pub(crate) fn knows(&self, thread: ThreadId, index: u32) -> bool {
        let Whose {
            thread: own,
            index: last,
            clock,
        } = self.row.whose.behind(self.further);
        if own == thread {
            last >= index
        } else {
            self.past.clocks.word(clock, thread) > index
        }
    }

    /// The races with this event as the second event.
    #[inline]
    pub(crate) fn races(&self) -> impl Iterator<Item = &'a Race> + use<'a> {
        let (from, position) = (self.row.races as usize, self.position);
        // Most events have none.
        let races = self.past.races.get(from..).unwrap_or_default().iter();
        races.take_while(move |race| race.second == position)
    }
}

/// The position decides the rest.
#[cfg(test)]
impl PartialEq for Look<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.position == other.position
    }
}
