//! Does a thread count the rounds of its loop?
//!
//! A solo run shows whether a loop that waits has a bound of its own: the thread of the loop runs
//! alone. After how many rounds is it known that the loop has no bound? Not before the thread is
//! back in an earlier state. The program can keep a count in the stacks, the registers and the
//! blocks of the heap. If all of them are the same at a hint as a round before, the thread loops
//! for ever. If they differ, the thread may be counting, and the solo run makes many more rounds.
//!
//! The state is captured where the hint stands, because deeper calls add frames of the runtime to
//! the stack. It is captured at the first few hints of an exploration, so that mostly no solo run
//! is needed, and in two rounds of a solo run. Where the heap is not known, or is large, the solo
//! run makes some more rounds if the rest is the same. The capture does not include memory that is
//! older than the execution, such as a static.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::arch::asm;
use std::cell::Cell;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::rt::rare::rarely;

use crate::rt::exec::context::{Inner, Repeated, Runtime, with_any};
use crate::rt::heap;

/// The hints at which the state is captured.
struct Looks {
    /// The number of the coming hint at which the state is captured next, counted from one; zero
    /// for none.
    next: u32,
    /// The number of first hints that remain, at which the capture shows whether a loop that waits
    /// for the first time loops for ever; `None` in a solo run.
    first: Option<u32>,
}

thread_local! {
    static NEXT: Cell<u32> = const { Cell::new(0) };
    static FIRST: Cell<Option<u32>> = const { Cell::new(None) };
    static REPEATS: Cell<bool> = const { Cell::new(false) };
    static FILLING: Cell<u64> = const { Cell::new(NO_FILL) };
}

/// The number of first hints at which the state is captured. Mostly a loop waits for the first time
/// by then; for a loop that does not, the solo run shows whether it loops for ever.
const FIRST_LOOKS: u32 = 4;

/// While this value exists, the state is captured at hints on this OS thread. Its drop restores the
/// earlier setting.
pub(crate) struct StateCapture(Looks);

impl StateCapture {
    /// Captures for a solo run.
    pub(crate) fn at_one_that_goes() -> StateCapture {
        StateCapture::begin(Looks {
            next: 1,
            first: None,
        })
    }

    /// Captures for an exploration in which loops wait for the first time.
    pub(crate) fn at_first_waits() -> StateCapture {
        StateCapture::begin(Looks {
            next: 1,
            first: Some(FIRST_LOOKS),
        })
    }

    fn begin(looks: Looks) -> StateCapture {
        StateCapture(Looks {
            next: NEXT.replace(looks.next),
            first: FIRST.replace(looks.first),
        })
    }
}

impl Drop for StateCapture {
    fn drop(&mut self) {
        NEXT.set(self.0.next);
        FIRST.set(self.0.first);
    }
}

/// Whether the execution that begins on this OS thread has threads repeat a round of a loop that
/// waits. Then the state is captured before such a round and behind it.
pub(crate) fn repeat_rounds(repeats: bool) {
    REPEATS.set(repeats);
    FILLING.set(if repeats { FILL } else { NO_FILL });
    if repeats {
        MAY_REPEAT.store(true, Relaxed);
    }
}

/// Whether an exploration in this process has ever had threads repeat rounds.
static MAY_REPEAT: AtomicBool = AtomicBool::new(false);

/// The number of bytes that are filled below the frame that contains a hint or a look. The frames
/// of the runtime up to the one that captures the state need less.
const FILLED_BYTES: usize = 2048;

/// What the dead part of the stack is filled with while a thread repeats its round, and while it
/// does so once more; and what stands for no filling.
const FILL: u64 = 0;
const OTHER_FILL: u64 = 0xa7a7_a7a7_a7a7_a7a7;
const NO_FILL: u64 = 1;

/// Fills the stack below the caller's frame, to be called before a hint, behind it, and behind a
/// look, from the frame that contains these. Otherwise the bytes there would show how the operation
/// before was performed, and some of them become part of a later frame that never writes them, or
/// of the padding in a value. The caller's frame gets no other value than the one for filling.
#[inline(always)]
pub(crate) fn fill_below() {
    fill(filling());
}

#[inline(never)]
pub(crate) fn filling() -> u64 {
    match MAY_REPEAT.load(Relaxed) {
        true => FILLING.get(),
        false => NO_FILL,
    }
}

