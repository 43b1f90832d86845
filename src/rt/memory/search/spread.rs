//! How does a search leave an execution for a branch anywhere?
//!
//! Depth-first search keeps the branches of one path. Here any branch may be next, and the tree of
//! all executions is kept, as in `rt/engine/strategies/frontier.rs`, which says why that is right:
//! the steps that were planned before a step are asleep behind it, explored or not; a sequence is
//! covered by a step that is asleep, and goes on below a later one up to the end of a branch there.
//!
//! The tree is kept along the current path: each point has the steps that were planned before the
//! one that was made, and those that were planned behind it, each with what is below. An
//! *address* names a node by its number among its siblings at each depth. Siblings are only added
//! at the end, so an address stays.

use super::super::MemoryModel;
#[cfg(test)]
use super::next_number;
use super::plan::{Node, Planned, Spread, drop_trees};
use super::{Search, count};

impl<M: MemoryModel> Search<M> {
    /// Lets the search take any branch next, from its first execution on.
    pub(crate) fn spread(&mut self) {
        self.spread = Some(Spread::default());
    }

    /// Whether the search may take any branch next.
    pub(crate) fn takes_any(&self) -> bool {
        self.spread.is_some()
    }

    /// The branches that were planned since the last call.
    pub(crate) fn take_planned(&mut self) -> Vec<Planned> {
        let spread = self.spread.as_mut();
        spread.map_or(Vec::new(), |spread| std::mem::take(&mut spread.planned))
    }

    /// A branch of so many steps is planned in place of the event at `first`. It goes on from a
    /// branch there, if a way is given, and is one more sibling of so many.
    pub(super) fn note_branch(
        &mut self,
        first: usize,
        way: &[u32],
        siblings: usize,
        length: usize,
    ) {
        let Some(spread) = &mut self.spread else {
            return;
        };
        let elder = |depth: usize| self.levels[depth].elder.len() as u32;
        let mut end: Vec<u32> = (0..first).map(elder).collect();
        end.extend(way);
        end.push(siblings as u32);
        // The step that was made comes before those of the tree.
        end[first] += elder(first) + 1;
        end.resize(end.len() + length - 1, 0);
        let planned = Planned {
            end: end.into(),
            instead: Some(first),
        };
        debug_assert_eq!(planned.depth(), first + way.len());
        spread.planned.push(planned);
    }

    /// Takes up the branch with this end, and returns how many steps it has in common with the
    /// execution.
    pub(crate) fn go_to(&mut self, end: &[u32]) -> usize {
        let made = self.levels.len() - 1;
        let same = (end.iter().zip(&self.levels[..made]))
            .take_while(|&(&at, level)| at as usize == level.elder.len());
        let common = same.count();
        // What is below the path comes back into the tree.
        let mut below = std::mem::take(&mut self.levels[made].tree);
        for depth in (common..made).rev() {
            let level = &mut self.levels[depth];
            let (step, _) = level.made.take().expect("the execution has come by");
            let planned = below.iter().map(|node| node.planned).sum();
            if planned == 0 && level.is_awake {
                self.nodes = self.nodes.saturating_sub(count(&below));
                drop_trees(&mut below);
            }
            let mut all = std::mem::take(&mut level.elder);
            all.push(Node {
                step,
                children: below,
                is_end: level.is_awake,
                planned,
            });
            all.append(&mut level.tree);
            below = all;
        }
        let level = &mut self.levels[common];
        level.tree = below;
        level.sleep.truncate(level.inherited);
        level.settled.clear();
        self.levels.truncate(common + 1);
        self.ended.cut(common);
        if let Some(spread) = &mut self.spread {
            spread.route = end[common..].iter().rev().copied().collect();
        }
        common
    }

    /// This search, which takes any branch next by this seed.
    #[cfg(test)]
    pub(crate) fn spread_by(mut self, seed: u64) -> Search<M> {
        self.spread = Some(Spread {
            any: Some((seed | 1, Vec::new())),
            ..Spread::default()
        });
        self
    }

    /// Takes up any branch.
    #[cfg(test)]
    pub(super) fn take_any(&mut self) -> Option<usize> {
        let planned = self.take_planned();
        let (seed, open) = self.spread.as_mut()?.any.as_mut()?;
        open.extend(planned);
        let count = open.len().max(1);
        let at = next_number(seed) % count;
        let end = (at < open.len()).then(|| open.swap_remove(at).end)?;
        Some(self.go_to(&end))
    }
}

impl<M> Search<M> {
    /// Drops the trees of all points.
    pub(super) fn drop_all(&mut self) {
        for level in self.levels.iter_mut().chain(&mut self.ahead) {
            drop_trees(&mut level.elder);
            drop_trees(&mut level.tree);
        }
    }
}

impl<M> Drop for Search<M> {
    fn drop(&mut self) {
        self.drop_all();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Free, Step};
    use super::*;
    use crate::rt::event::id::{ObjectId, ThreadId};
    use crate::rt::memory::c11::{Axioms, C11};
    use crate::rt::memory::graph::Graph;
    use crate::rt::memory::operation::{Fences, OpKind, Operation};
    use crate::rt::memory::{Access, Decision};

    #[test]
    fn a_long_sequence_is_dropped_without_a_call_per_step() {
        let child = ThreadId(1);
        let operation = Operation {
            object: ObjectId::NONE,
            kind: OpKind::Join { child },
        };
        let access = Access {
            operation,
            fences: Fences::Nothing,
            ended: Fences::Nothing,
            until: None,
        };
        let step = Step {
            thread: ThreadId(0),
            access,
            decision: Decision::Done,
        };
        let mut tree = Vec::new();
        for _ in 0..300_000 {
            tree = vec![Node {
                children: tree,
                ..Node::of(step)
            }];
        }
        let mut search = Search::new(C11::new(Graph::new(1), Axioms::Rc11), Free::Last);
        search.levels[0].tree = tree;
        drop(search);
    }
}
