//! Which failures of blocks and pointers have their reports kept, besides those of the first file?

use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicPtr, AtomicUsize};
use dpor::{Failure, thread};

use super::failures::{Named, fails, free, look, node};

/// Each of them.
pub const ALL: &[Named] = &[
    ("leaked_nodes", leaked_nodes),
    ("made_elsewhere", made_elsewhere),
    ("marked_pointer", marked_pointer),
    ("overwritten_link", overwritten_link),
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

/// A node whose making is not published: the pointer to it is stored without an ordering.
fn made_elsewhere() -> Failure {
    fails(|| {
        let head = Arc::new(AtomicPtr::new(null_mut()));
        let theirs = head.clone();
        let maker = thread::spawn(move || theirs.store(node(), Relaxed));
        let node = head.load(Relaxed);
        if !node.is_null() {
            look(node);
        }
        maker.join().unwrap();
        free(head.load(Relaxed));
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

struct Link {
    next: AtomicPtr<Link>,
}

/// A queue that appends without looking whether somebody else has.
struct Queue {
    first: Link,
    tail: AtomicPtr<Link>,
}

impl Queue {
    #[rustfmt::skip]
    fn append(&self) {
        let next = AtomicPtr::new(null_mut());
        let link = Box::into_raw(Box::new(Link { next }));
        let tail = self.tail.load(Acquire);
        // SAFETY: links are freed when nobody appends any more.
        unsafe { &*tail }
            .next
            .store(link, Release);
        self.tail.store(link, Release);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut next = *self.first.next.get_mut();
        while !next.is_null() {
            // SAFETY: it is reached by one way only, and this is the end of it.
            next = *unsafe { Box::from_raw(next) }.next.get_mut();
        }
    }
}

/// A list, of which one link is lost that another one leads to.
fn overwritten_link() -> Failure {
    fails(|| {
        let queue = Arc::new(Queue {
            first: Link {
                next: AtomicPtr::new(null_mut()),
            },
            tail: AtomicPtr::new(null_mut()),
        });
        queue
            .tail
            .store((&raw const queue.first).cast_mut(), Release);
        let theirs = queue.clone();
        let other = thread::spawn(move || theirs.append());
        queue.append();
        other.join().unwrap();
    })
}

#[test]
fn a_part_of_a_block_to_which_several_pointers_lead_is_not_told_by_one_of_them() {
    let named = |of: fn(&[Counter; 2]) -> [*mut Counter; 2]| {
        let failure = fails(move || {
            let counters = Box::new([Counter::default(), Counter::default()]);
            let [one, other] = of(&counters).map(AtomicPtr::new);
            for of in [&one, &other] {
                // SAFETY: they are freed below.
                unsafe { &*of.load(SeqCst) }.count.store(1, SeqCst);
            }
            panic!("it is told");
        });
        let report = failure.to_string();
        let words = report.split_whitespace();
        let all = words.filter(|word| word.contains("count"));
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    let same = named(|counters| [0, 0].map(|at| (&raw const counters[at]).cast_mut()));
    assert_eq!(same, ["ptr1.count", "ptr1.count"]);
    let both = named(|counters| [0, 1].map(|at| (&raw const counters[at]).cast_mut()));
    let name = "of.load(SeqCst).count";
    assert_eq!(both, [name.to_owned(), format!("{name}#2")]);
}

#[derive(Default)]
struct Counter {
    count: AtomicUsize,
}

#[test]
fn a_pointer_is_told_by_its_block_however_many_executions_had_others() {
    let failure = fails(|| {
        let place = AtomicUsize::new(0);
        let many = dpor::choose(100);
        let boxes: Vec<Box<Counter>> = (0..=many).map(|_| Box::default()).collect();
        place.store((&raw const *boxes[many]).expose_provenance(), SeqCst);
        assert!(many < 90, "it is told");
    });
    let report = failure.to_string();
    assert!(report.contains("place := ptr1 (was 0)"), "{report}");
}
