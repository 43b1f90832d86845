//! Lifetime of blocks: owners, frees, and uses that a free overtakes.

pub(crate) mod delayed_use;
pub(crate) mod owners;
pub(crate) mod shown;
