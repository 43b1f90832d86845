//! What may come of a program, by std's documentation?
//!
//! An interpreter that shares nothing with the crate. An operation is one step, or a few where another thread may come in
//! between; [`State::steps`] says what a step of a thread may lead to, which is nothing while it waits. All interleavings of
//! the steps are tried. What loom has and std has not, `Notify` and `AtomicWaker`, is by loom's documentation, and how often
//! something happens for no reason is by that of the settings.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use super::program::{Op, Program, THREADS_MAX};
use super::world::Outcome;

/// A part of what a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Do {
    Begin(Op),
    /// The operation has seen this.
    Log(usize),
    // Locks: two mutexes, and the writers of the reader-writer lock.
    Take(usize),
    TakeShared,
    /// Looks whether the lock is poisoned, and logs its value.
    Check(usize),
    /// The same, and nobody asks what was found.
    Glance(usize),
    Poison(usize),
    Free(usize),
    FreeShared,
    /// Drops the guard, if there is one.
    DropGuard(usize),
    // Condition variables. A notification may wake who is about to unlock the mutex: the documentation promises it only of
    // those that come after that, but threads may wake up for no reason, and std's do so for this one.
    Enqueue,
    Asleep {
        timed: bool,
    },
    While {
        timed: bool,
    },
    Woken {
        timed: bool,
    },
    // Atomics.
    Swap {
        from: i8,
        add: i8,
    },
    // One-time initialisations.
    StoreOnce,
    EndOnce {
        poison: bool,
        log: usize,
    },
    EndCell {
        value: Option<usize>,
        log: usize,
    },
    // Channels.
    Taken(usize),
    Come,
    Receive {
        timed: bool,
    },
    Iterate {
        all: usize,
    },
    TryIterate {
        all: usize,
    },
    DropSender,
    DropMore,
    DropReceiver,
    // Others.
    Leave {
        generation: usize,
    },
    DropTemporary {
        log: usize,
    },
    DropValue,
    DropWeak,
    DropHandle(usize),
    TakeWaker,
    Wake(usize, usize),
    Poll {
        careful: bool,
    },
    Register {
        careful: bool,
    },
    Look {
        careful: bool,
    },
    AwaitWake {
        careful: bool,
    },
    // The birth of a thread, and what it gets of what its parent has.
    ShareSender(usize),
    ShareValue(usize),
    ShareWeak(usize),
    Bear(usize),
    /// The same for one that main spawns first of all, which has its share already.
    Start(usize),
    // Its end.
    Return,
    Locals,
    Exit,
    Join(usize),
    /// The end of a scope waits for each of its threads.
    WaitFor(usize),
    End,
}

/// How far an initialisation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    New,
    Running,
    Done(usize),
    Poisoned,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Lock {
    pub(super) taken: bool,
    pub(super) readers: usize,
    pub(super) poisoned: bool,
    pub(super) value: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Channel {
    /// Messages, each with the thread that waits for it to be taken.
    pub(super) queue: VecDeque<(Option<usize>, usize)>,
    pub(super) sent: usize,
    pub(super) received: usize,
    pub(super) senders: usize,
    pub(super) receiver: bool,
    /// The receiver waits.
    pub(super) waiting: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Thread {
    pub(super) next: VecDeque<Do>,
    pub(super) log: Vec<usize>,
    /// How much of the log there was when something happened for no reason, each time.
    pub(super) for_no_reason: Vec<usize>,
    pub(super) holds: [bool; 3],
    pub(super) reads: bool,
    /// 500 if its last wait timed out.
    pub(super) late: usize,
    pub(super) token: bool,
    pub(super) may_wake_up: bool,
    pub(super) failed: [bool; 2],
    pub(super) sender: bool,
    pub(super) more_senders: usize,
    pub(super) receiver: bool,
    pub(super) is_taken: bool,
    pub(super) value: bool,
    pub(super) weak: bool,
    /// How many futures it has waited for.
    pub(super) awaited: usize,
    pub(super) marked: bool,
    /// Whose handles it has, and whom it may unpark.
    pub(super) handles: [bool; THREADS_MAX],
    pub(super) known: [bool; THREADS_MAX],
    pub(super) born: bool,
    /// Who owns its result.
    pub(super) shares: usize,
    pub(super) unwinds: bool,
    pub(super) panicked: bool,
    pub(super) ended: bool,
}

/// In which way an event touches which object, in the words of `docs/DEPENDENCY.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Touch {
    pub class: &'static str,
    pub object: (&'static str, usize),
    /// How many references it has found, which notification it is or was woken by, which message it
    /// is about; at a barrier the group, and for who arrives, [`GROUP`] times that and how many
    /// were missing.
    pub number: usize,
}

/// See [`Touch::number`].
pub const GROUP: usize = 100;

/// The objects of which there is one, whose events have numbers.
pub(super) const CONDVAR: (&str, usize) = ("condvar", 0);
pub(super) const CHANNEL: (&str, usize) = ("channel", 0);
pub(super) const BARRIER: (&str, usize) = ("barrier", 0);
pub(super) const VALUE: (&str, usize) = ("value", 0);

/// A state of the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) rules: Rules,
    pub(super) threads: Vec<Thread>,
    pub(super) atomics: [usize; 2],
    pub(super) locks: [Lock; 3],
    pub(super) waiters: BTreeSet<usize>,
    /// The threads that have been notified and not gone on yet, each with the notification.
    pub(super) notified: BTreeMap<usize, usize>,
    /// How many notifications have woken a thread.
    pub(super) notifications: usize,
    pub(super) channel: Channel,
    pub(super) once: Stage,
    pub(super) cell: Stage,
    pub(super) lazy: Stage,
    pub(super) small: i8,
    pub(super) flag: bool,
    pub(super) ready: bool,
    /// The thread that a waker is for, and the how manieth future it waits for.
    pub(super) waker: Option<(usize, usize)>,
    pub(super) woken: BTreeSet<(usize, usize)>,
    pub(super) kept: usize,
    pub(super) notify: bool,
    pub(super) arrived: usize,
    pub(super) generation: usize,
    pub(super) strong: usize,
    pub(super) weak: usize,
    pub(super) finished: bool,
    /// What the last step has touched.
    pub touched: Vec<Touch>,
}

/// What is known of the program as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Rules {
    pub(super) room: Option<usize>,
    pub(super) group: usize,
    pub(super) spurious: bool,
    /// Who locks looks whether the lock is poisoned, as a step of its own.
    pub(super) looks: bool,
    pub(super) detaches: bool,
    /// Who gives up its share of a result does so in a step.
    pub(super) shares: bool,
    /// Each event is a step, also one that others have nothing to do with.
    pub(super) each: bool,
    /// Who gets the receiver with its spawn.
    pub(super) receiving: [bool; THREADS_MAX],
    pub(super) births: [[usize; THREADS_MAX]; THREADS_MAX],
}

