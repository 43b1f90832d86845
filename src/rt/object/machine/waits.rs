//! When does a thread that only repeats itself wait for a change, and what if there is none?
//!
//! A loop that only looks would have infinitely many executions. After a few rounds its thread
//! announces a wait for a change of what it has seen, at a hint or, later, where it comes back to
//! the same place without one. Where nothing else can run those that wait are let go; if that is so
//! again and again, they are in a livelock.

use crate::rt::event::Site;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Operation, Reason};
use crate::rt::loops::spin::SpinLog;
use crate::rt::rare::cold_path;
use crate::rt::relation::independence::ReadSets;

use super::{Hintless, Loop, Machine, Thread};

/// From how many rounds on a loop may have no end.
const MANY_ROUNDS: usize = 20;

/// How often those that wait without a hint are let go at least before that is a livelock. They
/// have made many rounds each time.
const UNHINTED_LEAST: u32 = 2;

/// The same of those that wait at a hint, where others go round many times without one in the
/// meantime.
const HINTED_LEAST: u32 = 20;

/// The most hints and timed waits of which it is looked whether their loops give up.
const HINTED_MAX: usize = 8;

/// The same of loops without a hint, each thread's on its own. They wait only because it is known
/// that they do not give up.
const HINTLESS_MAX: usize = 32;

/// The first wait at a hint, at a timed wait that has timed out often enough, or in a loop without
/// a hint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waited {
    pub(crate) site: Site,
    pub(crate) at: WaitsAt,
    /// What it looks at without a hint, or [`ObjectId::NONE`].
    object: ObjectId,
    pub(crate) thread: ThreadId,
    /// How many events the thread had performed.
    pub(crate) events: u32,
    /// Whether its loop is known not to give up by itself.
    pub(crate) stays: bool,
}

/// What a thread comes back to that is taken to wait for a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitsAt {
    Hint,
    /// Several hints, in turns.
    Cycle,
    /// A timed wait, and no hint.
    Timed,
    /// A look at an object, and no hint.
    Look,
}

/// What a thread does at a hint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtHint {
    GoesOn,
    /// It waits for a change.
    Waits,
    /// It has changed something, and lets the others go first.
    LetsOthers,
    /// It has come there too often, and goes no further.
    BoundedLoop,
}

impl Thread {
    /// The thread is to wait for a change.
    fn wait_in(&mut self, loops: Loop) {
        // It has not come to a hint with all of it undone.
        if self.spin.has_left_a_change() {
            self.consecutive_releases = 0;
        }
        let before = match self.consecutive_releases {
            0 => None,
            _ => Some((self.loops, self.unhinted_in_a_row)),
        };
        self.unhinted_in_a_row = match (loops, before) {
            (Loop::Hinted, _) => 0,
            (Loop::Unhinted, None) => 1,
            (Loop::Unhinted, Some((_, waits))) => waits + 1,
        };
        self.loops = before.map_or(loops, |(earlier, _)| loops.max(earlier));
    }
}

impl Machine {
    /// The thread has come to a spin hint. Gives the operation to announce, if it does not go on.
    pub(crate) fn hint(&mut self, thread: ThreadId, site: Site) -> Option<Operation> {
        match self.come_to_hint(thread, site) {
            AtHint::GoesOn => None,
            at => Some(self.stop_at_hint(thread, site, at)),
        }
    }

    /// The thread has come to a spin hint. Unless it goes on, [`Machine::stop_at_hint`] follows.
    #[inline(always)]
    pub(crate) fn come_to_hint(&mut self, thread: ThreadId, site: Site) -> AtHint {
        let entry = &mut self.threads[thread.index()];
        let round = entry.at_hint.unwrap_or_default()..entry.events;
        entry.at_hint = Some(entry.events);
        let at = match entry.spin.look_again(site, self.limits.spin_bound) {
            Some(true) => AtHint::Waits,
            Some(false) => AtHint::GoesOn,
            None => self.come_otherwise(thread, site),
        };
        match &mut self.solo_run {
            Some(further) if at != AtHint::BoundedLoop => {
                let entry = &self.threads[thread.index()];
                further.come_to_hint((thread, entry), &self.names, (at, round))
            }
            _ => at,
        }
    }

