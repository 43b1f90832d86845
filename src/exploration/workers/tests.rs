//! Are the results the same for every number of workers?
//!
//! `DPOR_REPEAT` is the number of explorations for each number of workers.

use std::sync::atomic::Ordering::Relaxed;

use crate::config::{Algorithm, Builder, Memory, Order, Summary, Thorough};
use crate::exploration::workers::queue::shared;
use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use crate::sync::{Arc, Mutex, RwLock, mpsc};
use crate::thread;
use crate::verdict::report::{Limit, Verdict};

/// The numbers of workers that are compared with one.
const WORKERS: [usize; 3] = [2, 3, 8];

pub(in crate::exploration) type Model = fn();

pub(in crate::exploration) fn settings(workers: usize) -> Builder {
    Builder {
        workers: Some(workers),
        progress: Some(false),
        summary: Summary::Nothing,
        thorough: Thorough::Off,
        ..Builder::new()
    }
}

/// Each thread loads and stores what it has loaded and one more.
fn lost_update(threads: usize) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let all: Vec<_> = (0..threads)
        .map(|_| {
            let count = count.clone();
            thread::spawn(move || count.store(count.load(SeqCst) + 1, SeqCst))
        })
        .collect();
    all.into_iter().for_each(|it| it.join().unwrap());
    count.load(SeqCst)
}

fn lost_updates() {
    crate::outcome(lost_update(4));
}

/// One store, and loads in ten threads.
fn readers() {
    let x = Arc::new(AtomicUsize::new(0));
    let all: Vec<_> = (0..10)
        .map(|_| {
            let x = x.clone();
            thread::spawn(move || x.load(SeqCst))
        })
        .collect();
    x.store(1, SeqCst);
    let seen = all.into_iter().map(|it| it.join().unwrap()).sum::<usize>();
    crate::outcome(seen);
}

/// Fails in one of many traces.
fn planted() {
    assert_ne!(lost_update(4), 1, "each thread has loaded 0");
}

/// Fails in other ways in several branches.
fn panics() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let all: Vec<_> = (0..4)
        .map(|me| {
            let seen = seen.clone();
            thread::spawn(move || {
                seen.lock().unwrap().push(me);
                seen.lock().unwrap().push(me);
            })
        })
        .collect();
    all.into_iter().for_each(|it| it.join().unwrap());
    let seen = seen.lock().unwrap();
    match seen[..] {
        [3, 2, 1, 0, ..] => panic!("reversed"),
        [_, _, 0, 0, ..] => panic!("the first one is late and alone"),
        [2, 1, ..] => panic!("the third one before the second one"),
        _ => {}
    }
}

/// Threads that spawn others, so that the order in which threads are met differs.
fn families() {
    let x = Arc::new(AtomicUsize::new(0));
    let all: Vec<_> = (1..4)
        .map(|me| {
            let x = x.clone();
            thread::spawn(move || {
                if x.fetch_add(me, SeqCst) < 3 {
                    let theirs = x.clone();
                    let child = thread::spawn(move || theirs.load(SeqCst));
                    x.store(me, SeqCst);
                    child.join().unwrap()
                } else {
                    x.load(SeqCst)
                }
            })
        })
        .collect();
    let seen: Vec<usize> = all.into_iter().map(|it| it.join().unwrap()).collect();
    crate::outcome(seen);
}

/// Locks, a channel, and blocks that only some executions allocate.
fn mixed() {
    let lock = Arc::new(RwLock::new(None::<Arc<AtomicUsize>>));
    let (send, receive) = mpsc::channel();
    let all: Vec<_> = (0..3)
        .map(|me| {
            let (lock, send) = (lock.clone(), send.clone());
            thread::spawn(move || {
                let known = lock.read().unwrap().clone();
                match known {
                    Some(count) => send.send(count.fetch_add(me, SeqCst)).unwrap(),
                    None => *lock.write().unwrap() = Some(Arc::new(AtomicUsize::new(me))),
                }
            })
        })
        .collect();
    drop(send);
    let sum: usize = receive.iter().sum();
    all.into_iter().for_each(|it| it.join().unwrap());
    crate::outcome(sum);
}

/// Loops that wait.
pub(in crate::exploration) fn waits() {
    let (flag, x) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let all: Vec<_> = (0..3)
        .map(|me| {
            let (flag, x) = (flag.clone(), x.clone());
            thread::spawn(move || {
                while flag.load(SeqCst) < me {
                    crate::hint::spin_loop();
                }
                x.store(x.load(SeqCst) + 1, SeqCst);
                flag.fetch_add(1, SeqCst);
            })
        })
        .collect();
    x.store(x.load(SeqCst) + 1, SeqCst);
    all.into_iter().for_each(|it| it.join().unwrap());
    crate::outcome(x.load(SeqCst));
}

/// Has weak behaviour, which the look-out finds late.
pub(in crate::exploration) fn weak() {
    lost_update(3);
    let (x, y) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let theirs = (x.clone(), y.clone());
    let other = thread::spawn(move || {
        theirs.0.store(1, Relaxed);
        theirs.1.load(Relaxed)
    });
    y.store(1, Relaxed);
    let seen = (x.load(Relaxed), other.join().unwrap());
    crate::outcome(seen);
}

pub(in crate::exploration) const MODELS: [(&str, Model); 8] = [
    ("lost_updates", lost_updates),
    ("readers", readers),
    ("planted", planted),
    ("panics", panics),
    ("families", families),
    ("mixed", mixed),
    ("waits", waits),
    ("weak", weak),
];

