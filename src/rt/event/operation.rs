//! What can a thread be about to do, and what can come of it?
//!
//! An [`Operation`] is announced before it happens; with its [`Outcome`] it becomes an event. Both
//! are closed enums without a catch-all arm anywhere, so that a new operation does not compile
//! until its meaning (`rt/object`) and its row in the relation (`dependency.rs`) are decided.

mod atomic;

use std::sync::atomic::Ordering;

use crate::rt::event::id::{ObjectId, ThreadId};
pub(crate) use crate::rt::event::operation::atomic::{
    ADDRESS_BITS, ADDRESS_MIN, AtomicType, Rmw, TASK_AWAITED, TASK_DONE, address_in,
};

/// What an object is, which decides the operations it takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ObjectKind {
    Atomic(AtomicType),
    Mutex,
    /// A reference count. `observed` says whether the last release can be seen by the program: the
    /// payload has drop glue.
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
}

/// What a thread is about to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Operation {
    /// The object it does it to; [`ObjectId::NONE`] for an operation on nothing shared.
    pub(crate) object: ObjectId,
    pub(crate) kind: OpKind,
}

/// What is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Choice {
    /// A value that the test asks for.
    Value,
    /// Whether the wait that begins then ends for no reason (1), or only for one.
    MayWakeUp,
    /// Whether the timed wait that has just ended without a notification did so for no reason (1),
    /// or because its time is over.
    HasWokenUp,
}

/// Why a thread goes no further in an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// `assume(false)`.
    Assumed,
    /// It has made more rounds than the bound says.
    Rounds,
    /// It has looked in vain, and what it does then is to look again. What it has looked at is
    /// written as in [`OpKind::Wait`]; `changed` says whether some of it has changed while it
    /// looked.
    InVain { set: u32, seen: u32, changed: bool },
}

/// The verb of an operation, with its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OpKind {
    // Atomics. Values are the bits of the type, zero-extended.
    Load {
        order: Ordering,
    },
    Store {
        order: Ordering,
        value: u64,
    },
    Rmw {
        order: Ordering,
        rmw: Rmw,
        operand: u64,
    },
    CompareExchange {
        success: Ordering,
        failure: Ordering,
        expected: u64,
        new: u64,
        /// Whether the failure that `compare_exchange_weak` may report for no reason is explored
        /// as an alternative.
        spurious: bool,
    },

    // Mutexes. A lock is also what a thread does that wakes from a condition variable.
    Lock,
    TryLock,
    /// `changed` says whether the data may have been changed meanwhile.
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
    /// Makes the first reference to what only weak ones led to (`Arc::new_cyclic`).
    FirstReference,
    /// Reads both counts without changing them. If it is for being `unique` (`get_mut`), one
    /// reference means that the others are gone for good; a mere number (`strong_count`) promises
    /// nothing.
    ReadCount {
        unique: bool,
    },
    /// Takes the last reference if there is only one (`try_unwrap`).
    TakeUnique,
    /// Adds a reference unless there is none left (`Weak::upgrade`).
    Upgrade,
    /// Adds a reference for who has a pointer and not a reference (`Arc::increment_strong_count`),
    /// so that nothing keeps the last one from being dropped before.
    RetainRaw,

    // Threads. The object of the first four is the thread's own one.
    Spawn {
        child: ThreadId,
    },
    /// The end of a thread, where that is an event
    /// ([`Limits::ends_are_events`](crate::rt::object::machine::Limits)).
    Exit,
    Join {
        child: ThreadId,
    },
    IsFinished,
    Park,
    /// `park_timeout`: takes the token if it is there, and otherwise times out. Both are explored
    /// because the unpark may come before or after.
    ParkTimeout,
    /// A wait for a token or at a condition variable ends for no reason. It leaves the object
    /// alone, so it commutes with everything: if it only did so where nothing else had ended the
    /// wait, that would be two orders of one trace.
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

    // Condition variables. A wait is four events: to enter the set of waiters, to unlock the mutex,
    // to be awake again, and to lock the mutex.
    /// Enters the set of waiters. `order` is a number that the thread has in every process, by
    /// which the set is sorted.
    Enqueue {
        order: u64,
    },
    /// Leaves off waiting once notified. If `timed`, the wait may also end without a notification.
    Awake {
        timed: bool,
    },
    /// Wakes one of the waiters; each of them is explored.
    NotifyOne,
    NotifyAll,

    // Barriers.
    Arrive,
    /// Goes on once the group that arrived in this generation is complete.
    Leave {
        generation: u32,
    },

    // One-time initialisations.
    /// Begins the initialisation, or finds it done; waits while another thread is at it. If
    /// `force`, a poisoned one is begun anew.
    CallOnce {
        force: bool,
    },
    /// Ends the initialisation that this thread has begun.
    EndOnce {
        poison: bool,
    },
    /// Looks whether the initialisation is done.
    CheckOnce,
    /// Waits until the initialisation is done or, unless `force`, poisoned.
    WaitOnce {
        force: bool,
    },

    // Channels.
    /// Puts a message into the queue; waits while there is no room. Without any capacity the
    /// message is only offered, and [`OpKind::Taken`] follows.
    Send,
    /// The same without waiting. Without any capacity it succeeds if a receiver waits.
    TrySend,
    /// Waits until the `index`-th message has been taken.
    Taken {
        index: u64,
    },
    /// A receiver comes to a channel without any capacity, where `try_send` can see it.
    RecvWait,
    /// Takes the first message; waits while there is none. If `timed`, it gives up instead.
    Recv {
        timed: bool,
    },
    TryRecv,
    AddSender,
    DropSender,
    /// The receiver goes. If it `discards`, the messages that are still queued go with it; without
    /// any capacity each sender keeps its own.
    DropReceiver {
        discards: bool,
    },

    // Operations on nothing shared.
    /// One of `options`.
    Choose {
        options: u32,
        what: Choice,
    },
    /// `assume(false)`: the thread goes no further in this execution, which counts as pruned. The
    /// others run on, because a wakeup sequence must span a whole execution (`docs/ALGORITHMS.md`,
    /// deviation 5). Or for another reason: then it goes on once nobody explores the execution any
    /// further.
    GiveUp {
        why: Reason,
    },
    /// What a thread announces that was spawned and not begun. It is no event: to pick the thread
    /// lets its code run up to its first visible operation.
    Start,
    /// The thread goes on with its code behind its last event, after which it was held up
    /// ([`Hold`](crate::rt::event::schedule::Hold)). What it does between two events takes no time,
    /// unless this comes between.
    Resume,
    /// A spinning thread's wait for a change in what it has read: the locations are a set of
    /// [`crate::rt::relation::independence::ReadSets`], the values begin at `seen` in the
    /// execution's record. Also what a wait that is `timed` waits for instead of another timeout.
    /// One that comes `soon` is that of a loop without a hint that has gone round a few times,
    /// where without it the loop would go round many times. One that is `fair` is for a change of
    /// nothing: its thread lets the others go first.
    Wait {
        set: u32,
        seen: u32,
        timed: bool,
        soon: bool,
        fair: bool,
    },
}

