//! Entry points: explore a closure, replay one execution of it, and the functions that the closure
//! may call meanwhile.

use std::panic::Location;
use std::sync::PoisonError;

use crate::collections::touch;
pub use crate::config::Builder;
use crate::config::Memory;
use crate::engine::{Access, Relation};
use crate::exploration;
use crate::exploration::progress::{above, above_captured};
use crate::exploration::{numbered_model, replay_command, saved_failure, summary};
use crate::orderings::{self, OrderingsReport};
use crate::rt::event::Site;
use crate::rt::event::schedule::Schedule;
use crate::rt::exec::context;
use crate::rt::heap;
use crate::rt::rare::{mostly, rarely};
use crate::rt::report::text;
use crate::rt::{self, Answer, Outcome, Touch, Work};
use crate::sync::Shown;
use crate::verdict::failure::{Failure, FailureKind, incomplete, unfit};
use crate::verdict::report::{Passed, Report, Verdict};

/// Explores every trace of `f`, with the settings of the environment.
///
/// Everything that the threads share must be created in `f` or be a static.
///
/// ```
/// use dpor::sync::{Arc, Mutex};
///
/// dpor::model(|| {
///     let list = Arc::new(Mutex::new(Vec::new()));
///     let theirs = list.clone();
///     let other = dpor::thread::spawn(move || theirs.lock().unwrap().push(1));
///     list.lock().unwrap().push(2);
///     other.join().unwrap();
///     assert_eq!(list.lock().unwrap().len(), 2);
/// });
/// ```
///
/// # Panics
///
/// At the first execution that fails: with the test's own panic, or with a sentence that names
/// another kind of failure. The report goes to standard error.
///
/// If no execution runs to its end, because each was pruned or because a limit allowed none: then
/// nothing was tested.
///
/// If the exploration is not complete, with [`Builder::require_complete`].
///
/// If an environment variable is malformed, and where [`Builder::explore`] panics.
#[track_caller]
pub fn model<F>(f: F)
where
    F: Fn() + Send + Sync + 'static,
{
    Builder::new().checked(&f);
}

/// Runs the one execution of `f` that `schedule` describes.
///
/// A report prints the schedule of its execution, and the call that replays it as a test:
///
/// ```should_panic
/// use dpor::sync::Arc;
/// use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
///
/// dpor::replay("v2 main*3 main.1*3 main*3", || {
///     let counter = Arc::new(AtomicUsize::new(0));
///     let add = |counter: &AtomicUsize| counter.store(counter.load(SeqCst) + 1, SeqCst);
///     let theirs = counter.clone();
///     let other = dpor::thread::spawn(move || add(&theirs));
///     add(&counter);
///     other.join().unwrap();
///     assert_eq!(counter.load(SeqCst), 2);
/// });
/// ```
///
/// # Panics
///
/// As for [`model`], and if the schedule is malformed or does not fit the program.
#[track_caller]
pub fn replay<F>(schedule: &str, f: F)
where
    F: Fn() + Send + Sync + 'static,
{
    let mut builder = Builder::new();
    builder.replay = Some(schedule.to_owned());
    builder.checked(&f);
}

