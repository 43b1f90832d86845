//! Does a modelled `Arc` explore what can happen to a shared value, and nothing more?

use std::any::Any;
use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex as StdMutex;
use std::sync::atomic::AtomicUsize as StdUsize;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Weak};
use dpor::{Algorithm, Builder, FailureKind, thread};
use pretty_assertions::assert_eq;

/// Explores `f` completely; gives the number of executions and the set of its results.
fn explore<R: Ord + Send + 'static>(
    f: impl Fn() -> R + Send + Sync + 'static,
) -> (u64, BTreeSet<R>) {
    let results = std::sync::Arc::new(StdMutex::new(BTreeSet::new()));
    let all = results.clone();
    let report = Builder::new().check(move || {
        let result = f();
        all.lock().unwrap().insert(result);
    });
    assert!(report.complete);
    assert_eq!(report.pruned, 0);
    let results = std::mem::take(&mut *results.lock().unwrap());
    (report.executions, results)
}

/// Runs the bodies in threads of their own; gives their results.
fn run<R: Send + 'static>(bodies: Vec<Box<dyn FnOnce() -> R + Send>>) -> Vec<R> {
    let handles: Vec<_> = bodies.into_iter().map(thread::spawn).collect();
    handles
        .into_iter()
        .map(|handle| handle.join().expect("no thread panics"))
        .collect()
}

/// A value whose end the program sees: it is counted, outside of the model.
struct Seen(&'static StdUsize);

impl Drop for Seen {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn threads_that_clone_and_drop_a_plain_value_have_one_execution() {
    for threads in 1..=6 {
        let (executions, _) = explore(move || {
            let shared = Arc::new(AtomicUsize::new(0));
            let handles: Vec<_> = (0..threads)
                .map(|_| {
                    let shared = shared.clone();
                    thread::spawn(move || drop(shared.clone()))
                })
                .collect();
            drop(shared);
            for handle in handles {
                handle.join().unwrap();
            }
        });
        assert_eq!(executions, 1);
    }
}

#[test]
fn a_value_with_a_destructor_has_one_execution_for_each_thread_that_may_drop_it() {
    static DROPPED: StdUsize = StdUsize::new(0);
    let mut total = 0;
    for threads in 1..=6 {
        let (executions, _) = explore(move || {
            let shared = Arc::new(Seen(&DROPPED));
            let handles: Vec<_> = (1..threads)
                .map(|_| {
                    let shared = shared.clone();
                    thread::spawn(move || drop(shared))
                })
                .collect();
            drop(shared);
            for handle in handles {
                handle.join().unwrap();
            }
        });
        assert_eq!(executions, threads);
        total += executions as usize;
        assert_eq!(DROPPED.load(SeqCst), total, "dropped once per execution");
    }
}

#[test]
fn every_thread_may_be_the_one_that_runs_the_destructor() {
    struct Tells(std::sync::Arc<StdUsize>);
    impl Drop for Tells {
        fn drop(&mut self) {
            // The main thread has the test's.
            let name = thread::current()
                .name()
                .map_or(0, |n| n.parse().unwrap_or(0));
            self.0.store(name, SeqCst);
        }
    }
    let (executions, last) = explore(|| {
        let told = std::sync::Arc::new(StdUsize::new(9));
        let shared = Arc::new(Tells(told.clone()));
        let handles: Vec<_> = (1..=3)
            .map(|name| {
                let shared = shared.clone();
                thread::Builder::new()
                    .name(name.to_string())
                    .spawn(move || drop(shared))
                    .unwrap()
            })
            .collect();
        drop(shared);
        for handle in handles {
            handle.join().unwrap();
        }
        told.load(SeqCst)
    });
    assert_eq!(executions, 4);
    assert_eq!(last, [0, 1, 2, 3].into());
}

#[test]
fn a_count_may_be_read_before_and_after_other_threads_change_it() {
    let (executions, seen) = explore(|| {
        let shared = Arc::new(0);
        let other = shared.clone();
        let thread = thread::spawn(move || drop(other));
        let seen = Arc::strong_count(&shared);
        thread.join().unwrap();
        seen
    });
    assert_eq!((executions, seen), (2, [1, 2].into()));

    let (executions, seen) = explore(|| {
        let shared = Arc::new(0);
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let _weak = Arc::downgrade(&other);
        });
        let seen = Arc::weak_count(&shared);
        thread.join().unwrap();
        seen
    });
    // Before both, between the two, and after the weak reference is gone; whether the other
    // reference is gone as well is a matter of the same count.
    assert_eq!((executions, seen), (4, [0, 1].into()));
}

