//! Where are clocks stored, and how are two clocks joined?
//!
//! Each clock has a word for every thread, and the clocks are stored one behind the other, so that
//! a clock is named by the index of its first word. It leaves out the component of its event's own
//! thread: the word there belongs to an earlier event, and an event that joins the clock puts the
//! right number there.

use crate::rt::event::id::ThreadId;
use crate::rt::pooled::Empty;

/// The number of words that are compared at once. The words are signed, because not every processor
/// can compare unsigned vectors.
const LANE: usize = 4;

/// The number of clocks that one growth makes room for.
const CHUNK: usize = 32;

/// The number of words that are allocated without asking the system whether it has the memory: 16
/// MB.
const LARGE: usize = 1 << 22;

/// The clock of an event that no other thread's event happens before.
pub(super) const NOTHING: u32 = 0;

/// The words of many clocks.
#[derive(Default, Clone, Debug)]
pub(super) struct Clocks {
    words: Vec<i32>,
    /// The number of words of a clock, a multiple of [`LANE`].
    width: usize,
    /// The start of the next clock, for which there is room. The words from here on are left over
    /// from dropped clocks.
    end: usize,
}

impl Empty for Clocks {
    fn empty(&mut self) {
        let Clocks { words, width, end } = self;
        words.empty();
        (*width, *end) = (0, 0);
    }
}

/// The width of a clock, which had `before` words, for `threads` threads.
fn width_for(before: usize, threads: usize) -> usize {
    threads.max(before + before / 4).next_multiple_of(LANE)
}

impl Clocks {
    /// The number of events of `thread` in this clock of another thread.
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

    /// The number of threads that a clock covers.
    #[inline]
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// The size in bytes of the clocks of so many events by so many threads, if the size is large
    /// and the system does not have that much memory. Their allocation would end the process.
    #[inline]
    pub(super) fn lack(&mut self, events: usize, threads: usize) -> Option<usize> {
        let width = if threads <= self.width {
            self.width
        } else {
            width_for(self.width, threads)
        };
        let words = width.saturating_mul(events + 2 * CHUNK);
        if words <= LARGE.max(self.words.capacity()) {
            return None;
        }
        let more = words - self.words.len();
        let lacks = self.words.try_reserve_exact(more).is_err();
        lacks.then_some(words.saturating_mul(size_of::<i32>()))
    }

    /// Makes every clock wide enough for `threads` threads. The n-th clock stays the n-th.
    ///
    /// All clocks are moved, so a long execution that keeps spawning threads gets room for some
    /// more.
    #[cold]
    pub(super) fn widen(&mut self, threads: usize) {
        let before = self.width;
        let width = width_for(before, threads);
        // At first there is only the clock [`NOTHING`].
        let clocks = self.end.checked_div(before).unwrap_or(1);
        // There may be unused room. Fresh memory would come from the system, which takes longer
        // than the move.
        self.words.resize((clocks + CHUNK) * width, 0);
        for clock in (0..clocks).rev() {
            let (from, to) = (clock * before, clock * width);
            self.words.copy_within(from..from + before, to);
            self.words[to + before..to + width].fill(0);
        }
        (self.width, self.end) = (width, clocks * width);
    }

    /// Drops the clock that begins here, and all later ones.
    #[inline]
    pub(super) fn truncate(&mut self, clock: u32) {
        self.end = clock as usize;
    }

    /// Makes a clock of this one and of an event: `theirs` is the clock of the event, and `count`
    /// is its index plus one.
    ///
    /// It is inlined into the loops that make many clocks. Mostly there are few threads.
    #[inline(always)]
    pub(super) fn join(&mut self, mine: u32, theirs: u32, thread: ThreadId, count: u32) -> u32 {
        match self.width {
            4 => self.join_words(4, mine, theirs, thread, count),
            8 => self.join_words(8, mine, theirs, thread, count),
            12 => self.join_words(12, mine, theirs, thread, count),
            _ => self.join_many(mine, theirs, thread, count),
        }
    }

    /// [`Clocks::join`] for clocks of any width.
    #[inline(never)]
    fn join_many(&mut self, mine: u32, theirs: u32, thread: ThreadId, count: u32) -> u32 {
        self.join_words(self.width, mine, theirs, thread, count)
    }

    /// [`Clocks::join`] for clocks of `width` words. With a constant width there is no loop.
    #[inline(always)]
    fn join_words(
        &mut self,
        width: usize,
        mine: u32,
        theirs: u32,
        thread: ThreadId,
        count: u32,
    ) -> u32 {
        let start = self.end;
        let (earlier, words) = self.words.split_at_mut(start);
        let words = &mut words[..width];
        let of = |clock: u32| earlier[clock as usize..][..width].as_chunks::<LANE>().0;
        let parts = of(mine).iter().zip(of(theirs));
        for (word, (&my, &their)) in words.as_chunks_mut().0.iter_mut().zip(parts) {
            *word = latest(my, their);
        }
        words[thread.index()] = count as i32;
        self.end = start + width;
        self.with_room_behind(start)
    }

