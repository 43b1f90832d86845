//! Which programs are drawn?
//!
//! A few threads with a few operations each over one to three kinds of objects.

/// An operation. The number is that of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Load(usize),
    Store(usize, usize),
    Add(usize),
    Exchange(usize, usize, usize),
    WeakExchange(usize, usize, usize),
    Lock(usize),
    TryLock(usize),
    Append(usize),
    Unlock(usize),
    Read,
    TryRead,
    Write,
    TryWrite,
    AppendWritten,
    Downgrade,
    Release,
    Wait,
    WaitTimeout,
    NotifyOne,
    NotifyAll,
    Send(usize),
    TrySend(usize),
    Recv,
    TryRecv,
    RecvTimeout,
    Disconnect,
    Park,
    ParkTimeout,
    Unpark(usize),
    CallOnce,
    IsCompleted,
    WaitOnce,
    Arrive,
    DropArc,
    CloneArc,
    Count,
    Upgrade,
    Unique,
    SetCell(usize),
    GetCell,
    InitCell(usize),
    Notify,
    WaitNotify,
    Yield,
    Choose,
    IsFinished(usize),
    Join(usize),
    Detach(usize),
    Panic,
    IsPoisoned,
    ClearPoison,
}

/// The kinds of objects, with the operations on each.
const KINDS: &[&[Op]] = {
    use Op::*;
    &[
        &[
            Load(0),
            Store(0, 1),
            Store(0, 2),
            Add(0),
            Exchange(0, 0, 3),
            WeakExchange(0, 1, 4),
        ],
        &[Load(1), Store(1, 1), Add(1), Exchange(1, 1, 0), Load(0)],
        &[
            Lock(0),
            Lock(0),
            TryLock(0),
            Append(0),
            Unlock(0),
            Unlock(0),
        ],
        &[
            Lock(1),
            Lock(0),
            TryLock(1),
            Append(1),
            Unlock(1),
            Unlock(0),
        ],
        &[
            Read,
            Read,
            TryRead,
            Write,
            TryWrite,
            AppendWritten,
            Downgrade,
            Release,
            Release,
        ],
        &[Wait, WaitTimeout, NotifyOne, NotifyOne, NotifyAll],
        &[
            Send(1),
            Send(2),
            TrySend(3),
            Recv,
            TryRecv,
            RecvTimeout,
            Disconnect,
        ],
        &[Park, ParkTimeout, Unpark(0), Unpark(1), Unpark(2)],
        &[CallOnce, CallOnce, IsCompleted, WaitOnce],
        &[Arrive],
        &[DropArc, DropArc, CloneArc, Count, Upgrade, Unique],
        &[SetCell(1), SetCell(2), GetCell, GetCell, InitCell(3)],
        &[Notify, WaitNotify],
        &[Yield, Load(0), Store(0, 1), Add(0)],
        &[Choose, Add(1)],
        &[
            IsFinished(1),
            IsFinished(2),
            Join(1),
            Join(2),
            Detach(1),
            Detach(2),
            Add(0),
        ],
        &[
            Panic,
            Lock(0),
            Lock(0),
            Append(0),
            Write,
            IsPoisoned,
            ClearPoison,
        ],
    ]
};

/// The kinds that need something of their own: the channel, the shared value, and panics.
const CHANNEL: usize = 6;
const VALUE: usize = 10;
const PANICS: usize = 16;

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    pub threads: Vec<Vec<Op>>,
    /// The room of the channel; `None` for any number of messages.
    pub room: Option<usize>,
    /// Whether a weak compare-exchange may fail, and a waiter wake up, for no reason.
    pub spurious: bool,
}

/// Numbers that depend on nothing but the seed (splitmix64).
pub struct Numbers(pub u64);

impl Numbers {
    /// One below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

impl Program {
    /// A program of two or three threads over one to three kinds of objects.
    pub fn random(seed: u64) -> Program {
        let mut numbers = Numbers(seed);
        let kinds = 1 + numbers.below(3);
        let mut kinds: Vec<usize> = (0..kinds).map(|_| numbers.below(KINDS.len())).collect();
        if kinds.contains(&VALUE) {
            // A value that is dropped while its thread unwinds cannot tell why it unwinds.
            kinds.retain(|&kind| kind != PANICS);
        }
        let kinds: Vec<&[Op]> = kinds.into_iter().map(|kind| KINDS[kind]).collect();
        let count = 2 + numbers.below(2);
        let mut threads = vec![Vec::new(); count];
        for thread in &mut threads {
            let length = 1 + numbers.below(if count == 2 { 4 } else { 3 });
            for _ in 0..length {
                let kind = kinds[numbers.below(kinds.len())];
                thread.push(kind[numbers.below(kind.len())]);
            }
        }
        let room = numbers.below(4).checked_sub(1);
        let spurious = numbers.below(4) == 0;
        Program {
            threads,
            room,
            spurious,
        }
    }

    /// Whether there is a channel.
    pub fn sends(&self) -> bool {
        self.uses(CHANNEL)
    }

    /// Whether there is a value that threads share.
    pub fn shares(&self) -> bool {
        self.uses(VALUE)
    }

    /// Whether a thread may panic.
    pub fn panics(&self) -> bool {
        self.threads.iter().flatten().any(|&op| op == Op::Panic)
    }

    /// Whether a thread's result may be dropped by itself.
    pub fn detaches(&self) -> bool {
        let mut all = self.threads.iter().flatten();
        !self.panics() && all.any(|op| matches!(op, Op::Detach(_)))
    }

    fn uses(&self, kind: usize) -> bool {
        let of = |op: &Op| KINDS[kind].contains(op);
        self.threads.iter().flatten().any(of)
    }
}
