//! When does a loop that only reads wait for a change?
//!
//! `while !flag.load() { spin_loop() }` has infinitely many executions unless the wait is an event.
//! So each thread keeps a log of its reads since its last hint (`yield_now`, `spin_loop`). An
//! iteration is *idle* when the thread reaches the same hint again after reads of the same
//! locations with the same values and without a change. The first [`Limits::spin_bound`] idle
//! iterations are free; after them the hint is a wait for another value in one of those locations.
//! A loop without a hint is recognised in the same way, when it repeats the same read, but only
//! after [`Limits::unhinted_spin_bound`] repetitions: a `for` loop that reads is not a spin loop.
//! That bound is small until a loop that has waited turns out to have a bound of its own.
//!
//! A loop with a hint may also change a location and change it back: for example, it takes a lock
//! of its own making, finds no work behind it, and releases the lock. Its iteration is idle if all
//! locations it has read and changed have their earlier values again, if the same was true of the
//! iteration before, and if the cells it writes to held the same contents. The log checks that from
//! the second time on that the thread reaches the hint with a change.
//!
//! A loop may have several hints, or read other locations in each round: then it is a repeated
//! cycle of rounds ([`cycle`]).
//!
//! Consecutive hints with no operation in between count as one: a backoff makes more of them each
//! time. But a thread that makes [`BARE_MAX`] of them reads no location that another thread could
//! change, and its wait is for a change of no location.
//!
//! A failed compare-exchange, a swap of the same value and a failed `try_lock` count as reads,
//! because two spinning threads would otherwise wake each other forever.
//!
//! [`Limits::spin_bound`]: crate::rt::object::machine::Limits::spin_bound
//! [`Limits::unhinted_spin_bound`]: crate::rt::object::machine::Limits::unhinted_spin_bound

use std::ptr;

mod cycle;
mod round;
#[cfg(test)]
mod tests;

/// The most rounds of a loop with several hints that count as a cycle.
pub(crate) const CYCLE_MAX: usize = cycle::LONGEST;

use crate::rt::event::Site;
use crate::rt::event::id::ObjectId;
use crate::rt::event::mix::{STEP, mix};
use crate::rt::event::operation::{OpKind, Outcome};
use crate::rt::rare::{Roomy, mostly, rarely};

use crate::rt::loops::spin::cycle::Cycle;
use crate::rt::loops::spin::round::Round;

/// The reads of one thread since its last hint, and those of the iteration before.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpinLog {
    reads: Vec<(ObjectId, u64)>,
    before: Vec<(ObjectId, u64)>,
    changed: bool,
    site: Option<Site>,
    idle: u32,
    /// The number of bare hints, with no operation in between, since the last hint behind an
    /// operation.
    bare: u32,
    /// Whether the last iteration was like the one before, even if its hint is another one; `None`
    /// if the iteration consisted of the hint only.
    alike: Option<bool>,
    /// For each hint, the number of times that the thread has reached it after a change.
    rounds: Vec<(Site, usize)>,
    /// The rounds since the last change, without the last `run` ones. These last rounds were the
    /// same, and have the reads of the last iteration.
    cycle: Cycle,
    run: u32,
    round: Round,
    /// Whether `round` is kept: an iteration has made a change and has reached its hint again.
    follows: bool,
    /// Whether the thread has made a change since then that it may undo before the next hint.
    open: bool,
    /// For a loop without a hint: the read that it repeats, and the number of repetitions with the
    /// same value.
    unhinted: Option<(Site, ObjectId, u64)>,
    repeats: u32,
    /// The number of other reads since that read.
    others: u32,
    /// The number of earlier candidates for that read since the last change. They were given up,
    /// because they were not repeated soon enough.
    given_up: u8,
    /// Whether that read is the only one since the last hint, and not in `reads`. A change mostly
    /// follows a read soon, and then the read is not needed.
    lone: bool,
    /// The part of the log to wait for, if the thread is to wait at its current hint.
    awaits: Awaited,
}

/// The part of its log that a thread waits for at a hint.
#[derive(Clone, Copy, Debug, Default)]
enum Awaited {
    #[default]
    Nothing,
    /// The locations that the thread has only read.
    Before,
    /// The locations that the thread has left with their earlier values.
    Undone,
    /// The locations that the rounds of a cycle have read.
    InCycle,
}

/// A spin loop reads few locations. A thread that reads more locations than this since its last
/// hint is not spinning on them.
const ENOUGH: usize = 64;

