//! How does a search find its entry for a trace?
//!
//! A bounded search looks up, at every point of millions of executions, keys that it has not met
//! lately, or never, and spends a large part of its time waiting for that memory. So this table
//! stores each key beside its value, two of them in a cache line, at the index that the key itself
//! gives, because the key is a hash. Mostly a lookup or an insertion reads one line. A table that
//! stores the marks of occupied slots apart would need two.

use crate::rt::relation::key::TraceKey;

/// A map from traces to values.
pub(super) struct Table<V> {
    /// A power of two of them, or none.
    slots: Vec<Slot<V>>,
    /// The number of occupied slots.
    occupied: usize,
}

/// A key with its value; [`TraceKey::NONE`] in a free slot.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Slot<V> {
    key: TraceKey,
    value: V,
}

/// The number of slots at first.
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
    /// The value of this key.
    #[inline]
    pub(super) fn get(&self, key: TraceKey) -> Option<&V> {
        let key = key.in_a_table();
        let slot = self.slots.get(self.find(key)?)?;
        (slot.key == key).then_some(&slot.value)
    }

    /// The value of this key, and whether it is new. A key without a value gets the value `new`.
    #[inline]
    pub(super) fn entry(&mut self, key: TraceKey, new: V) -> (&mut V, bool) {
        // The fuller the table, the longer the search for a free slot.
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

    /// Empties the table. Returns its values.
    pub(super) fn take(&mut self) -> impl Iterator<Item = V> + use<V> {
        let slots = std::mem::take(self).slots.into_iter();
        let occupied = slots.filter(|slot| slot.key != TraceKey::NONE);
        occupied.map(|slot| slot.value)
    }

    /// The number of bytes of the slots.
    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<V>>()
    }

    /// The slot of this key, or the free one where it belongs. `None` if there is no slot at all.
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

    /// Doubles the number of slots. The new index of a key is about twice the old one, so this
    /// function reads and writes memory in order.
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
        // All keys belong into the last slot, and the later ones continue from the first slot.
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
