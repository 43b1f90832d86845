//! Is an exploration that was interrupted taken up where it was?

#[cfg(unix)]
mod interrupts;
mod parts;
mod weak;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dpor::sync::atomic::AtomicUsize;
use dpor::{Algorithm, Builder, FailureKind, Limit, Report, Verdict, thread};

use crate::children::process_of;

/// A place for a checkpoint that is gone when the test is over. There is one at a time, because the
/// tests share a static.
struct Scratch(
    PathBuf,
    #[expect(dead_code, reason = "held")] MutexGuard<'static, ()>,
);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("dpor-{}-{name}", std::process::id());
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Scratch(std::env::temp_dir().join(name), turn)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Three threads add twice to a static and once to the heap; `seen` is told what they found, which
/// is different in each trace.
fn adders(seen: impl Fn(String)) {
    static STATIC: AtomicUsize = AtomicUsize::new(0);
    let heap = Arc::new(AtomicUsize::new(0));
    let body = |heap: Arc<AtomicUsize>| {
        move || {
            let first = STATIC.fetch_add(1, SeqCst);
            let second = heap.fetch_add(1, SeqCst);
            (first, second, STATIC.fetch_add(1, SeqCst))
        }
    };
    let threads: Vec<_> = (0..3).map(|_| thread::spawn(body(heap.clone()))).collect();
    let found: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    seen(format!("{found:?}"));
}

/// What [`adders`] found, with how often.
type Seen = BTreeMap<String, u32>;

/// One run that is stopped after `most` executions.
fn part(file: &Path, most: usize, seen: &Arc<Mutex<Seen>>) -> Report {
    let mut builder = Builder::new();
    builder.checkpoint_file = Some(file.to_owned());
    builder.max_permutations = Some(most);
    let seen = seen.clone();
    builder.check(move || {
        adders(|found| {
            dpor::outcome(format_args!("found\n{found}\n"));
            *seen.lock().unwrap().entry(found).or_default() += 1;
        });
    })
}

#[test]
fn an_exploration_in_parts_is_the_same_as_one_in_a_piece() {
    let file = Scratch::new("parts");
    let whole = Arc::new(Mutex::new(Seen::new()));
    let piece = part(&file.0, usize::MAX, &whole);
    assert_eq!(piece.verdict, Verdict::Complete);
    assert!(!piece.to_string().contains("since"), "{piece}");
    for most in [1, 10, 97] {
        let seen = Arc::new(Mutex::new(Seen::new()));
        let last = loop {
            let report = part(&file.0, most, &seen);
            if report.complete {
                break report;
            }
            assert_eq!(report.verdict, Verdict::Stopped(Limit::Permutations(most)));
            assert!(file.0.exists(), "a limit leaves a checkpoint");
        };
        assert_eq!(*seen.lock().unwrap(), *whole.lock().unwrap());
        assert_eq!(
            (last.executions, last.events),
            (piece.executions, piece.events)
        );
        assert_eq!(last.outcomes, piece.outcomes);
        assert_eq!(last.outcomes.len() as u64, piece.executions);
        assert_eq!(last.estimate, Some(piece.executions as f64));
        assert!(!file.0.exists(), "the end leaves none");
        // The time is that of the last part alone.
        let told = last.to_string();
        let before = (piece.executions as usize - 1) / most * most;
        let since = format!(
            " s since it was taken up behind {before} executions; no weak behaviour is possible"
        );
        assert!(told.ends_with(&since), "{told}");
    }
}

#[test]
fn what_closures_return_is_counted_without_a_checkpoint() {
    let file = Scratch::new("returned");
    part(&file.0, 10, &Arc::default());
    let before = std::fs::read(&file.0).expect("it was stopped");
    let mut builder = Builder::new();
    builder.checkpoint_file = Some(file.0.clone());
    builder.checkpoint_interval = 1;
    let outcomes = builder.outcomes(|| adders(|_| {}));
    assert_eq!(outcomes, BTreeMap::from([((), 342)]));
    assert_eq!(std::fs::read(&file.0).expect("it is still there"), before);
}

