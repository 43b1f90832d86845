//! How is an execution written down, and read back?
//!
//! `v2 main*4 main.1 main.2:1` means: four steps of the main thread, one of its first child, then
//! one of its second child with outcome 1, where that step has several outcomes. Names and counts
//! survive small edits of the program better than positions would.
//!
//! The code of a thread begins with its first step. If the code has begun earlier, and has run up
//! to that step, the schedule contains `main.1*0`. After `v2 ends` the end of a thread is a step,
//! too. After `v2 soon` loops without a hint wait soon, and the waits are steps.
//!
//! After `v2 c11` memory is C11's. Then the outcome of a load or a read-modify-write is twice the
//! number of stores that are newer than the one that it reads, and of a store twice the number of
//! those that stay behind it; one more if a compare-exchange fails spuriously. A failed `try_lock`
//! reads the word of its mutex, of which each lock and unlock is a store.
//!
//! After `v2 wakes` a wait may end spuriously, which is a choice of the thread, and each thread may
//! have one such wait; after `v2 wakes*3`, three. After `v2 fails` a weak compare-exchange may fail
//! spuriously. After `v2 writers` a reader of a lock waits until the writers that wait have had
//! their turn: `read` and `write` are three steps each, of which the first and the last are those
//! of a mutex that a waiting writer holds. After `v2 again` a thread gets the memory again of the
//! blocks that it has freed.
//!
//! A round that threads repeat is written once: `(main main.1*2)*9`.
//!
//! The code of a thread between two of its steps runs together with the first of them. After
//! `v2 held main.1*3` the thread `main.1` is delayed behind its third step, and its continuation
//! from there is a step of its own. Then uses of blocks after their free are detected, and so they
//! are after `v2 guarded`.

use std::fmt;
use std::ops::Range;

use crate::rt::event::id::{Names, ThreadId};
use crate::rt::event::operation::{Choice, OpKind};
use crate::rt::event::rounds::rounds;
use crate::rt::event::{Event, Trace};

/// The word for: memory is C11's.
const C11: &str = "c11";

/// The word for: ends of threads are among the steps.
const ENDS: &str = "ends";

/// The word for: loops without a hint wait soon.
const SOON: &str = "soon";

/// The word for: loops that change a value in each round let the other threads run first.
const FAIR: &str = "fair";

/// The word for: waits may end spuriously.
const WAKES: &str = "wakes";

/// The word for: weak compare-exchanges may fail spuriously.
const FAILS: &str = "fails";

/// The word for: locks prefer writers.
const WRITERS: &str = "writers";

/// The word for: a thread gets the memory again of the blocks that it has freed.
const AGAIN: &str = "again";

/// The word for: a thread is delayed.
const HELD: &str = "held";

/// The word for: uses of blocks after their free are detected, though no thread is delayed.
const GUARDED: &str = "guarded";

/// The error for a wrong text behind [`HELD`].
const WHO_IS_HELD: &str = "expected a thread and how many steps it makes before it is held up, such as `main.1*3`, after `held`";

/// A thread that is delayed, and continues later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hold {
    /// The thread's path of births.
    pub(crate) path: String,
    /// The number of the thread's events before the delay.
    pub(crate) events: u32,
}

/// The blocks with detection of uses after their free. The detection takes system calls for each
/// block.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Guarded {
    #[default]
    All,
    /// The blocks of this size in bytes that a thread made after this number of its own events.
    Like { size: usize, events: u32 },
}

impl Guarded {
    /// Whether a block of `of` bytes, made after `after` events, is one of them.
    pub(crate) fn has(self, of: usize, after: u32) -> bool {
        match self {
            Guarded::All => true,
            Guarded::Like { size, events } => (of, after) == (size, events),
        }
    }
}

