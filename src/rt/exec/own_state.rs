//! Does a thread keep count of its rounds?
//!
//! Whether a loop that waits gives up by itself is seen by letting its thread go round alone. After how many rounds is it known
//! that it does not? Not before it is back in a state in which it was before. What a thread has for itself is its stack and the
//! registers: if both are the same at a hint as a round before, it goes round for ever, unless it counts elsewhere in plain
//! memory. If they are not, it may be counting, and goes round many more times.
//!
//! They are looked at once, in the two last rounds that each loop gets. That is done where the hint stands, because further down
//! there is on the stack what the runtime does, too.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::arch::asm;
use std::cell::Cell;

use crate::rt::object::machine::ROUNDS_FURTHER;
use crate::rt::rare::rarely;

use super::context::{Runtime, with_any};

thread_local! {
    /// At which of the hints that are to come it is looked, counted from one; none if this is zero.
    static NEXT: Cell<u32> = const { Cell::new(0) };
}

/// A thread goes round alone on this OS thread, as long as this is kept.
pub(crate) struct Going(());

impl Going {
    pub(crate) fn begin() -> Going {
        NEXT.set(1);
        Going(())
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        NEXT.set(0);
    }
}

/// A thread comes to a hint. To be called where nothing has been done yet that differs from one round to the next.
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

/// The end of the stack, and the registers that a function leaves as they were. On other processors nothing is looked at.
type Registers = [usize; if cfg!(target_arch = "aarch64") { 12 } else { 7 }];

/// It does nothing else, so that there is nothing in its frame but these registers and those that it has put there itself.
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

impl Runtime {
    /// Compares the registers and the stack of the thread that runs with what they were a round before, if it is to be known
    /// whether it counts.
    #[inline(never)]
    fn compare_state(&self, registers: &Registers) {
        // A hint in the middle of the runtime is none of the loop's.
        let Ok(mut inner) = self.inner.try_borrow_mut() else {
            return;
        };
        let me = self.current.get();
        let Some(further) = inner.driver.machine.further_of(me) else {
            return;
        };
        let left = ROUNDS_FURTHER.saturating_sub(further.rounds);
        NEXT.set(match left {
            0 | 1 => 0,
            2 => 1,
            more => more - 2,
        });
        let is_last = match left {
            1 => true,
            2 => false,
            _ => return,
        };
        // Code of the program may run on a stack of its own, of which nothing is known.
        let end = registers[0];
        let stack = inner.stacks.get(me.index()).copied().flatten();
        let Some((_, top)) = stack.filter(|&(bottom, top)| (bottom..top).contains(&end)) else {
            return;
        };
        let recorded = self.heap.record(false);
        let words = (end..top).step_by(size_of::<usize>()).map(|at| {
            let word = std::ptr::with_exposed_provenance::<usize>(at);
            // SAFETY: it is on the stack of the thread that runs, above its end, and aligned as that is. What is in it is the
            // program's, so it is read as a debugger would, to be compared and for nothing else.
            unsafe { word.read_volatile() }
        });
        let state: Vec<usize> = registers.iter().copied().chain(words).collect();
        if let Some(further) = inner.driver.machine.further_of(me) {
            match is_last {
                false => further.state = state,
                true => further.counts = further.state != state,
            }
        }
        self.heap.record(recorded);
    }
}
