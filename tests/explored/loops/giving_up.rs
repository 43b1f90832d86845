//! Is it reported if a loop would give up by itself after more rounds than were explored?

use std::sync::atomic::Ordering::SeqCst;

use std::time::Duration;

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{Arc, Condvar, Mutex, mpsc};
use dpor::{Builder, FailureKind, Verdict, hint, thread};

use super::{COUNTS_SHOW, fails};

/// A spin lock, taken and given back by two threads, that is tried so many times before a thread counts itself among the slow.
fn tried_first(
    times: usize,
    slow: &'static std::sync::atomic::AtomicBool,
) -> impl Fn() + Send + Sync {
    move || {
        let lock = Arc::new((AtomicBool::new(false), AtomicUsize::new(0)));
        let take = move |(taken, contended): &(AtomicBool, AtomicUsize)| {
            for _ in 0..times {
                if !taken.swap(true, SeqCst) {
                    return taken.store(false, SeqCst);
                }
                hint::spin_loop();
            }
            slow.store(true, SeqCst);
            contended.fetch_add(1, SeqCst);
            while taken.swap(true, SeqCst) {
                thread::yield_now();
            }
            taken.store(false, SeqCst);
        };
        let theirs = lock.clone();
        let other = thread::spawn(move || take(&theirs));
        take(&lock);
        other.join().expect("no thread panics");
    }
}

#[test]
fn a_loop_that_gives_up_after_more_rounds_than_are_free_is_told_and_can_be_explored() {
    static SLOW: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let explored = |times, bound| {
        SLOW.store(false, SeqCst);
        let mut builder = Builder::new();
        builder.spin_bound = bound;
        let report = builder.check(tried_first(times, &SLOW));
        (report.verdict, report.complete)
    };
    for times in [3, 10, 100] {
        let bounded = (Verdict::Waits(times), false);
        assert_eq!(explored(times, 1), bounded);
        assert_eq!(explored(times, times as u32 - 2), bounded, "{times}");
        if times < 100 {
            assert_eq!(explored(times, times as u32 - 1), (Verdict::Complete, true));
            assert!(SLOW.load(SeqCst), "{times}");
        }
    }
    // So few are free.
    assert_eq!(explored(2, 1), (Verdict::Complete, true));
    // Who counts has something on its stack that changes, and is given more time than others.
    for times in [131, 256, 1000, 9000].into_iter().filter(|_| COUNTS_SHOW) {
        assert_eq!(explored(times, 1), (Verdict::Waits(times), false));
    }
    // Nobody has so much patience.
    assert_eq!(explored(20_000, 1), (Verdict::Complete, true));
}

#[test]
fn who_asks_for_an_end_for_the_first_time_behind_its_loop_has_left_it() {
    let report = Builder::new().check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let other = thread::spawn(move || theirs.store(true, SeqCst));
        for _ in 0..20 {
            if flag.load(SeqCst) {
                return;
            }
            hint::spin_loop();
        }
        // Wrong, and not explored.
        assert!(other.is_finished());
    });
    assert_eq!(report.verdict, Verdict::Waits(20));
}

#[test]
fn what_goes_further_and_fails_has_left_its_loop() {
    let report = Builder::new().check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let waits = thread::spawn(move || {
            for _ in 0..20 {
                if theirs.load(SeqCst) {
                    return;
                }
                hint::spin_loop();
            }
            panic!("it takes too long");
        });
        flag.store(true, SeqCst);
        waits.join().expect("it is let go on in time");
    });
    assert_eq!(report.verdict, Verdict::Waits(20));
}