/// The choices that fix an execution: for each step the thread's path of births and its outcome.
///
/// Equal consecutive steps are one run, and repeated rounds are stored once, in memory as in the
/// text: a text of a few bytes may ask for billions of steps, and only the run of the program shows
/// whether it has as many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    runs: Vec<Run>,
    /// The repeated runs, in order.
    loops: Vec<Loop>,
    /// Whether memory is C11's.
    is_weak: bool,
    /// Whether ends of threads are among the steps.
    has_ends: bool,
    /// Whether loops without a hint wait soon.
    waits_soon: bool,
    /// Whether loops that change a value in each round let the other threads run first.
    is_fair: bool,
    /// The number of waits of a thread that may end spuriously.
    wakes: u32,
    /// Whether weak compare-exchanges may fail spuriously.
    fails: bool,
    /// Whether locks prefer writers.
    writers_first: bool,
    /// Whether a thread gets the memory again of the blocks that it has freed.
    blocks_again: bool,
    /// The delayed thread.
    held: Option<Hold>,
    /// Whether uses of blocks after their free are detected, though no thread is delayed.
    is_guarded: bool,
    /// Whether the schedule counts fences among the steps.
    counts_fences: bool,
}

/// Equal consecutive steps. `times` is 0 if the thread only begins.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Run {
    path: String,
    alternative: u32,
    times: u64,
}

/// Consecutive runs that are repeated `times` times.
#[derive(Clone, Debug)]
struct Loop {
    runs: Range<usize>,
    times: u64,
}

/// The position up to which a schedule has been followed.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Cursor {
    run: usize,
    /// The number of steps of that run so far.
    made: u64,
    /// The first loop that does not end before that run, and the number of its rounds so far.
    loop_: usize,
    rounds: u64,
    /// The number of steps of the whole schedule so far.
    pub(crate) position: u64,
}

impl Schedule {
    /// The schedule of the first `length` events of an execution.
    pub(crate) fn of(trace: &Trace, length: usize, names: &Names) -> Schedule {
        let mut schedule = Schedule {
            is_weak: trace.is_weak,
            writers_first: trace.writers_first,
            blocks_again: trace.blocks_again,
            ..Schedule::default()
        };
        let mut early = trace.begun_early().peekable();
        let mut before = None;
        for (position, event) in trace.events()[..length].iter().enumerate() {
            while let Some((_, thread)) = early.next_if(|&(at, _)| at == position) {
                schedule.begin(names.path(thread));
                before = None;
            }
            // Mostly the same thread makes the next step, and its path need not be built again.
            let step = event.step();
            match schedule.runs.last_mut().filter(|_| before == Some(step)) {
                Some(run) => run.times = run.times.saturating_add(1),
                None => schedule.step_of(names.path(step.thread), step.alternative),
            }
            before = Some(step);
            let kind = &event.operation.kind;
            schedule.has_ends |= matches!(kind, OpKind::Exit);
            schedule.waits_soon |= matches!(kind, OpKind::Wait { soon: true, .. });
            schedule.is_fair |= matches!(kind, OpKind::Wait { fair: true, .. });
            schedule.note_spurious(&trace.events()[..position], event);
            if let OpKind::Resume = kind {
                schedule.held = Some(Hold {
                    path: names.path(step.thread),
                    events: event.index,
                });
            }
        }
        schedule
    }

    /// [`Schedule::of`] the first `length` events, which lead to an action of `thread` behind them,
    /// maybe before its first step.
    pub(crate) fn leading_to(
        thread: Option<ThreadId>,
        trace: &Trace,
        length: usize,
        names: &Names,
    ) -> Schedule {
        let mut schedule = Schedule::of(trace, length, names);
        let begun: Vec<ThreadId> = trace.begun_behind(length).collect();
        // A thread that was about to use memory, which another thread has freed, may have begun
        // before the other.
        let until = match thread {
            Some(thread) if trace.has_begun(thread) => begun.len(),
            _ => 0,
        };
        for &thread in &begun[..until] {
            if thread != ThreadId::MAIN {
                schedule.begin(names.path(thread));
            }
        }
        schedule
    }

