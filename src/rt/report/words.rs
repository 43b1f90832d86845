//! Which names have threads, objects, values and operations in a report?
//!
//! A thread has the name that the program gave it, otherwise its path. An object is named by the
//! receiver of its first access, otherwise by its kind, with a number if several are alike. The
//! plain memory that a failure is about is named the same way, by the two accesses that the report
//! shows. An operation has two wordings: as announced, before it happens, and as it happened, with
//! its values.

mod data;
mod pointers;
mod receivers;
mod results;
mod tasks;
mod timeouts;
mod tokens;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use self::pointers::Pointers;
use self::receivers::{raced, receivers, written};
use self::timeouts::Unnotified;
use super::changes;
use super::places::Callers;
use super::source::Sources;
use super::touched;
use crate::rt::event::fence::Part;
use crate::rt::event::held::{Datum, Touched};
use crate::rt::event::id::{ObjectId, Region, ThreadId};
use crate::rt::event::notification::woken;
use crate::rt::event::operation::{
    AtomicType, Choice, ObjectKind, OpKind, Operation, Outcome, Reason, Touch,
};
use crate::rt::event::verdict::{Block, End, Wrong};
use crate::rt::event::{Event, Site, Trace};
use crate::rt::object::count;
use crate::rt::object::machine::Machine;
use crate::rt::plural::counted;
use crate::rt::relation::independence::Footprint;

/// The most operations of a block that its row has room for.
const PARTS_MAX: usize = 12;

/// The names of threads and objects.
pub(super) struct Names<'a> {
    machine: &'a Machine,
    threads: BTreeMap<ThreadId, String>,
    objects: BTreeMap<ObjectId, String>,
    /// The plain memory that the failure is about.
    memory: Option<String>,
    /// The other plain memory that the table shows.
    cells: HashMap<Region, String>,
    /// The objects that are the tokens of tasks.
    tasks: BTreeSet<ObjectId>,
    /// How the waits ended that no notification ended.
    unnotified: BTreeMap<(ThreadId, u32), Unnotified>,
    pointers: Pointers,
    /// What is behind a lock at the events that take or release it, in words.
    data: BTreeMap<(ThreadId, u32), String>,
    /// What happened in each block that is one step, in order.
    blocks: BTreeMap<(ThreadId, u32), Vec<Event>>,
}

