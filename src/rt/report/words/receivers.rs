//! Which name does the program have for the objects it uses?
//!
//! The name is the expression before the dot at the object's first use; an element of an array has
//! its actual index. A part of a block is named by a pointer to the block, if the execution has
//! such a pointer. So the nodes of a list show the list in the events: `ptr2.next`, whether the
//! program writes `node.next`, `(*tail).next` or `self.next`.

use std::collections::{BTreeMap, BTreeSet};

use super::super::elements;
use super::super::source::{Receiver, Sources};
use super::on_one_line;
use super::pointers::Pointers;
use crate::rt::event::id::{ObjectId, Region, ThreadId};
use crate::rt::event::operation::{ObjectKind, Operation};
use crate::rt::event::verdict::{DataRace, Effect};
use crate::rt::event::{Site, Trace};
use crate::rt::object::machine::Machine;

/// The name of the memory of a data race: the table's name, if a shim is at that address; otherwise
/// the program's name, or the place of the first access.
pub(super) fn raced(
    race: &DataRace,
    trace: &Trace,
    machine: &Machine,
    (objects, pointers): (&BTreeMap<ObjectId, String>, &Pointers),
    sources: &mut Sources,
) -> Option<String> {
    let accesses = [&race.first, &race.second].into_iter();
    let mut its = accesses.clone().filter(|access| access.effect.is_atomic());
    let event = its.find_map(|access| {
        let at = trace.nth_of(access.thread, access.after)?;
        Some(&trace.events()[at as usize])
    });
    let shim = event.map(|event| event.operation.object);
    let shim = shim
        .or(race.memory.shim)
        .and_then(|shim| objects.get(&shim));
    if let Some(name) = shim {
        return Some(name.clone());
    }
    let given = race
        .memory
        .region
        .and_then(|region| machine.names.label_of(region));
    let mut told = accesses.filter(|it| matches!(it.effect, Effect::Read | Effect::Write));
    (given.map(on_one_line)).or_else(|| {
        told.find_map(|access| match race.memory.region {
            Some(region) => written(access.site, region, machine, pointers, sources),
            None => sources.receiver(access.site),
        })
    })
}

/// The program's names for objects at their first uses, for objects that the program has not named
/// otherwise.
pub(super) fn receivers(
    uses: &[(ThreadId, (Operation, Site))],
    machine: &Machine,
    pointers: &Pointers,
    sources: &mut Sources,
) -> BTreeMap<ObjectId, String> {
    let mut first: BTreeMap<ObjectId, Site> = BTreeMap::new();
    for (_, (operation, site)) in uses {
        first.entry(operation.object).or_insert(*site);
    }
    let nameless = first.into_iter().filter(|&(object, _)| {
        let region = machine.names.place(object).region;
        machine.names.label_of(region).is_none()
    });
    let written: Vec<(ObjectId, Receiver, Option<String>)> = nameless
        .filter_map(|(object, site)| {
            let owner = match machine.kind(object) {
                // The whole object has references, not this count.
                Some(ObjectKind::Count { .. }) => None,
                _ => pointers.to_owner_of(machine, machine.names.place(object).region),
            };
            Some((object, sources.written(site)?, owner))
        })
        .collect();
    // A pointer may lead to a part of the object that has this field, such as the node in a queue.
    // Fields need different names only if they belong to several nodes.
    let mut owners: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (_, it, owner) in &written {
        if let (Some(owner), Some(field)) = (owner, &it.field) {
            owners.entry(field).or_default().insert(owner);
        }
    }
    let is_of_several = |field: &str| owners.get(field).is_some_and(|owners| owners.len() > 1);
    let named = written.iter().map(|(object, it, owner)| {
        let part = match (owner, &it.field) {
            (Some(owner), Some(field)) if it.by_pointer || is_of_several(field) => {
                Some(format!("{owner}.{field}"))
            }
            _ => None,
        };
        (*object, part.unwrap_or_else(|| it.name.clone()))
    });
    let mut receivers: BTreeMap<ObjectId, String> = named.collect();
    let uses = uses
        .iter()
        .map(|&(thread, (operation, site))| (thread, operation.object, site));
    elements::tell(&mut receivers, uses, machine, sources);
    receivers
}

/// The program's name for the object it uses here: the field behind a pointer, if the object is in
/// a block that the execution has a pointer to.
pub(super) fn written(
    site: Site,
    region: Region,
    machine: &Machine,
    pointers: &Pointers,
    sources: &mut Sources,
) -> Option<String> {
    let written = sources.written(site)?;
    let owner = pointers.to_owner_of(machine, region);
    Some(match (owner, written.field) {
        (Some(owner), Some(field)) => format!("{owner}.{field}"),
        _ => written.name,
    })
}
