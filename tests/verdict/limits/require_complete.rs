//! Does an exploration fail that is not complete, if the test asks for that?

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Algorithm, Builder, FailureKind, thread};

use super::children::process_of;
use super::lost_update;

/// A change of the settings.
type Change = fn(&mut Builder);

/// The setting, and the changes that a test makes.
fn requiring(set: impl FnOnce(&mut Builder)) -> Builder {
    let mut builder = Builder::new();
    builder.require_complete = true;
    set(&mut builder);
    builder
}

/// The reason for which the exploration of `f` with these settings fails.
fn lacking(set: impl FnOnce(&mut Builder), f: fn()) -> String {
    let builder = requiring(set);
    let failure = builder.explore(f).expect_err("it is not complete");
    assert_eq!(failure.kind(), FailureKind::Incomplete);
    assert_eq!((failure.schedule(), failure.events().len()), ("", 0));
    assert!(failure.json().contains("\"kind\":\"incomplete\""));
    let text = failure.to_string();
    // `check` panics with the same sentence.
    let checked = catch_unwind(AssertUnwindSafe(|| builder.check(f)));
    let told = checked.expect_err("it is not complete");
    let told = told.downcast_ref::<String>().expect("a sentence").clone();
    // A limit of the machine and a seed differ from run to run, and these tests set neither.
    assert_eq!(told, text);
    text
}

const ASKS: &str =
    "the model was not explored in full, as require_complete (DPOR_REQUIRE_COMPLETE) asks: ";

#[test]
fn a_complete_exploration_passes_and_so_does_a_replay() {
    let report = requiring(|_| ()).check(lost_update);
    assert!(report.complete);
    let replayed = requiring(|builder| builder.replay = Some("v2 main*4".to_owned()));
    assert!(!replayed.check(lost_update).complete);
}

#[test]
fn an_exploration_that_a_limit_or_a_bound_cut_short_fails_with_its_name_and_its_value() {
    let cut: [(Change, &str); 5] = [
        (
            |it| it.max_permutations = Some(35),
            "stopped by max_permutations = 35 (DPOR_MAX_PERMUTATIONS); raise that limit, or leave it out",
        ),
        (
            |it| it.max_memory = Some(100),
            "stopped by max_memory = 100 bytes (DPOR_MAX_MEMORY); raise that limit, or leave it out",
        ),
        (
            |it| (it.algorithm, it.preemption_bound) = (Algorithm::Bounded, Some(0)),
            "bounded by preemption_bound = 0 (DPOR_MAX_PREEMPTIONS); raise that bound, or leave it out",
        ),
        (
            |it| (it.algorithm, it.delay_bound) = (Algorithm::Bounded, Some(1)),
            "bounded by delay_bound = 1 (DPOR_MAX_DELAYS); raise that bound, or leave it out",
        ),
        (
            |it| (it.algorithm, it.seed) = (Algorithm::Random, Some(7)),
            "sampled with seed 7 (DPOR_SEED); an algorithm that draws nothing by chance, such as `optimal` \
             (DPOR_ALGORITHM), explores every trace",
        ),
    ];
    for (set, why) in cut {
        assert_eq!(lacking(set, lost_update), format!("{ASKS}{why}"));
    }
    // A bound that leaves nothing out is none.
    assert!(
        requiring(|it| it.preemption_bound = Some(9))
            .check(lost_update)
            .complete
    );
}

#[test]
fn a_part_that_the_test_or_a_loop_leaves_out_is_named_with_the_way_to_explore_it() {
    let excluded = lacking(
        |_| (),
        || {
            dpor::stop_exploring();
            lost_update();
        },
    );
    let why = "explored only where the test does not say otherwise; let the test explore everything, without \
               `stop_exploring`, `skip_branch` and `expect_explicit_explore`";
    assert_eq!(excluded, format!("{ASKS}{why}"));
    fn gives_up() {
        let set = Arc::new(AtomicUsize::new(0));
        let theirs = set.clone();
        let other = thread::spawn(move || theirs.store(1, SeqCst));
        for _ in 0..5 {
            if set.load(SeqCst) == 1 {
                break;
            }
            dpor::hint::spin_loop();
        }
        other.join().unwrap();
    }
    let why = lacking(|_| (), gives_up);
    let remedy = "; `Builder::spin_bound` = 4 (DPOR_SPIN_BOUND=4) explores it in full";
    assert!(why.starts_with(ASKS) && why.ends_with(remedy), "{why}");
    assert!(requiring(|it| it.spin_bound = 4).check(gives_up).complete);
}

#[test]
fn a_model_of_which_no_execution_ends_fails() {
    let nothing = "no execution came to its end, so nothing was tested: ";
    assert_eq!(
        lacking(|_| (), || dpor::assume(false)),
        format!("{nothing}all were given up by `assume(false)`")
    );
    assert_eq!(
        lacking(|it| it.max_duration = Some(Duration::from_nanos(1)), || ()),
        format!("{nothing}raise max_duration = 0.000000001 s (DPOR_MAX_DURATION)")
    );
}

#[test]
fn what_a_checkpoint_keeps_is_named() {
    let file = std::env::temp_dir().join(format!("dpor-require-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let builder = requiring(|it| {
        it.checkpoint_file = Some(file.clone());
        it.max_permutations = Some(20);
    });
    // The file is for the model at one place.
    let mut runs = (0..2).map(|_| builder.explore(lost_update));
    let failure = runs.next().expect("the first").expect_err("16 are left");
    let kept = format!(
        "; the checkpoint {} (DPOR_CHECKPOINT_FILE) holds what is left, if it can be kept; the same test goes on from there",
        file.display()
    );
    assert!(failure.to_string().ends_with(&kept), "{failure}");
    let report = runs.next().expect("the second").expect("the rest");
    assert_eq!((report.executions, report.complete), (36, true));
    assert!(!file.exists());
}

/// Not a test of its own: what [`the_variable_asks_for_it_too`] runs.
#[test]
fn child_that_may_be_cut_short() {
    Builder::new().check(lost_update);
}

#[test]
fn the_variable_asks_for_it_too() {
    let run = |required, most| {
        let child = process_of("limits::require_complete::child_that_may_be_cut_short")
            .env("DPOR_REQUIRE_COMPLETE", required)
            .env("DPOR_MAX_PERMUTATIONS", most)
            .output()
            .unwrap();
        let told = String::from_utf8(child.stdout).unwrap();
        let why = "require_complete (DPOR_REQUIRE_COMPLETE) asks: stopped by max_permutations = 35";
        assert_eq!(told.contains(why), !child.status.success(), "{told}");
        child.status.success()
    };
    assert!(run("0", "35") && run("1", "36"));
    assert!(!run("1", "35"));
}
