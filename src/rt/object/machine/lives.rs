//! Which threads are there, and which have begun, ended or been joined?

use crate::rt::event::Site;
use crate::rt::event::id::{ThreadId, lengthen};
use crate::rt::event::operation::OpKind;
use crate::rt::rare::Roomy;

use super::{Machine, Pending, START, Thread};

impl Machine {
    /// Adds a thread. Its code has not begun.
    pub(super) fn add_thread(&mut self, thread: ThreadId, site: Site) {
        if self.threads.len() <= thread.index() {
            let nobody = || Thread::new(site);
            lengthen(&mut self.threads, thread.index() + 1, nobody);
        }
        let entry = &mut self.threads[thread.index()];
        // Usually the entry of an earlier execution is reused. Its fields are set one by one,
        // because it is slower to make another entry and move it here.
        entry.last = Pending {
            operation: START,
            site,
        };
        entry.announced = true;
        entry.born = site;
        entry.events = 0;
        entry.at_hint = None;
        entry.children = 0;
        entry.released = None;
        entry.consecutive_releases = 0;
        entry.timeouts.reset();
        entry.wakeups = 0;
        entry.failed.clear();
        entry.failures = 0;
        entry.joined = false;
        entry.spin.reset();
        entry.unparked = None;
        self.live.put(thread);
        self.unjoined += 1;
        self.unbegun += 1;
    }

    /// Whether `thread` has been spawned and its code has not begun.
    #[inline]
    pub(crate) fn is_to_begin(&self, thread: ThreadId) -> bool {
        let pending = self.pending(thread);
        pending.is_some_and(|pending| matches!(pending.operation.kind, OpKind::Start))
    }

    /// The oldest thread that has not begun its code, if there is one.
    #[inline]
    pub(crate) fn next_to_begin(&self) -> Option<ThreadId> {
        if self.unbegun == 0 {
            return None;
        }
        let mut live = self.live.iter().copied();
        live.find(|&thread| self.is_to_begin(thread))
    }

    /// The thread that the announced operation joins, if the code of that thread has not begun.
    pub(crate) fn joins_unbegun(&self, thread: ThreadId) -> Option<ThreadId> {
        match self.pending(thread)?.operation.kind {
            OpKind::Join { child } if self.is_to_begin(child) => Some(child),
            _ => None,
        }
    }

    /// The code of the thread begins. The thread will announce another operation.
    #[inline]
    pub(crate) fn begin(&mut self, thread: ThreadId) {
        self.threads[thread.index()].announced = false;
        self.unbegun -= 1;
    }

    /// The code of `thread` has reached its end.
    #[inline(always)]
    pub(crate) fn end(&mut self, thread: ThreadId) {
        if let Some(at) = self.live.iter().position(|&t| t == thread) {
            self.live.remove(at);
        }
        // No thread waits for the end of the main thread, and threads ask whether it has ended only
        // where ends are events.
        if thread != ThreadId::MAIN || self.limits.learnt.ends_are_events {
            let object = self.names.thread_object(thread);
            *self.finished(object) = true;
        }
    }

    /// Whether `thread` has exactly this number of events in this execution, and its code has
    /// reached its end behind them.
    pub(crate) fn ends_behind(&self, thread: ThreadId, events: u32) -> bool {
        let entry = self.threads.get(thread.index());
        entry.is_some_and(|entry| entry.events == events) && !self.live.contains(&thread)
    }

    /// The threads that exist and have not exited, in the order of their spawns.
    pub(crate) fn live(&self) -> &[ThreadId] {
        &self.live
    }

    /// Whether `thread` is the only live thread, and all events of the other threads happen before
    /// its next event: each other thread was joined, by `thread` or by a thread that was joined
    /// later.
    pub(crate) fn is_alone(&self, thread: ThreadId) -> bool {
        self.unjoined == 0 && self.live[..] == [thread]
    }

    /// Whether a child of this thread has not exited.
    #[inline]
    pub(crate) fn has_live_children(&self, thread: ThreadId) -> bool {
        let is_child = |&other: &ThreadId| {
            let creator = self.names.creator(other);
            creator.is_some_and(|(creator, _)| creator == thread)
        };
        self.threads[thread.index()].children > 0 && self.live.iter().any(is_child)
    }

    /// The number of events of the main thread before its first spawn, if it has spawned a thread.
    pub(crate) fn first_spawn(&self) -> Option<u32> {
        self.first_spawn
    }

    /// The place of the spawn of `thread`; for the main thread the place at which the model begins.
    pub(crate) fn born(&self, thread: ThreadId) -> Site {
        self.threads[thread.index()].born
    }

    /// The name of the next child of `creator`.
    pub(crate) fn next_child(&mut self, creator: ThreadId) -> ThreadId {
        let nth = self.threads[creator.index()].children + 1;
        self.names.child(creator, nth)
    }
}
