//! Where could the program meet a behaviour that std permits, and that is explored on request only?
//!
//! A wait may end spuriously, a weak compare-exchange may fail spuriously, and a lock may let a
//! waiting writer go before a new reader. Each place at which
//! that could happen is noted, with whether it was explored there. A report names the places at
//! which it was not.

use std::cell::{Cell, RefCell};
use std::ptr;

use crate::rt::event::Site;
use crate::rt::pooled::Empty;
use crate::rt::rare::mostly;

/// A behaviour that std permits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Behaviour {
    /// A wait ends although no other thread has ended it.
    SpuriousWakeup,
    /// A weak compare-exchange fails although it finds the expected value.
    SpuriousFailure,
    /// A read of a lock that others read waits until a waiting writer has had its turn.
    WriterFirst,
    /// A primitive that is not swapped orders two threads in another way.
    Unswapped,
    /// A thread wakes a task by a waker that the task has put where no event shows it.
    UnseenWaker,
    /// Many reads of the clock in a row find that no time has passed.
    ClockStandsStill,
    /// A thread gets the memory again of a block that it has freed.
    BlockAgain,
}

/// A place at which a behaviour is possible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Possible {
    pub(crate) behaviour: Behaviour,
    pub(crate) site: Site,
    /// Whether the behaviour was explored there.
    pub(crate) explored: bool,
}

impl Possible {
    /// Whether both are about the same behaviour at the same place. The comparison of addresses may
    /// take one place for two, and the texts of the two are the same.
    #[inline]
    fn is_like(&self, other: &Possible) -> bool {
        self.behaviour == other.behaviour && ptr::eq(self.site, other.site)
    }
}

/// The number of places that a step finds at once.
const AT_ONCE: usize = 8;

/// The places that the executions of an exploration have met so far.
#[derive(Default)]
pub(crate) struct Permitted {
    /// Places that are noted, at which the settings do not explore the behaviour, by behaviour and
    /// address. Nearly every step that asks is at one of them.
    off: [[Cell<Option<Site>>; AT_ONCE]; 3],
    /// Whether a thread has called `write` of a lock.
    writes: Cell<bool>,
    /// Whether locks prefer writers.
    writers_first: Cell<bool>,
    met: RefCell<Vec<Possible>>,
    /// The number of changes of the list.
    changes: Cell<usize>,
}

impl Permitted {
    /// Whether the place is known as one at which the settings do not explore the behaviour. If
    /// not, it may have to be noted.
    #[inline]
    pub(crate) fn is_off(&self, behaviour: Behaviour, site: Site) -> bool {
        let known = self.slot(behaviour, site).and_then(Cell::get);
        mostly!(known.is_some_and(|known| ptr::eq(known, site)))
    }

    #[inline]
    fn slot(&self, behaviour: Behaviour, site: Site) -> Option<&Cell<Option<Site>>> {
        let row = match behaviour {
            Behaviour::SpuriousWakeup => 0,
            Behaviour::SpuriousFailure => 1,
            Behaviour::WriterFirst => 2,
            Behaviour::Unswapped
            | Behaviour::UnseenWaker
            | Behaviour::ClockStandsStill
            | Behaviour::BlockAgain => return None,
        };
        let address = ptr::from_ref(site).addr();
        Some(&self.off[row][address / align_of_val(site) % AT_ONCE])
    }

    /// Notes that a thread calls `write` of a lock.
    #[inline]
    pub(crate) fn note_write(&self) {
        self.writes.set(true);
    }

    /// Sets whether locks prefer writers.
    pub(crate) fn prefer_writers(&self, prefer: bool) {
        self.writers_first.set(prefer);
    }

    /// Whether a `read` of a lock has nothing to ask: locks do not prefer writers, and no writer
    /// can wait for this reader. Costs two loads.
    #[inline]
    pub(crate) fn reads_at_once(&self, others_read: bool) -> bool {
        !(self.writers_first.get() || others_read && self.writes.get())
    }

