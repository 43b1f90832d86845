//! What can a thread of a front end announce, and what comes of it?

use std::fmt;

use crate::rt::event::operation::{KINDS_MAX, Key, Touch};

/// A thread of the explored program.
///
/// The initial threads have the numbers from 0. A spawned thread gets the next number when the
/// exploration meets it for the first time, and keeps it in every execution.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Thread(pub usize);

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {}", self.0)
    }
}

/// The next operation of a thread.
///
/// Objects have numbers, which the front end chooses: the same object must have the same number in
/// every execution. Objects, words, locks and channels are numbered each by themselves, below
/// 2<sup>30</sup>.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// An access to an object with contents that the front end keeps. Two accesses to one object
    /// are explored in both orders if [`Access`] says that they conflict.
    Access {
        /// Number of the object.
        object: u32,
        /// What the operation reads and writes.
        access: Access,
    },
    /// Reads a word. The engine keeps the values of words ([`Engine::set_word`]), so that it knows
    /// which compare-exchange fails.
    ///
    /// [`Engine::set_word`]: crate::engine::Engine::set_word
    Load {
        /// Number of the word.
        word: u32,
    },
    /// Writes a word.
    Store {
        /// Number of the word.
        word: u32,
        /// New value.
        value: u64,
    },
    /// Adds to a word, wrapping around. The outcome has the value before.
    Add {
        /// Number of the word.
        word: u32,
        /// Summand.
        value: u64,
    },
    /// Writes a word. The outcome has the value before.
    Swap {
        /// Number of the word.
        word: u32,
        /// New value.
        value: u64,
    },
    /// Writes a word if it has the expected value, and otherwise only reads it.
    CompareExchange {
        /// Number of the word.
        word: u32,
        /// Value for which the operation succeeds.
        expected: u64,
        /// New value.
        new: u64,
    },
    /// Takes a lock; waits while a thread holds it.
    Acquire(u32),
    /// Takes a lock if no thread holds it.
    TryAcquire(u32),
    /// Gives back a lock that the thread holds.
    Release(u32),
    /// Puts a message into a channel. The outcome has the number of the message in the channel,
    /// counted from 0; the front end keeps the contents.
    Send(u32),
    /// Takes the first message out of a channel; waits while there is none. The outcome has the
    /// number of the message.
    Receive(u32),
    /// Spawns a thread. The outcome names it.
    Spawn,
    /// Waits until a thread has finished.
    Join(Thread),
    /// Waits until another thread unblocks this one. If the thread was unblocked before, that is
    /// not remembered: see [`Operation::Unblock`].
    Block,
    /// Unblocks a thread. If the thread is not blocked, the call of
    /// [`Execution::turn`](crate::engine::Execution::turn) that makes this step returns
    /// [`Misuse::NotBlocked`](crate::engine::Misuse::NotBlocked). Both orders of a `Block` and an
    /// `Unblock` are explored, so that a wake-up that may be lost is found.
    Unblock(Thread),
    /// Chooses a number below this one; every choice is explored. At least 1.
    Choose(u32),
    /// The execution ends here, and counts: it ends with
    /// [`Ended::Stopped`](crate::engine::Ended::Stopped) once no other thread can run.
    Stop,
    /// The execution is of no interest behind this point. It is pruned once no other thread can
    /// run.
    GiveUp,
}

/// What an operation reads and writes of its object.
///
/// The table says which pairs conflict; all others commute, and only one of their orders is
/// explored. Two accesses to one key conflict as the table says, and accesses to different keys
/// commute.
///
/// | | conflicts with |
/// |---|---|
/// | `Read` | `Write`, `WeakWrite`, `KeyWrite`, `KeyChange` |
/// | `Write` | every access |
/// | `WeakRead` | `Write` |
/// | `WeakWrite` | `Read`, `Write` |
/// | `KeyRead` | `Write`, `KeyWrite`, `KeyChange` of the same key |
/// | `KeyWrite` | `Read`, `Write`, every access to the same key |
/// | `KeyChange` | `Read`, `ReadKeys`, `Write`, every access to the same key |
/// | `ReadKeys` | `Write`, `KeyChange` |
/// | `Declared` | as its [`Relation`] says |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Access {
    /// Reads the whole object.
    Read,
    /// Writes the object.
    Write,
    /// Reads and writes the object in one step; the same as `Write`.
    ReadModifyWrite,
    /// Reads only what a weak write does not change: for instance, loads a container before a
    /// subscript.
    WeakRead,
    /// Writes a part that no other weak write changes: for instance, a subscript of a container,
    /// where different subscripts are known to be independent.
    WeakWrite,
    /// Reads what the object has at this key. Keys below 2<sup>24</sup> are told apart; larger
    /// ones are hashed to 24 bits, and two keys with one hash count as the same.
    KeyRead(u64),
    /// Replaces the value at this key, which had one before.
    KeyWrite(u64),
    /// Inserts or removes this key.
    KeyChange(u64),
    /// Reads which keys there are, or how many.
    ReadKeys,
    /// The access with this number in the [`Relation`] that was declared for the object
    /// ([`Engine::declare`](crate::engine::Engine::declare)).
    Declared(u8),
}

