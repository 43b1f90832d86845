//! Is every written schedule read back unchanged, and is every other text refused?

use crate::rt::event::mix::{STEP, mix};
use crate::rt::event::schedule::*;

#[test]
fn a_schedule_reads_back_as_it_was_written() {
    let text = "v2 main*4 main.1*0 main.1 main.2:1 main.2 main main.3*0 main.3*0";
    let schedule = Schedule::parse(text).expect("well formed");
    assert_eq!(schedule.length(), 8);
    assert!(!schedule.has_ends());
    assert_eq!(schedule.to_string(), text);
    for marks in ["ends", "soon", "ends soon", "fair", "ends soon fair"] {
        let text = format!("v2 {marks} main*4 main.1");
        let schedule = Schedule::parse(&text).expect("well formed");
        assert_eq!(schedule.length(), 5);
        assert_eq!(schedule.has_ends(), marks.contains("ends"));
        assert_eq!(schedule.waits_soon(), marks.contains("soon"));
        assert_eq!(schedule.is_fair(), marks.contains("fair"));
        assert_eq!(schedule.to_string(), text);
    }
}

#[test]
fn the_spurious_behaviour_that_a_schedule_needs_is_read_back() {
    for (marks, wakes, fails) in [
        ("wakes", 1, false),
        ("wakes*3", 3, false),
        ("fails", 0, true),
        ("c11 ends soon fair wakes*2 fails guarded", 2, true),
        ("fails writers", 0, true),
        ("writers again", 0, false),
        ("again guarded", 0, false),
    ] {
        let text = format!("v2 {marks} main*4 main.1:1");
        let schedule = Schedule::parse(&text).expect("well formed");
        assert_eq!((schedule.wakes(), schedule.fails()), (wakes, fails));
        assert_eq!(schedule.writers_first(), marks.contains("writers"));
        assert_eq!(schedule.blocks_again(), marks.contains("again"));
        assert_eq!(schedule.to_string(), text);
    }
    let once = Schedule::parse("v2 wakes*1 main").expect("well formed");
    assert_eq!(once.to_string(), "v2 wakes main");
    for text in ["wakes*0", "wakes*", "wakes2", "wakes*-1", "fails*2"] {
        let text = format!("v2 {text} main");
        let error = Schedule::parse(&text).expect_err("malformed");
        assert!(error.starts_with("at byte 3"), "{error}");
    }
}

#[test]
fn who_is_held_up_is_read_back() {
    let text = "v2 ends soon held main.1*1 main*4 main.1*2";
    let schedule = Schedule::parse(text).expect("well formed");
    let held = Hold {
        path: "main.1".to_owned(),
        events: 1,
    };
    assert_eq!(schedule.held(), Some(&held));
    assert_eq!(schedule.length(), 6);
    assert_eq!(schedule.to_string(), text);
    let once = Schedule::parse("v2 held main.1 main").expect("well formed");
    assert_eq!(once.to_string(), "v2 held main.1*1 main");
}

#[test]
fn a_schedule_is_followed_step_by_step() {
    let schedule = Schedule::parse("v2 main*2 main.1:1 main.1:1").expect("well formed");
    let mut at = Cursor::default();
    let mut steps = Vec::new();
    while let Some((path, alternative)) = schedule.step(at) {
        steps.push((path.to_owned(), alternative));
        at = schedule.behind(at);
        assert_eq!(at.position, steps.len() as u64);
    }
    let expected = [("main", 0), ("main", 0), ("main.1", 1), ("main.1", 1)];
    assert_eq!(steps, expected.map(|(path, it)| (path.to_owned(), it)));
    assert_eq!(schedule.length(), 4);
    let again = steps.into_iter().collect::<Schedule>();
    assert_eq!(again.to_string(), schedule.to_string());
}

/// The steps of a schedule, with the beginnings of threads in between.
fn followed(schedule: &Schedule) -> Vec<(String, u32, bool)> {
    let mut at = Cursor::default();
    let mut steps = Vec::new();
    while let Some((path, alternative)) = schedule.step(at) {
        let begins = schedule.beginning(at).is_some();
        steps.push((path.to_owned(), alternative, begins));
        at = schedule.behind(at);
    }
    assert_eq!(at.position, schedule.length());
    steps
}

#[test]
fn what_threads_do_in_turn_again_and_again_is_told_once() {
    let mut schedule = Schedule::default();
    let mut add = |path: &str, times| (0..times).for_each(|_| schedule.step_of(path.into(), 0));
    add("main", 3);
    for round in 0..1000 {
        add("main.1", 3);
        add("main", 2);
        if round == 500 {
            add("main.2", 1);
        }
    }
    add("main.1", 4);
    let text = schedule.to_string();
    let rounds = "v2 main*3 (main.1*3 main*2)*501 main.2 (main.1*3 main*2)*499 main.1*4";
    assert_eq!(text, rounds);
    let read = Schedule::parse(&text).expect("well formed");
    assert_eq!(followed(&read), followed(&schedule));
    assert_eq!(read.to_string(), text);
    // The first step of a round, and the first step behind the last round, do not belong to the run
    // before.
    let text = "v2 main (main main.1)*2 main.1 (main*2)*3 main main.1*0 (main.1 main.2*0)*2";
    let read = Schedule::parse(text).expect("well formed");
    let steps = followed(&read)
        .into_iter()
        .map(|(path, _, begins)| if !begins { path } else { format!("{path}*0") });
    let expected = "main main main.1 main main.1 main.1 main main main main main main main \
                    main.1*0 main.1 main.2*0 main.1 main.2*0";
    assert_eq!(steps.collect::<Vec<String>>().join(" "), expected);
    assert_eq!(read.to_string(), text);
}

