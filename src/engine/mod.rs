//! The exploration engine by itself, for programs that are no Rust closures: interpreters,
//! simulators, bindings of other languages.
//!
//! It is the engine that explores the tests of this crate, with the same algorithms, orders and
//! bounds. A front end runs the threads of its program. For each thread it *announces* the next
//! operation that other threads can notice, and asks which thread has the *turn*; the engine makes
//! that thread's operation and returns its outcome. Then the front end runs the code of that thread
//! up to its next operation, and announces that one.
//!
//! ```
//! use dpor::Builder;
//! use dpor::engine::{Access, Engine, Operation, Turn};
//!
//! // Each thread reads a counter and writes back one more.
//! let mut engine = Engine::new(&Builder::new(), 2)?;
//! let mut lost_updates = 0;
//! while let Some(mut execution) = engine.begin()? {
//!     let (mut counter, mut read, mut steps) = (0, [0; 2], [0; 2]);
//!     loop {
//!         let thread = match execution.turn()? {
//!             Turn::Begins(thread) => thread,
//!             Turn::Ran(thread, _) => {
//!                 // The announced operation happens now.
//!                 match steps[thread.0] {
//!                     0 => read[thread.0] = counter,
//!                     _ => counter = read[thread.0] + 1,
//!                 }
//!                 steps[thread.0] += 1;
//!                 thread
//!             }
//!             Turn::Ended(_) => break,
//!         };
//!         let access = match steps[thread.0] {
//!             0 => Access::Read,
//!             1 => Access::Write,
//!             _ => {
//!                 execution.finish_thread(thread)?;
//!                 continue;
//!             }
//!         };
//!         execution.announce(thread, Operation::Access { object: 0, access })?;
//!     }
//!     lost_updates += u32::from(counter == 1);
//! }
//! assert!(engine.is_complete());
//! assert_eq!((engine.executions(), lost_updates), (4, 2));
//! # Ok::<(), dpor::engine::Misuse>(())
//! ```
//!
//! # What a front end owes
//!
//! * Between two turns, the code of a thread is a function of what its operations have returned and
//!   of the objects that they access. The same schedule then leads to the same announcements; an
//!   execution in which it does not ends with [`Ended::Diverged`].
//! * Every effect on another thread is announced, with an [`Access`] that conflicts with those it
//!   may not be swapped with.
//! * The effect happens when [`Execution::turn`] returns the thread, not when it is announced.
//! * Every execution runs until `turn` returns [`Turn::Ended`].
//!
//! # Front ends that learn of an access when it has happened
//!
//! Some engines, such as that of Frontrun, let a thread run and are told afterwards what it has
//! accessed. This one has to be told before, and refuses the other way. An operation that is only
//! known afterwards cannot be put off: it may have to wait for another thread, or every
//! continuation with it may have been explored already, and both are seen only when it has
//! happened, too late for an algorithm that never begins an execution in vain. A front end that
//! traces its program stops a thread in front of the access instead of behind it. If it learns
//! which access comes only by making it, it makes the access on a copy of the state, announces it,
//! and makes it again when the thread has the turn.
//!
//! # Settings
//!
//! [`Engine::new`] takes a [`Builder`], and with it the environment. The settings that say which
//! executions there are have their effect: [`algorithm`](Builder::algorithm),
//! [`order`](Builder::order), the bounds, those of the algorithms that sample, and the limits
//! [`max_branches`](Builder::max_branches), [`max_threads`](Builder::max_threads) and
//! [`max_permutations`](Builder::max_permutations). [`Engine::explore`] also has
//! [`workers`](Builder::workers). The others are about Rust code, and have none.
//!
//! `examples/engine/interpreter.rs` explores programs of a small language, and
//! `examples/engine/messages.rs` a simulation of nodes that send each other messages.

mod misuse;
mod operation;
#[cfg(test)]
mod tests;
mod workers;

use std::panic::Location;

use rustc_hash::FxHashMap;

pub use crate::engine::misuse::Misuse;
pub use crate::engine::operation::{Access, Operation, Outcome, Relation, Thread};

