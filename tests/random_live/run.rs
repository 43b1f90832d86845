//! What does a program show of an execution?
//!
//! There are one or two objects of every kind. Thread 0 is the closure itself. Each thread logs what
//! every operation gave it; a lock protects a number to which its holder may append its own digit, so
//! that the order of critical sections is seen.

use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError, TrySendError};
use dpor::sync::{
    Arc, Barrier, Condvar, LockResult, Mutex, MutexGuard, Notify, Once, OnceLock, RwLock,
    RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult, Weak,
};
use dpor::thread::{self, ScopedJoinHandle, Thread};

use super::program::{Op, Program};

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
    cell: OnceLock<usize>,
    notify: Notify,
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
        cell: OnceLock::new(),
        notify: Notify::new(),
        barrier: Barrier::new(2),
        seen: seen.clone(),
    };
    let (first, mut receiver) = match (program.sends(), program.room) {
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
    let value = program.shares().then(|| Arc::new(Loud(seen.clone())));
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
        let mut handles = vec![None];
        for own in others {
            let ops = &program.threads[own.me];
            let builder = thread::Builder::new().name(own.me.to_string());
            let result = program.detaches().then(|| Loud(seen.clone()));
            let spawned = builder.spawn_scoped(scope, move || {
                own.run(ops, &mut []);
                result
            });
            let handle = spawned.expect("a modelled thread can always be had");
            all[0].threads.push(handle.thread().clone());
            handles.push(Some(handle));
        }
        let own = all.remove(0);
        own.run(&program.threads[0], &mut handles);
        for handle in handles.into_iter().flatten() {
            let panicked = handle.join().is_err();
            seen.lock().unwrap().0[0].push(panicked.into());
        }
    });
    seen.lock().unwrap().1 = true;
    drop(keep);
}

/// The guard, and what is added to the value if the lock is poisoned.
fn taken<G>(result: LockResult<G>) -> (G, usize) {
    match result {
        Ok(guard) => (guard, 0),
        Err(poisoned) => (poisoned.into_inner(), 10_000),
    }
}

/// [`taken`] if the lock could be had.
fn tried<G>(result: TryLockResult<G>) -> Option<(G, usize)> {
    match result {
        Ok(guard) => Some(taken(Ok(guard))),
        Err(TryLockError::Poisoned(poisoned)) => Some(taken(Err(poisoned))),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl<'a> Own<'a> {
    /// Performs the operations; `handles` are those of the threads that this one may join.
    fn run(mut self, ops: &[Op], handles: &mut [Option<ScopedJoinHandle<'_, Option<Loud>>>]) {
        let mut held = Held::default();
        for &op in ops {
            let seen = match op {
                Op::IsFinished(thread) => handles
                    .get(thread)
                    .and_then(Option::as_ref)
                    .map_or(999, |handle| handle.is_finished().into()),
                Op::Join(thread) => handles
                    .get_mut(thread)
                    .and_then(Option::take)
                    .map_or(999, |handle| handle.join().is_err().into()),
                Op::Detach(thread) if !handles.is_empty() => {
                    drop(handles.get_mut(thread).map(Option::take));
                    0
                }
                op => self.perform(&mut held, op),
            };
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
                let (guard, poisoned) = taken(world.locks[m].lock());
                let value = *guard + poisoned;
                held.guards[m] = Some(guard);
                value
            }
            Op::TryLock(m) => tried(world.locks[m].try_lock()).map_or(999, |(guard, poisoned)| {
                let value = *guard + poisoned;
                held.guards[m] = Some(guard);
                value
            }),
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
                let (guard, poisoned) = taken(world.rwlock.read());
                let value = *guard + poisoned;
                held.reader = Some(guard);
                value
            }
            Op::TryRead => tried(world.rwlock.try_read()).map_or(999, |(guard, poisoned)| {
                let value = *guard + poisoned;
                held.reader = Some(guard);
                value
            }),
            Op::Write => {
                let (guard, poisoned) = taken(world.rwlock.write());
                let value = *guard + poisoned;
                held.writer = Some(guard);
                value
            }
            Op::TryWrite => tried(world.rwlock.try_write()).map_or(999, |(guard, poisoned)| {
                let value = *guard + poisoned;
                held.writer = Some(guard);
                value
            }),
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
                    None => taken(world.locks[0].lock()).0,
                };
                if op == Op::Wait {
                    let (guard, poisoned) = taken(world.condvar.wait(guard));
                    let value = *guard + poisoned;
                    held.guards[0] = Some(guard);
                    value
                } else {
                    let ((guard, waited), poisoned) =
                        taken(world.condvar.wait_timeout(guard, long));
                    let value = *guard + poisoned + if waited.timed_out() { 500 } else { 0 };
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
            Op::SetCell(value) => world.cell.set(value).is_ok().into(),
            Op::GetCell => world.cell.get().copied().unwrap_or(0),
            Op::InitCell(value) => *world.cell.get_or_init(|| value),
            Op::Notify => {
                world.notify.notify();
                0
            }
            Op::WaitNotify => {
                world.notify.wait();
                0
            }
            Op::Yield => {
                thread::yield_now();
                0
            }
            Op::Choose => dpor::choose(3),
            // A panic of the closure itself is a failure.
            Op::Panic if self.me > 0 => panic!("as planned"),
            Op::IsPoisoned => usize::from(world.locks[0].is_poisoned()),
            Op::ClearPoison => {
                world.locks[0].clear_poison();
                0
            }
            Op::IsFinished(_) | Op::Join(_) | Op::Detach(_) | Op::Panic => 999,
            Op::Unique => {
                let value = self.value.as_mut();
                value.map_or(999, |value| Arc::get_mut(value).is_some().into())
            }
        }
    }
}
