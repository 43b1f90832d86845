//! Which memory was used, freed or kept wrongly, and which places of its life are known?

use super::{Gathering, Place, nth_of};
use crate::rt::event::id::ThreadId;
use crate::rt::event::verdict::{BadMemory, Block, Effect, Gone, Wrong};
use crate::rt::report::places::Life;

/// A wrong use of memory.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(crate) struct Misuse {
    pub(crate) thread: usize,
    /// The last event of the thread before the wrong use.
    pub(crate) after: Option<usize>,
    pub(crate) words: String,
    /// The place, if it is known.
    pub(crate) place: Option<Place>,
    /// The thread that had freed the block, and its last event before the free.
    pub(crate) freed_by: Option<usize>,
    pub(crate) freed_after: Option<usize>,
    /// The thread that owned the stack with the memory; the thread has ended.
    pub(crate) stack_of: Option<usize>,
}

/// A heap block. Places are `file:line`, and known only with debug information.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(crate) struct Allocation {
    /// In bytes.
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) thread: usize,
    /// The last event of the thread before the allocation.
    pub(crate) after: Option<usize>,
    pub(crate) allocated: Option<String>,
    pub(crate) freed: Option<String>,
    pub(crate) freed_again: Option<String>,
}

/// The wrong use that ended the execution.
pub(super) fn misuse(data: &mut Gathering<'_>, bad: &BadMemory, place: Option<Place>) -> Misuse {
    let words = match bad.wrong {
        Wrong::Operation(operation, _) => data.names.announced(&operation),
        Wrong::Access(effect, ..) => {
            let verb = match effect {
                Effect::Read | Effect::AtomicRead => "reads",
                Effect::Write | Effect::AtomicWrite | Effect::Free | Effect::End | Effect::Make => {
                    "writes"
                }
            };
            let cell = data.names.memory().unwrap_or("a cell");
            format!("{verb} {cell}")
        }
        Wrong::Raw { offset } => {
            let place = data.view.life.faulted.as_ref();
            let place = place.map_or(String::new(), |place| format!(" {place}"));
            format!("uses byte {offset} of the block{place}")
        }
        Wrong::FreedTwice => "frees the block again".to_owned(),
        Wrong::Layout { size, align } => {
            format!("frees the block as {size} bytes aligned to {align}")
        }
        Wrong::Inside { offset } => format!("frees what is {offset} bytes inside the block"),
    };
    let (freed, stack) = match bad.memory {
        Gone::Block(_, freed) => (freed, None),
        Gone::Stack(owner) => (None, Some(owner)),
    };
    Misuse {
        thread: data.thread(bad.thread),
        after: last_event(data, bad.thread, bad.after),
        words,
        place,
        freed_by: freed.map(|(thread, _)| data.thread(thread)),
        freed_after: freed.and_then(|(thread, events)| last_event(data, thread, events)),
        stack_of: stack.map(|thread| data.thread(thread)),
    }
}

/// A block; its places are in `life`, if that is the life of this block.
pub(super) fn allocation(data: &Gathering<'_>, block: &Block, life: Option<&Life>) -> Allocation {
    let known = |place: fn(&Life) -> &Option<String>| life.and_then(|life| place(life).clone());
    Allocation {
        size: block.size,
        align: block.align,
        thread: data.thread(block.thread),
        after: last_event(data, block.thread, block.events),
        allocated: known(|life| &life.allocated),
        freed: known(|life| &life.freed),
        freed_again: known(|life| &life.again),
    }
}

/// The number of the last event among the thread's first `events` events.
fn last_event(data: &Gathering<'_>, thread: ThreadId, events: u32) -> Option<usize> {
    let position = nth_of(data.view.trace, thread, events.checked_sub(1)?)?;
    Some(position as usize + 1)
}
