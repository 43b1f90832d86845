//! How is an execution drawn as a graph?
//!
//! The graph is in the language of Graphviz and has the facts of the text report. Each thread has a
//! column with its events in program order. A bold arrow leads from each write to its reads. A
//! dashed arrow shows each other order between two threads; only the transitive reduction of
//! happens-before is drawn, so no arrow repeats what others already say. The failure is red.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::execution::{Aside, Event, Execution, Fence, Fold, Place, Touch};
use super::view::short;

/// The most characters of a label; the tooltip has the whole text.
const LABEL_MAX: usize = 48;

/// The most characters of a line above the graph; a longer one is broken.
const TITLE_MAX: usize = 110;

/// Renders the graph.
pub(crate) fn render(execution: &Execution) -> String {
    let mut out = String::from(
        "digraph execution {\n  rankdir=TB; newrank=true; splines=true;\n  \
         node [shape=box, style=filled, fillcolor=white, fontname=\"monospace\", fontsize=10];\n  \
         edge [fontname=\"monospace\", fontsize=9];\n",
    );
    let _ = writeln!(
        out,
        "  label=\"{}\"; labelloc=t; labeljust=l; fontname=\"monospace\"; fontsize=11;",
        title(execution)
    );
    columns(&mut out, execution);
    between(&mut out, execution);
    race(&mut out, execution);
    misuse(&mut out, execution);
    decisive(&mut out, execution);
    waits(&mut out, execution);
    out.push_str("}\n");
    out
}

/// The lines above the graph about the execution; each begins at the left.
fn title(execution: &Execution) -> String {
    let (outcome, story) = (&execution.outcome, &execution.story);
    // The story tells the failure at length, except for the text of the user's panic.
    let is_said = !story.is_empty() && outcome.message.is_none();
    let sentence = outcome.sentence.lines().filter(|_| !is_said);
    let mut title = String::new();
    for line in sentence.chain(story.iter().map(String::as_str)) {
        let indent = line.len() - line.trim_start().len();
        let mut width = 0;
        for (at, word) in line.split(' ').enumerate() {
            let length = word.chars().count() + 1;
            if width + length > TITLE_MAX && width > indent {
                title.push_str("\\l");
                title.extend(std::iter::repeat_n(' ', indent + 2));
                width = indent + 2;
            } else if at > 0 {
                title.push(' ');
            }
            title.push_str(&escaped(word));
            width += length;
        }
        title.push_str("\\l");
    }
    title
}

/// Draws a cluster per thread: its events, and the state of the thread at the end.
fn columns(out: &mut String, execution: &Execution) {
    for (index, thread) in execution.threads.iter().enumerate() {
        let _ = writeln!(out, "  subgraph cluster_{index} {{");
        let _ = writeln!(out, "    label={}; color=gray;", quoted(thread.shown()));
        let mut chain = Vec::new();
        let asides = execution.unnumbered.iter().enumerate();
        let mut asides = asides.filter(|(_, it)| it.thread == index).peekable();
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
            while let Some((nth, aside)) = asides.next_if(|(_, it)| it.after < event.number) {
                chain.push(aside.draw(out, nth));
            }
            let name = name_of(execution, event);
            if let Some(fold) = fold_of(execution, event) {
                // One node stands for all events of the thread in this fold.
                if chain.last() != Some(&name) {
                    let label = format!("({})", fold.words);
                    node_at(out, &name, &label, "", None, ", style=dashed");
                    chain.push(name);
                }
                continue;
            }
            let label = format!("{}  {}", event.number, event.words);
            node(out, &name, &label, &event.place, "");
            chain.push(name);
        }
        chain.extend(fences.map(|(nth, fence)| draw_fence(out, nth, fence)));
        chain.extend(asides.map(|(nth, aside)| aside.draw(out, nth)));
        chain.extend(panics.map(|panic| panic.draw(out)));
        chain.extend(last(out, execution, index));
        for pair in chain.windows(2) {
            let _ = writeln!(out, "    {} -> {} [weight=8];", pair[0], pair[1]);
        }
        out.push_str("  }\n");
    }
}

/// The fold that stands for the event, if the event only repeats others.
fn fold_of<'a>(execution: &'a Execution, event: &Event) -> Option<&'a Fold> {
    let folds = &execution.folds;
    let at = folds.partition_point(|fold| fold.last < event.number);
    folds.get(at).filter(|fold| fold.first <= event.number)
}

