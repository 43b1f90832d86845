//! Which traces can be reached with few interventions of the scheduler?
//!
//! Most bugs need two or fewer preemptions (Musuvathi and Qadeer, *Iterative Context Bounding*,
//! PLDI 2007), and the number of traces within a fixed bound grows polynomially with the length of
//! the test. [`Bounded`] explores exactly the traces that have a linearisation with a [`Price`] (in
//! preemptions, context switches or delays) of at most k: first the traces of price 0, then those
//! of price 1, and so on. Without a bound it continues until no traces are left.
//!
//! The search remembers the places that it has visited: a place is the trace of a prefix together
//! with the thread that made the last step, as far as this thread matters. Two prefixes with the
//! same place have the same continuations at the same prices, and the search prunes the second one.
//! Mostly it does not even begin the second one: the trace behind a step is known before the step
//! is executed ([`ahead`]), and looked up when it is the step's turn ([`seen`]).
//!
//! Plain races and sleep sets cannot decide which steps to try. The execution in which a race shows
//! may lie beyond the bound although its reversal does not (Coons, Musuvathi, McKinley, *Bounded
//! Partial-Order Reduction*, OOPSLA 2013, section 3), and a sleep set drops a continuation in
//! favour of one with a higher price. But they can decide one kind of branch, by far the most
//! frequent one: the preemption of a thread that could perform an operation `a`. Every step that
//! other threads make before `a` can happen behind `a` instead, at the same price, as long as none
//! of these steps depends on `a`: the preemption comes one operation later. So
//!
//! * the preempted thread is in the sleep set until an event happens that depends on `a`; or until
//!   a thread is blocked that `a` could enable, because a switch from that thread would not be free
//!   behind `a`;
//! * the branch is not explored before a dependence on `a` has shown: another thread's operation
//!   behind `a` depends on it, or `a` disables one. An execution that shows it behind `a` costs no
//!   more than the branch ([`parked`]).
//!
//! A delay is charged to the other threads, not to the thread that is passed over, so none of this
//! holds for delays. Nor does it hold where a thread is not preempted but is blocked or finished:
//! the first other thread to run is then free, and a return to it is not. There the search tries
//! every enabled thread.
//!
//! A search within a bound may have explored all traces although the bound has excluded some steps:
//! a step that is too dear at one place may be explored from another one ([`left_out`]).
//!
//! The search goes from low prices to high ones, so the first visit of a place is mostly the
//! cheapest. Where it is not, or where more threads were in the sleep set at the first visit, the
//! search explores the continuations once more.
//!
//! Some definitions:
//!
//! 1. Where the test has switched exploration off, the thread with the lowest price runs, and costs
//!    nothing. There the effect of an operation and the exploration behind it depend on the place,
//!    so the search tries every preemption.
//! 2. A hash of 128 bits identifies the trace of a prefix, so that memory stays small; two of a
//!    million traces collide with a chance below 10^-26.

mod ahead;
mod left_out;
mod parked;
mod seen;
mod sleep;
mod table;

use std::cmp::Reverse;
use std::collections::VecDeque;

use crate::rt::event::Trace;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Step};
use crate::rt::event::verdict::Pruned;
use crate::rt::object::machine::Machine;
use crate::rt::relation::independence::commutes;
use crate::rt::relation::key::TraceKey;

use crate::rt::engine::plan::Plan;
use crate::rt::engine::price::{Price, is_over, pending, waits};
use crate::rt::engine::strategies::bound::ahead::{Ahead, Tried};
use crate::rt::engine::strategies::bound::left_out::LeftOut;
use crate::rt::engine::strategies::bound::parked::Parked;
use crate::rt::engine::strategies::bound::seen::{Place, Seen, Way};
use crate::rt::engine::strategies::bound::sleep::Sleep;
use crate::rt::engine::{Choice, Coverage, Execution, Explorer, Point};

