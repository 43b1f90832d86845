//! Which way does the code go that an execution mostly takes?
//!
//! An execution of a short test goes once through some 60 KB of code, which is about what the first cache for code holds. So
//! what is hardly ever needed must not lie in between. The compiler sees that of panics and of functions that are
//! `#[cold]`; of anything else it has to be told, and then it puts the other branch behind the function, and saves registers
//! only there.

/// Marks the place where it is called as rarely reached, as `std::hint::cold_path` does.
///
/// That function is newer than the oldest compiler this crate supports.
#[cold]
pub const fn cold_path() {}

/// A condition that hardly ever holds. No function, because the compiler must see the mark where it sees the branch.
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
