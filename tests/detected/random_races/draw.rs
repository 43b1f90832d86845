//! Which programs are drawn?
//!
//! Mostly one thread writes plain memory and says so, maybe by way of others, to one that then uses that memory, each in
//! a way that may be too weak. What else is done there may help or get into their way. Some programs are drawn without any plan.

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use super::drawn::Numbers;
use super::program::{Op, Program, Step};

/// What programs are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Atomics and fences around plain memory.
    Atomics,
    /// The same, and one thread frees that memory.
    Frees,
    /// Locks, threads, channels and references.
    Primitives,
}

/// The kinds of primitives, with the operations on each.
const KINDS: &[&[Op]] = {
    use Op::*;
    &[
        &[Lock, Lock, TryLock, Unlock, Unlock],
        &[Lock, Wait, NotifyOne, NotifyAll, Unlock],
        &[Lock, WaitTimeout, NotifyOne, NotifyAll, Unlock],
        &[ReadLock, WriteLock, ReleaseLock],
        &[
            ReadLock,
            TryReadLock,
            WriteLock,
            TryWriteLock,
            Downgrade,
            ReleaseLock,
        ],
        &[Arrive],
        &[CallOnce(0), CallOnce(1), IsCompleted, IsCompleted, WaitOnce],
        &[Send, Send, Recv, TryRecv, DropSender, DropReceiver],
        &[Send, TrySend, Recv, RecvTimeout, DropSender],
        &[Park, Unpark(0), Unpark(1), Unpark(2)],
        &[ParkTimeout, Unpark(0), Unpark(1), Unpark(2)],
        &[
            IsFinished(1),
            IsFinished(2),
            Join(1),
            Join(2),
            AtEnd(0),
            AtEnd(1),
        ],
        &[DropArc, CloneArc, DropOther, StrongCount, GetMut, TryUnwrap],
        &[DropArc, GetMut, DropArc, DropWeak],
        &[DropArc, Upgrade, DropOther, DropWeak, GetMut],
    ]
};

