//! Which branches have been begun, and which are still to be explored?
//!
//! One tree holds, for all executions at once, the data that a depth-first search has on its stack
//! for one. A node is a step; its children are the steps that have been or will be made after it,
//! in the order in which they were planned, in whatever order they are explored. A *branch* is a
//! chain of nodes that ends in one without children and has not been started. When everything below
//! a node has been explored, the tree drops its children. The node itself stays until its parent is
//! explored too, because its step and label belong to the sleep sets of its later siblings.
//!
//! *Tree order* is the order in which depth-first search reaches the branches: the children of a
//! node from the first to the last. The branches that leave the first execution latest come first.

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::Step;
use crate::rt::event::{NOWHERE, Site};
use crate::rt::relation::independence::{Class, Label};

use crate::rt::engine::checkpoint::{SavedNode, SavedOpen};
use crate::rt::engine::estimate::MOST;
use crate::rt::engine::sleep::Sleeper;
use crate::rt::engine::slots::{SlotId, Slots};

/// The index of a node.
pub(crate) type NodeId = SlotId;

/// The node before the first step.
pub(crate) const ROOT: NodeId = 0;

/// A step of an execution that has begun or will begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) step: Step,
    pub(crate) label: Label,
    /// Whether a branch begins here, or began here before it was started, and the site of the event
    /// that it replaces, if that is known.
    pub(crate) begins: bool,
    pub(crate) instead: Option<Site>,
    /// Whether the sleep set behind the step is empty: the step is the end of a branch, or comes
    /// after one.
    pub(crate) awake: bool,
    parent: NodeId,
    /// The last child.
    last: NodeId,
    /// The sibling after it; for the last one the first sibling.
    next: NodeId,
    /// The number of branches that end here or below.
    planned: u32,
    /// The number of executions that have passed this node.
    executed: u32,
}

/// Steps, and branches that begin somewhere among them.
#[derive(Debug)]
pub(crate) struct OpenTree {
    nodes: Slots<Node>,
}

impl OpenTree {
    pub(crate) fn new() -> OpenTree {
        let step = Step {
            thread: ThreadId::MAIN,
            alternative: 0,
        };
        let label = Label::of(ObjectId::NONE, Class::Local);
        let mut tree = OpenTree {
            nodes: Slots::default(),
        };
        tree.allocate(NOWHERE, step, label);
        tree
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    /// How many branches there are.
    pub(crate) fn branches(&self) -> u32 {
        self.node(ROOT).planned
    }

    /// The most bytes that the nodes have taken at once.
    pub(crate) fn peak(&self) -> usize {
        self.nodes.len() * size_of::<Node>()
    }

    /// The memory of the nodes in bytes, free ones included.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.bytes()
    }

    /// The children of a node, in order.
    pub(crate) fn children(&self, parent: NodeId) -> impl Iterator<Item = NodeId> {
        let last = self.node(parent).last;
        let mut before = last;
        std::iter::from_fn(move || {
            if before == NOWHERE {
                return None;
            }
            let id = self.node(before).next;
            before = if id == last { NOWHERE } else { id };
            Some(id)
        })
    }

    /// The step of a node, as a sleeper.
    pub(crate) fn sleeper(&self, id: NodeId) -> Sleeper {
        let Node { step, label, .. } = *self.node(id);
        Sleeper { step, label }
    }

    /// Appends a child for a step that has been made.
    pub(crate) fn push(&mut self, parent: NodeId, step: Step, label: Label) -> NodeId {
        let id = self.allocate(parent, step, label);
        let last = std::mem::replace(&mut self.nodes[parent].last, id);
        let first = match last {
            NOWHERE => id,
            last => std::mem::replace(&mut self.nodes[last].next, id),
        };
        self.nodes[id].next = first;
        id
    }

    /// Appends a branch of these steps, of which there must be one at least; it replaces the event
    /// at the site `instead`. Returns the node at its end.
    pub(crate) fn plan(
        &mut self,
        parent: NodeId,
        steps: impl Iterator<Item = (Step, Label)>,
        instead: Site,
    ) -> NodeId {
        let mut end = parent;
        for (step, label) in steps {
            let id = self.push(end, step, label);
            let node = &mut self.nodes[id];
            node.begins = end == parent;
            node.instead = node.begins.then_some(instead);
            node.awake = false;
            end = id;
        }
        self.nodes[end].awake = true;
        self.each_above(end, |node| node.planned += 1);
        end
    }

    /// Starts the branch that ends here. Fills `path` with the nodes from [`ROOT`] to its end.
    pub(crate) fn start(&mut self, end: NodeId, path: &mut Vec<NodeId>) {
        self.each_above(end, |node| node.planned -= 1);
        path.clear();
        let mut at = end;
        while at != NOWHERE {
            path.push(at);
            at = self.node(at).parent;
        }
        path.reverse();
    }

