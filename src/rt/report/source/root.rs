//! From which directory did the compiler see the program?
//!
//! Locations are relative to the directory of the workspace. A test mostly runs in its package,
//! which is somewhere below the workspace. But the program may run anywhere: a failure that is
//! replayed in a debugger does. So the search for the workspace also starts from the package that
//! cargo runs, and from the program, which cargo puts below the workspace.
//! A file that happens to have the same path in another workspace must not be taken for the
//! program's. So for these two, a directory is a workspace only if it has the lock file that cargo
//! writes there, and a file that is newer than the program does not count as its source. If the two
//! give different directories, only the directory in which the program runs counts.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file that cargo writes into the directory of a workspace.
const LOCK: &str = "Cargo.lock";

/// The directories from which the search for the workspace starts.
#[derive(Debug)]
pub(in super::super) struct Around {
    /// Where the program runs.
    here: Option<PathBuf>,
    /// The package that cargo runs.
    package: Option<PathBuf>,
    program: Option<PathBuf>,
    /// When the program was made.
    made: Option<SystemTime>,
}

impl Around {
    /// The directories of this process.
    pub(in super::super) fn this_process() -> Around {
        let program = std::env::current_exe().ok();
        Around {
            here: std::env::current_dir().ok(),
            package: std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from),
            made: program.as_deref().and_then(modified),
            program,
        }
    }

    /// The directory of the workspace in which the compiler saw this file.
    pub(in super::super) fn root(&self, file: &Path) -> Option<PathBuf> {
        if file.is_absolute() {
            return Some(PathBuf::new());
        }
        let with_file = |start: &Option<PathBuf>| {
            let around = start.as_deref().into_iter().flat_map(Path::ancestors);
            let around = around.filter(|directory| directory.join(file).is_file());
            around.map(Path::to_owned).collect::<Vec<PathBuf>>()
        };
        let workspace = |start| {
            let mut roots = with_file(start).into_iter();
            let root = roots.find(|root| root.join(LOCK).is_file())?;
            self.is_of_program(&root.join(file)).then_some(root)
        };
        let here = || {
            let roots = with_file(&self.here);
            let locked = roots.iter().find(|root| root.join(LOCK).is_file());
            locked.or(roots.first()).cloned()
        };
        match (workspace(&self.package), workspace(&self.program)) {
            (Some(one), Some(other)) if !is_same(&one, &other) => {
                here().filter(|root| is_same(root, &one) || is_same(root, &other))
            }
            (Some(root), _) | (None, Some(root)) => Some(root),
            (None, None) => here(),
        }
    }

    /// Whether the program may have been built from the present version of this file.
    fn is_of_program(&self, file: &Path) -> bool {
        let changed = modified(file);
        changed.is_some_and(|changed| self.made.is_some_and(|made| changed <= made))
    }
}

fn modified(file: &Path) -> Option<SystemTime> {
    file.metadata().ok()?.modified().ok()
}

fn is_same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().ok();
    one == other || whole(one).is_some_and(|one| Some(one) == whole(other))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    /// A directory for files, which is removed when it is dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str, files: &[&str]) -> Scratch {
            let name = format!("dpor-{}-root-{name}", std::process::id());
            let scratch = Scratch(std::env::temp_dir().join(name));
            for file in files {
                let path = scratch.0.join(file);
                fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
                fs::write(path, "").expect("it is written");
            }
            scratch
        }

        /// The directories for a user that runs a program in a directory, and in a package if cargo
        /// runs it.
        fn around(&self, here: &str, package: Option<&str>, program: &str) -> Around {
            let in_this = |path: &str| self.0.join(path);
            Around {
                here: Some(in_this(here)),
                package: package.map(in_this),
                program: Some(in_this(program)),
                made: Some(SystemTime::now() + Duration::from_secs(60)),
            }
        }

        /// The directory, below this one, of the workspace that the file is in.
        fn root(&self, around: &Around, file: &str) -> Option<String> {
            let root = around.root(Path::new(file))?;
            let below = root.strip_prefix(&self.0).expect("it is below");
            Some(below.to_string_lossy().replace('\\', "/"))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_workspace_is_found_from_anywhere() {
        let files = ["work/Cargo.lock", "work/a/src/lib.rs", "else/README"];
        let scratch = Scratch::new("anywhere", &files);
        let (own, others) = ("work/target/debug/deps/a-1", "target/debug/deps/a-1");
        let file = "a/src/lib.rs";
        let found =
            |here, package, program| scratch.root(&scratch.around(here, package, program), file);
        let work = Some("work".to_owned());
        assert_eq!(found("work", None, others), work);
        assert_eq!(found("work/a/src", None, others), work);
        assert_eq!(found("else", Some("work/a"), others), work);
        assert_eq!(found("else", None, own), work);
        assert_eq!(found("else", None, others), None);
        assert_eq!(found("work", Some("work/a"), own), work);
    }

    /// A file of another directory has the same path.
    #[test]
    fn a_file_of_another_workspace_is_not_taken_for_the_program_s() {
        let files = [
            "work/Cargo.lock",
            "work/src/lib.rs",
            "work/a/src/lib.rs",
            "other/Cargo.lock",
            "other/src/lib.rs",
            "loose/src/lib.rs",
        ];
        let scratch = Scratch::new("another", &files);
        let own = "work/target/debug/deps/a-1";
        let elsewhere = "target/debug/deps/a-1";
        let found = |here, package, program| {
            scratch.root(&scratch.around(here, package, program), "src/lib.rs")
        };
        let work = Some("work".to_owned());
        // The package has a file with this path, too.
        assert_eq!(found("work/a", Some("work/a"), own), work);
        assert_eq!(found("work/a", None, elsewhere), work);
        // The directory in which the program runs is another workspace.
        assert_eq!(found("other", None, own), work);
        assert_eq!(found("other", Some("work"), elsewhere), work);
        // The program is in the target directory of a workspace that does not contain the package.
        assert_eq!(found("work", Some("work"), "other/target/a"), work);
        assert_eq!(found("loose", Some("work"), "other/target/a"), None);
        // There is no workspace.
        let loose = Some("loose".to_owned());
        assert_eq!(found("loose", None, elsewhere), loose);
        assert_eq!(found("", Some("loose"), "loose/target/a"), None);
    }

    #[test]
    fn a_file_that_is_newer_than_the_program_is_none_that_it_was_made_from() {
        let files = ["work/Cargo.lock", "work/src/lib.rs", "else/README"];
        let scratch = Scratch::new("newer", &files);
        let mut around = scratch.around("else", Some("work"), "work/target/debug/a");
        assert_eq!(scratch.root(&around, "src/lib.rs").as_deref(), Some("work"));
        let file = scratch.0.join("work/src/lib.rs");
        around.made = modified(&file).map(|changed| changed - Duration::from_secs(1));
        assert_eq!(scratch.root(&around, "src/lib.rs"), None);
        around.made = None;
        assert_eq!(scratch.root(&around, "src/lib.rs"), None);
    }

    #[test]
    fn the_sources_of_this_program_are_found() {
        let around = Around::this_process();
        let root = around.root(Path::new(file!())).expect("it is there");
        assert!(root.join(file!()).is_file());
        assert_eq!(around.root(Path::new("nowhere.rs")), None);
    }
}