/// The explorer that visits traces in the order of their prices.
pub(crate) struct Bounded {
    price: Price,
    /// The highest price of an execution.
    most: u32,
    /// The price of the executions that are explored now.
    round: u32,
    /// The points of the current execution.
    levels: Vec<Level>,
    ahead: Ahead,
    seen: Seen,
    /// The price and the sleep set with which the current execution reaches its next point.
    way: Way,
    parked: Parked,
    /// The branches of executions with the current price, and those with a price that is higher by
    /// 1, 2, ...
    now: Vec<Branch>,
    later: VecDeque<Vec<Branch>>,
    /// Prefixes of branches, which share their beginnings. The first node stands for the empty
    /// prefix.
    nodes: Vec<Node>,
    /// The nodes of the prefix in the plan of this execution.
    followed: Vec<u32>,
    /// Whether a branch was left out because of `most`.
    cut: bool,
    /// The steps that were left out because of `most`, and may be explored all the same.
    left_out: LeftOut,
    /// Whether the test switches exploration off somewhere.
    regions: bool,
    started: bool,
    /// The threads that are enabled at this point.
    able: Vec<ThreadId>,
    /// The price of each of them.
    costs: Vec<(ThreadId, u32)>,
    /// The events that other events have just been found to depend on.
    raced: Vec<u32>,
    /// The buffer of [`Bounded::postpone`].
    branches: Vec<Branch>,
}

/// A point of the current execution, before the event of the same number.
struct Level {
    /// The thread that made the last step.
    last: ThreadId,
    /// The other free steps that are still to be tried.
    todo: Vec<Candidate>,
    /// The node of the prefix, if it has one yet.
    node: Option<u32>,
}

#[derive(Clone, Copy)]
struct Node {
    parent: u32,
    step: Step,
}

/// A step, the trace behind it, if that is known in advance, and its way.
#[derive(Clone, Copy)]
struct Candidate {
    step: Step,
    to: Option<TraceKey>,
    way: Way,
}

#[derive(Clone, Copy)]
struct Branch {
    node: u32,
    candidate: Candidate,
}

impl Bounded {
    /// Explores executions with a price of at most `most`.
    pub(crate) fn new(price: Price, most: usize) -> Bounded {
        Bounded {
            price,
            most: u32::try_from(most).unwrap_or(u32::MAX),
            round: 0,
            levels: Vec::new(),
            ahead: Ahead::default(),
            seen: Seen::default(),
            way: Way::default(),
            parked: Parked::default(),
            now: Vec::new(),
            later: VecDeque::new(),
            nodes: vec![Node {
                parent: 0,
                step: Step::of(ThreadId::MAIN),
            }],
            followed: vec![0],
            cut: false,
            left_out: LeftOut::default(),
            regions: false,
            started: false,
            able: Vec::new(),
            costs: Vec::new(),
            raced: Vec::new(),
            branches: Vec::new(),
        }
    }

    /// The same, where a preemption comes as early as may be necessary. Some of these preemptions
    /// are unnecessary, but among executions of the same price those that are easier to read come
    /// first.
    pub(crate) fn early(mut self) -> Bounded {
        self.ahead.early = true;
        self
    }

    /// The same, without the reduction by dependence.
    #[cfg(test)]
    pub(crate) fn without_reduction(price: Price, most: usize) -> Bounded {
        Bounded {
            regions: true,
            ..Bounded::new(price, most)
        }
    }

    /// Extends the points to the end of the trace, and learns from the new events.
    fn arrive(&mut self, trace: &Trace, machine: &Machine) {
        self.ahead.arrive(trace, machine, &mut self.raced);
        // The search visits the point of a choice twice where waiting threads were released.
        self.levels.truncate(trace.len());
        for depth in self.levels.len()..=trace.len() {
            let last = match depth.checked_sub(1) {
                None => ThreadId::MAIN,
                Some(above) => trace.at(above as u32).thread,
            };
            self.levels.push(Level {
                last,
                todo: Vec::new(),
                node: self.followed.get(depth).copied(),
            });
        }
        if !self.raced.is_empty() {
            self.learn();
        }
    }

