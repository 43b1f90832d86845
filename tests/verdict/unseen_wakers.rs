//! Is it said that a task waits for a primitive that is not swapped?
// The feature has other signatures, and `loom_signatures` tests those.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Waker};

use dpor::future::{AtomicWaker, block_on, spawn};
use dpor::sync::atomic::AtomicBool;
use dpor::sync::{Arc, Mutex};
use dpor::{AssumptionKind, Builder, Report, thread};

use crate::children::process_of;

/// The lines of code at which wakers were put where no operation is seen, as a report names them.
fn unseen(report: &Report) -> Vec<&'static str> {
    let code = |place: &String| {
        let place = place.strip_prefix("tests/verdict/unseen_wakers.rs:");
        let line = place.expect("in this file").split(':').next();
        let line: usize = line.unwrap().parse().expect("a number");
        let source = include_str!("unseen_wakers.rs").lines();
        source.map(str::trim).nth(line - 1).expect("a line")
    };
    let mut assumptions = report.assumptions.iter();
    let unseen = assumptions.find(|it| it.kind == AssumptionKind::UnseenWakers);
    unseen.map_or_else(Vec::new, |it| it.places.iter().map(code).collect())
}

/// A signal that wakes the tasks that wait, as an unswapped crate may have one: it has no event.
#[derive(Default)]
struct Unswapped(std::sync::Mutex<(bool, Vec<Waker>)>);

impl Unswapped {
    /// Waits for the next signal.
    async fn signalled(&self) {
        self.0.lock().unwrap().0 = false;
        poll_fn(|context| {
            let mut state = self.0.lock().unwrap();
            if state.0 {
                return Poll::Ready(());
            }
            state.1.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Wakes the tasks that wait now.
    fn signal(&self) {
        let wakers = {
            let mut state = self.0.lock().unwrap();
            state.0 = true;
            std::mem::take(&mut state.1)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// The wake-up is lost if the signal comes between the look at the flag and the registration.
fn loses_a_wake_up() {
    let shared = Arc::new((AtomicBool::new(false), Unswapped::default()));
    let theirs = shared.clone();
    let other = thread::spawn(move || {
        theirs.0.store(true, SeqCst);
        theirs.1.signal();
    });
    block_on(async {
        if !shared.0.load(SeqCst) {
            shared.1.signalled().await;
        }
    });
    other.join().unwrap();
}

#[test]
fn a_waker_that_an_unswapped_primitive_keeps_is_named_with_the_line_that_clones_it() {
    let report = Builder::new().check(loses_a_wake_up);
    // No execution shows the deadlock.
    assert_eq!((report.executions, report.complete), (2, true));
    let clone = "state.1.push(context.waker().clone());";
    assert_eq!(unseen(&report), [clone]);
    let told = "wake-ups by primitives that are not swapped (1 task)";
    assert!(report.to_string().ends_with(told), "{report}");
    // With `simplify` = 0 the closure runs for the exploration only.
    let mut builder = Builder::new();
    builder.simplify = 0;
    let report = builder.check(loses_a_wake_up);
    assert_eq!(unseen(&report), ["block_on(async {"]);
    assert_eq!(report.reruns, 0);
}

#[test]
fn a_waker_that_is_gone_before_the_task_waits_is_not_named() {
    let report = Builder::new().check(|| {
        let mut polls = 0;
        block_on(poll_fn(|context| {
            context.waker().wake_by_ref();
            drop(context.waker().clone());
            polls += 1;
            if polls == 2 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
    });
    assert_eq!(unseen(&report), [""; 0]);
}

/// The waker is put under a lock that the model sees, or is not cloned.
#[derive(Default)]
struct Swapped {
    set: AtomicBool,
    slot: Mutex<Option<Waker>>,
    waker: AtomicWaker,
}

impl Swapped {
    fn raise(&self) {
        self.set.store(true, SeqCst);
        let waker = self.slot.lock().unwrap().take();
        if let Some(waker) = waker {
            waker.wake();
        }
        self.waker.wake();
    }

    fn poll_slot(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut slot = self.slot.lock().unwrap();
        if self.set.load(SeqCst) {
            return Poll::Ready(());
        }
        *slot = Some(context.waker().clone());
        Poll::Pending
    }

    fn poll_waker(&self, context: &mut Context<'_>) -> Poll<()> {
        self.waker.register_by_ref(context.waker());
        match self.set.load(SeqCst) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

fn waits(poll: fn(&Swapped, &mut Context<'_>) -> Poll<()>) -> Report {
    Builder::new().check(move || {
        let flag = Arc::new(Swapped::default());
        let theirs = flag.clone();
        let other = thread::spawn(move || theirs.raise());
        block_on(poll_fn(|context| poll(&flag, context)));
        other.join().unwrap();
    })
}

#[test]
fn a_waker_that_the_model_sees_is_not_named() {
    assert_eq!(unseen(&waits(Swapped::poll_slot)), [""; 0]);
    assert_eq!(unseen(&waits(Swapped::poll_waker)), [""; 0]);
    let report = Builder::new().check(|| {
        let task = spawn(async { dpor::choose(2) });
        let outer = spawn(async { task.await + 1 });
        assert!(block_on(outer) > 0);
    });
    assert_eq!(unseen(&report), [""; 0]);
}

/// A future that an unswapped primitive wakes, next to one that the model sees.
struct Either<A, B>(A, B);

impl<A, B> Future for Either<A, B>
where
    A: Future<Output = ()> + Unpin,
    B: Future<Output = ()> + Unpin,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let first = Pin::new(&mut self.0).poll(context);
        match first {
            Poll::Ready(()) => first,
            Poll::Pending => Pin::new(&mut self.1).poll(context),
        }
    }
}

#[test]
fn a_waker_of_which_only_one_clone_is_seen_is_named() {
    let report = Builder::new().check(|| {
        let flag = Arc::new(Swapped::default());
        let theirs = flag.clone();
        let other = thread::spawn(move || theirs.raise());
        let unswapped = Unswapped::default();
        let seen = poll_fn(|context| flag.poll_slot(context));
        let unseen = pin!(unswapped.signalled());
        block_on(Either(seen, unseen));
        other.join().unwrap();
    });
    let clone = "state.1.push(context.waker().clone());";
    assert_eq!(unseen(&report), [clone]);
}

/// Not a test of its own: the test below runs it.
#[test]
fn child_that_waits_unseen() {
    if std::env::var_os("DPOR_TEST_UNSEEN").is_some() {
        for _ in 0..2 {
            Builder::new().check(loses_a_wake_up);
        }
        Builder::new().check(loses_a_wake_up);
    }
}

#[test]
fn the_line_of_the_clone_is_told_once_past_the_capture() {
    let said = |shown: bool| {
        let mut child = process_of("unseen_wakers::child_that_waits_unseen");
        if shown {
            child.arg("--nocapture");
        }
        child.env_remove("RUST_TEST_NOCAPTURE");
        let output = child.env("DPOR_TEST_UNSEEN", "1").output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let start = "dpor: a task of the model at tests/verdict/unseen_wakers.rs:";
    let text = said(false);
    assert!(text.starts_with(start), "{text}");
    let place = " waits with a waker that it has cloned at tests/verdict/unseen_wakers.rs:";
    assert!(text.contains(place), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_eq!(said(true).matches(start).count(), 2);
}
