//! Where did loops wait for a change for the first time?
//!
//! What leads to each such place is kept, because it is asked there whether the loop gives up by
//! itself (`gives_up.rs`): of loops without a hint at once, of the others in the end, or at once,
//! too, if they are to be taken for one step.

use crate::rt::event::schedule::Schedule;
use crate::rt::exec::run::Between;
use crate::rt::object::machine::{Waited, WaitsAt};

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
    /// Whether its loop is known not to give up by itself. An exploration that is taken up does not
    /// know it any more.
    pub(crate) stays: bool,
}

/// What they are called in a file.
const CALLED: [(WaitsAt, &str); 4] = [
    (WaitsAt::Hint, "hint"),
    (WaitsAt::Cycle, "cycle"),
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
            stays: _,
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
            stays: false,
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
    /// Those of which it is not known yet whether their loops give up, and has to be.
    asked: Vec<FirstWait>,
    /// Whether that has to be known of loops with a hint.
    hints_are_asked: bool,
}

impl FirstWaits {
    /// None; `hints_are_asked` says whether it has to be known at once of loops with a hint whether
    /// they give up.
    pub(crate) fn new(hints_are_asked: bool) -> FirstWaits {
        FirstWaits {
            hints_are_asked,
            ..FirstWaits::default()
        }
    }

    /// Those of an exploration that is taken up, of which these are known.
    pub(crate) fn taken_up(earlier: Vec<FirstWait>, hints_are_asked: bool) -> FirstWaits {
        let mut waits = FirstWaits::new(hints_are_asked);
        waits.ask(&earlier);
        waits.earlier = earlier;
        waits
    }

    /// Has it asked of these whether their loops give up, if that has to be known.
    fn ask(&mut self, waits: &[FirstWait]) {
        let hints = self.hints_are_asked;
        let is_asked = |wait: &&FirstWait| match wait.at {
            WaitsAt::Look => true,
            WaitsAt::Hint => hints,
            WaitsAt::Cycle | WaitsAt::Timed => false,
        };
        self.asked.extend(waits.iter().filter(is_asked).cloned());
    }

    /// Whether there are none.
    #[inline]
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

    /// The place of the first one at a hint.
    pub(crate) fn first_hint(&self) -> Option<&str> {
        let mut all = self.earlier.iter().chain(self.known.iter().flatten());
        let first = all.find(|wait| wait.at == WaitsAt::Hint);
        first.map(|wait| wait.site.as_str())
    }

    /// Whether there are some of which it has to be asked whether their loops give up.
    #[inline]
    pub(crate) fn are_to_be_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Those of which that has to be asked, for who asks.
    pub(crate) fn take_asked(&mut self) -> Vec<FirstWait> {
        std::mem::take(&mut self.asked)
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
                stays: waited.stays,
            })
        };
        for waited in driver.machine.waited().iter().skip(self.known.len()) {
            let wait = wait(waited);
            self.ask(wait.as_slice());
            self.known.push(wait);
        }
    }
}
