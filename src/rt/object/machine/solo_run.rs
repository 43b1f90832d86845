//! Does a loop that was taken to wait give up by itself?
//!
//! In a solo run the thread of the loop continues where it would wait. If enough rounds are all
//! alike, the loop does not give up.

use std::ops::Range;

use crate::rt::event::Site;
use crate::rt::event::id::{Names, ObjectId, ThreadId};

use crate::rt::loops::spin::CYCLE_MAX;
use crate::rt::object::machine::waits::{AtHint, WaitsAt};
use crate::rt::object::machine::{Machine, Thread};

/// The number of rounds that a thread makes beyond the point at which it would wait. A loop that
/// has not given up by then does not give up, and waits again.
const ROUNDS_FURTHER: u32 = 128;

/// The number of rounds after which it is known whether the rounds change the private state of the
/// thread. Most loops that back off do so ten times before all their rounds are alike.
const ROUNDS_COMPARED: u32 = 16;

/// The number of rounds that a thread makes in a solo run if it may count its rounds.
const ROUNDS_COUNTED: u32 = 10_000;

/// A thread that does not wait at hints and timed waits, or in its loop without a hint.
#[derive(Clone, Debug)]
pub(crate) struct GoesFurther {
    /// The path of spawns that names the thread.
    path: String,
    /// The kind of its loop. `look` is the repeated look of a loop without a hint.
    at: WaitsAt,
    look: Option<(Site, ObjectId)>,
    /// The thread, once it has a name.
    thread: Option<ThreadId>,
    /// The number of events of the thread from which on it does not wait.
    events: u32,
    /// The number of rounds since then: visits to a hint in the same way as the visit before, or
    /// waits that the thread would have begun for the objects it looks at, or because its hints
    /// come in a cycle.
    rounds: u32,
    /// The number of hints in its current round, if its hints come in a cycle.
    hints: usize,
    /// The number of rounds after which the loop is known not to give up.
    enough: u32,
    /// The private state of the thread at the end of one round.
    state: Vec<u8>,
    /// The numbers of events of the thread at the ends of these rounds.
    ends: Vec<u32>,
    /// The last round, as a range of its event numbers.
    round: Range<u32>,
    /// Whether the thread has reached a hint in another way, and so has left the loop.
    has_left: bool,
}

impl GoesFurther {
    /// The thread has reached a hint behind the events `round`, where it would do `at`. Returns its
    /// action in the solo run, and counts the round if the thread continues because of the solo
    /// run.
    pub(super) fn come_to_hint(
        &mut self,
        (thread, entry): (ThreadId, &Thread),
        names: &Names,
        (at, round): (AtHint, Range<u32>),
    ) -> AtHint {
        // A loop that looks at nothing has no rounds to count, and does not end in a solo run.
        let is_bare = at == AtHint::Waits && entry.spin.awaited().is_empty();
        if is_bare || !self.concerns_hint(thread, entry.events, names) {
            return at;
        }
        match entry.spin.is_alike() {
            Some(_) if self.at == WaitsAt::Cycle => self.come_to_one_of_several(entry, at),
            // The events behind the loop, up to the next check, do not count as a round.
            Some(true) => {
                self.end_round(entry.events);
                self.round = round;
            }
            Some(false) => self.has_left = true,
            None => {}
        }
        AtHint::GoesOn
    }

    /// The hints of the thread come in a cycle, and the thread has reached one of them, where it
    /// would do `at`.
    fn come_to_one_of_several(&mut self, entry: &Thread, at: AtHint) {
        let would_wait = at == AtHint::Waits;
        if would_wait && entry.spin.awaits_in_cycle().is_some() {
            self.end_round(entry.events);
            self.hints = 0;
            return;
        }
        // Within a cycle the thread would wait for nothing else, and no cycle has more hints.
        self.hints += 1;
        self.has_left |= would_wait || self.hints > CYCLE_MAX;
    }

    /// Whether the thread is to time out once more instead of waiting. Counts the round if so.
    pub(super) fn times_out_again(&mut self, thread: ThreadId, events: u32, names: &Names) -> bool {
        let again = self.concerns_hint(thread, events, names);
        if again {
            self.end_round(events);
        }
        again
    }

    /// A round has ended after this number of events. Events behind the loop are no round.
    fn end_round(&mut self, events: u32) {
        if !self.has_left {
            self.rounds += 1;
            self.ends.push(events);
        }
    }

