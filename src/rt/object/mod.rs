//! What do operations mean?
//!
//! Every kind of shared object is a pure state machine. It tells whether an operation is
//! [enabled](State::enabled), which [alternatives](State::alternatives) it has, and what its
//! [outcome](State::apply) is. This module knows no schedule, no coroutine and no clock. So the
//! same code gives live closures and abstract programs their meaning, and an explorer can ask what
//! an operation *would* do after another history of its object (`docs/ALGORITHMS.md`, deviation 2).
//!
//! "Blocked" is never stored: it is computed from the state each time.

pub(crate) mod atomic;
pub(crate) mod barrier;
pub(crate) mod channel;
pub(crate) mod condvar;
pub(crate) mod contents;
pub(crate) mod count;
pub(crate) mod machine;
pub(crate) mod mutex;
pub(crate) mod once;
pub(crate) mod orders;
pub(crate) mod rwlock;
pub(crate) mod thread;

#[cfg(test)]
pub(crate) mod obligations;

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{AtomicType, ObjectKind, OpKind, Operation, Outcome};
use crate::rt::relation::independence::{Label, Nature};

/// The state of one object.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum State {
    Atomic { ty: AtomicType, value: u64 },
    Mutex(mutex::Mutex),
    Count { observed: bool, count: u64 },
    Thread { finished: bool },
    Token { available: bool },
    RwLock(rwlock::RwLock),
    Condvar(condvar::Condvar),
    Barrier(barrier::Barrier),
    Once(once::Once),
    Channel(channel::Channel),
    Opaque,
}

/// Marks the [`State::awaited_by`] value of a condition variable; the lower bits are the thread.
const AWAITED_BY: u64 = 1 << 63;

/// The holder of a lock that was held when the execution met it: the guard is older than the model,
/// or was forgotten before the lock was moved here. No thread has this number, and [`State::pack`]
/// has room for it.
pub(crate) const NOBODY: ThreadId = ThreadId((1 << 20) - 2);

impl State {
    /// The state of a new object. `value` is the value of an atomic, the initial value of a count,
    /// the group size of a barrier, the progress of a one-time initialisation, the capacity of a
    /// channel, or the holders of a lock in the form of [`State::visible`]. The other kinds do not
    /// use it.
    pub(crate) fn new(kind: ObjectKind, value: u64) -> State {
        match kind {
            ObjectKind::Atomic(ty) => State::Atomic { ty, value },
            ObjectKind::Mutex => State::Mutex(mutex::Mutex::met(value)),
            ObjectKind::Count { observed } => State::Count {
                observed,
                count: value,
            },
            ObjectKind::Thread => State::Thread { finished: false },
            ObjectKind::Token => State::Token { available: false },
            ObjectKind::RwLock => State::RwLock(rwlock::RwLock::met(value)),
            ObjectKind::Condvar => State::Condvar(condvar::Condvar::default()),
            ObjectKind::Barrier => State::Barrier(barrier::Barrier::new(value as u32)),
            ObjectKind::Once => State::Once(once::Once::from_number(value)),
            ObjectKind::Channel => State::Channel(channel::Channel::new(value)),
            ObjectKind::Opaque => State::Opaque,
        }
    }

    /// Whether dropping the state frees memory.
    pub(crate) fn owns_memory(&self) -> bool {
        match self {
            State::Condvar(_) => true,
            State::Atomic { .. }
            | State::Mutex(_)
            | State::Count { .. }
            | State::Thread { .. }
            | State::Token { .. }
            | State::RwLock(_)
            | State::Barrier(_)
            | State::Once(_)
            | State::Channel(_)
            | State::Opaque => false,
        }
    }

