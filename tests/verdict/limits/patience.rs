//! Is it told which step of a model does not come back, and where?
//!
//! A child explores a model whose thread waits for a line on standard input, as for a lock of another crate. It gets that line
//! when it has told.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, thread};

use super::children::process_of;

/// Tells the child that it is one.
const CHILD: &str = "DPOR_TEST_PATIENCE";

/// The line of the operation after which the thread waits.
const AFTER: u32 = line!() + 15;

/// Not a test of its own: what the test below runs.
#[test]
fn child_of_the_patience_test() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let mut builder = Builder::new();
    // Much longer than any other step, and a step of the child is looked at twice.
    builder.patience = Some(Duration::from_secs(2));
    builder.check(|| {
        let shared = Arc::new(AtomicUsize::new(0));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs.store(1, SeqCst);
            std::io::stdin().read_line(&mut String::new()).unwrap();
        });
        other.join().unwrap();
    });
}

#[test]
fn a_step_that_does_not_come_back_is_told_with_the_place_of_the_operation_before_it() {
    let mut child = process_of("limits::patience::child_of_the_patience_test")
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut told).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"go on\n").unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    let place = format!(": spawned thread 1, after {}:{AFTER}. Since then", file!());
    assert!(told.contains(&place), "{told}");
    let model = format!("a step of the model at {}:", file!());
    assert!(told.contains(&model), "{told}");
}