/// The number of other reads within which the first candidate must be repeated. The next candidate
/// has twice as many, and so on up to [`ENOUGH`]. So the reads before a short loop do not prevent
/// its recognition, and a long loop is recognised as well.
const FEW: u32 = 4;

/// The most consecutive bare hints. They take a quarter of a second or more, which is longer than a
/// backoff and longer than a test waits.
const BARE_MAX: u32 = 10_000_000;

/// The number of times that a round is made if its repetitions are idle.
#[inline]
fn times(spin_bound: u32) -> usize {
    spin_bound as usize + 2
}

impl SpinLog {
    pub(crate) fn reset(&mut self) {
        self.reads.clear();
        self.changed = false;
        self.bare = 0;
        self.unhinted = None;
        self.repeats = 0;
        self.others = 0;
        self.given_up = 0;
        self.lone = false;
        // Most threads reach no hint and wait nowhere.
        if self.site.is_some() || !self.rounds.is_empty() {
            self.reset_iterations();
        }
    }

    /// Forgets the iterations. The log of iterations begins with the first [`SpinLog::turn`], or
    /// before it if even one iteration is too many.
    #[cold]
    fn reset_iterations(&mut self) {
        self.before.clear();
        self.site = None;
        self.idle = 0;
        self.alike = None;
        self.awaits = Awaited::Nothing;
        self.rounds.clear();
        self.cycle.reset();
        self.run = 0;
        self.round.reset();
        self.follows = false;
        self.open = false;
    }

    /// Notes that the thread has found `found` in `object` and left `left` there. If the two are
    /// equal, the thread has only read, and `is_kept` is the answer of [`SpinLog::come_back`].
    /// False if the note is not complete and [`SpinLog::note_more`] has to follow.
    #[inline(always)]
    pub(crate) fn note(&mut self, object: ObjectId, found: u64, left: u64, is_kept: bool) -> bool {
        if found != left {
            self.forget();
            return !self.follows;
        }
        if is_kept && self.reads.is_empty() {
            self.lone = true;
            return !self.follows;
        }
        if self.lone {
            if rarely!(self.reads.len() >= self.reads.capacity()) {
                return false;
            }
            self.write_down();
        }
        // Mostly there are at most two locations since the last change, and the third is read once.
        // Notes that need an allocation are left to `note_more`.
        match self.reads.as_mut_slice() {
            [(first, seen), ..] if *first == object => *seen = found,
            [_, (second, seen), ..] if *second == object => *seen = found,
            few => {
                if rarely!(few.len() > 2) {
                    return false;
                }
                if rarely!(self.reads.len() >= self.reads.capacity()) {
                    return false;
                }
                // There is room, but the compiler cannot see that here.
                self.reads.put((object, found));
            }
        }
        !self.follows
    }

    /// The rest of [`SpinLog::note`].
    #[inline(never)]
    pub(crate) fn note_more(&mut self, object: ObjectId, found: u64, left: u64) {
        if self.follows {
            self.round.touch(object, found, left);
            self.open |= found != left;
        }
        if found != left {
            return;
        }
        // The read may have been noted already, as the only one. An equal read at another place has
        // not been.
        let is = |(_, only, value)| (only, value) == (object, found);
        if self.lone && self.others == 0 && self.unhinted.is_some_and(is) {
            return;
        }
        self.write_down();
        if let Some(entry) = self.reads.iter_mut().find(|(o, _)| *o == object) {
            entry.1 = found;
        } else if self.reads.len() < ENOUGH {
            self.reads.push((object, found));
        } else {
            self.change();
        }
    }

    /// The thread has taken a token that it had made available itself. The reads of the token since
    /// the last hint do not count, nor do those in an earlier round of a cycle.
    pub(crate) fn take_own(&mut self, object: ObjectId) {
        self.write_down();
        self.cycle.take_own(object);
        self.reads.retain(|&(seen, _)| seen != object);
        self.round.untouch(object);
    }

    /// Whether the thread has made changes since the last call that did not count as progress,
    /// because they may be undone before the next hint.
    pub(crate) fn has_left_a_change(&mut self) -> bool {
        std::mem::take(&mut self.open)
    }

    /// Notes a change that the log cannot see undone.
    #[inline]
    pub(crate) fn change(&mut self) {
        self.round.lasting = self.follows;
        self.forget();
    }

