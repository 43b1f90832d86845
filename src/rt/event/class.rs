//! In which ways can an event access an object, and which of them do not commute?
//!
//! Each way is a [`Class`]; [`Class::conflicts`] is the table that `docs/DEPENDENCY.md` prints.

/// The way in which an event accesses its object, as far as it matters for the order of events.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Class {
    // Atomics.
    Read,
    Write,
    /// A change by a function that commutes with others, of which the thread learns nothing. The
    /// number of these functions is in the label.
    Update,
    // Mutexes.
    Acquire,
    Release,
    AcquireFailed,
    // Reference counts.
    Retain,
    /// A weak reference was made or dropped.
    WeakRetain,
    /// A release that the program can observe if it is the last one.
    Drop,
    /// A release of a payload without drop glue: the program cannot observe which release is the
    /// last.
    DropQuiet,
    CountRead,
    CountTake,
    /// A successful `Weak::upgrade` or `Arc::increment_strong_count`.
    Upgrade,
    /// A failed `Weak::upgrade`: no reference is left.
    TooLate,
    // Threads.
    Spawn,
    Exit,
    Join,
    Poll,
    // Park tokens.
    Park,
    /// A timed wait for the token that ended without it.
    ParkFailed,
    Unpark,
    // Reader-writer locks, besides `Acquire`, `Release` and `AcquireFailed`.
    ReadAcquire,
    ReadRelease,
    /// A `try_write` that failed, maybe because of readers.
    WriteFailed,
    // Condition variables.
    Enqueue,
    /// Wakes one waiter or more; the number of the notification is in the label.
    Notify,
    /// A notification without a waiting thread.
    NotifyNone,
    /// A notified thread continues; the number of the notification is in the label.
    Awake,
    /// A waiting thread continues without a notification.
    TimedOut,
    // Barriers.
    /// An arrival; the label has the number of arrivals that were missing before.
    Arrive,
    Leave,
    // One-time initialisations.
    OnceBegin,
    OnceEnd,
    /// The thread has found the initialisation done, or has asked whether it is done.
    Peek,
    /// The thread has found the initialisation poisoned.
    OnceFailed,
    // Channels.
    /// A message was put into the queue; its number is in the label.
    Sent,
    /// A message was handed to a receiver that waits.
    HandOver,
    SendFailed,
    /// A message was taken; its number is in the label.
    Received,
    RecvFailed,
    RecvWait,
    /// A sender has learnt that its message was taken.
    Taken,
    AddSender,
    DropSender,
    DropReceiver,
    // Objects with unknown contents (`operation/touch.rs`). The label of an access to one key has
    // the key, and that of a declared access the accesses that it may not be swapped with.
    TouchAll,
    ReadAll,
    WeakRead,
    WeakWrite,
    KeyRead,
    KeyWrite,
    KeyShape,
    ReadKeys,
    Declared,
    // Operations on no shared object.
    Local,
    /// A wait for a change: reads every location of its set.
    Wait,
    /// A block that is one step: reads or writes every object of its footprint.
    Block,
    /// A wait that was released because no other thread could run. It comes after all events that
    /// happened before that moment; `happens_before.rs` adds that order.
    Released,
}

/// Every class, in the order of the table in `docs/DEPENDENCY.md`.
pub(crate) const ALL: [Class; 58] = [
    Class::Read,
    Class::Write,
    Class::Update,
    Class::Acquire,
    Class::Release,
    Class::AcquireFailed,
    Class::Retain,
    Class::WeakRetain,
    Class::Drop,
    Class::DropQuiet,
    Class::CountRead,
    Class::CountTake,
    Class::Upgrade,
    Class::TooLate,
    Class::Spawn,
    Class::Exit,
    Class::Join,
    Class::Poll,
    Class::Park,
    Class::ParkFailed,
    Class::Unpark,
    Class::ReadAcquire,
    Class::ReadRelease,
    Class::WriteFailed,
    Class::Enqueue,
    Class::Notify,
    Class::NotifyNone,
    Class::Awake,
    Class::TimedOut,
    Class::Arrive,
    Class::Leave,
    Class::OnceBegin,
    Class::OnceEnd,
    Class::Peek,
    Class::OnceFailed,
    Class::Sent,
    Class::HandOver,
    Class::SendFailed,
    Class::Received,
    Class::RecvFailed,
    Class::RecvWait,
    Class::Taken,
    Class::AddSender,
    Class::DropSender,
    Class::DropReceiver,
    Class::TouchAll,
    Class::ReadAll,
    Class::WeakRead,
    Class::WeakWrite,
    Class::KeyRead,
    Class::KeyWrite,
    Class::KeyShape,
    Class::ReadKeys,
    Class::Declared,
    Class::Local,
    Class::Wait,
    Class::Block,
    Class::Released,
];

