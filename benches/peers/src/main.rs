//! How fast are `dpor` and other checkers on the same programs, and which goals does it reach?
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml [filter]` runs each program on
//! each checker, in a process of its own with a limit of two seconds, or of `LIMIT` seconds. The
//! checkers take turns, five times each. One line is printed for the fastest run of each: the
//! number of executions, nanoseconds per step, executions per second, the time to a verdict, the
//! time until the checker has returned it, and the peak of the resident memory. The ratios are to
//! `dpor`'s own line: how many times as long a step takes, how many times as fast `dpor` runs
//! executions, and how many times as long the checker takes to the verdict. Without a filter the
//! [`goals`] follow.
//!
//! A verdict with a `!` is a failure: of an assertion, or a deadlock in the checker's view.
//! (Shuttle lets `park` return spuriously, which `handoff` does not expect.) The verdict of an
//! assertion is known when the assertion fails for the first time. Until it is *told*, `dpor`
//! searches for the simplest execution that fails, and writes its report.
//!
//! A checker that samples has no verdict on a program without a bug; `random` is `dpor`'s own
//! sampler. Loom explores behaviours of weak memory orderings, so it has more executions; and it
//! allows at most four threads beside the main thread.
//!
//! With `--features interweave` the checker `interweave` runs the programs of [`tasks`]. It
//! requires Rust 1.96, or `--ignore-rust-version`. It has no time limit, and is stopped after ten
//! seconds.

mod child;
mod goals;
mod measure;
#[cfg(feature = "interweave")]
mod on_interweave;
mod programs;
mod tasks;

use std::time::{Duration, Instant};

use child::Line;
use measure::{End, Measured, execution, measure};

mod on_dpor {
    crate::programs::programs!(dpor);
}
mod on_loom {
    crate::programs::programs!(loom);
}
mod on_shuttle {
    crate::programs::programs!(shuttle);
}

/// The time limit of an exploration.
fn limit() -> Duration {
    let seconds = std::env::var("LIMIT").ok();
    let seconds = seconds.map_or(2, |text| {
        text.parse().expect("LIMIT is no number of seconds")
    });
    Duration::from_secs(seconds)
}

/// Number of executions that a sampler draws; the time limit applies to it, too.
const SAMPLES: usize = 30_000;

/// The most steps of an execution; some programs are long.
const STEPS_MAX: usize = 1_000_000;

/// A checker.
struct Peer {
    name: &'static str,
    /// Measures the program of this name.
    measure: fn(&'static str) -> Measured,
    /// The names of the programs that it runs.
    runs: fn() -> Vec<&'static str>,
}

const PEERS: &[Peer] = &[
    Peer {
        name: "dpor",
        measure: |name| dpor(name, dpor::Algorithm::Optimal),
        runs: names,
    },
    Peer {
        name: "random",
        measure: |name| dpor(name, dpor::Algorithm::Random),
        runs: shared,
    },
    Peer {
        name: "loom",
        measure: loom,
        runs: shared,
    },
    Peer {
        name: "shuttle",
        measure: |name| shuttle(name, || shuttle::scheduler::RandomScheduler::new(SAMPLES)),
        runs: shared,
    },
    Peer {
        name: "shuttle pct",
        measure: |name| shuttle(name, || shuttle::scheduler::PctScheduler::new(2, SAMPLES)),
        runs: shared,
    },
    #[cfg(feature = "interweave")]
    Peer {
        name: "interweave",
        measure: on_interweave::explore,
        runs: || tasks::NAMES.to_vec(),
    },
];

/// The programs that several checkers run.
fn shared() -> Vec<&'static str> {
    [&programs::NAMES[..], &tasks::NAMES].concat()
}

/// All programs.
fn names() -> Vec<&'static str> {
    [shared(), programs::ALONE.to_vec()].concat()
}

fn dpor(name: &'static str, algorithm: dpor::Algorithm) -> Measured {
    let sampled = algorithm == dpor::Algorithm::Random;
    measure(|| {
        let mut builder = dpor::Builder::new();
        builder.algorithm = algorithm;
        builder.iterations = SAMPLES as u64;
        builder.max_branches = STEPS_MAX;
        builder.max_duration = Some(limit());
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
        builder.max_duration = Some(limit());
        // Loom checks its limits only once in this number of executions.
        builder.checkpoint_interval = 10;
        let start = Instant::now();
        builder.check(move || {
            execution();
            on_loom::program(name);
        });
        start.elapsed() < limit()
    })
}

fn shuttle<S: shuttle::scheduler::Scheduler + 'static>(
    name: &'static str,
    scheduler: impl Fn() -> S,
) -> Measured {
    measure(|| {
        let mut config = shuttle::Config::new();
        config.max_steps = shuttle::MaxSteps::None;
        config.max_time = Some(limit());
        config.failure_persistence = shuttle::FailurePersistence::None;
        shuttle::Runner::new(scheduler(), config).run(move || {
            execution();
            on_shuttle::program(name);
        });
        false
    })
}

/// Returns nanoseconds per step.
fn step(m: &Measured) -> f64 {
    m.seconds * 1e9 / m.steps as f64
}

/// Returns executions per second.
fn rate(m: &Measured) -> f64 {
    m.executions as f64 / m.seconds
}

/// Prints the measurement of a program, and its ratios to `dpor`'s `own` line.
fn print(name: &str, peer: &str, line: &Line, own: Option<&Line>) {
    let Line {
        measured: m,
        memory,
    } = line;
    let (verdict, told) = match m.end {
        End::Limit => ("-".to_owned(), "-".to_owned()),
        End::Verdict => (format!("{:.6}", m.known), format!("{:.6}", m.seconds)),
        End::Bug => (format!("{:.6}!", m.known), format!("{:.6}", m.seconds)),
    };
    print!(
        "{name:<26}{peer:<12}{:>11}{:>9.1}{:>11.0}{verdict:>12}{told:>11}{memory:>7.1}",
        m.executions,
        step(m),
        rate(m),
    );
    let Some(Line { measured: own, .. }) = own else {
        return println!();
    };
    let slower = match m.end {
        End::Limit => "-".to_owned(),
        _ => format!("{:.1}", m.known / own.known),
    };
    println!(
        "  {:>7.1}{:>8.1}{slower:>9}",
        step(m) / step(own),
        rate(own) / rate(m)
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, peer, name] = &arguments[..]
        && first == "--child"
    {
        return child::run(peer, name);
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
    let filter = arguments.first().map_or("", String::as_str);
    let mut lines = goals::Lines::default();
    for name in names().into_iter().filter(|name| name.contains(filter)) {
        for (peer, fastest) in child::in_turns(name) {
            match fastest {
                Ok(line) => {
                    print(name, peer, &line, lines.get(name, "dpor"));
                    lines.add(name, peer, line);
                }
                Err(why) => println!("{name:<26}{peer:<12}{why:>11}"),
            }
        }
    }
    if filter.is_empty() {
        println!();
        goals::print(&lines);
    }
}