#[test]
fn the_end_of_a_marked_test_leaves_no_checkpoint() {
    let file = Scratch::new("marked");
    let mut builder = Builder::new();
    builder.checkpoint_file = Some(file.0.clone());
    builder.checkpoint_interval = 1;
    let report = builder.check(|| {
        let shared = Arc::new(AtomicUsize::new(0));
        let theirs = shared.clone();
        let other = thread::spawn(move || theirs.fetch_add(1, SeqCst));
        shared.fetch_add(1, SeqCst);
        other.join().unwrap();
        dpor::stop_exploring();
        shared.fetch_add(1, SeqCst);
    });
    assert_eq!((report.executions, report.verdict), (2, Verdict::Marked));
    assert!(!file.0.exists(), "nothing is left to explore");
}

/// What a panic says.
fn refusal(run: impl FnOnce() -> Report) -> String {
    let payload = catch_unwind(AssertUnwindSafe(run)).expect_err("refused");
    *payload.downcast::<String>().expect("a sentence")
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_is_explored() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no such directory/x");
    let seen = Arc::new(Mutex::new(Seen::new()));
    let told = refusal(|| part(&file, 5, &seen));
    let expected = format!(
        "the checkpoint {} (DPOR_CHECKPOINT_FILE) cannot be written: ",
        file.display()
    );
    assert!(told.starts_with(&expected), "{told}");
    assert!(seen.lock().unwrap().is_empty());
}

#[test]
fn every_damage_is_noticed() {
    let file = Scratch::new("damage");
    let seen = Arc::new(Mutex::new(Seen::new()));
    part(&file.0, 5, &seen);
    let bytes = std::fs::read(&file.0).unwrap();
    let file = file.0.as_path();
    let name = file.display();
    let expected = format!(
        "the checkpoint {name} (DPOR_CHECKPOINT_FILE) is damaged; remove the file to start anew"
    );
    let check = |damaged: &[u8], expected: &str| {
        std::fs::write(file, damaged).unwrap();
        assert_eq!(refusal(|| part(file, 5, &seen)), expected);
    };
    // It may be a file of the user's, which is not to be removed.
    let none = format!(
        "the file {name} (DPOR_CHECKPOINT_FILE) is no checkpoint of dpor's, and stays as it is; name another one"
    );
    for at in (0..bytes.len()).step_by(7) {
        check(&bytes[..at], &expected);
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        let begins = at < "dpor checkpoint ".len();
        check(&flipped, if begins { &none } else { &expected });
    }
    check(b"[package]\nname = \"queue\"\n", &none);
    assert!(file.exists());
}

#[test]
fn a_file_of_an_older_format_is_refused_by_its_number() {
    let file = Scratch::new("older");
    let mut bytes = b"dpor checkpoint 13\nversion\ntest\n".to_vec();
    let step = |sum: u64, &byte: &u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    bytes.extend(sum.to_le_bytes());
    std::fs::write(&file.0, bytes).unwrap();
    let told = refusal(|| part(&file.0, 5, &Arc::default()));
    let expected = format!(
        "the checkpoint {} (DPOR_CHECKPOINT_FILE) has the format 13, and this version of dpor reads the format 18; \
         remove the file to start anew",
        file.0.display()
    );
    assert_eq!(told, expected);
}

#[test]
fn a_checkpoint_of_another_test_or_setting_is_refused() {
    let file = Scratch::new("foreign");
    let seen = Arc::new(Mutex::new(Seen::new()));
    part(&file.0, 5, &seen);
    let mut builder = Builder::new();
    builder.checkpoint_file = Some(file.0.clone());
    let other = std::thread::Builder::new().name("another test".to_owned());
    let text = other.spawn(move || refusal(|| builder.check(|| adders(drop))));
    let text = text.unwrap().join().unwrap();
    assert!(
        text.contains("belongs to another test: `checkpoint::a_checkpoint_of_another"),
        "{text}"
    );
    assert!(
        text.ends_with("name another file for this test, or remove this one to start anew"),
        "{text}"
    );

    let same_place = |spin_bound| {
        let mut builder = Builder::new();
        builder.checkpoint_file = Some(file.0.clone());
        builder.max_permutations = Some(5);
        builder.spin_bound = spin_bound;
        builder.check(|| adders(drop))
    };
    std::fs::remove_file(&file.0).unwrap();
    same_place(1);
    let text = refusal(|| same_place(2));
    assert!(
        text.ends_with(
            " was written with the setting spin_bound 1, and not spin_bound 2; set that again to go on, or remove the \
             file to start anew"
        ),
        "{text}"
    );
}

