//! The programs with published numbers of traces.

use crate::rt::engine::testing::{Ins, Program, Val};
use crate::rt::event::operation::{ObjectKind, Rmw};

pub(crate) fn var(v: i64) -> Val {
    Val::Const(v)
}

pub(crate) fn load(v: i64, to: u8) -> Ins {
    Ins::Load { var: var(v), to }
}

pub(crate) fn store(v: i64, x: i64) -> Ins {
    Ins::Store {
        var: var(v),
        value: Val::Const(x),
    }
}

pub(crate) fn lost_update(n: usize) -> Program {
    let body = vec![
        load(0, 0),
        Ins::Store {
            var: var(0),
            value: Val::Add(0, 1),
        },
    ];
    Program::of(vec![body; n])
}

pub(crate) fn readers(n: i64) -> Program {
    let mut threads = vec![vec![store(0, 1)]];
    threads.extend((1..=n).map(|i| vec![load(i, 0), load(0, 1)]));
    Program::of(threads)
}

pub(crate) fn lastzero(n: i64) -> Program {
    let mut threads = vec![vec![
        Ins::Set {
            to: 0,
            value: Val::Const(n + 1),
        },
        Ins::Set {
            to: 0,
            value: Val::Add(0, -1),
        },
        Ins::Load {
            var: Val::Reg(0),
            to: 1,
        },
        Ins::BackUnless {
            reg: 1,
            value: Val::Const(0),
            by: 2,
        },
    ]];
    threads.extend((1..=n).map(|j| {
        vec![
            load(j - 1, 0),
            Ins::Store {
                var: var(j),
                value: Val::Add(0, 1),
            },
        ]
    }));
    Program::of(threads)
}

/// Threads 1..=n add to `c2`; one adds to `c1`; the last joins the n and adds to `c1`.
pub(crate) fn wakeup_stress(n: u32) -> Program {
    let add = |var| Ins::Rmw {
        var,
        rmw: Rmw::Add,
        operand: Val::Const(1),
        to: 0,
    };
    let mut threads = vec![vec![add(2)]; n as usize];
    threads.push(vec![add(1)]);
    let mut joiner: Vec<Ins> = (1..=n).map(Ins::Join).collect();
    joiner.push(add(1));
    threads.push(joiner);
    Program::of(threads)
}

/// T threads search a free block for their inode (\[SS\] section 9).
pub(crate) fn filesystem(threads: i64) -> Program {
    let (inode, lock_i, busy, lock_b) = (0, 100, 200, 300);
    let body = |t: i64| {
        let i = t % 32;
        vec![
            Ins::Lock(var(lock_i + i)),
            load(inode + i, 0),
            Ins::Unless {
                reg: 0,
                value: Val::Const(0),
                by: 11,
            },
            Ins::Set {
                to: 1,
                value: Val::Const((i * 2) % 26),
            },
            Ins::Lock(Val::Add(1, lock_b)),
            Ins::Load {
                var: Val::Add(1, busy),
                to: 2,
            },
            Ins::Unless {
                reg: 2,
                value: Val::Const(0),
                by: 4,
            },
            Ins::Store {
                var: Val::Add(1, busy),
                value: Val::Const(1),
            },
            Ins::Store {
                var: var(inode + i),
                value: Val::Add(1, 1),
            },
            Ins::Unlock(Val::Add(1, lock_b)),
            Ins::Jump(5),
            Ins::Unlock(Val::Add(1, lock_b)),
            // b = (b + 1) % 26: the programs of the table never reach the end of the ring.
            Ins::Set {
                to: 1,
                value: Val::Add(1, 1),
            },
            Ins::Jump(-9),
            Ins::Set {
                to: 3,
                value: Val::Const(0),
            },
            Ins::Unlock(var(lock_i + i)),
        ]
    };
    let mut program = Program::of((0..threads).map(body).collect());
    for lock in 0..64 {
        program = program.with(lock_i as u32 + lock, ObjectKind::Mutex, 0);
        program = program.with(lock_b as u32 + lock, ObjectKind::Mutex, 0);
    }
    program
}

/// T threads insert four keys each into a hash table of 128 slots (\[SS\] section 9).
pub(crate) fn indexer(threads: i64) -> Program {
    let insert = |t: i64| {
        (0..4).flat_map(move |m| {
            let key = (m + 1) * 11 + t;
            [
                Ins::Set {
                    to: 0,
                    value: Val::Const((key * 7) % 128),
                },
                Ins::Jump(2),
                Ins::Set {
                    to: 0,
                    value: Val::Add(0, 1),
                },
                Ins::Unless {
                    reg: 0,
                    value: Val::Const(128),
                    by: 1,
                },
                Ins::Set {
                    to: 0,
                    value: Val::Const(0),
                },
                Ins::Cas {
                    var: Val::Reg(0),
                    expected: Val::Const(0),
                    new: Val::Const(key),
                    weak: false,
                    to: 1,
                },
                Ins::BackUnless {
                    reg: 1,
                    value: Val::Const(1),
                    by: 4,
                },
            ]
        })
    };
    Program::of((0..threads).map(|t| insert(t).collect()).collect())
}
