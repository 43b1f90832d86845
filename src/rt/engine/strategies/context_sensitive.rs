//! What if two orders that lead to the same state need only one execution?
//!
//! Context-sensitive DPOR (*Context-Sensitive Dynamic Partial Order Reduction*, CAV 2017; \[CS\])
//! reaches every final state, and not every trace. It is Source-DPOR with sleep sets of
//! *sequences*: a sequence is asleep at a point if all final states behind it are reached by
//! executions that were begun before. There are two reasons for that beside the one of ordinary
//! sleep sets.
//!
//! * For a race of e with a later event p, v executes p without e, and u is e with all that happens
//!   after it up to p. If v.u leads to the state that E.p has led to, v.u falls asleep before e
//!   (\[CS\] Algorithm 1, lines 11 to 14).
//! * A sequence stays asleep over an event that does not commute with it by the labels, if both
//!   orders lead to the same state *here*.
//!
//! The state is compared by digests ([`states`]), and the second order is never executed: the
//! object models make its steps. Where nothing is known of a step of v.u, as with a closure that
//! cannot be tried, the sequence falls asleep with the digest that it must lead to, and its last
//! step is compared when the others have been made.
//!
//! The sequences that reverse a race are those of [`backtrack`](super::backtrack), over the whole
//! execution: also an operation that comes out otherwise, or has to wait, is reversed as there.
//!
//! An execution that is given up because of a state does not show the races of its events with what
//! would have followed, and the execution that has reached the state has others. So these races are
//! reversed, too, as far as any execution has shown what its threads do ([`histories`]):
//! `docs/ALGORITHMS.md`, deviation 13.

use crate::rt::event::Event;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::{OpKind, Step};
use crate::rt::event::verdict::Pruned;
use crate::rt::object::machine::Machine;
use crate::rt::relation::independence::{Label, ReadSets, commutes};

use crate::rt::engine::plan::Plan;
use crate::rt::engine::reversal::{Reversal, pairs};
use crate::rt::engine::strategies::backtrack::Asked;
use crate::rt::engine::{Choice, Coverage, Execution, Explorer, Point, TieBreak};
use crate::rt::object::contents::Digest;
use histories::{Histories, may_conflict};
use states::{After, Known, KnownStep, States, Trial};

mod histories;
mod states;

/// The explorer that reaches every final state.
pub(crate) struct ContextSensitive {
    free: TieBreak,
    levels: Vec<Level>,
    reversal: Reversal,
    started: bool,
    known: Known,
    /// The state behind the events that `steps` has, one for each.
    states: States,
    steps: Vec<KnownStep>,
    /// The digest of the state behind each of these events.
    totals: Vec<Digest>,
    /// The sequences that are asleep at the point behind them.
    asleep: Vec<Sleeper>,
    histories: Histories,
    /// What the threads may do behind the point at which the execution was given up.
    futures: Futures,
}

#[derive(Default)]
struct Level {
    sleep: Vec<Sleeper>,
    taken: Option<(Step, Option<KnownStep>)>,
    asked: Asked,
    enabled: Vec<Step>,
    /// The steps that were asleep when the point was reached.
    claimed: Vec<Step>,
    /// What threads may still do, if a step is asleep because of a state.
    futures: Futures,
}

/// For each thread what it, and the threads that it spawns, may still do.
type Futures = Vec<(ThreadId, Vec<(ThreadId, Label)>)>;

/// A sequence that is asleep.
#[derive(Clone, Debug)]
struct Sleeper {
    steps: Vec<KnownStep>,
    /// The state that it must lead to, if it is not known that it does.
    target: Option<Digest>,
    /// Whether it sleeps because of a state, and not only because of what commutes in all states.
    by_state: bool,
}

impl Sleeper {
    /// Whether this step alone is asleep.
    fn is(&self, step: Step) -> bool {
        self.target.is_none() && self.steps.len() == 1 && self.steps[0].step == step
    }

