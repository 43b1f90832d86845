//! How does a thread or an object keep its name when the order of independent events changes?
//!
//! The engine compares executions with each other all the time: a label in a sleep set, a branch of
//! a wakeup tree and a recorded schedule all refer to threads and objects of *another* execution.
//! So a name must be a function of the events that happen before the creation of the thread or
//! object, never of events that merely came earlier: a thread is "the n-th child of its creator",
//! an object is a [`Place`]. A global counter would swap the names of two threads that spawn in
//! either order; Nidhugg's repository has a program that shows the resulting false
//! "non-determinism".
//!
//! Names are interned for one exploration, so all code below the shims handles 32-bit indices. An
//! index has no meaning by itself: it depends on the time at which the exploration first met the
//! name. No decision may depend on an index except to keep an order that is already fixed.

use std::cmp::Ordering;
use std::fmt;
use std::hash::BuildHasher;
use std::iter::successors;

use rustc_hash::FxBuildHasher;

use crate::rt::event::mix::STEP;
use crate::rt::pooled::Empty;
use crate::rt::rare::Roomy;

/// The initial room of a list of threads or objects. Most tests have no more threads, and not many
/// more objects. A list that grows from nothing is moved several times, which is a good part of a
/// short exploration.
pub(crate) const FEW: usize = 16;

/// The most blocks with names for their pointers. A reader cannot tell more blocks apart, and not
/// even as many.
const BLOCKS_MAX: usize = 64;

/// The entry of this index in a list by the indices of names. The list is extended if it is too
/// short.
#[inline]
pub(crate) fn entry<T>(list: &mut Vec<Option<T>>, index: usize) -> &mut Option<T> {
    // Each of the two branches has one comparison.
    if index < list.len() {
        return &mut list[index];
    }
    lengthen(list, index + 1, || None);
    &mut list[index]
}

/// Extends a list by the indices of names to this length.
#[cold]
#[inline(never)]
pub(crate) fn lengthen<T>(list: &mut Vec<T>, len: usize, mut new: impl FnMut() -> T) {
    if list.capacity() == 0 {
        list.reserve(len.max(FEW));
    }
    // Mostly the list grows by one item.
    while list.len() < len {
        list.put(new());
    }
}

/// A thread of the explored program, as an index into [`Names`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ThreadId(pub(crate) u32);

impl ThreadId {
    /// The thread that runs the closure itself.
    pub(crate) const MAIN: ThreadId = ThreadId(0);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

/// A shared object, as an index into [`Names`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ObjectId(pub(crate) u32);

impl ObjectId {
    /// The object in the label of an event that accesses no object.
    pub(crate) const NONE: ObjectId = ObjectId(u32::MAX);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == ObjectId::NONE {
            f.write_str("o-")
        } else {
            write!(f, "o{}", self.0)
        }
    }
}

/// The location of an object, in words that are the same in every execution with the same history.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Place {
    pub(crate) region: Region,
    /// The number of times that another object has replaced the one at this place without an event
    /// (a new value written through `&mut`, a new variable in the same stack slot).
    pub(crate) generation: u32,
}

/// The part of memory, or of the runtime, that holds an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Region {
    /// A thread's stack, at a distance in bytes from its top.
    Stack { thread: ThreadId, depth: usize },
    /// A heap block allocated inside the model: the n-th block of this layout that the thread has
    /// allocated since its `events`-th event, at a distance in bytes from the block's start.
    Heap {
        thread: ThreadId,
        events: u32,
        size: usize,
        align: usize,
        nth: u32,
        offset: usize,
    },
    /// A static, or other memory that is older than the model, by its address.
    External { address: usize },
    /// The object that says whether a thread has finished.
    Thread(ThreadId),
    /// A thread's park token.
    Token(ThreadId),
    /// An object of an abstract program, or of a front end of the engine.
    Abstract(u32),
}

impl Region {
    /// The distance in bytes from this place to the other one behind it, if both are in the same
    /// stack, block or static.
    pub(crate) fn distance(self, other: Region) -> Option<usize> {
        match (self, other) {
            (
                Region::Stack { thread, depth },
                Region::Stack {
                    thread: theirs,
                    depth: less,
                },
            ) if thread == theirs => depth.checked_sub(less),
            (Region::Heap { offset, .. }, Region::Heap { offset: behind, .. })
                if self.at(0) == other.at(0) =>
            {
                behind.checked_sub(offset)
            }
            (Region::External { address }, Region::External { address: behind }) => {
                behind.checked_sub(address)
            }
            _ => None,
        }
    }