/// Everything that an exploration tells, apart from its time.
fn told(settings: &Builder, model: Model) -> String {
    match settings.explore(model) {
        Ok(report) => format!(
            "{:?} {} executions {} pruned {} events {} longest {:?} {:?}",
            report.verdict,
            report.executions,
            report.pruned,
            report.events,
            report.longest,
            report.outcomes,
            report.assumptions,
        ),
        Err(failure) => {
            // The command to see it again has the number of the model among those of the test.
            let text = failure.text.split("\nreplay").next().unwrap_or_default();
            let (executions, pruned) = (failure.executions, failure.pruned);
            format!("{executions} executions {pruned} pruned {text}")
        }
    }
}

/// The number in this variable of the environment.
fn number(name: &str, default: u64) -> u64 {
    let number = std::env::var(name).ok();
    number.map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn all_is_the_same_for_every_number_of_workers() {
    for (name, model) in MODELS {
        let alone = told(&settings(1), model);
        for workers in WORKERS {
            for time in 0..number("DPOR_REPEAT", 2) {
                let together = told(&settings(workers), model);
                assert_eq!(together, alone, "{name}, {workers} workers, time {time}");
            }
        }
    }
}

/// A folder for the files of a test.
pub(in crate::exploration) fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("dpor-workers-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn workers_do_a_part_of_the_work() {
    for (name, model) in [
        ("lost_updates", lost_updates as Model),
        ("readers", readers),
    ] {
        shared().set((0, 0));
        let report = settings(3).explore(model).expect("it passes");
        let (tasks, executions) = shared().get();
        // The system may let one worker do all; it gives parts away all the same.
        assert!(tasks >= 3, "{name}: {tasks} tasks");
        assert!(2 * executions > report.executions, "{name}: {executions}");
    }
}

#[test]
fn a_limit_stops_all_workers_at_the_same_number_of_executions() {
    for workers in WORKERS {
        let limited = Builder {
            max_permutations: Some(300),
            ..settings(workers)
        };
        let report = limited.explore(lost_updates).expect("it passes");
        assert_eq!(report.executions, 300, "{workers}");
        assert_eq!(report.verdict, Verdict::Stopped(Limit::Permutations(300)));
    }
}

#[test]
fn what_workers_leave_is_resumed_by_any_number_of_them() {
    let folder = folder("resume");
    for (name, model) in MODELS {
        let alone = told(&settings(1), model);
        for (before, behind) in [(3, 1), (3, 8), (1, 3), (8, 2)] {
            let file = folder.join(format!("{name}-{before}-{behind}"));
            let of = |workers, most| Builder {
                checkpoint_file: Some(file.clone()),
                checkpoint_interval: 90,
                max_permutations: most,
                // Under C11 one worker explores, and its file begins with the second pass.
                memory: Memory::Sc,
                ..settings(workers)
            };
            let expected = match name {
                "weak" => told(&of(1, None), model),
                _ => alone.clone(),
            };
            let mut ended = String::new();
            for times in 0.. {
                // The planted bug is in the second part, and workers have explored some of what
                // comes behind it in the first one.
                let most = (times < 4).then_some(40);
                let workers = if times == 0 { before } else { behind };
                let limited = of(workers, most);
                ended = told(&limited, model);
                if !file.exists() || ended.contains("panic:") {
                    break;
                }
                assert!(times < 5, "{name} comes to its end");
            }
            // A worker may find a failure where a limit stops the others before it: then fewer
            // executions than all come before it.
            let first = |told: &str| told.split(' ').next().and_then(|it| it.parse::<u64>().ok());
            if ended.contains("panic:") && first(&ended) < first(&expected) {
                continue;
            }
            assert_eq!(
                ended, expected,
                "{name}, {before} and then {behind} workers"
            );
        }
    }
    std::fs::remove_dir_all(folder).expect("it is there");
}

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Meets a static in few executions.
fn late_static() {
    if lost_update(4) == 2 {
        COUNT.fetch_add(1, SeqCst);
        let seen = thread::spawn(|| COUNT.fetch_add(1, SeqCst)).join().unwrap();
        crate::outcome(seen);
    }
}

#[test]
fn a_model_that_uses_older_memory_has_one_worker() {
    let alone = told(&settings(1), late_static);
    for workers in WORKERS {
        for _ in 0..number("DPOR_REPEAT", 2) {
            assert_eq!(told(&settings(workers), late_static), alone);
            assert_eq!(COUNT.load(SeqCst), 0, "it is put back");
        }
    }
    // What the closure has captured.
    let captured = |workers| {
        let count = Arc::new(AtomicUsize::new(0));
        let explored = settings(workers).explore(move || {
            let all: Vec<_> = (0..4)
                .map(|_| {
                    let count = count.clone();
                    thread::spawn(move || count.store(count.load(SeqCst) + 1, SeqCst))
                })
                .collect();
            all.into_iter().for_each(|it| it.join().unwrap());
            assert!(count.load(SeqCst) < 5);
        });
        explored.expect("it passes").executions
    };
    shared().set((0, 0));
    assert_eq!(captured(3), captured(1));
    assert_eq!(shared().get().0, 0, "no worker has a task");
}

#[test]
fn settings_that_are_not_for_workers_leave_the_counts_as_they_are() {
    let of = |change: fn(&mut Builder), workers| {
        let mut settings = settings(1);
        settings.workers = workers;
        change(&mut settings);
        let report = settings.explore(lost_updates).expect("it passes");
        (report.executions, report.verdict)
    };
    let changes: [fn(&mut Builder); 5] = [
        |it| it.memory = Memory::C11,
        |it| it.order = Order::Stride,
        |it| it.algorithm = Algorithm::Source,
        |it| it.preemption_bound = Some(2),
        |it| it.await_loops = Some(true),
    ];
    for change in changes {
        shared().set((0, 0));
        assert_eq!(of(change, Some(3)), of(change, None));
        assert_eq!(shared().get().0, 0, "no worker has a task");
    }
}
