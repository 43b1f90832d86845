//! Does a loop that was taken to wait give up by itself?
//!
//! Its thread goes further once, and does not wait where it would. After enough rounds that are all
//! alike it does not give up.

use std::ops::Range;

use crate::rt::event::Site;
use crate::rt::event::id::{Names, ObjectId, ThreadId};

use crate::rt::loops::spin::CYCLE_MAX;
use crate::rt::object::machine::waits::{AtHint, WaitsAt};
use crate::rt::object::machine::{Machine, Thread};

/// How many rounds more than where it would wait a thread goes further. A loop that has not given
/// up then does not, and waits again.
const ROUNDS_FURTHER: u32 = 128;

/// After how many of them it is known whether they change what the thread has for itself. Most
/// loops that back off do so ten times before all their rounds are alike.
const ROUNDS_COMPARED: u32 = 16;

/// How many rounds a thread goes further that may count them.
const ROUNDS_COUNTED: u32 = 10_000;

/// A thread that does not wait at hints and timed waits, or in its loop without a hint.
#[derive(Clone, Debug)]
pub(crate) struct GoesFurther {
    /// Its path of births.
    path: String,
    /// In which kind of loop it is, and what it comes back to in one without a hint.
    at: WaitsAt,
    look: Option<(Site, ObjectId)>,
    /// The thread, once it has a name.
    thread: Option<ThreadId>,
    /// From when on it does not, in its events.
    events: u32,
    /// How often it has come to a hint since then in the same way as the time before, or would have
    /// waited for what it looks at, or because its hints come in a cycle.
    rounds: u32,
    /// At how many hints it was in its last round so far, if these come in a cycle.
    hints: usize,
    /// After how many of these rounds it does not give up.
    enough: u32,
    /// What it had for itself at the end of one of them.
    state: Vec<u8>,
    /// How many events it had performed at the end of each of these rounds.
    ends: Vec<u32>,
    /// The last of them, as numbers of its events.
    round: Range<u32>,
    /// Whether it has come to one otherwise.
    has_left: bool,
}

impl GoesFurther {
    /// The thread has come to a hint with these of its events, where it would do this. Gives what
    /// it does, and counts the round if it goes on because of that.
    pub(super) fn come_to_hint(
        &mut self,
        (thread, entry): (ThreadId, &Thread),
        names: &Names,
        (at, round): (AtHint, Range<u32>),
    ) -> AtHint {
        // A loop that looks at nothing has no rounds that could be counted, and does not end by
        // going further.
        let is_bare = at == AtHint::Waits && entry.spin.awaited().is_empty();
        if is_bare || !self.concerns_hint(thread, entry.events, names) {
            return at;
        }
        match entry.spin.is_alike() {
            Some(_) if self.at == WaitsAt::Cycle => self.come_to_one_of_several(entry, at),
            // What it does behind the loop, until it is looked at again, is not counted.
            Some(true) => {
                self.end_round(entry.events);
                self.round = round;
            }
            Some(false) => self.has_left = true,
            None => {}
        }
        AtHint::GoesOn
    }

    /// The thread, whose hints come in a cycle, is at one of them, where it would do this.
    fn come_to_one_of_several(&mut self, entry: &Thread, at: AtHint) {
        let would_wait = at == AtHint::Waits;
        if would_wait && entry.spin.awaits_in_cycle().is_some() {
            self.end_round(entry.events);
            self.hints = 0;
            return;
        }
        // Within a cycle it would wait for nothing else, and none has more hints.
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

    /// A round has ended after so many events. What the thread does behind the loop is no round.
    fn end_round(&mut self, events: u32) {
        if !self.has_left {
            self.rounds += 1;
            self.ends.push(events);
        }
    }

    /// Whether the thread is to look once more instead of waiting, without a hint. Counts the round
    /// if so. Where it would wait for something else it has left its loop.
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

    /// Whether it is this thread, which has performed so many events, and it is not to wait yet.
    fn concerns(&mut self, thread: ThreadId, events: u32, names: &Names) -> bool {
        events >= self.events && !self.is_enough() && self.is(thread, names)
    }

    /// Whether it has made so many rounds that it does not give up.
    fn is_enough(&self) -> bool {
        self.rounds > self.enough
    }

    /// How many rounds it has to make up to the second of those at whose ends
    /// [`GoesFurther::compare`] is to be called.
    pub(crate) fn rounds_to_compare(&self) -> u32 {
        ROUNDS_COMPARED.saturating_sub(self.rounds)
    }

    /// The thread has this for itself at the end of a round. `is_all` says that it has nothing
    /// else.
    pub(crate) fn compare(&mut self, state: Vec<u8>, is_all: bool) {
        if self.rounds_to_compare() > 1 {
            self.state = state;
            return;
        }
        self.enough = match self.state == state {
            // It does the same again, and for ever.
            true if is_all => self.rounds,
            true => ROUNDS_FURTHER,
            false => ROUNDS_COUNTED,
        };
    }

    /// Whether it is this thread. Its name is looked up until it has one, and not in each round.
    fn is(&mut self, thread: ThreadId, names: &Names) -> bool {
        if self.thread.is_none() {
            self.thread = names.find(&self.path);
        }
        self.thread == Some(thread)
    }
}

impl Machine {
    /// The thread with this path is not to wait in such a loop once it has performed so many
    /// events.
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

    /// That thread, and how many events it had performed at the end of each round up to a hint or a
    /// timed wait.
    pub(crate) fn ends_further(&self) -> Option<(ThreadId, &[u32])> {
        let further = self.solo_run.as_ref()?;
        Some((further.thread?, &further.ends))
    }

    /// Which of that thread's events were its last round up to a hint.
    pub(crate) fn round_further(&self) -> Option<(ThreadId, Range<u32>)> {
        let further = self.solo_run.as_ref()?;
        Some((further.thread?, further.round.clone()))
    }

    /// This thread, if it goes further.
    pub(crate) fn further_of(&mut self, thread: ThreadId) -> Option<&mut GoesFurther> {
        (self.solo_run.as_mut()).filter(|further| further.thread == Some(thread))
    }

    /// Whether the thread has gone further so often that it does not give up.
    pub(crate) fn has_gone_far(&self) -> bool {
        self.solo_run.as_ref().is_some_and(GoesFurther::is_enough)
    }

    /// How often that thread has come to a hint in the same way as the time before, and whether it
    /// has come to one otherwise.
    pub(crate) fn rounds_further(&self) -> (u32, bool) {
        let further = self.solo_run.as_ref();
        further.map_or((0, false), |it| (it.rounds, it.has_left))
    }
}
