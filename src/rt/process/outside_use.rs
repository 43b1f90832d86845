//! Uses of shims by threads that are in no model, noted while a model runs.
//!
//! A test that spawns a thread by `std::thread` has a thread that no model schedules. Its
//! operations find no runtime on their OS thread, so they behave as in std. This module notes them
//! for the process, and an execution that has ended looks up the uses of its own memory.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::rt::event::Site;

/// An operation, or an access to plain memory, of a thread that is in no model.
#[derive(Clone, Copy)]
pub(crate) struct Use {
    pub(crate) number: u64,
    pub(crate) address: usize,
    pub(crate) site: Site,
}

/// The number of the latest uses that are remembered.
const MOST: usize = 32;

/// The number of running explorations.
static MODELS: AtomicUsize = AtomicUsize::new(0);

/// The number of uses that were noted.
static USES: AtomicU64 = AtomicU64::new(0);

static LATEST: Mutex<[Option<Use>; MOST]> = Mutex::new([None; MOST]);

/// While this value lives, uses are noted.
pub(crate) struct Watch(());

impl Watch {
    pub(crate) fn begin() -> Watch {
        MODELS.fetch_add(1, Ordering::Relaxed);
        Watch(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        MODELS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A thread that is in no model is about to use the shim at this address.
#[cold]
pub(crate) fn note(address: usize, site: Site) {
    if MODELS.load(Ordering::Relaxed) == 0 {
        return;
    }
    // Each use is worth the wait for the lock: it may be the only one of its model, which would be
    // called complete without it.
    let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    let number = USES.fetch_add(1, Ordering::Relaxed);
    latest[number as usize % MOST] = Some(Use {
        number,
        address,
        site,
    });
}

/// The number of uses that were noted up to now. Memory that is allocated afterwards, or a stack
/// that another exploration has kept, was used by no other code at a use with a number from here
/// on, because both pass from thread to thread in order.
#[inline]
pub(crate) fn noted() -> u64 {
    USES.load(Ordering::Relaxed)
}

/// The latest uses.
pub(crate) fn latest() -> impl Iterator<Item = Use> {
    let latest = *LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    latest.into_iter().flatten()
}
