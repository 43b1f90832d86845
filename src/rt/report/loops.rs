//! Which call is in the loop that repeats a read?
//!
//! A loop without a hint is noticed by the read that it repeats, and the read often stands in a
//! function which the loop only calls: `while !queue.is_ready() {}`. The stack is the same in each
//! round, so the stack does not show which of its functions repeats. The text of the functions
//! does, where there is any: the loop is in the innermost function that makes its call in a `while`
//! or a `loop`. A `for` mostly looks at one element after another, and does not wait. If the read
//! itself stands in a loop, or no call does, there is no answer.

use std::backtrace::Backtrace;

use super::places::{self, Frame};
use super::source::Sources;
use crate::rt::event::Site;

/// The line of the call, among the calls on the stack at the read. `site` is a place of the
/// program.
pub(crate) fn around(read: Site, stack: &Backtrace, site: Site) -> Option<String> {
    // The first resolution of a stack takes a tenth of a second, and mostly the read is in the
    // loop.
    let frames = || places::all_of(stack, site);
    innermost(read, frames, &mut Sources::default())
}

fn innermost(
    read: Site,
    frames: impl FnOnce() -> Vec<Frame>,
    sources: &mut Sources,
) -> Option<String> {
    let mut is_in_loop = |file: &str, line: u32, column: u32| {
        let lines = sources.lines(file).unwrap_or_default();
        is_in_loop(lines, line, column)
    };
    if is_in_loop(read.file(), read.line(), read.column()) {
        return None;
    }
    let reads = |frame: &Frame| frame.file == read.file() && frame.line == read.line();
    let frames = frames();
    let reading = frames.iter().position(reads)?;
    let callers = &frames[reading + 1..];
    let goes_round = |frame: &&Frame| is_in_loop(&frame.file, frame.line, frame.column);
    let caller = callers.iter().find(goes_round)?;
    Some(format!("{}:{}", caller.file, caller.line))
}

/// The kind of a block, by the text before its brace.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Block {
    /// The body of a function or a closure; it has another frame than the code around it.
    Body,
    Loop,
    Else,
}

