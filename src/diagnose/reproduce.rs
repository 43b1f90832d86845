//! Does a failure recur from its own schedule?
//!
//! It does if the closure is deterministic. If the closure is not, more than the schedule decides,
//! and neither the failure nor the pair of operations on which it seems to depend follows from the
//! schedule. During the exploration a test that depends on a clock or on a std counter cannot be
//! told from a deterministic one: the difference lies behind the common prefix, or is no event.
//! After a failure, a few more executions cost next to nothing.

use std::mem::discriminant;

use crate::diagnose::minimize::{Looks, Probe, decided, leads_to, same};
use crate::rt::engine::driver::Driver;
use crate::rt::engine::replay::Replay;
use crate::rt::event::Event;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::OpKind;
use crate::rt::event::verdict::{End, Pair, Reproduction};
use crate::rt::exec::run::{Explored, Found};

/// How often a failure is replayed, and how often its pair is tried in the other order. If each of
/// these executions depended on the toss of a coin, they would very unlikely all confirm the pair.
const TIMES: usize = 3;

/// Smaller numbers are no addresses: no object lies in the first page.
const ADDRESSES: u64 = 4096;

impl Probe<'_> {
    /// Replays this failure from its schedule. Returns the first result that differs, if any.
    pub(crate) fn again(&mut self, found: &Found) -> Reproduction {
        let mut all = (0..TIMES).map(|_| self.once_more(found));
        let same = if had_passed(found) {
            Reproduction::HadPassed
        } else {
            Reproduction::Same
        };
        all.find(|again| *again != Reproduction::Same)
            .unwrap_or(same)
    }

    /// Whether the test passes each time with the pair in the other order.
    pub(crate) fn hangs_on(&mut self, pair: &Pair) -> bool {
        (0..TIMES).all(|_| self.passes(&pair.reversed).is_some())
    }

    fn once_more(&mut self, found: &Found) -> Reproduction {
        let explorer = Box::new(Replay::new(leads_to(found)));
        match self.explored(explorer, 1, Looks::default()).0 {
            // After the panic, while its thread unwinds, another thread asked for the first time
            // whether a thread has finished. The panic itself recurred.
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

/// Whether a thread panics although every event of the execution repeats an earlier execution. The
/// code after the thread's last event ran in the earlier execution, too, and a panic there would
/// have failed that execution. So a value from then is still kept outside the model, and the
/// failure recurs in this process, but not in the next one.
fn had_passed(found: &Found) -> bool {
    let End::Panicked { thread, .. } = found.end else {
        return false;
    };
    let Driver { trace, stats, .. }: &Driver = &found.driver;
    // A thread without events may have begun at another time in the earlier execution.
    let has_begun = thread == ThreadId::MAIN || !trace.positions_of(thread).is_empty();
    stats.begun() > 0 && has_begun && trace.len() <= found.driver.repeated()
}

/// Whether running the execution of such a failure again can show anything.
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

/// Returns the first event that differs, among the events that the schedule decides. Which of
/// several threads that spin for ever continues first is up to the explorer, so later events do not
/// count.
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

/// Whether two events may be the same, in two executions in which addresses differ.
fn alike(a: &Event, b: &Event) -> bool {
    let alike = |(a, b): (u64, u64)| a == b || a.min(b) >= ADDRESSES;
    a.site == b.site
        && discriminant(&a.operation.kind) == discriminant(&b.operation.kind)
        && discriminant(&a.outcome) == discriminant(&b.outcome)
        && numbers(a).into_iter().zip(numbers(b)).all(alike)
}

/// Returns the value that an event on an atomic has found, and the values that it was given.
fn numbers(event: &Event) -> [u64; 3] {
    let kind = &event.operation.kind;
    let (given, expected) = match *kind {
        OpKind::Store { value, .. } => (value, 0),
        OpKind::Rmw { operand, .. } => (operand, 0),
        OpKind::CompareExchange { new, expected, .. } => (new, expected),
        OpKind::Load { .. } => (0, 0),
        // The values of other objects are numbers of the runtime.
        _ => return [0; 3],
    };
    [event.outcome.value().unwrap_or_default(), given, expected]
}
