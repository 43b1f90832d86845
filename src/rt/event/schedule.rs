//! How is an execution written down, and read back?
//!
//! `v2 main*4 main.1 main.2:1` says: four steps of the main thread, one of its first child, then
//! one of its second child with outcome 1, where that step has several. Names and counts survive
//! small edits of the program better than positions would.
//!
//! The code of a thread begins with its first step. Where it has begun before, up to that step,
//! there is `main.1*0`. After `v2 ends` the end of a thread is a step, too. After `v2 soon` loops
//! without a hint wait soon, and the waits are steps.
//!
//! What threads do in turn, again and again, is told once: `(main main.1*2)*9`.
//!
//! What a thread does between two of its steps it does together with the first of them. After
//! `v2 held main.1*3` the thread `main.1` is held up behind its third step, and that it goes on
//! from there is a step of its own. Uses of blocks after their free are seen then, and so they are
//! after `v2 guarded`.

use std::fmt;
use std::ops::Range;

use crate::rt::event::Trace;
use crate::rt::event::id::{Names, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::rounds::rounds;

/// What says that ends of threads are among the steps.
const ENDS: &str = "ends";

/// What says that loops without a hint wait soon.
const SOON: &str = "soon";

/// What says that loops which change something in each round let the other threads go first.
const FAIR: &str = "fair";

/// What says that a thread is held up.
const HELD: &str = "held";

/// What says that uses of blocks after their free are seen, though nobody is held up.
const GUARDED: &str = "guarded";

/// What is behind [`HELD`].
const WHO_IS_HELD: &str = "expected a thread and how many steps it makes before it is held up, such as `main.1*3`, after `held`";

/// A thread that is held up, and goes on later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hold {
    /// Its path of births.
    pub(crate) path: String,
    /// Behind how many of its events.
    pub(crate) events: u32,
}

/// Blocks whose uses after their free are seen. To see them takes system calls for each block.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Guarded {
    #[default]
    All,
    /// Those of so many bytes that a thread made after so many events of its own.
    Like { size: usize, events: u32 },
}

impl Guarded {
    /// Whether a block of so many bytes is one of them, which is made after so many events.
    pub(crate) fn has(self, of: usize, after: u32) -> bool {
        match self {
            Guarded::All => true,
            Guarded::Like { size, events } => (of, after) == (size, events),
        }
    }
}

/// The choices that fix an execution: for each step the thread's path of births and its outcome.
///
/// Equal steps in a row are one run, and rounds that a text tells once are told once, in memory as
/// in the text: a text of a few bytes may ask for billions of steps, and whether the program has as
/// many is known only when it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    runs: Vec<Run>,
    /// Those runs that are made again and again, in order.
    loops: Vec<Loop>,
    /// Whether ends of threads are among the steps.
    has_ends: bool,
    /// Whether loops without a hint wait soon.
    waits_soon: bool,
    /// Whether loops that change something in each round let the other threads go first.
    is_fair: bool,
    /// Who is held up.
    held: Option<Hold>,
    /// Whether uses of blocks after their free are seen, though nobody is held up.
    is_guarded: bool,
    /// Whether fences are taken to be among the steps.
    counts_fences: bool,
}

/// Equal steps in a row; none where a thread only begins.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Run {
    path: String,
    alternative: u32,
    times: u64,
}

/// Runs that follow each other are made so many times, one after the other.
#[derive(Clone, Debug)]
struct Loop {
    runs: Range<usize>,
    times: u64,
}

/// How far a schedule has been followed.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Cursor {
    run: usize,
    /// Steps of that run that have been made.
    made: u64,
    /// The first loop that does not end before that run, and how many of its rounds have been made.
    loop_: usize,
    rounds: u64,
    /// Steps of the whole schedule that have been made.
    pub(crate) position: u64,
}

impl Schedule {
    /// The schedule of the first so many events of an execution.
    pub(crate) fn of(trace: &Trace, length: usize, names: &Names) -> Schedule {
        let mut schedule = Schedule::default();
        let mut early = trace.begun_early().peekable();
        let mut before = None;
        for (position, event) in trace.events()[..length].iter().enumerate() {
            while let Some((_, thread)) = early.next_if(|&(at, _)| at == position) {
                schedule.begin(names.path(thread));
                before = None;
            }
            // Mostly a thread goes on, and its path need not be put together again.
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
            if let OpKind::Resume = kind {
                schedule.held = Some(Hold {
                    path: names.path(step.thread),
                    events: event.index,
                });
            }
        }
        schedule
    }

