//! Do a schedule, and the command in the report, lead back to the failure?

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::atomic::{AtomicUsize, fence};
use dpor::sync::{Arc, Condvar, Mutex, Notify};
use dpor::{Builder, FailureKind, Verdict, thread};

use super::children::process_of;
use super::lost_update;

#[test]
fn a_schedule_that_does_not_fit_or_is_malformed_is_refused_with_the_position() {
    let mut builder = Builder::new();
    builder.replay = Some("v2 main*3 main.7".to_owned());
    let stale = builder
        .explore(lost_update)
        .expect_err("there is no seventh thread");
    assert_eq!(stale.kind(), FailureKind::Schedule);
    let text = stale.to_string();
    assert!(
        text.contains("at step 4 it asks for a step of main.7, but only"),
        "{text}"
    );
    builder.replay = Some("v2 rain".to_owned());
    let malformed = builder.explore(lost_update).expect_err("malformed");
    assert!(
        malformed
            .to_string()
            .contains("at byte 3: expected a thread"),
        "{malformed}"
    );
}

/// Each thread sees the store of the other one, or its own fence does not matter.
fn fenced() {
    let cells: Arc<[AtomicUsize; 2]> = Arc::default();
    let theirs = cells.clone();
    let other = thread::spawn(move || {
        fence(SeqCst);
        theirs[0].store(1, SeqCst);
        fence(SeqCst);
        theirs[1].load(SeqCst)
    });
    cells[1].store(1, SeqCst);
    fence(SeqCst);
    let mine = cells[0].load(SeqCst);
    fence(SeqCst);
    assert_eq!(mine + other.join().unwrap(), 1);
}

#[test]
fn a_schedule_of_before_that_counts_fences_leads_to_the_same() {
    let mut builder = Builder::new();
    let found = builder.explore(fenced).expect_err("both may see it");
    // As it was written when fences were steps: main spawns, stores and fences, the other one
    // fences, stores, fences and looks.
    let as_steps = "v2 main*4 main.1*5 main*3";
    for (schedule, follows) in [
        (found.schedule(), None),
        (as_steps, None),
        (
            "v2 main*3 main.1*9",
            Some("at step 7 it asks for a step of main.1, but only main"),
        ),
    ] {
        builder.replay = Some(schedule.to_owned());
        let again = builder.explore(fenced).expect_err("as before");
        let text = again.to_string();
        match follows {
            None => {
                assert_eq!(again.kind(), FailureKind::Panic, "{text}");
                // What is told is how it is written now.
                builder.replay = Some(again.schedule().to_owned());
                let again = builder.explore(fenced).expect_err("as before");
                assert_eq!(again.kind(), FailureKind::Panic, "{again}");
                assert!(text.contains("-  fence"), "{text}");
            }
            Some(misfit) => assert!(text.contains(misfit), "{text}"),
        }
    }
}

/// Not a test of its own: what [`a_report_names_the_file_and_the_command_that_replay_it`] runs.
#[test]
fn child_that_fails() {
    if std::env::var_os("DPOR_TEST_FAILS").is_some() {
        Builder::new().check(lost_update);
    }
}

/// Not a test of its own: what [`a_schedule_is_for_one_of_a_test_s_models`] runs.
#[test]
fn child_whose_third_model_fails() {
    if std::env::var_os("DPOR_TEST_FAILS").is_none() {
        return;
    }
    for adds in [true, true, false, true] {
        let report = Builder::new().check(move || {
            if !adds {
                return lost_update();
            }
            let counter = Arc::new(AtomicUsize::new(0));
            let shared = counter.clone();
            let other = thread::spawn(move || shared.fetch_add(1, SeqCst));
            counter.fetch_add(1, SeqCst);
            other.join().unwrap();
        });
        assert_eq!(report.executions, 2, "{report}");
    }
}

