//! How are values of atomics represented, and how does a read-modify-write compute the new one?
//!
//! The bits of a value are interpreted by its type. Values of all types are passed as 64 bits,
//! zero-extended.

/// In an atomic of type `Task`: the task has ended, though its thread may not have.
pub(crate) const TASK_DONE: u64 = 1;
/// In an atomic of type `Task`: a thread waits to be woken then.
pub(crate) const TASK_AWAITED: u64 = 2;

/// No block begins below this address.
pub(crate) const ADDRESS_MIN: u64 = 1 << 16;

/// The number of bits of an address in a word. A program may use the bits above for data of its
/// own.
pub(crate) const ADDRESS_BITS: u32 = 48;

/// The address in a word that holds a pointer. A tag in the lowest bits leads into the same block.
pub(crate) const fn address_in(word: u64) -> usize {
    (word & ((1 << ADDRESS_BITS) - 1)) as usize
}

/// The type of an atomic: its width and the interpretation of its bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum AtomicType {
    Bool,
    /// Whether a lock is poisoned, like `Bool`.
    Poison,
    /// Whether a task is done and whether it is awaited ([`TASK_DONE`], [`TASK_AWAITED`]), like
    /// `Usize`.
    Task,
    Ptr,
    I8,
    I16,
    I32,
    I64,
    Isize,
    U8,
    U16,
    U32,
    U64,
    Usize,
}

impl AtomicType {
    /// The width in bits.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            AtomicType::Bool | AtomicType::Poison | AtomicType::I8 | AtomicType::U8 => 8,
            AtomicType::I16 | AtomicType::U16 => 16,
            AtomicType::I32 | AtomicType::U32 => 32,
            AtomicType::I64 | AtomicType::U64 => 64,
            AtomicType::Task | AtomicType::Ptr | AtomicType::Isize | AtomicType::Usize => {
                usize::BITS
            }
        }
    }

    /// Whether one thread may use memory as an atomic of this type while another thread uses it as
    /// one of the other type, as after a cast of a pointer. The atomics that only `dpor` makes keep
    /// their type.
    pub(crate) fn may_be_seen_as(self, other: AtomicType) -> bool {
        self.bits() == other.bits() && self.is_weak() && other.is_weak()
    }

    /// Whether the type is one of std's, so that operations on it are as weak as their orderings.
    /// The atomics that only `dpor` makes stand for parts of other objects.
    pub(crate) const fn is_weak(self) -> bool {
        !matches!(self, AtomicType::Poison | AtomicType::Task)
    }

    /// Whether programs keep pointers in atomics of this type, as such or as a number with room for
    /// a tag.
    pub(crate) const fn holds_pointers(self) -> bool {
        matches!(self, AtomicType::Ptr | AtomicType::Usize | AtomicType::U64)
    }

    /// Whether comparisons treat the top bit as a sign.
    pub(crate) const fn signed(self) -> bool {
        match self {
            AtomicType::I8
            | AtomicType::I16
            | AtomicType::I32
            | AtomicType::I64
            | AtomicType::Isize => true,
            AtomicType::Bool
            | AtomicType::Poison
            | AtomicType::Task
            | AtomicType::Ptr
            | AtomicType::U8
            | AtomicType::U16
            | AtomicType::U32
            | AtomicType::U64
            | AtomicType::Usize => false,
        }
    }

    /// Cuts `value` to the width of the type.
    pub(crate) const fn truncate(self, value: u64) -> u64 {
        match self.bits() {
            64 => value,
            bits => value & ((1 << bits) - 1),
        }
    }

    /// `value` as a number with its sign.
    pub(crate) const fn widen(self, value: u64) -> i128 {
        if self.signed() {
            self.with_sign(value) as i128
        } else {
            value as i128
        }
    }

    /// `value` as a number with its top bit as the sign.
    const fn with_sign(self, value: u64) -> i64 {
        let unused = 64 - self.bits();
        (value << unused) as i64 >> unused
    }

    /// The name of the type in `std::sync::atomic`, if it is one.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            AtomicType::Bool => "AtomicBool",
            AtomicType::Poison => "Poison",
            AtomicType::Task => "Task",
            AtomicType::Ptr => "AtomicPtr",
            AtomicType::I8 => "AtomicI8",
            AtomicType::I16 => "AtomicI16",
            AtomicType::I32 => "AtomicI32",
            AtomicType::I64 => "AtomicI64",
            AtomicType::Isize => "AtomicIsize",
            AtomicType::U8 => "AtomicU8",
            AtomicType::U16 => "AtomicU16",
            AtomicType::U32 => "AtomicU32",
            AtomicType::U64 => "AtomicU64",
            AtomicType::Usize => "AtomicUsize",
        }
    }
}

/// The function by which a read-modify-write computes the new value from the old one and its
/// operand. Where that depends on the type of the atomic, there is a variant for each type, because
/// another thread may use the same memory as an atomic of another type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "checkpoint", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Rmw {
    Swap,
    Add,
    Sub,
    And,
    Nand,
    /// `AtomicBool::fetch_nand` must leave 0 or 1, so it inverts only the lowest bit.
    NandBool,
    Or,
    Xor,
    Max,
    /// The maximum of signed values.
    MaxSigned,
    Min,
    MinSigned,
}

