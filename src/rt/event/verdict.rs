//! How can an execution, or an exploration, end?

pub(crate) use crate::rt::event::id::Block;
use crate::rt::event::id::{ObjectId, Region, ThreadId};
use crate::rt::event::operation::Operation;
use crate::rt::event::schedule::Schedule;
use crate::rt::event::{Event, Site};

/// An operation that a thread has announced and could not perform.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocked {
    pub(crate) thread: ThreadId,
    pub(crate) operation: Operation,
    pub(crate) site: Site,
}

/// The reason for which an execution was given up before its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pruned {
    /// Every enabled thread is in the sleep set: other executions cover the rest.
    Asleep,
    /// `assume(false)`.
    Assumed,
    /// `stop()`. Like a complete execution, it counts and has outcomes.
    Stopped,
    /// A thread has made as many rounds as the bound allows.
    Rounds,
    /// A thread has looked in vain, and a location has changed since: another execution has the
    /// thread look only after the change.
    InVain,
    /// A thread asks whether another thread has finished, and the ends of threads are not events:
    /// the exploration must restart.
    EndsAreSeen,
    /// A thread has left its loop with a value that it only tried. The execution is made again.
    LeftLoop,
}

impl Pruned {
    /// The words behind "given up" in the report.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Pruned::Assumed => "by `assume(false)`",
            Pruned::Stopped => "by `stop()`",
            Pruned::Rounds => "by `max_rounds`",
            Pruned::InVain => "by `await_loops`",
            Pruned::Asleep | Pruned::EndsAreSeen | Pruned::LeftLoop => {
                "because others cover the rest"
            }
        }
    }
}

/// How an execution ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// Every thread has finished, or the unfinished ones are allowed to be blocked.
    Complete,
    /// No thread is enabled, and these threads have not finished.
    Deadlock(Vec<Blocked>),
    /// Some of these threads spin, the others are blocked, and no other thread is enabled. The
    /// spinning threads were released `rounds` times in a row without any change.
    Livelock { stuck: Vec<Blocked>, rounds: u32 },
    /// The execution has more events than the limit. `hints` of them are spin hints, if those
    /// count.
    TooManyEvents { limit: usize, hints: usize },
    /// More threads exist than the limit allows.
    TooManyThreads { limit: usize },
    /// The system has no memory for the stack, of `bytes` bytes, of a thread that is about to
    /// begin.
    NoStack { thread: ThreadId, bytes: usize },
    /// The system has no memory for the clocks of the events, of `bytes` bytes.
    NoClocks { bytes: usize },
    /// A thread panicked; the code that runs the threads knows the rest.
    ///
    /// If no thread was enabled any more while the thread unwound, `stuck` lists the waiting
    /// threads.
    Panicked {
        thread: ThreadId,
        stuck: Vec<Blocked>,
    },
    /// A thread used more stack than it has.
    StackOverflow { thread: ThreadId },
    /// A thread used unmapped memory, or wrote to memory that `is_constant`. The address is known
    /// if the system reports it.
    MemoryFault {
        thread: ThreadId,
        address: Option<usize>,
        is_constant: bool,
    },
    /// A schedule to follow does not fit the program. `misfit` names the mismatch and its position.
    Stale { misfit: String },
    /// On replay a thread deviated from its earlier operation.
    NotDeterministic(Box<Divergence>),
    /// Two accesses to plain memory are not ordered.
    DataRace(Box<DataRace>),
    /// A thread used or freed memory that was already free, or freed memory in a wrong way.
    BadMemory(Box<BadMemory>),
    /// Every thread has finished, and some resource was not given back.
    Leaked(Leaked),
    /// A thread outside the model has used an object of the model.
    Outside(Outside),
    /// The execution was given up.
    Pruned(Pruned),
}

/// The effect of an access on memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    Read,
    Write,
    /// An operation of a shim, that is, an event.
    AtomicRead,
    AtomicWrite,
    /// The block is freed.
    Free,
    /// The thread's code has returned, and its stack is gone with it.
    End,
    /// The block was allocated. Its content has been written since then, as a rule by the same
    /// thread, at an unknown time.
    Make,
}

