//! How is a failed execution told in a terminal?
//!
//! The user's panic first and unchanged; a sentence of verdict; the threads that wait, for what, and
//! who holds it; a table with a column per thread; the schedule, and the command that replays it.
//! Everything comes from the recorded events.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::Ordering;

use super::source::Sources;
use crate::rt::object::machine::Machine;
use crate::rt::object::{State, count};
use crate::rt::trace::id::{ObjectId, Region, ThreadId};
use crate::rt::trace::operation::{AtomicType, ObjectKind, OpKind, Operation, Outcome};
use crate::rt::trace::verdict::{Access, Blocked, DataRace, Divergence, End, Weak};
use crate::rt::trace::{Event, Site, Trace};

/// What a report is made from.
pub(crate) struct View<'a> {
    pub(crate) end: &'a End,
    pub(crate) trace: &'a Trace,
    pub(crate) machine: &'a Machine,
    /// Names that the program gave to threads.
    pub(crate) given: &'a [(ThreadId, String)],
    /// The panic's text, and its file, line and column.
    pub(crate) panic: Option<Panic<'a>>,
    /// How many executions there were, this one included.
    pub(crate) executions: u64,
    pub(crate) schedule: &'a str,
    /// The name of the test, if the OS thread has it.
    pub(crate) test: Option<String>,
}

/// A panic's text, and its file, line and column.
pub(crate) type Panic<'a> = (&'a str, Option<(&'a str, u32, u32)>);

/// The most rows of the table; of a longer execution the last ones are shown.
const ROWS_MAX: usize = 60;

/// The report.
pub(crate) fn render(view: &View<'_>) -> String {
    let names = Names::new(view);
    let mut out = String::new();
    verdict(&mut out, view, &names);
    table(&mut out, view, &names);
    let _ = writeln!(out, "schedule   {}", view.schedule);
    let test = match view.test.as_deref() {
        Some("main") | None => "cargo test".to_owned(),
        Some(test) => format!("cargo test {test}"),
    };
    let _ = write!(out, "replay     DPOR_REPLAY=\"{}\" {test}", view.schedule);
    out
}

/// What threads and objects are called.
struct Names<'a> {
    view: &'a View<'a>,
    objects: BTreeMap<ObjectId, String>,
}

