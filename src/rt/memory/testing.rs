//! What is explored in the tests, and what are its graphs for sure?
//!
//! An abstract program is a few threads of a few instructions, written as in litmus tests: `W x 1
//! rel` stores, `a=R x acq` loads, `a=A x 1 ar` adds, `a=X x 1 sc` swaps, `a=C x 0 1 acq rlx` is a
//! strong compare-exchange (orderings of success and failure), `a=V x 0 1 acq rlx` a weak one, `F
//! sc` a fence; without an ordering an access is relaxed. `await y==0 acq` is a loop that waits,
//! `a=again R x` a load that waits for a newer store than the one that its thread has met last, `L
//! m` takes a spin lock, `K m` locks a mutex, `U m` unlocks it, `a=T m` tries to lock it and reads
//! its word (0 if it succeeds, 1 if it fails), `D c` writes plain data, `?a==1 OP` and `?a!=0 { OP;
//! OP }` are conditional. Threads are separated by `∥`. [`brute_force`] adds any step with any
//! outcome, memoised on the graph.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::Ordering;

use super::c11::{Axioms, C11};
use super::graph::Graph;
use super::search::Program;
use super::{Access, MemoryModel, Outcome, StoreRef, Until};
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{self, AtomicType, Rmw};
use crate::rt::memory::operation::{OpKind, Operation};
use crate::rt::object::State;
use crate::rt::object::mutex::Mutex;

/// A value that is stored.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Value {
    Is(u64),
    /// What is in this register, and so much more.
    In(usize, u64),
}

/// What a loop waits for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Awaited {
    /// This value.
    Is(Value),
    /// A newer store than the one that the thread has met last.
    Newer,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Ins {
    /// An access. Its operands may be registers. What is read goes into the register `to`.
    Do {
        object: ObjectId,
        kind: OpKind,
        operand: Value,
        until: Option<Awaited>,
        to: Option<usize>,
    },
    /// Uses plain data.
    Data(usize),
    /// Skips so many instructions unless the register equals the value, or does not.
    Unless {
        register: usize,
        is_equal: bool,
        value: u64,
        by: usize,
    },
}

/// An abstract program.
#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct Litmus {
    pub(super) threads: Vec<Vec<Ins>>,
    pub(super) objects: Vec<String>,
    /// Those of the objects that are mutexes.
    mutexes: Vec<ObjectId>,
    pub(super) data: Vec<String>,
    /// The names of the registers. Each belongs to one thread.
    pub(super) registers: Vec<String>,
    pub(super) text: String,
}

fn number<T: Into<String> + AsRef<str>>(names: &mut Vec<String>, name: T) -> usize {
    let known = names.iter().position(|known| known == name.as_ref());
    known.unwrap_or_else(|| {
        names.push(name.into());
        names.len() - 1
    })
}

fn order(word: Option<&&str>) -> Ordering {
    match word.copied() {
        None | Some("rlx") => Ordering::Relaxed,
        Some("acq") => Ordering::Acquire,
        Some("rel") => Ordering::Release,
        Some("ar") => Ordering::AcqRel,
        Some("sc") => Ordering::SeqCst,
        Some(other) => panic!("no ordering is called {other}"),
    }
}

/// The instructions of a block, which `;` separates outside of braces.
fn instructions(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    let trimmed = parts.into_iter().map(str::trim);
    trimmed.filter(|part| !part.is_empty()).collect()
}

impl Litmus {
    /// The program that is written so.
    pub(super) fn parse(text: &str) -> Litmus {
        let mut program = Litmus {
            text: text.to_owned(),
            ..Litmus::default()
        };
        for thread in text.split('∥') {
            let mut code = Vec::new();
            program.block(thread, &mut code);
            program.threads.push(code);
        }
        program
    }

    fn value(&mut self, word: &str) -> Value {
        if let Ok(value) = word.parse() {
            return Value::Is(value);
        }
        let (name, more) = word.split_once('+').unwrap_or((word, "0"));
        let more = more.parse().expect("a number");
        Value::In(number(&mut self.registers, name), more)
    }

    fn object(&mut self, word: &str) -> ObjectId {
        ObjectId(number(&mut self.objects, word) as u32)
    }

    fn mutex(&mut self, word: &str) -> ObjectId {
        let mutex = self.object(word);
        if !self.mutexes.contains(&mutex) {
            self.mutexes.push(mutex);
        }
        mutex
    }

    /// The model, which knows the mutexes.
    pub(super) fn model(&self, axioms: Axioms) -> C11 {
        let mut model = C11::new(self.begin(), axioms);
        self.introduce(&mut model);
        model
    }

