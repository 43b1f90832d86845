//! Does a thread have the stack that it asks for?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, thread};

use super::count;

#[test]
fn a_thread_has_the_stack_that_it_asks_for() {
    fn spawn(bytes: Option<usize>, x: &Arc<AtomicUsize>) -> thread::JoinHandle<usize> {
        let x = x.clone();
        let mut builder = thread::Builder::new();
        if let Some(bytes) = bytes {
            builder = builder.stack_size(bytes);
        }
        let body = move || {
            // More than threads have that ask for nothing.
            let mut room = [0_u8; 300 << 10];
            std::hint::black_box(&mut room);
            x.fetch_add(room.len(), SeqCst)
        };
        builder.spawn(body).expect("there is memory")
    }
    let x = || Arc::new(AtomicUsize::new(0));
    // In each execution anew, and side by side with others.
    let traces = count(move || {
        let x = x();
        let large = [1 << 20, (1 << 20) - 1, 2 << 20].map(|bytes| spawn(Some(bytes), &x));
        let small = thread::Builder::new().stack_size(1).spawn(|| 1).unwrap();
        assert_eq!(small.join().unwrap(), 1);
        for thread in large {
            thread.join().unwrap();
        }
        assert_eq!(x.load(SeqCst), 3 * (300 << 10));
    });
    assert_eq!(traces, 6);
    let failure = Builder::new().explore(move || {
        spawn(None, &x()).join().unwrap();
    });
    let text = failure.expect_err("it overflows").to_string();
    assert!(text.contains("stack overflow: main.1"), "{text}");
    let raise =
        "raise `Builder::stack_size` = 262144 (DPOR_STACK_SIZE, in bytes), or the thread's own";
    assert!(text.contains(raise), "{text}");
}
