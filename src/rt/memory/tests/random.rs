//! Do random programs have the graphs that the axioms give them?

use std::collections::BTreeSet;

use super::super::axioms::Relations;
use super::super::graph::Graph;
use super::super::testing::{Key, key};
use super::super::{Access, MemoryModel, Outcome};
use super::*;
use crate::rt::event::grant::Grant;
use crate::rt::event::id::ThreadId;
use crate::rt::memory::operation::{OpKind, Operation};
use crate::rt::relation::independence::{Class, Label};

/// Numbers by chance.
struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// xorshift64*.
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    fn of<'a>(&mut self, those: &[&'a str]) -> &'a str {
        those[self.below(those.len())]
    }
}

/// What a random program is made of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Menu {
    /// Accesses with all orderings, fences, conditions and awaits.
    All,
    /// Awaits that want an old value, behind fences that are `SeqCst`.
    StaleAwaits,
    /// Critical sections of a mutex, and attempts to lock it, besides.
    Locks,
    /// These, and awaits that want an old value, behind fences that are `SeqCst`.
    StaleLocks,
}

/// The text of a random program.
pub(super) fn program(seed: u64, menu: Menu) -> String {
    let mut rng = Rng::new(seed);
    let threads = [2, 3, 3, 3, 4][rng.below(5)];
    let locations = if rng.below(5) == 0 {
        &["x"][..]
    } else {
        &["x", "y"]
    };
    let is_stale = matches!(menu, Menu::StaleAwaits | Menu::StaleLocks);
    let has_locks = matches!(menu, Menu::Locks | Menu::StaleLocks);
    let locations = if is_stale {
        &["x", "y", "z"][..2 + rng.below(2)]
    } else {
        locations
    };
    // How many of four accesses may have strong orderings.
    let strong = rng.below(4);
    let most = if threads == 2 { 5 } else { 4 };
    let mut register = 0;
    let mut parts = Vec::new();
    for _ in 0..threads {
        let mut code = Vec::new();
        let length = if threads == 4 {
            1 + rng.below(2)
        } else {
            1 + rng.below(most)
        };
        // Where the fence is in a thread with awaits that may read an old value.
        let fence = is_stale.then(|| 1 + rng.below(2));
        let length = fence.map_or(length, |fence| {
            fence + 1 + 1 + rng.below(if threads == 2 { 3 } else { 2 })
        });
        let mut last = None;
        while code.len() < length {
            if fence == Some(code.len()) {
                code.push("F sc".to_owned());
                continue;
            }
            let (text, to) = match fence {
                _ if has_locks && rng.below(5) < 2 => section(&mut rng, locations, &mut register),
                None => instruction(&mut rng, locations, strong, &mut register),
                Some(fence) => directed(&mut rng, locations, &mut register, code.len() > fence),
            };
            let text = match last {
                Some(ref last) if rng.below(5) == 0 => {
                    let value = rng.below(3);
                    format!("?{last}=={value} {text}")
                }
                _ => text,
            };
            code.push(text);
            last = to.or(last);
        }
        // Uses of plain data that may race.
        if rng.below(4) == 0 {
            let at = rng.below(code.len() + 1);
            code.insert(at, "D c".to_owned());
        }
        parts.push(code.join("; "));
    }
    // A thread that the first one spawns, and perhaps joins.
    if matches!(menu, Menu::All | Menu::Locks) && rng.below(4) == 0 {
        let child = 1 + rng.below(threads - 1);
        let mut code: Vec<String> = parts[0].split("; ").map(str::to_owned).collect();
        let at = rng.below(code.len() + 1);
        code.insert(at, format!("S {child}"));
        if rng.below(2) == 0 {
            let at = at + 1 + rng.below(code.len() - at);
            code.insert(at, format!("J {child}"));
        }
        parts[0] = code.join("; ");
    }
    parts.join(" ∥ ")
}

