//! What if the space is too large to explore, and executions are drawn at random?
//!
//! A [`Sampler`] runs a number of independent executions. One of three strategies draws the thread
//! of each step:
//!
//! * [`Walk`]: uniformly among the enabled threads. Simple, and bad at bugs for which one thread
//!   must be delayed for long.
//! * [`Pct`](crate::rt::engine::strategies::pct::Pct): random priorities that change at a few
//!   random moments, with a guaranteed chance to hit a bug of a given depth.
//! * [`Pos`](crate::rt::engine::strategies::pos::Pos): random priorities for pending events, drawn
//!   anew for the events that race with the executed one, so that each order of racing events has a
//!   fair chance.
//!
//! Most steps do not change the set of enabled threads ([`Able`]). So the sampler can compute in
//! advance how often the drawn thread will be drawn again, and the thread makes that many steps
//! without a call of the explorer. The drawn threads and the random numbers are the same as with a
//! call for each step.
//!
//! Outcomes of choices are drawn uniformly. The n-th execution depends on the seed and n only (and,
//! under PCT, on the length of the ones before), so a seed replays the exploration; a failing
//! execution also has its schedule, which replays it alone.

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::Step;

use crate::rt::engine::enabled_set::{Able, leaves_the_others};
use crate::rt::engine::plan::Plan;
use crate::rt::engine::rng::Rng;
use crate::rt::engine::{Choice, Coverage, Execution, Explorer, Point};

/// A way to draw threads.
pub(crate) trait Strategy {
    /// Another execution begins.
    fn begin(&mut self, _rng: &mut Rng) {}
    /// Picks one of the enabled threads, if there are any.
    fn pick(&mut self, at: &Point<'_>, able: &[ThreadId], rng: &mut Rng) -> Option<ThreadId>;
    /// How many times in a row `thread`, which was picked, is picked again if the set of enabled
    /// threads stays the same.
    fn further(&self, _thread: ThreadId, _able: &[ThreadId], _rng: &Rng) -> usize {
        0
    }
    /// The thread has been picked again this many times.
    fn pass(&mut self, _times: u64, _able: &[ThreadId], _rng: &mut Rng) {}
    /// The execution is over.
    fn finish(&mut self) {}
}

/// Any thread, each with the same chance.
pub(crate) struct Walk;

impl Strategy for Walk {
    #[inline]
    fn pick(&mut self, _at: &Point<'_>, able: &[ThreadId], rng: &mut Rng) -> Option<ThreadId> {
        if able.is_empty() {
            return None;
        }
        Some(able[rng.below(able.len() as u64) as usize])
    }

    #[inline]
    fn further(&self, thread: ThreadId, able: &[ThreadId], rng: &Rng) -> usize {
        if able.len() == 1 {
            return usize::MAX;
        }
        let draw = |rng: &Rng| able[rng.foresee(able.len() as u64) as usize];
        // Mostly the next draw is another thread.
        if draw(rng) != thread {
            return 0;
        }
        let mut ahead = rng.clone();
        let mut times = 0;
        while draw(&ahead) == thread {
            ahead.skip(1);
            times += 1;
        }
        times
    }

    #[inline]
    fn pass(&mut self, times: u64, _able: &[ThreadId], rng: &mut Rng) {
        rng.skip(times);
    }
}

/// The explorer that draws executions at random.
pub(crate) struct Sampler<S> {
    strategy: S,
    seed: u64,
    /// The number of executions to draw, and the number that have begun.
    iterations: u64,
    begun: u64,
    rng: Rng,
    able: Able,
    /// The number of the last step of the execution that the explorer was asked for, and the number
    /// of steps behind it for which its thread was drawn, too.
    asked: usize,
    further: usize,
}

impl<S: Strategy> Sampler<S> {
    pub(crate) fn new(strategy: S, seed: u64, iterations: u64) -> Sampler<S> {
        Sampler {
            strategy,
            seed,
            iterations,
            begun: 0,
            rng: Rng::new(seed, 0),
            able: Able::default(),
            asked: 0,
            further: 0,
        }
    }

    /// The step of `thread`, which is drawn, and the number of steps behind it for which the thread
    /// would be drawn too, if each but the last of them leaves the other threads as they are.
    #[inline]
    fn run(&mut self, at: &Point<'_>, thread: ThreadId) -> Choice {
        if let Some(weak) = at.weak {
            // Under C11 each outcome has the same chance.
            let mut weak = weak.borrow_mut();
            let all = weak.alternatives(at.machine, at.trace, thread);
            let alternative = match all.len() {
                0 => 0,
                several => all[self.rng.below(several as u64) as usize],
            };
            return Choice::Run(Step {
                thread,
                alternative,
            });
        }
        let next = at.machine.pending(thread);
        let known = next.is_some_and(|next| leaves_the_others(&next.operation.kind));
        // Such a step has one outcome, unless it may fail spuriously.
        if !known || at.machine.limits.spurious_failures {
            let alternative = match at.machine.alternatives(thread) {
                1 => 0,
                several => self.rng.below(u64::from(several)) as u32,
            };
            let step = Step {
                thread,
                alternative,
            };
            return Choice::Run(step);
        }
        let further = match self.able.lasting() {
            Some(able) => self.strategy.further(thread, able, &self.rng),
            None => 0,
        };
        self.further = further;
        Choice::RunOn(Step::of(thread), further)
    }

    /// Catches up with the steps since the last call: the explorer is called again after this many
    /// events. The steps in between count as drawn, except the end of a thread, which happens
    /// without a draw.
    #[inline]
    fn catch_up(&mut self, events: usize) {
        if events < self.asked {
            // The thread that was drawn has begun, and not made its first step.
            self.able.forget();
        }
        let drawn = events.saturating_sub(self.asked).min(self.further);
        (self.asked, self.further) = (events + 1, 0);
        (self.strategy).pass(drawn as u64, self.able.threads(), &mut self.rng);
    }
}

impl<S: Strategy> Explorer for Sampler<S> {
    fn begin(&mut self, _plan: &mut Plan) -> bool {
        if self.begun == self.iterations {
            return false;
        }
        self.begun += 1;
        self.rng = Rng::new(self.seed, self.begun);
        self.able.forget();
        (self.asked, self.further) = (0, 0);
        self.strategy.begin(&mut self.rng);
        true
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        self.catch_up(at.trace.len());
        if at.fixed {
            self.able.forget();
            return at.go_on();
        }
        self.able.update(at);
        match (self.strategy).pick(at, self.able.threads(), &mut self.rng) {
            Some(thread) => self.run(at, thread),
            None => {
                self.able.forget();
                Choice::NothingEnabled
            }
        }
    }

    fn asks_for_clocks(&self) -> bool {
        false
    }

    fn finish(&mut self, execution: &Execution<'_>) {
        self.catch_up(execution.trace.len());
        self.strategy.finish();
    }

    fn more(&self) -> bool {
        self.begun < self.iterations
    }

    fn coverage(&self) -> Coverage {
        Coverage::Sampled
    }
}

/// The thread with the highest priority.
pub(crate) fn highest(able: &[ThreadId], priorities: &[u64]) -> Option<ThreadId> {
    let able = able.iter().copied();
    able.max_by_key(|thread| priorities[thread.index()])
}
