//! Does a stack keep the promises of its module, also when a body panics, overflows or is
//! abandoned?

use crate::rt::coroutine::*;
use crate::rt::exec::run::stacks;
use std::cell::RefCell;
use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use std::{env, panic, process};

const STACK: usize = 64 * 1024;

fn suspended(resumed: Resumed) {
    assert!(matches!(resumed, Resumed::Suspended), "{resumed:?}");
}

pub(super) fn finished(resumed: Resumed) {
    assert!(matches!(resumed, Resumed::Finished(Ok(()))), "{resumed:?}");
}

fn panicked(resumed: Resumed) -> Payload {
    match resumed {
        Resumed::Finished(Err(payload)) => payload,
        other => panic!("expected a panic, got {other:?}"),
    }
}

fn overflowed(resumed: Resumed) {
    assert!(matches!(resumed, Resumed::Overflowed), "{resumed:?}");
}

/// A payload without a panic message on stderr.
fn quiet_panic<T: Any + Send>(payload: T) -> ! {
    panic::resume_unwind(Box::new(payload))
}

/// Counts its drops.
#[derive(Clone, Default)]
struct Counter(Rc<Cell<u32>>);

struct Counted(Counter);

impl Counter {
    fn guard(&self) -> Counted {
        Counted(self.clone())
    }

    fn get(&self) -> u32 {
        self.0.get()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.set(self.0.0.get() + 1);
    }
}

/// Uses up the stack that it runs on.
#[inline(never)]
fn recurse(depth: usize) -> usize {
    let frame = black_box([depth; 16]);
    if depth == usize::MAX {
        return 0;
    }
    recurse(depth + 1) + frame[depth % 16]
}

#[test]
fn a_body_runs_only_when_resumed_and_stops_where_it_suspends() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let mut pool = stacks(STACK);
    let start = |pool: &mut Pool, name: &'static str| {
        let log = Rc::clone(&log);
        pool.start(ThreadMain::of(move || {
            for step in 0..3 {
                log.borrow_mut().push((name, step));
                suspend();
            }
        }))
    };
    let mut a = start(&mut pool, "a");
    let mut b = start(&mut pool, "b");
    assert!(log.borrow().is_empty());
    suspended(a.resume());
    suspended(b.resume());
    suspended(b.resume());
    suspended(a.resume());
    assert_eq!(
        *log.borrow(),
        [("a", 0), ("b", 0), ("b", 1), ("a", 1)],
        "each body runs up to its next suspension"
    );
    suspended(a.resume());
    finished(a.resume());
    suspended(b.resume());
    finished(b.resume());
    assert_eq!(log.borrow().len(), 6);
}

#[test]
fn a_panic_ends_the_body_and_its_payload_arrives_whole() {
    let dropped = Counter::default();
    let guard = dropped.guard();
    let mut pool = stacks(STACK);
    let mut coroutine = pool.start(ThreadMain::of(move || {
        let _guard = guard;
        suspend();
        quiet_panic(String::from("seven"));
    }));
    suspended(coroutine.resume());
    assert_eq!(dropped.get(), 0);
    let payload = panicked(coroutine.resume());
    assert_eq!(*payload.downcast::<String>().unwrap(), "seven");
    assert_eq!(dropped.get(), 1, "the frames of the body were unwound");
    assert!(!thread::panicking());
}

#[test]
fn a_stack_serves_many_bodies_also_after_panics() {
    let mut pool = stacks(STACK);
    let mut stacks = Vec::new();
    for round in 0..10_u32 {
        let mut coroutine = pool.start(ThreadMain::of(move || {
            suspend();
            if round % 2 == 0 {
                quiet_panic(round);
            }
        }));
        stacks.push(coroutine.stack());
        suspended(coroutine.resume());
        if round % 2 == 0 {
            let payload = panicked(coroutine.resume());
            assert_eq!(*payload.downcast::<u32>().unwrap(), round);
        } else {
            finished(coroutine.resume());
        }
        pool.recycle(coroutine);
        assert_eq!(pool.idle(), 1);
    }
    stacks.dedup();
    assert_eq!(stacks.len(), 1, "one stack was enough");
}

#[test]
fn a_variable_has_the_same_distance_from_the_top_in_each_run_and_on_each_stack() {
    fn place(pool: &mut Pool, warm_up: bool) -> (Coroutine, usize) {
        let found = Rc::new(Cell::new(0));
        let result = Rc::clone(&found);
        let mut coroutine = pool.start(ThreadMain::of(move || {
            let variable = black_box(0_u8);
            found.set((&raw const variable).addr());
            if black_box(warm_up) {
                quiet_panic(());
            }
        }));
        let (low, high) = coroutine.stack();
        assert_eq!(high % PAGE, 0);
        assert_eq!(low % PAGE, 0);
        assert!(high - low >= STACK);
        coroutine.resume();
        assert!((low..high).contains(&result.get()));
        (coroutine, high - result.get())
    }
    let mut pool = stacks(STACK);
    let (coroutine, first) = place(&mut pool, true);
    pool.recycle(coroutine);
    let (reused, second) = place(&mut pool, false);
    let (_other, third) = place(&mut pool, false);
    assert_eq!(first, second);
    assert_eq!(first, third);
    pool.recycle(reused);
}

