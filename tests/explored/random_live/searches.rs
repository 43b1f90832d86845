//! Do other searches see outcomes of the full one, and does a failure come again from its schedule?
//!
//! A bound must leave out nothing but whole outcomes, and nothing at all if it is large enough; a sample, or an exploration
//! in parts, must not see anything else. One of the outcomes is then made a failure.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use dpor::{Algorithm, Builder, Failure, FailureKind, Report};

use super::priced::{self, Price};
use super::program::Program;
use super::run;
use super::traces;
use super::world::Outcome;

/// More executions than this are too many for a program that is explored a dozen times.
const EXECUTIONS_MAX: usize = 150;

/// More interleavings than this are too many to be counted.
const INTERLEAVINGS_OF_EVENTS_MAX: usize = 1_000;

/// Bounds below this are compared with the interpreter.
const BOUNDS: usize = 3;

/// No program here has so many preemptions, switches or delays.
const ENOUGH: usize = 1000;

/// How many executions are drawn by a sample.
const DRAWN: u64 = 20;

/// How many executions there are in a part of an exploration.
const PART: usize = 3;

/// What came of a search.
struct Searched {
    result: Result<Report, Box<Failure>>,
    outcomes: BTreeSet<Outcome>,
    /// The outcome of the execution that was run last.
    last: Option<Outcome>,
    /// Executions begun.
    begun: usize,
}

impl Searched {
    /// The outcomes of executions that came to their end: what is given up leaves one of its first part.
    fn finished(&self) -> BTreeSet<Outcome> {
        let all = self.outcomes.iter();
        all.filter(|outcome| outcome.1).cloned().collect()
    }
}

/// Searches the executions of `program`, where this `outcome` is a failure if it is given.
fn search(
    program: &Program,
    failing: Option<&Outcome>,
    set: impl FnOnce(&mut Builder),
) -> Searched {
    let mut builder = Builder::new();
    builder.thorough = dpor::Thorough::Off;
    super::set_for(program, &mut builder);
    builder.max_permutations = Some(super::INTERLEAVINGS_MAX);
    set(&mut builder);
    let seen = Arc::new(Mutex::new((BTreeSet::new(), None)));
    let begun = Arc::new(AtomicUsize::new(0));
    let (all, runs, body) = (seen.clone(), begun.clone(), program.clone());
    let failing = failing.cloned();
    let result = builder.explore(move || {
        runs.fetch_add(1, Relaxed);
        run::run(&body, |outcome| {
            let mut all = all.lock().unwrap();
            all.0.insert(outcome.clone());
            dpor::outcome(&outcome);
            all.1 = Some(outcome);
        });
        let last = all.lock().unwrap().1.clone();
        assert!(last.is_none() || last != failing, "the outcome");
    });
    let (outcomes, last) = std::mem::take(&mut *seen.lock().unwrap());
    Searched {
        result,
        outcomes,
        last,
        begun: begun.load(Relaxed),
    }
}

/// What is wrong with other searches than the full one; `None` if that is too long.
pub fn verdict(program: &Program) -> Option<Result<(), String>> {
    let full = search(program, None, |builder| {
        builder.max_failures = usize::MAX;
        builder.simplify = 0;
    });
    if full.begun > EXECUTIONS_MAX {
        return None;
    }
    let verdict = bounds(program, &full)
        .and_then(|()| samples(program, &full))
        .and_then(|()| parts(program, &full))
        .and_then(|()| failure(program, &full));
    Some(verdict)
}

/// Whether all that `found` saw is what `full` saw, too.
fn is_part(found: &Searched, full: &Searched, how: &str) -> Result<(), String> {
    let finished = found.finished();
    let extra: Vec<_> = finished.difference(&full.outcomes).collect();
    match extra.is_empty() {
        true => Ok(()),
        false => Err(format!("{how} sees {extra:?}")),
    }
}

fn bounds(program: &Program, full: &Searched) -> Result<(), String> {
    type Bound = fn(&mut Builder) -> &mut Option<usize>;
    let all: [(Price, Bound); 3] = [
        (Price::Preemptions, |it| &mut it.preemption_bound),
        (Price::Switches, |it| &mut it.switch_bound),
        (Price::Delays, |it| &mut it.delay_bound),
    ];
    for (price, bound) in all {
        let mut fewer = BTreeSet::new();
        let expected = priced::outcomes(program, price, BOUNDS, super::STATES_MAX);
        for most in (0..BOUNDS).chain([ENOUGH]) {
            let within = search(program, None, |builder| {
                builder.max_failures = usize::MAX;
                builder.simplify = 0;
                builder.algorithm = Algorithm::Bounded;
                *bound(builder) = Some(most);
            });
            let how = format!("a search within {most} {price:?}");
            is_part(&within, full, &how)?;
            // What is given up counts, and may be too much.
            if within.begun >= super::INTERLEAVINGS_MAX {
                break;
            }
            let turns = search(program, None, |builder| {
                builder.max_failures = usize::MAX;
                builder.simplify = 0;
                *bound(builder) = Some(most);
            });
            in_turns(&turns, &within, full).map_err(|error| format!("{how}, in turns, {error}"))?;
            let outcomes = within.finished();
            if let Some(expected) = expected.as_ref().and_then(|all| all.get(most))
                // What is given up may be run to its end.
                && !outcomes.is_superset(expected)
            {
                let missing: Vec<_> = expected.difference(&outcomes).collect();
                return Err(format!("{how} misses {missing:?}"));
            }
            if let Ok(report) = &within.result
                && let Some(traces) =
                    traces::count(program, Some((price, most)), INTERLEAVINGS_OF_EVENTS_MAX)
                && traces as u64 != report.executions
            {
                let executions = report.executions;
                return Err(format!(
                    "{how} has {executions} executions of {traces} traces"
                ));
            }
            let lost: Vec<_> = fewer.difference(&outcomes).collect();
            if !lost.is_empty() {
                return Err(format!("{how} does not see {lost:?} any more"));
            }
            if most == ENOUGH {
                let missing: Vec<_> = full.outcomes.difference(&within.outcomes).collect();
                if !missing.is_empty() {
                    return Err(format!("{how} does not see {missing:?}"));
                }
                if let (Ok(within), Ok(full)) = (&within.result, &full.result)
                    && within.executions != full.executions
                {
                    let [some, all] = [within, full].map(|report| report.executions);
                    return Err(format!("{how} has {some} executions of {all}"));
                }
            }
            fewer = outcomes;
        }
    }
    Ok(())
}

