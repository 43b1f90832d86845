//! Which services of the runtime concern memory?
//!
//! A shim asks here whether plain memory may be accessed, and whether it must be freed. The runtime
//! also restores at the end of an execution the state that is older, and reads the contents of
//! memory.

use crate::rt::event::Site;
use crate::rt::exec::{accesses, context, frees, glue, held, memory, restore};
use crate::rt::heap::contents;
use crate::rt::rare::rarely;
use crate::rt::shim::{Memory, Target};
use crate::rt::statics;

/// An access to plain memory that has begun.
#[derive(Debug)]
pub(crate) struct Accessing {
    address: usize,
    size: usize,
    site: Site,
    /// Whether the access lasts until this value is dropped. Otherwise it lasts until the last
    /// event before the drop, and continues at [`Accessing::resume`].
    lasts: bool,
    /// Whether the execution is run to be reported.
    is_told: bool,
}

impl Accessing {
    /// The access of a pointer, or of a closure that only reads. A guard that has the pointer as a
    /// field makes its last event, the unlock, and then drops the pointer, without an access in
    /// between. The same holds for a closure that reads a cell and wakes the thread that overwrites
    /// the cell: the runtime does not see single reads, and takes the last event of the closure to
    /// follow them all.
    pub(crate) fn of_pointer(mut self) -> Accessing {
        self.lasts = false;
        self
    }

    /// Notes what is in the cell of a `T` now.
    #[cold]
    fn note<T: ?Sized>(&self, when: When) {
        // SAFETY: the access has begun at memory of this size, which belongs to a cell that is
        // borrowed meanwhile.
        let datum = unsafe { held::in_cell::<T>(self.address, self.size) };
        held::note_in_cell(self.address, when, datum);
    }

    /// The access continues at this point.
    pub(crate) fn resume(&self) {
        accesses::continue_access((self.address, self.size), self.site);
    }
}

impl Drop for Accessing {
    fn drop(&mut self) {
        accesses::end_access((self.address, self.size), self.site, self.lasts);
    }
}

/// Notes that this access to a `T` finds this data at its begin, if the execution is run to be
/// reported and values of the type are shown.
#[inline]
pub(crate) fn note_found<T: ?Sized>(access: Option<&Accessing>) {
    if let Some(access) = access.filter(|access| rarely!(access.is_told)) {
        access.note::<T>(When::Found);
    }
}

/// [`note_found`] for the data behind an access.
#[inline]
pub(crate) fn note_left<T: ?Sized>(access: Option<&Accessing>) {
    if let Some(access) = access.filter(|access| rarely!(access.is_told)) {
        access.note::<T>(When::Left);
    }
}

/// Begins an access to plain memory; the test fails if the access races with another one. `None` if
/// no accesses are checked.
#[track_caller]
pub(crate) fn access(memory: Memory, write: bool) -> Option<Accessing> {
    let site = context::here();
    let (address, size) = (memory.start.addr(), memory.size);
    // Memory of size 0 cannot be written.
    let begun = (size > 0).then(|| accesses::begin_access(memory, write, site));
    begun.flatten().map(|is_told| Accessing {
        address,
        size,
        site,
        lasts: true,
        is_told,
    })
}

/// [`access`] to the memory of a shim of this size, which must be ordered with the operations of
/// the shim.
#[track_caller]
pub(crate) fn access_shim(target: Target, size: usize, write: bool) -> Option<Accessing> {
    let site = context::here();
    let begun = accesses::begin_access_of_shim(target, size, write, site);
    begun.then(|| Accessing {
        address: target.address,
        size,
        site,
        lasts: true,
        is_told: false,
    })
}

/// A value that must be dropped before the execution ends.
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

/// Tracks a value that is made here; `None` outside of a model.
#[track_caller]
pub(crate) fn track() -> Option<Tracked> {
    context::track(context::here()).map(Tracked)
}

