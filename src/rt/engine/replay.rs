//! How does an execution follow one schedule, and what if the program has changed?

use crate::rt::event::operation::Step;
use crate::rt::event::schedule::{Cursor, Schedule};
use crate::rt::plural::counted;

use crate::rt::engine::plan::Plan;
use crate::rt::engine::{Choice, Coverage, Execution, Explorer, Point};

/// The explorer of one execution, in which the policy `way` chooses the steps.
pub(crate) struct Replay<W> {
    way: W,
    started: bool,
}

/// A policy that chooses the steps of an execution that runs once.
pub(crate) trait ReplayPolicy {
    fn choose(&mut self, at: &Point<'_>) -> Choice;
    /// The same as [`Explorer::misfit_at_the_end`].
    fn misfit_at_the_end(&self) -> Option<String> {
        None
    }
}

/// One schedule, step by step; beyond its end threads continue in the default order.
pub(crate) struct Steps {
    schedule: Schedule,
    /// The current position in the schedule, and the number of events at that time.
    at: Cursor,
    events: usize,
    /// If the schedule counts fences as steps: the number of fences at that time, and the paths of
    /// the threads that have made a fence which is their next step in the schedule.
    fences: usize,
    fenced: Vec<String>,
}

impl Replay<Steps> {
    /// Follows this schedule.
    pub(crate) fn new(schedule: Schedule) -> Replay<Steps> {
        Replay::along(Steps::of(schedule))
    }
}

impl Steps {
    pub(crate) fn of(schedule: Schedule) -> Steps {
        Steps {
            schedule,
            at: Cursor::default(),
            events: 0,
            fences: 0,
            fenced: Vec::new(),
        }
    }

    /// The path of the thread that makes the next step.
    pub(crate) fn next_path(&mut self, at: &Point<'_>) -> Option<&str> {
        self.catch_up(at);
        self.schedule.step(self.at).map(|(path, _)| path)
    }

    /// Excludes the next event, which does not belong to the schedule.
    pub(crate) fn make_way(&mut self) {
        self.events += 1;
    }

    /// Whether all steps of the schedule have been made.
    pub(crate) fn is_over(&mut self, at: &Point<'_>) -> bool {
        self.catch_up(at);
        self.schedule.step(self.at).is_none()
    }

    /// Advances in the schedule up to the current event.
    fn catch_up(&mut self, at: &Point<'_>) {
        for _ in self.events..at.trace.len() {
            if self.schedule.step(self.at).is_none() {
                break;
            }
            self.at = self.schedule.behind(self.at);
        }
        self.events = at.trace.len();
        if self.schedule.counts_fences() {
            self.leave_out_fences(at);
        }
    }

    /// Skips the steps that are fences: each was made together with the code behind its thread's
    /// previous step.
    fn leave_out_fences(&mut self, at: &Point<'_>) {
        let new = at.trace.fences().get(self.fences..).unwrap_or_default();
        self.fences += new.len();
        let paths = new.iter().map(|fence| at.machine.names.path(fence.thread));
        self.fenced.extend(paths);
        while self.schedule.beginning(self.at).is_none()
            && let Some((path, _)) = self.schedule.step(self.at)
            && let Some(fence) = self.fenced.iter().position(|fenced| fenced == path)
        {
            self.fenced.swap_remove(fence);
            self.at = self.schedule.behind(self.at);
        }
    }
}

impl<W: ReplayPolicy> Replay<W> {
    pub(crate) fn along(way: W) -> Replay<W> {
        Replay {
            way,
            started: false,
        }
    }
}

impl ReplayPolicy for Steps {
    fn choose(&mut self, at: &Point<'_>) -> Choice {
        self.catch_up(at);
        if !at.machine.live().iter().any(|&thread| at.is_able(thread)) {
            return Choice::NothingEnabled;
        }
        while let Some(path) = self.schedule.beginning(self.at) {
            let thread = at.machine.names.find(path);
            let Some(thread) = thread.filter(|thread| at.machine.live().contains(thread)) else {
                return self.asks_for(&format!("the beginning of {path}, which is not there"));
            };
            self.at = self.schedule.behind(self.at);
            if at.machine.is_to_begin(thread) {
                return Choice::Run(Step::of(thread));
            }
        }
        let Some((path, alternative)) = self.schedule.step(self.at) else {
            return at.go_on();
        };
        let thread = at.machine.names.find(path);
        if let Some(thread) = thread.filter(|&thread| at.machine.is_to_begin(thread)) {
            // The thread's step is still to come.
            return Choice::Run(Step::of(thread));
        }
        if let Some(child) = thread.and_then(|thread| at.machine.joins_unbegun(thread)) {
            // A thread without events can be joined once it has begun; its beginning is its end,
            // too.
            return Choice::Run(Step::of(child));
        }
        let of = |thread| Step {
            thread,
            alternative,
        };
        match thread.filter(|&thread| at.is_able(thread)) {
            Some(thread) if at.is_possible(of(thread)) => {
                let step = of(thread);
                match alternative {
                    // A fence, which is a step of the schedule, may come behind each step.
                    _ if self.schedule.counts_fences() => Choice::Run(step),
                    0 => Choice::RunOn(step, self.schedule.further(self.at)),
                    _ => Choice::Run(step),
                }
            }
            Some(_) if at.weak.is_some() => self.asks_for(&format!(
                "outcome {alternative} of {path}, which C11 does not allow here"
            )),
            Some(thread) => self.asks_for(&format!(
                "outcome {alternative} of {path}, whose operation has {} here",
                counted(at.machine.alternatives(thread).into(), "outcome")
            )),
            None => {
                let enabled = at.enabled().map(|t| at.machine.names.path(t));
                let enabled = enabled.collect::<Vec<String>>().join(", ");
                self.asks_for(&format!(
                    "a step of {path}, but only {enabled} can go on here"
                ))
            }
        }
    }

    fn misfit_at_the_end(&self) -> Option<String> {
        match self.schedule.length().saturating_sub(self.at.position) {
            0 => None,
            left => Some(format!(
                "it goes on for {} after the end of the execution",
                counted(left, "step")
            )),
        }
    }
}

impl Steps {
    /// The misfit: the schedule asks for a step that cannot happen here. Steps are counted from 1,
    /// as events are.
    fn asks_for(&self, what: &str) -> Choice {
        Choice::Stale {
            misfit: format!("at step {} it asks for {what}", self.at.position + 1),
        }
    }
}

impl<W: ReplayPolicy> Explorer for Replay<W> {
    fn begin(&mut self, _plan: &mut Plan) -> bool {
        !std::mem::replace(&mut self.started, true)
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        self.way.choose(at)
    }

    fn misfit_at_the_end(&self) -> Option<String> {
        self.way.misfit_at_the_end()
    }

    fn asks_for_clocks(&self) -> bool {
        false
    }

    fn finish(&mut self, _execution: &Execution<'_>) {}

    fn more(&self) -> bool {
        !self.started
    }

    fn explores(&self) -> bool {
        false
    }

    fn coverage(&self) -> Coverage {
        Coverage::Replayed
    }
}
