//! Does the execution also fail with a switch less?
//!
//! The steps of a thread from one switch to the next are its *turn*. Two turns of a thread become
//! one if the steps of other threads between them move before both or after both. Such an order was
//! mostly never executed, and may be impossible: an operation reads another value, or a thread is
//! blocked. So the explorer follows the order as far as possible: a turn ends early where its
//! thread is blocked, and behind the last turn threads continue in the default order.

use std::collections::HashMap;

use crate::rt::event::Trace;
use crate::rt::event::id::{Names, ThreadId};
use crate::rt::event::operation::Step;
use crate::rt::relation::happens_before::HappensBefore;

use crate::rt::engine::replay::ReplayPolicy;
use crate::rt::engine::{Choice, Point};

/// An order of turns.
pub(crate) struct Turns {
    /// Threads by their paths, and the number of steps in each turn.
    turns: Vec<(String, usize)>,
    /// The outcomes of each thread's steps.
    outcomes: HashMap<String, Vec<u32>>,
    /// The current turn, and the number of its steps that were made.
    at: usize,
    made: usize,
}

impl Turns {
    /// The turns of an execution.
    pub(crate) fn of(trace: &Trace, names: &Names) -> Turns {
        let mut turns: Vec<(String, usize)> = Vec::new();
        let mut outcomes: HashMap<String, Vec<u32>> = HashMap::new();
        for event in trace.events() {
            let path = names.path(event.thread);
            let mine = outcomes.entry(path.clone()).or_default();
            mine.push(event.alternative);
            add(&mut turns, path, 1);
        }
        Turns {
            turns,
            outcomes,
            at: 0,
            made: 0,
        }
    }

    /// The orders in which two turns of a thread are one.
    pub(crate) fn merged(&self) -> impl Iterator<Item = Turns> {
        let pairs = (0..self.turns.len()).filter_map(|first| {
            let (thread, _) = &self.turns[first];
            let mut later = self.turns.iter().skip(first + 1);
            Some((first, first + 1 + later.position(|(t, _)| t == thread)?))
        });
        pairs.flat_map(|(first, second)| {
            [(first, second), (second, first)].map(|(stays, goes)| self.merge(stays, goes))
        })
    }

    /// The order in which the turn at `goes` becomes a part of the turn at `stays`.
    fn merge(&self, stays: usize, goes: usize) -> Turns {
        let mut turns = Vec::new();
        for (at, (thread, steps)) in self.turns.iter().enumerate() {
            let more = if at == stays { self.turns[goes].1 } else { 0 };
            if at != goes {
                add(&mut turns, thread.clone(), steps + more);
            }
        }
        Turns {
            turns,
            outcomes: self.outcomes.clone(),
            at: 0,
            made: 0,
        }
    }
}

/// Adds steps of a thread behind these turns.
fn add(turns: &mut Vec<(String, usize)>, thread: String, steps: usize) {
    match turns.last_mut() {
        Some((last, count)) if *last == thread => *count += steps,
        _ => turns.push((thread, steps)),
    }
}

/// The number of switches away from a thread that could have continued, as far as the trace shows.
pub(crate) fn preemptions(trace: &Trace, clocks: &HappensBefore) -> usize {
    let mut done = vec![0; trace.threads()];
    let mut preemptions = 0;
    for (event, next) in trace.events().iter().zip(1..) {
        done[event.thread.index()] = event.index + 1;
        let switches = (trace.events().get(next)).is_some_and(|e| e.thread != event.thread);
        let goes_on = trace.next_of(event.thread, next as u32).is_some_and(|own| {
            // An operation that may be blocked mostly waits for an event that then happens before
            // it.
            let past = |(&done, other)| clocks.clock(own, ThreadId(other)) <= done;
            let mut others = (done.iter().zip(0..)).filter(|&(_, t)| ThreadId(t) != event.thread);
            !trace.at(own).operation.kind.may_have_to_wait() || others.all(past)
        });
        preemptions += usize::from(switches && goes_on);
    }
    preemptions
}

impl ReplayPolicy for Turns {
    fn choose(&mut self, at: &Point<'_>) -> Choice {
        while let Some((path, steps)) = self.turns.get(self.at) {
            let thread = at.machine.names.find(path);
            let thread = thread.filter(|&thread| at.machine.enabled(thread));
            if let Some(thread) = thread.filter(|_| self.made < *steps) {
                if at.machine.is_to_begin(thread) {
                    return Choice::Run(Step::of(thread));
                }
                self.made += 1;
                let nth = at.machine.events_of(thread) as usize;
                let before = self.outcomes.get(path).and_then(|mine| mine.get(nth));
                let possible = |before: &&u32| **before < at.machine.alternatives(thread);
                return Choice::Run(Step {
                    thread,
                    alternative: before.filter(possible).copied().unwrap_or(0),
                });
            }
            if at.enabled().next().is_none() {
                // The threads that wait for a change may be released, and then the turn continues.
                return Choice::NothingEnabled;
            }
            self.at += 1;
            self.made = 0;
        }
        at.go_on()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn turns(of: &[(&str, usize)]) -> Turns {
        Turns {
            turns: of.iter().map(|(t, n)| ((*t).to_owned(), *n)).collect(),
            outcomes: HashMap::new(),
            at: 0,
            made: 0,
        }
    }

    #[test]
    fn two_turns_become_one_where_either_stands() {
        let before = turns(&[("a", 1), ("b", 2), ("c", 3), ("b", 4)]);
        let merged: Vec<Vec<(String, usize)>> = before.merged().map(|it| it.turns).collect();
        let expected = [
            turns(&[("a", 1), ("b", 6), ("c", 3)]),
            turns(&[("a", 1), ("c", 3), ("b", 6)]),
        ];
        assert_eq!(merged, expected.map(|it| it.turns));
    }

    #[test]
    fn neighbours_that_meet_become_one_too() {
        let before = turns(&[("a", 1), ("b", 2), ("a", 3), ("b", 4)]);
        let merged: Vec<Vec<(String, usize)>> = before.merged().map(|it| it.turns).collect();
        let ab = || turns(&[("a", 4), ("b", 6)]).turns;
        let ba = || turns(&[("b", 2), ("a", 4), ("b", 4)]).turns;
        let b_first = || turns(&[("a", 1), ("b", 6), ("a", 3)]).turns;
        assert_eq!(merged, [ab(), ba(), b_first(), ab()]);
    }
}
