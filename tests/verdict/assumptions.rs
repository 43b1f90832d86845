//! Does a report say what an exploration took for granted?
// The feature has other signatures, and `loom_signatures` tests those.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Condvar, Mutex, Notify, RwLock};
use dpor::{AssumptionKind, Builder, Failure, FailureKind, Report, Thorough, thread};

/// The kinds of the assumptions of a report, each with the lines of code at its places.
fn assumed(report: &Report) -> Vec<(AssumptionKind, Vec<&'static str>)> {
    let code = |place: &String| {
        let place = place.strip_prefix("tests/verdict/assumptions.rs:");
        let (line, _) = place
            .expect("in this file")
            .split_once(':')
            .expect("two numbers");
        let line: usize = line.parse().expect("a number");
        let source = include_str!("assumptions.rs").lines();
        source.map(str::trim).nth(line - 1).expect("a line")
    };
    let assumption = |it: &dpor::Assumption| (it.kind, it.places.iter().map(code).collect());
    report.assumptions.iter().map(assumption).collect()
}

/// The report of an exploration with these settings and without further passes.
fn explored(set: impl FnOnce(&mut Builder), f: fn()) -> Report {
    let mut builder = Builder::new();
    builder.thorough = Thorough::Off;
    set(&mut builder);
    builder.check(f)
}

const SECOND: Duration = Duration::from_secs(1);

/// A flag under a lock, and a thread that sets it.
fn waits(wait: fn(&Condvar, &Mutex<bool>)) {
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let theirs = pair.clone();
    let other = thread::spawn(move || {
        *theirs.0.lock().unwrap() = true;
        theirs.1.notify_one();
    });
    wait(&pair.1, &pair.0);
    other.join().unwrap();
}

fn waits_in_a_loop() {
    waits(|condvar, lock| {
        let mut set = lock.lock().unwrap();
        while !*set {
            set = condvar.wait(set).unwrap();
        }
    });
}

fn waits_with_a_timeout() {
    waits(|condvar, lock| {
        let set = lock.lock().unwrap();
        drop(condvar.wait_timeout(set, SECOND).unwrap());
    });
}

fn waits_by_a_token() {
    let main = thread::current();
    let other = thread::spawn(move || main.unpark());
    thread::park();
    other.join().unwrap();
}

#[test]
fn waits_that_did_not_end_spuriously_are_assumed_not_to() {
    let wakeups = AssumptionKind::SpuriousWakeups;
    let tests: [(fn(), &str); 3] = [
        (waits_in_a_loop, "set = condvar.wait(set).unwrap();"),
        (
            waits_with_a_timeout,
            "drop(condvar.wait_timeout(set, SECOND).unwrap());",
        ),
        (waits_by_a_token, "thread::park();"),
    ];
    for (f, line) in tests {
        let report = explored(|_| (), f);
        assert_eq!(assumed(&report), [(wakeups, vec![line])]);
        assert!(report.complete);
        let text = report.to_string();
        let told = " s; no weak behaviour is possible; not explored: spurious wake-ups (1 wait)";
        assert!(text.ends_with(told), "{text}");
        let report = explored(|it| it.spurious_wakeups = 1, f);
        assert_eq!(assumed(&report), []);
        assert!(!report.to_string().contains("not explored"), "{report}");
    }
}

#[test]
fn every_place_is_named_once_whatever_threads_and_executions_meet_it() {
    let report = explored(
        |_| (),
        || {
            let notify = Arc::new(Notify::new());
            let theirs = notify.clone();
            let other = thread::spawn(move || {
                theirs.wait();
                theirs.notify();
            });
            notify.notify();
            for _ in 0..dpor::choose(3) {
                notify.wait();
                notify.notify();
            }
            dpor::future::block_on(std::future::ready(()));
            other.join().unwrap();
        },
    );
    let wakeups = AssumptionKind::SpuriousWakeups;
    let waits = vec!["theirs.wait();", "notify.wait();"];
    assert_eq!(assumed(&report), [(wakeups, waits)]);
    let told = report.assumptions[0].to_string();
    assert_eq!(told, "spurious wake-ups (2 waits)");
}

