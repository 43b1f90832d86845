//! What is a static called in another process?
//!
//! The program is loaded at another address each time, but as a whole: the distance of a static from
//! the beginning of the program is the same in every process of the same build. Memory outside of the
//! program, such as the heap, has no such number.
//!
//! And where in memory are its statics?

use crate::rt::explore::checkpoint::Statics;

/// The program as it lies in memory.
pub(crate) struct Image;

#[cfg(target_os = "linux")]
mod bounds {
    unsafe extern "C" {
        /// The first byte of the program, and the first one behind it: every linker for Linux
        /// defines the two. They have addresses and nothing else.
        static __executable_start: u8;
        static _end: u8;
    }

    /// The addresses between which the program lies.
    pub(super) fn range() -> std::ops::Range<usize> {
        (&raw const __executable_start).addr()..(&raw const _end).addr()
    }
}

#[cfg(not(target_os = "linux"))]
mod bounds {
    /// Nothing is known of where the program lies.
    pub(super) fn range() -> std::ops::Range<usize> {
        0..0
    }
}

/// The memory of the program that can be written, which has all its statics that change: from where, and how many bytes.
#[cfg(target_os = "linux")]
pub(super) fn statics() -> Vec<(usize, usize)> {
    /// Notes the segments of an object, the first of which is the program; 1 is to ask for no more of them.
    unsafe extern "C" fn note(
        object: *mut libc::dl_phdr_info,
        _: usize,
        found: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the caller passes what it was given below, and an object with that many headers.
        let (found, headers, base) = unsafe {
            let object = &*object;
            let count = usize::from(object.dlpi_phnum);
            let headers = std::slice::from_raw_parts(object.dlpi_phdr, count);
            let found = &mut *found.cast::<Vec<(usize, usize)>>();
            (found, headers, object.dlpi_addr as usize)
        };
        let is_written = |flags: u32, kind: u32| kind == libc::PT_LOAD && flags & libc::PF_W != 0;
        let written = headers
            .iter()
            .filter(|it| is_written(it.p_flags, it.p_type));
        found.extend(
            written.map(|it| (base.wrapping_add(it.p_vaddr as usize), it.p_memsz as usize)),
        );
        1
    }
    let mut found = Vec::new();
    // SAFETY: the function that is called back takes the vector for what it is, and it is there until it has returned.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut found).cast()) };
    found
}

/// Nobody says so here.
#[cfg(not(target_os = "linux"))]
pub(super) fn statics() -> Vec<(usize, usize)> {
    Vec::new()
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
        let are_written = |address| {
            let mut statics = statics().into_iter();
            statics.any(|(start, size)| (start..start + size).contains(&address))
        };
        assert!(are_written((&raw const ZERO).addr()));
        assert!(are_written((&raw const SET).addr()));
        assert!(!are_written((&raw const *heap).addr()));
        assert!(!are_written((&raw const stack).addr()));
    }
}