impl<'a> Names<'a> {
    /// Names for all threads and objects in the events and the end of an execution.
    pub(super) fn new(
        end: &End,
        trace: &Trace,
        machine: &'a Machine,
        given: &'a [(ThreadId, String)],
        callers: &Callers,
    ) -> Names<'a> {
        let mut sources = Sources::default();
        let pointers = Pointers::of(trace, machine);
        let mut objects: BTreeMap<ObjectId, String> = BTreeMap::new();
        let mut taken = Taken::default();
        let mut tasks = BTreeSet::new();
        let threads = called(trace, machine, given);
        let thread = |thread| named(machine, &threads, thread);
        let events = trace.events().iter();
        let parts = trace.parts().iter().filter_map(Part::operation);
        let mut blocks: BTreeMap<(ThreadId, u32), Vec<Event>> = BTreeMap::new();
        for part in parts.clone() {
            let block = blocks.entry((part.thread, part.index)).or_default();
            block.push(*part);
        }
        let events = events.chain(parts);
        let events = events.map(|e| (e.thread, (e.operation, e.site)));
        let stuck = end.stuck().iter();
        let stuck = stuck.map(|b| (b.thread, (b.operation, b.site)));
        let differing: Vec<(ThreadId, (Operation, Site))> = match end {
            End::NotDeterministic(it) => {
                let both = it.expected.into_iter().chain(it.found);
                both.map(|used| (it.thread, used)).collect()
            }
            End::BadMemory(bad) => match bad.wrong {
                Wrong::Operation(operation, site) => vec![(bad.thread, (operation, site))],
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        // The table shows the operation that a thread had announced when it had to stop.
        let live = machine.live().iter();
        let pending = live.filter_map(|&thread| Some((thread, machine.pending(thread)?)));
        let pending = pending.map(|(thread, it)| (thread, (it.operation, it.site)));
        let by: Vec<(ThreadId, (Operation, Site))> = (events.chain(stuck).chain(differing))
            .chain(pending)
            .filter(|(_, (operation, _))| operation.object != ObjectId::NONE)
            .collect();
        let uses: Vec<(Operation, Site)> = by.iter().map(|&(_, used)| used).collect();
        let mut receivers = receivers(&by, machine, &pointers, &mut sources);
        for (operation, site) in uses {
            let object = operation.object;
            if objects.contains_key(&object) {
                continue;
            }
            let region = machine.names.place(object).region;
            if matches!(region, Region::Thread(_) | Region::Token(_)) {
                continue;
            }
            // An object that is older than the execution may have no event in this execution.
            let kind = machine.kind(object);
            let counts = match kind {
                Some(kind) => matches!(kind, ObjectKind::Count { .. }),
                None => operation.kind.counts(),
            };
            let given = machine.names.label_of(region).map(on_one_line);
            // The shared block of a thread and its handle is not the scope or the builder that
            // spawned the thread.
            let result = || {
                let of = counts.then(|| results::whose(trace, region, site))?;
                Some(format!("result of {}", thread(of?)))
            };
            let named = given.or_else(result).or_else(|| receivers.remove(&object));
            // A lazily made value mostly has no name at this place, only a use.
            let named = named.or_else(|| match kind {
                Some(ObjectKind::Once) => sources.dereferenced(site),
                _ => None,
            });
            let task = match named {
                None => tokens::nameless(machine, object, thread),
                Some(_) => None,
            };
            if task.is_some() {
                tasks.insert(object);
            }
            let base = match (named.or(task), kind) {
                // The name alone is the program's name for the value.
                (Some(name), _) if counts => format!("arc {name}"),
                (Some(name), Some(ObjectKind::Atomic(AtomicType::Poison))) => {
                    format!("poison of {name}")
                }
                (Some(name), _) => name,
                (None, Some(kind)) => kind.name().to_lowercase(),
                (None, None) => "an object".to_owned(),
            };
            objects.insert(object, taken.unlike(base));
        }
        let memory = match end {
            End::DataRace(race) => raced(race, trace, machine, (&objects, &pointers), &mut sources),
            End::BadMemory(bad) => match bad.wrong {
                Wrong::Access(_, site, region) => {
                    let given = machine.names.label_of(region);
                    (given.map(on_one_line))
                        .or_else(|| written(site, region, machine, &pointers, &mut sources))
                }
                _ => None,
            },
            _ => None,
        };
        let data = data::words((trace, callers), machine, &pointers);
        taken.take(memory.as_deref().unwrap_or_default());
        let mut cells: HashMap<Region, String> = HashMap::new();
        for touched in touched::shown(callers, end) {
            let region = touched.region;
            if Some(region) == touched::of_failure(end) || cells.contains_key(&region) {
                continue;
            }
            let mut its = objects.keys();
            let object = its.find(|object| machine.names.place(**object).region == region);
            let name = object.map(|object| objects[object].clone()).or_else(|| {
                let given = machine.names.label_of(region).map(on_one_line);
                let site = touched.access.site;
                let named =
                    given.or_else(|| written(site, region, machine, &pointers, &mut sources));
                named.map(|name| taken.unlike(name))
            });
            if let Some(name) = name {
                cells.insert(region, name);
            }
        }
        Names {
            machine,
            data,
            threads,
            objects,
            memory,
            cells,
            tasks,
            blocks,
            unnotified: timeouts::unnotified(trace, machine),
            pointers,
        }
    }

    /// The name that the program gave to a thread, otherwise its path.
    pub(super) fn thread(&self, thread: ThreadId) -> String {
        named(self.machine, &self.threads, thread)
    }

    /// The name of an object.
    pub(super) fn object(&self, object: ObjectId) -> String {
        self.known(object).unwrap_or("?").to_owned()
    }

    /// The name of an object, if the object belongs to the execution.
    pub(super) fn known(&self, object: ObjectId) -> Option<&str> {
        self.objects.get(&object).map(String::as_str)
    }

    /// The name of the plain memory that the failure is about, if it has one. The name is the same
    /// at each access, although the program may use another one at each.
    pub(super) fn memory(&self) -> Option<&str> {
        self.memory.as_deref()
    }

    /// The words for an access to plain memory, with its values.
    pub(super) fn touched(&self, touched: &Touched, end: &End) -> String {
        let name = match Some(touched.region) == touched::of_failure(end) {
            true => self.memory(),
            false => self.cells.get(&touched.region).map(String::as_str),
        };
        let mut words = touched::verb(touched.access.effect).to_owned();
        if let Some(name) = name {
            words = format!("{words} {name}");
        }
        let value = |datum: &Option<Datum>| self.datum(datum.as_ref()?);
        match (value(&touched.found), value(&touched.left)) {
            (Some(found), Some(left)) if found != left => format!("{words} ({found} -> {left})"),
            (_, Some(value)) | (Some(value), None) => format!("{words} ({value})"),
            (None, None) => words,
        }
    }

    /// The objects with a region that satisfies `like`.
    pub(super) fn inside(&self, like: impl Fn(Region) -> bool) -> Vec<&str> {
        let objects = self.objects.iter();
        let inside = objects.filter(|(object, _)| like(self.machine.names.place(**object).region));
        inside.map(|(_, name)| name.as_str()).collect()
    }

    /// The name of the pointers into a block, if any event has one.
    pub(super) fn pointer_into(&self, block: Block) -> Option<String> {
        self.pointers.to_block(self.machine, block)
    }

    /// The thread that has the object as its end or token.
    pub(super) fn whose(&self, object: ObjectId) -> String {
        match self.machine.names.place(object).region {
            Region::Thread(thread) | Region::Token(thread) => self.thread(thread),
            _ => self.object(object),
        }
    }

    /// The words for a value behind a lock.
    pub(super) fn datum(&self, datum: &Datum) -> Option<String> {
        data::value(datum, self.machine, &self.pointers)
    }

    pub(super) fn value(&self, object: ObjectId, bits: u64) -> String {
        match self.machine.state(object).kind() {
            ObjectKind::Atomic(AtomicType::Bool | AtomicType::Poison) => (bits != 0).to_string(),
            ObjectKind::Atomic(AtomicType::Task) => tasks::state(bits).to_owned(),
            ObjectKind::Atomic(AtomicType::Ptr) if bits == 0 => "null".to_owned(),
            ObjectKind::Atomic(ty) => match (self.pointers.name(self.machine, ty, bits), ty) {
                (Some(pointer), _) => pointer,
                (None, AtomicType::Ptr) => format!("{bits:#x}"),
                (None, _) => number(ty, bits),
            },
            _ => bits.to_string(),
        }
    }

    /// [`Names::announced`] for an operation on an object with unknown contents.
    fn announced_touch(&self, object: ObjectId, touch: Touch) -> String {
        let name = self.object(object);
        match touch {
            Touch::All => format!("write {name}"),
            Touch::ReadAll => format!("read {name}"),
            Touch::WeakRead => format!("read of a part of {name}"),
            Touch::WeakWrite => format!("write to a part of {name}"),
            Touch::KeyRead(_) => format!("read a key of {name}"),
            Touch::KeyWrite(_) => format!("write to a key of {name}"),
            Touch::KeyShape(_) => format!("insert or remove a key of {name}"),
            Touch::ReadKeys => format!("read the keys of {name}"),
            Touch::Declared { number, .. } => format!("access {number} to {name}"),
        }
    }

    /// The words for an operation that has not happened yet.
    pub(super) fn announced(&self, operation: &Operation) -> String {
        let object = operation.object;
        match operation.kind {
            OpKind::Load { .. } => format!("load {}", self.object(object)),
            OpKind::Store { .. } => format!("store to {}", self.object(object)),
            OpKind::Rmw { rmw, .. } => (self.announced_on_task(operation))
                .unwrap_or_else(|| format!("{} on {}", rmw.name(), self.object(object))),
            OpKind::CompareExchange { .. } => {
                format!("compare-exchange on {}", self.object(object))
            }
            OpKind::Lock => format!("lock {}", self.object(object)),
            OpKind::TryLock => format!("try_lock {}", self.object(object)),
            OpKind::Unlock { .. } => format!("unlock {}", self.object(object)),
            OpKind::Retain => format!("clone {}", self.object(object)),
            OpKind::Release { told: false } => format!("drop {}", self.object(object)),
            OpKind::Release { told: true } => format!("into_inner {}", self.object(object)),
            OpKind::RetainWeak => format!("clone a weak {}", self.object(object)),
            OpKind::ReleaseWeak => format!("drop a weak {}", self.object(object)),
            OpKind::FirstReference => format!("first reference to {}", self.object(object)),
            OpKind::ReadCount { .. } => format!("count of {}", self.object(object)),
            OpKind::TakeUnique => format!("take {} if unique", self.object(object)),
            OpKind::Upgrade => format!("upgrade {}", self.object(object)),
            OpKind::RetainRaw => format!("increment the count of {}", self.object(object)),
            OpKind::Spawn { child } => format!("spawn {}", self.thread(child)),
            OpKind::Exit => "end".to_owned(),
            OpKind::Join { .. } => format!("join {}", self.whose(object)),
            OpKind::IsFinished => format!("is_finished of {}", self.whose(object)),
            OpKind::EndForNoReason if self.is_condvar(object) => {
                format!("wait on {}", self.object(object))
            }
            ref kind @ (OpKind::Park
            | OpKind::ParkTimeout
            | OpKind::EndForNoReason
            | OpKind::Unpark) => self.announced_on_token(object, kind),
            OpKind::ReadLock => format!("read-lock {}", self.object(object)),
            OpKind::TryRead => format!("try_read {}", self.object(object)),
            OpKind::UnlockRead => format!("read-unlock {}", self.object(object)),
            OpKind::WriteLock => format!("write-lock {}", self.object(object)),
            OpKind::TryWrite => format!("try_write {}", self.object(object)),
            OpKind::UnlockWrite { .. } => format!("write-unlock {}", self.object(object)),
            OpKind::Downgrade => format!("downgrade {}", self.object(object)),
            OpKind::Enqueue { .. } => format!("wait on {}", self.object(object)),
            OpKind::Awake { timed: false } => format!("be notified by {}", self.object(object)),
            OpKind::Awake { timed: true } => format!("wake up from {}", self.object(object)),
            OpKind::NotifyOne => format!("notify_one {}", self.object(object)),
            OpKind::NotifyAll => format!("notify_all {}", self.object(object)),
            OpKind::Arrive => format!("arrive at {}", self.object(object)),
            OpKind::Leave { .. } => format!("leave {}", self.object(object)),
            OpKind::CallOnce { .. } => format!("initialise {}", self.object(object)),
            OpKind::EndOnce { poison: false } => format!("{} is initialised", self.object(object)),
            OpKind::EndOnce { poison: true } => format!("poison {}", self.object(object)),
            OpKind::CheckOnce => format!("look at {}", self.object(object)),
            OpKind::WaitOnce { .. } => format!("wait until {} is done", self.object(object)),
            OpKind::Send => format!("send to {}", self.object(object)),
            OpKind::TrySend => format!("try_send to {}", self.object(object)),
            OpKind::Taken { index } => {
                format!("hand over message {index} of {}", self.object(object))
            }
            OpKind::RecvWait => format!("wait at {}", self.object(object)),
            OpKind::Recv { timed: false } => format!("receive from {}", self.object(object)),
            OpKind::Recv { timed: true } => format!("recv_timeout from {}", self.object(object)),
            OpKind::TryRecv => format!("try_recv from {}", self.object(object)),
            OpKind::AddSender => format!("clone a sender of {}", self.object(object)),
            OpKind::DropSender => format!("drop a sender of {}", self.object(object)),
            OpKind::DropReceiver { .. } => format!("drop the receiver of {}", self.object(object)),
            OpKind::Touch(touch) => self.announced_touch(object, touch),
            OpKind::Choose { options, what } => match what {
                Choice::Value => format!("choose({options})"),
                Choice::MayWakeUp => "choose how to wake up".to_owned(),
                Choice::HasWokenUp => "choose why it woke up".to_owned(),
                Choice::Clock | Choice::TimePasses => "read the clock".to_owned(),
            },
            OpKind::GiveUp { why } => match why {
                Reason::Assumed => "assume(false)".to_owned(),
                Reason::Stopped => "stop()".to_owned(),
                Reason::Rounds => "another round".to_owned(),
                Reason::InVain { .. } => "another look".to_owned(),
            },
            OpKind::Start => "start".to_owned(),
            OpKind::Resume => "go on".to_owned(),
            OpKind::Atomically { footprint } => self.announced_block(footprint),
            OpKind::Wait { fair: true, .. } => "let all others go first".to_owned(),
            OpKind::Wait {
                set, timed: false, ..
            } => {
                let set = self.machine.sets.get(set);
                if set.is_empty() {
                    return "spin without a look at what is shared".to_owned();
                }
                let (ends, changes) = set.iter().partition(|&&object| self.is_thread(object));
                let told = |objects: Vec<&ObjectId>, does: &str| {
                    let names: Vec<String> = objects.iter().map(|&&o| self.whose(o)).collect();
                    (!names.is_empty()).then(|| format!("{} {does}", names.join(" or ")))
                };
                let told = [told(changes, "changes"), told(ends, "ends")];
                let told: Vec<String> = told.into_iter().flatten().collect();
                format!("spin until {}", told.join(" or "))
            }
            OpKind::Wait {
                set, timed: true, ..
            } => {
                let ends = self.machine.sets.get(set).iter();
                let ends: Vec<String> = ends.map(|&object| self.end_of_wait(object)).collect();
                format!("wait without a timeout until {}", ends.join(" or "))
            }
        }
    }

    /// The words for a block with this footprint.
    fn announced_block(&self, footprint: u32) -> String {
        let Footprint::Of(objects, writes) = self.machine.sets.footprint(footprint) else {
            return "atomically, over everything".to_owned();
        };
        let named = |written: bool| {
            let all = objects
                .iter()
                .zip(writes)
                .filter(|(_, writes)| **writes == written);
            let names: Vec<String> = all.map(|(&object, _)| self.declared(object)).collect();
            let verb = if written { "writes" } else { "reads" };
            (!names.is_empty()).then(|| format!("{verb} {}", names.join(", ")))
        };
        let told: Vec<String> = [named(false), named(true)].into_iter().flatten().collect();
        match told.is_empty() {
            true => "atomically, over nothing".to_owned(),
            false => format!("atomically: {}", told.join("; ")),
        }
    }

    /// The name of an object in a footprint, which the execution may not use.
    fn declared(&self, object: ObjectId) -> String {
        let given = || {
            let region = self.machine.names.place(object).region;
            let given = self.machine.names.label_of(region).map(on_one_line);
            let kind = || self.machine.kind(object).map(ObjectKind::name);
            given.or_else(|| kind().map(str::to_lowercase))
        };
        let known = self.known(object).map(str::to_owned);
        known
            .or_else(given)
            .unwrap_or_else(|| "an object".to_owned())
    }

    /// The words for a block that has happened, with what it did.
    fn happened_block(&self, event: &Event) -> String {
        let Some(parts) = self.blocks.get(&(event.thread, event.index)) else {
            return self.announced(&event.operation);
        };
        let mut told: Vec<String> = parts.iter().map(|part| self.happened(part)).collect();
        let more = told.len().saturating_sub(PARTS_MAX);
        told.truncate(PARTS_MAX);
        told.extend((more > 0).then(|| format!("{more} more")));
        format!("atomically: {}", told.join(", "))
    }

    /// Whether an object stands for a thread's end.
    fn is_thread(&self, object: ObjectId) -> bool {
        let region = self.machine.names.place(object).region;
        matches!(region, Region::Thread(_))
    }

    /// The action that ends a wait for this object, for a wait that has timed out often enough.
    fn end_of_wait(&self, object: ObjectId) -> String {
        match self.machine.kind(object) {
            Some(ObjectKind::Condvar) => format!("{} notifies it", self.object(object)),
            Some(ObjectKind::Token) => self.end_of_token_wait(object),
            _ if self.is_thread(object) => format!("{} ends", self.whose(object)),
            _ => format!("{} changes", self.object(object)),
        }
    }

    fn is_condvar(&self, object: ObjectId) -> bool {
        self.machine.kind(object) == Some(ObjectKind::Condvar)
    }

    /// The state of a thread that cannot continue with this operation, as words behind the thread's
    /// name.
    pub(super) fn waiting(&self, operation: &Operation) -> String {
        let announced = self.announced(operation);
        match operation.kind {
            OpKind::Wait { fair: true, .. } => announced.replacen("let", "lets", 1),
            OpKind::Wait { timed: false, .. } => announced.replacen("spin", "spins", 1),
            OpKind::Wait { timed: true, .. } => announced.replacen("wait", "waits", 1),
            OpKind::WaitOnce { .. } => announced.replacen("wait", "waits", 1),
            OpKind::Park => self.waiting_for_token(operation.object),
            _ => format!("waits to {announced}"),
        }
    }

    /// The words for an operation that has happened, with its values.
    pub(super) fn happened(&self, event: &Event) -> String {
        self.happened_after(event, None)
    }

    /// The words for an operation that has happened, with its values; the value that was read has
    /// the number of the event that wrote it.
    pub(super) fn happened_after(&self, event: &Event, from: Option<usize>) -> String {
        let happened = self.without_data(event, from);
        match self.data.get(&(event.thread, event.index)) {
            Some(data) => format!("{happened} ({data})"),
            None => happened,
        }
    }

    /// [`Names::happened_after`], without the data behind a lock.
    fn without_data(&self, event: &Event, from: Option<usize>) -> String {
        let object = event.operation.object;
        let name = || self.object(object);
        let value = |bits| self.value(object, bits);
        let found = event.outcome.value().unwrap_or_default();
        let read = || match from {
            Some(from) => format!("{} from {from}", value(found)),
            None => value(found),
        };
        match event.operation.kind {
            OpKind::Load { .. } => format!("{} = {}", name(), read()),
            OpKind::Store { value: new, .. } => match event.before {
                Some(before) => format!("{} := {} (was {})", name(), value(new), value(before)),
                None => format!("{} := {}", name(), value(new)),
            },
            OpKind::Rmw { rmw, .. } => match (
                self.happened_on_task(event),
                changes::left(event, self.machine),
            ) {
                (Some(happened), _) => happened,
                (None, Some(new)) => {
                    let (found, new) = (read(), value(new));
                    format!("{} {}: {found} -> {new}", name(), rmw.name())
                }
                (None, None) => self.announced(&event.operation),
            },
            OpKind::CompareExchange { expected, new, .. } => match event.outcome {
                Outcome::Success(_) => {
                    format!("{} cas: {} -> {}", name(), read(), value(new))
                }
                _ if found == expected => format!("{} cas failed for no reason", name()),
                _ => format!("{} cas failed: {}, not {}", name(), read(), value(expected)),
            },
            OpKind::TryLock if !event.outcome.succeeded() => {
                format!("try_lock {}: held", name())
            }
            OpKind::ReadCount { .. } => {
                format!("{}: {}", self.announced(&event.operation), counts(found))
            }
            OpKind::TakeUnique if !event.outcome.succeeded() => {
                let announced = self.announced(&event.operation);
                format!("{announced}: no, {}", references(found))
            }
            OpKind::Upgrade | OpKind::RetainRaw if !event.outcome.succeeded() => {
                format!("{}: nothing left", self.announced(&event.operation))
            }
            OpKind::Release { .. } if found == 1 => {
                format!("{}, the last one", self.announced(&event.operation))
            }
            OpKind::IsFinished => format!("{}: {}", self.announced(&event.operation), found != 0),
            OpKind::TryRead | OpKind::TryWrite if !event.outcome.succeeded() => {
                format!("{}: held", self.announced(&event.operation))
            }
            OpKind::NotifyOne | OpKind::NotifyAll => {
                let announced = self.announced(&event.operation);
                match woken(found) {
                    _ if found == 0 => format!("{announced}: nobody waits"),
                    Some(thread) => format!("{announced}: wakes {}", self.thread(thread)),
                    None => format!("{announced}: wakes several"),
                }
            }
            OpKind::Awake { .. } if !event.outcome.succeeded() => {
                format!("wait on {} {}", name(), self.ended_unnotified(event))
            }
            OpKind::Awake { .. } => format!("woken by {}", name()),
            OpKind::EndForNoReason if self.is_condvar(object) => {
                format!("wait on {} ends for no reason", name())
            }
            ref kind @ (OpKind::Park | OpKind::ParkTimeout | OpKind::EndForNoReason) => {
                self.happened_on_token(object, kind, event.outcome.succeeded())
            }
            OpKind::Arrive => format!(
                "{}, {} missing",
                self.announced(&event.operation),
                found as u32 - 1
            ),
            OpKind::CallOnce { .. } | OpKind::WaitOnce { .. } if !event.outcome.succeeded() => {
                match found {
                    2 => format!("{}: done already", name()),
                    _ => format!("{}: poisoned", name()),
                }
            }
            OpKind::CheckOnce => format!(
                "{}: {}",
                name(),
                if found != 0 { "done" } else { "not done" }
            ),
            OpKind::Send | OpKind::TrySend => match event.outcome {
                Outcome::Success(_) => format!("send message {found} to {}", name()),
                _ if found == 0 => format!("{}: full", self.announced(&event.operation)),
                _ => format!("{}: no receiver", self.announced(&event.operation)),
            },
            OpKind::Recv { .. } | OpKind::TryRecv => match event.outcome {
                Outcome::Success(_) => format!("receive message {found} from {}", name()),
                _ if found == 0 => format!("{}: empty", self.announced(&event.operation)),
                _ => format!("{}: no sender", self.announced(&event.operation)),
            },
            OpKind::Choose { options, what } => match (what, found) {
                (Choice::Value, _) => format!("choose({options}) = {found}"),
                (Choice::MayWakeUp, 0) => "does not wake up without a reason".to_owned(),
                (Choice::MayWakeUp, _) => "wakes up for no reason".to_owned(),
                (Choice::HasWokenUp, 0) => "its time is over".to_owned(),
                (Choice::HasWokenUp, _) => {
                    "its time is not over: it woke up for no reason".to_owned()
                }
                (Choice::Clock, _) if options == 1 => "read the clock".to_owned(),
                (Choice::Clock, 0) => "read the clock: no time has passed".to_owned(),
                (Choice::Clock, passed) if passed + 1 < u64::from(options) => {
                    let over = counted(passed, "deadline");
                    format!("read the clock: {over} over, and not all")
                }
                (Choice::Clock | Choice::TimePasses, _) => {
                    "read the clock: a long time has passed".to_owned()
                }
            },
            OpKind::Atomically { .. } => self.happened_block(event),
            OpKind::Wait { fair: true, .. } => "another round: nothing else can run".to_owned(),
            OpKind::Wait { timed, .. } if event.outcome.is_released() => {
                if timed {
                    "another timeout: nothing else can run".to_owned()
                } else {
                    "spin: nothing else can run".to_owned()
                }
            }
            _ => self.announced(&event.operation),
        }
    }
}

/// The name that the program gave to a thread, otherwise its path.
fn named(machine: &Machine, given: &BTreeMap<ThreadId, String>, thread: ThreadId) -> String {
    match given.get(&thread) {
        Some(name) => name.clone(),
        None => machine.names.path(thread),
    }
}

/// The name as a table cell: a line break or a tabulator would break the table.
fn on_one_line(name: &str) -> String {
    let mut line = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_control() {
            line.extend(c.escape_default())
        } else {
            line.push(c)
        }
    }
    line
}

