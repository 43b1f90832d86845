//! Are elements of arrays told by their index?

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use dpor::{Failure, thread};

use super::failures::{Named, fails};

/// Those whose reports are kept.
pub const ALL: &[Named] = &[("flags_of_two_threads", flags_of_two_threads)];

/// Each thread calls its own flag `flags[me]`, and the other one's `flags[1 - me]`. Who has looked takes its flag down too early.
fn flags_of_two_threads() -> Failure {
    fails(|| {
        let flags: Arc<[AtomicBool]> = (0..2).map(|_| AtomicBool::new(false)).collect();
        let inside = Arc::new(AtomicUsize::new(0));
        let threads = [0, 1].map(|me| {
            let (flags, inside) = (flags.clone(), inside.clone());
            thread::spawn(move || {
                flags[me].store(true, SeqCst);
                if flags[1 - me].load(SeqCst) {
                    return;
                }
                flags[me].store(false, SeqCst);
                assert_eq!(inside.fetch_add(1, SeqCst), 0, "both are inside");
                inside.fetch_sub(1, SeqCst);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
    })
}

/// What a report calls the atomics that begin with this.
fn names(begin: &str, run: impl Fn() + Send + Sync + 'static) -> Vec<String> {
    let report = fails(run).to_string();
    let words = report.split_whitespace();
    let names: BTreeSet<&str> = words.filter(|word| word.starts_with(begin)).collect();
    names.into_iter().map(str::to_owned).collect()
}

fn all<T: Default, const N: usize>() -> [T; N] {
    [(); N].map(|()| T::default())
}

#[derive(Default)]
struct Slot {
    turn: AtomicU32,
    value: AtomicU32,
}

#[derive(Default)]
#[repr(align(64))]
struct Padded(AtomicU32);

impl std::ops::Deref for Padded {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        &self.0
    }
}

#[test]
fn an_element_has_an_index_where_it_is_known() {
    // An array that has a block of its own, of which the first one is used.
    let alone = names("a[", || {
        let a: Vec<AtomicU32> = all::<_, 4>().into();
        for i in [0, 3] {
            a[i].store(1, SeqCst);
        }
        panic!("to be told");
    });
    assert_eq!(alone, ["a[0]", "a[3]"]);
    // The block may have anything before the second one.
    let behind = names("a[", || {
        let a: Vec<AtomicU32> = all::<_, 4>().into();
        for i in [1, 3] {
            a[i].store(1, SeqCst);
        }
        panic!("to be told");
    });
    assert_eq!(behind, ["a[_]", "a[_]#2"]);
    // On a stack nobody knows where it begins, unless the program says so somewhere.
    let somewhere = names("a[", || {
        let a: [AtomicU32; 4] = all();
        for i in [0, 1] {
            a[i].store(1, SeqCst);
        }
        panic!("to be told");
    });
    assert_eq!(somewhere, ["a[_]", "a[_]#2"]);
    let said = names("a[", || {
        let a: [AtomicU32; 4] = all();
        for i in [2, 1] {
            a[i].store(1, SeqCst);
        }
        a[2].load(SeqCst);
        panic!("to be told");
    });
    assert_eq!(said, ["a[1]", "a[2]"]);
    // Also if it is the only one.
    let only = names("a[", || {
        let a: [AtomicU32; 4] = all();
        let i = 2;
        a[i].store(1, SeqCst);
        a[2].load(SeqCst);
        panic!("to be told");
    });
    assert_eq!(only, ["a[2]"]);
    // An only one that nobody says is called what it is called.
    let alone = names("a[", || {
        let a: [AtomicU32; 4] = all();
        let i = 2;
        a[i].store(1, SeqCst);
        panic!("to be told");
    });
    assert_eq!(alone, ["a[i]"]);
}

#[test]
fn how_far_elements_are_from_each_other_is_not_guessed() {
    let slots = |used: &'static [usize]| {
        names("slots[", move || {
            let slots: Vec<Slot> = all::<_, 2>().into();
            for &i in used {
                slots[i].turn.store(1, SeqCst);
                slots[i].value.store(1, SeqCst);
            }
            panic!("to be told");
        })
    };
    assert_eq!(slots(&[0]), ["slots[i].turn", "slots[i].value"]);
    // All of the block is used.
    let both = slots(&[0, 1]);
    assert_eq!(
        both,
        [
            "slots[0].turn",
            "slots[0].value",
            "slots[1].turn",
            "slots[1].value"
        ]
    );
    // There may be others in between, or only room.
    let padded = |last: usize| {
        names("a[", move || {
            let a: Vec<Padded> = all::<_, 4>().into();
            for i in [0, last] {
                a[i].0.store(1, SeqCst);
            }
            panic!("to be told");
        })
    };
    assert_eq!(padded(2), ["a[_].0", "a[_].0#2"]);
    // The element is all that there is in it, as far as its name goes.
    let through = |first: usize, last: usize| {
        names("a[", move || {
            let a: Vec<Padded> = all::<_, 4>().into();
            for i in [first, last] {
                a[i].store(1, SeqCst);
            }
            panic!("to be told");
        })
    };
    assert_eq!(through(0, 1), ["a[0]", "a[1]"]);
    assert_eq!(through(0, 2), ["a[_]", "a[_]#2"]);
    // Two numbers say it.
    let said = names("a[", || {
        let a: Vec<Padded> = all::<_, 4>().into();
        a[0].0.store(1, SeqCst);
        a[2].0.store(1, SeqCst);
        let i = 3;
        a[i].0.store(1, SeqCst);
        panic!("to be told");
    });
    assert_eq!(said, ["a[0].0", "a[2].0", "a[3].0"]);
}

#[test]
fn two_arrays_of_one_name_are_not_taken_for_one() {
    struct Ring {
        slots: [AtomicU32; 2],
        head: AtomicU32,
    }
    impl Ring {
        fn use_all(&self) {
            self.head.store(1, SeqCst);
            for i in 0..2 {
                self.slots[i].store(1, SeqCst);
            }
        }
    }
    // One of them says what its first one is, and what is between them says that the other's are none of its own.
    let rings = names("self.slots[", || {
        let ring = || Ring {
            slots: all(),
            head: AtomicU32::new(0),
        };
        let rings = Box::new([ring(), ring()]);
        for ring in rings.iter() {
            ring.use_all();
        }
        rings[0].slots[0].load(SeqCst);
        panic!("to be told");
    });
    let names = [
        "self.slots[0]",
        "self.slots[_]",
        "self.slots[_]#2",
        "self.slots[_]#3",
    ];
    assert_eq!(rings, names);
}
