//! What is explored where a loop that waits is taken for one step?

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::cell::UnsafeCell;
use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::{Algorithm, Builder, FailureKind, Memory, hint, thread};

use super::{COUNTS_SHOW, look_around};

/// Settings with which loops are taken for one step.
fn awaits() -> Builder {
    let mut builder = Builder::new();
    builder.await_loops = Some(true);
    builder
}

/// So many threads, each of which does this.
fn run(threads: usize, each: impl Fn(usize) + Send + Sync + 'static) {
    let each = Arc::new(each);
    let spawn = |number: usize| {
        let each = each.clone();
        thread::spawn(move || each(number))
    };
    let threads: Vec<_> = (0..threads).map(spawn).collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Waits until this holds, as a loop, or gives the execution up if it does not.
fn wait(as_a_loop: bool, holds: impl Fn() -> bool) {
    match as_a_loop {
        true => {
            while !holds() {
                hint::spin_loop();
            }
        }
        false => dpor::assume(holds()),
    }
}

type Body = Box<dyn Fn() + Send + Sync>;

/// A program of so many threads, which wait in a loop or not.
type Program = fn(usize, bool) -> Body;

/// Programs whose threads wait for each other.
const WAITING: [(&str, Program); 7] = [
    ("ticket lock", |threads, in_loops| {
        Box::new(move || {
            let lock = (AtomicUsize::new(0), AtomicUsize::new(0));
            run(threads, move |_| {
                let (next, grant) = &lock;
                let ticket = next.fetch_add(1, Relaxed);
                wait(in_loops, || grant.load(Acquire) == ticket);
                grant.store(ticket + 1, Release);
            });
        })
    }),
    ("test and set", |threads, in_loops| {
        Box::new(move || {
            let taken = AtomicBool::new(false);
            run(threads, move |_| {
                wait(in_loops, || !taken.swap(true, Acquire));
                taken.store(false, Release);
            });
        })
    }),
    ("compare-exchange", |threads, in_loops| {
        Box::new(move || {
            let taken = AtomicBool::new(false);
            run(threads, move |_| {
                wait(in_loops, || {
                    let taken = taken.compare_exchange(false, true, Acquire, Relaxed);
                    taken.is_ok()
                });
                taken.store(false, Release);
            });
        })
    }),
    ("test, and test and set", |threads, in_loops| {
        Box::new(move || {
            let taken = AtomicBool::new(false);
            let take = move |taken: &AtomicBool| {
                let taken = taken.compare_exchange(false, true, Acquire, Relaxed);
                taken.is_ok()
            };
            run(threads, move |_| {
                while !take(&taken) {
                    wait(in_loops, || !taken.load(Relaxed));
                }
                taken.store(false, Release);
            });
        })
    }),
    ("barrier", |threads, in_loops| {
        Box::new(move || {
            let barrier = (AtomicUsize::new(0), AtomicUsize::new(0));
            run(threads, move |_| {
                let (arrived, round) = &barrier;
                for next in 1..=2 {
                    if arrived.fetch_add(1, SeqCst) + 1 == threads {
                        arrived.store(0, SeqCst);
                        round.store(next, SeqCst);
                    } else {
                        wait(in_loops, || round.load(SeqCst) >= next);
                    }
                }
            });
        })
    }),
    ("MCS lock", |threads, in_loops| {
        Box::new(move || {
            // Who came last, and of each who comes next and whether it has to wait. Numbers count from 1.
            let last = AtomicUsize::new(0);
            let nodes: Vec<_> = (0..threads)
                .map(|_| (AtomicUsize::new(0), AtomicBool::new(true)))
                .collect();
            run(threads, move |number| {
                let (mine, (next, waits)) = (number + 1, &nodes[number]);
                let before = last.swap(mine, AcqRel);
                if before > 0 {
                    nodes[before - 1].0.store(mine, Release);
                    wait(in_loops, || !waits.load(Acquire));
                }
                if next.load(Acquire) == 0 {
                    if last.compare_exchange(mine, 0, Release, Relaxed).is_ok() {
                        return;
                    }
                    wait(in_loops, || next.load(Acquire) > 0);
                }
                nodes[next.load(Acquire) - 1].1.store(false, Release);
            });
        })
    }),
    ("turns", |threads, in_loops| {
        Box::new(move || {
            let turn = AtomicUsize::new(0);
            run(threads, move |number| {
                for round in 0..5 {
                    let mine = round * threads + number;
                    wait(in_loops, || turn.load(SeqCst) == mine);
                    turn.store(mine + 1, SeqCst);
                }
            });
        })
    }),
];

/// `assume` behind a single look knows nothing of loops, and says how many executions there are if nobody looks twice.
#[test]
fn there_are_as_many_executions_as_if_nobody_looked_in_vain() {
    for (name, program) in WAITING {
        for threads in [2, 3] {
            let looks_once = Builder::new().check(program(threads, false));
            for algorithm in [Algorithm::Optimal, Algorithm::Source, Algorithm::Classic] {
                let mut builder = awaits();
                builder.algorithm = algorithm;
                let report = builder.check(program(threads, true));
                assert!(report.complete, "{name}: {report}");
                assert_eq!(
                    report.executions, looks_once.executions,
                    "{name}, {threads} threads, {algorithm:?}"
                );
                if algorithm == Algorithm::Optimal {
                    assert_eq!(report.pruned, 0, "{name}: {report}");
                }
            }
        }
    }
}

/// What a test finds by default and with each look as an event, under either memory model: of each
/// outcome whether there is an execution.
fn found_by_default<T: Ord + Send + std::fmt::Debug + 'static>(body: fn() -> T) -> Vec<T> {
    let found = [Memory::Sc, Memory::C11].map(|memory| {
        let [default, without] = [None, Some(false)].map(|await_loops| {
            let mut builder = Builder::new();
            (builder.await_loops, builder.memory) = (await_loops, memory);
            builder.outcomes(body).into_keys().collect::<Vec<_>>()
        });
        assert_eq!(default, without, "{memory:?}");
        default
    });
    // All accesses are `SeqCst`.
    let [sc, c11] = found;
    assert_eq!(sc, c11);
    sc
}

