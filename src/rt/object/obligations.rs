//! Does every kind of object satisfy the assumptions of the exploration?
//!
//! The tests try all small states and all pairs of operations of two threads. Operations that
//! commute may be executed in either order with the same labels and the same state, and neither
//! disables the other. If one operation enables the other, the two are ordered.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;

use super::State;
use super::barrier::Barrier;
use super::channel::Channel;
use super::condvar::Condvar;
use super::mutex::Mutex;
use super::once::Once;
use super::rwlock::RwLock;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{AtomicType, Key, OpKind, Operation, Outcome, Rmw, Touch};
use crate::rt::loops::spin::{Meaning, meaning};
use crate::rt::relation::independence::{Label, Nature, ReadSets, commutes, ordered};

pub(crate) const P: ThreadId = ThreadId(1);
pub(crate) const Q: ThreadId = ThreadId(2);

/// Small states of a kind, and its operations. `owns` tells whether the thread may perform the
/// operation in that state.
pub(crate) struct Kind {
    pub(crate) states: Vec<State>,
    pub(crate) operations: Vec<OpKind>,
    pub(crate) owns: fn(&State, ThreadId, &OpKind) -> bool,
}

pub(crate) fn kinds() -> Vec<Kind> {
    let exchange = |expected, new| OpKind::CompareExchange {
        success: SeqCst,
        failure: SeqCst,
        expected,
        new,
        spurious: true,
    };
    let rmw = |rmw, operand| OpKind::Rmw {
        order: SeqCst,
        rmw,
        operand,
        blind: false,
    };
    let update = |rmw, operand| OpKind::Rmw {
        order: SeqCst,
        rmw,
        operand,
        blind: true,
    };
    let atomics = Kind {
        states: (0..3)
            .map(|value| State::Atomic {
                ty: AtomicType::U8,
                value,
            })
            .collect(),
        operations: vec![
            OpKind::Load { order: SeqCst },
            OpKind::Store {
                order: SeqCst,
                value: 0,
            },
            OpKind::Store {
                order: SeqCst,
                value: 1,
            },
            rmw(Rmw::Add, 0),
            rmw(Rmw::Add, 1),
            rmw(Rmw::Swap, 2),
            update(Rmw::Add, 1),
            update(Rmw::Sub, 2),
            update(Rmw::Or, 2),
            update(Rmw::Max, 2),
            exchange(0, 1),
            exchange(1, 1),
            exchange(1, 0),
        ],
        owns: |_, _, _| true,
    };
    let mutexes = Kind {
        states: [None, Some(P), Some(Q), Some(ThreadId(3))]
            .map(|holder| State::Mutex(Mutex { holder, version: 7 }))
            .to_vec(),
        operations: vec![
            OpKind::Lock,
            OpKind::TryLock,
            OpKind::Unlock { changed: true },
        ],
        owns: |state, thread, kind| match (state, kind) {
            (State::Mutex(mutex), OpKind::Unlock { .. }) => mutex.holder == Some(thread),
            _ => true,
        },
    };
    let counts = |observed| Kind {
        // Both threads own a reference of either kind, so both counts are at least 2.
        states: (2..5)
            .map(|strong| strong + super::count::WEAK * 2)
            .map(|count| State::Count { observed, count })
            .collect(),
        operations: vec![
            OpKind::Retain,
            OpKind::Release { told: false },
            OpKind::Release { told: true },
            OpKind::RetainWeak,
            OpKind::ReleaseWeak,
            OpKind::ReadCount { unique: true },
            OpKind::ReadCount { unique: false },
            OpKind::TakeUnique,
            OpKind::Upgrade,
            OpKind::RetainRaw,
        ],
        owns: |_, _, _| true,
    };
    let weak = Kind {
        // Both threads own a weak reference. No thread is sure to own a strong one.
        states: (0..3)
            .map(|strong| strong + super::count::WEAK * 2)
            .map(|count| State::Count {
                observed: true,
                count,
            })
            .collect(),
        operations: vec![
            OpKind::Upgrade,
            OpKind::RetainRaw,
            OpKind::ReadCount { unique: true },
            OpKind::ReadCount { unique: false },
            OpKind::RetainWeak,
            OpKind::ReleaseWeak,
        ],
        owns: |_, _, _| true,
    };
    let threads = Kind {
        states: [false, true]
            .map(|finished| State::Thread { finished })
            .to_vec(),
        operations: vec![OpKind::Exit, OpKind::Join { child: Q }, OpKind::IsFinished],
        // Q is the thread itself; it ends once.
        owns: |state, thread, kind| match kind {
            OpKind::Exit => thread == Q && *state == State::Thread { finished: false },
            _ => thread == P,
        },
    };
    let tokens = Kind {
        states: [false, true]
            .map(|available| State::Token { available })
            .to_vec(),
        operations: vec![
            OpKind::Park,
            OpKind::ParkTimeout,
            OpKind::EndForNoReason,
            OpKind::Unpark,
        ],
        // Any thread may take a notification.
        owns: |_, _, _| true,
    };
    let rwlocks = Kind {
        states: [(None, 0), (None, 1), (None, 2), (Some(P), 0), (Some(Q), 0)]
            .map(|(writer, readers)| {
                State::RwLock(RwLock {
                    writer,
                    readers,
                    version: 7,
                })
            })
            .to_vec(),
        operations: vec![
            OpKind::ReadLock,
            OpKind::TryRead,
            OpKind::UnlockRead,
            OpKind::WriteLock,
            OpKind::TryWrite,
            OpKind::UnlockWrite { changed: false },
            OpKind::Downgrade,
        ],
        owns: |state, thread, kind| match (state, kind) {
            // With two read locks each thread may hold one; a single read lock is held by the first
            // thread.
            (State::RwLock(lock), OpKind::UnlockRead) => {
                lock.readers == 2 || lock.readers == 1 && thread == P
            }
            (State::RwLock(lock), OpKind::UnlockWrite { .. } | OpKind::Downgrade) => {
                lock.writer == Some(thread)
            }
            _ => true,
        },
    };
    // Each thread is woken by a notification of its own.
    let by = |thread: ThreadId| 4 + thread.0 as u16;
    let waits = |waiting: &[ThreadId], notified: &[ThreadId]| {
        State::Condvar(Condvar {
            waiting: waiting.iter().map(|&t| (t.0 as u64, t)).collect(),
            notified: notified.iter().map(|&t| (t, by(t))).collect(),
            notifications: 7,
        })
    };
    let other = ThreadId(3);
    let condvars = Kind {
        states: vec![
            waits(&[], &[]),
            waits(&[other], &[]),
            waits(&[P], &[]),
            waits(&[P, Q], &[]),
            waits(&[P, other], &[]),
            waits(&[P, Q, other], &[]),
            waits(&[], &[P]),
            waits(&[other], &[P]),
            waits(&[other, ThreadId(4)], &[P]),
            waits(&[Q], &[P]),
            waits(&[], &[P, Q]),
        ],
        operations: vec![
            OpKind::Enqueue { order: 9 },
            OpKind::NotifyOne,
            OpKind::NotifyAll,
            OpKind::Awake { timed: false },
            OpKind::Awake { timed: true },
            OpKind::EndForNoReason,
        ],
        // The only next operation of a thread that waits, or has been notified, is its wake-up.
        owns: |state, thread, kind| {
            let State::Condvar(condvar) = state else {
                return false;
            };
            let inside =
                condvar.waiting.iter().any(|&(_, t)| t == thread) || condvar.has_notified(thread);
            matches!(kind, OpKind::Awake { .. }) == inside
        },
    };
    let barriers = Kind {
        states: (1..=3)
            .flat_map(|size| (0..size).map(move |arrived| (size, arrived)))
            .map(|(size, arrived)| {
                State::Barrier(Barrier {
                    size,
                    arrived,
                    generation: 1,
                })
            })
            .collect(),
        operations: vec![
            OpKind::Arrive,
            OpKind::Leave { generation: 0 },
            OpKind::Leave { generation: 1 },
        ],
        owns: |_, _, _| true,
    };
    let onces = Kind {
        states: [
            Once::Incomplete,
            Once::Running(P),
            Once::Done,
            Once::Poisoned,
        ]
        .map(State::Once)
        .to_vec(),
        operations: vec![
            OpKind::CallOnce { force: false },
            OpKind::CallOnce { force: true },
            OpKind::EndOnce { poison: false },
            OpKind::EndOnce { poison: true },
            OpKind::CheckOnce,
            OpKind::WaitOnce { force: false },
            OpKind::WaitOnce { force: true },
        ],
        owns: |state, thread, kind| match (state, kind) {
            (State::Once(once), OpKind::EndOnce { .. }) => *once == Once::Running(thread),
            _ => true,
        },
    };
    let channel = |capacity: u64, sent: u64, received: u64, senders: u64, receiver: bool| {
        State::Channel(Channel {
            sent,
            received,
            senders,
            receiver,
            waiting: capacity == 1 && senders == 3,
            ..Channel::new(capacity)
        })
    };
    let channels = Kind {
        states: [0, 1, 2, 3]
            .into_iter()
            .flat_map(|capacity| {
                let most = if capacity == 0 {
                    3
                } else {
                    capacity.max(2) - 1
                };
                (0..=most).flat_map(move |queued| {
                    [(0, true), (1, true), (2, true), (3, true), (1, false)].map(
                        move |(senders, receiver)| {
                            channel(capacity, 4 + queued, 4, senders, receiver)
                        },
                    )
                })
            })
            .collect(),
        operations: vec![
            OpKind::Send,
            OpKind::TrySend,
            OpKind::Taken { index: 4 },
            OpKind::RecvWait,
            OpKind::Recv { timed: false },
            OpKind::Recv { timed: true },
            OpKind::TryRecv,
            OpKind::AddSender,
            OpKind::DropSender,
            OpKind::DropReceiver { discards: true },
        ],
        // P has the receiver. Q has a sender as long as there is one, and P has another sender if
        // there are two.
        owns: |state, thread, kind| {
            let State::Channel(channel) = state else {
                return false;
            };
            match kind {
                OpKind::RecvWait if channel.capacity != Some(0) => false,
                OpKind::RecvWait
                | OpKind::Recv { .. }
                | OpKind::TryRecv
                | OpKind::DropReceiver { .. } => thread == P && channel.receiver,
                OpKind::Taken { .. } => channel.capacity == Some(0) && channel.senders > 0,
                _ => channel.senders >= if thread == Q { 1 } else { 2 },
            }
        },
    };
    let key = Key::of;
    let opaque = Kind {
        states: vec![State::Opaque],
        operations: [
            Touch::All,
            Touch::ReadAll,
            Touch::WeakRead,
            Touch::WeakWrite,
            Touch::KeyRead(key(1)),
            Touch::KeyWrite(key(1)),
            Touch::KeyShape(key(2)),
            Touch::ReadKeys,
        ]
        .map(OpKind::Touch)
        .to_vec(),
        owns: |_, _, _| true,
    };
    vec![
        opaque,
        rwlocks,
        condvars,
        barriers,
        onces,
        channels,
        atomics,
        mutexes,
        counts(true),
        counts(false),
        weak,
        threads,
        tokens,
    ]
}