    /// The same place where its thread has the name that `of` gives; `None` if it gives none.
    pub(crate) fn with_thread(
        mut self,
        of: impl FnOnce(ThreadId) -> Option<ThreadId>,
    ) -> Option<Region> {
        if let Region::Stack { thread, .. }
        | Region::Heap { thread, .. }
        | Region::Thread(thread)
        | Region::Token(thread) = &mut self
        {
            *thread = of(*thread)?;
        }
        Some(self)
    }

    /// The place at this offset in the same block. Places outside blocks stay as they are.
    fn at(mut self, at: usize) -> Region {
        if let Region::Heap { offset, .. } = &mut self {
            *offset = at;
        }
        self
    }
}

/// The addresses of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) start: usize,
    pub(crate) block: Block,
}

/// Which object is at a place? A table with open addressing that holds the numbers of the objects:
/// their places are in a list already, and a map would hold each of them once more.
#[derive(Default, Clone, Debug)]
struct Index {
    /// A power of two of slots, or none. A slot without an object holds [`ObjectId::NONE`].
    slots: Vec<ObjectId>,
    filled: usize,
}

/// The slots of the smallest table.
const SLOTS_MIN: usize = 32;

impl Index {
    /// The object at this place, or the slot for it.
    #[inline]
    fn find(&self, places: &[Place], place: &Place) -> Result<ObjectId, usize> {
        let Some(mask) = self.slots.len().checked_sub(1) else {
            return Err(0);
        };
        let mut slot = Index::hash(place) & mask;
        loop {
            match self.slots[slot] {
                ObjectId::NONE => return Err(slot),
                object if places[object.index()] == *place => return Ok(object),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Puts the newest object into its slot, and makes room for another one.
    fn fill(&mut self, slot: usize, object: ObjectId, places: &[Place]) {
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = object;
        }
        self.filled += 1;
        // At most two thirds of the slots are filled. The first object finds no slots.
        if self.slots.len() * 2 >= self.filled * 3 + 3 {
            return;
        }
        let slots = (self.slots.len() * 2).max(SLOTS_MIN);
        self.slots.clear();
        self.slots.resize(slots, ObjectId::NONE);
        for (place, number) in places.iter().zip(0..) {
            if !matches!(place.region, Region::Thread(_) | Region::Token(_))
                && let Err(slot) = self.find(places, place)
            {
                self.slots[slot] = ObjectId(number);
            }
        }
    }

    fn hash(place: &Place) -> usize {
        FxBuildHasher.hash_one(place) as usize
    }
}

impl Empty for Index {
    fn empty(&mut self) {
        self.slots.empty();
        self.filled = 0;
    }
}

/// The names of one exploration.
#[derive(Default, Clone, Debug)]
pub(crate) struct Names {
    threads: Vec<ThreadName>,
    /// The child of the last look-up.
    latest: usize,
    /// Whether a thread does not come behind all threads with smaller numbers in the order of
    /// births.
    out_of_order: bool,
    places: Vec<Place>,
    /// The objects with names, except those that belong to a thread, by their places.
    objects: Index,
    /// The names that the program gave to places, each with a size in bytes.
    labels: Vec<(Region, usize, String)>,
    /// The blocks that pointers lead to.
    blocks: Vec<Extent>,
    /// The number of calls of [`Names::by_birth`].
    #[cfg(test)]
    pub(crate) compared: std::cell::Cell<usize>,
}

#[derive(Clone, Copy, Debug)]
struct ThreadName {
    /// `None` for the main thread.
    creator: Option<(ThreadId, u32)>,
    /// The last named child, and the creator's previous named child.
    youngest: Option<ThreadId>,
    older: Option<ThreadId>,
    /// The object for the end of the thread and the object for its park token, or
    /// [`ObjectId::NONE`] if they have no names yet.
    objects: [ObjectId; 2],
}

impl ThreadName {
    fn new(creator: Option<(ThreadId, u32)>, older: Option<ThreadId>) -> ThreadName {
        ThreadName {
            creator,
            youngest: None,
            older,
            objects: [ObjectId::NONE; 2],
        }
    }
}

impl Empty for Names {
    /// Afterwards only the main thread has a name.
    fn empty(&mut self) {
        let Names {
            threads,
            latest,
            out_of_order,
            places,
            objects,
            labels,
            blocks,
            #[cfg(test)]
            compared,
        } = self;
        #[cfg(test)]
        compared.set(0);
        threads.empty();
        threads.push(ThreadName::new(None, None));
        (*latest, *out_of_order) = (0, false);
        places.empty();
        objects.empty();
        labels.empty();
        blocks.empty();
    }
}

impl Names {
    /// Names with only the main thread in them.
    pub(crate) fn new() -> Names {
        let mut names = Names::default();
        names.threads.reserve(FEW);
        names.places.reserve(FEW);
        names.threads.push(ThreadName::new(None, None));
        names
    }

    /// Records the name that the program gives to the `size` bytes at `region`.
    pub(crate) fn label(&mut self, region: Region, size: usize, name: &str) {
        let known = |it: &&mut (Region, usize, String)| (it.0, it.1) == (region, size);
        match self.labels.iter_mut().find(known) {
            Some(label) if label.2 == name => {}
            Some(label) => label.2 = name.to_owned(),
            None => self.labels.push((region, size, name.to_owned())),
        }
    }

    /// The name that the program gave to the smallest named part of memory around this place.
    pub(crate) fn label_of(&self, place: Region) -> Option<&str> {
        let inside = self.labels.iter().filter(|(start, size, _)| {
            let distance = start.distance(place);
            distance.is_some_and(|at| at < (*size).max(1))
        });
        let smallest = inside.min_by_key(|(_, size, _)| *size);
        smallest.map(|(_, _, name)| name.as_str())
    }

    /// Notes a block that a pointer leads to.
    pub(crate) fn note_block(&mut self, new: Extent) {
        if self.blocks.contains(&new) {
            return;
        }
        // The new block may reuse the memory of a freed one.
        let ends_before = |one: &Extent, other: &Extent| one.start + one.block.size <= other.start;
        (self.blocks).retain(|known| ends_before(known, &new) || ends_before(&new, known));
        if self.blocks.len() < BLOCKS_MAX {
            self.blocks.push(new);
        }
    }

    /// The address at which this block begins, if the block is known.
    pub(crate) fn start_of(&self, block: Block) -> Option<usize> {
        let known = self.blocks.iter().find(|known| known.block == block);
        known.map(|known| known.start)
    }

    /// The block that this address leads into, if the block is known.
    pub(crate) fn block_around(&self, address: usize) -> Option<Extent> {
        let leads_into = |known: &&Extent| address.wrapping_sub(known.start) < known.block.size;
        self.blocks.iter().find(leads_into).copied()
    }

    /// Begins another execution, in which the first thread is spawned first.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.latest = ThreadId::MAIN.index();
        self.blocks.clear();
    }

    /// The thread that `creator` spawned as its `nth` child, counted from 1.
    #[inline]
    pub(crate) fn child(&mut self, creator: ThreadId, nth: u32) -> ThreadId {
        // Siblings are mostly spawned one after the other, in each execution.
        let younger = self.latest + 1;
        if let Some(name) = self.threads.get(younger)
            && name.creator == Some((creator, nth))
        {
            self.latest = younger;
            return ThreadId(younger as u32);
        }
        self.look_up_child(creator, nth)
    }

    #[inline(never)]
    fn look_up_child(&mut self, creator: ThreadId, nth: u32) -> ThreadId {
        let child = match self.known_child(creator, nth) {
            Some(child) => child,
            None => {
                let child = ThreadId(self.threads.len() as u32);
                let older = self.threads[creator.index()].youngest.replace(child);
                let name = ThreadName::new(Some((creator, nth)), older);
                self.threads.push(name);
                let before = ThreadId(child.0 - 1);
                self.out_of_order |= self.births(before) > self.births(child);
                child
            }
        };
        self.latest = child.index();
        child
    }

    /// The child, if it has a name.
    fn known_child(&self, creator: ThreadId, nth: u32) -> Option<ThreadId> {
        let mut child = self.threads[creator.index()].youngest;
        while let Some(thread) = child {
            let name = &self.threads[thread.index()];
            // Children are named in the order of their births.
            match name.creator {
                Some((_, born)) if born > nth => child = name.older,
                Some((_, born)) if born == nth => return child,
                _ => return None,
            }
        }
        None
    }

    /// The object at `place`.
    pub(crate) fn object(&mut self, place: Place) -> ObjectId {
        match place.region {
            Region::Thread(thread) => return self.thread_object(thread),
            Region::Token(thread) => return self.token_object(thread),
            _ => {}
        }
        let slot = match self.objects.find(&self.places, &place) {
            Ok(object) => return object,
            Err(slot) => slot,
        };
        let next = ObjectId(self.places.len() as u32);
        self.places.put(place);
        self.objects.fill(slot, next, &self.places);
        next
    }

    /// The object for the end of `thread`.
    #[inline]
    pub(crate) fn thread_object(&mut self, thread: ThreadId) -> ObjectId {
        self.of_thread(thread, 0, Region::Thread)
    }

    /// The object for the park token of `thread`.
    #[inline]
    pub(crate) fn token_object(&mut self, thread: ThreadId) -> ObjectId {
        self.of_thread(thread, 1, Region::Token)
    }

    /// [`Names::token_object`], if it has a name.
    #[inline]
    pub(crate) fn known_token(&self, thread: ThreadId) -> Option<ObjectId> {
        let [_, token] = self.threads.get(thread.index())?.objects;
        (token != ObjectId::NONE).then_some(token)
    }

    #[inline]
    fn of_thread(
        &mut self,
        thread: ThreadId,
        which: usize,
        region: fn(ThreadId) -> Region,
    ) -> ObjectId {
        match self.threads[thread.index()].objects[which] {
            ObjectId::NONE => self.name_of_thread(thread, which, region(thread)),
            object => object,
        }
    }

    #[cold]
    fn name_of_thread(&mut self, thread: ThreadId, which: usize, region: Region) -> ObjectId {
        let object = ObjectId(self.places.len() as u32);
        self.places.push(Place {
            region,
            generation: 0,
        });
        self.threads[thread.index()].objects[which] = object;
        object
    }

    /// The place that `object` names.
    pub(crate) fn place(&self, object: ObjectId) -> Place {
        self.places[object.index()]
    }

    /// The number of named objects so far.
    pub(crate) fn object_count(&self) -> usize {
        self.places.len()
    }

    /// The number of named threads so far.
    pub(crate) fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// The creator of `thread`, and the number of `thread` among its children, counted from 1.
    pub(crate) fn creator(&self, thread: ThreadId) -> Option<(ThreadId, u32)> {
        self.threads[thread.index()].creator
    }

    /// A number of `thread` that is the same in every process, in whatever order threads were
    /// spawned: a mix of its path of births.
    pub(crate) fn order(&self, thread: ThreadId) -> u64 {
        let (creator, nth) = match self.creator(thread) {
            None => return 0,
            Some((creator, nth)) => (self.order(creator), nth as u64),
        };
        // The numbers of siblings follow the order of their births; the step spreads the families.
        creator.wrapping_mul(STEP).wrapping_add(nth)
    }

    /// The order of two threads by [`Names::births`].
    pub(crate) fn by_birth(&self, one: ThreadId, other: ThreadId) -> Ordering {
        #[cfg(test)]
        self.compared.set(self.compared.get() + 1);
        match (self.creator(one), self.creator(other)) {
            // Mostly the two are siblings.
            (Some((mother, nth)), Some((theirs, other))) if mother == theirs => nth.cmp(&other),
            _ => self.births(one).cmp(&self.births(other)),
        }
    }

    /// An order of two threads that is the same in every process: that of births.
    #[inline]
    pub(crate) fn compare(&self, one: ThreadId, other: ThreadId) -> Ordering {
        match self.out_of_order {
            false => one.cmp(&other),
            true if one == other => Ordering::Equal,
            true => self.births(one).cmp(&self.births(other)),
        }
    }

    /// All threads in the order of [`Names::compare`].
    pub(crate) fn in_order(&self) -> Vec<ThreadId> {
        let mut threads: Vec<ThreadId> = (0..self.threads.len() as u32).map(ThreadId).collect();
        threads.sort_by(|&one, &other| self.compare(one, other));
        threads
    }

    /// Moves the threads of `new` into `list`, which is in the reverse order of [`Names::births`]
    /// and has room for them.
    pub(crate) fn add_by_birth(&self, list: &mut Vec<ThreadId>, new: &mut Vec<ThreadId>) {
        // Mostly the threads are siblings, in the order of their births.
        new.sort_unstable_by(|&one, &other| self.by_birth(other, one));
        if list.is_empty() {
            std::mem::swap(list, new);
            return;
        }
        for thread in new.drain(..) {
            let is_behind = |&other: &ThreadId| self.by_birth(other, thread).is_gt();
            let at = match list.last() {
                // The thread is a child of the one that was moved last.
                Some(last) if is_behind(last) => list.len(),
                _ => list.partition_point(is_behind),
            };
            list.insert(at, thread);
        }
    }

    /// [`Names::path`] as numbers. In their order each thread comes before its children, and the
    /// children are in the order of their births.
    pub(crate) fn births(&self, thread: ThreadId) -> Vec<u32> {
        let line = successors(self.creator(thread), |&(creator, _)| self.creator(creator));
        let mut births: Vec<u32> = line.map(|(_, nth)| nth).collect();
        births.reverse();
        births
    }

    /// The thread's path of births: `main`, `main.1`, `main.1.2`.
    pub(crate) fn path(&self, thread: ThreadId) -> String {
        match self.creator(thread) {
            None => "main".to_owned(),
            Some((creator, nth)) => format!("{}.{nth}", self.path(creator)),
        }
    }

    /// The thread with this path of births, if it has been named.
    pub(crate) fn find(&self, path: &str) -> Option<ThreadId> {
        let mut parts = path.split('.');
        if parts.next() != Some("main") {
            return None;
        }
        let mut thread = ThreadId::MAIN;
        for part in parts {
            thread = self.known_child(thread, part.parse().ok()?)?;
        }
        Some(thread)
    }
}

/// A heap block, by properties that are the same in each execution with the same history.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Block {
    /// The allocating thread, and the number of its events before the allocation.
    pub(crate) thread: ThreadId,
    pub(crate) events: u32,
    /// In bytes.
    pub(crate) size: usize,
    pub(crate) align: usize,
    /// The number of the block among the blocks of this layout since that event.
    pub(crate) nth: u32,
}

