//! Writes recorded executions to files.
//!
//! Each execution becomes three files in the directory of
//! [`Builder::report_dir`](crate::Builder::report_dir), named after the test. If the directory
//! cannot be written, the report says so in one line and is otherwise the same.

use std::path::{Path, PathBuf};

use crate::rt::event::Site;
use crate::rt::report::execution::Execution;
use crate::rt::report::{dot, html, json};

/// The most bytes of a test's name in a file's name; file systems allow about 255 bytes in all.
const NAME_MAX: usize = 200;

/// The destination of the executions of one model.
pub(crate) struct ReportDir {
    directory: PathBuf,
    /// The beginning of the names of all files.
    stem: String,
}

impl ReportDir {
    /// Creates the destination for the model that is called at `site` by this test, if its OS
    /// thread has a name.
    pub(crate) fn new(directory: &Path, test: Option<&str>, site: Site) -> ReportDir {
        ReportDir {
            directory: directory.to_owned(),
            stem: stem(test, site),
        }
    }

    /// Writes the execution; `suffix` distinguishes it from others of the same model. Returns the
    /// line for the report, with the names of the files or the reason why there are none.
    pub(crate) fn write(&self, suffix: &str, execution: &Execution) -> String {
        let stem = format!("{}{suffix}", self.stem);
        // The user may read the output in another directory than the test's working directory.
        let directory = std::path::absolute(&self.directory);
        let directory = directory.unwrap_or_else(|_| self.directory.clone());
        let files = [
            ("html", html::render(execution)),
            ("json", json::render(execution)),
            ("dot", dot::render(execution)),
        ];
        let written = std::fs::create_dir_all(&directory).and_then(|()| {
            let mut files = files.iter();
            files.try_for_each(|(extension, text)| {
                std::fs::write(directory.join(format!("{stem}.{extension}")), text)
            })
        });
        match written {
            Ok(()) => {
                let page = directory.join(format!("{stem}.html"));
                format!("written to {}, .json and .dot", page.display())
            }
            Err(error) => format!(
                "not written to {}: {error}; `Builder::report_dir` (DPOR_REPORT_DIR) has to be a \
                 directory that can be made and written",
                directory.display()
            ),
        }
    }
}

/// Returns the beginning of the names of a model's files.
pub(crate) fn stem(test: Option<&str>, site: Site) -> String {
    match test {
        // A test that the harness runs on the main thread has no thread name of its own.
        Some("main") | None => file_name(&format!("{}-{}", site.file(), site.line())),
        Some(test) => file_name(test),
    }
}

/// Returns `name` as a part of a file's name that is valid on any system.
fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name = name.replace("::", ".");
    let mut name: String = name
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    if name.starts_with('.') {
        name.insert(0, '_');
    }
    let mut end = name.len().min(NAME_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}

#[cfg(test)]
mod tests {
    use crate::exploration::report_dir::file_name;

    #[test]
    fn a_test_name_becomes_a_file_name_that_every_system_takes() {
        assert_eq!(
            file_name("queue::tests::pops_once"),
            "queue.tests.pops_once"
        );
        assert_eq!(file_name("src/a b\\c.rs-12"), "src_a_b_c.rs-12");
        assert_eq!(file_name("../../etc"), "_.._.._etc");
        let long = "ä".repeat(300);
        assert_eq!(file_name(&long).len(), 200);
    }
}
