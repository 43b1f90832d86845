//! Whose result is it that a thread and its handle own together?
//!
//! The block of a thread's closure and result is no object of the program, so its source has no
//! name for it. It is made directly before the thread is spawned, and its owners give it up at the
//! place of the spawn.

use crate::rt::event::id::{Region, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::{Site, Trace};

/// The thread whose result has its owners counted in this memory, by operations at this place.
pub(super) fn whose(trace: &Trace, region: Region, site: Site) -> Option<ThreadId> {
    let Region::Heap {
        thread: by, events, ..
    } = region
    else {
        return None;
    };
    let mut spawns = trace.events().iter();
    spawns.find_map(|event| match event.operation.kind {
        OpKind::Spawn { child }
            if (event.thread, event.index) == (by, events) && event.site == site =>
        {
            Some(child)
        }
        _ => None,
    })
}
