//! When does a loop wait for a change?

pub(crate) mod spin;
