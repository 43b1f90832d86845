//! What do threads and their own variables do? The same in every schedule.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use super::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use super::sync::{Arc, Mutex};
use super::{hint, thread, thread_local};

pub fn a_thread_gives_what_it_returns() -> Vec<String> {
    let handle = thread::spawn(|| vec![1, 2]);
    let mut seen = vec![format!("{handle:?} {:?}", handle.thread().name())];
    let id = handle.thread().id();
    assert_ne!(id, thread::current().id());
    seen.push(format!("{:?}", handle.join().unwrap()));
    let handle = thread::spawn(move || thread::current().id());
    while !handle.is_finished() {
        thread::yield_now();
    }
    let other = handle.thread().id();
    assert_eq!(handle.join().unwrap(), other);
    assert_ne!(id, other);
    assert!(thread::available_parallelism().is_ok_and(|n| n.get() > 0));
    seen
}

pub fn a_panic_goes_to_who_joins() -> Vec<String> {
    let handle: thread::JoinHandle<()> = thread::spawn(|| panic!("number {}", 5));
    let mut seen = vec![super::once::message(handle.join())];
    let during = thread::spawn(|| {
        struct Look<'a>(&'a mut Vec<bool>);
        impl Drop for Look<'_> {
            fn drop(&mut self) {
                self.0.push(thread::panicking());
            }
        }
        let mut looks = vec![thread::panicking()];
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _look = Look(&mut looks);
            panic!("caught");
        }));
        assert!(unwound.is_err());
        looks.push(thread::panicking());
        looks
    });
    seen.push(format!("{:?}", during.join().unwrap()));
    seen
}

pub fn a_builder_names_its_thread() -> Vec<String> {
    let builder = thread::Builder::new()
        .name("worker".into())
        .stack_size(128 * 1024);
    let mut seen = vec![format!("{builder:?}")];
    let handle = builder
        .spawn(|| thread::current().name().map(str::to_owned))
        .unwrap();
    seen.push(format!("{:?}", handle.thread().name()));
    seen.push(format!("{:?}", handle.join().unwrap()));
    seen.push(format!("{:?}", thread::current().name()));
    let unnameable = std::panic::catch_unwind(|| {
        let _ = thread::Builder::new().name("a\0b".into()).spawn(|| ());
    });
    seen.push(super::once::message(unnameable));
    let value = AtomicUsize::new(0);
    // SAFETY: the thread is joined before the value ends.
    let unchecked =
        unsafe { thread::Builder::new().spawn_unchecked(|| value.fetch_add(1, SeqCst)) };
    unchecked.unwrap().join().unwrap();
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("scoped".into());
        let handle = builder
            .spawn_scoped(scope, || value.fetch_add(1, SeqCst))
            .unwrap();
        seen.push(format!("{handle:?} {:?}", handle.thread().name()));
        seen.push(format!("{:?}", handle.join().ok()));
    });
    seen.push(format!("{value:?}"));
    seen
}

pub fn a_scope_ends_after_its_threads() -> Vec<String> {
    let mut list = vec![1];
    let count = AtomicUsize::new(0);
    let given = thread::scope(|scope| {
        let inner = scope.spawn(|| {
            // A member may spawn members.
            scope.spawn(|| count.fetch_add(1, SeqCst));
            count.fetch_add(1, SeqCst);
            list.push(2);
            "given"
        });
        inner.join().unwrap()
    });
    let seen = vec![format!("{given} {list:?} {count:?}")];
    let panicking = thread::spawn(|| {
        thread::scope(|scope| {
            scope.spawn(|| panic!("in a member"));
        });
    });
    let panicking = panicking.join();
    let joined = thread::scope(|scope| scope.spawn(|| panic!("joined")).join());
    seen.into_iter()
        .chain([
            super::once::message(panicking),
            super::once::message(joined),
        ])
        .collect()
}

pub fn a_token_is_kept_for_the_next_park() -> Vec<String> {
    let ready = Arc::new(AtomicBool::new(false));
    let theirs = ready.clone();
    let sleeper = thread::spawn(move || {
        while !theirs.load(SeqCst) {
            thread::park();
        }
    });
    ready.store(true, SeqCst);
    sleeper.thread().unpark();
    sleeper.join().unwrap();
    thread::current().unpark();
    thread::current().unpark();
    thread::park();
    thread::park_timeout(Duration::from_millis(1));
    thread::sleep(Duration::from_millis(1));
    #[allow(deprecated)]
    {
        thread::park_timeout_ms(1);
        thread::sleep_ms(1);
    }
    vec![]
}

