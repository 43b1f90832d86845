//! Which call of a front end was wrong?

use std::error::Error;
use std::fmt;

use crate::engine::operation::Thread;

/// A call of [`Engine`](crate::engine::Engine) or [`Execution`](crate::engine::Execution) that
/// does not fit the state of the execution. Its text names the call, the thread and the reason.
///
/// The call has changed nothing, and the execution can go on; after
/// [`NotBlocked`](Misuse::NotBlocked) its step has been made.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Misuse {
    /// The execution has no such thread.
    UnknownThread {
        /// Name of the method.
        call: &'static str,
        /// The thread.
        thread: Thread,
    },
    /// The thread has finished.
    Finished {
        /// Name of the method.
        call: &'static str,
        /// The thread.
        thread: Thread,
    },
    /// The thread has not had its first turn, or has announced an operation already: it may
    /// announce the next one, or finish, only when `turn` has returned it.
    NotItsTurn {
        /// Name of the method.
        call: &'static str,
        /// The thread.
        thread: Thread,
    },
    /// `turn` was called although this thread, to which the call before gave the turn, has neither
    /// announced an operation nor finished.
    NothingAnnounced {
        /// The thread.
        thread: Thread,
    },
    /// The execution is over.
    Over {
        /// Name of the method.
        call: &'static str,
    },
    /// A thread has unblocked another one that was not blocked.
    NotBlocked {
        /// The thread that unblocks.
        by: Thread,
        /// The thread that was not blocked.
        thread: Thread,
    },
    /// A thread has announced to release a lock that it does not hold.
    NotHeld {
        /// The thread.
        thread: Thread,
        /// Number of the lock.
        lock: u32,
    },
    /// A number is larger than an operation may have.
    TooLarge {
        /// Name of the method.
        call: &'static str,
        /// The number.
        number: u32,
    },
    /// The object has no relation, or its relation has no access with this number.
    Undeclared {
        /// The thread.
        thread: Thread,
        /// Number of the object.
        object: u32,
        /// Number of the access.
        access: u8,
    },
    /// An object with a relation got another access than a declared one.
    NotDeclared {
        /// The thread.
        thread: Thread,
        /// Number of the object.
        object: u32,
    },
    /// A choice among no numbers.
    NoChoice {
        /// The thread.
        thread: Thread,
    },
    /// The setting has no meaning for the engine, or its part of the engine does not know it.
    Setting {
        /// Name of the method.
        call: &'static str,
        /// The setting, and the reason.
        reason: String,
    },
    /// The front end of `explore` has returned before the execution has ended.
    NotEnded,
    /// An execution was dropped before its end, so that the exploration cannot go on: a planned
    /// execution has to run to its end.
    Aborted,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misuse::UnknownThread { call, thread } => {
                write!(f, "`{call}` for {thread}: the execution has no such thread")
            }
            Misuse::Finished { call, thread } => {
                write!(f, "`{call}` for {thread}: the thread has finished")
            }
            Misuse::NotItsTurn { call, thread } => write!(
                f,
                "`{call}` for {thread}: the thread does not have the turn; a thread announces, or finishes, when `turn` has \
                 returned it"
            ),
            Misuse::NothingAnnounced { thread } => write!(
                f,
                "`turn`: {thread} has the turn and has neither announced its next operation nor finished"
            ),
            Misuse::Over { call } => write!(f, "`{call}`: the execution is over"),
            Misuse::NotBlocked { by, thread } => {
                write!(f, "`unblock` by {by}: {thread} is not blocked")
            }
            Misuse::NotHeld { thread, lock } => write!(
                f,
                "`announce` for {thread}: it releases lock {lock}, which it does not hold"
            ),
            Misuse::TooLarge { call, number } => write!(
                f,
                "`{call}`: the number {number} is too large; objects, words, locks and channels are numbered below 2^30"
            ),
            Misuse::Undeclared {
                thread,
                object,
                access,
            } => write!(
                f,
                "`announce` for {thread}: object {object} has no declared access {access}; declare its relation before \
                 (`Engine::declare`)"
            ),
            Misuse::NotDeclared { thread, object } => write!(
                f,
                "`announce` for {thread}: object {object} has a relation (`Engine::declare`), so it takes declared accesses \
                 only"
            ),
            Misuse::NoChoice { thread } => {
                write!(f, "`announce` for {thread}: a choice has at least 1 option")
            }
            Misuse::Setting { call, reason } => write!(f, "`{call}`: {reason}"),
            Misuse::NotEnded => f.write_str(
                "`explore`: the front end has returned before `turn` has returned `Ended`, so that the exploration cannot go on",
            ),
            Misuse::Aborted => f.write_str(
                "`begin`: the execution before was dropped before its end, so that the exploration cannot go on",
            ),
        }
    }
}

impl Error for Misuse {}
