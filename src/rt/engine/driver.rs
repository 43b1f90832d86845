//! How does an execution run, step by step? The one loop of the engine, written as a step.
//!
//! A [`Driver`] owns the machine, the trace and the explorer. Its caller runs the code (as
//! coroutines, or as the interpreter of abstract programs) and calls
//!
//! ```text
//! while driver.begin() {
//!     loop { match driver.next() {
//!         Begins(thread)       => run that thread's code up to its first announcement,
//!         Ran(thread, outcome) => run that thread's code up to its next announcement,
//!         Ended(end)           => break,
//!     } }
//!     driver.finish(&end)
//! }
//! ```
//!
//! [`Driver::next`] may be called from any stack, in particular from the stack of the coroutine
//! that has just announced: when the same thread makes the next step, there is no switch.
//!
//! The beginning of a thread is no event. Mostly the code of a thread begins when the thread is
//! picked for the first time, and the thread makes its first step at once. Explorers that need the
//! pending operation of every thread make each thread begin directly behind its spawn.
//!
//! The prefix that an execution shares with the one before it is replayed from the trace itself:
//! one array read, one comparison and the operation per step.

use std::cell::RefCell;
use std::rc::Rc;

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::Outcome;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::{Access, Blocked, End, Pruned, ValueGone};
use crate::rt::event::{Event, Site, Trace};
use crate::rt::object::machine::{AwaitLoop, Awaits, Limits, Machine};
use crate::rt::rare::{cold_path, rarely};
use crate::rt::relation::happens_before::HappensBefore;

use crate::rt::engine::checkpoint;
use crate::rt::engine::checkpoint::parts::Translation;
use crate::rt::engine::checkpoint::{Progress, Statics, Unfinished};
use crate::rt::engine::estimate::Estimator;
use crate::rt::engine::hotspots::Hotspots;
use crate::rt::engine::look_out::{LookOut, WeakStep};
use crate::rt::engine::plan::Plan;
use crate::rt::engine::regions::Regions;
use crate::rt::engine::replay::Replay;
use crate::rt::engine::run_out::Leisure;
use crate::rt::engine::snapshots::Snapshots;
use crate::rt::engine::stats::{Stats, Trees};
use crate::rt::engine::tried_values::Tried;
use crate::rt::engine::weak_memory::WeakMemory;
use crate::rt::engine::{Coverage, Execution, Explorer};
use crate::rt::lifetime::delayed_use::RawUses;
use crate::rt::lifetime::owners::{Owners, Releases};

pub(crate) mod recycle;
mod repeat;
mod steps;
mod tried;

pub(crate) use crate::rt::engine::driver::steps::Short;

/// The result of [`Driver::next`].
#[derive(Debug)]
pub(crate) enum Next {
    /// The caller must run the thread's code up to its first announcement.
    Begins(ThreadId),
    /// The thread made its announced step; the caller must run its code up to the next
    /// announcement.
    Ran(ThreadId, Outcome),
    /// The thread tries a round of its loop: its announced look comes out like this, and is no
    /// event. The caller must run its code up to the hint of the loop.
    Tries(ThreadId, Outcome),
    /// The execution is over; [`Driver::take_end`] returns its end. Without the end in it, this
    /// type is small enough for registers.
    Ended,
}

/// If more than this share of an estimate has been executed, the estimate says nothing about the
/// rest: a report would show 100 %.
const ALL_BUT: f64 = 0.995;

/// The limits of one execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The most events an execution may have.
    pub(crate) events_max: usize,
    /// Whether a spin hint counts as one of them.
    pub(crate) hints_count: bool,
    /// The most threads that may exist in it.
    pub(crate) threads_max: usize,
    /// Whether exploration is off until the test switches it on.
    pub(crate) explicit: bool,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            events_max: 100_000,
            hints_count: false,
            threads_max: usize::MAX,
            explicit: false,
        }
    }
}

/// The state of a driver at the moment when its explorer was detached.
pub(crate) struct Left {
    explorer: Box<dyn Explorer>,
    bounds: Bounds,
    max_rounds: Option<usize>,
    awaits: Awaits,
    /// The number of first waits that were known.
    waited: usize,
    length: usize,
    begun: usize,
}