const _: () = {
    // The position of a class in the list is its number.
    let mut i = 0;
    while i < ALL.len() {
        assert!(ALL[i] as usize == i);
        i += 1;
    }
};

/// A set of classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Classes(u64);

impl Classes {
    pub(crate) const NONE: Classes = Classes(0);

    #[inline]
    pub(crate) const fn add(&mut self, class: Class) {
        self.0 |= 1 << class as u32;
    }

    pub(crate) const fn of(classes: &[Class]) -> Classes {
        let mut bits = 0;
        let mut i = 0;
        while i < classes.len() {
            bits |= 1 << classes[i] as u32;
            i += 1;
        }
        Classes(bits)
    }

    #[inline]
    pub(crate) const fn contains(self, class: Class) -> bool {
        self.has(class as u32)
    }

    /// Whether the two sets have a class in common.
    #[inline]
    pub(crate) const fn intersects(self, other: Classes) -> bool {
        self.0 & other.0 != 0
    }

    /// The set of the class with this number.
    #[inline]
    pub(crate) const fn numbered(number: u32) -> Classes {
        Classes(1 << number)
    }

    /// [`Classes::contains`] for the class with this number.
    #[inline]
    pub(crate) const fn has(self, number: u32) -> bool {
        self.0 >> number & 1 == 1
    }
}

impl Class {
    /// The classes that may not be swapped with this one on the same object.
    pub(crate) const fn conflicts(self) -> Classes {
        use Class::*;
        match self {
            Read => Classes::of(&[Write, Update]),
            Write | Update => Classes::of(&[Read, Write, Update]),
            Acquire | Release => Classes::of(&[
                Acquire,
                Release,
                AcquireFailed,
                ReadAcquire,
                ReadRelease,
                WriteFailed,
            ]),
            AcquireFailed => Classes::of(&[Acquire, Release]),
            Retain | WeakRetain => Classes::of(&[CountRead, CountTake]),
            Drop => Classes::of(&[Drop, DropQuiet, CountRead, CountTake, Upgrade, TooLate]),
            DropQuiet => Classes::of(&[Drop, CountRead, CountTake, Upgrade, TooLate]),
            CountRead => Classes::of(&[Retain, WeakRetain, Drop, DropQuiet, CountTake, Upgrade]),
            CountTake => Classes::of(&[
                Retain, WeakRetain, Drop, DropQuiet, CountRead, CountTake, Upgrade, TooLate,
            ]),
            Upgrade => Classes::of(&[Drop, DropQuiet, CountRead, CountTake]),
            // A count that has reached zero stays zero.
            TooLate => Classes::of(&[Drop, DropQuiet, CountTake]),
            Exit => Classes::of(&[Exit, Join, Poll]),
            Join => Classes::of(&[Exit]),
            Poll => Classes::of(&[Exit]),
            Park => Classes::of(&[Park, ParkFailed, Unpark]),
            ParkFailed => Classes::of(&[Park, Unpark]),
            Unpark => Classes::of(&[Park, ParkFailed]),
            ReadAcquire | ReadRelease => Classes::of(&[Acquire, Release, WriteFailed]),
            WriteFailed => Classes::of(&[Acquire, Release, ReadAcquire, ReadRelease]),
            Enqueue => Classes::of(&[Notify, NotifyNone]),
            Notify => Classes::of(&[Enqueue, Notify, NotifyNone, Awake, TimedOut]),
            NotifyNone => Classes::of(&[Enqueue, Notify, TimedOut]),
            Awake => Classes::of(&[Notify]),
            TimedOut => Classes::of(&[Notify, NotifyNone]),
            Arrive => Classes::of(&[Arrive, Leave]),
            Leave => Classes::of(&[Arrive]),
            OnceBegin => Classes::of(&[OnceBegin, OnceEnd, OnceFailed]),
            OnceEnd => Classes::of(&[OnceBegin, OnceEnd, Peek, OnceFailed]),
            OnceFailed => Classes::of(&[OnceBegin, OnceEnd]),
            Peek => Classes::of(&[OnceEnd]),
            Sent => Classes::of(&[
                Sent,
                HandOver,
                SendFailed,
                Received,
                RecvFailed,
                DropReceiver,
            ]),
            HandOver => Classes::of(&[
                Sent,
                HandOver,
                SendFailed,
                Received,
                RecvFailed,
                RecvWait,
                DropReceiver,
            ]),
            SendFailed => {
                Classes::of(&[Sent, HandOver, Received, RecvFailed, RecvWait, DropReceiver])
            }
            Received => Classes::of(&[Received, Sent, HandOver, SendFailed, Taken, DropReceiver]),
            RecvFailed => Classes::of(&[Sent, HandOver, SendFailed, DropSender]),
            RecvWait => Classes::of(&[HandOver, SendFailed]),
            Taken => Classes::of(&[Received]),
            DropSender => Classes::of(&[RecvFailed]),
            DropReceiver => Classes::of(&[Sent, HandOver, SendFailed, Received]),
            TouchAll => Classes::of(&[
                TouchAll, ReadAll, WeakRead, WeakWrite, KeyRead, KeyWrite, KeyShape, ReadKeys,
                Declared,
            ]),
            ReadAll => Classes::of(&[TouchAll, WeakWrite, KeyWrite, KeyShape, Declared]),
            WeakRead => Classes::of(&[TouchAll]),
            WeakWrite => Classes::of(&[TouchAll, ReadAll]),
            KeyRead => Classes::of(&[TouchAll, KeyWrite, KeyShape]),
            KeyWrite => Classes::of(&[TouchAll, ReadAll, KeyRead, KeyWrite, KeyShape]),
            KeyShape => Classes::of(&[TouchAll, ReadAll, KeyRead, KeyWrite, KeyShape, ReadKeys]),
            ReadKeys => Classes::of(&[TouchAll, KeyShape]),
            Declared => Classes::of(&[TouchAll, ReadAll, Declared]),
            // Only an existing sender adds a sender, so no operation can observe the difference.
            AddSender => Classes::NONE,
            // A spawn comes before the child's first event. Happens-before itself has that edge,
            // and not an object; the same holds for the edge from a thread's last event to a join.
            // Of a wait and of a block the objects are a set (`independence.rs`).
            Spawn | Local | Wait | Block | Released => Classes::NONE,
        }
    }

