//! What else is possible, if an event of the execution that has ended does not happen?
//!
//! Either the thread of the event has another outcome, behind all events that do not need the
//! event; or the event is a read-modify-write, and another thread modifies the store that it reads.
//! No other pair of events conflicts: what a load, a store or a fence takes away, the thread that
//! loses it can replace by the newest outcome, which is always possible.
//!
//! An await has no such outcome if only an old store lets it go on. With `SeqCst` events it can
//! then keep an outcome from other threads for good, and they can keep one from it. So these awaits
//! are left out.

use super::super::operation::{OpKind, Operation};
use super::super::{Access, Decision, Interval, MemoryModel, Outcome, StoreRef};
use super::ended::{Ended, Made, without};
use super::settled::{Candidate, Evidence};
use super::trap::Trap;
use super::{Search, Step, commutes_with, is_available, is_within};
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation;
use crate::rt::relation::independence::{Class, Label};

impl<M: MemoryModel> Search<M> {
    /// Appends these events of the execution to the graph, which has what they need. They read the
    /// same stores, and the stores among them keep their order.
    fn append(&mut self, ended: &Ended, events: impl IntoIterator<Item = usize>) {
        for event in events {
            let Made {
                step,
                outcome,
                rank,
                ..
            } = ended.made[event];
            let outcome = match outcome {
                Outcome::Behind(_) => {
                    let graph = self.model.graph();
                    let object = step.access.operation.object;
                    let stores = graph.stores(object).iter().rev();
                    let mut earlier = stores.map(|&store| graph.at(store).name());
                    let earlier = earlier.find(|name| {
                        let (thread, index) = name.event().expect("it is no initial value");
                        let position = ended.threads[thread.index()][index as usize];
                        ended.made[position as usize].rank < rank
                    });
                    Outcome::Behind(earlier.unwrap_or(StoreRef::initial(object)))
                }
                reads => reads,
            };
            self.model.take(step.thread, &step.access, outcome);
        }
    }

    /// Takes steps back until so many of the execution are left.
    pub(super) fn shorten(&mut self, steps: usize) {
        let length = self.levels[steps].start;
        self.shorten_to(length);
    }

    /// Takes steps back until the graph has so many events.
    pub(super) fn shorten_to(&mut self, length: usize) {
        while self.model.graph().len() > length {
            self.model.undo();
        }
    }

