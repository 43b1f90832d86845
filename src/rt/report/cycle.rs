//! Which threads of a deadlock wait for each other in a circle?
//!
//! Each waits to lock a mutex that the next one holds. Other ways to wait have no single holder, so
//! nothing is said of them.

use super::words::Names;
use crate::rt::object::State;
use crate::rt::object::machine::Machine;
use crate::rt::trace::id::{ObjectId, ThreadId};
use crate::rt::trace::operation::OpKind;
use crate::rt::trace::verdict::Blocked;

/// One sentence about the first circle, if there is one.
pub(super) fn sentence(stuck: &[Blocked], machine: &Machine, names: &Names<'_>) -> Option<String> {
    let cycle = stuck
        .iter()
        .find_map(|it| from(it.thread, stuck, machine))?;
    let (_, last) = *cycle.last()?;
    if cycle.len() == 1 {
        let (thread, lock) = (names.thread(cycle[0].0), names.object(last));
        return Some(format!("{thread} holds {lock} and waits for it itself"));
    }
    // What a thread holds is what its predecessor waits for.
    let held = std::iter::once(last).chain(cycle.iter().map(|&(_, lock)| lock));
    let told = cycle.iter().zip(held).map(|(&(thread, waits), holds)| {
        let (holds, waits) = (names.object(holds), names.object(waits));
        format!(
            "{} holds {holds} and waits for {waits}",
            names.thread(thread)
        )
    });
    Some(told.collect::<Vec<_>>().join(", "))
}

/// The circle through `start`: each thread with the mutex that it waits for.
fn from(
    start: ThreadId,
    stuck: &[Blocked],
    machine: &Machine,
) -> Option<Vec<(ThreadId, ObjectId)>> {
    let mut cycle = Vec::new();
    let mut thread = start;
    // A walk that is not back after as many steps as threads wait ends in another circle.
    for _ in stuck {
        let it = stuck.iter().find(|it| it.thread == thread)?;
        // A wait for several objects has none of its own, so the kind is asked first.
        let OpKind::Lock = it.operation.kind else {
            return None;
        };
        let State::Mutex(mutex) = machine.state(it.operation.object) else {
            return None;
        };
        cycle.push((thread, it.operation.object));
        thread = mutex.holder?;
        if thread == start {
            return Some(cycle);
        }
    }
    None
}
