//! How many executions will there be?
//!
//! An exploration walks a tree: an execution is a leaf, and a point where executions branch off is
//! a node with a number of branches. For each node above the current leaf the estimator knows the
//! number of branches that are done, their number of leaves, and the number of planned branches.
//! Two estimators of Kilby, Slaney, Thiébaux, Walsh, *Estimating Search Tree Size* (AAAI 2006),
//! which both go back to Knuth, *Estimating the Efficiency of Backtrack Programs* (1975):
//!
//! * [`Estimator::recursive`] (section 4): a planned branch is as large as the average of the
//!   finished branches of the same node.
//! * `Estimator::weighted` (section 3): every branch of a node stands for the same share of it; the
//!   leaves so far, divided by the share they stand for.
//!
//! Both assume that no branches besides the planned ones will come. Races found later add branches,
//! so early estimates are too low; `docs/BIG_STATE_SPACES.md` has the errors on known programs.
//! With millions of traces an estimate is some five times the number of executions so far, at any
//! time. So an estimate counts as reliable only once it has stayed the same while the number of
//! executions grew to eight times as many.

use crate::rt::pooled::Empty;

/// The largest estimate. It has to stay a number that can be multiplied: a loop that may continue
/// for ever has as many executions as there is time for.
pub(crate) const MOST: f64 = 1e200;

/// The first number of executions at which an estimate is kept. An estimate that has stayed the
/// same therefore comes after at least eight times as many.
const KEPT_FROM: u64 = 1 << 8;

/// An estimate has settled if it and those that were kept last differ by no more than this factor.
/// The number of executions has grown to at least eight times as many meanwhile. Four times are too
/// few: seven threads that lose updates (25,401,600 traces) stay at 115,000 from 4,096 to 16,384
/// executions.
const SETTLED: f64 = 1.5;

/// The finished part of the tree.
#[derive(Default, Debug)]
pub(crate) struct Estimator {
    /// The nodes above the current leaf that have a finished branch, from the root on.
    nodes: Vec<Node>,
    leaves: u64,
    /// The estimates at the last four powers of two, the latest first; 0 where there was none.
    kept: [f64; 4],
}

#[derive(Debug)]
struct Node {
    depth: usize,
    /// The number of finished branches.
    done: u64,
    /// The number of leaves when the exploration reached the node, and when it reached the node's
    /// current branch.
    before: u64,
    before_branch: u64,
}

impl Empty for Estimator {
    fn empty(&mut self) {
        let Estimator {
            nodes,
            leaves,
            kept,
        } = self;
        nodes.empty();
        (*leaves, *kept) = Default::default();
    }
}

impl Estimator {
    /// The next execution branches off at this depth.
    pub(crate) fn branch(&mut self, depth: usize) {
        while self.nodes.last().is_some_and(|node| node.depth > depth) {
            self.nodes.pop();
        }
        if let Some(node) = self.nodes.last_mut()
            && node.depth == depth
        {
            node.done += 1;
            node.before_branch = self.leaves;
            return;
        }
        let before = self.nodes.last().map_or(0, |above| above.before_branch);
        self.nodes.push(Node {
            depth,
            done: 1,
            before,
            before_branch: self.leaves,
        });
    }

    /// An execution has ended.
    pub(crate) fn leaf(&mut self) {
        self.leaves += 1;
    }

    /// Whether the estimate after this execution is one of those to be kept.
    #[inline]
    pub(crate) fn is_to_keep(&self) -> bool {
        self.leaves >= KEPT_FROM && self.leaves.is_power_of_two()
    }

    /// Keeps this estimate, so that later ones can be compared with it.
    pub(crate) fn keep(&mut self, estimate: Option<f64>) {
        self.kept.rotate_right(1);
        self.kept[0] = estimate.unwrap_or_default();
    }

    /// Whether this current estimate is the same as when there were an eighth of the executions.
    pub(crate) fn has_settled(&self, estimate: f64) -> bool {
        let kept = self.kept.iter().copied();
        let (least, most) = kept.fold((estimate, estimate), |(least, most), it| {
            (least.min(it), most.max(it))
        });
        most <= SETTLED * least
    }

    /// The least of this current estimate and those since there were an eighth of the executions.
    ///
    /// An estimate may be far too high, too: a branch of a deep and narrow tree that happens to be
    /// large stands for all planned ones. Such an estimate goes as it came, from one execution to
    /// the next, so a single one is no lower bound.
    pub(crate) fn least(&self, estimate: f64) -> f64 {
        let kept = self.kept.iter().copied().filter(|kept| *kept > 0.0);
        kept.fold(estimate, f64::min)
    }

