//! Are the orderings that the report of a race asks for enough, and none of them asked for in vain?
//!
//! The program is run again on the schedule of the report, with stronger orderings of the operations that are named. A
//! schedule names the steps of threads and says nothing of their orderings, so it fits.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::{Builder, Failure, FailureKind, Memory};
use serde_json::Value;

use super::places;
use super::program::{Op, Program};
use super::run;

/// One of the orderings that a program gives: the thread, the step, and which of the two if there are two.
type Given = (usize, usize, usize);

/// How many reports named what.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claims {
    /// One pair that would do.
    pub one: u64,
    /// Several of which each would do.
    pub any: u64,
    /// Several that would do only together.
    pub together: u64,
}

/// Checks what the report of a failure of this program says of orderings, if it is a race.
pub fn check(program: &Program, failure: &Failure, claims: &mut Claims) -> Result<(), String> {
    if failure.kind() != FailureKind::DataRace {
        return Ok(());
    }
    let execution = read(failure);
    let race = &execution["outcome"]["data_race"];
    let named = race["weak"].as_object().map(|_| &race["weak"]);
    let more = race["weaker"].as_array().expect("a list");
    let pairs: Vec<[Given; 2]> = (named.into_iter().chain(more))
        .map(|pair| ["first", "second"].map(|side| given(program, &execution, &pair[side])))
        .collect();
    let together = race["weak_together"] == true;
    let expected = accesses(&execution);
    let races_with = |program: &Program| {
        Ok::<_, String>(race_again(program, failure)?.as_ref() == Some(&expected))
    };
    let strong = |pairs: &[[Given; 2]]| {
        let given: BTreeSet<Given> = pairs.iter().flatten().copied().collect();
        with(program, |it, order| match given.contains(&it) {
            true => SeqCst,
            false => order,
        })
    };
    if pairs.is_empty() {
        let strongest = with(program, |_, _| SeqCst);
        // A free that nothing orders behind a use may be told where it comes first, on another schedule.
        if !races_with(&strongest)? && !is_wrong(&strongest) {
            return Err(format!(
                "no ordering is named, and it hangs on them\n{failure}"
            ));
        }
        return Ok(());
    }
    for pair in named.into_iter().chain(more) {
        if !is_seen(&execution, pair) {
            return Err(format!(
                "a read is named that did not see the write\n{failure}"
            ));
        }
    }
    let counted = match (together, pairs.len()) {
        (true, _) => &mut claims.together,
        (false, 1) => &mut claims.one,
        (false, _) => &mut claims.any,
    };
    *counted += 1;
    let lines = lines(failure);
    for (line, pair) in lines.iter().zip(named.into_iter().chain(more)) {
        if !has_fences(&execution, pair, line) {
            return Err(format!("a fence is named that is not there\n{failure}"));
        }
    }
    let told: Vec<[Ordering; 2]> = lines.iter().map(|line| least(line)).collect();
    let ways: Vec<Program> = match (together, told.len() == pairs.len()) {
        // By the text, what is said is the least.
        (false, _) => (pairs.iter().enumerate())
            .map(|(at, pair)| match told.get(at) {
                Some(least) => at_least(program, &[*pair], &[*least]),
                None => strong(&[*pair]),
            })
            .collect(),
        (true, true) => vec![at_least(program, &pairs, &told)],
        (true, false) => vec![strong(&pairs)],
    };
    for (at, way) in ways.iter().enumerate() {
        if races_with(way)? {
            return Err(format!("what is asked for is not enough ({at})\n{failure}"));
        }
    }
    for left_out in (0..pairs.len()).filter(|_| together) {
        let mut others = pairs.clone();
        let pair = others.remove(left_out);
        // Where two threads are the same code, to change the one is to change the other.
        let changed: Vec<&Given> = others.iter().flatten().collect();
        if pair.iter().all(|given| changed.contains(&given)) {
            continue;
        }
        // Of several uses that race with the same free, another one may be told.
        let race = race_again(&strong(&others), failure)?;
        if race.is_none_or(|[_, second]| second != expected[1]) {
            return Err(format!("not all is needed ({left_out})\n{failure}"));
        }
    }
    Ok(())
}

fn read(failure: &Failure) -> Value {
    serde_json::from_str(&failure.json()).expect("JSON")
}

/// Whether the second event of a pair has read what the first one wrote, or what others made of that.
fn is_seen(execution: &Value, pair: &Value) -> bool {
    let from = |number: &Value| {
        let number = number.as_u64().expect("a number") as usize;
        &execution["events"][number - 1]["reads_from"]
    };
    let mut sources = std::iter::successors(Some(from(&pair["second"])), |it| {
        (!it.is_null()).then(|| from(it))
    });
    sources.any(|it| *it == pair["first"])
}

/// The ordering that the event with this number has from the program.
fn given(program: &Program, execution: &Value, number: &Value) -> Given {
    let number = number.as_u64().expect("a number") as usize;
    let event = &execution["events"][number - 1];
    let place = &event["place"];
    let [line, column] = ["line", "column"].map(|it| place[it].as_u64().expect("a number"));
    let (thread, step) = places::step_at(line, column).expect("the place of a step");
    // A look of `fetch_update` has the second one, too.
    let second = match event["operation"].as_str() {
        Some("compare_exchange") => event["succeeded"] == false,
        Some("load") => matches!(program.threads[thread][step].op, Op::Update(..)),
        _ => false,
    };
    (thread, step, usize::from(second))
}

