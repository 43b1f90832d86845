//! What an exploration took for granted, although std permits the program to behave otherwise.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::rt::event::{Site, foreign};
use crate::rt::exec::permitted::Behaviour;
use crate::rt::plural::counted;

/// A behaviour that was not explored, and that the program could meet at some places.
///
/// A [complete](crate::Report::complete) exploration has seen every trace under its
/// [assumptions](crate::Report::assumptions). Each assumption has a setting or a change of the
/// program that removes it, see [`AssumptionKind`].
///
/// `Display` writes the behaviour with the number of its places: `spurious wake-ups (2 waits)`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assumption {
    /// The behaviour that was not explored.
    pub kind: AssumptionKind,
    /// Places in the program at which the behaviour is possible, in the order of their text: each
    /// as `file:line:column` (as `file:line` if it is found on a stack), or `in a drop` or `in std`
    /// if the place is not in the program's own source.
    ///
    /// The list is never empty.
    pub places: Vec<String>,
}

/// Kind of an [`Assumption`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AssumptionKind {
    /// No wait at these places ended spuriously.
    ///
    /// The waits are those on a condition variable (a timed wait could also end before its time),
    /// in [`park`](crate::thread::park), in [`Notify::wait`](crate::sync::Notify::wait), and of a
    /// task in [`block_on`](crate::future::block_on) or [`spawn`](crate::future::spawn). A place
    /// counts unless a spurious wake-up was explored there at least once.
    /// [`Builder::thorough`](crate::Builder::thorough) explores them after the first pass, and
    /// [`Builder::spurious_wakeups`](crate::Builder::spurious_wakeups) in it.
    SpuriousWakeups,
    /// No weak compare-exchange at these places failed spuriously.
    ///
    /// `fetch_update` and its relatives have a weak compare-exchange. A place counts unless a
    /// spurious failure was explored there at least once.
    /// [`Builder::thorough`](crate::Builder::thorough) explores them after the first pass, and
    /// [`Builder::spurious_failures`](crate::Builder::spurious_failures) in it.
    SpuriousFailures,
    /// No `read` of an [`RwLock`](crate::sync::RwLock) at these places waited for a writer that
    /// waits.
    ///
    /// Std's lock may prefer writers. Then a thread that reads again while a writer waits for it
    /// waits forever. A place counts if other guards read the lock at a call of `read`, and the
    /// model also calls `write`. [`Builder::thorough`](crate::Builder::thorough) explores it.
    WritersFirst,
    /// A primitive that is not swapped has put frees behind the uses of their blocks, mostly the
    /// count of an `Arc` of std.
    ///
    /// The places are the last operations of the freeing threads before these frees. The model does
    /// not see the operations of such a primitive, so it explores no other order of them. It sees
    /// those of [`sync::Arc`](crate::sync::Arc), for example. Other uses of primitives that are not
    /// swapped are unknown to the model, and not among the places.
    Unswapped,
    /// A task has waited with a waker that it has cloned at these places, and no visible operation
    /// came between the clone and the wait.
    ///
    /// So a primitive that is not swapped has the waker, and the model explores no order of its
    /// operations: a wake-up that comes too early is lost, and no execution shows that. A primitive
    /// that only one task uses, such as a local channel between its parts, is harmless.
    ///
    /// The place is the innermost line of the program on the stack of the clone. If the program was
    /// built without lines, or with [`simplify`](crate::Builder::simplify) = 0, it is the place of
    /// the task's [`block_on`](crate::future::block_on) or [`spawn`](crate::future::spawn).
    UnseenWakers,
    /// At these places no more than 20 reads of the clock in a row found that no time had passed,
    /// or [`Builder::timeout_bound`](crate::Builder::timeout_bound) reads if that is more.
    ///
    /// The reads are those of an [`Instant`](crate::time::Instant) by one thread, in a loop that
    /// would have no end if the clock stood still. A larger `timeout_bound` (`DPOR_TIMEOUT_BOUND`)
    /// explores more of them.
    ClockStandsStill,
    /// No block had the memory of a block that its thread had freed before.
    ///
    /// An allocator may hand out the block that a thread has freed last. Then a compare-exchange,
    /// or another comparison of pointers, takes the new block for the old one. The places are the
    /// operations that publish a pointer to a block in an atomic, where the thread has freed
    /// another block of this size and alignment, and an atomic had held its address.
    /// [`Builder::thorough`](crate::Builder::thorough) explores it.
    BlocksAgain,
}

