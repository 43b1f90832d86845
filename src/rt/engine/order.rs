//! Which of the planned branches is explored next?
//!
//! Depth-first search takes the one that branches off latest, so for a long time its executions
//! differ only near their ends. The orders here spread them. No order is random: the next branch is
//! a function of the planned branches and of those taken before. `Order` in the settings defines
//! each of them for users.

use std::collections::{BTreeMap, BTreeSet};

use crate::rt::engine::open_tree::NodeId;
#[cfg(any(test, feature = "bench"))]
use crate::rt::engine::rng::Rng;
use crate::rt::event::Site;

/// The sites of an event and of the reversed event that comes before it, as far as they are known.
pub(crate) type Pair = (Option<Site>, Option<Site>);

/// A branch that has just been planned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branch {
    pub(crate) end: NodeId,
    /// The number of events before it.
    pub(crate) depth: u32,
    /// The pair that it reverses.
    pub(crate) pair: Pair,
}

/// An order in which branches are explored.
#[derive(Debug)]
pub(crate) enum Order {
    /// Halves, quarters, eighths of the planned branches, in tree order: the van der Corput
    /// sequence. With the number of branches taken.
    BitReversal(u32),
    /// Advances by the square root of the number of planned branches, in tree order, and wraps
    /// around. With its position.
    Stride(u32),
    /// The depths at which branches begin take turns.
    RoundRobin(Turns<u32>),
    /// The pair of sites from which the fewest branches were taken.
    ConflictFirst(Turns<Pair>),
    /// Any branch with the same chance.
    #[cfg(any(test, feature = "bench"))]
    Random(Rng),
}

impl Order {
    /// Adds a branch that has been planned.
    pub(crate) fn add(&mut self, branch: Branch) {
        match self {
            Order::RoundRobin(depths) => depths.add(branch.depth, branch.end),
            Order::ConflictFirst(pairs) => pairs.add(branch.pair, branch.end),
            _ => {}
        }
    }

    /// Takes the branch to explore next, of so many, and returns its end; `None` if none is
    /// planned. `nth` is the end of the branch that has so many before it in tree order.
    pub(crate) fn next(&mut self, branches: u32, nth: impl Fn(u32) -> NodeId) -> Option<NodeId> {
        if branches == 0 {
            return None;
        }
        match self {
            Order::BitReversal(taken) => {
                *taken = taken.wrapping_add(1);
                // The reversed bits are the binary places of a number below 1.
                let fraction = u64::from(taken.reverse_bits());
                let before = (fraction * u64::from(branches)) >> 32;
                Some(nth(before as u32))
            }
            Order::Stride(at) => {
                *at = (*at + branches.isqrt()) % branches;
                Some(nth(*at))
            }
            Order::RoundRobin(depths) => depths.next(|_, now| now),
            Order::ConflictFirst(pairs) => pairs.next(|turns, _| turns),
            #[cfg(any(test, feature = "bench"))]
            Order::Random(rng) => Some(nth(rng.below(branches.into()) as u32)),
        }
    }

    /// The number of bytes that hold the planned branches.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Order::RoundRobin(depths) => depths.bytes(),
            Order::ConflictFirst(pairs) => pairs.bytes(),
            _ => 0,
        }
    }
}

/// Groups of branches that take turns; within a group the branch that was planned last comes first.
#[derive(Debug)]
pub(crate) struct Turns<K> {
    groups: BTreeMap<K, Group>,
    /// The groups that have branches, by rank.
    open: BTreeSet<(u64, K)>,
    /// The number of branches taken in all.
    now: u64,
    /// The number of branches that fit into the memory of all groups.
    room: usize,
}

#[derive(Default, Debug)]
struct Group {
    /// The group with the smallest rank is next.
    rank: u64,
    turns: u64,
    ends: Vec<NodeId>,
}

