//! Which loops are taken to wait, and for which change?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Algorithm, Builder, hint, thread};

use super::{count, two_flags};

#[test]
fn a_spinning_thread_waits_for_the_change() {
    let body = || {
        let flag = Arc::new(AtomicUsize::new(0));
        let shared = flag.clone();
        let setter = thread::spawn(move || shared.store(1, SeqCst));
        while flag.load(SeqCst) == 0 {
            hint::spin_loop();
        }
        setter.join().expect("no thread panics");
    };
    // The flag is set before the first, second, third look, or while the thread waits after it.
    assert_eq!(count(body), 4);
}

#[test]
fn waits_that_come_one_after_the_other_multiply_whatever_bound_there_is() {
    let body = || {
        let turn = Arc::new(AtomicUsize::new(0));
        let wait_for = |turn: &AtomicUsize, mine: usize| {
            while turn.load(SeqCst) != mine {
                hint::spin_loop();
            }
        };
        let theirs = turn.clone();
        let other = thread::spawn(move || {
            for mine in [1, 3] {
                wait_for(&theirs, mine);
                theirs.store(mine + 1, SeqCst);
            }
        });
        for mine in [0, 2] {
            wait_for(&turn, mine);
            turn.store(mine + 1, SeqCst);
        }
        other.join().expect("no thread panics");
    };
    // Three waits, as the first thread begins. Without a free round the third look is the wait.
    for (bound, each) in [(1, 4_u64), (0, 3)] {
        let mut builder = Builder::new();
        builder.spin_bound = bound;
        // Of the looks in vain there is one, or none.
        assert_eq!(builder.check(body).executions, 2_u64.pow(3));
        builder.await_loops = Some(false);
        assert_eq!(builder.check(body).executions, each.pow(3));
    }
}

#[test]
fn a_loop_that_also_looks_at_what_its_own_thread_has_written_waits_for_the_others_change() {
    for early in [true, false] {
        let body = move || {
            let flags = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
            let shared = flags.clone();
            let [own, flag] = &*flags;
            if early {
                own.store(1, SeqCst);
            }
            let setter = thread::spawn(move || shared[1].store(1, SeqCst));
            if !early {
                own.store(1, SeqCst);
            }
            while own.load(SeqCst) == 1 && flag.load(SeqCst) == 0 {
                thread::yield_now();
            }
            setter.join().expect("no thread panics");
        };
        // As if it looked at the flag only.
        assert_eq!(count(body), 4);
    }
}

/// A loop that backs off for longer each time, as those of many crates do.
fn back_off(rounds: &mut u32) {
    for _ in 0..1 << *rounds {
        hint::spin_loop();
    }
    *rounds = (*rounds + 1).min(6);
}

#[test]
fn a_thread_that_backs_off_for_longer_each_time_waits_like_one_that_does_not() {
    let body = || {
        let flag = Arc::new(AtomicUsize::new(0));
        let shared = flag.clone();
        let setter = thread::spawn(move || shared.store(1, SeqCst));
        let mut rounds = 0;
        while flag.load(SeqCst) == 0 {
            back_off(&mut rounds);
        }
        setter.join().expect("no thread panics");
    };
    assert_eq!(count(body), 4);
}

#[test]
fn a_thread_that_takes_and_puts_back_before_it_yields_waits_for_a_change() {
    // A consumer that takes a lock of its own making, finds nothing, gives the lock back, and yields.
    let body = || {
        let (lock, slot) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let shared = Arc::new((lock, slot));
        let theirs = shared.clone();
        let producer = thread::spawn(move || theirs.1.store(7, SeqCst));
        let found = loop {
            let (lock, slot) = &*shared;
            assert_eq!(lock.swap(1, SeqCst), 0, "there is one consumer");
            let found = slot.load(SeqCst);
            lock.store(0, SeqCst);
            if found != 0 {
                break found;
            }
            thread::yield_now();
        };
        assert_eq!(found, 7);
        producer.join().expect("no thread panics");
    };
    // The value is there for one of the first five looks, or is waited for. Only the second hint shows that there is
    // such a loop, and it is idle twice after an iteration to compare with.
    assert_eq!(count(body), 6);
}

#[test]
fn a_thread_that_looks_at_several_things_in_turns_waits_for_a_change_of_any() {
    // The flag is set before the first, second, third look at it, or waited for.
    assert_eq!(count(two_flags(1)), 4);
    // The loop ends with one of six looks; or it waits, and one flag was set behind the look at it, the other one was
    // and is seen when all is looked at again, or is set behind that and seen in the next turn, or both were set.
    assert_eq!(count(two_flags(2)), 6 + 1 + 2 + 1);
}

