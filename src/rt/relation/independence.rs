//! Which operations do not commute? No other module decides that.
//!
//! There are two parts. [`label`](crate::rt::event::label) gives an operation with its actual
//! outcome a [`Label`]; its [`Class`] is a part of the label. [`Class::conflicts`] then says which
//! classes may not be swapped on one object. Both are exhaustive, without a catch-all arm.
//!
//! The relation answers two questions, and for most kinds of objects the answers are the same:
//! [`ordered`] is about two events that have both happened (happens-before is made of it), and
//! [`commutes`] is about an operation that another thread has pending and an event that happened
//! without it (sleep sets and insertion depend on it). The answers differ for counting objects: two
//! releases of a reference count commute until one of them is the last, and the order decides which
//! one is the last. So the label of a release has the count that the release found.
//!
//! The relation between classes is symmetric; a test checks that, and prints the relation as
//! `docs/DEPENDENCY.md`.

use rustc_hash::FxHashMap;

pub(crate) use crate::rt::event::class::{
    ALL, BLOCK_SLOT, Class, Classes, LAST_SLOT, SLOTS, TOTAL_SLOT, WAIT_SLOT,
};
use crate::rt::event::id::ObjectId;
pub(crate) use crate::rt::event::label::{COUNTED, Label, Nature, classify};
use crate::rt::event::operation::Touch;
use crate::rt::rare::rarely;

/// The place of an access among the accesses to the same object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The slots of the accesses that this access may be ordered behind.
    pub(crate) behind: u32,
    /// See [`Class::slot`].
    pub(crate) slot: u8,
}

impl Label {
    /// The place of an access with this label among the accesses to the same object.
    #[inline]
    pub(crate) fn place(self) -> Place {
        if rarely!(self.count() == 1) {
            return self.place_if_last();
        }
        PLACES[self.number() as usize]
    }

    /// The slots that may hold accesses with a class related to that of this label, and a number or
    /// a set that is not.
    #[inline]
    pub(crate) fn uncertain_slots(self) -> u32 {
        UNCERTAIN[self.number() as usize]
    }

    /// [`Label::place`] for a label with the count 1, so that a release or an arrival is the last.
    #[inline(never)]
    fn place_if_last(self) -> Place {
        let place = PLACES[self.number() as usize];
        if !self.has_count() {
            return place;
        }
        Place {
            slot: LAST_SLOT as u8,
            behind: place.behind | 1 << place.slot,
        }
    }

    /// Whether every later event on `object` happens after this one.
    #[inline]
    pub(crate) fn is_total_on(&self, object: ObjectId) -> bool {
        self.object() == object && TOTAL.has(self.number())
    }

    /// Whether the event is an acquisition that may block an operation of class `wanted`.
    pub(crate) fn shuts_out(self, wanted: Class) -> bool {
        self.class().acquires()
            && self.class().conflicts().contains(wanted)
            // A send into an unbounded channel never blocks.
            && (self.class() != Class::Sent || self.room() > 0)
    }
}

mod footprint;

#[cfg(test)]
use footprint::is_pure_read;
pub(crate) use footprint::{Footprint, meets_block};

/// The sets of locations that waits have read, and the footprints of blocks. They are interned,
/// because the labels of waits and blocks stay in trees across executions. The read values are not
/// part of a set: pointers differ from one execution to the next.
#[derive(Default, Clone, Debug)]
pub(crate) struct ReadSets {
    sets: Vec<Box<[ObjectId]>>,
    index: FxHashMap<Box<[ObjectId]>, u32>,
    footprints: Vec<Footprint>,
}

/// The number of sets that are searched one by one before a look-up.
const FEW: usize = 4;

impl ReadSets {
    /// The number of this set. `locations` must be free of duplicates; their order counts.
    pub(crate) fn intern(&mut self, locations: &[ObjectId]) -> u32 {
        // Most programs have few sets.
        let mut few = self.sets.iter().take(FEW);
        match few.position(|known| **known == *locations) {
            Some(set) => set as u32,
            None => self.intern_another(locations),
        }
    }