    /// Calls `change` for a node and all nodes above it.
    fn each_above(&mut self, end: NodeId, change: impl Fn(&mut Node)) {
        let mut at = end;
        while at != NOWHERE {
            let node = &mut self.nodes[at];
            change(node);
            at = node.parent;
        }
    }

    /// The end of the branch that has this number of branches before it in tree order. There must
    /// be one.
    pub(crate) fn nth(&self, mut before: u32) -> NodeId {
        let mut at = ROOT;
        loop {
            let is_here = |id: &NodeId| match before.checked_sub(self.node(*id).planned) {
                Some(rest) => {
                    before = rest;
                    false
                }
                None => true,
            };
            match self.children(at).find(is_here) {
                Some(child) => at = child,
                None => return at,
            }
        }
    }

    /// Counts an execution that has passed these nodes.
    pub(crate) fn count(&mut self, path: &[NodeId]) {
        for &id in path {
            self.nodes[id].executed += 1;
        }
    }

    /// The approximate number of executions in all: a branch is taken to be as large as the average
    /// of its started siblings, as in the recursive estimate of depth-first search
    /// ([`estimate`](crate::rt::engine::estimate)).
    pub(crate) fn estimate(&self) -> f64 {
        // The nodes to visit. A node with branches below it comes a second time, for its sum.
        let mut open = vec![(ROOT, false)];
        // For each node with an open sum: the sum over its children so far, and the number of these
        // children.
        let mut sums: Vec<(f64, f64)> = vec![(0.0, 0.0)];
        while let Some((id, below)) = open.pop() {
            let node = self.node(id);
            if node.planned > 0 && !below {
                open.push((id, true));
                let started = |&id: &NodeId| self.node(id).executed > 0;
                open.extend(self.children(id).filter(started).map(|id| (id, false)));
                sums.push((0.0, 0.0));
                continue;
            }
            let mut size = f64::from(node.executed);
            if below && let Some((sum, started)) = sums.pop() {
                let waiting = self.children(id).map(|id| self.node(id));
                let waiting = waiting.filter(|child| child.executed == 0);
                let waiting: u32 = waiting.map(|child| child.planned).sum();
                size = (sum + f64::from(waiting) * sum / started).min(MOST);
            }
            if let Some((sum, started)) = sums.last_mut() {
                *sum += size;
                *started += 1.0;
            }
        }
        sums.first().map_or(0.0, |(sum, _)| *sum)
    }

    /// Drops the nodes that are explored and cannot get new branches any more, after an execution
    /// along this path. Truncates `path` to the nodes that are still in the tree.
    pub(crate) fn close(&mut self, path: &mut Vec<NodeId>) {
        let explored = |&id: &NodeId| self.node(id).planned == 0;
        let from = path.len() - path.iter().rev().take_while(|&id| explored(id)).count();
        let whole = |&id: &NodeId| self.node(id).awake;
        if let Some(at) = path[from..].iter().position(whole) {
            path.truncate(from + at + 1);
            self.forget_below(path[from + at]);
        }
    }

    /// Frees all nodes below this one.
    fn forget_below(&mut self, id: NodeId) {
        let mut tops = vec![id];
        while let Some(top) = tops.pop() {
            let from = tops.len();
            tops.extend(self.children(top));
            tops[from..].iter().for_each(|&id| self.nodes.release(id));
            self.nodes[top].last = NOWHERE;
        }
    }

    /// The nodes in tree order, each before its children, without the root.
    pub(crate) fn save(&self) -> Vec<SavedOpen> {
        let mut saved = Vec::new();
        let mut open = vec![(ROOT, 0)];
        while let Some((id, depth)) = open.pop() {
            let node = self.node(id);
            if let Some(depth) = u32::checked_sub(depth, 1) {
                let (step, label) = (node.step, node.label);
                saved.push(SavedOpen {
                    node: SavedNode { step, label, depth },
                    awake: node.awake,
                    begins: node.begins,
                    ends: node.planned > 0 && node.last == NOWHERE,
                    executed: node.executed,
                });
            }
            let start = open.len();
            open.extend(self.children(id).map(|child| (child, depth + 1)));
            open[start..].reverse();
        }
        saved
    }

    /// Makes the tree that [`OpenTree::save`] has written down; `None` if `saved` is no tree. Calls
    /// `found` for each branch, in tree order, with the node at its end and the number of events
    /// before it.
    pub(crate) fn restore(
        saved: &[SavedOpen],
        mut found: impl FnMut(NodeId, u32),
    ) -> Option<OpenTree> {
        let mut tree = OpenTree::new();
        // The nodes from the root down to the last new one, and the depth at which the last branch
        // among them begins.
        let mut path = vec![(ROOT, 0)];
        for open in saved {
            let SavedNode { step, label, depth } = open.node;
            if depth as usize >= path.len() {
                return None;
            }
            path.truncate(depth as usize + 1);
            let &(parent, begun) = path.last()?;
            if tree.node(parent).planned > 0 && tree.node(parent).last == NOWHERE {
                return None;
            }
            let id = tree.push(parent, step, label);
            let node = &mut tree.nodes[id];
            (node.awake, node.begins) = (open.awake, open.begins);
            node.executed = open.executed;
            let begun = if open.begins { depth } else { begun };
            path.push((id, begun));
            if open.ends {
                tree.each_above(id, |node| node.planned += 1);
                found(id, begun);
            }
        }
        tree.nodes[ROOT].executed = (tree.children(ROOT)).map(|id| tree.node(id).executed).sum();
        (tree.branches() > 0).then_some(tree)
    }

