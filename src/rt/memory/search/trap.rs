//! Which rule of the search does a test leave out, to see that it is needed?

/// A rule of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trap {
    /// The place of a store is an interval.
    Interval,
    /// Old events are reversed: a load and a store that both lie in the prefix which the execution
    /// kept from the one before.
    Old,
    /// A planned sequence has all events that do not need the reversed one.
    Whole,
    /// A reversed compare-exchange gets its outcomes anew.
    Anew,
    /// A read-modify-write can lose its store to one of another thread,
    Losers,
    /// if that one reads the same store.
    Rivals,
    /// A step covers a sequence that has no event of its thread and leaves its outcome possible.
    Available,
    /// A planned sequence has the events that wake the steps which will be asleep.
    Wakers,
    /// A finding that rests on steps which the next execution has not is dropped.
    Evidence,
    /// What keeps a read lock is left out for a writer,
    Readers,
    /// also where its thread has released a later read lock.
    Outermost,
    /// Awaits that read an old store are left out,
    Awaits,
    /// all of them at a time,
    AllAwaits,
    /// but for those that the outcome needs.
    NeededAwaits,
    /// Loads and stores are reversed without the graph. The search is right without that.
    #[cfg(test)]
    Apart,
}
