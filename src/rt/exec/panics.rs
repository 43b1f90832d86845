//! Which thread panicked, where, and which messages must not be printed twice?
//!
//! A panic hook ([`hook`](crate::rt::process::panic_hook)) asks whether this OS thread runs the
//! code of a modelled thread. If so, the hook keeps the message for the report and prints nothing,
//! unless the panic ends the process ([`Fatal`]): then there will be no report, and everything that
//! is known is printed at once. Any other panic goes to the hook that was installed before.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::Write;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::context::{Inner, Runtime, with_any};
use crate::rt::coroutine::asks_for_a_stack;
use crate::rt::engine::checkpoint::Statics;
use crate::rt::event::id::{Region, ThreadId};
use crate::rt::event::operation::OpKind;
use crate::rt::event::verdict::{End, Panic};
use crate::rt::event::{Event, foreign};
use crate::rt::exec::crash_report::{AtEnd, Known, Unshown};
use crate::rt::exec::updates;
use crate::rt::heap::Asked;
use crate::rt::process::raised::{Raised, Second, words};
use crate::rt::statics::image::Image;

/// Handles a panic that has begun on this OS thread. True if no other hook is to see the panic.
pub(super) fn begun(info: &PanicHookInfo<'_>) -> bool {
    // `generator` panics where the system has no memory for a stack. The run loop reports that
    // case.
    asks_for_a_stack()
        || updates::is_trying()
        || keep(
            |thread, after| told(info, thread, after),
            || can_unwind(info),
        )
}

/// Describes a panic of this thread, or of no known thread, after so many events.
fn told(info: &PanicHookInfo<'_>, thread: ThreadId, after: usize) -> Panic {
    let text = words(info.payload());
    let location = info
        .location()
        .map(|l| (l.file().to_owned(), l.line(), l.column()));
    Panic {
        thread,
        after,
        text,
        location,
    }
}

/// Handles a panic that has begun. If the panic is in the code of a modelled thread, keeps its
/// message with its thread and the number of events before it, and returns true. If the panic ends
/// the process, prints everything that is known and returns false, so that the message is printed
/// as well.
fn keep(
    panic: impl FnOnce(ThreadId, usize) -> Panic,
    can_unwind: impl FnOnce() -> Option<bool>,
) -> bool {
    let kept = with_any(|runtime| {
        if !runtime.running.get() {
            return false;
        }
        // The thread has left its loop with a value that it only tried. It unwinds up to its next
        // action, and no failure is noted.
        if runtime.tries.get() {
            return true;
        }
        let events = runtime.inner.try_borrow();
        let events = events.map_or(0, |inner| inner.driver.executed().len());
        let message = panic(runtime.current.get(), events);
        let Some(fatal) = Fatal::of(&message.text, can_unwind()) else {
            runtime.begin_panic(message);
            return true;
        };
        if fatal == Fatal::Itself {
            runtime.begin_panic(message);
        }
        if runtime.will_be_left() {
            return true;
        }
        runtime.last_words(fatal);
        false
    });
    kept == Some(true)
}

/// Whether a panic unwinds, as far as that is known. The method that returns this is not stable,
/// but the debug output contains it, and contains no other text that a program could put these
/// words into.
fn can_unwind(info: &PanicHookInfo<'_>) -> Option<bool> {
    let text = format!("{info:?}");
    let says = |said| text.contains(said);
    match (says("can_unwind: true"), says("can_unwind: false")) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// Why the process ends.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(unix),
    expect(dead_code, reason = "nothing tells of these ends there")
)]
pub(super) enum Fatal {
    /// A destructor has panicked while its thread unwound already.
    Cleanup,
    /// A panic has reached a function that cannot unwind.
    Function,
    /// The panic cannot unwind: a check has failed in a function with a caller that is not built
    /// for unwinding.
    Itself,
    /// The program ends the process, without a panic ([`process_exit`](super::process_exit)).
    Exit,
    Abort,
    Instruction,
    /// The allocator behind the tracking one ends the process, on this request.
    Allocator(Asked),
}

