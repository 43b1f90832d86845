//! Is what a test asks to see shown, and nothing else?
//!
//! Each test runs one of the models below in a process of its own and reads what it prints.

use std::process::Command;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, Executions, thread};

/// What the model of this name prints on standard error, with these variables.
fn shown(model: &str, variables: &[(&str, &str)]) -> String {
    let name = format!("model_{model}");
    let mut command = Command::new(std::env::current_exe().expect("a test has a file"));
    command
        .args(["--exact", &name, "--nocapture"])
        .env("SHOWN_MODEL", model)
        .env_remove("RUST_BACKTRACE");
    for (variable, value) in variables {
        command.env(variable, value);
    }
    let output = command.output().expect("it runs");
    String::from_utf8(output.stderr).expect("text")
}

/// Whether the model of this name is to be explored: it is in the process of a test above.
fn asked(model: &str) -> bool {
    std::env::var("SHOWN_MODEL").is_ok_and(|asked| asked == model)
}

/// Not a test of its own: it passes, with two executions, of which one is given up as well.
#[test]
fn model_passing() {
    if !asked("passing") {
        return;
    }
    let report = Builder::new().check(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let shared = x.clone();
        let writer = thread::Builder::new().name("writer".to_owned());
        let writer = writer.spawn(move || shared.store(1, SeqCst));
        x.load(SeqCst);
        writer.unwrap().join().unwrap();
        dpor::assume(dpor::choose(2) == 0);
    });
    assert_eq!((report.executions, report.pruned), (2, 2));
}

#[test]
fn executions_that_pass_are_shown_with_number_schedule_and_table() {
    let text = shown("passing", &[("DPOR_TRACE", "all")]);
    let heads: Vec<&str> = text.lines().filter(|l| l.starts_with("dpor: ")).collect();
    assert_eq!(heads.len(), 4, "{text}");
    for (index, head) in heads.iter().enumerate() {
        let start = format!("dpor: execution {} (", index + 1);
        assert!(head.starts_with(&start), "{head}");
        assert!(head.contains(" events): v1 main"), "{head}");
    }
    let given_up = heads
        .iter()
        .filter(|head| head.contains("(given up by `assume(false)`, "));
    assert_eq!(given_up.count(), 2, "{text}");
    let columns =
        |line: &&str| line.contains('#') && line.contains("writer") && line.contains("where");
    assert_eq!(text.lines().filter(columns).count(), 4, "{text}");
    assert!(
        text.contains("x = 0") && text.contains("shared = 1"),
        "{text}"
    );
}

#[test]
fn one_execution_can_be_chosen_and_is_the_one_of_that_number() {
    let every = shown("passing", &[("DPOR_TRACE", "all")]);
    let third = shown("passing", &[("DPOR_TRACE", "3")]);
    let heads: Vec<&str> = third.lines().filter(|l| l.starts_with("dpor: ")).collect();
    assert_eq!(heads.len(), 1, "{third}");
    assert!(heads[0].starts_with("dpor: execution 3 ("), "{third}");
    assert!(every.contains(heads[0]), "{every}");
}

#[test]
fn nothing_is_shown_unless_it_is_asked_for() {
    let text = shown("passing", &[]);
    assert!(!text.contains("dpor:"), "{text}");
}

#[test]
fn what_is_shown_is_written_as_well_where_there_is_a_directory() {
    let name = format!("dpor-shown-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let mut builder = Builder::new();
    builder.report_dir = Some(folder.clone());
    builder.trace = Some(Executions::Only(2));
    builder.check(|| {
        let name = thread::Builder::new().name("chooser".to_owned());
        let chooser = name.spawn(|| assert!(dpor::choose(3) < 3));
        chooser.unwrap().join().unwrap();
    });
    let stem = "what_is_shown_is_written_as_well_where_there_is_a_directory-execution-2";
    let json = std::fs::read_to_string(folder.join(format!("{stem}.json"))).expect("it is there");
    let files = std::fs::read_dir(&folder).expect("it can be read").count();
    // If it stays, nothing but the temporary folder is a little fuller.
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!(files, 3);
    let execution: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(execution["execution"], 2);
    assert_eq!(execution["outcome"]["kind"], "complete");
    assert_eq!(execution["threads"][1]["name"], "chooser");
}