fn adds() {
    let x = Arc::new(AtomicUsize::new(0));
    let theirs = x.clone();
    let other = thread::spawn(move || {
        let add = |it| Some(it + 1);
        theirs.fetch_update(SeqCst, SeqCst, add).unwrap();
    });
    let found = x.load(SeqCst);
    let _ = x.compare_exchange_weak(found, 7, SeqCst, SeqCst);
    let _ = x.compare_exchange(7, 8, SeqCst, SeqCst);
    other.join().unwrap();
}

#[test]
fn a_weak_compare_exchange_that_did_not_fail_spuriously_is_assumed_not_to() {
    let failures = AssumptionKind::SpuriousFailures;
    let report = explored(|_| (), adds);
    let places = vec![
        "theirs.fetch_update(SeqCst, SeqCst, add).unwrap();",
        "let _ = x.compare_exchange_weak(found, 7, SeqCst, SeqCst);",
    ];
    assert_eq!(assumed(&report), [(failures, places)]);
    let told = "; not explored: spurious failures of weak compare-exchanges (2 places)";
    assert!(report.to_string().ends_with(told), "{report}");
    assert_eq!(
        assumed(&explored(|it| it.spurious_failures = true, adds)),
        []
    );
}

struct Shared(UnsafeCell<u8>);

// SAFETY: no thread writes.
unsafe impl Sync for Shared {}

impl Shared {
    fn read(&self) -> u8 {
        // SAFETY: no thread writes.
        self.0.with(|value| unsafe { *value })
    }
}

#[test]
fn a_free_that_an_arc_of_std_orders_is_named() {
    let report = explored(
        |_| (),
        || {
            let x = std::sync::Arc::new(Shared(UnsafeCell::new(1)));
            let theirs = x.clone();
            let other = thread::spawn(move || theirs.read());
            x.read();
            drop(x);
            other.join().unwrap();
        },
    );
    let kinds: Vec<_> = report.assumptions.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [AssumptionKind::Unswapped], "{report}");
    let told = "; not explored: primitives that are not swapped (";
    assert!(report.to_string().contains(told), "{report}");
    // The counts of this crate's `Arc` are seen.
    let report = explored(|_| (), || drop(Arc::new(AtomicUsize::new(0)).clone()));
    assert_eq!(assumed(&report), []);
}

#[test]
fn a_program_that_waits_for_no_other_thread_assumes_nothing() {
    let report = explored(
        |_| (),
        || {
            let x = Arc::new(AtomicUsize::new(0));
            let theirs = x.clone();
            let (sender, receiver) = dpor::sync::mpsc::channel();
            let other = thread::spawn(move || {
                theirs.fetch_add(1, SeqCst);
                sender.send(()).unwrap();
            });
            receiver.recv().unwrap();
            x.compare_exchange(1, 2, SeqCst, SeqCst).unwrap();
            other.join().unwrap();
        },
    );
    assert_eq!(assumed(&report), []);
}

