//! Does the engine of today count the graphs of sequential consistency?

use super::super::testing::{Ins, Value};
use super::litmus::TABLE;
use super::random::{Menu, number, program};
use super::*;
use crate::rt::engine::TieBreak;
use crate::rt::engine::testing;
use crate::rt::engine::testing::{Val, explore_up_to};
use crate::rt::memory::operation::OpKind;

/// The program for the engine, with `SeqCst` accesses alone; `None` if it cannot be written for
/// it: a compare-exchange there tells only whether it has succeeded, a thread has few registers, an
/// await is a loop, and all threads are there from the start.
fn translate(program: &Litmus) -> Option<testing::Program> {
    let mut threads = Vec::new();
    for code in &program.threads {
        // The registers of the thread, and whether each holds a value that was read.
        let mut registers: Vec<(usize, bool)> = Vec::new();
        let mut local = |register: usize, holds: bool| {
            let known = registers.iter().position(|&(known, _)| known == register);
            let at = known.unwrap_or_else(|| {
                registers.push((register, holds));
                registers.len() - 1
            });
            (at < 6 && registers[at].1 == holds).then_some(at as u8)
        };
        // Where each instruction begins.
        let length = |ins: &Ins| match ins {
            Ins::Data(_) => 0,
            Ins::Do { kind, .. } => usize::from(!matches!(kind, OpKind::Fence { .. })),
            Ins::Unless { is_equal, .. } => 2 - usize::from(*is_equal),
        };
        let starts: Vec<usize> = (0..=code.len())
            .map(|end| code[..end].iter().map(length).sum())
            .collect();
        let mut translated = Vec::new();
        for (at, ins) in code.iter().enumerate() {
            let to = |to: &Option<usize>, local: &mut dyn FnMut(usize) -> Option<u8>| match *to {
                Some(to) => local(to),
                None => Some(7),
            };
            match ins {
                Ins::Data(_) => {}
                Ins::Unless {
                    register,
                    is_equal,
                    value,
                    by,
                } => {
                    let reg = local(*register, true)?;
                    let value = Val::Const(*value as i64);
                    let skipped = (starts[at + 1 + by] - starts[at + 1]) as u8;
                    if *is_equal {
                        let by = skipped;
                        translated.push(testing::Ins::Unless { reg, value, by });
                    } else {
                        let by = 1;
                        translated.push(testing::Ins::Unless { reg, value, by });
                        translated.push(testing::Ins::Jump(skipped as i8 + 1));
                    }
                }
                Ins::Do {
                    object,
                    kind,
                    operand,
                    until,
                    to: into,
                } => {
                    if until.is_some() {
                        return None;
                    }
                    let value = match *operand {
                        Value::Is(value) => Val::Const(value as i64),
                        Value::In(register, more) => Val::Add(local(register, true)?, more as i64),
                    };
                    let var = Val::Const(i64::from(object.0));
                    translated.push(match *kind {
                        OpKind::Fence { .. } => continue,
                        OpKind::Load { .. } => testing::Ins::Load {
                            var,
                            to: to(into, &mut |register| local(register, true))?,
                        },
                        OpKind::Store { .. } => testing::Ins::Store { var, value },
                        OpKind::Rmw { rmw, .. } => testing::Ins::Rmw {
                            var: object.0,
                            rmw,
                            operand: value,
                            to: to(into, &mut |register| local(register, true))?,
                        },
                        OpKind::CompareExchange {
                            expected, spurious, ..
                        } => testing::Ins::Cas {
                            var,
                            expected: Val::Const(expected as i64),
                            new: value,
                            weak: spurious,
                            to: to(into, &mut |register| local(register, false))?,
                        },
                        _ => return None,
                    });
                }
            }
        }
        threads.push(translated);
    }
    Some(testing::Program::of(threads))
}

/// Compares the counts, if the program can be translated.
fn check(text: &str) -> bool {
    let litmus = Litmus::parse(text);
    let Some(program) = translate(&litmus) else {
        return false;
    };
    let found = explore_up_to(&program, "optimal", TieBreak::Last, u64::MAX).expect("no limit");
    let all = graphs(&litmus, Model::Sc).graphs.len();
    assert_eq!(found.traces.len(), all, "{text}");
    true
}

#[test]
fn the_engine_finds_as_many_traces_as_sequential_consistency_has_graphs() {
    let checked = TABLE.iter().filter(|&&(_, text, ..)| check(text)).count();
    assert_eq!(checked, TABLE.len());
    let programs = number("DPOR_FUZZ", 20_000).div_ceil(20);
    let random = (1..=programs).map(|seed| program(seed, Menu::All));
    let checked = random.filter(|text| check(text)).count() as u64;
    println!("{checked} programs");
    assert!(checked * 3 > programs, "{checked} could be translated");
}
