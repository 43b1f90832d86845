//! An exploration within a bound that takes turns with one without the bound.
//!
//! A search within a bound cannot use all that a search without one uses, and remembers every
//! prefix. Where threads do few steps, the traces need few preemptions anyway: then the search
//! without a bound visits about the same traces, in a small part of the time. Neither cost is known
//! in advance. So both searches make the same number of events, as far as executions allow, and the
//! one that ends first is the exploration: together they cost twice the cheaper one.
//!
//! * A search without a bound that has explored every trace has explored those within the bound.
//! * What it meets on the way decides nothing. If one of its executions fails, the failure may need
//!   more than the bound allows; if it does not, the search within the bound finds the failure too,
//!   and finds it with the lowest price. So the search without a bound ends there.
//! * Each search has a driver of its own, and learns about the program on its own. Nothing that one
//!   has seen or counted is part of the report of the other.

use crate::config::Builder;
use crate::exploration::progress::above_captured;
use crate::rt::event::Site;
use crate::verdict::failure::FailureKind;

/// State of an exploration without a bound, beside one within a bound.
#[derive(Default)]
pub(super) struct Beside {
    /// Whether the exploration has ended before it has explored every trace.
    pub(super) is_void: bool,
    /// The failure that has ended it, if that is one of the program.
    pub(super) beyond: Option<Beyond>,
}

/// A failure that the exploration without a bound has met.
pub(super) struct Beyond {
    kind: FailureKind,
    place: String,
    /// The command that shows the failure.
    replay: String,
}

/// The part of the events of one search, as a divisor, by which a turn of the other search may
/// exceed these events: with shorter turns, more time would go into the changes.
const TURN_PART: u64 = 16;

/// The most events by which a turn may exceed the events of the other search.
const TURN_MAX: u64 = 1 << 14;

/// The number of events at which a turn ends, where the other search has made `events` of them.
pub(super) fn turn(events: u64) -> u64 {
    events + (events / TURN_PART).clamp(1, TURN_MAX)
}

impl Beside {
    /// The exploration has ended, because of an execution that has failed or has to be explored in
    /// another way. `failure` is the kind of the failure and its place; `replay` makes the command
    /// that shows it.
    pub(super) fn ended_with(
        failure: Option<(FailureKind, String)>,
        replay: impl FnOnce() -> String,
    ) -> Beside {
        let of_the_program = |kind: &FailureKind| {
            !matches!(
                kind,
                FailureKind::Limit | FailureKind::NotDeterministic | FailureKind::Schedule
            )
        };
        let failure = failure.filter(|(kind, _)| of_the_program(kind));
        let beyond = failure.map(|(kind, place)| Beyond {
            kind,
            place,
            replay: replay(),
        });
        Beside {
            is_void: true,
            beyond,
        }
    }
}

/// Says that an exploration that has passed within its bound has met a failure without it.
#[cold]
pub(super) fn tell_of_beyond(settings: &Builder, site: Site, beyond: &Beyond) {
    let Some(bound) = settings.bound() else {
        return;
    };
    let Beyond {
        kind,
        place,
        replay,
    } = beyond;
    above_captured(&format!(
        "dpor: the model at {site} passes within {bound} and fails without it ({kind:?} at {place}); \
         to see the execution:\n  {replay}\n"
    ));
}
