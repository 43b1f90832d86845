//! Is anything lost when the process that explores is killed, at whatever moment?
//!
//! A child process explores one of these programs with a checkpoint after every few executions, is
//! killed, and started again until it comes to its end. The executions are numbered and printed with
//! their schedules, so each child must take up the numbers where the last checkpoint left them, and
//! say of each number what a child that lives says of it.
//!
//! Moments in time cannot be repeated, so a child kills itself after a drawn number of moments of work:
//! in the code that is explored, or in the system calls that write a checkpoint. Those are this program's
//! own here, because a function of this name in the program is found before the one of the C library.
//! Others are killed by their parent, whenever that happens.
#![cfg(target_os = "linux")]

use std::ffi::{c_char, c_int, c_void};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Condvar, Mutex, mpsc};
use dpor::{Builder, Memory, Order, thread};

use crate::children::process_of;

/// How many executions there are between two checkpoints.
const INTERVAL: u64 = 7;

/// In how many bytes at once a checkpoint is written.
const PIECE: usize = 512;

/// How often the children of one program are killed. `DPOR_TEST_KILLS` asks for another number.
const KILLS: usize = 80;

/// A countdown to the death of this process.
struct Countdown(AtomicU64);

impl Countdown {
    /// One moment less; the last one is the end.
    fn moment(&self) {
        if self.0.load(Relaxed) != u64::MAX && self.0.fetch_sub(1, Relaxed) == 1 {
            // SAFETY: the call has no requirements, and does not come back.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
    }
}

/// Moments in the code that is explored, and in what writes a checkpoint.
static WORK: Countdown = Countdown(AtomicU64::new(u64::MAX));
static FILE: Countdown = Countdown(AtomicU64::new(u64::MAX));

/// What the standard library writes files with. What is no standard stream is written piece by piece, with
/// a moment around each.
///
/// # Safety
///
/// As for `write` of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn write(file: c_int, bytes: *const c_void, length: usize) -> isize {
    let most = if file > 2 { PIECE } else { usize::MAX };
    let piece = libc::iovec {
        iov_base: bytes.cast_mut(),
        iov_len: length.min(most),
    };
    if file > 2 {
        FILE.moment();
    }
    // SAFETY: the caller says that the bytes are there; they are only read.
    let written = unsafe { libc::writev(file, &raw const piece, 1) };
    if file > 2 {
        FILE.moment();
    }
    written
}

/// What the standard library makes files permanent with. Nothing that is tested here depends on the
/// difference to `fdatasync`.
#[unsafe(no_mangle)]
extern "C" fn fsync(file: c_int) -> c_int {
    FILE.moment();
    // SAFETY: the call has no requirements.
    let result = unsafe { libc::fdatasync(file) };
    FILE.moment();
    result
}

/// What the standard library renames files with.
///
/// # Safety
///
/// As for `rename` of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    FILE.moment();
    // SAFETY: the caller says that both are names.
    let result = unsafe { libc::renameat(libc::AT_FDCWD, from, libc::AT_FDCWD, to) };
    FILE.moment();
    result
}

