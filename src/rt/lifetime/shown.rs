//! Which events show that their thread has a pointer to a block?
//!
//! An event does so if its object lies in the block, or if it reads or writes a word that leads
//! into the block. Each free asks for these events, so they are indexed: a search through all
//! events at each free would take a time that is quadratic in the number of frees.

use rustc_hash::FxHashMap;

use crate::rt::event::id::ObjectId;
use crate::rt::event::operation::{ADDRESS_MIN, OpKind, address_in};
use crate::rt::event::{Event, NOWHERE, Trace};

/// Words below this are no addresses of blocks.
const LEAST: usize = if cfg!(test) { 1 } else { ADDRESS_MIN as usize };

/// The words are indexed by the stretch of memory of this many bytes into which they lead, as a
/// power of two.
const STRETCH: u32 = 6;

/// A block of more stretches is compared with all words.
const STRETCHES_MAX: usize = 64;

/// The memory of a block: its start and its size.
pub(crate) type Memory = (usize, usize);

/// The index of the events of the current execution.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// By object, the position of the latest event on it.
    latest: Vec<u32>,
    /// By position, the previous event on the same object.
    previous: Vec<u32>,
    /// The events with words that may be addresses, in order.
    words: Vec<Word>,
    /// By stretch of memory, the index in `words` of the latest word that leads there.
    leading: FxHashMap<usize, u32>,
    /// The positions of the joins, in order.
    joins: Vec<u32>,
}

/// A word of an event.
#[derive(Clone, Copy, Debug)]
struct Word {
    address: usize,
    position: u32,
    /// The index of the previous word that leads to the same stretch of memory.
    previous: u32,
}

impl Shown {
    /// Adds the events that are not in the index.
    pub(crate) fn extend(&mut self, executed: &[Event]) {
        let known = self.previous.len();
        self.previous.reserve(executed.len() - known);
        for (position, event) in executed.iter().enumerate().skip(known) {
            let position = position as u32;
            let object = event.operation.object;
            let mut previous = NOWHERE;
            if object != ObjectId::NONE {
                if self.latest.len() <= object.index() {
                    self.latest.resize(object.index() + 1, NOWHERE);
                }
                previous = std::mem::replace(&mut self.latest[object.index()], position);
            }
            self.previous.push(previous);
            if let OpKind::Join { .. } = event.operation.kind {
                self.joins.push(position);
            }
            for address in addresses_of(event).into_iter().flatten() {
                let index = self.words.len() as u32;
                let latest = self.leading.insert(address >> STRETCH, index);
                self.words.push(Word {
                    address,
                    position,
                    previous: latest.unwrap_or(NOWHERE),
                });
            }
        }
    }

    /// Forgets the events of an execution that is over.
    pub(crate) fn clear(&mut self) {
        let Shown {
            latest,
            previous,
            words,
            leading,
            joins,
        } = self;
        latest.clear();
        previous.clear();
        words.clear();
        leading.clear();
        joins.clear();
    }

    /// The number of events in the index.
    pub(crate) fn len(&self) -> usize {
        self.previous.len()
    }

    /// The positions of the joins from `from` on.
    pub(crate) fn joins_since(&self, from: usize) -> &[u32] {
        let first = self.joins.partition_point(|&at| (at as usize) < from);
        &self.joins[first..]
    }

    /// The positions of the events on this object from `from` on, the latest one first.
    pub(crate) fn events_on(&self, object: ObjectId, from: usize) -> impl Iterator<Item = u32> {
        let latest = self.latest.get(object.index()).copied();
        let is_since = move |&at: &u32| at != NOWHERE && at as usize >= from;
        let before = move |&at: &u32| self.previous.get(at as usize).copied().filter(is_since);
        std::iter::successors(latest.filter(is_since), before)
    }

    /// The positions of the drops of references that this object counts.
    pub(crate) fn drops_of(&self, count: ObjectId, trace: &Trace) -> Vec<u32> {
        let drops = |at: &u32| matches!(trace.at(*at).operation.kind, OpKind::Release { .. });
        self.events_on(count, 0).filter(drops).collect()
    }

    /// Calls `found` with the position of each event from `from` on that has one of these objects
    /// or a word that leads into this memory, in no particular order.
    pub(crate) fn each_that_shows(
        &self,
        (objects, (start, size)): (&[ObjectId], Memory),
        from: usize,
        mut found: impl FnMut(u32),
    ) {
        for &object in objects {
            self.events_on(object, from).for_each(&mut found);
        }
        if size == 0 {
            return;
        }
        let mut look = |word: &Word| {
            if word.address.wrapping_sub(start) < size {
                found(word.position);
            }
        };
        let is_since = |word: &Word| word.position as usize >= from;
        let stretches = start >> STRETCH..=start.saturating_add(size - 1) >> STRETCH;
        if stretches.end() - stretches.start() >= STRETCHES_MAX {
            let words = self.words.iter().rev();
            return words.take_while(|word| is_since(word)).for_each(look);
        }
        for stretch in stretches {
            let mut next = self.leading.get(&stretch).copied().unwrap_or(NOWHERE);
            while let Some(word) = self.words.get(next as usize)
                && is_since(word)
            {
                look(word);
                next = word.previous;
            }
        }
    }
}

/// The words of an atomic that a thread has read or written, as far as they may be addresses.
fn addresses_of(event: &Event) -> [Option<usize>; 2] {
    let kind = &event.operation.kind;
    let read = event.outcome.value().filter(|_| kind.is_atomic());
    let written = match *kind {
        OpKind::Store { value, .. } => Some(value),
        OpKind::Rmw { operand, .. } => Some(operand),
        OpKind::CompareExchange { new, .. } => Some(new),
        _ => None,
    };
    [read, written].map(|word| word.map(address_in).filter(|&address| address >= LEAST))
}
