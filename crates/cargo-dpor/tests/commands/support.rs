//! A fresh crate, and the command in it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

/// The crates share a target directory, and with it the record of the last run.
static TARGET: Mutex<()> = Mutex::new(());

/// The repository with the library.
pub(crate) fn library() -> PathBuf {
    let member = Path::new(env!("CARGO_MANIFEST_DIR"));
    member
        .ancestors()
        .nth(2)
        .expect("the repository")
        .to_owned()
}

/// A folder with one crate or workspace.
pub(crate) struct Crate {
    folder: TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// What a command has said, and its exit code.
pub(crate) struct Ended {
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl Ended {
    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn with(self, code: i32) -> Ended {
        assert_eq!(
            self.code, code,
            "{}\n--- standard error\n{}",
            self.out, self.err
        );
        assert!(
            !self.err.contains("panicked at crates/cargo-dpor"),
            "{}",
            self.err
        );
        self
    }

    /// Checks that standard output has these texts.
    #[track_caller]
    pub(crate) fn says(self, texts: &[&str]) -> Ended {
        for text in texts {
            assert!(
                self.out.contains(text),
                "{text}\n--- is not in\n{}",
                self.out
            );
        }
        self
    }
}

impl Crate {
    pub(crate) fn empty() -> Crate {
        let alone = TARGET.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().expect("a folder");
        let made = Crate {
            folder,
            _alone: alone,
        };
        // The models here are small, and an optimised library takes long to build.
        made.write(
            ".cargo/config.toml",
            "[profile.dev.package]\ndpor.opt-level = 0\ngenerator.opt-level = 0\n",
        );
        let _ = std::fs::remove_file(made.state().join("last-run.json"));
        made
    }

    /// A crate with these lines at the end of its manifest, and an empty library.
    pub(crate) fn new(name: &str, manifest: &str) -> Crate {
        let made = Crate::empty();
        made.package("", name, manifest);
        made.lock("");
        made
    }

    /// A crate that depends on the library under `cfg(dpor)`.
    pub(crate) fn with_dpor(name: &str) -> Crate {
        let library = library();
        let library = library.display();
        Crate::new(
            name,
            &format!(
                "[target.'cfg(dpor)'.dependencies]\ndpor = {{ path = \"{library}\" }}\n\n\
                 [lints.rust]\nunexpected_cfgs = {{ level = \"warn\", check-cfg = [\"cfg(dpor)\"] }}\n"
            ),
        )
    }

    /// Writes a package into this folder.
    pub(crate) fn package(&self, folder: &str, name: &str, manifest: &str) {
        let begin = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{manifest}"
        );
        self.write(&format!("{folder}/Cargo.toml"), &begin);
        self.write(&format!("{folder}/src/lib.rs"), "");
    }

    /// Locks the dependencies to those that this repository has, so that no index is asked.
    pub(crate) fn lock(&self, folder: &str) {
        let lock = std::fs::read(library().join("Cargo.lock")).expect("the lock file");
        std::fs::write(self.path(folder).join("Cargo.lock"), lock).expect("a file");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name.trim_start_matches('/'))
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The summary of the last run.
    pub(crate) fn summary(&self) -> String {
        let file = self.state().join("summary.json");
        std::fs::read_to_string(file).expect("a summary")
    }

    /// The target directory of all crates.
    fn target(&self) -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("target")
    }

    /// The folder in which the command keeps what it knows of a run.
    pub(crate) fn state(&self) -> PathBuf {
        self.target().join("dpor")
    }

