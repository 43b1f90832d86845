//! Which facts about an execution do its data have beside the events, in the words of the text
//! report?
//!
//! The sentences of the text report, the actions that the failure is about and that are no events,
//! and the events that only repeat others. All of them come from the functions that the text report
//! uses, so that all forms agree.

use std::collections::{BTreeMap, BTreeSet};

use super::{Gathering, Place};
use crate::rt::report::source::Sources;
use crate::rt::report::table::Remarks;
use crate::rt::report::unnumbered::{self, Role, Stands};

/// How many lines of the source are kept above and below a place.
const CONTEXT: u32 = 3;

/// An action of a thread that is no event: one that the failure is about, or one on the way to the
/// failure.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(in super::super) struct Aside {
    pub(in super::super) role: &'static str,
    pub(in super::super) thread: usize,
    /// The number of events before the action.
    pub(in super::super) after: usize,
    pub(in super::super) words: String,
    /// The place, as the text report has it; empty if the place is unknown.
    pub(in super::super) at: String,
    /// The place, if it is a line of a file.
    pub(in super::super) place: Option<Place>,
    /// Why the previous event's thread stopped, if that is another thread.
    pub(in super::super) switch: Option<String>,
}

/// Events, by their numbers, that repeat earlier ones.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(in super::super) struct Fold {
    pub(in super::super) first: usize,
    pub(in super::super) last: usize,
    pub(in super::super) words: String,
}

/// Lines of a source file.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(in super::super) struct Snippet {
    pub(in super::super) file: String,
    /// The number of the first one.
    pub(in super::super) first: u32,
    pub(in super::super) lines: Vec<String>,
}

impl Aside {
    /// The word for the part that the action has in the failure.
    const fn role(role: Role) -> &'static str {
        match role {
            Role::First => "first",
            Role::FirstEnds => "first_ends",
            Role::Second => "second",
            Role::Gone => "gone",
            Role::Use => "use",
            Role::Fence => "fence",
            Role::Access => "access",
            Role::Locals => "locals",
        }
    }
}

/// The actions that are no events, except fences, in the order in which they happened.
pub(super) fn asides(data: &mut Gathering<'_>, remarks: &Remarks) -> Vec<Aside> {
    let rows = unnumbered::rows(data.view, &data.names);
    let rows = rows
        .into_iter()
        .flat_map(|(after, rows)| rows.into_iter().map(move |row| (after, row)));
    // Fences have a list of their own, with their orderings.
    let rows = rows.filter(|(_, row)| row.role != Role::Fence);
    let told = rows.map(|(after, row)| Aside {
        role: Aside::role(row.role),
        thread: data.thread(row.thread),
        after,
        at: row.stands.shown(),
        place: place(data, &row.stands),
        switch: remarks.switches.get(&(after, row.thread)).cloned(),
        words: row.words,
    });
    told.collect()
}

fn place(data: &mut Gathering<'_>, stands: &Stands) -> Option<Place> {
    match stands {
        Stands::At(site) => Some(data.place(site)),
        seen => seen.line().map(|line| data.place_of_caller(&line)),
    }
}

/// Which events only repeat others.
pub(super) fn folds(remarks: &Remarks) -> Vec<Fold> {
    let folds = remarks.folds.iter().map(|fold| Fold {
        first: fold.events.start + 1,
        last: fold.events.end,
        words: fold.words.clone(),
    });
    folds.collect()
}

/// The lines of the program that places point at, by file.
pub(super) type Lines = BTreeMap<String, BTreeSet<u32>>;

/// These lines of the program, with the lines around them.
pub(super) fn snippets(lines: &Lines, sources: &mut Sources) -> Vec<Snippet> {
    let mut snippets = Vec::new();
    for (file, lines) in lines {
        let Some(text) = sources.lines(file) else {
            continue;
        };
        let mut wanted: Vec<u32> = lines
            .iter()
            .flat_map(|&line| line.saturating_sub(CONTEXT).max(1)..=line.saturating_add(CONTEXT))
            .filter(|&line| line as usize <= text.len())
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        for run in wanted.chunk_by(|one, next| one + 1 == *next) {
            let text = run.iter().map(|&line| text[line as usize - 1].clone());
            snippets.push(Snippet {
                file: file.clone(),
                first: run[0],
                lines: text.collect(),
            });
        }
    }
    snippets
}
