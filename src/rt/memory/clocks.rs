//! What does an event know of the others?
//!
//! A row has a word for each thread: how many of the thread's events are known. A row is never
//! changed once it is made, so events share rows, and to take an event back is to cut the rows off
//! that it has made.

use crate::rt::event::id::ThreadId;

/// A row, by its number.
pub(crate) type Row = u32;

/// The row that knows nothing.
pub(crate) const NOTHING: Row = 0;

#[derive(Clone, Debug)]
pub(crate) struct Rows {
    width: usize,
    words: Vec<u32>,
}

impl Rows {
    /// Rows for so many threads.
    pub(crate) fn new(threads: usize) -> Rows {
        Rows {
            width: threads,
            words: vec![0; threads],
        }
    }

    /// The number of threads that there is room for.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Makes room for so many threads. The rows keep what they know.
    pub(crate) fn widen(&mut self, threads: usize) {
        let rows = self.words.len() / self.width.max(1);
        let mut words = vec![0; rows.max(1) * threads];
        for (new, old) in words
            .chunks_exact_mut(threads)
            .zip(self.words.chunks_exact(self.width.max(1)))
        {
            new[..old.len()].copy_from_slice(old);
        }
        (self.width, self.words) = (threads, words);
    }

    /// How many rows there are, for [`Rows::truncate`].
    pub(crate) fn mark(&self) -> usize {
        self.words.len() / self.width
    }

    /// Forgets the rows that were made since.
    pub(crate) fn truncate(&mut self, mark: usize) {
        self.words.truncate(mark * self.width);
    }

    pub(crate) fn words(&self, row: Row) -> &[u32] {
        let start = row as usize * self.width;
        &self.words[start..start + self.width]
    }

    /// How many events of `thread` the row knows.
    #[inline]
    pub(crate) fn get(&self, row: Row, thread: ThreadId) -> u32 {
        self.words[row as usize * self.width + thread.index()]
    }

    /// What `a` and `b` know.
    pub(crate) fn join(&mut self, a: Row, b: Row) -> Row {
        let covers = |more: Row, less: Row| {
            let pairs = self.words(more).iter().zip(self.words(less));
            pairs.into_iter().all(|(more, less)| more >= less)
        };
        if a == b || b == NOTHING || a != NOTHING && covers(a, b) {
            return a;
        }
        if a == NOTHING || covers(b, a) {
            return b;
        }
        let joined = self.copy(a);
        self.add(joined, b);
        joined
    }

    /// What `row` and `other` know, and `count` events of `thread`: `row` itself if it knows that.
    pub(crate) fn learn(&mut self, row: Row, other: Row, (thread, count): (ThreadId, u32)) -> Row {
        let mut pairs = self.words(row).iter().zip(self.words(other));
        let is_known = self.get(row, thread) >= count;
        if is_known && (row == other || pairs.all(|(mine, theirs)| mine >= theirs)) {
            return row;
        }
        let new = self.copy(row);
        self.add(new, other);
        let word = &mut self.words[new as usize * self.width + thread.index()];
        *word = count.max(*word);
        new
    }

    /// What `a` and `b` know, and `count` events of `thread`.
    pub(crate) fn joined(&mut self, (a, b): (Row, Row), thread: ThreadId, count: u32) -> Row {
        let new = self.copy(a);
        self.add(new, b);
        self.words[new as usize * self.width + thread.index()] = count;
        new
    }

    /// Adds what `other` knows to the row that was made last, before it is handed out.
    #[inline]
    pub(crate) fn add(&mut self, last: Row, other: Row) {
        if other == NOTHING {
            return;
        }
        debug_assert_eq!((last as usize + 1) * self.width, self.words.len());
        let (earlier, mine) = self.words.split_at_mut(last as usize * self.width);
        let start = other as usize * self.width;
        let theirs = &earlier[start..start + self.width];
        for (mine, &theirs) in mine.iter_mut().zip(theirs) {
            *mine = theirs.max(*mine);
        }
    }

    fn copy(&mut self, row: Row) -> Row {
        let new = self.words.len() / self.width;
        let start = row as usize * self.width;
        self.words.extend_from_within(start..start + self.width);
        new as Row
    }
}
