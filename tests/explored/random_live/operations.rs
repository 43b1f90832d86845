//! What does an operation do that is one step, or how does one begin that has several?

use super::program::{Logic, Op, Small};
use super::std_says::{BARRIER, CHANNEL, Do, GROUP, RW, Stage, State, VALUE};

impl State {
    /// Performs an operation that is one step, or begins one.
    pub(super) fn operate(&mut self, me: usize, op: Op) -> bool {
        let seen = match op {
            Op::Load(a) => {
                self.touch("Read", "atomic", a);
                self.atomics[a]
            }
            Op::Spin(a, value) if self.atomics[a] != value => return false,
            Op::Spin(..) => 0,
            Op::Store(a, value) => {
                self.touch("Write", "atomic", a);
                self.atomics[a] = value;
                0
            }
            Op::Add(a) => {
                self.touch("Write", "atomic", a);
                self.atomics[a] += 1;
                self.atomics[a] - 1
            }
            Op::Exchange(a, from, to) | Op::WeakExchange(a, from, to)
                if self.atomics[a] == from =>
            {
                self.touch("Write", "atomic", a);
                self.atomics[a] = to;
                self.threads[me].failed[a] = false;
                10 + from
            }
            Op::Exchange(a, ..) | Op::WeakExchange(a, ..) => {
                self.touch("Read", "atomic", a);
                self.atomics[a]
            }
            Op::Small(Small::Update, add) => {
                self.touch("Read", "small", 0);
                let from = self.small;
                self.first_do(me, &[Do::Swap { from, add }]);
                return true;
            }
            Op::Small(op, n) => {
                self.touch("Write", "small", 0);
                let old = self.small;
                self.small = match op {
                    Small::Swap => n,
                    Small::Sub => old.wrapping_sub(n),
                    Small::And => old & n,
                    Small::Nand => !(old & n),
                    Small::Or => old | n,
                    Small::Xor => old ^ n,
                    Small::Max => old.max(n),
                    Small::Min => old.min(n),
                    Small::Update => unreachable!("see above"),
                };
                old as u8 as usize
            }
            Op::Flag(op, value) => {
                self.touch("Write", "flag", 0);
                let old = self.flag;
                self.flag = match op {
                    Logic::And => old && value,
                    Logic::Nand => !(old && value),
                    Logic::Or => old || value,
                    Logic::Xor => old != value,
                    Logic::Not => !old,
                };
                old.into()
            }
            Op::Fence => 0,
            Op::AddKept => {
                self.touch("Write", "kept", 0);
                self.kept += 1;
                self.kept - 1
            }
            Op::TryLock(m) if self.locks[m].taken => {
                self.touch("AcquireFailed", "lock", m);
                999
            }
            Op::TryLock(m) => {
                self.first_do(me, &[Do::Check(m)]);
                return self.step(me, Do::Take(m));
            }
            Op::TryRead if self.locks[RW].taken => {
                self.touch("AcquireFailed", "lock", RW);
                999
            }
            Op::TryRead => {
                self.first_do(me, &[Do::Check(RW)]);
                return self.step(me, Do::TakeShared);
            }
            Op::TryWrite if self.locks[RW].taken || self.locks[RW].readers > 0 => {
                self.touch("WriteFailed", "lock", RW);
                999
            }
            Op::TryWrite => {
                self.first_do(me, &[Do::Check(RW)]);
                return self.step(me, Do::Take(RW));
            }
            Op::Downgrade => {
                let lock = &mut self.locks[RW];
                (lock.taken, lock.readers) = (false, 1);
                (self.threads[me].holds[RW], self.threads[me].reads) = (false, true);
                self.touch("Release", "lock", RW);
                0
            }
            Op::IsPoisoned => {
                self.touch("Read", "poison", 0);
                self.locks[0].poisoned.into()
            }
            Op::IsWrittenPoisoned => {
                self.touch("Read", "poison", RW);
                self.locks[RW].poisoned.into()
            }
            Op::ClearPoison => {
                self.touch("Write", "poison", 0);
                self.locks[0].poisoned = false;
                0
            }
            Op::ClearWrittenPoison => {
                self.touch("Write", "poison", RW);
                self.locks[RW].poisoned = false;
                0
            }
            Op::NotifyAll => {
                let woken = std::mem::take(&mut self.waiters);
                self.notify_all(woken);
                0
            }
            Op::Park => {
                self.touch("Park", "token", me);
                self.threads[me].token = false;
                0
            }
            Op::ParkTimeout => {
                let class = if self.threads[me].token {
                    "Park"
                } else {
                    "ParkFailed"
                };
                self.touch(class, "token", me);
                self.threads[me].token = false;
                0
            }
            Op::Unpark(of) if self.threads[me].known[of] => {
                self.touch("Unpark", "token", of);
                self.threads[of].token = true;
                0
            }
            Op::Notify => {
                self.touch("Unpark", "notify", 0);
                self.notify = true;
                0
            }
            Op::WaitNotify => {
                self.touch("Park", "notify", 0);
                self.notify = false;
                0
            }
            Op::CallOnce | Op::OncePanics | Op::OnceForce => return self.call_once(me, op),
            Op::IsCompleted => {
                self.touch("Peek", "once", 0);
                matches!(self.once, Stage::Done(_)).into()
            }
            Op::WaitOnce => match self.once {
                Stage::New | Stage::Running => return false,
                Stage::Done(_) => {
                    self.touch("Peek", "once", 0);
                    0
                }
                Stage::Poisoned => {
                    self.touch("OnceFailed", "once", 0);
                    3
                }
            },
            Op::SetCell(_) | Op::InitCell(_) | Op::InitPanics => return self.init(me, op),
            Op::GetCell => {
                self.touch("Peek", "cell", 0);
                match self.cell {
                    Stage::Done(value) => value,
                    _ => 0,
                }
            }
            Op::Force => {
                self.touch(
                    match self.lazy {
                        Stage::New => "OnceBegin",
                        Stage::Poisoned => "OnceFailed",
                        _ => "Peek",
                    },
                    "lazy",
                    0,
                );
                if self.lazy == Stage::New {
                    self.touch("Read", "kept", 0);
                    self.touch("OnceEnd", "lazy", 0);
                    let made = self.kept + 5;
                    self.lazy = if self.kept == 1 {
                        Stage::Poisoned
                    } else {
                        Stage::Done(made)
                    };
                }
                match self.lazy {
                    Stage::Done(value) => value,
                    _ => 3,
                }
            }
            Op::Send(_) | Op::TrySend(_) | Op::TryRecv | Op::CloneSender => {
                return self.use_channel(me, op);
            }
            Op::Arrive => {
                let missing = self.rules.group - self.arrived;
                self.touch_one("Arrive", BARRIER, self.generation * GROUP + missing);
                self.arrived += 1;
                if self.arrived < self.rules.group {
                    let generation = self.generation;
                    self.first_do(me, &[Do::Leave { generation }]);
                    return true;
                }
                (self.arrived, self.generation) = (0, self.generation + 1);
                1
            }
            Op::Count | Op::WeakCount | Op::Unique | Op::TryUnwrap | Op::IntoInner
                if !self.threads[me].value =>
            {
                999
            }
            Op::CountByWeak | Op::WeakCountByWeak | Op::Upgrade if !self.threads[me].weak => 999,
            Op::Count | Op::WeakCount | Op::CountByWeak | Op::WeakCountByWeak | Op::Unique => {
                self.touch_one("CountRead", VALUE, 0);
                match op {
                    Op::Count | Op::CountByWeak => self.strong,
                    Op::WeakCountByWeak if self.strong == 0 => 0,
                    Op::Unique => (self.strong == 1 && self.weak == 0).into(),
                    _ => self.weak,
                }
            }
            Op::KeepUpgraded if self.threads[me].value => 2,
            Op::KeepUpgraded if !self.threads[me].weak => 0,
            Op::Upgrade | Op::KeepUpgraded if self.strong == 0 => {
                self.touch_one("TooLate", VALUE, 0);
                0
            }
            Op::KeepUpgraded => {
                self.touch_one("Upgrade", VALUE, 0);
                self.strong += 1;
                self.threads[me].value = true;
                1
            }
            Op::Upgrade | Op::CloneArc => {
                let is_clone = op == Op::CloneArc;
                self.touch_one(if is_clone { "Retain" } else { "Upgrade" }, VALUE, 0);
                self.strong += 1;
                let log = (!is_clone).into();
                self.first_do(me, &[Do::DropTemporary { log }]);
                return true;
            }
            Op::TryUnwrap if self.strong > 1 => {
                self.touch_one("CountRead", VALUE, 0);
                0
            }
            Op::TryUnwrap => {
                self.touch_one("CountTake", VALUE, 0);
                self.threads[me].value = false;
                self.strong = 0;
                self.log(me, 900);
                1
            }
            Op::IntoInner => {
                self.threads[me].value = false;
                self.release(me).into()
            }
            Op::Raise => {
                self.touch("Write", "ready", 0);
                self.ready = true;
                self.first_do(me, &[Do::TakeWaker]);
                return true;
            }
            Op::Local => {
                self.threads[me].marked = true;
                0
            }
            Op::IsFinished(of) if self.has_handle(me, of) => {
                self.touch("Poll", "thread", of);
                self.threads[of].ended.into()
            }
            Op::Join(of) if self.has_handle(me, of) => return self.join(me, of),
            Op::Panic => {
                let count = self.threads.len();
                let thread = &mut self.threads[me];
                (thread.unwinds, thread.panicked) = (true, true);
                let handles = (1..count).map(Do::DropHandle);
                let leaves = State::leaves().into_iter().chain(handles);
                thread.next = leaves.chain(State::ends()).collect();
                return true;
            }
            Op::Unpark(_) | Op::IsFinished(_) | Op::Join(_) => 999,
            other => unreachable!("{other:?} has parts"),
        };
        self.log(me, seen);
        true
    }

