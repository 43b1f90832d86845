//! What may a block that is one step read and write?
//!
//! The objects are declared before the block runs, so the label of a block is the same in every
//! state, and a block is always enabled. A block that declares nothing may touch every object,
//! known or not.

use crate::rt::event::class::Class;
use crate::rt::event::id::ObjectId;

/// The objects that a block may touch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Footprint {
    Everything,
    /// These objects, and for each of them whether the block may change it. The objects are in the
    /// order of their numbers.
    Of(Box<[ObjectId]>, Box<[bool]>),
}

impl Footprint {
    /// The footprint of these objects, each with the answer whether the block may change it. An
    /// object may be given several times.
    pub(crate) fn of(mut all: Vec<(ObjectId, bool)>) -> Footprint {
        all.sort_unstable_by_key(|&(object, writes)| (object, !writes));
        all.dedup_by_key(|&mut (object, _)| object);
        let (objects, writes): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        Footprint::Of(objects.into(), writes.into())
    }

    /// The declared objects; `None` if these are all.
    pub(crate) fn objects(&self) -> Option<&[ObjectId]> {
        match self {
            Footprint::Everything => None,
            Footprint::Of(objects, _) => Some(objects),
        }
    }

    /// Whether the block may change this object; `None` if the block may not touch it.
    pub(crate) fn writes(&self, object: ObjectId) -> Option<bool> {
        match self {
            Footprint::Everything => Some(true),
            Footprint::Of(objects, writes) => {
                let at = objects.binary_search(&object).ok()?;
                Some(writes[at])
            }
        }
    }

    /// Whether an access of this class to this object keeps to the footprint.
    pub(crate) fn permits(&self, object: ObjectId, class: Class) -> bool {
        let writes = self.writes(object);
        writes.is_some_and(|writes| writes || is_pure_read(class))
    }

    /// Whether two blocks may not be swapped.
    pub(super) fn meets(&self, other: &Footprint) -> bool {
        let (Footprint::Of(objects, writes), Footprint::Of(..)) = (self, other) else {
            return true;
        };
        let mut own = objects.iter().zip(writes);
        own.any(|(&object, &writes)| other.writes(object).is_some_and(|also| writes || also))
    }
}

/// Whether a block may depend on an event of this class. The objects of all other classes wait,
/// wake threads, or count references, and no block uses them.
pub(crate) const fn meets_block(class: Class) -> bool {
    matches!(
        class,
        Class::Read
            | Class::Write
            | Class::Update
            | Class::Acquire
            | Class::Release
            | Class::AcquireFailed
            | Class::ReadAcquire
            | Class::ReadRelease
            | Class::WriteFailed
            | Class::TouchAll
            | Class::ReadAll
            | Class::WeakRead
            | Class::WeakWrite
            | Class::KeyRead
            | Class::KeyWrite
            | Class::KeyShape
            | Class::ReadKeys
            | Class::Declared
            | Class::Wait
            | Class::Block
    )
}

/// Whether an access of this class changes nothing, and conflicts only with accesses that may
/// change a value. Of an object that a block only reads, it makes such accesses alone.
pub(crate) const fn is_pure_read(class: Class) -> bool {
    matches!(
        class,
        Class::Read
            | Class::AcquireFailed
            | Class::WriteFailed
            | Class::ReadAll
            | Class::WeakRead
            | Class::KeyRead
            | Class::ReadKeys
    )
}
