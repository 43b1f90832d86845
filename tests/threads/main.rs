//! Do scopes, thread-locals, statics and caught panics behave as in std?

mod drops;
mod locals;
mod panics;
mod scopes;
mod stack_size;
mod statics;

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, thread};

fn count(f: impl Fn() + Send + Sync + 'static) -> u64 {
    let report = Builder::new().check(f);
    assert!(report.complete);
    assert_eq!(report.pruned, 0);
    report.executions
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