    /// The sequence behind a step from this state, if it is still asleep there.
    fn behind(
        &self,
        made: &KnownStep,
        (from, machine): (&States, &Machine),
        known: &mut Known,
    ) -> Option<Sleeper> {
        if let Some(at) = self.initial(&machine.sets, made) {
            let mut steps = self.steps.clone();
            steps.remove(at);
            return (!steps.is_empty()).then_some(Sleeper {
                steps,
                target: self.target,
                by_state: self.by_state,
            });
        }
        let mut steps = self.steps.iter();
        if self.target.is_some() || steps.any(|it| it.step.thread == made.step.thread) {
            return None;
        }
        if self.commutes(&machine.sets, made) {
            return Some(self.clone());
        }
        let (mut first, mut last) = (Trial::of(from, machine), Trial::of(from, machine));
        first.make(known, made).filter(|it| it.told == made.told)?;
        let mut steps = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let told = first.make(known, step).filter(|it| it.told == step.told)?;
            last.make(known, step).filter(|it| it.told == step.told)?;
            let label = told.label;
            steps.push(KnownStep {
                label,
                ..step.clone()
            });
        }
        last.make(known, made).filter(|it| it.told == made.told)?;
        (first.total() == last.total()).then_some(Sleeper {
            steps,
            target: None,
            by_state: true,
        })
    }

    /// Where the sequence has this step, if it may begin with it.
    fn initial(&self, sets: &ReadSets, made: &KnownStep) -> Option<usize> {
        let mut steps = self.steps.iter();
        let at = steps.position(|it| it.step.thread == made.step.thread)?;
        let (before, it) = (&self.steps[..at], &self.steps[at]);
        let commutes = |other: &KnownStep| commutes(sets, other.label, it.label);
        (it.step == made.step && before.iter().all(commutes)).then_some(at)
    }

    /// Whether the step commutes with each of the sequence in every state.
    fn commutes(&self, sets: &ReadSets, made: &KnownStep) -> bool {
        self.steps
            .iter()
            .all(|step| commutes(sets, step.label, made.label))
    }
}

impl ContextSensitive {
    pub(crate) fn new(free: TieBreak) -> ContextSensitive {
        ContextSensitive {
            free,
            levels: Vec::new(),
            reversal: Reversal::default(),
            started: false,
            known: Known::default(),
            states: States::default(),
            steps: Vec::new(),
            totals: Vec::new(),
            asleep: Vec::new(),
            histories: Histories::default(),
            futures: Vec::new(),
        }
    }

    /// Follows the execution over this event.
    fn follow(&mut self, machine: &Machine, event: &Event) {
        let (step, after) = self.states.look(machine, &mut self.known, event);
        self.go_to(step, after);
    }

    /// Goes to the state behind this step.
    fn go_to(&mut self, step: KnownStep, after: After) {
        let thread = step.step.thread;
        let before = self.states.told(thread);
        self.states.go_to(after);
        let child = match step.operation.kind {
            OpKind::Spawn { child } => self.states.told(child),
            _ => Digest::default(),
        };
        let after = self.states.told(thread);
        self.histories.note(&step, before, after, child);
        self.steps.push(step);
        self.totals.push(self.states.total());
    }

    /// What the threads may still do, if one of these steps is asleep because of a state.
    fn futures(&self, machine: &Machine, claimed: &[Step]) -> Futures {
        let mut asleep = self.asleep.iter().filter(|s| s.by_state);
        if !asleep.any(|s| claimed.iter().any(|&step| s.is(step))) {
            return Vec::new();
        }
        let of = |&thread: &ThreadId| {
            let told = self.states.told(thread);
            (thread, self.histories.future((thread, told)))
        };
        machine.live().iter().map(of).collect()
    }

    /// Reverses the races of the first `depth` events with what the threads may do behind them.
    fn reverse_futures(&mut self, execution: &Execution<'_>, depth: usize, futures: Futures) {
        let Execution {
            trace,
            clocks,
            machine,
            ..
        } = *execution;
        for (root, future) in futures {
            let mine = trace.positions_of(root);
            let before = mine.partition_point(|&at| (at as usize) < depth);
            let last = before.checked_sub(1).map(|last| mine[last]);
            let last = last.or_else(|| trace.spawn_of(root));
            for at in 0..depth {
                let event = trace.at(at as u32);
                if last.is_some_and(|last| clocks.before(at as u32, last)) {
                    continue;
                }
                for &(thread, label) in &future {
                    if thread != event.thread
                        && may_conflict(&machine.sets, event.label, label)
                        && !execution.is_frozen(at)
                    {
                        self.ask_for(at, thread);
                    }
                }
            }
        }
    }

