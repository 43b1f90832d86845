//! Does the report name both accesses, and the orderings that are too weak?

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicUsize, fence};
use dpor::{Builder, FailureKind, thread};

use super::{Plain, message, race};

#[test]
fn a_report_names_both_accesses_and_the_orderings_that_are_too_weak() {
    let text = race(message(|x| x.store(1, Relaxed), |x| x.load(Acquire) == 1));
    let text = text.expect("a race");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("data race: main.1 and main access"),
        "{text}"
    );
    assert!(
        lines[1].contains("main.1     write  at tests/detected/data_races/mod.rs:"),
        "{text}"
    );
    assert!(
        lines[2].contains("main       read   at tests/detected/data_races/mod.rs:"),
        "{text}"
    );
    assert!(lines[3].contains("is Relaxed, and main's load"), "{text}");
    assert!(
        lines[3].contains("with at least Release and Acquire the two are ordered here"),
        "{text}"
    );
    // The schedule leads there again.
    let schedule = lines
        .iter()
        .find_map(|line| line.strip_prefix("schedule   "));
    let mut builder = Builder::new();
    builder.replay = schedule.map(str::to_owned);
    let again = builder.explore(message(|x| x.store(1, Relaxed), |x| x.load(Acquire) == 1));
    assert_eq!(again.expect_err("again").kind(), FailureKind::DataRace);
}

#[test]
fn a_compare_exchange_that_fails_is_told_by_the_ordering_that_it_fails_with() {
    let fails = |x: &AtomicUsize| x.compare_exchange(0, 2, AcqRel, Relaxed) == Err(1);
    let text = race(message(|x| x.store(1, Release), fails)).expect("a race");
    let line = text.lines().nth(3).expect("four lines");
    assert!(
        line.contains(" is Relaxed where it fails: with at least"),
        "{text}"
    );
    assert!(
        line.contains(" is Release, and main's compare-exchange"),
        "{text}"
    );
}

#[test]
fn where_a_third_thread_hands_it_on_the_orderings_that_lose_it_are_named() {
    // Main reads only what the second thread has written, and that one what the first one has.
    let told = |publish: Ordering, seen: Ordering, hand_on: Ordering| {
        let text = race(move || {
            let shared = Arc::new((Plain::default(), AtomicUsize::new(0), AtomicUsize::new(0)));
            let (one, two) = (shared.clone(), shared.clone());
            let writer = thread::spawn(move || {
                one.0.set(1);
                one.1.store(1, publish);
            });
            let middle = thread::spawn(move || {
                if two.1.load(seen) == 1 {
                    two.2.store(1, hand_on);
                }
            });
            if shared.2.load(Acquire) == 1 {
                shared.0.get();
            }
            writer.join().unwrap();
            middle.join().unwrap();
        });
        let text = text.expect("a race");
        text.lines().nth(3).unwrap_or_default().to_owned()
    };
    let expected = [
        (
            (Relaxed, Acquire, Release),
            ["main.1's store", "is Relaxed, and main.2's load"],
        ),
        (
            (Release, Relaxed, Release),
            ["main.1's store", "is Release, and main.2's load"],
        ),
        (
            (Release, Acquire, Relaxed),
            ["main.2's store", "is Relaxed, and main's load"],
        ),
    ];
    for ((publish, seen, hand_on), texts) in expected {
        let line = told(publish, seen, hand_on);
        assert!(texts.iter().all(|text| line.contains(text)), "{line}");
        assert!(
            line.ends_with("with at least Release and Acquire the two are ordered here"),
            "{line}"
        );
    }
    // Two pairs are too weak, and neither suffices by itself.
    let line = told(Relaxed, Acquire, Relaxed);
    assert_eq!(
        line,
        "  the two are ordered here with all of these together:"
    );
}

/// A cell, and what two threads tell each other by.
type Told = Arc<(Plain, AtomicUsize, AtomicUsize)>;

/// What is said of the orderings if one thread does this, and main that.
fn of_two(writer: fn(Told), reads: fn(&Told)) -> Vec<String> {
    let text = race(move || {
        let shared = Told::default();
        let theirs = shared.clone();
        let writer = thread::spawn(move || writer(theirs));
        reads(&shared);
        writer.join().unwrap();
    });
    let text = text.expect("a race");
    let lines = text.lines().skip(3);
    let lines = lines.take_while(|line| line.contains("ordered here") || line.starts_with("    "));
    lines.map(without_places).collect()
}

