//! Which schedules are found at a node?
//!
//! \[POP\] section 4.1, *parsimonious reversal*. A default e is reversed by an operation that is
//! pending at a node below it. In place of e come a downward closed set S of the events behind e
//! that do not happen after e, and then the operation f with the past S. The schedule is found at
//! this node only if S contains the last event of the node, and all events of the schedules behind
//! e. So it is found at one node, and no list of earlier schedules is needed.
//!
//! Deviations from the paper, which has reads and writes that are always enabled:
//! 1. e is paired with each thread's pending operation, not with an event behind e. An operation
//!    that e has shut out for good, or that comes out differently without e, is then no special
//!    case. Its label is the one that it has behind S without e.
//! 2. One operation may have several sets S: a store that is to precede a load may come behind any
//!    set of other loads.
//! 3. The other outcomes of e itself are schedules of one event, found directly behind e.
//! 4. Releases that make e the last one together are a schedule without a head of its own
//!    ([`order`]).

use crate::rt::engine::Execution;
use crate::rt::engine::relabel::{relabel, state_before};
use crate::rt::engine::sequence::ReversedEvent;
use crate::rt::engine::strategies::parsimonious::order;
use crate::rt::engine::strategies::parsimonious::path::{Link, Path, PathEvent, Schedule};
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{ObjectKind, OpKind, Operation, Outcome, Step};
use crate::rt::event::{NOWHERE, Site};
use crate::rt::object::State;
use crate::rt::relation::independence::{Class, Label, Nature, commutes, ordered};

/// A schedule that is still to be explored.
#[derive(Debug)]
pub(super) struct Child {
    /// The position of the default that it replaces.
    pub(super) default: u32,
    /// The position of the last event of the node where it was found.
    pub(super) node: u32,
    pub(super) schedule: Schedule,
    /// The place of the default in the source.
    pub(super) site: Option<Site>,
}

/// The pending operation of a thread at a node.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    thread: ThreadId,
    operation: Operation,
    /// The event before it: of its own thread, or the spawn.
    predecessor: Option<u32>,
    /// The number of events after which the operation is a wait that was released.
    released: u32,
    /// The position of the operation, if it was made before the node.
    made: Option<u32>,
}

/// The search for the schedules of one execution.
struct Search<'a> {
    execution: &'a Execution<'a>,
    path: &'a Path,
    /// For each thread the operation that is pending at the node, if the thread is spawned there.
    pending: Vec<Option<Waiting>>,
    /// All threads, in the order in which their operations are looked at.
    threads: Vec<ThreadId>,
    /// The buffer of [`Search::reverse`].
    base: Vec<u32>,
    found: Vec<Child>,
}

/// Finds the schedules of the nodes behind each event from the position `from` on, the last node
/// first.
pub(super) fn find(execution: &Execution<'_>, path: &Path, from: u32) -> Vec<Child> {
    let Execution {
        trace,
        machine,
        blocked,
        ..
    } = *execution;
    let mut search = Search {
        execution,
        path,
        pending: vec![None; trace.threads()],
        threads: machine.names.in_order(),
        base: Vec::new(),
        found: Vec::new(),
    };
    for blocked in blocked {
        let thread = blocked.thread;
        search.pending[thread.index()] = Some(Waiting {
            thread,
            operation: blocked.operation,
            predecessor: trace.predecessor_of_next(thread),
            released: machine.was_let_go_at(thread).unwrap_or(NOWHERE),
            made: None,
        });
    }
    for node in (from..trace.len() as u32).rev() {
        search.look_at(node);
        let thread = trace.at(node).thread;
        search.pending[thread.index()] = Some(search.made(node));
    }
    search.found
}