#[test]
fn a_thread_that_tries_a_few_times_before_it_yields_waits_for_a_change() {
    let body = || {
        let flag = Arc::new(AtomicUsize::new(0));
        let shared = flag.clone();
        let setter = thread::spawn(move || shared.store(1, SeqCst));
        let try_it = || {
            (0..3).any(|tries| {
                let is_set = flag.load(SeqCst) == 1;
                if !is_set && tries < 2 {
                    hint::spin_loop();
                }
                is_set
            })
        };
        while !try_it() {
            thread::yield_now();
        }
        setter.join().expect("no thread panics");
    };
    // Three tries with three looks each, or while the thread waits.
    assert_eq!(count(body), 3 * 3 + 1);
}

#[test]
fn a_cycle_of_rounds_in_which_something_is_changed_is_none() {
    // It counts its rounds, so it is on its way to the end.
    let body = || {
        let (flags, rounds): (Arc<[AtomicUsize; 2]>, _) = (Arc::default(), AtomicUsize::new(0));
        let shared = flags.clone();
        let setter = thread::spawn(move || shared[1].store(1, SeqCst));
        while flags[rounds.load(SeqCst) % 2].load(SeqCst) == 0 && rounds.fetch_add(1, SeqCst) < 9 {
            hint::spin_loop();
        }
        setter.join().expect("no thread panics");
    };
    // It looks five times at the flag that is set: before each of these, or never.
    assert_eq!(count(body), 5 + 1);
}

#[test]
fn that_a_spinning_thread_goes_on_is_not_said_to_be_why_it_fails() {
    // There are simpler executions in which it does not spin.
    let mut builder = Builder::new();
    builder.simplify = 1;
    let failure = builder.explore(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let counts = thread::spawn(move || (1..4).for_each(|n| theirs.store(n, SeqCst)));
        while x.load(SeqCst) == 0 {
            hint::spin_loop();
        }
        assert!(x.load(SeqCst) < 2, "too late");
        counts.join().unwrap();
    });
    let text = failure.expect_err("two of them are too many").to_string();
    // Where it goes on earlier and looks as late, it fails as well.
    assert!(text.contains("  it may fail because "), "{text}");
    let spins = "comes before main's \"spin until x changes\" (event 9): \
                 the test passed in the one order that was tried with the second before the first\n";
    assert!(text.contains(spins), "{text}");
}

#[test]
fn a_wait_that_was_let_go_is_not_shut_out_by_what_comes_later() {
    // Where both spin they are let go together, and one of them writes what is there already before the other goes on.
    for algorithm in [Algorithm::Optimal, Algorithm::Source, Algorithm::Bounded] {
        let mut builder = Builder::new();
        builder.algorithm = algorithm;
        builder.await_loops = Some(false);
        let report = builder.check(|| {
            let shared = Arc::new([0; 3].map(AtomicUsize::new));
            let theirs = shared.clone();
            let told = thread::spawn(move || {
                let [x, y, _] = &*theirs;
                loop {
                    y.store(2, SeqCst);
                    if x.load(SeqCst) != 0 {
                        break;
                    }
                    thread::yield_now();
                }
            });
            let theirs = shared.clone();
            let tells = thread::spawn(move || {
                let [x, y, z] = &*theirs;
                y.swap(0, SeqCst);
                z.store(1, SeqCst);
                while y.load(SeqCst) != 2 {
                    thread::yield_now();
                }
                x.store(1, SeqCst);
            });
            shared[2].load(SeqCst);
            for other in [told, tells] {
                other.join().expect("no thread panics");
            }
        });
        assert!(report.complete);
        assert_eq!(report.executions, 308, "{algorithm:?}");
    }
}

#[test]
fn a_loop_without_a_hint_waits_for_what_it_has_seen_and_not_for_what_is_there_when_it_comes_back() {
    // Who runs while the main thread is about to look has nothing to do with how often it has looked in vain.
    let mut builder = Builder::new();
    builder.max_permutations = Some(4000);
    let report = builder.check(|| {
        let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let threads = [0; 2].map(|_| {
            let counts = counts.clone();
            thread::spawn(move || {
                counts.0.fetch_add(1, SeqCst);
                counts.1.fetch_add(1, SeqCst);
            })
        });
        for _ in 0..2 {
            while counts.1.load(SeqCst) == 0 {
                counts.0.load(SeqCst);
            }
            counts.1.fetch_sub(1, SeqCst);
            counts.0.fetch_sub(1, SeqCst);
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(report.executions, 4000);
}
