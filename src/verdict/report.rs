//! The report of an exploration without a failure: what it explored, and whether that was
//! everything.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::config::Shard;
use crate::diagnose::bounded_loop::BoundedLoop;
use crate::rt::engine::Coverage;
use crate::rt::engine::price::Price;
use crate::rt::engine::stats::{Stats, Trees};
use crate::rt::event::operation::OpKind;
use crate::rt::event::schedule::{Hold, Schedule};
use crate::rt::event::{Event, Site, foreign, verdict};
use crate::rt::exec::pooled_runtime::PooledDriver;
use crate::rt::plural::counted;
use crate::rt::report::source::Sources;
use crate::verdict::assumption::{Assumption, PlacesMet};
use crate::verdict::estimated::{at_least, estimated};
use crate::verdict::further::Further;
use crate::verdict::outcomes::Outcomes;
use crate::verdict::vacuous::Vacuous;
use crate::verdict::weak::WeakMemory;

/// Result of an exploration that found no failure.
///
/// `Display` prints one line: the verdict, the number of executions, the number of pruned
/// executions by reason, the number of events, the number of events of the longest execution, and
/// the duration. If most runs of the closure were for other purposes, the line also has the number
/// of those runs. If there are [assumptions](Report::assumptions), the line ends with them.
///
/// ```
/// let report = dpor::Builder::new().explore(|| {
///     dpor::choose(3);
/// });
/// let line = report.expect("it passes").to_string();
/// assert!(line.starts_with("complete: 3 executions, 3 events, the longest 1, in 0."));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Number of executions that ran to their end; one per trace under
    /// [`Algorithm::Optimal`](crate::Algorithm::Optimal).
    pub executions: u64,
    /// Number of executions that were begun and pruned, for any reason.
    pub pruned: u64,
    /// Number of pruned executions by reason.
    pub pruned_by: Pruned,
    /// Outcomes that the test has recorded with [`outcome`](crate::outcome), each with the number
    /// of executions that had it.
    ///
    /// Executions that were pruned do not count. If the exploration is complete, this map has all
    /// outcomes of the test.
    pub outcomes: BTreeMap<String, u64>,
    /// Number of events in all executions.
    pub events: u64,
    /// Number of events in the longest execution.
    pub longest: usize,
    /// The wakeup trees of the exploration at their largest.
    ///
    /// `None` unless the algorithm is [`Algorithm::Optimal`](crate::Algorithm::Optimal), without a
    /// bound, and explores under sequential consistency: the other searches have no such trees.
    pub trees: Option<Trees>,
    /// Whether every trace was explored; the same as [`Verdict::Complete`].
    pub complete: bool,
    /// The explored part of the traces, and the reason why others were left out.
    pub verdict: Verdict,
    /// Bound within which all traces were explored, whether or not the test set a bound.
    ///
    /// [`Algorithm::Bounded`](crate::Algorithm::Bounded) has one, because it explores traces in the
    /// order of the preemptions, context switches or delays that they need. `None` if some trace
    /// that needs none was not explored, if no bound left out a trace, if the test switched
    /// exploration off, and with any other algorithm.
    pub within: Option<Bound>,
    /// Value of [`Builder::max_rounds`](crate::Builder::max_rounds) if it left executions out,
    /// regardless of the verdict.
    pub within_rounds: Option<usize>,
    /// Whether the test left a part out of the exploration, for example with
    /// [`stop_exploring`](crate::stop_exploring), regardless of the verdict.
    pub excludes: bool,
    /// Behaviours that std permits and that were not explored, each with the places at which the
    /// program could meet it. Empty if nothing of that kind was taken for granted.
    ///
    /// [`complete`](Report::complete) is a statement under these assumptions. The accesses through
    /// the pointer of [`UnsafeCell::get`](crate::cell::UnsafeCell::get) are never watched and do
    /// not count here, because that function may be called at compile time, where no model runs.
    pub assumptions: Vec<Assumption>,
    /// The passes behind the first one, each for a kind of behaviour that std permits.
    ///
    /// Behaviour that such a pass has explored in full is not among the
    /// [assumptions](Report::assumptions). [`Builder::thorough`](crate::Builder::thorough) says
    /// when there are such passes. Their executions count nowhere else in a report.
    pub further: Vec<Further>,
    /// The reason why the test has tested nothing, if it has tested nothing.
    ///
    /// Standard error says so, too, for the first such model of a process past the capture of the
    /// test harness.
    pub vacuous: Option<Vacuous>,
    /// Estimate of the total number of executions.
    ///
    /// [`Algorithm::Optimal`](crate::Algorithm::Optimal) knows the executions that it has planned,
    /// but not the executions that these will add to the plan. An estimate that has
    /// [settled](Report::estimate_has_settled) is often too low by a factor of two or three, any
    /// other estimate by any factor. It is at most 1e200. `None` if executions are left to explore
    /// and the estimate is hardly above the number of executions so far.
    pub estimate: Option<f64>,
    /// Whether the estimate has stayed about the same while the number of executions grew by a
    /// factor of eight.
    ///
    /// It can be `true` from 2048 executions on. It is also `true` if nothing is left to explore,
    /// and `false` if there is no estimate.
    pub estimate_has_settled: bool,
    /// Places that cost most executions: at most three, in descending order of cost.
    ///
    /// An execution counts for the place where it diverges from the one before it.
    pub hotspots: Vec<Hotspot>,
    /// What the exploration says about weak memory.
    pub weak: WeakMemory,
    /// Number of further runs of the closure, which are not among the executions above.
    ///
    /// Such a run checks whether a delayed thread uses [freed
    /// memory](crate::Builder#structfield.simplify), whether a free that seems to race is ordered
    /// after all, whether a loop gives up by itself, or where a task clones a waker. With a
    /// [bound](crate::Builder::preemption_bound), the executions of the search that has ended
    /// second are further runs, too, whether that is the search within the bound or the one without
    /// it. Further runs
    /// also come from a restart: if the explorer learns a fact about the program that changes the
    /// exploration (that a loop has no hint, for example), it runs all earlier executions once
    /// more. In all the closure ran `executions + pruned + reruns` times, not counting the runs
    /// before a checkpoint and those of the [further](Report::further) passes.
    pub reruns: u64,
    /// Duration of the exploration. If the exploration was resumed from a checkpoint, the time
    /// since then.
    pub elapsed: Duration,
    /// The number of executions that there are at least, judged by this estimate and earlier ones.
    least: Option<f64>,
    /// Number of executions that were begun before the exploration was resumed.
    before: u64,
    /// A hint, and the most times in one execution that a thread reached it after it had changed
    /// shared state; only if that is often.
    rounds: Option<(Site, usize)>,
    /// The hint at which a loop lets the other threads run first, and the number of rounds after
    /// which it does so, if there is such a loop.
    lets_others: Option<(Site, usize)>,
    /// A loop that was taken to wait for a change, and gives up by itself.
    gives_up: Option<BoundedLoop>,
    /// The hint of a loop that waits, and that could be explored as one step.
    could_await: Option<String>,
    /// The bound that was set, if every trace was explored all the same.
    unneeded: Option<Bound>,
}

