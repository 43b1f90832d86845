//! How is every trace explored exactly once?
//!
//! Optimal-DPOR: \[SS\] Algorithms 2, 4 and 6. Each point of the current execution has a sleep set
//! and a wakeup tree. When an execution has ended, each reversible race, blocking pair and choice
//! gives a sequence ([`reversal`](crate::rt::engine::reversal)). Unless a step in the sleep set or
//! a branch of the wakeup tree covers the sequence, it is inserted into the tree at the point
//! before the pair's first event. The next execution starts at the deepest point with a branch left
//! in its tree: the step just explored there enters the sleep set, and the next execution follows
//! the next branch to its leaf.
//!
//! At a leaf the sleep set is empty. So the rest of the execution is free: it needs no check of
//! sleep sets and cannot turn out to be redundant. The code asserts that, in release builds too.
//!
//! Deviations from the paper, by number:
//! 1. Sleepers and branches are steps, that is a thread *and* its outcome, so that a choice is a
//!    race of an event with its own other outcomes (`docs/ALGORITHMS.md`, deviation 1).
//! 2. The label of the reversed event is computed anew (`docs/ALGORITHMS.md`, deviation 2).
//! 3. The insertion ([`cover`](crate::rt::engine::cover)) descends into the first child that is a
//!    weak initial, and stops at a leaf; the tree then holds a branch that covers the sequence,
//!    though maybe not the sequence itself.
//! 4. `Optimal` does not insert the whole sequence, but only the events that execute the reversed
//!    event and wake all steps that will be in the sleep set there, those of the branches that are
//!    explored earlier included. So the sleep set at the end of a branch is still empty, no later
//!    branch repeats the executions behind it, and the rest of the sequence is among the executions
//!    explored from there.

use crate::rt::event::id::{ThreadId, lengthen};
use crate::rt::event::operation::{OpKind, Step};
use crate::rt::event::{Event, NOWHERE, Trace};
use crate::rt::pooled::{Empty, Pooled, pooled};
use crate::rt::rare::{Roomy, cold_path, mostly, rarely};
use crate::rt::relation::independence::{Label, ReadSets};

use crate::rt::engine::checkpoint::{SavedPoint, Unfinished};
use crate::rt::engine::choices::{Choices, Known, Lack};
use crate::rt::engine::cover::{Consumed, Needed, Walk, comes_first};
use crate::rt::engine::plan::Plan;
use crate::rt::engine::reversal::{Reversal, direct, indirect};
use crate::rt::engine::sequence::{ReversedEvent, SequenceEvent};
use crate::rt::engine::sleep::Sleeper;
use crate::rt::engine::stats::Trees;
use crate::rt::engine::wakeup_tree::{Arena, List, NodeId};
use crate::rt::engine::{Choice, Execution, Explorer, Point, TieBreak};

/// The explorer that visits each trace once.
#[derive(Default)]
pub(crate) struct Optimal {
    free: TieBreak,
    /// One for each point of the current execution up to the last one with a sleep set or wakeup
    /// tree that is not empty.
    levels: Vec<Level>,
    /// The sleep sets of all levels, one after the other.
    sleepers: Vec<Sleeper>,
    arena: Arena,
    reversal: Reversal,
    /// The buffer of [`Walk`].
    consumed: Consumed,
    insertion_point: InsertionPoint,
    needed: Needed,
    /// For each race of the execution whether its reversal is covered regardless of the events
    /// behind the race.
    settled: Vec<bool>,
    choices: Choices,
    /// The point at which the next execution branches off, and the step that was explored there
    /// last.
    next: Option<Branch>,
    started: bool,
    /// The number of branches in all wakeup trees.
    branches: u32,
    /// The trees at their largest, without their bytes.
    largest: Trees,
    /// The steps up to `next` that another process has made, if this process has made none yet.
    elsewhere: Vec<(Step, Option<Label>)>,
}

