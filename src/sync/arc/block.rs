//! Where are the counts of an `Arc`?
//!
//! The counts are in one heap block with the value, directly in front of it, so that they are found
//! from a pointer to the value, whatever its type, sized or not. The block stores its own layout,
//! because the last weak reference frees the block when there is no value left that could tell its
//! size.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::mem;
use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize, fence};

use crate::alloc::track_block;
use crate::rt::{self, Answer, OpKind, Outcome, Target};

/// The part of a block in front of the value.
pub(super) struct Header {
    pub(super) strong: AtomicUsize,
    /// The number of weak references, and one more until the value has been dropped.
    pub(super) weak: AtomicUsize,
    /// Whether that additional reference is still counted in `weak`.
    whole: AtomicBool,
    /// Whether the value has drop glue.
    has_glue: bool,
    /// Whether the program can observe which thread drops the value.
    observed: bool,
    /// The place at which the block was allocated. The drop of a reference has no place of its own.
    site: &'static Location<'static>,
    block: Layout,
}

const _: () = assert!(size_of::<Header>() == rt::HEADER);

/// The layout of a block for a value of this layout, and the offset of the value in it.
fn block_for(value: Layout) -> (Layout, usize) {
    let align = value.align().max(align_of::<Header>());
    let offset = offset_of_value(align);
    let size = offset.checked_add(value.size());
    match size.map(|size| Layout::from_size_align(size, align)) {
        Some(Ok(block)) => (block, offset),
        _ => panic!("capacity overflow"),
    }
}

/// The offset of the value in a block with this alignment; the value's alignment is not larger. The
/// offset is the next multiple of the alignment that leaves room for the header. The header ends
/// where the value begins; its size is a multiple of its own alignment, so the header is aligned as
/// well.
fn offset_of_value(align: usize) -> usize {
    // An alignment is a power of two; `next_multiple_of` does not make use of that.
    (size_of::<Header>() + align - 1) & !(align - 1)
}

/// Allocates a block with room for a value of this layout, with `strong` references and one weak
/// reference. Returns the place of the value, which is zeroed if `zeroed`.
#[track_caller]
pub(super) fn allocate(value: Layout, strong: usize, has_glue: bool, zeroed: bool) -> NonNull<u8> {
    let (block, offset) = block_for(value);
    let site = Location::caller();
    // SAFETY: the block holds a header, so its size is not zero.
    let start = unsafe {
        if zeroed {
            alloc_zeroed(block)
        } else {
            alloc(block)
        }
    };
    if rt::rarely!(start.is_null()) {
        handle_alloc_error(block);
    }
    // The model has to know a block, too, that is forgotten before any operation has counted its
    // references.
    rt::note_block(start.addr());
    track_block(start.addr());
    // SAFETY: the offset is at least the size of a header and at most the size of the block, and
    // the comment on `offset_of_value` shows that the header is aligned.
    unsafe {
        let value = start.add(offset);
        value
            .sub(size_of::<Header>())
            .cast::<Header>()
            .write(Header {
                strong: AtomicUsize::new(strong),
                weak: AtomicUsize::new(1),
                whole: AtomicBool::new(true),
                has_glue,
                observed: has_glue && rt::is_glue_loud(site),
                site,
                block,
            });
        NonNull::new_unchecked(value)
    }
}

/// Moves the value at `from` into a new block with one reference. The caller must free the old
/// memory of the value, without dropping the value.
///
/// # Safety
///
/// `from` is valid for reads, and its value is not used any more.
#[track_caller]
pub(super) unsafe fn adopt<T: ?Sized>(from: *mut T) -> NonNull<T> {
    // SAFETY: by the caller's promise the pointer is valid for reads.
    let layout = unsafe { Layout::for_value(&*from) };
    let to = allocate(layout, 1, mem::needs_drop::<T>(), false);
    // SAFETY: the block has room for a value of this layout; the block is new, so the two do not
    // overlap.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), to.as_ptr(), layout.size()) };
    let mut pointer = from;
    // SAFETY: a pointer begins with its address, whatever metadata follows. (The language has no
    // stable way to join an address with its provenance and metadata; the assertion below would
    // notice another layout.)
    unsafe { (&raw mut pointer).cast::<*mut u8>().write(to.as_ptr()) };
    assert!(
        pointer.cast::<u8>() == to.as_ptr(),
        "dpor bug: a wide pointer does not begin with its address"
    );
    // SAFETY: the address is that of the block, which is not null.
    unsafe { NonNull::new_unchecked(pointer) }
}

