//! Do litmus programs have as many executions as closures as they have graphs?
//!
//! The programs are those on which the search itself is tested, written as they are there: `W x 1
//! rel` stores, `a=R x acq` loads, `a=A x 1 ar` adds, `a=X x 1 sc` swaps, `a=C x 0 1 acq rlx` is a
//! compare-exchange, `F sc` a fence, `D c` writes plain data, `S 1` spawns a thread, `J 1` joins
//! it, `?a==1 OP` and `?a!=0 { OP; OP }` are conditional. Without an ordering an access is relaxed.
//! An `await` is one step there; a loop makes several, so programs with one are left out here.

#[path = "../../src/rt/memory/tests/families/table.rs"]
mod families;
#[path = "../../src/rt/memory/tests/litmus/table.rs"]
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use dpor::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use dpor::sync::atomic::{AtomicUsize, fence};
use dpor::{Builder, FailureKind, Memory, Report, WeakMemory, thread};

use super::Cell;

/// What is in the registers of a thread.
type Registers = BTreeMap<String, usize>;

/// A program: its threads, its atomics, and its plain data.
struct Litmus {
    threads: Vec<String>,
    atomics: Vec<String>,
    data: Vec<String>,
    /// The threads that another thread spawns.
    spawned: Vec<usize>,
}

/// What the threads of an execution share.
struct Shared {
    program: Arc<Litmus>,
    atomics: Vec<AtomicUsize>,
    data: Vec<Cell>,
    handles: Mutex<Vec<Option<thread::JoinHandle<Registers>>>>,
    /// What the threads that were joined by others have read.
    read: Mutex<Vec<Registers>>,
}

/// Whether the program waits for a value.
fn waits(text: &str) -> bool {
    text.contains("await ") || text.contains("L m")
}

fn order(word: Option<&&str>) -> Ordering {
    match word.copied() {
        None | Some("rlx") => Relaxed,
        Some("acq") => Acquire,
        Some("rel") => Release,
        Some("ar") => AcqRel,
        Some("sc") => SeqCst,
        Some(other) => panic!("no ordering is called {other}"),
    }
}

