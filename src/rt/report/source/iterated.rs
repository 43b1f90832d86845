//! Which array does the program iterate over here, and does an array have a block of its own?
//!
//! `hazard` in `for hazard in &self.hazards` and in `self.hazards.iter().any(|hazard| ..)` is an
//! element of `self.hazards`. The nearest binding of the name above its use says so.

use super::{Receiver, Sources, without_comment};
use crate::rt::event::Site;

/// The most lines above its use in which a name is looked for.
const LINES_MAX: usize = 12;

/// Calls that iterate over an array.
const ITERATORS: [&str; 3] = [".iter()", ".iter_mut()", ".into_iter()"];

/// Calls that join several arrays under one name.
const JOINS: [&str; 3] = [".zip(", ".chain(", ".."];

/// The memory of an array, by the type that the program declares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Lies {
    /// In a block that has no other content, as a vector's elements are.
    Alone,
    /// Behind the counts of an `Arc`.
    Counted,
    /// Among other fields, or on a stack, with so many elements if the declaration has a number.
    Inside(Option<usize>),
}

impl Sources {
    /// The array of the element that is used here under the name that a loop or a closure gives it,
    /// and the part of the element that the object is.
    pub(in super::super) fn iterated(&mut self, site: Site) -> Option<(String, String)> {
        let name = self.receiver(site)?;
        let end = name.find('.').unwrap_or(name.len());
        let (root, rest) = name.split_at(end);
        let lines = self.lines(site.file())?;
        let line = (site.line() as usize).checked_sub(1)?;
        let above = lines.get(line.saturating_sub(LINES_MAX)..line)?;
        let here = lines.get(line)?;
        let here = &here[..super::called_at(here, site.column() as usize)];
        let mut text = String::new();
        for line in above.iter().map(String::as_str).chain([here]) {
            let line = without_comment(line).trim();
            let goes_on = line.starts_with('.') || text.is_empty();
            text.push_str(if goes_on { "" } else { " " });
            text.push_str(line);
        }
        Some((array(&text, root)?, rest.to_owned()))
    }

    /// The memory of the array with this name that is used here, if the nearest declaration of the
    /// name says so.
    pub(in super::super) fn lies(&mut self, site: Site, array: &str) -> Option<Lies> {
        let lines = self.lines(site.file())?;
        let (above, below) = lines.split_at_checked(site.line() as usize)?;
        let said = |line: &String| declared(without_comment(line), array);
        let mut nearest = above.iter().rev().chain(below).filter_map(said);
        nearest.next()?
    }
}

/// Whether this word begins at this position.
fn is_word(text: &str, at: usize, word: &str) -> bool {
    let of_a_name = |c: char| c.is_alphanumeric() || c == '_';
    !text[..at].ends_with(of_a_name) && !text[at + word.len()..].starts_with(of_a_name)
}

/// The positions of the word in the text, from the end.
fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> {
    let found = text.rmatch_indices(word).map(|(at, _)| at);
    found.filter(move |&at| is_word(text, at, word))
}

/// The array that has `name` as its element behind this text.
fn array(text: &str, name: &str) -> Option<String> {
    // The use itself is not at the end of the text: the end may be any other part of its
    // expression.
    words(text, name).find_map(|at| {
        let (before, behind) = (&text[..at], &text[at + name.len()..]);
        let before_pattern = before.trim_end_matches(|c: char| {
            c.is_alphanumeric() || matches!(c, '_' | ',' | ' ' | '(' | '&')
        });
        let is_let = before.trim_end().ends_with("let") || before.trim_end().ends_with("let mut");
        if is_let {
            return Some(None);
        }
        let pattern_end = behind.trim_start_matches([')', ' ', ',']);
        if before_pattern.ends_with('|') && behind.contains('|') {
            // A closure: the method that receives the closure iterates over the array.
            let call = before_pattern.strip_suffix('|')?.trim_end();
            let call = call.strip_suffix("move").unwrap_or(call).trim_end();
            let call = call.strip_suffix('(')?;
            return Some(through(call));
        }
        let start = words(before, "for").next()?;
        let pattern = &before[start..];
        let is_pattern = !pattern.contains(" in ") && !pattern.contains(['{', ';']);
        let expression = pattern_end.strip_prefix("in ").filter(|_| is_pattern)?;
        let (expression, _) = expression.split_once('{')?;
        Some(if ITERATORS.iter().any(|it| expression.contains(it)) {
            through(expression)
        } else {
            place(expression)
        })
    })?
}

/// The array that a chain of iterators at the end of this text iterates over.
fn through(text: &str) -> Option<String> {
    let (at, by) = ITERATORS
        .iter()
        .filter_map(|by| Some((text.rfind(by)?, by)))
        .max()?;
    let chain = &text[at + by.len()..];
    let is_one = !chain.contains([';', '{', '=']) && !JOINS.iter().any(|it| chain.contains(it));
    let array = Receiver::of(&text[..at]).filter(|_| is_one)?;
    place(&array.name)
}

