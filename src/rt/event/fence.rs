//! Why is a fence not an event?
//!
//! If memory is sequentially consistent, a fence changes only what its thread may tell and learn,
//! for the detector of data races, and it commutes with all operations of other threads. If it were
//! an event, it would be a scheduling point, and a program that makes fences depending on state the
//! model does not control (collectors of epochs do, by counters in statics of std's) would be
//! reported as not deterministic. So a fence happens together with the actions behind it in its
//! thread, up to the next event. If memory is C11's, it is a part of that event: graphs have it
//! before the step (`memory/operation.rs`).
//!
//! Neither are the parts of a block that is one step events: no other thread runs in between. But
//! what they tell other threads, and learn from them, is up to their own orderings, and reports
//! show them.

use std::sync::atomic::Ordering;

use crate::rt::event::id::{ObjectId, ThreadId};
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

/// A part of a block.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) thread: ThreadId,
    /// The number of events of the execution before the part, and of those of its thread. The last
    /// of them is the block.
    pub(crate) before: u32,
    pub(crate) after: u32,
    pub(crate) what: What,
    pub(crate) made: MadeSoFar,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    /// The block begins. It reads these objects, or writes them; instead of an object, `None`
    /// stands for everything.
    Begins(Vec<(Option<ObjectId>, bool)>),
    /// An operation. It has the index of the block.
    Operation(Event),
    Ends,
}

impl Part {
    /// The operation, if the part is one.
    pub(crate) fn operation(&self) -> Option<&Event> {
        match &self.what {
            What::Operation(event) => Some(event),
            What::Begins(_) | What::Ends => None,
        }
    }

    /// Whether time passes with the part: a store publishes the accesses to plain memory in front
    /// of it, and not those behind it.
    pub(crate) fn takes_time(&self) -> bool {
        !matches!(self.what, What::Begins(_))
    }
}

/// The events and fences of an execution so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Past<'a> {
    pub(crate) events: &'a [Event],
    /// All fences so far, in order.
    pub(crate) fences: &'a [Fence],
    /// The parts of all blocks so far, in order.
    pub(crate) parts: &'a [Part],
}

/// An item that advances the clocks of the detector of data races.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move<'a> {
    Event(usize, &'a Event),
    Fence(&'a Fence),
    Part(&'a Part),
}

impl<'a> Past<'a> {
    /// The events and fences since the given numbers of them, in order, with the parts of blocks.
    /// Events come with their positions.
    pub(crate) fn moves_since(
        self,
        (events, fences): (usize, usize),
    ) -> impl Iterator<Item = Move<'a>> {
        let mut fences = self.fences[fences.min(self.fences.len())..]
            .iter()
            .peekable();
        let is_old = move |part: &&Part| part.before as usize <= events;
        let mut parts = self.parts.iter().skip_while(is_old).peekable();
        let all = self.events.len();
        let mut events = (self.events.iter().enumerate()).skip(events).peekable();
        std::iter::from_fn(move || {
            let next = events.peek().map(|&(position, _)| position);
            // A block has no fences, so its parts come before the fences behind it.
            let is_due = |part: &&Part| part.before as usize <= next.unwrap_or(all);
            if let Some(part) = parts.next_if(is_due) {
                return Some(Move::Part(part));
            }
            let is_next = |fence: &&Fence| next.is_none_or(|next| fence.before as usize <= next);
            match fences.next_if(is_next) {
                Some(fence) => Some(Move::Fence(fence)),
                None => events
                    .next()
                    .map(|(position, event)| Move::Event(position, event)),
            }
        })
    }

    /// All events, fences and parts of blocks, in order.
    pub(crate) fn moves(self) -> impl Iterator<Item = Move<'a>> {
        self.moves_since((0, 0))
    }
}
