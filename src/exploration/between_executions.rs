//! The work between two executions.
//!
//! [`Watch`] shows the execution that has ended, notes the loops that have waited, writes the
//! checkpoint, and checks the limits. At the end of an exploration without a failure it says
//! whether the exploration saw or checked nothing.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use crate::config::{Builder, Executions, FirstPass};
use crate::exploration::checkpoint_file::{Checkpoint, Known};
use crate::exploration::first_waits::{FirstWait, FirstWaits};
use crate::exploration::progress::{Progress, above, above_captured};
use crate::exploration::replay_command;
use crate::exploration::report_dir::ReportDir;
use crate::exploration::said_once;
use crate::rt::engine::driver::Driver;
use crate::rt::event::Site;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::verdict::{End, Pruned, Reproduction};
use crate::rt::exec::callers::Round;
use crate::rt::exec::interrupts;
use crate::rt::exec::log::Log;
use crate::rt::exec::permitted::{Behaviour, Possible};
use crate::rt::exec::run::Between;
use crate::rt::object::machine::{Hintless, Learnt};
use crate::rt::plural::counted;
use crate::rt::rare::{cold_path, mostly, rarely};
use crate::rt::relation::conflict::threads_meet;
use crate::rt::report::execution::Execution;
use crate::rt::report::loops;
use crate::rt::report::passing;
use crate::rt::report::places::{Callers, Life};
use crate::rt::report::view::View;
use crate::verdict::assumption::PlacesMet;
use crate::verdict::outcomes::Outcomes;
use crate::verdict::report;
use crate::verdict::report::{Limit, called_at, named_at};
use crate::verdict::vacuous::Vacuous;
use crate::verdict::weak::WeakMemory;

/// State of the work between two executions.
pub(crate) struct Watch<'a> {
    settings: &'a Builder,
    pub(crate) start: Instant,
    /// Number of executions that were begun before the exploration was resumed.
    pub(crate) before: u64,
    progress: Progress,
    checkpoint: Option<Box<Checkpoint>>,
    /// The place of the model's call.
    site: Site,
    /// The limit that has ended the exploration.
    pub(crate) stopped: Option<Limit>,
    /// Whether this is the part of one of several workers.
    is_workers: bool,
    /// Whether no checkpoint is written now.
    pub(crate) keeps_nothing: bool,
    /// Whether an execution has met memory that is older than itself.
    pub(crate) met_older: bool,
    /// Whether the program has used plain memory that the race detector watches.
    uses_cells: bool,
    /// Whether the exploration follows one schedule.
    follows: bool,
    /// Whether an execution has failed.
    failed: bool,
    /// The places where loops have waited for the first time.
    pub(crate) waits: FirstWaits,
    /// The outcomes that the test has recorded. In a box, because most tests record none.
    pub(crate) outcomes: Option<Box<Outcomes>>,
    /// The places at which std permits a behaviour that may not have been explored.
    pub(crate) met: PlacesMet,
    /// The operation that the look-out found before the exploration was resumed.
    pub(crate) weak: Option<String>,
    /// Number of changes of the runtime's list of such places that are known.
    changes: usize,
    /// The places at which tasks are polled that have put a waker where no event shows it, each
    /// with the schedule of an execution in which that happens.
    pub(crate) unseen_wakers: Vec<(Site, Schedule)>,
    /// Whether loops that wait at a hint are explored as one step.
    takes_loops_for_steps: bool,
    /// The hint of the first loop of which only a first look in vain is a step of its own.
    awaited: Option<String>,
    /// Whether the exploration has paused between two executions to find out whether loops give up
    /// by themselves.
    asks: bool,
    /// Number of loops without a hint that standard error has named.
    hintless: usize,
    /// Rounds of those loops, and of the loops without a hint that are still to be named.
    rounds: Vec<Round>,
    /// Size of the plan, in bytes, at the last check whether the system has twice as many bytes
    /// more.
    looked_at: usize,
}

/// What a worker has seen.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    pub(crate) waits: Vec<FirstWait>,
    pub(crate) outcomes: Option<Box<Outcomes>>,
    pub(crate) met: PlacesMet,
    pub(crate) unseen_wakers: Vec<(Site, Schedule)>,
    pub(crate) uses_cells: bool,
}

