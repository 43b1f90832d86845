//! Which sites of the program cost most executions?
//!
//! Every execution but the first exists because another step replaces an event of an earlier
//! execution. The execution is booked at the site of this event. The sites with most executions
//! have the races that a user would have to remove, or move out of the model, to shrink the test.

use std::cmp::Reverse;
use std::mem::swap;
use std::ptr;

use rustc_hash::FxHashMap;

use crate::rt::event::Site;
use crate::rt::pooled::Empty;

/// The number of executions that each site has cost.
#[derive(Clone, Default, Debug)]
pub(crate) struct Hotspots {
    counts: FxHashMap<Site, u64>,
    /// The site that was booked last, and the number of its latest bookings in a row, which
    /// `counts` does not include yet.
    last: Option<(Site, u64)>,
}

impl Empty for Hotspots {
    fn empty(&mut self) {
        let Hotspots { counts, last } = self;
        counts.empty();
        *last = None;
    }
}

impl Hotspots {
    /// Books an execution in which another step replaces the event at this site.
    #[inline]
    pub(super) fn book(&mut self, site: Site) {
        match &mut self.last {
            Some((last, times)) if ptr::eq(*last, site) => *times += 1,
            _ => self.book_another(site),
        }
    }

    #[inline(never)]
    fn book_another(&mut self, site: Site) {
        if let Some((last, times)) = self.last.replace((site, 1)) {
            *self.counts.entry(last).or_default() += times;
        }
    }

    /// Books the executions that another exploration of the same program has booked.
    pub(crate) fn add(&mut self, other: &Hotspots) {
        for (&site, times) in other
            .counts
            .iter()
            .chain(other.last.iter().map(|it| (&it.0, &it.1)))
        {
            *self.counts.entry(site).or_default() += times;
        }
    }

    /// How many executions have been booked.
    pub(crate) fn total(&self) -> u64 {
        let last = self.last.iter().map(|(_, times)| times);
        self.counts.values().chain(last).sum()
    }

    /// The sites with most executions, in descending order, at most `MOST` of them.
    pub(crate) fn most<const MOST: usize>(&self) -> impl Iterator<Item = (Site, u64)> {
        let last = self
            .last
            .filter(|(last, _)| !self.counts.contains_key(last));
        let counted = self.counts.iter().map(|(&site, &times)| match self.last {
            Some((last, more)) if last == site => (site, times + more),
            _ => (site, times),
        });
        let order = |&(site, times): &(Site, u64)| {
            let place = (site.file(), site.line(), site.column());
            (Reverse(times), place)
        };
        // Every exploration with races has some, mostly few, so this function allocates no list for
        // them.
        let mut most = [None; MOST];
        for mut place in counted.chain(last) {
            for known in &mut most {
                match known {
                    Some(known) if order(known) < order(&place) => {}
                    Some(known) => swap(known, &mut place),
                    None => {
                        *known = Some(place);
                        break;
                    }
                }
            }
        }
        most.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;

    #[test]
    fn the_most_come_first_and_of_as_many_the_place_that_is_earlier_in_the_source() {
        let [first, second] = [Location::caller(), Location::caller()];
        let (third, fourth) = (Location::caller(), Location::caller());
        let mut hotspots = Hotspots::default();
        let booked = [
            (fourth, 2),
            (second, 1),
            (third, 3),
            (fourth, 1),
            (first, 1),
        ];
        for (site, times) in booked {
            (0..times).for_each(|_| hotspots.book(site));
        }
        assert_eq!(hotspots.total(), 8);
        let all = [(third, 3), (fourth, 3), (first, 1), (second, 1)];
        assert_eq!(hotspots.most::<9>().collect::<Vec<_>>(), all);
        assert_eq!(hotspots.most::<3>().collect::<Vec<_>>(), all[..3]);
    }
}
