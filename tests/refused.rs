//! Is it told that blocks cannot be locked any more, so that uses of freed memory may go unseen?
//!
//! The system allows a process some 65,000 mappings, and models leave hardly any behind (`mappings.rs`). So here the system call is
//! this program's own, which refuses: a function of this name in the program is found before the one of the C library.
// The feature has other signatures.
#![cfg(not(feature = "loom"))]
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

#[path = "support/children.rs"]
mod children;

use std::cell::Cell;
use std::ffi::{c_int, c_long, c_void};

use dpor::{Builder, thread};

use children::process_of;

thread_local! {
    /// Whether it refuses this OS thread. Another one may just begin, and needs a page that is locked at the end of its stack.
    static REFUSES: Cell<bool> = const { Cell::new(false) };
}

/// What memory is locked with.
///
/// # Safety
///
/// As for `mprotect` of the C library.
#[unsafe(no_mangle)]
unsafe extern "C" fn mprotect(start: *mut c_void, size: usize, access: c_int) -> c_int {
    if access == libc::PROT_NONE && REFUSES.get() {
        return -1;
    }
    // SAFETY: the caller's contract.
    let result: c_long = unsafe { libc::syscall(libc::SYS_mprotect, start, size, access) };
    result as c_int
}

struct Shared(*mut u32);

// SAFETY: none, which is what is to be found.
unsafe impl Send for Shared {}

impl Shared {
    fn free(self) {
        // SAFETY: nobody else frees it.
        drop(unsafe { Box::from_raw(self.0) });
    }

    fn read(&self) -> u32 {
        // SAFETY: none.
        unsafe { self.0.read_volatile() }
    }
}

fn reads_what_is_freed() {
    let block = Box::into_raw(Box::new(7));
    let theirs = Shared(block);
    let other = thread::spawn(move || theirs.free());
    let read = Shared(block).read();
    other.join().unwrap();
    assert!(read != 8);
}

#[test]
fn who_cannot_lock_says_so_once() {
    const CHILD: &str = "DPOR_TEST_REFUSES";
    let name = "who_cannot_lock_says_so_once";
    if std::env::var_os(CHILD).is_some() {
        // Stacks have a locked page, too, so there have to be some.
        Builder::new().check(|| {
            let threads = [(); 3].map(|()| thread::spawn(|| ()));
            for thread in threads {
                thread.join().unwrap();
            }
        });
        REFUSES.set(true);
        for _ in 0..2 {
            Builder::new().check(reads_what_is_freed);
        }
        return;
    }
    assert!(Builder::new().explore(reads_what_is_freed).is_err());
    let output = process_of(name).env(CHILD, "1").output();
    let output = output.expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert_eq!(told.matches("locks no more memory").count(), 1, "{told}");
}
