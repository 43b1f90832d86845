//! The settings of one exploration, as the runtime needs them.

use std::time::Duration;

use crate::rt::event::Site;
use crate::rt::event::verdict::Block;
use crate::rt::event::weakened::Weakened;
use crate::rt::exec::crash_report::Unshown;
use crate::rt::exec::suppressed_races::InOrder;
use crate::rt::heap::MustFree;
use crate::rt::statics::rooted::Rooted;

/// The settings of an exploration.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// If a step does not return within this time, the watchdog reports this on standard error.
    pub(crate) patience: Option<Duration>,
    /// The site at which the model begins.
    pub(crate) site: Site,
    /// Which blocks must be freed by the end of an execution.
    pub(crate) must_free: MustFree,
    /// The treatment of blocks that hang from a static.
    pub(crate) statics: Rooted,
    /// The block to record: its allocation and its frees.
    pub(crate) watch: Option<Block>,
    /// Whether to record the callers of operations with sites outside of the program's source.
    pub(crate) callers: bool,
    /// The orderings that are replaced.
    pub(crate) weakened: Weakened,
    /// Builds the command that replays a schedule under these orderings in the test of this name.
    pub(crate) replay: fn(&str, &Weakened, Option<&str>) -> String,
    /// The number of the model among those of its test.
    pub(crate) nth: u64,
    /// The report of a failure, if the process ends before it is shown.
    pub(crate) report: fn(&Unshown<'_>) -> String,
    /// Whether other OS threads run the same closure meanwhile.
    pub(crate) is_shared: bool,
    /// Frees that are known to be in order.
    pub(crate) in_order: InOrder,
}
