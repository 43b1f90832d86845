//! Which number does a block have among those of its layout since its thread's last event?

use std::alloc::Layout;

use crate::rt::rare::Roomy;

/// For each thread, the number of blocks that it has allocated since its last event.
#[derive(Default)]
pub(super) struct Counters {
    /// By thread.
    threads: Vec<Counter>,
    /// The number of this execution.
    execution: u64,
}

/// For each layout, the number of blocks that a thread has allocated since its last event.
#[derive(Clone)]
struct Counter {
    execution: u64,
    events: u32,
    /// Usually there is one layout between two events.
    first: (Layout, u32),
    /// Many layouts are rare, so a list is faster than a map.
    others: Vec<(Layout, u32)>,
}

impl Counters {
    /// Forgets all blocks.
    pub(super) fn clear(&mut self) {
        self.execution += 1;
    }

    /// The number of the next block of this layout for a thread with this number of events, counted
    /// from 0.
    #[inline(always)]
    pub(super) fn next(&mut self, (thread, events): (u32, u32), layout: Layout) -> u32 {
        let execution = self.execution;
        if self.threads.len() <= thread as usize {
            self.grow(thread as usize);
        }
        let counter = &mut self.threads[thread as usize];
        if (counter.execution, counter.events) == (execution, events) {
            return counter.next(layout);
        }
        counter.execution = execution;
        counter.events = events;
        counter.first = (layout, 1);
        counter.others.clear();
        0
    }

    /// The last event of the thread is withdrawn: the blocks that the thread makes behind the next
    /// one are numbered as if it had made none.
    pub(super) fn withdraw(&mut self, thread: u32) {
        if let Some(counter) = self.threads.get_mut(thread as usize) {
            counter.execution = self.execution.wrapping_sub(1);
        }
    }

    /// For each layout, given by its size and alignment in bytes, the number of blocks that this
    /// thread has allocated since this event.
    pub(super) fn so_far(
        &self,
        (thread, events): (u32, u32),
    ) -> impl Iterator<Item = ((usize, usize), u32)> {
        let counter = self.threads.get(thread as usize);
        let is_now =
            |counter: &&Counter| (counter.execution, counter.events) == (self.execution, events);
        let counter = counter.filter(is_now);
        let counts = counter.map(|counter| counter.others.iter().chain([&counter.first]));
        let counts = counts.into_iter().flatten();
        counts.map(|&(layout, count)| ((layout.size(), layout.align()), count))
    }

    #[cold]
    fn grow(&mut self, thread: usize) {
        let counter = Counter {
            // An execution number before the first one.
            execution: self.execution.wrapping_sub(1),
            events: 0,
            first: (Layout::new::<()>(), 0),
            others: Vec::new(),
        };
        self.threads.resize(thread + 1, counter);
    }
}

impl Counter {
    /// The number of the next block of this layout, which is not the first layout.
    fn next(&mut self, layout: Layout) -> u32 {
        if self.first.0 == layout {
            self.first.1 = self.first.1.wrapping_add(1);
            return self.first.1.wrapping_sub(1);
        }
        let known = self.others.iter().position(|known| known.0 == layout);
        let Some(at) = known else {
            self.others.put((layout, 1));
            return 0;
        };
        let nth = self.others[at].1;
        self.others[at].1 = nth.wrapping_add(1);
        // The entry moves half way to the front, so that the layouts in use are found soon.
        self.others.swap(at, at / 2);
        nth
    }
}
