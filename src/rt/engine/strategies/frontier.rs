//! How is every trace explored exactly once, in any order?
//!
//! [`optimal`](crate::rt::engine::strategies::optimal) explores the deepest planned branch next.
//! Here any planned branch may be next ([`order`](crate::rt::engine::order)); still the explorer
//! visits no trace twice and begins no execution in vain. Depth-first search decides by time
//! whether a branch is explored already. This explorer decides by the order of siblings, which is
//! the order in which they were planned; a sibling that was planned earlier is the elder one:
//!
//! 1. *Sleep sets.* The sleep set behind a step consists of the sleepers before it and the first
//!    step of every elder sibling, explored or not, without those that the step wakes. The elder
//!    siblings will be explored in any case, and their sleep sets do not depend on a younger one,
//!    so the coverage is never circular.
//! 2. *Coverage.* A reversal is covered if a sleeper of its point is a weak initial, or an elder
//!    sibling of the step that was made there is one; in depth-first search that sibling is in the
//!    sleep set. If a younger sibling is a weak initial, the sequence continues below it, whether
//!    that sibling was begun or not, and then among the children there. This ends in one of two
//!    ways. At the end of a branch the sleep set is empty, and the reversal is covered. Or no child
//!    is a weak initial, and the rest of the sequence becomes the last child.
//!
//! So the final tree is one that depth-first search may explore, and the proofs about that tree
//! (\[SS\] section 6) hold in any order of time.
//!
//! A younger sibling that was begun does not yet cover a reversal: a sequence that must be explored
//! below it may show only in executions below an elder sibling. Example: two threads unpark a third
//! one, which is in `park_timeout`. The execution in which only the second of them has unparked it
//! is found from the execution in which both have, and may have to be planned below a time-out that
//! was explored before. So the explorer keeps the steps of a branch until no execution can pass the
//! point where it was planned ([`OpenTree::close`]). A wakeup tree and its explored part are one
//! tree here.
//!
//! Other orders than depth-first cost memory for all branches that are begun and not finished. An
//! execution also shares less with the one before, and only the shared events and clocks are kept.

use crate::rt::event::operation::{OpKind, Step};
use crate::rt::event::{NOWHERE, Trace};

use crate::rt::engine::checkpoint::Unfinished;
use crate::rt::engine::choices::{Choices, Known, Lack};
use crate::rt::engine::cover::{Consumed, Walk};
use crate::rt::engine::open_tree::{NodeId, OpenTree, ROOT};
use crate::rt::engine::order::{Branch, Order};
use crate::rt::engine::plan::Plan;
use crate::rt::engine::reversal::{Reversal, pairs};
use crate::rt::engine::sequence::ReversedEvent;
use crate::rt::engine::sleep::Sleeper;
use crate::rt::engine::stats::Trees;
use crate::rt::engine::{Choice, Execution, Explorer, Point, TieBreak};

/// The explorer that visits each trace once, in an order of choice.
pub(crate) struct Frontier {
    free: TieBreak,
    order: Order,
    tree: OpenTree,
    /// The nodes of the current execution, from the root on: those of its plan, and those beyond up
    /// to the last point with a planned branch.
    path: Vec<NodeId>,
    /// The number of events in the plan of the current execution, and the number of its events.
    planned: usize,
    executed: usize,
    /// For each point of the current execution, up to the last one that is known, its sleep set as
    /// a part of `sleepers`. Points behind the planned events have empty sleep sets.
    sleep: Vec<(u32, u32)>,
    sleepers: Vec<Sleeper>,
    reversal: Reversal,
    choices: Choices,
    /// The buffer of [`Walk`].
    consumed: Consumed,
    /// The nodes from the point of a reversal to its insertion point.
    way: Vec<NodeId>,
    /// The steps that will be in the sleep set behind these nodes, unless the reversal wakes them.
    asleep: Vec<Sleeper>,
    /// The path of the next execution.
    next: Vec<NodeId>,
    started: bool,
    /// The most branches at once, and the most events up to the end of one.
    widest: u32,
    depth: usize,
}

impl Frontier {
    pub(crate) fn new(free: TieBreak, order: Order) -> Frontier {
        Frontier {
            free,
            order,
            tree: OpenTree::new(),
            path: vec![ROOT],
            planned: 0,
            executed: 0,
            sleep: vec![(0, 0)],
            sleepers: Vec::new(),
            reversal: Reversal::default(),
            choices: Choices::default(),
            consumed: Consumed::default(),
            way: Vec::new(),
            asleep: Vec::new(),
            next: Vec::new(),
            started: false,
            widest: 0,
            depth: 0,
        }
    }

