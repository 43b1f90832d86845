//! Does the detector grant exactly what the language grants?

use std::panic::Location;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use super::cells::Cells;
use super::*;
use crate::rt::event::id::{ObjectId, Place};
use crate::rt::event::mix::{STEP, mix};
use crate::rt::event::operation::{OpKind, Operation, Outcome, Rmw};
use crate::rt::relation::independence::{Label, Nature};

const P: ThreadId = ThreadId(1);
const Q: ThreadId = ThreadId(2);
const R: ThreadId = ThreadId(3);

fn event(thread: ThreadId, object: u32, kind: OpKind, outcome: Outcome) -> Event {
    let operation = Operation {
        object: ObjectId(object),
        kind,
    };
    Event {
        thread,
        index: 0,
        operation,
        outcome,
        label: Label::new(operation.object, &kind, outcome, Nature::Plain),
        alternative: 0,
        alternatives: 1,
        before: None,
        site: Location::caller(),
    }
}

fn store(thread: ThreadId, order: Ordering) -> Event {
    event(thread, 0, OpKind::Store { order, value: 1 }, Outcome::Done)
}

fn load(thread: ThreadId, order: Ordering) -> Event {
    event(thread, 0, OpKind::Load { order }, Outcome::Value(1))
}

fn add(thread: ThreadId, order: Ordering) -> Event {
    let kind = OpKind::Rmw {
        order,
        rmw: Rmw::Add,
        operand: 1,
        blind: false,
    };
    event(thread, 0, kind, Outcome::Value(1))
}

/// An event, or a fence.
#[derive(Debug)]
enum Does {
    Event(Event),
    Fence(Fence),
}

impl From<Event> for Does {
    fn from(event: Event) -> Does {
        Does::Event(event)
    }
}

fn fence(thread: ThreadId, order: Ordering) -> Does {
    Does::Fence(a_fence(thread, order))
}

fn a_fence(thread: ThreadId, order: Ordering) -> Fence {
    Fence {
        thread,
        after: 0,
        before: 0,
        order,
        site: Location::caller(),
        made: Vec::new(),
    }
}

/// Names for some objects.
fn names() -> Names {
    let mut names = Names::new();
    for number in 0..8 {
        names.object(place(Region::Abstract(number)));
    }
    names
}

fn place(region: Region) -> Place {
    Place {
        region,
        generation: 0,
    }
}

/// Whether a write by P, these events, and a read by the thread of the last of them race.
fn races(events: &[Event]) -> bool {
    let events: Vec<Does> = events.iter().copied().map(Does::Event).collect();
    races_with_fences(&events)
}

/// [`races`] with fences between the events.
fn races_with_fences(does: &[Does]) -> bool {
    let mut detector = Detector::default();
    detector.activate(Past::default(), &[]);
    let access = |thread, effect| Access {
        thread,
        effect,
        site: Location::caller(),
        after: 0,
    };
    let cell = (64, 8);
    let first = access(P, Effect::Write);
    detector.begin(cell, None, None, first).expect("the first");
    detector.end(cell, P, first.site, true);
    for it in does {
        match it {
            Does::Event(event) => detector
                .observe(event, &names())
                .expect("no plain access to its object"),
            Does::Fence(fence) => detector.fence(fence),
        }
    }
    let last = does.last().map_or(Q, |it| match it {
        Does::Event(event) => event.thread,
        Does::Fence(fence) => fence.thread,
    });
    detector
        .begin(cell, None, None, access(last, Effect::Read))
        .is_err()
}

#[test]
fn a_release_store_and_an_acquire_load_order_and_nothing_weaker_does() {
    for write in [Relaxed, Release, SeqCst] {
        for read in [Relaxed, Acquire, SeqCst] {
            let ordered = write != Relaxed && read != Relaxed;
            let events = [store(P, write), load(Q, read)];
            assert_eq!(races(&events), !ordered, "{write:?} and {read:?}");
        }
    }
}

#[test]
fn fences_make_up_for_relaxed_accesses_on_their_side() {
    assert!(!races_with_fences(&[
        fence(P, Release),
        store(P, Relaxed).into(),
        load(Q, Acquire).into()
    ]));
    assert!(!races_with_fences(&[
        store(P, Release).into(),
        load(Q, Relaxed).into(),
        fence(Q, Acquire)
    ]));
    let both = [
        fence(P, SeqCst),
        store(P, Relaxed).into(),
        load(Q, Relaxed).into(),
        fence(Q, AcqRel),
    ];
    assert!(!races_with_fences(&both));
    // On the wrong side, or of the wrong kind, the fences do not help.
    assert!(races_with_fences(&[
        store(P, Relaxed).into(),
        fence(P, Release),
        load(Q, Acquire).into()
    ]));
    assert!(races_with_fences(&[
        store(P, Release).into(),
        fence(Q, Acquire),
        load(Q, Relaxed).into()
    ]));
    assert!(races_with_fences(&[
        fence(P, Acquire),
        store(P, Relaxed).into(),
        load(Q, Acquire).into()
    ]));
}

