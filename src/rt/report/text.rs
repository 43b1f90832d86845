//! How is a failed execution told in a terminal?
//!
//! The report has, in this order: the user's panic, unchanged; a sentence with the verdict; the
//! waiting threads, with the object that each waits for and its holder; a table with a column per
//! thread; the schedule, and the command that replays it. Everything comes from the recorded
//! events.

use std::borrow::Cow;
use std::fmt::Write;

use super::cycle;
use super::facts::facts;
use super::holders::{Holder, Way, held_before, holders};
use super::memory;
use super::places::{Callers, FileLine, Life};
use super::rounds;
use super::table;
use super::unseen::{self, Unseen, unseen};
use super::words::Names;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Operation};
use crate::rt::event::said::Said;
use crate::rt::event::verdict;
use crate::rt::event::verdict::{Blocked, Divergence, End, Pair, Reproduction};
use crate::rt::event::{Event, Site, Trace, foreign};
use crate::rt::object::machine::{Limits, Machine};
use crate::rt::plural::counted;

/// The most bytes of a path that is shown whole.
const PATH_MAX: usize = 40;

/// The most panics before the failure that are shown.
const EARLIER_SHOWN_MAX: usize = 4;

/// The facts that a report is made from.
pub(crate) struct View<'a> {
    pub(crate) end: &'a End,
    pub(crate) trace: &'a Trace,
    pub(crate) machine: &'a Machine,
    /// The names that the program gave to threads.
    pub(crate) given: &'a [(ThreadId, String)],
    /// The panic's text, and its file, line and column.
    pub(crate) panic: Option<Panic<'a>>,
    /// The panics before the failure.
    pub(crate) earlier: &'a [verdict::Panic],
    /// The facts about the block that the failure is about.
    pub(crate) life: &'a Life,
    /// The callers of operations with a site outside the program.
    pub(crate) callers: &'a Callers,
    /// The output of the program's log.
    pub(crate) log: &'a [Said],
    /// The pair of operations that the failure hangs on.
    pub(crate) pair: Option<&'a Pair>,
    /// The result of running the schedule again.
    pub(crate) again: Reproduction,
    /// Whether this execution is a simpler one than the execution that was found.
    pub(crate) simplified: bool,
    /// The number of executions, this one included.
    pub(crate) executions: u64,
    pub(crate) schedule: &'a str,
    /// The name of the test, if the OS thread has it.
    pub(crate) test: Option<String>,
    /// The command that replays the schedule.
    pub(crate) replay: &'a str,
}

