//! How is a search saved between two executions, and continued?
//!
//! What it still needs are the steps that the next execution repeats, and at each point before them
//! and behind them the steps that are asleep and the wakeup tree. The first execution of the search
//! that goes on makes those steps again and gets the rest back point by point. What was settled is
//! found out anew.
//!
//! If any branch may be next, the tree of all executions is saved, without the parts that no branch
//! can go by any more. It is the tree at the point before the first step: the steps of the last
//! execution are in it like those of the others. The steps that are asleep behind a step follow
//! from those before it in the tree.

use super::super::operation::{OpKind, Operation};
use super::super::{Decision, MemoryModel, Outcome, StoreRef};
use super::plan::{Node, Planned};
use super::{Level, Search, Step};
use crate::rt::event::id::ObjectId;
use crate::rt::object::State;

/// A point of the current execution, as [`Level`] has it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SavedLevel {
    sleep: Vec<Step>,
    /// The wakeup tree, each node before its children.
    tree: Vec<SavedNode>,
    made: Option<(Step, Outcome)>,
}

/// A node of a wakeup tree. It has its depth in place of its children: a sequence may be too long
/// for a call per node.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
struct SavedNode {
    depth: u32,
    step: Step,
    is_end: bool,
    /// Whether a sequence ends here that was not taken.
    is_planned: bool,
}

impl SavedNode {
    /// Adds the nodes of these trees. Their roots have this depth.
    fn add(all: &mut Vec<SavedNode>, trees: &[Node], depth: usize) {
        let mut open: Vec<(u32, &Node)> = Vec::new();
        open.extend(trees.iter().rev().map(|node| (depth as u32, node)));
        while let Some((depth, node)) = open.pop() {
            all.push(SavedNode {
                depth,
                step: node.step,
                is_end: node.is_end,
                is_planned: node.planned > 0 && node.children.is_empty(),
            });
            open.extend(node.children.iter().rev().map(|child| (depth + 1, child)));
        }
    }

    /// The trees with these nodes; `None` if their depths are those of no tree, or a sequence ends
    /// where none can.
    fn trees(all: &[SavedNode]) -> Option<Vec<Node>> {
        let mut done: Vec<(u32, Node)> = Vec::new();
        for saved in all.iter().rev() {
            let mut children = Vec::new();
            while let Some((_, child)) = done.pop_if(|(of, _)| *of == saved.depth.wrapping_add(1)) {
                children.push(child);
            }
            let is_leaf = children.is_empty();
            if is_leaf && !saved.is_end || saved.is_planned && !is_leaf {
                return None;
            }
            let below: u32 = children.iter().map(|child| child.planned).sum();
            let node = Node {
                step: saved.step,
                children,
                is_end: saved.is_end,
                planned: below + u32::from(saved.is_planned),
            };
            done.push((saved.depth, node));
        }
        let roots = done.into_iter().rev();
        (roots.map(|(depth, node)| (depth == 0).then_some(node))).collect()
    }
}

/// A search over graphs with the objects that it has met.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SavedGraphs {
    /// The points up to the one where the next execution branches off, or the point before the
    /// first step.
    pub(crate) levels: Vec<SavedLevel>,
    /// Whether any branch may be next.
    pub(crate) takes_any: bool,
    /// The number of threads that an execution had at most.
    pub(crate) threads: u32,
    /// The first state of each object that an execution has met: the next one may lead by an object
    /// that it has not met itself.
    pub(crate) objects: Vec<Option<State>>,
}

impl SavedLevel {
    fn of(level: &Level) -> SavedLevel {
        let mut tree = Vec::new();
        SavedNode::add(&mut tree, &level.tree, 0);
        SavedLevel {
            sleep: level.sleep.clone(),
            tree,
            made: level.made,
        }
    }

    /// The point; `None` if its wakeup tree is none.
    fn level(&self) -> Option<Level> {
        Some(Level {
            sleep: self.sleep.clone(),
            tree: SavedNode::trees(&self.tree)?,
            made: self.made,
            ..Level::default()
        })
    }

