//! How do several OS threads share an exploration by a front end?
//!
//! As those of a test do ([`workers`](crate::exploration::workers)), by the same queue: each worker
//! has an engine of its own, which goes on from a part of the search. A worker leaves to the lead
//! an execution that ends the exploration: one that is too long, or in which the front end fails or
//! panics. The lead makes it again, when everything before it has been explored.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustc_hash::FxHashMap;

use crate::config::Builder;
use crate::engine::{Engine, Execution, Misuse, NoStatics, Relation, Stage as Progress, driver};
use crate::exploration::workers::queue::{Alone, Done, Given, Pause, Queue, Stage, Sum, saved};
use crate::exploration::workers::tell_of_one_worker;
use crate::rt::engine::stats::Stats;
use crate::rt::event::Site;

/// What executions have come to, each with the number of those that have.
struct Outcomes<T>(BTreeMap<T, u64>);

impl<T> Default for Outcomes<T> {
    fn default() -> Outcomes<T> {
        Outcomes(BTreeMap::new())
    }
}

impl<T: Ord> Outcomes<T> {
    fn count(&mut self, made: Made<T>) {
        if made.counts {
            *self.0.entry(made.outcome).or_default() += 1;
        }
    }
}

impl<T: Ord + Send> Sum for Outcomes<T> {
    fn add(&mut self, later: Outcomes<T>) {
        for (outcome, executions) in later.0 {
            *self.0.entry(outcome).or_default() += executions;
        }
    }
}

/// What the engines of all workers have in common.
struct Job {
    settings: Builder,
    initial: usize,
    words: FxHashMap<u32, u64>,
    relations: FxHashMap<u32, Relation>,
    site: Site,
}

