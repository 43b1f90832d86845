//! Between whose accesses to an atomic can there be an order?
//!
//! Most atomics of a long execution are used by one thread, or are only read. What is done to those
//! is ordered by nothing but its thread, races with nothing and lets nobody in that waits, so an
//! event on one needs no look at what happened to it before, and leaves nothing for others to look
//! at. That is not noted for each execution anew: what was once used by several threads, and
//! written, may be again.
//!
//! It must not even be: a sleeping thread's access, or that of a branch, is compared with the
//! events of executions that may not make it, and a compare-exchange that has only failed
//! spuriously, which is a read, is planned with its success, which is a write. Both were made in an
//! earlier execution. So what is known goes with a checkpoint, too.
//!
//! A thread that waits for a change has looked before, which is an event. So what it waits for it
//! has used, even if the wait never ends.

use crate::rt::event::id::lengthen;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::pooled::Empty;
use crate::rt::rare::rarely;
use crate::rt::relation::independence::Label;

/// Who has used which atomic, in this execution or an earlier one.
#[derive(Default, Clone, Debug)]
pub(super) struct Contention {
    uses: Vec<Use>,
    /// How often an order has turned out to be possible that was not before.
    surprises: u32,
}

/// After more surprises each order is taken to be possible. Each makes all clocks be made anew, and
/// where these are made event by event, an execution may have one for each of thousands of atomics.
const SURPRISES_MAX: u32 = 64;

/// What is known of one atomic: whose reads, and whose writes, are ordered with nothing of another
/// thread. That is one thread, or [`NOBODY`], or [`ANYBODY`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Use([ThreadId; 2]);

const NOBODY: ThreadId = ThreadId(u32::MAX);
const ANYBODY: ThreadId = ThreadId(u32::MAX - 1);
/// Neither, because several threads use it, and one has written.
const CONTENDED: ThreadId = ThreadId(u32::MAX - 2);

/// What an event is to those on the same object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// It may be ordered with others.
    Possible,
    /// So it may, and so may those be from now on that were not before.
    PossibleFromNow,
    /// It is ordered with none but those of its own thread.
    Impossible,
}

impl Empty for Contention {
    fn empty(&mut self) {
        let Contention { uses, surprises } = self;
        uses.empty();
        *surprises = 0;
    }
}

impl Contention {
    /// Whether it is known that an event of this thread with this label is ordered with none of
    /// another thread.
    #[inline(always)]
    pub(super) fn rules_out(&self, thread: ThreadId, label: Label) -> bool {
        let (Some(writes), Some(known)) =
            (label.writes_atomic(), self.uses.get(label.object().index()))
        else {
            return false;
        };
        let whose = known.0[usize::from(writes)];
        whose == thread || whose == ANYBODY
    }

    /// Another event of this thread has this label. Tells what it is to others; of what is no
    /// access to an atomic it is not known that it is nothing.
    #[inline(always)]
    pub(super) fn note(&mut self, thread: ThreadId, label: Label) -> Order {
        let Some(writes) = label.writes_atomic() else {
            return Order::Possible;
        };
        match self.uses.get(label.object().index()) {
            Some(known) if known.is_contended() => Order::Possible,
            _ => self.note_use(thread, label.object(), writes),
        }
    }

    /// [`Contention::note`] for what may not be known.
    #[inline(never)]
    fn note_use(&mut self, thread: ThreadId, object: ObjectId, writes: bool) -> Order {
        if rarely!(self.surprises > SURPRISES_MAX) {
            return Order::Possible;
        }
        if self.uses.len() <= object.index() {
            lengthen(&mut self.uses, object.index() + 1, || Use([NOBODY; 2]));
        }
        let known = &mut self.uses[object.index()];
        let Use([reads, written]) = *known;
        let is_written = writes || written != NOBODY;
        let is_alone = reads == NOBODY || reads == thread;
        let by = if is_alone { thread } else { ANYBODY };
        *known = Use(match (by, is_written) {
            (ANYBODY, true) => [CONTENDED; 2],
            (_, true) => [by; 2],
            (_, false) => [by, NOBODY],
        });
        match known.is_contended() {
            true => Order::PossibleFromNow,
            false => Order::Impossible,
        }
    }

    /// Clocks were made for what turned out to be wrong, and are made anew.
    pub(super) fn be_surprised(&mut self) {
        self.surprises += 1;
        if self.surprises > SURPRISES_MAX {
            self.uses.clear();
        }
    }

    /// What is known, as numbers that [`Contention::restore`] understands.
    pub(super) fn save(&self) -> Vec<u64> {
        let threads = self.uses.iter().flat_map(|known| known.0);
        // Those that stand for no thread come to the beginning, where numbers are short.
        let threads = threads
            .map(|thread| thread.0.wrapping_add(3))
            .map(u64::from);
        [u64::from(self.surprises)]
            .into_iter()
            .chain(threads)
            .collect()
    }