    /// Whether the thread is to look once more without a hint instead of waiting. Counts the round
    /// if so. A thread that would wait for another object has left its loop.
    pub(super) fn looks_again(
        &mut self,
        (thread, events): (ThreadId, u32),
        names: &Names,
        look: (Site, ObjectId),
    ) -> bool {
        let again = self.at == WaitsAt::Look
            && self.concerns(thread, events, names)
            && *self.look.get_or_insert(look) == look;
        self.rounds += u32::from(again);
        again
    }

    /// Whether the thread is not to wait yet at a hint or a timed wait.
    fn concerns_hint(&mut self, thread: ThreadId, events: u32, names: &Names) -> bool {
        self.at != WaitsAt::Look && self.concerns(thread, events, names)
    }

    /// Whether this thread is the one of the solo run, has performed enough events, and is not to
    /// wait yet.
    fn concerns(&mut self, thread: ThreadId, events: u32, names: &Names) -> bool {
        events >= self.events && !self.is_enough() && self.is(thread, names)
    }

    /// Whether the thread has made so many rounds that its loop does not give up.
    fn is_enough(&self) -> bool {
        self.rounds > self.enough
    }

    /// The number of rounds up to the second of the two rounds that end with a call of
    /// [`GoesFurther::compare`].
    pub(crate) fn rounds_to_compare(&self) -> u32 {
        ROUNDS_COMPARED.saturating_sub(self.rounds)
    }

    /// Compares the private state of the thread at the ends of two rounds. `is_all` tells that the
    /// thread has no other private state.
    pub(crate) fn compare(&mut self, state: Vec<u8>, is_all: bool) {
        if self.rounds_to_compare() > 1 {
            self.state = state;
            return;
        }
        self.enough = match self.state == state {
            // The thread repeats the round for ever.
            true if is_all => self.rounds,
            true => ROUNDS_FURTHER,
            false => ROUNDS_COUNTED,
        };
    }

    /// Whether `thread` is the thread of the solo run. Its name is looked up only until it exists,
    /// and not in each round.
    fn is(&mut self, thread: ThreadId, names: &Names) -> bool {
        if self.thread.is_none() {
            self.thread = names.find(&self.path);
        }
        self.thread == Some(thread)
    }
}

impl Machine {
    /// Begins a solo run: once the thread with this path has this number of events, it does not
    /// wait in such a loop.
    pub(crate) fn let_go_further(&mut self, path: String, events: u32, at: WaitsAt) {
        self.solo_run = Some(GoesFurther {
            path,
            at,
            look: None,
            thread: None,
            events,
            rounds: 0,
            hints: 0,
            enough: ROUNDS_FURTHER,
            state: Vec::new(),
            ends: Vec::new(),
            round: 0..0,
            has_left: false,
        });
    }

    /// The thread of the solo run, and its numbers of events at the ends of the rounds up to a hint
    /// or a timed wait.
    pub(crate) fn ends_further(&self) -> Option<(ThreadId, &[u32])> {
        let further = self.solo_run.as_ref()?;
        Some((further.thread?, &further.ends))
    }

    /// The thread of the solo run, and the range of its events in its last round up to a hint.
    pub(crate) fn round_further(&self) -> Option<(ThreadId, Range<u32>)> {
        let further = self.solo_run.as_ref()?;
        Some((further.thread?, further.round.clone()))
    }

    /// The solo run, if it is one of this thread.
    pub(crate) fn further_of(&mut self, thread: ThreadId) -> Option<&mut GoesFurther> {
        (self.solo_run.as_mut()).filter(|further| further.thread == Some(thread))
    }

    /// Whether the thread of the solo run has made so many rounds that its loop does not give up.
    pub(crate) fn has_gone_far(&self) -> bool {
        self.solo_run.as_ref().is_some_and(GoesFurther::is_enough)
    }

    /// Whether the thread of the solo run is known to repeat its last round for ever, because the
    /// round has left its state as it was.
    pub(crate) fn repeats_for_ever(&self) -> bool {
        let further = self.solo_run.as_ref();
        further.is_some_and(|further| further.enough < ROUNDS_FURTHER)
    }

    /// The number of rounds of the solo run, and whether the thread has left the loop.
    pub(crate) fn rounds_further(&self) -> (u32, bool) {
        let further = self.solo_run.as_ref();
        further.map_or((0, false), |it| (it.rounds, it.has_left))
    }
}
