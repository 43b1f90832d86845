//! Which name has a pointer in a report?
//!
//! An address means little to a reader, and differs from execution to execution. So the blocks in
//! the events of an execution are numbered in their order. The name of a pointer has three parts:
//! its block, its distance behind the first object there, and the value in the bits of the word
//! that are no address. A number that leads to a block is a pointer, too.

use crate::rt::event::id::{Extent, ObjectId, Region};
use crate::rt::event::operation::{ADDRESS_BITS, AtomicType, ObjectKind, OpKind, address_in};
use crate::rt::event::verdict::Block;
use crate::rt::event::{Event, Trace};
use crate::rt::object::machine::Machine;

/// No block is allocated below this address, in the first page: a pointer to this page is a number
/// that the program uses as a mark.
const SENTINELS: u64 = 4096;

/// The blocks in an execution's events, and pointers that lead into no known block, in the order of
/// the events.
pub(super) struct Pointers(Vec<Named>);

struct Named {
    /// Where the block begins, or the pointer itself.
    block: u64,
    /// The first address in the block that a pointer leads to. In front of it there may be data
    /// that the block's owner does not know of, such as counts.
    first: u64,
    /// Whether a pointer leads to another object behind the first.
    has_others: bool,
}

impl Pointers {
    pub(super) fn of(trace: &Trace, machine: &Machine) -> Pointers {
        let mut named: Vec<Named> = Vec::new();
        for event in trace.events() {
            if event.operation.object == ObjectId::NONE {
                continue;
            }
            let ObjectKind::Atomic(ty) = machine.state(event.operation.object).kind() else {
                continue;
            };
            for value in values(event) {
                let Some(Pointer {
                    block, at, align, ..
                }) = pointer(machine, ty, value)
                else {
                    continue;
                };
                // A tag in the lowest bits is not part of the address.
                let first = at & !(align - 1);
                match named.iter_mut().find(|known| known.block == block) {
                    Some(known) => {
                        known.has_others |= known.first != first;
                        known.first = known.first.min(first);
                    }
                    None => named.push(Named {
                        block,
                        first,
                        has_others: false,
                    }),
                }
            }
        }
        Pointers(named)
    }

    /// The name of the pointers into the block of `part`, if all of them lead to one object and
    /// `part` is a part of that object.
    pub(super) fn to_owner_of(&self, machine: &Machine, part: Region) -> Option<String> {
        let Region::Heap { offset, .. } = part else {
            return None;
        };
        let (name, owner) = self.found(machine, Block::around(&part)?)?;
        let at = owner.block + offset as u64;
        (!owner.has_others && owner.first <= at).then_some(name)
    }

    /// The name of the pointers into this block, at any distance.
    pub(super) fn to_block(&self, machine: &Machine, block: Block) -> Option<String> {
        self.found(machine, block).map(|(name, _)| name)
    }

    /// The pointers into this block, and their name.
    fn found(&self, machine: &Machine, block: Block) -> Option<(String, &Named)> {
        self.numbered(machine.names.start_of(block)? as u64)
    }

    /// The pointers into the block that begins at this address, and their name.
    fn numbered(&self, block: u64) -> Option<(String, &Named)> {
        let number = self.0.iter().position(|known| known.block == block)?;
        Some((format!("ptr{}", number + 1), &self.0[number]))
    }

    /// The name of a word in an atomic of this type, if the word is a pointer.
    pub(super) fn name(&self, machine: &Machine, ty: AtomicType, bits: u64) -> Option<String> {
        let Pointer { block, at, tag, .. } = pointer(machine, ty, bits)?;
        let (mut name, known) = self.numbered(block)?;
        let offset = at.saturating_sub(known.first);
        if offset > 0 {
            name.push_str(&format!("+{offset}"));
        }
        if tag > 0 {
            name.push_str(&format!(" | {tag} << {ADDRESS_BITS}"));
        }
        Some(name)
    }
}

/// A word that is a pointer.
struct Pointer {
    /// The beginning of the block that the pointer leads into.
    block: u64,
    /// The address that the pointer leads to. Other objects have addresses that are multiples of
    /// `align`.
    at: u64,
    align: u64,
    /// The value in the bits that are no address.
    tag: u64,
}

/// This word as a pointer, if it is one. A word of a pointer type that leads into no known block
/// keeps all its bits.
fn pointer(machine: &Machine, ty: AtomicType, bits: u64) -> Option<Pointer> {
    let address = address_in(bits);
    match machine.names.block_around(address) {
        Some(Extent { start, block }) if ty.holds_pointers() => Some(Pointer {
            block: start as u64,
            at: address as u64,
            align: block.align as u64,
            tag: bits >> ADDRESS_BITS,
        }),
        _ => (ty == AtomicType::Ptr && bits >= SENTINELS).then_some(Pointer {
            block: bits,
            at: bits,
            align: 1,
            tag: 0,
        }),
    }
}

/// The values that an event on an atomic has found and left.
fn values(event: &Event) -> impl Iterator<Item = u64> {
    let written = match event.operation.kind {
        OpKind::Store { value, .. } => Some(value),
        OpKind::Rmw { operand, .. } => Some(operand),
        OpKind::CompareExchange { new, .. } => Some(new),
        _ => None,
    };
    let found = event.outcome.value();
    event.before.into_iter().chain(found).chain(written)
}
