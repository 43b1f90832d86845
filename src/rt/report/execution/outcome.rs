//! How did the execution end, and which threads and events have a part in the end?

use super::misuse::{self, Allocation, Misuse};
use super::told::Aside;
use super::{Gathering, Place, kinds};
use crate::rt::event::Site;
use crate::rt::event::operation::Operation;
use crate::rt::event::verdict::{Access, DataRace, Divergence, Effect, End, Lasts, Pruned};
use crate::rt::plural::counted;
use crate::rt::report::holders::holders;
use crate::rt::report::memory;

/// How an execution ended.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(crate) struct Outcome {
    pub(crate) kind: &'static str,
    /// The end in one sentence.
    pub(crate) sentence: String,
    /// The thread that panicked, used up its stack, or differed from the recorded execution.
    pub(crate) thread: Option<usize>,
    /// The text of the panic.
    pub(crate) message: Option<String>,
    /// Where the panic was raised.
    pub(crate) place: Option<Place>,
    /// The panics before this panic.
    pub(crate) earlier_panics: Vec<EarlierPanic>,
    /// The threads that wait for ever.
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) data_race: Option<Unordered>,
    /// The wrong use of memory that is the failure.
    pub(crate) misuse: Option<Misuse>,
    /// The block that the failure is about.
    pub(crate) block: Option<Allocation>,
    /// The places at which values were made that were not dropped.
    pub(crate) leaked: Vec<Place>,
    /// The blocks that were not freed.
    pub(crate) leaked_blocks: Vec<Allocation>,
    pub(crate) divergence: Option<Differing>,
}

/// A panic that was not the end of the execution.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(crate) struct EarlierPanic {
    pub(crate) thread: usize,
    /// The last event before it, or 0.
    pub(crate) after: usize,
    pub(crate) message: String,
    /// Where it was raised.
    pub(crate) place: Option<Place>,
}

/// A thread that waits for ever.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(crate) struct Waiting {
    pub(crate) thread: usize,
    pub(crate) operation: &'static str,
    pub(crate) words: String,
    /// The words behind the thread's name for its state.
    pub(crate) doing: String,
    pub(crate) object: Option<usize>,
    /// The thread that holds the lock, or runs the initialisation, that this thread waits for; the
    /// first of several readers.
    pub(crate) held_by: Option<usize>,
    pub(crate) place: Place,
}

/// Two accesses to the same plain memory that nothing orders.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(crate) struct Unordered {
    /// The name of the memory in the source, if there is one.
    pub(crate) name: Option<String>,
    pub(crate) first: Touch,
    pub(crate) second: Touch,
    /// The last event of the thread during the first access, if the access has lasted.
    pub(crate) lasts_through: Option<usize>,
    /// The first access has not ended.
    pub(crate) goes_on: bool,
    /// The events that would order the two accesses if their orderings were stronger: a write, and
    /// the read that saw it.
    pub(crate) weak: Option<super::Pair>,
    /// More such pairs.
    pub(crate) weaker: Vec<super::Pair>,
    /// Whether all pairs must be stronger; otherwise any one pair is enough.
    pub(crate) weak_together: bool,
}

impl Unordered {
    /// Whether these two events are such a pair.
    pub(crate) fn is_weak(&self, first: usize, second: usize) -> bool {
        let mut pairs = self.weak.iter().chain(&self.weaker);
        pairs.any(|pair| (pair.first, pair.second) == (first, second))
    }
}

/// An access to plain memory.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(crate) struct Touch {
    pub(crate) thread: usize,
    pub(crate) effect: &'static str,
    /// The words for the access.
    pub(crate) words: String,
    /// The event of the access, if it has one.
    pub(crate) event: Option<usize>,
    pub(crate) place: Place,
    /// The last event of the thread before the access.
    pub(crate) after: Option<usize>,
}

/// The difference between a replay and the recorded execution.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(crate) struct Differing {
    /// The number of the event.
    pub(crate) event: usize,
    pub(crate) expected: Option<Announced>,
    pub(crate) found: Option<Announced>,
    /// Whether the operation was the same and its outcome differed.
    pub(crate) outcome_differs: bool,
}

/// The announced operation of a thread.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub(crate) struct Announced {
    pub(crate) words: String,
    pub(crate) place: Place,
}

impl Outcome {
    fn plain(kind: &'static str, sentence: String) -> Outcome {
        Outcome {
            kind,
            sentence,
            thread: None,
            message: None,
            place: None,
            earlier_panics: Vec::new(),
            waiting: Vec::new(),
            data_race: None,
            misuse: None,
            block: None,
            leaked: Vec::new(),
            leaked_blocks: Vec::new(),
            divergence: None,
        }
    }

