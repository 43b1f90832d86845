//! Which orderings of the source does a test need?
//!
//! Each ordering stronger than `Relaxed` is replaced by one that is one step weaker, and the
//! closure is explored under C11. If it still passes, the weaker ordering stays, and the next step
//! is tried. What is left is a local minimum: every further step, on its own, makes the test fail.
//! An execution of a stronger program is also one of a weaker program, so a step that has failed
//! need not be tried again once other places have become weaker.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use crate::config::{Builder, Memory, features};
use crate::exploration::explored_seeing;
use crate::exploration::replay_command;
use crate::exploration::saved_failure::target_directory;
use crate::rt::Work;
use crate::rt::event::operation::OpKind;
use crate::rt::event::weakened::{Entry, Role, Weakened, orderings as orderings_of, word};
use crate::rt::event::{Site, Trace};
use crate::rt::exec::interrupts;
use crate::rt::report::json;
use crate::verdict::failure::{Failure, FailureKind};
use crate::verdict::report::Verdict;

/// The weakest orderings with which a test passes under [`Memory::C11`].
///
/// [`Display`](fmt::Display) prints a table, and the command that replays each failure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OrderingsReport {
    /// Place of the model.
    pub model: &'static Location<'static>,
    /// The operations and fences with an ordering stronger than `Relaxed`, in the order of their
    /// places.
    pub places: Vec<OrderingPlace>,
    /// Number of explorations.
    pub explorations: u64,
    /// Whether each exploration without a failure was complete. If not, a test that is said to pass
    /// with the weaker orderings may still fail.
    pub complete: bool,
}

/// An ordering in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrderingPlace {
    /// Path of the source, as the compiler names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// What has the ordering: `load`, `store`, `rmw`, `compare_exchange success`,
    /// `compare_exchange failure`, `fetch_update set`, `fetch_update fetch` or `fence`.
    pub operation: &'static str,
    /// The ordering in the source.
    pub written: Ordering,
    /// The weakest ordering with which the test passes, together with those of the other places.
    /// `None` if it passes without the fence.
    pub weakest: Option<Ordering>,
    /// The orderings one step weaker than [`weakest`](OrderingPlace::weakest), with each of which
    /// the test fails. Empty if the test needs no ordering here.
    pub fails: Vec<WeakerOrdering>,
}

/// An ordering with which a test fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WeakerOrdering {
    /// The ordering; `None` stands for a fence that is left out.
    pub order: Option<Ordering>,
    /// Kind of the failure.
    pub kind: FailureKind,
    /// The first line of the failure's report.
    pub what: String,
    /// The failure's schedule.
    pub schedule: String,
    /// The value of [`Builder::weakened`](crate::Builder#structfield.weakened) under which the
    /// schedule fails. It has this place alone if the test then fails, and otherwise those that
    /// were weaker when this one was tried.
    pub weakened: String,
    /// The command that replays the failure.
    pub replay: String,
}

/// One ordering in the source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    file: &'static str,
    line: u32,
    column: u32,
    role: Role,
}

/// What is known about a place.
struct Known {
    written: Ordering,
    /// Whether a compare-exchange has this ordering, and whether another operation has it.
    exchanges: bool,
    others: bool,
    /// The weakest ordering with which the test has passed so far.
    weakest: Option<Ordering>,
    is_minimal: bool,
    fails: Vec<WeakerOrdering>,
}

impl Known {
    /// The orderings one step weaker than the weakest one that has passed.
    fn weaker(&self, role: Role) -> &'static [Option<Ordering>] {
        self.weakest.map_or(&[], |weakest| role.weaker(weakest))
    }
}