/// The names of the threads of an execution that have other names than their paths: the program's
/// names, with numbers in the order of birth if several are the same.
fn called(
    trace: &Trace,
    machine: &Machine,
    given: &[(ThreadId, String)],
) -> BTreeMap<ThreadId, String> {
    let mut births: BTreeMap<Vec<u32>, ThreadId> = BTreeMap::new();
    let spawned = trace
        .events()
        .iter()
        .filter_map(|event| match event.operation.kind {
            OpKind::Spawn { child } => Some(child),
            _ => None,
        });
    for thread in spawned.chain([ThreadId::MAIN]) {
        births.insert(path(machine, thread), thread);
    }
    let named = |thread| given.iter().rev().find(|(it, _)| *it == thread);
    let nameless = births.values().filter(|&&thread| named(thread).is_none());
    let mut taken = Taken::default();
    nameless.for_each(|&it| taken.take(&machine.names.path(it)));
    let mut called = BTreeMap::new();
    for &thread in births.values() {
        if let Some((_, name)) = named(thread) {
            called.insert(thread, taken.unlike(on_one_line(name)));
        }
    }
    called
}

/// A thread's path of births, from the main thread on.
fn path(machine: &Machine, thread: ThreadId) -> Vec<u32> {
    let mut path = Vec::new();
    let mut thread = thread;
    while let Some((creator, nth)) = machine.names.creator(thread) {
        path.push(nth);
        thread = creator;
    }
    path.reverse();
    path
}

