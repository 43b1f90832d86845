//! Who sees how far an exploration is?
//!
//! A child explores with a terminal of 30 columns as its standard error.
#![cfg(unix)]

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Stdio;
use std::time::{Duration, Instant};

use dpor::Builder;

use crate::children::process_of;

/// Tells the child that it is one.
const CHILD: &str = "DPOR_TEST_PROGRESS";

/// Not a test of its own: what [`seen`] runs. The first execution lasts until there is something to see, and the
/// clock is looked at again after few others.
#[test]
fn child_of_the_progress_tests() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let start = Instant::now();
    let report = Builder::new().check(move || {
        while start.elapsed() < Duration::from_millis(300) {}
        dpor::choose(99);
    });
    assert_eq!(report.executions, 99);
}

/// What a child writes to a terminal, with these arguments and this `DPOR_PROGRESS`.
fn seen(arguments: &[&str], progress: Option<&str>) -> String {
    let size = libc::winsize {
        ws_row: 10,
        ws_col: 30,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let (mut ours, mut theirs) = (-1, -1);
    let null = std::ptr::null_mut();
    // SAFETY: the first two are there to be written to, and the others may be missing.
    let opened = unsafe {
        libc::openpty(
            &mut ours,
            &mut theirs,
            null,
            null.cast(),
            &raw const size as _,
        )
    };
    assert_eq!(opened, 0, "no terminal");
    // SAFETY: they have just been opened, and nobody else knows them.
    let (mut ours, theirs) = unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
    let mut command = process_of("progress::child_of_the_progress_tests");
    command
        .args(arguments)
        .env(CHILD, "1")
        .env("TERM", "xterm")
        .env_remove("DPOR_PROGRESS")
        .env_remove("RUST_TEST_NOCAPTURE")
        .stdout(Stdio::null())
        .stderr(theirs);
    if let Some(progress) = progress {
        command.env("DPOR_PROGRESS", progress);
    }
    let mut child = command.spawn().unwrap();
    // Its end of the terminal is to be the only one.
    drop(command);
    let mut bytes = Vec::new();
    // A terminal whose other end is closed is an error to read on some systems.
    let _ = ours.read_to_end(&mut bytes);
    assert!(child.wait().unwrap().success());
    String::from_utf8(bytes).unwrap()
}

/// Whether the terminal had one line that fits, drawn over and over, and wiped away at the end.
fn is_bar(seen: &str) -> bool {
    let lines = seen
        .split(['\r', '\u{1b}'])
        .map(|line| line.trim_start_matches("[2K"));
    // It is drawn after one execution or after two: that hangs on how long the first took to begin.
    let text = |line: &str| line.starts_with("dpor: ") && line.contains(" execution");
    !seen.contains('\n')
        && seen.ends_with("\u{1b}[2K")
        && lines.clone().any(text)
        && lines.clone().all(|line| line.len() <= 30)
}

#[test]
fn a_terminal_shows_how_far_it_is_unless_the_harness_captures() {
    let bar = seen(&["--nocapture"], None);
    assert!(is_bar(&bar), "{bar:?}");
    assert_eq!(seen(&[], None), "");
}

#[test]
fn who_asks_sees_it_also_in_a_captured_test_and_who_does_not_want_to_never_does() {
    let bar = seen(&[], Some("1"));
    assert!(is_bar(&bar), "{bar:?}");
    assert_eq!(seen(&["--nocapture"], Some("0")), "");
}
