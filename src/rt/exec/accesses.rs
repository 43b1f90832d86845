//! How do accesses to plain memory reach the runtime?
//!
//! These accesses are no events. The detector of data races learns where each of them begins and
//! ends ([`memory`](super::memory)). The memory of a shim may also be used plainly, for example
//! through `get_mut`.

use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

use crate::rt::event::Site;
use crate::rt::event::operation::OpKind;
use crate::rt::event::verdict::Effect;
use crate::rt::shim::{Answer, Memory, Target};

use super::context::{inside, with, with_step};
use super::outsiders;
use crate::rt::exec::restore::with_older;
use crate::rt::statics;

/// Reads the first and the last byte of the memory that is about to be used. If the memory is not
/// mapped, the read faults as a fault of the program, like any other, because the runtime is not at
/// work here.
#[inline]
fn touch(memory: &Memory) {
    if let Some(last) = memory.size.checked_sub(1) {
        for byte in [memory.start, memory.start.wrapping_add(last)] {
            // SAFETY: there is a reference to the memory. No other OS thread writes to memory that
            // the threads of a model use.
            unsafe { byte.cast::<MaybeUninit<u8>>().read_volatile() };
        }
    }
}

/// Begins an access to plain memory, which [`end_access`] ends with the same address and size.
/// Returns whether the execution is run to be reported; `None` if no accesses are checked.
pub(crate) fn begin_access(memory: Memory, write: bool, site: Site) -> Option<bool> {
    if inside() {
        touch(&memory);
    }
    let begun = with_step(|runtime| {
        runtime.hear_of_frees()?;
        runtime.begin_access(memory, plainly(write), site)?;
        Some(runtime.callers.are_asked_for())
    });
    match begun {
        Err(Answer::Outside) => {
            outsiders::note(memory.start.addr(), site);
            if write && memory.drop.is_some() {
                statics::note_written(memory.start, memory.size);
            }
        }
        Err(Answer::Inert) => {
            with_older(|runtime, inner| runtime.keep_at_end(inner, memory));
        }
        _ => {}
    }
    begun.ok()
}

/// Begins a plain access to the memory of a shim of this size.
pub(crate) fn begin_access_of_shim(target: Target, size: usize, write: bool, site: Site) -> bool {
    let kind = OpKind::Load {
        order: Ordering::Relaxed,
    };
    with_step(|runtime| {
        runtime.hear_of_frees()?;
        // An access to a shim that is gone is reported as a load of it.
        let resolved = runtime.resolve(&mut runtime.inner.borrow_mut(), &target);
        let object = match resolved {
            Ok(object) => object,
            Err(gone) => return runtime.used_after_its_end(&target, kind, gone, site),
        };
        let cell = (target.address, size);
        let region = runtime
            .inner
            .borrow()
            .driver
            .machine
            .names
            .place(object)
            .region;
        let known = (Some(object), Some(region));
        runtime.begin_access_to(cell, known, plainly(write), site)
    })
    .is_ok()
}

fn plainly(write: bool) -> Effect {
    if write { Effect::Write } else { Effect::Read }
}

/// Notes that the access to the plain memory at this address, of this size, continues.
pub(crate) fn continue_access(memory: (usize, usize), site: Site) {
    // Where no model runs, no access was begun.
    let _ = with(|runtime| {
        let me = runtime.current.get();
        runtime.inner.borrow_mut().races.go_on(memory, me, site);
    });
}

/// Ends an access to the plain memory at this address, of this size. The access has lasted up to
/// now, or up to the last event of its thread.
pub(crate) fn end_access(memory: (usize, usize), site: Site, up_to_now: bool) {
    // Where no model runs, no access was begun.
    let _ = with(|runtime| {
        let me = runtime.current.get();
        runtime
            .inner
            .borrow_mut()
            .races
            .end(memory, me, site, up_to_now);
    });
}
