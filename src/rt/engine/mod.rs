//! Which execution comes next?
//!
//! An [`Explorer`] decides it, and nothing else: the driver tells the explorer which events
//! happened, and the explorer answers with the next step. Each algorithm has one file, and one loop
//! drives all of them ([`driver`]). This module knows no coroutines, closures or values: the same
//! code explores abstract programs (`testing`) and live ones, and the tests compare the abstract
//! ones with brute force.
//!
//! | explorer | file |
//! |---|---|
//! | `Naive`, `SleepSets` | `exhaustive.rs` |
//! | `Classic`, `Source` | `backtrack.rs` |
//! | `Optimal` | `optimal.rs`; in another order than depth-first `frontier.rs` |
//! | `Parsimonious` | `parsimonious.rs` |
//! | `Bounded` | `bound.rs`, `price.rs` |
//! | `Random`, `Pct`, `Pos` | `sample.rs`, `enabled_set.rs`, `pct.rs`, `pos.rs` |
//! | replay of one schedule | `replay.rs` |

pub(crate) mod blocking_pairs;
pub(crate) mod checkpoint;
mod choices;
mod cover;
pub(crate) mod critical;
pub(crate) mod driver;
pub(crate) mod enabled_set;
pub(crate) mod enabling;
pub(crate) mod estimate;
pub(crate) mod exclude_thread;
pub(crate) mod expand_awaits;
#[cfg(feature = "bench")]
pub(crate) mod floor;
pub(crate) mod hotspots;
mod known;
pub(crate) mod linearise;
pub(crate) mod look_out;
mod open_tree;
pub(crate) mod order;
pub(crate) mod price;
pub(crate) mod regions;
mod relabel;
pub(crate) mod replay;
pub(crate) mod reversal;
pub(crate) mod rng;
pub(crate) mod run_out;
pub(crate) mod sequence;
pub(crate) mod sleep;
mod slots;
mod snapshots;
pub(crate) mod solo_run;
pub(crate) mod strategies;
mod tried_values;
pub(crate) mod turns;
pub(crate) mod wakeup_tree;
pub(crate) mod weak_memory;

#[cfg(any(test, feature = "bench"))]
#[cfg_attr(
    not(test),
    allow(
        dead_code,
        unused_imports,
        reason = "tests use all of it, benches a part"
    )
)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::rc::Rc;

use crate::rt::event::Trace;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Step};
use crate::rt::event::verdict::{Blocked, Pruned};
use crate::rt::object::machine::{Machine, Pending};
use crate::rt::object::orders::Place;
use crate::rt::relation::happens_before::HappensBefore;

use crate::rt::engine::checkpoint::Unfinished;
use crate::rt::engine::driver::Plan;
use crate::rt::engine::price::Price;
use crate::rt::engine::snapshots::Snapshots;
use crate::rt::engine::weak_memory::WeakMemory;

