//! The places where loops waited for a change for the first time.
//!
//! For each place the schedule that leads to it is kept. From there a solo run shows whether the
//! loop gives up by itself (`bounded_loop.rs`): for loops without a hint at once; for the other
//! loops at the end of the exploration, or at once if they are to be explored as one step.

use crate::rt::event::schedule::Schedule;
use crate::rt::exec::run::Between;
use crate::rt::object::machine::{Waited, WaitsAt};

/// The first wait at a hint, at a timed wait, or in a loop without a hint.
#[derive(Clone, Debug)]
pub(crate) struct FirstWait {
    /// The place of the wait. Text, because a resumed exploration has no more than the text.
    pub(crate) site: String,
    pub(crate) at: WaitsAt,
    /// The thread that waits, as its path in the tree of spawns.
    pub(crate) path: String,
    /// Number of events of the thread before the wait.
    pub(crate) events: u32,
    /// The schedule that leads to the wait.
    pub(crate) schedule: Schedule,
    /// Whether the loop is known not to give up by itself. A resumed exploration does not know it.
    pub(crate) stays: bool,
}

/// The names of the kinds of waits in a file.
const CALLED: [(WaitsAt, &str); 4] = [
    (WaitsAt::Hint, "hint"),
    (WaitsAt::Cycle, "cycle"),
    (WaitsAt::Timed, "timed"),
    (WaitsAt::Look, "look"),
];

impl FirstWait {
    /// Formats the wait as a line of a file.
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

    /// Parses such a line.
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

    /// Whether both are the same wait, or waits at the same hint.
    pub(crate) fn is_like(&self, other: &FirstWait) -> bool {
        (self.at, &self.site) == (other.at, &other.site)
            && (!self.is_look() || (&self.path, self.events) == (&other.path, other.events))
    }

    /// Whether the wait is in a loop without a hint.
    pub(crate) fn is_look(&self) -> bool {
        self.at == WaitsAt::Look
    }
}

/// The first waits of an exploration.
#[derive(Debug, Default)]
pub(crate) struct FirstWaits {
    /// First waits from before the exploration was resumed.
    earlier: Vec<FirstWait>,
    /// First waits since then, as many as the machine knows. An element is `None` if no event
    /// precedes its wait.
    known: Vec<Option<FirstWait>>,
    /// First waits of loops for which it must still be found out whether they give up by
    /// themselves.
    asked: Vec<FirstWait>,
    /// Whether that must be found out for loops with a hint, too.
    hints_are_asked: bool,
}

impl FirstWaits {
    /// Creates an empty set. `hints_are_asked` says whether it must be found out at once whether
    /// loops with a hint give up by themselves.
    pub(crate) fn new(hints_are_asked: bool) -> FirstWaits {
        FirstWaits {
            hints_are_asked,
            ..FirstWaits::default()
        }
    }

    /// Creates the set of a resumed exploration, in which these waits are known.
    pub(crate) fn taken_up(earlier: Vec<FirstWait>, hints_are_asked: bool) -> FirstWaits {
        let mut waits = FirstWaits::new(hints_are_asked);
        waits.ask(&earlier);
        waits.earlier = earlier;
        waits
    }

    /// Creates the set of an exploration of which others have explored a part, with these waits,
    /// and have found out all that must be known about them.
    pub(crate) fn asked_before(earlier: Vec<FirstWait>, hints_are_asked: bool) -> FirstWaits {
        FirstWaits {
            earlier,
            ..FirstWaits::new(hints_are_asked)
        }
    }

    /// Number of first waits of this exploration.
    pub(crate) fn count(&self) -> usize {
        self.known.len()
    }

    /// Forgets all but this number of them.
    pub(crate) fn forget_from(&mut self, count: usize) {
        self.known.truncate(count);
        self.asked.clear();
    }

    /// Adds those of these waits for which it must be found out whether their loops give up.
    fn ask(&mut self, waits: &[FirstWait]) {
        let hints = self.hints_are_asked;
        let is_asked = |wait: &&FirstWait| match wait.at {
            WaitsAt::Look => true,
            WaitsAt::Hint => hints,
            WaitsAt::Cycle | WaitsAt::Timed => false,
        };
        self.asked.extend(waits.iter().filter(is_asked).cloned());
    }

    /// Whether no loop has waited.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.earlier.is_empty() && self.known.is_empty()
    }

    /// Returns all first waits, one for each hint.
    pub(crate) fn all(&self) -> Vec<FirstWait> {
        let mut all = self.earlier.clone();
        for wait in self.known.iter().flatten() {
            if !self.earlier.iter().any(|it| it.is_like(wait)) {
                all.push(wait.clone());
            }
        }
        all
    }

    /// Returns the place of the first wait at a hint.
    pub(crate) fn first_hint(&self) -> Option<&str> {
        let mut all = self.earlier.iter().chain(self.known.iter().flatten());
        let first = all.find(|wait| wait.at == WaitsAt::Hint);
        first.map(|wait| wait.site.as_str())
    }

    /// Whether there are waits for which it must be found out whether their loops give up.
    #[inline]
    pub(crate) fn are_to_be_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Takes the waits for which that must be found out.
    pub(crate) fn take_asked(&mut self) -> Vec<FirstWait> {
        std::mem::take(&mut self.asked)
    }

    /// Notes the first waits of the execution that has ended.
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
