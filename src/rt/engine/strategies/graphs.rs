//! How is every execution graph of C11 explored exactly once?
//!
//! The search is that of [`search`](crate::rt::memory::search): Optimal-DPOR over outcomes. This
//! explorer passes executions to it and steps to the driver. The driver follows each execution with
//! the same [`WeakMemory`], so the graph is there when the explorer is asked.

use std::cell::RefCell;
use std::rc::Rc;

use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::Step;
use crate::rt::event::{Site, Trace};
use crate::rt::memory::search::{Free, Planned};
use crate::rt::memory::{Access, MemoryModel};

use crate::rt::engine::checkpoint::Unfinished;
use crate::rt::engine::order::{Branch, Order};
use crate::rt::engine::plan::Plan;
use crate::rt::engine::weak_memory::{WeakMemory, is_released};
use crate::rt::engine::{Choice, Execution, Explorer, Point};

/// The branches of a search that takes them in an order of choice.
struct Branches {
    order: Order,
    /// The branches by their numbers, each with the site of the event that it replaces, if that is
    /// known, and the numbers that are free.
    all: Vec<(Planned, Option<Site>)>,
    free: Vec<u32>,
    /// The numbers of the branches in tree order.
    sorted: Vec<u32>,
}

impl Branches {
    fn place(&self, end: &[u32]) -> usize {
        let is_before = |&other: &u32| *self.all[other as usize].0.end < *end;
        self.sorted.partition_point(is_before)
    }

    /// Adds a branch that replaces the event at this site.
    fn add(&mut self, planned: Planned, instead: Option<Site>) {
        let at = self.place(&planned.end);
        let depth = planned.depth() as u32;
        let number = match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = (planned, instead);
                number
            }
            None => {
                self.all.push((planned, instead));
                self.all.len() as u32 - 1
            }
        };
        self.sorted.insert(at, number);
        self.order.add(Branch {
            end: number,
            depth,
            pair: (instead, None),
        });
    }

    /// Takes the next one.
    fn next(&mut self) -> Option<(Planned, Option<Site>)> {
        let sorted = &self.sorted;
        let number = (self.order).next(sorted.len() as u32, |before| sorted[before as usize])?;
        let at = self.place(&self.all[number as usize].0.end);
        self.sorted.remove(at);
        self.free.push(number);
        Some(std::mem::take(&mut self.all[number as usize]))
    }
}

/// The explorer that visits each graph once.
pub(crate) struct Graphs {
    weak: Rc<RefCell<WeakMemory>>,
    started: bool,
    /// The number of steps that the current execution has in common with the last one.
    kept: usize,
    /// The number of steps at which the next execution branches off, if the deepest branch is next.
    next: Option<usize>,
    /// Whether the next execution repeats these steps of another process.
    resumes: bool,
    /// The branches, if the deepest one is not always the next one.
    branches: Option<Branches>,
    /// Whether the thread of the last step goes on behind the plan.
    lets_the_last: bool,
    /// Whether the plan of the current execution is over, so that the thread of the last step goes
    /// on.
    is_free: bool,
}

impl Graphs {
    /// A search that chooses the newest outcomes behind a wakeup sequence.
    pub(crate) fn newest_first() -> Graphs {
        Graphs::new(Rc::new(RefCell::new(WeakMemory::new(Free::Last))))
    }

    /// This search, which takes planned branches in this order. The graphs must be new.
    pub(crate) fn in_order(mut self, order: Order) -> Graphs {
        self.weak.borrow_mut().search.spread();
        self.branches = Some(Branches {
            order,
            all: Vec::new(),
            free: Vec::new(),
            sorted: Vec::new(),
        });
        self
    }

    pub(crate) fn new(weak: Rc<RefCell<WeakMemory>>) -> Graphs {
        let lets_the_last = weak.borrow().search.lets_the_last_go_on();
        Graphs {
            weak,
            branches: None,
            lets_the_last,
            started: false,
            kept: 0,
            next: None,
            resumes: false,
            is_free: false,
        }
    }
}