/// An algorithm that decides which executions to run.
///
/// Life cycle: the driver calls `begin` before each execution; `begin` plans how many events of the
/// last execution stay and which steps follow them. For every step behind the plan the driver calls
/// `choose`. It calls `finish` once per execution, with clocks and races computed if the explorer
/// asks for them. When `begin` returns false, the exploration is complete.
pub(crate) trait Explorer {
    /// Plans the next execution; false when no execution is left to explore.
    fn begin(&mut self, plan: &mut Plan) -> bool;
    /// Picks one enabled step, or prunes the execution.
    fn choose(&mut self, at: &Point<'_>) -> Choice;
    /// Whether `choose` returns [`Point::go_on`] for the rest of the execution: the thread of the
    /// last step makes the next one if it is enabled, and otherwise the default thread does. The
    /// driver then does not call `choose`. It asks for this after `begin`, and after each call
    /// of `choose`.
    fn lets_the_last_go_on(&self) -> bool {
        false
    }
    /// Whether every thread begins directly behind its spawn, before the next choice, so that
    /// `choose` sees the pending operation of each thread. Otherwise a thread begins when it is
    /// chosen. In most cases it then makes its first step, too; if that step is blocked, or the
    /// driver must not make it without asking, the driver calls `choose` once more.
    fn has_all_begin(&self) -> bool {
        false
    }
    /// Whether looks in vain of a known loop leave no event: the explorer reverses the races of a
    /// wait by its pairs, and needs no event between two choices.
    fn takes_awaits(&self) -> bool {
        false
    }
    /// Whether `finish` reads clocks and races. If not, the driver does not compute them.
    fn asks_for_clocks(&self) -> bool {
        true
    }
    /// The steps that the schedule still asks for behind the end of an execution that did not fail,
    /// if they are a misfit between the program and the schedule.
    fn misfit_at_the_end(&self) -> Option<String> {
        None
    }
    /// Learns how the execution ended, and plans further executions.
    fn finish(&mut self, execution: &Execution<'_>);
    /// The traces that are covered once `begin` has returned false.
    fn coverage(&self) -> Coverage {
        Coverage::All
    }
    /// The sequences that are still to be explored behind this execution, for [`Explorer::resume`];
    /// `None` if there are none, if no execution has been made yet, or if the algorithm cannot
    /// tell.
    fn unfinished(&self, _trace: &Trace) -> Option<Unfinished> {
        None
    }
    /// Takes over the unfinished sequences of another exploration of the same program, before the
    /// first `begin`. False if the algorithm cannot do that.
    fn resume(&mut self, _unfinished: &Unfinished) -> bool {
        false
    }
    /// Whether the explorer explores more than one execution.
    fn explores(&self) -> bool {
        true
    }
    /// The graphs that the explorer shares with the driver, if memory is C11's.
    fn weak(&self) -> Option<Rc<RefCell<WeakMemory>>> {
        None
    }
    /// Whether `begin` will start another execution, as far as the explorer knows in advance.
    fn more(&self) -> bool {
        true
    }
    /// For each depth at which executions will branch off, the number of branches that are planned
    /// there, in order of depth. Adds no entry if these numbers do not tell how much is left.
    fn planned(&self, _planned: &mut Vec<(usize, u64)>) {}
    /// The approximate number of executions in all, where `planned` cannot tell but the explorer
    /// can.
    fn estimate(&self) -> Option<f64> {
        None
    }
    /// The number of bytes that hold the unexplored sequences; 0 if they do not grow.
    fn memory(&self) -> usize {
        0
    }
    /// The exploration is over. An explorer with memory that the next exploration can use leaves
    /// the memory to that exploration.
    fn recycle(self: Box<Self>) {}
}

/// The traces that a complete exploration has covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// Every trace.
    All,
    /// Every trace that has a linearisation at this price, at most; `None` if not even all traces
    /// without any cost have been explored.
    Within(Price, Option<usize>),
    /// Every trace in which no thread reaches one hint more often than this with a change in
    /// between.
    Rounds(usize),
    /// Every trace in which a thread that has reached one hint this often with a change in between
    /// makes its next step only where no other thread is enabled.
    Fair(usize),
    /// Every trace, except where the test switched exploration off.
    Regions,
    /// Executions drawn at random.
    Sampled,
    /// One schedule.
    Replayed,
}

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

    /// The alternative with which the thread's operation on an atomic comes out as old as C11
    /// allows; of another operation the ordinary one.
    pub(crate) fn oldest(&self, thread: ThreadId) -> u32 {
        let is_atomic = |pending: &Pending| pending.operation.kind.is_atomic();
        let weak = self
            .weak
            .filter(|_| self.machine.pending(thread).is_some_and(is_atomic));
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
    /// ([`enabled_set::leaves_the_others`]).
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

/// An execution that has ended.
pub(crate) struct Execution<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) clocks: &'a HappensBefore,
    pub(crate) machine: &'a Machine,
    /// The operations that threads have announced and not performed. Without them there would be no
    /// reversal of a lock that was never granted, and deadlocks would stay hidden.
    pub(crate) blocked: &'a [Blocked],
    /// The position of the first event that the execution before did not have.
    pub(crate) first_new: usize,
    /// For each event up to the last one behind a frozen point whether the point before it is
    /// frozen.
    pub(crate) fixed: &'a [bool],
    /// The number of new events that the plan asked for.
    pub(crate) planned: usize,
    /// The states of objects on the way, as far as reversals have asked for them.
    pub(crate) snapshots: Snapshots,
}

/// The number of events of an object that a search passes before it checks whether the other events
/// matter. Test programs have few events.
const FOLLOWS: u32 = if cfg!(test) { 2 } else { 16 };

impl Execution<'_> {
    /// Whether the point before the event at `position` is frozen, so that no execution may branch
    /// off there.
    pub(crate) fn is_frozen(&self, position: usize) -> bool {
        self.fixed.get(position).is_some_and(|&fixed| fixed)
    }

    /// Whether everything behind `position` happens after the event at `first`. The event at
    /// `position` is the one with this `number` behind `first` on an object. On some objects no
    /// event is total, and such an object may have a long history. Where threads follow each other
    /// closely, all their events happen after `first` from an early position on. The check runs
    /// only for some of the numbers.
    #[inline]
    fn nothing_is_left(&self, first: u32, position: u32, number: u32) -> bool {
        number >= FOLLOWS && number.is_power_of_two() && self.all_follow(first, position)
    }

    /// Whether everything behind `position` happens after the event at `first`.
    #[inline(never)]
    fn all_follow(&self, first: u32, position: u32) -> bool {
        (0..self.trace.threads() as u32)
            .map(ThreadId)
            .all(|thread| {
                let positions = self.trace.positions_of(thread);
                let next = positions.partition_point(|&p| p <= position);
                // The later events of a thread happen after that event, too.
                (positions.get(next)).is_none_or(|&next| self.clocks.before(first, next))
            })
    }
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