    fn has_handle(&self, me: usize, of: usize) -> bool {
        self.threads[me].handles[of]
    }

    /// Waits for a thread, and drops what it has returned.
    pub(super) fn join(&mut self, me: usize, of: usize) -> bool {
        if !self.threads[of].ended {
            return false;
        }
        self.threads[me].handles[of] = false;
        if self.rules.detaches {
            self.log(me, 900);
        }
        let panicked = std::mem::take(&mut self.threads[of].panicked);
        self.log(me, panicked.into());
        true
    }

    /// Gives up a share of what a thread has returned. The last one drops it.
    pub(super) fn drop_share(&mut self, me: usize, of: usize) {
        self.touch_one("Drop", ("result", of), self.threads[of].shares);
        self.threads[of].shares -= 1;
        if self.threads[of].shares == 0 && self.rules.detaches {
            self.log(me, 900);
        }
    }

    /// Gives up a reference; true if it was the last one, which drops the value.
    pub(super) fn release(&mut self, me: usize) -> bool {
        self.touch_one("Drop", VALUE, self.strong);
        self.strong -= 1;
        if self.strong == 0 {
            self.log(me, 900);
        }
        self.strong == 0
    }

    fn call_once(&mut self, me: usize, op: Op) -> bool {
        let end = |poison, log| Do::EndOnce { poison, log };
        let parts: &[Do] = match (self.once, op) {
            (Stage::Running, _) => return false,
            (Stage::New, Op::OncePanics) => &[end(true, 3)],
            (Stage::New, _) => &[Do::StoreOnce, end(false, 1)],
            (Stage::Poisoned, Op::OnceForce) => &[Do::StoreOnce, end(false, 2)],
            (Stage::Poisoned, _) => &[Do::Log(3)],
            (Stage::Done(_), _) => &[Do::Log(0)],
        };
        self.first_do(me, parts);
        match parts {
            [Do::Log(0)] => self.touch("Peek", "once", 0),
            [Do::Log(_)] => self.touch("OnceFailed", "once", 0),
            _ => {
                self.once = Stage::Running;
                self.touch("OnceBegin", "once", 0);
            }
        }
        true
    }

