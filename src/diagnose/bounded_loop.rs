//! Which loops that were taken to wait for a change give up by themselves after some rounds?
//!
//! The code after such a loop was explored only where no other thread was enabled, and a report
//! that calls the exploration complete would hide that. For loops with a hint and for timed waits
//! the report says so at the end. A loop without a hint may be any loop that reads. It is examined
//! when it has waited for the first time: if it gives up, the exploration restarts. A loop with a
//! hint that may be explored as one step is examined then, too: if it does not give up, it becomes
//! one step, and the exploration restarts.

use std::mem::discriminant;
use std::ptr;

use crate::diagnose::minimize::{Looks, Probe, leads_to};
use crate::exploration::first_waits::FirstWait;
use crate::exploration::progress::above;
use crate::exploration::said_once;
use crate::rt::engine::driver::Driver;
use crate::rt::engine::replay::Replay;
use crate::rt::engine::solo_run::Further;
use crate::rt::event::Event;
use crate::rt::event::verdict::End;
use crate::rt::exec::pooled_runtime::PooledDriver;
use crate::rt::exec::run::{Explored, Found, explore_a_few};
use crate::rt::exec::state_capture::StateCapture;
use crate::rt::object::machine::{AwaitLoop, Learnt, Spot, WaitsAt, look};

/// The most reads in a round of a loop that is explored as one step.
const LOOKS_MAX: usize = 64;

/// The most events for which a livelock goes on, to see whether its loops end by themselves.
const FURTHER_MAX: usize = 1_000_000;

/// A loop that was taken to wait for a change, and gives up by itself.
#[derive(Clone, Debug)]
pub(crate) struct BoundedLoop {
    /// The place at which the loop was taken to wait.
    pub(crate) site: String,
    /// Whether the loop has a timed wait instead of a hint.
    pub(crate) timed: bool,
    /// Number of rounds after which the loop gives up if nothing changes or the wait times out.
    pub(crate) rounds: usize,
}