/// The line without where the operations are in the source.
fn without_places(line: &str) -> String {
    let words = line.split(' ');
    let kept = words.filter(|word| *word != "at" && !word.contains(".rs:"));
    kept.collect::<Vec<_>>().join(" ")
}

#[test]
fn pairs_that_have_to_be_stronger_together_are_all_named() {
    let text = race(|| {
        let shared = Told::default();
        let (one, two) = (shared.clone(), shared.clone());
        let writer = thread::spawn(move || {
            one.0.set(1);
            one.1.store(1, Relaxed);
        });
        let middle = thread::spawn(move || {
            if two.1.load(Acquire) == 1 {
                two.2.store(1, Release);
                two.1.store(2, Relaxed);
            }
        });
        if shared.1.load(Relaxed) == 2 {
            shared.0.get();
        }
        writer.join().unwrap();
        middle.join().unwrap();
    });
    let text = text.expect("a race");
    let said: Vec<String> = text.lines().skip(3).take(3).map(without_places).collect();
    let expected = [
        "  the two are ordered here with all of these together:",
        "    main.1's store to one.1 is Relaxed, and main.2's load one.1 is Acquire: least Release and Acquire",
        "    main.2's store to one.1 is Relaxed, and main's load one.1 is Relaxed: least Release and Acquire",
    ];
    assert_eq!(said, expected, "{text}");
}

#[test]
fn a_fence_makes_up_for_one_side_of_what_is_needed_together() {
    let text = race(|| {
        let shared = Told::default();
        let (one, two) = (shared.clone(), shared.clone());
        let writer = thread::spawn(move || {
            one.0.set(1);
            one.1.store(1, Relaxed);
        });
        let middle = thread::spawn(move || {
            if two.1.load(Relaxed) == 1 {
                fence(Release);
                fence(Acquire);
                two.2.store(1, Relaxed);
            }
        });
        if shared.2.load(Relaxed) == 1 {
            shared.0.get();
        }
        writer.join().unwrap();
        middle.join().unwrap();
    });
    let text = text.expect("a race");
    let said: Vec<String> = text.lines().skip(3).take(3).map(without_places).collect();
    // With the load as it is, what it has seen is only known behind the fence that would release it.
    let expected = [
        "  the two are ordered here with all of these together:",
        "    main.1's store to one.1 is Relaxed, and main.2's load one.1 is Relaxed before a fence that acquires: least Release",
        "    main.2's store to two.2 is Relaxed, and main's load two.2 is Relaxed: least Release and Acquire",
    ];
    assert_eq!(said, expected, "{text}");
}

#[test]
fn what_another_load_makes_up_for_is_no_fence() {
    // The second load says nothing that the first one does not.
    let said = of_two(
        |shared| {
            shared.0.set(1);
            shared.1.store(1, Relaxed);
        },
        |shared| {
            if shared.1.load(Acquire) == 1 && shared.1.load(Relaxed) == 1 {
                shared.0.get();
            }
        },
    );
    let expected = [
        "  main.1's store to shared.1 is Relaxed, and main's load shared.1 is Acquire: with least Release and Acquire the two are ordered here",
    ];
    assert_eq!(said, expected);
}

