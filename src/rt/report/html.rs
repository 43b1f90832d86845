//! How is an execution shown in a browser?
//!
//! As one page that needs neither a network nor another file: style, script and the data, which is
//! the JSON of the execution. The parts of the page are in the folder `page`; this file only joins
//! them.

use super::execution::Execution;
use super::json;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");

/// Renders the page.
pub(crate) fn render(execution: &Execution) -> String {
    // No text in the data can end the element that contains the data; for JSON both spellings are
    // the same.
    let data = json::render(execution).replace('<', "\\u003c");
    let name = execution.test.as_deref().unwrap_or("dpor");
    let title = name.replace('&', "&amp;").replace('<', "&lt;");
    let parts = [
        ("@TITLE@", title.as_str()),
        ("@STYLE@", STYLE),
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
