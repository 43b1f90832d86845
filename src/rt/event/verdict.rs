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

/// Why an execution was given up before its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pruned {
    /// Every enabled thread was asleep: what is left is covered elsewhere.
    Asleep,
    /// `assume(false)`.
    Assumed,
    /// A thread has made as many rounds as it may.
    Rounds,
    /// A thread has looked in vain, and something has changed since: in another execution it looks
    /// only then.
    InVain,
    /// A thread looks whether another one has finished, and ends are no events: the exploration has
    /// to begin anew.
    EndsAreSeen,
}

impl Pruned {
    /// The words behind "given up".
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Pruned::Assumed => "by `assume(false)`",
            Pruned::Rounds => "by `max_rounds`",
            Pruned::InVain => "by `await_loops`",
            Pruned::Asleep | Pruned::EndsAreSeen => "because others cover the rest",
        }
    }
}

/// How an execution ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// Every thread finished, or those that did not may be blocked.
    Complete,
    /// No thread can go on, and these are not finished.
    Deadlock(Vec<Blocked>),
    /// Some of these threads spin, the others are blocked, and nothing else can run; the spinning
    /// ones were let go `rounds` times in a row without any change.
    Livelock { stuck: Vec<Blocked>, rounds: u32 },
    /// The execution has more events than the limit. So many spin hints are among them, where these
    /// count.
    TooManyEvents { limit: usize, hints: usize },
    /// More threads exist than the limit allows.
    TooManyThreads { limit: usize },
    /// The system has no memory for the stack, of so many bytes, of a thread that is to begin.
    NoStack { thread: ThreadId, bytes: usize },
    /// The system has no memory for the clocks of its events, of so many bytes.
    NoClocks { bytes: usize },
    /// A thread panicked; who runs the threads knows the rest.
    ///
    /// If nothing could go on any more while it unwound, these threads wait.
    Panicked {
        thread: ThreadId,
        stuck: Vec<Blocked>,
    },
    /// A thread used more stack than it has.
    StackOverflow { thread: ThreadId },
    /// A thread used memory that is not there, at this address, if the system has told it, or wrote
    /// to such that `is_constant`.
    MemoryFault {
        thread: ThreadId,
        address: Option<usize>,
        is_constant: bool,
    },
    /// A schedule that was to be followed does not fit the program, for this reason: what it asks
    /// for, and where.
    Stale { misfit: String },
    /// On replay a thread did something else than before.
    NotDeterministic(Box<Divergence>),
    /// Two accesses to plain memory are not ordered.
    DataRace(Box<DataRace>),
    /// Memory was used or freed that was free already, or freed in a wrong way.
    BadMemory(Box<BadMemory>),
    /// Every thread finished, and something was not given back.
    Leaked(Leaked),
    /// A thread that is none of the model's has used what is.
    Outside(Outside),
    /// Given up.
    Pruned(Pruned),
}

/// What an access does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    Read,
    Write,
    /// By an operation of a shim, that is by an event.
    AtomicRead,
    AtomicWrite,
    /// The block is given back to the allocator.
    Free,
    /// The thread's code has returned, and with it what was on its stack is gone.
    End,
    /// The block was allocated. What is in it has been written since then, by the same thread as a
    /// rule, and nothing tells when.
    Make,
}

impl Effect {
    /// Whether it is that of an event.
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
    /// Whether it is a leak that may be none.
    pub(crate) fn is_doubted(&self) -> bool {
        matches!(self, End::Leaked(leaked) if leaked.doubted)
    }

    /// Whether a thread has panicked.
    pub(crate) fn has_panicked(&self) -> bool {
        matches!(self, End::Panicked { .. })
    }

    /// What kind of failure it is, in a word or two; `None` if it is none.
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

    /// The thread that was at work when it came to that, if one was.
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