/// A thread may do something else behind its loop if it has had to wait, and the state at each of
/// its hints is the same.
#[test]
fn by_default_it_counts_whether_a_thread_has_had_to_wait() {
    let outcomes = found_by_default(|| {
        let flag = Arc::new(AtomicUsize::new(0));
        let theirs = flag.clone();
        let other = thread::spawn(move || theirs.store(1, SeqCst));
        let mut waited = false;
        while flag.load(SeqCst) == 0 {
            waited = true;
            hint::spin_loop();
        }
        other.join().unwrap();
        waited
    });
    assert_eq!(outcomes, [false, true]);
}

/// The value that was read last in vain, the number of rounds, and a plain variable that each round
/// changes on the heap.
#[test]
fn by_default_it_counts_what_a_round_leaves_behind() {
    type Looks = fn(&AtomicUsize) -> usize;
    fn looked(looks: Looks) -> usize {
        let flag = Arc::new(AtomicUsize::new(0));
        let theirs = flag.clone();
        let other = thread::spawn(move || (1..=3).for_each(|it| theirs.store(it, SeqCst)));
        let found = looks(&flag);
        other.join().unwrap();
        found
    }
    let last = found_by_default(|| {
        looked(|flag| {
            let mut last = 10;
            loop {
                match flag.load(SeqCst) {
                    3 => break last,
                    seen => last = seen,
                }
                hint::spin_loop();
            }
        })
    });
    assert_eq!(last, [0, 1, 2, 10]);
    let rounds = found_by_default(|| {
        looked(|flag| {
            let mut rounds = 0;
            while flag.load(SeqCst) < 3 {
                rounds = 2.min(rounds + 1);
                hint::spin_loop();
            }
            rounds
        })
    });
    assert_eq!(rounds, [0, 1, 2]);
    let kept = found_by_default(|| {
        looked(|flag| {
            let mut kept = Box::new(0);
            while flag.load(SeqCst) < 1 {
                *kept = 2.min(*kept + 1);
                hint::spin_loop();
            }
            *kept
        })
    });
    assert_eq!(kept, [0, 1, 2]);
}

