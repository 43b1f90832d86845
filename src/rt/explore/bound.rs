//! What can be reached with few interventions of the scheduler?
//!
//! Most bugs need two or fewer preemptions (Musuvathi and Qadeer, *Iterative Context Bounding*, PLDI 2007),
//! and the number of traces within a fixed bound grows polynomially with the length of the test.
//! [`Bounded`] explores exactly the traces that have a linearisation whose [`Price`] (in preemptions, context
//! switches or delays) is at most k: first those that cost nothing, then those that cost one, and so on.
//! No bound means: until there are no more.
//!
//! Races cannot tell it what to try: the execution in which a race shows may lie beyond the bound
//! although its reversal does not (Coons, Musuvathi, McKinley, *Bounded Partial-Order Reduction*,
//! OOPSLA 2013, section 3), and a sleep set drops a continuation in favour of one that costs more.
//! So every enabled thread is tried, and what is remembered is where the search has been: a prefix's
//! trace together with the thread that ran last, as far as that matters. Two prefixes that agree in both
//! have the same continuations at the same prices. Because the search goes from cheap to dear,
//! the first visit is the cheapest one, and a second one is given up. Mostly it is not even begun: what
//! trace a step leads to is known before it is executed, and looked up when the step's turn has come.
//!
//! Some definitions:
//!
//! 1. The first step of a thread is no visible operation. It commutes with everything, is executed as
//!    soon as it can be, and switching to it costs nothing.
//! 2. Where the test has switched exploration off, the cheapest thread runs, and costs nothing.
//! 3. Which traces a prefix belongs to is told by a hash of 128 bits, so that memory stays small;
//!    that two of a million traces collide has a chance below 10^-26.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use crate::rt::trace::happens_before::HappensBefore;
use crate::rt::trace::id::ThreadId;
use crate::rt::trace::key::{Hashes, TraceKey};
use crate::rt::trace::operation::{OpKind, Outcome, Step};
use crate::rt::trace::verdict::Pruned;
use crate::rt::trace::{Event, NOWHERE, Trace};

use super::driver::Plan;
use super::price::{Price, pending};
use super::{Choice, Coverage, Explorer, Finished, Point};

/// The explorer that visits traces in the order of what they cost.
pub(crate) struct Bounded {
    price: Price,
    /// The most that an execution may cost.
    most: usize,
    /// What the executions cost that are explored now.
    round: usize,
    /// The points of the current execution.
    levels: Vec<Level>,
    /// The events of the current execution up to its last point, with their clocks; steps are tried
    /// on it.
    shadow: Trace,
    clocks: HappensBefore,
    hashes: Hashes,
    seen: FxHashSet<Visit>,
    /// Where executions branch off that cost as much as the current ones, and those that cost 1, 2, ...
    /// more.
    now: Vec<Branch>,
    later: VecDeque<Vec<Branch>>,
    /// Prefixes of branches, sharing their beginnings. The first node stands for the empty prefix.
    nodes: Vec<Node>,
    /// The nodes of the prefix that this execution was told to follow.
    followed: Vec<u32>,
    /// Whether a branch was left out because of `most`.
    cut: bool,
    started: bool,
}

/// A point of the current execution, before the event of the same number.
struct Level {
    key: TraceKey,
    /// The thread that ran last.
    last: ThreadId,
    /// What else can be tried that costs nothing.
    todo: Vec<Candidate>,
    /// The node of the prefix, if it has one yet.
    node: Option<u32>,
}

/// A prefix's trace, the thread that may as well have run last (`None`: nothing costs anything), and whether
/// any thread was enabled: where none is, waiting threads are let go and the point is visited again.
#[derive(PartialEq, Eq, Hash)]
struct Visit {
    key: TraceKey,
    last: Option<ThreadId>,
    enabled: bool,
}

#[derive(Clone, Copy)]
struct Node {
    parent: u32,
    step: Step,
}

/// A step, and the trace that it leads to, if that could be told.
#[derive(Clone, Copy)]
struct Candidate {
    step: Step,
    to: Option<TraceKey>,
}

#[derive(Clone, Copy)]
struct Branch {
    node: u32,
    candidate: Candidate,
}

