//! How do several OS threads share one exploration?
//!
//! The search without wakeup trees leaves suspended executions, and what is below one of them needs
//! nothing from anywhere else. A *task* is such a part of the search, in the encoding of
//! checkpoints: each worker has a runtime of its own, with numbers of its own for threads and
//! objects. A worker that has nothing to do gets the part that another one would explore last. So
//! the tasks have an order: the one in which a single worker would explore them.
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

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::Builder;
use crate::exploration::Exploration;
use crate::exploration::between_executions::{Seen, Watch};
use crate::exploration::first_waits::FirstWait;
use crate::exploration::progress::above;
use crate::exploration::said_once;
use crate::exploration::tries_raw_uses;
use crate::rt::Work;
use crate::rt::coroutine::Pool;
use crate::rt::engine::checkpoint::Statics;
use crate::rt::engine::hotspots::Hotspots;
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

/// Number of events that the lead explores alone: shorter explorations end before workers have
/// begun, and the first executions show most of what is learnt about a program.
const ALONE: u64 = if cfg!(test) { 400 } else { 20_000 };

/// Number of executions that the lead explores alone, unless it has made [`MANY`] events. Raw uses
/// are noted in so many executions.
const ALONE_AT_LEAST: u64 = if cfg!(test) { 10 } else { 1_000 };
const MANY: u64 = 1_000_000;

/// Number of events between two parts that one worker gives away. Giving a part away takes as long
/// as a small share of them.
const BETWEEN_SPLITS: u64 = if cfg!(test) { 40 } else { 4_000 };

/// The pause between two looks of the lead at its workers.
const LOOKS: Duration = Duration::from_millis(50);

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
    /// What was explored before. The numbers of executions of a worker begin with it.
    base: Stats,
    /// Number of executions that may still be begun.
    left_to_begin: Option<AtomicU64>,
    /// The limit on the number of executions.
    most: usize,
}

/// What the runtime of a worker gets from the lead.
struct Running {
    statics: Rooted,
    nth: u64,
    unseen: Vec<SuppressedRaces>,
}

/// A part of the exploration.
struct Task {
    number: u64,
    /// The task that has given this one away.
    giver: Option<u64>,
    /// What was to be explored when the task was made, with what it has given away since.
    whole: Arc<Vec<u8>>,
    stage: Stage,
    /// Whether an incident came before the task.
    is_void: Arc<AtomicBool>,
    done: Done,
}

enum Stage {
    Waiting,
    Running,
    /// Everything has been explored.
    Ended,
    /// A limit has stopped the worker; this is left.
    Stopped(Arc<Vec<u8>>),
    /// The next execution is to be made by the lead; this is left, with that execution.
    Incident(Arc<Vec<u8>>),
}

/// What a worker has explored of a task.
#[derive(Default)]
struct Done {
    stats: Stats,
    hotspots: Hotspots,
    seen: Seen,
}

/// The tasks, in the order in which one worker would explore them, and the workers.
#[derive(Default)]
struct Tasks {
    list: Vec<Task>,
    made: u64,
    /// Number of workers that have a task.
    busy: usize,
    /// The limit that has stopped the workers.
    limit: Option<Limit>,
    is_over: bool,
}

/// The state that all workers share.
struct Hub<'a> {
    job: Job<'a>,
    tasks: Mutex<Tasks>,
    /// For a worker: there may be a task. For the lead: the workers may be at the end.
    changed: Condvar,
    /// Number of workers without a task. Those that have not begun yet are among them: how many
    /// parts are given away does not depend on the time that an OS thread takes to begin.
    hungry: AtomicUsize,
    /// Whether workers stop before their next execution.
    stops: AtomicBool,
    begun: Vec<Begun>,
}

/// Number of executions that a worker has begun, on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Begun(AtomicU64);

/// Why a worker pauses between two executions.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Pause {
    Void,
    Incident,
    Stop(Option<Limit>),
    Split,
}

