//! Does a parked thread go on when it gets its token, and when its time is over?

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicBool;
use dpor::thread;

use super::set;

#[test]
fn a_parked_thread_takes_its_token_or_the_time_is_over() {
    let seen = set(|| {
        let main = thread::current();
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let other = thread::spawn(move || {
            theirs.store(true, SeqCst);
            main.unpark();
        });
        thread::park_timeout(Duration::from_secs(1));
        let seen = flag.load(SeqCst);
        other.join().unwrap();
        seen
    });
    assert_eq!(seen, [false, true]);
}
