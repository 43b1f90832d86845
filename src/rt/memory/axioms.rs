//! Is a graph consistent, by the axioms as they are written?
//!
//! Relations are sets of pairs, and each axiom is its formula. Nothing of the clocks is used, so
//! the two can be wrong only together. The names are those of RC11. Initial values are stores that
//! happen before everything.

use std::sync::atomic::Ordering;

use super::graph::{Event, Graph};
use crate::rt::event::id::ThreadId;
use crate::rt::event::ordering::{acquires, releases};
use crate::rt::memory::operation::OpKind;
use crate::rt::relation::independence::Class;

/// A set of events.
type Set = u64;

/// A relation between at most 64 events: for each the set of those that it leads to.
#[derive(Clone, PartialEq, Debug)]
struct Relation(Vec<Set>);

impl Relation {
    fn of(events: usize, holds: impl Fn(usize, usize) -> bool) -> Relation {
        let row = |a| {
            (0..events)
                .filter(|&b| holds(a, b))
                .fold(0, |set, b| set | 1 << b)
        };
        Relation((0..events).map(row).collect())
    }

    fn identity(set: Set, events: usize) -> Relation {
        Relation::of(events, |a, b| a == b && set & (1 << a) != 0)
    }

    fn has(&self, a: usize, b: usize) -> bool {
        self.0[a] & (1 << b) != 0
    }

    fn or(&self, other: &Relation) -> Relation {
        let both = self.0.iter().zip(&other.0);
        Relation(both.map(|(a, b)| a | b).collect())
    }

    fn then(&self, other: &Relation) -> Relation {
        let row = |&set: &Set| {
            let mut left = set;
            let mut reached = 0;
            while left != 0 {
                reached |= other.0[left.trailing_zeros() as usize];
                left &= left - 1;
            }
            reached
        };
        Relation(self.0.iter().map(row).collect())
    }

    fn maybe(&self) -> Relation {
        let rows = self.0.iter().enumerate();
        Relation(rows.map(|(a, &set)| set | 1 << a).collect())
    }

    fn plus(&self) -> Relation {
        let mut closure = self.clone();
        for middle in 0..self.0.len() {
            let through = closure.0[middle];
            for row in &mut closure.0 {
                if *row & (1 << middle) != 0 {
                    *row |= through;
                }
            }
        }
        closure
    }

    fn is_irreflexive(&self) -> bool {
        (0..self.0.len()).all(|a| !self.has(a, a))
    }
}

/// The relations of a graph.
pub(super) struct Relations {
    count: usize,
    po: Relation,
    rf: Relation,
    mo: Relation,
    rb: Relation,
    hb: Relation,
    /// Spawns and joins, and what unlocks a mutex with what locks it later.
    life: Relation,
    /// For each event its location; fences have none.
    location: Vec<Option<u32>>,
    stores: Set,
    reads: Set,
    modifies: Set,
    sequential: Set,
    fences: Set,
}

/// What relations are between.
#[derive(Clone, Copy)]
enum Node<'a> {
    Event(&'a Event),
    /// The initial value of this object.
    Initial(u32),
    Start(ThreadId),
    End(ThreadId),
}

impl Relations {
    pub(super) fn of(graph: &Graph) -> Relations {
        let events = graph.events();
        let initials = graph.objects().count();
        // Each thread has a start and an end besides.
        let lives = graph.threads().count();
        let count = events.len() + initials + 2 * lives;
        assert!(count <= 64, "a set of events has 64 bits");
        let event = |at: usize| match at.checked_sub(events.len()) {
            None => Node::Event(&events[at]),
            Some(other) if other < initials => Node::Initial(other as u32),
            Some(other) => {
                let thread = ThreadId(((other - initials) / 2) as u32);
                match (other - initials) % 2 {
                    0 => Node::Start(thread),
                    _ => Node::End(thread),
                }
            }
        };
        let set = |holds: &dyn Fn(&Event) -> bool| {
            let mut those = events.iter().enumerate().filter(|(_, event)| holds(event));
            those
                .try_fold(0, |set: Set, (at, _)| Some(set | 1 << at))
                .unwrap_or(0)
        };
        let location: Vec<Option<u32>> = (0..count)
            .map(|at| match event(at) {
                Node::Event(event) => event.is_access().then(|| event.object().0),
                Node::Initial(object) => Some(object),
                Node::Start(_) | Node::End(_) => None,
            })
            .collect();
        let po = Relation::of(count, |a, b| match (event(a), event(b)) {
            (Node::Event(a), Node::Event(b)) => a.thread == b.thread && a.index < b.index,
            (Node::Start(thread), Node::Event(event)) => event.thread == thread,
            (Node::Event(event), Node::End(thread)) => event.thread == thread,
            (Node::Start(a), Node::End(b)) => a == b,
            (Node::Initial(_), b) => !matches!(b, Node::Initial(_)),
            _ => false,
        });
        let rf = Relation::of(count, |a, b| {
            let Node::Event(b) = event(b) else {
                return false;
            };
            let Some(store) = b.reads() else { return false };
            match (event(a), store.event()) {
                (Node::Event(a), Some(name)) => (a.thread, a.index) == name,
                (Node::Initial(object), None) => object == b.object().0,
                _ => false,
            }
        });
        // The order of the stores is what the graph says; that it is an order needs no check.
        let mut rank: Vec<Option<usize>> = (0..count)
            .map(|at| matches!(event(at), Node::Initial(_)).then_some(0))
            .collect();
        for object in graph.objects() {
            for (place, &store) in graph.stores(object).iter().enumerate() {
                rank[store as usize] = Some(place + 1);
            }
        }
        let mo = Relation::of(count, |a, b| {
            location[a].is_some()
                && location[a] == location[b]
                && matches!((rank[a], rank[b]), (Some(a), Some(b)) if a < b)
        });
        // rb = rf⁻¹ ; mo, of different events.
        let from = Relation::of(count, |read, store| rf.has(store, read));
        let rb = from.then(&mo);
        let rb = Relation::of(count, |a, b| a != b && rb.has(a, b));
        let mut relations = Relations {
            count,
            // A `try_lock` that fails learns nothing.
            stores: set(&|event| event.written.is_some() && event.access.is_to_atomic()),
            reads: set(&|event| event.reads().is_some() && event.access.is_to_atomic()),
            modifies: set(&|event| event.modifies()),
            sequential: set(&|event| event.order == Ordering::SeqCst),
            fences: set(&|event| event.is_fence()),
            hb: po.clone(),
            life: po.clone(),
            po,
            rf,
            mo,
            rb,
            location,
        };
        let acquiring = set(&|event| acquires(event.order));
        let releasing = set(&|event| releases(event.order));
        // A spawn comes before the start of the thread, and its end before a join of it.
        let kind = |event: &Event| event.access.operation.kind;
        relations.life = Relation::of(count, |a, b| match (event(a), event(b)) {
            (Node::Event(spawn), Node::Start(thread)) => {
                matches!(kind(spawn), OpKind::Spawn { child } if child == thread)
            }
            (Node::End(thread), Node::Event(join)) => {
                matches!(kind(join), OpKind::Join { child } if child == thread)
            }
            (Node::Event(unlock), Node::Event(lock)) => {
                let class = |event: &Event| event.label().map(|label| label.class());
                relations.mo.has(a, b)
                    && class(unlock) == Some(Class::Release)
                    && class(lock) == Some(Class::Acquire)
            }
            _ => false,
        });
        relations.hb = relations.happens_before(acquiring, releasing);
        relations
    }

