//! How is a wrong use of plain memory reported?
//!
//! With both accesses and their places, the life of the block, and the orderings that would have
//! prevented the failure, where they are known.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use super::view::{View, at, behind, place, place_of};
use super::words::Names;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Operation};
use crate::rt::event::ordering::{acquires, releases};
use crate::rt::event::verdict::{
    Access, BadMemory, Block, DataRace, Effect, Gone, Lasts, Leaked, Made, Outside, TooWeak, Weak,
    Wrong,
};
use crate::rt::event::{Event, Site, foreign};
use crate::rt::relation::happens_before::HappensBefore;

/// The most pairs of operations that are named as too weak. A longer list is hard to read.
const WEAK_MAX: usize = 4;

/// Two accesses that nothing orders.
pub(super) fn data_race(
    out: &mut String,
    view: &View<'_>,
    names: &Names<'_>,
    race: &DataRace,
    when: &str,
) {
    let DataRace { first, second, .. } = race;
    let (one, other) = (names.thread(first.thread), names.thread(second.thread));
    let gives_up = match second.effect {
        Effect::Free => Some("frees the block"),
        Effect::End => Some("ends with the variable on its stack"),
        _ => None,
    };
    if let Some(gives_up) = gives_up {
        let used = match event_of(view, first) {
            Some(event) => format!("{one}'s {}", names.announced(&event.operation)),
            None if first.effect == Effect::Make => format!("the making of it by {one}"),
            None => match names.memory() {
                Some(memory) => format!("a {} of {memory} by {one}", verb(first)),
                None => format!("a {} by {one}", verb(first)),
            },
        };
        let not_so = if race.counted {
            format!("no reference keeps it until {used}")
        } else {
            format!("nothing orders {used} before that")
        };
        let _ = writeln!(out, "data race: {other} {gives_up}, and {not_so} {when}");
    } else if first.effect == Effect::Make {
        let what = names.memory().unwrap_or("the memory");
        let _ = writeln!(
            out,
            "data race: {other} uses {what}, and nothing orders that behind the making of it by {one} {when}"
        );
    } else {
        let what = names.memory().unwrap_or("the same memory");
        let _ = writeln!(
            out,
            "data race: {one} and {other} access {what}, and nothing orders the two {when}"
        );
    }
    let mut lines = Vec::new();
    for access in [first, second] {
        let somewhere = match (access.effect, &view.life.freed) {
            (Effect::Free, Some(known)) => format!("at {known}"),
            (Effect::Free, None) | (Effect::End, _) => {
                after(view, names, access.thread, access.after)
            }
            (Effect::Make, _) if race.block.is_none() => "a variable on its stack".to_owned(),
            (Effect::Make, _) => match &view.life.allocated {
                Some(known) => format!("at {known}"),
                None => after(view, names, access.thread, access.after),
            },
            (Effect::Read | Effect::Write, _) => {
                let last = access.after.checked_sub(1).map(|n| (access.thread, n));
                let since = last.and_then(|(thread, n)| position(view, thread, n));
                let since = match since {
                    Some(at) => format!("after its event {}", at + 1),
                    None => "at its beginning".to_owned(),
                };
                let lasts = match race.lasts {
                    _ if !std::ptr::eq(access, first) => String::new(),
                    Lasts::OnAndOn => ", and goes on".to_owned(),
                    Lasts::Until(events) => {
                        let last = events.checked_sub(1).filter(|_| events > access.after);
                        let until = last.and_then(|last| position(view, access.thread, last));
                        until.map_or_else(String::new, |at| {
                            format!(" until after its event {}", at + 1)
                        })
                    }
                };
                format!("{}, {since}{lasts}", at(access.site))
            }
            _ => match event_of(view, access) {
                Some(event) => behind(place_of(view, event)),
                None => at(access.site),
            },
        };
        let did = match event_of(view, access) {
            Some(event) => match order(event) {
                Some(order) => format!("{} ({order:?})", names.happened(event)),
                None => names.happened(event),
            },
            None if access.effect == Effect::Make && race.block.is_none() => "make".to_owned(),
            None => verb(access).to_owned(),
        };
        lines.push((names.thread(access.thread), did, somewhere));
    }
    let longest = |width: usize, text: &str| width.max(text.chars().count());
    let name = lines
        .iter()
        .fold(10, |width, (name, ..)| longest(width, name));
    let act = lines
        .iter()
        .fold(6, |width, (_, did, _)| longest(width, did));
    for (thread, did, somewhere) in lines {
        let _ = writeln!(out, "  {thread:<name$} {did:<act$} {somewhere}");
    }
    if let Some(block) = &race.block
        && first.effect != Effect::Make
    {
        let _ = writeln!(out, "  {}", born(view, names, block));
    }
    if race.memory.std_local {
        let _ = writeln!(
            out,
            "  it is in a `thread_local!` of std's, of which all threads of a model have one together, because one thread of \
             the system runs them: `dpor::thread_local!` has one for each"
        );
        return;
    }
    let TooWeak { pairs, together } = &race.weak;
    match &pairs[..] {
        [] if came_unseen(view, race) => {
            let _ = writeln!(
                out,
                "  nothing that dpor sees has brought it to {other}: swap the import of what has, which may be a lock, a \
                 channel or a `OnceLock` of std's or of another crate"
            );
        }
        [] => {}
        [one] => {
            let (sides, orderings) = weak_pair(view, names, one);
            let _ = writeln!(
                out,
                "  {sides}: with at least {orderings} the two are ordered here"
            );
        }
        _ => {
            let _ = match together {
                true => writeln!(
                    out,
                    "  the two are ordered here with all of these together:"
                ),
                false => writeln!(out, "  the two are ordered here with any one of these:"),
            };
            for weak in pairs.iter().take(WEAK_MAX) {
                let (sides, orderings) = weak_pair(view, names, weak);
                let _ = writeln!(out, "    {sides}: at least {orderings}");
            }
            let more = pairs.len().saturating_sub(WEAK_MAX);
            if more > 0 {
                let _ = writeln!(out, "    and {more} more");
            }
        }
    }
}

