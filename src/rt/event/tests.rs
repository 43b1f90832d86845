//! Do the answers of a trace agree with its events?

use std::panic::Location;

use crate::rt::event::id::ObjectId;
use crate::rt::event::mix::mix_all;
use crate::rt::event::operation::OpKind;
use crate::rt::event::*;
use crate::rt::relation::independence::Nature;

const MAIN: ThreadId = ThreadId(0);

/// The most threads.
const THREADS: u32 = 5;

/// An event of this thread, which has made `index` events before.
fn event(thread: ThreadId, index: u32, kind: OpKind, alternatives: u32) -> Event {
    let object = ObjectId(1);
    Event {
        thread,
        index,
        operation: Operation { object, kind },
        outcome: Outcome::Done,
        label: Label::new(object, &kind, Outcome::Done, Nature::Plain),
        alternatives,
        alternative: 0,
        before: None,
        site: Location::caller(),
    }
}

/// A trace, and the expected answers, computed from the events alone for each question.
#[derive(Clone)]
struct Told {
    trace: Trace,
    events: Vec<Event>,
    begun: Vec<(u32, ThreadId)>,
}

impl Told {
    fn new() -> Told {
        Told {
            trace: Trace::new(),
            events: Vec::new(),
            begun: Vec::new(),
        }
    }

    /// The positions of the events with this property.
    fn those(&self, are: impl Fn(&Event) -> bool) -> Vec<u32> {
        let all = (0..).zip(&self.events);
        all.filter(|(_, event)| are(event))
            .map(|(at, _)| at)
            .collect()
    }

    fn spawn_of(&self, thread: ThreadId) -> Option<u32> {
        let spawn = OpKind::Spawn { child: thread };
        self.those(|event| event.operation.kind == spawn).pop()
    }

    fn exists(&self, thread: ThreadId) -> bool {
        thread == MAIN || self.spawn_of(thread).is_some()
    }

    /// The thread makes its next event: on the fast path if possible, or, with `pushes`, with all
    /// events placed before.
    fn step(&mut self, thread: ThreadId, kind: OpKind, alternatives: u32, pushes: bool) {
        let index = self.those(|event| event.thread == thread).len() as u32;
        let event = event(thread, index, kind, alternatives);
        self.events.push(event);
        if pushes {
            self.trace.place();
            self.trace.push(Event { index: 0, ..event });
            return;
        }
        let may_spawn = matches!(kind, OpKind::Spawn { .. });
        if may_spawn || !self.trace.append_in_place(event) {
            self.trace.append(event);
        }
    }

    /// The code of the thread begins.
    fn begin(&mut self, thread: ThreadId) {
        self.begun.push((self.events.len() as u32, thread));
        self.trace.note_begin(self.events.len(), thread);
    }

    fn truncate(&mut self, length: usize) {
        self.trace.truncate(length);
        self.begun.retain(|&(at, _)| (at as usize) < length);
        self.events.truncate(length);
    }

    fn cut(&mut self, length: usize, begun: usize) {
        self.trace.cut(length, begun);
        self.begun.truncate(begun);
        self.begun.retain(|&(at, _)| at as usize <= length);
        self.events.truncate(length);
    }

    /// Compares all answers of the trace, without placing its events.
    fn check(&self) {
        let mut trace = self.trace.clone();
        trace.place();
        for thread in (0..THREADS).map(ThreadId) {
            let positions = self.those(|event| event.thread == thread);
            assert_eq!(trace.positions_of(thread), positions, "{thread:?}");
            assert_eq!(trace.spawn_of(thread), self.spawn_of(thread), "{thread:?}");
        }
        let indices = |events: &[Event]| -> Vec<_> {
            let each = events.iter();
            each.map(|event| (event.thread, event.index)).collect()
        };
        assert_eq!(indices(trace.events()), indices(&self.events));
        let length = self.events.len() as u32;
        let mut turns: Vec<_> = trace.turns.behind(0, length).collect();
        // The last turn may have no event yet.
        turns.pop_if(|(_, turn)| turn.start == length);
        let lengths = |(thread, turn): (_, std::ops::Range<u32>)| (thread, turn.len());
        let turns: Vec<_> = turns.into_iter().map(lengths).collect();
        let expected = (self.events).chunk_by(|one, next| one.thread == next.thread);
        let expected: Vec<_> = expected.map(|turn| (turn[0].thread, turn.len())).collect();
        assert_eq!(turns, expected);
        assert_eq!(trace.notable(), self.those(is_notable));
        assert_eq!(trace.begun[..], self.begun);
    }
}

/// The turns and places of a trace agree with its events, in whatever way the events were added.
#[test]
fn whose_events_are_where_is_known_after_whatever_is_done_to_a_trace() {
    for seed in 0..300 {
        let mut told = Told::new();
        let mut whole: Option<Told> = None;
        for step in 0..200 {
            let mut drawn = 0;
            let mut below = |n: u64| {
                drawn += 1;
                mix_all([seed, step, drawn]) % n
            };
            // Mostly the same thread makes the next event.
            let last = told.events.last().map_or(MAIN, |event| event.thread);
            let other = ThreadId(below(u64::from(THREADS)) as u32);
            let thread = match below(3) {
                0 if told.exists(other) => other,
                _ => last,
            };
            // The length to keep may exceed that of the trace.
            let length = told.events.len() + 2;
            let pushes = below(8) == 0;
            match below(20) {
                0..=9 => told.step(thread, OpKind::Retain, 1, pushes),
                10 => told.step(thread, OpKind::Lock, 1, pushes),
                11 => told.step(thread, OpKind::Retain, 2, pushes),
                12 | 13 if !told.exists(other) => {
                    told.step(thread, OpKind::Spawn { child: other }, 1, pushes);
                }
                12..=15 => told.begin(thread),
                16 => told.trace.place(),
                17 => told.truncate(length - below(length as u64 + 1).min(8) as usize),
                18 => {
                    let begun = told.begun.len() + 1 - below(2) as usize;
                    told.cut(length - below(length as u64 + 1).min(8) as usize, begun);
                }
                // A suffix is hidden for a while.
                _ => match whole.take() {
                    Some(all) => told = all,
                    None => {
                        whole = Some(told.clone());
                        told.cut(below(length as u64) as usize, told.begun.len());
                    }
                },
            }
            told.check();
        }
    }
}
