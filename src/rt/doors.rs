//! What may a shim ask of the runtime about memory?
//!
//! Whether plain memory may be used, and whether it must be freed; that what is older than the
//! execution is put back at its end; and what is in it.

use crate::rt::event::Site;
use crate::rt::exec::{accesses, context, frees, memory, restore};
use crate::rt::heap::contents;
use crate::rt::shim::{Memory, Target};
use crate::rt::statics;

/// An access to plain memory that is under way.
#[derive(Debug)]
pub(crate) struct Accessing {
    address: usize,
    size: usize,
    site: Site,
    /// Whether the memory may be used up to the end of this. If not, then up to the last event
    /// before that, and where the access [goes on](Accessing::resume).
    lasts: bool,
}

impl Accessing {
    /// The access of a pointer, or of a closure that only reads. A guard that has the pointer as a
    /// field makes its last event, the unlock, and drops it then: it has not used it in between. So
    /// it is with a closure that looks at a cell and wakes the thread that overwrites it: reads are
    /// not seen one by one, and the last event of the closure is taken to follow them all.
    pub(crate) fn of_pointer(mut self) -> Accessing {
        self.lasts = false;
        self
    }

    /// The memory is used now, too.
    pub(crate) fn resume(&self) {
        accesses::continue_access((self.address, self.size), self.site);
    }
}

impl Drop for Accessing {
    fn drop(&mut self) {
        accesses::end_access((self.address, self.size), self.site, self.lasts);
    }
}

/// Begins an access to plain memory; the test fails if it is not ordered with the others. `None`
/// where nothing is watched.
#[track_caller]
pub(crate) fn access(memory: Memory, write: bool) -> Option<Accessing> {
    let site = context::here();
    let (address, size) = (memory.start.addr(), memory.size);
    // What has no bytes cannot be written.
    let begun = size > 0 && accesses::begin_access(memory, write, site);
    begun.then(|| Accessing {
        address,
        size,
        site,
        lasts: true,
    })
}

/// [`access`] to the memory of a shim of so many bytes, which must be ordered with its operations.
#[track_caller]
pub(crate) fn access_shim(target: Target, size: usize, write: bool) -> Option<Accessing> {
    let site = context::here();
    let begun = accesses::begin_access_of_shim(target, size, write, site);
    begun.then(|| Accessing {
        address: target.address,
        size,
        site,
        lasts: true,
    })
}

/// A value that must be gone when the execution ends.
#[derive(Debug)]
pub(crate) struct Tracked(u64);

impl Drop for Tracked {
    fn drop(&mut self) {
        if let Some(made) = context::untrack(self.0)
            && !std::thread::panicking()
        {
            panic!("a `Track` is dropped, or taken out, a second time: the one that was {made}");
        }
    }
}

/// Tracks a value that is made here; `None` where no model runs.
#[track_caller]
pub(crate) fn track() -> Option<Tracked> {
    context::track(context::here()).map(Tracked)
}

/// What is at this address, in so many bytes, has a name.
pub(crate) fn name_object(address: usize, size: usize, name: &str) {
    context::name_object(address, size, name);
}

/// The value whose references are counted at this address was dropped or moved out, while there are
/// weak references to it.
pub(crate) fn value_is_gone(address: usize) {
    frees::value_is_gone(address);
}

/// A reference to what an `Arc` counts has been made of a pointer.
#[inline]
pub(crate) fn note_raw_reference() {
    frees::note_raw_reference();
}

/// The block that holds this address is the model's, although no shim in it has been used yet.
pub(crate) fn note_block(address: usize) {
    context::note_block(address);
}

/// The block that holds this address must be freed before the execution ends, whatever
/// `Builder::check_leaks` says.
pub(crate) fn must_free(address: usize) {
    context::must_free(address);
}

/// The block that holds this address may stay allocated when the execution ends.
pub(crate) fn may_leak(address: usize) {
    context::may_leak(address);
}

/// Says that std counts the references to the block that holds this address, which is one of our
/// own: nobody uses it without one.
pub(crate) fn std_counts(address: usize) {
    context::std_counts(address);
}

/// Keeps the bytes of a shim that is older than the execution, to put them back at its end.
/// `object` is the address it is known by.
#[inline]
#[track_caller]
pub(crate) fn keep_pristine(object: usize, memory: Memory) {
    restore::keep_pristine(object, memory);
}

/// Calls `undo` with `start` when the execution has ended, if `object` is older than it. What is in
/// the `size` bytes there belongs to the execution from now on.
pub(crate) fn undo_at_end(object: usize, start: *mut u8, size: usize, undo: unsafe fn(*mut u8)) {
    restore::undo_at_end(object, start, size, undo);
}

/// Notes that the contents of this memory were made while no model ran, even if it is in a static.
pub(crate) fn note_written(start: *const u8, size: usize) {
    statics::note_written(start, size);
}

/// The bytes of `data`, as one word that is another one if they are.
pub(crate) fn bytes<T: ?Sized>(data: &T) -> u64 {
    // SAFETY: a reference leads to memory that can be read.
    unsafe { contents::of_bytes((&raw const *data).expose_provenance(), size_of_val(data)) }
}

/// The bytes of `data` and of all that it leads to, as one word that is another one if something is
/// different; `None` if that is not known, or the thread that runs here is not in a loop with a
/// hint.
pub(crate) fn contents<T: ?Sized>(data: &T) -> Option<u64> {
    // SAFETY: a reference leads to memory that can be read.
    unsafe { memory::reached_contents((&raw const *data).expose_provenance(), size_of_val(data)) }
}
