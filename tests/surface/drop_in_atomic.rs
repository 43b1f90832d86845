//! Do the same programs compile and give the same results with std's atomics, `Arc` and `Mutex` and
//! with ours, outside of a model and inside?
//!
//! Each body is compiled twice, against `std::sync` and against `dpor::sync`, and calls every method
//! that is stable. Only std's newest methods are left out on the side of std, because a compiler as
//! old as `rust-version` does not have them.
// The feature has other signatures, whose tests are `loom_signatures`.
#![cfg(not(feature = "loom"))]

/// The bodies, for the `sync` that is in scope.
macro_rules! bodies {
    () => {
        use sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
        use sync::atomic::{
            AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr,
            AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, compiler_fence, fence,
        };
        use sync::{
            Arc, LockResult, Mutex, MutexGuard, PoisonError, TryLockError, TryLockResult, Weak,
        };

        macro_rules! integer {
            ($atomic:ident $value:ty) => {{
                let mut x = const { $atomic::new(0) };
                assert_eq!(x.swap(5, AcqRel), 0);
                assert_eq!(x.load(Acquire), 5);
                x.store(6, Release);
                assert_eq!(x.compare_exchange(6, 7, SeqCst, Relaxed), Ok(6));
                assert_eq!(x.compare_exchange(6, 8, SeqCst, Relaxed), Err(7));
                while x.compare_exchange_weak(7, 8, AcqRel, Acquire).is_err() {}
                #[allow(deprecated)]
                let before = x.compare_and_swap(8, 9, SeqCst);
                assert_eq!(before, 8);
                assert_eq!(x.fetch_add(<$value>::MAX, SeqCst), 9);
                assert_eq!(x.fetch_sub(1, SeqCst), <$value>::MAX.wrapping_add(9));
                x.store(0b1100, SeqCst);
                assert_eq!(x.fetch_and(0b0110, SeqCst), 0b1100);
                assert_eq!(x.fetch_nand(0b0110, SeqCst), 0b0100);
                assert_eq!(x.fetch_or(1, SeqCst), !0b0100);
                assert_eq!(x.fetch_xor(1, SeqCst), !0b0100);
                x.store(3, SeqCst);
                assert_eq!(x.fetch_max(9, SeqCst), 3);
                assert_eq!(x.fetch_min(2, SeqCst), 9);
                assert_eq!(x.fetch_update(SeqCst, SeqCst, |v| Some(v + 1)), Ok(2));
                assert_eq!(x.fetch_update(SeqCst, SeqCst, |_| None), Err(3));
                *x.get_mut() += 1;
                let pointer: *mut $value = x.as_ptr();
                // SAFETY: the pointer is to an atomic that lives on and is used only through it.
                assert_eq!(unsafe { $atomic::from_ptr(pointer) }.load(SeqCst), 4);
                assert_eq!(format!("{x:?}"), "4");
                assert_eq!(x.into_inner(), 4);
                assert_eq!($atomic::default().into_inner(), 0);
                assert_eq!($atomic::from(3).into_inner(), 3);
                assert_eq!(size_of::<$atomic>(), size_of::<$value>());
                shared::<$atomic>();
            }};
        }

        fn shared<T: Send + Sync + Unpin + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}

        pub fn integers() {
            integer!(AtomicI8 i8);
            integer!(AtomicI16 i16);
            integer!(AtomicI32 i32);
            integer!(AtomicI64 i64);
            integer!(AtomicIsize isize);
            integer!(AtomicU8 u8);
            integer!(AtomicU16 u16);
            integer!(AtomicU32 u32);
            integer!(AtomicU64 u64);
            integer!(AtomicUsize usize);
            fence(SeqCst);
            compiler_fence(SeqCst);
        }

        pub fn booleans() {
            let mut x = AtomicBool::new(false);
            assert!(!x.swap(true, SeqCst));
            assert!(x.load(SeqCst));
            x.store(false, SeqCst);
            assert_eq!(x.compare_exchange(false, true, SeqCst, SeqCst), Ok(false));
            while x.compare_exchange_weak(true, false, SeqCst, SeqCst).is_err() {}
            #[allow(deprecated)]
            let before = x.compare_and_swap(false, true, SeqCst);
            assert!(!before);
            assert!(x.fetch_and(false, SeqCst));
            assert!(!x.fetch_nand(true, SeqCst));
            assert!(x.fetch_or(false, SeqCst));
            assert!(x.fetch_xor(true, SeqCst));
            assert!(!x.fetch_not(SeqCst));
            assert_eq!(x.fetch_update(SeqCst, SeqCst, |v| Some(!v)), Ok(true));
            *x.get_mut() |= true;
            // SAFETY: the pointer is to an atomic that lives on and is used only through it.
            assert!(unsafe { AtomicBool::from_ptr(x.as_ptr()) }.load(SeqCst));
            assert_eq!(format!("{x:?}"), "true");
            assert!(x.into_inner());
            assert!(!AtomicBool::default().into_inner());
            assert!(AtomicBool::from(true).into_inner());
            shared::<AtomicBool>();
        }

        pub fn pointers() {
            let mut values = [10_u32, 20, 30];
            let first: *mut u32 = values.as_mut_ptr();
            let null = std::ptr::null_mut();
            let mut x = AtomicPtr::new(null);
            assert_eq!(x.swap(first, SeqCst), null);
            assert_eq!(x.load(SeqCst), first);
            x.store(null, SeqCst);
            assert_eq!(x.compare_exchange(null, first, SeqCst, SeqCst), Ok(null));
            while x.compare_exchange_weak(first, null, SeqCst, SeqCst).is_err() {}
            #[allow(deprecated)]
            let before = x.compare_and_swap(null, first, SeqCst);
            assert_eq!(before, null);
            let next = |p: *mut u32| Some(p.wrapping_add(1));
            assert_eq!(x.fetch_update(SeqCst, SeqCst, next), Ok(first));
            // SAFETY: the pointer is to the second of the three values.
            assert_eq!(unsafe { **x.get_mut() }, 20);
            // SAFETY: the pointer is to an atomic that lives on and is used only through it.
            assert_eq!(unsafe { AtomicPtr::from_ptr(x.as_ptr()) }.load(SeqCst), first.wrapping_add(1));
            assert_eq!(format!("{x:?}"), format!("{:?}", first.wrapping_add(1)));
            assert_eq!(format!("{x:p}"), format!("{:p}", first.wrapping_add(1)));
            assert_eq!(x.into_inner(), first.wrapping_add(1));
            assert_eq!(AtomicPtr::<u8>::default().into_inner(), std::ptr::null_mut());
            assert_eq!(AtomicPtr::from(first).into_inner(), first);
            shared::<AtomicPtr<u8>>();
        }

        pub fn references() {
            use std::any::Any;
            use std::borrow::{Borrow, Cow};
            use std::error::Error;
            use std::ffi::{CStr, CString, OsStr, OsString};
            use std::path::{Path, PathBuf};
            use std::pin::Pin;

            let mut x = Arc::new(String::from("x"));
            let y = x.clone();
            assert_eq!((Arc::strong_count(&x), Arc::weak_count(&x)), (2, 0));
            assert!(Arc::ptr_eq(&x, &y) && x == y && x <= y && Arc::get_mut(&mut x).is_none());
            assert_eq!(x.cmp(&y), std::cmp::Ordering::Equal);
            let x = Arc::try_unwrap(x).expect_err("there is another one");
            assert_eq!(Arc::unwrap_or_clone(x), "x");
            assert_eq!(Arc::into_inner(y).as_deref(), Some("x"));
            let mut x = Arc::new(1_u32);
            let weak: Weak<u32> = Arc::downgrade(&x);
            assert_eq!((weak.strong_count(), weak.weak_count()), (1, 1));
            assert_eq!(weak.upgrade().as_deref(), Some(&1));
            assert!(weak.ptr_eq(&weak.clone()) && weak.as_ptr() == Arc::as_ptr(&x));
            // SAFETY: the pointer is from `into_raw`.
            let weak = unsafe { Weak::from_raw(weak.into_raw()) };
            *Arc::make_mut(&mut x) += 1;
            assert_eq!((*x, weak.upgrade()), (2, None));
            assert_eq!(format!("{weak:?} {x:?} {x}"), "(Weak) 2 2");
            assert_eq!(format!("{x:p}"), format!("{:p}", Arc::as_ptr(&x)));
            assert!(Weak::<u32>::default().ptr_eq(&Weak::new()));
            const NOTHING: Weak<u32> = Weak::new();
            assert_eq!((NOTHING.weak_count(), NOTHING.strong_count()), (0, 0));
            assert!(NOTHING.upgrade().is_none());
            let raw = Arc::into_raw(x);
            // SAFETY: the pointer is from `into_raw`, and each reference is counted.
            let x = unsafe {
                Arc::increment_strong_count(raw);
                Arc::decrement_strong_count(raw);
                Arc::from_raw(raw)
            };
            assert_eq!(Arc::try_unwrap(x), Ok(2));

            let x = Arc::new_cyclic(|weak: &Weak<u8>| {
                assert_eq!((weak.strong_count(), weak.weak_count()), (0, 0));
                weak.upgrade().map_or(7, |x| *x)
            });
            assert_eq!((*x, Arc::weak_count(&x)), (7, 0));
            let pinned: Pin<Arc<u8>> = Arc::pin(5);
            assert_eq!((*pinned, *Pin::<Arc<u8>>::default()), (5, 0));
            let mut x = Arc::<u32>::new_uninit();
            Arc::get_mut(&mut x).expect("unique").write(3);
            // SAFETY: it has been written.
            assert_eq!(*unsafe { x.assume_init() }, 3);
            let mut x = Arc::<[u32]>::new_uninit_slice(2);
            for element in Arc::get_mut(&mut x).expect("unique") {
                element.write(4);
            }
            // SAFETY: all of them have been written.
            assert_eq!(*unsafe { x.assume_init() }, [4, 4]);

            let mut slice: Arc<[u8]> = Arc::from(&[1, 2][..]);
            assert_eq!(slice, Arc::from(vec![1, 2]));
            assert_eq!(slice, Arc::from([1, 2]));
            assert_eq!(slice, Arc::from(&mut [1, 2][..]));
            assert_eq!(slice, Arc::from(Cow::Borrowed(&[1, 2][..])));
            assert_eq!(slice, (1..3).collect());
            assert_eq!(Arc::<[u8; 2]>::try_from(slice.clone()).as_deref(), Ok(&[1, 2]));
            assert!(Arc::<[u8; 3]>::try_from(slice.clone()).is_err());
            let kept = slice.clone();
            Arc::make_mut(&mut slice)[0] = 9;
            assert_eq!((&*slice, &*kept), (&[9, 2][..], &[1, 2][..]));
            assert!(Arc::<[u8]>::default().is_empty());
            let mut text: Arc<str> = Arc::from("text");
            assert_eq!(text, Arc::from(String::from("text")));
            assert_eq!(text, Arc::from(Box::<str>::from("text")));
            assert_eq!(Arc::<[u8]>::from(text.clone()), Arc::from(*b"text"));
            Arc::make_mut(&mut text).make_ascii_uppercase();
            assert_eq!((&*text, &*Arc::<str>::default()), ("TEXT", ""));
            assert_eq!(Arc::<CStr>::from(c"c"), Arc::from(CString::from(c"c")));
            assert_eq!(Arc::<OsStr>::from(OsStr::new("o")), Arc::from(OsString::from("o")));
            assert_eq!(Arc::<Path>::from(Path::new("p")), Arc::from(PathBuf::from("p")));
            assert!(Arc::<CStr>::default().is_empty());
            assert_eq!(*Arc::<u8>::from(1), *Arc::<u8>::default() + 1);

            let any: Arc<dyn Any + Send + Sync> =
                Arc::from(Box::new(3_u8) as Box<dyn Any + Send + Sync>);
            let any = any.downcast::<u16>().expect_err("it is a u8");
            assert_eq!(any.downcast::<u8>().ok().as_deref(), Some(&3));
            let function: Arc<dyn Fn() -> u8> = Arc::from(Box::new(|| 4_u8) as Box<dyn Fn() -> u8>);
            assert_eq!((function(), Arc::downgrade(&function).upgrade().is_some()), (4, true));
            let error: Arc<std::fmt::Error> = Arc::new(std::fmt::Error);
            assert!(Error::source(&error).is_none());
            let keys = std::collections::HashSet::from([Arc::<str>::from("key")]);
            assert!(keys.contains("key"));
            let text: &str = text.borrow();
            let bytes: &[u8] = slice.as_ref();
            assert_eq!((text.len(), bytes.len()), (4, 2));
            shared::<Arc<u8>>();
            shared::<Weak<u8>>();
            assert_eq!(size_of::<Option<Arc<str>>>(), size_of::<&str>());
        }

        /// The type is inferred as long as no dependency compares numbers with types of its own, as `serde_json` does.
        pub fn inference() {
            enum State {
                Full,
            }
            impl From<State> for usize {
                fn from(_: State) -> usize {
                    1
                }
            }
            let state = AtomicUsize::new(1);
            assert!(state.load(SeqCst) == State::Full.into());
        }

        pub fn mutexes() {
            let mut x = const { Mutex::new(0_u8) };
            let locked: LockResult<MutexGuard<'_, u8>> = x.lock();
            let mut guard = locked.unwrap_or_else(PoisonError::into_inner);
            *guard += 1;
            assert_eq!((format!("{guard:?}"), format!("{guard}")), ("1".into(), "1".into()));
            let second: TryLockResult<MutexGuard<'_, u8>> = x.try_lock();
            assert!(matches!(second, Err(TryLockError::WouldBlock)));
            drop(second);
            assert!(format!("{x:?}").contains("<locked>"));
            drop(guard);
            assert_eq!(*x.try_lock().expect("free"), 1);
            assert!(!x.is_poisoned());
            x.clear_poison();
            *x.get_mut().expect("not poisoned") += 1;
            assert_eq!(format!("{x:?}"), "Mutex { data: 2, poisoned: false, .. }");
            assert_eq!(x.into_inner().expect("not poisoned"), 2);
            assert_eq!(Mutex::from(3).into_inner().ok(), Mutex::new(3).into_inner().ok());
            assert_eq!(Mutex::<u8>::default().into_inner().ok(), Some(0));
            shared::<Mutex<u8>>();
            fn may_be_shared<T: Sync>(_: &T) {}
            let x = Mutex::new(0);
            may_be_shared(&x.lock());
            let boxed: Box<Mutex<[u8]>> = Box::new(Mutex::new([1, 2]));
            assert_eq!(boxed.lock().expect("not poisoned").len(), 2);
        }
    };
}