    /// [`ReadSets::intern`] for a set that is not among the first ones.
    #[inline(never)]
    fn intern_another(&mut self, locations: &[ObjectId]) -> u32 {
        if let Some(&set) = self.index.get(locations) {
            return set;
        }
        let set = self.sets.len() as u32;
        self.sets.push(locations.into());
        self.index.insert(locations.into(), set);
        set
    }

    /// The number of sets.
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// The locations of a set.
    pub(crate) fn get(&self, set: u32) -> &[ObjectId] {
        &self.sets[set as usize]
    }

    fn has(&self, set: ObjectId, object: ObjectId) -> bool {
        self.get(set.0).contains(&object)
    }

    /// The number of this footprint.
    pub(crate) fn intern_footprint(&mut self, footprint: Footprint) -> u32 {
        let mut known = self.footprints.iter();
        let number = known.position(|known| *known == footprint);
        number.unwrap_or_else(|| {
            self.footprints.push(footprint);
            self.footprints.len() - 1
        }) as u32
    }

    /// All footprints, by number.
    pub(crate) fn footprints(&self) -> &[Footprint] {
        &self.footprints
    }

    /// Whether a block and another event may not be swapped, if their classes are related.
    fn block_meets(&self, block: Label, other: Label) -> bool {
        let footprint = self.footprint(block.object().0);
        match other.class() {
            Class::Block => footprint.meets(self.footprint(other.object().0)),
            Class::Wait => {
                let mut read = self.get(other.object().0).iter();
                read.any(|&object| footprint.writes(object) == Some(true))
            }
            class => {
                let writes = footprint.writes(other.object());
                writes.is_some_and(|writes| writes || changes_value(class))
            }
        }
    }

    /// The footprint of a block.
    pub(crate) fn footprint(&self, number: u32) -> &Footprint {
        &self.footprints[number as usize]
    }
}

/// Whether a wait depends on an event of this class on one of its locations, because the event can
/// change the value that the wait compares.
pub(crate) const fn changes_value(class: Class) -> bool {
    match class {
        Class::Write
        | Class::Update
        | Class::Acquire
        | Class::Release
        | Class::Retain
        | Class::WeakRetain
        | Class::Drop
        | Class::DropQuiet
        | Class::CountTake
        | Class::Upgrade
        | Class::Exit
        | Class::Park
        | Class::Unpark
        | Class::ReadAcquire
        | Class::ReadRelease
        | Class::Notify
        | Class::Awake
        | Class::Arrive
        | Class::OnceEnd
        | Class::Sent
        | Class::HandOver
        | Class::Received
        | Class::RecvWait
        | Class::DropSender
        | Class::DropReceiver
        | Class::TouchAll
        | Class::WeakWrite
        | Class::KeyWrite
        | Class::KeyShape
        | Class::Declared
        | Class::Block => true,
        Class::Read
        | Class::OnceBegin
        | Class::AcquireFailed
        | Class::CountRead
        | Class::TooLate
        | Class::Spawn
        | Class::Join
        | Class::Poll
        | Class::WriteFailed
        | Class::Enqueue
        | Class::NotifyNone
        | Class::TimedOut
        | Class::Leave
        | Class::Peek
        | Class::OnceFailed
        | Class::ParkFailed
        | Class::SendFailed
        | Class::RecvFailed
        | Class::Taken
        | Class::AddSender
        | Class::ReadAll
        | Class::WeakRead
        | Class::KeyRead
        | Class::ReadKeys
        | Class::Local
        | Class::Wait
        | Class::Released => false,
    }
}

/// The slots of the events that an event of this class may be ordered behind.
pub(crate) const fn conflicting_slots(class: Class) -> u32 {
    let mut slots = 0;
    let mut i = 0;
    while i < ALL.len() {
        if class.conflicts().contains(ALL[i]) {
            slots |= ALL[i].slots();
        }
        i += 1;
    }
    if changes_value(class) {
        slots |= 1 << WAIT_SLOT;
    }
    if meets_block(class) {
        slots |= 1 << BLOCK_SLOT;
    }
    slots
}