    /// Whether it names no more than so many threads and objects, and its tree is one.
    fn is_whole(&self, threads: usize, objects: usize) -> bool {
        let steps = self
            .sleep
            .iter()
            .chain(self.tree.iter().map(|node| &node.step));
        let mut steps = steps.chain(self.made.iter().map(|(step, _)| step));
        let names = |store: StoreRef| match store.event() {
            Some((thread, _)) => thread.index() < threads,
            None => store.initial_of().index() < objects,
        };
        let knows = |object: ObjectId| object == ObjectId::NONE || object.index() < objects;
        let is_known = |step: &Step| {
            let Operation { object, kind } = step.access.operation;
            step.thread.index() < threads
                // A thread has no state in the model.
                && (knows(object) || matches!(kind, OpKind::Spawn { .. } | OpKind::Join { .. }))
                && match step.decision {
                    Decision::Reads(store) | Decision::Modifies(store) => names(store),
                    Decision::Within(interval) => {
                        names(interval.after) && interval.before.is_none_or(names)
                    }
                    Decision::Done | Decision::Other { .. } => true,
                }
        };
        steps.all(is_known) && self.level().is_some()
    }
}

impl<M: MemoryModel> Search<M> {
    /// The points up to the one where the next execution branches off, between two executions; the
    /// one before the first step if any branch may be next.
    pub(crate) fn save(&self) -> Vec<SavedLevel> {
        if self.spread.is_none() {
            return self.levels.iter().map(SavedLevel::of).collect();
        }
        let planned = |level: &Level| {
            let siblings = level.elder.iter().chain(&level.tree);
            siblings.map(|node| node.planned).sum::<u32>()
        };
        let made = self.levels.len() - 1;
        let all: u32 = self.levels.iter().map(planned).sum();
        // Behind the end of a branch without another one below it nothing is left to explore.
        let mut above = 0;
        let last = (0..made).find(|&depth| {
            let level = &self.levels[depth];
            above += planned(level);
            level.is_awake && above == all
        });
        let path = &self.levels[..last.map_or(made, |last| last + 1)];
        let mut tree = Vec::new();
        for (depth, level) in path.iter().enumerate() {
            SavedNode::add(&mut tree, &level.elder, depth);
            let (step, _) = level.made.expect("the execution has come by");
            tree.push(SavedNode {
                depth: depth as u32,
                step,
                is_end: level.is_awake,
                is_planned: false,
            });
        }
        if last.is_none() {
            SavedNode::add(&mut tree, &self.levels[made].tree, made);
        }
        for (depth, level) in path.iter().enumerate().rev() {
            SavedNode::add(&mut tree, &level.tree, depth);
        }
        vec![SavedLevel {
            sleep: Vec::new(),
            tree,
            made: None,
        }]
    }

    /// Goes on with a search that was saved, of a program with so many threads and objects. The
    /// graph has to be empty. False if that is no search, or has nothing left.
    pub(crate) fn restore(
        &mut self,
        saved: &SavedGraphs,
        (threads, objects): (usize, usize),
    ) -> bool {
        let Some((last, path)) = saved.levels.split_last() else {
            return false;
        };
        let has_made = path.iter().all(|level| level.made.is_some());
        if !has_made || last.made.is_some() || last.tree.is_empty() {
            return false;
        }
        if !(saved.levels.iter()).all(|level| level.is_whole(threads, objects)) {
            return false;
        }
        if saved.takes_any != self.spread.is_some() {
            return false;
        }
        self.forget();
        if saved.takes_any {
            return path.is_empty() && last.sleep.is_empty() && self.restore_all(&last.tree);
        }
        self.ahead = (saved.levels.iter().rev())
            .filter_map(SavedLevel::level)
            .collect();
        self.take_up();
        true
    }

    /// Gets the tree of a search that takes any branch next. False if it has no branch.
    fn restore_all(&mut self, saved: &[SavedNode]) -> bool {
        let Some(tree) = SavedNode::trees(saved) else {
            return false;
        };
        let mut end: Vec<u32> = Vec::new();
        let mut found = Vec::new();
        for node in saved {
            let depth = node.depth as usize;
            match depth < end.len() {
                true => {
                    end.truncate(depth + 1);
                    end[depth] += 1;
                }
                false => end.push(0),
            }
            if node.is_planned {
                found.push(Planned {
                    end: end.as_slice().into(),
                    instead: None,
                });
            }
        }
        self.nodes = saved.len();
        self.levels[0].tree = tree;
        let has_any = !found.is_empty();
        if let Some(spread) = &mut self.spread {
            spread.planned = found;
        }
        has_any
    }
}
