//! Chooses the explorer for the settings.

use std::cell::RefCell;
use std::rc::Rc;

use crate::config::unknown_variables;
use crate::config::{Algorithm, Builder, LOOM, Memory, Order};
use crate::exploration::progress::above_captured;
use crate::rt::engine::driver::Bounds;
use crate::rt::engine::order;
use crate::rt::engine::order::Turns;
use crate::rt::engine::price::Price;
use crate::rt::engine::strategies::bound::Bounded;
use crate::rt::engine::strategies::bounded_graphs::BoundedGraphs;
use crate::rt::engine::strategies::context_sensitive::ContextSensitive;
use crate::rt::engine::strategies::frontier::Frontier;
use crate::rt::engine::strategies::graphs::Graphs;
use crate::rt::engine::strategies::parsimonious::Parsimonious;
use crate::rt::engine::strategies::pct::Pct;
use crate::rt::engine::strategies::pos::Pos;
use crate::rt::engine::strategies::sample::{Sampler, Strategy, Walk};
use crate::rt::engine::strategies::{backtrack, exhaustive, optimal};
use crate::rt::engine::weak_memory::WeakMemory;
use crate::rt::engine::{Explorer, TieBreak};
use crate::rt::event::schedule::Schedule;
use crate::rt::exec::pooled_runtime::PooledDriver;
use crate::rt::memory::search::Free;
use crate::rt::object::machine::{Learnt, Limits};
use crate::verdict::report::Bound;

impl Builder {
    /// Creates a driver for this explorer, for a program about which these facts are known.
    pub(crate) fn driver(&self, explorer: Box<dyn Explorer>, learnt: Learnt) -> PooledDriver {
        let (limits, bounds) = (self.limits(learnt), self.bounds());
        let weak = match self.memory {
            Memory::Auto | Memory::Sc => None,
            Memory::C11 => Some(explorer.weak().unwrap_or_else(|| {
                // The explorer does not search the graphs, and the driver still needs the graph of
                // each execution.
                Rc::new(RefCell::new(WeakMemory::new(Free::Last)))
            })),
        };
        let explores = explorer.explores();
        let mut driver = PooledDriver::new(explorer, limits, bounds);
        driver.trace.writers_first = self.writers_first;
        driver.trace.blocks_again = self.blocks_again;
        if let Some(weak) = weak {
            driver.weaken(weak);
        }
        if explores && self.looks_out() {
            driver.look_out();
        }
        driver
    }

    /// Returns the limits of the meaning of a program about which these facts are known.
    pub(crate) fn limits(&self, learnt: Learnt) -> Limits {
        let mut limits = Limits {
            spin_bound: self.spin_bound,
            spurious_failures: self.spurious_failures,
            spurious_failures_max: self.spurious_failures_max,
            wakeups_of_std_alone: self.wakeups_of_std_alone,
            spurious_wakeups: self.spurious_wakeups,
            stale_try_lock: self.stale_try_lock,
            writers_first: self.writers_first,
            blocks_again: self.blocks_again,
            timeout_bound: self.timeout_bound,
            catches_panics: self.catch_panics,
            detached_may_block: self.detached_may_block,
            max_rounds: self.max_rounds,
            compares_states: self.algorithm == Algorithm::FinalStates,
            stack_size: self.stack_size,
            proves_awaits: self.await_loops.is_none() && self.takes_loops_for_steps(),
            ..Limits::default()
        };
        limits.learn(learnt);
        limits
    }