#[test]
fn a_stack_can_be_used_to_its_last_byte() {
    let mut pool = stacks(STACK);
    let mut coroutine = pool.start(ThreadMain::of(|| {}));
    let (low, high) = coroutine.stack();
    // SAFETY: no body runs on the stack, and all of it but the highest page, which holds the record
    // of `generator`, is unused memory of this test.
    unsafe { ptr::write_bytes(low as *mut u8, 1, high - low - PAGE) };
    finished(coroutine.resume());
    // Dropping the generator would panic now; the stack is leaked instead.
    drop(coroutine);
}

#[test]
fn an_overflow_is_reported_and_the_pool_goes_on() {
    let mut pool = stacks(STACK);
    for _ in 0..3 {
        let dropped = Counter::default();
        let guard = dropped.guard();
        let mut coroutine = pool.start(ThreadMain::of(move || {
            let _guard = guard;
            suspend();
            black_box(recurse(0));
        }));
        suspended(coroutine.resume());
        overflowed(coroutine.resume());
        pool.recycle(coroutine);
        assert_eq!(dropped.get(), 0, "nothing on the stack was dropped");
        assert_eq!(pool.idle(), 0, "the stack is not used again");
        let mut next = pool.start(ThreadMain::of(suspend));
        suspended(next.resume());
        finished(next.resume());
    }
}

#[test]
fn an_overflow_does_not_hit_what_has_room() {
    #[inline(never)]
    fn needs_room() {
        black_box(&mut [0_u8; 1000]);
    }

    #[inline(never)]
    fn recurse(inside: &Cell<bool>, depth: usize) -> usize {
        leave_room_on_coroutine::<2048>();
        inside.set(true);
        needs_room();
        inside.set(false);
        if depth == usize::MAX {
            return 0;
        }
        recurse(inside, depth + 1) + black_box([depth; 3])[depth % 3]
    }

    #[inline(never)]
    fn begin_at(offset: usize, inside: &Cell<bool>) -> usize {
        if offset == 0 {
            return recurse(inside, 0);
        }
        begin_at(offset - 1, inside) + black_box([offset; 5])[offset % 5]
    }

    let mut pool = stacks(STACK);
    for offset in 0..20 {
        let inside = Rc::new(Cell::new(false));
        let watched = Rc::clone(&inside);
        let mut coroutine = pool.start(ThreadMain::of(move || {
            begin_at(offset, &watched);
        }));
        overflowed(coroutine.resume());
        assert!(!inside.get(), "offset {offset}");
    }
}

