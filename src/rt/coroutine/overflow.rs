//! What happens where a stack is too short?
//!
//! Below each stack lies a guard page. When a body runs into it, `generator`'s handler of `SIGSEGV`
//! (of `SIGBUS` too, and a vectored exception handler on Windows) prints one line to stderr, leaves
//! the signal handler by switching to the resumer's stack, and `resume` returns
//! [`Resumed::Overflowed`](crate::rt::coroutine::Resumed::Overflowed). The frames of the body stay
//! as they are: nothing on them is dropped, locks that they held stay locked, and the stack is
//! leaked. This works in the process itself, also under `cargo test`, on the conditions that the
//! handler has a stack to run on and recognises the address:
//!
//! - The handler runs on the alternative signal stack of the OS thread. Rust's std makes one for
//!   the main thread and for each thread it spawns; on a thread that a foreign runtime made without
//!   one an overflow kills the process with `SIGSEGV`.
//! - The handler compares the address with the outermost generator that runs on the OS thread. An
//!   overflow in a model inside a model therefore kills the process.
//! - The handler allocates, in 0.8.11 what it prints, so the stack must not end inside of `malloc`
//!   with its lock held: the handler would wait for that lock forever. A recursion that allocates,
//!   or a long list that frees itself, does meet this. [`leave_room_on_coroutine`] makes such a
//!   stack overflow one step earlier; the tracking allocator calls it, and a program without that
//!   allocator may hang.
//!
//! In front of that handler is one of ours ([`faults`](crate::rt::exec::faults)). It sees to other
//! uses of memory that is not there, lets std's handler see to overflows of an OS thread's own
//! stack, and gives each OS thread a larger stack for all of them.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use crate::rt::rare::rarely;

use crate::rt::coroutine::{CURRENT, Stretch};

/// How much stack in bytes the runtime may need below a shim.
pub(crate) const ROOM: usize = 16 * 1024;

/// Whether the use of memory at this address says that the coroutine that runs on this OS thread
/// has come to the end of its stack.
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

/// Opens the guard page of a stack that is given up for good, of which this is the lowest address.
///
/// A guard page is a mapping of its own, and parts the stack from what lies below, so that each
/// stack that is leaked costs two of the mappings that the system has for a process, which are
/// 65,530 on Linux. A failure that is shown may have leaked eleven. Nobody comes to the end of this
/// stack any more, and without the page its memory is part of the same mapping as that of the next
/// one, which the system mostly puts there.
#[cfg(target_os = "linux")]
#[cold]
pub(super) fn open_guard(bottom: usize) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let page = crate::rt::process::page::page();
    let guard = std::ptr::without_provenance_mut(bottom - page);
    // SAFETY: `generator` maps the page together with the stack, locks it, and unmaps it with the
    // stack when the generator is dropped, which this one never is. So it is mapped still, nobody
    // else has it, and nobody waits for a fault there, because no code runs on the stack any more.
    unsafe { libc::mprotect(guard, page, access) };
}

/// Elsewhere mappings are not as few.
#[cfg(not(target_os = "linux"))]
pub(super) fn open_guard(_: usize) {}

/// The largest stack in bytes that can be asked for, with its guard page. More than a GiB is a
/// mistake, and may be more than there are addresses; below that the system may have a limit of its
/// own.
pub(crate) fn largest_stack() -> usize {
    const MOST: usize = 1 << 30;
    // `generator` asks the system only once, too, and each exploration asks here.
    static OF_SYSTEM: OnceLock<usize> = OnceLock::new();
    MOST.min(*OF_SYSTEM.get_or_init(system::largest_stack))
}

#[cfg(unix)]
mod system {
    use crate::rt::coroutine::PAGE;

    /// `generator` keeps to the limit that the system has for the stacks of processes, and rounds
    /// up.
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

/// Overflows now if fewer than `BYTES` bytes of this stack are left, give or take a few words. To
/// be called before something that must not be cut off in the middle and is known to need less.
///
/// The room is given back before that is called. As a part of the caller's frame it would be
/// counted as often as such calls are nested, and what the handler of an overflow prints is
/// allocated on a stack of 8 KiB.
#[inline(never)]
pub(crate) fn leave_room<const BYTES: usize>() {
    const { assert!(BYTES > 0) };
    let mut room = MaybeUninit::<[u8; BYTES]>::uninit();
    // The lowest byte. Of a room that is larger than a page, the compiler touches each page on
    // entry. SAFETY: the byte is in `room`, which is not empty.
    unsafe { room.as_mut_ptr().cast::<u8>().write(0) };
    black_box(&mut room);
}

/// [`leave_room`] if it is not known that there is plenty. On any other stack than that of the
/// coroutine that runs on this OS thread nothing is asked for: the handler of an overflow
/// allocates, too, and has a stack of 8 KiB, of which code that is not optimised uses most.
#[inline]
pub(crate) fn leave_room_on_coroutine<const BYTES: usize>() {
    // What a call of `leave_room` needs itself.
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

/// What `generator` adds to a stack, for the guard page and for rounding, on a system with the
/// largest pages.
#[cfg(unix)]
const ROUNDING: usize = 2 * (64 << 10);
