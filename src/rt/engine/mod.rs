//! Which execution comes next?
//!
//! An [`Explorer`] decides it, and nothing else: it is told what happened and says what to run. One
//! algorithm per file, one loop for all of them ([`driver`]). Nothing in here knows that
//! coroutines, closures or values exist; abstract programs (`testing`) are explored by the same
//! code as live ones and checked against brute force.
//!
//! | explorer | file |
//! |---|---|
//! | `Naive`, `SleepSets` | `exhaustive.rs` |
//! | `Classic`, `Source` | `backtrack.rs` |
//! | `Optimal` | `optimal.rs`; in another order than depth-first `frontier.rs` |
//! | `Bounded` | `bound.rs`, `price.rs` |
//! | `Random`, `Pct`, `Pos` | `sample.rs`, `able.rs`, `pct.rs`, `pos.rs` |
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
pub(crate) mod linearise;
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
pub(crate) mod solo_run;
pub(crate) mod strategies;
pub(crate) mod turns;
pub(crate) mod wakeup_tree;

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

use crate::rt::event::Trace;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::Step;
use crate::rt::event::verdict::{Blocked, Pruned};
use crate::rt::object::machine::Machine;
use crate::rt::relation::happens_before::HappensBefore;

use crate::rt::engine::checkpoint::Unfinished;
use crate::rt::engine::driver::Plan;
use crate::rt::engine::price::Price;

/// An algorithm that decides which executions to run.
///
/// Life cycle: `begin` is called before each execution; it says how much of the last one to keep
/// and which steps come first. Beyond those, `choose` is called for every step. `finish` is called
/// once per execution, with clocks and races computed where it asks for them. When `begin` answers
/// false, all is explored.
pub(crate) trait Explorer {
    /// Plans the next execution; false when nothing is left.
    fn begin(&mut self, plan: &mut Plan) -> bool;
    /// Picks one enabled step, or gives the execution up.
    fn choose(&mut self, at: &Point<'_>) -> Choice;
    /// Whether `choose` only ever says [`Point::go_on`]: the thread that ran last goes on where it
    /// can, and otherwise the default thread does. Then it is not asked.
    fn lets_the_last_go_on(&self) -> bool {
        false
    }
    /// Whether every thread is to begin before anything is chosen behind its spawn, so that
    /// `choose` sees what each is about to do. Otherwise a thread begins when it is chosen. Then it
    /// mostly makes its first step, too; but if that cannot happen yet, or is not to be made
    /// unasked, `choose` is called once more.
    fn has_all_begin(&self) -> bool {
        false
    }
    /// Whether `finish` looks at clocks and races. Without that they are not computed.
    fn asks_for_clocks(&self) -> bool {
        true
    }
    /// What was to be executed after an execution that is over and did not fail, if that is a
    /// misfit between the program and the schedule that is followed.
    fn misfit_at_the_end(&self) -> Option<String> {
        None
    }
    /// Learns how the execution ended, and plans further ones.
    fn finish(&mut self, execution: &Execution<'_>);
    /// What has been covered once `begin` has answered false.
    fn coverage(&self) -> Coverage {
        Coverage::All
    }
    /// What is still to be explored after this execution, for [`Explorer::resume`]; `None` if that
    /// is nothing, if nothing has been executed yet, or if the algorithm cannot tell.
    fn unfinished(&self, _trace: &Trace) -> Option<Unfinished> {
        None
    }
    /// Takes up what another exploration of the same program has left unfinished, before the first
    /// `begin`. False if the algorithm cannot do that.
    fn resume(&mut self, _unfinished: &Unfinished) -> bool {
        false
    }
    /// Whether `begin` will start another execution, as far as that is known before.
    fn more(&self) -> bool {
        true
    }
    /// For each depth at which executions will branch off, how many are planned there, from the
    /// first event on. Nothing if that does not tell how much is left.
    fn planned(&self, _planned: &mut Vec<(usize, u64)>) {}
    /// About how many executions there will be, where `planned` cannot tell but the explorer can.
    fn estimate(&self) -> Option<f64> {
        None
    }
    /// How many bytes hold what is still to be explored; 0 if that does not grow.
    fn memory(&self) -> usize {
        0
    }
    /// The exploration is over. What has memory that the next one may need leaves it to that.
    fn recycle(self: Box<Self>) {}
}

/// What an exploration that came to its end has covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// Every trace.
    All,
    /// Every trace that has a linearisation at this price, at most; `None` if not even those that
    /// cost nothing have all been explored.
    Within(Price, Option<usize>),
    /// Every trace in which no thread comes more often than that to one hint with something changed
    /// in between.
    Rounds(usize),
    /// Every trace in which a thread that has come so often to one hint with something changed goes
    /// on only where nothing else can.
    Fair(usize),
    /// Every trace, as far as the test did not switch exploration off.
    Regions,
    /// Executions drawn by chance.
    Sampled,
    /// One schedule.
    Replayed,
}

/// The moment at which a step is to be chosen.
pub(crate) struct Point<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) machine: &'a Machine,
    /// The thread that made the last step.
    pub(crate) last: ThreadId,
    /// Whether no execution may branch off here.
    pub(crate) fixed: bool,
}