/// Finds the weakest orderings with which `f` passes under [`Memory::C11`], with the settings of
/// the environment.
///
/// Each ordering stronger than `Relaxed` is weakened step by step, and `f` explored each time. The
/// result is a local minimum for this test alone: another test may need a stronger ordering, and
/// another set of orderings may pass that is not stronger than this one.
///
/// ```
/// use dpor::sync::Arc;
/// use dpor::sync::atomic::{AtomicBool, AtomicUsize, Ordering::{Relaxed, Release, SeqCst}};
///
/// let report = dpor::orderings(|| {
///     let shared = Arc::new((AtomicUsize::new(0), AtomicBool::new(false)));
///     let theirs = shared.clone();
///     let writer = dpor::thread::spawn(move || {
///         theirs.0.store(42, Relaxed);
///         theirs.1.store(true, SeqCst);
///     });
///     if shared.1.load(SeqCst) {
///         assert_eq!(shared.0.load(Relaxed), 42);
///     }
///     writer.join().unwrap();
/// });
/// println!("{report}");
/// assert_eq!(report.places[0].operation, "store");
/// assert_eq!(report.places[0].weakest, Some(Release));
/// ```
///
/// # Panics
///
/// As for [`model`](crate::model()), if `f` fails with its orderings as they are. With a schedule
/// to replay (`DPOR_REPLAY`), `f` runs once, and the report has no places.
#[track_caller]
pub fn orderings<F>(f: F) -> OrderingsReport
where
    F: Fn() + Send + Sync + 'static,
{
    Builder::new().weakest_or_panic(&f)
}

/// Announces that the calling thread accesses `object` now, in this way.
///
/// This makes the operations of a type that dpor does not know visible: its threads are explored in
/// both orders of two accesses that conflict, and in one order of two that commute
/// ([`Access`] has the table). Call it where the operation begins, on a part
/// that has one address; until its next operation on something that dpor knows, no other thread
/// runs. The object needs a size above 0.
///
/// Two accesses that conflict are also ordered for plain memory, as by a lock. Two that commute are
/// not: memory that both of them use is not in a cell of [`cell`](crate::cell). Outside a model
/// this does nothing.
///
/// ```
/// use dpor::engine::Access;
/// use dpor::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
///
/// /// A histogram; dpor does not know std's atomics.
/// struct Histogram([AtomicU64; 2]);
///
/// impl Histogram {
///     fn count(&self, bucket: usize) {
///         dpor::access(&self.0, Access::KeyWrite(bucket as u64));
///         self.0[bucket].fetch_add(1, Relaxed);
///     }
///     fn total(&self) -> u64 {
///         dpor::access(&self.0, Access::Read);
///         self.0.iter().map(|bucket| bucket.load(Relaxed)).sum()
///     }
/// }
///
/// let report = dpor::Builder::new().check(|| {
///     let histogram = Arc::new(Histogram([AtomicU64::new(0), AtomicU64::new(0)]));
///     let other = histogram.clone();
///     let thread = dpor::thread::spawn(move || other.count(1));
///     histogram.count(0);
///     thread.join().unwrap();
///     assert_eq!(histogram.total(), 2);
/// });
/// assert_eq!(report.executions, 1);
/// ```
///
/// # Panics
///
/// If the access is [`Access::Declared`], which needs a relation
/// ([`access_in`]), or `object` has no size.
#[track_caller]
pub fn access<T: ?Sized>(object: &T, access: Access) {
    let touch = access.touch(None);
    let touch = touch.expect("a declared access needs its relation: call `dpor::access_in`");
    touch_object(object, touch);
}

/// Announces that the calling thread accesses `object` now, as [`access`] does, by the access with
/// this number in `relation`. All accesses to the object are by one relation.
///
/// # Panics
///
/// If the relation has no access with this number, or `object` has no size.
#[track_caller]
pub fn access_in<T: ?Sized>(object: &T, relation: &Relation, number: u8) {
    let touch = Access::Declared(number).touch(Some(relation));
    let touch = touch.unwrap_or_else(|| {
        panic!("the relation has no access {number}; its accesses are numbered from 0")
    });
    touch_object(object, touch);
}

#[track_caller]
fn touch_object<T: ?Sized>(object: &T, how: Touch) {
    assert!(
        size_of_val(object) > 0,
        "an object without a size has no address of its own, so that its accesses cannot be told from those of another"
    );
    touch((&raw const *object).addr(), how);
}