#[test]
fn each_pair_that_would_do_is_named() {
    let reads = |shared: &Told| {
        if shared.1.load(Relaxed) == 1 && shared.2.load(Relaxed) == 1 {
            shared.0.get();
        }
    };
    // Without either of them there is no access.
    let said = of_two(
        |shared| {
            shared.0.set(1);
            shared.2.store(1, Release);
            shared.1.store(1, Release);
        },
        reads,
    );
    let expected = [
        "  the two are ordered here with any one of these:",
        "    main.1's store to shared.2 is Release, and main's load shared.2 is Relaxed: least Release and Acquire",
        "    main.1's store to shared.1 is Release, and main's load shared.1 is Relaxed: least Release and Acquire",
    ];
    assert_eq!(said, expected);
    // Where something was forgotten, no pair is named of which both sides are relaxed.
    let said = of_two(
        |shared| {
            shared.0.set(1);
            shared.2.store(1, Relaxed);
            shared.1.store(1, Release);
        },
        reads,
    );
    let expected = [
        "  main.1's store to shared.1 is Release, and main's load shared.1 is Relaxed: with least Release and Acquire the two are ordered here",
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_pair_that_the_access_does_not_hang_on_is_not_named() {
    // The count is only that: what main goes by is the flag.
    let said = of_two(
        |shared| {
            shared.0.set(1);
            shared.1.store(1, Release);
            shared.2.fetch_add(1, Release);
        },
        |shared| {
            if shared.1.load(Relaxed) == 1 {
                shared.2.fetch_add(1, Release);
                shared.0.get();
            }
        },
    );
    let expected = [
        "  main.1's store to shared.1 is Release, and main's load shared.1 is Relaxed: with least Release and Acquire the two are ordered here",
    ];
    assert_eq!(said, expected);
}

#[test]
fn what_is_published_too_early_is_not_hidden_by_a_pair_that_is_too_weak() {
    let text = race(|| {
        let shared = Told::default();
        let theirs = shared.clone();
        let writer = thread::spawn(move || {
            theirs.1.store(1, Release);
            theirs.0.set(1);
            theirs.2.store(1, Relaxed);
        });
        if shared.1.load(Acquire) == 1 {
            shared.2.load(Relaxed);
            shared.0.get();
        }
        writer.join().unwrap();
    });
    let text = text.expect("a race");
    assert!(!text.contains("are ordered here"), "{text}");
    assert!(
        text.contains("\n  published before it was written: main.1 told by "),
        "{text}"
    );
}

#[test]
fn the_ordering_that_is_named_is_the_one_that_was_forgotten() {
    // A count by hand whose last owner does not acquire. That the others' additions are relaxed is right.
    let text = race(|| {
        let count = Arc::new((AtomicUsize::new(1), Plain::default()));
        let leave = |count: &(AtomicUsize, Plain)| {
            if count.0.fetch_sub(1, Release) == 1 {
                count.1.set(7);
            }
        };
        let theirs = count.clone();
        count.0.fetch_add(1, Relaxed);
        let other = thread::spawn(move || {
            theirs.0.fetch_add(1, Relaxed);
            leave(&theirs);
            leave(&theirs);
        });
        count.1.get();
        leave(&count);
        other.join().unwrap();
    });
    let text = text.expect("a race");
    let link = of_orderings(&text);
    assert!(
        link.contains("with at least AcqRel the two are ordered"),
        "{link}"
    );
    assert!(
        link.contains("'s sub on count.0 at ") && !link.contains("'s add"),
        "{text}"
    );
    assert!(link.contains("is Release, and main"), "{text}");
}

/// The line about the orderings, if one publishes and the other reads like this.
fn link(publishes: fn(&AtomicUsize), reads: fn(&AtomicUsize) -> bool) -> String {
    of_orderings(&race(message(publishes, reads)).expect("a race"))
}

/// The line of a report about the orderings.
fn of_orderings(text: &str) -> String {
    let line = text.lines().find(|line| line.contains("with at least"));
    line.unwrap_or_else(|| panic!("no line about them: {text}"))
        .to_owned()
}

#[test]
fn a_fence_makes_up_for_an_ordering() {
    let reader_forgets = link(
        |x| {
            fence(Release);
            x.store(1, Relaxed);
        },
        |x| x.load(Relaxed) == 1,
    );
    assert!(
        reader_forgets.contains("is Relaxed behind a fence that releases, and main's load"),
        "{reader_forgets}"
    );
    assert!(
        reader_forgets.contains("is Relaxed: with at least Acquire the two"),
        "{reader_forgets}"
    );
    let writer_forgets = link(
        |x| x.store(1, Relaxed),
        |x| {
            let there = x.load(Relaxed) == 1;
            fence(Acquire);
            there
        },
    );
    assert!(
        writer_forgets
            .ends_with("is Relaxed before a fence that acquires: with at least Release the two are ordered here"),
        "{writer_forgets}"
    );
    // A fence after the store is of no use.
    let too_late = link(
        |x| {
            x.store(1, Relaxed);
            fence(Release);
        },
        |x| x.load(Relaxed) == 1,
    );
    assert!(
        too_late.contains("with at least Release and Acquire"),
        "{too_late}"
    );
}

#[test]
fn a_counter_that_needs_no_ordering_is_not_the_one_that_was_forgotten() {
    let text = race(|| {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), Plain::default()));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs.2.set(7);
            theirs.1.fetch_add(1, Relaxed);
            fence(Release);
            theirs.0.store(1, Relaxed);
        });
        if shared.0.load(Relaxed) == 1 {
            shared.1.fetch_add(1, Relaxed);
            shared.2.get();
        }
        other.join().unwrap();
    });
    let link = of_orderings(&text.expect("a race"));
    assert!(link.contains("main's load theirs.0 at "), "{link}");
    assert!(link.contains("with at least Acquire the two"), "{link}");
}

