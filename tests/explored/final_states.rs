//! Does `Algorithm::FinalStates` reach every final state, with no more executions than there are
//! states, and does it refuse what has an unknown state?

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc as Real;

use dpor::cell::UnsafeCell;
use dpor::collections::KeyedMap;
use dpor::sync::atomic::Ordering::SeqCst;
use dpor::sync::atomic::{AtomicI64, AtomicPtr, AtomicUsize};
use dpor::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock, mpsc};
use dpor::{Algorithm, Builder, FailureKind, Memory, Order, Report, Shared, Verdict, thread};

use crate::drawn::{Numbers, setting, smallest, without_one};

fn settings() -> Builder {
    let mut settings = Builder::new();
    settings.algorithm = Algorithm::FinalStates;
    settings
}

/// The number of executions that reach every final state.
fn executions(f: impl Fn() + Send + Sync + 'static) -> u64 {
    let report = settings().explore(f).expect("no failure");
    assert_eq!(
        (report.verdict, report.complete),
        (Verdict::FinalStates, false)
    );
    report.executions
}

/// Threads that make one update each.
fn updates<T: Clone + std::hash::Hash + Default + Send + 'static>(
    threads: usize,
    update: fn(&mut T, usize),
) -> u64 {
    executions(move || {
        let value = Real::new(Shared::new(T::default()));
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                let value = value.clone();
                thread::spawn(move || value.update(move |value| update(value, number)))
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    })
}

#[test]
fn what_executions_return_depends_on_their_final_states() {
    let maps = || {
        let map = Real::new(KeyedMap::new());
        let insert = |number: u8| {
            let map = map.clone();
            thread::spawn(move || {
                map.insert(number / 2, number);
            })
        };
        let threads: Vec<_> = (0..3).map(insert).collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        (map.get(&0), map.get(&1))
    };
    let by = |settings: Builder| settings.outcomes(maps).into_keys().collect::<Vec<_>>();
    assert_eq!(by(settings()), by(Builder::new()));
    assert_eq!(by(settings()).len(), 2);
}

#[test]
fn updates_that_lead_to_one_state_are_one_execution() {
    for threads in 1..=6 {
        assert_eq!(updates::<u64>(threads, |sum, by| *sum += by as u64), 1);
        let found = updates::<BTreeSet<usize>>(threads, |all, name| {
            all.insert(name);
        });
        assert_eq!(found, 1, "registrations of {threads} threads");
    }
}

#[test]
fn updates_that_lead_to_different_states_are_all_explored() {
    let found = [3, 4, 5].map(|lines| updates::<Vec<usize>>(lines, |log, line| log.push(line)));
    assert_eq!(found, [6, 24, 120]);
}

#[test]
fn stores_of_one_value_and_a_load_have_two_final_states() {
    let found = executions(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let x = x.clone();
                thread::spawn(move || x.store(5, SeqCst))
            })
            .collect();
        let reads = thread::spawn({
            let x = x.clone();
            move || assert!([0, 5].contains(&x.load(SeqCst)))
        });
        reads.join().unwrap();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(found, 2);
}

#[test]
fn a_producer_and_a_consumer_have_one_execution_for_each_final_state() {
    for messages in 1..=5 {
        let found = executions(move || {
            let (sender, receiver) = mpsc::channel();
            let sends = thread::spawn(move || {
                (0..messages).for_each(|message| sender.send(message).unwrap());
                sender
            });
            let received = (0..messages)
                .filter(|_| receiver.try_recv().is_ok())
                .count();
            assert!(received <= messages);
            sends.join().unwrap();
        });
        assert_eq!(found, 1 << messages, "{messages} messages");
    }
}

#[test]
fn what_a_thread_reads_is_a_part_of_the_state() {
    let failure = settings()
        .explore(|| {
            let sum = Arc::new(Shared::new(0));
            let other = thread::spawn({
                let sum = sum.clone();
                move || sum.update(|sum| *sum += 2)
            });
            let seen = sum.update(|sum| {
                *sum += 1;
                *sum
            });
            other.join().unwrap();
            assert_eq!(seen, 1);
        })
        .expect_err("it may be 3");
    assert_eq!(failure.kind(), FailureKind::Panic);
    assert!(failure.to_string().contains("left: 3"), "{failure}");
}