/// Names `object` in reports.
///
/// `dpor::name(&*queue, "queue")` gives the name to every part of the object. The name belongs to
/// the place in memory where the object is now, in this execution and in all others. Outside a
/// model this does nothing.
///
/// ```
/// use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
///
/// let failure = dpor::Builder::new().explore(|| {
///     let slots = [AtomicUsize::new(0), AtomicUsize::new(0)];
///     dpor::name(&slots[1], "tail");
///     slots[1].store(1, SeqCst);
///     panic!("to see the report");
/// });
/// let report = failure.expect_err("it panics").to_string();
/// assert!(report.contains("tail := 1 (was 0)"));
/// ```
pub fn name<T: ?Sized>(object: &T, name: &str) {
    let address = (&raw const *object).addr();
    rt::name_object(address, size_of_val(object), name);
}

/// Has reports show the data behind `lock` as `print` prints it.
///
/// Reports show numbers behind locks by themselves, and of other data only whether it has changed.
/// `print` is called while the lock is held, and only in an execution that is run to be reported.
/// It takes no part in the execution: it sees the values of atomics and of locks that are free, and
/// no operation of it is an event. It must not panic.
///
/// The lock is a [`Mutex`](crate::sync::Mutex) or an [`RwLock`](crate::sync::RwLock). Write
/// `&*lock` for one in an `Arc`, and call this before a lock of an array is used as one of a slice.
/// Outside a model this does nothing that can be seen.
///
/// ```
/// use dpor::sync::Mutex;
///
/// let failure = dpor::Builder::new().explore(|| {
///     let queue = Mutex::new(vec![7]);
///     dpor::show(&queue, |queue| format!("{queue:?}"));
///     queue.lock().unwrap().push(8);
///     panic!("to see the report");
/// });
/// let report = failure.expect_err("it panics").to_string();
/// assert!(report.contains("unlock queue ([7] -> [7, 8])"));
/// ```
pub fn show<L: Shown>(lock: &L, print: fn(&L::Data) -> String) {
    lock.__show(print);
}