    /// The outcome of a failure that is not one of an execution.
    pub(super) fn without_events(kind: &'static str, sentence: &str) -> Outcome {
        Outcome::plain(kind, sentence.to_owned())
    }
}

/// How the execution ended.
pub(super) fn of(data: &mut Gathering<'_>, asides: &[Aside]) -> Outcome {
    let stands = |role| {
        let aside = asides.iter().find(|aside| aside.role == role)?;
        aside.place.clone()
    };
    let end = data.view.end;
    let mut outcome = Outcome::plain(kinds::end(end), String::new());
    outcome.earlier_panics = earlier_panics(data);
    outcome.waiting = waiting(data);
    let thread = |thread| data.names.thread(thread);
    outcome.sentence = match end {
        End::Complete if data.view.machine.live().is_empty() => "every thread finished".to_owned(),
        End::Complete => "the main thread finished, and the others finished or wait".to_owned(),
        End::Pruned(Pruned::Asleep | Pruned::EndsAreSeen | Pruned::LeftLoop) => {
            "given up: the rest is covered elsewhere".to_owned()
        }
        End::Pruned(why) => format!("given up {}", why.reason()),
        End::Deadlock(_) | End::Livelock { .. } => {
            let threads = outcome.waiting.iter();
            let threads =
                threads.map(|it| format!("{} {}", thread(data.threads[it.thread]), it.doing));
            let threads = threads.collect::<Vec<_>>().join(", ");
            match end {
                End::Livelock { rounds, .. } => {
                    format!("no change in {rounds} rounds: {threads}")
                }
                _ => format!("nothing can go on: {threads}"),
            }
        }
        End::TooManyEvents { limit, .. } => {
            format!("more than {}", counted(*limit as u64, "event"))
        }
        End::TooManyThreads { limit } => {
            format!("more than {} alive", counted(*limit as u64, "thread"))
        }
        End::Panicked { thread: it, .. } => {
            outcome.thread = Some(data.thread(*it));
            match data.view.panic {
                Some((text, _)) => format!("{} panicked: {text}", thread(*it)),
                None => format!("{} panicked", thread(*it)),
            }
        }
        End::NoStack { thread: it, bytes } => {
            outcome.thread = Some(data.thread(*it));
            format!(
                "no memory for the {bytes} bytes of the stack of {}",
                thread(*it)
            )
        }
        End::NoClocks { bytes } => format!("no memory for the {bytes} bytes of its clocks"),
        End::StackOverflow { thread: it } => {
            outcome.thread = Some(data.thread(*it));
            format!("{} used more stack than it has", thread(*it))
        }
        End::MemoryFault {
            thread: it,
            address,
            is_constant,
        } => {
            outcome.thread = Some(data.thread(*it));
            let did = memory::fault(*address, *is_constant);
            format!("{} {did}", thread(*it))
        }
        End::Stale { misfit } => format!("the schedule does not fit the program: {misfit}"),
        End::NotDeterministic(it) => {
            outcome.thread = data.threads.iter().position(|&t| t == it.thread);
            let (step, thread) = (it.position + 1, thread(it.thread));
            format!("event {step}, of {thread}, is another one than with the same schedule before")
        }
        End::DataRace(race) => first_line(|out| {
            memory::data_race(out, data.view, &data.names, race, "");
        }),
        End::BadMemory(bad) => {
            outcome.thread = Some(data.thread(bad.thread));
            first_line(|out| memory::bad_memory(out, data.view, &data.names, bad, ""))
        }
        End::Outside(outside) => first_line(|out| memory::outside(out, &data.names, outside, "")),
        End::Leaked(leaked) => {
            first_line(|out| memory::leaked(out, data.view, &data.names, leaked, ""))
        }
    };
    if let (End::Panicked { .. }, Some((text, location))) = (end, data.view.panic) {
        outcome.message = Some(text.to_owned());
        outcome.place = location.map(|(file, line, column)| data.place_of(file, line, column));
    }
    let block = end.block();
    outcome.block = block.map(|block| misuse::allocation(data, &block, Some(data.view.life)));
    match end {
        End::DataRace(race) => {
            let known = [stands("first"), stands("second")];
            outcome.data_race = Some(unordered(data, race, known));
        }
        End::BadMemory(bad) => {
            outcome.misuse = Some(misuse::misuse(data, bad, stands("use")));
        }
        End::Leaked(leaked) => {
            outcome.leaked = leaked
                .values
                .iter()
                .map(|made| data.place(made.site))
                .collect();
            let blocks = leaked.blocks.iter();
            // Only the first block is watched when the execution is run again.
            let blocks = blocks.enumerate().map(|(index, block)| {
                misuse::allocation(data, block, (index == 0).then_some(data.view.life))
            });
            outcome.leaked_blocks = blocks.collect();
        }
        End::NotDeterministic(it) => outcome.divergence = Some(differing(data, it)),
        _ => {}
    }
    outcome
}

