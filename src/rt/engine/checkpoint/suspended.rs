//! How are the suspended executions of a search without wakeup trees saved?
//!
//! As events, which are steps with labels, and as the schedules among them. A schedule is in a
//! table, because the ways to several others may lead along it.

use crate::rt::engine::stats::Stats;
use crate::rt::event::operation::Step;
use crate::rt::relation::independence::Label;

/// The suspended executions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Suspended {
    /// The records of schedules. The ways of each lead along earlier ones.
    pub(crate) records: Vec<SavedRecord>,
    /// Whether an execution had a step that may come last.
    pub(crate) has_late: bool,
    /// The executions. The part of the last one is its whole path.
    pub(crate) frames: Vec<SavedFrame>,
}

/// An event of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SavedEvent {
    pub(crate) step: Step,
    pub(crate) label: Label,
    pub(crate) index: u32,
    /// The kind of its order with events that have no object in common with it, and a number.
    pub(crate) link: (u32, u32),
}

/// One item of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SavedItem {
    Event(SavedEvent),
    /// The number of a record.
    Record(u32),
}

/// A schedule, and the place where it was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SavedRecord {
    pub(crate) start: u32,
    pub(crate) default: SavedEvent,
    pub(crate) way: Vec<SavedItem>,
    pub(crate) schedule: Vec<SavedEvent>,
}

/// A schedule that is still to be explored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SavedChild {
    pub(crate) default: u32,
    pub(crate) node: u32,
    pub(crate) schedule: Vec<SavedEvent>,
}

/// A suspended execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SavedFrame {
    /// The number of events that it shares with the execution below it.
    pub(crate) base: u32,
    pub(crate) children: Vec<SavedChild>,
    /// The part of its path that is not in the path of the execution above it.
    pub(crate) events: Vec<SavedEvent>,
    /// The numbers of the records in that part.
    pub(crate) records: Vec<u32>,
    /// What was explored already of what comes behind its schedules.
    pub(crate) later: Stats,
}

impl Suspended {
    /// Whether all numbers are in their ranges.
    pub(super) fn is_sound(&self) -> bool {
        let is_earlier = |(at, record): (usize, &SavedRecord)| {
            let mut way = record.way.iter();
            way.all(|item| match item {
                SavedItem::Event(_) => true,
                SavedItem::Record(number) => (*number as usize) < at,
            })
        };
        if !self.records.iter().enumerate().all(is_earlier) {
            return false;
        }
        // The number of events that each execution shares with the one above it.
        let above = self.frames.iter().skip(1).map(|frame| frame.base as usize);
        let mut above = above.chain([0]);
        self.frames.iter().all(|frame| {
            let length = above.next().unwrap_or_default() + frame.events.len();
            let mut children = frame.children.iter();
            let mut records = frame.records.iter();
            frame.base as usize <= length
                && children.all(|it| it.default <= it.node && (it.node as usize) < length)
                && records.all(|&it| {
                    let record = self.records.get(it as usize);
                    record.is_some_and(|it| it.start as usize + it.schedule.len() <= length)
                })
        })
    }
}
