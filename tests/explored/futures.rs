//! Are wake-ups explored, and lost ones found?

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Wake, Waker};

use dpor::cell::UnsafeCell;
use dpor::future::{AtomicWaker, JoinHandle, block_on, spawn};
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{Arc, Notify, mpsc};
use dpor::{Algorithm, Builder, FailureKind, hint, thread};

/// A flag that a task waits for.
#[derive(Default)]
struct Flag {
    set: AtomicBool,
    waker: AtomicWaker,
}

impl Flag {
    fn raise(&self) {
        self.set.store(true, SeqCst);
        self.waker.wake();
    }

    /// Waits for the flag; `careful` looks again after the registration.
    async fn wait(&self, careful: bool) {
        poll_fn(|context| {
            if self.set.load(SeqCst) {
                return Poll::Ready(());
            }
            self.waker.register_by_ref(context.waker());
            if careful && self.set.load(SeqCst) {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }
}

fn flag(careful: bool) {
    let flag = Arc::new(Flag::default());
    let theirs = flag.clone();
    let other = thread::spawn(move || theirs.raise());
    block_on(flag.wait(careful));
    other.join().unwrap();
}

#[test]
fn a_task_that_registers_and_looks_again_is_always_woken() {
    let report = Builder::new().check(|| flag(true));
    assert!(report.complete);
    assert!(report.executions > 2);
}

#[test]
fn a_task_that_looks_and_then_registers_can_sleep_for_ever() {
    let failure = Builder::new().explore(|| flag(false));
    let failure = failure.expect_err("the flag can be raised in between");
    assert_eq!(failure.kind(), FailureKind::Deadlock);
}

#[test]
fn a_waker_may_come_by_a_lock_that_no_event_shows() {
    let woken = std::sync::Arc::new(StdMutex::new(0));
    let count = woken.clone();
    let report = Builder::new().check(move || {
        let flag = std::sync::Arc::new(StdMutex::new((false, None)));
        let theirs = flag.clone();
        let task = spawn(poll_fn(move |context| {
            let mut flag = theirs.lock().unwrap();
            if flag.0 {
                return Poll::Ready(());
            }
            flag.1 = Some(context.waker().clone());
            Poll::Pending
        }));
        let count = count.clone();
        let other = thread::spawn(move || {
            // Plain memory is watched from here on.
            std::hint::black_box(Box::new(UnsafeCell::new(0))).with_mut(|_| ());
            let mut flag = flag.lock().unwrap();
            flag.0 = true;
            let waker: Option<Waker> = flag.1.take();
            drop(flag);
            if let Some(waker) = waker {
                waker.wake();
                *count.lock().unwrap() += 1;
            }
        });
        task.join().unwrap();
        other.join().unwrap();
    });
    assert!(report.complete);
    assert!(*woken.lock().unwrap() > 0);
}

#[test]
fn tasks_are_awaited_and_joined() {
    let seen = std::sync::Arc::new(StdMutex::new(BTreeSet::new()));
    let all = seen.clone();
    let report = Builder::new().check(move || {
        let x = Arc::new(AtomicUsize::new(0));
        let add = |n: usize| {
            let x = x.clone();
            spawn(async move { x.fetch_add(n, SeqCst) })
        };
        let (a, b) = (add(1), add(10));
        let a = block_on(a);
        let b = b.join().unwrap();
        assert_eq!(x.load(SeqCst), 11);
        all.lock().unwrap().insert((a, b));
    });
    assert!(report.complete);
    let seen: Vec<_> = seen.lock().unwrap().iter().copied().collect();
    assert_eq!(seen, [(0, 1), (10, 0)]);
}

/// How many executions there are of a task that spawns as many others and awaits them in turns.
fn awaits(tasks: usize) -> u64 {
    let report = Builder::new().check(move || {
        block_on(async move {
            let tasks: Vec<_> = (0..tasks).map(|n| spawn(async move { n })).collect();
            for (n, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.await, n);
            }
        });
    });
    assert!(report.complete && report.pruned == 0, "{report}");
    report.executions
}

#[test]
fn who_awaits_a_task_asks_whether_it_is_done_and_nothing_else() {
    // Each of them is done before it is asked for, or wakes who asks.
    assert_eq!([1, 2, 3, 4].map(awaits), [2, 4, 8, 16]);
}

#[test]
fn a_task_that_nobody_wakes_waits_where_it_was_spawned_and_its_owner_where_it_awaits() {
    let failure = Builder::new().explore(|| {
        block_on(async {
            let task = spawn(std::future::pending::<()>());
            task.await;
        });
    });
    let text = failure.expect_err("it is pending").to_string();
    let at = |line: &str| {
        let source = include_str!("futures.rs").lines();
        let number = source.take_while(|it| it.trim() != line).count() + 1;
        format!(" at tests/explored/futures.rs:{number}\n")
    };
    assert!(
        text.contains(&at("let task = spawn(std::future::pending::<()>());")),
        "{text}"
    );
    assert!(
        !text.contains("in a drop") && !text.contains("in std"),
        "{text}"
    );
    if crate::needs::lines("no place is looked up") {
        let row = text
            .lines()
            .find(|line| line.contains("await task: not done"));
        let row = row.unwrap_or_else(|| panic!("it is asked for in {text}"));
        assert!(
            at("task.await;")
                .trim_end()
                .ends_with(row.trim_end().rsplit(' ').next().unwrap()),
            "{text}"
        );
    }
}

#[test]
fn tasks_are_awaited_and_finish_in_the_program_s_words() {
    // In a simpler execution no task is awaited before it is done.
    let mut builder = Builder::new();
    builder.simplify = 1;
    let failure = builder.explore(|| {
        block_on(async {
            let hits = Arc::new(AtomicUsize::new(0));
            let spawned = || {
                let hits = hits.clone();
                spawn(async move {
                    let seen = hits.load(SeqCst);
                    hits.store(seen + 1, SeqCst);
                })
            };
            let tasks = [spawned(), spawned()];
            for task in tasks {
                task.await;
            }
            assert_eq!(hits.load(SeqCst), 2);
        });
    });
    let failure = failure.expect_err("an update is lost");
    let said = |of: &str| -> Vec<&str> {
        let events = failure.events().iter();
        let said = events.filter(|event| event.thread == of);
        let said = said.map(|event| &*event.what);
        said.filter(|what| what.contains("task")).collect()
    };
    assert_eq!(
        said("main"),
        [
            "await task: not done",
            "await task: done",
            "await task#2: done"
        ]
    );
    assert_eq!(
        said("main.1"),
        ["finish task: it is awaited", "wake main's task"]
    );
    assert_eq!(said("main.2"), ["finish task#2: nobody awaits it"]);
    // Nobody calls what comes at the end of a task, which stands where that was spawned.
    let at = |what: &str| {
        let mut events = failure.events().iter();
        let event = events.find(|event| event.what == what);
        event.expect("it was said").place
    };
    assert_eq!(at("wake main's task"), at("finish task: it is awaited"));
    assert_eq!(at("wake main's task").file(), file!());
}

#[test]
fn who_awaits_a_task_that_panics_has_its_panic() {
    let mut builder = Builder::new();
    builder.catch_panics = true;
    let report = builder.check(|| {
        let task = spawn(async { std::panic::panic_any(7) });
        let awaits = catch_unwind(AssertUnwindSafe(|| block_on(task)));
        let payload: Box<dyn std::any::Any + Send> = awaits.expect_err("it panics, too");
        assert_eq!(payload.downcast_ref::<i32>(), Some(&7));
    });
    assert_eq!(report.executions, 2);
}

#[test]
fn the_waker_that_a_task_was_awaited_with_last_is_woken() {
    /// Counts its wake-ups.
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let seen = dpor::outcomes(|| {
        let counts = [(); 2].map(|()| std::sync::Arc::new(Count(AtomicUsize::new(0))));
        let (go, gone) = mpsc::channel();
        let mut task = spawn(async move { gone.recv().unwrap() });
        for count in &counts {
            let waker = Waker::from(count.clone());
            let polled = Pin::new(&mut task).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
        go.send(()).unwrap();
        task.join().unwrap();
        counts.each_ref().map(|count| count.0.load(SeqCst))
    });
    assert_eq!(seen.into_keys().collect::<Vec<_>>(), [[0, 1]]);
}

#[test]
fn one_notification_is_taken_by_either_of_two_threads() {
    let failure = Builder::new().explore(|| {
        let notify = Notify::new();
        thread::scope(|s| {
            s.spawn(|| notify.wait());
            s.spawn(|| notify.wait());
            notify.notify();
        });
    });
    assert_eq!(
        failure.expect_err("one hangs").kind(),
        FailureKind::Deadlock
    );
    let seen = std::sync::Arc::new(StdMutex::new(BTreeSet::new()));
    let all = seen.clone();
    let report = Builder::new().check(move || {
        let (notify, first) = (Notify::new(), AtomicUsize::new(0));
        thread::scope(|s| {
            for me in 1..=2 {
                let (notify, first) = (&notify, &first);
                s.spawn(move || {
                    notify.wait();
                    first.compare_exchange(0, me, SeqCst, SeqCst).ok();
                    notify.notify();
                });
            }
            notify.notify();
        });
        all.lock().unwrap().insert(first.load(SeqCst));
    });
    assert!(report.complete);
    assert_eq!(*seen.lock().unwrap(), BTreeSet::from([1, 2]));
}

#[test]
fn outside_of_a_model_futures_run_on_real_threads() {
    let flag = std::sync::Arc::new(Flag::default());
    let theirs = flag.clone();
    let other = std::thread::spawn(move || theirs.raise());
    block_on(flag.wait(true));
    other.join().unwrap();
    let task = spawn(async { 5 });
    assert_eq!(task.join().unwrap(), 5);
    for _ in 0..100 {
        let (task, other) = (spawn(async { 5 }), spawn(async { 6 }));
        assert_eq!(block_on(async { task.await + other.await }), 11);
    }
}

#[test]
fn a_handle_that_outlives_its_model_gives_what_the_task_has_returned() {
    static HANDLE: StdMutex<Option<JoinHandle<u32>>> = StdMutex::new(None);
    let mut context = Context::from_waker(Waker::noop());
    let mut builder = Builder::new();
    // The handle is.
    builder.check_leaks = false;
    builder.check(|| {
        let mut task = spawn(async { 5 });
        let mut context = Context::from_waker(Waker::noop());
        if Pin::new(&mut task).poll(&mut context).is_pending() {
            *HANDLE.lock().unwrap() = Some(task);
        }
    });
    let mut task = HANDLE.lock().unwrap().take().expect("it was pending once");
    assert!(task.is_finished());
    let polled = Pin::new(&mut task).poll(&mut context);
    assert!(matches!(polled, Poll::Ready(5)), "{polled:?}");
}

/// Waits for the flag as `wait` does, with another thread that sets it or does not.
fn ask_again(
    set: bool,
    wait: impl Fn(&AtomicBool) + Send + Sync + 'static,
) -> impl Fn() + Send + Sync + 'static {
    move || {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let other = thread::spawn(move || theirs.store(set, SeqCst));
        wait(&flag);
        other.join().unwrap();
    }
}

/// A task that wakes itself to be asked again.
fn wakes_itself(flag: &AtomicBool) {
    block_on(poll_fn(|context| {
        if flag.load(SeqCst) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        hint::spin_loop();
        Poll::Pending
    }));
}

/// The same for a task that registers before it looks.
fn wakes_itself_registered(flag: &AtomicBool) {
    let waker = AtomicWaker::new();
    block_on(poll_fn(|context| {
        waker.register_by_ref(context.waker());
        if flag.load(SeqCst) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        hint::spin_loop();
        Poll::Pending
    }));
}

/// The same without a hint: to be asked again is one.
fn asks_again(flag: &AtomicBool) {
    block_on(poll_fn(|context| {
        if flag.load(SeqCst) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }));
}

/// The same by hand.
fn unparks_itself(flag: &AtomicBool) {
    while !flag.load(SeqCst) {
        thread::current().unpark();
        hint::spin_loop();
        thread::park();
    }
}

/// The same with the hint behind.
fn unparks_itself_and_spins(flag: &AtomicBool) {
    while !flag.load(SeqCst) {
        thread::current().unpark();
        thread::park();
        hint::spin_loop();
    }
}

/// The same for one that takes something else in each round and puts it back.
fn unparks_itself_and_puts_back(flag: &AtomicBool) {
    let taken = AtomicBool::new(false);
    while !flag.load(SeqCst) {
        taken.store(true, SeqCst);
        thread::current().unpark();
        thread::park();
        taken.store(false, SeqCst);
        hint::spin_loop();
    }
}

#[test]
fn who_wakes_itself_to_look_again_waits_for_a_change() {
    type Waits = fn(&AtomicBool);
    let waits: [(Waits, u64); 6] = [
        // As a thread that spins: the flag is set before the first, second, third look, or while it waits.
        (wakes_itself, 4),
        (asks_again, 4),
        (unparks_itself, 4),
        (unparks_itself_and_spins, 4),
        // The first round has changed something.
        (wakes_itself_registered, 5),
        // There is something to compare with from the second round on.
        (unparks_itself_and_puts_back, 6),
    ];
    for (wait, executions) in waits {
        let report = Builder::new().check(ask_again(true, wait));
        assert_eq!(report.executions, executions);
        let failure = Builder::new().explore(ask_again(false, wait));
        let failure = failure.expect_err("nobody sets the flag");
        assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
    }
}

/// A waker that is registered and woken without a lock, as in futures: who finds another thread in the middle of a wake-up
/// wakes itself.
struct LockFreeWaker {
    state: AtomicUsize,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the waker is only used by the thread that has found 0 in the state and changed it.
unsafe impl Sync for LockFreeWaker {}
// SAFETY: a waker may be sent.
unsafe impl Send for LockFreeWaker {}

impl LockFreeWaker {
    const REGISTERS: usize = 1;
    const WAKES: usize = 2;

    fn new() -> LockFreeWaker {
        LockFreeWaker {
            state: AtomicUsize::new(0),
            waker: UnsafeCell::new(None),
        }
    }

    fn register(&self, waker: &Waker) {
        let exchange = |from, to| self.state.compare_exchange(from, to, SeqCst, SeqCst);
        match exchange(0, LockFreeWaker::REGISTERS).unwrap_or_else(|state| state) {
            0 => {
                // SAFETY: no other thread uses the waker until the state is 0 again.
                self.waker.with_mut(|known| unsafe {
                    match &mut *known {
                        Some(known) if known.will_wake(waker) => {}
                        _ => *known = Some(waker.clone()),
                    }
                });
                if exchange(LockFreeWaker::REGISTERS, 0).is_err() {
                    // SAFETY: as above.
                    let waker = self.waker.with_mut(|waker| unsafe { (*waker).take() });
                    self.state.swap(0, SeqCst);
                    waker.expect("it was registered").wake();
                }
            }
            _ => {
                waker.wake_by_ref();
                hint::spin_loop();
            }
        }
    }

    fn wake(&self) {
        if self.state.fetch_or(LockFreeWaker::WAKES, SeqCst) == 0 {
            // SAFETY: no other thread uses the waker until the state is 0 again.
            let waker = self.waker.with_mut(|waker| unsafe { (*waker).take() });
            self.state.fetch_and(!LockFreeWaker::WAKES, SeqCst);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// A task that waits for so many notifiers, as `swap-buffer-queue` 0.2.1 does.
fn notified_by(notifiers: usize) {
    let shared = Arc::new((AtomicUsize::new(0), LockFreeWaker::new()));
    for _ in 0..notifiers {
        let shared = shared.clone();
        thread::spawn(move || {
            shared.0.fetch_add(1, SeqCst);
            shared.1.wake();
        });
    }
    block_on(poll_fn(move |context| {
        shared.1.register(context.waker());
        match shared.0.load(SeqCst) == notifiers {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }));
}

#[test]
fn who_wakes_itself_while_another_thread_wakes_it_waits_until_that_one_gets_on() {
    // Two hints come in turns: the task's own, and the one of the loop that polls it, which takes what the task has notified.
    for (notifiers, executions) in [(1, 5), (2, 190)] {
        for algorithm in [Algorithm::Optimal, Algorithm::Source, Algorithm::Bounded] {
            let mut builder = Builder::new();
            builder.algorithm = algorithm;
            let report = builder.check(move || notified_by(notifiers));
            assert!(report.complete, "{algorithm:?}: {report}");
            assert_eq!(report.executions, executions, "{algorithm:?}: {report}");
        }
    }
}

/// Who looks at a flag between two hints, and makes a token available before one and takes it before the other, by hand.
#[test]
fn who_takes_its_own_token_behind_another_hint_waits_for_a_change_of_what_others_change() {
    let waits = |flag: &AtomicBool| {
        while !flag.load(SeqCst) {
            thread::current().unpark();
            hint::spin_loop();
            thread::park();
            thread::yield_now();
        }
    };
    let report = Builder::new().check(ask_again(true, waits));
    assert_eq!(report.executions, 4, "{report}");
    let failure = Builder::new().explore(ask_again(false, waits));
    let failure = failure.expect_err("nobody sets the flag");
    assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
}

#[test]
fn what_is_told_of_a_task_and_of_a_notification_is_in_their_own_words() {
    let told = |f: fn()| {
        // In a simpler execution nobody has been woken before.
        let mut builder = Builder::new();
        builder.simplify = 1;
        let failure = builder.explore(f).expect_err("it waits for ever");
        assert_eq!(failure.kind(), FailureKind::Deadlock);
        failure.to_string()
    };
    // It is woken once, and polled three times.
    let task = told(|| {
        let waker = Arc::new(AtomicWaker::default());
        let theirs = waker.clone();
        let other = thread::spawn(move || theirs.wake());
        let mut polls = 0;
        block_on(poll_fn(move |context| {
            polls += 1;
            waker.register_by_ref(context.waker());
            if polls < 3 {
                Poll::<()>::Pending
            } else {
                Poll::Ready(())
            }
        }));
        other.join().unwrap();
    });
    for words in [
        "main       waits to be woken  at tests/explored/futures.rs:",
        "wake main's task",
        "  woken  ",
    ] {
        assert!(task.contains(words), "{words}: {task}");
    }
    let token = told(|| {
        let bell = Notify::new();
        thread::scope(|s| {
            s.spawn(|| bell.notify());
            bell.wait();
            bell.wait();
        });
    });
    for words in [
        "main       waits to be notified by bell  at tests/explored/futures.rs:",
        "notify bell  ",
        "notified by bell  ",
    ] {
        assert!(token.contains(words), "{words}: {token}");
    }
}

#[test]
fn nobody_is_tried_for_what_wakes_a_task() {
    static RUNS: StdMutex<u64> = StdMutex::new(0);
    let report = Builder::new().check(|| {
        *RUNS.lock().unwrap() += 1;
        let count = Arc::new(AtomicUsize::new(0));
        let tasks = [(); 2].map(|()| {
            let count = count.clone();
            spawn(async move { count.fetch_add(1, SeqCst) })
        });
        let block = || {
            let count = count.clone();
            thread::spawn(move || block_on(async { count.load(SeqCst) }))
        };
        let blocked = block();
        for task in tasks {
            task.join().unwrap();
        }
        blocked.join().unwrap();
    });
    // No execution is made once more to see who uses freed memory: std counts the wakers.
    assert!(report.executions > 2, "{report}");
    assert_eq!(*RUNS.lock().unwrap(), report.executions);
}