impl Probe<'_> {
    /// Whether one of these loops without a hint gives up by itself.
    pub(crate) fn any_bounded_loop(&mut self, waits: &[FirstWait]) -> bool {
        let mut looks = waits.iter().filter(|wait| wait.is_look());
        looks.any(|wait| self.rounds_of(wait).is_some())
    }

    /// Returns the loop, with a hint or with a timed wait, that gives up after the most rounds.
    pub(crate) fn gives_up(&mut self, waits: &[FirstWait]) -> Option<BoundedLoop> {
        let gives_up = |wait: &FirstWait| {
            Some(BoundedLoop {
                site: wait.site.clone(),
                timed: wait.at == WaitsAt::Timed,
                rounds: self.rounds_of(wait)?,
            })
        };
        let waits = waits.iter().filter(|wait| !wait.is_look() && !wait.stays);
        let all = waits.filter_map(gives_up);
        all.max_by_key(|it| it.rounds)
    }

    /// Returns those of these loops with a hint that do not give up by themselves and that only
    /// read in each round. Says of the others why each of their looks is an event.
    pub(crate) fn awaits(&mut self, waits: &[FirstWait]) -> Vec<AwaitLoop> {
        let waits = waits.iter().filter(|wait| wait.at == WaitsAt::Hint);
        let is_asked_for = self.settings.await_loops == Some(true);
        let stays = |wait: &FirstWait| {
            let found = match self.solo_run(wait) {
                (None, driver) if is_asked_for => await_loop(wait, &driver),
                (None, driver) => await_loop(wait, &driver).and_then(|it| repeats(it, &driver)),
                (Some(rounds), _) => Err(format!("it gives up by itself after {rounds} rounds")),
            };
            let why = match &found {
                Err(why) => Some(why.clone()),
                Ok(known) => why_in_looks(known),
            };
            if let Some(why) = why.filter(|_| is_asked_for) {
                no_one_step(&wait.site, &why);
            }
            found.ok()
        };
        waits.filter_map(stays).collect()
    }

    /// Whether this execution, which was taken for a livelock, ends if its loops go on: one of them
    /// ends by itself, after more rounds than a livelock has. The execution goes on as far as the
    /// limit of events allows. If the limit is very high, it goes on for a million events: without
    /// a limit, the execution of a livelock would never end.
    pub(crate) fn ends_after_all(&mut self, found: &Found) -> bool {
        if !matches!(found.end, End::Livelock { .. }) || self.learnt.patient {
            return false;
        }
        let learnt = Learnt {
            patient: true,
            ..self.learnt.clone()
        };
        let explorer = Box::new(Replay::new(leads_to(found)));
        let mut driver = self.settings.driver(explorer, learnt);
        driver.limit_events(found.driver.executed().len() + FURTHER_MAX);
        match self.goes_on(driver, 1, Looks::default()).0 {
            Explored::Passed(_) => true,
            Explored::Failed(more) => {
                !matches!(more.end, End::TooManyEvents { .. } | End::Livelock { .. })
            }
        }
    }

    /// Returns the number of rounds after which this loop gives up, if it does.
    fn rounds_of(&mut self, wait: &FirstWait) -> Option<usize> {
        self.solo_run(wait).0
    }

    /// Runs the loop's thread alone (a solo run). Returns the number of rounds after which the loop
    /// gives up, if it does, and the driver of that run.
    fn solo_run(&mut self, wait: &FirstWait) -> (Option<usize>, PooledDriver) {
        let path = wait.path.clone();
        let (explorer, rounds) = Further::explorer(wait.schedule.clone(), path.clone());
        let mut driver = self.driver(Box::new(explorer));
        (driver.machine).let_go_further(path, wait.events, wait.at);
        let settings = self.settings.running(self.site, self.unseen);
        let log = self.log.quiet();
        let looking = StateCapture::at_one_that_goes();
        let explored =
            log.listen(|| explore_a_few(self.main, driver, self.stacks, settings, &mut |_| true));
        drop(looking);
        let (more, driver) = match explored {
            // The run ended because the thread, after the loop, asked whether another thread has
            // finished. So the thread has left the loop.
            Explored::Passed(driver) if driver.ends_are_seen() => {
                (Some(driver.machine.rounds_further().0), driver)
            }
            Explored::Passed(driver) => (rounds.get(), driver),
            // The loop made rounds until there were too many events, so it does not give up.
            Explored::Failed(found) if matches!(found.end, End::TooManyEvents { .. }) => {
                (None, found.driver)
            }
            // The thread has left the loop: the failure is in the code after it.
            Explored::Failed(found) => {
                let (more, _) = found.driver.machine.rounds_further();
                (Some(more), found.driver)
            }
        };
        let looks = LooksThere::of(wait, &driver);
        let more = match wait.at {
            // The thread returns to the same place even if the loop has several reads.
            WaitsAt::Look => more,
            WaitsAt::Hint | WaitsAt::Cycle | WaitsAt::Timed => {
                looks.rounds_before_another(&driver).or(more)
            }
        };
        // Rounds that the thread makes before it waits for the first time in the exploration.
        let before = match wait.at {
            WaitsAt::Timed => self.settings.timeout_bound,
            WaitsAt::Look | WaitsAt::Cycle => self.settings.spin_bound + 1,
            // Some of the first rounds may have differed from the later ones, because they follow
            // other code.
            WaitsAt::Hint => looks.rounds().max(self.settings.spin_bound + 1),
        };
        let more = more.filter(|&more| more > 0);
        (more.map(|more| (before + more) as usize), driver)
    }
}

/// The reads from one place in a loop, the last one of each round: for each read, the number of
/// events of its thread before it, in ascending order.
struct LooksThere {
    all: Vec<usize>,
    /// How many of these reads come before the first wait.
    before: usize,
    /// Number of events of the thread.
    events: usize,
}