    /// Whether the log needs the contents of the plain memory that the thread is about to write to.
    #[inline]
    pub(crate) fn follows(&self) -> bool {
        self.follows
    }

    /// Notes the contents of plain memory that the thread is about to write to. The next iteration
    /// finds the written contents.
    pub(crate) fn touch_memory(&mut self, contents: u64) {
        self.round.memory = mix(self.round.memory.wrapping_add(STEP) ^ contents);
    }

    #[inline]
    fn forget(&mut self) {
        self.changed = true;
        self.lone = false;
        self.reads.clear();
        self.unhinted = None;
        self.given_up = 0;
    }

    /// Moves the only read to `reads`.
    #[inline]
    fn write_down(&mut self) {
        if std::mem::take(&mut self.lone)
            && let Some((_, object, value)) = self.unhinted
        {
            self.reads.push((object, value));
        }
    }

    /// Whether the thread has read a value since its last hint that differs from the value of the
    /// same location in the iteration before.
    #[cold]
    pub(crate) fn has_seen_a_change(&mut self) -> bool {
        self.write_down();
        let is_other = |&(object, found): &(ObjectId, u64)| {
            let before = self.before.iter().find(|(known, _)| *known == object);
            before.is_some_and(|&(_, value)| value != found)
        };
        self.reads.iter().any(is_other)
    }

    /// Whether the thread has made a change since its last hint.
    #[inline]
    pub(crate) fn has_changed(&self) -> bool {
        self.changed
    }

    /// The thread has reached a hint at `site` after a change since its last hint. Returns how many
    /// times it has done so.
    pub(crate) fn count_round(&mut self, site: Site) -> usize {
        let mut rounds = self.rounds.iter_mut();
        match rounds.find(|(hint, _)| ptr::eq(*hint, site)) {
            Some((_, times)) => {
                *times += 1;
                *times
            }
            None => {
                self.rounds.push((site, 1));
                1
            }
        }
    }

    /// The most times that the thread has reached one hint after a change.
    pub(crate) fn most_rounds(&self) -> usize {
        let rounds = self.rounds.iter().map(|&(_, times)| times);
        rounds.max().unwrap_or_default()
    }

    /// Whether the thread has reached a hint.
    pub(crate) fn has_come_to_a_hint(&self) -> bool {
        self.site.is_some()
    }

    /// [`SpinLog::hint`] for a thread that reaches its last hint again, with only reads in between
    /// that had the same values. Most rounds of a waiting loop are like that. `None`, without an
    /// effect, in all other cases.
    #[inline(always)]
    pub(crate) fn look_again(&mut self, site: Site, spin_bound: u32) -> Option<bool> {
        let same_place = self.site.is_some_and(|before| ptr::eq(before, site));
        if self.changed || self.follows || self.cycle.rests() || !same_place {
            return None;
        }
        let again = match (self.lone, self.unhinted, self.before.as_slice()) {
            (true, Some((_, object, value)), &[only]) => only == (object, value),
            (true, ..) => false,
            (false, _, before) => !before.is_empty() && self.reads == before,
        };
        if !again {
            return None;
        }
        self.lone = false;
        self.reads.clear();
        self.bare = 0;
        self.repeats = 0;
        self.alike = Some(true);
        self.idle += 1;
        self.run += 1;
        self.awaits = Awaited::Before;
        if self.idle > spin_bound {
            return Some(true);
        }
        Some(self.is_in_cycle(spin_bound))
    }

    /// The thread has reached a hint at `site`. Returns whether it is to wait, for the values that
    /// [`SpinLog::awaited`] then returns.
    #[inline(always)]
    pub(crate) fn hint(&mut self, site: Site, spin_bound: u32) -> bool {
        self.write_down();
        if self.reads.is_empty() && !self.changed {
            return self.hint_again();
        }
        self.bare = 0;
        let same_place = self.site.is_some_and(|before| ptr::eq(before, site));
        let looks = !self.changed && self.reads == self.before;
        let mut alike = looks;
        if self.follows || same_place && self.changed {
            alike |= self.follow(same_place);
        }
        self.alike = Some(alike);
        self.idle = if same_place && alike {
            // The loop has a hint, so its repeated reads do not count as those of a loop
            // without one.
            self.repeats = 0;
            self.idle + 1
        } else {
            0
        };
        if self.changed {
            self.cycle.reset();
            self.run = 0;
        } else if !(same_place && looks) {
            self.keep_last_run(spin_bound);
        }
        self.run += 1;
        self.cycle.end_round();
        self.turn(site);
        if self.idle > spin_bound {
            self.awaits = if looks {
                Awaited::Before
            } else {
                Awaited::Undone
            };
            return true;
        }
        self.is_in_cycle(spin_bound)
    }