/// The messages by which std names these reasons.
const FATAL: [(&str, Fatal); 9] = [
    ("panic in a destructor during cleanup", Fatal::Cleanup),
    ("panic in a function that cannot unwind", Fatal::Function),
    ("null pointer dereference occurred", Fatal::Itself),
    ("misaligned pointer dereference: ", Fatal::Itself),
    ("unsafe precondition(s) violated: ", Fatal::Itself),
    (
        "trying to construct an enum from an invalid value ",
        Fatal::Itself,
    ),
    ("attempted to instantiate uninhabited type ", Fatal::Itself),
    ("attempted to zero-initialize type ", Fatal::Itself),
    ("attempted to leave type ", Fatal::Itself),
];

impl Fatal {
    /// Whether the reason is no panic.
    fn is_silent(self) -> bool {
        use Fatal::{Abort, Allocator, Exit, Instruction};
        matches!(self, Exit | Abort | Instruction | Allocator(_))
    }

    /// The cause of the end of the process, in words. Where every panic aborts, a panic that could
    /// unwind looks like a call of `abort` by the program.
    fn what(self, every_panic_aborts: bool) -> &'static str {
        match self {
            Fatal::Cleanup => "a destructor has panicked while its thread unwound, which",
            Fatal::Function => "a panic in a function that cannot unwind",
            Fatal::Itself => "a panic that cannot unwind",
            Fatal::Exit => "a call of `exit`",
            Fatal::Abort if every_panic_aborts => {
                "a panic, or a call of `abort`, in a program built with `panic = \"abort\"`"
            }
            Fatal::Abort => "a call of `abort`",
            Fatal::Instruction => "an illegal instruction",
            Fatal::Allocator(Asked::Free(_)) => {
                "the allocator, which was handed a pointer that it has never handed out, or has found its memory overwritten,"
            }
            Fatal::Allocator(Asked::Block) => {
                "the allocator, which has found its memory overwritten,"
            }
        }
    }

    /// The reason for which a panic with this message ends the process; `None` if it does not.
    /// Where it is not known whether the panic unwinds, the message decides.
    fn of(message: &str, can_unwind: Option<bool>) -> Option<Fatal> {
        let said = FATAL.iter().find(|(said, _)| message.starts_with(said));
        let said = said.map(|(_, fatal)| *fatal);
        match can_unwind {
            Some(true) => None,
            Some(false) => said.or(Some(Fatal::Itself)),
            None => said,
        }
    }
}

impl Runtime {
    /// Forgets the panics of the execution, which has ended.
    #[inline]
    pub(super) fn forget_panics(&self) {
        self.failed.set(None);
        // A panic without a hook call is known only to `unwinding`.
        if !self.unwinding.is_calm() {
            self.unwinding.reset();
        }
        if !self.panics.borrow().is_empty() {
            self.forget_some_panics();
        }
    }

    #[cold]
    fn forget_some_panics(&self) {
        self.panics.borrow_mut().clear();
        self.raised.set(None);
        self.earlier.borrow_mut().clear();
        self.failing.set(None);
        self.second.set(None);
    }

    /// The last panic has been caught, and the panics that were active when it began are over, too:
    /// none of them is the end of the execution.
    #[cold]
    pub(super) fn caught(&self) {
        self.pulse.forget();
        if let Some(raised) = self.raised.take() {
            self.earlier.borrow_mut().extend(raised.panics());
        }
    }