#[test]
fn a_closure_that_owns_something_is_not_tried_and_nothing_is_lost() {
    let outcomes = |algorithm| {
        let mut settings = Builder::new();
        settings.algorithm = algorithm;
        let report = settings.check(|| {
            let log = Arc::new(Shared::new(Vec::new()));
            let threads: Vec<_> = ["a", "b", "a"]
                .into_iter()
                .map(|line| {
                    let (log, line) = (log.clone(), line.to_owned());
                    thread::spawn(move || log.update(move |log| log.push(line.clone())))
                })
                .collect();
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            dpor::outcome(log.read(|log: &Vec<String>| log.concat()));
        });
        (
            report.outcomes.into_keys().collect::<Vec<_>>(),
            report.executions,
        )
    };
    let (found, executions) = outcomes(Algorithm::FinalStates);
    assert_eq!(found, [r#""aab""#, r#""aba""#, r#""baa""#]);
    assert_eq!(outcomes(Algorithm::Optimal), (found, 6));
    assert!(executions <= 6, "{executions}");
}

#[test]
fn a_closure_that_fails_is_a_failure_where_it_is_applied_only() {
    let failure = settings()
        .explore(|| {
            let numbers = Arc::new(Shared::new(vec![1]));
            let other = thread::spawn({
                let numbers = numbers.clone();
                move || numbers.update(|numbers| numbers.clear())
            });
            numbers.update(|numbers| assert!(!numbers.is_empty(), "no number"));
            other.join().unwrap();
        })
        .expect_err("the number may be gone");
    assert_eq!(failure.kind(), FailureKind::Panic);
    assert!(failure.to_string().contains("no number"), "{failure}");
}

#[test]
fn a_closure_that_makes_a_step_is_a_failure() {
    let failure = Builder::new()
        .explore(|| {
            let sum = Arc::new(Shared::new(0));
            let again = sum.clone();
            sum.update(move |_| again.update(|sum| *sum += 1));
        })
        .expect_err("it updates in an update");
    let text = failure.to_string();
    assert!(
        text.contains("it may touch nothing but its value"),
        "{text}"
    );
}

#[test]
fn outside_of_a_model_it_is_a_mutex() {
    let sum = Real::new(Shared::new(0_u64));
    let add = |sum: &Real<Shared<u64>>| (0..100).for_each(|_| sum.update(|sum| *sum += 1));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| add(&sum));
        }
    });
    assert_eq!(sum.read(|sum| *sum), 400);
}

/// The message with which the closure is refused.
fn refused(settings: &Builder, f: impl Fn() + Send + Sync + 'static) -> String {
    let explored = catch_unwind(AssertUnwindSafe(|| settings.explore(f)));
    let payload = explored.expect_err("it is refused");
    payload.downcast::<String>().map_or_else(
        |payload| {
            payload
                .downcast_ref::<&str>()
                .copied()
                .unwrap_or("")
                .to_owned()
        },
        |text| *text,
    )
}

#[test]
fn what_has_an_unknown_state_is_refused_by_name() {
    type Body = fn();
    let refusals: [(&str, Body); 12] = [
        ("a `Mutex`", || drop(Mutex::new(0).lock())),
        ("an `RwLock`", || drop(RwLock::new(0).read())),
        ("a `Condvar`", || Condvar::new().notify_one()),
        ("`park` and `unpark`", || thread::current().unpark()),
        ("a `Barrier`", || {
            Barrier::new(1).wait();
        }),
        ("a one-time initialisation", || Once::new().call_once(|| {})),
        ("an `AtomicPtr`", || {
            AtomicPtr::new(&raw mut *Box::new(1)).load(SeqCst);
        }),
        ("`sync_channel(0)`", || {
            let (sender, _receiver) = mpsc::sync_channel(0);
            let _ = sender.try_send(1);
        }),
        ("`recv_timeout`", || {
            let (_sender, receiver) = mpsc::channel::<u8>();
            let _ = receiver.recv_timeout(std::time::Duration::from_millis(1));
        }),
        ("plain memory (`UnsafeCell`)", || {
            UnsafeCell::new(1).with_mut(|_| ());
        }),
        ("a plain access to an atomic", || {
            let mut number = AtomicUsize::new(1);
            *number.get_mut() += 1;
        }),
        ("a thread that waits in a loop", || {
            let flag = Arc::new(AtomicUsize::new(0));
            let sets = flag.clone();
            thread::spawn(move || sets.store(1, SeqCst));
            while flag.load(SeqCst) == 0 {
                thread::yield_now();
            }
        }),
    ];
    for (what, body) in refusals {
        let text = refused(&settings(), body);
        assert!(text.contains(what), "{what}: {text}");
        let names = ["DPOR_ALGORITHM", "final_states.rs", "`optimal`"];
        assert!(names.iter().all(|name| text.contains(name)), "{text}");
    }
}