impl ObjectKind {
    /// What it is called: the type's own name where it has one.
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
        }
    }
}

impl OpKind {
    /// The ordering that an atomic operation was called with; of a compare-exchange the one
    /// for the outcome it had.
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

    /// Whether an acquisition by another thread, or a change of what it has read, may have shut the
    /// operation out (\[SS\] 8.1).
    pub(crate) const fn may_have_waited(&self) -> bool {
        matches!(
            self,
            OpKind::Lock
                | OpKind::TryLock
                | OpKind::ReadLock
                | OpKind::TryRead
                | OpKind::WriteLock
                | OpKind::TryWrite
                | OpKind::CallOnce { .. }
                | OpKind::WaitOnce { .. }
                | OpKind::Send
                | OpKind::TrySend
                | OpKind::Park
                | OpKind::ParkTimeout
                | OpKind::Wait { .. }
        )
    }

    /// Whether there is a state of its object in which it cannot happen. Of most operations there
    /// is none, so most often the object need not be asked.
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

    /// Whether there is a state of its object in which it can come out in several ways.
    #[inline]
    pub(crate) const fn may_have_alternatives(&self) -> bool {
        matches!(
            self,
            OpKind::CompareExchange { spurious: true, .. } | OpKind::NotifyOne
        )
    }

    /// Whether it has the same label in whatever state its object is.
    #[inline]
    pub(crate) const fn is_always_alike(&self) -> bool {
        matches!(
            self,
            OpKind::Load { .. } | OpKind::Store { .. } | OpKind::Rmw { .. }
        )
    }

    /// Whether it is done to an atomic.
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

    /// Whether it is a step in the life of a thread that can come out in only one way, on an object
    /// that is that thread's own, if on any.
    #[inline]
    pub(crate) const fn is_of_a_life(&self) -> bool {
        matches!(
            self,
            OpKind::Spawn { .. } | OpKind::Exit | OpKind::Join { .. }
        )
    }

    /// Whether it makes or drops a reference, as any use of an `Arc` does by the way.
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

/// What came of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Outcome {
    /// It happened, and there is nothing to tell.
    Done,
    /// A load or a read-modify-write: the value before. A choice: the value chosen. A count: what
    /// it was before.
    Value(u64),
    /// A compare-exchange, `try_lock`, `upgrade`, `try_unwrap`, ... that succeeded, with the value
    /// it found.
    Success(u64),
    /// One that did not, with the value it found.
    Failure(u64),
    /// A [`OpKind::Wait`] that was let go, because nothing else could run when so many events had
    /// happened. It is as wide as the other values, so that an outcome is copied in the pieces that
    /// it was written in.
    Released { quiescent_at: u64 },
}

impl Outcome {
    /// The value that was found, if the outcome has one.
    #[inline]
    pub(crate) fn value(self) -> Option<u64> {
        match self {
            Outcome::Value(value) | Outcome::Success(value) | Outcome::Failure(value) => {
                Some(value)
            }
            Outcome::Done | Outcome::Released { .. } => None,
        }
    }

    /// Whether the operation did what it tried to do.
    #[inline]
    pub(crate) fn succeeded(self) -> bool {
        match self {
            Outcome::Done | Outcome::Value(_) | Outcome::Success(_) => true,
            Outcome::Failure(_) | Outcome::Released { .. } => false,
        }
    }

    /// Whether it is a wait that was let go.
    #[inline]
    pub(crate) fn is_released(self) -> bool {
        matches!(self, Outcome::Released { .. })
    }
}

/// One choice of an explorer: which thread runs, and which of its outcomes it gets where it has
/// several (a value of `choose`, a spurious failure, a waiter to wake). Zero is the ordinary one.
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
