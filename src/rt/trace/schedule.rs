//! How is an execution written down, and read back?
//!
//! `v2 main*4 main.1 main.2:1` says: four steps of the main thread, one of its first child, then one
//! of its second child with outcome 1, where that step has several. Names and counts survive small
//! edits of the program better than positions would.
//!
//! The code of a thread begins with its first step. Where it has begun before, up to that step, there is `main.1*0`. After
//! `v2 ends` the end of a thread is a step, too. After `v2 soon` loops without a hint wait soon, and the waits are steps.
//!
//! What threads do in turn, again and again, is told once: `(main main.1*2)*9`.

use std::fmt;
use std::ops::Range;

use super::Trace;
use super::id::{Names, ThreadId};
use super::operation::OpKind;
use super::rounds::rounds;

/// What says that ends of threads are among the steps.
const ENDS: &str = "ends";

/// What says that loops without a hint wait soon.
const SOON: &str = "soon";

/// The choices that fix an execution: for each step the thread's path of births and its outcome.
///
/// Equal steps in a row are one run, and rounds that a text tells once are told once, in memory as in the text: a text
/// of a few bytes may ask for billions of steps, and whether the program has as many is known only when it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    runs: Vec<Run>,
    /// Those runs that are made again and again, in order.
    loops: Vec<Loop>,
    /// Whether ends of threads are among the steps.
    has_ends: bool,
    /// Whether loops without a hint wait soon.
    waits_soon: bool,
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
        }
        schedule
    }

    /// [`Schedule::of`] what leads to something that `thread` did behind these events, maybe before its first step.
    pub(crate) fn leading_to(
        thread: Option<ThreadId>,
        trace: &Trace,
        length: usize,
        names: &Names,
    ) -> Schedule {
        let mut schedule = Schedule::of(trace, length, names);
        let begun: Vec<ThreadId> = trace.begun_behind(length).collect();
        let last = begun.iter().position(|&it| thread == Some(it));
        for &thread in &begun[..last.map_or(0, |at| at + 1)] {
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
        let mut at = text.len() - rest.len();
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
mod tests {
    use super::super::mix::{STEP, mix};
    use super::*;

    #[test]
    fn a_schedule_reads_back_as_it_was_written() {
        let text = "v2 main*4 main.1*0 main.1 main.2:1 main.2 main main.3*0 main.3*0";
        let schedule = Schedule::parse(text).expect("well formed");
        assert_eq!(schedule.length(), 8);
        assert!(!schedule.has_ends());
        assert_eq!(schedule.to_string(), text);
        for marks in ["ends", "soon", "ends soon"] {
            let text = format!("v2 {marks} main*4 main.1");
            let schedule = Schedule::parse(&text).expect("well formed");
            assert_eq!(schedule.length(), 5);
            assert_eq!(schedule.has_ends(), marks.contains("ends"));
            assert_eq!(schedule.waits_soon(), marks.contains("soon"));
            assert_eq!(schedule.to_string(), text);
        }
    }

    #[test]
    fn a_schedule_is_followed_step_by_step() {
        let schedule = Schedule::parse("v2 main*2 main.1:1 main.1:1").expect("well formed");
        let mut at = Cursor::default();
        let mut steps = Vec::new();
        while let Some((path, alternative)) = schedule.step(at) {
            steps.push((path.to_owned(), alternative));
            at = schedule.behind(at);
            assert_eq!(at.position, steps.len() as u64);
        }
        let expected = [("main", 0), ("main", 0), ("main.1", 1), ("main.1", 1)];
        assert_eq!(steps, expected.map(|(path, it)| (path.to_owned(), it)));
        assert_eq!(schedule.length(), 4);
        let again = steps.into_iter().collect::<Schedule>();
        assert_eq!(again.to_string(), schedule.to_string());
    }

    /// The steps of a schedule, and in between who begins.
    fn followed(schedule: &Schedule) -> Vec<(String, u32, bool)> {
        let mut at = Cursor::default();
        let mut steps = Vec::new();
        while let Some((path, alternative)) = schedule.step(at) {
            let begins = schedule.beginning(at).is_some();
            steps.push((path.to_owned(), alternative, begins));
            at = schedule.behind(at);
        }
        assert_eq!(at.position, schedule.length());
        steps
    }

    #[test]
    fn what_threads_do_in_turn_again_and_again_is_told_once() {
        let mut schedule = Schedule::default();
        let mut add = |path: &str, times| (0..times).for_each(|_| schedule.step_of(path.into(), 0));
        add("main", 3);
        for round in 0..1000 {
            add("main.1", 3);
            add("main", 2);
            if round == 500 {
                add("main.2", 1);
            }
        }
        add("main.1", 4);
        let text = schedule.to_string();
        let rounds = "v2 main*3 (main.1*3 main*2)*501 main.2 (main.1*3 main*2)*499 main.1*4";
        assert_eq!(text, rounds);
        let read = Schedule::parse(&text).expect("well formed");
        assert_eq!(followed(&read), followed(&schedule));
        assert_eq!(read.to_string(), text);
        // The first step of a round, and the first one behind the last round, are none of the run before.
        let text = "v2 main (main main.1)*2 main.1 (main*2)*3 main main.1*0 (main.1 main.2*0)*2";
        let read = Schedule::parse(text).expect("well formed");
        let steps = followed(&read)
            .into_iter()
            .map(|(path, _, begins)| match begins {
                false => path,
                true => format!("{path}*0"),
            });
        let expected = "main main main.1 main main.1 main.1 main main main main main main main \
                        main.1*0 main.1 main.2*0 main.1 main.2*0";
        assert_eq!(steps.collect::<Vec<String>>().join(" "), expected);
        assert_eq!(read.to_string(), text);
    }

    #[test]
    fn a_random_schedule_reads_back_step_by_step() {
        for seed in 0..2000 {
            let mut random: u64 = seed;
            let mut draw = |n: usize| {
                random = random.wrapping_add(STEP);
                mix(random) as usize % n
            };
            let mut schedule = Schedule::default();
            for _ in 0..draw(4) + 1 {
                let round: Vec<usize> = (0..draw(4) + 1).map(|_| draw(4)).collect();
                for _ in 0..draw(5) {
                    for &step in &round {
                        let path = ["main", "main.1", "main.2"][step % 3].to_owned();
                        match (step, draw(20)) {
                            (3, 0) => schedule.begin(path),
                            _ => schedule.step_of(path, (step == 1) as u32),
                        }
                    }
                }
            }
            let text = schedule.to_string();
            let read = Schedule::parse(&text).expect(&text);
            assert_eq!(followed(&read), followed(&schedule), "{text}");
            assert_eq!(read.to_string(), text);
        }
    }

    #[test]
    fn a_schedule_of_billions_of_steps_takes_no_more_memory_than_its_text() {
        let text = "v2 main*4294967295 main.1 main*4294967295";
        let schedule = Schedule::parse(text).expect("well formed");
        assert_eq!(schedule.runs.len(), 3);
        assert_eq!(schedule.length(), 2 * u64::from(u32::MAX) + 1);
        assert_eq!(schedule.to_string(), text);
        let text = "v2 (main*4294967295 main.1)*4294967295 main";
        let schedule = Schedule::parse(text).expect("well formed");
        assert_eq!(schedule.runs.len(), 3);
        assert_eq!(schedule.length(), (1 << 32) * u64::from(u32::MAX) + 1);
        assert_eq!(schedule.to_string(), text);
    }

    #[test]
    fn a_malformed_schedule_is_refused_with_the_position_and_what_was_expected() {
        for (text, expected) in [
            (
                "main*4",
                "a schedule begins with its version, `v2`; at byte 0",
            ),
            (
                "v2 main*x",
                "at byte 3, in `main*x`: expected a number of steps after `*`, found `x`",
            ),
            ("v2 main*+4", "expected a number of steps after `*`"),
            (
                "v2 main*18446744073709551615",
                "expected a number of steps after `*`, which is at most 4294967295, found",
            ),
            (
                "v2main*4",
                "a schedule begins with its version, `v2`; at byte 0 there is `v2main*4`",
            ),
            (
                "v2 main.0",
                "at byte 3: expected a thread such as `main` or `main.1.2`, found `main.0`",
            ),
            (
                "v2 main rain",
                "at byte 8: expected a thread such as `main` or `main.1.2`, found `rain`",
            ),
            (
                "v2 main:",
                "at byte 3, in `main:`: expected the number of an outcome",
            ),
            (
                "v2 (main main.1)",
                "at byte 9, in `main.1)`: expected `*` and a number of rounds after `)`, found ``",
            ),
            (
                "v2 (main main.1)*0",
                "at byte 9, in `main.1)*0`: expected `*` and a number of rounds, from 1, after `)`",
            ),
            (
                "v2 (main main.1)3",
                "at byte 9, in `main.1)3`: expected `*` and a number of rounds, from 1, after `)`",
            ),
            (
                "v2 (main main.1)*x",
                "at byte 9, in `main.1)*x`: expected a number of rounds after `)*`, found `x`",
            ),
            ("v2 (main main.1", "at byte 3: there is no `)` to this `(`"),
            (
                "v2 main main.1)*2",
                "at byte 8, in `main.1)*2`: there is no `(` to this `)`",
            ),
            (
                "v2 (main (main.1 main)*2)*2",
                "at byte 9: the `(` at byte 3 is still open, and rounds have no rounds in them",
            ),
            (
                "v2 main (main.1*0)*9",
                "at byte 8: no step is made in the rounds that end here",
            ),
            (
                "v2 ()*3",
                "at byte 3: expected a thread such as `main` or `main.1.2`, found ``",
            ),
        ] {
            let error = Schedule::parse(text).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
    }
}
