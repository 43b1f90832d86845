//! Loops that wait, give up, or go round too often.

use std::sync::Arc;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::atomic::Ordering::SeqCst;
use dpor::{Builder, thread};

use super::{c11, sc};

/// What is left of an execution whose loop has gone round often enough is no part of the search.
#[test]
fn an_execution_that_is_left_goes_on_without_its_graph() {
    fn run() {
        let all = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let (a, b) = (all.clone(), all.clone());
        let waits = thread::spawn(move || {
            // Each round changes something.
            while a[0].load(SeqCst) == 0 {
                a[1].fetch_add(1, SeqCst);
                thread::yield_now();
            }
        });
        let writes = thread::spawn(move || {
            b[1].store(10, SeqCst);
            b[1].load(SeqCst)
        });
        all[1].load(SeqCst);
        all[0].store(1, SeqCst);
        all[1].load(SeqCst);
        waits.join().unwrap();
        writes.join().unwrap();
    }
    let counts = |mut builder: Builder| {
        builder.max_rounds = Some(1);
        let report = builder.explore(run).expect("it does not fail");
        assert!(report.pruned > 0, "{report:?}");
        (report.executions, report.pruned)
    };
    assert_eq!(counts(c11()), counts(sc()));
}
