//! Does happens-before, as computed, agree with its definition?

use std::panic::Location;
use std::sync::atomic::Ordering;

use crate::rt::event::mix::mix_all;
use crate::rt::event::operation::Operation;
use crate::rt::relation::happens_before::*;
use crate::rt::relation::independence::{Label, Nature, ordered};

const THREADS: u32 = 5;
const OBJECTS: usize = 2;

const LOAD: OpKind = OpKind::Load {
    order: Ordering::SeqCst,
};
const STORE: OpKind = OpKind::Store {
    value: 1,
    order: Ordering::SeqCst,
};

/// Pseudorandom numbers.
struct Draw {
    seed: u64,
    drawn: u64,
}

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.drawn += 1;
        (mix_all([self.seed, self.drawn]) % n as u64) as usize
    }
}

fn push(trace: &mut Trace, thread: ThreadId, kind: OpKind, object: ObjectId) {
    trace.push(Event {
        thread,
        index: 0,
        operation: Operation { object, kind },
        outcome: Outcome::Done,
        label: Label::new(object, &kind, Outcome::Done, Nature::Plain),
        alternatives: 1,
        alternative: 0,
        before: None,
        site: Location::caller(),
    });
}

/// The threads that no thread has joined.
fn running(trace: &Trace) -> Vec<ThreadId> {
    let kinds = || trace.events().iter().map(|event| event.operation.kind);
    let threads = (0..THREADS).map(ThreadId);
    threads
        .filter(|&thread| {
            let child = thread;
            let is_there =
                child == ThreadId::MAIN || kinds().any(|it| it == OpKind::Spawn { child });
            is_there && kinds().all(|it| it != OpKind::Join { child })
        })
        .collect()
}

/// For each event the events that happen before it, by the definition.
fn definition(trace: &Trace) -> Vec<Vec<bool>> {
    let mut all: Vec<Vec<bool>> = Vec::new();
    for (position, event) in trace.events().iter().enumerate() {
        let mut mine = vec![false; trace.len()];
        for (earlier, other) in trace.events()[..position].iter().enumerate() {
            // All events of a thread happen after its spawn and before its join.
            let spawns = |child| other.operation.kind == OpKind::Spawn { child };
            let is_joined = match event.operation.kind {
                OpKind::Join { child } => other.thread == child || spawns(child),
                _ => false,
            };
            let is_direct = other.thread == event.thread
                || spawns(event.thread)
                || is_joined
                || ordered(&ReadSets::default(), other.label, event.label);
            if is_direct {
                mine[earlier] = true;
                for (mine, its) in mine.iter_mut().zip(&all[earlier]) {
                    *mine |= its;
                }
            }
        }
        all.push(mine);
    }
    all
}

/// Computes the clocks of the events that have none, and compares all clocks with the definition.
#[track_caller]
fn extend_and_compare(clocks: &mut HappensBefore, trace: &Trace) {
    clocks.extend(trace, &ReadSets::default());
    for (later, before) in definition(trace).iter().enumerate() {
        for (earlier, &is_before) in before[..later].iter().enumerate() {
            let told = clocks.before(earlier as u32, later as u32);
            assert_eq!(told, is_before, "{earlier} and {later} of {trace:?}");
        }
    }
}

/// Threads are joined one after the other, by a thread that may already know of their events, and
/// an execution shares a prefix with the one before it.
#[test]
fn clocks_say_of_spawns_joins_and_accesses_what_the_definition_says() {
    for seed in 0..300 {
        let mut draw = Draw { seed, drawn: 0 };
        let (mut trace, mut clocks) = (Trace::new(), HappensBefore::default());
        for _ in 0..6 {
            let kept = draw.below(trace.len() + 1);
            trace.truncate(kept);
            clocks.truncate(kept);
            for _ in 0..draw.below(12) {
                let threads = running(&trace);
                let thread = threads[draw.below(threads.len())];
                let child = ThreadId(draw.below(THREADS as usize) as u32);
                let known = trace.events().iter().map(|event| event.operation.kind);
                let is_new = !known.clone().any(|it| it == OpKind::Spawn { child });
                let object = ObjectId(draw.below(OBJECTS) as u32);
                match draw.below(4) {
                    0 if is_new && child != ThreadId::MAIN => {
                        push(&mut trace, thread, OpKind::Spawn { child }, ObjectId::NONE);
                    }
                    0 | 1 => push(&mut trace, thread, LOAD, object),
                    2 => push(&mut trace, thread, STORE, object),
                    // A thread joins some of the others, one after the other.
                    _ => {
                        for child in threads {
                            if child != ThreadId::MAIN && child != thread && draw.below(2) == 0 {
                                push(&mut trace, thread, OpKind::Join { child }, ObjectId::NONE);
                            }
                        }
                    }
                }
            }
            extend_and_compare(&mut clocks, &trace);
        }
    }
}

/// A join that adds no event has the clock of the join before it. That clock stays if only the
/// later join is forgotten.
#[test]
fn a_join_that_tells_nothing_new_is_forgotten_without_the_clock_that_it_shares() {
    let [main, writer, reader, late] = [0, 1, 2, 3].map(ThreadId);
    let object = ObjectId(0);
    let (mut trace, mut clocks) = (Trace::new(), HappensBefore::default());
    let join = |trace: &mut Trace, thread, child| {
        push(trace, thread, OpKind::Join { child }, ObjectId::NONE);
    };
    for child in [writer, reader, late] {
        push(&mut trace, main, OpKind::Spawn { child }, ObjectId::NONE);
    }
    push(&mut trace, writer, STORE, object);
    push(&mut trace, reader, LOAD, object);
    join(&mut trace, main, reader);
    let kept = trace.len();
    // The store already happens before an event of the main thread, through the reader.
    join(&mut trace, main, writer);
    extend_and_compare(&mut clocks, &trace);

    trace.truncate(kept);
    clocks.truncate(kept);
    // The event gets a clock of its own, which is the next one.
    push(&mut trace, late, LOAD, object);
    join(&mut trace, main, late);
    extend_and_compare(&mut clocks, &trace);
}

#[test]
fn joins_of_two_threads_one_behind_the_other_have_clocks_of_their_own() {
    let [main, other, third, fourth] = [0, 1, 2, 3].map(ThreadId);
    let (mut trace, mut clocks) = (Trace::new(), HappensBefore::default());
    for child in [other, third, fourth] {
        push(&mut trace, main, OpKind::Spawn { child }, ObjectId::NONE);
    }
    push(&mut trace, third, STORE, ObjectId(0));
    push(&mut trace, fourth, STORE, ObjectId(1));
    for (thread, child) in [(main, third), (other, fourth)] {
        push(&mut trace, thread, OpKind::Join { child }, ObjectId::NONE);
    }
    extend_and_compare(&mut clocks, &trace);
}
