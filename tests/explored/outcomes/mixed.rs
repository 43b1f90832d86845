//! What comes of primitives that meet: in a destructor, in the middle of a wait, or at the end of a thread?

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc as StdArc, Mutex as StdMutex};
use std::time::Duration;

use dpor::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};
use dpor::sync::mpsc::{self, Receiver, Sender};
use dpor::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, Once, OnceLock, RwLock};
use dpor::{Builder, FailureKind, thread};

use super::{outcomes, set};

const LONG: Duration = Duration::from_secs(3600);

/// What `f` returns in all executions, where a thread may panic.
fn with_panics<T: Ord + Send + 'static>(f: impl Fn() -> T + Send + Sync + 'static) -> Vec<T> {
    let seen = StdArc::new(StdMutex::new(BTreeSet::new()));
    let all = seen.clone();
    let mut builder = Builder::new();
    builder.catch_panics = true;
    // What the closure sees in a further pass would count, too.
    builder.thorough = dpor::Thorough::Off;
    let report = builder.check(move || {
        let value = f();
        all.lock().unwrap().insert(value);
    });
    assert!(report.complete && report.pruned == 0, "{report}");
    std::mem::take(&mut *seen.lock().unwrap())
        .into_iter()
        .collect()
}

#[test]
fn those_that_are_notified_at_once_get_the_lock_in_any_order() {
    let seen = set(|| {
        let (lock, changed) = (Mutex::new((false, Vec::new())), Condvar::new());
        thread::scope(|s| {
            for me in 0..2 {
                let (lock, changed) = (&lock, &changed);
                s.spawn(move || {
                    let guard = lock.lock().unwrap();
                    let mut guard = changed.wait_while(guard, |state| !state.0).unwrap();
                    guard.1.push(me);
                });
            }
            lock.lock().unwrap().0 = true;
            changed.notify_all();
        });
        lock.into_inner().unwrap().1
    });
    assert_eq!(seen, [[0, 1], [1, 0]]);
}

#[test]
fn a_notification_is_not_lost_to_a_waiter_whose_time_is_over() {
    // Who timed out, and whether the one that has all the time of the world goes on.
    let seen = set(|| {
        let (lock, changed) = (Mutex::new(0), Condvar::new());
        thread::scope(|s| {
            let timed = s.spawn(|| {
                let mut guard = lock.lock().unwrap();
                *guard += 1;
                let (guard, result) = changed.wait_timeout(guard, LONG).unwrap();
                (result.timed_out(), *guard)
            });
            let mut guard = lock.lock().unwrap();
            while *guard == 0 {
                drop(guard);
                thread::yield_now();
                guard = lock.lock().unwrap();
            }
            *guard = 7;
            changed.notify_one();
            drop(guard);
            timed.join().unwrap()
        })
    });
    assert_eq!(seen, [(false, 7), (true, 1), (true, 7)]);
}

#[test]
fn who_waits_with_a_time_hears_of_the_end_of_the_last_sender_or_not() {
    let seen = set(|| {
        let (sender, receiver) = mpsc::channel::<()>();
        thread::spawn(move || drop(sender));
        let first = receiver.recv_timeout(LONG);
        (
            first.unwrap_err() == RecvTimeoutError::Timeout,
            receiver.recv().is_err(),
        )
    });
    assert_eq!(seen, [(false, true), (true, true)]);
}

#[test]
fn who_waits_hears_that_the_lock_was_poisoned_meanwhile() {
    let seen = with_panics(|| {
        let pair = Arc::new((Mutex::new(0), Condvar::new()));
        let theirs = pair.clone();
        let other = thread::spawn(move || {
            let mut guard = theirs.0.lock().unwrap();
            *guard = 1;
            theirs.1.notify_one();
            panic!("as planned");
        });
        let (waited, poisoned) = match pair.0.lock() {
            Ok(guard) if *guard == 0 => (true, pair.1.wait(guard).is_err()),
            Ok(_) => (false, false),
            Err(_) => (false, true),
        };
        other.join().unwrap_err();
        (waited, poisoned)
    });
    assert_eq!(seen, [(false, true), (true, true)]);
}

