//! Does the search find every graph once, and is each of its rules needed?

use super::super::search::{Free, Search, Stats, Trap};
use super::families::{self, COLUMNS, SMALL, T4, T5, T6};
use super::litmus::TABLE;
use super::random::{Menu, number, program};
use super::*;

/// The graphs that a search finds in so many executions. A search without one of its rules may go
/// on for ever.
fn search(
    program: &Litmus,
    axioms: Axioms,
    free: Free,
    left_out: Option<Trap>,
    most: u64,
) -> (Found, Stats) {
    let model = program.model(axioms);
    run(program, Search::new(model, free), left_out, most)
}

fn run(
    program: &Litmus,
    mut search: Search<C11>,
    left_out: Option<Trap>,
    most: u64,
) -> (Found, Stats) {
    if let Some(trap) = left_out {
        search.leave_out(trap);
    }
    let mut found = Found::default();
    let mut executions = 0;
    let stats = search.explore(program, |graph| {
        found.add(program, graph);
        executions += 1;
        executions < most
    });
    (found, stats)
}

/// What is wrong with what the search finds, if a rule is left out or none.
fn fault(
    program: &Litmus,
    axioms: Axioms,
    free: Free,
    left_out: Option<Trap>,
    oracle: &Found,
) -> Option<String> {
    // One more than there are is one too many.
    let most = oracle.graphs.len() as u64 + 1;
    let searched = std::panic::catch_unwind(|| search(program, axioms, free, left_out, most).0);
    compare(searched, oracle)
}

/// What is wrong with what a search has found.
fn compare(searched: std::thread::Result<Found>, oracle: &Found) -> Option<String> {
    let Ok(found) = searched else {
        return Some("the search has pruned an execution".to_owned());
    };
    let missing = oracle.keys().difference(&found.keys()).count();
    let more = found.keys().difference(&oracle.keys()).count();
    let twice = found.graphs.values().filter(|&&times| times > 1).count();
    let has_fault = missing + more + twice > 0 || found.races != oracle.races;
    has_fault.then(|| {
        let all = oracle.graphs.len();
        let races = (found.races, oracle.races);
        format!(
            "{missing} of {all} are missing, {more} are none, {twice} came twice, races {races:?}"
        )
    })
}

/// Compares what searches find with brute force, for each way to choose.
fn check(text: &str, model: Model, choices: &[Free]) {
    let program = Litmus::parse(text);
    let oracle = graphs(&program, model);
    for &free in choices {
        let fault = fault(&program, model.axioms(), free, None, &oracle);
        assert_eq!(fault, None, "{free:?}, {model:?}: {text}");
    }
}

const CHOICES: [Free; 5] = [
    Free::Last,
    Free::Random(7),
    Free::Random(1 << 40),
    Free::Any(9),
    Free::Any(1 << 41),
];

#[test]
fn every_graph_of_the_litmus_programs_is_found_once() {
    for &(_, text, ..) in TABLE {
        check(text, Model::Rc11, &CHOICES);
        check(text, Model::ReleaseAcquire, &CHOICES);
    }
}

#[test]
fn every_graph_of_the_small_programs_is_found_once() {
    for &(text, ..) in SMALL {
        // With the threads in the order in which they are written, and in the opposite one.
        let threads: Vec<&str> = text.split('∥').rev().collect();
        for text in [text, &threads.join("∥")] {
            check(text, Model::Rc11, &CHOICES);
        }
    }
}

#[test]
fn every_graph_of_the_families_is_found_once() {
    for program in families::programs() {
        for column in COLUMNS {
            let text = column.apply(&program);
            check(&text, Model::Rc11, &[Free::Last]);
        }
    }
}