/// The two sides of a pair that is too weak, and the orderings that they need.
fn weak_pair(view: &View<'_>, names: &Names<'_>, weak: &Weak) -> (String, &'static str) {
    let Weak {
        writer,
        reader,
        released,
        acquired,
    } = weak;
    let fails = |event: &Event| {
        matches!(event.operation.kind, OpKind::CompareExchange { .. }) && !event.outcome.succeeded()
    };
    let changes =
        |event: &Event| !matches!(event.operation.kind, OpKind::Load { .. }) && !fails(event);
    let side = |event: &Event| {
        format!(
            "{}'s {} at {} is {:?}{}",
            names.thread(event.thread),
            names.announced(&event.operation),
            place_of(view, event),
            order(event).unwrap_or(Ordering::SeqCst),
            if fails(event) { " where it fails" } else { "" }
        )
    };
    let is_weak = |event: &Event, enough: fn(Ordering) -> bool| !order(event).is_some_and(enough);
    let before = if *released && is_weak(writer, releases) {
        " behind a fence that releases"
    } else {
        ""
    };
    let behind = if *acquired && is_weak(reader, acquires) {
        " before a fence that acquires"
    } else {
        ""
    };
    let orderings = match (before.is_empty(), behind.is_empty()) {
        // If one operation of the program is both sides, and reads and writes by a single ordering,
        // it needs both orderings.
        (true, true) if writer.site == reader.site && changes(reader) => "AcqRel",
        (true, true) => "Release and Acquire",
        // A fence supplies the other ordering.
        (true, false) => "Release",
        (false, _) => "Acquire",
    };
    let sides = format!("{}{before}, and {}{behind}", side(writer), side(reader));
    (sides, orderings)
}

/// Whether the thread of the second access cannot have reached the block through an event. This
/// holds if, of the thread that made the block, no event since the allocation happens before the
/// access, by any dependence of operations.
fn came_unseen(view: &View<'_>, race: &DataRace) -> bool {
    let DataRace { first, second, .. } = race;
    let last = match second.after.checked_sub(1) {
        Some(index) => position(view, second.thread, index),
        // The thread has no event before the access, but it was spawned.
        None => (view.trace.spawn_of(second.thread)).map(|spawn| spawn as usize),
    };
    let Some(last) = last.filter(|_| first.effect == Effect::Make) else {
        return false;
    };
    let mut clocks = HappensBefore::default();
    clocks.extend(view.trace, &view.machine.sets);
    clocks.clock(last as u32, first.thread) <= first.after
}

fn verb(access: &Access) -> &'static str {
    match access.effect {
        Effect::Read => "read",
        Effect::Write => "write",
        Effect::AtomicRead | Effect::AtomicWrite => "operation",
        Effect::Free => "free",
        Effect::End => "end",
        Effect::Make => "allocate",
    }
}

/// The event of an atomic access.
fn event_of<'a>(view: &View<'a>, access: &Access) -> Option<&'a Event> {
    if !access.effect.is_atomic() {
        return None;
    }
    nth(view, access.thread, access.after)
}

fn nth<'a>(view: &View<'a>, thread: ThreadId, index: u32) -> Option<&'a Event> {
    position(view, thread, index).map(|at| &view.trace.events()[at])
}

/// The position of the thread's event with this index in the execution.
fn position(view: &View<'_>, thread: ThreadId, index: u32) -> Option<usize> {
    let mut events = view.trace.events().iter();
    events.position(|event| (event.thread, event.index) == (thread, index))
}