    /// Returns the limits of one execution.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            events_max: self.max_branches,
            hints_count: LOOM,
            threads_max: self.max_threads,
            explicit: self.expect_explicit_explore,
        }
    }

    /// Returns all bounds that are set, of which there may be one.
    fn bounds_set(&self) -> impl Iterator<Item = Bound> {
        let bounds = [
            self.preemption_bound.map(Bound::Preemptions),
            self.switch_bound.map(Bound::Switches),
            self.delay_bound.map(Bound::Delays),
            (self.stale_bound.filter(|_| self.memory == Memory::C11)).map(Bound::OldValues),
        ];
        bounds.into_iter().flatten()
    }

    /// Returns the bound that is set.
    #[track_caller]
    pub(crate) fn bound(&self) -> Option<Bound> {
        let mut bounds = self.bounds_set();
        let bound = bounds.next();
        if let (Some(one), Some(other)) = (bound, bounds.next()) {
            panic!(
                "{one} and {other} are both set, but executions are bounded by one number; unset one of the two"
            );
        }
        bound
    }

    /// Returns the explorer for the settings.
    #[track_caller]
    pub(crate) fn explorer(&self, seed: u64) -> Box<dyn Explorer> {
        let sampling = self.is_sampling();
        let bound = self.bound();
        let other = match (&bound, self.algorithm) {
            (Some(bound), _) => Some(bound.to_string()),
            (None, Algorithm::Optimal) => None,
            (None, other) => Some(format!("the algorithm `{}` (DPOR_ALGORITHM)", other.name())),
        };
        // Under `Memory::Auto` this bound is that of the second pass.
        let stale = self.stale_bound.filter(|_| self.memory == Memory::Auto);
        let stale = stale.map(|most| Bound::OldValues(most).to_string());
        if let Some(other) = other.as_ref().or(stale.as_ref()) {
            let is_kept =
                bound.is_none() && stale.is_none() && self.algorithm == Algorithm::Parsimonious;
            assert!(
                self.checkpoint_file.is_none() || is_kept,
                "a checkpoint (DPOR_CHECKPOINT_FILE) can only be kept by the algorithms `optimal` and `parsimonious` \
                 without a bound, and not with {other}; unset one of the two"
            );
        }
        if let Some(other) = other {
            assert!(
                self.order == Order::DepthFirst,
                "the order `{}` (DPOR_ORDER) is one of the algorithm `optimal` without a bound, and has no meaning with \
                 {other}; unset one of the two",
                self.order.name()
            );
        }
        if self.memory == Memory::C11 {
            self.check_c11();
        }
        if !sampling {
            unknown_variables::tell_of_samplers(self.algorithm.name());
        }
        if let Some(bound) = bound {
            assert!(
                !sampling,
                "{bound} has no meaning for the algorithm `{}` (DPOR_ALGORITHM), which draws executions \
                 by chance; unset one of the two",
                self.algorithm.name()
            );
            if !matches!(self.algorithm, Algorithm::Optimal | Algorithm::Bounded) {
                let unused = self.algorithm.name();
                above_captured(&format!(
                    "dpor: {bound} is explored by the algorithm `bounded`; the algorithm `{unused}` (DPOR_ALGORITHM), which \
                     knows of no bound, is not used\n"
                ));
            }
            let (price, most) = bound.price();
            return self.bounded(price, most);
        }
        match self.algorithm {
            Algorithm::Bounded => self.bounded(Price::Preemptions, usize::MAX),
            Algorithm::Optimal if self.shares_work() => Box::new(Parsimonious::new(TieBreak::Last)),
            Algorithm::Optimal => self.optimal(),
            Algorithm::Parsimonious => Box::new(Parsimonious::new(TieBreak::Last)),
            Algorithm::Source => Box::new(backtrack::Backtrack::source(TieBreak::Last)),
            Algorithm::Classic => Box::new(backtrack::Backtrack::classic(TieBreak::Last)),
            Algorithm::FinalStates => Box::new(ContextSensitive::new(TieBreak::Last)),
            Algorithm::SleepSets => Box::new(exhaustive::Exhaustive::sleep_sets(TieBreak::Last)),
            Algorithm::Naive => Box::new(exhaustive::Exhaustive::naive(TieBreak::Last)),
            Algorithm::Random => self.sampler(Walk, seed),
            Algorithm::Pct => self.sampler(Pct::new(self.pct_depth), seed),
            Algorithm::Pos => self.sampler(Pos::default(), seed),
        }
    }

    /// Returns the settings of an exploration without the bound that is set, if one may take turns
    /// with the exploration within the bound: only the default algorithm leaves that open. Where
    /// each execution is shown, only those within the bound were asked for.
    #[track_caller]
    pub(crate) fn without_bound(&self, given: Option<&Schedule>) -> Option<Builder> {
        let is_open = self.algorithm == Algorithm::Optimal && given.is_none();
        if !is_open || self.trace.is_some() || self.log || self.bound().is_none() {
            return None;
        }
        Some(Builder {
            progress: Some(false),
            ..self.unbounded()
        })
    }

    /// Returns these settings without a bound.
    pub(crate) fn unbounded(&self) -> Builder {
        Builder {
            preemption_bound: None,
            switch_bound: None,
            delay_bound: None,
            stale_bound: None,
            ..self.clone()
        }
    }

    /// Whether the settings ask for workers, for a part, or for a task.
    pub(crate) fn is_in_parts(&self) -> bool {
        self.workers.is_some() || self.shard.is_some() || self.task.is_some()
    }

    /// Whether the work of the exploration can be shared, and is to be.
    pub(crate) fn shares_work(&self) -> bool {
        self.is_in_parts() && self.not_shared_because().is_none()
    }

    /// Returns why the work of an exploration with these settings cannot be shared.
    pub(crate) fn not_shared_because(&self) -> Option<String> {
        if self.memory == Memory::C11 {
            return Some("memory is C11's (DPOR_MEMORY)".to_owned());
        }
        if !matches!(self.algorithm, Algorithm::Optimal | Algorithm::Parsimonious) {
            let name = self.algorithm.name();
            return Some(format!("the algorithm is `{name}` (DPOR_ALGORITHM)"));
        }
        if self.bounds_set().next().is_some() {
            return Some("a bound is set".to_owned());
        }
        if self.order != Order::DepthFirst {
            let name = self.order.name();
            return Some(format!("the order is `{name}` (DPOR_ORDER)"));
        }
        if self.await_loops == Some(true) {
            return Some("loops are taken for one step (DPOR_AWAIT_LOOPS)".to_owned());
        }
        None
    }

    /// Returns the name of the algorithm that explores under sequential consistency.
    pub(crate) fn algorithm_of_search(&self) -> &'static str {
        let first = Builder {
            // The second pass belongs to the same settings as the first one.
            memory: match self.first_pass {
                Some(_) => Memory::Auto,
                None => self.memory,
            },
            ..self.clone()
        };
        match first.shares_work() {
            true => Algorithm::Parsimonious.name(),
            false => self.algorithm.name(),
        }
    }

    /// Whether executions under sequential consistency are checked for weak behaviour.
    pub(crate) fn looks_out(&self) -> bool {
        self.memory == Memory::Auto
            && self.algorithm == Algorithm::Optimal
            && self.bound().is_none()
            && self.await_loops != Some(true)
    }

    /// Checks that the settings do not ask for what is explored under sequential consistency alone.
    #[track_caller]
    fn check_c11(&self) {
        if let Some(unfit) = self.unfit_for_c11() {
            panic!(
                "{unfit} is for sequential consistency, and the memory model is C11 (DPOR_MEMORY=c11): C11 is explored by \
                 the algorithms `optimal` and `bounded`, or by one that samples; unset one of the two"
            );
        }
    }

    /// Returns a setting that asks for what is explored under sequential consistency alone.
    #[track_caller]
    pub(crate) fn unfit_for_c11(&self) -> Option<String> {
        match self.algorithm {
            Algorithm::Optimal | Algorithm::Bounded => None,
            _ if self.is_sampling() => None,
            other => Some(format!("the algorithm `{}` (DPOR_ALGORITHM)", other.name())),
        }
    }

    /// Whether the algorithm draws executions at random.
    pub(crate) fn is_sampling(&self) -> bool {
        matches!(
            self.algorithm,
            Algorithm::Random | Algorithm::Pct | Algorithm::Pos
        )
    }

    /// Whether loops that wait are explored as one step. Only an exploration of all executions may
    /// do so: with a bound, the execution that covers a pruned one may have more preemptions than
    /// the bound allows.
    pub(crate) fn takes_loops_for_steps(&self) -> bool {
        let takes = self.await_loops.unwrap_or_else(|| {
            // The first look in vain stays, and which further ones are left out is decided by an
            // explorer that takes a wait for an acquisition.
            self.algorithm == Algorithm::Optimal && !self.shares_work()
        });
        takes
            && (self.memory != Memory::C11 || self.await_loops.is_none())
            && !self.is_sampling()
            && self.algorithm != Algorithm::Bounded
            && self.bound().is_none()
    }

    /// Returns the seed from which executions are drawn. An algorithm that does not sample needs
    /// none, so no seed is made for it.
    pub(crate) fn seed_to_draw_with(&self) -> u64 {
        if self.is_sampling() {
            self.seed.unwrap_or_else(fresh_seed)
        } else {
            0
        }
    }

    fn sampler(&self, strategy: impl Strategy + 'static, seed: u64) -> Box<dyn Explorer> {
        Box::new(Sampler::new(strategy, seed, self.iterations))
    }

    /// Returns the explorer that visits what has a price of at most `most`.
    fn bounded(&self, price: Price, most: usize) -> Box<dyn Explorer> {
        match self.memory {
            Memory::C11 => Box::new(BoundedGraphs::new(price, most)),
            Memory::Auto | Memory::Sc => Box::new(Bounded::new(price, most)),
        }
    }

    /// Returns the explorer that visits each trace once, in the order that the settings name.
    fn optimal(&self) -> Box<dyn Explorer> {
        let is_weak = self.memory == Memory::C11;
        let order = match self.order {
            Order::DepthFirst if is_weak => return Box::new(Graphs::newest_first()),
            Order::DepthFirst => return optimal::Optimal::new(TieBreak::Last),
            Order::BitReversal => order::Order::BitReversal(0),
            Order::RoundRobin => order::Order::RoundRobin(Turns::new()),
            Order::Stride => order::Order::Stride(0),
            Order::ConflictFirst => order::Order::ConflictFirst(Turns::new()),
        };
        match is_weak {
            true => Box::new(Graphs::newest_first().in_order(order)),
            false => Box::new(Frontier::new(TieBreak::Last, order)),
        }
    }
}

/// Returns a random seed.
fn fresh_seed() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0)
}
