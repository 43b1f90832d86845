//! What is said of an execution, in whichever form?
//!
//! The verdict, the threads that wait, what the failure hangs on, the name of the mistake. The text
//! report has these lines above its table, JSON and page in `story`, and the graph in its title:
//! one list, so that no form says more than another one.

use super::pattern;
use super::text::{self, View};
use super::words::Names;

/// The lines. A failure that is the user's panic also has that, in front of them.
pub(super) fn facts(view: &View<'_>, names: &Names<'_>) -> Vec<String> {
    let mut out = String::new();
    text::verdict(&mut out, view, names);
    text::earlier(&mut out, view, names);
    text::hangs_on(&mut out, view, names);
    text::run_again(&mut out, view, names);
    let patterns = [pattern::sentence(view, names), pattern::story(view, names)];
    let patterns = patterns.into_iter().flatten();
    let lines = out.lines().map(str::to_owned);
    lines
        .chain(patterns.map(|line| format!("  {line}")))
        .collect()
}
