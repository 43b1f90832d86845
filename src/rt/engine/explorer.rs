//! What decides which executions to run?

use std::cell::RefCell;
use std::rc::Rc;

use crate::rt::event::Trace;

use crate::rt::engine::checkpoint::Unfinished;
use crate::rt::engine::ended::Execution;
use crate::rt::engine::plan::Plan;
use crate::rt::engine::point::{Choice, Point};
use crate::rt::engine::price::Price;
use crate::rt::engine::stats::{Stats, Trees};
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
    /// [`Explorer::unfinished`] as it was before the last execution was begun, which may have ended
    /// early. `None` if the algorithm cannot tell, or if that execution was the first one.
    fn unfinished_with_last(&self) -> Option<Unfinished> {
        None
    }
    /// [`Explorer::resume`] where the unfinished sequences, if any, are not those of a checkpoint.
    fn take_over(&mut self, _unfinished: &Unfinished) -> bool {
        false
    }
    /// Whether [`Explorer::split`] would return something.
    fn can_split(&self) -> bool {
        false
    }
    /// Gives away, between two executions, the part of what is left that would be explored last,
    /// for [`Explorer::resume`] of another explorer. Something stays; `None` if too little is left.
    fn split(&mut self) -> Option<Unfinished> {
        None
    }
    /// What is left, between two executions, in as many parts as there are branches planned, each
    /// with the depth at which it branches off. The part that would be explored last comes first.
    fn branches(&self) -> Vec<(u32, Unfinished)> {
        Vec::new()
    }
    /// What others have explored already of what this explorer explores behind the last execution:
    /// one explorer alone would not have explored it yet.
    fn later(&self) -> Stats {
        Stats::default()
    }
    /// Whether the choices of steps depend on what earlier executions have shown, and that has
    /// changed with the last execution. Other explorers of the same program must then know it, too.
    fn has_changed_preference(&self) -> bool {
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
    /// The wakeup trees at their largest; `None` if the algorithm has none.
    fn trees(&self) -> Option<Trees> {
        None
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
    /// Every final state.
    FinalStates,
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