    /// Notes a panic of the thread that runs.
    fn begin_panic(&self, message: Panic) {
        let me = self.current.get();
        self.begin_to_unwind();
        self.panics.borrow_mut().push(message.clone());
        if self.stopping.get() || self.unexplored.get() {
            // The failure has been found before.
            return;
        }
        let fails = !self.catches_panics || me == ThreadId::MAIN;
        match self.failing.get() {
            // The execution fails because of the first panic, unless the test catches that one.
            Some((first, _)) if first != me => self.note_second(message, fails),
            _ => {
                let stack = if fails { self.note_where() } else { None };
                let raised = Raised {
                    panic: message,
                    stack,
                    before: self.raised.take(),
                };
                if fails && let Ok(inner) = self.inner.try_borrow() {
                    let events = inner.driver.executed().len();
                    self.failing.set(Some((me, events)));
                    drop(inner);
                    let mut earlier = self.earlier.borrow().clone();
                    earlier.extend(raised.before.iter().flat_map(|before| before.panics()));
                    let end = End::panicked(me);
                    self.make_known(&end, events, Some(&raised.panic), earlier);
                }
                self.raised.set(Some(Box::new(raised)));
            }
        }
    }

    /// Notes a panic of a thread while another one unwinds.
    #[cold]
    fn note_second(&self, panic: Panic, fails: bool) {
        let Ok(inner) = self.inner.try_borrow() else {
            return;
        };
        let known = self.second.take();
        let of_another = |second: &Second| second.raised.panic.thread != panic.thread;
        if !fails || known.as_deref().is_some_and(of_another) {
            self.second.set(known);
            return;
        }
        let events = inner.driver.executed().len();
        drop(inner);
        let stack = self.note_where();
        let before = None;
        let raised = Box::new(Raised {
            panic,
            stack,
            before,
        });
        self.second.set(Some(Box::new(Second {
            raised,
            events,
            payload: None,
        })));
    }

    /// The stack on which a panic begins, if the environment asks for it as it does for std
    /// (`RUST_BACKTRACE`).
    fn note_where(&self) -> Option<Box<Backtrace>> {
        // Allocations here are not the program's.
        let recorded = self.heap.record(false);
        let stack = Backtrace::capture();
        let is_asked_for = stack.status() == BacktraceStatus::Captured;
        let stack = is_asked_for.then(|| Box::new(stack));
        self.heap.record(recorded);
        stack
    }

    /// Describes the place of an address that may lie outside of all blocks of the allocator.
    fn place_of(&self, address: usize, inner: &Inner, who: impl Fn(ThreadId) -> String) -> String {
        match self.locate_own(&inner.stacks, address) {
            Some(Region::Stack { thread, .. }) => format!("on the stack of {}", who(thread)),
            _ if Image.number(address).is_some() => "in a static of the program".to_owned(),
            _ => format!("at {address:#x}, where no block of this execution is"),
        }
    }

