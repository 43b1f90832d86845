//! Which rows of the table are no events?
//!
//! An access to plain memory, a free and a fence cost no step of the exploration, so they have no
//! numbers. But the table shows the accesses to memory that threads share, those that a failure is
//! about, and fences, at the time they happened: behind the last event of their thread before them.

use std::collections::BTreeMap;

use super::memory::{is_seen_from_its_stack, used_raw};
use super::places::FileLine;
use super::touched;
use super::view::{View, place};
use super::words::Names;
use crate::rt::event::held::Touched;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Operation};
use crate::rt::event::verdict::{Access, BadMemory, DataRace, Effect, End, Gone, Lasts, Wrong};
use crate::rt::event::{Event, Site};

/// An action of a thread that is no event.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Unnumbered {
    pub(super) role: Role,
    pub(super) thread: ThreadId,
    pub(super) words: String,
    pub(super) stands: Stands,
}

/// The part that the action has in the failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// The first of two accesses that nothing orders.
    First,
    /// The end of the first access, if the access has lasted.
    FirstEnds,
    Second,
    /// The end of the memory's life: a free, or the end of the thread that owns the memory.
    Gone,
    /// The wrong use of memory, or the wrong free.
    Use,
    /// A fence, which the failure need not be about.
    Fence,
    /// An access to plain memory on the way to the failure.
    Access,
    /// The thread begins to drop its thread-local variables.
    Locals,
}

/// The place of an action that is no event.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Stands {
    At(Site),
    /// As a stack showed the place: `file:line` where both are known.
    Seen(String),
    Unknown,
}

impl Stands {
    pub(super) fn seen(place: Option<&String>) -> Stands {
        place.map_or(Stands::Unknown, |place| Stands::Seen(place.clone()))
    }

    /// The place as a row of the table shows it; empty if the place is unknown.
    pub(super) fn shown(&self) -> String {
        match self {
            Stands::At(site) => place(site),
            Stands::Seen(place) => place.clone(),
            Stands::Unknown => String::new(),
        }
    }

    /// The line of the program, if a stack showed one.
    pub(super) fn line(&self) -> Option<FileLine> {
        let Stands::Seen(place) = self else {
            return None;
        };
        let (file, line) = place.rsplit_once(':')?;
        let (file, line) = (file.to_owned(), line.parse().ok()?);
        Some(FileLine { file, line })
    }
}

/// The actions that are no events, keyed by the number of events of the execution before them.
pub(super) type Rows = BTreeMap<usize, Vec<Unnumbered>>;

/// What a thread does with its thread-local variables at its end, in words.
const LOCALS: &str = "drop thread-locals";

/// The threads whose destructors of thread-local variables have made events, each with the number
/// of events of the execution before the first of these destructors.
fn locals_dropped(view: &View<'_>) -> impl Iterator<Item = (ThreadId, usize)> {
    let events = view.trace.events();
    let dropped = view.trace.locals_dropped().iter();
    dropped.filter_map(move |&(thread, before)| {
        let before = before as usize;
        let is_cause =
            |event: &Event| event.thread == thread && !matches!(event.operation.kind, OpKind::Exit);
        (events.get(before..)?.iter().any(is_cause)).then_some((thread, before))
    })
}

/// The rows for the failure and the fences.
pub(super) fn rows(view: &View<'_>, names: &Names<'_>) -> Rows {
    let mut rows = Rows::new();
    let mut accesses = touched::shown(view.callers, view.end)
        .into_iter()
        .peekable();
    for (nth, fence) in view.trace.fences().iter().enumerate() {
        while let Some(touched) = accesses.next_if(|it| it.fences as usize <= nth) {
            add(&mut rows, touched.events, of_touched(touched, view, names));
        }
        let row = Unnumbered {
            role: Role::Fence,
            thread: fence.thread,
            // Without old values no reader needs the ordering.
            words: match view.trace.is_weak {
                true => format!("{:?} fence", fence.order),
                false => "fence".to_owned(),
            },
            stands: Stands::At(fence.site),
        };
        add(&mut rows, fence.before, row);
    }
    for touched in accesses {
        add(&mut rows, touched.events, of_touched(touched, view, names));
    }
    for (thread, before) in locals_dropped(view) {
        rows.entry(before).or_default().push(Unnumbered {
            role: Role::Locals,
            thread,
            words: LOCALS.to_owned(),
            stands: Stands::Unknown,
        });
    }
    match view.end {
        End::DataRace(race) => of_race(&mut rows, view, names, race),
        End::BadMemory(bad) => of_bad_memory(&mut rows, view, names, bad),
        _ => {}
    }
    rows
}