    /// Every outcome of `access`.
    fn outcomes(&mut self, thread: ThreadId, access: &Access) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        self.model.outcomes(thread, access, &mut outcomes);
        outcomes
    }

    /// Whether awaits that read an old store may hide outcomes, or outcomes hide them.
    pub(super) fn has_awaits(&self, ended: &Ended) -> bool {
        ended.has_sequential && ended.has_stale && !self.lacks(Trap::Awaits)
    }

    /// Plans what is possible without the event at `first`. The graph ends before the event.
    pub(super) fn reverse(&mut self, ended: &Ended, first: usize) {
        let Made { step, modifies, .. } = ended.made[first];
        let rest = first + 1..ended.made.len();
        let rest: Vec<usize> = rest.filter(|&event| !ended.needs(event, first)).collect();
        if step.access.is_to_atomic() {
            self.append(ended, rest.iter().copied());
            for outcome in self.outcomes(step.thread, &step.access) {
                if self.is_other(&step, outcome) && self.may_reverse(ended, first, outcome) {
                    self.plan_with(ended, first, step.thread, &step.access, outcome);
                }
            }
            if modifies && !self.lacks(Trap::Losers) {
                self.reverse_with_rivals(ended, first);
            }
            self.shorten(first);
            if self.lacks(Trap::Whole) {
                self.reverse_in_pieces(ended, first, &rest);
            }
        } else if let OpKind::Wait { .. } | OpKind::TryLock | OpKind::Other(_) =
            step.access.operation.kind
        {
            self.reverse_other(ended, first, &rest);
        }
        if self.has_awaits(ended) {
            self.reverse_behind_awaits(ended, first, &rest);
        }
    }

    /// Whether the event at `first` may have an outcome, or a conflict with an operation of another
    /// thread, that is not known to be planned, explored or covered. The graph has the event, and
    /// may have later ones.
    pub(super) fn may_reverse_at(&self, ended: &Ended, first: usize) -> bool {
        if self.has_awaits(ended) {
            return true;
        }
        let Made { step, modifies, .. } = ended.made[first];
        let Operation { object, kind } = step.access.operation;
        let others = |may_conflict: &dyn Fn(&Access) -> bool| {
            let mut threads = self.model.graph().threads();
            threads.any(|thread| {
                let next = || ended.next_without(thread, first);
                thread != step.thread && next().is_some_and(|(access, _)| may_conflict(&access))
            })
        };
        let is_on_it = |access: &Access| access.operation.object == object;
        match kind {
            OpKind::Fence { .. } | OpKind::Spawn { .. } | OpKind::Join { .. } => false,
            OpKind::Wait { .. } | OpKind::TryLock => true,
            OpKind::Other(operation::OpKind::Choose { .. } | operation::OpKind::NotifyOne) => true,
            OpKind::Other(_) if object == ObjectId::NONE => false,
            // Without the release, the lock is held, and a `try_lock` takes nothing away by reading
            // that.
            OpKind::Other(operation::OpKind::Unlock { .. }) => others(&|access| {
                let kind = access.operation.kind;
                let locks = [OpKind::Other(operation::OpKind::Lock), OpKind::TryLock];
                is_on_it(access) && !locks.contains(&kind) || matches!(kind, OpKind::Wait { .. })
            }),
            OpKind::Other(_) => others(&|access| {
                is_on_it(access) || matches!(access.operation.kind, OpKind::Wait { .. })
            }),
            OpKind::Load { .. } | OpKind::Store { .. } => self.may_change(ended, first),
            OpKind::CompareExchange { spurious: true, .. } => true,
            OpKind::Rmw { .. } | OpKind::CompareExchange { .. } => {
                self.may_change(ended, first) || modifies && self.may_lose(ended, first)
            }
        }
    }

    /// Whether the access to an atomic at `first` may read another store, or go behind another one,
    /// and that is not known to be asleep, planned or settled.
    fn may_change(&self, ended: &Ended, first: usize) -> bool {
        let Made { step, index, .. } = ended.made[first];
        let object = step.access.operation.object;
        let graph = self.model.graph();
        let level = &self.levels[first];
        let is_known = |store: StoreRef| {
            let is_it = |step: &Step| match step.decision {
                Decision::Reads(other) | Decision::Modifies(other) => other == store,
                Decision::Within(Interval { after, .. }) if self.lacks(Trap::Interval) => {
                    after == store
                }
                Decision::Within(Interval { after, before }) => {
                    let rank = ended.rank(store);
                    ended.rank(after) <= rank
                        && before.is_none_or(|before| rank < ended.rank(before))
                }
                _ => false,
            };
            let mut asleep = level.sleep.iter();
            let mut planned = level.tree.iter();
            is_it(&step)
                || asleep.any(|other| other.thread == step.thread && is_it(other))
                || level.settled.has_at(step.thread, index, store)
                || planned.any(|node| {
                    node.step.thread == step.thread && node.children.is_empty() && is_it(&node.step)
                })
        };
        let position = self.levels[first + 1].start as u32 - 1;
        let floor = graph.store_at(object, graph.floor_before(position));
        let floor = ended.rank(floor);
        let mut stores = ended.stores(object);
        floor == 0 && !is_known(StoreRef::initial(object))
            || stores.any(|store| {
                let Made {
                    step, index, rank, ..
                } = ended.made[store];
                rank >= floor
                    && !ended.needs(store, first)
                    && !is_known(StoreRef::of(step.thread, index))
            })
    }

    /// Whether the read-modify-write at `first` may lose the store that it reads to another thread,
    /// and that is not known to be settled.
    fn may_lose(&self, ended: &Ended, first: usize) -> bool {
        let Made { step, outcome, .. } = ended.made[first];
        let Outcome::Modifies(store) = outcome else {
            return false;
        };
        let graph = self.model.graph();
        let value = graph.value_of(store);
        let mut threads = graph.threads().filter(|&thread| thread != step.thread);
        threads.any(|thread| {
            let Some((access, number)) = ended.next_without(thread, first) else {
                return false;
            };
            let Operation { object, kind } = access.operation;
            let modifies = match kind {
                OpKind::Rmw { .. } => true,
                // The axiom on `SeqCst` can set a compare-exchange that fails against others.
                OpKind::CompareExchange { expected, .. } => {
                    ended.has_sequential || expected == value || self.lacks(Trap::Rivals)
                }
                _ => false,
            };
            let settled = &self.levels[first].settled;
            object == step.access.operation.object
                && modifies
                && (ended.has_sequential || !settled.has_at(thread, number, store))
        })
    }

    /// Plans the other alternatives of the operation at `first`, which is a wait or on another
    /// object than an atomic, and the operations of other threads that conflict with it.
    fn reverse_other(&mut self, ended: &Ended, first: usize, rest: &[usize]) {
        let Made { step, label, .. } = ended.made[first];
        self.append(ended, rest.iter().copied());
        for outcome in self.outcomes(step.thread, &step.access) {
            if self.is_other(&step, outcome) {
                self.plan_with(ended, first, step.thread, &step.access, outcome);
            }
        }
        if let Some(label) = label {
            for thread in self.model.graph().threads() {
                if thread != step.thread {
                    self.reverse_with(ended, first, rest, (thread, label));
                }
            }
        }
        self.shorten(first);
    }

    /// Plans the next operation of `thread` if it conflicts with the event at `first`, which has
    /// this label. The graph has the events of `rest`, and has them again afterwards.
    fn reverse_with(
        &mut self,
        ended: &Ended,
        first: usize,
        rest: &[usize],
        (thread, label): (ThreadId, Label),
    ) {
        let Some((access, _)) = ended.next_in(self.model.graph(), thread) else {
            return;
        };
        let Operation { object, kind } = access.operation;
        let may_conflict = match kind {
            OpKind::Wait { .. } => true,
            // A wait looks at several objects.
            OpKind::TryLock | OpKind::Other(_) => {
                let first = ended.made[first].step.access;
                first.waits() || object == first.operation.object
            }
            _ => false,
        };
        if !may_conflict {
            return;
        }
        // A writer waits for readers that hold the lock: without them it goes on.
        if kind == OpKind::Other(operation::OpKind::WriteLock) {
            let Some(way) = self.without_readers(ended, rest, object, thread) else {
                return;
            };
            if way.len() < rest.len() {
                self.shorten(first);
                self.append(ended, way);
                self.plan_conflicting(ended, first, thread, &access, label);
                self.shorten(first);
                return self.append(ended, rest.iter().copied());
            }
        }
        self.plan_conflicting(ended, first, thread, &access, label);
    }

    /// Plans the outcomes of `access` that conflict with an event with this label.
    fn plan_conflicting(
        &mut self,
        ended: &Ended,
        first: usize,
        thread: ThreadId,
        access: &Access,
        label: Label,
    ) {
        for outcome in self.outcomes(thread, access) {
            if let Outcome::Other { label: other, .. } = outcome
                && !commutes_with(self.model.graph(), label, other)
            {
                self.plan_with(ended, first, thread, access, outcome);
            }
        }
    }

    /// Plans the read-modify-writes of other threads that read the store which the one at `first`
    /// reads. The graph has all events that do not need that one.
    fn reverse_with_rivals(&mut self, ended: &Ended, first: usize) {
        let step = ended.made[first].step;
        let object = step.access.operation.object;
        for thread in self.model.graph().threads() {
            if thread == step.thread {
                continue;
            }
            let Some((access, number)) = ended.next_in(self.model.graph(), thread) else {
                continue;
            };
            let kind = access.operation.kind;
            let modifies = matches!(kind, OpKind::Rmw { .. } | OpKind::CompareExchange { .. });
            if access.operation.object != object || !modifies {
                continue;
            }
            for outcome in self.outcomes(thread, &access) {
                let candidate = Candidate {
                    thread,
                    number,
                    outcome,
                };
                if self.levels[first].settled.has(&candidate) {
                    continue;
                }
                self.model.take(thread, &access, outcome);
                if self.lacks(Trap::Rivals) || !is_available(&mut self.model, &step) {
                    let evidence = self.plan(ended, first);
                    self.settle(first, candidate, evidence);
                }
                self.model.undo();
            }
        }
    }

    /// Whether the outcome is another one than the step has.
    fn is_other(&self, step: &Step, outcome: Outcome) -> bool {
        let object = step.access.operation.object;
        !is_within(self.model.graph(), object, &step.decision, outcome)
    }

    /// Whether the rules that a test has not left out let the event at `first` have this outcome.
    fn may_reverse(&self, ended: &Ended, first: usize, outcome: Outcome) -> bool {
        if self.lacks(Trap::Whole) {
            return false;
        }
        let Made { step, modifies, .. } = ended.made[first];
        let (Outcome::Reads(store) | Outcome::Modifies(store) | Outcome::Behind(store)) = outcome
        else {
            return true;
        };
        if self.lacks(Trap::Old) && first < ended.kept {
            let position = store
                .event()
                .map(|(thread, index)| ended.threads[thread.index()][index as usize] as usize);
            return position.is_some_and(|position| position >= ended.kept);
        }
        if self.lacks(Trap::Anew)
            && let OpKind::CompareExchange { .. } = step.access.operation.kind
        {
            return matches!(outcome, Outcome::Modifies(_)) == modifies;
        }
        true
    }

    /// Plans what is possible without the event at `first` where an await among the `rest` that
    /// reads an old store stands in the way, or where the event at `first` is such an await.
    fn reverse_behind_awaits(&mut self, ended: &Ended, first: usize, rest: &[usize]) {
        let Made { step, is_stale, .. } = ended.made[first];
        if !is_stale && !rest.iter().any(|&event| ended.made[event].is_stale) {
            return;
        }
        for thread in self.model.graph().threads() {
            self.reverse_without(ended, first, rest, thread);
            if !is_stale || thread == step.thread {
                continue;
            }
            // Each event of the other thread, and what needs that event, is left out in turn.
            for &event in rest {
                if ended.made[event].step.thread == thread {
                    let way = without(ended, rest, &[event]);
                    self.reverse_without(ended, first, &way, thread);
                }
            }
        }
    }

    /// Plans the outcomes that `thread` has behind the events of `rest`, if they take the outcome
    /// of the event at `first` away. Awaits that read an old store are left out together with what
    /// needs them, but for those that the thread or the store of the outcome needs. A store needs
    /// an await if it comes behind the await in one thread: without the await there would be no
    /// store to read.
    fn reverse_without(&mut self, ended: &Ended, first: usize, rest: &[usize], thread: ThreadId) {
        let Made { step, is_stale, .. } = ended.made[first];
        let is_own = thread == step.thread;
        let mine = |&&event: &&usize| ended.made[event].step.thread == thread;
        let last = rest.iter().rev().find(mine).copied();
        let made = match last {
            Some(last) => ended.made[last].index + 1,
            None => self.model.graph().made(thread),
        };
        let spawn = ended.spawn_of(thread);
        if spawn.is_some_and(|spawn| spawn >= first && !rest.contains(&spawn)) {
            return;
        }
        // What comes directly before the thread's operation, if that is no event of the prefix.
        let last = last.or_else(|| spawn.filter(|spawn| rest.contains(spawn)));
        let Some(access) = ended.access(thread, made) else {
            return;
        };
        if !access.is_to_atomic()
            && !matches!(
                access.operation.kind,
                OpKind::Fence { .. } | OpKind::Wait { .. } | OpKind::TryLock
            )
        {
            return;
        }
        let needed = |by: Option<usize>, event| by.is_some_and(|by| ended.needs(by, event));
        let stale = rest
            .iter()
            .copied()
            .filter(|&event| ended.made[event].is_stale);
        let stale: Vec<usize> = stale.filter(|&event| !needed(last, event)).collect();
        let is_source = |&event: &usize| {
            let Made { step, writes, .. } = ended.made[event];
            let is_its_object = step.access.operation.object == access.operation.object
                || matches!(access.operation.kind, OpKind::Wait { .. });
            is_its_object && writes.is_some()
        };
        let sources = rest.iter().copied().filter(is_source).map(Some);
        let mut ways: Vec<Vec<usize>> = Vec::new();
        for source in std::iter::once(None).chain(sources) {
            let gone = stale
                .iter()
                .copied()
                .filter(|&event| !needed(source, event));
            let gone: Vec<usize> = gone.collect();
            // With all awaits nothing is new, unless the event at `first` is one.
            if !ways.contains(&gone) && (!gone.is_empty() || is_stale && !is_own) {
                ways.push(gone);
            }
        }
        if self.lacks(Trap::AllAwaits) {
            let singles = |gone: Vec<usize>| match gone.len() {
                0 => vec![gone],
                _ => gone.into_iter().map(|event| vec![event]).collect(),
            };
            ways = ways.into_iter().flat_map(singles).collect();
        }
        if self.lacks(Trap::NeededAwaits) {
            ways.truncate(1);
        }
        for gone in ways {
            self.append(ended, without(ended, rest, &gone));
            let graph = self.model.graph();
            debug_assert_eq!(graph.made(thread), made);
            // The axiom on `SeqCst` hides no `try_lock` that succeeds.
            let locks = |outcome| {
                access.operation.kind == OpKind::TryLock && matches!(outcome, Outcome::Other { .. })
            };
            let decided: Vec<Step> = self
                .outcomes(thread, &access)
                .into_iter()
                .filter(|&outcome| !locks(outcome))
                .filter(|&outcome| !is_own || self.is_other(&step, outcome))
                .map(|outcome| Step {
                    thread,
                    access,
                    decision: self.model.graph().decision(&access, outcome),
                })
                .collect();
            for other in decided {
                self.plan_without(ended, first, rest, gone.clone(), &other);
            }
            self.shorten(first);
        }
    }

    /// Plans the step behind the events of `rest` without the `gone` ones and what needs them, if
    /// the step takes the outcome of the event at `first` away. The events that are gone come back
    /// one by one, as long as the step is still possible.
    fn plan_without(
        &mut self,
        ended: &Ended,
        first: usize,
        rest: &[usize],
        mut gone: Vec<usize>,
        other: &Step,
    ) {
        let step = ended.made[first].step;
        for back in gone.clone() {
            let mut fewer = gone.clone();
            fewer.retain(|&event| event != back);
            self.shorten(first);
            self.append(ended, without(ended, rest, &fewer));
            if is_available(&mut self.model, other) {
                gone = fewer;
            }
        }
        self.shorten(first);
        self.append(ended, without(ended, rest, &gone));
        let Step {
            thread,
            access,
            decision,
        } = other;
        let outcome = self.model.available(*thread, access, decision);
        let outcome = outcome.expect("dpor bug: a step is gone that was possible");
        self.model.take(*thread, access, outcome);
        if *thread == step.thread || !is_available(&mut self.model, &step) {
            self.plan(ended, first);
        }
    }

    /// Plans the graph with this step behind it, unless that is settled.
    fn plan_with(
        &mut self,
        ended: &Ended,
        first: usize,
        thread: ThreadId,
        access: &Access,
        outcome: Outcome,
    ) {
        let candidate = Candidate {
            thread,
            number: self.model.graph().made(thread),
            outcome,
        };
        if self.levels[first].settled.has(&candidate) {
            return;
        }
        self.model.take(thread, access, outcome);
        let evidence = self.plan(ended, first);
        self.settle(first, candidate, evidence);
        self.model.undo();
    }

    /// Notes that the candidate is planned or covered.
    fn settle(&mut self, first: usize, candidate: Candidate, evidence: Evidence) {
        let evidence = match evidence {
            Evidence::Whole if self.lacks(Trap::Evidence) => Evidence::First(0),
            evidence => evidence,
        };
        self.levels[first].settled.add(candidate, evidence);
    }

    /// [`Search::reverse`] without its rule that a sequence has all events that do not need the
    /// reversed one: it ends with the store that is read.
    fn reverse_in_pieces(&mut self, ended: &Ended, first: usize, rest: &[usize]) {
        let step = ended.made[first].step;
        for length in 0..=rest.len() {
            self.append(ended, rest[..length].iter().copied());
            let last = length.checked_sub(1).map(|last| ended.made[rest[last]]);
            let last = last.map(|last| StoreRef::of(last.step.thread, last.index));
            for outcome in self.outcomes(step.thread, &step.access) {
                let (Outcome::Reads(store) | Outcome::Behind(store) | Outcome::Modifies(store)) =
                    outcome
                else {
                    continue;
                };
                if self.is_other(&step, outcome) && last.is_none_or(|last| last == store) {
                    self.plan_with(ended, first, step.thread, &step.access, outcome);
                }
            }
            self.shorten(first);
        }
    }

    /// The events of `rest` without the read locks of this object that are not released among them,
    /// and without what needs these (\[SS\] Algorithm 6); `None` if `writer` comes behind such a
    /// lock. A thread that reads twice releases its last lock first, so it is the earlier one that
    /// is held.
    fn without_readers(
        &self,
        ended: &Ended,
        rest: &[usize],
        object: ObjectId,
        writer: ThreadId,
    ) -> Option<Vec<usize>> {
        let mut way = rest.to_vec();
        if self.lacks(Trap::Readers) {
            return Some(way);
        }
        let class = |event: usize, class: Class| {
            let label = ended.made[event].label;
            label.is_some_and(|label| label.object() == object && label.class() == class)
        };
        let is_held = |way: &[usize]| {
            let thread = ended.made[way[0]].step.thread;
            let mine = |&&event: &&usize| ended.made[event].step.thread == thread;
            if self.lacks(Trap::Outermost) {
                return !way
                    .iter()
                    .filter(mine)
                    .any(|&event| class(event, Class::ReadRelease));
            }
            (way.iter().filter(mine))
                .map(|&event| {
                    i32::from(class(event, Class::ReadAcquire))
                        - i32::from(class(event, Class::ReadRelease))
                })
                .scan(0, |held, change| {
                    *held += change;
                    Some(*held)
                })
                .all(|held| held > 0)
        };
        while let Some(at) =
            (0..way.len()).find(|&at| class(way[at], Class::ReadAcquire) && is_held(&way[at..]))
        {
            let reader = way[at];
            way.retain(|&event| !ended.needs(event, reader));
            let its = |event: &&usize| ended.made[**event].step.thread == writer;
            let last = |way: &[usize]| way.iter().rev().find(its).copied();
            if last(&way) != last(rest) {
                return None;
            }
        }
        Some(way)
    }
}