#[test]
fn a_second_value_in_the_place_of_another_is_refused() {
    let text = refused(&settings(), || {
        for start in [1, 5] {
            let value = Shared::new(start);
            value.update(|value| *value += 1);
        }
    });
    assert!(text.contains("in the place of another one"), "{text}");
}

#[test]
fn settings_that_do_not_fit_are_refused_by_name() {
    type Set = fn(&mut Builder);
    let unfit: [(&str, Set); 3] = [
        ("DPOR_MEMORY", |it| it.memory = Memory::C11),
        ("DPOR_ORDER", |it| it.order = Order::Stride),
        ("DPOR_CHECKPOINT_FILE", |it| {
            it.checkpoint_file = Some("never_written".into());
        }),
    ];
    for (name, set) in unfit {
        let mut settings = settings();
        set(&mut settings);
        let text = refused(&settings, || ());
        assert!(
            text.contains(name) && text.contains("`final_states`"),
            "{text}"
        );
    }
}

#[test]
fn the_verdict_says_what_is_not_excluded() {
    let report = settings().explore(|| ()).expect("no failure");
    assert!(!report.complete);
    let text = report.to_string();
    for part in [
        "every final state",
        "not every trace",
        "data races",
        "DPOR_ALGORITHM=final_states",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let mut settings = settings();
    settings.require_complete = true;
    let failure = settings
        .explore(|| ())
        .expect_err("not every trace was explored");
    assert!(failure.to_string().contains("`optimal`"), "{failure}");
}

/// A step of a drawn program, by a number for the object and one for the value.
#[derive(Clone, Copy, Debug)]
enum Do {
    Load(usize),
    Store(usize, i64),
    Add(usize, i64),
    Exchange(usize, i64, i64),
    Sum(usize, i64),
    Append(usize, i64),
    Look(usize),
    Send(i64),
    TryReceive,
    Receive,
}

fn drawn(seed: u64) -> Vec<Vec<Do>> {
    let mut numbers = Numbers(seed);
    let threads = 2 + numbers.below(2);
    (0..threads)
        .map(|thread| {
            let steps = 1 + numbers.below(5 - threads);
            (0..steps)
                .map(|_| {
                    let (at, value) = (numbers.below(2), numbers.below(3) as i64);
                    match numbers.below(12) {
                        0 | 1 => Do::Load(at),
                        2 | 3 => Do::Store(at, value),
                        4 => Do::Add(at, value),
                        5 => Do::Exchange(at, value, 1),
                        6 => Do::Sum(at, value),
                        7 => Do::Append(at, value),
                        8 => Do::Look(at),
                        9 if thread == 0 => Do::Receive,
                        10 if thread == 0 => Do::TryReceive,
                        _ => Do::Send(value),
                    }
                })
                .collect()
        })
        .collect()
}

/// Runs the program, and records its final state.
fn run(program: &[Vec<Do>]) {
    let atomics = Arc::new([AtomicI64::new(0), AtomicI64::new(0)]);
    let values = Real::new([Shared::new(0_i64), Shared::new(0_i64)]);
    let (sender, receiver) = mpsc::channel();
    let mut receiver = Some(receiver);
    let threads: Vec<_> = program
        .iter()
        .map(|steps| {
            let (steps, atomics, values) = (steps.clone(), atomics.clone(), values.clone());
            let (sender, receiver) = (sender.clone(), receiver.take());
            thread::spawn(move || {
                let mut seen = Vec::new();
                for step in steps {
                    seen.push(match step {
                        Do::Load(at) => atomics[at].load(SeqCst),
                        Do::Store(at, value) => {
                            atomics[at].store(value, SeqCst);
                            0
                        }
                        Do::Add(at, value) => atomics[at].fetch_add(value, SeqCst),
                        Do::Exchange(at, from, to) => {
                            let made = atomics[at].compare_exchange(from, to, SeqCst, SeqCst);
                            made.unwrap_or_else(|found| 10 + found)
                        }
                        Do::Sum(at, value) => {
                            values[at].update(move |sum| *sum += value);
                            0
                        }
                        Do::Append(at, value) => {
                            values[at].update(move |sum| *sum = *sum * 4 + value);
                            0
                        }
                        Do::Look(at) => values[at].read(|sum| *sum),
                        Do::Send(value) => i64::from(sender.send(value).is_ok()),
                        Do::TryReceive | Do::Receive => {
                            let receiver = receiver.as_ref().expect("the first thread has it");
                            let waits = matches!(step, Do::Receive) && seen.is_empty();
                            match waits {
                                true => receiver.recv().unwrap_or(-1),
                                false => receiver.try_recv().unwrap_or(-1),
                            }
                        }
                    });
                }
                // The main thread drops the ends of the channel, so that a receiver that waits is a
                // deadlock in each order.
                (seen, sender, receiver)
            })
        })
        .collect();
    let seen: Vec<_> = threads.into_iter().map(|it| it.join().unwrap()).collect();
    let seen: Vec<_> = seen.into_iter().map(|(seen, ..)| seen).collect();
    let atomics = atomics.each_ref().map(|it| it.load(SeqCst));
    let values = values.each_ref().map(|it| it.read(|sum| *sum));
    dpor::outcome(format!("{seen:?} {atomics:?} {values:?}"));
}

/// What the algorithm finds: the outcomes, or how it fails.
fn found(program: &[Vec<Do>], algorithm: Algorithm) -> Result<Report, FailureKind> {
    let mut settings = Builder::new();
    (settings.algorithm, settings.memory) = (algorithm, Memory::Sc);
    settings.simplify = 0;
    let program = program.to_vec();
    let explored = settings.explore(move || run(&program));
    explored.map_err(|failure| failure.kind())
}

#[test]
fn drawn_programs_have_the_outcomes_of_every_trace() {
    let programs = setting("DPOR_FUZZ", 1_000);
    let start = setting("DPOR_FUZZ_SEED", 1);
    let (mut all, mut fewer) = (0, 0);
    let differs = |program: &Vec<Vec<Do>>| {
        let [finals, traces] =
            [Algorithm::FinalStates, Algorithm::Optimal].map(|it| found(program, it));
        match (finals, traces) {
            (Ok(finals), Ok(traces)) => {
                let keys = |report: &Report| report.outcomes.keys().cloned().collect::<Vec<_>>();
                keys(&finals) != keys(&traces)
            }
            (Err(one), Err(other)) => one != other,
            _ => true,
        }
    };
    for seed in start..start + programs {
        let program = drawn(seed);
        if differs(&program) {
            let smallest = smallest(program, |it| without_one(it).collect(), differs);
            panic!("seed {seed}: {smallest:?}");
        }
        if let Ok(report) = found(&program, Algorithm::FinalStates) {
            let traces = found(&program, Algorithm::Optimal).map_or(0, |it| it.executions);
            all += 1;
            fewer += u64::from(report.executions < traces);
        }
    }
    println!("{all} programs without a deadlock, {fewer} with fewer executions");
    assert!(fewer * 10 > all, "{fewer} of {all}");
}

#[test]
fn accounts_are_compared_by_their_contents() {
    let found = executions(|| {
        let accounts = Arc::new(Shared::new(BTreeMap::from([(1, 10), (2, 10)])));
        let moves = |from: i32, to: i32| {
            let accounts = accounts.clone();
            thread::spawn(move || {
                accounts.update(move |all| {
                    *all.entry(from).or_default() -= 1;
                    *all.entry(to).or_default() += 1;
                });
            })
        };
        let threads = [moves(1, 2), moves(2, 1), moves(1, 3)];
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(accounts.read(|all| all.values().sum::<i32>()), 20);
    });
    assert_eq!(found, 1);
}

#[test]
fn a_front_end_of_the_engine_is_refused() {
    let refused = dpor::engine::Engine::new(&settings(), 2).err();
    let text = refused.expect("its objects are unknown").to_string();
    assert!(text.contains("final_states"), "{text}");
}