/// The point in the wakeup tree that the last walk has reached.
#[derive(Default)]
struct InsertionPoint {
    /// The nodes from the root down to that point.
    path: Vec<NodeId>,
    /// The steps that will be in the sleep set behind these nodes, unless the sequence wakes them.
    asleep: Vec<Sleeper>,
}

impl Empty for InsertionPoint {
    fn empty(&mut self) {
        let InsertionPoint { path, asleep } = self;
        path.empty();
        asleep.empty();
    }
}

/// A point of the current execution.
#[derive(Clone, Copy, Debug)]
struct Level {
    sleep: (u32, u32),
    /// The branches still to be explored, without the current one.
    wakeup_tree: List,
    /// The number of these branches.
    branches: u32,
    /// Whether the event here is a choice, and each other outcome of it is in the sleep set or
    /// planned.
    settled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Branch {
    depth: usize,
    step: Step,
    label: Label,
}

impl Level {
    fn new(sleep: (u32, u32), wakeup_tree: List, branches: u32) -> Level {
        Level {
            sleep,
            wakeup_tree,
            branches,
            settled: false,
        }
    }
}

pooled!(Box<Optimal>);

impl Empty for Optimal {
    fn empty(&mut self) {
        let Optimal {
            free: _,
            levels,
            sleepers,
            arena,
            reversal,
            consumed,
            insertion_point,
            needed,
            settled,
            choices,
            next,
            started,
            branches,
            largest,
            elsewhere,
        } = self;
        levels.empty();
        sleepers.empty();
        arena.empty();
        reversal.empty();
        consumed.empty();
        insertion_point.empty();
        needed.empty();
        settled.empty();
        *choices = Choices::default();
        (*next, *started) = (None, false);
        (*branches, *largest) = (0, Trees::default());
        elsewhere.empty();
    }
}

impl Optimal {
    pub(crate) fn new(free: TieBreak) -> Box<Optimal> {
        let mut optimal = Pooled::<Box<Optimal>>::default();
        optimal.free = free;
        optimal.into_inner()
    }

    /// Gives every new point up to the end of the wakeup sequence its sleep set. Behind that end
    /// all sleep sets are empty, and a point gets its level when a sequence is planned there.
    fn extend(&mut self, execution: &Execution<'_>) {
        let planned = execution.first_new + execution.planned;
        let end = execution.trace.len().min(planned + 1);
        for depth in self.levels.len().min(execution.first_new + 1)..end {
            let sleep = if rarely!(depth == 0) {
                (0, 0)
            } else {
                let (from, to) = self.levels[depth - 1].sleep;
                let event = execution.trace.at(depth as u32 - 1);
                let start = self.sleepers.len() as u32;
                for i in from..to {
                    let sleeper = self.sleepers[i as usize];
                    if sleeper.survives(&execution.machine.sets, event.thread, event.label) {
                        self.sleepers.put(sleeper);
                    }
                }
                (start, self.sleepers.len() as u32)
            };
            assert!(
                depth < planned || sleep.0 == sleep.1,
                "dpor bug: a thread is asleep at the end of a wakeup sequence"
            );
            match self.levels.get_mut(depth) {
                Some(level) => level.sleep = sleep,
                None => self.levels.put(Level::new(sleep, List::EMPTY, 0)),
            }
        }
    }

    /// Makes levels for this many points. The new ones have empty sleep sets.
    #[inline(never)]
    fn deepen(&mut self, points: usize) {
        let end = self.levels.last().map_or(0, |level| level.sleep.1);
        let level = Level::new((end, end), List::EMPTY, 0);
        self.levels.resize(points, level);
    }