#[test]
fn who_goes_further_without_end_waits_again_so_that_all_come_to_their_ends() {
    use std::sync::atomic::AtomicUsize as Plain;
    static ENDS: Plain = Plain::new(0);
    static LOOKS: Plain = Plain::new(0);
    // How often the closure comes to its end, and how often it has looked in all, if the first so many looks count.
    let explored = |counted: usize| {
        ENDS.store(0, SeqCst);
        LOOKS.store(0, SeqCst);
        let mut builder = Builder::new();
        builder.await_loops = Some(false);
        let report = builder.check(move || {
            let flag = Arc::new(AtomicBool::new(false));
            let theirs = flag.clone();
            let sets = thread::spawn(move || theirs.store(true, SeqCst));
            let mut count = 0;
            while !flag.load(SeqCst) {
                LOOKS.fetch_add(1, SeqCst);
                count = counted.min(std::hint::black_box(count) + 1);
                hint::spin_loop();
            }
            ENDS.fetch_add(1, SeqCst);
            sets.join().expect("no thread panics");
        });
        assert_eq!((report.executions, report.complete), (4, true));
        (ENDS.load(SeqCst), LOOKS.load(SeqCst))
    };
    // One execution more, which is none of the exploration, in which all rounds are alike in the end.
    let (ends, looks) = explored(8);
    assert_eq!(ends, 5);
    let most = if COUNTS_SHOW { 40 } else { 200 };
    assert!(looks < most, "{looks}");
    // All that it could count in is the same when it waits for the first time, so it need not go further.
    let (ends, looks) = explored(0);
    if COUNTS_SHOW {
        assert_eq!(ends, 4);
        assert!(looks < 10, "{looks}");
    }
}

/// Whether the flag is set by another thread before `gives_up` says that the loop ends.
fn set_in_time(flag: &AtomicBool, mut gives_up: impl FnMut() -> bool) -> bool {
    while !flag.load(SeqCst) {
        if gives_up() {
            return false;
        }
        hint::spin_loop();
    }
    true
}

/// Leaves nothing of the number where the loop is.
#[inline(never)]
fn count_there(at: &mut usize, times: usize) -> bool {
    *at += 1;
    *at > times
}

/// Counts in a block of its own.
fn on_the_heap(flag: &AtomicBool, times: usize) {
    let mut count = std::hint::black_box(Box::new(0));
    set_in_time(flag, || count_there(&mut count, times));
}

/// Counts in a variable of the thread that waits for it.
fn on_the_stack_of_another(flag: &AtomicBool, times: usize) {
    let mut count = 0;
    let theirs = &mut count;
    thread::scope(|scope| {
        scope.spawn(move || set_in_time(flag, || count_there(theirs, times)));
    });
}

/// Counts in what a boxed future keeps.
fn in_a_future(flag: &AtomicBool, times: usize) {
    dpor::future::block_on(Box::pin(async {
        for _ in 0..times {
            if flag.load(SeqCst) {
                break;
            }
            hint::spin_loop();
            std::future::ready(()).await;
        }
    }));
}

#[test]
fn a_loop_that_counts_outside_of_its_stack_is_told_and_one_that_has_memory_and_does_not_count_is_not()
 {
    let explored = |times: usize, wait: fn(&AtomicBool, usize)| {
        let report = Builder::new().check(move || {
            let flag = Arc::new(AtomicBool::new(false));
            let theirs = flag.clone();
            let other = thread::spawn(move || theirs.store(true, SeqCst));
            wait(&flag, times);
            other.join().expect("no thread panics");
        });
        report.verdict
    };
    let all = [10, 100, 131, 1000, 9000];
    for times in all.into_iter().filter(|&times| COUNTS_SHOW || times < 130) {
        let waits = Verdict::Waits(times);
        assert_eq!(explored(times, on_the_heap), waits);
        assert_eq!(explored(times, on_the_stack_of_another), waits);
        assert_eq!(explored(times, in_a_future), waits);
    }
    let same = |flag: &AtomicBool, _| {
        let block = std::hint::black_box(Box::new([0_u8; 1000]));
        set_in_time(flag, || std::hint::black_box(&block)[999] == 1);
    };
    assert_eq!(explored(0, same), Verdict::Complete);
}

/// Its counter shows that it may give up, so it goes many rounds further, in which it comes back to two looks as loops without a
/// hint do.
#[test]
fn a_backoff_that_looks_elsewhere_too_does_not_give_up() {
    let backs_off = || {
        let places = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let theirs = places.clone();
        let other = thread::spawn(move || theirs[0].store(1, SeqCst));
        let mut step = 0;
        while places[0].load(SeqCst) == 0 {
            for _ in 0..1 << step {
                hint::spin_loop();
            }
            step = (step + 1).min(6);
            places[1].load(SeqCst);
        }
        other.join().expect("no thread panics");
    };
    assert_eq!(Builder::new().check(backs_off).verdict, Verdict::Complete);
    let mut builder = Builder::new();
    builder.spin_bound = 1200;
    let report = builder.check(backs_off);
    assert_eq!(
        (report.verdict, report.executions),
        (Verdict::Complete, 1204)
    );
}

