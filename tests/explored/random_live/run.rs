//! What does a program show of an execution?
//!
//! There are one or two objects of every kind. Thread 0 is the closure itself. A thread that another one spawns in the middle
//! gets a share of what that one still has. Each thread logs what
//! every operation gave it; a lock protects a number to which its holder may append its own digit, so
//! that the order of critical sections is seen.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Poll;
use std::time::Duration;

use dpor::future::block_on;
use dpor::hint;
use dpor::sync::atomic::fence;
use dpor::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, TrySendError};
use dpor::sync::{
    Arc, LazyLock, LockResult, MutexGuard, RwLockReadGuard, RwLockWriteGuard, TryLockError,
    TryLockResult, Weak,
};
use dpor::thread::{self, Scope, ScopedJoinHandle, Thread};

use super::program::{Logic, Op, Program, Small, THREADS_MAX};
use super::world::{Keep, Loud, MARK, Mark, Outcome, World};
use crate::channels::{Sender, channel_for};

/// How many fences were asked for, in all executions.
static FENCES: AtomicUsize = AtomicUsize::new(0);

/// What belongs to one thread.
struct Own<'s, 'a> {
    me: usize,
    program: &'a Program,
    world: &'a World,
    scope: &'s Scope<'s, 'a>,
    sender: Option<Sender>,
    receiver: Option<Receiver<usize>>,
    more_senders: Vec<Sender>,
    value: Option<Arc<Loud>>,
    weak: Option<Weak<Loud>>,
    threads: [Option<Thread>; THREADS_MAX],
    handles: Handles<'s>,
}

/// The threads that may be joined.
type Handles<'s> = [Option<ScopedJoinHandle<'s, Option<Loud>>>; THREADS_MAX];

/// The locks that a thread holds.
#[derive(Default)]
struct Held<'a> {
    guards: [Option<MutexGuard<'a, usize>>; 2],
    reader: Option<RwLockReadGuard<'a, usize>>,
    writer: Option<RwLockWriteGuard<'a, usize>>,
}

/// Runs the program once, inside a model, and gives `keep` what was seen.
pub fn run(program: &Program, keep: impl FnMut(Outcome)) {
    let count = program.threads.len();
    let seen = StdArc::new(StdMutex::new((vec![Vec::new(); count], false)));
    let keep = Keep {
        seen: seen.clone(),
        keep,
    };
    let world = World::new(program.group, seen.clone());
    let channel = (program.sends()).then(|| channel_for(program.room));
    let (first, mut receiver) = channel.unzip();
    let receiving = program.receiving().last().copied();
    let value = program.shares().then(|| Arc::new(Loud(seen.clone())));
    let (world, receiver) = (&world, &mut receiver);
    let all_threads = || {
        thread::scope(|scope| {
            let mut threads = [const { None }; THREADS_MAX];
            threads[0] = Some(thread::current());
            let own = |me| Own {
                me,
                program,
                world,
                scope,
                sender: first.clone(),
                receiver: receiver.take_if(|_| receiving == Some(me)),
                more_senders: Vec::new(),
                value: value.clone(),
                weak: value.as_ref().map(Arc::downgrade),
                threads: threads.clone(),
                handles: Handles::default(),
            };
            let spawned_first = (0..count).filter(|&me| program.is_first(me));
            let mut all: Vec<Own<'_, '_>> = spawned_first.map(own).collect();
            drop((first, value));
            let others = all.split_off(1);
            let mut main = all.remove(0);
            for own in others {
                main.spawn(own);
            }
            for handle in main.run().into_iter().flatten() {
                let panicked = handle.join().is_err();
                seen.lock().unwrap().0[0].push(panicked.into());
            }
        });
        0
    };
    // A scope panics if a thread has whose handle nobody has joined.
    let panicked = caught(all_threads);
    if panicked > 0 {
        seen.lock().unwrap().0[0].push(950);
    }
    seen.lock().unwrap().1 = true;
    drop(keep);
}

/// What `f` gives, or 3 if it panics as planned. Where an execution is torn down it is unwound otherwise.
fn caught(f: impl FnOnce() -> usize) -> usize {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(seen) => seen,
        Err(payload) if payload.is::<&str>() || payload.is::<String>() => 3,
        Err(payload) => resume_unwind(payload),
    }
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