    /// Who was where when it came to that, as far as that is known without another look.
    pub(crate) fn places(&self) -> Vec<(ThreadId, Site)> {
        match self {
            End::DataRace(race) => {
                // What has been made or freed has no place of its own.
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

    /// A thread panicked, and came to an end or has to.
    pub(crate) fn panicked(thread: ThreadId) -> End {
        let stuck = Vec::new();
        End::Panicked { thread, stuck }
    }

    /// The threads that wait for ever.
    pub(crate) fn stuck(&self) -> &[Blocked] {
        match self {
            End::Deadlock(stuck) | End::Livelock { stuck, .. } => stuck,
            _ => &[],
        }
    }

    /// The heap block that it is about, if there is one.
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
    /// Of a free: where the thread performed its last event before it. Where a block was made is
    /// known only by watching it; then this is the place of the other access.
    pub(crate) site: Site,
    /// How many events the thread had performed before it.
    pub(crate) after: u32,
}

impl Access {
    /// How many events of its thread lead up to it and through it. What is no event happens as soon
    /// as the one before it has.
    pub(crate) fn through(&self) -> u32 {
        self.after + u32::from(self.effect.is_atomic())
    }
}

/// A value whose references are counted was dropped or moved out, while there were weak references
/// to it. What stood for it among those was given up then, which is no event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueGone {
    pub(crate) count: ObjectId,
    /// Who had it until then, and how many events that thread had performed.
    pub(crate) thread: ThreadId,
    pub(crate) after: u32,
}

impl ValueGone {
    /// Whether this was the last event of its thread before.
    pub(crate) fn is_behind(&self, event: &Event) -> bool {
        (event.thread, event.index + 1) == (self.thread, self.after)
    }
}

/// Two accesses of different threads to the same memory, not both reads and not both atomic, that
/// nothing orders.
#[derive(Clone, Debug)]
pub(crate) struct DataRace {
    pub(crate) first: Access,
    pub(crate) second: Access,
    /// Up to when the first one has lasted.
    pub(crate) lasts: Lasts,
    /// How many events and fences the first thread had performed by then.
    pub(crate) time: u32,
    /// Filled in once it is shown.
    pub(crate) weak: TooWeak,
    /// What is freed, if the second access does that; what was made, if the first one did that.
    pub(crate) block: Option<Block>,
    /// After how many of its events the first thread wrote plain memory there for the first time.
    pub(crate) written: Option<u32>,
    /// Whether the last that the first thread had told the second one is the last that it tells
    /// anybody until that one goes on, as far as that was asked. Filled in once it is shown.
    pub(crate) publishes_no_more: bool,
    /// Whether it was found by counting references. The execution may order the two then, by drops
    /// that can also come in another order.
    pub(crate) counted: bool,
    /// Filled in if it was found by a plain access.
    pub(crate) memory: Accessed,
}

/// What is known of memory that is accessed plainly.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Accessed {
    /// The shim whose memory it is.
    pub(crate) shim: Option<ObjectId>,
    pub(crate) region: Option<Region>,
    /// Whether it is in a thread-local variable of std's, which all threads of a model share.
    pub(crate) std_local: bool,
}

/// Up to when an access to memory has lasted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lasts {
    /// Until its thread had performed so many events.
    Until(u32),
    /// It goes on.
    OnAndOn,
}

/// The memory that something went wrong with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gone {
    /// A heap block, and who freed it, after how many events; `None` if it is alive.
    Block(Block, Option<(ThreadId, u32)>),
    /// A variable on the stack of a thread that has ended.
    Stack(ThreadId),
}

/// What is wrong with a use of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrong {
    /// A shim is used that is gone.
    Operation(Operation, Site),
    /// A cell is used that is gone, and was there.
    Access(Effect, Site, Region),
    /// It is used in a way that is seen by nothing but the fault that it causes, at this distance
    /// from its beginning in bytes.
    Raw { offset: usize },
    /// It is freed a second time.
    FreedTwice,
    /// It is freed with another size, or another alignment, than it was allocated with.
    Layout { size: usize, align: usize },
    /// What is freed is not its beginning.
    Inside { offset: usize },
}

