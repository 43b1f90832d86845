//! When does a loop that only looks wait for a change?
//!
//! `while !flag.load() { spin_loop() }` has infinitely many executions unless waiting is an event.
//! So each thread keeps a log of what it has read since its last hint (`yield_now`, `spin_loop`).
//! An iteration is *idle* when the thread comes back to the same hint having read the same
//! locations with the same values and having changed nothing. The first [`Limits::spin_bound`] idle
//! iterations are free; after them the hint is a wait for another value in one of those locations.
//! A loop without a hint is noticed in the same way, by coming back to the same read, but only
//! after [`Limits::unhinted_spin_bound`] repetitions: a `for` loop that reads is not a spin loop.
//! These are few until a loop that has waited turns out to give up by itself.
//!
//! A loop with a hint may also take something and put it back, like one that tries a lock of its
//! own making and finds nothing behind it. Its iteration is idle if everything that it has seen and
//! changed is as it was before, and was so in the iteration before, and cells that it writes to
//! held the same. That is looked at from the second hint on that such a loop comes to.
//!
//! A loop may have several hints, or look at something else in each round: then it is a cycle of
//! rounds that is repeated ([`cycle`]).
//!
//! Hints that follow each other with nothing in between are one: a backoff makes more of them each
//! time. But a thread that makes [`BARE_MAX`] of them looks at nothing that another thread could
//! change, and waits for a change of nothing.
//!
//! A failed compare-exchange, a swap of the same value and a failed `try_lock` count as reads,
//! because two spinning threads would otherwise wake each other for ever.
//!
//! [`Limits::spin_bound`]: crate::rt::object::machine::Limits::spin_bound
//! [`Limits::unhinted_spin_bound`]: crate::rt::object::machine::Limits::unhinted_spin_bound

use std::ptr;

mod cycle;
mod round;
#[cfg(test)]
mod tests;

/// The most rounds of a loop with several hints that are taken for a cycle.
pub(crate) const CYCLE_MAX: usize = cycle::LONGEST;

use crate::rt::event::Site;
use crate::rt::event::id::ObjectId;
use crate::rt::event::mix::{STEP, mix};
use crate::rt::event::operation::{OpKind, Outcome};
use crate::rt::rare::{Roomy, mostly, rarely};

use crate::rt::loops::spin::cycle::Cycle;
use crate::rt::loops::spin::round::Round;

/// What one thread has read since its last hint, and in the iteration before.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpinLog {
    reads: Vec<(ObjectId, u64)>,
    before: Vec<(ObjectId, u64)>,
    changed: bool,
    site: Option<Site>,
    idle: u32,
    /// How many hints there were with nothing in between since the last one behind something.
    bare: u32,
    /// Whether the last iteration was like the one before, whatever its hint is; `None` if there
    /// was nothing in it but the hint.
    alike: Option<bool>,
    /// By hint how often the thread has come there with something changed.
    rounds: Vec<(Site, usize)>,
    /// The rounds since it has changed something last, but for the last ones that were the same:
    /// how many these are. They have read what the last iteration has read.
    cycle: Cycle,
    run: u32,
    round: Round,
    /// Whether that is kept: an iteration has changed something, and has come back to its hint.
    follows: bool,
    /// Whether something was changed since then that may be undone before the next hint.
    open: bool,
    /// A loop without a hint: the read it comes back to, and how often it found the same.
    unhinted: Option<(Site, ObjectId, u64)>,
    repeats: u32,
    /// How many other reads there were since.
    others: u32,
    /// How many reads it was not before it, since the last change: those did not come back soon
    /// enough.
    given_up: u8,
    /// Whether that read is the only one since the last hint, and not in `reads`. Most reads are
    /// soon followed by a change, and then nobody asks for them.
    lone: bool,
    /// What it waits for, if it is to wait at the hint where it has come.
    awaits: Awaited,
}

/// What of its log a thread waits for at a hint.
#[derive(Clone, Copy, Debug, Default)]
enum Awaited {
    #[default]
    Nothing,
    /// What it has only looked at.
    Before,
    /// What it has left as it was.
    Undone,
    /// What the rounds of a cycle have read.
    InCycle,
}

/// A loop that spins reads few locations. A thread that reads more than this since its last hint is
/// not spinning on them.
const ENOUGH: usize = 64;

/// Within how many other reads one has to come back that was remembered first. The next one has
/// twice as many, and so on up to [`ENOUGH`], so what was read before a loop does not keep a short
/// one from being recognised, and a long one is as well.
const FEW: u32 = 4;

/// How many hints in a row may have nothing in between. They take a quarter of a second or more,
/// which is longer than a backoff and than the time that a test lets pass.
const BARE_MAX: u32 = 10_000_000;