    /// Ensures that the thread makes a step at `depth`, or that every step is made there.
    fn ask_for(&mut self, depth: usize, thread: ThreadId) {
        let level = &self.levels[depth];
        let mine = |step: &&Step| step.thread == thread;
        let mut steps: Vec<Step> = level.enabled.iter().filter(mine).copied().collect();
        if steps.is_empty() || steps.iter().any(|step| level.claimed.contains(step)) {
            steps.clone_from(&level.enabled);
        }
        for step in steps {
            self.levels[depth].asked.ask(step);
        }
    }

    /// Ensures that the sequence in `reversal` is begun at `depth`.
    fn cover(&mut self, execution: &Execution<'_>, depth: usize) {
        if execution.is_frozen(depth) {
            return;
        }
        let v = &self.reversal;
        let last = v.items.len() - 1;
        let candidates = (0..=last).filter(|&at| v.is_initial(execution, at));
        let Level { sleep, asked, .. } = &mut self.levels[depth];
        let is_asleep = |step| sleep.iter().any(|s| s.is(step));
        asked.ask_for_one(candidates.map(|at| v.items[at].step), is_asleep);
    }

    /// Puts the sequences that reverse the races of new events to sleep, where they lead to the
    /// same state.
    fn put_to_sleep(&mut self, execution: &Execution<'_>) {
        let Execution {
            trace,
            clocks,
            machine,
            ..
        } = *execution;
        let new = clocks.races_before(execution.first_new);
        let mut races: Vec<(u32, u32)> = clocks.races()[new..]
            .iter()
            .map(|race| (race.first, race.second))
            .filter(|&(first, _)| !execution.is_frozen(first as usize))
            .collect();
        races.sort_unstable();
        let Some(&(last, _)) = races.last() else {
            return;
        };
        self.states.clear();
        let mut races = races.into_iter().peekable();
        for (position, event) in trace.events()[..=last as usize].iter().enumerate() {
            while let Some((first, second)) = races.next_if(|race| race.0 == position as u32) {
                let (mut v, mut u): (Vec<usize>, Vec<usize>) = (first as usize..second as usize)
                    .partition(|&at| !clocks.before(first, at as u32));
                v.push(second as usize);
                v.append(&mut u);
                let steps = v.into_iter().map(|at| self.steps[at].clone());
                let target = self.totals[second as usize];
                self.offer(machine, first as usize, steps.collect(), target);
            }
            let (_, after) = self.states.look(machine, &mut self.known, event);
            self.states.go_to(after);
        }
    }

    /// Puts these steps to sleep at the point of `states`, if they lead to this state.
    fn offer(&mut self, machine: &Machine, depth: usize, steps: Vec<KnownStep>, target: Digest) {
        let level = &mut self.levels[depth];
        let is_prefix = |sleeper: &Sleeper| {
            let mut both = sleeper.steps.iter().zip(&steps);
            sleeper.target.is_none()
                && sleeper.steps.len() <= steps.len()
                && both.all(|(one, other)| one.step == other.step)
        };
        if level.sleep.iter().any(is_prefix) {
            return;
        }
        let mut trial = Trial::of(&self.states, machine);
        for step in &steps {
            match trial.make(&mut self.known, step) {
                Some(made) if made.told == step.told => {}
                Some(_) => return,
                None => {
                    level.sleep.push(Sleeper {
                        steps,
                        target: Some(target),
                        by_state: true,
                    });
                    return;
                }
            }
        }
        if trial.total() == target {
            level.sleep.push(Sleeper {
                steps,
                target: None,
                by_state: true,
            });
        }
    }

