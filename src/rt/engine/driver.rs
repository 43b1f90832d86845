//! What drives what? The one loop, written as a step.
//!
//! A [`Driver`] owns the machine, the trace and the explorer. Whoever runs the code (coroutines, or
//! the interpreter of abstract programs) calls
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
//! [`Driver::next`] may be called from anywhere, in particular from the stack of the coroutine that
//! has just announced: when the same thread goes on, nothing is switched.
//!
//! That a thread begins is no event. Mostly its code does so when it is picked for the first time,
//! and it makes its first step at once; explorers that have to know what everybody is about to do
//! have all begin as soon as they are spawned.
//!
//! The prefix that an execution shares with the one before it is replayed from the trace itself:
//! one array read, one comparison and the operation per step.

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{Outcome, Step};
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::{Access, Blocked, End, Pruned, ValueGone};
use crate::rt::event::{Event, Site, Trace};
use crate::rt::object::machine::{Awaits, Limits, Machine};
use crate::rt::rare::{cold_path, rarely};
use crate::rt::relation::happens_before::HappensBefore;
use crate::rt::relation::independence::Label;

use crate::rt::engine::checkpoint;
use crate::rt::engine::checkpoint::{Progress, Statics};
use crate::rt::engine::estimate::Estimator;
use crate::rt::engine::hotspots::Hotspots;
use crate::rt::engine::regions::Regions;
use crate::rt::engine::replay::Replay;
use crate::rt::engine::run_out::Leisure;
use crate::rt::engine::{Coverage, Execution, Explorer};
use crate::rt::lifetime::delayed_use::RawUses;
use crate::rt::lifetime::owners::{Owners, Releases};

pub(crate) mod recycle;
mod repeat;
mod steps;

pub(crate) use crate::rt::engine::driver::steps::Short;

/// How the next execution begins.
#[derive(Default, Debug)]
pub(crate) struct Plan {
    /// How many events of the last execution stay as they are.
    pub(crate) common_prefix: usize,
    /// The steps that follow them, before the explorer is asked again. Where the label is known,
    /// the step must come out with it.
    pub(crate) steps: Vec<(Step, Option<Label>)>,
    /// How many of the steps only repeat what was executed before, by another process or in an
    /// earlier execution than the last.
    pub(crate) repeated: usize,
    /// The place in the program of the event that the first of the other steps is made instead of,
    /// if that is not an event of the last execution.
    pub(crate) replaces: Option<Site>,
}

impl Plan {
    /// Nothing is planned.
    fn clear(&mut self) {
        self.common_prefix = 0;
        self.steps.clear();
        self.repeated = 0;
        self.replaces = None;
    }
}

/// What [`Driver::next`] did.
#[derive(Debug)]
pub(crate) enum Next {
    /// The thread's code is to run up to its first announcement.
    Begins(ThreadId),
    /// The thread made its announced step; its code is to run up to its next announcement.
    Ran(ThreadId, Outcome),
    /// The execution is over; [`Driver::take_end`] says how. Without that, this is small enough for
    /// registers.
    Ended,
}

/// An estimate that has more than this share of it executed has nothing to say of what is left: it
/// would be told as 100 %.
const ALL_BUT: f64 = 0.995;

/// The limits of one execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The most events an execution may have.
    pub(crate) events_max: usize,
    /// Whether a spin hint is one of them.
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

/// How far an exploration has come.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Stats {
    /// Executions that ran to an end.
    pub(crate) complete: u64,
    /// Executions given up because what was left was covered elsewhere.
    pub(crate) asleep: u64,
    /// Executions given up by the program.
    pub(crate) assumed: u64,
    /// Executions given up because a thread had made as many rounds as it may.
    pub(crate) rounds: u64,
    /// Executions given up because a thread had looked in vain.
    pub(crate) in_vain: u64,
    /// Events in all executions, replayed ones included.
    pub(crate) events: u64,
    /// The most events in one execution.
    pub(crate) longest: usize,
}

impl Stats {
    /// Executions that were begun, whatever came of them.
    pub(crate) fn begun(&self) -> u64 {
        self.complete + self.given_up()
    }

