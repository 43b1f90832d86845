//! What is reported of a failure if the process ends before it can be looked at?
//!
//! What the execution itself shows. It is written on the stack of a thread of the program, in a panic hook or in a handler of a
//! signal, so nothing is run here, no lock is taken that the program could hold, and what matters most was said before.

use crate::diagnose::orderings::suggest_orderings;
use crate::exploration::replay_command;
use crate::rt::event::verdict::Reproduction;
use crate::rt::exec::crash_report::Unshown;
use crate::rt::report::places::{Callers, Life};
use crate::rt::report::text::{self, View};

pub(crate) fn report(of: &Unshown<'_>) -> String {
    let Unshown {
        trace,
        machine,
        test,
        ..
    } = *of;
    let mut end = of.end.clone();
    suggest_orderings(&mut end, trace);
    let schedule = machine.leading_to(end.thread(), trace, trace.len());
    let schedule = schedule.to_string();
    let message = of.message.map(|message| {
        let place = message.location.as_ref();
        let place = place.map(|(file, line, column)| (file.as_str(), *line, *column));
        (message.text.as_str(), place)
    });
    text::render(&View {
        end: &end,
        trace,
        machine,
        given: of.names,
        panic: message,
        earlier: of.earlier,
        life: &Life::default(),
        callers: &Callers::default(),
        log: &[],
        pair: None,
        again: Reproduction::Same,
        simplified: false,
        executions: of.executions,
        schedule: &schedule,
        test: test.map(str::to_owned),
        replay: &replay_command::replay_of(&schedule, test),
    })
}