#[test]
fn a_file_that_another_test_has_at_the_same_time_is_refused() {
    let file = Scratch::new("shared");
    let seen = Arc::new(Mutex::new(Seen::new()));
    let theirs = file.0.clone();
    let mut builder = Builder::new();
    builder.checkpoint_file = Some(file.0.clone());
    let report = builder.check(move || {
        let other = std::thread::Builder::new().name("another test".to_owned());
        let theirs = theirs.clone();
        let text = other.spawn(move || refusal(|| part(&theirs, 5, &Arc::default())));
        let text = text.unwrap().join().unwrap();
        let end = " is that of the test `checkpoint::a_file_that_another_test_has_at_the_same_time_is_refused`, which runs at the \
                   same time; name another file for this test";
        assert!(text.ends_with(end), "{text}");
    });
    assert_eq!(report.executions, 1);
    // Nobody has it any more.
    part(&file.0, 5, &seen);
    assert!(file.0.exists());
}

#[test]
fn a_file_that_another_process_has_written_meanwhile_stays_as_it_is() {
    // At the end of the exploration, and where a limit stops it.
    for most in [usize::MAX, 5] {
        let file = Scratch::new("meanwhile");
        let mut builder = Builder::new();
        builder.checkpoint_file = Some(file.0.clone());
        builder.max_permutations = Some(most);
        let theirs = file.0.clone();
        builder.check(move || {
            adders(drop);
            std::fs::write(&theirs, "of another process").unwrap();
        });
        assert_eq!(
            std::fs::read_to_string(&file.0).unwrap(),
            "of another process"
        );
    }
}

#[test]
fn executions_that_were_not_looked_at_for_leaks_do_not_count_as_looked_at() {
    let file = Scratch::new("leaks");
    let part = |check_leaks: bool, most: usize| {
        let mut builder = Builder::new();
        builder.checkpoint_file = Some(file.0.clone());
        builder.max_permutations = Some(most);
        builder.check_leaks = check_leaks;
        builder.check(|| {
            if dpor::choose(3) == 0 {
                let leaked = Box::leak(Box::new(AtomicUsize::new(0)));
                leaked.store(1, SeqCst);
            }
        })
    };
    assert_eq!(part(false, 1).executions, 1);
    let text = refusal(|| part(true, 9));
    let told = "was written with the setting check_leaks false, and not check_leaks true; ";
    assert!(text.contains(told), "{text}");
}

#[test]
fn an_exploration_that_has_failed_is_not_taken_up_behind_its_failure() {
    for (interval, most) in [(1, 100), (1000, 2)] {
        let file = Scratch::new("failed");
        let part = || {
            let mut builder = Builder::new();
            builder.checkpoint_file = Some(file.0.clone());
            builder.checkpoint_interval = interval;
            builder.max_permutations = Some(most);
            builder.max_failures = 5;
            builder.explore(|| assert_ne!(dpor::choose(4), 1))
        };
        for _ in 0..3 {
            assert_eq!(part().expect_err("it fails").kind(), FailureKind::Panic);
        }
    }
}

/// Not a test of its own: what [`a_checkpoint_of_another_model_of_the_test_is_left_alone`] runs.
#[test]
fn child_with_two_models() {
    let Ok(first) = std::env::var("DPOR_TEST_TWO_MODELS") else {
        return;
    };
    let first = first.parse().expect("a number of executions");
    let explore = |options| {
        move || {
            dpor::choose(options);
        }
    };
    Builder::new().check(explore(first));
    Builder::new().check(explore(3));
}

