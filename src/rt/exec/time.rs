//! How does a thread read the clock?
//!
//! [`clock`](super::clock) says what a read may find.

use crate::rt::event::Site;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{Choice, OpKind};
use crate::rt::rare::cold_path;

use super::clock::{Asked, DAY, Moment, most_reads, outcomes};
use super::context::{Inner, Runtime, with, with_any};
use super::permitted::{Behaviour, Possible};

impl Runtime {
    /// What the read of the clock that the current thread begins at this place may find.
    fn ask_clock(&self, site: Site) -> Asked {
        self.does_more_than_look();
        let me = self.current.get();
        let is_weak = self.weak.get();
        let mut inner = self.inner.borrow_mut();
        let clock = &mut *self.clock.borrow_mut();
        let (latest, deadlines) =
            clock.known_to(me, |of, index| inner.has_learnt(me, (of, index), is_weak));
        let machine = &inner.driver.machine;
        let limits = &machine.limits;
        let events = machine.events_of(me);
        let Some(latest) = latest else {
            // No instant is older than the first one of the execution.
            let is_first = me == ThreadId::MAIN && machine.first_spawn().is_none();
            let (times, outcomes) = outcomes(0, Vec::new());
            return Asked {
                times,
                outcomes: if is_first { 1 } else { outcomes },
                passes: false,
            };
        };
        let hinted = machine.has_yielded(me);
        let reads = clock.reads(me, site);
        let is_bare = hinted && reads.still > 0 && events == reads.events;
        reads.bare = if is_bare { reads.bare + 1 } else { 0 };
        let is_cut = reads.still >= most_reads(limits.timeout_bound);
        let passes = is_cut || reads.bare >= limits.spin_bound + 2 || inner.was_released(me);
        if is_cut {
            cold_path();
            let possible = Possible {
                behaviour: Behaviour::ClockStandsStill,
                site,
                explored: false,
            };
            self.permitted.note(possible, false);
        }
        let (mut times, mut outcomes) = outcomes(latest, deadlines);
        if passes {
            times[0] = times[outcomes as usize - 1];
            outcomes = 1;
        }
        Asked {
            times,
            outcomes,
            passes,
        }
    }

    /// The time that the current thread finds by this outcome of its read.
    fn tell_time(&self, asked: &Asked, outcome: u32, site: Site) -> u64 {
        let me = self.current.get();
        let mut inner = self.inner.borrow_mut();
        let machine = &mut inner.driver.machine;
        let clock = &mut *self.clock.borrow_mut();
        let events = machine.events_of(me);
        let time = asked.times[outcome as usize];
        clock.moments.push(Moment {
            thread: me,
            index: events.saturating_sub(1),
            time,
            is_deadline: false,
        });
        let most = machine.limits.timeout_bound;
        let reads = clock.reads(me, site);
        reads.events = events;
        if asked.passes || outcome > 0 {
            (reads.still, reads.bare) = (0, 0);
            reads.passed += 1;
            // A loop does something else once a deadline is over, so its rounds begin anew. A loop
            // that goes on whatever the time is must have an end, too.
            if reads.passed <= most {
                machine.note_change(me);
            }
        } else {
            reads.still += 1;
        }
        time
    }
}

impl Inner {
    /// Whether all that `me` does next comes behind the event of another thread with this index.
    fn has_learnt(&mut self, me: ThreadId, of: (ThreadId, u32), is_weak: bool) -> bool {
        if is_weak {
            // The order of the events is one of several, and says less.
            let (past, gone) = (self.driver.past(), self.driver.gone());
            self.races.has_learnt(me, of, past, gone)
        } else {
            self.driver.has_learnt(me, of)
        }
    }

    /// Whether the thread has waited for a change since its last look at the clock, until nothing
    /// else could run.
    fn was_released(&self, thread: ThreadId) -> bool {
        let executed = self.driver.executed().iter().rev();
        let mut own = executed.filter(|event| event.thread == thread);
        let last = own.find(|event| match event.operation.kind {
            OpKind::Choose { what, .. } => matches!(what, Choice::Clock | Choice::TimePasses),
            OpKind::Wait { .. } => event.outcome.is_released(),
            _ => false,
        });
        last.is_some_and(|event| matches!(event.operation.kind, OpKind::Wait { .. }))
    }
}

/// What the read of the clock that the current thread begins at this place may find. `None` where
/// no execution runs.
pub(crate) fn ask(site: Site) -> Option<Asked> {
    with(|runtime| runtime.ask_clock(site)).ok()
}

/// The time that the current thread finds by this outcome of its read, in nanoseconds since the
/// clock began.
pub(crate) fn tell(asked: &Asked, outcome: u32, site: Site) -> Option<u64> {
    with(|runtime| runtime.tell_time(asked, outcome, site)).ok()
}

/// A time behind all those of an execution that is over; `None` where no model runs.
pub(crate) fn at_the_end() -> Option<u64> {
    with_any(|runtime| {
        let clock = runtime.clock.try_borrow().ok()?;
        let latest = clock.moments.iter().map(|moment| moment.time).max();
        Some(latest.unwrap_or_default().saturating_add(DAY))
    })
    .flatten()
}

/// Notes a deadline of the current thread, in nanoseconds since the clock began.
pub(crate) fn note_deadline(time: u64) {
    // Where no model runs, no time passes by a choice.
    let _ = with(|runtime| {
        let thread = runtime.current.get();
        let index = runtime.inner.borrow().driver.machine.events_of(thread);
        let moments = &mut runtime.clock.borrow_mut().moments;
        let is_known = |it: &Moment| it.thread == thread && it.is_deadline && it.time == time;
        if !moments.iter().any(is_known) {
            moments.push(Moment {
                thread,
                index,
                time,
                is_deadline: true,
            });
        }
    });
}

/// The current thread has waited for so many nanoseconds. Without an earlier look at the clock that
/// makes no difference.
#[inline]
pub(crate) fn pass(nanoseconds: u64) {
    let _ = with(|runtime| {
        if !runtime.clock.borrow().moments.is_empty() {
            runtime.let_time_pass(nanoseconds);
        }
    });
}

impl Runtime {
    #[cold]
    fn let_time_pass(&self, nanoseconds: u64) {
        let me = self.current.get();
        let is_weak = self.weak.get();
        let mut inner = self.inner.borrow_mut();
        let clock = &mut *self.clock.borrow_mut();
        let learnt = |of, index| inner.has_learnt(me, (of, index), is_weak);
        if let (Some(latest), _) = clock.known_to(me, learnt) {
            let events = inner.driver.machine.events_of(me);
            clock.moments.push(Moment {
                thread: me,
                index: events.saturating_sub(1),
                time: latest.saturating_add(nanoseconds).saturating_add(1),
                is_deadline: false,
            });
        }
    }
}