impl Builder {
    /// Explores `f` and returns a report.
    ///
    /// # Panics
    ///
    /// As for [`model`].
    #[cfg(not(any(loom, feature = "loom")))]
    #[track_caller]
    pub fn check<F>(&self, f: F) -> Report
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.checked(&f).report()
    }

    /// Explores `f`.
    ///
    /// As in loom, this returns no report; [`Builder::explore`] does.
    ///
    /// # Panics
    ///
    /// As for [`model`].
    #[cfg(any(loom, feature = "loom"))]
    #[track_caller]
    pub fn check<F>(&self, f: F)
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.checked(&f);
    }

    /// [`Builder::check`] without a signature of std's or loom's. The closure's type is erased, so
    /// that this function is not compiled once for each test.
    #[track_caller]
    pub(crate) fn checked(&self, f: &dyn Work) -> Passed {
        let passed = self.passed(f);
        if rarely!(self.weakest_orderings) {
            self.tell_of_orderings(f, Location::caller());
        }
        passed
    }

    #[track_caller]
    fn passed(&self, f: &dyn Work) -> Passed {
        match self.explored(f) {
            Ok(passed) if mostly!(passed.driver.stats.complete > 0) => passed,
            // The next run resumes this exploration, so it may end without a complete execution.
            Ok(passed)
                if self.checkpoint_file.is_some()
                    && matches!(passed.verdict, Verdict::Stopped(_)) =>
            {
                passed
            }
            Ok(passed) => match passed.report().tested_nothing() {
                None => passed,
                // `explored` has printed the sentence already.
                Some(nothing) => std::panic::resume_unwind(Box::new(nothing)),
            },
            Err(failure) => self.fail(failure),
        }
    }

    /// Prints the report of a failure, and panics with the failure.
    #[track_caller]
    fn fail(&self, failure: Box<Failure>) -> ! {
        above(|| eprintln!("{}", failure.told()));
        if !matches!(
            failure.kind,
            FailureKind::Schedule | FailureKind::Incomplete
        ) {
            let test = std::thread::current();
            let schedule = &failure.schedule;
            let kept = saved_failure::keep(schedule, test.name(), Location::caller());
            let line = match (kept, text::is_long(schedule)) {
                (Some(path), false) => {
                    format!("kept       in {0} (DPOR_REPLAY=@{0})", path.display())
                }
                (Some(path), true) => {
                    let replay = replay_command::replay_from(&path, &self.weakenings());
                    format!("kept       in {}\nreplay     {replay}", path.display())
                }
                // No other line contains the whole schedule: the report abbreviates it, and no file
                // was written.
                (None, true) => format!("all of it  {schedule}"),
                (None, false) => String::new(),
            };
            if !line.is_empty() {
                above(|| eprintln!("{line}"));
            }
        }
        if let Some(backtrace) = &failure.backtrace {
            above(|| eprintln!("stack backtrace of the panic:\n{backtrace}"));
        }
        match failure.payload {
            Some(payload) => {
                let payload = payload.into_inner();
                let payload = payload.unwrap_or_else(PoisonError::into_inner);
                std::panic::resume_unwind(payload)
            }
            None => {
                let first = failure.text.lines().next().unwrap_or_default();
                std::panic::resume_unwind(Box::new(first.to_owned()))
            }
        }
    }

    /// Finds the weakest orderings with which `f` passes under [`Memory::C11`], as
    /// [`orderings`](crate::orderings()) does. The field [`memory`](Builder#structfield.memory) has
    /// no effect.
    ///
    /// # Errors
    ///
    /// The failure of `f` with its orderings as they are. With a schedule to replay, the failure of
    /// that execution; if it passes, the report has no places.
    ///
    /// # Panics
    ///
    /// As for [`Builder::explore`], and if the settings do not fit [`Memory::C11`].
    #[track_caller]
    pub fn orderings<F>(&self, f: F) -> Result<OrderingsReport, Box<Failure>>
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.weakest(&f)
    }

    #[track_caller]
    fn weakest_or_panic(&self, f: &dyn Work) -> OrderingsReport {
        match self.weakest(f) {
            Ok(report) => report,
            Err(failure) => self.fail(failure),
        }
    }

    #[track_caller]
    fn weakest(&self, f: &dyn Work) -> Result<OrderingsReport, Box<Failure>> {
        let site = Location::caller();
        if self.replay.is_some() {
            self.explored(f)?;
            return Ok(OrderingsReport::empty(site));
        }
        self.check_start();
        orderings::weakest(self, f, site)
    }

    /// Finds the weakest orderings of a model that has passed, and tells them.
    #[cold]
    #[track_caller]
    fn tell_of_orderings(&self, f: &dyn Work, site: Site) {
        if self.replay.is_some() {
            return;
        }
        let told = match self.unfit_for_c11() {
            Some(unfit) => format!(
                "no weakest orderings of the model at {site}: {unfit} is for sequential consistency"
            ),
            None => match orderings::weakest(self, f, site) {
                Ok(report) => {
                    let test = std::thread::current();
                    match orderings::keep(&report, test.name(), numbered_model::last()) {
                        Some(path) => format!("{report}\n\nkept in {}", path.display()),
                        None => report.to_string(),
                    }
                }
                Err(failure) => self.fail(failure),
            },
        };
        above_captured(&format!("\ndpor: {told}\n"));
    }

    /// Explores `f` and returns a failure instead of panicking with it.
    ///
    /// ```
    /// use dpor::sync::Mutex;
    ///
    /// let failure = dpor::Builder::new().explore(|| {
    ///     let lock = Mutex::new(());
    ///     let _first = lock.lock();
    ///     let _second = lock.lock();
    /// });
    /// let failure = failure.expect_err("it waits for itself");
    /// assert_eq!(failure.kind(), dpor::FailureKind::Deadlock);
    /// assert_eq!(failure.schedule(), "v2 main");
    /// ```
    ///
    /// # Errors
    ///
    /// The first execution that failed, or with [`Builder::require_complete`] an exploration that
    /// is not complete. If no execution runs to its end ([`Report::executions`] is 0),
    /// [`Builder::check`] panics, but without that setting this returns no error; standard error
    /// says so.
    ///
    /// # Panics
    ///
    /// If a model is started inside a model, if no [tracking allocator](crate::alloc) is in place,
    /// if a setting has an invalid value, if settings contradict each other, or if a checkpoint
    /// cannot be resumed.
    #[track_caller]
    pub fn explore<F>(&self, f: F) -> Result<Report, Box<Failure>>
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.explored(&f).map(|passed| passed.report())
    }

    /// [`Builder::explore`] without a report, because most callers need none.
    #[track_caller]
    fn explored(&self, f: &dyn Work) -> Result<Passed, Box<Failure>> {
        self.check_start();
        let given = match &self.replay {
            Some(text) => given(text).map_err(|failure| self.told_of_the_variable(failure))?,
            None => None,
        };
        let other;
        let settings = match &given {
            None => self,
            // A schedule names its memory model, and the spurious behaviour that it needs.
            Some(schedule) => {
                other = Builder {
                    memory: if schedule.is_weak() {
                        Memory::C11
                    } else {
                        Memory::Sc
                    },
                    spurious_wakeups: self.spurious_wakeups.max(schedule.wakes()),
                    spurious_failures: self.spurious_failures || schedule.fails(),
                    writers_first: schedule.writers_first(),
                    blocks_again: schedule.blocks_again(),
                    ..self.clone()
                };
                &other
            }
        };
        let explored = exploration::explored_as_set(settings, f, given, Location::caller());
        summary::add(self, Location::caller(), &explored);
        let passed = explored.map_err(|failure| self.told_of_the_variable(failure))?;
        if rarely!(self.require_complete)
            && let Some(why) = passed.report().lacks(self.checkpoint_file.as_deref())
        {
            return Err(incomplete(why));
        }
        Ok(passed)
    }

    /// Checks that a model may start here with these settings, and counts the model.
    #[track_caller]
    fn check_start(&self) {
        assert!(
            !context::inside(),
            "a model was started inside a model; explore the two one after the other"
        );
        assert!(
            heap::installed(),
            "dpor's allocator is not in place, so objects on the heap would have no stable names: \
             use the feature `allocator`, or wrap your own allocator in `dpor::alloc::Tracking`"
        );
        if let Err(error) = self.check_values() {
            panic!("{error}");
        }
        numbered_model::begin();
    }
}

