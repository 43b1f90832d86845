//! Is it reported where a loop went round many times, with a hint or without one?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex};
use dpor::{Builder, thread};

use super::printed;

/// Waits for what another thread stores, and does `relax` in each round.
fn waits(relax: fn()) {
    let ready = Arc::new(AtomicUsize::new(0));
    let theirs = ready.clone();
    let other = thread::spawn(move || theirs.store(1, SeqCst));
    while ready.load(SeqCst) == 0 {
        relax();
    }
    other.join().unwrap();
}

/// Not tests of their own: what [`a_loop_without_a_hint_is_told_where_it_is`] runs.
#[test]
fn child_that_waits_without_a_hint() {
    Builder::new().check(|| waits(|| ()));
}

#[test]
fn child_that_waits_with_a_hint() {
    Builder::new().check(|| waits(dpor::hint::spin_loop));
}

#[test]
fn a_loop_without_a_hint_is_told_where_it_is() {
    let text = printed("limits::hints::child_that_waits_without_a_hint", &[]);
    let at = include_str!("hints.rs").lines();
    let at = at
        .take_while(|line| !line.contains("while ready.load"))
        .count()
        + 1;
    let said = format!(
        " a loop without a hint went round 10 times before it was taken for waiting: it comes back to `load` of ready at tests/verdict/limits/hints.rs:{at}:"
    );
    assert!(text.contains(&said), "{text}");
    assert!(!text.contains("called in the loop"), "{text}");
    assert_eq!(
        printed("limits::hints::child_that_waits_with_a_hint", &[]),
        ""
    );
    // Whoever waits for the end of a long exploration wants to know why it is long.
    let text = printed(
        "limits::hints::child_that_waits_without_a_hint",
        &[("DPOR_LOG", "1")],
    );
    let (_, rest) = text.split_once(&said).expect("it is told");
    assert!(rest.contains("dpor: execution "), "{text}");
}

/// Not a test of its own: what [`what_a_loop_without_a_hint_comes_back_to_is_told`] runs.
#[test]
fn child_that_tries_without_a_hint() {
    Builder::new().check(|| {
        let lock = Arc::new(Mutex::new(()));
        let theirs = lock.clone();
        let other = thread::spawn(move || drop(theirs.lock()));
        while lock.try_lock().is_err() {}
        other.join().unwrap();
    });
    Builder::new().check(|| {
        let mut value = Arc::new(());
        let theirs = value.clone();
        let other = thread::spawn(move || drop(theirs));
        while let Err(shared) = Arc::try_unwrap(value) {
            value = shared;
        }
        other.join().unwrap();
    });
}

#[test]
fn what_a_loop_without_a_hint_comes_back_to_is_told() {
    let text = printed("limits::hints::child_that_tries_without_a_hint", &[]);
    for (what, call) in [
        ("lock.try_lock().is_err()", "`try_lock` of lock"),
        ("= Arc::try_unwrap(", "`Arc::try_unwrap`"),
    ] {
        let mut lines = include_str!("hints.rs").lines();
        let at = lines.position(|line| line.contains(what)).expect("a line") + 1;
        let said = format!("it comes back to {call} at tests/verdict/limits/hints.rs:{at}:");
        assert!(text.contains(&said), "{said}\n{text}");
    }
}

/// Not a test of its own: what [`an_exploration_that_is_stopped_says_if_loops_could_be_one_step`] runs.
#[test]
fn child_that_waits_at_a_hint_of_its_own() {
    Builder::new().check(|| waits(|| thread::yield_now()));
}

#[test]
fn an_exploration_that_is_stopped_says_if_loops_could_be_one_step() {
    let child = "limits::hints::child_that_waits_at_a_hint_of_its_own";
    // There are two executions by default.
    let stopped = ("DPOR_MAX_PERMUTATIONS", "1");
    let told = |more: &[(&str, &str)]| {
        let text = printed(child, &[&[stopped], more].concat());
        assert!(
            text.contains("DPOR_MAX_PERMUTATIONS") || !more.is_empty(),
            "{text}"
        );
        let at = "threads wait at tests/verdict/limits/hints.rs:";
        text.contains(at) && text.contains("(DPOR_AWAIT_LOOPS=1)")
    };
    assert!(told(&[]));
    // Not if they are, and not where that would mean nothing.
    assert!(!told(&[("DPOR_AWAIT_LOOPS", "1")]));
    assert!(!told(&[("DPOR_MAX_PREEMPTIONS", "1")]));
    assert!(!told(&[("DPOR_ALGORITHM", "random")]));
}

/// Not a test of its own: what [`a_loop_that_calls_what_reads_is_told_where_it_is`] runs.
#[test]
fn child_that_waits_by_what_it_calls() {
    #[derive(Default)]
    struct Gate(AtomicUsize);
    impl Gate {
        fn is_open(&self) -> bool {
            self.0.load(SeqCst) == 1
        }
        fn any_is_open(gates: &[Gate; 2]) -> bool {
            gates.iter().any(|gate| gate.is_open())
        }
    }
    Builder::new().check(|| {
        let gates: Arc<[Gate; 2]> = Arc::default();
        let theirs = gates.clone();
        let other = thread::spawn(move || theirs[1].0.store(1, SeqCst));
        // There is more than one thing to look at, and more than one function between the loop and the look.
        while !Gate::any_is_open(&gates) {
            std::hint::spin_loop();
        }
        other.join().unwrap();
    });
}