/// The expression, if it is a place.
fn place(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches(['&', '*']);
    let text = text.strip_prefix("mut ").unwrap_or(text).trim();
    let of_a_place = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':');
    let is_place = !text.is_empty() && text.chars().all(of_a_place) && !text.contains("..");
    is_place.then(|| text.to_owned())
}

/// The memory of the array with this name according to this line. The outer `None` means that the
/// line does not declare the name.
fn declared(line: &str, name: &str) -> Option<Option<Lies>> {
    let mut found = words(line, name);
    found.find_map(|at| {
        let (before, behind) = (&line[..at], line[at + name.len()..].trim_start());
        if let Some(ty) = behind.strip_prefix(':').filter(|ty| !ty.starts_with(':')) {
            return Some(of_type(ty));
        }
        let is_let = before.trim_end().ends_with("let") || before.trim_end().ends_with("let mut");
        let value = behind.strip_prefix('=').filter(|_| is_let)?;
        let is_vector = ["vec![", "Vec<", "Vec::"]
            .iter()
            .any(|it| value.contains(it));
        Some(is_vector.then_some(Lies::Alone))
    })
}

/// The memory of an array of this type, if the type decides it.
fn of_type(ty: &str) -> Option<Lies> {
    let mut ty = ty.trim_start();
    let mut owner = "";
    loop {
        ty = ty.trim_start_matches('&').trim_start();
        if ty.starts_with("Vec<") {
            return Some(Lies::Alone);
        }
        if ty.starts_with('[') {
            return Some(match owner {
                "Box" => Lies::Alone,
                "Arc" => Lies::Counted,
                _ => Lies::Inside(length(ty)),
            });
        }
        let (wrapper, inner) = ty.split_once('<')?;
        owner = ["Box", "Arc"]
            .into_iter()
            .find(|it| wrapper.ends_with(it))?;
        ty = inner.trim_start();
    }
}

/// The number of elements of this array type or array, `[Slot; 2]`, if it is written as a number.
fn length(array: &str) -> Option<usize> {
    let mut depth = 0;
    let mut last = None;
    for (at, c) in array.char_indices() {
        match c {
            '[' | '(' | '{' => depth += 1,
            ']' if depth == 1 => return array[last?..at].trim().parse().ok(),
            ']' | ')' | '}' => depth -= 1,
            ';' if depth == 1 => last = Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_element_leads_to_its_array() {
        for (text, expected) in [
            ("for slot in &self.slots { ", Some("self.slots")),
            ("for slot in a.slots.iter().rev() { ", Some("a.slots")),
            (
                "for (i, slot) in slots.iter().enumerate() { f(i); ",
                Some("slots"),
            ),
            ("let x = self.slots.iter().any(|slot| ", Some("self.slots")),
            (
                "a.slots.iter().enumerate().for_each(|(_, slot)| { ",
                Some("a.slots"),
            ),
            ("for slot in a.iter().zip(&b) { ", None),
            ("for slot in 0..n { ", None),
            ("for slot in all() { ", None),
            ("for slot in &slots { let slot = other; ", None),
            ("for (a, b) in &slots { ", None),
            ("spawn(move |slot| ", None),
            ("", None),
        ] {
            assert_eq!(array(text, "slot").as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_declaration_says_where_an_array_lies() {
        for (line, expected) in [
            ("    slots: Vec<Slot>,", Some(Some(Lies::Alone))),
            ("let slots: Arc<Vec<Slot>> = x;", Some(Some(Lies::Alone))),
            ("    slots: Box<[Slot]>,", Some(Some(Lies::Alone))),
            ("    slots: Arc<[Slot]>,", Some(Some(Lies::Counted))),
            ("    slots: [Slot; 2],", Some(Some(Lies::Inside(Some(2))))),
            ("fn f(slots: &[Slot; 2])", Some(Some(Lies::Inside(Some(2))))),
            ("slots: [[u8; 3]; 2]", Some(Some(Lies::Inside(Some(2))))),
            (
                "slots: [const { f(1); g() }; 2]",
                Some(Some(Lies::Inside(Some(2)))),
            ),
            ("    slots: [Slot; N],", Some(Some(Lies::Inside(None)))),
            ("fn f(slots: &[Slot])", Some(Some(Lies::Inside(None)))),
            (
                "    slots: [Slot; // so many",
                Some(Some(Lies::Inside(None))),
            ),
            ("let slots = vec![Slot::new()];", Some(Some(Lies::Alone))),
            ("let slots = other.clone();", Some(None)),
            ("    slots: Slots,", Some(None)),
            ("slots[1].store(1);", None),
            ("my_slots: Vec<Slot>", None),
            ("slots::new()", None),
        ] {
            assert_eq!(declared(line, "slots"), expected, "{line}");
        }
    }
}
