//! Which data do a shim and the runtime exchange?

use crate::rt::event::operation::{AtomicType, ObjectKind, Outcome};

/// The object of an operation, as a shim knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// The address of the shim. It identifies the object while the execution lasts.
    pub(crate) address: usize,
    pub(crate) kind: ObjectKind,
    /// The contents of the shim's own memory: the value of an atomic, the numbers of references of
    /// a count (weak ones in units of [`WEAK`](super::WEAK)), 1 for a held mutex and 0 for a free
    /// one. Memory is the truth: if it differs from the runtime's record, the program has written
    /// through `&mut` or made a new object in the same place.
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

    /// A park token. It has no address and no memory.
    #[inline(always)]
    pub(super) fn token() -> Target {
        Target {
            address: 0,
            kind: ObjectKind::Token,
            memory: 0,
        }
    }

    /// A mutex at this address, with its held flag.
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
    /// Whether the data is still the initial data of the shim.
    pub(crate) fresh: bool,
}

/// The result of an announced operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// No exploration runs on this OS thread: behave as std does.
    Outside,
    /// The execution is being torn down: do what std does, but never block.
    Inert,
    /// The operation had this outcome. The shim now applies the operation to its own memory; no
    /// other thread runs before this thread announces its next operation.
    Done(Outcome),
}