    /// Computes the sleep sets of the new points, up to the end of the planned events.
    fn extend(&mut self, execution: &Execution<'_>) {
        for depth in self.sleep.len()..execution.trace.len().min(self.planned + 1) {
            let event = execution.trace.at(depth as u32 - 1);
            let survives = |sleeper: &Sleeper| {
                sleeper.survives(&execution.machine.sets, event.thread, event.label)
            };
            let (from, to) = self.sleep[depth - 1];
            let start = self.sleepers.len() as u32;
            for i in from..to {
                let sleeper = self.sleepers[i as usize];
                if survives(&sleeper) {
                    self.sleepers.push(sleeper);
                }
            }
            let siblings = self.tree.children(self.path[depth - 1]);
            for id in siblings.take_while(|&id| id != self.path[depth]) {
                let sleeper = self.tree.sleeper(id);
                if survives(&sleeper) {
                    self.sleepers.push(sleeper);
                }
            }
            self.sleep.push((start, self.sleepers.len() as u32));
        }
        assert!(
            self.sleep
                .get(self.planned)
                .is_none_or(|(from, to)| from == to),
            "dpor bug: a thread is asleep at the end of a planned sequence"
        );
    }

    /// Plans the sequence that reverses this pair, unless it is covered.
    fn reverse(&mut self, execution: &Execution<'_>, first: u32, second: &ReversedEvent) {
        if execution.is_frozen(first as usize) {
            return;
        }
        if let OpKind::Choose { .. } = second.operation.kind {
            match self.lack(execution, first, second.step) {
                Lack::Nothing => return,
                Lack::Step => {
                    let e = execution.trace.at(first);
                    self.reversal.only(second.step, e.label, e.index);
                    self.way.clear();
                    return self.plan(execution, first, second);
                }
                Lack::Sequence => {}
            }
        }
        // The sequence of a writer leaves readers out, so it is built here. The walk needs no built
        // sequence for any other operation.
        let writes = second.operation.kind == OpKind::WriteLock;
        let mut walk = Walk::new(execution, first, second, &mut self.consumed);
        if writes {
            if !self.reversal.build_notdep(execution, first, second, None) {
                return;
            }
            walk.keep_to(&self.reversal);
        }
        let (from, to) = self.sleep.get(first as usize).copied().unwrap_or_default();
        for &Sleeper { step, label } in &self.sleepers[from as usize..to as usize] {
            if walk.is_impossible() || walk.has_weak_initial(step, label) {
                return;
            }
        }
        self.way.clear();
        if let Some(&[point, current, ..]) = self.path.get(first as usize..) {
            let mut younger = false;
            let mut children = self.tree.children(point);
            while let Some(id) = children.next() {
                if id == current {
                    younger = true;
                    continue;
                }
                let child = self.tree.node(id);
                if walk.has_weak_initial(child.step, child.label) {
                    if !younger || child.awake {
                        return;
                    }
                    walk.go_by(child.step.thread, child.label);
                    self.way.push(id);
                    children = self.tree.children(id);
                }
                if walk.is_impossible() {
                    return;
                }
            }
        }
        let label = walk.second_label();
        if walk.is_impossible() {
            return;
        }
        if !writes && !self.reversal.build_notdep(execution, first, second, label) {
            return;
        }
        (self.reversal).leave_behind(execution, first, second, &self.consumed);
        self.put_to_sleep(execution, first);
        self.reversal.trim(execution, &self.asleep);
        self.plan(execution, first, second);
    }

    /// The missing part of this outcome of the choice at `first`, as far as it is known without a
    /// search.
    fn lack(&mut self, execution: &Execution<'_>, first: u32, step: Step) -> Lack {
        let (from, to) = self.sleep.get(first as usize).copied().unwrap_or_default();
        let sleepers = &self.sleepers[from as usize..to as usize];
        let (tree, path) = (&self.tree, &self.path);
        self.choices.lack(execution, first, step, || {
            let around = match path.get(first as usize..) {
                Some(&[point, current, ..]) => Some((point, current)),
                _ => None,
            };
            let siblings = around.into_iter().flat_map(|(point, current)| {
                let mut younger = false;
                let siblings = tree.children(point).map(move |id| {
                    younger |= id == current;
                    let covers = !younger || tree.node(id).awake;
                    (id != current).then_some((tree.node(id).step, covers))
                });
                siblings.flatten()
            });
            let asleep = sleepers.iter().map(|sleeper| (sleeper.step, true));
            let known = asleep.chain(siblings);
            known.map(|(step, covers)| Known { step, covers })
        })
    }

    /// Computes the sleep set behind the nodes in `way`, from the point at `first` on: the sleepers
    /// there and the steps of elder siblings, without those that the steps on the way wake.
    fn put_to_sleep(&mut self, execution: &Execution<'_>, first: u32) {
        let (from, to) = self.sleep.get(first as usize).copied().unwrap_or_default();
        self.asleep.clear();
        (self.asleep).extend_from_slice(&self.sleepers[from as usize..to as usize]);
        let Some(&[mut point, _, ..]) = self.path.get(first as usize..) else {
            let e = execution.trace.at(first);
            self.asleep.push(Sleeper {
                step: e.step(),
                label: e.label,
            });
            return;
        };
        for &next in self.way.iter().chain([&NOWHERE]) {
            let children = self.tree.children(point);
            let elder = children.take_while(|&id| id != next);
            self.asleep.extend(elder.map(|id| self.tree.sleeper(id)));
            if next != NOWHERE {
                let Sleeper { step, label } = self.tree.sleeper(next);
                let sets = &execution.machine.sets;
                (self.asleep).retain(|sleeper| sleeper.survives(sets, step.thread, label));
                point = next;
            }
        }
    }