#[test]
fn what_comes_behind_a_fence_is_not_told_by_it() {
    for (write_first, told) in [(true, true), (false, false)] {
        let mut detector = Detector::default();
        detector.activate(Past::default(), &[]);
        let access = |thread, effect| Access {
            thread,
            effect,
            site: Location::caller(),
            after: 0,
        };
        let first = access(P, Effect::Write);
        let write = |detector: &mut Detector| {
            (detector.begin((64, 8), None, None, first)).expect("the first");
            detector.end((64, 8), P, first.site, true);
        };
        if write_first {
            write(&mut detector);
            detector.fence(&a_fence(P, Release));
        } else {
            detector.fence(&a_fence(P, Release));
            write(&mut detector);
        }
        for event in [store(P, Relaxed), load(Q, Acquire)] {
            (detector.observe(&event, &names())).expect("no plain access to its object");
        }
        let read = detector.begin((64, 8), None, None, access(Q, Effect::Read));
        assert_eq!(
            read.is_ok(),
            told,
            "a write in front of the fence: {write_first}"
        );
        if let Err(race) = read {
            assert_eq!((race.lasts, race.time), (Lasts::Until(0), 1));
        }
    }
}

#[test]
fn a_release_sequence_is_kept_by_a_read_modify_write_and_broken_by_a_store() {
    assert!(!races(&[
        store(P, Release),
        add(R, Relaxed),
        load(Q, Acquire)
    ]));
    assert!(races(&[
        store(P, Release),
        store(R, Relaxed),
        load(Q, Acquire)
    ]));
    // A store of the same thread ends the release sequence, too, since C++20.
    assert!(races(&[
        store(P, Release),
        store(P, Relaxed),
        load(Q, Acquire)
    ]));
    assert!(!races(&[add(P, Release), add(R, Relaxed), add(Q, Acquire)]));
}

#[test]
fn a_failed_compare_exchange_is_a_load_with_its_own_ordering() {
    for (failure, racy) in [(Acquire, false), (Relaxed, true)] {
        let kind = OpKind::CompareExchange {
            success: SeqCst,
            failure,
            expected: 0,
            new: 2,
            spurious: false,
        };
        let failed = event(Q, 0, kind, Outcome::Failure(1));
        assert_eq!(races(&[store(P, Release), failed]), racy);
    }
}

#[test]
fn locks_order_and_readers_do_not_order_each_other() {
    let op = |thread, kind| event(thread, 5, kind, Outcome::Done);
    let unlock = OpKind::Unlock { changed: true };
    assert!(!races(&[
        op(P, OpKind::Lock),
        op(P, unlock),
        op(Q, OpKind::Lock)
    ]));
    let reader = [op(P, OpKind::ReadLock), op(P, OpKind::UnlockRead)];
    assert!(races(&[reader[0], reader[1], op(Q, OpKind::ReadLock)]));
    assert!(!races(&[reader[0], reader[1], op(Q, OpKind::WriteLock)]));
}

#[test]
fn a_message_orders_its_sender_with_who_receives_it_and_with_nobody_else() {
    let sent = |thread, index| event(thread, 5, OpKind::Send, Outcome::Success(index));
    let recv = |index| event(Q, 5, OpKind::TryRecv, Outcome::Success(index));
    assert!(!races(&[sent(P, 0), recv(0)]));
    assert!(races(&[sent(R, 0), sent(P, 1), recv(0)]));
    assert!(!races(&[sent(R, 0), sent(P, 1), recv(0), recv(1)]));
}

#[test]
fn what_a_thread_does_after_it_told_is_not_known() {
    let mut detector = Detector::default();
    detector.activate(Past::default(), &[]);
    let access = |thread, effect| Access {
        thread,
        effect,
        site: Location::caller(),
        after: 0,
    };
    let observed = |result: Result<(), _>| result.expect("no plain access to its object");
    observed(detector.observe(&store(P, Release), &names()));
    let first = access(P, Effect::Write);
    detector
        .begin((64, 8), None, None, first)
        .expect("the first");
    detector.end((64, 8), P, first.site, true);
    observed(detector.observe(&load(Q, Acquire), &names()));
    let second = access(Q, Effect::Write);
    assert!(detector.begin((64, 8), None, None, second).is_err());
}

