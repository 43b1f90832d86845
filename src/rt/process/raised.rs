//! Which of its panics has ended a thread?
//!
//! A destructor may panic while its thread unwinds, and catch that panic itself. Or a thread has
//! caught a panic, which no hook reports, and panics again. To the panic hook the two cases look
//! alike: there was one panic, and now there is another. The payload with which the thread ends
//! distinguishes them: it belongs to the panic that was not caught.

use std::any::Any;
use std::backtrace::Backtrace;

use crate::rt::event::id::ThreadId;
use crate::rt::event::verdict::Panic;

/// A panic that is not known to have been caught.
pub(crate) struct Raised {
    pub(crate) panic: Panic,
    /// The place where it began, if the environment requests backtraces.
    pub(crate) stack: Option<Box<Backtrace>>,
    /// The panic that was not known to be caught when this one began.
    pub(crate) before: Option<Box<Raised>>,
}

/// A panic of a thread that began while another one unwound.
pub(crate) struct Second {
    pub(crate) raised: Box<Raised>,
    /// The number of events before it began.
    pub(crate) events: usize,
    /// The payload with which its thread has ended, if it has.
    pub(crate) payload: Option<Box<dyn Any + Send>>,
}

/// The message of a panic with this payload, if the payload is text.
pub(crate) fn text(payload: &dyn Any) -> Option<&str> {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| payload.downcast_ref::<&str>().copied())
}

/// The message in the report.
pub(crate) fn words(payload: &dyn Any) -> String {
    text(payload)
        .unwrap_or("a payload that is not text")
        .to_owned()
}

impl Raised {
    /// The panic with which this thread has ended, according to its payload, and the panics before
    /// it. If the payload belongs to none, for example one that was passed to `resume_unwind`, it
    /// is the last panic.
    pub(crate) fn of(self: Box<Self>, thread: ThreadId, payload: &dyn Any) -> Box<Raised> {
        let words = words(payload);
        let is_it = |raised: &Raised| raised.panic.thread == thread && raised.panic.text == words;
        let later = self.each().position(is_it).unwrap_or(0);
        (0..later).fold(self, |raised, _| {
            raised
                .before
                .expect("dpor bug: a panic that was just seen is gone")
        })
    }

    /// This panic, and those before it, the last one first.
    fn each(&self) -> impl Iterator<Item = &Raised> {
        std::iter::successors(Some(self), |raised| raised.before.as_deref())
    }

    /// The reports of all panics, the first one first.
    pub(crate) fn panics(&self) -> Vec<Panic> {
        let mut panics: Vec<Panic> = self.each().map(|raised| raised.panic.clone()).collect();
        panics.reverse();
        panics
    }
}
