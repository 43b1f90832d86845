//! Who gets the value for itself through `into_inner`, `try_unwrap`, `get_mut` or `make_mut`?

use dpor::sync::Arc;
use dpor::thread;
use pretty_assertions::assert_eq;

use super::{explore, run};

#[test]
fn of_two_threads_that_unwrap_one_wins_or_neither() {
    let (_, won) = explore(|| {
        let shared = Arc::new(7);
        let other = shared.clone();
        let unwrap = |shared| Box::new(move || Arc::try_unwrap(shared).is_ok());
        let won = run(vec![unwrap(shared) as _, unwrap(other) as _]);
        (won[0], won[1])
    });
    // A failed try gives the reference back and drops it, after which the other one succeeds.
    assert_eq!(won, [(false, false), (false, true), (true, false)].into());
}

#[test]
fn of_threads_that_give_up_their_references_exactly_one_gets_the_value() {
    for threads in 1..=4 {
        let (executions, winners) = explore(move || {
            let shared = Arc::new(7);
            let bodies = (0..threads)
                .map(|_| {
                    let shared = shared.clone();
                    Box::new(move || Arc::into_inner(shared)) as _
                })
                .collect();
            drop(shared);
            let got = run(bodies);
            let winners: Vec<_> = (0..threads).filter(|&i| got[i] == Some(7)).collect();
            assert_eq!(winners.len(), 1);
            winners[0]
        });
        assert_eq!(executions, threads as u64);
        assert_eq!(winners, (0..threads).collect());
    }
}

#[test]
fn a_thread_that_asks_for_the_value_competes_with_one_that_only_drops() {
    let (executions, got) = explore(|| {
        let shared = Arc::new(7);
        let other = shared.clone();
        let thread = thread::spawn(move || drop(other));
        let got = Arc::into_inner(shared);
        thread.join().unwrap();
        got
    });
    assert_eq!((executions, got), (2, [None, Some(7)].into()));
}

#[test]
fn get_mut_sees_references_of_both_kinds_that_other_threads_drop() {
    let (executions, got) = explore(|| {
        let mut shared = Arc::new(0);
        let other = shared.clone();
        let thread = thread::spawn(move || drop(other));
        let got = Arc::get_mut(&mut shared).is_some();
        thread.join().unwrap();
        got
    });
    assert_eq!((executions, got), (2, [false, true].into()));

    let (executions, got) = explore(|| {
        let mut shared = Arc::new(0);
        let other = Arc::downgrade(&shared);
        let thread = thread::spawn(move || drop(other));
        let got = Arc::get_mut(&mut shared).is_some();
        thread.join().unwrap();
        got
    });
    assert_eq!((executions, got), (2, [false, true].into()));
}

#[test]
fn get_mut_is_never_granted_beside_a_reference_that_was_upgraded() {
    let (_, got) = explore(|| {
        let mut shared = Arc::new(0);
        let weak = Arc::downgrade(&shared);
        let thread = thread::spawn(move || {
            let strong = weak.upgrade();
            drop(weak);
            strong.map(|strong| *strong)
        });
        let got = Arc::get_mut(&mut shared).map(|value| *value = 1).is_some();
        (got, thread.join().unwrap())
    });
    // The main thread keeps the value, so that the upgrade always succeeds; `get_mut` succeeds only
    // once both references of the other thread are gone, so it sees the value from before.
    assert_eq!(got, [(false, Some(0)), (true, Some(0))].into());
}

#[test]
fn make_mut_clones_while_the_value_is_shared_and_leaves_weak_references_behind() {
    let (executions, got) = explore(|| {
        let mut mine = Arc::new(5);
        let other = mine.clone();
        let thread = thread::spawn(move || *other);
        let before = Arc::as_ptr(&mine);
        *Arc::make_mut(&mut mine) += 1;
        assert_eq!(*mine, 6);
        assert_eq!(thread.join().unwrap(), 5);
        before == Arc::as_ptr(&mine)
    });
    // The drop and the take, and once more with the drop of what was cloned.
    assert_eq!((executions, got), (2, [false, true].into()));

    dpor::model(|| {
        let mut mine = Arc::new(String::from("a"));
        let weak = Arc::downgrade(&mine);
        Arc::make_mut(&mut mine).push('b');
        assert_eq!((mine.as_str(), weak.upgrade()), ("ab", None));
        let before = Arc::as_ptr(&mine);
        Arc::make_mut(&mut mine).push('c');
        assert_eq!(Arc::as_ptr(&mine), before);
        assert_eq!(Arc::strong_count(&mine), 1);
    });
}

#[test]
fn who_is_not_alone_is_told_what_else_there_is() {
    let told = |text: &str, f: fn(&mut Arc<usize>)| {
        let failure = dpor::Builder::new().explore(move || {
            f(&mut Arc::new(7));
            panic!("to be read");
        });
        let report = failure.expect_err("it panics").to_string();
        assert!(report.contains(text), "{text}: {report}");
    };
    told("if unique: no, 2 references  ", |shared| {
        let theirs = shared.clone();
        assert!(Arc::try_unwrap(theirs).is_err());
    });
    told("if unique: no, 2 references and 1 weak  ", |shared| {
        let _weak = Arc::downgrade(shared);
        let theirs = shared.clone();
        assert!(Arc::try_unwrap(theirs).is_err());
    });
}
