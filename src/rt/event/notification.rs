//! How is the value of a notification of a condition variable, or of a wake-up, encoded?

use crate::rt::event::id::ThreadId;

/// The thread in the value of a notification that woke one thread; `None` if it has woken several
/// threads, or none.
pub(crate) fn woken(value: u64) -> Option<ThreadId> {
    match value as u32 {
        0 | SEVERAL => None,
        number => Some(ThreadId(number - 1)),
    }
}

/// The number of the notification in the value of a notification, or of a wake-up.
pub(crate) fn notification(value: u64) -> u16 {
    (value >> 32) as u16
}

/// Stands for several threads in the value of a notification.
pub(crate) const SEVERAL: u32 = u32::MAX;
