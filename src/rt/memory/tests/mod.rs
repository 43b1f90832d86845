//! Do the models say what the axioms say, and does the search find every graph once?

mod engine;
mod families;
mod litmus;
mod lookouts;
mod random;
mod searches;

use super::c11::{Axioms, C11};
use super::sc::Sc;
use super::search::Program;
use super::testing::{Found, Litmus, brute_force, key};

/// The models of the tables.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Model {
    Sc,
    Rc11,
    ReleaseAcquire,
}

const MODELS: [Model; 3] = [Model::Sc, Model::Rc11, Model::ReleaseAcquire];

impl Model {
    /// The axioms of a model that has some.
    fn axioms(self) -> Axioms {
        match self {
            Model::Sc => unreachable!("sequential consistency is no matter of axioms here"),
            Model::Rc11 => Axioms::Rc11,
            Model::ReleaseAcquire => Axioms::ReleaseAcquire,
        }
    }
}

/// The graphs of a program under a model.
fn graphs(program: &Litmus, model: Model) -> Found {
    let found = match model {
        Model::Sc => {
            let mut model = Sc::new(program.begin());
            brute_force(program, &mut model, usize::MAX, &mut |_, _| ())
        }
        _ => {
            let mut model = program.model(model.axioms());
            brute_force(program, &mut model, usize::MAX, &mut |_, _| ())
        }
    };
    found.expect("there is no limit")
}
