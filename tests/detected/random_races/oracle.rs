//! Has a program a data race?
//!
//! Every interleaving is made, one after the other, and in each of them every access to plain memory is compared with
//! all earlier ones. What a thread does for itself alone (an access, a fence, a step that it does not take) is done at
//! once, because nobody else can tell when.

mod atomics;
mod primitives;

use super::happens_before::{Events, History};
use super::program::{Op, Program, Step};
use primitives::Primitives;

/// Why a thread does not go on.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Ready,
    /// Until somebody notifies it.
    InWait,
    /// Until somebody notifies it, or its time is over.
    InTimedWait,
    /// Until it has the mutex again.
    Notified,
    /// Until its group is complete.
    AtBarrier,
    /// Until the message with this number is taken, or nobody takes any more.
    Sending(usize),
    /// Until it is spawned.
    Unborn,
    Ended,
}

/// What is accessed: one of the cells, what a thread has made and published, what it has on its stack, or an atomic.
#[derive(Clone, Copy, PartialEq)]
enum Memory {
    Cell(usize),
    Made,
    Stack(usize),
    Atomic(usize),
}

/// An access to memory.
#[derive(Clone, Copy)]
struct Access {
    memory: Memory,
    writes: bool,
    is_atomic: bool,
    thread: usize,
    event: usize,
}

/// An execution so far.
#[derive(Clone)]
struct State<'p> {
    program: &'p Program,
    history: History,
    accesses: Vec<Access>,
    /// Of each thread which step is next, what it has seen last, and why it waits.
    next: Vec<usize>,
    seen: Vec<usize>,
    stages: Vec<Stage>,
    values: [usize; 4],
    /// What the `fetch_update` of each thread has found.
    loaded: Vec<Option<usize>>,
    freed_by: Option<usize>,
    /// What else is there no more.
    gone: Vec<Memory>,
    primitives: Primitives,
    /// Whether two accesses race, or one comes after a free.
    is_wrong: bool,
}

/// Whether some interleaving of the program has a data race or a use after a free. `None` if there may be more than
/// `interleavings`.
pub fn is_racy(program: &Program, mut interleavings: usize) -> Option<bool> {
    search(State::new(program), &mut interleavings)
}

fn search(mut state: State<'_>, left: &mut usize) -> Option<bool> {
    state.settle();
    if state.is_wrong {
        return Some(true);
    }
    let mut goes_on = false;
    for thread in 0..state.program.threads.len() {
        for choice in 0..state.choices(thread) {
            goes_on = true;
            let mut after = state.clone();
            after.step(thread, choice);
            if search(after, left)? {
                return Some(true);
            }
        }
    }
    if !goes_on {
        *left = left.checked_sub(1)?;
    }
    Some(false)
}