/// A wrong use of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BadMemory {
    /// Who did it, after how many events.
    pub(crate) thread: ThreadId,
    pub(crate) after: u32,
    pub(crate) wrong: Wrong,
    pub(crate) memory: Gone,
}

/// A tracked value: where it was made, and by whom after how many events, for what std makes has no
/// place in the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) site: Site,
    pub(crate) thread: ThreadId,
    pub(crate) events: u32,
}

/// What an execution should have given back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaked {
    /// The tracked values that were not dropped.
    pub(crate) values: Vec<Made>,
    /// Blocks that had to be freed.
    pub(crate) blocks: Vec<Block>,
    /// Whether one of them had to be whatever `Builder::check_leaks` says.
    pub(crate) owed: bool,
    /// Whether statics seem to lead to all of these blocks, so that it may be no leak.
    pub(crate) doubted: bool,
}

/// A use of the model's memory by a thread that nobody schedules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside {
    /// What is there, if the execution has met it and not seen its end.
    pub(crate) object: Option<ObjectId>,
    pub(crate) site: Site,
}

/// What is kept of a panic.
#[derive(Clone, Debug)]
pub(crate) struct Panic {
    pub(crate) thread: ThreadId,
    /// After how many events of the execution it began.
    pub(crate) after: usize,
    pub(crate) text: String,
    /// Its file, line and column.
    pub(crate) location: Option<(String, u32, u32)>,
}

/// The pairs whose orderings are too weak for a race's accesses to be in order.
#[derive(Clone, Default, Debug)]
pub(crate) struct TooWeak {
    /// In the order in which they are to be told.
    pub(crate) pairs: Vec<Weak>,
    /// Whether all of them would have to be strong enough. Otherwise any one would do.
    pub(crate) together: bool,
}

/// An atomic write and the read that saw it, which would have ordered a race's accesses had both
/// been strong enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weak {
    pub(crate) writer: Event,
    pub(crate) reader: Event,
    /// Whether the writer publishes all the same, because of its own ordering or of a fence before
    /// it.
    pub(crate) released: bool,
    /// Whether the reader acquires, by itself or by a fence behind it.
    pub(crate) acquired: bool,
}

impl Weak {
    /// Whether it is of the same lines of the program as these two.
    pub(crate) fn is_by(&self, writer: &Event, reader: &Event) -> bool {
        (self.writer.site, self.reader.site) == (writer.site, reader.site)
    }
}

/// Two operations in the order in which the execution fails; the other way round it passes.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    /// The position of the first one.
    pub(crate) first: u32,
    /// The position of the second one, or what it would have been.
    pub(crate) second: Result<u32, Blocked>,
    /// The execution up to the second one without the first one.
    pub(crate) reversed: Schedule,
    /// The notification that comes too early in the one order, and wakes whom it has to in the
    /// other.
    pub(crate) lost: Option<Lost>,
}

/// A notification that woke nobody, and the wait of a thread that only then began and never ends:
/// their positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    pub(crate) notified: u32,
    pub(crate) waited: u32,
}

/// What came of running a failed execution again from its own schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reproduction {
    /// The same, as far as it was tried.
    Same,
    /// The same failure, but the event at this position came out otherwise.
    Differs { position: u32 },
    /// Nothing failed.
    Passes,
    /// The same, but an earlier execution made the same events, and the thread that panics went on
    /// there.
    HadPassed,
    /// Something else failed, of which this is the word.
    Fails(&'static str),
}

/// What a thread was expected to do on replay, and what it did.
#[derive(Clone, Debug)]
pub(crate) struct Divergence {
    pub(crate) thread: ThreadId,
    /// The position of the event in the execution.
    pub(crate) position: usize,
    /// `None` in `found` if the thread has ended or waits.
    pub(crate) expected: Option<(Operation, Site)>,
    pub(crate) found: Option<(Operation, Site)>,
    /// The same operation came out differently.
    pub(crate) outcome_differs: bool,
}
