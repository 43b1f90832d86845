//! Where does the next execution leave the last one?

use crate::rt::event::Site;
use crate::rt::event::operation::Step;
use crate::rt::relation::independence::Label;

/// The point where the next execution leaves the last one, and the steps from there.
#[derive(Default, Debug)]
pub(crate) struct Plan {
    /// The number of events at the beginning of the last execution that stay as they are.
    pub(crate) common_prefix: usize,
    /// The steps that follow them, before the driver asks the explorer again. Where the label is
    /// known, the event must have this label.
    pub(crate) steps: Vec<(Step, Option<Label>)>,
    /// How many of the next steps only repeat events of another process, or of an earlier execution
    /// than the last. The explorer may choose these steps instead of planning them.
    pub(crate) repeated: usize,
    /// The site of the event that the first of the other steps replaces, if that event is not one
    /// of the last execution.
    pub(crate) replaces: Option<Site>,
    /// Whether the execution branches off the last one although no steps are planned here.
    pub(crate) branches: bool,
}

impl Plan {
    /// Makes the plan empty.
    pub(crate) fn clear(&mut self) {
        self.common_prefix = 0;
        self.steps.clear();
        self.repeated = 0;
        self.replaces = None;
        self.branches = false;
    }
}
