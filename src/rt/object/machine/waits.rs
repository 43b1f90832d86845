//! When does a thread that only repeats itself wait for a change, and what happens without one?
//!
//! A loop that only looks would have infinitely many executions. After a few rounds its thread
//! announces a wait for a change of the values it has seen. The thread does so at a hint, or later,
//! at the place to which it returns without a hint. If no other thread is enabled, the waiting
//! threads are released. If this happens again and again, the waiting threads are in a livelock.

use crate::rt::event::Site;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, Operation, Reason};
use crate::rt::loops::spin::SpinLog;
use crate::rt::rare::cold_path;
use crate::rt::relation::independence::ReadSets;

use super::{Hintless, Loop, Machine, Thread};

/// The number of rounds from which on a loop may have no end.
const MANY_ROUNDS: usize = 20;

/// The least number of releases of threads that wait without a hint before a livelock. Each time
/// they have made many rounds.
const UNHINTED_LEAST: u32 = 2;

/// The same number for threads that wait at a hint, while other threads make many rounds without
/// one.
const HINTED_LEAST: u32 = 20;

/// The most hints and timed waits for which the exploration checks whether their loops give up.
const HINTED_MAX: usize = 8;

/// The same bound for loops without a hint, counted for each thread. These loops wait only because
/// they are known not to give up.
const HINTLESS_MAX: usize = 32;

/// The first wait at a hint, at a timed wait that has timed out often enough, or in a loop without
/// a hint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waited {
    pub(crate) site: Site,
    pub(crate) at: WaitsAt,
    /// The object at which the thread looks without a hint, or [`ObjectId::NONE`].
    object: ObjectId,
    pub(crate) thread: ThreadId,
    /// The number of events of the thread before the wait.
    pub(crate) events: u32,
    /// Whether its loop is known not to give up by itself.
    pub(crate) stays: bool,
}

/// The point to which a thread returns, and at which it is taken to wait for a change.
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

/// The action of a thread at a hint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtHint {
    GoesOn,
    /// The thread waits for a change.
    Waits,
    /// The thread has changed something, and lets the other threads go first.
    LetsOthers,
    /// The thread has reached the hint too often, and stops.
    BoundedLoop,
}

impl Thread {
    /// The thread is to wait for a change.
    fn wait_in(&mut self, loops: Loop) {
        // The thread has reached the hint with a change that it has not undone.
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
    /// The thread has reached a spin hint. Returns the operation to announce, if the thread does
    /// not continue.
    pub(crate) fn hint(&mut self, thread: ThreadId, site: Site) -> Option<Operation> {
        match self.come_to_hint(thread, site) {
            AtHint::GoesOn => None,
            at => Some(self.stop_at_hint(thread, site, at)),
        }
    }

    /// The thread has reached a spin hint. Unless the thread continues, a call of
    /// [`Machine::stop_at_hint`] follows.
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

    /// [`Machine::come_to_hint`] for another hint, or another round, than at the visit before.
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
        // A released thread may find a change that was made in the meantime.
        if entry.consecutive_releases > 0 && entry.spin.has_seen_a_change() {
            entry.consecutive_releases = 0;
        }
        if entry.spin.hint(site, self.limits.spin_bound) {
            return AtHint::Waits;
        }
        if entry.spin.has_left_a_change() {
            entry.consecutive_releases = 0;
        }
        if lets_others {
            AtHint::LetsOthers
        } else {
            AtHint::GoesOn
        }
    }

