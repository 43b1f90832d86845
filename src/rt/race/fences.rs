//! At which time of its thread was an action done, when fences count?

use crate::rt::event::fence::MadeSoFar;
use crate::rt::event::id::ThreadId;
use crate::rt::event::verdict::Block;

/// The fences so far. The time of a thread is the number of events and fences that it has
/// performed. Fences count, because a store publishes the actions in front of a fence and not those
/// behind it.
#[derive(Debug, Default)]
pub(super) struct Fences(
    /// By thread, in order.
    Vec<Vec<OneFence>>,
);

/// The facts about a fence that are needed later.
#[derive(Debug)]
pub(super) struct OneFence {
    /// The number of events that its thread had performed.
    pub(super) after: u32,
    /// The time of its thread behind the fence.
    pub(super) behind: u32,
    pub(super) made: MadeSoFar,
}

impl OneFence {
    /// Whether its thread has made this block behind the fence.
    fn is_before(&self, block: &Block) -> bool {
        let layout = (block.size, block.align);
        let counts = self.made.iter().find(|(other, _)| *other == layout);
        self.after < block.events
            || self.after == block.events && block.nth >= counts.map_or(0, |&(_, count)| count)
    }
}

impl Fences {
    fn of(&self, thread: ThreadId) -> &[OneFence] {
        self.0.get(thread.index()).map_or(&[], Vec::as_slice)
    }

    pub(super) fn note(&mut self, thread: ThreadId, fence: OneFence) {
        if self.0.len() <= thread.index() {
            self.0.resize_with(thread.index() + 1, Vec::new);
        }
        self.0[thread.index()].push(fence);
    }

    /// The time at which this block was made.
    pub(super) fn made(&self, block: &Block) -> u32 {
        let of = self.of(block.thread);
        let passed = of.partition_point(|fence| fence.is_before(block));
        block.events + passed as u32
    }

    /// The time of the thread directly before its event with this index.
    pub(super) fn before(&self, thread: ThreadId, index: u32) -> u32 {
        let passed = self
            .of(thread)
            .partition_point(|fence| fence.after <= index);
        index + passed as u32
    }

    /// The number of events that the thread has performed by this time.
    pub(super) fn events(&self, thread: ThreadId, time: u32) -> u32 {
        let passed = self
            .of(thread)
            .partition_point(|fence| fence.behind <= time);
        time - passed as u32
    }

    pub(super) fn clear(&mut self) {
        self.0.iter_mut().for_each(Vec::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: ThreadId = ThreadId(1);

    fn fences(of: &[(u32, u32)], made: impl Fn(usize) -> MadeSoFar) -> Fences {
        let mut fences = Fences::default();
        for (nth, &(after, behind)) in of.iter().enumerate() {
            let made = made(nth);
            let one = OneFence {
                after,
                behind,
                made,
            };
            fences.note(P, one);
        }
        fences
    }

    #[test]
    fn times_count_fences_and_events() {
        // Two fences, an event, a fence, two events, a fence.
        let fences = fences(&[(0, 1), (0, 2), (1, 4), (3, 7)], |_| MadeSoFar::new());
        let before: Vec<u32> = (0..4).map(|index| fences.before(P, index)).collect();
        assert_eq!(before, [2, 4, 5, 7]);
        let events: Vec<u32> = (0..8).map(|time| fences.events(P, time)).collect();
        assert_eq!(events, [0, 0, 0, 1, 1, 2, 3, 3]);
        let other = ThreadId(2);
        assert_eq!(fences.before(other, 5), 5, "it has made none");
    }

    #[test]
    fn a_block_is_known_to_be_made_behind_a_fence_or_in_front_of_it() {
        // One block of 8 bytes and none of 16, and later two of each.
        let made = [vec![((8, 8), 1)], vec![((8, 8), 2), ((16, 8), 2)]];
        let fences = fences(&[(1, 2), (1, 3)], |nth| made[nth].clone());
        let time = |events, size, nth| {
            fences.made(&Block {
                thread: P,
                events,
                size,
                align: 8,
                nth,
            })
        };
        assert_eq!([0, 1, 2].map(|nth| time(1, 8, nth)), [1, 2, 3]);
        assert_eq!([0, 1, 2].map(|nth| time(1, 16, nth)), [2, 2, 3]);
        assert_eq!((time(0, 8, 5), time(2, 8, 0)), (0, 4));
    }
}
