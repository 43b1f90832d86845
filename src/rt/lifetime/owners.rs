//! Can a block be freed before a use of it, although its references are counted?
//!
//! A thread that holds a reference, and releases it after a use, keeps the block until then. But a
//! pointer that a thread reads from memory is no reference: the thread's use of the block may come
//! after the last release. Releases commute with the use, so no execution shows this order.
//!
//! Counting shows it. Every event that does not happen after a use can come before it. If no
//! reference is left after all of these events, the use can come after the free. One more reference
//! stands for the value until its destructor is over. No event releases that reference, so the
//! driver notes where the value is dropped. But the thread that dropped the value may have released
//! its last reference behind the use. Then, without this release, another thread holds the value
//! last, and drops it there.

use crate::rt::event::id::{ObjectId, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::verdict::ValueGone;
use crate::rt::event::{Event, Trace};
use crate::rt::object::count;
use crate::rt::relation::happens_before::HappensBefore;

/// The events on the objects of an execution, as far as a check has needed them.
#[derive(Default)]
pub(crate) struct Owners {
    /// By object the positions of the events on it, in order.
    uses: Vec<Vec<u32>>,
    /// The number of events that are processed.
    known: usize,
    gone: Vec<ValueGone>,
}

impl Owners {
    /// Another execution begins.
    pub(crate) fn reset(&mut self) {
        self.gone.clear();
        if self.known > 0 {
            self.uses.iter_mut().for_each(Vec::clear);
            self.known = 0;
        }
    }

    pub(crate) fn note_gone(&mut self, gone: ValueGone) {
        self.gone.push(gone);
    }

    /// The dropped values that had weak references at that moment.
    pub(crate) fn gone(&self) -> &[ValueGone] {
        &self.gone
    }

    /// The positions of the events on these objects, in order, among all events so far.
    pub(crate) fn uses_of(&mut self, objects: &[ObjectId], executed: &[Event]) -> Vec<u32> {
        for (position, event) in executed.iter().enumerate().skip(self.known) {
            let object = event.operation.object;
            if object == ObjectId::NONE {
                continue;
            }
            if self.uses.len() <= object.index() {
                self.uses.resize_with(object.index() + 1, Vec::new);
            }
            self.uses[object.index()].push(position as u32);
        }
        self.known = executed.len();
        let of_each = objects.iter().filter_map(|o| self.uses.get(o.index()));
        let mut uses: Vec<u32> = of_each.flatten().copied().collect();
        uses.sort_unstable();
        uses
    }

    /// The last events before the value with this reference `count` was dropped: the positions of
    /// the last events of the threads that dropped it.
    pub(crate) fn ends_of(&self, count: ObjectId, trace: &Trace) -> impl Iterator<Item = u32> {
        let of_it = self.gone.iter().filter(move |gone| gone.count == count);
        of_it.filter_map(|gone| trace.nth_of(gone.thread, gone.after.checked_sub(1)?))
    }
}

/// The change of the numbers of references by an event.
struct Change {
    position: u32,
    strong: i64,
    weak: i64,
}

impl Change {
    /// The change by this event if it is on the count, and the count before it is known.
    fn of(position: u32, event: &Event, count: ObjectId) -> Option<Change> {
        let before = event.before.filter(|_| event.operation.object == count)?;
        let after = match event.operation.kind {
            // This reference has stood for the value since the block was made, and is only counted
            // from here on.
            OpKind::FirstReference => before,
            ref kind => count::apply(before, kind).0,
        };
        let strong = |counts: u64| (counts % count::WEAK) as i64;
        let weak = |counts: u64| (counts / count::WEAK) as i64;
        Some(Change {
            position,
            strong: strong(after) - strong(before),
            weak: weak(after) - weak(before),
        })
    }

    fn gives_up(&self) -> bool {
        self.strong < 0 || self.weak < 0
    }
}

/// The last event of a thread that has dropped the value or freed the block.
struct End {
    position: u32,
    /// Where its thread has released the last reference it had, if the thread has made no step
    /// since that can be blocked. A destructor may wait for a thread that uses the value,
    /// regardless of the thread that drops it.
    given_up: Option<u32>,
}

impl End {
    /// Whether this end keeps the block until after a use, if the events `behind` the use do not
    /// happen.
    fn keeps(&self, behind: impl Fn(u32) -> bool) -> bool {
        behind(self.position) && !self.given_up.is_some_and(behind)
    }
}

/// The releases and ends that can still keep a block of which no reference is left.
pub(crate) struct Releases {
    /// By thread the positions of its uses of the block, and those of them that change the count.
    by_thread: Vec<(Vec<u32>, Vec<Change>)>,
    ends: Vec<End>,
}

impl Releases {
    /// The releases among `uses`, which are all events on the objects in the block, in order.
    /// `count` is the count of its references.
    pub(crate) fn among(uses: &[u32], trace: &Trace, count: ObjectId, ends: Vec<u32>) -> Releases {
        let mut by_thread: Vec<(Vec<u32>, Vec<Change>)> = Vec::new();
        by_thread.resize_with(trace.threads(), Default::default);
        for &position in uses {
            let event = trace.at(position);
            let (uses, changes) = &mut by_thread[event.thread.index()];
            uses.push(position);
            changes.extend(Change::of(position, event, count));
        }
        let end = |position: u32| {
            let thread = trace.at(position).thread;
            let (_, changes) = &by_thread[thread.index()];
            let mut given_up = changes.iter().rev().filter(|change| change.gives_up());
            let given_up = given_up.find(|change| change.position <= position)?;
            let since = trace.positions_of(thread).iter().rev();
            let since = since.skip_while(|&&at| at > position);
            let mut since = since.take_while(|&&at| at > given_up.position);
            let may_wait = |&at: &u32| trace.at(at).operation.kind.may_have_to_wait();
            (!since.any(may_wait)).then_some(given_up.position)
        };
        let ends = ends.into_iter().map(|position| End {
            position,
            given_up: end(position),
        });
        let ends = ends.collect();
        Releases { by_thread, ends }
    }

    /// Whether an access by this thread, after this many of its events, can come after the free of
    /// the block.
    pub(crate) fn let_through(&self, clocks: &HappensBefore, thread: ThreadId, after: u32) -> bool {
        let behind = |position: u32| clocks.knows(position, thread, after);
        let mut left = self.references();
        let changes = self.by_thread.iter().flat_map(|(_, changes)| changes);
        for change in changes.filter(|change| behind(change.position)) {
            left.take_back(change);
        }
        left.are_none() && !self.ends.iter().any(|end| end.keeps(behind))
    }

    /// The references that are left after all changes.
    fn references(&self) -> References {
        let changes = self.by_thread.iter().flat_map(|(_, changes)| changes);
        References {
            strong: 0,
            weak: 0,
            given_up: changes.filter(|change| change.gives_up()).count(),
        }
    }

    /// The last use of each thread that can come after the free of the block: their positions, in
    /// order.
    pub(crate) fn late_uses(&self, clocks: &HappensBefore) -> Vec<u32> {
        let threads = self.by_thread.iter().map(|(uses, _)| uses);
        let mut late: Vec<u32> = threads
            .filter_map(|uses| self.late_use(clocks, uses))
            .collect();
        late.sort_unstable();
        late
    }

    /// The last of these uses, all by one thread, that can come after the free.
    fn late_use(&self, clocks: &HappensBefore, uses: &[u32]) -> Option<u32> {
        if uses.is_empty() {
            return None;
        }
        let changes = self.by_thread.iter().map(|(_, changes)| changes);
        let mut references = self.references();
        // For each thread the number of its changes that do not happen after the use.
        let mut left: Vec<usize> = changes.clone().map(Vec::len).collect();
        // An event that happens after a use also happens after the earlier uses of the same thread.
        let mut uses = uses.iter().rev().copied();
        uses.find(|&at| {
            for (left, changes) in left.iter_mut().zip(changes.clone()) {
                while let Some(change) = changes[..*left].last()
                    && clocks.before(at, change.position)
                {
                    references.take_back(change);
                    *left -= 1;
                }
            }
            references.are_none()
                && !(self.ends.iter()).any(|end| end.keeps(|it| clocks.before(at, it)))
        })
    }
}

/// The number of references after some of the changes.
struct References {
    strong: i64,
    weak: i64,
    /// The number of these changes that release a reference.
    given_up: usize,
}

impl References {
    fn take_back(&mut self, change: &Change) {
        self.strong -= change.strong;
        self.weak -= change.weak;
        self.given_up -= usize::from(change.gives_up());
    }

    /// Whether no reference is left, and at least one was released. The number of one kind may be
    /// negative: then a change has released the reference that stands for those of the other kind.
    fn are_none(&self) -> bool {
        let are_stolen = self.strong < 0 || self.weak < 0;
        (are_stolen || self.strong == 0 && self.weak == 0) && self.given_up > 0
    }
}
