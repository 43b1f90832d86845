//! How is an execution shown in a browser?
//!
//! As one page that needs nothing else, neither a network nor another file: style, script and the data,
//! which is the JSON as it is. The page is in the folder `page`; here it is only put together.

use super::execution::Execution;
use super::json;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");

/// What is said of a schedule that does not decide alone, by what the same schedule came to when it was run again.
const AGAIN_PASSES: &str = "<p id=\"again\">The schedule does not decide alone: run again from the same one, the \
     test passes.</p>\n  ";
const AGAIN_HAD_PASSED: &str = "<p id=\"again\">The schedule does not decide alone: an earlier execution had the same \
     events and went on where this one panics.</p>\n  ";
const AGAIN_ENDS_OTHERWISE: &str = "<p id=\"again\">The schedule does not decide alone: run again from the same \
     one, the test ends otherwise.</p>\n  ";
const AGAIN_DIFFERS: &str = "<p id=\"again\">The schedule does not decide alone: run again from the same one, the \
     test fails too, but an event comes out otherwise.</p>\n  ";

/// The page.
pub(crate) fn render(execution: &Execution) -> String {
    // Nothing in the data can end the element that it is in; to JSON both spellings are the same.
    let data = json::render(execution).replace('<', "\\u003c");
    let name = execution.test.as_deref().unwrap_or("dpor");
    let title = name.replace('&', "&amp;").replace('<', "&lt;");
    let parts = [
        ("@TITLE@", title.as_str()),
        ("@STYLE@", STYLE),
        ("@AGAIN@", again(execution)),
        ("@DATA@", &data),
        ("@SCRIPT@", SCRIPT),
    ];
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + data.len() + SCRIPT.len());
    let mut rest = PAGE;
    for (mark, text) in parts {
        let Some((before, after)) = rest.split_once(mark) else {
            unreachable!("dpor bug: the page has no place for {mark}");
        };
        page.push_str(before);
        page.push_str(text);
        rest = after;
    }
    page.push_str(rest);
    page
}

/// That the schedule does not decide alone, if that was seen.
fn again(execution: &Execution) -> &'static str {
    match execution.again {
        Some("passes") => AGAIN_PASSES,
        Some("had_passed") => AGAIN_HAD_PASSED,
        Some("ends_otherwise") => AGAIN_ENDS_OTHERWISE,
        Some(_) => AGAIN_DIFFERS,
        None => "",
    }
}
