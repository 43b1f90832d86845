//! What is in loom 0.7?
//!
//! Loom's paths under our name. What loom has in common with std is listed with std's items, whose
//! signatures it has.

use crate::Item;

macro_rules! rows {
    ($to:ident $($side:tt)*) => { $to! { $($side)*
        modelled "`model`, `model::model`" {
            [model = || { model(|| ()); model::model(|| ()) }]
        };
        modelled "`model::Builder`" as Builder {
            [new: fn() -> This]
            [checkpoint_file = |b: &mut This| { let _: &mut This = b.checkpoint_file("file"); }]
            [max_threads = |b: &mut This| b.max_threads = 3_usize]
            [max_branches = |b: &mut This| b.max_branches = 10_usize]
            [max_permutations = |b: &mut This| b.max_permutations = Some(5_usize)]
            [max_duration = |b: &mut This| b.max_duration = Some(Duration::from_secs(1))]
            [preemption_bound = |b: &mut This| b.preemption_bound = Some(2_usize)]
            [checkpoint_file = |b: &mut This| b.checkpoint_file = Some("file".into())]
            [checkpoint_interval = |b: &mut This| b.checkpoint_interval = 7_usize]
            [expect_explicit_explore = |b: &mut This| b.expect_explicit_explore = true]
            [location = |b: &mut This| b.location = true]
            [log = |b: &mut This| b.log = true]
            [check = |b: &This| { b.check(|| ()); }]
            [impl Debug] [impl Default]
        } "by default, `max_threads` and `max_branches` are larger than in loom";
        modelled "loom's signature: `model::Builder::check`" as Builder {
            [of_loom check: fn(&This, fn())]
        } "without it, `check` returns a `Report`, so it needs a `;` where it is the last expression of a function. With it, `explore` returns the `Report`";
        modelled "`explore`, `stop_exploring`, `skip_branch`" {
            [fn explore: fn()] [fn stop_exploring: fn()] [fn skip_branch: fn()]
        };
        reexported "`MAX_THREADS`" { [MAX_THREADS = { let _: usize = MAX_THREADS; }] }
            "5 as in loom, for tests that read it; `Builder::max_threads` is 1000 by default";
        modelled "`sync::Arc`" as sync::Arc<u8> {
            [new: fn(u8) -> This]
            [pin: fn(u8) -> std::pin::Pin<This>]
            [try_unwrap: fn(This) -> Result<u8, This>]
            [from_std: fn(std::sync::Arc<u8>) -> This]
            [strong_count: fn(&This) -> usize]
            [get_mut: fn(&mut This) -> Option<&mut u8>]
            [ptr_eq: fn(&This, &This) -> bool]
            [into_raw: fn(This) -> *const u8]
            [as_ptr: fn(&This) -> *const u8]
            [from_raw: unsafe fn(*const u8) -> This]
            [increment_strong_count: unsafe fn(*const u8)]
            [decrement_strong_count: unsafe fn(*const u8)]
        };
        modelled "`sync::Notify`" as sync::Notify {
            [new: fn() -> This] [notify: fn(&This)] [wait: fn(&This)] [impl Debug] [impl Default]
        } "several threads may wait; in loom, only one. Loom's spurious wake-up is explored if `Builder::spurious_wakeups` (`DPOR_SPURIOUS_WAKEUPS`) is set";
        modelled "`sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard}`" {
            [Mutex = sync::Mutex::new(0).lock().map(|guard: sync::MutexGuard<'_, u8>| *guard).ok()]
            [RwLockReadGuard = sync::RwLock::new(0).read().map(|guard: sync::RwLockReadGuard<'_, u8>| *guard).ok()]
            [RwLockWriteGuard = sync::RwLock::new(0).write().map(|guard: sync::RwLockWriteGuard<'_, u8>| *guard).ok()]
        };
        modelled "`sync::{Condvar, WaitTimeoutResult, Barrier}`" {
            [Condvar = sync::Condvar::new()]
            [WaitTimeoutResult = |result: sync::WaitTimeoutResult| result.timed_out()]
            [Barrier = |barrier: sync::Barrier| barrier.wait().is_leader()]
        } "loom's own `Barrier` panics when it is used";
        reexported "`sync::{LockResult, TryLockResult}`" {
            [LockResult = |result: sync::LockResult<u8>| result.is_ok()]
            [TryLockResult = |result: sync::TryLockResult<u8>| result.is_ok()]
        };
        modelled "`sync::mpsc`" {
            [channel = || {
                let (sender, receiver): (sync::mpsc::Sender<u8>, sync::mpsc::Receiver<u8>) = sync::mpsc::channel();
                let sent: Result<(), std::sync::mpsc::SendError<u8>> = sender.clone().send(1);
                let second: Result<u8, std::sync::mpsc::TryRecvError> = receiver.try_recv();
                (sent, receiver.recv(), second, receiver.recv_timeout(Duration::ZERO))
            }]
        };
        modelled "`sync::atomic`" as sync::atomic::AtomicUsize {
            [unsync_load: unsafe fn(&This) -> usize]
            [with_mut = |x: &mut This| x.with_mut(|value: &mut usize| *value = 1)]
        } "and everything that std has; available on all types";
        modelled "`sync::atomic`, functions" {
            [fence = || sync::atomic::fence(sync::atomic::Ordering::SeqCst)]
            [spin_loop_hint = || sync::atomic::spin_loop_hint()]
        } "`spin_loop_hint` is deprecated";
        modelled "`cell::UnsafeCell`" as cell::UnsafeCell<u8> {
            [new: fn(u8) -> This]
            [into_inner: fn(This) -> u8]
            [with: fn(&This, fn(*const u8) -> u8) -> u8]
            [with_mut: fn(&This, fn(*mut u8) -> u8) -> u8]
            [impl Default] [impl From<u8>] [impl Debug]
        };
        modelled "`cell::UnsafeCell<T: ?Sized>`" as cell::UnsafeCell<[u8]> {
            [with: fn(&This, fn(*const [u8]) -> usize) -> usize]
            [with_mut: fn(&This, fn(*mut [u8]) -> usize) -> usize]
        };
        modelled "loom's signature: `cell::UnsafeCell`" as cell::UnsafeCell<[u8]> {
            [of_loom get: fn(&This) -> cell::ConstPtr<[u8]>]
            [of_loom get_mut: fn(&This) -> cell::MutPtr<[u8]>]
        } "without it, these two are std's. `read` and `write` are always available and do what loom's `get` and `get_mut` do";
        modelled "`cell::ConstPtr`" as cell::ConstPtr<u8> {
            [deref = |x: &This| {
                // SAFETY: this is compiled and not run.
                unsafe { *x.deref() }
            }]
            [with: fn(&This, fn(*const u8) -> u8) -> u8]
            [impl Debug]
        };
        modelled "`cell::MutPtr`" as cell::MutPtr<u8> {
            [deref = |x: &This| {
                // SAFETY: this is compiled and not run.
                unsafe { *x.deref() = 1 }
            }]
            [with: fn(&This, fn(*mut u8) -> u8) -> u8]
            [impl Debug]
        };
        modelled "`cell::Cell`" as cell::Cell<u8> {
            [new: fn(u8) -> This] [set: fn(&This, u8)] [swap: fn(&This, &This)]
            [replace: fn(&This, u8) -> u8] [get: fn(&This) -> u8] [take: fn(&This) -> u8]
            [into_inner: fn(This) -> u8]
            [impl Default] [impl Clone] [impl From<u8>] [impl PartialEq] [impl Eq]
            [impl PartialOrd] [impl Ord] [impl Debug]
        };
        modelled "`thread`" {
            [spawn = || thread::spawn(|| 1_u8).join().ok()]
            [JoinHandle = |handle: &thread::JoinHandle<u8>| { _ = handle.thread().name(); }]
            [Builder = || thread::Builder::new().name("name".into()).stack_size(1).spawn(|| 1_u8)]
            [current = || -> thread::Thread { thread::current() }]
            [ThreadId = |thread: &thread::Thread| -> thread::ThreadId { thread.unpark(); thread.id() }]
            [park = || thread::park()]
            [yield_now = || thread::yield_now()]
            [panicking = || thread::panicking()]
            [LocalKey = |key: &'static thread::LocalKey<u8>| -> Result<u8, thread::AccessError> { key.try_with(|value| *value) }]
        };
        modelled "loom's signature: `thread`" {
            [of_loom spawn = || {
                let own = std::rc::Rc::new(1_u8);
                thread::spawn(move || own).join().ok()
            }]
        } "neither the closure nor its result needs to be `Send`, and `spawn` panics outside a model. `Builder::spawn` requires `Send`, as in loom. `JoinHandle<T>` is `Send` if `T` is";
        refused "`thread::LocalKey { init, .. }`, `lazy_static::Lazy { init, .. }`" {}
            "hidden fields, which loom tells its users not to use. `lazy_static::Lazy::new(init)` makes a `Lazy`";
        modelled "`thread_local!`" { [thread_local = {
            thread_local! {
                /// With an attribute, and public.
                pub static A: std::cell::Cell<u8> = std::cell::Cell::new(0);
                static B: u8 = 1;
            }
            (A.with(|a| a.get()), B.with(|b| *b))
        }] };
        modelled "`lazy_static!`" { [lazy_static = {
            lazy_static! {
                /// With an attribute, and public.
                pub static ref A: Vec<u8> = vec![1];
                pub(crate) static ref B: u8 = 1;
                static ref C: String = String::new();
            }
            || (A.len(), *B, C.is_empty())
        }] };
        modelled "`lazy_static::Lazy`" as lazy_static::Lazy<u8> {
            [get: fn(&'static This) -> &'static u8] [impl Debug]
        };
        reexported "`lazy_static::{AccessError, panicking, yield_now}`" {
            [AccessError = |error: lazy_static::AccessError| error.to_string()]
            [panicking = || lazy_static::panicking()]
            [yield_now = || lazy_static::yield_now()]
        };
        modelled "`alloc::Track`" as alloc::Track<u8> {
            [new: fn(u8) -> This] [get_ref: fn(&This) -> &u8] [get_mut: fn(&mut This) -> &mut u8]
            [into_inner: fn(This) -> u8] [impl Debug]
        };
        reexported "`alloc::{alloc, alloc_zeroed, dealloc, Layout}`" {
            [alloc = { let _: unsafe fn(alloc::Layout) -> *mut u8 = alloc::alloc; }]
            [alloc_zeroed = { let _: unsafe fn(alloc::Layout) -> *mut u8 = alloc::alloc_zeroed; }]
            [dealloc = { let _: unsafe fn(*mut u8, alloc::Layout) = alloc::dealloc; }]
        } "with loom's signatures, a block from these functions that is not freed is a leak, as is that of an `Arc`; other blocks count only if `Builder::check_leaks` is set";
        modelled "`future`" {
            [block_on = || future::block_on(async { 1_u8 })]
        } "always available; the feature `futures` exists and does nothing";
        modelled "`future::AtomicWaker`" as future::AtomicWaker {
            [new: fn() -> This] [register: fn(&This, Waker)] [register_by_ref: fn(&This, &Waker)]
            [wake: fn(&This)] [take_waker: fn(&This) -> Option<Waker>] [impl Debug] [impl Default]
        };
        modelled "`hint`" {
            [spin_loop = || hint::spin_loop()]
            [unreachable_unchecked = { let _: unsafe fn() -> ! = hint::unreachable_unchecked; }]
        } "with loom's signatures, `unreachable_unchecked` panics";
        modelled "`LOOM_*` in the environment" {} "read with loom's signatures, where the `DPOR_*` variable of the same name is not set; without them, use that variable";
    }};
}

pub fn items() -> Vec<Item> {
    rows!(list)
}

mod dpor {
    use std::fmt::Debug;
    use std::task::Waker;
    use std::time::Duration;

    use ::dpor::model::Builder;
    use ::dpor::{
        MAX_THREADS, alloc, cell, explore, future, hint, lazy_static, model, skip_branch,
        stop_exploring, sync, thread, thread_local,
    };

    #[test]
    #[allow(deprecated, clippy::redundant_closure)]
    fn every_item_is_in_dpor() {
        rows!(check dpor;);
    }
}
