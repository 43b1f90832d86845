//! Which places of the program cost most executions?
//!
//! Every execution but the first exists because an event of another one is to come later: something
//! else is executed where that event was. The place of the event is where the execution is
//! booked. The places with most executions are those whose races one would have to remove, or move
//! out of the model, to shrink the test.

use std::ptr;

use rustc_hash::FxHashMap;

use crate::rt::pooled::Empty;
use crate::rt::trace::Site;

/// The number of executions that each place has cost.
#[derive(Default, Debug)]
pub(crate) struct Hotspots {
    counts: FxHashMap<Site, u64>,
    /// How many were booked last, one after the other, at a place, which `counts` does not have yet.
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
    /// An execution begins by doing something else than the event at this place.
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

    /// How many executions have been booked.
    pub(crate) fn total(&self) -> u64 {
        let last = self.last.iter().map(|(_, times)| times);
        self.counts.values().chain(last).sum()
    }

    /// The places with most executions, the most first.
    pub(crate) fn most(&self, places: usize) -> Vec<(Site, u64)> {
        let mut all = Vec::with_capacity(self.counts.len() + usize::from(self.last.is_some()));
        all.extend(self.counts.iter().map(|(&site, &times)| (site, times)));
        if let Some((last, times)) = self.last {
            match all.iter_mut().find(|(site, _)| *site == last) {
                Some((_, known)) => *known += times,
                None => all.push((last, times)),
            }
        }
        let order = |site: Site| (site.file(), site.line(), site.column());
        all.sort_by_key(|&(site, count)| (std::cmp::Reverse(count), order(site)));
        all.truncate(places);
        all
    }
}
