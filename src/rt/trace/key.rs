//! Are two executions the same trace?
//!
//! They are if they have the same events with the same labels and the same happens-before. An
//! event's vector clock says which events happen before it, so the set of (event, label, clock) is
//! the trace; its hash, with the events summed up so that their order does not count, is the key.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Trace;
use super::dependency::{Class, ReadSets};
use super::happens_before::HappensBefore;
use super::id::{Names, ObjectId, Region, ThreadId};

/// The key of a trace, or of a prefix of one. 128 bits: millions of them are compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub(crate) struct TraceKey(u64, u64);

impl TraceKey {
    /// Adds the event at `position` to the key; it must have a clock. Names and not indices are
    /// hashed, so that keys of different explorations can be compared.
    pub(crate) fn add(
        &mut self,
        trace: &Trace,
        clocks: &HappensBefore,
        names: &Names,
        sets: &ReadSets,
        position: u32,
    ) {
        let event = trace.at(position);
        let mut hasher = DefaultHasher::new();
        path(names, event.thread).hash(&mut hasher);
        (event.alternative, event.index).hash(&mut hasher);
        let label = event.label.canonical();
        (label.class(), label.count()).hash(&mut hasher);
        if label.class() == Class::Wait || label.class() == Class::LetGo {
            let mut places: Vec<u64> = sets
                .get(label.object().0)
                .iter()
                .map(|&object| place(names, object))
                .collect();
            places.sort_unstable();
            places.hash(&mut hasher);
        } else if label.object() != ObjectId::NONE {
            place(names, label.object()).hash(&mut hasher);
        }
        let mut past = 0u64;
        for thread in (0..names.thread_count() as u32).map(ThreadId) {
            let clock = clocks.clock(position, thread);
            if clock > 0 {
                past = past.wrapping_add(hash((path(names, thread), clock)));
            }
        }
        past.hash(&mut hasher);
        self.0 = self.0.wrapping_add(hasher.finish());
        0x9e37_79b9_7f4a_7c15_u64.hash(&mut hasher);
        self.1 = self.1.wrapping_add(hasher.finish());
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn path(names: &Names, thread: ThreadId) -> u64 {
    match names.creator(thread) {
        None => 1,
        Some((creator, nth)) => hash((path(names, creator), nth)),
    }
}

fn place(names: &Names, object: ObjectId) -> u64 {
    match names.place(object).region {
        Region::Thread(thread) => hash(("thread", path(names, thread))),
        Region::Token(thread) => hash(("token", path(names, thread))),
        other => hash(other),
    }
}