/// Waits when it is dropped; gives whether the lock was poisoned then.
struct Waits<'a>(
    Option<MutexGuard<'a, bool>>,
    &'a Condvar,
    StdArc<StdMutex<Option<bool>>>,
);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut poisoned = false;
        let mut guard = self.0.take().unwrap();
        while !*guard {
            guard = match self.1.wait(guard) {
                Ok(guard) => guard,
                Err(error) => {
                    poisoned = true;
                    error.into_inner()
                }
            };
        }
        self.2.lock().unwrap().replace(poisoned);
    }
}

#[test]
fn a_wait_of_a_thread_that_unwinds_poisons_nothing_but_the_end_of_its_guard_does() {
    let seen = with_panics(|| {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let theirs = pair.clone();
        let told = StdArc::new(StdMutex::new(None));
        let tells = told.clone();
        let other = thread::spawn(move || {
            let _waits = Waits(Some(theirs.0.lock().unwrap()), &theirs.1, tells);
            panic!("as planned");
        });
        let (mut guard, before) = match pair.0.lock() {
            Ok(guard) => (guard, false),
            Err(error) => (error.into_inner(), true),
        };
        *guard = true;
        pair.1.notify_one();
        drop(guard);
        other.join().unwrap_err();
        let told = *told.lock().unwrap();
        (before, told, pair.0.is_poisoned())
    });
    // Either main is first, or the other one waits for it.
    assert_eq!(seen, [(false, Some(false), true)]);
}

#[test]
fn a_token_outlives_the_waits_that_come_before_its_park() {
    let (seen, _) = outcomes(|| {
        let (lock, main) = (Arc::new(Mutex::new(0)), thread::current());
        let theirs = lock.clone();
        let other = thread::spawn(move || {
            let mut guard = theirs.lock().unwrap();
            main.unpark();
            *guard += 1;
        });
        let found = *lock.lock().unwrap();
        thread::park();
        other.join().unwrap();
        found
    });
    assert_eq!(seen.into_keys().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn an_initialisation_that_comes_back_to_itself_waits_for_ever() {
    fn deadlocks(f: fn()) {
        let failure = Builder::new().explore(f).expect_err("it waits for itself");
        assert_eq!(failure.kind(), FailureKind::Deadlock, "{failure}");
    }
    deadlocks(|| {
        let once = Once::new();
        once.call_once(|| once.call_once(|| ()));
    });
    deadlocks(|| {
        let cell = OnceLock::new();
        cell.get_or_init(|| *cell.get_or_init(|| 1));
    });
}

/// Locks when it is dropped.
struct Locks(Arc<Mutex<Vec<String>>>);

impl Drop for Locks {
    fn drop(&mut self) {
        let me = thread::current();
        let name = me.name().filter(|name| name.len() == 1);
        let words = format!("dropped by {}", name.unwrap_or("main"));
        self.0.lock().unwrap().push(words);
    }
}

fn named<T: Send + 'static>(
    name: &str,
    f: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(f)
        .unwrap()
}

#[test]
fn whoever_is_the_last_owner_locks_in_the_destructor() {
    let seen = set(|| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let value = Arc::new(Locks(log.clone()));
        let handles = ["a", "b"].map(|name| {
            let (value, log) = (value.clone(), log.clone());
            named(name, move || {
                log.lock().unwrap().push(name.to_owned());
                drop(value);
            })
        });
        drop(value);
        handles
            .into_iter()
            .for_each(|handle| handle.join().unwrap());
        log.lock().unwrap().join(", ")
    });
    // Main may be the last one that drops its reference.
    let possible = [
        "a, b, dropped by a",
        "a, b, dropped by b",
        "a, b, dropped by main",
        "b, a, dropped by a",
        "b, a, dropped by b",
        "b, a, dropped by main",
    ];
    assert_eq!(seen, possible);
}

dpor::thread_local! {
    static FIRST: Says = Says::new("first");
    static SECOND: Says = Says::new("second");
    static SENDS: SendsAtEnd = const { SendsAtEnd(Cell::new(None)) };
    static JOINS: JoinsAtEnd = const { JoinsAtEnd(Cell::new(None)) };
}

