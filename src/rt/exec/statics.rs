//! How do explorations share the statics of one process?
//!
//! Tests run in parallel, and two of them may use the same static. Its memory is one, so they take
//! turns: an exploration that meets its first static waits until no other one uses any, and keeps the
//! right until it is over. It waits for nothing else of dpor's meanwhile, so nobody waits in a circle.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::rt::explore::checkpoint::Statics;
use crate::rt::trace::operation::ObjectKind;

use super::contents::{self, LOWEST_ADDRESS};
use super::image::Image;
use crate::rt::Memory;

/// The right to use the statics of the process, if it has been taken.
#[derive(Default)]
pub(super) struct Turn(Option<MutexGuard<'static, ()>>);

impl Turn {
    /// Waits for the right if the address is in a static; true if it was taken just now.
    pub(super) fn take(&mut self, address: usize) -> bool {
        static TURN: Mutex<()> = Mutex::new(());
        if self.0.is_some() || !contain(std::ptr::without_provenance(address)) {
            return false;
        }
        self.0 = Some(TURN.lock().unwrap_or_else(PoisonError::into_inner));
        true
    }
}

/// Whether the address is in the memory of a program or library, where statics are, and not on a heap
/// or stack.
#[cfg(unix)]
pub(super) fn contain(address: *const u8) -> bool {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the function takes any address, and only writes to `info`.
    unsafe { libc::dladdr(address.cast(), info.as_mut_ptr()) != 0 }
}

/// Nobody can tell here, so the answer is the safe one.
#[cfg(not(unix))]
pub(super) fn contain(_: *const u8) -> bool {
    false
}

/// The memory in statics that owns something and was written outside of models: from where, and how many bytes.
static WRITTEN: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Memory that may own something is written outside of models.
#[cold]
pub(crate) fn note_written(start: *const u8, size: usize) {
    // Under Miri there are no models, and nobody who could say what is a static.
    if cfg!(miri) || !are_in_program(start) {
        return;
    }
    let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    let memory = (start.addr(), size);
    if !written.contains(&memory) {
        written.push(memory);
    }
}

/// [`contain`] where it is to cost little. Those of a library that was loaded at run time are not known on Linux.
fn are_in_program(address: *const u8) -> bool {
    match cfg!(target_os = "linux") {
        true => Image.number(address.addr()).is_some(),
        false => contain(address),
    }
}

/// Whether what a shim holds is what the compiler has put into a static, and so has nothing to drop.
///
/// Nobody hears of it when another crate puts something into a static, as std's `OnceLock` does. But what owns memory leads
/// there, and no constant leads out of the program.
pub(super) fn are_constant(memory: &Memory) -> bool {
    contain(memory.start) && !was_written(memory.start) && !leads_out(memory)
}

/// Whether the address is in memory that was noted as written.
fn was_written(address: *const u8) -> bool {
    let written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut written = written.iter();
    written.any(|&(start, size)| (start..start + size).contains(&address.addr()))
}

/// Whether something in there is the address of memory that is not the program's.
fn leads_out(memory: &Memory) -> bool {
    let leads_out = |word: usize| {
        word >= LOWEST_ADDRESS && is_there(word) && !contain(std::ptr::without_provenance(word))
    };
    let mut any = false;
    // SAFETY: it is a shim that gives its own address and size.
    unsafe {
        contents::each_word(memory.start.expose_provenance(), memory.size, |word| {
            any = any || leads_out(word);
        });
    }
    any
}

/// Whether there is memory at the address.
#[cfg(target_os = "linux")]
fn is_there(address: usize) -> bool {
    // SAFETY: this asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let start = std::ptr::without_provenance_mut::<libc::c_void>(address / page * page);
    let mut resident = 0;
    // SAFETY: the function takes any address of a page, and writes one byte for it.
    unsafe { libc::mincore(start, 1, &raw mut resident) == 0 }
}

/// Nobody says so here, but addresses are large, and blocks of memory are aligned.
#[cfg(not(target_os = "linux"))]
fn is_there(address: usize) -> bool {
    address.is_multiple_of(align_of::<usize>()) && address >> 32 != 0 && address >> 48 == 0
}

/// Puts the value of an atomic back.
pub(super) fn restore(address: usize, kind: ObjectKind, value: u64) {
    let ObjectKind::Atomic(ty) = kind else { return };
    let pointer = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: the address is that of an atomic of this width which the execution has used and which
    // was neither on a stack of the model nor in a block that it allocated or freed: a static, or
    // something the test's closure owns, which is alive as long as the closure. It is only ever
    // accessed atomically.
    unsafe {
        match ty.bits() {
            8 => AtomicU8::from_ptr(pointer).store(value as u8, Relaxed),
            16 => AtomicU16::from_ptr(pointer.cast()).store(value as u16, Relaxed),
            32 => AtomicU32::from_ptr(pointer.cast()).store(value as u32, Relaxed),
            _ => AtomicU64::from_ptr(pointer.cast()).store(value, Relaxed),
        }
    }
}

/// What the memory of a shim in a static holds between two executions, if that can differ from what
/// its thread has seen before it got its turn.
pub(super) fn at_rest(address: usize, kind: ObjectKind) -> Option<u64> {
    let pointer = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: the address is that of a shim of this kind, which is about to be used and lives in a
    // static. An atomic has this width, the stage of an initialisation and whether a mutex is held are
    // bytes, and who holds a reader-writer lock is a word; all are only ever accessed atomically.
    unsafe {
        match kind {
            ObjectKind::Atomic(ty) => Some(match ty.bits() {
                8 => AtomicU8::from_ptr(pointer).load(Relaxed) as u64,
                16 => AtomicU16::from_ptr(pointer.cast()).load(Relaxed) as u64,
                32 => AtomicU32::from_ptr(pointer.cast()).load(Relaxed) as u64,
                _ => AtomicU64::from_ptr(pointer.cast()).load(Relaxed),
            }),
            // No execution leaves a lock held, but what uses it outside of models may.
            ObjectKind::Once | ObjectKind::Mutex => {
                Some(AtomicU8::from_ptr(pointer).load(Relaxed) as u64)
            }
            ObjectKind::RwLock => Some(AtomicU64::from_ptr(pointer.cast()).load(Relaxed)),
            ObjectKind::Count { .. }
            | ObjectKind::Thread
            | ObjectKind::Token
            | ObjectKind::Condvar
            | ObjectKind::Barrier
            | ObjectKind::Channel => None,
        }
    }
}