impl Names<'_> {
    fn new<'a>(view: &'a View<'a>) -> Names<'a> {
        let mut sources = Sources::default();
        let mut objects: BTreeMap<ObjectId, String> = BTreeMap::new();
        let events = view.trace.events().iter().map(|e| (e.operation, e.site));
        let stuck = blocked(view.end).iter().map(|b| (b.operation, b.site));
        let differing: Vec<(Operation, Site)> = match view.end {
            End::NotDeterministic(it) => it.expected.into_iter().chain(it.found).collect(),
            _ => Vec::new(),
        };
        for (operation, site) in events.chain(stuck).chain(differing) {
            let object = operation.object;
            if object == ObjectId::NONE || objects.contains_key(&object) {
                continue;
            }
            let region = view.machine.names.place(object).region;
            if matches!(region, Region::Thread(_) | Region::Token(_)) {
                continue;
            }
            let kind = view.machine.state(object).kind();
            let base = match (sources.receiver(site), kind) {
                // The name alone is what the program calls the value.
                (Some(name), ObjectKind::Count { .. }) => format!("arc {name}"),
                (Some(name), _) => name,
                (None, kind) => kind_name(kind).to_lowercase(),
            };
            let alike = objects.values().filter(|name| {
                name.as_str() == base
                    || name.strip_prefix(&base).is_some_and(|s| s.starts_with('#'))
            });
            let name = match alike.count() {
                0 => base,
                others => format!("{base}#{}", others + 1),
            };
            objects.insert(object, name);
        }
        Names { view, objects }
    }

    fn thread(&self, thread: ThreadId) -> String {
        let given = self.view.given.iter().rev().find(|(t, _)| *t == thread);
        match given {
            Some((_, name)) => name.clone(),
            None => self.view.machine.names.path(thread),
        }
    }

    fn object(&self, object: ObjectId) -> String {
        match self.objects.get(&object) {
            Some(name) => name.clone(),
            None => "?".to_owned(),
        }
    }

    /// The thread whose end or token an object stands for.
    fn whose(&self, object: ObjectId) -> String {
        match self.view.machine.names.place(object).region {
            Region::Thread(thread) | Region::Token(thread) => self.thread(thread),
            _ => self.object(object),
        }
    }

    fn value(&self, object: ObjectId, bits: u64) -> String {
        match self.view.machine.state(object).kind() {
            ObjectKind::Atomic(AtomicType::Bool) => (bits != 0).to_string(),
            ObjectKind::Atomic(AtomicType::Ptr) if bits == 0 => "null".to_owned(),
            ObjectKind::Atomic(AtomicType::Ptr) => format!("{bits:#x}"),
            ObjectKind::Atomic(ty) => ty.widen(bits).to_string(),
            _ => bits.to_string(),
        }
    }

    /// What an operation is about, before it happens.
    fn announced(&self, operation: &Operation) -> String {
        let object = operation.object;
        match operation.kind {
            OpKind::Load { .. } => format!("load {}", self.object(object)),
            OpKind::Store { .. } => format!("store to {}", self.object(object)),
            OpKind::Rmw { rmw, .. } => format!("{} on {}", rmw.name(), self.object(object)),
            OpKind::CompareExchange { .. } => {
                format!("compare-exchange on {}", self.object(object))
            }
            OpKind::Fence { .. } => "fence".to_owned(),
            OpKind::Lock => format!("lock {}", self.object(object)),
            OpKind::TryLock => format!("try_lock {}", self.object(object)),
            OpKind::Unlock { .. } => format!("unlock {}", self.object(object)),
            OpKind::Retain => format!("clone {}", self.object(object)),
            OpKind::Release { told: false } => format!("drop {}", self.object(object)),
            OpKind::Release { told: true } => format!("into_inner {}", self.object(object)),
            OpKind::RetainWeak => format!("clone a weak {}", self.object(object)),
            OpKind::ReleaseWeak => format!("drop a weak {}", self.object(object)),
            OpKind::FirstReference => format!("first reference to {}", self.object(object)),
            OpKind::ReadCount => format!("count of {}", self.object(object)),
            OpKind::TakeUnique => format!("take {} if unique", self.object(object)),
            OpKind::Upgrade => format!("upgrade {}", self.object(object)),
            OpKind::Spawn { child } => format!("spawn {}", self.thread(child)),
            OpKind::Exit => "end".to_owned(),
            OpKind::Join => format!("join {}", self.whose(object)),
            OpKind::IsFinished => format!("is_finished of {}", self.whose(object)),
            OpKind::Park => "park".to_owned(),
            OpKind::ParkTimeout => "park_timeout".to_owned(),
            OpKind::Unpark => format!("unpark {}", self.whose(object)),
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
            OpKind::DropReceiver => format!("drop the receiver of {}", self.object(object)),
            OpKind::Choose { options } => format!("choose({options})"),
            OpKind::GiveUp => "assume(false)".to_owned(),
            OpKind::Start => "start".to_owned(),
            OpKind::Wait { set, .. } => {
                let set = self.view.machine.sets.get(set);
                let names: Vec<String> = set.iter().map(|&o| self.whose(o)).collect();
                format!("spin until {} changes", names.join(" or "))
            }
        }
    }

    /// What an operation did, with its values.
    fn happened(&self, event: &Event) -> String {
        let object = event.operation.object;
        let name = || self.object(object);
        let value = |bits| self.value(object, bits);
        let found = event.outcome.value().unwrap_or_default();
        match event.operation.kind {
            OpKind::Load { .. } => format!("{} = {}", name(), value(found)),
            OpKind::Store { value: new, .. } => match event.before {
                Some(before) => format!("{} := {} (was {})", name(), value(new), value(before)),
                None => format!("{} := {}", name(), value(new)),
            },
            OpKind::Rmw { rmw, operand, .. } => {
                let State::Atomic { ty, .. } = *self.view.machine.state(object) else {
                    return self.announced(&event.operation);
                };
                let new = rmw.apply(ty, found, operand);
                format!(
                    "{} {}: {} -> {}",
                    name(),
                    rmw.name(),
                    value(found),
                    value(new)
                )
            }
            OpKind::CompareExchange { expected, new, .. } => match event.outcome {
                Outcome::Success(_) => {
                    format!("{} cas: {} -> {}", name(), value(expected), value(new))
                }
                _ if found == expected => format!("{} cas failed for no reason", name()),
                _ => format!(
                    "{} cas failed: {}, not {}",
                    name(),
                    value(found),
                    value(expected)
                ),
            },
            OpKind::TryLock if !event.outcome.succeeded() => {
                format!("try_lock {}: held", name())
            }
            OpKind::ReadCount => format!("{}: {}", self.announced(&event.operation), counts(found)),
            OpKind::TakeUnique if !event.outcome.succeeded() => {
                format!("{}: {}", self.announced(&event.operation), counts(found))
            }
            OpKind::Upgrade if !event.outcome.succeeded() => {
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
                match u32::try_from(found) {
                    Ok(0) => format!("{announced}: nobody waits"),
                    Ok(thread) => {
                        format!("{announced}: wakes {}", self.thread(ThreadId(thread - 1)))
                    }
                    Err(_) => format!("{announced}: wakes several"),
                }
            }
            OpKind::Awake { .. } if !event.outcome.succeeded() => {
                format!("wait on {} ends without a notification", name())
            }
            OpKind::Awake { .. } => format!("woken by {}", name()),
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
            OpKind::Choose { options } => format!("choose({options}) = {found}"),
            OpKind::Wait { .. } if event.outcome == Outcome::LetGo => {
                "spin: nothing else can run".to_owned()
            }
            _ => self.announced(&event.operation),
        }
    }
}

