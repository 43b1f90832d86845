//! Is a failure none, because something that is not seen keeps it from ever happening?
//!
//! What a counter of std's or an atomic of std's orders looks like a free that races with the uses
//! of its block. That it is none shows if the free is tried before the use, or in who has made it.
//! What hangs from a static that nobody hears of looks like a leak, and that it is none shows if
//! the execution is made once more.

use crate::diagnose::minimize::{Looks, Probe, begin_with_spawns, leads_to, schedule, without};
use crate::rt::engine::linearise::past;
use crate::rt::engine::replay::Replay;
use crate::rt::event::id::{ObjectId, Region};
use crate::rt::event::verdict::{Block, DataRace, End};
use crate::rt::exec::run::Found;
use crate::rt::exec::suppressed_races::SuppressedRaces;
use crate::rt::heap::COUNTS;

/// Whether the threads of this execution have operated on objects where a block of std's has its
/// counts.
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
    /// Whether a static leads to the blocks that seem to be leaked also where the execution is made
    /// once more. If not, what looked like their addresses was left there by something else, and
    /// this is a leak that is not doubted any more.
    pub(crate) fn hangs_from_a_static(&mut self, found: &mut Found) -> bool {
        let explorer = Box::new(Replay::new(leads_to(found)));
        let again = self.fails(explorer, 1, Looks::default());
        let leaks = again.is_some_and(|again| matches!(again.end, End::Leaked(_)));
        if let End::Leaked(leaked) = &mut found.end {
            leaked.doubted = !leaks;
        }
        !leaks
    }

    /// The free that was taken for a race, if it comes after every use of its block for a reason
    /// that is not seen.
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

    /// Whether the free comes before the use that it races with if all is done before that use that
    /// can be. If not, what is unseen has ordered them. Nothing is known if the free depends on
    /// that use.
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
        // Behind the free comes the use, before anything else could keep its thread from it.
        let used = past(trace, clocks, &[(race.first.thread, through)]);
        for event in trace.events() {
            let thread = event.thread.index();
            if (counts[thread]..used[thread]).contains(&event.index) {
                schedule.step_of(names.path(event.thread), event.alternative);
            }
        }
        // Others that use the block may come before the free here, and are no races with it.
        let looks = Looks::at_bad_memory();
        let again = self.fails(Box::new(Replay::new(schedule)), 1, looks);
        match again.map(|again| again.end) {
            Some(End::BadMemory(_)) => Some(true),
            // That came first, and is another failure.
            Some(End::DataRace(_)) => None,
            _ => Some(false),
        }
    }
}
