//! Are two executions the same trace?
//!
//! They are if they have the same events with the same labels and the same happens-before. An
//! event's vector clock says which events happen before it, so the set of (event, label, clock) is
//! the trace. The key is its hash: a sum over the events, so that their order does not count. The
//! two halves of a key are independent hashes of the same set.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::rt::event::Trace;
use crate::rt::event::id::{Names, ObjectId, Region, ThreadId};
use crate::rt::event::mix::{STEP, mix, mix_all};
use crate::rt::relation::happens_before::HappensBefore;
use crate::rt::relation::independence::{Class, Footprint, ReadSets};

/// The key of a trace, or of a prefix of one. It has 128 bits, because a run compares millions of
/// keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub(crate) struct TraceKey(u64, u64);

/// The hashes of threads and objects in the keys of one exploration. They are hashes of names and
/// not of indices, so that keys of different explorations can be compared. There is one hash for
/// each half of a key.
#[derive(Clone, Default, Debug)]
pub(crate) struct Hashes {
    threads: Vec<[u64; 2]>,
    objects: Vec<[u64; 2]>,
}

impl Hashes {
    /// Computes the hashes of all of these names. A name keeps its meaning as long as `names`
    /// exists.
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
        let event = trace.at(position);
        let label = event.label.canonical();
        let on = match label.class() {
            Class::Wait | Class::Released => {
                let locations = sets.get(label.object().0).iter();
                // The order of the reads does not count.
                let places = locations.map(|&object| hashes.objects[object.index()]);
                places.fold([0u64; 2], |[a, b], [c, d]| {
                    [a.wrapping_add(mix(c)), b.wrapping_add(mix(d))]
                })
            }
            Class::Block => match sets.footprint(label.object().0) {
                Footprint::Everything => [1; 2],
                Footprint::Of(objects, writes) => {
                    let all = objects.iter().zip(writes);
                    all.fold([0u64; 2], |[a, b], (object, &writes)| {
                        let place = |half: usize| {
                            let place = hashes.objects[object.index()][half];
                            mix(place.rotate_left(u32::from(writes)))
                        };
                        [a.wrapping_add(place(0)), b.wrapping_add(place(1))]
                    })
                }
            },
            _ if label.object() == ObjectId::NONE => [0; 2],
            _ => hashes.objects[label.object().index()],
        };
        // A sum of products with pseudorandom factors tells clocks apart as well as a hash of the
        // whole clock.
        let mut past = [0u64; 2];
        for (thread, number) in hashes.threads.iter().zip(0..) {
            let clock = u64::from(clocks.clock(position, ThreadId(number)));
            for half in 0..2 {
                let product = (thread[half] | 1).wrapping_mul(clock);
                past[half] = past[half].wrapping_add(product);
            }
        }
        let owner = hashes.threads[event.thread.index()];
        let which = u64::from(event.index) << 32 | u64::from(event.alternative);
        let what = u64::from(label.count()) << 8 | label.class() as u64;
        let half = |half: usize| mix_all([owner[half] ^ which, on[half] ^ what, past[half]]);
        *self = self.with(TraceKey(half(0), half(1)));
    }
}

impl TraceKey {
    /// The entry of a table without a key.
    pub(crate) const NONE: TraceKey = TraceKey(0, 0);

    #[cfg(test)]
    pub(crate) fn of_test(number: u64) -> TraceKey {
        TraceKey(number, number)
    }

    #[cfg(test)]
    pub(crate) fn of_halves(one: u64, other: u64) -> TraceKey {
        TraceKey(one, other)
    }

    /// The key as a table stores it, which is never [`TraceKey::NONE`].
    #[inline]
    pub(crate) fn in_a_table(self) -> TraceKey {
        TraceKey(self.0 | 1, self.1)
    }

    /// The first index to try in a table with indices up to `last`; the size of the table is a
    /// power of two. Keys with equal first bits are next to each other.
    #[inline]
    pub(crate) fn spread(self, last: usize) -> usize {
        let bits = (last as u64).leading_zeros();
        self.0.checked_shr(bits).unwrap_or_default() as usize
    }

    /// The key with the contribution `added` of an event.
    pub(crate) fn with(self, added: TraceKey) -> TraceKey {
        TraceKey(self.0.wrapping_add(added.0), self.1.wrapping_add(added.1))
    }

    /// The contribution of the last event to the key, which was `before` without it.
    pub(crate) fn without(self, before: TraceKey) -> TraceKey {
        TraceKey(self.0.wrapping_sub(before.0), self.1.wrapping_sub(before.1))
    }
}

fn hash(value: impl Hash) -> [u64; 2] {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    let one = hasher.finish();
    hasher.write_u64(STEP);
    [one, hasher.finish()]
}
