//! What does a test need that cargo does not bring, and what if that is missing?
//!
//! A test that quietly passes without what it needs is not run for a long time, and rots. So a missing tool skips a test only
//! in the open: a line on standard error goes past the harness, which captures what a test prints, and is appended to the
//! file that `DPOR_TEST_SKIPPED` names. `DPOR_TEST_REQUIRE` has the tools, separated by commas, whose absence is a failure
//! instead; `all` requires each of them.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What tests may need: `chromium`; `lines`, a build that knows the lines of its frames; and, in
/// the crate `dpor-fleet`, `postgresql`.
const ALL: [&str; 3] = ["chromium", "lines", "postgresql"];

/// Where Chromium is, if it is installed. A test without it is skipped, with `why` for a reason.
///
/// # Panics
///
/// If it is missing and required.
#[allow(dead_code, reason = "not every test target needs it")]
pub fn chromium(why: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut places =
        std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    let found = places.find(|place| place.is_file());
    if found.is_none() {
        is_missing("chromium", why);
    }
    found
}

/// What is in this page when its scripts have run. The browser keeps its files in the folder.
#[allow(dead_code, reason = "not every test target needs it")]
pub fn dom(chromium: &Path, folder: &Path, page: &str, arguments: &[String]) -> String {
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        // What a page does not need is not asked from the network.
        .args(["--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync"])
        .args(["--disable-quic", &profile])
        .args(arguments)
        .arg(page)
        .output()
        .expect("it starts");
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!dom.is_empty(), "{page} is not shown: {errors}");
    dom
}

/// Whether the build knows the lines of its frames. A test without them is skipped, with `why` for a reason.
///
/// # Panics
///
/// If they are missing and required.
#[allow(dead_code, reason = "not every test target needs them")]
pub fn lines(why: &str) -> bool {
    let known = cfg!(debug_assertions);
    if !known {
        is_missing("lines", why);
    }
    known
}

fn is_missing(what: &str, why: &str) {
    let required = std::env::var("DPOR_TEST_REQUIRE").unwrap_or_default();
    let said = skipped(what, why, &required);
    // A line that cannot be written is no reason to fail: the other one may have been.
    let _ = writeln!(std::io::stderr(), "{said}");
    if let Some(file) = std::env::var_os("DPOR_TEST_SKIPPED") {
        let file = OpenOptions::new().append(true).create(true).open(file);
        let _ = file.and_then(|mut file| writeln!(file, "{said}"));
    }
}

/// What is said of a test that is skipped.
///
/// # Panics
///
/// If what is missing is required, and if something is required that no test knows.
fn skipped(what: &str, why: &str, required: &str) -> String {
    let required = required.split(',').map(str::trim);
    let required: Vec<&str> = required.filter(|it| !it.is_empty()).collect();
    for it in &required {
        let is_known = ALL.contains(it) || *it == "all";
        assert!(
            is_known,
            "DPOR_TEST_REQUIRE has `{it}`; the tests know {ALL:?} and all"
        );
    }
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let is_required = required.iter().any(|it| *it == what || *it == "all");
    assert!(
        !is_required,
        "{test} needs `{what}`, which DPOR_TEST_REQUIRE asks for and which is missing: {why}"
    );
    let program = env!("CARGO_CRATE_NAME");
    format!(
        "skipped: {program}::{test}, without `{what}`: {why} (DPOR_TEST_REQUIRE={what} makes it a failure)"
    )
}

#[cfg(test)]
mod tests {
    use super::skipped;

    #[test]
    fn what_is_missing_is_told_or_a_failure() {
        let said = skipped("chromium", "no page", " lines,");
        assert!(said.contains("without `chromium`: no page"), "{said}");
        for required in ["chromium", "lines, chromium", "all", "crhomium"] {
            let fails = std::panic::catch_unwind(|| skipped("chromium", "no page", required));
            assert!(fails.is_err(), "{required}");
        }
    }
}
