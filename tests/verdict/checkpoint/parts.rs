//! Is an exploration in parts, of one execution each, the same as one in a piece, whatever it has to remember?

use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, Report, Verdict, thread};

use super::Scratch;

/// Explores it in a piece, and in parts of one execution each. Gives what was said of the piece, which must be said of the parts.
fn same_in_parts(name: &str, body: impl Fn() + Send + Sync + 'static) -> Report {
    let body = Arc::new(body);
    let explore = |file: Option<&Path>| {
        let mut builder = Builder::new();
        builder.checkpoint_file = file.map(Path::to_owned);
        builder.max_permutations = file.map(|_| 1);
        let body = body.clone();
        builder.check(move || (*body)())
    };
    let whole = explore(None);
    assert!(whole.executions > 1, "{name}: nothing to be done in parts");
    let file = Scratch::new(name);
    // Not every part has an execution that counts.
    let mut parts = (0..2 * whole.executions + whole.pruned).map(|_| explore(Some(&file.0)));
    let last = parts.find(|part| !matches!(part.verdict, Verdict::Stopped(_)));
    let last = last.expect("an end");
    let said = |it: &Report| {
        let left_out = (
            it.pruned_by.assumed,
            it.pruned_by.rounds,
            it.pruned_by.in_vain,
        );
        (it.executions, it.events, it.longest, it.verdict, left_out)
    };
    assert_eq!(said(&last), said(&whole), "{name}");
    assert!(!file.0.exists(), "{name}: the end leaves none");
    whole
}

/// Adds to both.
fn both(one: &AtomicUsize, two: &AtomicUsize) {
    one.fetch_add(1, SeqCst);
    two.fetch_add(1, SeqCst);
}

#[test]
fn an_object_is_the_one_at_its_depth_of_the_stack_and_in_its_turn_there() {
    same_in_parts("stack", || {
        for _ in 0..2 {
            let one = AtomicUsize::new(0);
            thread::scope(|scope| {
                scope.spawn(|| one.fetch_add(1, SeqCst));
                one.fetch_add(1, SeqCst);
            });
        }
    });
}

#[test]
fn an_object_is_the_one_in_its_block_of_those_made_together() {
    same_in_parts("together", || {
        let all = Arc::new([(); 2].map(|()| Box::new(AtomicUsize::new(0))));
        let theirs = all.clone();
        let other = thread::spawn(move || both(&theirs[0], &theirs[1]));
        both(&all[0], &all[1]);
        other.join().unwrap();
    });
}

#[test]
fn an_object_is_the_one_in_its_block_of_those_made_one_behind_the_other() {
    same_in_parts("apart", || {
        let one = Arc::new(AtomicUsize::new(0));
        one.fetch_add(1, SeqCst);
        let two = Arc::new(AtomicUsize::new(0));
        let theirs = (one.clone(), two.clone());
        let other = thread::spawn(move || both(&theirs.0, &theirs.1));
        both(&one, &two);
        other.join().unwrap();
    });
}

#[test]
fn what_the_test_gave_up_is_counted_in_all_parts() {
    let whole = same_in_parts("assumed", || {
        let chosen = dpor::choose(4);
        dpor::assume(chosen > 1);
    });
    assert_eq!(whole.pruned_by.assumed, 2);
}

#[test]
fn executions_that_are_left_out_for_their_rounds_are_remembered() {
    let file = Scratch::new("rounds");
    let part = |most: usize| {
        let mut builder = Builder::new();
        builder.checkpoint_file = Some(file.0.clone());
        builder.max_permutations = Some(most);
        builder.max_rounds = Some(2);
        builder.check(|| {
            let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
            let theirs = shared.clone();
            let stopper = thread::spawn(move || theirs.0.store(1, SeqCst));
            while shared.0.load(SeqCst) == 0 {
                shared.1.fetch_add(1, SeqCst);
                thread::yield_now();
            }
            stopper.join().unwrap();
        })
    };
    // The first execution has too many rounds, those behind it have not.
    assert_eq!(part(1).pruned_by.rounds, 1);
    let report = part(9);
    assert_eq!((report.executions, report.verdict), (3, Verdict::Rounds(2)));
    assert_eq!(report.pruned_by.rounds, 1);
    assert!(!file.0.exists(), "all within the bound has been explored");
}

#[test]
fn that_exploration_was_off_in_one_part_is_known_in_the_others() {
    let whole = same_in_parts("regions", || {
        if dpor::choose(3) == 0 {
            dpor::stop_exploring();
            AtomicUsize::new(0).store(1, SeqCst);
            dpor::explore();
        }
    });
    assert_eq!(whole.verdict, Verdict::Marked);
}

/// One loop waits and another one gives up, and each part that finds that out is stopped before it is known.
#[test]
fn loops_without_a_hint_are_looked_at_in_the_next_part() {
    let explore = |file: Option<&Path>, most| {
        let mut builder = Builder::new();
        builder.checkpoint_file = file.map(Path::to_owned);
        builder.max_permutations = most;
        builder.check(|| {
            let flags = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
            let theirs = flags.clone();
            let other = thread::spawn(move || theirs.iter().for_each(|it| it.store(1, SeqCst)));
            while flags[0].load(SeqCst) == 0 {}
            let _ = (0..12).all(|_| flags[1].load(SeqCst) == 0);
            other.join().unwrap();
        })
    };
    let whole = explore(None, None);
    assert_eq!(whole.verdict, Verdict::Complete);
    let file = Scratch::new("hintless");
    for _ in 0..20 {
        let part = explore(Some(&file.0), Some(1));
        assert!(matches!(part.verdict, Verdict::Stopped(_)), "{part}");
    }
    let last = explore(Some(&file.0), None);
    assert_eq!(
        (last.executions, last.verdict),
        (whole.executions, whole.verdict)
    );
}

#[test]
fn a_loop_that_gives_up_is_remembered() {
    // Its only wait is in the second part of these.
    let explore = |part: Option<(&Path, usize)>| {
        let mut builder = Builder::new();
        if let Some((file, most)) = part {
            builder.checkpoint_file = Some(file.to_owned());
            builder.max_permutations = Some(most);
        }
        builder.check(|| {
            let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                if theirs.0.load(SeqCst) != 0 {
                    return;
                }
                for _ in 0..10 {
                    if theirs.1.load(SeqCst) != 0 {
                        break;
                    }
                    dpor::hint::spin_loop();
                }
            });
            shared.0.store(1, SeqCst);
            shared.0.store(2, SeqCst);
            shared.1.store(1, SeqCst);
            other.join().unwrap();
        })
    };
    let whole = explore(None);
    assert_eq!(whole.verdict, Verdict::Waits(10));
    for most in 1..whole.executions as usize {
        let file = Scratch::new("gives up");
        let last = (0..whole.executions)
            .map(|_| explore(Some((&file.0, most))))
            .find(|report| !matches!(report.verdict, Verdict::Stopped(_)));
        let last = last.expect("an end");
        assert_eq!(
            (last.executions, last.verdict),
            (whole.executions, whole.verdict)
        );
    }
}
