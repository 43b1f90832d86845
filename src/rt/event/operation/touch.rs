//! In which ways can an operation touch an object with contents that the engine does not know?
//!
//! The caller says what the operation reads and writes: the whole object, all of its keys, one key,
//! or a kind of access from a table of the caller. Two touches of one object commute unless one of
//! them may change what the other one reads or writes (`rt/relation/independence.rs`).

use crate::rt::event::class::Class;

/// The number of kinds of access that a table may have.
pub(crate) const KINDS_MAX: usize = 16;

/// The number of bits of a key in a label.
const KEY_BITS: u32 = 24;

/// A key of an object, cut to as many bits as a label has room for. Two keys that are cut to the
/// same number count as one, so that operations on them are dependent rather than independent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Key(u32);

impl Key {
    /// A small number stays as it is, so that it is different from every other small number.
    pub(crate) const fn of(number: u64) -> Key {
        if number >> KEY_BITS == 0 {
            return Key(number as u32);
        }
        Key((number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - KEY_BITS)) as u32)
    }

    pub(crate) const fn number(self) -> u32 {
        self.0
    }
}

/// The way in which an operation touches its object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Touch {
    /// May change anything.
    All,
    /// Reads the whole object.
    ReadAll,
    /// Reads what only [`Touch::All`] changes: that the container is still the same one.
    WeakRead,
    /// Changes one part, and no other weak write changes the same part.
    WeakWrite,
    /// Reads the value of this key, or that it has none.
    KeyRead(Key),
    /// Changes the value of this key, which had one before and has one afterwards.
    KeyWrite(Key),
    /// Inserts or removes this key.
    KeyShape(Key),
    /// Reads which keys there are, and no value.
    ReadKeys,
    /// The access with this number in the table of the object. `against` has a bit for each number
    /// of an access that may not be swapped with it.
    Declared { number: u8, against: u16 },
}

impl Touch {
    pub(crate) const fn class(self) -> Class {
        match self {
            Touch::All => Class::TouchAll,
            Touch::ReadAll => Class::ReadAll,
            Touch::WeakRead => Class::WeakRead,
            Touch::WeakWrite => Class::WeakWrite,
            Touch::KeyRead(_) => Class::KeyRead,
            Touch::KeyWrite(_) => Class::KeyWrite,
            Touch::KeyShape(_) => Class::KeyShape,
            Touch::ReadKeys => Class::ReadKeys,
            Touch::Declared { .. } => Class::Declared,
        }
    }

    /// The room and the count in the label of the operation: the two parts of a key, or the number
    /// of a declared access and the accesses it may not be swapped with.
    pub(crate) const fn numbers(self) -> (u8, u16) {
        match self {
            Touch::All | Touch::ReadAll | Touch::WeakRead | Touch::WeakWrite | Touch::ReadKeys => {
                (0, 0)
            }
            Touch::KeyRead(key) | Touch::KeyWrite(key) | Touch::KeyShape(key) => {
                ((key.number() >> 16) as u8, key.number() as u16)
            }
            Touch::Declared { number, against } => (number, against),
        }
    }

    /// Whether the operation changes nothing. A declared access may change anything.
    pub(crate) const fn only_reads(self) -> bool {
        matches!(
            self,
            Touch::ReadAll | Touch::WeakRead | Touch::KeyRead(_) | Touch::ReadKeys
        )
    }

    /// The word of data for machines.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Touch::All => "write_all",
            Touch::ReadAll => "read_all",
            Touch::WeakRead => "weak_read",
            Touch::WeakWrite => "weak_write",
            Touch::KeyRead(_) => "key_read",
            Touch::KeyWrite(_) => "key_write",
            Touch::KeyShape(_) => "key_change",
            Touch::ReadKeys => "keys_read",
            Touch::Declared { .. } => "access",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_keys_differ_and_a_label_has_room_for_all() {
        assert_ne!(Key::of(1), Key::of(2));
        assert_ne!(Key::of(0xff_ffff), Key::of(0xffff));
        assert!(Key::of(u64::MAX).number() >> KEY_BITS == 0);
        assert_eq!(Touch::KeyRead(Key::of(0x01_0002)).numbers(), (1, 2));
    }
}
