//! When does a loop that only looks wait for a change?
//!
//! `while !flag.load() { spin_loop() }` has infinitely many executions unless waiting is an event.
//! So each thread keeps a log of what it has read since its last hint (`yield_now`, `spin_loop`).
//! An iteration is *idle* when the thread comes back to the same hint having read the same
//! locations with the same values and having changed nothing. The first
//! [`Limits::spin_bound`] idle iterations are free; after them the hint is a wait for another value
//! in one of those locations. A loop without a hint is noticed in the same way, by coming back to
//! the same read, but only after [`Limits::unhinted_spin_bound`] repetitions: a `for` loop that
//! reads is not a spin loop. These are few until a loop that has waited turns out to give up by itself.
//!
//! A loop with a hint may also take something and put it back, like one that tries a lock of its own making and finds nothing
//! behind it. Its iteration is idle if everything that it has seen and changed is as it was before, and was so in the
//! iteration before, and cells that it writes to held the same. That is looked at from the second hint on that such a
//! loop comes to.
//!
//! A loop may have several hints, or look at something else in each round: then it is a cycle of rounds that is repeated
//! ([`cycle`]).
//!
//! Hints that follow each other with nothing in between are one: a backoff makes more of them each time. But a thread that
//! makes [`BARE_MAX`] of them looks at nothing that another thread could change, and waits for a change of nothing.
//!
//! The rule is EXPLORATION's (section 7); a failed compare-exchange, a swap of the same value, a
//! failed `try_lock` count as reads, because two spinning threads would otherwise wake each other
//! for ever.
//!
//! [`Limits::spin_bound`]: super::machine::Limits::spin_bound
//! [`Limits::unhinted_spin_bound`]: super::machine::Limits::unhinted_spin_bound

use std::ptr;

mod cycle;

/// The most rounds of a loop with several hints that are taken for a cycle.
pub(crate) const CYCLE_MAX: usize = cycle::LONGEST;

use crate::rt::trace::Site;
use crate::rt::trace::id::ObjectId;
use crate::rt::trace::mix::{STEP, mix};
use crate::rt::trace::operation::{OpKind, Outcome};

use cycle::Cycle;

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
    /// Whether the last iteration was like the one before, whatever its hint is; `None` if there was nothing in it but the hint.
    alike: Option<bool>,
    /// By hint how often the thread has come there with something changed.
    rounds: Vec<(Site, usize)>,
    cycle: Cycle,
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
    /// Whether that read is the only one since the last hint, and not in `reads`. Most reads are soon followed by a change, and
    /// then nobody asks for them.
    lone: bool,
}

/// What a thread has done to atomics since its last hint, and in the iteration before.
#[derive(Clone, Debug, Default)]
struct Round {
    /// Each location with its value now, and, in the same order, the values before.
    left: Vec<(ObjectId, u64)>,
    found: Vec<u64>,
    /// What the iteration before has left.
    before: Vec<(ObjectId, u64)>,
    /// What was in the plain memory that it was about to write to, and in the iteration before.
    memory: u64,
    memory_before: u64,
    /// Whether something was done that is not undone, or too much.
    lasting: bool,
}

impl Round {
    fn reset(&mut self) {
        self.left.clear();
        self.found.clear();
        self.before.clear();
        self.memory = 0;
        self.memory_before = 0;
        self.lasting = false;
    }

    #[inline]
    fn touch(&mut self, object: ObjectId, found: u64, left: u64) {
        if let Some(known) = self.left.iter_mut().find(|(o, _)| *o == object) {
            known.1 = left;
        } else if self.left.len() < ENOUGH {
            self.left.push((object, left));
            self.found.push(found);
        } else {
            self.lasting = true;
        }
    }

    fn untouch(&mut self, object: ObjectId) {
        if let Some(at) = self.left.iter().position(|&(o, _)| o == object) {
            self.left.remove(at);
            self.found.remove(at);
        }
    }

