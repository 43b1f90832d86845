//! Which operations can a thread announce, and which outcomes can they have?
//!
//! A thread announces an [`Operation`] before it happens; with its [`Outcome`] it becomes an event.
//! Both are closed enums. The matches that give an operation its meaning (`object/mod.rs`), its
//! class (`label.rs`) and what it acquires and releases (`grant.rs`) have no catch-all arm, so that
//! a new operation does not compile until these are decided.

mod atomic;
mod touch;

use std::sync::atomic::Ordering;

use crate::rt::event::id::{ObjectId, ThreadId};
pub(crate) use crate::rt::event::operation::atomic::{
    ADDRESS_BITS, ADDRESS_MIN, AtomicType, Rmw, TASK_AWAITED, TASK_DONE, address_in,
};
pub(crate) use crate::rt::event::operation::touch::{KINDS_MAX, Key, Touch};
#[cfg(feature = "checkpoint")]
use crate::rt::event::ordering::OrderingAs;

/// The kind of an object, which decides the operations on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ObjectKind {
    Atomic(AtomicType),
    Mutex,
    /// A reference count. `observed` says whether the program can see the last release: the payload
    /// has drop glue.
    Count {
        observed: bool,
    },
    Thread,
    Token,
    RwLock,
    Condvar,
    Barrier,
    /// A one-time initialisation.
    Once,
    /// A queue of messages with one receiver.
    Channel,
    /// An object with contents that only its program knows.
    Opaque,
}

/// An operation that a thread announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Operation {
    /// The object of the operation; [`ObjectId::NONE`] if it accesses no shared object.
    pub(crate) object: ObjectId,
    pub(crate) kind: OpKind,
}

/// The question that a choice answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Choice {
    /// A value that the test asks for.
    Value,
    /// Whether the wait that begins then ends spuriously (1), or only for a reason.
    MayWakeUp,
    /// Whether the timed wait that has just ended without a notification ended spuriously (1), or
    /// by its timeout.
    HasWokenUp,
    /// What a read of the clock finds: that no time has passed (0), or that a deadline is over.
    Clock,
    /// A read of the clock finds that time has passed. There is no other outcome, because the loop
    /// around the read would have no end.
    TimePasses,
}

/// The reason why a thread stops in an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Reason {
    /// `assume(false)`.
    Assumed,
    /// `stop()`: the execution ends here, and it is one that counts.
    Stopped,
    /// The thread has made more rounds than the bound allows.
    Rounds,
    /// The thread has looked in vain, and its next action is to look again. `set` and `seen` are
    /// the locations and the values, encoded as in [`OpKind::Wait`]; `changed` says whether a
    /// location has changed during the round.
    InVain { set: u32, seen: u32, changed: bool },
}

