//! How is a search saved between two executions, and continued?
//!
//! What it still needs are the steps that the next execution repeats, and at each point before them
//! and behind them the steps that are asleep and the wakeup tree. The first execution of the search
//! that goes on makes those steps again and gets the rest back point by point. What was settled is
//! found out anew.

use super::super::operation::{OpKind, Operation};
use super::super::{Decision, MemoryModel, Outcome, StoreRef};
use super::plan::Node;
use super::{Level, Search, Step};
use crate::rt::event::id::ObjectId;
use crate::rt::object::State;

/// A point of the current execution, as [`Level`] has it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SavedLevel {
    sleep: Vec<Step>,
    /// The wakeup tree, each node before its children, with its depth: a sequence may be too long
    /// for a call per node.
    tree: Vec<(u32, Step)>,
    made: Option<(Step, Outcome)>,
}

/// A search over graphs with the objects that it has met.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SavedGraphs {
    /// The points up to the one where the next execution branches off.
    pub(crate) levels: Vec<SavedLevel>,
    /// The number of threads that an execution had at most.
    pub(crate) threads: u32,
    /// The first state of each object that an execution has met: the next one may lead by an object
    /// that it has not met itself.
    pub(crate) objects: Vec<Option<State>>,
}

impl SavedLevel {
    fn of(level: &Level) -> SavedLevel {
        let mut tree = Vec::new();
        let mut open: Vec<(u32, &Node)> = Vec::new();
        open.extend(level.tree.iter().rev().map(|node| (0, node)));
        while let Some((depth, node)) = open.pop() {
            tree.push((depth, node.step));
            open.extend(node.children.iter().rev().map(|child| (depth + 1, child)));
        }
        SavedLevel {
            sleep: level.sleep.clone(),
            tree,
            made: level.made,
        }
    }

    /// The point; `None` if the depths of its wakeup tree are those of no tree.
    fn level(&self) -> Option<Level> {
        let mut done: Vec<(u32, Node)> = Vec::new();
        for &(depth, step) in self.tree.iter().rev() {
            let mut children = Vec::new();
            while let Some((_, child)) = done.pop_if(|(of, _)| *of == depth.wrapping_add(1)) {
                children.push(child);
            }
            let is_end = children.is_empty();
            done.push((
                depth,
                Node {
                    children,
                    is_end,
                    ..Node::of(step)
                },
            ));
        }
        let roots = done.into_iter().rev();
        let roots = roots.map(|(depth, node)| (depth == 0).then_some(node));
        Some(Level {
            sleep: self.sleep.clone(),
            tree: roots.collect::<Option<_>>()?,
            made: self.made,
            ..Level::default()
        })
    }

    /// Whether it names no more than so many threads and objects, and its tree is one.
    fn is_whole(&self, threads: usize, objects: usize) -> bool {
        let steps = self
            .sleep
            .iter()
            .chain(self.tree.iter().map(|(_, step)| step));
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
    /// The points up to the one where the next execution branches off, between two executions.
    pub(crate) fn save(&self) -> Vec<SavedLevel> {
        self.levels.iter().map(SavedLevel::of).collect()
    }

    /// Goes on with a search that was saved, of a program with so many threads and objects. The
    /// graph has to be empty. False if that is no search, or has nothing left.
    pub(crate) fn restore(
        &mut self,
        saved: &[SavedLevel],
        (threads, objects): (usize, usize),
    ) -> bool {
        let Some((last, path)) = saved.split_last() else {
            return false;
        };
        let has_made = path.iter().all(|level| level.made.is_some());
        if !has_made || last.made.is_some() || last.tree.is_empty() {
            return false;
        }
        if !(saved.iter()).all(|level| level.is_whole(threads, objects)) {
            return false;
        }
        self.forget();
        self.ahead = saved.iter().rev().filter_map(SavedLevel::level).collect();
        self.take_up();
        true
    }
}
