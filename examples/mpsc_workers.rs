//! Shows: workers that take an empty queue for the end of the work, so that a job is never done.
//! Prints: the report, then how many executions the version that waits for the last sender has.

use dpor::sync::Mutex;
use dpor::sync::mpsc::{Receiver, Sender, channel};
use dpor::{Builder, thread};

type Jobs = Mutex<Receiver<u32>>;

/// The next job; `None` is the end of the work.
fn next_broken(jobs: &Jobs) -> Option<u32> {
    // `Empty` is an error as `Disconnected` is, but it is not the end.
    jobs.lock().unwrap().try_recv().ok()
}

fn next_fixed(jobs: &Jobs) -> Option<u32> {
    jobs.lock().unwrap().recv().ok()
}

fn work(next: fn(&Jobs) -> Option<u32>, jobs: &Jobs, results: Sender<u32>) {
    while let Some(job) = next(jobs) {
        results.send(job * job).unwrap();
    }
}

fn sum_of_squares(next: fn(&Jobs) -> Option<u32>) -> u32 {
    let (send_job, jobs) = channel();
    let (send_result, results) = channel();
    let jobs = Mutex::new(jobs);
    thread::scope(|scope| {
        for _ in 0..2 {
            let (jobs, send_result) = (&jobs, send_result.clone());
            scope.spawn(move || work(next, jobs, send_result));
        }
        for job in [3, 4] {
            send_job.send(job).unwrap();
        }
        // Workers wait for jobs as long as there is a sender of them, and so does the sum for results.
        drop(send_job);
        drop(send_result);
        results.iter().sum()
    })
}

fn main() {
    let failure = Builder::new()
        .explore(|| assert_eq!(sum_of_squares(next_broken), 25, "a job was not done"))
        .expect_err("the bug is found");
    println!("{failure}\n");
    let report = Builder::new()
        .explore(|| assert_eq!(sum_of_squares(next_fixed), 25))
        .expect("no bug is left");
    println!("fixed: {} executions, all of them fine", report.executions);
    assert!(report.complete);
}