struct Says(&'static str, Cell<Option<StdArc<StdMutex<Vec<String>>>>>);

impl Says {
    fn new(name: &'static str) -> Says {
        Says(name, Cell::new(None))
    }
}

impl Drop for Says {
    fn drop(&mut self) {
        let Some(log) = self.1.take() else { return };
        let say = |what: &str| log.lock().unwrap().push(format!("{} {what}", self.0));
        say("ends");
        match self.0 {
            // It is made anew, and dropped later.
            "first" => match SECOND.try_with(|second| second.1.set(Some(log.clone()))) {
                Ok(()) => say("has used second"),
                Err(_) => say("comes after second"),
            },
            _ => match FIRST.try_with(|_| ()) {
                Ok(()) => say("has used first"),
                Err(_) => say("comes after first"),
            },
        }
    }
}

/// What is said at the end of a thread that has used these two.
fn said(uses_second: bool, spawn_and_join: fn(Box<dyn FnOnce() + Send>)) -> String {
    let log = StdArc::new(StdMutex::new(Vec::new()));
    let theirs = log.clone();
    spawn_and_join(Box::new(move || {
        FIRST.with(|first| first.1.set(Some(theirs.clone())));
        if uses_second {
            SECOND.with(|second| second.1.set(Some(theirs.clone())));
        }
    }));
    let log = log.lock().unwrap();
    log.join(", ")
}

#[test]
fn locals_that_use_each_other_in_their_destructors_end_as_those_of_std() {
    for uses_second in [false, true] {
        let seen = set(move || said(uses_second, |f| thread::spawn(f).join().unwrap()));
        // Outside of a model these are std's.
        let by_std = said(uses_second, |f| std::thread::spawn(f).join().unwrap());
        assert!(by_std.contains("second ends"), "{by_std}");
        assert_eq!(seen, [by_std]);
    }
}

struct SendsAtEnd(Cell<Option<Sender<u8>>>);
impl Drop for SendsAtEnd {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            sender.send(2).ok();
        }
    }
}

struct JoinsAtEnd(Cell<Option<thread::JoinHandle<()>>>);
impl Drop for JoinsAtEnd {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            handle.join().unwrap();
        }
    }
}

#[test]
fn a_local_may_send_at_the_end_of_its_thread_and_the_channel_ends_behind_it() {
    let seen = set(|| {
        let (sender, receiver) = mpsc::channel();
        let other = thread::spawn(move || {
            sender.send(1).unwrap();
            SENDS.with(|sends| sends.0.set(Some(sender)));
        });
        let all: Vec<u8> = receiver.iter().collect();
        other.join().unwrap();
        all
    });
    assert_eq!(seen, [[1, 2]]);
}

#[test]
fn a_local_may_join_another_thread_at_the_end_of_its_own() {
    let seen = set(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let other = thread::spawn(move || {
            let inner = thread::spawn(move || {
                theirs.fetch_add(1, SeqCst);
            });
            JOINS.with(|joins| joins.0.set(Some(inner)));
        });
        let before = x.load(SeqCst);
        other.join().unwrap();
        (before, x.load(SeqCst))
    });
    assert_eq!(seen, [(0, 1), (1, 1)]);
}

/// Joins when it is dropped.
struct Joins(Option<thread::JoinHandle<()>>);
impl Drop for Joins {
    fn drop(&mut self) {
        self.0.take().unwrap().join().unwrap();
    }
}

#[test]
fn the_last_owner_joins_in_the_destructor() {
    let seen = set(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let joins = Arc::new(Joins(Some(thread::spawn(move || {
            theirs.fetch_add(1, SeqCst);
        }))));
        let other = joins.clone();
        let looks = x.clone();
        let other = thread::spawn(move || {
            drop(other);
            looks.load(SeqCst)
        });
        drop(joins);
        let mine = x.load(SeqCst);
        (mine, other.join().unwrap(), x.load(SeqCst))
    });
    assert_eq!(seen, [(0, 1, 1), (1, 0, 1), (1, 1, 1)]);
}

#[test]
fn thousands_of_yields_that_change_nothing_are_one_execution() {
    let (_, executions) = outcomes(|| {
        thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| (0..5_000).for_each(|_| thread::yield_now()));
            }
        });
    });
    assert_eq!(executions, 1);
}

/// A message that has something to do when it is dropped.
struct Message(Sender<u8>, u8);
impl Drop for Message {
    fn drop(&mut self) {
        self.0.send(self.1).ok();
    }
}

#[test]
fn what_is_in_a_channel_is_dropped_by_its_receiver_or_comes_back_to_its_sender() {
    let seen = set(|| {
        let (done, all) = mpsc::channel();
        let (sender, receiver) = mpsc::channel();
        let other = thread::spawn(move || drop(receiver));
        let sent = sender.send(Message(done, 5));
        let came_back = sent.is_err();
        drop((sent, sender));
        let dropped: Vec<u8> = all.iter().collect();
        other.join().unwrap();
        (came_back, dropped)
    });
    assert_eq!(seen, [(false, vec![5]), (true, vec![5])]);
}

