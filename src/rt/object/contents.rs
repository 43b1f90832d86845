//! What is the state of a program, for explorations that compare states?
//!
//! A thread is a function of what its operations have told it. So two executions that have told
//! each thread the same, and left the same contents in each object, go on alike. [`Contents`] says
//! what the contents of an object are, and what each operation tells its thread. Both are a
//! [`Digest`] of 128 bits.
//!
//! | object | contents | what an operation tells |
//! |---|---|---|
//! | atomic | the value | its outcome |
//! | reference count | the counts | the last release of an observed count, and what is asked |
//! | channel | the names of the messages in the queue, and the ends | the name of a message |
//! | end of a thread | whether it has finished | the same, if asked |
//! | value of the program (`Shared`) | a digest of the value | a digest of the result |
//!
//! A message is named by its sender and what its sender had been told when it sent: equal names
//! mean equal messages. How many messages were sent before it is the business of the channel.
//!
//! The other objects have no contents here, and explorations that compare states refuse them.

use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use crate::rt::event::Site;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{
    AtomicType, Choice, ObjectKind, OpKind, Operation, Outcome, Reason,
};
use crate::rt::object::State;
use crate::rt::relation::independence::{Label, Nature};

/// A hash of 128 bits. Two different things with one digest are taken for the same.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Digest(pub(crate) u128);

impl Digest {
    /// The digest of what `hash` writes.
    pub(crate) fn by(hash: impl FnOnce(&mut dyn Hasher)) -> Digest {
        let mut both = Both::default();
        hash(&mut both);
        both.end()
    }

    /// The digest of this value.
    pub(crate) fn of<T: Hash + ?Sized>(value: &T) -> Digest {
        let mut both = Both::default();
        value.hash(&mut both);
        both.end()
    }
}

/// Two hashers that have begun differently.
struct Both(DefaultHasher, DefaultHasher);

impl Default for Both {
    fn default() -> Both {
        let mut second = DefaultHasher::new();
        second.write_u8(1);
        Both(DefaultHasher::new(), second)
    }
}

impl Both {
    fn end(&self) -> Digest {
        Digest(u128::from(self.0.finish()) << 64 | u128::from(self.1.finish()))
    }
}

impl Hasher for Both {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
        self.1.write(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// What a closure of the program does to a value: the digest of the value afterwards, and that of
/// what its thread is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Effect {
    pub(crate) contents: Digest,
    pub(crate) told: Digest,
}

/// A closure of the program, which may be tried on contents that the program has had before. `None`
/// if it cannot be tried on these.
#[derive(Clone)]
pub(crate) struct Update(pub(crate) Arc<dyn Fn(Digest) -> Option<Effect> + Send + Sync>);

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Update")
    }
}

/// What an execution says about values that only the program knows. The number of an event is the
/// one among the events of its thread.
#[derive(Clone, Default, Debug)]
pub(crate) struct Updates {
    /// The contents with which objects were met.
    pub(crate) met: FxHashMap<ObjectId, Digest>,
    /// The contents of these objects now.
    pub(crate) latest: FxHashMap<ObjectId, Digest>,
    /// The closures that threads have announced.
    pub(crate) announced: FxHashMap<(ThreadId, u32), Update>,
    /// What closures have done.
    pub(crate) made: FxHashMap<(ThreadId, u32), Effect>,
    /// Values that there have been, by type and digest, in this execution or an earlier one.
    pub(crate) values: Arc<Values>,
}

/// Values of the program, by type and digest.
pub(crate) type Values = Mutex<FxHashMap<(TypeId, Digest), Arc<dyn Any + Send + Sync>>>;

impl Updates {
    /// Forgets the execution, and keeps the values.
    pub(crate) fn clear(&mut self) {
        self.met.clear();
        self.latest.clear();
        self.announced.clear();
        self.made.clear();
    }
}

