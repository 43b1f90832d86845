//! How does a program run on `dpor`?

use std::cell::RefCell;
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize, fence};
use dpor::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, TrySendError};
use dpor::sync::{
    Arc, Barrier, Condvar, Mutex, MutexGuard, Once, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};
use dpor::thread::{self, Scope, ScopedJoinHandle, Thread};

use super::channels::{Sender, channel_for};
use super::places::{self, Here};
use super::program::{OWNED, Op, Program};

/// Plain memory that threads share.
#[derive(Default)]
struct Plain(UnsafeCell<usize>);

// SAFETY: whether accesses are ordered is what is asked; the model runs one thread at a time.
unsafe impl Sync for Plain {}
// SAFETY: it is a number.
unsafe impl Send for Plain {}

impl Plain {
    fn read(&self) {
        // SAFETY: as above.
        self.0.with(|value| unsafe { *value });
    }

    fn write(&self) {
        // SAFETY: as above.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

/// What may be freed.
#[derive(Default)]
struct Block {
    plain: Plain,
    atomic: AtomicUsize,
}

/// A pointer to what threads share.
struct To<T = Plain>(*const T);

// SAFETY: it is only used where the memory is known to be there, or its absence is what is to be found; the model keeps
// freed memory until the execution ends.
unsafe impl<T> Send for To<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for To<T> {}

impl<T> Clone for To<T> {
    fn clone(&self) -> To<T> {
        *self
    }
}

impl<T> Copy for To<T> {}

impl<T> Deref for To<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: as above.
        unsafe { &*self.0 }
    }
}

/// What an `Arc` owns: memory that is written when it is dropped, unless an execution is being torn down.
struct Owner(To);

impl Drop for Owner {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.0.write();
        }
    }
}

/// What a thread writes at its very end.
#[derive(Default)]
struct AtEnd(RefCell<Vec<To>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        for cell in self.0.take() {
            cell.write();
        }
    }
}

dpor::thread_local! {
    static AT_END: AtEnd = AtEnd::default();
}

/// What all threads share.
struct World {
    atomics: [To<AtomicUsize>; 2],
    cells: [To; 3],
    block: To<Block>,
    pointer: AtomicPtr<Plain>,
    /// To the stack of a thread.
    stack: AtomicPtr<Plain>,
    freed: AtomicBool,
    mutex: Mutex<()>,
    condvar: Condvar,
    rwlock: RwLock<()>,
    barrier: Barrier,
    once: Once,
}

/// What belongs to one thread.
struct Own<'s, 'w> {
    me: usize,
    world: &'w World,
    program: &'w Program,
    scope: &'s Scope<'s, 'w>,
    seen: usize,
    /// Whether this thread has freed the block.
    has_freed: bool,
    sender: Option<Sender>,
    receiver: Option<Receiver<usize>>,
    reference: Option<Arc<Owner>>,
    other: Option<Arc<Owner>>,
    weak: Option<Weak<Owner>>,
    threads: Vec<Thread>,
    /// What is on its stack.
    local: To,
    /// The threads that this one is to spawn.
    children: Vec<Own<'s, 'w>>,
    /// The handles of the threads that this one may join, by their numbers.
    handles: Vec<Option<ScopedJoinHandle<'s, ()>>>,
}

/// The locks that a thread holds.
#[derive(Default)]
struct Held<'w> {
    guard: Option<MutexGuard<'w, ()>>,
    reader: Option<RwLockReadGuard<'w, ()>>,
    writer: Option<RwLockWriteGuard<'w, ()>>,
}

