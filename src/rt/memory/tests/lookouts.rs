//! Does the look-out say for each program whether C11 has more than sequential consistency?

use super::super::lookout::Lookout;
use super::super::{Access, MemoryModel};
use super::random::{Menu, number, program};
use super::*;
use crate::rt::event::id::ThreadId;

/// Whether the look-out sees something in an execution under sequential consistency, and the graphs
/// of those; `None` if they have more prefixes than that.
fn look_out(program: &Litmus, most: usize) -> Option<(bool, Found)> {
    let mut is_weak = false;
    let look = &mut |model: &mut Lookout, next: &[(ThreadId, Option<Access>)]| {
        let mut outcomes = Vec::new();
        // What happens next in one execution or another, and what is blocked at the end.
        let mut enabled = Vec::new();
        let mut blocked = Vec::new();
        for &(thread, access) in next {
            let Some(access) = access else { continue };
            model.outcomes(thread, &access, &mut outcomes);
            let those = if outcomes.is_empty() {
                &mut blocked
            } else {
                &mut enabled
            };
            those.push((thread, access));
        }
        let those = if enabled.is_empty() { blocked } else { enabled };
        for (thread, access) in those {
            is_weak |= model.weak_outcome(thread, &access).is_some();
        }
    };
    let mut lookout = Lookout::new(program.begin());
    program.introduce(lookout.model());
    let found = brute_force(program, &mut lookout, most, look)?;
    Some((is_weak, found))
}

#[test]
fn the_look_out_tells_of_each_litmus_program_whether_it_has_more_graphs_under_rc11() {
    for &(name, text, [sc, rc11, _], _) in super::litmus::TABLE {
        let (is_weak, found) = look_out(&Litmus::parse(text), usize::MAX).expect("no limit");
        assert_eq!(found.graphs.len(), sc, "{name}");
        assert_eq!(is_weak, rc11 > sc, "{name}");
    }
}

#[test]
fn the_look_out_tells_of_random_programs_whether_they_have_other_graphs_under_rc11() {
    let (mut weak, mut strong) = (0, 0);
    for seed in 1..=number("DPOR_FUZZ", 20_000).div_ceil(4) {
        let menu = match seed % 4 {
            0 => Menu::StaleAwaits,
            1 => Menu::Locks,
            _ => Menu::All,
        };
        let text = program(seed, menu);
        let litmus = Litmus::parse(&text);
        let mut model = litmus.model(Axioms::Rc11);
        let Some(rc11) = brute_force(&litmus, &mut model, 400, &mut |_, _| ()) else {
            continue;
        };
        let Some((is_weak, sc)) = look_out(&litmus, usize::MAX) else {
            continue;
        };
        // A deadlock under sequential consistency is no graph of C11 if its await may read an old
        // value.
        let has_more = !rc11.keys().is_subset(&sc.keys());
        assert_eq!(is_weak, has_more, "seed {seed}: {text}");
        *if is_weak { &mut weak } else { &mut strong } += 1;
    }
    println!("{weak} programs with weak behaviour, {strong} without");
}
