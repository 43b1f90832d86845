//! Which facts about an execution are in every form of the report?
//!
//! The verdict, the threads that wait, the operations that the failure hangs on, and the name of
//! the mistake. The text report has these lines above its table, JSON and the HTML page in `story`,
//! and the graph in its title. All forms use one list, so that no form says more than another one.

use super::old_values::OldValues;
use super::pattern;
use super::text::{self, View};
use super::words::Names;

/// The lines. If the failure is the user's panic, the panic stands in front of them.
pub(super) fn facts(view: &View<'_>, names: &Names<'_>) -> Vec<String> {
    let mut out = String::new();
    text::verdict(&mut out, view, names);
    text::earlier(&mut out, view, names);
    text::hangs_on(&mut out, view, names);
    text::run_again(&mut out, view, names);
    // The patterns are those of sequential consistency, where a thread sees what came before.
    let patterns = match OldValues::of(view.trace).is_fresh() {
        true => [pattern::sentence(view, names), pattern::story(view, names)],
        false => [None, None],
    };
    let patterns = patterns.into_iter().flatten();
    let lines = out.lines().map(str::to_owned);
    lines
        .chain(patterns.map(|line| format!("  {line}")))
        .collect()
}
