//! How many executions has an exploration made, and how large was its plan?

/// The progress of an exploration.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Stats {
    /// Executions that ran to an end.
    pub(crate) complete: u64,
    /// Executions that are pruned because other executions cover the rest of them.
    pub(crate) asleep: u64,
    /// Executions that are pruned because of an `assume`.
    pub(crate) assumed: u64,
    /// Executions that are pruned because a thread had made as many rounds as it may.
    pub(crate) rounds: u64,
    /// Executions that are pruned because a thread had looked in vain.
    pub(crate) in_vain: u64,
    /// Events in all executions, replayed ones included.
    pub(crate) events: u64,
    /// The most events in one execution.
    pub(crate) longest: usize,
}

impl Stats {
    /// Adds what another exploration of the same program has made.
    pub(crate) fn add(&mut self, other: &Stats) {
        let Stats {
            complete,
            asleep,
            assumed,
            rounds,
            in_vain,
            events,
            longest,
        } = other;
        self.complete += complete;
        self.asleep += asleep;
        self.assumed += assumed;
        self.rounds += rounds;
        self.in_vain += in_vain;
        self.events += events;
        self.longest = self.longest.max(*longest);
    }

    /// What was made since the `earlier` state of the same exploration.
    pub(crate) fn since(&self, earlier: &Stats) -> Stats {
        Stats {
            complete: self.complete - earlier.complete,
            asleep: self.asleep - earlier.asleep,
            assumed: self.assumed - earlier.assumed,
            rounds: self.rounds - earlier.rounds,
            in_vain: self.in_vain - earlier.in_vain,
            events: self.events - earlier.events,
            longest: self.longest,
        }
    }

    /// Executions that were begun, pruned ones included.
    pub(crate) fn begun(&self) -> u64 {
        self.complete + self.given_up()
    }

    /// The pruned ones among them, for any reason.
    pub(crate) fn given_up(&self) -> u64 {
        self.asleep + self.left_out()
    }

    /// The executions that no other execution covers. Only these are shown and counted where an
    /// execution is named by its number.
    pub(crate) fn numbered(&self) -> u64 {
        self.complete + self.left_out()
    }

    /// The executions that the program or a setting leaves out of the exploration.
    pub(crate) fn left_out(&self) -> u64 {
        self.assumed + self.rounds + self.in_vain
    }
}

/// The wakeup trees of an exploration at their largest.
///
/// A wakeup tree is an ordered tree of the sequences that are still to be explored from one place
/// (*Source Sets*, J.ACM 64:4, 2017, section 6). Each of its branches becomes one execution. Under
/// [`Algorithm::Optimal`](crate::Algorithm::Optimal) the trees are what an exploration needs memory
/// for. If the exploration was resumed from a checkpoint or has begun anew, the numbers are those
/// since then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trees {
    /// The most events from the beginning of an execution to the end of a branch. The events behind
    /// a branch are not planned, so this is at most the length of the
    /// [longest](crate::Report::longest) execution.
    pub depth: usize,
    /// The most branches of one tree at once, begun ones not included.
    ///
    /// With an [`Order`](crate::Order) other than depth-first there is one tree for all places, and
    /// this number is `branches`.
    pub widest: usize,
    /// The most branches of all trees at once, begun ones not included.
    pub branches: usize,
    /// The most bytes that the steps of the trees took at once. An exploration holds more memory
    /// than this: sleep sets, and room for further steps.
    pub bytes: usize,
}