    /// Introduces the mutexes to a model.
    pub(super) fn introduce(&self, model: &mut C11) {
        for &mutex in &self.mutexes {
            model.meet(mutex, &State::Mutex(Mutex::default()));
        }
    }

    fn block(&mut self, text: &str, code: &mut Vec<Ins>) {
        for part in instructions(text) {
            self.instruction(part, code);
        }
    }

    fn instruction(&mut self, text: &str, code: &mut Vec<Ins>) {
        if let Some(text) = text.strip_prefix('?') {
            let (condition, rest) = text
                .split_once(' ')
                .expect("a condition and what it guards");
            let (name, value, is_equal) = match condition.split_once("==") {
                Some((name, value)) => (name, value, true),
                None => {
                    let (name, value) = condition.split_once("!=").expect("== or !=");
                    (name, value, false)
                }
            };
            let register = number(&mut self.registers, name);
            let value = value.parse().expect("a number");
            let at = code.len();
            code.push(Ins::Data(usize::MAX));
            let rest = rest.trim();
            let inner = rest
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'));
            self.block(inner.unwrap_or(rest), code);
            let by = code.len() - at - 1;
            code[at] = Ins::Unless {
                register,
                is_equal,
                value,
                by,
            };
            return;
        }
        let (to, text) = match text.split_once(['=']) {
            Some((to, rest)) if !to.contains(' ') => {
                (Some(number(&mut self.registers, to.trim())), rest.trim())
            }
            _ => (None, text),
        };
        let (is_again, text) = match text.strip_prefix("again ") {
            Some(text) => (true, text),
            None => (false, text),
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let none = Value::Is(0);
        let (object, kind, operand, until) = match words[0] {
            "W" => {
                let operand = self.value(words[2]);
                let order = order(words.get(3));
                let kind = OpKind::Store { order, value: 0 };
                (self.object(words[1]), kind, operand, None)
            }
            "R" => {
                let order = order(words.get(2));
                (self.object(words[1]), OpKind::Load { order }, none, None)
            }
            "A" | "X" => {
                let operand = self.value(words[2]);
                let kind = OpKind::Rmw {
                    order: order(words.get(3)),
                    rmw: if words[0] == "A" { Rmw::Add } else { Rmw::Swap },
                    operand: 0,
                };
                (self.object(words[1]), kind, operand, None)
            }
            "C" | "V" => {
                let operand = self.value(words[3]);
                let kind = OpKind::CompareExchange {
                    success: order(words.get(4)),
                    failure: order(words.get(5)),
                    expected: words[2].parse().expect("a number"),
                    new: 0,
                    spurious: words[0] == "V",
                };
                (self.object(words[1]), kind, operand, None)
            }
            "L" => {
                let kind = OpKind::CompareExchange {
                    success: order(words.get(2)),
                    failure: Ordering::Relaxed,
                    expected: 0,
                    new: 0,
                    spurious: false,
                };
                let until = Some(Awaited::Is(Value::Is(0)));
                (self.object(words[1]), kind, Value::Is(1), until)
            }
            "K" => {
                let kind = OpKind::Other(operation::OpKind::Lock);
                (self.mutex(words[1]), kind, none, None)
            }
            "U" => {
                let kind = OpKind::Other(operation::OpKind::Unlock { changed: false });
                (self.mutex(words[1]), kind, none, None)
            }
            "T" => (self.mutex(words[1]), OpKind::TryLock, none, None),
            "await" => {
                let (name, value) = words[1].split_once("==").expect("a location and a value");
                let order = order(words.get(2));
                let until = Some(Awaited::Is(self.value(value)));
                (self.object(name), OpKind::Load { order }, none, until)
            }
            "F" => {
                let order = order(words.get(1));
                (ObjectId::NONE, OpKind::Fence { order }, none, None)
            }
            "S" | "J" => {
                let child = ThreadId(words[1].parse().expect("the number of a thread"));
                let kind = match words[0] {
                    "S" => OpKind::Spawn { child },
                    _ => OpKind::Join { child },
                };
                (ObjectId::NONE, kind, none, None)
            }
            "D" => {
                let cell = number(&mut self.data, words[1]);
                code.push(Ins::Data(cell));
                return;
            }
            other => panic!("no instruction is called {other} in {text}"),
        };
        let until = if is_again {
            Some(Awaited::Newer)
        } else {
            until
        };
        code.push(Ins::Do {
            object,
            kind,
            operand,
            until,
            to,
        });
    }

    /// The same program with every access and fence that is at all ordered as `SeqCst`.
    pub(super) fn strengthened(&self) -> Litmus {
        let mut program = self.clone();
        for ins in program.threads.iter_mut().flatten() {
            let Ins::Do { kind, .. } = ins else { continue };
            match kind {
                OpKind::Load { order }
                | OpKind::Store { order, .. }
                | OpKind::Rmw { order, .. }
                | OpKind::Fence { order } => *order = Ordering::SeqCst,
                OpKind::CompareExchange {
                    success, failure, ..
                } => (*success, *failure) = (Ordering::SeqCst, Ordering::SeqCst),
                _ => {}
            }
        }
        program
    }

    /// Runs a thread as far as its events have come: what it does next, what is in its registers,
    /// and each use of plain data with the number of events before it.
    fn run(
        &self,
        graph: &Graph,
        thread: ThreadId,
    ) -> (Option<Access>, Registers, Vec<(usize, u32)>) {
        let mut registers: Registers = vec![None; self.registers.len()];
        let mut uses = Vec::new();
        let mut events = graph.positions_of(thread).iter();
        let mut made = 0;
        let code = &self.threads[thread.index()];
        let mut at = 0;
        while let Some(ins) = code.get(at) {
            at += 1;
            match *ins {
                Ins::Data(cell) => uses.push((cell, made)),
                Ins::Unless {
                    register,
                    is_equal,
                    value,
                    by,
                } => {
                    let is = registers[register].unwrap_or(0);
                    if (is == value) != is_equal {
                        at += by;
                    }
                }
                Ins::Do {
                    object,
                    kind,
                    operand,
                    until,
                    to,
                } => {
                    let Some(&event) = events.next() else {
                        let value = |of: Value| match of {
                            Value::Is(value) => value,
                            Value::In(register, more) => registers[register].unwrap_or(0) + more,
                        };
                        let kind = with_operand(kind, value(operand));
                        let access = Access {
                            until: until.map(|until| match until {
                                Awaited::Is(of) => Until::Is(value(of)),
                                Awaited::Newer => Until::Newer(graph.met_last(thread, object)),
                            }),
                            ..Access::of(Operation { object, kind })
                        };
                        return (Some(access), registers, uses);
                    };
                    made += 1;
                    if let Some(to) = to {
                        registers[to] = Some(graph.at(event).read);
                    }
                }
            }
        }
        (None, registers, uses)
    }

    /// Whether another thread spawns this one.
    fn is_spawned(&self, thread: ThreadId) -> bool {
        let mut all = self.threads.iter().flatten();
        all.any(
            |ins| matches!(ins, Ins::Do { kind: OpKind::Spawn { child }, .. } if *child == thread),
        )
    }

    fn has_ended(&self, graph: &Graph, thread: ThreadId) -> bool {
        let has_begun = !self.is_spawned(thread) || graph.spawn_of(thread).is_some();
        has_begun && self.run(graph, thread).0.is_none()
    }

    /// What the registers of all threads hold, as `a=0 b=1`.
    pub(super) fn registers(&self, graph: &Graph) -> String {
        let mut words = Vec::new();
        for thread in graph.threads() {
            let values = self.run(graph, thread).1.into_iter();
            let named = values.zip(&self.registers);
            words.extend(named.filter_map(|(value, name)| Some(format!("{name}={}", value?))));
        }
        words.sort();
        words.join(" ")
    }

    /// Whether two uses of plain data are not ordered.
    pub(super) fn has_race(&self, graph: &Graph) -> bool {
        let uses: Vec<(ThreadId, usize, u32)> = graph
            .threads()
            .flat_map(|thread| {
                let uses = self.run(graph, thread).2;
                uses.into_iter()
                    .map(move |(cell, made)| (thread, cell, made))
            })
            .collect();
        // The use of `b` knows an event of `a`'s thread that comes behind the use of `a`.
        let is_before = |a: (ThreadId, usize, u32), b: (ThreadId, usize, u32)| {
            let last =
                b.2.checked_sub(1)
                    .map(|last| graph.positions_of(b.0)[last as usize]);
            last.is_some_and(|last| graph.known(last)[a.0.index()] > a.2)
        };
        uses.iter().any(|&a| {
            uses.iter()
                .any(|&b| a.0 < b.0 && a.1 == b.1 && !is_before(a, b) && !is_before(b, a))
        })
    }
}

/// What is in each register that the thread has read something into.
type Registers = Vec<Option<u64>>;

fn with_operand(kind: OpKind, is: u64) -> OpKind {
    match kind {
        OpKind::Store { order, .. } => OpKind::Store { order, value: is },
        OpKind::Rmw { order, rmw, .. } => OpKind::Rmw {
            order,
            rmw,
            operand: is,
        },
        OpKind::CompareExchange {
            success,
            failure,
            expected,
            spurious,
            ..
        } => OpKind::CompareExchange {
            success,
            failure,
            expected,
            new: is,
            spurious,
        },
        other => other,
    }
}

impl Program for Litmus {
    fn begin(&self) -> Graph {
        let mut graph = Graph::new(self.threads.len());
        for object in (0..self.objects.len() as u32).map(ObjectId) {
            match self.mutexes.contains(&object) {
                true => graph.declare_other(),
                false => graph.declare(AtomicType::U64, 0),
            };
        }
        graph
    }

