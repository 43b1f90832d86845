//! Has what a lock protects been changed since it was taken?
//!
//! A critical section that changes nothing is only a look, and a loop of such looks waits until
//! another one changes something.

use crate::rt::{self, Answer};

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
    /// The lock over this has just been taken, with this answer.
    ///
    /// Where no model has granted it nobody asks what has changed, and the data is not looked at:
    /// some of its bytes may never have been written, such as those between two fields, and a
    /// program must not read these.
    #[inline]
    pub(super) fn since<T: ?Sized>(answer: Answer, data: &T) -> Changes {
        match answer {
            Answer::Done(_) => Changes {
                bytes: rt::bytes(data),
                lent: Lent::Not,
            },
            Answer::Outside | Answer::Inert => Changes {
                bytes: 0,
                lent: Lent::Unseen,
            },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::Outcome;

    #[test]
    fn data_is_looked_at_only_where_a_model_has_granted_the_lock() {
        for (answer, looks) in [
            (Answer::Done(Outcome::Done), true),
            (Answer::Outside, false),
            (Answer::Inert, false),
        ] {
            let data = 7_u64;
            let mut changes = Changes::since(answer, &data);
            assert_eq!(changes.bytes != 0, looks, "{answer:?}");
            assert_eq!(changes.any(&data), !looks, "{answer:?}");
            changes.lend(&data);
            assert_eq!(changes.lent, Lent::Unseen, "{answer:?}");
        }
    }
}
