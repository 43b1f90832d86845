//! What is a pointer called?
//!
//! An address says nothing, and is another one each time. So the blocks that the events of an
//! execution speak of are numbered in their order, and a pointer is told by its block, how far
//! behind the first thing there it leads, and what is kept in the bits of the word that are no
//! address. A number that leads to a block is a pointer, too.

use crate::rt::event::id::{Extent, ObjectId, Region};
use crate::rt::event::operation::{ADDRESS_BITS, AtomicType, ObjectKind, OpKind, address_in};
use crate::rt::event::verdict::Block;
use crate::rt::event::{Event, Trace};
use crate::rt::object::machine::Machine;

/// Nothing is allocated below this address, the first page: such a pointer is a number that the
/// program uses as a mark.
const SENTINELS: u64 = 4096;

/// The blocks that an execution speaks of, and pointers that lead into none that is known, in the
/// order of its events.
pub(super) struct Pointers(Vec<Named>);

struct Named {
    /// Where the block begins, or the pointer itself.
    block: u64,
    /// Where the first thing in the block is that is pointed to. Before that may be what its owner
    /// does not know of, such as counts.
    first: u64,
    /// Whether there is another one behind that.
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
                // A tag in the lowest bits is not where anything is.
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

    /// What a pointer to the only thing is called that any of them leads to in the block where this
    /// is, if it is a part of it.
    pub(super) fn to_owner_of(&self, machine: &Machine, part: Region) -> Option<String> {
        let Region::Heap { offset, .. } = part else {
            return None;
        };
        let (name, owner) = self.found(machine, Block::around(&part)?)?;
        let at = owner.block + offset as u64;
        (!owner.has_others && owner.first <= at).then_some(name)
    }

    /// What a pointer into this block is called, wherever in it it leads to.
    pub(super) fn to_block(&self, machine: &Machine, block: Block) -> Option<String> {
        self.found(machine, block).map(|(name, _)| name)
    }

    /// The pointers into this block, and their name.
    fn found(&self, machine: &Machine, block: Block) -> Option<(String, &Named)> {
        self.numbered(machine.names.start_of(block)? as u64)
    }

    /// The pointers into the block that begins there, and their name.
    fn numbered(&self, block: u64) -> Option<(String, &Named)> {
        let number = self.0.iter().position(|known| known.block == block)?;
        Some((format!("ptr{}", number + 1), &self.0[number]))
    }

    /// What a word in an atomic of this type is called, if it is one of them.
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

/// A word that leads somewhere.
struct Pointer {
    /// Where the block begins that it leads into.
    block: u64,
    /// Where it leads to. What else is there has an address that is a multiple of `align`.
    at: u64,
    align: u64,
    /// What is in the bits that are no address.
    tag: u64,
}

/// This word as a pointer, if it is one. What leads into no block that is known, but is a pointer
/// by its type, is told whole.
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
