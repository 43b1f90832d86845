//! Which part of an exploration does one of several processes explore?
//!
//! The processes share no memory and no file, so each of them finds the parts by itself. It
//! explores the first executions, and then one execution of the shallowest branch that is left,
//! until there are many branches. That depends on the program and the settings alone. The branches
//! are dealt out in the order of their depths, and the shallow ones are mostly the largest. The
//! executions up to there count in the first part.
//!
//! A fact that makes the exploration restart later may be known to one process only. That process
//! explores everything then.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::config::Shard;
use crate::exploration::Exploration;
use crate::exploration::workers::SameProcess;
use crate::rt::engine::stats::Stats;
use crate::rt::exec::pooled_runtime::PooledDriver;
use crate::rt::object::machine::Learnt;

/// Number of events up to which the model is explored in full by each process.
const SMALL: u64 = if cfg!(test) { 400 } else { 20_000 };

/// Number of branches for each part, and the most executions to find them.
const BRANCHES: usize = 32;
const EXECUTIONS_MAX: usize = 64;

/// A branch that is left: its depth and its number, the other way round, and its bytes.
type Branch = (Reverse<(u32, usize)>, Vec<u8>);

impl Exploration<'_> {
    /// Explores up to where there are parts, and returns a driver that has this part left. If
    /// nothing is paused then, everything has been explored, or the exploration has ended.
    pub(super) fn begin_shard(&mut self, mut driver: PooledDriver, shard: Shard) -> PooledDriver {
        let names = &driver.machine.names;
        if names.thread_count() > 1 || names.object_count() > 0 {
            // The checkpoint was written behind that.
            self.shard = Some(shard);
            return driver;
        }
        self.watch.keeps_nothing = true;
        let events = self.events(&driver).saturating_add(SMALL);
        driver = self.advance(driver, events);
        while self.paused {
            match self.deal(driver, shard) {
                Ok(dealt) => {
                    driver = dealt;
                    break;
                }
                Err(other) => driver = other,
            }
        }
        self.watch.keeps_nothing = false;
        driver
    }

    /// Finds the branches and takes those of this part. An error is another driver with which the
    /// exploration has ended, or begun anew.
    fn deal(
        &mut self,
        mut driver: PooledDriver,
        shard: Shard,
    ) -> Result<PooledDriver, PooledDriver> {
        let mut branches: BinaryHeap<Branch> = BinaryHeap::new();
        let mut known = 0;
        let mut add = |branches: &mut BinaryHeap<Branch>, driver: &PooledDriver| {
            for (depth, bytes) in driver.branches(&SameProcess) {
                known += 1;
                branches.push((Reverse((depth, known)), bytes.unwrap_or_default()));
            }
        };
        add(&mut branches, &driver);
        for _ in 0..EXECUTIONS_MAX * shard.of {
            if branches.len() >= BRANCHES * shard.of {
                break;
            }
            let Some((_, branch)) = branches.pop() else {
                break;
            };
            let stats = driver.stats;
            driver = self.restored(&mut driver, [&*branch].into_iter(), stats);
            let spent = self.spent;
            let events = self.events(&driver).saturating_add(1);
            driver = self.advance(driver, events);
            let has_failed = !self.failures.is_empty();
            if self.spent != spent || self.watch.stopped.is_some() || has_failed {
                return Err(driver);
            }
            if std::mem::take(&mut self.paused) {
                add(&mut branches, &driver);
            }
        }
        let dealt = branches.into_sorted_vec();
        // The largest ones go to the parts in turns, and then the other way round.
        let is_mine = |at: usize| {
            let (round, place) = (at / shard.of, at % shard.of);
            let index = if round % 2 == 0 {
                place
            } else {
                shard.of - 1 - place
            };
            index + 1 == shard.index
        };
        let mut mine: Vec<(usize, Vec<u8>)> = dealt
            .into_iter()
            .rev()
            .enumerate()
            .filter(|(at, _)| is_mine(*at))
            .map(|(_, (Reverse((_, number)), bytes))| (number, bytes))
            .collect();
        mine.sort_unstable_by_key(|(number, _)| *number);
        let mut stats = driver.stats;
        if shard.index > 1 {
            stats = Stats::default();
            self.watch.forget_outcomes();
        }
        let parts = mine.iter().map(|(_, bytes)| &**bytes);
        driver = self.restored(&mut driver, parts, stats);
        if shard.index > 1 {
            driver.hotspots = Default::default();
        }
        self.watch.before = stats.begun();
        self.paused = driver.more();
        self.shard = Some(shard);
        Ok(driver)
    }

    /// Returns a driver that takes the place of `earlier`, and has these parts left.
    fn restored<'b>(
        &mut self,
        earlier: &mut PooledDriver,
        parts: impl Iterator<Item = &'b [u8]>,
        stats: Stats,
    ) -> PooledDriver {
        self.keep_weak(earlier);
        let explorer = self.settings.explorer(self.seed);
        let mut driver = self.settings.driver(explorer, Learnt::default());
        let parts = parts.map(|bytes| (bytes, Stats::default()));
        let restored = driver.restore_parts(parts, stats, &SameProcess);
        assert!(restored, "dpor bug: a branch does not fit");
        driver.take_place_of(earlier);
        if self.watch.weak.is_some() {
            driver.look_out_no_more();
        }
        self.watch.add_seen(Vec::new());
        self.paused = true;
        driver
    }
}

#[cfg(test)]
mod tests;
