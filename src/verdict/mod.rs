//! The verdict of an exploration: what was covered, which failure was found, and which outcomes.

pub(crate) mod failure;
pub(crate) mod outcomes;
pub(crate) mod plural;
pub(crate) mod report;
