//! Is the reversal of a race planned already? A walk through the execution and the wakeup tree
//! answers this.

pub(super) mod consumed;
mod initials;
mod needed;
mod walk;

pub(super) use consumed::Consumed;
pub(super) use initials::touched;
pub(super) use needed::Needed;
pub(super) use walk::{Walk, comes_first};