    /// The operation that the thread announces at a hint at which it does not continue.
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
            // The hint at which a cycle is detected first depends on the execution.
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
        // A thread that waits here has undone its changes.
        entry.spin.has_left_a_change();
        entry.wait_in(Loop::Hinted);
        wait
    }

    /// Notes whether the thread that reaches a hint now repeats its rounds for ever if it finds no
    /// change.
    pub(crate) fn note_goes_round(&mut self, goes_round: bool) {
        self.goes_round = goes_round;
    }

    /// Whether the thread may be in a loop with a hint, or with a wait that has timed out.
    pub(crate) fn may_loop(&self, thread: ThreadId) -> bool {
        let timeouts = &self.threads[thread.index()].timeouts;
        self.has_come_to_a_hint(thread) || timeouts.site.is_some()
    }

    /// Whether the thread has reached a hint.
    pub(crate) fn has_come_to_a_hint(&self, thread: ThreadId) -> bool {
        self.threads[thread.index()].spin.has_come_to_a_hint()
    }

    /// Notes a change that the thread has seen without an operation on an object.
    pub(crate) fn note_change(&mut self, thread: ThreadId) {
        self.threads[thread.index()].spin.change();
    }

    /// The spin log of the thread, if a write to plain memory that the thread is about to make
    /// belongs into the log.
    #[inline]
    pub(crate) fn follows(&mut self, thread: ThreadId) -> Option<&mut SpinLog> {
        let log = &mut self.threads[thread.index()].spin;
        log.follows().then_some(log)
    }

    /// The bound on the rounds, if executions were left out because of it.
    pub(crate) fn rounds_left_out(&self) -> Option<usize> {
        self.limits.max_rounds.filter(|_| self.leaves_rounds_out)
    }

    /// Restores from an earlier process whether the exploration has left out rounds.
    pub(crate) fn restore_left_out(&mut self, left_out: bool) {
        self.leaves_rounds_out = left_out;
    }

    /// The hint with the most visits of one thread with a change in one execution, and the number
    /// of these visits, if it is so large that the loop may have no end.
    pub(crate) fn many_rounds(&self) -> Option<(Site, usize)> {
        self.most_rounds.filter(|(_, times)| *times >= MANY_ROUNDS)
    }

    /// The hint with the most visits of a thread with a change, and the number of visits after
    /// which the thread lets the others go first there. `None` if no thread does so.
    pub(crate) fn lets_others(&self) -> Option<(Site, usize)> {
        let turn = self.limits.rounds_of_turn?;
        let (hint, times) = self.most_rounds?;
        (times > turn).then_some((hint, turn))
    }

    /// The places at which threads have waited in loops without a hint, at most three.
    pub(crate) fn hintless(&self) -> &[Site] {
        &self.hintless
    }

    /// The first waits, up to the maximum.
    pub(crate) fn waited(&self) -> &[Waited] {
        &self.waited
    }

    /// Keeps only the first `most` waits. The later waits were in a part that is not explored, to
    /// which no schedule leads.
    pub(crate) fn forget_waits_after(&mut self, most: usize) {
        self.waited.truncate(most);
    }

    /// Whether more loops without a hint have waited after a few rounds than the machine keeps
    /// track of.
    pub(crate) fn waits_unknown(&self) -> bool {
        self.waits_unknown
    }

    /// Whether this exploration has learnt more about loops without a hint than was known when it
    /// began.
    #[inline]
    pub(crate) fn has_learnt(&self) -> bool {
        self.waits_unknown || self.shows_hintless()
    }

    /// Restores [`Machine::has_learnt`] when an exploration is continued.
    pub(crate) fn take_up(&mut self, has_learnt: bool) {
        (self.waits_unknown, self.hintless_ends) = (has_learnt, has_learnt);
    }

    /// Whether another thread has ended a wait in a loop without a hint, of which nothing was known
    /// before.
    pub(crate) fn shows_hintless(&self) -> bool {
        self.hintless_ends && self.limits.learnt.hintless == Hintless::Unknown
    }

    /// Whether another thread has ended a wait in a loop without a hint that makes many rounds
    /// before it waits.
    pub(crate) fn has_waited_late(&self) -> bool {
        self.hintless_ends && self.limits.learnt.hintless != Hintless::Soon
    }

    /// The number of events of the thread since its last visit to a hint.
    pub(crate) fn since_hint(&self, thread: ThreadId) -> u32 {
        let entry = &self.threads[thread.index()];
        entry.events - entry.at_hint.unwrap_or_default()
    }

    /// Whether the last action of the thread was to reach a hint. Then the thread has yielded.
    pub(crate) fn has_yielded(&self, thread: ThreadId) -> bool {
        let entry = &self.threads[thread.index()];
        entry.at_hint == Some(entry.events)
    }

    /// The wait that the thread has to announce before this operation, if it has only repeated the
    /// operation for long enough.
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
                if self.threads[thread.index()].spin.may_wait(bound) {
                    self.look_in_vain(thread, operation.object, site)
                } else {
                    None
                }
            }
            ref kind if is_timed(kind) => self.time_out_again(thread, operation.object, site),
            _ => None,
        }
    }

    /// The wait for a change instead of another look at `object` at this place, if the thread has
    /// only repeated this look.
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
    /// enough timeouts.
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

    /// Whether one of the locations of a wait differs from the value that the wait has seen.
    /// `changed` decides this for one location and its value.
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

    /// Releases waiting threads, because no other thread is enabled after `events` events. The
    /// first release concerns only fair waits: those of threads that let the others go first. If
    /// none of the other threads has made a step since then, the next one releases all waiting
    /// threads. Returns false if there is none.
    ///
    /// Threads that wait for a change would only look once more in vain, before or after the
    /// changes of the other threads. So releasing them at once would double the number of traces
    /// behind each round.
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

    /// Whether only fair waits are to be released now. The answer is a function of the events of
    /// each thread, and not of their order.
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

    /// Whether a thread that changes something in each round of a loop with a hint keeps an enabled
    /// thread from its next step.
    pub(crate) fn is_unfair(&self) -> bool {
        let spins =
            |&&thread: &&ThreadId| self.threads[thread.index()].spin.most_rounds() >= MANY_ROUNDS;
        let Some(&spins) = self.live.iter().find(spins) else {
            return false;
        };
        let mut others = self.live.iter().filter(|&&thread| thread != spins);
        others.any(|&thread| self.enabled(thread))
    }

    /// The number of events at which no other thread was enabled, so that the announced wait of the
    /// thread was released. `None` if the wait has not been released.
    pub(crate) fn was_let_go_at(&self, thread: ThreadId) -> Option<u32> {
        self.threads[thread.index()].released
    }

    /// No thread is enabled after `events` events, of at most `most` events. Returns the number of
    /// rounds in a row that all waiting threads have made without seeing or making a change, if
    /// this number is large enough for a livelock.
    pub(crate) fn livelock(&self, events: usize, most: usize) -> Option<u32> {
        // Another round of these threads would exceed the limit of events.
        let since = events.saturating_sub(self.let_go_at as usize);
        let is_last = events + since >= most;
        let live = self.live.iter().map(|thread| &self.threads[thread.index()]);
        let waiting = live.filter(|entry| {
            let next = entry.pending().map(|pending| pending.operation.kind);
            matches!(next, Some(OpKind::Wait { .. }))
        });
        let is_mixed = waiting.clone().any(|entry| entry.unhinted_in_a_row > 0);
        let unhinted_bound = if is_last {
            UNHINTED_LEAST
        } else {
            self.limits.unhinted_livelock_bound
        };
        // The number of releases in a row in loops without a hint, if it is large enough, whatever
        // came before.
        let unhinted = |entry: &Thread| {
            let times = match entry.loops {
                Loop::Unhinted => entry.consecutive_releases,
                Loop::Hinted => entry.unhinted_in_a_row.saturating_sub(1),
            };
            (times >= unhinted_bound).then_some(times)
        };
        let in_vain = |entry: &Thread| {
            let hinted_bound = if is_last && is_mixed {
                HINTED_LEAST
            } else {
                self.limits.livelock_bound
            };
            let hinted = entry.loops == Loop::Hinted && entry.consecutive_releases >= hinted_bound;
            hinted || unhinted(entry).is_some()
        };
        // A loop without a hint makes many rounds before it waits again.
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
        OpKind::Load { .. } | OpKind::CompareExchange { .. } | OpKind::Rmw { blind: false, .. }
    )
}

