//! What does a step by the public calls cost, beside one of the interpreter of the core's tests?
//!
//! Each test makes the same events in its way. The number of instructions is that of
//!
//! ```sh
//! cargo test --lib --no-run
//! valgrind --tool=callgrind target/debug/deps/dpor-* --exact engine::tests::cost::by_public_calls
//! valgrind --tool=callgrind target/debug/deps/dpor-* --exact engine::tests::cost::inside
//! ```

use crate::config::Builder;
use crate::engine::tests::client::{engine, explore, of_words};
use crate::engine::tests::random::relation;
use crate::rt::engine::TieBreak;
use crate::rt::engine::testing::programs::{lost_update, readers};
use crate::rt::engine::testing::{Program, driver, explorer, run};

fn programs() -> [(Program, u64); 2] {
    [
        (of_words(lost_update(4)), 576),
        (of_words(readers(12)), 4096),
    ]
}

/// Events of both programs: the threads make 8 and 25, and 4 and 13 spawns come before.
const EVENTS: u64 = 576 * 12 + 4096 * 38;

#[test]
fn by_public_calls() {
    let mut events = 0;
    for (program, traces) in programs() {
        let mut engine = engine(&program, &Builder::new(), &relation());
        let found = explore(&program, &mut engine, false);
        assert_eq!(found.executions, traces);
        events += engine.driver.stats.events;
    }
    assert_eq!(events, EVENTS);
}

#[test]
fn inside() {
    let mut events = 0;
    for (program, traces) in programs() {
        let mut driver = driver(&program, explorer("optimal", TieBreak::Last));
        while run(&program, &mut driver).is_some() {}
        assert_eq!(driver.stats.complete, traces);
        events += driver.stats.events;
    }
    assert_eq!(events, EVENTS);
}
