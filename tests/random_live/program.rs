//! What is a random program, and what does it show of an execution?
//!
//! A few threads with a few operations each over one object of every kind. Thread 0 is the closure
//! itself. Each thread logs what every operation gave it; a lock protects a number to which its holder
//! may append its own digit, so that the order of critical sections is seen.

use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError, TrySendError};
use dpor::sync::{Arc, Barrier, Condvar, Mutex, MutexGuard, Once, Weak};
use dpor::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use dpor::thread::{self, Thread};

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
    ]
};

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
        let kinds: Vec<&[Op]> = (0..kinds)
            .map(|_| KINDS[numbers.below(KINDS.len())])
            .collect();
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

    fn uses(&self, kind: usize) -> bool {
        let of = |op: &Op| KINDS[kind].contains(op);
        self.threads.iter().flatten().any(of)
    }
}

/// What was seen: a log for each thread, what became of the shared value, and whether the program came
/// to its end.
pub type Outcome = (Vec<Vec<usize>>, bool);

/// A value that tells who drops it, unless an execution is being torn down.
struct Loud(StdArc<StdMutex<Outcome>>);

impl Drop for Loud {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let me = thread::current();
            let me = me.name().and_then(|name| name.parse().ok()).unwrap_or(0);
            self.0.lock().unwrap().0[me].push(900);
        }
    }
}

enum Sender {
    Any(mpsc::Sender<usize>),
    Bounded(mpsc::SyncSender<usize>),
}

/// What all threads share.
struct World {
    atomics: [AtomicUsize; 2],
    locks: [Mutex<usize>; 2],
    rwlock: RwLock<usize>,
    condvar: Condvar,
    once: Once,
    barrier: Barrier,
    seen: StdArc<StdMutex<Outcome>>,
}

/// What belongs to one thread.
struct Own<'a> {
    me: usize,
    world: &'a World,
    sender: Option<Sender>,
    receiver: Option<Receiver<usize>>,
    value: Option<Arc<Loud>>,
    weak: Option<Weak<Loud>>,
    threads: Vec<Thread>,
}

/// The locks that a thread holds.
#[derive(Default)]
struct Held<'a> {
    guards: [Option<MutexGuard<'a, usize>>; 2],
    reader: Option<RwLockReadGuard<'a, usize>>,
    writer: Option<RwLockWriteGuard<'a, usize>>,
}

/// Puts what was seen into `all` when the execution is over, whichever way.
pub struct Keep<F: FnMut(Outcome)> {
    seen: StdArc<StdMutex<Outcome>>,
    keep: F,
}

impl<F: FnMut(Outcome)> Drop for Keep<F> {
    fn drop(&mut self) {
        let seen = self.seen.lock().unwrap().clone();
        (self.keep)(seen);
    }
}