impl Bounded {
    /// Executions that cost no more than `most`.
    pub(crate) fn new(price: Price, most: usize) -> Bounded {
        Bounded {
            price,
            most,
            round: 0,
            levels: Vec::new(),
            shadow: Trace::default(),
            clocks: HappensBefore::default(),
            hashes: Hashes::default(),
            seen: FxHashSet::default(),
            now: Vec::new(),
            later: VecDeque::new(),
            nodes: vec![Node {
                parent: 0,
                step: Step::of(ThreadId::MAIN),
            }],
            followed: vec![0],
            cut: false,
            started: false,
        }
    }

    /// Brings the points up to the current one, without its `todo`.
    fn arrive(&mut self, at: &Point<'_>) {
        let machine = at.machine;
        for event in &at.trace.events()[self.shadow.len()..] {
            self.shadow.push(*event);
        }
        self.clocks.extend(&self.shadow, &machine.sets);
        // The point of a choice is visited twice where waiting threads were let go.
        self.levels.truncate(at.trace.len());
        for depth in self.levels.len()..=at.trace.len() {
            let (mut key, mut last) = (TraceKey::default(), ThreadId::MAIN);
            if let Some(above) = depth.checked_sub(1) {
                (key, last) = (self.levels[above].key, self.levels[above].last);
                let position = above as u32;
                let event = self.shadow.at(position);
                if event.operation.kind != OpKind::Start {
                    last = event.thread;
                }
                let (shadow, clocks) = (&self.shadow, &self.clocks);
                let names = (&machine.names, &machine.sets);
                key.add(&mut self.hashes, shadow, clocks, names, position);
            }
            self.levels.push(Level {
                key,
                last,
                todo: Vec::new(),
                node: self.followed.get(depth).copied(),
            });
        }
    }

    /// Drops the events from this point on.
    fn forget(&mut self, length: usize) {
        self.clocks.truncate(length);
        self.shadow.truncate(length);
    }

    /// Finds out which trace a step leads to. Waits are not tried: whether one has been let go is
    /// not known here.
    fn attempt(&mut self, at: &Point<'_>, step: Step) -> Candidate {
        let machine = at.machine;
        let pending = machine.pending(step.thread);
        let pending = pending.filter(|p| !matches!(p.operation.kind, OpKind::Wait { .. }));
        let (Some(pending), Some(label)) = (pending, machine.predict(step)) else {
            return Candidate { step, to: None };
        };
        let depth = self.shadow.len();
        self.shadow.push(Event {
            thread: step.thread,
            index: 0,
            operation: pending.operation,
            outcome: Outcome::Done,
            label,
            alternative: step.alternative,
            alternatives: 1,
            before: None,
            previous: NOWHERE,
            quiet_at: 0,
            site: pending.site,
        });
        self.clocks.extend(&self.shadow, &machine.sets);
        let mut key = self.levels[depth].key;
        let position = depth as u32;
        let (shadow, clocks) = (&self.shadow, &self.clocks);
        let names = (&machine.names, &machine.sets);
        key.add(&mut self.hashes, shadow, clocks, names, position);
        self.forget(depth);
        Candidate {
            step,
            to: Some(key),
        }
    }

    /// Notes that the search has been at this point; false if it had been before.
    fn visit(&mut self, at: &Point<'_>) -> bool {
        let Level { key, last, .. } = self.levels[at.trace.len()];
        let enabled = at.enabled().next().is_some();
        let visit = |last| Visit { key, last, enabled };
        let here = visit(self.price.representative(at, last));
        !self.seen.contains(&visit(None)) && self.seen.insert(here)
    }

    /// Remembers to run the thread at this point, once executions may cost so much more.
    fn postpone(&mut self, at: &Point<'_>, thread: ThreadId, cost: usize) {
        let node = self.node(at);
        if self.later.len() < cost {
            self.later.resize(cost, Vec::new());
        }
        for step in steps_of(at, thread) {
            let candidate = self.attempt(at, step);
            if !visited(&self.seen, candidate) {
                self.later[cost - 1].push(Branch { node, candidate });
            }
        }
    }

    /// The node of the current point's prefix.
    fn node(&mut self, at: &Point<'_>) -> u32 {
        let known = self.levels.iter().rposition(|level| level.node.is_some());
        let known = known.unwrap_or_default();
        let mut node = self.levels[known].node.unwrap_or_default();
        for depth in known + 1..self.levels.len() {
            self.nodes.push(Node {
                parent: node,
                step: at.trace.at(depth as u32 - 1).step(),
            });
            node = self.nodes.len() as u32 - 1;
            self.levels[depth].node = Some(node);
        }
        node
    }

