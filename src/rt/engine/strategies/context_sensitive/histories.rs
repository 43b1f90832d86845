//! What may a thread still do, as far as executions have shown it?
//!
//! A thread is a function of what it has been told. So its histories make a tree: each node has one
//! operation, and one branch for each thing that the operation has told the thread.
//!
//! Two executions that end in one state have the same history of each thread. So where an execution
//! is given up because its state has been reached before, everything that could have followed is
//! known here.

use rustc_hash::FxHashMap;

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::OpKind;
use crate::rt::object::contents::Digest;
use crate::rt::object::machine::Pending;
use crate::rt::relation::independence::{Class, Label, ReadSets, commutes};

use super::states::KnownStep;

/// What threads do behind their histories, by thread and the digest of what it has been told.
#[derive(Default)]
pub(crate) struct Histories {
    nodes: FxHashMap<(ThreadId, Digest), Node>,
}

#[derive(Default)]
struct Node {
    /// The labels of the events behind this history, of the thread and of the threads that it
    /// spawns. Each label of a node is also one of the node before it.
    future: Vec<(ThreadId, Label)>,
    /// The history before the last event: of the same thread, or of the one that spawns it.
    before: Option<(ThreadId, Digest)>,
}

impl Histories {
    /// Notes this step of a thread that had been told `before`, and has been told `after` with it.
    /// A thread that it spawns begins with `child`.
    pub(crate) fn note(&mut self, it: &KnownStep, before: Digest, after: Digest, child: Digest) {
        let key = (it.step.thread, before);
        self.add(key, it.label);
        let mut put_behind = |behind| {
            let node: &mut Node = self.nodes.entry(behind).or_default();
            node.before.get_or_insert(key);
        };
        put_behind((it.step.thread, after));
        if let OpKind::Spawn { child: thread } = it.operation.kind {
            put_behind((thread, child));
        }
    }

    /// Notes the operation that a thread that has been told `before` has announced, and may have to
    /// wait for.
    pub(crate) fn note_pending(&mut self, thread: ThreadId, before: Digest, pending: &Pending) {
        let class = match pending.operation.kind {
            OpKind::Recv { .. } => Class::Received,
            OpKind::Send => Class::Sent,
            _ => return,
        };
        self.add((thread, before), Label::of(pending.operation.object, class));
    }

    fn add(&mut self, key: (ThreadId, Digest), label: Label) {
        let entry = (key.0, plain(label));
        let mut next = Some(key);
        while let Some(key) = next {
            let node = self.nodes.entry(key).or_default();
            if node.future.contains(&entry) {
                return;
            }
            node.future.push(entry);
            next = node.before;
        }
    }

    /// The labels of what a thread that has been told `told` may do, by thread: its own, and those
    /// of the threads that it spawns.
    pub(crate) fn future(&self, history: (ThreadId, Digest)) -> Vec<(ThreadId, Label)> {
        let node = self.nodes.get(&history);
        node.map_or_else(Vec::new, |node| node.future.clone())
    }
}

/// Whether the number in the label is that of a message or of a reference, which may be another one
/// in another order.
fn counts(label: Label) -> bool {
    label.has_count() || label.is_message()
}

/// The label without such a number.
fn plain(label: Label) -> Label {
    match counts(label) {
        true => Label::of(label.object(), label.class()),
        false => label,
    }
}

/// Whether two events with such labels, in some order, may be dependent.
pub(crate) fn may_conflict(sets: &ReadSets, one: Label, other: Label) -> bool {
    match counts(one) || counts(other) {
        true => one.object() == other.object() && one.class().conflicts().contains(other.class()),
        false => !commutes(sets, one, other),
    }
}