    /// The state of the estimator, as numbers.
    pub(super) fn save(&self) -> Vec<u64> {
        let mut numbers = vec![self.leaves];
        numbers.extend(self.kept.map(f64::to_bits));
        for node in self.nodes.iter() {
            let depth = node.depth as u64;
            numbers.extend([depth, node.done, node.before, node.before_branch]);
        }
        numbers
    }

    /// Restores the numbers of [`Estimator::save`]; false if `numbers` are invalid.
    pub(super) fn restore(&mut self, numbers: &[u64]) -> bool {
        let Some((&[leaves, ref kept @ ..], nodes)) = numbers.split_first_chunk::<5>() else {
            return false;
        };
        self.leaves = leaves;
        self.kept = kept.map(f64::from_bits);
        let (nodes, rest) = nodes.as_chunks::<4>();
        let node = |&[depth, done, before, before_branch]: &[u64; 4]| Node {
            depth: depth as usize,
            done,
            before,
            before_branch,
        };
        self.nodes.clear();
        self.nodes.extend(nodes.iter().map(node));
        let ordered =
            |node: &Node| node.before <= node.before_branch && node.before_branch <= leaves;
        let numbers = self.kept.iter().all(|it| it.is_finite() && *it >= 0.0);
        rest.is_empty() && numbers && self.nodes.iter().all(ordered)
    }

    /// Visits every node above the current leaf that has or will have another branch, from the leaf
    /// up: branches done, leaves in them, branches planned. `planned` holds depths and numbers,
    /// from the root on.
    fn each(&self, planned: &[(usize, u64)], mut visit: impl FnMut(u64, u64, u64)) {
        let (mut nodes, mut planned) = (self.nodes.iter().rev(), planned.iter().rev());
        let (mut node, mut plan) = (nodes.next(), planned.next());
        loop {
            match (node, plan) {
                (None, None) => return,
                (Some(n), p) if p.is_none_or(|p| p.0 < n.depth) => {
                    visit(n.done, n.before_branch - n.before, 0);
                    node = nodes.next();
                }
                (Some(n), Some(p)) if p.0 == n.depth => {
                    visit(n.done, n.before_branch - n.before, p.1);
                    (node, plan) = (nodes.next(), planned.next());
                }
                (_, Some(p)) => {
                    visit(0, 0, p.1);
                    plan = planned.next();
                }
                (Some(_), None) => unreachable!("dpor bug: covered by the second arm"),
            }
        }
    }

    /// The recursive estimate of the number of leaves, at most [`MOST`].
    pub(crate) fn recursive(&self, planned: &[(usize, u64)]) -> f64 {
        let mut size = 1.0_f64;
        self.each(planned, |done, leaves, planned| {
            let seen = leaves as f64 + size;
            size = (seen + planned as f64 * seen / (done + 1) as f64).min(MOST);
        });
        size
    }

