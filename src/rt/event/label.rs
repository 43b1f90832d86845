//! By what name are events compared between traces?
//!
//! By a [`Label`]: the event's object, its class, and a number that some classes have. [`classify`]
//! maps an operation and its actual outcome to the class: a failed compare-exchange is a read, a
//! successful `try_lock` is a lock. It is exhaustive, without a catch-all arm.

use std::fmt;

use crate::rt::event::class::{ALL, Class, Classes};
use crate::rt::event::id::ObjectId;
use crate::rt::event::notification::notification;
use crate::rt::event::operation::{OpKind, Outcome};

/// The nature of an object, as far as the classes of its events depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nature {
    Plain,
    /// A count with a last release that the program can observe.
    Observed,
    /// A channel with this capacity in messages; 255 stands for more.
    Bounded(u8),
    /// A channel with capacity 0.
    Rendezvous,
}

/// The name of an event in its trace. It is one word, because each step writes it and reads it soon
/// after: a processor stalls on a read of memory that it has just written in pieces.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Label(u64);

impl Label {
    /// The label of an event of a class without a number.
    #[inline]
    pub(crate) const fn of(object: ObjectId, class: Class) -> Label {
        Label(object.0 as u64 | (class as u64) << 32)
    }

    /// The label of an event with a room and a count.
    #[inline]
    pub(crate) const fn numbered(self, room: u8, count: u16) -> Label {
        let without = self.0 & 0xff_ffff_ffff;
        Label(without | (room as u64) << 40 | (count as u64) << 48)
    }

    /// The label of a wait, with the number of its read set.
    pub(crate) const fn waiting(set: u32) -> Label {
        Label::of(ObjectId(set), Class::Wait)
    }

    /// The object of the event; of a [`Class::Wait`] the number of its read set, and of a
    /// [`Class::Block`] that of its footprint.
    #[inline]
    pub(crate) const fn object(self) -> ObjectId {
        ObjectId(self.0 as u32)
    }

    #[inline]
    pub(crate) const fn class(self) -> Class {
        BY_NUMBER[self.number() as usize]
    }

    /// The set that contains only its class.
    #[inline]
    pub(crate) const fn classes(self) -> Classes {
        Classes::numbered(self.number())
    }

    /// The number of its class, which is less than 64.
    #[inline]
    pub(crate) const fn number(self) -> u32 {
        (self.0 >> 32) as u32 % 64
    }

    #[inline]
    pub(crate) const fn is_wait(self) -> bool {
        self.number() == Class::Wait as u32
    }

    #[inline]
    pub(crate) const fn is_block(self) -> bool {
        self.number() == Class::Block as u32
    }

    /// For a message sent into a bounded channel, the capacity, up to 255. For a [`Class::Arrive`]
    /// and a [`Class::Leave`], the number of the group, as far as it fits. For an access to one
    /// key, the upper part of the key; for a declared access, its number. Otherwise 0.
    #[inline]
    pub(crate) const fn room(self) -> u8 {
        (self.0 >> 40) as u8
    }