/// Runs the program once, inside a model, and gives `keep` what was seen.
pub fn run(program: &Program, keep: impl FnMut(Outcome)) {
    let count = program.threads.len();
    let seen = StdArc::new(StdMutex::new((vec![Vec::new(); count], false)));
    let keep = Keep {
        seen: seen.clone(),
        keep,
    };
    let world = World {
        atomics: [AtomicUsize::new(0), AtomicUsize::new(0)],
        locks: [Mutex::new(0), Mutex::new(0)],
        rwlock: RwLock::new(0),
        condvar: Condvar::new(),
        once: Once::new(),
        barrier: Barrier::new(2),
        seen: seen.clone(),
    };
    let (first, mut receiver) = match (program.uses(6), program.room) {
        (false, _) => (None, None),
        (true, None) => {
            let (sender, receiver) = mpsc::channel();
            (Some(Sender::Any(sender)), Some(receiver))
        }
        (true, Some(room)) => {
            let (sender, receiver) = mpsc::sync_channel(room);
            (Some(Sender::Bounded(sender)), Some(receiver))
        }
    };
    // The last thread that receives has the receiver; the others find that they have none.
    let receives = |ops: &Vec<Op>| {
        ops.iter()
            .any(|op| matches!(op, Op::Recv | Op::TryRecv | Op::RecvTimeout))
    };
    let receiving = program.threads.iter().rposition(receives).unwrap_or(0);
    let value = program.uses(10).then(|| Arc::new(Loud(seen.clone())));
    let mut all: Vec<Own<'_>> = (0..count)
        .map(|me| Own {
            me,
            world: &world,
            sender: first.as_ref().map(|sender| match sender {
                Sender::Any(sender) => Sender::Any(sender.clone()),
                Sender::Bounded(sender) => Sender::Bounded(sender.clone()),
            }),
            receiver: if me == receiving {
                receiver.take()
            } else {
                None
            },
            value: value.clone(),
            weak: value.as_ref().map(Arc::downgrade),
            threads: vec![thread::current()],
        })
        .collect();
    drop((first, value));
    thread::scope(|scope| {
        let others = all.split_off(1);
        for own in others {
            let ops = &program.threads[own.me];
            let builder = thread::Builder::new().name(own.me.to_string());
            let spawned = builder.spawn_scoped(scope, move || own.run(ops));
            let handle = spawned.expect("a modelled thread can always be had");
            all[0].threads.push(handle.thread().clone());
        }
        let own = all.remove(0);
        own.run(&program.threads[0]);
    });
    seen.lock().unwrap().1 = true;
    drop(keep);
}

impl<'a> Own<'a> {
    fn run(mut self, ops: &[Op]) {
        let mut held = Held::default();
        for &op in ops {
            let seen = self.perform(&mut held, op);
            self.world.seen.lock().unwrap().0[self.me].push(seen);
        }
    }