/// Whether a loop without a hint may use this operation, on an object that is no atomic, to look
/// for a change.
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

/// Whether the operation waits with a timeout.
pub(super) fn is_timed(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::ParkTimeout | OpKind::Awake { timed: true } | OpKind::Recv { timed: true }
    )
}

/// The action that a thread postpones until its wait is over.
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

/// Records the values seen at these locations, at most 64. Returns their set, and the start of the
/// values.
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

/// Notes a wait at a hint or a timed wait.
#[inline]
fn note_hinted(known: &mut Vec<Waited>, wait: Waited) {
    let is = |it: &Waited| it.at == wait.at && std::ptr::eq(it.site, wait.site);
    if !known.iter().any(is) {
        note_another(known, wait);
    }
}

/// [`note_hinted`] for a wait that was not known.
#[cold]
#[inline(never)]
fn note_another(known: &mut Vec<Waited>, wait: Waited) {
    let others = known.iter().filter(|it| it.at != WaitsAt::Look);
    if others.count() < HINTED_MAX {
        known.push(wait);
    }
}

/// Notes a wait of this thread at this place for this object. Returns false if there were too many
/// others.
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

/// Notes the place of a wait in a loop without a hint.
#[cold]
fn note_hintless(known: &mut Vec<Site>, site: Site) {
    if known.len() < 3 && !known.contains(&site) {
        known.push(site);
    }
}
