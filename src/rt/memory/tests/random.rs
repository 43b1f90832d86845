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
    let locations = if menu == Menu::StaleAwaits {
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
        let fence = (menu == Menu::StaleAwaits).then(|| 1 + rng.below(2));
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
    if menu == Menu::All && rng.below(4) == 0 {
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
        _ => {
            let value = rng.below(3);
            (format!("await {x}=={value} {load}"), None)
        }
    }
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
        let menu = if seed % 4 == 0 {
            Menu::StaleAwaits
        } else {
            Menu::All
        };
        let text = program(seed, menu);
        let litmus = Litmus::parse(&text);
        for axioms in [Axioms::Rc11, Axioms::ReleaseAcquire] {
            let mut model = C11::new(litmus.begin(), axioms);
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
    let mut model = C11::new(program.begin(), Axioms::Rc11);
    brute_force(program, &mut model, most, look)?;
    Some(those)
}

#[test]
fn sequential_consistency_is_what_seq_cst_alone_is_and_what_has_one_order() {
    let mut graphs = 0;
    for seed in 1..=number("DPOR_FUZZ", 20_000).div_ceil(20) {
        let text = program(seed, Menu::All);
        if text.contains("await") {
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