impl Access {
    pub(crate) fn touch(self, relation: Option<&Relation>) -> Option<Touch> {
        Some(match self {
            Access::Read => Touch::ReadAll,
            Access::Write | Access::ReadModifyWrite => Touch::All,
            Access::WeakRead => Touch::WeakRead,
            Access::WeakWrite => Touch::WeakWrite,
            Access::KeyRead(key) => Touch::KeyRead(Key::of(key)),
            Access::KeyWrite(key) => Touch::KeyWrite(Key::of(key)),
            Access::KeyChange(key) => Touch::KeyShape(Key::of(key)),
            Access::ReadKeys => Touch::ReadKeys,
            Access::Declared(number) => {
                let against = *relation?.rows.get(usize::from(number))?;
                Touch::Declared { number, against }
            }
        })
    }
}

/// Which accesses to an object conflict, declared by the front end.
///
/// ```
/// use dpor::engine::Relation;
///
/// // 0: deposit, 1: withdraw if there is enough, 2: read the balance. Deposits commute.
/// let account = Relation::new(3, &[(0, 1), (1, 1), (0, 2), (1, 2)]);
/// assert!(account.conflict(1, 0));
/// assert!(!account.conflict(0, 0));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relation {
    rows: Vec<u16>,
}

impl Relation {
    /// Maximum number of kinds of access in one relation. A label of the engine has one bit for
    /// each.
    pub const KINDS_MAX: usize = KINDS_MAX;

    /// Creates the relation of `kinds` kinds of access, numbered from 0, in which these pairs
    /// conflict. A pair stands for both of its orders.
    ///
    /// A pair that is left out promises that the two accesses may be swapped in every state: both
    /// return the same, and leave the same object, in either order.
    ///
    /// # Panics
    ///
    /// If there are more kinds than [`Relation::KINDS_MAX`], or a pair has a number that is no
    /// kind.
    #[track_caller]
    pub fn new(kinds: usize, conflicts: &[(usize, usize)]) -> Relation {
        assert!(
            kinds <= KINDS_MAX,
            "a relation has at most {KINDS_MAX} kinds of access (Relation::KINDS_MAX), and this one would have {kinds}; \
             let several of them share a number"
        );
        let mut rows = vec![0; kinds];
        for &(one, other) in conflicts {
            assert!(
                one < kinds && other < kinds,
                "the pair ({one}, {other}) is not of two of the {kinds} kinds of access, which are numbered from 0"
            );
            rows[one] |= 1 << other;
            rows[other] |= 1 << one;
        }
        Relation { rows }
    }

    /// Whether two kinds of access conflict. False for numbers that are no kinds.
    pub fn conflict(&self, one: usize, other: usize) -> bool {
        let row = self.rows.get(one).copied().unwrap_or(0);
        other < self.rows.len() && row >> other & 1 == 1
    }
}

/// The outcome of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The operation has happened, and has no value.
    Done,
    /// The value before, the number of the message, or the choice.
    Value(u64),
    /// A compare-exchange or an attempt to take a lock has succeeded; the value before.
    Succeeded(u64),
    /// It has failed; the value that it found.
    Failed(u64),
    /// The spawned thread.
    Spawned(Thread),
}

impl Outcome {
    /// Returns the value, if the outcome has one.
    pub fn value(self) -> Option<u64> {
        match self {
            Outcome::Value(value) | Outcome::Succeeded(value) | Outcome::Failed(value) => {
                Some(value)
            }
            Outcome::Done | Outcome::Spawned(_) => None,
        }
    }
}
