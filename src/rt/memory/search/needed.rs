//! Which events of a sequence are needed?
//!
//! Those that make the reversed event possible, and those that wake the steps which will be asleep
//! behind the branch that the sequence goes on from. Everything else is explored behind them
//! anyway: at the end of the sequence no step is asleep.

use super::super::graph::Graph;
use super::super::{Decision, MemoryModel, Outcome};
use super::plan::decided_among;
use super::trap::Trap;
use super::{Search, Step, survives};
use crate::rt::event::id::ObjectId;
use crate::rt::relation::independence::Label;

/// A step that is asleep from so many events on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asleep {
    pub(super) from: usize,
    pub(super) step: Step,
}

/// The decision of the event at `position`, among those that are there.
pub(super) fn decision(graph: &Graph, position: u32, is_there: impl Fn(u32) -> bool) -> Decision {
    let event = graph.at(position);
    match event.outcome {
        Outcome::Behind(_) => decided_among(graph, position, is_there),
        outcome => graph.decision(&event.access, outcome),
    }
}

/// Whether an await of the graph reads a store that is not the last one.
fn has_old_await(graph: &Graph, first: usize) -> bool {
    graph.events()[first..].iter().any(|event| {
        let object = event.object();
        let waits = event.access.waits() && event.is_access();
        waits && event.reads() != Some(graph.store_at(object, graph.last_place(object)))
    })
}

impl<M: MemoryModel + Clone> Search<M> {
    /// The events of `rest` that are needed behind the events of `path`. The graph has all of them,
    /// and begins with events up to `first`. The event at `last` is the reversed one.
    pub(super) fn needed(
        &mut self,
        first: usize,
        path: &[u32],
        rest: &[u32],
        last: u32,
        asleep: &[Asleep],
    ) -> Vec<u32> {
        let graph = self.model.graph();
        // An await that reads an old store may be possible only together with others.
        let start = self.levels[first].start;
        if !graph.sequential().is_empty() && has_old_await(graph, start) {
            return rest.to_vec();
        }
        let whole = self.model.clone();
        let order: Vec<u32> = path.iter().chain(rest).copied().collect();
        let woken = self.wakers(whole.graph(), first, &order, asleep);
        let mut wanted: Vec<u32> = woken.iter().flatten().copied().chain([last]).collect();
        if self.lacks(Trap::Wakers) {
            wanted = vec![last];
        }
        let mut needed: Vec<u32> = Vec::new();
        // A count depends on every event on its object.
        let mut counted: Vec<ObjectId> = Vec::new();
        for &position in rest.iter().rev() {
            let mut later = wanted.iter().chain(&needed);
            let label = whole.graph().at(position).label();
            let is_wanted = later
                .any(|&later| later == position || whole.graph().is_past(position, later))
                || label.is_some_and(|label| counted.contains(&label.object()));
            if is_wanted {
                counted.extend(label.filter(|label| label.has_count()).map(Label::object));
                needed.push(position);
            }
        }
        needed.reverse();
        // The axiom on `SeqCst` may need several events to take an outcome away.
        let order: Vec<u32> = path.iter().chain(&needed).copied().collect();
        let woken = self.wakers(whole.graph(), first, &order, asleep);
        let all_wake = woken.iter().all(Option::is_some) || self.lacks(Trap::Wakers);
        self.model = whole;
        if all_wake { needed } else { rest.to_vec() }
    }

    /// For each step that is asleep the event that wakes it, if these events of the graph happen
    /// behind those before `first`.
    fn wakers(
        &mut self,
        graph: &Graph,
        first: usize,
        order: &[u32],
        asleep: &[Asleep],
    ) -> Vec<Option<u32>> {
        let mut woken = vec![None; asleep.len()];
        let start = self.levels[first].start as u32;
        self.shorten(first);
        for (at, &position) in order.iter().enumerate() {
            let before = &order[..at];
            let is_there = |store: u32| store < start || before.contains(&store);
            let event = graph.at(position);
            let decision = decision(graph, position, is_there);
            let outcome = self.model.available(event.thread, &event.access, &decision);
            let outcome = outcome.expect("a part of a graph is possible");
            self.model.take(event.thread, &event.access, outcome);
            let last = self.model.graph().len() as u32 - 1;
            for (sleeper, woken) in asleep.iter().zip(&mut woken) {
                if at >= sleeper.from
                    && woken.is_none()
                    && (sleeper.step.thread == event.thread
                        || !survives(&mut self.model, &sleeper.step, last))
                {
                    *woken = Some(position);
                }
            }
        }
        woken
    }
}
