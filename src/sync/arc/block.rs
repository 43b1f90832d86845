//! Where do the counts of an `Arc` live?
//!
//! In one heap block with the value, directly in front of it, so that they are found from a pointer
//! to the value of whatever type, sized or not. How large the block is stands in it, because the
//! last weak reference frees it when there is no value left to ask.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::mem;
use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize, fence};

use crate::alloc::track_block;
use crate::rt::{self, Answer, OpKind, Outcome, Target};

/// What stands in front of the value.
pub(super) struct Header {
    pub(super) strong: AtomicUsize,
    /// The weak references, and one more as long as the value is there or being dropped.
    pub(super) weak: AtomicUsize,
    /// Whether that one more is still in `weak`.
    whole: AtomicBool,
    /// Whether the program can see the value being dropped.
    observed: bool,
    /// Where the block was made. A reference that is dropped has no place of its own.
    site: &'static Location<'static>,
    block: Layout,
}

const _: () = assert!(size_of::<Header>() == rt::HEADER);

/// The block for a value of this layout, and where in it the value is.
fn block_for(value: Layout) -> (Layout, usize) {
    let align = value.align().max(align_of::<Header>());
    let offset = offset_of_value(align);
    let size = offset.checked_add(value.size());
    match size.map(|size| Layout::from_size_align(size, align)) {
        Some(Ok(block)) => (block, offset),
        _ => panic!("capacity overflow"),
    }
}

/// Where in a block with this alignment the value is, which has no larger one: the next multiple of
/// it that leaves room for the header. The header ends where the value begins; its size is a
/// multiple of its own alignment, so it is aligned as well.
fn offset_of_value(align: usize) -> usize {
    // An alignment is a power of two, which `next_multiple_of` does not know.
    (size_of::<Header>() + align - 1) & !(align - 1)
}

/// A block with room for a value of this layout, with so many references to it and one weak one.
/// Gives the place of the value, which is zeroed if `zeroed`.
#[track_caller]
pub(super) fn allocate(value: Layout, strong: usize, observed: bool, zeroed: bool) -> NonNull<u8> {
    let (block, offset) = block_for(value);
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
    // Also one that is forgotten before anybody has counted its references.
    rt::note_block(start.addr());
    track_block(start.addr());
    // SAFETY: the offset is at least the size of a header and at most that of the block, and
    // `offset_of_value` says why the header is aligned.
    unsafe {
        let value = start.add(offset);
        value
            .sub(size_of::<Header>())
            .cast::<Header>()
            .write(Header {
                strong: AtomicUsize::new(strong),
                weak: AtomicUsize::new(1),
                whole: AtomicBool::new(true),
                observed,
                site: Location::caller(),
                block,
            });
        NonNull::new_unchecked(value)
    }
}

/// Moves the value at `from` into a block of its own, with one reference. The memory that it was in
/// is the caller's to free, and nobody's to drop.
///
/// # Safety
///
/// `from` is valid for reads and its value is not used any more.
#[track_caller]
pub(super) unsafe fn adopt<T: ?Sized>(from: *mut T) -> NonNull<T> {
    // SAFETY: the pointer is valid for reads, says the caller.
    let layout = unsafe { Layout::for_value(&*from) };
    let to = allocate(layout, 1, mem::needs_drop::<T>(), false);
    // SAFETY: the block has room for a value of this layout; it is new, so they do not overlap.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), to.as_ptr(), layout.size()) };
    let mut pointer = from;
    // SAFETY: a pointer begins with its address, whatever metadata follows it. (The language has no
    // stable way to put an address with its provenance and metadata together; the assertion below
    // would notice another layout.)
    unsafe { (&raw mut pointer).cast::<*mut u8>().write(to.as_ptr()) };
    assert!(
        pointer.cast::<u8>() == to.as_ptr(),
        "dpor bug: a wide pointer does not begin with its address"
    );
    // SAFETY: the address is that of the block, which is not null.
    unsafe { NonNull::new_unchecked(pointer) }
}