#[test]
fn of_two_threads_that_unwrap_one_wins_or_neither() {
    let (_, won) = explore(|| {
        let shared = Arc::new(7);
        let other = shared.clone();
        let unwrap = |shared| Box::new(move || Arc::try_unwrap(shared).is_ok());
        let won = run(vec![unwrap(shared) as _, unwrap(other) as _]);
        (won[0], won[1])
    });
    // A failed try gives the reference back and drops it, after which the other one succeeds.
    assert_eq!(won, [(false, false), (false, true), (true, false)].into());
}

#[test]
fn of_threads_that_give_up_their_references_exactly_one_gets_the_value() {
    for threads in 1..=4 {
        let (executions, winners) = explore(move || {
            let shared = Arc::new(7);
            let bodies = (0..threads)
                .map(|_| {
                    let shared = shared.clone();
                    Box::new(move || Arc::into_inner(shared)) as _
                })
                .collect();
            drop(shared);
            let got = run(bodies);
            let winners: Vec<_> = (0..threads).filter(|&i| got[i] == Some(7)).collect();
            assert_eq!(winners.len(), 1);
            winners[0]
        });
        assert_eq!(executions, threads as u64);
        assert_eq!(winners, (0..threads).collect());
    }
}

#[test]
fn a_thread_that_asks_for_the_value_competes_with_one_that_only_drops() {
    let (executions, got) = explore(|| {
        let shared = Arc::new(7);
        let other = shared.clone();
        let thread = thread::spawn(move || drop(other));
        let got = Arc::into_inner(shared);
        thread.join().unwrap();
        got
    });
    assert_eq!((executions, got), (2, [None, Some(7)].into()));
}

#[test]
fn an_upgrade_comes_before_or_after_the_last_drop() {
    static DROPPED: StdUsize = StdUsize::new(0);
    let (executions, upgraded) = explore(|| {
        let shared = Arc::new(Seen(&DROPPED));
        let weak = Arc::downgrade(&shared);
        let thread = thread::spawn(move || weak.upgrade().is_some());
        drop(shared);
        thread.join().unwrap()
    });
    // Upgraded and dropped before the last drop, upgraded and dropped after it, or too late.
    assert_eq!((executions, upgraded), (3, [false, true].into()));
    assert_eq!(DROPPED.load(SeqCst), 3);
}

#[test]
fn releases_of_several_values_by_whoever_is_last_are_planned_as_they_will_happen() {
    struct Value {
        number: AtomicUsize,
        _twice: [Arc<AtomicUsize>; 2],
    }
    struct Looks(Option<Arc<Value>>);
    impl Drop for Looks {
        fn drop(&mut self) {
            if let Some(value) = &self.0 {
                value.number.load(SeqCst);
            }
        }
    }
    for algorithm in [Algorithm::Optimal, Algorithm::Source, Algorithm::Bounded] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        let report = builder.check(|| {
            let inner = Arc::new(AtomicUsize::new(0));
            let value = Arc::new(Value {
                number: AtomicUsize::new(0),
                _twice: [inner.clone(), inner],
            });
            let [a, b, c] = [value.clone(), value.clone(), value.clone()];
            let handles = [
                thread::spawn(move || Looks(Some(a))),
                thread::spawn(move || {
                    drop(b);
                    Looks(None)
                }),
                thread::spawn(move || {
                    c.number.store(1, SeqCst);
                    drop(c);
                    Looks(None)
                }),
            ];
            drop(value);
            // What the threads have returned is dropped by them or by this one.
            drop(handles);
        });
        assert_eq!((report.executions, report.complete), (48, true));
    }
}

#[test]
fn weak_references_of_many_threads_commute() {
    for threads in 1..=5 {
        let (executions, _) = explore(move || {
            let shared = Arc::new(0);
            let bodies = (0..threads)
                .map(|_| {
                    let weak = Arc::downgrade(&shared);
                    Box::new(move || drop((weak.clone(), weak))) as _
                })
                .collect();
            run::<()>(bodies);
        });
        assert_eq!(executions, 1);
    }
}