    /// Returns a program in the folder of the crate, in an environment without settings.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let flags = text.ends_with("RUSTFLAGS") || text.ends_with("RUSTDOCFLAGS");
            if flags || text.starts_with("DPOR_") || text.starts_with("LOOM_") {
                command.env_remove(&name);
            }
        }
        command.current_dir(self.path(""));
        command.env("CARGO_TARGET_DIR", self.target());
        command.env("CARGO_NET_OFFLINE", "true");
        command
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
        command.env("CARGO_INCREMENTAL", "0");
        command
    }

    pub(crate) fn dpor(&self, arguments: &[&str]) -> Ended {
        self.dpor_with(arguments, &[])
    }

    /// Runs `cargo dpor` with these variables.
    pub(crate) fn dpor_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        let mut command = self.command(env!("CARGO_BIN_EXE_cargo-dpor"));
        command
            .arg("dpor")
            .args(arguments)
            .envs(variables.iter().copied());
        ended(&mut command)
    }
}

pub(crate) fn ended(command: &mut Command) -> Ended {
    let output = command.output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

/// Whether nextest is installed.
pub(crate) fn has_nextest() -> bool {
    has("cargo", &["nextest", "--version"])
}

/// Whether this command succeeds. A test without it says so, past the harness.
pub(crate) fn has(program: &str, arguments: &[&str]) -> bool {
    let found = Command::new(program).args(arguments).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        let said = format!("skipped: `{program} {}` does not run", arguments.join(" "));
        let _ = writeln!(std::io::stderr(), "{said}");
        if let Some(file) = std::env::var_os("DPOR_TEST_SKIPPED") {
            let file = std::fs::File::options()
                .append(true)
                .create(true)
                .open(file);
            let _ = file.and_then(|mut file| writeln!(file, "{said}"));
        }
    }
    found
}

/// The sources of tests with models.
pub(crate) mod models {
    /// What the others use.
    const COMMON: &str = r#"#![cfg(dpor)]
use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use dpor::thread;

fn add(to: &AtomicUsize) {
    to.fetch_add(1, SeqCst);
}

#[allow(dead_code)]
fn lose(to: &AtomicUsize) {
    let n = to.load(SeqCst);
    to.store(n + 1, SeqCst);
}

/// So many threads do this to one counter, which then has their number.
#[allow(dead_code)]
fn counts(threads: usize, each: fn(&AtomicUsize)) {
    let counter = Arc::new(AtomicUsize::new(0));
    let run = || {
        let counter = counter.clone();
        thread::spawn(move || each(&counter))
    };
    let all: Vec<_> = (0..threads).map(|_| run()).collect();
    all.into_iter().for_each(|it| it.join().unwrap());
    assert_eq!(counter.load(SeqCst), threads);
}
"#;

    fn with(text: &str) -> String {
        format!("{COMMON}\n{text}")
    }

    /// Tests `a::t1` to `a::t19` with small models, and `large` with 24 executions.
    pub(crate) fn twenty() -> String {
        let small = (1..20).map(|n| {
            format!("#[test]\nfn t{n}() {{ dpor::model(|| super::counts(2, super::add)); }}\n")
        });
        let small: String = small.collect();
        let large = "#[test]\nfn large() { dpor::model(|| counts(4, add)); }\n";
        with(&format!("mod a {{\n{small}}}\n{large}"))
    }

    /// A test that fails, and one that expects its failure.
    pub(crate) fn failing() -> String {
        with(
            "#[test]\nfn loses() { dpor::model(|| counts(2, lose)); }\n\
             #[test]\n#[should_panic]\nfn is_known() { dpor::model(|| counts(2, lose)); }\n",
        )
    }

    /// A test that a limit of its own stops.
    pub(crate) fn stopped() -> String {
        with(
            "#[test]\nfn stops() {\n    let mut builder = dpor::Builder::new();\n\
             builder.max_permutations = builder.max_permutations.or(Some(5));\n\
             builder.check(|| counts(3, lose_nothing));\n}\n\
             fn lose_nothing(to: &AtomicUsize) { add(to) }\n",
        )
    }

    /// A test that aborts, behind one that passes.
    pub(crate) fn crashing() -> String {
        with(
            "#[test]\nfn aborts() {\n    dpor::model(|| counts(2, add));\n    std::process::abort();\n}\n",
        )
    }
}