    /// Those of them that did not come to an end, for whatever reason.
    pub(crate) fn given_up(&self) -> u64 {
        self.asleep + self.left_out()
    }

    /// Those of them that nothing else covers, which are the ones that are shown and counted where
    /// one is named by its number.
    pub(crate) fn numbered(&self) -> u64 {
        self.complete + self.left_out()
    }

    /// Those that the program or a setting left out of what is explored.
    pub(crate) fn left_out(&self) -> u64 {
        self.assumed + self.rounds + self.in_vain
    }
}

/// What an execution was when it was left to itself.
pub(crate) struct Left {
    explorer: Box<dyn Explorer>,
    bounds: Bounds,
    max_rounds: Option<usize>,
    awaits: Awaits,
    /// How many first waits were known.
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
    /// What the explorer says of itself.
    last_goes_on: bool,
    asks_for_clocks: bool,
    has_all_begin: bool,
    bounds: Bounds,
    plan: Plan,
    /// How many events are those of the execution before: what the plan keeps, or all of an
    /// execution that is made again.
    replayed: usize,
    /// How many threads have begun in this execution.
    begun: usize,
    /// Up to which of the events that are repeated no other thread begins.
    unbroken: usize,
    /// The next execution is the last one again, and further.
    again: bool,
    /// A position, and how many of the steps from there on are made by the thread that made the
    /// last one if it can: behind the plan so many as are made at once, or else those that the
    /// explorer has said last.
    free_from: usize,
    free_for: usize,
    /// Whether clocks are made while the execution goes on.
    looks_back: bool,
    position: usize,
    /// How many spin hints the threads have come to, if these count as events.
    hints: usize,
    /// The thread that made the last step.
    current: ThreadId,
    /// How the execution has ended, until that is asked.
    end: Option<End>,
    /// Whether a thread has looked whether another one has finished, and ends are no events.
    ends_are_seen: bool,
    owners: Owners,
    /// Whether there is somebody who tries what is noted of uses of freed memory.
    pub(crate) looks_for_raw_uses: bool,
    /// Uses of freed memory that there may be and nobody sees. In a box, because mostly there are
    /// none.
    pub(crate) raw_uses: Option<Box<RawUses>>,
    /// All of an execution of which a part is hidden.
    hidden: Option<Box<(Trace, HappensBefore, Machine)>>,
}

impl Driver {
    /// Makes an empty driver one for this explorer.
    pub(crate) fn prepare(&mut self, explorer: Box<dyn Explorer>, limits: Limits, bounds: Bounds) {
        self.machine.limits = limits;
        self.regions = Regions::new(bounds.explicit);
        self.last_goes_on = explorer.lets_the_last_go_on();
        self.asks_for_clocks = explorer.asks_for_clocks();
        self.has_all_begin = explorer.has_all_begin();
        self.explorer = explorer;
        self.bounds = bounds;
    }

    /// What will have been covered once nothing is left to explore.
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

    /// Whether the test has excluded anything from the exploration.
    pub(crate) fn excludes(&self) -> bool {
        self.regions.any()
    }

    /// Whether nothing of this exploration counts, because a thread has looked whether another one
    /// has finished: all has to be explored anew, with ends that are events.
    pub(crate) fn ends_are_seen(&self) -> bool {
        self.ends_are_seen
    }

    /// Whether something is left to explore, as far as that is known.
    pub(crate) fn more(&self) -> bool {
        self.explorer.more()
    }

    /// About how many executions there will be in all, where the explorer knows what it plans. None
    /// if that is hardly more than what has been executed although something is left: in a loop
    /// without an end, each execution plans only the next one, and there is always as much left as
    /// at the beginning.
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

    /// Whether this estimate of now can be relied on: nothing is left, or it has not changed for
    /// long.
    pub(crate) fn has_settled(&self, estimate: f64) -> bool {
        !self.explorer.more() || self.estimator.has_settled(estimate)
    }

    /// Writes down what is still to be explored, between two executions; `None` if that is nothing,
    /// or if the algorithm cannot tell.
    pub(crate) fn save(&self, statics: &dyn Statics) -> Option<Result<Vec<u8>, String>> {
        let unfinished = self.explorer.unfinished(&self.trace)?;
        let progress = Progress {
            stats: self.stats,
            regions: self.regions.any(),
            rounds: self.machine.rounds_left_out().is_some(),
            estimator: self.estimator.save(),
            contention: self.clocks.save_contention(),
        };
        Some(checkpoint::encode(
            &self.machine,
            &progress,
            &unfinished,
            statics,
        ))
    }

