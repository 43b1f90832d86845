//! Who says what in the program's own log?
//!
//! The only file that names `tracing`. While an exploration runs, a [`Collector`] is the default subscriber
//! of its OS thread, unless the user has set one. It knows which modelled thread speaks, and keeps a stack of
//! spans for each: to any other subscriber all modelled threads are one. What it keeps belongs to one
//! execution and is forgotten when the next one begins.
//!
//! While an exploration runs nothing is written down, unless the user wants to see every execution: to put what is said
//! into words takes as long as all else or longer, and of nearly all executions nobody will ask. It is noted whether
//! anything was said. Of an execution that fails it is heard when that one is run again. `tracing` is told to
//! listen in either case: what it is asked to say may be computed with operations, and these are to be the same.
//!
//! All of it happens aside of the execution: the `Debug` of a value may well load an atomic, and to make an
//! event of that, the test would be explored otherwise when somebody listens. It could not even switch to
//! another thread: `tracing` lets nobody speak on an OS thread while it is in the midst of a line.

use std::cell::OnceCell;
use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::NoSubscriber;
use tracing::{Dispatch, Event, Metadata, Subscriber, dispatcher};
use tracing_subscriber::filter::Targets;

use super::aside::{aside, unless_it_waits};
use super::context::Runtime;
use crate::rt::trace::id::ThreadId;
use crate::rt::trace::said::Said;

/// The most lines that are kept of one execution; of more the last ones.
const LINES_MAX: usize = 1000;

/// The log of the execution that runs.
#[derive(Clone)]
pub(crate) struct Log(Arc<Shared>);

thread_local! {
    /// A log that keeps nothing and shows nothing, and its collector. The explorations of an OS thread use them one after the
    /// other: `tracing` looks through all that it knows whenever there is a new subscriber.
    static FLEETING: OnceCell<(Log, Dispatch)> = const { OnceCell::new() };
}

/// What the log and its collector share.
struct Shared {
    kept: Mutex<Kept>,
    /// What is shown of every execution, and then of a failed one nothing else.
    filter: Option<Targets>,
    /// Whether to show it.
    loud: bool,
    /// Whether what is said is kept, or only noted that something was.
    keeps: bool,
    spoken: AtomicBool,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<Said>,
    spans: HashMap<u64, Span>,
    /// The spans that each thread is in.
    stacks: HashMap<ThreadId, Vec<u64>>,
}

struct Span {
    name: &'static str,
    text: String,
    references: usize,
}

impl Log {
    /// A log of which everything that this filter lets through is shown at once, and kept; without a filter
    /// nothing is shown, and everything is kept if `keeps` says so.
    pub(crate) fn new(filter: Option<Targets>, keeps: bool) -> Log {
        let loud = filter.is_some();
        let fleeting = match loud || keeps {
            true => None,
            // An OS thread that ends has none any more.
            false => FLEETING.try_with(Log::idle).ok().flatten(),
        };
        fleeting.unwrap_or_else(|| Log::of(filter, loud, keeps || loud))
    }

    /// The log that keeps nothing, unless an exploration uses it within which this one runs.
    fn idle(fleeting: &OnceCell<(Log, Dispatch)>) -> Option<Log> {
        let (log, _) = fleeting.get_or_init(|| {
            let log = Log::of(None, false, false);
            let collector = log.new_collector();
            (log, collector)
        });
        // This one, and that of its collector.
        (Arc::strong_count(&log.0) == 2).then(|| log.clone())
    }

    fn of(filter: Option<Targets>, loud: bool, keeps: bool) -> Log {
        Log(Arc::new(Shared {
            kept: Mutex::default(),
            filter,
            loud,
            keeps,
            spoken: AtomicBool::new(false),
        }))
    }

    /// Another log of the same lines, which keeps them and shows nothing.
    pub(crate) fn quiet(&self) -> Log {
        Log::of(self.0.filter.clone(), false, true)
    }

    /// Whether what is said is kept.
    pub(crate) fn keeps(&self) -> bool {
        self.0.keeps
    }

    /// Whether anything was said in the execution that was not kept.
    pub(crate) fn was_missed(&self) -> bool {
        self.0.spoken.load(Relaxed)
    }

    /// The lines of the execution.
    pub(crate) fn lines(&self) -> Vec<Said> {
        self.kept().lines.iter().cloned().collect()
    }

    /// Another execution begins.
    pub(crate) fn clear(&self) {
        if self.keeps() {
            let mut kept = self.kept();
            kept.lines.clear();
            kept.spans.clear();
            kept.stacks.clear();
        }
        self.0.spoken.store(false, Relaxed);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what is said while `f` runs, unless the user has a subscriber who is to hear it.
    pub(crate) fn listen<R>(&self, f: impl FnOnce() -> R) -> R {
        if !dispatcher::get_default(|default| default.is::<NoSubscriber>()) {
            return f();
        }
        self.collected(f)
    }

    /// Runs `f` where a collector hears for this log.
    fn collected<R>(&self, f: impl FnOnce() -> R) -> R {
        let mut f = Some(f);
        let known = FLEETING.try_with(|fleeting| {
            let (_, collector) = fleeting.get().filter(|it| Arc::ptr_eq(&it.0.0, &self.0))?;
            Some(dispatcher::with_default(collector, f.take()?))
        });
        let new = || dispatcher::with_default(&self.new_collector(), f.take().expect("not run"));
        known.ok().flatten().unwrap_or_else(new)
    }

    fn new_collector(&self) -> Dispatch {
        Dispatch::new(Collector {
            log: self.clone(),
            next: AtomicU64::new(1),
        })
    }
}

/// Keeps what modelled threads say.
struct Collector {
    log: Log,
    /// The number of the next span.
    next: AtomicU64,
}

impl Collector {
    /// Does something with what is kept, for the modelled thread that runs. Nothing if there is none, or
    /// if its execution is over.
    fn keep<R>(&self, f: impl FnOnce(&mut Kept, ThreadId) -> R) -> Option<R> {
        self.aside(|runtime| f(&mut self.log.kept(), runtime.current.get()))
    }

