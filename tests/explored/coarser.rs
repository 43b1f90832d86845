//! How many executions do coarser equivalences leave, and what do the algorithms here make of the
//! same programs? (`docs/ALGORITHMS.md`, Coarser equivalences)

use std::collections::BTreeSet;
use std::sync::Mutex;

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicUsize, Commuting, Ordering::SeqCst};
use dpor::{Algorithm, Builder, Footprint, Memory, atomically, thread};

/// What all loads of an execution have returned. The stores of a program have different values, so
/// this says which store each load reads.
type Reads = Vec<usize>;

type Body = Box<dyn FnOnce(&AtomicUsize) -> Reads + Send>;
type Program = fn(usize) -> Reads;

/// Runs threads on one atomic; each returns what it has loaded.
fn run(threads: Vec<Body>, loads_last: bool) -> Reads {
    let x = Arc::new(AtomicUsize::new(0));
    let spawn = |body: Body| {
        let x = x.clone();
        thread::spawn(move || body(&x))
    };
    let all: Vec<_> = threads.into_iter().map(spawn).collect();
    let joined = all.into_iter().flat_map(|it| it.join().expect("no panic"));
    let mut reads: Reads = joined.collect();
    if loads_last {
        reads.push(x.load(SeqCst));
    }
    reads
}

fn store(value: usize) -> Body {
    Box::new(move |x| {
        x.store(value, SeqCst);
        Vec::new()
    })
}

fn lastwrite(n: usize) -> Reads {
    run((1..=n).map(store).collect(), true)
}

fn floating_read(n: usize) -> Reads {
    let mut threads: Vec<_> = (1..=n).map(store).collect();
    threads.push(Box::new(|x| vec![x.load(SeqCst)]));
    run(threads, false)
}

fn inc(n: usize) -> Reads {
    let body = |i: usize| -> Body {
        Box::new(move |x| {
            let count = x.load(SeqCst);
            // The remainder is the count, and the rest names the thread.
            x.store(100 * i + count % 100 + 1, SeqCst);
            vec![count]
        })
    };
    run((1..=n).map(body).collect(), false)
}

fn race_param(n: usize) -> Reads {
    let body = |t: usize| -> Body {
        Box::new(move |x| {
            let turn = |i| {
                x.store(10 * t + i, SeqCst);
                x.load(SeqCst)
            };
            (0..n).map(turn).collect()
        })
    };
    run(vec![body(1), body(2)], false)
}

/// The number of executions, and of different results of all loads.
fn explored(program: Program, n: usize, algorithm: Algorithm, memory: Memory) -> (u64, usize) {
    let seen = std::sync::Arc::new(Mutex::new(BTreeSet::new()));
    let reads = seen.clone();
    let mut builder = Builder::new();
    (builder.algorithm, builder.memory) = (algorithm, memory);
    let report = builder.check(move || {
        reads.lock().expect("no panic").insert(program(n));
    });
    let reads = seen.lock().expect("no panic").len();
    (report.executions, reads)
}

#[test]
fn equal_reads_are_as_few_as_the_papers_say_and_each_trace_is_explored() {
    let programs: [(Program, usize, u64, usize); 4] = [
        (lastwrite, 7, 5040, 7),
        (floating_read, 6, 5040, 7),
        (inc, 5, 14_400, 1296),
        (race_param, 4, 3334, 1107),
    ];
    for (program, n, traces, reads) in programs {
        let found = explored(program, n, Algorithm::Optimal, Memory::Sc);
        assert_eq!(found, (traces, reads), "{n}");
    }
}

#[test]
fn states_and_graphs_of_the_same_programs_are_no_fewer_than_traces() {
    let programs: [(Program, usize, u64); 4] = [
        (lastwrite, 5, 120),
        (floating_read, 4, 120),
        (inc, 3, 36),
        (race_param, 3, 328),
    ];
    for (program, n, traces) in programs {
        for (algorithm, memory) in [
            (Algorithm::FinalStates, Memory::Sc),
            (Algorithm::Optimal, Memory::C11),
        ] {
            let (executions, _) = explored(program, n, algorithm, memory);
            assert_eq!(executions, traces, "{algorithm:?}, {memory:?}, {n}");
        }
    }
}

#[test]
fn what_is_meant_has_fewer_executions_than_stores() {
    let count = |body: fn()| Builder::new().check(body).executions;
    let adds = count(|| {
        let x = Arc::new(Commuting::new(0));
        let add = |_| {
            let x = x.clone();
            thread::spawn(move || x.add(1))
        };
        let all: Vec<_> = (0..5).map(add).collect();
        all.into_iter().for_each(|it| it.join().expect("no panic"));
        assert_eq!(x.load(SeqCst), 5);
    });
    let blocks = count(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let add = |_| {
            let x = x.clone();
            thread::spawn(move || {
                let footprint = Footprint::new().writes(&*x);
                atomically(footprint, || x.store(x.load(SeqCst) + 1, SeqCst));
            })
        };
        let all: Vec<_> = (0..5).map(add).collect();
        all.into_iter().for_each(|it| it.join().expect("no panic"));
    });
    let greatest = count(|| {
        let x = Arc::new(Commuting::new(0));
        let raise = |i| {
            let x = x.clone();
            thread::spawn(move || x.max(i))
        };
        let all: Vec<_> = (1..=7).map(raise).collect();
        all.into_iter().for_each(|it| it.join().expect("no panic"));
        assert_eq!(x.load(SeqCst), 7);
    });
    assert_eq!((adds, blocks, greatest), (1, 120, 1));
}
