//! Is an exploration the same, independent of earlier explorations on its OS thread?

use std::fmt::Write;
use std::panic::{Location, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;

use crate::cell::UnsafeCell;
use crate::rt::engine::TieBreak;
use crate::rt::engine::strategies::optimal::Optimal;
use crate::rt::event::Trace;
use crate::rt::event::id::ObjectId;
use crate::rt::event::weakened::Weakened;
use crate::rt::exec::run::{Between, Explored, explore, stacks};
use crate::rt::heap::MustFree;
use crate::rt::statics::rooted::Rooted;
use crate::sync::atomic::AtomicUsize;
use crate::sync::{Arc, Mutex};
use crate::thread;

use crate::rt::exec::pooled_runtime::*;

fn counts() {
    let counter = Arc::new(AtomicUsize::new(0));
    crate::name(&*counter, "counter");
    let other = counter.clone();
    let builder = thread::Builder::new().name("other".to_owned());
    let counts = builder.spawn(move || other.fetch_add(1, SeqCst));
    counter.fetch_add(1, SeqCst);
    counts.expect("a thread").join().expect("it counts");
}

fn has_many_threads() {
    let threads: Vec<_> = (0..20).map(|_| thread::spawn(|| ())).collect();
    threads
        .into_iter()
        .for_each(|it| it.join().expect("it ends"));
}

fn loses_an_update() {
    let counter = Arc::new(AtomicUsize::new(0));
    let other = counter.clone();
    let counts = thread::spawn(move || other.store(other.load(SeqCst) + 1, SeqCst));
    counter.store(counter.load(SeqCst) + 1, SeqCst);
    counts.join().expect("it counts");
    assert_eq!(counter.load(SeqCst), 2);
}

/// Plain memory.
#[derive(Default)]
struct Plain(UnsafeCell<u32>);

// SAFETY: of two accesses that race, dpor stops the second one before it begins.
unsafe impl Sync for Plain {}

impl Plain {
    fn write(&self) {
        // SAFETY: as above, dpor stops the second access of a race.
        self.0.with_mut(|it| unsafe { *it = 1 });
    }
}

fn races() {
    let plain = Arc::new(Plain::default());
    let other = plain.clone();
    let writes = thread::spawn(move || other.write());
    plain.write();
    writes.join().expect("it writes");
}

fn writes_in_order() {
    let plain = Arc::new(Plain::default());
    let other = plain.clone();
    let writes = thread::spawn(move || other.write());
    writes.join().expect("it writes");
    plain.write();
}

fn uses_a_static() {
    static USED: AtomicUsize = AtomicUsize::new(3);
    let adds = thread::spawn(|| USED.fetch_add(1, SeqCst));
    let before = [USED.fetch_add(1, SeqCst), adds.join().expect("it adds")];
    assert_eq!(before.iter().sum::<usize>(), 7);
}

fn has_a_local() {
    crate::thread_local!(static LOCAL: Mutex<usize> = Mutex::new(1));
    let adds = || LOCAL.with(|it| *it.lock().expect("no poison") += 1);
    let other = thread::spawn(adds);
    adds();
    other.join().expect("it adds");
}

fn leaks() {
    crate::outcome("leaks");
    let leaked = Box::leak(Box::new(AtomicUsize::new(0)));
    leaked.store(1, SeqCst);
}

fn waits_for_itself() {
    let mutex = Mutex::new(());
    let held = mutex.lock();
    drop(mutex.lock());
    drop(held);
}

fn catches_a_panic() {
    let counter = Arc::new(AtomicUsize::new(0));
    let other = counter.clone();
    let panics = thread::spawn(move || {
        let caught = catch_unwind(|| panic!("caught"));
        assert!(caught.is_ok(), "not caught: {}", other.load(SeqCst));
    });
    counter.store(1, SeqCst);
    let _ = panics.join();
}

const PROGRAMS: [fn(); 10] = [
    counts,
    has_many_threads,
    loses_an_update,
    races,
    writes_in_order,
    uses_a_static,
    has_a_local,
    leaks,
    waits_for_itself,
    catches_a_panic,
];

/// The events of an execution, and the places of their objects.
fn events(trace: &Trace, driver: &Driver) -> String {
    let names = &driver.machine.names;
    let object = |object| (object != ObjectId::NONE).then(|| names.place(object));
    let events = trace.events().iter();
    let events = events.map(|it| {
        (
            it.thread,
            it.operation,
            it.outcome,
            object(it.operation.object),
        )
    });
    format!("{:?}", events.collect::<Vec<_>>())
}

/// All results of the exploration of a program.
fn told(program: fn()) -> String {
    let mut told = String::new();
    let mut pool = stacks(64 * 1024);
    let driver = PooledDriver::new(
        Optimal::new(TieBreak::Last),
        Limits::default(),
        Bounds::default(),
    );
    let settings = Settings {
        patience: None,
        site: Location::caller(),
        must_free: MustFree::Found,
        statics: Rooted::Stays,
        watch: None,
        callers: true,
        weakened: Weakened::default(),
        replay: |schedule, _, _| schedule.to_owned(),
        nth: 1,
        report: |_| String::new(),
        is_shared: false,
        in_order: InOrder::These(Vec::new()),
    };
    let explored = explore(&program, driver, &mut pool, settings, |between| {
        let Between {
            driver,
            end,
            names,
            callers,
            rounds,
            uses_cells,
            met_older,
            recorded_outcome,
            permitted,
            unseen_wakers,
        } = between;
        let events = events(&driver.trace, driver);
        let stacks = (callers.len(), rounds.len());
        writeln!(
            told,
            "{end:?} {names:?} {stacks:?} {uses_cells} {met_older} {recorded_outcome:?} {:?} {unseen_wakers:?} {events}",
            permitted.met()
        )
        .expect("a string");
        true
    });
    let pooled = match &explored {
        Explored::Passed(driver) => driver,
        Explored::Failed(found) => &found.driver,
    };
    let hangs = pooled.0.pulse.describe(Duration::ZERO);
    assert_eq!(hangs, None, "nothing is explored any more");
    match explored {
        Explored::Passed(driver) => write!(told, "{:?}", driver.stats),
        Explored::Failed(found) => {
            let (end, message, earlier) = (&found.end, &found.message, &found.earlier);
            let events = events(&found.driver.trace, &found.driver);
            let panics = (message.as_ref().map(|it| &it.text), earlier.len());
            write!(told, "{end:?} {panics:?} {:?} {events}", found.names)
        }
    }
    .expect("a string");
    told
}

#[test]
fn a_runtime_leaves_nothing_to_the_next_exploration() {
    let alone = PROGRAMS.map(|program| {
        let alone = std::thread::spawn(move || told(program));
        alone.join().expect("it explores")
    });
    for first in PROGRAMS {
        for (program, alone) in PROGRAMS.iter().zip(&alone) {
            told(first);
            assert_eq!(&told(*program), alone);
        }
    }
}