/// Gives the `size` bytes at this address a name.
pub(crate) fn name_object(address: usize, size: usize, name: &str) {
    context::name_object(address, size, name);
}

/// Reports that a value was dropped or moved out, while weak references to it exist. The count of
/// its references is at this address.
pub(crate) fn value_is_gone(address: usize) {
    frees::value_is_gone(address);
}

/// Notes that a pointer was turned into a reference to the value of an `Arc`.
#[inline]
pub(crate) fn note_raw_reference() {
    frees::note_raw_reference();
}

/// Notes that the block that contains this address belongs to the model, although no shim in the
/// block has been used yet.
pub(crate) fn note_block(address: usize) {
    context::note_block(address);
}

/// Declares that the block that contains this address must be freed before the execution ends,
/// whatever `Builder::check_leaks` says.
pub(crate) fn must_free(address: usize) {
    context::must_free(address);
}

/// Declares that the block that contains this address may stay allocated when the execution ends.
pub(crate) fn may_leak(address: usize) {
    context::may_leak(address);
}

/// Declares that std counts the references to the block that contains this address, a block of this
/// crate: all its uses hold a reference.
pub(crate) fn std_counts(address: usize) {
    context::std_counts(address);
}

/// Keeps the bytes of a shim that is older than the execution, to restore them at its end. `object`
/// is the address that identifies the shim.
#[inline]
#[track_caller]
pub(crate) fn keep_pristine(object: usize, memory: Memory) {
    restore::keep_pristine(object, memory);
}

/// Calls `undo` with `start` when the execution has ended, if `object` is older than the execution.
/// The contents of the `size` bytes at `start` belong to the execution from now on.
pub(crate) fn undo_at_end(object: usize, start: *mut u8, size: usize, undo: unsafe fn(*mut u8)) {
    restore::undo_at_end(object, start, size, undo);
}

/// Notes that the contents of this memory were made outside of a model, even if the memory is in a
/// static.
pub(crate) fn note_written(start: *const u8, size: usize) {
    statics::note_written(start, size);
}

/// Notes that the last event of the thread that runs has found or left this data.
pub(crate) use crate::rt::event::held::Datum;
use crate::rt::event::held::When;
/// Whether data behind locks is to be noted.
pub(crate) use crate::rt::exec::held::are_asked_for as asks_for_data;
pub(crate) use crate::rt::exec::held::note as note_data;
/// The data behind a lock, if the execution is run to be reported.
pub(crate) use crate::rt::exec::held::shown as shown_data;

/// A hash of the bytes of `data`: one word that differs if they differ.
pub(crate) fn bytes<T: ?Sized>(data: &T) -> u64 {
    // SAFETY: the memory of a reference can be read.
    unsafe { contents::of_bytes((&raw const *data).expose_provenance(), size_of_val(data)) }
}

/// A hash of the bytes of `data` and of all memory reachable from it: one word that differs if some
/// byte differs. `None` if the hash is not known, or the running thread is not in a loop with a
/// hint.
pub(crate) fn contents<T: ?Sized>(data: &T) -> Option<u64> {
    // SAFETY: the memory of a reference can be read.
    unsafe { memory::reached_contents((&raw const *data).expose_provenance(), size_of_val(data)) }
}

/// Whether each thread that may drop a value last is explored, for values that are put into an
/// `Arc` at this place and have drop glue.
#[inline]
pub(crate) fn is_glue_loud(site: Site) -> bool {
    glue::is_loud(site)
}

/// Begins the drop glue of a value that was put into an `Arc` at this place, while the glue is
/// taken for one that only frees memory. It lasts until the result is dropped. The counts of the
/// references are at this address.
pub(crate) fn begin_glue(counts: usize, site: Site) -> glue::Running {
    glue::begin(counts, site)
}

/// Notes that the program sees which thread gives up a value from this place.
pub(crate) fn note_glue_seen(site: Site) {
    glue::note_seen(site);
}