impl Explorer for Graphs {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        self.is_free = !self.started;
        if std::mem::replace(&mut self.started, true) {
            let resumes = std::mem::take(&mut self.resumes);
            plan.branches = true;
            if let Some(branches) = &mut self.branches {
                let Some((planned, instead)) = branches.next() else {
                    return false;
                };
                let kept = self.weak.borrow_mut().search.go_to(&planned.end);
                (self.kept, plan.common_prefix) = (kept, kept);
                // An execution of another branch may have gone by the first steps of this one.
                plan.repeated = planned.depth().saturating_sub(kept);
                plan.replaces = instead;
                return true;
            }
            let Some(kept) = self.next.take() else {
                return false;
            };
            if resumes {
                (self.kept, plan.repeated) = (0, kept);
            } else {
                (self.kept, plan.common_prefix) = (kept, kept);
            }
        }
        true
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        let weak = &mut *self.weak.borrow_mut();
        self.is_free = false;
        if let Some((thread, planned, outcome)) = weak.search.planned() {
            if at.machine.is_to_begin(thread) {
                return Choice::Run(Step::of(thread));
            }
            if is_released(outcome) && !at.machine.enabled(thread) {
                // No thread can go on here, and the driver releases those that wait.
                return Choice::NothingEnabled;
            }
            let access = weak.pending(at.machine, at.trace, thread);
            let Some(access) = access.filter(|access| access.operation.is_like(&planned.operation))
            else {
                return Choice::Diverged(thread);
            };
            let alternative = weak.alternative(thread, &access, outcome);
            self.is_free = weak.search.ends_plan();
            return Choice::Run(Step {
                thread,
                alternative,
            });
        }
        self.is_free = true;
        if let Some(choice) = go_on(weak, at) {
            return choice;
        }
        let mut able: Vec<(ThreadId, Access)> = Vec::new();
        let mut waiting: Vec<(ThreadId, Access)> = Vec::new();
        for &thread in at.machine.live() {
            let Some(access) = weak.pending(at.machine, at.trace, thread) else {
                continue;
            };
            if at.machine.enabled(thread) {
                able.push((thread, access));
            } else if access.waits() {
                waiting.push((thread, access));
            }
        }
        let released = able.iter().find(|(_, access)| access.waits()).copied();
        // A wait that only an older store ends comes last.
        let chosen = weak.search.choose(able);
        let chosen = chosen.or_else(|| weak.search.choose(waiting));
        match chosen {
            Some((thread, access, outcome)) => Choice::Run(Step {
                thread,
                alternative: weak.alternative(thread, &access, outcome),
            }),
            None => match released {
                Some((thread, _)) => Choice::Run(Step::of(thread)),
                None => Choice::NothingEnabled,
            },
        }
    }

    fn lets_the_last_go_on(&self) -> bool {
        self.is_free && self.lets_the_last
    }

    fn has_all_begin(&self) -> bool {
        !self.lets_the_last
    }

    fn asks_for_clocks(&self) -> bool {
        false
    }

    fn takes_awaits(&self) -> bool {
        true
    }

    fn finish(&mut self, execution: &Execution<'_>) {
        let weak = &mut *self.weak.borrow_mut();
        let Execution { trace, machine, .. } = *execution;
        let blocked: Vec<(ThreadId, Access)> = execution
            .blocked
            .iter()
            .map(|blocked| {
                let of = (blocked.thread, machine.events_of(blocked.thread));
                let access = weak.access(machine, trace, of, &blocked.operation);
                (blocked.thread, access)
            })
            .collect();
        weak.note_ends(machine);
        #[cfg(test)]
        if let Some(look) = &mut weak.at_end {
            look(weak.search.model.graph());
        }
        let is_frozen = |position| execution.is_frozen(position);
        weak.search.finish(blocked, self.kept, is_frozen);
        match &mut self.branches {
            None => self.next = weak.search.backtrack(),
            Some(branches) => {
                for planned in weak.search.take_planned() {
                    let first = planned.instead;
                    let site = first.map(|first| trace.at(first as u32).site);
                    branches.add(planned, site);
                }
            }
        }
    }

    fn unfinished(&self, _: &Trace) -> Option<Unfinished> {
        // Directly after `resume` there are no new branches.
        let has_new = self.started && !self.resumes && self.more();
        has_new.then(|| Unfinished {
            graphs: Some(self.weak.borrow().save()),
            ..Unfinished::default()
        })
    }

    fn resume(&mut self, unfinished: &Unfinished) -> bool {
        let Some(graphs) = &unfinished.graphs else {
            return false;
        };
        (self.started, self.resumes) = (true, true);
        let weak = &mut *self.weak.borrow_mut();
        if !weak.restore(graphs) {
            return false;
        }
        match &mut self.branches {
            None => self.next = graphs.levels.len().checked_sub(1),
            Some(branches) => {
                // The branch that was planned last is mostly the first one in tree order.
                for planned in weak.search.take_planned().into_iter().rev() {
                    branches.add(planned, None);
                }
            }
        }
        true
    }

    fn weak(&self) -> Option<Rc<RefCell<WeakMemory>>> {
        Some(self.weak.clone())
    }

    fn more(&self) -> bool {
        match &self.branches {
            _ if !self.started => true,
            None => self.next.is_some(),
            Some(branches) => !branches.sorted.is_empty(),
        }
    }

    fn planned(&self, planned: &mut Vec<(usize, u64)>) {
        if self.branches.is_none() {
            planned.extend(self.weak.borrow().search.branches());
        }
    }

    fn memory(&self) -> usize {
        let ends = self.branches.as_ref().map_or(0, |branches| {
            let ends = branches.all.iter().map(|(it, _)| size_of_val(&*it.end));
            ends.sum::<usize>() + branches.order.bytes()
        });
        self.weak.borrow().search.bytes() + ends
    }
}

/// The thread of the last step goes on, with the newest outcome, if the search chooses no thread by
/// chance.
fn go_on(weak: &mut WeakMemory, at: &Point<'_>) -> Option<Choice> {
    let thread = at.last;
    if !weak.search.lets_the_last_go_on() || !at.machine.enabled(thread) {
        return None;
    }
    let access = weak.pending(at.machine, at.trace, thread)?;
    let outcome = weak.search.model.newest(thread, &access)?;
    let alternative = weak.alternative(thread, &access, outcome);
    Some(Choice::Run(Step {
        thread,
        alternative,
    }))
}
