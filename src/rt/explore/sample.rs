//! What if the space is too large to explore, and executions are drawn by chance?
//!
//! A [`Sampler`] runs a number of executions that do not depend on each other. Who runs next is
//! decided by one of three strategies:
//!
//! * `Walk`: uniformly among the enabled threads. Simple, and bad at bugs that need one thread to be
//!   held back for long.
//! * [`Pct`]: random priorities that change at a few random moments, with a guaranteed chance to hit
//!   a bug of a given depth.
//! * [`Pos`]: random priorities for pending events, drawn anew for those that race with what was
//!   executed, so that each order of racing events has a fair chance.
//!
//! Outcomes of choices are drawn uniformly. The n-th execution depends on the seed and n only (and,
//! under PCT, on the length of the ones before), so a seed replays the exploration; a failing
//! execution also has its schedule, which replays it alone.

use crate::rt::trace::id::ThreadId;
use crate::rt::trace::operation::Step;

use super::driver::Plan;
use super::pct::Pct;
use super::pos::Pos;
use super::rng::Rng;
use super::{Choice, Coverage, Explorer, Finished, Point};

/// The explorer that draws executions by chance.
pub(crate) struct Sampler {
    strategy: Strategy,
    seed: u64,
    /// How many executions are drawn, and how many have begun.
    iterations: u64,
    begun: u64,
    rng: Rng,
    /// The threads that can go on, while one of them is drawn.
    enabled: Vec<ThreadId>,
}

/// How a thread is drawn.
pub(crate) enum Strategy {
    Walk,
    Pct(Pct),
    Pos(Pos),
}

impl Sampler {
    pub(crate) fn new(strategy: Strategy, seed: u64, iterations: u64) -> Sampler {
        Sampler {
            strategy,
            seed,
            iterations,
            begun: 0,
            rng: Rng::new(seed, 0),
            enabled: Vec::new(),
        }
    }
}

impl Explorer for Sampler {
    fn begin(&mut self, _plan: &mut Plan) -> bool {
        if self.begun == self.iterations {
            return false;
        }
        self.begun += 1;
        self.rng = Rng::new(self.seed, self.begun);
        match &mut self.strategy {
            Strategy::Walk => {}
            Strategy::Pct(pct) => pct.begin(&mut self.rng),
            Strategy::Pos(pos) => pos.begin(),
        }
        true
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        if at.fixed {
            return at.go_on();
        }
        let picked = match &mut self.strategy {
            Strategy::Walk => walk(at, &mut self.rng, &mut self.enabled),
            Strategy::Pct(pct) => pct.pick(at, &mut self.rng),
            Strategy::Pos(pos) => pos.pick(at, &mut self.rng),
        };
        let Some(thread) = picked else {
            return Choice::NothingEnabled;
        };
        let alternative = match at.machine.alternatives(thread) {
            1 => 0,
            several => self.rng.below(u64::from(several)) as u32,
        };
        Choice::Run(Step {
            thread,
            alternative,
        })
    }

    fn asks_for_clocks(&self) -> bool {
        false
    }

    fn finish(&mut self, _run: &Finished<'_>) {
        if let Strategy::Pct(pct) = &mut self.strategy {
            pct.finish();
        }
    }

    fn more(&self) -> bool {
        self.begun < self.iterations
    }

    fn coverage(&self) -> Coverage {
        Coverage::Sampled
    }
}

/// Any enabled thread, each with the same chance. They are written down, because what it takes to find out
/// whether one is enabled should be done once.
fn walk(at: &Point<'_>, rng: &mut Rng, enabled: &mut Vec<ThreadId>) -> Option<ThreadId> {
    enabled.clear();
    enabled.extend(at.enabled());
    if enabled.is_empty() {
        return None;
    }
    Some(enabled[rng.below(enabled.len() as u64) as usize])
}

/// The enabled thread with the highest priority.
pub(super) fn highest(at: &Point<'_>, priorities: &[u64]) -> Option<ThreadId> {
    at.enabled().max_by_key(|thread| priorities[thread.index()])
}
