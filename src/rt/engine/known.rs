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

use crate::rt::engine::weak_memory::reads_word;
use crate::rt::event::class::Class;
use crate::rt::event::grant::Grant;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::ordering::{acquires, releases};
use crate::rt::event::{Event, Trace};
use crate::rt::memory::clocks::{NOTHING, Row, Rows};
use crate::rt::object::State;
use crate::rt::object::machine::Machine;
use crate::rt::relation::happens_before::HappensBefore;

/// What a thread knows after some of its events. The row need not know these events: most events
/// add nothing but themselves, so they share the row of the event before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Knowledge {
    row: Row,
    thread: ThreadId,
    /// The number of events of the thread.
    events: u32,
}

impl Knowledge {
    const NONE: Knowledge = Knowledge {
        row: NOTHING,
        thread: ThreadId::MAIN,
        events: 0,
    };

    /// Whether it includes the event of this thread with this index.
    fn includes(self, rows: &Rows, thread: ThreadId, index: u32) -> bool {
        self.thread == thread && self.events > index || rows.get(self.row, thread) > index
    }

    /// This and what `other` knows.
    fn and(self, rows: &mut Rows, other: Knowledge) -> Knowledge {
        // A thread knows its own earlier events without a row.
        let events = match other.thread == self.thread {
            true => 0,
            false => other.events,
        };
        let row = rows.learn(self.row, other.row, (other.thread, events));
        Knowledge { row, ..self }
    }

    /// What a reader learns of these two.
    fn or(self, rows: &mut Rows, other: Knowledge) -> Knowledge {
        match (self, other) {
            (one, Knowledge::NONE) | (Knowledge::NONE, one) => one,
            (one, other) => one.and(rows, other),
        }
    }
}

/// What is known behind an event.
#[derive(Clone, Copy, Debug)]
struct Knows {
    /// What its thread knows, the event included.
    known: Knowledge,
    /// What a reader of its store learns; a read-modify-write tells this, too.
    message: Knowledge,
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
    told: Vec<Knowledge>,
    /// What an object had been told before an event, by the position of the event.
    told_before: Vec<(u32, ObjectId, Knowledge)>,
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
        // What comes behind the last access to an atomic, mostly joins, teaches no access. A failed
        // `try_lock` is such an access to the word of its mutex.
        let tries = |event: &Event| reads_word(machine, &event.operation);
        let accesses = |event: &Event| {
            let kind = &event.operation.kind;
            kind.is_atomic() || matches!(kind, OpKind::Wait { .. }) || tries(event)
        };
        let last = trace.events().iter().rposition(accesses);
        for position in self.events.len()..last.map_or(0, |last| last + 1) {
            let event = trace.at(position as u32);
            let is_weak = is_weak(machine, event);
            if position >= kept && (is_weak || tries(event)) && is_all {
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
            let Knows { known, mark, .. } = self.events.pop().expect("there is an event");
            self.threads[known.thread.index()].pop();
            self.rows.truncate(mark);
        }
        while let Some((_, object, told)) =
            (self.told_before).pop_if(|&mut (position, ..)| position as usize >= length)
        {
            self.told[object.index()] = told;
        }
    }

    /// The event directly before the next one of the thread: its own last one, or the spawn.
    fn last_of(&self, thread: ThreadId) -> Option<u32> {
        let last = self.threads[thread.index()].last().copied();
        last.or_else(|| (thread != ThreadId::MAIN).then(|| self.spawns[thread.index()]))
    }

