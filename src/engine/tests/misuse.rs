//! Wrong calls are errors that name the call.

use super::run;
use crate::config::{Builder, Memory};
use crate::engine::{Access, Ended, Engine, Misuse, Operation, Relation, Thread, Turn};

const WRITE: Operation = Operation::Access {
    object: 0,
    access: Access::Write,
};

fn engine(threads: usize) -> Engine {
    Engine::new(&Builder::new(), threads).expect("fit settings")
}

/// The text of the error.
fn error<T: std::fmt::Debug>(result: Result<T, Misuse>) -> String {
    result.expect_err("a wrong call").to_string()
}

#[test]
fn a_report_out_of_turn_is_an_error_that_names_the_call() {
    let mut engine = engine(2);
    let mut execution = engine.begin().expect("first").expect("one");
    // An access before any turn.
    let early = error(execution.announce(Thread(0), WRITE));
    assert!(early.starts_with("`announce` for thread 0: the thread does not have the turn"));
    let early = error(execution.finish_thread(Thread(1)));
    assert!(early.starts_with("`finish_thread` for thread 1: the thread does not have the turn"));
    let unknown = error(execution.announce(Thread(7), WRITE));
    assert_eq!(
        unknown,
        "`announce` for thread 7: the execution has no such thread"
    );
    assert_eq!(execution.turn(), Ok(Turn::Begins(Thread(0))));
    let silent = error(execution.turn());
    assert!(
        silent.starts_with("`turn`: thread 0 has the turn"),
        "{silent}"
    );
    let other = error(execution.announce(Thread(1), WRITE));
    assert!(other.starts_with("`announce` for thread 1"));
    execution.finish_thread(Thread(0)).expect("its turn");
    let finished = error(execution.announce(Thread(0), WRITE));
    assert_eq!(finished, "`announce` for thread 0: the thread has finished");
    let twice = error(execution.finish_thread(Thread(0)));
    assert_eq!(
        twice,
        "`finish_thread` for thread 0: the thread has finished"
    );
    // None of that has disturbed the execution.
    assert_eq!(execution.turn(), Ok(Turn::Begins(Thread(1))));
    execution.finish_thread(Thread(1)).expect("its turn");
    assert_eq!(execution.turn(), Ok(Turn::Ended(Ended::Complete)));
    assert_eq!(error(execution.turn()), "`turn`: the execution is over");
    assert_eq!(
        error(execution.announce(Thread(1), WRITE)),
        "`announce`: the execution is over"
    );
    assert!(engine.begin().expect("ended").is_none());
}

#[test]
fn an_operation_that_does_not_fit_its_object_is_an_error() {
    let mut engine = engine(1);
    engine
        .declare(5, Relation::new(2, &[(0, 1)]))
        .expect("none has begun");
    let too_large = error(engine.set_word(1 << 30, 0));
    assert!(too_large.starts_with("`set_word`: the number 1073741824 is too large"));
    let mut execution = engine.begin().expect("first").expect("one");
    assert_eq!(execution.turn(), Ok(Turn::Begins(Thread(0))));
    let announce = |execution: &mut crate::engine::Execution<'_>, operation| {
        error(execution.announce(Thread(0), operation))
    };
    let not_held = announce(&mut execution, Operation::Release(3));
    assert_eq!(
        not_held,
        "`announce` for thread 0: it releases lock 3, which it does not hold"
    );
    let access = Access::Declared(2);
    let undeclared = announce(&mut execution, Operation::Access { object: 5, access });
    assert!(
        undeclared.contains("object 5 has no declared access 2"),
        "{undeclared}"
    );
    let access = Access::Read;
    let plain = announce(&mut execution, Operation::Access { object: 5, access });
    assert!(plain.contains("object 5 has a relation"), "{plain}");
    let none = announce(&mut execution, Operation::Choose(0));
    assert!(none.contains("at least 1 option"), "{none}");
    let large = announce(&mut execution, Operation::Acquire(u32::MAX));
    assert!(large.contains("is too large"), "{large}");
    let nowhere = announce(&mut execution, Operation::Join(Thread(4)));
    assert!(
        nowhere.contains("thread 4: the execution has no such thread"),
        "{nowhere}"
    );
    execution
        .announce(Thread(0), Operation::Acquire(3))
        .expect("a right call");
    assert!(matches!(execution.turn(), Ok(Turn::Ran(..))));
    execution
        .announce(Thread(0), Operation::Release(3))
        .expect("a right call");
    assert!(matches!(execution.turn(), Ok(Turn::Ran(..))));
    execution.finish_thread(Thread(0)).expect("its turn");
    assert_eq!(execution.turn(), Ok(Turn::Ended(Ended::Complete)));
    let late = error(engine.declare(6, Relation::new(1, &[])));
    assert!(
        late.starts_with("`declare`: an execution has begun"),
        "{late}"
    );
}