#[test]
fn a_checkpoint_of_another_model_of_the_test_is_left_alone() {
    let file = Scratch::new("models");
    // What is said by a run of a test with a first model of so many executions, each model stopped after this many.
    let run = |first: &str, most: &str| {
        let output = process_of("checkpoint::child_with_two_models")
            .env("DPOR_TEST_TWO_MODELS", first)
            .env("DPOR_CHECKPOINT_FILE", &file.0)
            .env("DPOR_MAX_PERMUTATIONS", most)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{printed}");
        said.lines()
            .filter(|line| line.contains("DPOR_CHECKPOINT_FILE"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let left_alone = |lines: &[String]| {
        let [line] = lines else {
            panic!("not one line: {lines:?}")
        };
        let start = format!(
            "dpor: the checkpoint {} (DPOR_CHECKPOINT_FILE) is for the model at tests/verdict/checkpoint/mod.rs:",
            file.0.display()
        );
        assert!(line.starts_with(&start), "{line}");
        let end =
            " of this test, and stays as it is; the model at tests/verdict/checkpoint/mod.rs:";
        assert!(line.contains(end), "{line}");
        assert!(
            line.ends_with(" is explored without a checkpoint"),
            "{line}"
        );
    };
    // The first model ends, and the second one leaves a file, which it takes up again.
    assert_eq!(run("1", "1"), Vec::<String>::new());
    let bytes = std::fs::read(&file.0).expect("of the second model");
    left_alone(&run("1", "1"));
    let later = std::fs::read(&file.0).expect("of the second model");
    assert_ne!(later, bytes, "the second model has gone on");
    left_alone(&run("1", "1"));
    assert!(!file.0.exists(), "the second model is explored");
    // The first model leaves a file, which the second one leaves alone.
    left_alone(&run("2", "1"));
    assert!(file.0.exists(), "the first model is not explored");
    assert_eq!(run("2", "9"), Vec::<String>::new());
    assert!(!file.0.exists(), "both models are explored");
}

#[test]
fn a_directory_is_no_file_and_is_not_to_be_removed() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let told = refusal(|| part(directory, 5, &Arc::default()));
    assert_eq!(
        told,
        format!(
            "the checkpoint {} (DPOR_CHECKPOINT_FILE) is a directory, and not a file",
            directory.display()
        )
    );
}

#[cfg(unix)]
#[test]
fn what_has_no_end_is_not_read() {
    let told = refusal(|| part(Path::new("/dev/zero"), 5, &Arc::default()));
    let expected =
        "the checkpoint /dev/zero (DPOR_CHECKPOINT_FILE) is a device or a pipe, and not a file";
    assert_eq!(told, expected);
}

#[test]
fn what_could_not_be_written_to_its_end_does_not_stay() {
    let file = Scratch::new("unfinished");
    let mut builder = Builder::new();
    builder.checkpoint_file = Some(file.0.clone());
    builder.checkpoint_interval = 1;
    builder.max_permutations = Some(5);
    for again in [false, true] {
        let path = file.0.clone();
        builder.check(move || {
            // The file has been taken up, and cannot be put in its place any more.
            if again && path.is_file() {
                std::fs::remove_file(&path).unwrap();
                std::fs::create_dir(&path).unwrap();
            }
            adders(drop);
        });
    }
    let name = file.0.file_name().unwrap().to_str().unwrap().to_owned();
    let there = std::fs::read_dir(file.0.parent().unwrap()).unwrap();
    let there = there.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let there: Vec<String> = there.filter(|it| it.starts_with(&name)).collect();
    std::fs::remove_dir(&file.0).unwrap();
    assert_eq!(there, [name]);
}

#[test]
#[should_panic(
    expected = "can only be kept by the algorithms `optimal` and `parsimonious` without a bound, and not with the algorithm `source` (DPOR_ALGORITHM); unset one of the two"
)]
fn an_algorithm_that_cannot_keep_a_checkpoint_says_so() {
    let mut builder = Builder::new();
    builder.algorithm = Algorithm::Source;
    let file = Scratch::new("source");
    builder.checkpoint_file = Some(file.0.clone());
    builder.check(|| adders(drop));
}

