//! A front end that runs the abstract programs of the core's own tests (`rt/engine/testing.rs`) by
//! the public calls alone. It keeps the registers; the engine keeps the words, locks and channels.

use std::collections::BTreeMap;

use super::run;
use crate::config::Builder;
use crate::engine::{Access, Ended, Engine, Execution, Operation, Outcome, Relation, Thread};
use crate::rt::engine::testing::{Ins, Program, Val, key_of};
use crate::rt::event::operation::{ObjectKind, OpKind, Rmw, Touch};
use crate::rt::relation::happens_before::HappensBefore;
use crate::rt::relation::key::{Hashes, TraceKey};

/// The variables of programs for this front end, by what they are.
pub(super) const OBJECTS: u32 = 0;
pub(super) const WORDS: u32 = 1 << 30;
pub(super) const LOCKS: u32 = 2 << 30;
pub(super) const CHANNELS: u32 = 3 << 30;

/// Any variable without its sort.
fn number(var: u32) -> u32 {
    var & (WORDS - 1)
}

/// A program of loads and stores, with words as its variables.
pub(super) fn of_words(mut program: Program) -> Program {
    for ins in program.threads.iter_mut().flatten() {
        if let Ins::Load {
            var: Val::Const(var),
            ..
        }
        | Ins::Store {
            var: Val::Const(var),
            ..
        } = ins
        {
            *var += i64::from(WORDS);
        }
    }
    program
}

#[derive(Clone, Default)]
struct Frame {
    pc: usize,
    regs: [i64; 8],
}

/// A running program.
struct Code<'a> {
    program: &'a Program,
    frames: Vec<Frame>,
}

impl Code<'_> {
    fn get(&self, thread: usize, value: Val) -> i64 {
        match value {
            Val::Const(value) => value,
            Val::Reg(reg) => self.frames[thread].regs[reg as usize],
            Val::Add(reg, value) => self.frames[thread].regs[reg as usize] + value,
        }
    }

    /// Runs the thread up to its next operation, if it has one.
    fn advance(&mut self, thread: usize) -> Option<Operation> {
        loop {
            // Thread 0 of a program spawns the others.
            let code = &self.program.threads[thread + 1];
            let &ins = code.get(self.frames[thread].pc)?;
            let get = |value| self.get(thread, value);
            let var = |value| number(get(value) as u32);
            match ins {
                Ins::Load { var: at, .. } => return Some(Operation::Load { word: var(at) }),
                Ins::Store { var: at, value } => {
                    let value = get(value) as u64;
                    return Some(Operation::Store {
                        word: var(at),
                        value,
                    });
                }
                Ins::Rmw {
                    var, rmw, operand, ..
                } => {
                    let (word, value) = (number(var), get(operand) as u64);
                    return Some(match rmw {
                        Rmw::Add => Operation::Add { word, value },
                        _ => Operation::Swap { word, value },
                    });
                }
                Ins::Cas {
                    var: at,
                    expected,
                    new,
                    ..
                } => {
                    return Some(Operation::CompareExchange {
                        word: var(at),
                        expected: get(expected) as u64,
                        new: get(new) as u64,
                    });
                }
                Ins::Lock(lock) => return Some(Operation::Acquire(var(lock))),
                Ins::TryLock { mutex, .. } => return Some(Operation::TryAcquire(number(mutex))),
                Ins::Unlock(lock) => return Some(Operation::Release(var(lock))),
                Ins::Join(other) => return Some(Operation::Join(Thread(other as usize - 1))),
                Ins::Choose { options, .. } => return Some(Operation::Choose(options)),
                Ins::GiveUp => return Some(Operation::GiveUp),
                Ins::Op { var, kind, .. } => {
                    return Some(match kind {
                        OpKind::Touch(touch) => Operation::Access {
                            object: number(var),
                            access: access(touch),
                        },
                        OpKind::Send => Operation::Send(number(var)),
                        OpKind::Recv { .. } => Operation::Receive(number(var)),
                        other => panic!("{other:?} has no public call"),
                    });
                }
                Ins::Set { to, value } => {
                    self.frames[thread].regs[to as usize] = get(value);
                    self.frames[thread].pc += 1;
                }
                Ins::Unless { reg, value, by } => {
                    let equal = get(Val::Reg(reg)) == get(value);
                    self.frames[thread].pc += if equal { 1 } else { 1 + by as usize };
                }
                other => panic!("{other:?} has no public call"),
            }
        }
    }

    /// The operation of the thread has happened.
    fn happened(&mut self, thread: usize, outcome: Outcome) {
        let frame = &mut self.frames[thread];
        let ins = self.program.threads[thread + 1][frame.pc];
        let value = outcome.value().unwrap_or(0) as i64;
        let ok = !matches!(outcome, Outcome::Failed(_));
        match ins {
            Ins::Load { to, .. } | Ins::Rmw { to, .. } | Ins::Choose { to, .. } => {
                frame.regs[to as usize] = value;
            }
            Ins::Cas { to, .. } | Ins::TryLock { to, .. } | Ins::Op { to, .. } => {
                frame.regs[to as usize] = ok as i64;
            }
            _ => {}
        }
        frame.pc += 1;
    }
}