impl Builder {
    /// Adds to a failure that its schedule does not fit, if so, that the schedule comes from the
    /// environment. Every test that runs gets this schedule, and the schedule fits only one of
    /// them.
    fn told_of_the_variable(&self, mut failure: Box<Failure>) -> Box<Failure> {
        let of_variable = self.replay.as_deref().is_some_and(is_of_variable);
        if failure.kind == FailureKind::Schedule && of_variable {
            let test = std::thread::current();
            let test = test
                .name()
                .map_or_else(String::new, |test| format!(" (this is `{test}`)"));
            failure.text.push_str(&format!(
                "\n  it comes from DPOR_REPLAY, which every test that runs is told to follow{test}: run only the one that it is \
                 for, as the command of its report does, with `cargo test NAME -- --exact`"
            ));
        }
        failure
    }
}

/// Whether this schedule is the environment's and not the program's own.
fn is_of_variable(text: &str) -> bool {
    std::env::var("DPOR_REPLAY").is_ok_and(|variable| variable == text)
}

/// Returns the schedule to follow. `None`, with a line on standard error, if the text names another
/// model than this one. A schedule that the program sets itself applies to the model for which the
/// program sets it.
fn given(text: &str) -> Result<Option<Schedule>, Box<Failure>> {
    let by_program = !is_of_variable(text);
    let parse = |text: &str| {
        let (schedule, nth) = numbered_model::unnumbered(text)?;
        // An error names a position in bytes, which counts from the beginning of the whole text.
        let before = text.len() - schedule.len();
        let schedule = Schedule::parse(&format!("{:before$}{schedule}", ""))?;
        let last = numbered_model::last();
        if by_program || nth == last {
            return Ok(Some(schedule));
        }
        let told = format!(
            "dpor: the schedule of DPOR_REPLAY is for model {nth} of the test; this is model {last}, which is explored as \
             usual\n"
        );
        above_captured(&told);
        Ok(None)
    };
    match saved_failure::read(text) {
        Err(error) => Err(unfit(text, &format!("cannot be read: {error}"))),
        Ok(read) => {
            parse(&read).map_err(|error: String| unfit(text, &format!("is malformed: {error}")))
        }
    }
}

