//! What may an atomic operation come out as, under a memory model?
//!
//! An execution under a weak memory model is a graph ([`graph`]): which store each load reads, and
//! in which order the stores of each location come. A step of a thread is therefore an operation
//! *and* its [`Outcome`]: a load names the store that it reads, a store names the store that it
//! goes behind. A [`MemoryModel`] says which outcomes there are. `docs/WEAK_MEMORY.md` has the
//! model, and what of it is checked.
//!
//! | model | file |
//! |---|---|
//! | sequential consistency: each operation has its newest outcome | `sc.rs`, in tests |
//! | C11: RC11 with the release sequences of C++20 | `c11.rs`, its third axiom `psc.rs` |
//!
//! `lookout.rs` tells from the executions under the first whether the second has more. `search.rs`
//! visits each graph of a program once. Other objects than atomics are as strong as under
//! sequential consistency, but for a `try_lock` that fails. Nothing in here knows of coroutines or
//! of the program's heap.

pub(crate) mod c11;
pub(crate) mod clocks;
pub(crate) mod graph;
pub(crate) mod lookout;
pub(crate) mod operation;
mod psc;
pub(crate) mod search;

#[cfg(test)]
mod axioms;
#[cfg(test)]
pub(crate) mod sc;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering;

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::relation::independence::Label;
use graph::Graph;
use operation::{Fences, OpKind, Operation};

/// The name of a store: its thread and the number of the step in it, or an object that has its
/// initial value. Names are the same in all executions, whatever else happens in them. Each object
/// has an initial value of its own: with one name for all of them, a read-modify-write of one
/// object would look like the rival of one of another object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct StoreRef {
    /// [`StoreRef::INITIAL`], or the thread's number.
    thread: u32,
    /// The object's number, or the number of the step in its thread, from 0.
    index: u32,
}

impl StoreRef {
    const INITIAL: u32 = u32::MAX;

    /// The initial value of `object`.
    pub(crate) const fn initial(object: ObjectId) -> StoreRef {
        StoreRef {
            thread: StoreRef::INITIAL,
            index: object.0,
        }
    }

    /// The store that is the step of this `index` of `thread`.
    pub(crate) const fn of(thread: ThreadId, index: u32) -> StoreRef {
        StoreRef {
            thread: thread.0,
            index,
        }
    }

    /// The object with this initial value.
    fn initial_of(self) -> ObjectId {
        debug_assert_eq!(self.thread, StoreRef::INITIAL);
        ObjectId(self.index)
    }

    /// The thread of the store and the number of its step; `None` for an initial value.
    pub(crate) fn event(self) -> Option<(ThreadId, u32)> {
        (self.thread != StoreRef::INITIAL).then_some((ThreadId(self.thread), self.index))
    }
}

/// What an operation comes out as. The values follow from it. It names no value: addresses differ
/// from one execution to the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Outcome {
    /// A fence, a spawn and a join have one outcome.
    Done,
    /// A load, a wait, or a compare-exchange or `try_lock` that fails reads this store.
    Reads(StoreRef),
    /// A read-modify-write or a compare-exchange that succeeds reads this store, and comes directly
    /// behind it in the modification order.
    Modifies(StoreRef),
    /// A store goes directly behind this one in the modification order.
    Behind(StoreRef),
    /// An operation on another object has this alternative, and then this label.
    Other { alternative: u32, label: Label },
}

/// Where a store may go in a modification order that has grown since that was decided.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Interval {
    /// Somewhere behind this store,
    pub(crate) after: StoreRef,
    /// and somewhere before that one, which was the next one then; `None` if none was.
    pub(crate) before: Option<StoreRef>,
}

/// An [`Outcome`] as sleep sets and wakeup trees keep it: what it says stays true when other
/// threads go on. The place of a store is an interval: a later store may come between it and the
/// one that it went behind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Decision {
    Done,
    Reads(StoreRef),
    Modifies(StoreRef),
    Within(Interval),
    Other { alternative: u32, label: Label },
}

/// What a thread is about to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Access {
    pub(crate) operation: Operation,
    /// The fences of the thread since its last step.
    pub(crate) fences: Fences,
    /// Of a join, the fences of the joined thread since its last step.
    pub(crate) ended: Fences,
    /// What a waiting loop waits for: the thread is blocked while it can read no such store. `None`
    /// if the operation does not wait.
    pub(crate) until: Option<Until>,
}

/// The stores for which a waiting loop waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Until {
    /// Those with this value: the last pass of the loop is its only event. No closure says which
    /// value that is.
    #[cfg(test)]
    Is(u64),
    /// Those that are newer than this one, which the pass before has read. To read it once more
    /// would tell the thread nothing.
    Newer(StoreRef),
}

impl Access {
    /// This operation, without fences.
    pub(crate) const fn of(operation: Operation) -> Access {
        Access {
            operation,
            fences: Fences::Nothing,
            ended: Fences::Nothing,
            until: None,
        }
    }

    /// A fence.
    const fn fence(order: Ordering) -> Access {
        Access::of(Operation {
            object: ObjectId::NONE,
            kind: OpKind::Fence { order },
        })
    }

    /// Whether it waits, and comes out only if another thread has written.
    pub(crate) const fn waits(&self) -> bool {
        self.until.is_some() || matches!(self.operation.kind, OpKind::Wait { .. })
    }

    /// Whether it is an access to an atomic.
    pub(crate) const fn is_to_atomic(&self) -> bool {
        self.operation.kind.is_atomic()
    }
}

/// What a memory model says of the graph that it holds.
pub(crate) trait MemoryModel {
    /// The execution so far.
    fn graph(&self) -> &Graph;
    /// Every outcome that `access` may have as the next event of `thread`, the newest first.
    /// Without one the thread is blocked.
    fn outcomes(&mut self, thread: ThreadId, access: &Access, outcomes: &mut Vec<Outcome>);
    /// The outcome with which nothing is old: a load reads the last store of the modification
    /// order, and a store goes behind it. Every model allows that. `None` if the thread waits for
    /// another value.
    fn newest(&mut self, thread: ThreadId, access: &Access) -> Option<Outcome>;
    /// Whether `access`, decided before other threads went on, may still come out as decided, and
    /// which outcome that is now.
    fn available(
        &mut self,
        thread: ThreadId,
        access: &Access,
        decision: &Decision,
    ) -> Option<Outcome>;
    /// Makes `access` the next event of `thread`, with an outcome that it may have.
    fn take(&mut self, thread: ThreadId, access: &Access, outcome: Outcome);
    /// The event at this position happens again in another execution, in which its operands may be
    /// others: addresses differ. Events before it have been repeated.
    fn again(&mut self, position: u32, access: &Access);
    /// Takes the last event back.
    fn undo(&mut self);
}