    /// The weighted-backtrack estimate of the number of leaves.
    #[cfg(test)]
    pub(crate) fn weighted(&self, planned: &[(usize, u64)]) -> f64 {
        let mut share = 1.0;
        self.each(planned, |done, _, planned| {
            share = (done as f64 + share) / (done + 1 + planned) as f64;
        });
        self.leaves as f64 / share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks a complete tree with these numbers of branches, from the root down, and calls `visit`
    /// at each leaf with the planned branches.
    fn walk(widths: &[u64], mut visit: impl FnMut(&Estimator, &[(usize, u64)])) {
        let mut estimator = Estimator::default();
        let mut left: Vec<u64> = widths.iter().map(|width| width - 1).collect();
        loop {
            estimator.leaf();
            let planned: Vec<_> = left.iter().copied().enumerate().collect();
            let planned: Vec<_> = planned.into_iter().filter(|&(_, n)| n > 0).collect();
            visit(&estimator, &planned);
            let Some(&(depth, _)) = planned.last() else {
                return;
            };
            left[depth] -= 1;
            for below in depth + 1..widths.len() {
                left[below] = widths[below] - 1;
            }
            estimator.branch(depth);
        }
    }

    #[test]
    fn an_estimate_is_a_number_however_deep_the_tree_is() {
        let mut estimator = Estimator::default();
        estimator.leaf();
        let planned: Vec<_> = (0..2000)
            .map(|depth| (depth, u64::from(depth % 3 > 0)))
            .collect();
        assert_eq!(estimator.recursive(&planned), MOST);
    }

    /// For each number of executions whether the estimate has settled. Estimates are kept from
    /// `KEPT_FROM` executions on.
    fn settled(leaves: u64, estimate: impl Fn(f64) -> f64) -> Vec<(u64, bool)> {
        let mut estimator = Estimator::default();
        let each = (1..=leaves).map(|executions| {
            estimator.leaf();
            let now = estimate(executions as f64);
            if estimator.is_to_keep() {
                estimator.keep(Some(now));
            }
            (executions, estimator.has_settled(now))
        });
        each.collect()
    }

    #[test]
    fn an_estimate_settles_once_it_has_stayed_while_the_executions_became_eight_times_as_many() {
        let first = |told: &[(u64, bool)]| told.iter().find(|it| it.1).map(|it| it.0);
        assert_eq!(first(&settled(5000, |_| 1e6)), Some(8 * KEPT_FROM));
        // Observed with 63,063,000 traces: the estimate is some five times the number of
        // executions, at any time.
        assert_eq!(
            first(&settled(1 << 20, |executions| 5.0 * executions)),
            None
        );
        assert_eq!(
            first(&settled(1 << 20, |executions| 300.0 * executions.sqrt())),
            None
        );
        let late = settled(1 << 14, |executions| (5.0 * executions).min(1e4));
        assert_eq!(first(&late), Some(1 << 14));
        // Seven threads that lose updates, with 25,401,600 traces, from 2048 executions on.
        let plateau = [
            3.9e4, 9.8e4, 1.15e5, 1.14e5, 2.3e5, 7.8e5, 1.7e6, 2.3e6, 1.3e6, 3.6e6,
        ];
        let seen = |executions: f64| plateau[(executions.log2() as usize).saturating_sub(11)];
        assert_eq!(
            first(&settled((1 << 21) - 1, |executions| match executions {
                2048.0.. => seen(executions),
                _ => 5.0 * executions,
            })),
            None
        );
    }

    #[test]
    fn an_estimate_that_jumps_has_to_settle_anew() {
        let jumps = |executions: f64| if executions < 3000.0 { 1e5 } else { 4e5 };
        let told = settled(1 << 15, jumps);
        let at = |executions: usize| told[executions - 1].1;
        assert_eq!([2047, 2048, 2999].map(at), [false, true, true]);
        assert_eq!([3000, 32_767, 32_768].map(at), [false, false, true]);
    }

    #[test]
    fn a_lower_bound_is_the_least_estimate_of_the_last_while() {
        let mut estimator = Estimator::default();
        assert_eq!(estimator.least(4e6), 4e6);
        // Observed with a queue of Vyukov's after 120,000 to 240,000 executions.
        for estimate in [2e6, 6e6, 1e6, 9e7] {
            estimator.keep(Some(estimate));
        }
        assert_eq!(estimator.least(6e7), 1e6);
        assert_eq!(estimator.least(8e5), 8e5);
        for _ in 0..4 {
            estimator.keep(Some(9e7));
        }
        assert_eq!(estimator.least(1e8), 9e7);
        estimator.keep(None);
        assert_eq!(estimator.least(1e8), 9e7);
    }

    #[test]
    fn what_was_kept_of_estimates_is_taken_up_again() {
        let mut estimator = Estimator::default();
        for _ in 0..4 {
            estimator.keep(Some(1e5));
        }
        let mut taken_up = Estimator::default();
        assert!(taken_up.restore(&estimator.save()));
        assert!(taken_up.has_settled(1e5) && !taken_up.has_settled(2e5));
        let mut damaged = estimator.save();
        damaged[1] = f64::NAN.to_bits();
        assert!(!taken_up.restore(&damaged));
        // Without a kept estimate there is none to rely on.
        estimator.keep(None);
        assert!(!estimator.has_settled(1e5));
    }

    #[test]
    fn both_estimates_of_an_even_tree_are_right_from_the_first_leaf_on() {
        let mut leaves = 0;
        walk(&[3, 1, 4, 2, 5], |estimator, planned| {
            leaves += 1;
            assert_eq!(estimator.recursive(planned).round(), 120.0);
            assert_eq!(estimator.weighted(planned).round(), 120.0);
        });
        assert_eq!(leaves, 120);
    }
}
