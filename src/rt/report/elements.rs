//! Which element of an array is an object?
//!
//! The name of an object comes from its first use. For one element of an array that is `flags[me]`
//! and for another one `flags[1 - me]`, written by one thread, and the other way round by the next.
//! So an element is named by its index where the index is known: some place in the program writes
//! it as a number, the array fills its block, or as many elements are in use as the declaration
//! has. Otherwise, if the array has other elements, the element has no index: `flags[_]`. The name
//! that a loop or a closure gives to each element, `flag`, is treated the same way.
//!
//! Threads name one array differently, as clones of an `Arc` have different names. All elements use
//! the name of the element that is used first. Two names are of one array if some object has both,
//! or if both are variables for the content of one block and no thread uses the two: a thread that
//! uses both has two arrays.

use std::collections::{BTreeMap, BTreeSet};

use crate::rt::event::Site;
use crate::rt::event::id::{ObjectId, Region, ThreadId};
use crate::rt::event::operation::ObjectKind;
use crate::rt::object::count::HEADER;
use crate::rt::object::machine::Machine;

use super::source::{Lies, Sources};

/// From this size on, in bytes, the distance of elements may come from padding to cache lines.
const PADDED: usize = 64;

/// An element as the program calls it: `prefix[index]suffix`.
#[derive(Clone, Debug)]
struct Element {
    prefix: String,
    index: String,
    suffix: String,
}

impl Element {
    /// The element that this name denotes, if the name has an index.
    fn of(name: &str) -> Option<Element> {
        let end = name.rfind(']')?;
        let mut depth = 0;
        let is_start = |&(_, c): &(usize, char)| {
            match c {
                ']' => depth += 1,
                '[' => depth -= 1,
                _ => {}
            }
            depth == 0
        };
        let (start, _) = name[..=end].char_indices().rev().find(is_start)?;
        let (prefix, index, suffix) = (&name[..start], &name[start + 1..end], &name[end + 1..]);
        Some(Element {
            prefix: prefix.to_owned(),
            index: index.to_owned(),
            suffix: suffix.to_owned(),
        })
    }

    fn number(&self) -> Option<usize> {
        self.index.parse().ok()
    }

    /// The name of the array without the object that the array is a field of.
    fn array(&self) -> &str {
        let last = self.prefix.rsplit(['.', ':']).next();
        last.unwrap_or_default()
    }

    fn name(&self, index: Option<usize>) -> String {
        let Element { prefix, suffix, .. } = self;
        match index {
            Some(index) => format!("{prefix}[{index}]{suffix}"),
            None => format!("{prefix}[_]{suffix}"),
        }
    }
}

/// The position of an element, or of the part of it that is the object.
struct Member {
    object: ObjectId,
    /// The distance in bytes from the beginning of the memory that contains the array, or from some
    /// address before it.
    at: usize,
    /// Whether the object is the whole element.
    is_all: bool,
    /// The index that some place in the program writes as a number.
    number: Option<usize>,
}

/// The element, and the part of it that is the object, as this place in the program writes them.
fn written(site: Site, sources: &mut Sources) -> Option<Element> {
    let name = sources.receiver(site)?;
    Element::of(&name).or_else(|| {
        let (prefix, suffix) = sources.iterated(site)?;
        Some(Element {
            prefix,
            index: String::new(),
            suffix,
        })
    })
}

/// A use of an object at a place in the program.
struct Use {
    thread: ThreadId,
    site: Site,
    element: Element,
}