    fn init(&mut self, me: usize, op: Op) -> bool {
        let (value, log) = match op {
            Op::SetCell(value) => (Some(value), 1),
            Op::InitCell(value) => (Some(value), value),
            _ => (None, 3),
        };
        match self.cell {
            Stage::Running => return false,
            Stage::Done(there) => {
                let seen = match op {
                    Op::SetCell(_) => 0,
                    Op::InitCell(_) => there,
                    _ => there + 100,
                };
                self.log(me, seen);
                self.touch("Peek", "cell", 0);
            }
            Stage::New | Stage::Poisoned => {
                self.cell = Stage::Running;
                self.first_do(me, &[Do::EndCell { value, log }]);
                self.touch("OnceBegin", "cell", 0);
            }
        }
        true
    }

    /// The first message, or whether there will be none.
    pub(super) fn receive(&mut self) -> Result<usize, bool> {
        self.channel.waiting = false;
        let Some((_, message)) = self.channel.queue.pop_front() else {
            self.touch_one("RecvFailed", CHANNEL, 0);
            return Err(self.channel.senders == 0);
        };
        self.touch_one("Received", CHANNEL, self.channel.received);
        self.channel.received += 1;
        Ok(message)
    }

    fn use_channel(&mut self, me: usize, op: Op) -> bool {
        let (room, channel) = (self.rules.room, &self.channel);
        let is_full = room.is_some_and(|room| channel.queue.len() >= room);
        // Without any room a message may be put into the hands of a receiver that waits.
        let hands = room == Some(0) && channel.waiting && channel.queue.is_empty();
        let has_sender = self.threads[me].sender;
        let seen = match op {
            Op::TryRecv => match self.receive() {
                Ok(message) => message,
                Err(false) => 100,
                Err(true) => 101,
            },
            _ if !has_sender => {
                if op == Op::CloneSender {
                    0
                } else {
                    999
                }
            }
            Op::CloneSender => {
                self.threads[me].more_senders += 1;
                self.channel.senders += 1;
                self.touch_one("AddSender", CHANNEL, 0);
                0
            }
            Op::TrySend(_) if room.is_none() => 999,
            Op::Send(_) | Op::TrySend(_) if !channel.receiver => {
                self.touch_one("SendFailed", CHANNEL, 0);
                if matches!(op, Op::Send(_)) { 0 } else { 3 }
            }
            Op::Send(message) if room == Some(0) => {
                self.first_do(me, &[Do::Taken(self.channel.sent)]);
                self.put(Some(me), message, "Sent");
                return true;
            }
            Op::Send(_) if is_full => return false,
            Op::TrySend(_) if is_full && !hands => {
                self.touch_one("SendFailed", CHANNEL, 0);
                2
            }
            Op::Send(message) | Op::TrySend(message) => {
                self.put(None, message, if hands { "HandOver" } else { "Sent" });
                1
            }
            other => unreachable!("{other:?} has nothing to do with a channel"),
        };
        self.log(me, seen);
        true
    }

    /// Puts a message into the channel, for which this thread waits to be taken.
    fn put(&mut self, waits: Option<usize>, message: usize, class: &'static str) {
        let channel = &mut self.channel;
        channel.queue.push_back((waits, message));
        channel.sent += 1;
        let index = channel.sent - 1;
        self.touch_one(class, CHANNEL, index);
    }
}