/// The loop that explores one program.
pub(crate) struct Driver {
    pub(crate) machine: Machine,
    pub(crate) trace: Trace,
    pub(crate) clocks: HappensBefore,
    pub(crate) stats: Stats,
    pub(crate) regions: Regions,
    pub(crate) hotspots: Hotspots,
    estimator: Estimator,
    explorer: Box<dyn Explorer>,
    /// The explorer's answers about itself.
    last_goes_on: bool,
    /// Whether looks in vain of known loops leave no event: all of them, or those behind a first
    /// one, once a round has left the state of the thread as it was.
    takes_awaits: bool,
    proves_awaits: bool,
    asks_for_clocks: bool,
    has_all_begin: bool,
    bounds: Bounds,
    plan: Plan,
    /// The number of events that are repeated from the execution before: the common prefix, or all
    /// events of an execution that is made again.
    replayed: usize,
    /// The number of threads that have begun in this execution.
    begun: usize,
    /// The position up to which the repeated events follow each other without the beginning of a
    /// thread in between.
    unbroken: usize,
    /// Whether the next execution repeats the last one and continues it.
    again: bool,
    /// A position, and the number of steps from there on that the thread of the last step makes if
    /// it is enabled. Behind the plan the number is [`steps::AT_ONCE`]; otherwise it is the
    /// explorer's last answer.
    free_from: usize,
    free_for: usize,
    /// Whether clocks are computed during the execution.
    looks_back: bool,
    position: usize,
    /// The number of spin hints that the threads have reached, if these count as events.
    hints: usize,
    /// The thread that made the last step.
    current: ThreadId,
    /// The end of the execution, until the caller takes it.
    end: Option<End>,
    /// Whether a thread has checked whether another one has finished, in an exploration in which
    /// the end of a thread is no event.
    ends_are_seen: bool,
    /// The loop that turned out not to go round, although a look in vain of it was withdrawn.
    refused: Option<AwaitLoop>,
    /// The positions of the last events of rounds in vain behind which a thread waits, because
    /// another round has left its state as it was.
    proven: Vec<u32>,
    /// The place of a value behind an `Arc` for which this exploration is void.
    loud_glue: Option<Site>,
    tried: Tried,
    owners: Owners,
    /// Whether the caller will test the noted uses of freed memory.
    pub(crate) looks_for_raw_uses: bool,
    /// Possible uses of freed memory that no event shows. In a box, because mostly there are none.
    pub(crate) raw_uses: Option<Box<RawUses>>,
    /// The complete execution, while a part of it is hidden.
    hidden: Option<Box<(Trace, HappensBefore, Machine)>>,
    /// The graph of the execution, if memory is C11's.
    weak: Option<Rc<RefCell<WeakMemory>>>,
    /// The look-out for weak behaviour, if executions are checked for that.
    lookout: Option<Box<LookOut>>,
}

impl Driver {
    /// Prepares an empty driver for this explorer.
    pub(crate) fn prepare(&mut self, explorer: Box<dyn Explorer>, limits: Limits, bounds: Bounds) {
        self.machine.limits = limits;
        self.regions = Regions::new(bounds.explicit);
        self.last_goes_on = explorer.lets_the_last_go_on();
        self.asks_for_clocks = explorer.asks_for_clocks();
        self.has_all_begin = explorer.has_all_begin();
        self.explorer = explorer;
        self.bounds = bounds;
        self.ask_for_awaits();
    }

    /// Finds out whether looks in vain of known loops leave no event.
    fn ask_for_awaits(&mut self) {
        let knows = !self.machine.limits.learnt.awaits.is_empty();
        let takes = knows && self.explorer.takes_awaits();
        self.proves_awaits = takes && self.machine.limits.proves_awaits;
        self.takes_awaits = takes && !self.proves_awaits;
    }

    /// Memory is C11's: the graph of each execution is in `weak`, which the explorer may share.
    pub(crate) fn weaken(&mut self, weak: Rc<RefCell<WeakMemory>>) {
        self.machine.order_stores();
        self.trace.is_weak = true;
        self.weak = Some(weak);
    }

    /// Checks each execution from now on for operations that have other outcomes under C11.
    pub(crate) fn look_out(&mut self) {
        self.lookout = Some(Box::new(LookOut::new()));
    }