/// Improves the names of those of these objects that are elements of arrays. `uses` are all uses in
/// the execution.
pub(super) fn tell(
    names: &mut BTreeMap<ObjectId, String>,
    uses: impl Iterator<Item = (ThreadId, ObjectId, Site)>,
    machine: &Machine,
    sources: &mut Sources,
) {
    let mut told: BTreeMap<ObjectId, Vec<Use>> = BTreeMap::new();
    let mut places: BTreeMap<Place, Option<Element>> = BTreeMap::new();
    let mut known = BTreeSet::new();
    let mut order: Vec<ObjectId> = Vec::new();
    for (thread, object, site) in uses {
        if !names.contains_key(&object) || !known.insert((thread, object, site as Place)) {
            continue;
        }
        let element = places.entry(site).or_insert_with(|| written(site, sources));
        if let Some(element) = element.clone() {
            let uses = told.entry(object).or_insert_with(|| {
                order.push(object);
                Vec::new()
            });
            uses.push(Use {
                thread,
                site,
                element,
            });
        }
    }
    // An object with another name at its first use keeps that name.
    let mut is_named = |object: &ObjectId| {
        let (name, first) = (&names[object], &told[object][0]);
        // The layout of an array of arrays is unknown.
        if first.element.prefix.contains('[') {
            return false;
        }
        Element::of(name).is_some() || sources.receiver(first.site).as_ref() == Some(name)
    };
    // An object outside memory, such as the end of a thread, is in no array.
    let is_somewhere = |object: &ObjectId| {
        let region = machine.names.place(*object).region;
        position(region, region).is_some()
    };
    order.retain(|object| is_somewhere(object) && is_named(object));
    while let Some(&first) = order.first() {
        let region = machine.names.place(first).region;
        let at = |object| position(region, machine.names.place(object).region);
        let near: Vec<ObjectId> = order
            .iter()
            .copied()
            .filter(|&it| at(it).is_some())
            .collect();
        let arrays = names_of(&told, first, &near, matches!(region, Region::Heap { .. }));
        let is_in = |object: &ObjectId| arrays.contains(told[object][0].element.array());
        let in_array: BTreeSet<ObjectId> = near.into_iter().filter(is_in).collect();
        order.retain(|object| !in_array.contains(object));
        let sizes = in_array
            .iter()
            .map(|&object| (&*told[&object][0].element.suffix, size(machine, object)));
        let sizes: BTreeMap<&str, usize> = sizes.collect();
        let lies = in_array.iter().find_map(|object| {
            let use_ = &told[object][0];
            sources.lies(use_.site, use_.element.array())
        });
        for suffix in sizes.keys() {
            let like_this = in_array
                .iter()
                .filter(|object| told[*object][0].element.suffix == *suffix);
            let member = |&object: &ObjectId| {
                Some(Member {
                    object,
                    at: at(object)?,
                    is_all: suffix.is_empty(),
                    number: number(&told[&object]),
                })
            };
            let mut members: Vec<Member> = like_this.filter_map(member).collect();
            members.sort_unstable_by_key(|it| it.at);
            let array = Array {
                members: &members,
                region,
                least: sizes.values().sum(),
                lies,
            };
            let layout = array.layout(machine, |object| in_array.contains(&object));
            let name = Element {
                suffix: (*suffix).to_owned(),
                ..told[&first][0].element.clone()
            };
            for &Member {
                object, at, number, ..
            } in &members
            {
                let index = number.or_else(|| layout.as_ref()?.index(at));
                // For a single element that is found by an index or a loop, the program's own words
                // say more.
                if index.is_some() || members.len() > 1 {
                    names.insert(object, name.name(index));
                }
            }
        }
    }
}

/// The identity of a place in the program.
type Place = *const std::panic::Location<'static>;

/// The names of the array that `first` is an element of, among those of the elements near it.
fn names_of<'a>(
    told: &'a BTreeMap<ObjectId, Vec<Use>>,
    first: ObjectId,
    near: &[ObjectId],
    is_block: bool,
) -> BTreeSet<&'a str> {
    let uses = |object: &ObjectId| told[object].iter();
    let all = || near.iter().flat_map(uses);
    let threads = |name: &str| -> BTreeSet<ThreadId> {
        let its = all().filter(|it| it.element.array() == name);
        its.map(|it| it.thread).collect()
    };
    let is_variable = |name: &str| {
        let mut its = all().filter(|it| it.element.array() == name);
        its.all(|it| it.element.prefix == name)
    };
    let mut names: BTreeSet<&str> = BTreeSet::from([told[&first][0].element.array()]);
    loop {
        let has_one =
            |object: &&ObjectId| uses(object).any(|it| names.contains(it.element.array()));
        let shared = near.iter().filter(has_one).flat_map(uses);
        let mut more: BTreeSet<&str> = shared.map(|it| it.element.array()).collect();
        let others = all().map(|it| it.element.array());
        let mut others =
            others.filter(|name| is_block && !more.contains(name) && is_variable(name));
        let apart = |name: &&str| {
            names.iter().all(|it| is_variable(it)) && {
                let theirs = threads(name);
                names.iter().all(|it| threads(it).is_disjoint(&theirs))
            }
        };
        let other = others.find(apart);
        more.extend(other);
        if more.len() == names.len() {
            return names;
        }
        names.extend(more);
    }
}

