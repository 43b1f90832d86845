//! Which name does the program have for the object that it uses here?
//!
//! A location points at the method's name, so the expression before the dot is the author's name
//! for the object: `self.head` in `self.head.load(..)`. For a function that is called by its path
//! the location points at the path, and the object is the first argument: `self.head` in
//! `Arc::clone(&self.head)`. Without the source there is no name.

use std::collections::HashMap;
use std::fs;
use std::panic::Location;
use std::path::Path;

pub(super) use self::iterated::Lies;
pub(super) use self::receiver::Receiver;
pub(super) use self::root::Around;

mod iterated;
mod receiver;
mod root;

/// Source files that have been read.
#[derive(Default)]
pub(crate) struct Sources {
    files: HashMap<String, Option<Vec<String>>>,
    around: Option<Around>,
}

impl Sources {
    /// The text of a line.
    pub(super) fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        let line = (line as usize).checked_sub(1)?;
        self.lines(file)?.get(line).map(String::as_str)
    }

    /// The lines of a file.
    pub(super) fn lines(&mut self, file: &str) -> Option<&[String]> {
        let around = &mut self.around;
        let lines = self.files.entry(file.to_owned()).or_insert_with(|| {
            let around = around.get_or_insert_with(Around::this_process);
            let path = around.root(Path::new(file))?.join(file);
            let text = fs::read_to_string(path).ok()?;
            Some(text.lines().map(str::to_owned).collect())
        });
        lines.as_deref()
    }

    /// The expression that is dereferenced at `site`.
    pub(super) fn dereferenced(&mut self, site: &Location<'_>) -> Option<String> {
        let line = self.line(site.file(), site.line())?;
        dereferenced(&line[called_at(line, site.column() as usize)..])
    }

    /// The expression before the method call at `site`.
    pub(crate) fn receiver(&mut self, site: &Location<'_>) -> Option<String> {
        self.written(site).map(|it| it.name)
    }

    /// The callee at `site`: the name of a method, or the path of a function.
    pub(crate) fn called(&mut self, site: &Location<'_>) -> Option<String> {
        let line = self.line(site.file(), site.line())?;
        let call = &line[called_at(line, site.column() as usize)..];
        let of_a_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
        let end = call.find(|c| !of_a_path(c)).unwrap_or(call.len());
        (end > 0).then(|| call[..end].to_owned())
    }

    /// The expression before the method call at `site`, or the argument that is lent to the
    /// function called at `site`.
    pub(super) fn written(&mut self, site: &Location<'_>) -> Option<Receiver> {
        let line = self.line(site.file(), site.line())?;
        let (before, call) = line.split_at(called_at(line, site.column() as usize));
        let is_method = before.trim_end().ends_with('.');
        if !is_method && let Some(argument) = first_argument(call) {
            let parts = Receiver::of(&argument);
            return Some(Receiver {
                name: argument,
                field: parts.and_then(|it| it.field),
                by_pointer: false,
            });
        }
        let mut before = without_comment(before).trim().to_owned();
        // A chain of calls may have a line for each link.
        let mut above = site.line();
        while receiver::begins_above(&before) && above > 1 && site.line() - above < LINES_MAX {
            above -= 1;
            let line = self.line(site.file(), above)?;
            before.insert_str(0, without_comment(line).trim());
        }
        let written = Receiver::of(before.strip_suffix('.')?)?;
        Some(Receiver {
            name: folded(&written.name),
            field: written.field.as_deref().map(folded),
            ..written
        })
    }
}

/// The most lines above a call in which its object is looked for.
const LINES_MAX: u32 = 12;

/// The line without the comment at its end.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with("//") {
        ""
    } else {
        line.split_once(" //").map_or(line, |(code, _)| code)
    }
}