/// Runs the program once, inside a model.
pub fn run(program: &Program) {
    let count = program.threads.len();
    // The memory that may be freed is a block of its own, the other is on the stack.
    let block = Box::into_raw(Box::new(Block::default()));
    let plain = [Plain::default(), Plain::default()];
    let atomics = [AtomicUsize::new(0), AtomicUsize::new(0)];
    // SAFETY: the block is there.
    let within = unsafe { &*block };
    let second = if program.inside {
        &within.atomic
    } else {
        &atomics[1]
    };
    let world = World {
        atomics: [To(&atomics[0]), To(second)],
        cells: [To(&within.plain), To(&plain[0]), To(&plain[1])],
        block: To(block),
        pointer: AtomicPtr::new(null_mut()),
        stack: AtomicPtr::new(null_mut()),
        freed: AtomicBool::new(false),
        mutex: Mutex::new(()),
        condvar: Condvar::new(),
        rwlock: RwLock::new(()),
        barrier: Barrier::new(2),
        once: Once::new(),
    };
    world.cells.iter().for_each(|cell| cell.write());
    let channel = (program.sends()).then(|| channel_for(program.room));
    let (sender, mut receiver) = channel.unzip();
    let owner = (program.refers()).then(|| Arc::new(Owner(world.cells[OWNED])));
    thread::scope(|scope| {
        let mut all: Vec<Option<Own<'_, '_>>> = (0..count)
            .map(|me| {
                Some(Own {
                    me,
                    world: &world,
                    program,
                    scope,
                    seen: 0,
                    has_freed: false,
                    sender: sender.clone(),
                    receiver: (me == program.receiving).then(|| receiver.take()).flatten(),
                    reference: owner.clone(),
                    other: None,
                    weak: (me == program.upgrading)
                        .then(|| owner.as_ref().map(Arc::downgrade))
                        .flatten(),
                    threads: vec![thread::current()],
                    local: To(null_mut()),
                    children: Vec::new(),
                    handles: (0..count).map(|_| None).collect(),
                })
            })
            .collect();
        drop((sender, owner));
        // Whoever is spawned by another thread than the first one belongs to that one, which may itself be spawned by one.
        let (nested, at_first): (Vec<usize>, Vec<usize>) =
            (1..count).partition(|&thread| program.spawner(thread).is_some());
        for thread in nested.into_iter().rev() {
            let child = all[thread].take();
            let spawner = program.spawner(thread).and_then(|at| all[at].as_mut());
            spawner.expect("it comes before").children.extend(child);
        }
        let mut first = all[0].take().expect("the first one");
        for thread in at_first {
            // Whom to unpark: the first thread, those before this one, and itself.
            let mut own = all[thread].take().expect("not spawned yet");
            own.threads.clone_from(&first.threads);
            let handle = own.spawn();
            first.threads.push(handle.thread().clone());
            let keeper = match program.keeper(thread) {
                0 => &mut first,
                keeper => all[keeper].as_mut().expect("not spawned yet"),
            };
            keeper.handles[thread] = Some(handle);
        }
        first.run();
    });
    if !world.freed.load(Relaxed) {
        world.cells[0].read();
        // SAFETY: nobody has freed it, and all other threads have ended.
        drop(unsafe { Box::from_raw(block) });
    }
    world.cells[1].read();
    world.cells[2].read();
    let made = world.pointer.load(Relaxed);
    if !made.is_null() {
        // SAFETY: it was made by a thread that has ended, as all others have.
        drop(unsafe { Box::from_raw(made) });
    }
}