fn access(touch: Touch) -> Access {
    match touch {
        Touch::All => Access::Write,
        Touch::ReadAll => Access::Read,
        Touch::WeakRead => Access::WeakRead,
        Touch::WeakWrite => Access::WeakWrite,
        Touch::KeyRead(key) => Access::KeyRead(key.number().into()),
        Touch::KeyWrite(key) => Access::KeyWrite(key.number().into()),
        Touch::KeyShape(key) => Access::KeyChange(key.number().into()),
        Touch::ReadKeys => Access::ReadKeys,
        Touch::Declared { number, .. } => Access::Declared(number),
    }
}

/// What an exploration has found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) traces: BTreeMap<TraceKey, u32>,
    pub(super) deadlocks: usize,
    pub(super) given_up: usize,
    pub(super) pruned: u64,
    pub(super) executions: u64,
}

/// Prepares the engine for a program.
pub(super) fn engine(program: &Program, settings: &Builder, relation: &Relation) -> Engine {
    let mut engine = Engine::new(settings, program.threads.len() - 1).expect("fit settings");
    for (&var, &(kind, value)) in &program.kinds {
        match kind {
            ObjectKind::Atomic(_) => engine.set_word(number(var), value).expect("a word"),
            ObjectKind::Opaque if value == 1 => {
                engine.declare(number(var), relation.clone()).expect("new");
            }
            _ => {}
        }
    }
    engine
}

/// Runs one execution to its end.
pub(super) fn execute(program: &Program, execution: &mut Execution<'_>) -> Ended {
    let mut code = Code {
        program,
        frames: vec![Frame::default(); program.threads.len() - 1],
    };
    run(execution, |_, Thread(thread), outcome| {
        if let Some(outcome) = outcome {
            code.happened(thread, outcome);
        }
        code.advance(thread)
    })
}

/// The key of the trace of an execution that has ended; it is that of the core.
pub(super) fn trace_key(execution: &mut Execution<'_>) -> TraceKey {
    let driver = &mut execution.engine.driver;
    let mut clocks = HappensBefore::default();
    driver.trace.place();
    clocks.extend(&driver.trace, &driver.machine.sets);
    let (trace, machine) = (&driver.trace, &driver.machine);
    key_of(&mut Hashes::default(), trace, &clocks, machine)
}

/// Explores a program; the keys are those of the core.
pub(super) fn explore(program: &Program, engine: &mut Engine, record: bool) -> Found {
    let mut found = Found::default();
    while let Some(mut execution) = engine.begin().expect("the execution before has ended") {
        let ended = execute(program, &mut execution);
        match ended {
            Ended::Complete => {}
            Ended::Deadlock(_) => found.deadlocks += 1,
            Ended::GivenUp => found.given_up += 1,
            Ended::Covered => continue,
            other => panic!("{other:?}"),
        }
        if record {
            *found.traces.entry(trace_key(&mut execution)).or_default() += 1;
        }
    }
    found.executions = engine.executions();
    found.pruned = engine.pruned();
    found
}
