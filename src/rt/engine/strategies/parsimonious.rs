//! How is every trace explored exactly once without wakeup trees?
//!
//! \[POP\] *Parsimonious Optimal DPOR* (CAV 2024), Algorithm 2. When an execution has ended, the
//! search finds the sequences that reverse its races ([`schedules`]): each at one place only, so
//! that no list of those found before is needed. A sequence is explored at once, and everything
//! below it, before the next one. What is suspended meanwhile is an execution, with the schedules
//! that it has found. So memory grows with the depth of the search and not with the number of
//! traces that are planned. Sleep sets are computed from the paths ([`order`]) and not kept.
//!
//! Deviations from the paper, by number:
//! 1. Objects may block, come out differently, and count; events may be choices. [`schedules`] and
//!    [`order`] say how.
//! 2. The paper's recursion is a stack of suspended executions here.
//! 3. A run may get stuck where the default was shut out ([`preference`]). It counts as pruned, and
//!    its nodes are searched like others.

mod order;
mod path;
mod preference;
mod saved;
mod schedules;

use std::rc::Rc;

use crate::rt::engine::checkpoint::Unfinished;
use crate::rt::engine::plan::Plan;
use crate::rt::engine::stats::Stats;
use crate::rt::engine::strategies::parsimonious::path::{
    Cut, Item, OnPath, Path, PathEvent, Record,
};
use crate::rt::engine::strategies::parsimonious::schedules::Child;
use crate::rt::engine::{Choice, Execution, Explorer, Point, TieBreak};
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{Outcome, Step};
use crate::rt::event::verdict::Pruned;
use crate::rt::event::{NOWHERE, Trace};

use path::Link;

/// The explorer that visits each trace once, and keeps no trees.
#[derive(Default)]
pub(crate) struct Parsimonious {
    free: TieBreak,
    #[cfg(test)]
    sequence: Sequence,
    path: Path,
    /// The frame of the current execution.
    current: Frame,
    /// The frames of suspended executions, each with the part of its path that is not in the path
    /// of the frame above.
    suspended: Vec<(Frame, Cut)>,
    /// The number of events up to the end of the last schedule of the current execution.
    planned: u32,
    /// The number of events at the beginning of the driver's trace that are those of the path.
    shared: u32,
    /// Whether a record may put the next step of the current execution to sleep.
    may_sleep: bool,
    /// Whether an execution had a step that may come last, or there was none yet.
    prefers: bool,
    has_late: bool,
    /// Whether the last execution was the first one with such a step.
    is_first_late: bool,
    /// The number of bytes that the suspended executions hold, without their records.
    bytes: usize,
    started: bool,
    /// Whether an execution was made since then, or since the search continues from a checkpoint.
    has_run: bool,
}

/// An execution, and the schedules that it has found and not yet explored.
#[derive(Default, Debug)]
struct Frame {
    /// The number of events that its path shares with that of the frame below.
    base: u32,
    /// The next one is the last.
    children: Vec<Child>,
    /// What other explorers have explored already of what comes behind the schedules.
    later: Stats,
}

/// The sequence in which an execution's schedules are explored. Any sequence is right.
#[cfg(test)]
#[derive(Clone, Copy, Default, Debug)]
pub(crate) enum Sequence {
    /// Those of the last node first.
    #[default]
    LastFirst,
    FirstFirst,
    Shuffled(u64),
}

impl Parsimonious {
    pub(crate) fn new(free: TieBreak) -> Parsimonious {
        Parsimonious {
            free,
            prefers: true,
            ..Parsimonious::default()
        }
    }

    #[cfg(test)]
    pub(crate) fn in_sequence(free: TieBreak, sequence: Sequence) -> Parsimonious {
        Parsimonious {
            sequence,
            ..Parsimonious::new(free)
        }
    }

    /// Makes the path that of the topmost execution with a schedule left; false if there is none.
    fn resume_suspended(&mut self) -> bool {
        while self.current.children.is_empty() {
            let Some(top) = self.suspended.pop() else {
                return false;
            };
            self.bytes -= suspended_bytes(&top);
            let (frame, cut) = top;
            let base = self.current.base;
            self.path.truncate(base);
            self.shared = self.shared.min(base);
            self.path.restore(cut);
            self.current = frame;
        }
        true
    }

