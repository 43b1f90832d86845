//! Does the summary have a line for each place that explores, whichever processes write it?
// The feature has other signatures, and `loom_signatures` tests those.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, Summary, thread};
use serde_json::{Value, json};

use crate::children::process_of;

/// A directory that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("dpor-summary-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The lines of a file, as they were written.
fn all_lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("the summary");
    assert!(text.ends_with('\n'), "{text}");
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(line).collect()
}

/// The last line of each place in a file, by the test and the line of code at the place.
fn lines(file: &Path) -> BTreeMap<(String, String), Value> {
    let code = |place: &str| {
        let place = place
            .strip_prefix("tests/verdict/summary.rs:")
            .expect("in this file");
        let line: usize = place.split(':').next().unwrap().parse().unwrap();
        let source = include_str!("summary.rs").lines();
        source.map(str::trim).nth(line - 1).unwrap().to_owned()
    };
    let text = |line: &Value, field: &str| line[field].as_str().expect("a text").to_owned();
    let key = |line: &Value| (text(line, "test"), code(&text(line, "place")));
    let lines = all_lines(file).into_iter();
    lines.map(|line| (key(&line), line)).collect()
}

/// Whether this process is to run the children.
fn is_child() -> bool {
    std::env::var_os("DPOR_TEST_SUMMARY").is_some()
}

/// This program with these tests.
fn process(tests: &[&str], file: &Path) -> Command {
    let mut process = process_of(tests[0]);
    process.args(&tests[1..]);
    process.env("DPOR_TEST_SUMMARY", "1");
    process.env("DPOR_SUMMARY", file);
    process
}

fn two_add() {
    let x = Arc::new(AtomicUsize::new(0));
    let theirs = x.clone();
    let other = thread::spawn(move || theirs.fetch_add(1, SeqCst));
    x.fetch_add(1, SeqCst);
    other.join().unwrap();
}

fn parks() {
    let main = thread::current();
    let other = thread::spawn(move || main.unpark());
    thread::park();
    other.join().unwrap();
}

/// Not tests of their own: the tests below run them.
#[test]
fn child_with_verdicts() {
    if !is_child() {
        return;
    }
    let mut builder = Builder::new();
    builder.check(two_add);
    builder.max_permutations = Some(1);
    builder.check(two_add);
    let mut unfurthered = Builder::new();
    unfurthered.thorough = dpor::Thorough::Off;
    unfurthered.check(parks);
    Builder::new().check(|| drop(thread::spawn(|| ()).join()));
    let fails = Builder::new().explore(|| {
        two_add();
        panic!("as told");
    });
    fails.expect_err("it panics");
}

/// Threads that see each other's stores too late under C11.
fn store_buffers() {
    let pair = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let theirs = pair.clone();
    let other = thread::spawn(move || {
        theirs[0].store(1, Relaxed);
        theirs[1].load(Relaxed)
    });
    pair[1].store(1, Relaxed);
    pair[0].load(Relaxed);
    other.join().unwrap();
}

#[test]
fn child_with_weak_memory_and_further_passes() {
    if !is_child() {
        return;
    }
    Builder::new().check(store_buffers);
    let mut builder = Builder::new();
    builder.check(parks);
    builder.max_branches = 4;
    builder.check(parks);
}

#[test]
fn child_that_repeats() {
    if is_child() {
        for nth in 0..100 {
            let mut builder = Builder::new();
            builder.max_permutations = (nth == 70).then_some(1);
            builder.check(two_add);
        }
    }
}

#[test]
fn child_that_fails() {
    if is_child() {
        dpor::model(|| assert_eq!(dpor::choose(3), 0));
    }
}

