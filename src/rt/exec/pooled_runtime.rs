//! What does a runtime pass on to the next exploration?
//!
//! Its memory, and no state. The runtime itself has some 6 KB, which would be copied in and out if
//! each exploration made its own. So a driver lies in its runtime from the beginning, before any
//! execution runs, until all executions have been explored.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use crate::rt::engine::Explorer;
use crate::rt::engine::driver::{Bounds, Driver};
use crate::rt::event::id::ThreadId;
use crate::rt::event::weakened::Weakened;
use crate::rt::object::machine::Limits;
use crate::rt::pooled::{Empty, Pooled, empty_rows, pooled};
use crate::rt::race::Detector;
use crate::rt::rare::rarely;

use crate::rt::exec::callers::Callers;
use crate::rt::exec::context::{Inner, Runtime};
use crate::rt::exec::current;
use crate::rt::exec::delay;
use crate::rt::exec::objects::Table;
use crate::rt::exec::permitted::Permitted;
use crate::rt::exec::settings::Settings;
use crate::rt::exec::suppressed_races::InOrder;
use crate::rt::exec::unwinding::Unwinding;
use crate::rt::heap::Heap;
use crate::rt::process::watchdog::Watchdog;

/// A driver, in the runtime in which it explores a program.
#[derive(Default)]
pub(crate) struct PooledDriver(Pooled<Box<Runtime>>);

pooled!(Box<Runtime>);

impl PooledDriver {
    /// A driver for this explorer.
    pub(crate) fn new(explorer: Box<dyn Explorer>, limits: Limits, bounds: Bounds) -> PooledDriver {
        let mut pooled = PooledDriver::default();
        pooled.prepare(explorer, limits, bounds);
        pooled
    }

    /// Prepares the runtime for an exploration that begins. The runtime has no state of an earlier
    /// exploration but the driver.
    pub(super) fn begin(&mut self, settings: &Settings) -> &Runtime {
        let runtime = &mut **self.0;
        let inner = runtime.inner.get_mut();
        runtime.explores = true;
        runtime.catches_panics = inner.driver.machine.limits.catches_panics;
        runtime.within_panic = std::thread::panicking();
        runtime.pulse.begin(settings.site);
        runtime.callers.ask(settings.callers);
        runtime.weakened.clone_from(&settings.weakened);
        runtime.replay = settings.replay;
        runtime.nth = settings.nth;
        runtime.report = settings.report;
        inner.in_order = settings.in_order.clone();
        if rarely!(settings.is_shared) {
            inner.table.share();
        }
        let limits = &inner.driver.machine.limits;
        runtime.permitted.prefer_writers(limits.writers_first);
        if rarely!(limits.blocks_again) {
            runtime.heap.use_again();
        }
        let learnt = &inner.driver.machine.limits.learnt;
        if rarely!(learnt.held.is_some()) {
            delay::note();
        }
        if let Some(which) = learnt.guarded {
            runtime.heap.guard(which);
        }
        if let Some(block) = settings.watch {
            runtime.heap.watch(block, current::failed);
        }
        runtime.be_watched(settings.patience);
        runtime
    }

    /// The orderings that the last exploration has replaced.
    pub(crate) fn weakened(&self) -> &Weakened {
        &self.0.weakened
    }

    /// The runtime of an exploration that has ended, with its whole state.
    pub(super) fn runtime(&mut self) -> &mut Runtime {
        &mut self.0
    }

    /// Ends the exploration; the driver stays.
    pub(super) fn end(&mut self) {
        self.0.leave();
    }
}

impl Deref for PooledDriver {
    type Target = Driver;

    #[inline]
    fn deref(&self) -> &Driver {
        let inner = self.0.inner.as_ptr();
        // SAFETY: only code with the runtime from `begin` can change the cell, and `begin` borrows
        // `self` exclusively, so no change overlaps with this borrow.
        unsafe { &(*inner).driver }
    }
}

impl DerefMut for PooledDriver {
    #[inline]
    fn deref_mut(&mut self) -> &mut Driver {
        &mut self.0.inner.get_mut().driver
    }
}

