//! Which loops that were taken to wait for a change give up by themselves after some rounds?
//!
//! What they do then was explored only where nothing else could run, and a report that calls itself complete would not tell.

use crate::rt::exec::run::{Between, Explored, explore};
use crate::rt::explore::further::Further;
use crate::rt::object::machine::Hinted;
use crate::rt::trace::schedule::Schedule;
use crate::shown::Body;

/// A wait at a hint that no earlier one was at.
#[derive(Clone, Debug)]
pub(crate) struct FirstWait {
    /// Where the hint is. An exploration that is taken up knows it only in words.
    site: String,
    path: String,
    events: u32,
    /// What leads to it.
    schedule: Schedule,
}

/// Those of the execution that has ended which are not known.
pub(crate) fn note(known: &mut Vec<Option<FirstWait>>, between: &Between<'_>) {
    let driver = between.driver;
    let (trace, names) = (&driver.trace, &driver.machine.names);
    let wait = |hinted: &Hinted| {
        let last = hinted.events.checked_sub(1)? as usize;
        let position = *trace.positions_of(hinted.thread).get(last)? as usize;
        Some(FirstWait {
            site: hinted.site.to_string(),
            path: names.path(hinted.thread),
            events: hinted.events,
            schedule: Schedule::leading_to(Some(hinted.thread), trace, position + 1, names),
        })
    };
    for hinted in driver.machine.hinted().iter().skip(known.len()) {
        known.push(wait(hinted));
    }
}

impl FirstWait {
    /// As a line of a file.
    pub(crate) fn line(&self) -> String {
        let FirstWait {
            site,
            path,
            events,
            schedule,
        } = self;
        format!("{path}\t{events}\t{schedule}\t{site}")
    }

    /// What such a line says.
    pub(crate) fn parse(line: &str) -> Option<FirstWait> {
        let mut parts = line.splitn(4, '\t');
        Some(FirstWait {
            path: parts.next()?.to_owned(),
            events: parts.next()?.parse().ok()?,
            schedule: Schedule::parse(parts.next()?).ok()?,
            site: parts.next()?.to_owned(),
        })
    }

    pub(crate) fn is_at_hint_of(&self, other: &FirstWait) -> bool {
        self.site == other.site
    }
}

impl Body<'_> {
    /// The hint whose loop gives up after most rounds, and how many these are.
    pub(crate) fn gives_up(&mut self, waits: &[FirstWait]) -> Option<(String, usize)> {
        let rounds = |wait: &FirstWait| Some((wait.site.clone(), self.rounds_of(wait)?));
        let all = waits.iter().filter_map(rounds);
        all.max_by_key(|(_, rounds)| *rounds)
    }

    /// After how many rounds this loop gives up, if it does.
    fn rounds_of(&mut self, wait: &FirstWait) -> Option<usize> {
        let path = wait.path.clone();
        let (explorer, rounds) = Further::explorer(wait.schedule.clone(), path.clone());
        let mut driver = self.driver(Box::new(explorer));
        driver.machine.let_go_further(path, wait.events);
        let settings = self.settings.running(self.site, self.unseen);
        let log = self.log.quiet();
        let explored =
            log.listen(|| explore(self.body.clone(), driver, self.stacks, settings, |_| true));
        let more = match explored {
            Explored::Passed(_) => rounds.get()?,
            // What has failed is not the loop.
            Explored::Failed(found) => found.driver.machine.rounds_further().0,
        };
        if more == 0 {
            return None;
        }
        // What it has made before it would have waited for the first time.
        Some((self.settings.spin_bound + 1 + more) as usize)
    }
}
