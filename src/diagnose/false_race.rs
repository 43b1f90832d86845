//! Is a failure none, because an order that the explorer does not see prevents it?
//!
//! A free that a std counter or a std atomic orders looks like a race with the uses of its block.
//! It is no race if the free cannot come before the use, or if it is the free of an owner counted
//! by std. A block that is reachable from an unknown static looks leaked. It is no leak if a static
//! still leads to it when the execution runs again.

use crate::diagnose::minimize::{Looks, Probe, begin_with_spawns, leads_to, schedule, without};
use crate::rt::engine::linearise::past;
use crate::rt::engine::replay::Replay;
use crate::rt::event::id::{ObjectId, Region};
use crate::rt::event::verdict::{Block, DataRace, End};
use crate::rt::exec::run::Found;
use crate::rt::exec::suppressed_races::SuppressedRaces;
use crate::rt::heap::COUNTS;

/// Whether the threads of this execution have operated on objects at the place where a std block
/// has its counts.
fn are_counts_seen(found: &Found, block: &Block) -> bool {
    let names = &found.driver.machine.names;
    let mut events = found.driver.trace.events().iter();
    events.any(|event| {
        let object = event.operation.object;
        if object == ObjectId::NONE {
            return false;
        }
        match names.place(object).region {
            region @ Region::Heap { offset, .. } => {
                offset < COUNTS && Block::around(&region) == Some(*block)
            }
            _ => false,
        }
    })
}

impl Probe<'_> {
    /// Whether a static leads to the blocks that seem leaked also when the execution runs again. If
    /// not, the apparent addresses were stale data, and the leak is no longer in doubt.
    pub(crate) fn hangs_from_a_static(&mut self, found: &mut Found) -> bool {
        let explorer = Box::new(Replay::new(leads_to(found)));
        let again = self.fails(explorer, 1, Looks::default());
        let leaks = again.is_some_and(|again| matches!(again.end, End::Leaked(_)));
        if let End::Leaked(leaked) = &mut found.end {
            leaked.doubted = !leaks;
        }
        !leaks
    }

    /// Returns the free that was taken for a race, if it comes after every use of its block for a
    /// reason that no event shows.
    pub(crate) fn is_in_order(&mut self, found: &mut Found) -> Option<SuppressedRaces> {
        let End::DataRace(race) = found.end.clone() else {
            return None;
        };
        let free = SuppressedRaces::of(&race)?;
        let is_in_order = match self.comes_first(found, &race) {
            Some(comes_first) => !comes_first,
            None => {
                let name = found.end.block();
                let watched = self.watched(found);
                let are_seen = |block: &Block| are_counts_seen(found, block);
                name.zip(watched)
                    .is_some_and(|(name, block)| SuppressedRaces::is((&name, &block), are_seen))
            }
        };
        is_in_order.then_some(free)
    }

    /// Whether the free comes before the use that it races with, if every event that can come
    /// before the use does. If not, an unseen order puts the free behind the use. `None` if the
    /// free depends on the use.
    fn comes_first(&mut self, found: &mut Found, race: &DataRace) -> Option<bool> {
        let driver = &mut found.driver;
        driver.compute_clocks();
        let (trace, clocks) = (&driver.trace, &driver.clocks);
        let mut freed = [(race.second.thread, race.second.after)];
        let began = begin_with_spawns(trace, &mut freed);
        let through = race.first.through();
        let order = without(driver, (race.first.thread, through), trace.len());
        let mut counts = vec![0; trace.threads()];
        for &at in &order {
            counts[trace.at(at).thread.index()] += 1;
        }
        let [(freeing, needed)] = freed;
        if counts
            .get(freeing.index())
            .is_none_or(|&count| count < needed)
        {
            return None;
        }
        let names = &driver.machine.names;
        let mut schedule = schedule(&order, &began, driver);
        // The use follows the free directly, before another event can block its thread.
        let used = past(trace, clocks, &[(race.first.thread, through)]);
        for event in trace.events() {
            let thread = event.thread.index();
            if (counts[thread]..used[thread]).contains(&event.index) {
                schedule.step_of(names.path(event.thread), event.alternative);
            }
        }
        // Other uses of the block may come before the free in this execution. They are no races
        // with it.
        let looks = Looks::at_bad_memory();
        let again = self.fails(Box::new(Replay::new(schedule)), 1, looks);
        match again.map(|again| again.end) {
            Some(End::BadMemory(_)) => Some(true),
            // The data race comes before the free and is another failure.
            Some(End::DataRace(_)) => None,
            _ => Some(false),
        }
    }
}
