//! Which facts about an execution are in every form of the report?
//!
//! The verdict, the threads that wait, the operations that the failure hangs on, and the name of
//! the mistake. The text report has these lines above its table, JSON and the HTML page in `story`,
//! and the graph in its title. All forms use one list, so that no form says more than another one.

use std::fmt::Write;

use super::cycle;
use super::holders::{Holder, Way, held_before, holders};
use super::memory;
use super::old_values::OldValues;
use super::pattern;
use super::rounds;
use super::view::{View, at, behind, place, place_of, place_of_waiting, short};
use super::words::Names;
use crate::rt::event::Site;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Operation};
use crate::rt::event::verdict::{Blocked, Divergence, End, Pair, Reproduction};
use crate::rt::plural::counted;

/// The lines. If the failure is the user's panic, the panic stands in front of them.
pub(super) fn facts(view: &View<'_>, names: &Names<'_>) -> Vec<String> {
    let mut out = String::new();
    happened(&mut out, view, names);
    earlier(&mut out, view, names);
    hangs_on(&mut out, view, names);
    run_again(&mut out, view, names);
    // The patterns are those of sequential consistency, where a thread sees what came before.
    let patterns = match OldValues::of(view.trace).is_fresh() {
        true => [pattern::sentence(view, names), pattern::story(view, names)],
        false => [None, None],
    };
    let patterns = patterns.into_iter().flatten();
    let lines = out.lines().map(str::to_owned);
    lines
        .chain(patterns.map(|line| format!("  {line}")))
        .collect()
}

/// The most panics before the failure that are shown.
const EARLIER_SHOWN_MAX: usize = 4;

/// How the execution ended, and which threads wait.
fn happened(out: &mut String, view: &View<'_>, names: &Names<'_>) {
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
fn earlier(out: &mut String, view: &View<'_>, names: &Names<'_>) {
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
fn hangs_on(out: &mut String, view: &View<'_>, names: &Names<'_>) {
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
            OpKind::TryLock => writeln!(
                out,
                "  it fails because {old} fails by the past, after {newer}; with the newest state it passes"
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
fn run_again(out: &mut String, view: &View<'_>, names: &Names<'_>) {
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
