//! How do several parts of one exploration become one again?
//!
//! Explorations that share the work between them intern threads and objects each on its own. So
//! what one of them has left is translated by names into the numbers of another one.

use crate::rt::engine::checkpoint::suspended::{
    SavedChild, SavedEvent, SavedFrame, SavedItem, SavedRecord, Suspended,
};
use crate::rt::engine::stats::Stats;
use crate::rt::event::id::{ObjectId, Place, ThreadId};
use crate::rt::object::machine::Machine;
use crate::rt::relation::independence::{Class, Footprint, Label};

/// The numbers of one machine for the names of another one.
pub(crate) struct Translation {
    pub(crate) threads: Vec<ThreadId>,
    pub(crate) objects: Vec<ObjectId>,
    sets: Vec<u32>,
    footprints: Vec<u32>,
}

impl Translation {
    /// The translation of the names of one machine into those of another, which gets all of them.
    pub(crate) fn new(from: &Machine, to: &mut Machine) -> Translation {
        let mut threads = vec![ThreadId::MAIN];
        for thread in 1..from.names.thread_count() as u32 {
            let thread = match from.names.creator(ThreadId(thread)) {
                Some((creator, nth)) => to.names.child(threads[creator.index()], nth),
                None => ThreadId::MAIN,
            };
            threads.push(thread);
        }
        let of = |thread: ThreadId| threads[thread.index()];
        let objects = (0..from.names.object_count() as u32).map(|object| {
            let Place { region, generation } = from.names.place(ObjectId(object));
            let region = region
                .with_thread(|thread| Some(of(thread)))
                .unwrap_or(region);
            to.names.object(Place { region, generation })
        });
        let objects: Vec<ObjectId> = objects.collect();
        let sets = (0..from.sets.len() as u32).map(|set| {
            let locations = from.sets.get(set).iter();
            let locations: Vec<ObjectId> = locations.map(|it| objects[it.index()]).collect();
            to.sets.intern(&locations)
        });
        let sets = sets.collect();
        let footprints = from.sets.footprints().iter().map(|footprint| {
            let translated = match footprint {
                Footprint::Everything => Footprint::Everything,
                Footprint::Of(all, writes) => {
                    let all = all.iter().map(|it| objects[it.index()]);
                    Footprint::of(all.zip(writes.iter().copied()).collect())
                }
            };
            to.sets.intern_footprint(translated)
        });
        let footprints = footprints.collect();
        Translation {
            threads,
            objects,
            sets,
            footprints,
        }
    }

    fn label(&self, label: Label) -> Label {
        let object = label.object();
        let object = match label.class() {
            _ if object == ObjectId::NONE => object,
            Class::Wait | Class::Released => ObjectId(self.sets[object.index()]),
            Class::Block => ObjectId(self.footprints[object.index()]),
            _ => self.objects[object.index()],
        };
        Label::of(object, label.class()).numbered(label.room(), label.count())
    }

    fn event(&self, event: &SavedEvent) -> SavedEvent {
        let thread = |number: u32| {
            let thread = self.threads.get(number as usize);
            thread.map_or(number, |thread| thread.0)
        };
        let mut step = event.step;
        step.thread = self.threads[step.thread.index()];
        SavedEvent {
            step,
            label: self.label(event.label),
            index: event.index,
            link: match event.link {
                (kind @ (1 | 2), number) => (kind, thread(number)),
                link => link,
            },
        }
    }

    fn events(&self, events: &[SavedEvent]) -> Vec<SavedEvent> {
        events.iter().map(|event| self.event(event)).collect()
    }
}

impl Suspended {
    /// Adds suspended executions of another exploration of the same program, to be explored before
    /// those that are here. `later` is what was explored already behind them.
    pub(crate) fn add(&mut self, other: &Suspended, translation: &Translation, later: &Stats) {
        let known = self.records.len() as u32;
        let records = other.records.iter().map(|record| {
            let way = record.way.iter().map(|item| match item {
                SavedItem::Event(event) => SavedItem::Event(translation.event(event)),
                SavedItem::Record(number) => SavedItem::Record(number + known),
            });
            SavedRecord {
                start: record.start,
                default: translation.event(&record.default),
                way: way.collect(),
                schedule: translation.events(&record.schedule),
            }
        });
        self.records.extend(records);
        self.has_late |= other.has_late;
        for (at, frame) in other.frames.iter().enumerate() {
            let children = frame.children.iter().map(|child| SavedChild {
                default: child.default,
                node: child.node,
                schedule: translation.events(&child.schedule),
            });
            let mut behind = frame.later;
            behind.add(later);
            self.frames.push(SavedFrame {
                later: behind,
                // The last execution of a part holds its whole path.
                base: if at == 0 { 0 } else { frame.base },
                children: children.collect(),
                events: translation.events(&frame.events),
                records: frame.records.iter().map(|number| number + known).collect(),
            });
        }
    }
}
