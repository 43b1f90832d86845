//! What is a trace?
//!
//! A [`Trace`] holds the events of one execution in the order in which they happened. Two
//! executions are the *same* Mazurkiewicz trace if they have the same events and the same
//! happens-before between them ([`happens_before`](crate::rt::relation::happens_before),
//! [`key`](crate::rt::relation::key)); the order of independent events does not matter.
//!
//! The trace outlives its execution: the next execution keeps the common prefix with its clocks,
//! and replaces the rest.

pub(crate) mod class;
pub(crate) mod fence;
pub(crate) mod grant;
pub(crate) mod held;
pub(crate) mod id;
pub(crate) mod label;
pub(crate) mod mix;
pub(crate) mod notification;
pub(crate) mod operation;
pub(crate) mod ordering;
pub(crate) mod prefetch;
pub(crate) mod rounds;
pub(crate) mod said;
pub(crate) mod schedule;
mod site;
mod turns;
pub(crate) mod verdict;
pub(crate) mod weakened;

use crate::rt::event::fence::{Fence, Part};
use crate::rt::event::id::{FEW, ThreadId, lengthen};
use crate::rt::event::label::Label;
use crate::rt::event::operation::{Operation, Outcome, Step};
use crate::rt::event::prefetch::ask_ahead;
pub(crate) use crate::rt::event::site::{Site, foreign, is_of_std};
use crate::rt::event::turns::Turns;
use crate::rt::pooled::{Empty, empty_rows};
use crate::rt::rare::Roomy;

/// Stands for an absent position.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// An operation that has happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) thread: ThreadId,
    /// The index of the event among the events of its thread, counted from 0.
    pub(crate) index: u32,
    pub(crate) operation: Operation,
    pub(crate) outcome: Outcome,
    pub(crate) label: Label,
    /// The number of outcomes that the operation could have had.
    pub(crate) alternatives: u32,
    /// The number of the actual outcome among them.
    pub(crate) alternative: u32,
    /// The object's state before the event, if it fits ([`crate::rt::object::State::pack`]).
    pub(crate) before: Option<u64>,
    pub(crate) site: Site,
}

impl Event {
    /// The step that makes this event happen.
    pub(crate) fn step(&self) -> Step {
        Step {
            thread: self.thread,
            alternative: self.alternative,
        }
    }

    /// Replaces the operands and values, which may be addresses. They may differ on replay, and the
    /// event is still the same.
    #[inline]
    pub(crate) fn refresh(&mut self, operation: &Operation, outcome: Outcome, before: Option<u64>) {
        self.operation = *operation;
        self.outcome = outcome;
        self.before = before;
    }
}

/// The events of one execution, in order.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    events: Vec<Event>,
    /// The threads of the events.
    turns: Turns,
    /// For each thread the positions of its events, as far as they are placed. The list is longer
    /// than the number of threads if an earlier trace had more threads.
    positions: Vec<Vec<u32>>,
    /// The number of placed events.
    placed: usize,
    /// The positions of the events that have an alternative to reverse besides their races.
    notable: Vec<u32>,
    /// For each thread the position of the event that spawned it, or [`NOWHERE`].
    spawned: Vec<u32>,
    /// The threads in the order in which their code began, each with the position of the next
    /// event.
    begun: Vec<(u32, ThreadId)>,
    /// The fences of the current or last execution, in order. Each execution makes its own.
    fences: Vec<Fence>,
    /// The parts of the blocks of the current or last execution, in order.
    parts: Vec<Part>,
    /// The threads that have begun to drop their thread-local variables, each with the number of
    /// events of the execution before that, in order.
    locals_dropped: Vec<(ThreadId, u32)>,
    /// Whether memory is C11's.
    pub(crate) is_weak: bool,
    /// Whether locks prefer writers.
    pub(crate) writers_first: bool,
    /// Whether a thread gets the memory again of the blocks that it has freed.
    pub(crate) blocks_again: bool,
}

/// The most fences that are noted between two events of a thread. A loop that makes only fences
/// never ends, and its fences would fill the memory.
const FENCES_MAX: usize = 1 << 16;

/// The initial room, in events, of the trace and of each thread. Most executions of a test are that
/// short, and a vector that grows from nothing is moved several times.
const ROOM: (usize, usize) = (64, 16);

/// An execution with this many events counts as long.
const SOME: usize = 256;

/// The room, in events, that a long execution gets.
const MANY: usize = 65_536;