fn instruction(
    rng: &mut Rng,
    locations: &[&str],
    strong: usize,
    register: &mut usize,
) -> (String, Option<String>) {
    let x = rng.of(locations);
    let value = 1 + rng.below(2);
    let mut order = |plain: &[&'static str]| {
        let weak = rng.below(4) >= strong;
        if weak {
            "rlx"
        } else {
            plain[rng.below(plain.len())]
        }
    };
    let load = order(&["acq", "sc", "sc"]);
    let store = order(&["rel", "sc", "sc"]);
    let both = order(&["acq", "rel", "ar", "sc", "sc"]);
    let fence = rng.of(&["acq", "rel", "ar", "sc", "sc", "sc"]);
    let mut to = || {
        *register += 1;
        format!("r{register}")
    };
    match rng.below(20) {
        0..6 => {
            let to = to();
            (format!("{to}=R {x} {load}"), Some(to))
        }
        6..12 => (format!("W {x} {value} {store}"), None),
        12..14 => {
            let (to, what) = (to(), rng.of(&["A", "X"]));
            (format!("{to}={what} {x} {value} {both}"), Some(to))
        }
        14..17 => {
            let (to, what, expected) = (to(), rng.of(&["C", "C", "V"]), rng.below(3));
            let text = format!("{to}={what} {x} {expected} {value} {both} {load}");
            (text, Some(to))
        }
        17..19 => (format!("F {fence}"), None),
        _ if rng.below(2) == 0 => {
            let value = rng.below(3);
            (format!("await {x}=={value} {load}"), None)
        }
        _ => again(rng.of(LOOKS), x, (load, both), &mut to),
    }
}

/// A look, and the next one of the same loop, which waits for a newer store: a load, or an attempt
/// to take a lock.
fn again(
    look: &str,
    x: &str,
    (load, both): (&str, &str),
    to: &mut impl FnMut() -> String,
) -> (String, Option<String>) {
    let look = match look {
        "C" => format!("C {x} 0 1 {both} {load}"),
        "X" => format!("X {x} 1 {both}"),
        _ => format!("R {x} {load}"),
    };
    let (first, second) = (to(), to());
    (
        format!("{first}={look}; {second}=again {look}"),
        Some(second),
    )
}

const LOOKS: &[&str] = &["R", "R", "C", "X"];

/// A critical section, or an attempt at one.
fn section(rng: &mut Rng, locations: &[&str], register: &mut usize) -> (String, Option<String>) {
    let x = rng.of(locations);
    let value = 1 + rng.below(2);
    if rng.below(2) == 0 {
        let inside = rng.of(&["", "W x 1 rlx; ", "F sc; "]);
        return (format!("?r0==0 {{ K m; {inside}U m }}"), None);
    }
    *register += 1;
    let to = format!("r{register}");
    let inside = match rng.below(3) {
        0 => format!("W {x} {value} rlx; "),
        _ => String::new(),
    };
    (
        format!("?r0==0 {{ {to}=T m; ?{to}==0 {{ {inside}U m }} }}"),
        Some(to),
    )
}

fn directed(
    rng: &mut Rng,
    locations: &[&str],
    register: &mut usize,
    is_behind: bool,
) -> (String, Option<String>) {
    let x = rng.of(locations);
    let mut to = || {
        *register += 1;
        format!("r{register}")
    };
    let order = rng.of(&["rlx", "rlx", "rlx", "sc"]);
    let value = 1 + rng.below(2);
    match rng.below(12) {
        0 if is_behind && rng.below(2) == 0 => (format!("L {x} {order}"), None),
        1 | 2 if is_behind && rng.below(2) == 0 => again(rng.of(LOOKS), x, (order, order), &mut to),
        0..5 if is_behind => (format!("await {x}=={} {order}", rng.below(7) / 6), None),
        5..8 if is_behind => {
            let to = to();
            (format!("{to}=R {x} {order}"), Some(to))
        }
        8 | 9 if is_behind => ("F sc".to_owned(), None),
        10 => {
            let (to, what) = (to(), rng.of(&["X", "A"]));
            (format!("{to}={what} {x} {value} {order}"), Some(to))
        }
        _ => (format!("W {x} {value} {order}"), None),
    }
}

/// A number from the environment.
pub(super) fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    }
}