/// A panic's text, and its file, line and column.
pub(crate) type Panic<'a> = (&'a str, Option<(&'a str, u32, u32)>);

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

pub(super) fn place(site: Site) -> String {
    match foreign(site.file()) {
        Some(somewhere) => somewhere.to_owned(),
        None => format!("{}:{}", short(site.file()), site.line()),
    }
}

/// The place of an event.
pub(super) fn place_of(view: &View<'_>, event: &Event) -> String {
    match view.callers.of_event(event) {
        Some(caller) => in_short(caller),
        None => place(event.site),
    }
}

/// The place where a thread waits.
pub(super) fn place_of_waiting(view: &View<'_>, waiting: &Blocked) -> String {
    match view.callers.of_waiting(waiting, view.trace) {
        Some(caller) => in_short(caller),
        None => place(waiting.site),
    }
}

fn in_short(FileLine { file, line }: &FileLine) -> String {
    format!("{}:{line}", short(file))
}

/// The place of an action, as words behind the action.
pub(super) fn at(site: Site) -> String {
    behind(place(site))
}

/// A place, as words behind an action.
pub(super) fn behind(place: String) -> String {
    match place.starts_with("in ") {
        true => place,
        false => format!("at {place}"),
    }
}

/// A path as the report shows it: whole, so that a terminal and an editor find the file; a long
/// path from the folder of its package on. Without that folder a place in another crate,
/// `src/lib.rs`, would look like one in the tested crate.
pub(super) fn short(file: &str) -> &str {
    if file.len() <= PATH_MAX {
        return file;
    }
    // Cargo's own folder for downloaded crates is called `src`, too.
    let source = file
        .rfind("/src/")
        .filter(|&at| !file[..at].ends_with("/registry"));
    let folder = source.or_else(|| file.rfind('/'));
    let before = folder.and_then(|at| file[..at].rfind('/'));
    before.map_or(file, |at| &file[at + 1..])
}

/// How the execution ended, and which threads wait.
pub(super) fn verdict(out: &mut String, view: &View<'_>, names: &Names<'_>) {
    let events = counted(view.trace.len() as u64, "event");
    let when = format!("(execution {}, after {events})", view.executions);
    match view.end {
        End::Panicked { thread, stuck } => {
            let _ = writeln!(out, "panic: {} panicked {when}", names.thread(*thread));
            let raised_again = match view.panic {
                None => "  by `resume_unwind`, which says nothing and has no place\n",
                Some((_, None)) => "  by `resume_unwind`, which has no place\n",
                Some((_, Some(_))) => "",
            };
            out.push_str(raised_again);
            if !stuck.is_empty() {
                out.push_str("  while it unwound, nothing could go on any more:\n");
            }
        }
        End::Deadlock(stuck) => {
            // A thread that waits for the end of such a thread is not part of the circle.
            let joins = |it: &&Blocked| matches!(it.operation.kind, OpKind::Join { .. });
            let joining = stuck.iter().filter(joins).count();
            let (knot, joining) = match stuck.len() - joining {
                0 => (joining, 0),
                knot => (knot, joining),
            };
            let plural = |count| match count {
                1 => "1 thread waits".to_owned(),
                many => format!("{many} threads wait"),
            };
            let rest = match joining {
                0 => String::new(),
                some => format!(", and {} for the end of one that does", plural(some)),
            };
            let _ = writeln!(out, "deadlock: {} for ever{rest} {when}", plural(knot));
        }
        End::Livelock { rounds, .. } => {
            let _ = writeln!(
                out,
                "livelock: nothing has changed for {rounds} rounds in a row, and nothing else can \
                 run {when}"
            );
        }
        End::TooManyEvents { limit, hints } => {
            let hints = match hints {
                0 => String::new(),
                some => format!(" ({some} of them hints, which count with loom's signatures)"),
            };
            let last = view.trace.events().last();
            let last = last.map_or_else(String::new, |event| {
                format!(", the last {}", behind(place_of(view, event)))
            });
            let _ = writeln!(
                out,
                "too many events: an execution has more than {limit}{hints}{last} {when}"
            );
            let _ = writeln!(out, "  {}", rounds::too_many(view, names));
        }
        End::TooManyThreads { limit } => {
            let _ = writeln!(
                out,
                "too many threads: more than {limit} are alive {when}\n  raise \
                 `Builder::max_threads` (DPOR_MAX_THREADS)"
            );
        }
        End::NoStack { thread, bytes } => {
            let _ = writeln!(
                out,
                "too little memory: the system has none for the {bytes} bytes of the stack of {} {when}\n  lower \
                 `Builder::stack_size` (DPOR_STACK_SIZE, in bytes), or the thread's own, or have fewer threads at a time",
                names.thread(*thread)
            );
        }
        End::NoClocks { bytes } => {
            let _ = writeln!(
                out,
                "too little memory: the system has none for the {bytes} bytes of the clocks of {} threads {when}\n  let the \
                 process have more (`ulimit -v`), or have fewer threads in one execution, or fewer events",
                view.trace.threads()
            );
        }
        End::StackOverflow { thread } => {
            let _ = writeln!(
                out,
                "stack overflow: {} used more stack than it has {when}\n  raise \
                 `Builder::stack_size` = {} (DPOR_STACK_SIZE, in bytes), or the thread's own",
                names.thread(*thread),
                view.machine.limits.stack_size
            );
        }
        End::MemoryFault {
            thread,
            address,
            is_constant,
        } => {
            let did = memory::fault(*address, *is_constant);
            let _ = writeln!(out, "memory fault: {} {did} {when}", names.thread(*thread));
            if let Some(place) = &view.life.faulted {
                let _ = writeln!(out, "  {place}");
            }
        }
        End::Stale { misfit } => {
            let _ = writeln!(out, "the schedule does not fit the program: {misfit}");
        }
        End::NotDeterministic(divergence) => divergent(out, names, divergence),
        End::Leaked(leaked) => memory::leaked(out, view, names, leaked, &when),
        End::Outside(outside) => memory::outside(out, names, outside, &when),
        End::BadMemory(bad) => memory::bad_memory(out, view, names, bad, &when),
        End::DataRace(race) => memory::data_race(out, view, names, race, &when),
        End::Complete | End::Pruned(_) => {}
    }
    waiting(out, view, names);
    for line in rounds::spinning(view, names) {
        let _ = writeln!(out, "  {line}");
    }
    if let Some(cycle) = cycle::sentence(view.end.stuck(), view, names) {
        let _ = writeln!(out, "  in a circle: {cycle}");
    } else if !view.end.stuck().is_empty() && !view.machine.live().contains(&ThreadId::MAIN) {
        let _ = writeln!(
            out,
            "  the closure has returned; threads that serve in the background for ever: `Builder::detached_may_block`"
        );
    }
}

/// The panics before the failure that were caught: other threads often wait for an action that a
/// panicked thread did not reach.
pub(super) fn earlier(out: &mut String, view: &View<'_>, names: &Names<'_>) {
    let (told, more) = view
        .earlier
        .split_at(view.earlier.len().min(EARLIER_SHOWN_MAX));
    for panic in told {
        let thread = names.thread(panic.thread);
        let at = panic.location.as_ref();
        let at = at.map_or_else(String::new, |(file, line, _)| {
            format!(" at {}:{line}", short(file))
        });
        let text = panic.text.lines().next().unwrap_or_default();
        let _ = writeln!(
            out,
            "  before that {thread} panicked{at}, after event {}: {text}",
            panic.after
        );
    }
    if !more.is_empty() {
        let _ = writeln!(out, "  and {} more", counted(more.len() as u64, "panic"));
    }
}

/// From this number on, threads that wait for the same object at the same place are shown by the
/// first and the last of them.
const WAITING_ALIKE_MIN: usize = 8;

/// The threads that wait for ever: the object, the place and the holder of each wait.
fn waiting(out: &mut String, view: &View<'_>, names: &Names<'_>) {
    // The events of a thread that unwinds are not shown, so the holders and the callers of that
    // time are unknown.
    let (stuck, is_shown) = match view.end {
        End::Panicked { stuck, .. } => (stuck.as_slice(), false),
        end => (end.stuck(), true),
    };
    let told = stuck
        .iter()
        .map(|it| [names.thread(it.thread), names.waiting(&it.operation)]);
    let told: Vec<[String; 2]> = told.collect();
    let widest = |part: usize| told.iter().map(|it| it[part].chars().count()).max();
    let name_width = widest(0).unwrap_or_default().max(10);
    let what_width = widest(1).unwrap_or_default();
    let lines = stuck.iter().zip(&told).map(|(stuck, [thread, what])| {
        let (at, holder) = match is_shown {
            true => (
                place_of_waiting(view, stuck),
                held(view, names, &stuck.operation),
            ),
            false => (place(stuck.site), String::new()),
        };
        let at = behind(at);
        (thread, format!("{what:<what_width$}  {at}{holder}"))
    });
    let lines: Vec<(&String, String)> = lines.collect();
    let line = |out: &mut String, (thread, rest): &(&String, String)| {
        let _ = writeln!(out, "  {thread:<name_width$} {rest}");
    };
    for alike in lines.chunk_by(|(_, one), (_, next)| one == next) {
        match alike {
            [first, between @ .., last] if alike.len() >= WAITING_ALIKE_MIN => {
                line(out, first);
                let _ = writeln!(out, "        ({} more like this one)", between.len());
                line(out, last);
            }
            few => few.iter().for_each(|it| line(out, it)),
        }
    }
}

/// The holder of the object that this operation needs, and since when.
fn held(view: &View<'_>, names: &Names<'_>, operation: &Operation) -> String {
    let holders = holders(view.trace, view.machine, operation);
    let Some(Holder { way, .. }) = holders.first() else {
        return match held_before(view.machine, operation.object) {
            true => {
                "   held by a guard from before the model, or one that was forgotten before the lock was moved"
                    .to_owned()
            }
            false => String::new(),
        };
    };
    let (before, behind) = match way {
        Way::Holds => ("held by ", ""),
        Way::Reads => ("read-held by ", ""),
        Way::Writes => ("write-held by ", ""),
        Way::Initialises => ("", " has been initialising it"),
    };
    let told = holders.iter().map(|holder| {
        let name = names.thread(holder.thread);
        let since = holder.since.map_or_else(String::new, |at| {
            let place = place_of(view, &view.trace.events()[at]);
            format!(" since event {} ({place})", at + 1)
        });
        format!("{name}{behind}{since}")
    });
    format!("   {before}{}", told.collect::<Vec<_>>().join(", "))
}

/// The two operations that the failure hangs on, as far as they were found.
pub(super) fn hangs_on(out: &mut String, view: &View<'_>, names: &Names<'_>) {
    if view.simplified {
        let _ = writeln!(
            out,
            "  below is the simplest execution with this failure that a short search has found"
        );
    }
    let Some(Pair {
        first,
        second,
        is_old,
        ..
    }) = view.pair
    else {
        return;
    };
    let told = |position: u32| {
        let event = view.trace.at(position);
        format!(
            "{}'s \"{}\" (event {})",
            names.thread(event.thread),
            names.happened(event),
            position + 1
        )
    };
    // An earlier step of a loop does not mean that the loop looks earlier.
    let spins = |position: &u32| {
        let event = view.trace.at(*position);
        matches!(event.operation.kind, OpKind::Wait { .. })
    };
    let may_fail_both_ways =
        matches!(view.end, End::DataRace(_)) || spins(first) || second.as_ref().is_ok_and(spins);
    if let (true, Ok(second)) = (*is_old, second) {
        let (old, newer) = (told(*second), told(*first));
        let _ = match view.trace.at(*second).operation.kind {
            OpKind::Store { .. } => writeln!(
                out,
                "  it fails because {old} goes before {newer}; as the newest store it passes"
            ),
            _ => writeln!(
                out,
                "  it fails because {old} reads an older value than that of {newer}; with the newest value it passes"
            ),
        };
        return;
    }
    let second = match second {
        Ok(position) => told(*position),
        Err(pending) => format!(
            "{}'s \"{}\" ({})",
            names.thread(pending.thread),
            names.announced(&pending.operation),
            place_of_waiting(view, pending)
        ),
    };
    let first = told(*first);
    // Whether two accesses are ordered depends on more than which of them comes first. The search
    // has seen only that one order does not fail.
    let _ = match may_fail_both_ways {
        true => writeln!(
            out,
            "  it may fail because {first} comes before {second}: the test passed in the one order that was tried with the second before the first"
        ),
        false => writeln!(
            out,
            "  it fails because {first} comes before {second}; the other way round it passes"
        ),
    };
}

fn divergent(out: &mut String, names: &Names<'_>, divergence: &Divergence) {
    let side = |it: &Option<(Operation, Site)>| match it {
        Some((operation, site)) => {
            format!("\"{}\" {}", names.announced(operation), at(site))
        }
        None => "nothing, or an operation that cannot happen yet".to_owned(),
    };
    let thread = names.thread(divergence.thread);
    let now = side(&divergence.found);
    // Only the effect on others is known of an event that was planned.
    let told = match (&divergence.expected, divergence.outcome_differs) {
        (None, true) => format!(
            "is {now} now, and was another operation before, or one that came out otherwise"
        ),
        (None, false) => format!("could happen before and is {now} now"),
        (expected, differs) => {
            let otherwise = if differs {
                ", with another outcome"
            } else {
                ""
            };
            format!("was {} before and is {now} now{otherwise}", side(expected))
        }
    };
    let _ = writeln!(
        out,
        "the test is not deterministic: with the same schedule, event {}, by {thread}, {told}",
        divergence.position + 1,
    );
    let _ = writeln!(out, "{CAUSES}");
}

/// Causes other than its schedule that may decide an execution.
const CAUSES: &str = "  usual causes: time, randomness (and the order in a `HashMap`), addresses as values or as hash keys, a static or a `thread_local!` of std's \
     that keeps its value, a data race on plain memory, a primitive of std, of another crate or in assembly that dpor does not see, an `Arc` of std's whose last owner \
     drops what is modelled";

/// Reports that the schedule alone does not decide the execution, if that was seen.
pub(super) fn run_again(out: &mut String, view: &View<'_>, names: &Names<'_>) {
    let _ = match view.again {
        Reproduction::Same => return,
        Reproduction::Passes => writeln!(
            out,
            "  the schedule does not decide alone: run again from the same one, the test passes, and so may the \
             replay below"
        ),
        Reproduction::HadPassed => writeln!(
            out,
            "  the schedule does not decide alone: an earlier execution had the same events and went on here, and so may the \
             replay below"
        ),
        Reproduction::Fails(otherwise) => writeln!(
            out,
            "  the schedule does not decide alone: run again from the same one, the test ends otherwise \
             ({otherwise}), and so may the replay below"
        ),
        Reproduction::Differs { position } => {
            let event = view.trace.at(position);
            writeln!(
                out,
                "  the schedule does not decide alone: run again from the same one, the test fails too, but {}'s \
                 \"{}\" (event {}) comes out otherwise",
                names.thread(event.thread),
                names.happened(event),
                position + 1
            )
        }
    };
    let _ = writeln!(
        out,
        "{CAUSES}\n  what keeps a value is better made inside of the closure, or of dpor's types, and what is drawn \
         better fixed"
    );
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_long_path_is_told_from_the_folder_of_its_package() {
        let registry = "/home/me/.cargo/registry/src/index.crates.io-0123456789abcdef";
        for (path, told) in [
            ("queue-1.0.0/lib.rs", "queue-1.0.0/lib.rs"),
            ("queue-1.0.0/src/lib.rs", "queue-1.0.0/src/lib.rs"),
            (
                "queue-1.0.0/src/sync/once.rs",
                "queue-1.0.0/src/sync/once.rs",
            ),
        ] {
            assert_eq!(short(&format!("{registry}/{path}")), told);
        }
        // If no part of the path marks the beginning of the package, the last two parts are shown.
        assert_eq!(
            short("/home/me/a/long/way/to/the/package/tests/loom.rs"),
            "tests/loom.rs"
        );
        assert_eq!(short("src/lib.rs"), "src/lib.rs");
    }
}
