//! Which trace does a step lead to?
//!
//! The answer is known before the step is executed. This file appends the step to a copy of the
//! trace, in which each event contributes to the key. The contribution of a thread's next event
//! stays the same until an event happens that it depends on.

use crate::rt::event::id::{ObjectId, ThreadId, entry};
use crate::rt::event::operation::{OpKind, Outcome, Step};
use crate::rt::event::{Event, Trace};
use crate::rt::object::machine::Machine;
use crate::rt::relation::happens_before::HappensBefore;
use crate::rt::relation::independence::{Class, Label, commutes, ordered};
use crate::rt::relation::key::{Hashes, TraceKey};

/// The events of the current execution up to its last point.
pub(super) struct Ahead {
    trace: Trace,
    clocks: HappensBefore,
    /// Whether the last event of `trace` and `clocks` is only an attempt. Mostly it is the next
    /// event that happens, and then its clock is already computed.
    tried: bool,
    hashes: Hashes,
    /// The key of each prefix, the empty one first.
    keys: Vec<TraceKey>,
    /// By thread, its next event, where that is known.
    next: Vec<Option<Tried>>,
    /// For each event up to some of the last ones whether [`Ahead::blocking_pairs`] has reported
    /// it, and so all earlier events on its object that count.
    told: Vec<bool>,
    /// Whether to report early those events that other events will be found to depend on.
    pub(super) early: bool,
}

/// An event that could be the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tried {
    pub(super) label: Label,
    /// Its contribution to the key.
    pub(super) adds: TraceKey,
}

impl Tried {
    /// Whether an event with this label, of which the other is independent, may still change the
    /// count of the other.
    fn counts_with(self, event: Label) -> bool {
        self.label.count() > 0 && self.label.object() == event.object()
    }
}

impl Default for Ahead {
    fn default() -> Ahead {
        Ahead {
            trace: Trace::new(),
            clocks: HappensBefore::default(),
            tried: false,
            hashes: Hashes::default(),
            keys: vec![TraceKey::default()],
            next: Vec::new(),
            told: Vec::new(),
            early: false,
        }
    }
}

impl Ahead {
    /// The key of the events before this point.
    pub(super) fn key(&self, point: usize) -> TraceKey {
        self.keys[point]
    }

    /// The contribution of the event to the key. It is the same wherever the event happens after
    /// the same events.
    pub(super) fn added(&self, event: u32) -> TraceKey {
        let event = event as usize;
        self.keys[event + 1].without(self.keys[event])
    }

    /// Advances to the end of `trace`, the beginning of which is known already. Adds the events
    /// that others are found to depend on to `raced`.
    pub(super) fn arrive(&mut self, trace: &Trace, machine: &Machine, raced: &mut Vec<u32>) {
        let sets = &machine.sets;
        for position in self.keys.len() - 1..trace.len() {
            let event = trace.at(position as u32);
            self.add(event, machine);
            let adds = match self.next.get(event.thread.index()) {
                Some(Some(tried)) if tried.label == event.label => tried.adds,
                _ => self.adds(machine),
            };
            // Only in unit tests, not in every build with debug assertions, which most test runs
            // use: this check costs as much as the rest of this file.
            #[cfg(test)]
            assert_eq!(adds, self.adds(machine), "dpor bug: {event:?}");
            self.keys.push(self.keys[position].with(adds));
            for (next, thread) in self.next.iter_mut().zip((0..).map(ThreadId)) {
                let stays = |tried: &Tried| {
                    let commutes = commutes(sets, tried.label, event.label);
                    thread != event.thread && commutes && !tried.counts_with(event.label)
                };
                if next.as_ref().is_some_and(|tried| !stays(tried)) {
                    *next = None;
                }
            }
            if event.label.class() == Class::Released {
                self.next.clear();
            }
            let races = self.clocks.races_of(position as u32);
            for race in races {
                raced.push(race.first);
                if self.early {
                    raced.extend(self.likewise(machine, race.first, event.label));
                }
            }
        }
        self.give_up();
        self.blocking_pairs(machine, raced);
    }

    /// Adds the event that happens next, and its clock.
    fn add(&mut self, event: &Event, machine: &Machine) {
        let last = self.trace.events().last();
        let is_it = |last: &Event| last.thread == event.thread && last.label == event.label;
        if self.tried && event.alternatives == 1 && last.is_some_and(is_it) {
            self.tried = false;
            let position = self.trace.len() - 1;
            (self.trace.again(position)).refresh(&event.operation, event.outcome, event.before);
            return;
        }
        self.give_up();
        self.trace.push(*event);
        self.clocks.extend(&self.trace, &machine.sets);
    }