/// What `access` could come out as if any store could be read and any place taken.
fn candidates(graph: &Graph, access: &Access) -> Vec<Outcome> {
    let Operation { object, kind } = access.operation;
    if kind == OpKind::TryLock {
        // A mutex is locked by every other store.
        let label = Label::of(object, Class::Acquire);
        let last = graph.last_place(object);
        let fails = (1..=last).step_by(2);
        let mut all: Vec<Outcome> = fails
            .map(|place| Outcome::Reads(graph.store_at(object, place)))
            .collect();
        if last.is_multiple_of(2) {
            let alternative = 0;
            all.push(Outcome::Other { alternative, label });
        }
        return all;
    }
    if !access.is_to_atomic() {
        return vec![Outcome::Done];
    }
    let places = 0..=graph.last_place(object);
    let mut all = Vec::new();
    for place in places {
        let store = graph.store_at(object, place);
        let Some(outcome) = graph.outcome_at(access, place) else {
            continue;
        };
        all.push(outcome);
        if let (Outcome::Modifies(_), OpKind::CompareExchange { spurious: true, .. }) =
            (outcome, kind)
        {
            all.push(Outcome::Reads(store));
        }
    }
    all
}

/// Compares the outcomes of a model with those that leave the axioms intact, of each thread.
fn compare(model: &mut C11, is_rc11: bool, next: &[(ThreadId, Option<Access>)]) {
    for &(thread, access) in next {
        let Some(access) = access else { continue };
        if matches!(access.operation.kind, OpKind::Other(_)) {
            continue;
        }
        let mut outcomes = Vec::new();
        model.outcomes(thread, &access, &mut outcomes);
        let newest = model.newest(thread, &access);
        assert!(newest.is_none_or(|newest| outcomes.first() == Some(&newest)));
        for outcome in candidates(model.graph(), &access) {
            let mut graph = model.graph().clone();
            graph.take(thread, &access, outcome, Grant::Nothing);
            let consistent = Relations::of(&graph).are_consistent(is_rc11);
            let is_there = outcomes.contains(&outcome);
            assert_eq!(
                is_there, consistent,
                "{outcome:?} of {thread:?}'s {access:?}"
            );
        }
    }
}

/// So many prefixes of graphs are enough of a program.
const MOST: usize = 1_000;

#[test]
fn random_programs_have_the_outcomes_that_the_axioms_allow() {
    let (mut programs, mut prefixes, mut graphs) = (0, 0, 0);
    for seed in 1..=number("DPOR_FUZZ", 20_000).div_ceil(40) {
        let menu = match seed % 4 {
            0 => Menu::StaleAwaits,
            1 => Menu::Locks,
            2 => Menu::StaleLocks,
            _ => Menu::All,
        };
        let text = program(seed, menu);
        let litmus = Litmus::parse(&text);
        for axioms in [Axioms::Rc11, Axioms::ReleaseAcquire] {
            let mut model = litmus.model(axioms);
            let is_rc11 = axioms == Axioms::Rc11;
            let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let look = &mut |model: &mut C11, next: &[_]| compare(model, is_rc11, next);
                brute_force(&litmus, &mut model, MOST, look)
            }));
            let Ok(found) = found else {
                panic!("{axioms:?}, seed {seed}: {text}")
            };
            let Some(found) = found else { continue };
            programs += 1;
            prefixes += found.prefixes;
            graphs += found.graphs.len();
        }
    }
    println!("{programs} programs, {graphs} graphs, {prefixes} prefixes");
}

/// The graphs that have one order of all events which each read agrees with.
fn sequential(program: &Litmus, most: usize) -> Option<BTreeSet<Key>> {
    let mut those = BTreeSet::new();
    let look = &mut |model: &mut C11, next: &[(ThreadId, Option<Access>)]| {
        let is_over = next.iter().all(|(_, access)| access.is_none());
        if is_over && Relations::of(model.graph()).are_sequential() {
            those.insert(key(model.graph()));
        }
    };
    let mut model = program.model(Axioms::Rc11);
    brute_force(program, &mut model, most, look)?;
    Some(those)
}

#[test]
fn sequential_consistency_is_what_seq_cst_alone_is_and_what_has_one_order() {
    let mut graphs = 0;
    for seed in 1..=number("DPOR_FUZZ", 20_000).div_ceil(20) {
        let text = program(seed, Menu::All);
        if text.contains("await") || text.contains("again") {
            continue;
        }
        let litmus = Litmus::parse(&text);
        let Some(in_order) = sequential(&litmus, MOST) else {
            continue;
        };
        let sc = super::graphs(&litmus, Model::Sc).keys();
        assert_eq!(sc, in_order, "seed {seed}: {text}");
        let strong = super::graphs(&litmus.strengthened(), Model::Rc11).keys();
        assert_eq!(sc, strong, "seed {seed}: {text}");
        graphs += sc.len();
    }
    println!("{graphs} graphs");
}

