//! What does a mutex do with an operation?

use super::NOBODY;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Outcome};

/// A mutex: its holder, and the number of changes to its data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Mutex {
    pub(crate) holder: Option<ThreadId>,
    pub(crate) version: u32,
}

impl Mutex {
    /// A mutex with the value `held` in its memory when an execution meets it.
    pub(crate) fn met(held: u64) -> Mutex {
        Mutex {
            holder: (held != 0).then_some(NOBODY),
            version: 0,
        }
    }

    /// [`State::pack`](super::State::pack).
    #[inline]
    pub(crate) fn pack(self) -> u64 {
        let holder = self.holder.map_or(0, |thread| thread.0 as u64 + 1);
        (self.version as u64) << 32 | holder
    }

    /// [`State::unpack`](super::State::unpack).
    pub(crate) fn unpack(word: u64) -> Mutex {
        let holder = (word as u32).checked_sub(1);
        Mutex {
            holder: holder.map(ThreadId),
            version: (word >> 32) as u32,
        }
    }

    /// [`State::polled`](super::State::polled).
    #[inline]
    pub(crate) fn polled(self) -> u64 {
        (self.version as u64) << 2 | self.holder.is_some() as u64
    }
}

/// Whether `kind` is enabled. A thread that locks a mutex it already holds is blocked for ever.
pub(crate) fn enabled(mutex: Mutex, kind: &OpKind) -> bool {
    match kind {
        OpKind::Lock => mutex.holder.is_none(),
        _ => true,
    }
}

/// Applies an enabled operation of `thread`. With another alternative than 0 a `try_lock` fails,
/// because its thread has read an older state ([`orders`](crate::rt::object::orders)).
#[inline]
pub(crate) fn apply(
    mutex: Mutex,
    thread: ThreadId,
    kind: &OpKind,
    alternative: u32,
) -> (Mutex, Outcome) {
    let held = Mutex {
        holder: Some(thread),
        ..mutex
    };
    match kind {
        OpKind::Lock => (held, Outcome::Done),
        OpKind::TryLock if mutex.holder.is_none() && alternative == 0 => {
            (held, Outcome::Success(0))
        }
        OpKind::TryLock => (mutex, Outcome::Failure(1)),
        OpKind::Unlock { changed } => {
            let version = mutex.version.wrapping_add(*changed as u32);
            let holder = None;
            (Mutex { holder, version }, Outcome::Done)
        }
        other => super::misplaced(other),
    }
}
