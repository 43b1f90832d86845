//! Does an exploration return the stacks that it has used?

use std::panic::Location;
use std::sync::atomic::Ordering::SeqCst;

use crate::rt::engine::TieBreak;
use crate::rt::engine::driver::Bounds;
use crate::rt::engine::strategies::optimal::Optimal;
use crate::rt::event::weakened::Weakened;
use crate::rt::exec::suppressed_races::InOrder;
use crate::rt::heap::MustFree;
use crate::rt::object::machine::Limits;
use crate::rt::statics::rooted::Rooted;
use crate::sync::atomic::AtomicUsize;

use super::*;

/// Explores `body` on stacks of this pool; returns the number of executions.
fn explored(body: impl Fn() + Send + Sync + 'static, pool: &mut Pool) -> u64 {
    let explorer = Optimal::new(TieBreak::Last);
    let driver = PooledDriver::new(explorer, Limits::default(), Bounds::default());
    let settings = Settings {
        patience: None,
        site: Location::caller(),
        must_free: MustFree::Found,
        statics: Rooted::Stays,
        watch: None,
        callers: false,
        weakened: Weakened::default(),
        replay: |schedule, _, _| schedule.to_owned(),
        nth: 1,
        report: |_| String::new(),
        is_shared: false,
        in_order: InOrder::These(Vec::new()),
    };
    match explore(&body, driver, pool, settings, |_| true) {
        Explored::Passed(driver) => driver.stats.complete,
        Explored::Failed(found) => panic!("it fails: {:?}", found.end),
    }
}

#[test]
fn a_stack_that_has_had_an_object_on_it_is_there_for_the_next_exploration() {
    let mut pool = stacks(64 * 1024);
    let body = || {
        AtomicUsize::new(0).fetch_add(1, SeqCst);
    };
    let idle = [(); 2].map(|()| {
        assert_eq!(explored(body, &mut pool), 1);
        pool.idle()
    });
    // The pool may have taken some more of the stacks that are kept.
    assert!(idle[0] > 0 && idle[0] == idle[1], "{idle:?}");
}