    /// Drops the attempted event.
    fn give_up(&mut self) {
        if std::mem::take(&mut self.tried) {
            let length = self.trace.len() - 1;
            self.clocks.truncate(length);
            self.trace.truncate(length);
        }
    }

    /// The earlier events of the thread of `event` on its object, if an event with this label
    /// depends on them too. In another execution it depends on them as soon as the thread is
    /// preempted in between.
    fn likewise<'a>(
        &'a self,
        machine: &'a Machine,
        event: u32,
        label: Label,
    ) -> impl Iterator<Item = u32> + 'a {
        let Event {
            thread, label: own, ..
        } = *self.trace.at(event);
        let (earlier, _) = if own.is_block() || label.is_block() {
            // The objects of a block are several, and the events may be on different ones.
            let mine = self.trace.positions_of(thread);
            mine.split_at(mine.partition_point(|&position| position < event))
        } else if own.touches_one() {
            self.clocks.split_on(own.object(), event)
        } else {
            (&[][..], &[][..])
        };
        let earlier = earlier.iter().rev().copied();
        let mine = earlier.take_while(move |&event| self.trace.at(event).thread == thread);
        mine.filter(move |&event| ordered(&machine.sets, self.trace.at(event).label, label))
    }

    /// The events that may disable the pending operations of other threads. Those before the last
    /// event have been reported already.
    fn blocking_pairs(&mut self, machine: &Machine, found: &mut Vec<u32>) {
        let Some(last) = self.trace.events().last() else {
            return;
        };
        for &thread in machine.live() {
            let Some(pending) = machine.pending(thread) else {
                continue;
            };
            if machine.enabled(thread) {
                continue;
            }
            let one = [pending.operation.object];
            let objects = match pending.operation.kind {
                OpKind::Wait { set, .. } => machine.sets.get(set),
                _ => &one,
            };
            // A thread that has just been spawned has begun, and reached its first operation.
            let spawned = last.operation.kind == OpKind::Spawn { child: thread };
            let touched = self.clocks.set_of(&machine.sets, last.label);
            let touched = touched.filter(|_| last.label.is_block());
            let is_touched = |object| touched.is_some_and(|set| set.contains(&object));
            let is_new = |object: ObjectId| {
                object != ObjectId::NONE
                    && (spawned
                        || thread == last.thread
                        || object == last.operation.object
                        || is_touched(object))
            };
            for &object in objects.iter().filter(|&&object| is_new(object)) {
                let latest = self.clocks.events_on(object).iter().rev();
                for &event in latest {
                    // A wait is on several objects.
                    if self.trace.at(event).operation.object == object {
                        if self.told.len() <= event as usize {
                            self.told.resize(self.trace.len(), false);
                        }
                        if std::mem::replace(&mut self.told[event as usize], true) {
                            break;
                        }
                    }
                    found.push(event);
                    if self.trace.at(event).label.is_total_on(object) {
                        break;
                    }
                }
            }
        }
    }

    /// The contribution of the last event to the key.
    fn adds(&mut self, machine: &Machine) -> TraceKey {
        let mut key = TraceKey::default();
        let names = (&machine.names, &machine.sets);
        let position = self.trace.len() as u32 - 1;
        key.add(&mut self.hashes, &self.trace, &self.clocks, names, position);
        key
    }

    /// The event that a step would be. Waits have no prediction: this file does not know whether a
    /// wait has been released.
    pub(super) fn attempt(&mut self, machine: &Machine, step: Step) -> Option<Tried> {
        let single = machine.alternatives(step.thread) == 1;
        let known = self.next.get(step.thread.index()).copied().flatten();
        if single && known.is_some() {
            return known;
        }
        let pending = machine.pending(step.thread)?;
        if let OpKind::Wait { .. } = pending.operation.kind {
            return None;
        }
        let label = machine.predict(step)?;
        self.give_up();
        self.trace.push(Event {
            thread: step.thread,
            index: 0,
            operation: pending.operation,
            outcome: Outcome::Done,
            label,
            alternative: step.alternative,
            alternatives: 1,
            before: None,
            site: pending.site,
        });
        self.clocks.extend(&self.trace, &machine.sets);
        self.tried = true;
        let adds = self.adds(machine);
        let tried = Some(Tried { label, adds });
        if single {
            *entry(&mut self.next, step.thread.index()) = tried;
        }
        tried
    }

    /// Drops the events from this point on.
    pub(super) fn truncate(&mut self, point: usize) {
        self.tried = false;
        self.clocks.truncate(point);
        self.trace.truncate(point);
        self.keys.truncate(point + 1);
        self.told.truncate(point);
        self.next.clear();
    }
}
