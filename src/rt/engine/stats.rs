//! How many executions has an exploration made?

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
