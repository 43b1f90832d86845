//! Does a report read well, whether it has one event or thousands?

use std::sync::atomic::Ordering::SeqCst;

use dpor::Builder;
use dpor::sync::atomic::AtomicUsize;

#[test]
fn one_event_is_said_in_the_singular() {
    let failure = Builder::new()
        .explore(|| {
            AtomicUsize::new(0).load(SeqCst);
            panic!("soon");
        })
        .expect_err("panics");
    let text = failure.to_string();
    assert!(text.contains("(execution 1, after 1 event)\n"), "{text}");
}

#[test]
fn columns_are_in_line_however_many_events_there_are() {
    let failure = Builder::new().explore(|| {
        let x = AtomicUsize::new(0);
        // Nothing in this order is repeated three times (Thue and Morse), so no rows are rounds.
        for n in 0..10_020_usize {
            match n.count_ones() % 2 {
                0 => drop(x.load(SeqCst)),
                _ => x.store(n, SeqCst),
            }
        }
        panic!("at last");
    });
    let text = failure.expect_err("it panics").to_string();
    let rows = text.lines().skip_while(|line| !line.ends_with(" where"));
    let places = rows.filter_map(|line| line.find("tests/verdict/failures/layout.rs:"));
    let table: Vec<usize> = places.collect();
    assert!(
        table.len() > 2 && text.contains("\n   9999  ") && text.contains("\n  10020  "),
        "{text}"
    );
    assert!(table.iter().all(|at| *at == table[0]), "{table:?}: {text}");
}
