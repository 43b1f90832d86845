//! What is known of which event?
//!
//! There is a row for each, but for those of a long stretch in which a thread does nothing that is
//! ordered with others: the first row there stands for all of them, because they differ in nothing
//! but which of the thread's events they are. So of most events of a long execution nothing is
//! written down, which is what writing takes longest for: such an execution is larger than the
//! caches.

use crate::rt::event::NOWHERE;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::pooled::Empty;
use crate::rt::rare::{Roomy, rarely};

/// Which event of whose an event is, and where its clock is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Whose {
    pub(super) thread: ThreadId,
    pub(super) index: u32,
    pub(super) clock: u32,
}

impl Whose {
    /// The same of the event of the same thread so many behind it, which shares its clock.
    #[inline]
    pub(super) fn behind(self, further: usize) -> Whose {
        Whose {
            index: self.index + further as u32,
            ..self
        }
    }
}

/// What there is to know of one event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub(super) whose: Whose,
    /// Whether its clock is not that of the event before.
    pub(super) is_own: bool,
    /// Its slot on its object.
    pub(super) slot: u8,
    /// The object, or [`ObjectId::NONE`] if it touches none or several.
    pub(super) object: ObjectId,
    /// How many events there were before it on its object, or on the last of several.
    pub(super) rank: u32,
    /// The event before it in its slot; for a wait the wait before it, whatever that has read.
    pub(super) previous: u32,
    /// The latest event before it in its slot that is not known to come before it: those in between
    /// do.
    pub(super) apart: u32,
    /// How many races there were before it.
    pub(super) races: u32,
}

impl Row {
    /// That of an event that touches no object that anybody would look for it on.
    #[inline]
    pub(super) fn of_none(whose: Whose, is_own: bool, races: u32) -> Row {
        Row {
            whose,
            is_own,
            slot: 0,
            object: ObjectId::NONE,
            rank: 0,
            previous: NOWHERE,
            apart: NOWHERE,
            races,
        }
    }
}

/// The rows of all events, in order.
#[derive(Default, Clone, Debug)]
pub(super) struct Rows {
    /// Those of the events before the first long stretch, which mostly are all: one each, so they
    /// are found at once.
    rows: Vec<Row>,
    rest: Rest,
}

/// What comes behind the first row that stands for several events.
#[derive(Default, Clone, Debug)]
struct Rest {
    rows: Vec<Row>,
    /// Where rows are missing, in order. The first event here is the first one without a row.
    stretches: Vec<Stretch>,
    /// How many events there are.
    length: usize,
}

/// Events that have no rows, because they are like the one before them.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Which of the events of [`Rest`] the first one of them is.
    from: usize,
    length: usize,
    /// How many of those before it have rows.
    rows: usize,
}

/// Fewer events have a row each.
const LONG: usize = if cfg!(test) { 2 } else { 256 };

/// More rows are not moved again and again while their list gets longer.
const MANY: usize = 4096;

impl Empty for Rows {
    fn empty(&mut self) {
        let Rows { rows, rest } = self;
        rows.empty();
        let Rest {
            rows,
            stretches,
            length,
        } = rest;
        rows.empty();
        stretches.empty();
        *length = 0;
    }
}

