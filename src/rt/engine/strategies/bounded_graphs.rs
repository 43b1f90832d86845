//! Which graphs of C11 can be reached with few old values, or few interventions of the scheduler?
//!
//! A step reads an old value if its location has a newer store by then, and a store may go behind
//! one that is newer. A graph has a [`Price`]: the least number of such steps with which its events
//! come in some order; or the least number of preemptions, switches or delays. The executions under
//! sequential consistency are those without an old value, and most bugs of weak memory need one or
//! two. [`BoundedGraphs`] explores exactly the graphs with a price of at most k: first those of
//! price 0, then those of price 1, and so on.
//!
//! The search over graphs (`graphs.rs`) cannot be cut short at a price: the execution that shows
//! what else is possible may be dearer than that (`bound.rs`). So this search tries every step at
//! every place and remembers where it has been. A place is the graph of a prefix, by a hash of 128
//! bits, and the thread of the last step, if its price counts that. What follows behind a place,
//! and at which price, depends on the place alone, and places of low price come first. So the first
//! visit is the cheapest, and the only one.
//!
//! A spawn and a join neither read nor write what others do. If only old values count, a thread
//! that is about to make such a step makes it before anything else happens, and a place is the same
//! before and behind the step.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::FxHashSet;

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Step};
use crate::rt::event::verdict::Pruned;
use crate::rt::memory::MemoryModel;
use crate::rt::memory::search::Free;

use crate::rt::engine::plan::Plan;
use crate::rt::engine::price::{Price, is_over, pending};
use crate::rt::engine::weak_memory::{Possible, WeakMemory};
use crate::rt::engine::{Choice, Coverage, Execution, Explorer, Point};

/// The explorer that visits graphs in the order of their prices.
pub(crate) struct BoundedGraphs {
    weak: Rc<RefCell<WeakMemory>>,
    price: Price,
    /// The highest price of an execution.
    most: u32,
    /// The price of the executions that are explored now.
    round: u32,
    /// The branches of executions with this price, and those with a price that is higher by 1, 2,
    /// ...
    now: Vec<Branch>,
    later: VecDeque<Vec<Branch>>,
    /// Prefixes of branches, which share their beginnings. The first node is the empty prefix.
    nodes: Vec<Node>,
    /// The nodes of the prefixes of the current execution.
    here: Vec<u32>,
    /// The first steps of the current execution, which are planned.
    path: Vec<Step>,
    seen: FxHashSet<Place>,
    /// The places behind steps that were too dear.
    left_out: FxHashSet<Place>,
    started: bool,
    costs: Vec<(ThreadId, u32)>,
}

/// Stands for the last thread where an execution has come to its end.
const NO_THREAD: ThreadId = ThreadId(u32::MAX);

/// The graph of a prefix, and the thread of its last step, if the price counts that.
type Place = (u128, Option<ThreadId>);

#[derive(Clone, Copy)]
struct Node {
    parent: u32,
    step: Step,
}

/// A step behind a prefix, and the place to which it leads.
#[derive(Clone, Copy)]
struct Branch {
    node: u32,
    step: Step,
    to: Place,
}

impl BoundedGraphs {
    /// Explores executions with a price of at most `most`.
    pub(crate) fn new(price: Price, most: usize) -> BoundedGraphs {
        BoundedGraphs {
            weak: Rc::new(RefCell::new(WeakMemory::new(Free::Last))),
            price,
            most: u32::try_from(most).unwrap_or(u32::MAX),
            round: 0,
            now: Vec::new(),
            later: VecDeque::new(),
            nodes: vec![Node {
                parent: 0,
                step: Step::of(ThreadId::MAIN),
            }],
            here: vec![0],
            path: Vec::new(),
            seen: FxHashSet::default(),
            left_out: FxHashSet::default(),
            started: false,
            costs: Vec::new(),
        }
    }

    /// Plans the prefix of a branch, and its step.
    fn follow(&mut self, Branch { node, step, .. }: Branch, plan: &mut Plan) {
        let mut followed = vec![node];
        while let Some(&node) = followed.last().filter(|&&node| node != 0) {
            followed.push(self.nodes[node as usize].parent);
        }
        followed.reverse();
        let same = self.here.iter().zip(&followed);
        let common = same.take_while(|(a, b)| a == b).count() - 1;
        plan.common_prefix = common;
        plan.repeated = followed.len() - 1 - common;
        plan.branches = true;
        self.path.clear();
        for &node in &followed[1..] {
            self.path.push(self.nodes[node as usize].step);
        }
        self.path.push(step);
        self.here = followed;
        self.go(step);
    }

    /// The current execution makes this step.
    fn go(&mut self, step: Step) {
        let parent = *self.here.last().expect("the empty prefix");
        self.nodes.push(Node { parent, step });
        self.here.push(self.nodes.len() as u32 - 1);
    }