    /// The look-out has found something in another process.
    pub(crate) fn look_out_no_more(&mut self) {
        self.lookout = None;
    }

    /// The result of the look-out, if there is one.
    pub(crate) fn looked_out(&self) -> Option<Option<&WeakStep>> {
        let lookout = self.lookout.as_ref()?;
        Some(lookout.found.as_ref())
    }

    /// The number of lists of waits that the look-out keeps.
    #[cfg(test)]
    pub(crate) fn waits_looked_at(&mut self) -> usize {
        (self.lookout.as_mut()).map_or(0, |lookout| lookout.waits())
    }

    /// Whether memory is C11's.
    pub(crate) fn is_weak(&self) -> bool {
        self.weak.is_some()
    }

    /// The traces that are covered once no execution is left to explore.
    pub(crate) fn coverage(&self) -> Coverage {
        match self.explorer.coverage() {
            Coverage::All if self.regions.any() => Coverage::Regions,
            Coverage::All => match self.machine.rounds_left_out() {
                Some(most) => Coverage::Rounds(most),
                None => (self.machine.limits.rounds_of_turn).map_or(Coverage::All, Coverage::Fair),
            },
            covered => covered,
        }
    }

    /// Whether the test has excluded a part of the program from the exploration.
    pub(crate) fn excludes(&self) -> bool {
        self.regions.any()
    }

    /// Whether this exploration is void, because a thread has checked whether another one has
    /// finished: it must restart, with the ends of threads as events.
    pub(crate) fn ends_are_seen(&self) -> bool {
        self.ends_are_seen
    }

    /// The loop for which this exploration is void: a look in vain was withdrawn, and its thread
    /// has done something else than to look again.
    pub(crate) fn refused(&self) -> Option<&AwaitLoop> {
        self.refused.as_ref()
    }

    /// The place at which a value was put into an `Arc`, if this exploration is void because the
    /// drop glue of the value has done more than free memory: it must restart, with the last drop
    /// of such a value ordered with the other drops.
    pub(crate) fn loud_glue(&self) -> Option<Site> {
        self.loud_glue
    }

    /// Notes that the exploration is void because of the drop glue of a value from this place.
    pub(crate) fn note_loud_glue(&mut self, site: Site) {
        self.loud_glue = Some(site);
    }

    /// Whether executions are left to explore, as far as the explorer knows.
    pub(crate) fn more(&self) -> bool {
        self.explorer.more()
    }

    /// The approximate number of executions in all, where the explorer knows its plans. `None` if
    /// that is hardly more than the number of executions so far although some are left: in a loop
    /// without an end, each execution plans only the next one, and the estimate of the rest never
    /// shrinks.
    pub(crate) fn estimate(&self) -> Option<f64> {
        let begun = self.stats.begun() as f64;
        if !self.explorer.more() {
            return Some(begun);
        }
        let mut planned = Vec::new();
        self.explorer.planned(&mut planned);
        let recursive = || (!planned.is_empty()).then(|| self.estimator.recursive(&planned));
        let estimate = self.explorer.estimate().or_else(recursive);
        estimate.filter(|estimate| begun < ALL_BUT * estimate)
    }

    /// Whether this current estimate is reliable: no execution is left, or the estimate has not
    /// changed for long.
    pub(crate) fn has_settled(&self, estimate: f64) -> bool {
        !self.explorer.more() || self.estimator.has_settled(estimate)
    }

    /// The number of executions that there are at least, judged by this current estimate and those
    /// before it.
    pub(crate) fn at_least(&self, estimate: f64) -> f64 {
        self.estimator.least(estimate)
    }

    /// Writes down the unexplored sequences, between two executions; `None` if there are none, or
    /// if the algorithm cannot tell.
    pub(crate) fn save(&self, statics: &dyn Statics) -> Option<Result<Vec<u8>, String>> {
        let unfinished = self.explorer.unfinished(&self.trace)?;
        Some(self.encode(&unfinished, statics))
    }

