//! Is a load or a store reversed without a graph?
//!
//! Mostly the sequence that a reversal plans is told by the execution alone: its events keep what
//! they read and how their stores are ordered, so coherence, atomicity and the places of stores are
//! questions of numbers. Then the graph stays as it is, and the next execution need not make it
//! again. What takes more is left to the graph: `SeqCst`, read-modify-writes that are reversed, and
//! sequences with operations on other objects among the planned events.

use super::super::operation::{OpKind, Operation};
use super::super::{Decision, Interval, MemoryModel, Outcome, StoreRef};
use super::ended::{Ended, Made};
use super::plan::{Node, count_along};
use super::settled::{Candidate, Evidence};
use super::{Search, Step};
use crate::rt::event::id::{ObjectId, ThreadId};

/// A sequence of events of an execution that has ended, with the reversed one at its end.
struct Apart<'a> {
    ended: &'a Ended,
    /// The reversed event, which stands for itself with another outcome.
    first: usize,
    outcome: Outcome,
    /// The steps of a branch that the sequence does not have.
    passed: Vec<Passed>,
}

/// A load or a store that the sequence does not have.
struct Passed {
    thread: ThreadId,
    /// The object, if it is a store, its name, and where it comes in the modification order.
    store: Option<(ObjectId, StoreRef, u64)>,
}

/// Stands in a path for a step that the sequence does not have, of this thread.
const fn step_of(thread: ThreadId) -> usize {
    usize::MAX - thread.0 as usize
}

/// How far two stores of an execution that has ended are apart, so that others have room in
/// between.
const APART: u64 = 1 << 24;

