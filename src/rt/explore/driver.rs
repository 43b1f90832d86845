//! What drives what? The one loop, written as a step.
//!
//! A [`Driver`] owns the machine, the trace and the explorer. Whoever runs the code (coroutines, or
//! the interpreter of abstract programs) calls
//!
//! ```text
//! while driver.begin() {
//!     main thread: run nothing yet; its first step is `Start`
//!     loop { match driver.next() {
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
//! The prefix that an execution shares with the one before it is replayed from the trace itself:
//! one array read, one comparison and the operation per step.

use std::mem::discriminant;

use crate::rt::object::machine::{Executed, Limits, Machine, Pending};
use crate::rt::trace::dependency::Label;
use crate::rt::trace::happens_before::HappensBefore;
use crate::rt::trace::id::{ObjectId, ThreadId};
use crate::rt::trace::operation::{ObjectKind, OpKind, Operation, Outcome, Step};
use crate::rt::trace::verdict::{Blocked, Divergence, End, Pruned};
use crate::rt::trace::{Event, Site, Trace};

use super::checkpoint::{self, Progress, Statics};
use super::estimate::Estimator;
use super::hotspots::Hotspots;
use super::regions::Regions;
use super::{Choice, Coverage, Explorer, Finished, Point};

/// How the next execution begins.
#[derive(Default, Debug)]
pub(crate) struct Plan {
    /// How many events of the last execution stay as they are.
    pub(crate) kept: usize,
    /// The steps that follow them, before the explorer is asked again. Where the label is known,
    /// the step must come out with it.
    pub(crate) steps: Vec<(Step, Option<Label>)>,
    /// How many of the steps only repeat what was executed before, by another process or in an earlier
    /// execution than the last.
    pub(crate) repeated: usize,
    /// The place in the program of the event that the first of the other steps is made instead of, if that is
    /// not an event of the last execution.
    pub(crate) instead: Option<Site>,
}

/// What [`Driver::next`] did.
#[derive(Debug)]
pub(crate) enum Next {
    /// The thread made its announced step; its code is to run up to its next announcement.
    Ran(ThreadId, Outcome),
    /// The execution is over.
    Ended(End),
}

/// What came of a step, or how the execution has ended with it.
pub(crate) type Made<T> = Result<T, Box<End>>;

fn next(thread: ThreadId, made: Made<Outcome>) -> Next {
    match made {
        Ok(outcome) => Next::Ran(thread, outcome),
        Err(end) => Next::Ended(*end),
    }
}

/// The limits of one execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The most events an execution may have.
    pub(crate) events_max: usize,
    /// The most threads that may exist in it.
    pub(crate) threads_max: usize,
    /// Whether exploration is off until the test switches it on.
    pub(crate) explicit: bool,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            events_max: 100_000,
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
    /// Events in all executions, replayed ones included.
    pub(crate) events: u64,
    /// The most events in one execution.
    pub(crate) longest: usize,
}

impl Stats {
    /// Executions that were begun, whatever came of them.
    pub(crate) fn begun(&self) -> u64 {
        self.complete + self.asleep + self.assumed
    }
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
    /// What [`Explorer::lets_the_last_go_on`] and [`Explorer::asks_for_clocks`] say.
    last_goes_on: bool,
    asks_for_clocks: bool,
    bounds: Bounds,
    plan: Plan,
    position: usize,
    /// The thread that made the last step.
    current: ThreadId,
}

impl Driver {
    pub(crate) fn new(explorer: Box<dyn Explorer>, limits: Limits, bounds: Bounds) -> Driver {
        Driver {
            machine: Machine::new(limits),
            trace: Trace::default(),
            clocks: HappensBefore::default(),
            stats: Stats::default(),
            regions: Regions::new(bounds.explicit),
            hotspots: Hotspots::default(),
            estimator: Estimator::default(),
            last_goes_on: explorer.lets_the_last_go_on(),
            asks_for_clocks: explorer.asks_for_clocks(),
            explorer,
            bounds,
            plan: Plan::default(),
            position: 0,
            current: ThreadId::MAIN,
        }
    }

    /// What will have been covered once nothing is left to explore.
    pub(crate) fn coverage(&self) -> Coverage {
        match self.explorer.coverage() {
            Coverage::All if self.regions.any() => Coverage::Regions,
            covered => covered,
        }
    }

    /// Whether something is left to explore, as far as that is known.
    pub(crate) fn more(&self) -> bool {
        self.explorer.more()
    }