    /// The run of equal rounds is over, and joins the earlier rounds of the cycle.
    #[inline]
    fn keep_last_run(&mut self, spin_bound: u32) {
        if let Some(hint) = self.site
            && self.run > 0
        {
            let rounds = std::mem::take(&mut self.run);
            (self.cycle).push(hint, &self.before, rounds as usize, times(spin_bound));
        }
    }

    /// Whether the thread is to wait because its last rounds were a cycle. Sets the values to wait
    /// for.
    #[inline(always)]
    fn is_in_cycle(&mut self, spin_bound: u32) -> bool {
        let times = times(spin_bound);
        // Mostly there was a change shortly before.
        self.cycle.may_repeat(self.run as usize, times) && self.find_cycle(times)
    }

    #[cold]
    #[inline(never)]
    fn find_cycle(&mut self, times: usize) -> bool {
        self.awaits = Awaited::InCycle;
        let Some(hint) = self.site else {
            return false;
        };
        (self.cycle).repeats(hint, &self.before, self.run as usize, times)
    }

    /// The thread has reached another hint with no operation in between. Returns whether it has
    /// made too many such hints.
    #[cold]
    fn hint_again(&mut self) -> bool {
        self.alike = None;
        self.awaits = Awaited::Nothing;
        self.bare = BARE_MAX.min(self.bare) + 1;
        self.bare > BARE_MAX
    }

    /// The thread reaches a hint, maybe its last hint again, after a change before this hint or
    /// before the previous one. Returns whether it has undone its changes, as in its last
    /// iteration.
    fn follow(&mut self, same_place: bool) -> bool {
        let undoes = self.follows && self.round.turn();
        let followed = std::mem::replace(&mut self.follows, same_place && self.changed);
        if followed && !self.follows {
            self.round.reset();
        }
        undoes
    }

    /// The values that a thread waits for if it is to wait at a hint. Empty if it has made too many
    /// bare hints.
    pub(crate) fn awaited(&self) -> &[(ObjectId, u64)] {
        match self.awaits {
            Awaited::Nothing => &[],
            Awaited::Before => &self.before,
            Awaited::Undone => &self.round.before,
            Awaited::InCycle => self.cycle.read(),
        }
    }

    /// If a thread is to wait at a hint because it is in a cycle: the first hint of the cycle in
    /// the order of the source.
    pub(crate) fn awaits_in_cycle(&self) -> Option<Site> {
        match self.awaits {
            Awaited::InCycle => self.cycle.first_hint(),
            _ => None,
        }
    }

    /// Whether the iteration that has reached a hint was like the one before; `None` if it had no
    /// operation.
    pub(crate) fn is_alike(&self) -> Option<bool> {
        self.alike
    }

    /// Whether [`SpinLog::repeats_itself`] may return values to wait for, with this bound.
    #[inline]
    pub(crate) fn may_wait(&self, bound: u32) -> bool {
        self.repeats >= bound
    }

    /// The thread is about to read `object` at `site`, without a hint before. Returns the values to
    /// wait for, if it has repeated the read often enough and found the same value each time.
    ///
    /// The current value of the object does not count. Threads that run before this thread may
    /// change the value, and the decision to wait must not depend on a value that no event of the
    /// thread has read.
    pub(crate) fn repeats_itself(
        &mut self,
        site: Site,
        object: ObjectId,
    ) -> Option<&[(ObjectId, u64)]> {
        self.write_down();
        let (known, before, _) = self.unhinted?;
        let again = ptr::eq(known, site) && before == object;
        if !again || self.reads.is_empty() {
            return None;
        }
        self.repeats = 0;
        // The reads before this wait are not part of the round that reaches the next hint.
        self.cycle.reset();
        self.run = 0;
        self.turn(site);
        Some(&self.before)
    }

