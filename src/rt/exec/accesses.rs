//! How do accesses to plain memory come to the runtime?
//!
//! They are no events, but the detector of data races is told where each of them begins and ends
//! ([`memory`](super::memory)). A shim's memory may be used plainly, too, as through `get_mut`.

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

/// Reads the first and the last byte of what is about to be used. If nothing is there, that is a
/// fault of the program, like any other, as long as the runtime is not at work.
#[inline]
fn touch(memory: &Memory) {
    if let Some(last) = memory.size.checked_sub(1) {
        for byte in [memory.start, memory.start.wrapping_add(last)] {
            // SAFETY: there is a reference to the memory. No other OS thread writes to what threads
            // of a model use.
            unsafe { byte.cast::<MaybeUninit<u8>>().read_volatile() };
        }
    }
}

/// Begins an access to plain memory; to be ended by [`end_access`] with the same place.
pub(crate) fn begin_access(memory: Memory, write: bool, site: Site) -> bool {
    if inside() {
        touch(&memory);
    }
    let begun = with_step(|runtime| {
        runtime.hear_of_frees()?;
        runtime.begin_access(memory, plainly(write), site)
    });
    let is_done = begun.is_ok();
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
    is_done
}

/// Begins a plain access to the memory of a shim, of this size.
pub(crate) fn begin_access_of_shim(target: Target, size: usize, write: bool, site: Site) -> bool {
    let kind = OpKind::Load {
        order: Ordering::Relaxed,
    };
    with_step(|runtime| {
        runtime.hear_of_frees()?;
        // If it is no more, that is told as of a load.
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
    match write {
        true => Effect::Write,
        false => Effect::Read,
    }
}

/// An access to the plain memory at this address, of this size, goes on.
pub(crate) fn continue_access(memory: (usize, usize), site: Site) {
    // Where no model runs, nothing was begun.
    let _ = with(|runtime| {
        let me = runtime.current.get();
        runtime.inner.borrow_mut().races.go_on(memory, me, site);
    });
}

/// Ends an access to the plain memory at this address, of this size, which has lasted up to now, or
/// up to the last event of its thread.
pub(crate) fn end_access(memory: (usize, usize), site: Site, up_to_now: bool) {
    // As above.
    let _ = with(|runtime| {
        let me = runtime.current.get();
        runtime
            .inner
            .borrow_mut()
            .races
            .end(memory, me, site, up_to_now);
    });
}
