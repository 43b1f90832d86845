//! What is known of an execution that has ended?

use super::super::{Access, MemoryModel, Outcome};
use super::{Level, Step};
use crate::rt::event::id::{ObjectId, ThreadId};
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
    /// Its place in the final modification order, if it is a store.
    pub(super) rank: usize,
    pub(super) modifies: bool,
    /// Whether it is an await that does not read the last store of all.
    pub(super) is_stale: bool,
}

/// The execution that has ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) made: Vec<Made>,
    /// For each thread where its steps are.
    pub(super) threads: Vec<Vec<u32>>,
    /// For each event how many events of each thread it cannot be without.
    pub(super) past: Vec<Vec<u32>>,
    /// What threads have announced that are blocked.
    pub(super) blocked: Vec<(ThreadId, Access)>,
    pub(super) has_sequential: bool,
    /// Whether an await reads a store that is not the last one.
    pub(super) has_stale: bool,
    /// How many events the execution before had as well.
    pub(super) kept: usize,
}

impl Ended {
    pub(super) fn of<M: MemoryModel>(
        model: &M,
        levels: &[Level],
        blocked: Vec<(ThreadId, Access)>,
    ) -> Ended {
        let graph = model.graph();
        let steps = || (0..graph.len() as u32).filter(|&position| graph.is_step(position));
        let mut numbers = vec![u32::MAX; graph.len()];
        for (number, position) in (0..).zip(steps()) {
            numbers[position as usize] = number;
        }
        let events = steps().map(|position| graph.at(position)).zip(levels);
        let made = events.map(|(event, level)| {
            let (step, outcome) = level.made.expect("the execution has come by");
            let object = event.object();
            let last = event.is_access().then(|| graph.last_place(object));
            Made {
                step,
                index: event.step,
                time: event.index,
                label: event.label(),
                outcome,
                rank: match event.written {
                    Some(_) => graph.place(object, event.name()),
                    None => 0,
                },
                modifies: event.modifies(),
                is_stale: event.access.waits()
                    && event.is_access()
                    && event.reads().map(|store| graph.place(object, store)) != last,
            }
        });
        let made: Vec<Made> = made.collect();
        Ended {
            has_stale: made.iter().any(|made| made.is_stale),
            made,
            threads: graph
                .threads()
                .map(|t| {
                    let steps = graph.steps_of(t).iter();
                    steps.map(|&step| numbers[step as usize]).collect()
                })
                .collect(),
            past: steps().map(|p| graph.past(p).to_vec()).collect(),
            blocked,
            has_sequential: !graph.sequential().is_empty(),
            kept: 0,
        }
    }

    /// Whether the event at `later` cannot be without the one at `earlier`, or is that.
    pub(super) fn needs(&self, later: usize, earlier: usize) -> bool {
        let Made { step, time, .. } = self.made[earlier];
        self.past[later][step.thread.index()] > time
    }

    /// The events that write this atomic.
    pub(super) fn stores(&self, object: ObjectId) -> impl Iterator<Item = usize> {
        let made = self.made.iter().enumerate();
        made.filter_map(move |(at, made)| {
            let writes = made.modifies || matches!(made.outcome, Outcome::Behind(_));
            (writes && made.step.access.operation.object == object).then_some(at)
        })
    }

    /// The operation of a thread behind all events that do not need the one at `first`.
    pub(super) fn next_without(&self, thread: ThreadId, first: usize) -> Option<Access> {
        let mine = self.threads.get(thread.index())?;
        let made = mine.partition_point(|&event| {
            let event = event as usize;
            event < first || !self.needs(event, first)
        });
        self.access(thread, made as u32)
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
}

/// The events that are left of `rest` without those that need one of `gone`.
pub(super) fn without(ended: &Ended, rest: &[usize], gone: &[usize]) -> Vec<usize> {
    let stays = |&event: &usize| !gone.iter().any(|&gone| ended.needs(event, gone));
    rest.iter().copied().filter(stays).collect()
}