#[test]
fn an_abandoned_body_is_never_unwound() {
    let dropped = Counter::default();
    let mut pool = stacks(STACK);
    for give_up in [
        |_: &mut Pool, coroutine: Coroutine| coroutine.abandon(),
        |_: &mut Pool, coroutine: Coroutine| drop(coroutine),
        |pool: &mut Pool, coroutine: Coroutine| pool.recycle(coroutine),
    ] {
        let guard = dropped.guard();
        let mut coroutine = pool.start(ThreadMain::of(move || {
            let _guard = guard;
            suspend();
        }));
        suspended(coroutine.resume());
        give_up(&mut pool, coroutine);
    }
    drop(pool);
    assert_eq!(dropped.get(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_stack_has_a_guard_page_until_it_is_given_up() {
    let mut pool = stacks(STACK);
    let mut coroutine = pool.start(ThreadMain::of(suspend));
    let (bottom, top) = coroutine.stack();
    let access = || {
        let maps = std::fs::read_to_string(fault::MAPS).unwrap();
        let access_at = |address| fault::access_at(&maps, address).map(str::to_owned);
        [bottom - 1, bottom, top - 1].map(|address| access_at(address).expect("it is mapped"))
    };
    suspended(coroutine.resume());
    assert_eq!(access(), ["---p", "rw-p", "rw-p"]);
    coroutine.abandon();
    assert_eq!(access(), ["rw-p"; 3]);
}

#[test]
fn a_body_that_never_began_is_dropped_and_its_stack_is_used_again() {
    let dropped = Counter::default();
    let mut pool = stacks(STACK);
    let guard = dropped.guard();
    let coroutine = pool.start(ThreadMain::of(move || {
        let _guard = guard;
        unreachable!("this body is not resumed");
    }));
    let stack = coroutine.stack();
    pool.recycle(coroutine);
    assert_eq!(dropped.get(), 1);
    let guard = dropped.guard();
    let coroutine = pool.start(ThreadMain::of(move || drop(guard)));
    assert_eq!(coroutine.stack(), stack);
    drop(coroutine);
    assert_eq!(dropped.get(), 2);
}

#[test]
fn a_body_can_run_a_pool_of_its_own() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let mut outer_pool = stacks(4 * STACK);
    let outer_log = Rc::clone(&log);
    let mut outer = outer_pool.start(ThreadMain::of(move || {
        let mut inner_pool = stacks(STACK);
        let start = |pool: &mut Pool, name: &'static str| {
            let log = Rc::clone(&outer_log);
            pool.start(ThreadMain::of(move || {
                log.borrow_mut().push(name);
                suspend();
                quiet_panic(name);
            }))
        };
        let mut first = start(&mut inner_pool, "first");
        let mut second = start(&mut inner_pool, "second");
        suspended(first.resume());
        suspended(second.resume());
        outer_log.borrow_mut().push("outer");
        // Both inner stacks are suspended while the outer one is away.
        suspend();
        for (inner, name) in [(second, "second"), (first, "first")] {
            let mut inner = inner;
            assert_eq!(*panicked(inner.resume()).downcast::<&str>().unwrap(), name);
            inner_pool.recycle(inner);
        }
        suspend();
        outer_log.borrow_mut().push("end");
    }));
    suspended(outer.resume());
    assert_eq!(*log.borrow(), ["first", "second", "outer"]);
    let mut sibling = outer_pool.start(ThreadMain::of(suspend));
    suspended(sibling.resume());
    suspended(outer.resume());
    finished(sibling.resume());
    finished(outer.resume());
    assert_eq!(log.borrow().last(), Some(&"end"));
}

#[test]
fn pools_of_several_os_threads_do_not_meet() {
    let sum = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut pool = stacks(STACK);
                let mut all: Vec<_> = (0..20)
                    .map(|_| {
                        pool.start(ThreadMain::of(|| {
                            for _ in 0..50 {
                                suspend();
                            }
                        }))
                    })
                    .collect();
                while let Some(mut coroutine) = all.pop() {
                    match coroutine.resume() {
                        Resumed::Suspended => all.insert(0, coroutine),
                        Resumed::Finished(Ok(())) => {
                            sum.fetch_add(1, Ordering::Relaxed);
                            pool.recycle(coroutine);
                        }
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), 80);
}

#[test]
#[should_panic(expected = "nothing to suspend")]
fn suspending_outside_of_a_coroutine_is_refused() {
    suspend();
}

#[test]
fn a_larger_stack_is_for_who_asks_for_as_much() {
    let mut pool = stacks(STACK);
    let mut on = |bytes: usize| {
        let mut coroutine = pool.stack_of(bytes).expect("there is memory for it");
        coroutine.put(ThreadMain::of(|| {}));
        finished(coroutine.resume());
        let stack = coroutine.stack();
        pool.recycle(coroutine);
        stack
    };
    let [own, larger, largest] = [1, 2 * STACK, 4 * STACK].map(&mut on);
    let size = |(bottom, top)| top - bottom;
    assert!(size(own) >= STACK && size(larger) >= 2 * STACK && size(largest) >= 4 * STACK);
    let again = [4 * STACK - 1, STACK, 2 * STACK].map(on);
    assert_eq!(again, [largest, own, larger]);
    let mut next = pool.start(ThreadMain::of(|| {}));
    finished(next.resume());
    assert_eq!(next.stack(), own);
}

#[test]
#[should_panic(expected = "nothing to run")]
fn a_finished_coroutine_cannot_be_resumed() {
    let mut pool = stacks(STACK);
    let mut coroutine = pool.start(ThreadMain::of(|| {}));
    finished(coroutine.resume());
    coroutine.resume();
}

/// The test runs in a process of its own, because it holds the lock around the panic hook: taking
/// or setting the hook would wait for that lock, and the test could wait for any other test that
/// does so.
#[test]
fn ending_stacks_leaves_the_panic_hook_alone() {
    const CHILD: &str = "DPOR_TEST_CHILD_PANIC_HOOK";
    if env::var_os(CHILD).is_none() {
        let name = concat!(
            module_path!(),
            "::ending_stacks_leaves_the_panic_hook_alone"
        );
        let (_crate, name) = name.split_once("::").unwrap();
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        return;
    }
    crate::rt::exec::run::prepare();
    let (entered, in_hook) = mpsc::channel();
    let (done, ended) = mpsc::channel::<()>();
    let ended = std::sync::Mutex::new(ended);
    panic::set_hook(Box::new(move |_| {
        entered.send(()).unwrap();
        // The timeout only limits a failing test; a passing test does not depend on it.
        if ended
            .lock()
            .unwrap()
            .recv_timeout(Duration::from_secs(30))
            .is_err()
        {
            process::exit(1);
        }
    }));
    let holder = thread::spawn(|| panic!("holds the hook"));
    in_hook.recv().unwrap();
    let mut pool = stacks(STACK);
    let mut idle = pool.start(ThreadMain::of(suspend));
    let mut left = pool.start(ThreadMain::of(suspend));
    let mut unwound = pool.start(ThreadMain::of(|| quiet_panic(())));
    suspended(idle.resume());
    finished(idle.resume());
    suspended(left.resume());
    panicked(unwound.resume());
    pool.recycle(idle);
    pool.recycle(unwound);
    assert_eq!(pool.idle(), 2);
    drop(pool);
    left.abandon();
    done.send(()).unwrap();
    assert!(holder.join().is_err());
}
