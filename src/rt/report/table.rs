//! How is an execution drawn in a terminal?
//!
//! The table has a column per thread, unless there are very many, and a row per event. A row says
//! where a loaded value comes from, if another thread wrote it, whether it is an old one, and why
//! the previous row's thread stopped, if that is another thread. Equal rounds of a loop are shown
//! once, with their number. If there are still too many rows, rounds that differ only in numbers
//! are joined, and so are equal steps that many threads make one after the other. Text that is too
//! wide is cut.

use std::collections::HashMap;
use std::fmt::Write;
use std::mem::discriminant;
use std::ops::Range;

use super::old_values::{OldValues, Store, Use};
use super::stops::{Stop, stops};
use super::unnumbered;
use super::view::{View, place_of};
use super::words::Names;
use crate::rt::event::Event;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::rounds::{Rounds, rounds};
use crate::rt::event::verdict::End;
use crate::rt::relation::independence::changes_value;

/// The most rows. Of a longer execution the last rows are shown, and of an endless one the first
/// rows as well, because they show how the execution got there.
const ROWS_MAX: usize = 60;

/// The width of a row without its place, in characters. It is the same on every terminal, because
/// reports are compared with each other and read in logs. A line that a terminal breaks can still
/// be read; text that was cut cannot.
const WIDTH: usize = 160;

/// The least width to which a column is cut.
const COLUMN_MIN: usize = 24;

/// With more threads, the columns are wider than any terminal, and nearly all of the table is
/// empty.
const COLUMNS_MAX: usize = 12;

/// Up to this number, columns are easy to read even where they are too wide for their rows.
const COLUMNS_FEW: usize = 5;

/// The most characters of a thread's name where threads have no columns of their own.
const NAME_MAX: usize = 32;

struct Row {
    /// The position of the event, from 0; `None` if the row is no event.
    position: Option<usize>,
    thread: ThreadId,
    cell: String,
    place: String,
    /// Why the previous row's thread stopped.
    switch: String,
    /// The number of events that the row stands for.
    times: usize,
    /// The number of events before the row, and up to the end of all events that the row stands
    /// for.
    before: usize,
    until: usize,
}

/// A line of the table.
enum Line {
    Row(Row),
    /// A line in place of rows that are left out.
    Note(String),
}

/// The table's remarks about the events.
#[derive(Default)]
pub(super) struct Remarks {
    /// Why another thread stopped before a row, by the number of events before the row and by the
    /// thread of the row.
    pub(super) switches: HashMap<(usize, ThreadId), String>,
    pub(super) folds: Vec<Fold>,
}

/// Events that repeat earlier ones. They have no rows of their own.
pub(super) struct Fold {
    /// The positions of the events.
    pub(super) events: Range<usize>,
    /// The words in place of the events.
    pub(super) words: String,
}

/// The remarks of the table of the execution.
pub(super) fn remarks(view: &View<'_>, names: &Names<'_>) -> Remarks {
    let lines = folded(view, rows(view, names));
    let mut remarks = Remarks::default();
    let mut fold = |events: Range<usize>, words: String| {
        if !events.is_empty() {
            remarks.folds.push(Fold { events, words });
        }
    };
    let mut until = 0;
    for (at, line) in lines.iter().enumerate() {
        match line {
            Line::Row(row) => {
                if !row.switch.is_empty() {
                    let at = (row.before, row.thread);
                    remarks.switches.insert(at, row.switch.clone());
                }
                if row.times > 1 {
                    fold(row.before + 1..row.until, format!("{} times", row.times));
                }
                until = row.until;
            }
            Line::Note(note) => {
                let next = rows_of(&lines[at..]).next();
                let next = next.map_or(view.trace.len(), |row| row.before);
                fold(until..next, note.clone());
            }
        }
    }
    remarks
}