    /// The iteration is over. Says whether it has left everything as it was, like the one before.
    fn turn(&mut self) -> bool {
        let undone = self
            .left
            .iter()
            .map(|&(_, left)| left)
            .eq(self.found.iter().copied());
        let alike = self.left == self.before && self.memory == self.memory_before;
        let again = undone && !self.lasting && !self.left.is_empty() && alike;
        std::mem::swap(&mut self.left, &mut self.before);
        self.left.clear();
        self.memory_before = std::mem::take(&mut self.memory);
        self.found.clear();
        self.lasting = false;
        again
    }
}

/// A loop that spins reads few locations. A thread that reads more than this since its last hint is
/// not spinning on them.
const ENOUGH: usize = 64;

/// How many hints in a row may have nothing in between. They take a quarter of a second or more, which is longer than a backoff
/// and than the time that a test lets pass.
const BARE_MAX: u32 = 10_000_000;

impl SpinLog {
    pub(crate) fn reset(&mut self) {
        self.reads.clear();
        self.changed = false;
        self.bare = 0;
        self.unhinted = None;
        self.repeats = 0;
        self.others = 0;
        self.lone = false;
        // Most threads come to no hint, and wait nowhere.
        if self.site.is_some() || !self.rounds.is_empty() {
            self.reset_iterations();
        }
    }

    /// Forgets what is known of iterations. That begins with the first [`SpinLog::turn`], or before it where even one
    /// iteration is too many.
    #[cold]
    fn reset_iterations(&mut self) {
        self.before.clear();
        self.site = None;
        self.idle = 0;
        self.alike = None;
        self.rounds.clear();
        self.cycle.reset();
        self.round.reset();
        self.follows = false;
        self.open = false;
    }

