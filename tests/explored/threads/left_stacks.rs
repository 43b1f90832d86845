//! Is a stack that another OS thread has left as good as a new one?

use std::sync::Barrier;

use dpor::thread;

use super::count;

/// So many threads that are there at the same time: each waits for one that it has spawned.
fn nested(threads: usize) {
    if threads > 0 {
        thread::spawn(move || nested(threads - 1)).join().unwrap();
    }
}

#[test]
fn a_stack_that_another_os_thread_has_left_ends_a_thread_of_this_one() {
    // More than stay with the OS thread that made them.
    let model = || count(|| nested(12));
    // The one that has left them lives on, so what it has for itself is not the other one's.
    let (left, taken) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let executions = model();
            left.wait();
            taken.wait();
            executions
        });
        left.wait();
        let second = scope.spawn(model).join();
        taken.wait();
        assert_eq!((first.join().unwrap(), second.unwrap()), (1, 1));
    });
}