    /// The kind of the object.
    pub(crate) fn kind(&self) -> ObjectKind {
        match *self {
            State::Atomic { ty, .. } => ObjectKind::Atomic(ty),
            State::Mutex(_) => ObjectKind::Mutex,
            State::Count { observed, .. } => ObjectKind::Count { observed },
            State::Thread { .. } => ObjectKind::Thread,
            State::Token { .. } => ObjectKind::Token,
            State::RwLock(_) => ObjectKind::RwLock,
            State::Condvar(_) => ObjectKind::Condvar,
            State::Barrier(_) => ObjectKind::Barrier,
            State::Once(_) => ObjectKind::Once,
            State::Channel(_) => ObjectKind::Channel,
            State::Opaque => ObjectKind::Opaque,
        }
    }

    /// Whether the operation is enabled in this state.
    #[inline]
    pub(crate) fn enabled(&self, thread: ThreadId, kind: &OpKind) -> bool {
        match self {
            State::Atomic { .. } | State::Count { .. } | State::Opaque => true,
            State::Mutex(mutex) => mutex::enabled(*mutex, kind),
            State::Thread { finished } => thread::enabled(*finished, kind),
            State::Token { available } => thread::token_enabled(*available, kind),
            State::RwLock(lock) => rwlock::enabled(*lock, kind),
            State::Condvar(condvar) => condvar::enabled(condvar, thread, kind),
            State::Barrier(barrier) => barrier::enabled(*barrier, kind),
            State::Once(once) => once::enabled(*once, kind),
            State::Channel(channel) => channel::enabled(*channel, kind),
        }
    }

    /// Whether the operation would be enabled in the state that `word` packs.
    #[inline]
    pub(crate) fn enabled_in(&self, word: u64, thread: ThreadId, kind: &OpKind) -> bool {
        match *self {
            // Parks are frequent waits, and the answer needs no unpacked state.
            State::Token { .. } => thread::token_enabled(word != 0, kind),
            _ => self.unpack(word).enabled(thread, kind),
        }
    }

    /// The number of outcomes of the enabled operation, which are numbered from 0.
    #[inline]
    pub(crate) fn alternatives(&self, kind: &OpKind) -> u32 {
        match self {
            State::Atomic { value, .. } => atomic::alternatives(*value, kind),
            State::Condvar(condvar) => condvar::alternatives(condvar, kind),
            State::Mutex(_)
            | State::Count { .. }
            | State::Thread { .. }
            | State::Token { .. }
            | State::RwLock(_)
            | State::Barrier(_)
            | State::Once(_)
            | State::Channel(_)
            | State::Opaque => 1,
        }
    }

    /// Executes the enabled operation.
    #[inline]
    pub(crate) fn apply(&mut self, thread: ThreadId, kind: &OpKind, alternative: u32) -> Outcome {
        fn put<T>(state: &mut T, (new, outcome): (T, Outcome)) -> Outcome {
            *state = new;
            outcome
        }
        match self {
            State::Atomic { ty, value } => {
                put(value, atomic::apply(*ty, *value, kind, alternative))
            }
            State::Mutex(mutex) => put(mutex, mutex::apply(*mutex, thread, kind, alternative)),
            State::Count { count, .. } => put(count, count::apply(*count, kind)),
            State::Thread { finished } => put(finished, thread::apply(*finished, kind)),
            State::Token { available } => put(available, thread::token_apply(*available, kind)),
            State::RwLock(lock) => put(lock, rwlock::apply(*lock, thread, kind)),
            State::Condvar(condvar) => condvar::apply(condvar, thread, kind, alternative),
            State::Barrier(barrier) => put(barrier, barrier::apply(*barrier, kind)),
            State::Once(once) => put(once, once::apply(*once, thread, kind)),
            State::Channel(channel) => put(channel, channel::apply(*channel, kind)),
            State::Opaque => match kind {
                OpKind::Touch(_) => Outcome::Done,
                other => misplaced(other),
            },
        }
    }

