//! Which traits do the types have?

use std::cell as plain;
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::cell::{Cell, UnsafeCell};
use super::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};
use super::sync::mpsc::{IntoIter, Iter, Receiver, Sender, SyncSender, TryIter};
use super::sync::{
    Arc, Barrier, BarrierWaitResult, Condvar, LazyLock, Mutex, MutexGuard, Once, OnceLock,
    OnceState, RwLock, RwLockReadGuard, RwLockWriteGuard, WaitTimeoutResult, Weak,
};
use super::thread::{
    AccessError, Builder, JoinHandle, LocalKey, Scope, ScopedJoinHandle, Thread, ThreadId,
};

/// Whether a type has a trait, as a value.
macro_rules! has {
    ($ty:ty: $($bound:tt)*) => {{
        #[allow(dead_code, reason = "unused for a type with the trait")]
        trait Otherwise {
            const HAS: bool = false;
        }
        impl<T: ?Sized> Otherwise for T {}
        struct Probe<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code, reason = "unused for a type without the trait")]
        impl<T: ?Sized + $($bound)*> Probe<T> {
            const HAS: bool = true;
        }
        #[allow(unused_imports, reason = "unused for a type with the trait")]
        use Otherwise as _;
        <Probe<$ty>>::HAS
    }};
}

/// The traits that depend on what is inside.
macro_rules! auto_traits_of {
    ($seen:ident; $($ty:ty),* $(,)?) => {$(
        $seen.push(format!(
            "{}: Send {} Sync {} Unpin {} UnwindSafe {} RefUnwindSafe {} Drop {}",
            stringify!($ty),
            has!($ty: Send),
            has!($ty: Sync),
            has!($ty: Unpin),
            has!($ty: UnwindSafe),
            has!($ty: RefUnwindSafe),
            std::mem::needs_drop::<$ty>(),
        ));
    )*};
}

/// The traits of each type.
macro_rules! traits_of {
    ($seen:ident; $($ty:ty),* $(,)?) => {$(
        auto_traits_of!($seen; $ty);
        $seen.push(format!(
            "{}: Clone {} Copy {} Debug {} Display {} Default {} PartialEq {} Eq {} Ord {} Hash {}",
            stringify!($ty),
            has!($ty: Clone),
            has!($ty: Copy),
            has!($ty: std::fmt::Debug),
            has!($ty: std::fmt::Display),
            has!($ty: Default),
            has!($ty: PartialEq),
            has!($ty: Eq),
            has!($ty: Ord),
            has!($ty: std::hash::Hash),
        ));
    )*};
}

/// May be sent and not shared.
type Sent = plain::Cell<u8>;
/// May be shared and not sent.
type Shared = std::sync::MutexGuard<'static, u8>;
/// Neither.
type Neither = *mut plain::Cell<u8>;
/// Not safe to be seen after a panic.
type Unwound = &'static mut plain::Cell<u8>;

pub fn bounds_are_those_of_std() -> Vec<String> {
    let mut seen = Vec::new();
    macro_rules! each {
        ($traits_of:ident $value:ty) => {
            $traits_of! { seen;
                Arc<$value>, Weak<$value>, Mutex<$value>, RwLock<$value>, OnceLock<$value>,
                MutexGuard<'static, $value>, RwLockReadGuard<'static, $value>,
                RwLockWriteGuard<'static, $value>, LazyLock<$value>, LazyLock<u8, $value>,
                Sender<$value>, SyncSender<$value>, Receiver<$value>, IntoIter<$value>,
                Iter<'static, $value>, TryIter<'static, $value>, JoinHandle<$value>,
                UnsafeCell<$value>, Cell<$value>, AtomicPtr<$value>, LocalKey<$value>,
            }
        };
    }
    each!(traits_of u8);
    each!(auto_traits_of Sent);
    each!(auto_traits_of Shared);
    each!(auto_traits_of Neither);
    each!(auto_traits_of Unwound);
    traits_of! { seen;
        Arc<str>, Weak<dyn Send>, Mutex<[u8]>, RwLock<dyn Send>, UnsafeCell<[u8]>, Cell<[u8]>,
        Barrier, BarrierWaitResult, Condvar, WaitTimeoutResult, Once, OnceState, AtomicBool, AtomicUsize,
        Thread, ThreadId, Builder, AccessError, Scope<'static, 'static>, ScopedJoinHandle<'static, u8>,
        ScopedJoinHandle<'static, Sent>,
    }
    seen
}

pub fn sizes_of_what_shares_its_memory_are_those_of_std() -> Vec<String> {
    vec![format!(
        "{} {} {} {} {} {}",
        size_of::<AtomicBool>(),
        size_of::<AtomicUsize>(),
        size_of::<UnsafeCell<u16>>(),
        size_of::<Cell<u16>>(),
        size_of::<Option<Arc<u8>>>(),
        size_of::<Option<Weak<str>>>(),
    )]
}

/// Compiles where these types are covariant as std's are, so that a longer lifetime can be given for a shorter one.
pub fn lifetimes_may_be_shortened_as_those_of_std() -> Vec<String> {
    fn strong<'a>(arc: Arc<Option<&'static u8>>) -> Arc<Option<&'a u8>> {
        arc
    }
    fn weak<'a>(weak: Weak<Option<&'static u8>>) -> Weak<Option<&'a u8>> {
        weak
    }
    fn read<'a>(guard: RwLockReadGuard<'a, &'static u8>) -> RwLockReadGuard<'a, &'a u8> {
        guard
    }
    fn scoped<'a>(handle: ScopedJoinHandle<'static, u8>) -> ScopedJoinHandle<'a, u8> {
        handle
    }
    let lock = RwLock::new(&1);
    let guard = read(lock.read().unwrap());
    let arc = strong(Arc::new(Some(&2)));
    let upgraded = weak(Arc::downgrade(&arc)).upgrade();
    let _: fn(_) -> _ = scoped;
    vec![format!("{guard} {arc:?} {upgraded:?}")]
}
