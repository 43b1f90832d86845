//! How does an operation on a collection reach the runtime?

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::rt::{self, Key, ObjectKind, OpKind, Target, Touch};

/// The key in the labels of events.
pub(super) fn key<Q: Hash + ?Sized>(key: &Q) -> Key {
    let mut hasher = FxHasher::default();
    key.hash(&mut hasher);
    Key::of(hasher.finish())
}

/// Announces that a thread touches the collection at this address, and returns when the thread does
/// so. No other thread of the model runs until the next operation of this thread.
#[track_caller]
pub(crate) fn touch(address: usize, touch: Touch) {
    let target = Target {
        address,
        kind: ObjectKind::Opaque,
        memory: 0,
    };
    rt::perform(target, OpKind::Touch(touch));
}
