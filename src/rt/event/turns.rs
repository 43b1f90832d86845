//! Which thread makes the events of an execution, from which position to which?
//!
//! A *turn* is a sequence of consecutive events of one thread. Long executions have few turns, so a
//! question about the thread of each event is answered for whole turns.

use std::ops::Range;

use crate::rt::event::id::{FEW, ThreadId};
use crate::rt::pooled::Empty;
use crate::rt::rare::Roomy;

/// The turns of an execution, in order.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// The thread of each turn, and its first position. A turn ends where the next one begins.
    turns: Vec<(ThreadId, u32)>,
    /// The thread of the last turn, or a number of no thread. It is kept apart because each event
    /// reads it.
    last: ThreadId,
}

/// No thread has had a turn.
const NOBODY: ThreadId = ThreadId(u32::MAX);

impl Empty for Turns {
    fn empty(&mut self) {
        let Turns { turns, last } = self;
        turns.empty();
        *last = NOBODY;
    }
}

impl Turns {
    pub(super) fn new() -> Turns {
        Turns {
            turns: Vec::with_capacity(FEW),
            last: NOBODY,
        }
    }

    /// Whether the next event belongs to the last turn if this thread makes it.
    #[inline(always)]
    pub(super) fn goes_on(&self, thread: ThreadId) -> bool {
        self.last == thread
    }

    /// Begins a turn of this thread, which is about to make the event at `position`, behind all
    /// others. If another thread makes that event instead, its turn replaces this one.
    #[inline(always)]
    pub(super) fn note(&mut self, thread: ThreadId, position: u32) {
        if !self.goes_on(thread) {
            self.turn_to(thread, position);
        }
    }

    /// [`Turns::note`] if the last turn is that of another thread.
    #[inline(always)]
    fn turn_to(&mut self, thread: ThreadId, position: u32) {
        // The last turn has no event. If the turn before it is this thread's, that turn continues.
        self.turns.pop_if(|&mut (_, start)| start == position);
        let before = self.turns.last().map(|&(thread, _)| thread);
        if before != Some(thread) {
            self.turns.put((thread, position));
        }
        self.last = thread;
    }

    /// The turns of an execution of `length` events from `position` on. The first turn begins at
    /// `position`.
    #[inline]
    pub(super) fn behind(
        &self,
        position: u32,
        length: u32,
    ) -> impl Iterator<Item = (ThreadId, Range<u32>)> {
        let first = (self.turns.iter()).rposition(|&(_, start)| start <= position);
        let mut turns = &self.turns[first.unwrap_or(0)..];
        std::iter::from_fn(move || {
            let (&(thread, start), behind) = turns.split_first()?;
            turns = behind;
            let end = behind.first().map_or(length, |&(_, start)| start);
            Some((thread, start.max(position)..end))
        })
    }

    /// Forgets the events behind the first `kept` of `length` events. Calls back with each thread
    /// and the number of its events among these.
    #[inline]
    pub(super) fn cut(&mut self, kept: u32, length: u32, mut tell: impl FnMut(ThreadId, usize)) {
        let mut end = length;
        while end > kept
            && let Some(&(thread, start)) = self.turns.last()
        {
            tell(thread, (end - start.max(kept)) as usize);
            if start >= kept {
                self.turns.pop();
            }
            end = start;
        }
        self.last = self.turns.last().map_or(NOBODY, |&(thread, _)| thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ThreadId = ThreadId(1);
    const B: ThreadId = ThreadId(2);

    /// The turns of an execution with these threads as the threads of its events.
    fn turns(threads: &[ThreadId]) -> Turns {
        let mut turns = Turns::new();
        for (position, &thread) in (0..).zip(threads) {
            assert_eq!(
                turns.goes_on(thread),
                position > 0 && threads[position as usize - 1] == thread
            );
            turns.note(thread, position);
        }
        turns
    }

    #[test]
    fn a_turn_ends_where_another_thread_goes_on() {
        let turns = turns(&[A, A, B, A, A]);
        let behind = |position| turns.behind(position, 5).collect::<Vec<_>>();
        assert_eq!(behind(0), [(A, 0..2), (B, 2..3), (A, 3..5)]);
        assert_eq!(behind(1), [(A, 1..2), (B, 2..3), (A, 3..5)]);
        assert_eq!(behind(2), [(B, 2..3), (A, 3..5)]);
        assert_eq!(behind(4), [(A, 4..5)]);
        assert_eq!(Turns::new().behind(0, 0).count(), 0);
    }

    #[test]
    fn what_is_cut_off_is_told_and_the_turn_before_it_goes_on() {
        for (kept, told, last) in [
            (5, vec![], Some(A)),
            (4, vec![(A, 1)], Some(A)),
            (3, vec![(A, 2)], Some(B)),
            (1, vec![(A, 2), (B, 1), (A, 1)], Some(A)),
            (0, vec![(A, 2), (B, 1), (A, 2)], None),
        ] {
            let mut turns = turns(&[A, A, B, A, A]);
            let mut cut = Vec::new();
            turns.cut(kept, 5, |thread, count| cut.push((thread, count)));
            assert_eq!(cut, told, "{kept} kept");
            for thread in [A, B] {
                assert_eq!(turns.goes_on(thread), last == Some(thread), "{kept} kept");
            }
            turns.note(B, kept);
            let (thread, behind) = turns.behind(kept, kept + 1).last().unwrap();
            assert_eq!((thread, behind), (B, kept..kept + 1));
        }
    }
}