mod with_std {
    use std::sync;
    bodies!();
}

mod with_dpor {
    use dpor::sync;
    bodies!();

    /// Std has these since 1.91, 1.92 and 1.95.
    pub fn newest() {
        let mut values = [10_u32, 20, 30];
        let first: *mut u32 = values.as_mut_ptr();
        let x = AtomicPtr::new(first);
        assert_eq!(x.fetch_ptr_add(2, SeqCst), first);
        assert_eq!(x.fetch_ptr_sub(1, SeqCst), first.wrapping_add(2));
        assert_eq!(x.fetch_byte_add(4, SeqCst), first.wrapping_add(1));
        assert_eq!(x.fetch_byte_sub(8, SeqCst), first.wrapping_add(2));
        assert_eq!(x.fetch_or(1, SeqCst), first);
        assert_eq!(x.fetch_xor(3, SeqCst), first.map_addr(|a| a | 1));
        assert_eq!(x.fetch_and(!3, SeqCst), first.map_addr(|a| a | 2));
        // SAFETY: the pointer is what it was at first, with the provenance of the array.
        assert_eq!(unsafe { *x.load(SeqCst).add(1) }, 20);
        assert_eq!(AtomicUsize::new(1).update(SeqCst, SeqCst, |v| v + 1), 1);
        assert_eq!(
            AtomicUsize::new(1).try_update(SeqCst, SeqCst, |_| None),
            Err(1)
        );
        // SAFETY: zero is a number.
        assert_eq!(*unsafe { Arc::<u32>::new_zeroed().assume_init() }, 0);
        let zeroes = Arc::<[u32]>::new_zeroed_slice(2);
        // SAFETY: as above.
        assert_eq!(*unsafe { zeroes.assume_init() }, [0, 0]);
    }
}

macro_rules! tests {
    ($($body:ident)*) => {$(
        mod $body {
            #[test]
            fn does_the_same_outside_of_a_model_as_with_std() {
                super::with_std::$body();
                super::with_dpor::$body();
            }

            #[test]
            fn does_the_same_inside_of_a_model() {
                let report = dpor::Builder::new().check(super::with_dpor::$body);
                assert_eq!((report.executions, report.complete), (1, true));
            }
        }
    )*};
}
tests!(integers booleans pointers references inference mutexes);

#[test]
fn the_newest_methods_are_there_as_well() {
    with_dpor::newest();
    dpor::model(with_dpor::newest);
}
