//! Which operations do not commute? The only place that knows.
//!
//! Two steps. [`classify`] maps an operation and its actual outcome to a [`Class`]: a failed
//! compare-exchange is a read, a successful `try_lock` is a lock. [`Class::conflicts`] then says
//! which classes may not be swapped on one object. Both are exhaustive, without a catch-all arm.
//!
//! Two questions are asked of the relation, and for most kinds of objects they are the same:
//! [`ordered`], of two events that have both happened (this makes happens-before), and
//! [`commutes`], of an operation that another thread has pending and an event that happened without
//! it (this decides sleep sets and insertion). They differ for counting objects: two releases of a
//! reference count commute until one of them is the last, and which one is the last depends on the
//! order (EXPLORATION, trap 3). So a release carries the count it found.
//!
//! The relation between classes is symmetric; a test asks for it, and prints it as
//! `docs/DEPENDENCY.md`.

mod class;

use rustc_hash::FxHashMap;
use std::fmt;

use super::id::ObjectId;
use super::operation::{OpKind, Outcome};
pub(crate) use class::{ALL, Class, Classes, LAST_SLOT, SLOTS, TOTAL_SLOT, WAIT_SLOT};

/// What an object is like, as far as the classes of its events depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nature {
    Plain,
    /// A count whose last release the program can observe.
    Observed,
    /// A channel with room for so many messages; 255 stands for more.
    Bounded(u8),
    /// A channel without any room.
    Rendezvous,
}

/// What an event is called when traces are compared: its object, its class, and a number that some
/// classes have. It is one word, because it is written with each step and compared soon after: a
/// processor waits where it reads at once what it has just written in pieces.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Label(u64);

impl Label {
    /// The label of an event of a class that has no number.
    #[inline]
    pub(crate) const fn of(object: ObjectId, class: Class) -> Label {
        Label(object.0 as u64 | (class as u64) << 32)
    }

    /// The same with a room and a count.
    #[inline]
    pub(crate) const fn numbered(self, room: u8, count: u16) -> Label {
        let without = self.0 & 0xff_ffff_ffff;
        Label(without | (room as u64) << 40 | (count as u64) << 48)
    }

    /// For [`Class::Wait`] the number of its read set.
    #[inline]
    pub(crate) const fn object(self) -> ObjectId {
        ObjectId(self.0 as u32)
    }

    #[inline]
    pub(crate) const fn class(self) -> Class {
        BY_NUMBER[self.number() as usize]
    }

    /// The set of its class.
    #[inline]
    pub(crate) const fn classes(self) -> Classes {
        Classes::numbered(self.number())
    }

    /// The number of its class, which is less than 64.
    #[inline]
    const fn number(self) -> u32 {
        (self.0 >> 32) as u32 % 64
    }

    #[inline]
    const fn is_wait(self) -> bool {
        self.number() == Class::Wait as u32
    }

    /// For a message that was sent into a bounded channel its room, up to 255; for an [`Class::Arrive`] and a
    /// [`Class::Leave`] the number of the group, as far as it fits; otherwise 0.
    #[inline]
    pub(crate) const fn room(self) -> u8 {
        (self.0 >> 40) as u8
    }