impl<'s, 'a> Own<'s, 'a> {
    /// Performs the operations; gives the handles of the threads that nobody has joined.
    fn run(mut self) -> Handles<'s> {
        let mut held = Held::default();
        for &op in &self.program.threads[self.me] {
            let seen = self.perform(&mut held, op);
            self.world.seen.lock().unwrap().0[self.me].push(seen);
        }
        std::mem::take(&mut self.handles)
    }

    /// Has a thread run that has this.
    fn spawn(&mut self, own: Own<'s, 'a>) {
        let of = own.me;
        let builder = thread::Builder::new().name(of.to_string());
        let result = (self.program.detaches()).then(|| Loud(self.world.seen.clone()));
        let spawned = builder.spawn_scoped(self.scope, move || {
            own.run();
            result
        });
        let handle = spawned.expect("a modelled thread can always be had");
        self.threads[of] = Some(handle.thread().clone());
        self.handles[of] = Some(handle);
    }

    /// A share of what this thread has, for another one, which gets the receiver if it is to receive.
    fn share(&mut self, me: usize) -> Own<'s, 'a> {
        let is_to_receive = self.program.receiving().contains(&me);
        let mut threads = self.threads.clone();
        threads[self.me] = Some(thread::current());
        Own {
            me,
            sender: self.sender.clone(),
            receiver: self.receiver.take_if(|_| is_to_receive),
            more_senders: Vec::new(),
            value: self.value.clone(),
            weak: self.weak.clone(),
            threads,
            handles: Handles::default(),
            program: self.program,
            world: self.world,
            scope: self.scope,
        }
    }

    /// Performs one operation; gives what it saw.
    fn perform(&mut self, held: &mut Held<'a>, op: Op) -> usize {
        let world = self.world;
        let long = Duration::from_secs(3600);
        match op {
            Op::Load(a) => world.atomics[a].load(SeqCst),
            Op::Spin(a, value) => {
                while world.atomics[a].load(SeqCst) != value {
                    hint::spin_loop();
                }
                0
            }
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
            Op::SpinLock(m) if held.guards[m].is_some() => 0,
            Op::SpinLock(m) => loop {
                if let Some((guard, poisoned)) = tried(world.locks[m].try_lock()) {
                    let value = *guard + poisoned;
                    held.guards[m] = Some(guard);
                    break value;
                }
                thread::yield_now();
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
            Op::SpinRecv => self.receiver.as_ref().map_or(999, |receiver| {
                loop {
                    match receiver.try_recv() {
                        Ok(value) => break value,
                        Err(TryRecvError::Empty) => hint::spin_loop(),
                        Err(TryRecvError::Disconnected) => break 100,
                    }
                }
            }),
            Op::Iterate => {
                self.sender = None;
                let receiver = self.receiver.as_ref();
                receiver.map_or(999, |receiver| {
                    receiver.iter().fold(0, |all, n| all * 10 + n)
                })
            }
            Op::TryIterate => {
                let receiver = self.receiver.as_ref();
                receiver.map_or(999, |receiver| {
                    receiver.try_iter().fold(0, |all, n| all * 10 + n)
                })
            }
            Op::CloneSender => {
                self.more_senders.extend(self.sender.clone());
                0
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
            Op::Unpark(thread) => self.threads[thread].as_ref().map_or(999, |thread| {
                thread.unpark();
                0
            }),
            Op::Spawn(thread) => {
                let own = self.share(thread);
                self.spawn(own);
                0
            }
            Op::IsFinished(thread) => {
                (self.handles[thread].as_ref()).map_or(999, |handle| handle.is_finished().into())
            }
            Op::Join(thread) => {
                (self.handles[thread].take()).map_or(999, |handle| handle.join().is_err().into())
            }
            Op::Detach(thread) => {
                self.handles[thread] = None;
                0
            }
            Op::CallOnce => caught(|| {
                let mut called = 0;
                let me = self.me;
                world.once.call_once(|| {
                    called = 1;
                    world.atomics[1].store(me + 5, SeqCst);
                });
                called
            }),
            Op::OncePanics => caught(|| {
                world.once.call_once(|| panic!("as planned"));
                0
            }),
            Op::OnceForce => {
                let (mut called, me) = (0, self.me);
                world.once.call_once_force(|state| {
                    called = 1 + usize::from(state.is_poisoned());
                    world.atomics[1].store(me + 5, SeqCst);
                });
                called
            }
            Op::IsCompleted => world.once.is_completed().into(),
            Op::WaitOnce => caught(|| {
                world.once.wait();
                0
            }),
            Op::Arrive => world.barrier.wait().is_leader().into(),
            Op::DropArc => {
                self.value = None;
                0
            }
            Op::CloneArc => {
                drop(self.value.clone());
                0
            }
            Op::KeepUpgraded if self.value.is_none() => {
                self.value = self.weak.as_ref().and_then(Weak::upgrade);
                self.value.is_some().into()
            }
            Op::KeepUpgraded => 2,
            Op::WeakCount => self.value.as_ref().map_or(999, Arc::weak_count),
            Op::CountByWeak => self.weak.as_ref().map_or(999, Weak::strong_count),
            Op::WeakCountByWeak => self.weak.as_ref().map_or(999, Weak::weak_count),
            Op::DropWeak => {
                self.weak = None;
                0
            }
            Op::TryUnwrap => match self.value.take().map(Arc::try_unwrap) {
                None => 999,
                Some(Ok(value)) => {
                    drop(value);
                    1
                }
                Some(Err(value)) => {
                    self.value = Some(value);
                    0
                }
            },
            Op::IntoInner => match self.value.take() {
                None => 999,
                Some(value) => Arc::into_inner(value).is_some().into(),
            },
            Op::Count => self.value.as_ref().map_or(999, Arc::strong_count),
            Op::Upgrade => {
                let weak = self.weak.as_ref();
                weak.map_or(999, |weak| weak.upgrade().is_some().into())
            }
            Op::SetCell(value) => world.cell.set(value).is_ok().into(),
            Op::GetCell => world.cell.get().copied().unwrap_or(0),
            Op::InitCell(value) => *world.cell.get_or_init(|| value),
            Op::InitPanics => caught(|| *world.cell.get_or_init(|| panic!("as planned")) + 100),
            Op::Force => caught(|| *LazyLock::force(&world.lazy)),
            Op::AddKept => world.kept.fetch_add(1, SeqCst),
            Op::Small(op, n) => self.change_small(op, n) as u8 as usize,
            Op::Flag(op, value) => match op {
                Logic::And => world.flag.fetch_and(value, SeqCst),
                Logic::Nand => world.flag.fetch_nand(value, SeqCst),
                Logic::Or => world.flag.fetch_or(value, SeqCst),
                Logic::Xor => world.flag.fetch_xor(value, SeqCst),
                Logic::Not => world.flag.fetch_not(SeqCst),
            }
            .into(),
            Op::Fence => {
                // By a state that the model does not see, as collectors of epochs do.
                if !FENCES.fetch_add(1, SeqCst).is_multiple_of(3) {
                    fence(SeqCst);
                }
                0
            }
            Op::WaitWhile | Op::WaitTimeoutWhile => {
                let guard = match held.guards[0].take() {
                    Some(guard) => guard,
                    None => taken(world.locks[0].lock()).0,
                };
                let ((guard, late), poisoned) = if op == Op::WaitWhile {
                    let (guard, poisoned) = taken(world.condvar.wait_while(guard, |n| *n == 0));
                    ((guard, false), poisoned)
                } else {
                    let waited = world.condvar.wait_timeout_while(guard, long, |n| *n == 0);
                    let ((guard, result), poisoned) = taken(waited);
                    ((guard, result.timed_out()), poisoned)
                };
                let value = *guard + poisoned + if late { 500 } else { 0 };
                held.guards[0] = Some(guard);
                value
            }
            Op::LockAndPanic(m) if held.guards[m].is_some() => 0,
            Op::LockAndPanic(m) => caught(|| {
                let (_guard, _) = taken(world.locks[m].lock());
                panic!("as planned")
            }),
            Op::WriteAndPanic if held.reader.is_some() || held.writer.is_some() => 0,
            Op::WriteAndPanic => caught(|| {
                let (_guard, _) = taken(world.rwlock.write());
                panic!("as planned")
            }),
            Op::IsWrittenPoisoned => world.rwlock.is_poisoned().into(),
            Op::ClearWrittenPoison => {
                world.rwlock.clear_poison();
                0
            }
            Op::Raise => {
                world.ready.store(true, SeqCst);
                world.waker.wake();
                0
            }
            Op::Await { careful } => {
                block_on(poll_fn(|context| {
                    if !careful && world.ready.load(SeqCst) {
                        return Poll::Ready(());
                    }
                    world.waker.register_by_ref(context.waker());
                    match careful && world.ready.load(SeqCst) {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    }
                }));
                0
            }
            Op::Local => {
                MARK.with_borrow_mut(|mark| {
                    mark.get_or_insert_with(|| Mark {
                        me: self.me,
                        kept: world.kept.clone(),
                        seen: world.seen.clone(),
                    });
                });
                0
            }
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
            Op::Panic => 999,
            Op::Unique => {
                let value = self.value.as_mut();
                value.map_or(999, |value| Arc::get_mut(value).is_some().into())
            }
        }
    }

    /// Changes the small number; gives what it was.
    fn change_small(&self, op: Small, n: i8) -> i8 {
        let small = &self.world.small;
        match op {
            Small::Swap => small.swap(n, SeqCst),
            Small::Sub => small.fetch_sub(n, SeqCst),
            Small::And => small.fetch_and(n, SeqCst),
            Small::Nand => small.fetch_nand(n, SeqCst),
            Small::Or => small.fetch_or(n, SeqCst),
            Small::Xor => small.fetch_xor(n, SeqCst),
            Small::Max => small.fetch_max(n, SeqCst),
            Small::Min => small.fetch_min(n, SeqCst),
            Small::Update => {
                let update = small.fetch_update(SeqCst, SeqCst, |old| Some(old.wrapping_add(n)));
                update.expect("it never gives up")
            }
        }
    }
}