/// An exploration without a failure.
pub(crate) struct Passed {
    pub(crate) driver: PooledDriver,
    /// The explored part of the traces.
    pub(crate) verdict: Verdict,
    pub(crate) elapsed: Duration,
    /// Number of executions that were begun before the exploration was resumed.
    pub(crate) before: u64,
    /// Number of runs of the closure since then, for any purpose.
    pub(crate) ran: u64,
    /// A loop that was taken to wait for a change, and gives up by itself.
    pub(crate) gives_up: Option<BoundedLoop>,
    /// The hint of a loop that waits, and that could be explored as one step.
    pub(crate) could_await: Option<String>,
    /// The bound that was set, if every trace was explored all the same.
    pub(crate) unneeded: Option<Bound>,
    pub(crate) weak: WeakMemory,
    /// The outcomes that the test has recorded, if it has recorded any.
    pub(crate) outcomes: Option<Box<Outcomes>>,
    /// The places at which std permits a behaviour that may not have been explored.
    pub(crate) met: PlacesMet,
    /// The reason why nothing was tested, if so.
    pub(crate) vacuous: Option<Vacuous>,
    /// The passes behind this one.
    pub(crate) further: Vec<Further>,
    /// The part of the exploration that this was, if the model has parts.
    pub(crate) shard: Option<Shard>,
}

impl Passed {
    /// Returns the result of following a schedule, as a line.
    pub(crate) fn followed(&self, schedule: &Schedule, site: &dyn fmt::Display) -> String {
        let stats = self.driver.stats;
        let steps = schedule.length();
        let mut text = format!(
            "dpor: the model at {site} has followed the schedule to its end, {}",
            counted(steps, "step")
        );
        // A schedule that does not fit the program is a failure, so this one fits.
        match stats.events.saturating_sub(steps) {
            0 => {}
            more => text.push_str(&format!(", and gone on for {more} more")),
        }
        text.push_str(&match stats.complete {
            0 => format!("; it was given up {}\n", Pruned::of(&stats).why()),
            _ => "; nothing failed\n".to_owned(),
        });
        let goes_on = |event: &Event| event.operation.kind == OpKind::Resume;
        if let Some(Hold { path, events }) = schedule.held()
            && !self.driver.trace.events().iter().any(goes_on)
        {
            text.push_str(&format!(
                "dpor: {path} was not held up behind its event {events}, which it has not made or behind which nobody is held up\n"
            ));
        }
        text
    }

