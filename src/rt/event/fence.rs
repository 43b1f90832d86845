//! Why is a fence not an event?
//!
//! If memory is sequentially consistent, a fence changes only what its thread may tell and learn,
//! for the detector of data races, and it commutes with all operations of other threads. If it were
//! an event, it would be a scheduling point, and a program that makes fences depending on state the
//! model does not control (collectors of epochs do, by counters in statics of std's) would be
//! reported as not deterministic. So a fence happens together with the actions behind it in its
//! thread, up to the next event. If memory is C11's, it is a part of that event: graphs have it
//! before the step (`memory/operation.rs`).

use std::sync::atomic::Ordering;

use crate::rt::event::id::ThreadId;
use crate::rt::event::{Event, Site};

/// A fence.
#[derive(Clone, Debug)]
pub(crate) struct Fence {
    pub(crate) thread: ThreadId,
    /// The number of events that its thread had performed.
    pub(crate) after: u32,
    /// The number of events of the execution before it.
    pub(crate) before: u32,
    pub(crate) order: Ordering,
    pub(crate) site: Site,
    pub(crate) made: MadeSoFar,
}

/// For each layout (size and alignment in bytes), the number of blocks that a thread had allocated
/// between its last event and a fence. A block is named after the last event, so its name alone
/// does not tell on which side of the fence it was made.
pub(crate) type MadeSoFar = Vec<((usize, usize), u32)>;

/// The events and fences of an execution so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Past<'a> {
    pub(crate) events: &'a [Event],
    /// All fences so far, in order.
    pub(crate) fences: &'a [Fence],
}

/// An item that advances the clocks of the detector of data races.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move<'a> {
    Event(usize, &'a Event),
    Fence(&'a Fence),
}

impl<'a> Past<'a> {
    /// The events and fences since the given numbers of them, in order. Events come with their
    /// positions.
    pub(crate) fn moves_since(
        self,
        (events, fences): (usize, usize),
    ) -> impl Iterator<Item = Move<'a>> {
        let mut fences = self.fences[fences.min(self.fences.len())..]
            .iter()
            .peekable();
        let mut events = (self.events.iter().enumerate()).skip(events).peekable();
        std::iter::from_fn(move || {
            let next = events.peek().map(|&(position, _)| position);
            let is_next = |fence: &&Fence| next.is_none_or(|next| fence.before as usize <= next);
            match fences.next_if(is_next) {
                Some(fence) => Some(Move::Fence(fence)),
                None => events
                    .next()
                    .map(|(position, event)| Move::Event(position, event)),
            }
        })
    }

    /// All events and fences, in order.
    pub(crate) fn moves(self) -> impl Iterator<Item = Move<'a>> {
        self.moves_since((0, 0))
    }
}
