//! Between which accesses to an atomic can there be an order?
//!
//! Most atomics of a long execution are used by one thread, or are only read. Accesses to such an
//! uncontended atomic are ordered only by their thread, race with no event and enable no waiting
//! thread. So an event on such an atomic needs no search among the earlier events on it, and later
//! events need not find it. The contention is kept from one execution to the next: an atomic that
//! several threads have used and one has written may be used so again.
//!
//! It even has to be kept. An access in a sleep set, or in a branch of a wakeup tree, is compared
//! with the events of executions that may not make that access; and a compare-exchange that has
//! only failed spuriously, which is a read, is planned with its success, which is a write. An
//! earlier execution made both. So a checkpoint contains the contention, too.
//!
//! A thread that waits for a change has read the locations before, and the reads are events. So the
//! contention covers the thread's use of these locations, even if the wait never ends.

use crate::rt::event::id::lengthen;
use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::pooled::Empty;
use crate::rt::rare::rarely;
use crate::rt::relation::independence::Label;

/// For each atomic the threads that have used it, in this execution or an earlier one.
#[derive(Default, Clone, Debug)]
pub(super) struct Contention {
    uses: Vec<Use>,
    /// The number of times that an order became possible after it was ruled out.
    surprises: u32,
}

/// After more surprises each order counts as possible. Each surprise makes all clocks be computed
/// again, and if clocks are computed event by event, an execution may have one surprise for each of
/// thousands of atomics.
const SURPRISES_MAX: u32 = 64;

/// The uncontended uses of one atomic. The first entry is the thread with reads that are ordered
/// with no event of another thread, the second is the thread with such writes. An entry is one
/// thread, or no thread, or any thread, by the constants below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Use([ThreadId; 2]);

const NO_THREAD: ThreadId = ThreadId(u32::MAX);
const ANY_THREAD: ThreadId = ThreadId(u32::MAX - 1);
/// No thread, because several threads use the atomic, and one has written.
const CONTENDED: ThreadId = ThreadId(u32::MAX - 2);

/// The relation of an event to the other events on the same object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// The event may be ordered with others.
    Possible,
    /// The event may be ordered with others, and so may from now on the earlier events for which
    /// that was ruled out.
    PossibleFromNow,
    /// The event is ordered only with those of its own thread.
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
    /// Whether an event of this thread with this label is known to be ordered with no event of
    /// another thread.
    #[inline(always)]
    pub(super) fn rules_out(&self, thread: ThreadId, label: Label) -> bool {
        let (Some(writes), Some(known)) =
            (label.writes_atomic(), self.uses.get(label.object().index()))
        else {
            return false;
        };
        let whose = known.0[usize::from(writes)];
        whose == thread || whose == ANY_THREAD
    }

    /// Notes another event of this thread with this label. Returns its relation to others;
    /// [`Order::Possible`] for every object that is not an atomic.
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

    /// [`Contention::note`] for an atomic that is not known to be contended.
    #[inline(never)]
    fn note_use(&mut self, thread: ThreadId, object: ObjectId, writes: bool) -> Order {
        if rarely!(self.surprises > SURPRISES_MAX) {
            return Order::Possible;
        }
        let written = if writes { thread } else { NO_THREAD };
        let known = self.of_object(object);
        *known = known.and(Use([thread, written]));
        if known.is_contended() {
            Order::PossibleFromNow
        } else {
            Order::Impossible
        }
    }

    /// From now on each order counts as possible: a block that is one step may touch any object.
    /// Returns the number of objects of which something was known, if an order was ruled out until
    /// now.
    pub(super) fn give_up(&mut self) -> Option<usize> {
        if self.surprises > SURPRISES_MAX {
            return None;
        }
        self.surprises = SURPRISES_MAX + 1;
        let known = self.uses.len();
        self.uses.clear();
        Some(known)
    }

    /// Notes that clocks were computed from a wrong assumption and are computed again.
    pub(super) fn be_surprised(&mut self) {
        self.surprises += 1;
        if self.surprises > SURPRISES_MAX {
            self.uses.clear();
        }
    }

    /// The contention as numbers for [`Contention::restore`].
    pub(super) fn save(&self) -> Vec<u64> {
        let threads = self.uses.iter().flat_map(|known| known.0);
        // The numbers that stand for no thread are mapped to the smallest ones, which are short in
        // text.
        let threads = threads
            .map(|thread| thread.0.wrapping_add(3))
            .map(u64::from);
        [u64::from(self.surprises)]
            .into_iter()
            .chain(threads)
            .collect()
    }

    /// Restores the numbers from [`Contention::save`]; false if these are no such numbers.
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

    /// Adds what another exploration of the same program knows, with its threads and objects under
    /// other numbers; false if `other` are no numbers from [`Contention::save`].
    pub(super) fn add(
        &mut self,
        other: &[u64],
        threads: &[ThreadId],
        objects: &[ObjectId],
    ) -> bool {
        let mut theirs = Contention::default();
        if !theirs.restore(other) {
            return false;
        }
        self.surprises = self.surprises.max(theirs.surprises);
        if self.surprises > SURPRISES_MAX {
            self.uses.clear();
            return true;
        }
        for (theirs, object) in theirs.uses.iter().zip(objects) {
            let known = |thread: ThreadId| match thread {
                NO_THREAD | ANY_THREAD | CONTENDED => Some(thread),
                thread => threads.get(thread.index()).copied(),
            };
            let [Some(reads), Some(written)] = theirs.0.map(known) else {
                return false;
            };
            let known = self.of_object(*object);
            *known = known.and(Use([reads, written]));
        }
        true
    }

    /// The uses of this atomic, none if it is new.
    #[inline]
    fn of_object(&mut self, object: ObjectId) -> &mut Use {
        if self.uses.len() <= object.index() {
            lengthen(&mut self.uses, object.index() + 1, || Use([NO_THREAD; 2]));
        }
        &mut self.uses[object.index()]
    }

    /// Whether events on this object may be ordered with events of other threads, as far as is
    /// known. True for every object that is not an atomic.
    #[inline]
    pub(super) fn is_on(&self, object: ObjectId) -> bool {
        let known = self.uses.get(object.index());
        known.is_none_or(|known| known.0[0] == NO_THREAD || known.is_contended())
    }
}

