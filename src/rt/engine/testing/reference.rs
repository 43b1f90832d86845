//! Which executions are the same trace, by the real order of wake-ups, releases and messages?
//!
//! The labels and the clocks of the library play no part in this. The reference processes each
//! object's history anew, names an event by its effect ([`Way`]), and orders two events of
//! different threads as `docs/DEPENDENCY.md` says. So a label that orders too much shows as one
//! trace with two keys in the library and one here.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::rt::engine::testing::Program;

use crate::rt::event::id::{ObjectId, Region, ThreadId};
use crate::rt::event::operation::{Key, OpKind, Rmw, Touch};
use crate::rt::event::{Event, Trace};
use crate::rt::object::machine::Machine;
use crate::rt::relation::key::TraceKey;

/// The effect of an event on its object. Numbers identify a notification and the wait that it
/// wakes, an arrival and its group, and a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Way {
    Nothing,
    /// Applies a function of which the thread learns nothing.
    Update(Rmw),
    Read,
    Write,
    /// Takes or frees a lock for one thread, or for one of several readers.
    Alone,
    Shared,
    /// Failed because a lock is held by one thread alone, or because it is held at all.
    Shut,
    ShutByAny,
    Enter,
    Notify(usize),
    NotifyNone,
    WokenBy(usize),
    TimedOut,
    Take,
    TakeFailed,
    Give,
    Arrive {
        group: usize,
        last: bool,
    },
    Leave(usize),
    Begin,
    End,
    Peek,
    Poisoned,
    Sent(usize),
    HandOver(usize),
    SendFailed,
    Received(usize),
    RecvFailed,
    RecvWait,
    Taken(usize),
    DropSender,
    DropReceiver,
    Touches(Touch),
    /// A block that is one step, with the number of its footprint.
    Block(u32),
}

/// A part of an object with unknown contents.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// What no weak write and no key changes.
    Rest,
    /// The parts that weak writes change, each a different one.
    Weak,
    /// Whether a key is there, and its value.
    Presence(Key),
    Value(Key),
    /// The same of all keys.
    AnyPresence,
    AnyValue,
}

impl Part {
    fn meets(self, other: Part) -> bool {
        use Part::*;
        let any_of = |one, other| {
            matches!(
                (one, other),
                (AnyPresence, Presence(_)) | (AnyValue, Value(_))
            )
        };
        self == other || any_of(self, other) || any_of(other, self)
    }
}

/// The parts that an operation reads, and those that it writes.
fn footprint_of(touch: Touch) -> (Vec<Part>, Vec<Part>) {
    use Part::*;
    let everything = vec![Rest, Weak, AnyPresence, AnyValue];
    match touch {
        Touch::All => (vec![], everything),
        Touch::ReadAll => (everything, vec![]),
        Touch::WeakRead => (vec![Rest], vec![]),
        Touch::WeakWrite => (vec![Rest], vec![Weak]),
        Touch::KeyRead(key) => (vec![Rest, Presence(key), Value(key)], vec![]),
        Touch::KeyWrite(key) => (vec![Rest, Presence(key)], vec![Value(key)]),
        Touch::KeyShape(key) => (vec![Rest], vec![Presence(key), Value(key)]),
        Touch::ReadKeys => (vec![Rest, AnyPresence], vec![]),
        Touch::Declared { .. } => (vec![], vec![]),
    }
}

/// The pairs of declared accesses that cannot be swapped, in the programs of the tests.
pub(crate) const DECLARED: [(u8, u8); 5] = [(0, 1), (1, 1), (1, 2), (2, 3), (4, 4)];

