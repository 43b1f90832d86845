//! How is every graph explored exactly once?
//!
//! Optimal-DPOR over outcomes: a step is a thread *and* the outcome of its operation. Each point of
//! the current execution has a sleep set and a wakeup tree, as under sequential consistency
//! (`rt/engine/strategies/optimal.rs`). Stores and loads are not ordered because they touch one
//! location: two steps conflict if one takes the outcome of the other away. So the search reverses
//! events, not pairs of events ([`reverse`]), and compares outcomes, not labels ([`plan`]).

mod ended;
mod needed;
mod plan;
mod reverse;
mod trap;

use super::graph::Graph;
use super::{Access, Decision, Interval, MemoryModel, Outcome};
use crate::rt::event::id::{ObjectId, ThreadId};
use ended::Ended;
use plan::Node;
pub(crate) use trap::Trap;

/// What a search needs to know of a program: what each thread does next, which depends on what its
/// events have read.
pub(crate) trait Program {
    /// The empty execution, with every object.
    fn begin(&self) -> Graph;
    /// The next operation of `thread`; `None` if it has come to its end.
    fn next(&self, graph: &Graph, thread: ThreadId) -> Option<Access>;
}

/// How steps are chosen behind a wakeup sequence. Any choice is right.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Free {
    /// The thread that ran last goes on, with the newest outcome.
    #[default]
    Last,
    /// Any thread, with the newest outcome.
    #[cfg(test)]
    Random(u64),
    /// Any thread, with any outcome.
    #[cfg(test)]
    Any(u64),
}

/// A step that is asleep, with what its thread is about to do.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Step {
    thread: ThreadId,
    access: Access,
    decision: Decision,
}

/// A point of the current execution.
#[derive(Clone, Debug, Default)]
struct Level {
    sleep: Vec<Step>,
    tree: Vec<Node>,
    /// The step that the execution made here, and its outcome.
    made: Option<(Step, Outcome)>,
}

/// What an exploration came to.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct Stats {
    pub(crate) executions: u64,
    /// How many sequences were candidates for a wakeup tree, and how many were planned.
    pub(crate) candidates: u64,
    pub(crate) planned: u64,
    /// How many steps all wakeup trees had at most.
    pub(crate) nodes: usize,
}

/// The search over the graphs of a program.
pub(crate) struct Search<'a, M, P> {
    program: &'a P,
    model: M,
    free: Free,
    levels: Vec<Level>,
    last: ThreadId,
    stats: Stats,
    /// How many steps all wakeup trees have.
    nodes: usize,
    /// The rule that a test leaves out.
    left_out: Option<Trap>,
}

impl<'a, M: MemoryModel + Clone, P: Program> Search<'a, M, P> {
    pub(crate) fn new(program: &'a P, model: M, free: Free) -> Search<'a, M, P> {
        Search {
            program,
            model,
            free,
            levels: vec![Level::default()],
            last: ThreadId(0),
            stats: Stats::default(),
            nodes: 0,
            left_out: None,
        }
    }

    /// Leaves a rule out.
    #[cfg(test)]
    pub(crate) fn leave_out(mut self, trap: Trap) -> Search<'a, M, P> {
        self.left_out = Some(trap);
        self
    }

    /// Whether a test leaves this rule out.
    #[inline(always)]
    fn lacks(&self, trap: Trap) -> bool {
        cfg!(test) && self.left_out == Some(trap)
    }

    /// Visits every graph, until `visit` says no.
    ///
    /// # Panics
    ///
    /// If a step is asleep where a wakeup sequence ends: then what follows has been explored.
    pub(crate) fn explore(mut self, mut visit: impl FnMut(&Graph) -> bool) -> Stats {
        loop {
            let kept = self.model.graph().len();
            let blocked = self.run();
            self.stats.executions += 1;
            if !visit(self.model.graph()) {
                return self.stats;
            }
            self.finish(blocked, kept);
            if !self.backtrack() {
                return self.stats;
            }
        }
    }

