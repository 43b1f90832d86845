//! Which execution fails like another one, and is easier to read?
//!
//! What the failure depends on alone, in the order with the fewest switches; the simplest of what a
//! short search over executions with few preemptions finds; and whatever fails with two turns of a
//! thread made one.

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

/// The most preemptions of the executions that are searched for a simpler one.
const PREEMPTIONS_MAX: usize = 2;

/// The most executions with a failure of which the simplest is shown.
const FAILURES_MAX: usize = 32;

impl Probe<'_> {
    /// The same failure by what it depends on only, in the order with the fewest switches.
    pub(crate) fn reorder(&mut self, found: &mut Found) -> Option<Box<Found>> {
        let (_, schedule) = fewest(found)?;
        let again = self.fails(Box::new(Replay::new(schedule)), 1, Looks::default())?;
        (same(found, &again) && simpler(&again, found)).then_some(again)
    }

    /// A simpler execution with the same failure: the simplest one of those with few preemptions,
    /// as far as these are searched.
    pub(crate) fn searched(&mut self, found: &mut Found) -> Option<Box<Found>> {
        let explorer = Box::new(Bounded::new(Price::Preemptions, PREEMPTIONS_MAX).early());
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
            // A test that does something else each time has nothing that could be searched. One
            // that failed where the execution before went on leaves no trace to go on from, either.
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

    /// [`Probe::searched`] where loops without a hint wait after a few rounds, if one has waited
    /// here after a thousand, which nobody wants to read. What such a loop would do if it gave up
    /// by itself is not asked: what is found fails, whether it is all or not. From then on the
    /// closure is run in this way, because only so what was found comes again.
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

    /// The same failure with fewer switches, of which it has more than are searched for: as long as
    /// one is found, two turns of a thread are made one.
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

/// What of an execution that failed its failure depends on, in the order with the fewest switches,
/// and what that costs. `None` if that cannot be told.
fn fewest(found: &mut Found) -> Option<(Cost, Schedule)> {
    let driver = &mut found.driver;
    driver.compute_clocks();
    let (trace, clocks) = (&driver.trace, &driver.clocks);
    // Waits that were let go depend on everything.
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
    let cost = (switches(threads), order.len(), began.len());
    Some((cost, schedule(&order, &began, driver)))
}

/// How hard an execution is to read: its switches, then its events, then the threads that begin
/// before their first steps.
type Cost = (usize, usize, usize);

fn cost(found: &Found) -> Cost {
    let trace = &found.driver.trace;
    let events = trace.events();
    let threads = events.iter().map(|event| event.thread);
    (switches(threads), events.len(), trace.begun_early().count())
}

fn switches(threads: impl Iterator<Item = ThreadId> + Clone) -> usize {
    let next = threads.clone().skip(1);
    threads.zip(next).filter(|(one, next)| one != next).count()
}

/// Whether one execution is easier to read than the other.
fn simpler(one: &Found, other: &Found) -> bool {
    cost(one) < cost(other)
}
