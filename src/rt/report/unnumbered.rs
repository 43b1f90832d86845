//! Which rows of the table are no events?
//!
//! An access to plain memory costs no step of the exploration, and neither does a free or a fence,
//! so they have no numbers. But the two that a failure is about belong where they happened: behind
//! the last event of their thread before them. So do fences.

use std::collections::BTreeMap;

use super::memory::{place_of_use, used_raw};
use super::text::{View, place};
use super::words::Names;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::OpKind;
use crate::rt::event::verdict::{Access, BadMemory, DataRace, Effect, End, Gone, Lasts, Wrong};

/// What a thread has done that is no event.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Unnumbered {
    pub(super) thread: ThreadId,
    pub(super) words: String,
    /// Empty if nobody knows.
    pub(super) place: String,
}

/// What was done, by how many events of the execution come before it.
pub(super) type Rows = BTreeMap<usize, Vec<Unnumbered>>;

/// What the failure is about.
pub(super) fn rows(view: &View<'_>, names: &Names<'_>) -> Rows {
    let mut rows = Rows::new();
    for fence in view.trace.fences() {
        let row = Unnumbered {
            thread: fence.thread,
            words: "fence".to_owned(),
            place: place(fence.site),
        };
        let there = rows.entry(fence.before as usize).or_default();
        // A loop may make the same one again and again.
        if there.last() != Some(&row) {
            there.push(row);
        }
    }
    match view.end {
        End::DataRace(race) => of_race(&mut rows, view, names, race),
        End::BadMemory(bad) => of_bad_memory(&mut rows, view, names, bad),
        _ => {}
    }
    rows
}

fn of_race(rows: &mut Rows, view: &View<'_>, names: &Names<'_>, race: &DataRace) {
    let DataRace {
        first,
        second,
        lasts,
        ..
    } = race;
    if let Some(row) = of_access(view, names, first) {
        let until = match lasts {
            Lasts::Until(events) if *events > first.after => Some(*events),
            _ => None,
        };
        let ends = until.map(|events| {
            let words = format!("({} ends)", row.words);
            (
                events,
                Unnumbered {
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
        match ends {
            // How many fences came before that is not known.
            Some(_) => put(rows, behind(view, first.thread, first.after), begins),
            None => put_in_front(rows, view, race, (first.thread, first.after), begins),
        }
        if let Some((events, ends)) = ends {
            put_in_front(rows, view, race, (first.thread, events), ends);
        }
    }
    if let Some(row) = of_access(view, names, second) {
        put(rows, view.trace.len(), row);
    }
}

/// An access that is no event, and whose place in the execution is known.
fn of_access(view: &View<'_>, names: &Names<'_>, access: &Access) -> Option<Unnumbered> {
    let (words, place) = match access.effect {
        Effect::Read => (on("read", names), place(access.site)),
        Effect::Write => (on("write", names), place(access.site)),
        Effect::Free => (
            "free".to_owned(),
            view.life.freed.clone().unwrap_or_default(),
        ),
        // Its own event would be the next one.
        Effect::End => ("end".to_owned(), String::new()),
        Effect::AtomicRead | Effect::AtomicWrite | Effect::Make => return None,
    };
    Some(Unnumbered {
        thread: access.thread,
        words,
        place,
    })
}

/// What is done to the memory that the failure is about.
fn on(verb: &str, names: &Names<'_>) -> String {
    let memory = names.memory();
    memory.map_or_else(|| verb.to_owned(), |memory| format!("{verb} {memory}"))
}

fn of_bad_memory(rows: &mut Rows, view: &View<'_>, names: &Names<'_>, bad: &BadMemory) {
    let known = |place: &Option<String>| place.clone().unwrap_or_default();
    match bad.memory {
        Gone::Block(_, Some((thread, events))) => {
            let free = Unnumbered {
                thread,
                words: "free".to_owned(),
                place: known(&view.life.freed),
            };
            put(rows, behind(view, thread, events), free);
        }
        Gone::Block(_, None) => {}
        Gone::Stack(owner) => {
            let mut events = view.trace.events().iter();
            let end = events.position(|it| it.thread == owner && it.operation.kind == OpKind::Exit);
            // If that is no event, it comes directly behind the last one.
            let end = end.unwrap_or_else(|| {
                let events = view.trace.positions_of(owner).len() as u32;
                behind(view, owner, events)
            });
            let row = Unnumbered {
                thread: owner,
                words: "end".to_owned(),
                place: String::new(),
            };
            put(rows, end, row);
        }
    }
    let (words, place) = match bad.wrong {
        Wrong::Operation(operation, site) => {
            let place = place_of_use(view, &operation, site);
            (names.announced(&operation), place)
        }
        Wrong::Access(effect, site, _) => {
            let access = Access {
                thread: bad.thread,
                effect,
                site,
                after: bad.after,
            };
            match of_access(view, names, &access) {
                Some(row) => (row.words, row.place),
                None => return,
            }
        }
        Wrong::Raw { offset } => (used_raw(offset), fault_of(view)),
        Wrong::FreedTwice => ("free again".to_owned(), known(&view.life.again)),
        Wrong::Layout { .. } | Wrong::Inside { .. } => {
            let place = view.life.again.as_ref().or(view.life.freed.as_ref());
            ("free".to_owned(), place.cloned().unwrap_or_default())
        }
    };
    let row = Unnumbered {
        thread: bad.thread,
        words,
        place,
    };
    put(rows, view.trace.len(), row);
}

/// Where memory was used that is gone, as a place of a row.
fn fault_of(view: &View<'_>) -> String {
    let place = view.life.faulted.as_deref().unwrap_or_default();
    // Who has called it is told above the table, which has not so much room.
    let place = place.split(", called ").next().unwrap_or(place);
    place.strip_prefix("at ").unwrap_or(place).to_owned()
}

/// Puts the row of the first access where its thread had performed so many events, in front of the
/// fences that it made later.
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
        // The time is what the thread has performed of both.
        fence.after == events && fence.after as usize + nth >= race.time as usize
    });
    let there = rows.entry(behind(view, thread, events)).or_default();
    there.insert(there.len().saturating_sub(later.count()), row);
}

fn put(rows: &mut Rows, before: usize, row: Unnumbered) {
    rows.entry(before).or_default().push(row);
}

/// How many events of the execution come before what a thread did after so many of its own.
fn behind(view: &View<'_>, thread: ThreadId, events: u32) -> usize {
    let positions = view.trace.positions_of(thread);
    match events.checked_sub(1) {
        Some(last) => positions.get(last as usize).map(|&at| at as usize + 1),
        // The code of a thread begins with its first step.
        None => positions.first().map(|&at| at as usize),
    }
    .unwrap_or_else(|| view.trace.len())
}
