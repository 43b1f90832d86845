//! Which of its panics has ended a thread?
//!
//! A destructor may panic while its thread unwinds, and catch that itself. Or a thread has caught a
//! panic, which nobody says, and panics again. To the panic hook the two look alike: there was one,
//! and now there is another. The payload tells them apart with which the thread ends: it is that of
//! the panic that nobody has caught.

use std::any::Any;
use std::backtrace::Backtrace;

use crate::rt::event::id::ThreadId;
use crate::rt::event::verdict::Panic;

/// A panic that is not known to have been caught.
pub(crate) struct Raised {
    pub(crate) panic: Panic,
    /// Where it began, if the environment asks for backtraces.
    pub(crate) stack: Option<Box<Backtrace>>,
    /// The one that was there when it began.
    pub(crate) before: Option<Box<Raised>>,
}

/// A panic of a thread that began while another one unwound.
pub(crate) struct Second {
    pub(crate) raised: Box<Raised>,
    /// After how many events it began.
    pub(crate) events: usize,
    /// With which its thread has ended, if it has.
    pub(crate) payload: Option<Box<dyn Any + Send>>,
}

/// What a panic with this payload says, if that is text.
pub(crate) fn text(payload: &dyn Any) -> Option<&str> {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| payload.downcast_ref::<&str>().copied())
}

/// What it is told to say.
pub(crate) fn words(payload: &dyn Any) -> String {
    text(payload)
        .unwrap_or("a payload that is not text")
        .to_owned()
}

impl Raised {
    /// The panic with which this thread has ended, as its payload says, and what was there before
    /// it. It is the last one where the payload is of none, as one that was handed to
    /// `resume_unwind`.
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

    /// This one, and those before it, the last one first.
    fn each(&self) -> impl Iterator<Item = &Raised> {
        std::iter::successors(Some(self), |raised| raised.before.as_deref())
    }

    /// What is told of each, the first one first.
    pub(crate) fn panics(&self) -> Vec<Panic> {
        let mut panics: Vec<Panic> = self.each().map(|raised| raised.panic.clone()).collect();
        panics.reverse();
        panics
    }
}
