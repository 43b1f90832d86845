//! `cargo dpor replay`, `report`, `trace` and `explain`.

use std::path::Path;

use crate::support::{Crate, has, models};

#[test]
fn a_failure_is_reported_once_and_comes_again() {
    let made = Crate::with_dpor("failing");
    made.write("tests/failing.rs", &models::failing());
    let ended = made.dpor(&["test", "--test", "failing"]).with(1).says(&[
        "2 models: 1 failed, 1 failed as expected; ",
        "failed ",
        "fails as expected ",
        "cargo dpor replay loses",
        "cargo dpor report loses",
    ]);
    let reports = ended.out.matches("it fails because").count()
        + ended.err.matches("it fails because").count();
    assert_eq!(reports, 1, "{}\n{}", ended.out, ended.err);

    for arguments in [&["replay"][..], &["replay", "loses"], &["replay", "los"]] {
        let ended = made.dpor(arguments).with(1);
        assert!(ended.err.contains("it fails because"), "{}", ended.err);
    }
    let told = made.dpor(&["replay", "is_known"]).with(2).err;
    assert!(
        told.contains("`is_known` has not failed in the last run"),
        "{told}"
    );
    let told = made.dpor(&["replay", "no_such_test"]).with(2).err;
    assert!(told.contains("there are loses, is_known"), "{told}");

    let page = made.dpor(&["report"]).with(0).out;
    let page = Path::new(page.trim());
    assert!(
        page.ends_with("dpor/reports/loses.html") && page.is_file(),
        "{page:?}"
    );
    // A page that is not there, or is that of another failure, is made anew.
    std::fs::write(page.with_extension("json"), "{\"schedule\":\"v2 main\"}").expect("a file");
    let page = made.dpor(&["report", "loses"]).with(0).out;
    let page = Path::new(page.trim());
    assert!(
        page.ends_with("dpor/reports/failing/failing/loses.html")
            || page.ends_with("reports/failing/loses.html"),
        "{page:?}"
    );
    assert!(page.is_file(), "{page:?}");

    // Executions are numbered as in a report. The second one fails.
    let told = made.dpor(&["trace", "loses", "1"]).with(0);
    assert!(told.err.contains("execution 1 (passed"), "{}", told.err);
    told.says(&["loses-execution-1.html"]);
    made.dpor(&["trace", "loses", "7"])
        .with(1)
        .says(&["has failed, so there is no later execution"]);

    // The test asks for less, and the failure does not come again.
    let mended = models::failing().replace(
        "assert_eq!(counter.load(SeqCst), threads)",
        "counter.load(SeqCst)",
    );
    made.write("tests/failing.rs", &mended);
    made.dpor(&["replay"])
        .with(0)
        .says(&["the failure has not come again"]);
}

#[test]
fn a_debugger_stops_where_the_failure_is_raised() {
    let made = Crate::with_dpor("debugged");
    made.write("tests/failing.rs", &models::failing());
    made.dpor(&["test", "--test", "failing"]).with(1);
    // Without one, before anything is built.
    let nowhere = made.path("").display().to_string();
    let told = made.dpor_with(&["replay", "--debugger"], &[("PATH", &nowhere)]);
    let told = told.with(2).err;
    assert!(
        told.contains("no debugger is in PATH; --debugger looks for rust-gdb, gdb,"),
        "{told}"
    );
    if !has("gdb", &["--version"]) {
        return;
    }
    let told = made.dpor(&["replay", "--debugger", "--batch"]).with(0).out;
    let stack = told.rsplit("Breakpoint 1, ").next().expect("a stop");
    // The schedule has been followed, and the first panic is that of the assertion.
    let frames = [
        "rust_panic",
        "assert_failed",
        "failing::counts",
        "failing::loses",
    ];
    for frame in frames {
        assert!(stack.contains(frame), "{frame} is not in\n{told}");
    }
}

#[test]
fn a_passing_test_is_traced_and_explained() {
    let made = Crate::with_dpor("passing");
    made.write("tests/twenty.rs", &models::twenty());
    made.dpor(&["test", "--test", "twenty", "large"]).with(0);
    let told = made.dpor(&["trace", "large", "20"]).with(0);
    assert!(told.err.contains("execution 20 (passed"), "{}", told.err);
    let told = made.dpor(&["trace", "large", "25"]).with(2).err;
    assert!(
        told.contains("`large` has no execution 25: there are 24"),
        "{told}"
    );
    let told = made.dpor(&["explain"]).with(0);
    told.says(&[
        "large, at tests/twenty.rs:",
        "24 executions in ",
        "to at tests/twenty.rs:",
        "%)",
    ]);
}

#[test]
fn a_record_that_cannot_be_read_is_told_with_its_line() {
    let made = Crate::new("record", "");
    std::fs::create_dir_all(made.state()).expect("a folder");
    std::fs::write(made.state().join("last-run.json"), "{\n\"root\": 3\n}").expect("a file");
    for command in [
        &["replay"][..],
        &["report"],
        &["trace", "a", "1"],
        &["explain"],
    ] {
        let told = made.dpor(command).with(2).err;
        assert!(told.contains("last-run.json:2:9: "), "{told}");
    }
}