impl<K: Ord + Copy> Turns<K> {
    pub(crate) fn new() -> Turns<K> {
        Turns {
            groups: BTreeMap::new(),
            open: BTreeSet::new(),
            now: 0,
            room: 0,
        }
    }

    fn add(&mut self, key: K, end: NodeId) {
        let group = self.groups.entry(key).or_default();
        if group.ends.is_empty() {
            self.open.insert((group.rank, key));
        }
        let room = group.ends.capacity();
        group.ends.push(end);
        self.room += group.ends.capacity() - room;
    }

    /// Takes a branch. `rank` computes the new rank of its group from the number of the group's
    /// turns and the number of all turns.
    fn next(&mut self, rank: impl Fn(u64, u64) -> u64) -> Option<NodeId> {
        let (_, key) = self.open.pop_first()?;
        let group = self.groups.get_mut(&key)?;
        let end = group.ends.pop();
        self.now += 1;
        group.turns += 1;
        group.rank = rank(group.turns, self.now);
        if !group.ends.is_empty() {
            self.open.insert((group.rank, key));
        }
        end
    }

    fn bytes(&self) -> usize {
        self.room * size_of::<NodeId>() + self.groups.len() * size_of::<(K, Group, u64, K)>()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::rt::engine::open_tree::{OpenTree, ROOT};
    use crate::rt::event::id::{ObjectId, ThreadId};
    use crate::rt::event::operation::Step;
    use crate::rt::relation::independence::{Class, Label};

    /// Plans branches with these depths and pairs, in this order, and returns the numbers of the
    /// taken ones, while all of them stay in the tree.
    fn taken(mut order: Order, branches: &[(u32, Pair)], times: usize) -> Vec<usize> {
        let mut tree = OpenTree::new();
        let label = Label::of(ObjectId(0), Class::Read);
        let mut ends = Vec::new();
        for &(depth, pair) in branches {
            let step = (Step::of(ThreadId(depth)), label);
            let end = tree.plan(ROOT, [step].into_iter(), Location::caller());
            order.add(Branch { end, depth, pair });
            ends.push(end);
        }
        let mut next = || {
            let end = order.next(tree.branches(), |before| tree.nth(before))?;
            ends.iter().position(|&other| other == end)
        };
        (0..times).map(|_| next().expect("a branch")).collect()
    }

    fn sites() -> [Pair; 2] {
        [
            (Some(Location::caller()), None),
            (Some(Location::caller()), Some(Location::caller())),
        ]
    }

    #[test]
    fn bit_reversal_takes_the_middle_then_the_quarters_then_the_eighths() {
        let branches = [(0, sites()[0]); 8];
        let order = Order::BitReversal(0);
        assert_eq!(taken(order, &branches, 7), [4, 2, 6, 1, 5, 3, 7]);
    }

    #[test]
    fn stride_goes_on_by_the_square_root_and_round_again() {
        let branches = [(0, sites()[0]); 10];
        assert_eq!(taken(Order::Stride(0), &branches, 5), [3, 6, 9, 2, 5]);
    }

    #[test]
    fn round_robin_gives_each_depth_its_turn_and_takes_what_was_planned_last() {
        let site = sites()[0];
        let branches = [7, 2, 7, 2, 7, 5].map(|depth| (depth, site));
        let order = Order::RoundRobin(Turns::new());
        assert_eq!(taken(order, &branches, 6), [3, 5, 4, 1, 2, 0]);
    }

    #[test]
    fn conflict_first_takes_the_pair_of_places_that_was_taken_least_often() {
        let [a, b] = sites();
        let branches = [a, a, a, b].map(|pair| (0, pair));
        let mut order = Turns::new();
        // One branch of `b` was taken before.
        order.add(b, 17);
        assert_eq!(order.next(|turns, _| turns), Some(17));
        let order = Order::ConflictFirst(order);
        assert_eq!(taken(order, &branches, 4), [2, 1, 3, 0]);
    }
}
