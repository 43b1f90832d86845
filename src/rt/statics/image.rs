//! Which name does a static have in another process?
//!
//! The program is loaded at another address each time, but as one unit: the distance of a static
//! from the beginning of the program is the same in every process of the same build. Memory outside
//! of the program, such as the heap, has no such number.

use crate::rt::engine::checkpoint::Statics;

/// The program's range of memory.
pub(crate) struct Image;

#[cfg(target_os = "linux")]
mod bounds {
    unsafe extern "C" {
        /// The first byte of the program, and the first byte behind it: every linker for Linux
        /// defines these two symbols. They have addresses and no contents.
        static __executable_start: u8;
        static _end: u8;
    }

    /// The address range of the program.
    pub(crate) fn range() -> std::ops::Range<usize> {
        (&raw const __executable_start).addr()..(&raw const _end).addr()
    }
}

#[cfg(not(target_os = "linux"))]
mod bounds {
    /// On this system the address range of the program is not known.
    pub(crate) fn range() -> std::ops::Range<usize> {
        0..0
    }
}

impl Statics for Image {
    fn number(&self, address: usize) -> Option<u64> {
        let range = bounds::range();
        range
            .contains(&address)
            .then(|| (address - range.start) as u64)
    }

    fn address(&self, number: u64) -> Option<usize> {
        let range = bounds::range();
        let address = range.start.checked_add(number.try_into().ok()?)?;
        range.contains(&address).then_some(address)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn statics_have_numbers_and_the_heap_and_the_stack_have_none() {
        static ZERO: AtomicUsize = AtomicUsize::new(0);
        static SET: AtomicUsize = AtomicUsize::new(7);
        for address in [(&raw const ZERO).addr(), (&raw const SET).addr()] {
            let number = Image.number(address).expect("a static");
            assert_eq!(Image.address(number), Some(address));
        }
        let heap = Box::new(AtomicUsize::new(0));
        let stack = AtomicUsize::new(0);
        assert_eq!(Image.number((&raw const *heap).addr()), None);
        assert_eq!(Image.number((&raw const stack).addr()), None);
        assert_eq!(Image.address(u64::MAX), None);
    }
}
