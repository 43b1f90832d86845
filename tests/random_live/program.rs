//! Which programs are drawn?
//!
//! A few threads with a few operations each over one to three kinds of objects.

/// An operation. The number is that of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    IsWrittenPoisoned,
    ClearWrittenPoison,
    LockAndPanic(usize),
    WriteAndPanic,
    Small(Small, i8),
    Flag(Logic, bool),
    Fence,
    AddKept,
    WaitWhile,
    WaitTimeoutWhile,
    OncePanics,
    OnceForce,
    InitPanics,
    Force,
    Iterate,
    TryIterate,
    CloneSender,
    KeepUpgraded,
    WeakCount,
    CountByWeak,
    WeakCountByWeak,
    DropWeak,
    TryUnwrap,
    IntoInner,
    Raise,
    Await { careful: bool },
    Local,
    Spin(usize, usize),
    SpinLock(usize),
    SpinRecv,
}

/// What is done to a number of eight bits with a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Small {
    Swap,
    Sub,
    And,
    Nand,
    Or,
    Xor,
    Max,
    Min,
    Update,
}

/// What is done to a truth value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logic {
    And,
    Nand,
    Or,
    Xor,
    Not,
}

/// The kinds of objects, with the operations on each.
const KINDS: &[&[Op]] = {
    use self::Small as SmallOp;
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
            IsWrittenPoisoned,
            ClearWrittenPoison,
        ],
        &[
            LockAndPanic(0),
            WriteAndPanic,
            Lock(0),
            TryLock(0),
            Write,
            Read,
            Wait,
            NotifyOne,
            ClearPoison,
        ],
        &[
            OncePanics,
            OnceForce,
            CallOnce,
            WaitOnce,
            InitPanics,
            InitCell(3),
            GetCell,
            Force,
            AddKept,
        ],
        &[
            Small(SmallOp::Swap, -7),
            Small(SmallOp::Sub, 100),
            Small(SmallOp::And, -4),
            Small(SmallOp::Nand, 6),
            Small(SmallOp::Or, 9),
            Small(SmallOp::Xor, -128),
            Small(SmallOp::Max, -1),
            Small(SmallOp::Min, 5),
            Small(SmallOp::Update, 3),
            Fence,
        ],
        &[
            Flag(Logic::And, false),
            Flag(Logic::Nand, true),
            Flag(Logic::Or, true),
            Flag(Logic::Xor, true),
            Flag(Logic::Not, true),
            Fence,
        ],
        &[
            WaitWhile,
            WaitTimeoutWhile,
            Lock(0),
            Append(0),
            NotifyAll,
            Unlock(0),
        ],
        &[Send(1), CloneSender, Iterate, TryIterate, Disconnect],
        &[
            DropArc,
            DropWeak,
            KeepUpgraded,
            WeakCount,
            CountByWeak,
            WeakCountByWeak,
            TryUnwrap,
            IntoInner,
            Unique,
        ],
        &[
            Raise,
            Raise,
            Await { careful: true },
            Await { careful: false },
        ],
        &[Local, AddKept, Join(1), IsFinished(1)],
        &[Spin(0, 1), Spin(0, 2), Store(0, 1), Store(0, 2), Add(0)],
        &[SpinLock(0), Lock(0), Append(0), Unlock(0)],
        &[SpinRecv, Send(1), Disconnect],
    ]
};

