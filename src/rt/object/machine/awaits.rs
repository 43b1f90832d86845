//! Which loops are taken for one step that waits for a change?
//!
//! These are loops with a hint that the exploration has seen to wait and not to give up by
//! themselves. For each of them the places are known at which one round looks at atomics. A thread
//! that looks at exactly these places, one after the other, and reaches the hint, has looked in
//! vain: the round has only told the thread to look again. If one of the values changes later,
//! there is another execution in which the thread looks only after the change, and nothing else
//! differs (Kokologiannakis, Ren, Vafeiadis, "Dynamic Partial Order Reductions for Spinloops",
//! FMCAD 2021; Jonsson, Lång, Sagonas, "Awaiting for Godot", FMCAD 2022).
//!
//! If each round is one look, and the explorer can take it for an acquisition, the look in vain is
//! *withdrawn*: it leaves no event, and the thread waits with its next look until the atomic has a
//! value with which it has not gone round. Otherwise the thread stops in this execution.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{ObjectKind, OpKind, Operation, Outcome, Reason};
use crate::rt::event::{Event, Site};

use super::waits::locations;
use super::{Machine, Pending};
use crate::rt::object::orders::{InMemory, Place};
use crate::rt::object::{State, atomic};

/// A place in the source, which another process may have written down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    pub(crate) file: Cow<'static, str>,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Spot {
    pub(crate) fn of(site: Site) -> Spot {
        Spot {
            file: site.file().into(),
            line: site.line(),
            column: site.column(),
        }
    }

    /// Parses the text form of a place.
    pub(crate) fn parse(text: &str) -> Option<Spot> {
        let mut parts = text.rsplitn(3, ':');
        let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Spot {
            file: parts.next()?.to_owned().into(),
            line,
            column,
        })
    }

    /// Whether `site` is this place.
    pub(crate) fn is(&self, site: Site) -> bool {
        (self.line, self.column) == (site.line(), site.column()) && self.file == site.file()
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A loop that waits at a hint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AwaitLoop {
    pub(crate) hint: Spot,
    /// The places at which each round looks, in order.
    pub(crate) round: Vec<Spot>,
    /// Whether a thread has looked in vain and not gone round. Then the loop is explored like any
    /// other.
    pub(crate) refused: bool,
}

impl AwaitLoop {
    /// Whether both are the same loop.
    fn is(&self, other: &AwaitLoop) -> bool {
        (&self.hint, &self.round) == (&other.hint, &other.round)
    }

    /// Whether a look at this place is a whole round up to this hint, and leaves no event if it is
    /// in vain.
    fn is_round(&self, hint: Site, place: Site) -> bool {
        self.hint.is(hint) && self.only_place().is_some_and(|only| only.is(place))
    }

    /// The only place at which each round looks, if a look in vain leaves no event.
    fn only_place(&self) -> Option<&Spot> {
        match self.round.as_slice() {
            [place] if !self.refused => Some(place),
            _ => None,
        }
    }
}

/// The most loops that are taken for one step. Each found loop restarts the exploration.
const LOOPS_MAX: usize = 32;

/// The known loops, usually none. Several may have the same hint, for example a hint inside a
/// function.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Awaits(Option<Arc<[AwaitLoop]>>);

impl Awaits {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn all(&self) -> &[AwaitLoop] {
        self.0.as_deref().unwrap_or_default()
    }

    /// These loops and `others`, up to the maximum. `None` if that adds no loop.
    pub(crate) fn with(&self, others: Vec<AwaitLoop>) -> Option<Awaits> {
        let before = self.all();
        let mut new = others;
        new.retain(|it| !before.iter().any(|known| known.is(it)));
        new.truncate(LOOPS_MAX.saturating_sub(before.len()));
        (!new.is_empty()).then(|| Awaits(Some([before, &new].concat().into())))
    }
}

impl Awaits {
    /// The same loops, of which this one is explored like any other.
    pub(crate) fn refusing(&self, refused: &AwaitLoop) -> Awaits {
        let mut all = self.all().to_vec();
        let same = all.iter_mut().filter(|known| known.is(refused));
        same.for_each(|known| known.refused = true);
        Awaits(Some(all.into()))
    }
}

/// The atomic at which the event looked, and the value that it found. `None` unless the event only
/// looks at an atomic and leaves it unchanged, whichever thread makes it.
pub(crate) fn look(event: &Event, machine: &Machine) -> Option<(ObjectId, u64)> {
    let Operation { object, kind } = event.operation;
    let found = event.outcome.value()?;
    let only_looks = match kind {
        OpKind::Load { .. } => true,
        // A compare-exchange that may fail spuriously has learnt nothing about the value.
        OpKind::CompareExchange { .. } => !event.outcome.succeeded() && event.alternatives == 1,
        OpKind::Rmw { rmw, operand, .. } => {
            let ObjectKind::Atomic(ty) = machine.kind(object)? else {
                return None;
            };
            rmw.apply(ty, found, operand) == found
        }
        _ => false,
    };
    only_looks.then_some((object, found))
}

impl Machine {
    /// The operation that the thread announces at this hint if its round has looked in vain.
    /// `executed` is all events so far. `None` if the loop is not known.
    pub(crate) fn looked_in_vain(
        &mut self,
        thread: ThreadId,
        site: Site,
        executed: &[Event],
    ) -> Option<Operation> {
        let mut loops = self.limits.learnt.awaits.all().iter();
        let (seen, changed) = loops.find_map(|it| self.seen_in(it, (thread, site), executed))?;
        let (set, seen) = locations((&mut self.sets, &mut self.seen), &seen);
        Some(Operation {
            object: ObjectId::NONE,
            kind: OpKind::GiveUp {
                why: Reason::InVain { set, seen, changed },
            },
        })
    }

    /// The values that the thread has seen in this loop since its last visit to a hint, and whether
    /// a value changed between two looks of the round. `None` unless the events of the thread since
    /// then are exactly one round of the loop.
    fn seen_in(
        &self,
        AwaitLoop {
            hint,
            round,
            refused,
        }: &AwaitLoop,
        (thread, site): (ThreadId, Site),
        executed: &[Event],
    ) -> Option<(Vec<(ObjectId, u64)>, bool)> {
        if *refused || !hint.is(site) || self.since_hint(thread) < round.len() as u32 {
            return None;
        }
        let mut theirs = executed.iter().rev().filter(|event| event.thread == thread);
        let mut seen: Vec<(ObjectId, u64)> = Vec::new();
        let mut changed = false;
        for place in round.iter().rev() {
            let event = theirs.next().filter(|event| place.is(event.site))?;
            let (object, found) = look(event, self)?;
            match seen.iter().find(|(known, _)| *known == object) {
                Some((_, other)) => changed |= *other != found,
                None => seen.push((object, found)),
            }
        }
        Some((seen, changed))
    }

    /// Whether one of the values has changed that the threads which looked in vain have seen.
    /// `None` if there is no such thread.
    pub(crate) fn in_vain_has_changed(&self) -> Option<bool> {
        let looked = self.live.iter().filter_map(|&thread| {
            let OpKind::GiveUp {
                why: Reason::InVain { set, seen, changed },
            } = self.pending(thread)?.operation.kind
            else {
                return None;
            };
            let later = |object, seen| self.state(object).has_changed(seen);
            Some(changed || self.has_changed(set, seen, later))
        });
        looked.reduce(|one, other| one || other)
    }
}

// Looks that leave no event.

/// The looks in vain of a thread that waits. They have left no event, and its next operation is the
/// same look again.
#[derive(Clone, Default, Debug)]
pub(super) struct Rest {
    /// The number of events of the thread before the look; `None` if the thread has looked in vain
    /// nowhere.
    at: Option<u32>,
    /// The values with which the thread went round.
    values: Vec<u64>,
    /// The look.
    look: Option<(Operation, Site)>,
    /// The value with which the thread makes its round now, to find out whether it goes round.
    tried: Option<u64>,
    /// The number of events of the thread before each look of this execution that waits behind a
    /// look in vain.
    waited: Vec<u32>,
    /// Under C11, how many stores had gone last on the atomic when the look in vain read the last
    /// one; `None` if there was a newer one.
    went_last: Option<u32>,
}

/// An event that is a look of a wait, behind looks in vain.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    /// The position of the event.
    pub(crate) position: u32,
    /// The earlier events on its atomic that found a value there with which the thread had gone
    /// round: before these the look is disabled. Values may be addresses, which differ where the
    /// events are repeated.
    pub(crate) shut_out_by: Vec<u32>,
}

