//! Which branches does an execution usually take?
//!
//! An execution of a short test runs once through some 60 KB of code, which is about the size of
//! the first-level instruction cache. So rarely needed code must not lie in between. The compiler
//! recognises panics and functions that are `#[cold]`. Other rare branches need a mark; then the
//! compiler puts them behind the function, and saves registers only there.

/// Marks the place of its call as rarely reached, as `std::hint::cold_path` does.
///
/// That function is newer than the oldest compiler that this crate supports.
#[cold]
pub const fn cold_path() {}

/// A condition that rarely holds. It is no function, because the compiler must see the mark
/// together with the branch.
macro_rules! rarely {
    ($condition:expr) => {{
        let holds: bool = $condition;
        if holds {
            $crate::rt::rare::cold_path();
        }
        holds
    }};
}
pub(crate) use rarely;

/// A condition that nearly always holds.
macro_rules! mostly {
    ($condition:expr) => {{
        let holds: bool = $condition;
        if !holds {
            $crate::rt::rare::cold_path();
        }
        holds
    }};
}
pub(crate) use mostly;

/// A list that usually has room for another item, so the code that makes room is kept out of line.
pub(crate) trait Roomy<T> {
    fn put(&mut self, item: T);
}

impl<T> Roomy<T> for Vec<T> {
    #[inline(always)]
    fn put(&mut self, item: T) {
        if rarely!(self.len() == self.capacity()) {
            make_room(self);
        }
        self.push(item);
    }
}

#[cold]
#[inline(never)]
fn make_room<T>(list: &mut Vec<T>) {
    list.reserve(1);
}