    /// Schedules the branches that have waited until another event depends on one of these events.
    fn learn(&mut self) {
        let mut released = Vec::new();
        for event in self.raced.drain(..) {
            let operation = self.ahead.added(event);
            self.cut |= self.parked.race(operation, &mut released);
        }
        for branch in released {
            self.schedule(branch);
        }
    }

    /// Stores a branch until executions may have its price.
    fn schedule(&mut self, branch: Branch) {
        match branch.candidate.way.cost.checked_sub(self.round + 1) {
            None => self.now.push(branch),
            Some(more) => {
                let more = more as usize;
                if self.later.len() <= more {
                    self.later.resize(more + 1, Vec::new());
                }
                self.later[more].push(branch);
            }
        }
    }

    /// From here on the search leaves out no preemption.
    #[cold]
    fn note_regions(&mut self) {
        self.regions = true;
        self.left_out.give_up();
        let mut released = Vec::new();
        self.cut |= self.parked.release_all(&mut released);
        for branch in released {
            self.schedule(branch);
        }
    }

    /// Computes the trace behind a step on this way, and the operation of the step, if these are
    /// known in advance.
    fn attempt(&mut self, at: &Point<'_>, step: Step, way: Way) -> (Candidate, Option<Tried>) {
        let machine = at.machine;
        let tried = self.ahead.attempt(machine, step);
        let sleep = tried.map_or(Sleep::NONE, |Tried { label, .. }| {
            way.sleep.filter(|thread| {
                let next = self.ahead.attempt(machine, Step::of(thread));
                let sleeps_on = |next: Tried| commutes(&machine.sets, next.label, label);
                thread != step.thread && next.is_some_and(sleeps_on)
            })
        });
        let before = self.ahead.key(at.trace.len());
        let candidate = Candidate {
            step,
            to: tried.map(|tried| before.with(tried.adds)),
            way: Way { sleep, ..way },
        };
        (candidate, tried)
    }

    /// The threads of `sleep` that are still in the sleep set at this point; `sleep` is the set
    /// when the search reached the point.
    fn still_asleep(&self, at: &Point<'_>, last: ThreadId, sleep: Sleep) -> Sleep {
        if sleep == Sleep::NONE || self.regions {
            return Sleep::NONE;
        }
        if self.able.contains(&last) || waits(at, last) {
            return sleep;
        }
        let object = |thread| Some(at.machine.pending(thread)?.operation.object);
        let stuck = object(last);
        sleep.filter(|thread| object(thread) != stuck)
    }

    /// Notes that the search is at this point. Returns the way on which to continue; `None` if all
    /// continuations are explored already.
    fn visit(&mut self, at: &Point<'_>, last: ThreadId) -> Option<Way> {
        let place = Place {
            last: self.price.representative(at, &self.able, last),
            enabled: !self.able.is_empty(),
        };
        let way = match is_over(at, &self.able) {
            false => Way {
                sleep: self.still_asleep(at, last, self.way.sleep),
                ..self.way
            },
            // The price does not matter here.
            true => Way::default(),
        };
        self.seen.visit(self.ahead.key(at.trace.len()), place, way)
    }

    /// Whether all continuations behind the step have been explored, or are being explored.
    fn visited(&self, Candidate { step, to, way }: Candidate) -> bool {
        let is_covered = |key| {
            self.seen.covers(key, |place| match place.last {
                Some(last) => (last == step.thread && place.enabled).then_some(way),
                // The thread may be blocked behind the step, and may enable others.
                None => Some(Way {
                    sleep: Sleep::NONE,
                    ..way
                }),
            })
        };
        to.is_some_and(is_covered)
    }

