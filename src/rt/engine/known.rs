//! Does each thread of an execution know, by the language, which stores are the newest?
//!
//! Under sequential consistency a thread reads nothing older than the newest store that comes
//! before its event in the trace. Under C11 it may read anything that is not older than the newest
//! store that the language grants it to know. Where these are one store, the event has no other
//! outcome under C11, and mostly they are. So this check comes first, and costs a clock for each
//! event; the look-out builds graphs of those executions only that the check leaves open
//! ([`Lookout`](crate::rt::memory::lookout::Lookout)).
//!
//! The check knows the synchronisation of atomics, threads, and objects that tell all they know to
//! those that use them next: locks and counts. It leaves an execution open that has a fence, or an
//! event on an object of another kind.

use crate::rt::event::grant::Grant;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::ordering::{acquires, releases};
use crate::rt::event::{Event, Trace};
use crate::rt::memory::clocks::{NOTHING, Row, Rows};
use crate::rt::object::State;
use crate::rt::object::machine::Machine;
use crate::rt::relation::happens_before::HappensBefore;

/// What is known behind an event.
#[derive(Clone, Copy, Debug)]
struct Knows {
    thread: ThreadId,
    /// What its thread knows, the event included.
    known: Row,
    /// What a reader of its store learns; a read-modify-write tells this, too.
    message: Row,
    /// How many rows there were before it.
    mark: usize,
}

/// The clocks of the last execution, as far as the check has come.
#[derive(Debug)]
pub(super) struct Known {
    rows: Rows,
    events: Vec<Knows>,
    /// For each thread, where its events are.
    threads: Vec<Vec<u32>>,
    /// Where each thread was spawned.
    spawns: Vec<u32>,
    /// What each object has been told.
    told: Vec<Row>,
    /// What an object had been told before an event, by the position of the event.
    told_before: Vec<(u32, ObjectId, Row)>,
}

impl Known {
    pub(super) fn new() -> Known {
        Known {
            rows: Rows::new(1),
            events: Vec::new(),
            threads: vec![Vec::new()],
            spawns: vec![0],
            told: Vec::new(),
            told_before: Vec::new(),
        }
    }

    /// Whether no event behind the first `kept` ones has another outcome under C11. False if the
    /// check cannot tell.
    pub(super) fn is_all(
        &mut self,
        machine: &Machine,
        (trace, clocks): (&Trace, &HappensBefore),
        kept: usize,
    ) -> bool {
        if !trace.fences().is_empty() {
            return false;
        }
        let mut is_all = true;
        // What comes behind the last access to an atomic, mostly joins, teaches no access.
        let accesses = |event: &Event| {
            let kind = &event.operation.kind;
            kind.is_atomic() || matches!(kind, OpKind::Wait { .. })
        };
        let last = trace.events().iter().rposition(accesses);
        for position in self.events.len()..last.map_or(0, |last| last + 1) {
            let event = trace.at(position as u32);
            let is_weak = is_weak(machine, event);
            if position >= kept && is_weak && is_all {
                is_all = self.has_one_floor(event, (trace, clocks), position as u32);
            }
            if !self.add(event, is_weak, (trace, clocks), position as u32) {
                return false;
            }
        }
        is_all
    }

    /// Forgets the events behind the first `length` ones.
    pub(super) fn cut(&mut self, length: usize) {
        while self.events.len() > length {
            let Knows { thread, mark, .. } = self.events.pop().expect("there is an event");
            self.threads[thread.index()].pop();
            self.rows.truncate(mark);
        }
        while let Some((_, object, row)) =
            (self.told_before).pop_if(|&mut (position, ..)| position as usize >= length)
        {
            self.told[object.index()] = row;
        }
    }

    /// The event directly before the next one of the thread: its own last one, or the spawn.
    fn last_of(&self, thread: ThreadId) -> Option<u32> {
        let last = self.threads[thread.index()].last().copied();
        last.or_else(|| (thread != ThreadId::MAIN).then(|| self.spawns[thread.index()]))
    }

    /// What the thread knows before its next event.
    fn known(&self, thread: ThreadId) -> Row {
        let last = self.last_of(thread);
        last.map_or(NOTHING, |last| self.events[last as usize].known)
    }