impl Use {
    /// These uses and the others.
    #[inline]
    fn and(self, other: Use) -> Use {
        let (Use([ours, written]), Use([theirs, also])) = (self, other);
        let by = match (ours, theirs) {
            (CONTENDED, _) | (_, CONTENDED) => CONTENDED,
            (NO_THREAD, one) | (one, NO_THREAD) => one,
            (one, other) if one == other => one,
            _ => ANY_THREAD,
        };
        let is_written = written != NO_THREAD || also != NO_THREAD;
        Use(match (by, is_written) {
            (CONTENDED, _) | (ANY_THREAD, true) => [CONTENDED; 2],
            (_, true) => [by; 2],
            (_, false) => [by, NO_THREAD],
        })
    }

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
    fn what_two_explorations_know_is_what_one_would_know_that_sees_both() {
        let own = |object, class| Label::of(ObjectId(object), class);
        let accesses: Vec<(ThreadId, Label)> = [A, B]
            .into_iter()
            .flat_map(|thread| [Class::Read, Class::Write].map(|class| (thread, class)))
            .flat_map(|(thread, class)| [0, 1].map(|object| (thread, own(object, class))))
            .collect();
        for first in 0..1 << accesses.len() {
            for second in [0, 1, 2, 4, 5, 8, 64, 65, 129, 130, 255] {
                let of = |which: u32| {
                    let all = accesses.iter().enumerate();
                    let chosen = all.filter(move |(at, _)| which >> at & 1 == 1);
                    chosen.map(|(_, access)| *access).collect::<Vec<_>>()
                };
                let (mut one, mut other) = (Contention::default(), Contention::default());
                noted(&mut one, &of(first));
                // The other one has the numbers of threads and objects the other way round.
                let turned = of(second).into_iter().map(|(thread, label)| {
                    let object = ObjectId(1 - label.object().0);
                    (ThreadId(3 - thread.0), Label::of(object, label.class()))
                });
                noted(&mut other, &turned.collect::<Vec<_>>());
                let threads = [ThreadId::MAIN, B, A];
                assert!(one.add(&other.save(), &threads, &[ObjectId(1), ObjectId(0)]));
                let mut both = Contention::default();
                noted(&mut both, &[of(first), of(second)].concat());
                let longest = one.uses.len().max(both.uses.len());
                for known in [&mut one.uses, &mut both.uses] {
                    lengthen(known, longest, || Use([NO_THREAD; 2]));
                }
                assert_eq!(one.uses, both.uses, "{first:b} {second:b}");
            }
        }
        assert!(!Contention::default().add(&[0, 9, 9], &[A], &[ATOMIC]));
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