/// Adds a row, unless it is the same as the row in front of it: a loop may make the same fence or
/// the same access again and again.
fn add(rows: &mut Rows, before: u32, row: Unnumbered) {
    let there = rows.entry(before as usize).or_default();
    if there.last() != Some(&row) {
        there.push(row);
    }
}

/// The row for an access to plain memory.
fn of_touched(touched: &Touched, view: &View<'_>, names: &Names<'_>) -> Unnumbered {
    Unnumbered {
        role: Role::Access,
        thread: touched.access.thread,
        words: names.touched(touched, view.end),
        stands: Stands::At(touched.access.site),
    }
}

/// Replaces the last row of this access among the rows behind the given number of events of its
/// thread. Without one, returns the new row.
fn replace(
    rows: &mut Rows,
    view: &View<'_>,
    (thread, events): (ThreadId, u32),
    new: Unnumbered,
) -> Option<Unnumbered> {
    let there = rows.get_mut(&behind(view, thread, events));
    let mut there = there.into_iter().flatten().rev();
    let is_same = |row: &&mut Unnumbered| {
        row.role == Role::Access
            && (row.thread, &row.stands) == (new.thread, &new.stands)
            && row.words.split(' ').next() == new.words.split(' ').next()
    };
    match there.find(is_same) {
        Some(row) => {
            // The row has the values of the access, too.
            let words = match row.words.starts_with(&new.words) {
                true => std::mem::take(&mut row.words),
                false => new.words,
            };
            *row = Unnumbered { words, ..new };
            None
        }
        None => Some(new),
    }
}

fn of_race(rows: &mut Rows, view: &View<'_>, names: &Names<'_>, race: &DataRace) {
    let DataRace {
        first,
        second,
        lasts,
        ..
    } = race;
    if let Some(row) = of_access(view, names, first, Role::First) {
        let until = match lasts {
            Lasts::Until(events) if *events > first.after => Some(*events),
            _ => None,
        };
        let ends = until.map(|events| {
            let words = format!("({} ends)", row.words);
            (
                events,
                Unnumbered {
                    role: Role::FirstEnds,
                    words,
                    ..row.clone()
                },
            )
        });
        let begins = match (until, lasts) {
            (Some(_), _) | (None, Lasts::OnAndOn) => Unnumbered {
                words: format!("{} begins", row.words),
                ..row
            },
            _ => row,
        };
        let at = (first.thread, first.after);
        match (replace(rows, view, at, begins), &ends) {
            (None, _) => {}
            // The number of fences before the first access is unknown.
            (Some(begins), Some(_)) => put(rows, behind(view, first.thread, first.after), begins),
            (Some(begins), None) => put_in_front(rows, view, race, at, begins),
        }
        if let Some((events, ends)) = ends {
            put_in_front(rows, view, race, (first.thread, events), ends);
        }
    }
    if let Some(row) = of_access(view, names, second, Role::Second) {
        put(rows, view.trace.len(), row);
    }
}

/// The row for an access that is no event, if its place in the execution is known.
fn of_access(
    view: &View<'_>,
    names: &Names<'_>,
    access: &Access,
    role: Role,
) -> Option<Unnumbered> {
    let (words, stands) = match access.effect {
        Effect::Read => (on("read", names), Stands::At(access.site)),
        Effect::Write => (on("write", names), Stands::At(access.site)),
        Effect::Free => ("free".to_owned(), Stands::seen(view.life.freed.as_ref())),
        // The event of the thread's end would be the next one.
        Effect::End => ("end".to_owned(), Stands::Unknown),
        Effect::Make if view.end.block().is_some() => (
            "allocate".to_owned(),
            Stands::seen(view.life.allocated.as_ref()),
        ),
        Effect::Make => ("make".to_owned(), Stands::Unknown),
        Effect::AtomicRead | Effect::AtomicWrite => return None,
    };
    Some(Unnumbered {
        role,
        thread: access.thread,
        words,
        stands,
    })
}

/// The words for an action on the memory that the failure is about.
fn on(verb: &str, names: &Names<'_>) -> String {
    let memory = names.memory();
    memory.map_or_else(|| verb.to_owned(), |memory| format!("{verb} {memory}"))
}

