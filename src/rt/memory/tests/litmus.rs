//! Do the litmus programs have the graphs that they are to have?

mod table;

use std::collections::BTreeSet;

use super::*;
pub(super) use table::TABLE;

#[test]
fn litmus_programs_have_their_graphs_under_each_model() {
    let mut wrong = Vec::new();
    for &(name, text, counts, outcomes) in TABLE {
        let program = Litmus::parse(text);
        let [sc, rc11, ra] = MODELS.map(|model| graphs(&program, model));
        let new: BTreeSet<&str> = rc11
            .registers
            .difference(&sc.registers)
            .map(String::as_str)
            .collect();
        let sorted = |outcome: &str| {
            let mut words: Vec<String> = outcome.split_whitespace().map(str::to_owned).collect();
            words.sort();
            words.join(" ")
        };
        let wanted: BTreeSet<String> = outcomes
            .split("; ")
            .filter(|outcome| !outcome.is_empty())
            .map(sorted)
            .collect();
        let are = [sc.graphs.len(), rc11.graphs.len(), ra.graphs.len()];
        let wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
        if are != counts || new != wanted {
            wrong.push(format!(
                "{name}: {are:?} for {counts:?}, {new:?} for {wanted:?}"
            ));
        }
        assert!(sc.keys().is_subset(&rc11.keys()), "{name}");
        assert!(rc11.keys().is_subset(&ra.keys()), "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