    /// The thread reads `object` at `site`, and finds `value`. Returns whether this is the read by
    /// which a loop is recognised.
    ///
    /// A loop may read several locations, and other reads may precede it. It is recognised by any
    /// one read that is repeated before [`ENOUGH`] other reads, or [fewer](FEW).
    #[inline(always)]
    pub(crate) fn come_back(
        &mut self,
        site: Site,
        object: ObjectId,
        value: u64,
        bound: u32,
    ) -> bool {
        if let Some((known, before, seen)) = self.unhinted {
            // Each place in the program has one address. A comparison of names would take longer
            // than the read.
            if ptr::eq(known, site) && (before, seen) == (object, value) {
                self.others = 0;
                self.repeats += 1;
                if rarely!(self.repeats == bound) {
                    // From here on the log has the reads of one iteration only.
                    self.reads.clear();
                    self.lone = false;
                }
                return true;
            }
            self.others += 1;
            let most = FEW << self.given_up;
            if mostly!(self.others <= most) {
                return false;
            }
            if self.lone {
                return false;
            }
            self.given_up += u8::from(most < ENOUGH as u32);
        }
        self.unhinted = Some((site, object, value));
        self.others = 0;
        self.repeats = 0;
        true
    }

    fn turn(&mut self, site: Site) {
        std::mem::swap(&mut self.reads, &mut self.before);
        self.reads.clear();
        self.changed = false;
        self.site = Some(site);
    }
}

/// The meaning of an operation, on any object but an atomic, for the question whether its thread
/// only reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    Nothing,
    Change,
    /// The operation has read this value
    /// ([`State::polled_by`](crate::rt::object::State::polled_by)).
    Look(u64),
}

/// The meaning of an operation with this outcome, on an object that showed `before` and shows
/// `now`.
#[inline]
pub(crate) fn meaning(kind: &OpKind, outcome: Outcome, (before, now): (u64, u64)) -> Meaning {
    let looks = only_looks(kind) && outcome.succeeded();
    if is_silent(kind, outcome) {
        Meaning::Nothing
    } else if matches!(kind, OpKind::Unpark) {
        // The program cannot see which of several unparks has made the token available, but it can
        // see that the token is available now.
        Meaning::Look(now)
    } else if kind.counts() {
        meaning_of_count(kind, outcome, (before, now))
    } else if !looks && now != before || changes(kind, outcome) {
        Meaning::Change
    } else if outcome != Outcome::Done || looks {
        // A lock that the operation has taken was free.
        Meaning::Look(if looks { before & !3 } else { before })
    } else {
        Meaning::Nothing
    }
}

/// [`meaning`] of an operation that [counts](OpKind::counts).
///
/// A loop that clones an `Arc` and drops it again is as idle as one that does not. An upgrade shows
/// whether there are references left.
#[inline(always)]
pub(crate) fn meaning_of_count(
    kind: &OpKind,
    outcome: Outcome,
    (before, now): (u64, u64),
) -> Meaning {
    if now == before && outcome != Outcome::Done || matches!(kind, OpKind::Upgrade) {
        Meaning::Look(before)
    } else {
        Meaning::Nothing
    }
}

/// Whether the operation is a change, even if the object does not show it. A dropped sender is a
/// change even if it is not the last sender: the order decides which one is the last. The beginning
/// or the failure of an initialisation does not show.
fn changes(kind: &OpKind, outcome: Outcome) -> bool {
    match kind {
        OpKind::DropSender | OpKind::EndOnce { .. } => true,
        // The engine does not know the contents of the object, so it cannot tell whether another
        // look would find the same.
        OpKind::Touch(_) => true,
        // Others commute with it, so its thread must not see what it has changed.
        OpKind::Rmw { blind: true, .. } => true,
        OpKind::CallOnce { .. } => outcome.succeeded(),
        _ => false,
    }
}

/// Whether the operation belongs to a critical section without a change. To take a lock only to
/// read the protected data is no progress.
fn only_looks(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Lock
            | OpKind::TryLock
            | OpKind::Unlock { changed: false }
            | OpKind::ReadLock
            | OpKind::TryRead
            | OpKind::UnlockRead
            | OpKind::WriteLock
            | OpKind::TryWrite
            | OpKind::UnlockWrite { changed: false }
    )
}

/// Whether the operation counts neither as a change nor as a read. It commutes with operations that
/// change the value it would have read, so that value must not decide when a loop waits.
fn is_silent(kind: &OpKind, outcome: Outcome) -> bool {
    match kind {
        OpKind::Taken { .. } | OpKind::EndForNoReason => true,
        OpKind::NotifyOne | OpKind::NotifyAll => outcome == Outcome::Value(0),
        OpKind::Awake { .. } => !outcome.succeeded(),
        _ => false,
    }
}