#[test]
fn a_loop_that_calls_what_reads_is_told_where_it_is() {
    let text = printed("limits::hints::child_that_waits_by_what_it_calls", &[]);
    let at = |what: &str| {
        let lines = include_str!("hints.rs").lines();
        lines.take_while(|line| !line.contains(what)).count() + 1
    };
    let (read, goes_round) = (at("self.0.load(SeqCst) == 1"), at("while !Gate::any"));
    let read =
        format!(" it comes back to `load` of self.0 at tests/verdict/limits/hints.rs:{read}:");
    let (_, rest) = text.split_once(&read).expect("the read is told");
    let (_, rest) = rest.split_once(' ').expect("its column");
    let said = format!("(called in the loop at tests/verdict/limits/hints.rs:{goes_round});");
    assert!(rest.starts_with(&said), "{text}");
}

/// Not a test of its own: what [`a_loop_that_goes_round_often_because_another_one_gives_up_is_told_with_that`] runs.
#[test]
fn child_that_waits_and_looks_a_few_times() {
    Builder::new().check(|| {
        let seen = AtomicUsize::new(0);
        (0..50).for_each(|_| assert_eq!(seen.load(SeqCst), 0));
        waits(|| ());
    });
}

#[test]
fn a_loop_that_goes_round_often_because_another_one_gives_up_is_told_with_that() {
    let text = printed("limits::hints::child_that_waits_and_looks_a_few_times", &[]);
    let said = " a loop without a hint went round 1000 times (so often because another one gives up by itself) before ";
    assert!(text.contains(said), "{text}");
    assert!(
        !text.contains("reads seen"),
        "that one is no loop that waits: {text}"
    );
    let text = printed(
        "limits::hints::child_that_waits_and_looks_a_few_times",
        &[("DPOR_LOG", "1")],
    );
    let anew = " has a loop without a hint that gives up by itself, so it is explored anew, with many rounds of such loops";
    assert!(text.contains(anew), "{text}");
}

/// Not a test of its own: what [`what_is_said_of_a_loop_without_a_hint_is_not_said_again`] runs.
#[test]
fn child_that_waits_without_a_hint_in_many_explorations() {
    for _ in 0..3 {
        Builder::new().check(|| waits(|| ()));
        Builder::new().check(|| waits(|| ()));
    }
}

#[test]
fn what_is_said_of_a_loop_without_a_hint_is_not_said_again() {
    let text = printed(
        "limits::hints::child_that_waits_without_a_hint_in_many_explorations",
        &[],
    );
    let said: Vec<&str> = text.lines().collect();
    // Once of each of the two models.
    assert_eq!(said.len(), 2, "{text}");
    assert!(
        (said.iter()).all(|line| line.contains(" a loop without a hint went round 10 times ")),
        "{text}"
    );
}

/// Not a test of its own: what [`a_loop_that_two_threads_keep_going_is_told_where_it_is`] runs.
#[test]
fn child_with_loops_that_take_and_put_back() {
    let mut builder = Builder::new();
    builder.max_permutations.get_or_insert(1000);
    builder.check(|| {
        let shared: Arc<[AtomicUsize; 2]> = Arc::default();
        let poll = |[lock, ready]: &[AtomicUsize; 2]| {
            loop {
                if lock.swap(1, SeqCst) == 0 {
                    let is_ready = ready.load(SeqCst) == 1;
                    lock.store(0, SeqCst);
                    if is_ready {
                        return;
                    }
                }
                dpor::hint::spin_loop();
            }
        };
        let others = [(), ()].map(|()| {
            let theirs = shared.clone();
            thread::spawn(move || poll(&theirs))
        });
        shared[1].store(1, SeqCst);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn a_loop_that_two_threads_keep_going_is_told_where_it_is() {
    let told = |variables: &[(&str, &str)]| {
        let text = printed(
            "limits::hints::child_with_loops_that_take_and_put_back",
            variables,
        );
        assert!(text.contains("was not explored in full"), "{text}");
        let at = include_str!("hints.rs").lines();
        let at = at.take_while(|line| line.trim() != "dpor::hint::spin_loop();");
        let said = format!(
            " times to the hint at tests/verdict/limits/hints.rs:{}:",
            at.count() + 1
        );
        text.contains(&said) && text.contains("DPOR_MAX_ROUNDS=3")
    };
    assert!(told(&[]));
    // A few rounds are nothing, and who has bounded them knows.
    assert!(!told(&[("DPOR_MAX_PERMUTATIONS", "2")]));
    assert!(!told(&[("DPOR_MAX_ROUNDS", "2")]));
}

#[test]
fn a_loop_with_too_many_hints_is_not_told_to_have_one() {
    let explore = |slots: usize| {
        let mut builder = Builder::new();
        builder.max_branches = 500;
        builder.explore(move || {
            let all: Arc<Vec<AtomicUsize>> =
                Arc::new((0..slots).map(|_| AtomicUsize::new(0)).collect());
            let theirs = all.clone();
            let other = thread::spawn(move || theirs[slots - 1].store(1, SeqCst));
            let is_set = |slot: &AtomicUsize| {
                dpor::hint::spin_loop();
                slot.load(SeqCst) == 1
            };
            while !all.iter().any(is_set) {}
            other.join().unwrap();
        })
    };
    assert!(explore(5).is_ok());
    let text = explore(20).expect_err("too many hints").to_string();
    let told = "its loop has a hint, but more than 16 rounds until they repeat:\n  look at everything there is before each hint";
    assert!(text.contains(told), "{text}");
}