/// Returns the header of a value's block.
///
/// # Safety
///
/// `value` points to the value of a block that was allocated by `allocate`, and the block is not
/// freed during `'a`.
pub(super) unsafe fn header<'a, T: ?Sized>(value: NonNull<T>) -> &'a Header {
    // SAFETY: the header is in front of the value in the same block, and the pointer has provenance
    // over the whole block: every pointer to a value is derived from the block's allocation.
    unsafe {
        let value = value.as_ptr().cast::<u8>();
        &*value.sub(size_of::<Header>()).cast::<Header>()
    }
}

impl Header {
    /// Announces an operation on the counts.
    #[cfg_attr(not(debug_assertions), inline)]
    #[track_caller]
    pub(super) fn perform(&self, kind: OpKind) -> Answer {
        rt::perform(self.target(), kind)
    }

    /// Announces a new reference that is made from an existing one.
    ///
    /// # Panics
    ///
    /// Panics if there is no reference: the value is dropped, or about to be dropped.
    #[cfg_attr(not(debug_assertions), inline)]
    #[track_caller]
    pub(super) fn announce_another(&self) {
        let (address, memory) = (self.address(), self.references());
        expect_some(rt::retain(address, self.observed, memory));
    }

    /// [`Header::announce_another`] for a new reference that is made from a pointer.
    #[track_caller]
    pub(super) fn announce_another_raw(&self) {
        expect_some(self.perform(OpKind::RetainRaw));
    }

    /// The place at which the block was allocated, for the drop of a reference, which has no place
    /// of its own.
    #[cfg_attr(not(debug_assertions), inline)]
    pub(super) fn site(&self) -> &'static Location<'static> {
        self.site
    }

    /// Whether the value has drop glue that is taken for quiet: it only frees memory.
    #[cfg_attr(not(debug_assertions), inline)]
    pub(super) fn has_quiet_glue(&self) -> bool {
        self.has_glue && !self.observed
    }

    /// The program sees whether a reference was the last one, or gets the value, which has drop
    /// glue.
    pub(super) fn note_seen(&self) {
        if self.has_quiet_glue() {
            rt::note_glue_seen(self.site);
        }
    }

    /// Announces the drop of a reference at this place.
    #[cfg_attr(not(debug_assertions), inline)]
    pub(super) fn announce_end(&self, site: &'static Location<'static>) {
        let (address, memory) = (self.address(), self.references());
        rt::release(address, self.observed, memory, site);
    }

    /// [`Header::announce_end`] for a weak reference.
    pub(super) fn announce_weak_end(&self) {
        rt::perform_at(self.target(), OpKind::ReleaseWeak, self.site);
    }

    #[cfg_attr(not(debug_assertions), inline)]
    fn target(&self) -> Target {
        Target::count(self.address(), self.observed, self.references())
    }

    /// The address of the counts.
    #[cfg_attr(not(debug_assertions), inline)]
    fn address(&self) -> usize {
        (&raw const self.strong).addr()
    }

    /// The number of references, in the form that a [`Target`] has.
    #[cfg_attr(not(debug_assertions), inline)]
    fn references(&self) -> u64 {
        self.strong.load(Relaxed) as u64 % rt::WEAK
            + (self.weak_references() as u64 % rt::WEAK) * rt::WEAK
    }

    /// The number of weak references.
    #[cfg_attr(not(debug_assertions), inline)]
    pub(super) fn weak_references(&self) -> usize {
        match self.weak.load(Acquire) {
            // The count is locked, which happens only while there is no weak reference.
            usize::MAX => {
                rt::cold_path();
                0
            }
            weak => weak.saturating_sub(self.whole.load(Relaxed) as usize),
        }
    }

    /// Adds a reference for a caller that has the right to add one.
    #[cfg_attr(not(debug_assertions), inline)]
    pub(super) fn retain(&self) {
        bounded(self.strong.fetch_add(1, Relaxed));
    }

    pub(super) fn retain_weak(&self) {
        bounded(self.weak.fetch_add(1, Relaxed));
    }

    /// Adds a reference unless there is none left. Returns whether it did.
    pub(super) fn upgrade(&self) -> bool {
        let more = |count: usize| {
            (count > 0).then(|| {
                bounded(count);
                count + 1
            })
        };
        self.strong.fetch_update(Acquire, Relaxed, more).is_ok()
    }

    /// Takes the only reference from the count, so that the caller has the value. Returns false if
    /// there are other references.
    pub(super) fn take_unique(&self) -> bool {
        let taken = self.strong.compare_exchange(1, 0, Relaxed, Relaxed);
        if taken.is_ok() {
            fence(Acquire);
        }
        taken.is_ok()
    }

