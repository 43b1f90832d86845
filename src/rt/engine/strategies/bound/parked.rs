//! Before which operations must a thread be preempted?
//!
//! Only before those that another thread's operation depends on. The executions in which the thread
//! continues show which operations these are, and until then the branches that preempt the thread
//! are parked here. The contribution of an operation to the key of a trace identifies it, because
//! this contribution depends on the events that happen before it.

use crate::rt::engine::strategies::bound::Branch;
use crate::rt::engine::strategies::bound::table::Table;
use crate::rt::relation::key::TraceKey;

/// The known facts about the next operations of preempted threads.
#[derive(Default)]
pub(super) struct Parked {
    operations: Table<Known>,
    waiting: Vec<Waiting>,
    /// Free places in `waiting`, linked.
    free: Option<u32>,
}

#[derive(Clone, Copy)]
enum Known {
    /// An operation of another thread depends on it.
    Raced,
    /// No operation is known to depend on it. The first of the branches that wait for one, and
    /// whether some branches were too dear.
    Not { first: Option<u32>, too_dear: bool },
}

struct Waiting {
    branch: Branch,
    next: Option<u32>,
}

impl Parked {
    /// Parks these branches before this operation, and notes whether others are left out because
    /// they are too `dear`. False if an operation is known to depend on it, and nothing was done:
    /// all branches must be explored.
    pub(super) fn park(&mut self, operation: TraceKey, branches: &[Branch], dear: bool) -> bool {
        let (known, _) = self.operations.entry(operation, Known::default());
        let Known::Not { first, too_dear } = known else {
            return false;
        };
        *too_dear |= dear;
        for &branch in branches {
            let waiting = Waiting {
                branch,
                next: *first,
            };
            *first = Some(match self.free {
                Some(at) => {
                    let free = std::mem::replace(&mut self.waiting[at as usize], waiting);
                    self.free = free.next;
                    at
                }
                None => {
                    self.waiting.push(waiting);
                    self.waiting.len() as u32 - 1
                }
            });
        }
        true
    }

    /// Another thread's operation depends on this one. Moves its branches to `explored`. True if
    /// some had been left out.
    pub(super) fn race(&mut self, operation: TraceKey, explored: &mut Vec<Branch>) -> bool {
        let (known, _) = self.operations.entry(operation, Known::Raced);
        match std::mem::replace(known, Known::Raced) {
            Known::Not { first, too_dear } => {
                self.release(first, explored);
                too_dear
            }
            Known::Raced => false,
        }
    }

    /// Whether another thread's operation is known to depend on this one, or no branch is parked
    /// before it.
    pub(super) fn is_raced(&self, operation: TraceKey) -> bool {
        !matches!(self.operations.get(operation), Some(Known::Not { .. }))
    }

    /// Moves the branches of all operations to `explored`, whether an operation depends on them or
    /// not. True if some had been left out.
    pub(super) fn release_all(&mut self, explored: &mut Vec<Branch>) -> bool {
        let mut left_out = false;
        for known in self.operations.take() {
            if let Known::Not { first, too_dear } = known {
                self.release(first, explored);
                left_out |= too_dear;
            }
        }
        left_out
    }

    fn release(&mut self, mut first: Option<u32>, explored: &mut Vec<Branch>) {
        let from = explored.len();
        while let Some(at) = first {
            let waiting = &mut self.waiting[at as usize];
            explored.push(waiting.branch);
            first = std::mem::replace(&mut waiting.next, self.free);
            self.free = Some(at);
        }
        // The list starts with the latest branch.
        explored[from..].reverse();
    }

    /// The number of bytes of the table.
    pub(super) fn memory(&self) -> usize {
        self.operations.memory() + self.waiting.capacity() * size_of::<Waiting>()
    }
}

impl Default for Known {
    fn default() -> Known {
        Known::Not {
            first: None,
            too_dear: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::engine::strategies::bound::Candidate;
    use crate::rt::engine::strategies::bound::seen::Way;
    use crate::rt::event::id::ThreadId;
    use crate::rt::event::operation::Step;

    fn branch(node: u32) -> Branch {
        let candidate = Candidate {
            step: Step::of(ThreadId::MAIN),
            to: None,
            way: Way::default(),
        };
        Branch { node, candidate }
    }

    #[test]
    fn branches_wait_for_their_operation_and_no_other_one() {
        let mut parked = Parked::default();
        let [one, two] = [1, 2].map(TraceKey::of_test);
        let mut explored = Vec::new();
        let mut race = |parked: &mut Parked, operation| {
            let left_out = parked.race(operation, &mut explored);
            (
                explored.drain(..).map(|b| b.node).collect::<Vec<_>>(),
                left_out,
            )
        };
        assert!(parked.park(one, &[branch(1), branch(7)], false));
        assert!(parked.park(two, &[branch(2)], false));
        assert!(parked.park(one, &[branch(3)], false));
        assert!(parked.park(two, &[], true), "nobody depends on it");
        assert_eq!(race(&mut parked, one), (vec![1, 7, 3], false));
        assert_eq!(race(&mut parked, one), (vec![], false));
        // An operation that others are known to depend on parks no branch, and branches left out
        // there are missing.
        assert!(!parked.park(one, &[branch(4)], false));
        assert!(!parked.park(one, &[], true));
        // Places are reused.
        assert!(parked.park(two, &[branch(5)], false));
        assert_eq!(parked.waiting.len(), 4);
        assert_eq!(race(&mut parked, two), (vec![2, 5], true));
        let mut all = Vec::new();
        assert!(parked.park(TraceKey::of_test(3), &[branch(6)], false));
        assert!(!parked.release_all(&mut all));
        assert_eq!(all.len(), 1);
    }
}