/// The orderings that the executions of an exploration have met: the site, the role, whether it is
/// that of a compare-exchange, and the ordering.
#[derive(Default)]
struct Seen(FxHashMap<(*const Location<'static>, Role, bool), (Site, Ordering)>);

impl Seen {
    /// Adds the orderings of an execution.
    fn see(&mut self, trace: &Trace) {
        for event in trace.events() {
            let mut kind = event.operation.kind;
            let is_exchange = matches!(kind, OpKind::CompareExchange { .. });
            for (role, order) in orderings_of(&mut kind).into_iter().flatten() {
                self.add(event.site, role, is_exchange, *order);
            }
        }
        for fence in trace.fences() {
            self.add(fence.site, Role::Fence, false, fence.order);
        }
    }

    fn add(&mut self, site: Site, role: Role, is_exchange: bool, order: Ordering) {
        let key = (ptr::from_ref(site), role, is_exchange);
        self.0.entry(key).or_insert((site, order));
    }
}

/// The places that explorations without a failure have come to.
#[derive(Default)]
struct Places(BTreeMap<Place, Known>);

impl Places {
    /// Adds the places of an exploration. The ordering of a place that is new is that of the
    /// source, because only known places are weakened.
    fn learn(&mut self, seen: Seen) {
        for ((_, role, is_exchange), (site, order)) in seen.0 {
            let known = self.0.entry(place(site, role)).or_insert(Known {
                written: order,
                exchanges: false,
                others: false,
                weakest: Some(order),
                is_minimal: false,
                fails: Vec::new(),
            });
            known.exchanges |= is_exchange;
            known.others |= !is_exchange;
        }
    }

    /// The words for what has the ordering. A load at the place of a compare-exchange is the first
    /// one of a `fetch_update`.
    fn operation(&self, place: &Place) -> &'static str {
        let load = Place {
            role: Role::Load,
            ..place.clone()
        };
        let also_loads = self.0.get(&load).is_some_and(|load| load.others);
        match (place.role, self.0[place].exchanges, also_loads) {
            (Role::Load, false, _) => "load",
            (Role::Load, true, false) => "compare_exchange failure",
            (Role::Load, true, true) => "fetch_update fetch",
            (Role::Rmw, false, _) => "rmw",
            (Role::Rmw, true, false) => "compare_exchange success",
            (Role::Rmw, true, true) => "fetch_update set",
            (Role::Store, ..) => "store",
            (Role::Fence, ..) => "fence",
        }
    }

    /// A place that may be weaker, for all that is known.
    fn next(&self) -> Option<Place> {
        let mut places = self.0.iter();
        let next = places.find(|(_, known)| !known.is_minimal);
        next.map(|(place, _)| place.clone())
    }

    /// The orderings that have passed, with this one instead at one place.
    fn entries(&self, except: &Place, order: Option<Ordering>) -> Vec<Entry> {
        let entries = self.0.iter().filter_map(|(place, known)| {
            let order = if place == except {
                order
            } else {
                known.weakest
            };
            (order != Some(known.written)).then(|| entry(place, order))
        });
        entries.collect()
    }
}

fn place(site: Site, role: Role) -> Place {
    Place {
        file: site.file(),
        line: site.line(),
        column: site.column(),
        role,
    }
}

fn entry(place: &Place, order: Option<Ordering>) -> Entry {
    Entry {
        file: place.file.to_owned(),
        line: place.line,
        column: Some(place.column),
        role: Some(place.role),
        order,
    }
}

/// The search for the weakest orderings.
struct Search<'a> {
    settings: Builder,
    main: &'a dyn Work,
    site: Site,
    /// The orderings that the settings replace.
    given: Weakened,
    places: Places,
    explorations: u64,
    complete: bool,
}

/// Finds the weakest orderings with which the closure passes. The settings must fit C11.
///
/// # Errors
///
/// The failure of the closure with its orderings as they are.
#[track_caller]
pub(crate) fn weakest(
    settings: &Builder,
    main: &dyn Work,
    site: Site,
) -> Result<OrderingsReport, Box<Failure>> {
    let mut search = Search {
        settings: Builder {
            memory: Memory::C11,
            replay: None,
            // There are many explorations, and the file is that of one.
            checkpoint_file: None,
            ..settings.clone()
        },
        main,
        site,
        given: settings.weakenings(),
        places: Places::default(),
        explorations: 0,
        complete: true,
    };
    search.explore(&search.given.clone())?;
    // The further explorations are told of by the report alone.
    search.settings = Builder {
        trace: None,
        log: false,
        progress: Some(false),
        report_dir: None,
        max_failures: 1,
        ..search.settings
    };
    while let Some(place) = search.places.next() {
        if interrupts::asked() {
            search.complete = false;
            break;
        }
        search.weaken(&place);
    }
    search.look_at_single_places();
    Ok(search.report())
}

