//! Is the relation symmetric, and is it the documented one?

use crate::rt::relation::independence::*;

#[test]
fn the_relation_between_classes_is_symmetric() {
    for a in ALL {
        for b in ALL {
            assert_eq!(
                a.conflicts().contains(b),
                b.conflicts().contains(a),
                "{a:?} and {b:?}"
            );
        }
    }
}

#[test]
fn a_total_class_conflicts_with_every_class_it_shares_a_conflict_with() {
    // A class belongs to the same kind of object as `total` if the two conflict, or if both
    // conflict with a common third; a total class must conflict with all of these.
    for total in ALL.into_iter().filter(|c| c.slot() == 0) {
        for other in ALL {
            let same_kind = ALL.into_iter().any(|third| {
                third.conflicts().contains(total) && third.conflicts().contains(other)
            });
            if same_kind {
                assert!(total.conflicts().contains(other), "{total:?} and {other:?}");
            }
        }
    }
}

#[test]
fn classes_of_one_object_that_are_not_total_have_slots_of_their_own() {
    for a in ALL {
        for b in ALL {
            let meet = a.conflicts().contains(b)
                || ALL
                    .into_iter()
                    .any(|c| c.conflicts().contains(a) && c.conflicts().contains(b));
            if a != b && meet && a.slot() != 0 && b.slot() != 0 {
                assert_eq!(a.slots() & b.slots(), 0, "{a:?} and {b:?}");
            }
        }
    }
}

/// The rows of `docs/DEPENDENCY.md`: for every class the classes that it conflicts with on the same
/// object.
fn table() -> String {
    let mut out = String::from(
        "# The dependency relation\n\n\
         Which events on one object may not be swapped. Generated from `src/rt/event/class.rs` by\n\
         a test (`DPOR_BLESS=1 cargo test --lib documented_table` writes it anew).\n\n\
         A failed compare-exchange is a `Read`, any other read-modify-write a `Write`; a\n\
         successful `try_lock` and a write lock are an `Acquire`, a failed `try_read` is an\n\
         `AcquireFailed`. Two `Drop`s conflict only if one of them is the last; which one that is\n\
         depends on the order, so a pending drop commutes with one that found at least three\n\
         references. An object with `DropQuiet`s has a `Drop` only where the program asks whether\n\
         it was the last (`Arc::into_inner`). Two `Arrive`s conflict in the same way, and a\n\
         `Leave` only with the last of its group. An `Awake` conflicts with the `Notify` that\n\
         woke it, a `Received` with the `Sent` whose message it takes and, in a bounded channel,\n\
         with the one it makes room for. Two `Update`s of an atomic conflict unless their\n\
         functions commute. Of `KeyRead`, `KeyWrite` and `KeyShape` two conflict if their keys\n\
         are the same, and two `Declared` accesses if the table of their object says so. A `Wait`\n\
         conflicts with whatever can change a location it has read. A wait that ends because no\n\
         thread could go on comes after everything that had happened by then. A `Block` reads or\n\
         writes each object of its footprint (`dpor::atomically`), or touches everything, and two\n\
         of them conflict if one writes an object that the other touches. Apart from objects,\n\
         a spawn comes before the child's first event, and the last event of a thread (its\n\
         `Exit`, if that is one) before a `Join`.\n\n\
         | class | conflicts with |\n|---|---|\n",
    );
    for class in ALL {
        let mut names: Vec<String> = ALL
            .into_iter()
            .filter(|&other| class.conflicts().contains(other))
            .map(|other| format!("{other:?}"))
            .collect();
        if changes_value(class) {
            names.push("Wait (on this location)".to_owned());
        }
        if class == Class::Block {
            let all = ALL.into_iter().filter(|&other| meets_block(other));
            names.extend(all.map(|other| match changes_value(other) {
                true => format!("{other:?}"),
                false => format!("{other:?} (of an object that it writes)"),
            }));
        } else if meets_block(class) {
            names.push(match changes_value(class) {
                true => "Block (that touches this object)".to_owned(),
                false => "Block (that writes this object)".to_owned(),
            });
        }
        if class == Class::Wait {
            let changing = ALL.into_iter().filter(|&other| changes_value(other));
            names.extend(changing.map(|other| format!("{other:?}")));
        }
        let names = if names.is_empty() {
            "nothing".to_owned()
        } else {
            names.join(", ")
        };
        out.push_str(&format!("| {class:?} | {names} |\n"));
    }
    out
}

#[test]
fn a_pure_read_conflicts_only_with_changes() {
    // So a block that only reads an object need not be ordered with the others.
    for class in ALL.into_iter().filter(|&class| is_pure_read(class)) {
        assert!(!changes_value(class) && meets_block(class), "{class:?}");
        for other in ALL {
            let conflicts = class.conflicts().contains(other);
            assert!(
                !conflicts || changes_value(other),
                "{class:?} and {other:?}"
            );
        }
    }
}

#[test]
fn the_documented_table_is_the_relation() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/DEPENDENCY.md");
    if std::env::var_os("DPOR_BLESS").is_some() {
        std::fs::write(path, table()).expect("docs can be written");
    }
    let documented = std::fs::read_to_string(path).expect("docs/DEPENDENCY.md exists");
    pretty_assertions::assert_eq!(documented, table());
}

#[test]
fn releases_of_a_count_commute_until_one_of_them_is_the_last() {
    let sets = ReadSets::default();
    let found = |count| Label::of(ObjectId(0), Class::Drop).numbered(0, count);
    assert!(!ordered(&sets, found(3), found(2)));
    assert!(ordered(&sets, found(2), found(1)));
    assert!(commutes(&sets, found(3), found(3)));
    // With two references left, the second release is the last, whichever of the two it is.
    assert!(!commutes(&sets, found(2), found(2)));
}
