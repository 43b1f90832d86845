//! Which worker explores which part of an exploration?
//!
//! The lead puts in what is left of a search, as one *task* in the encoding of checkpoints. A
//! worker that has nothing to do gets the part that another one would explore last. So the tasks
//! have an order: the one in which a single worker would explore them. The queue knows no closures:
//! tests ([`workers`](crate::exploration::workers)) share it with front ends
//! ([`engine`](crate::engine)).

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::rt::engine::checkpoint::Statics;
use crate::rt::engine::driver::Driver;
use crate::rt::engine::hotspots::Hotspots;
use crate::rt::engine::stats::Stats;
use crate::rt::rare::rarely;
use crate::verdict::report::Limit;

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

/// How long the lead explores alone before workers do.
pub(crate) struct Alone {
    /// Number of events.
    pub(crate) events: u64,
    behind_incident: u64,
}

impl Default for Alone {
    fn default() -> Alone {
        Alone {
            events: ALONE,
            behind_incident: ALONE,
        }
    }
}

impl Alone {
    /// Whether an exploration is long enough for workers.
    pub(crate) fn is_long(events: u64) -> bool {
        events >= ALONE
    }

    /// Whether so much has been explored that workers may begin.
    pub(crate) fn is_enough(stats: &Stats) -> bool {
        stats.begun() >= ALONE_AT_LEAST || stats.events >= MANY
    }

    /// Workers have explored, up to an incident or not.
    pub(crate) fn workers_ended(&mut self, has_incident: bool) {
        self.events = 1;
        // Where incidents are frequent, there is little that workers can do.
        if has_incident {
            self.behind_incident = self.behind_incident.saturating_mul(2);
            self.events = self.behind_incident;
        }
    }
}

/// What several workers add up.
pub(crate) trait Sum: Default + Send {
    /// Adds what comes behind it.
    fn add(&mut self, later: Self);
}

/// A part of the exploration.
struct Task<S> {
    number: u64,
    /// The task that has given this one away.
    giver: Option<u64>,
    /// What was to be explored when the task was made, with what it has given away since.
    whole: Arc<Vec<u8>>,
    stage: Stage,
    /// Whether an incident came before the task.
    is_void: Arc<AtomicBool>,
    done: Done<S>,
}

/// A task that a worker explores.
pub(crate) struct Given {
    number: u64,
    pub(crate) whole: Arc<Vec<u8>>,
    is_void: Arc<AtomicBool>,
}

pub(crate) enum Stage {
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
pub(crate) struct Done<S> {
    pub(crate) stats: Stats,
    pub(crate) hotspots: Hotspots,
    pub(crate) seen: S,
}

/// The tasks, in the order in which one worker would explore them, and the workers.
struct Tasks<S> {
    list: Vec<Task<S>>,
    made: u64,
    /// Number of workers that have a task.
    busy: usize,
    /// The limit that has stopped the workers.
    limit: Option<Limit>,
    is_over: bool,
}

/// The state that all workers share.
pub(crate) struct Queue<S> {
    /// What was explored before. The numbers of executions of a worker begin with it.
    pub(crate) base: Stats,
    tasks: Mutex<Tasks<S>>,
    /// For a worker: there may be a task. For the lead: the workers may be at the end.
    changed: Condvar,
    /// Number of workers without a task. Those that have not begun yet are among them: how many
    /// parts are given away does not depend on the time that an OS thread takes to begin.
    hungry: AtomicUsize,
    /// Whether workers stop before their next execution.
    stops: AtomicBool,
    begun: Vec<Begun>,
    /// Number of executions that may still be begun, and the limit that says so.
    left_to_begin: Option<(AtomicU64, usize)>,
}

/// Number of executions that a worker has begun, on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Begun(AtomicU64);

/// Why a worker pauses between two executions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Pause {
    /// An incident came before the task.
    Void,
    /// The last execution is to be made by the lead.
    Incident,
    /// A limit, if one is known, stops all workers.
    Stop(Option<Limit>),
    /// Another worker has nothing to do.
    Split,
}

/// What all workers have explored, and what they have left.
pub(crate) struct Gathered<S> {
    left: Vec<(Arc<Vec<u8>>, Stats)>,
    stats: Stats,
    /// In the order in which one worker would have explored it.
    pub(crate) done: Vec<Done<S>>,
    /// Number of executions that were begun.
    pub(crate) begun: u64,
    /// Whether a worker has met an incident: then the next execution is the one of the incident.
    pub(crate) has_incident: bool,
    /// The limit that has stopped the workers.
    pub(crate) limit: Option<Limit>,
}