/// The name of the node that stands for the event.
fn name_of(execution: &Execution, event: &Event) -> String {
    match fold_of(execution, event) {
        Some(fold) => format!("f{}_{}", fold.first, event.thread),
        None => format!("e{}", event.number),
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

impl Aside {
    /// Draws the node of this action, the one of this number. Returns the node's name.
    fn draw(&self, out: &mut String, nth: usize) -> String {
        let text = self.place.as_ref().and_then(|place| place.text.as_deref());
        let (name, style) = match self.role {
            "locals" => (format!("l{}", self.thread), ""),
            "access" => (format!("a{nth}"), ""),
            role => (role.to_owned(), FAILED),
        };
        node_at(out, &name, &self.words, &self.at, text, style);
        name
    }
}

/// Draws what the thread waits for, or the panic it ended with. Returns the node's name, if there
/// is a node.
fn last(out: &mut String, execution: &Execution, thread: usize) -> Option<String> {
    let outcome = &execution.outcome;
    let mut waiting = outcome.waiting.iter();
    if let Some(waiting) = waiting.find(|it| it.thread == thread) {
        let name = format!("w{thread}");
        node(out, &name, &waiting.doing, &waiting.place, FAILED);
        return Some(name);
    }
    let place = outcome.place.as_ref();
    let place = place.filter(|_| outcome.thread == Some(thread))?;
    node(out, "panic", "panics", place, FAILED);
    Some("panic".to_owned())
}

/// The attributes of a node that is the failure itself and no event.
const FAILED: &str = ", color=red, fontcolor=red";

fn node(out: &mut String, name: &str, label: &str, place: &Place, more: &str) {
    let at = match place.instead {
        Some(somewhere) => somewhere.to_owned(),
        None => format!("{}:{}", short(&place.file), place.line),
    };
    node_at(out, name, label, &at, place.text.as_deref(), more);
}

/// Draws a node for an action at a place. The place may be unknown; `text` is its line in the
/// program.
fn node_at(out: &mut String, name: &str, label: &str, at: &str, text: Option<&str>, more: &str) {
    let lines = |label: &str, text: Option<&str>| {
        let lines = [Some(label), Some(at), text].into_iter().flatten();
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        lines.join("\n")
    };
    let _ = writeln!(
        out,
        "    {name} [label={}, tooltip={}{more}];",
        quoted(&lines(&shortened(label), None)),
        quoted(&lines(label, text))
    );
}

/// Draws the arrows between threads.
fn between(out: &mut String, execution: &Execution) {
    let mut drawn = BTreeSet::new();
    let race = execution.outcome.data_race.as_ref();
    let is_weak = |from, to| race.is_some_and(|race| race.is_weak(from, to));
    let is_drawn = |number: usize| fold_of(execution, &execution.events[number - 1]).is_none();
    let events = execution.events.iter();
    let events: Vec<&Event> = events.filter(|event| is_drawn(event.number)).collect();
    for event in &events {
        if let Some(from) = event.reads_from.filter(|&from| is_drawn(from)) {
            drawn.insert((from, event.number));
            let (color, label) = if is_weak(from, event.number) {
                ("red", "read by, too weak")
            } else if event.stale {
                ("forestgreen", "read by, though old")
            } else {
                ("forestgreen", "read by")
            };
            let _ = writeln!(
                out,
                "  e{from} -> e{} [color={color}, fontcolor={color}, penwidth=2, label=\"{label}\"];",
                event.number
            );
        }
    }
    for event in &events {
        let Some(newer) = event.unseen.filter(|&newer| is_drawn(newer)) else {
            continue;
        };
        // A load comes before the stores that it does not see, as a store goes before them.
        let label = match event.operation {
            "store" => "goes before",
            _ => "does not see",
        };
        drawn.insert((newer, event.number));
        let _ = writeln!(
            out,
            "  e{} -> e{newer} [color=red, style=dotted, label=\"{label}\", fontcolor=red, constraint=false];",
            event.number
        );
    }
    for event in &events {
        for &from in event.after.iter().filter(|&&from| is_drawn(from)) {
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

/// Draws the arrow from the end of the memory's life to the wrong use of the memory.
fn misuse(out: &mut String, execution: &Execution) {
    let has = |role| execution.unnumbered.iter().any(|aside| aside.role == role);
    if has("gone") && has("use") {
        out.push_str(
            "  gone -> use [color=red, penwidth=3, label=\"before it\", fontcolor=red, constraint=false];\n",
        );
    }
}

/// Draws the arrow from the first to the second of the two operations that decide the failure.
fn decisive(out: &mut String, execution: &Execution) {
    let Some(pair) = &execution.pair else {
        return;
    };
    let race = execution.outcome.data_race.as_ref();
    let is_weak = |second| race.is_some_and(|race| race.is_weak(pair.first, second));
    if pair.old || pair.second.is_some_and(is_weak) {
        // This arrow is red already, and has the reason.
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

/// Draws an arrow from each thread that waits for a lock to the holder of the lock.
fn waits(out: &mut String, execution: &Execution) {
    for waiting in &execution.outcome.waiting {
        let Some(holder) = waiting.held_by else {
            continue;
        };
        let stuck = (execution.outcome.waiting.iter()).any(|it| it.thread == holder);
        let mut events = execution.events.iter();
        let last = match events.rfind(|event| event.thread == holder) {
            _ if stuck => format!("w{holder}"),
            Some(event) => name_of(execution, event),
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

/// A string of the Graphviz language.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text).replace('\n', "\\n"))
}

/// The text as it is written inside a string of the Graphviz language.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