    /// Schedules these threads at this point, each once executions may have its price, and, if an
    /// operation is `preempted`, once another thread's operation is known to depend on that
    /// operation.
    fn postpone(
        &mut self,
        at: &Point<'_>,
        threads: impl Iterator<Item = (ThreadId, Way)>,
        preempted: Option<TraceKey>,
    ) {
        let mut branches = std::mem::take(&mut self.branches);
        let mut too_dear = false;
        for (thread, way) in threads {
            if way.cost > self.most {
                too_dear = true;
                self.leave_out(at, (thread, way), preempted);
                continue;
            }
            let node = self.node(at);
            for step in steps_of(at, thread) {
                let (candidate, _) = self.attempt(at, step, way);
                branches.push(Branch { node, candidate });
            }
        }
        // If no other thread is enabled, the operation needs no entry.
        let any = too_dear || !branches.is_empty();
        let parked = preempted
            .filter(|_| any)
            .is_some_and(|operation| self.parked.park(operation, &branches, too_dear));
        if !parked {
            self.cut |= too_dear;
            for &branch in &branches {
                if !self.visited(branch.candidate) {
                    self.schedule(branch);
                }
            }
        }
        branches.clear();
        self.branches = branches;
    }

    /// Notes the steps of this thread at this point as left out, while these notes are still
    /// complete. If an operation is `preempted`, the steps would have come before it.
    fn leave_out(
        &mut self,
        at: &Point<'_>,
        (thread, way): (ThreadId, Way),
        preempted: Option<TraceKey>,
    ) {
        if !self.left_out.is_told() {
            return;
        }
        for step in steps_of(at, thread) {
            match self.attempt(at, step, way).0 {
                Candidate {
                    to: Some(to), way, ..
                } => {
                    let before = preempted;
                    let step = left_out::Step { to, way, before };
                    self.left_out.note(step, &self.seen);
                }
                Candidate { to: None, .. } => self.left_out.give_up(),
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
        self.followed.clear();
        let mut node = branch.node;
        while node != 0 {
            self.followed.push(node);
            node = self.nodes[node as usize].parent;
        }
        self.followed.push(0);
        self.followed.reverse();
        // The common prefix with the last execution stays.
        let both = self.levels.iter().zip(&self.followed);
        let same = both.take_while(|(level, node)| level.node == Some(**node));
        plan.common_prefix = same.count().saturating_sub(1);
        self.keep(plan.common_prefix);
        let prefix = self.followed[plan.common_prefix + 1..].iter();
        let steps = prefix.map(|&node| (self.nodes[node as usize].step, None));
        plan.steps.extend(steps);
        plan.repeated = plan.steps.len();
        plan.steps.push((branch.candidate.step, None));
        self.way = branch.candidate.way;
    }

    /// Forgets the events from this point on.
    fn keep(&mut self, point: usize) {
        self.levels.truncate(point + 1);
        self.ahead.truncate(point);
    }

    /// Plans the next step without additional price, if the current execution has one left.
    fn free_step(&mut self, plan: &mut Plan) -> bool {
        while let Some(depth) = (self.levels.iter()).rposition(|level| !level.todo.is_empty()) {
            while let Some(candidate) = self.levels[depth].todo.pop() {
                if self.visited(candidate) {
                    continue;
                }
                plan.common_prefix = depth;
                plan.steps.push((candidate.step, None));
                self.keep(depth);
                self.followed.truncate(depth + 1);
                self.way = candidate.way;
                return true;
            }
        }
        false
    }

    /// The step to make at a point that the search reached on this way. Notes the other free steps,
    /// and schedules those with a price.
    fn choose_among(
        &mut self,
        at: &Point<'_>,
        last: ThreadId,
        way: Way,
        costs: &[(ThreadId, u32)],
    ) -> Choice {
        let Some(cheapest) = costs.iter().map(|&(_, cost)| cost).min() else {
            return Choice::NothingEnabled;
        };
        let free = if at.fixed { cheapest } else { 0 };
        let awake = |&&(thread, _): &&(ThreadId, u32)| !way.sleep.has(thread);
        let (mut todo, mut next) = (Vec::new(), None);
        let mut operation = None;
        let costs_nothing = (costs.iter().filter(awake)).filter(|&&(_, cost)| cost == free);
        for &(thread, _) in costs_nothing {
            for step in steps_of(at, thread) {
                let (candidate, tried) = self.attempt(at, step, way);
                match next {
                    None => (next, operation) = (Some(candidate), tried),
                    Some(_) => todo.push(candidate),
                }
            }
        }
        let only_chooses = todo.iter().all(|candidate| candidate.step.thread == last)
            && matches!(pending(at, last), Some(OpKind::Choose { .. }));
        let preempted = match next {
            // No event depends on a choice, so the facts about one outcome hold for each.
            Some(next) if next.step.thread == last && (todo.is_empty() || only_chooses) => {
                operation
            }
            _ => None,
        };
        let preempted = preempted.filter(|_| self.price != Price::Delays && !self.regions);
        let sleep = match preempted {
            Some(_) => way.sleep.with(last),
            None => way.sleep,
        };
        let dearer = (costs.iter().filter(awake)).filter(|&&(_, cost)| cost > 0 && !at.fixed);
        let dearer = dearer.map(|&(thread, cost)| {
            let cost = way.cost.saturating_add(cost);
            (thread, Way { cost, sleep })
        });
        self.postpone(at, dearer, preempted.map(|tried| tried.adds));
        todo.retain(|&candidate| !self.visited(candidate));
        todo.reverse();
        let next = next.filter(|&next| !self.visited(next));
        let Some(Candidate { step, way, .. }) = next.or_else(|| todo.pop()) else {
            return Choice::Prune(Pruned::Asleep);
        };
        self.way = way;
        if !at.fixed {
            self.levels[at.trace.len()].todo = todo;
        }
        Choice::Run(step)
    }
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
        if self.free_step(plan) {
            return true;
        }
        loop {
            while let Some(branch) = self.now.pop() {
                if !self.visited(branch.candidate) {
                    self.follow(branch, plan);
                    return true;
                }
            }
            let Some(later) = self.later.pop_front() else {
                return false;
            };
            self.now = later;
            self.now.reverse();
            // The branches that leave an early execution at an early point come first: a failure is
            // easier to read there.
            self.now.sort_by_key(|branch| Reverse(branch.node));
            self.round += 1;
        }
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        self.arrive(at.trace, at.machine);
        if at.fixed && !self.regions {
            self.note_regions();
        }
        self.able.clear();
        self.able.extend(at.enabled());
        let depth = at.trace.len();
        let last = self.levels[depth].last;
        let Some(way) = self.visit(at, last) else {
            return Choice::Prune(Pruned::Asleep);
        };
        let mut costs = std::mem::take(&mut self.costs);
        self.price.of_each(at, &self.able, last, &mut costs);
        let choice = self.choose_among(at, last, way, &costs);
        self.costs = costs;
        choice
    }

    fn has_all_begin(&self) -> bool {
        true
    }

    fn asks_for_clocks(&self) -> bool {
        false
    }

    fn finish(&mut self, execution: &Execution<'_>) {
        // A failure may have ended the execution before the next choice.
        if self.levels.len() <= execution.trace.len() {
            self.arrive(execution.trace, execution.machine);
        }
    }

    fn more(&self) -> bool {
        let todo = self.levels.iter().any(|level| !level.todo.is_empty());
        let later = self.later.iter().any(|branches| !branches.is_empty());
        !self.started || todo || !self.now.is_empty() || later
    }

    fn coverage(&self) -> Coverage {
        let within = match (self.more(), self.cut) {
            (false, false) => return Coverage::All,
            (false, true) if self.left_out.is_explored(&self.seen, &self.parked) => {
                return Coverage::All;
            }
            (false, true) => Some(self.most as usize),
            // Some executions with the price of this one are not explored.
            (true, _) => self.round.checked_sub(1).map(|round| round as usize),
        };
        Coverage::Within(self.price, within)
    }

    fn memory(&self) -> usize {
        self.seen.memory()
            + self.parked.memory()
            + self.left_out.memory()
            + self.nodes.capacity() * size_of::<Node>()
            + (self.later.iter().chain([&self.now]))
                .map(|branches| branches.capacity() * size_of::<Branch>())
                .sum::<usize>()
    }
}
