//! Is a failure none, because something that is not seen keeps it from ever happening?
//!
//! What a counter of std's or an atomic of std's orders looks like a free that races with the uses of its block.
//! That it is none shows if the free is tried before the use, or in who has made it.

use crate::rt::exec::run::Found;
use crate::rt::exec::unseen::Unseen;
use crate::rt::explore::linearise::{fewest_switches, past};
use crate::rt::explore::replay::Replay;
use crate::rt::trace::verdict::{DataRace, End};
use crate::shown::{Body, Looks, begin_with_spawns, schedule};

impl Body<'_> {
    /// The free that was taken for a race, if it comes after every use of its block for a reason that is not seen.
    pub(crate) fn is_in_order(&mut self, found: &mut Found) -> Option<Unseen> {
        let End::DataRace(race) = found.end.clone() else {
            return None;
        };
        let free = Unseen::of(&race)?;
        let is_in_order = self.never_comes_first(found, &race)
            || self.watched(found).is_some_and(|block| Unseen::is(&block));
        is_in_order.then_some(free)
    }

    /// Whether the free was tried without the use that it races with, and did not come about, or not before it. What is
    /// unseen has ordered them then. Nothing is known if the free depends on that use.
    fn never_comes_first(&mut self, found: &mut Found, race: &DataRace) -> bool {
        let driver = &mut found.driver;
        driver.measure();
        let (trace, clocks) = (&driver.trace, &driver.clocks);
        let mut freed = [(race.second.thread, race.second.after)];
        let began = begin_with_spawns(trace, &mut freed);
        let counts = past(trace, clocks, &freed);
        let used = race.first.through();
        if counts.get(race.first.thread.index()) >= Some(&used) {
            return false;
        }
        let Some(order) = fewest_switches(trace, clocks, &counts) else {
            return false;
        };
        let names = &driver.machine.names;
        let mut schedule = schedule(&order, driver);
        for thread in began {
            schedule.begin(names.path(thread));
        }
        // Behind the free comes the use, before anything else could keep its thread from it.
        let used = past(trace, clocks, &[(race.first.thread, used)]);
        for event in trace.events() {
            let thread = event.thread.index();
            if (counts[thread]..used[thread]).contains(&event.index) {
                schedule.step_of(names.path(event.thread), event.alternative);
            }
        }
        let again = self.fails(Box::new(Replay::new(schedule)), 1, Looks::default());
        !again.is_some_and(|again| matches!(again.end, End::BadMemory(_)))
    }
}
