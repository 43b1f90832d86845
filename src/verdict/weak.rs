//! What an exploration says about weak memory.

use std::fmt;

use crate::rt::engine::driver::Driver;
use crate::rt::engine::look_out::WeakStep;
use crate::rt::event::id::Names;
use crate::rt::event::operation::OpKind;
use crate::rt::plural::counted;

/// What an exploration says about weak memory.
///
/// `Display` prints the words that the line of a [`Report`](crate::Report) has for it, which may be
/// none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeakMemory {
    /// The exploration was not asked: it is sequentially consistent by
    /// [`Memory::Sc`](crate::Memory::Sc), by an algorithm, by a schedule, or because of a block of
    /// [`atomically`](crate::atomically()). Or nothing weak was found and the exploration is not
    /// complete.
    Unasked,
    /// Under C11 the program has no other executions than those under sequential consistency.
    ///
    /// The exploration is complete, so this is a proof: the smallest execution graph that is not
    /// sequentially consistent is a prefix of one that is, and one more event; each operation of
    /// each execution was checked for such an outcome.
    Impossible,
    /// Executions under sequential consistency were explored alone, and this operation may have
    /// another outcome under C11.
    Possible {
        /// The thread, the operation and its place.
        operation: String,
    },
    /// Executions under C11 were explored, because of this operation.
    Explored {
        /// The thread, the operation and its place.
        operation: String,
        /// Number of executions that are sequentially consistent; all of them were explored before.
        sequential: u64,
    },
    /// Executions under C11 were explored because [`Memory::C11`](crate::Memory::C11) asked for
    /// them.
    Asked,
}

impl WeakMemory {
    /// Returns the name, in the form `impossible`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            WeakMemory::Unasked => "unasked",
            WeakMemory::Impossible => "impossible",
            WeakMemory::Possible { .. } => "possible",
            WeakMemory::Explored { .. } => "explored",
            WeakMemory::Asked => "asked",
        }
    }

    /// The result of a look-out: the operation that it has found, if any.
    pub(crate) fn of(found: Option<&WeakStep>, names: &Names) -> WeakMemory {
        match found {
            None => WeakMemory::Impossible,
            Some(step) => WeakMemory::Possible {
                operation: words(step, names),
            },
        }
    }
}

impl WeakMemory {
    /// The operation that the look-out of this exploration has found so far, if any.
    pub(crate) fn found(driver: &Driver) -> Option<String> {
        let found = driver.looked_out()??;
        Some(words(found, &driver.machine.names))
    }
}

/// The thread, the operation and its place.
fn words(step: &WeakStep, names: &Names) -> String {
    let what = match step.operation.kind {
        OpKind::Load { .. } => "load",
        OpKind::Store { .. } => "store",
        OpKind::CompareExchange { .. } => "compare-exchange",
        OpKind::Wait { .. } => "loop",
        OpKind::TryLock => "try_lock",
        _ => "read-modify-write",
    };
    format!("{}'s {what} at {}", names.path(step.thread), step.site)
}

impl fmt::Display for WeakMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WeakMemory::Unasked => Ok(()),
            WeakMemory::Impossible => f.write_str("no weak behaviour is possible"),
            WeakMemory::Possible { operation } => {
                write!(
                    f,
                    "weak behaviour is possible ({operation}) and was not explored"
                )
            }
            WeakMemory::Explored {
                operation,
                sequential,
            } => write!(
                f,
                "under C11, because weak behaviour is possible ({operation}); {} under sequential consistency",
                counted(*sequential, "execution")
            ),
            WeakMemory::Asked => f.write_str("under C11"),
        }
    }
}