    fn encode(&self, unfinished: &Unfinished, statics: &dyn Statics) -> Result<Vec<u8>, String> {
        let progress = Progress {
            stats: self.stats,
            regions: self.regions.any(),
            rounds: self.machine.rounds_left_out().is_some(),
            estimator: self.estimator.save(),
            contention: self.clocks.save_contention(),
        };
        checkpoint::encode(&self.machine, &progress, unfinished, statics)
    }

    /// [`Driver::save`] as it was before the last execution was begun.
    pub(crate) fn save_with_last(&self, statics: &dyn Statics) -> Option<Result<Vec<u8>, String>> {
        let unfinished = self.explorer.unfinished_with_last()?;
        Some(self.encode(&unfinished, statics))
    }

    /// Whether [`Driver::split`] would return something.
    pub(crate) fn can_split(&self) -> bool {
        self.explorer.can_split()
    }

    /// Gives away the part of what is left that would be explored last, between two executions, for
    /// [`Driver::restore_parts`]; `None` if too little is left.
    pub(crate) fn split(&mut self, statics: &dyn Statics) -> Option<Result<Vec<u8>, String>> {
        let unfinished = self.explorer.split()?;
        Some(self.encode(&unfinished, statics))
    }

    /// What is left, between two executions, in as many parts as there are branches planned, each
    /// with the depth at which it branches off. The part that would be explored last comes first.
    pub(crate) fn branches(
        &self,
        statics: &dyn Statics,
    ) -> impl Iterator<Item = (u32, Result<Vec<u8>, String>)> {
        let branches = self.explorer.branches().into_iter();
        branches.map(move |(depth, unfinished)| (depth, self.encode(&unfinished, statics)))
    }

    /// What others have explored already of what comes behind the last execution.
    pub(crate) fn later(&self) -> Stats {
        self.explorer.later()
    }

    /// Whether explorers that share the work must know what this one has learnt from the last
    /// execution.
    pub(crate) fn has_changed_preference(&self) -> bool {
        self.explorer.has_changed_preference()
    }

    /// Takes over parts of explorations of the same program, each as bytes of [`Driver::save`] or
    /// [`Driver::split`], before the first execution. The first part is explored last. With each
    /// part comes what was explored already behind it; `stats` is all that was explored. False if
    /// the bytes are invalid, or if the algorithm cannot continue from them.
    pub(crate) fn restore_parts<'b>(
        &mut self,
        parts: impl Iterator<Item = (&'b [u8], Stats)>,
        stats: Stats,
        statics: &dyn Statics,
    ) -> bool {
        let mut all = Unfinished::default();
        let (mut has_learnt, mut regions, mut rounds) = (false, false, false);
        for (part, later) in parts {
            let mut theirs = Machine::new(Limits::default());
            let Some((progress, unfinished)) = checkpoint::decode(part, &mut theirs, statics)
            else {
                return false;
            };
            self.machine.limits.learn(theirs.limits.learnt.clone());
            let translation = Translation::new(&theirs, &mut self.machine);
            all.suspended
                .add(&unfinished.suspended, &translation, &later);
            has_learnt |= theirs.waits_unknown();
            regions |= progress.regions;
            rounds |= progress.rounds;
            let Translation {
                threads, objects, ..
            } = &translation;
            let contention = &progress.contention;
            if !self.clocks.add_contention(contention, threads, objects) {
                return false;
            }
        }
        self.make_room_for_blocks();
        self.stats = stats;
        self.machine.take_up(has_learnt);
        self.regions.restore(regions);
        self.machine.restore_left_out(rounds);
        self.ask_for_awaits();
        self.explorer.take_over(&all)
    }

    /// Goes on in place of a driver of the same exploration, which keeps nothing: with its
    /// look-out, the tries of raw uses, and the places that cost most executions.
    pub(crate) fn take_place_of(&mut self, earlier: &mut Driver) {
        self.lookout = earlier.lookout.take();
        if let Some(lookout) = &mut self.lookout {
            lookout.skip();
        }
        self.raw_uses = earlier.raw_uses.take();
        if let Some(uses) = &mut self.raw_uses {
            uses.forget(0);
        }
        self.looks_for_raw_uses = earlier.looks_for_raw_uses;
        self.hotspots = std::mem::take(&mut earlier.hotspots);
    }

