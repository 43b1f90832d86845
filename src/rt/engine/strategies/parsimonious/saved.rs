//! How does the search become part of a checkpoint, and continue from one?

use std::rc::Rc;

use crate::rt::engine::checkpoint::suspended::{
    SavedChild, SavedEvent, SavedFrame, SavedItem, SavedRecord, Suspended,
};
use crate::rt::engine::stats::Stats;
use crate::rt::engine::strategies::parsimonious::Frame;
use crate::rt::engine::strategies::parsimonious::path::{
    Cut, Item, Link, OnPath, PathEvent, Record,
};
use crate::rt::engine::strategies::parsimonious::schedules::Child;
use crate::rt::event::NOWHERE;
use crate::rt::event::id::ThreadId;

/// The table of records of a checkpoint while it is written.
#[derive(Default)]
pub(super) struct Table {
    known: Vec<Rc<Record>>,
    saved: Vec<SavedRecord>,
}

impl Table {
    /// The number of the record, which joins the table behind all records on its way.
    fn number(&mut self, record: &Rc<Record>) -> u32 {
        let mut known = self.known.iter();
        if let Some(number) = known.position(|known| Rc::ptr_eq(known, record)) {
            return number as u32;
        }
        let way = record.way.iter().map(|item| match item {
            Item::Default(event) => SavedItem::Event(event.save()),
            Item::Schedule(inner) => SavedItem::Record(self.number(inner)),
        });
        let saved = SavedRecord {
            start: record.start,
            default: record.default.save(),
            way: way.collect(),
            schedule: save_all(&record.schedule),
        };
        self.known.push(record.clone());
        self.saved.push(saved);
        self.saved.len() as u32 - 1
    }

    /// Saves an execution with this part of its path.
    pub(super) fn frame(
        &mut self,
        (base, later): (u32, Stats),
        children: &[Child],
        (events, records): (&[PathEvent], &[OnPath]),
    ) -> SavedFrame {
        let children = children.iter().map(|child| SavedChild {
            default: child.default,
            node: child.node,
            schedule: save_all(&child.schedule),
        });
        SavedFrame {
            base,
            children: children.collect(),
            events: save_all(events),
            records: records.iter().map(|on| self.number(&on.record)).collect(),
            later,
        }
    }

    pub(super) fn with(self, frames: Vec<SavedFrame>, has_late: bool) -> Suspended {
        Suspended {
            records: self.saved,
            has_late,
            frames,
        }
    }
}

/// The executions of a checkpoint, each with its part of a path; `None` if they are none.
pub(super) fn restore(saved: &Suspended) -> Option<Vec<(Frame, Cut)>> {
    let mut records: Vec<Rc<Record>> = Vec::new();
    for record in &saved.records {
        let way = record.way.iter().map(|item| match item {
            SavedItem::Event(event) => Some(Item::Default(PathEvent::restore(event)?)),
            SavedItem::Record(number) => {
                Some(Item::Schedule(records.get(*number as usize)?.clone()))
            }
        });
        let way = way.collect::<Option<_>>()?;
        records.push(Rc::new(Record {
            start: record.start,
            default: PathEvent::restore(&record.default)?,
            way,
            schedule: restore_all(&record.schedule)?.into(),
        }));
    }
    let frames = saved.frames.iter().map(|frame| {
        let children = frame.children.iter().map(|child| {
            Some(Child {
                default: child.default,
                node: child.node,
                schedule: restore_all(&child.schedule)?.into(),
                site: None,
            })
        });
        let on_path = frame.records.iter().map(|&number| {
            Some(OnPath {
                record: records.get(number as usize)?.clone(),
                over_at: NOWHERE,
            })
        });
        let cut = Cut {
            events: restore_all(&frame.events)?,
            records: on_path.collect::<Option<_>>()?,
        };
        let own = Frame {
            base: frame.base,
            children: children.collect::<Option<_>>()?,
            later: frame.later,
        };
        Some((own, cut))
    });
    frames.collect()
}

fn save_all(events: &[PathEvent]) -> Vec<SavedEvent> {
    events.iter().map(PathEvent::save).collect()
}

fn restore_all(events: &[SavedEvent]) -> Option<Vec<PathEvent>> {
    events.iter().map(PathEvent::restore).collect()
}

impl PathEvent {
    fn save(&self) -> SavedEvent {
        SavedEvent {
            step: self.step(),
            label: self.label,
            index: self.index,
            link: match self.link {
                Link::None => (0, 0),
                Link::Spawns(thread) => (1, thread.0),
                Link::Joins(thread) => (2, thread.0),
                Link::Released(after) => (3, after),
            },
        }
    }

    fn restore(saved: &SavedEvent) -> Option<PathEvent> {
        let (kind, number) = saved.link;
        Some(PathEvent {
            thread: saved.step.thread,
            index: saved.index,
            alternative: saved.step.alternative,
            label: saved.label,
            link: match kind {
                0 => Link::None,
                1 => Link::Spawns(ThreadId(number)),
                2 => Link::Joins(ThreadId(number)),
                3 => Link::Released(number),
                _ => return None,
            },
        })
    }
}
