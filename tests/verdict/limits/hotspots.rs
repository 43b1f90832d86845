//! How many executions would a stopped search still have had, and what costs the most of them?

use std::time::Duration;

use dpor::sync::mpsc;
use dpor::{Builder, Hotspot, thread};

use super::{lost_update, printed};

#[test]
fn a_search_that_is_stopped_estimates_the_rest_and_names_what_costs_most() {
    let mut builder = Builder::new();
    let full = builder.check(lost_update);
    assert_eq!(full.estimate, Some(36.0));
    let booked: u64 = full.hotspots.iter().map(|hotspot| hotspot.executions).sum();
    assert_eq!(
        booked, 35,
        "every execution but the first: {:?}",
        full.hotspots
    );
    builder.max_permutations = Some(20);
    let stopped = builder.check(lost_update);
    let estimate = stopped.estimate.expect("planned executions are known");
    assert!((20.0..72.0).contains(&estimate), "{estimate}");
    for hotspot in &stopped.hotspots {
        assert!(
            hotspot.place().starts_with("tests/verdict/limits/mod.rs:"),
            "{hotspot:?}"
        );
        assert_eq!(hotspot.object().as_deref(), Some("x"), "{hotspot:?}");
    }
}

#[test]
fn an_estimate_that_leaves_nothing_although_something_is_left_is_none() {
    // Whoever looks a step further finds out only then that there is another one.
    let mut builder = Builder::new();
    builder.max_permutations = Some(1000);
    let report = builder.check(|| while dpor::any::<bool>() {});
    assert_eq!(report.estimate, None);
}

/// Not a test of its own: what [`no_total_is_told_that_is_no_more_than_what_was_executed`] runs.
#[test]
fn child_that_always_finds_another_execution() {
    if std::env::var_os("DPOR_TEST_FINDS").is_some() {
        Builder::new().check(|| while dpor::any::<bool>() {});
    }
}

#[test]
fn no_total_is_told_that_is_no_more_than_what_was_executed() {
    let variables = [("DPOR_TEST_FINDS", "1"), ("DPOR_MAX_PERMUTATIONS", "1000")];
    let text = printed(
        "limits::hotspots::child_that_always_finds_another_execution",
        &variables,
    );
    assert!(text.contains(": 1000 executions, "), "{text}");
    assert!(!text.contains(" in all"), "{text}");
}

#[test]
fn what_costs_most_is_at_no_place_of_the_crate_itself() {
    let report = Builder::new().check(|| {
        let (sender, receiver) = mpsc::channel();
        let other = thread::spawn(move || sender.send(1).unwrap());
        while receiver.recv_timeout(Duration::from_secs(1)).is_err() {}
        other.join().unwrap();
    });
    let places: Vec<_> = report.hotspots.iter().map(Hotspot::place).collect();
    let known = |place: &String| {
        place.starts_with("tests/verdict/limits/hotspots.rs:") || place == "in a drop"
    };
    assert!(places.iter().all(known), "{places:?}");
    assert!(places.contains(&"in a drop".to_owned()), "{places:?}");
}
