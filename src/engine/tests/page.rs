//! The examples of the page about Frontrun's engine.

use super::run;
use crate::config::Builder;
use crate::engine::{Access, Ended, Engine, Execution, Operation, Outcome, Thread, Turn};

/// Threads that make these accesses, each on an object. Returns the end.
fn run_accesses(
    execution: &mut Execution<'_>,
    threads: &[Vec<(u32, Access)>],
    mut happens: impl FnMut(usize, usize),
) -> Ended {
    let mut made = vec![0; threads.len()];
    run(execution, |_, Thread(thread), outcome| {
        if outcome.is_some() {
            happens(thread, made[thread]);
            made[thread] += 1;
        }
        let &(object, access) = threads[thread].get(made[thread])?;
        Some(Operation::Access { object, access })
    })
}

/// The number of executions of threads that make these accesses.
fn executions(threads: &[Vec<(u32, Access)>]) -> u64 {
    let mut engine = Engine::new(&Builder::new(), threads.len()).expect("fit settings");
    while let Some(mut execution) = engine.begin().expect("the one before has ended") {
        let ended = run_accesses(&mut execution, threads, |_, _| ());
        assert_eq!(ended, Ended::Complete);
    }
    assert!(engine.is_complete());
    assert_eq!(engine.pruned(), 0);
    engine.executions()
}

#[test]
fn the_counter_of_the_page_is_explored_step_by_step() {
    const COUNTER: u32 = 0;
    let body = vec![(COUNTER, Access::Read), (COUNTER, Access::Write)];
    let threads = [body.clone(), body];
    let mut engine = Engine::new(&Builder::new(), 2).expect("fit settings");
    let mut results = Vec::new();
    while let Some(mut execution) = engine.begin().expect("the one before has ended") {
        let (mut counter, mut local) = (0, [0; 2]);
        run_accesses(&mut execution, &threads, |thread, step| match step {
            0 => local[thread] = counter,
            _ => counter = local[thread] + 1,
        });
        let schedule: Vec<usize> = execution.schedule().iter().map(|it| it.0).collect();
        results.push((schedule, counter));
    }
    // Execution 1: R_0 W_0 R_1 W_1, counter = 2.
    assert_eq!(results[0], (vec![0, 0, 1, 1], 2));
    // Execution 2 shares its first step, and then runs T1: the lost update. The page runs W_0 next;
    // here the thread that ran last goes on.
    assert_eq!(results[1].0[..2], [0, 1]);
    assert_eq!(results[1].1, 1);
    // The page stops there. A trace is an order of R_0 and W_1, of R_1 and W_0, and of W_0 and W_1:
    // two more are possible, which the page's count of 2 leaves out.
    let mut all: Vec<_> = results
        .iter()
        .map(|(schedule, _)| schedule.clone())
        .collect();
    all.sort();
    assert_eq!(all.len(), 4);
    assert_eq!(
        results.iter().filter(|(_, counter)| *counter == 1).count(),
        2
    );
    assert_eq!(
        (engine.executions(), engine.depth(), engine.threads()),
        (4, 6, 2)
    );
}

#[test]
fn the_loop_of_the_page_stands_line_by_line() {
    // engine = PyDporEngine(num_threads=2, preemption_bound=2, max_branches=100_000,
    //                       max_executions=None)
    let mut settings = Builder::new();
    settings.preemption_bound = Some(2);
    settings.max_branches = 100_000;
    settings.max_permutations = None;
    let mut engine = Engine::new(&settings, 2).expect("fit settings");
    let (object_id, lock_id) = (7, 3);
    let mut schedules = Vec::new();
    // while True: execution = engine.begin_execution()
    // The call of `next_execution` at the end of the page's loop is this one, too.
    while let Some(mut execution) = engine.begin().expect("the one before has ended") {
        let mut steps = [0; 2];
        let mut value = 0;
        // while True: thread_id = engine.schedule(execution)
        loop {
            let thread_id = match execution.turn().expect("the last one has announced") {
                Turn::Begins(thread_id) => thread_id,
                // The access that was reported happens here; in the page it has happened before.
                Turn::Ran(thread_id, _) => {
                    value += usize::from(steps[thread_id.0] == 2);
                    thread_id
                }
                // if thread_id is None: break
                Turn::Ended(ended) => {
                    assert_eq!(ended, Ended::Complete);
                    break;
                }
            };
            steps[thread_id.0] += 1;
            let reported = match steps[thread_id.0] {
                // engine.report_sync(execution, thread_id, "lock_acquire", lock_id)
                1 => execution.announce(thread_id, Operation::Acquire(lock_id)),
                // engine.report_access(execution, thread_id, object_id, "write")
                2 => {
                    let (object, access) = (object_id, Access::Write);
                    execution.announce(thread_id, Operation::Access { object, access })
                }
                // engine.report_sync(execution, thread_id, "lock_release", lock_id)
                3 => execution.announce(thread_id, Operation::Release(lock_id)),
                // execution.finish_thread(thread_id)
                _ => execution.finish_thread(thread_id),
            };
            reported.expect("its turn");
        }
        // check invariants on this execution's final state
        assert_eq!(value, 2);
        // execution.schedule_trace
        schedules.push(execution.schedule());
    }
    // engine.executions_completed, engine.num_threads, execution.aborted
    assert_eq!((engine.executions(), engine.threads()), (2, 2));
    assert!(engine.is_complete() && !engine.is_aborted());
    // engine.tree_depth: two spawns and three steps of each thread.
    assert_eq!(engine.depth(), 8);
    let [a, b] = [Thread(0), Thread(1)];
    assert_eq!(schedules, [[a, a, a, b, b, b], [b, b, b, a, a, a]]);
}

