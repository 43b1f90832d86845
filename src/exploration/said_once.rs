//! Remembers the lines that were printed.
//!
//! A test may explore the same model many times: in parts, or for each of many inputs. A line about
//! each exploration would then appear a hundred times.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Whether this is the first call in this process with this text by the test of this thread. Tests
/// count separately, because the harness shows the output of a test only together with that test.
pub(crate) fn is_first(text: String) -> bool {
    static SAID: Mutex<BTreeSet<(Option<String>, String)>> = Mutex::new(BTreeSet::new());
    let test = std::thread::current();
    let what = (test.name().map(str::to_owned), text);
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    said.insert(what)
}
