//! How is every graph explored exactly once?
//!
//! Optimal-DPOR over outcomes: a step is a thread *and* the outcome of its operation. Each point of
//! the current execution has a sleep set and a wakeup tree, as under sequential consistency
//! (`rt/engine/strategies/optimal.rs`). Stores and loads are not ordered because they touch one
//! location: two steps conflict if one takes the outcome of the other away. So the search reverses
//! events, not pairs of events ([`reverse`]), and compares outcomes, not labels ([`plan`]).

mod apart;
mod ended;
mod needed;
mod plan;
mod reverse;
pub(crate) mod saved;
mod settled;
mod spread;
mod trap;

use super::graph::Graph;
use super::operation::{OpKind, Operation};
use super::{Access, Decision, Interval, MemoryModel, Outcome};
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::relation::independence::{Label, commutes};
use ended::Ended;
pub(crate) use plan::Planned;
use plan::{Node, Spread};
use settled::Settled;
pub(crate) use trap::Trap;

/// An abstract program: what each thread does next, which depends on what its events have read.
#[cfg(test)]
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
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Step {
    thread: ThreadId,
    access: Access,
    decision: Decision,
}

/// A point of the current execution.
#[derive(Clone, Debug, Default)]
struct Level {
    /// The number of events of the graph before it.
    start: usize,
    sleep: Vec<Step>,
    /// How many of the steps that are asleep were so before the last step.
    inherited: usize,
    /// The steps that were planned before the one that was made, explored or not, in a search that
    /// may take any branch next ([`spread`]). They are asleep.
    elder: Vec<Node>,
    tree: Vec<Node>,
    /// Whether no step is asleep behind the step that was made here, as far as the plan goes.
    is_awake: bool,
    /// The step that the execution made here, and its outcome.
    made: Option<(Step, Outcome)>,
    /// What else this step, and those that conflict with it, may come out as, as far as that is
    /// planned, explored or covered.
    settled: Settled,
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
pub(crate) struct Search<M> {
    pub(crate) model: M,
    free: Free,
    levels: Vec<Level>,
    /// The number of first steps of the execution that the graph has.
    held: usize,
    /// The last execution that has ended.
    ended: Ended,
    /// Whether a repeated step has other operands than in the execution before.
    has_other_operands: bool,
    /// The points that the execution has still to come by, if it is the first one of a search that
    /// goes on after an interruption. The next one is last.
    ahead: Vec<Level>,
    /// The step at the current point, which that execution repeats.
    repeats: Option<(Step, Outcome)>,
    /// The thread of the last step.
    last: ThreadId,
    pub(crate) stats: Stats,
    /// How many steps all wakeup trees have.
    nodes: usize,
    /// What a search needs that takes any branch next.
    spread: Option<Spread>,
    /// The rule that a test leaves out.
    left_out: Option<Trap>,
}

/// A thread that has not ended, and its next operation.
pub(crate) type Next = (ThreadId, Access);

impl<M: MemoryModel> Search<M> {
    pub(crate) fn new(model: M, free: Free) -> Search<M> {
        Search {
            model,
            free,
            levels: vec![Level::default()],
            held: 0,
            ended: Ended::default(),
            has_other_operands: false,
            ahead: Vec::new(),
            repeats: None,
            last: ThreadId(0),
            stats: Stats::default(),
            nodes: 0,
            spread: None,
            left_out: None,
        }
    }