/// Whether the object had one of these values before this event.
pub(crate) fn is_among(machine: &Machine, values: &[u64], object: ObjectId, event: &Event) -> bool {
    let before = machine.before(event, object);
    before.is_some_and(|before| values.contains(&before))
}

impl Machine {
    /// Whether this event is a whole round of a known loop that waits at this hint.
    pub(crate) fn is_round(&self, hint: Site, event: &Event) -> bool {
        let mut loops = self.limits.learnt.awaits.all().iter();
        loops.any(|it| it.is_round(hint, event.site)) && look(event, self).is_some()
    }

    /// The known loop of which this look is a round.
    pub(crate) fn loop_with(&self, look: &Event) -> Option<&AwaitLoop> {
        let mut loops = self.limits.learnt.awaits.all().iter();
        loops.find(|known| known.only_place().is_some_and(|place| place.is(look.site)))
    }

    /// The known loop in which the thread has looked in vain.
    pub(crate) fn loop_of(&self, thread: ThreadId) -> Option<AwaitLoop> {
        let (_, site) = self.rest(thread)?.look?;
        let mut loops = self.limits.learnt.awaits.all().iter();
        let is_it = |known: &&AwaitLoop| known.only_place().is_some_and(|place| place.is(site));
        loops.find(is_it).cloned()
    }

