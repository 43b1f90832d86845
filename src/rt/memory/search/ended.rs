//! What is known of an execution that has ended?
//!
//! What it has in common with the execution before is kept, so that a search pays for new events.

use super::super::{Access, MemoryModel, Outcome, StoreRef};
use super::{Level, Step};
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::memory::graph::Graph;
use crate::rt::memory::operation::OpKind;
use crate::rt::relation::independence::Label;

/// An event of the execution that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) step: Step,
    /// The number of its step in its thread.
    pub(super) index: u32,
    /// The number of the event in its thread, fences among them.
    time: u32,
    /// The label of an operation on another object.
    pub(super) label: Option<Label>,
    /// What it reads, if anything.
    pub(super) outcome: Outcome,
    /// Its place among the stores of its object, if it is a store: a store that is later in the
    /// modification order has a higher one.
    pub(super) rank: usize,
    pub(super) modifies: bool,
    /// Whether it is an await that does not read the last store of all.
    pub(super) is_stale: bool,
    /// The object that it writes, if it is a store.
    pub(super) writes: Option<ObjectId>,
}

/// The execution that has ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) made: Vec<Made>,
    /// For each thread where its steps are.
    pub(super) threads: Vec<Vec<u32>>,
    /// For each object where its stores are.
    stores: Vec<Vec<u32>>,
    /// For each event how many events of each thread it cannot be without.
    past: Vec<u32>,
    /// The number of threads that `past` has room for.
    width: usize,
    /// What threads have announced that are blocked.
    pub(super) blocked: Vec<(ThreadId, Access)>,
    pub(super) has_sequential: bool,
    /// The number of awaits.
    awaits: usize,
    /// Whether an await reads a store that is not the last one.
    pub(super) has_stale: bool,
    /// How many events the execution before had as well.
    pub(super) kept: usize,
    /// How many events of these are those of the current execution.
    valid: usize,
    /// The objects with new stores.
    changed: Vec<ObjectId>,
}

impl Ended {
    /// The current execution returns to so many steps.
    pub(super) fn cut(&mut self, steps: usize) {
        self.valid = self.valid.min(steps);
    }

    /// How many first steps are those of the last execution that was looked at.
    pub(super) fn valid(&self) -> usize {
        self.valid
    }

    /// Steps that were repeated have other operands: addresses differ from one execution to the
    /// next.
    pub(super) fn renew(&mut self, levels: &[Level]) {
        for (made, level) in self.made[..self.valid].iter_mut().zip(levels) {
            let (step, _) = level.made.as_ref().expect("the execution has come by");
            made.step.access = step.access;
        }
    }

    /// The execution that the model holds has ended.
    pub(super) fn update<M: MemoryModel>(
        &mut self,
        model: &M,
        levels: &[Level],
        blocked: Vec<(ThreadId, Access)>,
    ) {
        let graph = model.graph();
        let width = graph.threads().count();
        if width != self.width {
            self.valid = 0;
        }
        self.forget_after(self.valid);
        self.width = width;
        self.threads.resize_with(width, Vec::new);
        for number in self.valid..levels.len() - 1 {
            self.add(graph, &levels[number], levels[number + 1].start as u32 - 1);
        }
        self.rank_stores(graph);
        self.has_stale = self.awaits > 0 && self.find_stale(graph);
        self.blocked = blocked;
        self.has_sequential = !graph.sequential().is_empty();
        self.valid = self.made.len();
    }

    fn forget_after(&mut self, steps: usize) {
        while self.made.len() > steps {
            let made = self.made.pop().expect("there is an event");
            self.threads[made.step.thread.index()].pop();
            if let Some(object) = made.writes {
                self.stores[object.index()].pop();
            }
            self.awaits -= usize::from(made.step.access.waits());
        }
        self.past.truncate(steps * self.width);
    }

    /// Adds the event at this position of the graph, which is the step of this level.
    fn add(&mut self, graph: &Graph, level: &Level, position: u32) {
        let event = graph.at(position);
        let (step, outcome) = level.made.expect("the execution has come by");
        let writes = event.written.map(|_| event.object());
        let number = self.made.len() as u32;
        self.threads[step.thread.index()].push(number);
        if let Some(object) = writes {
            if self.stores.len() <= object.index() {
                self.stores.resize_with(object.index() + 1, Vec::new);
            }
            self.stores[object.index()].push(number);
            self.changed.push(object);
        }
        self.awaits += usize::from(step.access.waits());
        self.past.extend_from_slice(graph.past(position));
        self.made.push(Made {
            step,
            index: event.step,
            time: event.index,
            label: event.label(),
            outcome,
            rank: 0,
            modifies: event.modifies(),
            is_stale: false,
            writes,
        });
    }

