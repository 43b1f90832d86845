//! How is an execution drawn as a graph?
//!
//! In the language of Graphviz: a column per thread with its events in program order, a bold arrow
//! from each write to its reads, a dashed one for what else orders two threads (the transitive reduction
//! of happens-before, so no arrow says what others say already), and in red what failed.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::execution::{Execution, Fence, Place, Touch};
use super::text::short;

/// The most characters of a label; the tooltip has the rest.
const LABEL_MAX: usize = 48;

/// The graph.
pub(crate) fn render(execution: &Execution) -> String {
    let mut out = String::from(
        "digraph execution {\n  rankdir=TB; newrank=true; splines=true;\n  \
         node [shape=box, style=filled, fillcolor=white, fontname=\"monospace\", fontsize=10];\n  \
         edge [fontname=\"monospace\", fontsize=9];\n",
    );
    let _ = writeln!(
        out,
        "  label={}; labelloc=t;",
        quoted(&execution.outcome.sentence)
    );
    columns(&mut out, execution);
    between(&mut out, execution);
    race(&mut out, execution);
    decisive(&mut out, execution);
    waits(&mut out, execution);
    out.push_str("}\n");
    out
}

/// A cluster per thread: its events, and what it came to at the end.
fn columns(out: &mut String, execution: &Execution) {
    for (index, thread) in execution.threads.iter().enumerate() {
        let _ = writeln!(out, "  subgraph cluster_{index} {{");
        let _ = writeln!(out, "    label={}; color=gray;", quoted(thread.shown()));
        let mut chain = accesses(out, execution, index, None);
        let mut panics = earlier_panics(execution, index).peekable();
        let fences = execution.fences.iter().enumerate();
        let mut fences = fences.filter(|(_, fence)| fence.thread == index).peekable();
        let draw_fence = |out: &mut String, nth: usize, fence: &Fence| {
            let name = format!("f{nth}");
            node(out, &name, "fence", &fence.place, "");
            name
        };
        for event in execution.events.iter().filter(|e| e.thread == index) {
            while let Some(panic) = panics.next_if(|panic| panic.after < event.number) {
                chain.push(panic.draw(out));
            }
            while let Some((nth, fence)) = fences.next_if(|(_, it)| it.after < event.number) {
                chain.push(draw_fence(out, nth, fence));
            }
            let name = format!("e{}", event.number);
            let label = format!("{}  {}", event.number, event.words);
            node(out, &name, &label, &event.place, "");
            chain.push(name);
            chain.extend(accesses(out, execution, index, Some(event.number)));
        }
        chain.extend(fences.map(|(nth, fence)| draw_fence(out, nth, fence)));
        chain.extend(panics.map(|panic| panic.draw(out)));
        chain.extend(last(out, execution, index));
        for pair in chain.windows(2) {
            let _ = writeln!(out, "    {} -> {} [weight=8];", pair[0], pair[1]);
        }
        out.push_str("  }\n");
    }
}

/// A panic that was not the end of the execution.
struct Earlier<'a> {
    number: usize,
    after: usize,
    message: &'a str,
    place: &'a Place,
}

impl Earlier<'_> {
    /// The node's name.
    fn draw(&self, out: &mut String) -> String {
        let name = format!("p{}", self.number);
        let message = self.message.lines().next().unwrap_or_default();
        let label = format!("panics: {message}");
        node(out, &name, &label, self.place, FAILED);
        name
    }
}

/// The panics of this thread before the end of the execution.
fn earlier_panics(execution: &Execution, thread: usize) -> impl Iterator<Item = Earlier<'_>> {
    let all = execution.outcome.earlier_panics.iter().enumerate();
    let mine = all.filter(move |(_, panic)| panic.thread == thread);
    mine.filter_map(|(number, panic)| {
        let before = execution.events.get(..panic.after).and_then(<[_]>::last);
        Some(Earlier {
            number,
            after: panic.after,
            message: &panic.message,
            place: panic.place.as_ref().or(before.map(|event| &event.place))?,
        })
    })
}

/// The accesses of a data race that the thread made directly behind this event; their names.
fn accesses(
    out: &mut String,
    execution: &Execution,
    thread: usize,
    after: Option<usize>,
) -> Vec<String> {
    let Some(race) = &execution.outcome.data_race else {
        return Vec::new();
    };
    // An atomic access is an event, which is there already.
    let here = |(_, touch): &(_, &Touch)| {
        touch.event.is_none() && touch.thread == thread && touch.after == after
    };
    let both = [("first", &race.first), ("second", &race.second)];
    let mine = both.into_iter().filter(here).map(|(name, touch)| {
        node(out, name, &touch.words, &touch.place, FAILED);
        name.to_owned()
    });
    mine.collect()
}

