//! Has the data behind a lock changed since the lock was taken?
//!
//! A critical section that changes nothing only looks at the data, and a loop of such critical
//! sections waits until another thread changes the data.

use crate::rt::{self, Answer};

/// The state of a guard's data when the lock was taken.
#[derive(Debug)]
pub(super) struct Changes {
    /// The bytes of the data when the lock was taken.
    bytes: u64,
    lent: Lent,
}

/// Whether the program had an exclusive reference to the data.
#[derive(PartialEq, Eq, Debug)]
enum Lent {
    Not,
    /// It had one, and may have changed anything.
    Unseen,
    /// It had one. The hash is of the data and of all memory that the data leads to, before that.
    When(u64),
}

impl Changes {
    /// Records the data of a lock that has just been taken, with the model's answer.
    ///
    /// If no model has granted the lock, changes are of no interest, and the data is not read: some
    /// of its bytes may never have been written, such as those between two fields, and a program
    /// must not read these.
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

    /// Records that the program gets an exclusive reference to the data.
    #[inline]
    pub(super) fn lend<T: ?Sized>(&mut self, data: &T) {
        if self.lent == Lent::Not {
            self.lent = match rt::contents(data) {
                Some(contents) if rt::bytes(data) == self.bytes => Lent::When(contents),
                _ => Lent::Unseen,
            };
        }
    }

    /// Whether the data may have changed.
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
