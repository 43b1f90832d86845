//! How is every trace explored exactly once, in any order?
//!
//! [`optimal`](crate::rt::engine::strategies::optimal) takes up the planned branch that is deepest.
//! Here any of them may be next ([`order`](crate::rt::engine::order)); still no trace comes twice,
//! and no execution is begun in vain. What depth-first search decides by time, whether something is
//! explored already, is decided here by the order of siblings, which is that in which they were
//! planned:
//!
//! 1. *Who sleeps.* Behind a step sleeps whoever slept before it, and the first step of every elder
//!    sibling, explored or not, as far as the step does not wake them. The elder ones will be
//!    explored in any case, and nobody sleeps there because of a younger one, so no promise goes
//!    round in a circle.
//! 2. *What is covered.* A reversal is covered if a sleeper of its point is a weak initial, or an
//!    elder sibling of the step that was made there; in depth-first search that one is asleep. If a
//!    younger sibling is one the sequence goes on below it, started or not, and so on with the
//!    children there, until a branch ends, where nobody is asleep (then it is covered), or no child
//!    is a weak initial (then what is left of the sequence becomes the last child).
//!
//! So the tree that has been explored in the end is one that depth-first search may explore, and
//! what is proved about that tree (\[SS\] section 6) holds whatever the order in time was.
//!
//! That a younger sibling was started is not enough to cover a reversal: what must be explored
//! below it may show only in executions below an elder one. Let two threads unpark a third, which
//! is in `park_timeout`: that the second one alone has unparked it is found from the execution in
//! which both have, and may have to be planned below a time-out that was explored before. So the
//! steps of a branch are kept until no execution can come by the point where it was planned
//! ([`OpenTree::close`]). A wakeup tree and what was explored of it are one tree here.
//!
//! The price of other orders than depth-first is memory, for all that is begun and not finished,
//! and that an execution shares less with the one before, whose events and clocks are kept.

use crate::rt::event::operation::{OpKind, Step};
use crate::rt::event::{NOWHERE, Trace};

use crate::rt::engine::checkpoint::Unfinished;
use crate::rt::engine::choices::{Choices, Known, Lack};
use crate::rt::engine::cover::{Consumed, Walk};
use crate::rt::engine::driver::Plan;
use crate::rt::engine::open_tree::{NodeId, OpenTree, ROOT};
use crate::rt::engine::order::{Branch, Order};
use crate::rt::engine::reversal::{Reversal, pairs};
use crate::rt::engine::sequence::ReversedEvent;
use crate::rt::engine::sleep::Sleeper;
use crate::rt::engine::{Choice, Execution, Explorer, Point, TieBreak};

/// The explorer that visits each trace once, in an order of choice.
pub(crate) struct Frontier {
    free: TieBreak,
    order: Order,
    tree: OpenTree,
    /// The nodes of the current execution, from the root on: those that it was planned with, and
    /// those beyond up to the last point at which something is planned.
    path: Vec<NodeId>,
    /// How many events the current execution was planned with, and how many it had.
    planned: usize,
    executed: usize,
    /// For each point of the current execution, up to the last one that is known, who sleeps there:
    /// a part of `sleepers`. Nobody does at points behind the planned events.
    sleep: Vec<(u32, u32)>,
    sleepers: Vec<Sleeper>,
    reversal: Reversal,
    choices: Choices,
    /// The scratch of [`Walk`].
    consumed: Consumed,
    /// The nodes from the point of a reversal to where it becomes a branch of its own.
    way: Vec<NodeId>,
    /// Who will be asleep behind them, unless the reversal wakes them.
    asleep: Vec<Sleeper>,
    /// The path of the next execution.
    next: Vec<NodeId>,
    started: bool,
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
        }
    }

    /// Finds out who sleeps at the new points, up to the end of the planned events.
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
        // A writer's sequence leaves readers out; of all others it is known without them what they
        // are.
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

    /// What this outcome of the choice at `first` lacks, as far as that can be told without a
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

    /// Finds out who will be asleep behind the way from the point at `first`: who is now, who goes
    /// to sleep because of elder siblings, and was not woken by the steps on the way.
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

    /// Plans the reversal, instead of the event at `first`.
    fn plan(&mut self, execution: &Execution<'_>, first: u32, second: &ReversedEvent) {
        for depth in self.path.len() - 1..=first as usize {
            let event = execution.trace.at(depth as u32);
            let id = self.tree.push(self.path[depth], event.step(), event.label);
            self.path.push(id);
        }
        let instead = execution.trace.at(first).site;
        let items = self.reversal.items.iter();
        let steps = items.map(|item| (item.step, item.label));
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
        let Some(end) = self.order.next(&self.tree) else {
            return false;
        };
        self.tree.start(end, &mut self.next);
        let same = self.path.iter().zip(&self.next).take_while(|(a, b)| a == b);
        // A failure may have ended the last execution before it came to the end of its branch.
        plan.common_prefix = (same.count() - 1).min(self.executed);
        // Behind what was planned nobody sleeps.
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
        self.tree.count(&self.path);
        self.tree.close(&mut self.path);
        self.executed = execution.trace.len();
    }

    fn unfinished(&self, _trace: &Trace) -> Option<Unfinished> {
        // Directly after `resume` there is nothing new.
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
        self.started = true;
        // What was planned last is in general what comes first in tree order.
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

    fn memory(&self) -> usize {
        self.tree.bytes()
            + self.order.bytes()
            + (self.path.capacity() + self.next.capacity()) * size_of::<NodeId>()
            + self.sleep.capacity() * size_of::<(u32, u32)>()
            + self.sleepers.capacity() * size_of::<Sleeper>()
    }
}