    /// Runs the execution to its end and says which threads are blocked.
    fn run(&mut self) -> Vec<(ThreadId, Access)> {
        loop {
            let depth = self.model.graph().len();
            let level = &mut self.levels[depth];
            let (step, outcome, children) = if level.tree.is_empty() {
                assert!(
                    level.sleep.is_empty(),
                    "dpor bug: a step is asleep at the end of a wakeup sequence"
                );
                let Some((thread, access, outcome)) = self.choose() else {
                    return self.blocked();
                };
                let decision = self.model.graph().decision(&access, outcome);
                let step = Step {
                    thread,
                    access,
                    decision,
                };
                (step, outcome, Vec::new())
            } else {
                let Node { step, children } = level.tree.remove(0);
                self.nodes -= 1;
                let outcome = self
                    .model
                    .available(step.thread, &step.access, &step.decision);
                let outcome = outcome.expect("dpor bug: what is planned is not possible");
                (step, outcome, children)
            };
            self.levels[depth].made = Some((step, outcome));
            self.last = step.thread;
            self.model.take(step.thread, &step.access, outcome);
            let mut sleep = std::mem::take(&mut self.levels[depth].sleep);
            let survivors = sleep.iter().copied().filter(|sleeper| {
                sleeper.thread != step.thread && is_available(&mut self.model, sleeper)
            });
            let survivors = survivors.collect();
            std::mem::swap(&mut self.levels[depth].sleep, &mut sleep);
            self.levels.push(Level {
                sleep: survivors,
                tree: children,
                made: None,
            });
        }
    }

    fn blocked(&self) -> Vec<(ThreadId, Access)> {
        let graph = self.model.graph();
        let next = graph.threads().map(|t| (t, self.program.next(graph, t)));
        next.filter_map(|(t, access)| Some((t, access?))).collect()
    }

    /// A step behind the wakeup sequence.
    fn choose(&mut self) -> Option<(ThreadId, Access, Outcome)> {
        let mut able = self.blocked();
        let last = self.last;
        able.sort_by_key(|&(thread, _)| thread != last);
        #[cfg(test)]
        if let Free::Random(seed) | Free::Any(seed) = &mut self.free {
            for at in (1..able.len()).rev() {
                able.swap(at, next_number(seed) % (at + 1));
            }
        }
        let newest = |(thread, access)| {
            let outcome = self.model.newest(&access)?;
            Some((thread, access, outcome))
        };
        let is_any = match self.free {
            Free::Last => false,
            #[cfg(test)]
            Free::Random(_) => false,
            #[cfg(test)]
            Free::Any(_) => true,
        };
        if !is_any && let Some(step) = able.iter().copied().find_map(newest) {
            return Some(step);
        }
        // What is left are awaits that only old stores let go on.
        let mut outcomes = Vec::new();
        able.into_iter().find_map(|(thread, access)| {
            self.model.outcomes(thread, &access, &mut outcomes);
            #[cfg(test)]
            if let Free::Any(seed) = &mut self.free
                && !outcomes.is_empty()
            {
                let count = outcomes.len();
                outcomes.swap(0, next_number(seed) % count);
            }
            let outcome = outcomes.first()?;
            Some((thread, access, *outcome))
        })
    }

    /// Takes up the deepest point that has a branch left; false if there is none.
    fn backtrack(&mut self) -> bool {
        while let Some(level) = self.levels.last_mut() {
            if !level.tree.is_empty() {
                let (step, _) = level.made.take().expect("the execution has come by");
                level.sleep.push(step);
                break;
            }
            self.levels.pop();
        }
        let Some(before) = self.levels.len().checked_sub(1) else {
            return false;
        };
        for level in &self.levels[..before] {
            let (step, outcome) = level.made.expect("the execution has come by");
            self.model.take(step.thread, &step.access, outcome);
            self.last = step.thread;
        }
        true
    }

    /// Plans what the execution shows to be possible besides. It has kept so many events of the
    /// one before. The graph is empty afterwards.
    fn finish(&mut self, blocked: Vec<(ThreadId, Access)>, kept: usize) {
        let mut ended = Ended::of(&self.model, &self.levels, blocked);
        ended.kept = kept;
        for first in (0..ended.made.len()).rev() {
            self.model.undo();
            self.reverse(&ended, first);
        }
    }
}

/// Whether the step, which was decided earlier, is still possible.
fn is_available<M: MemoryModel>(model: &mut M, step: &Step) -> bool {
    let Step {
        thread,
        access,
        decision,
    } = step;
    model.available(*thread, access, decision).is_some()
}

/// xorshift64*.
#[cfg(test)]
fn next_number(seed: &mut u64) -> usize {
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    (seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize
}

/// Whether an outcome of an access to `object` is one that was decided.
fn is_within(graph: &Graph, object: ObjectId, decision: &Decision, outcome: Outcome) -> bool {
    match (*decision, outcome) {
        (Decision::Done, Outcome::Done) => true,
        (Decision::Reads(a), Outcome::Reads(b)) | (Decision::Spurious(a), Outcome::Spurious(b)) => {
            a == b
        }
        (Decision::Within(Interval { after, before }), Outcome::Behind(store)) => {
            let place = graph.place(object, store);
            graph.place(object, after) <= place
                && before.is_none_or(|before| place < graph.place(object, before))
        }
        _ => false,
    }
}
