//! What a further pass has explored: behaviour that std permits, and that the first pass left out.

use std::fmt;

use crate::rt::plural::counted;
use crate::verdict::assumption::AssumptionKind;

/// A pass that explored one kind of behaviour that std permits, after the model had passed.
///
/// `Display` writes the behaviour with the number of executions:
/// `spurious wake-ups (12 executions)`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Further {
    /// The behaviour that was explored.
    pub kind: AssumptionKind,
    /// Number of executions of this pass.
    pub executions: u64,
    /// Whether the pass explored every trace in which each thread meets the behaviour once at most.
    ///
    /// Otherwise the budget of [`Thorough::Bounded`](crate::Thorough::Bounded) has cut the pass
    /// short, or a limit or a loop that ended the pass early.
    pub complete: bool,
    /// The sentence of a failure that has ended the pass and says nothing about its behaviour: an
    /// execution exceeds a limit, or the model is not deterministic. `None` if there was none.
    pub ended: Option<String>,
}

impl fmt::Display for Further {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let executions = counted(self.executions, "execution");
        write!(f, "{} ({executions}", self.kind.what())?;
        match &self.ended {
            Some(ended) => write!(f, ", ended early: {ended}")?,
            None if self.complete => {}
            None => f.write_str(", not all; DPOR_THOROUGH=1 has no budget")?,
        }
        f.write_str(")")
    }
}