/// [`conflicting_slots`] as a table, because every event reads it.
pub(crate) static CONFLICTING_SLOTS: [u32; ALL.len()] = {
    let mut table = [0; ALL.len()];
    let mut i = 0;
    while i < ALL.len() {
        table[ALL[i] as usize] = conflicting_slots(ALL[i]);
        i += 1;
    }
    table
};

/// The total classes: an event of such a class cuts an object's history in two.
const TOTAL: Classes = {
    let mut total = Classes::NONE;
    let mut i = 0;
    while i < ALL.len() {
        if ALL[i].slot() == TOTAL_SLOT {
            total.add(ALL[i]);
        }
        i += 1;
    }
    total
};

/// For each class by number, the classes that it may be related with: those that it conflicts with,
/// and for waits those that change a value.
static RELATED: [Classes; 64] = {
    let mut table = [Classes::NONE; 64];
    let mut i = 0;
    while i < ALL.len() {
        table[i] = ALL[i].conflicts();
        i += 1;
    }
    let mut i = 0;
    while i < ALL.len() {
        if changes_value(ALL[i]) {
            table[i].add(Class::Wait);
            table[Class::Wait as usize].add(ALL[i]);
        }
        if meets_block(ALL[i]) {
            table[i].add(Class::Block);
            table[Class::Block as usize].add(ALL[i]);
        }
        i += 1;
    }
    table
};

/// The classes of the labels that have a set of objects.
const SETS: Classes = Classes::of(&[Class::Wait, Class::Block]);

/// [`Label::place`] by number. A release or an arrival counts as one that is not the last. Two such
/// events are not ordered ([`ordered`]), however many there are.
static PLACES: [Place; 64] = {
    let mut table = [Place { behind: 0, slot: 0 }; 64];
    let mut i = 0;
    while i < ALL.len() {
        let slot = ALL[i].slot();
        let like_it = if COUNTED.contains(ALL[i]) {
            1 << slot
        } else {
            0
        };
        // A wake-up comes after the notification that caused it, and is ordered with no other one.
        // Without this, each notification would search through all wake-ups before it.
        let later = match ALL[i] {
            Class::Notify => Class::Awake.slots(),
            _ => 0,
        };
        table[i] = Place {
            behind: conflicting_slots(ALL[i]) & !like_it & !later,
            slot: slot as u8,
        };
        i += 1;
    }
    table
};

/// [`Label::uncertain_slots`] by number: the slots of the classes that [`meet`] distinguishes by
/// their numbers. The slot of waits leads from one wait to the previous wait, whatever that one has
/// read, and likewise that of blocks. A block may read or write an object.
static UNCERTAIN: [u32; 64] = {
    let mut table = [1 << WAIT_SLOT | 1 << BLOCK_SLOT; 64];
    table[Class::Block as usize] = !0;
    let mut i = 0;
    while i < NUMBERED.len() {
        let (a, b) = NUMBERED[i];
        table[a as usize] |= b.slots();
        table[b as usize] |= a.slots();
        i += 1;
    }
    table
};

/// The pairs of classes that are related only if their numbers match.
const NUMBERED: [(Class, Class); 14] = [
    (Class::Drop, Class::Drop),
    (Class::Arrive, Class::Arrive),
    (Class::Arrive, Class::Leave),
    (Class::Notify, Class::Awake),
    (Class::Sent, Class::Received),
    (Class::HandOver, Class::Received),
    (Class::Received, Class::Taken),
    (Class::Update, Class::Update),
    (Class::KeyRead, Class::KeyWrite),
    (Class::KeyRead, Class::KeyShape),
    (Class::KeyWrite, Class::KeyWrite),
    (Class::KeyWrite, Class::KeyShape),
    (Class::KeyShape, Class::KeyShape),
    (Class::Declared, Class::Declared),
];