    /// Continues a saved exploration of the same program, before the first execution. False if the
    /// bytes are invalid, or if the algorithm cannot continue from them.
    pub(crate) fn restore(&mut self, bytes: &[u8], statics: &dyn Statics) -> bool {
        let decoded = checkpoint::decode(bytes, &mut self.machine, statics);
        let Some((progress, unfinished)) = decoded else {
            return false;
        };
        self.stats = progress.stats;
        if let Some(weak) = &self.weak {
            // A step may wait for a set of objects before this process has made the set.
            let sets = self.machine.sets.clone();
            weak.borrow_mut().search.model.graph_mut().sets = sets;
        }
        self.regions.restore(progress.regions);
        self.machine.restore_left_out(progress.rounds);
        self.ask_for_awaits();
        self.make_room_for_blocks();
        self.estimator.restore(&progress.estimator)
            && self.clocks.restore_contention(&progress.contention)
            && self.explorer.resume(&unfinished)
    }

    /// A block without a footprint touches the objects of saved steps, which no execution of this
    /// driver has met.
    fn make_room_for_blocks(&mut self) {
        if !self.machine.sets.footprints().is_empty() {
            self.clocks.make_room(self.machine.names.object_count());
        }
    }

    /// The number of bytes that hold the unexplored sequences.
    pub(crate) fn memory(&self) -> usize {
        self.explorer.memory()
    }

    /// The wakeup trees at their largest; `None` if the algorithm has none.
    pub(crate) fn trees(&self) -> Option<Trees> {
        self.explorer.trees()
    }

    /// Starts the next execution; false if none is left to explore. `site` is where the main
    /// thread's code begins.
    pub(crate) fn begin(&mut self, site: Site) -> bool {
        self.tried.begin(self.again);
        self.replayed = match std::mem::take(&mut self.again) {
            true => self.trace.len(),
            false if !self.plan_next() => return false,
            false => self.plan.common_prefix,
        };
        self.trace.truncate(self.replayed);
        self.trace.forget_what_is_no_event();
        self.clocks.truncate(self.replayed);
        self.machine.reset(site);
        self.machine.forget_passed(self.replayed);
        self.forget_proven(self.replayed);
        self.regions.begin();
        self.begun = 0;
        self.owners.reset();
        if let Some(uses) = &mut self.raw_uses {
            cold_path();
            uses.forget(self.replayed);
        }
        if let Some(weak) = &self.weak {
            cold_path();
            // A branch at the first event has no event in common with the execution before.
            let goes_on = self.replayed > 0 || self.plan.branches;
            weak.borrow_mut().begin(goes_on.then_some(self.replayed));
        }
        self.find_break();
        // An execution that is made again may be longer than its plan.
        self.free_from = self
            .replayed
            .max(self.plan.common_prefix + self.plan.steps.len());
        self.free_for = if self.last_goes_on {
            (self.bounds.events_max.saturating_sub(self.free_from)).min(steps::AT_ONCE)
        } else {
            0
        };
        self.looks_back = self.asks_for_clocks;
        (self.position, self.hints) = (0, 0);
        self.current = ThreadId::MAIN;
        true
    }

    /// The presumed failure of the last execution is no failure: the driver repeats the execution,
    /// and continues it behind that point.
    pub(crate) fn rerun(&mut self) {
        self.again = true;
    }

    /// The number of events of the current execution that were planned; behind them the explorer
    /// chooses the steps.
    pub(crate) fn planned(&self) -> usize {
        self.plan.common_prefix + self.plan.steps.len()
    }

    /// The number of events of the current execution that were planned because an earlier execution
    /// had made them.
    pub(crate) fn repeated(&self) -> usize {
        self.plan.common_prefix + self.plan.repeated
    }

    /// Asks the explorer for the next execution; false if none is left to explore.
    fn plan_next(&mut self) -> bool {
        self.plan.clear();
        if self.machine.unfit.is_some() || !self.explorer.begin(&mut self.plan) {
            return false;
        }
        self.last_goes_on = self.explorer.lets_the_last_go_on();
        let branches = !self.plan.steps.is_empty() || self.plan.branches;
        if self.stats.begun() > 0 && branches {
            self.estimator
                .branch(self.plan.common_prefix + self.plan.repeated);
            // After an execution that has repeated an earlier one there is no event at that point.
            let last = self.trace.events().get(self.plan.common_prefix);
            let last = last.filter(|_| self.plan.repeated == 0);
            if let Some(site) = self.plan.replaces.or(last.map(|event| event.site)) {
                self.hotspots.book(site);
            }
        }
        true
    }

