//! How is found what is known of a trace?
//!
//! A bounded search asks at every point of millions of executions for keys that it has not met
//! lately, or never, and a large part of its time are waits for that memory. So here a key lies
//! beside what is known of it, two of them in a line of the cache, and stands where the key itself
//! says, which is a hash: mostly one line is looked at, whether the key is there or is put there.
//! In a table that has the marks of what is occupied apart from that, it is two.

use crate::rt::relation::key::TraceKey;

/// What is known of traces.
pub(super) struct Table<V> {
    /// As many as a power of two, or none.
    slots: Vec<Slot<V>>,
    /// How many are occupied.
    occupied: usize,
}

/// A key with what is known of it; [`TraceKey::NONE`] if nothing is here.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Slot<V> {
    key: TraceKey,
    value: V,
}

/// How many there are at first.
const FIRST: usize = 64;

impl<V> Default for Table<V> {
    fn default() -> Table<V> {
        Table {
            slots: Vec::new(),
            occupied: 0,
        }
    }
}

impl<V: Copy + Default> Table<V> {
    /// What is known of this key.
    #[inline]
    pub(super) fn get(&self, key: TraceKey) -> Option<&V> {
        let key = key.in_a_table();
        let slot = self.slots.get(self.find(key)?)?;
        (slot.key == key).then_some(&slot.value)
    }

    /// What is known of this key; if nothing was, it is `new` from now on, and that is said.
    #[inline]
    pub(super) fn entry(&mut self, key: TraceKey, new: V) -> (&mut V, bool) {
        // The fuller it is, the further it is to a free slot.
        if self.occupied >= self.slots.len() / 4 * 3 {
            self.grow();
        }
        let key = key.in_a_table();
        let at = self.find(key).unwrap_or_default();
        let slot = &mut self.slots[at];
        let is_new = slot.key != key;
        if is_new {
            self.occupied += 1;
            *slot = Slot { key, value: new };
        }
        (&mut slot.value, is_new)
    }

    /// Forgets everything. Gives what was known.
    pub(super) fn take(&mut self) -> impl Iterator<Item = V> + use<V> {
        let slots = std::mem::take(self).slots.into_iter();
        let occupied = slots.filter(|slot| slot.key != TraceKey::NONE);
        occupied.map(|slot| slot.value)
    }

    /// How many bytes that takes.
    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<V>>()
    }

    /// Where this key is, or where it is to be put. `None` if there is no slot at all.
    #[inline]
    fn find(&self, key: TraceKey) -> Option<usize> {
        let last = self.slots.len().checked_sub(1)?;
        let mut at = key.spread(last);
        loop {
            let slot = &self.slots[at];
            if slot.key == key || slot.key == TraceKey::NONE {
                return Some(at);
            }
            at = (at + 1) & last;
        }
    }

    /// Makes twice the room. What was at one place comes to about twice as far, so that this goes
    /// through both in order.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let empty = Slot {
            key: TraceKey::NONE,
            value: V::default(),
        };
        let room = (2 * self.slots.len()).max(FIRST);
        let slots = std::mem::replace(&mut self.slots, vec![empty; room]);
        for slot in slots {
            if slot.key != TraceKey::NONE
                && let Some(at) = self.find(slot.key)
            {
                self.slots[at] = slot;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::rt::event::mix::{STEP, mix};

    /// A key that is a hash of this number.
    fn key(number: u64) -> TraceKey {
        let half = mix(number.wrapping_add(STEP));
        TraceKey::of_halves(half, mix(half))
    }

    #[test]
    fn a_table_knows_what_a_map_knows() {
        let mut table = Table::<u32>::default();
        let mut map = HashMap::new();
        assert_eq!(table.get(key(1)), None, "there is no slot at all");
        for round in 0..30_000_u64 {
            let number = mix(round.wrapping_mul(STEP)) % 9_000;
            let (value, is_new) = table.entry(key(number), round as u32);
            assert_eq!(is_new, !map.contains_key(&number));
            let known = map.entry(number).or_insert(round as u32);
            assert_eq!(value, known);
            if round % 3 == 0 {
                (*value, *known) = (7, 7);
            }
        }
        for number in 0..12_000 {
            assert_eq!(table.get(key(number)), map.get(&number), "{number}");
        }
        assert_eq!(table.occupied, map.len());
        let mut all: Vec<u32> = table.take().collect();
        let mut expected: Vec<u32> = map.into_values().collect();
        all.sort_unstable();
        expected.sort_unstable();
        assert_eq!(all, expected);
        assert_eq!(table.get(key(1)), None);
    }

    #[test]
    fn keys_that_say_the_same_place_are_told_apart() {
        let mut table = Table::<u64>::default();
        // All belong into the last slot, and those that come later go on from the first one.
        let alike = |number| TraceKey::of_halves(u64::MAX, number);
        for number in 0..500 {
            assert!(table.entry(alike(number), number).1);
        }
        for number in 0..500 {
            assert_eq!(table.get(alike(number)), Some(&number));
            assert!(!table.entry(alike(number), 0).1);
        }
        assert_eq!(table.get(alike(500)), None);
        // The key of the empty trace has no bit, and is a key like any other.
        assert!(table.entry(TraceKey::default(), 9).1);
        assert_eq!(table.get(TraceKey::default()), Some(&9));
    }

    #[test]
    fn two_slots_of_a_search_lie_in_one_line() {
        assert_eq!(size_of::<Slot<[u32; 4]>>(), 32);
    }
}