    /// Returns the full report.
    pub(crate) fn report(&self) -> Report {
        let Passed {
            driver, elapsed, ..
        } = self;
        let stats = driver.stats;
        let coverage = driver.coverage();
        let within = match coverage {
            Coverage::Within(price, within) if !driver.excludes() => {
                within.map(|most| Bound::of(price, most))
            }
            _ => None,
        };
        let verdict = self.verdict;
        let total = driver.hotspots.total();
        // An estimate follows from a plan, and neither a sample nor a single schedule has one.
        let estimate = match coverage {
            Coverage::Sampled | Coverage::Replayed => None,
            _ => driver.estimate(),
        };
        let hotspot = |(site, executions): (Site, u64)| Hotspot {
            executions,
            percent: (100 * executions / total) as u32,
            site,
        };
        Report {
            executions: stats.complete,
            pruned: stats.given_up(),
            pruned_by: Pruned::of(&stats),
            outcomes: (self.outcomes.as_ref()).map_or_else(BTreeMap::new, |all| all.said().clone()),
            events: stats.events,
            longest: stats.longest,
            trees: driver.trees(),
            complete: verdict == Verdict::Complete,
            verdict,
            within,
            within_rounds: driver.machine.rounds_left_out(),
            excludes: driver.excludes(),
            assumptions: self.met.assumptions(),
            further: self.further.clone(),
            vacuous: self.vacuous,
            estimate,
            estimate_has_settled: estimate.is_some_and(|total| driver.has_settled(total)),
            least: estimate.map(|total| driver.at_least(total)),
            hotspots: driver.hotspots.most::<3>().map(hotspot).collect(),
            weak: self.weak.clone(),
            reruns: (self.ran + self.before).saturating_sub(stats.begun()),
            elapsed: *elapsed,
            before: self.before,
            rounds: driver.machine.many_rounds(),
            lets_others: driver.machine.lets_others(),
            gives_up: self.gives_up.clone(),
            could_await: self.could_await.clone(),
            unneeded: self.unneeded,
        }
    }
}

impl Report {
    /// Whether the executions have returned every value that there is. What an execution returns
    /// depends on its final state alone.
    pub(crate) fn has_every_outcome(&self) -> bool {
        self.complete || self.verdict == Verdict::FinalStates
    }

