//! Which failures of blocks and pointers have their reports kept, besides those of the first file?

use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::Ordering::AcqRel;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicPtr;
use dpor::{Failure, thread};

use super::failures::{Named, fails, free, look, node};

/// Each of them.
pub const ALL: &[Named] = &[
    ("leaked_nodes", leaked_nodes),
    ("marked_pointer", marked_pointer),
];

/// Several blocks, of several threads.
fn leaked_nodes() -> Failure {
    fails(|| {
        let nodes = [node(), node()];
        thread::spawn(|| look(node())).join().unwrap();
        nodes
            .map(look)
            .iter()
            .for_each(|&value| assert_eq!(value, 7));
    })
}

/// An address that is a number, and a reference that is cloned by the path of the function.
fn marked_pointer() -> Failure {
    fails(|| {
        let head = Arc::new(AtomicPtr::new(null_mut()));
        let theirs = Arc::clone(&head);
        let closer = thread::spawn(move || {
            theirs.swap(without_provenance_mut(1), AcqRel);
        });
        let mine = node();
        let before = head.swap(mine, AcqRel);
        assert!(before.is_null(), "it was closed");
        free(mine);
        closer.join().unwrap();
    })
}
