//! Is the last synchronisation of the writing thread in a data race the last one of that thread?
//!
//! The execution ends with the race, so the later events of the writing thread are not in it. The
//! probe runs the execution again up to the read by which the other thread synchronises, and stops
//! that thread there.

use crate::diagnose::minimize::{Looks, Probe};
use crate::rt::engine::exclude_thread::Without;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::End;
use crate::rt::exec::run::{Explored, Found};
use crate::rt::report::publication;

impl Probe<'_> {
    /// Fills in whether the synchronisation that the second thread of a race has read from the
    /// first thread is the first thread's last one, if that makes a difference.
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
        // An execution that failed does not show the later events.
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