impl Effect {
    /// Whether the access is an event.
    pub(crate) fn is_atomic(self) -> bool {
        matches!(self, Effect::AtomicRead | Effect::AtomicWrite)
    }

    /// Whether accesses with these effects must be ordered.
    pub(crate) fn conflicts(self, other: Effect) -> bool {
        let reads = |effect| matches!(effect, Effect::Read | Effect::AtomicRead);
        !(reads(self) && reads(other) || self.is_atomic() && other.is_atomic())
    }
}

impl End {
    /// Whether the failure is a leak that may be none.
    pub(crate) fn is_doubted(&self) -> bool {
        matches!(self, End::Leaked(leaked) if leaked.doubted)
    }

    /// Whether a thread has panicked.
    pub(crate) fn has_panicked(&self) -> bool {
        matches!(self, End::Panicked { .. })
    }

    /// The kind of the failure, in a word or two; `None` if the end is no failure.
    pub(crate) fn in_a_word(&self) -> Option<&'static str> {
        Some(match self {
            End::Complete | End::Pruned(_) => return None,
            End::Deadlock(_) => "deadlock",
            End::Livelock { .. } => "livelock",
            End::TooManyEvents { .. }
            | End::TooManyThreads { .. }
            | End::NoStack { .. }
            | End::NoClocks { .. } => "limit",
            End::Panicked { .. } => "panic",
            End::StackOverflow { .. } => "stack overflow",
            End::MemoryFault { .. } => "memory fault",
            End::Stale { .. } => "schedule that does not fit",
            End::NotDeterministic(_) => "closure that is not deterministic",
            End::DataRace(_) => "data race",
            End::BadMemory(_) => "wrong use of memory",
            End::Leaked(_) => "leak",
            End::Outside(_) => "use from outside",
        })
    }

    /// The thread that ran when the execution ended, if one did.
    pub(crate) fn thread(&self) -> Option<ThreadId> {
        match self {
            End::Panicked { thread, .. }
            | End::StackOverflow { thread }
            | End::MemoryFault { thread, .. } => Some(*thread),
            End::DataRace(race) => Some(race.second.thread),
            End::BadMemory(bad) => Some(bad.thread),
            _ => None,
        }
    }

    /// The threads with their places at the end, as far as they are known without a probe.
    pub(crate) fn places(&self) -> Vec<(ThreadId, Site)> {
        match self {
            End::DataRace(race) => {
                // The making and the free of memory have no place of their own.
                let has_place = |access: &&Access| {
                    !matches!(access.effect, Effect::Make | Effect::Free | Effect::End)
                };
                let both = [&race.first, &race.second];
                let both = both.into_iter().filter(has_place);
                both.map(|access| (access.thread, access.site)).collect()
            }
            End::BadMemory(bad) => match bad.wrong {
                Wrong::Operation(_, site) | Wrong::Access(_, site, _) => vec![(bad.thread, site)],
                _ => Vec::new(),
            },
            _ => {
                let stuck = self.stuck().iter();
                stuck.map(|it| (it.thread, it.site)).collect()
            }
        }
    }

    /// A thread panicked, and the execution ends there.
    pub(crate) fn panicked(thread: ThreadId) -> End {
        let stuck = Vec::new();
        End::Panicked { thread, stuck }
    }

    /// The threads that wait forever.
    pub(crate) fn stuck(&self) -> &[Blocked] {
        match self {
            End::Deadlock(stuck) | End::Livelock { stuck, .. } => stuck,
            _ => &[],
        }
    }

    /// The heap block that the failure concerns, if there is one.
    pub(crate) fn block(&self) -> Option<Block> {
        match self {
            End::DataRace(race) => race.block,
            End::BadMemory(bad) => match bad.memory {
                Gone::Block(block, _) => Some(block),
                Gone::Stack(_) => None,
            },
            End::Leaked(leaked) => leaked.blocks.first().copied(),
            _ => None,
        }
    }
}

/// An access to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) thread: ThreadId,
    pub(crate) effect: Effect,
    /// For a free, the place of the thread's last event before it. The place where a block was made
    /// is known only if the block is watched; without that, this is the place of the other access.
    pub(crate) site: Site,
    /// The number of events that the thread had performed before the access.
    pub(crate) after: u32,
}

