//! Do the types behave like those of std where there is no model?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex};
use dpor::thread;

#[test]
fn outside_of_a_model_the_shims_are_those_of_std() {
    let total = Arc::new((Mutex::new(0), AtomicUsize::new(0)));
    let handles: Vec<_> = (0..4)
        .map(|_| {
            let total = total.clone();
            thread::spawn(move || {
                for _ in 0..100 {
                    *total.0.lock().unwrap() += 1;
                    total.1.fetch_add(1, SeqCst);
                }
            })
        })
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
    assert_eq!(*total.0.lock().unwrap(), 400);
    assert_eq!(total.1.load(SeqCst), 400);
    let panicked = thread::spawn(|| panic!("seen by join")).join();
    assert!(panicked.is_err());
}
