//! The summary of a run: a line of JSON for each place that explores, in one file for all tests.
//!
//! A test that passes prints nothing that a harness shows, and a reader of the harness's output
//! cannot tell a complete exploration from one that a limit stopped. The summary tells them apart,
//! also for a program. It is a convenience: without a file that can be written there is none.
//!
//! Several processes of a run write the file at once. Each line is one write at the end of the
//! file, under a lock on the file. A line has the numbers of all explorations at its place so far,
//! and replaces the earlier lines of that place.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::config::{Builder, Shard, Summary, features};
use crate::exploration::saved_failure::{target_directory, unnumbered};
use crate::rt::engine::stats::Trees;
use crate::rt::event::Site;
use crate::rt::report::json;
use crate::verdict::assumption::{Assumption, PlacesMet};
use crate::verdict::failure::Failure;
use crate::verdict::further::Further;
use crate::verdict::outcomes::Outcomes;
use crate::verdict::report::{Passed, Verdict};
use crate::verdict::weak::WeakMemory;

/// The explorations at one place by one test, as a line of the file.
#[cfg_attr(feature = "json", derive(serde::Serialize))]
struct Line {
    /// Distinguishes this run of the tests from an earlier one.
    run: &'static str,
    package: Option<&'static str>,
    /// The program, which is a test target.
    target: &'static str,
    test: Option<String>,
    place: String,
    /// Number of explorations.
    models: u64,
    /// Whether all of them were complete.
    complete: bool,
    /// Number of explorations by verdict.
    verdicts: BTreeMap<&'static str, u64>,
    /// The first verdict that is not complete, in words.
    reason: Option<String>,
    executions: u64,
    pruned: u64,
    events: u64,
    /// The largest wakeup trees, if an exploration had any.
    trees: Option<Largest>,
    /// The setting for parts, if there is one.
    shard: Option<String>,
    /// The explorations that were one of these parts. The others have explored everything.
    parts: Parts,
    seconds: f64,
    assumptions: Vec<Assumed>,
    /// The reasons why explorations have tested nothing.
    vacuous: Vec<&'static str>,
    /// Number of explorations by what they say about weak memory.
    weak: BTreeMap<&'static str, u64>,
    /// The operations for which weak behaviour is possible.
    weak_operations: Vec<String>,
    further: Vec<Pass>,
}

/// The wakeup trees of several explorations at their largest.
#[derive(Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
struct Largest {
    depth: usize,
    widest: usize,
    branches: usize,
    bytes: usize,
}

/// The explorations of a line that were a part.
#[derive(Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
struct Parts {
    models: u64,
    executions: u64,
    pruned: u64,
    events: u64,
    /// Outcomes that the test has recorded, each with the number of executions.
    outcomes: BTreeMap<String, u64>,
}

/// The further passes for one kind of behaviour.
#[cfg_attr(feature = "json", derive(serde::Serialize))]
struct Pass {
    kind: &'static str,
    /// Number of passes.
    passes: u64,
    executions: u64,
    /// Whether all of them were complete.
    complete: bool,
    /// The first sentence of a failure that has ended one of them early.
    ended: Option<String>,
}

/// An assumption of at least one of the explorations.
#[cfg_attr(feature = "json", derive(serde::Serialize))]
struct Assumed {
    kind: &'static str,
    places: Vec<String>,
}

/// A line, with what has been written of it.
struct Entry {
    file: PathBuf,
    line: Line,
    time: Duration,
    /// Number of explorations in the line that was written last.
    written: u64,
    /// The places that the last exploration has met ([`PlacesMet::fingerprint`]).
    met: u64,
}

/// One exploration.
struct Explored<'a> {
    verdict: &'static str,
    /// The verdict in words, unless it is complete.
    reason: Option<String>,
    executions: u64,
    pruned: u64,
    events: u64,
    trees: Option<Trees>,
    outcomes: Option<&'a BTreeMap<String, u64>>,
    is_part: bool,
    time: Duration,
    met: Option<&'a PlacesMet>,
    vacuous: Option<&'static str>,
    weak: &'a WeakMemory,
    further: &'a [Further],
}

/// The lines of this process. A place has a line for each OS thread, and so for each test.
type Lines = FxHashMap<(ThreadId, Site), Entry>;

static LINES: OnceLock<Mutex<Lines>> = OnceLock::new();

