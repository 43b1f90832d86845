//! Which execution has the same failure and is easier to read?
//!
//! Candidates are: only the events that the failure depends on, in the order with the fewest
//! switches; the simplest execution that a short search over executions with few preemptions finds;
//! and executions in which two turns of a thread are merged.

use crate::diagnose::minimize::{Looks, Probe, begin_with_spawns, leads_to, same, schedule};
use crate::diagnose::reproduce::may_come_again;
use crate::rt::engine::linearise::{fewest_switches, past};
use crate::rt::engine::price::Price;
use crate::rt::engine::replay::Replay;
use crate::rt::engine::strategies::bound::Bounded;
use crate::rt::engine::turns::{Turns, preemptions};
use crate::rt::event::id::ThreadId;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::End;
use crate::rt::exec::run::{Explored, Found};
use crate::rt::object::machine::Hintless;
use crate::rt::report::old_values::{OldValues, old_events};

/// The most preemptions of an execution in the search for a simpler one.
const PREEMPTIONS_MAX: usize = 2;

/// The most failing executions from which the simplest is chosen.
const FAILURES_MAX: usize = 32;

impl Probe<'_> {
    /// Returns the same failure with only the events that it depends on, in the order with the
    /// fewest switches.
    pub(crate) fn reorder(&mut self, found: &mut Found) -> Option<Box<Found>> {
        let (_, schedule) = fewest(found)?;
        let again = self.fails(Box::new(Replay::new(schedule)), 1, Looks::default())?;
        (same(found, &again) && simpler(&again, found)).then_some(again)
    }

    /// Returns a simpler execution with the same failure: the simplest execution with few
    /// preemptions, as far as the search goes.
    pub(crate) fn searched(&mut self, found: &mut Found) -> Option<Box<Found>> {
        // An execution that needs more preemptions than this one has switches is not simpler: it
        // has more switches, and what it depends on was searched with fewer preemptions.
        let (_, switches, ..) = cost(found);
        let explorer = Bounded::new(Price::Preemptions, PREEMPTIONS_MAX.min(switches));
        let explorer = Box::new(explorer.early());
        let mut driver = self.driver(explorer);
        let most = self.settings.simplify;
        let mut best: Option<(Cost, [Schedule; 2])> = None;
        for _ in 0..FAILURES_MAX {
            if self.budget.is_spent() {
                break;
            }
            let (Explored::Failed(mut other), _) = self.goes_on(driver, most, Looks::default())
            else {
                break;
            };
            if same(found, &other) {
                let as_found = leads_to(&other);
                let (cost, schedule) = match fewest(&mut other) {
                    Some((cost, schedule)) => (cost, schedule),
                    None => (cost(&other), as_found.clone()),
                };
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, [schedule, as_found]));
                }
            }
            let Found {
                end, driver: rest, ..
            } = *other;
            driver = rest;
            // A test that is not deterministic gives the search nothing to work with. And an
            // execution that failed within the common prefix, where the execution before it
            // continued, leaves no trace from which the search could continue.
            if !may_come_again(&end) || driver.failed_in_the_prefix() {
                break;
            }
            driver.finish(&end);
        }
        let (_, schedules) = best?;
        schedules.into_iter().find_map(|schedule| {
            let other = self.fails(Box::new(Replay::new(schedule)), 1, Looks::default())?;
            (same(found, &other) && simpler(&other, found)).then_some(other)
        })
    }

    /// [`Probe::searched`] with loops without a hint that wait after a few rounds, if one of them
    /// has waited after a thousand rounds in this execution; such an execution is too long to read.
    /// It does not matter here whether a loop would give up by itself: the result is a failure,
    /// even if the search is not complete. After a success the closure always runs in this way,
    /// because only so the failure recurs.
    pub(crate) fn fail_earlier(&mut self, found: &mut Found) -> Option<Box<Found>> {
        if !found.driver.machine.has_waited_late() {
            return None;
        }
        let before = std::mem::replace(&mut self.learnt.hintless, Hintless::Soon);
        let better = self.searched(found);
        if better.is_none() {
            self.learnt.hintless = before;
        }
        better
    }

    /// Returns the same failure with fewer switches, if it has more preemptions than the search
    /// covers. As long as that keeps the failure, two turns of a thread are merged into one.
    pub(crate) fn merge_turns(&mut self, found: &mut Found) -> Option<Box<Found>> {
        let mut best: Option<Box<Found>> = None;
        let mut left = self.settings.simplify;
        loop {
            let now = best.as_deref_mut().unwrap_or(found);
            now.driver.compute_clocks();
            let (trace, clocks) = (&now.driver.trace, &now.driver.clocks);
            if preemptions(trace, clocks) <= PREEMPTIONS_MAX || self.budget.is_spent() {
                break;
            }
            let turns = Turns::of(trace, &now.driver.machine.names);
            let smoother = turns.merged().take(left as usize).find_map(|order| {
                if self.budget.is_spent() {
                    return None;
                }
                left -= 1;
                let other = self.fails(Box::new(Replay::along(order)), 1, Looks::default())?;
                (same(now, &other) && simpler(&other, now)).then_some(other)
            });
            match smoother {
                Some(smoother) => best = Some(smoother),
                None => break,
            }
        }
        let mut best = best?;
        Some(self.reorder(&mut best).unwrap_or(best))
    }
}

/// Returns the events that the failure depends on, in the order with the fewest switches, and the
/// cost of that order. `None` if these events cannot be determined.
fn fewest(found: &mut Found) -> Option<(Cost, Schedule)> {
    let driver = &mut found.driver;
    driver.compute_clocks();
    let (trace, clocks) = (&driver.trace, &driver.clocks);
    // The release of a waiting thread at quiescence depends on every event.
    if trace.events().iter().any(|e| e.outcome.is_released()) {
        return None;
    }
    let all = |thread: ThreadId| (thread, trace.positions_of(thread).len() as u32);
    let mut depends_on: Vec<(ThreadId, u32)> = match &found.end {
        End::Panicked { thread, .. } => vec![all(*thread)],
        End::DataRace(race) => [race.first, race.second]
            .map(|access| (access.thread, access.through()))
            .to_vec(),
        _ => (0..trace.threads() as u32)
            .map(|t| all(ThreadId(t)))
            .collect(),
    };
    let began = begin_with_spawns(trace, &mut depends_on);
    let counts = past(trace, clocks, &depends_on);
    let order = fewest_switches(trace, clocks, &counts)?;
    let threads = order.iter().map(|&at| trace.at(at).thread);
    let stores = OldValues::of(trace);
    let old = (order.iter()).filter(|&&at| stores.old_at(at as usize).is_some());
    let cost = (old.count(), switches(threads), order.len(), began.len());
    Some((cost, schedule(&order, &began, driver)))
}

/// How hard an execution is to read: its old values, then its switches, then its events, then the
/// threads that begin before their first steps.
type Cost = (usize, usize, usize, usize);

fn cost(found: &Found) -> Cost {
    let trace = &found.driver.trace;
    let events = trace.events();
    let threads = events.iter().map(|event| event.thread);
    (
        old_events(trace),
        switches(threads),
        events.len(),
        trace.begun_early().count(),
    )
}

fn switches(threads: impl Iterator<Item = ThreadId> + Clone) -> usize {
    let next = threads.clone().skip(1);
    threads.zip(next).filter(|(one, next)| one != next).count()
}

/// Whether one execution is easier to read than the other.
fn simpler(one: &Found, other: &Found) -> bool {
    cost(one) < cost(other)
}