/// The documents give these numbers (`docs/LOOPS.md`, "Loops as one step").
#[test]
fn the_guide_has_the_right_numbers() {
    for (which, threads, with, default, without) in [
        ("ticket lock", 3, 6, 48, 408),
        ("ticket lock", 4, 24, 1_536, 119_136),
        ("MCS lock", 3, 66, 438, 6_630),
        ("turns", 2, 1, 512, 262_144),
    ] {
        let mut programs = WAITING.iter().filter(|(name, _)| *name == which);
        let (_, program) = programs.next().expect("it is one of these");
        let report = awaits().check(program(threads, true));
        assert_eq!((report.executions, report.pruned), (with, 0), "{which}");
        let report = Builder::new().check(program(threads, true));
        assert_eq!((report.executions, report.pruned), (default, 0), "{which}");
        let mut builder = Builder::new();
        builder.memory = Memory::C11;
        let report = builder.check(program(threads, true));
        assert_eq!((report.executions, report.pruned), (default, 0), "{which}");
        let mut builder = Builder::new();
        builder.await_loops = Some(false);
        let report = builder.check(program(threads, true));
        assert_eq!(report.executions, without, "{which}, {threads} threads");
    }
    for (which, default, without) in [
        ("compare-exchange", 48, 288),
        ("test, and test and set", 234, 960),
        ("test and set", 1_146, 1_146),
    ] {
        let mut programs = WAITING.iter().filter(|(name, _)| *name == which);
        let (_, program) = programs.next().expect("it is one of these");
        for (await_loops, executions) in [(None, default), (Some(false), without)] {
            let mut builder = Builder::new();
            (builder.await_loops, builder.memory) = (await_loops, Memory::C11);
            let report = builder.check(program(3, true));
            assert_eq!(
                (report.executions, report.pruned),
                (executions, 0),
                "{which}"
            );
        }
    }
}

/// Where the last store of all has the value with which the loop goes round, the loop is endless,
/// although an older store would let it end.
#[test]
fn a_loop_that_may_read_an_old_value_may_as_well_go_round_for_ever() {
    let body = || {
        let flag = Arc::new(AtomicUsize::new(0));
        let theirs = flag.clone();
        let other = thread::spawn(move || [1, 0].map(|it| theirs.store(it, Relaxed)));
        while flag.load(Relaxed) == 0 {
            hint::spin_loop();
        }
        other.join().unwrap();
    };
    for memory in [Memory::Sc, Memory::C11] {
        let mut builder = Builder::new();
        builder.memory = memory;
        let failure = builder.explore(body);
        let failure = *failure.expect_err("it goes round for ever");
        assert_eq!(failure.kind(), FailureKind::Livelock, "{memory:?}");
        let mut replay = Builder::new();
        replay.replay = Some(failure.schedule().to_owned());
        let again = replay.explore(body);
        let again = again.expect_err("the schedule fails, too");
        assert_eq!(again.kind(), failure.kind(), "{memory:?}");
    }
}

/// Data that a thread which waits reads behind its loop may be old.
#[test]
fn what_is_read_behind_a_loop_may_be_old_under_c11() {
    fn passing(load: Ordering) -> impl Fn() + Send + Sync {
        move || {
            let all: Arc<[AtomicUsize; 2]> = Arc::default();
            let theirs = all.clone();
            let other = thread::spawn(move || {
                theirs[0].store(1, Relaxed);
                theirs[1].store(1, Release);
            });
            while all[1].load(load) == 0 {
                hint::spin_loop();
            }
            assert_eq!(all[0].load(Relaxed), 1);
            other.join().unwrap();
        }
    }
    let failure = *Builder::new()
        .explore(passing(Relaxed))
        .expect_err("it is old");
    assert!(failure.schedule().starts_with("v2 c11"), "{failure}");
    let mut replay = Builder::new();
    replay.replay = Some(failure.schedule().to_owned());
    let again = replay
        .explore(passing(Relaxed))
        .expect_err("the schedule fails, too");
    assert_eq!(again.kind(), FailureKind::Panic);
    let report = Builder::new().check(passing(Acquire));
    assert_eq!((report.executions, report.complete), (2, true), "{report}");
}

