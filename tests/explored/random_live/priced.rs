//! What may come of a program within a bound, by the definition of what the bound counts?
//!
//! The interpreter runs with each event as a step of its own, so that the scheduler may interfere before each. Programs with
//! what is no step there, or more than one, are left out: a wait that may end by itself, a loop that waits, and a look at
//! the end of a thread, for which ends are events.

use std::collections::{BTreeSet, HashSet, VecDeque};

use super::program::{Op, Program};
use super::std_says::State;
use super::world::Outcome;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Price {
    /// A switch away from a thread that could go on.
    Preemptions,
    /// Each switch.
    Switches,
    /// Each thread that is passed over by a scheduler that goes on with the one that ran last, or else with the next one.
    Delays,
}

/// Whether events are steps.
pub fn has_prices(program: &Program) -> bool {
    use Op::*;
    let has_none = |op: &Op| {
        matches!(
            op,
            WaitTimeout | WaitTimeoutWhile | RecvTimeout | ParkTimeout | Yield | IsFinished(_)
        ) || matches!(op, Raise | Await { .. } | Force | Local)
    };
    !program.spurious && !program.spins() && !program.has(has_none)
}

/// The outcomes of executions that come to their end within each bound below `bounds`; `None` if that takes more than so many
/// states, or if the interpreter does not know.
pub fn outcomes(
    program: &Program,
    price: Price,
    bounds: usize,
    states_max: usize,
) -> Option<Vec<BTreeSet<Outcome>>> {
    if !has_prices(program) {
        return None;
    }
    let mut within = vec![BTreeSet::new(); bounds];
    let mut known = HashSet::new();
    let mut todo = VecDeque::from([(0, 0, State::first(program, true))]);
    // What costs nothing goes to the front, so that who comes to a state first does so for the least.
    while let Some((paid, last, mut state)) = todo.pop_front() {
        state.touched.clear();
        if !known.insert((last, state.clone())) {
            continue;
        }
        if known.len() > states_max {
            return None;
        }
        let next = state.all_steps();
        let outcome = state.outcome();
        if next.is_empty() && outcome.1 {
            within[paid..].iter_mut().for_each(|all| {
                all.insert(outcome.clone());
            });
        }
        let costs = price.of_each(&state, &next, last);
        for ((thread, state), costs) in next.into_iter().zip(costs) {
            let paid = paid + costs;
            if paid >= bounds {
                continue;
            }
            let behind = todo.partition_point(|other| other.0 < paid);
            todo.insert(behind, (paid, thread, state));
        }
    }
    Some(within)
}

impl Price {
    /// What each of these steps costs, where `last` ran last.
    pub fn of_each(self, state: &State, steps: &[(usize, State)], last: usize) -> Vec<usize> {
        let births = |thread: usize| state.rules.births[thread];
        let able: BTreeSet<usize> = steps.iter().map(|step| step.0).collect();
        let cost = |thread: usize| match self {
            Price::Preemptions => usize::from(thread != last && able.contains(&last)),
            Price::Switches => usize::from(thread != last),
            // It comes behind those whose turns are between, or once more from the beginning.
            Price::Delays => {
                let turn = |other: usize| (births(other) < births(last), births(other));
                let earlier = |&&other: &&usize| turn(other) < turn(thread);
                able.iter().filter(earlier).count()
            }
        };
        steps.iter().map(|step| cost(step.0)).collect()
    }
}
