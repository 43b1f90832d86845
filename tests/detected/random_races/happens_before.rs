//! What happens before what, by the letter of the language?
//!
//! The events of one execution, each with the set of those that happen before it, from which the sentences of the
//! standard (C++20, [atomics.order] and [atomics.fences]) can be read off. There are no clocks, and nothing is
//! remembered that could be found again by looking.

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Release, SeqCst};

/// A set of events, a bit for each.
pub type Events = u64;

/// What an event is, as far as its order counts.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Fence(Ordering),
    /// With all that it would synchronise with if it acquired; whether it does is in the set of what comes before it.
    Read(Events),
    Other,
}

#[derive(Clone, Copy)]
struct Event {
    thread: usize,
    kind: Kind,
    before: Events,
}

/// A write to an atomic.
#[derive(Clone, Copy)]
struct Modification {
    event: usize,
    order: Ordering,
    /// Whether it is a read-modify-write.
    continues: bool,
}

/// The events so far, and the modification orders, in which they came.
#[derive(Clone)]
pub struct History {
    events: Vec<Event>,
    atomics: [Vec<Modification>; 4],
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Acquire | AcqRel | SeqCst)
}

fn releases(order: Ordering) -> bool {
    matches!(order, Release | AcqRel | SeqCst)
}

/// The events of a set.
fn each(events: Events) -> impl Iterator<Item = usize> {
    (0..u64::BITS as usize).filter(move |&event| events >> event & 1 == 1)
}

impl History {
    pub fn new() -> History {
        History {
            events: Vec::new(),
            atomics: [const { Vec::new() }; 4],
        }
    }

    /// An event by `thread` that synchronises with these others.
    pub fn add(&mut self, thread: usize, others: Events) -> usize {
        self.add_as(thread, Kind::Other, others)
    }

    fn add_as(&mut self, thread: usize, kind: Kind, others: Events) -> usize {
        let event = self.events.len();
        assert!(event < u64::BITS as usize, "a set has no room for so many");
        let mine = self.events.iter().rposition(|e| e.thread == thread);
        let directly = others | mine.map_or(0, |last| 1 << last);
        let before = each(directly).fold(directly, |all, e| all | self.events[e].before);
        self.events.push(Event {
            thread,
            kind,
            before,
        });
        event
    }

    pub fn happens_before(&self, first: usize, second: usize) -> bool {
        self.events[second].before >> first & 1 == 1
    }

    /// The last event of `thread`, if it has one.
    pub fn last(&self, thread: usize) -> Option<usize> {
        self.events.iter().rposition(|e| e.thread == thread)
    }

    pub fn fence(&mut self, thread: usize, order: Ordering) {
        // [atomics.fences] 2 and 4: an atomic operation that is sequenced before the fence reads the value.
        let read = |event: &Event| match event.kind {
            Kind::Read(sources) if event.thread == thread => sources,
            _ => 0,
        };
        let sources = self.events.iter().map(read).fold(0, |all, some| all | some);
        let learnt = if acquires(order) { sources } else { 0 };
        self.add_as(thread, Kind::Fence(order), learnt);
    }

    /// What an acquire operation synchronises with that reads the last value of this atomic.
    fn sources(&self, atomic: usize) -> Events {
        let mut sources = 0;
        for write in self.atomics[atomic].iter().rev() {
            // [atomics.order] 2: it takes its value from this one, or from what this one is the head of.
            if releases(write.order) {
                sources |= 1 << write.event;
            }
            // [atomics.fences] 2 and 3: a release fence is sequenced before the write.
            let writer = self.events[write.event].thread;
            for (event, it) in self.events[..write.event].iter().enumerate() {
                if it.thread == writer && matches!(it.kind, Kind::Fence(order) if releases(order)) {
                    sources |= 1 << event;
                }
            }
            // [intro.races] 5: only read-modify-writes are in a release sequence that another write heads.
            if !write.continues {
                break;
            }
        }
        sources
    }

    pub fn load(&mut self, thread: usize, atomic: usize, order: Ordering) {
        self.read(thread, atomic, order);
    }

    fn read(&mut self, thread: usize, atomic: usize, order: Ordering) -> usize {
        let sources = self.sources(atomic);
        let learnt = if acquires(order) { sources } else { 0 };
        self.add_as(thread, Kind::Read(sources), learnt)
    }

    pub fn store(&mut self, thread: usize, atomic: usize, order: Ordering) {
        let event = self.add(thread, 0);
        self.atomics[atomic].push(Modification {
            event,
            order,
            continues: false,
        });
    }

    pub fn read_modify_write(&mut self, thread: usize, atomic: usize, order: Ordering) {
        let event = self.read(thread, atomic, order);
        self.atomics[atomic].push(Modification {
            event,
            order,
            continues: true,
        });
    }
}
