//! How do tests explore programs without any thread or stack?
//!
//! An abstract program is a list of threads, each a list of instructions over a few registers. The
//! interpreter uses the same machine and the same loop as a live closure, so five lines can show a
//! wrong count. [`brute_force`] enumerates all executions, memoised on the trace of the prefix, and
//! is the oracle.

pub(crate) mod programs;
#[cfg(test)]
pub(crate) mod reference;
mod search;

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) use crate::rt::engine::testing::search::{
    ALGORITHMS, Found, ORDERS, brute_force, count, driver, driver_up_to, explore_on, explore_up_to,
    explore_with, explorer, key_of, order, run, stats,
};

#[cfg(test)]
pub(crate) use crate::rt::engine::testing::search::{brute_force_by, final_states};

use crate::rt::event::Site;
use crate::rt::event::id::{ObjectId, Place, Region, ThreadId};
use crate::rt::event::operation::{
    AtomicType, Choice, ObjectKind, OpKind, Operation, Outcome, Reason, Rmw, Touch,
};
use crate::rt::object::State;
use crate::rt::object::contents::{Digest, Effect, Update};
use crate::rt::object::machine::Machine;
use crate::rt::relation::independence::Footprint;

/// A value an instruction uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Val {
    Const(i64),
    Reg(u8),
    /// A register plus a constant.
    Add(u8, i64),
}

/// One instruction. `to` is the register that gets the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ins {
    Load {
        var: Val,
        to: u8,
    },
    Store {
        var: Val,
        value: Val,
    },
    Rmw {
        var: u32,
        rmw: Rmw,
        operand: Val,
        to: u8,
    },
    Cas {
        var: Val,
        expected: Val,
        new: Val,
        weak: bool,
        to: u8,
    },
    Lock(Val),
    TryLock {
        mutex: u32,
        to: u8,
    },
    Unlock(Val),
    Retain(u32),
    Release(u32),
    ReadCount {
        count: u32,
        to: u8,
    },
    TakeUnique {
        count: u32,
        to: u8,
    },
    Upgrade {
        count: u32,
        to: u8,
    },
    Spawn(u32),
    Join(u32),
    IsFinished {
        thread: u32,
        to: u8,
    },
    Park,
    ParkTimeout {
        to: u8,
    },
    Unpark(u32),
    /// Any other operation on an object. `to` gets 1 if it succeeded.
    Op {
        var: u32,
        kind: OpKind,
        to: u8,
    },
    /// Enters the waiters of a condition variable.
    Enqueue(u32),
    /// Sends a message; `to` gets its number, or -1 if there is no receiver.
    Send {
        var: u32,
        to: u8,
    },
    /// Sends a message with this value.
    Push {
        var: u32,
        value: Val,
    },
    /// Receives a message, and waits for one if `waits`; `to` gets its value, or -1 if there is
    /// none.
    Pop {
        var: u32,
        waits: bool,
        to: u8,
    },
    /// Applies a function to a value that only the program knows; `to` gets its result.
    Update {
        var: u32,
        function: Function,
        to: u8,
    },
    /// Waits until the message with the number in a register is taken.
    Taken {
        var: u32,
        reg: u8,
    },
    /// Arrives at a barrier; `to` gets the generation, or -1 for the leader.
    Arrive {
        var: u32,
        to: u8,
    },
    /// Leaves the barrier of the generation in a register.
    Leave {
        var: u32,
        reg: u8,
    },
    Choose {
        options: u32,
        to: u8,
    },
    GiveUp,
    /// Begins a block that is one step, over these variables and no others: those that it only
    /// reads, and those that it may write. The bits are the variables below 64. Without any, the
    /// block may touch everything.
    Begin {
        reads: u64,
        writes: u64,
    },
    /// Ends the block.
    End,
    /// A spin hint.
    Hint,
    /// A register operation.
    Set {
        to: u8,
        value: Val,
    },
    /// Skips `by` instructions if the register does not hold the value.
    Unless {
        reg: u8,
        value: Val,
        by: u8,
    },
    /// Goes `by` instructions back if the register does not hold the value.
    BackUnless {
        reg: u8,
        value: Val,
        by: u8,
    },
    Jump(i8),
}

