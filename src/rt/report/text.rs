//! How is a failed execution told in a terminal?
//!
//! The report has, in this order: the user's panic, unchanged; a sentence with the verdict; the
//! waiting threads, with the object that each waits for and its holder; a table with a column per
//! thread; the schedule, and the command that replays it. Everything comes from the recorded
//! events.

use std::borrow::Cow;
use std::fmt::Write;

use super::facts::facts;
use super::table;
use super::unseen::{self, Unseen, unseen};
use super::view::{View, place_of};
use super::words::Names;
use crate::rt::event::id::ThreadId;
use crate::rt::event::verdict::End;
use crate::rt::event::{Event, Site};
use crate::rt::object::machine::Limits;

/// The events: the thread, the words and the place of each.
pub(crate) fn events(view: &View<'_>) -> Vec<(String, String, Site)> {
    let names = Names::new(view.end, view.trace, view.machine, view.given, view.callers);
    let events = view.trace.events().iter();
    events
        .map(|event| {
            (
                names.thread(event.thread),
                names.happened(event),
                event.site,
            )
        })
        .collect()
}

/// The report.
pub(crate) fn render(view: &View<'_>) -> String {
    let names = Names::new(view.end, view.trace, view.machine, view.given, view.callers);
    let mut out = panicked(view, &names);
    for fact in facts(view, &names) {
        let _ = writeln!(out, "{fact}");
    }
    table::write(&mut out, view, &names);
    unseen::write(&mut out, &old_events(view, &names));
    paths(&mut out, view, &names);
    let _ = write!(out, "schedule   {}", shown(view.schedule));
    if is_long(view.schedule) {
        return out;
    }
    // The user supplied this schedule, so the user knows how to replay it, and why a replay fails.
    if let End::Stale { .. } = view.end {
        return out;
    }
    let _ = write!(out, "\nreplay     {}\n{}", view.replay, stub(view));
    out
}

/// The events that read old values, and why they may.
pub(super) fn old_events(view: &View<'_>, names: &Names<'_>) -> Vec<Unseen> {
    let place = |event: &Event| place_of(view, event);
    unseen(view.trace, view.machine, names, &place)
}

/// The schedule as a test.
pub(crate) fn stub(view: &View<'_>) -> String {
    let mut out = String::new();
    let name = view
        .test
        .as_deref()
        .and_then(|test| test.rsplit("::").next());
    let name = match name {
        Some("main") | None => "the_failure".to_owned(),
        Some(test) => format!("{test}_again"),
    };
    let _ = writeln!(out, "as a test  #[test]\n           fn {name}() {{");
    let schedule = view.schedule;
    let settings = settings(&view.machine.limits);
    let lines = match settings.is_empty() {
        true => vec![format!(
            "dpor::replay(\"{schedule}\", || {{ /* the closure of the model */ }});"
        )],
        // Without these settings the schedule would not fit, or would not fail.
        false => {
            let builder = ["let mut builder = dpor::Builder::new();".to_owned()].into_iter();
            builder
                .chain(settings)
                .chain([
                    format!("builder.replay = Some(\"{schedule}\".to_owned());"),
                    "builder.check(|| { /* the closure of the model */ });".to_owned(),
                ])
                .collect()
        }
    };
    for line in lines {
        let _ = writeln!(out, "               {line}");
    }
    out.push_str("           }");
    out
}

/// The user's panic, if that is the failure.
fn panicked(view: &View<'_>, names: &Names<'_>) -> String {
    let (End::Panicked { thread, .. }, Some((text, location))) = (view.end, view.panic) else {
        return String::new();
    };
    let at = location.map_or_else(
        || "an unknown place".to_owned(),
        |(file, line, column)| format!("{file}:{line}:{column}"),
    );
    let thread = names.thread(*thread);
    format!("thread '{thread}' panicked at {at}:\n{text}\n\n")
}

/// The settings that decide which executions there are, where they differ from the defaults. The
/// schedule itself names spurious wake-ups and failures.
fn settings(limits: &Limits) -> Vec<String> {
    let Limits {
        spin_bound,
        timeout_bound,
        catches_panics,
        detached_may_block,
        max_rounds,
        ..
    } = *limits;
    let default = Limits::default();
    let mut lines = Vec::new();
    let mut line = |differs, name: &str, value: &dyn std::fmt::Debug| {
        if differs {
            lines.push(format!("builder.{name} = {value:?};"));
        }
    };
    line(catches_panics, "catch_panics", &catches_panics);
    line(
        detached_may_block,
        "detached_may_block",
        &detached_may_block,
    );
    line(max_rounds != default.max_rounds, "max_rounds", &max_rounds);
    line(spin_bound != default.spin_bound, "spin_bound", &spin_bound);
    line(
        timeout_bound != default.timeout_bound,
        "timeout_bound",
        &timeout_bound,
    );
    lines
}

/// A schedule of more bytes is too long to read, and no shell takes a word of 128 KiB. So a long
/// schedule is replayed from a file.
const LONG: usize = 8_000;

/// Whether only the beginning of a schedule is printed.
pub(crate) fn is_long(schedule: &str) -> bool {
    schedule.len() > LONG
}

/// A schedule, or the beginning of a long one.
pub(crate) fn shown(schedule: &str) -> Cow<'_, str> {
    if !is_long(schedule) {
        return Cow::Borrowed(schedule);
    }
    let beginning: String = schedule.chars().take(LONG / 40).collect();
    let beginning = beginning.rsplit_once(' ').map_or("", |it| it.0);
    let bytes = schedule.len();
    Cow::Owned(format!("{beginning} ... ({bytes} bytes in all)"))
}

/// The threads that the schedule means, for threads with names of their own.
fn paths(out: &mut String, view: &View<'_>, names: &Names<'_>) {
    let threads = (0..view.trace.threads() as u32).map(ThreadId);
    let told = threads.filter_map(|thread| {
        let (name, path) = (names.thread(thread), view.machine.names.path(thread));
        (name != path).then(|| format!("{path} is {name}"))
    });
    let told: Vec<String> = told.collect();
    if !told.is_empty() {
        let _ = writeln!(out, "threads    {}", told.join(", "));
    }
}