    /// For a [`Class::Drop`] how many references there were before it, and for an
    /// [`Class::Arrive`] how many were missing; for a notification and the wake-up it causes the
    /// thread; for what is done to a message its number. Large numbers are cut in a way that makes
    /// two events dependent rather than independent.
    #[inline]
    pub(crate) const fn count(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Whether this is an access to one object, by which it may be ordered with others.
    #[inline]
    pub(crate) fn touches_one(self) -> bool {
        !APART.has(self.number())
    }

    /// Whether this access to an atomic writes it; `None` if it is none. Nothing else has these classes.
    #[inline]
    pub(crate) fn writes_atomic(self) -> Option<bool> {
        const WRITE: u32 = Class::Write as u32;
        // The only class before it is that of a read, so this takes one comparison.
        const { assert!(Class::Read as u32 == 0 && WRITE == 1) };
        let number = self.number();
        (number <= WRITE).then_some(number == WRITE)
    }

    /// Where an access with this label stands among those to the same object.
    #[inline]
    pub(crate) fn place(self) -> Place {
        if self.count() == 1 {
            return self.place_if_last();
        }
        PLACES[self.number() as usize]
    }

    /// The slots in which there may be accesses that an access with this label is related with by class, but not by
    /// its number or its set.
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

    /// The label of an operation that ended like this on an object of this nature.
    #[inline(always)]
    pub(crate) fn new(object: ObjectId, kind: &OpKind, outcome: Outcome, nature: Nature) -> Label {
        let class = classify(kind, outcome, nature);
        let value = outcome.value().unwrap_or(0);
        let count = match class {
            Class::Drop => value.min(u16::MAX as u64) as u16,
            // The generation is in the upper half.
            Class::Arrive => (value as u32).min(u16::MAX as u32) as u16,
            Class::Notify | Class::Awake => value.min(MANY as u64) as u16,
            Class::Sent | Class::HandOver | Class::Received | Class::Taken => value as u16,
            _ => 0,
        };
        let room = match (class, nature, kind) {
            (Class::Sent, Nature::Bounded(room), _) => room,
            (Class::Arrive, ..) => (value >> 32) as u8,
            (Class::Leave, _, OpKind::Leave { generation }) => *generation as u8,
            _ => 0,
        };
        let object = match kind {
            OpKind::Wait { set, .. } => ObjectId(*set),
            _ => object,
        };
        Label::of(object, class).numbered(room, count)
    }

    /// The part of the label that belongs to the trace: not how many others a release or an arrival
    /// found, only "was it the last".
    #[inline]
    pub(crate) fn canonical(self) -> Label {
        match self.class() {
            Class::Drop | Class::Arrive => self.numbered(self.room(), (self.count() == 1) as u16),
            _ => self,
        }
    }

    /// Whether the event puts a message into a channel or takes one out.
    #[inline]
    pub(crate) fn is_message(self) -> bool {
        MESSAGES.has(self.number())
    }

    /// Whether the label has a count in it: how the event is ordered hangs on how many there were before.
    #[inline]
    pub(crate) fn has_count(self) -> bool {
        COUNTED.has(self.number())
    }

    /// Whether the event changes the count that others of its object find, and commutes with some of them.
    #[inline]
    pub(crate) fn changes_count(self) -> bool {
        self.has_count() || self.class() == Class::Retain
    }

    /// The label of the same event where one of class `before`, with which it commutes, was executed before it.
    pub(crate) fn after(self, before: Class) -> Label {
        let count = match before {
            _ if !self.has_count() => return self,
            Class::Retain => self.count().saturating_add(1),
            _ => self.count().saturating_sub(1),
        };
        self.numbered(self.room(), count)
    }

    /// Whether the event is an acquisition that an operation of class `wanted` may have to wait for.
    pub(crate) fn shuts_out(self, wanted: Class) -> bool {
        self.class().acquires()
            && self.class().conflicts().contains(wanted)
            // Where there is always room, a send waits for nobody.
            && (self.class() != Class::Sent || self.room() > 0)
    }
}

/// Where an access stands among those to the same object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The slots of those that it may be ordered behind.
    pub(crate) behind: u32,
    /// See [`Class::slot`].
    pub(crate) slot: u8,
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, object) = (self.class(), self.object());
        write!(
            f,
            "{class:?}({object:?}, {}, {})",
            self.room(),
            self.count()
        )
    }
}

/// Stands for several threads in the label of a notification.
const MANY: u16 = u16::MAX;