/// Whether two operations on one object with unknown contents cannot be swapped.
fn clash(a: Touch, b: Touch) -> bool {
    let number = |touch| match touch {
        Touch::Declared { number, .. } => Some(number),
        _ => None,
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => DECLARED.contains(&(a, b)) || DECLARED.contains(&(b, a)),
        (None, None) => {
            let ((reads, writes), (others_reads, others_writes)) =
                (footprint_of(a), footprint_of(b));
            let weakly = a == Touch::WeakWrite && b == Touch::WeakWrite;
            let meet = |one: &[Part], other: &[Part]| {
                one.iter()
                    .any(|part| other.iter().any(|it| part.meets(*it)))
            };
            !weakly
                && (meet(&writes, &others_writes)
                    || meet(&writes, &others_reads)
                    || meet(&reads, &others_writes))
        }
        // A declared access may change anything.
        _ => [a, b]
            .iter()
            .any(|it| matches!(it, Touch::All | Touch::ReadAll)),
    }
}

/// Whether the two functions may be applied in either order, for all operands.
fn commute(a: Rmw, b: Rmw) -> bool {
    let adds = |rmw| matches!(rmw, Rmw::Add | Rmw::Sub);
    adds(a) && adds(b) || a == b && !matches!(a, Rmw::Swap | Rmw::Nand | Rmw::NandBool)
}

/// Whether two events on one object cannot be swapped. The capacity of a channel is `size` minus
/// one.
fn ordered(size: usize, a: Way, b: Way) -> bool {
    use Way::*;
    let one_way = |a: Way, b: Way| match (a, b) {
        (Touches(a), Touches(b)) => clash(a, b),
        (Write, Read | Write | Update(_)) | (Update(_), Read) => true,
        (Update(a), Update(b)) => !commute(a, b),
        (Alone, Alone | Shared | Shut | ShutByAny) | (Shared, ShutByAny) => true,
        (Notify(_) | NotifyNone, Enter | TimedOut) | (Notify(_), Notify(_) | NotifyNone) => true,
        (Notify(by), WokenBy(which)) => by == which,
        (Take, Take | TakeFailed | Give) | (Give, TakeFailed) => true,
        (Arrive { last, .. }, Arrive { .. }) => last,
        (Arrive { group, last }, Leave(of)) => last && group == of,
        (End, Begin | End | Peek | Poisoned) | (Begin, Begin | Poisoned) => true,
        (Sent(_) | HandOver(_), Sent(_) | HandOver(_) | SendFailed | RecvFailed | DropReceiver) => {
            true
        }
        (HandOver(_) | SendFailed, RecvWait) => true,
        (SendFailed, Received(_) | RecvFailed | DropReceiver) => true,
        (Sent(n), Received(m)) => n == m || size > 1 && n + 1 == m + size,
        (HandOver(n) | Taken(n), Received(m)) => n == m,
        (Received(_), Received(_) | DropReceiver) => true,
        (RecvFailed, DropSender) => true,
        _ => false,
    };
    one_way(a, b) || one_way(b, a)
}

/// The past of an object, as far as the names of later events depend on it.
#[derive(Default)]
struct History {
    waiting: Vec<(u64, ThreadId)>,
    woken: BTreeMap<ThreadId, usize>,
    notifications: usize,
    arrived: usize,
    group: usize,
    sent: usize,
    received: usize,
}

