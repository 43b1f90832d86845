//! The changes of `init`: texts of files before and after, which are written all at once.
//!
//! An error in the middle leaves every file as it was.

use std::path::{Path, PathBuf};

use anstyle::AnsiColor;
use anyhow::{Context, Result};
use similar::{ChangeTag, TextDiff};

/// A file as it was, if it was there, and as it becomes.
struct Change {
    before: Option<String>,
    after: String,
}

#[derive(Default)]
pub(crate) struct Changes {
    files: Vec<(PathBuf, Change)>,
    /// What is set up already.
    kept: Vec<String>,
    /// What is left to the user.
    advice: Vec<String>,
}

impl Changes {
    /// Returns the text of a file as it becomes. `None` if there is no such file.
    pub(crate) fn text(&self, file: &Path) -> Result<Option<String>> {
        if let Some((_, change)) = self.files.iter().find(|(it, _)| it == file) {
            return Ok(Some(change.after.clone()));
        }
        match std::fs::read_to_string(file) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| shown(file)),
        }
    }

    pub(crate) fn set(&mut self, file: &Path, after: String) -> Result<()> {
        let current = self.text(file)?;
        if current.as_ref() == Some(&after) {
            return Ok(());
        }
        match self.files.iter_mut().find(|(it, _)| it == file) {
            Some((_, change)) => change.after = after,
            None => {
                let change = Change {
                    before: current,
                    after,
                };
                self.files.push((file.to_owned(), change));
            }
        }
        Ok(())
    }

    pub(crate) fn keep(&mut self, what: impl Into<String>) {
        self.kept.push(what.into());
    }

    pub(crate) fn advise(&mut self, what: impl Into<String>) {
        self.advice.push(what.into());
    }

    pub(crate) fn are_none(&self) -> bool {
        self.files.is_empty()
    }

    /// Prints the changes line by line.
    pub(crate) fn print(&self, dry_run: bool) {
        let green = AnsiColor::Green.on_default();
        let red = AnsiColor::Red.on_default();
        for what in &self.kept {
            say!("unchanged {what}");
        }
        for (file, change) in &self.files {
            let would = if dry_run { "would " } else { "" };
            let name = shown(file);
            let Some(before) = &change.before else {
                let done = if dry_run { "create" } else { "created" };
                say!(
                    "{would}{done} {name} ({} lines)",
                    change.after.lines().count()
                );
                if dry_run {
                    for line in change.after.lines() {
                        say!("  {green}+ {line}{green:#}");
                    }
                }
                continue;
            };
            let done = if dry_run { "change" } else { "changed" };
            say!("{would}{done} {name}");
            for change in TextDiff::from_lines(before, &change.after).iter_all_changes() {
                let line = change.value().trim_end();
                match (change.tag(), change.new_index(), change.old_index()) {
                    (ChangeTag::Insert, Some(number), _) => {
                        say!("  {:>4} {green}+ {line}{green:#}", number + 1);
                    }
                    (ChangeTag::Delete, _, Some(number)) => {
                        say!("  {:>4} {red}- {line}{red:#}", number + 1);
                    }
                    _ => {}
                }
            }
        }
        for advice in &self.advice {
            say!("to do: {advice}");
        }
    }

    pub(crate) fn write(&self) -> Result<()> {
        for (file, change) in &self.files {
            let directory = file.parent().unwrap_or(Path::new(""));
            std::fs::create_dir_all(directory).with_context(|| shown(directory))?;
            std::fs::write(file, &change.after).with_context(|| shown(file))?;
        }
        Ok(())
    }
}

/// Names a file as a path from the current directory, if it lies below.
pub(crate) fn shown(file: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let below = file.strip_prefix(&here).unwrap_or(file);
    below.display().to_string()
}
