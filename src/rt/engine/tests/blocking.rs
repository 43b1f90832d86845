//! How do random programs use the objects at which threads wait?

use crate::rt::engine::testing::*;
use crate::rt::engine::tests::random::{MUTEX, Rng};
use crate::rt::event::operation::{ObjectKind, OpKind};

/// The kind of object that a random program uses besides atomics and mutexes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Blocking {
    RwLock,
    Condvar,
    Barrier,
    Once,
    /// A token that any thread may take.
    Notify,
    /// A channel, with its capacity plus one, or 0 for any number of messages. The first thread has
    /// the receiver, the others have a sender each.
    Channel(u64),
}

/// The number of the object, where there is one.
pub(super) const OBJECT: u32 = 40;

fn op(var: u32, kind: OpKind) -> Ins {
    Ins::Op { var, kind, to: 7 }
}

/// `then` if register 7 holds 1.
fn if_ok(then: &[Ins]) -> Vec<Ins> {
    let mut code = vec![Ins::Unless {
        reg: 7,
        value: Val::Const(1),
        by: then.len() as u8,
    }];
    code.extend(then);
    code
}

impl Blocking {
    pub(super) fn any(rng: &mut Rng) -> Blocking {
        match rng.below(7) {
            6 => Blocking::Notify,
            0 => Blocking::RwLock,
            1 => Blocking::Condvar,
            2 => Blocking::Barrier,
            3 => Blocking::Once,
            _ => Blocking::Channel(rng.below(4)),
        }
    }

    /// Some instructions of thread `me` that use the object, with an access to plain shared memory
    /// (an atomic) where one belongs.
    pub(super) fn instructions(
        self,
        object: u32,
        rng: &mut Rng,
        me: u32,
        code: &mut Vec<Ins>,
        (var, value): (Val, Val),
    ) {
        let load = Ins::Load { var, to: 0 };
        let store = Ins::Store { var, value };
        let access = if rng.one_in(2) { load } else { store };
        match self {
            Blocking::RwLock => match rng.below(6) {
                0 | 1 => {
                    code.push(op(object, OpKind::ReadLock));
                    if rng.one_in(2) {
                        code.push(access);
                    }
                    // Now and then a reader never leaves.
                    if !rng.one_in(5) {
                        code.push(op(object, OpKind::UnlockRead));
                    }
                }
                2 => {
                    code.push(op(object, OpKind::WriteLock));
                    if rng.one_in(2) {
                        code.push(access);
                    }
                    if !rng.one_in(6) {
                        code.push(op(object, OpKind::UnlockWrite { changed: true }));
                    }
                }
                3 => {
                    code.push(op(object, OpKind::TryRead));
                    code.extend(if_ok(&[store, op(object, OpKind::UnlockRead)]));
                }
                4 => {
                    code.push(op(object, OpKind::TryWrite));
                    code.extend(if_ok(&[
                        load,
                        op(object, OpKind::UnlockWrite { changed: true }),
                    ]));
                }
                _ => {
                    code.push(op(object, OpKind::WriteLock));
                    code.push(op(object, OpKind::Downgrade));
                    code.push(op(object, OpKind::UnlockRead));
                }
            },
            Blocking::Condvar => {
                let mutex = Val::Const(MUTEX as i64 + 5);
                let locked = rng.one_in(2);
                match rng.below(5) {
                    0..=2 => {
                        let timed = rng.one_in(3);
                        code.push(Ins::Lock(mutex));
                        code.push(Ins::Enqueue(object));
                        code.push(Ins::Unlock(mutex));
                        code.push(op(object, OpKind::Awake { timed }));
                        if locked {
                            code.push(Ins::Lock(mutex));
                            code.push(Ins::Unlock(mutex));
                        }
                    }
                    which => {
                        let notify = op(
                            object,
                            if which == 3 {
                                OpKind::NotifyOne
                            } else {
                                OpKind::NotifyAll
                            },
                        );
                        if locked {
                            code.extend([Ins::Lock(mutex), notify, Ins::Unlock(mutex)]);
                        } else {
                            code.push(notify);
                        }
                    }
                }
            }
            Blocking::Barrier => {
                code.push(Ins::Arrive { var: object, to: 7 });
                code.push(Ins::Unless {
                    reg: 7,
                    value: Val::Const(-1),
                    by: 1,
                });
                code.push(Ins::Jump(2));
                code.push(Ins::Leave {
                    var: object,
                    reg: 7,
                });
            }
            Blocking::Once => {
                if rng.one_in(6) {
                    let force = rng.one_in(2);
                    code.push(op(object, OpKind::WaitOnce { force }));
                } else if rng.one_in(3) {
                    code.push(op(object, OpKind::CheckOnce));
                } else {
                    let force = rng.one_in(2);
                    let poison = rng.one_in(3);
                    code.push(op(object, OpKind::CallOnce { force }));
                    let mut then = vec![op(object, OpKind::EndOnce { poison })];
                    if rng.one_in(2) {
                        then.insert(0, access);
                    }
                    code.extend(if_ok(&then));
                }
            }
            Blocking::Notify => code.push(op(
                object,
                match rng.below(5) {
                    0 | 1 => OpKind::Unpark,
                    2 => OpKind::ParkTimeout,
                    _ => OpKind::Park,
                },
            )),
            Blocking::Channel(capacity) if me == 1 => match rng.below(4) {
                0 => code.push(op(object, OpKind::TryRecv)),
                which => {
                    if capacity == 1 {
                        code.push(op(object, OpKind::RecvWait));
                    }
                    code.push(op(object, OpKind::Recv { timed: which == 1 }));
                }
            },
            Blocking::Channel(capacity) => match rng.below(4) {
                0 => code.push(op(object, OpKind::TrySend)),
                1 if rng.one_in(3) => {
                    code.push(op(object, OpKind::AddSender));
                    code.push(op(object, OpKind::DropSender));
                }
                _ => {
                    code.push(Ins::Send { var: object, to: 7 });
                    if capacity == 1 {
                        code.push(Ins::Unless {
                            reg: 7,
                            value: Val::Const(-1),
                            by: 1,
                        });
                        code.push(Ins::Jump(2));
                        code.push(Ins::Taken {
                            var: object,
                            reg: 7,
                        });
                    }
                }
            },
        }
    }