    /// Plans the sequence that reverses this pair, unless it is covered. Returns whether the
    /// sequence will then be covered in every execution that has the same events up to the second
    /// one.
    fn reverse(&mut self, execution: &Execution<'_>, first: u32, second: &ReversedEvent) -> bool {
        if rarely!(execution.is_frozen(first as usize)) {
            return false;
        }
        if self.levels.len() <= first as usize {
            self.deepen(first as usize + 1);
        }
        if let OpKind::Choose { .. } = second.operation.kind
            && !self.lacks_sequence(execution, first, second.step)
        {
            return false;
        }
        let Level {
            sleep, wakeup_tree, ..
        } = self.levels[first as usize];
        let sleepers = &self.sleepers[sleep.0 as usize..sleep.1 as usize];
        let comes_first = comes_first(execution, first, second);
        if comes_first {
            let is_asleep = |sleeper: &Sleeper| sleeper.step == second.step;
            if sleepers.iter().any(is_asleep) {
                return true;
            }
            if wakeup_tree.is_empty()
                && let Some(label) = second.known_label()
            {
                let (sets, thread) = (&execution.machine.sets, second.step.thread);
                let sleeps_on = |sleeper: &Sleeper| sleeper.survives(sets, thread, label);
                if !sleepers.iter().any(sleeps_on) {
                    self.insert_single(execution, first, second, label);
                    return true;
                }
            }
        }
        self.insert_wakeup(execution, first, second, comes_first)
    }

    /// [`Optimal::insert_wakeup`] where the reversed event comes first in the sequence and wakes
    /// every sleeper, and the wakeup tree is empty. Then no step and no branch covers the sequence,
    /// the reversed event alone is enough to insert, and both hold regardless of the events behind
    /// the race.
    fn insert_single(
        &mut self,
        execution: &Execution<'_>,
        first: u32,
        second: &ReversedEvent,
        label: Label,
    ) {
        let index = second.index(execution);
        // The full insertion must have the same result.
        #[cfg(test)]
        {
            assert!(self.insert_wakeup(execution, first, second, true));
            let level = &mut self.levels[first as usize];
            let node = self.arena.pop(&mut level.wakeup_tree);
            let node = node.expect("it is planned");
            assert!(level.wakeup_tree.is_empty() && node.children.is_empty());
            level.branches -= 1;
            self.branches -= 1;
            let planned = (node.step, node.label, node.index);
            assert_eq!(planned, (second.step, label, index));
        }
        let wakeup_tree = &mut self.levels[first as usize].wakeup_tree;
        self.arena.push(wakeup_tree, second.step, label, index);
        self.count_branch(first, 1);
    }

    /// A branch of so many steps has been added to the tree at `first`.
    fn count_branch(&mut self, first: u32, steps: usize) {
        let level = &mut self.levels[first as usize];
        level.branches += 1;
        self.branches += 1;
        let largest = &mut self.largest;
        largest.widest = largest.widest.max(level.branches as usize);
        largest.branches = largest.branches.max(self.branches as usize);
        largest.depth = largest.depth.max(first as usize + steps);
    }

