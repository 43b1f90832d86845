//! Which facts about one recorded execution are there?
//!
//! An [`Execution`] is plain data that borrows nothing: threads, objects, events with their values,
//! clocks and links, races, outcome. JSON, DOT and HTML are rendered from it and from nothing else;
//! `docs/REPORTS.md` describes every field, because what is serialised here is a promise.
//!
//! Events are numbered from 1, as in the text report, and these numbers are how other parts refer
//! to them. Threads and objects are referred to by their positions in the lists, from 0.

mod holds;
mod kinds;
mod links;
mod misuse;
mod outcome;
mod told;

use rustc_hash::FxHashMap;

use super::facts::facts;
use super::old_values::{OldValues, Store};
use super::places::FileLine;
use super::source::Sources;
use super::table::{self, Remarks};
use super::text;
use super::touched;
use super::view::View;
use super::words::Names;
use crate::rt::event;
use crate::rt::event::fence::Part;
use crate::rt::event::id::{ObjectId, Region, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::verdict::{Blocked, End, Reproduction};
use crate::rt::event::{Site, Trace, foreign};
use crate::rt::object::State;
use crate::rt::object::machine::Machine;
use crate::rt::object::orders::Orders;
use crate::rt::relation::happens_before::HappensBefore;
use links::{Linked, Links};
use outcome::Outcome;
pub(super) use outcome::Touch;
pub(super) use told::{Aside, Fold};
use told::{Lines, Snippet};

/// The version of the format. It grows with every change that could break a reader of the old
/// format; new fields alone do not change it.
pub(crate) const FORMAT: u32 = 1;

/// One recorded execution.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(crate) struct Execution {
    /// [`FORMAT`].
    pub(super) format: u32,
    /// The version of this crate.
    pub(super) dpor: &'static str,
    /// The name of the test, if its OS thread has one.
    pub(super) test: Option<String>,
    /// The number of this execution in the exploration, counted from 1.
    pub(super) execution: u64,
    /// The schedule of this execution.
    pub(super) schedule: String,
    /// The command that replays the schedule.
    pub(super) command: Option<String>,
    pub(super) outcome: Outcome,
    /// The lines above the table of the text report.
    pub(super) story: Vec<String>,
    pub(super) threads: Vec<Thread>,
    pub(super) objects: Vec<Object>,
    pub(super) events: Vec<Event>,
    /// The fences, in order; fences are no events.
    pub(super) fences: Vec<Fence>,
    /// The actions that the failure is about and that are no events, in the order in which they
    /// happened.
    pub(super) unnumbered: Vec<Aside>,
    /// Events that only repeat others.
    pub(super) folds: Vec<Fold>,
    /// The races: pairs of ordered events of different threads with no event between them in
    /// happens-before.
    pub(super) races: Vec<Pair>,
    /// The two operations that the failure hangs on.
    pub(super) pair: Option<Decisive>,
    /// The result of running the same schedule again, if it differed.
    pub(super) again: Option<&'static str>,
    /// Whether this is a simpler execution than the execution that was found.
    pub(super) simplified: bool,
    /// The lines of the program's log, in order.
    pub(super) log: Vec<Line>,
    /// The source lines around the places in the program.
    pub(super) source: Vec<Snippet>,
}

/// A thread, in the order of the spawns.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(super) struct Thread {
    /// The path of its births: the number of each spawn from the main thread on.
    pub(super) path: String,
    /// The name that the program gave to the thread.
    pub(super) name: Option<String>,
    /// The event that spawned it.
    pub(super) spawned_by: Option<usize>,
}

impl Thread {
    /// The name that the text report uses.
    pub(super) fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.path)
    }
}

/// A shared object, in the order of the first events.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(super) struct Object {
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// The kind of memory that contains the object.
    pub(super) memory: &'static str,
    /// The thread that owns the stack with the object, that allocated the block of the object, or
    /// that has the object as its end or token.
    pub(super) owner: Option<usize>,
    /// The place of the object's first use.
    pub(super) place: Place,
    /// The value before the object's first event.
    pub(super) initial: String,
}

