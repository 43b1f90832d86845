//! From the failing execution that was found to the one that the report shows: probes run the
//! closure again until the cause is plain.

pub(crate) mod bounded_loop;
pub(crate) mod crash_report;
pub(crate) mod delayed_use;
pub(crate) mod false_race;
pub(crate) mod fewest_switches;
pub(crate) mod minimize;
pub(crate) mod old_values;
pub(crate) mod orderings;
pub(crate) mod publication_order;
pub(crate) mod reproduce;
pub(crate) mod unseen_waker;
