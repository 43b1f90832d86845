//! Can the `SeqCst` events of a graph be put into one order?
//!
//! The third axiom of RC11: the relation psc has no cycle.
//!
//! ```text
//! scb = po ∪ (po≠loc ; hb ; po≠loc) ∪ hb|loc ∪ mo ∪ rb
//! psc = ([SC] ∪ [F] ; hb?) ; scb ; ([SC] ∪ hb? ; [F])  ∪  [F] ; (hb ∪ hb ; eco ; hb) ; [F]
//! ```
//!
//! `[SC]` is any `SeqCst` event, `[F]` a `SeqCst` fence, and eco = (rf ∪ mo ∪ rb)+.
//!
//! The graph without its last event has no cycle. From the last event only mo and rb lead away, so
//! a cycle goes through that event, and one of its links begins at the event itself or at a fence
//! that it knows of. From each of these a search asks whether it comes back.

use super::graph::{Event, Graph};

/// The scratch of the search.
#[derive(Clone, Debug, Default)]
pub(super) struct Psc {
    reached: Set,
    open: Vec<u32>,
    sources: Set,
    targets: Set,
    links: Set,
}

/// Events of a graph, a bit for each.
#[derive(Clone, Debug, Default)]
struct Set {
    words: Vec<u64>,
}

impl Set {
    fn clear(&mut self, events: usize) {
        self.words.clear();
        self.words.resize(events.div_ceil(64), 0);
    }

    /// Whether the event was not in the set before.
    fn insert(&mut self, event: u32) -> bool {
        let word = &mut self.words[event as usize / 64];
        let bit = 1 << (event % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn has(&self, event: u32) -> bool {
        self.words[event as usize / 64] & (1 << (event % 64)) != 0
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        let words = self.words.iter().enumerate();
        words.flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(at as u32 * 64 + bit)
            })
        })
    }
}

/// Whether two events are of different locations. Fences and others are of none.
fn is_elsewhere(a: &Event, b: &Event) -> bool {
    !a.is_access() || !b.is_access() || a.object() != b.object()
}

/// The place of the store that an event is, or reads.
fn place(graph: &Graph, event: u32) -> usize {
    let event = graph.at(event);
    let store = match event.written {
        Some(_) => event.name(),
        None => event.reads().expect("an access reads or writes"),
    };
    graph.place(event.object(), store)
}

/// The events from which `event` is `eco`: its readers if it is a store, later stores, and their
/// readers.
fn add_eco(graph: &Graph, event: u32, set: &mut Set) {
    let Event { written, .. } = *graph.at(event);
    if !graph.at(event).is_access() {
        return;
    }
    let object = graph.at(event).object();
    let own = place(graph, event);
    for place in own..=graph.last_place(object) {
        if place > own {
            set.insert(graph.stores(object)[place - 1]);
        }
        if place > own || written.is_some() {
            for reader in graph.readers(object, place) {
                set.insert(reader);
            }
        }
    }
}

impl Psc {
    /// Whether there is a cycle through the last event.
    pub(super) fn last_closes_cycle(&mut self, graph: &Graph) -> bool {
        let last = graph.len() as u32 - 1;
        let sources = graph.sequential().iter().copied();
        let mut sources = sources.filter(|&source| {
            source == last || graph.at(source).is_fence() && graph.happens_before(source, last)
        });
        sources.any(|source| self.comes_back(graph, source))
    }

    /// Whether psc leads from `source` to itself.
    fn comes_back(&mut self, graph: &Graph, source: u32) -> bool {
        self.reached.clear(graph.len());
        self.open.clear();
        self.open.push(source);
        while let Some(next) = self.open.pop() {
            self.follow(graph, next);
            if self.links.has(source) {
                return true;
            }
            for link in self.links.iter() {
                if self.reached.insert(link) {
                    self.open.push(link);
                }
            }
        }
        false
    }

    /// Puts the events to which psc leads from the one at `from` into `links`.
    fn follow(&mut self, graph: &Graph, from: u32) {
        let count = graph.len() as u32;
        self.sources.clear(graph.len());
        self.targets.clear(graph.len());
        self.links.clear(graph.len());
        self.sources.insert(from);
        let is_fence = graph.at(from).is_fence();
        if is_fence {
            for event in (0..count).filter(|&event| graph.happens_before(from, event)) {
                self.sources.insert(event);
            }
        }
        for source in self.sources.iter() {
            add_scb(graph, source, &mut self.targets);
        }
        for &event in graph.sequential() {
            if self.targets.has(event) {
                self.links.insert(event);
            }
        }
        if is_fence {
            // hb ; eco ; hb and hb between fences.
            for known in self.sources.iter().filter(|&known| known != from) {
                self.targets.insert(known);
                add_eco(graph, known, &mut self.targets);
            }
        }
        for &fence in graph.sequential() {
            let mut known = self.targets.iter();
            if graph.at(fence).is_fence()
                && known.any(|event| event == fence || graph.happens_before(event, fence))
            {
                self.links.insert(fence);
            }
        }
    }
}

/// The events to which scb leads from the one at `from`.
fn add_scb(graph: &Graph, from: u32, set: &mut Set) {
    let count = graph.len() as u32;
    let event = *graph.at(from);
    for later in 0..count {
        let other = graph.at(later);
        if event.is_po_before(other)
            || graph.happens_before(from, later) && !is_elsewhere(&event, other)
        {
            set.insert(later);
        }
    }
    // po to another location, hb, and po to another location.
    for &middle in graph.positions_of(event.thread) {
        if event.is_po_before(graph.at(middle)) && is_elsewhere(&event, graph.at(middle)) {
            let known = (0..count).filter(|&known| graph.happens_before(middle, known));
            add_behind_known(graph, middle, known, set);
        }
    }
    // The end of a thread, which comes before a join, is an event of no location.
    for join in graph.joins_of(event.thread) {
        let known = (0..count).filter(|&known| known == join || graph.happens_before(join, known));
        add_behind_known(graph, join, known, set);
    }
    // mo and rb.
    if event.is_access() {
        for &store in &graph.stores(event.object())[place(graph, from)..] {
            set.insert(store);
        }
    }
}

/// The events to which po leads from another location that is `known` behind the event at `middle`.
/// The start of a thread, which comes behind its spawn, is one of no location.
fn add_behind_known(graph: &Graph, middle: u32, known: impl Iterator<Item = u32>, set: &mut Set) {
    for known in known {
        let known = graph.at(known);
        for &later in graph.positions_of(known.thread) {
            let other = graph.at(later);
            if known.is_po_before(other) && is_elsewhere(known, other) {
                set.insert(later);
            }
        }
    }
    for thread in graph.threads() {
        let spawn = graph.spawn_of(thread);
        let is_known = |spawn| spawn == middle || graph.happens_before(middle, spawn);
        if spawn.is_some_and(is_known) {
            for &later in graph.positions_of(thread) {
                set.insert(later);
            }
        }
    }
}