/// How something is passed on by primitives: what a thread does before it uses the memory, what it does to tell of that, and
/// what another one does to learn of it, which has what it has seen if it has learnt of it.
type Handshake = (&'static [Op], &'static [Op], &'static [(Op, Option<usize>)]);

const HANDSHAKES: &[Handshake] = {
    use Op::*;
    const TAKES: &[(Op, Option<usize>)] = &[
        (ReadLock, None),
        (WriteLock, None),
        (TryReadLock, Some(1)),
        (TryWriteLock, Some(1)),
    ];
    const RECEIVES: &[(Op, Option<usize>)] = &[
        (Recv, Some(1)),
        (RecvTimeout, Some(1)),
        (TryRecv, Some(1)),
        (Recv, Some(2)),
        (RecvTimeout, Some(2)),
        (TryRecv, Some(2)),
    ];
    const SENDS: &[(Op, Option<usize>)] = &[
        (Send, Some(0)),
        (Send, Some(1)),
        (TrySend, Some(1)),
        (TrySend, Some(2)),
    ];
    const REFERS: &[(Op, Option<usize>)] = &[
        (GetMut, Some(1)),
        (TryUnwrap, Some(1)),
        (StrongCount, Some(1)),
        (Upgrade, Some(0)),
        (Upgrade, Some(1)),
        (DropArc, None),
    ];
    &[
        (&[Lock], &[Unlock], &[(Lock, None), (TryLock, Some(1))]),
        (&[Lock, NotifyAll], &[Unlock], &[(WaitTimeout, Some(1))]),
        (&[ReadLock], &[ReleaseLock], TAKES),
        (&[WriteLock], &[ReleaseLock, Downgrade], TAKES),
        (&[], &[Arrive], &[(Arrive, None)]),
        (
            &[],
            &[CallOnce(1)],
            &[
                (CallOnce(1), Some(0)),
                (IsCompleted, Some(1)),
                (WaitOnce, None),
            ],
        ),
        (&[], &[Send, TrySend, DropSender], RECEIVES),
        (&[], &[DropReceiver, Recv, RecvTimeout, TryRecv], SENDS),
        (
            &[],
            &[Unpark(0), Unpark(1), Unpark(2)],
            &[(Park, None), (ParkTimeout, None)],
        ),
        (
            &[],
            &[AtEnd(1), Fence(SeqCst)],
            &[
                (Join(1), None),
                (Join(2), None),
                (IsFinished(1), Some(1)),
                (IsFinished(2), Some(1)),
            ],
        ),
        (&[], &[DropArc, TryUnwrap, DropWeak], REFERS),
        (&[DropArc, Upgrade], &[DropOther], REFERS),
    ]
};

/// What releases whatever a thread may still have at its end.
const AT_LAST: [Op; 7] = {
    use Op::*;
    [
        Unlock,
        ReleaseLock,
        DropSender,
        DropReceiver,
        DropOther,
        DropArc,
        DropWeak,
    ]
};

const ALL: [Ordering; 5] = [Relaxed, Acquire, Release, AcqRel, SeqCst];
const LOADS: [Ordering; 4] = [Relaxed, Acquire, Acquire, SeqCst];
const STORES: [Ordering; 4] = [Relaxed, Release, Release, SeqCst];
const FENCES: [Ordering; 4] = [Acquire, Release, AcqRel, SeqCst];

impl Program {
    pub fn random(family: Family, seed: u64) -> Program {
        let mut draw = Draw {
            numbers: Numbers(seed),
            threads: Vec::new(),
            receiving: 0,
            upgrading: 0,
            keepers: Vec::new(),
        };
        let count = draw.one_of(&[2, 3, 3, 4]);
        draw.threads = vec![Vec::new(); count];
        draw.receiving = draw.below(2);
        draw.upgrading = count - 1;
        draw.keepers = (0..count).map(|_| draw.below(count)).collect();
        match family {
            Family::Primitives if draw.below(2) == 0 => draw.by_handshake(),
            Family::Primitives => draw.around_primitives(),
            Family::Frees if draw.below(6) == 0 => draw.counted(),
            _ if draw.below(4) == 0 => draw.without_plan(family),
            _ => draw.passed_on(family),
        }
        draw.nest();
        let twin = family != Family::Primitives && draw.below(6) == 0;
        let room = draw.one_of(&[None, Some(0), Some(1)]);
        let inside = draw.below(2) == 0;
        let mut program = Program {
            threads: draw.threads,
            keepers: draw.keepers,
            room,
            receiving: draw.receiving,
            upgrading: draw.upgrading,
            inside,
        };
        let at_last = AT_LAST.into_iter().filter(|&op| program.needs(op));
        let at_last: Vec<Step> = at_last.map(|op| step(None, op)).collect();
        for thread in &mut program.threads {
            thread.extend(&at_last);
        }
        if twin {
            program.has_twins();
        }
        program
    }

    /// Has the last thread do what another one does, if both can: they are the same code then.
    fn has_twins(&mut self) {
        use Op::*;
        let once = |op| {
            matches!(
                op,
                Spawn(_) | Join(_) | Free | Publish(_) | Take(_) | Show(_)
            )
        };
        let last = self.threads.len() - 1;
        if last > 1 && !self.has(once) {
            self.threads[last] = self.threads[last - 1].clone();
        }
    }
}

fn step(only_after: Option<usize>, op: Op) -> Step {
    Step { only_after, op }
}

/// A program that is being drawn.
struct Draw {
    /// What the next number is made of.
    numbers: Numbers,
    threads: Vec<Vec<Step>>,
    /// What else a program has.
    receiving: usize,
    upgrading: usize,
    keepers: Vec<usize>,
}

impl Draw {
    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.numbers.below(bound)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn push(&mut self, thread: usize, only_after: Option<usize>, op: Op) {
        self.threads[thread].push(step(only_after, op));
    }

    /// Puts a step somewhere into a thread.
    fn insert(&mut self, thread: usize, only_after: Option<usize>, op: Op) {
        let at = self.below(self.threads[thread].len() + 1);
        self.threads[thread].insert(at, step(only_after, op));
    }

    /// A thread that is drawn, and all others behind it.
    fn path(&mut self) -> Vec<usize> {
        let count = self.threads.len();
        let first = self.below(count);
        (0..count).map(|nth| (first + nth) % count).collect()
    }

    /// Two uses of memory that must be ordered.
    fn uses(&mut self, family: Family) -> (Op, Op) {
        match family {
            Family::Frees if self.below(3) == 0 => {
                let take = Op::Take(self.one_of(&ALL));
                (Op::Publish(self.one_of(&STORES)), take)
            }
            Family::Frees => (self.plain(0), Op::Free),
            Family::Atomics if self.below(4) == 0 => {
                let look = Op::Look(self.one_of(&LOADS), self.below(3) == 0);
                (Op::Show(self.one_of(&STORES)), look)
            }
            Family::Atomics if self.below(4) == 0 => {
                let follow = Op::Follow(self.one_of(&LOADS), self.below(3) == 0);
                (Op::Publish(self.one_of(&STORES)), follow)
            }
            Family::Primitives if self.below(3) == 0 => (Op::Write(0), Op::Free),
            _ => (Op::Write(0), self.plain(0)),
        }
    }

    fn plain(&mut self, cell: usize) -> Op {
        self.one_of(&[Op::Read(cell), Op::Write(cell)])
    }

    /// Word of a use of memory is passed on from thread to thread, by atomics.
    fn passed_on(&mut self, family: Family) {
        let path = self.path();
        let (first, last) = self.uses(family);
        let hops = 1 + self.below(path.len() - 1);
        let at = self.below(2);
        self.push(path[0], None, first);
        for hop in 0..hops {
            // The first one has seen nothing yet.
            let heard = (hop > 0).then_some(hop);
            let (at, value) = ((at + hop) % 2, hop + 1);
            self.say(path[hop], heard, at, value);
            self.hear(path[hop + 1], at, value);
        }
        self.push(path[hops], Some(hops), last);
        for &other in &path[hops + 1..] {
            self.meddle(other, at);
        }
        // Somebody else may be using what is taken.
        if let Op::Take(_) = last {
            let thread = self.below(path.len());
            let follow = Op::Follow(self.one_of(&LOADS), self.below(3) == 0);
            self.insert(thread, None, follow);
        }
        if self.below(3) == 0 {
            let thread = self.below(path.len());
            let noise = self.atomic();
            self.insert(thread, None, noise);
        }
        if self.below(4) == 0 {
            let thread = self.below(path.len());
            let op = match family {
                Family::Atomics => self.one_of(&[Op::PlainRead(1 - at), Op::PlainWrite(1 - at)]),
                _ => self.plain(0),
            };
            self.insert(thread, None, op);
        }
    }

    /// Writes a value that another thread looks for.
    fn say(&mut self, me: usize, heard: Option<usize>, at: usize, value: usize) {
        let order = self.one_of(&ALL);
        let op = match self.below(8) {
            0 => Op::Add(at, order),
            1 => Op::Swap(at, value, order),
            2 => Op::Exchange(at, [0, value], [order, self.one_of(&LOADS)]),
            3 | 4 => {
                let fence = self.one_of(&FENCES);
                self.push(me, None, Op::Fence(fence));
                Op::Store(at, value, Relaxed)
            }
            5 => {
                // The first one may count for nothing.
                let first = self.one_of(&STORES);
                self.push(me, heard, Op::Store(at, value, first));
                Op::Store(at, value, self.one_of(&STORES))
            }
            _ => Op::Store(at, value, self.one_of(&STORES)),
        };
        self.push(me, heard, op);
    }

    /// Looks for that value.
    fn hear(&mut self, me: usize, at: usize, value: usize) {
        let order = self.one_of(&ALL);
        let op = match self.below(8) {
            0 => Op::Add(at, order),
            1 => Op::Swap(at, value, order),
            2 => Op::Exchange(at, [value, value], [order, self.one_of(&LOADS)]),
            3 => Op::Exchange(at, [0, 0], [order, self.one_of(&LOADS)]),
            4 => Op::Update(at, [order, self.one_of(&LOADS)]),
            _ => Op::Load(at, self.one_of(&LOADS)),
        };
        self.push(me, None, op);
        if self.below(2) == 0 {
            let fence = self.one_of(&FENCES);
            self.push(me, None, Op::Fence(fence));
        }
    }

    /// Comes between those who talk by this atomic.
    fn meddle(&mut self, me: usize, at: usize) {
        for _ in 0..1 + self.below(2) {
            let order = self.one_of(&ALL);
            let op = match self.below(4) {
                0 => self.atomic(),
                1 => Op::Store(at, 1, self.one_of(&STORES)),
                // As long as nobody has said anything, it does nothing.
                _ => Op::Exchange(at, [1, 1], [order, Relaxed]),
            };
            let only_after = [None, Some(1)][usize::from(self.below(4) == 0)];
            self.push(me, only_after, op);
        }
    }

    /// Any operation on an atomic, or a fence.
    fn atomic(&mut self) -> Op {
        let at = self.below(2);
        let value = 1 + self.below(2);
        let order = self.one_of(&ALL);
        match self.below(12) {
            0..4 => Op::Load(at, self.one_of(&LOADS)),
            4..7 => Op::Store(at, value, self.one_of(&STORES)),
            7 if self.below(2) == 0 => Op::Update(at, [order, self.one_of(&LOADS)]),
            7 => Op::Add(at, order),
            8 => Op::Swap(at, value, order),
            9 => Op::Exchange(at, [self.below(3), value], [order, self.one_of(&LOADS)]),
            _ => Op::Fence(self.one_of(&FENCES)),
        }
    }

    /// Every thread uses the block and gives up its reference by hand; who gives up the last one frees it.
    fn counted(&mut self) {
        let last = self.threads.len() - 1;
        let order = self.one_of(&ALL);
        for thread in 0..=last {
            let op = self.plain(0);
            self.push(thread, None, op);
            let order = if self.below(4) == 0 {
                self.one_of(&ALL)
            } else {
                order
            };
            let give_up = match self.below(4) {
                0 => Op::Update(0, [order, self.one_of(&LOADS)]),
                _ => Op::Add(0, order),
            };
            self.push(thread, None, give_up);
            if self.below(2) == 0 {
                let fence = self.one_of(&FENCES);
                self.push(thread, Some(last), Op::Fence(fence));
            }
            self.push(thread, Some(last), Op::Free);
        }
    }

    /// Some threads may be spawned by others than the first one, which may wait for them.
    fn nest(&mut self) {
        for thread in 1..self.threads.len() {
            if self.below(6) > 0 {
                continue;
            }
            let spawner = self.below(thread);
            self.insert(spawner, None, Op::Spawn(thread));
            if self.below(2) == 0 {
                let at = self.threads[spawner].len().saturating_sub(self.below(2));
                self.threads[spawner].insert(at, step(None, Op::Join(thread)));
            }
        }
    }

    /// Anything, anywhere.
    fn without_plan(&mut self, family: Family) {
        for thread in 0..self.threads.len() {
            for _ in 0..1 + self.below([0, 0, 4, 4, 3][self.threads.len()]) {
                let only_after = [None, None, None, Some(1)][self.below(4)];
                let op = self.atomic();
                self.push(thread, only_after, op);
            }
        }
        let path = self.path();
        let (first, last) = self.uses(family);
        self.insert(path[0], None, first);
        let seen = 1 + self.below(2);
        self.insert(path[1], Some(seen), last);
    }

    /// One thread uses memory and tells of it in some way, and another one uses it if it has heard of that, amid a little of
    /// the same kind. The sign between them orders nothing.
    fn by_handshake(&mut self) {
        let path = self.path();
        let (first, last) = self.uses(Family::Primitives);
        let (before, tells, learns) = self.one_of(HANDSHAKES);
        before.iter().for_each(|&op| self.push(path[0], None, op));
        self.push(path[0], None, first);
        self.push(path[0], None, Op::Store(0, 1, Relaxed));
        let tell = match self.one_of(tells) {
            Op::Unpark(_) => Op::Unpark(path[1]),
            Op::DropReceiver | Op::Recv | Op::RecvTimeout | Op::TryRecv => {
                self.receiving = path[0];
                self.one_of(tells)
            }
            tell => {
                self.receiving = path[1];
                tell
            }
        };
        self.push(path[0], None, tell);
        let (learn, seen) = self.one_of(learns);
        let learn = match learn {
            Op::Join(_) => Op::Join(path[0]),
            Op::IsFinished(_) => Op::IsFinished(path[0]),
            learn => learn,
        };
        self.keepers[path[0]] = path[1];
        self.upgrading = path[self.below(2)];
        match (learn, seen) {
            (Op::WaitTimeout, _) => self.push(path[1], None, Op::Lock),
            // Or it would wait for itself.
            (Op::Recv | Op::RecvTimeout | Op::TryRecv, Some(2)) => {
                self.push(path[1], None, Op::DropSender);
            }
            // The last reference may be another thread's.
            (Op::Upgrade, Some(0)) => self.push(path[1], None, Op::DropArc),
            _ => {}
        }
        self.push(path[1], None, learn);
        self.push(path[1], seen, Op::Load(0, Relaxed));
        self.push(path[1], Some(1), last);
        let all = [before, tells].concat();
        for _ in 0..self.below(3) {
            let thread = self.below(path.len());
            let noise = match self.below(2) {
                0 => self.one_of(learns).0,
                _ => self.one_of(&all),
            };
            self.insert(thread, None, noise);
        }
    }

    /// One thread uses memory, and another one after it has seen some sign of that, amid primitives. The sign itself orders
    /// nothing.
    fn around_primitives(&mut self) {
        let path = self.path();
        let (first, last) = self.uses(Family::Primitives);
        let mut kinds = vec![self.one_of(KINDS)];
        if self.below(3) == 0 {
            kinds.push(self.one_of(KINDS));
        }
        for &thread in &path {
            for _ in 0..1 + self.below(if path.len() == 4 { 2 } else { 3 }) {
                let kind = self.one_of(&kinds);
                let op = self.one_of(kind);
                self.push(thread, None, op);
            }
        }
        // The sign comes behind the use, and what comes last or first in a thread mostly is what orders.
        let begin = self.below(2).min(self.threads[path[0]].len());
        let sign = Op::Store(0, 1, Relaxed);
        self.threads[path[0]].splice(begin..begin, [step(None, first), step(None, sign)]);
        let end = self.threads[path[1]].len().saturating_sub(self.below(2));
        self.threads[path[1]].insert(end, step(Some(1), last));
        // What it does with the primitive may tell, too.
        if self.below(4) > 0 {
            let at = end.saturating_sub(self.below(2));
            self.threads[path[1]].insert(at, step(None, Op::Load(0, Relaxed)));
        }
        if self.below(4) == 0 {
            let thread = self.below(path.len());
            let cell = self.below(2);
            let more = self.plain(cell);
            self.insert(thread, Some(1), more);
        }
    }
}