impl History {
    /// The effect of the next event. `size` is a channel's capacity or a barrier's group, as the
    /// program declares it.
    fn way(&mut self, event: &Event, size: usize) -> Way {
        let ok = event.outcome.succeeded();
        let (value, me) = (event.outcome.value(), event.thread);
        match event.operation.kind {
            OpKind::Load { .. } | OpKind::IsFinished => Way::Read,
            OpKind::CompareExchange { .. } if !ok => Way::Read,
            OpKind::Rmw {
                rmw, blind: true, ..
            } => Way::Update(rmw),
            OpKind::Store { .. } | OpKind::Rmw { .. } | OpKind::CompareExchange { .. } => {
                Way::Write
            }
            OpKind::Exit => Way::Write,
            OpKind::Lock | OpKind::Unlock { .. } | OpKind::WriteLock => Way::Alone,
            OpKind::UnlockWrite { .. } | OpKind::Downgrade => Way::Alone,
            OpKind::TryLock | OpKind::TryWrite if ok => Way::Alone,
            OpKind::ReadLock | OpKind::UnlockRead => Way::Shared,
            OpKind::TryRead if ok => Way::Shared,
            OpKind::TryLock | OpKind::TryRead => Way::Shut,
            OpKind::TryWrite => Way::ShutByAny,
            OpKind::Enqueue { order } => {
                self.waiting.push((order, me));
                self.waiting.sort_unstable();
                Way::Enter
            }
            OpKind::NotifyOne | OpKind::NotifyAll if self.waiting.is_empty() => Way::NotifyNone,
            kind @ (OpKind::NotifyOne | OpKind::NotifyAll) => {
                let woken = match kind {
                    OpKind::NotifyOne => vec![self.waiting.remove(event.alternative as usize)],
                    _ => std::mem::take(&mut self.waiting),
                };
                self.notifications += 1;
                let by = self.notifications;
                self.woken
                    .extend(woken.iter().map(|&(_, thread)| (thread, by)));
                Way::Notify(by)
            }
            OpKind::Awake { .. } => match self.woken.remove(&me) {
                Some(by) => Way::WokenBy(by),
                None => {
                    self.waiting.retain(|&(_, thread)| thread != me);
                    Way::TimedOut
                }
            },
            OpKind::Park => Way::Take,
            OpKind::ParkTimeout if ok => Way::Take,
            OpKind::ParkTimeout => Way::TakeFailed,
            OpKind::Unpark => Way::Give,
            OpKind::Arrive => {
                self.arrived += 1;
                let (group, last) = (self.group, self.arrived == size.max(1));
                if last {
                    self.arrived = 0;
                    self.group += 1;
                }
                Way::Arrive { group, last }
            }
            OpKind::Leave { generation } => Way::Leave(generation as usize),
            OpKind::CallOnce { .. } if ok => Way::Begin,
            OpKind::EndOnce { .. } => Way::End,
            OpKind::CallOnce { .. } | OpKind::WaitOnce { .. } if value == Some(3) => Way::Poisoned,
            OpKind::CallOnce { .. } | OpKind::WaitOnce { .. } | OpKind::CheckOnce => Way::Peek,
            OpKind::Send | OpKind::TrySend if ok => {
                self.sent += 1;
                // In a channel without capacity, a message that does not wait goes directly to the
                // receiver.
                match event.operation.kind {
                    OpKind::TrySend if size == 1 => Way::HandOver(self.sent),
                    _ => Way::Sent(self.sent),
                }
            }
            OpKind::Send | OpKind::TrySend => Way::SendFailed,
            OpKind::Taken { index } if ok => Way::Taken(index as usize + 1),
            OpKind::Taken { .. } => Way::SendFailed,
            OpKind::RecvWait => Way::RecvWait,
            OpKind::Recv { .. } | OpKind::TryRecv if ok => {
                self.received += 1;
                Way::Received(self.received)
            }
            OpKind::Recv { .. } | OpKind::TryRecv => Way::RecvFailed,
            OpKind::DropSender => Way::DropSender,
            OpKind::DropReceiver { .. } => Way::DropReceiver,
            OpKind::Touch(touch) => Way::Touches(touch),
            OpKind::Atomically { footprint } => Way::Block(footprint),
            OpKind::AddSender
            | OpKind::Choose { .. }
            | OpKind::Spawn { .. }
            | OpKind::Join { .. } => Way::Nothing,
            other => panic!("the reference has no name for {other:?}"),
        }
    }
}

/// The name of a block with this footprint.
fn block_name(machine: &Machine, footprint: u32) -> String {
    let footprint = machine.sets.footprint(footprint);
    let objects = footprint.objects().unwrap_or_default();
    let all = objects.iter().map(|&object| {
        let region = machine.names.place(object).region;
        format!("{region:?}: {:?}", footprint.writes(object))
    });
    let mut all: Vec<String> = all.collect();
    all.sort();
    format!("{:?} {all:?}", footprint.objects().is_some())
}

