//! Where did loops wait for a change for the first time?
//!
//! What leads to each such place is kept, because it is asked there whether the loop gives up by itself (`gives_up.rs`): of loops
//! without a hint at once, and of the others in the end.

use crate::rt::exec::run::Between;
use crate::rt::object::machine::{Waited, WaitsAt};
use crate::rt::trace::schedule::Schedule;

/// A wait at a hint that no earlier one was at, at a timed wait, or in a loop without a hint.
#[derive(Clone, Debug)]
pub(crate) struct FirstWait {
    /// Where that is. An exploration that is taken up knows it only in words.
    pub(crate) site: String,
    pub(crate) at: WaitsAt,
    /// Which thread waits, as its path of births.
    pub(crate) path: String,
    /// How many events it has performed.
    pub(crate) events: u32,
    /// What leads to it.
    pub(crate) schedule: Schedule,
}

/// What they are called in a file.
const CALLED: [(WaitsAt, &str); 3] = [
    (WaitsAt::Hint, "hint"),
    (WaitsAt::Timed, "timed"),
    (WaitsAt::Look, "look"),
];

impl FirstWait {
    /// As a line of a file.
    pub(crate) fn line(&self) -> String {
        let FirstWait {
            site,
            at,
            path,
            events,
            schedule,
        } = self;
        let (_, what) = CALLED.iter().find(|(it, _)| it == at).unwrap_or(&CALLED[0]);
        format!("{what}\t{path}\t{events}\t{schedule}\t{site}")
    }

    /// What such a line says.
    pub(crate) fn parse(line: &str) -> Option<FirstWait> {
        let mut parts = line.splitn(5, '\t');
        let what = parts.next()?;
        Some(FirstWait {
            at: CALLED.iter().find(|(_, it)| *it == what)?.0,
            path: parts.next()?.to_owned(),
            events: parts.next()?.parse().ok()?,
            schedule: Schedule::parse(parts.next()?).ok()?,
            site: parts.next()?.to_owned(),
        })
    }

    /// Whether it is the same wait, or another one at the same hint.
    pub(crate) fn is_like(&self, other: &FirstWait) -> bool {
        (self.at, &self.site) == (other.at, &other.site)
            && (!self.is_look() || (&self.path, self.events) == (&other.path, other.events))
    }

    /// Whether it is in a loop without a hint.
    pub(crate) fn is_look(&self) -> bool {
        self.at == WaitsAt::Look
    }
}

/// Those of an exploration.
#[derive(Debug, Default)]
pub(crate) struct FirstWaits {
    /// Those of the parts before this one.
    earlier: Vec<FirstWait>,
    /// Those of this part, as many as the machine knows.
    known: Vec<Option<FirstWait>>,
    /// Those in loops without a hint of which it is not known yet whether these give up.
    looks: Vec<FirstWait>,
}

impl FirstWaits {
    /// Those of an exploration that is taken up, of which these are known.
    pub(crate) fn taken_up(earlier: Vec<FirstWait>) -> FirstWaits {
        let looks = earlier.iter().filter(|wait| wait.is_look());
        FirstWaits {
            looks: looks.cloned().collect(),
            known: Vec::new(),
            earlier,
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.earlier.is_empty() && self.known.is_empty()
    }

    /// All of them, one for each hint.
    pub(crate) fn all(&self) -> Vec<FirstWait> {
        let mut all = self.earlier.clone();
        for wait in self.known.iter().flatten() {
            if !self.earlier.iter().any(|it| it.is_like(wait)) {
                all.push(wait.clone());
            }
        }
        all
    }

    /// Whether there are some in loops without a hint of which it has to be asked whether these give up.
    #[inline]
    pub(crate) fn has_looks(&self) -> bool {
        !self.looks.is_empty()
    }

    /// Those of which that has to be asked, for who asks.
    pub(crate) fn take_looks(&mut self) -> Vec<FirstWait> {
        std::mem::take(&mut self.looks)
    }

    /// Notes those of the execution that has ended.
    #[inline]
    pub(crate) fn note(&mut self, between: &Between<'_>) {
        if between.driver.machine.waited().len() > self.known.len() {
            self.note_new(between);
        }
    }

    #[cold]
    fn note_new(&mut self, between: &Between<'_>) {
        let driver = between.driver;
        let (trace, names) = (&driver.trace, &driver.machine.names);
        let wait = |waited: &Waited| {
            let last = waited.events.checked_sub(1)? as usize;
            let position = *trace.positions_of(waited.thread).get(last)? as usize;
            Some(FirstWait {
                site: waited.site.to_string(),
                at: waited.at,
                path: names.path(waited.thread),
                events: waited.events,
                schedule: Schedule::leading_to(Some(waited.thread), trace, position + 1, names),
            })
        };
        for waited in driver.machine.waited().iter().skip(self.known.len()) {
            let wait = wait(waited);
            self.looks.extend(wait.clone().filter(FirstWait::is_look));
            self.known.push(wait);
        }
    }
}
