//! Which events of a sequence are needed?
//!
//! Those that make the reversed event possible, and those that wake the steps which will be asleep
//! behind the branch that the sequence goes on from. Everything else is explored behind them
//! anyway: at the end of the sequence no step is asleep.

use super::super::graph::Graph;
use super::super::{Decision, MemoryModel, Outcome};
use super::plan::decided_among;
use super::trap::Trap;
use super::{Program, Search, Step, is_available};

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
        let last = event.access.until.map(|_| graph.last_place(object));
        last.is_some_and(|last| event.reads() != Some(graph.store_at(object, last)))
    })
}

impl<M: MemoryModel + Clone, P: Program> Search<'_, M, P> {
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
        if !graph.sequential().is_empty() && has_old_await(graph, first) {
            return rest.to_vec();
        }
        let whole = self.model.clone();
        let order: Vec<u32> = path.iter().chain(rest).copied().collect();
        let woken = self.wakers(whole.graph(), first, &order, asleep);
        let mut wanted: Vec<u32> = woken.iter().flatten().copied().chain([last]).collect();
        if self.lacks(Trap::Wakers) {
            wanted = vec![last];
        }
        let is_wanted = |&position: &u32| {
            wanted
                .iter()
                .any(|&wanted| wanted == position || whole.graph().is_past(position, wanted))
        };
        let needed: Vec<u32> = rest.iter().copied().filter(is_wanted).collect();
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
        self.shorten(first);
        for (at, &position) in order.iter().enumerate() {
            let before = &order[..at];
            let is_there = |store: u32| (store as usize) < first || before.contains(&store);
            let event = graph.at(position);
            let decision = decision(graph, position, is_there);
            let outcome = self.model.available(event.thread, &event.access, &decision);
            let outcome = outcome.expect("a part of a graph is possible");
            self.model.take(event.thread, &event.access, outcome);
            for (sleeper, woken) in asleep.iter().zip(&mut woken) {
                if at >= sleeper.from
                    && woken.is_none()
                    && (sleeper.step.thread == event.thread
                        || !is_available(&mut self.model, &sleeper.step))
                {
                    *woken = Some(position);
                }
            }
        }
        woken
    }
}