/// The program with each mutex as an atomic that read-modify-writes lock and unlock, as std's are.
/// Where it fails, a `try_lock` is a relaxed load there.
fn with_words(text: &str) -> String {
    let words = text.split_inclusive(' ').collect::<Vec<_>>();
    let mut told = String::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let (to, verb) = word.split_once('=').unwrap_or(("", word));
        let (next, with) = match verb.trim() {
            "K" => ("L", " acq"),
            "U" => ("X", " 0 rel"),
            "T" if !to.is_empty() => ("C", " 0 1 acq rlx"),
            _ => {
                told.push_str(word);
                continue;
            }
        };
        let mutex = words.next().expect("a mutex");
        let (name, rest) = mutex.split_at(1);
        let equals = if to.is_empty() { "" } else { "=" };
        told.push_str(&format!("{to}{equals}{next} {name}{with}{rest}"));
    }
    told
}

#[test]
fn a_mutex_is_an_atomic_that_read_modify_writes_lock() {
    let text = "?r0==0 { K m; F sc; U m } ∥ r1=T m; ?r1==0 { W x 1 rlx; U m }";
    let told =
        "?r0==0 { L m acq; F sc; X m 0 rel } ∥ r1=C m 0 1 acq rlx; ?r1==0 { W x 1 rlx; X m 0 rel }";
    assert_eq!(with_words(text), told);
    let (mut checked, mut graphs) = (0, 0);
    for seed in 1..=number("DPOR_FUZZ", 20_000).div_ceil(4) {
        let text = program(seed, Menu::Locks);
        // Behind a failed `try_lock` an acquire fence learns what std's word tells, and of what no
        // documentation speaks. It learns nothing here.
        if text.contains("F acq") || text.contains("F ar") || text.contains("F sc") {
            continue;
        }
        let of = |text: &str| {
            let litmus = Litmus::parse(text);
            let mut model = litmus.model(Axioms::Rc11);
            brute_force(&litmus, &mut model, 2_000, &mut |_, _| ())
        };
        let (Some(locks), Some(words)) = (of(&text), of(&with_words(&text))) else {
            continue;
        };
        assert_eq!(
            locks.graphs.len(),
            words.graphs.len(),
            "seed {seed}: {text}"
        );
        assert_eq!(locks.registers, words.registers, "seed {seed}: {text}");
        assert_eq!(locks.races, words.races, "seed {seed}: {text}");
        checked += 1;
        graphs += locks.graphs.len();
    }
    println!("{checked} programs, {graphs} graphs");
    assert!(checked > 20, "only {checked}");
}

#[test]
fn fences_order_a_try_lock_that_fails_by_the_past() {
    let has = |text: &str, registers: &str| {
        let found = super::graphs(&Litmus::parse(text), Model::Rc11);
        found.registers.contains(registers)
    };
    // Store buffering, with an unlock in place of one of the stores.
    let buffering =
        |fence: &str| format!("W x 1 rlx; F {fence}; a=T m; ?a==0 U m ∥ K m; U m; F sc; b=R x rlx");
    assert!(has(&buffering("ar"), "a=1 b=0"));
    assert!(!has(&buffering("sc"), "a=1 b=0"));
    // Message passing. What the thread has read by one attempt, the next one does not read behind.
    let passing = |load: &str| format!("K m; U m; W x 1 rel ∥ a=R x {load}; b=T m; ?b==0 U m");
    assert!(has(&passing("rlx"), "a=1 b=1"));
    assert!(!has(&passing("acq"), "a=1 b=1"));
    let twice = "K m; U m; K m; U m; W x 1 rlx ∥ a=R x rlx; b=T m; c=T m";
    let found = super::graphs(&Litmus::parse(twice), Model::Rc11);
    // Of the two locks an attempt reads either or succeeds, and goes back to none. The ones that
    // read the same one are equal in their registers.
    assert!(found.registers.contains("a=1 b=1 c=1"));
    assert!(!found.registers.contains("a=1 b=0 c=0"));
}
