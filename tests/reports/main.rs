//! Does every failure print what a stranger needs?
//!
//! The whole text of each report, in a file beside this one. `DPOR_BLESS=1 cargo test --test reports`
//! writes them anew; read what has changed before you keep it.
// The feature has other signatures, whose tests are `loom_signatures`.
#![cfg(not(feature = "loom"))]

mod elements;
mod failures;
mod many;
mod pointers;
#[path = "../support/portable.rs"]
mod portable;
mod values;
mod waits;

use std::path::Path;

use pretty_assertions::assert_eq;

/// The failures whose reports are kept.
fn all() -> impl Iterator<Item = &'static failures::Named> {
    let more = waits::ALL.iter().chain(pointers::ALL).chain(values::ALL);
    let more = more.chain(many::ALL).chain(elements::ALL);
    failures::ALL.iter().chain(more)
}

/// The report of a failure, as a test of this name prints it.
fn report(name: &'static str, run: fn() -> dpor::Failure) -> String {
    let thread = std::thread::Builder::new().name(name.to_owned());
    let failure = thread.spawn(run).expect("a thread").join();
    portable::portable(&failure.expect("the failure").to_string())
}

#[test]
fn reports_are_what_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    let bless = std::env::var_os("DPOR_BLESS").is_some();
    for (name, run) in all() {
        let path = folder.join(format!("{name}.txt"));
        let found = format!("{}\n", report(name, *run));
        if bless {
            std::fs::write(&path, &found).expect("the folder can be written");
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn every_report_is_of_a_failure_that_exists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let name = path.file_stem().and_then(|name| name.to_str());
            let known = all().any(|(known, _)| Some(*known) == name);
            assert!(known, "{}", path.display());
        }
    }
}

#[test]
fn what_is_shown_replays_to_the_same_failure_and_is_shown_again() {
    for (name, run) in all() {
        let failure = run();
        if matches!(
            failure.kind(),
            dpor::FailureKind::Schedule | dpor::FailureKind::NotDeterministic
        ) {
            continue;
        }
        failures::REPLAY.with(|replay| replay.replace(Some(failure.schedule().to_owned())));
        let again = run();
        failures::REPLAY.with(|replay| replay.replace(None));
        assert_eq!(again.kind(), failure.kind(), "{name}");
        assert_eq!(again.schedule(), failure.schedule(), "{name}");
    }
}
