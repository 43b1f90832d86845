//! Do threads of the system share a value outside of a model?

use std::sync::atomic::AtomicUsize as StdUsize;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use pretty_assertions::assert_eq;

use super::Seen;

#[test]
fn outside_of_a_model_threads_of_the_system_share_a_value() {
    static DROPPED: StdUsize = StdUsize::new(0);
    let shared = Arc::new((Seen(&DROPPED), StdUsize::new(0)));
    let weak = Arc::downgrade(&shared);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let shared = shared.clone();
            let weak = weak.clone();
            std::thread::spawn(move || {
                for _ in 0..10_000 {
                    let clone = weak.upgrade().expect("the thread has a reference");
                    clone.1.fetch_add(1, SeqCst);
                    let weak = Arc::downgrade(&clone);
                    drop((clone, weak));
                }
                drop(shared);
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(shared.1.load(SeqCst), 40_000);
    assert_eq!(
        (Arc::strong_count(&shared), Arc::weak_count(&shared)),
        (1, 1)
    );
    drop(shared);
    assert_eq!(DROPPED.load(SeqCst), 1);
    assert!(weak.upgrade().is_none());
    assert_eq!(weak.weak_count(), 0);
}

#[test]
fn outside_of_a_model_one_thread_of_the_system_gets_the_value() {
    for _ in 0..500 {
        let shared = Arc::new(String::from("value"));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let shared = shared.clone();
                std::thread::spawn(move || Arc::into_inner(shared))
            })
            .collect();
        let mine = Arc::into_inner(shared).is_some() as usize;
        let theirs = threads
            .into_iter()
            .filter_map(|thread| thread.join().unwrap())
            .count();
        assert_eq!(mine + theirs, 1);
    }
}
