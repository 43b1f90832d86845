//! Does a thread use a block after its free in a way that nothing sees?
//!
//! It is held up behind its last event before the free, until the block is freed, which is done in
//! an execution whose blocks are locked then: if it uses this one in whatever way, there is a
//! fault. Nothing is wrongly found. It is an execution as any other, in which a thread has been
//! slow, and who only keeps the pointer, or compares it, does not use the block.

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
    /// The execution in which the block is used after its free, if this thread does so once it goes
    /// on.
    pub(crate) fn uses_after_free(
        &mut self,
        driver: &mut Driver,
        raw: &RawUse,
    ) -> Option<Box<Found>> {
        let schedule = delayed(driver, raw);
        self.learnt.held = schedule.held().cloned();
        self.uses_one_of(raw.block, schedule)
    }

    /// The execution that has just ended, if one of these blocks is used behind its free there.
    pub(crate) fn uses_in_place(&mut self, driver: &Driver, which: Guarded) -> Option<Box<Found>> {
        let Driver { trace, machine, .. } = driver;
        let schedule = Schedule::of(trace, trace.len(), &machine.names);
        self.uses_one_of(which, schedule)
    }

    /// The execution of this schedule, if one of these blocks is used after its free there.
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

/// Says once that blocks cannot be locked any more.
#[cold]
fn tell_of_refusal() {
    let line = "dpor: the system locks no more memory for this process (a limit of its mappings, as `vm.max_map_count` of Linux, or of \
                memory), so from now on uses of freed memory by plain fields may go unseen: run the tests in several processes, let \
                fewer of them fail, or have them keep less of what their models make";
    if said_once::is_first(line.to_owned()) {
        above_captured(&format!("{line}\n"));
    }
}

/// What leads to the free while the thread is held up, or has not begun, and then to its going on.
fn delayed(driver: &mut Driver, raw: &RawUse) -> Schedule {
    driver.compute_clocks();
    let mut order = without(driver, (raw.thread, raw.events + 1), raw.length);
    // Nor has it come to its end, which is no event: who has waited for that waits.
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