/// The class of an operation that ended like this on an object of this nature.
#[inline(always)]
pub(crate) fn classify(kind: &OpKind, outcome: Outcome, nature: Nature) -> Class {
    let ok = outcome.succeeded();
    match kind {
        OpKind::Load { .. } => Class::Read,
        OpKind::Store { .. } => Class::Write,
        OpKind::Rmw { .. } => Class::Write,
        OpKind::CompareExchange { .. } if ok => Class::Write,
        OpKind::CompareExchange { .. } => Class::Read,
        OpKind::Fence { .. } => Class::Local,
        OpKind::Lock | OpKind::WriteLock => Class::Acquire,
        OpKind::TryLock | OpKind::TryWrite if ok => Class::Acquire,
        OpKind::TryLock => Class::AcquireFailed,
        OpKind::TryWrite => Class::WriteFailed,
        OpKind::Unlock { .. } | OpKind::UnlockWrite { .. } | OpKind::Downgrade => Class::Release,
        OpKind::ReadLock => Class::ReadAcquire,
        OpKind::TryRead if ok => Class::ReadAcquire,
        OpKind::TryRead => Class::AcquireFailed,
        OpKind::UnlockRead => Class::ReadRelease,
        OpKind::Retain => Class::Retain,
        OpKind::RetainWeak | OpKind::ReleaseWeak => Class::WeakRetain,
        OpKind::Release { told } if *told || nature == Nature::Observed => Class::Drop,
        OpKind::Release { .. } => Class::DropQuiet,
        OpKind::FirstReference => Class::CountTake,
        OpKind::ReadCount { .. } => Class::CountRead,
        OpKind::TakeUnique if ok => Class::CountTake,
        OpKind::Upgrade | OpKind::RetainRaw if ok => Class::Upgrade,
        OpKind::TakeUnique => Class::CountRead,
        OpKind::Upgrade | OpKind::RetainRaw => Class::TooLate,
        OpKind::Spawn { .. } => Class::Spawn,
        OpKind::Exit => Class::Exit,
        OpKind::Join { .. } => Class::Join,
        OpKind::IsFinished => Class::Poll,
        OpKind::Park => Class::Park,
        OpKind::ParkTimeout { .. } if ok => Class::Park,
        OpKind::ParkTimeout { .. } => Class::ParkFailed,
        OpKind::Unpark => Class::Unpark,
        OpKind::Enqueue { .. } => Class::Enqueue,
        OpKind::NotifyOne | OpKind::NotifyAll => match outcome.value() {
            Some(0) | None => Class::NotifyNone,
            Some(_) => Class::Notify,
        },
        OpKind::Awake { .. } if ok => Class::Awake,
        OpKind::Awake { .. } => Class::TimedOut,
        OpKind::Arrive => Class::Arrive,
        OpKind::Leave { .. } => Class::Leave,
        OpKind::CallOnce { .. } if ok => Class::OnceBegin,
        // 3 is poisoned (`object/once.rs`).
        OpKind::CallOnce { .. } | OpKind::WaitOnce { .. } if outcome.value() == Some(3) => {
            Class::OnceFailed
        }
        OpKind::CallOnce { .. } | OpKind::CheckOnce | OpKind::WaitOnce { .. } => Class::Peek,
        OpKind::EndOnce { .. } => Class::OnceEnd,
        OpKind::Send if ok => Class::Sent,
        OpKind::TrySend if ok && nature == Nature::Rendezvous => Class::HandOver,
        OpKind::TrySend if ok => Class::Sent,
        OpKind::Send | OpKind::TrySend => Class::SendFailed,
        OpKind::Taken { .. } if ok => Class::Taken,
        OpKind::Taken { .. } => Class::SendFailed,
        OpKind::RecvWait => Class::RecvWait,
        OpKind::Recv { .. } | OpKind::TryRecv if ok => Class::Received,
        OpKind::Recv { .. } | OpKind::TryRecv => Class::RecvFailed,
        OpKind::AddSender => Class::AddSender,
        OpKind::DropSender => Class::DropSender,
        OpKind::DropReceiver { .. } => Class::DropReceiver,
        OpKind::Choose { .. } | OpKind::Start | OpKind::GiveUp { .. } => Class::Local,
        OpKind::Wait { .. } if outcome.is_let_go() => Class::LetGo,
        OpKind::Wait { .. } => Class::Wait,
    }
}

/// The sets of locations that waits have read; interned, because the labels of waits are kept in
/// trees across executions. The values that were read are not part of a set: pointers differ from
/// one execution to the next.
#[derive(Default, Clone, Debug)]
pub(crate) struct ReadSets {
    sets: Vec<Box<[ObjectId]>>,
    index: FxHashMap<Box<[ObjectId]>, u32>,
}

impl ReadSets {
    /// The number of this set. `locations` must be free of duplicates; their order counts.
    pub(crate) fn intern(&mut self, locations: &[ObjectId]) -> u32 {
        if let Some(&set) = self.index.get(locations) {
            return set;
        }
        let set = self.sets.len() as u32;
        self.sets.push(locations.into());
        self.index.insert(locations.into(), set);
        set
    }

    /// How many sets there are.
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
}

/// Whether a wait depends on an event of this class on one of its locations: whatever can change
/// the value it compares.
pub(crate) const fn changes_value(class: Class) -> bool {
    match class {
        Class::Write
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
        | Class::DropReceiver => true,
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
        | Class::Local
        | Class::Wait
        | Class::LetGo => false,
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
    slots
}

/// [`conflicting_slots`] as a table, because every event asks.
pub(crate) static CONFLICTING_SLOTS: [u32; ALL.len()] = {
    let mut table = [0; ALL.len()];
    let mut i = 0;
    while i < ALL.len() {
        table[ALL[i] as usize] = conflicting_slots(ALL[i]);
        i += 1;
    }
    table
};

/// The classes whose events cut an object's history in two.
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

/// For each class by number those that it may be related with: those that it conflicts with, and for waits those
/// that change a value.
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
        i += 1;
    }
    table
};