use crate::config::{Algorithm, Builder, Memory, Order};
use crate::rt::engine::Coverage;
use crate::rt::engine::checkpoint::Statics;
use crate::rt::engine::driver::{Driver, Next};
use crate::rt::engine::stats::Trees;
use crate::rt::event::Site;
use crate::rt::event::id::{ObjectId, Place, Region, ThreadId};
use crate::rt::event::operation::{
    AtomicType, Choice, ObjectKind, OpKind, Operation as Announced, Outcome as Happened, Reason,
    Rmw,
};
use crate::rt::event::verdict::{End, Pruned};
use crate::rt::object::State;
use crate::rt::object::machine::Learnt;
use crate::verdict::report::Bound;

use std::sync::atomic::Ordering::SeqCst;

/// The numbers of objects, words, locks and channels are below this.
const NUMBERS: u32 = 1 << 30;

/// An exploration of one program.
pub struct Engine {
    driver: Box<Driver>,
    settings: Builder,
    /// The number of threads that are there from the beginning.
    initial: usize,
    threads: Vec<Doing>,
    words: FxHashMap<u32, u64>,
    relations: FxHashMap<u32, Relation>,
    stage: Stage,
    is_complete: bool,
    /// Whether a limit, or a program that did not repeat itself, has ended the exploration.
    is_cut: bool,
    site: Site,
}

/// How far the exploration is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Between,
    /// An execution has begun and has not ended. The thread has the turn, if there is one.
    Inside(Option<Thread>),
    /// There is no next execution.
    Stopped,
}

/// What a thread is about to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    /// It does not exist in this execution, or has not begun.
    Unborn,
    /// It has the turn, or its operation needs no further word.
    Plain,
    Message,
    Spawns(Thread),
    /// It enters the blocked ones, and then waits until it is unblocked.
    Blocks,
    IsBlocked,
    Unblocks(Thread),
    Finished,
}

/// The next thing to do for the front end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The thread begins. The front end runs its code up to its first operation, and announces
    /// that, or finishes the thread.
    Begins(Thread),
    /// The announced operation of the thread happens now, with this outcome. The front end runs its
    /// code up to its next operation.
    Ran(Thread, Outcome),
    /// The execution is over.
    Ended(Ended),
}

/// How an execution ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Ended {
    /// Every thread has finished.
    Complete,
    /// These threads have not finished, and none of them can run.
    Deadlock(Vec<Thread>),
    /// A thread has stopped the execution ([`Operation::Stop`]).
    Stopped,
    /// A thread has given up ([`Operation::GiveUp`]).
    GivenUp,
    /// Other executions cover the rest of this one. Never with [`Algorithm::Optimal`].
    Covered,
    /// The execution has this many events, and would have another one
    /// ([`Builder::max_branches`]). The exploration ends with it.
    TooManyEvents {
        /// The limit.
        limit: usize,
    },
    /// More threads exist at once than this ([`Builder::max_threads`]). The exploration ends with
    /// it.
    TooManyThreads {
        /// The limit, with one more thread that the engine adds.
        limit: usize,
    },
    /// The thread, if one is known, did not announce what it has announced before in the same
    /// situation: the program depends on more than its schedule. The exploration ends with it.
    Diverged(Option<Thread>),
}

impl Engine {
    /// Creates an exploration of a program that begins with this many threads.
    ///
    /// # Errors
    ///
    /// [`Misuse::Setting`] if a setting has an invalid value, which the reason names, or if the
    /// settings ask for [`Memory::C11`]: its graphs are of loads and
    /// stores of Rust's atomics, and know no other accesses. The same if they ask for
    /// [`Algorithm::FinalStates`], which has to know the state of every object.
    ///
    /// # Panics
    ///
    /// If two of the settings contradict each other.
    #[track_caller]
    pub fn new(settings: &Builder, threads: usize) -> Result<Engine, Misuse> {
        if settings.memory == Memory::C11 {
            return Err(Misuse::Setting {
                call: "new",
                reason: "the memory model is C11 (DPOR_MEMORY=c11), and its graphs know the operations on Rust's atomics \
                         alone; use `auto` or `sc`"
                    .to_owned(),
            });
        }
        if settings.algorithm == Algorithm::FinalStates {
            return Err(Misuse::Setting {
                call: "new",
                reason: "the algorithm is `final_states` (DPOR_ALGORITHM), and only a front end knows the states of its objects; \
                         use `optimal`"
                    .to_owned(),
            });
        }
        let valid = settings.check_values();
        valid.map_err(|reason| Misuse::Setting {
            call: "new",
            reason,
        })?;
        let settings = Builder {
            memory: Memory::Sc,
            ..settings.clone()
        };
        Ok(Engine {
            driver: driver(&settings, threads),
            settings,
            initial: threads,
            threads: Vec::new(),
            words: FxHashMap::default(),
            relations: FxHashMap::default(),
            stage: Stage::Between,
            is_complete: false,
            is_cut: false,
            site: Location::caller(),
        })
    }