    /// Whether memory is C11's.
    pub(crate) fn is_weak(&self) -> bool {
        self.is_weak
    }

    /// Whether ends of threads are among the steps.
    pub(crate) fn has_ends(&self) -> bool {
        self.has_ends
    }

    /// Whether loops without a hint wait soon.
    pub(crate) fn waits_soon(&self) -> bool {
        self.waits_soon
    }

    /// Whether the schedule counts fences among the steps. Schedules of earlier versions of `dpor`
    /// do.
    pub(crate) fn counts_fences(&self) -> bool {
        self.counts_fences
    }

    /// The same schedule, with the fences counted or not.
    pub(crate) fn counting_fences(&self, counts: bool) -> Schedule {
        Schedule {
            counts_fences: counts,
            ..self.clone()
        }
    }

    /// Whether loops that change a value in each round let the other threads run first.
    pub(crate) fn is_fair(&self) -> bool {
        self.is_fair
    }

    /// The same schedule with that property, even if it has no step by which such a loop continues.
    pub(crate) fn with_fair(mut self, is_fair: bool) -> Schedule {
        self.is_fair |= is_fair;
        self
    }

    /// Notes the setting under which a thread could make this event, which comes behind the events
    /// `before`: a choice how a wait ends, or a spurious failure.
    fn note_spurious(&mut self, before: &[Event], event: &Event) {
        match event.operation.kind {
            ref kind if is_wakeup(kind) => {
                let of_thread = |it: &&Event| it.thread == event.thread && it.alternative == 1;
                let earlier = before.iter().filter(of_thread);
                let ended = earlier.filter(|it| is_wakeup(&it.operation.kind)).count();
                self.wakes = self.wakes.max(ended as u32 + 1);
            }
            // Under C11 the other bits are the store that is read.
            OpKind::CompareExchange { spurious: true, .. } => {
                self.fails |= event.alternative & 1 == 1;
            }
            _ => {}
        }
    }

    /// The number of waits of a thread that may end spuriously.
    pub(crate) fn wakes(&self) -> u32 {
        self.wakes
    }

    /// Whether weak compare-exchanges may fail spuriously.
    pub(crate) fn fails(&self) -> bool {
        self.fails
    }

    /// Whether locks prefer writers.
    pub(crate) fn writers_first(&self) -> bool {
        self.writers_first
    }

    /// Whether a thread gets the memory again of the blocks that it has freed.
    pub(crate) fn blocks_again(&self) -> bool {
        self.blocks_again
    }

    /// The delayed thread.
    pub(crate) fn held(&self) -> Option<&Hold> {
        self.held.as_ref()
    }

    /// Whether uses of blocks after their free are detected.
    pub(crate) fn guards(&self) -> bool {
        self.is_guarded || self.held.is_some()
    }

    /// The schedule of an execution with this delayed thread, if any, and these guarded blocks. The
    /// delay is part of the schedule even if the thread has not continued: then another thread has
    /// used a freed block.
    pub(crate) fn with_held(mut self, hold: Option<&Hold>, guarded: Option<Guarded>) -> Schedule {
        self.held = self.held.or_else(|| hold.cloned());
        self.is_guarded |= guarded.is_some() && self.held.is_none();
        self
    }

    /// Sets the delayed thread. The step by which it continues is added later.
    pub(crate) fn hold(&mut self, hold: Hold) {
        self.held = Some(hold);
    }

    /// Adds the beginning of a thread's code.
    pub(crate) fn begin(&mut self, path: String) {
        self.push(path, 0, 0);
    }

    /// Adds a step.
    pub(crate) fn step_of(&mut self, path: String, alternative: u32) {
        self.push(path, alternative, 1);
    }

    /// The thread that begins at the cursor, if one does.
    pub(crate) fn beginning(&self, at: Cursor) -> Option<&str> {
        let run = self.runs.get(at.run)?;
        (run.times == 0).then_some(&run.path)
    }

