//! How does a sampler give every order of racing events a fair chance?
//!
//! POS (Yuan, Yang, Gu, *Partial Order Aware Concurrency Sampling*, CAV 2018, section 4): every
//! pending event has a random priority, and the enabled one with the highest priority is executed.
//! Then the events that race with it, that is those that do not commute with it, get new
//! priorities: a lost race must not lower an event's chance in the next race. Otherwise a thread
//! that was late once would be late for ever.

use crate::rt::engine::Point;
use crate::rt::engine::rng::Rng;
use crate::rt::engine::strategies::sample::{Strategy, highest};
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::Step;
use crate::rt::relation::independence::commutes;

/// The priorities of one execution.
#[derive(Default, Debug)]
pub(crate) struct Pos {
    /// For each thread the priority of its pending event; 0 if the priority is still to be drawn.
    priorities: Vec<u64>,
    /// The number of events of the execution that are processed.
    seen: usize,
}

impl Strategy for Pos {
    fn begin(&mut self, _rng: &mut Rng) {
        self.priorities.clear();
        self.seen = 0;
    }

    fn pick(&mut self, at: &Point<'_>, able: &[ThreadId], rng: &mut Rng) -> Option<ThreadId> {
        let machine = at.machine;
        if at.trace.len() > self.seen {
            self.seen = at.trace.len();
            let event = at.trace.at(self.seen as u32 - 1);
            if let Some(priority) = self.priorities.get_mut(event.thread.index()) {
                *priority = 0;
            }
            for &thread in machine.live() {
                let races = match machine.predict(Step::of(thread)) {
                    Some(label) => !commutes(&machine.sets, label, event.label),
                    // The event may have taken the resource that this thread waits for.
                    None => machine
                        .pending(thread)
                        .is_some_and(|p| p.operation.object == event.operation.object),
                };
                if races && let Some(priority) = self.priorities.get_mut(thread.index()) {
                    *priority = 0;
                }
            }
        }
        for thread in machine.live() {
            if self.priorities.len() <= thread.index() {
                self.priorities.resize(thread.index() + 1, 0);
            }
            if self.priorities[thread.index()] == 0 {
                self.priorities[thread.index()] = rng.next() | 1;
            }
        }
        highest(able, &self.priorities)
    }
}
