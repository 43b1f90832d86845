//! Where does a task put a waker that no event shows?
//!
//! The exploration knows the place at which the task is polled, which may be far from the future
//! that has cloned the waker. Another run of the execution records the stack of the clone.

use std::path::Path;

use crate::diagnose::minimize::{Looks, Probe};
use crate::rt::engine::replay::Replay;
use crate::rt::event::Site;
use crate::rt::event::schedule::Schedule;
use crate::rt::exec::run::explore_a_few;
use crate::rt::report::places;

impl Probe<'_> {
    /// Returns the line of the program that clones the waker of a task polled at `polled`, in the
    /// execution with this schedule: the innermost one in the program's own directory, otherwise
    /// the innermost one of all. `None` if the program was built without lines.
    pub(crate) fn clones_waker_at(&mut self, schedule: Schedule, polled: Site) -> Option<String> {
        let driver = self.driver(Box::new(Replay::new(schedule)));
        let settings = self.looking(Looks::at_callers());
        let mut found = None;
        let log = self.log.quiet();
        log.listen(|| {
            explore_a_few(self.main, driver, self.stacks, settings, &mut |between| {
                let mut unseen = between.unseen_wakers.iter();
                if let Some(waker) = unseen.find(|waker| *waker.polled == *polled) {
                    let frames = places::lines(&waker.stack, self.site);
                    let own = frames.iter().find(|it| Path::new(&it.file).is_relative());
                    let frame = own.or(frames.first());
                    found = frame.map(|it| format!("{}:{}", it.file, it.line));
                }
                found.is_none()
            })
        });
        found
    }
}