impl Apart<'_> {
    fn step(&self, event: usize) -> &Step {
        &self.ended.made[event].step
    }

    fn outcome(&self, event: usize) -> Outcome {
        match event == self.first {
            true => self.outcome,
            false => self.ended.made[event].outcome,
        }
    }

    /// Where a store comes in the modification order. The reversed one comes directly behind a
    /// store that was there.
    fn place(&self, event: usize) -> u64 {
        match self.outcome {
            Outcome::Behind(store) if event == self.first => {
                self.ended.rank(store) as u64 * APART + APART / 2
            }
            _ => self.ended.made[event].rank as u64 * APART,
        }
    }

    fn place_of(&self, store: StoreRef) -> u64 {
        let Some((thread, index)) = store.event() else {
            return 0;
        };
        let mut passed = self.passed.iter().filter_map(|passed| passed.store);
        match passed.find(|&(_, name, _)| name == store) {
            Some((_, _, place)) => place,
            None => self.place(self.ended.number(thread, index)),
        }
    }

    /// The stores of an object that are there, each with its place. Those of the sequence are if
    /// `has` says so.
    fn stores(
        &self,
        object: ObjectId,
        has: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = (u64, StoreRef)> + Clone {
        let made = self.ended.stores(object);
        let made: Vec<(u64, StoreRef)> = made
            .filter(|&store| store < self.first || has(store))
            .map(|store| {
                let Made {
                    ref step, index, ..
                } = self.ended.made[store];
                (self.place(store), StoreRef::of(step.thread, index))
            })
            .collect();
        let passed = self.passed.iter().filter_map(|passed| passed.store);
        let passed = passed.filter(move |&(of, ..)| of == object);
        (made.into_iter()).chain(passed.map(|(_, name, place)| (place, name)))
    }

    /// The number of steps of a thread behind the sequence and what a branch has besides.
    fn made_by(&self, thread: ThreadId, sequence: &[usize]) -> u32 {
        let made = self.ended.threads.get(thread.index());
        let before = made.map_or(0, |made| {
            made.partition_point(|&event| (event as usize) < self.first)
        });
        let is_its = |&&event: &&usize| self.step(event).thread == thread;
        let passed = self.passed.iter().filter(|passed| passed.thread == thread);
        (before + sequence.iter().filter(is_its).count() + passed.count()) as u32
    }

    /// Passes a load that the sequence does not have.
    fn pass_load(&mut self, thread: ThreadId) {
        self.passed.push(Passed {
            thread,
            store: None,
        });
    }

    /// Passes a store that the sequence, which has these events, does not have: as late within the
    /// interval as possible. False if there is no place for it; `None` if none can be told.
    fn pass_store(&mut self, step: &Step, within: Interval, sequence: &[usize]) -> Option<bool> {
        let object = step.access.operation.object;
        let end = within
            .before
            .map_or(u64::MAX, |before| self.place_of(before));
        let start = self.place_of(within.after);
        let initial = (0, StoreRef::initial(object));
        let there = (self.stores(object, |store| sequence.contains(&store))).chain([initial]);
        let is_modified = |store: StoreRef| {
            let mut stores = self.ended.stores(object);
            stores.any(|event| {
                (event < self.first || sequence.contains(&event))
                    && self.outcome(event) == Outcome::Modifies(store)
            })
        };
        let within = there
            .clone()
            .filter(|&(place, _)| start <= place && place < end);
        let free = within.filter(|&(_, store)| !is_modified(store));
        let Some((place, _)) = free.max_by_key(|&(place, _)| place) else {
            return Some(false);
        };
        let next = there
            .map(|(other, _)| other)
            .filter(|&other| other > place)
            .min();
        let room = next.map_or(APART, |next| next - place);
        if room < 2 {
            return None;
        }
        let name = StoreRef::of(step.thread, self.made_by(step.thread, sequence));
        self.passed.push(Passed {
            thread: step.thread,
            store: Some((object, name, place + room / 2)),
        });
        Some(true)
    }

    /// Whether the event comes out as was decided.
    fn is_same(&self, event: usize, decision: &Decision) -> bool {
        match (*decision, self.outcome(event)) {
            (Decision::Done, Outcome::Done) => true,
            (Decision::Reads(a), Outcome::Reads(b))
            | (Decision::Modifies(a), Outcome::Modifies(b)) => a == b,
            (Decision::Within(Interval { after, before }), Outcome::Behind(_)) => {
                let place = self.place(event);
                self.place_of(after) < place
                    && before.is_none_or(|before| place < self.place_of(before))
            }
            _ => false,
        }
    }

    /// Whether `later` cannot be without `earlier`, which is another event of the sequence.
    fn needs(&self, later: usize, earlier: usize) -> bool {
        if later != self.first {
            return self.ended.needs(later, earlier);
        }
        match self.outcome {
            Outcome::Reads(store) => (store.event()).is_some_and(|(thread, index)| {
                self.ended.needs(self.ended.number(thread, index), earlier)
            }),
            _ => false,
        }
    }

    /// The event as a tree keeps it, behind the events of `path` and those before the reversed one.
    fn decision(&self, event: usize, path: &[usize]) -> Decision {
        match self.outcome(event) {
            Outcome::Done => Decision::Done,
            Outcome::Reads(store) => Decision::Reads(store),
            Outcome::Modifies(store) => Decision::Modifies(store),
            Outcome::Other { alternative, label } => Decision::Other { alternative, label },
            Outcome::Behind(_) => {
                let object = self.step(event).access.operation.object;
                let place = self.place(event);
                let there = self.stores(object, |store| path.contains(&store));
                let earlier = there.clone().filter(|&(other, _)| other < place);
                let later = there.filter(|&(other, _)| other > place);
                let name = |(_, name): (u64, StoreRef)| name;
                Decision::Within(Interval {
                    after: (earlier.max_by_key(|&(place, _)| place))
                        .map_or(StoreRef::initial(object), name),
                    before: later.min_by_key(|&(place, _)| place).map(name),
                })
            }
        }
    }

    /// For each step that is asleep from so many events of `order` on, the event that wakes it.
    fn wakers<'o>(
        &self,
        order: &'o [usize],
        asleep: &'o [(usize, &Step)],
    ) -> impl Iterator<Item = Option<usize>> {
        asleep.iter().map(move |&(from, step)| {
            let mut order = order[from..].iter().copied();
            order.find(|&event| self.wakes(event, step))
        })
    }

    /// Whether the event wakes a step that only its own thread wakes, or a read-modify-write that
    /// takes its store.
    fn wakes(&self, event: usize, step: &Step) -> bool {
        if event >= self.ended.made.len() {
            return event == step_of(step.thread);
        }
        self.step(event).thread == step.thread
            || match step.decision {
                Decision::Modifies(store) => self.outcome(event) == Outcome::Modifies(store),
                _ => false,
            }
    }
}