    fn only(&self, set: Set) -> Relation {
        Relation::identity(set, self.count)
    }

    fn happens_before(&self, acquiring: Set, releasing: Set) -> Relation {
        let (stores, reads) = (self.stores, self.reads);
        let all = Relation::identity(!0, self.count);
        // rs = [W] ; (rf ; [RMW])*
        let step = self.rf.then(&self.only(self.modifies));
        let sequence = step.plus().or(&all);
        // sw = ([rel W] ∪ [rel F] ; po ; [W]) ; rs ; rf ; ([acq R] ∪ [R] ; po ; [acq F])
        let from = self.only(releasing & stores & !self.fences).or(&self
            .only(releasing & self.fences)
            .then(&self.po)
            .then(&self.only(stores)));
        let to = self.only(acquiring & reads).or(&self
            .only(reads)
            .then(&self.po)
            .then(&self.only(acquiring & self.fences)));
        let sw = from.then(&sequence).then(&self.rf).then(&to);
        self.po.or(&self.life).or(&sw).plus()
    }

    fn eco(&self) -> Relation {
        self.rf.or(&self.mo).or(&self.rb).plus()
    }

    pub(super) fn is_coherent(&self) -> bool {
        self.hb.is_irreflexive() && self.hb.then(&self.eco()).is_irreflexive()
    }

    /// No store comes between a read-modify-write and what it reads, which comes before it.
    pub(super) fn is_atomic(&self) -> bool {
        let events = (0..self.count).filter(|a| self.modifies & (1 << a) != 0);
        let between = self.rb.then(&self.mo);
        let source = |a: usize| (0..self.count).find(|&store| self.rf.has(store, a));
        events
            .into_iter()
            .all(|a| !between.has(a, a) && source(a).is_some_and(|source| self.mo.has(source, a)))
    }

    pub(super) fn has_no_thin_air(&self) -> bool {
        let all = self.po.or(&self.life).or(&self.rf);
        all.plus().is_irreflexive()
    }

    pub(super) fn is_in_order(&self) -> bool {
        let same = |a: usize, b: usize| self.location[a] == self.location[b];
        let elsewhere = Relation::of(self.count, |a, b| self.po.has(a, b) && !same(a, b));
        let here = Relation::of(self.count, |a, b| {
            self.hb.has(a, b) && same(a, b) && self.location[a].is_some()
        });
        let scb = self
            .po
            .or(&elsewhere.then(&self.hb).then(&elsewhere))
            .or(&here)
            .or(&self.mo)
            .or(&self.rb);
        let sequential = self.only(self.sequential);
        let fence = self.only(self.sequential & self.fences);
        let hb = self.hb.maybe();
        let base = sequential
            .or(&fence.then(&hb))
            .then(&scb)
            .then(&sequential.or(&hb.then(&fence)));
        let eco = self.hb.then(&self.eco()).then(&self.hb);
        let fences = fence.then(&self.hb.or(&eco)).then(&fence);
        base.or(&fences).plus().is_irreflexive()
    }

    /// Whether there is one order of all events that each read agrees with.
    pub(super) fn are_sequential(&self) -> bool {
        let all = self
            .po
            .or(&self.life)
            .or(&self.rf)
            .or(&self.mo)
            .or(&self.rb);
        all.plus().is_irreflexive()
    }

    /// Whether the axioms hold, of which the one on `SeqCst` is only asked if `is_rc11`.
    pub(super) fn are_consistent(&self, is_rc11: bool) -> bool {
        self.is_coherent()
            && self.is_atomic()
            && self.has_no_thin_air()
            && (!is_rc11 || self.is_in_order())
    }
}
