//! Does the house have the order that `docs/ARCHITECTURE.md` says it has?

use std::fs;
use std::path::{Path, PathBuf};

/// Folder or file, and what no file in it may name in its code.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "src/rt/trace",
        &[
            "rt::object",
            "rt::explore",
            "rt::exec",
            "rt::report",
            "crate::sync",
            "crate::thread",
            "generator",
            "scoped_tls",
            "std::thread",
            "std::env",
            "std::fs",
            "thread_local!",
        ],
    ),
    (
        "src/rt/object",
        &[
            "rt::explore",
            "rt::exec",
            "rt::report",
            "crate::sync",
            "crate::thread",
            "generator",
            "scoped_tls",
            "std::thread",
            "std::env",
            "std::fs",
            "thread_local!",
        ],
    ),
    (
        "src/rt/explore",
        &[
            "rt::exec",
            "rt::report",
            "crate::sync",
            "crate::thread",
            "generator::",
            "scoped_tls",
            "std::env",
            "std::fs",
            "thread_local!",
        ],
    ),
    (
        "src/rt/race",
        &[
            "rt::object",
            "rt::explore",
            "rt::exec",
            "rt::report",
            "crate::sync",
            "crate::thread",
            "std::thread",
            "std::env",
            "std::fs",
            "thread_local!",
        ],
    ),
    (
        "src/rt/report",
        &[
            "rt::explore",
            "rt::exec",
            "crate::sync",
            "crate::thread",
            "eprint",
        ],
    ),
    (
        "src/rt/exec",
        &[
            "rt::report",
            "crate::sync",
            "crate::thread",
            "explore::optimal",
            "explore::backtrack",
        ],
    ),
    (
        "src/sync",
        &["rt::exec", "rt::explore", "rt::object", "rt::report"],
    ),
    (
        "src/thread",
        &["rt::exec", "rt::explore", "rt::object", "rt::report"],
    ),
    (
        "src/cell",
        &["rt::exec", "rt::explore", "rt::object", "rt::report"],
    ),
    ("src", &["dbg!("]),
];

/// A crate, and the only file that may name it.
const ONLY: &[(&str, &str)] = &[
    ("generator::", "src/rt/coroutine.rs"),
    ("scoped_tls::", "src/rt/exec/context.rs"),
    ("tracing::", "src/rt/exec/log.rs"),
];

fn sources(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a folder of the crate") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

/// The files under `src`, with their lines of code.
fn code() -> Vec<(String, Vec<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a readable file");
            let name = path
                .strip_prefix(root)
                .expect("inside")
                .display()
                .to_string();
            (name, text.lines().map(str::to_owned).collect())
        })
        .collect()
}

fn is_code(line: &str) -> bool {
    !line.trim_start().starts_with("//")
}

#[test]
fn imports_point_one_way() {
    let mut wrong = Vec::new();
    for (file, lines) in code() {
        // The tests of the core read the environment, and run on two threads.
        let test = file.contains("/tests/") || file.ends_with("/tests.rs");
        for (room, names) in FORBIDDEN {
            if !file.starts_with(room) || test {
                continue;
            }
            for line in lines.iter().filter(|line| is_code(line)) {
                for name in names.iter().filter(|name| line.contains(**name)) {
                    wrong.push(format!("{file}: `{name}` in `{}`", line.trim()));
                }
            }
        }
        for (name, only) in ONLY {
            for line in lines.iter().filter(|line| is_code(line)) {
                if line.contains(name) && file != *only && !test {
                    wrong.push(format!("{file}: only {only} may name {name}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_file_begins_with_what_it_is_about_and_stays_short() {
    for (file, lines) in code() {
        assert!(
            lines[0].starts_with("//!"),
            "{file} does not begin with `//!`"
        );
        assert!(
            lines.len() <= 650,
            "{file} has {} lines: it may hold two things",
            lines.len()
        );
    }
}

/// What `docs/ARCHITECTURE.md` calls a file, in backticks; `{a,b}.rs` is two.
fn named_files(map: &str) -> Vec<String> {
    let quoted = map.split('`').skip(1).step_by(2);
    let rust = quoted.filter_map(|name| name.strip_suffix(".rs"));
    rust.flat_map(|name| match name.split_once('{') {
        None => vec![format!("{name}.rs")],
        Some((before, rest)) => {
            let names = rest.trim_end_matches('}').split(',');
            names.map(|name| format!("{before}{name}.rs")).collect()
        }
    })
    .collect()
}

#[test]
fn the_map_of_the_code_is_short_and_names_files_that_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = fs::read_to_string(root.join("docs/ARCHITECTURE.md")).expect("the map");
    // Two pages.
    assert!(map.lines().count() <= 110, "{}", map.lines().count());
    let files: Vec<String> = code()
        .into_iter()
        .map(|(file, _)| format!("/{file}"))
        .collect();
    let exists = |name: &String| files.iter().any(|file| file.ends_with(&format!("/{name}")));
    let named = named_files(&map);
    assert!(named.len() > 30, "{named:?}");
    let mut missing = named
        .iter()
        .filter(|name| *name != "tests/tidy.rs" && !exists(name));
    assert_eq!(missing.next(), None);
}
