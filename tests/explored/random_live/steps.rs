//! What does a step of a thread lead to?

use super::program::Op;
use super::std_says::{BARRIER, CHANNEL, CONDVAR, Do, Lock, RW, Stage, State, VALUE};

impl State {
    /// Where the next step of this thread may lead to: nowhere while it waits.
    pub(super) fn steps(&self, me: usize) -> Vec<State> {
        let mut state = self.clone();
        state.touched.clear();
        if !self.threads[me].born {
            return vec![];
        }
        let Some(part) = state.threads[me].next.pop_front() else {
            return vec![];
        };
        match part {
            Do::Begin(Op::WeakExchange(a, from, _)) if self.rules.spurious => {
                let mut all = vec![];
                if self.atomics[a] == from && !self.threads[me].failed[a] {
                    let mut failed = state.clone();
                    failed.threads[me].failed[a] = true;
                    failed.note_no_reason(me);
                    failed.log(me, from);
                    all.push(failed);
                }
                all.extend(state.step(me, part).then_some(state));
                all
            }
            Do::Begin(Op::Choose) => [0, 1, 2]
                .map(|chosen| state.clone().with(|it| it.log(me, chosen)))
                .into(),
            Do::Begin(Op::NotifyOne) => {
                state.log(me, 0);
                let wake = |&waiter: &usize| {
                    state.clone().with(|it| {
                        it.waiters.remove(&waiter);
                        it.notify_all([waiter]);
                    })
                };
                if self.waiters.is_empty() {
                    return vec![state.with(|it| it.touch_one("NotifyNone", CONDVAR, 0))];
                }
                self.waiters.iter().map(wake).collect()
            }
            Do::Asleep { .. } if self.notified.contains_key(&me) => {
                let by = self.notified[&me];
                state.notified.remove(&me);
                vec![state.with(|it| it.touch_one("Awake", CONDVAR, by))]
            }
            Do::Asleep { timed: false } => vec![],
            // Its time is over, or it wakes up before that for no reason.
            Do::Asleep { timed: true } => {
                state.waiters.remove(&me);
                state.touch_one("TimedOut", CONDVAR, me);
                let no_reason = state.wakes_up(me);
                let late = state.with(|it| it.threads[me].late = 500);
                [late].into_iter().chain(no_reason).collect()
            }
            // A wait without a time that ends for no reason may as well end at once.
            Do::Enqueue => {
                let next = &state.threads[me].next;
                let asleep = next.iter().position(|it| matches!(it, Do::Asleep { .. }));
                let asleep = asleep.expect("it waits once it is among those that do");
                let no_reason = match next[asleep] {
                    Do::Asleep { timed: false } => state.wakes_up(me),
                    _ => None,
                };
                let no_reason = no_reason.map(|it| {
                    it.with(|it| {
                        it.threads[me].next.remove(asleep);
                    })
                });
                let all = state.step(me, part).then_some(state);
                all.into_iter().chain(no_reason).collect()
            }
            Do::Begin(op @ (Op::Park | Op::WaitNotify)) => {
                let there = match op {
                    Op::Park => self.threads[me].token,
                    _ => self.notify,
                };
                let no_reason = state.wakes_up(me).map(|it| it.with(|it| it.log(me, 0)));
                let taken = (there && state.step(me, part)).then_some(state);
                taken.into_iter().chain(no_reason).collect()
            }
            Do::AwaitWake { careful } => {
                let signal = (me, self.threads[me].awaited);
                state.first_do(me, &[Do::Poll { careful }]);
                let no_reason = state.wakes_up(me);
                let woken = state.woken.remove(&signal).then_some(state);
                let woken = woken.map(|it| it.with(|it| it.touch("Park", "signal", me)));
                woken.into_iter().chain(no_reason).collect()
            }
            part => match state.step(me, part) {
                true => vec![state],
                false => vec![],
            },
        }
    }

    /// These threads are notified, if there are any.
    pub(super) fn notify_all(&mut self, woken: impl IntoIterator<Item = usize>) {
        let by = self.notifications + 1;
        let before = self.notified.len();
        self.notified
            .extend(woken.into_iter().map(|waiter| (waiter, by)));
        if self.notified.len() == before {
            return self.touch_one("NotifyNone", CONDVAR, 0);
        }
        self.notifications = by;
        self.touch_one("Notify", CONDVAR, by);
    }

    fn with(mut self, change: impl FnOnce(&mut State)) -> State {
        change(&mut self);
        self
    }

    /// This state, if the thread may still wake up for no reason.
    fn wakes_up(&self, me: usize) -> Option<State> {
        let may = self.threads[me].may_wake_up;
        may.then(|| {
            self.clone().with(|it| {
                it.threads[me].may_wake_up = false;
                it.note_no_reason(me);
            })
        })
    }