#[test]
fn every_place_has_a_line_with_its_verdict_and_its_assumptions() {
    let scratch = Scratch::new("verdicts");
    // The directory is made.
    let file = scratch.0.join("new/summary.json");
    let child = process(&["summary::child_with_verdicts"], &file)
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
    let lines = lines(&file);
    let line = |code: &str| {
        let key = ("summary::child_with_verdicts".to_owned(), code.to_owned());
        let mut line = lines.get(&key).unwrap_or_else(|| panic!("{code}")).clone();
        let fields = line.as_object_mut().expect("an object");
        assert_eq!(fields.remove("package"), Some(json!("dpor")));
        assert_eq!(fields.remove("target"), Some(json!("verdict")));
        assert!(fields.remove("seconds").expect("a number").as_f64() > Some(0.0));
        for field in ["run", "test", "place"] {
            fields.remove(field).expect("a field");
        }
        assert!(fields.remove("events").expect("a number").is_u64());
        let trees = fields.remove("trees").expect("an object");
        // Some searches have no trees.
        let of = |field: &str| trees[field].as_u64().unwrap_or(0);
        assert!(of("widest") <= of("branches") && of("branches") <= of("bytes"));
        assert_eq!(of("depth") > 0, of("branches") > 0);
        // Without `DPOR_SHARD` there are no parts.
        assert_eq!(fields.remove("shard"), Some(Value::Null));
        assert_eq!(fields.remove("parts").expect("an object")["models"], 0);
        line
    };
    let complete = json!({
        "models": 1, "complete": true, "verdicts": { "complete": 1 }, "reason": null,
        "executions": 2, "pruned": 0, "assumptions": [], "vacuous": [],
        "weak": { "impossible": 1 }, "weak_operations": [], "further": [],
    });
    let with = |changes: Value| {
        let mut line = complete.clone();
        for (field, value) in changes.as_object().expect("an object") {
            line[field] = value.clone();
        }
        line
    };
    // The first two models are at two places.
    let stopped = with(json!({
        "complete": false, "verdicts": { "stopped": 1 }, "executions": 1,
        "reason": "stopped by max_permutations = 1 (DPOR_MAX_PERMUTATIONS)",
        "weak": { "unasked": 1 },
    }));
    assert_eq!(line("builder.check(two_add);"), stopped);
    assert_eq!(lines.len(), 4);
    let places: Vec<_> = all_lines(&file).into_iter().collect();
    assert_eq!(places.len(), 5);
    let mut parked = line("unfurthered.check(parks);");
    let assumption = parked["assumptions"][0].take();
    assert_eq!(assumption["kind"], "spurious_wakeups");
    let place = assumption["places"][0].as_str().expect("a place");
    assert!(place.starts_with("tests/verdict/summary.rs:"), "{place}");
    parked["assumptions"] = json!([]);
    assert_eq!(parked, with(json!({ "executions": 1 })));
    assert_eq!(
        line("Builder::new().check(|| drop(thread::spawn(|| ()).join()));"),
        with(json!({ "executions": 1, "vacuous": ["no_conflict"] }))
    );
    let failed = line("let fails = Builder::new().explore(|| {");
    let panicked = failed["reason"].as_str().expect("a text").to_owned();
    let start = "thread 'main' panicked at tests/verdict/summary.rs:";
    assert!(panicked.starts_with(start), "{panicked}");
    assert!(panicked.ends_with(": as told"), "{panicked}");
    assert_eq!(
        failed,
        with(json!({
            "complete": false, "verdicts": { "failed": 1 }, "executions": 0, "reason": panicked,
            "weak": { "unasked": 1 },
        }))
    );
}

#[test]
fn a_line_says_what_was_found_of_weak_memory_and_which_further_passes_ran() {
    let scratch = Scratch::new("passes");
    let file = scratch.0.join("summary.json");
    let child = process(
        &["summary::child_with_weak_memory_and_further_passes"],
        &file,
    );
    let child = { child }.output().unwrap();
    assert!(child.status.success(), "{child:?}");
    let lines = all_lines(&file);
    let of = |nth: usize| lines.iter().filter(|line| line["models"] == 1).nth(nth);
    let weak = of(0).expect("a line");
    assert_eq!(weak["weak"], json!({ "explored": 1 }));
    let operation = weak["weak_operations"][0].as_str().expect("an operation");
    assert!(
        operation.contains("load at tests/verdict/summary.rs:"),
        "{operation}"
    );
    let parks = of(1).expect("a line");
    assert_eq!(parks["weak"], json!({ "impossible": 1 }));
    assert_eq!(
        parks["further"],
        json!([{
            "kind": "spurious_wakeups", "passes": 1, "executions": 2, "complete": true, "ended": null,
        }])
    );
    // The choice how to wake up is an event more than the limit allows.
    let limited = of(2).expect("a line");
    assert_eq!(limited["complete"], true);
    let ended = limited["further"][0]["ended"].as_str().expect("a text");
    assert!(ended.contains("too many events"), "{ended}");
    assert_eq!(limited["further"][0]["complete"], false);
    let told = String::from_utf8_lossy(&child.stderr);
    let line =
        "dpor: the further pass for spurious wake-ups of the model at tests/verdict/summary.rs:";
    assert!(told.contains(line), "{told}");
    assert!(told.contains("DPOR_REPLAY="), "{told}");
}

#[test]
fn a_place_that_explores_often_has_few_lines_and_the_last_one_counts_all() {
    let scratch = Scratch::new("often");
    let file = scratch.0.join("summary.json");
    let child = process(&["summary::child_that_repeats"], &file)
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
    let lines = all_lines(&file);
    // One for each power of two, for the one that is stopped, and at the end of the process.
    assert_eq!(lines.len(), if cfg!(unix) { 9 } else { 8 });
    let last = lines.last().expect("a line");
    if cfg!(unix) {
        assert_eq!(
            (&last["models"], &last["executions"]),
            (&json!(100), &json!(199))
        );
        assert_eq!(last["verdicts"], json!({ "complete": 99, "stopped": 1 }));
    }
    assert_eq!(last["complete"], false);
    let numbers: Vec<_> = lines
        .iter()
        .map(|line| line["models"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers[..8], [1, 2, 4, 8, 16, 32, 64, 71]);
}

#[test]
fn a_test_that_fails_has_a_line_with_the_reason() {
    let scratch = Scratch::new("fails");
    let file = scratch.0.join("summary.json");
    let child = process(&["summary::child_that_fails"], &file)
        .output()
        .unwrap();
    assert!(!child.status.success());
    let lines = all_lines(&file);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["verdicts"], json!({ "failed": 1 }));
    let reason = lines[0]["reason"].as_str().expect("a text");
    assert!(
        reason.ends_with(": assertion `left == right` failed"),
        "{reason}"
    );
}