/// The place at the beginning of this text that is dereferenced there: with a star, or by a method
/// or a field of the value behind it. The text does not show how many of the fields are behind the
/// pointer, but a static is known by its upper-case letters.
fn dereferenced(text: &str) -> Option<String> {
    let place = text.trim_start_matches(['*', '&']);
    let of_a_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '.');
    let end = place.find(|c| !of_a_path(c)).unwrap_or(place.len());
    let (path, after) = place.split_at(end);
    let is_static = |it: &&str| !it.contains(char::is_lowercase) && it.contains(char::is_uppercase);
    let first = path.split('.').next().filter(|first| {
        let name = first.rsplit("::").next();
        name.as_ref().is_some_and(is_static)
    });
    let place = match after.chars().next() {
        _ if first.is_some() => first?,
        Some('(') => path.rsplit_once('.')?.0,
        Some('!') => return None,
        _ => path.trim_end_matches(['.', ':']),
    };
    let named = place.starts_with(|c: char| c.is_alphabetic() || c == '_');
    named.then(|| folded(place))
}

/// The byte position at which the call begins that a compiler reports at this column. Columns count
/// the characters as displayed, a tab as four and a wide character as two; other compiler versions
/// count characters.
fn called_at(line: &str, column: usize) -> usize {
    let at = |width: fn(char) -> usize| {
        let mut left = column.saturating_sub(1);
        let starts = line.char_indices().find(|&(_, c)| {
            let here = left == 0;
            left = left.saturating_sub(width(c));
            here
        });
        starts.map_or(line.len(), |(start, _)| start)
    };
    // A call begins with a name, and the position must be the first of that name.
    let begins = |at: &usize| {
        let letter = |c: char| c.is_alphanumeric() || c == '_';
        let (before, call) = line.split_at(*at);
        call.starts_with(letter) && !before.ends_with(letter)
    };
    let shown = at(shown_width);
    [shown, at(|_| 1)].into_iter().find(begins).unwrap_or(shown)
}

/// The number of columns of a character: exact for all characters that are common in programs,
/// rough for others.
fn shown_width(c: char) -> usize {
    match c {
        '\t' => 4,
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1f9ff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// The place that a function borrows as its first argument, if the function is called by a path of
/// several parts.
fn first_argument(call: &str) -> Option<String> {
    let (path, arguments) = call.split_once('(')?;
    let of_a_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '<' | '>');
    if !path.contains("::") || !path.chars().all(of_a_path) {
        return None;
    }
    let lent = arguments.trim_start().strip_prefix('&')?.trim_start();
    let lent = lent.strip_prefix("mut ").unwrap_or(lent);
    let mut depth = 0;
    let end = lent.find(|c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' if depth > 0 => depth -= 1,
            _ => return depth == 0 && matches!(c, ')' | ']' | ','),
        }
        false
    })?;
    let name = lent[..end].trim().trim_start_matches('*');
    let of_a_place = |c: char| c.is_alphanumeric() || "_.:,[]()* +-%".contains(c);
    let named = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    (named && name.chars().all(of_a_place)).then(|| folded(name))
}

/// The most characters between brackets in a name; a longer part is left out. Objects that then
/// have the same name are told apart by numbers, and a table cuts long names where it has no room
/// for them.
const INSIDE_MAX: usize = 8;

