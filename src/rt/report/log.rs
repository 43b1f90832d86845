//! Which lines did the program log in the execution that is reported?

use std::fmt::Write;

use super::view::View;
use super::words::Names;

/// A line for each line of the log, below a heading; empty if the log is empty.
pub(crate) fn render(view: &View<'_>) -> String {
    if view.log.is_empty() {
        return String::new();
    }
    let names = Names::new(view.end, view.trace, view.machine, view.given, view.callers);
    let said = view.log.iter().map(|said| names.thread(said.thread));
    let said: Vec<String> = said.collect();
    let width = said.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or_default();
    let mut out = String::from("log        what the threads said, and after which event\n");
    for (name, line) in said.iter().zip(view.log) {
        let (after, level, target) = (line.after, line.level, line.target);
        let _ = writeln!(
            out,
            "  {after:>4}  {name:<width$}  {level:<5} {target}: {}",
            line.text
        );
    }
    out
}
