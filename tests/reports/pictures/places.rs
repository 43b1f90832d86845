//! Is every event given a place in the program, and none inside this crate?

use std::future::poll_fn;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, Waker};

use dpor::future::{AtomicWaker, block_on};
use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Condvar, OnceLock, mpsc};
use dpor::{Builder, thread};
use serde_json::Value;

use super::{event, failure, list, needs};

#[test]
fn no_place_of_the_crate_itself_is_given_as_the_tests_own() {
    dpor::thread_local! {
        static LOCAL: AtomicUsize = AtomicUsize::new(0);
    }
    struct Borrowed(*const AtomicUsize);
    // SAFETY: whether it may be used is what is to be found; the model keeps the memory.
    unsafe impl Send for Borrowed {}
    impl Borrowed {
        fn get(&self) -> &AtomicUsize {
            // SAFETY: as above.
            unsafe { &*self.0 }
        }
    }
    let mut builder = Builder::new();
    // Nothing is run again, so nobody looks at the stacks, which know more.
    builder.simplify = 0;
    let failure = builder.explore(|| {
        let owner = thread::spawn(|| {
            let (sender, receiver) = mpsc::channel::<()>();
            drop((sender, receiver));
            OnceLock::new().get_or_init(|| ());
            let borrowed = Borrowed(LOCAL.with(std::ptr::from_ref));
            thread::spawn(move || borrowed.get().store(1, Relaxed))
        });
        owner.join().unwrap().join().unwrap();
    });
    let failure = failure.expect_err("the variable has gone");
    let text = failure.to_string();
    assert!(
        !text.contains("gen_impl") && !text.contains("src/"),
        "{text}"
    );
    let execution: Value = serde_json::from_str(&failure.json()).expect("JSON");
    let mut in_drops = 0;
    let things = ["events", "objects"].map(|name| list(&execution, name));
    for thing in things.iter().copied().flatten() {
        let place = &thing["place"];
        let own = |file: &str| !file.starts_with("tests/reports/pictures/places.rs");
        let file = place["file"].as_str().expect("a file");
        assert_eq!(own(file), !place["instead"].is_null(), "{thing}");
        if place["instead"] == "in a drop" {
            assert_eq!(place["text"], Value::Null, "{thing}");
            let operation = thing["operation"].as_str();
            in_drops += usize::from(operation.is_some_and(|it| it.ends_with("_drop")));
            assert_ne!(operation, Some("once_end"), "{thing}");
        }
    }
    assert_eq!(in_drops, 2, "{text}");
    assert!(failure.dot().contains("\\nin a drop"), "{}", failure.dot());
}

/// Wakes whoever waits, when it is dropped.
struct WakesAll(fn(&Condvar), Arc<Condvar>);

impl Drop for WakesAll {
    fn drop(&mut self) {
        self.0(&self.1);
    }
}

#[test]
fn operations_that_others_call_stand_where_the_program_has_them_called() {
    let failure = failure(|| {
        let (sender, receiver) = mpsc::channel();
        let waker = Arc::new(AtomicWaker::new());
        let notifies = WakesAll(Condvar::notify_all, Arc::new(Condvar::new()));
        let theirs = waker.clone();
        thread::spawn(move || {
            drop((notifies, sender.send(())));
            block_on(poll_fn(|context| {
                theirs.register_by_ref(context.waker());
                sender.send(()).expect("main receives");
                Poll::<()>::Pending
            }));
        });
        for _ in receiver.iter().take(2) {}
        waker.take_waker().iter().for_each(Waker::wake_by_ref);
        for () in receiver {}
    });
    let text = failure.to_string();
    if !needs::lines("no place is looked up") {
        return;
    }
    let execution: Value = serde_json::from_str(&failure.json()).expect("JSON");
    let stands = |place: &Value| {
        assert_eq!(place["file"], "tests/reports/pictures/places.rs", "{text}");
        assert_eq!(place["instead"], Value::Null, "{text}");
        place["text"].as_str().expect("a line").to_owned()
    };
    for (words, line) in [
        ("notify_all", "self.0(&self.1);"),
        (
            "wake main.1's task",
            "waker.take_waker().iter().for_each(Waker::wake_by_ref);",
        ),
        ("receive message 0", "for _ in receiver.iter().take(2) {}"),
    ] {
        assert_eq!(stands(&event(&execution, words)["place"]), line, "{text}");
    }
    let waiting = list(&execution["outcome"], "waiting");
    let main = waiting.iter().find(|it| it["thread"] == 0);
    let place = &main.expect("main waits")["place"];
    assert_eq!(stands(place), "for () in receiver {}", "{text}");
    let here = format!("at tests/reports/pictures/places.rs:{}\n", place["line"]);
    assert!(text.contains(&here), "{text}");
}