/// The expression, with long parts inside brackets left out.
fn folded(name: &str) -> String {
    let (mut folded, mut inside, mut depth) = (String::new(), String::new(), 0);
    for c in name.chars() {
        if depth > 0 && matches!(c, ')' | ']') {
            depth -= 1;
            if depth == 0 {
                let long = inside.chars().count() > INSIDE_MAX;
                folded.push_str(if long { "…" } else { &inside });
                inside.clear();
            }
        }
        let text = if depth == 0 { &mut folded } else { &mut inside };
        text.push(c);
        if matches!(c, '(' | '[') {
            depth += 1;
        }
    }
    folded + &inside
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of the object in the source, for the call that is being made.
    #[track_caller]
    fn named() -> Option<String> {
        Sources::default().receiver(Location::caller())
    }

    struct Probe;

    impl Probe {
        #[track_caller]
        fn here(&self) -> Option<String> {
            named()
        }

        #[track_caller]
        fn with<T>(&self, _: &T) -> Option<String> {
            named()
        }

        #[track_caller]
        fn of(_: &Probe, _: &str) -> Option<String> {
            named()
        }
    }

    #[test]
    fn the_receiver_is_what_is_before_the_dot() {
        let probe = [Probe];
        assert_eq!(probe[0].here().as_deref(), Some("probe[0]"));
        #[rustfmt::skip]
        let chained = probe[0]
            .here();
        assert_eq!(chained.as_deref(), Some("probe[0]"));
        let name = probe[0].with::<Vec<usize>>(&Vec::new());
        assert_eq!(name.as_deref(), Some("probe[0]"));
        assert_eq!(named(), None, "nobody is before a call of a function");
    }

    #[test]
    fn what_is_lent_to_a_function_by_its_path_is_its_object() {
        let pair = (Probe, 0);
        assert_eq!(Probe::of(&pair.0, "").as_deref(), Some("pair.0"));
        assert_eq!(self::Probe::of(&pair.0, "").as_deref(), Some("pair.0"));
        for (call, expected) in [
            ("Arc::clone(&self.items[i]);", Some("self.items[i]")),
            ("Arc::clone(&**inner)", Some("inner")),
            ("Arc::<u8>::downgrade(&mut a)", Some("a")),
            (
                "Queue::push(&queues[at(1, 2)], 1)",
                Some("queues[at(1, 2)]"),
            ),
            ("Arc::clone(&queue.of(\"x\"))", None),
            ("Arc::new(a)", None),
            ("Arc::clone(a)", None),
            ("clone(&a)", None),
            ("Arc::clone(", None),
        ] {
            assert_eq!(first_argument(call).as_deref(), expected, "{call}");
        }
    }

    #[test]
    fn what_is_behind_a_star_or_before_a_method_is_dereferenced() {
        for (text, expected) in [
            ("*TABLE + 1", Some("TABLE")),
            ("TABLE.get(1)", Some("TABLE")),
            ("tables::TABLE.first.get(1)", Some("tables::TABLE")),
            ("*self.table;", Some("self.table")),
            ("self.table.len()", Some("self.table")),
            ("table[1]", Some("table")),
            ("force(&table)", None),
            ("assert!(*table)", None),
            ("}", None),
        ] {
            assert_eq!(dereferenced(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_shown_wide_or_not_at_all_moves_no_receiver() {
        let probe = Probe;
        for (_, name) in [
            ("äöü", probe.here()),
            ("日本語", probe.here()),
            ("🦀🦀", probe.here()),
            ("	tabs	", probe.here()),
            ("éé", probe.here()),
        ] {
            assert_eq!(name.as_deref(), Some("probe"));
        }
    }

    #[test]
    fn a_column_of_characters_is_understood_too() {
        let line = "let x = (\"日本語\", counter.load());";
        let start = line.find("load").expect("the call");
        let characters = line[..start].chars().count();
        assert_eq!(called_at(line, characters + 1), start);
        assert_eq!(called_at(line, characters + 4), start, "as it is shown");
    }

    #[test]
    fn long_indices_and_arguments_are_folded() {
        for (name, expected) in [
            ("self.head", "self.head"),
            ("ring[i % 4]", "ring[i % 4]"),
            ("self.slots[i as usize % self.slots.len()]", "self.slots[…]"),
            (
                "table[at(key)].get(hash(key, 7)).next",
                "table[at(key)].get(…).next",
            ),
            ("a[b[c[d]]].e(äöüäöüäö)", "a[b[c[d]]].e(äöüäöüäö)"),
            ("a[b[c[d]], e].f(äöüäöüäöü)", "a[…].f(…)"),
            ("open[1", "open[1"),
        ] {
            assert_eq!(folded(name), expected);
        }
    }
}
