//! Does each modelled thread have thread-locals of its own, and when are they dropped?

use std::cell::{Cell, RefCell};
use std::sync::Mutex as StdMutex;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::thread;

use super::count;

#[test]
fn thread_locals_belong_to_modelled_threads_and_begin_anew_in_each_execution() {
    dpor::thread_local! {
        static COUNT: Cell<usize> = const { Cell::new(0) };
        static LIST: RefCell<Vec<usize>> = RefCell::new(vec![7]);
    }
    let traces = count(|| {
        let x = AtomicUsize::new(0);
        let body = |n: usize| {
            assert_eq!(COUNT.replace(n), 0);
            x.fetch_add(1, SeqCst);
            LIST.with_borrow_mut(|list| list.push(n));
            assert_eq!(COUNT.get(), n);
            assert_eq!(LIST.take(), [7, n]);
        };
        thread::scope(|s| {
            s.spawn(|| body(1));
            s.spawn(|| body(2));
        });
        body(3);
    });
    assert_eq!(traces, 2);
}

#[test]
fn destructors_of_thread_locals_run_at_the_threads_end_the_latest_first() {
    static ORDER: StdMutex<Vec<&str>> = StdMutex::new(Vec::new());
    struct Tell(&'static str);
    impl Drop for Tell {
        fn drop(&mut self) {
            let again = FIRST.try_with(|tell| tell.0).is_ok();
            ORDER.lock().unwrap().push(self.0);
            assert_eq!(again, self.0 == "second", "a dropped variable is gone");
        }
    }
    dpor::thread_local! {
        static FIRST: Tell = const { Tell("first") };
        static SECOND: Tell = const { Tell("second") };
    }
    let traces = count(|| {
        ORDER.lock().unwrap().clear();
        let other = thread::spawn(|| {
            FIRST.with(|_| ());
            SECOND.with(|_| ());
        });
        other.join().unwrap();
        assert_eq!(*ORDER.lock().unwrap(), ["second", "first"]);
    });
    assert_eq!(traces, 1);
}

#[test]
fn what_a_variable_is_made_with_means_what_it_means_around_the_macro() {
    static REAL: AtomicUsize = AtomicUsize::new(5);
    const ONE: usize = 1;
    dpor::thread_local! {
        static NUMBER: usize = REAL.fetch_add(ONE, SeqCst);
        static CONSTANT: Cell<usize> = const { Cell::new(ONE) };
    }
    let traces = count(|| {
        let numbers = [
            NUMBER.with(|n| *n),
            thread::spawn(|| NUMBER.with(|n| *n)).join().unwrap(),
        ];
        assert_eq!((numbers, CONSTANT.get()), ([5, 6], 1));
    });
    assert_eq!(traces, 1);
}