    /// Whether the newest store that comes before the event in the trace is the newest one that its
    /// thread knows, each itself or through an event that reads it.
    fn has_one_floor(
        &self,
        event: &Event,
        (trace, clocks): (&Trace, &HappensBefore),
        position: u32,
    ) -> bool {
        let Some(last) = self.last_of(event.thread) else {
            return true;
        };
        let known = self.events[last as usize].known;
        let past = clocks.look_at(last);
        let (before, _) = clocks.split_on(event.operation.object, position);
        for &earlier in before.iter().rev() {
            let earlier = trace.at(earlier);
            if self.rows.get(known, earlier.thread) > earlier.index {
                // Whatever comes between has read the same store.
                return true;
            }
            if is_store(earlier) && past.knows(earlier.thread, earlier.index) {
                return false;
            }
        }
        true
    }

    /// Takes the next event. False if its synchronisation is none of those that are known here.
    fn add(
        &mut self,
        event: &Event,
        is_weak: bool,
        (trace, clocks): (&Trace, &HappensBefore),
        position: u32,
    ) -> bool {
        let Event {
            thread,
            index,
            operation,
            outcome,
            label,
            ..
        } = *event;
        let kind = &operation.kind;
        let grant = match kind {
            OpKind::Wait { .. } | OpKind::GiveUp { .. } => return false,
            kind if kind.is_atomic() => Grant::Nothing,
            kind => Grant::of(kind, outcome, label.class()),
        };
        let is_known = matches!(
            grant,
            Grant::Nothing | Grant::Spawn { .. } | Grant::Join { .. } | Grant::Learn | Grant::Tell
        );
        if !is_known || outcome.is_released() {
            return false;
        }
        let mark = self.rows.mark();
        let known = self
            .rows
            .joined((self.known(thread), NOTHING), thread, index + 1);
        let mut message = NOTHING;
        match grant {
            Grant::Spawn { child } => self.admit(child, position),
            Grant::Join { child } => self.rows.add(known, self.known(child)),
            Grant::Learn => {
                let told = self.told.get(operation.object.index());
                self.rows.add(known, told.copied().unwrap_or(NOTHING));
            }
            Grant::Tell => self.tell(position, operation.object, known),
            _ if is_weak => {
                let source = match kind {
                    OpKind::Store { .. } => NOTHING,
                    _ => self.newest_message(operation.object, (trace, clocks), position),
                };
                let order = kind.ordering(outcome.succeeded());
                let order = order.expect("an operation on an atomic has an ordering");
                if acquires(order) {
                    self.rows.add(known, source);
                }
                if is_store(event) {
                    let own = if releases(order) { known } else { NOTHING };
                    message = self.rows.join(own, source);
                }
            }
            _ => {}
        }
        self.threads[thread.index()].push(position);
        self.events.push(Knows {
            thread,
            known,
            message,
            mark,
        });
        true
    }

    /// Notes where the thread was spawned.
    fn admit(&mut self, child: ThreadId, position: u32) {
        if self.threads.len() <= child.index() {
            self.threads.resize_with(child.index() + 1, Vec::new);
            self.spawns.resize(child.index() + 1, 0);
            self.rows.widen(child.index() + 1);
        }
        self.spawns[child.index()] = position;
    }

    fn tell(&mut self, position: u32, object: ObjectId, known: Row) {
        if self.told.len() <= object.index() {
            self.told.resize(object.index() + 1, NOTHING);
        }
        let before = self.told[object.index()];
        self.told_before.push((position, object, before));
        self.told[object.index()] = self.rows.join(before, known);
    }

    /// What a reader of the newest store before this position learns.
    fn newest_message(
        &self,
        object: ObjectId,
        (trace, clocks): (&Trace, &HappensBefore),
        position: u32,
    ) -> Row {
        let (before, _) = clocks.split_on(object, position);
        let mut stores = before.iter().rev();
        let newest = stores.find(|&&earlier| is_store(trace.at(earlier)));
        newest.map_or(NOTHING, |&newest| self.events[newest as usize].message)
    }
}

/// Whether the event is on an atomic of std's.
fn is_weak(machine: &Machine, event: &Event) -> bool {
    let object = event.operation.object;
    event.operation.kind.is_atomic()
        && matches!(machine.state(object), State::Atomic { ty, .. } if ty.is_weak())
}

/// Whether the event is a store or a read-modify-write on an atomic.
fn is_store(event: &Event) -> bool {
    event.label.writes_atomic() == Some(true)
}