#[test]
fn operations_that_commute_tell_and_learn_the_same_in_either_order() {
    use crate::rt::object::State;
    use crate::rt::object::obligations::{self, kinds};
    use crate::rt::relation::independence::{ReadSets, commutes};

    let sets = ReadSets::default();
    let step = |state: &mut State, (thread, kind, alternative): (ThreadId, OpKind, u32)| {
        if !state.enabled(thread, &kind) || alternative >= state.alternatives(&kind) {
            return None;
        }
        let outcome = state.apply(thread, &kind, alternative);
        let mut event = event(thread, 0, kind, outcome);
        event.label = state.label(&event.operation, outcome);
        Some(event)
    };
    let observe = |knowledge: &mut Knowledge, event: &Event| {
        let known = knowledge.observe(event, |_, _| Ok(true));
        known.expect("nobody says otherwise");
    };
    let after = |state: &State, first, second| {
        let mut state = state.clone();
        let mut knowledge = Knowledge::default();
        // Every thread has performed events, and the object has been released to.
        for thread in [R, obligations::P, obligations::Q] {
            knowledge.fence(&a_fence(thread, SeqCst));
        }
        for kind in [OpKind::Unlock { changed: true }, OpKind::UnlockRead] {
            observe(&mut knowledge, &event(R, 0, kind, Outcome::Done));
        }
        let sent = event(R, 0, OpKind::Send, Outcome::Success(4));
        observe(&mut knowledge, &sent);
        observe(&mut knowledge, &step(&mut state, first)?);
        observe(&mut knowledge, &step(&mut state, second)?);
        Some(knowledge.summary())
    };
    let mut pairs = 0;
    for kind in kinds() {
        for state in &kind.states {
            let of = |thread| {
                let mine = kind.operations.iter().copied();
                mine.filter(move |op| (kind.owns)(state, thread, op))
                    .flat_map(move |op| (0..3).map(move |a| (thread, op, a)))
            };
            for p in of(obligations::P) {
                for q in of(obligations::Q) {
                    let alone = |next| step(&mut state.clone(), next).map(|event| event.label);
                    let (Some(a), Some(b)) = (alone(p), alone(q)) else {
                        continue;
                    };
                    if commutes(&sets, a, b) {
                        pairs += 1;
                        let (one, other) = (after(state, p, q), after(state, q, p));
                        assert_eq!(one, other, "{p:?} and {q:?} in {state:?}");
                    }
                }
            }
        }
    }
    assert!(pairs >= 100, "{pairs}");
}

#[test]
fn a_spawn_tells_the_child_and_the_end_of_a_thread_who_joins_it() {
    let of_thread = |thread, object, kind| event(thread, object, kind, Outcome::Done);
    let end = |thread| of_thread(thread, 5, OpKind::Exit);
    let join = |thread, child| of_thread(thread, 5, OpKind::Join { child });
    assert!(!races(&[end(P), join(Q, P)]));
    // The trace may lack the event by which the thread ends.
    assert!(!races(&[join(Q, P)]));
    // A join of another thread teaches nothing of this one.
    assert!(races(&[end(P), join(Q, R)]));
    assert!(races(&[end(P), end(R), join(Q, R)]));
    // But a join teaches what the joined thread has learnt of it.
    assert!(!races(&[join(R, P), join(Q, R)]));
    let spawn = |child| of_thread(P, 5, OpKind::Spawn { child });
    let start = |thread| of_thread(thread, u32::MAX, OpKind::Start);
    assert!(!races(&[spawn(Q), start(Q)]));
    assert!(races(&[spawn(R), start(Q)]));
    // After a spawn the parent still knows what it knew, and so does the child.
    let child = of_thread(Q, 6, OpKind::Spawn { child: R });
    assert!(!races(&[spawn(Q), child, start(R)]));
    assert!(!races(&[spawn(Q), child, start(Q)]));
}

/// The beginning of a block that P has allocated before its first event.
const BLOCK_OF_P: Region = Region::Heap {
    thread: P,
    events: 0,
    size: 8,
    align: 8,
    nth: 0,
    offset: 0,
};

