//! Which modelled thread writes which line of the program's own log?
//!
//! The only file that names `tracing`; without the feature `log`, `log/off.rs` stands in its place.
//! While an exploration runs, a [`Collector`] is the default subscriber of its OS thread, unless
//! the user has set one. The collector knows which modelled thread logs a line, and keeps a stack
//! of spans for each; to any other subscriber all modelled threads are one. The lines and spans
//! that it keeps belong to one execution and are forgotten when the next execution begins.
//!
//! While an exploration runs no line is formatted, unless the user wants to see every execution:
//! formatting takes as long as the rest of the execution or longer, and the log of nearly all
//! executions is never read. The collector only notes whether there was a line. The lines of an
//! execution that fails are kept when that execution is run again. In either case the
//! collector enables the same lines for `tracing`: the fields of a line may be computed with
//! operations, and these operations have to be the same.
//!
//! All formatting happens aside of the execution. The `Debug` of a value may load an atomic, and if
//! that load were an event, a test would be explored differently when its log is kept. The thread
//! could not even be switched there: `tracing` lets no thread log on an OS thread that is in the
//! middle of a line.

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
use crate::rt::event::id::ThreadId;
use crate::rt::event::said::Said;
use crate::rt::pooled::{Empty, Pooled, pooled};
use crate::rt::rare::rarely;

/// The most lines that are kept of one execution. Of more lines the last ones are kept.
const LINES_MAX: usize = 1000;

/// Which lines are shown.
#[derive(Clone)]
pub(crate) struct Filter(Targets);

impl Filter {
    pub(crate) fn parse(text: &str) -> Result<Filter, String> {
        let parsed = text.parse().map(Filter);
        parsed.map_err(|error: tracing_subscriber::filter::ParseError| error.to_string())
    }
}

/// The log of the execution that runs.
pub(crate) struct Log(Pooled<Ears>);

/// A log and its collector. The explorations of an OS thread use a log that keeps and shows nothing
/// one after the other, because `tracing` visits all of its call sites whenever there is a new
/// subscriber.
struct Ears {
    log: Arc<Shared>,
    collector: OnceCell<Dispatch>,
}

pooled!(Ears);

/// The state that the log and its collector share.
#[derive(Default)]
struct Shared {
    kept: Mutex<Kept>,
    /// The filter for the lines of every execution that are shown. A failed execution keeps no
    /// other lines then.
    filter: Option<Filter>,
    /// Whether lines are shown.
    loud: bool,
    /// Whether lines are kept, or only their existence is noted.
    keeps: bool,
    spoken: AtomicBool,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<Said>,
    spans: HashMap<u64, Span>,
    /// The spans that each thread has entered.
    stacks: HashMap<ThreadId, Vec<u64>>,
}

struct Span {
    name: &'static str,
    text: String,
    references: usize,
}

impl Log {
    /// A log. With a filter, every line that the filter lets through is shown at once, and kept.
    /// Without a filter no line is shown, and every line is kept if `keeps` is set.
    pub(crate) fn new(filter: Option<Filter>, keeps: bool) -> Log {
        match (filter, keeps) {
            (None, false) => Log(Pooled::default()),
            (filter, _) => Log::of(filter.is_some(), filter),
        }
    }

    /// A log that keeps lines.
    fn of(loud: bool, filter: Option<Filter>) -> Log {
        let shared = Shared {
            filter,
            loud,
            keeps: true,
            ..Shared::default()
        };
        Log(Ears::from(shared).into())
    }

    /// Another log of the same lines, which keeps them and shows none.
    pub(crate) fn quiet(&self) -> Log {
        Log::of(false, self.0.log.filter.clone())
    }

    /// Whether lines are kept.
    pub(crate) fn keeps(&self) -> bool {
        self.0.log.keeps
    }

    /// Whether the execution has logged a line that was not kept.
    pub(crate) fn was_missed(&self) -> bool {
        self.0.log.spoken.load(Relaxed)
    }

    /// The lines of the execution.
    pub(crate) fn lines(&self) -> Vec<Said> {
        self.0.log.kept().lines.iter().cloned().collect()
    }

    /// Prepares the log for another execution.
    #[inline]
    pub(crate) fn clear(&self) {
        if rarely!(self.keeps()) {
            self.forget();
        }
        self.0.log.spoken.store(false, Relaxed);
    }

    #[inline(never)]
    fn forget(&self) {
        let mut kept = self.0.log.kept();
        kept.lines.clear();
        kept.spans.clear();
        kept.stacks.clear();
    }

    /// Keeps the lines that are logged while `f` runs, unless the user has set a subscriber, which
    /// then gets them.
    pub(crate) fn listen<R>(&self, f: impl FnOnce() -> R) -> R {
        if !dispatcher::get_default(|default| default.is::<NoSubscriber>()) {
            return f();
        }
        let Ears { log, collector } = &*self.0;
        let collector = collector.get_or_init(|| {
            Dispatch::new(Collector {
                log: log.clone(),
                next: AtomicU64::new(1),
            })
        });
        dispatcher::with_default(collector, f)
    }
}

impl From<Shared> for Ears {
    fn from(log: Shared) -> Ears {
        Ears {
            log: Arc::new(log),
            collector: OnceCell::new(),
        }
    }
}

impl Default for Ears {
    /// The log that keeps nothing and shows nothing, and its collector.
    fn default() -> Ears {
        Shared::default().into()
    }
}

impl Empty for Ears {
    fn empty(&mut self) {
        self.log.spoken.store(false, Relaxed);
    }

    fn has_room(&self) -> bool {
        !self.log.keeps
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the lines of modelled threads.
struct Collector {
    log: Arc<Shared>,
    /// The number of the next span.
    next: AtomicU64,
}

impl Collector {
    /// Calls `f` with the kept state and the modelled thread that runs. `None` if no thread runs,
    /// or its execution is over.
    fn keep<R>(&self, f: impl FnOnce(&mut Kept, ThreadId) -> R) -> Option<R> {
        self.aside(|runtime| f(&mut self.log.kept(), runtime.current.get()))
    }

    /// [`aside`], if lines are kept.
    fn aside<R>(&self, f: impl FnOnce(&Runtime) -> R) -> Option<R> {
        if !self.log.keeps {
            return None;
        }
        aside(f)
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let filter = self.log.filter.as_ref();
        filter.is_none_or(|Filter(filter)| filter.would_enable(metadata.target(), metadata.level()))
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
        self.log.spoken.store(true, Relaxed);
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
            if self.log.loud {
                let name = inner.called(thread);
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
    /// The spans that the thread has entered, from the outermost on.
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
        let is_same = |one: &Log, other: &Log| Arc::ptr_eq(&one.0.log, &other.0.log);
        let outer = fleeting();
        let inner = fleeting();
        assert!(!is_same(&outer, &inner));
        inner.listen(|| tracing::info!("something"));
        assert!(inner.was_missed() && !outer.was_missed());
        outer.listen(|| tracing::info!("something"));
        assert!(outer.was_missed());
        let address = Arc::as_ptr(&outer.0.log);
        drop(outer);
        assert_eq!(Arc::as_ptr(&fleeting().0.log), address);
        assert!(!is_same(&fleeting(), &Log::new(None, true)));
    }
}