/// The instructions of a block, which `;` separates outside of braces.
fn instructions(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

impl Litmus {
    fn parse(text: &str) -> Arc<Litmus> {
        let threads: Vec<String> = text.split('∥').map(str::to_owned).collect();
        let (mut atomics, mut data, mut spawned) = (Vec::new(), Vec::new(), Vec::new());
        let words: Vec<&str> = text.split([' ', ';', '{', '}', '=', '?']).collect();
        for two in words.windows(2) {
            let into = match two[0] {
                "W" | "R" | "A" | "X" | "C" => &mut atomics,
                "D" => &mut data,
                "S" => {
                    spawned.push(two[1].parse().expect("a thread"));
                    continue;
                }
                _ => continue,
            };
            if !into.iter().any(|known| known == two[1]) {
                into.push(two[1].to_owned());
            }
        }
        Arc::new(Litmus {
            threads,
            atomics,
            data,
            spawned,
        })
    }

    /// Runs the program once.
    fn run(self: &Arc<Litmus>) {
        let shared = Arc::new(Shared {
            program: self.clone(),
            atomics: self.atomics.iter().map(|_| AtomicUsize::new(0)).collect(),
            data: self.data.iter().map(|_| Cell::new()).collect(),
            handles: Mutex::new(self.threads.iter().map(|_| None).collect()),
            read: Mutex::default(),
        });
        // A thread that another one joins is there before that one.
        let all = (0..self.threads.len()).filter(|thread| !self.spawned.contains(thread));
        for thread in all.rev() {
            shared.spawn(thread);
        }
        for thread in 0..self.threads.len() {
            shared.join(thread);
        }
        let read = shared.read.lock().unwrap();
        let all: Registers = read
            .iter()
            .flatten()
            .map(|(k, v)| (k.clone(), *v))
            .collect();
        let words = all.iter().map(|(name, value)| format!("{name}={value}"));
        let words: BTreeSet<String> = words.collect();
        dpor::outcome(Vec::from_iter(words).join(" "));
    }
}

impl Shared {
    fn spawn(self: &Arc<Shared>, thread: usize) {
        let shared = self.clone();
        let handle = thread::spawn(move || {
            let mut registers = Registers::new();
            shared.block(&shared.program.threads[thread], &mut registers);
            registers
        });
        self.handles.lock().unwrap()[thread] = Some(handle);
    }

    fn join(&self, thread: usize) {
        let handle = self.handles.lock().unwrap()[thread].take();
        if let Some(handle) = handle {
            let read = handle.join().unwrap();
            self.read.lock().unwrap().push(read);
        }
    }

    fn atomic(&self, name: &str) -> &AtomicUsize {
        let at = self.program.atomics.iter().position(|known| known == name);
        &self.atomics[at.expect("an atomic")]
    }

    fn block(self: &Arc<Shared>, text: &str, registers: &mut Registers) {
        for part in instructions(text) {
            self.instruction(part, registers);
        }
    }

    fn instruction(self: &Arc<Shared>, text: &str, registers: &mut Registers) {
        if let Some(text) = text.strip_prefix('?') {
            let (condition, rest) = text.split_once(' ').expect("a condition");
            let (name, value, is_equal) = match condition.split_once("==") {
                Some((name, value)) => (name, value, true),
                None => {
                    let (name, value) = condition.split_once("!=").expect("== or !=");
                    (name, value, false)
                }
            };
            let held = registers.get(name).copied().unwrap_or(0);
            if (held == value.parse::<usize>().expect("a number")) == is_equal {
                let rest = rest.trim();
                let inner = rest.strip_prefix('{');
                let inner = inner.and_then(|rest| rest.strip_suffix('}'));
                self.block(inner.unwrap_or(rest), registers);
            }
            return;
        }
        let (to, text) = match text.split_once('=') {
            Some((to, rest)) if !to.contains(' ') => (Some(to), rest),
            _ => (None, text),
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let value = |word: &str| {
            if let Ok(value) = word.parse() {
                return value;
            }
            let (name, more) = word.split_once('+').unwrap_or((word, "0"));
            let more: usize = more.parse().expect("a number");
            registers.get(name).copied().unwrap_or(0) + more
        };
        let number = |word: &str| word.parse().expect("a number");
        let read = match words[0] {
            "W" => {
                let stored = value(words[2]);
                self.atomic(words[1]).store(stored, order(words.get(3)));
                None
            }
            "R" => Some(self.atomic(words[1]).load(order(words.get(2)))),
            "A" | "X" => {
                let (at, operand) = (self.atomic(words[1]), value(words[2]));
                let order = order(words.get(3));
                Some(match words[0] {
                    "A" => at.fetch_add(operand, order),
                    _ => at.swap(operand, order),
                })
            }
            "C" => {
                let at = self.atomic(words[1]);
                let (success, failure) = (order(words.get(4)), order(words.get(5)));
                let found =
                    at.compare_exchange(number(words[2]), value(words[3]), success, failure);
                Some(found.unwrap_or_else(|found| found))
            }
            "F" => {
                fence(order(words.get(1)));
                None
            }
            "D" => {
                let at = self.program.data.iter().position(|known| known == words[1]);
                self.data[at.expect("plain data")].add_one();
                None
            }
            "nothing" => None,
            "S" => {
                self.spawn(number(words[1]));
                None
            }
            "J" => {
                self.join(number(words[1]));
                None
            }
            other => panic!("no instruction is called {other}"),
        };
        if let (Some(to), Some(read)) = (to, read) {
            registers.insert(to.to_owned(), read);
        }
    }
}

/// The exploration of a program that does not fail.
fn explore(text: &str, memory: Memory) -> Report {
    let mut builder = Builder::new();
    builder.memory = memory;
    let program = Litmus::parse(text);
    let report = builder
        .explore(move || program.run())
        .unwrap_or_else(|failure| panic!("{text}\n{failure}"));
    assert!(report.complete && report.pruned == 0, "{text}: {report:?}");
    report
}

/// Checks the numbers of executions under sequential consistency, under C11 and by default, and
/// what the last one says. Returns the outcomes that C11 has besides.
fn check(text: &str, sequential: usize, c11: usize) -> BTreeSet<String> {
    let [sc, weak, auto] = [Memory::Sc, Memory::C11, Memory::Auto].map(|it| explore(text, it));
    let counts = [&sc, &weak, &auto].map(|report| report.executions as usize);
    assert_eq!(counts, [sequential, c11, c11], "{text}");
    match &auto.weak {
        WeakMemory::Impossible => assert_eq!(sequential, c11, "{text}"),
        WeakMemory::Explored { sequential: of, .. } => {
            assert!(c11 > sequential, "{text}");
            assert_eq!(*of as usize, sequential, "{text}");
        }
        other => panic!("{text}: {other:?}"),
    }
    assert_eq!(weak.outcomes, auto.outcomes, "{text}");
    assert!(
        sc.outcomes
            .keys()
            .all(|outcome| weak.outcomes.contains_key(outcome))
    );
    // The text of an outcome is that of a debugger, with quotation marks.
    let new = weak.outcomes.into_keys();
    let new = new.filter(|outcome| !sc.outcomes.contains_key(outcome));
    new.map(|outcome| outcome.trim_matches('"').to_owned())
        .collect()
}

#[test]
fn litmus_programs() {
    for &(name, text, [sc, rc11, _], outcomes) in table::TABLE {
        let sorted = |outcome: &str| {
            let mut words: Vec<&str> = outcome.split_whitespace().collect();
            words.sort_unstable();
            words.join(" ")
        };
        let wanted: BTreeSet<String> = (outcomes.split("; "))
            .filter(|outcome| !outcome.is_empty())
            .map(sorted)
            .collect();
        assert_eq!(check(text, sc, rc11), wanted, "{name}");
    }
}

#[test]
fn small_programs() {
    let all = families::SMALL.iter();
    let checked = all.filter(|(text, ..)| !waits(text));
    let checked = checked.map(|&(text, sc, rc11)| check(text, sc, rc11));
    assert_eq!(checked.count(), families::SMALL.len() - 4);
}

#[test]
fn families() {
    let mut left_out = 0;
    for families::Counts {
        program,
        graphs,
        races,
    } in families::table()
    {
        if waits(&program) {
            left_out += 1;
            continue;
        }
        let [sequential, rest @ ..] = graphs;
        let [_, columns @ ..] = families::COLUMNS;
        // Where plain data race, their uses are left out.
        let harmless = program.replace("D c", "nothing");
        for (column, c11) in columns.into_iter().zip(rest) {
            let (racy, text) = (column.apply(&program), column.apply(&harmless));
            if program == harmless || races.contains(&column) {
                check(&text, sequential, c11);
            }
            if races.contains(&column) {
                let racy = Litmus::parse(&racy);
                let failure = Builder::new()
                    .explore(move || racy.run())
                    .expect_err("a race");
                assert_eq!(failure.kind(), FailureKind::DataRace, "{failure}");
            } else if program != harmless {
                check(&racy, sequential, c11);
            }
        }
    }
    // Ticket locks, spin locks, and what is in them, of two, three and four threads.
    assert_eq!(left_out, 9);
}