    /// Takes up an exploration of the same program that was written down, before the first
    /// execution. False if the bytes make no sense, or if the algorithm cannot do that.
    pub(crate) fn restore(&mut self, bytes: &[u8], statics: &dyn Statics) -> bool {
        let decoded = checkpoint::decode(bytes, &mut self.machine, statics);
        let Some((progress, unfinished)) = decoded else {
            return false;
        };
        self.stats = progress.stats;
        self.regions.restore(progress.regions);
        self.machine.restore_left_out(progress.rounds);
        self.estimator.restore(&progress.estimator)
            && self.clocks.restore_contention(&progress.contention)
            && self.explorer.resume(&unfinished)
    }

    /// How many bytes hold what is still to be explored.
    pub(crate) fn memory(&self) -> usize {
        self.explorer.memory()
    }

    /// Starts the next execution; false if nothing is left to explore. `site` is where the main
    /// thread's code begins.
    pub(crate) fn begin(&mut self, site: Site) -> bool {
        self.replayed = match std::mem::take(&mut self.again) {
            true => self.trace.len(),
            false if !self.plan_next() => return false,
            false => self.plan.common_prefix,
        };
        self.trace.truncate(self.replayed);
        self.trace.forget_what_is_no_event();
        self.clocks.truncate(self.replayed);
        self.machine.reset(site);
        self.regions.begin();
        self.begun = 0;
        self.owners.reset();
        if let Some(uses) = &mut self.raw_uses {
            cold_path();
            uses.forget(self.replayed);
        }
        self.find_break();
        // What is made again may be longer.
        self.free_from = self
            .replayed
            .max(self.plan.common_prefix + self.plan.steps.len());
        self.free_for = match self.last_goes_on {
            true => (self.bounds.events_max.saturating_sub(self.free_from)).min(steps::AT_ONCE),
            false => 0,
        };
        self.looks_back = self.asks_for_clocks;
        (self.position, self.hints) = (0, 0);
        self.current = ThreadId::MAIN;
        true
    }

    /// What was taken for the failure of the last execution is none: it is made again, and goes on
    /// from there.
    pub(crate) fn rerun(&mut self) {
        self.again = true;
    }

    /// How many events of the current execution were planned; behind them threads go on as they
    /// like.
    pub(crate) fn planned(&self) -> usize {
        self.plan.common_prefix + self.plan.steps.len()
    }

    /// How many events of the current execution were planned because an earlier one had made them.
    pub(crate) fn repeated(&self) -> usize {
        self.plan.common_prefix + self.plan.repeated
    }