/// For each name, the number of names that are the same, or the same with a number.
#[derive(Default)]
struct Taken(HashMap<String, u32>);

impl Taken {
    fn take(&mut self, name: &str) {
        let numbered = name.match_indices('#').map(|(at, _)| at);
        for end in numbered.chain([name.len()]) {
            *self.0.entry(name[..end].to_owned()).or_default() += 1;
        }
    }

    /// The name, with a number if it is taken. Marks the result as taken.
    fn unlike(&mut self, name: String) -> String {
        let name = match self.0.get(&name) {
            None => name,
            Some(others) => format!("{name}#{}", others + 1),
        };
        self.take(&name);
        name
    }
}

/// From this power of two on, a number near a power of two is shown by its distance from the power:
/// such a number has ten digits, which are hard to compare.
const NEAR_POWER_MIN: u32 = 31;

/// The words for a number. A number that has run below 0 in an unsigned type is shown by its
/// distance from 0. A flag in the upper bits beside a count, or a flag that is subtracted from, is
/// shown by its distance as well.
fn number(ty: AtomicType, bits: u64) -> String {
    let unsigned = matches!(ty, AtomicType::U32 | AtomicType::U64 | AtomicType::Usize);
    let near = |power: u32| {
        let distance = i128::from(bits) - (1 << power);
        match distance {
            0 => Some(format!("2^{power}")),
            1..=0xFFFF => Some(format!("2^{power}+{distance}")),
            -0xFFFF..0 => Some(format!("2^{power}-{}", -distance)),
            _ => None,
        }
    };
    let told = (NEAR_POWER_MIN..=ty.bits()).rev().find_map(near);
    told.filter(|_| unsigned)
        .unwrap_or_else(|| ty.widen(bits).to_string())
}