impl Empty for Trace {
    fn empty(&mut self) {
        let Trace {
            events,
            turns,
            positions,
            placed,
            notable,
            spawned,
            begun,
            fences,
            parts,
            locals_dropped,
            is_weak,
            writers_first,
            blocks_again,
        } = self;
        events.empty();
        turns.empty();
        empty_rows(positions);
        *placed = 0;
        notable.empty();
        spawned.empty();
        begun.empty();
        fences.empty();
        parts.clear();
        locals_dropped.empty();
        (*is_weak, *writers_first, *blocks_again) = (false, false, false);
    }
}

impl Trace {
    /// An empty trace.
    pub(crate) fn new() -> Trace {
        Trace {
            events: Vec::with_capacity(ROOM.0),
            turns: Turns::new(),
            positions: Vec::new(),
            placed: 0,
            notable: Vec::new(),
            spawned: Vec::new(),
            begun: Vec::with_capacity(FEW),
            fences: Vec::new(),
            parts: Vec::new(),
            locals_dropped: Vec::new(),
            is_weak: false,
            writers_first: false,
            blocks_again: false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// The fences, in order.
    pub(crate) fn fences(&self) -> &[Fence] {
        &self.fences
    }

    /// The parts of blocks, in order.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The operations in the block at this position; none if the event there is no block.
    pub(crate) fn operations_in(&self, position: usize) -> impl Iterator<Item = &Event> {
        let from = (self.parts).partition_point(|part| part.before as usize <= position);
        let mine = self.parts[from..].iter();
        let mine = mine.take_while(move |part| part.before as usize == position + 1);
        mine.filter_map(Part::operation)
    }

    pub(crate) fn note_part(&mut self, part: Part) {
        self.parts.push(part);
    }

    /// Notes a fence. `None` if its thread has made [`FENCES_MAX`] fences since its last event,
    /// because then the trace notes no more.
    pub(crate) fn note_fence(&mut self, fence: Fence) -> Option<&Fence> {
        let first = self.fences.len().checked_sub(FENCES_MAX);
        let first = first.map(|at| (self.fences[at].thread, self.fences[at].before));
        if first == Some((fence.thread, fence.before)) {
            return None;
        }
        self.fences.push(fence);
        self.fences.last()
    }

    /// The threads that have begun to drop their thread-local variables, each with the number of
    /// events of the execution before that.
    pub(crate) fn locals_dropped(&self) -> &[(ThreadId, u32)] {
        &self.locals_dropped
    }

    /// Notes that a thread begins to drop its thread-local variables, after so many events of the
    /// execution.
    pub(crate) fn note_locals_dropped(&mut self, thread: ThreadId, before: u32) {
        self.locals_dropped.push((thread, before));
    }

    /// Another execution begins, which makes what is no event anew.
    pub(crate) fn forget_what_is_no_event(&mut self) {
        self.locals_dropped.clear();
        self.fences.clear();
        self.parts.clear();
    }

    /// The number of threads that have names.
    pub(crate) fn threads(&self) -> usize {
        self.spawned.len()
    }

    /// The positions of the events that had several outcomes, or may have had to wait for other
    /// events.
    pub(crate) fn notable(&self) -> &[u32] {
        &self.notable
    }

    /// The event at `position`.
    #[inline]
    pub(crate) fn at(&self, position: u32) -> &Event {
        &self.events[position as usize]
    }

    /// The positions of the thread's events, in order. All events must be placed
    /// ([`Trace::place`]).
    #[inline]
    pub(crate) fn positions_of(&self, thread: ThreadId) -> &[u32] {
        debug_assert_eq!(self.placed, self.events.len());
        // This takes one comparison; `get` with a default takes three.
        if thread.index() < self.positions.len() {
            &self.positions[thread.index()]
        } else {
            &[]
        }
    }

    /// The position of the thread's last event.
    #[inline]
    pub(crate) fn last_of(&self, thread: ThreadId) -> Option<u32> {
        self.positions_of(thread).last().copied()
    }

    /// The position of the thread's event with this index.
    #[inline]
    pub(crate) fn nth_of(&self, thread: ThreadId, index: u32) -> Option<u32> {
        self.positions_of(thread).get(index as usize).copied()
    }

    /// The position of the thread's first event behind `position`.
    #[inline]
    pub(crate) fn next_of(&self, thread: ThreadId, position: u32) -> Option<u32> {
        let positions = self.positions_of(thread);
        let at = positions.partition_point(|&p| p <= position);
        positions.get(at).copied()
    }

    /// The position of the thread's last event before `position`.
    pub(crate) fn previous_of(&self, thread: ThreadId, position: u32) -> Option<u32> {
        let positions = self.positions_of(thread);
        let end = positions.partition_point(|&p| p < position);
        positions[..end].last().copied()
    }

    /// The position of the event that directly precedes the thread's next event: the thread's last
    /// event, or its spawn. `None` for the first event of the main thread.
    pub(crate) fn predecessor_of_next(&self, thread: ThreadId) -> Option<u32> {
        self.last_of(thread).or_else(|| self.spawn_of(thread))
    }

    /// The position of the event that directly precedes the one at `position` in its thread: the
    /// previous event of the thread, or its spawn.
    #[inline]
    pub(crate) fn predecessor(&self, position: u32) -> Option<u32> {
        self.predecessor_of(self.at(position))
    }

    /// [`Trace::predecessor`] of this event.
    #[inline]
    pub(crate) fn predecessor_of(&self, event: &Event) -> Option<u32> {
        let Event { thread, index, .. } = *event;
        match index.checked_sub(1) {
            Some(before) => self.nth_of(thread, before),
            None => self.spawn_of(thread),
        }
    }

    /// The position of the event that spawned the thread.
    #[inline]
    pub(crate) fn spawn_of(&self, thread: ThreadId) -> Option<u32> {
        let position = *self.spawned.get(thread.index())?;
        (position != NOWHERE).then_some(position)
    }

    /// Appends an event to a trace in which all events are placed, fills in its `index`, and places
    /// it.
    pub(crate) fn push(&mut self, event: Event) {
        debug_assert_eq!(self.placed, self.events.len());
        let thread = event.thread.index();
        if self.spawned.len() <= thread {
            make_room(&mut self.positions, &mut self.spawned, thread);
        }
        let positions = &mut self.positions[thread];
        let index = positions.len() as u32;
        positions.push(self.events.len() as u32);
        self.append(Event { index, ..event });
        self.placed += 1;
    }

    /// Appends an event, which is placed later ([`Trace::place`]).
    #[inline(always)]
    pub(crate) fn append(&mut self, event: Event) {
        let position = self.events.len() as u32;
        if let operation::OpKind::Spawn { child } = event.operation.kind {
            if self.spawned.len() <= child.index() {
                make_room(&mut self.positions, &mut self.spawned, child.index());
            }
            self.spawned[child.index()] = position;
        }
        if is_notable(&event) {
            self.notable.put(position);
        }
        if !has_room(&self.events) {
            self.grow();
        }
        self.turns.note(event.thread, position);
        self.events.put(event);
    }

    /// [`Trace::append`] for an event that is no spawn and continues the turn of its thread, if
    /// there is room for it. Returns false without a change if there is no room, or if the event
    /// had several outcomes.
    #[inline(always)]
    pub(crate) fn append_in_place(&mut self, event: Event) -> bool {
        let is_notable = is_notable(&event);
        if event.alternatives > 1
            || is_notable && !has_room(&self.notable)
            || !self.turns.goes_on(event.thread)
            || !has_room(&self.events)
        {
            return false;
        }
        if is_notable {
            self.notable.push(self.events.len() as u32);
        }
        ask_ahead(self.events.as_ptr_range().end);
        self.events.push(event);
        true
    }

    /// Places each event among those of its thread. While an execution runs, no caller needs the
    /// places.
    #[inline]
    pub(crate) fn place(&mut self) {
        if self.placed < self.events.len() {
            self.place_new();
        }
    }

    #[inline(never)]
    fn place_new(&mut self) {
        let (placed, length) = (self.placed, self.events.len());
        for (thread, turn) in self.turns.behind(placed as u32, length as u32) {
            if self.spawned.len() <= thread.index() {
                make_room(&mut self.positions, &mut self.spawned, thread.index());
            }
            self.positions[thread.index()].extend(turn);
        }
        self.placed = length;
    }

    /// Notes that the thread's code begins, before the next event.
    #[inline]
    pub(crate) fn note_begin(&mut self, position: usize, thread: ThreadId) {
        self.begun.put((position as u32, thread));
        // Mostly the next event is the thread's own.
        debug_assert_eq!(position, self.events.len());
        self.turns.note(thread, position as u32);
    }

    /// The n-th thread in the order in which their code began, with the position of the next event.
    #[inline]
    pub(crate) fn begun(&self, n: usize) -> Option<(usize, ThreadId)> {
        let &(position, thread) = self.begun.get(n)?;
        Some((position as usize, thread))
    }

    /// The threads with code that began earlier than their first events, with the positions of the
    /// next events.
    pub(crate) fn begun_early(&self) -> impl Iterator<Item = (usize, ThreadId)> {
        let behind = self.begun.iter().skip(1).map(|&(position, _)| position);
        let behind = behind.chain([NOWHERE]);
        // The thread that begins last at a position and makes the event there begins with that
        // event.
        let early = self
            .begun
            .iter()
            .zip(behind)
            .filter(|&(&(at, thread), behind)| {
                let next = self.events.get(at as usize);
                next.is_some_and(|next| at == behind || next.thread != thread)
            });
        early.map(|(&(at, thread), _)| (at as usize, thread))
    }

    /// The threads with code that began behind the first `length` events and before another event.
    pub(crate) fn begun_behind(&self, length: usize) -> impl Iterator<Item = ThreadId> {
        let there = self.begun.iter();
        let there = there.filter(move |&&(at, _)| at as usize == length);
        there.map(|&(_, thread)| thread)
    }

    /// Whether the thread's code has begun.
    pub(crate) fn has_begun(&self, thread: ThreadId) -> bool {
        self.begun.iter().any(|&(_, begun)| begun == thread)
    }

    /// The number of events that the trace has room for, the existing ones included.
    pub(crate) fn room(&self) -> usize {
        self.events.capacity()
    }

    /// Makes room for more events; for a long execution at once for all events it is likely to
    /// have. A move of the events takes longer than all other work on some of them, and untouched
    /// memory costs nothing.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let length = self.events.len();
        let more = match length {
            ..SOME => 3 * length.max(ROOM.0),
            SOME..MANY => MANY - length,
            _ => length,
        };
        self.events.reserve_exact(more);
    }

    /// The event at `position`, for an execution that makes it again.
    #[inline]
    pub(crate) fn again(&mut self, position: usize) -> &mut Event {
        &mut self.events[position]
    }

    /// Drops every event from `length` on, and the beginnings of threads from there on.
    pub(crate) fn truncate(&mut self, length: usize) {
        while (self
            .begun
            .pop_if(|(position, _)| *position as usize >= length))
        .is_some()
        {}
        self.drop_events(length);
    }

    /// Drops every event from `length` on, the beginnings of threads behind there, and all
    /// beginnings but the first `begun`.
    pub(crate) fn cut(&mut self, length: usize, begun: usize) {
        self.begun.truncate(begun);
        while (self
            .begun
            .pop_if(|(position, _)| *position as usize > length))
        .is_some()
        {}
        self.drop_events(length);
    }

    fn drop_events(&mut self, length: usize) {
        self.place();
        let kept = (self.fences).partition_point(|fence| fence.before as usize <= length);
        self.fences.truncate(kept);
        let kept = (self.parts).partition_point(|part| part.before as usize <= length);
        self.parts.truncate(kept);
        let is_kept = |&(_, before): &(ThreadId, u32)| before as usize <= length;
        self.locals_dropped
            .truncate(self.locals_dropped.partition_point(is_kept));
        let (kept, before) = (length as u32, self.events.len() as u32);
        self.turns.cut(kept, before, |thread, count| {
            let positions: &mut Vec<u32> = &mut self.positions[thread.index()];
            positions.truncate(positions.len() - count);
        });
        // One by one: there are few threads, and the compiler turns a loop over all entries into
        // vector code for many.
        let mut spawned = self.spawned.iter_mut();
        while let Some(gone) = spawned.find(|position| **position >= kept) {
            *gone = NOWHERE;
        }
        self.events.truncate(length);
        self.placed = self.events.len();
        let kept = (self.notable).partition_point(|&position| (position as usize) < length);
        self.notable.truncate(kept);
    }
}

/// Makes room for the events of this thread.
#[cold]
#[inline(never)]
fn make_room(positions: &mut Vec<Vec<u32>>, spawned: &mut Vec<u32>, thread: usize) {
    let room = || Vec::with_capacity(ROOM.1);
    lengthen(positions, thread + 1, room);
    lengthen(spawned, thread + 1, || NOWHERE);
}

/// Whether the event has an alternative to reverse besides its races.
#[inline(always)]
fn is_notable(event: &Event) -> bool {
    event.alternatives > 1 || event.operation.kind.may_have_waited()
}

/// Whether another item can be appended without an allocation.
#[inline(always)]
fn has_room<T>(items: &Vec<T>) -> bool {
    items.len() < items.capacity()
}

#[cfg(test)]
mod tests;