    /// Asks the explorer for the next execution; false if nothing is left to explore.
    fn plan_next(&mut self) -> bool {
        self.plan.clear();
        if !self.explorer.begin(&mut self.plan) {
            return false;
        }
        if self.stats.begun() > 0 && !self.plan.steps.is_empty() {
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

    /// What leads to the end of the last execution.
    pub(crate) fn schedule(&self) -> Schedule {
        Schedule::of(&self.trace, self.trace.len(), &self.machine.names)
    }

    /// The events of this execution so far.
    pub(crate) fn executed(&self) -> &[Event] {
        let events = self.trace.events();
        &events[..self.position.min(events.len())]
    }

    /// Drops the events of the execution before that this one has not come to, and hides what came
    /// after its first `most` events. Who explores on has to look at all of them.
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

    /// Whether the last execution ended within what it shares with the one before, which went on
    /// from there: then the program depends on more than its schedule.
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

    /// Lets the explorer learn from an execution that has ended.
    pub(crate) fn finish(&mut self, end: &End) {
        if let End::Pruned(Pruned::EndsAreSeen) = end {
            self.ends_are_seen = true;
            return;
        }
        if let Some(hidden) = self.hidden.take() {
            cold_path();
            (self.trace, self.clocks, self.machine) = *hidden;
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
        self.explorer.finish(&Execution {
            trace: &self.trace,
            clocks: &self.clocks,
            machine: &self.machine,
            blocked: &blocked,
            fixed: self.regions.fixed(),
            first_new: self.plan.common_prefix + self.plan.repeated,
            planned: self.plan.steps.len() - self.plan.repeated,
        });
        if rarely!(self.estimator.is_to_keep()) {
            let estimate = self.estimate();
            self.estimator.keep(estimate);
        }
    }

    /// From here on nobody explores the execution, which goes on as it likes for at most `further`
    /// events. What was to be learnt from it was learnt, or is learnt after [`Driver::reattach`].
    pub(crate) fn detach(&mut self, further: usize) -> Left {
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
        (self.last_goes_on, self.has_all_begin) = (false, false);
        self.ask_again();
        self.bounds.events_max = self.position + self.hints + further;
        left
    }

    /// The execution, which was left, has ended, and is again what it was then.
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
        self.trace.cut(length, begun);
        // A free may have been compared with what comes before it.
        self.clocks.truncate(length);
        if let Some(uses) = &mut self.raw_uses {
            uses.forget_after(length);
        }
        (self.position, self.begun) = (length, begun);
    }

    /// How an execution has ended, in all: if it did not fail but the schedule that was followed
    /// goes on, the two do not fit. A failure is told whatever the schedule asks for after it.
    pub(crate) fn unless_more_was_asked_for(&self, end: End) -> End {
        match end {
            // What was asked for is asked for anew.
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

    /// Whether this access of another thread was made before the last event of `thread`, in
    /// whatever order the events of this trace come.
    pub(crate) fn comes_before(&mut self, access: &Access, thread: ThreadId) -> bool {
        self.compute_clocks();
        let last = self.last_of(thread);
        last.is_some_and(|at| (self.clocks).knows(at, access.thread, access.after))
    }

    /// The value is gone whose references are counted by `count`; `thread` had it.
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

    /// The values that are gone in this execution, while there were weak references to them.
    pub(crate) fn gone(&self) -> &[ValueGone] {
        self.owners.gone()
    }

    /// Whether the execution before had the same events so far. What is asked whenever a block is
    /// freed was asked there.
    pub(crate) fn was_asked(&self) -> bool {
        self.position <= self.plan.common_prefix
    }

    /// What has been done to the block with these objects in it that `thread` has just freed: the
    /// last reference that this `count` counts is gone. `None` if no other thread has done anything
    /// to it.
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

    /// Uses of that block that can come after its free, in order.
    pub(crate) fn late_uses(&self, releases: &Releases) -> Vec<Event> {
        let late = releases.late_uses(&self.clocks);
        late.iter().map(|&at| *self.trace.at(at)).collect()
    }

    /// Whether this access to it can.
    pub(crate) fn can_come_later(&mut self, access: &Access, releases: &Releases) -> bool {
        self.compute_clocks();
        releases.let_through(&self.clocks, access.thread, access.after)
    }

    /// How many bytes it would take to give a clock to every event, if the system does not have
    /// them.
    #[inline]
    pub(crate) fn lacks_clocks(&mut self) -> Option<usize> {
        self.clocks.lack(&self.trace)
    }

    /// How many bytes are missing to learn from the execution that has ended, as far as that can be
    /// known before.
    #[inline]
    pub(crate) fn lacks_memory(&mut self) -> Option<usize> {
        match self.asks_for_clocks {
            true => self.lacks_clocks(),
            false => None,
        }
    }

    /// Gives a clock to every event.
    pub(crate) fn compute_clocks(&mut self) {
        self.trace.place();
        self.clocks.extend(&self.trace, &self.machine.sets);
    }

    /// Looks at an execution that has ended, without anything being learnt from it.
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
        })
    }

    /// The operations that threads have announced and not performed when an execution ended.
    fn pending(&self, end: &End) -> Vec<Blocked> {
        match end {
            // Also a complete one may have threads that are blocked (`Limits::detached_may_block`).
            End::Complete
            | End::Deadlock(_)
            | End::Livelock { .. }
            | End::Pruned(Pruned::Assumed | Pruned::Rounds | Pruned::InVain) => self.blocked(),
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