    /// The last event of this execution, a look in vain, is withdrawn: the thread waits with its
    /// look until the value is one with which it has not gone round.
    pub(crate) fn withdraw(&mut self, position: u32, event: &Event) {
        let thread = &mut self.threads[event.thread.index()];
        thread.events = event.index;
        self.passed.retain(|it| it.position < position);
        let rest = self.rest_with(event.thread, (event.operation, event.site));
        rest.values.extend(event.outcome.value());
    }

    /// The looks in vain of the thread, which makes this look next.
    fn rest_with(&mut self, thread: ThreadId, look: (Operation, Site)) -> &mut Rest {
        let events = self.threads[thread.index()].events;
        let rests = self.rests.len().max(thread.index() + 1);
        self.rests.resize_with(rests, Rest::default);
        let rest = &mut self.rests[thread.index()];
        if rest.at != Some(events) {
            rest.at = Some(events);
            rest.values.clear();
            rest.look = Some(look);
        }
        rest
    }

    /// The thread, of which this look in vain was the last event, waits with the same look until
    /// the value is another one.
    pub(crate) fn wait_behind(&mut self, event: &Event) {
        let events = self.threads[event.thread.index()].events;
        let is_newest = Place::of(event.alternative).newer == 0;
        let orders = self.orders.as_ref().filter(|_| is_newest);
        let went_last = orders.map(|orders| orders.went_last(event.operation.object));
        let rest = self.rest_with(event.thread, (event.operation, event.site));
        rest.values.extend(event.outcome.value());
        rest.waited.push(events);
        rest.went_last = went_last;
    }

    /// Whether the look of the thread behind so many of its events waits behind a look in vain.
    pub(crate) fn waits_behind(&self, thread: ThreadId, events: u32) -> bool {
        let rest = self.rests.get(thread.index());
        rest.is_some_and(|rest| rest.waited.binary_search(&events).is_ok())
    }