    /// For a [`Class::Drop`], the number of references before it. For a [`Class::Arrive`], the
    /// number of missing arrivals. For a notification and the wake-ups it causes, the number of the
    /// notification. For an operation on a message, the number of the message. For an update, the
    /// number of the functions that commute with its own. For an access to one
    /// key, the lower part of the key; for a declared access, a bit for each access that may not be
    /// swapped with it. Large numbers are
    /// cut in a way that makes two events dependent rather than independent.
    #[inline]
    pub(crate) const fn count(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Whether this is an access to one object, which may order the event with others.
    #[inline]
    pub(crate) fn touches_one(self) -> bool {
        !APART.has(self.number())
    }

    /// Whether this access to an atomic writes it; `None` for every other event. No other object
    /// has these classes.
    #[inline]
    pub(crate) fn writes_atomic(self) -> Option<bool> {
        const UPDATE: u32 = Class::Update as u32;
        // The classes of atomics come first, and that of a read before those of the writes, so one
        // comparison is enough.
        const { assert!(Class::Read as u32 == 0 && Class::Write as u32 == 1 && UPDATE == 2) };
        let number = self.number();
        (number <= UPDATE).then_some(number != 0)
    }

    /// The label of an operation with this outcome, on an object of this nature.
    #[inline(always)]
    pub(crate) fn new(object: ObjectId, kind: &OpKind, outcome: Outcome, nature: Nature) -> Label {
        let class = classify(kind, outcome, nature);
        let value = outcome.value().unwrap_or(0);
        let count = match class {
            Class::Drop => value.min(u16::MAX as u64) as u16,
            // The generation is in the upper half.
            Class::Arrive => (value as u32).min(u16::MAX as u32) as u16,
            Class::Notify | Class::Awake => notification(value),
            Class::Sent | Class::HandOver | Class::Received | Class::Taken => value as u16,
            Class::Update => match kind {
                OpKind::Rmw { rmw, .. } => rmw.family(),
                _ => 0,
            },
            Class::KeyRead | Class::KeyWrite | Class::KeyShape | Class::Declared => match kind {
                OpKind::Touch(touch) => touch.numbers().1,
                _ => 0,
            },
            _ => 0,
        };
        let room = match (class, nature, kind) {
            (Class::Sent, Nature::Bounded(room), _) => room,
            (Class::Arrive, ..) => (value >> 32) as u8,
            (Class::Leave, _, OpKind::Leave { generation }) => *generation as u8,
            (_, _, OpKind::Touch(touch)) => touch.numbers().0,
            _ => 0,
        };
        let object = match kind {
            OpKind::Wait { set, .. } => ObjectId(*set),
            OpKind::Atomically { footprint } => ObjectId(*footprint),
            _ => object,
        };
        Label::of(object, class).numbered(room, count)
    }

    /// The part of the label that belongs to the trace. Of the count before a release or an arrival
    /// only one bit belongs to it: whether the event was the last one.
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

    /// Whether the label has a count: the order of the event then depends on the number of such
    /// events before it.
    #[inline]
    pub(crate) fn has_count(self) -> bool {
        COUNTED.has(self.number())
    }

    /// Whether the event changes the count that other events of its object find, and commutes with
    /// some of them.
    #[inline]
    pub(crate) fn changes_count(self) -> bool {
        self.has_count() || self.class() == Class::Retain
    }

    /// The label that the event has if an event of class `before`, with which it commutes, is
    /// executed before it.
    pub(crate) fn after(self, before: Class) -> Label {
        let count = match before {
            _ if !self.has_count() => return self,
            Class::Retain => self.count().saturating_add(1),
            _ => self.count().saturating_sub(1),
        };
        self.numbered(self.room(), count)
    }
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

/// The class of an operation with this outcome, on an object of this nature.
#[inline(always)]
pub(crate) fn classify(kind: &OpKind, outcome: Outcome, nature: Nature) -> Class {
    let ok = outcome.succeeded();
    match kind {
        OpKind::Load { .. } => Class::Read,
        OpKind::Store { .. } => Class::Write,
        OpKind::Rmw {
            blind: true, rmw, ..
        } if rmw.family() != 0 => Class::Update,
        OpKind::Rmw { .. } => Class::Write,
        OpKind::CompareExchange { .. } if ok => Class::Write,
        OpKind::CompareExchange { .. } => Class::Read,
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
        OpKind::ParkTimeout if ok => Class::Park,
        OpKind::ParkTimeout => Class::ParkFailed,
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
        // The value 3 means poisoned (`object/once.rs`).
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
        OpKind::Touch(touch) => touch.class(),
        OpKind::EndForNoReason
        | OpKind::Choose { .. }
        | OpKind::Start
        | OpKind::GiveUp { .. }
        | OpKind::Resume => Class::Local,
        OpKind::Atomically { .. } => Class::Block,
        OpKind::Wait { .. } if outcome.is_released() => Class::Released,
        OpKind::Wait { .. } => Class::Wait,
    }
}

/// [`ALL`], extended to every number that fits into the bits of a label.
static BY_NUMBER: [Class; 64] = {
    let mut table = [Class::Local; 64];
    let mut i = 0;
    while i < ALL.len() {
        table[i] = ALL[i];
        i += 1;
    }
    table
};

/// The classes of events that put a message into a channel or take one out.
const MESSAGES: Classes = Classes::of(&[Class::Sent, Class::HandOver, Class::Received]);

/// The classes of events that access no object, or several objects. The predecessor of a join is
/// known without its object.
const APART: Classes = Classes::of(&[
    Class::Local,
    Class::Spawn,
    Class::Join,
    Class::Wait,
    Class::Block,
    Class::Released,
]);

/// The classes with a count in the label that depends on the earlier events of the object.
pub(crate) const COUNTED: Classes = Classes::of(&[Class::Drop, Class::Arrive]);
