//! `cargo dpor test`.

use crate::support::{Crate, has_nextest, models};

#[test]
fn twenty_models_are_a_table() {
    let made = Crate::with_dpor("twenty");
    made.write("tests/twenty.rs", &models::twenty());
    let ended = made.dpor(&["test", "--test", "twenty"]).with(0);
    let ended = ended.says(&[
        "20 models: 20 complete; ",
        "verdict ",
        "twenty a::t19",
        "twenty large",
    ]);
    let rows: Vec<_> = ended
        .out
        .lines()
        .filter(|line| line.starts_with("complete "))
        .collect();
    assert_eq!(rows.len(), 20, "{}", ended.out);
    let large = rows
        .iter()
        .find(|row| row.contains(" large"))
        .expect("a row");
    assert_eq!(large.split_whitespace().nth(1), Some("24"));
    assert!(
        !ended.out.contains('\u{1b}'),
        "a pipe has no colours: {}",
        ended.out
    );
    // Cargo's arguments reach it, with this command's among them.
    let ended = made.dpor(&[
        "test", "t1", "--time", "60s", "--test", "twenty", "--", "--exact", "a::t7",
    ]);
    ended.with(0).says(&["1 model: 1 complete; 2 executions"]);
}

#[test]
fn a_run_without_a_model_fails() {
    let made = Crate::with_dpor("plain");
    let told = made.dpor(&["test"]).with(4);
    told.says(&["no model ran, and no test at all"]);
    made.write("tests/plain.rs", "#[test]\nfn passes() {}\n");
    let told = made.dpor(&["test", "--test", "plain"]).with(4);
    told.says(&["no model ran: 1 test ran, and does not call"]);
}

#[test]
fn a_crate_without_the_dependency_is_told_of_init() {
    let made = Crate::new("alone", "");
    made.dpor(&["test"])
        .with(4)
        .says(&["no selected package depends on dpor", "cargo dpor init"]);
}

#[test]
fn a_model_that_is_stopped_fails_with_what_to_do() {
    let made = Crate::with_dpor("stopped");
    made.write("tests/stopped.rs", &models::stopped());
    let told = made.dpor(&["test", "--test", "stopped"]).with(5);
    told.says(&[
        "stopped ",
        "1 model: 1 not explored in full; 5 executions",
        "stops: stopped by max_permutations = 5 (DPOR_MAX_PERMUTATIONS)",
        "cargo dpor explain stops",
        "--allow-incomplete",
    ]);
    let told = made.dpor(&["explain", "stops"]).with(0);
    told.says(&[
        "stops, at tests/stopped.rs:",
        "to at tests/stopped.rs:",
        "%)",
        "what makes them fewer",
    ]);
    let told = made
        .dpor(&["test", "--allow-incomplete", "--test", "stopped"])
        .with(0);
    told.says(&["cargo dpor explain stops"]);
    let more = [("DPOR_MAX_PERMUTATIONS", "100")];
    made.dpor_with(&["test", "--test", "stopped"], &more)
        .with(0);
}

#[test]
fn a_program_that_crashes_is_told() {
    let made = Crate::with_dpor("crashing");
    made.write("tests/a_crash.rs", &models::crashing());
    made.write("tests/twenty.rs", &models::twenty());
    let told = made.dpor(&["test", "--tests"]).with(1);
    told.says(&["a test program crashed", "twenty large", "complete "]);
}

#[test]
fn a_build_error_has_a_code_of_its_own() {
    let made = Crate::with_dpor("broken");
    made.write(
        "tests/broken.rs",
        "#[cfg(dpor)]\ncompile_error!(\"as told\");\n",
    );
    let ended = made.dpor(&["test", "--test", "broken"]).with(3);
    assert!(ended.err.contains("as told"), "{}", ended.err);
    ended.says(&["not built"]);
}

#[test]
fn a_test_without_a_model_that_fails_is_named() {
    let made = Crate::with_dpor("fails");
    made.write(
        "tests/fails.rs",
        "mod a {\n#[test]\nfn b() { panic!(\"as told\") }\n}\n",
    );
    let told = made.dpor(&["test", "--test", "fails"]).with(1);
    told.says(&["a test failed, and no model of it: a::b"]);
}

