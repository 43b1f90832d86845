//! Has what a lock protects been changed since it was taken?
//!
//! A critical section that changes nothing is only a look, and a loop of such looks waits until another one changes something.

use crate::rt;

/// What a guard knows of its data.
#[derive(Debug)]
pub(super) struct Changes {
    /// The bytes of the data when the lock was taken.
    bytes: u64,
    lent: Lent,
}

/// Whether somebody had an exclusive reference to the data.
#[derive(PartialEq, Eq, Debug)]
enum Lent {
    Not,
    /// Who may have changed anything.
    Unseen,
    /// When this was in it, and in all that it leads to.
    When(u64),
}

impl Changes {
    /// The lock over this has just been taken.
    pub(super) fn since<T: ?Sized>(data: &T) -> Changes {
        Changes {
            bytes: rt::bytes(data),
            lent: Lent::Not,
        }
    }

    /// Somebody gets an exclusive reference to the data.
    #[inline]
    pub(super) fn lend<T: ?Sized>(&mut self, data: &T) {
        if self.lent == Lent::Not {
            self.lent = match rt::contents(data) {
                Some(contents) if rt::bytes(data) == self.bytes => Lent::When(contents),
                _ => Lent::Unseen,
            };
        }
    }

    /// Whether anything may have changed.
    pub(super) fn any<T: ?Sized>(&self, data: &T) -> bool {
        match self.lent {
            Lent::Not => rt::bytes(data) != self.bytes,
            Lent::Unseen => true,
            Lent::When(contents) => rt::contents(data) != Some(contents),
        }
    }
}