    fn next(&self, graph: &Graph, thread: ThreadId) -> Option<Access> {
        if self.is_spawned(thread) && graph.spawn_of(thread).is_none() {
            return None;
        }
        let access = self.run(graph, thread).0?;
        match access.operation.kind {
            OpKind::Join { child } if !self.has_ended(graph, child) => None,
            _ => Some(access),
        }
    }
}

/// What makes a graph another one than others of the same program: what each event reads and how it
/// came out, and the modification orders.
pub(super) type Key = u128;

pub(super) fn key(graph: &Graph) -> Key {
    let mut words = Vec::with_capacity(4 * graph.len() + 8);
    let name = |store: StoreRef| (u64::from(store.thread) << 32) | u64::from(store.index);
    for thread in graph.threads() {
        words.push(u64::MAX);
        for &position in graph.positions_of(thread) {
            words.push(match graph.at(position).outcome {
                Outcome::Done => 1 << 60,
                Outcome::Reads(store) => name(store),
                Outcome::Modifies(store) => name(store) ^ (1 << 61),
                Outcome::Other { alternative, .. } => 3 << 60 | u64::from(alternative),
                Outcome::Behind(_) => 2 << 60,
            });
        }
    }
    for object in graph.objects() {
        words.push(u64::MAX - 1);
        words.extend(
            graph
                .stores(object)
                .iter()
                .map(|&store| name(graph.at(store).name())),
        );
    }
    let mut key: Key = 0x6a09_e667_f3bc_c908_b2fb_1366_ea95_7d3e;
    for word in words {
        key ^= Key::from(word);
        key = key.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b) ^ (key >> 61);
        key = key.rotate_left(47).wrapping_add(key >> 9);
    }
    key
}