/// Two questions for a block that P has allocated at its beginning, with P's store to, and Q's load
/// of, another object in between, with these orderings: whether P and Q race if Q reads a cell in
/// the block, and whether they race if Q loads an atomic in the block.
fn made(write: Ordering, read: Ordering) -> (bool, bool) {
    let block = BLOCK_OF_P;
    let mut names = names();
    let inside = names.object(place(block));
    let mut detector = Detector::default();
    detector.activate(Past::default(), &[]);
    for event in [store(P, write), load(Q, read)] {
        let told = detector.observe(&event, &names);
        told.expect("the pointer is nothing that was made");
    }
    let access = Access {
        thread: Q,
        effect: Effect::Read,
        site: Location::caller(),
        after: 1,
    };
    let cell = detector.begin((64, 8), None, Some(block), access);
    if let Err(race) = &cell {
        assert_eq!((race.first.thread, race.first.effect), (P, Effect::Make));
        assert_eq!(race.block, Block::around(&block));
    }
    let kind = OpKind::Load { order: Acquire };
    let used = event(Q, inside.0, kind, Outcome::Value(1));
    (cell.is_err(), detector.observe(&used, &names).is_err())
}

#[test]
fn what_is_in_a_block_is_known_to_who_has_learnt_of_its_allocation() {
    assert_eq!(made(Release, Acquire), (false, false));
    assert_eq!(made(Relaxed, Acquire), (true, true));
    assert_eq!(made(Release, Relaxed), (true, true));
}

#[test]
fn what_one_thread_has_learnt_of_a_block_another_one_has_not() {
    let mut names = names();
    let inside = names.object(place(BLOCK_OF_P)).0;
    let kind = OpKind::Load { order: Relaxed };
    let used_by = |thread| event(thread, inside, kind, Outcome::Value(1));
    let mut detector = Detector::default();
    detector.activate(Past::default(), &[]);
    for event in [store(P, Release), load(Q, Acquire), used_by(Q), used_by(Q)] {
        let told = detector.observe(&event, &names);
        told.expect("P made it, and Q has learnt of that");
    }
    assert!(detector.observe(&used_by(R), &names).is_err());
    // In another execution another thread may have made the block at another time.
    detector.reset();
    assert!(detector.observe(&used_by(Q), &names).is_err());
}

/// A random number below `n`.
fn draw(state: &mut u64, n: usize) -> usize {
    *state = mix(state.wrapping_add(STEP));
    (*state % n as u64) as usize
}

/// The rules of [`Knowledge`] for atomics and fences, without any shortcut.
struct Plain {
    /// For each thread its clock, the clock that its relaxed stores publish, and the clock that its
    /// relaxed loads have seen.
    threads: Vec<[Vec<u32>; 3]>,
    told: Vec<Vec<u32>>,
}

const KNOWS: usize = 0;
const RELEASED: usize = 1;
const SEEN: usize = 2;

impl Plain {
    fn new(threads: usize, objects: usize) -> Plain {
        let nothing = vec![0; threads];
        let thread = || [nothing.clone(), nothing.clone(), nothing.clone()];
        Plain {
            threads: (0..threads).map(|_| thread()).collect(),
            told: vec![nothing.clone(); objects],
        }
    }

    fn observe(&mut self, does: &Does) {
        let join = |mine: &mut Vec<u32>, theirs: &[u32]| {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine = (*mine).max(*theirs);
            }
        };
        let thread = match does {
            Does::Event(event) => event.thread,
            Does::Fence(fence) => fence.thread,
        };
        let me = thread.index();
        self.threads[me][KNOWS][me] += 1;
        let event = match *does {
            Does::Event(ref event) => event,
            Does::Fence(Fence { order, .. }) => {
                if acquires(order) {
                    let seen = self.threads[me][SEEN].clone();
                    join(&mut self.threads[me][KNOWS], &seen);
                }
                if releases(order) {
                    self.threads[me][RELEASED] = self.threads[me][KNOWS].clone();
                }
                return;
            }
        };
        let (reads, writes) = match event.operation.kind {
            OpKind::Load { order } => (Some(order), None),
            OpKind::Store { order, .. } => (None, Some(order)),
            OpKind::Rmw { order, .. } => (Some(order), Some(order)),
            OpKind::CompareExchange {
                success, failure, ..
            } => {
                if event.outcome.succeeded() {
                    (Some(success), Some(success))
                } else {
                    (Some(failure), None)
                }
            }
            _ => unreachable!("no other operation is drawn"),
        };
        let told = &mut self.told[event.operation.object.index()];
        if let Some(order) = reads {
            let learnt = if acquires(order) { KNOWS } else { SEEN };
            join(&mut self.threads[me][learnt], told);
        }
        if let Some(order) = writes {
            let from = if releases(order) { KNOWS } else { RELEASED };
            if reads.is_none() {
                told.fill(0);
            }
            join(told, &self.threads[me][from]);
        }
    }
}