/// How often something is done whose repetitions are idle.
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
        // Most threads come to no hint, and wait nowhere.
        if self.site.is_some() || !self.rounds.is_empty() {
            self.reset_iterations();
        }
    }

    /// Forgets what is known of iterations. That begins with the first [`SpinLog::turn`], or before
    /// it where even one iteration is too many.
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

    /// Notes that the thread has found one value in `object` and left another, or seen it without
    /// changing it, in which case it `is_kept` if [`SpinLog::come_back`] has said so. False if that
    /// is not all, and [`SpinLog::note_more`] has to follow.
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
        // Most often there are no more than two locations since the last change, and the third is
        // read once. What has to ask for memory is left for later.
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
                // There is room, which the compiler does not see here.
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
        // It may have been noted already, as the only one. One like it at another place has not.
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

    /// The thread has taken this token, which it had made available itself. What it has seen of
    /// that since its last hint does not count, nor what an earlier round of a cycle has seen.
    pub(crate) fn take_own(&mut self, object: ObjectId) {
        self.write_down();
        self.cycle.take_own(object);
        self.reads.retain(|&(seen, _)| seen != object);
        self.round.untouch(object);
    }

    /// Whether the thread has made changes since it was asked last that did not count as progress,
    /// because they may have been undone before the next hint.
    pub(crate) fn has_left_a_change(&mut self) -> bool {
        std::mem::take(&mut self.open)
    }

    /// Notes that the thread has changed something that it cannot be seen to put back.
    #[inline]
    pub(crate) fn change(&mut self) {
        self.round.lasting = self.follows;
        self.forget();
    }

    /// Whether it matters what is in the plain memory that the thread is about to write to.
    #[inline]
    pub(crate) fn follows(&self) -> bool {
        self.follows
    }

    /// Notes what is in plain memory that the thread is about to write to. What it leaves there is
    /// found by its next iteration.
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

    /// Puts the only read where the others are.
    #[inline]
    fn write_down(&mut self) {
        if std::mem::take(&mut self.lone)
            && let Some((_, object, value)) = self.unhinted
        {
            self.reads.push((object, value));
        }
    }

    /// Whether the thread has found something else since its last hint where it had looked in the
    /// iteration before.
    #[cold]
    pub(crate) fn has_seen_a_change(&mut self) -> bool {
        self.write_down();
        let is_other = |&(object, found): &(ObjectId, u64)| {
            let before = self.before.iter().find(|(known, _)| *known == object);
            before.is_some_and(|&(_, value)| value != found)
        };
        self.reads.iter().any(is_other)
    }

    /// Whether the thread has changed something since its last hint.
    #[inline]
    pub(crate) fn has_changed(&self) -> bool {
        self.changed
    }

    /// The thread, which has changed something since its last hint, has come to a hint at `site`.
    /// Gives how often it has come there so.
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

    /// How often the thread has come to one hint with something changed, at most.
    pub(crate) fn most_rounds(&self) -> usize {
        let rounds = self.rounds.iter().map(|&(_, times)| times);
        rounds.max().unwrap_or_default()
    }

    /// Whether the thread has come to a hint.
    pub(crate) fn has_come_to_a_hint(&self) -> bool {
        self.site.is_some()
    }

    /// [`SpinLog::hint`] where the thread has come to its last hint again, has only looked, and has
    /// seen the same: what most rounds of a loop are that waits. `None` if it has not, and nothing
    /// was done.
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

    /// The thread has come to a hint at `site`. Says whether it is to wait, for what
    /// [`SpinLog::awaited`] then gives.
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
        self.idle = match same_place && alike {
            true => {
                // It is a loop with a hint, whatever in it comes back.
                self.repeats = 0;
                self.idle + 1
            }
            false => 0,
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
            self.awaits = match looks {
                true => Awaited::Before,
                false => Awaited::Undone,
            };
            return true;
        }
        self.is_in_cycle(spin_bound)
    }

    /// The last rounds that were the same are over, and are kept with those before.
    #[inline]
    fn keep_last_run(&mut self, spin_bound: u32) {
        if let Some(hint) = self.site
            && self.run > 0
        {
            let rounds = std::mem::take(&mut self.run);
            (self.cycle).push(hint, &self.before, rounds as usize, times(spin_bound));
        }
    }

    /// Whether the thread is to wait because its last rounds were a cycle, and notes for what.
    #[inline(always)]
    fn is_in_cycle(&mut self, spin_bound: u32) -> bool {
        let times = times(spin_bound);
        // Mostly something was changed a moment ago.
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

    /// The thread has come to another hint with nothing in between. Says whether that were too
    /// many.
    #[cold]
    fn hint_again(&mut self) -> bool {
        self.alike = None;
        self.awaits = Awaited::Nothing;
        self.bare = BARE_MAX.min(self.bare) + 1;
        self.bare > BARE_MAX
    }

    /// The thread, which has changed something before it came to this hint or the one before, comes
    /// to a hint, maybe to the one where it was last. Says whether it has undone what it has done,
    /// as in its last iteration.
    fn follow(&mut self, same_place: bool) -> bool {
        let undoes = self.follows && self.round.turn();
        let followed = std::mem::replace(&mut self.follows, same_place && self.changed);
        if followed && !self.follows {
            self.round.reset();
        }
        undoes
    }

    /// What the thread waits for that is to wait at a hint; nothing if it has made hints only, and
    /// too many.
    pub(crate) fn awaited(&self) -> &[(ObjectId, u64)] {
        match self.awaits {
            Awaited::Nothing => &[],
            Awaited::Before => &self.before,
            Awaited::Undone => &self.round.before,
            Awaited::InCycle => self.cycle.read(),
        }
    }

    /// If a thread that is to wait at a hint does so because it is in a cycle: the first of the
    /// hints of that, as they stand in the program.
    pub(crate) fn awaits_in_cycle(&self) -> Option<Site> {
        match self.awaits {
            Awaited::InCycle => self.cycle.first_hint(),
            _ => None,
        }
    }

    /// Whether the iteration that has come to a hint was like the one before; `None` if there was
    /// nothing in it.
    pub(crate) fn is_alike(&self) -> Option<bool> {
        self.alike
    }

    /// Whether [`SpinLog::repeats_itself`] with this bound may give something to wait for.
    #[inline]
    pub(crate) fn may_wait(&self, bound: u32) -> bool {
        self.repeats >= bound
    }

    /// The thread is about to read `object` at `site`, without any hint before. Gives what to wait
    /// for, if it has done so often enough and found the same each time.
    ///
    /// What the object shows now does not count: who runs before the thread does may change it, and
    /// whether the thread waits must not hang on what no event of its own has seen.
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
        // What was read before this wait is not in the round that comes to the next hint.
        self.cycle.reset();
        self.run = 0;
        self.turn(site);
        Some(&self.before)
    }

    /// The thread reads `object` at `site`, and finds `value`.
    ///
    /// A loop may read several locations, and may have been preceded by other reads; it is
    /// recognised by any one read that comes back before [`ENOUGH`] others, or [fewer](FEW).
    /// Whether this is that read now.
    #[inline(always)]
    pub(crate) fn come_back(
        &mut self,
        site: Site,
        object: ObjectId,
        value: u64,
        bound: u32,
    ) -> bool {
        if let Some((known, before, seen)) = self.unhinted {
            // One place in the program has one address; comparing names would take longer than the
            // read.
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

/// What an operation on anything but an atomic means for whether its thread only looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    Nothing,
    Change,
    /// It has seen this ([`State::polled_by`](crate::rt::object::State::polled_by)).
    Look(u64),
}

/// What an operation means that came out like this where the object showed something before, and
/// shows something now.
#[inline]
pub(crate) fn meaning(kind: &OpKind, outcome: Outcome, (before, now): (u64, u64)) -> Meaning {
    let looks = only_looks(kind) && outcome.succeeded();
    if is_silent(kind, outcome) {
        Meaning::Nothing
    } else if matches!(kind, OpKind::Unpark) {
        // Which of several unparks has made the token available is nothing to see, but it is there
        // now.
        Meaning::Look(now)
    } else if kind.counts() {
        meaning_of_count(kind, outcome, (before, now))
    } else if !looks && now != before || changes(kind, outcome) {
        Meaning::Change
    } else if outcome != Outcome::Done || looks {
        // A lock that was taken was free.
        Meaning::Look(if looks { before & !3 } else { before })
    } else {
        Meaning::Nothing
    }
}

/// [`meaning`] of an operation that [counts](OpKind::counts).
///
/// A loop that clones an `Arc` and drops it again is as idle as one that does not. An upgrade shows
/// that there still are references, or that there are none.
#[inline(always)]
pub(crate) fn meaning_of_count(
    kind: &OpKind,
    outcome: Outcome,
    (before, now): (u64, u64),
) -> Meaning {
    match now == before && outcome != Outcome::Done || matches!(kind, OpKind::Upgrade) {
        true => Meaning::Look(before),
        false => Meaning::Nothing,
    }
}

/// Whether the operation is a change, whatever the object shows of it. A dropped sender is one even
/// if it is not the last: which one is the last depends on the order. That an initialisation begins
/// or fails is not shown.
fn changes(kind: &OpKind, outcome: Outcome) -> bool {
    match kind {
        OpKind::DropSender | OpKind::EndOnce { .. } => true,
        OpKind::CallOnce { .. } => outcome.succeeded(),
        _ => false,
    }
}

/// Whether the operation belongs to a critical section in which nothing is changed. Taking a lock
/// only to look at what it protects is no progress.
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

/// Whether the operation counts neither as a change nor as a look. It commutes with others that
/// change what it would have seen, so what it saw must not decide when a loop waits.
fn is_silent(kind: &OpKind, outcome: Outcome) -> bool {
    match kind {
        OpKind::Taken { .. } | OpKind::EndForNoReason => true,
        OpKind::NotifyOne | OpKind::NotifyAll => outcome == Outcome::Value(0),
        OpKind::Awake { .. } => !outcome.succeeded(),
        _ => false,
    }
}