pub fn a_spinning_thread_sees_the_flag() -> Vec<String> {
    let flag = Arc::new(AtomicBool::new(false));
    let theirs = flag.clone();
    let setter = thread::spawn(move || theirs.store(true, SeqCst));
    while !flag.load(SeqCst) {
        hint::spin_loop();
    }
    setter.join().unwrap();
    vec![format!("{}", hint::black_box(3))]
}

thread_local! {
    static COUNT: Cell<u32> = const { Cell::new(1) };
    static LIST: RefCell<Vec<u32>> = RefCell::new(vec![1]);
    static LAST: Noisy = const { Noisy("last") };
    static FIRST: Noisy = const { Noisy("first") };
}

/// Who was dropped, in the order of their ends.
static ENDS: Mutex<[&str; 4]> = Mutex::new([""; 4]);

fn note(what: &'static str) {
    let mut ends = ENDS.lock().unwrap();
    if let Some(free) = ends.iter_mut().find(|end| end.is_empty()) {
        *free = what;
    }
}

struct Noisy(&'static str);

impl Drop for Noisy {
    fn drop(&mut self) {
        note(self.0);
        if COUNT.try_with(Cell::get) == Ok(9) {
            note("the count is still there");
        }
    }
}

pub fn each_thread_has_its_own_variables() -> Vec<String> {
    COUNT.set(COUNT.get() + 1);
    LIST.with_borrow_mut(|list| list.push(2));
    let theirs = thread::spawn(|| {
        LIST.set(vec![7]);
        (
            COUNT.replace(8),
            COUNT.take(),
            COUNT.get(),
            LIST.take(),
            LIST.replace(vec![]),
        )
    });
    let theirs = theirs.join().unwrap();
    let mut seen = vec![format!(
        "{theirs:?} {} {:?}",
        COUNT.get(),
        LIST.with_borrow(Vec::clone)
    )];
    seen.push(format!("{COUNT:?} {}", COUNT.with(Cell::get)));
    // The next call on this OS thread begins as this one did.
    COUNT.set(1);
    LIST.set(vec![1]);
    seen
}

pub fn variables_are_dropped_at_the_end_of_their_thread() -> Vec<String> {
    *ENDS.lock().unwrap() = [""; 4];
    let other = thread::spawn(|| {
        COUNT.set(9);
        FIRST.with(|noisy| assert_eq!(noisy.0, "first"));
        LAST.with(|noisy| assert_eq!(noisy.0, "last"));
    });
    other.join().unwrap();
    vec![format!("{:?}", ENDS.lock().unwrap())]
}

thread_local! {
    static UNMADE: Cell<u32> = panic!("it is made");
    static UNMADE_LIST: RefCell<Vec<u32>> = panic!("it is made");
    static UNMADE_CELL: super::cell::Cell<u32> = panic!("it is made");
}

pub fn a_variable_that_is_set_first_needs_no_initialiser() -> Vec<String> {
    let other = thread::spawn(|| {
        for value in [3, 4] {
            UNMADE.set(value);
            UNMADE_LIST.set(vec![value]);
            UNMADE_CELL.set(value);
        }
        (UNMADE.get(), UNMADE_LIST.take(), UNMADE_CELL.get())
    });
    vec![format!("{:?}", other.join().unwrap())]
}

thread_local! {
    static LOOKS: Looks = const { Looks };
    static PLAIN: Cell<u32> = const { Cell::new(0) };
    static OWNS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// What the last destructor found.
static FOUND: Mutex<(Option<u32>, bool)> = Mutex::new((None, false));

struct Looks;

impl Drop for Looks {
    fn drop(&mut self) {
        let owns = OWNS.try_with(|list| list.borrow().len()).is_ok();
        *FOUND.lock().unwrap() = (PLAIN.try_with(Cell::get).ok(), owns);
    }
}

pub fn a_variable_without_destructor_is_there_for_those_of_others() -> Vec<String> {
    let other = thread::spawn(|| {
        LOOKS.with(|_| ());
        PLAIN.set(5);
        OWNS.set(vec![6]);
    });
    other.join().unwrap();
    vec![format!("{:?}", FOUND.lock().unwrap())]
}

thread_local! {
    static AGAIN: (u32, Noisy) = {
        let before = COUNT.replace(COUNT.get() + 1);
        if before == 10 {
            AGAIN.with(|again| assert_eq!(again.0, 11));
        }
        (before, Noisy(if before == 10 { "outer" } else { "inner" }))
    };
}

pub fn a_variable_that_its_initialiser_makes_is_replaced() -> Vec<String> {
    *ENDS.lock().unwrap() = [""; 4];
    let other = thread::spawn(|| {
        COUNT.set(10);
        let seen = AGAIN.with(|again| again.0);
        note("made");
        LAST.with(|_| ());
        (seen, AGAIN.with(|again| again.0))
    });
    let seen = other.join().unwrap();
    vec![format!("{seen:?} {:?}", ENDS.lock().unwrap())]
}

/// Has a variable of its own.
struct Counter;

impl Counter {
    thread_local! {
        static MADE: Cell<u32> = const { Cell::new(0) };
        static NAMES: RefCell<Vec<&'static str>> = RefCell::default();
    }

    fn make(name: &'static str) -> u32 {
        Self::NAMES.with_borrow_mut(|names| names.push(name));
        Self::MADE.set(Self::MADE.get() + 1);
        Self::MADE.get()
    }
}

/// The same one wherever it is named.
pub fn a_variable_may_belong_to_a_type() -> Vec<String> {
    let key: &'static thread::LocalKey<Cell<u32>> = &Counter::MADE;
    let made = thread::scope(|scope| {
        let made = || (Counter::make("a"), Counter::make("b"), key.take());
        let made = scope.spawn(move || (made(), Counter::NAMES.take()));
        made.join().unwrap()
    });
    vec![
        format!("{made:?}"),
        format!("{} {:?}", key.take(), Counter::NAMES.take()),
    ]
}

/// Nothing here is what std's prelude calls it, and no name leads to std.
#[no_implicit_prelude]
#[deny(unsafe_code, missing_docs)]
#[allow(dead_code, unused_macros, non_snake_case)]
mod bare {
    mod alloc {}
    mod core {}
    mod std {}
    mod dpor {}
    mod thread {}
    enum Option {}
    enum Result {}
    enum Box {}
    trait Drop {}
    trait Fn {}
    trait FnOnce {}
    trait Sync {}
    fn Some() {}
    fn None() {}
    fn Ok() {}
    fn Err() {}
    fn drop() {}
    enum LocalKey {}
    enum Cell {}
    macro_rules! thread_local {
        ($($any:tt)*) => {
            compile_error!()
        };
    }

    /// Its constant initialiser is one, in which what it borrows is there for good.
    pub struct Pair {
        first: &'static Number,
        second: u8,
    }

    struct Number(u8);

    fn same(number: u8) -> u8 {
        number
    }

    impl Number {
        const fn new(number: u8) -> Number {
            Number(number)
        }
    }

    super::thread_local! {
        /// With its own attributes, for which `const` and a visibility have each their place.
        #[allow(unused)]
        pub(super) static PAIR: Pair = const { Pair { first: &Number::new(1), second: 2 } };
        pub(in super::bare) static LATER: u8 = same(3);
        #[cfg(any())]
        static LEFT_OUT: NoSuchType = no_such_value;
        static RETURNED: [u8; 2] = if same(4) == 4 { return [4, 5] } else { [0, 0] };
        // No semicolon ends the last one.
        static FINAL: u8 = const { 6 }
    }

    super::thread_local! {}
    super::thread_local!(pub static ALONE: u8 = { const ALONE: u8 = 7; same(ALONE) });

    pub(super) fn all() -> [u8; 7] {
        let [fourth, fifth] = RETURNED.with(|returned| *returned);
        [
            PAIR.with(|pair| pair.first.0),
            PAIR.with(|pair| pair.second),
            LATER.with(|later| *later),
            fourth,
            fifth,
            FINAL.with(|last| *last),
            ALONE.with(|alone| *alone),
        ]
    }
}

pub fn variables_are_declared_where_every_name_means_something_else() -> Vec<String> {
    let other = thread::spawn(bare::all).join().unwrap();
    vec![format!("{:?} {other:?}", bare::all())]
}