/// Writes the table of the execution.
pub(super) fn write(out: &mut String, view: &View<'_>, names: &Names<'_>) {
    let rows = rows(view, names);
    if rows.is_empty() {
        return;
    }
    let mut order: Vec<ThreadId> = Vec::new();
    for row in &rows {
        if !order.contains(&row.thread) {
            order.push(row.thread);
        }
    }
    let mut lines = folded(view, rows);
    shorten(&mut lines, endless(view.end), |row| marked(view, row));
    let shown = |thread: &ThreadId| rows_of(&lines).any(|row| row.thread == *thread);
    order.retain(shown);
    let where_width = rows_of(&lines).map(|row| row.place.chars().count()).max();
    let where_width = where_width.unwrap_or(0).max("where".len());
    let columns = Columns::Threads(order);
    let widths = columns.widths(&lines, names);
    let most = cell_max(&widths, where_width);
    let columns = if !(widths.len() > COLUMNS_MAX || are_too_wide(&widths, most, where_width)) {
        columns
    } else {
        Columns::One(named(&mut lines, names))
    };
    if let Columns::Threads(_) = columns {
        for line in &mut lines {
            // Every reader looks for the two events that the failure hangs on.
            if let Line::Row(row) = line
                && !marked(view, row)
            {
                row.cell = cut(&row.cell, most);
            }
        }
    }
    let widths = columns.widths(&lines, names);
    let last = rows_of(&lines).filter_map(|row| row.position).max();
    let digits = last.map_or(0, |last| last + 1).to_string().len().max(4);
    let mut line = format!("\n  {:>digits$}  ", "#");
    for (title, width) in columns.titles(names).iter().zip(&widths) {
        let _ = write!(line, "{title:<width$}  ");
    }
    let switches = rows_of(&lines).any(|row| !row.switch.is_empty());
    let title = if switches { "switch" } else { "" };
    let _ = write!(line, "{:<where_width$}  {title}", "where");
    let _ = writeln!(out, "{}", line.trim_end());
    for line in &lines {
        let row = match line {
            Line::Row(row) => row,
            Line::Note(note) => {
                let _ = writeln!(out, "        ({note})");
                continue;
            }
        };
        let mark = if marked(view, row) { '*' } else { ' ' };
        let number = row
            .position
            .map_or("-".to_owned(), |at| (at + 1).to_string());
        let mut line = format!("  {number:>digits$}{mark} ");
        let own = columns.of(row.thread);
        for (column, width) in widths.iter().enumerate() {
            let cell = if column == own { &row.cell } else { "" };
            let _ = write!(line, "{cell:<width$}  ");
        }
        let _ = write!(line, "{:<where_width$}  {}", row.place, row.switch);
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out.push('\n');
}

fn rows_of(lines: &[Line]) -> impl Iterator<Item = &Row> {
    lines.iter().filter_map(|line| match line {
        Line::Row(row) => Some(row),
        Line::Note(_) => None,
    })
}

/// The columns that contain the cells.
enum Columns {
    /// Each thread has a column.
    Threads(Vec<ThreadId>),
    /// All cells are in one column, each behind the name of its thread; names have this number of
    /// characters.
    One(usize),
}

impl Columns {
    /// The column of a thread.
    fn of(&self, thread: ThreadId) -> usize {
        match self {
            Columns::Threads(threads) => threads.iter().position(|&t| t == thread).unwrap_or(0),
            Columns::One(_) => 0,
        }
    }

    fn titles(&self, names: &Names<'_>) -> Vec<String> {
        match self {
            Columns::Threads(threads) => threads.iter().map(|&t| names.thread(t)).collect(),
            Columns::One(name) => vec![format!("{:<name$}  what", "thread")],
        }
    }

    /// The width of each column.
    fn widths(&self, lines: &[Line], names: &Names<'_>) -> Vec<usize> {
        let titles = self.titles(names);
        let mut widths: Vec<usize> = titles.iter().map(|title| title.chars().count()).collect();
        for row in rows_of(lines) {
            let width = &mut widths[self.of(row.thread)];
            *width = row.cell.chars().count().max(*width);
        }
        widths
    }
}

/// Puts the name of its thread in front of each cell; returns the width of the names. All names are
/// cut: threads that spawn each other without end have endless names.
fn named(lines: &mut [Line], names: &Names<'_>) -> usize {
    let name = |row: &Row| cut(&names.thread(row.thread), NAME_MAX);
    let width = rows_of(lines).map(|row| name(row).chars().count()).max();
    let width = width.unwrap_or(0).max("thread".len());
    for line in lines {
        if let Line::Row(row) = line {
            row.cell = format!("{:<width$}  {}", name(row), cut(&row.cell, 2 * NAME_MAX));
            row.switch = cut(&row.switch, 2 * NAME_MAX);
        }
    }
    width
}

/// Whether the execution was given up because a loop has no end.
fn endless(end: &End) -> bool {
    matches!(end, End::Livelock { .. } | End::TooManyEvents { .. })
}

/// The rounds of loops among the rows; for each, whether all of its rounds are equal; and the
/// number of lines they take.
fn grouped(view: &View<'_>, rows: &[Row]) -> (Vec<Rounds>, Vec<bool>, usize) {
    let equal = |a: usize, b: usize| {
        let (a, b) = (&rows[a], &rows[b]);
        (a.thread, &a.cell, &a.place) == (b.thread, &b.cell, &b.place) && !marked(view, b)
    };
    // A loop that counts differs in each round, until there are too many events.
    let counts = matches!(view.end, End::TooManyEvents { .. });
    let alike = |a: usize, b: usize| {
        let (a, b) = (&rows[a], &rows[b]);
        let did = |row: &Row| {
            let operation = view.trace.at(row.position? as u32).operation;
            Some((discriminant(&operation.kind), operation.object))
        };
        (a.thread, &a.place, did(a)) == (b.thread, &b.place, did(b)) && !marked(view, b)
    };
    let mut found = rounds(
        rows.len(),
        |a, b| if counts { alike(a, b) } else { equal(a, b) },
    );
    if height(&found, equal) > ROWS_MAX {
        let steps = steps(rows);
        let words: Vec<String> = rows.iter().map(|row| without_numbers(&row.cell)).collect();
        // Rows of different threads are similar if they are the same step of each thread. Any other
        // order in which two threads take turns may be the one that the reader looks for.
        let similar = |a: usize, b: usize| {
            (rows[a].thread == rows[b].thread || steps[a] == steps[b])
                && (&words[a], &rows[a].place) == (&words[b], &rows[b].place)
                && !marked(view, &rows[b])
        };
        let fewer = rounds(rows.len(), similar);
        if height(&fewer, equal) < height(&found, equal) {
            found = fewer;
        }
    }
    let exact = found.iter().map(|it| is_exact(it, equal)).collect();
    let height = height(&found, equal);
    (found, exact, height)
}

/// The rows, with one round of each loop and the number of its repetitions.
fn folded(view: &View<'_>, mut rows: Vec<Row>) -> Vec<Line> {
    let (mut found, mut exact, height) = grouped(view, &rows);
    let mut same = 0;
    if let Some(from) = same_from(view)
        && height > LIVELOCK_MAX
    {
        let is_new = |row: &&Row| row.position.is_none_or(|at| at < from);
        let shown = rows.iter().take_while(is_new).count();
        same = rows.len() - shown;
        rows.truncate(shown);
        (found, exact, _) = grouped(view, &rows);
    }
    let mut rows = rows.into_iter();
    let mut lines = Vec::new();
    for (it, exact) in found.into_iter().zip(exact) {
        let Rounds { length, times, .. } = it;
        lines.extend(rows.by_ref().take(length).map(Line::Row));
        if times == 1 {
            continue;
        }
        let left_out = if exact { times - 1 } else { times - 2 };
        rows.by_ref().take(left_out * length).for_each(drop);
        lines.push(Line::Note(match (exact, length) {
            (true, 1) => format!("this row {times} times"),
            (true, _) => format!("these {length} rows {times} times"),
            (false, 1) => format!("{left_out} more like this one"),
            (false, _) => format!("{left_out} more rounds like these {length} rows"),
        }));
        if !exact {
            lines.extend(rows.by_ref().take(length).map(Line::Row));
        }
    }
    if same > 0 {
        lines.push(Line::Note(format!(
            "{same} more rows like these, in which nothing changes"
        )));
    }
    lines
}

/// The most lines of a livelock that are shown whole; in a longer one, each thread that spins is
/// shown until its wait is released.
const LIVELOCK_MAX: usize = ROWS_MAX / 2;

/// The number of events of a livelock behind which no new state comes: the wait of each spinning
/// thread has been released, and all later reads repeat earlier ones. `None` if the execution is no
/// livelock.
fn same_from(view: &View<'_>) -> Option<usize> {
    let End::Livelock { stuck, rounds } = view.end else {
        return None;
    };
    let spins = stuck.iter();
    let spins = spins.filter(|it| matches!(it.operation.kind, OpKind::Wait { .. }));
    let first = spins.filter_map(|it| {
        let its = view.trace.positions_of(it.thread).iter().copied();
        let let_go: Vec<u32> = its
            .filter(|&at| view.trace.at(at).outcome.is_released())
            .collect();
        // The releases in the rounds in which no value changed.
        let from = let_go.len().saturating_sub(*rounds as usize);
        let_go.get(from).map(|&at| at as usize + 1)
    });
    first.max()
}

/// Whether all of the rounds are equal.
fn is_exact(it: &Rounds, equal: impl Fn(usize, usize) -> bool) -> bool {
    let repeated = it.start..it.start + it.length * (it.times - 1);
    repeated.into_iter().all(|row| equal(row, row + it.length))
}

/// The number of lines that these rounds take.
fn height(found: &[Rounds], equal: impl Fn(usize, usize) -> bool) -> usize {
    let lines = |it: &Rounds| match it.times {
        1 => it.length,
        _ if is_exact(it, &equal) => it.length + 1,
        _ => 2 * it.length + 1,
    };
    found.iter().map(lines).sum()
}

/// For each row, the number of earlier rows of its thread.
fn steps(rows: &[Row]) -> Vec<usize> {
    let mut taken: HashMap<ThreadId, usize> = HashMap::new();
    let step = |row: &Row| {
        let next = taken.entry(row.thread).or_default();
        std::mem::replace(next, *next + 1)
    };
    rows.iter().map(step).collect()
}

/// The text with a sign for each number, and without the writer of a value, which the first of many
/// readers does not have.
fn without_numbers(text: &str) -> String {
    let mut words = String::new();
    for c in text.chars() {
        match c.is_ascii_digit() {
            false => words.push(c),
            true if words.ends_with('#') => {}
            true => words.push('#'),
        }
    }
    words.replace(" from #", "")
}

/// Leaves lines out if there are too many: the first ones, or some in the middle if the first ones
/// matter. Rows that `keep` selects stay.
fn shorten(lines: &mut Vec<Line>, both_ends: bool, keep: impl Fn(&Row) -> bool) {
    let Some(many) = lines.len().checked_sub(ROWS_MAX).filter(|&many| many > 0) else {
        return;
    };
    let first = if both_ends { ROWS_MAX / 2 } else { 0 };
    let mut left_out = Vec::new();
    for (at, line) in std::mem::take(lines).into_iter().enumerate() {
        let stays = matches!(&line, Line::Row(row) if keep(row));
        if !stays && (first..first + many).contains(&at) {
            left_out.push(line);
            continue;
        }
        if left_out.len() > 1 {
            let what = if lines.is_empty() {
                "earlier rows"
            } else {
                "rows between"
            };
            lines.push(Line::Note(format!("{} {what}", left_out.len())));
            left_out.clear();
        }
        // A note would be as long as a single row.
        lines.append(&mut left_out);
        lines.push(line);
    }
}

/// Whether the row is one of the two events that the failure hangs on.
fn marked(view: &View<'_>, row: &Row) -> bool {
    view.pair.is_some_and(|pair| {
        let is = |position: u32| row.position == Some(position as usize);
        is(pair.first) || matches!(pair.second, Ok(at) if is(at))
    })
}

fn rows(view: &View<'_>, names: &Names<'_>) -> Vec<Row> {
    let events = view.trace.events();
    let stores = OldValues::of(view.trace);
    let sources = sources(view, &stores);
    let stops = stops(view);
    let mut unnumbered = unnumbered::rows(view, names);
    let mut stopped: HashMap<ThreadId, Stop> = HashMap::new();
    let mut rows: Vec<Row> = Vec::new();
    let switch = |rows: &[Row], thread, stopped: &HashMap<ThreadId, Stop>| match rows.last() {
        Some(last) if last.thread != thread => {
            let stop = stopped.get(&last.thread).copied();
            stop.map_or_else(String::new, |stop| reason(names, last.thread, stop))
        }
        _ => String::new(),
    };
    for position in 0..=events.len() {
        if let Some(before) = position.checked_sub(1)
            && let Some(&stop) = stops.get(&before)
        {
            stopped.insert(events[before].thread, stop);
        }
        for row in unnumbered.remove(&position).unwrap_or_default() {
            rows.push(Row {
                position: None,
                switch: switch(&rows, row.thread, &stopped),
                thread: row.thread,
                cell: row.words,
                place: row.stands.shown(),
                times: 1,
                before: position,
                until: position,
            });
        }
        let (Some(event), Some(source)) = (events.get(position), sources.get(position)) else {
            break;
        };
        let is_end = matches!(event.operation.kind, OpKind::Exit);
        let mut cell = names.happened_after(event, source.map(|from| from + 1));
        if let Some(old) = stores.old_at(position) {
            cell = with_age(cell, old);
        }
        let row = Row {
            position: Some(position),
            switch: switch(&rows, event.thread, &stopped),
            thread: event.thread,
            cell,
            place: if is_end {
                String::new()
            } else {
                place_of(view, event)
            },
            times: 1,
            before: position,
            until: position + 1,
        };
        // A thread's end after its last row needs no row, unless the failure hangs on the time of
        // the end.
        if is_end && !marked(view, &row) {
            continue;
        }
        if let Some(last) = rows.last_mut()
            && (last.thread, &last.cell, &last.place) == (row.thread, &row.cell, &row.place)
            && !marked(view, &row)
        {
            last.times += 1;
            last.until = position + 1;
            continue;
        }
        rows.push(row);
    }
    for row in &mut rows {
        if row.times > 1 {
            let _ = write!(row.cell, " ({} times)", row.times);
        }
    }
    rows
}

/// For each event that reads a value which another thread wrote, the event that wrote it.
fn sources(view: &View<'_>, stores: &OldValues) -> Vec<Option<usize>> {
    let mut writers: HashMap<ObjectId, usize> = HashMap::new();
    let events = view.trace.events();
    if view.trace.is_weak {
        let source = |position| source_in(events, stores, position);
        return (0..events.len()).map(source).collect();
    }
    let source = |(position, event): (usize, &Event)| {
        let object = event.operation.object;
        let writer = writers.get(&object).copied();
        for event in [event]
            .into_iter()
            .chain(view.trace.operations_in(position))
        {
            if changes_value(event.label.class()) {
                writers.insert(event.operation.object, position);
            }
        }
        let reads = matches!(
            event.operation.kind,
            OpKind::Load { .. } | OpKind::CompareExchange { .. } | OpKind::Rmw { .. }
        );
        writer.filter(|&at| reads && events[at].thread != event.thread)
    };
    events.iter().enumerate().map(source).collect()
}

/// The event that wrote the value that this event of C11 reads, if another thread wrote it. A
/// read-modify-write that changes nothing passes the value on.
fn source_in(events: &[Event], stores: &OldValues, position: usize) -> Option<usize> {
    let mut made = stores.at(position).filter(|made| made.reads)?;
    loop {
        let Store::Event(store) = made.of else {
            return None;
        };
        match stores.at(store) {
            Some(before) if before.reads && !changes_value(events[store].label.class()) => {
                made = before;
            }
            _ => return Some(store).filter(|&it| events[it].thread != events[position].thread),
        }
    }
}

/// The words for an old event.
fn with_age(cell: String, old: &Use) -> String {
    match (old.reads, old.newer.first()) {
        (false, Some(newer)) => match cell.strip_suffix(')') {
            Some(was) => format!("{was}, goes before {})", newer + 1),
            None => format!("{cell} (goes before {})", newer + 1),
        },
        _ => format!("{cell} (old)"),
    }
}

/// Why this thread has stopped.
fn reason(names: &Names<'_>, thread: ThreadId, stop: Stop) -> String {
    let name = names.thread(thread);
    match stop {
        Stop::Preempted => format!("{name} is preempted"),
        Stop::Waits(operation) => format!("{name} {}", names.waiting(&operation)),
        Stop::GaveUp => format!("{name} has given up"),
        Stop::Ended => format!("{name} has ended"),
        Stop::AfterThePanic => format!("{name} goes on after the panic"),
    }
}

/// The greatest width of a cell if columns of these widths are beside each other and places have
/// this width. A narrow column leaves its spare width to the others.
fn cell_max(columns: &[usize], place: usize) -> usize {
    let mut left = WIDTH.saturating_sub(place + 10 + 2 * columns.len());
    let mut widths = columns.to_vec();
    widths.sort_unstable();
    for (narrower, &width) in widths.iter().enumerate() {
        let share = left / (widths.len() - narrower);
        if width > share {
            return share.max(COLUMN_MIN);
        }
        left -= width;
    }
    usize::MAX
}

/// Whether columns of these widths, each cut to `most`, are too many and too wide to stand beside
/// each other, if places have this width.
fn are_too_wide(columns: &[usize], most: usize, place: usize) -> bool {
    let cells: usize = columns.iter().map(|&width| width.min(most)).sum();
    columns.len() > COLUMNS_FEW && cells + place + 10 + 2 * columns.len() > WIDTH
}

/// The text, or its two ends with a sign for the missing part: the beginning has the operation, and
/// the end has the values.
fn cut(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let end = (most - 1) / 2;
    let mut short: String = text.chars().take(most - 1 - end).collect();
    short.push('…');
    short.extend(text.chars().skip(length - end));
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_needs_little_leaves_the_rest_to_the_others() {
        // 100 columns are left.
        let place = WIDTH - 100 - 10 - 2 * 3;
        assert_eq!(cell_max(&[10, 30, 60], place), usize::MAX, "all fit");
        assert_eq!(cell_max(&[10, 60, 60], place), 45);
        assert_eq!(cell_max(&[60, 60, 60], place), 33);
        assert_eq!(cell_max(&[60, 60, 60], WIDTH), COLUMN_MIN);
    }

    #[test]
    fn many_wide_columns_are_none() {
        let place = 30;
        assert!(!are_too_wide(&[24; 5], 24, 100), "few");
        assert!(!are_too_wide(&[60; 4], 24, place));
        assert!(!are_too_wide(&[10; 10], usize::MAX, place));
        assert!(are_too_wide(&[11; 10], usize::MAX, place));
    }

    #[test]
    fn words_are_alike_without_their_numbers() {
        assert_eq!(without_numbers("x#12 = 7 from 143"), "x# = #");
        assert_eq!(without_numbers("spawn main.1.20"), "spawn main.#.#");
    }

    /// The lines that are left of `rows` rows if these are kept: their numbers, and the notes.
    fn shortened(rows: usize, both_ends: bool, kept: &[usize]) -> Vec<String> {
        let row = |at| Row {
            position: Some(at),
            thread: ThreadId::MAIN,
            cell: String::new(),
            place: String::new(),
            switch: String::new(),
            times: 1,
            before: at,
            until: at + 1,
        };
        let mut lines: Vec<Line> = (0..rows).map(row).map(Line::Row).collect();
        let keep = |row: &Row| row.position.is_some_and(|at| kept.contains(&at));
        shorten(&mut lines, both_ends, keep);
        let text = |line: Line| match line {
            Line::Row(row) => row.position.map_or(String::new(), |at| at.to_string()),
            Line::Note(note) => note,
        };
        lines.into_iter().map(text).collect()
    }

    #[test]
    fn many_rows_are_left_out_and_never_one_alone() {
        assert_eq!(shortened(ROWS_MAX, false, &[]).len(), ROWS_MAX);
        assert_eq!(shortened(ROWS_MAX + 1, false, &[])[..2], ["0", "1"]);
        let two = ["2 earlier rows", "2"];
        assert_eq!(shortened(ROWS_MAX + 2, false, &[])[..2], two);
        let kept = ["2 earlier rows", "2", "3", "4", "2 rows between", "7"];
        assert_eq!(shortened(ROWS_MAX + 7, false, &[2, 4])[..6], kept);
        let middle = shortened(ROWS_MAX + 3, true, &[31]);
        assert_eq!(middle[29..34], ["29", "30", "31", "32", "33"]);
        let middle = shortened(ROWS_MAX + 3, true, &[30]);
        assert_eq!(middle[29..33], ["29", "30", "2 rows between", "33"]);
    }

    #[test]
    fn what_is_too_long_keeps_both_ends() {
        assert_eq!(cut("store", 5), "store");
        assert_eq!(cut("try_recv from jobs: empty", 16), "try_recv…: empty");
        assert_eq!(cut("äöü-äöü", 5), "äö…öü");
    }
}