fn of_bad_memory(rows: &mut Rows, view: &View<'_>, names: &Names<'_>, bad: &BadMemory) {
    match bad.memory {
        Gone::Block(_, Some((thread, events))) => {
            let free = Unnumbered {
                role: Role::Gone,
                thread,
                words: "free".to_owned(),
                stands: Stands::seen(view.life.freed.as_ref()),
            };
            put(rows, behind(view, thread, events), free);
        }
        Gone::Block(_, None) => {}
        Gone::Stack(owner) => {
            let mut events = view.trace.events().iter();
            let end = events.position(|it| it.thread == owner && it.operation.kind == OpKind::Exit);
            // A free that is no event comes directly behind the last event.
            let end = end.unwrap_or_else(|| {
                let events = view.trace.positions_of(owner).len() as u32;
                behind(view, owner, events)
            });
            let row = Unnumbered {
                role: Role::Gone,
                thread: owner,
                words: "end".to_owned(),
                stands: Stands::Unknown,
            };
            put(rows, end, row);
        }
    }
    let (words, stands) = match bad.wrong {
        Wrong::Operation(operation, site) => {
            let stands = place_of_use(view, &operation, site);
            (names.announced(&operation), stands)
        }
        Wrong::Access(effect, site, _) => {
            let access = Access {
                thread: bad.thread,
                effect,
                site,
                after: bad.after,
            };
            match of_access(view, names, &access, Role::Use) {
                Some(row) => (row.words, row.stands),
                None => return,
            }
        }
        Wrong::Raw { offset } => (used_raw(offset), fault_of(view)),
        Wrong::FreedTwice => (
            "free again".to_owned(),
            Stands::seen(view.life.again.as_ref()),
        ),
        Wrong::Layout { .. } | Wrong::Inside { .. } => {
            let place = view.life.again.as_ref().or(view.life.freed.as_ref());
            ("free".to_owned(), Stands::seen(place))
        }
    };
    let row = Unnumbered {
        role: Role::Use,
        thread: bad.thread,
        words,
        stands,
    };
    put(rows, view.trace.len(), row);
}

/// The place at which this operation used freed memory.
fn place_of_use(view: &View<'_>, operation: &Operation, site: Site) -> Stands {
    match &view.life.again {
        Some(known) if is_seen_from_its_stack(operation, site) => Stands::Seen(known.clone()),
        _ => Stands::At(site),
    }
}

/// The place where freed memory was used, for a row.
fn fault_of(view: &View<'_>) -> Stands {
    let Some(place) = view.life.faulted.as_deref() else {
        return Stands::Unknown;
    };
    // The callers are told above the table; a row has no room for them.
    let place = place.split(", called ").next().unwrap_or(place);
    Stands::Seen(place.strip_prefix("at ").unwrap_or(place).to_owned())
}

/// Puts the row of the first access behind the given number of events of its thread, in front of
/// the fences that the thread made later.
fn put_in_front(
    rows: &mut Rows,
    view: &View<'_>,
    race: &DataRace,
    (thread, events): (ThreadId, u32),
    row: Unnumbered,
) {
    let mine = (view.trace.fences().iter()).filter(|fence| fence.thread == thread);
    let later = mine.enumerate();
    let later = later.filter(|(nth, fence)| {
        // The time counts the events and the fences that the thread has performed, and the parts of
        // its blocks.
        let parts = view.trace.parts().iter();
        let parts = parts.filter(|part| part.thread == thread && part.after <= fence.after);
        let parts = parts.filter(|part| part.takes_time()).count();
        fence.after == events && fence.after as usize + nth + parts >= race.time as usize
    });
    let there = rows.entry(behind(view, thread, events)).or_default();
    there.insert(there.len().saturating_sub(later.count()), row);
}

fn put(rows: &mut Rows, before: usize, row: Unnumbered) {
    rows.entry(before).or_default().push(row);
}

/// The number of events of the execution before an action that the thread took after `events`
/// events of its own.
fn behind(view: &View<'_>, thread: ThreadId, events: u32) -> usize {
    let positions = view.trace.positions_of(thread);
    match events.checked_sub(1) {
        Some(last) => positions.get(last as usize).map(|&at| at as usize + 1),
        // The code of a thread begins with its first step.
        None => positions.first().map(|&at| at as usize),
    }
    .unwrap_or_else(|| view.trace.len())
}