fn lines() -> MutexGuard<'static, Lines> {
    let lines = LINES.get_or_init(|| {
        at_exit::install();
        Mutex::default()
    });
    // A panic leaves at most a number too small.
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds an exploration at `site` to the summary.
pub(crate) fn add(settings: &Builder, site: Site, explored: &Result<Passed, Box<Failure>>) {
    let file = match &settings.summary {
        Summary::Nothing => return,
        Summary::File(file) => Some(file.as_path()),
        Summary::Target if features::JSON => in_target_directory(),
        Summary::Target => return,
    };
    if let Some(file) = file {
        add_to(file, settings.shard, site, &Explored::of(explored));
    }
}

impl Explored<'_> {
    fn of(explored: &Result<Passed, Box<Failure>>) -> Explored<'_> {
        match explored {
            Ok(passed) => {
                let stats = passed.driver.stats;
                let verdict = passed.verdict;
                Explored {
                    verdict: verdict.name(),
                    reason: (verdict != Verdict::Complete).then(|| verdict.to_string()),
                    executions: stats.complete,
                    pruned: stats.given_up(),
                    events: stats.events,
                    trees: passed.driver.trees(),
                    outcomes: passed.outcomes.as_deref().map(Outcomes::said),
                    is_part: passed.shard.is_some(),
                    time: passed.elapsed,
                    met: Some(&passed.met),
                    vacuous: passed.vacuous.map(|why| why.name()),
                    weak: &passed.weak,
                    further: &passed.further,
                }
            }
            Err(failure) => Explored {
                verdict: "failed",
                reason: Some(sentence(&failure.text)),
                executions: failure.executions,
                pruned: failure.pruned,
                events: 0,
                trees: None,
                outcomes: None,
                is_part: false,
                time: failure.elapsed,
                met: None,
                vacuous: None,
                weak: &WeakMemory::Unasked,
                further: &[],
            },
        }
    }
}

/// Returns the first sentence of a report. The message of a panic is on the line behind its place.
pub(crate) fn sentence(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    match lines.next() {
        Some(message) if first.ends_with(':') => format!("{first} {message}"),
        _ => first.to_owned(),
    }
}

fn add_to(file: &Path, shard: Option<Shard>, site: Site, explored: &Explored<'_>) {
    let thread = std::thread::current();
    let mut lines = lines();
    let entry = (lines.entry((thread.id(), site))).or_insert_with(|| Entry {
        file: file.to_owned(),
        line: Line {
            shard: shard.map(|shard| shard.to_string()),
            ..Line::of(thread.name(), site)
        },
        time: Duration::ZERO,
        written: 0,
        met: PlacesMet::default().fingerprint(),
    });
    let has_news = entry.add(explored);
    // A test may explore the same model a thousand times. The number of lines for it is small.
    if has_news || entry.line.models.is_power_of_two() {
        entry.write();
    }
}

impl Largest {
    fn add(&mut self, trees: Trees) {
        let Trees {
            depth,
            widest,
            branches,
            bytes,
        } = trees;
        self.depth = self.depth.max(depth);
        self.widest = self.widest.max(widest);
        self.branches = self.branches.max(branches);
        self.bytes = self.bytes.max(bytes);
    }
}

impl Line {
    /// A line without explorations.
    fn of(test: Option<&str>, site: Site) -> Line {
        let Program {
            run,
            package,
            target,
        } = program();
        Line {
            run,
            package: package.as_deref(),
            target,
            test: test.map(str::to_owned),
            place: site.to_string(),
            models: 0,
            complete: true,
            verdicts: BTreeMap::new(),
            reason: None,
            executions: 0,
            pruned: 0,
            events: 0,
            trees: None,
            shard: None,
            parts: Parts::default(),
            seconds: 0.0,
            assumptions: Vec::new(),
            vacuous: Vec::new(),
            weak: BTreeMap::new(),
            weak_operations: Vec::new(),
            further: Vec::new(),
        }
    }

    /// Adds what an exploration says about weak memory. Returns whether the line had that.
    fn add_weak(&mut self, weak: &WeakMemory) -> bool {
        let times = self.weak.entry(weak.name()).or_default();
        *times += 1;
        let mut is_new = *times == 1;
        if let WeakMemory::Possible { operation } | WeakMemory::Explored { operation, .. } = weak
            && !self.weak_operations.contains(operation)
        {
            self.weak_operations.push(operation.clone());
            is_new = true;
        }
        is_new
    }