impl Block {
    fn of(header: &str) -> Block {
        let mut words = words(header);
        let closure = header.trim_end().ends_with('|');
        match words.any(|word| matches!(word, "fn" | "async")) || closure {
            true => Block::Body,
            false if goes_round(header) => Block::Loop,
            false => Block::Else,
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn goes_round(header: &str) -> bool {
    words(header).any(|word| matches!(word, "while" | "loop"))
}

/// Whether this position is in the body or in the condition of a loop, within its function. Lines
/// and columns begin with 1.
fn is_in_loop(lines: &[String], line: u32, column: u32) -> bool {
    let above = (line as usize).saturating_sub(1);
    let Some(last) = lines.get(above) else {
        return false;
    };
    let before = last.chars().take((column as usize).saturating_sub(1));
    let mut text = lines[..above].join("\n");
    text.push('\n');
    text.extend(before);
    let mut open: Vec<(Block, String)> = Vec::new();
    // The text since the last statement or block.
    let mut header = String::new();
    for c in code(&text).chars() {
        match c {
            ';' => header.clear(),
            '{' => {
                open.push((Block::of(&header), std::mem::take(&mut header)));
            }
            '}' => {
                let (_, before) = open.pop().unwrap_or((Block::Else, String::new()));
                // A block in brackets is only a part of the statement that contains it.
                let count = |bracket: char| before.matches(bracket).count();
                header = if count('(') > count(')') {
                    before
                } else {
                    String::new()
                };
            }
            c => header.push(c),
        }
    }
    let blocks = open.iter().rev().map(|(block, _)| *block);
    let mut blocks = blocks.take_while(|block| *block != Block::Body);
    goes_round(&header) || blocks.any(|block| block == Block::Loop)
}

/// The text of a program without its comments and its strings.
fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match skipped(rest) {
            0 => {
                code.push(c);
                c.len_utf8()
            }
            length => {
                code.push(' ');
                length
            }
        };
        rest = &rest[length..];
    }
    code
}

/// The length in bytes of the comment, the string or the character at the beginning of this text; 0
/// if the text begins with none.
fn skipped(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes {
        [b'/', b'/', ..] => text.find('\n').unwrap_or(text.len()),
        [b'/', b'*', ..] => comment(bytes),
        [b'"', ..] => string(bytes),
        [b'r', b'"' | b'#', ..] => raw_string(text).unwrap_or(0),
        [b'\'', b'\\', ..] => character(text),
        // Otherwise the quotation mark begins a lifetime or a label.
        [b'\'', ..] => match text.char_indices().nth(2) {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        _ => 0,
    }
}

/// A character that is written with a backslash.
fn character(text: &str) -> usize {
    let end = text.get(3..).and_then(|rest| rest.find('\''));
    end.map_or(text.len(), |at| 3 + at + 1)
}

fn raw_string(text: &str) -> Option<usize> {
    let marks = text[1..].chars().take_while(|c| *c == '#').count();
    let inside = 1 + marks + 1;
    if !text[1 + marks..].starts_with('"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(marks));
    let at = text[inside..].find(&end);
    Some(at.map_or(text.len(), |at| inside + at + end.len()))
}

/// A comment that may contain other comments.
fn comment(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    bytes.len()
}

fn string(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether each `X` of this text stands in a loop.
    fn in_loops(text: &str) -> Vec<bool> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut found = Vec::new();
        for (line, text) in lines.iter().enumerate() {
            for (column, _) in text.chars().enumerate().filter(|(_, c)| *c == 'X') {
                found.push(is_in_loop(&lines, line as u32 + 1, column as u32 + 1));
            }
        }
        found
    }

    #[test]
    fn what_stands_in_a_loop_is_told_by_the_text_before_it() {
        for (text, expected) in [
            (
                "fn f() { X; while X { X } X }",
                &[false, true, true, false][..],
            ),
            (
                "fn f() { let a = loop { if X { break X } }; X }",
                &[true, true, false],
            ),
            (
                "fn f() {\n    while !all.iter().any(|it| {\n        X\n    }) && X {\n        X\n    }\n}",
                &[false, true, true],
            ),
            ("fn f() { while X {} } fn g() { X }", &[true, false]),
            (
                "fn f() { loop { go(|| X); go(move || { X }) } }",
                &[true, false],
            ),
            ("fn f() { for _ in X { X } }", &[false, false]),
            (
                "fn f() { 'a: loop { match X { 'b' => {} '\\'' => X } } }",
                &[true, true],
            ),
            (
                "fn f() { /* loop { /* { */ while */ X; \"loop {\\\" while\"; X; // while\n X; r#\"loop { \"#; X }",
                &[false; 4],
            ),
            (
                "fn f<'a>() { while_ready(X); looped(X); loop {} X }",
                &[false; 3],
            ),
            ("}}} X", &[false]),
            ("fn f() { \"", &[]),
        ] {
            assert_eq!(in_loops(text), expected, "{text}");
        }
        assert!(!is_in_loop(&[], 7, 1), "there is no such line");
    }

    /// The innermost call in a loop that is neither the read nor further in.
    #[test]
    fn the_call_in_a_loop_is_the_innermost_one() {
        let mut sources = Sources::default();
        let read: Site = std::panic::Location::caller();
        let frame = |line: u32| Frame {
            file: file!().to_owned(),
            line,
            column: 9,
        };
        let here = line!();
        let mut calls: Vec<u32> = Vec::new();
        while calls.len() < 2 {
            calls.push(line!());
        }
        let outside = line!();
        let reads = frame(read.line());
        let mut found = |frames: &[u32]| {
            let mut all = vec![frame(1), reads.clone()];
            all.extend(frames.iter().copied().map(frame));
            innermost(read, || all, &mut sources)
        };
        let in_loop = Some(format!("{}:{}", file!(), calls[0]));
        assert_eq!(found(&[here, calls[0], outside, calls[0] - 1]), in_loop);
        assert_eq!(found(&[here, outside]), None);
        // A stack that does not contain the read gives no answer.
        assert_eq!(
            innermost(read, || vec![frame(calls[0])], &mut Sources::default()),
            None
        );
    }
}
