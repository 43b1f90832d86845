//! Is a panic told with its words and its place although the program sets panic hooks of its own?
//!
//! A process has one hook, so these tests are a program of their own and take turns.

use std::panic::{catch_unwind, set_hook, take_hook};
use std::sync::atomic::AtomicUsize as StdAtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, PoisonError};

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, Failure, thread};
use pretty_assertions::assert_eq;

static TURN: Mutex<()> = Mutex::new(());

/// How many panics the hook of the program was told of.
static TOLD: StdAtomicUsize = StdAtomicUsize::new(0);

fn set_one_of_the_program() {
    TOLD.store(0, SeqCst);
    set_hook(Box::new(|_| {
        TOLD.fetch_add(1, SeqCst);
    }));
}

/// What is said of two panics in different places, each of which takes another order.
fn two_panics() -> Vec<String> {
    let mut builder = Builder::new();
    builder.max_failures = 5;
    let explored = builder.explore(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let other = thread::spawn(move || theirs.store(1, SeqCst));
        let seen = x.load(SeqCst);
        other.join().unwrap();
        if seen == 0 {
            panic!("too early");
        }
        panic!("too late");
    });
    let first = explored.expect_err("it fails");
    let mut all = vec![said(&first)];
    all.extend(first.others().iter().map(said));
    all.sort();
    all
}

/// What the panic said, if the report has its place, too.
fn said(failure: &Failure) -> String {
    let text = failure.to_string();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let has_place = first.starts_with("thread 'main' panicked at tests/hooks.rs:");
    assert!(has_place, "{text}");
    lines.next().unwrap_or_default().to_owned()
}

#[test]
fn a_hook_that_takes_the_place_of_dpors() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(two_panics(), ["too early", "too late"]);
    set_one_of_the_program();
    assert_eq!(two_panics(), ["too early", "too late"]);
    assert_eq!(TOLD.load(SeqCst), 0, "the report tells of them");
    catch_unwind(|| panic!("outside of a model")).unwrap_err();
    assert_eq!(TOLD.load(SeqCst), 1);
    drop(take_hook());
}

#[test]
fn a_hook_that_is_there_while_dpors_is_put_aside() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(two_panics(), ["too early", "too late"]);
    let aside = take_hook();
    set_one_of_the_program();
    assert_eq!(two_panics(), ["too early", "too late"]);
    assert_eq!(TOLD.load(SeqCst), 1, "who is first is told of one");
    set_hook(aside);
    assert_eq!(two_panics(), ["too early", "too late"]);
    assert_eq!(TOLD.load(SeqCst), 1);
    drop(take_hook());
}

/// The hook is set anew above one of its own, and then that is all there is.
#[test]
fn dpors_own_hook_that_is_put_back_twice() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..2 {
        assert_eq!(two_panics(), ["too early", "too late"]);
        let aside = take_hook();
        set_one_of_the_program();
        assert_eq!(two_panics(), ["too early", "too late"]);
        drop(take_hook());
        set_hook(aside);
    }
    assert_eq!(two_panics(), ["too early", "too late"]);
    drop(take_hook());
}
