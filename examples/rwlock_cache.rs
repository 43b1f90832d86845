//! Shows: a cache behind an `RwLock` that looks under the read lock and inserts under the write lock,
//! so that two threads load the same page.
//! Prints: the report, then how many executions the version that looks again has.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, RwLock};
use dpor::{Builder, thread};

#[derive(Default)]
struct Cache {
    pages: RwLock<BTreeMap<u32, String>>,
    loads: AtomicUsize,
}

impl Cache {
    /// Stands for the slow part: a file, a query, a download.
    fn load(&self, number: u32) -> String {
        self.loads.fetch_add(1, Relaxed);
        format!("page {number}")
    }

    fn look(&self, number: u32) -> Option<String> {
        self.pages.read().unwrap().get(&number).cloned()
    }

    fn get_broken(&self, number: u32) -> String {
        if let Some(page) = self.look(number) {
            return page;
        }
        // Here another thread may look as well.
        let page = self.load(number);
        self.pages.write().unwrap().insert(number, page.clone());
        page
    }

    fn get_fixed(&self, number: u32) -> String {
        if let Some(page) = self.look(number) {
            return page;
        }
        let mut pages = self.pages.write().unwrap();
        let page = pages.entry(number).or_insert_with(|| self.load(number));
        page.clone()
    }
}

fn two_readers(get: fn(&Cache, u32) -> String) {
    let cache = Arc::new(Cache::default());
    let shared = cache.clone();
    let other = thread::spawn(move || get(&shared, 7));
    assert_eq!(get(&cache, 7), "page 7");
    assert_eq!(other.join().unwrap(), "page 7");
    assert_eq!(cache.loads.load(Relaxed), 1, "the page was loaded twice");
}

fn main() {
    let failure = Builder::new()
        .explore(|| two_readers(Cache::get_broken))
        .expect_err("the bug is found");
    println!("{failure}\n");
    let report = Builder::new()
        .explore(|| two_readers(Cache::get_fixed))
        .expect("no bug is left");
    println!("fixed: {} executions, all of them fine", report.executions);
    assert!(report.complete);
}