/// Whether a search within a bound that takes `turns` with one without the bound says what one of
/// the two says.
fn in_turns(turns: &Searched, within: &Searched, full: &Searched) -> Result<(), String> {
    let (turns, within, all) = match (&turns.result, &within.result, &full.result) {
        (Ok(turns), Ok(within), Ok(all)) => (turns, within, Some(all)),
        // Beyond the bound there is a deadlock.
        (Ok(turns), Ok(within), Err(_)) => (turns, within, None),
        (Err(turns), Err(within), _) => {
            let [some, others] = [turns, within].map(|it| it.others().len());
            return match (turns.schedule(), some) == (within.schedule(), others) {
                true => Ok(()),
                false => Err(format!("fails otherwise:\n{turns}\nand not\n{within}")),
            };
        }
        (turns, within, _) => return Err(format!("comes to {turns:?} and not to {within:?}")),
    };
    let said = |report: &Report| {
        let outcomes = report.outcomes.clone();
        (report.executions, report.verdict, outcomes)
    };
    let is_one = said(turns) == said(within) || all.is_some_and(|all| said(turns) == said(all));
    match is_one {
        true => Ok(()),
        false => Err(format!("comes to {turns:?}")),
    }
}

fn samples(program: &Program, full: &Searched) -> Result<(), String> {
    for algorithm in [Algorithm::Random, Algorithm::Pct, Algorithm::Pos] {
        let drawn = search(program, None, |builder| {
            builder.algorithm = algorithm;
            builder.iterations = DRAWN;
            builder.seed = Some(full.begun as u64);
            builder.max_failures = usize::MAX;
            builder.simplify = 0;
        });
        is_part(&drawn, full, &format!("{algorithm:?}"))?;
    }
    Ok(())
}

/// Where an exploration is kept between two parts, which is gone at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn parts(program: &Program, full: &Searched) -> Result<(), String> {
    let Ok(whole) = &full.result else {
        return Ok(());
    };
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let (process, nth) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
    let file = Scratch(std::env::temp_dir().join(format!("dpor-{process}-searches-{nth}")));
    let mut outcomes = BTreeSet::new();
    loop {
        let part = search(program, None, |builder| {
            builder.checkpoint_file = Some(file.0.clone());
            builder.max_permutations = Some(PART);
        });
        outcomes.extend(part.outcomes);
        let report = part.result.map_err(|failure| failure.to_string())?;
        // Or it would never end.
        let is_too_much = report.executions > whole.executions;
        if is_too_much || report.complete || !file.0.exists() {
            let [some, all] = [&report, whole].map(|report| (report.executions, &report.verdict));
            return match (&outcomes, some) == (&full.outcomes, all) {
                true => Ok(()),
                false => Err(format!(
                    "in parts there are {outcomes:?} and {some:?}, and not {:?} and {all:?}",
                    full.outcomes
                )),
            };
        }
    }
}

/// Makes an outcome a failure, which must be found, and must come again.
fn failure(program: &Program, full: &Searched) -> Result<(), String> {
    let middle = full.outcomes.iter().nth(full.outcomes.len() / 2);
    let target = middle.expect("there is an outcome");
    let found = search(program, Some(target), |_| {});
    let Err(failure) = found.result else {
        return match target.1 {
            true => Err(format!("nobody finds {target:?}")),
            false => Ok(()),
        };
    };
    let schedule = failure.schedule().to_owned();
    let again = search(program, Some(target), |builder| {
        builder.replay = Some(schedule.clone());
        // Or other executions come after it.
        builder.simplify = 0;
    });
    let Err(other) = again.result else {
        return Err(format!("there is no failure any more:\n{failure}"));
    };
    let events = |failure: &Failure| {
        let events = failure.events().iter();
        // Data behind a lock is looked at by a run of its own, which `simplify` = 0 leaves out.
        let what = |event: &dpor::Event| match event.what.split_once(" (") {
            Some((what, _)) if what.contains("lock") => what.to_owned(),
            _ => event.what.clone(),
        };
        let events =
            events.map(|event| format!("{} {} {}", event.thread, what(event), event.place));
        events.collect::<Vec<_>>()
    };
    if (other.kind(), events(&other)) != (failure.kind(), events(&failure)) {
        return Err(format!("it is another failure:\n{failure}\nthen\n{other}"));
    }
    if !failure.json().contains("\"again\":null") && !failure.json().contains("\"again\": null") {
        return Err(format!("its schedule does not decide:\n{failure}"));
    }
    let last = again.last.as_ref().expect("the test was run");
    let is_told = match failure.kind() {
        FailureKind::Panic => last == target,
        // Who is blocked is known by what has been seen.
        _ => !last.1 && full.outcomes.contains(last),
    };
    match is_told {
        true => Ok(()),
        false => Err(format!("it comes to {last:?}:\n{failure}")),
    }
}
