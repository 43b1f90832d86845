//! How does the clock of an event grow?
//!
//! It is the clock of the event directly before it, joined with those of the events that it comes
//! after. Most events join no new clock, for instance every access to an object that only one
//! thread uses. Such an event shares the clock of the event before it. That is possible because a
//! clock leaves out the component of the event's own thread, which is the event's index.

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::{Event, Trace};
use crate::rt::pooled::Empty;
use crate::rt::rare::Roomy;
use crate::rt::relation::happens_before::clock::{Clocks, NOTHING};
use crate::rt::relation::happens_before::contention::Contention;
use crate::rt::relation::happens_before::rows::{Row, Rows, Whose};
use crate::rt::relation::happens_before::way::Way;

/// Two ordered events of different threads with no event between them in happens-before, as
/// positions in the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Race {
    pub(crate) first: u32,
    pub(crate) second: u32,
}

/// The rows, clocks and races of the events so far.
#[derive(Default, Clone, Debug)]
pub(super) struct Past {
    pub(super) rows: Rows,
    pub(super) clocks: Clocks,
    /// The locations that waits have read, in order.
    pub(super) reads: Vec<Read>,
    /// The objects in the footprints of blocks, in order.
    pub(super) touched: Vec<Read>,
    pub(super) races: Vec<Race>,
    pub(super) ways: Vec<Way>,
    /// The candidates of a search without shortcuts.
    #[cfg(test)]
    pub(super) all: Vec<u32>,
    /// The number of candidates that searches have visited.
    #[cfg(test)]
    pub(super) visited: usize,
}

impl Empty for Past {
    fn empty(&mut self) {
        let Past {
            rows,
            clocks,
            reads,
            touched,
            races,
            ways,
            #[cfg(test)]
            all,
            #[cfg(test)]
            visited,
        } = self;
        rows.empty();
        clocks.empty();
        reads.empty();
        touched.empty();
        races.empty();
        ways.empty();
        #[cfg(test)]
        {
            all.empty();
            *visited = 0;
        }
    }
}

/// The clock of the last event, and whether it differs from the clock of the event before.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) start: u32,
    pub(super) is_own: bool,
}

/// One object that a wait has read or a block may touch, and the latest earlier event of the same
/// class on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) by: u32,
    pub(super) object: ObjectId,
    pub(super) previous: u32,
}

impl Past {
    /// Computes the clock of the next event, which is ordered only with those of its own thread,
    /// and of such events of its thread behind it. After one such event there are mostly many.
    #[inline(never)]
    pub(super) fn add_unordered(&mut self, trace: &Trace, contention: &Contention) {
        let position = self.rows.len();
        let [first, behind @ ..] = &trace.events()[position..] else {
            return;
        };
        let (thread, races) = (first.thread, self.races.len() as u32);
        // The row of the last event stands for this event, too, if the last event is not ordered
        // with others, either.
        let goes_on = self.rows.last().is_some_and(|(last, _)| {
            last.whose.thread == thread && last.object == ObjectId::NONE && last.races == races
        });
        if !goes_on {
            let Clock { start, is_own } = self.clock_before(trace, first);
            let whose = Whose {
                thread,
                index: first.index,
                clock: start,
            };
            self.rows.push(Row::of_none(whose, is_own, races));
        }
        // The last two labels are cached: a loop mostly has two.
        let mut known = [first.label; 2];
        let is_unordered = |event: &&Event| {
            event.thread == thread
                && (known.contains(&event.label)
                    || contention.rules_out(thread, event.label) && {
                        known = [event.label, known[0]];
                        true
                    })
        };
        let length = behind.iter().take_while(is_unordered).count();
        self.rows.go_on(length + usize::from(goes_on));
    }

