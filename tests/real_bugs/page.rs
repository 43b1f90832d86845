//! Does `docs/REAL_BUGS.md` say what the bugs print?
//!
//! The page is what the files of this folder say about themselves, with the report of each buggy
//! version. `DPOR_BLESS=1 cargo test --test real_bugs page` writes it anew.

use std::fmt::Write;

use dpor::{Builder, FailureKind};
use pretty_assertions::assert_eq;

use super::portable::portable;
use super::{REAL, Real, census};

const HEAD: &str = "\
# Real bugs

These bugs were found in public projects. Each is written anew and reduced to the steps that matter
(`tests/real_bugs`), and has the report that `dpor` prints for it. Tests also replay each bug from its
schedule, and explore its fixed version in full.

The line above a report says how many preemptions the bug takes. For panics and deadlocks it also says how
many executions the model has, and how many of them fail.

A test generates this page (`DPOR_BLESS=1 cargo test --test real_bugs page` writes it).
";

/// The first file of a bug that is in a crate as published, and what is said of these bugs.
const PUBLISHED: (&str, &str) = (
    "shared_waker.rs",
    "
# In crates as published

These are in the crates of these versions. `benches/published/run` fetches them, and has them use `dpor` where they use
std or loom; nothing else in their sources is changed. Each entry says where in the source the bug is, and what schedule
leads there. Below are the same bugs written anew, as above.
",
);

/// What a file says about itself: its first sentence, and the rest.
fn opening(source: &str) -> (String, String) {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let text: Vec<_> = lines.map(str::trim).collect();
    let blank = text.iter().position(|line| line.is_empty());
    let (question, rest) = text.split_at(blank.expect("a file answers its question"));
    (question.join(" "), rest[1..].join("\n"))
}

fn page() -> String {
    let mut text = HEAD.to_owned();
    let mut file = "";
    for real in &REAL {
        if file != real.file {
            file = real.file;
            if file == PUBLISHED.0 {
                text += PUBLISHED.1;
            }
            let (question, answer) = opening(real.source);
            write!(text, "\n## {question}\n\n{answer}\n").expect("text");
        }
        section(&mut text, real);
    }
    text
}

fn section(text: &mut String, real: &Real) {
    let Real {
        name,
        file,
        run,
        preemptions,
        ..
    } = real;
    let (run, stem) = (*run, file.trim_end_matches(".rs"));
    // The last line of a report names the test, which is the OS thread's name.
    let thread = std::thread::Builder::new().name(stem.to_owned());
    let failure = thread.spawn(move || Builder::new().explore(run).expect_err("the bug is found"));
    let failure = failure.expect("a thread").join().expect("it is found");
    write!(
        text,
        "\n### {name}\n\n[`{file}`](../tests/real_bugs/{file}): "
    )
    .expect("text");
    if let FailureKind::Panic | FailureKind::Deadlock = failure.kind() {
        let (executions, failing) = census(run);
        write!(text, "{executions} executions, {failing} of them failing; ").expect("text");
    }
    let plural = if *preemptions == 1 { "" } else { "s" };
    write!(
        text,
        "takes {preemptions} preemption{plural}.\n\n```text\n{}\n```\n",
        portable(&failure.to_string())
    )
    .expect("text");
}

#[test]
fn the_page_of_real_bugs_has_their_reports() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/REAL_BUGS.md");
    if std::env::var_os("DPOR_BLESS").is_some() {
        std::fs::write(path, page()).expect("the page can be written");
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(kept, page());
}