#[test]
fn options_become_settings() {
    let made = Crate::with_dpor("settings");
    made.write(
        "tests/settings.rs",
        r#"#[test]
fn shows() {
    for name in ["DPOR_MAX_DURATION", "DPOR_THOROUGH", "DPOR_MEMORY", "DPOR_SPIN_BOUND", "DPOR_WORKERS", "DPOR_SHARD"] {
        println!("{name}={}", std::env::var(name).unwrap());
    }
}
"#,
    );
    let arguments = [
        "test",
        "--test",
        "settings",
        "--memory",
        "c11",
        "--thorough",
        "--time=2m",
        "--workers=auto",
        "--shard",
        "3/8",
        "--",
        "--nocapture",
    ];
    let ended = made
        .dpor_with(&arguments, &[("DPOR_SPIN_BOUND", "2")])
        .with(4);
    ended.says(&[
        "DPOR_MAX_DURATION=2m",
        "DPOR_THOROUGH=1",
        "DPOR_MEMORY=c11",
        "DPOR_SPIN_BOUND=2",
        "DPOR_WORKERS=auto",
        "DPOR_SHARD=3/8",
    ]);
}

#[test]
fn parts_of_a_model_are_run_and_merged() {
    let made = Crate::with_dpor("parts");
    made.write(
        "tests/parts.rs",
        r#"use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[test]
fn long() {
    dpor::model(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let all: Vec<_> = (0..5)
            .map(|_| {
                let x = x.clone();
                dpor::thread::spawn(move || x.store(x.load(SeqCst) + 1, SeqCst))
            })
            .collect();
        all.into_iter().for_each(|it| it.join().unwrap());
        dpor::outcome(x.load(SeqCst));
    });
}

#[test]
fn short() {
    dpor::model(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let other = dpor::thread::spawn(move || theirs.store(1, SeqCst));
        x.store(2, SeqCst);
        other.join().unwrap();
    });
}
"#,
    );
    let mut files = Vec::new();
    for part in 1..=3 {
        let shard = format!("{part}/3");
        let told = made
            .dpor(&[
                "test", "--test", "parts", "--memory", "sc", "--shard", &shard,
            ])
            .with(0);
        told.says(&[&format!("part {part}/3")]);
        let file = format!("part-{part}.json");
        made.write(&file, &made.summary());
        files.push(made.path(&file).display().to_string());
    }
    let all = made
        .dpor(&["merge", &files[0], &files[1], &files[2]])
        .with(0);
    all.says(&[
        "long: complete, 14400 executions",
        "short: complete, 2 executions",
        "every model was explored in full",
    ]);
    let some = made.dpor(&["merge", &files[2], &files[0]]).with(5);
    some.says(&[
        "long: not in full",
        "part 2/3 is missing",
        "short: complete, 2 executions",
    ]);
    let twice = made.dpor(&["merge", &files[0], &files[0]]).with(2);
    assert!(
        twice.err.contains("the part 1/3 is there twice"),
        "{}",
        twice.err
    );
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let made = Crate::with_dpor("refused");
    for (arguments, told) in [
        (&["test", "--time", "soon"][..], "--time `soon`: expected"),
        (
            &["test", "--memory", "tso"],
            "possible values: auto, sc, c11",
        ),
        (
            &["test", "--config", "build.rustflags=[]"],
            "put them into .cargo/config.toml",
        ),
        (&["test", "--manifest-path", "none.toml"], "none.toml"),
        (&["test", "--workers", "0"], "--workers `0`: expected"),
        (&["test", "--shard", "9/8"], "--shard `9/8`: expected"),
        (&["merge", "none.json"], "none.json: there is no such file"),
        (&["merge"], "required"),
        (&["trace", "a", "0"], "0 is not in 1.."),
        (&["replay"], "there is no run yet"),
        (&["frobnicate"], "unrecognized subcommand"),
    ] {
        let ended = made.dpor(arguments).with(2);
        assert!(ended.err.contains(told), "{told}: {}", ended.err);
    }
    made.write(".cargo/config.toml", "[build]\nrustflags = 3\n");
    let ended = made.dpor(&["test"]).with(2);
    assert!(ended.err.contains("config.toml"), "{}", ended.err);
    made.write("Cargo.toml", "[package]\nname = \n");
    let ended = made.dpor(&["test"]).with(2);
    assert!(ended.err.contains("Cargo.toml:2:8"), "{}", ended.err);
}

#[test]
fn nextest_runs_the_tests() {
    if !has_nextest() {
        return;
    }
    let made = Crate::with_dpor("nextest");
    made.write("tests/failing.rs", &models::failing());
    made.write("tests/twenty.rs", &models::twenty());
    let told = made
        .dpor(&["test", "--nextest", "--test", "failing"])
        .with(1);
    told.says(&[
        "2 models: 1 failed, 1 failed as expected",
        "cargo dpor replay loses",
    ]);
    made.dpor(&["replay"]).with(1);
    let told = made
        .dpor(&["test", "--nextest", "-E", "test(a::t1)"])
        .with(0);
    told.says(&["11 models: 11 complete"]);
    made.dpor(&["test", "--nextest", "nothing_of_this_name"])
        .with(4);
}