impl Exploration<'_> {
    /// [`Exploration::search`] by several workers, as far as that is possible.
    pub(super) fn search_shared(&mut self, mut driver: PooledDriver) -> PooledDriver {
        let workers = self.settings.workers.unwrap_or(1);
        let (mut alone, mut behind_incident) = (ALONE, ALONE);
        loop {
            let events = self.events(&driver).saturating_add(alone);
            driver = self.advance(driver, events);
            if !self.paused {
                return driver;
            }
            if let Some(why) = self.not_shared_because() {
                self.tell_of_one_worker(&why);
                return self.search(driver);
            }
            let (begun, events) = (driver.stats.begun(), driver.stats.events);
            if begun < ALONE_AT_LEAST && events < MANY {
                continue;
            }
            let ended = self.share(driver, workers);
            driver = ended.0;
            if self.watch.stopped.is_some() || !driver.more() {
                self.paused = false;
                return driver;
            }
            // Where incidents are frequent, there is little that workers can do.
            alone = 1;
            if ended.1 {
                behind_incident = behind_incident.saturating_mul(2);
                alone = behind_incident;
            }
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
        if self.events(driver) >= ALONE
            && let Some(why) = self.settings.not_shared_because()
        {
            self.tell_of_one_worker(&why);
        }
    }

    #[cold]
    fn tell_of_one_worker(&self, why: &str) {
        let workers = self.settings.workers.unwrap_or(1);
        if workers < 2 {
            return;
        }
        let line = format!(
            "dpor: one worker explores the model at {} (DPOR_WORKERS={workers}): {why}",
            self.site
        );
        if said_once::is_first(line.clone()) {
            above(|| eprintln!("{line}"));
        }
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
            base,
            left_to_begin: left_to_begin.map(AtomicU64::new),
            most: self.settings.max_permutations.unwrap_or(usize::MAX),
        };
        let hub = Hub {
            job,
            tasks: Mutex::default(),
            changed: Condvar::new(),
            hungry: AtomicUsize::new(workers),
            stops: AtomicBool::new(false),
            begun: (0..workers).map(|_| Begun::default()).collect(),
        };
        hub.tasks().put(0, None, whole.unwrap_or_default());
        let name = std::thread::current().name().map(str::to_owned);
        std::thread::scope(|scope| {
            for worker in 0..workers {
                let mut thread = std::thread::Builder::new();
                if let Some(name) = &name {
                    // What a worker prints belongs to the test.
                    thread = thread.name(name.clone());
                }
                let hub = &hub;
                let work = move || hub.work(worker);
                if let Err(error) = thread.spawn_scoped(scope, work) {
                    hub.hungry.fetch_sub(1, Relaxed);
                    if worker == 0 {
                        hub.stop(None);
                        panic!("dpor: the system has no OS thread for a worker: {error}");
                    }
                }
            }
            self.watch_workers(&hub);
        });
        self.gather(driver, hub)
    }

    /// Shows the progress of the workers until they have ended.
    fn watch_workers(&mut self, hub: &Hub<'_>) {
        let due = self.watch.next_checkpoint();
        let mut tasks = hub.tasks();
        while !tasks.is_over {
            let waited = hub.changed.wait_timeout(tasks, LOOKS);
            tasks = waited.unwrap_or_else(PoisonError::into_inner).0;
            if tasks.is_over {
                return;
            }
            let begun = hub.job.base.begun() + hub.begun();
            drop(tasks);
            self.watch.show_progress(begun);
            if due.is_some_and(|due| begun >= due) {
                hub.stop(None);
            } else if interrupts::asked() {
                hub.stop(Some(Limit::Interrupt));
            }
            tasks = hub.tasks();
        }
    }

    /// Puts together what workers have explored, and what they have left, in a driver that takes
    /// the place of `earlier`.
    fn gather(&mut self, mut earlier: PooledDriver, hub: Hub<'_>) -> (PooledDriver, bool) {
        let executed = hub.begun();
        let base = hub.job.base;
        let tasks = hub.tasks.into_inner();
        let mut tasks = tasks.unwrap_or_else(PoisonError::into_inner);
        #[cfg(test)]
        shared().with(|it| it.set((it.get().0 + tasks.made, it.get().1 + executed)));
        let is_incident = |task: &Task| matches!(task.stage, Stage::Incident(_));
        // All tasks behind an incident are void, so there is one at most.
        let incident = tasks.list.iter().position(is_incident);
        let counted = incident.map_or(tasks.list.len(), |at| at + 1);
        let mut left: Vec<(Arc<Vec<u8>>, Stats)> = Vec::new();
        // A later task as it was made contains what it has given away.
        let numbers: Vec<u64> = tasks.list[counted..].iter().map(|it| it.number).collect();
        for task in tasks.list[counted..].iter().rev() {
            if task.giver.is_none_or(|giver| !numbers.contains(&giver)) {
                left.push((task.whole.clone(), Stats::default()));
            }
        }
        let mut later = Stats::default();
        for (at, task) in tasks.list[..counted].iter().enumerate().rev() {
            let rest = match &task.stage {
                Stage::Waiting | Stage::Running => Some(&task.whole),
                Stage::Ended => None,
                Stage::Stopped(rest) | Stage::Incident(rest) => Some(rest),
            };
            let behind = later;
            later.add(&task.done.stats);
            if let Some(rest) = rest
                && Some(at) != incident
            {
                left.push((rest.clone(), behind));
            }
        }
        // An execution that was stopped before tasks that come earlier comes first all the same.
        if let Some(at) = incident
            && let Stage::Incident(rest) = &tasks.list[at].stage
        {
            left.push((rest.clone(), Stats::default()));
        }
        let mut stats = base;
        stats.add(&later);
        let explorer = self.settings.explorer(self.seed);
        let mut driver = self.settings.driver(explorer, Learnt::default());
        let parts = left.iter().map(|(bytes, later)| (&***bytes, *later));
        let restored = driver.restore_parts(parts, stats, &SameProcess);
        assert!(restored, "dpor bug: the parts of workers do not fit");
        driver.take_place_of(&mut earlier);
        if self.watch.weak.is_some() {
            driver.look_out_no_more();
        }
        let mut seen = Vec::new();
        for task in tasks.list.drain(..counted) {
            driver.hotspots.add(&task.done.hotspots);
            seen.push(task.done.seen);
        }
        self.watch.add_seen(seen);
        self.stacks.executions += executed;
        self.paused = true;
        if incident.is_none() {
            self.watch.stopped = tasks.limit;
            if driver.more() {
                self.watch.write_checkpoint(&driver);
            }
        }
        (driver, incident.is_some())
    }
}