/// Two loops of so many rounds, each with a hint of its own. The second looks at this one of two atomics, which another thread
/// sets one after the other.
fn one_loop_and_another(first: usize, then: usize, looks_at: usize) -> impl Fn() + Send + Sync {
    move || {
        let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let theirs = flags.clone();
        let sets = thread::spawn(move || theirs.iter().for_each(|flag| flag.store(true, SeqCst)));
        for _ in 0..first {
            if flags[0].load(SeqCst) {
                break;
            }
            hint::spin_loop();
        }
        for _ in 0..then {
            if flags[looks_at].load(SeqCst) {
                break;
            }
            thread::yield_now();
        }
        sets.join().expect("no thread panics");
    }
}

#[test]
fn a_loop_that_is_left_for_another_one_that_looks_at_the_same_is_told_with_its_own_rounds() {
    let explored = |first, then, looks_at, bound| {
        let mut builder = Builder::new();
        builder.spin_bound = bound;
        let body = one_loop_and_another(first, then, looks_at);
        builder.check(body).verdict
    };
    // The second one has no end, as far as anybody waits.
    assert_eq!(explored(10, usize::MAX, 0, 1), Verdict::Waits(10));
    assert_eq!(explored(10, usize::MAX, 0, 9), Verdict::Complete);
    for first in [3, 5, 12] {
        assert_eq!(explored(first, 12, 0, 1), Verdict::Waits(first));
    }
    // The first round of the second one is unlike the others: what came before it has looked at something else.
    assert_eq!(explored(5, 12, 1, 1), Verdict::Waits(12));
    assert_eq!(explored(5, 12, 1, 10), Verdict::Waits(12));
    assert_eq!(explored(5, 12, 1, 11), Verdict::Complete);
}

/// A guard is given back at the place where it was got, which is no other round.
#[test]
fn a_loop_that_looks_under_a_lock_gives_up_after_as_many_rounds_as_it_has() {
    let explored = |bound| {
        let mut builder = Builder::new();
        builder.spin_bound = bound;
        let report = builder.check(|| {
            let flag = Arc::new(Mutex::new(false));
            let theirs = flag.clone();
            let sets = thread::spawn(move || *theirs.lock().unwrap() = true);
            for _ in 0..5 {
                if *flag.lock().unwrap() {
                    break;
                }
                hint::spin_loop();
            }
            sets.join().expect("no thread panics");
        });
        report.verdict
    };
    assert_eq!(explored(1), Verdict::Waits(5));
    assert_eq!(explored(4), Verdict::Complete);
}

/// A backoff that begins to yield after some rounds is in one loop: it looks from one place.
#[test]
fn a_backoff_with_two_hints_that_looks_from_one_place_has_not_left_its_loop() {
    let report = Builder::new().check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let sets = thread::spawn(move || theirs.store(true, SeqCst));
        let mut step = 0;
        while !flag.load(SeqCst) {
            match step {
                7 => thread::yield_now(),
                _ => hint::spin_loop(),
            }
            step = 7.min(step + 1);
        }
        sets.join().expect("no thread panics");
    });
    assert_eq!(report.verdict, Verdict::Complete);
}

/// How many of so many tries fail before one that does not.
fn tries(times: usize, mut again: impl FnMut() -> bool) -> usize {
    (0..times).take_while(|_| again()).count()
}

const SOON: Duration = Duration::from_millis(1);

/// Receives what another thread sends.
fn receives(times: usize) -> usize {
    let (sender, receiver) = mpsc::channel();
    let other = thread::spawn(move || assert!(sender.send(1).is_ok()));
    let timeouts = tries(times, || receiver.recv_timeout(SOON).is_err());
    other.join().expect("no thread panics");
    timeouts
}

