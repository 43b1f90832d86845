//! How is an unfinished exploration saved and continued?
//!
//! Between two executions an exploration still needs, for each point up to the one where the next
//! execution branches off, only the step at the point, the sleep set, and the wakeup tree. Threads
//! and objects are interned numbers there, so the checkpoint includes the tables of names, in the
//! order of the numbers; names that are read in that order get the same numbers again. The parts of
//! a name (births, stack offsets, allocation counts) are the same in another process, except for
//! the address of a static: the caller translates it.
//!
//! A search over graphs needs the same of its points, and the objects that it has met.
//!
//! The format is a sequence of LEB128 numbers without a header, which for such a search has the
//! bytes of `postcard` in it: the derives on the types of steps say what these are; the caller that
//! stores it in a file adds an identification and a checksum. The reader still checks every number,
//! so that a damaged checkpoint leads to a refusal and nothing worse.

#[cfg(feature = "checkpoint")]
mod graphs;
#[cfg(not(feature = "checkpoint"))]
#[path = "checkpoint/graphs/off.rs"]
mod graphs;
pub(crate) mod parts;
pub(crate) mod suspended;

use crate::rt::event::id::{ObjectId, Place, Region, ThreadId};
use crate::rt::event::operation::Step;
use crate::rt::memory::search::saved::SavedGraphs;
use crate::rt::object::machine::{AwaitLoop, Awaits, Hintless, Learnt, Loud, Machine, Spot};
use crate::rt::relation::independence::{ALL, Class, Footprint, Label};

use crate::rt::engine::checkpoint::suspended::{
    SavedChild, SavedEvent, SavedFrame, SavedItem, SavedRecord, Suspended,
};
use crate::rt::engine::sleep::Sleeper;
use crate::rt::engine::stats::Stats;

/// The unfinished part of an exploration.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Unfinished {
    /// Depth-first: the points of the last execution, up to the one where the next execution
    /// branches off.
    pub(crate) points: Vec<SavedPoint>,
    /// In another order: all nodes that are begun and not finished, each before its children.
    pub(crate) open: Vec<SavedOpen>,
    /// Under C11.
    pub(crate) graphs: Option<SavedGraphs>,
    /// Without wakeup trees: the suspended executions.
    pub(crate) suspended: Suspended,
}

/// A point of an execution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SavedPoint {
    /// The step that was made here, and the label of its event.
    pub(crate) step: Step,
    pub(crate) label: Label,
    pub(crate) sleepers: Vec<Sleeper>,
    /// The wakeup tree, each node before its children.
    pub(crate) tree: Vec<SavedNode>,
}

/// A node of a wakeup tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SavedNode {
    pub(crate) step: Step,
    pub(crate) label: Label,
    /// The number of levels between the roots of the tree and this node.
    pub(crate) depth: u32,
}

/// A node of an `OpenTree`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SavedOpen {
    pub(crate) node: SavedNode,
    pub(crate) awake: bool,
    /// Whether a branch begins here, or began here before it was started.
    pub(crate) begins: bool,
    /// Whether a planned branch ends here.
    pub(crate) ends: bool,
    pub(crate) executed: u32,
}

/// A map from the address of a static to a number that is the same in every process of this
/// program, and back. `None` for an address that has no such number.
pub(crate) trait Statics {
    fn number(&self, address: usize) -> Option<u64>;
    fn address(&self, number: u64) -> Option<usize>;
}

/// The contents of a checkpoint besides the explorer's part.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Progress {
    pub(crate) stats: Stats,
    /// Whether the test has switched exploration off anywhere.
    pub(crate) regions: bool,
    /// Whether a thread was stopped because of its number of rounds.
    pub(crate) rounds: bool,
    /// The numbers of the estimator.
    pub(crate) estimator: Vec<u64>,
    /// Which threads contend for which atomic.
    pub(crate) contention: Vec<u64>,
}