/// What the first thread does that looks at the flag while the second one sets it.
fn watched(looks: impl Fn(&AtomicUsize) + Send + Sync + 'static) -> impl Fn() + Send + Sync {
    let looks = std::sync::Arc::new(looks);
    move || {
        let flag = Arc::new(AtomicUsize::new(0));
        let (looks, theirs) = (looks.clone(), flag.clone());
        let looker = thread::spawn(move || looks(&theirs));
        flag.store(1, SeqCst);
        looker.join().unwrap();
    }
}

/// How many executions there are with loops for steps and without.
fn with_and_without(body: impl Fn() + Send + Sync + Clone + 'static) -> [u64; 2] {
    [true, false].map(|await_loops| {
        let mut builder = Builder::new();
        builder.await_loops = Some(await_loops);
        builder.check(body.clone()).executions
    })
}

#[test]
fn a_loop_that_gives_up_by_itself_is_explored_as_ever() {
    let tries = |most: usize| {
        let looks = move |flag: &AtomicUsize| {
            for _ in 0..most {
                if flag.load(SeqCst) == 1 {
                    break;
                }
                hint::spin_loop();
            }
        };
        let body = std::sync::Arc::new(watched(looks));
        with_and_without(move || body())
    };
    // One that looks three times waits before the last of its hints, and one that looks two times never.
    for most in [2, 3, 4, 50, if COUNTS_SHOW { 1000 } else { 60 }] {
        let [with, without] = tries(most);
        assert_eq!(with, without, "{most} looks");
        assert!(with > 2, "{with}");
    }
    // And if it never gives up within the time that it is looked at, it waits: the flag is set before its look.
    let [with, without] = tries(20_000);
    assert_eq!((with, without), (1, 4));
}

/// How a worker takes one piece of work from what there is, if there is some.
type Takes = fn(&AtomicUsize) -> bool;

#[test]
fn a_round_in_which_something_is_done_is_not_in_vain() {
    // What is taken there is taken by the same operation that finds nothing in a round that is in vain.
    let takes: [Takes; 3] = [
        |left| match left.load(SeqCst) {
            0 => false,
            seen => left
                .compare_exchange(seen, seen - 1, SeqCst, SeqCst)
                .is_ok(),
        },
        |left| left.compare_exchange(1, 0, SeqCst, SeqCst).is_ok(),
        |left| left.swap(0, SeqCst) > 0,
    ];
    for take in takes {
        let work = move || {
            let shared: Arc<[AtomicUsize; 2]> = Arc::default();
            let theirs = shared.clone();
            let worker = thread::spawn(move || {
                let [left, stop] = &*theirs;
                let mut done = 0;
                loop {
                    done += usize::from(take(left));
                    if stop.load(SeqCst) == 1 {
                        break done;
                    }
                    thread::yield_now();
                }
            });
            let [left, stop] = &*shared;
            for _ in 0..2 {
                left.store(1, SeqCst);
            }
            stop.store(1, SeqCst);
            worker.join().unwrap()
        };
        let with: Vec<_> = awaits().outcomes(work).into_keys().collect();
        let without: Vec<_> = Builder::new().outcomes(work).into_keys().collect();
        assert_eq!(with, without);
        assert_eq!(with, [0, 1, 2]);
    }
}