/// The most values of one choice. Each planned value takes some 30 bytes.
const OPTIONS_MAX: usize = 1 << 24;

/// Returns a value below `options`; every value is explored.
///
/// Returns 0 outside a model.
///
/// ```
/// let outcomes = dpor::outcomes(|| (dpor::choose(3), dpor::any::<bool>()));
/// assert_eq!(outcomes.len(), 6);
/// ```
///
/// # Panics
///
/// If `options` is 0 or more than 2^24, since each value needs an execution of its own, and all of
/// them are planned at once.
#[track_caller]
pub fn choose(options: usize) -> usize {
    assert!(options > 0, "choose(0) has nothing to choose from");
    assert!(
        options <= OPTIONS_MAX,
        "choose({options}) has more values than can be explored: {OPTIONS_MAX} at most, each an execution of its own"
    );
    match rt::choose(options as u32) {
        Answer::Done(Outcome::Value(value)) => value as usize,
        _ => 0,
    }
}

/// A type with few enough values that all of them can be explored.
pub trait Any: sealed::Sealed {
    /// Returns one of the values; every value is explored.
    #[track_caller]
    fn any() -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for bool {}
    impl Sealed for u8 {}
}

impl Any for bool {
    fn any() -> bool {
        choose(2) == 1
    }
}

impl Any for u8 {
    fn any() -> u8 {
        choose(256) as u8
    }
}

/// Returns a value of `T`; every value is explored.
#[track_caller]
pub fn any<T: Any>() -> T {
    T::any()
}

/// Prunes the execution if `condition` is false.
///
/// The execution ends here and counts as [pruned](Report::pruned). Outside a model this does
/// nothing.
///
/// ```
/// let outcomes = dpor::outcomes(|| {
///     let pair = (dpor::choose(3), dpor::choose(3));
///     dpor::assume(pair.0 < pair.1);
///     pair
/// });
/// assert!(outcomes.into_keys().eq([(0, 1), (0, 2), (1, 2)]));
/// ```
#[track_caller]
pub fn assume(condition: bool) {
    if !condition {
        rt::give_up();
    }
}

/// Ends the execution here, without a failure.
///
/// Unlike an execution that [`assume`] prunes, this one counts and keeps its
/// [outcomes](crate::outcome()): the test has seen what it wanted to see. The calling thread makes
/// no further step. The others run on until none of them can, which no other execution would show
/// differently: each of their steps might have come before the call. It is no deadlock if they then
/// wait for this thread, and nothing that they have not given back is a leak. Outside a model this
/// does nothing.
///
/// ```
/// use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
///
/// let report = dpor::Builder::new().check(|| {
///     let turn = AtomicUsize::new(0);
///     dpor::thread::scope(|s| {
///         s.spawn(|| turn.store(1, SeqCst));
///         if turn.load(SeqCst) == 0 {
///             dpor::outcome("early");
///             dpor::stop();
///         }
///         dpor::outcome("late");
///     });
/// });
/// assert_eq!(report.executions, 2);
/// assert_eq!(report.pruned, 0);
/// ```
#[track_caller]
pub fn stop() {
    rt::stop();
}
