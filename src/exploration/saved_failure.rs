//! Saves the schedule of the last failure of each test, and reads saved schedules.
//!
//! There is a file for each test, in a directory for each program, under the target directory of
//! the running program. With it the failure can be replayed after its output is gone. It is a
//! convenience: without a target directory no schedule is saved.

use std::path::{Path, PathBuf};

use crate::exploration::numbered_model::numbered;
use crate::exploration::report_dir::stem;
use crate::rt::event::Site;

/// Saves the schedule of a failure. Returns the file, if it was written.
pub(crate) fn keep(schedule: &str, test: Option<&str>, site: Site) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let name = program.file_stem()?.to_str()?;
    // Two programs may have tests of the same name.
    let name = unnumbered(name).unwrap_or(name);
    let mut directory = target_directory(&program)?.join("dpor");
    // Two packages of a workspace may have programs of the same name.
    if let Ok(package) = std::env::var("CARGO_PKG_NAME")
        && package != name
    {
        directory.push(package);
    }
    directory.push(name);
    let path = directory.join(format!("{}.schedule", stem(test, site)));
    std::fs::create_dir_all(&directory).ok()?;
    std::fs::write(&path, format!("{}\n", numbered(schedule))).ok()?;
    Some(path)
}

/// Returns a program's name without the number that cargo appends, which depends on the build.
/// `None` if the name has no number.
pub(crate) fn unnumbered(name: &str) -> Option<&str> {
    let number = |tail: &str| tail.len() == 16 && tail.bytes().all(|b| b.is_ascii_hexdigit());
    let (before, tail) = name.rsplit_once('-')?;
    number(tail).then_some(before)
}

/// Returns the target directory in which a program was built. Cargo marks a target directory that
/// it has made. In a directory that existed before, for example a mounted volume, cargo writes only
/// its facts about the compiler.
pub(crate) fn target_directory(program: &Path) -> Option<PathBuf> {
    let has = |directory: &Path, name: &str| directory.join(name).is_file();
    let marked = |it: &&Path| has(it, "CACHEDIR.TAG") || has(it, ".rustc_info.json");
    program.ancestors().skip(1).find(marked).map(Path::to_owned)
}

/// Returns the schedule: the text itself, or the content of the file that the text names after an
/// `@`.
pub(crate) fn read(text: &str) -> Result<String, String> {
    match text.trim().strip_prefix('@') {
        None => Ok(text.to_owned()),
        Some(path) => match std::fs::read_to_string(path) {
            Ok(schedule) => Ok(schedule.trim().to_owned()),
            Err(error) => Err(format!(
                "the file `{path}`{} (DPOR_REPLAY): {error}",
                looked_in(path)
            )),
        },
    }
}

/// Names the directory that a relative path starts from: cargo runs the tests of a package in the
/// package's directory, regardless of its own working directory.
fn looked_in(path: &str) -> String {
    match std::env::current_dir() {
        Ok(directory) if Path::new(path).is_relative() => {
            format!(
                ", looked for in {}, where this program runs",
                directory.display()
            )
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_directory_is_known_although_cargo_has_not_made_it() {
        let own = target_directory(&std::env::current_exe().expect("a path"));
        let found = own.expect("a target directory").join("dpor/mounted");
        let platform = found.join("x86_64-unknown-linux-gnu");
        let program = platform.join("release/deps/queue-0123456789abcdef");
        std::fs::create_dir_all(&platform).expect("a directory");
        std::fs::write(platform.join("CACHEDIR.TAG"), "").expect("a file");
        std::fs::write(found.join(".rustc_info.json"), "{}").expect("a file");
        assert_eq!(target_directory(&program), Some(platform.clone()));
        assert_eq!(target_directory(&platform), Some(found));
    }

    #[test]
    fn a_kept_schedule_is_read_back_and_a_missing_file_is_told() {
        let site = std::panic::Location::caller();
        let path = keep("v2 main*2", Some("kept::tests::one"), site).expect("a target directory");
        assert!(
            path.ends_with("dpor/dpor/kept.tests.one.schedule"),
            "{path:?}"
        );
        let kept = read(&format!("@{}", path.display()));
        assert_eq!(kept, Ok("v2 main*2".to_owned()));
        assert_eq!(read("v2 main"), Ok("v2 main".to_owned()));
        let error = read("@/no/such/file").expect_err("there is no such file");
        let told = "the file `/no/such/file` (DPOR_REPLAY): ";
        assert!(error.starts_with(told), "{error}");
        let error = read("@no/such/file").expect_err("there is no such file");
        let here = std::env::current_dir().expect("a directory");
        let told = format!(
            "the file `no/such/file`, looked for in {}, where this program runs (DPOR_REPLAY): ",
            here.display()
        );
        assert!(error.starts_with(&told), "{error}");
    }
}