/// The header of a value's block.
///
/// # Safety
///
/// `value` points to the value of a block that was made here and that is not freed during `'a`.
pub(super) unsafe fn header<'a, T: ?Sized>(value: NonNull<T>) -> &'a Header {
    // SAFETY: the header is in front of the value in the same block, over which the pointer has
    // provenance: every pointer to a value comes from the block's allocation.
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

    /// Announces a reference that is added by who has one.
    ///
    /// # Panics
    ///
    /// If there is none: the value is gone, or about to be.
    #[cfg_attr(not(debug_assertions), inline)]
    #[track_caller]
    pub(super) fn announce_another(&self) {
        let (address, memory) = (self.address(), self.references());
        expect_some(rt::retain(address, self.observed, memory));
    }

    /// [`Header::announce_another`] for a reference that is added by who has a pointer.
    #[track_caller]
    pub(super) fn announce_another_raw(&self) {
        expect_some(self.perform(OpKind::RetainRaw));
    }

    /// Where the block was made, for the end of a reference that has no place of its own.
    #[cfg_attr(not(debug_assertions), inline)]
    pub(super) fn site(&self) -> &'static Location<'static> {
        self.site
    }

    /// Announces the end of a reference at this place.
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

    /// Where the counts are.
    #[cfg_attr(not(debug_assertions), inline)]
    fn address(&self) -> usize {
        (&raw const self.strong).addr()
    }

    /// How many references there are, as a [`Target`] has it.
    #[cfg_attr(not(debug_assertions), inline)]
    fn references(&self) -> u64 {
        self.strong.load(Relaxed) as u64 % rt::WEAK
            + (self.weak_references() as u64 % rt::WEAK) * rt::WEAK
    }

    /// How many weak references there are.
    #[cfg_attr(not(debug_assertions), inline)]
    pub(super) fn weak_references(&self) -> usize {
        match self.weak.load(Acquire) {
            // Locked, which happens only while there is none.
            usize::MAX => {
                rt::cold_path();
                0
            }
            weak => weak.saturating_sub(self.whole.load(Relaxed) as usize),
        }
    }

    /// Adds a reference that somebody has the right to add.
    #[cfg_attr(not(debug_assertions), inline)]
    pub(super) fn retain(&self) {
        bounded(self.strong.fetch_add(1, Relaxed));
    }

    pub(super) fn retain_weak(&self) {
        bounded(self.weak.fetch_add(1, Relaxed));
    }

    /// Adds a reference unless there is none left.
    pub(super) fn upgrade(&self) -> bool {
        let more = |count: usize| {
            (count > 0).then(|| {
                bounded(count);
                count + 1
            })
        };
        self.strong.fetch_update(Acquire, Relaxed, more).is_ok()
    }

    /// Takes the value if there is only one reference to it.
    pub(super) fn take_unique(&self) -> bool {
        let taken = self.strong.compare_exchange(1, 0, Relaxed, Relaxed);
        if taken.is_ok() {
            fence(Acquire);
        }
        taken.is_ok()
    }

    /// Whether there is one reference, and no weak one. Whoever asks has a `&mut` to one.
    pub(super) fn is_unique(&self) -> bool {
        // While the number of weak references is locked, nobody can make one from the other
        // references, so that the two numbers belong to one moment; `downgrade` waits.
        let locked = self.weak.compare_exchange(1, usize::MAX, Acquire, Relaxed);
        if locked.is_err() {
            return false;
        }
        let unique = self.strong.load(Acquire) == 1;
        self.weak.store(1, Release);
        unique
    }

    /// Adds a weak reference, from one that is not.
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

    /// Drops a reference; true if it was the last one, whose owner then has the value.
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
/// The caller owns one to the block of `value`, and gives it up.
pub(super) unsafe fn release_weak<T: ?Sized>(value: NonNull<T>) {
    // SAFETY: the caller's reference keeps the block until the next line has counted it.
    let header = unsafe { header(value) };
    // If the caller's is the only one, no other can come: a reference that is not weak would have
    // one of its own here. Then nothing has to be counted, which takes a lock prefix.
    if header.weak.load(Acquire) != 1 {
        if header.weak.fetch_sub(1, Release) != 1 {
            return;
        }
        fence(Acquire);
    }
    let block = header.block;
    // SAFETY: that was the last reference of either kind, the block was allocated with this layout,
    // and it ends with the value.
    unsafe {
        let value = value.as_ptr().cast::<u8>();
        let start = value.sub(offset_of_value(block.align()));
        dealloc(start, block);
    }
}

/// Gives up the weak reference that stands for the value, when it is gone.
///
/// # Safety
///
/// The value of the block was dropped or moved out, and this is done once.
pub(super) unsafe fn value_is_gone<T: ?Sized>(value: NonNull<T>) {
    // SAFETY: the reference that this gives up keeps the block.
    let header = unsafe { header(value) };
    header.whole.store(false, Relaxed);
    // If there are others, somebody else frees the block.
    if header.weak.load(Relaxed) > 1 {
        rt::value_is_gone(header.address());
    }
    // SAFETY: as above.
    unsafe { release_weak(value) };
}

/// Drops the value of a block without any reference left, and then what stood for it.
///
/// # Safety
///
/// The caller has released the last reference, and this is done once.
#[cfg_attr(not(debug_assertions), inline)]
pub(super) unsafe fn drop_value<T: ?Sized>(value: NonNull<T>) {
    struct Gone<T: ?Sized>(NonNull<T>);
    impl<T: ?Sized> Drop for Gone<T> {
        fn drop(&mut self) {
            // SAFETY: the value has been dropped, if not to the end then up to a panic.
            unsafe { value_is_gone(self.0) };
        }
    }
    let _gone = Gone(value);
    // SAFETY: nobody else can reach the value: there is no reference, and none can come back.
    unsafe { ptr::drop_in_place(value.as_ptr()) };
}

/// Panics if the answer to a reference that is added says that there was none before.
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

/// Ends the process when a program has leaked so many references that their number no longer fits:
/// going on would free the value too early. In a model such a number is of references that were
/// given up too often: the execution has failed and goes on to its end, where its blocks are kept.
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
