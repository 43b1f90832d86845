//! A use of memory that is not there, which ends its coroutine.

use std::backtrace::Backtrace;

/// Memory that was used, and is not there or not for that.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Its address, if the system has told it.
    pub(crate) address: Option<usize>,
    /// Whether it was to be executed, by a call of a function that is none.
    pub(crate) was_called: bool,
    /// Who has used it.
    pub(crate) stack: Backtrace,
}

impl Fault {
    /// Whether the memory is there and may only be read, so that it was written to.
    pub(crate) fn is_write_to_constant(&self) -> bool {
        let mapped = |address| may_only_be_read(&std::fs::read_to_string(MAPS).ok()?, address);
        !self.was_called && self.address.and_then(mapped) == Some(true)
    }
}

/// What Linux tells of the memory of the process. Elsewhere there is no such file, and what cannot
/// be written to is told like what is not there.
pub(super) const MAPS: &str = "/proc/self/maps";

/// What may be done to the memory at this address, in the four letters of such a list. `None` if
/// there is none.
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

/// Whether there is memory at this address, according to such a list, that may be read and not be
/// written to.
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