    /// What the thread does next happens for no reason.
    fn note_no_reason(&mut self, me: usize) {
        let seen = self.threads[me].log.len();
        self.threads[me].for_no_reason.push(seen);
    }

    /// Makes a step that has one result; false if it has to wait.
    pub(super) fn step(&mut self, me: usize, part: Do) -> bool {
        let (reads, writes) = ("Read", "Write");
        match part {
            Do::Begin(op) => return self.operate(me, op),
            Do::Take(l) => {
                let lock = &mut self.locks[l];
                if lock.taken || lock.readers > 0 {
                    return false;
                }
                lock.taken = true;
                self.threads[me].holds[l] = true;
                self.touch("Acquire", "lock", l);
            }
            Do::TakeShared => {
                let lock = &mut self.locks[RW];
                if lock.taken {
                    return false;
                }
                lock.readers += 1;
                self.threads[me].reads = true;
                self.touch("ReadAcquire", "lock", RW);
            }
            Do::Check(l) => {
                let seen = self.checked(me, l);
                self.log(me, seen);
                self.touch(reads, "poison", l);
            }
            Do::Glance(l) => self.touch(reads, "poison", l),
            Do::Poison(l) => {
                self.locks[l].poisoned = true;
                self.touch(writes, "poison", l);
            }
            Do::Free(l) => {
                self.locks[l].taken = false;
                self.threads[me].holds[l] = false;
                self.touch("Release", "lock", l);
            }
            Do::FreeShared => {
                self.locks[RW].readers -= 1;
                self.threads[me].reads = false;
                self.touch("ReadRelease", "lock", RW);
            }
            Do::Enqueue => {
                self.touch_one("Enqueue", CONDVAR, me);
                self.waiters.insert(me);
            }
            Do::Woken { timed } => {
                let (
                    Lock {
                        poisoned, value, ..
                    },
                    late,
                ) = (&self.locks[0], self.threads[me].late);
                let (poisoned, value) = (*poisoned, *value);
                self.threads[me].late = 0;
                if self.rules.looks {
                    self.touch(reads, "poison", 0);
                }
                match (poisoned, late > 0) {
                    (true, _) => self.log(me, 10_000 + value + late),
                    (false, true) => self.log(me, if value == 0 { late } else { value }),
                    (false, false) => self.first_do(me, &[Do::While { timed }]),
                }
            }
            Do::Swap { from, add } if self.small == from => {
                self.small = from.wrapping_add(add);
                self.log(me, from as u8 as usize);
                self.touch(writes, "small", 0);
            }
            Do::Swap { add, .. } => {
                let from = self.small;
                self.first_do(me, &[Do::Swap { from, add }]);
                self.touch(reads, "small", 0);
            }
            Do::StoreOnce => {
                self.atomics[1] = me + 5;
                self.touch(writes, "atomic", 1);
            }
            Do::EndOnce { poison, log } => {
                self.once = if poison {
                    Stage::Poisoned
                } else {
                    Stage::Done(0)
                };
                self.log(me, log);
                self.touch("OnceEnd", "once", 0);
            }
            Do::EndCell { value, log } => {
                self.cell = value.map_or(Stage::New, Stage::Done);
                self.log(me, log);
                self.touch("OnceEnd", "cell", 0);
            }
            Do::Taken(index) => {
                let queued = self
                    .channel
                    .queue
                    .iter()
                    .position(|&(of, ..)| of == Some(me));
                match queued {
                    // The receiver is gone, and the sender keeps the message.
                    Some(at) if !self.channel.receiver => {
                        self.channel.queue.remove(at);
                        self.log(me, 0);
                        self.touch_one("SendFailed", CHANNEL, 0);
                    }
                    Some(_) => return false,
                    None => {
                        self.log(me, 1);
                        self.touch_one("Taken", CHANNEL, index);
                    }
                }
            }
            Do::Come => {
                self.channel.waiting = true;
                self.touch_one("RecvWait", CHANNEL, 0);
            }
            Do::Receive { timed } => match self.receive() {
                Ok(message) => self.log(me, message),
                Err(true) => self.log(me, if timed { 101 } else { 100 }),
                Err(false) if timed => self.log(me, 100),
                Err(false) => return false,
            },
            Do::Iterate { all } => match self.receive() {
                Ok(message) => {
                    let all = all * 10 + message;
                    self.first_do(me, &[Do::Come, Do::Iterate { all }]);
                }
                Err(true) => self.log(me, all),
                Err(false) => return false,
            },
            Do::TryIterate { all } => match self.receive() {
                Ok(message) => {
                    let all = all * 10 + message;
                    self.first_do(me, &[Do::TryIterate { all }]);
                }
                Err(_) => self.log(me, all),
            },
            Do::DropSender => {
                self.threads[me].sender = false;
                self.channel.senders -= 1;
                self.touch_one("DropSender", CHANNEL, 0);
            }
            Do::DropMore => {
                self.threads[me].more_senders -= 1;
                self.channel.senders -= 1;
                self.first_do(me, &[Do::DropMore]);
                self.touch_one("DropSender", CHANNEL, 0);
            }
            Do::DropReceiver => {
                self.threads[me].receiver = false;
                (self.channel.receiver, self.channel.waiting) = (false, false);
                // Without any room each message is still its sender's.
                self.channel.queue.retain(|(sender, _)| sender.is_some());
                self.touch_one("DropReceiver", CHANNEL, 0);
            }
            Do::Leave { generation } => {
                if self.generation == generation {
                    return false;
                }
                self.log(me, 0);
                self.touch_one("Leave", BARRIER, generation);
            }
            Do::DropTemporary { log } => {
                self.release(me);
                self.log(me, log);
            }
            Do::DropValue => {
                self.threads[me].value = false;
                self.release(me);
            }
            Do::DropWeak => {
                self.threads[me].weak = false;
                self.weak -= 1;
                self.touch_one("WeakRetain", VALUE, 0);
            }
            Do::TakeWaker => {
                self.use_waker();
                match self.waker.take() {
                    Some((of, nth)) => self.first_do(me, &[Do::Wake(of, nth)]),
                    None => self.log(me, 0),
                }
            }
            Do::Wake(of, nth) => {
                self.woken.insert((of, nth));
                self.log(me, 0);
                self.touch("Unpark", "signal", of);
            }
            Do::Register { careful } => {
                self.use_waker();
                self.waker = Some((me, self.threads[me].awaited));
                let next = if careful {
                    Do::Look { careful }
                } else {
                    Do::AwaitWake { careful }
                };
                self.first_do(me, &[next]);
            }
            Do::Look { .. } if self.ready => {
                self.threads[me].awaited += 1;
                self.log(me, 0);
                self.touch(reads, "ready", 0);
            }
            Do::Look { careful } => {
                self.touch(reads, "ready", 0);
                let next = if careful {
                    Do::AwaitWake { careful }
                } else {
                    Do::Register { careful }
                };
                self.first_do(me, &[next]);
            }
            Do::DropHandle(of) => {
                self.threads[me].handles[of] = false;
                self.drop_share(me, of);
            }
            Do::ShareSender(of) => {
                self.threads[of].sender = true;
                self.channel.senders += 1;
                self.touch_one("AddSender", CHANNEL, 0);
            }
            Do::ShareValue(of) => {
                self.threads[of].value = true;
                self.strong += 1;
                self.touch_one("Retain", VALUE, 0);
            }
            Do::ShareWeak(of) => {
                self.threads[of].weak = true;
                self.weak += 1;
                self.touch_one("WeakRetain", VALUE, 0);
            }
            Do::Bear(of) => {
                if self.rules.receiving[of] {
                    self.threads[of].receiver = std::mem::take(&mut self.threads[me].receiver);
                }
                self.threads[of].known = self.threads[me].known;
                self.threads[of].known[me] = true;
                self.threads[me].handles[of] = true;
                self.threads[me].known[of] = true;
                self.start(of);
                self.touch("Spawn", "thread", of);
            }
            Do::Start(of) => self.start(of),
            Do::WaitFor(of) => return self.threads[of].ended || !self.threads[of].born,
            Do::Return => self.drop_share(me, me),
            Do::Locals => {
                self.kept += 16;
                self.log(me, 902);
                self.touch(writes, "kept", 0);
            }
            Do::Exit => {
                self.threads[me].ended = true;
                self.touch("Exit", "thread", me);
            }
            Do::Join(of) if self.threads[me].handles[of] => return self.join(me, of),
            Do::Join(_) => {}
            // A scope also waits for threads whose handles are gone.
            Do::End if self.threads[1..].iter().any(|it| it.born && !it.ended) => return false,
            Do::End => {
                // Nobody has asked for that panic.
                if self.threads.iter().any(|thread| thread.panicked) {
                    self.log(me, 950);
                }
                self.finished = true;
            }
            other => unreachable!("{other:?} is no step"),
        }
        true
    }

    /// A thread is born.
    fn start(&mut self, of: usize) {
        self.threads[of].born = true;
        self.settle(of);
    }

    /// A critical section of the waker.
    fn use_waker(&mut self) {
        self.touch("Acquire", "waker", 0);
        self.touch("Release", "waker", 0);
    }
}