#[test]
fn the_abstract_example_of_the_page_has_two_executions() {
    // e1: W_0(x); e2: R_1(y), e3: R_1(x).
    let (x, y) = (0, 1);
    let threads = [
        vec![(x, Access::Write)],
        vec![(y, Access::Read), (x, Access::Read)],
    ];
    assert_eq!(executions(&threads), 2);
    // The first example of the page adds R_0(y).
    let threads = [
        vec![(x, Access::Write), (y, Access::Read)],
        vec![(x, Access::Write), (y, Access::Read)],
    ];
    assert_eq!(executions(&threads), 2);
}

#[test]
fn the_reductions_of_the_page_are_those_of_traces() {
    let same = |ops: usize| vec![vec![(0, Access::Write); ops]; 2];
    // Two writers of n writes each have as many traces as interleavings; the page counts 2.
    assert_eq!(executions(&same(2)), 6);
    assert_eq!(executions(&same(5)), 252);
    let apart = [vec![(0, Access::Write); 2], vec![(1, Access::Write); 2]];
    assert_eq!(executions(&apart), 1);
    // Three threads that use one object once each, and an object of their own: 6 of 90.
    let three: Vec<_> = (1..=3)
        .map(|own| vec![(own, Access::Write), (0, Access::Write)])
        .collect();
    assert_eq!(executions(&three), 6);
    // A writer with N readers: 2^N, not (N + 1)!.
    for readers in 1..=6 {
        let mut threads = vec![vec![(0, Access::Write)]];
        threads.extend(vec![vec![(0, Access::Read)]; readers]);
        assert_eq!(executions(&threads), 1 << readers);
    }
}

#[test]
fn the_four_kinds_of_access_conflict_as_the_page_says() {
    use Access::{Read, WeakRead, WeakWrite, Write};
    let all = [Read, Write, WeakRead, WeakWrite];
    let conflicts = |one, other| {
        matches!(
            (one, other),
            (Write, _) | (_, Write) | (Read, WeakWrite) | (WeakWrite, Read)
        )
    };
    for one in all {
        for other in all {
            let traces = 1 + u64::from(conflicts(one, other));
            let found = executions(&[vec![(0, one)], vec![(0, other)]]);
            assert_eq!(found, traces, "{one:?} and {other:?}");
        }
    }
}

#[test]
fn locks_order_and_a_bound_leaves_out_what_the_page_leaves_out() {
    // Read and write under a lock: the update is not lost, and there are two orders.
    let explored = |settings: &Builder| {
        let mut engine = Engine::new(settings, 2).expect("fit settings");
        while let Some(mut execution) = engine.begin().expect("the one before has ended") {
            let mut made = [0; 2];
            let ended = run(&mut execution, |_, Thread(thread), outcome| {
                made[thread] += usize::from(outcome.is_some());
                let access = |access| Operation::Access { object: 0, access };
                match made[thread] {
                    0 => Some(Operation::Acquire(0)),
                    1 => Some(access(Access::Read)),
                    2 => Some(access(Access::Write)),
                    3 => Some(Operation::Release(0)),
                    _ => None,
                }
            });
            assert_eq!(ended, Ended::Complete);
        }
        engine
    };
    let engine = explored(&Builder::new());
    assert_eq!((engine.executions(), engine.bound()), (2, None));
    let bounded = Builder {
        preemption_bound: Some(0),
        ..Builder::new()
    };
    let engine = explored(&bounded);
    assert_eq!(engine.executions(), 2);
    assert!(engine.bound().is_some());
    let limited = Builder {
        max_permutations: Some(1),
        ..Builder::new()
    };
    let engine = explored(&limited);
    assert_eq!(engine.executions(), 1);
    assert!(!engine.is_complete() && !engine.is_aborted());
}

#[test]
fn spawned_threads_have_numbers_and_are_joined() {
    let mut engine = Engine::new(&Builder::new(), 1).expect("fit settings");
    let mut sums = Vec::new();
    while let Some(mut execution) = engine.begin().expect("the one before has ended") {
        let (mut steps, mut children, mut order) = ([0; 3], Vec::new(), Vec::new());
        let ended = run(&mut execution, |execution, thread, outcome| {
            if let Some(outcome) = outcome {
                if let Outcome::Spawned(child) = outcome {
                    children.push(child);
                } else if thread.0 > 0 {
                    order.push(thread);
                }
                steps[thread.0] += 1;
            }
            match (thread.0, steps[thread.0]) {
                (0, 0 | 1) => Some(Operation::Spawn),
                (0, 2) => Some(Operation::Join(children[0])),
                (0, 3) => Some(Operation::Join(children[1])),
                (0, _) => {
                    assert_eq!(order.len(), 2, "both were joined");
                    assert!(execution.is_finished(children[0]));
                    None
                }
                (_, 0) => Some(Operation::Access {
                    object: 0,
                    access: Access::Write,
                }),
                _ => None,
            }
        });
        assert_eq!(ended, Ended::Complete);
        assert_eq!(children, [Thread(1), Thread(2)]);
        assert_eq!(execution.threads(), 3);
        sums.push(order);
    }
    assert_eq!(sums.len(), 2);
    assert_ne!(sums[0], sums[1]);
}