#[test]
fn the_use_that_is_named_before_a_free_is_the_last_one_so_that_the_advice_orders_all_of_them() {
    /// Two threads share it, and the one that gives it up last frees it.
    #[derive(Default)]
    struct Shared {
        left: AtomicUsize,
        value: AtomicUsize,
    }
    /// Frees `shared` if the other thread has given it up before.
    ///
    /// # Safety
    ///
    /// It is not safe to free it before the other one's last use of it, unless `order` sees to that.
    unsafe fn give_up(shared: usize, order: Ordering) {
        let shared = std::ptr::with_exposed_provenance_mut::<Shared>(shared);
        // SAFETY: the caller has not given it up before.
        if unsafe { (*shared).left.fetch_add(1, order) } == 1 {
            // SAFETY: this is to be found.
            drop(unsafe { Box::from_raw(shared) });
        }
    }
    let explored = |order| {
        Builder::new().explore(move || {
            let shared = Box::into_raw(Box::new(Shared::default())).expose_provenance();
            // SAFETY: as far as `order` sees to it.
            let other = thread::spawn(move || unsafe { give_up(shared, order) });
            let mine = std::ptr::with_exposed_provenance::<Shared>(shared);
            // SAFETY: it is given up below.
            unsafe {
                (*mine).left.load(Acquire);
                (*mine).value.store(1, Release);
                give_up(shared, order);
            }
            other.join().expect("no thread panics");
        })
    };
    let text = explored(Release).expect_err("a race").to_string();
    assert!(text.contains("nothing orders main's add on"), "{text}");
    assert!(
        text.contains("with at least AcqRel the two are ordered here"),
        "{text}"
    );
    let report = explored(AcqRel).expect("what the advice says is enough");
    assert!(report.complete);
}

#[test]
fn what_is_told_before_an_access_has_ended_is_not_said_to_order_it() {
    let told = |early: Ordering, late: Ordering| {
        race(move || {
            let shared = Arc::new((Plain::default(), AtomicUsize::new(0), AtomicUsize::new(0)));
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                let (plain, first, last) = &*theirs;
                // SAFETY: whether the access is ordered is what is to be found.
                plain.0.with_mut(|value| unsafe {
                    first.store(1, early);
                    *value = 1;
                });
                last.store(1, late);
            });
            let (plain, first, last) = &*shared;
            if last.load(Acquire) == 1 && first.load(Relaxed) == 1 {
                plain.get();
            }
            other.join().unwrap();
        })
    };
    let text = told(Release, Relaxed).expect("a race");
    // The load that is weaker reads what was stored too early.
    let line = of_orderings(&text);
    assert!(line.contains("main.1's store to last"), "{text}");
    assert!(line.contains("is Relaxed, and main's load last"), "{text}");
    assert_eq!(told(Relaxed, Release), None);
}

#[test]
fn what_goes_on_with_a_release_sequence_needs_no_ordering() {
    let reader_forgets = link(
        |x| {
            x.store(1, Release);
            x.fetch_add(1, Relaxed);
        },
        |x| x.load(Relaxed) == 2,
    );
    assert!(
        reader_forgets.contains("main.1's store to x"),
        "{reader_forgets}"
    );
    assert!(
        reader_forgets.contains("is Release, and main's load x"),
        "{reader_forgets}"
    );
}

