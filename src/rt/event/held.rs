//! Which data was behind a lock, when an event took or released it?

use super::id::ThreadId;

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
