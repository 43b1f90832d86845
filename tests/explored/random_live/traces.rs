//! How many traces has a program, by the documented dependency?
//!
//! Every interleaving of the interpreter is reduced to what all interleavings of its trace have in common: which events
//! conflict, and in which order they come. Which events conflict is read from the table in `docs/DEPENDENCY.md`.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use super::priced::{Price, has_prices};
use super::program::{Op, Program, Small};
use super::std_says::{GROUP, State, Touch};

/// For each class those that it conflicts with.
fn table() -> &'static HashMap<&'static str, HashSet<&'static str>> {
    static TABLE: OnceLock<HashMap<&str, HashSet<&str>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let lines = include_str!("../../../docs/DEPENDENCY.md").lines();
        let rows = lines.filter_map(|line| {
            line.strip_prefix("| ")?
                .strip_suffix(" |")?
                .split_once(" | ")
        });
        rows.map(|(class, others)| (class, others.split(", ").collect()))
            .collect()
    })
}

/// Whether two events may not be swapped, where `room` is that of the channel.
fn conflict(room: Option<usize>, a: Touch, b: Touch) -> bool {
    let row = table()
        .get(a.class)
        .unwrap_or_else(|| panic!("{} is no class", a.class));
    if a.object != b.object || !row.contains(b.class) {
        return false;
    }
    // What the text above the table says.
    let either = |one, other| [(one, other), (other, one)].contains(&(a.class, b.class));
    let of = |class| if a.class == class { a.number } else { b.number };
    if either("Drop", "Drop") {
        return a.number == 1 || b.number == 1;
    }
    let (missing, group) = (|number| number % GROUP, |number| number / GROUP);
    if either("Arrive", "Arrive") {
        return missing(a.number) == 1 || missing(b.number) == 1;
    }
    if either("Arrive", "Leave") {
        return missing(of("Arrive")) == 1 && group(of("Arrive")) == of("Leave");
    }
    if either("Notify", "Awake") {
        return a.number == b.number;
    }
    if either("Sent", "Received") {
        let makes_room = |room| room > 0 && of("Sent") == of("Received") + room;
        return of("Sent") == of("Received") || room.is_some_and(makes_room);
    }
    if either("HandOver", "Received") || either("Taken", "Received") {
        return a.number == b.number;
    }
    true
}

/// How many traces there are that can be executed within a bound, if there is one. `None` if they cannot be counted, or if
/// there are more interleavings than that.
pub fn count(
    program: &Program,
    bound: Option<(Price, usize)>,
    interleavings_max: usize,
) -> Option<usize> {
    // How often one looks that spins is not in the log, nor how often an update tries.
    let tries = |op: &Op| program.spurious && matches!(op, Op::Small(Small::Update, _));
    if program.spins() || program.has(tries) || bound.is_some() && !has_prices(program) {
        return None;
    }
    let mut search = Search {
        room: program.room,
        traces: HashSet::new(),
        left: interleavings_max,
    };
    let first = State::first(program, bound.is_some());
    let (price, left) = bound.unzip();
    search.go_on(&first, &mut Vec::new(), price, (0, left.unwrap_or(0)))?;
    Some(search.traces.len())
}

/// An event: the thread, and how it touches what.
type Event = (usize, Touch);

/// The pairs of conflicting events in their order, each with its thread and its number there; and
/// what the threads have seen, which tells choices apart, as does what happened to them for no
/// reason. This is the same for all interleavings of a trace.
type Canonical = (Vec<[(usize, usize); 2]>, [Vec<Vec<usize>>; 2]);

struct Search {
    room: Option<usize>,
    traces: HashSet<Canonical>,
    left: usize,
}

impl Search {
    /// Goes on behind the `last` thread's step, where `left` is what may still be paid.
    fn go_on(
        &mut self,
        state: &State,
        events: &mut Vec<Event>,
        price: Option<Price>,
        (last, left): (usize, usize),
    ) -> Option<()> {
        let next = state.all_steps();
        if state.is_over() {
            self.left = self.left.checked_sub(1)?;
            let reasons = state.threads.iter().map(|it| it.for_no_reason.clone());
            let chosen = [state.outcome().0, reasons.collect()];
            self.traces.insert((pairs(self.room, events), chosen));
        }
        let costs = match price {
            Some(price) => price.of_each(state, &next, last),
            None => vec![0; next.len()],
        };
        for ((thread, state), costs) in next.into_iter().zip(costs) {
            let Some(left) = left.checked_sub(costs) else {
                continue;
            };
            let before = events.len();
            events.extend(state.touched.iter().map(|&touch| (thread, touch)));
            self.go_on(&state, events, price, (thread, left))?;
            events.truncate(before);
        }
        Some(())
    }
}

fn pairs(room: Option<usize>, events: &[Event]) -> Vec<[(usize, usize); 2]> {
    let number = |at: usize| {
        let thread = events[at].0;
        let before = events[..at].iter().filter(|event| event.0 == thread);
        (thread, before.count())
    };
    let all = (0..events.len()).flat_map(|later| (0..later).map(move |earlier| [earlier, later]));
    let conflicting = all
        .filter(|&[a, b]| events[a].0 != events[b].0 && conflict(room, events[a].1, events[b].1));
    let mut pairs: Vec<_> = conflicting.map(|pair| pair.map(number)).collect();
    pairs.sort_unstable();
    pairs
}