    /// The last use of the object by thread `me`, behind its other instructions.
    pub(super) fn end(self, object: u32, rng: &mut Rng, me: u32, code: &mut Vec<Ins>) {
        if let Blocking::Channel(_) = self
            && !rng.one_in(4)
        {
            code.push(op(
                object,
                if me == 1 {
                    OpKind::DropReceiver { discards: true }
                } else {
                    OpKind::DropSender
                },
            ));
        }
    }

    /// Gives the object to the program.
    pub(super) fn declare(
        self,
        object: u32,
        rng: &mut Rng,
        threads: u32,
        mut program: Program,
    ) -> Program {
        program = program.with(MUTEX + 5, ObjectKind::Mutex, 0);
        let (kind, value) = match self {
            Blocking::RwLock => (ObjectKind::RwLock, 0),
            Blocking::Condvar => (ObjectKind::Condvar, 0),
            Blocking::Barrier => (ObjectKind::Barrier, 1 + rng.below(threads as u64)),
            Blocking::Once => (ObjectKind::Once, 0),
            Blocking::Notify => (ObjectKind::Token, 0),
            Blocking::Channel(capacity) => {
                // One sender is there from the start.
                for _ in 2..threads {
                    program.threads[0].insert(0, op(object, OpKind::AddSender));
                }
                (ObjectKind::Channel, capacity)
            }
        };
        program.with(object, kind, value)
    }
}

/// The number of traces of `threads` that share an object; with `free` choices of every kind.
fn traces(kind: ObjectKind, value: u64, threads: Vec<Vec<Ins>>) -> u64 {
    let mut program = Program::of(threads).with(OBJECT, kind, value);
    if let ObjectKind::Channel = kind {
        program.threads[0].insert(0, op(OBJECT, OpKind::AddSender));
    }
    program = program.with(MUTEX, ObjectKind::Mutex, 0);
    let expected = brute_force(&program, 10_000).expect("small").traces.len();
    for seed in 1..50 {
        let free = crate::rt::engine::TieBreak::Random(seed);
        let found = explore_up_to(&program, "optimal", free, 1000).expect("few executions");
        assert_eq!(found.traces.len(), expected, "seed {seed}");
        assert_eq!(found.stats.complete, expected as u64, "seed {seed}");
    }
    expected as u64
}