/// The classes that are related with some classes only if the numbers match, and waits and blocks,
/// which have a set and no object.
const SPECIAL: Classes = Classes::of(&[
    Class::Drop,
    Class::Arrive,
    Class::Leave,
    Class::Notify,
    Class::Awake,
    Class::Sent,
    Class::HandOver,
    Class::Received,
    Class::Taken,
    Class::Update,
    Class::KeyRead,
    Class::KeyWrite,
    Class::KeyShape,
    Class::Declared,
    Class::Wait,
    Class::Block,
]);

/// Whether two events of different threads, which happened in this order, are ordered by their
/// accesses to objects.
#[inline]
pub(crate) fn ordered(sets: &ReadSets, earlier: Label, later: Label) -> bool {
    related(sets, earlier, later, || {
        later.count() == 1 || earlier.count() == 1
    })
}

/// Whether an operation that was `pending` at the event could have been executed before it without
/// being ordered with it: `p` diamond `e` of the papers.
#[inline]
pub(crate) fn commutes(sets: &ReadSets, pending: Label, event: Label) -> bool {
    !related(sets, pending, event, || event.count() < 3)
}

/// Whether two operations on one object with unknown contents may not be swapped.
pub(crate) fn clash(one: Touch, other: Touch) -> bool {
    let label = |touch: Touch| {
        let (room, count) = touch.numbers();
        Label::of(ObjectId(0), touch.class()).numbered(room, count)
    };
    !commutes(&ReadSets::default(), label(one), label(other))
}

/// Whether two labels are related. `last` says whether one of two releases or arrivals is the last
/// in one of their orders.
#[inline(always)]
fn related(sets: &ReadSets, a: Label, b: Label, last: impl FnOnce() -> bool) -> bool {
    // The classes alone decide most pairs.
    if !RELATED[a.number() as usize].has(b.number()) {
        return false;
    }
    if SPECIAL.has(a.number()) || SETS.has(b.number()) {
        return meet(sets, a, b, last());
    }
    a.object() == b.object()
}

/// Whether two labels with related classes are related by their objects and numbers, too.
#[inline(never)]
fn meet(sets: &ReadSets, a: Label, b: Label, last: bool) -> bool {
    if a.is_block() {
        return sets.block_meets(a, b);
    }
    if b.is_block() {
        return sets.block_meets(b, a);
    }
    if a.is_wait() {
        return sets.has(a.object(), b.object());
    }
    if b.is_wait() {
        return sets.has(b.object(), a.object());
    }
    if a.object() != b.object() {
        return false;
    }
    match (a.class(), b.class()) {
        (Class::Drop, Class::Drop) | (Class::Arrive, Class::Arrive) => last,
        // Only the last arrival releases the other threads of its group.
        (Class::Arrive, Class::Leave) => a.count() == 1 && a.room() == b.room(),
        (Class::Leave, Class::Arrive) => b.count() == 1 && a.room() == b.room(),
        (Class::Sent | Class::HandOver, Class::Received) => suits(a, b),
        (Class::Received, Class::Sent | Class::HandOver) => suits(b, a),
        (Class::Received, Class::Taken) | (Class::Taken, Class::Received) => a.count() == b.count(),
        // A wake-up has the number of the one notification that caused it, and a notification may
        // cause several.
        (Class::Notify, Class::Awake) | (Class::Awake, Class::Notify) => a.count() == b.count(),
        (Class::Update, Class::Update) => a.count() != b.count(),
        (
            Class::KeyRead | Class::KeyWrite | Class::KeyShape,
            Class::KeyRead | Class::KeyWrite | Class::KeyShape,
        ) => (a.room(), a.count()) == (b.room(), b.count()),
        // The table of the object is symmetric, so one of the two rows is enough.
        (Class::Declared, Class::Declared) => a.count() >> b.room() & 1 == 1,
        _ => true,
    }
}

/// Whether a receive takes this message, or makes the room for it.
fn suits(sent: Label, received: Label) -> bool {
    match sent.room() {
        0 => sent.count() == received.count(),
        u8::MAX => true,
        room => {
            let ahead = sent.count().wrapping_sub(received.count());
            ahead == 0 || ahead == room as u16
        }
    }
}

#[cfg(test)]
mod tests;
