//! A mailbox for one letter, tested with loom: written for it, and run with `dpor` under its name.
//!
//! `cargo test` runs the ordinary test; `RUSTFLAGS="--cfg loom" cargo test` explores. The crate has no std, as many that are
//! tested with loom, so what the macros expand to names nothing of it.
#![no_std]

#[cfg(loom)]
mod sync {
    pub use loom::cell::UnsafeCell;
    pub use loom::sync::atomic::{AtomicUsize, Ordering};
}

#[cfg(not(loom))]
mod sync {
    pub use core::sync::atomic::{AtomicUsize, Ordering};

    /// Core's cell with what loom's has.
    #[derive(Debug)]
    pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub fn new(value: T) -> UnsafeCell<T> {
            UnsafeCell(core::cell::UnsafeCell::new(value))
        }

        pub fn get_mut(&self) -> MutPtr<T> {
            MutPtr(self.0.get())
        }
    }

    /// Loom's pointer to what is in a cell.
    #[derive(Debug)]
    pub struct MutPtr<T>(*mut T);

    impl<T> MutPtr<T> {
        /// # Safety
        ///
        /// Nobody else uses the cell meanwhile.
        #[allow(clippy::mut_from_ref)]
        pub unsafe fn deref(&self) -> &mut T {
            // SAFETY: the caller's contract.
            unsafe { &mut *self.0 }
        }
    }
}

use sync::{AtomicUsize, Ordering, UnsafeCell};

/// What the tests count.
#[cfg(loom)]
mod counts {
    use core::cell::Cell;

    loom::thread_local! {
        /// How many letters the current thread has put somewhere.
        pub static PUT: Cell<usize> = const { Cell::new(0) };
        /// How many it has taken.
        pub static TAKEN: Cell<usize> = Cell::new(usize::MIN)
    }

    loom::lazy_static! {
        /// How many letters a mailbox has room for.
        pub static ref ROOM: usize = 1;
    }

    pub(super) fn one_more(of: &'static loom::thread::LocalKey<Cell<usize>>) {
        of.with(|count| count.set(count.get() + 1));
    }
}
#[cfg(loom)]
pub use counts::{PUT, ROOM, TAKEN};

const EMPTY: usize = 0;
const BUSY: usize = 1;
const FULL: usize = 2;

/// Room for one letter.
#[derive(Debug)]
pub struct Mailbox<T> {
    state: AtomicUsize,
    letter: UnsafeCell<Option<T>>,
}

// SAFETY: the letter is only touched by the thread that has made the state `BUSY`.
unsafe impl<T: Send> Sync for Mailbox<T> {}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Mailbox::new()
    }
}

impl<T> Mailbox<T> {
    /// An empty mailbox.
    pub fn new() -> Mailbox<T> {
        Mailbox {
            state: AtomicUsize::new(EMPTY),
            letter: UnsafeCell::new(None),
        }
    }

    fn claim(&self, from: usize) -> bool {
        let claimed = self
            .state
            .compare_exchange(from, BUSY, Ordering::Acquire, Ordering::Relaxed);
        claimed.is_ok()
    }

    /// Puts a letter in; gives it back if there is no room.
    pub fn put(&self, letter: T) -> Result<(), T> {
        if !self.claim(EMPTY) {
            return Err(letter);
        }
        // SAFETY: the state is `BUSY`, by this thread.
        unsafe { *self.letter.get_mut().deref() = Some(letter) };
        self.state.store(FULL, Ordering::Release);
        #[cfg(loom)]
        counts::one_more(&PUT);
        Ok(())
    }

    /// Takes the letter out, if there is one.
    pub fn take(&self) -> Option<T> {
        if !self.claim(FULL) {
            return None;
        }
        // SAFETY: the state is `BUSY`, by this thread.
        let letter = unsafe { self.letter.get_mut().deref().take() };
        self.state.store(EMPTY, Ordering::Release);
        #[cfg(loom)]
        counts::one_more(&TAKEN);
        letter
    }
}
