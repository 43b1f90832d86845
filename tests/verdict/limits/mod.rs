//! Is a search that was cut short ever taken for a whole one?

use crate::children;
mod hints;
mod hotspots;
mod max_failures;
mod patience;
mod replay;
mod require_complete;
mod settings;
mod stop_exploring;
mod stopped;
mod threads;
mod vacuous;

use std::process::Command;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Algorithm, Builder, thread};

use crate::children::process_of;

/// Three threads that add one with a load and a store: 36 traces.
fn lost_update() {
    let x = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = (0..3)
        .map(|_| {
            let x = x.clone();
            thread::spawn(move || x.store(x.load(SeqCst) + 1, SeqCst))
        })
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
}

/// Two threads of `n` steps that depend on each other, and then again; `between` runs in the middle.
fn twice(n: usize, between: fn()) {
    let x = Arc::new(AtomicUsize::new(0));
    for round in 0..2 {
        if round == 1 {
            between();
        }
        let other = x.clone();
        let handle = thread::spawn(move || {
            for _ in 0..n {
                other.fetch_add(1, SeqCst);
            }
        });
        for _ in 0..n {
            x.fetch_add(1, SeqCst);
        }
        handle.join().unwrap();
    }
}

const EXHAUSTIVE: [Algorithm; 6] = [
    Algorithm::Optimal,
    Algorithm::Parsimonious,
    Algorithm::Source,
    Algorithm::Classic,
    Algorithm::SleepSets,
    Algorithm::Bounded,
];

/// What a test of this program prints on standard error, in a process of its own with these variables.
fn printed(test: &str, variables: &[(&str, &str)]) -> String {
    stderr(process_of(test).arg("--nocapture"), variables)
}

/// What of that is seen although the harness captures what a test prints that passes.
fn captured(test: &str, variables: &[(&str, &str)]) -> String {
    stderr(&mut process_of(test), variables)
}

fn stderr(child: &mut Command, variables: &[(&str, &str)]) -> String {
    let output = child
        .env_remove("RUST_TEST_NOCAPTURE")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    String::from_utf8(output.stderr).unwrap()
}

/// Not a test of its own: what tests in `settings.rs` and `vacuous.rs` run.
#[test]
fn child_that_explores() {
    Builder::new().check(|| ());
}