    /// Performs one operation; gives what it saw.
    fn perform(&mut self, held: &mut Held<'a>, op: Op) -> usize {
        let world = self.world;
        let long = Duration::from_secs(3600);
        match op {
            Op::Load(a) => world.atomics[a].load(SeqCst),
            Op::Store(a, value) => {
                world.atomics[a].store(value, SeqCst);
                0
            }
            Op::Add(a) => world.atomics[a].fetch_add(1, SeqCst),
            Op::Exchange(a, from, to) => {
                match world.atomics[a].compare_exchange(from, to, SeqCst, SeqCst) {
                    Ok(found) => 10 + found,
                    Err(found) => found,
                }
            }
            Op::WeakExchange(a, from, to) => {
                match world.atomics[a].compare_exchange_weak(from, to, SeqCst, SeqCst) {
                    Ok(found) => 10 + found,
                    Err(found) => found,
                }
            }
            // Who holds the lock already would wait for ever; there are enough other deadlocks.
            Op::Lock(m) if held.guards[m].is_some() => 0,
            Op::Lock(m) => {
                let guard = world.locks[m].lock().unwrap();
                let value = *guard;
                held.guards[m] = Some(guard);
                value
            }
            Op::TryLock(m) => match world.locks[m].try_lock() {
                Ok(guard) => {
                    let value = *guard;
                    held.guards[m] = Some(guard);
                    value
                }
                Err(TryLockError::WouldBlock) => 999,
                Err(TryLockError::Poisoned(_)) => unreachable!("nobody panics"),
            },
            Op::Append(m) => held.guards[m].as_mut().map_or(999, |guard| {
                **guard = **guard * 10 + self.me + 1;
                **guard
            }),
            Op::Unlock(m) => {
                held.guards[m] = None;
                0
            }
            Op::Read | Op::TryRead | Op::Write | Op::TryWrite
                if held.reader.is_some() || held.writer.is_some() =>
            {
                0
            }
            Op::Read => {
                let guard = world.rwlock.read().unwrap();
                let value = *guard;
                held.reader = Some(guard);
                value
            }
            Op::TryRead => match world.rwlock.try_read() {
                Ok(guard) => {
                    let value = *guard;
                    held.reader = Some(guard);
                    value
                }
                Err(_) => 999,
            },
            Op::Write => {
                let guard = world.rwlock.write().unwrap();
                let value = *guard;
                held.writer = Some(guard);
                value
            }
            Op::TryWrite => match world.rwlock.try_write() {
                Ok(guard) => {
                    let value = *guard;
                    held.writer = Some(guard);
                    value
                }
                Err(_) => 999,
            },
            Op::AppendWritten => held.writer.as_mut().map_or(999, |guard| {
                **guard = **guard * 10 + self.me + 1;
                **guard
            }),
            Op::Downgrade => {
                if let Some(guard) = held.writer.take() {
                    held.reader = Some(RwLockWriteGuard::downgrade(guard));
                }
                0
            }
            Op::Release => {
                (held.reader, held.writer) = (None, None);
                0
            }
            Op::Wait | Op::WaitTimeout => {
                let guard = match held.guards[0].take() {
                    Some(guard) => guard,
                    None => world.locks[0].lock().unwrap(),
                };
                if op == Op::Wait {
                    let guard = world.condvar.wait(guard).unwrap();
                    let value = *guard;
                    held.guards[0] = Some(guard);
                    value
                } else {
                    let (guard, waited) = world.condvar.wait_timeout(guard, long).unwrap();
                    let value = *guard + if waited.timed_out() { 500 } else { 0 };
                    held.guards[0] = Some(guard);
                    value
                }
            }
            Op::NotifyOne => {
                world.condvar.notify_one();
                0
            }
            Op::NotifyAll => {
                world.condvar.notify_all();
                0
            }
            Op::Send(value) => match &self.sender {
                Some(Sender::Any(sender)) => sender.send(value).is_ok().into(),
                Some(Sender::Bounded(sender)) => sender.send(value).is_ok().into(),
                None => 999,
            },
            Op::TrySend(value) => match &self.sender {
                Some(Sender::Bounded(sender)) => match sender.try_send(value) {
                    Ok(()) => 1,
                    Err(TrySendError::Full(_)) => 2,
                    Err(TrySendError::Disconnected(_)) => 3,
                },
                _ => 999,
            },
            Op::Recv => {
                // Nobody waits for a message that only it could send.
                self.sender = None;
                let receiver = self.receiver.as_ref();
                receiver.map_or(999, |receiver| receiver.recv().unwrap_or(100))
            }
            Op::TryRecv => {
                self.receiver
                    .as_ref()
                    .map_or(999, |receiver| match receiver.try_recv() {
                        Ok(value) => value,
                        Err(TryRecvError::Empty) => 100,
                        Err(TryRecvError::Disconnected) => 101,
                    })
            }
            Op::RecvTimeout => {
                let receiver = self.receiver.as_ref();
                receiver.map_or(999, |receiver| match receiver.recv_timeout(long) {
                    Ok(value) => value,
                    Err(RecvTimeoutError::Timeout) => 100,
                    Err(RecvTimeoutError::Disconnected) => 101,
                })
            }
            Op::Disconnect => {
                (self.sender, self.receiver) = (None, None);
                0
            }
            Op::Park => {
                thread::park();
                0
            }
            Op::ParkTimeout => {
                thread::park_timeout(long);
                0
            }
            Op::Unpark(thread) => self.threads.get(thread).map_or(999, |thread| {
                thread.unpark();
                0
            }),
            Op::CallOnce => {
                let mut called = 0;
                let me = self.me;
                world.once.call_once(|| {
                    called = 1;
                    world.atomics[1].store(me + 5, SeqCst);
                });
                called
            }
            Op::IsCompleted => world.once.is_completed().into(),
            Op::WaitOnce => {
                world.once.wait();
                0
            }
            Op::Arrive => world.barrier.wait().is_leader().into(),
            Op::DropArc => {
                self.value = None;
                0
            }
            Op::CloneArc => {
                drop(self.value.clone());
                0
            }
            Op::Count => self.value.as_ref().map_or(999, Arc::strong_count),
            Op::Upgrade => {
                let weak = self.weak.as_ref();
                weak.map_or(999, |weak| weak.upgrade().is_some().into())
            }
            Op::Unique => {
                let value = self.value.as_mut();
                value.map_or(999, |value| Arc::get_mut(value).is_some().into())
            }
        }
    }
}
