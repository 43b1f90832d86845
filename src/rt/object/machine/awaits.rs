//! Which loops are taken for one step that waits for a change?
//!
//! These are loops with a hint that the exploration has seen to wait and not to give up by
//! themselves. For each of them the places are known at which one round looks at atomics. A thread
//! that looks at exactly these places, one after the other, and reaches the hint, has looked in
//! vain: the round has only told the thread to look again. If one of the values changes later,
//! there is another execution in which the thread looks only after the change, and nothing else
//! differs (Kokologiannakis, Ren, Vafeiadis, "Dynamic Partial Order Reductions for Spinloops",
//! FMCAD 2021; Jonsson, Lång, Sagonas, "Awaiting for Godot", FMCAD 2022). So the thread stops in
//! this execution.

use std::borrow::Cow;
use std::sync::Arc;

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{ObjectKind, OpKind, Operation, Reason};
use crate::rt::event::{Event, Site};

use super::Machine;
use super::waits::locations;

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
    fn is(&self, site: Site) -> bool {
        (self.line, self.column) == (site.line(), site.column()) && self.file == site.file()
    }
}

/// A loop that waits at a hint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AwaitLoop {
    pub(crate) hint: Spot,
    /// The places at which each round looks, in order.
    pub(crate) round: Vec<Spot>,
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
        new.retain(|it| !before.contains(it));
        new.truncate(LOOPS_MAX.saturating_sub(before.len()));
        (!new.is_empty()).then(|| Awaits(Some([before, &new].concat().into())))
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
        AwaitLoop { hint, round }: &AwaitLoop,
        (thread, site): (ThreadId, Site),
        executed: &[Event],
    ) -> Option<(Vec<(ObjectId, u64)>, bool)> {
        if !hint.is(site) || self.since_hint(thread) < round.len() as u32 {
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