impl Tasks {
    /// Puts a task at this place in the order.
    fn put(&mut self, at: usize, giver: Option<u64>, whole: Vec<u8>) {
        self.made += 1;
        let task = Task {
            number: self.made,
            giver,
            whole: Arc::new(whole),
            stage: Stage::Waiting,
            is_void: Arc::default(),
            done: Done::default(),
        };
        self.list.insert(at, task);
    }

    fn place_of(&self, number: u64) -> Option<usize> {
        self.list.iter().position(|task| task.number == number)
    }
}

impl Hub<'_> {
    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        // No panic can leave the list half changed.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of executions that all workers have begun.
    fn begun(&self) -> u64 {
        let begun = self.begun.iter();
        begun.map(|Begun(begun)| begun.load(Relaxed)).sum()
    }

    /// Stops the workers, because of this limit if there is one.
    fn stop(&self, limit: Option<Limit>) {
        let mut tasks = self.tasks();
        tasks.limit = tasks.limit.or(limit);
        self.stops.store(true, Relaxed);
        if tasks.busy == 0 {
            tasks.is_over = true;
        }
        drop(tasks);
        self.changed.notify_all();
    }

    /// The work of one worker.
    fn work(&self, worker: usize) {
        /// Ends the work of all if a bug ends that of one.
        struct Ends<'a, 'b>(&'a Hub<'b>);
        impl Drop for Ends<'_, '_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    let mut tasks = self.0.tasks();
                    self.0.stops.store(true, Relaxed);
                    tasks.is_over = true;
                    drop(tasks);
                    self.0.changed.notify_all();
                }
            }
        }
        let ends = Ends(self);
        let mut pool = stacks(self.job.settings.stack_size);
        let log = Log::new(None, false);
        let mut is_hungry = true;
        while let Some((number, whole, is_void)) = self.next(is_hungry) {
            is_hungry = false;
            let (stage, done) = self.explore(number, (&whole, &is_void), (&mut pool, &log), worker);
            self.end(number, stage, done);
        }
        drop(ends);
    }

    /// Waits for a task, for a worker that counts as hungry or not. `None` once there is none and
    /// none will come.
    fn next(&self, mut is_hungry: bool) -> Option<(u64, Arc<Vec<u8>>, Arc<AtomicBool>)> {
        let mut tasks = self.tasks();
        loop {
            let stops = self.stops.load(Relaxed);
            let is_waiting = |task: &&mut Task| {
                matches!(task.stage, Stage::Waiting) && !task.is_void.load(Relaxed)
            };
            let next = tasks.list.iter_mut().find(is_waiting);
            let taken = match next {
                Some(task) if !stops => {
                    task.stage = Stage::Running;
                    Some((task.number, task.whole.clone(), task.is_void.clone()))
                }
                _ => None,
            };
            if taken.is_some() {
                tasks.busy += 1;
            } else if stops || tasks.busy == 0 {
                tasks.is_over |= tasks.busy == 0;
            }
            if is_hungry && (taken.is_some() || stops || tasks.is_over) {
                self.hungry.fetch_sub(1, Relaxed);
            }
            if taken.is_some() {
                return taken;
            }
            if stops || tasks.is_over {
                drop(tasks);
                self.changed.notify_all();
                return None;
            }
            if !is_hungry {
                is_hungry = true;
                self.hungry.fetch_add(1, Relaxed);
            }
            tasks = (self.changed.wait(tasks)).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends a task.
    fn end(&self, number: u64, stage: Stage, done: Done) {
        let mut tasks = self.tasks();
        tasks.busy -= 1;
        if let Some(at) = tasks.place_of(number)
            && !tasks.list[at].is_void.load(Relaxed)
        {
            if matches!(stage, Stage::Incident(_)) {
                for later in &tasks.list[at + 1..] {
                    later.is_void.store(true, Relaxed);
                }
            }
            tasks.list[at].stage = stage;
            tasks.list[at].done = done;
            // What was explored up to here does not change any more.
            let ended = |task: &Task| matches!(task.stage, Stage::Ended);
            let first = tasks.list.iter().take_while(|task| ended(task)).count();
            if first > 1 {
                let mut all = tasks.list.drain(1..first).collect::<Vec<_>>().into_iter();
                let done = &mut tasks.list[0].done;
                all.by_ref().for_each(|task| done.add(task.done));
            }
        }
        drop(tasks);
        self.changed.notify_all();
    }

    /// Gives away a part of a task.
    fn give(&self, number: u64, part: Vec<u8>) {
        let mut tasks = self.tasks();
        if let Some(at) = tasks.place_of(number)
            && !tasks.list[at].is_void.load(Relaxed)
        {
            // A worker explores its last part first of all that comes behind.
            tasks.put(at + 1, Some(number), part);
        }
        drop(tasks);
        self.changed.notify_all();
    }

    /// Explores a task.
    fn explore(
        &self,
        number: u64,
        (whole, is_void): (&Arc<Vec<u8>>, &AtomicBool),
        (pool, log): (&mut Pool, &Log),
        worker: usize,
    ) -> (Stage, Done) {
        let Job {
            main,
            settings,
            running,
            start,
            site,
            waits,
            looks_out,
            base,
            ..
        } = &self.job;
        let mut driver = settings.driver(settings.explorer(0), Learnt::default());
        driver.looks_for_raw_uses = tries_raw_uses(settings, None);
        if !looks_out {
            driver.look_out_no_more();
        }
        let part = [(&***whole, Stats::default())];
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
                    let begun = &self.begun[worker].0;
                    begun.store(begun.load(Relaxed) + 1, Relaxed);
                    pause = self.look_at(between, &mut watch, log);
                    if pause == Some(Pause::Incident) {
                        return false;
                    }
                    before = driver.stats;
                }
                if rarely!(is_void.load(Relaxed)) {
                    pause = Some(Pause::Void);
                } else if pause.is_none() && driver.more() {
                    let events = driver.stats.events;
                    if rarely!(self.stops.load(Relaxed)) {
                        pause = Some(Pause::Stop(None));
                    } else if rarely!(self.hungry.load(Relaxed) > 0)
                        && events >= split_at
                        && driver.can_split()
                    {
                        split_at = events + BETWEEN_SPLITS;
                        pause = Some(Pause::Split);
                    } else if !self.may_begin() {
                        pause = Some(Pause::Stop(Some(Limit::Permutations(self.job.most))));
                    }
                }
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
            let rest = match pause {
                Some(Pause::Split) => {
                    if let Some(part) = saved(paused.split(&SameProcess)) {
                        self.give(number, part);
                    }
                    resumes = true;
                    driver = paused;
                    continue;
                }
                Some(Pause::Void) => return (Stage::Ended, Done::default()),
                Some(Pause::Incident) => {
                    let rest = saved(paused.save_with_last(&SameProcess));
                    Stage::Incident(rest.map_or_else(|| whole.clone(), Arc::new))
                }
                Some(Pause::Stop(limit)) => {
                    if limit.is_some() {
                        self.stop(limit);
                    }
                    let rest = saved(paused.save(&SameProcess));
                    Stage::Stopped(rest.map_or_else(|| whole.clone(), Arc::new))
                }
                None => {
                    before = paused.stats;
                    Stage::Ended
                }
            };
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

    /// Whether one more execution may be begun.
    fn may_begin(&self) -> bool {
        let Some(left) = &self.job.left_to_begin else {
            return true;
        };
        let taken = left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        taken.is_ok()
    }
}

impl Done {
    /// Adds what was explored behind it.
    fn add(&mut self, other: Done) {
        self.stats.add(&other.stats);
        self.hotspots.add(&other.hotspots);
        self.seen.add(other.seen);
    }
}

/// The numbers of tasks and of executions that workers have made for this OS thread.
#[cfg(test)]
pub(super) fn shared() -> &'static std::thread::LocalKey<std::cell::Cell<(u64, u64)>> {
    thread_local!(static SHARED: std::cell::Cell<(u64, u64)> = const { std::cell::Cell::new((0, 0)) });
    &SHARED
}

/// The bytes of a part; the names of statics are known in the process.
fn saved(bytes: Option<Result<Vec<u8>, String>>) -> Option<Vec<u8>> {
    bytes.and_then(Result::ok)
}

#[cfg(test)]
pub(super) mod tests;