/// Three threads add twice to a static and once to the heap.
fn statics() {
    static STATIC: AtomicUsize = AtomicUsize::new(0);
    let heap = Arc::new(AtomicUsize::new(0));
    let add = |heap: Arc<AtomicUsize>| {
        move || {
            STATIC.fetch_add(1, SeqCst);
            WORK.moment();
            heap.fetch_add(1, SeqCst);
            STATIC.fetch_add(1, SeqCst);
        }
    };
    let threads: Vec<_> = (0..3).map(|_| thread::spawn(add(heap.clone()))).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// Two threads put three things into a room for one, and a third takes two of them out.
fn condvars() {
    let room = Arc::new((Mutex::new(0), Condvar::new()));
    let change = |room: Arc<(Mutex<i32>, Condvar)>, by: i32, times: i32| {
        move || {
            for _ in 0..times {
                let (place, changed) = &*room;
                let full = |things: &mut i32| !(0..=1).contains(&(*things + by));
                let mut things = changed.wait_while(place.lock().unwrap(), full).unwrap();
                *things += by;
                WORK.moment();
                drop(things);
                changed.notify_all();
            }
        }
    };
    let threads = [
        thread::spawn(change(room.clone(), 1, 2)),
        thread::spawn(change(room.clone(), 1, 1)),
        thread::spawn(change(room.clone(), -1, 2)),
    ];
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// Three threads send, two of them twice; the third message may find nobody any more. What is received
/// decides a value that is chosen.
fn channels() {
    let (sender, receiver) = mpsc::channel();
    let send = |sender: mpsc::Sender<usize>, value: usize, times: usize| {
        move || {
            for _ in 0..times {
                let _ = sender.send(value);
                WORK.moment();
            }
        }
    };
    for (value, times) in [(1, 2), (2, 2), (3, 1)] {
        thread::spawn(send(sender.clone(), value, times));
    }
    drop(sender);
    let first = receiver.recv().unwrap();
    dpor::choose(first);
    receiver.recv().unwrap();
    WORK.moment();
}

/// Three threads add to a static and read what others have stored, old values among it.
fn weak() {
    static STATIC: AtomicUsize = AtomicUsize::new(0);
    let all = Arc::new([(); 3].map(|()| AtomicUsize::new(0)));
    let body = |at: usize| {
        let all = all.clone();
        move || {
            all[at].store(1, Release);
            WORK.moment();
            let next = all[(at + 1) % 3].load(Acquire);
            if next == 0 {
                STATIC.fetch_add(1, Relaxed);
            }
            WORK.moment();
            (next, all[(at + 2) % 3].load(Acquire), STATIC.load(Relaxed))
        }
    };
    let threads: Vec<_> = (0..3).map(|at| thread::spawn(body(at))).collect();
    let read = threads.into_iter().map(|t| t.join().unwrap());
    dpor::outcome(read.collect::<Vec<_>>());
}

/// The orders of the killed processes.
const ORDERS: [Order; 2] = [Order::Stride, Order::RoundRobin];

/// The programs, by name.
const PROGRAMS: [(&str, fn()); 4] = [
    ("weak", weak),
    ("statics", statics),
    ("condvars", condvars),
    ("channels", channels),
];

/// Tell the child which program to explore, and in which order under C11, where its checkpoint is,
/// and when it kills itself.
const PROGRAM: &str = "DPOR_TEST_PROGRAM";
const ORDER: &str = "DPOR_TEST_ORDER";
const CHECKPOINT: &str = "DPOR_TEST_CHECKPOINT";
const DEATH: &str = "DPOR_TEST_DEATH";

/// Not a test of its own: what the killed processes run.
#[test]
fn child_of_the_killing_tests() {
    let Ok(name) = std::env::var(PROGRAM) else {
        return;
    };
    let program = PROGRAMS.iter().find(|(known, _)| *known == name);
    let (_, body) = *program.expect("a program of this name");
    let mut builder = Builder::new();
    builder.checkpoint_file = std::env::var_os(CHECKPOINT).map(PathBuf::from);
    builder.checkpoint_interval = INTERVAL as usize;
    builder.log = true;
    if let Ok(order) = std::env::var(ORDER) {
        let order = ORDERS.into_iter().find(|it| format!("{it:?}") == order);
        builder.order = order.expect("an order of this name");
        builder.memory = Memory::C11;
    }
    if let Ok(death) = std::env::var(DEATH) {
        let (what, moments) = death.split_once(' ').expect("what, and how many moments");
        let countdown = if what == "work" { &WORK } else { &FILE };
        countdown
            .0
            .store(moments.parse().expect("a number"), Relaxed);
    }
    let report = builder.check(body);
    let (executions, events) = (report.executions, report.events);
    let outcomes = &report.outcomes;
    eprintln!("ended {executions} executions, {events} events, {outcomes:?}");
}

/// When a child is to be killed.
enum Death {
    Never,
    /// By itself, after this many moments in the code that is explored.
    Work(u64),
    /// By itself, after this many moments in what writes checkpoints.
    File(u64),
    /// By its parent, once this many executions are printed.
    Parent(usize),
}

/// What a child has printed: the schedules of its executions with their numbers, and the end if it came
/// to one.
struct Printed {
    schedules: Vec<(u64, String)>,
    end: Option<String>,
    /// Whether it was killed.
    killed: bool,
}

/// Runs a child of [`child_of_the_killing_tests`].
fn child(program: &str, order: Option<Order>, checkpoint: &Path, death: &Death) -> Printed {
    let mut command = process_of("kills::child_of_the_killing_tests");
    command
        .arg("--nocapture")
        .env(PROGRAM, program)
        .env(CHECKPOINT, checkpoint)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if let Some(order) = order {
        command.env(ORDER, format!("{order:?}"));
    }
    match death {
        Death::Work(moments) => command.env(DEATH, format!("work {moments}")),
        Death::File(moments) => command.env(DEATH, format!("file {moments}")),
        Death::Parent(_) | Death::Never => &mut command,
    };
    let mut child = command.spawn().unwrap();
    let mut from = BufReader::new(child.stderr.take().unwrap());
    let (mut schedules, mut end, mut others) = (Vec::new(), None, String::new());
    loop {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        // Death may have torn the last line.
        let Some(line) = line.strip_suffix('\n') else {
            break;
        };
        let execution = line.strip_prefix("dpor: execution ");
        if let Some((number, schedule)) = execution.and_then(|line| line.split_once(": ")) {
            schedules.push((number.parse().unwrap(), schedule.to_owned()));
            if matches!(death, Death::Parent(patience) if *patience == schedules.len()) {
                child.kill().unwrap();
            }
        } else if line.starts_with("ended ") {
            end = Some(line.to_owned());
        } else {
            others.push_str(line);
            others.push('\n');
        }
    }
    let status = child.wait().unwrap();
    let killed = status.signal() == Some(libc::SIGKILL);
    assert!(killed || status.success(), "{program}: {status}: {others}");
    Printed {
        schedules,
        end,
        killed,
    }
}

/// Files that are gone when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    /// What processes have left that were killed while they wrote.
    fn torn(&self) -> Vec<PathBuf> {
        let start = format!("{}.", self.0.display());
        let entries = std::fs::read_dir(std::env::temp_dir()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let is_torn = |path: &PathBuf| {
            let path = path.to_str().unwrap();
            path.starts_with(&start) && path.ends_with(".new")
        };
        paths.filter(is_torn).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for file in self.torn().iter().chain([&self.0]) {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Explores the program again and again, until its children were killed [`KILLS`] times. An order
/// begins anew in each child, so the same executions come in another one: their number and the
/// outcomes of all are compared then.
fn nothing_is_lost(program: &str, order: Option<Order>) {
    let in_order = order.map_or(String::new(), |order| format!("-{order:?}"));
    let name = format!("dpor-{}-killed-{program}{in_order}", std::process::id());
    let checkpoint = std::env::temp_dir().join(name);
    let scratch = Scratch(checkpoint.clone());
    let mut whole = child(program, order, &checkpoint, &Death::Never);
    // The executions of the second pass are numbered from 1 again.
    let is_weak = |schedule: &str| schedule.starts_with("v2 c11");
    let strong = whole.schedules.iter().filter(|(_, it)| !is_weak(it));
    let strong = strong.count() as u64;
    let number_all = |printed: &mut Printed| {
        for (number, schedule) in &mut printed.schedules {
            *number += if is_weak(schedule) { strong } else { 0 };
        }
    };
    number_all(&mut whole);
    let total = whole.schedules.len() as u64;
    let numbers = whole.schedules.iter().map(|(number, _)| *number);
    assert!(numbers.eq(1..=total) && !whole.killed && total > 20 * INTERVAL);
    // The deaths by each means, and those that came before the first checkpoint and while one was written.
    let (mut kills, mut early, mut torn) = ([0; 3], 0, 0);
    let mut seed: u64 = 1;
    let mut draw = |most: u64| {
        // Knuth's numbers; the upper bits are the better ones.
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    let most = std::env::var("DPOR_TEST_KILLS").map(|most| most.parse().expect("a number"));
    while kills.iter().sum::<usize>() < most.as_ref().map_or(KILLS, |&most| most) {
        // The last number that was printed.
        let mut last: u64 = 0;
        let mut left = 0;
        loop {
            let means = draw(3) as usize;
            let death = match means {
                0 => Death::Work(1 + draw(150)),
                1 => Death::File(1 + draw(60)),
                _ => Death::Parent(1 + draw(20) as usize),
            };
            let kept = checkpoint.exists();
            let mut printed = child(program, order, &checkpoint, &death);
            number_all(&mut printed);
            for (at, (number, schedule)) in printed.schedules.iter().enumerate() {
                if at == 0 {
                    let repeated = (last + 1).checked_sub(*number);
                    let repeated = repeated.expect("no execution is left out");
                    assert!(repeated <= INTERVAL, "{program}: {repeated} were repeated");
                } else {
                    assert_eq!(*number, printed.schedules[at - 1].0 + 1, "{program}");
                }
                let expected = &whole.schedules[*number as usize - 1].1;
                assert!(
                    order.is_some() || schedule == expected,
                    "{program}, {number}: {schedule} in place of {expected}"
                );
                last = *number;
            }
            if printed.killed {
                kills[means] += 1;
                early += usize::from(!kept);
                torn += usize::from(means == 1 && scratch.torn().len() > left);
                left = scratch.torn().len();
            }
            if printed.end.is_some() || last == total && !checkpoint.exists() {
                assert_eq!(last, total, "{program}");
                assert!(printed.end.is_none_or(|end| Some(end) == whole.end));
                assert!(
                    !checkpoint.exists() && scratch.torn().is_empty(),
                    "{program}: nothing is left"
                );
                break;
            }
        }
    }
    println!(
        "{program}{in_order}: {total} executions, killed {kills:?} times, {early} early, {torn} while writing"
    );
    assert!(
        early > 0 && torn > 0 && kills.iter().all(|&k| k > 5),
        "{kills:?}, {early}, {torn}"
    );
}

#[test]
fn a_process_under_c11_that_is_killed_loses_nothing() {
    nothing_is_lost("weak", None);
}

#[test]
fn a_process_under_c11_that_is_killed_loses_nothing_in_an_order() {
    for order in ORDERS {
        nothing_is_lost("weak", Some(order));
    }
}

#[test]
fn a_process_with_statics_that_is_killed_loses_nothing() {
    nothing_is_lost("statics", None);
}

#[test]
fn a_process_with_condition_variables_that_is_killed_loses_nothing() {
    nothing_is_lost("condvars", None);
}

#[test]
fn a_process_with_channels_that_is_killed_loses_nothing() {
    nothing_is_lost("channels", None);
}
