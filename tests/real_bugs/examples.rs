//! Does every example find its bug, with a schedule that leads there again?

use std::path::PathBuf;
use std::process::Command;

/// Each example, and how many executions its fixed version has.
const EXAMPLES: &[(&str, u64)] = &[
    ("lost_update", 2),
    ("deadlock", 2),
    ("spinlock", 4),
    ("static_counter", 2),
    ("treiber_stack", 22),
    ("rwlock_cache", 4),
    ("mpsc_workers", 12),
    ("once_init", 2),
    ("atomic_waker", 4),
];

/// What the example prints, with this schedule to replay.
fn run(name: &str, replay: Option<&str>) -> (bool, String) {
    // `cargo test` has built the examples, next to the folder of the tests.
    let mut path: PathBuf = std::env::current_exe().expect("a test has a file");
    path.pop();
    path.pop();
    path.push("examples");
    path.push(name);
    let mut command = Command::new(path);
    command.env_remove("DPOR_REPLAY");
    if let Some(schedule) = replay {
        command.env("DPOR_REPLAY", schedule);
    }
    let output = command.output().expect("the example is built");
    let text = String::from_utf8(output.stdout).expect("text");
    (output.status.success(), text)
}

fn schedule(text: &str) -> &str {
    let mut lines = text.lines();
    let found = lines.find_map(|line| line.strip_prefix("schedule   "));
    found.unwrap_or_else(|| panic!("no schedule in:\n{text}"))
}

#[test]
fn every_example_finds_its_bug_and_its_fixed_version_has_the_known_count() {
    for (name, fixed) in EXAMPLES {
        let (success, text) = run(name, None);
        assert!(success, "{name}:\n{text}");
        let line = format!("fixed: {fixed} executions, all of them fine");
        assert!(text.contains(&line), "{name}:\n{text}");
        let found = schedule(&text);
        let (_, again) = run(name, Some(found));
        assert_eq!(schedule(&again), found, "{name}:\n{again}");
        // The verdict counts the executions; the rest of the first line is the failure.
        let verdict = |text: &str| {
            let line = text.lines().next().unwrap_or_default();
            line.split(" (").next().map(str::to_owned)
        };
        assert_eq!(verdict(&again), verdict(&text), "{name}");
    }
}

#[test]
fn every_example_is_in_the_list_and_short() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    for entry in std::fs::read_dir(folder).expect("the examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "rs") {
            continue;
        }
        let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
        assert!(EXAMPLES.iter().any(|(known, _)| *known == name), "{name}");
        let lines = std::fs::read_to_string(&path)
            .expect("a file")
            .lines()
            .count();
        assert!(lines <= 80, "{name} has {lines} lines");
    }
}