impl Block {
    /// The block that contains this region.
    pub(crate) fn around(region: &Region) -> Option<Block> {
        match *region {
            Region::Heap {
                thread,
                events,
                size,
                align,
                nth,
                ..
            } => Some(Block {
                thread,
                events,
                size,
                align,
                nth,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_name_whoever_spawns_first() {
        let mut one = Names::new();
        let a = one.child(ThreadId::MAIN, 1);
        let b = one.child(ThreadId::MAIN, 2);
        let under_a = one.child(a, 1);
        let under_b = one.child(b, 1);
        assert_eq!(one.path(under_a), "main.1.1");
        assert_eq!(one.path(under_b), "main.2.1");
        assert_eq!(one.child(b, 1), under_b);
        assert_eq!(one.find("main.2.1"), Some(under_b));
        assert_eq!(one.find("main.3"), None);
        assert_eq!(one.find("main.1.2"), None);
        assert_eq!(one.find("rain.1"), None);
    }

    #[test]
    fn a_thread_comes_before_its_children_whoever_spawned_first() {
        let mut names = Names::new();
        let a = names.child(ThreadId::MAIN, 1);
        let b = names.child(ThreadId::MAIN, 2);
        let under_b = names.child(b, 1);
        let c = names.child(ThreadId::MAIN, 3);
        let [under_a, second] = [1, 2].map(|nth| names.child(a, nth));
        let mut all = [c, under_b, second, under_a, b, a, ThreadId::MAIN];
        all.sort_by(|&one, &other| names.by_birth(one, other));
        assert_eq!(all, [ThreadId::MAIN, a, under_a, second, b, under_b, c]);
    }

    #[test]
    fn an_order_of_threads_does_not_depend_on_which_was_met_first() {
        let mut names = Names::new();
        let a = names.child(ThreadId::MAIN, 1);
        let under_a = names.child(a, 1);
        assert_eq!(names.in_order(), [ThreadId::MAIN, a, under_a]);
        let b = names.child(ThreadId::MAIN, 2);
        assert!(!names.out_of_order);
        let second = names.child(a, 2);
        assert!(names.out_of_order);
        let mut other = Names::new();
        let [c, d] = [1, 2].map(|nth| other.child(ThreadId::MAIN, nth));
        let [under_c, last] = [1, 2].map(|nth| other.child(c, nth));
        assert_eq!(names.in_order(), [ThreadId::MAIN, a, under_a, second, b]);
        assert_eq!(other.in_order(), [ThreadId::MAIN, c, under_c, last, d]);
        names.empty();
        assert!(!names.out_of_order);
    }

    /// The threads of a scope are sorted before one of them is joined, and so are the threads that
    /// it has spawned meanwhile.
    #[test]
    fn threads_that_are_added_come_in_the_reverse_order_of_births() {
        let mut names = Names::new();
        let [a, b, c, d] = [1, 2, 3, 4].map(|nth| names.child(ThreadId::MAIN, nth));
        let under_c = names.child(c, 1);
        let [under_a, second] = [1, 2].map(|nth| names.child(a, nth));
        let (mut list, mut new) = (Vec::new(), vec![c, a, under_c, b]);
        names.add_by_birth(&mut list, &mut new);
        assert_eq!((&list[..], &new[..]), (&[under_c, c, b, a][..], &[][..]));
        assert_eq!(list.pop(), Some(a));
        new.extend([d, second, under_a]);
        names.add_by_birth(&mut list, &mut new);
        assert_eq!(list, [d, under_c, c, b, second, under_a]);
        assert_eq!(new, []);
    }
}