/// All that may come of the program; `None` if that takes more than so many states.
pub fn outcomes(program: &Program, states_max: usize) -> Option<BTreeSet<Outcome>> {
    let mut outcomes = BTreeSet::new();
    let mut todo = vec![State::first(program, false)];
    let mut known: HashSet<State> = todo.iter().cloned().collect();
    while let Some(state) = todo.pop() {
        if state.is_over() {
            outcomes.insert(state.outcome());
        }
        for (_, mut state) in state.all_steps() {
            state.touched.clear();
            if known.insert(state.clone()) {
                todo.push(state);
            }
        }
        if known.len() > states_max {
            return None;
        }
    }
    Some(outcomes)
}

/// The reader-writer lock.
pub(super) const RW: usize = 2;

impl State {
    /// Where the program begins: all threads are spawned, unless `each` event is to be a step.
    pub fn first(program: &Program, each: bool) -> State {
        let threads = &program.threads;
        let count = threads.len();
        let receiving = program.receiving();
        let first: BTreeSet<usize> = (0..count).filter(|&me| program.is_first(me)).collect();
        let thread = |(me, ops): (usize, &Vec<Op>)| {
            let mut next: VecDeque<Do> = ops.iter().map(|&op| Do::Begin(op)).collect();
            next.extend(Self::leaves());
            match me {
                0 => {
                    next.extend((1..count).map(Do::Join));
                    if each {
                        first
                            .iter()
                            .skip(1)
                            .rev()
                            .for_each(|&of| next.push_front(Do::Start(of)));
                        next.extend((1..count).map(Do::WaitFor));
                    }
                    next.push_back(Do::End);
                }
                _ => next.extend((1..count).map(Do::DropHandle).chain(Self::ends())),
            }
            let is_first = first.contains(&me);
            Thread {
                next,
                may_wake_up: program.spurious,
                sender: program.sends() && is_first,
                receiver: program.sends() && receiving.last() == Some(&me),
                value: program.shares() && is_first,
                weak: program.shares() && is_first,
                // Main has those of the first ones, and knows them; they know main.
                handles: std::array::from_fn(|of| me == 0 && of > 0 && first.contains(&of)),
                known: std::array::from_fn(|of| of == 0 || me == 0 && first.contains(&of)),
                born: is_first && !(each && me > 0),
                shares: 2,
                ..Thread::default()
            }
        };
        let mut state = State {
            rules: Rules {
                room: program.room,
                group: program.group,
                spurious: program.spurious,
                looks: program.catches_panics(),
                detaches: program.detaches(),
                shares: program.drops_handles() || each,
                each,
                receiving: std::array::from_fn(|me| receiving.contains(&me)),
                births: std::array::from_fn(|me| program.births(me)),
            },
            threads: threads.iter().enumerate().map(thread).collect(),
            atomics: [0; 2],
            locks: Default::default(),
            waiters: BTreeSet::new(),
            notified: BTreeMap::new(),
            notifications: 0,
            channel: Channel {
                senders: first.len(),
                receiver: true,
                ..Channel::default()
            },
            once: Stage::New,
            cell: Stage::New,
            lazy: Stage::New,
            small: 0,
            flag: false,
            ready: false,
            waker: None,
            woken: BTreeSet::new(),
            kept: 0,
            notify: false,
            arrived: 0,
            generation: 0,
            strong: first.len(),
            weak: first.len(),
            finished: false,
            touched: Vec::new(),
        };
        let born = first.into_iter().filter(|&me| me == 0 || !each);
        born.for_each(|me| state.settle(me));
        state
    }