/// Whether the first event is a block that cannot be swapped with the other event.
fn around(machine: &Machine, (_, block): (&Event, Way), (event, way): (&Event, Way)) -> bool {
    let Way::Block(footprint) = block else {
        return false;
    };
    let writes = |footprint, object| machine.sets.footprint(footprint).writes(object);
    match way {
        Way::Nothing => false,
        Way::Block(other) => {
            let mut all = (0..machine.names.object_count() as u32).map(ObjectId);
            all.any(
                |object| match (writes(footprint, object), writes(other, object)) {
                    (Some(one), Some(other)) => one || other,
                    _ => false,
                },
            )
        }
        way => match writes(footprint, event.operation.object) {
            Some(true) => true,
            Some(false) => match way {
                Way::Read | Way::Shut | Way::ShutByAny => false,
                Way::Touches(touch) => !footprint_of(touch).1.is_empty(),
                _ => true,
            },
            None => false,
        },
    }
}

/// The key of an execution of `program`, or of the beginning of one. Main has spawned all threads.
pub(crate) fn key(program: &Program, trace: &Trace, machine: &Machine) -> TraceKey {
    let size = |object: ObjectId| match machine.names.place(object).region {
        Region::Abstract(var) => program
            .kinds
            .get(&var)
            .map_or(0, |&(_, size)| size as usize),
        _ => 0,
    };
    let mut histories: BTreeMap<ObjectId, History> = BTreeMap::new();
    let events = trace.events();
    let ways: Vec<Way> = events
        .iter()
        .map(|event| match event.operation.object {
            ObjectId::NONE => match event.operation.kind {
                OpKind::Atomically { footprint } => Way::Block(footprint),
                _ => Way::Nothing,
            },
            object => histories
                .entry(object)
                .or_default()
                .way(event, size(object)),
        })
        .collect();
    // For each event the events that come before it, itself included.
    let mut pasts: Vec<u128> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let mut past = 1u128.checked_shl(at as u32).expect("a short execution");
        for (earlier, other) in events[..at].iter().enumerate() {
            let on_one = event.operation.object == other.operation.object;
            let before = event.thread == other.thread
                || on_one
                    && event.operation.object != ObjectId::NONE
                    && ordered(size(event.operation.object), ways[earlier], ways[at])
                || around(machine, (other, ways[earlier]), (event, ways[at]))
                || around(machine, (event, ways[at]), (other, ways[earlier]))
                || matches!(other.operation.kind, OpKind::Spawn { child } if child == event.thread)
                || matches!(event.operation.kind, OpKind::Join { child } if child == other.thread);
            if before {
                past |= pasts[earlier];
            }
        }
        pasts.push(past);
    }
    let mut all: Vec<(u32, u32, u64)> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let mut clock: Vec<(u32, u32)> = (0..at)
            .filter(|other| pasts[at] >> other & 1 == 1)
            .map(|other| (events[other].thread.0, events[other].index))
            .collect();
        clock.sort_unstable();
        let chooses = matches!(
            event.operation.kind,
            OpKind::Choose { .. } | OpKind::NotifyOne
        );
        let chosen = chooses.then_some(event.alternative);
        let name = |object: ObjectId| format!("{:?}", machine.names.place(object).region);
        let on = (ways[at] != Way::Nothing).then(|| match ways[at] {
            Way::Block(footprint) => block_name(machine, footprint),
            _ => name(event.operation.object),
        });
        let mut hasher = DefaultHasher::new();
        let way = match ways[at] {
            // The name of the block says more than the number of its footprint.
            Way::Block(_) => Way::Nothing,
            way => way,
        };
        (clock, chosen, on, way).hash(&mut hasher);
        all.push((event.thread.0, event.index, hasher.finish()));
    }
    all.sort_unstable();
    let mut hasher = DefaultHasher::new();
    all.hash(&mut hasher);
    let one = hasher.finish();
    hasher.write_u8(1);
    TraceKey::of_halves(one, hasher.finish())
}
