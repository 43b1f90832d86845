//! How long does an exploration take? Counts first, then time.
//!
//! `cargo bench --bench end_to_end [filter]` prints one line per program: executions, those begun in
//! vain, events, seconds, nanoseconds per event and executions per second.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{Arc, Mutex};
use dpor::{Builder, thread};

/// Runs `threads` copies of `body`, which get their number from 0, and joins them.
fn run(threads: usize, body: impl Fn(usize) + Send + Sync + 'static) {
    let body = Arc::new(body);
    let handles: Vec<_> = (0..threads)
        .map(|i| {
            let body = body.clone();
            thread::spawn(move || body(i))
        })
        .collect();
    for handle in handles {
        handle.join().expect("no thread panics");
    }
}

fn atomics(n: usize) -> Vec<AtomicUsize> {
    (0..n).map(|_| AtomicUsize::new(0)).collect()
}

fn empty(threads: usize) {
    run(threads, |_| ());
}

fn readers(n: usize) {
    let x = AtomicUsize::new(0);
    run(n + 1, move |i| match i {
        0 => x.store(1, SeqCst),
        _ => {
            x.load(SeqCst);
        }
    });
}

fn lastzero(n: usize) {
    let a = atomics(n + 1);
    run(n + 1, move |i| match i {
        0 => {
            let mut at = n;
            while a[at].load(SeqCst) != 0 {
                at -= 1;
            }
        }
        i => a[i].store(a[i - 1].load(SeqCst) + 1, SeqCst),
    });
}

fn indexer(threads: usize) {
    let table = atomics(128);
    run(threads, move |t| {
        for m in 0..4 {
            let w = (m + 1) * 11 + t;
            let mut h = 7 * w % 128;
            while table[h].compare_exchange(0, w, SeqCst, SeqCst).is_err() {
                h = (h + 1) % 128;
            }
        }
    });
}

fn filesystem(threads: usize) {
    let inodes: Vec<_> = (0..32).map(|_| Mutex::new(0)).collect();
    let blocks: Vec<_> = (0..26).map(|_| Mutex::new(false)).collect();
    run(threads, move |t| {
        let i = t % 32;
        let mut inode = inodes[i].lock().unwrap();
        if *inode == 0 {
            let mut b = 2 * i % 26;
            loop {
                let mut busy = blocks[b].lock().unwrap();
                if !*busy {
                    *busy = true;
                    *inode = b + 1;
                    break;
                }
                drop(busy);
                b = (b + 1) % 26;
            }
        }
    });
}

fn lost_update(threads: usize) {
    let x = AtomicUsize::new(0);
    run(threads, move |_| x.store(x.load(SeqCst) + 1, SeqCst));
}

fn counter(threads: usize) {
    let total = Mutex::new(0);
    run(threads, move |_| *total.lock().unwrap() += 1);
}

fn spsc(items: usize) {
    let ring = (atomics(2), AtomicUsize::new(0), AtomicUsize::new(0));
    run(2, move |i| {
        let (slots, head, tail) = &ring;
        for item in 0..items {
            if i == 0 {
                while tail.load(SeqCst) - head.load(SeqCst) == 2 {
                    thread::yield_now();
                }
                slots[item % 2].store(item, SeqCst);
                tail.store(item + 1, SeqCst);
            } else {
                while tail.load(SeqCst) == head.load(SeqCst) {
                    thread::yield_now();
                }
                slots[item % 2].load(SeqCst);
                head.store(item + 1, SeqCst);
            }
        }
    });
}

fn independent(threads: usize, k: usize) {
    let own = atomics(threads);
    run(threads, move |i| {
        for _ in 0..k {
            own[i].store(own[i].load(SeqCst) + 1, SeqCst);
        }
    });
}

fn switch(threads: usize, k: usize) {
    let x = AtomicBool::new(false);
    run(threads, move |_| {
        for _ in 0..k {
            x.load(SeqCst);
        }
    });
}

fn handoff(k: usize) {
    let main = thread::current();
    let other = thread::spawn(move || {
        for _ in 0..k {
            thread::park();
            main.unpark();
        }
    });
    for _ in 0..k {
        other.thread().unpark();
        thread::park();
    }
    other.join().expect("no panic");
}

fn length(threads: usize, n: usize) {
    let (own, shared) = (atomics(threads), AtomicUsize::new(0));
    run(threads, move |i| {
        for j in 0..n {
            own[i].store(j, SeqCst);
            own[i].load(SeqCst);
        }
        shared.store(i, SeqCst);
        shared.load(SeqCst);
    });
}

/// As many accesses to plain memory as to an atomic; `access` is what touches the memory.
fn cells<C: Send + Sync + 'static>(cell: fn() -> C, access: fn(&C)) {
    let (x, own) = (AtomicUsize::new(0), [cell(), cell()]);
    run(2, move |i| {
        for _ in 0..7 {
            x.fetch_add(1, SeqCst);
            access(&own[i]);
        }
    });
}

/// A cell of its own thread.
struct Own<C>(C);

// SAFETY: each is used by one thread at a time.
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

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    println!(
        "{:<24} {:>10} {:>6} {:>11} {:>9} {:>9} {:>11}",
        "program", "executions", "pruned", "events", "seconds", "ns/event", "exec/s"
    );
    let bench = |name: &str, f: Box<dyn Fn() + Send + Sync>| {
        if filter.as_ref().is_some_and(|filter| !name.contains(filter)) {
            return 0.0;
        }
        let mut builder = Builder::new();
        builder.max_branches = 1_000_000;
        let start = Instant::now();
        let report = builder.check(f);
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{name:<24} {:>10} {:>6} {:>11} {seconds:>9.4} {:>9.1} {:>11.0}",
            report.executions,
            report.pruned,
            report.events,
            seconds * 1e9 / report.events as f64,
            report.executions as f64 / seconds,
        );
        seconds
    };
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
    for n in [100, 1_000, 10_000] {
        bench(&format!("length(2, {n})"), Box::new(move || length(2, n)));
    }
    for n in [100, 1_000, 10_000] {
        bench(&format!("handoff({n})"), Box::new(move || handoff(n)));
    }
    bench("independent(2, 10000)", Box::new(|| independent(2, 10_000)));
    bench("switch(2, 20000)", Box::new(|| switch(2, 20_000)));
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