#[test]
fn get_mut_sees_references_of_both_kinds_that_other_threads_drop() {
    let (executions, got) = explore(|| {
        let mut shared = Arc::new(0);
        let other = shared.clone();
        let thread = thread::spawn(move || drop(other));
        let got = Arc::get_mut(&mut shared).is_some();
        thread.join().unwrap();
        got
    });
    assert_eq!((executions, got), (2, [false, true].into()));

    let (executions, got) = explore(|| {
        let mut shared = Arc::new(0);
        let other = Arc::downgrade(&shared);
        let thread = thread::spawn(move || drop(other));
        let got = Arc::get_mut(&mut shared).is_some();
        thread.join().unwrap();
        got
    });
    assert_eq!((executions, got), (2, [false, true].into()));
}

#[test]
fn get_mut_is_never_granted_beside_a_reference_that_was_upgraded() {
    let (_, got) = explore(|| {
        let mut shared = Arc::new(0);
        let weak = Arc::downgrade(&shared);
        let thread = thread::spawn(move || {
            let strong = weak.upgrade();
            drop(weak);
            strong.map(|strong| *strong)
        });
        let got = Arc::get_mut(&mut shared).map(|value| *value = 1).is_some();
        (got, thread.join().unwrap())
    });
    // The main thread keeps the value, so that the upgrade always succeeds; `get_mut` succeeds only
    // once both references of the other thread are gone, so it sees the value from before.
    assert_eq!(got, [(false, Some(0)), (true, Some(0))].into());
}

#[test]
fn make_mut_clones_while_the_value_is_shared_and_leaves_weak_references_behind() {
    let (executions, got) = explore(|| {
        let mut mine = Arc::new(5);
        let other = mine.clone();
        let thread = thread::spawn(move || *other);
        let before = Arc::as_ptr(&mine);
        *Arc::make_mut(&mut mine) += 1;
        assert_eq!(*mine, 6);
        assert_eq!(thread.join().unwrap(), 5);
        before == Arc::as_ptr(&mine)
    });
    // The drop and the take, and once more with the drop of what was cloned.
    assert_eq!((executions, got), (2, [false, true].into()));

    dpor::model(|| {
        let mut mine = Arc::new(String::from("a"));
        let weak = Arc::downgrade(&mine);
        Arc::make_mut(&mut mine).push('b');
        assert_eq!((mine.as_str(), weak.upgrade()), ("ab", None));
        let before = Arc::as_ptr(&mine);
        Arc::make_mut(&mut mine).push('c');
        assert_eq!(Arc::as_ptr(&mine), before);
        assert_eq!(Arc::strong_count(&mine), 1);
    });
}

#[test]
fn a_cyclic_value_is_reached_from_another_thread_only_once_it_is_there() {
    let (_, seen) = explore(|| {
        let mut thread = None;
        let shared = Arc::new_cyclic(|weak: &Weak<usize>| {
            let weak = weak.clone();
            thread = Some(thread::spawn(move || weak.upgrade().map(|value| *value)));
            8
        });
        let seen = thread.unwrap().join().unwrap();
        assert_eq!((*shared, Arc::strong_count(&shared)), (8, 1));
        assert_eq!(Arc::weak_count(&shared), 0);
        seen
    });
    assert_eq!(seen, [None, Some(8)].into());
}

#[test]
fn a_loop_that_clones_while_it_spins_is_a_wait() {
    let (executions, _) = explore(|| {
        let flag = Arc::new(AtomicUsize::new(0));
        let other = flag.clone();
        let thread = thread::spawn(move || other.store(1, SeqCst));
        while flag.clone().load(SeqCst) == 0 {
            thread::yield_now();
        }
        thread.join().unwrap();
    });
    assert!((1..10).contains(&executions));
}

#[test]
fn a_failed_execution_drops_the_value_once() {
    static DROPPED: StdUsize = StdUsize::new(0);
    let failed = catch_unwind(|| {
        let mut builder = Builder::new();
        // No other execution follows, to find a simpler one.
        builder.simplify = 0;
        builder.check(|| {
            let shared = Arc::new(Seen(&DROPPED));
            let other = shared.clone();
            let thread = thread::spawn(move || drop((other, AtomicUsize::new(0))));
            let weak = Arc::downgrade(&shared);
            drop(shared);
            thread.join().unwrap();
            assert!(weak.upgrade().is_some(), "nothing is left");
        });
    });
    assert!(failed.is_err());
    assert_eq!(DROPPED.load(SeqCst), 1);
}

