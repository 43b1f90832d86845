//! Is a failure told to programs as fully as to people, and are its pictures of the same execution?

mod graph;
mod json;
use crate::needs;
mod order;
mod outcomes;
mod places;
mod programs;
mod report_dir;
use crate::support;

use dpor::{Builder, Failure};
use serde_json::Value;

fn failure(f: impl Fn() + Send + Sync + 'static) -> Box<Failure> {
    Builder::new().explore(f).expect_err("the model fails")
}

fn parsed(failure: &Failure) -> Value {
    serde_json::from_str(&failure.json()).expect("it is JSON")
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field]
        .as_array()
        .unwrap_or_else(|| panic!("`{field}` is a list in {value}"))
}

/// The first event whose words contain `words`.
fn event<'a>(execution: &'a Value, words: &str) -> &'a Value {
    let mut events = list(execution, "events").iter();
    let found = events.find(|event| event["words"].as_str().is_some_and(|w| w.contains(words)));
    found.unwrap_or_else(|| panic!("no event `{words}` in {execution:#}"))
}
