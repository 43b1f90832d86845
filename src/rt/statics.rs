//! How do explorations share the statics of one process?
//!
//! Tests run in parallel, and two of them may use the same static. Its memory is one, so they take
//! turns: an exploration that meets its first static waits until no other one uses any, and keeps
//! the right until it is over. It waits for nothing else of dpor's meanwhile, so nobody waits in a
//! circle.
//!
//! A test that calls no model may use the static, too. It waits until no exploration uses any,
//! before each operation; and an exploration waits until a lock is given back that is held outside.
//! An operation that was about to be done when the exploration began is given a moment.

pub(crate) mod external_state;
pub(crate) mod image;
pub(crate) mod rooted;
pub(crate) mod segments;

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::rt::engine::checkpoint::Statics;
use crate::rt::event::operation::ObjectKind;
use crate::rt::rare::rarely;

use crate::rt::heap::contents;
use crate::rt::heap::contents::LOWEST_ADDRESS;
use crate::rt::shim::Memory;
use crate::rt::statics::image::Image;

/// The right to use the statics of the process, if it has been taken.
#[derive(Default)]
pub(crate) struct Turn(Option<MutexGuard<'static, ()>>);

static TURN: Mutex<()> = Mutex::new(());

/// Whether an exploration has the right.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether that exploration waits for somebody outside.
static IS_WAITING: AtomicBool = AtomicBool::new(false);

/// Where it was waited in vain for somebody outside to be done with a static.
static IN_VAIN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// How often explorations have met a static. While this grows, the one that has the right makes
/// progress.
static MET: AtomicU64 = AtomicU64::new(0);

/// Whether somebody outside may be about to use a static.
static ABOUT_TO_USE: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether an exploration of this OS thread has the right, or this thread waits for it no more.
    static WAITS_FOR_NOBODY: Cell<bool> = const { Cell::new(false) };
}

/// What the memory of an initialisation holds that is going on.
pub(crate) const ONCE_RUNS: u8 = 1;

/// How long somebody outside waits for an exploration that meets no static, and an exploration for
/// somebody outside. The former may wait for the latter in a way that nobody sees here, as one
/// waits for a thread of std's.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long it takes at most to do what was about to be done.
const ABOUT_TO: Duration = Duration::from_millis(1);

impl Turn {
    /// Waits for the right if the address is in a static; true if it was taken just now.
    pub(crate) fn take(&mut self, address: usize) -> bool {
        if self.0.is_some() {
            MET.store(MET.load(Relaxed).wrapping_add(1), Relaxed);
            return false;
        }
        if !contain(std::ptr::without_provenance(address)) {
            return false;
        }
        self.0 = Some(TURN.lock().unwrap_or_else(PoisonError::into_inner));
        IS_TAKEN.store(true, SeqCst);
        WAITS_FOR_NOBODY.set(true);
        // Who has not seen that may still use one.
        if ABOUT_TO_USE.swap(false, SeqCst) {
            std::thread::sleep(ABOUT_TO);
        }
        true
    }

    /// What a shim in a static holds that was met for the first time in an execution, for which it
    /// had `seen` this before it got its turn, if it did `just_now`.
    pub(crate) fn at_rest(
        &self,
        (address, kind): (usize, ObjectKind),
        seen: u64,
        just_now: bool,
    ) -> u64 {
        if self.0.is_none() {
            return seen;
        }
        let found = match just_now {
            true => at_rest(address, kind).unwrap_or(seen),
            false => seen,
        };
        match rarely!(is_in_use(kind, found)) && contain(std::ptr::without_provenance(address)) {
            // Nobody in the model can have it, and who has it outside gives it back.
            true => wait_until_at_rest((address, kind), found),
            false => found,
        }
    }
}