    /// Takes up what [`Contention::save`] has given; false if these are no such numbers.
    pub(super) fn restore(&mut self, numbers: &[u64]) -> bool {
        let numbers = numbers.iter().map(|&number| u32::try_from(number).ok());
        let numbers: Option<Vec<u32>> = numbers.collect();
        let Some((&surprises, threads)) = numbers.as_deref().and_then(<[u32]>::split_first) else {
            return false;
        };
        let (uses, rest) = threads.as_chunks::<2>();
        let thread = |number: u32| ThreadId(number.wrapping_sub(3));
        let known = |&[reads, writes]: &[u32; 2]| Use([thread(reads), thread(writes)]);
        self.surprises = surprises;
        self.uses.clear();
        self.uses.extend(uses.iter().map(known));
        rest.is_empty()
    }

    /// Whether events on this object may be ordered with those of other threads, as far as is
    /// known. Of one that is no atomic nothing is.
    #[inline]
    pub(super) fn is_on(&self, object: ObjectId) -> bool {
        let known = self.uses.get(object.index());
        known.is_none_or(|known| known.0[0] == NOBODY || known.is_contended())
    }
}

impl Use {
    #[inline]
    fn is_contended(self) -> bool {
        self.0[0] == CONTENDED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::relation::independence::Class;

    const ATOMIC: ObjectId = ObjectId(3);
    const READ: Label = Label::of(ATOMIC, Class::Read);
    const WRITE: Label = Label::of(ATOMIC, Class::Write);
    const A: ThreadId = ThreadId(1);
    const B: ThreadId = ThreadId(2);

    fn noted(contention: &mut Contention, accesses: &[(ThreadId, Label)]) -> Vec<Order> {
        let notes = accesses.iter();
        notes
            .map(|&(thread, label)| contention.note(thread, label))
            .collect()
    }

    #[test]
    fn an_order_is_possible_once_several_threads_use_an_atomic_and_one_has_written() {
        use Order::{Impossible as No, Possible as Yes, PossibleFromNow as Now};
        for (accesses, expected) in [
            (
                [(A, READ), (A, WRITE), (A, READ), (B, READ)],
                [No, No, No, Now],
            ),
            (
                [(A, READ), (B, READ), (A, READ), (B, WRITE)],
                [No, No, No, Now],
            ),
            (
                [(A, WRITE), (B, READ), (B, READ), (A, WRITE)],
                [No, Now, Yes, Yes],
            ),
        ] {
            let mut contention = Contention::default();
            assert_eq!(noted(&mut contention, &accesses), expected, "{accesses:?}");
        }
    }

    #[test]
    fn what_is_known_rules_out_the_same_again_and_no_more() {
        let mut contention = Contention::default();
        assert!(!contention.rules_out(A, READ));
        noted(&mut contention, &[(A, READ)]);
        assert!(contention.rules_out(A, READ));
        assert!(!contention.rules_out(A, WRITE) && !contention.rules_out(B, READ));
        noted(&mut contention, &[(B, READ)]);
        assert!(contention.rules_out(A, READ) && contention.rules_out(B, READ));
        assert!(!contention.rules_out(B, WRITE));
        noted(&mut contention, &[(B, WRITE)]);
        assert!(!contention.rules_out(A, READ) && !contention.rules_out(B, WRITE));
    }

    #[test]
    fn after_many_surprises_each_order_is_possible() {
        let mut contention = Contention::default();
        for _ in 0..SURPRISES_MAX {
            contention.be_surprised();
        }
        assert_eq!(noted(&mut contention, &[(A, WRITE)]), [Order::Impossible]);
        contention.be_surprised();
        assert_eq!(noted(&mut contention, &[(A, WRITE)]), [Order::Possible]);
        assert!(!contention.rules_out(A, WRITE) && contention.is_on(ATOMIC));
    }

    #[test]
    fn what_is_taken_up_again_is_known_as_before() {
        let mut contention = Contention::default();
        for _ in 0..SURPRISES_MAX {
            contention.be_surprised();
        }
        let own = |class| (A, Label::of(ObjectId(5), class));
        let accesses = [(A, READ), (B, READ), own(Class::Read), own(Class::Write)];
        noted(&mut contention, &accesses);
        let (saved, mut again) = (contention.save(), Contention::default());
        assert!(again.restore(&saved));
        assert_eq!(again.uses, contention.uses);
        let cut = &saved[..saved.len() - 1];
        assert!(!Contention::default().restore(cut), "half of a use");
        again.be_surprised();
        assert_eq!(noted(&mut again, &[(A, WRITE)]), [Order::Possible]);
    }

    #[test]
    fn of_what_is_no_atomic_nothing_is_ruled_out() {
        let mut contention = Contention::default();
        let lock = Label::of(ATOMIC, Class::Acquire);
        assert_eq!(noted(&mut contention, &[(A, lock)]), [Order::Possible]);
        assert!(!contention.rules_out(A, lock) && contention.is_on(ATOMIC));
        noted(&mut contention, &[(A, READ)]);
        assert!(!contention.is_on(ATOMIC));
        assert!(contention.is_on(ObjectId(1)), "a number that was skipped");
        assert!(contention.is_on(ObjectId(9)));
    }
}
