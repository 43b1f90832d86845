//! How is an execution written for other programs?
//!
//! As JSON, in the format that `docs/REPORTS.md` describes. One line per thread, object, event and
//! race, so that two files can be compared line by line and a long one can be searched with `grep`.
//!
//! The crate `serde_json` is not used. In a program that has `serde_json` among its dependencies,
//! its `usize: PartialEq<Value>` is in scope, and code such as
//! `state.load(SeqCst) == State::Full.into()` no longer determines its type. This crate must not
//! have such effects on the code that depends on it.

use serde::Serialize;
use serde_json_core::ser::{Error, to_slice};

use super::execution::Execution;

/// The depth down to which values stand on lines of their own.
const DEPTH: usize = 2;

/// The execution as JSON, with a line break at the end.
pub(crate) fn render(execution: &Execution) -> String {
    let mut text = lines(&compact(execution));
    text.push('\n');
    text
}

/// Plain data as JSON on one line.
pub(crate) fn compact<T: Serialize + ?Sized>(data: &T) -> String {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match to_slice(data, &mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                let Ok(text) = String::from_utf8(buffer) else {
                    unreachable!("dpor bug: JSON is text")
                };
                return text;
            }
            Err(Error::BufferFull) => buffer.resize(2 * buffer.len(), 0),
            Err(error) => unreachable!("dpor bug: plain data can be written as JSON: {error}"),
        }
    }
}

/// Breaks lines between the fields of the outermost object and between the items of its lists.
fn lines(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 8);
    let (mut depth, mut quoted, mut escaped, mut before) = (0, false, false, ' ');
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth));
    };
    for c in json.chars() {
        if quoted {
            quoted = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
            out.push(c);
        } else {
            match c {
                ']' | '}' => {
                    depth -= 1;
                    if depth < DEPTH && !matches!(before, '[' | '{') {
                        line(&mut out, depth);
                    }
                }
                // The content of the bracket begins on a new line behind it.
                _ if matches!(before, '[' | '{') && depth <= DEPTH => line(&mut out, depth),
                _ => {}
            }
            out.push(c);
            match c {
                '[' | '{' => depth += 1,
                ',' if depth <= DEPTH => line(&mut out, depth),
                '"' => quoted = true,
                _ => {}
            }
        }
        before = if quoted { ' ' } else { c };
    }
    out
}