impl Search<'_> {
    /// The orderings that the settings replace, and these.
    fn with(&self, entries: Vec<Entry>) -> Weakened {
        let mut weakened = self.given.clone();
        weakened.0.extend(entries);
        weakened
    }

    fn explore(&mut self, weakened: &Weakened) -> Result<(), Box<Failure>> {
        let settings = Builder {
            weakened: (!weakened.is_empty()).then(|| weakened.to_string()),
            ..self.settings.clone()
        };
        self.explorations += 1;
        let mut seen = Seen::default();
        let see = &mut |trace: &Trace| seen.see(trace);
        let passed = explored_seeing(&settings, self.main, None, self.site, see)?;
        self.complete &= passed.verdict == Verdict::Complete;
        self.places.learn(seen);
        Ok(())
    }

    /// Weakens a place by one step, or finds that each step fails.
    fn weaken(&mut self, place: &Place) {
        let mut fails = Vec::new();
        let mut passes = None;
        for &order in self.places.0[place].weaker(place.role) {
            let weakened = self.with(self.places.entries(place, order));
            match self.explore(&weakened) {
                Ok(()) => {
                    passes = Some(order);
                    break;
                }
                Err(failure) => fails.push(weaker_ordering(order, &failure, &weakened)),
            }
        }
        if let Some(known) = self.places.0.get_mut(place) {
            match passes {
                Some(order) => known.weakest = order,
                None => {
                    known.is_minimal = true;
                    known.fails = fails;
                }
            }
        }
    }

    /// Shows each failure with one place weakened alone, where that fails, too.
    fn look_at_single_places(&mut self) {
        let mut places = std::mem::take(&mut self.places.0);
        for (place, known) in &mut places {
            for fails in &mut known.fails {
                let alone = self.with(vec![entry(place, fails.order)]);
                if fails.weakened != alone.to_string()
                    && !interrupts::asked()
                    && let Err(failure) = self.explore(&alone)
                {
                    *fails = weaker_ordering(fails.order, &failure, &alone);
                }
            }
        }
        self.places.0 = places;
    }

    fn report(self) -> OrderingsReport {
        let places = self.places.0.iter();
        let places = places.filter(|(_, known)| known.written != Ordering::Relaxed);
        OrderingsReport {
            model: self.site,
            places: places
                .map(|(place, known)| OrderingPlace {
                    operation: self.places.operation(place),
                    file: place.file.to_owned(),
                    line: place.line,
                    column: place.column,
                    written: known.written,
                    weakest: known.weakest,
                    fails: known.fails.clone(),
                })
                .collect(),
            explorations: self.explorations,
            complete: self.complete,
        }
    }
}

fn weaker_ordering(
    order: Option<Ordering>,
    failure: &Failure,
    weakened: &Weakened,
) -> WeakerOrdering {
    WeakerOrdering {
        order,
        kind: failure.kind,
        what: first_line(failure),
        schedule: failure.schedule.clone(),
        weakened: weakened.to_string(),
        replay: replay_command::replay(&failure.schedule, weakened),
    }
}

/// The first line of the report; of a panic, with the first line of its message.
fn first_line(failure: &Failure) -> String {
    let mut lines = failure.text.lines();
    let first = lines.next().unwrap_or_default();
    match lines.next() {
        Some(message) if first.starts_with("thread '") => format!("{first} {message}"),
        _ => first.to_owned(),
    }
}

/// The word for a kind of failure.
fn kind(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Panic => "panic",
        FailureKind::Deadlock => "deadlock",
        FailureKind::Livelock => "livelock",
        FailureKind::DataRace => "data race",
        FailureKind::Leak => "leak",
        FailureKind::UseAfterFree => "use after free",
        FailureKind::WrongFree => "wrong free",
        FailureKind::Limit => "limit",
        FailureKind::StackOverflow => "stack overflow",
        FailureKind::MemoryFault => "memory fault",
        FailureKind::Outside => "used outside of the model",
        FailureKind::NotDeterministic => "not deterministic",
        FailureKind::Schedule => "schedule",
        FailureKind::Incomplete => "incomplete",
    }
}

impl OrderingsReport {
    /// A report without places.
    pub(crate) fn empty(model: Site) -> OrderingsReport {
        OrderingsReport {
            model,
            places: Vec::new(),
            explorations: 0,
            complete: false,
        }
    }
}