/// How many references there were, from the word that holds both counts.
fn counts(word: u64) -> String {
    match (word % count::WEAK, word / count::WEAK) {
        (strong, 0) => format!("{strong}"),
        (strong, weak) => format!("{strong}, and {weak} weak"),
    }
}

fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Atomic(ty) => ty.name(),
        ObjectKind::Mutex => "Mutex",
        ObjectKind::Count { .. } => "Arc",
        ObjectKind::Thread => "thread",
        ObjectKind::Token => "token",
        ObjectKind::RwLock => "RwLock",
        ObjectKind::Condvar => "Condvar",
        ObjectKind::Barrier => "Barrier",
        ObjectKind::Once => "Once",
        ObjectKind::Channel => "channel",
    }
}

fn blocked(end: &End) -> &[Blocked] {
    match end {
        End::Deadlock(stuck) | End::Livelock { stuck, .. } => stuck,
        _ => &[],
    }
}

fn place(site: Site) -> String {
    format!("{}:{}", short(site.file()), site.line())
}

/// The last two parts of a path.
fn short(file: &str) -> &str {
    let mut slashes = file.rmatch_indices('/').map(|(at, _)| at);
    match slashes.nth(1) {
        Some(at) => &file[at + 1..],
        None => file,
    }
}

fn verdict(out: &mut String, view: &View<'_>, names: &Names<'_>) {
    let events = view.trace.len();
    let when = format!("(execution {}, after {events} events)", view.executions);
    match view.end {
        End::Panicked { thread } => {
            if let Some((text, location)) = view.panic {
                let at = location.map_or_else(
                    || "an unknown place".to_owned(),
                    |(file, line, column)| format!("{file}:{line}:{column}"),
                );
                let _ = writeln!(out, "thread '{}' panicked at {at}:", names.thread(*thread));
                let _ = writeln!(out, "{text}\n");
            }
            let _ = writeln!(out, "panic: {} panicked {when}", names.thread(*thread));
        }
        End::Deadlock(stuck) => {
            let count = stuck.len();
            let threads = if count == 1 {
                "1 thread waits for ever".to_owned()
            } else {
                format!("{count} threads wait for ever")
            };
            let _ = writeln!(out, "deadlock: {threads} {when}");
        }
        End::Livelock { rounds, .. } => {
            let _ = writeln!(
                out,
                "livelock: the threads below spin on values that nobody will change, {rounds} \
                 rounds in a row (the limit `livelock_bound`) {when}"
            );
        }
        End::TooManyEvents { limit } => {
            let last = view.trace.events().last();
            let place =
                last.map_or_else(String::new, |e| format!(", the last at {}", place(e.site)));
            let _ = writeln!(
                out,
                "too many events: an execution has more than {limit}{place} {when}\n  raise \
                 `Builder::max_branches` (DPOR_MAX_BRANCHES), or give the loop a \
                 `dpor::hint::spin_loop()`"
            );
        }
        End::TooManyThreads { limit } => {
            let _ = writeln!(
                out,
                "too many threads: more than {limit} are alive {when}\n  raise \
                 `Builder::max_threads` (DPOR_MAX_THREADS)"
            );
        }
        End::StackOverflow { thread } => {
            let _ = writeln!(
                out,
                "stack overflow: {} used more stack than it has {when}\n  raise \
                 `Builder::stack_size` (DPOR_STACK_SIZE, in bytes)",
                names.thread(*thread)
            );
        }
        End::Stale { position, expected } => {
            let _ = writeln!(
                out,
                "the schedule does not fit the program: at step {position} it asks for {expected}"
            );
        }
        End::NotDeterministic(divergence) => divergent(out, names, divergence),
        End::DataRace(race) => data_race(out, names, race, &when),
        End::Complete | End::Pruned(_) => {}
    }
    for stuck in blocked(view.end) {
        let mut holder = String::new();
        if let OpKind::Lock = stuck.operation.kind
            && let State::Mutex(mutex) = view.machine.state(stuck.operation.object)
            && let Some(thread) = mutex.holder
        {
            let since = view.trace.events().iter().rposition(|e| {
                e.operation.object == stuck.operation.object && e.label.class.acquires()
            });
            holder = format!("   held by {}", names.thread(thread));
            if let Some(at) = since {
                let site = view.trace.events()[at].site;
                let _ = write!(holder, " since event {} ({})", at + 1, place(site));
            }
        }
        let _ = writeln!(
            out,
            "  {:<10} waits to {:<24} at {}{holder}",
            names.thread(stuck.thread),
            names.announced(&stuck.operation),
            place(stuck.site),
        );
    }
}

