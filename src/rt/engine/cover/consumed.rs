//! The part of a sequence that a walk down a wakeup tree has used up.

use crate::rt::engine::sequence::SequenceEvent;
use crate::rt::event::NOWHERE;
use crate::rt::pooled::Empty;
use crate::rt::relation::independence::Label;

/// By what a walk has come.
#[derive(Default)]
pub(crate) struct Consumed {
    /// For each thread how many of its events lie before the sequence or are among it; 0 as long as
    /// none is among it and nobody has asked.
    pub(super) gone: Vec<u32>,
    /// The labels of the steps that are not in the sequence and change a count.
    pub(super) others: Vec<Label>,
    /// Whether the reversed event is among it.
    pub(super) second: bool,
}

impl Empty for Consumed {
    fn empty(&mut self) {
        let Consumed {
            gone,
            others,
            second,
        } = self;
        gone.empty();
        others.empty();
        *second = false;
    }
}

impl Consumed {
    /// It is nothing.
    #[inline]
    pub(super) fn clear(&mut self, threads: usize) {
        self.gone.clear();
        self.gone.resize(threads, 0);
        self.others.clear();
        self.second = false;
    }

    /// Whether this item is among it.
    pub(crate) fn has(&self, item: &SequenceEvent) -> bool {
        match item.position {
            NOWHERE => self.second,
            _ => {
                let gone = self.gone.get(item.step.thread.index());
                gone.is_some_and(|&gone| item.index < gone)
            }
        }
    }

    /// Whether there are steps among it that are not in the sequence and change a count.
    pub(crate) fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// The label that an item has which had this one without the steps that are not in the
    /// sequence.
    pub(crate) fn count_in(&self, label: Label) -> Label {
        count_after(&self.others, label)
    }
}

/// The label that an event has which has this one if these are not executed before it. Mostly there
/// are none.
#[inline]
pub(super) fn count_after(others: &[Label], label: Label) -> Label {
    match others {
        [] => label,
        _ => count_after_some(others, label),
    }
}

#[inline(never)]
fn count_after_some(others: &[Label], label: Label) -> Label {
    let others = others.iter();
    let others = others.filter(|other| other.object() == label.object());
    others.fold(label, |label, other| label.after(other.class()))
}