    fn allocate(&mut self, parent: NodeId, step: Step, label: Label) -> NodeId {
        self.nodes.put(Node {
            step,
            label,
            begins: false,
            instead: None,
            awake: true,
            parent,
            last: NOWHERE,
            next: NOWHERE,
            planned: 0,
            executed: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: Label = Label::of(ObjectId(0), Class::Read);

    fn steps(threads: &[u32]) -> impl Iterator<Item = (Step, Label)> {
        let step = |&thread: &u32| (Step::of(ThreadId(thread)), LABEL);
        threads.iter().map(step)
    }

    /// The thread of each branch's last step, in tree order.
    fn ends(tree: &OpenTree) -> Vec<u32> {
        let end = |before| tree.node(tree.nth(before)).step.thread.0;
        (0..tree.branches()).map(end).collect()
    }

    #[test]
    fn branches_are_in_the_order_in_which_depth_first_search_comes_to_them() {
        let site = std::panic::Location::caller();
        let mut tree = OpenTree::new();
        let first = tree.push(ROOT, Step::of(ThreadId(9)), LABEL);
        let second = tree.push(first, Step::of(ThreadId(9)), LABEL);
        tree.plan(ROOT, steps(&[1, 2]), site);
        tree.plan(second, steps(&[3]), site);
        tree.plan(first, steps(&[4]), site);
        tree.plan(second, steps(&[5, 6]), site);
        assert_eq!(ends(&tree), [3, 6, 4, 2]);
        let mut path = Vec::new();
        tree.start(tree.nth(2), &mut path);
        let threads = path.iter().map(|&id| tree.node(id).step.thread.0);
        assert_eq!(threads.collect::<Vec<_>>(), [0, 9, 4]);
        assert_eq!(ends(&tree), [3, 6, 2]);
    }

    #[test]
    fn the_steps_of_a_branch_stay_until_everything_above_them_is_explored_and_what_follows_does_not()
     {
        let site = std::panic::Location::caller();
        let mut tree = OpenTree::new();
        let mut path = Vec::new();
        let one = tree.plan(ROOT, steps(&[1, 2]), site);
        let two = tree.plan(ROOT, steps(&[3, 4]), site);
        tree.start(one, &mut path);
        let free = tree.push(one, Step::of(ThreadId(5)), LABEL);
        path.push(free);
        let size = tree.nodes.len();
        tree.close(&mut path);
        assert_eq!(path.last(), Some(&one));
        assert_eq!(tree.children(path[1]).collect::<Vec<_>>(), [one]);
        assert_eq!(tree.children(one).count(), 0);
        assert_eq!(tree.push(two, Step::of(ThreadId(6)), LABEL), free);
        tree.start(two, &mut path);
        tree.close(&mut path);
        assert_eq!(path, [ROOT]);
        assert_eq!(tree.children(ROOT).count(), 0);
        for thread in 0..size as u32 {
            tree.push(ROOT, Step::of(ThreadId(thread)), LABEL);
        }
        assert_eq!(tree.nodes.len(), size + 1, "every node was free");
    }

    #[test]
    fn what_is_read_back_is_the_tree_that_was_written_down() {
        let site = std::panic::Location::caller();
        let (mut tree, mut path) = (OpenTree::new(), Vec::new());
        let one = tree.plan(ROOT, steps(&[1, 2]), site);
        tree.plan(ROOT, steps(&[3, 4]), site);
        tree.start(one, &mut path);
        tree.count(&path);
        let free = tree.push(one, Step::of(ThreadId(5)), LABEL);
        tree.plan(free, steps(&[6]), site);
        tree.plan(path[1], steps(&[7, 8, 9]), site);
        let (saved, mut found) = (tree.save(), Vec::new());
        let again = OpenTree::restore(&saved, |end, depth| found.push((end, depth)));
        let again = again.expect("a tree");
        assert_eq!(again.save(), saved);
        assert_eq!(again.estimate(), tree.estimate());
        // Each branch, with the number of events before it.
        let found = found.into_iter();
        let found = found.map(|(end, depth)| (again.node(end).step.thread.0, depth));
        assert_eq!(found.collect::<Vec<_>>(), [(6, 3), (9, 1), (4, 0)]);
    }
}
