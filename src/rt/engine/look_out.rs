//! Has an execution under sequential consistency an operation with another outcome under C11?
//!
//! Events among which all accesses are `SeqCst` need no check ([`is_strong`]). The check by
//! clocks alone comes next ([`Known`]), and the graph for what it leaves open ([`Lookout`]).

use crate::rt::engine::known::Known;
use crate::rt::engine::weak_memory::{Accesses, reads_word, released};
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Operation, Outcome};
use crate::rt::event::verdict::Blocked;
use crate::rt::event::{Event, Site, Trace};
use crate::rt::memory::graph::Graph;
use crate::rt::memory::lookout::Lookout;
use crate::rt::memory::operation as graph;
use crate::rt::memory::{self, Access, MemoryModel};
use crate::rt::object::machine::Machine;
use crate::rt::relation::happens_before::HappensBefore;

/// An operation that has another outcome under C11 than under sequential consistency.
#[derive(Clone, Debug)]
pub(crate) struct WeakStep {
    pub(crate) operation: Operation,
    pub(crate) site: Site,
    pub(crate) thread: ThreadId,
}

/// The executions under sequential consistency, as the look-out sees them.
pub(crate) struct LookOut {
    known: Known,
    lookout: Lookout,
    accesses: Accesses,
    /// The number of events of the last execution that the look-out has taken.
    taken: usize,
    /// The number of first events of the last execution that are [strong](is_strong).
    strong: usize,
    /// The first operation that was found, if any. Then the look-out looks no more.
    pub(crate) found: Option<WeakStep>,
}

impl LookOut {
    pub(crate) fn new() -> LookOut {
        LookOut {
            known: Known::new(),
            lookout: Lookout::new(Graph::new(1)),
            accesses: Accesses::default(),
            taken: 0,
            strong: 0,
            found: None,
        }
    }

    /// An execution has ended that is not looked at.
    pub(crate) fn skip(&mut self) {
        self.taken = 0;
        self.strong = 0;
        self.known.cut(0);
    }

    /// Looks at an execution that has ended. It has its first events in common with the one before.
    pub(crate) fn look(
        &mut self,
        machine: &Machine,
        (trace, clocks): (&Trace, &HappensBefore),
        kept: usize,
        blocked: &[Blocked],
    ) {
        if self.found.is_some() {
            return;
        }
        self.taken = self.taken.min(kept);
        self.known.cut(kept);
        let may_be_weak = |event: &Event| {
            event.operation.kind.is_atomic() || reads_word(machine, &event.operation)
        };
        let has_waits = blocked.iter().any(waits);
        let strong = self.count_strong(trace, kept);
        // A thread that waits at the end has had its looks, so these are strong, too.
        if strong == trace.len() {
            return;
        }
        let open = kept.max(strong);
        let has_new = trace.events()[open..].iter().any(may_be_weak);
        let is_all = !has_waits && (!has_new || self.known.is_all(machine, (trace, clocks), open));
        if is_all && !cfg!(test) {
            return;
        }
        self.lookout.shorten(self.taken);
        self.lookout.forget_waits();
        self.accesses.met.clear();
        for event in &trace.events()[..self.taken] {
            self.accesses.has_met(event.operation.object);
        }
        for position in self.taken..trace.len() {
            let event = trace.at(position as u32);
            let Event {
                thread,
                index,
                operation,
                ..
            } = *event;
            let model = self.lookout.model();
            let of = (thread, index);
            let access = (self.accesses).access(model, (machine, trace), of, &operation);
            if position >= open && self.lookout.weak_outcome(thread, &access).is_some() {
                debug_assert!(
                    !is_all,
                    "dpor bug: the check by clocks has passed {operation:?}"
                );
                return self.find(thread, &operation, event.site);
            }
            let came_out = self.came_out(event, &access);
            self.lookout.take(thread, &access, came_out);
        }
        self.taken = trace.len();
        for blocked in blocked.iter().filter(|blocked| waits(blocked)) {
            let of = (blocked.thread, machine.events_of(blocked.thread));
            let model = self.lookout.model();
            let access = (self.accesses).access(model, (machine, trace), of, &blocked.operation);
            if self.lookout.weak_outcome(blocked.thread, &access).is_some() {
                return self.find(blocked.thread, &blocked.operation, blocked.site);
            }
        }
    }