    /// The test switches exploration on or off.
    pub(crate) fn switch_exploration(&mut self, on: bool) {
        self.regions.switch(on);
        self.ask_again();
    }

    /// The test switches exploration off for the rest of this execution.
    pub(crate) fn skip_rest(&mut self) {
        self.regions.skip();
        self.ask_again();
    }

    /// The schedule that leads to the end of the last execution.
    pub(crate) fn schedule(&self) -> Schedule {
        Schedule::of(&self.trace, self.trace.len(), &self.machine.names)
    }

    /// The events of this execution so far.
    pub(crate) fn executed(&self) -> &[Event] {
        let events = self.trace.events();
        &events[..self.position.min(events.len())]
    }

    /// Drops the events of the execution before that this one has not reached, and hides the events
    /// behind the first `most` ones. [`Driver::finish`] restores them, because the explorer needs
    /// all of them.
    pub(crate) fn hide_suffix(&mut self, most: usize) {
        self.trace.cut(self.position, self.begun);
        self.clocks.truncate(self.position);
        if most < self.position {
            let (trace, clocks) = (self.trace.clone(), self.clocks.clone());
            self.hidden = Some(Box::new((trace, clocks, self.machine.clone())));
            self.trace.cut(most, self.begun);
            self.clocks.truncate(most);
            self.machine.rewind(self.trace.events());
        }
    }

    /// Whether the last execution ended within the common prefix, although the execution before
    /// continued there: then the program depends on more than its schedule.
    pub(crate) fn failed_in_the_prefix(&self) -> bool {
        self.position < self.replayed
    }

    /// The threads that have announced an operation and cannot perform it.
    pub(crate) fn blocked(&self) -> Vec<Blocked> {
        let live = self.machine.live().iter();
        live.filter(|&&thread| !self.machine.enabled(thread))
            .filter_map(|&thread| {
                self.machine.pending(thread).map(|pending| Blocked {
                    thread,
                    operation: pending.operation,
                    site: pending.site,
                })
            })
            .collect()
    }

    /// Passes an execution that has ended to the explorer.
    pub(crate) fn finish(&mut self, end: &End) {
        if self.hidden.is_none() {
            self.catch_up();
        }
        if let End::Pruned(Pruned::LeftLoop) = end {
            self.trace.cut(self.position, self.begun);
            self.clocks.truncate(self.position);
            self.again = true;
            return;
        }
        if let End::Pruned(Pruned::EndsAreSeen) = end {
            self.ends_are_seen = self.refused.is_none() && self.loud_glue.is_none();
            return;
        }
        if let Some(hidden) = self.hidden.take() {
            cold_path();
            (self.trace, self.clocks, self.machine) = *hidden;
            self.catch_up();
        }
        self.trace.place();
        self.stats.events += self.position as u64;
        self.estimator.leaf();
        self.stats.longest = self.stats.longest.max(self.position);
        match end {
            End::Pruned(Pruned::Asleep) => self.stats.asleep += 1,
            End::Pruned(Pruned::Assumed) => self.stats.assumed += 1,
            End::Pruned(Pruned::Rounds) => self.stats.rounds += 1,
            End::Pruned(Pruned::InVain) => self.stats.in_vain += 1,
            _ => self.stats.complete += 1,
        }
        if self.asks_for_clocks {
            self.compute_clocks();
        }
        let blocked = self.pending(end);
        if let Some(lookout) = &mut self.lookout {
            if self.asks_for_clocks {
                let kept = self.plan.common_prefix.min(self.trace.len());
                let seen = (&self.trace, &self.clocks);
                lookout.look(&self.machine, seen, kept, &blocked);
            } else {
                // An execution that is repeated; the look-out needs clocks.
                lookout.skip();
            }
        }
        self.explorer.finish(&Execution {
            trace: &self.trace,
            clocks: &self.clocks,
            machine: &self.machine,
            blocked: &blocked,
            fixed: self.regions.fixed(),
            first_new: self.plan.common_prefix + self.plan.repeated,
            planned: (self.plan.steps.len()).saturating_sub(self.plan.repeated),
            snapshots: Snapshots::default(),
        });
        if rarely!(self.estimator.is_to_keep()) {
            let estimate = self.estimate();
            self.estimator.keep(estimate);
        }
    }