/// Writes an unfinished exploration. An error says why that is impossible.
pub(crate) fn encode(
    machine: &Machine,
    progress: &Progress,
    unfinished: &Unfinished,
    statics: &dyn Statics,
) -> Result<Vec<u8>, String> {
    let mut out = Writer::default();
    out.stats(&progress.stats);
    let Learnt {
        ends_are_events,
        hintless,
        fair,
        patient,
        awaits,
        loud,
        // An exploration delays no thread.
        held: _,
        guarded: _,
    } = &machine.limits.learnt;
    out.number(*ends_are_events as u64);
    out.number(*hintless as u64);
    out.number(u64::from(*fair) | u64::from(*patient) << 1);
    out.list(awaits.all(), |out, known| {
        let AwaitLoop {
            hint,
            round,
            refused,
        } = known;
        out.spot(hint);
        out.list(round, Writer::spot);
        out.number(u64::from(*refused));
    });
    let (places, all) = loud.parts();
    out.list(places, Writer::spot);
    out.number(u64::from(all));
    out.number(machine.has_learnt() as u64);
    out.number(progress.regions as u64);
    out.number(progress.rounds as u64);
    for numbers in [&progress.estimator, &progress.contention] {
        out.list(numbers, |out, &number| out.number(number));
    }
    let names = &machine.names;
    let threads: Vec<_> = (1..names.thread_count() as u32)
        .filter_map(|thread| names.creator(ThreadId(thread)))
        .collect();
    out.list(&threads, |out, &(creator, nth)| {
        out.number(creator.0.into());
        out.number(nth.into());
    });
    out.number(names.object_count() as u64);
    for object in 0..names.object_count() as u32 {
        out.place(names.place(ObjectId(object)), statics)?;
    }
    out.number(machine.sets.len() as u64);
    for set in 0..machine.sets.len() as u32 {
        out.list(machine.sets.get(set), |out, object| {
            out.number(object.0.into())
        });
    }
    out.list(
        machine.sets.footprints(),
        |out, footprint| match footprint {
            Footprint::Everything => out.number(0),
            Footprint::Of(objects, writes) => {
                out.number(1);
                let all: Vec<_> = objects.iter().zip(writes).collect();
                out.list(&all, |out, &(object, &writes)| {
                    out.number(u64::from(object.0) << 1 | u64::from(writes));
                });
            }
        },
    );
    out.list(&unfinished.points, |out, point| {
        out.step(point.step, point.label);
        out.list(&point.sleepers, |out, s| out.step(s.step, s.label));
        out.list(&point.tree, Writer::node);
    });
    out.list(&unfinished.open, |out, open| {
        out.node(&open.node);
        for flag in [open.awake, open.begins, open.ends] {
            out.number(flag.into());
        }
        out.number(open.executed.into());
    });
    let graphs = graphs::encode(&unfinished.graphs)?;
    out.list(&graphs, |out, &byte| out.bytes.push(byte));
    out.suspended(&unfinished.suspended);
    Ok(out.bytes)
}