#[test]
fn a_destructor_that_clones_what_is_gone_does_not_hide_the_failure() {
    struct Last(*const i32);
    impl Drop for Last {
        fn drop(&mut self) {
            // SAFETY: none is needed: the model finds out that the last reference has gone before.
            let mine = ManuallyDrop::new(unsafe { Arc::from_raw(self.0) });
            drop(Arc::clone(&mine));
        }
    }
    let failure = Builder::new().explore(|| {
        let pointer = Arc::into_raw(Arc::new(7));
        let _last = Last(pointer);
        for _ in 0..2 {
            // SAFETY: as above.
            drop(unsafe { Arc::from_raw(pointer) });
        }
    });
    let failure = failure.expect_err("it is dropped twice");
    assert_eq!(failure.kind(), FailureKind::UseAfterFree, "{failure}");
}

#[test]
fn an_arc_in_a_static_keeps_its_count_from_one_execution_to_the_next() {
    static SHARED: std::sync::LazyLock<Arc<usize>> = std::sync::LazyLock::new(|| Arc::new(3));
    assert_eq!(**SHARED, 3);
    let (executions, seen) = explore(|| {
        let thread = thread::spawn(|| drop(SHARED.clone()));
        let seen = Arc::strong_count(&SHARED);
        thread.join().unwrap();
        seen
    });
    assert_eq!((executions, seen), (3, [1, 2].into()));
    assert_eq!(Arc::strong_count(&SHARED), 1);
}

#[test]
fn outside_of_a_model_threads_of_the_system_share_a_value() {
    static DROPPED: StdUsize = StdUsize::new(0);
    let shared = Arc::new((Seen(&DROPPED), StdUsize::new(0)));
    let weak = Arc::downgrade(&shared);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let shared = shared.clone();
            let weak = weak.clone();
            std::thread::spawn(move || {
                for _ in 0..10_000 {
                    let clone = weak.upgrade().expect("the thread has a reference");
                    clone.1.fetch_add(1, SeqCst);
                    let weak = Arc::downgrade(&clone);
                    drop((clone, weak));
                }
                drop(shared);
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(shared.1.load(SeqCst), 40_000);
    assert_eq!(
        (Arc::strong_count(&shared), Arc::weak_count(&shared)),
        (1, 1)
    );
    drop(shared);
    assert_eq!(DROPPED.load(SeqCst), 1);
    assert!(weak.upgrade().is_none());
    assert_eq!(weak.weak_count(), 0);
}

#[test]
fn outside_of_a_model_one_thread_of_the_system_gets_the_value() {
    for _ in 0..500 {
        let shared = Arc::new(String::from("value"));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let shared = shared.clone();
                std::thread::spawn(move || Arc::into_inner(shared))
            })
            .collect();
        let mine = Arc::into_inner(shared).is_some() as usize;
        let theirs = threads
            .into_iter()
            .filter_map(|thread| thread.join().unwrap())
            .count();
        assert_eq!(mine + theirs, 1);
    }
}

#[test]
fn a_value_keeps_its_alignment_whatever_is_in_front_of_it() {
    #[repr(align(64))]
    struct Wide(u8);
    #[repr(align(1024))]
    struct Wider(u8);
    fn address<T: ?Sized>(shared: &Arc<T>) -> usize {
        Arc::as_ptr(shared).cast::<u8>().addr()
    }
    let wide = Arc::new(Wide(1));
    assert_eq!((address(&wide) % 64, wide.0), (0, 1));
    let wider: Arc<[Wider]> = Arc::from([Wider(1), Wider(2)]);
    assert_eq!((address(&wider) % 1024, wider[1].0), (0, 2));
    // SAFETY: the pointer is from `into_raw`.
    let again = unsafe { Arc::from_raw(Arc::into_raw(wider.clone())) };
    assert!(Arc::ptr_eq(&wider, &again));
    let nothing = Arc::new(());
    let weak = Arc::downgrade(&nothing).into_raw();
    // SAFETY: the pointer is from `into_raw`.
    let weak = unsafe { Weak::from_raw(weak) };
    assert_eq!(weak.upgrade(), Some(nothing));
    assert_eq!(size_of::<Option<Arc<u8>>>(), size_of::<usize>());
}

