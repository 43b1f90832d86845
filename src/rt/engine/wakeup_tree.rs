//! Which sequences must still be explored from a point?
//!
//! A wakeup tree (\[SS\] section 6) is an ordered tree of steps; each of its branches is the start
//! of an execution that has to be explored. All trees of an exploration live in one arena: a node
//! is named by an index, and the trees of the points along the current execution are lists of
//! siblings ([`List`]). A tree of owning pointers would be dropped recursively and overflow the
//! stack on long sequences.

use crate::rt::engine::checkpoint::SavedNode;
use crate::rt::engine::slots::{SlotId, Slots};
use crate::rt::event::NOWHERE;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::Step;
use crate::rt::pooled::Empty;
use crate::rt::relation::independence::Label;

/// The index of a node.
pub(crate) type NodeId = SlotId;

/// A step that must be explored, with the label its event must have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) step: Step,
    pub(crate) label: Label,
    /// The index of the event in its thread.
    pub(crate) index: u32,
    pub(crate) children: List,
    next: NodeId,
}

/// Siblings, in the order in which they are explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: NodeId,
    last: NodeId,
}

impl List {
    pub(crate) const EMPTY: List = List {
        first: NOWHERE,
        last: NOWHERE,
    };

    pub(crate) fn is_empty(&self) -> bool {
        self.first == NOWHERE
    }
}

/// All nodes of one exploration.
#[derive(Default, Debug)]
pub(crate) struct Arena {
    nodes: Slots<Node>,
}

impl Empty for Arena {
    fn empty(&mut self) {
        let Arena { nodes } = self;
        nodes.empty();
    }
}

impl Arena {
    /// The most bytes that the nodes have taken at once.
    pub(crate) fn peak(&self) -> usize {
        self.nodes.len() * size_of::<Node>()
    }

    /// The number of branches, which are the nodes without children.
    pub(crate) fn branches(&self, roots: List) -> u32 {
        let (mut next, mut open) = (Some(roots), Vec::new());
        let mut branches = 0;
        while let Some(list) = next.take() {
            for (_, node) in self.iter(list) {
                if node.children.is_empty() {
                    branches += 1;
                } else {
                    // Most nodes have one child, and need no further list.
                    open.extend(next.replace(node.children));
                }
            }
            next = next.or_else(|| open.pop());
        }
        branches
    }

    /// The memory of the nodes in bytes, free ones included.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.bytes()
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    /// The siblings of a list, in order.
    #[inline]
    pub(crate) fn iter(&self, list: List) -> impl Iterator<Item = (NodeId, &Node)> {
        let mut next = list.first;
        std::iter::from_fn(move || {
            let id = next;
            if id == NOWHERE {
                return None;
            }
            let node = self.node(id);
            next = node.next;
            Some((id, node))
        })
    }

    /// Appends a node with these contents to `list`.
    pub(crate) fn push(&mut self, list: &mut List, step: Step, label: Label, index: u32) -> NodeId {
        let id = self.nodes.put(Node {
            step,
            label,
            index,
            children: List::EMPTY,
            next: NOWHERE,
        });
        if list.is_empty() {
            list.first = id;
        } else {
            self.nodes[list.last].next = id;
        }
        list.last = id;
        id
    }

    /// Appends a node with these contents to the children of `parent`.
    pub(crate) fn push_child(
        &mut self,
        parent: NodeId,
        step: Step,
        label: Label,
        index: u32,
    ) -> NodeId {
        let mut children = self.node(parent).children;
        let id = self.push(&mut children, step, label, index);
        self.nodes[parent].children = children;
        id
    }

    /// Takes the first sibling off the list and frees its node; the caller gets its children.
    pub(crate) fn pop(&mut self, list: &mut List) -> Option<Node> {
        if list.is_empty() {
            return None;
        }
        let id = list.first;
        let node = self.nodes[id];
        list.first = node.next;
        if list.first == NOWHERE {
            list.last = NOWHERE;
        }
        self.nodes.release(id);
        Some(node)
    }

    /// The nodes of a tree, each before its children.
    pub(crate) fn save(&self, roots: List) -> Vec<SavedNode> {
        let mut saved = Vec::new();
        let mut open: Vec<(NodeId, u32)> = self.iter(roots).map(|(root, _)| (root, 0)).collect();
        open.reverse();
        while let Some((id, depth)) = open.pop() {
            let Node {
                step,
                label,
                children,
                ..
            } = *self.node(id);
            saved.push(SavedNode { step, label, depth });
            let start = open.len();
            open.extend(self.iter(children).map(|(child, _)| (child, depth + 1)));
            open[start..].reverse();
        }
        saved
    }

    /// Makes the tree that [`Arena::save`] has written down; `None` if `saved` is no tree. `made`
    /// returns the number of events that each thread has before the tree.
    pub(crate) fn restore(
        &mut self,
        saved: &[SavedNode],
        made: impl Fn(ThreadId) -> u32,
    ) -> Option<List> {
        let mut roots = List::EMPTY;
        // The nodes from a root down to the last new one.
        let mut path: Vec<NodeId> = Vec::new();
        for &SavedNode { step, label, depth } in saved {
            if depth as usize > path.len() {
                return None;
            }
            path.truncate(depth as usize);
            let mut above = path.iter().rev().map(|&id| self.node(id));
            let before = above.find(|node| node.step.thread == step.thread);
            let index = before.map_or_else(|| made(step.thread), |node| node.index + 1);
            path.push(match path.last() {
                Some(&parent) => self.push_child(parent, step, label, index),
                None => self.push(&mut roots, step, label, index),
            });
        }
        Some(roots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::event::id::ObjectId;
    use crate::rt::relation::independence::Class;

    fn step(thread: u32) -> Step {
        Step::of(ThreadId(thread))
    }

    const LABEL: Label = Label::of(ObjectId(0), Class::Read);

    #[test]
    fn siblings_come_off_in_the_order_they_were_appended_and_nodes_are_reused() {
        let mut arena = Arena::default();
        let mut list = List::EMPTY;
        for thread in 0..3 {
            let id = arena.push(&mut list, step(thread), LABEL, 0);
            arena.push_child(id, step(thread + 10), LABEL, 0);
        }
        let mut threads = Vec::new();
        while let Some(mut node) = arena.pop(&mut list) {
            threads.push(node.step.thread.0);
            while let Some(child) = arena.pop(&mut node.children) {
                threads.push(child.step.thread.0);
            }
        }
        assert_eq!(threads, [0, 10, 1, 11, 2, 12]);
        assert!(list.is_empty());
        arena.push(&mut list, step(7), LABEL, 0);
        assert_eq!(arena.nodes.len(), 6);
        assert_eq!(arena.peak(), 6 * size_of::<Node>());
    }
}