/// The memory ordering of an event; an operation on a lock, for instance, has none.
fn order(event: &Event) -> Option<Ordering> {
    event.operation.kind.ordering(event.outcome.succeeded())
}

/// The words for a use of a block that no event shows.
pub(super) fn used_raw(offset: usize) -> String {
    format!("use byte {offset} of it")
}

/// Memory that was used or freed when the program must not use or free it.
pub(super) fn bad_memory(
    out: &mut String,
    view: &View<'_>,
    names: &Names<'_>,
    bad: &BadMemory,
    when: &str,
) {
    let thread = names.thread(bad.thread);
    let what = |operation: &Operation| names.announced(operation);
    let (used, site) = match &bad.wrong {
        Wrong::Operation(operation, site) => (what(operation), Some(*site)),
        Wrong::Access(effect, site, _) => {
            let cell = names.memory().unwrap_or("a cell");
            let verb = if *effect == Effect::Write {
                "write"
            } else {
                "read"
            };
            (format!("{verb} {cell}"), Some(*site))
        }
        Wrong::Raw { offset } => (used_raw(*offset), None),
        _ => (String::new(), None),
    };
    let again = view.life.again.as_ref().or(view.life.freed.as_ref());
    let here = match (site, again) {
        (Some(site), _) => match &bad.wrong {
            Wrong::Operation(operation, _) if is_seen_from_its_stack(operation, site) => {
                match &view.life.again {
                    Some(known) => format!("at {known}"),
                    None => at(site),
                }
            }
            _ => at(site),
        },
        (None, _) if matches!(bad.wrong, Wrong::Raw { .. }) => match &view.life.faulted {
            Some(known) => known.clone(),
            None => after(view, names, bad.thread, bad.after),
        },
        (None, Some(known)) => format!("at {known}"),
        (None, None) => after(view, names, bad.thread, bad.after),
    };
    let (block, freed) = match bad.memory {
        Gone::Block(block, freed) => (block, freed),
        Gone::Stack(owner) => {
            let owner = names.thread(owner);
            let _ = writeln!(
                out,
                "use after the end of a thread: {thread} uses a variable on the stack of {owner}, which has ended {when}\n  \
                 {thread:<10} {used}   {here}"
            );
            return;
        }
    };
    let size = bytes(block.size);
    let (sentence, did) = match bad.wrong {
        Wrong::Operation(..) | Wrong::Access(..) | Wrong::Raw { .. } => (
            format!("use after free: {thread} uses what is in a block that has been freed"),
            used,
        ),
        Wrong::FreedTwice => (
            format!("double free: {thread} frees a block that has been freed before"),
            "free again".to_owned(),
        ),
        Wrong::Layout { size: given, align } => (
            format!(
                "free with a wrong layout: {thread} frees {size} aligned to {} as {} aligned to {align}",
                block.align,
                bytes(given)
            ),
            "free".to_owned(),
        ),
        Wrong::Inside { offset } => (
            format!(
                "free of no block: {thread} frees an address {offset} bytes inside a block of {size}"
            ),
            "free".to_owned(),
        ),
    };
    let _ = writeln!(out, "{sentence} {when}");
    let mut sides = vec![[thread, did, here]];
    if let Some((by, after_events)) = freed {
        let at = match &view.life.freed {
            Some(known) => format!("at {known}"),
            None => after(view, names, by, after_events),
        };
        sides.push([names.thread(by), "free".to_owned(), at]);
    }
    let widest = |part: usize| sides.iter().map(|side| side[part].chars().count()).max();
    let name_width = widest(0).unwrap_or_default().max(10);
    let did_width = widest(1).unwrap_or_default();
    for [thread, did, at] in &sides {
        let _ = writeln!(out, "  {thread:<name_width$} {did:<did_width$}   {at}");
    }
    let _ = writeln!(out, "  {}", born(view, names, &block));
    delayed(out, view, names);
}

/// The thread that was delayed, if one was, and since when: the table shows only that the thread
/// continues.
fn delayed(out: &mut String, view: &View<'_>, names: &Names<'_>) {
    let events = view.trace.events();
    let goes_on = |event: &Event| event.operation.kind == OpKind::Resume;
    let Some(at) = events.iter().position(goes_on) else {
        return;
    };
    let thread = events[at].thread;
    let before = events[..at]
        .iter()
        .rposition(|event| event.thread == thread);
    if let Some(before) = before {
        let _ = writeln!(
            out,
            "  {} is held up behind event {} and goes on with its code only in event {}, as a slow thread may",
            names.thread(thread),
            before + 1,
            at + 1
        );
    }
}

/// Whether the site of an operation differs from the place of its call, which only the stack shows:
/// the drop of a reference has the site at which the reference was made.
pub(super) fn is_seen_from_its_stack(operation: &Operation, site: Site) -> bool {
    let drops = matches!(
        operation.kind,
        OpKind::Release { .. }
            | OpKind::ReleaseWeak
            | OpKind::DropSender
            | OpKind::DropReceiver { .. }
    );
    drops || foreign(site.file()).is_some()
}