impl OrderingPlace {
    /// Whether the test needs an ordering stronger than `Relaxed` here, or the fence.
    pub fn is_needed(&self) -> bool {
        !matches!(self.weakest, None | Some(Ordering::Relaxed))
    }

    fn place(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }

    fn verdict(&self) -> String {
        if !self.is_needed() {
            return "not needed by this test".to_owned();
        }
        let fails = self.fails.iter();
        let fails: Vec<String> = fails
            .map(|fails| format!("{} fails: {}", word(fails.order), kind(fails.kind)))
            .collect();
        format!("needed ({})", fails.join(", "))
    }
}

impl fmt::Display for OrderingsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "weakest orderings of the model at {}", self.model)?;
        writeln!(
            f,
            "under C11, for this test alone; a local minimum, found with {} explorations",
            self.explorations
        )?;
        if !self.complete {
            writeln!(
                f,
                "not every exploration was complete: with these orderings the test may still fail"
            )?;
        }
        if self.places.is_empty() {
            return write!(f, "no ordering is stronger than Relaxed");
        }
        let header = ["place", "operation", "written", "weakest", "verdict"];
        let rows = self.places.iter().map(|it| {
            [
                it.place(),
                it.operation.to_owned(),
                word(Some(it.written)).to_owned(),
                word(it.weakest).to_owned(),
                it.verdict(),
            ]
        });
        let rows: Vec<[String; 5]> = [header.map(str::to_owned)]
            .into_iter()
            .chain(rows)
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max();
        let widths = [0, 1, 2, 3].map(|column| width(column).unwrap_or_default());
        for row in &rows {
            write!(f, "\n ")?;
            for (text, width) in row.iter().zip(widths) {
                write!(f, " {text:width$} ")?;
            }
            write!(f, " {}", row[4])?;
        }
        for place in &self.places {
            for fails in &place.fails {
                write!(
                    f,
                    "\n\n{} {} with {}\n  {}\n  {}",
                    place.place(),
                    place.operation,
                    word(fails.order),
                    fails.what,
                    fails.replay
                )?;
            }
        }
        Ok(())
    }
}

/// A report as a line of JSON.
#[cfg_attr(feature = "json", derive(serde::Serialize))]
struct Line<'a> {
    test: Option<&'a str>,
    /// The number of the model among those of the test.
    model: u64,
    place: String,
    complete: bool,
    orderings: Vec<Row<'a>>,
}

#[cfg_attr(feature = "json", derive(serde::Serialize))]
struct Row<'a> {
    place: String,
    operation: &'a str,
    written: &'a str,
    weakest: &'a str,
    needed: bool,
    fails: Vec<Fails<'a>>,
}

#[cfg_attr(feature = "json", derive(serde::Serialize))]
struct Fails<'a> {
    ordering: &'a str,
    kind: &'a str,
    what: &'a str,
    schedule: &'a str,
    weakened: &'a str,
}

impl Fails<'_> {
    fn of(fails: &WeakerOrdering) -> Fails<'_> {
        Fails {
            ordering: word(fails.order),
            kind: kind(fails.kind),
            what: &fails.what,
            schedule: &fails.schedule,
            weakened: &fails.weakened,
        }
    }
}

fn line(report: &OrderingsReport, test: Option<&str>, model: u64) -> String {
    let orderings = report.places.iter().map(|it| Row {
        place: it.place(),
        operation: it.operation,
        written: word(Some(it.written)),
        weakest: word(it.weakest),
        needed: it.is_needed(),
        fails: it.fails.iter().map(Fails::of).collect(),
    });
    let line = Line {
        test,
        model,
        place: report.model.to_string(),
        complete: report.complete,
        orderings: orderings.collect(),
    };
    json::compact(&line)
}

/// Appends the report to `dpor/orderings.jsonl` in the target directory; returns the file, if it
/// was written. Tests of several processes append to the file, each line with one write.
pub(crate) fn keep(report: &OrderingsReport, test: Option<&str>, model: u64) -> Option<PathBuf> {
    if !features::JSON {
        return None;
    }
    let program = std::env::current_exe().ok()?;
    let directory = target_directory(&program)?.join("dpor");
    std::fs::create_dir_all(&directory).ok()?;
    let path = directory.join("orderings.jsonl");
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).open(&path).ok()?;
    let line = line(report, test, model) + "\n";
    file.write_all(line.as_bytes()).ok()?;
    Some(path)
}
