//! Which loop without a hint was a thread in at the end, and what does the thread do in each round?
//!
//! A loop waits at a hint, or at a read that repeats. A loop that takes a lock to look at the
//! protected data is not noticed without a hint, and repeats until the execution has too many
//! events. Its last rounds are in the events, all alike. The report names the loop and its useless
//! operations, so that the reader knows where the hint belongs.

use super::view::{View, at, behind, place_of, place_of_waiting};
use super::words::Names;
use crate::rt::event::operation::OpKind;
use crate::rt::event::verdict::Blocked;
use crate::rt::event::{Event, Trace};
use crate::rt::loops::spin::CYCLE_MAX;

/// The most events of a round.
const EVENTS_MAX: usize = 16;

/// The least number of equal rounds in a row that counts as a loop. A few repetitions are often
/// written out in the source.
const ROUNDS_MIN: usize = 20;

/// The hint that belongs in the loop.
const HINT: &str = "`dpor::hint::spin_loop()` or `dpor::thread::yield_now()`";

/// The last events of a thread, if they repeat.
struct Rounds<'a> {
    /// One of the rounds.
    round: Vec<&'a Event>,
    times: usize,
}

impl<'a> Rounds<'a> {
    /// The rounds of the thread that made the last event.
    fn of(trace: &'a Trace) -> Option<Rounds<'a>> {
        let thread = trace.events().last()?.thread;
        let positions = trace.positions_of(thread).iter().rev();
        let last: Vec<&Event> = positions.map(|&at| trace.at(at)).collect();
        (1..=EVENTS_MAX).find_map(|length| {
            let before = last.iter().skip(length);
            let alike = last.iter().zip(before);
            let alike = alike.take_while(|(one, before)| is_like(one, before));
            let events = alike.count() + length;
            let times = events / length;
            if times < ROUNDS_MIN {
                return None;
            }
            // The thread may have stopped in the middle of a round. The first round is complete.
            let round = last[events - length..events].iter().rev().copied();
            let round = round.collect();
            Some(Rounds { round, times })
        })
    }
}

/// Whether both events have the same operation and the same outcome. The versions of the data that
/// a lock protects differ, and are left out.
fn is_like(one: &Event, other: &Event) -> bool {
    let kind = &one.operation.kind;
    let is_told = kind.is_atomic() || kind.counts();
    std::ptr::eq(one.site, other.site)
        && (one.operation, one.outcome) == (other.operation, other.outcome)
        && (!is_told || one.before == other.before)
}

/// The advice for an execution with too many events.
pub(super) fn too_many(view: &View<'_>, names: &Names<'_>) -> String {
    // A loop that has a hint needs no other one.
    if let Some((hint, times)) = view.machine.many_rounds() {
        return format!(
            "a thread has come {times} times to the hint {}, each time with something changed, and so it did not wait there:\n  \
             give the loop a last round, or set `Builder::max_rounds` (DPOR_MAX_ROUNDS=3, say), which leaves out executions in \
             which it has more,\n  or raise `Builder::max_branches` (DPOR_MAX_BRANCHES)",
            at(hint)
        );
    }
    if let Some(said) = without_a_hint(view, names) {
        return said;
    }
    let last = view.trace.events().last().map(|event| event.thread);
    if last.is_some_and(|last| view.machine.has_come_to_a_hint(last))
        && view.machine.hintless().is_empty()
    {
        format!(
            "raise `Builder::max_branches` (DPOR_MAX_BRANCHES). If it waits here, its loop has a hint, but more than {CYCLE_MAX} \
         rounds until they repeat:\n  look at everything there is before each hint"
        )
    } else {
        "raise `Builder::max_branches` (DPOR_MAX_BRANCHES), or give a loop that waits here a \
      `dpor::hint::spin_loop()`.\n  A loop that changes something in every round does not wait at a hint: let the test \
      end it after a few rounds,\n  or give it a hint and set `Builder::max_rounds` (DPOR_MAX_ROUNDS), which leaves out \
      executions with more rounds"
    .to_owned()
    }
}

/// The advice if the execution has too many events because a loop without a hint has found the same
/// state in each of many rounds.
fn without_a_hint(view: &View<'_>, names: &Names<'_>) -> Option<String> {
    let Rounds { round, times } = Rounds::of(view.trace)?;
    let first = round.first()?;
    if (view.machine.since_hint(first.thread) as usize) < round.len() * ROUNDS_MIN {
        return None;
    }
    let does: Vec<String> = round.iter().map(|event| names.happened(event)).collect();
    let unlocks = |event: &&Event| match event.operation.kind {
        OpKind::Unlock { changed } | OpKind::UnlockWrite { changed } => changed,
        _ => false,
    };
    // The comparison of the rounds has not looked at the data behind the lock.
    let further = if round.iter().any(unlocks) {
        "if it changes there what the lock protects, set\n  `Builder::max_rounds` (DPOR_MAX_ROUNDS), too"
    } else {
        "if it ends by itself, raise\n  `Builder::max_branches` (DPOR_MAX_BRANCHES) instead"
    };
    Some(format!(
        "the loop {} has no hint, and {} has gone round {times} times, always with this: {}.\n  If it waits there, put {HINT} into \
         it; {further}",
        behind(place_of(view, first)),
        names.thread(first.thread),
        does.join(", ")
    ))
}

/// The loops without a hint in which threads spin for ever.
pub(super) fn spinning(view: &View<'_>, names: &Names<'_>) -> Vec<String> {
    let loops = view.machine.hintless().iter();
    let told = loops.filter_map(|&site| {
        let spins = |it: &&Blocked| {
            let waits = matches!(it.operation.kind, OpKind::Wait { timed: false, .. });
            waits && it.site == site
        };
        let stuck = view.end.stuck().iter().find(spins)?;
        // After each wait, the loop looks again. There may be other operations at the same place,
        // such as the unlock by a guard.
        let mut steps = view.trace.positions_of(stuck.thread).windows(2).rev();
        let look = steps.find_map(|step| {
            let (waits, looks) = (view.trace.at(step[0]), view.trace.at(step[1]));
            let is_wait = matches!(waits.operation.kind, OpKind::Wait { .. });
            (is_wait && waits.site == site).then_some(looks)
        })?;
        Some(format!(
            "the loop {} has no hint, and comes back to this: {}.\n  With {HINT} in it, its threads wait after fewer rounds; if it ends by itself, raise\n  \
             `Builder::max_branches` (DPOR_MAX_BRANCHES)",
            behind(place_of_waiting(view, stuck)),
            names.happened(look)
        ))
    });
    told.collect()
}