    /// The part of an object's access record (`happens_before.rs`) that keeps events of this class:
    /// 0 for the total classes, and a number of its own for each other class that one object can
    /// have. A class is total if it conflicts with every class its object can have, itself
    /// included, so that an event of it cuts the object's history in two.
    pub(crate) const fn slot(self) -> usize {
        match self {
            Class::Write
            | Class::Acquire
            | Class::Release
            | Class::CountTake
            | Class::Exit
            | Class::Park
            | Class::OnceEnd
            | Class::TouchAll => 0,
            Class::Read
            | Class::AcquireFailed
            | Class::Retain
            | Class::Spawn
            | Class::Unpark
            | Class::Enqueue
            | Class::Arrive
            | Class::OnceBegin
            | Class::Sent
            | Class::ReadAll
            | Class::Local
            | Class::Released => 1,
            Class::Update
            | Class::Drop
            | Class::Join
            | Class::ParkFailed
            | Class::ReadAcquire
            | Class::Notify
            | Class::Leave
            | Class::Peek
            | Class::HandOver
            | Class::WeakRead => 2,
            Class::DropQuiet
            | Class::Poll
            | Class::ReadRelease
            | Class::NotifyNone
            | Class::OnceFailed
            | Class::SendFailed
            | Class::WeakWrite => 3,
            Class::CountRead
            | Class::WriteFailed
            | Class::Awake
            | Class::Received
            | Class::KeyRead => 4,
            Class::Upgrade | Class::TimedOut | Class::RecvFailed | Class::KeyWrite => 5,
            Class::RecvWait | Class::TooLate | Class::KeyShape => 6,
            Class::Taken | Class::WeakRetain | Class::ReadKeys => 7,
            Class::DropSender => 8,
            Class::DropReceiver | Class::Declared => 9,
            Class::AddSender => 10,
            Class::Wait => WAIT_SLOT,
            Class::Block => BLOCK_SLOT,
        }
    }

    /// All slots that can hold events of this class. The counted classes have one more,
    /// [`LAST_SLOT`].
    pub(crate) const fn slots(self) -> u32 {
        let last = match self {
            Class::Drop | Class::Arrive => 1 << LAST_SLOT,
            _ => 0,
        };
        1 << self.slot() | last
    }

    /// Whether an event of this class takes a resource for which other threads may then have to
    /// wait.
    pub(crate) const fn acquires(self) -> bool {
        matches!(
            self,
            Class::Acquire | Class::ReadAcquire | Class::OnceBegin | Class::Sent | Class::Park
        )
    }
}

/// The slot of the total classes.
pub(crate) const TOTAL_SLOT: usize = 0;

/// The slot of a release or an arrival that is the last one. The other releases have a slot of
/// their own, because there may be one per thread and they are not ordered among each other. No
/// such object has another class with this slot.
pub(crate) const LAST_SLOT: usize = 8;

/// The slot of [`Class::Wait`].
pub(crate) const WAIT_SLOT: usize = 11;

/// The slot of [`Class::Block`].
pub(crate) const BLOCK_SLOT: usize = 12;

/// The number of [`Class::slot`]s.
pub(crate) const SLOTS: usize = 13;