    /// [`aside`], if anything is kept.
    fn aside<R>(&self, f: impl FnOnce(&Runtime) -> R) -> Option<R> {
        if !self.log.keeps() {
            return None;
        }
        aside(f)
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let filter = self.log.0.filter.as_ref();
        filter.is_none_or(|filter| filter.would_enable(metadata.target(), metadata.level()))
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Relaxed);
        self.aside(|_| {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            let span = Span {
                name: attributes.metadata().name(),
                text: fields.others,
                references: 1,
            };
            self.log.kept().spans.insert(id, span);
        });
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        self.aside(|_| {
            let mut fields = Fields::default();
            values.record(&mut fields);
            if let Some(span) = self.log.kept().spans.get_mut(&id.into_u64()) {
                span.text.push_str(&fields.others);
            }
        });
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.log.0.spoken.store(true, Relaxed);
        let metadata = event.metadata();
        self.aside(|runtime| {
            let mut fields = Fields::default();
            event.record(&mut fields);
            let thread = runtime.current.get();
            let inner = runtime.inner.borrow();
            let mut kept = self.log.kept();
            let said = Said {
                thread,
                after: inner.driver.executed().len(),
                level: metadata.level().as_str(),
                target: metadata.target(),
                text: format!("{}{fields}", kept.spans_of(thread)),
                file: metadata.file(),
                line: metadata.line(),
            };
            if self.log.0.loud {
                let given = inner.names.iter().find(|(t, _)| *t == thread);
                let name = match given {
                    Some((_, name)) => name.clone(),
                    None => inner.driver.machine.names.path(thread),
                };
                let number = inner.driver.stats.begun() + 1;
                eprintln!(
                    "dpor: execution {number}, after event {}, {name}: {:5} {}: {}",
                    said.after, said.level, said.target, said.text
                );
            }
            if kept.lines.len() == LINES_MAX {
                kept.lines.pop_front();
            }
            kept.lines.push_back(said);
        });
    }

    fn enter(&self, id: &Id) {
        self.keep(|kept, thread| kept.stacks.entry(thread).or_default().push(id.into_u64()));
    }

    fn exit(&self, id: &Id) {
        self.keep(|kept, thread| {
            let stack = kept.stacks.entry(thread).or_default();
            if let Some(at) = stack.iter().rposition(|&span| span == id.into_u64()) {
                stack.remove(at);
            }
        });
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.keep(|kept, _| {
            if let Some(span) = kept.spans.get_mut(&id.into_u64()) {
                span.references += 1;
            }
        });
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let closed = self.keep(|kept, _| {
            let Some(span) = kept.spans.get_mut(&id.into_u64()) else {
                return false;
            };
            span.references -= 1;
            span.references == 0 && kept.spans.remove(&id.into_u64()).is_some()
        });
        closed.unwrap_or_default()
    }
}

impl Kept {
    /// The spans that the thread is in, from the outermost on.
    fn spans_of(&self, thread: ThreadId) -> String {
        let mut text = String::new();
        for id in self.stacks.get(&thread).into_iter().flatten() {
            if let Some(span) = self.spans.get(id) {
                let fields = span.text.trim_start();
                // Writing to a string cannot fail.
                let _ = match fields {
                    "" => write!(text, "{}: ", span.name),
                    _ => write!(text, "{}{{{fields}}}: ", span.name),
                };
            }
        }
        text
    }
}

/// The fields of an event or a span, as text.
#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let value = unless_it_waits(|| format!("{value:?}"));
        let value = value.unwrap_or_else(|| "(waits for another thread)".to_owned());
        match field.name() {
            "message" => self.message.push_str(&value),
            name => {
                let name = name.trim_start_matches("r#");
                // Writing to a string cannot fail.
                let _ = write!(self.others, " {name}={value}");
            }
        }
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.message, self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explorations_share_a_log_only_one_after_the_other() {
        let fleeting = || Log::new(None, false);
        let is_same = |one: &Log, other: &Log| Arc::ptr_eq(&one.0, &other.0);
        let outer = fleeting();
        let inner = fleeting();
        assert!(!is_same(&outer, &inner));
        inner.listen(|| tracing::info!("something"));
        assert!(inner.was_missed() && !outer.was_missed());
        outer.listen(|| tracing::info!("something"));
        assert!(outer.was_missed());
        let address = Arc::as_ptr(&outer.0);
        drop(outer);
        assert_eq!(Arc::as_ptr(&fleeting().0), address);
        assert!(!is_same(&fleeting(), &Log::new(None, true)));
    }
}