    /// The step at the cursor, if no thread begins there; `None` at the end.
    pub(crate) fn step(&self, at: Cursor) -> Option<(&str, u32)> {
        let run = self.runs.get(at.run)?;
        Some((&run.path, run.alternative))
    }

    /// The number of equal steps behind the one at the cursor.
    pub(crate) fn further(&self, at: Cursor) -> usize {
        let times = self.runs.get(at.run).map_or(0, |run| run.times);
        usize::try_from(times.saturating_sub(at.made + 1)).unwrap_or(usize::MAX)
    }

    /// The cursor behind the run or step at this one, which must not be the end.
    pub(crate) fn behind(&self, at: Cursor) -> Cursor {
        let times = self.runs[at.run].times;
        let (made, position) = (at.made + 1, at.position + times.min(1));
        if made < times {
            return Cursor {
                made,
                position,
                ..at
            };
        }
        let next = Cursor {
            run: at.run + 1,
            made: 0,
            position,
            ..at
        };
        match self.loops.get(at.loop_) {
            Some(around) if around.runs.end == next.run && at.rounds + 1 < around.times => Cursor {
                run: around.runs.start,
                rounds: at.rounds + 1,
                ..next
            },
            Some(around) if around.runs.end == next.run => Cursor {
                loop_: at.loop_ + 1,
                rounds: 0,
                ..next
            },
            _ => next,
        }
    }

    /// The number of steps.
    pub(crate) fn length(&self) -> u64 {
        let steps = |runs: &[Run]| {
            let times = runs.iter().map(|run| run.times);
            times.fold(0, u64::saturating_add)
        };
        let again = self.loops.iter().map(|around| {
            let round = steps(&self.runs[around.runs.clone()]);
            round.saturating_mul(around.times - 1)
        });
        again.fold(steps(&self.runs), u64::saturating_add)
    }

    /// Adds a step `times` times, or the beginning of the thread if `times` is 0.
    fn push(&mut self, path: String, alternative: u32, times: u64) {
        let closed = self.loops.last().map_or(0, |around| around.runs.end);
        match self.runs[closed..].last_mut() {
            Some(last)
                if (&last.path, last.alternative) == (&path, alternative)
                    && times.min(last.times) > 0 =>
            {
                last.times = last.times.saturating_add(times);
            }
            _ => self.runs.push(Run {
                path,
                alternative,
                times,
            }),
        }
    }