/// The verb of an operation, with its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum OpKind {
    // Atomics. Values are the bits of the type, zero-extended.
    Load {
        #[cfg_attr(feature = "checkpoint", serde(with = "OrderingAs"))]
        order: Ordering,
    },
    Store {
        #[cfg_attr(feature = "checkpoint", serde(with = "OrderingAs"))]
        order: Ordering,
        value: u64,
    },
    Rmw {
        #[cfg_attr(feature = "checkpoint", serde(with = "OrderingAs"))]
        order: Ordering,
        rmw: Rmw,
        operand: u64,
        /// Whether the thread does not learn the value before, and nothing else by it, so that two
        /// of these commute if their functions do.
        blind: bool,
    },
    CompareExchange {
        #[cfg_attr(feature = "checkpoint", serde(with = "OrderingAs"))]
        success: Ordering,
        #[cfg_attr(feature = "checkpoint", serde(with = "OrderingAs"))]
        failure: Ordering,
        expected: u64,
        new: u64,
        /// Whether the spurious failure of `compare_exchange_weak` is explored as an alternative.
        spurious: bool,
    },

    // Mutexes. A thread that wakes from a condition variable makes a lock, too.
    Lock,
    TryLock,
    /// `changed` says whether the data may have been changed under the lock.
    Unlock {
        changed: bool,
    },

    // Reference counts.
    Retain,
    /// Drops a reference. If `told`, the program learns whether it was the last one
    /// (`Arc::into_inner`).
    Release {
        told: bool,
    },
    RetainWeak,
    ReleaseWeak,
    /// Makes the first strong reference to a value that only weak references led to
    /// (`Arc::new_cyclic`).
    FirstReference,
    /// Reads both counts without changing them. With `unique` (`get_mut`), a count of one means
    /// that the other references are gone for good; a mere number (`strong_count`) promises
    /// nothing.
    ReadCount {
        unique: bool,
    },
    /// Takes the last reference if it is the only one (`try_unwrap`).
    TakeUnique,
    /// Adds a reference unless the count is zero (`Weak::upgrade`).
    Upgrade,
    /// Adds a reference for a caller with a pointer and no reference
    /// (`Arc::increment_strong_count`), so that the last reference may be dropped before.
    RetainRaw,

    // Threads. The object of the first four operations is the thread's own object.
    Spawn {
        child: ThreadId,
    },
    /// The end of a thread, in models where that is an event
    /// ([`Limits::ends_are_events`](crate::rt::object::machine::Limits)).
    Exit,
    Join {
        child: ThreadId,
    },
    IsFinished,
    Park,
    /// `park_timeout`: takes the token if it is there, and otherwise times out. Both outcomes are
    /// explored, because the unpark may come before or after.
    ParkTimeout,
    /// A wait for a token or at a condition variable ends spuriously. The operation does not access
    /// the object, so it commutes with all operations: if it were possible only while no other
    /// operation has ended the wait, one trace would have two orders.
    EndForNoReason,
    Unpark,

    // Reader-writer locks.
    ReadLock,
    TryRead,
    UnlockRead,
    WriteLock,
    TryWrite,
    UnlockWrite {
        changed: bool,
    },
    /// Makes a write lock a read lock.
    Downgrade,

    // Condition variables. A wait is four events: the thread enters the set of waiters, unlocks the
    // mutex, wakes up, and locks the mutex.
    /// Enters the set of waiters. The set is sorted by `order`, a number of the thread that is the
    /// same in every process.
    Enqueue {
        order: u64,
    },
    /// Leaves the set of waiters after a notification. If `timed`, the wait may also end without
    /// one.
    Awake {
        timed: bool,
    },
    /// Wakes one of the waiters; the exploration tries each of them.
    NotifyOne,
    NotifyAll,

    // Barriers.
    Arrive,
    /// Continues once the group that arrived in this generation is complete.
    Leave {
        generation: u32,
    },

    // One-time initialisations.
    /// Begins the initialisation, or finds it done; waits while another thread initialises. With
    /// `force`, a poisoned initialisation begins again.
    CallOnce {
        force: bool,
    },
    /// Ends the initialisation that this thread has begun.
    EndOnce {
        poison: bool,
    },
    /// Reads whether the initialisation is done.
    CheckOnce,
    /// Waits until the initialisation is done or, unless `force`, poisoned.
    WaitOnce {
        force: bool,
    },

    // Channels.
    /// Puts a message into the queue; waits while the queue is full. With capacity 0 the message is
    /// only offered, and [`OpKind::Taken`] follows.
    Send,
    /// Sends without waiting. With capacity 0 it succeeds if a receiver waits.
    TrySend,
    /// Waits until the `index`-th message has been taken.
    Taken {
        index: u64,
    },
    /// A receiver reaches a channel with capacity 0, where `try_send` can see it.
    RecvWait,
    /// Takes the first message; waits while there is none. If `timed`, the wait may time out.
    Recv {
        timed: bool,
    },
    TryRecv,
    AddSender,
    DropSender,
    /// Drops the receiver. With `discards`, the messages in the queue are dropped, too; with
    /// capacity 0 each sender keeps its own message.
    DropReceiver {
        discards: bool,
    },

    // Objects with unknown contents.
    Touch(Touch),

    // Operations on no shared object.
    /// Chooses one of `options`.
    Choose {
        options: u32,
        what: Choice,
    },
    /// The thread stops in this execution. After `assume(false)` the execution counts as pruned;
    /// the other threads still run on, because a wakeup sequence must span a whole execution
    /// (`docs/ALGORITHMS.md`, deviation 5). A thread that stops for another reason continues once
    /// no explorer explores the execution any further.
    GiveUp {
        why: Reason,
    },
    /// The beginning of a block that is one step: until its end, the thread makes no other event,
    /// and no other thread runs. The accesses in the block are to objects of this footprint, a
    /// number in [`crate::rt::relation::independence::ReadSets`].
    Atomically {
        footprint: u32,
    },
    /// The operation of a thread that was spawned and has not begun. It is no event: when the
    /// explorer picks the thread, its code runs up to its first visible operation.
    Start,
    /// The thread continues with its code behind its last event, after a delay there
    /// ([`Hold`](crate::rt::event::schedule::Hold)). The code between two events takes no time,
    /// unless this operation comes between.
    Resume,
    /// The wait of a spinning thread for a change in the values it has read: `set` is a set of
    /// locations in [`crate::rt::relation::independence::ReadSets`], and their values begin at
    /// `seen` in the execution's record. With `timed`, a wait for such a change instead of another
    /// timeout. With `soon`, the wait of a loop without a hint after a few rounds; without the wait
    /// the loop would make many rounds. With `fair`, the wait is for no change: its thread lets the
    /// other threads run first.
    Wait {
        set: u32,
        seen: u32,
        timed: bool,
        soon: bool,
        fair: bool,
    },
}

