//! Which other orders of one pair of operations should be tried on an execution that failed?
//!
//! If one of them passes, the pair is what the failure hangs on. These are the pairs that exploration
//! reverses ([`reversal`](super::reversal)), and, because an execution that fails in the middle stops
//! threads that could go on, every operation that is still pending with each event on its object.

use crate::rt::trace::operation::Step;
use crate::rt::trace::verdict::Pair;

use super::Finished;
use super::reversal::{Reversal, Second, pairs};

/// The pairs of an execution, those whose first event is the latest first, at most `most`. A choice is no
/// pair: with another one the test is another.
pub(crate) fn candidates(run: &Finished<'_>, most: usize) -> Vec<Pair> {
    let mut found: Vec<(u32, Second)> = Vec::new();
    pairs(run, |first, second| {
        if second.position(run) != Some(first) && second.step.alternative == 0 {
            found.push((first, *second));
        }
        true
    });
    for pending in run.blocked {
        let second = Second {
            step: Step::of(pending.thread),
            operation: pending.operation,
            predecessor: run.trace.predecessor_of_next(pending.thread),
            race: None,
        };
        for &first in run.clocks.events_on(pending.operation.object) {
            found.push((first, second));
        }
    }
    // What is still pending comes after every event.
    let at = |second: &Second| second.position(run).unwrap_or(u32::MAX);
    found.sort_by_key(|(first, second)| std::cmp::Reverse((*first, at(second))));
    let mut reversal = Reversal::default();
    let mut pairs = Vec::new();
    for (first, second) in found {
        if pairs.len() < most && reversal.build(run, first, &second, None) {
            pairs.push(pair(run, first, &second, &reversal));
        }
    }
    pairs
}

fn pair(run: &Finished<'_>, first: u32, second: &Second, reversal: &Reversal) -> Pair {
    let before = run.trace.events()[..first as usize].iter();
    let steps = before.map(|event| event.step());
    let steps = steps.chain(reversal.items.iter().map(|item| item.step));
    let names = &run.machine.names;
    let pending = run
        .blocked
        .iter()
        .find(|it| it.thread == second.step.thread);
    Pair {
        first,
        second: match (second.position(run), pending) {
            (Some(position), _) => Ok(position),
            (None, Some(pending)) => Err(*pending),
            (None, None) => unreachable!("dpor bug: a pair's second operation is not there"),
        },
        reversed: steps
            .map(|step| (names.path(step.thread), step.alternative))
            .collect(),
    }
}
