//! Shows: two accounts locked in opposite order by two transfers.
//! Prints: the report of the deadlock, then how many executions the fixed version has.

use dpor::sync::{Arc, Mutex};
use dpor::{Builder, thread};

fn transfer(from: &Mutex<i64>, to: &Mutex<i64>, amount: i64) {
    let mut from = from.lock().unwrap();
    let mut to = to.lock().unwrap();
    *from -= amount;
    *to += amount;
}

fn bank(second: fn(&Mutex<i64>, &Mutex<i64>)) {
    let accounts = Arc::new((Mutex::new(10), Mutex::new(10)));
    let shared = accounts.clone();
    let other = thread::spawn(move || second(&shared.0, &shared.1));
    transfer(&accounts.0, &accounts.1, 5);
    other.join().unwrap();
    let sum = *accounts.0.lock().unwrap() + *accounts.1.lock().unwrap();
    assert_eq!(sum, 20);
}

fn main() {
    let failure = Builder::new()
        .explore(|| bank(|a, b| transfer(b, a, 3)))
        .expect_err("the bug is found");
    println!("{failure}\n");
    // Fixed: whoever transfers in whichever direction locks the first account first.
    let report = Builder::new()
        .explore(|| bank(|a, b| transfer(a, b, -3)))
        .expect("no bug is left");
    println!("fixed: {} executions, all of them fine", report.executions);
    assert_eq!(report.executions, 2);
}
