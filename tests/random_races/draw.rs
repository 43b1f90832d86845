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
        &[Park, Unpark(0), Unpark(1), Unpark(2)],
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
        };
        let count = draw.one_of(&[2, 3, 3, 4]);
        draw.threads = vec![Vec::new(); count];
        match family {
            Family::Primitives => draw.around_primitives(),
            _ if draw.below(4) == 0 => draw.without_plan(family),
            _ => draw.passed_on(family),
        }
        let mut program = Program {
            room: [None, Some(1)][draw.below(2)],
            receiving: draw.below(2),
            inside: draw.below(2) == 0,
            threads: draw.threads,
        };
        let at_last = AT_LAST.into_iter().filter(|&op| program.needs(op));
        let at_last: Vec<Step> = at_last.map(|op| step(None, op)).collect();
        for thread in &mut program.threads {
            thread.extend(&at_last);
        }
        program
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
            Family::Frees => (self.plain(0), Op::Free),
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
            7 => Op::Add(at, order),
            8 => Op::Swap(at, value, order),
            9 => Op::Exchange(at, [self.below(3), value], [order, self.one_of(&LOADS)]),
            _ => Op::Fence(self.one_of(&FENCES)),
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
