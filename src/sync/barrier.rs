//! Waiting until a whole group of threads has arrived, as `std::sync::Barrier`.

use std::fmt;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync as std_sync;

use crate::rt::{self, Answer, ObjectKind, OpKind, Outcome, Target};

/// Drop-in replacement for `std::sync::Barrier`.
pub struct Barrier {
    /// Its address is the identity of the barrier.
    size: usize,
    real: std_sync::Barrier,
}

impl UnwindSafe for Barrier {}
impl RefUnwindSafe for Barrier {}

/// The result of [`Barrier::wait`]: whether the thread was the last of its group to arrive.
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Returns whether this thread was the last to arrive.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl fmt::Debug for BarrierWaitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWaitResult")
            .field("is_leader", &self.0)
            .finish()
    }
}

impl Barrier {
    /// Creates a barrier for groups of `n` threads; 0 has the same effect as 1.
    #[must_use]
    pub const fn new(n: usize) -> Barrier {
        Barrier {
            size: n,
            real: std_sync::Barrier::new(n),
        }
    }

    /// Waits until `n` threads have arrived.
    ///
    /// The last of them is the leader. Inside a model, each thread that can arrive last is explored
    /// as the leader.
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        let target = Target {
            address: (&raw const self.size).addr(),
            kind: ObjectKind::Barrier,
            // No larger group can ever be complete, and neither can a group of this size.
            memory: self.size.min(u32::MAX as usize) as u64,
        };
        let leads = match rt::waited(rt::perform(target, OpKind::Arrive)) {
            Answer::Outside => self.real.wait().is_leader(),
            Answer::Done(Outcome::Value(value)) if value as u32 != 1 => {
                let generation = (value >> 32) as u32;
                rt::perform(target, OpKind::Leave { generation });
                false
            }
            Answer::Done(_) | Answer::Inert => true,
        };
        rt::is_done(Location::caller());
        BarrierWaitResult(leads)
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}