    /// Finds the ranks of the stores of objects that have new ones.
    fn rank_stores(&mut self, graph: &Graph) {
        while let Some(object) = self.changed.pop() {
            for (&position, rank) in graph.stores(object).iter().zip(1..) {
                let event = graph.at(position);
                let number = self.threads[event.thread.index()][event.step as usize];
                self.made[number as usize].rank = rank;
            }
        }
    }

    /// Finds the awaits that do not read the last store, and says whether there are some.
    fn find_stale(&mut self, graph: &Graph) -> bool {
        let mut has_stale = false;
        for made in &mut self.made {
            if !made.step.access.waits() {
                continue;
            }
            let position = graph.steps_of(made.step.thread)[made.index as usize];
            let event = graph.at(position);
            let object = event.object();
            made.is_stale = event.is_access()
                && event.reads() != Some(graph.store_at(object, graph.last_place(object)));
            has_stale |= made.is_stale;
        }
        has_stale
    }

    /// Whether there are awaits.
    pub(super) fn has_awaits(&self) -> bool {
        self.awaits > 0
    }

    /// Whether the event at `later` cannot be without the one at `earlier`, or is that.
    pub(super) fn needs(&self, later: usize, earlier: usize) -> bool {
        let Made { step, time, .. } = self.made[earlier];
        self.past[later * self.width + step.thread.index()] > time
    }

    /// The events that write this atomic.
    pub(super) fn stores(
        &self,
        object: ObjectId,
    ) -> impl DoubleEndedIterator<Item = usize> + Clone {
        let stores = self
            .stores
            .get(object.index())
            .map_or(&[][..], Vec::as_slice);
        stores.iter().map(|&store| store as usize)
    }

    /// The first event of the thread at `first` or behind it.
    pub(super) fn next_of(&self, thread: ThreadId, first: usize) -> Option<usize> {
        let mine = self.threads.get(thread.index())?;
        let at = mine.partition_point(|&event| (event as usize) < first);
        mine.get(at).map(|&event| event as usize)
    }

    /// Where an event of the execution is.
    pub(super) fn number(&self, thread: ThreadId, index: u32) -> usize {
        self.threads[thread.index()][index as usize] as usize
    }

    /// The rank of a store; 0 for an initial value.
    pub(super) fn rank(&self, store: StoreRef) -> usize {
        (store.event()).map_or(0, |(thread, index)| {
            self.made[self.number(thread, index)].rank
        })
    }

    /// The operation of a thread behind all events that do not need the one at `first`, and the
    /// number of its step in the thread.
    pub(super) fn next_without(&self, thread: ThreadId, first: usize) -> Option<(Access, u32)> {
        let mine = self.threads.get(thread.index())?;
        let made = mine.partition_point(|&event| {
            let event = event as usize;
            event < first || !self.needs(event, first)
        });
        let access = self.access(thread, made as u32)?;
        Some((access, made as u32))
    }

    /// Where the thread was spawned, if it was.
    pub(super) fn spawn_of(&self, thread: ThreadId) -> Option<usize> {
        self.made.iter().position(|made| {
            matches!(made.step.access.operation.kind, OpKind::Spawn { child } if child == thread)
        })
    }

    /// What the thread does behind so many of its events.
    pub(super) fn access(&self, thread: ThreadId, made: u32) -> Option<Access> {
        let positions = (self.threads.get(thread.index())).map_or(&[][..], Vec::as_slice);
        match positions.get(made as usize) {
            Some(&position) => Some(self.made[position as usize].step.access),
            None if made as usize == positions.len() => {
                let blocked = self.blocked.iter().find(|(other, _)| *other == thread);
                blocked.map(|&(_, access)| access)
            }
            None => None,
        }
    }

    /// What the thread does next, and the number of that step in the thread, in a graph with events
    /// of this execution. `None` if the thread is not there or has come to its end.
    pub(super) fn next_in(&self, graph: &Graph, thread: ThreadId) -> Option<(Access, u32)> {
        if graph.spawn_of(thread).is_none() && self.spawn_of(thread).is_some() {
            return None;
        }
        let made = graph.made(thread);
        Some((self.access(thread, made)?, made))
    }
}

/// The events that are left of `rest` without those that need one of `gone`.
pub(super) fn without(ended: &Ended, rest: &[usize], gone: &[usize]) -> Vec<usize> {
    let stays = |&event: &usize| !gone.iter().any(|&gone| ended.needs(event, gone));
    rest.iter().copied().filter(stays).collect()
}
