//! Where are a thread's closure and its result stored?
//!
//! In one block, a [`Job`], which the thread and its handle share. The result belongs to the thread
//! until the thread has stored it, and then to the code that takes it, on any OS thread; so the
//! block needs no lock. [`room`] says where the memory of the block comes from.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::mem::{ManuallyDrop, needs_drop};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::Result;
use super::room;
use super::scoped::{Member, Members};
use crate::rt::{self, Fate, ThreadMain};

/// The place of the closure's result, or of the payload of its panic.
struct Packet<T> {
    /// Belongs to the thread until `left` is set, and then to the code that takes the result.
    result: UnsafeCell<Option<Result<T>>>,
    left: AtomicBool,
    /// The scope to tell of a panic that is stored here and that no join has taken.
    scope: Option<Arc<Members>>,
    /// The number of shares. The drop of the last share drops the result, which the program may
    /// observe, so the number is a reference count like any other.
    shares: AtomicUsize,
    /// The place of the spawn, if the thread is modelled and the drop of its result can be
    /// observed.
    counted: Option<&'static Location<'static>>,
}

/// A thread's closure and its packet, in one block.
struct Job<F, T> {
    /// The closure, until the thread begins or is given up. Belongs to the thread.
    work: UnsafeCell<Option<F>>,
    /// The value that the thread drops last.
    member: UnsafeCell<Option<Member>>,
    modelled: bool,
    /// Whether one of the two owners has dropped its share.
    one_is_gone: AtomicBool,
    packet: Packet<T>,
}

/// One of the two owners of a [`Job`]: the thread or its handle.
struct Owner<F, T>(NonNull<Job<F, T>>);

impl<F, T> Owner<F, T> {
    /// A block for a job. The block is tracked by the model if the program `is_to_see` a drop in
    /// it.
    #[inline(always)]
    fn block(is_to_see: bool) -> NonNull<Job<F, T>> {
        if is_to_see {
            return NonNull::from(Box::leak(Box::<Job<F, T>>::new_uninit())).cast();
        }
        room::take(Layout::new::<Job<F, T>>()).cast()
    }
}

/// The thread's share of its job. Its drop gives the share up, even by a panic, unless it
/// `is_kept`.
struct Theirs<F, T> {
    is_kept: bool,
    owner: ManuallyDrop<Owner<F, T>>,
    /// Dropped last, after every value that could use the borrowed data of the scope.
    member: Option<Member>,
}

impl<F, T> Theirs<F, T> {
    /// # Safety
    ///
    /// Only the thread may call this, and with `is_kept` false only once.
    #[inline(always)]
    unsafe fn of(job: NonNull<Job<F, T>>, is_kept: bool) -> Theirs<F, T> {
        let mut theirs = Theirs {
            is_kept,
            owner: ManuallyDrop::new(Owner(job)),
            member: None,
        };
        if rt::mostly!(!is_kept) {
            // SAFETY: no other code uses this field.
            theirs.member = unsafe { (*theirs.owner.member.get()).take() };
        }
        theirs
    }
}

impl<F, T> Drop for Theirs<F, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if rt::mostly!(!self.is_kept) {
            self.owner.packet.give_up();
            // SAFETY: the owner is not used again.
            unsafe { ManuallyDrop::drop(&mut self.owner) };
        }
    }
}

impl<F, T> Deref for Owner<F, T> {
    type Target = Job<F, T>;

    #[inline(always)]
    fn deref(&self) -> &Job<F, T> {
        // SAFETY: the job lives until its second owner is dropped, and there is no exclusive
        // reference to it before.
        unsafe { self.0.as_ref() }
    }
}

impl<F, T> Drop for Owner<F, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Mostly the thread's owner is dropped before the handle's, and the handle then needs only
        // a load.
        let gone = &self.one_is_gone;
        if gone.load(Acquire) || gone.swap(true, AcqRel) {
            // SAFETY: this is the last owner.
            unsafe { drop_job(self.0) };
        }
    }
}

/// Drops a job, and returns its block.
///
/// # Safety
///
/// The job has no owner any more, and is in a block of [`Owner::block`].
#[inline(never)]
unsafe fn drop_job<F, T>(job: NonNull<Job<F, T>>) {
    // SAFETY: by the caller's promise the job is not used any more. The test for a block of the
    // model is the same as where the block was made.
    unsafe {
        if needs_drop::<T>() && job.as_ref().packet.counted.is_some() {
            drop(Box::from_raw(job.as_ptr()));
            return;
        }
        // The thread has taken the closure, to run it or to drop it.
        if rt::rarely!((*job.as_ref().work.get()).is_some()) {
            drop((*job.as_ref().work.get()).take());
        }
        // The other fields have no drop glue, or are empty.
        (&raw mut (*job.as_ptr()).packet).drop_in_place();
        room::put(job.cast(), Layout::new::<Job<F, T>>());
    }
}