/// The values that there have been in any execution, by their digests.
fn known() -> MutexGuard<'static, BTreeMap<u128, i64>> {
    static KNOWN: Mutex<BTreeMap<u128, i64>> = Mutex::new(BTreeMap::new());
    KNOWN.lock().expect("no thread has panicked")
}

/// A function of a value that only the program knows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Function {
    /// Returns the value.
    Get,
    /// Adds, and returns nothing.
    Add(i64),
    /// Adds, and returns the sum.
    Next(i64),
    /// Appends a digit, and returns nothing.
    Append(i64),
    /// Puts the larger one of the digits at this place and the next one at this place, and returns
    /// nothing.
    Order(u32),
}

impl Function {
    /// The value afterwards, and the result.
    pub(crate) fn apply(self, value: i64) -> (i64, i64) {
        match self {
            Function::Get => (value, value),
            Function::Add(by) => (value + by, 0),
            Function::Next(by) => (value + by, value + by),
            Function::Append(digit) => (value * 10 + digit, 0),
            Function::Order(place) => {
                let (low, high) = (10i64.pow(place), 10i64.pow(place + 1));
                let (one, other) = (value / low % 10, value / high % 10);
                let rest = value - one * low - other * high;
                let (one, other) = (one.max(other), one.min(other));
                (rest + one * low + other * high, 0)
            }
        }
    }

    /// What the function does to contents with a digest, if there has been a value with it.
    fn update(self) -> Update {
        Update(Arc::new(move |before| {
            let value = *known().get(&before.0)?;
            Some(self.effect(value))
        }))
    }

    fn effect(self, value: i64) -> Effect {
        let (after, result) = self.apply(value);
        let (contents, told) = (Digest::of(&after), Digest::of(&result));
        known().insert(contents.0, after);
        Effect { contents, told }
    }
}

/// A program: its threads' instructions, and the kinds and initial values of its variables.
/// Thread 0 is the main thread; the others exist once spawned. If no thread spawns anything, the
/// main thread has no instructions of its own and all others start with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) threads: Vec<Vec<Ins>>,
    pub(crate) kinds: BTreeMap<u32, (ObjectKind, u64)>,
    pub(crate) spin_bound: u32,
    /// The number of rounds with a change after which loops let the other threads go first, if they
    /// do.
    pub(crate) rounds_of_turn: Option<usize>,
    /// Whether the ends of threads are events even if no thread looks for one.
    pub(crate) ends_are_events: bool,
    /// The seed of the orderings of accesses to atomics, and of fences between them. Without one
    /// all accesses are `SeqCst`, and there is no fence.
    pub(crate) orderings: Option<u64>,
    /// Whether these fences are left out.
    pub(crate) has_no_fences: bool,
}

pub(crate) const ATOMIC: ObjectKind = ObjectKind::Atomic(AtomicType::I64);

impl Program {
    /// Whether the ends of threads are events.
    fn has_ends(&self) -> bool {
        let mut all = self.threads.iter().flatten();
        self.ends_are_events || all.any(|ins| matches!(ins, Ins::IsFinished { .. }))
    }

    /// Threads that all exist from the start, over atomics that hold 0.
    pub(crate) fn of(threads: Vec<Vec<Ins>>) -> Program {
        let mut all = vec![(1..=threads.len() as u32).map(Ins::Spawn).collect()];
        all.extend(threads);
        Program {
            threads: all,
            ..Program::default()
        }
    }

    /// The program, one thread per line.
    pub(crate) fn listing(&self) -> String {
        let threads = self.threads.iter().map(|code| format!("  {code:?}\n"));
        let kinds = format!("  {:?}, spin_bound {}", self.kinds, self.spin_bound);
        threads.chain([kinds]).collect()
    }