    /// Prints everything that is known before the process ends, for the reason `fatal`. A panic
    /// that ends the process does so by `abort`, so only the first reason counts.
    pub(super) fn last_words(&self, fatal: Fatal) {
        static TOLD: AtomicBool = AtomicBool::new(false);
        if TOLD.swap(true, Relaxed) {
            return;
        }
        let what = fatal.what(cfg!(panic = "abort"));
        let mut text = String::new();
        let inner = self.inner.try_borrow();
        let who = |thread: ThreadId| match &inner {
            Ok(inner) => inner.called(thread),
            Err(_) => "a thread".to_owned(),
        };
        for panic in self.panics.borrow().iter() {
            let who = who(panic.thread);
            let place = panic.location.as_ref();
            let place = place.map_or_else(String::new, |(file, line, column)| {
                format!(" at {file}:{line}:{column}")
            });
            text += &format!("  {who} panicked{place}: {}\n", panic.text);
        }
        let me = self.current.get();
        if let Ok(inner) = &inner
            && (fatal.is_silent() || self.panics_elsewhere(me))
        {
            let did = match fatal {
                Fatal::Allocator(_) => "has asked it",
                _ if fatal.is_silent() => "has done it",
                _ => "panicked outside of the program's source",
            };
            let when = last_seen(inner.driver.executed(), me);
            text += &format!("  {} {did} {when}\n", who(me));
        }
        if let Ok(inner) = &inner
            && let Fatal::Allocator(Asked::Free(address)) = fatal
        {
            let place = self.place_of(address, inner, who);
            text += &format!("  what was to be freed is {place}\n");
        }
        if self.stopping.get() {
            let stuck = who(me);
            text += &format!(
                "  {stuck} was stuck in an execution that is over, and is unwound; what a destructor checks, it checks unless \
                 `thread::panicking()`\n"
            );
        }
        if let Ok(inner) = &inner {
            if let Some((end, ..)) = self.failed.get() {
                text += &format!("  the execution had ended with a {end}");
                for (index, &(thread, site)) in self.failed_at.borrow().iter().enumerate() {
                    let before = if index == 0 { ": " } else { ", " };
                    text += &format!("{before}{} at {site}", who(thread));
                }
                text.push('\n');
            }
            let driver = &inner.driver;
            let executed = driver.executed().len();
            let (thread, events) = match (self.failed.get(), self.failing.get()) {
                (Some((_, thread, events)), _) => (thread, events),
                (None, Some((thread, events))) => (Some(thread), events.min(executed)),
                // The panic of a thread may not have been a failure (`catch_panics`), but is one
                // now.
                (None, None) if !self.stopping.get() => (Some(me), executed),
                (None, None) => (None, executed),
            };
            let schedule = driver.machine.leading_to(thread, &driver.trace, events);
            let replay =
                (self.replay)(&schedule.to_string(), &self.weakened, self.os_thread.name());
            text += &format!("  replay: {replay}\n");
        }
        drop(inner);
        let text = format!("dpor: {what} ends the process. {}", found(&text));
        // Not `eprint`: a test harness captures its output until the test has ended.
        let say = |text: &str| std::io::stderr().write_all(text.as_bytes());
        let _ = say(&text);
        // The report comes last, on the rest of the stack: if there is no room for it, the other
        // lines have been printed.
        let report = self.report_unshown().or_else(|| self.pulse.report());
        if let Some(report) = report {
            let _ = say(&format!("\n{report}\n\n"));
        }
    }

    /// Whether the place of the last panic of this thread lies outside of the program's source, as
    /// where std checks the contract of an unsafe function.
    fn panics_elsewhere(&self, thread: ThreadId) -> bool {
        let panics = self.panics.borrow();
        let last = panics.iter().rev().find(|panic| panic.thread == thread);
        let place = last.and_then(|panic| panic.location.as_ref());
        place.is_some_and(|(file, ..)| foreign(file).is_some())
    }
}

/// The printed findings with an introduction; where nothing could be read, the possible reason.
fn found(text: &str) -> String {
    if !text.is_empty() {
        format!("What was found is not lost:\n{text}")
    } else {
        "That was in dpor itself, between two steps of the test, so no schedule can be told. If memory was refused: \
         `Builder::max_memory` (DPOR_MAX_MEMORY, in bytes) stops an exploration before that, a bound \
         (DPOR_MAX_PREEMPTIONS=2, say) needs less, and DPOR_CHECKPOINT_FILE keeps what was explored\n"
    .to_owned()
    }
}

/// The last events before an action of a thread that is no event, as far as they are known. Only
/// the stack shows the place of the action in the program.
fn last_seen(events: &[Event], thread: ThreadId) -> String {
    let told = |at: usize| {
        let site = events[at].site;
        let place = foreign(site.file()).map_or_else(|| format!("at {site}"), str::to_owned);
        format!("event {}, {place}", at + 1)
    };
    let its = |at: &usize| events[*at].thread == thread;
    let mut before = (0..events.len()).rev().filter(its);
    let Some(last) = before.next() else {
        let spawn = OpKind::Spawn { child: thread };
        let spawn = events.iter().position(|it| it.operation.kind == spawn);
        let spawn = spawn.map_or_else(String::new, |at| format!("; {}, has spawned it", told(at)));
        return format!("before any operation that dpor has seen of it{spawn}");
    };
    let own = |at: &usize| foreign(events[*at].site.file()).is_none();
    let own = if own(&last) { None } else { before.find(own) };
    let own = own.map_or_else(String::new, |at| {
        format!("; the last with a place in the program is {}", told(at))
    });
    format!(
        "after {}, its last operation that dpor has seen{own}",
        told(last)
    )
}

