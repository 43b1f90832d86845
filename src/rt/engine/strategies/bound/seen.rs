//! Where has a bounded search been, and on which way?
//!
//! A place is the trace of a prefix with the thread that ran last, as far as that matters. Whoever
//! comes to a place by a way that covers the one of now has explored all that can follow.

use crate::rt::engine::strategies::bound::sleep::Sleep;
use crate::rt::engine::strategies::bound::table::Table;
use crate::rt::event::id::ThreadId;
use crate::rt::relation::key::TraceKey;

/// How the search came somewhere.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Way {
    /// What it has cost.
    pub(super) cost: u32,
    /// Who sleeps at its end.
    pub(super) sleep: Sleep,
}

impl Way {
    /// Whether what is explored behind it is all that would be behind the other, or more.
    fn covers(self, other: Way) -> bool {
        self.cost <= other.cost && self.sleep.is_within(other.sleep)
    }
}

/// What else than its trace tells one place from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// Everything costs what it costs if this thread has run last; `None` if nothing costs
    /// anything.
    pub(super) last: Option<ThreadId>,
    /// Whether any thread is enabled. Where none is, those that wait are let go, and the point is
    /// visited again.
    pub(super) enabled: bool,
}

/// The places where the search has been.
#[derive(Default)]
pub(super) struct Seen {
    /// By trace, the latest of its entries. Most have one.
    latest: Table<Entry>,
    /// The entries before those.
    older: Vec<Entry>,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    place: Packed,
    /// Where the one before it is for the same trace.
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

/// Stands where there is no entry.
const NOWHERE: u32 = u32::MAX;

impl Seen {
    /// Whether the search has been at a place of this trace on a way that covers what `way` says of
    /// the place, if it says something.
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

    /// Notes that the search is here now. Gives the way on which to explore what follows, which
    /// covers this one; `None` if that is done already.
    pub(super) fn visit(&mut self, key: TraceKey, place: Place, way: Way) -> Option<Way> {
        let new = Entry {
            place: Packed::of(place),
            before: NOWHERE,
            way,
        };
        // Where nothing costs anything, all can follow that can wherever else.
        let anywhere = Packed::of(Place {
            last: None,
            ..place
        });
        let (latest, is_new) = self.latest.entry(key, new);
        if is_new {
            return Some(way);
        }
        let (mut next, mut known) = (Some(&*latest), None);
        // Where that is among the older ones. The latest is not among them.
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
        // The cheaper way, with those asleep who are so on both: that covers either.
        before.way.cost = before.way.cost.min(way.cost);
        before.way.sleep = before.way.sleep.and(way.sleep);
        Some(before.way)
    }

    /// How many bytes that takes.
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
        // It costs as much or more, and as many sleep or more.
        assert_eq!(seen.visit(key, one, way(2, &[3, 4])), None);
        assert_eq!(seen.visit(key, one, way(3, &[3, 4, 5])), None);
        assert!(seen.covers(key, |at| (at == one).then_some(way(3, &[3, 4, 5]))));
        // It is cheaper, or somebody is awake who was not. What is explored then covers both.
        assert_eq!(seen.visit(key, one, way(1, &[3, 4])), Some(way(1, &[3, 4])));
        assert!(!seen.covers(key, |at| (at == one).then_some(way(2, &[3]))));
        assert_eq!(seen.visit(key, one, way(2, &[3, 6])), Some(way(1, &[3])));
        assert_eq!(seen.visit(key, one, way(1, &[3])), None);
        // Another place of the same trace is on its own, unless nothing costs anything where the
        // search has been.
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
