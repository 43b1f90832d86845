//! What do a shim and the runtime tell each other?

use crate::rt::event::operation::{AtomicType, ObjectKind, Outcome};

/// The object of an operation, as a shim knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// The address of the shim. It is the object's identity while the execution lasts.
    pub(crate) address: usize,
    pub(crate) kind: ObjectKind,
    /// What the shim's own memory holds: the value of an atomic, the numbers of references of a
    /// count (weak ones in units of [`WEAK`](super::WEAK)), 1 for a mutex that is held and 0 for
    /// one that is not. Memory is the truth: if it differs from what the runtime remembers,
    /// somebody wrote through `&mut` or made a new object in the same place.
    pub(crate) memory: u64,
}

impl Target {
    /// An atomic at this address that holds `memory`.
    #[inline(always)]
    pub(crate) fn atomic(address: usize, ty: AtomicType, memory: u64) -> Target {
        Target {
            address,
            kind: ObjectKind::Atomic(ty),
            memory,
        }
    }

    /// A reference count at this address that holds `memory`.
    #[inline(always)]
    pub(crate) fn count(address: usize, observed: bool, memory: u64) -> Target {
        Target {
            address,
            kind: ObjectKind::Count { observed },
            memory,
        }
    }

    /// A park token. It is behind no address, and has no memory.
    #[inline(always)]
    pub(super) fn token() -> Target {
        Target {
            address: 0,
            kind: ObjectKind::Token,
            memory: 0,
        }
    }

    /// A mutex at this address whose memory says whether it is held.
    #[inline(always)]
    pub(crate) fn mutex(address: usize, held: bool) -> Target {
        Target {
            address,
            kind: ObjectKind::Mutex,
            memory: held as u64,
        }
    }
}

/// The memory of a shim that is more than a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) start: *mut u8,
    pub(crate) size: usize,
    /// Drops the data, given `start`; `None` if that would do nothing.
    pub(crate) drop: Option<unsafe fn(*mut u8)>,
    /// Whether the data is still the one that the shim was made with.
    pub(crate) fresh: bool,
}

/// What became of an announced operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// No exploration runs on this OS thread: behave as std does.
    Outside,
    /// The execution is being torn down: do what std does, but never block.
    Inert,
    /// It is this thread's turn, and the operation had this outcome. The shim now does the same to
    /// its own memory; no other thread runs before it announces its next operation.
    Done(Outcome),
}