#[test]
fn where_nothing_changes_any_more_the_same_livelock_is_found() {
    let missed = || {
        let flag = Arc::new(AtomicUsize::new(0));
        let theirs = flag.clone();
        let other = thread::spawn(move || {
            theirs.store(1, SeqCst);
            theirs.store(0, SeqCst);
        });
        while flag.load(SeqCst) == 0 {
            hint::spin_loop();
        }
        other.join().unwrap();
    };
    let [with, default, without] = [Some(true), None, Some(false)].map(|await_loops| {
        let mut builder = Builder::new();
        builder.await_loops = await_loops;
        builder.explore(missed).expect_err("the flag may be missed")
    });
    assert_eq!(with.kind(), FailureKind::Livelock, "{with}");
    assert_eq!(default.kind(), FailureKind::Livelock, "{default}");
    let rows = |failure: &dpor::Failure| {
        let text = failure.to_string();
        let rows = text.lines().filter(|line| line.contains("awaits.rs:"));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(rows(&with).len() > 4, "{with}");
    assert_eq!(rows(&default), rows(&with));
    // It is shown with all that the thread does before it waits, and comes again without the setting.
    let again = again(&with, missed);
    assert_eq!(again.kind(), FailureKind::Livelock);
    assert_eq!(rows(&again), rows(&with));
    assert_eq!(without.kind(), with.kind());
}

/// Runs the schedule of a failure once more.
fn again(failure: &dpor::Failure, f: fn()) -> Box<dpor::Failure> {
    let mut builder = Builder::new();
    builder.replay = Some(failure.schedule().to_string());
    builder.explore(f).expect_err("it comes again")
}

/// A thread that looks for what comes only if it has seen that nothing else is on: in other executions it gives up.
#[test]
fn a_loop_that_gives_up_in_other_executions_is_no_step_in_any() {
    let body = || {
        // Whether the looker has to be quick, what it has seen of that, and what it looks for.
        let shared: Arc<[AtomicUsize; 3]> = Arc::default();
        let theirs = shared.clone();
        let looker = thread::spawn(move || {
            let [quick, seen, flag] = &*theirs;
            let is_quick = quick.load(SeqCst) == 1;
            seen.store(1 + usize::from(is_quick), SeqCst);
            for round in 0.. {
                if flag.load(SeqCst) == 1 || is_quick && round == 5 {
                    break;
                }
                hint::spin_loop();
            }
        });
        let theirs = shared.clone();
        let hurries = thread::spawn(move || theirs[0].store(1, SeqCst));
        let [_, seen, flag] = &*shared;
        while seen.load(SeqCst) == 0 {
            thread::yield_now();
        }
        if seen.load(SeqCst) == 1 {
            flag.store(1, SeqCst);
        }
        looker.join().unwrap();
        hurries.join().unwrap();
    };
    let [with, without] = with_and_without(body);
    assert_eq!(with, without);
}

#[test]
fn a_panic_behind_a_loop_is_shown_as_without_the_setting() {
    let body = || {
        let shared: Arc<[AtomicUsize; 2]> = Arc::default();
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            look_around(&theirs[..1]);
            theirs[1].fetch_add(1, SeqCst);
        });
        shared[0].store(1, SeqCst);
        let seen = shared[1].load(SeqCst);
        assert_eq!(seen, 0, "it was too quick");
        other.join().unwrap();
    };
    let [with, without] = [true, false].map(|await_loops| {
        let mut builder = Builder::new();
        builder.await_loops = Some(await_loops);
        let failure = builder.explore(body).expect_err("it may be as quick");
        (failure.kind(), failure.schedule().to_string())
    });
    assert_eq!(with, without);
    assert_eq!(with.0, FailureKind::Panic);
}

#[test]
fn it_means_nothing_to_a_bound_and_to_a_sampler() {
    let (_, program) = WAITING[0];
    let explored = |await_loops, set: fn(&mut Builder)| {
        let mut builder = Builder::new();
        builder.await_loops = Some(await_loops);
        builder.seed = Some(1);
        set(&mut builder);
        let report = builder.check(program(2, true));
        (report.executions, report.pruned, report.events)
    };
    // A search without the bound that takes turns would take loops for steps.
    let sets: [fn(&mut Builder); 4] = [
        |it| (it.algorithm, it.preemption_bound) = (Algorithm::Bounded, Some(1)),
        |it| (it.algorithm, it.switch_bound) = (Algorithm::Bounded, Some(4)),
        |builder| builder.algorithm = Algorithm::Bounded,
        |builder| builder.algorithm = Algorithm::Random,
    ];
    for set in sets {
        assert_eq!(explored(true, set), explored(false, set));
    }
}

#[test]
fn a_thread_that_may_be_left_behind_may_look_for_ever() {
    let mut builder = awaits();
    builder.detached_may_block = true;
    let report = builder.check(|| {
        let flag = Arc::new(AtomicUsize::new(0));
        let theirs = flag.clone();
        thread::spawn(move || look_around(std::slice::from_ref(&*theirs)));
        flag.store(0, SeqCst);
    });
    assert!(report.complete && report.pruned == 0, "{report}");
    // Before and after the store the look is in vain, and leaves no event.
    assert_eq!(report.executions, 1);
}

