//! Does the time of an event grow with the test?
//!
//! `cargo bench --bench growth [filter]` runs families of programs of growing size, and prints for
//! each size the events, the CPU time of one event, and how many times as long that is as at the
//! first size. A family of frees has a twin that keeps its blocks until all threads are joined.

mod programs;

use dpor::sync::atomic::{AtomicPtr as Pointer, AtomicUsize, Ordering::SeqCst};
use dpor::sync::{Arc, Condvar, Mutex};
use dpor::{Builder, thread};

use programs::{atomics, independent, length, run};

/// The CPU time of this process, in seconds.
fn cpu() -> f64 {
    // SAFETY: all bytes zero are a valid `timespec`, and the pointer is valid for the call.
    let now = unsafe {
        let mut now = std::mem::zeroed::<libc::timespec>();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut now);
        now
    };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// Two threads make `n` boxed atomics each, use them, and free them, or keep them.
fn boxed(n: usize, frees: bool) {
    let own = || {
        thread::spawn(move || {
            let mut kept = Vec::with_capacity(n);
            for _ in 0..n {
                let it = Box::new(AtomicUsize::new(0));
                it.fetch_add(1, SeqCst);
                if !frees {
                    kept.push(it);
                }
            }
            kept
        })
    };
    let threads = [own(), own()];
    let _kept = threads.map(|thread| thread.join().unwrap());
}

struct Node {
    value: AtomicUsize,
    next: *mut Node,
}

// SAFETY: one thread at a time uses the nodes.
unsafe impl Send for Node {}

/// A list of `n` nodes that one thread makes and another one takes apart.
fn list(n: usize, frees: bool) {
    let head = Arc::new(Pointer::new(std::ptr::null_mut::<Node>()));
    let shared = head.clone();
    let maker = thread::spawn(move || {
        let mut next = std::ptr::null_mut();
        for value in 0..n {
            let value = AtomicUsize::new(value);
            next = Box::into_raw(Box::new(Node { value, next }));
            // SAFETY: the node is alive.
            unsafe { &*next }.value.load(SeqCst);
        }
        shared.store(next, SeqCst);
    });
    maker.join().unwrap();
    let taker = thread::spawn(move || {
        let mut kept = Vec::with_capacity(n);
        let mut next = head.load(SeqCst);
        while !next.is_null() {
            // SAFETY: each node is taken once.
            let node = unsafe { Box::from_raw(next) };
            node.value.load(SeqCst);
            next = node.next;
            if !frees {
                kept.push(node);
            }
        }
        kept
    });
    let _kept = taker.join().unwrap();
}

/// A Treiber stack: one thread pushes `n` nodes and pops them, and another one does so behind it.
fn treiber(n: usize, frees: bool) {
    let head = Arc::new(Pointer::new(std::ptr::null_mut::<Node>()));
    let worker = || {
        let head = head.clone();
        thread::spawn(move || {
            for value in 0..n {
                let next = head.load(SeqCst);
                let value = AtomicUsize::new(value);
                let node = Box::into_raw(Box::new(Node { value, next }));
                head.compare_exchange(next, node, SeqCst, SeqCst).unwrap();
            }
            let mut kept = Vec::with_capacity(n);
            for _ in 0..n {
                let node = head.load(SeqCst);
                // SAFETY: no other thread runs now.
                let next = unsafe { (*node).next };
                head.compare_exchange(node, next, SeqCst, SeqCst).unwrap();
                // SAFETY: each node is taken once.
                let node = unsafe { Box::from_raw(node) };
                node.value.load(SeqCst);
                if !frees {
                    kept.push(node);
                }
            }
            kept
        })
    };
    let _kept = [worker().join().unwrap(), worker().join().unwrap()];
}

/// Three threads take turns on one condition variable, `turns` times in all.
fn ring(turns: usize) {
    let (turn, changed) = (Mutex::new(0), Condvar::new());
    run(3, move |me| {
        for _ in 0..turns / 3 {
            let mut turn = turn.lock().unwrap();
            while *turn % 3 != me {
                turn = changed.wait(turn).unwrap();
            }
            *turn += 1;
            changed.notify_all();
        }
    });
}

