//! Is an exploration under C11 in parts the same as one in a piece, and the one behind sequential
//! consistency?

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::sync::atomic::{AtomicPtr, AtomicUsize, fence};
use dpor::sync::{Arc, Condvar, Mutex, mpsc};
use dpor::{Builder, FailureKind, Memory, Order, Report, Verdict, WeakMemory, thread};

use super::{Scratch, refusal};

/// A program and its name.
type Program = (&'static str, fn());

/// Each of these threads, with main behind them.
fn together<const N: usize>(bodies: [Box<dyn FnOnce() + Send>; N]) {
    let threads = bodies.map(thread::spawn);
    threads.into_iter().for_each(|it| it.join().unwrap());
}

fn store_buffering() {
    let all = Arc::new([(); 3].map(|()| AtomicUsize::new(0)));
    let body = |at: usize| -> Box<dyn FnOnce() + Send> {
        let all = all.clone();
        Box::new(move || {
            all[at].store(1, Release);
            let read = all[(at + 1) % 3].load(Acquire);
            dpor::outcome(format_args!("{at} reads {read}"));
        })
    };
    together([body(0), body(1), body(2)]);
}

/// A static that each execution finds as it was, with read-modify-writes that fail and succeed.
fn exchanges() {
    static SHARED: AtomicUsize = AtomicUsize::new(0);
    static BEFORE: AtomicUsize = AtomicUsize::new(0);
    let change = |by: usize, order: Ordering| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            let _ = SHARED.compare_exchange_weak(0, by, order, Relaxed);
            let found = SHARED.fetch_add(1, Relaxed);
            dpor::outcome(format_args!("{found} {}", BEFORE.load(Relaxed)));
        })
    };
    let store = Box::new(|| {
        BEFORE.store(1, Relaxed);
        SHARED.store(7, Relaxed);
    });
    together([change(1, AcqRel), change(2, Relaxed), store]);
}

/// Fences, and a pointer: its value differs from one process to the next.
fn published() {
    let (place, flag) = (
        Arc::new(AtomicPtr::default()),
        Arc::new(AtomicUsize::new(0)),
    );
    let theirs = (place.clone(), flag.clone());
    let other = thread::spawn(move || {
        let value = Box::into_raw(Box::new(AtomicUsize::new(5)));
        theirs.0.store(value, Relaxed);
        fence(Release);
        theirs.1.store(1, Relaxed);
        fence(SeqCst);
        theirs.1.fetch_add(1, Relaxed);
    });
    let seen = flag.load(Relaxed);
    let is_there = !place.load(Relaxed).is_null();
    fence(Acquire);
    dpor::outcome(format_args!("{seen} {is_there}"));
    other.join().unwrap();
    // SAFETY: the other thread has made the block, and has ended.
    drop(unsafe { Box::from_raw(place.load(Relaxed)) });
}

/// Every other kind of object beside weak accesses, and a loop that waits.
fn objects() {
    let ready = Arc::new((Mutex::new(false), Condvar::new()));
    let (flag, data) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (sender, receiver) = mpsc::sync_channel(1);
    let theirs = (ready.clone(), flag.clone(), data.clone());
    let first = Box::new(move || {
        let (ready, flag, data) = theirs;
        data.store(1, Relaxed);
        flag.store(1, Relaxed);
        *ready.0.lock().unwrap() = true;
        ready.1.notify_one();
        sender.send(data.load(Relaxed)).unwrap();
    });
    let seen = (flag.clone(), data.clone());
    let second = Box::new(move || {
        while seen.0.load(Relaxed) == 0 {
            dpor::hint::spin_loop();
        }
        dpor::outcome(format_args!("behind the loop {}", seen.1.load(Relaxed)));
    });
    let third = Box::new(move || {
        let is_ready = ready
            .1
            .wait_while(ready.0.lock().unwrap(), |it| !*it)
            .unwrap();
        drop(is_ready);
        let received = receiver.recv().unwrap();
        dpor::outcome(format_args!("received {received}, {}", flag.load(Relaxed)));
    });
    together([first, second, third]);
}

