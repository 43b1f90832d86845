//! Does a failure come again from its own schedule?
//!
//! If the closure is deterministic, it does. If not, what decides is not only the schedule, and
//! neither the failure nor the pair that it would hang on can be put down to that. A test that a
//! clock or a counter of std's decides on cannot be told from one that is deterministic while it is
//! explored: what differs comes behind the events that are repeated, or is no event. Once there is
//! a failure, a few more executions are no cost.

use std::mem::discriminant;

use crate::diagnose::minimize::{Looks, Probe, decided, leads_to, same};
use crate::rt::engine::driver::Driver;
use crate::rt::engine::replay::Replay;
use crate::rt::event::Event;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::OpKind;
use crate::rt::event::verdict::{End, Pair, Reproduction};
use crate::rt::exec::run::{Explored, Found};

/// How often a failure is run again, and how often the pair that it hangs on the other way round: a
/// coin that was tossed in each of these executions is very unlikely to speak for the pair.
const TIMES: usize = 3;

/// Numbers below this are no addresses: nothing is allocated in the first page.
const ADDRESSES: u64 = 4096;

impl Probe<'_> {
    /// What comes of running this failure again from its schedule; the first that is not the same.
    pub(crate) fn again(&mut self, found: &Found) -> Reproduction {
        let mut all = (0..TIMES).map(|_| self.once_more(found));
        let same = match had_passed(found) {
            true => Reproduction::HadPassed,
            false => Reproduction::Same,
        };
        all.find(|again| *again != Reproduction::Same)
            .unwrap_or(same)
    }

    /// Whether the test still passes with the pair the other way round, each time.
    pub(crate) fn hangs_on(&mut self, pair: &Pair) -> bool {
        (0..TIMES).all(|_| self.passes(&pair.reversed).is_some())
    }

    fn once_more(&mut self, found: &Found) -> Reproduction {
        let explorer = Box::new(Replay::new(leads_to(found)));
        match self.explored(explorer, 1, Looks::default()).0 {
            // Behind the panic, while its thread unwinds, another one asks for the first time
            // whether a thread has finished.
            Explored::Passed(other)
                if other.ends_are_seen() && other.executed().len() >= decided(found) =>
            {
                Reproduction::Same
            }
            Explored::Passed(_) => Reproduction::Passes,
            Explored::Failed(other) if same(found, &other) => differs(found, &other),
            Explored::Failed(other) => {
                Reproduction::Fails(other.end.in_a_word().unwrap_or("another failure"))
            }
        }
    }
}

/// Whether a thread panics between events that are all repeated from an earlier execution. What it
/// does after its last one it did there as well, and had it panicked there, that execution would
/// have failed. Something has kept a value from then, and keeps it still, so that the failure comes
/// again in this process, but not in the next one.
fn had_passed(found: &Found) -> bool {
    let End::Panicked { thread, .. } = found.end else {
        return false;
    };
    let Driver { trace, stats, .. }: &Driver = &found.driver;
    // One that has made no event may have begun at another time there.
    let has_begun = thread == ThreadId::MAIN || !trace.positions_of(thread).is_empty();
    stats.begun() > 0 && has_begun && trace.len() <= found.driver.repeated()
}

/// Whether running this end's execution again can tell anything.
pub(crate) fn may_come_again(end: &End) -> bool {
    !matches!(
        end,
        End::Stale { .. }
            | End::NotDeterministic(_)
            | End::StackOverflow { .. }
            | End::NoStack { .. }
            | End::NoClocks { .. }
            | End::Outside(_)
    )
}

/// The first event that came out otherwise, of those that the schedule decides: which of several
/// threads that spin for ever goes first is up to who explores.
fn differs(one: &Found, other: &Found) -> Reproduction {
    let (mine, theirs) = (&one.driver, &other.driver);
    let events = mine.trace.events().iter().zip(theirs.trace.events());
    let mut events = events.take(decided(one));
    // The same threads may have other numbers.
    let differs = |(a, b): (&Event, &Event)| {
        !alike(a, b) || mine.machine.names.path(a.thread) != theirs.machine.names.path(b.thread)
    };
    match events.position(differs) {
        Some(position) => Reproduction::Differs {
            position: position as u32,
        },
        None => Reproduction::Same,
    }
}

/// Whether two events may be the same one, in two executions where addresses differ.
fn alike(a: &Event, b: &Event) -> bool {
    let alike = |(a, b): (u64, u64)| a == b || a.min(b) >= ADDRESSES;
    a.site == b.site
        && discriminant(&a.operation.kind) == discriminant(&b.operation.kind)
        && discriminant(&a.outcome) == discriminant(&b.outcome)
        && numbers(a).into_iter().zip(numbers(b)).all(alike)
}

/// What an event on an atomic has found, and was given.
fn numbers(event: &Event) -> [u64; 3] {
    let kind = &event.operation.kind;
    let (given, expected) = match *kind {
        OpKind::Store { value, .. } => (value, 0),
        OpKind::Rmw { operand, .. } => (operand, 0),
        OpKind::CompareExchange { new, expected, .. } => (new, expected),
        OpKind::Load { .. } => (0, 0),
        // What other objects hold are numbers of the runtime's own.
        _ => return [0; 3],
    };
    [event.outcome.value().unwrap_or_default(), given, expected]
}