/// Parks until another thread has set a flag.
fn parks(times: usize) -> usize {
    let flag = Arc::new(AtomicBool::new(false));
    let (theirs, me) = (flag.clone(), thread::current());
    let other = thread::spawn(move || {
        theirs.store(true, SeqCst);
        me.unpark();
    });
    let timeouts = tries(times, || {
        thread::park_timeout(SOON);
        !flag.load(SeqCst)
    });
    other.join().expect("no thread panics");
    timeouts
}

/// Waits until another thread has set a flag.
fn waits(times: usize) -> usize {
    let shared = Arc::new((Mutex::new(false), Condvar::new()));
    let theirs = shared.clone();
    let other = thread::spawn(move || {
        *theirs.0.lock().unwrap() = true;
        theirs.1.notify_one();
    });
    let (mut flag, mut timeouts) = (shared.0.lock().unwrap(), 0);
    while !*flag && timeouts < times {
        let (again, waited) = shared.1.wait_timeout(flag, SOON).unwrap();
        flag = again;
        timeouts += usize::from(waited.timed_out());
    }
    drop(flag);
    other.join().expect("no thread panics");
    timeouts
}

#[test]
fn what_is_given_up_after_more_timeouts_than_are_free_is_told_and_can_be_explored() {
    for body in [receives, parks, waits] {
        let explored = |times: usize, bound: u32| {
            let seen = Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
            let all = seen.clone();
            let mut builder = Builder::new();
            builder.timeout_bound = bound;
            let report = builder.check(move || {
                let timeouts = body(times);
                all.lock().unwrap().insert(timeouts);
            });
            let seen: Vec<_> = seen.lock().unwrap().iter().copied().collect();
            (report.verdict, report.complete, seen)
        };
        for times in [3, 5] {
            let (verdict, complete, _) = explored(times, 2);
            assert_eq!((verdict, complete), (Verdict::TimesOut(times), false));
            let (verdict, complete, seen) = explored(times, times as u32);
            assert_eq!((verdict, complete), (Verdict::Complete, true));
            assert_eq!(seen, (0..=times).collect::<Vec<_>>());
        }
        // So many are free.
        assert_eq!(explored(2, 2), (Verdict::Complete, true, vec![0, 1, 2]));
        // Nobody has so much patience.
        assert_eq!(explored(1000, 2).0, Verdict::Complete);
    }
}

#[test]
fn a_helper_that_waits_in_one_place_is_given_up_like_a_loop() {
    fn receives(receiver: &mpsc::Receiver<u32>) -> bool {
        receiver.recv_timeout(SOON).is_ok()
    }
    let report = Builder::new().check(|| {
        let (sender, receiver) = mpsc::channel();
        let other = thread::spawn(move || assert!(sender.send(1).is_ok()));
        let _ = (
            receives(&receiver),
            receives(&receiver),
            receives(&receiver),
        );
        other.join().expect("no thread panics");
    });
    assert_eq!(report.verdict, Verdict::TimesOut(3));
}

/// How many are free is told by the bound on timeouts, and not by the one on rounds with a hint.
#[test]
fn a_timed_wait_that_is_given_up_is_told_with_its_timeouts_whatever_the_bound_on_them_is() {
    for bound in [3, 4] {
        let mut builder = Builder::new();
        builder.timeout_bound = bound;
        let report = builder.check(|| {
            receives(5);
        });
        assert_eq!(report.verdict, Verdict::TimesOut(5), "{bound}");
    }
}

#[test]
fn a_timed_wait_in_another_place_may_time_out_as_often_as_the_first() {
    fails(FailureKind::Panic, || {
        let (sender, receiver) = mpsc::channel();
        let told = Arc::new(AtomicUsize::new(0));
        let theirs = told.clone();
        let other = thread::spawn(move || {
            if tries(2, || receiver.recv_timeout(SOON).is_err()) == 2
                && receiver.recv_timeout(SOON).is_err()
            {
                assert_eq!(theirs.load(SeqCst), 1);
            }
        });
        told.store(1, SeqCst);
        // It may be gone.
        let _ = sender.send(());
        other.join().expect("no thread panics");
    });
}