    /// Computes the clock of the next event, a join, from the clock before it, and those of the
    /// joins of its thread directly behind it. Mostly a thread joins all its children one after the
    /// other.
    #[inline(never)]
    pub(super) fn add_joins(&mut self, trace: &Trace, mut clock: Clock) {
        let position = self.rows.len();
        let races = self.races.len() as u32;
        let events = &trace.events()[position..];
        let Some(&Event { thread, .. }) = events.first() else {
            return;
        };
        for event in events {
            let OpKind::Join { child } = event.operation.kind else {
                return;
            };
            if event.thread != thread {
                return;
            }
            // All events of the child happen before the join. The last one is the child's end, or
            // the event before if the end is not an event.
            if let Some(last) = trace.predecessor_of_next(child) {
                let last = self.rows.whose(last);
                if self.is_new_with(thread, clock.start, last) {
                    let Whose {
                        thread: child,
                        index,
                        clock: theirs,
                    } = last;
                    clock.start = self.clocks.join(clock.start, theirs, child, index + 1);
                    clock.is_own = true;
                }
            }
            let whose = Whose {
                thread,
                index: event.index,
                clock: clock.start,
            };
            self.rows.push(Row::of_none(whose, clock.is_own, races));
            clock.is_own = false;
        }
    }

    /// Makes clocks wide enough for `threads` threads.
    #[cold]
    pub(super) fn widen(&mut self, threads: usize) {
        let before = self.clocks.width() as u32;
        self.clocks.widen(threads);
        let width = self.clocks.width() as u32;
        self.rows.move_clocks(|clock| clock / before * width);
    }

    /// The clock of the last event before its access to objects: that of the event directly before
    /// it.
    #[inline(always)]
    pub(super) fn clock_before(&mut self, trace: &Trace, event: &Event) -> Clock {
        let clock = |start| Clock {
            start,
            is_own: false,
        };
        if let Some((last, _)) = self.rows.last()
            && last.whose.thread == event.thread
        {
            return clock(last.whose.clock);
        }
        match trace.predecessor_of(event) {
            Some(before) if event.index != 0 => clock(self.rows.row(before).whose.clock),
            // A first event comes after the spawn of its thread, which is another thread's event.
            Some(spawn) => self.join(clock(NOTHING), spawn),
            None => clock(NOTHING),
        }
    }

    /// Whether this clock contains the event at `position`, which is of another thread.
    #[inline]
    fn knows(&self, clock: u32, position: u32) -> bool {
        let Whose { thread, index, .. } = self.rows.whose(position);
        self.clocks.word(clock, thread) > index
    }

    /// Whether the event at `position` does not happen before an event of `thread` with this clock.
    #[inline]
    pub(super) fn is_new(&self, thread: ThreadId, clock: u32, position: u32) -> bool {
        self.is_new_with(thread, clock, self.rows.whose(position))
    }

    /// [`Past::is_new`] for the event with this thread, index and clock.
    #[inline]
    pub(super) fn is_new_with(&self, thread: ThreadId, clock: u32, whose: Whose) -> bool {
        whose.thread != thread && self.clocks.word(clock, whose.thread) <= whose.index
    }

    /// The clock of the last event, joined with that of the event at `position`.
    #[inline]
    pub(super) fn join(&mut self, clock: Clock, position: u32) -> Clock {
        let row = self.rows.whose(position);
        let (thread, count) = (row.thread, row.index + 1);
        let start = if clock.is_own {
            self.clocks.join_into(clock.start, row.clock, thread, count);
            clock.start
        } else {
            self.clocks
                .join_apart(clock.start, row.clock, thread, count)
        };
        Clock {
            start,
            is_own: true,
        }
    }

    /// The clock of a released wait of `me`. All events up to the moment when no other thread was
    /// enabled happen before it. The clock of each thread's latest event before that moment
    /// contains the thread's earlier ones.
    #[inline(never)]
    pub(super) fn follow_all(
        &mut self,
        trace: &Trace,
        me: ThreadId,
        quiescent_at: u32,
        mut clock: Clock,
    ) -> Clock {
        for thread in (0..trace.threads() as u32).map(ThreadId) {
            if thread != me
                && let Some(earlier) = trace.previous_of(thread, quiescent_at)
                && !self.knows(clock.start, earlier)
            {
                clock = self.join(clock, earlier);
            }
        }
        clock
    }

    /// Notes that the last event, with this clock, races with the event at `first`. Returns its
    /// clock, joined with that of `first`.
    #[inline(always)]
    pub(super) fn race(&mut self, clock: Clock, first: u32, second: u32) -> Clock {
        self.races.put(Race { first, second });
        self.join(clock, first)
    }
}
