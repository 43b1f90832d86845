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

/// `condition`, which hardly ever holds.
#[inline(always)]
pub(crate) const fn rarely(condition: bool) -> bool {
    if condition {
        cold_path();
    }
    condition
}

/// `condition`, which nearly always holds.
#[inline(always)]
pub(crate) const fn mostly(condition: bool) -> bool {
    if !condition {
        cold_path();
    }
    condition
}