/// Reads the bytes of [`encode`] into a machine that has run no program yet. `None` if they are
/// invalid; the machine is then unusable.
pub(crate) fn decode(
    bytes: &[u8],
    machine: &mut Machine,
    statics: &dyn Statics,
) -> Option<(Progress, Unfinished)> {
    let mut from = Reader { bytes };
    let stats = from.stats()?;
    let ends_are_events = from.number()? != 0;
    let hintless = match from.number()? {
        0 => Hintless::Unknown,
        1 => Hintless::Soon,
        2 => Hintless::BoundedLoop,
        _ => return None,
    };
    let flags = from.number()?;
    machine.limits.learn(Learnt {
        ends_are_events,
        hintless,
        fair: flags & 1 != 0,
        patient: flags & 2 != 0,
        awaits: from.awaits()?,
        loud: Loud::from_parts(from.list(Reader::spot)?, from.number()? != 0),
        ..Learnt::default()
    });
    // The facts about loops without a hint that were learnt last are checked now.
    machine.take_up(from.number()? != 0);
    let progress = Progress {
        stats,
        regions: from.number()? != 0,
        rounds: from.number()? != 0,
        estimator: from.list(Reader::number)?,
        contention: from.list(Reader::number)?,
    };
    let names = &mut machine.names;
    for thread in 1..=from.length()? {
        let creator = ThreadId(from.index()?);
        let nth = from.index()?;
        let fits = creator.index() < thread && names.child(creator, nth).index() == thread;
        fits.then_some(())?;
    }
    for object in 0..from.length()? {
        let place = from.place(statics)?;
        if let Region::Thread(thread) | Region::Token(thread) = place.region {
            (thread.index() < names.thread_count()).then_some(())?;
        }
        (names.object(place).index() == object).then_some(())?;
    }
    let (threads, objects) = (names.thread_count(), names.object_count());
    for set in 0..from.length()? {
        let locations = from.list(|from| Some(ObjectId(from.index()?)))?;
        let known = locations.iter().all(|object| object.index() < objects);
        (known && machine.sets.intern(&locations) as usize == set).then_some(())?;
    }
    for footprint in 0..from.length()? {
        let read = match from.number()? {
            0 => Footprint::Everything,
            _ => {
                let all = from.list(|from| {
                    let number = from.number()?;
                    let object = u32::try_from(number >> 1).ok()?;
                    let known = (object as usize) < objects;
                    known.then_some((ObjectId(object), number & 1 == 1))
                });
                Footprint::of(all?)
            }
        };
        (machine.sets.intern_footprint(read) as usize == footprint).then_some(())?;
    }
    let footprints = machine.sets.footprints().len();
    let sets = machine.sets.len();
    let step = |from: &mut Reader<'_>| {
        let (step, label) = from.step()?;
        let most = match label.class() {
            Class::Wait | Class::Released => sets,
            Class::Block => footprints,
            _ => objects,
        };
        let known = label.object() == ObjectId::NONE || label.object().index() < most;
        (step.thread.index() < threads && known).then_some((step, label))
    };
    let node = |from: &mut Reader<'_>| {
        let (step, label) = step(from)?;
        let depth = from.index()?;
        Some(SavedNode { step, label, depth })
    };
    let points = from.list(|from| {
        let (step_here, label) = step(from)?;
        Some(SavedPoint {
            step: step_here,
            label,
            sleepers: from.list(|from| {
                let (step, label) = step(from)?;
                Some(Sleeper { step, label })
            })?,
            tree: from.list(node)?,
        })
    })?;
    let open = from.list(|from| {
        Some(SavedOpen {
            node: node(from)?,
            awake: from.number()? != 0,
            begins: from.number()? != 0,
            ends: from.number()? != 0,
            executed: from.index()?,
        })
    })?;
    let length = from.length()?;
    let (graphs, rest) = from.bytes.split_at_checked(length)?;
    let graphs = graphs::decode(graphs)?;
    let fits = graphs
        .as_ref()
        .is_none_or(|graphs| graphs.threads as usize <= threads && graphs.objects.len() <= objects);
    from.bytes = rest;
    let suspended = from.suspended(&step)?;
    let parts = [
        points.is_empty(),
        open.is_empty(),
        graphs.is_none(),
        suspended.frames.is_empty(),
    ];
    let is_one = parts.iter().filter(|is_absent| !**is_absent).count() == 1;
    let whole = fits && is_one && from.bytes.is_empty();
    let unfinished = Unfinished {
        points,
        open,
        graphs,
        suspended,
    };
    whole.then_some((progress, unfinished))
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Writer, &T)) {
        self.number(items.len() as u64);
        for item in items {
            each(self, item);
        }
    }

    fn spot(&mut self, Spot { file, line, column }: &Spot) {
        self.list(file.as_bytes(), |out, &byte| out.bytes.push(byte));
        self.number((*line).into());
        self.number((*column).into());
    }

    fn step(&mut self, step: Step, label: Label) {
        let class = label.class() as u64;
        let (thread, alternative) = (step.thread.0.into(), step.alternative.into());
        // The object `NONE` is the largest number; adding one turns it into 0.
        let object = label.object().0.wrapping_add(1).into();
        let (room, count) = (label.room().into(), label.count().into());
        for number in [thread, alternative, object, class, room, count] {
            self.number(number);
        }
    }

    fn node(&mut self, node: &SavedNode) {
        self.step(node.step, node.label);
        self.number(node.depth.into());
    }

    fn event(&mut self, event: &SavedEvent) {
        self.step(event.step, event.label);
        for number in [event.index, event.link.0, event.link.1] {
            self.number(number.into());
        }
    }

    fn stats(&mut self, stats: &Stats) {
        let Stats {
            complete,
            asleep,
            assumed,
            rounds,
            in_vain,
            events,
            longest,
        } = *stats;
        let longest = longest as u64;
        for number in [complete, asleep, assumed, rounds, in_vain, events, longest] {
            self.number(number);
        }
    }

    fn suspended(&mut self, suspended: &Suspended) {
        self.list(&suspended.records, |out, record| {
            out.number(record.start.into());
            out.event(&record.default);
            out.list(&record.way, |out, item| match item {
                SavedItem::Event(it) => {
                    out.number(0);
                    out.event(it);
                }
                SavedItem::Record(number) => out.number(u64::from(*number) + 1),
            });
            out.list(&record.schedule, Writer::event);
        });
        self.number(suspended.has_late.into());
        self.list(&suspended.frames, |out, frame| {
            out.number(frame.base.into());
            out.list(&frame.children, |out, child| {
                out.number(child.default.into());
                out.number(child.node.into());
                out.list(&child.schedule, Writer::event);
            });
            out.list(&frame.events, Writer::event);
            out.list(&frame.records, |out, &number| out.number(number.into()));
            out.stats(&frame.later);
        });
    }

    fn place(&mut self, place: Place, statics: &dyn Statics) -> Result<(), String> {
        let numbers: &[u64] = match place.region {
            Region::Stack { thread, depth } => &[0, thread.0.into(), depth as u64],
            Region::Heap {
                thread,
                events,
                size,
                align,
                nth,
                offset,
            } => &[
                1,
                thread.0.into(),
                events.into(),
                size as u64,
                align as u64,
                nth.into(),
                offset as u64,
            ],
            Region::External { address } => match statics.number(address) {
                Some(number) => &[2, number],
                None => {
                    return Err(format!(
                        "the test uses an object at {address:#x} that is older than the model and no \
                         static of the program, so another process has no name for it; make the \
                         object inside of the model, or a static"
                    ));
                }
            },
            Region::Thread(thread) => &[3, thread.0.into()],
            Region::Token(thread) => &[4, thread.0.into()],
            Region::Abstract(variable) => &[5, variable.into()],
        };
        for &number in numbers {
            self.number(number);
        }
        self.number(place.generation.into());
        Ok(())
    }
}

