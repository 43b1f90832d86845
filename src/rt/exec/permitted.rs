//! Where could the program meet a behaviour that std permits, and that is explored on request only?
//!
//! A wait may end spuriously, and a weak compare-exchange may fail spuriously. Each place at which
//! that could happen is noted, with whether it was explored there. A report names the places at
//! which it was not.

use std::cell::{Cell, RefCell};
use std::ptr;

use crate::rt::event::Site;
use crate::rt::pooled::Empty;
use crate::rt::rare::{mostly, rarely};

/// A behaviour that std permits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Behaviour {
    /// A wait ends although no other thread has ended it.
    SpuriousWakeup,
    /// A weak compare-exchange fails although it finds the expected value.
    SpuriousFailure,
    /// A primitive that is not swapped orders two threads in another way.
    Unswapped,
    /// A thread wakes a task by a waker that the task has put where no event shows it.
    UnseenWaker,
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

/// The places that the executions of an exploration have met so far.
#[derive(Default)]
pub(crate) struct Permitted {
    /// The place that was noted last: mostly a thread in a loop meets it again.
    last: Cell<Option<Possible>>,
    met: RefCell<Vec<Possible>>,
    /// The number of changes of the list.
    changes: Cell<usize>,
}

impl Permitted {
    /// Notes a place. The first note of a place allocates, so the heap must not record it.
    #[inline]
    pub(crate) fn note(&self, possible: Possible) {
        let known = |last: Possible| last.is_like(&possible) && last.explored == possible.explored;
        if !mostly!(self.last.get().is_some_and(known)) {
            self.note_another(possible);
        }
    }

    fn note_another(&self, possible: Possible) {
        self.last.set(Some(possible));
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
        if rarely!(changes) {
            self.changes.set(self.changes.get() + 1);
        }
    }

    /// Whether the place was noted last, and the behaviour was not explored.
    #[inline]
    pub(crate) fn is_last(&self, behaviour: Behaviour, site: Site) -> bool {
        let is = |last: Possible| {
            last.behaviour == behaviour && ptr::eq(last.site, site) && !last.explored
        };
        self.last.get().is_some_and(is)
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
        let Permitted { last, met, changes } = self;
        (*last, *changes) = Default::default();
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
            permitted.note(Possible {
                behaviour,
                site: places[which],
                explored,
            });
            permitted.changes()
        };
        let (wakes, fails) = (Behaviour::SpuriousWakeup, Behaviour::SpuriousFailure);
        assert_eq!(note(&permitted, wakes, 0, false), 1);
        assert_eq!(note(&permitted, wakes, 0, false), 1);
        assert!(permitted.is_last(wakes, places[0]) && !permitted.is_last(fails, places[0]));
        assert_eq!(note(&permitted, fails, 0, false), 2);
        assert_eq!(note(&permitted, wakes, 1, false), 3);
        assert_eq!(note(&permitted, wakes, 0, true), 4);
        assert!(!permitted.is_last(wakes, places[0]));
        assert_eq!(note(&permitted, wakes, 0, false), 4);
        let met = permitted.met();
        let explored: Vec<_> = met.iter().map(|it| (it.behaviour, it.explored)).collect();
        assert_eq!(explored, [(wakes, true), (fails, false), (wakes, false)]);
        permitted.empty();
        assert_eq!((permitted.met().len(), permitted.changes()), (0, 0));
        assert!(!permitted.is_last(wakes, places[0]));
    }
}