/// An operation on something with an unknown state.
#[derive(Clone, Debug)]
pub(crate) struct Unfit {
    /// The operation, and what a program can use instead.
    pub(crate) what: String,
    pub(crate) site: Site,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unfit { what, site } = self;
        write!(
            f,
            "the algorithm `final_states` (DPOR_ALGORITHM) compares states, and {what}, at {site}; the algorithm `optimal` \
             explores every trace, whatever the state"
        )
    }
}

/// What is unknown about an operation on an object in this state, or on none, and what a program
/// can use instead.
pub(crate) fn unfit(state: Option<&State>, kind: &OpKind) -> Option<String> {
    let instead =
        |what: &str, instead: &str| Some(format!("it knows nothing of {what}: {instead}"));
    let shared = "put the data into a `dpor::Shared`, and change it in one step";
    if let OpKind::Atomically { .. } = kind {
        return instead("a block of `dpor::atomically`", shared);
    }
    let Some(state) = state else {
        return match kind {
            OpKind::Choose {
                what: Choice::Value,
                ..
            }
            | OpKind::GiveUp {
                why: Reason::Assumed | Reason::Stopped,
            }
            | OpKind::Start
            | OpKind::Resume => None,
            OpKind::Choose { .. } => instead("time", "let no step depend on it"),
            _ => instead(
                "a thread that waits in a loop",
                "join a thread, or receive from a channel",
            ),
        };
    };
    match (state, kind) {
        (State::Atomic { ty, .. }, _) if *ty == AtomicType::Ptr => instead(
            "the memory behind an `AtomicPtr`",
            "keep an index, or put the data into a `dpor::Shared`",
        ),
        (State::Atomic { ty, .. }, _) if !ty.is_weak() => instead(
            "a task or a poisoned lock",
            "use a thread, or a `dpor::Shared`",
        ),
        (State::Channel(channel), _) if channel.capacity == Some(0) => instead(
            "a channel without room (`sync_channel(0)`)",
            "use a channel with room",
        ),
        (State::Channel(_), OpKind::Recv { timed: true }) => {
            instead("time (`recv_timeout`)", "use `recv` or `try_recv`")
        }
        (
            State::Atomic { .. }
            | State::Count { .. }
            | State::Thread { .. }
            | State::Channel(_)
            | State::Opaque,
            _,
        ) => None,
        (State::Mutex(_), _) => instead("a `Mutex`", shared),
        (State::RwLock(_), _) => instead("an `RwLock`", shared),
        (State::Condvar(_), _) => instead("a `Condvar`", "use a channel"),
        (State::Token { .. }, _) => instead("`park` and `unpark`", "use a channel"),
        (State::Barrier(_), _) => instead("a `Barrier`", "join the threads, and spawn others"),
        (State::Once(_), _) => instead(
            "a one-time initialisation (`Once`, `OnceLock`, `LazyLock`)",
            "initialise before the threads are spawned",
        ),
    }
}

/// The contents of an object.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Contents {
    state: State,
    /// The names of the messages in the queue of a channel.
    queue: VecDeque<Digest>,
    /// The value, if only the program knows it.
    value: Digest,
}

/// What an operation has done to its thread, and the label of its event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    pub(crate) told: Digest,
    pub(crate) label: Label,
}

/// Whether the contents of objects of this kind are known.
pub(crate) const fn has_contents(kind: ObjectKind) -> bool {
    match kind {
        ObjectKind::Atomic(_)
        | ObjectKind::Count { .. }
        | ObjectKind::Thread
        | ObjectKind::Channel
        | ObjectKind::Opaque => true,
        ObjectKind::Mutex
        | ObjectKind::Token
        | ObjectKind::RwLock
        | ObjectKind::Condvar
        | ObjectKind::Barrier
        | ObjectKind::Once => false,
    }
}