    /// Plans the reversal in place of the event at `first`.
    fn plan(&mut self, execution: &Execution<'_>, first: u32, second: &ReversedEvent) {
        for depth in self.path.len() - 1..=first as usize {
            let event = execution.trace.at(depth as u32);
            let id = self.tree.push(self.path[depth], event.step(), event.label);
            self.path.push(id);
        }
        let instead = execution.trace.at(first).site;
        let items = self.reversal.items.iter();
        let steps = items.map(|item| (item.step, item.label));
        let end = first as usize + self.way.len() + steps.len();
        self.depth = self.depth.max(end);
        let last = self.way.last().copied();
        let parent = last.unwrap_or(self.path[first as usize]);
        let end = self.tree.plan(parent, steps, instead);
        self.order.add(Branch {
            end,
            depth: first + self.way.len() as u32,
            pair: (Some(instead), second.site(execution)),
        });
    }
}

impl Explorer for Frontier {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        if !self.started {
            self.started = true;
            return true;
        }
        let Some(end) = (self.order).next(self.tree.branches(), |before| self.tree.nth(before))
        else {
            return false;
        };
        self.tree.start(end, &mut self.next);
        let same = self.path.iter().zip(&self.next).take_while(|(a, b)| a == b);
        // A failure may have ended the last execution before the end of its branch.
        plan.common_prefix = (same.count() - 1).min(self.executed);
        // Behind the planned events the sleep sets are empty.
        let none = self.sleep.last().map_or(0, |&(_, end)| end);
        self.sleep
            .resize(self.sleep.len().max(plan.common_prefix + 1), (none, none));
        self.sleep.truncate(plan.common_prefix + 1);
        self.sleepers
            .truncate(self.sleep[plan.common_prefix].1 as usize);
        std::mem::swap(&mut self.path, &mut self.next);
        for &id in &self.path[plan.common_prefix + 1..] {
            let node = self.tree.node(id);
            if node.begins {
                plan.replaces = node.instead;
                plan.repeated = plan.steps.len();
            }
            plan.steps.push((node.step, Some(node.label)));
        }
        self.planned = self.path.len() - 1;
        true
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        self.free.choose(at)
    }

    fn takes_awaits(&self) -> bool {
        true
    }

    fn lets_the_last_go_on(&self) -> bool {
        self.free == TieBreak::Last
    }

    fn finish(&mut self, execution: &Execution<'_>) {
        self.extend(execution);
        self.choices.forget();
        pairs(execution, |first, second| {
            self.reverse(execution, first, second);
            true
        });
        self.widest = self.widest.max(self.tree.branches());
        self.tree.count(&self.path);
        self.tree.close(&mut self.path);
        self.executed = execution.trace.len();
    }

    fn unfinished(&self, _trace: &Trace) -> Option<Unfinished> {
        // Directly after `resume` there are no new branches.
        (self.executed > 0 && self.more()).then(|| Unfinished {
            open: self.tree.save(),
            ..Unfinished::default()
        })
    }

    fn resume(&mut self, unfinished: &Unfinished) -> bool {
        let mut branches = Vec::new();
        let tree = OpenTree::restore(&unfinished.open, |end, depth| {
            let pair = (None, None);
            branches.push(Branch { end, depth, pair });
        });
        let Some(tree) = tree else { return false };
        self.tree = tree;
        self.widest = self.tree.branches();
        let ends = unfinished.open.iter().filter(|open| open.ends);
        let depth = ends.map(|open| open.node.depth as usize + 1).max();
        self.depth = depth.unwrap_or(0);
        self.started = true;
        // The branch that was planned last is mostly the first one in tree order.
        for branch in branches.into_iter().rev() {
            self.order.add(branch);
        }
        true
    }

    fn more(&self) -> bool {
        !self.started || self.tree.branches() > 0
    }

    fn estimate(&self) -> Option<f64> {
        self.started.then(|| self.tree.estimate())
    }

    fn trees(&self) -> Option<Trees> {
        let branches = self.widest as usize;
        Some(Trees {
            depth: self.depth,
            widest: branches,
            branches,
            bytes: self.tree.peak(),
        })
    }

    fn memory(&self) -> usize {
        self.tree.bytes()
            + self.order.bytes()
            + (self.path.capacity() + self.next.capacity()) * size_of::<NodeId>()
            + self.sleep.capacity() * size_of::<(u32, u32)>()
            + self.sleepers.capacity() * size_of::<Sleeper>()
    }
}
