//! Which thread's result is the block that a thread and its handle share?
//!
//! The block of a thread's closure and result is no object of the program, so the source has no
//! name for it. The block is made directly before the thread is spawned, and its owners drop it at
//! the place of the spawn.

use crate::rt::event::id::{Region, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::{Site, Trace};

/// The thread with its result in the block that this memory counts the references of, by operations
/// at this place.
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
