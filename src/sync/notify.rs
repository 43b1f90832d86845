//! A single notification that is kept until a thread takes it, as `loom::sync::Notify`.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::rt::{self, Answer, ObjectKind, OpKind, Target};

/// Holds at most one notification, as `loom::sync::Notify`.
///
/// [`wait`](Notify::wait) takes the notification, and waits until there is one.
#[derive(Debug, Default)]
pub struct Notify {
    available: AtomicBool,
    /// For threads outside of a model.
    lock: Mutex<()>,
    condvar: Condvar,
}

impl Notify {
    /// Creates a `Notify` without a notification.
    pub const fn new() -> Notify {
        Notify {
            available: AtomicBool::new(false),
            lock: Mutex::new(()),
            condvar: Condvar::new(),
        }
    }

    fn target(&self) -> Target {
        Target {
            address: self.available.as_ptr().addr(),
            kind: ObjectKind::Token,
            memory: self.available.load(SeqCst) as u64,
        }
    }

    /// Sets the notification, unless it is set already.
    #[track_caller]
    pub fn notify(&self) {
        self.notify_at(Location::caller());
    }

    /// [`Notify::notify`] at this place in the program.
    pub(crate) fn notify_at(&self, site: &'static Location<'static>) {
        let answer = rt::perform_at(self.target(), OpKind::Unpark, site);
        if let Answer::Outside = answer {
            let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.available.store(true, SeqCst);
            self.condvar.notify_one();
        } else {
            self.available.store(true, SeqCst);
        }
    }

    /// Waits for a notification and takes it.
    ///
    /// If several threads wait, any one of them may get the notification. Spurious wake-ups are
    /// explored if [`Builder::spurious_wakeups`](crate::Builder::spurious_wakeups) sets how many a
    /// thread may have.
    #[track_caller]
    pub fn wait(&self) {
        self.wait_at(Location::caller());
    }

    /// [`Notify::wait`] at this place in the program.
    pub(crate) fn wait_at(&self, site: &'static Location<'static>) {
        // Another thread may notify meanwhile, which changes the memory that the target reads.
        let kind = rt::wait_for_notification(site);
        let answer = rt::waited(rt::perform_at(self.target(), kind, site));
        if let Answer::Outside = answer {
            let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            while !self.available.swap(false, SeqCst) {
                let waited = self.condvar.wait(guard);
                guard = waited.unwrap_or_else(PoisonError::into_inner);
            }
        } else if kind == OpKind::Park {
            self.available.store(false, SeqCst);
        }
    }
}