/// Contains nothing else, so that its frame is its return address alone.
#[inline(never)]
pub(crate) fn fill(with: u64) {
    // SAFETY: the code writes only to memory that it has reserved on the stack, and gives that
    // memory back. A coroutine has more room than that for the frames of the runtime.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "cmp rax, {none}",
            "je 2f",
            "sub rsp, {size}",
            "mov rdi, rsp",
            "mov ecx, {words}",
            "cld",
            "rep stosq",
            "add rsp, {size}",
            "2:",
            none = const NO_FILL,
            size = const FILLED_BYTES,
            words = const FILLED_BYTES / 8,
            in("rax") with,
            out("rdi") _,
            out("rcx") _,
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "cmp {with}, #{none}",
            "b.eq 3f",
            "mov {end}, sp",
            "sub sp, sp, #{size}",
            "mov {at}, sp",
            "2:",
            "stp {with}, {with}, [{at}], #16",
            "cmp {at}, {end}",
            "b.lo 2b",
            "mov sp, {end}",
            "3:",
            none = const NO_FILL,
            size = const FILLED_BYTES,
            with = in(reg) with,
            end = out(reg) _,
            at = out(reg) _,
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = with;
}

/// Captures the state at a hint of a thread, if this hint is to be captured. To be called before
/// any action that differs from one round to the next.
#[inline]
pub(crate) fn at_hint() {
    // Both are asked for at each hint, so that each leaves the same bytes on the stack.
    let (next, repeats) = (NEXT.get(), REPEATS.get());
    if rarely!(next > 0 || repeats) {
        look();
    }
}

/// The end of the stack, and the registers that a function preserves. On other processors the state
/// is not captured.
type Registers = [usize; if cfg!(target_arch = "aarch64") { 12 } else { 7 }];

