//! How long does an exploration take? Counts come first, then times.
//!
//! `cargo bench --bench end_to_end [filter]` prints one line per program: executions, pruned
//! executions, events, seconds, nanoseconds per event and executions per second.

mod programs;

use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Barrier, Condvar, Mutex, OnceLock, RwLock, mpsc};
use dpor::{Builder, thread};

use programs::*;

/// As many accesses to plain memory as to an atomic; `access` accesses the memory.
fn cells<C: Send + Sync + 'static>(cell: fn() -> C, access: fn(&C)) {
    let (x, own) = (AtomicUsize::new(0), [cell(), cell()]);
    run(2, move |i| {
        for _ in 0..7 {
            x.fetch_add(1, SeqCst);
            access(&own[i]);
        }
    });
}

/// A cell that only one thread uses at a time.
struct Own<C>(C);

// SAFETY: only one thread at a time uses each cell.
unsafe impl<C> Sync for Own<C> {}

fn unwatched() {
    type Cell = Own<std::cell::UnsafeCell<usize>>;
    // SAFETY: only one thread uses the cell.
    cells(
        || Own(Default::default()),
        |cell: &Cell| unsafe { *cell.0.get() += 1 },
    );
}

fn watched() {
    type Cell = Own<dpor::cell::UnsafeCell<usize>>;
    // SAFETY: only one thread uses the cell.
    cells(
        || Own(Default::default()),
        |cell: &Cell| cell.0.with_mut(|it| unsafe { *it += 1 }),
    );
}

/// Reads, `looks` times, a value behind a lock and a value that is initialised at its first use.
fn lock_and_value(looks: usize) {
    let (lock, value) = (RwLock::new(1), OnceLock::new());
    for _ in 0..looks {
        let read = *lock.read().unwrap();
        assert_eq!(*value.get_or_init(|| read), 1);
    }
}

/// Sends `n` messages from one thread to another.
fn messages(n: usize) {
    let (sender, receiver) = mpsc::channel();
    let other = thread::spawn(move || (0..n).for_each(|message| sender.send(message).unwrap()));
    assert!((0..n).all(|message| receiver.recv().unwrap() == message));
    other.join().unwrap();
}

/// Two threads meet `n` times.
fn meetings(n: usize) {
    let barrier = Barrier::new(2);
    run(2, move |_| {
        (0..n).for_each(|_| _ = barrier.wait());
    });
}

/// Two threads take turns `n` times.
fn turns(n: usize) {
    let (turn, changed) = (Mutex::new(0), Condvar::new());
    run(2, move |i| {
        for _ in 0..n {
            let mut turn = turn.lock().unwrap();
            while *turn % 2 != i {
                turn = changed.wait(turn).unwrap();
            }
            *turn += 1;
            changed.notify_all();
        }
    });
}

/// One thread reads `n` times, and another one writes as often.
fn reads_and_writes(n: usize) {
    let lock = RwLock::new(0);
    run(2, move |i| {
        for _ in 0..n {
            match i {
                0 => _ = *lock.read().unwrap(),
                _ => *lock.write().unwrap() += 1,
            }
        }
    });
}

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    println!(
        "{:<26} {:>10} {:>6} {:>11} {:>9} {:>9} {:>11}",
        "program", "executions", "pruned", "events", "seconds", "ns/event", "exec/s"
    );
    let settings = Builder::new();
    let explore = |name: &str, settings: &Builder, f: Box<dyn Fn() + Send + Sync>| {
        if filter.as_ref().is_some_and(|filter| !name.contains(filter)) {
            return 0.0;
        }
        let mut builder = settings.clone();
        builder.max_branches = 1_000_000;
        let start = Instant::now();
        let report = builder.explore(f).expect("no program fails");
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{name:<26} {:>10} {:>6} {:>11} {seconds:>9.4} {:>9.1} {:>11.0}",
            report.executions,
            report.pruned,
            report.events,
            seconds * 1e9 / report.events as f64,
            report.executions as f64 / seconds,
        );
        seconds
    };
    let bench = |name: &str, f| explore(name, &settings, f);
    bench("warm-up", Box::new(|| lost_update(3)));
    bench("empty(4)", Box::new(|| empty(4)));
    bench("readers(8)", Box::new(|| readers(8)));
    bench("readers(13)", Box::new(|| readers(13)));
    bench("lastzero(10)", Box::new(|| lastzero(10)));
    bench("lastzero(15)", Box::new(|| lastzero(15)));
    bench("indexer(12)", Box::new(|| indexer(12)));
    bench("indexer(15)", Box::new(|| indexer(15)));
    bench("filesystem(19)", Box::new(|| filesystem(19)));
    bench("filesystem(22)", Box::new(|| filesystem(22)));
    bench("lost_update(4)", Box::new(|| lost_update(4)));
    bench("counter(5)", Box::new(|| counter(5)));
    bench("spsc(4)", Box::new(|| spsc(4)));
    for items in [4, 8] {
        let name = format!("spsc({items}), loops as steps");
        let mut settings = settings.clone();
        settings.await_loops = Some(true);
        explore(&name, &settings, Box::new(move || spsc(items)));
    }
    for n in [100, 1_000, 10_000] {
        bench(&format!("length(2, {n})"), Box::new(move || length(2, n)));
    }
    for n in [100, 1_000, 10_000] {
        bench(&format!("handoff({n})"), Box::new(move || handoff(n)));
    }
    // The programs are cut off after a few long executions: an event of a long execution costs as
    // much as one of a short execution, and most of these programs have more executions than can be
    // explored.
    let mut few = settings.clone();
    few.max_permutations = Some(3);
    for n in [100, 1_000, 10_000] {
        explore(
            &format!("messages({n})"),
            &few,
            Box::new(move || messages(n)),
        );
        explore(
            &format!("meetings({n})"),
            &few,
            Box::new(move || meetings(n)),
        );
        explore(&format!("turns({n})"), &few, Box::new(move || turns(n)));
        explore(
            &format!("reads_and_writes({n})"),
            &few,
            Box::new(move || reads_and_writes(n)),
        );
    }
    bench("independent(2, 10000)", Box::new(|| independent(2, 10_000)));
    bench("switch(2, 20000)", Box::new(|| switch(2, 20_000)));
    for looks in [1_000, 10_000] {
        let read = move || lock_and_value(looks);
        bench(&format!("looks({looks})"), Box::new(read));
    }
    for options in [1_000, 10_000] {
        let choose = move || _ = dpor::choose(options);
        bench(&format!("choose({options})"), Box::new(choose));
    }
    let plain = bench("cells, not watched", Box::new(unwatched));
    let seen = bench("cells, watched", Box::new(watched));
    if plain > 0.0 {
        println!("watching cells costs {:.2} times as much", seen / plain);
    }
}