impl Access {
    /// The number of events of its thread up to and including the access. An access that is no
    /// event happens directly after the last event before it.
    pub(crate) fn through(&self) -> u32 {
        self.after + u32::from(self.effect.is_atomic())
    }
}

/// A reference-counted value was dropped or moved out, while weak references to it remained. The
/// weak reference that the strong ones share was given up then, without an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueGone {
    pub(crate) count: ObjectId,
    /// The thread that owned the value until then, and the number of events it had performed.
    pub(crate) thread: ThreadId,
    pub(crate) after: u32,
}

impl ValueGone {
    /// Whether `event` was the last event of the thread before that.
    pub(crate) fn is_behind(&self, event: &Event) -> bool {
        (event.thread, event.index + 1) == (self.thread, self.after)
    }
}

/// Two accesses of different threads to the same memory, not both reads and not both atomic, that
/// happens-before does not order.
#[derive(Clone, Debug)]
pub(crate) struct DataRace {
    pub(crate) first: Access,
    pub(crate) second: Access,
    /// The time up to which the first access has lasted.
    pub(crate) lasts: Lasts,
    /// The number of events and fences that the first thread had performed by then.
    pub(crate) time: u32,
    /// Filled in for the report.
    pub(crate) weak: TooWeak,
    /// The freed block, if the second access is a free; the made block, if the first access is a
    /// making.
    pub(crate) block: Option<Block>,
    /// The number of events of the first thread before its first write to plain memory there.
    pub(crate) written: Option<u32>,
    /// Whether the last message of the first thread to the second is the last that it publishes to
    /// any thread before the second continues, as far as that was asked. Filled in for the report.
    pub(crate) publishes_no_more: bool,
    /// Whether the race was found by reference counts. The execution may then order the two
    /// accesses, through drops that can also come in another order.
    pub(crate) counted: bool,
    /// Filled in if a plain access found the race.
    pub(crate) memory: Accessed,
}

impl DataRace {
    /// The race of two accesses, with no further facts. The first access has lasted so long, and
    /// its thread had performed this number of events and fences by then.
    pub(crate) fn between(first: Access, second: Access, lasts: Lasts, time: u32) -> DataRace {
        DataRace {
            first,
            second,
            lasts,
            time,
            weak: TooWeak::default(),
            block: None,
            written: None,
            publishes_no_more: false,
            counted: false,
            memory: Accessed::default(),
        }
    }
}

/// The facts about plainly accessed memory.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Accessed {
    /// The shim that the memory belongs to.
    pub(crate) shim: Option<ObjectId>,
    pub(crate) region: Option<Region>,
    /// Whether the memory is in a thread-local variable of std's, which all threads of a model
    /// share.
    pub(crate) std_local: bool,
}

/// The time up to which an access to memory has lasted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lasts {
    /// The access lasted until its thread had performed this number of events.
    Until(u32),
    /// The access has not ended.
    OnAndOn,
}

/// The memory of a wrong use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gone {
    /// A heap block; and the thread that freed it, with the number of its events before that;
    /// `None` if the block is alive.
    Block(Block, Option<(ThreadId, u32)>),
    /// A variable on the stack of a thread that has ended.
    Stack(ThreadId),
}

/// The error in a use of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrong {
    /// The operation uses a shim that is gone.
    Operation(Operation, Site),
    /// The access uses a cell that is gone and that the execution had met.
    Access(Effect, Site, Region),
    /// The use has no event: only the fault that it causes shows it, at this distance in bytes from
    /// the beginning of the memory.
    Raw { offset: usize },
    /// The block is freed a second time.
    FreedTwice,
    /// The block is freed with a size or an alignment that differs from that of its allocation.
    Layout { size: usize, align: usize },
    /// The freed pointer is not the beginning of the block.
    Inside { offset: usize },
}

/// A wrong use of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BadMemory {
    /// The thread of the use, and the number of its events before the use.
    pub(crate) thread: ThreadId,
    pub(crate) after: u32,
    pub(crate) wrong: Wrong,
    pub(crate) memory: Gone,
}

