//! Has a thread that writes in a data race told all that it tells before it writes?
//!
//! The execution ends with the race, and what would have come then is not in it. So it is made once
//! more up to where the thread that reads looks at what it was told, and that thread goes no
//! further.

use crate::diagnose::minimize::{Looks, Probe};
use crate::rt::engine::exclude_thread::Without;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::End;
use crate::rt::exec::run::{Explored, Found};
use crate::rt::report::publication;

impl Probe<'_> {
    /// Fills in whether the last that the second thread of a race has learnt of the first one is
    /// all that it tells, if that makes a difference.
    pub(crate) fn find_publication_order(&mut self, found: &mut Found) {
        let End::DataRace(race) = &found.end else {
            return;
        };
        let (trace, machine) = (&found.driver.trace, &found.driver.machine);
        let Some(claim) = publication::claim(race, trace, machine) else {
            return;
        };
        let reader = machine.names.path(race.second.thread);
        let before = Schedule::of(trace, claim.read, &machine.names);
        let (explorer, is_over) = Without::explorer(before, reader);
        let (explored, _) = self.explored(Box::new(explorer), 1, Looks::default());
        // What has failed is not known to the end.
        let publishes_no_more = match explored {
            Explored::Passed(driver) => {
                is_over.get() && claim.is_all(&driver.trace, &driver.machine)
            }
            Explored::Failed(_) => false,
        };
        if let End::DataRace(race) = &mut found.end {
            race.publishes_no_more = publishes_no_more;
        }
    }
}
