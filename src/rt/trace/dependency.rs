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

use std::collections::HashMap;

use super::id::ObjectId;
use super::operation::{OpKind, Outcome};

/// How an event touches its object, as far as order matters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Class {
    // Atomics.
    Read,
    Write,
    // Mutexes.
    Acquire,
    Release,
    AcquireFailed,
    // Reference counts.
    Retain,
    /// A release that the program can observe if it is the last one.
    Drop,
    /// A release of a payload without drop glue: nobody sees which one is the last.
    DropQuiet,
    CountRead,
    CountTake,
    /// A successful `Weak::upgrade`.
    Upgrade,
    // Threads.
    Spawn,
    Exit,
    Join,
    Poll,
    // Park tokens.
    Park,
    Unpark,
    // Nothing shared.
    Local,
    /// A wait for a change: reads every location of its set.
    Wait,
    /// A wait that was let go because nothing else could run. It comes after everything that
    /// happened before that moment; `happens_before.rs` sees to it.
    LetGo,
}

/// Every class, in the order of the table in `docs/DEPENDENCY.md`.
pub(crate) const ALL: [Class; 20] = [
    Class::Read,
    Class::Write,
    Class::Acquire,
    Class::Release,
    Class::AcquireFailed,
    Class::Retain,
    Class::Drop,
    Class::DropQuiet,
    Class::CountRead,
    Class::CountTake,
    Class::Upgrade,
    Class::Spawn,
    Class::Exit,
    Class::Join,
    Class::Poll,
    Class::Park,
    Class::Unpark,
    Class::Local,
    Class::Wait,
    Class::LetGo,
];

/// A set of classes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Classes(u32);

impl Classes {
    const NONE: Classes = Classes(0);

    const fn of(classes: &[Class]) -> Classes {
        let mut bits = 0;
        let mut i = 0;
        while i < classes.len() {
            bits |= 1 << classes[i] as u32;
            i += 1;
        }
        Classes(bits)
    }

    pub(crate) const fn contains(self, class: Class) -> bool {
        self.0 >> class as u32 & 1 == 1
    }
}

impl Class {
    /// The classes that may not be swapped with this one on the same object.
    pub(crate) const fn conflicts(self) -> Classes {
        use Class::*;
        match self {
            Read => Classes::of(&[Write]),
            Write => Classes::of(&[Read, Write]),
            Acquire | Release => Classes::of(&[Acquire, Release, AcquireFailed]),
            AcquireFailed => Classes::of(&[Acquire, Release]),
            Retain => Classes::of(&[CountRead, CountTake]),
            Drop => Classes::of(&[Drop, CountRead, CountTake, Upgrade]),
            DropQuiet => Classes::of(&[CountRead, CountTake, Upgrade]),
            CountRead => Classes::of(&[Retain, Drop, DropQuiet, CountTake, Upgrade]),
            CountTake => Classes::of(&[Retain, Drop, DropQuiet, CountRead, CountTake, Upgrade]),
            Upgrade => Classes::of(&[Drop, DropQuiet, CountRead, CountTake]),
            Exit => Classes::of(&[Exit, Join, Poll]),
            Join => Classes::of(&[Exit]),
            Poll => Classes::of(&[Exit]),
            Park => Classes::of(&[Park, Unpark]),
            Unpark => Classes::of(&[Park]),
            // A spawn comes before the child's first event; that edge belongs to happens-before
            // itself and not to an object.
            Spawn | Local | Wait | LetGo => Classes::NONE,
        }
    }

    /// Whether the class conflicts with every class its object can meet, itself included, so that
    /// an event of it cuts the object's history in two.
    pub(crate) const fn is_total(self) -> bool {
        match self {
            Class::Write
            | Class::Acquire
            | Class::Release
            | Class::CountTake
            | Class::Exit
            | Class::Park => true,
            Class::Read
            | Class::AcquireFailed
            | Class::Retain
            | Class::Drop
            | Class::DropQuiet
            | Class::CountRead
            | Class::Upgrade
            | Class::Spawn
            | Class::Join
            | Class::Poll
            | Class::Unpark
            | Class::Local
            | Class::Wait
            | Class::LetGo => false,
        }
    }

    /// The classes that are kept apart in an object's access record (`happens_before.rs`): 0 for
    /// the total ones, and a number of its own for each of the others that one object can meet.
    pub(crate) const fn slot(self) -> usize {
        match self {
            Class::Write
            | Class::Acquire
            | Class::Release
            | Class::CountTake
            | Class::Exit
            | Class::Park => 0,
            Class::Read
            | Class::AcquireFailed
            | Class::Retain
            | Class::Spawn
            | Class::Unpark
            | Class::Local
            | Class::LetGo => 1,
            Class::Drop | Class::Join => 2,
            Class::DropQuiet | Class::Poll => 3,
            Class::CountRead => 4,
            Class::Upgrade => 5,
            Class::Wait => 6,
        }
    }

    /// Whether an event of this class takes something that others may then have to wait for.
    pub(crate) const fn acquires(self) -> bool {
        match self {
            Class::Acquire => true,
            Class::Read
            | Class::Write
            | Class::Release
            | Class::AcquireFailed
            | Class::Retain
            | Class::Drop
            | Class::DropQuiet
            | Class::CountRead
            | Class::CountTake
            | Class::Upgrade
            | Class::Spawn
            | Class::Exit
            | Class::Join
            | Class::Poll
            | Class::Park
            | Class::Unpark
            | Class::Local
            | Class::Wait
            | Class::LetGo => false,
        }
    }
}

/// How many [`Class::slot`]s there are.
pub(crate) const SLOTS: usize = 7;