    /// The label of an operation on this object with this outcome.
    #[inline]
    pub(crate) fn label(&self, operation: &Operation, outcome: Outcome) -> Label {
        let nature = match self {
            State::Count { observed, .. } => count::nature(*observed),
            State::Channel(channel) => channel.nature(),
            State::Atomic { .. }
            | State::Mutex(_)
            | State::Thread { .. }
            | State::Token { .. }
            | State::RwLock(_)
            | State::Condvar(_)
            | State::Barrier(_)
            | State::Once(_)
            | State::Opaque => Nature::Plain,
        };
        Label::new(operation.object, &operation.kind, outcome, nature)
    }

    /// The state in one word, if it fits; [`State::unpack`] is the inverse.
    #[inline]
    pub(crate) fn pack(&self) -> Option<u64> {
        let thread = |thread: Option<ThreadId>| thread.map_or(0, |t| t.0 as u64 + 1);
        match *self {
            State::Atomic { value, .. } => Some(value),
            State::Mutex(mutex) => Some(mutex.pack()),
            State::Count { count, .. } => Some(count),
            State::Thread { finished } => Some(finished as u64),
            State::Token { available } => Some(available as u64),
            State::RwLock(lock) => {
                let fits = lock.readers < 1 << 12 && thread(lock.writer) < 1 << 20;
                let holders = thread(lock.writer) << 12 | lock.readers as u64;
                fits.then_some((lock.version as u64) << 32 | holders)
            }
            State::Barrier(barrier) => {
                Some((barrier.generation as u64) << 32 | barrier.arrived as u64)
            }
            State::Once(once::Once::Running(by)) => Some(thread(Some(by)) << 2 | 1),
            State::Once(once) => Some(once.number()),
            State::Channel(channel) => channel.pack(),
            State::Condvar(ref condvar) => condvar.pack(),
            State::Opaque => Some(0),
        }
    }

    /// The state of the same object as `self`, unpacked from `word`.
    pub(crate) fn unpack(&self, word: u64) -> State {
        let thread = |word: u64| word.checked_sub(1).map(|t| ThreadId(t as u32));
        match *self {
            State::Atomic { ty, .. } => State::Atomic { ty, value: word },
            State::Mutex(_) => State::Mutex(mutex::Mutex::unpack(word)),
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
            State::RwLock(_) => State::RwLock(rwlock::RwLock {
                writer: thread(word >> 12 & 0xf_ffff),
                readers: (word & 0xfff) as u32,
                version: (word >> 32) as u32,
            }),
            State::Barrier(barrier) => State::Barrier(barrier::Barrier {
                arrived: word as u32,
                generation: (word >> 32) as u32,
                ..barrier
            }),
            State::Once(_) => State::Once(match thread(word >> 2) {
                Some(by) => once::Once::Running(by),
                None => once::Once::from_number(word),
            }),
            State::Channel(channel) => State::Channel(channel.unpack(word)),
            State::Condvar(_) => State::Condvar(condvar::Condvar::unpack(word)),
            State::Opaque => State::Opaque,
        }
    }

    /// The view of a thread that polls the object: a spinning thread waits until this view changes.
    /// No operation that commutes with the look changes the view. Otherwise the thread would both
    /// wait and not wait in the same trace.
    #[inline]
    pub(crate) fn polled(&self) -> u64 {
        match *self {
            // A look tells whether the initialisation is done, but not which thread runs it.
            State::Once(once) => (once == once::Once::Done) as u64,
            State::Count { count, .. } => count::polled(count),
            State::Mutex(mutex) => mutex.polled(),
            State::RwLock(lock) => {
                let written = lock.writer.is_some() as u64;
                let read = (lock.readers > 0) as u64;
                (lock.version as u64) << 2 | read << 1 | written
            }
            State::Atomic { .. }
            | State::Thread { .. }
            | State::Token { .. }
            | State::Condvar(_)
            | State::Barrier(_)
            | State::Channel(_)
            | State::Opaque => self.visible(),
        }
    }

    /// [`State::polled`] for a thread that performs this operation.
    #[inline]
    pub(crate) fn polled_by(&self, kind: &OpKind) -> u64 {
        match *self {
            State::Count { count, .. } => count::polled_by(count, kind),
            _ => self.polled(),
        }
    }