    /// Returns what the user must know about an exploration that left something out, as one or more
    /// lines.
    pub(crate) fn cut_short(&self, site: &dyn fmt::Display) -> String {
        if self.executions + self.pruned == 0 {
            return format!(
                "dpor: no execution of the model at {site} was run: {}",
                self.verdict
            );
        }
        let mut text = format!("dpor: the model at {site} was not explored in full: {self}");
        if let Some(nothing) = self.tested_nothing() {
            text.push_str(&format!("; {nothing}"));
        }
        if let (Verdict::Stopped(_), Some(estimate), Some(least)) =
            (self.verdict, self.estimate, self.least)
        {
            let begun = self.executions + self.pruned;
            let about = match self.estimate_has_settled {
                true if estimate < 1.5 => Some(format!("about {}", counted(1, "execution"))),
                true => Some(format!("{} executions", estimated(estimate))),
                false => at_least(least, begun).map(|least| format!("{least} or more executions")),
            };
            if let Some(about) = about {
                text.push_str(&format!("; {about} in all"));
            }
        }
        if let (Verdict::Stopped(_), false) = (self.verdict, self.hotspots.is_empty()) {
            let place = |hotspot: &Hotspot| {
                let object = hotspot.object();
                let on = object.map_or(String::new(), |object| format!("{object} at "));
                format!("{on}{} ({} %)", hotspot.place(), hotspot.percent)
            };
            let places = self.hotspots.iter().map(place);
            let places = places.collect::<Vec<_>>().join(", ");
            text.push_str(&format!(
                "\ndpor: most executions are due to races: {places}; fewer of them, or an \
                 exploration without them (`dpor::stop_exploring`), would shrink the test"
            ));
        }
        if let (Verdict::Stopped(Limit::Memory(_) | Limit::System(_)), Some(trees)) =
            (self.verdict, self.trees)
        {
            text.push_str(&format!(
                "\ndpor: the wakeup trees had {} at once, {} of them in one tree, with steps of {} bytes; `parsimonious` \
                 (DPOR_ALGORITHM) explores the same traces without trees",
                counted(trees.branches as u64, "branch"),
                trees.widest,
                trees.bytes
            ));
        }
        if let (Verdict::Stopped(_), Some(hint)) = (self.verdict, &self.could_await) {
            text.push_str(&format!(
                "\ndpor: threads wait at {hint}: with `Builder::await_loops` (DPOR_AWAIT_LOOPS=1) there are fewer \
                 executions, if what they do after the loop does not depend on how often they have looked, nor on what they saw in vain"
            ));
        }
        if let (Verdict::Stopped(_), Some((hint, times))) = (self.verdict, self.rounds) {
            text.push_str(&format!(
                "\ndpor: in one execution a thread came {times} times to the hint at {hint} with something changed, as in a \
                 loop that puts back what it takes: where two threads do so there are executions without end, which \
                 `Builder::max_rounds` (DPOR_MAX_ROUNDS=3, say) leaves out, and so does a bound (DPOR_MAX_PREEMPTIONS=2)"
            ));
        }
        if let Some((hint, rounds)) = self.lets_others {
            text.push_str(&format!(
                "\ndpor: the loop with the hint at {hint} changes something in each round, and kept other threads from going on \
                 until there were too many events; so behind {rounds} rounds it goes on only where nothing else can run, and what \
                 it does earlier was not explored: `Builder::max_rounds` (DPOR_MAX_ROUNDS=10, say) explores so many rounds in any \
                 order, and leaves out executions with more"
            ));
        }
        if let Some(BoundedLoop {
            site,
            timed,
            rounds,
        }) = &self.gives_up
        {
            text.push_str(&match timed {
                true => format!(
                    "\ndpor: the timed wait at {site} is given up after it has timed out {rounds} times; it was taken to last until \
                     something changes after fewer, so what is done then was explored only where nothing else could run: \
                     `Builder::timeout_bound` = {rounds} (DPOR_TIMEOUT_BOUND={rounds}) explores it in full, with more executions for \
                     each time"
                ),
                false => format!(
                    "\ndpor: the loop with the hint at {site} gives up after {rounds} rounds in which nothing changes; it was taken \
                     to wait after a few, so what it does then was explored only where nothing else could run: \
                     `Builder::spin_bound` = {bound} (DPOR_SPIN_BOUND={bound}) explores it in full, with more executions for each \
                     round, so let the loop of a test have two or three",
                    bound = rounds - 1
                ),
            });
        }
        text
    }
}

impl Report {
    /// Returns that nothing was tested, and how to change that, if no execution ran to its end. A
    /// replay that ends where the execution is pruned is no test, so it gives `None`.
    pub(crate) fn tested_nothing(&self) -> Option<String> {
        // Another part may have all executions of a model.
        if self.executions > 0
            || matches!(
                self.verdict,
                Verdict::Replayed | Verdict::Shard(_) | Verdict::Task
            )
        {
            return None;
        }
        let mut raise = Vec::new();
        match self.verdict {
            Verdict::Stopped(limit) => raise.push(limit.to_string()),
            Verdict::Bounded(bound) => raise.push(bound.to_string()),
            _ => {}
        }
        if let Some(most) = self.within_rounds.filter(|_| self.pruned_by.rounds > 0) {
            raise.push(format!("max_rounds = {most} (DPOR_MAX_ROUNDS)"));
        }
        let nothing = "no execution came to its end, so nothing was tested";
        Some(if raise.is_empty() {
            format!("{nothing}: all were given up {}", self.pruned_by.why())
        } else {
            format!("{nothing}: raise {}", raise.join(" or "))
        })
    }

