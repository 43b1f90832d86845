//! How is every trace explored exactly once?
//!
//! Optimal-DPOR: [SS] Algorithms 2, 4 and 6. Each point of the current execution has a sleep set and
//! a wakeup tree. When an execution has ended, each pair of events that could come out the other way
//! gives a sequence ([`reversal`]); unless something that is asleep or already planned covers it,
//! the sequence goes into the tree at the point before the pair's first event. Then the deepest
//! point with a branch left is taken up: the branch just explored goes to sleep there, and the next
//! one is followed to its leaf.
//!
//! At a leaf nobody is asleep any more, so the rest of the execution is free, needs no look at sleep
//! sets and cannot turn out to be redundant. That is asserted, in release builds too.
//!
//! Deviations from the paper, by number:
//! 1. Sleepers and branches are steps, that is a thread *and* its outcome, so that a choice is a
//!    race of an event with its own other outcomes (EXPLORATION, section 5c).
//! 2. The label of the reversed event is found anew (EXPLORATION, trap 1).
//! 3. The insertion descends into the first child that is a weak initial, and stops at a leaf;
//!    the tree then holds a branch that covers the sequence, though maybe not the sequence itself.

use crate::rt::trace::Trace;
use crate::rt::trace::dependency::{Label, commutes};
use crate::rt::trace::operation::Step;

use super::checkpoint::{SavedPoint, Unfinished};
use super::cover::{Doubt, Walk};
use super::driver::Plan;
use super::reversal::{Reversal, Second, pairs};
use super::sleep::Sleeper;
use super::wakeup_tree::{Arena, List};
use super::{Choice, Explorer, Finished, Free, Point};

/// The explorer that visits each trace once.
pub(crate) struct Optimal {
    free: Free,
    /// One for each point of the current execution before its last event.
    levels: Vec<Level>,
    /// The sleep sets of all levels, one after the other.
    sleepers: Vec<Sleeper>,
    arena: Arena,
    reversal: Reversal,
    gone: Vec<bool>,
    /// The scratch of [`Walk`].
    heads: Vec<u32>,
    /// Where the next execution branches off, and what was explored there last.
    next: Option<Branch>,
    started: bool,
    /// The steps up to `next` that another process has made, if this one has made none yet.
    elsewhere: Vec<(Step, Option<Label>)>,
}

/// A point of the current execution.
#[derive(Clone, Copy, Debug)]
struct Level {
    sleep: (u32, u32),
    /// The branches still to be explored; the current one is not among them.
    pending: List,
}

#[derive(Clone, Copy, Debug)]
struct Branch {
    depth: usize,
    step: Step,
    label: Label,
}

impl Optimal {
    pub(crate) fn new(free: Free) -> Optimal {
        Optimal {
            free,
            levels: Vec::new(),
            sleepers: Vec::new(),
            arena: Arena::new(),
            reversal: Reversal::default(),
            gone: Vec::new(),
            heads: Vec::new(),
            next: None,
            started: false,
            elsewhere: Vec::new(),
        }
    }

