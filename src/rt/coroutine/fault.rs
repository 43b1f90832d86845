//! An access to memory that is not mapped, which ends its coroutine.

use std::backtrace::Backtrace;

/// An access to memory that is not mapped, or not for this access.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The address, if the system has reported it.
    pub(crate) address: Option<usize>,
    /// Whether the access was a call of an address that is no function.
    pub(crate) was_called: bool,
    /// The stack of the thread that made the access.
    pub(crate) stack: Backtrace,
}

impl Fault {
    /// Whether the memory is mapped and read-only, so that the access was a write.
    pub(crate) fn is_write_to_constant(&self) -> bool {
        let mapped = |address| may_only_be_read(&std::fs::read_to_string(MAPS).ok()?, address);
        !self.was_called && self.address.and_then(mapped) == Some(true)
    }
}

/// The list of the mappings of the process on Linux. Other systems have no such file, and there
/// read-only memory is reported like unmapped memory.
pub(super) const MAPS: &str = "/proc/self/maps";

/// The access rights of the memory at this address, as the four letters in such a list. `None` if
/// no memory is mapped there.
pub(super) fn access_at(maps: &str, address: usize) -> Option<&str> {
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        (number(start)?..number(end)?)
            .contains(&address)
            .then(|| rest.get(..4))?
    })
}

/// Whether the memory at this address is mapped, can be read and cannot be written, according to
/// such a list.
fn may_only_be_read(maps: &str, address: usize) -> Option<bool> {
    Some(access_at(maps, address)?.starts_with("r-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_and_not_writable_may_only_be_read() {
        let maps = "\
00400000-00401000 r--p 00000000 fd:01 42   /bin/a program
00401000-00402000 r-xp 00001000 fd:01 42   /bin/a program
00500000-00501000 rw-p 00000000 00:00 0
7f000000-7f001000 ---p 00000000 00:00 0
";
        for (address, expected) in [
            (0x40_0000, Some(true)),
            (0x40_1fff, Some(true)),
            (0x40_2000, None),
            (0x50_0010, Some(false)),
            (0x7f00_0000, Some(false)),
            (0, None),
        ] {
            assert_eq!(may_only_be_read(maps, address), expected, "{address:#x}");
        }
        assert_eq!(may_only_be_read("what is this\n- r--p\n", 0), None);
    }
}
