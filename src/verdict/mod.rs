//! The verdict of an exploration: the explored part of the traces, the failures, and the outcomes
//! that the test has recorded.

pub(crate) mod assumption;
pub(crate) mod estimated;
pub(crate) mod failure;
pub(crate) mod further;
pub(crate) mod outcomes;
pub(crate) mod report;
pub(crate) mod vacuous;
pub(crate) mod weak;