impl Rows {
    /// Of how many events something is known.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.rows.len() + self.rest.length
    }

    /// The row that stands for the event at `position`, and how far behind the first event with
    /// this row it is.
    #[inline]
    pub(super) fn find(&self, position: u32) -> (&Row, usize) {
        match self.rows.get(position as usize) {
            Some(row) => (row, 0),
            None => self.far(position as usize),
        }
    }

    /// Which event of whose the one at `position` is, and where its clock is.
    ///
    /// Its parts are read one by one, as they were written: a row that was just written cannot be
    /// read in other pieces yet.
    #[inline]
    pub(super) fn whose(&self, position: u32) -> Whose {
        let (row, further) = self.find(position);
        row.whose.behind(further)
    }

    /// The row that stands for the event at `position`: all in it but the index is known of the
    /// event.
    #[inline]
    pub(super) fn row(&self, position: u32) -> &Row {
        self.find(position).0
    }

    /// [`Rows::row`] if there is any.
    #[inline]
    pub(super) fn get(&self, position: usize) -> Option<&Row> {
        let near = self.rows.get(position);
        near.or_else(|| self.get_far(position))
    }

    /// [`Rows::get`] behind the first event without a row.
    #[cold]
    #[inline(never)]
    fn get_far(&self, position: usize) -> Option<&Row> {
        (position < self.len()).then(|| self.far(position).0)
    }

    /// Behind the first event without a row: the row that stands for the event at `position`, and
    /// how far behind the first event with this row it is.
    #[cold]
    #[inline(never)]
    fn far(&self, position: usize) -> (&Row, usize) {
        let position = position - self.rows.len();
        let Rest {
            rows, stretches, ..
        } = &self.rest;
        let behind = stretches.partition_point(|stretch| stretch.from <= position);
        let last = stretches[behind - 1];
        let further = position - last.from;
        if further >= last.length {
            return (&rows[last.rows + (further - last.length)], 0);
        }
        // The row before stands for this event.
        let before = last.rows.checked_sub(1).map(|before| &rows[before]);
        let row = before.or(self.rows.last());
        (
            row.expect("dpor bug: before a stretch there is an event"),
            further + 1,
        )
    }

    /// The row that stands for the last event, and how far behind the first event with this row
    /// that is.
    #[inline]
    pub(super) fn last(&self) -> Option<(&Row, usize)> {
        match self.rest.length {
            0 => self.rows.last().map(|row| (row, 0)),
            length => Some(self.far(self.rows.len() + length - 1)),
        }
    }

    /// Whether so many events have rows that to move these takes long.
    #[inline]
    pub(super) fn are_many(&self) -> bool {
        self.rows.len() >= MANY
    }

    #[inline]
    pub(super) fn reserve(&mut self, more: usize) {
        self.rows.reserve(more);
    }

    #[inline]
    pub(super) fn push(&mut self, row: Row) {
        let mut rows = &mut self.rows;
        if rarely!(self.rest.length > 0) {
            self.rest.length += 1;
            rows = &mut self.rest.rows;
        }
        rows.put(row);
    }

    /// Behind the last event, which touches no object, come so many of which no more is known than
    /// of that one: its thread makes them, too, and they share its clock.
    pub(super) fn go_on(&mut self, length: usize) {
        let last = self.last();
        let (&row, further) = last.expect("dpor bug: nothing goes on before the first event");
        debug_assert_eq!(row.object, ObjectId::NONE);
        let rest = &mut self.rest;
        match rest.stretches.last_mut() {
            Some(last) if last.from + last.length == rest.length => {
                last.length += length;
                rest.length += length;
            }
            _ if length >= LONG => {
                rest.stretches.push(Stretch {
                    from: rest.length,
                    length,
                    rows: rest.rows.len(),
                });
                rest.length += length;
            }
            _ => {
                for behind in further + 1..=further + length {
                    let whose = row.whose.behind(behind);
                    self.push(Row::of_none(whose, false, row.races));
                }
            }
        }
    }

    /// Forgets the events from `length` on. `forget` is called for each row, from the last one on.
    #[inline]
    pub(super) fn truncate(&mut self, length: usize, mut forget: impl FnMut(&Row)) {
        if rarely!(self.rest.length > 0) {
            let left = length.saturating_sub(self.rows.len());
            self.rest.truncate(left, &mut forget);
        }
        let length = length.min(self.rows.len());
        self.rows[length..].iter().rev().for_each(forget);
        self.rows.truncate(length);
    }

    /// Changes where each clock is.
    pub(super) fn move_clocks(&mut self, moved: impl Fn(u32) -> u32) {
        for row in self.rows.iter_mut().chain(&mut self.rest.rows) {
            row.whose.clock = moved(row.whose.clock);
        }
    }
}

