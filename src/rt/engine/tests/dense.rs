//! Random programs that do little else than wait, at objects of two kinds, against brute force: the
//! outcome at one object decides which threads reach the other, and in which order.

use crate::rt::engine::testing::*;
use crate::rt::engine::tests::blocking::{Blocking, OBJECT};
use crate::rt::engine::tests::random::{MUTEX, Rng, agree};
use crate::rt::event::operation::ObjectKind;

/// The random program of this seed.
pub(super) fn program(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let kinds = [Blocking::any(&mut rng), Blocking::any(&mut rng)];
    let kinds = [(OBJECT, kinds[0]), (OBJECT + 1, kinds[1])];
    let threads = 2 + rng.below(3) as u32;
    let most = [6, 4, 3][threads as usize - 2];
    let mut all = Vec::new();
    for me in 1..=threads {
        let mut code = Vec::new();
        for _ in 0..1 + rng.below(most) {
            let var = Val::Const(rng.below(2) as i64);
            let value = match rng.below(2) {
                0 => Val::Add(0, 1),
                _ => Val::Const(1 + rng.below(2) as i64),
            };
            match rng.below(8) {
                0 => code.push(Ins::Load { var, to: 0 }),
                1 => code.push(Ins::Store { var, value }),
                other => {
                    let (object, kind) = kinds[other as usize % 2];
                    kind.instructions(object, &mut rng, me, &mut code, (var, value));
                }
            }
        }
        for (object, kind) in kinds {
            kind.end(object, &mut rng, me, &mut code);
        }
        all.push(code);
    }
    let mut program = Program::of(all);
    program = program.with(MUTEX, ObjectKind::Mutex, 0);
    for (object, kind) in kinds {
        program = kind.declare(object, &mut rng, threads, program);
    }
    program
}

#[test]
fn waits_at_objects_of_two_kinds_are_explored_as_by_brute_force() {
    agree(3_000, 1_500, 2, program);
}
