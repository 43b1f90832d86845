//! Which loops that were taken to wait for a change give up by themselves after some rounds?
//!
//! What they do then was explored only where nothing else could run, and a report that calls itself complete would not tell.
//! Of loops with a hint and of timed waits that is said at the end. A loop without a hint may be any loop that reads, and it is
//! looked at when it has waited for the first time: if it gives up, the exploration begins anew.

use crate::first_waits::FirstWait;
use crate::rt::exec::run::{Explored, explore};
use crate::rt::explore::further::Further;
use crate::rt::object::machine::WaitsAt;
use crate::shown::Body;

/// A loop that was taken to wait, and gives up by itself.
#[derive(Clone, Debug)]
pub(crate) struct GivesUp {
    /// Where it was taken to wait.
    pub(crate) site: String,
    /// Whether there is a timed wait, and no hint.
    pub(crate) timed: bool,
    /// After how many rounds it gives up, in which nothing changes or the wait times out.
    pub(crate) rounds: usize,
}

impl Body<'_> {
    /// Whether one of these loops without a hint gives up by itself.
    pub(crate) fn any_gives_up(&mut self, waits: &[FirstWait]) -> bool {
        waits.iter().any(|wait| self.rounds_of(wait).is_some())
    }

    /// The loop with a hint, or with a timed wait, that gives up after most rounds.
    pub(crate) fn gives_up(&mut self, waits: &[FirstWait]) -> Option<GivesUp> {
        let gives_up = |wait: &FirstWait| {
            Some(GivesUp {
                site: wait.site.clone(),
                timed: wait.at == WaitsAt::Timed,
                rounds: self.rounds_of(wait)?,
            })
        };
        let waits = waits.iter().filter(|wait| !wait.is_look());
        let all = waits.filter_map(gives_up);
        all.max_by_key(|it| it.rounds)
    }

    /// After how many rounds this loop gives up, if it does.
    fn rounds_of(&mut self, wait: &FirstWait) -> Option<usize> {
        let path = wait.path.clone();
        let (explorer, rounds) = Further::explorer(wait.schedule.clone(), path.clone());
        let mut driver = self.driver(Box::new(explorer));
        (driver.machine).let_go_further(path, wait.events, wait.is_look());
        let settings = self.settings.running(self.site, self.unseen);
        let log = self.log.quiet();
        let explored = log.listen(|| explore(self.main, driver, self.stacks, settings, |_| true));
        let more = match explored {
            Explored::Passed(_) => rounds.get()?,
            // What has failed is not the loop.
            Explored::Failed(found) => found.driver.machine.rounds_further().0,
        };
        if more == 0 {
            return None;
        }
        // What it has made before it would have waited for the first time.
        let before = match wait.at {
            WaitsAt::Timed => self.settings.timeout_bound,
            WaitsAt::Hint | WaitsAt::Look => self.settings.spin_bound + 1,
        };
        Some((before + more) as usize)
    }
}
