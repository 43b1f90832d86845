//! What is stored for each event?
//!
//! Each event has a row, except in a long stretch of events of one thread that are ordered with no
//! event of another thread: the first row there stands for all of them, because they differ only in
//! their index. So for most events of a long execution no row is written. Writing rows would take
//! longest, because such an execution is larger than the caches.

use crate::rt::event::NOWHERE;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::pooled::Empty;
use crate::rt::rare::{Roomy, rarely};

/// The thread and the index of an event, and the start of its clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Whose {
    pub(super) thread: ThreadId,
    pub(super) index: u32,
    pub(super) clock: u32,
}

impl Whose {
    /// The same for the event `further` events behind it, of the same thread and with the same
    /// clock.
    #[inline]
    pub(super) fn behind(self, further: usize) -> Whose {
        Whose {
            index: self.index + further as u32,
            ..self
        }
    }
}

/// The data of one event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub(super) whose: Whose,
    /// Whether its clock differs from that of the event before.
    pub(super) is_own: bool,
    /// Its slot on its object.
    pub(super) slot: u8,
    /// The object, or [`ObjectId::NONE`] if the event accesses none or several.
    pub(super) object: ObjectId,
    /// The number of earlier events on its object, or on the last one of several.
    pub(super) rank: u32,
    /// The previous event in its slot; for a wait the previous wait, whatever that has read.
    pub(super) previous: u32,
    /// The latest earlier event in its slot that is not known to happen before it. The events in
    /// between do.
    pub(super) apart: u32,
    /// The number of races before its own.
    pub(super) races: u32,
}

impl Row {
    /// The row of an event that no search on an object has to find.
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
    /// The rows of the events before the first long stretch. Mostly these are all events; each has
    /// a row at its own index.
    rows: Vec<Row>,
    rest: Rest,
}

/// The events behind the first row that stands for several events.
#[derive(Default, Clone, Debug)]
struct Rest {
    rows: Vec<Row>,
    /// The stretches of events without rows, in order. The first event of `Rest` is the first one
    /// without a row.
    stretches: Vec<Stretch>,
    /// The number of events.
    length: usize,
}

/// Consecutive events without rows, because they share the row of the event before them.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// The index of its first event in [`Rest`].
    from: usize,
    length: usize,
    /// The number of earlier events in `Rest` that have rows.
    rows: usize,
}

/// The shortest stretch without rows. In a shorter one each event has a row.
const LONG: usize = if cfg!(test) { 2 } else { 256 };

/// The number of rows from which on their list should not be moved again and again as it grows.
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
    /// The number of events.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.rows.len() + self.rest.length
    }

    /// The row of the event at `position`, and the distance of the event behind the first event
    /// with this row.
    #[inline]
    pub(super) fn find(&self, position: u32) -> (&Row, usize) {
        match self.rows.get(position as usize) {
            Some(row) => (row, 0),
            None => self.far(position as usize),
        }
    }

    /// The thread, index and clock of the event at `position`.
    ///
    /// The fields are read one by one, as they were written: a processor stalls on a read of a row
    /// just written if the pieces of the read differ from those of the writes.
    #[inline]
    pub(super) fn whose(&self, position: u32) -> Whose {
        let (row, further) = self.find(position);
        row.whose.behind(further)
    }

    /// The row of the event at `position`. All fields but the index are those of the event.
    #[inline]
    pub(super) fn row(&self, position: u32) -> &Row {
        self.find(position).0
    }

    /// [`Rows::row`] if the event exists.
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

    /// For a position behind the first event without a row: the row of the event, and the distance
    /// of the event behind the first event with this row.
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

    /// The row of the last event, and the distance of the event behind the first event with this
    /// row.
    #[inline]
    pub(super) fn last(&self) -> Option<(&Row, usize)> {
        match self.rest.length {
            0 => self.rows.last().map(|row| (row, 0)),
            length => Some(self.far(self.rows.len() + length - 1)),
        }
    }

    /// Whether there are so many rows that moving them takes long.
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

    /// Adds `length` events behind the last one, which accesses no object. They are of the same
    /// thread and share its row and its clock.
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

    /// Forgets the events from `length` on. `forget` is called for each of their rows, from the
    /// last one on.
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

    /// Changes the start of each clock.
    pub(super) fn move_clocks(&mut self, moved: impl Fn(u32) -> u32) {
        for row in self.rows.iter_mut().chain(&mut self.rest.rows) {
            row.whose.clock = moved(row.whose.clock);
        }
    }
}

impl Rest {
    /// [`Rows::truncate`] for the rest.
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

    /// The rows as they would be without stretches.
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

    /// The row of the event at `position`, which accesses an object if `position` is odd.
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
            // The row has all fields of the event but the index and the flag for an own clock.
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
                        // Each event that accesses an object has a row, so `forget` is called for
                        // it.
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