#[test]
fn one_ordering_for_both_sides_is_asked_for_only_where_there_is_one() {
    type Turn = fn(&AtomicUsize) -> bool;
    // Each is on the one side first and then on the other one.
    let turns: [(Turn, &str); 3] = [
        (|x| x.fetch_add(1, Relaxed) == 1, "AcqRel"),
        // The ordering where it fails can be no such, nor can that of a look before an update.
        (
            |x| x.compare_exchange(0, 1, Relaxed, Relaxed).is_err(),
            "Release and Acquire",
        ),
        (
            |x| {
                let update = |value| (value == 0).then_some(1);
                x.fetch_update(Relaxed, Relaxed, update).is_err()
            },
            "Release and Acquire",
        ),
    ];
    for (turn, orderings) in turns {
        let publish = move |x: &AtomicUsize| {
            turn(x);
        };
        let text = race(message(publish, turn)).expect("a race");
        let line = of_orderings(&text);
        let advice = format!("with at least {orderings} the two");
        assert!(line.contains(&advice), "{text}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_thread_local_of_std_is_told_to_be_one_for_all() {
    std::thread_local!(static STDS: Plain = Plain::default());
    dpor::thread_local!(static OURS: Plain = Plain::default());
    let both_set = |set: fn()| {
        move || {
            let other = thread::spawn(set);
            set();
            other.join().unwrap();
        }
    };
    let text = race(both_set(|| STDS.with(|it| it.set(1)))).expect("it is shared");
    let told =
        "  it is in a `thread_local!` of std's, of which all threads of a model have one together";
    assert!(text.contains(told), "{text}");
    assert_eq!(race(both_set(|| OURS.with(|it| it.set(1)))), None);
    // What only leads somewhere from there is no thread-local itself.
    let text = race(|| {
        let plain = Arc::new(Plain::default());
        let theirs = plain.clone();
        let other = thread::spawn(move || theirs.set(1));
        plain.set(2);
        other.join().unwrap();
    });
    assert!(!text.expect("it is shared").contains("thread_local!"));
}

/// A cell and an atomic of which two threads have a pointer each.
#[derive(Default)]
struct Job {
    arg: Plain,
    done: AtomicUsize,
}

/// What the memory of a race between these two is called: in the title, and in the rows of the table that are no events.
fn names(here: fn(&Job), there: fn(&Job), begin: fn(&Job)) -> (String, Vec<String>) {
    let text = race(move || {
        let job = Arc::new(Job::default());
        begin(&job);
        let theirs = job.clone();
        let other = thread::spawn(move || there(&theirs));
        here(&job);
        other.join().unwrap();
    });
    let text = text.expect("a race");
    let (title, table) = text.split_once("\n     #  ").expect("a table");
    let title = title.lines().next().and_then(|line| {
        let (_, after) = line.split_once(" access ")?;
        after.split_once(", and nothing").map(|(name, _)| name)
    });
    let rows = table.lines().take_while(|row| !row.is_empty());
    let rows = rows.filter(|row| row.starts_with("     -  "));
    let rows = rows.filter_map(|row| {
        let mut words = row.split_whitespace();
        words.find(|word| ["read", "write"].contains(word))?;
        words.next().map(str::to_owned)
    });
    (title.expect(&text).to_owned(), rows.collect())
}

#[test]
fn the_memory_has_one_name_although_each_thread_calls_it_something_else() {
    let reads: fn(&Job) = |q| assert!(q.arg.get() < 2);
    let writes: fn(&Job) = |r| r.arg.set(1);
    // That of the first access.
    for (here, there, name) in [(reads, writes, "q.arg"), (writes, reads, "r.arg")] {
        let rows = vec![name.to_owned(), name.to_owned()];
        assert_eq!(names(here, there, |_| ()), (name.to_owned(), rows));
    }
    // Where that has none, it is the second one.
    let nameless: fn(&Job) = |q| assert!([&q.arg].map(Plain::get)[0] < 2);
    let rows = vec!["r.arg".to_owned(), "r.arg".to_owned()];
    assert_eq!(names(nameless, writes, |_| ()), ("r.arg".to_owned(), rows));
    // The program may have given it one.
    let begin: fn(&Job) = |job| dpor::name(&job.arg, "argument");
    let rows = vec!["argument".to_owned(), "argument".to_owned()];
    assert_eq!(names(reads, writes, begin), ("argument".to_owned(), rows));
}

#[test]
fn an_atomic_is_called_what_the_table_calls_it_where_it_is_used_plainly() {
    let begin: fn(&Job) = |job| job.done.store(1, Relaxed);
    // SAFETY: none: another thread writes it, which dpor has to notice.
    let reads: fn(&Job) = |q| assert!(unsafe { q.done.unsync_load() } < 3);
    let writes: fn(&Job) = |r| r.done.store(2, Release);
    let (title, rows) = names(reads, writes, begin);
    assert_eq!(
        (title.as_str(), rows),
        ("job.done", vec!["job.done".to_owned()])
    );
    let writes: fn(&Job) = |r| {
        let done = (&raw const r.done).cast_mut();
        // SAFETY: none, as above.
        unsafe { (*done).with_mut(|done| *done = 2) };
    };
    let (title, rows) = names(reads, writes, begin);
    let both = vec!["job.done".to_owned(), "job.done".to_owned()];
    assert_eq!((title.as_str(), rows), ("job.done", both));
}