    /// Suspends the current execution, and cuts its path off behind `length` events, where another
    /// one leaves it.
    fn leave(&mut self, length: u32) {
        let Frame {
            base,
            children,
            later,
        } = std::mem::take(&mut self.current);
        self.current.later = later;
        if !children.is_empty() {
            let frame = Frame {
                base,
                children,
                later,
            };
            let suspended = (frame, self.path.cut(length));
            self.bytes += suspended_bytes(&suspended);
            self.suspended.push(suspended);
            self.current.base = length;
            return;
        }
        // Nothing is left of the execution. The frame below it shares less with the next one.
        let cut = self.path.cut(length);
        self.current.base = base.min(length);
        if length < base
            && let Some(below) = self.suspended.last_mut()
        {
            self.bytes -= suspended_bytes(below);
            let events = (base - length) as usize;
            let Cut {
                events: behind,
                records: later,
            } = &mut below.1;
            behind.splice(0..0, cut.events[..events].iter().copied());
            let records = cut.records.iter().filter(|on| on.record.start < base);
            later.splice(0..0, records.cloned());
            self.bytes += suspended_bytes(below);
        }
    }

    /// What is left, if `children` are the schedules of the current execution and this is its path.
    fn saved(
        &self,
        children: &[Child],
        path: (&[PathEvent], &[OnPath]),
        has_late: bool,
    ) -> Unfinished {
        let mut table = saved::Table::default();
        let mut frames = Vec::new();
        for (frame, Cut { events, records }) in &self.suspended {
            let own = (frame.base, frame.later);
            frames.push(table.frame(own, &frame.children, (events, records)));
        }
        let own = (self.current.base, self.current.later);
        frames.push(table.frame(own, children, path));
        Unfinished {
            suspended: table.with(frames, has_late),
            ..Unfinished::default()
        }
    }

    /// The path of the execution that was suspended first.
    fn bottom(&self) -> Cut {
        let Path { events, records } = &self.path;
        let mut path = Cut {
            events: events.clone(),
            records: records.clone(),
        };
        let mut base = self.current.base;
        for (frame, cut) in self.suspended.iter().rev() {
            path.lengthen(base, cut);
            base = frame.base;
        }
        path
    }

    /// Appends the events of the trace that the path does not have.
    fn follow(&mut self, trace: &Trace) {
        let from = self.path.events.len();
        let events = trace.events()[from.min(trace.len())..].iter();
        self.path.events.extend(events.map(PathEvent::of));
        self.path.close(from as u32);
    }

    /// Whether the step completes a schedule that another branch explores.
    fn is_asleep(&self, at: &Point<'_>, step: Step) -> bool {
        let Some(event) = predicted(at, step) else {
            return false;
        };
        let relation = (&at.machine.sets, &at.machine.names);
        let length = self.path.events.len() as u32;
        self.path.asleep_at(length).any(|record| {
            let events = &self.path.events[record.start as usize..];
            order::is_asleep(relation, record, events, &event)
        })
    }

    /// The first outcome of the enabled thread's operation that is not asleep.
    fn awake(&self, at: &Point<'_>, thread: ThreadId) -> Option<Step> {
        if at.machine.is_to_begin(thread) {
            return Some(Step::of(thread));
        }
        let mut steps = (0..at.machine.alternatives(thread)).map(|alternative| Step {
            thread,
            alternative,
        });
        steps.find(|&step| !self.is_asleep(at, step))
    }
}

/// The event that the step of an enabled thread would be; `None` if it is a wait that was released,
/// which is dependent with nothing.
fn predicted(at: &Point<'_>, step: Step) -> Option<PathEvent> {
    let machine = at.machine;
    if machine.was_let_go_at(step.thread).is_some() {
        return None;
    }
    let kind = &machine.pending(step.thread)?.operation.kind;
    Some(PathEvent {
        thread: step.thread,
        index: machine.events_of(step.thread),
        alternative: step.alternative,
        label: machine.predict(step)?,
        link: Link::of(kind, Outcome::Done),
    })
}

