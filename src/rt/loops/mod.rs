//! When does a loop wait?

pub(crate) mod spin;