/// Not a test of its own: what [`a_failure_is_shown_alike_wherever_the_program_runs`] runs.
#[test]
fn child_that_loses_an_update() {
    if std::env::var_os("DPOR_TEST_FAILS").is_some() {
        Builder::new().check(lost_update);
    }
}

/// A debugger, say, runs the program where somebody happens to be.
#[test]
fn a_failure_is_shown_alike_wherever_the_program_runs() {
    let at_home = run("failures::replay::child_that_loses_an_update", "");
    assert!(at_home.contains("* x = 0 "), "{at_home}");
    let mut command = program("failures::replay::child_that_loses_an_update");
    let elsewhere = command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    let elsewhere = String::from_utf8(elsewhere.output().unwrap().stderr).unwrap();
    let table = |text: &str| {
        let lines = text.lines().skip_while(|line| !line.contains(" # "));
        let lines: Vec<String> = lines
            .take_while(|line| !line.is_empty())
            .map(str::to_owned)
            .collect();
        lines
    };
    assert_eq!(table(&elsewhere), table(&at_home), "{elsewhere}");
}

/// Not a test of its own: what [`a_schedule_that_is_too_long_to_read_is_played_from_its_file`] runs.
#[test]
fn child_with_a_long_schedule() {
    if std::env::var_os("DPOR_TEST_FAILS").is_none() {
        return;
    }
    // Two threads take turns, none of which is as long as those before: nothing is a round of a loop.
    fn turns(counter: &AtomicUsize, mut random: u32, mut turn: impl FnMut()) {
        for _ in 0..600 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            for _ in 0..random >> 28 {
                counter.fetch_add(1, SeqCst);
            }
            turn();
        }
    }
    Builder::new().check(|| {
        let main = thread::current();
        let counter = Arc::new(AtomicUsize::new(0));
        let shared = counter.clone();
        let other = thread::spawn(move || {
            turns(&shared, 1, || {
                thread::park();
                main.unpark();
            });
        });
        turns(&counter, 2, || {
            other.thread().unpark();
            thread::park();
        });
        other.join().unwrap();
        panic!("a long time after");
    });
}

