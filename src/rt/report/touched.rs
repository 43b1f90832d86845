//! Which accesses to plain memory has the table?
//!
//! The accesses are no events, and most of them are to memory that one thread uses: they would fill
//! the table and explain nothing. So the table has those to memory that several threads have used,
//! or that the failure is about.

use std::collections::HashMap;

use super::places::Callers;
use crate::rt::event::held::Touched;
use crate::rt::event::id::{Region, ThreadId};
use crate::rt::event::verdict::{Effect, End, Wrong};

/// The accesses in the table, in their order.
pub(super) fn shown<'a>(callers: &'a Callers, end: &End) -> Vec<&'a Touched> {
    let mut users: HashMap<Region, ThreadId> = HashMap::new();
    let mut shared: Vec<Region> = of_failure(end).into_iter().collect();
    for touched in callers.touched() {
        let thread = touched.access.thread;
        let first = *users.entry(touched.region).or_insert(thread);
        if first != thread && !shared.contains(&touched.region) {
            shared.push(touched.region);
        }
    }
    let is_shared = |touched: &&Touched| shared.contains(&touched.region);
    callers.touched().iter().filter(is_shared).collect()
}

/// The plain memory that the failure is about.
pub(super) fn of_failure(end: &End) -> Option<Region> {
    match end {
        End::DataRace(race) => race.memory.region,
        End::BadMemory(bad) => match bad.wrong {
            Wrong::Access(_, _, region) => Some(region),
            _ => None,
        },
        _ => None,
    }
}

/// The verb for an access.
pub(super) fn verb(effect: Effect) -> &'static str {
    match effect {
        Effect::Read | Effect::AtomicRead => "read",
        _ => "write",
    }
}