    /// [`Machine::come_to_hint`] if it is another one, or another round than before.
    #[inline(never)]
    fn come_otherwise(&mut self, thread: ThreadId, site: Site) -> AtHint {
        let entry = &mut self.threads[thread.index()];
        let mut lets_others = false;
        if entry.spin.has_changed() {
            let rounds = entry.spin.count_round(site);
            lets_others = self.limits.rounds_of_turn.is_some_and(|turn| rounds > turn);
            if rounds > self.most_rounds.map_or(0, |(_, most)| most) {
                self.most_rounds = Some((site, rounds));
            }
            if self.limits.max_rounds.is_some_and(|most| rounds > most) {
                return AtHint::BoundedLoop;
            }
        }
        // One that was let go may find what has changed meanwhile.
        if entry.consecutive_releases > 0 && entry.spin.has_seen_a_change() {
            entry.consecutive_releases = 0;
        }
        if entry.spin.hint(site, self.limits.spin_bound) {
            return AtHint::Waits;
        }
        if entry.spin.has_left_a_change() {
            entry.consecutive_releases = 0;
        }
        match lets_others {
            true => AtHint::LetsOthers,
            false => AtHint::GoesOn,
        }
    }

    /// The operation that the thread announces that has come to a hint and does not go on.
    pub(crate) fn stop_at_hint(&mut self, thread: ThreadId, site: Site, at: AtHint) -> Operation {
        if let AtHint::BoundedLoop = at {
            cold_path();
            self.leaves_rounds_out = true;
            return Operation {
                object: ObjectId::NONE,
                kind: OpKind::GiveUp {
                    why: Reason::Rounds,
                },
            };
        }
        let entry = &mut self.threads[thread.index()];
        if let AtHint::LetsOthers = at {
            cold_path();
            entry.wait_in(Loop::Hinted);
            return wait((&mut self.sets, &mut self.seen), &[], What::Turn);
        }
        let seen = entry.spin.awaited();
        let looks_at_nothing = seen.is_empty();
        let wait = wait((&mut self.sets, &mut self.seen), seen, What::Look);
        if !looks_at_nothing {
            // At which of its hints a cycle is noticed first depends on the execution.
            let (site, at, stays) = match entry.spin.awaits_in_cycle() {
                Some(first) => (first, WaitsAt::Cycle, false),
                None => (site, WaitsAt::Hint, self.goes_round),
            };
            note_hinted(
                &mut self.waited,
                Waited {
                    site,
                    at,
                    object: ObjectId::NONE,
                    thread,
                    events: entry.events,
                    stays,
                },
            );
        }
        // Who is to wait here has undone what it has done.
        entry.spin.has_left_a_change();
        entry.wait_in(Loop::Hinted);
        wait
    }

    /// Whether the thread that comes to a hint now goes round for ever if it finds no change.
    pub(crate) fn note_goes_round(&mut self, goes_round: bool) {
        self.goes_round = goes_round;
    }

    /// Whether the thread may be in a loop with a hint, or with a wait that has timed out.
    pub(crate) fn may_loop(&self, thread: ThreadId) -> bool {
        let timeouts = &self.threads[thread.index()].timeouts;
        self.has_come_to_a_hint(thread) || timeouts.site.is_some()
    }

    /// Whether the thread has come to a hint.
    pub(crate) fn has_come_to_a_hint(&self, thread: ThreadId) -> bool {
        self.threads[thread.index()].spin.has_come_to_a_hint()
    }

    /// What the thread knows of its rounds, if what is in plain memory that it is about to write to
    /// belongs to that.
    #[inline]
    pub(crate) fn follows(&mut self, thread: ThreadId) -> Option<&mut SpinLog> {
        let log = &mut self.threads[thread.index()].spin;
        log.follows().then_some(log)
    }

    /// The bound on the rounds, if executions were left out because of it.
    pub(crate) fn rounds_left_out(&self) -> Option<usize> {
        self.limits.max_rounds.filter(|_| self.leaves_rounds_out)
    }

    /// An earlier process has left rounds out of the same exploration, if so it is.
    pub(crate) fn restore_left_out(&mut self, left_out: bool) {
        self.leaves_rounds_out = left_out;
    }

    /// A hint, and how often at most a thread has come there in one execution with something
    /// changed, if that is so often that the loop may have no end.
    pub(crate) fn many_rounds(&self) -> Option<(Site, usize)> {
        self.most_rounds.filter(|(_, times)| *times >= MANY_ROUNDS)
    }

    /// The hint to which a thread has come most often with something changed, and after how many
    /// times it lets the others go first there, if it does.
    pub(crate) fn lets_others(&self) -> Option<(Site, usize)> {
        let turn = self.limits.rounds_of_turn?;
        let (hint, times) = self.most_rounds?;
        (times > turn).then_some((hint, turn))
    }