const PROGRAMS: [Program; 4] = [
    ("store_buffering", store_buffering),
    ("exchanges", exchanges),
    ("published", published),
    ("objects", objects),
];

/// One run, stopped after so many executions, if that is a part.
fn run(memory: Memory, part: Option<(&Path, usize)>, body: fn()) -> Report {
    run_in(Order::DepthFirst, memory, part, body)
}

/// [`run`] in an order.
fn run_in(order: Order, memory: Memory, part: Option<(&Path, usize)>, body: fn()) -> Report {
    let mut builder = Builder::new();
    (builder.memory, builder.order) = (memory, order);
    if let Some((file, most)) = part {
        builder.checkpoint_file = Some(file.to_owned());
        builder.max_permutations = Some(most);
    }
    builder.check(body)
}

/// What a report says, without the time.
fn said(report: &Report) -> (u64, u64, usize, Verdict, WeakMemory, BTreeMap<String, u64>) {
    (
        report.executions,
        report.events,
        report.longest,
        report.verdict,
        report.weak.clone(),
        report.outcomes.clone(),
    )
}

#[test]
fn an_exploration_under_c11_in_parts_is_the_same_as_one_in_a_piece() {
    for memory in [Memory::C11, Memory::Auto] {
        for (name, body) in PROGRAMS {
            let whole = run(memory, None, body);
            assert_eq!(whole.verdict, Verdict::Complete, "{name}");
            let is_explored = matches!(whole.weak, WeakMemory::Explored { .. });
            assert_eq!(is_explored, memory == Memory::Auto, "{name}: {whole}");
            for most in [1, 4, 23] {
                let file = Scratch::new(name);
                let mut parts = 0;
                let last = loop {
                    let part = run(memory, Some((&file.0, most)), body);
                    if !matches!(part.verdict, Verdict::Stopped(_)) {
                        break part;
                    }
                    assert!(file.0.exists(), "a limit leaves a checkpoint");
                    parts += 1;
                };
                assert!(
                    parts >= (whole.executions / most as u64).saturating_sub(1),
                    "{name}: {parts}"
                );
                assert_eq!(said(&last), said(&whole), "{name}, {most} at a time");
                assert!(!file.0.exists(), "the end leaves none");
            }
        }
    }
}

#[test]
fn an_exploration_under_c11_in_an_order_may_be_one_in_parts() {
    let orders = [
        Order::BitReversal,
        Order::RoundRobin,
        Order::Stride,
        Order::ConflictFirst,
    ];
    for (name, body) in PROGRAMS {
        let whole = run(Memory::C11, None, body);
        for (order, most) in orders.into_iter().zip([1, 4, 23, 2]) {
            let file = Scratch::new(name);
            let part = || run_in(order, Memory::C11, Some((&file.0, most)), body);
            let last = std::iter::repeat_with(part)
                .find(|part| !matches!(part.verdict, Verdict::Stopped(_)))
                .expect("an end");
            let context = format!("{name}, {order:?}, {most} at a time");
            assert_eq!(said(&last), said(&whole), "{context}");
            assert!(!file.0.exists(), "the end leaves none");
        }
    }
}

#[test]
fn a_part_says_which_pass_it_is_in() {
    let file = Scratch::new("passes");
    let whole = run(Memory::Auto, None, store_buffering);
    let WeakMemory::Explored {
        operation,
        sequential,
    } = whole.weak
    else {
        panic!("{whole}");
    };
    let all = sequential as usize;
    let first = run(Memory::Auto, Some((&file.0, all - 1)), store_buffering);
    assert_eq!(
        first.weak,
        WeakMemory::Possible {
            operation: operation.clone()
        },
        "{first}"
    );
    // The first pass ends here, and the second one begins.
    let second = run(Memory::Auto, Some((&file.0, 2)), store_buffering);
    let explored = WeakMemory::Explored {
        operation,
        sequential,
    };
    assert_eq!(
        (second.executions, &second.weak),
        (2, &explored),
        "{second}"
    );
    let last = run(Memory::Auto, Some((&file.0, 100)), store_buffering);
    assert_eq!((last.executions, &last.weak), (whole.executions, &explored));
    assert_eq!(last.verdict, Verdict::Complete);
}