    /// Gives every new point its sleep set.
    fn extend(&mut self, run: &Finished<'_>) {
        let planned = run.first_new + run.planned;
        for depth in self.levels.len().min(run.first_new + 1)..run.trace.len() {
            let sleep = if depth == 0 {
                (0, 0)
            } else {
                let (from, to) = self.levels[depth - 1].sleep;
                let event = run.trace.at(depth as u32 - 1);
                let start = self.sleepers.len() as u32;
                for i in from..to {
                    let sleeper = self.sleepers[i as usize];
                    if sleeper.survives(&run.machine.sets, event.thread, event.label) {
                        self.sleepers.push(sleeper);
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
                None => self.levels.push(Level {
                    sleep,
                    pending: List::EMPTY,
                }),
            }
        }
    }

    /// Whether the sequence that reverses this pair need not be planned, as far as that can be told
    /// without making it. It nearly always can.
    fn is_covered(&mut self, run: &Finished<'_>, first: u32, second: &Second) -> bool {
        if run.is_fixed(first as usize) {
            return true;
        }
        let level = self.levels[first as usize];
        let mut walk = Walk::new(run, first, second, &mut self.heads);
        let (from, to) = level.sleep;
        for &Sleeper { step, label } in &self.sleepers[from as usize..to as usize] {
            if let Some(doubt) = walk.doubt() {
                return doubt == Doubt::Impossible;
            }
            if walk.begins_with(step, label) {
                return true;
            }
        }
        let mut children = self.arena.iter(level.pending);
        while let Some(id) = children.next() {
            if let Some(doubt) = walk.doubt() {
                return doubt == Doubt::Impossible;
            }
            let child = self.arena.node(id);
            if walk.begins_with(child.step, child.label) {
                if child.children.is_empty() {
                    return true;
                }
                walk.go_by(child.step.thread);
                children = self.arena.iter(child.children);
            }
        }
        walk.doubt() == Some(Doubt::Impossible)
    }

    /// Plans the sequence in `reversal` at `depth`, unless it is covered.
    fn insert(&mut self, run: &Finished<'_>, depth: usize) {
        let sets = &run.machine.sets;
        let v = &self.reversal;
        let level = self.levels[depth];
        self.gone.clear();
        self.gone.resize(v.items.len(), false);
        for sleeper in &self.sleepers[level.sleep.0 as usize..level.sleep.1 as usize] {
            let covered = match v.first_of(run, depth as u32, sleeper.step.thread) {
                Some(at) => v.items[at].step == sleeper.step && v.is_initial(run, at, &self.gone),
                // The last item is the one that is most often in the way.
                None => {
                    (v.items.iter().rev()).all(|item| commutes(sets, sleeper.label, item.label))
                }
            };
            if covered {
                return;
            }
        }
        let mut parent = None;
        let mut children = level.pending;
        if !children.is_empty() {
            self.reversal.link(run.trace.threads());
        }
        'descend: while !children.is_empty() {
            for id in self.arena.iter(children) {
                let child = self.arena.node(id);
                let v = &self.reversal;
                let found = v.head(child.step.thread);
                let matches = match found {
                    Some(at) => v.items[at].step == child.step && v.is_initial(run, at, &self.gone),
                    None => (0..v.items.len())
                        .filter(|&i| !self.gone[i])
                        .all(|i| commutes(sets, child.label, v.items[i].label)),
                };
                if matches {
                    if let Some(at) = found {
                        self.gone[at] = true;
                        self.reversal.advance(at);
                    }
                    parent = Some(id);
                    children = child.children;
                    if children.is_empty() {
                        return;
                    }
                    continue 'descend;
                }
            }
            break;
        }
        for i in 0..self.reversal.items.len() {
            if self.gone[i] {
                continue;
            }
            let item = self.reversal.items[i];
            parent = Some(match parent {
                Some(parent) => self.arena.push_child(parent, item.step, item.label),
                None => {
                    let pending = &mut self.levels[depth].pending;
                    self.arena.push(pending, item.step, item.label)
                }
            });
        }
    }
}

impl Explorer for Optimal {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        if !self.started {
            self.started = true;
            return true;
        }
        let Some(Branch { depth, step, label }) = self.next else {
            return false;
        };
        self.levels.truncate(depth + 1);
        self.sleepers.truncate(self.levels[depth].sleep.1 as usize);
        self.sleepers.push(Sleeper { step, label });
        self.levels[depth].sleep.1 += 1;
        if self.elsewhere.is_empty() {
            plan.kept = depth;
        } else {
            plan.steps.append(&mut self.elsewhere);
            plan.repeated = depth;
        }
        let mut at = depth;
        while let Some(node) = self.arena.pop(&mut self.levels[at].pending) {
            plan.steps.push((node.step, Some(node.label)));
            if node.children.is_empty() {
                break;
            }
            at += 1;
            self.levels.push(Level {
                sleep: (0, 0),
                pending: node.children,
            });
        }
        true
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        match self.free.pick(at, |_| true) {
            Some(thread) => Choice::Run(Step::of(thread)),
            None => Choice::NothingEnabled,
        }
    }

    fn finish(&mut self, run: &Finished<'_>) {
        // A failure may end an execution in the middle of its wakeup sequence.
        self.levels.truncate(run.trace.len());
        self.extend(run);
        let mut reversal = std::mem::take(&mut self.reversal);
        pairs(run, |first, second| {
            if self.is_covered(run, first, &second) {
                return;
            }
            if reversal.build(run, first, &second) {
                std::mem::swap(&mut self.reversal, &mut reversal);
                self.insert(run, first as usize);
                std::mem::swap(&mut self.reversal, &mut reversal);
            }
        });
        self.reversal = reversal;
        self.next = (0..self.levels.len())
            .rev()
            .find(|&depth| !self.levels[depth].pending.is_empty())
            .map(|depth| {
                let event = run.trace.at(depth as u32);
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
                tree: self.arena.save(level.pending),
            }
        };
        let levels = self.levels[..=next.depth].iter().enumerate();
        let points = levels.map(point).collect();
        Some(Unfinished { points })
    }

    fn resume(&mut self, unfinished: &Unfinished) -> bool {
        self.started = true;
        for point in &unfinished.points {
            let start = self.sleepers.len() as u32;
            self.sleepers.extend(&point.sleepers);
            let Some(pending) = self.arena.restore(&point.tree) else {
                return false;
            };
            self.levels.push(Level {
                sleep: (start, self.sleepers.len() as u32),
                pending,
            });
            self.elsewhere.push((point.step, Some(point.label)));
        }
        let Some((step, Some(label))) = self.elsewhere.pop() else {
            return false;
        };
        let depth = self.elsewhere.len();
        self.next = Some(Branch { depth, step, label });
        !self.levels[depth].pending.is_empty()
    }

    fn more(&self) -> bool {
        !self.started || self.next.is_some()
    }

    fn planned(&self, planned: &mut Vec<(usize, u64)>) {
        for (depth, level) in self.levels.iter().enumerate() {
            if !level.pending.is_empty() {
                planned.push((depth, self.arena.iter(level.pending).count() as u64));
            }
        }
    }

    fn memory(&self) -> usize {
        self.arena.bytes()
            + self.levels.capacity() * size_of::<Level>()
            + self.sleepers.capacity() * size_of::<Sleeper>()
    }
}
