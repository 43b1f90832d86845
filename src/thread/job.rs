//! Where are a thread's closure and its result?
//!
//! In one block, a [`Job`], of which the thread and its handle have a share each. The result
//! belongs to the thread until it has left it, and then to whoever takes it, on whatever OS thread
//! that is; so the block needs no lock. Where its memory is from is [`room`]'s to say.

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

/// Where a thread leaves what its closure returned, or the payload of its panic.
struct Packet<T> {
    /// The thread's until it has `left` something, then the one's who takes it.
    result: UnsafeCell<Option<Result<T>>>,
    left: AtomicBool,
    /// Is told if a panic was left here and nobody has asked for it.
    scope: Option<Arc<Members>>,
    /// How many shares there are. Who gives up the last one drops the result, which the program may
    /// see, so it is a reference count like any other.
    shares: AtomicUsize,
    /// Where the thread was spawned, if it is a modelled one whose result can be seen being
    /// dropped.
    counted: Option<&'static Location<'static>>,
}

/// A thread's closure and its packet, in one block.
struct Job<F, T> {
    /// The closure, until the thread begins or is given up. The thread's.
    work: UnsafeCell<Option<F>>,
    /// What the thread is to drop last.
    member: UnsafeCell<Option<Member>>,
    modelled: bool,
    /// Whether one of the two owners has gone.
    one_is_gone: AtomicBool,
    packet: Packet<T>,
}

/// One of the two owners of a [`Job`], which are the thread and its handle.
struct Owner<F, T>(NonNull<Job<F, T>>);

impl<F, T> Owner<F, T> {
    /// A block for a job, of the model if the program `is_to_see` something in it.
    #[inline(always)]
    fn block(is_to_see: bool) -> NonNull<Job<F, T>> {
        if is_to_see {
            return NonNull::from(Box::leak(Box::<Job<F, T>>::new_uninit())).cast();
        }
        room::take(Layout::new::<Job<F, T>>()).cast()
    }
}

/// The thread's share of its job, which is given up when this is dropped, also by a panic, unless
/// it `is_kept`.
struct Theirs<F, T> {
    is_kept: bool,
    owner: ManuallyDrop<Owner<F, T>>,
    /// The last thing, when nothing is left that could use what the scope lends.
    member: Option<Member>,
}

impl<F, T> Theirs<F, T> {
    /// # Safety
    ///
    /// Only for the thread, and once where it is not kept.
    #[inline(always)]
    unsafe fn of(job: NonNull<Job<F, T>>, is_kept: bool) -> Theirs<F, T> {
        let mut theirs = Theirs {
            is_kept,
            owner: ManuallyDrop::new(Owner(job)),
            member: None,
        };
        if rt::mostly!(!is_kept) {
            // SAFETY: nobody else looks there.
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
            // SAFETY: it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.owner) };
        }
    }
}

impl<F, T> Deref for Owner<F, T> {
    type Target = Job<F, T>;

    #[inline(always)]
    fn deref(&self) -> &Job<F, T> {
        // SAFETY: the job lives until its second owner has gone, and nobody uses it mutably before.
        unsafe { self.0.as_ref() }
    }
}

impl<F, T> Drop for Owner<F, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Mostly the thread has gone before its handle, which only has to look then.
        let gone = &self.one_is_gone;
        if gone.load(Acquire) || gone.swap(true, AcqRel) {
            // SAFETY: this is the last owner.
            unsafe { drop_job(self.0) };
        }
    }
}

/// Drops a job, and gives its block back.
///
/// # Safety
///
/// It is nobody's any more, and in a block of [`Owner::block`].
#[inline(never)]
unsafe fn drop_job<F, T>(job: NonNull<Job<F, T>>) {
    // SAFETY: the caller says so. Whether the block is of the model is found like where it was
    // made.
    unsafe {
        if needs_drop::<T>() && job.as_ref().packet.counted.is_some() {
            drop(Box::from_raw(job.as_ptr()));
            return;
        }
        // The thread has taken it, whichever way it went.
        if rt::rarely!((*job.as_ref().work.get()).is_some()) {
            drop((*job.as_ref().work.get()).take());
        }
        // Nothing else of it has anything to drop.
        (&raw mut (*job.as_ptr()).packet).drop_in_place();
        room::put(job.cast(), Layout::new::<Job<F, T>>());
    }
}

/// The handle's share of a [`Job`], until it is taken or dropped. The other one is the thread's
/// [`ThreadMain`].
pub(super) struct Share<T>(Option<Handles<T>>);

/// An [`Owner`] of a job of which only the result is known, and what gives it up where all of the
/// job is known, so that nobody has to ask how large it is and what there is to be dropped. That
/// gives what the thread has left, if it `is_taken`, for which the thread must be at its end.
type Handles<T> = (
    NonNull<()>,
    unsafe fn(NonNull<()>, is_taken: bool) -> Option<Result<T>>,
);

/// The two shares of a new job: to run `f`, and then to drop `member`.
///
/// # Safety
///
/// What `f` and its result use must live until the thread has dropped its `member`, and until the
/// handle has gone. `f` and its result are `Send`, or both shares stay on this OS thread.
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
    // Not as a function that `then` calls, or std is the caller.
    let site = Location::caller();
    // Then the program sees something in the block.
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
    // SAFETY: the block is new, and a job's.
    unsafe { block.write(job) };
    // SAFETY: `run` is told of this thread's owner, once. What the job has may go where the body
    // goes, the caller says.
    let body = unsafe { ThreadMain::new(block.cast(), run::<F, T>) };
    (body, Share(Some((block.cast(), leave::<F, T>))))
}