    /// Where threads have waited in loops without a hint, at most three places.
    pub(crate) fn hintless(&self) -> &[Site] {
        &self.hintless
    }

    /// The first waits, at most so many as are looked after.
    pub(crate) fn waited(&self) -> &[Waited] {
        &self.waited
    }

    /// Only so many of the first waits count: the others were in what nobody explores, to which no
    /// schedule leads.
    pub(crate) fn forget_waits_after(&mut self, most: usize) {
        self.waited.truncate(most);
    }

    /// Whether there were more loops without a hint than are looked after, and have waited soon.
    pub(crate) fn waits_unknown(&self) -> bool {
        self.waits_unknown
    }

    /// Whether more is known of loops without a hint than when the exploration began.
    #[inline]
    pub(crate) fn has_learnt(&self) -> bool {
        self.waits_unknown || self.shows_hintless()
    }

    /// An exploration is taken up of which [`Machine::has_learnt`] said this.
    pub(crate) fn take_up(&mut self, has_learnt: bool) {
        (self.waits_unknown, self.hintless_ends) = (has_learnt, has_learnt);
    }

    /// Whether another thread has ended a wait in a loop without a hint, of which nothing was
    /// known.
    pub(crate) fn shows_hintless(&self) -> bool {
        self.hintless_ends && self.limits.learnt.hintless == Hintless::Unknown
    }

    /// Whether another thread has ended a wait in a loop without a hint that goes round many times
    /// before it waits.
    pub(crate) fn has_waited_late(&self) -> bool {
        self.hintless_ends && self.limits.learnt.hintless != Hintless::Soon
    }

    /// How many events the thread has performed since it came to a hint.
    pub(crate) fn since_hint(&self, thread: ThreadId) -> u32 {
        let entry = &self.threads[thread.index()];
        entry.events - entry.at_hint.unwrap_or_default()
    }

    /// Whether the thread has come to a hint, and performed nothing since: it has given up its
    /// turn.
    pub(crate) fn has_yielded(&self, thread: ThreadId) -> bool {
        let entry = &self.threads[thread.index()];
        entry.at_hint == Some(entry.events)
    }

    /// The wait that the thread has to announce before this operation, if it has done nothing but
    /// come back to it for long enough.
    #[inline(always)]
    pub(crate) fn wait_before(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
        site: Site,
    ) -> Option<Operation> {
        match operation.kind {
            ref kind if looks(kind) || asks(kind) => {
                let bound = self.limits.unhinted_spin_bound;
                match self.threads[thread.index()].spin.may_wait(bound) {
                    true => self.look_in_vain(thread, operation.object, site),
                    false => None,
                }
            }
            ref kind if is_timed(kind) => self.time_out_again(thread, operation.object, site),
            _ => None,
        }
    }

    /// The wait for a change instead of another look at `object` at this place, if the thread has
    /// only come back to that.
    #[cold]
    #[inline(never)]
    fn look_in_vain(
        &mut self,
        thread: ThreadId,
        object: ObjectId,
        site: Site,
    ) -> Option<Operation> {
        let entry = &mut self.threads[thread.index()];
        let seen = entry.spin.repeats_itself(site, object)?;
        if let Some(further) = &mut self.solo_run
            && further.looks_again((thread, entry.events), &self.names, (site, object))
        {
            return None;
        }
        let soon = self.limits.learnt.hintless == Hintless::Soon;
        let wait = wait(
            (&mut self.sets, &mut self.seen),
            seen,
            What::Hintless { soon },
        );
        if soon {
            let wait = Waited {
                site,
                at: WaitsAt::Look,
                object,
                thread,
                events: entry.events,
                stays: false,
            };
            self.waits_unknown |= !note_look(&mut self.waited, wait);
        }
        entry.wait_in(Loop::Unhinted);
        note_hintless(&mut self.hintless, site);
        Some(wait)
    }

    /// The wait for a change of `object` instead of another timeout at this place, if there were
    /// enough of them.
    #[cold]
    #[inline(never)]
    fn time_out_again(
        &mut self,
        thread: ThreadId,
        object: ObjectId,
        site: Site,
    ) -> Option<Operation> {
        let entry = &mut self.threads[thread.index()];
        if entry.timeouts.site != Some(site) || entry.timeouts.times < self.limits.timeout_bound {
            return None;
        }
        let mut seen = entry.timeouts.seen.iter();
        let seen = [*seen.find(|(known, _)| *known == object)?];
        if let Some(further) = &mut self.solo_run
            && further.times_out_again(thread, entry.events, &self.names)
        {
            return None;
        }
        note_hinted(
            &mut self.waited,
            Waited {
                site,
                at: WaitsAt::Timed,
                object: ObjectId::NONE,
                thread,
                events: entry.events,
                stays: false,
            },
        );
        entry.wait_in(Loop::Hinted);
        Some(wait((&mut self.sets, &mut self.seen), &seen, What::Timeout))
    }

