//! Which quiet drop glue runs? (`glue.rs` says what quiet glue is.)

use crate::rt::coroutine::Stretch;
use crate::rt::event::Site;

/// Glue that is taken for quiet, and runs.
#[derive(Clone, Copy)]
pub(crate) struct Glue {
    /// The address of the counts, and the place at which the value was put into its `Arc`.
    pub(super) counts: usize,
    pub(super) site: Site,
    /// The number of the last block that was listed before.
    pub(super) listed: u64,
    /// What [`Runtime::roomy`](super::context::Runtime) was before. Meanwhile each action takes the
    /// way that notes it.
    pub(super) roomy: Stretch,
}