/// The next step of a thread: its operation, and the number of the outcome.
type Next = (ThreadId, OpKind, u32);

fn run(state: &State, first: Next, second: Next) -> Option<(Vec<String>, State)> {
    let mut state = state.clone();
    let mut labels = Vec::new();
    for (thread, kind, alternative) in [first, second] {
        if !state.enabled(thread, &kind) || alternative >= state.alternatives(&kind) {
            return None;
        }
        let operation = Operation {
            object: ObjectId(0),
            kind,
        };
        let outcome = state.apply(thread, &kind, alternative);
        labels.push(format!(
            "{thread:?} {:?}",
            state.label(&operation, outcome).canonical()
        ));
    }
    labels.sort();
    Some((labels, state))
}

#[test]
fn operations_that_commute_may_be_swapped_and_enabling_is_order() {
    let sets = ReadSets::default();
    let (mut commuting, mut enabling) = (0, 0);
    for kind in kinds() {
        for state in &kind.states {
            for &p in kind.operations.iter().filter(|p| (kind.owns)(state, P, p)) {
                for &q in kind.operations.iter().filter(|q| (kind.owns)(state, Q, q)) {
                    for (a, b) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
                        let (p, q) = ((P, p, a), (Q, q, b));
                        let label = |state: &State, next: Next| {
                            let mut state = state.clone();
                            if !state.enabled(next.0, &next.1)
                                || next.2 >= state.alternatives(&next.1)
                            {
                                return None;
                            }
                            let operation = Operation {
                                object: ObjectId(0),
                                kind: next.1,
                            };
                            let outcome = state.apply(next.0, &next.1, next.2);
                            Some((state.label(&operation, outcome), state))
                        };
                        let Some((q_label, after_q)) = label(state, q) else {
                            continue;
                        };
                        match label(state, p) {
                            Some((p_label, _)) if commutes(&sets, p_label, q_label) => {
                                commuting += 1;
                                let one = run(state, p, q);
                                let other = run(state, q, p);
                                assert!(one.is_some(), "{p:?} disables {q:?} in {state:?}");
                                assert_eq!(one, other, "{p:?} and {q:?} in {state:?}");
                            }
                            None if a == 0 && label(&after_q, p).is_some() => {
                                enabling += 1;
                                let (p_label, _) = label(&after_q, p).expect("just seen");
                                assert!(
                                    ordered(&sets, q_label, p_label),
                                    "{q:?} enables {p:?} in {state:?}"
                                );
                            }
                            _ => {}
                        }
                    }
                }
            }
        }
    }
    // The kinds above have all of these pairs; a smaller number means that the test misses some.
    assert!(
        commuting >= 100 && enabling >= 2,
        "{commuting} commuting, {enabling} enabling"
    );
}

