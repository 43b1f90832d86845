//! What does the program call the object that it touches here?
//!
//! A location points at the method's name, so the expression before the dot is what the author calls
//! the object: `self.head` in `self.head.load(..)`. Silent where the source is missing.

use std::collections::HashMap;
use std::fs;
use std::panic::Location;
use std::path::Path;

/// Source files that have been read.
#[derive(Default)]
pub(crate) struct Sources {
    files: HashMap<String, Option<Vec<String>>>,
}

impl Sources {
    /// The text of a line.
    pub(super) fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        let lines = self.files.entry(file.to_owned()).or_insert_with(|| {
            // Locations are relative to the workspace; a test runs in its package.
            let mut directory = std::env::current_dir().ok()?;
            loop {
                if let Ok(text) = fs::read_to_string(directory.join(Path::new(file))) {
                    return Some(text.lines().map(str::to_owned).collect());
                }
                if !directory.pop() {
                    return None;
                }
            }
        });
        lines.as_ref()?.get(line as usize - 1).map(String::as_str)
    }

    /// The expression before the method call at `site`.
    pub(crate) fn receiver(&mut self, site: &Location<'_>) -> Option<String> {
        let line = self.line(site.file(), site.line())?;
        let before: String = line.chars().take(site.column() as usize - 1).collect();
        let mut before = before.trim().to_owned();
        // A chain of calls may have a line for each link.
        let mut above = site.line();
        while before.starts_with('.') && above > 1 && site.line() - above < 4 {
            above -= 1;
            before.insert_str(0, self.line(site.file(), above)?.trim());
        }
        let before = before.strip_suffix('.')?;
        let mut depth = 0;
        let start = before
            .char_indices()
            .rev()
            .take_while(|&(_, c)| {
                match c {
                    ')' | ']' => depth += 1,
                    '(' | '[' if depth == 0 => return false,
                    '(' | '[' => depth -= 1,
                    _ => {}
                }
                depth > 0 || c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '[' | '(')
            })
            .last()?
            .0;
        let name = before[start..].trim().trim_start_matches('.');
        (!name.is_empty()).then(|| folded(name))
    }
}

/// What is longer than this between brackets is left out of a name, in characters. The objects that are then
/// called the same are told apart by numbers, and a table cuts long names wherever there is no room for them.
const INSIDE_MAX: usize = 8;

/// The expression without what is inside of brackets, where that is long.
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