/// An event.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(super) struct Event {
    pub(super) number: usize,
    pub(super) thread: usize,
    /// The number of this event in its thread, counted from 1.
    pub(super) nth: u32,
    pub(super) operation: &'static str,
    pub(super) ordering: Option<&'static str>,
    /// The words of the text report for the event.
    pub(super) words: String,
    pub(super) object: Option<usize>,
    /// Whether the operation succeeded.
    pub(super) succeeded: bool,
    /// The value that the operation found, as a number; its meaning depends on the operation.
    pub(super) found: Option<u64>,
    /// The state of the object afterwards.
    pub(super) holds: Option<String>,
    /// The number of the outcome that the operation had, from 0, and the number of outcomes that it
    /// could have had.
    pub(super) alternative: u32,
    pub(super) alternatives: u32,
    pub(super) place: Place,
    /// Why the previous event's thread stopped, if that is another thread.
    pub(super) switch: Option<String>,
    /// For each thread, how many of its events happen before this event or are this event.
    pub(super) clock: Vec<u32>,
    /// The events that happen directly before this event, with no event between.
    pub(super) after: Vec<usize>,
    pub(super) reads_from: Option<usize>,
    pub(super) enabled_by: Option<usize>,
    /// The place of its store in the modification order, if memory is C11's.
    pub(super) mo: Option<usize>,
    /// Whether its store is an old one.
    pub(super) stale: bool,
    /// The newer store that its thread does not know of, and why that is so.
    pub(super) unseen: Option<usize>,
    pub(super) why: Option<String>,
}

/// Two operations; the execution fails only if the first comes first.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(super) struct Decisive {
    pub(super) first: usize,
    /// `None` if the second operation did not happen, because the first one did.
    pub(super) second: Option<usize>,
    /// The thread of the second operation.
    pub(super) thread: usize,
    pub(super) words: String,
    pub(super) place: Place,
    /// Whether the second operation reads, or is, an older store than the first one.
    pub(super) old: bool,
}

/// A fence.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(super) struct Fence {
    pub(super) thread: usize,
    /// The last event before it, or 0.
    pub(super) after: usize,
    pub(super) ordering: &'static str,
    pub(super) place: Place,
}

/// A line of the program's own log.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(super) struct Line {
    pub(super) thread: usize,
    /// The last event before it, or 0.
    pub(super) after: usize,
    pub(super) level: &'static str,
    pub(super) target: &'static str,
    pub(super) text: String,
    pub(super) place: Option<Place>,
}

/// A place in the program.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(super) struct Place {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: u32,
    /// The text to show instead, if the file is not part of the program.
    pub(super) instead: Option<&'static str>,
    /// The source line at the place, if the file can be read.
    pub(super) text: Option<String>,
}

/// Two events.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(super) struct Pair {
    pub(super) first: usize,
    pub(super) second: usize,
}

impl Execution {
    /// Collects the facts about an execution. O(n) states and clocks, and O(n t^2) comparisons for
    /// n events of t threads.
    pub(crate) fn of(view: &View<'_>) -> Execution {
        Gathering::new(view).execution()
    }

    /// The facts about a failure that is not one of an execution: `kind` is its word, and the
    /// sentence says what failed.
    pub(crate) fn without_events(kind: &'static str, schedule: &str, sentence: &str) -> Execution {
        Execution {
            format: FORMAT,
            dpor: env!("CARGO_PKG_VERSION"),
            test: None,
            execution: 0,
            schedule: schedule.to_owned(),
            command: None,
            outcome: Outcome::without_events(kind, sentence),
            story: vec![sentence.to_owned()],
            threads: Vec::new(),
            objects: Vec::new(),
            events: Vec::new(),
            fences: Vec::new(),
            unnumbered: Vec::new(),
            folds: Vec::new(),
            races: Vec::new(),
            pair: None,
            again: None,
            simplified: false,
            log: Vec::new(),
            source: Vec::new(),
        }
    }
}

/// The place of an event. A thread's end has its place in the runtime, which does not help the
/// reader; the place of the thread itself does.
fn site_of(machine: &Machine, event: &event::Event) -> Site {
    match event.operation.kind {
        OpKind::Exit => machine.born(event.thread),
        _ => event.site,
    }
}

/// The inputs and the tools that an [`Execution`] is made with.
struct Gathering<'a> {
    view: &'a View<'a>,
    names: Names<'a>,
    clocks: HappensBefore,
    threads: Vec<ThreadId>,
    objects: Vec<(ObjectId, Site)>,
    object_numbers: FxHashMap<ObjectId, usize>,
    sources: Sources,
    /// The lines that places point at.
    lines: Lines,
}

