//! How is an execution shown that did not fail?
//!
//! The table of the report, below a line with the number of the execution, its end, and the
//! schedule that replays it.

use super::text;
use super::view::View;
use super::words::Names;
use super::{log, table, unseen};
use crate::rt::event::verdict::End;
use crate::rt::plural::counted;

/// The line and the table, without a line break at the end.
pub(crate) fn render(view: &View<'_>) -> String {
    let end = match view.end {
        End::Pruned(why) => format!("given up {}", why.reason()),
        _ => "passed".to_owned(),
    };
    let (number, schedule) = (view.executions, view.schedule);
    let events = counted(view.trace.len() as u64, "event");
    let mut out = format!("dpor: execution {number} ({end}, {events}): {schedule}\n");
    let names = Names::new(view.end, view.trace, view.machine, view.given, view.callers);
    table::write(&mut out, view, &names);
    unseen::write(&mut out, &text::old_events(view, &names));
    out.push_str(&log::render(view));
    out.trim_end().to_owned()
}