impl<'s, 'w> Own<'s, 'w> {
    /// Spawns the thread that this belongs to.
    fn spawn(mut self) -> ScopedJoinHandle<'s, ()> {
        self.scope.spawn(move || {
            self.threads.push(thread::current());
            let local = Plain::default();
            if self.program.threads[self.me]
                .iter()
                .any(|step| matches!(step.op, Op::Show(_)))
            {
                local.write();
            }
            self.local = To(&local);
            self.run();
        })
    }

    fn run(mut self) {
        let mut held = Held::default();
        let source = self.program.same_as(self.me);
        for (at, step) in self.program.threads[self.me].iter().enumerate() {
            if step.only_after.is_none_or(|value| value == self.seen) {
                self.perform(step.op, places::of(source, at), &mut held);
            }
        }
    }

    fn perform(&mut self, op: Op, here: &Here<Plain>, held: &mut Held<'w>) {
        let world = self.world;
        match op {
            Op::Read(0) | Op::Write(0) if self.has_freed => {}
            Op::Load(1, _)
            | Op::Store(1, ..)
            | Op::Add(1, _)
            | Op::Swap(1, ..)
            | Op::Exchange(1, ..)
            | Op::Update(1, _)
            | Op::PlainRead(1)
            | Op::PlainWrite(1)
                if self.has_freed && self.program.inside => {}
            Op::Load(at, _)
            | Op::Store(at, ..)
            | Op::Add(at, _)
            | Op::Swap(at, ..)
            | Op::Exchange(at, ..)
            | Op::Update(at, _) => {
                if let Some(found) = (here.number)(&world.atomics[at], op) {
                    self.seen = found;
                }
            }
            Op::Fence(order) => fence(order),
            Op::PlainRead(at) => {
                // SAFETY: whether others write it is what is asked.
                unsafe { world.atomics[at].unsync_load() };
            }
            Op::PlainWrite(at) => {
                let atomic = world.atomics[at].0.cast_mut();
                // SAFETY: as above; the value stays.
                unsafe { (*atomic).with_mut(|_| ()) };
            }
            Op::Publish(order) => {
                let made = Box::into_raw(Box::new(Plain::default()));
                (here.store)(&world.pointer, made, order);
            }
            Op::Follow(order, writes) => {
                let made: *const Plain = (here.load)(&world.pointer, order);
                if !made.is_null() {
                    match writes {
                        true => To(made).write(),
                        false => To(made).read(),
                    }
                }
            }
            Op::Take(order) => {
                let made = (here.take)(&world.pointer, order);
                if !made.is_null() {
                    // SAFETY: whether others still use it is the question.
                    drop(unsafe { Box::from_raw(made) });
                }
            }
            Op::Show(order) if self.me > 0 => {
                (here.store)(&world.stack, self.local.0.cast_mut(), order);
            }
            Op::Show(_) => {}
            Op::Look(order, writes) => {
                let shown: *const Plain = (here.load)(&world.stack, order);
                if !shown.is_null() && shown != self.local.0 {
                    match writes {
                        true => To(shown).write(),
                        false => To(shown).read(),
                    }
                }
            }
            Op::Read(cell) => world.cells[cell].read(),
            Op::Write(cell) => world.cells[cell].write(),
            Op::Free => {
                world.freed.store(true, Relaxed);
                self.has_freed = true;
                // SAFETY: only one thread does this; whether others still use the block is the question.
                drop(unsafe { Box::from_raw(world.block.0.cast_mut()) });
            }
            Op::Spawn(thread) => {
                let at = self.children.iter().position(|child| child.me == thread);
                if let Some(at) = at {
                    let child = self.children.remove(at);
                    self.handles[thread] = Some(child.spawn());
                }
            }
            Op::Join(thread) | Op::IsFinished(thread) => {
                let Some(handle) = self.handles.get_mut(thread) else {
                    return;
                };
                if op != Op::Join(thread) {
                    if let Some(handle) = handle {
                        self.seen = handle.is_finished().into();
                    }
                } else if let Some(handle) = handle.take() {
                    handle.join().expect("no thread panics");
                }
            }
            Op::AtEnd(cell) if self.me > 0 => {
                AT_END.with(|at_end| at_end.0.borrow_mut().push(world.cells[cell]));
            }
            Op::AtEnd(_) => {}
            op => self.use_lock(op, held),
        }
    }

    /// Locks, conditions, barriers and tokens.
    fn use_lock(&mut self, op: Op, held: &mut Held<'w>) {
        let world = self.world;
        let has_lock = held.reader.is_some() || held.writer.is_some();
        match op {
            Op::Lock | Op::TryLock if held.guard.is_some() => {}
            Op::Lock => held.guard = Some(world.mutex.lock().unwrap()),
            Op::TryLock => {
                held.guard = world.mutex.try_lock().ok();
                self.seen = held.guard.is_some().into();
            }
            Op::Unlock => held.guard = None,
            Op::Wait => {
                let guard = held.guard.take();
                held.guard = guard.map(|guard| world.condvar.wait(guard).unwrap());
            }
            Op::WaitTimeout => {
                if let Some(guard) = held.guard.take() {
                    let waited = world.condvar.wait_timeout(guard, Duration::ZERO);
                    let (guard, result) = waited.unwrap();
                    held.guard = Some(guard);
                    self.seen = (!result.timed_out()).into();
                }
            }
            Op::NotifyOne => world.condvar.notify_one(),
            Op::NotifyAll => world.condvar.notify_all(),
            Op::ReadLock | Op::TryReadLock | Op::WriteLock | Op::TryWriteLock if has_lock => {}
            Op::ReadLock => held.reader = Some(world.rwlock.read().unwrap()),
            Op::TryReadLock => {
                held.reader = world.rwlock.try_read().ok();
                self.seen = held.reader.is_some().into();
            }
            Op::WriteLock => held.writer = Some(world.rwlock.write().unwrap()),
            Op::TryWriteLock => {
                held.writer = world.rwlock.try_write().ok();
                self.seen = held.writer.is_some().into();
            }
            Op::Downgrade => {
                if let Some(guard) = held.writer.take() {
                    held.reader = Some(RwLockWriteGuard::downgrade(guard));
                }
            }
            Op::ReleaseLock => (held.reader, held.writer) = (None, None),
            Op::Arrive => {
                world.barrier.wait();
            }
            Op::CallOnce(cell) => {
                self.seen = 0;
                world.once.call_once(|| {
                    self.seen = 1;
                    world.cells[cell].write();
                });
            }
            Op::IsCompleted => self.seen = world.once.is_completed().into(),
            Op::WaitOnce => {
                world.once.wait();
                self.seen = 1;
            }
            Op::Park => thread::park(),
            Op::ParkTimeout => thread::park_timeout(Duration::ZERO),
            Op::Unpark(thread) => {
                let spawns = self.program.has(|op| matches!(op, Op::Spawn(_)));
                if !spawns && let Some(thread) = self.threads.get(thread) {
                    thread.unpark();
                }
            }
            op => self.pass_on(op),
        }
    }

    /// Messages and references.
    fn pass_on(&mut self, op: Op) {
        match op {
            Op::Send => {
                let sent = match &self.sender {
                    Some(Sender::Any(sender)) => sender.send(1),
                    Some(Sender::Bounded(sender)) => sender.send(1),
                    None => return,
                };
                self.seen = sent.is_ok().into();
            }
            Op::TrySend => {
                let sent = match &self.sender {
                    Some(Sender::Any(sender)) => sender
                        .send(1)
                        .map_err(|error| TrySendError::Disconnected(error.0)),
                    Some(Sender::Bounded(sender)) => sender.try_send(1),
                    None => return,
                };
                self.seen = match sent {
                    Ok(()) => 1,
                    Err(TrySendError::Full(_)) => 0,
                    Err(TrySendError::Disconnected(_)) => 2,
                };
            }
            Op::RecvTimeout => {
                if let Some(receiver) = &self.receiver {
                    self.seen = match receiver.recv_timeout(Duration::ZERO) {
                        Ok(message) => message,
                        Err(RecvTimeoutError::Timeout) => 0,
                        Err(RecvTimeoutError::Disconnected) => 2,
                    };
                }
            }
            Op::Recv => {
                if let Some(receiver) = &self.receiver {
                    self.seen = receiver.recv().unwrap_or(2);
                }
            }
            Op::TryRecv => {
                if let Some(receiver) = &self.receiver {
                    self.seen = match receiver.try_recv() {
                        Ok(message) => message,
                        Err(TryRecvError::Empty) => 0,
                        Err(TryRecvError::Disconnected) => 2,
                    };
                }
            }
            Op::DropSender => self.sender = None,
            Op::DropReceiver => self.receiver = None,
            Op::DropArc => self.reference = None,
            Op::CloneArc => {
                if self.other.is_none() {
                    self.other = self.reference.clone();
                }
            }
            Op::Upgrade => {
                if let Some(weak) = &self.weak
                    && self.other.is_none()
                {
                    self.other = weak.upgrade();
                    self.seen = self.other.is_some().into();
                }
            }
            Op::DropOther => self.other = None,
            Op::DropWeak => self.weak = None,
            Op::StrongCount => {
                if let Some(reference) = &self.reference {
                    self.seen = Arc::strong_count(reference);
                }
            }
            Op::GetMut => {
                if let Some(reference) = &mut self.reference {
                    let owner = Arc::get_mut(reference);
                    self.seen = owner.is_some().into();
                    if let Some(Owner(cell)) = owner {
                        cell.write();
                    }
                }
            }
            Op::TryUnwrap => {
                if let Some(reference) = self.reference.take() {
                    match Arc::try_unwrap(reference) {
                        Ok(owner) => {
                            self.seen = 1;
                            drop(owner);
                        }
                        Err(reference) => {
                            self.seen = 0;
                            self.reference = Some(reference);
                        }
                    }
                }
            }
            op => unreachable!("{op:?} is performed elsewhere"),
        }
    }
}