    /// Whether one of the locations of a wait is not any more as the wait has seen it, where
    /// `changed` says it of a location and what was seen.
    pub(crate) fn has_changed(
        &self,
        set: u32,
        seen: u32,
        mut changed: impl FnMut(ObjectId, u64) -> bool,
    ) -> bool {
        let locations = self.sets.get(set);
        let seen = &self.seen[seen as usize..seen as usize + locations.len()];
        locations
            .iter()
            .zip(seen)
            .any(|(&object, &seen)| changed(object, seen))
    }

    /// Lets waiting threads go, because nothing else can run after `events` events: first those
    /// that let the others go first, and if none of the others has gone on since these were let go,
    /// everybody. False if there is none.
    ///
    /// Those that wait for a change would only look once more in vain, before or behind what the
    /// others change, so there were twice as many traces behind each round.
    pub(crate) fn release_waiters(&mut self, events: u32) -> bool {
        self.let_go_at = events;
        let only_fair = self.are_only_fair_let_go();
        let mut any = false;
        for &thread in self.live.iter() {
            let entry = &mut self.threads[thread.index()];
            if let Some(pending) = entry.pending()
                && let OpKind::Wait { fair, .. } = pending.operation.kind
                && (fair || !only_fair)
                && entry.released.is_none()
            {
                entry.released = Some(events);
                any = true;
            }
        }
        any
    }

    /// Whether only threads that let the others go first are to be let go now. That is a function
    /// of what each thread has done, and not of the order.
    fn are_only_fair_let_go(&mut self) -> bool {
        if self.limits.rounds_of_turn.is_none() {
            return false;
        }
        let is_fair = |entry: &&Thread| {
            let kind = entry.pending().map(|pending| pending.operation.kind);
            matches!(kind, Some(OpKind::Wait { fair: true, .. }))
        };
        let live = self.live.iter().map(|thread| &self.threads[thread.index()]);
        let any = live.clone().any(|entry| is_fair(&entry));
        let others = live.filter(|entry| !is_fair(entry));
        let others = others.map(|entry| entry.events).sum();
        let only_fair = any && self.others_then != Some(others);
        self.others_then = only_fair.then_some(others);
        only_fair
    }

    /// Whether a thread that changes something in each round of a loop with a hint keeps another
    /// one from going on that could.
    pub(crate) fn is_unfair(&self) -> bool {
        let spins =
            |&&thread: &&ThreadId| self.threads[thread.index()].spin.most_rounds() >= MANY_ROUNDS;
        let Some(&spins) = self.live.iter().find(spins) else {
            return false;
        };
        let mut others = self.live.iter().filter(|&&thread| thread != spins);
        others.any(|&thread| self.enabled(thread))
    }

    /// After how many events nothing else could run, so that the wait was let go that the thread
    /// has announced, and not made yet.
    pub(crate) fn was_let_go_at(&self, thread: ThreadId) -> Option<u32> {
        self.threads[thread.index()].released
    }

    /// Where nothing can run after so many `events`, of at `most` so many: how many rounds in a row
    /// those that wait for a change have all made without seeing or making one, if that is so often
    /// that there will be none.
    pub(crate) fn livelock(&self, events: usize, most: usize) -> Option<u32> {
        // If they went round again there would be too many.
        let since = events.saturating_sub(self.let_go_at as usize);
        let is_last = events + since >= most;
        let live = self.live.iter().map(|thread| &self.threads[thread.index()]);
        let waiting = live.filter(|entry| {
            let next = entry.pending().map(|pending| pending.operation.kind);
            matches!(next, Some(OpKind::Wait { .. }))
        });
        let is_mixed = waiting.clone().any(|entry| entry.unhinted_in_a_row > 0);
        let unhinted_bound = match is_last {
            true => UNHINTED_LEAST,
            false => self.limits.unhinted_livelock_bound,
        };
        // How often it has been let go in a row in loops without a hint, if that is often enough,
        // whatever came before.
        let unhinted = |entry: &Thread| {
            let times = match entry.loops {
                Loop::Unhinted => entry.consecutive_releases,
                Loop::Hinted => entry.unhinted_in_a_row.saturating_sub(1),
            };
            (times >= unhinted_bound).then_some(times)
        };
        let in_vain = |entry: &Thread| {
            let hinted_bound = match is_last && is_mixed {
                true => HINTED_LEAST,
                false => self.limits.livelock_bound,
            };
            let hinted = entry.loops == Loop::Hinted && entry.consecutive_releases >= hinted_bound;
            hinted || unhinted(entry).is_some()
        };
        // A loop without a hint goes round many times before it waits again.
        let rounds = |entry: &Thread| match unhinted(entry) {
            Some(times) => times * self.limits.unhinted_spin_bound,
            None => entry.consecutive_releases,
        };
        let rounds = waiting.clone().map(rounds).min();
        rounds.filter(|_| waiting.clone().all(in_vain))
    }
}

