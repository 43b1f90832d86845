//! Which execution has the same failure with fewer old values, and does the failure hang on one of
//! them?
//!
//! A reader follows an execution in which each thread sees what came before; every old value needs
//! an explanation. Candidates are: the same stores and reads in another order, in which fewer of
//! them are old; and executions in which one old event has the newest outcome instead. An outcome
//! that C11 does not allow ends a replay as a misfit, so that no such execution is shown.

use crate::diagnose::minimize::{Looks, Probe, same};
use crate::rt::engine::replay::Replay;
use crate::rt::event::Trace;
use crate::rt::event::id::Names;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::Pair;
use crate::rt::exec::run::Found;
use crate::rt::object::orders::Place;
use crate::rt::report::old_values::{OldValues, old_events};

/// The most executions that are tried for a failure.
const TRIES_MAX: usize = 64;

impl Probe<'_> {
    /// Returns the same failure with fewer old values, if there is such an execution.
    pub(crate) fn fewer_old_values(&mut self, found: &Found) -> Option<Box<Found>> {
        let mut best: Option<Box<Found>> = None;
        let mut left = TRIES_MAX;
        loop {
            let now = best.as_deref().unwrap_or(found);
            let old = old_events(&now.driver.trace);
            let fewer = candidates(now).into_iter().find_map(|schedule| {
                left = left.checked_sub(1).filter(|_| !self.budget.is_spent())?;
                let other = self.fails(Box::new(Replay::new(schedule)), 1, Looks::default())?;
                let is_better = old_events(&other.driver.trace) < old && same(now, &other);
                is_better.then_some(other)
            });
            match fewer {
                Some(fewer) => best = Some(fewer),
                None => return best,
            }
        }
    }

    /// Returns an old event with which, with its newest outcome, the test passes; the last one that
    /// does so. `None` if no event is old.
    pub(crate) fn old_pair(&mut self, found: &Found) -> Option<Pair> {
        let trace = &found.driver.trace;
        let stores = OldValues::of(trace);
        let old: Vec<usize> = stores.old().collect();
        old.into_iter().rev().find_map(|position| {
            let newer = *stores.old_at(position)?.newer.first()?;
            let reversed = with_newest(trace, &found.driver.machine.names, position, position + 1);
            self.passes_within_budget(&reversed)?;
            Some(Pair {
                first: newer as u32,
                second: Ok(position as u32),
                reversed,
                lost: None,
                is_old: true,
            })
        })
    }
}

/// The schedules that may lead to the same failure with fewer old values.
fn candidates(found: &Found) -> Vec<Schedule> {
    let trace = &found.driver.trace;
    let names = &found.driver.machine.names;
    let stores = OldValues::of(trace);
    let reordered = stores.freshest(trace).map(|order| {
        let steps = order.into_iter().map(|(position, alternative)| {
            (names.path(trace.events()[position].thread), alternative)
        });
        steps.collect()
    });
    let newest = stores.old().flat_map(|position| {
        [trace.len(), position + 1].map(|until| with_newest(trace, names, position, until))
    });
    reordered.into_iter().chain(newest).collect()
}

/// The schedule of the first `until` events, in which the event at `position` has its newest
/// outcome.
fn with_newest(trace: &Trace, names: &Names, position: usize, until: usize) -> Schedule {
    let events = trace.events()[..until].iter().enumerate();
    let steps = events.map(|(at, event)| {
        let alternative = match at == position {
            true => Place {
                newer: 0,
                ..Place::of(event.alternative)
            }
            .alternative(),
            false => event.alternative,
        };
        (names.path(event.thread), alternative)
    });
    steps.collect()
}
