//! Does the engine explore by its public calls what it explores inside, and does it refuse wrong
//! calls?

mod client;
mod cost;
mod misuse;
mod page;
mod random;
mod workers;

use crate::engine::{Ended, Execution, Operation, Outcome, Thread, Turn};

/// Runs one execution to its end. `next` gets the thread that goes on, with what its operation came
/// out as if it has made one, and returns its next operation; `None` if it ends.
fn run(
    execution: &mut Execution<'_>,
    mut next: impl FnMut(&Execution<'_>, Thread, Option<Outcome>) -> Option<Operation>,
) -> Ended {
    loop {
        let (thread, outcome) = match execution.turn().expect("a right call") {
            Turn::Begins(thread) => (thread, None),
            Turn::Ran(thread, outcome) => (thread, Some(outcome)),
            Turn::Ended(ended) => return ended,
        };
        match next(execution, thread, outcome) {
            Some(operation) => execution.announce(thread, operation),
            None => execution.finish_thread(thread),
        }
        .expect("its turn");
    }
}