#[test]
fn what_a_thread_sees_is_no_other_after_what_commutes_with_its_look() {
    let sets = ReadSets::default();
    let mut looks = 0;
    for kind in kinds() {
        for state in &kind.states {
            for &p in kind.operations.iter().filter(|p| (kind.owns)(state, P, p)) {
                for &q in kind.operations.iter().filter(|q| (kind.owns)(state, Q, q)) {
                    // The meaning of the operation for its thread, its label, and the state
                    // afterwards.
                    let step = |state: &State, thread, kind: OpKind| {
                        let mut after = state.clone();
                        let operation = Operation {
                            object: ObjectId(0),
                            kind,
                        };
                        state.enabled(thread, &kind).then(|| {
                            let outcome = after.apply(thread, &kind, 0);
                            let shown = (state.polled_by(&kind), after.polled());
                            let label = after.label(&operation, outcome);
                            (meaning(&kind, outcome, shown), label, after)
                        })
                    };
                    let (Some((first, p_label, _)), Some((_, q_label, after_q))) =
                        (step(state, P, p), step(state, Q, q))
                    else {
                        continue;
                    };
                    if commutes(&sets, p_label, q_label)
                        && let Some((second, ..)) = step(&after_q, P, p)
                    {
                        assert_eq!(first, second, "{p:?} before and after {q:?} in {state:?}");
                        looks += matches!(first, Meaning::Look(_)) as u32;
                    }
                }
            }
        }
    }
    assert!(looks >= 30, "{looks}");
}