    /// The clock at `start`, which is the last one, after making room for another one.
    #[inline(always)]
    fn with_room_behind(&mut self, start: usize) -> u32 {
        if self.words.len() < self.end + self.width {
            self.make_room(start)
        } else {
            start as u32
        }
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, start: usize) -> u32 {
        self.words.resize(self.end + CHUNK * self.width, 0);
        start as u32
    }

    /// [`Clocks::join`] for callers that rarely make a clock.
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

    /// Joins an event into the last clock.
    #[inline(never)]
    pub(super) fn join_into(&mut self, mine: u32, theirs: u32, thread: ThreadId, count: u32) {
        let (earlier, words) = self.words.split_at_mut(mine as usize);
        match self.width {
            4 => join_words_into(4, words, earlier, theirs),
            8 => join_words_into(8, words, earlier, theirs),
            12 => join_words_into(12, words, earlier, theirs),
            width => join_words_into(width, words, earlier, theirs),
        }
        words[thread.index()] = count as i32;
    }
}

/// Joins the clock `theirs`, one of the `earlier` ones, into the first clock of `words`. Clocks
/// have `width` words; with a constant width there is no loop.
#[inline(always)]
fn join_words_into(width: usize, words: &mut [i32], earlier: &[i32], theirs: u32) {
    let theirs = &earlier[theirs as usize..][..width];
    let words = words[..width].as_chunks_mut().0.iter_mut();
    for (word, &their) in words.zip(theirs.as_chunks().0) {
        *word = latest(*word, their);
    }
}

/// The maximum of each component.
#[inline]
fn latest(a: [i32; LANE], b: [i32; LANE]) -> [i32; LANE] {
    std::array::from_fn(|i| a[i].max(b[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test covers every width, because the width selects the code of a join.
    #[test]
    fn a_clock_of_two_knows_the_later_of_each_thread_however_many_there_are() {
        for threads in 1..=20 {
            let mut clocks = Clocks::default();
            clocks.widen(threads);
            let width = clocks.width();
            let mut expected = vec![vec![0; width]];
            // These are more clocks than there is room for at first.
            for made in 1..=3 * CHUNK {
                let (mine, theirs) = (made / 2, made * 2 / 3);
                let (thread, count) = (made * 11 % threads, 1000 - made);
                let at = |clock: usize| (clock * width) as u32;
                let id = ThreadId(thread as u32);
                let both = expected[mine].iter().zip(&expected[theirs]);
                let mut both: Vec<i32> = both.map(|(&my, &their)| my.max(their)).collect();
                both[thread] = count as i32;
                let clock = clocks.join(at(mine), at(theirs), id, count as u32);
                assert_eq!((clock, clocks.words(clock)), (at(made), &both[..]));
                // A clock that is joined into the last one is contained in it, too.
                let late = made * 3 / 4;
                let joined = both.iter().zip(&expected[late]);
                let mut both: Vec<i32> = joined.map(|(&my, &their)| my.max(their)).collect();
                both[thread] = count as i32 + 1;
                clocks.join_into(clock, at(late), id, count as u32 + 1);
                assert_eq!(clocks.words(clock), both, "{threads} threads");
                expected.push(both);
            }
        }
    }

    #[test]
    fn a_clock_stays_what_it_is_where_it_gets_room_for_more_threads() {
        let mut clocks = Clocks::default();
        let mut expected = vec![];
        for threads in 1..=40 {
            if clocks.width() < threads {
                clocks.widen(threads);
            }
            // The left-over words of a dropped clock do not count for another thread.
            let gone = clocks.join(NOTHING, NOTHING, ThreadId(0), 9);
            clocks.truncate(gone);
            let thread = threads - 1;
            clocks.join(NOTHING, NOTHING, ThreadId(thread as u32), threads as u32);
            expected.push((thread, threads as i32));
            let width = clocks.width();
            assert!(clocks.words(NOTHING).iter().all(|&word| word == 0));
            for (n, &(thread, count)) in expected.iter().enumerate() {
                let mut words = vec![0; width];
                words[thread] = count;
                assert_eq!(clocks.words(((n + 1) * width) as u32), words);
            }
        }
    }

    #[test]
    fn clocks_are_not_moved_for_each_few_threads_more() {
        let mut clocks = Clocks::default();
        let mut moved = 0;
        for threads in 1..=10_000 {
            if clocks.width() < threads {
                clocks.widen(threads);
                moved += 1;
            }
            let room = clocks.width();
            assert!(
                (threads..=threads + threads / 4 + LANE).contains(&room),
                "{room}"
            );
        }
        assert!(moved < 50, "{moved}");
    }
}
