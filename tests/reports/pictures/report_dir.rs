//! Which files are written to the report directory when a test fails, and what are they called?

use std::path::PathBuf;

use dpor::Builder;

use super::programs::lost_update;

/// A folder that no other test has, and that is gone when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("dpor-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("it can be made");
        Folder(path)
    }

    /// The names of the files in it.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("it can be read");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("text")
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If it stays, nothing but the temporary folder is a little fuller.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_directory_gets_the_failure_in_three_forms_and_the_report_says_where() {
    let folder = Folder::new("three-forms");
    let inside = folder.0.join("not/yet/there");
    let mut builder = Builder::new();
    builder.report_dir = Some(inside.clone());
    let passes = || assert!(dpor::choose(2) < 2);
    builder.explore(passes).expect("it passes");
    assert!(!inside.exists(), "nothing is written unless a test fails");

    let failure = builder.explore(lost_update).expect_err("it fails");
    let name =
        "pictures.report_dir.a_directory_gets_the_failure_in_three_forms_and_the_report_says_where";
    let read = |extension: &str| {
        let file = inside.join(format!("{name}.{extension}"));
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file:?}: {error}"))
    };
    assert_eq!(read("json"), failure.json());
    assert_eq!(read("dot"), failure.dot());
    assert_eq!(read("html"), failure.html());
    let text = failure.to_string();
    let last = text.lines().last().expect("lines");
    let page = inside.join(format!("{name}.html"));
    assert_eq!(
        last,
        format!("report     written to {}, .json and .dot", page.display())
    );
}

#[test]
fn a_directory_that_cannot_be_written_is_told_and_the_failure_still_reported() {
    let folder = Folder::new("cannot-be-written");
    let file = folder.0.join("file");
    std::fs::write(&file, "in the way").expect("it can be written");
    let mut builder = Builder::new();
    builder.report_dir = Some(file.clone());
    let failure = builder.explore(lost_update).expect_err("it fails");
    let text = failure.to_string();
    assert!(text.contains("an update was lost"), "{text}");
    let last = text.lines().last().expect("lines");
    let beginning = format!("report     not written to {}: ", file.display());
    assert!(last.starts_with(&beginning), "{last}");
    assert!(
        last.contains("`Builder::report_dir` (DPOR_REPORT_DIR)"),
        "{last}"
    );
}

#[test]
fn a_model_on_a_thread_without_a_name_is_known_by_its_place() {
    let folder = Folder::new("by-place");
    let mut builder = Builder::new();
    builder.report_dir = Some(folder.0.clone());
    builder.max_failures = 2;
    let line = std::thread::spawn(move || {
        let two = || {
            assert_ne!(dpor::choose(3), 1, "one");
            assert_ne!(dpor::choose(2), 1, "two");
        };
        let failure = builder.explore(two).expect_err("it fails");
        assert_eq!(failure.others().len(), 1);
        line!() - 2
    });
    let line = line.join().expect("it explores");
    let stem = format!("tests_reports_pictures_report_dir.rs-{line}");
    let names = ["-2.dot", "-2.html", "-2.json", ".dot", ".html", ".json"];
    assert_eq!(folder.files(), names.map(|name| format!("{stem}{name}")));
}