#[test]
fn every_graph_of_random_programs_is_found_once() {
    let (mut checked, mut all, mut raced) = (0, 0, 0);
    let programs = number("DPOR_FUZZ", 20_000);
    let start = number("DPOR_FUZZ_SEED", 1);
    for seed in start..start + programs {
        let menu = match seed % 6 {
            0 => Menu::StaleAwaits,
            1 => Menu::Locks,
            2 => Menu::StaleLocks,
            _ => Menu::All,
        };
        let text = program(seed, menu);
        let litmus = Litmus::parse(&text);
        let model = match seed % 5 {
            0 => Model::ReleaseAcquire,
            _ => Model::Rc11,
        };
        let mut holds = litmus.model(model.axioms());
        let Some(oracle) = brute_force(&litmus, &mut holds, 400, &mut |_, _| ()) else {
            continue;
        };
        checked += 1;
        all += oracle.graphs.len();
        raced += usize::from(oracle.races > 0);
        let free = match seed / 6 % 3 {
            0 => Free::Last,
            1 => Free::Random(seed),
            _ => Free::Any(seed),
        };
        let fault = fault(&litmus, model.axioms(), free, None, &oracle);
        assert_eq!(fault, None, "seed {seed}, {free:?}, {model:?}: {text}");
    }
    println!("{checked} programs, {all} graphs, {raced} programs with races");
    assert!(
        checked * 2 > programs,
        "only {checked} of {programs} were small enough"
    );
}

/// What is wrong with a search that takes any branch next.
fn fault_in_any_order(
    program: &Litmus,
    axioms: Axioms,
    free: Free,
    seed: u64,
    oracle: &Found,
) -> Option<String> {
    let most = oracle.graphs.len() as u64 + 1;
    let searched = std::panic::catch_unwind(|| {
        let model = program.model(axioms);
        run(
            program,
            Search::new(model, free).spread_by(seed),
            None,
            most,
        )
        .0
    });
    compare(searched, oracle)
}

#[test]
fn any_branch_may_be_explored_next() {
    let check = |text: &str, program: &Litmus, oracle: &Found, seed: u64| {
        for free in [Free::Last, Free::Any(seed)] {
            let fault = fault_in_any_order(program, Axioms::Rc11, free, seed, oracle);
            assert_eq!(fault, None, "seed {seed}, {free:?}: {text}");
        }
    };
    let litmus = TABLE.iter().map(|&(_, text, ..)| text);
    for (text, seed) in litmus.chain(SMALL.iter().map(|&(text, ..)| text)).zip(1..) {
        let program = Litmus::parse(text);
        let oracle = graphs(&program, Model::Rc11);
        check(text, &program, &oracle, seed * 7919);
        check(text, &program, &oracle, seed * 104_729);
    }
    let programs = number("DPOR_FUZZ", 20_000).div_ceil(4);
    let start = number("DPOR_FUZZ_SEED", 1);
    for seed in start..start + programs {
        let menu = match seed % 6 {
            0 => Menu::StaleAwaits,
            1 => Menu::Locks,
            2 => Menu::StaleLocks,
            _ => Menu::All,
        };
        let text = program(seed, menu);
        let litmus = Litmus::parse(&text);
        let mut holds = litmus.model(Axioms::Rc11);
        if let Some(oracle) = brute_force(&litmus, &mut holds, 400, &mut |_, _| ()) {
            check(&text, &litmus, &oracle, seed);
        }
    }
}

#[test]
fn what_is_reversed_without_the_graph_is_planned_as_with_it() {
    let explored = |program: &Litmus, free: Free, left_out: Option<Trap>| {
        let mut search = Search::new(program.model(Axioms::Rc11), free);
        if let Some(trap) = left_out {
            search.leave_out(trap);
        }
        let mut order = Vec::new();
        let stats = search.explore(program, |graph| {
            order.push(key(graph));
            order.len() < 500
        });
        (order, stats.planned, stats.nodes)
    };
    let check = |text: &str, free: Free| {
        let program = Litmus::parse(text);
        assert!(
            explored(&program, free, None) == explored(&program, free, Some(Trap::Apart)),
            "{free:?}: {text}"
        );
    };
    for program in families::programs() {
        for column in COLUMNS {
            check(&column.apply(&program), Free::Last);
        }
    }
    let programs = number("DPOR_FUZZ", 20_000).div_ceil(4);
    let start = number("DPOR_FUZZ_SEED", 1);
    for seed in start..start + programs {
        let menu = match seed % 4 {
            1 => Menu::Locks,
            _ => Menu::All,
        };
        let text = program(seed, menu);
        check(&text, Free::Last);
        check(&text, Free::Any(seed));
    }
}