/// [`ALL`] with room for every number that a label has bits for.
static BY_NUMBER: [Class; 64] = {
    let mut table = [Class::Local; 64];
    let mut i = 0;
    while i < ALL.len() {
        table[i] = ALL[i];
        i += 1;
    }
    table
};

/// [`Label::place`] by number. A release or an arrival is taken for one that is not the last. Two of those are
/// not ordered ([`ordered`]), however many there are.
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
        table[i] = Place {
            behind: conflicting_slots(ALL[i]) & !like_it,
            slot: slot as u8,
        };
        i += 1;
    }
    table
};

/// [`Label::uncertain_slots`] by number: those of the classes that [`meet`] tells apart by their numbers. The slot of
/// waits leads from one wait to the one before, whatever that has read.
static UNCERTAIN: [u32; 64] = {
    let mut table = [1 << WAIT_SLOT; 64];
    let mut i = 0;
    while i < NUMBERED.len() {
        let (a, b) = NUMBERED[i];
        table[a as usize] |= b.slots();
        table[b as usize] |= a.slots();
        i += 1;
    }
    table
};

/// The classes of events that put a message into a channel or take one out.
const MESSAGES: Classes = Classes::of(&[Class::Sent, Class::HandOver, Class::Received]);

/// The pairs of classes that are related only if their numbers say so.
const NUMBERED: [(Class, Class); 7] = [
    (Class::Drop, Class::Drop),
    (Class::Arrive, Class::Arrive),
    (Class::Arrive, Class::Leave),
    (Class::Notify, Class::Awake),
    (Class::Sent, Class::Received),
    (Class::HandOver, Class::Received),
    (Class::Received, Class::Taken),
];

/// The classes of events that touch no object, or several. What a join comes after is known without its object.
const APART: Classes = Classes::of(&[
    Class::Local,
    Class::Spawn,
    Class::Join,
    Class::Wait,
    Class::LetGo,
]);

/// Those that are related with some classes only if their numbers say so, and waits, which have no object.
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
    Class::Wait,
]);

/// The classes whose labels have a count that depends on what happened to the object before.
pub(crate) const COUNTED: Classes = Classes::of(&[Class::Drop, Class::Arrive]);

/// Whether two events of different threads, which happened in this order, are ordered by what they
/// do to objects.
#[inline]
pub(crate) fn ordered(sets: &ReadSets, earlier: Label, later: Label) -> bool {
    related(sets, earlier, later, || {
        later.count() == 1 || earlier.count() == 1
    })
}

/// Whether an operation that was `pending` when the event happened could have been executed before
/// it without being ordered with it: `p` diamond `e` of the papers.
#[inline]
pub(crate) fn commutes(sets: &ReadSets, pending: Label, event: Label) -> bool {
    !related(sets, pending, event, || event.count() < 3)
}

/// `last` says whether one of two releases or arrivals is the last in one of their orders.
#[inline(always)]
fn related(sets: &ReadSets, a: Label, b: Label, last: impl FnOnce() -> bool) -> bool {
    // Most pairs are told by their classes alone.
    if !RELATED[a.number() as usize].has(b.number()) {
        return false;
    }
    if SPECIAL.has(a.number()) || b.is_wait() {
        return meet(sets, a, b, last());
    }
    a.object() == b.object()
}

/// Whether two labels of which the classes are related are so with their objects and numbers.
#[inline(never)]
fn meet(sets: &ReadSets, a: Label, b: Label, last: bool) -> bool {
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
        // Only the last arrival lets the others of its group go.
        (Class::Arrive, Class::Leave) => a.count() == 1 && a.room() == b.room(),
        (Class::Leave, Class::Arrive) => b.count() == 1 && a.room() == b.room(),
        (Class::Notify, Class::Awake) | (Class::Awake, Class::Notify) => {
            a.count() == b.count() || a.count() == MANY || b.count() == MANY
        }
        (Class::Sent | Class::HandOver, Class::Received) => suits(a, b),
        (Class::Received, Class::Sent | Class::HandOver) => suits(b, a),
        (Class::Received, Class::Taken) | (Class::Taken, Class::Received) => a.count() == b.count(),
        _ => true,
    }
}

/// Whether a receive takes this message, or makes room for it.
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