    /// Adds a further pass. Returns whether it differs in kind from the earlier ones.
    fn add_further(&mut self, further: &Further) -> bool {
        let kind = further.kind.name();
        let known = self.further.iter_mut().find(|it| it.kind == kind);
        let Some(known) = known else {
            self.further.push(Pass {
                kind,
                passes: 1,
                executions: further.executions,
                complete: further.complete,
                ended: further.ended.clone(),
            });
            return true;
        };
        known.passes += 1;
        known.executions += further.executions;
        let was = (known.complete, known.ended.is_some());
        known.complete &= further.complete;
        if let (None, Some(ended)) = (&known.ended, &further.ended) {
            known.ended = Some(ended.clone());
        }
        was != (known.complete, known.ended.is_some())
    }

    /// Adds the places of an assumption. Returns whether the line had not all of them.
    fn assume(&mut self, assumption: &Assumption) -> bool {
        let kind = assumption.kind.name();
        let known = self.assumptions.iter_mut().find(|it| it.kind == kind);
        let Some(known) = known else {
            let places = assumption.places.clone();
            self.assumptions.push(Assumed { kind, places });
            return true;
        };
        let before = known.places.len();
        for place in &assumption.places {
            if let Err(at) = known.places.binary_search(place) {
                known.places.insert(at, place.clone());
            }
        }
        known.places.len() > before
    }
}

impl Entry {
    /// Adds an exploration. Returns whether it differs in kind from all earlier ones.
    fn add(&mut self, explored: &Explored<'_>) -> bool {
        let line = &mut self.line;
        line.models += 1;
        line.executions += explored.executions;
        line.pruned += explored.pruned;
        line.events += explored.events;
        if let Some(trees) = explored.trees {
            line.trees.get_or_insert_default().add(trees);
        }
        if explored.is_part {
            let parts = &mut line.parts;
            parts.models += 1;
            parts.executions += explored.executions;
            parts.pruned += explored.pruned;
            parts.events += explored.events;
            for (outcome, executions) in explored.outcomes.into_iter().flatten() {
                *parts.outcomes.entry(outcome.clone()).or_default() += executions;
            }
        }
        self.time += explored.time;
        line.seconds = self.time.as_secs_f64();
        let verdicts = line.verdicts.entry(explored.verdict).or_default();
        *verdicts += 1;
        let mut has_news = *verdicts == 1;
        if let Some(reason) = &explored.reason {
            line.complete = false;
            line.reason.get_or_insert_with(|| reason.clone());
        }
        // Mostly a place is explored once, or meets the same places each time.
        if let Some(met) = explored.met
            && std::mem::replace(&mut self.met, met.fingerprint()) != self.met
        {
            for assumption in met.assumptions() {
                has_news |= line.assume(&assumption);
            }
        }
        if let Some(why) = explored.vacuous
            && !line.vacuous.contains(&why)
        {
            line.vacuous.push(why);
            has_news = true;
        }
        has_news |= line.add_weak(explored.weak);
        for further in explored.further {
            has_news |= line.add_further(further);
        }
        has_news
    }

    /// Writes the line, if it has changed since it was written. A file that cannot be written is no
    /// reason to fail.
    fn write(&mut self) {
        if self.written < self.line.models {
            self.written = self.line.models;
            let mut text = json::compact(&self.line);
            text.push('\n');
            let _ = append(&self.file, &text, self.line.run);
        }
    }
}

/// Appends a line to the file. The file in the target directory begins anew with each run; a file
/// that the user has named only grows.
fn append(file: &Path, text: &str, run: &str) -> std::io::Result<()> {
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut opened = File::options()
        .read(true)
        .append(true)
        .create(true)
        .open(file)?;
    opened.lock()?;
    if in_target_directory() == Some(file) && !is_of_run(&opened, run)? {
        opened.set_len(0)?;
    }
    opened.write_all(text.as_bytes())
    // Closing the file ends the lock.
}

/// Whether the first line of the file is of this run. An empty file is of any run.
fn is_of_run(file: &File, run: &str) -> std::io::Result<bool> {
    let mut first = Vec::new();
    let begins = format!("{{\"run\":{}", json::compact(&run));
    // The line may be long, or another program's.
    file.take(begins.len() as u64).read_to_end(&mut first)?;
    Ok(first.is_empty() || first == begins.as_bytes())
}

/// The facts about this process that each line has.
struct Program {
    run: String,
    package: Option<String>,
    target: String,
}

fn program() -> &'static Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let path = std::env::current_exe().unwrap_or_default();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Program {
            run: std::env::var("NEXTEST_RUN_ID").unwrap_or_else(|_| run::id(&path)),
            package: std::env::var("CARGO_PKG_NAME").ok(),
            target: unnumbered(&name).unwrap_or(&name).to_owned(),
        }
    })
}