    /// Returns how many first events of the execution are strong. It has its first `kept` events
    /// in common with the one before.
    fn count_strong(&mut self, trace: &Trace, kept: usize) -> usize {
        self.strong = self.strong.min(kept);
        let more = trace.events()[self.strong..].iter();
        self.strong += more.take_while(|event| is_strong(event)).count();
        self.strong
    }

    /// The outcome that an event of an execution under sequential consistency has.
    fn came_out(&mut self, event: &Event, access: &Access) -> memory::Outcome {
        if let Outcome::Released { quiescent_at } = event.outcome {
            return released(quiescent_at as u32);
        }
        let object = access.operation.object;
        match access.operation.kind {
            graph::OpKind::Load { .. } => memory::Outcome::Reads(self.lookout.last_store(object)),
            graph::OpKind::Store { .. } => memory::Outcome::Behind(self.lookout.last_store(object)),
            graph::OpKind::Rmw { .. } => memory::Outcome::Modifies(self.lookout.last_store(object)),
            graph::OpKind::CompareExchange { .. } => {
                let last = self.lookout.last_store(object);
                match event.outcome.succeeded() {
                    true => memory::Outcome::Modifies(last),
                    false => memory::Outcome::Reads(last),
                }
            }
            // A wait that has no newest outcome was let go on by its machine.
            _ => match self.lookout.newest(event.thread, access) {
                Some(newest) => with_alternative(newest, event.alternative),
                None => released(0),
            },
        }
    }

    /// The number of lists of waits that are kept.
    #[cfg(test)]
    pub(crate) fn waits(&mut self) -> usize {
        self.lookout.model().waits.len()
    }

    fn find(&mut self, thread: ThreadId, operation: &Operation, site: Site) {
        self.found = Some(WeakStep {
            operation: *operation,
            site,
            thread,
        });
        self.lookout = Lookout::new(Graph::new(1));
    }
}

/// Whether the event is a `SeqCst` access, or one of an object that tells all it knows to those
/// that use it next.
///
/// Events of these kinds alone have no other outcome under C11. A graph of them would be no
/// execution under sequential consistency only if program order, reads-from, the orders of stores
/// and from-reads had a cycle. Between two accesses of the cycle lie program order, and what locks,
/// counts, spawns and joins synchronise, each of them on an object of its own. So each way from one
/// access to the next one is an edge of the partial order of `SeqCst` events, which has no cycle
/// (*Repairing Sequential Consistency in C/C++11*, section 3). A wait is no access of the program:
/// it stands for rounds of a loop that are left out, and their looks are the accesses before it.
fn is_strong(event: &Event) -> bool {
    use std::sync::atomic::Ordering::SeqCst;
    match event.operation.kind {
        OpKind::Load { order } | OpKind::Store { order, .. } => order == SeqCst,
        OpKind::Rmw { order, blind, .. } => order == SeqCst && !blind,
        OpKind::CompareExchange {
            success,
            failure,
            spurious,
            ..
        } => success == SeqCst && failure == SeqCst && !spurious,
        OpKind::Lock | OpKind::Unlock { .. } => true,
        OpKind::Retain | OpKind::Release { .. } => true,
        OpKind::Spawn { .. } | OpKind::Exit | OpKind::Join { .. } => true,
        OpKind::Wait { .. } => true,
        _ => false,
    }
}

/// Whether the thread waits for a change.
fn waits(blocked: &Blocked) -> bool {
    matches!(blocked.operation.kind, OpKind::Wait { .. })
}

/// The outcome of an operation on another object with this alternative. A wait has none.
fn with_alternative(outcome: memory::Outcome, alternative: u32) -> memory::Outcome {
    match outcome {
        memory::Outcome::Other { label, .. } if !label.is_wait() => {
            memory::Outcome::Other { alternative, label }
        }
        outcome => outcome,
    }
}