impl<S: Sum> Queue<S> {
    /// The queue of so many workers for what is left of an exploration.
    pub(crate) fn new(
        workers: usize,
        whole: Vec<u8>,
        base: Stats,
        left_to_begin: Option<(u64, usize)>,
    ) -> Queue<S> {
        let mut tasks = Tasks {
            list: Vec::new(),
            made: 0,
            busy: 0,
            limit: None,
            is_over: false,
        };
        tasks.put(0, None, whole);
        Queue {
            base,
            tasks: Mutex::new(tasks),
            changed: Condvar::new(),
            hungry: AtomicUsize::new(workers),
            stops: AtomicBool::new(false),
            begun: (0..workers).map(|_| Begun::default()).collect(),
            left_to_begin: left_to_begin.map(|(left, most)| (AtomicU64::new(left), most)),
        }
    }

    /// Starts the workers, with the name of this OS thread, and ends when they have ended. Each has
    /// a number and calls [`Queue::work`]. `look` is called again and again in the meantime, with
    /// the number of executions begun.
    pub(crate) fn run(&self, work: impl Fn(usize) + Sync, mut look: impl FnMut(u64)) {
        let name = std::thread::current().name().map(str::to_owned);
        std::thread::scope(|scope| {
            for worker in 0..self.begun.len() {
                let mut thread = std::thread::Builder::new();
                if let Some(name) = &name {
                    // What a worker prints belongs to the test.
                    thread = thread.name(name.clone());
                }
                let work = &work;
                if let Err(error) = thread.spawn_scoped(scope, move || work(worker)) {
                    self.hungry.fetch_sub(1, Relaxed);
                    if worker == 0 {
                        self.stop(None);
                        panic!("dpor: the system has no OS thread for a worker: {error}");
                    }
                }
            }
            let mut tasks = self.tasks();
            while !tasks.is_over {
                let waited = self.changed.wait_timeout(tasks, LOOKS);
                tasks = waited.unwrap_or_else(PoisonError::into_inner).0;
                if tasks.is_over {
                    return;
                }
                drop(tasks);
                look(self.base.begun() + self.begun());
                tasks = self.tasks();
            }
        });
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks<S>> {
        // No panic can leave the list half changed.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of executions that all workers have begun.
    fn begun(&self) -> u64 {
        let begun = self.begun.iter();
        begun.map(|Begun(begun)| begun.load(Relaxed)).sum()
    }

    /// Counts an execution that this worker has begun.
    pub(crate) fn count(&self, worker: usize) {
        let begun = &self.begun[worker].0;
        begun.store(begun.load(Relaxed) + 1, Relaxed);
    }

    /// Stops the workers, because of this limit if there is one.
    pub(crate) fn stop(&self, limit: Option<Limit>) {
        let mut tasks = self.tasks();
        tasks.limit = tasks.limit.or(limit);
        self.stops.store(true, Relaxed);
        if tasks.busy == 0 {
            tasks.is_over = true;
        }
        drop(tasks);
        self.changed.notify_all();
    }

    /// The work of one worker: explores tasks until none is left.
    pub(crate) fn work(&self, mut explore: impl FnMut(&Given) -> (Stage, Done<S>)) {
        /// Ends the work of all if a bug ends that of one.
        struct Ends<'a, S: Sum>(&'a Queue<S>);
        impl<S: Sum> Drop for Ends<'_, S> {
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
        let mut is_hungry = true;
        while let Some(task) = self.next(is_hungry) {
            is_hungry = false;
            let (stage, done) = explore(&task);
            self.end(task.number, stage, done);
        }
        drop(ends);
    }

    /// Waits for a task, for a worker that counts as hungry or not. `None` once there is none and
    /// none will come.
    fn next(&self, mut is_hungry: bool) -> Option<Given> {
        let mut tasks = self.tasks();
        loop {
            let stops = self.stops.load(Relaxed);
            let is_waiting = |task: &&mut Task<S>| {
                matches!(task.stage, Stage::Waiting) && !task.is_void.load(Relaxed)
            };
            let next = tasks.list.iter_mut().find(is_waiting);
            let taken = match next {
                Some(task) if !stops => {
                    task.stage = Stage::Running;
                    Some(Given {
                        number: task.number,
                        whole: task.whole.clone(),
                        is_void: task.is_void.clone(),
                    })
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
    fn end(&self, number: u64, stage: Stage, done: Done<S>) {
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
            let ended = |task: &Task<S>| matches!(task.stage, Stage::Ended);
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

    /// Gives away the part of a task that its worker would explore last.
    pub(crate) fn split(&self, task: &Given, driver: &mut Driver, statics: &dyn Statics) {
        let Some(part) = saved(driver.split(statics)) else {
            return;
        };
        let mut tasks = self.tasks();
        if let Some(at) = tasks.place_of(task.number)
            && !tasks.list[at].is_void.load(Relaxed)
        {
            // A worker explores its last part first of all that comes behind.
            tasks.put(at + 1, Some(task.number), part);
        }
        drop(tasks);
        self.changed.notify_all();
    }

    /// Why a worker pauses behind an execution that was no incident. `pause` is the reason that it
    /// knows itself, and `split_at` the number of events at which it may give a part away.
    #[inline]
    pub(crate) fn pause(
        &self,
        task: &Given,
        driver: &Driver,
        pause: Option<Pause>,
        split_at: &mut u64,
    ) -> Option<Pause> {
        if rarely!(task.is_void.load(Relaxed)) {
            return Some(Pause::Void);
        }
        if pause.is_some() || !driver.more() {
            return pause;
        }
        let events = driver.stats.events;
        if rarely!(self.stops.load(Relaxed)) {
            return Some(Pause::Stop(None));
        }
        if rarely!(self.hungry.load(Relaxed) > 0) && events >= *split_at && driver.can_split() {
            *split_at = events + BETWEEN_SPLITS;
            return Some(Pause::Split);
        }
        let limit = self.may_not_begin()?;
        Some(Pause::Stop(Some(limit)))
    }

    /// Takes one more execution out of those that may be begun, or returns the limit.
    fn may_not_begin(&self) -> Option<Limit> {
        let (left, most) = self.left_to_begin.as_ref()?;
        let taken = left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        taken.is_err().then_some(Limit::Permutations(*most))
    }

    /// What a worker leaves of a task when it ends it, for this reason or because all is explored.
    pub(crate) fn leave(
        &self,
        task: &Given,
        pause: Option<Pause>,
        driver: &Driver,
        statics: &dyn Statics,
    ) -> Stage {
        match pause {
            Some(Pause::Incident) => {
                let rest = saved(driver.save_with_last(statics));
                Stage::Incident(rest.map_or_else(|| task.whole.clone(), Arc::new))
            }
            Some(Pause::Stop(limit)) => {
                if limit.is_some() {
                    self.stop(limit);
                }
                let rest = saved(driver.save(statics));
                Stage::Stopped(rest.map_or_else(|| task.whole.clone(), Arc::new))
            }
            Some(Pause::Void | Pause::Split) | None => Stage::Ended,
        }
    }

    /// Puts together what workers have explored, and what they have left.
    pub(crate) fn gather(self) -> Gathered<S> {
        let begun = self.begun();
        let tasks = self.tasks.into_inner();
        let mut tasks = tasks.unwrap_or_else(PoisonError::into_inner);
        #[cfg(test)]
        shared().with(|it| it.set((it.get().0 + tasks.made, it.get().1 + begun)));
        let is_incident = |task: &Task<S>| matches!(task.stage, Stage::Incident(_));
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
        let mut stats = self.base;
        stats.add(&later);
        let done = tasks.list.drain(..counted).map(|task| task.done);
        Gathered {
            left,
            stats,
            done: done.collect(),
            begun,
            has_incident: incident.is_some(),
            limit: tasks.limit,
        }
    }
}

impl<S> Gathered<S> {
    /// Makes a new driver go on with what is left.
    pub(crate) fn restore(&self, driver: &mut Driver, statics: &dyn Statics) {
        let parts = self.left.iter().map(|(bytes, later)| (&***bytes, *later));
        let restored = driver.restore_parts(parts, self.stats, statics);
        assert!(restored, "dpor bug: the parts of workers do not fit");
    }
}

impl<S: Sum> Tasks<S> {
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

impl<S: Sum> Done<S> {
    /// Adds what was explored behind it.
    fn add(&mut self, other: Done<S>) {
        self.stats.add(&other.stats);
        self.hotspots.add(&other.hotspots);
        self.seen.add(other.seen);
    }
}

/// The bytes of a part; the names of statics are known in the process.
pub(crate) fn saved(bytes: Option<Result<Vec<u8>, String>>) -> Option<Vec<u8>> {
    bytes.and_then(Result::ok)
}

/// The numbers of tasks and of executions that workers have made for this OS thread.
#[cfg(test)]
pub(crate) fn shared() -> &'static std::thread::LocalKey<std::cell::Cell<(u64, u64)>> {
    thread_local!(static SHARED: std::cell::Cell<(u64, u64)> = const { std::cell::Cell::new((0, 0)) });
    &SHARED
}
