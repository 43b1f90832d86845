//! Which order of the same events has the fewest switches?
//!
//! Every order of an execution's events that respects happens-before is the same trace, with the
//! same end. Reports show the order in which threads continue for longest between switches. The
//! search for it is hard in general (for any number of threads it is NP-hard: Jalbert and Sen, FSE
//! 2010), but the executions in reports are short. It is a search for a shortest path: its points
//! are sets of events that have happened, and from such a set one move lets one thread continue
//! until its next event has to wait for an event of another thread. To continue as far as possible
//! is never worse than to stop before: an event that comes earlier than necessary delays no other
//! event.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::rt::event::Trace;
use crate::rt::event::id::ThreadId;
use crate::rt::relation::happens_before::HappensBefore;

/// The number of sets of events that the search visits before it gives up and the order stays as it
/// is.
const SETS_MAX: usize = 50_000;

/// For each thread the number of its events that happen before, or are among, the first `n` events
/// of the threads in `of`.
pub(crate) fn past(trace: &Trace, clocks: &HappensBefore, of: &[(ThreadId, u32)]) -> Vec<u32> {
    let mut counts = vec![0; trace.threads()];
    for &(thread, n) in of {
        let positions = (0..trace.len() as u32)
            .filter(|&at| trace.at(at).thread == thread)
            .take(n as usize);
        if let Some(last) = positions.last() {
            for (other, count) in counts.iter_mut().enumerate() {
                let known = clocks.clock(last, ThreadId(other as u32));
                *count = known.max(*count);
            }
        }
    }
    counts
}

/// An order with the fewest switches of the first `counts` events of each thread, as positions in
/// the trace; `None` if the search does not find it within the limit. Every event that happens
/// before one of these events must be one of them.
pub(crate) fn fewest_switches(
    trace: &Trace,
    clocks: &HappensBefore,
    counts: &[u32],
) -> Option<Vec<u32>> {
    let mut events: Vec<Vec<u32>> = vec![Vec::new(); counts.len()];
    for position in 0..trace.len() as u32 {
        events[trace.at(position).thread.index()].push(position);
    }
    let total: u32 = counts.iter().sum();
    // For each set that was reached: the set before it, and the thread that continued.
    let mut reached: FxHashMap<Vec<u32>, Option<(Vec<u32>, usize)>> = FxHashMap::default();
    let mut queue = VecDeque::new();
    let start = vec![0; counts.len()];
    reached.insert(start.clone(), None);
    queue.push_back(start);
    while let Some(done) = queue.pop_front() {
        if done.iter().sum::<u32>() == total {
            return Some(unwind(&reached, done, &events));
        }
        if reached.len() > SETS_MAX {
            return None;
        }
        for thread in 0..counts.len() {
            let mut next = done.clone();
            while next[thread] < counts[thread] {
                let position = events[thread][next[thread] as usize];
                let may_happen = (0..counts.len()).all(|other| {
                    let id = ThreadId(other as u32);
                    other == thread || clocks.clock(position, id) <= next[other]
                });
                if !may_happen {
                    break;
                }
                next[thread] += 1;
            }
            if next[thread] > done[thread] && !reached.contains_key(&next) {
                reached.insert(next.clone(), Some((done.clone(), thread)));
                queue.push_back(next);
            }
        }
    }
    None
}

/// The events on the path to a set, in order.
fn unwind(
    reached: &FxHashMap<Vec<u32>, Option<(Vec<u32>, usize)>>,
    mut done: Vec<u32>,
    events: &[Vec<u32>],
) -> Vec<u32> {
    let mut order = Vec::new();
    while let Some(Some((before, thread))) = reached.get(&done) {
        let execution = before[*thread] as usize..done[*thread] as usize;
        order.extend(events[*thread][execution].iter().rev());
        done.clone_from(before);
    }
    order.reverse();
    order
}