#[test]
fn no_short_cut_changes_what_a_thread_knows() {
    const ORDERS: [Ordering; 5] = [Relaxed, Acquire, Release, AcqRel, SeqCst];
    let mut random = 1;
    for round in 0..400 {
        // Some rounds have more threads than a clock covers without memory on the heap.
        let (threads, objects) = (2 + round % 10, 1 + draw(&mut random, 3));
        let mut plain = Plain::new(threads, objects);
        let mut knowledge = Knowledge::default();
        let mut events = Vec::new();
        for _ in 0..60 {
            let thread = ThreadId(draw(&mut random, threads) as u32);
            let object = draw(&mut random, objects) as u32;
            let order = ORDERS[draw(&mut random, ORDERS.len())];
            let weaker = [Relaxed, Acquire, SeqCst][draw(&mut random, 3)];
            let exchange = OpKind::CompareExchange {
                success: order,
                failure: weaker,
                expected: 0,
                new: 1,
                spurious: false,
            };
            let next: Does = match draw(&mut random, 6) {
                0 => event(
                    thread,
                    object,
                    OpKind::Load { order: weaker },
                    Outcome::Value(1),
                )
                .into(),
                1 => {
                    let order = [Relaxed, Release, SeqCst][draw(&mut random, 3)];
                    event(
                        thread,
                        object,
                        OpKind::Store { order, value: 1 },
                        Outcome::Done,
                    )
                    .into()
                }
                2 => event(
                    thread,
                    object,
                    add(thread, order).operation.kind,
                    Outcome::Value(1),
                )
                .into(),
                3 => event(thread, object, exchange, Outcome::Success(0)).into(),
                4 => event(thread, object, exchange, Outcome::Failure(1)).into(),
                _ => fence(thread, order),
            };
            plain.observe(&next);
            match &next {
                Does::Event(event) => (knowledge.observe(event, |_, _| Ok(true))).expect("no race"),
                Does::Fence(fence) => knowledge.fence(fence),
            }
            events.push(next);
            for (index, known) in plain.threads.iter().enumerate() {
                let clock = knowledge.of(ThreadId(index as u32));
                let found: Vec<u32> = (0..threads as u32)
                    .map(|t| clock.get(ThreadId(t)))
                    .collect();
                assert_eq!(found, known[KNOWS], "thread {index} after {events:?}");
            }
        }
    }
}

#[test]
fn cells_are_those_that_this_execution_has_met_and_not_forgotten() {
    const STARTS: [usize; 6] = [64, 72, 128, 4096, 4104, 1 << 20];
    let mut random = 1;
    let mut cells = Cells::default();
    let mut known = std::collections::BTreeMap::new();
    let epoch = |time| Epoch {
        access: Access {
            thread: P,
            effect: Effect::Write,
            site: Location::caller(),
            after: 0,
        },
        time,
        until: time,
    };
    for time in 0..20_000 {
        let start = STARTS[draw(&mut random, STARTS.len())];
        let memory = (start, 8 * (1 + draw(&mut random, 2)));
        match draw(&mut random, 40) {
            0 => {
                cells.reset();
                known.clear();
            }
            // A block, a block around several, or a stack.
            1..8 => {
                let length = [8, 100, 1 << 21][draw(&mut random, 3)];
                cells.forget(start, length);
                known.retain(|&(at, _), _| !(start..start + length).contains(&at));
            }
            _ => {
                let made = cells.meet(memory, || (Some(epoch(time)), None)).write;
                let first = *known.entry(memory).or_insert(time);
                assert_eq!(made.map(|write| write.time), Some(first));
            }
        }
        for size in [8, 16] {
            let memory = (start, size);
            let found = cells.get(memory).and_then(|cell| cell.write);
            let found = found.map(|write| write.time);
            assert_eq!(found, known.get(&memory).copied(), "{memory:?} at {time}");
        }
        let length = [1, 9, 64, 5000][draw(&mut random, 4)];
        let within = cells.within(start, length).filter_map(|cell| cell.write);
        let within: Vec<u32> = within.map(|write| write.time).collect();
        let inside = known.range((start, 0)..(start + length, 0));
        assert_eq!(within, inside.map(|(_, &time)| time).collect::<Vec<_>>());
        assert_eq!(cells.any_within(start, length), !within.is_empty());
    }
}