    /// The view of a thread that has waited for the object with a timeout often enough. The thread
    /// waits until this view changes.
    #[cold]
    pub(crate) fn awaited_by(&self, thread: ThreadId) -> u64 {
        match self {
            // Notifications of other threads do not concern this thread, and the number of notified
            // threads may be the same when this thread is notified.
            State::Condvar(_) => AWAITED_BY | thread.0 as u64,
            _ => self.polled(),
        }
    }

    /// Whether the view of a thread that has [polled](State::polled) the object would differ now. A
    /// lock that was free stays the same until its data has been changed, whichever threads have
    /// held it in the meantime. A lock that was held stays the same while it cannot be acquired.
    #[inline]
    pub(crate) fn has_changed(&self, polled: u64) -> bool {
        let now = self.polled();
        match self {
            State::Mutex(_) | State::RwLock(_) => {
                let held = |view: u64| view & 3;
                now >> 2 != polled >> 2
                    || match held(polled) {
                        0 => false,
                        1 => held(now) & 1 == 0,
                        _ => held(now) == 0,
                    }
            }
            State::Condvar(condvar) if polled & AWAITED_BY != 0 => {
                condvar.has_notified(ThreadId(polled as u32))
            }
            State::Count { count, .. } if polled == count::ALIVE => count % count::WEAK == 0,
            _ => now != polled,
        }
    }

    /// The value that the shim's memory holds in this state.
    #[inline]
    pub(crate) fn visible(&self) -> u64 {
        match *self {
            State::Atomic { value, .. } => value,
            State::Mutex(mutex) => mutex.holder.is_some() as u64,
            State::Count { count, .. } => count,
            State::Thread { finished } => finished as u64,
            State::Token { available } => available as u64,
            State::RwLock(lock) if lock.writer.is_some() => u64::MAX,
            State::RwLock(lock) => lock.readers as u64,
            // The set of waiting threads does not matter to other waiting threads.
            State::Condvar(ref condvar) => condvar.notified.len() as u64,
            State::Barrier(barrier) => (barrier.generation as u64) << 32 | barrier.arrived as u64,
            State::Once(once) => once.number(),
            State::Channel(channel) => {
                let ends = (channel.senders == 0) as u64 | (channel.receiver as u64) << 1;
                channel.sent << 34 ^ channel.received << 2 ^ ends
            }
            // Only the program knows the contents.
            State::Opaque => 0,
        }
    }

    /// Whether a shim of this kind with the contents `memory` can be in this state. An atomic that
    /// is used as another type of the same width is still the same atomic.
    #[inline]
    pub(crate) fn may_be(&self, kind: ObjectKind, memory: u64) -> bool {
        match (self, kind) {
            (State::Atomic { ty, value }, ObjectKind::Atomic(other)) => {
                (*ty == other || ty.may_be_seen_as(other)) && *value == memory
            }
            _ => self.kind() == kind && self.agrees(memory),
        }
    }

    /// Whether a shim with the contents `memory` can be in this state.
    fn agrees(&self, memory: u64) -> bool {
        match self {
            State::Barrier(barrier) => barrier.size as u64 == memory.max(1),
            // Their memory does not contain the state. They cannot be replaced while a thread uses
            // them, and an unused one is as good as new.
            State::Condvar(_) | State::Channel(_) | State::Opaque => true,
            State::Atomic { .. }
            | State::Mutex(_)
            | State::Count { .. }
            | State::Thread { .. }
            | State::Token { .. }
            | State::RwLock(_)
            | State::Once(_) => self.visible() == memory,
        }
    }
}

/// An operation reached an object of another kind. Only a mistake in a shim can cause this.
#[cold]
pub(crate) fn misplaced(kind: &OpKind) -> ! {
    panic!("dpor bug: {kind:?} was announced for an object of another kind")
}
