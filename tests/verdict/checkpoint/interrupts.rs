//! What does an exploration say that a user ends from the terminal?

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use super::*;

/// Not a test of its own: what is interrupted.
#[test]
fn child_that_is_interrupted() {
    static BEGUN: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    // The races of an execution are known when it has ended, so the first one has to be over.
    let begins = || {
        if BEGUN.fetch_add(1, SeqCst) == 2 {
            eprintln!("begun");
        }
    };
    match std::env::var("DPOR_TEST_INTERRUPTED").as_deref() {
        Ok("between executions") => {
            Builder::new().check(move || {
                let x = Arc::new(AtomicUsize::new(0));
                let threads = [(); 9].map(|()| {
                    let x = x.clone();
                    thread::spawn(move || {
                        x.fetch_add(1, SeqCst);
                        x.fetch_add(1, SeqCst);
                    })
                });
                for thread in threads {
                    thread.join().unwrap();
                }
                begins();
            });
        }
        Ok("in an execution") => {
            Builder::new().check(move || {
                struct Hangs;
                impl Drop for Hangs {
                    fn drop(&mut self) {
                        eprintln!("begun");
                        loop {
                            std::thread::park();
                        }
                    }
                }
                let _hangs = Hangs;
                AtomicUsize::new(0).store(1, SeqCst);
                panic!("broken");
            });
        }
        _ => {}
    }
}

/// What the child says that is interrupted once it has begun.
fn interrupted(how: &str, checkpoint: Option<&Path>) -> String {
    let mut child = process_of("checkpoint::interrupts::child_that_is_interrupted");
    child.arg("--nocapture").env("DPOR_TEST_INTERRUPTED", how);
    if let Some(file) = checkpoint {
        child.env("DPOR_CHECKPOINT_FILE", file);
    }
    let mut child = (child.stderr(Stdio::piped()).stdout(Stdio::null()).spawn()).unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while line.trim_end() != "begun" {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it has ended");
    }
    // SAFETY: the call has no requirements.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGINT), "{rest}");
    rest
}

#[test]
fn what_is_interrupted_says_how_far_it_is_and_where_it_is_kept() {
    let file = Scratch::new("interrupted");
    let said = interrupted("between executions", Some(&file.0));
    for expected in [
        "dpor: the model at tests/verdict/checkpoint/interrupts.rs:",
        " was not explored in full: ",
        " executions",
        "stopped by an interrupt (SIGINT)",
        "\ndpor: most executions are due to races: ",
        &format!("\ndpor: the checkpoint {} ", file.0.display()),
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(file.0.exists());
    let said = interrupted("between executions", None);
    assert!(
        said.contains("dpor: nothing is kept of what was explored; DPOR_CHECKPOINT_FILE="),
        "{said}"
    );
}

#[test]
fn what_is_interrupted_where_it_hangs_says_what_it_knows() {
    let said = interrupted("in an execution", None);
    for expected in [
        "dpor: interrupted in execution 1 of the model at tests/verdict/checkpoint/interrupts.rs:",
        "What has failed before is not lost:",
        "broken",
        "replay     DPOR_REPLAY=",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}