/// `n` threads wait for one notification.
fn waiters(n: usize) {
    let (go, changed) = (Mutex::new(false), Condvar::new());
    run(n + 1, move |me| {
        let mut go = go.lock().unwrap();
        if me == n {
            *go = true;
            changed.notify_all();
        }
        while !*go {
            go = changed.wait(go).unwrap();
        }
    });
}

/// Two threads use `n` atomics each, once.
fn objects(n: usize) {
    let all = atomics(2 * n);
    run(2, move |me| {
        for it in &all[me * n..][..n] {
            it.store(1, SeqCst);
        }
    });
}

/// `n` threads, each of which increments one counter.
fn increments(n: usize) {
    let x = AtomicUsize::new(0);
    run(n, move |_| _ = x.fetch_add(1, SeqCst));
}

type Program = Box<dyn Fn() + Send + Sync>;

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    println!(
        "{:<30} {:>9} {:>6} {:>10} {:>10} {:>9} {:>6}",
        "program", "size", "runs", "events", "seconds", "ns/event", "times"
    );
    let family = |name: &str, sizes: &[usize], most: usize, program: fn(usize) -> Program| {
        if filter
            .as_ref()
            .is_some_and(|filter| !name.contains(filter.as_str()))
        {
            return;
        }
        let mut first = None;
        for &size in sizes {
            let mut builder = Builder::new();
            builder.max_branches = 100_000_000;
            builder.max_permutations = (most > 0).then_some(most);
            let program = std::sync::Arc::new(program(size));
            let explore = || {
                let start = cpu();
                let program = program.clone();
                let report = builder
                    .explore(move || program())
                    .expect("no program fails");
                (cpu() - start, report.executions, report.events)
            };
            explore();
            let mut best = explore();
            let mut spent = best.0;
            for _ in 0..20 {
                if spent > 0.5 {
                    break;
                }
                let again = explore();
                spent += again.0;
                if again.0 < best.0 {
                    best = again;
                }
            }
            let (seconds, executions, events) = best;
            let each = seconds * 1e9 / events as f64;
            let first = *first.get_or_insert(each);
            println!(
                "{name:<30} {size:>9} {executions:>6} {events:>10} {seconds:>10.6} {each:>9.1} {:>6.2}",
                each / first
            );
        }
    };
    let decades = [10, 100, 1_000, 10_000];
    let long = [100, 1_000, 10_000, 100_000];
    family("boxed, kept", &decades, 0, |n| {
        Box::new(move || boxed(n, false))
    });
    family("boxed, freed", &decades, 0, |n| {
        Box::new(move || boxed(n, true))
    });
    family("list, kept", &decades, 0, |n| {
        Box::new(move || list(n, false))
    });
    family("list, freed", &decades, 0, |n| {
        Box::new(move || list(n, true))
    });
    family("treiber, kept", &decades, 0, |n| {
        Box::new(move || treiber(n, false))
    });
    family("treiber, freed", &decades, 0, |n| {
        Box::new(move || treiber(n, true))
    });
    family("condvar ring", &long, 3, |n| Box::new(move || ring(n)));
    family("condvar waiters", &[2, 8, 32, 127], 3, |n| {
        Box::new(move || waiters(n))
    });
    family("threads", &[2, 8, 32, 128], 3, |n| {
        Box::new(move || increments(n))
    });
    family("independent threads", &[2, 8, 32, 128], 0, |n| {
        Box::new(move || independent(n, 1_000))
    });
    family("events", &[10, 100, 1_000, 10_000, 100_000], 3, |n| {
        Box::new(move || length(2, n))
    });
    family(
        "objects",
        &[10, 100, 1_000, 10_000, 100_000, 500_000],
        0,
        |n| Box::new(move || objects(n)),
    );
}