/// A test of this program, which is to fail.
fn program(child: &str) -> std::process::Command {
    let mut command = process_of(child);
    command.arg("--nocapture");
    command.env("DPOR_TEST_FAILS", "1");
    command.env("CARGO_PKG_NAME", env!("CARGO_PKG_NAME"));
    command.env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"));
    command.env("DPOR_REPORT_DIR", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// What a test of this program that fails says with this in `DPOR_REPLAY`.
fn run(child: &str, replay: &str) -> String {
    let mut command = program(child);
    if !replay.is_empty() {
        command.env("DPOR_REPLAY", replay);
    }
    String::from_utf8(command.output().unwrap().stderr).unwrap()
}

/// What stands behind a label of the report, which is once at the beginning of a line.
fn labelled(text: &str, label: &str) -> String {
    let lines = text.lines().filter_map(|line| line.strip_prefix(label));
    let [only] = lines.collect::<Vec<_>>()[..] else {
        panic!("not one `{label}` in: {text}")
    };
    only.to_owned()
}

#[test]
fn a_schedule_is_for_one_of_a_test_s_models() {
    let child = "failures::replay::child_whose_third_model_fails";
    let text = run(child, "");
    let schedule = labelled(&text, "schedule   ");
    assert!(schedule.starts_with("v2 "), "{text}");
    let replay = labelled(&text, "replay     ");
    let meant = format!("model 3: {schedule}");
    assert!(
        replay.starts_with(&format!("DPOR_REPLAY=\"{meant}\" ")),
        "{text}"
    );
    let json = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("failures.replay.child_whose_third_model_fails.json");
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(json["command"], replay.as_str());
    assert_eq!(json["schedule"], schedule.as_str());
    let kept = labelled(&text, "kept       in ");
    let (path, _) = kept.split_once(" (DPOR_REPLAY=").expect("how to replay it");
    for replay in [meant.clone(), format!("@{path}")] {
        let again = run(child, &replay);
        // The other models are explored.
        assert!(again.contains("(execution 1, after"), "{again}");
        assert!(!again.contains("has followed the schedule"), "{again}");
        assert_eq!(labelled(&again, "schedule   "), schedule);
    }
    // What is given to a model by the program is for that one.
    let mut builder = Builder::new();
    builder.replay = Some("model 3: v2 main".to_owned());
    let report = builder.check(|| {
        dpor::choose(2);
    });
    assert_eq!(report.verdict, Verdict::Replayed);
    let malformed = run(child, "model 1: v2 rain");
    assert!(
        malformed.contains("at byte 12: expected a thread"),
        "{malformed}"
    );
}

#[test]
fn a_report_names_the_file_and_the_command_that_replay_it() {
    let run = |replay: &str| run("failures::replay::child_that_fails", replay);
    let text = run("");
    let kept = labelled(&text, "kept       in ");
    let (path, replay) = kept.split_once(" (DPOR_REPLAY=").expect("how to replay it");
    assert_eq!(replay, format!("@{path})"));
    // So it is with the command, which names the program and the whole name of the test.
    let replay = labelled(&text, "replay     ");
    let (schedule, command) = replay.split_once("\" ").expect("a schedule in quotes");
    let schedule = schedule.strip_prefix("DPOR_REPLAY=\"").expect("a schedule");
    assert_eq!(schedule, labelled(&text, "schedule   "));
    let own = " -- --exact failures::replay::child_that_fails";
    assert!(command.contains("cargo test --test verdict"), "{command}");
    assert!(command.ends_with(own), "{command}");
    let again = run(&format!("@{path}"));
    assert_eq!(
        labelled(&again, "schedule   "),
        labelled(&text, "schedule   ")
    );
}

#[test]
fn a_schedule_that_is_too_long_to_read_is_played_from_its_file() {
    let child = "failures::replay::child_with_a_long_schedule";
    let text = run(child, "");
    let path = labelled(&text, "kept       in ");
    let schedule = std::fs::read_to_string(&path).expect("it is kept");
    let schedule = schedule.trim_end();
    assert!(schedule.len() > 8000 && text.len() < 12_000, "{text}");
    let shown = labelled(&text, "schedule   ");
    let (beginning, bytes) = shown.split_once(" ... ").expect("only the beginning");
    assert!(beginning.len() > 100 && schedule.starts_with(beginning));
    assert_eq!(bytes, format!("({} bytes in all)", schedule.len()));
    let replay = labelled(&text, "replay     ");
    let command = format!("DPOR_REPLAY=\"@{path}\" cargo test ");
    assert!(replay.starts_with(&command), "{replay}");
    assert!(!text.contains("as a test"), "{text}");
    let again = run(child, &format!("@{path}"));
    assert!(again.contains("\na long time after\n"), "{again}");
    assert_eq!(labelled(&again, "schedule   "), shown);
    // What is wrong with a long one is told without it.
    let broken = run(child, &format!("{schedule} rain"));
    let at = format!("at byte {}: expected a thread", schedule.len() + 1);
    assert!(broken.contains(&at) && broken.len() < 1000, "{broken}");
}

#[test]
fn the_test_in_a_report_has_the_settings_without_which_its_schedule_does_not_fit() {
    fn body() {
        let lock = Mutex::new(());
        let timed_out = || {
            let guard = lock.lock().unwrap();
            let wait = Condvar::new().wait_timeout(guard, Duration::from_millis(1));
            wait.unwrap().1.timed_out()
        };
        // Each round is another visit of the same wait.
        let times = (0..3).filter(|_| timed_out()).count();
        assert_ne!(times, 3, "timed out");
    }
    let mut builder = Builder::new();
    builder.detached_may_block = true;
    builder.timeout_bound = 3;
    let failure = builder.explore(body).expect_err("it fails");
    let schedule = failure.schedule().to_owned();
    let expected = format!(
        "
               let mut builder = dpor::Builder::new();
               builder.detached_may_block = true;
               builder.timeout_bound = 3;
               builder.replay = Some(\"{schedule}\".to_owned());
               builder.check(|| {{ /* the closure of the model */ }});
           }}"
    );
    assert!(failure.to_string().contains(&expected), "{failure}");
    // As it says.
    builder.replay = Some(schedule);
    let same = builder.explore(body).expect_err("it fails");
    assert_eq!(same.kind(), failure.kind(), "{same}");
}

#[test]
fn a_schedule_names_the_spurious_behaviour_that_it_needs() {
    // Both waits have to end for no reason.
    fn waits() {
        let shared = Arc::new(([Notify::new(), Notify::new()], AtomicUsize::new(0)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs.1.store(1, SeqCst);
            theirs.0.iter().for_each(Notify::notify);
        });
        shared.0.iter().for_each(Notify::wait);
        assert_eq!(shared.1.load(SeqCst), 1, "woken for no reason");
        other.join().unwrap();
    }
    fn exchanges() {
        let x = AtomicUsize::new(0);
        assert!(x.compare_exchange_weak(0, 1, SeqCst, SeqCst).is_ok());
    }
    type Case = (fn(), fn(&mut Builder), &'static str);
    let cases: [Case; 2] = [
        (waits, |it| it.spurious_wakeups = 2, "v2 wakes*2 main"),
        (exchanges, |it| it.spurious_failures = true, "v2 fails main"),
    ];
    for (body, set, mark) in cases {
        let mut builder = Builder::new();
        set(&mut builder);
        let failure = builder.explore(body).expect_err("it fails");
        let schedule = failure.schedule();
        assert!(schedule.starts_with(mark), "{schedule}");
        assert!(!failure.to_string().contains("builder."), "{failure}");
        let mut builder = Builder::new();
        builder.replay = Some(schedule.to_owned());
        let same = builder.explore(body).expect_err("it fails");
        assert_eq!((same.kind(), same.schedule()), (failure.kind(), schedule));
    }
}

#[test]
fn a_schedule_of_the_environment_that_does_not_fit_says_where_it_comes_from() {
    let child = "failures::replay::child_that_fails";
    for schedule in ["v2 main*3 main.7", "v2 rain"] {
        let text = run(child, schedule);
        let told = format!(
            "it comes from DPOR_REPLAY, which every test that runs is told to follow (this is `{child}`): "
        );
        assert!(text.contains(&told), "{text}");
        let mut builder = Builder::new();
        builder.replay = Some(schedule.to_owned());
        let failure = builder.explore(lost_update).expect_err("it does not fit");
        assert!(!failure.to_string().contains("DPOR_REPLAY"), "{failure}");
    }
}

#[test]
fn the_test_that_is_written_out_is_printed_once_in_a_process() {
    let program = std::env::current_exe().expect("a test has a file");
    let mut command = std::process::Command::new(program);
    command.args([
        "failures::replay::child_that_",
        "--nocapture",
        "--test-threads=1",
    ]);
    command.env("DPOR_TEST_FAILS", "1");
    let text = String::from_utf8(command.output().unwrap().stderr).unwrap();
    let lines = |label: &str| text.lines().filter(|line| line.starts_with(label)).count();
    assert_eq!(
        [
            lines("schedule   "),
            lines("replay     "),
            lines("as a test  ")
        ],
        [2, 2, 1],
        "{text}"
    );
    assert_eq!(text.matches("dpor::replay(").count(), 1, "{text}");
    // The text of a failure has it always.
    for _ in 0..2 {
        assert!(
            super::failure(lost_update)
                .to_string()
                .contains("\nas a test  ")
        );
    }
}