    /// A step of one of these threads that costs nothing and leads to a new place. Schedules the
    /// others.
    fn choose_among(&mut self, at: &Point<'_>, able: &[ThreadId]) -> Choice {
        let node = *self.here.last().expect("the empty prefix");
        let mut costs = std::mem::take(&mut self.costs);
        self.price.of_each(at, able, at.last, &mut costs);
        let first_new = self.now.len();
        let mut chosen = None;
        for &(thread, cost) in &costs {
            let mut weak = self.weak.borrow_mut();
            let possible =
                weak.possible_steps(at.machine, at.trace, thread, self.price != Price::OldValues);
            drop(weak);
            for Possible {
                step,
                is_old,
                graph,
            } in possible
            {
                let (last, cost) = match self.price {
                    Price::OldValues => (None, u32::from(is_old)),
                    Price::Preemptions | Price::Switches | Price::Delays => (Some(thread), cost),
                };
                let to = (graph, last);
                if self.seen.contains(&to) {
                    continue;
                }
                let branch = Branch { node, step, to };
                let total = self.round.saturating_add(cost);
                match cost.checked_sub(1) {
                    _ if total > self.most => _ = self.left_out.insert(to),
                    None if chosen.is_none() => chosen = Some(branch),
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
        }
        self.costs = costs;
        // The first of them is the next one.
        self.now[first_new..].reverse();
        let Some(Branch { step, to, .. }) = chosen else {
            return Choice::Prune(Pruned::Asleep);
        };
        self.seen.insert(to);
        self.go(step);
        Choice::Run(step)
    }
}

impl Explorer for BoundedGraphs {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        if !std::mem::replace(&mut self.started, true) {
            return true;
        }
        loop {
            while let Some(branch) = self.now.pop() {
                if self.seen.insert(branch.to) {
                    self.follow(branch, plan);
                    return true;
                }
            }
            let Some(later) = self.later.pop_front() else {
                return false;
            };
            self.now = later;
            // Those that leave an early execution come first.
            self.now.reverse();
            self.round += 1;
        }
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        let depth = at.trace.len();
        if let Some(&step) = self.path.get(depth) {
            return match at.is_able(step.thread) {
                false => Choice::NothingEnabled,
                true if at.is_possible(step) => Choice::Run(step),
                true => Choice::Diverged(step.thread),
            };
        }
        // The driver asks twice where it has released threads that wait.
        self.here.truncate(depth + 1);
        if at.fixed {
            let choice = at.go_on();
            if let Choice::Run(step) = choice {
                self.go(step);
            }
            return choice;
        }
        let live = at.machine.live().iter().copied();
        let mut able: Vec<ThreadId> = live.filter(|&thread| at.is_able(thread)).collect();
        if able.is_empty() {
            // Another execution may have come to the same end with another last step.
            let graph = self.weak.borrow().search.model.graph().key(true);
            let is_new = !is_over(at, &able) || self.seen.insert((graph, Some(NO_THREAD)));
            return match is_new {
                true => Choice::NothingEnabled,
                false => Choice::Prune(Pruned::Asleep),
            };
        }
        if self.price == Price::OldValues {
            let is_apart = |&&thread: &&ThreadId| {
                let kind = pending(at, thread);
                kind.is_some_and(|kind| matches!(kind, OpKind::Spawn { .. } | OpKind::Join { .. }))
            };
            if let Some(&thread) = able.iter().find(is_apart) {
                self.go(Step::of(thread));
                return Choice::Run(Step::of(thread));
            }
            // Few switches are easy to read.
            able.sort_by_key(|&thread| (thread != at.last, thread == ThreadId::MAIN));
        }
        self.choose_among(at, &able)
    }

    fn has_all_begin(&self) -> bool {
        true
    }

    fn asks_for_clocks(&self) -> bool {
        false
    }

    fn finish(&mut self, _: &Execution<'_>) {}

    fn weak(&self) -> Option<Rc<RefCell<WeakMemory>>> {
        Some(self.weak.clone())
    }

    fn more(&self) -> bool {
        let later = self.later.iter().any(|branches| !branches.is_empty());
        !self.started || !self.now.is_empty() || later
    }

    fn coverage(&self) -> Coverage {
        let within = match self.more() {
            // A place that was too dear may have been visited from elsewhere.
            false if self.left_out.is_subset(&self.seen) => return Coverage::All,
            false => Some(self.most as usize),
            // Some executions with the price of this one are not explored.
            true => self.round.checked_sub(1).map(|round| round as usize),
        };
        Coverage::Within(self.price, within)
    }

    fn memory(&self) -> usize {
        (self.seen.capacity() + self.left_out.capacity()) * size_of::<Place>()
            + self.nodes.capacity() * size_of::<Node>()
            + (self.later.iter().chain([&self.now]))
                .map(|branches| branches.capacity() * size_of::<Branch>())
                .sum::<usize>()
    }
}
