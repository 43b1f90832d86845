//! Where do the thread-local variables of modelled threads live, and when are they dropped?
//!
//! All modelled threads share one OS thread, so std's thread-locals would be shared too. The shim
//! boxes each value; this file only notes which thread has which values. A thread's values are
//! dropped at its end, on its own stack, the latest first as in std; a destructor may make new
//! values. Values without a destructor can be used by all destructors, and are freed after these.

use crate::rt::event::id::{ThreadId, lengthen};

/// The state of a thread-local variable in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Local {
    /// No model runs.
    Outside,
    /// The value has not been made.
    Missing,
    Value(*mut u8),
    /// The value has been dropped, or its destructor runs.
    Dropped,
}

/// The thread-local variables of all threads.
#[derive(Default, Debug)]
pub(crate) struct Locals {
    /// In the order in which they were made.
    entries: Vec<Entry>,
    /// By thread the number of the last entry that it has made, or [`NONE`]. A program may have
    /// thousands of threads, one after the other, and no thread should have to search the entries
    /// of the others.
    latest: Vec<u32>,
    /// The number of entries that were compared.
    #[cfg(test)]
    looks: std::cell::Cell<usize>,
}

/// Stands for no entry.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Entry {
    /// The number of the entry that its thread has made before, or [`NONE`].
    before: u32,
    key: usize,
    value: Option<*mut u8>,
    drop: Drop,
    /// Whether the program may see the drop of the value.
    destructor: bool,
}

/// The function that drops the value at an address.
type Drop = unsafe fn(*mut u8);

impl Locals {
    /// The latest entry of the thread for which `holds` is true.
    fn latest(&self, thread: ThreadId, mut holds: impl FnMut(&Entry) -> bool) -> Option<usize> {
        let mut at = *self.latest.get(thread.index())?;
        while let Some(entry) = self.entries.get(at as usize) {
            #[cfg(test)]
            self.looks.set(self.looks.get() + 1);
            if holds(entry) {
                return Some(at as usize);
            }
            at = entry.before;
        }
        None
    }

    pub(crate) fn get(&self, thread: ThreadId, key: usize) -> Local {
        match self.latest(thread, |entry| entry.key == key) {
            None => Local::Missing,
            Some(at) => (self.entries[at].value).map_or(Local::Dropped, Local::Value),
        }
    }

    /// Whether no thread has any value.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps a value with the function that drops it, and whether that function calls a destructor.
    pub(crate) fn set(
        &mut self,
        thread: ThreadId,
        key: usize,
        value: *mut u8,
        (drop, destructor): (Drop, bool),
    ) {
        if self.latest.len() <= thread.index() {
            lengthen(&mut self.latest, thread.index() + 1, || NONE);
        }
        let latest = &mut self.latest[thread.index()];
        let before = std::mem::replace(latest, self.entries.len() as u32);
        self.entries.push(Entry {
            before,
            key,
            value: Some(value),
            drop,
            destructor,
        });
    }

    /// Takes the latest value of the thread that is still there, or the latest one with a
    /// destructor if there is such a value.
    pub(crate) fn next_to_drop(&mut self, thread: ThreadId) -> Option<(*mut u8, Drop)> {
        let is_there = |entry: &Entry| entry.value.is_some();
        let has_destructor = |entry: &Entry| is_there(entry) && entry.destructor;
        let at = self.latest(thread, has_destructor);
        let at = at.or_else(|| self.latest(thread, is_there))?;
        let entry = &mut self.entries[at];
        entry.value.take().map(|value| (value, entry.drop))
    }

    /// Forgets all values, at the end of an execution.
    pub(crate) fn reset(&mut self) {
        self.entries.clear();
        self.latest.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drops nothing.
    unsafe fn forget(_value: *mut u8) {}

    fn value(number: usize) -> *mut u8 {
        std::ptr::without_provenance_mut(number)
    }

    fn drops(locals: &mut Locals, thread: ThreadId) -> Vec<usize> {
        let next = || locals.next_to_drop(thread);
        let values = std::iter::from_fn(next).map(|(value, _)| value.addr());
        values.collect()
    }

    #[test]
    fn each_thread_drops_its_own_the_latest_first_and_those_with_destructors_before_the_others() {
        let mut locals = Locals::default();
        let [one, other, none] = [2, 0, 7].map(ThreadId);
        for (thread, key, destructor) in [
            (one, 1, true),
            (other, 1, false),
            (one, 2, false),
            (other, 2, true),
            (one, 3, true),
        ] {
            let value = value(10 * thread.index() + key);
            locals.set(thread, key, value, (forget, destructor));
        }
        assert_eq!(locals.get(one, 2), Local::Value(value(22)));
        assert_eq!(locals.get(other, 3), Local::Missing);
        assert_eq!(locals.get(none, 1), Local::Missing);
        assert_eq!(drops(&mut locals, one), [23, 21, 22]);
        assert_eq!(locals.get(one, 3), Local::Dropped);
        // A destructor has just made this value.
        locals.set(one, 4, value(24), (forget, true));
        assert_eq!(drops(&mut locals, one), [24]);
        assert_eq!(drops(&mut locals, none), []);
        assert_eq!(drops(&mut locals, other), [2, 1]);

        locals.reset();
        assert!(locals.is_empty());
        assert_eq!(locals.get(one, 3), Local::Missing);
    }

    #[test]
    fn no_thread_looks_at_what_others_have_made() {
        let mut locals = Locals::default();
        for thread in (1..=1000).map(ThreadId) {
            assert_eq!(locals.get(thread, 1), Local::Missing);
            locals.set(thread, 1, value(1), (forget, true));
            assert_eq!(locals.get(thread, 1), Local::Value(value(1)));
            assert_eq!(drops(&mut locals, thread), [1]);
        }
        let looks = locals.looks.get();
        assert!(looks <= 5 * 1000, "{looks}");
    }
}
