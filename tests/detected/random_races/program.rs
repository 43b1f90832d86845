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
    /// Adds one by `fetch_update`, with the orderings of its update and of its look.
    Update(usize, [Ordering; 2]),
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
    /// Takes that pointer away, and frees what it leads to.
    Take(Ordering),
    /// Stores a pointer to plain memory on the stack of the thread, which was written when the thread began. Nothing in the
    /// first thread.
    Show(Ordering),
    /// Loads that pointer, and reads or writes what it leads to.
    Look(Ordering, bool),
    /// Frees the block that the plain memory with number 0 is in.
    Free,
    Lock,
    TryLock,
    Unlock,
    Wait,
    WaitTimeout,
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
    TrySend,
    Recv,
    RecvTimeout,
    TryRecv,
    DropSender,
    DropReceiver,
    Park,
    ParkTimeout,
    /// The token of this thread.
    Unpark(usize),
    /// The thread is spawned here, and not by the first one at the beginning. In such a program nobody unparks.
    Spawn(usize),
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
    /// Who gets the handle of each thread that the first one spawns, if it is spawned by that one later.
    pub keepers: Vec<usize>,
    /// How many messages the channel has room for; `None` for any number.
    pub room: Option<usize>,
    /// The thread that has the receiver.
    pub receiving: usize,
    /// The thread that has the weak reference.
    pub upgrading: usize,
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
        self.has(|op| {
            matches!(
                op,
                Send | TrySend | Recv | RecvTimeout | TryRecv | DropSender | DropReceiver
            )
        })
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

    /// Which thread spawns this one; none if the first one does at the beginning.
    pub fn spawner(&self, thread: usize) -> Option<usize> {
        let spawns = |steps: &Vec<Step>| steps.iter().any(|step| step.op == Op::Spawn(thread));
        self.threads.iter().position(spawns)
    }

    /// The first thread that takes the same steps, which are in the same places of the source.
    pub fn same_as(&self, thread: usize) -> usize {
        let same = |steps: &Vec<Step>| *steps == self.threads[thread];
        self.threads.iter().position(same).unwrap_or(thread)
    }

    /// Which thread has the handle of this one.
    pub fn keeper(&self, thread: usize) -> usize {
        let keeper = self.keepers[thread];
        match self.spawner(thread) {
            Some(spawner) => spawner,
            None if keeper > thread && self.spawner(keeper).is_none() => keeper,
            None => 0,
        }
    }

    /// Whether some step does one of these.
    pub fn has(&self, is_it: impl Fn(Op) -> bool) -> bool {
        self.threads.iter().flatten().any(|step| is_it(step.op))
    }
}
