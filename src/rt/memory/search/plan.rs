//! Is a sequence explored or planned already, and if not, where does it go?

use std::sync::atomic::Ordering;

use super::super::graph::Graph;
use super::super::{Decision, Interval, MemoryModel, Outcome, StoreRef};
use super::ended::Ended;
use super::needed::{Asleep, decision};
use super::settled::Evidence;
use super::trap::Trap;
use super::{Search, Step, commutes_with, is_available, is_within};
use crate::rt::memory::operation::Fences;
use crate::rt::relation::independence::Label;

/// A node of a wakeup tree.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) step: Step,
    pub(super) children: Vec<Node>,
    /// Whether no step is asleep behind it: it ends a sequence, or comes behind one.
    pub(super) is_end: bool,
    /// How many sequences end here or below that were not taken, in a search that takes any next.
    pub(super) planned: u32,
}

impl Node {
    pub(super) fn of(step: Step) -> Node {
        Node {
            step,
            children: Vec::new(),
            is_end: false,
            planned: 1,
        }
    }
}

/// Drops these trees node by node: a sequence may be too long for a call per node.
pub(super) fn drop_trees(trees: &mut Vec<Node>) {
    while let Some(mut node) = trees.pop() {
        trees.append(&mut node.children);
    }
}

/// Where a branch ends, from the first step on.
type Address = Box<[u32]>;

/// A branch that was planned.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(crate) end: Address,
    /// The position of the event that was reversed; `None` if that was in another process.
    pub(crate) instead: Option<usize>,
}

impl Planned {
    /// The number of steps before the branch. Its first step is no first sibling, and each of the
    /// others is one.
    pub(crate) fn depth(&self) -> usize {
        self.end.iter().rposition(|&at| at != 0).unwrap_or(0)
    }
}

/// What a search needs that takes any branch next ([`spread`](super::spread)).
#[derive(Debug, Default)]
pub(super) struct Spread {
    /// The numbers of the next steps of the plan among their siblings, the next one last.
    pub(super) route: Vec<u32>,
    /// The branches that were planned by the last execution.
    pub(super) planned: Vec<Planned>,
    /// The seed of a test that takes any of these branches next.
    #[cfg(test)]
    pub(super) any: Option<(u64, Vec<Planned>)>,
}

impl<M: MemoryModel> Search<M> {
    /// Plans the sequence of the events from `first` on, unless a step that is asleep or a branch
    /// that is planned there covers it. The last event is the reversed one, the others are of the
    /// execution that has ended. Returns the steps that the finding rests on.
    pub(super) fn plan(&mut self, ended: &Ended, first: usize) -> Evidence {
        self.stats.candidates += 1;
        for at in 0..self.levels[first].sleep.len() {
            let sleeper = self.levels[first].sleep[at];
            if let Some(evidence) = self.begins_with(ended, first, &sleeper) {
                return evidence;
            }
        }
        let length = self.model.graph().len();
        let mut tree = std::mem::take(&mut self.levels[first].tree);
        let evidence = self.insert(ended, first, &mut tree);
        self.levels[first].tree = tree;
        self.shorten_to(length);
        evidence
    }

    /// What it rests on that the sequence from `first` on can begin with the step, if it can.
    fn begins_with(&mut self, ended: &Ended, first: usize, step: &Step) -> Option<Evidence> {
        let graph = self.model.graph();
        let start = self.levels[first].start as u32;
        let mut steps = (graph.steps_of(step.thread)).iter();
        let rest = (start..graph.len() as u32).filter(|&position| graph.is_step(position));
        match steps.find(|&&position| position >= start) {
            Some(&position) => {
                let begins =
                    self.is_same(position, &step.decision) && self.comes_first(position, rest);
                let reversed = graph.len() as u32 - 1;
                begins.then(|| rests_on(ended, graph, Evidence::First(0), position, reversed))
            }
            None => {
                let rest: Vec<u32> = rest.collect();
                let evidence = self.absence(ended, first, step, Evidence::First(0));
                (self.is_available_among(step, &rest, &[])).then_some(evidence)
            }
        }
    }

