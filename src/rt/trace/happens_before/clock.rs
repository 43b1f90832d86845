//! Where are clocks kept, and how do two become one?
//!
//! Each clock has a word for every thread, and one stands behind the other, so that a clock is told by where its
//! words begin. It leaves out the component of its event's own thread: the word that is there is an
//! earlier event's, and whoever learns of the event puts the right one there.

use super::ThreadId;
use crate::rt::pooled::Empty;

/// So many words are compared at once. They are signed, because of unsigned words not every processor can tell
/// which is greater.
const LANE: usize = 4;
type Lane = [i32; LANE];

/// For how many clocks room is made at once.
const CHUNK: usize = 32;

/// The clock of what knows of no other thread.
pub(super) const NOTHING: u32 = 0;

/// The words of many clocks.
#[derive(Default, Clone, Debug)]
pub(super) struct Clocks {
    words: Vec<i32>,
    /// How many words a clock has, which is a multiple of [`LANE`].
    width: usize,
    /// Where the next clock begins. The words from here on are left over from clocks that are gone.
    end: usize,
}

impl Empty for Clocks {
    fn empty(&mut self) {
        let Clocks { words, width, end } = self;
        words.empty();
        (*width, *end) = (0, 0);
    }
}

impl Clocks {
    /// How many events of `thread` are in this clock of another thread.
    #[inline]
    pub(super) fn get(&self, clock: u32, thread: ThreadId) -> u32 {
        if thread.index() < self.width {
            self.word(clock, thread)
        } else {
            0
        }
    }

    /// [`Clocks::get`] for a thread that has an event with a clock.
    #[inline]
    pub(super) fn word(&self, clock: u32, thread: ThreadId) -> u32 {
        self.words[clock as usize + thread.index()] as u32
    }

    /// All words of this clock.
    #[inline]
    pub(super) fn words(&self, clock: u32) -> &[i32] {
        &self.words[clock as usize..][..self.width]
    }

    /// How many threads a clock can know.
    #[inline]
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Makes every clock wide enough for so many threads. The n-th clock stays the n-th.
    #[cold]
    pub(super) fn widen(&mut self, threads: usize) {
        let (before, width) = (self.width, threads.next_multiple_of(LANE));
        // At first there is only the clock of nothing.
        let clocks = self.end.checked_div(before).unwrap_or(1);
        let mut words = match before {
            // There may be room that was left.
            0 => std::mem::take(&mut self.words),
            _ => Vec::new(),
        };
        words.resize((clocks + CHUNK) * width, 0);
        if before > 0 {
            let old = self.words.chunks_exact(before);
            for (new, old) in words.chunks_exact_mut(width).zip(old).take(clocks) {
                new[..before].copy_from_slice(old);
            }
        }
        (self.words, self.width, self.end) = (words, width, clocks * width);
    }

    /// Forgets the clock that begins here, and all that were made after it.
    #[inline]
    pub(super) fn truncate(&mut self, clock: u32) {
        self.end = clock as usize;
    }

    /// Makes a clock of this one and of an event: `theirs` and `count` are its clock and how many events of its
    /// thread there are with it.
    ///
    /// It is inlined where many clocks are made, one behind the other.
    #[inline(always)]
    pub(super) fn join(&mut self, mine: u32, theirs: u32, thread: ThreadId, count: u32) -> u32 {
        let (width, start) = (self.width, self.end);
        self.end += width;
        if self.words.len() < self.end {
            self.words.resize(self.end + CHUNK * width, 0);
        }
        let (earlier, words) = self.words.split_at_mut(start);
        let words = &mut words[..width];
        let of = |clock: u32| earlier[clock as usize..][..width].as_chunks().0;
        let parts = of(mine).iter().zip(of(theirs));
        for (word, (&my, &their)) in words.as_chunks_mut().0.iter_mut().zip(parts) {
            *word = latest(my, their);
        }
        words[thread.index()] = count as i32;
        start as u32
    }

    /// [`Clocks::join`] for one clock now and then.
    #[inline(never)]
    pub(super) fn join_apart(
        &mut self,
        mine: u32,
        theirs: u32,
        thread: ThreadId,
        count: u32,
    ) -> u32 {
        self.join(mine, theirs, thread, count)
    }

    /// Joins an event into the clock that was made last.
    #[inline(never)]
    pub(super) fn join_into(&mut self, mine: u32, theirs: u32, thread: ThreadId, count: u32) {
        let (earlier, words) = self.words.split_at_mut(mine as usize);
        let words = &mut words[..self.width];
        let theirs = earlier[theirs as usize..][..self.width].as_chunks().0;
        for (word, &their) in words.as_chunks_mut().0.iter_mut().zip(theirs) {
            *word = latest(*word, their);
        }
        words[thread.index()] = count as i32;
    }
}

/// The greater one of each two components.
#[inline]
fn latest(a: Lane, b: Lane) -> Lane {
    std::array::from_fn(|i| a[i].max(b[i]))
}