    /// Sets the value that a word has at the beginning of every execution. Without this call it is
    /// 0.
    ///
    /// # Errors
    ///
    /// [`Misuse::TooLarge`] if the word has too large a number.
    pub fn set_word(&mut self, word: u32, value: u64) -> Result<(), Misuse> {
        small("set_word", word)?;
        self.words.insert(word, value);
        Ok(())
    }

    /// Declares which accesses to an object conflict. All accesses to it are then
    /// [`Access::Declared`].
    ///
    /// # Errors
    ///
    /// [`Misuse::Setting`] if an execution has begun: a relation must be the same in all of them.
    pub fn declare(&mut self, object: u32, relation: Relation) -> Result<(), Misuse> {
        if self.begun() > 0 || self.stage != Stage::Between {
            return Err(Misuse::Setting {
                call: "declare",
                reason: format!(
                    "an execution has begun, and the relation of object {object} must be the same in all of them"
                ),
            });
        }
        small("declare", object)?;
        self.relations.insert(object, relation);
        Ok(())
    }

    /// Begins the next execution; `None` if there is none: the exploration is over, or a limit has
    /// stopped it.
    ///
    /// # Errors
    ///
    /// [`Misuse::Aborted`] if the execution before was dropped before its end.
    pub fn begin(&mut self) -> Result<Option<Execution<'_>>, Misuse> {
        match self.stage {
            Stage::Between => {}
            Stage::Stopped => return Ok(None),
            Stage::Inside(_) => return Err(Misuse::Aborted),
        }
        let most = self.settings.max_permutations;
        if most.is_some_and(|most| self.begun() >= most as u64) {
            return Ok(None);
        }
        if !self.driver.begin(self.site) {
            self.is_complete = self.driver.coverage() == Coverage::All;
            self.stage = Stage::Stopped;
            return Ok(None);
        }
        self.threads.clear();
        self.threads.resize(self.initial, Doing::Unborn);
        self.stage = Stage::Inside(None);
        Ok(Some(Execution {
            engine: self,
            spawned: 0,
        }))
    }

    /// Returns the number of executions that ran to their end or were given up by the program.
    pub fn executions(&self) -> u64 {
        self.driver.stats.numbered()
    }

    /// Returns the number of executions that were begun, with those that other executions covered.
    pub fn begun(&self) -> u64 {
        self.driver.stats.begun()
    }

    /// Returns the number of executions that were begun and then pruned because others cover them.
    pub fn pruned(&self) -> u64 {
        self.driver.stats.asleep
    }

    /// Returns the number of events of the longest execution: the depth of the tree.
    pub fn depth(&self) -> usize {
        self.driver.stats.longest
    }

    /// Returns the wakeup trees of the exploration so far at their largest; `None` unless the
    /// algorithm is [`Algorithm::Optimal`], without a bound.
    pub fn trees(&self) -> Option<Trees> {
        self.driver.trees()
    }

    /// Returns the number of threads that executions begin with.
    pub fn threads(&self) -> usize {
        self.initial
    }

    /// Whether every trace has been explored.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the exploration has stopped before its end: by a limit of one execution, by a
    /// program that did not repeat itself, or because an execution was dropped.
    pub fn is_aborted(&self) -> bool {
        self.is_cut || matches!(self.stage, Stage::Inside(_))
    }

    /// Returns the approximate number of executions in all, if that can be told.
    pub fn estimate(&self) -> Option<f64> {
        self.driver.estimate()
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.settings.algorithm
    }

    /// Returns the order of the executions.
    pub fn order(&self) -> Order {
        self.settings.order
    }

    /// Returns the bound on executions, if there is one.
    ///
    /// # Panics
    ///
    /// Never: two bounds are refused by [`Engine::new`].
    pub fn bound(&self) -> Option<Bound> {
        self.settings.bound()
    }

    /// Writes down which executions are still to be explored, between two executions. `None` if
    /// there are none, if no execution has been made, or if the algorithm keeps no such list: only
    /// [`Algorithm::Optimal`] and [`Algorithm::Parsimonious`] without a bound do.
    ///
    /// # Errors
    ///
    /// [`Misuse::Setting`] if an object has no name in another process.
    pub fn save(&self) -> Option<Result<Vec<u8>, Misuse>> {
        if self.stage != Stage::Between {
            return None;
        }
        let saved = self.driver.save(&NoStatics)?;
        Some(saved.map_err(|reason| Misuse::Setting {
            call: "save",
            reason,
        }))
    }

    /// Goes on with an exploration of the same program from what [`Engine::save`] has returned,
    /// before the first execution. False if the bytes do not fit; then this engine must not be used
    /// any further.
    #[must_use]
    pub fn restore(&mut self, saved: &[u8]) -> bool {
        self.stage == Stage::Between && self.begun() == 0 && self.driver.restore(saved, &NoStatics)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("threads", &self.initial)
            .field("executions", &self.executions())
            .field("is_complete", &self.is_complete)
            .finish_non_exhaustive()
    }
}