/// Reads a step and its label, and checks that their numbers have names.
type ReadStep<'a> = &'a dyn Fn(&mut Reader<'_>) -> Option<(Step, Label)>;

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn index(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn size(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    /// The length of a list; no item is shorter than a byte.
    fn length(&mut self) -> Option<usize> {
        self.size().filter(|&length| length <= self.bytes.len())
    }

    fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.length()?).map(|_| each(self)).collect()
    }

    fn spot(&mut self) -> Option<Spot> {
        let length = self.length()?;
        let (file, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(Spot {
            file: std::str::from_utf8(file).ok()?.to_owned().into(),
            line: self.index()?,
            column: self.index()?,
        })
    }

    fn awaits(&mut self) -> Option<Awaits> {
        let loops = self.list(|from| {
            Some(AwaitLoop {
                hint: from.spot()?,
                round: from.list(Reader::spot)?,
                refused: from.number()? == 1,
            })
        })?;
        Some(Awaits::default().with(loops).unwrap_or_default())
    }

    fn step(&mut self) -> Option<(Step, Label)> {
        let step = Step {
            thread: ThreadId(self.index()?),
            alternative: self.index()?,
        };
        let object = ObjectId(self.index()?.wrapping_sub(1));
        let label = Label::of(object, *ALL.get(self.size()?)?);
        let room = self.number()?.try_into().ok()?;
        let count = self.number()?.try_into().ok()?;
        Some((step, label.numbered(room, count)))
    }

    fn stats(&mut self) -> Option<Stats> {
        Some(Stats {
            complete: self.number()?,
            asleep: self.number()?,
            assumed: self.number()?,
            rounds: self.number()?,
            in_vain: self.number()?,
            events: self.number()?,
            longest: self.number()? as usize,
        })
    }

    /// `None` if the numbers are those of no suspended executions.
    fn suspended(&mut self, step: ReadStep<'_>) -> Option<Suspended> {
        let event = |from: &mut Reader<'_>| {
            let (step, label) = step(from)?;
            Some(SavedEvent {
                step,
                label,
                index: from.index()?,
                link: (from.index()?, from.index()?),
            })
        };
        let schedule = |from: &mut Reader<'_>| {
            let schedule = from.list(event)?;
            (!schedule.is_empty()).then_some(schedule)
        };
        let records = self.list(|from| {
            Some(SavedRecord {
                start: from.index()?,
                default: event(from)?,
                way: from.list(|from| match from.index()? {
                    0 => Some(SavedItem::Event(event(from)?)),
                    number => Some(SavedItem::Record(number - 1)),
                })?,
                schedule: schedule(from)?,
            })
        })?;
        let has_late = self.number()? != 0;
        let frames = self.list(|from| {
            Some(SavedFrame {
                base: from.index()?,
                children: from.list(|from| {
                    Some(SavedChild {
                        default: from.index()?,
                        node: from.index()?,
                        schedule: schedule(from)?,
                    })
                })?,
                events: from.list(event)?,
                records: from.list(Reader::index)?,
                later: from.stats()?,
            })
        })?;
        let saved = Suspended {
            records,
            has_late,
            frames,
        };
        saved.is_sound().then_some(saved)
    }

    fn place(&mut self, statics: &dyn Statics) -> Option<Place> {
        let region = match self.number()? {
            0 => Region::Stack {
                thread: ThreadId(self.index()?),
                depth: self.size()?,
            },
            1 => Region::Heap {
                thread: ThreadId(self.index()?),
                events: self.index()?,
                size: self.size()?,
                align: self.size()?,
                nth: self.index()?,
                offset: self.size()?,
            },
            2 => Region::External {
                address: statics.address(self.number()?)?,
            },
            3 => Region::Thread(ThreadId(self.index()?)),
            4 => Region::Token(ThreadId(self.index()?)),
            5 => Region::Abstract(self.index()?),
            _ => return None,
        };
        let generation = self.index()?;
        Some(Place { region, generation })
    }
}
