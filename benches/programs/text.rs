//! The programs that the benches measure.
//!
//! They are written once, as the body of a macro that takes the crate to import `sync` and `thread`
//! from, for all benches and for the other checkers. Each program counts its *steps*, the
//! operations in its text on shared objects (atomics, locks, parks, spawns, joins), so that all
//! checkers are measured in the same unit; an operation on an `Arc` is no step. The caller of the
//! macro defines two functions: `step` receives the number of steps, and `check` receives whether
//! an assertion holds.

macro_rules! texts {
    ($krate:ident) => {
        use $krate::sync::atomic::Ordering::{self, SeqCst};
        use $krate::sync::atomic::{AtomicBool, AtomicUsize};
        use $krate::sync::{Arc, Mutex};
        use $krate::thread;

        /// Runs `threads` copies of `body`, which get their numbers, counted from 0, and joins
        /// them.
        pub(crate) fn run(threads: usize, body: impl Fn(usize) + Send + Sync + 'static) {
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
            step(2 * threads);
        }

        pub(crate) fn atomics(n: usize) -> Vec<AtomicUsize> {
            (0..n).map(|_| AtomicUsize::new(0)).collect()
        }

        pub(crate) fn empty(threads: usize) {
            let handles: Vec<_> = (0..threads).map(|_| thread::spawn(|| ())).collect();
            for handle in handles {
                handle.join().expect("no thread panics");
            }
            step(2 * threads);
        }

        pub(crate) fn readers(n: usize) {
            let x = AtomicUsize::new(0);
            run(n + 1, move |i| {
                step(1);
                match i {
                    0 => x.store(1, SeqCst),
                    _ => {
                        x.load(SeqCst);
                    }
                }
            });
        }

        pub(crate) fn lastzero(n: usize) {
            lastzero_with(n, [SeqCst; 2]);
        }

        /// [`lastzero`] with the orderings of loads and stores.
        pub(crate) fn lastzero_with(n: usize, [load, store]: [Ordering; 2]) {
            let a = atomics(n + 1);
            run(n + 1, move |i| match i {
                0 => {
                    let mut at = n;
                    step(1);
                    while a[at].load(load) != 0 {
                        at -= 1;
                        step(1);
                    }
                }
                i => {
                    a[i].store(a[i - 1].load(load) + 1, store);
                    step(2);
                }
            });
        }

        /// Each thread stores to its own atomic and loads the next one's.
        pub(crate) fn store_buffering(threads: usize, [load, store]: [Ordering; 2]) {
            let a = atomics(threads);
            run(threads, move |i| {
                a[i].store(1, store);
                a[(i + 1) % threads].load(load);
                step(2);
            });
        }

        /// The first thread stores data and a flag. Each of the others loads the flag of the one
        /// before, the data if that is set, and sets its own.
        pub(crate) fn passing(threads: usize, [load, store]: [Ordering; 2]) {
            let a = atomics(threads + 1);
            run(threads, move |i| {
                match i {
                    0 => a[threads].store(1, Ordering::Relaxed),
                    _ if a[i - 1].load(load) == 0 => return step(1),
                    _ => {
                        a[threads].load(Ordering::Relaxed);
                        step(1);
                    }
                }
                a[i].store(1, store);
                step(2);
            });
        }

        /// Two threads store, and two load both in opposite orders.
        pub(crate) fn iriw([load, store]: [Ordering; 2]) {
            let a = atomics(2);
            run(4, move |i| match i {
                0 | 1 => {
                    a[i].store(1, store);
                    step(1);
                }
                _ => {
                    a[i % 2].load(load);
                    a[1 - i % 2].load(load);
                    step(2);
                }
            });
        }

        pub(crate) fn counter(threads: usize) {
            let total = Mutex::new(0);
            run(threads, move |_| {
                *total.lock().unwrap() += 1;
                step(2);
            });
        }

        pub(crate) fn lost_update(threads: usize) {
            lost_update_with(threads, [SeqCst; 2]);
        }

        /// [`lost_update`] with the orderings of loads and stores.
        pub(crate) fn lost_update_with(threads: usize, [load, store]: [Ordering; 2]) {
            let x = AtomicUsize::new(0);
            run(threads, move |_| {
                x.store(x.load(load) + 1, store);
                step(2);
            });
        }

        /// A program with a bug, which the checkers are to find.
        pub(crate) fn asserted_update(threads: usize) {
            let x = Arc::new(AtomicUsize::new(0));
            let y = x.clone();
            run(threads, move |_| {
                y.store(y.load(SeqCst) + 1, SeqCst);
                step(2);
            });
            check(x.load(SeqCst) == threads);
        }

        pub(crate) fn spsc(items: usize) {
            spsc_with(items, [SeqCst; 2]);
        }

        /// [`spsc`] with the orderings of loads and stores.
        pub(crate) fn spsc_with(items: usize, [load, store]: [Ordering; 2]) {
            let ring = (atomics(2), AtomicUsize::new(0), AtomicUsize::new(0));
            run(2, move |i| {
                let (slots, head, tail) = &ring;
                for item in 0..items {
                    if i == 0 {
                        while tail.load(load) - head.load(load) == 2 {
                            step(3);
                            thread::yield_now();
                        }
                        slots[item % 2].store(item, store);
                        tail.store(item + 1, store);
                    } else {
                        while tail.load(load) == head.load(load) {
                            step(3);
                            thread::yield_now();
                        }
                        slots[item % 2].load(load);
                        head.store(item + 1, store);
                    }
                    step(4);
                }
            });
        }

        pub(crate) fn independent(threads: usize, k: usize) {
            let own = atomics(threads);
            run(threads, move |i| {
                for _ in 0..k {
                    own[i].store(own[i].load(SeqCst) + 1, SeqCst);
                    step(2);
                }
            });
        }

        pub(crate) fn switch(threads: usize, k: usize) {
            let x = AtomicBool::new(false);
            run(threads, move |_| {
                for _ in 0..k {
                    x.load(SeqCst);
                    step(1);
                }
            });
        }

        pub(crate) fn handoff(k: usize) {
            let main = thread::current();
            let other = thread::spawn(move || {
                for _ in 0..k {
                    thread::park();
                    main.unpark();
                    step(2);
                }
            });
            for _ in 0..k {
                other.thread().unpark();
                thread::park();
                step(2);
            }
            other.join().expect("no panic");
            step(2);
        }

        pub(crate) fn indexer(threads: usize) {
            let table = atomics(128);
            run(threads, move |t| {
                for m in 0..4 {
                    let w = (m + 1) * 11 + t;
                    let mut h = 7 * w % 128;
                    step(1);
                    while table[h].compare_exchange(0, w, SeqCst, SeqCst).is_err() {
                        h = (h + 1) % 128;
                        step(1);
                    }
                }
            });
        }

        pub(crate) fn filesystem(threads: usize) {
            let inodes: Vec<_> = (0..32).map(|_| Mutex::new(0)).collect();
            let blocks: Vec<_> = (0..26).map(|_| Mutex::new(false)).collect();
            run(threads, move |t| {
                let i = t % 32;
                let mut inode = inodes[i].lock().unwrap();
                step(2);
                if *inode == 0 {
                    let mut b = 2 * i % 26;
                    loop {
                        let mut busy = blocks[b].lock().unwrap();
                        step(2);
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

        pub(crate) fn length(threads: usize, n: usize) {
            let (own, shared) = (atomics(threads), AtomicUsize::new(0));
            run(threads, move |i| {
                for j in 0..n {
                    own[i].store(j, SeqCst);
                    own[i].load(SeqCst);
                    step(2);
                }
                shared.store(i, SeqCst);
                shared.load(SeqCst);
                step(2);
            });
        }
    };
}
pub(crate) use texts;
