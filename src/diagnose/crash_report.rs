//! The report of a failure if the process ends before the failure can be examined.
//!
//! It shows only the execution itself. It is written on the stack of a thread of the program, in a
//! panic hook or in a signal handler, or by the watchdog. So this code runs no closure and takes no
//! lock that the program could hold, and the most important lines are printed before it.

use crate::diagnose::orderings::suggest_orderings;
use crate::exploration::replay_command;
use crate::rt::event::verdict::Reproduction;
use crate::rt::exec::crash_report::Unshown;
use crate::rt::report::places::{Callers, Life};
use crate::rt::report::text;
use crate::rt::report::view::View;

pub(crate) fn report(of: &Unshown<'_>) -> String {
    let Unshown {
        trace,
        machine,
        test,
        ..
    } = *of;
    let mut end = of.end.clone();
    suggest_orderings(&mut end, trace);
    let schedule = machine.leading_to(end.thread(), trace, trace.len());
    let schedule = schedule.to_string();
    let message = of.message.map(|message| {
        let place = message.location.as_ref();
        let place = place.map(|(file, line, column)| (file.as_str(), *line, *column));
        (message.text.as_str(), place)
    });
    text::render(&View {
        end: &end,
        trace,
        machine,
        given: of.names,
        panic: message,
        earlier: of.earlier,
        life: &Life::default(),
        callers: &Callers::default(),
        log: &[],
        pair: None,
        again: Reproduction::Same,
        simplified: false,
        executions: of.executions,
        schedule: &schedule,
        test: test.map(str::to_owned),
        replay: &replay_command::replay_in(of.nth, &schedule, of.weakened, test),
    })
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use crate::rt::exec::context::hangs;
    use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use crate::{Builder, FailureKind, thread};

    /// The watchdog's text for a destructor that would not end, for each value that was dropped.
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

    /// The tests of this module run one at a time, because they share `SAID`.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    #[derive(Default)]
    struct Hangs;

    impl Drop for Hangs {
        fn drop(&mut self) {
            let said = SAID.lock();
            said.unwrap_or_else(PoisonError::into_inner).extend(hangs());
        }
    }

    /// Returns the texts that the watchdog would print while this model fails, in its first
    /// execution.
    fn said(kind: FailureKind, f: impl Fn() + Send + Sync + 'static) -> Vec<String> {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        SAID.lock().unwrap().clear();
        let mut builder = Builder::new();
        builder.simplify = 0;
        let failure = builder.explore(f).expect_err("it fails");
        assert_eq!(failure.kind(), kind, "{failure}");
        std::mem::take(&mut *SAID.lock().unwrap())
    }

    /// Checks that the text contains all of these, in this order.
    #[track_caller]
    fn has(text: &str, all: &[&str]) {
        let mut rest = text;
        for expected in all {
            let (_, behind) = (rest.split_once(expected))
                .unwrap_or_else(|| panic!("`{expected}` is missing, or out of order: {text}"));
            rest = behind;
        }
    }

    #[test]
    fn a_failure_is_told_where_its_own_destructors_come_to_no_end() {
        let said = said(FailureKind::Panic, || {
            let x = AtomicUsize::new(0);
            let _hangs = Hangs;
            x.store(1, SeqCst);
            assert_eq!(x.load(SeqCst), 2, "broken");
        });
        assert_eq!(said.len(), 1, "{said:?}");
        let told = [
            ": the main thread of the model, after an operation",
            " (a thread has panicked: its destructors run, unless the test catches that). Since then it has come to no operation \
             that dpor schedules: ",
            "\nWhat has failed before is not lost:\n",
            "broken",
            "panic: main panicked (execution 1, after 2 events)\n",
            "x := 1 (was 0)",
            "schedule   v2 main*2\n",
            "replay     DPOR_REPLAY=\"v2 main*2\" ",
        ];
        has(&said[0], &told);
    }

    #[test]
    fn a_failure_is_told_where_what_it_leaves_comes_to_no_end() {
        crate::thread_local!(static VARIABLE: Hangs = Hangs);
        let unwound = ", in a destructor that runs because the execution is over";
        let deadlock = "\nWhat has failed before is not lost:\n\ndeadlock: ";
        let each = said(FailureKind::Deadlock, || {
            drop(thread::spawn(|| {
                VARIABLE.with(|_| ());
                let _hangs = Hangs;
                thread::park();
            }));
            let _hangs = Hangs;
            thread::park();
        });
        // The values are main's, the other thread's own, and that of its thread-local variable.
        assert_eq!(each.len(), 3, "{each:?}");
        for text in &each {
            has(text, &[unwound, deadlock, "replay     DPOR_REPLAY="]);
        }
        has(&each[0], &["the main thread"]);
        has(&each[2], &["spawned thread 1"]);
        // The spawned thread has not begun when main panics, and never begins.
        let each = said(FailureKind::Panic, || {
            let hangs = Hangs;
            drop(thread::spawn(move || {
                thread::park();
                drop(hangs);
            }));
            panic!("broken");
        });
        let last = each.last().expect("it is dropped");
        has(last, &["because the execution is over", "broken"]);
        // A static is dropped after all threads.
        static FLAG: crate::sync::OnceLock<Hangs> = crate::sync::OnceLock::new();
        let each = said(FailureKind::Panic, || {
            FLAG.get_or_init(|| Hangs);
            panic!("broken");
        });
        let last = each.last().expect("it is dropped");
        has(
            last,
            &[": a destructor of what outlives the threads", "broken"],
        );
    }

    #[test]
    fn a_panic_that_the_test_has_caught_is_no_failure_any_more() {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Builder::new().check(|| {
            let x = AtomicUsize::new(0);
            let caught = std::panic::catch_unwind(|| panic!("caught"));
            assert!(caught.is_err());
            let text = hangs().expect("a model runs");
            has(&text, &["unless the test catches that", "caught"]);
            x.store(1, SeqCst);
            let text = hangs().expect("a model runs");
            assert!(!text.contains("caught"), "{text}");
        });
    }
}
