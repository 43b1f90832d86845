//! What do locks, threads, channels and references do, and what do they order?
//!
//! What std's documentation promises, or C++ of the thing of the same name; for an `Arc` what its implementation does.

use std::collections::VecDeque;

use super::super::happens_before::Events;
use super::super::program::{OWNED, Op, Program};
use super::{Memory, Stage, State};

#[derive(Clone)]
pub(super) struct Primitives {
    mutex: Option<usize>,
    unlocks: Events,
    readers: Vec<bool>,
    writer: Option<usize>,
    write_unlocks: Events,
    read_unlocks: Events,
    /// Of a group of two.
    arrived: Vec<(usize, Events)>,
    initialised: Option<Events>,
    messages: VecDeque<Events>,
    /// Those that were received.
    taken: Vec<Events>,
    /// Whether the receiver waits, where there is no room.
    waits: bool,
    room: Option<usize>,
    senders: Vec<bool>,
    senders_gone: Events,
    receiver: Option<usize>,
    receiver_gone: Events,
    tokens: Vec<bool>,
    unparks: Vec<Events>,
    joined: Vec<bool>,
    pub(super) at_end: Vec<Vec<usize>>,
    strong: usize,
    references: Vec<bool>,
    others: Vec<bool>,
    /// Who has the only one.
    weak: Option<usize>,
    drops: Events,
    weak_drops: Events,
}

impl Primitives {
    pub(super) fn new(program: &Program) -> Primitives {
        let threads = program.threads.len();
        let none = vec![false; threads];
        Primitives {
            mutex: None,
            unlocks: 0,
            readers: none.clone(),
            writer: None,
            write_unlocks: 0,
            read_unlocks: 0,
            arrived: Vec::new(),
            initialised: None,
            messages: VecDeque::new(),
            taken: Vec::new(),
            waits: false,
            room: program.room,
            senders: vec![true; threads],
            senders_gone: 0,
            receiver: Some(program.receiving),
            receiver_gone: 0,
            tokens: none.clone(),
            unparks: vec![0; threads],
            joined: none.clone(),
            at_end: vec![Vec::new(); threads],
            strong: threads,
            references: vec![true; threads],
            others: none,
            weak: Some(program.upgrading),
            drops: 0,
            weak_drops: 0,
        }
    }

    pub(super) fn mutex_is_free(&self) -> bool {
        self.mutex.is_none()
    }

    fn is_full(&self) -> bool {
        self.room
            .is_some_and(|room| room > 0 && room == self.messages.len())
    }

    /// Whether the sender of this message need not wait any more.
    pub(super) fn is_over(&self, message: usize) -> bool {
        message < self.taken.len() || self.receiver.is_none()
    }

    fn has_no_sender(&self) -> bool {
        !self.senders.contains(&true)
    }
}

