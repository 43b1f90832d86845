//! Are elements of arrays told by their index?

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use dpor::sync::{Arc, Mutex, RwLock};
use dpor::{Failure, thread};

use super::failures::{Named, fails};

/// Those whose reports are kept.
pub const ALL: &[Named] = &[
    ("flags_of_two_threads", flags_of_two_threads),
    ("stripes_in_another_order", stripes_in_another_order),
];

/// Two threads have clones of one vector of locks and call them by other names, and by indices of
/// the same name.
fn stripes_in_another_order() -> Failure {
    fails(|| {
        let m: Arc<Vec<Mutex<u32>>> = Arc::new((0..3).map(Mutex::new).collect());
        let n = m.clone();
        let other = thread::spawn(move || {
            let (i, j) = (2, 1);
            let _one = n[i].lock().unwrap();
            let _other = n[j].lock().unwrap();
        });
        let (i, j) = (1, 2);
        let one = m[i].lock().unwrap();
        drop(m[j].lock().unwrap());
        drop(one);
        other.join().unwrap();
    })
}

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
    // So it is if the first one is not used: the array has a block of its own.
    let behind = names("a[", || {
        let a: Vec<AtomicU32> = all::<_, 4>().into();
        for i in [1, 3] {
            a[i].store(1, SeqCst);
        }
        panic!("to be told");
    });
    assert_eq!(behind, ["a[1]", "a[3]"]);
    // An array in a block with others may have anything before the second one.
    struct Ring {
        _head: AtomicU32,
        slots: [AtomicU32; 3],
    }
    let inside = names("ring.slots[", || {
        let ring = Box::new(Ring {
            _head: AtomicU32::new(0),
            slots: all(),
        });
        for i in [1, 2] {
            ring.slots[i].store(1, SeqCst);
        }
        panic!("to be told");
    });
    assert_eq!(inside, ["ring.slots[_]", "ring.slots[_]#2"]);
    // Unless the first and the last one are in use: the declaration says how many there are.
    struct Flags {
        flags: [AtomicU32; 2],
        _other: AtomicU32,
    }
    let spanned = names("f.flags[", || {
        let f = Box::new(Flags {
            flags: all(),
            _other: AtomicU32::new(0),
        });
        for i in [1, 0] {
            f.flags[i].store(1, SeqCst);
        }
        panic!("to be told");
    });
    assert_eq!(spanned, ["f.flags[0]", "f.flags[1]"]);
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

/// The distance of locks from each other is found by the least that one takes.
#[test]
fn a_lock_has_as_many_bytes_as_the_reports_count_on() {
    assert!(size_of::<Mutex<()>>() >= 17 && size_of::<RwLock<()>>() >= 17);
}

/// One name for the array, in every thread, and the index of each element: also where the program says neither.
#[test]
fn an_array_has_one_name_and_what_goes_through_it_none() {
    struct Table {
        hazards: [AtomicUsize; 3],
    }
    let table = || Table { hazards: all() };
    // What a loop calls each of them.
    let looped = names("shared.hazards[", move || {
        let shared = Arc::new(table());
        for hazard in &shared.hazards {
            hazard.store(1, SeqCst);
        }
        panic!("to be told");
    });
    let told = [
        "shared.hazards[0]",
        "shared.hazards[1]",
        "shared.hazards[2]",
    ];
    assert_eq!(looped, told);
    // And with a number, by an iterator, or in a closure; other threads have other names for what the array is in.
    for how in 0..4 {
        let through = names("shared.hazards[", move || {
            let shared = Arc::new(table());
            let theirs = shared.clone();
            for hazard in &shared.hazards {
                hazard.store(1, SeqCst);
            }
            let other = thread::spawn(move || match how {
                0 => {
                    for (_nth, hazard) in theirs.hazards.iter().enumerate().rev() {
                        hazard.store(2, SeqCst);
                    }
                }
                1 => theirs.hazards.iter().rev().for_each(|hazard| {
                    hazard.store(2, SeqCst);
                }),
                2 => {
                    let found = theirs
                        .hazards
                        .iter()
                        .position(|hazard| hazard.load(SeqCst) == 7);
                    assert_eq!(found, None);
                }
                _ => {
                    let me = 2;
                    theirs.hazards[me].store(2, SeqCst);
                }
            });
            other.join().unwrap();
            panic!("to be told");
        });
        assert_eq!(through, told, "{how}");
    }
    // Two threads that use none of the same.
    let apart = names("own[", || {
        let own: Arc<Vec<AtomicUsize>> = Arc::new(all::<_, 4>().into());
        let theirs = own.clone();
        let other = thread::spawn(move || {
            let me = 3;
            theirs[me].store(1, SeqCst);
        });
        let me = 1;
        own[me].store(1, SeqCst);
        other.join().unwrap();
        panic!("to be told");
    });
    assert_eq!(apart, ["own[1]", "own[3]"]);
    // Two arrays beside each other, of which one thread uses both.
    struct Both {
        a: [AtomicUsize; 2],
        b: [AtomicUsize; 2],
    }
    let two = |begin: &str| {
        names(begin, || {
            let both = Box::new(Both { a: all(), b: all() });
            let (a, b) = (&both.a, &both.b);
            for i in 0..2 {
                a[i].store(1, SeqCst);
                b[i].store(1, SeqCst);
            }
            panic!("to be told");
        })
    };
    assert_eq!(two("a["), ["a[0]", "a[1]"]);
    assert!(two("b[").iter().all(|name| name.starts_with("b[_]")));
    // A loop over values of their own names none of them otherwise.
    let values = names("each", || {
        let values = [Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0))];
        for each in &values {
            each.store(1, SeqCst);
        }
        panic!("to be told");
    });
    assert_eq!(values, ["each", "each#2"]);
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