impl Point<'_> {
    /// [`default_thread`] among those that `allowed` lets through.
    #[inline(always)]
    pub(crate) fn default_thread(&self, allowed: impl Fn(ThreadId) -> bool) -> Option<ThreadId> {
        default_thread(self.machine, self.last, allowed)
    }

    /// Lets the default thread go on with its ordinary outcome.
    pub(crate) fn go_on(&self) -> Choice {
        let thread = self.default_thread(|_| true);
        thread.map_or(Choice::NothingEnabled, |thread| {
            Choice::Run(Step::of(thread))
        })
    }

    /// Every enabled thread.
    pub(crate) fn enabled(&self) -> impl Iterator<Item = ThreadId> {
        let live = self.machine.live().iter().copied();
        live.filter(|&thread| self.machine.enabled(thread))
    }
}

/// The thread to run if nothing speaks for another, among those that `allowed` lets through: the
/// one that ran last, which needs no switch, or else the oldest that can. The main thread comes
/// after the others. It mostly has to join them, and where all have ended it does so without a
/// switch between.
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
    // That one has been asked.
    let mut others = machine.live().iter().copied();
    let elder = others.find(|&thread| thread != ThreadId::MAIN && thread != last && able(thread));
    elder.or_else(|| Some(ThreadId::MAIN).filter(|&main| main != last && able(main)))
}

/// What an explorer wants.
pub(crate) enum Choice {
    Run(Step),
    /// The step, and so many further ones of its thread without a question in between, as long as
    /// each has one outcome, and each but the last leaves the others as they are
    /// ([`enabled_set::leaves_the_others`]).
    RunOn(Step, usize),
    Prune(Pruned),
    /// The schedule that was to be followed does not fit.
    Stale {
        misfit: String,
    },
    /// No thread is enabled. The driver finds out what that means.
    NothingEnabled,
}

/// An execution that has ended.
pub(crate) struct Execution<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) clocks: &'a HappensBefore,
    pub(crate) machine: &'a Machine,
    /// The operations that threads have announced and not performed. Without them a lock that was
    /// never granted would never be raced with, and deadlocks would hide.
    pub(crate) blocked: &'a [Blocked],
    /// The first event that the execution before did not have.
    pub(crate) first_new: usize,
    /// For each event up to the last such one whether no execution may branch off before it.
    pub(crate) fixed: &'a [bool],
    /// How many of the new events the plan asked for.
    pub(crate) planned: usize,
}

/// So many events of an object are gone through before it is asked whether the others matter. Tests
/// have few.
const FOLLOWS: u32 = if cfg!(test) { 2 } else { 16 };

impl Execution<'_> {
    /// Whether no execution may branch off before the event at `position`.
    pub(crate) fn is_frozen(&self, position: usize) -> bool {
        self.fixed.get(position).is_some_and(|&fixed| fixed)
    }

    /// Whether everything behind `position`, which is that of the event of this `number` behind the
    /// one at `first` on an object, happens after that one. On some objects nothing is total, and
    /// they may have a long history. Threads that follow each other closely have only events that
    /// happen after `first` from early on. This is asked now and then.
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
                // What a thread does later happens after that, too.
                (positions.get(next)).is_none_or(|&next| self.clocks.before(first, next))
            })
    }
}

/// How the free choices of an explorer are made. Any choice is right; tests try them all.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) enum TieBreak {
    /// [`Point::default_thread`]: few switches.
    #[default]
    Last,
    /// By chance, from this seed.
    #[cfg(test)]
    Random(u64),
}

impl TieBreak {
    /// Lets an enabled thread go on with its ordinary outcome.
    #[inline]
    pub(crate) fn choose(&mut self, at: &Point<'_>) -> Choice {
        match self.pick(at, |_| true) {
            Some(thread) => Choice::Run(Step::of(thread)),
            None => Choice::NothingEnabled,
        }
    }

    /// Picks an enabled thread among those that `allowed` lets through.
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