impl Rest {
    /// [`Rows::truncate`] for these.
    #[inline(never)]
    fn truncate(&mut self, length: usize, forget: impl FnMut(&Row)) {
        let mut rows = 0;
        while let Some(last) = self.stretches.last_mut() {
            let further = length.saturating_sub(last.from);
            if further > 0 {
                // A stretch that ends there has no row behind it.
                rows = last.rows + further.saturating_sub(last.length);
                last.length = last.length.min(further);
                break;
            }
            self.stretches.pop();
        }
        let rows = rows.min(self.rows.len());
        self.rows[rows..].iter().rev().for_each(forget);
        self.rows.truncate(rows);
        self.length = length.min(self.length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As rows would be without stretches.
    #[derive(Default)]
    struct All(Vec<Row>);

    impl All {
        fn push(&mut self, row: Row) {
            self.0.push(row);
        }

        fn go_on(&mut self, length: usize) {
            for _ in 0..length {
                let last = self.0.last().expect("an event comes first");
                let row = Row::of_none(last.whose.behind(1), false, last.races);
                self.0.push(row);
            }
        }
    }

    /// That of the event at `position`, which touches an object if that is odd.
    fn row(position: usize) -> Row {
        let number = position as u32;
        let whose = Whose {
            thread: ThreadId(number % 3),
            index: number,
            clock: 2 * number,
        };
        let row = Row::of_none(whose, true, number / 2);
        let object = [ObjectId::NONE, ObjectId(number)][position % 2];
        Row { object, ..row }
    }

    fn assert_same(rows: &Rows, all: &All) {
        assert_eq!(rows.len(), all.0.len());
        for (position, expected) in all.0.iter().enumerate() {
            assert_eq!(rows.whose(position as u32), expected.whose, "at {position}");
            let found = rows.get(position).expect("there is one");
            let whose = expected.whose;
            // All but the index, and that it has its own clock, is that of the event that the row
            // stands for.
            let is_own = expected.is_own;
            let found = Row {
                whose,
                is_own,
                ..*found
            };
            assert_eq!(found, *expected, "at {position}");
        }
        assert_eq!(rows.get(all.0.len()), None);
        let last = rows.last().map(|(row, further)| row.whose.behind(further));
        assert_eq!(last, all.0.last().map(|row| row.whose));
    }

    #[test]
    fn what_is_known_of_each_event_is_the_same_with_stretches() {
        let mut random = 1_u64;
        let mut draw = |below: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % below
        };
        for _ in 0..500 {
            let (mut rows, mut all) = (Rows::default(), All::default());
            for _ in 0..12 {
                match draw(4) {
                    0 => {
                        let length = draw(rows.len() + 2);
                        let mut forgotten = Vec::new();
                        rows.truncate(length, |row| forgotten.push(*row));
                        let left = length.min(all.0.len());
                        // Each event that touches an object has a row, so it is forgotten.
                        let on_objects = |row: &&Row| row.object != ObjectId::NONE;
                        let expected: Vec<_> = all.0[left..]
                            .iter()
                            .rev()
                            .filter(on_objects)
                            .copied()
                            .collect();
                        forgotten.retain(|row| on_objects(&row));
                        assert_eq!(forgotten, expected);
                        all.0.truncate(left);
                    }
                    1 if all.0.last().is_some_and(|row| row.object == ObjectId::NONE) => {
                        let length = draw(3 * LONG);
                        rows.go_on(length);
                        all.go_on(length);
                    }
                    _ => {
                        let row = row(all.0.len());
                        rows.push(row);
                        all.push(row);
                    }
                }
                assert_same(&rows, &all);
            }
        }
    }

    #[test]
    fn a_stretch_has_one_row_in_however_many_pieces_it_comes() {
        let mut rows = Rows::default();
        rows.push(row(0));
        for _ in 0..10 {
            rows.go_on(LONG);
        }
        assert_eq!(rows.len(), 1 + 10 * LONG);
        assert_eq!((rows.rows.len(), rows.rest.rows.len()), (1, 0));
        assert_eq!(rows.rest.stretches.len(), 1);
    }
}
