//! Is every access to plain memory ordered with the others?
//!
//! A consumer of events: the [`Detector`] is told every event and every access to a cell, and says
//! where two accesses of different threads, one of them a write, are not ordered by what the language
//! grants ([`sync`]). Vector clocks with epochs, as in FastTrack (Flanagan and Freund, PLDI 2009): of
//! the writes only the last has to be kept, of the reads one per thread since that write.
//!
//! Accesses are neither events nor scheduling points. One execution per trace is enough to see every
//! race, because equal traces have equal synchronisation.

mod clock;
mod sync;

use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use super::trace::Event;
use super::trace::Site;
use super::trace::id::ThreadId;
use super::trace::verdict::{Access, DataRace, Weak};
use sync::Knowledge;

/// Watches the accesses to plain memory of one exploration.
#[derive(Debug, Default)]
pub(crate) struct Detector {
    knowledge: Knowledge,
    cells: FxHashMap<usize, Cell>,
    /// Whether any cell was ever accessed in this exploration; until then events are not followed.
    active: bool,
}

/// The accesses to one cell that a later one may race with.
#[derive(Debug, Default)]
struct Cell {
    write: Option<Epoch>,
    reads: Vec<Epoch>,
    /// The accesses that have begun and not ended.
    open: Vec<Epoch>,
}

/// An access, and the time of its thread.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    access: Access,
    time: u32,
}

impl Detector {
    /// Whether events have to be observed.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// The first cell of the exploration is met; these are the events so far.
    pub(crate) fn activate(&mut self, events: &[Event]) {
        self.active = true;
        for event in events {
            self.knowledge.observe(event);
        }
    }

    /// An event has happened.
    #[inline]
    pub(crate) fn observe(&mut self, event: &Event) {
        if self.active {
            self.knowledge.observe(event);
        }
    }

    /// A new execution begins.
    pub(crate) fn reset(&mut self) {
        if self.active {
            self.knowledge.reset();
            self.cells.clear();
        }
    }

    /// Forgets the cells in memory that was freed.
    pub(crate) fn forget(&mut self, start: usize, length: usize) {
        if self.active {
            let block = start..start + length;
            self.cells.retain(|address, _| !block.contains(address));
        }
    }

    /// Whether this execution has met the cell at this address.
    pub(crate) fn knows(&self, address: usize) -> bool {
        self.cells.contains_key(&address)
    }

    /// Begins an access to the cell at this address.
    ///
    /// # Errors
    ///
    /// The race, if it is not ordered with an earlier access.
    pub(crate) fn begin(&mut self, address: usize, access: Access) -> Result<(), Box<DataRace>> {
        let clock = self.knowledge.of(access.thread);
        let time = clock.get(access.thread);
        let cell = self.cells.entry(address).or_default();
        let unordered = |earlier: &&Epoch| {
            let Access { thread, write, .. } = earlier.access;
            thread != access.thread && (write || access.write) && earlier.time >= clock.get(thread)
        };
        let open = |earlier: &&Epoch| {
            earlier.access.thread != access.thread && (earlier.access.write || access.write)
        };
        let earlier = (cell.write.iter().find(unordered))
            .or_else(|| cell.reads.iter().find(unordered))
            .or_else(|| cell.open.iter().find(open));
        if let Some(earlier) = earlier {
            return Err(Box::new(DataRace {
                first: earlier.access,
                second: access,
                weak: None,
            }));
        }
        cell.note(Epoch { access, time });
        cell.open.push(Epoch { access, time });
        Ok(())
    }

    /// Ends the access to the cell at this address that `thread` began last at `site`.
    pub(crate) fn end(&mut self, address: usize, thread: ThreadId, site: Site) {
        let time = self.knowledge.of(thread).get(thread);
        let Some(cell) = self.cells.get_mut(&address) else {
            return;
        };
        let mine = |epoch: &Epoch| epoch.access.thread == thread && epoch.access.site == site;
        if let Some(at) = cell.open.iter().rposition(mine) {
            let Epoch { access, .. } = cell.open.remove(at);
            cell.note(Epoch { access, time });
        }
    }
}

impl Cell {
    fn note(&mut self, epoch: Epoch) {
        if epoch.access.write {
            self.write = Some(epoch);
            self.reads.clear();
        } else {
            let thread = epoch.access.thread;
            match self.reads.iter_mut().find(|e| e.access.thread == thread) {
                Some(read) => *read = epoch,
                None => self.reads.push(epoch),
            }
        }
    }
}

/// The atomic accesses through which the first thread's progress has come to the second, if one of
/// them would have ordered the two accesses with a stronger ordering.
pub(crate) fn weak_link(race: &DataRace, events: &[Event]) -> Option<Weak> {
    for (at, reader) in events.iter().enumerate().rev() {
        if reader.thread != race.second.thread {
            continue;
        }
        let writers = events[..at].iter().rev();
        let mut same = writers.filter(|e| e.operation.object == reader.operation.object);
        let Some((writer, orders)) =
            same.find_map(|writer| Some((writer, sync::carries(writer, reader)?)))
        else {
            continue;
        };
        let after = writer.thread == race.first.thread && writer.index >= race.first.after;
        let (write, read) = orders;
        if after && (write == Ordering::Relaxed || read == Ordering::Relaxed) {
            return Some(Weak {
                writer: *writer,
                reader: *reader,
            });
        }
    }
    None
}

#[cfg(test)]
mod tests;