    /// Returns why the exploration is not complete, and what makes it so, as a sentence. `None` if
    /// it is complete and an execution ran to its end, and for a replay. `checkpoint` is the file
    /// that keeps an unfinished exploration.
    pub(crate) fn lacks(&self, checkpoint: Option<&Path>) -> Option<String> {
        let kept = match (self.verdict, checkpoint) {
            (Verdict::Stopped(_), Some(file)) => format!(
                "; the checkpoint {} (DPOR_CHECKPOINT_FILE) holds what is left, if it can be kept; the same test goes on from there",
                file.display()
            ),
            _ => String::new(),
        };
        if let Some(nothing) = self.tested_nothing() {
            return Some(format!("{nothing}{kept}"));
        }
        let verdict = self.verdict;
        let remedy = match verdict {
            // The merge of all parts tells whether they are complete.
            Verdict::Complete | Verdict::Replayed | Verdict::Shard(_) | Verdict::Task => {
                return None;
            }
            Verdict::Stopped(limit) => match limit {
                Limit::Permutations(_) | Limit::Duration(_) | Limit::Memory(_) => {
                    "raise that limit, or leave it out".to_owned()
                }
                Limit::System(_) => "give the process more memory".to_owned(),
                Limit::Interrupt => "let it run to its end".to_owned(),
            },
            Verdict::Bounded(_) | Verdict::Rounds(_) => {
                "raise that bound, or leave it out".to_owned()
            }
            Verdict::Fair(_) => "let the loop of the test have a last round".to_owned(),
            Verdict::Waits(rounds) => format!(
                "`Builder::spin_bound` = {bound} (DPOR_SPIN_BOUND={bound}) explores it in full",
                bound = rounds - 1
            ),
            Verdict::TimesOut(times) => format!(
                "`Builder::timeout_bound` = {times} (DPOR_TIMEOUT_BOUND={times}) explores it in full"
            ),
            Verdict::Marked => {
                "let the test explore everything, without `stop_exploring`, `skip_branch` and \
                 `expect_explicit_explore`"
                    .to_owned()
            }
            Verdict::FinalStates => "the algorithm `optimal` (DPOR_ALGORITHM) explores every trace".to_owned(),
            Verdict::Sampled { .. } => {
                "an algorithm that draws nothing by chance, such as `optimal` (DPOR_ALGORITHM), explores every \
                 trace"
                    .to_owned()
            }
        };
        Some(format!(
            "the model was not explored in full, as require_complete (DPOR_REQUIRE_COMPLETE) asks: {verdict}; \
             {remedy}{kept}"
        ))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let executions = counted(self.executions, "execution");
        write!(f, "{}", self.verdict)?;
        match (self.within_rounds, self.verdict) {
            (None, _) | (_, Verdict::Rounds(_)) => {}
            (Some(most), _) => write!(f, ", and by max_rounds = {most} (DPOR_MAX_ROUNDS)")?,
        }
        match (self.lets_others, self.verdict) {
            (None, _) | (_, Verdict::Fair(_)) => {}
            (Some((_, rounds)), _) => write!(f, ", and where {}", lets_others(rounds))?,
        }
        let limited = matches!(
            self.verdict,
            Verdict::Bounded(_) | Verdict::Stopped(_) | Verdict::Rounds(_) | Verdict::FinalStates
        );
        if self.excludes && limited {
            f.write_str(", and by what the test excluded (`stop_exploring`)")?;
        }
        write!(f, ": {executions}")?;
        if self.pruned > 0 {
            f.write_str(", ")?;
            let is_bounded = matches!(self.verdict, Verdict::Bounded(_));
            self.pruned_by.tell(f, is_bounded)?;
        }
        if let (Some(bound), Verdict::Stopped(_)) = (self.within, self.verdict) {
            let (most, unit, _) = bound.parts();
            let most = counted(most as u64, unit);
            write!(f, ", everything within {most} explored")?;
        }
        write!(
            f,
            ", {}, the longest {}, in {:.3} s",
            counted(self.events, "event"),
            self.longest,
            self.elapsed.as_secs_f64()
        )?;
        // Otherwise the executions took most of the time.
        if self.reruns > self.executions + self.pruned {
            write!(f, ", most of it in {} besides", counted(self.reruns, "run"))?;
        }
        if self.before > 0 {
            let before = counted(self.before, "execution");
            write!(f, " since it was taken up behind {before}")?;
        }
        if let Some(bound) = self.unneeded {
            write!(f, "; {bound} was not needed: these are all traces")?;
        }
        if self.weak != WeakMemory::Unasked {
            write!(f, "; {}", self.weak)?;
        }
        for (nth, pass) in self.further.iter().enumerate() {
            let before = if nth == 0 { "; also explored: " } else { ", " };
            write!(f, "{before}{pass}")?;
        }
        // The line has already told of behaviour that a further pass has explored in part.
        let is_untouched = |it: &&Assumption| self.further.iter().all(|pass| pass.kind != it.kind);
        let untouched = self.assumptions.iter().filter(is_untouched);
        for (nth, assumption) in untouched.enumerate() {
            let before = if nth == 0 { "; not explored: " } else { ", " };
            write!(f, "{before}{assumption}")?;
        }
        Ok(())
    }
}

