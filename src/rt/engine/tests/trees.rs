//! How large do the wakeup trees become?

use std::cell::RefCell;
use std::rc::Rc;

use crate::rt::engine::checkpoint::SavedNode;
use crate::rt::engine::plan::Plan;
use crate::rt::engine::stats::Trees;
use crate::rt::engine::testing::programs::{indexer, lastzero, readers, wakeup_stress};
use crate::rt::engine::testing::*;
use crate::rt::engine::tests::lost_update;
use crate::rt::engine::tests::random;
use crate::rt::engine::wakeup_tree::Node;
use crate::rt::engine::{Choice, Execution, Explorer, Point, TieBreak};

/// What an explorer says of its trees, and the same counted behind each execution in what a
/// checkpoint would hold.
#[derive(Default, Debug)]
struct Counted {
    told: Trees,
    counted: Trees,
}

struct Watched {
    inner: Box<dyn Explorer>,
    seen: Rc<RefCell<Counted>>,
}

impl Explorer for Watched {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        let goes_on = self.inner.begin(plan);
        let mut seen = self.seen.borrow_mut();
        seen.told = self.inner.trees().expect("it has trees");
        goes_on
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        self.inner.choose(at)
    }

    fn finish(&mut self, run: &Execution<'_>) {
        self.inner.finish(run);
        let Some(unfinished) = self.inner.unfinished(run.trace) else {
            return;
        };
        let most = &mut self.seen.borrow_mut().counted;
        let (mut branches, mut nodes) = (0, 0);
        for (before, point) in unfinished.points.iter().enumerate() {
            let tree = &point.tree;
            let is_end = |&at: &usize| match tree.get(at + 1) {
                Some(next) => next.depth <= tree[at].depth,
                None => true,
            };
            let ends = (0..tree.len()).filter(is_end);
            let here = ends.count();
            most.widest = most.widest.max(here);
            branches += here;
            nodes += tree.len();
            let below = |node: &SavedNode| before + node.depth as usize + 1;
            most.depth = most.depth.max(tree.iter().map(below).max().unwrap_or(0));
        }
        most.branches = most.branches.max(branches);
        most.bytes = most.bytes.max(nodes * size_of::<Node>());
        // In another order there is one tree.
        let ends = unfinished.open.iter().filter(|open| open.ends);
        let depth = ends.clone().map(|open| open.node.depth as usize + 1);
        most.depth = most.depth.max(depth.max().unwrap_or(0));
        most.branches = most.branches.max(ends.count());
    }
}

/// `None` if there are more executions than this.
fn trees_of(program: &Program, explorer: Box<dyn Explorer>, most: u64) -> Option<Counted> {
    let seen = Rc::new(RefCell::new(Counted::default()));
    let explorer = Watched {
        inner: explorer,
        seen: seen.clone(),
    };
    explore_with(program, Box::new(explorer), false, most)?;
    Some(seen.take())
}

#[test]
fn the_largest_trees_are_those_that_a_checkpoint_would_hold() {
    let mut branches = 0;
    for seed in 1..2000 {
        let program = random::program(seed);
        let Some(found) = trees_of(&program, explorer("optimal", TieBreak::Random(seed)), 300)
        else {
            continue;
        };
        assert_eq!(found.told, found.counted, "seed {seed}");
        branches += found.told.branches;
    }
    assert!(branches > 2000, "{branches}");
}

#[test]
fn the_published_programs_have_these_trees() {
    // Events to the end of the deepest branch; branches of one tree and of all; steps of all.
    let rows: &[(&str, Program, [usize; 4])] = &[
        ("wakeup_stress(4)", wakeup_stress(4), [15, 3, 5, 9]),
        ("wakeup_stress(6)", wakeup_stress(6), [21, 5, 12, 18]),
        ("lastzero(5)", lastzero(5), [20, 16, 16, 62]),
        ("lastzero(10)", lastzero(10), [40, 512, 512, 2046]),
        ("readers(8)", readers(8), [25, 127, 127, 381]),
        ("indexer(12)", indexer(12), [20, 1, 3, 9]),
        ("lost_update(4)", lost_update(4), [11, 12, 19, 27]),
    ];
    let found = rows.iter().map(|(name, program, _)| {
        let found = trees_of(program, explorer("optimal", TieBreak::Last), u64::MAX);
        let Counted { told, counted } = found.expect("there is no limit");
        assert_eq!(told, counted, "{name}");
        let steps = told.bytes / size_of::<Node>();
        (*name, [told.depth, told.widest, told.branches, steps])
    });
    let expected = rows.iter().map(|&(name, _, expected)| (name, expected));
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn in_another_order_there_is_one_tree() {
    for (order, branches) in [("stride", 18), ("round_robin", 12)] {
        let found = trees_of(&lastzero(5), explorer(order, TieBreak::Last), u64::MAX);
        let Counted { told, counted } = found.expect("there is no limit");
        assert_eq!((told.widest, told.branches), (branches, branches));
        let of = |trees: Trees| (trees.depth, trees.branches);
        assert_eq!(of(told), of(counted), "{order}");
        // Each branch has a step of its own.
        assert!(told.bytes >= branches * size_of::<Node>());
    }
}