impl<M: MemoryModel> Search<M> {
    /// [`Search::reverse`] of a load or a store without the graph. False if that needs the graph,
    /// and nothing was done, or some of the outcomes.
    pub(super) fn reverse_apart(&mut self, ended: &Ended, first: usize) -> bool {
        let Made { step, index, .. } = ended.made[first];
        let Operation { object, kind } = step.access.operation;
        let is_store = match kind {
            OpKind::Load { .. } => false,
            OpKind::Store { .. } => true,
            _ => return false,
        };
        if ended.has_sequential || ended.has_awaits() || self.left_out.is_some() {
            return false;
        }
        let mut rest: Vec<usize> = Vec::with_capacity(ended.made.len() - first);
        for event in first + 1..ended.made.len() {
            if !ended.needs(event, first) {
                rest.push(event);
            }
        }
        rest.push(first);
        let graph = self.model.graph();
        let position = self.levels[first + 1].start as u32 - 1;
        let floor = ended.rank(graph.store_at(object, graph.floor_before(position)));
        let mut sources: Vec<(usize, StoreRef)> = Vec::new();
        if floor == 0 {
            sources.push((0, StoreRef::initial(object)));
        }
        let mut modified: Vec<StoreRef> = Vec::new();
        for store in ended.stores(object) {
            let Made {
                ref step,
                index,
                rank,
                outcome,
                ..
            } = ended.made[store];
            if store == first || ended.needs(store, first) {
                continue;
            }
            if let Outcome::Modifies(source) = outcome {
                modified.push(source);
            }
            if rank >= floor {
                sources.push((rank, StoreRef::of(step.thread, index)));
            }
        }
        // The newest one comes first.
        sources.sort_unstable_by_key(|&(rank, _)| std::cmp::Reverse(rank));
        for (rank, store) in sources {
            let outcome = match is_store {
                true => Outcome::Behind(store),
                false => Outcome::Reads(store),
            };
            let is_its_own = match step.decision {
                Decision::Within(Interval { after, before }) => {
                    ended.rank(after) <= rank
                        && before.is_none_or(|before| rank < ended.rank(before))
                }
                decision => decision == Decision::Reads(store),
            };
            let candidate = Candidate {
                thread: step.thread,
                number: index,
                outcome,
            };
            if is_its_own
                || is_store && modified.contains(&store)
                || self.levels[first].settled.has(&candidate)
            {
                continue;
            }
            let mut apart = Apart {
                ended,
                first,
                outcome,
                passed: Vec::new(),
            };
            let Some(evidence) = self.plan_apart(&mut apart, &rest) else {
                return false;
            };
            self.stats.candidates += 1;
            self.levels[first].settled.add(candidate, evidence);
        }
        true
    }