impl Rmw {
    /// The effect of the method with this name on an atomic of type `ty`.
    #[inline]
    pub(crate) const fn on(self, ty: AtomicType) -> Rmw {
        match self {
            Rmw::Nand if matches!(ty, AtomicType::Bool) => Rmw::NandBool,
            Rmw::Max if ty.signed() => Rmw::MaxSigned,
            Rmw::Min if ty.signed() => Rmw::MinSigned,
            as_it_is => as_it_is,
        }
    }

    /// The new value, cut to the width of `ty`.
    #[inline]
    pub(crate) fn apply(self, ty: AtomicType, old: u64, operand: u64) -> u64 {
        let wider = |first: bool| if first { old } else { operand };
        let number = |bits: u64| ty.with_sign(bits);
        ty.truncate(match self {
            Rmw::Swap => operand,
            Rmw::Add => old.wrapping_add(operand),
            Rmw::Sub => old.wrapping_sub(operand),
            Rmw::And => old & operand,
            Rmw::NandBool => (old & operand) ^ 1,
            Rmw::Nand => !(old & operand),
            Rmw::Or => old | operand,
            Rmw::Xor => old ^ operand,
            Rmw::Max => wider(old >= operand),
            Rmw::MaxSigned => wider(number(old) >= number(operand)),
            Rmw::Min => wider(old <= operand),
            Rmw::MinSigned => wider(number(old) <= number(operand)),
        })
    }

    /// The number of the functions that commute with each other whatever their operands are: with
    /// either order of two of them, the value is the same. 0 if the function does not commute with
    /// itself.
    pub(crate) const fn family(self) -> u16 {
        match self {
            Rmw::Swap | Rmw::Nand | Rmw::NandBool => 0,
            Rmw::Add | Rmw::Sub => 2,
            Rmw::And => 3,
            Rmw::Or => 4,
            Rmw::Xor => 5,
            Rmw::Max => 6,
            Rmw::MaxSigned => 7,
            Rmw::Min => 8,
            Rmw::MinSigned => 9,
        }
    }

    /// The word that follows `fetch_` in the method's name; `swap` for a swap.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Rmw::Swap => "swap",
            Rmw::Add => "add",
            Rmw::Sub => "sub",
            Rmw::And => "and",
            Rmw::Nand | Rmw::NandBool => "nand",
            Rmw::Or => "or",
            Rmw::Xor => "xor",
            Rmw::Max | Rmw::MaxSigned => "max",
            Rmw::Min | Rmw::MinSigned => "min",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_one_family_commute_and_those_of_two_do_not() {
        let all = [
            Rmw::Swap,
            Rmw::Add,
            Rmw::Sub,
            Rmw::And,
            Rmw::Nand,
            Rmw::NandBool,
            Rmw::Or,
            Rmw::Xor,
            Rmw::Max,
            Rmw::MaxSigned,
            Rmw::Min,
            Rmw::MinSigned,
        ];
        let byte = AtomicType::U8;
        let values = [0, 1, 2, 3, 0x7f, 0x80, 0xff];
        for one in all {
            for other in all {
                let commute = values.iter().all(|&old| {
                    values.iter().all(|&a| {
                        values.iter().all(|&b| {
                            let first = other.apply(byte, one.apply(byte, old, a), b);
                            let second = one.apply(byte, other.apply(byte, old, b), a);
                            first == second
                        })
                    })
                });
                let told = one.family() == other.family() && one.family() != 0;
                // `max` and `min` of two kinds of numbers may agree on these.
                assert!(commute || !told, "{one:?} and {other:?}");
                if !matches!((one, other), (Rmw::NandBool, _) | (_, Rmw::NandBool)) {
                    assert_eq!(commute, told, "{one:?} and {other:?}");
                }
            }
        }
    }

    #[test]
    fn read_modify_writes_keep_to_the_width_and_the_sign() {
        let byte = AtomicType::I8;
        assert_eq!(Rmw::Add.apply(byte, 0x7f, 1), 0x80);
        assert_eq!(Rmw::Max.on(byte).apply(byte, 0x80, 0x01), 0x01);
        assert_eq!(Rmw::Min.on(byte).apply(byte, 0x80, 0x01), 0x80);
        let unsigned = AtomicType::U8;
        assert_eq!(Rmw::Max.on(unsigned).apply(unsigned, 0x80, 0x01), 0x80);
        assert_eq!(Rmw::Min.on(unsigned).apply(unsigned, 0x80, 0x01), 0x01);
        assert_eq!(Rmw::Sub.apply(AtomicType::U64, 0, 1), u64::MAX);
        let flip = Rmw::Nand.on(AtomicType::Bool);
        assert_eq!(flip.apply(AtomicType::Bool, 1, 1), 0);
        assert_eq!(flip.apply(AtomicType::Bool, 1, 0), 1);
        assert_eq!(Rmw::Nand.on(unsigned).apply(unsigned, 1, 1), 0xfe);
        assert_eq!(byte.widen(0xff), -1);
    }
}