impl<'a> Gathering<'a> {
    fn new(view: &'a View<'a>) -> Gathering<'a> {
        let mut clocks = HappensBefore::default();
        clocks.extend(view.trace, &view.machine.sets);
        let mut gathering = Gathering {
            view,
            names: Names::new(view.end, view.trace, view.machine, view.given, view.callers),
            clocks,
            threads: Vec::new(),
            objects: Vec::new(),
            object_numbers: FxHashMap::default(),
            sources: Sources::default(),
            lines: Lines::new(),
        };
        gathering.meet_thread(ThreadId::MAIN);
        for event in view.trace.events() {
            gathering.meet_thread(event.thread);
            if let OpKind::Spawn { child } = event.operation.kind {
                gathering.meet_thread(child);
            }
            gathering.meet_object(event.operation.object, site_of(view.machine, event));
        }
        for event in view.trace.parts().iter().filter_map(Part::operation) {
            gathering.meet_object(event.operation.object, site_of(view.machine, event));
        }
        // A thread may have made a fence or an access and no event yet.
        for fence in view.trace.fences() {
            gathering.meet_thread(fence.thread);
        }
        for touched in touched::shown(view.callers, view.end) {
            gathering.meet_thread(touched.access.thread);
        }
        for waiting in view.end.stuck() {
            gathering.meet_thread(waiting.thread);
            gathering.meet_object(waiting.operation.object, waiting.site);
        }
        gathering
    }

    fn meet_thread(&mut self, thread: ThreadId) {
        if !self.threads.contains(&thread) {
            self.threads.push(thread);
        }
    }

    fn meet_object(&mut self, object: ObjectId, site: Site) {
        if object != ObjectId::NONE && !self.object_numbers.contains_key(&object) {
            self.object_numbers.insert(object, self.objects.len());
            self.objects.push((object, site));
        }
    }

    fn thread(&self, thread: ThreadId) -> usize {
        let at = self.threads.iter().position(|&t| t == thread);
        at.unwrap_or_else(|| panic!("dpor bug: {thread:?} is in no event and no end"))
    }

    fn object(&self, object: ObjectId) -> Option<usize> {
        self.object_numbers.get(&object).copied()
    }

    fn place(&mut self, site: Site) -> Place {
        self.place_of(site.file(), site.line(), site.column())
    }

    fn place_of_event(&mut self, event: &event::Event) -> Place {
        match self.view.callers.of_event(event) {
            Some(caller) => self.place_of_caller(caller),
            None => self.place(site_of(self.view.machine, event)),
        }
    }

    fn place_of_waiting(&mut self, waiting: &Blocked) -> Place {
        match self.view.callers.of_waiting(waiting, self.view.trace) {
            Some(caller) => self.place_of_caller(caller),
            None => self.place(waiting.site),
        }
    }

    fn place_of_caller(&mut self, FileLine { file, line }: &FileLine) -> Place {
        // In a stack the column points into the call.
        self.place_of(file, *line, 1)
    }

    fn place_of(&mut self, file: &str, line: u32, column: u32) -> Place {
        let instead = foreign(file);
        let text = match instead {
            Some(_) => None,
            None => self.sources.line(file, line),
        };
        if text.is_some() {
            match self.lines.get_mut(file) {
                Some(lines) => lines.insert(line),
                None => (self.lines.entry(file.to_owned()).or_default()).insert(line),
            };
        }
        Place {
            file: file.to_owned(),
            line,
            column,
            instead,
            text: text.map(|line| line.trim().to_owned()),
        }
    }

    fn execution(mut self) -> Execution {
        let view = self.view;
        let number = |position: u32| position as usize + 1;
        let remarks = table::remarks(view, &self.names);
        let unnumbered = told::asides(&mut self, &remarks);
        let races = self.clocks.races().iter().map(|race| Pair {
            first: number(race.first),
            second: number(race.second),
        });
        Execution {
            format: FORMAT,
            dpor: env!("CARGO_PKG_VERSION"),
            test: view.test.clone(),
            execution: view.executions,
            schedule: view.schedule.to_owned(),
            command: Some(view.replay.to_owned()),
            races: races.collect(),
            outcome: outcome::of(&mut self, &unnumbered),
            unnumbered,
            folds: told::folds(&remarks),
            story: facts(view, &self.names),
            threads: self.thread_list(),
            objects: self.object_list(),
            fences: self.fences(),
            events: self.events(&remarks),
            pair: self.pair(),
            again: match view.again {
                Reproduction::Same => None,
                Reproduction::Differs { .. } => Some("differs"),
                Reproduction::Passes => Some("passes"),
                Reproduction::HadPassed => Some("had_passed"),
                Reproduction::Fails(_) => Some("ends_otherwise"),
            },
            simplified: view.simplified,
            log: self.log(),
            // The snippets come last, because all other fields look up places.
            source: told::snippets(&self.lines, &mut self.sources),
        }
    }

    fn thread_list(&self) -> Vec<Thread> {
        let spawns = |thread| {
            let mut events = self.view.trace.events().iter();
            events.position(|e| e.operation.kind == OpKind::Spawn { child: thread })
        };
        let threads = self.threads.iter().map(|&thread| {
            let path = self.view.machine.names.path(thread);
            let shown = self.names.thread(thread);
            Thread {
                name: (shown != path).then_some(shown),
                path,
                spawned_by: spawns(thread).map(|position| position + 1),
            }
        });
        threads.collect()
    }

    fn object_list(&mut self) -> Vec<Object> {
        let objects = self.objects.clone();
        let list = objects.into_iter().map(|(object, site)| {
            let initial = self.view.machine.initial(object);
            let (memory, owner) = match self.view.machine.names.place(object).region {
                Region::Stack { thread, .. } => ("stack", Some(thread)),
                Region::Heap { thread, .. } => ("heap", Some(thread)),
                Region::External { .. } => ("static", None),
                Region::Thread(thread) | Region::Token(thread) => ("runtime", Some(thread)),
                Region::Abstract(_) => ("abstract", None),
            };
            let name = match &initial {
                State::Thread { .. } => format!("end of {}", self.names.whose(object)),
                State::Token { .. } => format!("token of {}", self.names.whose(object)),
                _ => self.names.object(object),
            };
            Object {
                name,
                kind: initial.kind().name(),
                memory,
                // A thread of another execution may have left a name, but no object.
                owner: owner.and_then(|owner| self.threads.iter().position(|&t| t == owner)),
                initial: holds::words(object, &initial, &self.names),
                place: self.place(site),
            }
        });
        list.collect()
    }

    fn pair(&mut self) -> Option<Decisive> {
        let pair = self.view.pair?;
        let (thread, words, place) = match &pair.second {
            Ok(position) => {
                let event = self.view.trace.at(*position);
                let words = self.names.happened(event);
                (event.thread, words, self.place_of_event(event))
            }
            Err(waiting) => {
                let words = self.names.announced(&waiting.operation);
                (waiting.thread, words, self.place_of_waiting(waiting))
            }
        };
        Some(Decisive {
            first: pair.first as usize + 1,
            second: pair.second.as_ref().ok().map(|&at| at as usize + 1),
            thread: self.thread(thread),
            words,
            place,
            old: pair.is_old,
        })
    }

    fn log(&mut self) -> Vec<Line> {
        let lines = self.view.log.iter().map(|said| Line {
            thread: self.thread(said.thread),
            after: said.after,
            level: said.level,
            target: said.target,
            text: said.text.clone(),
            // A log entry has no column; calls of the log begin their lines.
            place: said
                .file
                .zip(said.line)
                .map(|(file, line)| self.place_of(file, line, 1)),
        });
        lines.collect()
    }

    fn fences(&mut self) -> Vec<Fence> {
        let fences = self.view.trace.fences().iter();
        let fences = fences.map(|fence| Fence {
            thread: self.thread(fence.thread),
            after: fence.before as usize,
            ordering: kinds::word(fence.order),
            place: self.place(fence.site),
        });
        fences.collect()
    }

    fn events(&mut self, remarks: &Remarks) -> Vec<Event> {
        let view = self.view;
        let initial = |&(object, _): &(ObjectId, Site)| view.machine.initial(object);
        let mut states: Vec<State> = self.objects.iter().map(initial).collect();
        let mut links = Links::default();
        let stores = OldValues::of(view.trace);
        let mut orders = Orders::default();
        let mut unseen = text::old_events(view, &self.names).into_iter().peekable();
        let mut events = Vec::with_capacity(view.trace.len());
        for (position, event) in view.trace.events().iter().enumerate() {
            let object = self.object(event.operation.object);
            let before = object.map(|object| states[object].clone());
            let mut linked = links.of(event, before.as_ref(), &view.machine.sets);
            if event.index == 0 && linked.enabled_by.is_none() {
                let spawn = view.trace.spawn_of(event.thread);
                linked.enabled_by = spawn.map(|spawn| spawn as usize);
            }
            if let OpKind::Join { child } = event.operation.kind {
                // The thread's end, or its last event if the end is no event.
                let last = view.trace.predecessor_of_next(child);
                linked.enabled_by = last.map(|last| last as usize);
            }
            if let Some(made) = stores.at(position).filter(|made| made.reads) {
                linked.reads_from = match made.of {
                    Store::Initial => None,
                    Store::Event(store) => Some(store),
                };
            }
            let mut holds = None;
            if let (Some(object), Some(before)) = (object, &before) {
                let state = &mut states[object];
                match state {
                    State::Atomic { ty, value } if view.trace.is_weak && ty.is_weak() => {
                        let of = (event.thread, event.operation.object);
                        let kind = &event.operation.kind;
                        let made = orders.apply(of, (*ty, *value), kind, event.alternative);
                        *value = made.last;
                    }
                    _ => {
                        state.apply(event.thread, &event.operation.kind, event.alternative);
                    }
                }
                links.happened(position, event, (before, state));
                holds = Some(holds::words(event.operation.object, state, &self.names));
            }
            for part in view.trace.operations_in(position) {
                if let Some(object) = self.object(part.operation.object) {
                    let before = states[object].clone();
                    states[object].apply(part.thread, &part.operation.kind, 0);
                    links.happened(position, part, (&before, &states[object]));
                }
            }
            let switch = remarks.switches.get(&(position, event.thread));
            let switch = switch.cloned();
            let old = unseen.next_if(|it| it.position == position);
            events.push(Event {
                switch,
                mo: stores.place(view.trace, position),
                stale: stores.old_at(position).is_some(),
                unseen: old.as_ref().map(|it| it.newer + 1),
                why: old.map(|it| it.sentence),
                ..self.event(position, object, holds, linked)
            });
        }
        // After a replay that differed, the machine is one event ahead of the trace.
        let whole = !matches!(view.end, End::NotDeterministic(_));
        let mut ends = self.objects.iter().map(|&(object, _)| object).zip(&states);
        // The end of a thread may be no event.
        let is_thread = |state: &State| matches!(state, State::Thread { .. });
        debug_assert!(
            !whole
                || ends
                    .all(|(object, state)| is_thread(state) || view.machine.state(object) == state),
            "dpor bug: the events do not lead to the states in which the execution ended"
        );
        events
    }

    fn event(
        &mut self,
        position: usize,
        object: Option<usize>,
        holds: Option<String>,
        linked: Linked,
    ) -> Event {
        let trace = self.view.trace;
        let event = &trace.events()[position];
        let succeeded = event.outcome.succeeded();
        let clock = |&thread: &ThreadId| self.clocks.clock(position as u32, thread);
        let number = |position: usize| position + 1;
        Event {
            number: number(position),
            thread: self.thread(event.thread),
            nth: event.index + 1,
            operation: kinds::operation(&event.operation.kind),
            ordering: kinds::ordering(&event.operation.kind, succeeded),
            words: self.names.happened(event),
            object,
            succeeded,
            found: event.outcome.value(),
            holds,
            alternative: event.alternative,
            alternatives: event.alternatives,
            clock: self.threads.iter().map(clock).collect(),
            after: self.directly_before(position as u32),
            reads_from: linked.reads_from.map(number),
            enabled_by: linked.enabled_by.map(number),
            place: self.place_of_event(event),
            switch: None,
            mo: None,
            stale: false,
            unseen: None,
            why: None,
        }
    }

    /// The numbers of the events that happen before the event at `position` and before no other
    /// such event: the transitive reduction of happens-before.
    fn directly_before(&self, position: u32) -> Vec<usize> {
        let trace = self.view.trace;
        let mine = trace.at(position).thread;
        // Of each thread, only the latest event that happens before this one can be direct.
        let latest = |&thread: &ThreadId| {
            let mut count = self.clocks.clock(position, thread);
            if thread == mine {
                count -= 1;
            }
            nth_of(trace, thread, count.checked_sub(1)?)
        };
        let latest: Vec<u32> = self.threads.iter().filter_map(latest).collect();
        let covered = |&first: &u32| {
            let mut others = latest.iter();
            others.any(|&other| other != first && self.clocks.before(first, other))
        };
        let direct = latest.iter().filter(|&first| !covered(first));
        let mut direct: Vec<usize> = direct.map(|&first| first as usize + 1).collect();
        direct.sort_unstable();
        direct
    }
}

/// The position of the thread's event with this index.
fn nth_of(trace: &Trace, thread: ThreadId, index: u32) -> Option<u32> {
    trace.positions_of(thread).get(index as usize).copied()
}
