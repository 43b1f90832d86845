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

/// What stands for threads and objects in the keys of one exploration: hashes of their names and not
/// indices, so that keys of different explorations can be compared.
#[derive(Default, Debug)]
pub(crate) struct Hashes {
    threads: Vec<u64>,
    objects: Vec<u64>,
}

impl Hashes {
    /// Makes sure that all of these names are known. A name stands for the same as long as there are names.
    fn learn(&mut self, names: &Names) {
        for thread in (self.threads.len() as u32..names.thread_count() as u32).map(ThreadId) {
            let creator = names.creator(thread);
            let path = creator.map(|(creator, nth)| (self.threads[creator.index()], nth));
            self.threads.push(hash(path));
        }
        for object in (self.objects.len() as u32..names.object_count() as u32).map(ObjectId) {
            self.objects.push(match names.place(object).region {
                Region::Thread(thread) => hash(("thread", self.threads[thread.index()])),
                Region::Token(thread) => hash(("token", self.threads[thread.index()])),
                other => hash(other),
            });
        }
    }
}

impl TraceKey {
    /// Adds the event at `position` to the key; it must have a clock.
    pub(crate) fn add(
        &mut self,
        hashes: &mut Hashes,
        trace: &Trace,
        clocks: &HappensBefore,
        (names, sets): (&Names, &ReadSets),
        position: u32,
    ) {
        hashes.learn(names);
        let object = |object: ObjectId| hashes.objects[object.index()];
        let event = trace.at(position);
        let label = event.label.canonical();
        let on = match label.class() {
            Class::Wait | Class::LetGo => {
                let locations = sets.get(label.object().0).iter();
                let mut places: Vec<u64> = locations.map(|&o| object(o)).collect();
                places.sort_unstable();
                hash(places)
            }
            _ if label.object() == ObjectId::NONE => 0,
            _ => object(label.object()),
        };
        // A sum of products with numbers that are as good as random tells clocks apart as well as a hash
        // of the whole.
        let past = hashes.threads.iter().zip(0..);
        let past = past.fold(0u64, |past, (thread, number)| {
            let clock = clocks.clock(position, ThreadId(number));
            past.wrapping_add((thread | 1).wrapping_mul(u64::from(clock)))
        });
        let mut hasher = DefaultHasher::new();
        let owner = hashes.threads[event.thread.index()];
        (owner, event.alternative, event.index).hash(&mut hasher);
        (label.class() as u8, label.count(), on, past).hash(&mut hasher);
        self.0 = self.0.wrapping_add(hasher.finish());
        0x9e37_79b9_7f4a_7c15_u64.hash(&mut hasher);
        self.1 = self.1.wrapping_add(hasher.finish());
    }
}

impl TraceKey {
    #[cfg(test)]
    pub(crate) fn of_test(number: u64) -> TraceKey {
        TraceKey(number, number)
    }

    /// With what an event adds to it.
    pub(crate) fn with(self, added: TraceKey) -> TraceKey {
        TraceKey(self.0.wrapping_add(added.0), self.1.wrapping_add(added.1))
    }

    /// What an event has added to the key before it.
    pub(crate) fn without(self, before: TraceKey) -> TraceKey {
        TraceKey(self.0.wrapping_sub(before.0), self.1.wrapping_sub(before.1))
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