/// Waits until nobody outside uses what is at this address, where there is `found` now. Gives what
/// is there then.
#[cold]
fn wait_until_at_rest((address, kind): (usize, ObjectKind), found: u64) -> u64 {
    let mut in_vain = IN_VAIN.lock().unwrap_or_else(PoisonError::into_inner);
    if in_vain.contains(&address) {
        return found;
    }
    let since = Instant::now();
    let look = || {
        std::thread::sleep(ABOUT_TO);
        at_rest(address, kind).unwrap_or(found)
    };
    loop {
        IS_WAITING.store(true, SeqCst);
        let mut now = look();
        while is_in_use(kind, now) && since.elapsed() < PATIENCE {
            now = look();
        }
        IS_WAITING.store(false, SeqCst);
        if is_in_use(kind, now) {
            in_vain.push(address);
            return now;
        }
        // Somebody may just have been about to take it again.
        now = look();
        if !is_in_use(kind, now) {
            return now;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.0.is_some() {
            WAITS_FOR_NOBODY.set(false);
            IS_TAKEN.store(false, SeqCst);
        }
    }
}

/// Whether a lock with this in its memory is held, or an initialisation is going on.
fn is_in_use(kind: ObjectKind, memory: u64) -> bool {
    match kind {
        ObjectKind::Once => memory == ONCE_RUNS.into(),
        ObjectKind::Mutex | ObjectKind::RwLock => memory != 0,
        _ => false,
    }
}

/// Somebody outside of all models is about to use what is at this address. If it is in a static,
/// and an exploration uses some, its turn comes when that one is over.
#[cold]
pub(crate) fn wait_outside(address: usize) {
    if !ABOUT_TO_USE.load(SeqCst) {
        ABOUT_TO_USE.store(true, SeqCst);
    }
    if !IS_TAKEN.load(SeqCst)
        || WAITS_FOR_NOBODY.get()
        || !contain(std::ptr::without_provenance(address))
    {
        return;
    }
    let (mut met, mut since) = (MET.load(Relaxed), Instant::now());
    while IS_TAKEN.load(SeqCst) && !IS_WAITING.load(SeqCst) {
        std::thread::sleep(ABOUT_TO);
        let now = MET.load(Relaxed);
        if now != met {
            (met, since) = (now, Instant::now());
        } else if since.elapsed() > PATIENCE {
            WAITS_FOR_NOBODY.set(true);
            return;
        }
    }
}

/// Whether the address is in the memory of a program or library, where statics are, and not on a
/// heap or stack.
#[cfg(unix)]
pub(crate) fn contain(address: *const u8) -> bool {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the function takes any address, and only writes to `info`.
    unsafe { libc::dladdr(address.cast(), info.as_mut_ptr()) != 0 }
}

/// Nobody can tell here, so the answer is the safe one.
#[cfg(not(unix))]
pub(crate) fn contain(_: *const u8) -> bool {
    false
}

/// The memory in statics that owns something and was written outside of models: from where, and how
/// many bytes.
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

/// [`contain`] where it is to cost little. Those of a library that was loaded at run time are not
/// known on Linux.
fn are_in_program(address: *const u8) -> bool {
    match cfg!(target_os = "linux") {
        true => Image.number(address.addr()).is_some(),
        false => contain(address),
    }
}

/// Whether what a shim holds is what the compiler has put into a static, and so has nothing to
/// drop.
///
/// Nobody hears of it when another crate puts something into a static, as std's `OnceLock` does.
/// But what owns memory leads there, and no constant leads out of the program.
pub(crate) fn are_constant(memory: &Memory) -> bool {
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
    let page = crate::rt::process::page::page();
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

/// Whether there is still memory where the execution has met a shim that it took for older than
/// itself. It may have mapped the memory, and unmapped it.
pub(crate) fn is_still_there(address: *const u8) -> bool {
    !cfg!(target_os = "linux") || are_in_program(address) || is_there(address.addr())
}

/// Puts the value of an atomic back.
pub(crate) fn restore(address: usize, kind: ObjectKind, value: u64) {
    let ObjectKind::Atomic(ty) = kind else { return };
    // What has not changed may be in memory that is only to be read, where a store was a fault.
    if at_rest(address, kind) == Some(value) {
        return;
    }
    let pointer = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: the address is that of an atomic of this width which the execution has used and which
    // was neither on a stack of the model nor in a block that it allocated or freed, and which is
    // still mapped: a static, or something the test's closure owns, which is alive as long as the
    // closure. It is only ever accessed atomically. This trusts the program not to have put
    // something else in its place, as by assigning to an `enum` that it is in, or by giving it back
    // to another allocator than the global one, which the guide says.
    unsafe {
        match ty.bits() {
            8 => AtomicU8::from_ptr(pointer).store(value as u8, Relaxed),
            16 => AtomicU16::from_ptr(pointer.cast()).store(value as u16, Relaxed),
            32 => AtomicU32::from_ptr(pointer.cast()).store(value as u32, Relaxed),
            _ => AtomicU64::from_ptr(pointer.cast()).store(value, Relaxed),
        }
    }
}

/// What the memory of a shim that is older than the execution holds between two executions, if that
/// can differ from what its thread has seen.
pub(crate) fn at_rest(address: usize, kind: ObjectKind) -> Option<u64> {
    let pointer = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: the address is that of a shim of this kind, which is about to be used and lives in a
    // static, or was used and is still there. An atomic has this width, the stage of an
    // initialisation and whether a mutex is held are bytes, and who holds a reader-writer lock is a
    // word; all are only ever accessed atomically.
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
                Some(AtomicU8::from_ptr(pointer).load(Acquire) as u64)
            }
            ObjectKind::RwLock => Some(AtomicU64::from_ptr(pointer.cast()).load(Acquire)),
            ObjectKind::Count { .. }
            | ObjectKind::Thread
            | ObjectKind::Token
            | ObjectKind::Condvar
            | ObjectKind::Barrier
            | ObjectKind::Channel => None,
        }
    }
}