impl Seen {
    /// Adds what was seen in executions that come behind.
    pub(crate) fn add(&mut self, other: Seen) {
        for wait in other.waits {
            if !self.waits.iter().any(|known| known.is_like(&wait)) {
                self.waits.push(wait);
            }
        }
        if let Some(outcomes) = &other.outcomes {
            self.outcomes.get_or_insert_default().add_all(outcomes);
        }
        self.met.add_all(other.met);
        for (site, schedule) in other.unseen_wakers {
            let is_known = |known: &(Site, Schedule)| *known.0 == *site;
            if !self.unseen_wakers.iter().any(is_known) {
                self.unseen_wakers.push((site, schedule));
            }
        }
        self.uses_cells |= other.uses_cells;
    }
}

/// The smallest plan, in bytes, for which the system's memory is checked. The plan's memory grows
/// in steps that each double it, and the check is whether there is enough for the next step.
const LOOKED_AT_MIN: usize = 2 << 20;

/// Number of executions between two checks of the plan's size: a plan grows by little in between.
const LOOKED_AT_EACH: u64 = 64;

impl<'a> Watch<'a> {
    /// Resumes the exploration of the checkpoint file, if there is one. With `follows` the
    /// exploration follows one schedule instead and uses no file.
    ///
    /// # Panics
    ///
    /// If that exploration cannot be resumed.
    #[track_caller]
    pub(crate) fn new(
        settings: &'a Builder,
        driver: &mut Driver,
        site: Site,
        follows: bool,
    ) -> Watch<'a> {
        let start = Instant::now();
        let (checkpoint, before) = if follows {
            (None, None)
        } else {
            match taken_up(settings, driver, site) {
                Ok(taken_up) => taken_up.unzip(),
                Err(error) => panic!("{error}"),
            }
        };
        let (waits, outcomes, met, weak) = match before {
            Some(known) => {
                let outcomes = Some(known.outcomes);
                (Some(known.waits), outcomes, known.met, known.weak)
            }
            None => (None, None, PlacesMet::default(), None),
        };
        if weak.is_some() {
            driver.look_out_no_more();
        }
        let takes_loops_for_steps = settings.takes_loops_for_steps();
        let waits = match waits {
            Some(waits) => FirstWaits::taken_up(waits, takes_loops_for_steps),
            None => FirstWaits::new(takes_loops_for_steps),
        };
        Watch {
            before: driver.stats.begun(),
            progress: Progress::new(start, settings),
            checkpoint,
            follows,
            outcomes: outcomes.map(Box::new),
            met,
            weak,
            takes_loops_for_steps,
            ..Watch::that_has_seen_nothing(settings, (start, site), waits)
        }
    }

    /// The work of one of several workers, which know these first waits. The limits are those of
    /// all.
    pub(crate) fn of_worker(
        settings: &'a Builder,
        (start, site): (Instant, Site),
        waits: Vec<FirstWait>,
    ) -> Watch<'a> {
        let waits = FirstWaits::asked_before(waits, false);
        Watch {
            is_workers: true,
            ..Watch::that_has_seen_nothing(settings, (start, site), waits)
        }
    }

    fn that_has_seen_nothing(
        settings: &'a Builder,
        (start, site): (Instant, Site),
        waits: FirstWaits,
    ) -> Watch<'a> {
        Watch {
            settings,
            start,
            before: 0,
            progress: Progress::hidden(start),
            checkpoint: None,
            site,
            stopped: None,
            is_workers: false,
            keeps_nothing: false,
            met_older: false,
            uses_cells: false,
            follows: false,
            failed: false,
            waits,
            outcomes: None,
            met: PlacesMet::default(),
            weak: None,
            changes: 0,
            unseen_wakers: Vec::new(),
            takes_loops_for_steps: false,
            awaited: None,
            asks: false,
            hintless: 0,
            rounds: Vec::new(),
            looked_at: LOOKED_AT_MIN,
        }
    }

    /// Whether the last execution has to be made again where it can be asked about.
    pub(crate) fn is_to_be_asked(&self) -> bool {
        self.asks
    }

    /// What a worker has seen.
    pub(crate) fn seen(self) -> Seen {
        Seen {
            waits: self.waits.all(),
            outcomes: self.outcomes,
            met: self.met,
            unseen_wakers: self.unseen_wakers,
            uses_cells: self.uses_cells,
        }
    }

    /// Adds what workers have seen, in the order of their executions.
    pub(crate) fn add_seen(&mut self, seen: Vec<Seen>) {
        let mut all = Seen {
            waits: self.waits.all(),
            outcomes: self.outcomes.take(),
            met: std::mem::take(&mut self.met),
            unseen_wakers: std::mem::take(&mut self.unseen_wakers),
            uses_cells: self.uses_cells,
        };
        seen.into_iter().for_each(|seen| all.add(seen));
        self.waits = FirstWaits::asked_before(all.waits, self.takes_loops_for_steps);
        self.outcomes = all.outcomes;
        self.met = all.met;
        self.unseen_wakers = all.unseen_wakers;
        self.uses_cells = all.uses_cells;
        (self.changes, self.hintless) = (0, 0);
    }

    /// Forgets the outcomes of the executions that count in another part.
    pub(crate) fn forget_outcomes(&mut self) {
        self.outcomes = None;
    }

    /// Notes what an earlier task has seen.
    pub(crate) fn take_up(&mut self, known: Known) {
        self.waits = FirstWaits::asked_before(known.waits, self.takes_loops_for_steps);
        self.met = known.met;
    }

    /// What a later task has to know.
    pub(crate) fn known(&self) -> Known {
        Known {
            waits: self.waits.all(),
            met: self.met.clone(),
            ..Known::default()
        }
    }

    /// Shows the progress of several workers.
    pub(crate) fn show_progress(&mut self, begun: u64) {
        self.progress.tick_of(begun);
    }

    /// Number of executions that several workers may still begin.
    pub(crate) fn left_to_begin(&self, begun: u64) -> Option<u64> {
        let most = self.settings.max_permutations? as u64;
        Some(most.saturating_sub(begun - self.before))
    }

    /// Number of executions begun at which the checkpoint file is due, if there is one.
    pub(crate) fn next_checkpoint(&self) -> Option<u64> {
        let checkpoint = self.checkpoint.as_ref().filter(|_| !self.failed)?;
        Some(checkpoint.next())
    }

    /// Writes the checkpoint file, with what this driver has left.
    pub(crate) fn write_checkpoint(&mut self, driver: &Driver) {
        if let (false, Some(checkpoint)) = (self.failed, &mut self.checkpoint) {
            let known = || Known {
                waits: self.waits.all(),
                met: self.met.clone(),
                outcomes: self.outcomes.as_deref().cloned().unwrap_or_default(),
                weak: self.weak.clone().or_else(|| WeakMemory::found(driver)),
            };
            checkpoint.tick(driver, known, true);
        }
    }

    /// Restarts the exploration with the learnt facts. Everything else that it has seen no longer
    /// counts.
    pub(crate) fn restart(&mut self, learnt: &Learnt, before: &Learnt) {
        self.before = 0;
        self.failed = false;
        self.asks = false;
        self.hintless = 0;
        self.waits = FirstWaits::new(self.takes_loops_for_steps);
        self.awaited = learnt
            .awaits
            .all()
            .first()
            .map(|known| known.hint.to_string());
        self.outcomes = None;
        self.met = PlacesMet::default();
        self.weak = None;
        self.unseen_wakers.clear();
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.restart();
        }
        // In the output of each execution the first one appears twice, so this line gives the
        // reason.
        let is_shown = self.settings.log || self.settings.trace.is_some();
        if is_shown || self.follows && learnt.loud != before.loud {
            let site = self.site;
            let (why, how) = match learnt.hintless {
                _ if learnt.awaits.is_empty() && !before.awaits.is_empty() => (
                    "has a loop that gives up by itself in some executions",
                    "no loop that is taken for one step",
                ),
                _ if learnt.awaits != before.awaits => (
                    "has a loop that waits at its hint",
                    "that loop taken for one step",
                ),
                _ if learnt.fair != before.fair => (
                    "has a loop with a hint that changes something in each round and keeps others from going on",
                    "such loops letting them go first",
                ),
                _ if learnt.patient != before.patient => (
                    "has a loop that ends by itself after very many rounds",
                    "many more rounds before a livelock",
                ),
                _ if learnt.loud != before.loud => (
                    "has a destructor of a value behind an `Arc` that does more than free memory",
                    "each thread that may drop such a value last",
                ),
                same if same == before.hintless => (
                    "asks whether a thread has finished",
                    "the ends of threads as events",
                ),
                Hintless::BoundedLoop => (
                    "has a loop without a hint that gives up by itself",
                    "many rounds of such loops before they wait",
                ),
                _ => (
                    "has a loop without a hint that waits for another thread",
                    "few rounds of such loops before they wait",
                ),
            };
            above(|| {
                eprintln!("dpor: the model at {site} {why}, so it is explored anew, with {how}")
            });
        }
    }

    /// Does the work between two executions. Returns whether another execution may begin. The
    /// program's output in the last execution is in the log, which this clears.
    pub(crate) fn go_on(&mut self, between: &Between<'_>, log: &Log) -> bool {
        let driver = between.driver;
        self.note_places(between);
        if rarely!(std::mem::take(&mut self.asks)) {
            self.tell_of_hintless(driver);
            return true;
        }
        let begun = driver.stats.begun();
        if rarely!(self.settings.log) && begun > self.before {
            let schedule = driver.schedule();
            above(|| eprintln!("dpor: execution {begun}: {schedule}"));
        }
        if let (Some(wanted), Some(end)) = (self.settings.trace, between.end) {
            cold_path();
            self.show(wanted, end, between, log);
        }
        // The line about these loops may have to wait until it is known whether they give up by
        // themselves, so their rounds are kept.
        if rarely!(driver.machine.hintless().len() > self.hintless) {
            let known = |round: &&Round| !self.rounds.iter().any(|it| it.read == round.read);
            let new: Vec<Round> = between.rounds.iter().filter(known).cloned().collect();
            self.rounds.extend(new);
        }
        self.met_older |= between.met_older;
        if !self.follows {
            let known = self.waits.count();
            self.waits.note(between);
            self.asks = self.waits.are_to_be_asked() || self.is_to_ask(driver);
            // After a failure the events that led to these uses are no longer known.
            if let (Some(uses), Some(_)) = (&driver.raw_uses, between.end) {
                cold_path();
                self.asks |= uses.are_some() || uses.are_some_in_place(&driver.trace);
            }
            if rarely!(self.is_workers && self.asks) {
                // The execution is made again by the worker that can ask.
                self.waits.forget_from(known);
                return false;
            }
        }
        if let (Some(recorded_outcome), Some(End::Complete | End::Pruned(Pruned::Stopped))) =
            (between.recorded_outcome, between.end)
        {
            cold_path();
            self.outcomes.get_or_insert_default().add(recorded_outcome);
        }
        log.clear();
        self.uses_cells = between.uses_cells;
        if !self.asks {
            self.tell_of_hintless(driver);
        }
        if driver.more() {
            self.progress.tick(driver);
            self.stopped = self.limit(driver);
        }
        // Once an execution has failed, the file is not written any more: a run that resumes from
        // it must find the failure again, and must not report the exploration as complete.
        if let (false, Some(checkpoint)) = (self.failed || self.keeps_nothing, &mut self.checkpoint)
        {
            let known = || Known {
                waits: self.waits.all(),
                met: self.met.clone(),
                outcomes: self.outcomes.as_deref().cloned().unwrap_or_default(),
                weak: self.weak.clone().or_else(|| WeakMemory::found(driver)),
            };
            cold_path();
            checkpoint.tick(driver, known, self.stopped.is_some());
        }
        self.stopped.is_none() && !self.asks
    }

    /// Notes the new places at which std permits a behaviour.
    #[inline]
    fn note_places(&mut self, between: &Between<'_>) {
        let changes = between.permitted.changes();
        // The runtime counts anew when it goes on after a failure.
        if rarely!(changes != std::mem::replace(&mut self.changes, changes)) {
            self.note_new_places(between);
        }
    }

    /// [`Watch::note_places`] if there are new ones.
    #[cold]
    fn note_new_places(&mut self, between: &Between<'_>) {
        for place in between.permitted.met() {
            let Possible {
                behaviour,
                site,
                explored,
            } = place;
            self.met.add(behaviour.into(), site, explored);
            let is_known = |known: &(Site, Schedule)| *known.0 == *site;
            if behaviour == Behaviour::UnseenWaker && !self.unseen_wakers.iter().any(is_known) {
                (self.unseen_wakers).push((site, between.driver.schedule()));
            }
        }
    }

    /// Notes that an order which the model does not see has put a free behind the operation at this
    /// place.
    #[cold]
    pub(crate) fn note_free(&mut self, site: Site) {
        self.met.add(Behaviour::Unswapped.into(), site, false);
    }

    /// Whether the machine has learnt a fact that makes the exploration restart.
    #[inline]
    fn is_to_ask(&self, driver: &Driver) -> bool {
        let machine = &driver.machine;
        machine.has_learnt() && !self.settings.is_sampling()
    }

    /// Returns the loops for which it must be known now whether they give up by themselves, if the
    /// exploration has paused for that.
    pub(crate) fn asks(&mut self) -> Option<Vec<FirstWait>> {
        (self.asks && self.stopped.is_none()).then(|| self.waits.take_asked())
    }

    /// Stops exploring loops as one step, because for one loop that was wrong.
    pub(crate) fn take_no_loop_for_a_step(&mut self) {
        self.takes_loops_for_steps = false;
    }

    /// Whether a loop has waited.
    #[inline]
    pub(crate) fn has_waited(&self) -> bool {
        !self.waits.is_empty() || self.awaited.is_some()
    }

    /// Returns the hint of a loop that waits, if no look in vain need be a step and some are.
    pub(crate) fn could_await(&self) -> Option<String> {
        if self.settings.await_loops == Some(true) {
            return None;
        }
        let awaited = self.awaited.as_deref();
        self.waits.first_hint().or(awaited).map(str::to_owned)
    }

    /// Notes a failure: the file stays as it was before it.
    pub(crate) fn failed(&mut self) {
        self.failed = true;
    }

    /// Whether an exploration without a failure needs no further line: it has seen and checked
    /// events, and the user has asked for no single execution. This is the frequent case.
    #[inline]
    pub(crate) fn is_plain(&self, driver: &Driver) -> bool {
        let stats = driver.stats;
        stats.complete > 0 && stats.longest > 0 && self.settings.trace.is_none()
    }

    /// Returns why an exploration without a failure has tested nothing, if so.
    #[inline]
    pub(crate) fn vacuous(&self, driver: &Driver) -> Option<Vacuous> {
        let stats = driver.stats;
        // Threads that meet mostly have several executions, so this is the frequent case.
        let is_part = self.settings.shard.is_some() && stats.begun() == 0;
        if mostly!(stats.begun() > 1 && stats.complete > 0 && stats.longest > 0)
            || self.follows
            || is_part
        {
            return None;
        }
        self.found_vacuous(driver)
    }

    /// [`Watch::vacuous`] for an exploration with few executions or few events.
    #[cold]
    fn found_vacuous(&self, driver: &Driver) -> Option<Vacuous> {
        let (stats, trace) = (driver.stats, &driver.trace);
        if stats.complete == 0 {
            return Some(Vacuous::NoExecution);
        }
        // Accesses to cells are no events, and the race detector checks them.
        if self.uses_cells {
            return None;
        }
        if stats.longest == 0 {
            return Some(Vacuous::NoOperation);
        }
        let is_the_only_one =
            stats.begun() == 1 && self.stopped.is_none() && !self.settings.is_sampling();
        (is_the_only_one && trace.threads() > 1 && !threads_meet(trace))
            .then_some(Vacuous::NoConflict)
    }

    /// Says that the exploration has tested nothing. The first line of each kind in a process goes
    /// past the harness, which does not show the captured output of a test that passes.
    #[cold]
    pub(crate) fn tell_of_vacuous(&self, vacuous: Vacuous, driver: &Driver) {
        static TOLD: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];
        let (site, stats) = (self.site, driver.stats);
        let (line, told) = match vacuous {
            Vacuous::NoExecution if stats.left_out() == 0 => return,
            Vacuous::NoExecution => {
                let why = report::Pruned::of(&stats).why();
                above(|| {
                    eprintln!(
                        "dpor: no execution of the model at {site} came to its end: all were given up {why}"
                    )
                });
                return;
            }
            Vacuous::NoOperation => (
                format!(
                    "dpor: the model at {site} did nothing that can be seen: is the crate built \
                     with `--cfg dpor`, and are its imports swapped?\n"
                ),
                &TOLD[0],
            ),
            Vacuous::NoConflict => (
                format!(
                    "dpor: the model at {site} ran {}, and no two of their operations conflict, so there is one execution \
                     and no order to test: are the imports of all that they share swapped?\n",
                    counted(driver.trace.threads() as u64, "thread")
                ),
                &TOLD[1],
            ),
        };
        tell_once(told, line);
    }

    /// Names each loop without a hint once.
    #[inline]
    fn tell_of_hintless(&mut self, driver: &Driver) {
        let known = std::mem::replace(&mut self.hintless, driver.machine.hintless().len());
        if rarely!(self.hintless > known) {
            self.tell_of_new_hintless(driver, known);
        }
    }

    /// [`Watch::tell_of_hintless`] if there are more such loops than the `known` ones.
    #[cold]
    fn tell_of_new_hintless(&self, driver: &Driver, known: usize) {
        let new = &driver.machine.hintless()[known..];
        // Reading stacks takes longer than finding out that the line was printed before.
        if said_once::is_first(self.hintless(driver, new, |_| None)) {
            let line = self.hintless(driver, new, |read| self.loop_around(read));
            above(|| eprintln!("{line}"));
        }
    }

    /// Returns the place of the call in the loop around this read, if the read is not in the loop
    /// itself.
    fn loop_around(&self, read: Site) -> Option<String> {
        // Code from a macro or from another crate is in no source file that can be read here.
        named_at(read)?;
        let round = self.rounds.iter().find(|it| it.read == read)?;
        loops::around(read, &round.stack, self.site)
    }

    /// Returns the line that names the loops without a hint that make the executions long: the
    /// reads to which they return, and the lines `around` these.
    fn hintless(
        &self,
        driver: &Driver,
        reads: &[Site],
        around: impl Fn(Site) -> Option<String>,
    ) -> String {
        let place = |&read: &Site| {
            let call = called_at(read);
            let at = call.map_or_else(|| read.to_string(), |call| format!("{call} at {read}"));
            match around(read) {
                Some(line) => format!("{at} (called in the loop at {line})"),
                None => at,
            }
        };
        let limits = &driver.machine.limits;
        let why = match limits.learnt.hintless {
            Hintless::BoundedLoop => " (so often because another one gives up by itself)",
            _ => "",
        };
        let places: Vec<String> = reads.iter().map(place).collect();
        format!(
            "dpor: in the model at {} a loop without a hint went round {} times{why} before it was taken for waiting: it comes \
             back to {}; with `dpor::hint::spin_loop()` or `dpor::thread::yield_now()` in it there are fewer executions, and \
             shorter ones (hints of std's and of other crates, like crossbeam's `Backoff`, are not seen)",
            self.site,
            limits.unhinted_spin_bound,
            places.join(", and another one ")
        )
    }

    /// Says that a task has put its waker, at this place, where no event shows it. The first line
    /// in a process goes past the harness, which does not show the captured output of a test that
    /// passes.
    #[cold]
    pub(crate) fn tell_of_unseen_waker(&self, place: &str) {
        static TOLD: AtomicBool = AtomicBool::new(false);
        let line = format!(
            "dpor: a task of the model at {} waits with a waker that it has cloned at {place}, and no operation behind the clone \
             is seen: a primitive that is not swapped wakes it, so no order of the two is explored, and a lost wake-up is missed\n",
            self.site
        );
        tell_once(&TOLD, line);
    }

    /// Returns a line if the execution that was to be shown has not been run.
    pub(crate) fn unshown(&self, driver: &Driver) -> Option<String> {
        let Some(Executions::Only(wanted)) = self.settings.trace else {
            return None;
        };
        let run = driver.stats.numbered();
        (run < wanted).then(|| {
            format!(
                "dpor: there is no execution {wanted} of the model at {} to be shown (DPOR_TRACE): it has had {}",
                self.site,
                counted(run, "execution")
            )
        })
    }

    /// Shows the execution that has just ended, if the user wants it shown.
    fn show(&self, wanted: Executions, end: &End, between: &Between<'_>, log: &Log) {
        let Between {
            driver,
            names,
            callers,
            ..
        } = between;
        let number = driver.stats.numbered();
        let chosen = match wanted {
            Executions::All => true,
            Executions::Only(wanted) => wanted == number,
        };
        // An execution that a sleep set prunes is covered by another execution.
        if !chosen || matches!(end, End::Pruned(Pruned::Asleep)) {
            return;
        }
        let test = std::thread::current();
        let schedule = &driver.schedule().to_string();
        let called = callers.iter();
        let called = called.map(|call| ((call.thread, call.index), &call.stack));
        let view = View {
            end,
            trace: &driver.trace,
            machine: &driver.machine,
            given: names,
            panic: None,
            earlier: &[],
            life: &Life::default(),
            callers: &Callers::new(called, self.site),
            pair: None,
            again: Reproduction::Same,
            simplified: false,
            log: &log.lines(),
            executions: number,
            schedule,
            test: test.name().map(str::to_owned),
            replay: &replay_command::replay(schedule, &self.settings.weakenings()),
        };
        above(|| eprintln!("{}\n", passing::render(&view)));
        if let Some(directory) = &self.settings.report_dir {
            let directory = ReportDir::new(directory, test.name(), self.site);
            let suffix = format!("-execution-{number}");
            let line = directory.write(&suffix, &Execution::of(&view));
            above(|| eprintln!("report     {line}"));
        }
    }

    /// Returns the limit that the exploration has reached, if any.
    fn limit(&mut self, driver: &Driver) -> Option<Limit> {
        let settings = self.settings;
        if rarely!(interrupts::asked()) {
            return Some(Limit::Interrupt);
        }
        if let Some(most) = settings.max_permutations
            && rarely!(driver.stats.begun() - self.before >= most as u64)
        {
            return Some(Limit::Permutations(most));
        }
        if let Some(most) = settings.max_duration
            && rarely!(self.start.elapsed() >= most)
        {
            return Some(Limit::Duration(most));
        }
        // Before the first execution this memory is left from an earlier model; this model has
        // allocated none of it.
        if let Some(most) = settings.max_memory
            && driver.stats.begun() > self.before
            && driver.memory() > most
        {
            return Some(Limit::Memory(most));
        }
        if rarely!(driver.stats.begun().is_multiple_of(LOOKED_AT_EACH)) {
            self.limit_of_system(driver.memory())
        } else {
            None
        }
    }

    /// Returns a limit if the system lacks the memory for which the plan, of `memory` bytes, will
    /// ask next. If the system refused an allocation later, the process would end and the explored
    /// part would be lost.
    #[cold]
    fn limit_of_system(&mut self, memory: usize) -> Option<Limit> {
        // The largest part of the plan may double soon, whenever that was last checked.
        if memory < self.looked_at.saturating_add(self.looked_at / 8) {
            return None;
        }
        self.looked_at = memory;
        let bytes = memory.saturating_mul(2);
        let mut asked = Vec::<u8>::new();
        let refused = asked.try_reserve_exact(bytes).is_err();
        // Without this the compiler may remove the unused allocation.
        std::hint::black_box(&mut asked);
        refused.then_some(Limit::System(bytes))
    }

    /// Ends the progress display, so that later output does not mix with it.
    pub(crate) fn end(&mut self) {
        self.progress.wipe();
    }

    /// Everything has been explored in the first pass, and the second one follows.
    pub(crate) fn begin_second_pass(&mut self, first: FirstPass) {
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.begin_second_pass(first);
        }
    }

    /// Removes the checkpoint file, because everything has been explored.
    pub(crate) fn complete(&self) {
        if let Some(checkpoint) = &self.checkpoint {
            checkpoint.remove();
        }
    }
}

/// Prints a line, unless the same test has printed it before. If no line of its kind was `told` in
/// this process, it goes past the harness.
fn tell_once(told: &AtomicBool, line: String) {
    if !told.swap(true, Relaxed) {
        above_captured(&line);
        // This test need not print it again.
        said_once::is_first(line);
    } else if said_once::is_first(line.clone()) {
        above(|| eprint!("{line}"));
    }
}

/// The file of a resumed exploration, with the facts in it. In a box, because most explorations
/// have none.
type TakenUp = (Box<Checkpoint>, Known);

/// Resumes from the file that the settings name, if it belongs to this model.
fn taken_up(
    settings: &Builder,
    driver: &mut Driver,
    site: Site,
) -> Result<Option<TakenUp>, String> {
    let Some(mut file) = Checkpoint::new(settings, site)? else {
        return Ok(None);
    };
    let known = file.resume(driver)?;
    Ok(known.map(|known| (Box::new(file), known)))
}