#[test]
fn readers_of_a_lock_commute_and_a_writer_comes_before_or_after_each() {
    let reader = vec![op(OBJECT, OpKind::ReadLock), op(OBJECT, OpKind::UnlockRead)];
    let writer = vec![
        op(OBJECT, OpKind::WriteLock),
        op(OBJECT, OpKind::UnlockWrite { changed: true }),
    ];
    let count = |threads: Vec<Vec<Ins>>| traces(ObjectKind::RwLock, 0, threads);
    assert_eq!(count(vec![reader.clone(); 3]), 1);
    assert_eq!(count(vec![reader.clone(), writer.clone()]), 2);
    assert_eq!(count(vec![reader.clone(), reader.clone(), writer]), 4);
    // Once one reader keeps the lock for ever, the writer never acquires it, with or without other
    // readers.
    let stays = vec![op(OBJECT, OpKind::ReadLock)];
    let writer = vec![
        op(OBJECT, OpKind::WriteLock),
        op(OBJECT, OpKind::UnlockWrite { changed: true }),
    ];
    assert_eq!(count(vec![stays.clone(), stays, writer]), 2);
}

#[test]
fn a_wait_that_looks_first_is_notified_or_not_needed() {
    let mutex = Val::Const(MUTEX as i64);
    let (load, store) = (
        crate::rt::engine::tests::load(0, 0),
        crate::rt::engine::tests::store(0, 1),
    );
    let waiter = vec![
        Ins::Lock(mutex),
        load,
        Ins::Unless {
            reg: 0,
            value: Val::Const(0),
            by: 4,
        },
        Ins::Enqueue(OBJECT),
        Ins::Unlock(mutex),
        op(OBJECT, OpKind::Awake { timed: false }),
        Ins::Lock(mutex),
        Ins::Unlock(mutex),
    ];
    let notifier = vec![
        Ins::Lock(mutex),
        store,
        op(OBJECT, OpKind::NotifyOne),
        Ins::Unlock(mutex),
    ];
    assert_eq!(traces(ObjectKind::Condvar, 0, vec![waiter, notifier]), 2);
}

#[test]
fn arrivals_at_a_barrier_differ_only_in_who_is_the_last() {
    for threads in 1..=4 {
        let arrive = vec![
            Ins::Arrive { var: OBJECT, to: 7 },
            Ins::Unless {
                reg: 7,
                value: Val::Const(-1),
                by: 1,
            },
            Ins::Jump(2),
            Ins::Leave {
                var: OBJECT,
                reg: 7,
            },
        ];
        let all = vec![arrive; threads];
        let count = traces(ObjectKind::Barrier, threads as u64, all);
        assert_eq!(count, threads as u64);
    }
}

#[test]
fn a_sequence_that_is_cut_at_the_reversed_event_would_lose_a_trace() {
    // The receive commutes with the drop of the sender if it receives the message, and not if the
    // channel is empty.
    let threads = vec![
        vec![op(OBJECT, OpKind::TryRecv)],
        vec![op(OBJECT, OpKind::Send)],
        vec![
            crate::rt::engine::tests::load(1, 1),
            crate::rt::engine::tests::store(0, 2),
            op(OBJECT, OpKind::DropSender),
        ],
    ];
    assert_eq!(traces(ObjectKind::Channel, 0, threads), 3);
}

#[test]
fn sends_commute_with_receives_of_other_messages() {
    let sends = vec![op(OBJECT, OpKind::Send); 3];
    let receives = vec![op(OBJECT, OpKind::Recv { timed: false }); 3];
    let count = |capacity| {
        traces(
            ObjectKind::Channel,
            capacity,
            vec![receives.clone(), sends.clone()],
        )
    };
    assert_eq!(count(0), 1, "unbounded");
    assert_eq!(count(2), 1, "room for one");
    assert_eq!(count(3), 1, "room for two");
}
