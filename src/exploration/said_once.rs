//! Was this said before?
//!
//! A test may explore the same model many times: in parts, or for each of many inputs. What is said
//! of each exploration would then be the same line a hundred times over.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Whether this is asked about this text for the first time in this process by the thread's test:
/// the harness shows what a test prints only with that test.
pub(crate) fn is_first(text: String) -> bool {
    static SAID: Mutex<BTreeSet<(Option<String>, String)>> = Mutex::new(BTreeSet::new());
    let test = std::thread::current();
    let what = (test.name().map(str::to_owned), text);
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    said.insert(what)
}
