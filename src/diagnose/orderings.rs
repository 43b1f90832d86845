//! Does a data race depend on the memory orderings that are too weak?
//!
//! If in an execution one thread has read the write of another, it is known which orderings would
//! have put the two accesses in order. That does not help if the thread accesses the memory
//! regardless of the value that it reads: then it also does so if it reads before the write, and
//! the accesses race there as well. So the explorer tries that order, and shows the race without
//! such a pair instead. The remaining pairs are those with a value that the thread depends on.

use crate::diagnose::minimize::{Looks, Probe, same};
use crate::rt::engine::critical::candidates;
use crate::rt::engine::replay::Replay;
use crate::rt::event::fence::Past;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::{End, Weak};
use crate::rt::event::{Event, Trace};
use crate::rt::exec::run::Found;
use crate::rt::race::too_weak;

/// The most executions that are tried for a race.
const TRIES_MAX: usize = 16;

/// The most pairs of an execution that are examined for a pair that can be reversed.
const PAIRS_MAX: usize = 64;

/// Fills in the orderings that are too weak, if the failure is a data race.
pub(crate) fn suggest_orderings(end: &mut End, trace: &Trace) {
    if let End::DataRace(race) = end {
        let past = Past {
            events: trace.events(),
            fences: trace.fences(),
            parts: trace.parts(),
        };
        race.weak = too_weak(race, past);
    }
}

impl Probe<'_> {
    /// Returns the same race without a pair of operations that would order it if they were
    /// stronger, and on which it does not depend, if there is such an execution.
    pub(crate) fn without_needless_races(&mut self, found: &mut Found) -> Option<Box<Found>> {
        let mut best: Option<Box<Found>> = None;
        let mut left = TRIES_MAX;
        loop {
            let now = best.as_deref_mut().unwrap_or(found);
            match self.without_one(now, &mut left) {
                Some(other) => best = Some(other),
                None => return best,
            }
        }
    }

    fn without_one(&mut self, found: &mut Found, left: &mut usize) -> Option<Box<Found>> {
        let End::DataRace(race) = &found.end else {
            return None;
        };
        if race.weak.together {
            return None;
        }
        let needed = race.weak.pairs.clone();
        needed.iter().find_map(|weak| {
            reversals(found, weak).into_iter().find_map(|schedule| {
                *left = left.checked_sub(1).filter(|_| !self.budget.is_spent())?;
                let mut other = self.fails(Box::new(Replay::new(schedule)), 1, Looks::default())?;
                suggest_orderings(&mut other.end, &other.driver.trace);
                let is_there = match &other.end {
                    End::DataRace(race) => {
                        let mut pairs = race.weak.pairs.iter();
                        pairs.any(|it| it.is_by(&weak.writer, &weak.reader))
                    }
                    _ => true,
                };
                (!is_there && same(found, &other)).then_some(other)
            })
        })
    }
}

/// Returns the schedules that put the read of this pair before the write that it sees, and that end
/// there.
fn reversals(found: &mut Found, weak: &Weak) -> Vec<Schedule> {
    let end = found.end.clone();
    let pairs = found
        .driver
        .ended(&end, |run| candidates(run, run.trace.len(), PAIRS_MAX));
    let trace = &found.driver.trace;
    let is_reader =
        |event: &Event| (event.thread, event.index) == (weak.reader.thread, weak.reader.index);
    let pairs = pairs.into_iter().filter(|pair| {
        let second = pair.second.as_ref();
        second.is_ok_and(|&at| is_reader(trace.at(at)))
            && trace.at(pair.first).operation.object == weak.reader.operation.object
    });
    pairs.map(|pair| pair.reversed).collect()
}