#[test]
fn a_resumed_exploration_knows_the_places_from_before() {
    let file = std::env::temp_dir().join(format!("dpor-assumptions-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    // Only the first execution waits, and the rest is explored from the file.
    let f = || {
        if dpor::choose(5) == 0 {
            let notify = Notify::new();
            notify.notify();
            notify.wait();
        }
    };
    let mut builder = Builder::new();
    builder.checkpoint_file = Some(file.clone());
    builder.max_permutations = Some(3);
    let reports = [(); 2].map(|()| builder.check(f));
    assert!(!reports[0].complete && reports[1].complete);
    for report in &reports {
        let wakeups = AssumptionKind::SpuriousWakeups;
        assert_eq!(assumed(report), [(wakeups, vec!["notify.wait();"])]);
    }
    assert!(!file.exists());
}

/// What a further pass has explored: the kind, the number of executions, and whether those are all.
fn further(report: &Report) -> Vec<(AssumptionKind, u64, bool)> {
    let passes = report.further.iter();
    let told = passes.map(|pass| (pass.kind, pass.executions, pass.complete));
    told.collect()
}

/// The failure of a model that is explored by default. It fails with no further pass switched on,
/// and its schedule replays without any setting.
fn fails_in_a_further_pass(f: fn()) -> Box<Failure> {
    assert!(explored(|_| (), f).complete);
    let failure = Builder::new().explore(f).expect_err("std permits it");
    let mut replay = Builder::new();
    replay.thorough = Thorough::Off;
    replay.replay = Some(failure.schedule().to_owned());
    let same = replay.explore(f).expect_err("the same");
    assert_eq!(same.kind(), failure.kind(), "{same}");
    assert_eq!(same.schedule(), failure.schedule());
    let events = |failure: &Failure| format!("{:?}", failure.events());
    assert_eq!(events(&same), events(&failure));
    failure
}

/// Std permits nothing for loom's `Notify`, and loom's own tests count on its waits.
#[test]
fn a_wait_for_a_notification_of_looms_ends_for_one() {
    let waits = || {
        let shared = Arc::new((Notify::new(), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs.1.store(1, SeqCst);
            theirs.0.notify();
        });
        shared.0.wait();
        assert_eq!(shared.1.load(SeqCst), 1, "woken for no reason");
        other.join().unwrap();
    };
    let report = explored(|_| (), waits);
    assert!(report.complete);
    let mut on_request = Builder::new();
    on_request.spurious_wakeups = 1;
    let failure = on_request
        .explore(waits)
        .expect_err("the wait ends for no reason");
    assert!(failure.schedule().starts_with("v2 wakes main"));
}

#[test]
fn a_wait_without_a_loop_fails_by_default() {
    let tests: [fn(); 2] = [
        || {
            waits(|condvar, lock| {
                let mut set = lock.lock().unwrap();
                if !*set {
                    set = condvar.wait(set).unwrap();
                }
                assert!(*set, "woken for no reason");
            });
        },
        || {
            let set = Arc::new(AtomicUsize::new(0));
            let (theirs, main) = (set.clone(), thread::current());
            let other = thread::spawn(move || {
                theirs.store(1, SeqCst);
                main.unpark();
            });
            thread::park();
            assert_eq!(set.load(SeqCst), 1, "woken for no reason");
            other.join().unwrap();
        },
    ];
    for f in tests {
        let failure = fails_in_a_further_pass(f);
        assert_eq!(failure.kind(), FailureKind::Panic);
        let schedule = failure.schedule();
        assert!(schedule.starts_with("v2 wakes main"), "{schedule}");
        let text = failure.to_string();
        let told = "executions have passed without spurious wake-ups; std permits them";
        assert!(text.contains(told), "{text}");
        assert!(text.contains("wakes up for no reason"), "{text}");
        // The test that is printed needs no setting either.
        assert!(!text.contains("builder.spurious_wakeups"), "{text}");
    }
}

#[test]
fn a_weak_compare_exchange_without_a_loop_fails_by_default() {
    let failure = fails_in_a_further_pass(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let other = thread::spawn(move || theirs.load(SeqCst));
        x.compare_exchange_weak(0, 1, SeqCst, SeqCst).unwrap();
        other.join().unwrap();
    });
    assert_eq!(failure.kind(), FailureKind::Panic);
    let schedule = failure.schedule();
    assert!(schedule.starts_with("v2 fails main"), "{schedule}");
    let told = "without spurious failures of weak compare-exchanges; std permits them";
    assert!(failure.to_string().contains(told), "{failure}");
}

#[test]
fn a_further_pass_removes_the_assumption_and_counts_apart() {
    let (wakeups, failures) = (
        AssumptionKind::SpuriousWakeups,
        AssumptionKind::SpuriousFailures,
    );
    for (f, kind) in [(waits_in_a_loop as fn(), wakeups), (adds, failures)] {
        let first = explored(|_| (), f);
        let all = explored(
            |it| match kind {
                AssumptionKind::SpuriousWakeups => it.spurious_wakeups = 1,
                _ => it.spurious_failures = true,
            },
            f,
        );
        let report = Builder::new().check(f);
        let counts = |it: &Report| (it.executions, it.events, it.reruns, it.complete);
        assert_eq!(counts(&report), counts(&first));
        assert_eq!(further(&report), [(kind, all.executions, true)]);
        assert_eq!(assumed(&report), []);
        let told = format!("; also explored: {}", report.further[0]);
        assert!(report.to_string().ends_with(&told), "{report}");
        // The setting of the kind leaves nothing to a further pass.
        assert_eq!(further(&all), []);
    }
}

/// Three threads that each wait in a loop for main, and have a place to wake up at.
fn many_wait() {
    let pair = Arc::new((Mutex::new(0), Condvar::new()));
    let wait = |pair: Arc<(Mutex<u32>, Condvar)>| {
        let mut at = pair.0.lock().unwrap();
        while *at == 0 {
            at = pair.1.wait(at).unwrap();
        }
        *at += 1;
    };
    let threads = [(); 3].map(|()| {
        let pair = pair.clone();
        thread::spawn(move || wait(pair))
    });
    *pair.0.lock().unwrap() = 1;
    pair.1.notify_all();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn the_budget_cuts_a_further_pass_short_and_the_report_says_so() {
    let wakeups = AssumptionKind::SpuriousWakeups;
    let first = explored(|_| (), many_wait);
    let report = Builder::new().check(many_wait);
    let budget = first.executions.max(1000);
    assert_eq!(further(&report), [(wakeups, budget, false)]);
    // It stays an assumption, and the line does not call it unexplored.
    let kinds: Vec<_> = report.assumptions.iter().map(|it| it.kind).collect();
    assert_eq!((kinds, report.complete), (vec![wakeups], true));
    let told = format!(
        "; also explored: spurious wake-ups ({budget} executions, not all; DPOR_THOROUGH=1 has no budget)"
    );
    assert!(report.to_string().ends_with(&told), "{report}");
    let mut builder = Builder::new();
    builder.thorough = Thorough::Full;
    let report = builder.check(many_wait);
    let all = explored(|it| it.spurious_wakeups = 1, many_wait);
    assert_eq!(further(&report), [(wakeups, all.executions, true)]);
    assert_eq!(assumed(&report), []);
}

/// Seven threads that wait for main, which has 20,000 events of its own.
fn waits_behind_many_events() {
    let number = AtomicUsize::new(0);
    for _ in 0..20_000 {
        number.load(SeqCst);
    }
    let threads = [(); 7].map(|()| thread::spawn(thread::park));
    for thread in &threads {
        thread.thread().unpark();
    }
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn further_passes_over_long_executions_are_as_few_as_their_events_allow() {
    let report = Builder::new().check(waits_behind_many_events);
    assert_eq!((report.executions, report.longest > 20_000), (1, true));
    let [(AssumptionKind::SpuriousWakeups, executions, false)] = further(&report)[..] else {
        panic!("{report}");
    };
    assert_eq!(executions, 250_000 / report.longest as u64);
}

#[test]
fn an_exploration_that_is_a_part_or_a_sample_has_no_further_pass() {
    let settings: [fn(&mut Builder); 6] = [
        |it| it.max_permutations = Some(1),
        |it| it.preemption_bound = Some(0),
        |it| it.preemption_bound = Some(100),
        |it| it.algorithm = dpor::Algorithm::Source,
        |it| it.algorithm = dpor::Algorithm::Random,
        |it| it.replay = Some("v2 main".to_owned()),
    ];
    for set in settings {
        let mut builder = Builder::new();
        set(&mut builder);
        let report = builder.check(waits_in_a_loop);
        assert_eq!(further(&report), []);
    }
    // A limit that the first pass has not reached holds for all passes together.
    let most = explored(|_| (), waits_in_a_loop).executions + 2;
    let mut builder = Builder::new();
    builder.max_permutations = Some(most as usize);
    let report = builder.check(waits_in_a_loop);
    let wakeups = AssumptionKind::SpuriousWakeups;
    assert_eq!(further(&report), [(wakeups, 2, false)]);
}

#[test]
fn a_model_that_reaches_a_limit_in_a_further_pass_has_not_failed() {
    let most = explored(|_| (), waits_in_a_loop).longest;
    let mut builder = Builder::new();
    builder.max_branches = most;
    let report = builder.check(waits_in_a_loop);
    let [pass] = &report.further[..] else {
        panic!("{report}");
    };
    assert_eq!(
        (pass.kind, pass.complete),
        (AssumptionKind::SpuriousWakeups, false)
    );
    let ended = pass.ended.as_deref().expect("a reason");
    assert!(ended.starts_with("too many events"), "{ended}");
    assert!(
        report
            .to_string()
            .contains(&format!(", ended early: {ended}")),
        "{report}"
    );
    assert_eq!(report.assumptions.len(), 1);
}

/// A writer, and a thread that holds a guard of a reader while `reads` runs.
fn reads_under_a_guard(reads: fn(&RwLock<u32>)) {
    let lock = Arc::new(RwLock::new(0));
    let theirs = lock.clone();
    let writer = thread::spawn(move || *theirs.write().unwrap() += 1);
    let guard = lock.read().unwrap();
    reads(&lock);
    drop(guard);
    writer.join().unwrap();
}

#[test]
fn a_second_read_while_a_writer_waits_fails_by_default() {
    let failure = fails_in_a_further_pass(|| {
        reads_under_a_guard(|lock| drop(lock.read().unwrap()));
    });
    assert_eq!(failure.kind(), FailureKind::Deadlock);
    let schedule = failure.schedule();
    assert!(schedule.starts_with("v2 writers main"), "{schedule}");
    let text = failure.to_string();
    for told in [
        "main       waits to lock gate ",
        "main.1     waits to write-lock lock ",
        "in a circle: main holds lock and waits for gate, main.1 holds gate and waits for lock",
        "executions have passed without locks that prefer writers; std permits them",
        "the mutex `gate` stands for the turn of the next one",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    // Another thread may read for the one that holds the guard.
    let failure = fails_in_a_further_pass(|| {
        let lock = Arc::new(RwLock::new(0));
        let (theirs, others) = (lock.clone(), lock.clone());
        let writer = thread::spawn(move || *theirs.write().unwrap() += 1);
        let guard = lock.read().unwrap();
        let reader = thread::spawn(move || *others.read().unwrap());
        reader.join().unwrap();
        drop(guard);
        writer.join().unwrap();
    });
    assert_eq!(failure.kind(), FailureKind::Deadlock);
}

#[test]
fn locks_that_prefer_writers_pass_where_no_reader_needs_a_second_guard() {
    static LOCK: RwLock<u32> = RwLock::new(0);
    let tests: [fn(); 3] = [
        // `try_read` does not wait.
        || reads_under_a_guard(|lock| drop(lock.try_read())),
        || {
            let lock = Arc::new(RwLock::new(0));
            let threads = [false, false, true].map(|writes| {
                let lock = lock.clone();
                thread::spawn(move || match writes {
                    true => *lock.write().unwrap() += 1,
                    false => assert!(*lock.read().unwrap() < 2),
                })
            });
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(*lock.read().unwrap(), 1);
        },
        || {
            let reader = thread::spawn(|| *LOCK.read().unwrap());
            let writer = thread::spawn(|| *LOCK.write().unwrap() += 1);
            let found = *LOCK.read().unwrap();
            assert!(found <= 1 && reader.join().unwrap() <= 1);
            writer.join().unwrap();
            assert_eq!(*LOCK.read().unwrap(), 1);
        },
    ];
    for f in tests {
        let first = explored(|_| (), f);
        let report = Builder::new().check(f);
        assert_eq!(report.executions, first.executions);
        assert_eq!((assumed(&report), further(&report)), (vec![], vec![]));
        // Nor do they fail if locks prefer writers.
        let mut builder = Builder::new();
        builder.replay = Some("v2 writers".to_owned());
        builder.check(f);
    }
    // The writer comes behind both guards, and the model cannot know that before.
    let in_turn = || {
        let lock = Arc::new(RwLock::new(0));
        let theirs = lock.clone();
        dpor::any::<bool>();
        drop((lock.read().unwrap(), lock.read().unwrap()));
        let writer = thread::spawn(move || *theirs.write().unwrap() += 1);
        assert!(*lock.read().unwrap() < 2);
        writer.join().unwrap();
    };
    let kinds = explored(|_| (), in_turn).assumptions;
    let kinds: Vec<_> = kinds.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [AssumptionKind::WritersFirst]);
    let report = Builder::new().check(in_turn);
    assert_eq!(assumed(&report), []);
    let passes = further(&report);
    let expected = [AssumptionKind::WritersFirst];
    assert!(passes.iter().all(|(_, _, complete)| *complete));
    assert_eq!(passes.iter().map(|it| it.0).collect::<Vec<_>>(), expected);
    // Without a writer there is none that waits.
    let report = explored(
        |_| (),
        || {
            let lock = RwLock::new(0);
            let guard = lock.read().unwrap();
            drop((lock.read().unwrap(), guard));
        },
    );
    assert_eq!(assumed(&report), []);
}
