//! How do explorations share the statics of one process?
//!
//! Tests run in parallel, and two of them may use the same static. Its memory exists once, so the
//! explorations take turns: an exploration that meets its first static waits until no other
//! exploration uses any, and keeps the right until it is over. It waits for no other lock of dpor
//! in the meantime, so there is no cyclic wait.
//!
//! A test that calls no model may use the static, too. Such a thread waits before each operation
//! until no exploration uses any static. An exploration waits until a lock is released that is held
//! outside of models. An operation that was about to begin when the exploration began gets a moment
//! to finish.

pub(crate) mod external_state;
pub(crate) mod image;
pub(crate) mod rooted;
pub(crate) mod segments;

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::rt::engine::checkpoint::Statics;
use crate::rt::event::operation::{AtomicType, ObjectKind};
use crate::rt::rare::rarely;

use crate::rt::heap::contents;
use crate::rt::heap::reach::LOWEST_ADDRESS;
use crate::rt::shim::Memory;
use crate::rt::statics::image::Image;

/// The right to use the statics of the process, if it has been taken.
#[derive(Default)]
pub(crate) struct Turn {
    right: Option<MutexGuard<'static, ()>>,
    /// Whether other OS threads run the same closure. Then memory that the closure has captured is
    /// used in turns, too.
    is_shared: bool,
    /// Whether an execution has met memory that is older than itself.
    has_met: bool,
}

static TURN: Mutex<()> = Mutex::new(());

/// Whether an exploration has the right.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether that exploration waits for a thread outside of models.
static IS_WAITING: AtomicBool = AtomicBool::new(false);

/// The addresses at which an exploration waited in vain for a thread outside to finish with a
/// static.
static IN_VAIN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The number of times that explorations have met a static. While this grows, the exploration with
/// the right makes progress.
static MET: AtomicU64 = AtomicU64::new(0);

/// Whether a thread outside may be about to use a static.
static ABOUT_TO_USE: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether an exploration of this OS thread has the right, or this OS thread waits for the
    /// right no more.
    static WAITS_FOR_NOBODY: Cell<bool> = const { Cell::new(false) };
}

/// The contents of the memory of an initialisation in progress.
pub(crate) const ONCE_RUNS: u8 = 1;

/// Number of looks, [`ABOUT_TO`] apart, that a thread outside waits for an exploration that meets
/// no static, and that an exploration waits for a thread outside. The exploration may wait for the
/// thread in a way that this module does not see, for example in a join of a thread of std's. On a
/// machine with much to do the looks are further apart, as the steps of the exploration are.
const PATIENCE: u32 = 1_000;

/// The longest time that an operation takes that was about to begin.
const ABOUT_TO: Duration = Duration::from_millis(1);

impl Turn {
    /// Other OS threads run the same closure.
    pub(crate) fn share(&mut self) {
        self.is_shared = true;
    }

    /// Whether an execution has met memory that is older than itself.
    pub(crate) fn has_met(&self) -> bool {
        self.has_met
    }

    /// Waits for the right if the address is in a static, or the closure is shared; returns true if
    /// the right was taken just now. The memory at the address is older than the execution.
    pub(crate) fn take(&mut self, address: usize) -> bool {
        self.has_met = true;
        if self.right.is_some() {
            MET.store(MET.load(Relaxed).wrapping_add(1), Relaxed);
            return false;
        }
        if !self.is_shared && !contain(std::ptr::without_provenance(address)) {
            return false;
        }
        self.right = Some(TURN.lock().unwrap_or_else(PoisonError::into_inner));
        IS_TAKEN.store(true, SeqCst);
        WAITS_FOR_NOBODY.set(true);
        // A thread that has not seen the flag may still use a static.
        if ABOUT_TO_USE.swap(false, SeqCst) {
            std::thread::sleep(ABOUT_TO);
        }
        true
    }

    /// The contents of a shim in a static that an execution meets for the first time. The execution
    /// has read `seen` before it got the right, if it got the right `just_now`.
    pub(crate) fn at_rest(
        &self,
        (address, kind): (usize, ObjectKind),
        seen: u64,
        just_now: bool,
    ) -> u64 {
        if self.right.is_none() {
            return seen;
        }
        let found = match just_now {
            true => at_rest(address, kind).unwrap_or(seen),
            false => seen,
        };
        match rarely!(is_in_use(kind, found)) && contain(std::ptr::without_provenance(address)) {
            // No thread of the model can hold it, and a thread outside releases it.
            true => wait_until_at_rest((address, kind), found),
            false => found,
        }
    }
}