/// The first line of the text report.
fn first_line(write: impl FnOnce(&mut String)) -> String {
    let mut text = String::new();
    write(&mut text);
    text.lines()
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_owned()
}

fn earlier_panics(data: &mut Gathering<'_>) -> Vec<EarlierPanic> {
    let earlier = data.view.earlier.iter().map(|panic| EarlierPanic {
        thread: data.thread(panic.thread),
        after: panic.after,
        message: panic.text.clone(),
        place: (panic.location.as_ref())
            .map(|(file, line, column)| data.place_of(file, *line, *column)),
    });
    earlier.collect()
}

fn waiting(data: &mut Gathering<'_>) -> Vec<Waiting> {
    let mut list = Vec::new();
    for stuck in data.view.end.stuck() {
        let object = data.object(stuck.operation.object);
        let holders = holders(data.view.trace, data.view.machine, &stuck.operation);
        list.push(Waiting {
            thread: data.thread(stuck.thread),
            operation: kinds::operation(&stuck.operation.kind),
            words: data.names.announced(&stuck.operation),
            doing: data.names.waiting(&stuck.operation),
            object,
            held_by: holders.first().map(|holder| data.thread(holder.thread)),
            place: data.place_of_waiting(stuck),
        });
    }
    list
}

fn unordered(data: &mut Gathering<'_>, race: &DataRace, known: [Option<Place>; 2]) -> Unordered {
    let trace = data.view.trace;
    let number = |thread, index: u32| {
        let position = super::nth_of(trace, thread, index)?;
        Some(position as usize + 1)
    };
    let of_event = |access: &Access| {
        let position = trace.nth_of(access.thread, access.after)?;
        let is_event = matches!(access.effect, Effect::AtomicRead | Effect::AtomicWrite);
        is_event.then(|| trace.at(position))
    };
    let name = data.names.memory().map(str::to_owned);
    let mut touch = |access: &Access, known: Option<Place>| Touch {
        thread: data.thread(access.thread),
        effect: kinds::effect(access.effect),
        words: match (access.effect, name.as_deref()) {
            (Effect::Free, _) => "frees the block".to_owned(),
            (Effect::End, _) => "ends, and its stack with it".to_owned(),
            (Effect::Make, _) => "allocates the block".to_owned(),
            (Effect::Read | Effect::AtomicRead, name) => {
                format!("reads {}", name.unwrap_or("the memory"))
            }
            (Effect::Write | Effect::AtomicWrite, name) => {
                format!("writes {}", name.unwrap_or("the memory"))
            }
        },
        event: match access.effect {
            Effect::AtomicRead | Effect::AtomicWrite => number(access.thread, access.after),
            Effect::Read | Effect::Write | Effect::Free | Effect::End | Effect::Make => None,
        },
        place: known.unwrap_or_else(|| match of_event(access) {
            Some(event) => data.place_of_event(event),
            None => data.place(access.site),
        }),
        after: (access.after.checked_sub(1)).and_then(|index| number(access.thread, index)),
    };
    let [one, other] = known;
    let (first, second) = (touch(&race.first, one), touch(&race.second, other));
    let mut weak = race.weak.pairs.iter().filter_map(|weak| {
        Some(super::Pair {
            first: number(weak.writer.thread, weak.writer.index)?,
            second: number(weak.reader.thread, weak.reader.index)?,
        })
    });
    Unordered {
        name,
        first,
        second,
        lasts_through: match race.lasts {
            Lasts::Until(events) if events > race.first.through() => {
                number(race.first.thread, events - 1)
            }
            _ => None,
        },
        goes_on: race.lasts == Lasts::OnAndOn,
        weak: weak.next(),
        weaker: weak.collect(),
        weak_together: race.weak.together,
    }
}

fn differing(data: &mut Gathering<'_>, it: &Divergence) -> Differing {
    let mut side = |side: &Option<(Operation, Site)>| {
        side.map(|(operation, site)| Announced {
            words: data.names.announced(&operation),
            place: data.place(site),
        })
    };
    Differing {
        event: it.position + 1,
        expected: side(&it.expected),
        found: side(&it.found),
        outcome_differs: it.outcome_differs,
    }
}
