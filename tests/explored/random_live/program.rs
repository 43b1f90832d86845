//! Which programs are drawn?
//!
//! A few threads with a few operations each over one to three kinds of objects. Main spawns them first of all, or each is
//! spawned in the middle of another one.

use crate::drawn::Numbers;

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
    /// Spawns that thread, which otherwise main does first of all.
    Spawn(usize),
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
    Await {
        careful: bool,
    },
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

/// Programs have no more threads than that.
pub const THREADS_MAX: usize = 4;

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
        let in_the_middle = numbers.below(4) == 0;
        let count = 2 + numbers.below(2) + usize::from(in_the_middle);
        let mut threads = vec![Vec::new(); count];
        for (me, thread) in threads.iter_mut().enumerate() {
            let length = 1 + numbers.below([4, 3, 2][count - 2]);
            for _ in 0..length {
                let kind = kinds[numbers.below(kinds.len())];
                thread.push(match kind[numbers.below(kind.len())] {
                    // While two unwind, who catches its panic is taken to unwind for too long (docs/LIMITS.md).
                    Op::LockAndPanic(m) if me > 0 => Op::Lock(m),
                    Op::WriteAndPanic if me > 0 => Op::Write,
                    op => op,
                });
            }
        }
        for child in 1..if in_the_middle { count } else { 1 } {
            let parent = &mut threads[numbers.below(child)];
            parent.insert(numbers.below(parent.len() + 1), Op::Spawn(child));
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

    /// Whether the handle of a thread may be dropped: by who is told to, or at the end of one that is not main.
    pub fn drops_handles(&self) -> bool {
        self.has(|op| matches!(op, Op::Detach(_) | Op::Spawn(_)))
    }

    /// Whether a thread's result may be dropped by itself, and tells so.
    pub fn detaches(&self) -> bool {
        !self.panics() && self.drops_handles()
    }

    /// Who spawns this thread in the middle, if main does not do so first of all.
    pub fn parent(&self, thread: usize) -> Option<usize> {
        let spawns = |ops: &Vec<Op>| ops.contains(&Op::Spawn(thread));
        self.threads.iter().position(spawns)
    }

    /// Whether main spawns this thread first of all, if it is not main itself.
    pub fn is_first(&self, thread: usize) -> bool {
        self.parent(thread).is_none()
    }

    /// Which child the thread is of its parent, which child that one is, and so on, from main on; behind that are zeros.
    pub fn births(&self, thread: usize) -> [usize; THREADS_MAX] {
        let first = (1..thread).filter(|&other| self.is_first(other)).count();
        let Some(parent) = self.parent(thread) else {
            let mut births = [0; THREADS_MAX];
            births[0] = first + usize::from(thread > 0);
            return births;
        };
        let before = self.threads[parent]
            .iter()
            .take_while(|&&op| op != Op::Spawn(thread));
        let mut nth = 1 + before.filter(|op| matches!(op, Op::Spawn(_))).count();
        if parent == 0 {
            let all = 1..self.threads.len();
            nth += all.filter(|&other| self.is_first(other)).count();
        }
        let mut births = self.births(parent);
        let end = births.iter_mut().find(|birth| **birth == 0);
        *end.expect("no line is that long") = nth;
        births
    }

    /// Who has the receiver at first, and who gets it with its spawn: the last thread that receives and those that it comes
    /// from. The others find that they have none.
    pub fn receiving(&self) -> Vec<usize> {
        let last = self.threads.iter().rposition(|ops| Program::receives(ops));
        let line = std::iter::successors(Some(last.unwrap_or(0)), |&thread| self.parent(thread));
        line.collect()
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