/// What the thread waits for or panicked at, if it did: the node's name.
fn last(out: &mut String, execution: &Execution, thread: usize) -> Option<String> {
    let outcome = &execution.outcome;
    let mut waiting = outcome.waiting.iter();
    if let Some(waiting) = waiting.find(|it| it.thread == thread) {
        let name = format!("w{thread}");
        node(out, &name, &waiting.doing, &waiting.place, FAILED);
        return Some(name);
    }
    if let Some(misuse) = outcome.misuse.as_ref().filter(|it| it.thread == thread) {
        let place = misuse.place.as_ref();
        let mut events = execution.events.iter();
        let last = events.rfind(|event| event.thread == thread);
        // A free has no place of its own: the thread's last event is nearest.
        let place = place.or(last.map(|event| &event.place))?;
        node(out, "misuse", &misuse.words, place, FAILED);
        return Some("misuse".to_owned());
    }
    let place = outcome.place.as_ref();
    let place = place.filter(|_| outcome.thread == Some(thread))?;
    node(out, "panic", "panics", place, FAILED);
    Some("panic".to_owned())
}

/// What marks a node that is no event but the failure itself.
const FAILED: &str = ", color=red, fontcolor=red";

fn node(out: &mut String, name: &str, label: &str, place: &Place, more: &str) {
    let at = match place.instead {
        Some(somewhere) => somewhere.to_owned(),
        None => format!("{}:{}", short(&place.file), place.line),
    };
    let label_shown = format!("{}\n{at}", shortened(label));
    let tooltip = match &place.text {
        Some(text) => format!("{label}\n{at}\n{text}"),
        None => format!("{label}\n{at}"),
    };
    let _ = writeln!(
        out,
        "    {name} [label={}, tooltip={}{more}];",
        quoted(&label_shown),
        quoted(&tooltip)
    );
}

/// The arrows between threads.
fn between(out: &mut String, execution: &Execution) {
    let mut drawn = BTreeSet::new();
    let race = execution.outcome.data_race.as_ref();
    let is_weak = |from, to| race.is_some_and(|race| race.is_weak(from, to));
    for event in &execution.events {
        if let Some(from) = event.reads_from {
            drawn.insert((from, event.number));
            let (color, label) = match is_weak(from, event.number) {
                true => ("red", "read by, too weak"),
                false => ("forestgreen", "read by"),
            };
            let _ = writeln!(
                out,
                "  e{from} -> e{} [color={color}, fontcolor={color}, penwidth=2, label=\"{label}\"];",
                event.number
            );
        }
    }
    for event in &execution.events {
        for &from in &event.after {
            let before = &execution.events[from - 1];
            if before.thread != event.thread && !drawn.contains(&(from, event.number)) {
                let _ = writeln!(
                    out,
                    "  e{from} -> e{} [style=dashed, color=gray40];",
                    event.number
                );
            }
        }
    }
}

fn race(out: &mut String, execution: &Execution) {
    let Some(race) = &execution.outcome.data_race else {
        return;
    };
    let node = |name: &str, touch: &Touch| match touch.event {
        Some(event) => format!("e{event}"),
        None => name.to_owned(),
    };
    let _ = writeln!(
        out,
        "  {} -> {} [dir=both, color=red, penwidth=3, label=\"data race\", fontcolor=red, \
         constraint=false];",
        node("first", &race.first),
        node("second", &race.second),
    );
}

/// From the first to the second of the two operations that the failure hangs on.
fn decisive(out: &mut String, execution: &Execution) {
    let Some(pair) = &execution.pair else {
        return;
    };
    let race = execution.outcome.data_race.as_ref();
    let is_weak = |second| race.is_some_and(|race| race.is_weak(pair.first, second));
    if pair.second.is_some_and(is_weak) {
        // It is red already, and says why.
        return;
    }
    let mut waiting = execution.outcome.waiting.iter();
    let second = match pair.second {
        Some(second) => format!("e{second}"),
        None if waiting.any(|it| it.thread == pair.thread) => format!("w{}", pair.thread),
        None => return,
    };
    let _ = writeln!(
        out,
        "  e{} -> {second} [color=red, style=bold, label=\"fails in this order\", fontcolor=red, \
         constraint=false];",
        pair.first
    );
}

/// From each thread that waits for a lock to who holds it.
fn waits(out: &mut String, execution: &Execution) {
    for waiting in &execution.outcome.waiting {
        let Some(holder) = waiting.held_by else {
            continue;
        };
        let stuck = (execution.outcome.waiting.iter()).any(|it| it.thread == holder);
        let mut events = execution.events.iter();
        let last = match events.rfind(|event| event.thread == holder) {
            _ if stuck => format!("w{holder}"),
            Some(event) => format!("e{}", event.number),
            None => continue,
        };
        let _ = writeln!(
            out,
            "  w{} -> {last} [color=red, penwidth=2, label=\"held by\", fontcolor=red, \
             constraint=false];",
            waiting.thread
        );
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= LABEL_MAX {
        return text.to_owned();
    }
    let start: String = text.chars().take(LABEL_MAX - 1).collect();
    format!("{start}…")
}

/// A string of the language.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}