    /// Plans the prefix of a branch, and its step.
    fn follow(&mut self, branch: Branch, plan: &mut Plan) {
        self.forget(0);
        self.followed.clear();
        let mut node = branch.node;
        while node != 0 {
            self.followed.push(node);
            node = self.nodes[node as usize].parent;
        }
        self.followed.push(0);
        self.followed.reverse();
        let prefix = self.followed[1..].iter();
        let steps = prefix.map(|&node| (self.nodes[node as usize].step, None));
        plan.steps.extend(steps);
        plan.steps.push((branch.candidate.step, None));
    }
}

/// Whether all that can follow the step has been explored, or is being.
fn visited(seen: &FxHashSet<Visit>, candidate: Candidate) -> bool {
    candidate.to.is_some_and(|key| {
        let last = candidate.step.thread;
        [(None, true), (None, false), (Some(last), true)]
            .into_iter()
            .any(|(last, enabled)| seen.contains(&Visit { key, last, enabled }))
    })
}

/// The steps that a thread can make.
fn steps_of(at: &Point<'_>, thread: ThreadId) -> impl Iterator<Item = Step> {
    (0..at.machine.alternatives(thread)).map(move |alternative| Step {
        thread,
        alternative,
    })
}

impl Explorer for Bounded {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        if !self.started {
            self.started = true;
            return true;
        }
        while let Some(level) = self.levels.last_mut() {
            if let Some(candidate) = level.todo.pop() {
                if visited(&self.seen, candidate) {
                    continue;
                }
                plan.kept = self.levels.len() - 1;
                plan.steps.push((candidate.step, None));
                self.forget(plan.kept);
                self.followed.truncate(self.levels.len());
                return true;
            }
            self.levels.pop();
        }
        loop {
            while let Some(branch) = self.now.pop() {
                if !visited(&self.seen, branch.candidate) {
                    self.follow(branch, plan);
                    return true;
                }
            }
            let Some(later) = self.later.pop_front() else {
                return false;
            };
            self.now = later;
            self.now.reverse();
            self.round += 1;
        }
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        self.arrive(at);
        let depth = at.trace.len();
        let starting = at
            .enabled()
            .find(|&thread| pending(at, thread) == Some(OpKind::Start));
        if let Some(thread) = starting {
            return Choice::Run(Step::of(thread));
        }
        if !self.visit(at) {
            return Choice::Prune(Pruned::Asleep);
        }
        let costs = self.price.of_each(at, self.levels[depth].last);
        let Some(cheapest) = costs.iter().map(|&(_, cost)| cost).min() else {
            return Choice::NothingEnabled;
        };
        let free = if at.fixed { cheapest } else { 0 };
        let mut todo: Vec<Candidate> = Vec::new();
        for (thread, cost) in costs {
            if cost == free {
                todo.extend(steps_of(at, thread).map(|step| self.attempt(at, step)));
            } else if at.fixed {
                // Not to be explored.
            } else if cost > self.most - self.round {
                self.cut = true;
            } else {
                self.postpone(at, thread, cost);
            }
        }
        todo.reverse();
        todo.retain(|&candidate| !visited(&self.seen, candidate));
        let Some(Candidate { step, .. }) = todo.pop() else {
            return Choice::Prune(Pruned::Asleep);
        };
        if !at.fixed {
            self.levels[depth].todo = todo;
        }
        Choice::Run(step)
    }

    fn asks_for_clocks(&self) -> bool {
        false
    }

    fn finish(&mut self, _run: &Finished<'_>) {}

    fn more(&self) -> bool {
        let todo = self.levels.iter().any(|level| !level.todo.is_empty());
        let later = self.later.iter().any(|branches| !branches.is_empty());
        !self.started || todo || !self.now.is_empty() || later
    }

    fn coverage(&self) -> Coverage {
        let within = match (self.more(), self.cut) {
            (false, false) => return Coverage::All,
            (false, true) => Some(self.most),
            // The executions that cost as much as this one are not all explored.
            (true, _) => self.round.checked_sub(1),
        };
        Coverage::Within(self.price, within)
    }

    fn memory(&self) -> usize {
        self.seen.capacity() * (size_of::<Visit>() + 1)
            + self.nodes.capacity() * size_of::<Node>()
            + (self.later.iter().chain([&self.now]))
                .map(|branches| branches.capacity() * size_of::<Branch>())
                .sum::<usize>()
    }
}