/// Number of executions that were begun and pruned, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Pruned by the test, with [`assume`](crate::assume).
    pub assumed: u64,
    /// Pruned because a thread had made as many rounds of a loop as
    /// [`Builder::max_rounds`](crate::Builder::max_rounds) allows.
    pub rounds: u64,
    /// Pruned because a loop had read values that did not let it end, with
    /// [`Builder::await_loops`](crate::Builder::await_loops).
    pub in_vain: u64,
    /// Pruned because other executions cover the rest. Always 0 under
    /// [`Algorithm::Optimal`](crate::Algorithm::Optimal).
    pub covered: u64,
}

impl Pruned {
    /// Returns the counts of an exploration with these statistics.
    pub(crate) fn of(stats: &Stats) -> Pruned {
        Pruned {
            assumed: stats.assumed,
            rounds: stats.rounds,
            in_vain: stats.in_vain,
            covered: stats.asleep,
        }
    }

    /// The reasons that occurred, each with its number of executions.
    fn reasons(&self) -> impl Iterator<Item = (u64, verdict::Pruned)> {
        let reasons = [
            (self.assumed, verdict::Pruned::Assumed),
            (self.rounds, verdict::Pruned::Rounds),
            (self.in_vain, verdict::Pruned::InVain),
            (self.covered, verdict::Pruned::Asleep),
        ];
        reasons.into_iter().filter(|&(number, _)| number > 0)
    }

    /// Returns the reasons without numbers, as `` by `assume(false)` and by `max_rounds` ``.
    pub(crate) fn why(&self) -> String {
        let reasons = self.reasons().map(|(_, why)| why.reason());
        reasons.collect::<Vec<_>>().join(" and ")
    }

    /// Writes the reasons that occurred, with numbers. With a bound, executions over the bound are
    /// not counted apart from those that other executions cover.
    fn tell(&self, out: &mut impl fmt::Write, is_bounded: bool) -> fmt::Result {
        if self.reasons().next().is_none() {
            return out.write_str("none given up");
        }
        for (nth, (number, why)) in self.reasons().enumerate() {
            let (before, given_up) = if nth == 0 {
                ("", "given up ")
            } else {
                (", ", "")
            };
            let over = match why {
                verdict::Pruned::Asleep if is_bounded => "over the bound, or ",
                _ => "",
            };
            write!(out, "{before}{number} {given_up}{over}{}", why.reason())?;
        }
        Ok(())
    }
}

impl fmt::Display for Pruned {
    /// Writes the reasons that occurred, as ``2 given up by `assume(false)`, 1 by `max_rounds` ``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tell(f, false)
    }
}

/// A place in the test with races that cost executions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hotspot {
    /// Number of executions that were planned to put another event before the event at this place.
    ///
    /// Executions from before a checkpoint do not count.
    pub executions: u64,
    /// `executions` as a percentage of the executions of all places, rounded down.
    pub percent: u32,
    site: Site,
}

impl Hotspot {
    /// Returns the place, as `file:line:column`, or `in a drop` or `in std` if it is not in the
    /// program's own source.
    pub fn place(&self) -> String {
        foreign(self.site.file()).map_or_else(|| self.site.to_string(), str::to_owned)
    }

    /// Returns the program's expression for the object at this place, if the source is still at the
    /// path where it was compiled.
    pub fn object(&self) -> Option<String> {
        named_at(self.site)
    }
}

/// Returns the program's expression for the object of the operation at this place, if the source is
/// still at the path where it was compiled.
pub(crate) fn named_at(site: Site) -> Option<String> {
    match foreign(site.file()) {
        Some(_) => None,
        None => Sources::default().receiver(site),
    }
}

/// Returns the operation at this place as the program writes it, with its object, as far as the
/// source is available.
pub(crate) fn called_at(site: Site) -> Option<String> {
    if foreign(site.file()).is_some() {
        return None;
    }
    let mut sources = Sources::default();
    match (sources.called(site), sources.receiver(site)) {
        (Some(call), Some(object)) => Some(format!("`{call}` of {object}")),
        (Some(call), None) => Some(format!("`{call}`")),
        (None, object) => object,
    }
}

