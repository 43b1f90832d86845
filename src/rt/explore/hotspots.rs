//! Which places of the program cost most executions?
//!
//! Every execution but the first exists because an event of another one is to come later: something
//! else is executed where that event was. The place of the event is where the execution is
//! booked. The places with most executions are those whose races one would have to remove, or move
//! out of the model, to shrink the test.

use std::collections::HashMap;
use std::ptr;

use crate::rt::trace::Site;

/// The number of executions that each place has cost.
#[derive(Default, Debug)]
pub(crate) struct Hotspots {
    counts: HashMap<Site, u64>,
    /// The place that was booked last, and how often in a row, which is not yet in `counts`: executions branch off
    /// at the same place many times before it is another one's turn.
    last: Option<(Site, u64)>,
}

impl Hotspots {
    /// An execution begins by doing something else than the event at this place.
    pub(super) fn book(&mut self, site: Site) {
        match &mut self.last {
            Some((last, times)) if ptr::eq(*last, site) => *times += 1,
            last => {
                if let Some((site, times)) = last.replace((site, 1)) {
                    *self.counts.entry(site).or_default() += times;
                }
            }
        }
    }

    /// The places, with how many executions have been booked on each.
    fn booked(&self) -> HashMap<Site, u64> {
        let mut counts = self.counts.clone();
        if let Some((site, times)) = self.last {
            *counts.entry(site).or_default() += times;
        }
        counts
    }

    /// How many executions have been booked.
    pub(crate) fn total(&self) -> u64 {
        self.booked().values().sum()
    }

    /// The places with most executions, the most first.
    pub(crate) fn most(&self, places: usize) -> Vec<(Site, u64)> {
        let mut all: Vec<(Site, u64)> = self.booked().into_iter().collect();
        let order = |site: Site| (site.file(), site.line(), site.column());
        all.sort_by_key(|&(site, count)| (std::cmp::Reverse(count), order(site)));
        all.truncate(places);
        all
    }
}
