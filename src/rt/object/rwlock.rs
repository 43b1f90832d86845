//! What does a reader-writer lock do with an operation?
//!
//! Readers share the lock, and neither readers nor writers are preferred: a reader may acquire the
//! lock while a writer waits.

use super::NOBODY;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Outcome};

/// A reader-writer lock: its writer or its number of readers, and the number of changes to its
/// data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct RwLock {
    pub(crate) writer: Option<ThreadId>,
    pub(crate) readers: u32,
    pub(crate) version: u32,
}

impl RwLock {
    /// A lock with the value `held` in its memory when an execution meets it.
    pub(crate) fn met(held: u64) -> RwLock {
        let (writer, readers) = match held {
            u64::MAX => (Some(NOBODY), 0),
            readers => (None, readers as u32),
        };
        RwLock {
            writer,
            readers,
            version: 0,
        }
    }

    fn admits_reader(self) -> bool {
        self.writer.is_none()
    }

    fn admits_writer(self) -> bool {
        self.writer.is_none() && self.readers == 0
    }
}

/// Whether `kind` is enabled in this state.
pub(crate) fn enabled(lock: RwLock, kind: &OpKind) -> bool {
    match kind {
        OpKind::ReadLock => lock.admits_reader(),
        OpKind::WriteLock => lock.admits_writer(),
        _ => true,
    }
}

/// Applies an enabled operation of `thread`.
pub(crate) fn apply(lock: RwLock, thread: ThreadId, kind: &OpKind) -> (RwLock, Outcome) {
    let read = RwLock {
        writer: None,
        readers: lock.readers + 1,
        ..lock
    };
    let written = RwLock {
        writer: Some(thread),
        readers: 0,
        ..lock
    };
    match kind {
        OpKind::ReadLock => (read, Outcome::Done),
        OpKind::TryRead if lock.admits_reader() => (read, Outcome::Success(0)),
        OpKind::WriteLock => (written, Outcome::Done),
        OpKind::TryWrite if lock.admits_writer() => (written, Outcome::Success(0)),
        OpKind::TryRead | OpKind::TryWrite => (lock, Outcome::Failure(1)),
        OpKind::UnlockRead => {
            let readers = lock.readers.saturating_sub(1);
            (RwLock { readers, ..lock }, Outcome::Done)
        }
        OpKind::UnlockWrite { changed } => {
            let version = lock.version.wrapping_add(*changed as u32);
            let free = RwLock::default();
            (RwLock { version, ..free }, Outcome::Done)
        }
        OpKind::Downgrade => (
            RwLock {
                writer: None,
                readers: 1,
                version: lock.version.wrapping_add(1),
            },
            Outcome::Done,
        ),
        other => super::misplaced(other),
    }
}