/// What an operation on no object tells its thread, and its label; `None` if that is not known.
pub(crate) fn without_object(operation: &Operation, alternative: u32) -> Option<Told> {
    let OpKind::Choose { .. } = operation.kind else {
        return None;
    };
    let outcome = Outcome::Value(u64::from(alternative));
    let label = Label::new(operation.object, &operation.kind, outcome, Nature::Plain);
    let told = Digest::of(&outcome);
    Some(Told { told, label })
}

impl Contents {
    /// The contents of an object in this state, with this value if only the program knows it.
    pub(crate) fn new(state: State, value: Digest) -> Contents {
        Contents {
            state,
            queue: VecDeque::new(),
            value,
        }
    }

    /// The value, if only the program knows it.
    pub(crate) fn value(&self) -> Digest {
        self.value
    }

    /// The digest of these contents.
    pub(crate) fn digest(&self) -> Digest {
        match &self.state {
            State::Channel(channel) => {
                let ends = (channel.senders, channel.receiver, channel.waiting);
                Digest::of(&(&self.queue, ends))
            }
            State::Opaque => self.value,
            State::Atomic { .. } | State::Count { .. } | State::Thread { .. } => {
                Digest::of(&self.state)
            }
            State::Mutex(_)
            | State::Token { .. }
            | State::RwLock(_)
            | State::Condvar(_)
            | State::Barrier(_)
            | State::Once(_) => unreachable!("refused: {:?}", self.state),
        }
    }

    /// Applies an operation of a thread that has been told `sender`. `None` if it is disabled, or
    /// if nothing is known of it.
    pub(crate) fn apply(
        &mut self,
        (thread, sender): (ThreadId, Digest),
        (operation, alternative): (&Operation, u32),
        effect: impl FnOnce(Digest) -> Option<Effect>,
    ) -> Option<Told> {
        let kind = &operation.kind;
        if !has_contents(self.state.kind()) {
            return None;
        }
        if let State::Opaque = self.state {
            let Effect { contents, told } = effect(self.value)?;
            self.value = contents;
            let label = self.state.label(operation, Outcome::Done);
            return Some(Told { told, label });
        }
        // A thread ends without an event. Where a join is tried, the thread has ended: no order
        // that is tried has it before an event of that thread.
        let waits = !matches!(kind, OpKind::Join { .. });
        if waits && !self.state.enabled(thread, kind)
            || alternative >= self.state.alternatives(kind)
        {
            return None;
        }
        let outcome = match kind {
            OpKind::Join { .. } | OpKind::Spawn { .. } => Outcome::Done,
            _ => self.state.apply(thread, kind, alternative),
        };
        let told = match &self.state {
            State::Channel(_) => self.message((thread, sender), kind, outcome)?,
            State::Count { observed, .. } => count(*observed, kind, outcome),
            _ => Digest::of(&outcome),
        };
        let label = self.state.label(operation, outcome);
        Some(Told { told, label })
    }

    /// What an operation on a channel tells its thread.
    fn message(
        &mut self,
        sender: (ThreadId, Digest),
        kind: &OpKind,
        outcome: Outcome,
    ) -> Option<Digest> {
        let succeeded = outcome.succeeded();
        Some(match kind {
            OpKind::Send | OpKind::TrySend if succeeded => {
                self.queue.push_back(Digest::of(&sender));
                Digest::of(&succeeded)
            }
            OpKind::Recv { .. } | OpKind::TryRecv if succeeded => {
                let name = self.queue.pop_front()?;
                Digest::of(&(succeeded, name))
            }
            _ => Digest::of(&outcome),
        })
    }
}

/// What an operation on a reference count tells its thread.
fn count(observed: bool, kind: &OpKind, outcome: Outcome) -> Digest {
    match kind {
        OpKind::Retain => Digest::of(&()),
        OpKind::Release { told: false } if !observed => Digest::of(&()),
        OpKind::Release { .. } => Digest::of(&(outcome.value() == Some(1))),
        OpKind::Upgrade | OpKind::RetainRaw => Digest::of(&outcome.succeeded()),
        _ => Digest::of(&outcome),
    }
}
