//! How do several OS threads share one exploration?
//!
//! The search without wakeup trees leaves suspended executions, and what is below one of them needs
//! nothing from anywhere else. A *task* is such a part of the search. [`queue`] hands tasks out;
//! each worker has a runtime of its own, with numbers of its own for threads and objects.
//!
//! Everything else than an execution that passes is left to the lead, the OS thread of the test: a
//! failure, and whatever makes the exploration pause or restart. A worker that meets such an
//! *incident* ends its task before that execution. Tasks that come later are void. Once all tasks
//! that come before have ended, the lead has the state that a single worker would have there, and
//! makes the execution again. So the results do not depend on the number of workers, or on their
//! speed.
//!
//! The workers share the closure, and memory that is older than the model. A model that uses such
//! memory is explored by the lead alone. If a worker is the first one to meet it, it takes the turn
//! of the process ([`statics`](crate::rt::statics)) for the rest of this execution, and that is an
//! incident.

pub(crate) mod queue;

use std::time::Instant;

use crate::config::Builder;
use crate::exploration::Exploration;
use crate::exploration::between_executions::{Seen, Watch};
use crate::exploration::first_waits::FirstWait;
use crate::exploration::progress::above;
use crate::exploration::said_once;
use crate::exploration::tries_raw_uses;
use crate::exploration::workers::queue::{Alone, Done, Given, Pause, Queue, Stage, Sum, saved};
use crate::rt::Work;
use crate::rt::coroutine::Pool;
use crate::rt::engine::checkpoint::Statics;
use crate::rt::engine::stats::Stats;
use crate::rt::event::Site;
use crate::rt::exec::interrupts;
use crate::rt::exec::log::Log;
use crate::rt::exec::pooled_runtime::PooledDriver;
use crate::rt::exec::run::{Between, Explored, explore_a_few, stacks};
use crate::rt::exec::settings::Settings;
use crate::rt::exec::suppressed_races::SuppressedRaces;
use crate::rt::object::machine::Learnt;
use crate::rt::rare::{cold_path, rarely};
use crate::rt::statics::rooted::Rooted;
use crate::verdict::report::Limit;
use crate::verdict::weak::WeakMemory;

/// Addresses of statics are the same for all workers.
pub(super) struct SameProcess;

impl Statics for SameProcess {
    fn number(&self, address: usize) -> Option<u64> {
        Some(address as u64)
    }

    fn address(&self, number: u64) -> Option<usize> {
        number.try_into().ok()
    }
}

/// What all workers know.
struct Job<'a> {
    main: &'a dyn Work,
    /// The settings of a worker: without output, and without limits that the lead looks at.
    settings: Builder,
    running: Running,
    start: Instant,
    site: Site,
    waits: Vec<FirstWait>,
    /// Whether executions are checked for weak behaviour.
    looks_out: bool,
}

/// What the runtime of a worker gets from the lead.
struct Running {
    statics: Rooted,
    nth: u64,
    unseen: Vec<SuppressedRaces>,
}

/// The workers of an exploration.
struct Hub<'a> {
    job: Job<'a>,
    queue: Queue<Seen>,
}