    /// [`Optimal::reverse`] where no quick check shows that the sequence is covered.
    #[inline(never)]
    fn insert_wakeup(
        &mut self,
        execution: &Execution<'_>,
        first: u32,
        second: &ReversedEvent,
        comes_first: bool,
    ) -> bool {
        let Level {
            sleep, wakeup_tree, ..
        } = self.levels[first as usize];
        let sleepers = &self.sleepers[sleep.0 as usize..sleep.1 as usize];
        let mut walk = Walk::new(execution, first, second, &mut self.consumed);
        // The sequence of a writer leaves readers out, so it is built here. The walk needs no built
        // sequence for any other operation.
        let writes = matches!(second.operation.kind, OpKind::WriteLock);
        if writes {
            // Building the sequence takes longer than the jump to this cold code.
            cold_path();
            if !self.reversal.build_notdep(execution, first, second, None) {
                return false;
            }
            walk.keep_to(&self.reversal);
        }
        for sleeper in sleepers {
            if walk.has_weak_initial_sleeper(sleeper) || walk.is_impossible() {
                return walk.is_settled();
            }
        }
        let path = &mut self.insertion_point.path;
        path.clear();
        // Many trees are empty.
        if !wakeup_tree.is_empty() && walk.descend(&self.arena, wakeup_tree, path) {
            return walk.is_settled();
        }
        let label = walk.second_label();
        if walk.is_impossible() {
            return walk.is_settled();
        }
        let settled_at = walk.settled_at();
        let tree = (&self.arena, wakeup_tree);
        let waker = walk.waker();
        (self.insertion_point).put_to_sleep(execution, first, sleepers, tree, waker);
        let items =
            if mostly!(walk.gather(&self.insertion_point.asleep, comes_first, &mut self.needed)) {
                // The full computation must have the same result.
                #[cfg(test)]
                {
                    (self.insertion_point).put_to_sleep(execution, first, sleepers, tree, None);
                    let made = &mut self.reversal;
                    assert!(made.build_notdep(execution, first, second, label));
                    made.leave_behind(execution, first, second, &self.consumed);
                    made.trim(execution, &self.insertion_point.asleep);
                    assert_eq!(made.items, self.needed.items);
                }
                &self.needed.items
            } else {
                if !writes && !self.reversal.build_notdep(execution, first, second, label) {
                    return false;
                }
                (self.reversal).leave_behind(execution, first, second, &self.consumed);
                self.reversal.trim(execution, &self.insertion_point.asleep);
                &self.reversal.items
            };
        let mut parent = self.insertion_point.path.last().copied();
        let wakeup_tree = &mut self.levels[first as usize].wakeup_tree;
        for &SequenceEvent {
            step, label, index, ..
        } in items
        {
            parent = Some(match parent {
                Some(parent) => self.arena.push_child(parent, step, label, index),
                None => self.arena.push(wakeup_tree, step, label, index),
            });
        }
        let before = |item: &SequenceEvent, at| item.position < at || item.position == NOWHERE;
        let is_settled = settled_at.is_some_and(|at| items.iter().all(|item| before(item, at)));
        let steps = self.insertion_point.path.len() + items.len();
        self.count_branch(first, steps);
        is_settled
    }
}

impl Optimal {
    /// Whether this outcome of the choice at `first` lacks a sequence, which the caller has to
    /// find. If the outcome lacks only a step, this function plans the step.
    #[inline(never)]
    fn lacks_sequence(&mut self, execution: &Execution<'_>, first: u32, step: Step) -> bool {
        let lack = self.lack(execution, first, step);
        if lack == Lack::Step {
            let wakeup_tree = &mut self.levels[first as usize].wakeup_tree;
            let Event { label, index, .. } = *execution.trace.at(first);
            self.arena.push(wakeup_tree, step, label, index);
            self.count_branch(first, 1);
        }
        lack == Lack::Sequence
    }

    /// The missing part of this outcome of the choice at `first`. Once no outcome lacks anything,
    /// that holds for as long as the level exists: a choice conflicts with no other event, so only
    /// its own outcomes branch off there.
    fn lack(&mut self, execution: &Execution<'_>, first: u32, step: Step) -> Lack {
        let level = &mut self.levels[first as usize];
        if level.settled {
            return Lack::Nothing;
        }
        let sleepers = &self.sleepers[level.sleep.0 as usize..level.sleep.1 as usize];
        let (arena, wakeup_tree) = (&self.arena, level.wakeup_tree);
        let lack = self.choices.lack(execution, first, step, || {
            let children = arena.iter(wakeup_tree);
            let children = children.map(|(_, child)| (child.step, child.children.is_empty()));
            let asleep = sleepers.iter().map(|sleeper| (sleeper.step, true));
            let known = asleep.chain(children);
            known.map(|(step, covers)| Known { step, covers })
        });
        level.settled = self.choices.all();
        lack
    }
}

impl InsertionPoint {
    /// Computes the sleep set behind `path` in this tree, which is the tree at `first`: the
    /// sleepers there and the steps of the branches before those of the path, without the ones that
    /// the steps of the path wake. Leaves out the steps that `waker` wakes: `waker` is planned
    /// anyway, and mostly wakes all of them.
    fn put_to_sleep(
        &mut self,
        execution: &Execution<'_>,
        first: u32,
        sleepers: &[Sleeper],
        (arena, wakeup_tree): (&Arena, List),
        waker: Option<(ThreadId, Label)>,
    ) {
        let sets = &execution.machine.sets;
        let asleep = &mut self.asleep;
        asleep.clear();
        for &sleeper in sleepers {
            put(asleep, sets, sleeper, &waker);
        }
        let (step, label) = (
            execution.trace.at(first).step(),
            execution.trace.at(first).label,
        );
        put(asleep, sets, Sleeper { step, label }, &waker);
        // Many trees are empty.
        if !wakeup_tree.is_empty() {
            self.go_down(sets, (arena, wakeup_tree), &waker);
        }
    }