/// The words for the action of a thread that faulted at this address.
pub(super) fn fault(address: Option<usize>, is_constant: bool) -> String {
    /// No memory is mapped at lower addresses; the limit is above 0 so that a null pointer to a
    /// large object is recognised, too.
    const LOWEST: usize = 4096;
    match address {
        Some(0) => "used a null pointer".to_owned(),
        Some(offset @ 1..LOWEST) => format!("used memory {offset} bytes behind a null pointer"),
        Some(address) if is_constant => {
            format!("wrote to memory at {address:#x}, which may only be read")
        }
        Some(address) => format!("used memory at {address:#x}, where there is none"),
        None => "used memory at an address that is none".to_owned(),
    }
}

/// A thread outside the model has used an object of the model.
pub(super) fn outside(out: &mut String, names: &Names<'_>, outside: &Outside, when: &str) {
    let named = outside.object.and_then(|object| names.known(object));
    let what = named.unwrap_or("memory of the model");
    let _ = writeln!(
        out,
        "outside of the model: a thread that is not scheduled has used {what} {} {when}\n  nothing can be said of a test \
         with such threads: is it spawned by `std::thread` instead of `dpor::thread`, or by a pool or an executor?",
        at(outside.site)
    );
}

/// The values and blocks that are left after all threads have ended.
pub(super) fn leaked(
    out: &mut String,
    view: &View<'_>,
    names: &Names<'_>,
    leaked: &Leaked,
    when: &str,
) {
    let Leaked {
        values,
        blocks,
        owed,
        doubted: _,
    } = leaked;
    if !values.is_empty() {
        let made = |made: &Made| match foreign(made.site.file()) {
            // The value was made by a function that was passed to std, as in `map(Track::new)`.
            Some(somewhere) => {
                let when = after(view, names, made.thread, made.events);
                format!("{somewhere} by {} {when}", names.thread(made.thread))
            }
            None => format!("at {}", place(made.site)),
        };
        let made: Vec<String> = values.iter().map(made).collect();
        let _ = writeln!(
            out,
            "leak: a tracked value was not dropped when every thread had finished {when}\n  made {}",
            made.join(", ")
        );
    }
    let Some(first) = blocks.first() else {
        return;
    };
    let many = match blocks.len() {
        1 => "a block of the model is".to_owned(),
        many => format!("{many} blocks of the model are"),
    };
    let _ = writeln!(
        out,
        "leak: {many} still allocated when every thread has finished {when}"
    );
    for one in blocks {
        let inside = names.inside(|region| Block::around(&region) == Some(*one));
        let inside = if inside.is_empty() {
            String::new()
        } else {
            format!(", with {} in it", inside.join(", "))
        };
        let by = names.thread(one.thread);
        let at = match (&view.life.allocated, one == first) {
            // Only the first one is watched when the execution is run again.
            (Some(known), true) => format!("at {known}"),
            _ => after(view, names, one.thread, one.events),
        };
        let what = if blocks.len() == 1 { "the block: " } else { "" };
        let which = which(names, one);
        let _ = writeln!(out, "  {what}{which}, allocated by {by} {at}{inside}");
    }
    let for_all = match owed {
        true => "",
        false => ", or `Builder::check_leaks = false` for the test",
    };
    let _ = writeln!(
        out,
        "  what is meant to stay: `dpor::alloc::may_leak(&value)`{for_all}"
    );
}

/// The words for the allocation of a block.
fn born(view: &View<'_>, names: &Names<'_>, block: &Block) -> String {
    let at = match &view.life.allocated {
        Some(known) => format!("at {known}"),
        None => after(view, names, block.thread, block.events),
    };
    let by = names.thread(block.thread);
    format!("the block: {}, allocated by {by} {at}", which(names, block))
}

fn bytes(count: usize) -> String {
    match count {
        1 => "1 byte".to_owned(),
        many => format!("{many} bytes"),
    }
}

/// The name of a block in the events, and its size.
fn which(names: &Names<'_>, block: &Block) -> String {
    let size = bytes(block.size);
    match names.pointer_into(*block) {
        Some(pointer) => format!("{pointer}, {size}"),
        None => size,
    }
}

/// The time of an action that is no event: after this number of events of the thread.
fn after(view: &View<'_>, names: &Names<'_>, thread: ThreadId, events: u32) -> String {
    let last = events
        .checked_sub(1)
        .and_then(|last| nth(view, thread, last));
    match last {
        Some(event) => format!(
            "after \"{}\" ({})",
            names.happened(event),
            place_of(view, event)
        ),
        None => "at its beginning".to_owned(),
    }
}
