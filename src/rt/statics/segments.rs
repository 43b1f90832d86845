//! Where in memory are the statics of the program, and a thread's thread-local variables of std?
//!
//! Only Linux answers this.

/// The writable memory of the program, which contains all its statics that change: the start, and
/// the size in bytes of each range.
#[cfg(target_os = "linux")]
pub(crate) fn statics() -> Vec<(usize, usize)> {
    headers::of_program(|base, _, it| {
        let is_written = it.p_type == libc::PT_LOAD && it.p_flags & libc::PF_W != 0;
        is_written.then(|| (base.wrapping_add(it.p_vaddr as usize), it.p_memsz as usize))
    })
}

/// Whether the address is in this thread's copy of the program's thread-local variables.
#[cfg(target_os = "linux")]
pub(crate) fn is_local(address: usize) -> bool {
    let locals = headers::of_program(|_, locals, it| {
        (it.p_type == libc::PT_TLS).then_some((locals, it.p_memsz as usize))
    });
    let mut locals = locals.into_iter().filter(|&(start, _)| start != 0);
    locals.any(|(start, size)| (start..start + size).contains(&address))
}

#[cfg(target_os = "linux")]
mod headers {
    use std::slice;

    #[cfg(target_pointer_width = "32")]
    use libc::Elf32_Phdr as Header;
    #[cfg(target_pointer_width = "64")]
    use libc::Elf64_Phdr as Header;

    /// The selecting function, and the selected ranges: start, and size in bytes.
    type Search = (
        fn(usize, usize, &Header) -> Option<(usize, usize)>,
        Vec<(usize, usize)>,
    );

    /// The results of `pick` for the segments of the program. `pick` gets the start of the program,
    /// the start of this thread's thread-local variables, and the header of the segment.
    pub(crate) fn of_program(
        pick: fn(usize, usize, &Header) -> Option<(usize, usize)>,
    ) -> Vec<(usize, usize)> {
        let mut search: Search = (pick, Vec::new());
        // SAFETY: the called function interprets the pointer as this type, and the variable lives
        // until the call has returned.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut search).cast()) };
        search.1
    }

    /// Picks from the segments of an object, the first of which is the program. Returns 1 to
    /// request no more objects.
    unsafe extern "C" fn note(
        object: *mut libc::dl_phdr_info,
        _: usize,
        search: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the caller passes the pointer from above, and an object with that many headers.
        let ((pick, found), headers, object) = unsafe {
            let object = &*object;
            let headers = slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into());
            (&mut *search.cast::<Search>(), headers, object)
        };
        let (base, locals) = (object.dlpi_addr as usize, object.dlpi_tls_data.addr());
        found.extend(headers.iter().filter_map(|it| pick(base, locals, it)));
        1
    }
}

/// This system does not tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn statics() -> Vec<(usize, usize)> {
    Vec::new()
}

/// This system does not tell, either.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_local(_: usize) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn statics_and_thread_locals_are_told_from_the_heap_and_the_stack() {
        static ZERO: AtomicUsize = AtomicUsize::new(0);
        static SET: AtomicUsize = AtomicUsize::new(7);
        let heap = Box::new(AtomicUsize::new(0));
        let stack = AtomicUsize::new(0);
        let are_written = |address| {
            let mut statics = statics().into_iter();
            statics.any(|(start, size)| (start..start + size).contains(&address))
        };
        assert!(are_written((&raw const ZERO).addr()));
        assert!(are_written((&raw const SET).addr()));
        assert!(!are_written((&raw const *heap).addr()));
        thread_local!(static LOCAL: std::cell::Cell<u8> = const { std::cell::Cell::new(0) });
        let local = LOCAL.with(|it| it.as_ptr().addr());
        assert!(is_local(local));
        assert!(
            !std::thread::spawn(move || is_local(local))
                .join()
                .expect("it looks")
        );
        assert!(!is_local((&raw const ZERO).addr()));
        assert!(!is_local((&raw const *heap).addr()));
        assert!(!is_local((&raw const stack).addr()));
        assert!(!are_written((&raw const stack).addr()));
    }
}