impl ObjectKind {
    /// The name of the type: its own name where it has one.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            ObjectKind::Atomic(ty) => ty.name(),
            ObjectKind::Mutex => "Mutex",
            ObjectKind::Count { .. } => "Arc",
            ObjectKind::Thread => "thread",
            ObjectKind::Token => "token",
            ObjectKind::RwLock => "RwLock",
            ObjectKind::Condvar => "Condvar",
            ObjectKind::Barrier => "Barrier",
            ObjectKind::Once => "Once",
            ObjectKind::Channel => "channel",
            ObjectKind::Opaque => "object",
        }
    }
}

impl OpKind {
    /// The ordering of an atomic operation; for a compare-exchange the ordering that belongs to its
    /// outcome.
    pub(crate) const fn ordering(&self, succeeded: bool) -> Option<Ordering> {
        match *self {
            OpKind::Load { order } | OpKind::Store { order, .. } | OpKind::Rmw { order, .. } => {
                Some(order)
            }
            OpKind::CompareExchange { success, .. } if succeeded => Some(success),
            OpKind::CompareExchange { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// Whether an acquisition by another thread, or a change of the values it has read, may have
    /// blocked the operation or made it fail (\[SS\] 8.1).
    pub(crate) const fn may_have_waited(&self) -> bool {
        self.takes_lock()
            || matches!(
                self,
                OpKind::CallOnce { .. }
                    | OpKind::WaitOnce { .. }
                    | OpKind::Send
                    | OpKind::TrySend
                    | OpKind::Park
                    | OpKind::ParkTimeout
                    | OpKind::Wait { .. }
            )
    }

    /// Whether the operation is blocked in some state of its object. Most operations never are, so
    /// mostly no caller has to ask the object.
    #[inline]
    pub(crate) const fn may_have_to_wait(&self) -> bool {
        matches!(
            self,
            OpKind::Lock
                | OpKind::ReadLock
                | OpKind::WriteLock
                | OpKind::Join { .. }
                | OpKind::Park
                | OpKind::Awake { timed: false }
                | OpKind::Leave { .. }
                | OpKind::CallOnce { .. }
                | OpKind::WaitOnce { .. }
                | OpKind::Send
                | OpKind::Recv { timed: false }
                | OpKind::Taken { .. }
                | OpKind::Wait { .. }
                | OpKind::GiveUp { .. }
        )
    }

    /// Whether the operation has several outcomes in some state of its object.
    #[inline]
    pub(crate) const fn may_have_alternatives(&self) -> bool {
        matches!(
            self,
            OpKind::CompareExchange { spurious: true, .. } | OpKind::NotifyOne
        )
    }

    /// Whether the operation has the same label in every state of its object.
    #[inline]
    pub(crate) const fn is_always_alike(&self) -> bool {
        matches!(
            self,
            OpKind::Load { .. }
                | OpKind::Store { .. }
                | OpKind::Rmw { .. }
                | OpKind::Touch(_)
                | OpKind::Atomically { .. }
        )
    }

    /// Whether the operation is on an atomic.
    #[inline]
    pub(crate) const fn is_atomic(&self) -> bool {
        matches!(
            self,
            OpKind::Load { .. }
                | OpKind::Store { .. }
                | OpKind::Rmw { .. }
                | OpKind::CompareExchange { .. }
        )
    }

    /// Whether the operation belongs to the life of a thread (its spawn, its end or a join), has
    /// one possible outcome, and accesses no object but that of the thread.
    #[inline]
    pub(crate) const fn is_of_a_life(&self) -> bool {
        matches!(
            self,
            OpKind::Spawn { .. } | OpKind::Exit | OpKind::Join { .. }
        )
    }

    /// Whether the operation takes a lock with data behind it, or tries to.
    pub(crate) const fn takes_lock(&self) -> bool {
        matches!(
            self,
            OpKind::Lock
                | OpKind::TryLock
                | OpKind::ReadLock
                | OpKind::TryRead
                | OpKind::WriteLock
                | OpKind::TryWrite
        )
    }

    /// Whether the operation makes or drops a reference, as any use of an `Arc` does in passing.
    pub(crate) const fn counts(&self) -> bool {
        matches!(
            self,
            OpKind::Retain
                | OpKind::Release { .. }
                | OpKind::RetainWeak
                | OpKind::ReleaseWeak
                | OpKind::Upgrade
                | OpKind::RetainRaw
        )
    }
}

/// The outcome of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Outcome {
    /// The operation has happened and has no value.
    Done,
    /// For a load or a read-modify-write, the value before; for a choice, the chosen value; for a
    /// count, the number before.
    Value(u64),
    /// A compare-exchange, `try_lock`, `upgrade`, `try_unwrap`, ... has succeeded, with the value
    /// it found.
    Success(u64),
    /// Such an operation has failed, with the value it found.
    Failure(u64),
    /// A [`OpKind::Wait`] was released, because no other thread could run when `quiescent_at`
    /// events had happened. The field is as wide as the other values, so that a processor copies an
    /// outcome in the pieces in which it was written.
    Released { quiescent_at: u64 },
}

impl Outcome {
    /// The value that the operation found, if the outcome has one.
    #[inline]
    pub(crate) fn value(self) -> Option<u64> {
        match self {
            Outcome::Value(value) | Outcome::Success(value) | Outcome::Failure(value) => {
                Some(value)
            }
            Outcome::Done | Outcome::Released { .. } => None,
        }
    }

    /// Whether the operation has succeeded.
    #[inline]
    pub(crate) fn succeeded(self) -> bool {
        match self {
            Outcome::Done | Outcome::Value(_) | Outcome::Success(_) => true,
            Outcome::Failure(_) | Outcome::Released { .. } => false,
        }
    }

    /// Whether the operation is a released wait.
    #[inline]
    pub(crate) fn is_released(self) -> bool {
        matches!(self, Outcome::Released { .. })
    }
}

/// One choice of an explorer: the thread that runs, and the number of its outcome where it has
/// several (a value of `choose`, a spurious failure, a waiter to wake). Zero is the ordinary
/// outcome.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct Step {
    pub(crate) thread: ThreadId,
    pub(crate) alternative: u32,
}

impl Step {
    pub(crate) fn of(thread: ThreadId) -> Step {
        Step {
            thread,
            alternative: 0,
        }
    }
}