impl Runtime {
    /// Notes that the execution has failed, or will have failed if the panic is not caught, after
    /// so many events. Code of the program runs before the failure is shown, and may never return:
    /// then the watchdog reports the failure.
    #[cold]
    pub(super) fn make_known(
        &self,
        end: &End,
        events: usize,
        message: Option<&Panic>,
        earlier: Vec<Panic>,
    ) {
        let Ok(inner) = self.inner.try_borrow() else {
            return;
        };
        // Allocations here are not the program's.
        let recorded = self.heap.record(false);
        let (trace, machine) = inner.driver.as_it_was(events);
        self.pulse.know(Box::new(Known {
            end: end.clone(),
            trace,
            machine,
            names: inner.names.clone(),
            message: message.cloned(),
            earlier,
            executions: inner.driver.stats.numbered() + 1,
            test: self.os_thread.name().map(str::to_owned),
            nth: self.nth,
            weakened: self.weakened.clone(),
            report: self.report,
        }));
        self.heap.record(recorded);
    }

    /// The report of the failure of an execution that is being unwound and is not explored any
    /// more. None if no failed execution is being unwound, or if data that the report needs is
    /// borrowed.
    pub(super) fn report_unshown(&self) -> Option<String> {
        let mut inner = self.inner.try_borrow_mut().ok()?;
        let AtEnd {
            end,
            machine,
            message,
            earlier,
        } = *self.at_end.try_borrow_mut().ok()?.take()?;
        let (_, _, events) = self.failed.get()?;
        let Inner { driver, names, .. } = &mut *inner;
        // While the other threads run out, there are more events, and there may be more behind a
        // panic. These events are not part of the failure.
        let later = std::mem::replace(&mut driver.machine, machine);
        driver.machine.keep_names_of(later);
        driver.hide_suffix(events);
        Some((self.report)(&Unshown {
            end: &end,
            trace: &driver.trace,
            machine: &driver.machine,
            names,
            message: message.as_ref(),
            earlier: &earlier,
            executions: driver.stats.numbered() + 1,
            test: self.os_thread.name(),
            nth: self.nth,
            weakened: &self.weakened,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_with_nothing_behind_them_are_not_announced() {
        assert_eq!(found("  it\n"), "What was found is not lost:\n  it\n");
        let nothing = found("");
        assert!(
            !nothing.contains("not lost") && nothing.contains("DPOR_MAX_MEMORY"),
            "{nothing}"
        );
    }

    #[test]
    fn an_abort_is_not_laid_to_the_program_where_every_panic_is_one() {
        assert_eq!(Fatal::Abort.what(false), "a call of `abort`");
        assert!(Fatal::Abort.what(true).contains("`panic = \"abort\"`"));
        assert_eq!(Fatal::Exit.what(true), Fatal::Exit.what(false));
    }

    #[test]
    fn what_std_says_decides_only_where_nobody_knows_better() {
        let cleanup = "panic in a destructor during cleanup";
        let null = "null pointer dereference occurred";
        let misaligned =
            "misaligned pointer dereference: address must be a multiple of 0x4 but is 0x1";
        for (message, can_unwind, fatal) in [
            (cleanup, None, Some(Fatal::Cleanup)),
            (cleanup, Some(false), Some(Fatal::Cleanup)),
            (null, None, Some(Fatal::Itself)),
            (null, Some(true), None),
            (misaligned, None, Some(Fatal::Itself)),
            ("broken", None, None),
            ("broken", Some(false), Some(Fatal::Itself)),
        ] {
            assert!(Fatal::of(message, can_unwind) == fatal, "{message}");
        }
    }
}
