//! Which loops are taken for one step that waits for what lets it go on?
//!
//! Of a loop with a hint that was seen to wait, and not to give up by itself, it is known at which
//! places a round of it looks. A thread that has looked at just these, one after the other, and
//! comes to the hint, has looked in vain: it has learnt nothing but that it has to look again. If
//! something that it has seen changes later, there is another execution in which it looks only
//! then, and nothing else is different (Kokologiannakis, Ren, Vafeiadis, "Dynamic Partial Order
//! Reductions for Spinloops", FMCAD 2021; Jonsson, Lång, Sagonas, "Awaiting for Godot", FMCAD
//! 2022). So the thread goes no further in this one.

use std::borrow::Cow;
use std::sync::Arc;

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{ObjectKind, OpKind, Operation, Reason};
use crate::rt::event::{Event, Site};

use super::Machine;
use super::waits::locations;

/// A place in the program, also one that another process has written down.
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

    /// The place that is written like this.
    pub(crate) fn parse(text: &str) -> Option<Spot> {
        let mut parts = text.rsplitn(3, ':');
        let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Spot {
            file: parts.next()?.to_owned().into(),
            line,
            column,
        })
    }

    /// Whether it is this place.
    fn is(&self, site: Site) -> bool {
        (self.line, self.column) == (site.line(), site.column()) && self.file == site.file()
    }
}

/// A loop that waits at a hint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AwaitLoop {
    pub(crate) hint: Spot,
    /// Where it looks in each round, in order.
    pub(crate) round: Vec<Spot>,
}

/// The most loops that are taken for one step. Each that is found makes the exploration begin anew.
const LOOPS_MAX: usize = 32;

/// The loops that are known; several may have the same hint, as where it is in a function. Mostly
/// there are none.
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

    /// These and others, as many as are looked after. `None` if that is no more than before.
    pub(crate) fn with(&self, others: Vec<AwaitLoop>) -> Option<Awaits> {
        let before = self.all();
        let mut new = others;
        new.retain(|it| !before.contains(it));
        new.truncate(LOOPS_MAX.saturating_sub(before.len()));
        (!new.is_empty()).then(|| Awaits(Some([before, &new].concat().into())))
    }
}

/// What an event has looked at, and what it has found there, if it is a look at an atomic that
/// leaves it as it is, whoever makes it.
pub(crate) fn look(event: &Event, machine: &Machine) -> Option<(ObjectId, u64)> {
    let Operation { object, kind } = event.operation;
    let found = event.outcome.value()?;
    let only_looks = match kind {
        OpKind::Load { .. } => true,
        // One that may fail for no reason has found out nothing.
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
    /// What the thread announces that has come to this hint and has looked in vain, where
    /// `executed` is all that has happened. `None` where that is not known.
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

    /// What the thread has seen in this loop since it came to a hint the last time, if it has done
    /// all that it does there in a round and nothing else; and whether something has changed
    /// between two looks of the round.
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

    /// Whether something has changed of what those have seen that have looked in vain; `None` if
    /// there are none of these.
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