    /// Whether nothing takes the outcome of the step away, which was decided, but a
    /// read-modify-write of the store that the step modifies. Coherence takes nothing from a thread
    /// that does nothing meanwhile, an interval keeps a place, and the axiom on `SeqCst` asks for a
    /// `SeqCst` access or for a fence.
    pub(super) fn is_lasting(&self, step: &Step) -> bool {
        let graph = self.model.graph();
        let access = &step.access;
        let order = match step.decision {
            Decision::Reads(store) => graph.order(access, Outcome::Reads(store)),
            Decision::Modifies(store) => graph.order(access, Outcome::Modifies(store)),
            Decision::Within(interval) => graph.order(access, Outcome::Behind(interval.after)),
            Decision::Done | Decision::Other { .. } => return false,
        };
        order != Ordering::SeqCst
            && access.fences == Fences::Nothing
            && !graph.knows_fence(step.thread)
    }

    /// This evidence, and what it rests on that a sequence from `first` on, without an event of the
    /// step's thread, leaves the step possible.
    pub(super) fn absence(
        &self,
        ended: &Ended,
        first: usize,
        step: &Step,
        evidence: Evidence,
    ) -> Evidence {
        if !self.is_lasting(step) || matches!(step.decision, Decision::Modifies(_)) {
            return Evidence::Whole;
        }
        // The thread's next event needs an event that the sequence has not.
        match ended.next_of(step.thread, first) {
            Some(next) => evidence.and(next),
            None => Evidence::Whole,
        }
    }

    /// Whether an operation on another object depends on none of these events before it. What reads
    /// or writes an atomic needs no check: what was decided names stores that are there.
    fn comes_first(&self, position: u32, rest: impl IntoIterator<Item = u32>) -> bool {
        let graph = self.model.graph();
        graph.at(position).label().is_none()
            || (rest.into_iter().take_while(|&other| other < position))
                .all(|other| !graph.is_past(other, position))
    }

    /// Whether the step of a thread that has no event among the `rest` is possible behind them, as
    /// it was before them. Steps with the labels `passed` are made before them.
    fn is_available_among(&mut self, step: &Step, rest: &[u32], passed: &[Label]) -> bool {
        if self.lacks(Trap::Available) {
            return false;
        }
        if let Decision::Other { label, .. } = step.decision {
            let graph = self.model.graph();
            let mut labels = rest.iter().filter_map(|&event| graph.at(event).label());
            return labels.all(|event| commutes_with(graph, label, after(event, passed)));
        }
        is_available(&mut self.model, step)
    }

    /// Whether the event at this position came out as was decided.
    fn is_same(&self, position: u32, decision: &Decision) -> bool {
        let graph = self.model.graph();
        let event = graph.at(position);
        let outcome = match event.outcome {
            Outcome::Behind(_) => {
                let object = event.object();
                let before = graph.place(object, event.name()) - 1;
                if self.lacks(Trap::Interval) {
                    return matches!(decision, Decision::Within(interval)
                        if interval.after == graph.store_at(object, before));
                }
                Outcome::Behind(graph.store_at(object, before))
            }
            outcome => outcome,
        };
        is_within(graph, event.object(), decision, outcome)
    }