    /// Leaves a rule out.
    #[cfg(test)]
    pub(crate) fn leave_out(&mut self, trap: Trap) {
        self.left_out = Some(trap);
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
    #[cfg(test)]
    pub(crate) fn explore(
        mut self,
        program: &impl Program,
        mut visit: impl FnMut(&Graph) -> bool,
    ) -> Stats {
        let all_next = |graph: &Graph| -> Vec<Next> {
            let next = graph.threads().map(|t| (t, program.next(graph, t)));
            next.filter_map(|(t, access)| Some((t, access?))).collect()
        };
        loop {
            let kept = self.levels.len() - 1;
            let blocked = loop {
                let next = all_next(self.model.graph());
                let step = match self.planned() {
                    Some(step) => Some(step),
                    None => self.choose(next.clone()),
                };
                match step {
                    Some((thread, access, outcome)) => self.step(thread, &access, outcome),
                    None => break next,
                }
            };
            if !visit(self.model.graph()) {
                self.stats.executions += 1;
                return self.stats;
            }
            self.finish(blocked, kept, |_| false);
            let kept = match self.spread {
                Some(_) => self.take_any(),
                None => self.backtrack(),
            };
            let Some(kept) = kept else {
                return self.stats;
            };
            self.hold(kept);
            for depth in 0..kept {
                let (step, _) = self.levels[depth].made.expect("the execution has come by");
                match depth < self.held {
                    true => self.renew(depth, step.access.operation.kind),
                    false => self.repeat(depth, step.thread, &step.access),
                }
                self.go_by(step.thread);
            }
        }
    }

    /// Forgets the execution. The graph has to be empty.
    pub(crate) fn forget(&mut self) {
        self.drop_all();
        self.levels.clear();
        self.levels.push(Level::default());
        self.nodes = 0;
        self.held = 0;
        self.ended.cut(0);
        self.ahead.clear();
        self.repeats = None;
    }

    /// The execution returns to so many steps.
    pub(crate) fn cut(&mut self, steps: usize) {
        self.hold(steps);
        self.levels.truncate(steps + 1);
        self.ended.cut(steps);
    }

    /// Takes steps back until the graph has at most so many, and returns how many it has.
    pub(crate) fn hold(&mut self, steps: usize) -> usize {
        if steps < self.held {
            self.shorten(steps);
            self.held = steps;
        }
        self.held
    }

    /// How many first steps of the execution the graph has.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Whether the thread of the last step goes on behind a wakeup sequence.
    pub(crate) fn lets_the_last_go_on(&self) -> bool {
        self.free == Free::Last
    }

    /// The number of steps of the execution so far.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    /// The next step of the wakeup sequence, or of what an interrupted search has left. `None`
    /// behind the sequence.
    ///
    /// # Panics
    ///
    /// If a step is asleep where the sequence ends.
    pub(crate) fn planned(&mut self) -> Option<(ThreadId, Access, Outcome)> {
        if let Some((step, outcome)) = self.repeats {
            return Some((step.thread, step.access, outcome));
        }
        let level = self.levels.last().expect("there is a level");
        let at = match &self.spread {
            Some(spread) => *spread.route.last()? as usize,
            None => 0,
        };
        let Some(&Node { step, .. }) = level.tree.get(at) else {
            assert!(
                level.sleep.is_empty(),
                "dpor bug: a step is asleep at the end of a wakeup sequence"
            );
            return None;
        };
        let outcome = (self.model).available(step.thread, &step.access, &step.decision);
        let outcome = outcome.expect("dpor bug: what is planned is not possible");
        Some((step.thread, step.access, outcome))
    }

    /// Whether the planned step is the last one of the plan.
    pub(crate) fn ends_plan(&self) -> bool {
        if let Some(spread) = &self.spread {
            return spread.route.len() == 1;
        }
        let level = self.levels.last().expect("there is a level");
        let planned = level.tree.first();
        self.ahead.is_empty() && planned.is_some_and(|node| node.children.is_empty())
    }

    /// Makes a step behind the last one. It is the planned one, if there is one.
    pub(crate) fn step(&mut self, thread: ThreadId, access: &Access, outcome: Outcome) {
        let decision = self.model.graph().decision(access, outcome);
        let level = self.levels.last_mut().expect("there is a level");
        let repeated = self.repeats.take();
        let planned = match repeated {
            Some((step, _)) => Some(Node::of(step)),
            None if self.spread.is_some() => self.spread.as_mut().and_then(|spread| {
                let at = spread.route.pop()? as usize;
                level.elder = level.tree.drain(..at).collect();
                level.sleep.extend(level.elder.iter().map(|node| node.step));
                Some(level.tree.remove(0))
            }),
            None if level.tree.is_empty() => None,
            None => {
                self.nodes -= 1;
                Some(level.tree.remove(0))
            }
        };
        let (decision, children) = match planned {
            Some(Node {
                step,
                children,
                is_end,
                ..
            }) => {
                debug_assert_eq!(step.thread, thread);
                level.is_awake = is_end;
                (step.decision, children)
            }
            None => {
                level.is_awake = true;
                (decision, Vec::new())
            }
        };
        let step = Step {
            thread,
            access: *access,
            decision,
        };
        self.last = thread;
        self.model.take(thread, access, outcome);
        self.held = self.levels.len();
        let level = self.levels.last_mut().expect("there is a level");
        level.made = Some((step, outcome));
        level.settled.clear();
        let sleep = std::mem::take(&mut level.sleep);
        let last = self.model.graph().len() as u32 - 1;
        let survivors = sleep.iter().copied();
        let survivors = survivors
            .filter(|sleeper| sleeper.thread != thread && survives(&mut self.model, sleeper, last));
        let survivors: Vec<Step> = survivors.collect();
        let level = self.levels.last_mut().expect("there is a level");
        level.sleep = sleep;
        self.levels.push(Level {
            start: self.model.graph().len(),
            inherited: survivors.len(),
            sleep: survivors,
            tree: children,
            ..Level::default()
        });
        self.take_up();
        let level = self.levels.last().expect("there is a level");
        assert!(
            !level.tree.is_empty() || level.sleep.is_empty() || self.repeats.is_some(),
            "dpor bug: a step is asleep at the end of a wakeup sequence"
        );
    }

    /// The point at the end of the execution so far gets what an interrupted search has left of it.
    fn take_up(&mut self) {
        let Some(saved) = self.ahead.pop() else {
            return;
        };
        self.nodes += count(&saved.tree);
        self.repeats = saved.made;
        let level = self.levels.last_mut().expect("there is a level");
        (level.sleep, level.tree) = (saved.sleep, saved.tree);
    }

    /// The step at this depth, which the execution before has made: its access and its outcome.
    pub(crate) fn made(&self, depth: usize) -> (&Access, Outcome) {
        let made = self.levels[depth].made.as_ref();
        let (step, outcome) = made.expect("the execution has come by");
        (&step.access, *outcome)
    }

    /// Repeats the step at this depth, which the execution before has made, and which the graph
    /// has not any more. The access may have other operands: addresses differ.
    pub(crate) fn repeat(&mut self, depth: usize, thread: ThreadId, access: &Access) {
        debug_assert_eq!(depth, self.held);
        self.last = thread;
        let Some((step, outcome)) = &mut self.levels[depth].made else {
            panic!("dpor bug: a step is repeated that was not made");
        };
        self.has_other_operands |= step.access != *access;
        step.access = *access;
        let outcome = *outcome;
        self.model.take(thread, access, outcome);
        self.held = depth + 1;
    }

    /// The step at this depth, which the graph has, has these operands now.
    #[inline]
    pub(crate) fn renew(&mut self, depth: usize, kind: OpKind) {
        let Some((step, _)) = &mut self.levels[depth].made else {
            panic!("dpor bug: a step is repeated that was not made");
        };
        let is_same = step.access.operation.kind == kind;
        // What a read-modify-write writes depends on what it reads, too.
        if is_same && !matches!(kind, OpKind::Rmw { .. }) {
            return;
        }
        self.has_other_operands |= !is_same;
        step.access.operation.kind = kind;
        let access = step.access;
        let position = self.levels[depth + 1].start as u32 - 1;
        self.model.again(position, &access);
    }

    /// The thread has made the last step so far.
    pub(crate) fn go_by(&mut self, thread: ThreadId) {
        self.last = thread;
    }

    /// A step behind the wakeup sequence, of one of these threads.
    pub(crate) fn choose(&mut self, mut able: Vec<Next>) -> Option<(ThreadId, Access, Outcome)> {
        let last = self.last;
        able.sort_by_key(|&(thread, _)| (thread != last, thread == ThreadId::MAIN));
        #[cfg(test)]
        if let Free::Random(seed) | Free::Any(seed) = &mut self.free {
            for at in (1..able.len()).rev() {
                able.swap(at, next_number(seed) % (at + 1));
            }
        }
        let is_any = match self.free {
            Free::Last => false,
            #[cfg(test)]
            Free::Random(_) => false,
            #[cfg(test)]
            Free::Any(_) => true,
        };
        if !is_any {
            for &(thread, access) in &able {
                if let Some(newest) = self.model.newest(thread, &access) {
                    return Some((thread, access, newest));
                }
            }
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

    /// Takes up the deepest point that has a branch left, and returns how many steps are before it;
    /// `None` if there is none. The graph may have more of the steps of the execution that has
    /// ended, or fewer.
    pub(crate) fn backtrack(&mut self) -> Option<usize> {
        while let Some(level) = self.levels.last_mut() {
            if !level.tree.is_empty() {
                let (step, _) = level.made.take().expect("the execution has come by");
                level.sleep.push(step);
                level.settled.clear();
                let steps = self.levels.len() - 1;
                self.ended.cut(steps);
                return Some(steps);
            }
            self.levels.pop();
        }
        self.ended.cut(0);
        None
    }

    /// Plans what the execution shows to be possible besides. It has kept so many steps of the one
    /// before. At a frozen point nothing is planned. The graph has some of the first steps
    /// afterwards ([`Search::hold`]).
    pub(crate) fn finish(
        &mut self,
        blocked: Vec<Next>,
        kept: usize,
        is_frozen: impl Fn(usize) -> bool,
    ) {
        self.stats.executions += 1;
        let mut ended = std::mem::take(&mut self.ended);
        let valid = ended.valid();
        if self.spread.is_some() {
            // What covers a sequence from one execution may not cover it from an elder sibling.
            for level in &mut self.levels {
                level.settled.clear();
            }
        }
        if !self.lacks(Trap::Evidence) {
            for level in &mut self.levels[..valid] {
                level.settled.keep(valid);
            }
        }
        if std::mem::take(&mut self.has_other_operands) {
            ended.renew(&self.levels);
        }
        ended.update(&self.model, &self.levels, blocked);
        ended.kept = kept;
        let has_awaits = self.has_awaits(&ended);
        for first in (0..ended.made.len()).rev() {
            // Such a step comes out in one way, and takes nothing away.
            let is_plain = matches!(
                ended.made[first].step.access.operation.kind,
                OpKind::Fence { .. } | OpKind::Spawn { .. } | OpKind::Join { .. }
            );
            if is_plain && !has_awaits
                || is_frozen(first)
                || !has_awaits && self.is_settled(&ended, first, valid)
            {
                continue;
            }
            // With `SeqCst` events, the next execution may allow what this one does not. A finding
            // that does not last takes it back.
            if !ended.has_sequential {
                self.levels[first].settled.complete();
            }
            if self.may_reverse_at(&ended, first) && !self.reverse_apart(&ended, first) {
                self.hold(first);
                self.reverse(&ended, first);
            }
        }
        self.ended = ended;
    }

    /// Whether the event at `first` is a load or a store, and all that it may come out as besides
    /// was looked at in the execution before, with which it has so many first steps in common.
    fn is_settled(&self, ended: &Ended, first: usize, common: usize) -> bool {
        if first >= common || !self.levels[first].settled.is_complete() {
            return false;
        }
        let Operation { object, kind } = &ended.made[first].step.access.operation;
        matches!(kind, OpKind::Load { .. } | OpKind::Store { .. })
            && ended
                .stores(*object)
                .next_back()
                .is_none_or(|last| last < common)
    }

    /// The number of branches that are planned at each depth which has some.
    pub(crate) fn branches(&self) -> impl Iterator<Item = (usize, u64)> {
        let levels = self
            .levels
            .iter()
            .chain(self.ahead.iter().rev())
            .enumerate();
        levels.filter_map(|(depth, level)| {
            (!level.tree.is_empty()).then_some((depth, level.tree.len() as u64))
        })
    }

    /// The approximate number of bytes of the wakeup trees.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes * size_of::<Node>()
    }
}

/// The number of nodes of these trees.
fn count(trees: &[Node]) -> usize {
    let mut open: Vec<&Node> = trees.iter().collect();
    let mut count = 0;
    while let Some(node) = open.pop() {
        count += 1;
        open.extend(&node.children);
    }
    count
}

/// Whether two labels of operations on other objects commute. `pending` has been decided before
/// the event.
fn commutes_with(graph: &Graph, pending: Label, event: Label) -> bool {
    commutes(&graph.sets, pending, event)
}

/// Whether the step of another thread is still possible behind the last event of the graph, which
/// is at this position, if it was possible before the event.
fn survives<M: MemoryModel>(model: &mut M, step: &Step, last: u32) -> bool {
    if let Decision::Other { label, .. } = step.decision {
        let event = model.graph().at(last).label();
        return event.is_none_or(|event| commutes_with(model.graph(), label, event));
    }
    is_available(model, step)
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
        (Decision::Reads(a), Outcome::Reads(b)) | (Decision::Modifies(a), Outcome::Modifies(b)) => {
            a == b
        }
        (Decision::Other { alternative: a, .. }, Outcome::Other { alternative: b, .. }) => a == b,
        (Decision::Within(Interval { after, before }), Outcome::Behind(store)) => {
            let place = graph.place(object, store);
            graph.place(object, after) <= place
                && before.is_none_or(|before| place < graph.place(object, before))
        }
        _ => false,
    }
}