#[test]
fn a_timed_wait_that_has_got_something_may_time_out_again_as_often_as_before() {
    fails(FailureKind::Panic, || {
        let (sender, receiver) = mpsc::channel();
        let told = Arc::new(AtomicUsize::new(0));
        let theirs = told.clone();
        let other = thread::spawn(move || {
            let mut got = [false; 4];
            for it in &mut got {
                *it = receiver.recv_timeout(SOON).is_ok();
            }
            if got == [false, true, false, false] {
                assert_eq!(theirs.load(SeqCst), 1);
            }
        });
        // It may be gone.
        let _ = sender.send(());
        told.store(1, SeqCst);
        other.join().expect("no thread panics");
        drop(sender);
    });
}

/// Who is let go further alone to see whether it gives up comes to the bound on events, and that is no answer.
#[test]
fn who_comes_to_the_bound_on_events_when_it_is_let_go_further_does_not_give_up() {
    let mut builder = Builder::new();
    builder.max_branches = 60;
    let report = builder.check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let waits = thread::spawn(move || {
            while !theirs.load(SeqCst) {
                hint::spin_loop();
            }
        });
        flag.store(true, SeqCst);
        waits.join().expect("no thread panics");
    });
    assert_eq!((report.verdict, report.complete), (Verdict::Complete, true));
}

/// Two threads tell something, and another one looks for it in turns, with a hint behind each look, so many times.
fn looked_for_in_turns(times: Option<usize>) -> impl Fn() + Send + Sync {
    move || {
        let told = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let others = [0, 1].map(|i| {
            let told = told.clone();
            thread::spawn(move || told[i].store(true, SeqCst))
        });
        let mut round = 0;
        while times.is_none_or(|times| round < times) {
            if told[0].load(SeqCst) {
                break;
            }
            hint::spin_loop();
            if told[1].load(SeqCst) {
                break;
            }
            thread::yield_now();
            round += usize::from(times.is_some());
        }
        for other in others {
            other.join().expect("no thread panics");
        }
    }
}

#[test]
fn a_loop_with_several_hints_that_gives_up_is_told_and_can_be_explored() {
    let explored = |times, bound| {
        let mut builder = Builder::new();
        builder.spin_bound = bound;
        builder.check(looked_for_in_turns(times)).verdict
    };
    for times in [4, 10, 100] {
        assert_eq!(explored(Some(times), 1), Verdict::Waits(times));
    }
    for times in [256, 1000].into_iter().filter(|_| COUNTS_SHOW) {
        assert_eq!(explored(Some(times), 1), Verdict::Waits(times));
    }
    assert_eq!(explored(Some(2), 1), Verdict::Complete);
    assert_eq!(explored(Some(6), 5), Verdict::Complete);
    // Without an end it goes round for ever.
    assert_eq!(explored(None, 1), Verdict::Complete);
}

#[test]
fn who_looks_into_several_places_in_turns_gives_up_after_as_many_turns_as_there_are() {
    let report = Builder::new().check(|| {
        let queues = Arc::new([(); 3].map(|()| Mutex::new(0)));
        let theirs = queues.clone();
        let other = thread::spawn(move || *theirs[1].lock().expect("nobody panics") = 1);
        for turn in 0..3 * 7 {
            if *queues[turn % 3].lock().expect("nobody panics") == 1 {
                break;
            }
            thread::yield_now();
        }
        other.join().expect("no thread panics");
    });
    assert_eq!(report.verdict, Verdict::Waits(7));
}

#[test]
fn who_leaves_a_loop_with_several_hints_for_another_one_has_left_it() {
    let report = Builder::new().check(|| {
        let told = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
        let theirs = told.clone();
        let other = thread::spawn(move || theirs.0.store(true, SeqCst));
        let (told, never) = &*told;
        let mut rounds = 0..6;
        let found = rounds.any(|_| {
            never.load(SeqCst);
            hint::spin_loop();
            let found = told.load(SeqCst);
            thread::yield_now();
            found
        });
        while !(found || told.load(SeqCst)) {
            hint::spin_loop();
            never.load(SeqCst);
            thread::yield_now();
        }
        other.join().expect("no thread panics");
    });
    assert_eq!(report.verdict, Verdict::Waits(6));
}
