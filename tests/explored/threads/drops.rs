//! Who drops a message or a result that nobody takes?

use std::sync::Mutex as StdMutex;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicUsize as StdAtomicUsize, Ordering};

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, mpsc};
use dpor::thread;

use super::count;

#[test]
fn messages_that_nobody_takes_are_dropped_with_their_channel() {
    static DROPPED: StdAtomicUsize = StdAtomicUsize::new(0);
    struct Message;
    impl Drop for Message {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    DROPPED.store(0, Ordering::Relaxed);
    let executions = count(|| {
        let (sender, receiver) = mpsc::channel();
        let other = thread::spawn(move || drop(receiver));
        let _ = sender.send(Message);
        other.join().unwrap();
    });
    assert_eq!(executions, 2);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 2);
}

#[test]
fn a_result_that_nobody_waits_for_is_dropped_by_the_thread_or_with_its_handle() {
    struct Loud(Arc<AtomicUsize>);
    impl Drop for Loud {
        fn drop(&mut self) {
            let child = thread::current().name() == Some("child");
            self.0.fetch_add(if child { 1 } else { 2 }, SeqCst);
        }
    }
    let seen = std::sync::Arc::new(StdMutex::new(std::collections::BTreeSet::new()));
    let all = seen.clone();
    let traces = count(move || {
        let x = Arc::new(AtomicUsize::new(0));
        let theirs = x.clone();
        let child = thread::Builder::new().name("child".to_owned());
        let handle = child.spawn(move || Loud(theirs)).unwrap();
        drop(handle);
        let outcome = (x.load(SeqCst), x.load(SeqCst));
        all.lock().unwrap().insert(outcome);
    });
    let all = [(0, 0), (0, 1), (1, 1), (2, 2)];
    assert_eq!(*seen.lock().unwrap(), all.into());
    assert_eq!(traces, 4);
}

#[test]
fn a_handle_that_outlives_the_execution_knows_that_the_thread_has_finished() {
    static KEPT: StdMutex<Option<thread::JoinHandle<u8>>> = StdMutex::new(None);
    count(|| *KEPT.lock().unwrap() = Some(thread::spawn(|| 3)));
    let handle = KEPT.lock().unwrap().take().unwrap();
    assert!(handle.is_finished());
    assert_eq!(handle.join().unwrap(), 3);
}