impl Exploration<'_> {
    /// [`Exploration::search`] by several workers, as far as that is possible.
    pub(super) fn search_shared(&mut self, mut driver: PooledDriver) -> PooledDriver {
        let workers = self.settings.workers.unwrap_or(1);
        let mut alone = Alone::default();
        loop {
            let events = self.events(&driver).saturating_add(alone.events);
            driver = self.advance(driver, events);
            if !self.paused {
                return driver;
            }
            if let Some(why) = self.not_shared_because() {
                self.tell_of_one_worker(&why);
                return self.search(driver);
            }
            if !Alone::is_enough(&driver.stats) {
                continue;
            }
            let ended = self.share(driver, workers);
            driver = ended.0;
            if self.watch.stopped.is_some() || !driver.more() {
                self.paused = false;
                return driver;
            }
            alone.workers_ended(ended.1);
        }
    }

    /// Keeps what the look-out of this driver has found, before another driver takes its place.
    pub(super) fn keep_weak(&mut self, driver: &PooledDriver) {
        if let Some(found) = WeakMemory::found(driver) {
            self.watch.weak.get_or_insert(found);
        }
    }

    /// Returns why one worker has to explore alone.
    fn not_shared_because(&self) -> Option<String> {
        if let Some(why) = self.settings.not_shared_because() {
            return Some(why);
        }
        if self.settings.trace.is_some() || self.settings.log || self.log.keeps() {
            return Some("executions are shown (DPOR_TRACE, DPOR_LOG)".to_owned());
        }
        let uses_older = "it uses shared memory that is older than the model, such as a static or what its closure has \
                          captured, and the process has that once; make it inside of the model";
        self.watch.met_older.then(|| uses_older.to_owned())
    }

    /// Tells of a long exploration that had one worker.
    pub(super) fn tell_if_long(&self, driver: &PooledDriver) {
        if Alone::is_long(self.events(driver))
            && let Some(why) = self.settings.not_shared_because()
        {
            self.tell_of_one_worker(&why);
        }
    }

    #[cold]
    fn tell_of_one_worker(&self, why: &str) {
        tell_of_one_worker(self.settings, &self.site, why);
    }

    /// Has workers explore what is left, up to an incident, a limit or the end. Returns a driver
    /// with what is left then, and whether there was an incident.
    #[cold]
    fn share(&mut self, driver: PooledDriver, workers: usize) -> (PooledDriver, bool) {
        self.keep_weak(&driver);
        let whole = saved(driver.save(&SameProcess));
        debug_assert!(whole.is_some(), "dpor bug: nothing is left");
        let base = driver.stats;
        let left_to_begin = self.watch.left_to_begin(base.begun());
        let job = Job {
            main: self.main,
            settings: Builder {
                progress: Some(false),
                checkpoint_file: None,
                max_permutations: None,
                max_memory: self.settings.max_memory.map(|most| most / workers),
                ..self.settings.clone()
            },
            running: Running {
                statics: self.statics,
                nth: crate::exploration::numbered_model::last(),
                unseen: self.unseen.clone(),
            },
            start: self.watch.start,
            site: self.site,
            waits: self.watch.waits.all(),
            looks_out: driver.looked_out().is_some() && self.watch.weak.is_none(),
        };
        let most = self.settings.max_permutations.unwrap_or(usize::MAX);
        let left_to_begin = left_to_begin.map(|left| (left, most));
        let whole = whole.unwrap_or_default();
        let hub = Hub {
            job,
            queue: Queue::new(workers, whole, base, left_to_begin),
        };
        let due = self.watch.next_checkpoint();
        let look = |begun| {
            self.watch.show_progress(begun);
            if due.is_some_and(|due| begun >= due) {
                hub.queue.stop(None);
            } else if interrupts::asked() {
                hub.queue.stop(Some(Limit::Interrupt));
            }
        };
        hub.queue.run(|worker| hub.work(worker), look);
        self.gather(driver, hub.queue)
    }

    /// Puts together what workers have explored, and what they have left, in a driver that takes
    /// the place of `earlier`.
    fn gather(&mut self, mut earlier: PooledDriver, queue: Queue<Seen>) -> (PooledDriver, bool) {
        let gathered = queue.gather();
        let explorer = self.settings.explorer(self.seed);
        let mut driver = self.settings.driver(explorer, Learnt::default());
        gathered.restore(&mut driver, &SameProcess);
        driver.take_place_of(&mut earlier);
        if self.watch.weak.is_some() {
            driver.look_out_no_more();
        }
        let mut seen = Vec::new();
        for done in gathered.done {
            driver.hotspots.add(&done.hotspots);
            seen.push(done.seen);
        }
        self.watch.add_seen(seen);
        self.stacks.executions += gathered.begun;
        self.paused = true;
        if !gathered.has_incident {
            self.watch.stopped = gathered.limit;
            if driver.more() {
                self.watch.write_checkpoint(&driver);
            }
        }
        (driver, gathered.has_incident)
    }
}

impl Sum for Seen {
    fn add(&mut self, later: Seen) {
        Seen::add(self, later);
    }
}