    /// Reads a schedule. The error names the byte of the text and the expected words.
    pub(crate) fn parse(text: &str) -> Result<Schedule, String> {
        let mut schedule = Schedule::default();
        let start = text.len() - text.trim_start().len();
        let versioned = text.trim_start().strip_prefix("v2");
        let whole = |rest: &&str| rest.is_empty() || rest.starts_with(char::is_whitespace);
        let Some(rest) = versioned.filter(whole) else {
            return Err(format!(
                "a schedule begins with its version, `v2`; at byte {start} there is `{}`",
                text.trim_start().chars().take(10).collect::<String>()
            ));
        };
        let marked = |rest, mark| str::trim_start(rest).strip_prefix(mark).filter(whole);
        let weak = marked(rest, C11);
        schedule.is_weak = weak.is_some();
        let rest = weak.unwrap_or(rest);
        let ends = marked(rest, ENDS);
        let rest = ends.unwrap_or(rest);
        let soon = marked(rest, SOON);
        (schedule.has_ends, schedule.waits_soon) = (ends.is_some(), soon.is_some());
        let rest = soon.unwrap_or(rest);
        let fair = marked(rest, FAIR);
        schedule.is_fair = fair.is_some();
        let rest = fair.unwrap_or(rest);
        let wakes = counted_mark(rest, WAKES);
        let rest = wakes.map_or(rest, |(_, rest)| rest);
        schedule.wakes = wakes.map_or(0, |(times, _)| times);
        let fails = marked(rest, FAILS);
        schedule.fails = fails.is_some();
        let rest = fails.unwrap_or(rest);
        let writers = marked(rest, WRITERS);
        schedule.writers_first = writers.is_some();
        let rest = writers.unwrap_or(rest);
        let again = marked(rest, AGAIN);
        schedule.blocks_again = again.is_some();
        let rest = again.unwrap_or(rest);
        let held = marked(rest, HELD);
        let rest = held.unwrap_or(rest);
        let guarded = marked(rest, GUARDED).filter(|_| held.is_none());
        schedule.is_guarded = guarded.is_some();
        let rest = guarded.unwrap_or(rest);
        let mut at = text.len() - rest.len();
        // Whether the next word names the delayed thread.
        let mut holds = held.is_some();
        // The run at which the open loop begins, and its byte in the text.
        let mut open: Option<(usize, usize)> = None;
        for word in rest.split_inclusive(char::is_whitespace) {
            let here = at;
            at += word.len();
            let word = word.trim();
            if word.is_empty() {
                continue;
            }
            let number = |text: &str, what: &str| {
                digits(text).ok_or_else(|| {
                    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                    let most = if is_number {
                        format!(", which is at most {}", u32::MAX)
                    } else {
                        String::new()
                    };
                    format!("at byte {here}, in `{word}`: expected {what}{most}, found `{text}`")
                })
            };
            let begun = word.strip_prefix('(');
            let (step, rounds) = match begun.unwrap_or(word).split_once(')') {
                Some((step, rounds)) => (step, Some(rounds)),
                None => (begun.unwrap_or(word), None),
            };
            if begun.is_some() {
                if let Some((_, outer)) = open {
                    return Err(format!(
                        "at byte {here}: the `(` at byte {outer} is still open, and rounds have no rounds in them"
                    ));
                }
                open = Some((schedule.runs.len(), here));
            }
            let (word_left, count) = match step.split_once('*') {
                Some((left, steps)) => (left, number(steps, "a number of steps after `*`")?),
                None => (step, 1),
            };
            let (path, alternative) = match word_left.split_once(':') {
                Some((path, outcome)) => {
                    (path, number(outcome, "the number of an outcome after `:`")?)
                }
                None => (word_left, 0),
            };
            let mut parts = path.split('.');
            // Children are counted from 1.
            let named = parts.next() == Some("main") && parts.all(|p| digits(p) > Some(0));
            if !named {
                return Err(format!(
                    "at byte {here}: expected a thread such as `main` or `main.1.2`, found `{path}`"
                ));
            }
            if std::mem::take(&mut holds) {
                if step != word || word_left != path || count == 0 {
                    return Err(format!("at byte {here}: {WHO_IS_HELD}, found `{word}`"));
                }
                schedule.held = Some(Hold {
                    path: path.to_owned(),
                    events: count,
                });
                continue;
            }
            // The first step of a round does not belong to the run before it.
            match open {
                Some((start, _)) if start == schedule.runs.len() => schedule.runs.push(Run {
                    path: path.to_owned(),
                    alternative,
                    times: count.into(),
                }),
                _ => schedule.push(path.to_owned(), alternative, count.into()),
            }
            let Some(rounds) = rounds else {
                continue;
            };
            let Some((start, _)) = open.take() else {
                return Err(format!(
                    "at byte {here}, in `{word}`: there is no `(` to this `)`"
                ));
            };
            let times = match rounds.strip_prefix('*') {
                Some(times) => number(times, "a number of rounds after `)*`")?,
                None => number(rounds, "`*` and a number of rounds after `)`")?,
            };
            if times == 0 || !rounds.starts_with('*') {
                return Err(format!(
                    "at byte {here}, in `{word}`: expected `*` and a number of rounds, from 1, after `)`, found `{rounds}`"
                ));
            }
            let runs = start..schedule.runs.len();
            if schedule.runs[start..].iter().all(|run| run.times == 0) {
                return Err(format!(
                    "at byte {here}: no step is made in the rounds that end here"
                ));
            }
            schedule.loops.push(Loop {
                runs,
                times: times.into(),
            });
        }
        match open {
            _ if holds => Err(format!("at byte {at}: {WHO_IS_HELD}, found nothing")),
            Some((_, here)) => Err(format!("at byte {here}: there is no `)` to this `(`")),
            None => Ok(schedule),
        }
    }

