//! What does an initialisation do that happens once? The same in every schedule.

use super::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use super::sync::{Arc, Barrier, LazyLock, Once, OnceLock};
use super::thread;

static ONCE: Once = Once::new();
static CELL: OnceLock<String> = OnceLock::new();
static LAZY: LazyLock<Vec<u8>> = LazyLock::new(|| vec![1, 2]);

/// What the panic of a thread says that does this.
fn panics(body: impl FnOnce() + Send) -> String {
    message(thread::scope(|scope| scope.spawn(body).join()))
}

/// What a panic said, and whether that was made for it.
pub fn message(result: std::thread::Result<()>) -> String {
    let payload = result.expect_err("it panics");
    match payload.downcast_ref::<String>() {
        Some(text) => format!("{text} (a String)"),
        None => payload.downcast_ref::<&str>().expect("a text").to_string(),
    }
}

pub fn a_once_runs_once() -> Vec<String> {
    let (once, calls) = (Once::new(), AtomicUsize::new(0));
    let mut seen = vec![format!("{once:?} {}", once.is_completed())];
    thread::scope(|scope| {
        scope.spawn(|| once.call_once(|| _ = calls.fetch_add(1, SeqCst)));
        once.call_once(|| _ = calls.fetch_add(1, SeqCst));
        assert!(once.is_completed());
        once.wait();
        once.wait_force();
    });
    once.call_once_force(|_| _ = calls.fetch_add(1, SeqCst));
    seen.push(format!("{} {}", calls.load(SeqCst), once.is_completed()));
    // In a static.
    ONCE.call_once(|| ());
    seen.push(format!("{}", ONCE.is_completed()));
    seen
}

pub fn a_once_that_panicked_is_poisoned_until_it_is_forced() -> Vec<String> {
    let once = Once::new();
    let mut seen = vec![
        panics(|| once.call_once(|| panic!("in the middle"))),
        panics(|| once.call_once(|| unreachable!("it is poisoned"))),
        panics(|| once.wait()),
        format!("{}", once.is_completed()),
    ];
    once.call_once_force(|state| seen.push(format!("{state:?} {}", state.is_poisoned())));
    once.call_once(|| unreachable!("it is done"));
    once.wait();
    seen.push(format!("{}", once.is_completed()));
    seen
}

pub fn a_value_is_set_once() -> Vec<String> {
    let mut cell: OnceLock<String> = OnceLock::new();
    let mut seen = vec![format!("{cell:?} {:?}", cell.get())];
    thread::scope(|scope| {
        let other = scope.spawn(|| cell.set("theirs".into()).is_ok());
        let mine = cell.set("mine".into()).is_ok();
        let winner = if mine { "mine" } else { "theirs" };
        assert_ne!(other.join().unwrap(), mine);
        assert_eq!(cell.get().map(String::as_str), Some(winner));
        assert_eq!(cell.wait(), winner);
        assert_eq!(cell.get_or_init(|| unreachable!("it is set")), winner);
    });
    assert!(cell.get_mut().is_some());
    cell.take();
    assert_eq!(cell.set("again".into()), Ok(()));
    cell.get_mut().expect("it is set").push('!');
    let copy = cell.clone();
    seen.push(format!(
        "{cell:?} {} {:?}",
        copy == cell,
        cell.set("third".into())
    ));
    seen.push(format!("{:?} {:?}", copy.into_inner(), OnceLock::from(3)));
    seen.push(format!("{:?}", OnceLock::<u8>::default()));
    let value = CELL.get_or_init(|| "static".into());
    seen.push(value.clone());
    seen
}

pub fn a_value_whose_making_panicked_is_made_again() -> Vec<String> {
    let cell: OnceLock<u8> = OnceLock::new();
    let mut seen = vec![panics(|| _ = cell.get_or_init(|| panic!("in the middle")))];
    seen.push(format!("{:?} {}", cell.get(), cell.get_or_init(|| 5)));
    seen
}

pub fn a_lazy_value_is_made_when_it_is_needed() -> Vec<String> {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let mut lazy = LazyLock::new(move || {
        counter.fetch_add(1, SeqCst);
        String::from("made")
    });
    let mut seen = vec![format!("{lazy:?} {}", made.load(SeqCst))];
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(*lazy, "made"));
        assert_eq!(LazyLock::force(&lazy), "made");
    });
    lazy.push('!');
    seen.push(format!("{lazy:?} {} {}", lazy.len(), made.load(SeqCst)));
    drop(lazy);
    seen.push(format!("{}", Arc::strong_count(&made)));
    // One that nobody needed drops its closure.
    let counter = made.clone();
    drop(LazyLock::new(move || counter.load(SeqCst)));
    seen.push(format!("{}", Arc::strong_count(&made)));
    seen.push(format!("{:?} {:?}", *LAZY, *LazyLock::<u8>::default()));
    seen
}

pub fn a_lazy_value_whose_making_panicked_is_poisoned() -> Vec<String> {
    let lazy: LazyLock<u8> = LazyLock::new(|| panic!("in the middle"));
    let force = || panics(|| _ = LazyLock::force(&lazy));
    let seen = vec![force(), force()];
    assert_eq!(format!("{lazy:?}"), "LazyLock(<uninit>)");
    seen
}

pub fn who_waits_for_a_lazy_value_hears_that_its_making_panicked() -> Vec<String> {
    let group = Barrier::new(2);
    let lazy: LazyLock<u8, _> = LazyLock::new(|| -> u8 {
        group.wait();
        panic!("in the middle")
    });
    thread::scope(|scope| {
        // Only when the value is being made; in most runs while it still is.
        let waits = scope.spawn(|| {
            group.wait();
            assert_eq!(*lazy, 0);
        });
        vec![panics(|| _ = LazyLock::force(&lazy)), message(waits.join())]
    })
}
