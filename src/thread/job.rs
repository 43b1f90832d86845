//! Where are a thread's closure and its result?
//!
//! In one block, a [`Job`], of which the thread and its handle have a share each. The result belongs to the
//! thread until it has left it, and then to whoever takes it, on whatever OS thread that is; so the block
//! needs no lock.

use std::cell::UnsafeCell;
use std::mem::needs_drop;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::Result;
use super::scoped::{Member, Members};
use crate::rt::{self, Body, Work};

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
    /// Where the thread was spawned, if it is a modelled one whose result can be seen being dropped.
    counted: Option<&'static Location<'static>>,
}

/// A thread's closure and its packet, in one block.
struct Job<F, T> {
    /// The closure, until the thread begins or is given up, and what is to be dropped last. The thread's.
    work: UnsafeCell<Option<(F, Option<Member>)>>,
    modelled: bool,
    packet: Packet<T>,
}

/// The handle's share of a [`Job`], until it is taken or dropped. The other one is the thread's [`Body`].
pub(super) struct Share<T>(Option<Arc<dyn Holds<T>>>);

/// A [`Job`] of which only the result is known. What is done with it is done here, where all of it is known, so that
/// nobody has to ask how large it is and what there is to be dropped.
trait Holds<T> {
    /// What the thread has left, which is at its end.
    fn take(self: Arc<Self>) -> Option<Result<T>>;
    /// Gives the handle's share up.
    fn give_up(self: Arc<Self>);
}

impl<F, T> Holds<T> for Job<F, T> {
    fn take(self: Arc<Self>) -> Option<Result<T>> {
        // The thread's share is gone, so this one is the last, and nobody needs to be told.
        self.packet.shares.store(0, Relaxed);
        // SAFETY: the other share is the thread's, which takes nothing unless this one has been given up.
        unsafe { self.packet.take() }
    }

    fn give_up(self: Arc<Self>) {
        self.packet.give_up();
    }
}

/// The two shares of a new job: to run `f`, and then to drop `member`.
///
/// # Safety
///
/// What `f` and its result use must live until the thread has dropped its `member`, and until the handle
/// has gone. `f` and its result are `Send`, or both shares stay on this OS thread.
#[track_caller]
pub(super) unsafe fn job<F, T>(
    f: F,
    scope: Option<&Arc<Members>>,
    modelled: bool,
) -> (Body, Share<T>)
where
    F: FnOnce() -> T,
{
    let member = scope.map(Member::new);
    // Not as a function that `then` calls, or std is the caller.
    let site = Location::caller();
    let job = Arc::new(Job {
        work: UnsafeCell::new(Some((f, member))),
        modelled,
        packet: Packet {
            result: UnsafeCell::default(),
            left: AtomicBool::new(false),
            scope: scope.cloned(),
            shares: AtomicUsize::new(2),
            counted: (modelled && needs_drop::<T>()).then_some(site),
        },
    });
    let work: Arc<dyn Work + '_> = job.clone();
    let share: Arc<dyn Holds<T> + '_> = job;
    // SAFETY: only lifetimes change, and the caller says that what they bound lives long enough. The
    // closure is gone before the thread gives up its share, so the handle cannot be the one to drop it.
    let (work, share) = unsafe {
        (
            std::mem::transmute::<Arc<dyn Work + '_>, Arc<dyn Work>>(work),
            std::mem::transmute::<Arc<dyn Holds<T> + '_>, Arc<dyn Holds<T>>>(share),
        )
    };
    (Body::new(work), Share(Some(share)))
}

/// The thread's share of a job, given up when it is dropped.
struct Theirs<F, T>(Arc<Job<F, T>>);

impl<F, T> Job<F, T> {
    /// Gives the closure to `act`, and the thread's share up.
    ///
    /// # Safety
    ///
    /// Only for the thread.
    unsafe fn end(self: Arc<Self>, act: impl FnOnce(F, &Packet<T>)) {
        // SAFETY: nobody else looks there.
        let Some((f, member)) = (unsafe { (*self.work.get()).take() }) else {
            return;
        };
        // The last thing, also if the thread unwinds, when nothing is left that could use what the scope
        // lends.
        let _member = member;
        let theirs = Theirs(self);
        act(f, &theirs.0.packet);
    }
}

impl<F, T> Drop for Theirs<F, T> {
    fn drop(&mut self) {
        self.0.packet.give_up();
    }
}

impl<F, T> Work for Job<F, T>
where
    F: FnOnce() -> T,
{
    fn run(self: Arc<Self>) {
        let modelled = self.modelled;
        let run = |f, packet: &Packet<T>| {
            let result = match modelled {
                true => rt::catch_panic(f),
                false => catch_unwind(AssertUnwindSafe(f)),
            };
            // SAFETY: this is the thread, and `end` calls once.
            unsafe { packet.put(result) };
        };
        // SAFETY: this is the thread: the only `Body` of this job has called, and does so once.
        unsafe { self.end(run) };
    }

    fn abandon(self: Arc<Self>) {
        // SAFETY: as in `run`, of which this is called instead.
        unsafe { self.end(|f, _| drop(f)) };
    }
}

// SAFETY: if the closure or the result is not `Send`, the job stays on the OS thread that made it: `job`, which
// makes them all, has its caller promise that.
unsafe impl<F, T> Send for Job<F, T> {}
// SAFETY: the closure goes to the thread, and the result from there to the one who takes it; each is used
// by one of them at a time. That they may be used on another OS thread is the promise of above.
unsafe impl<F, T> Sync for Job<F, T> {}

impl<T> Share<T> {
    /// What a thread has left that is at its end.
    #[inline]
    pub(super) fn take(mut self) -> Option<Result<T>> {
        self.0.take().and_then(Holds::take)
    }
}

impl<T> Drop for Share<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(share) = self.0.take() {
            share.give_up();
        }
    }
}

impl<T> Packet<T> {
    /// Gives one of the two shares up.
    #[inline(always)]
    fn give_up(&self) {
        if let Some(site) = self.counted {
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
                    // SAFETY: the other one has given its share up, and with it its right to the result.
                    drop(unsafe { self.0.take() });
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
        // SAFETY: nobody else looks there before the next line.
        unsafe { *self.result.get() = Some(result) };
        self.left.store(true, Release);
    }

    /// What the thread has left, if it has by now.
    ///
    /// # Safety
    ///
    /// Only for one at a time.
    unsafe fn take(&self) -> Option<Result<T>> {
        if !self.left.load(Acquire) {
            return None;
        }
        // SAFETY: the thread does not look there any more, and nobody else does meanwhile.
        unsafe { (*self.result.get()).take() }
    }
}

impl<T> Packet<T> {
    /// Tells the scope if nobody has asked for the payload of a panic.
    #[inline(never)]
    fn tell(&mut self, scope: &Members) {
        if let Some(Err(_)) = self.result.get_mut() {
            scope.note_panic();
        }
    }
}

impl<T> Drop for Packet<T> {
    #[inline]
    fn drop(&mut self) {
        // Mostly there is none.
        if let Some(scope) = self.scope.take() {
            self.tell(&scope);
        }
    }
}