#[test]
fn memory_that_no_other_process_has_a_name_for_is_no_reason_to_fail() {
    let file = Scratch::new("older");
    let older = Arc::new(AtomicUsize::new(0));
    let mut builder = Builder::new();
    builder.checkpoint_file = Some(file.0.clone());
    builder.checkpoint_interval = 1;
    let report = builder.check(move || {
        let mine = older.clone();
        let other = thread::spawn(move || mine.fetch_add(1, SeqCst));
        older.fetch_add(1, SeqCst);
        other.join().unwrap();
    });
    assert_eq!(report.executions, 2);
    assert!(!file.0.exists());
}

#[test]
fn what_a_killed_process_was_writing_is_gone_at_the_end() {
    let file = Scratch::new("torn");
    // No process has such a number.
    let beside = file.0.with_extension("999999999.new");
    let others = [file.0.with_extension("x.new"), file.0.with_extension("new")];
    for path in [&beside, &others[0], &others[1]] {
        std::fs::write(path, "dpor check").unwrap();
    }
    let report = part(&file.0, usize::MAX, &Arc::default());
    assert_eq!(report.verdict, Verdict::Complete);
    assert!(!beside.exists());
    for path in others {
        std::fs::remove_file(path).expect("not what dpor writes");
    }
}

#[test]
fn a_wait_that_was_let_go_is_let_go_again_although_others_have_not_begun() {
    let file = Scratch::new("let-go");
    let mut builder = Builder::new();
    // Otherwise the first one waits with its look, and only the second one is let go.
    builder.await_loops = Some(false);
    builder.checkpoint_file = Some(file.0.clone());
    builder.max_permutations = Some(1);
    let run = || {
        builder.check(|| {
            let shared = (dpor::sync::Mutex::new(()), [0, 0].map(AtomicUsize::new));
            let shared = Arc::new(shared);
            let [one, other, third] = [0; 3].map(|_| shared.clone());
            let held = shared.0.lock().unwrap();
            let one = thread::spawn(move || {
                while one.1[0].load(SeqCst) == 0 {
                    dpor::hint::spin_loop();
                }
            });
            let other = thread::spawn(move || {
                for _ in 0..5 {
                    other.1[1].load(SeqCst);
                    dpor::hint::spin_loop();
                }
                other.1[0].store(1, SeqCst);
            });
            // The two go on in vain only because this one begins with what it has to wait for.
            let third = thread::spawn(move || drop(third.0.lock().unwrap()));
            one.join().unwrap();
            drop(held);
            third.join().unwrap();
            other.join().unwrap();
        })
    };
    let first = run();
    assert_eq!(first.verdict, Verdict::Stopped(Limit::Permutations(1)));
    let last = run();
    // The second one gives up.
    assert_eq!((last.executions, last.verdict), (2, Verdict::Waits(5)));
}

#[cfg(unix)]
#[test]
fn what_a_killed_process_was_writing_is_gone_from_the_next_run_on_and_what_a_living_one_writes_stays()
 {
    let file = Scratch::new("torn-before");
    let torn = file.0.with_extension("999999999.new");
    // The number may have been another process's before.
    let own = file.0.with_extension(format!("{}.new", std::process::id()));
    let parent = std::os::unix::process::parent_id();
    let living = file.0.with_extension(format!("{parent}.new"));
    for path in [&torn, &own, &living] {
        std::fs::write(path, "dpor check").unwrap();
    }
    // It is far from its end.
    let report = part(&file.0, 1, &Arc::default());
    assert_eq!(report.executions, 1);
    assert!(!torn.exists() && !own.exists());
    assert!(living.exists());
    assert!(part(&file.0, usize::MAX, &Arc::default()).executions > 1);
    std::fs::remove_file(living).expect("another one's");
}