/// Runs the closure of a job, or drops it.
///
/// A processor foretells where a function returns to from the calls it has seen, which after a
/// switch are those of another stack. So there is no call between this one and the closure, which
/// the compiler only sees to if it is called in one place: where panics are caught, that is around
/// another call of this function.
///
/// # Safety
///
/// The job is of this type, and is the thread's owner's, who is not used again, unless the panic is
/// caught.
unsafe fn run<F, T>(job: NonNull<()>, fate: Fate)
where
    F: FnOnce() -> T,
{
    let is_kept = matches!(fate, Fate::Caught);
    // SAFETY: this is the thread, and whoever catches has come here before.
    let theirs = unsafe { Theirs::<F, T>::of(job.cast(), is_kept) };
    // SAFETY: the thread has a share of it until `theirs` is dropped, here or by whoever catches.
    let it = unsafe { theirs.owner.0.as_ref() };
    if matches!(fate, Fate::Run) && rt::rarely!(!it.modelled || rt::catches_panics()) {
        // SAFETY: the same job, of which `theirs` is kept.
        unsafe { run_caught::<F, T>(job, it) };
        return;
    }
    // SAFETY: nobody else looks there.
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
    // SAFETY: this is the thread, and comes here once.
    unsafe { it.packet.put(Ok(result)) };
    drop(theirs);
}

/// [`run`] for a thread whose panic is caught, and left for who joins it.
///
/// # Safety
///
/// As there, but the share is the caller's.
#[cold]
#[inline(never)]
unsafe fn run_caught<F, T>(job: NonNull<()>, it: &Job<F, T>)
where
    F: FnOnce() -> T,
{
    // SAFETY: the caller says so.
    let run = || unsafe { run::<F, T>(job, Fate::Caught) };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
        let payload = match it.modelled {
            true => rt::caught(payload),
            false => payload,
        };
        // SAFETY: this is the thread, and it has left nothing.
        unsafe { it.packet.put(Err(payload)) };
    }
}

/// Gives the handle's share of a job up.
///
/// # Safety
///
/// The job is of this type, and is the handle's owner's, who is not used again.
unsafe fn leave<F, T>(job: NonNull<()>, is_taken: bool) -> Option<Result<T>> {
    let job: Owner<F, T> = Owner(job.cast());
    if rt::rarely!(!is_taken) {
        job.packet.give_up();
        return None;
    }
    // The thread's share is gone, so this one is the last, and nobody needs to be told.
    job.packet.shares.store(0, Relaxed);
    // SAFETY: the other share is the thread's, which takes nothing unless this one has been given
    // up.
    unsafe { job.packet.take() }
}

impl<T> Share<T> {
    /// What a thread has left that is at its end.
    #[inline]
    pub(super) fn take(mut self) -> Option<Result<T>> {
        let (job, leave) = self.0.take()?;
        // SAFETY: `job` has put both there, and they are taken once.
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
        // Nothing is counted of what has nothing to drop.
        if needs_drop::<T>()
            && let Some(site) = self.counted
        {
            self.release(site);
        }
    }

    /// Gives one of the two shares up, which is a visible operation.
    fn release(&self, site: &'static Location<'static>) {
        /// Does so even if the announcement does not return.
        struct GiveUp<'a, T>(&'a Packet<T>);
        impl<T> Drop for GiveUp<'_, T> {
            fn drop(&mut self) {
                if self.0.shares.fetch_sub(1, AcqRel) == 1 {
                    // SAFETY: the other one has given its share up, and with it its right to the
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
    /// Only for the thread, once.
    unsafe fn put(&self, result: Result<T>) {
        // SAFETY: nobody else looks there before the next line, and nothing is there.
        unsafe { self.result.get().write(Some(result)) };
        self.left.store(true, Release);
    }

    /// What the thread has left, if it has by now.
    ///
    /// # Safety
    ///
    /// Only for one at a time.
    unsafe fn take(&self) -> Option<Result<T>> {
        if rt::rarely!(!self.left.load(Acquire)) {
            return None;
        }
        // SAFETY: the thread does not look there any more, and nobody else does meanwhile.
        unsafe { (*self.result.get()).take() }
    }
}

/// Tells the scope if what nobody has asked for is the payload of a panic.
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
        // Mostly there is none.
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

    /// How many blocks of the model the two shares of such a job are, and how many are left when
    /// both are gone.
    #[cfg(feature = "allocator")]
    fn blocks<T>(f: impl FnOnce() -> T, handle_first: bool) -> (usize, usize) {
        let heap = Heap::new();
        heap.attach(|| {
            heap.record(true);
            // SAFETY: all that they use is owned, and they stay here.
            let (body, share) = unsafe { job(f, None, true) };
            heap.record(false);
            let shared = heap.live_count();
            match handle_first {
                true => drop((share, body)),
                false => drop((body, share)),
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
            // SAFETY: as above. Whether the job is a model's makes no difference to who drops the
            // result.
            let (body, share) = unsafe { job(move || held, None, false) };
            match handle_first {
                true => {
                    drop(share);
                    body.run();
                }
                false => {
                    body.run();
                    assert_eq!(Arc::strong_count(&dropped), 2);
                    drop(share);
                }
            }
            assert_eq!(Arc::strong_count(&dropped), 1);
        }
    }
}