    /// Detaches the explorer from the execution, which continues without exploration for at most
    /// `further` events. The explorer has learnt from the execution already, or does so after
    /// [`Driver::reattach`].
    pub(crate) fn detach(&mut self, further: usize) -> Left {
        self.catch_up();
        let explorer = Box::new(Replay::along(Leisure::default()));
        let left = Left {
            explorer: std::mem::replace(&mut self.explorer, explorer),
            bounds: self.bounds,
            max_rounds: self.machine.limits.max_rounds.take(),
            awaits: std::mem::take(&mut self.machine.limits.learnt.awaits),
            waited: self.machine.waited().len(),
            length: self.position,
            begun: self.begun,
        };
        if let Some(weak) = &self.weak {
            weak.borrow_mut().put_aside(true);
        }
        (self.last_goes_on, self.has_all_begin) = (false, false);
        (self.takes_awaits, self.proves_awaits) = (false, false);
        self.machine.forget_rests();
        self.ask_again();
        self.bounds.events_max = self.position + self.hints + further;
        left
    }

    /// Lowers the limit of events.
    pub(crate) fn limit_events(&mut self, most: usize) {
        self.bounds.events_max = self.bounds.events_max.min(most);
    }

    /// Reattaches the explorer: the detached execution has ended, and the driver returns to its
    /// state at the moment of the detachment.
    pub(crate) fn reattach(&mut self, left: Left) {
        let Left {
            explorer,
            bounds,
            max_rounds,
            awaits,
            waited,
            length,
            begun,
        } = left;
        self.machine.limits.max_rounds = max_rounds;
        self.machine.limits.learnt.awaits = awaits;
        self.machine.forget_waits_after(waited);
        self.last_goes_on = explorer.lets_the_last_go_on();
        self.has_all_begin = explorer.has_all_begin();
        (self.explorer, self.bounds) = (explorer, bounds);
        self.ask_for_awaits();
        self.trace.cut(length, begun);
        if let Some(weak) = &self.weak {
            weak.borrow_mut().put_aside(false);
        }
        // The check of a free may have computed clocks behind this point.
        self.clocks.truncate(length);
        self.machine.forget_passed(length);
        self.forget_proven(length);
        if let Some(uses) = &mut self.raw_uses {
            uses.forget_after(length);
        }
        (self.position, self.begun) = (length, begun);
    }

    /// The final end of an execution: if it did not fail but the followed schedule has more steps,
    /// the two do not fit. A failure is reported even if the schedule has more steps behind it.
    pub(crate) fn unless_more_was_asked_for(&self, end: End) -> End {
        match end {
            // The restarted exploration follows the schedule again.
            End::Pruned(Pruned::EndsAreSeen) => end,
            End::Complete | End::Pruned(_) => match self.explorer.misfit_at_the_end() {
                Some(misfit) => End::Stale { misfit },
                None => end,
            },
            _ => end,
        }
    }

    /// The position of the last event of `thread` in this execution so far; of its spawn if it has
    /// none.
    pub(crate) fn last_of(&self, thread: ThreadId) -> Option<u32> {
        let mine = |event: &Event| event.thread == thread;
        let last = self.executed().iter().rposition(mine);
        let last = last.map(|position| position as u32);
        last.or_else(|| self.trace.spawn_of(thread))
    }

    /// Whether this access of another thread happens before the last event of `thread`, in every
    /// linearisation of this trace.
    pub(crate) fn comes_before(&mut self, access: &Access, thread: ThreadId) -> bool {
        self.compute_clocks();
        let last = self.last_of(thread);
        last.is_some_and(|at| (self.clocks).knows(at, access.thread, access.after))
    }