/// Returns the file of this program's run, if the program lies in a target directory.
fn in_target_directory() -> Option<&'static Path> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let program = std::env::current_exe().ok()?;
        Some(target_directory(&program)?.join("dpor/summary.json"))
    });
    file.as_deref()
}

/// Tells one run of the tests from another one, by the process that has started the tests.
mod run {
    use std::path::Path;

    /// Returns the number of the process that has started the tests, and when it was started, so
    /// that a number that comes again is another one: cargo if it is among the ancestors of this
    /// process, otherwise the next ancestor that runs another program.
    #[cfg(target_os = "linux")]
    pub(super) fn id(program: &Path) -> String {
        let mut ancestors = Vec::new();
        let mut process = std::os::unix::process::parent_id();
        while let Some(stat) = Stat::of(process) {
            ancestors.push((process, stat.began));
            if stat.name.starts_with("cargo") {
                return format!("{process}-{}", stat.began);
            }
            process = stat.parent;
        }
        let is_other = |&&(process, _): &&(u32, u64)| {
            let runs = std::fs::read_link(format!("/proc/{process}/exe"));
            runs.map_or(true, |runs| runs != program)
        };
        let (process, began) = ancestors.iter().find(is_other).copied().unwrap_or_default();
        format!("{process}-{began}")
    }

    /// The process that has started this one.
    #[cfg(all(unix, not(target_os = "linux")))]
    pub(super) fn id(_: &Path) -> String {
        std::os::unix::process::parent_id().to_string()
    }

    /// The system does not say which process has started this one, so all runs count as one.
    #[cfg(not(unix))]
    pub(super) fn id(_: &Path) -> String {
        String::from("unknown")
    }

    /// The facts that Linux tells of a process.
    #[cfg(target_os = "linux")]
    struct Stat {
        name: String,
        parent: u32,
        /// The time of its start, in ticks of the system.
        began: u64,
    }

    #[cfg(target_os = "linux")]
    impl Stat {
        fn of(process: u32) -> Option<Stat> {
            let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            Stat::parse(&text)
        }

        /// Parses `number (name) state parent ..`. The name may have spaces and brackets.
        fn parse(text: &str) -> Option<Stat> {
            let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
            let mut fields = rest.split_whitespace();
            Some(Stat {
                name: name.to_owned(),
                parent: fields.nth(1)?.parse().ok()?,
                began: fields.nth(17)?.parse().ok()?,
            })
        }
    }

    #[cfg(all(test, target_os = "linux"))]
    mod tests {
        use super::*;

        #[test]
        fn the_process_is_told_with_its_start() {
            let rest = (4..=30).map(|field| field.to_string()).collect::<Vec<_>>();
            let text = format!("17 (a (b) c) S {}", rest.join(" "));
            let stat = Stat::parse(&text).expect("well-formed");
            assert_eq!((&*stat.name, stat.parent, stat.began), ("a (b) c", 4, 22));
            assert!(Stat::parse("17 (a").is_none() && Stat::parse("17 (a) S 1").is_none());
            let own = Stat::of(std::process::id()).expect("it runs");
            assert_eq!(own.parent, std::os::unix::process::parent_id());
        }
    }
}

/// Writes the last numbers when the process ends.
mod at_exit {
    #[cfg(unix)]
    pub(super) fn install() {
        // SAFETY: the function may be called at the end of the process, on any thread.
        unsafe { libc::atexit(write) };
    }

    #[cfg(not(unix))]
    pub(super) fn install() {}

