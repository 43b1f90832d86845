//! Which memory does the driver of the next exploration reuse?
//!
//! All memory of the last driver, and none of its state. The two functions here name every field of
//! a driver, so that none is forgotten.

use crate::rt::engine::estimate::Estimator;
use crate::rt::engine::hotspots::Hotspots;
use crate::rt::engine::regions::Regions;
use crate::rt::engine::tried_values::Tried;
use crate::rt::engine::{Choice, Execution, Explorer, Point};
use crate::rt::event::Trace;
use crate::rt::event::id::ThreadId;
use crate::rt::lifetime::owners::Owners;
use crate::rt::object::machine::{Limits, Machine};
use crate::rt::pooled::Empty;
use crate::rt::relation::happens_before::HappensBefore;

use crate::rt::engine::driver::{Bounds, Driver};
use crate::rt::engine::plan::Plan;
use crate::rt::engine::stats::Stats;

impl Default for Driver {
    /// A driver that explores nothing.
    fn default() -> Driver {
        Driver {
            machine: Machine::new(Limits::default()),
            trace: Trace::new(),
            clocks: HappensBefore::default(),
            stats: Stats::default(),
            regions: Regions::default(),
            hotspots: Hotspots::default(),
            estimator: Estimator::default(),
            explorer: Box::new(Nothing),
            last_goes_on: false,
            takes_awaits: false,
            proves_awaits: false,
            asks_for_clocks: false,
            has_all_begin: false,
            bounds: Bounds::default(),
            plan: Plan::default(),
            replayed: 0,
            begun: 0,
            unbroken: 0,
            again: false,
            free_from: 0,
            free_for: 0,
            looks_back: false,
            position: 0,
            hints: 0,
            current: ThreadId::MAIN,
            end: None,
            ends_are_seen: false,
            refused: None,
            proven: Vec::new(),
            loud_glue: None,
            tried: Tried::default(),
            owners: Owners::default(),
            looks_for_raw_uses: false,
            raw_uses: None,
            hidden: None,
            weak: None,
            lookout: None,
        }
    }
}

impl Empty for Driver {
    fn empty(&mut self) {
        let Driver {
            machine,
            trace,
            clocks,
            stats,
            regions,
            hotspots,
            estimator,
            explorer,
            last_goes_on: _,
            takes_awaits: _,
            proves_awaits: _,
            asks_for_clocks: _,
            has_all_begin: _,
            bounds: _,
            plan,
            replayed,
            begun,
            unbroken,
            again,
            free_from,
            free_for,
            looks_back: _,
            position,
            hints,
            current,
            end,
            ends_are_seen,
            refused,
            proven,
            loud_glue,
            tried,
            owners,
            looks_for_raw_uses,
            raw_uses,
            hidden,
            weak,
            lookout,
        } = self;
        machine.empty();
        trace.empty();
        clocks.empty();
        plan.clear();
        plan.steps.empty();
        estimator.empty();
        hotspots.empty();
        std::mem::replace(explorer, Box::new(Nothing)).recycle();
        proven.empty();
        (*stats, *regions, *owners) = Default::default();
        (*replayed, *begun, *unbroken, *again) = Default::default();
        (*free_from, *free_for, *position, *hints) = Default::default();
        (*current, *end, *ends_are_seen, *hidden) = (ThreadId::MAIN, None, false, None);
        (*looks_for_raw_uses, *raw_uses) = (false, None);
        (*weak, *lookout, *refused, *loud_glue) = (None, None, None, None);
        *tried = Tried::default();
    }
}

/// The explorer of a driver that explores nothing.
struct Nothing;

impl Explorer for Nothing {
    fn begin(&mut self, _: &mut Plan) -> bool {
        false
    }

    fn choose(&mut self, _: &Point<'_>) -> Choice {
        Choice::NothingEnabled
    }

    fn finish(&mut self, _: &Execution<'_>) {}
}