    /// What a look comes out as that finds this value and leaves its atomic as it is. `None` for
    /// every other operation.
    pub(crate) fn looks_only(&self, operation: &Operation, value: u64) -> Option<Outcome> {
        let State::Atomic { .. } = self.state(operation.object) else {
            return None;
        };
        let looks = match operation.kind {
            OpKind::Load { .. } | OpKind::Rmw { .. } => true,
            // A compare-exchange that may fail spuriously has another outcome, too.
            OpKind::CompareExchange { spurious, .. } => !spurious,
            _ => false,
        };
        let (left, outcome) = self.would_find(operation, value);
        (looks && left == value).then_some(outcome)
    }

    /// The last event, if it is a look of this thread that was a whole round of a known loop with
    /// this hint, or with any.
    pub(crate) fn vain_look<'e>(
        &self,
        thread: ThreadId,
        hint: Option<Site>,
        executed: &'e [Event],
    ) -> Option<&'e Event> {
        let last = executed.last().filter(|event| event.thread == thread)?;
        let is_round = |known: &AwaitLoop| {
            known.only_place().is_some_and(|place| place.is(last.site))
                && hint.is_none_or(|hint| known.hint.is(hint))
        };
        let mut loops = self.limits.learnt.awaits.all().iter();
        (loops.any(is_round) && look(last, self).is_some()).then_some(last)
    }

    /// The thread makes a round in which its announced look finds this value, although its atomic
    /// may hold another one by now, and no event is made. Returns what the look comes out as.
    pub(crate) fn try_round(&mut self, thread: ThreadId, value: u64) -> Outcome {
        let Pending { operation, site } = *self.last(thread);
        let outcome = self.would_find(&operation, value).1;
        self.rest_with(thread, (operation, site)).tried = Some(value);
        outcome
    }

    /// What the operation on an atomic leaves there if it finds this value, and its outcome.
    fn would_find(&self, operation: &Operation, value: u64) -> (u64, Outcome) {
        match *self.state(operation.object) {
            State::Atomic { ty, .. } => atomic::apply(ty, value, &operation.kind, 0),
            _ => (value, Outcome::Done),
        }
    }

    /// The values that the memory of the atomic has for the look of a round that is only tried.
    pub(crate) fn tried_in_memory(&self, thread: ThreadId) -> Option<InMemory> {
        let rest = self.rests.get(thread.index())?;
        let State::Atomic { value: last, .. } = *self.state(rest.look?.0.object) else {
            return None;
        };
        let before = rest.tried?;
        Some(InMemory { before, last })
    }

    /// The thread, which makes a round that is only tried, has come to this hint. False if it is
    /// not the hint of its loop.
    pub(crate) fn comes_round(&mut self, thread: ThreadId, hint: Site) -> bool {
        let place = self.rest(thread).and_then(|rest| rest.look);
        let mut loops = self.limits.learnt.awaits.all().iter();
        let is_round = place.is_some_and(|(_, site)| loops.any(|it| it.is_round(hint, site)));
        if is_round && let Some(rest) = self.rests.get_mut(thread.index()) {
            rest.values.extend(rest.tried.take());
        }
        is_round
    }

    /// Whether an announced operation at this place may be the look of a known loop of which a look
    /// in vain leaves no event.
    pub(crate) fn may_wait_by(&self, kind: &OpKind, site: Site) -> bool {
        let looks = match *kind {
            OpKind::Load { .. } | OpKind::Rmw { blind: false, .. } => true,
            OpKind::CompareExchange { spurious, .. } => !spurious,
            _ => false,
        };
        let mut loops = self.limits.learnt.awaits.all().iter();
        looks && loops.any(|it| it.only_place().is_some_and(|place| place.is(site)))
    }

    /// Whether it is open whether the thread goes round if this look finds this value: it changes
    /// nothing, and the thread has not tried the value.
    pub(crate) fn is_untried(&self, thread: ThreadId, look: &Operation, value: u64) -> bool {
        let is_tried = |rest: &Rest| rest.values.contains(&value);
        self.would_find(look, value).0 == value && !self.rest(thread).is_some_and(is_tried)
    }

    /// The value of this atomic.
    pub(crate) fn value_of(&self, object: ObjectId) -> Option<u64> {
        match *self.state(object) {
            State::Atomic { value, .. } => Some(value),
            _ => None,
        }
    }

    /// Whether a thread has looked in vain in this execution, and its look was withdrawn.
    #[inline]
    pub(crate) fn has_withdrawn(&self) -> bool {
        !self.rests.is_empty()
    }

    /// The looks in vain of the thread since its last event, if it has withdrawn some.
    fn rest(&self, thread: ThreadId) -> Option<&Rest> {
        let rest = self.rests.get(thread.index())?;
        (rest.at == Some(self.threads[thread.index()].events)).then_some(rest)
    }

    /// Every thread may look again, whatever it has found.
    pub(crate) fn forget_rests(&mut self) {
        self.rests.clear();
    }

    /// Whether the thread waits behind looks in vain that have left no event.
    pub(crate) fn rests(&self, thread: ThreadId) -> bool {
        self.rest(thread).is_some()
    }

    /// Whether the thread would go round again with this operation.
    #[inline]
    pub(crate) fn would_look_in_vain(&self, thread: ThreadId, operation: &Operation) -> bool {
        !self.rests.is_empty() && self.goes_round_again(thread, operation)
    }

    #[cold]
    fn goes_round_again(&self, thread: ThreadId, operation: &Operation) -> bool {
        let waits = |rest: &&Rest| rest.look.is_some_and(|(look, _)| look == *operation);
        let rest = self.rest(thread).filter(waits);
        rest.is_some_and(|rest| {
            if let Some(orders) = &self.orders {
                return rest.went_last == Some(orders.went_last(operation.object));
            }
            let value = self.value_of(operation.object);
            value.is_some_and(|value| rest.values.contains(&value))
        })
    }

    /// Whether the thread, which has looked in vain, does something else than to look again.
    pub(crate) fn does_not_look_again(
        &self,
        thread: ThreadId,
        operation: Option<(&Operation, Site)>,
    ) -> bool {
        let again = |rest: &Rest| match (operation, rest.look) {
            (Some((operation, site)), Some((look, place))) => {
                *operation == look && std::ptr::eq(site, place)
            }
            _ => false,
        };
        self.rest(thread).is_some_and(|rest| !again(rest))
    }

    /// The values with which the thread has gone round, where it had this number of events.
    pub(crate) fn went_round_with(&self, thread: ThreadId, events: u32) -> Option<&[u64]> {
        let rest = self.rests.get(thread.index())?;
        let goes_round = rest.at == Some(events) && !rest.values.is_empty();
        goes_round.then_some(rest.values.as_slice())
    }

    /// Notes that the event at this position is a look of a wait, which these earlier events shut
    /// out.
    pub(crate) fn note_passed(&mut self, position: u32, shut_out_by: Vec<u32>) {
        self.passed.push(Passed {
            position,
            shut_out_by,
        });
    }

    /// Forgets the looks of waits from this position on.
    pub(crate) fn forget_passed(&mut self, length: usize) {
        self.passed.retain(|it| (it.position as usize) < length);
    }

    /// The look of a wait that this event is, if there were looks in vain before it.
    pub(crate) fn passed_at(&self, position: u32) -> Option<&Passed> {
        let at = self
            .passed
            .binary_search_by_key(&position, |it| it.position);
        at.ok().map(|at| &self.passed[at])
    }

    /// The looks of waits behind looks in vain, in the order of their events.
    pub(crate) fn passed(&self) -> &[Passed] {
        &self.passed
    }

    /// The values with which a thread goes round that has not made its look.
    pub(crate) fn goes_round_with(&self, thread: ThreadId) -> Option<&[u64]> {
        self.rest(thread).map(|rest| rest.values.as_slice())
    }

    /// Whether a thread goes round and finds no change.
    pub(crate) fn any_goes_round(&self) -> bool {
        let goes_round = |&thread: &ThreadId| {
            let pending = self.pending(thread);
            pending.is_some_and(|it| self.would_look_in_vain(thread, &it.operation))
        };
        self.live.iter().any(goes_round)
    }
}