    /// Plans a sequence, as [`Search::plan`] does. `None` if that needs the graph, and nothing was
    /// done.
    fn plan_apart(&mut self, apart: &mut Apart<'_>, sequence: &[usize]) -> Option<Evidence> {
        let &mut Apart { ended, first, .. } = apart;
        let thread_of = |event: usize| ended.made[event].step.thread;
        let first_of = |of: &[usize], thread: ThreadId| {
            of.iter().position(|&event| thread_of(event) == thread)
        };
        // The reversed event is no read-modify-write.
        let takes = |events: &[usize], decision: Decision| match decision {
            Decision::Modifies(store) => {
                let mut events = events.iter();
                events.any(|&event| ended.made[event].outcome == Outcome::Modifies(store))
            }
            _ => false,
        };
        let and = |evidence: Evidence, event: usize| match event == first {
            true => evidence,
            false => evidence.and(event),
        };
        let is_other = |step: &Step| matches!(step.decision, Decision::Other { .. });
        let level = &self.levels[first];
        for sleeper in &level.sleep {
            match first_of(sequence, sleeper.thread) {
                // Whether it depends on events before it is a question to the graph.
                Some(_) if is_other(sleeper) => return None,
                Some(at) => {
                    if apart.is_same(sequence[at], &sleeper.decision) {
                        return Some(and(Evidence::First(0), sequence[at]));
                    }
                }
                None if !self.is_lasting(sleeper) => return None,
                None if takes(sequence, sleeper.decision) => {}
                None => return Some(self.absence(ended, first, sleeper, Evidence::First(0))),
            }
        }
        let made = level.made.as_ref().map(|(step, _)| step);
        let mut asleep: Vec<(usize, &Step)> = Vec::with_capacity(level.sleep.len() + 1);
        asleep.extend(level.sleep.iter().chain(made).map(|step| (0, step)));
        let mut rest = sequence.to_vec();
        let mut path: Vec<usize> = Vec::with_capacity(rest.len());
        let mut evidence = Evidence::First(0);
        let mut nodes = &level.tree;
        // Where the branch goes that the sequence continues.
        let mut way: Vec<u32> = Vec::new();
        loop {
            let mut next = None;
            for (at, Node { step, .. }) in nodes.iter().enumerate() {
                match first_of(&rest, step.thread) {
                    Some(_) if is_other(step) => return None,
                    Some(item) => {
                        if apart.is_same(rest[item], &step.decision) {
                            let event = rest.remove(item);
                            evidence = and(evidence, event);
                            path.push(event);
                            next = Some(at);
                            break;
                        }
                    }
                    None if !self.is_lasting(step) => return None,
                    None => match step.decision {
                        // Whether the event is in the path or in the rest, it takes the store.
                        Decision::Modifies(_) if takes(sequence, step.decision) => {}
                        Decision::Reads(_) => {
                            apart.pass_load(step.thread);
                            next = Some(at);
                        }
                        Decision::Within(within) => {
                            if apart.pass_store(step, within, sequence)? {
                                next = Some(at);
                            }
                        }
                        _ => return None,
                    },
                }
                if next.is_some() {
                    evidence = self.absence(ended, first, step, evidence);
                    path.push(step_of(step.thread));
                    break;
                }
                asleep.push((path.len(), step));
            }
            let Some(at) = next else { break };
            if nodes[at].is_end {
                return Some(evidence);
            }
            way.push(at as u32);
            nodes = &nodes[at].children;
        }
        if !asleep.iter().all(|(_, step)| self.is_lasting(step)) {
            return None;
        }
        let rest = needed(apart, &path, rest, &asleep);
        // Without the reversed event, operations on other objects may depend on others than they
        // did. The sequence may have them as long as no planned event needs one.
        if rest.iter().any(|&event| ended.made[event].label.is_some()) {
            return None;
        }
        self.stats.planned += 1;
        self.nodes += rest.len();
        self.stats.nodes = self.stats.nodes.max(self.nodes);
        self.note_branch(first, &way, nodes.len(), rest.len());
        let tree = &mut self.levels[first].tree;
        count_along(tree, &way);
        let mut nodes = tree;
        for at in way {
            nodes = &mut nodes[at as usize].children;
        }
        // The reversed event may be one of the path.
        let last = rest.last().copied();
        for event in rest {
            let decision = apart.decision(event, &path);
            path.push(event);
            evidence = and(evidence, event);
            let step = Step {
                decision,
                ..*apart.step(event)
            };
            nodes.reserve_exact(1);
            nodes.push(Node {
                is_end: Some(event) == last,
                ..Node::of(step)
            });
            nodes = &mut nodes.last_mut().expect("a node was added").children;
        }
        Some(evidence)
    }
}

/// The events of `rest` that are needed behind those of `path`, as [`Search::needed`] finds them.
fn needed(
    apart: &Apart<'_>,
    path: &[usize],
    rest: Vec<usize>,
    asleep: &[(usize, &Step)],
) -> Vec<usize> {
    if rest.len() == 1 {
        return rest;
    }
    let mut order: Vec<usize> = path.iter().chain(&rest).copied().collect();
    let wanted: Vec<usize> = apart.wakers(&order, asleep).flatten().collect();
    let mut needed: Vec<usize> = Vec::with_capacity(rest.len());
    for &event in rest.iter().rev() {
        if event == apart.first
            || wanted.contains(&event)
            || needed.iter().any(|&later| apart.needs(later, event))
        {
            needed.push(event);
        }
    }
    needed.reverse();
    order.truncate(path.len());
    order.extend_from_slice(&needed);
    let is_enough = apart.wakers(&order, asleep).all(|waker| waker.is_some());
    if is_enough { needed } else { rest }
}