    pub(crate) fn with(mut self, var: u32, kind: ObjectKind, value: u64) -> Program {
        self.kinds.insert(var, (kind, value));
        self
    }
}

impl Program {
    /// A number by chance for this instruction, below `most`; 0 without orderings by chance.
    fn chance(&self, (thread, pc): (usize, usize), what: u64, most: u64) -> u64 {
        let Some(seed) = self.orderings else { return 0 };
        let mut bits = seed ^ (thread as u64) << 40 ^ (pc as u64) << 20 ^ what << 10;
        for _ in 0..3 {
            bits = (bits ^ bits >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        (bits >> 33) % most
    }

    /// The ordering of a load; of a failed compare-exchange, too.
    fn load_order(&self, at: (usize, usize)) -> Ordering {
        [SeqCst, Acquire, Relaxed, Relaxed][self.chance(at, 1, 4) as usize]
    }

    fn store_order(&self, at: (usize, usize)) -> Ordering {
        [SeqCst, Release, Relaxed, Relaxed][self.chance(at, 2, 4) as usize]
    }

    fn rmw_order(&self, at: (usize, usize)) -> Ordering {
        [SeqCst, AcqRel, Acquire, Release, Relaxed, Relaxed][self.chance(at, 3, 6) as usize]
    }

    /// The fence before an instruction, if there is one.
    fn fence(&self, at: (usize, usize)) -> Option<Ordering> {
        if self.has_no_fences {
            return None;
        }
        let fences = [
            None,
            None,
            None,
            None,
            Some(SeqCst),
            Some(SeqCst),
            Some(Acquire),
        ];
        let more = [Some(Release), Some(AcqRel)];
        let all = fences.iter().chain(&more);
        *all.clone().nth(self.chance(at, 4, 9) as usize)?
    }
}

/// The code state of a running abstract program.
#[derive(Clone, Debug)]
struct Code {
    /// The fences that threads have made and the caller has not taken.
    fences: Vec<(ThreadId, Ordering)>,
    /// For each thread of the program its name in this execution, once spawned.
    ids: Vec<Option<ThreadId>>,
    threads: Vec<Frame>,
    /// The values that only the program knows.
    values: BTreeMap<u32, i64>,
    /// The values of the messages that were sent, by their numbers.
    messages: BTreeMap<(u32, u64), i64>,
}

/// The threads' registers and the objects' values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Final {
    threads: Vec<Frame>,
    objects: Vec<(u32, State)>,
    values: Vec<(u32, i64)>,
    messages: Vec<((u32, u64), i64)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Frame {
    pc: usize,
    regs: [i64; 8],
    exiting: bool,
}

fn site() -> Site {
    Location::caller()
}

/// One site for each of a few threads.
fn site_of(thread: usize) -> Site {
    let all = [
        Location::caller(),
        Location::caller(),
        Location::caller(),
        Location::caller(),
    ];
    all[thread % all.len()]
}

impl Code {
    fn new(program: &Program) -> Code {
        let mut ids = vec![None; program.threads.len()];
        ids[0] = Some(ThreadId::MAIN);
        Code {
            fences: Vec::new(),
            ids,
            threads: vec![Frame::default(); program.threads.len()],
            values: BTreeMap::new(),
            messages: BTreeMap::new(),
        }
    }

    fn value(&self, thread: usize, value: Val) -> i64 {
        match value {
            Val::Const(value) => value,
            Val::Reg(reg) => self.threads[thread].regs[reg as usize],
            Val::Add(reg, value) => self.threads[thread].regs[reg as usize] + value,
        }
    }

    fn var(&self, program: &Program, machine: &mut Machine, var: u32) -> ObjectId {
        let (kind, value) = program.kinds.get(&var).copied().unwrap_or((ATOMIC, 0));
        let place = Place {
            region: Region::Abstract(var),
            generation: 0,
        };
        machine.object_at(place, kind, value)
    }

    /// Runs the thread's local instructions, and announces its next visible operation.
    fn advance(&mut self, program: &Program, machine: &mut Machine, thread: usize) {
        let Some(id) = self.ids[thread] else { return };
        loop {
            let pc = self.threads[thread].pc;
            let Some(&ins) = program.threads[thread].get(pc) else {
                if self.threads[thread].exiting {
                    return;
                }
                self.threads[thread].exiting = true;
                if !machine.limits.learnt.ends_are_events {
                    machine.end(id);
                    return;
                }
                let object = machine.thread_object(id);
                let operation = Operation {
                    object,
                    kind: OpKind::Exit,
                };
                machine.announce(id, &operation, site());
                return;
            };
            let at = (thread, pc);
            if let Some(order) = program.fence(at) {
                self.fences.push((id, order));
            }
            let get = |value| self.value(thread, value);
            let bits = |value| get(value) as u64;
            let index = |value| get(value) as u32;
            let (var, kind) = match ins {
                Ins::Load { var, .. } => {
                    let order = program.load_order(at);
                    (index(var), OpKind::Load { order })
                }
                Ins::Store { var, value } => {
                    let value = bits(value);
                    let order = program.store_order(at);
                    (index(var), OpKind::Store { order, value })
                }
                Ins::Rmw {
                    var, rmw, operand, ..
                } => {
                    let operand = bits(operand);
                    let kind = OpKind::Rmw {
                        order: program.rmw_order(at),
                        rmw,
                        operand,
                        blind: false,
                    };
                    (var, kind)
                }
                Ins::Cas {
                    var,
                    expected,
                    new,
                    weak,
                    ..
                } => {
                    let kind = OpKind::CompareExchange {
                        success: program.rmw_order(at),
                        failure: program.load_order(at),
                        expected: bits(expected),
                        new: bits(new),
                        spurious: weak,
                    };
                    (index(var), kind)
                }
                Ins::Lock(mutex) => (index(mutex), OpKind::Lock),
                Ins::TryLock { mutex, .. } => (mutex, OpKind::TryLock),
                Ins::Unlock(mutex) => (index(mutex), OpKind::Unlock { changed: true }),
                Ins::Retain(count) => (count, OpKind::Retain),
                Ins::Release(count) => (count, OpKind::Release { told: false }),
                Ins::ReadCount { count, .. } => (count, OpKind::ReadCount { unique: true }),
                Ins::TakeUnique { count, .. } => (count, OpKind::TakeUnique),
                Ins::Upgrade { count, .. } => (count, OpKind::Upgrade),
                Ins::Op { var, kind, .. } => (var, kind),
                Ins::Enqueue(var) => {
                    let order = machine.names.order(id);
                    (var, OpKind::Enqueue { order })
                }
                Ins::Send { var, .. } | Ins::Push { var, .. } => (var, OpKind::Send),
                Ins::Pop { var, waits, .. } => match waits {
                    true => (var, OpKind::Recv { timed: false }),
                    false => (var, OpKind::TryRecv),
                },
                Ins::Update { var, function, .. } => {
                    let object = self.var(program, machine, var);
                    let met = Digest::of(&0i64);
                    known().insert(met.0, 0);
                    machine.updates.met.insert(object, met);
                    let number = (id, machine.events_of(id));
                    let update = function.update();
                    machine.updates.announced.insert(number, update);
                    (var, OpKind::Touch(Touch::All))
                }
                Ins::Taken { var, reg } => {
                    let index = bits(Val::Reg(reg));
                    (var, OpKind::Taken { index })
                }
                Ins::Arrive { var, .. } => (var, OpKind::Arrive),
                Ins::Leave { var, reg } => {
                    let generation = self.threads[thread].regs[reg as usize] as u32;
                    (var, OpKind::Leave { generation })
                }
                Ins::Spawn(_) => {
                    let child = machine.next_child(id);
                    let object = machine.thread_object(child);
                    let kind = OpKind::Spawn { child };
                    machine.announce(id, &Operation { object, kind }, site());
                    return;
                }
                Ins::Join(other) | Ins::IsFinished { thread: other, .. } => {
                    let other = self.ids[other as usize].expect("joins a thread that exists");
                    let object = machine.thread_object(other);
                    let kind = match ins {
                        Ins::Join(_) => OpKind::Join { child: other },
                        _ => OpKind::IsFinished,
                    };
                    machine.announce(id, &Operation { object, kind }, site());
                    return;
                }
                Ins::Park | Ins::ParkTimeout { .. } | Ins::Unpark(_) => {
                    let (whose, kind) = match ins {
                        Ins::Park => (id, OpKind::Park),
                        Ins::Unpark(other) => {
                            let other = self.ids[other as usize];
                            (other.expect("unparks a thread that exists"), OpKind::Unpark)
                        }
                        _ => (id, OpKind::ParkTimeout),
                    };
                    let object = machine.token_object(whose);
                    machine.announce(id, &Operation { object, kind }, site());
                    return;
                }
                Ins::Choose { options, .. } => {
                    let kind = OpKind::Choose {
                        options,
                        what: Choice::Value,
                    };
                    let object = ObjectId::NONE;
                    machine.announce(id, &Operation { object, kind }, site());
                    return;
                }
                Ins::GiveUp => {
                    let why = Reason::Assumed;
                    let kind = OpKind::GiveUp { why };
                    let object = ObjectId::NONE;
                    machine.announce(id, &Operation { object, kind }, site());
                    return;
                }
                Ins::Begin { reads, writes } => {
                    let footprint = self.footprint(program, machine, (reads, writes));
                    let footprint = machine.sets.intern_footprint(footprint);
                    let kind = OpKind::Atomically { footprint };
                    let object = ObjectId::NONE;
                    machine.announce(id, &Operation { object, kind }, site());
                    return;
                }
                Ins::End => {
                    let held = machine.end_block();
                    assert_eq!(held, None, "a lock across the end of a block");
                    self.threads[thread].pc += 1;
                    continue;
                }
                Ins::Hint => {
                    // One site per hint of the program, so that the log can tell them apart.
                    self.threads[thread].pc += 1;
                    match machine.hint(id, site()) {
                        Some(operation) => {
                            self.threads[thread].pc -= 1;
                            machine.announce(id, &operation, site());
                            return;
                        }
                        None => continue,
                    }
                }
                Ins::Set { to, value } => {
                    let value = get(value);
                    self.threads[thread].regs[to as usize] = value;
                    self.threads[thread].pc += 1;
                    continue;
                }
                Ins::Unless { reg, value, by } => {
                    let equal = get(Val::Reg(reg)) == get(value);
                    self.threads[thread].pc += if equal { 1 } else { 1 + by as usize };
                    continue;
                }
                Ins::BackUnless { reg, value, by } => {
                    let equal = get(Val::Reg(reg)) == get(value);
                    let frame = &mut self.threads[thread];
                    frame.pc = if equal { pc + 1 } else { pc - by as usize };
                    continue;
                }
                Ins::Jump(by) => {
                    self.threads[thread].pc = (pc as i64 + by as i64) as usize;
                    continue;
                }
            };
            let object = self.var(program, machine, var);
            let operation = Operation { object, kind };
            if machine.open_block().is_some() {
                let inside = machine.perform_inside(&operation);
                let (outcome, _) = inside.expect("a part of the block");
                self.take_result(program, machine, id, outcome);
                continue;
            }
            machine.announce(id, &operation, site_of(thread));
            return;
        }
    }

    /// The footprint of the variables with these bits.
    fn footprint(
        &self,
        program: &Program,
        machine: &mut Machine,
        (reads, writes): (u64, u64),
    ) -> Footprint {
        if reads | writes == 0 {
            return Footprint::Everything;
        }
        let vars = (0..64u32).filter(|var| (reads | writes) >> var & 1 == 1);
        let all = vars.map(|var| (self.var(program, machine, var), writes >> var & 1 == 1));
        Footprint::of(all.collect())
    }

    /// The index of this thread in the program.
    fn index(&self, id: ThreadId) -> usize {
        let mut ids = self.ids.iter();
        ids.position(|&t| t == Some(id)).expect("a known thread")
    }

    /// Begins the thread's code.
    fn begin(&mut self, program: &Program, machine: &mut Machine, id: ThreadId) {
        self.advance(program, machine, self.index(id));
    }

    /// Continues the thread's code behind its announced step, which has happened.
    fn happened(&mut self, program: &Program, machine: &mut Machine, id: ThreadId, out: Outcome) {
        let thread = self.index(id);
        if self.threads[thread].exiting {
            return;
        }
        let ins = self.take_result(program, machine, id, out);
        if let Ins::Spawn(child) = ins {
            let before = self.threads[thread].pc - 1;
            let nth = program.threads[thread][..before]
                .iter()
                .filter(|i| matches!(i, Ins::Spawn(_)))
                .count() as u32;
            self.ids[child as usize] = Some(machine.names.child(id, nth + 1));
        }
        self.advance(program, machine, thread);
    }

    /// Takes over the outcome of the thread's instruction, and returns the instruction.
    fn take_result(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        id: ThreadId,
        out: Outcome,
    ) -> Ins {
        let thread = self.index(id);
        let frame = &mut self.threads[thread];
        let ins = program.threads[thread][frame.pc];
        let found = out.value().unwrap_or(0) as i64;
        let ok = out.succeeded() as i64;
        let result = match ins {
            Ins::Push { var, value } => {
                let value = match value {
                    Val::Const(value) => value,
                    Val::Reg(reg) => frame.regs[reg as usize],
                    Val::Add(reg, value) => frame.regs[reg as usize] + value,
                };
                if ok == 1 {
                    self.messages.insert((var, found as u64), value);
                }
                None
            }
            Ins::Pop { var, to, .. } => {
                let taken = self.messages.remove(&(var, found as u64));
                Some((to, taken.filter(|_| ok == 1).unwrap_or(-1)))
            }
            Ins::Update { var, function, to } => {
                let value = self.values.entry(var).or_insert(0);
                let effect = function.effect(*value);
                let number = (id, machine.events_of(id) - 1);
                machine.updates.made.insert(number, effect);
                let result;
                (*value, result) = function.apply(*value);
                Some((to, result))
            }
            Ins::Load { to, .. } | Ins::Rmw { to, .. } | Ins::Choose { to, .. } => {
                Some((to, found))
            }
            Ins::ReadCount { to, .. } | Ins::IsFinished { to, .. } => Some((to, found)),
            Ins::Cas { to, .. } | Ins::TryLock { to, .. } | Ins::ParkTimeout { to } => {
                Some((to, ok))
            }
            Ins::Op {
                kind: OpKind::Release { .. },
                to,
                ..
            } => Some((to, (found == 1) as i64)),
            Ins::TakeUnique { to, .. } | Ins::Upgrade { to, .. } | Ins::Op { to, .. } => {
                Some((to, ok))
            }
            Ins::Send { to, .. } => Some((to, if ok == 1 { found } else { -1 })),
            Ins::Arrive { to, .. } if found as u32 == 1 => Some((to, -1)),
            Ins::Arrive { to, .. } => Some((to, found >> 32)),
            _ => None,
        };
        if let Some((to, value)) = result {
            frame.regs[to as usize] = value;
        }
        frame.pc += 1;
        ins
    }

    /// The results of the program.
    fn final_state(&self, machine: &Machine) -> Final {
        let values = machine.objects().iter();
        let values = values.filter_map(|&object| match machine.names.place(object).region {
            Region::Abstract(var) => Some((var, machine.state(object).clone())),
            _ => None,
        });
        let mut objects: Vec<_> = values.collect();
        objects.sort_by_key(|&(var, _)| var);
        Final {
            threads: self.threads.clone(),
            objects,
            values: self
                .values
                .iter()
                .map(|(&var, &value)| (var, value))
                .collect(),
            messages: self
                .messages
                .iter()
                .map(|(&at, &value)| (at, value))
                .collect(),
        }
    }
}
