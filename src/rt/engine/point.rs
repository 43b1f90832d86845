//! Which steps are possible at a point of an execution, and which of them does an explorer choose?

use std::cell::RefCell;

use crate::rt::event::Trace;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Step};
use crate::rt::event::verdict::Pruned;
use crate::rt::object::machine::{Machine, Pending};
use crate::rt::object::orders::Place;

use crate::rt::engine::weak_memory::WeakMemory;

/// A point of an execution at which the explorer chooses a step.
pub(crate) struct Point<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) machine: &'a Machine,
    /// The thread that made the last step.
    pub(crate) last: ThreadId,
    /// Whether the point is frozen: no execution may branch off here.
    pub(crate) fixed: bool,
    /// The graph of the execution, if memory is C11's.
    pub(crate) weak: Option<&'a RefCell<WeakMemory>>,
}

impl Point<'_> {
    /// [`default_thread`] among the threads that `allowed` accepts.
    #[inline(always)]
    pub(crate) fn default_thread(&self, allowed: impl Fn(ThreadId) -> bool) -> Option<ThreadId> {
        default_thread(self.machine, self.last, allowed)
    }

    /// The default thread makes its next step, with the ordinary outcome.
    pub(crate) fn go_on(&self) -> Choice {
        let thread = self.default_thread(|_| true);
        thread.map_or(Choice::NothingEnabled, |thread| {
            Choice::Run(Step::of(thread))
        })
    }

    /// Whether the thread can go on with this alternative.
    pub(crate) fn is_possible(&self, step: Step) -> bool {
        match self.weak {
            None => {
                self.machine.enabled(step.thread)
                    && step.alternative < self.machine.alternatives(step.thread)
            }
            Some(weak) => weak
                .borrow_mut()
                .is_possible(self.machine, self.trace, step),
        }
    }

    /// Whether the thread can go on, maybe by a wait that an older store ends.
    pub(crate) fn is_able(&self, thread: ThreadId) -> bool {
        self.machine.enabled(thread)
            || self.weak.is_some_and(|weak| {
                let pending = self.machine.pending(thread);
                let waits = |p: &Pending| matches!(p.operation.kind, OpKind::Wait { .. });
                let mut weak = weak.borrow_mut();
                pending.is_some_and(waits)
                    && !(weak.alternatives(self.machine, self.trace, thread)).is_empty()
            })
    }

    /// The alternative with which the thread's operation on an atomic, or its `try_lock`, comes out
    /// as old as C11 allows; of another operation the ordinary one.
    pub(crate) fn oldest(&self, thread: ThreadId) -> u32 {
        let reads = |pending: &Pending| {
            let kind = pending.operation.kind;
            kind.is_atomic() || kind == OpKind::TryLock
        };
        let weak = self
            .weak
            .filter(|_| self.machine.pending(thread).is_some_and(reads));
        let oldest = weak.and_then(|weak| {
            let all = weak
                .borrow_mut()
                .alternatives(self.machine, self.trace, thread);
            all.into_iter().rev().find(|&it| !Place::of(it).fails)
        });
        oldest.unwrap_or(0)
    }

    /// Every enabled thread.
    pub(crate) fn enabled(&self) -> impl Iterator<Item = ThreadId> {
        let live = self.machine.live().iter().copied();
        live.filter(|&thread| self.machine.enabled(thread))
    }
}

/// The thread that continues by default, among those that `allowed` accepts: the one that made the
/// last step, which needs no switch, or else the oldest enabled one. The main thread comes after
/// the others. Its next operation is mostly a join of them, and where all of them have ended it
/// performs its joins without a switch in between.
#[inline(always)]
pub(crate) fn default_thread(
    machine: &Machine,
    last: ThreadId,
    allowed: impl Fn(ThreadId) -> bool,
) -> Option<ThreadId> {
    let able = |thread: ThreadId| allowed(thread) && machine.enabled(thread);
    if able(last) {
        return Some(last);
    }
    // `last` is not enabled or not allowed, so it is left out here.
    let mut others = machine.live().iter().copied();
    let elder = others.find(|&thread| thread != ThreadId::MAIN && thread != last && able(thread));
    elder.or_else(|| Some(ThreadId::MAIN).filter(|&main| main != last && able(main)))
}

/// The answer of an explorer at a point.
pub(crate) enum Choice {
    Run(Step),
    /// The step, and this many further steps of its thread without a call of `choose` in between,
    /// as long as each has one outcome, and each but the last leaves the other threads as they are
    /// (`enabled_set::leaves_the_others`).
    RunOn(Step, usize),
    Prune(Pruned),
    /// The schedule to follow does not fit the program.
    Stale {
        misfit: String,
    },
    /// This thread has not announced what was planned for it, so the program depends on more than
    /// its schedule.
    Diverged(ThreadId),
    /// No thread is enabled. The driver finds out whether the execution is complete or stuck.
    NothingEnabled,
}

/// How an explorer breaks ties. Any choice is right; tests try them all.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) enum TieBreak {
    /// [`Point::default_thread`]: few switches.
    #[default]
    Last,
    /// A random choice, from this seed.
    #[cfg(test)]
    Random(u64),
}

impl TieBreak {
    /// An enabled thread makes its next step, with the ordinary outcome.
    #[inline]
    pub(crate) fn choose(&mut self, at: &Point<'_>) -> Choice {
        match self.pick(at, |_| true) {
            Some(thread) => Choice::Run(Step::of(thread)),
            None => Choice::NothingEnabled,
        }
    }

    /// Picks an enabled thread among those that `allowed` accepts.
    #[inline]
    pub(crate) fn pick(
        &mut self,
        at: &Point<'_>,
        allowed: impl Fn(ThreadId) -> bool,
    ) -> Option<ThreadId> {
        match self {
            TieBreak::Last => at.default_thread(allowed),
            #[cfg(test)]
            TieBreak::Random(seed) => {
                let threads: Vec<ThreadId> = at.enabled().filter(|&t| allowed(t)).collect();
                // xorshift64*; the quality of the numbers does not matter.
                *seed ^= *seed >> 12;
                *seed ^= *seed << 25;
                *seed ^= *seed >> 27;
                let n = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
                let count = threads.len().max(1);
                threads.get(n as usize % count).copied()
            }
        }
    }
}
