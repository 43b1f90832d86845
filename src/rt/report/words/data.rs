//! Which words tell what is behind a lock?

use std::collections::BTreeMap;

use super::pointers::Pointers;
use crate::rt::event::Trace;
use crate::rt::event::held::Datum;
use crate::rt::event::id::ThreadId;
use crate::rt::event::operation::AtomicType;
use crate::rt::object::machine::Machine;
use crate::rt::report::places::Callers;
use crate::rt::report::sections::{self, Section};

/// The words for a value. Other data has none.
pub(super) fn value(datum: &Datum, machine: &Machine, pointers: &Pointers) -> Option<String> {
    match datum {
        Datum::Value(text) => Some(text.clone()),
        Datum::Pointer(0) => Some("null".to_owned()),
        Datum::Pointer(bits) => pointers.name(machine, AtomicType::Ptr, *bits),
        Datum::Bytes(_) => None,
    }
}

/// The words for each event that takes or releases a lock, by thread and index.
pub(super) fn words(
    (trace, callers): (&Trace, &Callers),
    machine: &Machine,
    pointers: &Pointers,
) -> BTreeMap<(ThreadId, u32), String> {
    let mut words = BTreeMap::new();
    let value = |datum: &Option<Datum>| value(datum.as_ref()?, machine, pointers);
    for section in sections::of(trace, callers) {
        let key = |at: usize| {
            let event = &trace.events()[at];
            (event.thread, event.index)
        };
        let found = value(&section.found);
        if let Some(found) = &found {
            words.insert(key(section.begin), found.clone());
        }
        let told = match (found, value(&section.left)) {
            (Some(found), Some(left)) if found != left => Some(format!("{found} -> {left}")),
            (_, Some(left)) => Some(left),
            _ => opaque(&section).map(str::to_owned),
        };
        if let (Some(end), Some(told)) = (section.end, told) {
            words.insert(key(end), told);
        }
    }
    words
}

/// The words for data that is no value. A program that had an exclusive reference to the data may
/// have changed what the data leads to, although its bytes are the same; then there are no words.
fn opaque(section: &Section) -> Option<&'static str> {
    let (Some(found), Some(left)) = (&section.found, &section.left) else {
        return None;
    };
    match (found != left, section.changes) {
        (true, _) => Some("changed"),
        (false, false) => Some("unchanged"),
        (false, true) => None,
    }
}
