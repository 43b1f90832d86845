//! Which element of an array is it?
//!
//! An object is called what the program calls it where it is used first, and that is `flags[me]` for one element of an array and
//! `flags[1 - me]` for another one, by one thread, and the other way round by the next. So an element has its index for a name
//! where that is known: some place in the program says it as a number, or the array is all that there is in its block, and
//! otherwise none if there are others of the array: `flags[_]`.

use std::collections::{BTreeMap, BTreeSet};

use crate::rt::event::Site;
use crate::rt::event::id::{ObjectId, Region};
use crate::rt::event::operation::ObjectKind;
use crate::rt::object::count::HEADER;
use crate::rt::object::machine::Machine;

use super::source::Sources;

/// From here on elements may be as far from each other as they are because of caches, in bytes.
const PADDED: usize = 64;

/// An element as the program calls it: `prefix[index]suffix`.
#[derive(Clone, Debug)]
struct Element {
    prefix: String,
    index: String,
    suffix: String,
}

impl Element {
    /// The element of an array that has this name, if it has such a one.
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

    /// What the array is called, by whomever.
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

/// Where an element is, or the part of it that is the object.
struct Member {
    object: ObjectId,
    /// From the beginning of the memory that the array lies in, or from somewhere before it, in bytes.
    at: usize,
    /// Whether there is nothing else in the element.
    is_all: bool,
    /// What some place in the program says.
    number: Option<usize>,
}

/// Gives those of these objects that are elements of arrays better names. `uses` are all that the execution speaks of.
pub(super) fn tell(
    names: &mut BTreeMap<ObjectId, String>,
    uses: impl Iterator<Item = (ObjectId, Site)>,
    machine: &Machine,
    sources: &mut Sources,
) {
    let elements = names
        .iter()
        .filter_map(|(&object, name)| Some((object, Element::of(name)?)));
    // Of an array of arrays nothing is known.
    let elements = elements.filter(|(_, element)| !element.prefix.contains('['));
    let elements: BTreeMap<ObjectId, Element> = elements.collect();
    if elements.is_empty() {
        return;
    }
    let numbers = numbers(&elements, uses, sources);
    let mut left: BTreeSet<ObjectId> = elements.keys().copied().collect();
    while let Some(first) = left.pop_first() {
        let (of, region) = (&elements[&first], machine.names.place(first).region);
        let at = |object| position(region, machine.names.place(object).region);
        // The elements and all that is in them.
        let in_array = elements
            .iter()
            .filter(|&(&object, element)| element.array() == of.array() && at(object).is_some());
        let in_array: BTreeMap<ObjectId, &Element> = in_array
            .map(|(&object, element)| (object, element))
            .collect();
        let sizes = in_array
            .iter()
            .map(|(&object, it)| (&*it.suffix, size(machine, object)));
        let sizes: BTreeMap<&str, usize> = sizes.collect();
        let like_this = in_array.iter().filter(|(_, it)| it.suffix == of.suffix);
        let member = |(&object, element): (&ObjectId, &&Element)| {
            Some(Member {
                object,
                at: at(object)?,
                is_all: element.suffix.is_empty(),
                number: numbers.get(&object).copied(),
            })
        };
        let mut members: Vec<Member> = like_this.filter_map(member).collect();
        members.sort_unstable_by_key(|it| it.at);
        left.retain(|object| members.iter().all(|member| member.object != *object));
        let array = Array {
            members: &members,
            region,
            least: sizes.values().sum(),
        };
        let layout = array.layout(machine, |object| in_array.contains_key(&object));
        for &Member {
            object, at, number, ..
        } in &members
        {
            let index = number.or_else(|| layout.as_ref()?.index(at));
            if index.is_some() || members.len() > 1 {
                names.insert(object, elements[&object].name(index));
            }
        }
    }
}

/// What places in the program say as a number. Not if two say different ones.
fn numbers(
    elements: &BTreeMap<ObjectId, Element>,
    uses: impl Iterator<Item = (ObjectId, Site)>,
    sources: &mut Sources,
) -> BTreeMap<ObjectId, usize> {
    let mut said: BTreeMap<ObjectId, Option<usize>> = BTreeMap::new();
    let mut known: BTreeSet<(ObjectId, *const std::panic::Location<'static>)> = BTreeSet::new();
    for (object, site) in uses {
        if !elements.contains_key(&object) || !known.insert((object, site)) {
            continue;
        }
        let number = sources
            .receiver(site)
            .and_then(|name| Element::of(&name)?.number());
        if let Some(number) = number {
            let said = said.entry(object).or_insert(Some(number));
            *said = said.filter(|&other| other == number);
        }
    }
    said.into_iter()
        .filter_map(|(object, number)| Some((object, number?)))
        .collect()
}

/// How far behind the beginning of its stack, block or static an object is, if that is the same as that of the first one.
fn position(first: Region, other: Region) -> Option<usize> {
    first.distance(other).or(other.distance(first))?;
    Some(match other {
        // The further from the top, the lower.
        Region::Stack { depth, .. } => usize::MAX - depth,
        Region::Heap { offset, .. } => offset,
        Region::External { address } => address,
        _ => return None,
    })
}

/// Where the first element is, and how far it is from one to the next.
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

/// Elements of which the same part is used, by where they are.
struct Array<'a> {
    members: &'a [Member],
    /// Where one of them is.
    region: Region,
    /// How many bytes an element has at least.
    least: usize,
}

impl Array<'_> {
    /// How they lie in memory, if that is known. `is_in` says of an object whether it may be another part of an element.
    fn layout(&self, machine: &Machine, is_in: impl Fn(ObjectId) -> bool) -> Option<Layout> {
        let (lowest, highest) = (self.members.first()?, self.members.last()?);
        let all = (0..machine.names.object_count() as u32).map(ObjectId);
        let others = all.filter(|&object| machine.kind(object).is_some() && !is_in(object));
        let others = others.filter_map(|object| {
            let at = position(self.region, machine.names.place(object).region)?;
            Some((object, at))
        });
        let others: Vec<(ObjectId, usize)> = others.collect();
        // Something in between belongs to no array that all of them are in.
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
            // In a block of its own, or that of an `Arc`, there is no room for one before it.
            (None, Region::Heap { .. }) => {
                let begins = if is_counted { HEADER } else { 0 };
                let gap = lowest.at.checked_sub(begins)?;
                (gap < stride).then_some(lowest.at)?
            }
            _ => return None,
        };
        let layout = Layout { first, stride };
        let fits = |member: &Member| {
            let index = layout.index(member.at);
            index.is_some() && member.number.is_none_or(|number| index == Some(number))
        };
        self.members.iter().all(fits).then_some(layout)
    }

    /// Those of which some place in the program says which they are.
    fn numbered(&self) -> impl Iterator<Item = (usize, usize)> {
        (self.members.iter()).filter_map(|member| Some((member.at, member.number?)))
    }

    /// How far it is from one to the next, in bytes.
    fn stride(&self, machine: &Machine) -> Option<usize> {
        let mut numbered = self.numbered();
        if let (Some((one, first)), Some((other, second))) = (numbered.next(), numbered.next()) {
            let numbers = second.checked_sub(first).filter(|&numbers| numbers > 0)?;
            return Some((other - one) / numbers).filter(|&stride| stride > 0);
        }
        let lowest = self.members.first()?;
        let distances = self.members.iter().map(|it| it.at - lowest.at);
        let stride = distances.fold(0, greatest_common_divisor);
        let is_padded = stride >= PADDED && stride.is_power_of_two();
        let size = size(machine, lowest.object);
        if lowest.is_all && !is_padded && size > 1 {
            return Some(size).filter(|&size| stride > 0 && stride.is_multiple_of(size));
        }
        let align = match self.region {
            Region::Heap { align, .. } => align,
            _ => 1,
        };
        // With one in between there would be no room for all that is in one.
        (stride > 0 && stride < 2 * self.least.max(align)).then_some(stride)
    }
}

/// The size of an object in bytes, which is 1 at least.
fn size(machine: &Machine, object: ObjectId) -> usize {
    match machine.kind(object) {
        Some(ObjectKind::Atomic(ty)) => ty.bits() as usize / 8,
        _ => 1,
    }
}

fn greatest_common_divisor(one: usize, other: usize) -> usize {
    match other {
        0 => one,
        _ => greatest_common_divisor(other, one % other),
    }
}