/// A rule, and a program that is explored wrongly without it.
const TRAPS: &[(Trap, &str)] = &[
    (Trap::Interval, "W x 1 ∥ W x 2 ∥ W x 3"),
    (Trap::Old, "a=R x; F sc ∥ W x 2 ∥ b=C x 2 1 sc sc"),
    (Trap::Old, T4),
    (Trap::Wakers, "W x 5 ∥ a=C x 1 2 ∥ b=A x 1 ∥ c=A x 1"),
    (Trap::Whole, "W x 1 ∥ a=R x ∥ b=C x 0 2"),
    (Trap::Anew, "a=A x 1 ∥ b=C x 1 2"),
    (Trap::Rivals, "a=A x 1 ∥ b=C x 1 2"),
    (Trap::Losers, "a=A x 1 ∥ b=C x 0 2"),
    (Trap::Available, "W x 1; a=A x 2 ∥ W x 2"),
    (Trap::Evidence, "W x 1 ∥ a=R x ∥ W x 2"),
    (Trap::Awaits, T5),
    (Trap::Awaits, T6),
    (
        Trap::AllAwaits,
        "a=X y 2; F sc; await x==0 ∥ W x 1; F sc; b=A y 1 ∥ W y 1; F sc; await x==0",
    ),
    (
        Trap::NeededAwaits,
        "W y 1; F sc; await z==1 ∥ await y==0; W z 1 ∥ W z 2; F sc; await y==0",
    ),
];

#[test]
fn no_rule_of_the_search_can_be_left_out() {
    for &(trap, text) in TRAPS {
        let program = Litmus::parse(text);
        let oracle = graphs(&program, Model::Rc11);
        let random = (1..60).map(|seed| Free::Random(seed * 7919));
        let choices: Vec<Free> = [Free::Last].into_iter().chain(random).collect();
        let faults = |left_out| {
            let of = |&free: &Free| fault(&program, Axioms::Rc11, free, left_out, &oracle);
            choices.iter().filter_map(of).count()
        };
        assert_eq!(faults(None), 0, "{text}");
        assert!(faults(Some(trap)) > 0, "{trap:?}: {text}");
    }
}

#[test]
fn an_await_that_an_outcome_needs_stays_where_others_are_left_out() {
    // The second graph of the third thread's swap was lost: the first thread's await, which reads
    // an old store like the last one, was left out as well, and with it the swap that this one was
    // to read from.
    let text = "await x==0; a=X y 1 ∥ W x 2; F sc; b=X y 1 ∥ W y 2; F sc; await x==0";
    let choices: Vec<Free> = (1..100).map(|seed| Free::Random(seed * 7919)).collect();
    check(text, Model::Rc11, &choices);
}

#[test]
fn an_exploration_costs_few_candidates_and_keeps_small_trees() {
    use families::{lastzero, readers, seqlock, store_buffering};
    for (text, executions, nodes) in [
        (readers(6), 64, 6),
        (store_buffering(5), 32, 9),
        (seqlock(2), 576, 8),
        (lastzero(5), 96, 78),
    ] {
        let program = Litmus::parse(&families::Column::Relaxed.apply(&text));
        let (found, stats) = search(&program, Axioms::Rc11, Free::Last, None, u64::MAX);
        assert_eq!(found.graphs.len(), executions, "{text}");
        // Each execution but the first is planned once.
        let executions = executions as u64;
        assert_eq!(
            (stats.executions, stats.planned + 1),
            (executions, executions)
        );
        assert!(stats.candidates < 15 * executions, "{stats:?}: {text}");
        assert!(stats.nodes <= nodes, "{stats:?}: {text}");
    }
}
