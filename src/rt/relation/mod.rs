//! Which operations are independent, and which events happen before which?

pub(crate) mod conflict;
pub(crate) mod happens_before;
pub(crate) mod independence;
pub(crate) mod key;