/// A driver that has explored nothing.
#[track_caller]
fn driver(settings: &Builder, threads: usize) -> Box<Driver> {
    let explorer = settings.explorer(settings.seed_to_draw_with());
    let mut bounds = settings.bounds();
    bounds.explicit = false;
    bounds.hints_count = false;
    // One more thread spawns the initial ones.
    bounds.threads_max = bounds.threads_max.saturating_add(1);
    let mut driver = Box::<Driver>::default();
    driver.prepare(explorer, settings.limits(Learnt::default()), bounds);
    // So that the initial threads have the first numbers in every process.
    for nth in 1..=threads as u32 {
        driver.machine.names.child(ThreadId::MAIN, nth);
    }
    driver
}

/// The front end has no objects that are older than the exploration.
struct NoStatics;

impl Statics for NoStatics {
    fn number(&self, _: usize) -> Option<u64> {
        None
    }

    fn address(&self, _: u64) -> Option<usize> {
        None
    }
}

/// An execution that has begun.
#[derive(Debug)]
pub struct Execution<'a> {
    engine: &'a mut Engine,
    /// The number of initial threads that have been spawned.
    spawned: usize,
}

impl Execution<'_> {
    /// Announces the next operation of the thread that has the turn.
    ///
    /// # Errors
    ///
    /// A [`Misuse`] if the thread does not have the turn, or the operation does not fit its object.
    #[inline]
    pub fn announce(&mut self, thread: Thread, operation: Operation) -> Result<(), Misuse> {
        let call = "announce";
        self.has_turn(call, thread)?;
        let engine = &mut *self.engine;
        let id = id(thread);
        let (announced, next) = engine.announced(thread, operation)?;
        engine.driver.machine.announce(id, &announced, engine.site);
        engine.threads[thread.0] = next;
        engine.stage = Stage::Inside(None);
        Ok(())
    }

    /// The code of the thread that has the turn is over.
    ///
    /// # Errors
    ///
    /// A [`Misuse`] if the thread does not have the turn.
    pub fn finish_thread(&mut self, thread: Thread) -> Result<(), Misuse> {
        self.has_turn("finish_thread", thread)?;
        self.engine.driver.machine.end(id(thread));
        self.engine.threads[thread.0] = Doing::Finished;
        self.engine.stage = Stage::Inside(None);
        Ok(())
    }

    /// Makes the next step, and returns the thread that has made it.
    ///
    /// # Errors
    ///
    /// [`Misuse::NothingAnnounced`] if the thread of the call before has not announced its next
    /// operation, and [`Misuse::Over`] behind [`Turn::Ended`]. [`Misuse::NotBlocked`] if the step
    /// unblocks a thread that is not blocked: the step has been made, its thread has the turn, and
    /// the execution may go on.
    #[inline]
    pub fn turn(&mut self) -> Result<Turn, Misuse> {
        match self.engine.stage {
            Stage::Inside(None) => {}
            Stage::Inside(Some(thread)) => return Err(Misuse::NothingAnnounced { thread }),
            Stage::Between | Stage::Stopped => return Err(Misuse::Over { call: "turn" }),
        }
        loop {
            let (id, happened) = match self.engine.driver.next() {
                Next::Ran(id, happened) => (id, Some(happened)),
                Next::Begins(id) => (id, None),
                Next::Ended => return Ok(self.ended()),
                Next::Tries(..) => unreachable!("a front end has no loops that are known"),
            };
            let Some(number) = id.index().checked_sub(1) else {
                self.spawn_next();
                continue;
            };
            let thread = Thread(number);
            let engine = &mut *self.engine;
            let state = std::mem::replace(&mut engine.threads[number], Doing::Plain);
            let Some(happened) = happened else {
                engine.stage = Stage::Inside(Some(thread));
                return Ok(Turn::Begins(thread));
            };
            let outcome = match (state, happened) {
                (Doing::Blocks, _) => {
                    let gate = engine.gate(id);
                    let kind = OpKind::Awake { timed: false };
                    let announced = Announced { object: gate, kind };
                    engine.driver.machine.announce(id, &announced, engine.site);
                    engine.threads[number] = Doing::IsBlocked;
                    continue;
                }
                (Doing::Unblocks(other), Happened::Value(0)) => {
                    engine.stage = Stage::Inside(Some(thread));
                    return Err(Misuse::NotBlocked {
                        by: thread,
                        thread: other,
                    });
                }
                (Doing::Spawns(child), _) => Outcome::Spawned(child),
                (Doing::Unblocks(_) | Doing::IsBlocked, _) => Outcome::Done,
                (Doing::Message, Happened::Success(value)) | (_, Happened::Value(value)) => {
                    Outcome::Value(value)
                }
                (_, Happened::Success(value)) => Outcome::Succeeded(value),
                (_, Happened::Failure(value)) => Outcome::Failed(value),
                (_, Happened::Done | Happened::Released { .. }) => Outcome::Done,
            };
            engine.stage = Stage::Inside(Some(thread));
            return Ok(Turn::Ran(thread, outcome));
        }
    }

    /// Returns the threads of the steps so far, in order. [`Operation::Block`] is two steps: the
    /// thread becomes blocked, and goes on.
    pub fn schedule(&self) -> Vec<Thread> {
        let events = self.engine.driver.executed().iter();
        let numbers = events.filter_map(|event| event.thread.index().checked_sub(1));
        numbers.map(Thread).collect()
    }

    /// Returns the number of threads that exist or have existed so far.
    pub fn threads(&self) -> usize {
        let born = |state: &&Doing| **state != Doing::Unborn;
        self.engine.threads.iter().filter(born).count()
    }

    /// Whether the thread exists and has finished.
    pub fn is_finished(&self, thread: Thread) -> bool {
        self.engine.threads.get(thread.0) == Some(&Doing::Finished)
    }

    fn has_turn(&self, call: &'static str, thread: Thread) -> Result<(), Misuse> {
        match self.engine.stage {
            Stage::Inside(Some(current)) if current == thread => return Ok(()),
            Stage::Inside(_) => {}
            Stage::Between | Stage::Stopped => return Err(Misuse::Over { call }),
        }
        Err(match self.engine.threads.get(thread.0) {
            None => Misuse::UnknownThread { call, thread },
            Some(Doing::Finished) => Misuse::Finished { call, thread },
            Some(_) => Misuse::NotItsTurn { call, thread },
        })
    }

    /// The thread that the engine adds spawns the next initial one, or ends.
    fn spawn_next(&mut self) {
        let machine = &mut self.engine.driver.machine;
        if self.spawned == self.engine.initial {
            machine.end(ThreadId::MAIN);
            return;
        }
        self.spawned += 1;
        let child = machine.next_child(ThreadId::MAIN);
        let object = machine.thread_object(child);
        let kind = OpKind::Spawn { child };
        machine.announce(
            ThreadId::MAIN,
            &Announced { object, kind },
            self.engine.site,
        );
    }

    /// The execution is over.
    fn ended(&mut self) -> Turn {
        let engine = &mut *self.engine;
        let end = engine.driver.take_end();
        let threads = |stuck: &[crate::rt::event::verdict::Blocked]| {
            let numbers = stuck
                .iter()
                .filter_map(|it| it.thread.index().checked_sub(1));
            numbers.map(Thread).collect()
        };
        let ended = match &end {
            End::Complete => Ended::Complete,
            End::Deadlock(stuck) | End::Livelock { stuck, .. } => Ended::Deadlock(threads(stuck)),
            End::Pruned(Pruned::Asleep) => Ended::Covered,
            End::Pruned(Pruned::Stopped) => Ended::Stopped,
            End::Pruned(_) => Ended::GivenUp,
            End::TooManyEvents { limit, .. } => Ended::TooManyEvents { limit: *limit },
            End::TooManyThreads { limit } => Ended::TooManyThreads { limit: *limit },
            End::NotDeterministic(divergence) => {
                Ended::Diverged(divergence.thread.index().checked_sub(1).map(Thread))
            }
            _ => Ended::Diverged(None),
        };
        let goes_on = !matches!(
            ended,
            Ended::TooManyEvents { .. } | Ended::TooManyThreads { .. } | Ended::Diverged(_)
        );
        if goes_on {
            engine.driver.finish(&end);
            engine.stage = Stage::Between;
        } else {
            (engine.stage, engine.is_cut) = (Stage::Stopped, true);
        }
        Turn::Ended(ended)
    }
}