/// Waits until no thread outside uses the shim at this address, which contains `found` now. Returns
/// its contents then.
#[cold]
fn wait_until_at_rest((address, kind): (usize, ObjectKind), found: u64) -> u64 {
    let mut in_vain = IN_VAIN.lock().unwrap_or_else(PoisonError::into_inner);
    if in_vain.contains(&address) {
        return found;
    }
    let mut looks = 0;
    let mut look = || {
        looks += 1;
        std::thread::sleep(ABOUT_TO);
        (at_rest(address, kind).unwrap_or(found), looks < PATIENCE)
    };
    loop {
        IS_WAITING.store(true, SeqCst);
        let (mut now, mut is_patient) = look();
        while is_in_use(kind, now) && is_patient {
            (now, is_patient) = look();
        }
        IS_WAITING.store(false, SeqCst);
        if is_in_use(kind, now) {
            in_vain.push(address);
            return now;
        }
        // A thread may just have been about to take the lock again.
        now = look().0;
        if !is_in_use(kind, now) {
            return now;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.right.is_some() {
            WAITS_FOR_NOBODY.set(false);
            IS_TAKEN.store(false, SeqCst);
        }
    }
}

/// Whether a lock with these contents is held, or an initialisation is in progress.
fn is_in_use(kind: ObjectKind, memory: u64) -> bool {
    match kind {
        ObjectKind::Once => memory == ONCE_RUNS.into(),
        ObjectKind::Mutex | ObjectKind::RwLock => memory != 0,
        _ => false,
    }
}

/// A thread outside of all models is about to use the shim at this address. If the address is in a
/// static, and an exploration uses statics, the thread waits until that exploration is over.
#[cold]
pub(crate) fn wait_outside(address: usize) {
    if !is_taken() || WAITS_FOR_NOBODY.get() || !contain(std::ptr::without_provenance(address)) {
        return;
    }
    let (mut met, mut looks) = (MET.load(Relaxed), 0);
    while is_taken() && !IS_WAITING.load(SeqCst) {
        std::thread::sleep(ABOUT_TO);
        let now = MET.load(Relaxed);
        if now != met {
            (met, looks) = (now, 0);
        } else {
            looks += 1;
        }
        if looks > PATIENCE {
            WAITS_FOR_NOBODY.set(true);
            return;
        }
    }
}

/// Whether an exploration has the right. The next one to get it learns that a thread has looked,
/// and may be about to use a static.
fn is_taken() -> bool {
    if !ABOUT_TO_USE.load(SeqCst) {
        ABOUT_TO_USE.store(true, SeqCst);
    }
    IS_TAKEN.load(SeqCst)
}

/// Whether the address is in the memory of a program or library, where statics are, and not on a
/// heap or stack.
#[cfg(unix)]
pub(crate) fn contain(address: *const u8) -> bool {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the function takes any address, and only writes to `info`.
    unsafe { libc::dladdr(address.cast(), info.as_mut_ptr()) != 0 }
}

/// This system does not tell, so the answer is the safe one.
#[cfg(not(unix))]
pub(crate) fn contain(_: *const u8) -> bool {
    false
}

/// The memory in statics that owns other memory and was written outside of models: its start, and
/// its size in bytes.
static WRITTEN: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Notes that memory that may own other memory is written outside of models.
#[cold]
pub(crate) fn note_written(start: *const u8, size: usize) {
    // Under Miri there are no models, and no way to recognise a static.
    if cfg!(miri) || !are_in_program(start) {
        return;
    }
    let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    let memory = (start.addr(), size);
    if !written.contains(&memory) {
        written.push(memory);
    }
}

/// A cheap form of [`contain`]. The statics of a library that was loaded at run time are not known
/// on Linux.
fn are_in_program(address: *const u8) -> bool {
    match cfg!(target_os = "linux") {
        true => Image.number(address.addr()).is_some(),
        false => contain(address),
    }
}

/// Whether a shim still has its contents from the compiler, as a constant in a static, and so has
/// nothing to drop.
///
/// dpor does not see another crate put a value into a static, as std's `OnceLock` does. But a value
/// that owns memory has a pointer to it, and no constant points out of the program.
pub(crate) fn are_constant(memory: &Memory) -> bool {
    contain(memory.start) && !was_written(memory.start) && !leads_out(memory)
}

/// Whether the address is in memory that was noted as written.
fn was_written(address: *const u8) -> bool {
    let written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut written = written.iter();
    written.any(|&(start, size)| (start..start + size).contains(&address.addr()))
}

/// Whether the shim contains an address of memory that is not the program's.
fn leads_out(memory: &Memory) -> bool {
    let leads_out = |word: usize| {
        word >= LOWEST_ADDRESS && is_there(word) && !contain(std::ptr::without_provenance(word))
    };
    let mut any = false;
    // SAFETY: a shim passes its own address and size.
    unsafe {
        contents::each_word(memory.start.expose_provenance(), memory.size, |word| {
            any = any || leads_out(word);
        });
    }
    any
}

/// Whether memory is mapped at the address.
#[cfg(target_os = "linux")]
fn is_there(address: usize) -> bool {
    let page = crate::rt::process::page::page();
    let start = std::ptr::without_provenance_mut::<libc::c_void>(address / page * page);
    let mut resident = 0;
    // SAFETY: the function takes any address of a page, and writes one byte for it.
    unsafe { libc::mincore(start, 1, &raw mut resident) == 0 }
}

/// This system does not tell, but addresses are large, and blocks of memory are aligned.
#[cfg(not(target_os = "linux"))]
fn is_there(address: usize) -> bool {
    address.is_multiple_of(align_of::<usize>()) && address >> 32 != 0 && address >> 48 == 0
}

/// Whether memory is still mapped at the address of a shim that the execution took for older than
/// itself. The execution may have mapped and unmapped the memory itself.
pub(crate) fn is_still_there(address: *const u8) -> bool {
    !cfg!(target_os = "linux") || are_in_program(address) || is_there(address.addr())
}

/// Restores the value of an atomic.
pub(crate) fn restore(address: usize, kind: ObjectKind, value: u64) {
    let ObjectKind::Atomic(ty) = kind else { return };
    // An unchanged value may be in read-only memory, where a store would be a fault.
    if at_rest(address, kind) == Some(value) {
        return;
    }
    let pointer = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: the address is that of an atomic of this width which the execution has used and which
    // was neither on a stack of the model nor in a block that it allocated or freed, and which is
    // still mapped: a static, or memory that the test's closure owns, which is alive as long as the
    // closure. It is only ever accessed atomically. This trusts the program not to have put other
    // data in its place, for example by assigning to an `enum` that contains it, or by freeing it
    // with another allocator than the global one. The guide states this.
    unsafe {
        match ty.bits() {
            8 => AtomicU8::from_ptr(pointer).store(value as u8, Relaxed),
            16 => AtomicU16::from_ptr(pointer.cast()).store(value as u16, Relaxed),
            32 => AtomicU32::from_ptr(pointer.cast()).store(value as u32, Relaxed),
            _ => AtomicU64::from_ptr(pointer.cast()).store(value, Relaxed),
        }
    }
}

/// The value in the memory of an atomic of this type. Its shim is in use, or was used and is still
/// there.
pub(crate) fn value_at(address: usize, ty: AtomicType) -> u64 {
    let pointer = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: the address is that of a shim of this type, which is borrowed, or was used and is
    // still there. An atomic has this width, and is only ever accessed atomically.
    unsafe {
        match ty.bits() {
            8 => AtomicU8::from_ptr(pointer).load(Relaxed) as u64,
            16 => AtomicU16::from_ptr(pointer.cast()).load(Relaxed) as u64,
            32 => AtomicU32::from_ptr(pointer.cast()).load(Relaxed) as u64,
            _ => AtomicU64::from_ptr(pointer.cast()).load(Relaxed),
        }
    }
}

/// The contents between two executions of a shim that is older than the execution, if they can
/// differ from the contents that its thread has seen.
pub(crate) fn at_rest(address: usize, kind: ObjectKind) -> Option<u64> {
    let pointer = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: the address is that of a shim of this kind, which is about to be used and lives in a
    // static, or was used and is still there. The stage of an initialisation and the held flag of a
    // mutex are bytes, and the holders of a reader-writer lock are a word; all are only ever
    // accessed atomically.
    unsafe {
        match kind {
            ObjectKind::Atomic(ty) => Some(value_at(address, ty)),
            // No execution leaves a lock held, but a thread outside of models may hold it.
            ObjectKind::Once | ObjectKind::Mutex => {
                Some(AtomicU8::from_ptr(pointer).load(Acquire) as u64)
            }
            ObjectKind::RwLock => Some(AtomicU64::from_ptr(pointer.cast()).load(Acquire)),
            ObjectKind::Count { .. }
            | ObjectKind::Thread
            | ObjectKind::Token
            | ObjectKind::Condvar
            | ObjectKind::Barrier
            | ObjectKind::Channel
            | ObjectKind::Opaque => None,
        }
    }
}