/// The number of references, from the word that holds both counts.
pub(super) fn counts(word: u64) -> String {
    match (word % count::WEAK, word / count::WEAK) {
        (strong, 0) => format!("{strong}"),
        (strong, weak) => format!("{strong}, and {weak} weak"),
    }
}

/// The other references that keep a reference from being the only one, from the word that holds
/// both counts.
fn references(word: u64) -> String {
    let strong = counted(word % count::WEAK, "reference");
    match word / count::WEAK {
        0 => strong,
        weak => format!("{strong} and {weak} weak"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_near_a_power_of_two_is_told_by_its_distance() {
        let told = |bits| number(AtomicType::U64, bits);
        assert_eq!(told(u64::MAX), "2^64-1");
        for power in 31..64 {
            let at = 1_u64 << power;
            assert_eq!(told(at), format!("2^{power}"));
            assert_eq!(told(at + 3), format!("2^{power}+3"));
            assert_eq!(told(at - 1), format!("2^{power}-1"));
        }
        assert_eq!(told(1 << 62 | 1 << 40), "4611687117939015680");
        assert_eq!(told(1 << 30), "1073741824");
        assert_eq!(number(AtomicType::U32, u32::MAX.into()), "2^32-1");
        // A signed number is shown unchanged.
        assert_eq!(number(AtomicType::I64, 1 << 62), "4611686018427387904");
    }
}