/// The kinds that somebody may panic in.
const PANICS: usize = 16;
const CATCHES: usize = 17;
const ONCE_PANICS: usize = 18;

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    pub threads: Vec<Vec<Op>>,
    /// The room of the channel; `None` for any number of messages.
    pub room: Option<usize>,
    /// How many make a group at the barrier.
    pub group: usize,
    /// How often in a row a wait in one place may time out.
    pub timeouts: u32,
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
        let kinds: Vec<usize> = (0..kinds).map(|_| numbers.below(KINDS.len())).collect();
        let kinds: Vec<&[Op]> = tolerable(kinds)
            .into_iter()
            .map(|kind| KINDS[kind])
            .collect();
        let count = 2 + numbers.below(2);
        let mut threads = vec![Vec::new(); count];
        for (me, thread) in threads.iter_mut().enumerate() {
            let length = 1 + numbers.below(if count == 2 { 4 } else { 3 });
            for _ in 0..length {
                let kind = kinds[numbers.below(kinds.len())];
                thread.push(match kind[numbers.below(kind.len())] {
                    // While two unwind, who catches its panic is taken to unwind for too long (docs/GUIDE.md).
                    Op::LockAndPanic(m) if me > 0 => Op::Lock(m),
                    Op::WriteAndPanic if me > 0 => Op::Write,
                    op => op,
                });
            }
        }
        Program {
            threads,
            room: numbers.below(4).checked_sub(1),
            group: 1 + numbers.below(3),
            timeouts: [2, 8][numbers.below(2)],
            spurious: numbers.below(4) == 0,
        }
    }

    /// Whether there is a channel.
    pub fn sends(&self) -> bool {
        self.has(|op| {
            use Op::*;
            matches!(
                op,
                Send(_) | TrySend(_) | Recv | TryRecv | RecvTimeout | Disconnect
            ) || matches!(op, Iterate | TryIterate | CloneSender | SpinRecv)
        })
    }

    /// Whether there is a value that threads share.
    pub fn shares(&self) -> bool {
        self.has(is_of_the_value)
    }

    /// Whether a thread may panic.
    pub fn panics(&self) -> bool {
        self.has(may_panic)
    }

    /// Whether an execution goes on behind the panic of a thread, and who locks looks whether the lock is poisoned. It does
    /// not have to be so where each panic is caught and nobody forgets one.
    pub fn catches_panics(&self) -> bool {
        let needs = |op: &Op| matches!(op, Op::Panic | Op::ClearPoison | Op::ClearWrittenPoison);
        self.has(needs) || self.panics() && self.room.is_some()
    }

    /// Whether a thread spins.
    pub fn spins(&self) -> bool {
        self.has(|op| matches!(op, Op::Spin(..) | Op::SpinLock(_) | Op::SpinRecv))
    }

    /// Whether a thread receives.
    pub fn receives(ops: &[Op]) -> bool {
        use Op::*;
        let receives = |op: &Op| {
            matches!(
                op,
                Recv | TryRecv | RecvTimeout | Iterate | TryIterate | SpinRecv
            )
        };
        ops.iter().any(receives)
    }

    /// Whether a thread's result may be dropped by itself.
    pub fn detaches(&self) -> bool {
        !self.panics() && self.has(|op| matches!(op, Op::Detach(_)))
    }

    /// Whether any of its operations is like that.
    pub fn has(&self, is: impl Fn(&Op) -> bool) -> bool {
        self.threads.iter().flatten().any(is)
    }
}

fn is_of_the_value(op: &Op) -> bool {
    use Op::*;
    matches!(
        op,
        DropArc | CloneArc | Count | Upgrade | Unique | KeepUpgraded | WeakCount | CountByWeak
    ) || matches!(op, WeakCountByWeak | DropWeak | TryUnwrap | IntoInner)
}

fn may_panic(op: &Op) -> bool {
    use Op::*;
    matches!(
        op,
        Panic | LockAndPanic(_) | WriteAndPanic | OncePanics | InitPanics | Force
    )
}

/// Those of the kinds that go together, and others instead of the rest.
fn tolerable(mut kinds: Vec<usize>) -> Vec<usize> {
    let panics = |&kind: &usize| [PANICS, CATCHES, ONCE_PANICS].contains(&kind);
    let Some(&panicking) = kinds.iter().find(|kind| panics(kind)) else {
        return kinds;
    };
    kinds.retain(|&kind| {
        let has = |is: fn(&Op) -> bool| KINDS[kind].iter().any(is);
        // What is dropped while its thread unwinds, or another one, cannot tell why it unwinds. Who is taken to unwind for
        // too long poisons locks.
        let tells = has(|op| is_of_the_value(op) || *op == Op::Local);
        let locks = has(|op| {
            use Op::*;
            matches!(op, Lock(_) | Write | Wait | WaitTimeout | WaitWhile)
        });
        kind == panicking || !(panics(&kind) || tells || locks && panicking == ONCE_PANICS)
    });
    kinds
}