/// The graphs of a program.
#[derive(Default)]
pub(super) struct Found {
    /// How often each was found.
    pub(super) graphs: HashMap<Key, u32>,
    pub(super) registers: BTreeSet<String>,
    /// In how many of them uses of plain data race.
    pub(super) races: usize,
    /// How many steps were tried, the same ones in other orders included.
    pub(super) prefixes: usize,
}

impl Found {
    pub(super) fn add(&mut self, program: &Litmus, graph: &Graph) {
        let times = self.graphs.entry(key(graph)).or_default();
        *times += 1;
        if *times == 1 {
            self.registers.insert(program.registers(graph));
            self.races += usize::from(program.has_race(graph));
        }
    }

    pub(super) fn keys(&self) -> BTreeSet<Key> {
        self.graphs.keys().copied().collect()
    }
}

/// What is shown the next operation of each thread.
type Look<'a, M> = &'a mut dyn FnMut(&mut M, &[(ThreadId, Option<Access>)]);

/// Every graph of the program, by adding any step with any outcome; `None` if there are more than
/// so many graphs with all their prefixes. Each prefix is shown to `look` with each thread's next
/// operation.
pub(super) fn brute_force<M: MemoryModel>(
    program: &Litmus,
    model: &mut M,
    most: usize,
    look: Look<'_, M>,
) -> Option<Found> {
    let mut found = Found::default();
    let mut seen = HashSet::new();
    grow(program, model, most, look, &mut seen, &mut found).then(|| {
        found.prefixes = seen.len();
        found
    })
}

fn grow<M: MemoryModel>(
    program: &Litmus,
    model: &mut M,
    most: usize,
    look: Look<'_, M>,
    seen: &mut HashSet<Key>,
    found: &mut Found,
) -> bool {
    if !seen.insert(key(model.graph())) {
        return true;
    }
    if seen.len() > most {
        return false;
    }
    let threads = model.graph().threads();
    let next: Vec<(ThreadId, Option<Access>)> = threads
        .map(|thread| (thread, program.next(model.graph(), thread)))
        .collect();
    look(model, &next);
    let mut is_maximal = true;
    let mut outcomes = Vec::new();
    for &(thread, access) in &next {
        let Some(access) = access else { continue };
        model.outcomes(thread, &access, &mut outcomes);
        for outcome in std::mem::take(&mut outcomes) {
            is_maximal = false;
            model.take(thread, &access, outcome);
            let goes_on = grow(program, model, most, look, seen, found);
            model.undo();
            if !goes_on {
                return false;
            }
        }
    }
    if is_maximal {
        found.add(program, model.graph());
    }
    true
}
