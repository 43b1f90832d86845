//! What does the program call what it uses?
//!
//! What it writes before the dot where it is used first, with the index that an element of an array
//! has in fact. A part of a block that the execution has a pointer to is called by that pointer, so
//! that a list is seen in the events on its nodes: `ptr2.next`, whoever reaches it as `node.next`,
//! `(*tail).next` or `self.next`.

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

/// What the memory of a data race is called: what the table calls it, if a shim is there; otherwise
/// by the program, or where it was accessed first.
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

/// What the program calls the objects where they are used first, if it has not named them
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
                // It is the whole that has them.
                Some(ObjectKind::Count { .. }) => None,
                _ => pointers.to_owner_of(machine, machine.names.place(object).region),
            };
            Some((object, sources.written(site)?, owner))
        })
        .collect();
    // A pointer may lead to a part of what has this field, such as the node in a queue. Only those
    // of several nodes have to be told from each other.
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

/// What the program calls what it uses here: the field of what a pointer leads to, if it is in a
/// block that the execution has a pointer to.
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