#[test]
fn what_has_no_size_comes_from_a_box_or_from_stds_arc() {
    dpor::model(|| {
        let called: Arc<dyn Fn(usize) -> usize + Send + Sync> =
            Arc::from(Box::new(|x: usize| x + 1) as Box<dyn Fn(usize) -> usize + Send + Sync>);
        let other = called.clone();
        let thread = thread::spawn(move || other(1));
        assert_eq!((called(2), thread.join().unwrap()), (3, 2));
        let any = Arc::from_std(
            std::sync::Arc::new(String::from("x")) as std::sync::Arc<dyn Any + Send + Sync>
        );
        let any = any.downcast::<u8>().expect_err("it is a string");
        assert_eq!(*any.downcast::<String>().expect("it is"), "x");
        let text: Arc<str> = "text".into();
        let bytes: Arc<[u8]> = text.clone().into();
        assert_eq!((&*text, &*bytes), ("text", &b"text"[..]));
        let boxes: Arc<[Box<usize>]> = (0..3).map(Box::new).collect();
        assert_eq!(boxes.iter().map(|x| **x).sum::<usize>(), 3);
    });
}

#[test]
#[should_panic(expected = "was given an Arc that is shared: 2 references and 0 weak ones")]
fn a_std_arc_that_is_shared_cannot_be_taken_over() {
    let std = std::sync::Arc::new(1);
    let _other = std.clone();
    Arc::from_std(std);
}

#[test]
fn a_destructor_that_panics_does_not_keep_the_block() {
    struct Panics(#[expect(dead_code)] Box<u8>);
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    let shared = Arc::new(Panics(Box::new(1)));
    let weak = Arc::downgrade(&shared);
    let caught = catch_unwind(AssertUnwindSafe(|| drop(shared)));
    assert!(caught.is_err());
    // The weak reference is the only one that is left, and frees the block.
    assert_eq!((weak.strong_count(), weak.weak_count()), (0, 0));
    assert!(weak.upgrade().is_none());
    let found = Builder::new()
        .explore(|| drop(Arc::new(Panics(Box::new(1)))))
        .expect_err("the destructor panics")
        .to_string();
    assert!(found.contains("drop arc, the last one"), "{found}");
}

#[test]
fn a_panic_while_a_cyclic_value_is_made_leaves_nothing_to_upgrade() {
    let mut kept = None;
    let made = catch_unwind(AssertUnwindSafe(|| {
        Arc::<usize>::new_cyclic(|weak| {
            kept = Some(weak.clone());
            panic!("not made")
        })
    }));
    assert!(made.is_err());
    assert!(kept.is_some_and(|weak| weak.upgrade().is_none()));
}

/// A pointer to a reference that is swapped while somebody may be about to take one of its own.
fn swapped<T: Send + Sync + 'static>(first: T, second: T) {
    use dpor::sync::atomic::AtomicPtr;

    let current = std::sync::Arc::new(AtomicPtr::new(Arc::into_raw(Arc::new(first)).cast_mut()));
    let theirs = current.clone();
    let reader = thread::spawn(move || {
        let found = theirs.load(SeqCst);
        // SAFETY: this is the mistake: the reference may be gone by now.
        unsafe {
            Arc::increment_strong_count(found);
            drop(Arc::from_raw(found));
        }
    });
    let old = current.swap(Arc::into_raw(Arc::new(second)).cast_mut(), SeqCst);
    // SAFETY: the reference that was there is this thread's now.
    drop(unsafe { Arc::from_raw(old) });
    reader.join().unwrap();
    // SAFETY: the reader has ended.
    drop(unsafe { Arc::from_raw(current.load(SeqCst)) });
}

#[test]
fn a_reference_that_is_added_to_a_pointer_may_come_too_late() {
    let number = Builder::new().explore(|| swapped(1_u32, 2));
    let text = Builder::new().explore(|| swapped("1".to_owned(), "2".to_owned()));
    for failure in [number, text] {
        let failure = failure.expect_err("the last reference may be dropped before");
        assert!(failure.to_string().contains("use after free"), "{failure}");
    }
}

#[test]
fn a_reference_that_is_added_to_a_pointer_while_there_is_one_is_one_more() {
    let report = Builder::new().check(|| {
        let shared = Arc::new(7);
        let pointer = Arc::as_ptr(&shared).addr();
        let keeps = shared.clone();
        let other = thread::spawn(move || {
            let pointer = Arc::as_ptr(&keeps);
            // SAFETY: `keeps` is a reference.
            unsafe { Arc::increment_strong_count(pointer) };
            // SAFETY: it has just been counted.
            assert_eq!(*unsafe { Arc::from_raw(pointer) }, 7);
        });
        assert_eq!(Arc::as_ptr(&shared).addr(), pointer);
        drop(shared);
        other.join().unwrap();
    });
    assert!(report.complete);
}