impl State<'_> {
    /// Whether the thread has what it takes to do this.
    pub(super) fn applies(&self, me: usize, op: Op) -> bool {
        let it = &self.primitives;
        let threads = self.program.threads.len();
        let has_lock = it.readers[me] || it.writer == Some(me);
        match op {
            Op::Lock | Op::TryLock => it.mutex != Some(me),
            Op::Unlock | Op::Wait | Op::WaitTimeout => it.mutex == Some(me),
            Op::ReadLock | Op::TryReadLock | Op::WriteLock | Op::TryWriteLock => !has_lock,
            Op::Downgrade => it.writer == Some(me),
            Op::ReleaseLock => has_lock,
            Op::Send | Op::TrySend | Op::DropSender => it.senders[me],
            Op::Recv | Op::RecvTimeout | Op::TryRecv | Op::DropReceiver => it.receiver == Some(me),
            // Nobody knows those that are spawned behind it.
            Op::Unpark(thread) => {
                let spawns = self.program.has(|op| matches!(op, Op::Spawn(_)));
                thread < threads && (me == 0 || thread <= me) && !spawns
            }
            Op::Spawn(thread) => thread < threads,
            Op::IsFinished(thread) | Op::Join(thread) => {
                thread > 0
                    && thread < threads
                    && self.program.keeper(thread) == me
                    && !it.joined[thread]
                    && self.stages[thread] != Stage::Unborn
            }
            Op::DropArc | Op::StrongCount | Op::GetMut | Op::TryUnwrap => it.references[me],
            Op::CloneArc => it.references[me] && !it.others[me],
            Op::Upgrade => it.weak == Some(me) && !it.others[me],
            Op::DropOther => it.others[me],
            Op::DropWeak => it.weak == Some(me),
            _ => true,
        }
    }

    /// In how many ways this can happen now.
    pub(super) fn ways(&self, me: usize, op: Op) -> usize {
        let it = &self.primitives;
        let can = match op {
            Op::NotifyOne => return self.waiting().count().max(1),
            Op::Lock => it.mutex.is_none(),
            Op::ReadLock => it.writer.is_none(),
            Op::WriteLock => it.writer.is_none() && !it.readers.contains(&true),
            Op::WaitOnce => it.initialised.is_some(),
            Op::Send => it.receiver.is_none() || !it.is_full(),
            Op::Recv if it.room == Some(0) && !it.waits => true,
            Op::Recv => !it.messages.is_empty() || it.has_no_sender(),
            Op::Park => it.tokens[me],
            Op::Join(thread) => self.stages[thread] == Stage::Ended,
            _ => true,
        };
        can.into()
    }

    fn waiting(&self) -> impl Iterator<Item = usize> {
        let waits =
            |&thread: &usize| matches!(self.stages[thread], Stage::InWait | Stage::InTimedWait);
        (0..self.stages.len()).filter(waits)
    }

    /// Does it, in the way with this number.
    pub(super) fn apply(&mut self, me: usize, op: Op, choice: usize) {
        match op {
            Op::Lock => self.lock(me),
            Op::TryLock => {
                let is_free = self.primitives.mutex.is_none();
                self.seen[me] = is_free.into();
                if is_free {
                    self.lock(me);
                }
            }
            Op::Unlock | Op::Wait | Op::WaitTimeout => {
                self.primitives.unlocks |= self.event(me, 0);
                self.primitives.mutex = None;
                match op {
                    Op::Wait => self.stages[me] = Stage::InWait,
                    Op::WaitTimeout => self.stages[me] = Stage::InTimedWait,
                    _ => {}
                }
            }
            Op::NotifyOne => {
                let one = self.waiting().nth(choice);
                one.into_iter().for_each(|thread| self.notify(thread));
            }
            Op::NotifyAll => {
                let all: Vec<usize> = self.waiting().collect();
                all.into_iter().for_each(|thread| self.notify(thread));
            }
            Op::ReadLock | Op::TryReadLock => {
                let is_free = self.primitives.writer.is_none();
                if op == Op::TryReadLock {
                    self.seen[me] = is_free.into();
                }
                if is_free {
                    self.event(me, self.primitives.write_unlocks);
                    self.primitives.readers[me] = true;
                }
            }
            Op::WriteLock | Op::TryWriteLock => {
                let it = &self.primitives;
                let is_free = it.writer.is_none() && !it.readers.contains(&true);
                if op == Op::TryWriteLock {
                    self.seen[me] = is_free.into();
                }
                if is_free {
                    let unlocks = it.write_unlocks | it.read_unlocks;
                    self.event(me, unlocks);
                    self.primitives.writer = Some(me);
                }
            }
            Op::Downgrade => {
                self.primitives.write_unlocks |= self.event(me, 0);
                self.primitives.writer = None;
                self.primitives.readers[me] = true;
            }
            Op::ReleaseLock if self.primitives.writer == Some(me) => {
                self.primitives.write_unlocks |= self.event(me, 0);
                self.primitives.writer = None;
            }
            Op::ReleaseLock => {
                self.primitives.read_unlocks |= self.event(me, 0);
                self.primitives.readers[me] = false;
            }
            Op::Arrive => self.arrive(me),
            Op::CallOnce(cell) => match self.primitives.initialised {
                Some(end) => {
                    self.event(me, end);
                    self.seen[me] = 0;
                }
                None => {
                    self.access(me, Memory::Cell(cell), true);
                    self.primitives.initialised = Some(self.event(me, 0));
                    self.seen[me] = 1;
                }
            },
            Op::IsCompleted | Op::WaitOnce => {
                let end = self.primitives.initialised;
                self.seen[me] = end.is_some().into();
                self.event(me, end.unwrap_or(0));
            }
            Op::Send => {
                let is_there = self.primitives.receiver.is_some();
                self.seen[me] = is_there.into();
                let gone = self.primitives.receiver_gone;
                let sent = self.event(me, gone);
                if is_there {
                    let it = &mut self.primitives;
                    it.messages.push_back(sent);
                    if it.room == Some(0) {
                        let message = it.taken.len() + it.messages.len() - 1;
                        self.stages[me] = Stage::Sending(message);
                    }
                }
            }
            Op::TrySend => {
                let it = &self.primitives;
                let gone = it.receiver_gone;
                let is_there = it.receiver.is_some();
                let has_room = match it.room {
                    Some(0) => it.waits && it.messages.is_empty(),
                    _ => !it.is_full(),
                };
                self.seen[me] = match (is_there, has_room) {
                    (false, _) => 2,
                    (true, has_room) => has_room.into(),
                };
                let sent = self.event(me, gone);
                if self.seen[me] == 1 {
                    self.primitives.messages.push_back(sent);
                }
            }
            Op::Recv | Op::RecvTimeout
                if self.primitives.room == Some(0) && !self.primitives.waits =>
            {
                self.primitives.waits = true;
                self.next[me] -= 1;
            }
            Op::Recv | Op::RecvTimeout | Op::TryRecv => {
                self.primitives.waits = false;
                let (seen, sources) = match self.primitives.messages.pop_front() {
                    Some(sent) => (1, sent),
                    None if self.primitives.has_no_sender() => (2, self.primitives.senders_gone),
                    None => (0, 0),
                };
                self.seen[me] = seen;
                let received = self.event(me, sources);
                if seen == 1 {
                    self.primitives.taken.push(received);
                }
            }
            Op::DropSender => {
                self.primitives.senders_gone |= self.event(me, 0);
                self.primitives.senders[me] = false;
            }
            Op::DropReceiver => {
                // To discard a message is to receive it. Whose message nobody has made room for takes it back.
                let all = self.primitives.messages.iter();
                let all = all.fold(0, |all, message| all | message);
                let discarded = if self.primitives.room == Some(0) {
                    0
                } else {
                    all
                };
                self.primitives.receiver_gone = self.event(me, discarded);
                self.primitives.receiver = None;
            }
            Op::Park => {
                self.event(me, self.primitives.unparks[me]);
                self.primitives.tokens[me] = false;
            }
            Op::ParkTimeout => {
                let has_token = std::mem::take(&mut self.primitives.tokens[me]);
                let unparks = self.primitives.unparks[me];
                self.event(me, if has_token { unparks } else { 0 });
            }
            Op::Unpark(thread) => {
                self.primitives.unparks[thread] |= self.event(me, 0);
                self.primitives.tokens[thread] = true;
            }
            Op::Spawn(thread) => {
                let spawned = self.event(me, 0);
                self.begin(thread, spawned);
            }
            Op::IsFinished(thread) => {
                self.seen[me] = (self.stages[thread] == Stage::Ended).into();
            }
            Op::Join(thread) => {
                let last = self.history.last(thread);
                self.event(me, last.map_or(0, |event| 1 << event));
                self.primitives.joined[thread] = true;
            }
            _ => self.refer(me, op),
        }
    }

    pub(super) fn lock(&mut self, me: usize) {
        self.event(me, self.primitives.unlocks);
        self.primitives.mutex = Some(me);
    }

    /// The message with this number, which there was no room for, was taken or will not be.
    pub(super) fn has_sent(&mut self, me: usize, message: usize) {
        let it = &self.primitives;
        let taken = it.taken.get(message).copied();
        self.seen[me] = taken.is_some().into();
        let gone = it.receiver_gone;
        self.event(me, taken.unwrap_or(gone));
    }

    fn notify(&mut self, thread: usize) {
        if self.stages[thread] == Stage::InTimedWait {
            self.seen[thread] = 1;
        }
        self.stages[thread] = Stage::Notified;
    }

    /// The last of a group lets the others go.
    fn arrive(&mut self, me: usize) {
        let arrival = self.event(me, 0);
        self.primitives.arrived.push((me, arrival));
        self.stages[me] = Stage::AtBarrier;
        if self.primitives.arrived.len() < 2 {
            return;
        }
        let group = std::mem::take(&mut self.primitives.arrived);
        let all = group.iter().fold(0, |all, (_, arrival)| all | arrival);
        for (thread, _) in group {
            self.event(thread, all);
            self.stages[thread] = Stage::Ready;
        }
    }

    /// What is done to a counted reference.
    fn refer(&mut self, me: usize, op: Op) {
        let it = &mut self.primitives;
        match op {
            Op::DropArc => {
                it.references[me] = false;
                self.release(me);
            }
            Op::DropOther => {
                it.others[me] = false;
                self.release(me);
            }
            Op::CloneArc => {
                it.others[me] = true;
                it.strong += 1;
            }
            Op::Upgrade => {
                let is_there = it.strong > 0;
                self.seen[me] = is_there.into();
                if is_there {
                    it.others[me] = true;
                    it.strong += 1;
                    let drops = it.drops;
                    self.event(me, drops);
                }
            }
            Op::DropWeak => {
                it.weak = None;
                let gone = self.event(me, 0);
                self.primitives.weak_drops = gone;
            }
            Op::StrongCount => self.seen[me] = it.strong,
            Op::GetMut => {
                let is_alone = it.strong == 1 && it.weak.is_none();
                self.seen[me] = is_alone.into();
                if is_alone {
                    let drops = it.drops | it.weak_drops;
                    self.event(me, drops);
                    self.access(me, Memory::Cell(OWNED), true);
                }
            }
            Op::TryUnwrap => {
                let is_alone = it.strong == 1;
                self.seen[me] = is_alone.into();
                if is_alone {
                    it.references[me] = false;
                    self.release(me);
                }
            }
            other => unreachable!("{other:?} is none of these"),
        }
    }

    /// A reference is given up. The last one takes the value with it.
    fn release(&mut self, me: usize) {
        self.primitives.strong -= 1;
        let is_last = self.primitives.strong == 0;
        let drops = if is_last { self.primitives.drops } else { 0 };
        self.primitives.drops |= self.event(me, drops);
        if is_last {
            self.access(me, Memory::Cell(OWNED), true);
        }
    }
}
