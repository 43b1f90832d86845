//! Which places of the program cost most executions?
//!
//! Every execution but the first exists because an event of another one is to come later: something
//! else is executed where that event was. The place of the event is where the execution is
//! booked. The places with most executions are those whose races one would have to remove, or move
//! out of the model, to shrink the test.

use rustc_hash::FxHashMap;

use crate::rt::trace::Site;

/// The number of executions that each place has cost.
#[derive(Default, Debug)]
pub(crate) struct Hotspots {
    counts: FxHashMap<Site, u64>,
}

impl Hotspots {
    /// An execution begins by doing something else than the event at this place.
    pub(super) fn book(&mut self, site: Site) {
        *self.counts.entry(site).or_default() += 1;
    }

    /// How many executions have been booked.
    pub(crate) fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The places with most executions, the most first.
    pub(crate) fn most(&self, places: usize) -> Vec<(Site, u64)> {
        let mut all: Vec<(Site, u64)> = self.counts.iter().map(|(&s, &n)| (s, n)).collect();
        let order = |site: Site| (site.file(), site.line(), site.column());
        all.sort_by_key(|&(site, count)| (std::cmp::Reverse(count), order(site)));
        all.truncate(places);
        all
    }
}