impl Search<'_> {
    /// Finds the schedules of the node behind the event at `node`.
    fn look_at(&mut self, node: u32) {
        let last = *self.execution.trace.at(node);
        if last.alternatives > 1 && self.is_open(node) {
            for alternative in (0..last.alternatives).filter(|&it| it != last.alternative) {
                self.choose(node, alternative);
            }
        }
        for at in 0..self.threads.len() {
            let pending = self.pending.get(self.threads[at].index());
            let Some(waiting) = pending.copied().flatten() else {
                continue;
            };
            // The thread may not be spawned yet.
            if waiting.predecessor.is_some_and(|at| at > node) {
                continue;
            }
            // The last event is in the past of the schedule's head. No event is behind it, so it is
            // the one before the head, or dependent with the head.
            let is_next = waiting.predecessor == Some(node);
            let sets = &self.execution.machine.sets;
            let touches = |object: ObjectId| {
                if let Some(set) = self.execution.clocks.set_of(sets, last.label) {
                    set.contains(&object)
                } else {
                    last.label.touches_one() && last.label.object() == object
                }
            };
            match waiting.operation.kind {
                OpKind::Wait { set, .. } => {
                    let objects = sets.get(set);
                    if is_next || objects.iter().any(|&object| touches(object)) {
                        objects.iter().for_each(|&it| self.pair(node, &waiting, it));
                    }
                }
                OpKind::Atomically { footprint } => {
                    let label = Label::of(ObjectId(footprint), Class::Block);
                    if is_next || !commutes(sets, label, last.label) {
                        self.pair_block(node, &waiting, label);
                    }
                }
                _ => {
                    let object = waiting.operation.object;
                    if object != ObjectId::NONE && (is_next || touches(object)) {
                        self.pair(node, &waiting, object);
                    }
                }
            }
        }
        if last.label.touches_one()
            && self.execution.machine.kind(last.label.object()) == Some(ObjectKind::Channel)
        {
            self.look_at_made(node, last.label.object());
        }
    }

    /// Finds the schedules of the node with an operation on the channel that was made before.
    ///
    /// A receive that finds nothing depends on more events than the receive of a message. If S
    /// contains the drop of a sender, and not the send of the message, the receive commutes with
    /// the drop below the default, and depends on it behind S. So where the drop has happened, the
    /// receive need not be pending any more.
    fn look_at_made(&mut self, node: u32, channel: ObjectId) {
        let Execution { trace, clocks, .. } = *self.execution;
        let (earlier, _) = clocks.split_on(channel, node);
        for &made in earlier.iter().rev() {
            let event = trace.at(made);
            if event.thread == trace.at(node).thread || clocks.before(made, node) {
                continue;
            }
            let waiting = Waiting {
                made: Some(made),
                ..self.made(made)
            };
            self.pair(node, &waiting, channel);
        }
    }

    /// The operation of the event at `position`, as one that is pending.
    fn made(&self, position: u32) -> Waiting {
        let event = self.execution.trace.at(position);
        Waiting {
            thread: event.thread,
            operation: event.operation,
            predecessor: self.execution.trace.predecessor(position),
            released: match event.outcome {
                Outcome::Released { quiescent_at } => quiescent_at as u32,
                _ => NOWHERE,
            },
            made: None,
        }
    }

    /// Whether the event is a default, and schedules may come in its place.
    fn is_open(&self, position: u32) -> bool {
        !self.path.is_planned(position) && !self.execution.is_frozen(position as usize)
    }

    /// The event at `node` with another outcome.
    fn choose(&mut self, node: u32, alternative: u32) {
        let waiting = self.made(node);
        let state = |object| state_before(self.execution, node, object);
        if let Some(head) = self.head(&waiting, alternative, state)
            && !head.is_same(&self.path.events[node as usize])
        {
            self.add(node, node, Vec::new(), head);
        }
    }

    /// The pending operation as an event with this outcome, where objects have these states.
    fn head(
        &self,
        waiting: &Waiting,
        alternative: u32,
        state: impl Fn(ObjectId) -> State,
    ) -> Option<PathEvent> {
        let event = ReversedEvent {
            step: Step {
                thread: waiting.thread,
                alternative,
            },
            operation: waiting.operation,
            predecessor: waiting.predecessor,
            race: None,
        };
        Some(PathEvent {
            thread: waiting.thread,
            index: event.index(self.execution),
            alternative,
            label: relabel(self.execution, &event, state)?,
            link: Link::of(&waiting.operation.kind, Outcome::Done),
        })
    }

    /// Pairs a pending block with the defaults that it may not be swapped with. Several of its
    /// objects may have the same event, which is another block.
    fn pair_block(&mut self, node: u32, waiting: &Waiting, label: Label) {
        let Execution {
            trace,
            clocks,
            machine,
            ..
        } = *self.execution;
        for first in (0..=node).rev() {
            let event = trace.at(first);
            let is_behind = waiting
                .predecessor
                .is_some_and(|predecessor| clocks.before(first, predecessor));
            let precedes = first != node && clocks.before(first, node);
            let is_other = event.thread != waiting.thread;
            if !is_behind
                && !precedes
                && is_other
                && !commutes(&machine.sets, label, event.label)
                && self.is_open(first)
            {
                self.reverse(node, first, waiting);
            }
        }
    }

    /// Pairs the pending operation with the defaults on one of its objects.
    fn pair(&mut self, node: u32, waiting: &Waiting, object: ObjectId) {
        let Execution { trace, clocks, .. } = *self.execution;
        let (earlier, _) = clocks.split_on(object, node + 1);
        for &first in earlier.iter().rev() {
            let event = trace.at(first);
            let is_behind = waiting
                .predecessor
                .is_some_and(|predecessor| clocks.before(first, predecessor));
            let precedes = first != node && clocks.before(first, node);
            if is_behind || precedes {
                if event.label.is_total_on(object) {
                    // So are all events on the object before it.
                    return;
                }
                continue;
            }
            let is_past =
                first >= waiting.released || waiting.made.is_some_and(|made| made < first);
            if event.thread != waiting.thread && !is_past && self.is_open(first) {
                self.reverse(node, first, waiting);
            }
        }
    }

    /// Finds the schedules in which the pending operation comes in place of the default at `first`.
    fn reverse(&mut self, node: u32, first: u32, waiting: &Waiting) {
        let Execution {
            trace,
            clocks,
            machine,
            ..
        } = *self.execution;
        let (default, kind) = (trace.at(first).label, &waiting.operation.kind);
        let object = waiting.operation.object;
        // Many pairs commute whatever S is.
        let label = match kind {
            OpKind::Wait { .. } => None,
            OpKind::Retain => Some(Label::of(object, Class::Retain)),
            OpKind::Release { told: false } if default.class() == Class::DropQuiet => {
                Some(Label::of(object, Class::DropQuiet))
            }
            OpKind::Release { .. } if default.class() == Class::Retain => return,
            kind if kind.is_always_alike() => {
                Some(Label::new(object, kind, Outcome::Done, Nature::Plain))
            }
            _ => None,
        };
        if label.is_some_and(|label| commutes(&machine.sets, label, default)) {
            return;
        }
        // The number of events of each thread in S or before the default.
        let mut base = std::mem::take(&mut self.base);
        base.clear();
        base.resize(trace.threads(), 0);
        if node != first {
            // Not fresh: an event that S must contain happens after the default.
            for on in &self.path.records {
                for at in on.record.start.max(first)..on.record.end().min(node + 1) {
                    if clocks.before(first, at) {
                        self.base = base;
                        return;
                    }
                    clocks.join_into(at, &mut base);
                }
            }
            clocks.join_into(node, &mut base);
        }
        if let Some(predecessor) = waiting.predecessor {
            clocks.join_into(predecessor, &mut base);
        }
        let is_in = |made| trace.at(made).index < base[waiting.thread.index()];
        if !waiting.made.is_some_and(is_in) {
            let optional = self.optional(node, first, waiting, &base);
            let mut without = Vec::from_iter(waiting.made);
            let spare = self.spare(node, first, waiting);
            let pair = (node, first, waiting);
            if spare.is_none_or(|spare| spare >= 0) {
                self.enlarge(pair, &optional, &base, &mut without, spare);
            }
        }
        self.base = base;
    }

    /// The number of releases that S may leave out, if the default and the operation commute unless
    /// they are the last two releases. There are so many sets that a search has to stop early.
    fn spare(&self, node: u32, first: u32, waiting: &Waiting) -> Option<i64> {
        let Execution {
            trace,
            clocks,
            machine,
            ..
        } = *self.execution;
        let default = trace.at(first).label;
        let is_counted = match waiting.operation.kind {
            OpKind::Arrive | OpKind::Release { told: true } => true,
            OpKind::Release { told: false } => {
                let state = machine.state(waiting.operation.object);
                matches!(state, State::Count { observed: true, .. })
            }
            _ => false,
        };
        if !is_counted || !default.has_count() || default.count() == 1 {
            return None;
        }
        let (_, later) = clocks.split_on(default.object(), first + 1);
        let behind = later.iter().take_while(|&&at| at <= node);
        let releases =
            behind.filter(|&&at| trace.at(at).label.has_count() && !clocks.before(first, at));
        // The operation itself is one more.
        Some(releases.count() as i64 + 1 - (i64::from(default.count()) - 1))
    }

    /// The events that S may contain or not: those on the objects of the operation that do not
    /// happen after the default.
    fn optional(&self, node: u32, first: u32, waiting: &Waiting, base: &[u32]) -> Vec<u32> {
        let clocks = self.execution.clocks;
        let mut optional = Vec::new();
        let mut add = |object| {
            let (_, later) = clocks.split_on(object, first + 1);
            for &at in later.iter().take_while(|&&at| at <= node) {
                let event = self.execution.trace.at(at);
                let is_in = event.index < base[event.thread.index()];
                if !is_in && !clocks.before(first, at) {
                    optional.push(at);
                }
            }
        };
        match waiting.operation.kind {
            OpKind::Wait { set, .. } => {
                let sets = &self.execution.machine.sets;
                sets.get(set).iter().for_each(|&object| add(object));
            }
            OpKind::Atomically { footprint } => {
                let label = Label::of(ObjectId(footprint), Class::Block);
                let set = clocks.set_of(&self.execution.machine.sets, label);
                set.unwrap_or_default()
                    .iter()
                    .for_each(|&object| add(object));
            }
            _ => add(waiting.operation.object),
        }
        optional.sort_unstable();
        optional.dedup();
        optional
    }

    /// Tries every downward closed set of the `optional` events, on top of `base`. Nothing that
    /// happens after an event in `without` may be added. `spare` releases may be left out.
    fn enlarge(
        &mut self,
        pair: (u32, u32, &Waiting),
        optional: &[u32],
        base: &[u32],
        without: &mut Vec<u32>,
        spare: Option<i64>,
    ) {
        let Execution { trace, clocks, .. } = *self.execution;
        let Some((&next, rest)) = optional.split_first() else {
            return self.complete(pair, base);
        };
        if !without
            .iter()
            .any(|&left_out| clocks.before(left_out, next))
        {
            let mut larger = base.to_vec();
            clocks.join_into(next, &mut larger);
            self.enlarge(pair, rest, &larger, without, spare);
        }
        let is_release = trace.at(next).label.has_count();
        let spare = spare.map(|spare| spare - i64::from(is_release));
        if spare.is_none_or(|spare| spare >= 0) {
            without.push(next);
            self.enlarge(pair, rest, base, without, spare);
            without.pop();
        }
    }

    /// Finds the schedules with exactly this set S, if there are any.
    fn complete(&mut self, (node, first, waiting): (u32, u32, &Waiting), set: &[u32]) {
        let Execution { trace, machine, .. } = *self.execution;
        let chosen: Vec<u32> = (first + 1..=node)
            .filter(|&at| {
                let event = trace.at(at);
                event.index < set[event.thread.index()]
            })
            .collect();
        let state = |object| {
            let mut state = state_before(self.execution, first, object);
            for event in chosen.iter().map(|&at| trace.at(at)) {
                machine.apply(event, object, &mut state);
            }
            state
        };
        let alternatives = match waiting.operation.kind {
            OpKind::Wait { .. } => 1,
            ref kind if kind.may_have_alternatives() => {
                state(waiting.operation.object).alternatives(kind)
            }
            _ => 1,
        };
        let mut before = None;
        for alternative in 0..alternatives {
            let Some(head) = self.head(waiting, alternative, state) else {
                continue;
            };
            let before = before.get_or_insert_with(|| self.relabelled(first, &chosen));
            let default = &self.path.events[first as usize];
            let sets = &machine.sets;
            let is_exact = self.is_past(&chosen, before, waiting, &head)
                && order::is_head(sets, default, before, &head);
            let is_joint = || {
                let found =
                    order::completed_jointly((sets, &machine.names), default, before, &head);
                found.is_some_and(|found| {
                    found.before.len() == before.len() && found.head.is_same(&head)
                }) && !order::is_joint_already(sets, default, before)
            };
            if is_exact || is_joint() {
                let before = before.clone();
                self.add(first, node, before, head);
            }
        }
    }

    /// Whether all events of S happen before the head, as far as clocks tell.
    fn is_past(
        &self,
        chosen: &[u32],
        before: &[PathEvent],
        waiting: &Waiting,
        head: &PathEvent,
    ) -> bool {
        let Execution {
            trace,
            clocks,
            machine,
            ..
        } = *self.execution;
        if chosen.is_empty() {
            return true;
        }
        let mut past = vec![0; trace.threads()];
        if let Some(predecessor) = waiting.predecessor {
            clocks.join_into(predecessor, &mut past);
        }
        for (&at, event) in chosen.iter().zip(before) {
            if ordered(&machine.sets, event.label, head.label) {
                clocks.join_into(at, &mut past);
            }
        }
        (before.iter()).all(|event| event.index < past[event.thread.index()])
    }

    /// The events of S with the labels that they have without the default. Only counts differ.
    fn relabelled(&self, first: u32, chosen: &[u32]) -> Vec<PathEvent> {
        let events = chosen.iter().map(|&at| self.path.events[at as usize]);
        let mut events: Vec<PathEvent> = events.collect();
        for at in 0..events.len() {
            let object = events[at].label.object();
            let is_counted =
                |event: &PathEvent| event.label.has_count() && event.label.object() == object;
            if !is_counted(&events[at]) || events[..at].iter().any(is_counted) {
                continue;
            }
            let mut state = state_before(self.execution, first, object);
            for (event, &position) in events.iter_mut().zip(chosen) {
                let made = self.execution.trace.at(position);
                if made.label.is_block() {
                    self.execution.machine.apply(made, object, &mut state);
                } else if made.operation.object == object {
                    let outcome = state.apply(made.thread, &made.operation.kind, made.alternative);
                    event.label = state.label(&made.operation, outcome);
                }
            }
        }
        events
    }

    /// Adds a schedule, unless one of its events completes a smaller one against another default.
    fn add(&mut self, default: u32, node: u32, before: Vec<PathEvent>, head: PathEvent) {
        let machine = self.execution.machine;
        let relation = (&machine.sets, &machine.names);
        let mut schedule = before;
        schedule.push(head);
        for record in self.path.asleep_at(default) {
            let start = record.start as usize;
            let mut events = self.path.events[start..default as usize].to_vec();
            for event in &schedule {
                if order::is_asleep(relation, record, &events, event) {
                    return;
                }
                events.push(*event);
            }
        }
        self.found.push(Child {
            default,
            node,
            schedule: schedule.into(),
            site: Some(self.execution.trace.at(default).site),
        });
    }
}