    /// Whether an execution has had a `write` of a lock so far. Without one no reader meets a
    /// writer that waits.
    pub(crate) fn has_writes(&self) -> bool {
        self.writes.get()
    }

    /// Notes a place. `off` says whether the settings do not explore the behaviour. The first note
    /// of a place allocates, so the heap must not record it.
    #[cold]
    pub(crate) fn note(&self, possible: Possible, off: bool) {
        if off && let Some(slot) = self.slot(possible.behaviour, possible.site) {
            slot.set(Some(possible.site));
        }
        let mut met = self.met.borrow_mut();
        let changes = match met.iter_mut().find(|it| it.is_like(&possible)) {
            Some(known) => {
                let explored = known.explored | possible.explored;
                std::mem::replace(&mut known.explored, explored) != explored
            }
            None => {
                met.push(possible);
                true
            }
        };
        if changes {
            self.changes.set(self.changes.get() + 1);
        }
    }

    /// The number of changes of the list since the exploration began.
    #[inline]
    pub(crate) fn changes(&self) -> usize {
        self.changes.get()
    }

    /// The places.
    pub(crate) fn met(&self) -> Vec<Possible> {
        self.met.borrow().clone()
    }
}

impl Empty for Permitted {
    fn empty(&mut self) {
        let Permitted {
            off,
            writes,
            writers_first,
            met,
            changes,
        } = self;
        (*off, *writes, *writers_first, *changes) = Default::default();
        met.get_mut().empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::Location;

    #[test]
    fn a_place_is_explored_if_it_was_explored_once_and_each_change_is_counted() {
        let places = [Location::caller(), Location::caller()];
        let mut permitted = Permitted::default();
        let note = |permitted: &Permitted, behaviour, which: usize, explored| {
            let possible = Possible {
                behaviour,
                site: places[which],
                explored,
            };
            permitted.note(possible, false);
            permitted.changes()
        };
        let (wakes, fails) = (Behaviour::SpuriousWakeup, Behaviour::SpuriousFailure);
        assert_eq!(note(&permitted, wakes, 0, false), 1);
        assert_eq!(note(&permitted, wakes, 0, false), 1);
        assert_eq!(note(&permitted, fails, 0, false), 2);
        assert_eq!(note(&permitted, wakes, 1, false), 3);
        assert_eq!(note(&permitted, wakes, 0, true), 4);
        assert_eq!(note(&permitted, wakes, 0, false), 4);
        let met = permitted.met();
        let explored: Vec<_> = met.iter().map(|it| (it.behaviour, it.explored)).collect();
        assert_eq!(explored, [(wakes, true), (fails, false), (wakes, false)]);
        permitted.empty();
        assert_eq!((permitted.met().len(), permitted.changes()), (0, 0));
    }

    #[test]
    fn a_place_is_known_at_once_where_the_behaviour_is_off() {
        let places = [Location::caller(), Location::caller()];
        let mut permitted = Permitted::default();
        let possible = |behaviour, which: usize| Possible {
            behaviour,
            site: places[which],
            explored: false,
        };
        let (wakes, fails) = (Behaviour::SpuriousWakeup, Behaviour::SpuriousFailure);
        permitted.note(possible(wakes, 0), true);
        permitted.note(possible(wakes, 1), false);
        permitted.note(possible(Behaviour::UnseenWaker, 0), true);
        let is_off = |permitted: &Permitted, behaviour, which: usize| {
            permitted.is_off(behaviour, places[which])
        };
        assert!(is_off(&permitted, wakes, 0));
        for (behaviour, which) in [(wakes, 1), (fails, 0), (Behaviour::UnseenWaker, 0)] {
            assert!(!is_off(&permitted, behaviour, which), "{behaviour:?}");
        }
        permitted.empty();
        assert!(!is_off(&permitted, wakes, 0));
    }
}