    /// [`InsertionPoint::put_to_sleep`] for the steps that enter the sleep set along the path.
    #[inline(never)]
    fn go_down(
        &mut self,
        sets: &ReadSets,
        (arena, wakeup_tree): (&Arena, List),
        waker: &Option<(ThreadId, Label)>,
    ) {
        let InsertionPoint { path, asleep } = self;
        let mut children = wakeup_tree;
        let mut way = path.iter();
        loop {
            let next = way.next().copied();
            for (id, child) in arena.iter(children) {
                if Some(id) == next {
                    break;
                }
                let (step, label) = (child.step, child.label);
                put(asleep, sets, Sleeper { step, label }, waker);
            }
            let Some(next) = next else {
                return;
            };
            let child = arena.node(next);
            if !asleep.is_empty() {
                wake(asleep, sets, child.step.thread, child.label);
            }
            children = child.children;
        }
    }
}

/// Adds a step to the sleep set, unless `waker` wakes it.
#[inline(never)]
fn put(
    asleep: &mut Vec<Sleeper>,
    sets: &ReadSets,
    sleeper: Sleeper,
    waker: &Option<(ThreadId, Label)>,
) {
    if waker.is_none_or(|(thread, label)| sleeper.survives(sets, thread, label)) {
        asleep.push(sleeper);
    }
}

/// An event of `thread` with this label happens, and removes the steps from the sleep set that it
/// wakes.
#[inline(never)]
fn wake(asleep: &mut Vec<Sleeper>, sets: &ReadSets, thread: ThreadId, label: Label) {
    let wakes = |sleeper: &Sleeper| !sleeper.survives(sets, thread, label);
    // Most events wake no step.
    if asleep.iter().any(wakes) {
        asleep.retain(|sleeper| !wakes(sleeper));
    }
}

impl Explorer for Optimal {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        if rarely!(!self.started) {
            self.started = true;
            return true;
        }
        let Some(Branch { depth, step, label }) = self.next else {
            cold_path();
            return false;
        };
        self.levels.truncate(depth + 1);
        #[cfg(test)]
        {
            let level = &self.levels[depth];
            assert_eq!(self.arena.branches(level.wakeup_tree), level.branches);
        }
        self.sleepers.truncate(self.levels[depth].sleep.1 as usize);
        self.sleepers.put(Sleeper { step, label });
        self.levels[depth].sleep.1 += 1;
        if mostly!(self.elsewhere.is_empty()) {
            plan.common_prefix = depth;
        } else {
            plan.steps.append(&mut self.elsewhere);
            plan.repeated = depth;
        }
        let mut at = depth;
        while let Some(node) = self.arena.pop(&mut self.levels[at].wakeup_tree) {
            plan.steps.put((node.step, Some(node.label)));
            if node.children.is_empty() {
                self.levels[at].branches -= 1;
                break;
            }
            let level = &mut self.levels[at];
            // No node is counted again for each step of a long branch.
            let behind = match at == depth {
                true => self.arena.branches(node.children),
                false => level.branches - self.arena.branches(level.wakeup_tree),
            };
            level.branches -= behind;
            at += 1;
            self.levels.put(Level::new((0, 0), node.children, behind));
        }
        self.branches -= 1;
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
        // A failure may end an execution in the middle of its wakeup sequence.
        let end = execution.trace.len();
        if rarely!(self.levels.len() > end) {
            let cut: u32 = self.levels.drain(end..).map(|level| level.branches).sum();
            self.branches -= cut;
        }
        self.extend(execution);
        self.choices.forget();
        // A settled race of the last execution stays settled if this execution has it too.
        self.settled
            .truncate(execution.clocks.races_before(execution.first_new));
        self.settled.resize(execution.clocks.races().len(), false);
        for race in 0..self.settled.len() {
            if !self.settled[race] {
                self.settled[race] = direct(execution, race, |first, second| {
                    self.reverse(execution, first, second)
                });
            }
        }
        indirect(execution, |first, second| {
            self.reverse(execution, first, second);
            // When no outcome of a choice lacks anything, the other outcomes need no check.
            (self.levels.get(first as usize)).is_none_or(|level| !level.settled)
        });
        self.next = (0..self.levels.len())
            .rev()
            .find(|&depth| !self.levels[depth].wakeup_tree.is_empty())
            .map(|depth| {
                let event = execution.trace.at(depth as u32);
                Branch {
                    depth,
                    step: event.step(),
                    label: event.label,
                }
            });
    }

