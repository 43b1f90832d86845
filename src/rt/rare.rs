//! Which way does the code go that an execution mostly takes?
//!
//! An execution of a short test goes once through some 60 KB of code, which is about what the first
//! cache for code holds. So what is hardly ever needed must not lie in between. The compiler sees
//! that of panics and of functions that are `#[cold]`; of anything else it has to be told, and then
//! it puts the other branch behind the function, and saves registers only there.

/// Marks the place where it is called as rarely reached, as `std::hint::cold_path` does.
///
/// That function is newer than the oldest compiler this crate supports.
#[cold]
pub const fn cold_path() {}

/// A condition that hardly ever holds. No function, because the compiler must see the mark where it
/// sees the branch.
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

/// A list that mostly has room for another item, so that what makes room is not in the way.
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
