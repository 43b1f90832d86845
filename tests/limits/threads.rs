//! Is it told, and readably, that there are very many threads?

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, FailureKind, thread};

/// The lines of the report from the title of its table to the end of the table.
fn table(report: &str) -> Vec<&str> {
    let lines = report.lines();
    let table = lines.skip_while(|line| !line.trim_start().starts_with("#  "));
    table.take_while(|line| !line.is_empty()).collect()
}

#[test]
fn who_spawns_without_end_is_told_so_in_a_table_that_can_be_read() {
    fn spawns() {
        thread::spawn(spawns).join().unwrap();
    }
    let failure = Builder::new().explore(spawns).unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Limit);
    let report = failure.to_string();
    let told = "too many threads: more than 1000 are alive (execution 1, after 1000 events)\n  \
                raise `Builder::max_threads` (DPOR_MAX_THREADS)\n";
    assert!(report.starts_with(told), "{}", &report[..1000]);
    let table = table(&report);
    let title: Vec<&str> = table[0].split_whitespace().collect();
    assert_eq!(title, ["#", "thread", "what", "where", "switch"]);
    for line in table {
        assert!(line.chars().count() < 300, "{line}");
    }
}

#[test]
fn many_threads_share_a_column_and_a_few_have_their_own() {
    let run = |threads: usize| {
        let body = move || {
            let number = AtomicUsize::new(0);
            thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| number.fetch_add(1, SeqCst));
                }
            });
            assert_ne!(number.load(SeqCst), threads, "all have added");
        };
        Builder::new().explore(body).unwrap_err().to_string()
    };
    let few = run(3);
    let title: Vec<&str> = table(&few)[0].split_whitespace().collect();
    assert_eq!(title[..5], ["#", "main", "main.1", "main.2", "main.3"]);
    let many = run(13);
    let title: Vec<&str> = table(&many)[0].split_whitespace().collect();
    assert_eq!(title[..4], ["#", "thread", "what", "where"]);
    let row = |line: &&&str| line.contains("main.13  number add: 12 from 25 -> 13  ");
    let row = table(&many).iter().find(row).copied();
    assert!(
        row.is_some_and(|row| row.contains("tests/limits/threads.rs:")),
        "{many}"
    );
}
