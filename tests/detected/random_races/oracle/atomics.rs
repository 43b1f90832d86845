//! What do operations on atomics see and do?

use super::super::program::Op;
use super::{Access, Memory, State};

/// The number of the atomic that holds a pointer to what was made: whether there is one.
const POINTER: usize = 2;

/// The number of the one that holds a pointer to the stack of a thread: which thread's, or 0.
const TO_STACK: usize = 3;

impl Op {
    /// What an operation on an atomic, or an access to memory, touches.
    pub(super) fn memory(self) -> Option<Memory> {
        match self {
            Op::Load(atomic, _)
            | Op::Store(atomic, ..)
            | Op::Add(atomic, _)
            | Op::Swap(atomic, ..)
            | Op::Exchange(atomic, ..)
            | Op::Update(atomic, _)
            | Op::PlainRead(atomic)
            | Op::PlainWrite(atomic) => Some(Memory::Atomic(atomic)),
            Op::Publish(_) | Op::Follow(..) | Op::Take(_) => Some(Memory::Atomic(POINTER)),
            Op::Show(_) | Op::Look(..) => Some(Memory::Atomic(TO_STACK)),
            Op::Read(cell) | Op::Write(cell) => Some(Memory::Cell(cell)),
            _ => None,
        }
    }
}

impl State<'_> {
    /// Performs an operation on an atomic.
    pub(super) fn operate(&mut self, me: usize, op: Op) {
        match op {
            Op::Load(atomic, order) => {
                self.history.load(me, atomic, order);
                self.note(me, atomic, false);
                self.seen[me] = self.values[atomic];
            }
            Op::Store(atomic, value, order) => {
                self.history.store(me, atomic, order);
                self.note(me, atomic, true);
                self.values[atomic] = value;
            }
            Op::Add(atomic, order) => {
                self.history.read_modify_write(me, atomic, order);
                self.note(me, atomic, true);
                self.seen[me] = self.values[atomic];
                self.values[atomic] += 1;
            }
            Op::Swap(atomic, value, order) => {
                self.history.read_modify_write(me, atomic, order);
                self.note(me, atomic, true);
                self.seen[me] = std::mem::replace(&mut self.values[atomic], value);
            }
            Op::Exchange(atomic, [expected, new], [success, failure]) => {
                let succeeds = self.values[atomic] == expected;
                match succeeds {
                    true => self.history.read_modify_write(me, atomic, success),
                    false => self.history.load(me, atomic, failure),
                }
                self.note(me, atomic, succeeds);
                self.seen[me] = self.values[atomic];
                if succeeds {
                    self.values[atomic] = new;
                }
            }
            Op::Update(atomic, [success, failure]) => {
                let value = self.values[atomic];
                let found = self.loaded[me].replace(value);
                let succeeds = found == Some(value);
                match succeeds {
                    true => self.history.read_modify_write(me, atomic, success),
                    false => self.history.load(me, atomic, failure),
                }
                self.note(me, atomic, succeeds);
                match succeeds {
                    true => {
                        self.loaded[me] = None;
                        self.seen[me] = value;
                        self.values[atomic] += 1;
                    }
                    // It is not done.
                    false => self.next[me] -= 1,
                }
            }
            Op::Publish(order) => {
                self.access(me, Memory::Made, true);
                self.history.store(me, POINTER, order);
                self.values[POINTER] = 1;
            }
            Op::Follow(order, writes) => {
                self.history.load(me, POINTER, order);
                if self.values[POINTER] == 1 {
                    self.access(me, Memory::Made, writes);
                }
            }
            Op::Take(order) => {
                self.history.read_modify_write(me, POINTER, order);
                if std::mem::take(&mut self.values[POINTER]) == 1 {
                    self.access(me, Memory::Made, true);
                    self.gone.push(Memory::Made);
                }
            }
            Op::Show(order) => {
                self.history.store(me, TO_STACK, order);
                self.values[TO_STACK] = me;
            }
            Op::Look(order, writes) => {
                self.history.load(me, TO_STACK, order);
                let thread = self.values[TO_STACK];
                if thread > 0 && thread != me {
                    self.access(me, Memory::Stack(thread), writes);
                }
            }
            other => unreachable!("{other:?} is none of these"),
        }
    }

    /// The last event has accessed this atomic.
    fn note(&mut self, me: usize, atomic: usize, writes: bool) {
        let event = self.history.last(me).expect("it has just happened");
        self.compare(Access {
            memory: Memory::Atomic(atomic),
            writes,
            is_atomic: true,
            thread: me,
            event,
        });
    }
}
