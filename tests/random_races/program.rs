//! What is a program?
//!
//! A few threads with a few steps each. Many steps are only taken if the thread has just seen a certain value, or
//! nearly every program would have a race.

use std::sync::atomic::Ordering;

/// What a step does. The first number is that of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Load(usize, Ordering),
    Store(usize, usize, Ordering),
    Add(usize, Ordering),
    Swap(usize, usize, Ordering),
    /// Replaces the first value by the second one.
    Exchange(usize, [usize; 2], [Ordering; 2]),
    Fence(Ordering),
    /// Reads or writes plain memory.
    Read(usize),
    Write(usize),
    /// Uses an atomic like plain memory, and leaves its value as it is.
    PlainRead(usize),
    PlainWrite(usize),
    /// Makes something and stores a pointer to it.
    Publish(Ordering),
    /// Loads that pointer, and reads or writes what it leads to.
    Follow(Ordering, bool),
    /// Frees the block that the plain memory with number 0 is in.
    Free,
    Lock,
    TryLock,
    Unlock,
    Wait,
    NotifyOne,
    NotifyAll,
    ReadLock,
    TryReadLock,
    WriteLock,
    TryWriteLock,
    Downgrade,
    ReleaseLock,
    Arrive,
    /// Initialises once, with a write to the plain memory of this number.
    CallOnce(usize),
    IsCompleted,
    WaitOnce,
    Send,
    Recv,
    TryRecv,
    DropSender,
    DropReceiver,
    Park,
    /// The token of this thread.
    Unpark(usize),
    IsFinished(usize),
    Join(usize),
    /// Whoever drops the last reference writes the plain memory with number [`OWNED`].
    DropArc,
    CloneArc,
    Upgrade,
    /// Drops what the last two have made.
    DropOther,
    DropWeak,
    StrongCount,
    /// Writes that memory, if the reference is the only one.
    GetMut,
    TryUnwrap,
    /// Has the thread write this plain memory at its very end, when its thread-locals are dropped.
    AtEnd(usize),
}

/// The number of the plain memory that an `Arc` owns.
pub const OWNED: usize = 2;

/// A step, which is only taken if the thread has seen this value last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub only_after: Option<usize>,
    pub op: Op,
}

/// A program. The first thread is the closure itself.
#[derive(Clone, Debug)]
pub struct Program {
    pub threads: Vec<Vec<Step>>,
    /// How many messages the channel has room for; `None` for any number.
    pub room: Option<usize>,
    /// The thread that has the receiver.
    pub receiving: usize,
    /// Whether the second atomic is in the block that may be freed.
    pub inside: bool,
}

impl Program {
    /// Whether a thread may have at its end what this operation releases.
    pub fn needs(&self, op: Op) -> bool {
        use Op::*;
        match op {
            Unlock => self.has(|op| matches!(op, Lock | TryLock)),
            ReleaseLock => {
                self.has(|op| matches!(op, ReadLock | TryReadLock | WriteLock | TryWriteLock))
            }
            DropSender | DropReceiver => self.sends(),
            _ => self.refers(),
        }
    }

    /// Whether there is a channel.
    pub fn sends(&self) -> bool {
        use Op::*;
        self.has(|op| matches!(op, Send | Recv | TryRecv | DropSender | DropReceiver))
    }

    /// Whether there is an `Arc`.
    pub fn refers(&self) -> bool {
        use Op::*;
        let refers = |op| {
            matches!(
                op,
                DropArc
                    | CloneArc
                    | Upgrade
                    | DropOther
                    | DropWeak
                    | StrongCount
                    | GetMut
                    | TryUnwrap
            )
        };
        self.has(refers)
    }

    /// Whether some step does one of these.
    pub fn has(&self, is_it: impl Fn(Op) -> bool) -> bool {
        self.threads.iter().flatten().any(|step| is_it(step.op))
    }
}
