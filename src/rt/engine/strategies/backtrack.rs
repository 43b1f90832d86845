//! What if each point keeps a set of threads to try, filled by races?
//!
//! \[SS\] Algorithms 1, 3 and 5. Every reversal asks for some thread at the point before its first
//! event. The two algorithms differ in the choice of this thread. `Source` accepts any initial of
//! the sequence, which gives source sets. `Classic` (Flanagan and Godefroid's backtracking, with
//! sleep sets) requires an initial that happens before the reversed event, which gives persistent
//! sets (\[SS\] section 5.1). Both store a thread and not a sequence, so both reach executions in
//! which every enabled thread is in the sleep set.
//!
//! Deviation 1: the search for races runs at the end of an execution, and each sequence covers the
//! whole execution, as for Optimal-DPOR. A sequence that is cut at the reversed event, as in the
//! paper's Source-DPOR, would not be enough: the reversed event may have another outcome, and then
//! depend on a later event that its old label commutes with. The smallest program known: a channel
//! with `try_recv` in one thread, `send` in another, and a third that makes two steps and drops its
//! sender.
//!
//! Deviation 2: another outcome of an event is a reversal like the others. So a thread that is in
//! the sleep set with one outcome, and continues with another, does not hide the events before the
//! first.

use crate::rt::event::operation::Step;
use crate::rt::event::verdict::Pruned;
use crate::rt::relation::independence::Label;

use crate::rt::engine::plan::Plan;
use crate::rt::engine::reversal::{Reversal, pairs};
use crate::rt::engine::sleep::Sleeper;
use crate::rt::engine::{Choice, Execution, Explorer, Point, TieBreak};

/// The explorer that explores the steps in its backtrack sets.
pub(crate) struct Backtrack {
    free: TieBreak,
    /// Whether the added thread must happen before the reversed event.
    persistent: bool,
    levels: Vec<Level>,
    reversal: Reversal,
    started: bool,
}

#[derive(Default)]
struct Level {
    sleep: Vec<Sleeper>,
    taken: Option<(Step, Option<Label>)>,
    asked: Asked,
}

/// The steps that reversals have asked for at a point.
#[derive(Default)]
pub(super) struct Asked {
    /// All of them, with the one that was taken there first.
    all: Vec<Step>,
    /// Those that are still to be taken.
    todo: Vec<Step>,
}

impl Asked {
    /// A point at which this step was taken first.
    pub(super) fn with(taken: Step) -> Asked {
        Asked {
            all: vec![taken],
            todo: Vec::new(),
        }
    }

    /// Asks for the last of these steps, unless one of them was asked for or is asleep.
    pub(super) fn ask_for_one(
        &mut self,
        steps: impl Iterator<Item = Step>,
        is_asleep: impl Fn(Step) -> bool,
    ) {
        let mut chosen = None;
        for step in steps {
            if self.all.contains(&step) || is_asleep(step) {
                return;
            }
            chosen = Some(step);
        }
        if let Some(step) = chosen {
            self.ask(step);
        }
    }

    /// Asks for this step.
    pub(super) fn ask(&mut self, step: Step) {
        if !self.all.contains(&step) {
            self.all.push(step);
            self.todo.push(step);
        }
    }

    /// The next step to take.
    pub(super) fn pop(&mut self) -> Option<Step> {
        self.todo.pop()
    }
}

impl Backtrack {
    /// Source-DPOR.
    pub(crate) fn source(free: TieBreak) -> Backtrack {
        Backtrack {
            free,
            persistent: false,
            levels: Vec::new(),
            reversal: Reversal::default(),
            started: false,
        }
    }

    /// Flanagan and Godefroid's DPOR with sleep sets.
    pub(crate) fn classic(free: TieBreak) -> Backtrack {
        Backtrack {
            persistent: true,
            ..Backtrack::source(free)
        }
    }

    /// Ensures that the sequence in `reversal` is begun at `depth`.
    fn cover(&mut self, execution: &Execution<'_>, depth: usize) {
        if execution.is_frozen(depth) {
            return;
        }
        let v = &self.reversal;
        let last = v.items.len() - 1;
        // Only the direct predecessors of the last item are known; the other items happen before
        // one of them.
        let leads_to_last = |at: usize| {
            (at..last).any(|j| {
                v.precedes(execution, j, last) && (j == at || v.precedes(execution, at, j))
            })
        };
        let candidates = (0..=last).filter(|&at| {
            v.is_initial(execution, at) && (!self.persistent || at == last || leads_to_last(at))
        });
        let Level { sleep, asked, .. } = &mut self.levels[depth];
        let is_asleep = |step| sleep.iter().any(|s| s.step == step);
        asked.ask_for_one(candidates.map(|at| v.items[at].step), is_asleep);
    }
}

impl Explorer for Backtrack {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        if !self.started {
            self.started = true;
            return true;
        }
        while let Some(level) = self.levels.last_mut() {
            if let Some((step, Some(label))) = level.taken.take() {
                level.sleep.push(Sleeper { step, label });
            }
            while let Some(step) = level.asked.pop() {
                if level.sleep.iter().any(|s| s.step == step) {
                    continue;
                }
                level.taken = Some((step, None));
                plan.common_prefix = self.levels.len() - 1;
                plan.steps.push((step, None));
                return true;
            }
            self.levels.pop();
        }
        false
    }

    fn choose(&mut self, at: &Point<'_>) -> Choice {
        let depth = self.levels.len();
        let sleep: Vec<Sleeper> = match depth.checked_sub(1) {
            None => Vec::new(),
            Some(above) => {
                let event = at.trace.at(above as u32);
                let all = self.levels[above].sleep.iter().copied();
                all.filter(|s| s.survives(&at.machine.sets, event.thread, event.label))
                    .collect()
            }
        };
        let ordinary = |thread| {
            (0..at.machine.alternatives(thread)).find_map(|alternative| {
                let step = Step {
                    thread,
                    alternative,
                };
                sleep.iter().all(|s| s.step != step).then_some(step)
            })
        };
        let picked = self.free.pick(at, |thread| ordinary(thread).is_some());
        let Some(step) = picked.and_then(ordinary) else {
            return match at.enabled().next() {
                Some(_) => Choice::Prune(Pruned::Asleep),
                None => Choice::NothingEnabled,
            };
        };
        self.levels.push(Level {
            sleep,
            taken: Some((step, None)),
            asked: Asked::with(step),
        });
        Choice::Run(step)
    }

    fn has_all_begin(&self) -> bool {
        true
    }

    fn finish(&mut self, execution: &Execution<'_>) {
        for (depth, event) in execution.trace.events().iter().enumerate() {
            self.levels[depth].taken = Some((event.step(), Some(event.label)));
        }
        let mut reversal = std::mem::take(&mut self.reversal);
        pairs(execution, |first, second| {
            if reversal.build_notdep(execution, first, second, None) {
                std::mem::swap(&mut self.reversal, &mut reversal);
                self.cover(execution, first as usize);
                std::mem::swap(&mut self.reversal, &mut reversal);
            }
            true
        });
        self.reversal = reversal;
    }
}