/// The explored part of a test's traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Every trace.
    Complete,
    /// Every trace that needs at most as many preemptions, context switches or delays as the bound.
    /// Other traces exist.
    Bounded(Bound),
    /// Every trace in which no thread reaches one hint more than this many times after it has
    /// changed shared state.
    ///
    /// Only a change that the thread has made since its last hint counts
    /// ([`Builder::max_rounds`](crate::Builder::max_rounds)). Other traces exist.
    Rounds(usize),
    /// Every trace, except those in which a loop that never ends by itself runs for more than this
    /// many rounds while another thread is enabled.
    ///
    /// The loop changes shared state in each round. It had kept the other threads from running
    /// until an execution had too many events, so after this many rounds at its hint it lets the
    /// other threads run first. It has infinitely many traces.
    /// [`Builder::max_rounds`](crate::Builder::max_rounds) explores that many rounds of the loop in
    /// any order, and leaves out traces with more rounds.
    Fair(usize),
    /// Every trace, except those in which a loop with a hint gives up by itself while another
    /// thread is enabled.
    ///
    /// The loop gives up after this many rounds, but was taken to wait for a change after fewer. A
    /// [`Builder::spin_bound`](crate::Builder::spin_bound) of one less than this number explores it
    /// in full.
    Waits(usize),
    /// Every trace, except those in which a timed wait gives up by itself while another thread is
    /// enabled.
    ///
    /// The program gives the wait up after this many timeouts, but the wait was taken to last until
    /// a change after fewer. A [`Builder::timeout_bound`](crate::Builder::timeout_bound) of this
    /// number explores it in full.
    TimesOut(usize),
    /// Every trace, except where the test switched exploration off.
    ///
    /// A test switches it off with [`stop_exploring`](crate::stop_exploring),
    /// [`skip_branch`](crate::skip_branch) or
    /// [`Builder::expect_explicit_explore`](crate::Builder::expect_explicit_explore).
    Marked,
    /// Executions drawn at random.
    Sampled {
        /// Seed of the executions. As [`Builder::seed`](crate::Builder::seed), it draws the same
        /// executions again.
        seed: u64,
    },
    /// The execution of one schedule.
    Replayed,
    /// Every trace of one of several parts ([`Builder::shard`](crate::Builder::shard)).
    Shard(Shard),
    /// The traces of one task ([`Builder::task`](crate::Builder#structfield.task)), but for those
    /// of the tasks that it has made.
    Task,
    /// Every final state, and not every trace
    /// ([`Algorithm::FinalStates`](crate::Algorithm::FinalStates)).
    ///
    /// Data races, leaks and uses after a free are not excluded.
    FinalStates,
    /// The traces up to the limit that stopped the exploration.
    Stopped(Limit),
}

impl Verdict {
    /// Returns the name, in the form `times_out`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Complete => "complete",
            Verdict::Bounded(_) => "bounded",
            Verdict::Rounds(_) => "rounds",
            Verdict::Fair(_) => "fair",
            Verdict::Waits(_) => "waits",
            Verdict::TimesOut(_) => "times_out",
            Verdict::Marked => "marked",
            Verdict::Sampled { .. } => "sampled",
            Verdict::Replayed => "replayed",
            Verdict::Shard(_) => "shard",
            Verdict::Task => "task",
            Verdict::FinalStates => "final_states",
            Verdict::Stopped(_) => "stopped",
        }
    }

    /// Returns the verdict of an exploration without a failure, from its coverage, the limit that
    /// stopped it, and a loop that gives up by itself.
    pub(crate) fn of(
        covered: Coverage,
        stopped: Option<Limit>,
        gives_up: &Option<BoundedLoop>,
        seed: u64,
    ) -> Verdict {
        match (stopped, covered) {
            (Some(limit), _) => Verdict::Stopped(limit),
            (None, Coverage::All) => match gives_up {
                Some(it) if it.timed => Verdict::TimesOut(it.rounds),
                Some(it) => Verdict::Waits(it.rounds),
                None => Verdict::Complete,
            },
            (None, Coverage::Within(price, within)) => {
                Verdict::Bounded(Bound::of(price, within.unwrap_or_default()))
            }
            (None, Coverage::FinalStates) => Verdict::FinalStates,
            (None, Coverage::Rounds(most)) => Verdict::Rounds(most),
            (None, Coverage::Fair(turn)) => Verdict::Fair(turn),
            (None, Coverage::Regions) => Verdict::Marked,
            (None, Coverage::Sampled) => Verdict::Sampled { seed },
            (None, Coverage::Replayed) => Verdict::Replayed,
        }
    }
}