    /// What a thread drops at the end of its closure, in this order.
    pub(super) fn leaves() -> [Do; 9] {
        use Do::*;
        [
            DropGuard(0),
            DropGuard(1),
            FreeShared,
            DropGuard(RW),
            DropSender,
            DropReceiver,
            DropMore,
            DropValue,
            DropWeak,
        ]
    }

    /// How a thread ends that is not main.
    pub(super) fn ends() -> [Do; 3] {
        [Do::Return, Do::Locals, Do::Exit]
    }

    pub(super) fn log(&mut self, me: usize, seen: usize) {
        self.threads[me].log.push(seen);
    }

    /// Has the thread do this before what it has to do otherwise.
    pub(super) fn first_do(&mut self, me: usize, parts: &[Do]) {
        parts
            .iter()
            .rev()
            .for_each(|&part| self.threads[me].next.push_front(part));
    }

    pub(super) fn touch(&mut self, class: &'static str, kind: &'static str, which: usize) {
        self.touch_one(class, (kind, which), 0);
    }

    pub(super) fn touch_one(
        &mut self,
        class: &'static str,
        object: (&'static str, usize),
        number: usize,
    ) {
        self.touched.push(Touch {
            class,
            object,
            number,
        });
    }

    /// Whether nobody has to make a step. What may happen for no reason may also not happen.
    pub fn is_over(&self) -> bool {
        let mut calm = self.clone();
        for thread in &mut calm.threads {
            thread.may_wake_up = false;
        }
        (0..self.threads.len()).all(|me| calm.steps(me).is_empty())
    }

    /// What was seen, once nobody can make a step.
    pub fn outcome(&self) -> Outcome {
        (
            self.threads
                .iter()
                .map(|thread| thread.log.clone())
                .collect(),
            self.finished,
        )
    }

    /// Where each thread that can make a step may come by it.
    pub fn all_steps(&self) -> Vec<(usize, State)> {
        let steps = |me| self.steps(me).into_iter().map(move |state| (me, state));
        let mut all: Vec<_> = (0..self.threads.len()).flat_map(steps).collect();
        for (me, state) in &mut all {
            state.settle(*me);
        }
        all
    }

    /// Does what no other thread has to do with, up to the next step.
    pub(super) fn settle(&mut self, me: usize) {
        while let Some(&part) = self.threads[me].next.front() {
            let thread = &mut self.threads[me];
            let parts: Vec<Do> = match part {
                Do::Begin(op) => match self.parts(me, op) {
                    Some(parts) => parts,
                    None => return,
                },
                Do::Log(seen) => {
                    thread.log.push(seen);
                    vec![]
                }
                Do::DropGuard(l) if !thread.holds[l] => vec![],
                // A panic poisons the lock before it is free.
                Do::DropGuard(l) if thread.unwinds => vec![Do::Poison(l), Do::Free(l)],
                Do::DropGuard(l) => vec![Do::Free(l)],
                Do::Glance(_) if !self.rules.looks => vec![],
                Do::Check(l) if !self.rules.looks => vec![Do::Log(self.checked(me, l))],
                Do::While { timed } => {
                    // Only the holder sees the value.
                    let value = self.locks[0].value;
                    match value {
                        0 => vec![
                            Do::Enqueue,
                            Do::Free(0),
                            Do::Asleep { timed },
                            Do::Take(0),
                            Do::Woken { timed },
                        ],
                        _ => vec![Do::Log(value)],
                    }
                }
                Do::Come if self.rules.room != Some(0) => vec![],
                Do::FreeShared if !thread.reads => vec![],
                Do::DropSender if !thread.sender => vec![],
                Do::DropMore if thread.more_senders == 0 => vec![],
                Do::DropReceiver if !thread.receiver => vec![],
                Do::DropValue if !thread.value => vec![],
                Do::DropWeak if !thread.weak => vec![],
                Do::DropHandle(of) if !thread.handles[of] => vec![],
                Do::ShareSender(_) if !thread.sender => vec![],
                Do::ShareValue(_) if !thread.value => vec![],
                Do::ShareWeak(_) if !thread.weak => vec![],
                Do::Poll { careful: true } => vec![Do::Register { careful: true }],
                Do::Poll { careful: false } => vec![Do::Look { careful: false }],
                Do::Return if !self.rules.shares => vec![],
                // No thread looks whether another one has ended.
                Do::Exit if self.rules.each => {
                    thread.ended = true;
                    vec![]
                }
                Do::Locals if !thread.marked => vec![],
                _ => return,
            };
            self.threads[me].next.pop_front();
            self.first_do(me, &parts);
        }
    }

    /// The parts of an operation that has several, or that no other thread has to do with.
    fn parts(&mut self, me: usize, op: Op) -> Option<Vec<Do>> {
        use Do::*;
        let thread = &self.threads[me];
        let uses_rw = thread.reads || thread.holds[RW];
        let waits = |then: &[Do]| {
            let lock: &[Do] = if thread.holds[0] {
                &[]
            } else {
                &[Take(0), Glance(0)]
            };
            [lock, then].concat()
        };
        let wait = |timed| [Enqueue, Free(0), Asleep { timed }, Take(0), Check(0)];
        Some(match op {
            Op::Fence if self.rules.each => return None,
            Op::Yield | Op::Fence => vec![Log(0)],
            Op::Lock(m) | Op::SpinLock(m) | Op::LockAndPanic(m) if thread.holds[m] => vec![Log(0)],
            // Who spins goes on when it can, as who waits.
            Op::Lock(m) | Op::SpinLock(m) => vec![Take(m), Check(m)],
            Op::LockAndPanic(m) => vec![Take(m), Glance(m), Poison(m), Free(m), Log(3)],
            Op::Unlock(m) => vec![DropGuard(m), Log(0)],
            Op::Append(m) => vec![Log(self.append(me, m))],
            Op::AppendWritten => vec![Log(self.append(me, RW))],
            Op::Read | Op::TryRead | Op::Write | Op::TryWrite | Op::WriteAndPanic if uses_rw => {
                vec![Log(0)]
            }
            Op::Read => vec![TakeShared, Check(RW)],
            Op::Write => vec![Take(RW), Check(RW)],
            Op::WriteAndPanic => vec![Take(RW), Glance(RW), Poison(RW), Free(RW), Log(3)],
            Op::Downgrade if !thread.holds[RW] => vec![Log(0)],
            Op::Release => vec![FreeShared, DropGuard(RW), Log(0)],
            Op::Wait => waits(&wait(false)),
            Op::WaitTimeout => waits(&wait(true)),
            Op::WaitWhile => waits(&[While { timed: false }]),
            Op::WaitTimeoutWhile => waits(&[While { timed: true }]),
            Op::Recv if thread.receiver => vec![DropSender, Come, Receive { timed: false }],
            Op::RecvTimeout if thread.receiver => vec![Come, Receive { timed: true }],
            Op::SpinRecv if thread.receiver => vec![Receive { timed: false }],
            Op::Iterate if thread.receiver => vec![DropSender, Come, Iterate { all: 0 }],
            Op::TryIterate if thread.receiver => vec![TryIterate { all: 0 }],
            Op::Recv | Op::Iterate => vec![DropSender, Log(999)],
            Op::RecvTimeout | Op::TryRecv | Op::TryIterate | Op::SpinRecv if !thread.receiver => {
                vec![Log(999)]
            }
            Op::Disconnect => vec![DropSender, DropReceiver, Log(0)],
            Op::DropArc => vec![DropValue, Log(0)],
            Op::CloneArc if !thread.value => vec![Log(0)],
            Op::DropWeak => vec![DropWeak, Log(0)],
            Op::Detach(of) => vec![DropHandle(of), Log(0)],
            Op::Spawn(of) => vec![
                ShareSender(of),
                ShareValue(of),
                ShareWeak(of),
                Bear(of),
                Log(0),
            ],
            Op::Await { careful } => vec![Poll { careful }],
            Op::Panic if me == 0 => vec![Log(999)],
            _ => return None,
        })
    }

    /// The holder of a lock adds its digit to the value.
    fn append(&mut self, me: usize, lock: usize) -> usize {
        if !self.threads[me].holds[lock] {
            return 999;
        }
        let value = &mut self.locks[lock].value;
        *value = *value * 10 + me + 1;
        *value
    }

    /// The value of a lock, and whether it is poisoned, and whether the wait before has timed out.
    pub(super) fn checked(&mut self, me: usize, lock: usize) -> usize {
        let Lock {
            poisoned, value, ..
        } = self.locks[lock];
        value + if poisoned { 10_000 } else { 0 } + std::mem::take(&mut self.threads[me].late)
    }
}