impl Engine {
    /// The operation as the machine knows it, and the further state of its thread.
    #[inline]
    fn announced(
        &mut self,
        thread: Thread,
        operation: Operation,
    ) -> Result<(Announced, Doing), Misuse> {
        let order = SeqCst;
        let plain = |object, kind| Ok((Announced { object, kind }, Doing::Plain));
        let rmw = |rmw, operand| OpKind::Rmw {
            order,
            rmw,
            operand,
            blind: false,
        };
        match operation {
            Operation::Access { object, access } => {
                let relation = match self.relations.is_empty() {
                    true => None,
                    false => self.relations.get(&object),
                };
                let touch = access.touch(relation);
                let touch = match (access, touch) {
                    (Access::Declared(access), None) => {
                        return Err(Misuse::Undeclared {
                            thread,
                            object,
                            access,
                        });
                    }
                    (Access::Declared(_), Some(touch)) => touch,
                    (_, Some(touch)) if relation.is_none() => touch,
                    _ => return Err(Misuse::NotDeclared { thread, object }),
                };
                let object = self.object(0, object, (ObjectKind::Opaque, 0))?;
                plain(object, OpKind::Touch(touch))
            }
            Operation::Load { word } => plain(self.word(word)?, OpKind::Load { order }),
            Operation::Store { word, value } => {
                plain(self.word(word)?, OpKind::Store { order, value })
            }
            Operation::Add { word, value } => plain(self.word(word)?, rmw(Rmw::Add, value)),
            Operation::Swap { word, value } => plain(self.word(word)?, rmw(Rmw::Swap, value)),
            Operation::CompareExchange {
                word,
                expected,
                new,
            } => {
                let kind = OpKind::CompareExchange {
                    success: order,
                    failure: order,
                    expected,
                    new,
                    spurious: false,
                };
                plain(self.word(word)?, kind)
            }
            Operation::Acquire(lock) => plain(self.lock(lock)?, OpKind::Lock),
            Operation::TryAcquire(lock) => plain(self.lock(lock)?, OpKind::TryLock),
            Operation::Release(lock) => {
                let object = self.lock(lock)?;
                match self.driver.machine.state(object) {
                    State::Mutex(mutex) if mutex.holder == Some(id(thread)) => {}
                    _ => return Err(Misuse::NotHeld { thread, lock }),
                }
                plain(object, OpKind::Unlock { changed: true })
            }
            Operation::Send(channel) => Ok((
                Announced {
                    object: self.object(3, channel, (ObjectKind::Channel, 0))?,
                    kind: OpKind::Send,
                },
                Doing::Message,
            )),
            Operation::Receive(channel) => Ok((
                Announced {
                    object: self.object(3, channel, (ObjectKind::Channel, 0))?,
                    kind: OpKind::Recv { timed: false },
                },
                Doing::Message,
            )),
            Operation::Spawn => {
                let machine = &mut self.driver.machine;
                let child = machine.next_child(id(thread));
                let object = machine.thread_object(child);
                let kind = OpKind::Spawn { child };
                let child = Thread(child.index() - 1);
                if self.threads.len() <= child.0 {
                    self.threads.resize(child.0 + 1, Doing::Unborn);
                }
                Ok((Announced { object, kind }, Doing::Spawns(child)))
            }
            Operation::Join(other) => {
                self.known(other)?;
                let child = id(other);
                let object = self.driver.machine.thread_object(child);
                plain(object, OpKind::Join { child })
            }
            Operation::Block => {
                let object = self.gate(id(thread));
                let order = self.driver.machine.names.order(id(thread));
                let kind = OpKind::Enqueue { order };
                Ok((Announced { object, kind }, Doing::Blocks))
            }
            Operation::Unblock(other) => {
                self.known(other)?;
                let object = self.gate(id(other));
                let kind = OpKind::NotifyAll;
                Ok((Announced { object, kind }, Doing::Unblocks(other)))
            }
            Operation::Choose(0) => Err(Misuse::NoChoice { thread }),
            Operation::Choose(options) => {
                let what = Choice::Value;
                plain(ObjectId::NONE, OpKind::Choose { options, what })
            }
            Operation::Stop | Operation::GiveUp => {
                let why = match operation {
                    Operation::Stop => Reason::Stopped,
                    _ => Reason::Assumed,
                };
                plain(ObjectId::NONE, OpKind::GiveUp { why })
            }
        }
    }