#[test]
fn what_never_has_to_wait_can_happen_in_every_state() {
    let mut checked = 0;
    for kind in kinds() {
        let operations = kind.operations.iter().copied();
        for operation in operations.filter(|operation| !operation.may_have_to_wait()) {
            let mut owned = kind.states.iter().filter(|s| (kind.owns)(s, P, &operation));
            let disabled = owned.find(|state| !state.enabled(P, &operation));
            assert_eq!(disabled, None, "{operation:?} cannot happen");
            checked += 1;
        }
    }
    assert!(checked >= 30, "{checked}");
}

#[test]
fn what_is_always_alike_has_one_label_in_every_state() {
    let object = ObjectId(0);
    let mut checked = 0;
    for kind in kinds() {
        let operations = kind.operations.iter().copied();
        for operation in operations.filter(OpKind::is_always_alike) {
            let told = Operation {
                object,
                kind: operation,
            };
            let labels = kind.states.iter().map(|state| {
                assert_eq!(state.alternatives(&operation), 1, "{operation:?}");
                let mut after = state.clone();
                let outcome = after.apply(P, &operation, 0);
                after.label(&told, outcome)
            });
            let alone = Label::new(object, &operation, Outcome::Done, Nature::Plain);
            for label in labels {
                assert_eq!(label, alone, "{operation:?}");
            }
            checked += 1;
        }
    }
    assert!(checked >= 5, "{checked}");
}