    /// Notes that the thread has found one value in `object` and left another, or seen it without changing it, in which case it
    /// `is_kept` if [`SpinLog::come_back`] has said so. False if that is not all, and [`SpinLog::note_more`] has to follow.
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
            if self.reads.len() >= self.reads.capacity() {
                return false;
            }
            self.write_down();
        }
        // Most often there are no more than two locations since the last change, and the third is read once. What has to ask
        // for memory is left for later.
        let has_room = self.reads.len() < self.reads.capacity();
        match self.reads.as_mut_slice() {
            [(first, seen), ..] if *first == object => *seen = found,
            [_, (second, seen), ..] if *second == object => *seen = found,
            few if has_room && few.len() <= 2 => self.reads.push((object, found)),
            _ => return false,
        }
        !self.follows
    }

    /// The rest of [`SpinLog::note`].
    #[cold]
    #[inline(never)]
    pub(crate) fn note_more(&mut self, object: ObjectId, found: u64, left: u64) {
        if self.follows {
            self.round.touch(object, found, left);
            self.open |= found != left;
        }
        if found != left {
            return;
        }
        // It may have been noted already, as the only one.
        let is = |(_, only, value)| (only, value) == (object, found);
        if self.lone && self.unhinted.is_some_and(is) {
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

    /// What the thread has seen of `object` since its last hint does not count.
    pub(crate) fn unread(&mut self, object: ObjectId) {
        self.write_down();
        self.reads.retain(|&(seen, _)| seen != object);
        self.round.untouch(object);
    }

    /// Whether the thread has made changes since it was asked last that did not count as progress, because they may have been
    /// undone before the next hint.
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

    /// Notes what is in plain memory that the thread is about to write to. What it leaves there is found by its
    /// next iteration.
    pub(crate) fn touch_memory(&mut self, contents: u64) {
        self.round.memory = mix(self.round.memory.wrapping_add(STEP) ^ contents);
    }

    #[inline]
    fn forget(&mut self) {
        self.changed = true;
        self.lone = false;
        self.reads.clear();
        self.unhinted = None;
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

    /// The thread has come to a hint at `site`. Gives how often it has come there, each time having changed something
    /// since its last hint.
    pub(crate) fn count_round(&mut self, site: Site) -> usize {
        if !self.changed {
            return 0;
        }
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

    /// Whether the thread has come to a hint.
    pub(crate) fn has_come_to_a_hint(&self) -> bool {
        self.site.is_some()
    }

    /// The thread has come to a hint at `site`. Gives what to wait for, if it is to wait; that is nothing if it has made hints
    /// only, and too many.
    #[inline]
    pub(crate) fn hint(&mut self, site: Site, spin_bound: u32) -> Option<&[(ObjectId, u64)]> {
        self.alike = None;
        self.write_down();
        if self.reads.is_empty() && !self.changed {
            self.bare += 1;
            if self.bare <= BARE_MAX {
                return None;
            }
            self.bare = BARE_MAX;
            return Some(&[]);
        }
        self.bare = 0;
        let same_place = self.site.is_some_and(|before| ptr::eq(before, site));
        let looks = !self.changed && self.reads == self.before;
        let undoes = self.follows && self.round.turn();
        let followed = std::mem::replace(&mut self.follows, same_place && self.changed);
        if followed && !self.follows {
            self.round.reset();
        }
        self.alike = Some(looks || undoes);
        let idle = same_place && (looks || undoes);
        self.idle = if idle { self.idle + 1 } else { 0 };
        // How often something is done whose repetitions are idle.
        let times = spin_bound as usize + 2;
        if self.changed {
            self.cycle.reset();
        }
        self.cycle.push(site, &self.reads, looks, times);
        self.turn(site);
        if self.idle <= spin_bound {
            return self.cycle.repeated(times);
        }
        Some(match looks {
            true => &self.before,
            false => &self.round.before,
        })
    }

    /// Whether the iteration that has come to a hint was like the one before; `None` if there was nothing in it.
    pub(crate) fn is_alike(&self) -> Option<bool> {
        self.alike
    }

    /// Whether the iterations of a loop with one hint, up to the last that has come there, were idle more often than that.
    pub(crate) fn is_idle(&self, spin_bound: u32) -> bool {
        self.idle > spin_bound
    }

    /// Whether [`SpinLog::repeats_itself`] with this bound may give something to wait for.
    #[inline]
    pub(crate) fn may_wait(&self, bound: u32) -> bool {
        self.repeats >= bound
    }

    /// The thread is about to read `object` at `site`, without any hint before. Gives what to wait for, if it has
    /// done so often enough and found the same each time.
    ///
    /// What the object shows now does not count: who runs before the thread does may change it, and whether
    /// the thread waits must not hang on what no event of its own has seen.
    pub(crate) fn repeats_itself(
        &mut self,
        site: Site,
        object: ObjectId,
        bound: u32,
    ) -> Option<&[(ObjectId, u64)]> {
        // Mostly it has not.
        if !self.may_wait(bound) {
            return None;
        }
        self.write_down();
        let (known, before, _) = self.unhinted?;
        let again = ptr::eq(known, site) && before == object;
        if !again || self.reads.is_empty() {
            return None;
        }
        self.repeats = 0;
        // What was read before this wait is not in the round that comes to the next hint.
        self.cycle.reset();
        self.turn(site);
        Some(&self.before)
    }

    /// The thread reads `object` at `site`, and finds `value`.
    ///
    /// A loop may read several locations, and may have been preceded by other reads; it is
    /// recognised by any one read that comes back before [`ENOUGH`] others. Whether this is that read now.
    #[inline(always)]
    pub(crate) fn come_back(
        &mut self,
        site: Site,
        object: ObjectId,
        value: u64,
        bound: u32,
    ) -> bool {
        if let Some((known, before, seen)) = self.unhinted {
            // One place in the program has one address; comparing names would take longer than the read.
            if ptr::eq(known, site) && (before, seen) == (object, value) {
                self.others = 0;
                self.repeats += 1;
                if self.repeats == bound {
                    // From here on the log has the reads of one iteration only.
                    self.reads.clear();
                    self.lone = false;
                }
                return true;
            }
            self.others += 1;
            if self.others <= ENOUGH as u32 || self.lone {
                return false;
            }
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
    /// It has seen this ([`State::polled_by`](super::State::polled_by)).
    Look(u64),
}

/// What an operation means that came out like this where the object showed something before, and shows something now.
#[inline]
pub(crate) fn meaning(kind: &OpKind, outcome: Outcome, (before, now): (u64, u64)) -> Meaning {
    let looks = only_looks(kind) && outcome.succeeded();
    if is_silent(kind, outcome) {
        Meaning::Nothing
    } else if matches!(kind, OpKind::Unpark) {
        // Which of several unparks has made the token available is nothing to see, but it is there now.
        Meaning::Look(now)
    } else if kind.counts() {
        // A loop that clones an `Arc` and drops it again is as idle as one that does not. An upgrade shows that there still
        // are references, or that there are none.
        match now == before && outcome != Outcome::Done || matches!(kind, OpKind::Upgrade) {
            true => Meaning::Look(before),
            false => Meaning::Nothing,
        }
    } else if !looks && now != before || changes(kind, outcome) {
        Meaning::Change
    } else if outcome != Outcome::Done || looks {
        // A lock that was taken was free.
        Meaning::Look(if looks { before & !3 } else { before })
    } else {
        Meaning::Nothing
    }
}

/// Whether the operation is a change, whatever the object shows of it. A dropped sender is one even if it is not the last:
/// which one is the last depends on the order. That an initialisation begins or fails is not shown.
fn changes(kind: &OpKind, outcome: Outcome) -> bool {
    match kind {
        OpKind::DropSender | OpKind::EndOnce { .. } => true,
        OpKind::CallOnce { .. } => outcome.succeeded(),
        _ => false,
    }
}

/// Whether the operation belongs to a critical section in which nothing is changed. Taking a lock only
/// to look at what it protects is no progress.
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

/// Whether the operation counts neither as a change nor as a look. It commutes with others that change
/// what it would have seen, so what it saw must not decide when a loop waits.
fn is_silent(kind: &OpKind, outcome: Outcome) -> bool {
    match kind {
        OpKind::Taken { .. } => true,
        OpKind::NotifyOne | OpKind::NotifyAll => outcome == Outcome::Value(0),
        OpKind::Awake { .. } => !outcome.succeeded(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;

    #[test]
    fn a_log_that_is_reset_is_like_a_new_one() {
        let site = Location::caller();
        let (one, other) = (ObjectId(1), ObjectId(2));
        let used: [&dyn Fn(&mut SpinLog); 5] = [
            &|log| {
                log.note_more(one, 1, 1);
                log.note(other, 1, 2, false);
            },
            &|log| {
                log.come_back(site, one, 1, 1);
                log.note(one, 1, 1, true);
                log.come_back(site, one, 1, 1);
                log.note_more(other, 1, 1);
                assert!(log.repeats_itself(site, one, 1).is_some());
            },
            // It only looks.
            &|log| {
                for _ in 0..5 {
                    log.note_more(one, 1, 1);
                    log.hint(site, 1);
                }
                assert!(log.is_idle(1));
            },
            // It changes something, and puts it back or not.
            &|log| {
                for left in [1, 1, 1, 2] {
                    log.count_round(site);
                    for (found, left) in [(1, 2), (2, left)] {
                        if !log.note(one, found, left, false) {
                            log.note_more(one, found, left);
                        }
                    }
                    log.hint(site, 1);
                }
                log.touch_memory(1);
                log.note_more(one, 1, 2);
                assert!(log.follows());
            },
            // What would be its first iteration is left out.
            &|log| {
                log.hint(site, 1);
                log.change();
                log.count_round(site);
            },
        ];
        for uses in used {
            let mut log = SpinLog::default();
            uses(&mut log);
            log.reset();
            assert_eq!(format!("{log:?}"), format!("{:?}", SpinLog::default()));
        }
    }
}