    /// What the thread knows before its next event. At first it knows what its creator knew.
    fn known(&self, thread: ThreadId) -> Knowledge {
        let last = self.last_of(thread);
        last.map_or(Knowledge::NONE, |last| self.events[last as usize].known)
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
            if known.includes(&self.rows, earlier.thread, earlier.index) {
                // Whatever comes between has read the same store.
                return true;
            }
            if (is_store(earlier) || locks(earlier)) && past.knows(earlier.thread, earlier.index) {
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
            Grant::Nothing
                | Grant::Spawn { .. }
                | Grant::Join { .. }
                | Grant::Learn
                | Grant::Tell
                | Grant::TellAndLearn
        );
        if !is_known || outcome.is_released() {
            return false;
        }
        let mark = self.rows.mark();
        let before = self.known(thread);
        let row = match before.thread == thread {
            true => before.row,
            false => (self.rows).learn(before.row, NOTHING, (before.thread, before.events)),
        };
        let mut known = Knowledge {
            row,
            thread,
            events: index + 1,
        };
        let mut message = Knowledge::NONE;
        match grant {
            Grant::Spawn { child } => self.admit(child, position),
            Grant::Join { child } => {
                let child = self.known(child);
                known = known.and(&mut self.rows, child);
            }
            Grant::Learn => {
                let told = self.told(operation.object);
                known = known.and(&mut self.rows, told);
            }
            Grant::Tell => self.tell(position, operation.object, known),
            Grant::TellAndLearn => {
                let told = self.told(operation.object);
                known = known.and(&mut self.rows, told);
                self.tell(position, operation.object, known);
            }
            _ if is_weak => {
                let source = match kind {
                    OpKind::Store { .. } => Knowledge::NONE,
                    _ => self.newest_message(operation.object, (trace, clocks), position),
                };
                let order = kind.ordering(outcome.succeeded());
                let order = order.expect("an operation on an atomic has an ordering");
                if acquires(order) {
                    known = known.and(&mut self.rows, source);
                }
                if is_store(event) {
                    let own = match releases(order) {
                        true => known,
                        false => Knowledge::NONE,
                    };
                    message = own.or(&mut self.rows, source);
                }
            }
            _ => {}
        }
        self.threads[thread.index()].push(position);
        self.events.push(Knows {
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

    fn told(&self, object: ObjectId) -> Knowledge {
        let told = self.told.get(object.index()).copied();
        told.unwrap_or(Knowledge::NONE)
    }

    fn tell(&mut self, position: u32, object: ObjectId, known: Knowledge) {
        if self.told.len() <= object.index() {
            self.told.resize(object.index() + 1, Knowledge::NONE);
        }
        let before = self.told[object.index()];
        self.told_before.push((position, object, before));
        self.told[object.index()] = known.or(&mut self.rows, before);
    }

    /// What a reader of the newest store before this position learns.
    fn newest_message(
        &self,
        object: ObjectId,
        (trace, clocks): (&Trace, &HappensBefore),
        position: u32,
    ) -> Knowledge {
        let (before, _) = clocks.split_on(object, position);
        let mut stores = before.iter().rev();
        let newest = stores.find(|&&earlier| is_store(trace.at(earlier)));
        newest.map_or(Knowledge::NONE, |&newest| {
            self.events[newest as usize].message
        })
    }
}

/// Whether the event is on an atomic of std's.
fn is_weak(machine: &Machine, event: &Event) -> bool {
    let object = event.operation.object;
    event.operation.kind.is_atomic()
        && matches!(machine.state(object), State::Atomic { ty, .. } if ty.is_weak())
}

/// Whether the event locks or unlocks a mutex.
fn locks(event: &Event) -> bool {
    matches!(event.label.class(), Class::Acquire | Class::Release)
}

/// Whether the event is a store or a read-modify-write on an atomic.
fn is_store(event: &Event) -> bool {
    event.label.writes_atomic() == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::engine::TieBreak;
    use crate::rt::engine::testing::programs::store;
    use crate::rt::engine::testing::*;
    use crate::rt::event::operation::ObjectKind;

    /// The number of a count, beside the variables.
    const COUNT: u32 = 99;

    /// Two threads store to a variable of their own so often, and drop a value that both own.
    fn look(stores: usize) -> (bool, usize) {
        let thread = |var: i64| {
            let mut code: Vec<Ins> = (0..stores).map(|_| store(var, 0)).collect();
            code.push(Ins::Release(COUNT));
            code
        };
        let program = Program::of(vec![thread(0), thread(1)]);
        let program = program.with(COUNT, ObjectKind::Count { observed: true }, 2);
        let mut driver = driver(&program, explorer("optimal", TieBreak::Last));
        run(&program, &mut driver).expect("it runs");
        driver.compute_clocks();
        let mut known = Known::new();
        let is_all = known.is_all(&driver.machine, (&driver.trace, &driver.clocks), 0);
        let rows = known.rows.mark();
        known.cut(0);
        assert_eq!((known.rows.mark(), known.events.len()), (1, 0));
        (is_all, rows)
    }

    #[test]
    fn the_last_drop_of_a_value_is_known() {
        let (is_all, _) = look(1);
        assert!(is_all);
    }

    #[test]
    fn an_event_that_learns_nothing_makes_no_row() {
        assert_eq!(look(1000).1, look(10).1);
    }
}
