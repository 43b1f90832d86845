//! Where do the thread-local variables of modelled threads live, and when are they dropped?
//!
//! All modelled threads share one OS thread, so std's thread-locals would be shared too. Each value is
//! boxed by its shim; here is only which thread has which. A thread's values are dropped at its end,
//! on its own stack, the latest first as std does; a destructor may make new ones. Those that have no
//! destructor can be used by all destructors, and are freed after these.

use crate::rt::trace::id::ThreadId;

/// What there is of a thread-local variable in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Local {
    /// No model runs.
    Outside,
    /// It has not been made.
    Missing,
    Value(*mut u8),
    /// It has been dropped, or is being.
    Dropped,
}

/// The thread-local variables of all threads.
#[derive(Default, Debug)]
pub(crate) struct Locals {
    /// In the order in which they were made.
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    thread: ThreadId,
    key: usize,
    value: Option<*mut u8>,
    drop: Drop,
    /// Whether the program may see it being dropped.
    destructor: bool,
}

/// What drops the value at an address.
type Drop = unsafe fn(*mut u8);

impl Locals {
    pub(crate) fn get(&self, thread: ThreadId, key: usize) -> Local {
        let mut entries = self.entries.iter().rev();
        let entry = entries.find(|entry| entry.thread == thread && entry.key == key);
        match entry {
            None => Local::Missing,
            Some(entry) => entry.value.map_or(Local::Dropped, Local::Value),
        }
    }

    /// Whether no thread has any.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps a value with what drops it, and whether that calls a destructor.
    pub(crate) fn set(
        &mut self,
        thread: ThreadId,
        key: usize,
        value: *mut u8,
        (drop, destructor): (Drop, bool),
    ) {
        self.entries.push(Entry {
            thread,
            key,
            value: Some(value),
            drop,
            destructor,
        });
    }

    /// The latest value of the thread that is still there, one with a destructor if there is one; it is not there from
    /// now on.
    pub(crate) fn next_to_drop(&mut self, thread: ThreadId) -> Option<(*mut u8, Drop)> {
        let entries = self.entries.iter_mut();
        let mine = entries.filter(|entry| entry.thread == thread && entry.value.is_some());
        // Of two that are alike in this the later one.
        let entry = mine.max_by_key(|entry| entry.destructor)?;
        entry.value.take().map(|value| (value, entry.drop))
    }

    /// Forgets everything, at the end of an execution.
    pub(crate) fn reset(&mut self) {
        self.entries.clear();
    }
}
