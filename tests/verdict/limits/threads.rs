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
        row.is_some_and(|row| row.contains("tests/verdict/limits/threads.rs:")),
        "{many}"
    );
}

/// From now on the process gets no more memory than it has, and so many bytes.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(crate) fn limit_memory(more: u64) {
    let has = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: u64 = has
        .split(' ')
        .next()
        .and_then(|it| it.parse().ok())
        .expect("a number");
    let bytes = pages * 4096 + more;
    let most = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: it reads what it is given.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &most) }, 0);
}

/// The process gets no more memory than it has, and a little.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn a_thread_for_whose_stack_the_system_has_no_memory_is_a_failure_with_a_schedule() {
    use dpor::sync::{Arc, Barrier};

    const CHILD: &str = "DPOR_TEST_NO_STACK";
    let name =
        "threads::a_thread_for_whose_stack_the_system_has_no_memory_is_a_failure_with_a_schedule";
    let meet = || {
        let meeting = Arc::new(Barrier::new(3));
        let others = [1 << 20, 1 << 30].map(|bytes| {
            let meeting = meeting.clone();
            let spawned = thread::Builder::new().stack_size(bytes).spawn(move || {
                // What owns a reference gives it up when it unwinds.
                meeting.wait();
            });
            spawned.unwrap()
        });
        meeting.wait();
        for other in others {
            other.join().unwrap();
        }
    };
    if std::env::var_os(CHILD).is_none() {
        let output = super::children::process_of(name).env(CHILD, "1").output();
        let output = output.expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        let says = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{told}{says}");
        assert!(!told.contains("generator"), "{told}");
        return;
    }
    // What it has first is made before that.
    assert!(Builder::new().check(|| ()).complete);
    limit_memory(512 << 20);
    for _ in 0..2 {
        let failure = Builder::new().explore(meet).unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Limit);
        let report = failure.to_string();
        let told = format!(
            "too little memory: the system has none for the {} bytes of the stack of main.2 (execution 1, after 6 events)\n  \
             lower `Builder::stack_size`",
            1 << 30
        );
        assert!(report.starts_with(&told), "{report}");
        assert!(failure.schedule().starts_with("v2 main"), "{report}");
    }
    // What there was before is there again.
    let report = Builder::new().check(|| {
        let others = [(); 2].map(|()| thread::spawn(|| ()));
        for other in others {
            other.join().unwrap();
        }
    });
    assert!(report.complete);
}

/// The clocks of 3,000 threads take 72 MB and more.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn clocks_for_which_the_system_has_no_memory_do_not_end_the_process() {
    const CHILD: &str = "DPOR_TEST_NO_CLOCKS";
    const THREADS: u64 = 3000;
    if std::env::var_os(CHILD).is_none() {
        let name =
            "limits::threads::clocks_for_which_the_system_has_no_memory_do_not_end_the_process";
        let output = super::children::process_of(name).env(CHILD, "1").output();
        let output = output.expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        let says = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{told}{says}");
        return;
    }
    assert!(Builder::new().check(|| ()).complete);
    const STACK: u64 = 32 << 10;
    // Each stack has a page on top, which guards it.
    limit_memory(THREADS * (STACK + 4096) + (32 << 20));
    let mut builder = Builder::new();
    builder.max_threads = THREADS as usize + 1;
    builder.stack_size = STACK as usize;
    let park = |unparks: bool| {
        move || {
            let others: Vec<_> = (0..THREADS).map(|_| thread::spawn(thread::park)).collect();
            for other in others {
                if unparks {
                    other.thread().unpark();
                }
                other.join().unwrap();
            }
        }
    };
    let stuck = builder.explore(park(false)).unwrap_err();
    assert_eq!(stuck.kind(), FailureKind::Deadlock);
    assert!(
        stuck.schedule().starts_with("v2 main*3"),
        "{}",
        stuck.schedule()
    );
    // Nothing can be learnt of an execution that is fine.
    let passes = builder.explore(park(true)).unwrap_err();
    assert_eq!(passes.kind(), FailureKind::Limit);
    let report = passes.to_string();
    assert!(
        report.starts_with("too little memory: the system has none for the "),
        "{report}"
    );
    assert!(
        report.contains(" bytes of the clocks of 3001 threads "),
        "{report}"
    );
    assert!(
        passes.schedule().starts_with("v2 main*3"),
        "{}",
        passes.schedule()
    );
}
