//! Where are the nodes of a tree stored?
//!
//! In one vector, named by their indices. So a tree is not dropped recursively, and its nodes are
//! not scattered over the heap. A removed node leaves a slot for the next one.

use std::ops::{Index, IndexMut};

use crate::rt::pooled::Empty;
use crate::rt::rare::Roomy;

/// The index of a slot.
pub(super) type SlotId = u32;

/// Values of one kind, each in a slot of its own.
#[derive(Debug)]
pub(super) struct Slots<T> {
    values: Vec<T>,
    free: Vec<SlotId>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots {
            values: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Empty for Slots<T> {
    fn empty(&mut self) {
        let Slots { values, free } = self;
        values.empty();
        free.empty();
    }
}

impl<T> Slots<T> {
    /// Puts a value into a free slot.
    pub(super) fn put(&mut self, value: T) -> SlotId {
        match self.free.pop() {
            Some(id) => {
                self[id] = value;
                id
            }
            None => {
                self.values.put(value);
                self.values.len() as SlotId - 1
            }
        }
    }

    /// Frees this slot.
    pub(super) fn release(&mut self, id: SlotId) {
        self.free.put(id);
    }

    /// The number of slots, free ones included: the most values there have been at once.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The memory of the slots in bytes, free ones included.
    pub(super) fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>() + self.free.capacity() * size_of::<SlotId>()
    }
}

impl<T> Index<SlotId> for Slots<T> {
    type Output = T;

    #[inline]
    fn index(&self, id: SlotId) -> &T {
        &self.values[id as usize]
    }
}

impl<T> IndexMut<SlotId> for Slots<T> {
    #[inline]
    fn index_mut(&mut self, id: SlotId) -> &mut T {
        &mut self.values[id as usize]
    }
}