#[test]
fn an_exploration_that_is_taken_up_goes_on_with_its_loops_as_steps() {
    let file = std::env::temp_dir().join(format!("dpor-{}-awaits", std::process::id()));
    let (_, program) = WAITING[3];
    let whole = awaits().check(program(3, true));
    let mut parts = 0;
    loop {
        let mut builder = awaits();
        builder.checkpoint_file = Some(file.clone());
        builder.max_permutations = Some(10);
        let report = builder.check(program(3, true));
        parts += 1;
        if report.complete {
            // It counts those of the parts before.
            assert_eq!(
                (report.executions, report.pruned, report.events),
                (whole.executions, whole.pruned, whole.events)
            );
            break;
        }
    }
    assert!(parts > 3, "{parts}");
}

/// Programs with published counts for waits that are one step, and programs with waits that several
/// values end.
#[test]
fn a_wait_is_one_step_and_no_execution_is_given_up() {
    let counted = |name: &str, body: Body, executions: u64| {
        let report = awaits().check(body);
        assert!(report.complete, "{name}: {report}");
        assert_eq!(
            (report.executions, report.pruned),
            (executions, 0),
            "{name}"
        );
    };
    for readers in [1, 2, 8] {
        let body = move || {
            let flag = AtomicUsize::new(0);
            run(readers + 1, move |number| match number {
                0 => flag.store(1, SeqCst),
                _ => wait(true, || flag.load(SeqCst) == 1),
            });
        };
        counted("flag", Box::new(body), 1);
        if readers == 8 {
            assert_eq!(Builder::new().check(body).executions, 256);
            let mut builder = Builder::new();
            builder.await_loops = Some(false);
            assert_eq!(builder.check(body).executions, 65_536);
        }
    }
    // Whichever comes last goes on first, and the others in any order with its stores.
    for (threads, executions) in [(2, 2), (3, 6), (4, 24)] {
        let body = move || {
            let (left, round) = (AtomicUsize::new(threads), AtomicUsize::new(0));
            run(threads, move |_| match left.fetch_sub(1, SeqCst) {
                1 => round.store(1, SeqCst),
                _ => wait(true, || round.load(SeqCst) == 1),
            });
        };
        counted("barrier", Box::new(body), executions);
    }
    // Each value ends the wait but the first, so the wait may read each of them: that is tried.
    for stores in [1, 2, 3, 5] {
        let body = move || {
            let value = AtomicUsize::new(0);
            run(2, move |number| match number {
                0 => (1..=stores).for_each(|it| value.store(it, SeqCst)),
                _ => wait(true, || value.load(SeqCst) >= 1),
            });
        };
        counted("any value", Box::new(body), stores as u64);
    }
    // The value that ends the wait lies between others, and comes twice.
    let passed = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = passed.clone();
    let body = move || {
        let value = AtomicUsize::new(0);
        run(2, move |number| match number {
            0 => [1, 2, 1, 3].iter().for_each(|&it| value.store(it, SeqCst)),
            _ => {
                wait(true, || value.load(SeqCst) == 1);
                value.store(4, SeqCst);
            }
        });
        counted.fetch_add(1, SeqCst);
    };
    let mut found = awaits();
    found.simplify = 0;
    found.max_failures = usize::MAX;
    let failure = found.explore(body).expect_err("it may come too late");
    assert_eq!(failure.kind(), FailureKind::Livelock, "{failure}");
    // Behind the first 1 the store of 4 comes before one of the three other stores or behind all,
    // and behind the next 1 before the 3 or behind it.
    assert_eq!(passed.load(SeqCst), 6);
}

