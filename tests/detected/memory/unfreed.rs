//! Is the memory freed that executions which were given up had allocated?
//!
//! The heap is that of the whole process, so a process of its own measures it: other tests allocate as well, and fill the
//! cache that places in the source are looked up in.

use dpor::sync::{Arc, Mutex};
use dpor::{Builder, thread};

use super::children::process_of;

/// Says to the test in the child process that it is to measure.
const CHILD: &str = "DPOR_TEST_UNFREED";

#[test]
fn executions_that_are_given_up_leave_no_memory_behind() {
    if std::env::var_os(CHILD).is_some() {
        return measure();
    }
    let name = "memory::unfreed::executions_that_are_given_up_leave_no_memory_behind";
    let child = process_of(name)
        .arg("--nocapture")
        .env(CHILD, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && told.contains("1 passed"),
        "{child:?}"
    );
}

fn measure() {
    let run = |executions: usize| {
        let mut builder = Builder::new();
        builder.max_permutations = Some(executions);
        builder.explore(|| {
            let list: Arc<Mutex<Vec<Box<usize>>>> = Arc::new(Mutex::new(Vec::new()));
            let digits = || (0..4).fold(0, |number, _| 10 * number + dpor::choose(10));
            let number = digits();
            let theirs = list.clone();
            let other = thread::spawn(move || theirs.lock().unwrap().push(Box::new(number)));
            dpor::assume(number == 0);
            other.join().unwrap();
        })
    };
    // What is made once in a process is made by now.
    assert!(run(100).is_ok());
    let before = in_use();
    let report = run(10_000).unwrap_or_else(|f| panic!("{f}"));
    assert!(report.pruned >= 9_000, "{report}");
    let grown = in_use() - before;
    assert!(grown < 64 << 10, "{grown} bytes");
}

/// How many bytes of the heap are in use.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn in_use() -> isize {
    // SAFETY: the function has no preconditions.
    unsafe { libc::mallinfo2() }.uordblks as isize
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn in_use() -> isize {
    0
}
