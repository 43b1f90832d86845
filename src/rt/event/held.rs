//! Which data was behind a lock, when an event took or released it, and which data did an access to
//! plain memory find and leave?

use super::id::{Region, ThreadId};
use super::verdict::Access;

/// Data behind a lock at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Datum {
    /// A value, as `Debug` prints it.
    Value(String),
    /// The address in a raw pointer.
    Pointer(u64),
    /// A hash of the bytes of any other data.
    Bytes(u64),
}

/// The data at an event that takes or releases a lock.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) thread: ThreadId,
    /// The index of the event in its thread, counted from 0.
    pub(crate) index: u32,
    pub(crate) datum: Datum,
}

/// An access to plain memory.
#[derive(Clone, Debug)]
pub(crate) struct Touched {
    pub(crate) access: Access,
    /// The numbers of events and of fences of the execution before it.
    pub(crate) events: u32,
    pub(crate) fences: u32,
    pub(crate) region: Region,
    pub(crate) start: usize,
    /// The data before the access, and behind it if the access may have changed the data.
    pub(crate) found: Option<Datum>,
    pub(crate) left: Option<Datum>,
}

/// The moment at which an access has this data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    Found,
    Left,
}
