//! What do people read when a test has failed?

pub(crate) mod cycle;
mod memory;
pub(crate) mod places;
pub(crate) mod source;
pub(crate) mod text;
pub(crate) mod words;