#[test]
fn what_comes_out_in_several_ways_is_known_to() {
    let mut several = 0;
    for kind in kinds() {
        for operation in &kind.operations {
            let ways = |state: &State| state.alternatives(operation);
            let most = kind.states.iter().map(ways).max().unwrap_or(1);
            assert!(
                most == 1 || operation.may_have_alternatives(),
                "{operation:?}"
            );
            several += (most > 1) as u32;
        }
    }
    assert!(several >= 2, "{several}");
}

/// Whether these may be states of one object at different times.
fn are_of_one_object(a: &State, b: &State) -> bool {
    match (a, b) {
        (State::Atomic { ty: a, .. }, State::Atomic { ty: b, .. }) => a == b,
        (State::Count { observed: a, .. }, State::Count { observed: b, .. }) => a == b,
        (State::Barrier(a), State::Barrier(b)) => a.size == b.size,
        (State::Channel(a), State::Channel(b)) => a.capacity == b.capacity,
        _ => true,
    }
}

#[test]
fn a_state_in_one_word_is_the_same_state() {
    let (mut packed, mut waits) = (0, 0);
    for kind in kinds() {
        for state in &kind.states {
            let Some(word) = state.pack() else {
                assert!(matches!(state, State::Condvar(_)), "{state:?} does not fit");
                continue;
            };
            for later in kind.states.iter().filter(|s| are_of_one_object(s, state)) {
                assert_eq!(later.unpack(word), *state, "told by {later:?}");
                packed += 1;
                for operation in &kind.operations {
                    let enabled = state.enabled(P, operation);
                    let told = later.enabled_in(word, P, operation);
                    assert_eq!(told, enabled, "{operation:?} in {state:?}");
                    waits += u32::from(!enabled);
                }
            }
        }
    }
    assert!(
        packed >= 50 && waits >= 50,
        "{packed} states, {waits} waits"
    );
}

/// The labels and outcomes of two steps in this order, and the state afterwards. `None` if the
/// second step is not enabled.
fn seen(state: &State, first: Next, second: Next) -> Option<([(Label, Outcome); 2], State)> {
    let mut state = state.clone();
    let mut both = Vec::new();
    for (thread, kind, alternative) in [first, second] {
        if !state.enabled(thread, &kind) || alternative >= state.alternatives(&kind) {
            return None;
        }
        let operation = Operation {
            object: ObjectId(0),
            kind,
        };
        let outcome = state.apply(thread, &kind, alternative);
        both.push((state.label(&operation, outcome), outcome));
    }
    Some((both.try_into().ok()?, state))
}

#[test]
fn events_whose_order_is_nothing_in_any_state_are_not_ordered() {
    let sets = ReadSets::default();
    let (mut idle, mut told) = (BTreeSet::new(), BTreeSet::new());
    // What an order is for is not known of contents that only the program knows.
    let known = |kind: &Kind| kind.states != [State::Opaque];
    for kind in kinds().into_iter().filter(known) {
        for state in &kind.states {
            for &p in kind.operations.iter().filter(|p| (kind.owns)(state, P, p)) {
                for &q in kind.operations.iter().filter(|q| (kind.owns)(state, Q, q)) {
                    for (a, b) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
                        let one = seen(state, (P, p, a), (Q, q, b));
                        let other = seen(state, (Q, q, b), (P, p, a));
                        // If one step enables the other, there is no other order.
                        let (Some((one, then)), Some(([second, first], otherwise))) = (one, other)
                        else {
                            continue;
                        };
                        let is_same = one == [first, second] && then == otherwise;
                        for [one, other] in [one, [second, first]] {
                            if ordered(&sets, one.0, other.0) {
                                let mut pair = [one, other].map(|(label, _)| label.class());
                                pair.sort();
                                if is_same { &mut idle } else { &mut told }.insert(pair);
                            }
                        }
                    }
                }
            }
        }
    }
    let idle: Vec<_> = idle.difference(&told).collect();
    assert!(idle.is_empty(), "ordered for nothing: {idle:?}");
    assert!(told.len() >= 30, "{}", told.len());
}