/// An access: by whom, after how many of its events, and what.
type Accessed = (Value, Value, Value);

/// The two accesses of the race.
fn accesses(execution: &Value) -> [Accessed; 2] {
    ["first", "second"].map(|side| {
        let access = &execution["outcome"]["data_race"][side];
        let thread = access["thread"].as_u64().expect("a number") as usize;
        let thread = execution["threads"][thread]["path"].clone();
        (thread, access["after"].clone(), access["effect"].clone())
    })
}

/// Whether the program has a race or a use after free on any schedule.
fn is_wrong(program: &Program) -> bool {
    let mut builder = Builder::new();
    builder.memory = Memory::Sc;
    builder.progress = Some(false);
    builder.simplify = 0;
    builder.timeout_bound = 100;
    let body = program.clone();
    let found = builder.explore(move || run::run(&body)).err();
    let kinds = [FailureKind::DataRace, FailureKind::UseAfterFree];
    found.is_some_and(|failure| kinds.contains(&failure.kind()))
}

/// The two accesses of the race, if there is one, when the program is run on the schedule of this failure.
fn race_again(program: &Program, failure: &Failure) -> Result<Option<[Accessed; 2]>, String> {
    let mut builder = Builder::new();
    builder.progress = Some(false);
    builder.simplify = 0;
    builder.timeout_bound = 100;
    builder.replay = Some(failure.schedule().to_owned());
    let body = program.clone();
    let Err(again) = builder.explore(move || run::run(&body)) else {
        return Ok(None);
    };
    match again.kind() {
        FailureKind::DataRace => Ok(Some(accesses(&read(&again)))),
        FailureKind::UseAfterFree | FailureKind::Deadlock => Ok(None),
        _ => Err(again.to_string()),
    }
}

/// Whether the fences are there that by this line of the report make up for the orderings of this pair.
fn has_fences(execution: &Value, pair: &Value, line: &str) -> bool {
    let list = |name: &str| execution[name].as_array().expect("a list");
    let [writer, reader] =
        ["first", "second"].map(|side| pair[side].as_u64().expect("a number") as usize);
    let is_there = |number: usize, is_behind: bool, ordering: &str| {
        let such = [ordering, "AcqRel", "SeqCst"];
        list("fences").iter().any(|fence| {
            let after = fence["after"].as_u64().expect("a number") as usize;
            fence["thread"] == list("events")[number - 1]["thread"]
                && (after >= number) == is_behind
                && such.iter().any(|such| fence["ordering"] == **such)
        })
    };
    (!line.contains(" behind a fence that releases") || is_there(writer, false, "Release"))
        && (!line.contains(" before a fence that acquires") || is_there(reader, true, "Acquire"))
}

/// The lines of the report that ask for orderings, one for each pair that it names.
fn lines(failure: &Failure) -> Vec<String> {
    let text = failure.to_string();
    let text = text.split("\n\nfailure ").next().unwrap_or_default();
    let lines = text.lines().filter(|line| line.contains("at least "));
    lines.map(str::to_owned).collect()
}

/// The least orderings of the two sides that this line asks for.
fn least(line: &str) -> [Ordering; 2] {
    let (_, least) = line.split_once("at least ").expect("it asks for some");
    let mut words = least.split_whitespace();
    match (words.next(), words.next()) {
        (Some("AcqRel"), _) => [AcqRel; 2],
        (Some("Release"), Some("and")) => [Release, Acquire],
        (Some("Release"), _) => [Release, Relaxed],
        (Some("Acquire"), _) => [Relaxed, Acquire],
        other => unreachable!("{other:?}"),
    }
}

/// The program with these pairs at least so strong.
fn at_least(program: &Program, pairs: &[[Given; 2]], least: &[[Ordering; 2]]) -> Program {
    let all = pairs.iter().flatten().zip(least.iter().flatten());
    let all: Vec<(Given, Ordering)> = all.map(|(&given, &least)| (given, least)).collect();
    with(program, |it, order| {
        let asked = all.iter().filter(|(given, _)| *given == it);
        asked.fold(order, |order, &(_, least)| match (order, least) {
            (_, Relaxed) => order,
            (Relaxed, least) => least,
            (order, least) if order == least => order,
            (SeqCst, _) => SeqCst,
            _ => AcqRel,
        })
    })
}

/// The program with other orderings of its operations on atomics.
fn with(program: &Program, change: impl Fn(Given, Ordering) -> Ordering) -> Program {
    let mut program = program.clone();
    let sources: Vec<usize> = (0..program.threads.len())
        .map(|thread| program.same_as(thread))
        .collect();
    for (steps, thread) in program.threads.iter_mut().zip(sources) {
        for (at, step) in steps.iter_mut().enumerate() {
            let change = |which, order: &mut Ordering| *order = change((thread, at, which), *order);
            match &mut step.op {
                Op::Load(_, order)
                | Op::Store(_, _, order)
                | Op::Add(_, order)
                | Op::Swap(_, _, order)
                | Op::Publish(order)
                | Op::Follow(order, _)
                | Op::Take(order)
                | Op::Show(order)
                | Op::Look(order, _) => change(0, order),
                Op::Exchange(_, _, [set, look]) | Op::Update(_, [set, look]) => {
                    change(0, set);
                    change(1, look);
                }
                _ => {}
            }
        }
    }
    program
}