#[test]
fn a_sender_that_waits_in_its_own_channel_ends_with_the_receiver() {
    struct Own(#[expect(dead_code, reason = "it is dropped")] Sender<Own>);
    let (_, executions) = outcomes(|| {
        let (sender, receiver) = mpsc::channel::<Own>();
        let mine = sender.clone();
        sender.send(Own(mine)).unwrap();
        let other = thread::spawn(move || drop(sender));
        drop(receiver);
        other.join().unwrap();
    });
    assert_eq!(executions, 1);
}

#[test]
fn each_job_is_taken_by_one_of_the_workers_that_share_a_receiver() {
    for room in [0, 1] {
        let seen = set(move || {
            let (sender, receiver) = mpsc::sync_channel(room);
            let receiver = Arc::new(Mutex::new(receiver));
            let take = |receiver: &Mutex<Receiver<u8>>| receiver.lock().unwrap().recv().unwrap();
            let workers = [(); 2].map(|()| {
                let receiver = receiver.clone();
                thread::spawn(move || take(&receiver))
            });
            sender.send(1).unwrap();
            sender.send(2).unwrap();
            workers.map(|worker| worker.join().unwrap())
        });
        assert_eq!(seen, [[1, 2], [2, 1]]);
    }
}

#[test]
fn what_an_exclusive_reference_writes_is_found_by_the_threads_behind_it() {
    let seen = set(|| {
        let (mut x, mut lock, mut rw) = (AtomicUsize::new(0), Mutex::new(0), RwLock::new(0));
        let mut plain = 0_u8;
        thread::scope(|s| {
            s.spawn(|| x.fetch_add(1, SeqCst));
            *lock.lock().unwrap() += 1;
        });
        *x.get_mut() += 10;
        *lock.get_mut().unwrap() += 10;
        *rw.get_mut().unwrap() += 10;
        // SAFETY: the byte lives longer, and is used as an atomic only.
        let byte = unsafe { AtomicU8::from_ptr(&raw mut plain) };
        let found = thread::scope(|s| {
            s.spawn(|| {
                x.fetch_add(1, SeqCst);
                *lock.lock().unwrap() += 1;
                *rw.write().unwrap() += 1;
                byte.fetch_add(1, SeqCst);
            });
            (x.load(SeqCst), *rw.read().unwrap(), byte.load(SeqCst))
        });
        let last = (*lock.get_mut().unwrap(), rw.into_inner().unwrap());
        (found, last, x.into_inner(), plain)
    });
    let found: BTreeSet<_> = seen.iter().map(|it| it.0).collect();
    // Its read lock lasts until it has looked at the byte, which is written behind that lock.
    let locked = [(10, 0), (11, 0), (11, 1)];
    let possible = [11, 12]
        .into_iter()
        .flat_map(|x| locked.map(|(rw, byte)| (x, rw, byte)));
    assert!(found.iter().copied().eq(possible), "{found:?}");
    assert!(
        seen.iter()
            .all(|it| (it.1, it.2, it.3) == ((12, 11), 12, 1))
    );
}

#[test]
fn a_lazy_value_waits_for_the_one_it_is_made_of() {
    let seen = set(|| {
        let base: LazyLock<usize> = LazyLock::new(|| 1);
        let base = StdArc::new(base);
        let more = {
            let base = base.clone();
            LazyLock::new(move || **base + 1)
        };
        thread::scope(|s| {
            let other = s.spawn(|| **base);
            (*more, other.join().unwrap())
        })
    });
    assert_eq!(seen, [(2, 1)]);
}

#[test]
fn a_thread_that_is_caught_in_a_scope_leaves_the_others_alone() {
    let seen = with_panics(|| {
        let x = AtomicBool::new(false);
        let scoped = catch_unwind(AssertUnwindSafe(|| {
            thread::scope(|s| {
                s.spawn(|| panic!("as planned"));
                s.spawn(|| x.store(true, SeqCst));
            });
        }));
        (scoped.is_err(), x.load(SeqCst))
    });
    assert_eq!(seen, [(true, true)]);
}
