//! What may come of a program, by the documentation of `Future`, `Waker` and `JoinHandle`?
//!
//! An interpreter that shares nothing with the crate, and tries all interleavings. A task that is pending goes on when it was
//! woken since it began to wait, and then it polls what it waits for once more.

use std::collections::{BTreeSet, HashSet};

use super::program::{FLAGS, Program, Step};
use super::run::Outcome;

/// Where a task is in its present step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Begin,
    /// It has looked for the task, and looks for the flag.
    Flag(usize),
    /// It waits until it is woken.
    Pending,
    /// It waits for the end of a thread, whose output it then has.
    End(usize),
    /// It has been woken by itself, and polls for the second time.
    Yielded,
    /// It wakes those that have waited for a flag.
    Wake,
}

/// How far a task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Stage {
    Unborn,
    Runs,
    /// It is done, and wakes who awaits it.
    Done,
    /// Its thread has ended.
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Task {
    stage: Stage,
    next: usize,
    at: At,
    /// Who is still to be woken.
    to_wake: Vec<usize>,
    log: Vec<usize>,
    woken: bool,
    has_handle: bool,
    /// Who awaits it.
    awaited_by: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    tasks: Vec<Task>,
    atomic: usize,
    flags: [(bool, Vec<usize>); FLAGS],
}

/// All that may come of the program; `None` if that takes more than so many states.
pub fn outcomes(program: &Program, states_max: usize) -> Option<BTreeSet<Outcome>> {
    let task = |me| Task {
        stage: if me == 0 { Stage::Runs } else { Stage::Unborn },
        next: 0,
        at: At::Begin,
        to_wake: Vec::new(),
        log: Vec::new(),
        woken: false,
        has_handle: false,
        awaited_by: None,
    };
    let first = State {
        tasks: (0..program.0.len()).map(task).collect(),
        atomic: 0,
        flags: Default::default(),
    };
    let mut outcomes = BTreeSet::new();
    let mut known = HashSet::from([first.clone()]);
    let mut todo = vec![first];
    while let Some(state) = todo.pop() {
        let next: Vec<State> = (0..program.0.len())
            .filter_map(|me| {
                let mut state = state.clone();
                state.step(program, me).then_some(state)
            })
            .collect();
        if next.is_empty() {
            outcomes.insert(state.outcome(program));
        }
        for state in next {
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

impl State {
    fn outcome(&self, program: &Program) -> Outcome {
        let tasks = self.tasks.iter().zip(&program.0);
        tasks
            .map(|(task, steps)| {
                let is_over = task.stage != Stage::Unborn && task.next == steps.len();
                (task.log.clone(), is_over)
            })
            .collect()
    }

    /// The present step has seen this.
    fn log(&mut self, me: usize, seen: usize) -> bool {
        let task = &mut self.tasks[me];
        task.log.push(seen);
        task.next += 1;
        task.at = At::Begin;
        true
    }

    fn go_to(&mut self, me: usize, at: At) -> bool {
        self.tasks[me].at = at;
        true
    }

    /// Makes a step of a task; false if it has to wait.
    fn step(&mut self, program: &Program, me: usize) -> bool {
        match self.tasks[me].stage {
            Stage::Unborn | Stage::Ended => return false,
            Stage::Done => {
                if let Some(by) = self.tasks[me].awaited_by.take() {
                    self.tasks[by].woken = true;
                } else {
                    self.tasks[me].stage = Stage::Ended;
                }
                return true;
            }
            Stage::Runs => {}
        }
        let Some(&step) = program.0[me].get(self.tasks[me].next) else {
            self.tasks[me].stage = Stage::Done;
            return true;
        };
        match (self.tasks[me].at, step) {
            (At::Pending, step) => {
                if !std::mem::take(&mut self.tasks[me].woken) {
                    return false;
                }
                let at = if step == Step::Yield {
                    At::Yielded
                } else {
                    At::Begin
                };
                self.go_to(me, at)
            }
            (At::Yielded, _) => self.log(me, 0),
            (At::End(of), _) => {
                self.tasks[of].stage == Stage::Ended && {
                    self.tasks[of].has_handle = false;
                    self.log(me, 50 + of)
                }
            }
            (At::Flag(flag), _) | (At::Begin, Step::WaitFor(flag)) => {
                let (is_set, waiting) = &mut self.flags[flag];
                if *is_set {
                    return self.log(me, 0);
                }
                waiting.push(me);
                self.go_to(me, At::Pending)
            }
            (At::Wake, _) => match self.tasks[me].to_wake.pop() {
                Some(waiting) => {
                    self.tasks[waiting].woken = true;
                    true
                }
                None => self.log(me, 0),
            },
            (At::Begin, Step::Add) => {
                self.atomic += 1;
                self.log(me, self.atomic - 1)
            }
            (At::Begin, Step::Spawn(child)) => {
                self.tasks[child].stage = Stage::Runs;
                self.tasks[child].has_handle = true;
                self.log(me, 0)
            }
            (At::Begin, Step::Set(flag)) => {
                let waiting = std::mem::take(&mut self.flags[flag].1);
                self.flags[flag].0 = true;
                self.tasks[me].to_wake = waiting.into_iter().rev().collect();
                self.go_to(me, At::Wake)
            }
            (At::Begin, Step::Yield) => {
                self.tasks[me].woken = true;
                self.go_to(me, At::Pending)
            }
            (At::Begin, Step::Drop(child)) => {
                self.tasks[child].has_handle = false;
                self.log(me, 0)
            }
            (At::Begin, Step::Either(child, flag)) if !self.tasks[child].has_handle => {
                self.go_to(me, At::Flag(flag))
            }
            (
                At::Begin,
                Step::Await(child)
                | Step::Block(child)
                | Step::Join(child)
                | Step::IsFinished(child),
            ) if !self.tasks[child].has_handle => self.log(me, 999),
            (At::Begin, Step::Join(child)) => self.go_to(me, At::End(child)),
            (At::Begin, Step::IsFinished(child)) => {
                let is_finished = self.tasks[child].stage == Stage::Ended;
                self.log(me, is_finished.into())
            }
            // Who is woken for nothing looks again, so it makes no difference who else may wake it.
            (At::Begin, Step::Await(child) | Step::Block(child) | Step::Either(child, _)) => {
                if self.tasks[child].stage >= Stage::Done {
                    return self.go_to(me, At::End(child));
                }
                self.tasks[child].awaited_by = Some(me);
                let at = match step {
                    Step::Either(_, flag) => At::Flag(flag),
                    _ => At::Pending,
                };
                self.go_to(me, at)
            }
        }
    }
}