    #[cfg(unix)]
    extern "C" fn write() {
        // No panic may unwind into a function of the system, and a thread that explores may hold
        // the lock.
        let _ = std::panic::catch_unwind(|| {
            if let Some(Ok(mut lines)) = super::LINES.get().map(|lines| lines.try_lock()) {
                lines.values_mut().for_each(super::Entry::write);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::Location;

    #[test]
    fn a_line_has_all_explorations_of_its_place() {
        let mut entry = Entry {
            file: PathBuf::new(),
            line: Line::of(Some("a::test"), Location::caller()),
            time: Duration::ZERO,
            written: 0,
            met: 0,
        };
        let met = |places: &[&str]| {
            let mut met = PlacesMet::default();
            for place in places {
                let line = format!("spurious_wakeups\t0\t{place}");
                met.add_line(&line).expect("well-formed");
            }
            met
        };
        let mut add = |verdict: Verdict, places: &[&str], vacuous| {
            entry.add(&Explored {
                verdict: verdict.name(),
                reason: (verdict != Verdict::Complete).then(|| verdict.to_string()),
                executions: 2,
                pruned: 1,
                events: 9,
                trees: Some(Trees {
                    depth: 4,
                    ..Trees::default()
                }),
                outcomes: None,
                is_part: false,
                time: Duration::from_millis(250),
                met: Some(&met(places)),
                vacuous,
                weak: &WeakMemory::Impossible,
                further: &[],
            })
        };
        assert!(add(Verdict::Complete, &["b"], None));
        assert!(!add(Verdict::Complete, &["b"], None));
        assert!(add(Verdict::Complete, &["a", "b"], None));
        assert!(add(Verdict::Complete, &["a"], Some("no_conflict")));
        assert!(!add(Verdict::Complete, &[], Some("no_conflict")));
        assert!(add(Verdict::Rounds(3), &[], None));
        assert!(add(Verdict::Marked, &[], None));
        let Program {
            run,
            package,
            target,
        } = program();
        let package = json::compact(package);
        let place = &entry.line.place;
        // A test of the library reads no JSON: `serde_json` has no place in it (`json.rs`).
        let expected = format!(
            "{{\"run\":\"{run}\",\"package\":{package},\"target\":\"{target}\",\"test\":\"a::test\",\
             \"place\":\"{place}\",\"models\":7,\"complete\":false,\
             \"verdicts\":{{\"complete\":5,\"marked\":1,\"rounds\":1}},\
             \"reason\":\"bounded by max_rounds = 3 (DPOR_MAX_ROUNDS)\",\"executions\":14,\"pruned\":7,\
             \"events\":63,\"trees\":{{\"depth\":4,\"widest\":0,\"branches\":0,\"bytes\":0}},\
             \"shard\":null,\"parts\":{{\"models\":0,\"executions\":0,\"pruned\":0,\
             \"events\":0,\"outcomes\":{{}}}},\"seconds\":1.75,\
             \"assumptions\":[{{\"kind\":\"spurious_wakeups\",\"places\":[\"a\",\"b\"]}}],\
             \"vacuous\":[\"no_conflict\"],\
             \"weak\":{{\"impossible\":7}},\"weak_operations\":[],\"further\":[]}}"
        );
        assert_eq!(json::compact(&entry.line), expected);
    }

    #[test]
    fn a_line_has_what_is_said_of_weak_memory_and_all_further_passes() {
        let mut line = Line::of(None, Location::caller());
        let explored = |operation: &str| WeakMemory::Explored {
            operation: operation.to_owned(),
            sequential: 3,
        };
        assert!(line.add_weak(&WeakMemory::Impossible));
        assert!(!line.add_weak(&WeakMemory::Impossible));
        assert!(line.add_weak(&explored("a")) && line.add_weak(&explored("b")));
        assert!(!line.add_weak(&explored("a")));
        assert_eq!(
            json::compact(&line.weak),
            "{\"explored\":3,\"impossible\":2}"
        );
        assert_eq!(line.weak_operations, ["a", "b"]);
        let further = |complete, ended: Option<&str>| Further {
            kind: crate::AssumptionKind::SpuriousWakeups,
            executions: 4,
            complete,
            ended: ended.map(str::to_owned),
        };
        assert!(line.add_further(&further(true, None)));
        assert!(!line.add_further(&further(true, None)));
        assert!(line.add_further(&further(false, None)));
        assert!(line.add_further(&further(false, Some("why"))));
        assert!(!line.add_further(&further(false, Some("another why"))));
        assert_eq!(
            json::compact(&line.further),
            "[{\"kind\":\"spurious_wakeups\",\"passes\":5,\"executions\":20,\"complete\":false,\"ended\":\"why\"}]"
        );
    }

    #[test]
    fn the_beginning_of_a_file_says_of_which_run_it_is() {
        let path = std::env::temp_dir().join(format!("dpor-run-{}", std::process::id()));
        for (text, is_ours) in [
            ("", true),
            ("{\"run\":\"17-3\",\"x\":1}\n", true),
            ("{\"run\":\"17-34\"}\n", false),
            ("{\"run\"", false),
            ("another program's", false),
        ] {
            std::fs::write(&path, text).expect("a file");
            let file = File::open(&path).expect("the file");
            assert_eq!(is_of_run(&file, "17-3").ok(), Some(is_ours), "{text}");
        }
        std::fs::remove_file(&path).expect("the file");
    }
}