/// Describes how a loop without a last round is explored.
fn lets_others(rounds: usize) -> String {
    format!("a loop that has no last round lets the others go first behind {rounds} rounds")
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Complete => f.write_str("complete"),
            Verdict::Bounded(bound) => write!(f, "bounded by {bound}"),
            Verdict::Rounds(most) => write!(f, "bounded by max_rounds = {most} (DPOR_MAX_ROUNDS)"),
            Verdict::Fair(rounds) => write!(f, "explored where {}", lets_others(*rounds)),
            Verdict::Waits(rounds) => write!(
                f,
                "bounded by spin_bound (DPOR_SPIN_BOUND), below the {rounds} rounds after which a loop gives up"
            ),
            Verdict::TimesOut(times) => write!(
                f,
                "bounded by timeout_bound (DPOR_TIMEOUT_BOUND), below the {times} timeouts after which a wait is given up"
            ),
            Verdict::Marked => f.write_str("explored only where the test does not say otherwise"),
            Verdict::Sampled { seed } => write!(f, "sampled with seed {seed} (DPOR_SEED)"),
            Verdict::Replayed => f.write_str("replayed"),
            Verdict::Task => f.write_str("explored in one task (DPOR_TASK)"),
            Verdict::Shard(shard) => write!(f, "explored in part {shard} (DPOR_SHARD)"),
            Verdict::FinalStates => f.write_str(
                "every final state reached, and not every trace (DPOR_ALGORITHM=final_states): data races, leaks and uses after \
                 a free are not excluded",
            ),
            Verdict::Stopped(limit) => write!(f, "stopped by {limit}"),
        }
    }
}

/// Bound on the preemptions, context switches, delays or old values of an execution, with its
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bound {
    /// Value of [`Builder::preemption_bound`](crate::Builder::preemption_bound).
    Preemptions(usize),
    /// Value of [`Builder::switch_bound`](crate::Builder::switch_bound).
    Switches(usize),
    /// Value of [`Builder::delay_bound`](crate::Builder::delay_bound).
    Delays(usize),
    /// Value of [`Builder::stale_bound`](crate::Builder::stale_bound).
    OldValues(usize),
}

impl Bound {
    fn of(price: Price, most: usize) -> Bound {
        match price {
            Price::Preemptions => Bound::Preemptions(most),
            Price::Switches => Bound::Switches(most),
            Price::Delays => Bound::Delays(most),
            Price::OldValues => Bound::OldValues(most),
        }
    }

    /// Returns the unit of the bound and its value.
    pub(crate) fn price(self) -> (Price, usize) {
        match self {
            Bound::Preemptions(most) => (Price::Preemptions, most),
            Bound::Switches(most) => (Price::Switches, most),
            Bound::Delays(most) => (Price::Delays, most),
            Bound::OldValues(most) => (Price::OldValues, most),
        }
    }

    /// Returns the value, the unit in the singular, and the setting with its variable.
    fn parts(self) -> (usize, &'static str, [&'static str; 2]) {
        match self {
            Bound::Preemptions(most) => {
                let setting = ["preemption_bound", "DPOR_MAX_PREEMPTIONS"];
                (most, "preemption", setting)
            }
            Bound::Switches(most) => {
                let setting = ["switch_bound", "DPOR_MAX_SWITCHES"];
                (most, "context switch", setting)
            }
            Bound::Delays(most) => (most, "delay", ["delay_bound", "DPOR_MAX_DELAYS"]),
            Bound::OldValues(most) => (most, "old value", ["stale_bound", "DPOR_STALE_BOUND"]),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (most, _, [setting, variable]) = self.parts();
        write!(f, "{setting} = {most} ({variable})")
    }
}

/// Limit that stopped an exploration before everything was explored, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// Value of [`Builder::max_permutations`](crate::Builder::max_permutations), in executions.
    Permutations(usize),
    /// Value of [`Builder::max_duration`](crate::Builder::max_duration).
    Duration(Duration),
    /// Value of [`Builder::max_memory`](crate::Builder::max_memory), in bytes.
    Memory(usize),
    /// The memory that the system gives the process: it refuses this number of bytes.
    ///
    /// The plan takes half as many bytes. The explorer checks the system's memory from 2 MB on,
    /// each time that the plan has grown by an eighth.
    System(usize),
    /// An interrupt by the user (`SIGINT`). The process ends once the report is printed.
    Interrupt,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Permutations(most) => {
                write!(f, "max_permutations = {most} (DPOR_MAX_PERMUTATIONS)")
            }
            Limit::Duration(most) => write!(
                f,
                "max_duration = {} s (DPOR_MAX_DURATION)",
                most.as_secs_f64()
            ),
            Limit::Memory(most) => write!(f, "max_memory = {most} bytes (DPOR_MAX_MEMORY)"),
            Limit::System(bytes) => write!(
                f,
                "the memory of the process, of which the system has no {bytes} bytes more (`ulimit -v` raises that)"
            ),
            Limit::Interrupt => f.write_str("an interrupt (SIGINT)"),
        }
    }
}
