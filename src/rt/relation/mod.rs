//! Which operations are independent, and which events happen before which?

pub(crate) mod class;
pub(crate) mod happens_before;
pub(crate) mod independence;
pub(crate) mod key;
pub(crate) mod label;
pub(crate) mod prefetch;