    /// Whether there is one reference, and no weak one. The caller has a `&mut` to one reference.
    pub(super) fn is_unique(&self) -> bool {
        // While the number of weak references is locked, no thread can make a weak reference from
        // another reference, because `downgrade` waits. So the two numbers belong to one moment.
        let locked = self.weak.compare_exchange(1, usize::MAX, Acquire, Relaxed);
        if locked.is_err() {
            return false;
        }
        let unique = self.strong.load(Acquire) == 1;
        self.weak.store(1, Release);
        unique
    }

    /// Adds a weak reference, made from a reference that is not weak.
    pub(super) fn downgrade(&self) {
        let more = |count: usize| {
            (count != usize::MAX).then(|| {
                bounded(count);
                count + 1
            })
        };
        while self.weak.fetch_update(Acquire, Relaxed, more).is_err() {
            std::hint::spin_loop();
        }
    }

    /// Drops a reference. Returns true if it was the last one; the caller then owns the value.
    #[cfg_attr(not(debug_assertions), inline)]
    pub(super) fn release(&self) -> bool {
        if rt::mostly!(self.strong.fetch_sub(1, Release) != 1) {
            return false;
        }
        fence(Acquire);
        true
    }
}

/// Drops a weak reference.
///
/// # Safety
///
/// The caller owns a weak reference to the block of `value`, and does not use it again.
pub(super) unsafe fn release_weak<T: ?Sized>(value: NonNull<T>) {
    // SAFETY: the caller's reference keeps the block until the code below takes it from the count.
    let header = unsafe { header(value) };
    // If the caller's reference is the only one, no other can be made: a reference that is not weak
    // would have a weak one counted here. Then the count need not change, which saves an
    // instruction with a lock prefix.
    if header.weak.load(Acquire) != 1 {
        if header.weak.fetch_sub(1, Release) != 1 {
            return;
        }
        fence(Acquire);
    }
    let block = header.block;
    // SAFETY: that was the last reference of either kind, the block was allocated with this layout,
    // and the block ends with the value.
    unsafe {
        let value = value.as_ptr().cast::<u8>();
        let start = value.sub(offset_of_value(block.align()));
        dealloc(start, block);
    }
}

/// Drops the weak reference that stands for the value, after the value is gone.
///
/// # Safety
///
/// The value of the block was dropped or moved out, and this function is called once for the block.
pub(super) unsafe fn value_is_gone<T: ?Sized>(value: NonNull<T>) {
    // SAFETY: the weak reference that this call drops keeps the block.
    let header = unsafe { header(value) };
    header.whole.store(false, Relaxed);
    // If there are other weak references, another thread may free the block later.
    if header.weak.load(Relaxed) > 1 {
        rt::value_is_gone(header.address());
    }
    // SAFETY: as above.
    unsafe { release_weak(value) };
}

/// Drops the value of a block without references, and then the weak reference that stands for the
/// value.
///
/// # Safety
///
/// The caller has released the last reference, and this function is called once for the block.
#[cfg_attr(not(debug_assertions), inline)]
pub(super) unsafe fn drop_value<T: ?Sized>(value: NonNull<T>) {
    struct Gone<T: ?Sized>(NonNull<T>);
    impl<T: ?Sized> Drop for Gone<T> {
        fn drop(&mut self) {
            // SAFETY: the value has been dropped, completely or up to a panic.
            unsafe { value_is_gone(self.0) };
        }
    }
    let _gone = Gone(value);
    // SAFETY: the weak reference that stands for the value keeps the block.
    let header = unsafe { header(value) };
    // Glue that panics ends, too.
    let is_quiet = mem::needs_drop::<T>() && header.has_quiet_glue();
    let _glue = is_quiet.then(|| rt::begin_glue(header.address(), header.site));
    // SAFETY: no other code can reach the value: there is no reference, and none can be made again.
    unsafe { ptr::drop_in_place(value.as_ptr()) };
}

/// Panics if the model's answer to a new reference says that there was no reference before.
#[cfg_attr(not(debug_assertions), inline)]
#[track_caller]
fn expect_some(answer: Answer) {
    let found = match answer {
        Answer::Done(Outcome::Value(found)) => found,
        Answer::Done(Outcome::Failure(_)) => {
            rt::cold_path();
            0
        }
        _ => {
            rt::cold_path();
            return;
        }
    };
    assert!(
        found > 0,
        "use after free: a reference was added to an `Arc` whose last reference had been dropped"
    );
}

/// Ends the process if a program has leaked so many references that their number no longer fits: to
/// continue would free the value too early. Inside a model such a number means that references were
/// dropped too often: the execution has failed and runs to its end, and its blocks are kept there.
#[cfg_attr(not(debug_assertions), inline)]
fn bounded(count: usize) {
    #[cold]
    fn too_many() {
        if rt::current().is_none() {
            std::process::abort();
        }
    }
    if count > isize::MAX as usize {
        too_many();
    }
}