    /// Inserts the sequence of the events from `first` on into a tree. The graph gets the steps of
    /// the tree that the sequence does not have.
    fn insert(&mut self, ended: &Ended, first: usize, tree: &mut Vec<Node>) -> Evidence {
        let length = self.model.graph().len() as u32;
        let start = self.levels[first].start as u32;
        let mut rest: Vec<u32> = (start..length)
            .filter(|&position| self.model.graph().is_step(position))
            .collect();
        // The labels of the steps of the branch that the sequence does not have.
        let mut passed: Vec<Label> = Vec::new();
        // The events that a branch has, from the point on.
        let mut path: Vec<u32> = Vec::new();
        // Where the branch goes that the sequence continues.
        let mut way: Vec<u32> = Vec::new();
        let mut nodes = &mut *tree;
        // The steps that will be asleep behind the branch, unless its events wake them.
        let level = &self.levels[first];
        let made = level.made.map(|(step, _)| step);
        let steps = level.sleep.iter().copied().chain(made);
        let mut asleep: Vec<Asleep> = steps.map(|step| Asleep { from: 0, step }).collect();
        let mut evidence = Evidence::First(0);
        loop {
            let mut next = None;
            let from = path.len();
            for (at, node) in nodes.iter().enumerate() {
                let Node { step, .. } = node;
                let graph = self.model.graph();
                let mut mine = rest.iter();
                match mine.position(|&position| graph.at(position).thread == step.thread) {
                    Some(item) => {
                        let position = rest[item];
                        if self.is_same(position, &step.decision)
                            && self.comes_first(position, rest[..item].iter().copied())
                        {
                            evidence = rests_on(ended, graph, evidence, position, length - 1);
                            path.push(rest.remove(item));
                            next = Some(at);
                            break;
                        }
                    }
                    None => {
                        if self.is_available_among(step, &rest, &passed) {
                            let step = *step;
                            let Step {
                                thread,
                                access,
                                decision,
                            } = step;
                            let outcome = self.model.available(thread, &access, &decision);
                            let outcome = outcome.expect("it is available");
                            self.model.take(thread, &access, outcome);
                            let last = self.model.graph().len() as u32 - 1;
                            passed.extend(self.model.graph().at(last).label());
                            path.push(last);
                            evidence = self.absence(ended, first, &step, evidence);
                            next = Some(at);
                            break;
                        }
                    }
                }
            }
            let earlier = &nodes[..next.unwrap_or(nodes.len())];
            let earlier = earlier.iter().map(|node| node.step);
            asleep.extend(earlier.map(|step| Asleep { from, step }));
            let Some(at) = next else { break };
            if nodes[at].is_end {
                return evidence;
            }
            way.push(at as u32);
            nodes = &mut nodes[at].children;
        }
        let rest = self.needed(first, &path, &rest, length - 1, &asleep);
        self.stats.planned += 1;
        self.nodes += rest.len();
        self.stats.nodes = self.stats.nodes.max(self.nodes);
        self.note_branch(first, &way, nodes.len(), rest.len());
        // The reversed event may be one of the path.
        let end = rest.last().copied();
        for position in rest {
            let graph = self.model.graph();
            let event = graph.at(position);
            let is_there = |store: u32| store < start || path.contains(&store);
            let decision = decision(graph, position, is_there);
            path.push(position);
            evidence = rests_on(ended, graph, evidence, position, length - 1);
            let step = Step {
                thread: event.thread,
                access: event.access,
                decision,
            };
            nodes.reserve_exact(1);
            nodes.push(Node {
                is_end: Some(position) == end,
                ..Node::of(step)
            });
            nodes = &mut nodes.last_mut().expect("a node was added").children;
        }
        count_along(tree, &way);
        evidence
    }
}

/// One more sequence goes this way.
pub(super) fn count_along(mut nodes: &mut [Node], way: &[u32]) {
    for &at in way {
        let node = &mut nodes[at as usize];
        node.planned += 1;
        nodes = &mut node.children;
    }
}

/// This evidence, and the event at `position` of a graph of the events of an execution that has
/// ended, with the `reversed` event behind them.
fn rests_on(
    ended: &Ended,
    graph: &Graph,
    evidence: Evidence,
    position: u32,
    reversed: u32,
) -> Evidence {
    if position == reversed {
        return evidence;
    }
    let event = graph.at(position);
    evidence.and(ended.number(event.thread, event.step))
}

/// Where the store at `position` goes among the stores that are there.
pub(super) fn decided_among(
    graph: &Graph,
    position: u32,
    is_there: impl Fn(u32) -> bool,
) -> Decision {
    let object = graph.at(position).object();
    let stores = graph.stores(object);
    let at = graph.place(object, graph.at(position).name()) - 1;
    let mut earlier = stores[..at].iter().rev().filter(|&&store| is_there(store));
    let mut later = stores[at + 1..].iter().filter(|&&store| is_there(store));
    let name = |&store: &u32| graph.at(store).name();
    Decision::Within(Interval {
        after: earlier.next().map_or(StoreRef::initial(object), name),
        before: later.next().map(name),
    })
}

/// The label of an event if steps with these labels, which commute with it, come before it.
fn after(event: Label, passed: &[Label]) -> Label {
    let on_its_object = passed
        .iter()
        .filter(|label| label.object() == event.object());
    on_its_object.fold(event, |event, label| match label.changes_count() {
        true => event.after(label.class()),
        false => event,
    })
}