/// A loop may look with another operand each time, or do something else behind a look in vain.
#[test]
fn a_loop_that_does_not_look_again_is_explored_as_without_the_setting() {
    let counter = |value: &AtomicUsize| {
        let mut seen = value.load(SeqCst);
        while let Err(other) = value.compare_exchange(seen, seen + 1, SeqCst, SeqCst) {
            seen = other;
            hint::spin_loop();
        }
    };
    let sometimes = |value: &AtomicUsize| {
        // In an execution in which the other thread was there before, it writes in between.
        let is_late = value.load(SeqCst) == 2;
        while value.load(SeqCst) & 1 == 0 {
            if is_late {
                value.fetch_add(0, SeqCst);
            }
            hint::spin_loop();
        }
    };
    let programs: [fn(&AtomicUsize); 2] = [counter, sometimes];
    for looks in programs {
        let body = move || {
            let value = Arc::new(AtomicUsize::new(0));
            let theirs = value.clone();
            let other = thread::spawn(move || looks(&theirs));
            value.fetch_add(2, SeqCst);
            value.fetch_add(1, SeqCst);
            other.join().unwrap();
            value.load(SeqCst)
        };
        let with: Vec<_> = awaits().outcomes(body).into_keys().collect();
        let without: Vec<_> = Builder::new().outcomes(body).into_keys().collect();
        assert_eq!(with, without);
    }
}

/// A thread tries a round with a value that has passed. If it leaves its loop then, it must do
/// nothing there that counts.
#[test]
fn a_round_that_is_only_tried_fails_in_no_way_of_its_own() {
    let body = || {
        let shared: Arc<[AtomicUsize; 2]> = Arc::default();
        let theirs = shared.clone();
        let waiter = thread::spawn(move || {
            let seen = loop {
                match theirs[0].load(SeqCst) {
                    0 => hint::spin_loop(),
                    seen => break seen,
                }
            };
            // What it has seen is as it left it, or a block that is gone.
            let block: Box<AtomicUsize> = Box::new(AtomicUsize::new(seen));
            assert_ne!(block.load(SeqCst), 3, "it is too late");
            theirs[1].store(seen, SeqCst);
        });
        for value in [1, 2, 3] {
            shared[0].store(value, SeqCst);
        }
        let seen = shared[1].load(SeqCst);
        waiter.join().unwrap();
        seen
    };
    let [with, without] = [true, false].map(|await_loops| {
        let mut builder = Builder::new();
        builder.await_loops = Some(await_loops);
        builder.max_failures = usize::MAX;
        builder.simplify = 0;
        let failure = builder
            .explore(move || _ = body())
            .expect_err("it may come late");
        let all = [&*failure].into_iter().chain(failure.others());
        let kinds: std::collections::BTreeSet<_> =
            all.map(|it| format!("{:?}", it.kind())).collect();
        kinds
    });
    assert_eq!(with, without);
    assert_eq!(with.len(), 1);
}

/// Plain data that threads share.
struct Shared(UnsafeCell<usize>);

// SAFETY: the model watches the accesses, and runs one thread at a time.
unsafe impl Sync for Shared {}

/// The thread that waits has looked in vain at a value that it would have learnt something from. It
/// learns nothing from a look that is no part of the execution.
#[test]
fn a_look_in_vain_orders_no_accesses() {
    let body = || {
        let data = Arc::new(Shared(UnsafeCell::new(0)));
        let shared: Arc<[AtomicUsize; 2]> = Arc::default();
        let (cell, theirs) = (data.clone(), shared.clone());
        let writer = thread::spawn(move || {
            // SAFETY: the model watches the accesses.
            cell.0.with_mut(|it| unsafe { *it = 1 });
            theirs[0].store(1, Release);
            wait(true, || theirs[1].load(Acquire) == 1);
            // The reader of this value learns of no write.
            theirs[0].store(2, Relaxed);
        });
        let (cell, theirs) = (data, shared.clone());
        let reader = thread::spawn(move || {
            wait(true, || theirs[0].load(Acquire) == 2);
            // SAFETY: the model watches the accesses.
            cell.0.with(|it| unsafe { *it })
        });
        let theirs = shared;
        let other = thread::spawn(move || theirs[1].store(1, Release));
        for thread in [writer, other] {
            thread.join().unwrap();
        }
        reader.join().unwrap();
    };
    let failure = awaits().explore(body).expect_err("nothing orders the two");
    assert_eq!(failure.kind(), FailureKind::DataRace, "{failure}");
}