    /// [`Schedule::of`] what leads to something that `thread` did behind these events, maybe before
    /// its first step.
    pub(crate) fn leading_to(
        thread: Option<ThreadId>,
        trace: &Trace,
        length: usize,
        names: &Names,
    ) -> Schedule {
        let mut schedule = Schedule::of(trace, length, names);
        let begun: Vec<ThreadId> = trace.begun_behind(length).collect();
        // Whoever was about to use what another one has freed may have begun before that one.
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

    /// Whether ends of threads are among the steps.
    pub(crate) fn has_ends(&self) -> bool {
        self.has_ends
    }

    /// Whether loops without a hint wait soon.
    pub(crate) fn waits_soon(&self) -> bool {
        self.waits_soon
    }

    /// Whether fences are taken to be among the steps. They were, in earlier versions of `dpor`.
    pub(crate) fn counts_fences(&self) -> bool {
        self.counts_fences
    }

    /// The same steps, taken to count fences or not.
    pub(crate) fn counting_fences(&self, counts: bool) -> Schedule {
        Schedule {
            counts_fences: counts,
            ..self.clone()
        }
    }

    /// Whether loops that change something in each round let the other threads go first.
    pub(crate) fn is_fair(&self) -> bool {
        self.is_fair
    }

    /// Says so of a schedule in which none of them has gone on since.
    pub(crate) fn with_fair(mut self, is_fair: bool) -> Schedule {
        self.is_fair |= is_fair;
        self
    }

    /// Who is held up.
    pub(crate) fn held(&self) -> Option<&Hold> {
        self.held.as_ref()
    }

    /// Whether uses of blocks after their free are seen.
    pub(crate) fn guards(&self) -> bool {
        self.is_guarded || self.held.is_some()
    }

    /// The schedule of an execution in which this thread was to be held up, if one was, and these
    /// blocks were guarded. It is part of the schedule even if that thread has not gone on:
    /// somebody else has used a block that was freed then.
    pub(crate) fn with_held(mut self, hold: Option<&Hold>, guarded: Option<Guarded>) -> Schedule {
        self.held = self.held.or_else(|| hold.cloned());
        self.is_guarded |= guarded.is_some() && self.held.is_none();
        self
    }

    /// Has this thread held up. That it goes on is still to be added.
    pub(crate) fn hold(&mut self, hold: Hold) {
        self.held = Some(hold);
    }

    /// Adds that the code of a thread begins.
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

    /// The step at the cursor, where no thread begins; `None` at the end.
    pub(crate) fn step(&self, at: Cursor) -> Option<(&str, u32)> {
        let run = self.runs.get(at.run)?;
        Some((&run.path, run.alternative))
    }

    /// How many steps like the one at the cursor follow it.
    pub(crate) fn further(&self, at: Cursor) -> usize {
        let times = self.runs.get(at.run).map_or(0, |run| run.times);
        usize::try_from(times.saturating_sub(at.made + 1)).unwrap_or(usize::MAX)
    }

    /// The cursor behind what is at this one, which there must be.
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

    /// How many steps there are.
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

    /// Adds a step `times` times, or that the thread begins.
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

    /// Reads a schedule; the error says at which byte of the text what was expected.
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
        let ends = marked(rest, ENDS);
        let rest = ends.unwrap_or(rest);
        let soon = marked(rest, SOON);
        (schedule.has_ends, schedule.waits_soon) = (ends.is_some(), soon.is_some());
        let rest = soon.unwrap_or(rest);
        let fair = marked(rest, FAIR);
        schedule.is_fair = fair.is_some();
        let rest = fair.unwrap_or(rest);
        let held = marked(rest, HELD);
        let rest = held.unwrap_or(rest);
        let guarded = marked(rest, GUARDED).filter(|_| held.is_none());
        schedule.is_guarded = guarded.is_some();
        let rest = guarded.unwrap_or(rest);
        let mut at = text.len() - rest.len();
        // Whether the next word says who is held up.
        let mut holds = held.is_some();
        // Where the loop begins that is open, and at which byte.
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
                    let most = match is_number {
                        true => format!(", which is at most {}", u32::MAX),
                        false => String::new(),
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
            // The first step of a round is none of the run before.
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

    /// Writes runs that are in no loop. What they repeat is told once.
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

/// A number in digits, and nothing else.
fn digits(text: &str) -> Option<u32> {
    let digits = (text.bytes().all(|b| b.is_ascii_digit())).then_some(text)?;
    digits.parse().ok()
}

/// From its steps.
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
        if self.has_ends {
            write!(f, " {ENDS}")?;
        }
        if self.waits_soon {
            write!(f, " {SOON}")?;
        }
        if self.is_fair {
            write!(f, " {FAIR}")?;
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
