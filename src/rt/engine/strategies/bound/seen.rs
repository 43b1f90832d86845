//! Which places has a bounded search visited, and on which ways?
//!
//! A place is the trace of a prefix with the thread that made the last step, as far as this thread
//! matters. If an earlier way to the place covers the current one, the search has already explored
//! all continuations.

use crate::rt::engine::strategies::bound::sleep::Sleep;
use crate::rt::engine::strategies::bound::table::Table;
use crate::rt::event::id::ThreadId;
use crate::rt::relation::key::TraceKey;

/// The price and the sleep set with which the search reached a place.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Way {
    /// The price so far.
    pub(super) cost: u32,
    /// The threads in the sleep set at its end.
    pub(super) sleep: Sleep,
}

impl Way {
    /// Whether the search behind this way explores all that it would explore behind the other one,
    /// or more.
    fn covers(self, other: Way) -> bool {
        self.cost <= other.cost && self.sleep.is_within(other.sleep)
    }
}

/// The properties besides its trace that distinguish one place from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// Prices are those behind a step of this thread; `None` if all steps are free.
    pub(super) last: Option<ThreadId>,
    /// Whether any thread is enabled. Where none is, the waiting threads are released, and the
    /// search visits the point again.
    pub(super) enabled: bool,
}

/// The places that the search has visited.
#[derive(Default)]
pub(super) struct Seen {
    /// By trace, the latest of its entries. Most traces have one entry.
    latest: Table<Entry>,
    /// The earlier entries.
    older: Vec<Entry>,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    place: Packed,
    /// The index of the entry before this one for the same trace.
    before: u32,
    way: Way,
}

/// A [`Place`] in one word.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Packed(u32);

impl Packed {
    fn of(place: Place) -> Packed {
        let last = place.last.map_or(0, |thread| thread.0 + 1);
        Packed(last << 1 | u32::from(place.enabled))
    }

    fn place(self) -> Place {
        Place {
            last: (self.0 >> 1).checked_sub(1).map(ThreadId),
            enabled: self.0 & 1 == 1,
        }
    }
}

/// The index that stands for no entry.
const NOWHERE: u32 = u32::MAX;

impl Seen {
    /// Whether the search has visited a place of this trace on a way that covers the result of
    /// `way` for this place, if there is a result.
    pub(super) fn covers(&self, key: TraceKey, way: impl Fn(Place) -> Option<Way>) -> bool {
        let mut next = self.latest.get(key);
        while let Some(entry) = next {
            if way(entry.place.place()).is_some_and(|way| entry.way.covers(way)) {
                return true;
            }
            next = self.older.get(entry.before as usize);
        }
        false
    }

    /// Notes that the search is here now. Returns the way on which to explore the continuations,
    /// which covers this one; `None` if they are explored already.
    pub(super) fn visit(&mut self, key: TraceKey, place: Place, way: Way) -> Option<Way> {
        let new = Entry {
            place: Packed::of(place),
            before: NOWHERE,
            way,
        };
        // Where all steps are free, the continuations include those of every other place.
        let anywhere = Packed::of(Place {
            last: None,
            ..place
        });
        let (latest, is_new) = self.latest.entry(key, new);
        if is_new {
            return Some(way);
        }
        let (mut next, mut known) = (Some(&*latest), None);
        // The index of the entry in `older`. The latest entry is not in `older`.
        let mut at = NOWHERE;
        while let Some(entry) = next {
            if (entry.place == new.place || entry.place == anywhere) && entry.way.covers(way) {
                return None;
            }
            if entry.place == new.place {
                known = Some(at);
            }
            at = entry.before;
            next = self.older.get(at as usize);
        }
        let before = match known {
            None => {
                let before = self.older.len() as u32;
                self.older.push(std::mem::replace(latest, new));
                latest.before = before;
                return Some(way);
            }
            Some(NOWHERE) => latest,
            Some(at) => &mut self.older[at as usize],
        };
        // The lower price, with the threads that are in both sleep sets: this way covers either.
        before.way.cost = before.way.cost.min(way.cost);
        before.way.sleep = before.way.sleep.and(way.sleep);
        Some(before.way)
    }

    /// The number of bytes of the places.
    pub(super) fn memory(&self) -> usize {
        self.latest.memory() + self.older.capacity() * size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_left_out_if_what_follows_was_explored_on_a_way_that_covers_this_one() {
        let way = |cost, sleepers: &[u32]| Way {
            cost,
            sleep: (sleepers.iter()).fold(Sleep::NONE, |sleep, &t| sleep.with(ThreadId(t))),
        };
        let place = |last| Place {
            last,
            enabled: true,
        };
        let one = place(Some(ThreadId(1)));
        let (mut seen, key) = (Seen::default(), TraceKey::default());
        assert_eq!(seen.visit(key, one, way(2, &[3, 4])), Some(way(2, &[3, 4])));
        // The price is the same or higher, and the sleep set the same or larger.
        assert_eq!(seen.visit(key, one, way(2, &[3, 4])), None);
        assert_eq!(seen.visit(key, one, way(3, &[3, 4, 5])), None);
        assert!(seen.covers(key, |at| (at == one).then_some(way(3, &[3, 4, 5]))));
        // The price is lower, or a thread is no longer in the sleep set. The exploration then
        // covers both ways.
        assert_eq!(seen.visit(key, one, way(1, &[3, 4])), Some(way(1, &[3, 4])));
        assert!(!seen.covers(key, |at| (at == one).then_some(way(2, &[3]))));
        assert_eq!(seen.visit(key, one, way(2, &[3, 6])), Some(way(1, &[3])));
        assert_eq!(seen.visit(key, one, way(1, &[3])), None);
        // Another place of the same trace is independent of the first, unless all steps were free
        // where the search has been.
        let (two, free) = (place(Some(ThreadId(2))), place(None));
        assert_eq!(seen.visit(key, two, way(2, &[3])), Some(way(2, &[3])));
        assert_eq!(seen.visit(key, free, way(2, &[])), Some(way(2, &[])));
        assert_eq!(seen.visit(key, place(Some(ThreadId(5))), way(2, &[])), None);
        let quiet = Place {
            enabled: false,
            ..free
        };
        assert_eq!(seen.visit(key, quiet, way(2, &[])), Some(way(2, &[])));
    }
}
