//! Does a thread use a block after its free, in a way that no event shows?
//!
//! The thread is delayed behind its last event before the free, until the block is freed. In that
//! execution freed blocks are locked, so any use of the block faults. There are no false alarms:
//! the execution is like any other in which one thread is slow, and a thread that only keeps or
//! compares the pointer does not touch the block.

use crate::diagnose::minimize::{Looks, Probe, begin_with_spawns, schedule, without};
use crate::exploration::progress::above_captured;
use crate::exploration::said_once;
use crate::rt::engine::driver::Driver;
use crate::rt::engine::expand_awaits::InFull;
use crate::rt::event::operation::OpKind;
use crate::rt::event::schedule::{Guarded, Hold, Schedule};
use crate::rt::event::verdict::{End, Wrong};
use crate::rt::exec::run::Found;
use crate::rt::heap;
use crate::rt::lifetime::delayed_use::RawUse;
use crate::rt::rare::rarely;

impl Probe<'_> {
    /// Returns the execution in which the delayed thread uses the block after its free, if it does
    /// so.
    pub(crate) fn uses_after_free(
        &mut self,
        driver: &mut Driver,
        raw: &RawUse,
    ) -> Option<Box<Found>> {
        let schedule = delayed(driver, raw);
        self.learnt.held = schedule.held().cloned();
        self.uses_one_of(raw.block, schedule)
    }

    /// Returns the execution that has just ended, run again with locked blocks, if one of these
    /// blocks is used after its free.
    pub(crate) fn uses_in_place(&mut self, driver: &Driver, which: Guarded) -> Option<Box<Found>> {
        let Driver { trace, machine, .. } = driver;
        let schedule = Schedule::of(trace, trace.len(), &machine.names);
        self.uses_one_of(which, schedule)
    }

    /// Returns the execution of this schedule, if one of these blocks is used after its free there.
    fn uses_one_of(&mut self, which: Guarded, schedule: Schedule) -> Option<Box<Found>> {
        self.learnt.guarded = Some(which);
        let explorer = Box::new(InFull::explorer(schedule));
        let found = self.fails(explorer, 1, Looks::at_bad_memory());
        if rarely!(heap::was_refused()) {
            tell_of_refusal();
        }
        let found = found?;
        let is_raw = |end: &End| matches!(end, End::BadMemory(bad) if matches!(bad.wrong, Wrong::Raw { .. }));
        is_raw(&found.end).then_some(found)
    }
}

/// Says once that the system refuses to lock more blocks.
#[cold]
fn tell_of_refusal() {
    let line = "dpor: the system locks no more memory for this process (a limit of its mappings, as `vm.max_map_count` of Linux, or of \
                memory), so from now on uses of freed memory by plain fields may go unseen: run the tests in several processes, let \
                fewer of them fail, or have them keep less of what their models make";
    if said_once::is_first(line.to_owned()) {
        above_captured(&format!("{line}\n"));
    }
}

/// Returns the schedule that leads to the free while the thread is delayed or has not begun, and
/// then lets the thread continue.
fn delayed(driver: &mut Driver, raw: &RawUse) -> Schedule {
    driver.compute_clocks();
    let mut order = without(driver, (raw.thread, raw.events + 1), raw.length);
    // The delayed thread has not ended, either. Its end is no event, so a join of the thread and
    // the events behind that join are removed here.
    let joins = OpKind::Join { child: raw.thread };
    let is_join = |&at: &u32| driver.trace.at(at).operation.kind == joins;
    if let Some(join) = order.iter().copied().find(is_join) {
        order.retain(|&at| !driver.clocks.before(join, at));
    }
    let began = begin_with_spawns(&driver.trace, &mut [raw.freeing]);
    let mut schedule = schedule(&order, &began, driver);
    let names = &driver.machine.names;
    let path = names.path(raw.thread);
    if raw.events == 0 {
        schedule.begin(path);
        return schedule;
    }
    schedule.hold(Hold {
        path: path.clone(),
        events: raw.events,
    });
    schedule.step_of(path, 0);
    schedule
}