/// The handle's share of a [`Job`], until the result is taken or the handle is dropped. The
/// thread's share is its [`ThreadMain`].
pub(super) struct Share<T>(Option<Handles<T>>);

/// An [`Owner`] of a job, with only the type of the result known, and the function that gives the
/// share up. The function knows all types of the job, so its callers need neither the size of the
/// job nor its drop glue. If `is_taken`, the function returns the thread's result; the thread must
/// have ended then.
type Handles<T> = (
    NonNull<()>,
    unsafe fn(NonNull<()>, is_taken: bool) -> Option<Result<T>>,
);

/// Returns the two shares of a new job, which runs `f` and then drops `member`.
///
/// # Safety
///
/// The data that `f` and its result use must live until the thread has dropped its `member`, and
/// until the handle is dropped. `f` and its result are `Send`, or both shares stay on this OS
/// thread.
#[track_caller]
#[inline(always)]
pub(super) unsafe fn job<F, T>(
    f: F,
    scope: Option<&Arc<Members>>,
    modelled: bool,
) -> (ThreadMain, Share<T>)
where
    F: FnOnce() -> T,
{
    let member = scope.map(Member::new);
    // Not as a function that is passed to `then`, because the caller's location would then be in
    // std.
    let site = Location::caller();
    // Only then does the program observe a drop in the block.
    let is_counted = needs_drop::<T>() && modelled;
    let block = Owner::<F, T>::block(is_counted);
    let job = Job {
        work: UnsafeCell::new(Some(f)),
        member: UnsafeCell::new(member),
        modelled,
        one_is_gone: AtomicBool::new(false),
        packet: Packet {
            result: UnsafeCell::default(),
            left: AtomicBool::new(false),
            scope: scope.cloned(),
            shares: AtomicUsize::new(2),
            counted: is_counted.then_some(site),
        },
    };
    // SAFETY: the block is new, and has the layout of a job.
    unsafe { block.write(job) };
    // SAFETY: `run` gets this owner, the thread's, once. By the caller's promise the content of the
    // job may go to the OS thread of the body.
    let body = unsafe { ThreadMain::new(block.cast(), run::<F, T>) };
    (body, Share(Some((block.cast(), leave::<F, T>))))
}

/// Runs the closure of a job, or drops it.
///
/// A processor predicts return addresses from the calls that it has seen; after a switch of stacks
/// these calls are those of another stack. So there must be no call between this function and the
/// closure. The compiler inlines the closure only if it is called in one place. So where panics are
/// caught, the `catch_unwind` is around another call of this function.
///
/// # Safety
///
/// The job is of this type, and `job` is the thread's owner, which is not used again unless the
/// panic is caught.
unsafe fn run<F, T>(job: NonNull<()>, fate: Fate)
where
    F: FnOnce() -> T,
{
    let is_kept = matches!(fate, Fate::Caught);
    // SAFETY: this is the thread; a call with `Fate::Caught` is made inside a first call, which
    // keeps the share.
    let theirs = unsafe { Theirs::<F, T>::of(job.cast(), is_kept) };
    // SAFETY: the thread has a share of the job until `theirs` is dropped, here or in the first
    // call.
    let it = unsafe { theirs.owner.0.as_ref() };
    if matches!(fate, Fate::Run) && rt::rarely!(!it.modelled || rt::catches_panics()) {
        // SAFETY: `job` is the same job, and `theirs` keeps its share.
        unsafe { run_caught::<F, T>(job, it) };
        return;
    }
    // SAFETY: no other code uses this field.
    let Some(f) = (unsafe { (*it.work.get()).take() }) else {
        rt::cold_path();
        return;
    };
    if let Fate::Abandon = fate {
        rt::cold_path();
        drop(f);
        return;
    }
    let result = f();
    // SAFETY: this is the thread, and it stores a result once.
    unsafe { it.packet.put(Ok(result)) };
    drop(theirs);
}

/// [`run`] for a thread with its panic caught and stored for the join.
///
/// # Safety
///
/// The same as for [`run`], but the caller keeps the share.
#[cold]
#[inline(never)]
unsafe fn run_caught<F, T>(job: NonNull<()>, it: &Job<F, T>)
where
    F: FnOnce() -> T,
{
    // SAFETY: the caller's promise; the share is kept, as `Fate::Caught` demands.
    let run = || unsafe { run::<F, T>(job, Fate::Caught) };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
        let payload = if it.modelled {
            rt::caught(payload)
        } else {
            payload
        };
        // SAFETY: this is the thread, and it has stored no result, because `f` panicked.
        unsafe { it.packet.put(Err(payload)) };
    }
}

