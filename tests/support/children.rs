//! How does a test run in a process of its own?

use std::process::Command;

/// This program, to be run once more, with nothing but this test. The name is with the modules of the program that the test is in.
///
/// The harness keeps what a test prints that passes, unless `--nocapture` is added.
pub fn process_of(test: &str) -> Command {
    let program = std::env::current_exe().expect("a test has a file");
    let mut process = Command::new(program);
    process.args([test, "--exact"]);
    process
}