impl Explorer for Parsimonious {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        if !self.started {
            self.started = true;
            return true;
        }
        if !self.resume_suspended() {
            return false;
        }
        let Some(child) = self.current.children.pop() else {
            return false;
        };
        let Child {
            default,
            node,
            schedule,
            site,
        } = child;
        let record = Rc::new(Record {
            start: default,
            default: self.path.events[default as usize],
            way: self.path.items(default + 1, node),
            schedule,
        });
        self.leave(default);
        let kept = self.shared.min(default);
        plan.common_prefix = kept as usize;
        plan.repeated = (default - kept) as usize;
        plan.replaces = site.filter(|_| plan.repeated > 0);
        let repeated = self.path.events[kept as usize..].iter();
        let steps = repeated.chain(&*record.schedule);
        plan.steps
            .extend(steps.map(|event| (event.step(), Some(event.label))));
        self.planned = record.end();
        self.shared = kept;
        self.path.records.push(OnPath {
            record: record.clone(),
            over_at: NOWHERE,
        });
        // Most defaults end their records, or the heads do.
        self.may_sleep = self.path.records.iter().any(|on| {
            let ends = |event: &PathEvent| path::ends(&on.record, event);
            on.over_at == NOWHERE && !record.schedule.iter().any(ends)
        });
        true
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        self.follow(at.trace);
        let length = self.path.events.len() as u32;
        let latest = self.path.asleep_at(length).last();
        let waker = latest.map(|record| record.default.thread);
        self.may_sleep = waker.is_some();
        let is_awake = |thread| self.awake(at, thread).is_some();
        let is_first = |thread| !preference::is_late(at, thread) && is_awake(thread);
        let mut free = self.free;
        // Mostly the default ends its record, and then the rest of the execution is free.
        let waker = waker.filter(|&waker| {
            free == TieBreak::Last && at.machine.enabled(waker) && is_first(waker)
        });
        let thread = waker.or_else(|| free.pick(at, is_first));
        let thread = thread.or_else(|| free.pick(at, is_awake));
        self.free = free;
        let step = thread.and_then(|thread| self.awake(at, thread));
        match step {
            Some(step) => Choice::Run(step),
            None if at.enabled().next().is_none() => Choice::NothingEnabled,
            None => Choice::Prune(Pruned::Asleep),
        }
    }

    fn lets_the_last_go_on(&self) -> bool {
        self.free == TieBreak::Last && !self.may_sleep && !self.prefers
    }

    fn finish(&mut self, execution: &Execution<'_>) {
        let trace = execution.trace;
        self.has_run = true;
        // A failure may end the execution in the middle of what was planned.
        let known = self.path.records.last().map_or(0, |on| on.record.start);
        self.path.events.truncate(known as usize);
        self.follow(trace);
        self.shared = trace.len() as u32;
        self.prefers = self.has_late || {
            let new = trace.events()[known as usize..].iter();
            let operations = new.map(|event| &event.operation.kind);
            let blocked = execution
                .blocked
                .iter()
                .map(|blocked| &blocked.operation.kind);
            let sets = &execution.machine.sets;
            operations
                .chain(blocked)
                .any(|kind| preference::may_be_late(sets, kind))
        };
        self.is_first_late = self.prefers && !self.has_late;
        self.has_late = self.prefers;
        if trace.len() < self.planned as usize {
            return;
        }
        let node = self.planned.saturating_sub(1);
        let mut children = schedules::find(execution, &self.path, node);
        children.reverse();
        #[cfg(test)]
        self.sequence.arrange(&mut children);
        self.current.children = children;
    }

    fn unfinished(&self, _trace: &Trace) -> Option<Unfinished> {
        // Directly after `resume` nothing is new.
        if !self.has_run || !self.more() {
            return None;
        }
        let Path { events, records } = &self.path;
        Some(self.saved(&self.current.children, (events, records), self.has_late))
    }

    fn unfinished_with_last(&self) -> Option<Unfinished> {
        let (on, before) = self.path.records.split_last()?;
        let record = &on.record;
        // The record knows the path to the node where it was found.
        let mut events = self.path.events[..record.start as usize].to_vec();
        let mut records = before.to_vec();
        events.push(record.default);
        for item in &record.way {
            match item {
                Item::Default(event) => events.push(*event),
                Item::Schedule(inner) => {
                    events.extend(&*inner.schedule);
                    records.push(OnPath {
                        record: inner.clone(),
                        over_at: NOWHERE,
                    });
                }
            }
        }
        let last = Child {
            default: record.start,
            node: events.len() as u32 - 1,
            schedule: record.schedule.clone(),
            site: None,
        };
        let has_late = self.has_late && !self.is_first_late;
        Some(self.saved(&[last], (&events, &records), has_late))
    }

    fn take_over(&mut self, unfinished: &Unfinished) -> bool {
        (self.started, self.has_run) = (true, true);
        self.has_late = unfinished.suspended.has_late;
        self.prefers = self.has_late;
        unfinished.suspended.frames.is_empty() || self.resume(unfinished)
    }

    fn resume(&mut self, unfinished: &Unfinished) -> bool {
        let Some(mut frames) = saved::restore(&unfinished.suspended) else {
            return false;
        };
        let Some((current, path)) = frames.pop() else {
            return false;
        };
        self.path.restore(path);
        self.current = current;
        self.suspended = frames;
        self.bytes = self.suspended.iter().map(suspended_bytes).sum();
        self.has_late = unfinished.suspended.has_late;
        (self.prefers, self.started) = (self.has_late, true);
        self.more()
    }

    fn can_split(&self) -> bool {
        let frames = self.suspended.iter().map(|(frame, _)| frame);
        let children = frames.chain([&self.current]).map(|it| it.children.len());
        let mut left = children.filter(|&left| left > 0);
        left.next().is_some_and(|left_below| left_below > 1) || left.next().is_some()
    }

    fn split(&mut self) -> Option<Unfinished> {
        if !self.can_split() {
            return None;
        }
        // An execution without schedules may only hold a part of the path of the one below it.
        let is_empty = |(frame, _): &(Frame, Cut)| frame.children.is_empty();
        while self.suspended.first().is_some_and(is_empty) {
            self.suspended.remove(0);
        }
        let path = self.bottom();
        let above = self.suspended.iter().skip(1).map(|(frame, _)| frame);
        let mut above = above.chain((!self.suspended.is_empty()).then_some(&self.current));
        let is_the_last = above.all(|frame| frame.children.is_empty());
        let bottom = self.suspended.first_mut().map(|(frame, _)| frame);
        let bottom = bottom.unwrap_or(&mut self.current);
        // The children are explored from the end on.
        let given = bottom.children.len() - usize::from(is_the_last);
        let children: Vec<Child> = bottom.children.drain(..given).collect();
        let later = bottom.later;
        if !is_the_last {
            self.suspended.remove(0);
        }
        self.bytes = self.suspended.iter().map(suspended_bytes).sum();
        let mut table = saved::Table::default();
        let frame = table.frame((0, later), &children, (&path.events, &path.records));
        Some(Unfinished {
            suspended: table.with(vec![frame], self.has_late),
            ..Unfinished::default()
        })
    }

    fn branches(&self) -> Vec<(u32, Unfinished)> {
        let mut path = Cut {
            events: self.path.events.clone(),
            records: self.path.records.clone(),
        };
        let mut branches = Vec::new();
        let mut add = |frame: &Frame, path: &Cut| {
            // The last one is the next.
            for child in frame.children.iter().rev() {
                let mut table = saved::Table::default();
                let (events, records) = (&path.events, &path.records);
                let alone = std::slice::from_ref(child);
                let frame = table.frame((0, frame.later), alone, (events, records));
                let suspended = table.with(vec![frame], self.has_late);
                let unfinished = Unfinished {
                    suspended,
                    ..Unfinished::default()
                };
                branches.push((child.default, unfinished));
            }
        };
        add(&self.current, &path);
        let mut base = self.current.base;
        for (frame, cut) in self.suspended.iter().rev() {
            path.lengthen(base, cut);
            add(frame, &path);
            base = frame.base;
        }
        branches.reverse();
        branches
    }

    fn later(&self) -> Stats {
        self.current.later
    }

    fn has_changed_preference(&self) -> bool {
        self.is_first_late
    }

    fn more(&self) -> bool {
        !self.started
            || !self.current.children.is_empty()
            || self
                .suspended
                .iter()
                .any(|(frame, _)| !frame.children.is_empty())
    }

    fn memory(&self) -> usize {
        let current = children_bytes(&self.current.children);
        self.bytes + self.path.bytes() + current
    }
}

/// The number of bytes that hold these schedules.
fn children_bytes(children: &[Child]) -> usize {
    let events: usize = children.iter().map(|child| child.schedule.len()).sum();
    size_of_val(children) + events * size_of::<PathEvent>()
}

/// The number of bytes that hold a suspended execution.
fn suspended_bytes((frame, cut): &(Frame, Cut)) -> usize {
    children_bytes(&frame.children) + cut.bytes()
}

#[cfg(test)]
impl Sequence {
    fn arrange(&mut self, children: &mut [Child]) {
        match self {
            Sequence::LastFirst => {}
            Sequence::FirstFirst => children.reverse(),
            Sequence::Shuffled(seed) => {
                for at in (1..children.len()).rev() {
                    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    children.swap(at, (*seed >> 33) as usize % (at + 1));
                }
            }
        }
    }
}
