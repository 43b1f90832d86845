//! Which loops that were taken to wait for a change give up by themselves after some rounds?
//!
//! What they do then was explored only where nothing else could run, and a report that calls itself complete would not tell.

use crate::rt::exec::run::{Between, Explored, explore};
use crate::rt::explore::further::Further;
use crate::rt::object::machine::Hinted;
use crate::rt::trace::schedule::Schedule;
use crate::shown::Body;

/// A wait at a hint that no earlier one was at, or at a timed wait.
#[derive(Clone, Debug)]
pub(crate) struct FirstWait {
    /// Where that is. An exploration that is taken up knows it only in words.
    site: String,
    /// Whether it is a timed wait, and no hint.
    timed: bool,
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
            timed: hinted.timed,
            path: names.path(hinted.thread),
            events: hinted.events,
            schedule: Schedule::leading_to(Some(hinted.thread), trace, position + 1, names),
        })
    };
    for hinted in driver.machine.hinted().iter().skip(known.len()) {
        known.push(wait(hinted));
    }
}

/// What the two are called in a file.
const TIMED: &str = "timed";
const HINT: &str = "hint";

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

impl FirstWait {
    /// As a line of a file.
    pub(crate) fn line(&self) -> String {
        let FirstWait {
            site,
            timed,
            path,
            events,
            schedule,
        } = self;
        let what = if *timed { TIMED } else { HINT };
        format!("{what}\t{path}\t{events}\t{schedule}\t{site}")
    }

    /// What such a line says.
    pub(crate) fn parse(line: &str) -> Option<FirstWait> {
        let mut parts = line.splitn(5, '\t');
        Some(FirstWait {
            timed: match parts.next()? {
                TIMED => true,
                HINT => false,
                _ => return None,
            },
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
    /// The loop that gives up after most rounds.
    pub(crate) fn gives_up(&mut self, waits: &[FirstWait]) -> Option<GivesUp> {
        let gives_up = |wait: &FirstWait| {
            Some(GivesUp {
                site: wait.site.clone(),
                timed: wait.timed,
                rounds: self.rounds_of(wait)?,
            })
        };
        let all = waits.iter().filter_map(gives_up);
        all.max_by_key(|it| it.rounds)
    }

    /// After how many rounds this loop gives up, if it does.
    fn rounds_of(&mut self, wait: &FirstWait) -> Option<usize> {
        let path = wait.path.clone();
        let (explorer, rounds) = Further::explorer(wait.schedule.clone(), path.clone());
        let mut driver = self.driver(Box::new(explorer));
        driver.machine.let_go_further(path, wait.events);
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
        let before = match wait.timed {
            true => self.settings.timeout_bound,
            false => self.settings.spin_bound + 1,
        };
        Some((before + more) as usize)
    }
}