/// Every kind, with its name and its words. The words are those of the report: what was not
/// explored, and the unit of the places.
const KINDS: [(AssumptionKind, &str, &str, &str); 7] = [
    (
        AssumptionKind::SpuriousWakeups,
        "spurious_wakeups",
        "spurious wake-ups",
        "wait",
    ),
    (
        AssumptionKind::SpuriousFailures,
        "spurious_failures",
        "spurious failures of weak compare-exchanges",
        "place",
    ),
    (
        AssumptionKind::WritersFirst,
        "writers_first",
        "locks that prefer writers",
        "read",
    ),
    (
        AssumptionKind::Unswapped,
        "unswapped",
        "primitives that are not swapped",
        "free",
    ),
    (
        AssumptionKind::UnseenWakers,
        "unseen_wakers",
        "wake-ups by primitives that are not swapped",
        "task",
    ),
    (
        AssumptionKind::ClockStandsStill,
        "clock_stands_still",
        "more reads in a row of a clock that stands still",
        "place",
    ),
    (
        AssumptionKind::BlocksAgain,
        "blocks_again",
        "blocks at the addresses of freed ones",
        "place",
    ),
];

impl AssumptionKind {
    /// Returns the name, in the form `spurious_wakeups`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// Returns the behaviour in words.
    pub(crate) fn what(self) -> &'static str {
        self.words().1
    }

    /// Returns the name, the behaviour in words, and the unit of the places.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        let known = KINDS.iter().find(|(kind, ..)| *kind == self);
        known.map_or(("", "", ""), |&(_, name, what, unit)| (name, what, unit))
    }
}

impl From<Behaviour> for AssumptionKind {
    fn from(behaviour: Behaviour) -> AssumptionKind {
        match behaviour {
            Behaviour::SpuriousWakeup => AssumptionKind::SpuriousWakeups,
            Behaviour::SpuriousFailure => AssumptionKind::SpuriousFailures,
            Behaviour::WriterFirst => AssumptionKind::WritersFirst,
            Behaviour::Unswapped => AssumptionKind::Unswapped,
            Behaviour::UnseenWaker => AssumptionKind::UnseenWakers,
            Behaviour::ClockStandsStill => AssumptionKind::ClockStandsStill,
            Behaviour::BlockAgain => AssumptionKind::BlocksAgain,
        }
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, what, unit) = self.kind.words();
        write!(f, "{what} ({})", counted(self.places.len() as u64, unit))
    }
}

/// A place at which a behaviour is possible.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Site(Site),
    /// A place from a file or a stack.
    Text(String),
}

impl Place {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Place::Site(site) => match foreign(site.file()) {
                Some(words) => Cow::Borrowed(words),
                None => Cow::Owned(site.to_string()),
            },
            Place::Text(text) => Cow::Borrowed(text),
        }
    }
}

/// The places that an exploration has met so far, each with whether the behaviour was explored
/// there. Most explorations have few, and need no text of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlacesMet(Vec<(AssumptionKind, Place, bool)>);

impl PlacesMet {
    /// Adds a place, or that the behaviour was explored at it.
    pub(crate) fn add(&mut self, kind: AssumptionKind, site: Site, explored: bool) {
        let place = Place::Site(site);
        match self.0.iter_mut().find(|it| (it.0, &it.1) == (kind, &place)) {
            Some(known) => known.2 |= explored,
            None => self.0.push((kind, place, explored)),
        }
    }

    /// Notes that this behaviour was explored at all places that have been met.
    pub(crate) fn note_explored(&mut self, kind: AssumptionKind) {
        let all = self.0.iter_mut().filter(|it| it.0 == kind);
        all.for_each(|place| place.2 = true);
    }

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this behaviour is possible at a place and was not explored there.
    pub(crate) fn assumes(&self, kind: AssumptionKind) -> bool {
        (self.0.iter()).any(|&(of, _, explored)| of == kind && !explored)
    }

    /// Adds the places that another exploration of the same program has met.
    pub(crate) fn add_all(&mut self, other: PlacesMet) {
        for (kind, place, explored) in other.0 {
            match self.0.iter_mut().find(|it| (it.0, &it.1) == (kind, &place)) {
                Some(known) => known.2 |= explored,
                None => self.0.push((kind, place, explored)),
            }
        }
    }

    /// Replaces a place by the text of another one.
    pub(crate) fn replace(&mut self, kind: AssumptionKind, site: Site, text: String) {
        let place = Place::Site(site);
        if let Some(known) = self.0.iter_mut().find(|it| (it.0, &it.1) == (kind, &place)) {
            known.1 = Place::Text(text);
        }
    }