impl Default for Runtime {
    /// A runtime that runs nothing.
    fn default() -> Runtime {
        Runtime {
            locals: RefCell::default(),
            tracked: RefCell::default(),
            panics: RefCell::default(),
            failed: Cell::new(None),
            earlier: RefCell::default(),
            outcome: Cell::new(None),
            roomy: Cell::default(),
            faulted: Cell::new(None),
            inner: RefCell::new(Inner {
                driver: Driver::default(),
                table: Table::default(),
                races: Detector::default(),
                in_order: InOrder::All,
                stacks: Vec::new(),
                ended: Vec::new(),
                resting: Vec::new(),
                next: None,
                end: None,
                bodies: Vec::new(),
                asked: Vec::new(),
                names: Vec::new(),
                inside: Vec::new(),
                glue_of: None,
            }),
            heap: Heap::new(),
            unwinding: Unwinding::default(),
            next_tracked: Cell::new(0),
            callers: Callers::default(),
            raised: Cell::new(None),
            failing: Cell::new(None),
            second: Cell::new(None),
            pulse: Arc::default(),
            weakened: Weakened::default(),
            replay: |_, _, _| String::new(),
            nth: 1,
            current: Cell::new(ThreadId::MAIN),
            running: Cell::new(false),
            stopping: Cell::new(false),
            unexplored: Cell::new(false),
            weak: Cell::new(false),
            tries: Cell::new(false),
            repeats: Cell::new(false),
            hints: Cell::new(0),
            repeated: Cell::default(),
            before_round: RefCell::default(),
            after_round: RefCell::default(),
            block: Cell::new(None),
            glue: Cell::new(None),
            loud: Cell::new(None),
            has_raw_references: Cell::new(false),
            in_vain: Cell::new(0),
            left: Cell::new(false),
            aside: Cell::new(false),
            catches_panics: false,
            within_panic: false,
            // Neither this value nor its owner is passed to another OS thread.
            os_thread: std::thread::current(),
            failed_at: RefCell::default(),
            explores: false,
            watchdog: None,
            at_end: RefCell::default(),
            report: |_| String::new(),
            at_last_hint: RefCell::default(),
            recorded_outcome: Cell::default(),
            permitted: Permitted::default(),
            clock: RefCell::default(),
        }
    }
}

impl Runtime {
    /// Has the watchdog report on standard error if a step does not return within this time.
    #[inline]
    fn be_watched(&mut self, patience: Option<Duration>) {
        // Mostly the exploration before had the same setting.
        match (&self.watchdog, patience) {
            (None, None) => {}
            (Some(watchdog), Some(patience)) if watchdog.waits_for(patience) => {}
            _ => self.watchdog = patience.map(|patience| self.watch(patience)),
        }
    }

    #[cold]
    fn watch(&self, patience: Duration) -> Watchdog {
        // Not `eprintln`: a test harness captures its output until the test has ended, and this
        // test may not end.
        let say = |text: String| {
            let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
        };
        Watchdog::watch(self.pulse.clone(), patience, say)
    }

    /// Forgets the state of the exploration but the driver. The patterns here list all fields of a
    /// runtime, so that the compiler finds a field that is not reset.
    fn leave(&mut self) {
        let Runtime {
            locals,
            tracked,
            panics,
            failed,
            earlier,
            outcome,
            roomy,
            faulted,
            inner,
            heap,
            unwinding,
            next_tracked,
            callers,
            raised,
            failing,
            second,
            pulse,
            weakened: _,
            replay: _,
            nth: _,
            current,
            running,
            stopping,
            unexplored,
            weak,
            tries,
            repeats,
            hints,
            repeated,
            before_round,
            after_round,
            block,
            glue,
            loud,
            has_raw_references,
            in_vain,
            left,
            aside,
            catches_panics: _,
            within_panic: _,
            os_thread: _,
            failed_at,
            explores,
            watchdog: _,
            at_end,
            report: _,
            at_last_hint,
            recorded_outcome,
            permitted,
            clock,
        } = self;
        let Inner {
            driver: _,
            table,
            races,
            in_order,
            stacks,
            ended,
            resting,
            next,
            end,
            bodies,
            asked,
            names,
            inside,
            glue_of,
        } = inner.get_mut();
        locals.get_mut().reset();
        tracked.get_mut().empty();
        panics.get_mut().empty();
        earlier.get_mut().empty();
        failed_at.get_mut().empty();
        at_end.get_mut().empty();
        at_last_hint.get_mut().empty();
        before_round.get_mut().empty();
        repeats.set(false);
        hints.set(0);
        after_round.get_mut().empty();
        repeated.take();
        (*failed, *outcome, *failing) = Default::default();
        (*roomy, *next_tracked) = Default::default();
        glue.take();
        loud.take();
        *glue_of = None;
        faulted.get_mut().empty();
        raised.get_mut().empty();
        second.take();
        recorded_outcome.take();
        permitted.empty();
        clock.get_mut().empty();
        table.empty();
        races.empty();
        *in_order = InOrder::All;
        empty_rows(stacks);
        ended.empty();
        resting.empty();
        (*next, *end) = (None, None);
        empty_rows(bodies);
        asked.empty();
        names.empty();
        inside.empty();
        heap.empty();
        unwinding.reset();
        callers.forget();
        pulse.end();
        *current = Cell::new(ThreadId::MAIN);
        (*running, *stopping, *unexplored, *aside) = Default::default();
        has_raw_references.set(false);
        weak.set(false);
        tries.set(false);
        block.set(None);
        (*in_vain, *left) = Default::default();
        *explores = false;
    }
}

impl Empty for Runtime {
    fn empty(&mut self) {
        self.inner.get_mut().driver.empty();
    }

    /// A runtime that a panic has left in the middle of an exploration is of no use to another one.
    #[inline]
    fn has_room(&self) -> bool {
        !self.explores
    }
}

#[cfg(test)]
mod tests;