    /// Finds the sequences that are asleep at the next point, unless that has been done.
    fn find_sleepers(&mut self, at: &Point<'_>) {
        let depth = self.levels.len();
        let Some(above) = depth.checked_sub(1) else {
            self.asleep.clear();
            return;
        };
        if self.steps.len() == depth {
            return;
        }
        let machine = at.machine;
        for event in &at.trace.events()[self.steps.len()..above] {
            self.follow(machine, event);
        }
        let known = &mut self.known;
        let (step, after) = self.states.look(machine, known, at.trace.at(above as u32));
        let all = self.levels[above].sleep.iter();
        let from = (&self.states, machine);
        self.asleep = all.filter_map(|s| s.behind(&step, from, known)).collect();
        self.go_to(step, after);
        let known = &mut self.known;
        self.states.note_pending(machine, known);
        for &thread in machine.live() {
            if let Some(pending) = machine.pending(thread) {
                let told = self.states.told(thread);
                self.histories.note_pending(thread, told, pending);
            }
        }
        let states = &self.states;
        self.asleep.retain_mut(|sleeper| {
            let (Some(target), [step]) = (sleeper.target, &sleeper.steps[..]) else {
                return true;
            };
            let mut trial = Trial::of(states, machine);
            sleeper.target = None;
            trial.make(known, step).is_some() && trial.total() == target
        });
    }
}

impl Explorer for ContextSensitive {
    fn begin(&mut self, plan: &mut Plan) -> bool {
        if !self.started {
            self.started = true;
            return true;
        }
        self.states.clear();
        self.steps.clear();
        self.totals.clear();
        while let Some(level) = self.levels.last_mut() {
            if let Some((_, Some(step))) = level.taken.take() {
                level.sleep.push(Sleeper {
                    steps: vec![step],
                    target: None,
                    by_state: false,
                });
            }
            while let Some(step) = level.asked.pop() {
                if level.sleep.iter().any(|s| s.is(step)) {
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
        self.find_sleepers(at);
        let mut enabled = Vec::new();
        for thread in at.enabled() {
            for alternative in 0..at.machine.alternatives(thread) {
                enabled.push(Step {
                    thread,
                    alternative,
                });
            }
        }
        let asleep = &self.asleep;
        let claimed = enabled.iter().copied();
        let claimed = claimed.filter(|&step| asleep.iter().any(|s| s.is(step)));
        let claimed: Vec<Step> = claimed.collect();
        let futures = self.futures(at.machine, &claimed);
        let ordinary = |thread| {
            (0..at.machine.alternatives(thread)).find_map(|alternative| {
                let step = Step {
                    thread,
                    alternative,
                };
                asleep.iter().all(|s| !s.is(step)).then_some(step)
            })
        };
        let picked = self.free.pick(at, |thread| ordinary(thread).is_some());
        let Some(step) = picked.and_then(ordinary) else {
            self.futures = futures;
            return match enabled.is_empty() {
                false => Choice::Prune(Pruned::Asleep),
                true => Choice::NothingEnabled,
            };
        };
        self.levels.push(Level {
            sleep: std::mem::take(&mut self.asleep),
            taken: Some((step, None)),
            asked: Asked::with(step),
            enabled,
            claimed,
            futures,
        });
        Choice::Run(step)
    }

    fn coverage(&self) -> Coverage {
        Coverage::FinalStates
    }

    fn has_all_begin(&self) -> bool {
        true
    }

    fn finish(&mut self, execution: &Execution<'_>) {
        let Execution { trace, machine, .. } = *execution;
        for event in &trace.events()[self.steps.len()..] {
            self.follow(machine, event);
        }
        for (level, step) in self.levels.iter_mut().zip(&self.steps) {
            level.taken = Some((step.step, Some(step.clone())));
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
        for depth in execution.first_new..self.levels.len() {
            let futures = std::mem::take(&mut self.levels[depth].futures);
            self.reverse_futures(execution, depth, futures);
        }
        let futures = std::mem::take(&mut self.futures);
        self.reverse_futures(execution, self.levels.len(), futures);
        self.put_to_sleep(execution);
    }
}
