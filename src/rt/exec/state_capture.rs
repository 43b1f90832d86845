//! Does a thread keep count of its rounds?
//!
//! Whether a loop that waits gives up by itself is seen by letting its thread go round alone. After
//! how many rounds is it known that it does not? Not before it is back in a state in which it was
//! before. What an execution has to count in is the stacks, the registers and the blocks of the
//! heap: if all of them are the same at a hint as a round before, the thread goes round for ever.
//! If they are not, it may be counting, and goes round many more times.
//!
//! They are looked at where the hint stands, because further down there is on the stack what the
//! runtime does, too: at the first few hints of an exploration, so that mostly no thread has to go
//! round alone, and in two rounds of one that does. Where the heap is not known, or is large, that
//! goes round some more times if the rest is the same. Out of sight is what is older than the
//! execution, as a static is.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::arch::asm;
use std::cell::Cell;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;

use crate::rt::rare::rarely;

use crate::rt::exec::context::{Inner, Runtime, with_any};
use crate::rt::heap;

/// For what it is looked at hints.
struct Looks {
    /// At which of those that are to come, counted from one; at none if this is zero.
    next: u32,
    /// At how many, to see whether a loop goes round for ever that waits for the first time; none
    /// if a thread goes round alone.
    first: Option<u32>,
}

thread_local! {
    static NEXT: Cell<u32> = const { Cell::new(0) };
    static FIRST: Cell<Option<u32>> = const { Cell::new(None) };
}

/// At so many hints it is looked whether the loop goes round for ever. Mostly one waits for the
/// first time by then; of one that does not it is seen when its thread goes round alone.
const FIRST_LOOKS: u32 = 4;

/// Hints are looked at on this OS thread as long as this is kept, and then as they were before.
pub(crate) struct StateCapture(Looks);

impl StateCapture {
    /// A thread goes round alone.
    pub(crate) fn at_one_that_goes() -> StateCapture {
        StateCapture::begin(Looks {
            next: 1,
            first: None,
        })
    }

    /// An exploration in which loops wait for the first time.
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

/// A thread comes to a hint. To be called where nothing has been done yet that differs from one
/// round to the next.
#[inline]
pub(crate) fn at_hint() {
    let next = NEXT.get();
    if rarely!(next > 0) {
        match next {
            1 => look(),
            _ => NEXT.set(next - 1),
        }
    }
}

/// The end of the stack, and the registers that a function leaves as they were. On other processors
/// nothing is looked at.
type Registers = [usize; if cfg!(target_arch = "aarch64") { 12 } else { 7 }];

/// It does nothing else, so that there is nothing in its frame but these registers and those that
/// it has put there itself.
#[cold]
#[inline(never)]
fn look() {
    let mut registers = Registers::default();
    write_down(&mut registers);
    // Where no model runs there is nobody who goes round.
    let _ = with_any(|runtime| runtime.compare_state(&registers));
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn write_down(registers: &mut Registers) {
    // SAFETY: it writes to the array, which is as long, and changes nothing else.
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
    // SAFETY: it writes to the array, which is as long, and changes nothing else.
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

/// Without the end there is no stack to compare.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn write_down(_: &mut Registers) {}

/// Of the stack of another thread, what may have been handed to the one that runs: the frames of
/// the test's own code lie at the top.
const OTHERS_BYTES: usize = 4 * 1024;

/// The most bytes and blocks of the heap that are compared.
const HEAP_BYTES: usize = 64 * 1024;
const HEAP_BLOCKS: usize = 1024;

impl Runtime {
    /// Has what the execution has to count in compared with what that was a round before, if it is
    /// to be known whether the thread that runs counts.
    #[inline(never)]
    fn compare_state(&self, registers: &Registers) {
        // A hint in the middle of the runtime is none of the loop's.
        let Ok(mut inner) = self.inner.try_borrow_mut() else {
            return;
        };
        let recorded = self.heap.record(false);
        match FIRST.get() {
            None => self.compare_round(&mut inner, registers),
            Some(left) => self.compare_first(&mut inner, registers, left),
        }
        self.heap.record(recorded);
    }

    /// The thread that runs goes round alone, if it is that one.
    fn compare_round(&self, inner: &mut Inner, registers: &Registers) {
        let me = self.current.get();
        let Some(further) = inner.driver.machine.further_of(me) else {
            return;
        };
        let left = further.rounds_to_compare();
        NEXT.set(match left {
            0 => 0,
            // In a cycle of hints it is looked at each of them, and the last look in each of the
            // two rounds counts.
            1 | 2 => 1,
            more => more - 2,
        });
        if matches!(left, 1 | 2)
            && let Some((state, is_all)) = self.state(&inner.stacks, registers)
        {
            further.compare(state, is_all);
        }
    }

    /// The thread that runs may wait for the first time; it is looked at so many hints more.
    ///
    /// If it waits, it has found in its last round what it had found before. It does not matter
    /// what others did meanwhile: in the next round it finds that again, and then comes to this
    /// state again, or it finds a change, which ends its wait. The state before may be one of
    /// another execution. But at its first hint nobody waits.
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

    /// What the execution has to count in, as far as that is seen; and whether that is all. `None`
    /// if nothing is seen.
    fn state(
        &self,
        stacks: &[Option<(usize, usize)>],
        registers: &Registers,
    ) -> Option<(Vec<u8>, bool)> {
        let me = self.current.get().index();
        // Code of the program may run on a stack of its own, of which nothing is known.
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
        // SAFETY: the registers are there, stacks of threads that have not ended are, and so are
        // blocks that the allocator has handed out and has not got back. Nobody else runs.
        Some((unsafe { copied(&all) }, is_all))
    }
}

/// The bytes at these addresses, each with a number of bytes, as a debugger would read them: they
/// are the program's, and some may never have been written.
///
/// # Safety
///
/// They can be read, and nobody writes to them.
unsafe fn copied(all: &[(usize, usize)]) -> Vec<u8> {
    let size = all.iter().map(|(_, size)| size).sum();
    let mut bytes = Vec::with_capacity(size);
    for &(start, size) in black_box(all) {
        let from = ptr::with_exposed_provenance::<u8>(start);
        let to: &mut [MaybeUninit<u8>] = &mut bytes.spare_capacity_mut()[..size];
        // SAFETY: the caller says that they can be read, and there is room for so many. They are
        // copied as they are; where they come from the compiler does not see, so to it they are
        // some bytes.
        unsafe {
            ptr::copy_nonoverlapping(from, black_box(to.as_mut_ptr()).cast(), size);
            bytes.set_len(bytes.len() + size);
        }
    }
    bytes
}