/// The index that places in the program write as a number; `None` if two places differ.
fn number(uses: &[Use]) -> Option<usize> {
    let numbers: BTreeSet<usize> = uses.iter().filter_map(|it| it.element.number()).collect();
    numbers.first().copied().filter(|_| numbers.len() == 1)
}

/// The distance of an object from the beginning of its stack, block or static, if that is the same
/// as the first object's.
fn position(first: Region, other: Region) -> Option<usize> {
    first.distance(other).or(other.distance(first))?;
    Some(match other {
        // An object further from the top of the stack has a lower address.
        Region::Stack { depth, .. } => usize::MAX - depth,
        Region::Heap { offset, .. } => offset,
        Region::External { address } => address,
        _ => return None,
    })
}

/// The position of the first element, and the distance from one element to the next.
struct Layout {
    first: usize,
    stride: usize,
}

impl Layout {
    fn index(&self, at: usize) -> Option<usize> {
        let behind = at.checked_sub(self.first)?;
        behind
            .is_multiple_of(self.stride)
            .then_some(behind / self.stride)
    }
}

/// Elements of one array with the same part used, ordered by position.
struct Array<'a> {
    members: &'a [Member],
    /// The region of one of the elements.
    region: Region,
    /// The least size of an element in bytes.
    least: usize,
    /// The memory of the array, according to the program's declaration.
    lies: Option<Lies>,
}