#[test]
fn no_weak_behaviour_in_any_part_is_a_proof() {
    fn strong() {
        let shared = Arc::new(AtomicUsize::new(0));
        let theirs = shared.clone();
        let other = thread::spawn(move || theirs.fetch_add(1, SeqCst));
        shared.fetch_add(1, SeqCst);
        other.join().unwrap();
    }
    let file = Scratch::new("strong");
    let first = run(Memory::Auto, Some((&file.0, 1)), strong);
    assert_eq!(first.weak, WeakMemory::Unasked, "{first}");
    let last = run(Memory::Auto, Some((&file.0, 9)), strong);
    assert_eq!((last.executions, last.weak), (2, WeakMemory::Impossible));
    assert!(!file.0.exists());
}

#[test]
fn a_failure_under_c11_is_the_same_in_parts() {
    fn fails() {
        let all = Arc::new([(); 2].map(|()| AtomicUsize::new(0)));
        let theirs = all.clone();
        let other = thread::spawn(move || {
            let chosen = dpor::choose(4);
            theirs[0].store(1, Relaxed);
            (chosen, theirs[1].load(Relaxed))
        });
        all[1].store(1, Relaxed);
        let mine = all[0].load(Relaxed);
        let (chosen, their) = other.join().unwrap();
        assert!((chosen, mine, their) != (2, 0, 0), "both are old");
    }
    for memory in [Memory::C11, Memory::Auto] {
        let explore = |part: Option<(&Path, usize)>| {
            let mut builder = Builder::new();
            builder.memory = memory;
            if let Some((file, most)) = part {
                builder.checkpoint_file = Some(file.to_owned());
                builder.max_permutations = Some(most);
            }
            builder.explore(fails)
        };
        let whole = explore(None).expect_err("it fails");
        assert!(whole.schedule().contains("c11"), "{whole}");
        let file = Scratch::new("fails");
        let parts = (0..100).find_map(|_| explore(Some((&file.0, 1))).err());
        let parts = parts.expect("it fails in parts");
        assert_eq!(parts.schedule(), whole.schedule());
        assert_eq!(parts.kind(), whole.kind());
        let again = explore(Some((&file.0, 100))).expect_err("it fails again");
        assert_eq!(again.schedule(), whole.schedule());
    }
}

#[test]
fn a_file_of_another_model_of_memory_is_refused() {
    let file = Scratch::new("memory");
    run(Memory::Sc, Some((&file.0, 2)), store_buffering);
    let told = refusal(|| run(Memory::Auto, Some((&file.0, 2)), store_buffering));
    let why = "was written with the setting memory sc, and not memory auto; ";
    assert!(told.contains(why), "{told}");
}

#[test]
fn a_test_that_does_something_else_in_another_part_is_not_deterministic() {
    use std::sync::atomic::AtomicBool;

    static OTHERWISE: AtomicBool = AtomicBool::new(false);
    fn body() {
        let all = Arc::new([(); 2].map(|()| AtomicUsize::new(0)));
        let theirs = all.clone();
        let at = usize::from(OTHERWISE.load(SeqCst));
        let other = thread::spawn(move || {
            theirs[at].store(1, Relaxed);
            theirs[1 - at].load(Relaxed);
        });
        all[1 - at].store(1, Relaxed);
        all[at].load(Relaxed);
        other.join().unwrap();
    }
    let file = Scratch::new("otherwise");
    let part = || {
        let mut builder = Builder::new();
        builder.memory = Memory::C11;
        builder.checkpoint_file = Some(file.0.clone());
        builder.max_permutations = Some(1);
        builder.explore(body)
    };
    part().expect("nothing fails");
    OTHERWISE.store(true, SeqCst);
    let failure = part().expect_err("it does something else");
    assert_eq!(failure.kind(), FailureKind::NotDeterministic, "{failure}");
}
