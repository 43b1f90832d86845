//! Do the small programs and the families have the number of graphs that they are to have?

mod table;

use super::*;
pub(super) use table::{
    COLUMNS, Column, SMALL, T4, T5, T6, lastzero, readers, seqlock, store_buffering,
};
use table::{Counts, table};

#[test]
fn small_programs_have_their_graphs() {
    for &(text, sc, rc11) in SMALL {
        let program = Litmus::parse(text);
        let are = [Model::Sc, Model::Rc11].map(|model| graphs(&program, model).graphs.len());
        assert_eq!(are, [sc, rc11], "{text}");
    }
}

/// The graphs of a family's program in a column.
fn family(text: &str, column: Column) -> Found {
    let model = if column == Column::Sc {
        Model::Sc
    } else {
        Model::Rc11
    };
    graphs(&Litmus::parse(&column.apply(text)), model)
}

/// The programs of the families.
pub(super) fn programs() -> impl Iterator<Item = String> {
    table().into_iter().map(|counts| counts.program)
}

#[test]
fn families_have_their_graphs_and_their_races() {
    for Counts {
        program,
        graphs,
        races,
    } in table()
    {
        for (column, graphs) in COLUMNS.into_iter().zip(graphs) {
            let found = family(&program, column);
            assert_eq!(found.graphs.len(), graphs, "{column:?}: {program}");
            let has_race = found.races > 0;
            assert_eq!(has_race, races.contains(&column), "{column:?}: {program}");
        }
    }
}