/// Says that one worker explores alone where more were asked for, and why.
#[cold]
pub(crate) fn tell_of_one_worker(settings: &Builder, site: &Site, why: &str) {
    let workers = settings.workers.unwrap_or(1);
    if workers < 2 {
        return;
    }
    let line =
        format!("dpor: one worker explores the model at {site} (DPOR_WORKERS={workers}): {why}");
    if said_once::is_first(line.clone()) {
        above(|| eprintln!("{line}"));
    }
}

impl Hub<'_> {
    /// The work of one worker.
    fn work(&self, worker: usize) {
        let mut pool = stacks(self.job.settings.stack_size);
        let log = Log::new(None, false);
        (self.queue).work(|task| self.explore(task, (&mut pool, &log), worker));
    }

    /// Explores a task.
    fn explore(
        &self,
        task: &Given,
        (pool, log): (&mut Pool, &Log),
        worker: usize,
    ) -> (Stage, Done<Seen>) {
        let Job {
            main,
            settings,
            running,
            start,
            site,
            waits,
            looks_out,
            ..
        } = &self.job;
        let base = &self.queue.base;
        let mut driver = settings.driver(settings.explorer(0), Learnt::default());
        driver.looks_for_raw_uses = tries_raw_uses(settings, None);
        if !looks_out {
            driver.look_out_no_more();
        }
        let part = [(&**task.whole, Stats::default())];
        let restored = driver.restore_parts(part.into_iter(), *base, &SameProcess);
        assert!(restored, "dpor bug: a task does not fit");
        let mut watch = Watch::of_worker(settings, (*start, *site), waits.clone());
        // What was explored before the last execution.
        let mut before = *base;
        let mut split_at = base.events;
        // The work behind the last execution was done before the pause.
        let mut resumes = true;
        loop {
            let mut pause = None;
            let running = Settings {
                statics: running.statics,
                nth: running.nth,
                is_shared: true,
                ..settings.running(site, &running.unseen)
            };
            let mut go_on = |between: &Between<'_>| {
                let driver = between.driver;
                if !std::mem::take(&mut resumes) {
                    self.queue.count(worker);
                    pause = self.look_at(between, &mut watch, log);
                    if pause == Some(Pause::Incident) {
                        return false;
                    }
                    before = driver.stats;
                }
                pause = self.queue.pause(task, driver, pause, &mut split_at);
                pause.is_none()
            };
            let explored = log.listen(|| explore_a_few(*main, driver, pool, running, &mut go_on));
            let (mut paused, pause) = match explored {
                Explored::Failed(found) => {
                    cold_path();
                    (found.driver, Some(Pause::Incident))
                }
                Explored::Passed(passed)
                    if passed.refused().is_some() || passed.ends_are_seen() =>
                {
                    (passed, Some(Pause::Incident))
                }
                Explored::Passed(passed) => (passed, pause),
            };
            match pause {
                Some(Pause::Split) => {
                    self.queue.split(task, &mut paused, &SameProcess);
                    resumes = true;
                    driver = paused;
                    continue;
                }
                Some(Pause::Void) => return (Stage::Ended, Done::default()),
                Some(Pause::Incident | Pause::Stop(_)) => {}
                None => before = paused.stats,
            }
            let rest = self.queue.leave(task, pause, &paused, &SameProcess);
            let done = Done {
                stats: before.since(base),
                hotspots: std::mem::take(&mut paused.hotspots),
                seen: watch.seen(),
            };
            return (rest, done);
        }
    }

    /// Looks at an execution that has passed. An incident is anything that changes how later
    /// executions are explored.
    fn look_at(&self, between: &Between<'_>, watch: &mut Watch<'_>, log: &Log) -> Option<Pause> {
        let driver = between.driver;
        let is_found = driver.looked_out().flatten().is_some();
        if rarely!(between.met_older || driver.has_changed_preference() || is_found) {
            return Some(Pause::Incident);
        }
        if watch.go_on(between, log) {
            return None;
        }
        cold_path();
        match watch.stopped {
            _ if watch.is_to_be_asked() => Some(Pause::Incident),
            stopped => Some(Pause::Stop(stopped)),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
