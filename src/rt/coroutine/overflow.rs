//! What happens if a stack is too small?
//!
//! Below each stack lies a guard page. When a body runs into the guard page, `generator`'s handler
//! of `SIGSEGV` (of `SIGBUS` too, and a vectored exception handler on Windows) prints one line to
//! stderr, leaves the signal handler by switching to the resumer's stack, and `resume` returns
//! [`Resumed::Overflowed`](crate::rt::coroutine::Resumed::Overflowed). The frames of the body stay
//! unchanged: nothing on them is dropped, locks that they held stay locked, and the stack is
//! leaked. This works in the process itself, also under `cargo test`, if the handler has a stack to
//! run on and recognises the address:
//!
//! - The handler runs on the alternative signal stack of the OS thread. Rust's std makes such a
//!   stack for the main thread and for each thread it spawns. On a thread that a foreign runtime
//!   made without one, an overflow kills the process with `SIGSEGV`.
//! - The handler compares the address with the outermost generator that runs on the OS thread. An
//!   overflow in a model inside a model therefore kills the process.
//! - The handler allocates, in 0.8.11 the text it prints. So the stack must not overflow inside of
//!   `malloc` with its lock held: the handler would wait for that lock forever. A recursion that
//!   allocates, or a long list that frees itself, can cause this. [`leave_room_on_coroutine`] makes
//!   such a stack overflow one step earlier. The tracking allocator calls it; a program without
//!   that allocator may hang.
//!
//! The handler of this crate ([`faults`](crate::rt::exec::faults)) runs before that handler. It
//! handles other invalid accesses, leaves overflows of an OS thread's own stack to std's handler,
//! and gives each OS thread a larger alternative stack for all handlers.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use crate::rt::rare::rarely;

use crate::rt::coroutine::{CURRENT, Stretch};

/// The stack that the runtime may need below a shim, in bytes.
pub(crate) const ROOM: usize = 16 * 1024;

/// Whether an access to this address means that the coroutine that runs on this OS thread has
/// reached the end of its stack.
#[cfg(unix)]
pub(crate) fn is_overflow(address: Option<usize>) -> bool {
    let current = CURRENT.get();
    let Some(address) = address.filter(|_| !current.is_null()) else {
        return false;
    };
    // SAFETY: as in `suspend` of the module above.
    let bottom = unsafe { &*current }.bottom.get();
    (bottom.saturating_sub(ROUNDING)..bottom).contains(&address)
}

/// Opens the guard page of an abandoned stack with this lowest address.
///
/// A guard page is a mapping of its own, and separates the stack from the mapping below. So each
/// leaked stack costs two of the mappings that the system has for a process, which are 65,530 on
/// Linux. A reported failure may have leaked eleven stacks. No code reaches the end of this stack
/// any more, and without the guard page its memory is part of the same mapping as the memory of the
/// next stack, which the system usually places there.
#[cfg(target_os = "linux")]
#[cold]
pub(super) fn open_guard(bottom: usize) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let page = crate::rt::process::page::page();
    let guard = std::ptr::without_provenance_mut(bottom - page);
    // SAFETY: `generator` maps the page together with the stack, locks it, and unmaps it with the
    // stack when the generator is dropped, which this generator never is. So the page is still
    // mapped, no other code has it, and no code relies on a fault there, because no code runs on
    // the stack any more.
    unsafe { libc::mprotect(guard, page, access) };
}

/// Other systems have no such limit on mappings.
#[cfg(not(target_os = "linux"))]
pub(super) fn open_guard(_: usize) {}

/// The largest stack in bytes that can be requested, with its guard page. More than a GiB is a
/// mistake, and may exceed the address space; the system may have a lower limit of its own.
pub(crate) fn largest_stack() -> usize {
    const MOST: usize = 1 << 30;
    // `generator` queries the system only once, too, and each exploration calls this function.
    static OF_SYSTEM: OnceLock<usize> = OnceLock::new();
    MOST.min(*OF_SYSTEM.get_or_init(system::largest_stack))
}

#[cfg(unix)]
mod system {
    use crate::rt::coroutine::PAGE;

    /// `generator` respects the limit of the system for the stacks of processes, and rounds up.
    pub(super) fn largest_stack() -> usize {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the pointer is to a variable of this type, which is written.
        match unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } {
            0 => usize::try_from(limit.rlim_max).map_or(usize::MAX, |most| {
                most.saturating_sub(super::ROUNDING) / PAGE * PAGE
            }),
            _ => usize::MAX,
        }
    }
}

#[cfg(not(unix))]
mod system {
    pub(super) fn largest_stack() -> usize {
        usize::MAX
    }
}

/// Overflows now if fewer than `BYTES` bytes of this stack are left, up to a few words. To be
/// called before code that must not be cut off in the middle and is known to need less.
///
/// The room is released before that code is called. As a part of the caller's frame it would count
/// once for each nested call, and the handler of an overflow allocates its text on a stack of 8
/// KiB.
#[inline(never)]
pub(crate) fn leave_room<const BYTES: usize>() {
    const { assert!(BYTES > 0) };
    let mut room = MaybeUninit::<[u8; BYTES]>::uninit();
    // The lowest byte. If the room is larger than a page, the compiler touches each of its pages on
    // entry. SAFETY: the byte is in `room`, which is not empty.
    unsafe { room.as_mut_ptr().cast::<u8>().write(0) };
    black_box(&mut room);
}

/// [`leave_room`], unless the stack is known to have plenty. On any other stack than that of the
/// coroutine that runs on this OS thread the function does nothing: the handler of an overflow
/// allocates, too, and has a stack of 8 KiB, most of which is used by unoptimised code.
#[inline]
pub(crate) fn leave_room_on_coroutine<const BYTES: usize>() {
    // The stack that a call of `leave_room` needs itself.
    const OWN: usize = 512;
    let current = CURRENT.get();
    if current.is_null() {
        return;
    }
    // SAFETY: as in `suspend` of the module above: the pointer is there only while `resume` borrows
    // the owner of the control block.
    let bottom = unsafe { &*current }.bottom.get();
    let last = Stretch {
        start: bottom,
        length: BYTES + OWN,
    };
    if rarely!(last.is_here()) {
        leave_room::<BYTES>();
    }
}

/// The bytes that `generator` adds to a stack, for the guard page and for rounding, on a system
/// with the largest pages.
#[cfg(unix)]
const ROUNDING: usize = 2 * (64 << 10);
