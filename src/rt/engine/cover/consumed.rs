//! The consumed part of a sequence: the part that a walk down a wakeup tree has used up.

use crate::rt::engine::sequence::SequenceEvent;
use crate::rt::event::NOWHERE;
use crate::rt::pooled::Empty;
use crate::rt::relation::independence::Label;

/// The steps that a walk has consumed.
#[derive(Default)]
pub(crate) struct Consumed {
    /// For each thread the number of its events that lie before the sequence or are consumed; 0 as
    /// long as none is consumed and no walk has looked the number up.
    pub(super) gone: Vec<u32>,
    /// The labels of the consumed steps that are not in the sequence and change a count.
    pub(super) others: Vec<Label>,
    /// Whether the reversed event is consumed.
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
    /// Makes the consumed part empty.
    #[inline]
    pub(super) fn clear(&mut self, threads: usize) {
        self.gone.clear();
        self.gone.resize(threads, 0);
        self.others.clear();
        self.second = false;
    }

    /// Whether this item is consumed.
    pub(crate) fn has(&self, item: &SequenceEvent) -> bool {
        match item.position {
            NOWHERE => self.second,
            _ => {
                let gone = self.gone.get(item.step.thread.index());
                gone.is_some_and(|&gone| item.index < gone)
            }
        }
    }

    /// Whether consumed steps that are not in the sequence change a count.
    pub(crate) fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// The label of an item after the consumed steps that are not in the sequence. Without them the
    /// item has the label `label`.
    pub(crate) fn count_in(&self, label: Label) -> Label {
        count_after(&self.others, label)
    }
}

/// The label of an event after `others`. Without them the event has the label `label`. Mostly
/// `others` is empty.
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