/// A tracked value: the place and the thread that made it, and the number of the thread's events
/// before that. Values made by std have no place in the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) site: Site,
    pub(crate) thread: ThreadId,
    pub(crate) events: u32,
}

/// The resources that an execution should have given back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaked {
    /// The tracked values that were not dropped.
    pub(crate) values: Vec<Made>,
    /// The blocks that had to be freed.
    pub(crate) blocks: Vec<Block>,
    /// Whether a block had to be freed whatever `Builder::check_leaks` says.
    pub(crate) owed: bool,
    /// Whether statics seem to lead to all of these blocks, so that there may be no leak.
    pub(crate) doubted: bool,
}

/// A use of the model's memory by a thread that the engine does not schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside {
    /// The object in that memory, if the execution has met the object and not its end.
    pub(crate) object: Option<ObjectId>,
    pub(crate) site: Site,
}

/// The facts about a panic.
#[derive(Clone, Debug)]
pub(crate) struct Panic {
    pub(crate) thread: ThreadId,
    /// The number of events of the execution before the panic began.
    pub(crate) after: usize,
    pub(crate) text: String,
    /// Its file, line and column.
    pub(crate) location: Option<(String, u32, u32)>,
}

/// The pairs with orderings that are too weak for a race's accesses to be in order.
#[derive(Clone, Default, Debug)]
pub(crate) struct TooWeak {
    /// The pairs in the order of the report.
    pub(crate) pairs: Vec<Weak>,
    /// Whether all pairs together would have to be strong enough. Otherwise any one pair would
    /// suffice.
    pub(crate) together: bool,
}

/// An atomic write and a read of its value, which would have ordered a race's accesses had both
/// been strong enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weak {
    pub(crate) writer: Event,
    pub(crate) reader: Event,
    /// Whether the writer publishes all the same, by its own ordering or by a fence before it.
    pub(crate) released: bool,
    /// Whether the reader acquires, by its own ordering or by a fence behind it.
    pub(crate) acquired: bool,
}

impl Weak {
    /// Whether the pair is of the same lines of the program as these two events.
    pub(crate) fn is_by(&self, writer: &Event, reader: &Event) -> bool {
        (self.writer.site, self.reader.site) == (writer.site, reader.site)
    }
}

/// Two operations in the order in which the execution fails; in the other order it passes. Under
/// C11 the second one may read, or be, an older store than the first; then it passes if the second
/// one has its newest outcome.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    /// The position of the first one.
    pub(crate) first: u32,
    /// The position of the second operation, or the blocked operation that it would have been.
    pub(crate) second: Result<u32, Blocked>,
    /// The schedule of the execution up to the second operation, without the first.
    pub(crate) reversed: Schedule,
    /// The notification that comes too early in the failing order, and wakes the right thread in
    /// the other.
    pub(crate) lost: Option<Lost>,
    /// Whether the second operation is an old one; with the newest value it passes.
    pub(crate) is_old: bool,
}

/// The positions of a notification that woke no thread, and of the wait of a thread that began only
/// after that and never ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    pub(crate) notified: u32,
    pub(crate) waited: u32,
}

/// The result of a rerun of a failed execution from its own schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reproduction {
    /// The same failure, as far as it was tried.
    Same,
    /// The same failure, but the event at this position had another outcome.
    Differs { position: u32 },
    /// The rerun passed.
    Passes,
    /// The same failure, but an earlier execution made the same events, and the thread that panics
    /// continued there.
    HadPassed,
    /// Another failure, of the kind that this word names.
    Fails(&'static str),
}

/// A deviation on replay: the operation that a thread was expected to make, and the one that it
/// made.
#[derive(Clone, Debug)]
pub(crate) struct Divergence {
    pub(crate) thread: ThreadId,
    /// The position of the event in the execution.
    pub(crate) position: usize,
    /// `found` is `None` if the thread has ended or waits.
    pub(crate) expected: Option<(Operation, Site)>,
    pub(crate) found: Option<(Operation, Site)>,
    /// The operation is the same, and its outcome differs.
    pub(crate) outcome_differs: bool,
}
