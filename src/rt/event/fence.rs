//! What is a fence, which is no event?
//!
//! Values are sequentially consistent here, so a fence changes nothing but what its thread may tell
//! and learn, for the detector of data races. It commutes with all that other threads do. As an
//! event it would be a point at which threads switch, and a program that fences by state of its own
//! (the collectors of epochs do, by counters in statics of std's) would be called not
//! deterministic. So a fence happens together with what comes behind it in its thread, up to the
//! next event.

use std::sync::atomic::Ordering;

use crate::rt::event::id::ThreadId;
use crate::rt::event::{Event, Site};

/// A fence.
#[derive(Clone, Debug)]
pub(crate) struct Fence {
    pub(crate) thread: ThreadId,
    /// How many events its thread had performed.
    pub(crate) after: u32,
    /// How many events of the execution came before it.
    pub(crate) before: u32,
    pub(crate) order: Ordering,
    pub(crate) site: Site,
    pub(crate) made: MadeSoFar,
}

/// How many blocks of each layout (size and alignment in bytes) a thread had allocated since its
/// last event when it made a fence. A block is called after the event, so by its name alone it
/// could have been made on either side of the fence.
pub(crate) type MadeSoFar = Vec<((usize, usize), u32)>;

/// What has happened in an execution so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Past<'a> {
    pub(crate) events: &'a [Event],
    /// All fences so far, in order.
    pub(crate) fences: &'a [Fence],
}

/// What moves the clocks of the detector of data races.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move<'a> {
    Event(usize, &'a Event),
    Fence(&'a Fence),
}

impl<'a> Past<'a> {
    /// What has happened since there were so many events and fences, in order. Events come with
    /// their positions.
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

    /// All of it.
    pub(crate) fn moves(self) -> impl Iterator<Item = Move<'a>> {
        self.moves_since((0, 0))
    }
}