    /// About how many executions there will be in all, where the explorer knows what it plans.
    pub(crate) fn estimate(&self) -> Option<f64> {
        let mut planned = Vec::new();
        self.explorer.planned(&mut planned);
        let known = !planned.is_empty() || !self.explorer.more();
        let recursive = || known.then(|| self.estimator.recursive(&planned));
        self.explorer.estimate().or_else(recursive)
    }

    /// Writes down what is still to be explored, between two executions; `None` if that is nothing,
    /// or if the algorithm cannot tell.
    pub(crate) fn save(&self, statics: &dyn Statics) -> Option<Result<Vec<u8>, String>> {
        let unfinished = self.explorer.unfinished(&self.trace)?;
        let progress = Progress {
            stats: self.stats,
            regions: self.regions.any(),
            estimator: self.estimator.save(),
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
        self.estimator.restore(&progress.estimator) && self.explorer.resume(&unfinished)
    }

    /// How many bytes hold what is still to be explored.
    pub(crate) fn memory(&self) -> usize {
        self.explorer.memory()
    }

    /// Starts the next execution; false if nothing is left to explore. `site` is where the main
    /// thread's code begins.
    pub(crate) fn begin(&mut self, site: Site) -> bool {
        self.plan.kept = 0;
        self.plan.steps.clear();
        self.plan.repeated = 0;
        self.plan.instead = None;
        if !self.explorer.begin(&mut self.plan) {
            return false;
        }
        if self.stats.begun() > 0 && !self.plan.steps.is_empty() {
            self.estimator.branch(self.plan.kept + self.plan.repeated);
            // After an execution that has repeated an earlier one there is no event at that point.
            let last = self.trace.events().get(self.plan.kept);
            let last = last.filter(|_| self.plan.repeated == 0);
            if let Some(site) = self.plan.instead.or(last.map(|event| event.site)) {
                self.hotspots.book(site);
            }
        }
        self.trace.truncate(self.plan.kept);
        self.clocks.truncate(self.plan.kept);
        self.machine.reset(site);
        self.regions.begin();
        self.position = 0;
        self.current = ThreadId::MAIN;
        true
    }

    /// [`Driver::at_once`] for an operation on an atomic or a reference count of this kind, whose memory
    /// holds this. These are most operations, so there is a short way for them; `None` if it is too short.
    /// Gives how many events the thread has performed, too.
    #[inline(always)]
    pub(crate) fn shortly(
        &mut self,
        thread: ThreadId,
        (object, kind, site): (ObjectId, &OpKind, Site),
        known: (ObjectKind, u64),
    ) -> Option<(Outcome, u32)> {
        // The operation is in pieces, because it was written just now: a copy of the whole would have to wait
        // for that, and is made only for the trace.
        let whole = || Operation {
            object,
            kind: *kind,
        };
        let position = self.position;
        let mut step = Step::of(thread);
        if position < self.plan.kept {
            let event = self.trace.at(position as u32);
            if event.thread != thread || !alike(&event.operation, object, kind) {
                return None;
            }
            step.alternative = event.alternative;
            let fits = |label| same(label, event.label);
            let executed = (self.machine).perform_known(step, (object, kind, site), known, fits)?;
            let index = event.index;
            (self.trace).refresh(position, &whole(), executed.outcome, executed.before);
            self.advance(thread);
            return Some((executed.outcome, index + 1));
        }
        if !self.is_free(position) {
            return None;
        }
        let any = |_| true;
        let executed = (self.machine).perform_known(step, (object, kind, site), known, any)?;
        let index = self.trace.push(executed.event(step, &whole(), site));
        self.advance(thread);
        Some((executed.outcome, index + 1))
    }

    /// Whether nothing speaks against that the thread that made the last step makes the one at this
    /// position too.
    #[inline]
    fn is_free(&self, position: usize) -> bool {
        self.last_goes_on
            && position >= self.plan.kept + self.plan.steps.len()
            && position < self.bounds.events_max
    }

    /// Makes the step that the thread that made the last one is about to announce, if it is the next
    /// one anyhow. Nothing has to be announced then, and nobody to be asked; most steps are such steps.
    /// `None` if nothing was done.
    #[inline(always)]
    pub(crate) fn at_once(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
        site: Site,
    ) -> Made<Option<Outcome>> {
        let position = self.position;
        if position < self.plan.kept {
            let event = self.trace.at(position as u32);
            let fits = event.thread == thread
                && alike(&event.operation, operation.object, &operation.kind)
                && event.outcome != Outcome::LetGo
                && self.machine.can_perform(thread, operation);
            if !fits {
                return Ok(None);
            }
            let expected = event.label;
            let step = event.step();
            let executed = self.machine.perform(step, operation, site);
            let outcome = self.repeated(step, expected, (operation, site), &executed)?;
            return Ok(Some(outcome));
        }
        if !self.is_free(position) || !self.machine.can_perform(thread, operation) {
            return Ok(None);
        }
        let step = Step::of(thread);
        let executed = self.machine.perform(step, operation, site);
        self.trace.push(executed.event(step, operation, site));
        self.after(step, &operation.kind)?;
        Ok(Some(executed.outcome))
    }

    /// Makes the next step: picks a thread whose announced operation can happen, and executes it.
    /// Every live thread must have announced its operation.
    #[inline]
    pub(crate) fn next(&mut self) -> Next {
        if self.position < self.plan.kept {
            return self.replay();
        }
        let planned = self.position - self.plan.kept;
        if planned < self.plan.steps.len() {
            let (step, label) = self.plan.steps[planned];
            return self.follow(step, label);
        }
        loop {
            let choice = self.explorer.choose(&Point {
                trace: &self.trace,
                machine: &self.machine,
                last: self.current,
                fixed: self.regions.off(),
            });
            match choice {
                Choice::Run(step) => return self.run(step),
                Choice::Prune(reason) => return Next::Ended(End::Pruned(reason)),
                Choice::Stale { position, expected } => {
                    return Next::Ended(End::Stale { position, expected });
                }
                Choice::NothingEnabled => {
                    if let Some(end) = self.quiescent() {
                        return Next::Ended(end);
                    }
                }
            }
        }
    }

    /// Nothing can run: lets waiting threads go, or says how the execution has ended.
    #[cold]
    fn quiescent(&mut self) -> Option<End> {
        let stuck = self.blocked();
        if stuck.iter().any(|b| b.operation.kind == OpKind::GiveUp) {
            // Whatever a waiting thread would do from here on comes after everything else, so
            // nothing is lost by not looking at it.
            return Some(End::Pruned(Pruned::Assumed));
        }
        let rounds = stuck
            .iter()
            .filter(|b| matches!(b.operation.kind, OpKind::Wait { .. }))
            .map(|b| self.machine.let_go_in_a_row(b.thread))
            .min();
        if rounds.is_some_and(|rounds| rounds >= self.machine.limits.livelock_bound) {
            let rounds = rounds.unwrap_or_default();
            return Some(End::Livelock { stuck, rounds });
        }
        if self.machine.let_go(self.position as u32) {
            return None;
        }
        Some(if stuck.is_empty() {
            End::Complete
        } else {
            End::Deadlock(stuck)
        })
    }

    /// The events of this execution so far.
    pub(crate) fn executed(&self) -> &[Event] {
        &self.trace.events()[..self.position]
    }

    /// Drops the events of the execution before that this one has not come to.
    pub(crate) fn cut(&mut self) {
        self.trace.truncate(self.position);
        self.clocks.truncate(self.position);
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

    #[inline]
    fn run(&mut self, step: Step) -> Next {
        if self.position >= self.bounds.events_max {
            return Next::Ended(End::TooManyEvents {
                limit: self.bounds.events_max,
            });
        }
        let (Pending { operation, site }, executed) = self.machine.step(step);
        self.trace.push(executed.event(step, &operation, site));
        let made = self.after(step, &operation.kind);
        next(step.thread, made.map(|()| executed.outcome))
    }

    /// A step of this thread has been made.
    #[inline(always)]
    fn advance(&mut self, thread: ThreadId) {
        self.regions.push(self.position);
        self.position += 1;
        self.current = thread;
    }

    /// [`Driver::advance`], unless there are too many threads now.
    #[inline(always)]
    fn after(&mut self, step: Step, kind: &OpKind) -> Made<()> {
        self.advance(step.thread);
        match kind {
            OpKind::Spawn { .. } if self.machine.live().len() > self.bounds.threads_max => {
                let limit = self.bounds.threads_max;
                Err(Box::new(End::TooManyThreads { limit }))
            }
            _ => Ok(()),
        }
    }

    /// Repeats the next event of the kept prefix.
    #[inline]
    fn replay(&mut self) -> Next {
        let event = self.trace.at(self.position as u32);
        let (step, label) = (event.step(), event.label);
        if event.outcome == Outcome::LetGo && event.quiet_at as usize == self.position {
            self.machine.let_go(event.quiet_at);
        }
        let fits = (self.machine.pending(step.thread)).is_some_and(|found| {
            alike(
                &event.operation,
                found.operation.object,
                &found.operation.kind,
            )
        });
        if !fits || !self.machine.enabled(step.thread) {
            let expected = (event.operation, event.site);
            return Next::Ended(self.unexpected(step.thread, Some(expected)));
        }
        let (Pending { operation, site }, executed) = self.machine.step(step);
        let made = self.repeated(step, label, (&operation, site), &executed);
        next(step.thread, made)
    }

    /// Compares a step of the kept prefix with the event that it was before.
    #[inline(always)]
    fn repeated(
        &mut self,
        step: Step,
        expected: Label,
        announced: (&Operation, Site),
        executed: &Executed,
    ) -> Made<Outcome> {
        if !same(executed.label, expected) {
            return Err(self.diverged(step.thread, announced));
        }
        let (operation, _) = announced;
        let (outcome, before) = (executed.outcome, executed.before);
        (self.trace).refresh(self.position, operation, outcome, before);
        self.after(step, &operation.kind)?;
        Ok(outcome)
    }

    /// Makes a step of a wakeup sequence.
    fn follow(&mut self, step: Step, label: Option<Label>) -> Next {
        // The step may be one of several waits that were let go at this point.
        let live = self.machine.live();
        if !self.machine.enabled(step.thread) && live.iter().all(|&t| !self.machine.enabled(t)) {
            self.machine.let_go(self.position as u32);
        }
        if !self.machine.enabled(step.thread) {
            return Next::Ended(self.unexpected(step.thread, None));
        }
        match self.run(step) {
            Next::Ran(thread, outcome) => {
                let event = self.trace.at(self.position as u32 - 1);
                if label.is_some_and(|label| !same(event.label, label)) {
                    return Next::Ended(End::NotDeterministic(Box::new(Divergence {
                        thread,
                        position: self.position - 1,
                        expected: None,
                        found: Some((event.operation, event.site)),
                        outcome_differs: true,
                    })));
                }
                Next::Ran(thread, outcome)
            }
            ended => ended,
        }
    }

    /// Says how the thread's announced operation differs from the one that is expected (if it is
    /// known) or cannot be performed.
    #[cold]
    fn unexpected(&self, thread: ThreadId, expected: Option<(Operation, Site)>) -> End {
        let found = self.machine.pending(thread);
        End::NotDeterministic(Box::new(Divergence {
            thread,
            position: self.position,
            expected,
            found: found.map(|pending| (pending.operation, pending.site)),
            outcome_differs: false,
        }))
    }

    #[cold]
    fn diverged(&self, thread: ThreadId, (operation, site): (&Operation, Site)) -> Box<End> {
        let event = self.trace.at(self.position as u32);
        Box::new(End::NotDeterministic(Box::new(Divergence {
            thread,
            position: self.position,
            expected: Some((event.operation, event.site)),
            found: Some((*operation, site)),
            outcome_differs: true,
        })))
    }

    /// Lets the explorer learn from an execution that has ended.
    pub(crate) fn finish(&mut self, end: &End) {
        self.stats.events += self.position as u64;
        self.estimator.leaf();
        self.stats.longest = self.stats.longest.max(self.position);
        match end {
            End::Pruned(Pruned::Asleep) => self.stats.asleep += 1,
            End::Pruned(Pruned::Assumed) => self.stats.assumed += 1,
            _ => self.stats.complete += 1,
        }
        if self.asks_for_clocks {
            self.measure();
        }
        let blocked = self.pending(end);
        self.explorer.finish(&Finished {
            trace: &self.trace,
            clocks: &self.clocks,
            machine: &self.machine,
            blocked: &blocked,
            fixed: self.regions.fixed(),
            first_new: self.plan.kept + self.plan.repeated,
            planned: self.plan.steps.len() - self.plan.repeated,
        });
    }

    /// Gives a clock to every event.
    pub(crate) fn measure(&mut self) {
        self.clocks.extend(&self.trace, &self.machine.sets);
    }

    /// Looks at an execution that has ended, without anything being learnt from it.
    pub(crate) fn ended<R>(&mut self, end: &End, look: impl FnOnce(&Finished<'_>) -> R) -> R {
        self.measure();
        look(&Finished {
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
            End::Complete => Vec::new(),
            End::Deadlock(_) | End::Livelock { .. } | End::Pruned(Pruned::Assumed) => {
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

/// Whether an operation of this kind on `object` may be the repetition of the other: operands may be
/// addresses, which differ.
#[inline]
fn alike(a: &Operation, object: ObjectId, kind: &OpKind) -> bool {
    a.object == object && discriminant(&a.kind) == discriminant(kind)
}

/// Whether two labels name the same event, as far as two executions can agree: the number of a
/// wait's set and a count belong to the label, values do not.
#[inline]
fn same(a: Label, b: Label) -> bool {
    a == b || a.canonical() == b.canonical()
}