/// Gives the handle's share of a job up.
///
/// # Safety
///
/// The job is of this type, and `job` is the handle's owner, which is not used again.
unsafe fn leave<F, T>(job: NonNull<()>, is_taken: bool) -> Option<Result<T>> {
    let job: Owner<F, T> = Owner(job.cast());
    if rt::rarely!(!is_taken) {
        job.packet.give_up();
        return None;
    }
    // The thread's share is gone, so this share is the last, and the model need not be told.
    job.packet.shares.store(0, Relaxed);
    // SAFETY: the thread's share takes the result only after this share has been given up.
    unsafe { job.packet.take() }
}

impl<T> Share<T> {
    /// The result of a thread that has ended.
    #[inline]
    pub(super) fn take(mut self) -> Option<Result<T>> {
        let (job, leave) = self.0.take()?;
        // SAFETY: `job` has stored both parts, and they are taken once.
        unsafe { leave(job, true) }
    }
}

impl<T> Drop for Share<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some((job, leave)) = self.0.take() {
            // SAFETY: as above.
            unsafe { leave(job, false) };
        }
    }
}

impl<T> Packet<T> {
    /// Gives one of the two shares up.
    #[inline(always)]
    fn give_up(&self) {
        // Shares of a result without drop glue are not counted.
        if needs_drop::<T>()
            && let Some(site) = self.counted
        {
            self.release(site);
        }
    }

    /// Gives one of the two shares up, as a visible operation.
    fn release(&self, site: &'static Location<'static>) {
        /// Gives the share up even if the announcement does not return.
        struct GiveUp<'a, T>(&'a Packet<T>);
        impl<T> Drop for GiveUp<'_, T> {
            fn drop(&mut self) {
                if self.0.shares.fetch_sub(1, AcqRel) == 1 {
                    // SAFETY: the other owner has given its share up, and with it its right to the
                    // result.
                    let result = unsafe { self.0.take() };
                    if let Some(scope) = &self.0.scope {
                        tell(scope.clone(), &result);
                    }
                }
            }
        }
        let shares = self.shares.load(Relaxed);
        if shares > 0 {
            let _give_up = GiveUp(self);
            rt::release(self.shares.as_ptr().addr(), true, shares as u64, site);
        }
    }

    /// # Safety
    ///
    /// Only the thread may call this, once.
    unsafe fn put(&self, result: Result<T>) {
        // SAFETY: no other code uses the field before `left` is set below, and the field is empty.
        unsafe { self.result.get().write(Some(result)) };
        self.left.store(true, Release);
    }

    /// The result, if the thread has stored one by now.
    ///
    /// # Safety
    ///
    /// No two calls may be made at the same time.
    unsafe fn take(&self) -> Option<Result<T>> {
        if rt::rarely!(!self.left.load(Acquire)) {
            return None;
        }
        // SAFETY: the thread does not use the field after it has set `left`, and by the caller's
        // promise no other code uses it meanwhile.
        unsafe { (*self.result.get()).take() }
    }
}

/// Tells the scope if the result that no join has taken is the payload of a panic.
#[inline(never)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "dropped here, which is out of the way"
)]
fn tell<T>(scope: Arc<Members>, result: &Option<Result<T>>) {
    if let Some(Err(_)) = result {
        scope.note_panic();
    }
}

impl<T> Drop for Packet<T> {
    #[inline]
    fn drop(&mut self) {
        // Mostly there is no scope.
        if let Some(scope) = self.scope.take() {
            tell(scope, self.result.get_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "allocator")]
    use crate::rt::heap::Heap;

    /// The number of model blocks that the two shares of such a job use, and the number that is
    /// left after both are dropped.
    #[cfg(feature = "allocator")]
    fn blocks<T>(f: impl FnOnce() -> T, handle_first: bool) -> (usize, usize) {
        let heap = Heap::new();
        heap.attach(|| {
            heap.record(true);
            // SAFETY: the closure owns all its data, and both shares stay here.
            let (body, share) = unsafe { job(f, None, true) };
            heap.record(false);
            let shared = heap.live_count();
            if handle_first {
                drop((share, body))
            } else {
                drop((body, share))
            }
            (shared, heap.live_count())
        })
    }

    #[test]
    #[cfg(feature = "allocator")]
    fn a_job_is_a_block_of_the_model_if_its_result_is_seen_being_dropped() {
        for handle_first in [false, true] {
            assert_eq!(blocks(|| 7, handle_first), (0, 0));
            assert_eq!(blocks(|| vec![7], handle_first), (1, 0));
        }
    }

    #[test]
    fn whoever_goes_last_drops_what_nobody_has_taken() {
        for handle_first in [false, true] {
            let dropped = Arc::new(());
            let held = dropped.clone();
            // SAFETY: as above. It makes no difference to the drop of the result whether the job is
            // a model's.
            let (body, share) = unsafe { job(move || held, None, false) };
            if handle_first {
                drop(share);
                body.run();
            } else {
                body.run();
                assert_eq!(Arc::strong_count(&dropped), 2);
                drop(share);
            }
            assert_eq!(Arc::strong_count(&dropped), 1);
        }
    }
}
