//! What the workers explore: this program is the one that they run.

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use dpor::thread;

/// Each thread loads and stores what it has loaded and one more.
fn lost_update(threads: usize) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let all: Vec<_> = (0..threads)
        .map(|_| {
            let count = count.clone();
            thread::spawn(move || count.store(count.load(SeqCst) + 1, SeqCst))
        })
        .collect();
    all.into_iter().for_each(|it| it.join().unwrap());
    count.load(SeqCst)
}

pub(crate) fn counts() {
    dpor::outcome(lost_update(4));
}

pub(crate) fn fails() {
    assert_ne!(lost_update(4), 1, "each thread has loaded 0");
}

pub(crate) fn crashes() {
    if lost_update(4) == 1 {
        std::process::abort();
    }
}

pub(crate) fn settings() -> dpor::Builder {
    let mut settings = dpor::Builder::new();
    settings.progress = Some(false);
    settings
}

macro_rules! explored_by_workers {
    ($($name:ident)*) => { mod explored { $(
        #[test]
        #[ignore = "for a worker"]
        fn $name() {
            let _ = super::settings().check(super::$name);
        }
    )* } };
}

explored_by_workers! { counts fails crashes }
