//! Which goals are reached?
//!
//! The goals were set before the first measurement. Ratios are between lines of the same run. The
//! times of the tools for C (Nidhugg, GenMC) were measured once, on another machine, so for the
//! programs of that comparison the goals are in seconds. The checkers that ran on both machines
//! show how much longer this machine takes ([`slower`]). If a goal in seconds is missed here, its
//! line says what the measured time would have been on the other machine.

use crate::child::Line;
use crate::measure::{End, Measured};
use crate::{rate, step};

/// The measurements, by program and checker.
#[derive(Default)]
pub(crate) struct Lines(Vec<(&'static str, &'static str, Line)>);

impl Lines {
    pub(crate) fn add(&mut self, name: &'static str, peer: &'static str, line: Line) {
        self.0.push((name, peer, line));
    }

    pub(crate) fn get(&self, name: &str, peer: &str) -> Option<&Line> {
        let mut lines = self.0.iter();
        let (_, _, line) = lines.find(|(n, p, _)| *n == name && *p == peer)?;
        Some(line)
    }

    fn measured(&self, name: &str, peer: &str) -> Option<&Measured> {
        self.get(name, peer).map(|line| &line.measured)
    }

    /// Returns the least value among these checkers, if there is one.
    fn least(&self, name: &str, peers: &[&str], of: fn(&Measured) -> f64) -> Option<f64> {
        let measured = peers.iter().filter_map(|peer| self.measured(name, peer));
        measured.map(of).min_by(f64::total_cmp)
    }
}

/// Time of an execution of four empty threads with other checkers, in microseconds, on the machine
/// for which the goals in seconds were set.
const THERE: [(&str, f64); 2] = [("loom", 58.0), ("shuttle", 5.8)];

/// Returns how many times as long this machine takes as the machine of the goals in seconds, by the
/// checker with the least difference.
fn slower(lines: &Lines) -> Option<f64> {
    let times = THERE.map(|(peer, there)| {
        let here = lines.measured("empty(4)", peer)?;
        Some(1e6 / rate(here) / there)
    });
    times.into_iter().flatten().min_by(f64::total_cmp)
}

/// The goal for a number.
enum Wanted {
    AtMost(f64),
    AtLeast(f64),
}
use Wanted::{AtLeast, AtMost};

/// Prints a line, if there is a measurement.
fn goal(what: &str, measured: Option<f64>, wanted: Wanted, unit: &str) {
    if let Some(measured) = measured {
        println!("{}", line(what, measured, wanted, unit));
    }
}

/// [`goal`] for a time, if this machine takes `slower` times as long as the machine for which the
/// goal was set.
fn time_goal(what: &str, measured: Option<f64>, most: f64, unit: &str, slower: Option<f64>) {
    let Some(measured) = measured else {
        return;
    };
    let there = slower.map(|slower| measured / slower);
    let line = line(what, measured, AtMost(most), unit);
    match there.filter(|there| measured > most && *there <= most) {
        Some(there) => println!("{line} here, {there:.3} there"),
        None => println!("{line}"),
    }
}

/// Returns the line with the measurement and whether it reaches the goal.
fn line(what: &str, measured: f64, wanted: Wanted, unit: &str) -> String {
    let (is_reached, sign, wanted) = match wanted {
        AtMost(most) => (measured <= most, "<=", most),
        AtLeast(least) => (measured >= least, ">=", least),
    };
    let verdict = if is_reached { "reached" } else { "NOT reached" };
    format!("{what:<66}{measured:>10.3} {sign} {wanted:<6} {unit:<6}{verdict}")
}

/// Prints each goal with its measurement.
pub(crate) fn print(lines: &Lines) {
    let own = |name| lines.measured(name, "dpor");
    for name in ["independent(2, 10000)", "switch(2, 20000)"] {
        let theirs = lines.least(name, &["loom", "shuttle", "shuttle pct"], step);
        let ratio = own(name).zip(theirs).map(|(own, them)| step(own) / them);
        let what = format!("a step of {name}, of the best peer's");
        goal(&what, ratio, AtMost(0.2), "");
    }
    for name in [
        "readers(3)",
        "readers(8)",
        "readers(13)",
        "lastzero(3)",
        "lastzero(10)",
        "counter(2)",
        "counter(3)",
        "spsc(2)",
        "spsc(4)",
    ] {
        for (peer, least) in [("loom", 20.0), ("shuttle", 3.0)] {
            let ratio = own(name).zip(lines.measured(name, peer));
            let ratio = ratio.map(|(own, theirs)| rate(own) / rate(theirs));
            let what = format!("executions per second of {name}, of {peer}'s");
            goal(&what, ratio, AtLeast(least), "times");
        }
    }
    for name in crate::programs::NAMES {
        let verdict = |m: &&Measured| m.end == End::Verdict;
        let theirs = lines.measured(name, "loom").filter(verdict);
        let ratio = own(name)
            .zip(theirs)
            .map(|(own, theirs)| theirs.known / own.known);
        let has_three = ["empty(", "iriw", "(3)"].iter().any(|it| name.contains(it));
        let least = if has_three && !name.contains("asserted") {
            100.0
        } else {
            1.0
        };
        let what = format!("loom's time to a verdict on {name}, of dpor's");
        goal(&what, ratio, AtLeast(least), "times");
    }
    for name in crate::tasks::NAMES {
        let ratio = own(name).zip(lines.measured(name, "interweave"));
        let ratio = ratio.map(|(own, theirs)| theirs.known / own.known);
        let what = format!("interweave's time to a verdict on {name}, of dpor's");
        goal(&what, ratio, AtLeast(1.0), "times");
    }
    let slower = slower(lines);
    if let Some(slower) = slower {
        println!(
            "{:<66}{slower:>10.3}",
            "time that others take here, of what they took where these were set"
        );
    }
    for (name, most) in [
        ("lastzero(15)", 1.5),
        ("readers(13)", 0.06),
        ("indexer(15)", 0.4),
        ("filesystem(22)", 0.25),
        ("length(2, 10000)", 0.05),
    ] {
        let what = format!("{name} to its verdict");
        let own = own(name);
        // A run that reached its limit has no time to a verdict, on this machine or the other.
        let slower = slower.filter(|_| own.is_some_and(|m| m.end != End::Limit));
        time_goal(&what, own.map(|m| m.known), most, "s", slower);
    }
    let memory = lines.get("lastzero(15)", "dpor").map(|line| line.memory);
    goal("lastzero(15), memory", memory, AtMost(64.0), "MB");
    let empty = lines.measured("empty(4)", "random");
    let micros = empty.map(|m| 1e6 / rate(m));
    time_goal(
        "an execution of four empty threads",
        micros,
        1.5,
        "us",
        slower,
    );
    for (short, long) in [
        ("length(2, 100)", "length(2, 10000)"),
        ("handoff(100)", "handoff(10000)"),
    ] {
        let ratio = own(short).zip(own(long));
        let ratio = ratio.map(|(short, long)| step(long) / step(short));
        let what = format!("a step of {long}, of one of {short}");
        goal(&what, ratio, AtMost(1.5), "times");
    }
}