    /// The thread must be one of this execution.
    fn known(&self, thread: Thread) -> Result<(), Misuse> {
        let is_known = thread.0 < self.initial || {
            let id = id(thread);
            self.driver.machine.live().contains(&id)
                || self.threads.get(thread.0) == Some(&Doing::Finished)
        };
        match is_known {
            true => Ok(()),
            false => Err(Misuse::UnknownThread {
                call: "announce",
                thread,
            }),
        }
    }

    #[inline]
    fn word(&mut self, word: u32) -> Result<ObjectId, Misuse> {
        let value = match self.words.is_empty() {
            true => 0,
            false => self.words.get(&word).copied().unwrap_or(0),
        };
        self.object(1, word, (ObjectKind::Atomic(AtomicType::U64), value))
    }

    #[inline]
    fn lock(&mut self, lock: u32) -> Result<ObjectId, Misuse> {
        self.object(2, lock, (ObjectKind::Mutex, 0))
    }

    /// The object that stands for the blocking of a thread.
    fn gate(&mut self, thread: ThreadId) -> ObjectId {
        let machine = &mut self.driver.machine;
        let object = machine.names.token_object(thread);
        machine.meet(object, ObjectKind::Condvar, 0);
        object
    }

    /// The object with this number among those of its sort.
    #[inline]
    fn object(
        &mut self,
        sort: u32,
        number: u32,
        (kind, value): (ObjectKind, u64),
    ) -> Result<ObjectId, Misuse> {
        small("announce", number)?;
        let place = Place {
            region: Region::Abstract(sort << 30 | number),
            generation: 0,
        };
        Ok(self.driver.machine.object_at(place, kind, value))
    }
}

#[inline]
fn small(call: &'static str, number: u32) -> Result<(), Misuse> {
    match number < NUMBERS {
        true => Ok(()),
        false => Err(Misuse::TooLarge { call, number }),
    }
}

/// The thread as the machine knows it. Number 0 is the thread that spawns the initial ones.
#[inline]
fn id(thread: Thread) -> ThreadId {
    ThreadId(thread.0 as u32 + 1)
}