    /// Whether the event of another thread with this index happens before all that `thread` does
    /// next.
    pub(crate) fn has_learnt(&mut self, thread: ThreadId, (of, index): (ThreadId, u32)) -> bool {
        self.compute_clocks();
        let last = self.last_of(thread);
        last.is_some_and(|at| self.clocks.knows(at, of, index))
    }

    /// Notes that `thread` has dropped the value with this reference `count`.
    pub(crate) fn note_gone(&mut self, count: ObjectId, thread: ThreadId) -> ValueGone {
        let after = self.machine.events_of(thread);
        let gone = ValueGone {
            count,
            thread,
            after,
        };
        self.owners.note_gone(gone);
        gone
    }

    /// The dropped values of this execution that had weak references at that moment.
    pub(crate) fn gone(&self) -> &[ValueGone] {
        self.owners.gone()
    }

    /// Whether the execution before had the same events so far. Then the checks that follow each
    /// free have run in that execution.
    pub(crate) fn was_asked(&self) -> bool {
        self.position <= self.plan.common_prefix
    }

    /// The uses of the block that contains these objects. `thread` has just freed it, because the
    /// last reference that `count` counts is gone. `None` if no other thread has used the block.
    pub(crate) fn releases(
        &mut self,
        count: ObjectId,
        objects: &[ObjectId],
        thread: ThreadId,
    ) -> Option<Releases> {
        let executed = &self.trace.events()[..self.position];
        let uses = self.owners.uses_of(objects, executed);
        if uses
            .iter()
            .all(|&at| executed[at as usize].thread == thread)
        {
            return None;
        }
        self.compute_clocks();
        let ends = self.owners.ends_of(count, &self.trace);
        let ends = ends.chain(self.last_of(thread)).collect();
        Some(Releases::among(&uses, &self.trace, count, ends))
    }

    /// Uses of that block that can run after its free, in order.
    pub(crate) fn late_uses(&self, releases: &Releases) -> Vec<Event> {
        let late = releases.late_uses(&self.clocks);
        late.iter().map(|&at| *self.trace.at(at)).collect()
    }

    /// Whether this access to the block can run after its free.
    pub(crate) fn can_come_later(&mut self, access: &Access, releases: &Releases) -> bool {
        self.compute_clocks();
        releases.let_through(&self.clocks, access.thread, access.after)
    }

    /// The number of bytes that clocks for all events would take, if the system does not have them.
    #[inline]
    pub(crate) fn lacks_clocks(&mut self) -> Option<usize> {
        self.clocks.lack(&self.trace)
    }

    /// The number of bytes that are missing to learn from the execution that has ended, as far as
    /// that is known in advance.
    #[inline]
    pub(crate) fn lacks_memory(&mut self) -> Option<usize> {
        if self.asks_for_clocks {
            self.lacks_clocks()
        } else {
            None
        }
    }

    /// Computes the clock of every event.
    pub(crate) fn compute_clocks(&mut self) {
        self.trace.place();
        self.clocks.extend(&self.trace, &self.machine.sets);
    }

    /// Looks at an execution that has ended, and teaches the explorer nothing.
    pub(crate) fn ended<R>(&mut self, end: &End, look: impl FnOnce(&Execution<'_>) -> R) -> R {
        self.compute_clocks();
        look(&Execution {
            trace: &self.trace,
            clocks: &self.clocks,
            machine: &self.machine,
            blocked: &self.pending(end),
            fixed: self.regions.fixed(),
            first_new: 0,
            planned: 0,
            snapshots: Snapshots::default(),
        })
    }

    /// The operations that threads had announced and not performed when an execution ended.
    fn pending(&self, end: &End) -> Vec<Blocked> {
        match end {
            // A complete execution, too, may have blocked threads (`Limits::detached_may_block`).
            End::Complete
            | End::Deadlock(_)
            | End::Livelock { .. }
            | End::Pruned(Pruned::Assumed | Pruned::Stopped | Pruned::Rounds | Pruned::InVain) => {
                self.blocked()
            }
            // An execution that ended in the middle also has enabled operations pending.
            _ => self
                .machine
                .live()
                .iter()
                .filter_map(|&thread| {
                    let pending = self.machine.pending(thread)?;
                    Some(Blocked {
                        thread,
                        operation: pending.operation,
                        site: pending.site,
                    })
                })
                .collect(),
        }
    }
}
