//! Which parts of an execution does the test want explored?
//!
//! A test may switch exploration off and on again while it runs (`stop_exploring`, `explore`), or
//! off for good (`skip_branch`). An event that happens while exploration is off is *fixed*, and the
//! point before it is frozen: no execution branches off there. Threads continue in the ordinary
//! order there, and choices have their outcome 0. The engine explores all other events as always,
//! races with fixed events included, as long as no branch is planned at a fixed event.

/// Whether exploration is on, and for which events of the execution it was on.
#[derive(Default, Debug)]
pub(crate) struct Regions {
    /// Whether an execution begins with exploration off.
    explicit: bool,
    /// Whether the next event is fixed.
    off: bool,
    /// Whether exploration is off for the rest of this execution.
    skipped: bool,
    /// For each event of the execution up to the last fixed one whether it is fixed.
    fixed: Vec<bool>,
    /// Whether any event of any execution was fixed.
    any: bool,
}

impl Regions {
    /// With `explicit`, exploration is off until the test switches it on.
    pub(crate) fn new(explicit: bool) -> Regions {
        Regions {
            explicit,
            off: explicit,
            ..Regions::default()
        }
    }

    pub(super) fn begin(&mut self) {
        self.off = self.explicit;
        self.skipped = false;
        self.fixed.clear();
    }

    /// Switches exploration on or off, unless this execution has skipped the rest.
    pub(crate) fn switch(&mut self, on: bool) {
        self.off = !on || self.skipped;
    }

    /// Switches exploration off for the rest of the execution.
    pub(crate) fn skip(&mut self) {
        self.skipped = true;
        self.off = true;
    }

    /// Whether the next event is fixed.
    #[inline]
    pub(super) fn off(&self) -> bool {
        self.off
    }

    /// The event at this position has happened.
    #[inline]
    pub(super) fn push(&mut self, position: usize) {
        if self.off {
            self.fix(position);
        }
    }

    #[cold]
    fn fix(&mut self, position: usize) {
        self.any = true;
        self.fixed.resize(position, false);
        self.fixed.push(true);
    }

    /// For each event of the execution up to the last fixed one whether it is fixed.
    pub(super) fn fixed(&self) -> &[bool] {
        &self.fixed
    }

    /// Continues an exploration in which some event was fixed, or none.
    pub(super) fn restore(&mut self, any: bool) {
        self.any = any;
    }

    /// Whether any event of any execution was fixed.
    pub(super) fn any(&self) -> bool {
        self.any
    }
}