/// Does nothing else, so that its frame holds only these registers and those that it has saved
/// itself.
#[cold]
#[inline(never)]
fn look() {
    let mut registers = Registers::default();
    write_down(&mut registers);
    // Where no model runs, no thread loops.
    let _ = with_any(|runtime| runtime.compare_state(&registers));
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn write_down(registers: &mut Registers) {
    // SAFETY: the code writes to the array, which is as long, and changes nothing else.
    unsafe {
        asm!(
            "mov [{into}], rsp",
            "mov [{into} + 8], rbx",
            "mov [{into} + 16], rbp",
            "mov [{into} + 24], r12",
            "mov [{into} + 32], r13",
            "mov [{into} + 40], r14",
            "mov [{into} + 48], r15",
            into = in(reg) registers.as_mut_ptr(),
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn write_down(registers: &mut Registers) {
    // SAFETY: the code writes to the array, which is as long, and changes nothing else.
    unsafe {
        asm!(
            "mov {end}, sp",
            "stp {end}, x19, [{into}]",
            "stp x20, x21, [{into}, #16]",
            "stp x22, x23, [{into}, #32]",
            "stp x24, x25, [{into}, #48]",
            "stp x26, x27, [{into}, #64]",
            "stp x28, x29, [{into}, #80]",
            into = in(reg) registers.as_mut_ptr(),
            end = out(reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// Without the end of the stack there is no stack to compare.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn write_down(_: &mut Registers) {}

/// The number of bytes that are captured at the top of another thread's stack. The frames of the
/// test's own code lie there, and pointers into these may have been handed to the thread that runs.
const OTHERS_BYTES: usize = 4 * 1024;

/// The most bytes and blocks of the heap that are compared.
const HEAP_BYTES: usize = 64 * 1024;
const HEAP_BLOCKS: usize = 1024;

impl Runtime {
    /// Compares the captured state with the state a round before, if it is to be known whether the
    /// thread that runs counts.
    #[inline(never)]
    fn compare_state(&self, registers: &Registers) {
        // A hint within the runtime does not belong to the loop.
        let Ok(mut inner) = self.inner.try_borrow_mut() else {
            return;
        };
        let recorded = self.heap.record(false);
        if REPEATS.get() {
            self.compare_repeated(&inner, registers);
        }
        match (NEXT.get(), FIRST.get()) {
            (0, _) => {}
            (1, None) => self.compare_round(&mut inner, registers),
            (1, Some(left)) => self.compare_first(&mut inner, registers, left),
            (next, _) => NEXT.set(next - 1),
        }
        self.heap.record(recorded);
    }

    /// Captures the state of the thread that runs, if it has looked in vain and is to repeat its
    /// round. Compares the state with the captured one, if it has repeated the round. No other
    /// thread has run meanwhile.
    ///
    /// If they differ, the thread repeats the round once more, over a stack that has other contents
    /// in its dead part. A byte that is what the stack was filled with, each time, comes from
    /// memory that was never written. No program without undefined behaviour depends on it, so it
    /// does not count.
    fn compare_repeated(&self, inner: &Inner, registers: &Registers) {
        let me = self.current.get();
        if !self.tries.get() {
            if inner.driver.is_to_prove(me) {
                let (state, is_all) = self.state(&inner.stacks, registers).unwrap_or_default();
                self.repeated.set(if is_all {
                    Repeated::Captured
                } else {
                    Repeated::Unknown
                });
                self.before_round.replace(state);
            }
            return;
        }
        if !self.repeats.get() || self.is_to_look() {
            return;
        }
        let is_last = FILLING.replace(FILL) != FILL;
        let state = self
            .state(&inner.stacks, registers)
            .filter(|(_, is_all)| *is_all);
        let (state, _) = state.unwrap_or_default();
        let before = self.before_round.borrow();
        let mut after = self.after_round.borrow_mut();
        self.repeated.set(if state == *before {
            Repeated::Same
        } else if state.len() != before.len() {
            Repeated::Unknown
        } else if !is_last {
            FILLING.set(OTHER_FILL);
            *after = state;
            Repeated::Differs
        } else {
            let mut bytes = before.iter().zip(after.iter()).zip(&state);
            let (fill, other) = (FILL as u8, OTHER_FILL as u8);
            let is_dead = |after: u8, last: u8| (after, last) == (fill, other);
            match bytes.all(|((before, &after), &last)| *before == after || is_dead(after, last)) {
                true => Repeated::Same,
                false => Repeated::Unknown,
            }
        });
    }

    /// Compares the state of the thread that runs, if it is in a solo run.
    fn compare_round(&self, inner: &mut Inner, registers: &Registers) {
        let me = self.current.get();
        let Some(further) = inner.driver.machine.further_of(me) else {
            return;
        };
        let left = further.rounds_to_compare();
        NEXT.set(match left {
            0 => 0,
            // If a round has several hints, the state is compared at each of them, and the last
            // comparison in each of the two rounds counts.
            1 | 2 => 1,
            more => more - 2,
        });
        if matches!(left, 1 | 2)
            && let Some((state, is_all)) = self.state(&inner.stacks, registers)
        {
            further.compare(state, is_all);
        }
    }

    /// Compares the state of the thread that runs, which may wait for the first time. `left` more
    /// hints are captured.
    ///
    /// If the thread waits, its last round has read the same values as the round before. The steps
    /// of other threads meanwhile do not matter: the next round reads the same values again, and
    /// then the thread reaches this state again, or the round reads a change, which ends the wait.
    /// The state before may be one of another execution. But no thread waits at its first hint.
    fn compare_first(&self, inner: &mut Inner, registers: &Registers, left: u32) {
        let machine = &mut inner.driver.machine;
        let Some(left) = left.checked_sub(1) else {
            NEXT.set(0);
            return machine.note_goes_round(false);
        };
        FIRST.set(Some(left));
        let (state, is_all) = self.state(&inner.stacks, registers).unwrap_or_default();
        machine.note_goes_round(is_all && *self.at_last_hint.borrow() == state);
        self.at_last_hint.replace(state);
    }

    /// The bytes in which the execution can keep a count, as far as they can be captured; and
    /// whether these are all. `None` if none can be captured.
    fn state(
        &self,
        stacks: &[Option<(usize, usize)>],
        registers: &Registers,
    ) -> Option<(Vec<u8>, bool)> {
        let me = self.current.get().index();
        // Code of the program may run on a stack of its own, which the runtime does not know.
        let end = registers[0];
        let stack = stacks.get(me).copied().flatten();
        let (_, top) = stack.filter(|&(bottom, top)| (bottom..top).contains(&end))?;
        let own = (&raw const *registers).expose_provenance();
        let mut all = Vec::with_capacity(64);
        all.extend([(own, size_of_val(registers)), (end, top - end)]);
        for (thread, stack) in stacks.iter().enumerate() {
            if let Some((bottom, top)) = *stack
                && thread != me
            {
                let size = (top - bottom).min(OTHERS_BYTES);
                all.push((top - size, size));
            }
        }
        let is_all = heap::installed() && self.heap.list_within(&mut all, HEAP_BLOCKS, HEAP_BYTES);
        // SAFETY: the registers are in memory, and so are the stacks of threads that have not
        // ended, and the blocks that the allocator has handed out and not got back. No other thread
        // of the model runs.
        Some((unsafe { copied(&all) }, is_all))
    }
}

/// The bytes at these addresses, each with a number of bytes, as a debugger would read them: the
/// bytes are the program's, and some may never have been written.
///
/// # Safety
///
/// The bytes can be read, and no thread writes to them.
unsafe fn copied(all: &[(usize, usize)]) -> Vec<u8> {
    let size = all.iter().map(|(_, size)| size).sum();
    let mut bytes = Vec::with_capacity(size);
    for &(start, size) in black_box(all) {
        let from = ptr::with_exposed_provenance::<u8>(start);
        let to: &mut [MaybeUninit<u8>] = &mut bytes.spare_capacity_mut()[..size];
        // SAFETY: the caller guarantees that the bytes can be read, and there is room for so many.
        // The bytes are copied as they are. The compiler does not see where the bytes come from, so
        // to the compiler they are some bytes.
        unsafe {
            ptr::copy_nonoverlapping(from, black_box(to.as_mut_ptr()).cast(), size);
            bytes.set_len(bytes.len() + size);
        }
    }
    bytes
}
