//! Are the threads that may use a freed block found as a search through all events finds them?

use crate::rt::engine::TieBreak;
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::random::{Rng, number, program};
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::{OpKind, address_in};
use crate::rt::event::{Event, Trace};
use crate::rt::lifetime::delayed_use::{Free, Reader, can_hold};
use crate::rt::lifetime::shown::Shown;
use crate::rt::relation::happens_before::HappensBefore;

/// The words of an atomic that a thread has read or written.
fn words_of(event: &Event) -> [Option<u64>; 2] {
    let kind = &event.operation.kind;
    let read = event.outcome.value().filter(|_| kind.is_atomic());
    let written = match *kind {
        OpKind::Store { value, .. } => Some(value),
        OpKind::Rmw { operand, .. } => Some(operand),
        OpKind::CompareExchange { new, .. } => Some(new),
        _ => None,
    };
    [read, written]
}

/// [`Free::readers`] by a search through all events.
fn readers(free: &Free<'_>, trace: &Trace, clocks: &HappensBefore) -> Vec<Reader> {
    let (start, size) = free.memory;
    let since = &trace.events()[free.from..];
    let leads_there = |value: u64| address_in(value).wrapping_sub(start) < size;
    let shows = |event: &Event| {
        free.objects.contains(&event.operation.object)
            || words_of(event).into_iter().flatten().any(leads_there)
    };
    let is_known = |event: &Event| clocks.clock(free.last, event.thread) > event.index;
    let is_revoked = |object: ObjectId, position: usize| {
        trace.events()[position + 1..].iter().any(|event| {
            let kind = &event.operation.kind;
            let writes = kind.is_atomic() && !matches!(kind, OpKind::Load { .. });
            event.operation.object == object && writes && is_known(event)
        })
    };
    let may_know = |position: usize, event: &Event| {
        let knows =
            |(maker, events): (ThreadId, u32)| clocks.clock(position as u32, maker) > events;
        free.made.is_some_and(knows)
            && match event.operation.kind {
                OpKind::Load { .. } => is_revoked(event.operation.object, position),
                ref kind => !kind.is_atomic() || is_known(event),
            }
    };
    let mut found = Vec::new();
    for thread in (1..trace.threads() as u32).map(ThreadId) {
        let (Some((maker, events)), Some(spawn)) = (free.made, trace.spawn_of(thread)) else {
            continue;
        };
        let is_other = thread != maker && thread != free.thread;
        let may_have = is_other && clocks.clock(spawn, maker) > events;
        if may_have && clocks.clock(free.last, thread) == 0 {
            found.push(Reader {
                thread,
                events: 0,
                site: trace.at(spawn).site,
                has_shown: false,
            });
        }
    }
    let mut first: Vec<Event> = Vec::new();
    for (at, event) in since.iter().enumerate() {
        let is_new = first.iter().all(|known| known.thread != event.thread);
        let may = shows(event) || can_hold(event) && may_know(free.from + at, event);
        if is_new && event.thread != free.thread && may {
            first.push(*event);
        }
    }
    for event in first {
        let thread = event.thread;
        let joins = OpKind::Join { child: thread };
        let is_over = |event: &Event| event.operation.kind == joins && is_known(event);
        if since.iter().any(is_over) {
            continue;
        }
        let events = clocks.clock(free.last, thread).max(event.index + 1);
        let theirs = trace.events().iter().filter(|event| event.thread == thread);
        let mut later = theirs.filter(|event| event.index + 1 >= events);
        let Some(held) = later.find(|event| can_hold(event)) else {
            continue;
        };
        let has_shown =
            |event: &Event| event.thread == thread && event.index <= held.index && shows(event);
        found.push(Reader {
            thread,
            events: held.index + 1,
            site: held.site,
            has_shown: since.iter().any(has_shown),
        });
    }
    found
}

#[test]
fn random_frees_have_the_readers_that_a_search_through_all_events_finds() {
    let programs = number("DPOR_FUZZ", 2_000);
    let (mut some, mut shown_by_some) = (0, 0);
    for seed in 1..=programs {
        let mut rng = Rng::new(seed);
        let program = program(seed);
        let mut driver = driver(&program, explorer("optimal", TieBreak::Random(seed)));
        let mut shown = Shown::default();
        for _ in 0..3 {
            if run(&program, &mut driver).is_none() {
                break;
            }
            driver.compute_clocks();
            let (trace, clocks) = (&driver.trace, &driver.clocks);
            let Some(last) = (trace.len() as u32).checked_sub(1) else {
                continue;
            };
            shown.clear();
            // The index grows between two frees.
            shown.extend(&trace.events()[..rng.below(trace.len() as u64) as usize]);
            shown.extend(trace.events());
            for _ in 0..8 {
                let mut objects = driver.machine.objects().to_vec();
                objects.retain(|_| rng.one_in(4));
                let thread = trace.at(rng.below(trace.len() as u64) as u32).thread;
                let maker = ThreadId(rng.below(trace.threads() as u64) as u32);
                let made = trace.positions_of(maker).len() as u64;
                let free = Free {
                    memory: (
                        1 + rng.below(5) as usize,
                        [0, 1, 2, 10_000][rng.below(4) as usize],
                    ),
                    objects: &objects,
                    made: (!rng.one_in(3)).then(|| (maker, rng.below(made + 1) as u32)),
                    thread,
                    last: trace.last_of(thread).unwrap_or(last),
                    drops: &[],
                    holds_at_drops: false,
                    from: [0, rng.below(trace.len() as u64) as usize][rng.below(2) as usize],
                };
                let expected = readers(&free, trace, clocks);
                some += expected.len();
                shown_by_some += expected.iter().filter(|reader| reader.has_shown).count();
                let (found, _) = free.readers(trace, clocks, &shown);
                assert_eq!(found, expected, "seed {seed}: {}", program.listing());
            }
        }
    }
    let many = programs as usize;
    assert!(
        some > many && shown_by_some > many,
        "{some}, {shown_by_some}"
    );
}

/// As many frees as nodes, each of a node that one event of another thread shows.
#[test]
fn a_free_looks_only_at_the_events_that_concern_its_block() {
    for nodes in [10, 100, 1000] {
        let stores = |var: i64| (0..nodes).map(|node| super::store(var + node, 0)).collect();
        let program = Program::of(vec![stores(0), stores(0), stores(nodes)]);
        let mut driver = driver(&program, explorer("optimal", TieBreak::Last));
        run(&program, &mut driver).expect("it runs");
        driver.compute_clocks();
        let mut shown = Shown::default();
        shown.extend(driver.trace.events());
        let mut looked = 0;
        for &object in driver.machine.objects() {
            let free = Free {
                memory: (1 << 20, 8),
                objects: &[object],
                made: Some((ThreadId(1), nodes as u32)),
                thread: ThreadId(1),
                last: driver.trace.last_of(ThreadId(1)).expect("it has stored"),
                drops: &[],
                holds_at_drops: false,
                from: 0,
            };
            looked += free.readers(&driver.trace, &driver.clocks, &shown).1;
        }
        assert!(looked <= 12 * nodes as u64, "{looked} for {nodes}");
    }
}