fn data_race(out: &mut String, names: &Names<'_>, race: &DataRace, when: &str) {
    let verb = |access: &Access| if access.write { "write" } else { "read" };
    let DataRace { first, second, .. } = race;
    let what = Sources::default().receiver(second.site);
    let what = what.unwrap_or_else(|| "the same memory".to_owned());
    let _ = writeln!(
        out,
        "data race: {} and {} access {what}, and nothing orders the two {when}",
        names.thread(first.thread),
        names.thread(second.thread),
    );
    for access in [first, second] {
        let _ = writeln!(
            out,
            "  {:<10} {:<6} at {}",
            names.thread(access.thread),
            verb(access),
            place(access.site)
        );
    }
    let Some(Weak { writer, reader }) = &race.weak else {
        return;
    };
    let side = |event: &Event| {
        format!(
            "{}'s {} at {} is {:?}",
            names.thread(event.thread),
            names.announced(&event.operation),
            place(event.site),
            order(event)
        )
    };
    let _ = writeln!(
        out,
        "  {}, and {}: with at least Release and Acquire the two are ordered",
        side(writer),
        side(reader)
    );
}

/// The ordering of an atomic access that has happened.
fn order(event: &Event) -> Ordering {
    match event.operation.kind {
        OpKind::Load { order } | OpKind::Store { order, .. } | OpKind::Rmw { order, .. } => order,
        OpKind::CompareExchange { success, .. } if event.outcome.succeeded() => success,
        OpKind::CompareExchange { failure, .. } => failure,
        _ => Ordering::SeqCst,
    }
}

fn divergent(out: &mut String, names: &Names<'_>, divergence: &Divergence) {
    let side = |it: &Option<(Operation, Site)>| match it {
        Some((operation, site)) => {
            format!("\"{}\" at {}", names.announced(operation), place(site))
        }
        None => "nothing, or an operation that cannot happen yet".to_owned(),
    };
    let thread = names.thread(divergence.thread);
    let _ = writeln!(
        out,
        "the test is not deterministic: with the same schedule, step {} of {thread} was {} before \
         and is {} now{}",
        divergence.position + 1,
        match divergence.expected {
            Some(_) => side(&divergence.expected),
            None => "enabled".to_owned(),
        },
        side(&divergence.found),
        if divergence.outcome_differs {
            ", with another outcome"
        } else {
            ""
        },
    );
    let _ = writeln!(
        out,
        "  usual causes: time, randomness, addresses as values or as hash keys, a static that keeps \
         its value, a primitive of std or of another crate that dpor does not see"
    );
}

fn table(out: &mut String, view: &View<'_>, names: &Names<'_>) {
    let events = view.trace.events();
    let shown =
        |event: &&(usize, &Event)| !matches!(event.1.operation.kind, OpKind::Start | OpKind::Exit);
    let all: Vec<(usize, &Event)> = events.iter().enumerate().collect();
    let rows: Vec<&(usize, &Event)> = all.iter().filter(shown).collect();
    if rows.is_empty() {
        return;
    }
    let skipped = rows.len().saturating_sub(ROWS_MAX);
    let rows = &rows[skipped..];
    let mut threads: Vec<ThreadId> = Vec::new();
    for (_, event) in rows {
        if !threads.contains(&event.thread) {
            threads.push(event.thread);
        }
    }
    let cells: Vec<String> = rows.iter().map(|(_, e)| names.happened(e)).collect();
    let width = |thread: ThreadId| {
        let mine = rows
            .iter()
            .zip(&cells)
            .filter(|((_, e), _)| e.thread == thread);
        let widest = mine.map(|(_, cell)| cell.chars().count()).max();
        widest
            .unwrap_or(0)
            .max(names.thread(thread).chars().count())
    };
    let widths: Vec<usize> = threads.iter().map(|&t| width(t)).collect();
    let _ = write!(out, "\n  {:>4}  ", "#");
    for (&thread, width) in threads.iter().zip(&widths) {
        let _ = write!(out, "{:<width$}  ", names.thread(thread));
    }
    let _ = writeln!(out, "where");
    if skipped > 0 {
        let _ = writeln!(out, "        ({skipped} earlier events)");
    }
    for ((number, event), cell) in rows.iter().zip(&cells) {
        let _ = write!(out, "  {:>4}  ", number + 1);
        for (&thread, width) in threads.iter().zip(&widths) {
            let cell = if thread == event.thread { cell } else { "" };
            let _ = write!(out, "{cell:<width$}  ");
        }
        let _ = writeln!(out, "{}", place(event.site));
    }
    out.push('\n');
}
