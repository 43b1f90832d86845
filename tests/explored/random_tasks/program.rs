//! Which programs are drawn?
//!
//! A tree of two to four tasks, the first of which is what main blocks on. Each awaits flags and the tasks that it has
//! spawned, which it may also join, look at, or let go.

use super::drawn::Numbers;

/// What a task does. The number is that of a task, a flag or an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Add,
    Spawn(usize),
    Await(usize),
    /// Awaits a task with a waker of its own, behind which this one sleeps.
    Block(usize),
    Join(usize),
    IsFinished(usize),
    Drop(usize),
    /// Sets a flag, and wakes those that wait for it.
    Set(usize),
    WaitFor(usize),
    /// Awaits a task or a flag, whichever comes first.
    Either(usize, usize),
    /// Wakes itself, and lets the others go on.
    Yield,
}

/// The steps of each task.
#[derive(Clone, Debug)]
pub struct Program(pub Vec<Vec<Step>>);

/// Programs have no more tasks than that, and so many flags.
pub const TASKS_MAX: usize = 4;
pub const FLAGS: usize = 2;

impl Program {
    pub fn random(seed: u64) -> Program {
        let mut numbers = Numbers(seed);
        let count = 2 + numbers.below(TASKS_MAX - 1);
        let mut tasks = vec![Vec::new(); count];
        for task in &mut tasks {
            for _ in 0..numbers.below([5, 4, 3][count - 2]) {
                let flag = numbers.below(FLAGS);
                task.push(match numbers.below(7) {
                    0 | 1 => Step::Add,
                    2 | 3 => Step::Set(flag),
                    4 | 5 => Step::WaitFor(flag),
                    _ => Step::Yield,
                });
            }
        }
        for child in 1..count {
            let parent = &mut tasks[numbers.below(child)];
            let at = numbers.below(parent.len() + 1);
            parent.insert(at, Step::Spawn(child));
            // The handle is used behind that.
            for _ in 0..numbers.below(4) {
                let step = match numbers.below(8) {
                    0 => Step::Await(child),
                    1 | 7 => Step::Block(child),
                    2 | 3 => Step::Either(child, numbers.below(FLAGS)),
                    4 => Step::Join(child),
                    5 => Step::IsFinished(child),
                    _ => Step::Drop(child),
                };
                let behind = at + 1 + numbers.below(parent.len() - at);
                parent.insert(behind, step);
            }
        }
        Program(tasks)
    }
}