#[test]
fn processes_that_write_at_once_lose_no_line() {
    let scratch = Scratch::new("at-once");
    let file = scratch.0.join("summary.json");
    let tests = [
        "summary::child_that_repeats",
        "summary::child_with_verdicts",
    ];
    let children: Vec<_> = (0..8)
        .map(|_| {
            process(&tests, &file)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let lines = all_lines(&file);
    let each = if cfg!(unix) { 9 + 5 } else { 8 + 5 };
    assert_eq!(lines.len(), 8 * each);
}

/// A copy of this program in a target directory of its own.
fn in_a_target_directory(scratch: &Scratch) -> (PathBuf, PathBuf) {
    let target = scratch.0.join("target");
    let deps = target.join("debug/deps");
    std::fs::create_dir_all(&deps).expect("a directory");
    std::fs::write(target.join("CACHEDIR.TAG"), "").expect("a file");
    let program = deps.join("copied-0123456789abcdef");
    std::fs::copy(std::env::current_exe().unwrap(), &program).expect("a copy");
    (program, target.join("dpor/summary.json"))
}

#[test]
fn the_file_in_the_target_directory_begins_anew_with_each_run() {
    let scratch = Scratch::new("target");
    let (program, file) = in_a_target_directory(&scratch);
    let run = |test: &str, run: &str, summary: &str| {
        let child = Command::new(&program)
            .args([test, "--exact"])
            .env("DPOR_TEST_SUMMARY", "1")
            .env("NEXTEST_RUN_ID", run)
            .env("DPOR_SUMMARY", summary)
            .output()
            .unwrap();
        assert!(child.status.success(), "{child:?}");
    };
    let seen = || {
        let field = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
        let lines = all_lines(&file).into_iter();
        let mut seen: Vec<_> = lines
            .map(|it| (field(&it, "run"), field(&it, "test")))
            .collect();
        seen.dedup();
        assert!(
            all_lines(&file)
                .iter()
                .all(|line| line["target"] == "copied")
        );
        seen
    };
    let (one, other) = (
        "summary::child_with_verdicts",
        "summary::child_that_repeats",
    );
    let told = |run: &str, test: &str| (run.to_owned(), test.to_owned());
    run(one, "a", "0");
    assert!(!file.exists());
    run(one, "a", "");
    assert_eq!(seen(), [told("a", one)]);
    run(other, "a", "");
    assert_eq!(seen(), [told("a", one), told("a", other)]);
    run(other, "b", "");
    assert_eq!(seen(), [told("b", other)]);
    // A file that was named stays as it is.
    let named = scratch.0.join("named.json");
    run(one, "a", named.to_str().unwrap());
    run(one, "b", named.to_str().unwrap());
    assert_eq!(all_lines(&named).len(), 2 * 5);
    assert_eq!(seen(), [told("b", other)]);
}

/// The processes that one process starts are of one run, and so are the processes that these start.
#[cfg(target_os = "linux")]
#[test]
fn processes_of_one_parent_are_of_one_run() {
    let scratch = Scratch::new("parent");
    let file = scratch.0.join("summary.json");
    for _ in 0..2 {
        let child = process(&["summary::child_that_starts_another"], &file)
            .output()
            .unwrap();
        assert!(child.status.success(), "{child:?}");
    }
    let lines = all_lines(&file);
    assert_eq!(lines.len(), 4 * 5);
    assert!(
        lines.iter().all(|line| line["run"] == lines[0]["run"]),
        "{lines:?}"
    );
}

/// Not a test of its own: [`processes_of_one_parent_are_of_one_run`] runs it.
#[test]
fn child_that_starts_another() {
    if is_child() {
        child_with_verdicts();
        let mut child = process_of("summary::child_with_verdicts");
        assert!(child.output().unwrap().status.success());
    }
}

#[test]
fn a_builder_may_choose_the_file() {
    let scratch = Scratch::new("builder");
    let file = scratch.0.join("own.json");
    let mut builder = Builder::new();
    builder.summary = Summary::File(file.clone());
    builder.check(two_add);
    assert_eq!(all_lines(&file).len(), 1);
    builder.summary = Summary::Nothing;
    builder.check(two_add);
    assert_eq!(all_lines(&file).len(), 1);
    // A file that cannot be written is no reason to fail.
    builder.summary = Summary::File(file.join("in a file"));
    assert!(builder.check(two_add).complete);
}