/// What an event is called when traces are compared: its object, its class, and the count a
/// release found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Label {
    /// For [`Class::Wait`] the number of its read set.
    pub(crate) object: ObjectId,
    pub(crate) class: Class,
    /// For a [`Class::Drop`] how many references there were before it, saturating; otherwise 0.
    pub(crate) count: u16,
}

impl Label {
    /// The label of an operation that ended like this.
    pub(crate) fn new(object: ObjectId, kind: &OpKind, outcome: Outcome, observed: bool) -> Label {
        let class = classify(kind, outcome, observed);
        let count = match class {
            Class::Drop => outcome.value().unwrap_or(0).min(u16::MAX as u64) as u16,
            _ => 0,
        };
        let object = match kind {
            OpKind::Wait { set, .. } => ObjectId(*set),
            _ => object,
        };
        Label {
            object,
            class,
            count,
        }
    }

    /// The part of the label that belongs to the trace: not the count, only "was it the last".
    pub(crate) fn canonical(self) -> Label {
        Label {
            count: match self.class {
                Class::Drop => (self.count == 1) as u16,
                _ => self.count,
            },
            ..self
        }
    }
}

/// The class of an operation that ended like this. `observed` is the object's: whether the last
/// release of a count can be seen.
pub(crate) fn classify(kind: &OpKind, outcome: Outcome, observed: bool) -> Class {
    let ok = outcome.succeeded();
    match kind {
        OpKind::Load { .. } => Class::Read,
        OpKind::Store { .. } => Class::Write,
        OpKind::Rmw { .. } => Class::Write,
        OpKind::CompareExchange { .. } if ok => Class::Write,
        OpKind::CompareExchange { .. } => Class::Read,
        OpKind::Fence { .. } => Class::Local,
        OpKind::Lock => Class::Acquire,
        OpKind::TryLock if ok => Class::Acquire,
        OpKind::TryLock => Class::AcquireFailed,
        OpKind::Unlock => Class::Release,
        OpKind::Retain => Class::Retain,
        OpKind::Release if observed => Class::Drop,
        OpKind::Release => Class::DropQuiet,
        OpKind::ReadCount => Class::CountRead,
        OpKind::TakeUnique if ok => Class::CountTake,
        OpKind::Upgrade if ok => Class::Upgrade,
        OpKind::TakeUnique | OpKind::Upgrade => Class::CountRead,
        OpKind::Spawn { .. } => Class::Spawn,
        OpKind::Exit => Class::Exit,
        OpKind::Join => Class::Join,
        OpKind::IsFinished => Class::Poll,
        OpKind::Park | OpKind::ParkTimeout => Class::Park,
        OpKind::Unpark => Class::Unpark,
        OpKind::Choose { .. } | OpKind::Start | OpKind::GiveUp => Class::Local,
        OpKind::Wait { .. } if outcome == Outcome::LetGo => Class::LetGo,
        OpKind::Wait { .. } => Class::Wait,
    }
}

/// The sets of locations that waits have read; interned, because the labels of waits are kept in
/// trees across executions. The values that were read are not part of a set: pointers differ from
/// one execution to the next.
#[derive(Default, Clone, Debug)]
pub(crate) struct ReadSets {
    sets: Vec<Box<[ObjectId]>>,
    index: HashMap<Box<[ObjectId]>, u32>,
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
        | Class::Drop
        | Class::DropQuiet
        | Class::CountTake
        | Class::Upgrade
        | Class::Exit
        | Class::Park
        | Class::Unpark => true,
        Class::Read
        | Class::AcquireFailed
        | Class::CountRead
        | Class::Spawn
        | Class::Join
        | Class::Poll
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
            slots |= 1 << ALL[i].slot();
        }
        i += 1;
    }
    if changes_value(class) {
        slots |= 1 << Class::Wait.slot();
    }
    slots
}

/// [`conflicting_slots`] as a table, because every event asks.
pub(crate) const CONFLICTING_SLOTS: [u32; ALL.len()] = {
    let mut table = [0; ALL.len()];
    let mut i = 0;
    while i < ALL.len() {
        table[ALL[i] as usize] = conflicting_slots(ALL[i]);
        i += 1;
    }
    table
};

/// The slots of the events that change a value, behind which a wait may be ordered.
pub(crate) const CHANGING_SLOTS: u32 = {
    let mut slots = 0;
    let mut i = 0;
    while i < ALL.len() {
        if changes_value(ALL[i]) {
            slots |= 1 << ALL[i].slot();
        }
        i += 1;
    }
    slots
};

/// Whether two events of different threads, which happened in this order, are ordered by what they
/// do to objects.
pub(crate) fn ordered(sets: &ReadSets, earlier: Label, later: Label) -> bool {
    related(sets, earlier, later, later.count == 1)
}

/// Whether an operation that was `pending` when the event happened could have been executed before
/// it without being ordered with it: `p` diamond `e` of the papers.
pub(crate) fn commutes(sets: &ReadSets, pending: Label, event: Label) -> bool {
    !related(sets, pending, event, event.count < 3)
}

fn related(sets: &ReadSets, a: Label, b: Label, drops_related: bool) -> bool {
    if a.class == Class::Wait {
        return changes_value(b.class) && sets.has(a.object, b.object);
    }
    if b.class == Class::Wait {
        return changes_value(a.class) && sets.has(b.object, a.object);
    }
    if a.object != b.object || !a.class.conflicts().contains(b.class) {
        return false;
    }
    if a.class == Class::Drop && b.class == Class::Drop {
        return drops_related;
    }
    true
}

#[cfg(test)]
mod tests;