#[test]
fn a_random_schedule_reads_back_step_by_step() {
    for seed in 0..2000 {
        let mut random: u64 = seed;
        let mut draw = |n: usize| {
            random = random.wrapping_add(STEP);
            mix(random) as usize % n
        };
        let mut schedule = Schedule::default();
        for _ in 0..draw(4) + 1 {
            let round: Vec<usize> = (0..draw(4) + 1).map(|_| draw(4)).collect();
            for _ in 0..draw(5) {
                for &step in &round {
                    let path = ["main", "main.1", "main.2"][step % 3].to_owned();
                    match (step, draw(20)) {
                        (3, 0) => schedule.begin(path),
                        _ => schedule.step_of(path, (step == 1) as u32),
                    }
                }
            }
        }
        let text = schedule.to_string();
        let read = Schedule::parse(&text).expect(&text);
        assert_eq!(followed(&read), followed(&schedule), "{text}");
        assert_eq!(read.to_string(), text);
    }
}

#[test]
fn a_schedule_of_billions_of_steps_takes_no_more_memory_than_its_text() {
    let text = "v2 main*4294967295 main.1 main*4294967295";
    let schedule = Schedule::parse(text).expect("well formed");
    assert_eq!(schedule.runs.len(), 3);
    assert_eq!(schedule.length(), 2 * u64::from(u32::MAX) + 1);
    assert_eq!(schedule.to_string(), text);
    let text = "v2 (main*4294967295 main.1)*4294967295 main";
    let schedule = Schedule::parse(text).expect("well formed");
    assert_eq!(schedule.runs.len(), 3);
    assert_eq!(schedule.length(), (1 << 32) * u64::from(u32::MAX) + 1);
    assert_eq!(schedule.to_string(), text);
}

#[test]
fn a_malformed_schedule_is_refused_with_the_position_and_what_was_expected() {
    for (text, expected) in [
        (
            "main*4",
            "a schedule begins with its version, `v2`; at byte 0",
        ),
        (
            "v2 main*x",
            "at byte 3, in `main*x`: expected a number of steps after `*`, found `x`",
        ),
        ("v2 main*+4", "expected a number of steps after `*`"),
        (
            "v2 main*18446744073709551615",
            "expected a number of steps after `*`, which is at most 4294967295, found",
        ),
        (
            "v2main*4",
            "a schedule begins with its version, `v2`; at byte 0 there is `v2main*4`",
        ),
        (
            "v2 main.0",
            "at byte 3: expected a thread such as `main` or `main.1.2`, found `main.0`",
        ),
        (
            "v2 main rain",
            "at byte 8: expected a thread such as `main` or `main.1.2`, found `rain`",
        ),
        (
            "v2 main:",
            "at byte 3, in `main:`: expected the number of an outcome",
        ),
        (
            "v2 (main main.1)",
            "at byte 9, in `main.1)`: expected `*` and a number of rounds after `)`, found ``",
        ),
        (
            "v2 (main main.1)*0",
            "at byte 9, in `main.1)*0`: expected `*` and a number of rounds, from 1, after `)`",
        ),
        (
            "v2 (main main.1)3",
            "at byte 9, in `main.1)3`: expected `*` and a number of rounds, from 1, after `)`",
        ),
        (
            "v2 (main main.1)*x",
            "at byte 9, in `main.1)*x`: expected a number of rounds after `)*`, found `x`",
        ),
        ("v2 (main main.1", "at byte 3: there is no `)` to this `(`"),
        (
            "v2 main main.1)*2",
            "at byte 8, in `main.1)*2`: there is no `(` to this `)`",
        ),
        (
            "v2 (main (main.1 main)*2)*2",
            "at byte 9: the `(` at byte 3 is still open, and rounds have no rounds in them",
        ),
        (
            "v2 main (main.1*0)*9",
            "at byte 8: no step is made in the rounds that end here",
        ),
        ("v2 held", "at byte 7: expected a thread and how many steps"),
        (
            "v2 held main.1*0 main",
            "at byte 8: expected a thread and how many steps it makes before it is held up, such as `main.1*3`, after \
             `held`, found `main.1*0`",
        ),
        ("v2 held main:1", "found `main:1`"),
        ("v2 held (main main)*2", "found `(main`"),
        (
            "v2 ()*3",
            "at byte 3: expected a thread such as `main` or `main.1.2`, found ``",
        ),
    ] {
        let error = Schedule::parse(text).expect_err(text);
        assert!(error.contains(expected), "{error}");
    }
}
