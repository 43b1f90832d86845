//! How fast are `dpor` and other checkers on the same programs?
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml [filter]` runs each program on each
//! checker, in a process of its own with a limit of two seconds, the checkers three times in turns, and prints
//! one line for the fastest of each: how many executions, nanoseconds per step, executions per second, the time
//! to a verdict, the time until the checker has come back with it, and the most memory that was resident. The
//! ratios are to `dpor`'s own line: how many times as long a step takes, how many times as fast `dpor` runs
//! executions, and how many times as long it is to the verdict.
//!
//! A verdict with a `!` is that something fails: the assertion, or what a checker takes for a deadlock.
//! (Shuttle lets `park` return for no reason, which `handoff` does not expect.) An assertion's is known when it
//! fails for the first time; until it is *told*, `dpor` looks for the simplest execution that fails, and writes
//! its report.
//!
//! A checker that samples has no verdict on a program without a bug; `random` is `dpor`'s own sampler.
//! Loom explores what weak memory orderings allow, so it has more executions, and no more than four
//! threads beside the main one.

mod measure;
mod programs;

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use measure::{End, Measured, execution, measure};
use programs::{NAMES, programs};

mod on_dpor {
    super::programs!(dpor);
}
mod on_loom {
    super::programs!(loom);
}
mod on_shuttle {
    super::programs!(shuttle);
}

/// How long an exploration may take.
const LIMIT: Duration = Duration::from_secs(2);

/// How many executions a sampler makes; the limit of time holds for it too.
const SAMPLES: usize = 30_000;

/// How often each is measured. A machine that others use too is slower now and then; in turns, each checker
/// has the same chance of a good moment.
const TURNS: usize = 3;

/// The most steps of an execution; some programs are long.
const STEPS_MAX: usize = 1_000_000;

/// A checker, and how it measures the program of this name.
type Peer = (&'static str, fn(&'static str) -> Measured);

const PEERS: [Peer; 5] = [
    ("dpor", |name| dpor(name, dpor::Algorithm::Optimal)),
    ("random", |name| dpor(name, dpor::Algorithm::Random)),
    ("loom", loom),
    ("shuttle", |name| {
        shuttle(name, || shuttle::scheduler::RandomScheduler::new(SAMPLES))
    }),
    ("shuttle pct", |name| {
        shuttle(name, || shuttle::scheduler::PctScheduler::new(2, SAMPLES))
    }),
];

fn dpor(name: &'static str, algorithm: dpor::Algorithm) -> Measured {
    let sampled = algorithm == dpor::Algorithm::Random;
    measure(|| {
        let mut builder = dpor::Builder::new();
        builder.algorithm = algorithm;
        builder.iterations = SAMPLES as u64;
        builder.max_branches = STEPS_MAX;
        builder.max_duration = Some(LIMIT);
        builder.progress = Some(false);
        let report = builder.check(move || {
            execution();
            on_dpor::program(name);
        });
        report.complete && !sampled
    })
}

fn loom(name: &'static str) -> Measured {
    measure(|| {
        let mut builder = loom::model::Builder::new();
        builder.max_branches = STEPS_MAX;
        builder.max_duration = Some(LIMIT);
        // It looks at its limits only so often.
        builder.checkpoint_interval = 10;
        let start = Instant::now();
        builder.check(move || {
            execution();
            on_loom::program(name);
        });
        start.elapsed() < LIMIT
    })
}

fn shuttle<S: shuttle::scheduler::Scheduler + 'static>(
    name: &'static str,
    scheduler: impl Fn() -> S,
) -> Measured {
    measure(|| {
        let mut config = shuttle::Config::new();
        config.max_steps = shuttle::MaxSteps::None;
        config.max_time = Some(LIMIT);
        config.failure_persistence = shuttle::FailurePersistence::None;
        shuttle::Runner::new(scheduler(), config).run(move || {
            execution();
            on_shuttle::program(name);
        });
        false
    })
}

/// The most memory that has been resident in this process, in megabytes, where the system tells.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) / 1024.0
}

/// What a child process tells its parent.
struct Line {
    measured: Measured,
    memory: f64,
}

fn child(peer: &str, name: &str) {
    let peer = PEERS.iter().find(|(known, _)| *known == peer);
    let name = NAMES.iter().find(|known| **known == name);
    let (Some((_, run)), Some(name)) = (peer, name) else {
        panic!("no such measurement");
    };
    let m = run(name);
    let end = match m.end {
        End::Verdict => "verdict",
        End::Bug => "bug",
        End::Limit => "limit",
    };
    println!(
        "\nmeasured {} {} {} {} {end} {}",
        m.executions,
        m.steps,
        m.seconds,
        m.known,
        memory()
    );
}

/// Measures in a child process; `None` if it does not come to an end, one way or the other.
fn measured(peer: &str, name: &str) -> Option<Line> {
    let program = std::env::current_exe().expect("a program has a path");
    let mut child = Command::new(program)
        .args(["--child", peer, name])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a program can be started");
    let start = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if start.elapsed() > 5 * LIMIT {
            child.kill().ok()?;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("measured "))?;
    let words: Vec<&str> = line.split(' ').collect();
    let [executions, steps, seconds, known, end, memory] = words[..] else {
        return None;
    };
    Some(Line {
        measured: Measured {
            executions: executions.parse().ok()?,
            steps: steps.parse().ok()?,
            seconds: seconds.parse().ok()?,
            known: known.parse().ok()?,
            end: match end {
                "verdict" => End::Verdict,
                "bug" => End::Bug,
                _ => End::Limit,
            },
        },
        memory: memory.parse().ok()?,
    })
}

/// For each checker the fastest of its measurements.
fn in_turns(name: &str) -> [Option<Line>; PEERS.len()] {
    let mut fastest = PEERS.map(|_| None);
    for _ in 0..TURNS {
        for ((peer, _), fastest) in PEERS.iter().zip(&mut fastest) {
            let beats = |a: &Line, b: &Line| a.measured.beats(&b.measured);
            if let Some(line) = measured(peer, name)
                && fastest.as_ref().is_none_or(|old| beats(&line, old))
            {
                *fastest = Some(line);
            }
        }
    }
    fastest
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, peer, name] = &arguments[..]
        && first == "--child"
    {
        return child(peer, name);
    }
    println!(
        "{:<26}{:<12}{:>11}{:>9}{:>11}{:>12}{:>11}{:>7}  {:>7}{:>8}{:>9}",
        "program",
        "checker",
        "executions",
        "ns/step",
        "exec/s",
        "verdict (s)",
        "told (s)",
        "MB",
        "step",
        "rate",
        "verdict"
    );
    for name in NAMES {
        if arguments
            .first()
            .is_some_and(|f| !name.contains(f.as_str()))
        {
            continue;
        }
        let mut own: Option<Measured> = None;
        for ((peer, _), fastest) in PEERS.iter().zip(in_turns(name)) {
            let Some(Line {
                measured: m,
                memory,
            }) = fastest
            else {
                println!("{name:<26}{peer:<12}{:>11}", "fails");
                continue;
            };
            let step = |m: &Measured| m.seconds * 1e9 / m.steps as f64;
            let rate = |m: &Measured| m.executions as f64 / m.seconds;
            let (verdict, told) = match m.end {
                End::Limit => ("-".to_owned(), "-".to_owned()),
                End::Verdict => (format!("{:.6}", m.known), format!("{:.6}", m.seconds)),
                End::Bug => (format!("{:.6}!", m.known), format!("{:.6}", m.seconds)),
            };
            print!(
                "{name:<26}{peer:<12}{:>11}{:>9.1}{:>11.0}{verdict:>12}{told:>11}{memory:>7.1}",
                m.executions,
                step(&m),
                rate(&m),
            );
            match &own {
                None => println!(),
                Some(own) => {
                    let slower = match m.end {
                        End::Limit => "-".to_owned(),
                        _ => format!("{:.1}", m.known / own.known),
                    };
                    println!(
                        "  {:>7.1}{:>8.1}{slower:>9}",
                        step(&m) / step(own),
                        rate(own) / rate(&m)
                    );
                }
            }
            if *peer == "dpor" {
                own = Some(m);
            }
        }
    }
}