    /// Returns a number that distinguishes these places from others, without their texts.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        for (kind, place, explored) in &self.0 {
            (kind, explored).hash(&mut hasher);
            match place {
                // Two addresses of one place do no harm.
                Place::Site(site) => std::ptr::from_ref(*site).hash(&mut hasher),
                Place::Text(text) => text.hash(&mut hasher),
            }
        }
        hasher.finish()
    }

    /// Returns the behaviours that were not explored at some places, in the order of their kinds.
    pub(crate) fn assumptions(&self) -> Vec<Assumption> {
        let mut assumptions: Vec<Assumption> = Vec::new();
        for ((kind, place), _) in self.by_text().iter().filter(|(_, explored)| !**explored) {
            match assumptions.last_mut().filter(|last| last.kind == *kind) {
                Some(last) => last.places.push(place.to_string()),
                None => assumptions.push(Assumption {
                    kind: *kind,
                    places: vec![place.to_string()],
                }),
            }
        }
        assumptions
    }

    /// The places by their texts. Places with the same text are one.
    fn by_text(&self) -> BTreeMap<(AssumptionKind, Cow<'_, str>), bool> {
        let mut by_text = BTreeMap::new();
        for (kind, place, explored) in &self.0 {
            *by_text.entry((*kind, place.text())).or_default() |= *explored;
        }
        by_text
    }

    /// Formats the places as lines of a file.
    pub(crate) fn lines(&self) -> Vec<String> {
        let by_text = self.by_text().into_iter();
        let line = |((kind, place), explored): ((AssumptionKind, Cow<'_, str>), bool)| {
            format!("{}\t{}\t{place}", kind.name(), u8::from(explored))
        };
        by_text.map(line).collect()
    }

    /// Adds a place from such a line. `None` if the line is malformed.
    pub(crate) fn add_line(&mut self, line: &str) -> Option<()> {
        let mut parts = line.splitn(3, '\t');
        let name = parts.next()?;
        let (kind, ..) = KINDS.iter().find(|(_, known, ..)| *known == name)?;
        let explored = match parts.next()? {
            "0" => false,
            "1" => true,
            _ => return None,
        };
        let place = Place::Text(parts.next()?.to_owned());
        self.0.push((*kind, place, explored));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::Location;

    #[test]
    fn every_kind_has_words_of_its_own() {
        let behaviours = [
            Behaviour::SpuriousWakeup,
            Behaviour::SpuriousFailure,
            Behaviour::WriterFirst,
            Behaviour::Unswapped,
            Behaviour::UnseenWaker,
            Behaviour::ClockStandsStill,
            Behaviour::BlockAgain,
        ];
        let kinds = behaviours.map(AssumptionKind::from);
        assert_eq!(KINDS.map(|(kind, ..)| kind), kinds);
        for kind in kinds {
            let (name, what, unit) = kind.words();
            assert!(!name.is_empty() && !what.is_empty() && !unit.is_empty());
            assert_eq!(kind.name(), name);
        }
    }

    #[test]
    fn places_are_told_unless_explored_and_survive_a_file() {
        let sites = [Location::caller(), Location::caller(), Location::caller()];
        let (wakes, fails) = (
            AssumptionKind::SpuriousWakeups,
            AssumptionKind::SpuriousFailures,
        );
        let mut met = PlacesMet::default();
        met.add(fails, sites[0], true);
        met.add(fails, sites[0], false);
        met.add(wakes, sites[1], false);
        met.add(wakes, sites[2], false);
        met.add(wakes, sites[2], false);
        // This file is one of the crate's own, which has a name of its own in a report.
        let place = "in a drop".to_owned();
        let assumed = Assumption {
            kind: wakes,
            places: vec![place],
        };
        assert_eq!(met.assumptions(), std::slice::from_ref(&assumed));
        assert_eq!(assumed.to_string(), "spurious wake-ups (1 wait)");
        let lines = met.lines();
        let mut read = PlacesMet::default();
        for line in &lines {
            read.add_line(line).expect("well-formed");
        }
        assert_eq!((read.lines(), lines.len()), (lines.clone(), 2));
        assert_eq!(read.assumptions(), met.assumptions());
        // A resumed exploration meets the places again.
        read.add(wakes, sites[1], true);
        assert_eq!((read.assumptions(), read.lines().len()), (Vec::new(), 2));
        assert_ne!(read.fingerprint(), met.fingerprint());
        assert_eq!(met.fingerprint(), met.clone().fingerprint());
        for malformed in ["", "spurious_wakeups", "spurious_wakeups\t2\ta", "x\t0\ta"] {
            assert_eq!(
                PlacesMet::default().add_line(malformed),
                None,
                "{malformed}"
            );
        }
    }
}
