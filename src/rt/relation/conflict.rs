//! Do two threads of an execution meet at all?
//!
//! Operations of two threads *meet* if they are dependent and their order follows from more than
//! the program order, the spawns and the joins. An execution in which no operations meet is the
//! only one of its program, apart from the values of choices: its threads could as well run one
//! after the other.

use crate::rt::event::id::{ObjectId, ThreadId, lengthen};
use crate::rt::event::operation::OpKind;
use crate::rt::event::{NOWHERE, Trace};
use crate::rt::relation::independence::{Class, Label};

/// The last access of a thread to an object by operations with the same class. Accesses that are
/// the last release of a count are kept apart from the others.
struct Access {
    thread: ThreadId,
    label: Label,
    /// The number of events of the thread up to this one, inclusive.
    events: u32,
    /// The index of another access to the object.
    other: u32,
}

/// The accesses to all objects. Most objects have few, so a list for each would take more memory
/// than all accesses together.
#[derive(Default)]
struct Accesses {
    all: Vec<Access>,
    /// By object, the index of the access that was added last.
    latest: Vec<u32>,
}

impl Accesses {
    /// The indices of the accesses to an object.
    fn to(&self, object: ObjectId) -> impl Iterator<Item = usize> {
        let latest = self.latest.get(object.index()).copied();
        let index = |at: u32| (at != NOWHERE).then_some(at as usize);
        std::iter::successors(latest.and_then(index), move |&at| index(self.all[at].other))
    }

    fn add(&mut self, object: ObjectId, access: Access) {
        lengthen(&mut self.latest, object.index() + 1, || NOWHERE);
        let new = self.all.len() as u32;
        let other = std::mem::replace(&mut self.latest[object.index()], new);
        self.all.push(Access { other, ..access });
    }
}

/// For each thread the number of events of every thread that come before its next event by the
/// program order, the spawns and the joins.
#[derive(Default)]
struct Clocks(Vec<Vec<u32>>);

impl Clocks {
    fn of(&mut self, thread: ThreadId) -> &mut Vec<u32> {
        lengthen(&mut self.0, thread.index() + 1, Vec::new);
        &mut self.0[thread.index()]
    }

    /// The number of events of `other` that come before the next event of `thread`.
    fn known(&mut self, thread: ThreadId, other: ThreadId) -> u32 {
        let clock = self.of(thread);
        clock.get(other.index()).copied().unwrap_or_default()
    }

    /// Makes everything that comes before the next event of `from` come before that of `to`.
    fn order(&mut self, from: ThreadId, to: ThreadId) {
        let before = self.of(from).clone();
        let after = self.of(to);
        lengthen(after, before.len(), || 0);
        for (known, number) in after.iter_mut().zip(before) {
            *known = number.max(*known);
        }
    }

    /// Counts an event of the thread; returns the number of its events.
    fn count(&mut self, thread: ThreadId) -> u32 {
        let clock = self.of(thread);
        lengthen(clock, thread.index() + 1, || 0);
        clock[thread.index()] += 1;
        clock[thread.index()]
    }
}

/// Whether two operations of different threads meet in this execution.
pub(crate) fn threads_meet(trace: &Trace) -> bool {
    let mut clocks = Clocks::default();
    let mut accesses = Accesses::default();
    for event in trace.events() {
        let (thread, label) = (event.thread, event.label);
        let events = clocks.count(thread);
        match event.operation.kind {
            OpKind::Spawn { child } => clocks.order(thread, child),
            OpKind::Join { child } => clocks.order(child, thread),
            OpKind::Exit => {}
            // A thread that waits for a change, or asks for the end of another thread, does so
            // because of the other threads.
            // A block is there because of the other threads, too.
            OpKind::Wait { .. } | OpKind::IsFinished | OpKind::Atomically { .. } => return true,
            _ if !label.touches_one() => {}
            _ => {
                let object = label.object();
                let mut met = |at: usize| {
                    let other = &accesses.all[at];
                    other.thread != thread
                        && conflict(other.label, label)
                        && other.events > clocks.known(thread, other.thread)
                };
                if accesses.to(object).any(&mut met) {
                    return true;
                }
                let is_like = |&at: &usize| {
                    let other = &accesses.all[at];
                    other.thread == thread
                        && other.label.class() == label.class()
                        && (other.label.count() == 1) == (label.count() == 1)
                };
                let like = accesses.to(object).find(is_like);
                match like.map(|at| &mut accesses.all[at]) {
                    Some(access) => (access.label, access.events) = (label, events),
                    None => accesses.add(
                        object,
                        Access {
                            thread,
                            label,
                            events,
                            other: NOWHERE,
                        },
                    ),
                }
            }
        }
    }
    false
}

/// Whether operations with these labels, on one object, may not be swapped. Where the numbers in
/// the labels matter, other operations with the same classes may not be swapped; except for
/// releases of a reference, which all programs with an `Arc` have.
fn conflict(one: Label, other: Label) -> bool {
    match (one.class(), other.class()) {
        (Class::Drop, Class::Drop) => one.count() == 1 || other.count() == 1,
        (one, other) => one.conflicts().contains(other),
    }
}
