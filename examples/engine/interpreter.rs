//! An interpreter of a small language that explores its programs by `dpor::engine`.
//!
//! `cargo run --example engine_interpreter`
//!
//! Names behind `shared` are variables of all threads; the others belong to one thread. A statement
//! reads or writes at most one shared variable, so that it is one operation.

use std::collections::HashMap;

use dpor::Builder;
use dpor::engine::{Access, Ended, Engine, Misuse, Operation, Turn};

/// Two threads that count without a lock.
const COUNTER: &str = "
    shared n
    thread
      a = n
      b = a + 1
      n = b
    thread
      a = n
      b = a + 1
      n = b
    finally n == 2";

/// Peterson's lock around the same; a thread that has to wait gives up in this execution.
const PETERSON: &str = "
    shared n flag0 flag1 turn
    thread
      flag0 = 1
      turn = 1
      f = flag1
      t = turn
      wait f t 1
      a = n
      b = a + 1
      n = b
      flag0 = 0
    thread
      flag1 = 1
      turn = 0
      f = flag0
      t = turn
      wait f t 0
      a = n
      b = a + 1
      n = b
      flag1 = 0
    finally n == 2";

type Line = Vec<String>;

struct Program {
    shared: Vec<String>,
    threads: Vec<Vec<Line>>,
    /// A shared variable, and its value at the end.
    finally: (String, u64),
}

fn parse(text: &str) -> Program {
    let (mut shared, mut threads, mut finally) = (Vec::new(), Vec::new(), (String::new(), 0));
    for line in text.lines() {
        let words: Line = line.split_whitespace().map(str::to_owned).collect();
        match words.first().map(String::as_str) {
            None => {}
            Some("shared") => shared = words[1..].to_vec(),
            Some("thread") => threads.push(Vec::new()),
            Some("finally") => finally = (words[1].clone(), words[3].parse().expect("a number")),
            Some(_) => threads.last_mut().expect("a thread").push(words),
        }
    }
    Program {
        shared,
        threads,
        finally,
    }
}

/// A running thread.
#[derive(Default)]
struct Frame {
    line: usize,
    locals: HashMap<String, u64>,
}

impl Frame {
    fn value(&self, word: &str) -> u64 {
        let local = self.locals.get(word).copied();
        word.parse().ok().or(local).unwrap_or(0)
    }
}

impl Program {
    /// The number of a shared variable.
    fn object(&self, name: &str) -> Option<u32> {
        let at = self.shared.iter().position(|shared| shared == name);
        at.map(|at| at as u32)
    }

    /// Runs local statements, up to the next operation on a shared variable.
    fn next(&self, thread: usize, frame: &mut Frame) -> Option<Operation> {
        loop {
            let line = self.threads[thread].get(frame.line)?;
            let words: Vec<&str> = line.iter().map(String::as_str).collect();
            match words[..] {
                // Waits while the first value is 1 and the second the third.
                ["wait", flag, turn, other] => {
                    if frame.value(flag) == 1 && frame.value(turn) == frame.value(other) {
                        return Some(Operation::GiveUp);
                    }
                }
                [to, "=", from] => {
                    let (to, from) = (self.object(to), self.object(from));
                    let access = |object, access| Some(Operation::Access { object, access });
                    match (to, from) {
                        (Some(object), _) => return access(object, Access::Write),
                        (None, Some(object)) => return access(object, Access::Read),
                        (None, None) => self.assign(frame, line, &mut HashMap::new()),
                    }
                }
                _ => self.assign(frame, line, &mut HashMap::new()),
            }
            frame.line += 1;
        }
    }

    /// Makes the assignment of a line.
    fn assign(&self, frame: &mut Frame, line: &Line, memory: &mut HashMap<u32, u64>) {
        let get = |word: &String| match self.object(word) {
            Some(object) => memory.get(&object).copied().unwrap_or(0),
            None => frame.value(word),
        };
        let value = line[2..].iter().step_by(2).map(get).sum();
        match self.object(&line[0]) {
            Some(object) => memory.insert(object, value),
            None => frame.locals.insert(line[0].clone(), value),
        };
    }
}

/// Explores a program; returns the number of executions, and the schedule of one that breaks the
/// promise behind `finally`.
fn explore(text: &str) -> Result<(u64, Option<Vec<usize>>), Misuse> {
    let program = parse(text);
    let mut engine = Engine::new(&Builder::new(), program.threads.len())?;
    let mut broken = None;
    while let Some(mut execution) = engine.begin()? {
        let mut memory = HashMap::new();
        let mut frames: Vec<Frame> = program.threads.iter().map(|_| Frame::default()).collect();
        let ended = loop {
            let thread = match execution.turn()? {
                Turn::Begins(thread) => thread,
                Turn::Ran(thread, _) => {
                    let frame = &mut frames[thread.0];
                    program.assign(frame, &program.threads[thread.0][frame.line], &mut memory);
                    frame.line += 1;
                    thread
                }
                Turn::Ended(ended) => break ended,
            };
            match program.next(thread.0, &mut frames[thread.0]) {
                Some(operation) => execution.announce(thread, operation)?,
                None => execution.finish_thread(thread)?,
            }
        };
        let (name, value) = &program.finally;
        let found = program.object(name).and_then(|object| memory.get(&object));
        if ended == Ended::Complete && found != Some(value) {
            let schedule = execution.schedule();
            broken.get_or_insert(schedule.into_iter().map(|thread| thread.0).collect());
        }
    }
    assert!(engine.is_complete());
    Ok((engine.executions(), broken))
}

fn main() -> Result<(), Misuse> {
    let (executions, broken) = explore(COUNTER)?;
    println!("counter: {executions} executions; broken by the schedule {broken:?}");
    assert_eq!(executions, 4);
    assert!(broken.is_some());

    let (executions, broken) = explore(PETERSON)?;
    println!("Peterson's lock: {executions} executions; broken by {broken:?}");
    assert_eq!(broken, None);
    Ok(())
}