impl Array<'_> {
    /// The layout in memory, if it is known. `is_in` tells whether an object may be another part of
    /// an element.
    fn layout(&self, machine: &Machine, is_in: impl Fn(ObjectId) -> bool) -> Option<Layout> {
        let (lowest, highest) = (self.members.first()?, self.members.last()?);
        let all = (0..machine.names.object_count() as u32).map(ObjectId);
        let others = all.filter(|&object| machine.kind(object).is_some() && !is_in(object));
        let others = others.filter_map(|object| {
            let at = position(self.region, machine.names.place(object).region)?;
            Some((object, at))
        });
        let others: Vec<(ObjectId, usize)> = others.collect();
        // An object in between shows that the elements are in no common array.
        if others
            .iter()
            .any(|(_, at)| (lowest.at..highest.at).contains(at))
        {
            return None;
        }
        let stride = self.stride(machine)?;
        let is_count = |object| matches!(machine.kind(object), Some(ObjectKind::Count { .. }));
        let is_counted = others
            .iter()
            .any(|&(object, at)| at < HEADER && is_count(object));
        let first = match (self.numbered().next(), self.region) {
            (Some((at, number)), _) => at.checked_sub(number.checked_mul(stride)?)?,
            // The first and the last element are in use.
            (None, _) if self.is_spanned(highest.at - lowest.at, stride) => lowest.at,
            (None, Region::Heap { .. }) => match self.of_block() {
                Some((begins, _)) => {
                    let behind = lowest.at.checked_sub(begins)?;
                    begins + behind % stride
                }
                // In any other block, or in the block of an `Arc`, there is no room for an element
                // before this one.
                None => {
                    let begins = if is_counted { HEADER } else { 0 };
                    let gap = lowest.at.checked_sub(begins)?;
                    (gap < stride).then_some(lowest.at)?
                }
            },
            _ => return None,
        };
        let layout = Layout { first, stride };
        let fits = |member: &Member| {
            let index = layout.index(member.at);
            index.is_some() && member.number.is_none_or(|number| index == Some(number))
        };
        self.members.iter().all(fits).then_some(layout)
    }

    /// The elements with an index that some place in the program writes, with the index.
    fn numbered(&self) -> impl Iterator<Item = (usize, usize)> {
        (self.members.iter()).filter_map(|member| Some((member.at, member.number?)))
    }

    /// Whether the array has as many elements as lie in this distance, by its declaration.
    fn is_spanned(&self, distance: usize, stride: usize) -> bool {
        let Some(Lies::Inside(Some(length))) = self.lies else {
            return false;
        };
        (length.checked_sub(1)).and_then(|last| last.checked_mul(stride)) == Some(distance)
    }

    /// The beginning of the array in its block, and its length in bytes, if the block contains
    /// nothing else.
    fn of_block(&self) -> Option<(usize, usize)> {
        let Region::Heap { size, .. } = self.region else {
            return None;
        };
        let begins = match self.lies? {
            Lies::Alone => 0,
            Lies::Counted => HEADER,
            Lies::Inside(_) => return None,
        };
        Some((begins, size.checked_sub(begins)?))
    }

    /// The only distance at which elements fill the block and all known positions are elements.
    fn filling(&self, distances: usize) -> Option<usize> {
        let (_, bytes) = self.of_block()?;
        let align = match self.region {
            Region::Heap { align, .. } if self.lies == Some(Lies::Alone) => align,
            _ => 1,
        };
        let fits = |stride: &usize| {
            *stride >= self.least
                && stride.is_multiple_of(align)
                && bytes.is_multiple_of(*stride)
                && distances.is_multiple_of(*stride)
        };
        let mut strides = (1..=distances.min(bytes)).filter(fits);
        strides.next().filter(|_| strides.next().is_none())
    }

    /// The distance from one element to the next, in bytes.
    fn stride(&self, machine: &Machine) -> Option<usize> {
        let mut numbered = self.numbered();
        if let (Some((one, first)), Some((other, second))) = (numbered.next(), numbered.next()) {
            let numbers = second.checked_sub(first).filter(|&numbers| numbers > 0)?;
            return Some((other - one) / numbers).filter(|&stride| stride > 0);
        }
        let lowest = self.members.first()?;
        let distances = self.members.iter().map(|it| it.at - lowest.at);
        let stride = distances.fold(0, greatest_common_divisor);
        if let Some(stride) = self.filling(stride) {
            return Some(stride);
        }
        let is_padded = stride >= PADDED && stride.is_power_of_two();
        let size = match machine.kind(lowest.object) {
            Some(ObjectKind::Atomic(_)) => size(machine, lowest.object),
            _ => 1,
        };
        if lowest.is_all && !is_padded && size > 1 {
            return Some(size).filter(|&size| stride > 0 && stride.is_multiple_of(size));
        }
        let align = match self.region {
            Region::Heap { align, .. } => align,
            _ => 1,
        };
        // With another element in between there would be no room for the content of one.
        (stride > 0 && stride < 2 * self.least.max(align)).then_some(stride)
    }
}

/// The least size in bytes of a lock of this crate: three pointers to functions, a lock of std, and
/// the flags.
const LOCK_MIN: usize = 3 * size_of::<usize>() + 8;

/// The size of an object in bytes, or a lower bound; at least 1.
fn size(machine: &Machine, object: ObjectId) -> usize {
    match machine.kind(object) {
        Some(ObjectKind::Atomic(ty)) => ty.bits() as usize / 8,
        Some(ObjectKind::Mutex | ObjectKind::RwLock) => LOCK_MIN,
        _ => 1,
    }
}

fn greatest_common_divisor(one: usize, other: usize) -> usize {
    match other {
        0 => one,
        _ => greatest_common_divisor(other, one % other),
    }
}

#[cfg(test)]
mod tests {
    use super::LOCK_MIN;
    use crate::sync::{Mutex, RwLock};

    #[test]
    fn a_lock_is_no_smaller_than_the_least_size() {
        assert!(size_of::<Mutex<()>>() >= LOCK_MIN);
        assert!(size_of::<RwLock<()>>() >= LOCK_MIN);
    }
}
