//! Where is the last failure of each test kept, and how is a kept schedule read?
//!
//! A file per test, in a folder per program, under the target directory of the program that runs,
//! so that the failure can be played again although its output has gone. Nothing depends on it:
//! where there is no target directory, nothing is kept.

use std::path::{Path, PathBuf};

use crate::exploration::numbered_model::numbered;
use crate::exploration::report_dir::stem;
use crate::rt::event::Site;

/// Keeps the schedule of a failure. Gives the file, if it is kept.
pub(crate) fn keep(schedule: &str, test: Option<&str>, site: Site) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let name = program.file_stem()?.to_str()?;
    // Two programs may have tests of one name.
    let name = unnumbered(name).unwrap_or(name);
    let mut directory = target_directory(&program)?.join("dpor");
    // Two packages of a workspace may have programs of one name.
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

/// A program's name without the number that cargo adds, which changes with what it was built for;
/// `None` if there is none.
pub(crate) fn unnumbered(name: &str) -> Option<&str> {
    let number = |tail: &str| tail.len() == 16 && tail.bytes().all(|b| b.is_ascii_hexdigit());
    let (before, tail) = name.rsplit_once('-')?;
    number(tail).then_some(before)
}

/// The target directory that a program was built in: cargo marks it if it has made it. In one that
/// was there before, as where a volume is mounted, it only writes what it knows of the compiler.
pub(crate) fn target_directory(program: &Path) -> Option<PathBuf> {
    let has = |directory: &Path, name: &str| directory.join(name).is_file();
    let marked = |it: &&Path| has(it, "CACHEDIR.TAG") || has(it, ".rustc_info.json");
    program.ancestors().skip(1).find(marked).map(Path::to_owned)
}

/// The schedule that is meant: the text itself, or what is in the file that it names after an `@`.
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

/// Where a path that is not a whole one leads from: cargo begins the tests of a package in the
/// package, wherever cargo itself was called.
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