impl LooksThere {
    /// Returns the reads in the loop with this wait.
    fn of(wait: &FirstWait, driver: &Driver) -> LooksThere {
        let thread = driver.machine.ends_further().map(|(thread, _)| thread);
        let positions = thread.map_or(&[][..], |thread| driver.trace.positions_of(thread));
        // The kind is compared, too, because a guard's release has the same place as its
        // acquisition.
        let place = |&at: &u32| {
            let event = driver.trace.at(at);
            (
                ptr::from_ref(event.site),
                discriminant(&event.operation.kind),
            )
        };
        let events = wait.events as usize;
        let looked = events.checked_sub(1).and_then(|last| positions.get(last));
        let looked = looked.map(place);
        let is_there = |at: &u32| looked == Some(place(at));
        let all = (positions.iter().enumerate()).filter(|(_, at)| is_there(at));
        let all: Vec<usize> = all.map(|(index, _)| index).collect();
        LooksThere {
            before: all.partition_point(|&index| index < events),
            events: positions.len(),
            all,
        }
    }

    /// Returns the number of rounds of equal length that end with the first wait, without the last
    /// round.
    fn rounds(&self) -> u32 {
        let lengths = lengths(&self.all[..self.before]).rev();
        let last = lengths.clone().next();
        lengths.take_while(|&length| Some(length) == last).count() as u32
    }

    /// Returns the number of further rounds that the thread made before it left the loop for
    /// another one, if it did. The other loop may read the same object, and may even reach the same
    /// hint, in a function that both loops call. But it reads from another place.
    fn rounds_before_another(&self, driver: &Driver) -> Option<u32> {
        let (_, ends) = driver.machine.ends_further()?;
        let last = *self.all.last()?;
        let longest = lengths(&self.all).max()?;
        let has_left = self.events - 1 - last > longest;
        let in_it = ends.iter().filter(|&&events| events as usize <= last + 1);
        has_left.then(|| in_it.count() as u32)
    }
}

/// Returns the number of events from each of these reads to the next one.
fn lengths(looks: &[usize]) -> impl DoubleEndedIterator<Item = usize> + Clone {
    looks.windows(2).map(|two| two[1] - two[0])
}

/// Returns the loop in which the thread made rounds until the solo run stopped it, if each event of
/// the loop only reads.
///
/// # Errors
///
/// Why it is no such loop.
fn await_loop(wait: &FirstWait, driver: &Driver) -> Result<AwaitLoop, String> {
    const LEAVES: &str = "its thread leaves it by itself";
    let machine = &driver.machine;
    let (_, has_left) = machine.rounds_further();
    let (thread, round) = machine.round_further().ok_or(LEAVES)?;
    if !machine.has_gone_far() || has_left {
        return Err(LEAVES.to_owned());
    }
    let theirs = driver.trace.events().iter();
    let theirs = theirs.filter(|event| event.thread == thread && round.contains(&event.index));
    let place = |event: &Event| look(event, machine).map(|_| Spot::of(event.site));
    let places: Option<Vec<Spot>> = theirs.map(place).collect();
    let places = places.ok_or("its rounds do more than look at atomics")?;
    match places.len() {
        0 => return Err("its rounds look at nothing".to_owned()),
        1..=LOOKS_MAX => {}
        more => {
            return Err(format!(
                "its rounds look {more} times, and {LOOKS_MAX} is the most"
            ));
        }
    }
    Ok(AwaitLoop {
        hint: Spot::parse(&wait.site).ok_or("its place is unknown")?,
        round: places,
        refused: false,
    })
}

/// Returns the loop, if each of its rounds is one look and leaves the state of its thread as it
/// was.
///
/// # Errors
///
/// Why it is no such loop.
fn repeats(known: AwaitLoop, driver: &Driver) -> Result<AwaitLoop, String> {
    match known.round.len() {
        1 if driver.machine.repeats_for_ever() => Ok(known),
        1 => Err("its rounds change what its thread keeps".to_owned()),
        looks => Err(format!("each round looks {looks} times")),
    }
}

/// Why each look of a loop that only looks is an event, if it is.
fn why_in_looks(known: &AwaitLoop) -> Option<String> {
    let looks = known.round.len();
    (looks > 1).then(|| {
        format!("each round looks {looks} times, so executions with a look in vain are given up")
    })
}

/// Says, once for a test, why the loop with this hint is not taken for one step although loops are
/// to be.
pub(crate) fn no_one_step(hint: &str, why: &str) {
    let line =
        format!("dpor: the loop with the hint at {hint} is no one step (`await_loops`): {why}");
    if said_once::is_first(line.clone()) {
        above(|| eprintln!("{line}"));
    }
}
