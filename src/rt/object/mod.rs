//! What do operations mean?
//!
//! Every kind of shared object is a pure state machine: whether an operation is
//! [enabled](State::enabled), which [alternatives](State::alternatives) it has, and what
//! [comes of it](State::apply). Nothing here knows a schedule, a coroutine or a clock, so the same
//! code gives live closures and abstract programs their meaning, and lets an explorer ask what an
//! operation *would* do after another history of its object (EXPLORATION, trap 1).
//!
//! "Blocked" is never stored: it is asked of the state each time.

pub(crate) mod atomic;
pub(crate) mod count;
pub(crate) mod machine;
pub(crate) mod mutex;
pub(crate) mod spin;
pub(crate) mod thread;

#[cfg(test)]
mod obligations;

use super::trace::dependency::Label;
use super::trace::id::ThreadId;
use super::trace::operation::{AtomicType, ObjectKind, OpKind, Operation, Outcome};

/// The state of one object.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum State {
    Atomic { ty: AtomicType, value: u64 },
    Mutex(mutex::Mutex),
    Count { observed: bool, count: u64 },
    Thread { finished: bool },
    Token { available: bool },
}

impl State {
    /// The state of a new object. `value` is what an atomic holds, what a count starts from; the
    /// other kinds have no use for it.
    pub(crate) fn new(kind: ObjectKind, value: u64) -> State {
        match kind {
            ObjectKind::Atomic(ty) => State::Atomic { ty, value },
            ObjectKind::Mutex => State::Mutex(mutex::Mutex::default()),
            ObjectKind::Count { observed } => State::Count {
                observed,
                count: value,
            },
            ObjectKind::Thread => State::Thread { finished: false },
            ObjectKind::Token => State::Token { available: false },
        }
    }

    /// What kind of object this is the state of.
    pub(crate) fn kind(&self) -> ObjectKind {
        match *self {
            State::Atomic { ty, .. } => ObjectKind::Atomic(ty),
            State::Mutex(_) => ObjectKind::Mutex,
            State::Count { observed, .. } => ObjectKind::Count { observed },
            State::Thread { .. } => ObjectKind::Thread,
            State::Token { .. } => ObjectKind::Token,
        }
    }

    /// Whether the operation can happen now.
    pub(crate) fn enabled(&self, _thread: ThreadId, kind: &OpKind) -> bool {
        match self {
            State::Atomic { .. } | State::Count { .. } => true,
            State::Mutex(mutex) => mutex::enabled(*mutex, kind),
            State::Thread { finished } => thread::enabled(*finished, kind),
            State::Token { available } => thread::token_enabled(*available, kind),
        }
    }

    /// How many outcomes the enabled operation has now; they are numbered from 0.
    pub(crate) fn alternatives(&self, kind: &OpKind) -> u32 {
        match self {
            State::Atomic { value, .. } => atomic::alternatives(*value, kind),
            State::Mutex(_) | State::Count { .. } | State::Thread { .. } | State::Token { .. } => 1,
        }
    }

    /// Executes the enabled operation.
    pub(crate) fn apply(&mut self, thread: ThreadId, kind: &OpKind, alternative: u32) -> Outcome {
        match self {
            State::Atomic { ty, value } => {
                let (new, outcome) = atomic::apply(*ty, *value, kind, alternative);
                *value = new;
                outcome
            }
            State::Mutex(mutex) => {
                let (new, outcome) = mutex::apply(*mutex, thread, kind);
                *mutex = new;
                outcome
            }
            State::Count { count, .. } => {
                let (new, outcome) = count::apply(*count, kind);
                *count = new;
                outcome
            }
            State::Thread { finished } => {
                let (new, outcome) = thread::apply(*finished, kind);
                *finished = new;
                outcome
            }
            State::Token { available } => {
                let (new, outcome) = thread::token_apply(*available, kind);
                *available = new;
                outcome
            }
        }
    }

    /// The label of an operation on this object that ended like this.
    pub(crate) fn label(&self, operation: &Operation, outcome: Outcome) -> Label {
        let observed = match self {
            State::Count { observed, .. } => *observed,
            State::Atomic { .. } | State::Mutex(_) | State::Thread { .. } | State::Token { .. } => {
                false
            }
        };
        Label::new(operation.object, &operation.kind, outcome, observed)
    }

    /// The state in one word, if it fits; [`State::unpack`] is the way back.
    pub(crate) fn pack(&self) -> Option<u64> {
        match *self {
            State::Atomic { value, .. } => Some(value),
            State::Mutex(mutex) => Some(mutex.holder.map_or(0, |holder| holder.0 as u64 + 1)),
            State::Count { count, .. } => Some(count),
            State::Thread { finished } => Some(finished as u64),
            State::Token { available } => Some(available as u64),
        }
    }

    /// The state of the same object as `self` that was packed as `word`.
    pub(crate) fn unpack(&self, word: u64) -> State {
        match *self {
            State::Atomic { ty, .. } => State::Atomic { ty, value: word },
            State::Mutex(_) => State::Mutex(mutex::Mutex {
                holder: word.checked_sub(1).map(|holder| ThreadId(holder as u32)),
            }),
            State::Count { observed, .. } => State::Count {
                observed,
                count: word,
            },
            State::Thread { .. } => State::Thread {
                finished: word != 0,
            },
            State::Token { .. } => State::Token {
                available: word != 0,
            },
        }
    }

    /// What a thread sees that polls the object: a spinning thread waits until this changes.
    pub(crate) fn visible(&self) -> u64 {
        match *self {
            State::Atomic { value, .. } => value,
            State::Mutex(mutex) => mutex.holder.is_some() as u64,
            State::Count { count, .. } => count,
            State::Thread { finished } => finished as u64,
            State::Token { available } => available as u64,
        }
    }
}

/// An operation reached an object of another kind, which only a shim's mistake can do.
#[cold]
pub(crate) fn misplaced(kind: &OpKind) -> ! {
    panic!("dpor bug: {kind:?} was announced for an object of another kind")
}