/// Whether an operation on an atomic looks at its value, so that a loop may consist of it.
#[inline]
pub(super) fn looks(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Load { .. } | OpKind::CompareExchange { .. } | OpKind::Rmw { .. }
    )
}

/// Whether a loop without a hint may do this to anything but an atomic to find out whether
/// something has changed.
pub(super) fn asks(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::TryLock
            | OpKind::TryRead
            | OpKind::TryWrite
            | OpKind::ReadCount { .. }
            | OpKind::TakeUnique
            | OpKind::Upgrade
            | OpKind::IsFinished
            | OpKind::CheckOnce
            | OpKind::TrySend
            | OpKind::TryRecv
    )
}

/// Whether the operation waits only for a time.
pub(super) fn is_timed(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::ParkTimeout | OpKind::Awake { timed: true } | OpKind::Recv { timed: true }
    )
}

/// What a thread does not do before its wait is over.
#[derive(Clone, Copy)]
enum What {
    /// Another look, behind a hint.
    Look,
    /// Another look in a loop without a hint.
    Hintless { soon: bool },
    /// Another timeout.
    Timeout,
    /// Another round that changes something.
    Turn,
}

fn wait(
    seen_by: (&mut ReadSets, &mut Vec<u64>),
    seen: &[(ObjectId, u64)],
    what: What,
) -> Operation {
    let (set, seen) = locations(seen_by, seen);
    Operation {
        object: ObjectId::NONE,
        kind: OpKind::Wait {
            set,
            seen,
            timed: matches!(what, What::Timeout),
            soon: matches!(what, What::Hintless { soon: true }),
            fair: matches!(what, What::Turn),
        },
    }
}

/// Writes down what was seen of these locations, at most 64: gives their set, and where the values
/// begin.
pub(super) fn locations(
    (sets, values): (&mut ReadSets, &mut Vec<u64>),
    seen: &[(ObjectId, u64)],
) -> (u32, u32) {
    let start = values.len() as u32;
    let mut objects = [ObjectId::NONE; 64];
    for (slot, &(object, value)) in objects.iter_mut().zip(seen) {
        *slot = object;
        values.push(value);
    }
    (sets.intern(&objects[..seen.len()]), start)
}

/// Notes that a thread waits there.
#[inline]
fn note_hinted(known: &mut Vec<Waited>, wait: Waited) {
    let is = |it: &Waited| it.at == wait.at && std::ptr::eq(it.site, wait.site);
    if !known.iter().any(is) {
        note_another(known, wait);
    }
}

/// [`note_hinted`] of a wait that was not known.
#[cold]
#[inline(never)]
fn note_another(known: &mut Vec<Waited>, wait: Waited) {
    let others = known.iter().filter(|it| it.at != WaitsAt::Look);
    if others.count() < HINTED_MAX {
        known.push(wait);
    }
}

/// Notes that this thread waits there for this object. False if there were too many others.
#[cold]
fn note_look(known: &mut Vec<Waited>, wait: Waited) -> bool {
    let is = |it: &Waited| {
        std::ptr::eq(it.site, wait.site)
            && (it.at, it.object, it.thread) == (wait.at, wait.object, wait.thread)
    };
    if known.iter().any(is) {
        return true;
    }
    let looks = known.iter().filter(|it| it.at == WaitsAt::Look);
    let has_room = looks.count() < HINTLESS_MAX;
    if has_room {
        known.push(wait);
    }
    has_room
}

/// Notes that a loop without a hint waits there.
#[cold]
fn note_hintless(known: &mut Vec<Site>, site: Site) {
    if known.len() < 3 && !known.contains(&site) {
        known.push(site);
    }
}