    /// Writes runs that are in no loop. Repeated runs are written once.
    fn write_runs(f: &mut fmt::Formatter<'_>, runs: &[Run]) -> fmt::Result {
        for found in rounds(runs.len(), |a, b| runs[a] == runs[b]) {
            let round = &runs[found.start..][..found.length];
            match found.times {
                1 => Schedule::write_round(f, round, ["", ""])?,
                times => {
                    Schedule::write_round(f, round, ["(", ")"])?;
                    write!(f, "*{times}")?;
                }
            }
        }
        Ok(())
    }

    /// Writes each of these runs, between `marks`.
    fn write_round(
        f: &mut fmt::Formatter<'_>,
        runs: &[Run],
        [begin, end]: [&str; 2],
    ) -> fmt::Result {
        let mut before = begin;
        for run in runs {
            write!(f, " {}{run}", std::mem::take(&mut before))?;
        }
        f.write_str(end)
    }
}

/// Whether a thread chooses by this operation whether its wait ends spuriously.
fn is_wakeup(kind: &OpKind) -> bool {
    let OpKind::Choose { what, .. } = kind else {
        return false;
    };
    matches!(what, Choice::MayWakeUp | Choice::HasWokenUp)
}

/// Parses a mark with a number from 1, `mark` or `mark*3`. Returns the number and the text behind.
fn counted_mark<'a>(text: &'a str, mark: &str) -> Option<(u32, &'a str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let times = match word.strip_prefix(mark)? {
        "" => 1,
        times => digits(times.strip_prefix('*')?).filter(|&times| times > 0)?,
    };
    Some((times, rest))
}

/// Parses a number that consists of digits only.
fn digits(text: &str) -> Option<u32> {
    let digits = (text.bytes().all(|b| b.is_ascii_digit())).then_some(text)?;
    digits.parse().ok()
}

/// A schedule is collected from its steps.
impl FromIterator<(String, u32)> for Schedule {
    fn from_iter<I: IntoIterator<Item = (String, u32)>>(steps: I) -> Schedule {
        let mut schedule = Schedule::default();
        for (path, alternative) in steps {
            schedule.step_of(path, alternative);
        }
        schedule
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("v2")?;
        if self.is_weak {
            write!(f, " {C11}")?;
        }
        if self.has_ends {
            write!(f, " {ENDS}")?;
        }
        if self.waits_soon {
            write!(f, " {SOON}")?;
        }
        if self.is_fair {
            write!(f, " {FAIR}")?;
        }
        match self.wakes {
            0 => {}
            1 => write!(f, " {WAKES}")?,
            times => write!(f, " {WAKES}*{times}")?,
        }
        if self.fails {
            write!(f, " {FAILS}")?;
        }
        if self.writers_first {
            write!(f, " {WRITERS}")?;
        }
        if self.blocks_again {
            write!(f, " {AGAIN}")?;
        }
        if let Some(Hold { path, events }) = &self.held {
            write!(f, " {HELD} {path}*{events}")?;
        } else if self.is_guarded {
            write!(f, " {GUARDED}")?;
        }
        let mut written = 0;
        for Loop { runs, times } in &self.loops {
            Schedule::write_runs(f, &self.runs[written..runs.start])?;
            Schedule::write_round(f, &self.runs[runs.clone()], ["(", ")"])?;
            write!(f, "*{times}")?;
            written = runs.end;
        }
        Schedule::write_runs(f, &self.runs[written..])
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if self.alternative != 0 {
            write!(f, ":{}", self.alternative)?;
        }
        if self.times != 1 {
            write!(f, "*{}", self.times)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