    fn unfinished(&self, trace: &Trace) -> Option<Unfinished> {
        // Directly after `resume` there is no trace yet.
        let next = self.next.filter(|next| next.depth < trace.len())?;
        let point = |(depth, level): (usize, &Level)| {
            let event = trace.at(depth as u32);
            SavedPoint {
                step: event.step(),
                label: event.label,
                sleepers: self.sleepers[level.sleep.0 as usize..level.sleep.1 as usize].to_vec(),
                tree: self.arena.save(level.wakeup_tree),
            }
        };
        let levels = self.levels[..=next.depth].iter().enumerate();
        let points = levels.map(point).collect();
        Some(Unfinished {
            points,
            ..Unfinished::default()
        })
    }

    fn resume(&mut self, unfinished: &Unfinished) -> bool {
        self.started = true;
        // The number of events of each thread.
        let mut made: Vec<u32> = Vec::new();
        for point in &unfinished.points {
            let start = self.sleepers.len() as u32;
            self.sleepers.extend(&point.sleepers);
            let so_far = |thread: ThreadId| made.get(thread.index()).map_or(0, |&made| made);
            let Some(wakeup_tree) = self.arena.restore(&point.tree, so_far) else {
                return false;
            };
            let thread = point.step.thread.index();
            lengthen(&mut made, thread + 1, || 0);
            made[thread] += 1;
            let sleep = (start, self.sleepers.len() as u32);
            let branches = self.arena.branches(wakeup_tree);
            self.levels.push(Level::new(sleep, wakeup_tree, branches));
            self.branches += branches;
            let largest = &mut self.largest;
            largest.widest = largest.widest.max(branches as usize);
            largest.branches = self.branches as usize;
            let steps = point.tree.iter().map(|node| node.depth as usize + 1);
            let before = self.elsewhere.len();
            largest.depth = largest.depth.max(before + steps.max().unwrap_or(0));
            self.elsewhere.push((point.step, Some(point.label)));
        }
        let Some((step, Some(label))) = self.elsewhere.pop() else {
            return false;
        };
        let depth = self.elsewhere.len();
        self.next = Some(Branch { depth, step, label });
        !self.levels[depth].wakeup_tree.is_empty()
    }

    fn more(&self) -> bool {
        !self.started || self.next.is_some()
    }

    fn planned(&self, planned: &mut Vec<(usize, u64)>) {
        for (depth, level) in self.levels.iter().enumerate() {
            if !level.wakeup_tree.is_empty() {
                planned.push((depth, self.arena.iter(level.wakeup_tree).count() as u64));
            }
        }
    }

    fn trees(&self) -> Option<Trees> {
        Some(Trees {
            bytes: self.arena.peak(),
            ..self.largest
        })
    }

    fn memory(&self) -> usize {
        self.arena.bytes()
            + self.levels.capacity() * size_of::<Level>()
            + self.sleepers.capacity() * size_of::<Sleeper>()
    }

    fn recycle(self: Box<Self>) {
        drop(Pooled::from(self));
    }
}
