//! What has a block that is one step done to the objects?
//!
//! A block is one event. What the thread does until the end of the block changes the objects, and
//! makes no event. Later the engine asks which state an object has behind other events, so each
//! block keeps the states in which it found and left the objects that it has touched. A block reads
//! nothing but its footprint, so its effect is the same wherever the events before it on these
//! objects are.

use rustc_hash::FxHashMap;

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::ObjectKind;
use crate::rt::object::State;

/// The blocks of an execution, by the thread and the number of its events before the block.
#[derive(Clone, Default, Debug)]
pub(super) struct Blocks {
    pub(super) made: FxHashMap<(ThreadId, u32), Vec<Effect>>,
    /// The block that is not over, with its footprint.
    pub(super) open: Option<((ThreadId, u32), u32)>,
}

impl Blocks {
    pub(super) fn clear(&mut self) {
        let Blocks { made, open } = self;
        made.clear();
        *open = None;
    }
}

/// The states of an object before a block and behind it.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    pub(super) object: ObjectId,
    pub(super) before: State,
    pub(super) after: State,
}

/// The reason why an operation may not be a part of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outside {
    /// The object is not in the footprint.
    Footprint,
    /// The block only reads the object, and the operation may change it.
    ReadOnly,
    /// The operation would have to wait.
    Waits,
    /// No block has operations of this kind.
    Kind,
}

/// Whether a block may use objects of this kind. The others wait, or wake threads; and the owners
/// of a value are known by the events on its count.
pub(super) fn is_for_blocks(kind: ObjectKind) -> bool {
    match kind {
        ObjectKind::Atomic(_) | ObjectKind::Mutex | ObjectKind::RwLock | ObjectKind::Opaque => true,
        ObjectKind::Count { .. }
        | ObjectKind::Thread
        | ObjectKind::Token
        | ObjectKind::Condvar
        | ObjectKind::Barrier
        | ObjectKind::Once
        | ObjectKind::Channel => false,
    }
}