/// A waiter that blocks, and a waker that unblocks it. Returns the number of executions in which
/// the waker comes first, and the ends.
fn wake_ups() -> (usize, Vec<Ended>) {
    let mut engine = engine(2);
    let (mut lost, mut ends) = (0, Vec::new());
    while let Some(mut execution) = engine.begin().expect("the one before has ended") {
        let mut made = [0; 2];
        loop {
            let thread = match execution.turn() {
                Ok(Turn::Begins(thread)) => thread,
                Ok(Turn::Ran(thread, _)) => {
                    made[thread.0] += 1;
                    thread
                }
                Ok(Turn::Ended(ended)) => {
                    ends.push(ended);
                    break;
                }
                Err(error) => {
                    assert_eq!(
                        error.to_string(),
                        "`unblock` by thread 1: thread 0 is not blocked"
                    );
                    lost += 1;
                    made[1] += 1;
                    Thread(1)
                }
            };
            match (thread.0, made[thread.0]) {
                (0, 0) => execution
                    .announce(thread, Operation::Block)
                    .expect("its turn"),
                (1, 0) => execution
                    .announce(thread, Operation::Unblock(Thread(0)))
                    .expect("its turn"),
                _ => execution.finish_thread(thread).expect("its turn"),
            }
        }
    }
    (lost, ends)
}

#[test]
fn to_unblock_a_thread_that_is_not_blocked_is_an_error_in_the_execution_in_which_it_is_not() {
    let (lost, ends) = wake_ups();
    assert_eq!(lost, 1);
    assert_eq!(ends, [Ended::Complete, Ended::Deadlock(vec![Thread(0)])]);
}

#[test]
fn an_execution_that_is_dropped_ends_the_exploration() {
    let mut engine = engine(1);
    assert!(engine.begin().expect("first").is_some());
    assert!(engine.is_aborted());
    assert_eq!(engine.begin().expect_err("it was dropped"), Misuse::Aborted);
}

#[test]
fn a_program_that_does_not_repeat_itself_is_told() {
    let mut engine = engine(2);
    let mut nth = 0;
    let mut ends = Vec::new();
    while let Some(mut execution) = engine.begin().expect("the one before has ended") {
        nth += 1;
        let mut made = [0; 2];
        let word = nth.min(2);
        ends.push(run(&mut execution, |_, Thread(thread), outcome| {
            made[thread] += usize::from(outcome.is_some());
            match made[thread] {
                0 => Some(WRITE),
                1 => Some(Operation::Store { word, value: 1 }),
                _ => None,
            }
        }));
    }
    assert!(matches!(ends.last(), Some(Ended::Diverged(_))), "{ends:?}");
    assert!(engine.is_aborted());
}

#[test]
fn a_limit_on_events_ends_the_exploration_with_its_value() {
    let short = Builder {
        max_branches: 10,
        ..Builder::new()
    };
    let mut engine = Engine::new(&short, 1).expect("fit settings");
    let mut execution = engine.begin().expect("first").expect("one");
    let ended = loop {
        match execution.turn().expect("a right call") {
            Turn::Ended(ended) => break ended,
            Turn::Begins(thread) | Turn::Ran(thread, _) => {
                execution.announce(thread, WRITE).expect("its turn");
            }
        }
    };
    assert_eq!(ended, Ended::TooManyEvents { limit: 10 });
    assert!(engine.is_aborted());
    assert!(engine.begin().expect("ended").is_none());
}

#[test]
fn a_setting_without_a_meaning_is_refused_by_name() {
    let settings = Builder {
        workers: Some(0),
        ..Builder::new()
    };
    let refused = Engine::new(&settings, 2).expect_err("no worker");
    let text = refused.to_string();
    assert!(
        text.starts_with("`new`: workers = 0 (DPOR_WORKERS)"),
        "{text}"
    );
}

#[test]
fn c11_is_refused_by_name() {
    let weak = Builder {
        memory: Memory::C11,
        ..Builder::new()
    };
    let refused = error(Engine::new(&weak, 1));
    assert!(
        refused.starts_with("`new`: the memory model is C11"),
        "{refused}"
    );
}

#[test]
#[should_panic(expected = "at most 16 kinds of access")]
fn a_relation_has_room_for_so_many_kinds() {
    let _ = Relation::new(17, &[]);
}