impl<'p> State<'p> {
    fn new(program: &'p Program) -> State<'p> {
        let threads = program.threads.len();
        let mut history = History::new();
        // The first thread writes all memory and spawns the others.
        let begin = history.add(0, 0);
        let spawner = |thread| program.spawner(thread);
        let stages = (0..threads).map(|thread| match spawner(thread) {
            Some(_) => Stage::Unborn,
            None => Stage::Ready,
        });
        let stages: Vec<Stage> = stages.collect();
        let at_first = (1..threads).filter(|&thread| spawner(thread).is_none());
        let mut state = State {
            program,
            history,
            accesses: Vec::new(),
            next: vec![0; threads],
            seen: vec![0; threads],
            stages,
            values: [0; 4],
            loaded: vec![None; threads],
            freed_by: None,
            gone: Vec::new(),
            primitives: Primitives::new(program),
            is_wrong: false,
        };
        for thread in at_first {
            state.begin(thread, 1 << begin);
        }
        state
    }

    /// A thread begins, behind these events.
    fn begin(&mut self, thread: usize, spawned: Events) {
        self.event(thread, spawned);
        self.stages[thread] = Stage::Ready;
        if self.shows(thread) {
            self.access(thread, Memory::Stack(thread), true);
        }
    }

    /// Whether others may have a pointer to the stack of this thread.
    fn shows(&self, thread: usize) -> bool {
        let mut steps = self.program.threads[thread].iter();
        thread > 0 && steps.any(|step| matches!(step.op, Op::Show(_)))
    }

    /// The operation that `thread` is at, if it takes the step.
    fn op(&self, thread: usize) -> Option<Option<Op>> {
        let &Step { only_after, op } = self.program.threads[thread].get(self.next[thread])?;
        let is_taken = only_after.is_none_or(|value| value == self.seen[thread]);
        Some(is_taken.then_some(op))
    }

    /// Every thread does what concerns only itself.
    fn settle(&mut self) {
        for thread in 0..self.program.threads.len() {
            while self.stages[thread] == Stage::Ready {
                match self.op(thread) {
                    None if self.end_is_seen(thread) => break,
                    None => self.end(thread),
                    Some(Some(op)) if !self.is_local(thread, op) => break,
                    Some(op) => {
                        self.next[thread] += 1;
                        if let Some(op) = op {
                            self.do_alone(thread, op);
                        }
                    }
                }
            }
        }
    }

    /// Whether nobody else can tell when this happens.
    fn is_local(&self, thread: usize, op: Op) -> bool {
        match op {
            // Who has freed it does not use it any more.
            op if self.freed_by == Some(thread) && self.is_in_block(op) => true,
            Op::Show(_) => thread == 0,
            Op::Load(..)
            | Op::Store(..)
            | Op::Add(..)
            | Op::Swap(..)
            | Op::Exchange(..)
            | Op::Update(..)
            | Op::Publish(_)
            | Op::Follow(..)
            | Op::Take(_)
            | Op::Look(..) => false,
            Op::Fence(_) | Op::Read(_) | Op::Write(_) | Op::Free | Op::AtEnd(_) => true,
            Op::PlainRead(_) | Op::PlainWrite(_) => true,
            Op::Spawn(_) => true,
            // Nothing is there that it could be done to.
            _ => !self.applies(thread, op),
        }
    }

    fn do_alone(&mut self, thread: usize, op: Op) {
        match op {
            op if self.freed_by == Some(thread) && self.is_in_block(op) => {}
            Op::Fence(order) => self.history.fence(thread, order),
            Op::Read(cell) => self.access(thread, Memory::Cell(cell), false),
            Op::Write(cell) => self.access(thread, Memory::Cell(cell), true),
            Op::PlainRead(atomic) => self.access(thread, Memory::Atomic(atomic), false),
            Op::PlainWrite(atomic) => self.access(thread, Memory::Atomic(atomic), true),
            Op::Free => self.free(thread),
            Op::Spawn(_) => self.apply(thread, op, 0),
            Op::AtEnd(cell) if thread > 0 => self.primitives.at_end[thread].push(cell),
            _ => {}
        }
    }

    /// Whether it is done to something in the block that may be freed.
    fn is_in_block(&self, op: Op) -> bool {
        op.memory().is_some_and(|memory| self.is_block(memory))
    }

    fn is_block(&self, memory: Memory) -> bool {
        memory == Memory::Cell(0) || memory == Memory::Atomic(1) && self.program.inside
    }

    fn free(&mut self, thread: usize) {
        self.access(thread, Memory::Cell(0), true);
        if self.program.inside {
            self.access(thread, Memory::Atomic(1), true);
        }
        self.freed_by = Some(thread);
    }

    /// A plain access.
    fn access(&mut self, thread: usize, memory: Memory, writes: bool) {
        let event = self.history.add(thread, 0);
        self.compare(Access {
            memory,
            writes,
            is_atomic: false,
            thread,
            event,
        });
    }

    /// Whether this access is one too many.
    fn compare(&mut self, access: Access) {
        // [intro.races] 21.
        let races = |other: &Access| {
            other.memory == access.memory
                && (access.writes || other.writes)
                && !(access.is_atomic && other.is_atomic)
                && other.thread != access.thread
                && !self.history.happens_before(other.event, access.event)
        };
        let is_late = self.gone.contains(&access.memory)
            || self.freed_by.is_some() && self.is_block(access.memory);
        self.is_wrong |= is_late || self.accesses.iter().any(races);
        self.accesses.push(access);
    }

    /// Whether the end of a thread is a step by itself, because another one can look for it.
    fn end_is_seen(&self, thread: usize) -> bool {
        self.program.has(|op| op == Op::IsFinished(thread))
    }

    fn end(&mut self, thread: usize) {
        for cell in std::mem::take(&mut self.primitives.at_end[thread]) {
            self.access(thread, Memory::Cell(cell), true);
        }
        if self.shows(thread) {
            self.access(thread, Memory::Stack(thread), true);
            self.gone.push(Memory::Stack(thread));
        }
        self.stages[thread] = Stage::Ended;
    }

    /// In how many ways `thread` can go on; none if it waits.
    fn choices(&self, thread: usize) -> usize {
        match self.stages[thread] {
            Stage::Ended | Stage::InWait | Stage::AtBarrier | Stage::Unborn => 0,
            Stage::InTimedWait => 1,
            Stage::Sending(message) => self.primitives.is_over(message).into(),
            Stage::Notified => self.primitives.mutex_is_free().into(),
            Stage::Ready => match self.op(thread) {
                None => 1,
                Some(op) => self.ways(thread, op.expect("what is not done was settled")),
            },
        }
    }

    /// `thread` goes on, in the way with this number.
    fn step(&mut self, thread: usize, choice: usize) {
        if self.stages[thread] == Stage::Notified {
            self.stages[thread] = Stage::Ready;
            return self.lock(thread);
        }
        if self.stages[thread] == Stage::InTimedWait {
            self.seen[thread] = 0;
            self.stages[thread] = Stage::Notified;
            return;
        }
        if let Stage::Sending(message) = self.stages[thread] {
            self.stages[thread] = Stage::Ready;
            return self.has_sent(thread, message);
        }
        let Some(op) = self.op(thread) else {
            return self.end(thread);
        };
        let op = op.expect("what is not done was settled");
        self.next[thread] += 1;
        match op.memory() {
            Some(_) => self.operate(thread, op),
            None => self.apply(thread, op, choice),
        }
    }

    /// An event by `thread` that synchronises with these others, as a set.
    fn event(&mut self, thread: usize, others: Events) -> Events {
        1 << self.history.add(thread, others)
    }
}