impl Engine {
    /// Explores everything that is left, with [`Builder::workers`] OS threads, and returns what the
    /// executions have come to.
    ///
    /// `front_end` runs one execution to its end, as the body of the loop over [`Engine::begin`]
    /// does, and returns its outcome. The map has each outcome with the number of executions that
    /// had it; executions that others cover do not count. It is the same for every number of
    /// workers, and so are [`executions`](Engine::executions), [`pruned`](Engine::pruned),
    /// [`depth`](Engine::depth) and the first error. So the front end must not keep results
    /// elsewhere: it is called on several OS threads at once, and twice for an execution that a
    /// worker leaves to the OS thread of the caller, such as one that panics.
    ///
    /// The search is then that of [`Algorithm::Parsimonious`](crate::Algorithm::Parsimonious), also
    /// with one worker. One worker explores alone without that setting, and with settings that do
    /// not allow for more (`docs/PARALLEL.md`), of which a line on standard error tells. The first
    /// 20,000 events are explored alone in any case. [`Builder::max_permutations`] counts the
    /// executions of all workers, and which ones it leaves out differs from run to run; what is
    /// left can be [saved](Engine::save).
    ///
    /// ```
    /// use dpor::Builder;
    /// use dpor::engine::{Engine, Operation, Outcome, Turn};
    ///
    /// // Each of four threads loads a word and stores one more.
    /// let mut settings = Builder::new();
    /// settings.workers = Some(2);
    /// let mut engine = Engine::new(&settings, 4)?;
    /// let sums = engine.explore(|execution| {
    ///     let (mut steps, mut last) = ([0; 4], 0);
    ///     loop {
    ///         let (thread, value) = match execution.turn()? {
    ///             Turn::Begins(thread) => (thread, 0),
    ///             Turn::Ran(thread, outcome) => (thread, outcome.value().unwrap_or(0) + 1),
    ///             Turn::Ended(_) => return Ok(last),
    ///         };
    ///         match steps[thread.0] {
    ///             0 => execution.announce(thread, Operation::Load { word: 0 })?,
    ///             1 => {
    ///                 execution.announce(thread, Operation::Store { word: 0, value })?;
    ///                 last = last.max(value);
    ///             }
    ///             _ => execution.finish_thread(thread)?,
    ///         }
    ///         steps[thread.0] += 1;
    ///     }
    /// })?;
    /// assert!(engine.is_complete());
    /// assert_eq!((engine.executions(), sums.values().sum()), (576, 576));
    /// assert!(sums.keys().copied().eq(1..=4));
    /// # Ok::<(), dpor::engine::Misuse>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first error that the front end returns. [`Misuse::NotEnded`] if it returns before
    /// [`Turn::Ended`](crate::engine::Turn::Ended), and [`Misuse::Aborted`] as for
    /// [`Engine::begin`].
    ///
    /// # Panics
    ///
    /// If the front end does, or if the system has no OS thread for a worker.
    pub fn explore<T: Ord + Send>(
        &mut self,
        front_end: impl Fn(&mut Execution<'_>) -> Result<T, Misuse> + Sync,
    ) -> Result<BTreeMap<T, u64>, Misuse> {
        let mut outcomes = Outcomes::default();
        let workers = self.settings.workers.unwrap_or(1);
        let shares = workers > 1 && self.settings.shares_work();
        if let Some(why) = self.settings.not_shared_because() {
            tell_of_one_worker(&self.settings, &self.site, &why);
        }
        let mut alone = Alone::default();
        loop {
            let events = match shares {
                true => self.driver.stats.events.saturating_add(alone.events),
                false => u64::MAX,
            };
            if self.explore_alone(&front_end, events, &mut outcomes)? {
                return Ok(outcomes.0);
            }
            if Alone::is_enough(&self.driver.stats) {
                let has_incident = self.share(workers, &front_end, &mut outcomes);
                alone.workers_ended(has_incident);
            }
        }
    }

    /// Explores until there are so many events. Returns whether there is no next execution.
    fn explore_alone<T: Ord + Send>(
        &mut self,
        front_end: &impl Fn(&mut Execution<'_>) -> Result<T, Misuse>,
        events: u64,
        outcomes: &mut Outcomes<T>,
    ) -> Result<bool, Misuse> {
        while self.driver.stats.events < events || !self.driver.more() {
            match self.make(front_end)? {
                Some(made) => outcomes.count(made),
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Makes the next execution; `None` if there is none.
    fn make<T>(
        &mut self,
        front_end: &impl Fn(&mut Execution<'_>) -> Result<T, Misuse>,
    ) -> Result<Option<Made<T>>, Misuse> {
        let before = self.executions();
        let Some(mut execution) = self.begin()? else {
            return Ok(None);
        };
        let outcome = front_end(&mut execution)?;
        if matches!(self.stage, Progress::Inside(_)) {
            return Err(Misuse::NotEnded);
        }
        Ok(Some(Made {
            outcome,
            counts: self.executions() > before,
        }))
    }

    /// Has workers explore what is left, up to an incident, a limit or the end. Returns whether
    /// there was an incident.
    #[cold]
    fn share<T: Ord + Send>(
        &mut self,
        workers: usize,
        front_end: &(impl Fn(&mut Execution<'_>) -> Result<T, Misuse> + Sync),
        outcomes: &mut Outcomes<T>,
    ) -> bool {
        let whole = saved(self.driver.save(&NoStatics));
        let whole = whole.expect("dpor bug: nothing is left");
        let base = self.driver.stats;
        let most = self.settings.max_permutations;
        let left = most.map(|most| ((most as u64).saturating_sub(base.begun()), most));
        let queue = Queue::new(workers, whole, base, left);
        let job = Job {
            settings: Builder {
                max_permutations: None,
                ..self.settings.clone()
            },
            initial: self.initial,
            words: self.words.clone(),
            relations: self.relations.clone(),
            site: self.site,
        };
        let work = |worker| queue.work(|task| job.explore(&queue, task, worker, front_end));
        queue.run(work, |_| {});
        let gathered = queue.gather();
        let mut next = driver(&self.settings, self.initial);
        gathered.restore(&mut next, &NoStatics);
        next.take_place_of(&mut self.driver);
        for done in gathered.done {
            next.hotspots.add(&done.hotspots);
            outcomes.add(done.seen);
        }
        self.driver = next;
        gathered.has_incident
    }
}

/// An execution that has been made.
struct Made<T> {
    outcome: T,
    /// Whether it is none that others cover.
    counts: bool,
}

impl Job {
    /// An engine that has explored nothing.
    fn engine(&self) -> Engine {
        Engine {
            driver: driver(&self.settings, self.initial),
            settings: self.settings.clone(),
            initial: self.initial,
            threads: Vec::new(),
            words: self.words.clone(),
            relations: self.relations.clone(),
            stage: Progress::Between,
            is_complete: false,
            is_cut: false,
            site: self.site,
        }
    }

    /// Explores a task.
    fn explore<T: Ord + Send>(
        &self,
        queue: &Queue<Outcomes<T>>,
        task: &Given,
        worker: usize,
        front_end: &impl Fn(&mut Execution<'_>) -> Result<T, Misuse>,
    ) -> (Stage, Done<Outcomes<T>>) {
        let mut engine = self.engine();
        let part = [(&**task.whole, Stats::default())];
        let restored = (engine.driver).restore_parts(part.into_iter(), queue.base, &NoStatics);
        assert!(restored, "dpor bug: a task does not fit");
        let mut split_at = queue.base.events;
        // What was explored before the last execution.
        let mut before = queue.base;
        let mut seen = Outcomes::default();
        let pause = loop {
            match queue.pause(task, &engine.driver, None, &mut split_at) {
                None => {}
                Some(Pause::Split) => {
                    queue.split(task, &mut engine.driver, &NoStatics);
                    continue;
                }
                Some(Pause::Void) => return (Stage::Ended, Done::default()),
                pause => break pause,
            }
            // The engine of a panic is only asked for what is left, with that execution.
            let made = catch_unwind(AssertUnwindSafe(|| engine.make(front_end)));
            queue.count(worker);
            match made {
                Ok(Ok(None)) => break None,
                Ok(Ok(Some(made))) if !engine.is_cut => {
                    // No operation of a front end comes last.
                    debug_assert!(!engine.driver.has_changed_preference());
                    before = engine.driver.stats;
                    seen.count(made);
                }
                _ => break Some(Pause::Incident),
            }
        };
        let stage = queue.leave(task, pause, &engine.driver, &NoStatics);
        let done = Done {
            stats: before.since(&queue.base),
            hotspots: std::mem::take(&mut engine.driver.hotspots),
            seen,
        };
        (stage, done)
    }
}
