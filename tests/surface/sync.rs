//! What is in `std::sync` and `std::sync::mpsc`?

use crate::Item;

macro_rules! rows {
    ($to:ident $($side:tt)*) => { $to! { $($side)*
        modelled "`Mutex<T: ?Sized>`" as Mutex<u8> {
            [const new(value: u8) -> This]
            [lock: fn(&This) -> LockResult<MutexGuard<'_, u8>>]
            [try_lock: fn(&This) -> TryLockResult<MutexGuard<'_, u8>>]
            [is_poisoned: fn(&This) -> bool]
            [clear_poison: fn(&This)]
            [into_inner: fn(This) -> LockResult<u8>]
            [get_mut: fn(&mut This) -> LockResult<&mut u8>]
            [impl Send] [impl Sync] [impl UnwindSafe] [impl RefUnwindSafe]
            [impl From<u8>] [impl Default] [impl Debug]
        };
        modelled "`MutexGuard<'_, T: ?Sized>`" as MutexGuard<'static, u8> {
            [impl Sync] [impl Deref<Target = u8>] [impl DerefMut] [impl Debug] [impl Display]
        };
        modelled "`RwLock<T: ?Sized>`" as RwLock<u8> {
            [const new(value: u8) -> This]
            [read: fn(&This) -> LockResult<RwLockReadGuard<'_, u8>>]
            [try_read: fn(&This) -> TryLockResult<RwLockReadGuard<'_, u8>>]
            [write: fn(&This) -> LockResult<RwLockWriteGuard<'_, u8>>]
            [try_write: fn(&This) -> TryLockResult<RwLockWriteGuard<'_, u8>>]
            [is_poisoned: fn(&This) -> bool]
            [clear_poison: fn(&This)]
            [into_inner: fn(This) -> LockResult<u8>]
            [get_mut: fn(&mut This) -> LockResult<&mut u8>]
            [impl Send] [impl Sync] [impl UnwindSafe] [impl RefUnwindSafe]
            [impl From<u8>] [impl Default] [impl Debug]
        };
        modelled "`RwLockReadGuard<'_, T: ?Sized>`" as RwLockReadGuard<'static, u8> {
            [impl Sync] [impl Deref<Target = u8>] [impl Debug] [impl Display]
        };
        modelled "`RwLockWriteGuard<'_, T: ?Sized>`" as RwLockWriteGuard<'static, u8> {
            [downgrade: fn(This) -> RwLockReadGuard<'static, u8>]
            [impl Sync] [impl Deref<Target = u8>] [impl DerefMut] [impl Debug] [impl Display]
        };
        modelled "`Condvar`" as Condvar {
            [const new() -> This]
            [wait: for<'a> fn(&This, MutexGuard<'a, u8>) -> LockResult<MutexGuard<'a, u8>>]
            [wait_while: for<'a> fn(&This, MutexGuard<'a, u8>, fn(&mut u8) -> bool) -> LockResult<MutexGuard<'a, u8>>]
            [wait_timeout: for<'a> fn(&This, MutexGuard<'a, u8>, Duration) -> LockResult<(MutexGuard<'a, u8>, WaitTimeoutResult)>]
            [wait_timeout_while: for<'a> fn(&This, MutexGuard<'a, u8>, Duration, fn(&mut u8) -> bool) -> LockResult<(MutexGuard<'a, u8>, WaitTimeoutResult)>]
            [wait_timeout_ms: for<'a> fn(&This, MutexGuard<'a, u8>, u32) -> LockResult<(MutexGuard<'a, u8>, bool)>]
            [notify_one: fn(&This)]
            [notify_all: fn(&This)]
            [impl Send] [impl Sync] [impl UnwindSafe] [impl RefUnwindSafe] [impl Default] [impl Debug]
        };
        modelled "`WaitTimeoutResult`" as WaitTimeoutResult {
            [timed_out: fn(&This) -> bool]
            [impl Clone] [impl Copy] [impl PartialEq] [impl Eq] [impl Debug]
        };
        modelled "`Barrier`" as Barrier {
            [const new(size: usize) -> This]
            [wait: fn(&This) -> BarrierWaitResult]
            [impl Send] [impl Sync] [on "linux" impl UnwindSafe] [on "linux" impl RefUnwindSafe] [impl Debug]
        };
        modelled "`BarrierWaitResult`" as BarrierWaitResult {
            [is_leader: fn(&This) -> bool] [impl Debug]
        };
        modelled "`Once`" as Once {
            [const new() -> This]
            [call_once: fn(&This, fn())]
            [call_once_force: fn(&This, fn(&OnceState))]
            [is_completed: fn(&This) -> bool]
            [wait: fn(&This)]
            [wait_force: fn(&This)]
            [impl Send] [impl Sync] [impl UnwindSafe] [impl RefUnwindSafe] [impl Debug]
        };
        modelled "`OnceState`" as OnceState {
            [is_poisoned: fn(&This) -> bool] [impl Debug]
        };
        modelled "`ONCE_INIT`" { [ONCE_INIT = ONCE_INIT] } "deprecated";
        modelled "`OnceLock<T>`" as OnceLock<u8> {
            [const new() -> This]
            [get: fn(&This) -> Option<&u8>]
            [get_mut: fn(&mut This) -> Option<&mut u8>]
            [wait: fn(&This) -> &u8]
            [set: fn(&This, u8) -> Result<(), u8>]
            [get_or_init: fn(&This, fn() -> u8) -> &u8]
            [into_inner: fn(This) -> Option<u8>]
            [take: fn(&mut This) -> Option<u8>]
            [impl Send] [impl Sync] [impl UnwindSafe] [impl RefUnwindSafe]
            [impl Default] [impl Debug] [impl Clone] [impl From<u8>] [impl PartialEq] [impl Eq]
        };
        modelled "`LazyLock<T, F = fn() -> T>`" as LazyLock<u8> {
            [const new(make: fn() -> u8) -> This]
            [force: fn(&This) -> &u8]
            [since "1.94" force_mut: fn(&mut This) -> &mut u8]
            [since "1.94" get: fn(&This) -> Option<&u8>]
            [since "1.94" get_mut: fn(&mut This) -> Option<&mut u8>]
            [impl Send] [impl Sync] [impl UnwindSafe] [impl RefUnwindSafe]
            [impl Deref<Target = u8>] [impl DerefMut] [impl Default] [impl Debug]
        };
        reexported "`PoisonError<T>`" as PoisonError<u8> {
            [new: fn(u8) -> This]
            [into_inner: fn(This) -> u8]
            [get_ref: fn(&This) -> &u8]
            [get_mut: fn(&mut This) -> &mut u8]
            [impl Debug] [impl Display] [impl Error]
        };
        reexported "`TryLockError<T>`" as TryLockError<u8> {
            [impl From<PoisonError<u8>>] [impl Debug] [impl Display] [impl Error]
        };
        reexported "`LockResult<T>`" as LockResult<u8> { [unwrap: fn(This) -> u8] };
        reexported "`TryLockResult<T>`" as TryLockResult<u8> { [unwrap: fn(This) -> u8] };
    }};
}

macro_rules! queues {
    ($to:ident $($side:tt)*) => { $to! { $($side)*
        modelled "functions" {
            [fn channel: fn() -> (Sender<u8>, Receiver<u8>)]
            [fn sync_channel: fn(usize) -> (SyncSender<u8>, Receiver<u8>)]
        };
        modelled "`Sender<T>`" as Sender<u8> {
            [send: fn(&This, u8) -> Result<(), SendError<u8>>]
            [impl Send] [impl Sync] [impl Clone] [impl Debug]
        };
        modelled "`SyncSender<T>`" as SyncSender<u8> {
            [send: fn(&This, u8) -> Result<(), SendError<u8>>]
            [try_send: fn(&This, u8) -> Result<(), TrySendError<u8>>]
            [impl Send] [impl Sync] [impl Clone] [impl Debug]
        };
        modelled "`Receiver<T>`" as Receiver<u8> {
            [recv: fn(&This) -> Result<u8, RecvError>]
            [try_recv: fn(&This) -> Result<u8, TryRecvError>]
            [recv_timeout: fn(&This, Duration) -> Result<u8, RecvTimeoutError>]
            [iter: fn(&This) -> Iter<'_, u8>]
            [try_iter: fn(&This) -> TryIter<'_, u8>]
            [impl Send] [impl IntoIterator<Item = u8, IntoIter = IntoIter<u8>>] [impl Debug]
        };
        modelled "`&Receiver<T>`" as &'static Receiver<u8> {
            [impl IntoIterator<Item = u8, IntoIter = Iter<'static, u8>>]
        };
        modelled "`Iter<'_, T>`" as Iter<'static, u8> { [impl Iterator<Item = u8>] [impl Debug] };
        modelled "`TryIter<'_, T>`" as TryIter<'static, u8> { [impl Iterator<Item = u8>] [impl Debug] };
        modelled "`IntoIter<T>`" as IntoIter<u8> { [impl Iterator<Item = u8>] [impl Debug] };
        reexported "`SendError<T>`" as SendError<u8> {
            [impl Clone] [impl Copy] [impl PartialEq] [impl Eq] [impl Debug] [impl Display] [impl Error]
        };
        reexported "`TrySendError<T>`" as TrySendError<u8> {
            [impl Clone] [impl Copy] [impl PartialEq] [impl Eq] [impl From<SendError<u8>>]
            [impl Debug] [impl Display] [impl Error]
        };
        reexported "`RecvError`" as RecvError {
            [impl Clone] [impl Copy] [impl PartialEq] [impl Eq] [impl Debug] [impl Display] [impl Error]
        };
        reexported "`TryRecvError`" as TryRecvError {
            [impl Clone] [impl Copy] [impl PartialEq] [impl Eq] [impl From<RecvError>]
            [impl Debug] [impl Display] [impl Error]
        };
        reexported "`RecvTimeoutError`" as RecvTimeoutError {
            [impl Clone] [impl Copy] [impl PartialEq] [impl Eq] [impl From<RecvError>]
            [impl Debug] [impl Display] [impl Error]
        };
    }};
}

pub fn items() -> Vec<Item> {
    rows!(list)
}

pub fn queues() -> Vec<Item> {
    queues!(list)
}

macro_rules! compiles {
    ($side:ident $test:ident) => {
        mod $side {
            use std::error::Error;
            use std::fmt::{Debug, Display};
            use std::ops::{Deref, DerefMut};
            use std::panic::{RefUnwindSafe, UnwindSafe};
            use std::time::Duration;

            mod locks {
                use super::*;
                use ::$side::sync::*;

                #[test]
                #[allow(deprecated)]
                fn $test() {
                    rows!(check $side;);
                }
            }

            mod queues {
                use super::*;
                use ::$side::sync::mpsc::*;

                #[test]
                fn $test() {
                    queues!(check $side;);
                }
            }
        }
    };
}
compiles!(std every_item_is_in_std);
compiles!(dpor every_item_is_in_dpor);
