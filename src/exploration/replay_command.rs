//! The command that replays a schedule: it runs this program again, and in it one test.
//!
//! `cargo test NAME` runs every test of any program of the package that has `NAME` in its name, and
//! a schedule is for one test. Cargo's environment variables name the package of a program. The
//! target of the package follows from the path of the program and from the list of sources that the
//! compiler has left beside it. The features of the build cannot be known. The command repeats
//! those settings of the environment without which the same execution might not fail. The other
//! settings decide how the execution was found, and make no difference to a schedule.

use std::path::{Path, PathBuf};

use crate::config::LOOM;
use crate::exploration::numbered_model::{numbered, of_model};
use crate::exploration::saved_failure::{target_directory, unnumbered};
use crate::rt::event::weakened::Weakened;

/// The variables that decide whether an execution fails.
const DECIDE: [&str; 12] = [
    "DPOR_SPIN_BOUND",
    "DPOR_TIMEOUT_BOUND",
    "DPOR_SPURIOUS_WAKEUPS",
    "DPOR_MAX_THREADS",
    "DPOR_MAX_BRANCHES",
    "DPOR_STACK_SIZE",
    "DPOR_PATIENCE",
    "DPOR_CHECK_LEAKS",
    "DPOR_CATCH_PANICS",
    "DPOR_DETACHED_MAY_BLOCK",
    "DPOR_SPURIOUS_FAILURES",
    // The variables of loom with the same effect, for a build that reads them.
    "LOOM_MAX_BRANCHES",
];

/// Cargo's argument to run the tests in the documentation.
const DOC: &str = "--doc";

/// The file name of the programs that rustdoc makes of those tests.
const OF_RUSTDOC: &str = "rust_out";

/// The variable that selects a test by its number in a program that rustdoc has made of many tests.
const NUMBER_OF_RUSTDOC: &str = "RUSTDOC_DOCTEST_RUN_NB_TEST";

/// Returns the command that replays this schedule, under these orderings, in the model that began
/// last on this OS thread. The thread has the name of its test.
pub(crate) fn replay(schedule: &str, weakened: &Weakened) -> String {
    replay_of(schedule, weakened, std::thread::current().name())
}

/// [`replay`] for the test of this name.
pub(crate) fn replay_of(schedule: &str, weakened: &Weakened, test: Option<&str>) -> String {
    with_variables(&numbered(schedule), weakened, test)
}

/// [`replay_of`] for the model with this number, on any OS thread.
pub(crate) fn replay_in(
    nth: u64,
    schedule: &str,
    weakened: &Weakened,
    test: Option<&str>,
) -> String {
    with_variables(&of_model(nth, schedule), weakened, test)
}

/// [`replay`] for the schedule in this file.
pub(crate) fn replay_from(file: &Path, weakened: &Weakened) -> String {
    let file = format!("@{}", file.display());
    with_variables(&file, weakened, std::thread::current().name())
}

/// Returns the command for the test of this name, with this value of `DPOR_REPLAY`, and with these
/// orderings as the value of `DPOR_WEAKEN`.
fn with_variables(replay: &str, weakened: &Weakened, test: Option<&str>) -> String {
    let command = command(test);
    if weakened.is_empty() {
        format!("DPOR_REPLAY=\"{replay}\" {command}")
    } else {
        format!("DPOR_WEAKEN=\"{weakened}\" DPOR_REPLAY=\"{replay}\" {command}")
    }
}

/// Returns the command for the test of this name, or for the whole program if there is no name.
fn command(test: Option<&str>) -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.trim().is_empty());
    let program = std::env::current_exe().unwrap_or_default();
    let manifest = variable("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let arguments = std::env::args_os().skip(1);
    let number = variable(NUMBER_OF_RUSTDOC).and_then(|number| number.parse::<usize>().ok());
    let documented = number.map_or_else(Vec::new, |_| documented(&program));
    let run = Run {
        source: manifest.as_deref().and_then(|it| source(&program, it)),
        directory: target_directory(&program),
        member: manifest.is_some_and(|it| is_member(&it)),
        package: variable("CARGO_PKG_NAME"),
        flags: variable("RUSTFLAGS"),
        doc_flags: variable("RUSTDOCFLAGS"),
        settings: (DECIDE.into_iter())
            .filter(|name| LOOM || !name.starts_with("LOOM_"))
            .filter_map(|name| Some((name, variable(name)?)))
            .collect(),
        arguments: arguments
            .map(|it| it.to_string_lossy().into_owned())
            .collect(),
        // Where the harness starts no thread for a test, only rustdoc's number tells which test it
        // is.
        test: match test.filter(|name| is_of_rustdoc(&program) || is_path(name)) {
            Some(name) => Some(name.to_owned()),
            None => number.and_then(|number| documented.get(number).cloned()),
        },
        documented,
        program,
    };
    run.command()
}

/// Whether the package with this directory is a member of a workspace and not its root. For a
/// member the command must name the package, because cargo otherwise takes the root's own. A member
/// may have a lock file of its own, as published packages have.
fn is_member(package: &Path) -> bool {
    let is_root = |at: &Path| {
        let manifest = std::fs::read_to_string(at.join("Cargo.toml")).unwrap_or_default();
        (manifest.lines()).any(|line| line.trim_start().starts_with("[workspace"))
    };
    let is_below_one = || package.ancestors().skip(1).any(is_root);
    !is_root(package) && (is_below_one() || !package.join("Cargo.lock").is_file())
}

fn is_of_rustdoc(program: &Path) -> bool {
    program.file_stem().is_some_and(|stem| stem == OF_RUSTDOC)
}

/// Whether a thread of this name may be a test's thread, which has the path of a function as its
/// name. A model may instead run on a thread of the test's making, for example for a bigger stack,
/// and the name of that thread selects no test.
fn is_path(name: &str) -> bool {
    let of_a_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '#');
    name != "main" && name.chars().all(of_a_path)
}

/// A running program: the facts that decide the command.
#[derive(Default)]
struct Run {
    program: PathBuf,
    arguments: Vec<String>,
    test: Option<String>,
    /// The names of the tests in the documentation, if the program is made of all of them.
    documented: Vec<String>,
    /// The name of the package, if cargo has started the program.
    package: Option<String>,
    /// Whether the package is a member of a workspace and not its root.
    member: bool,
    /// The root source file of the program, relative to the package.
    source: Option<PathBuf>,
    /// The target directory, including the platform's directory if the build names a platform.
    directory: Option<PathBuf>,
    /// The compiler's flags in the environment.
    flags: Option<String>,
    /// Rustdoc's flags in the environment.
    doc_flags: Option<String>,
    /// The variables that decide whether an execution fails, with their values.
    settings: Vec<(&'static str, String)>,
}

impl Run {
    fn command(&self) -> String {
        let own = self.own();
        let mut command = String::new();
        for (name, value) in &self.settings {
            command += &format!("{name}={} ", line([value.trim()]));
        }
        let Some(package) = &self.package else {
            let program = self.program.to_string_lossy();
            return command + &line([&*program].into_iter().chain(own));
        };
        if let Some(flags) = &self.flags {
            command += &format!("RUSTFLAGS={} ", in_quotes(flags));
        }
        let target = self.target(package);
        if let Some(flags) = &self.doc_flags
            && matches!(&target, Some((_, target, _)) if target == &[DOC])
        {
            command += &format!("RUSTDOCFLAGS={} ", in_quotes(flags));
        }
        let Some((verb, target, profile)) = target else {
            let words = ["cargo", "test"].into_iter().chain(self.test.as_deref());
            return command + &line(words);
        };
        let mut words = vec!["cargo", verb];
        if self.member {
            words.extend(["-p", package]);
        }
        words.extend(target.iter().map(String::as_str));
        match profile {
            "debug" => {}
            "release" if verb == "bench" => {}
            "release" => words.push("--release"),
            profile => words.extend(["--profile", profile]),
        }
        if let Some(platform) = self.platform() {
            words.extend(["--target", platform]);
        }
        if !own.is_empty() {
            words.push("--");
        }
        command.push_str(&line(words.into_iter().chain(own)));
        command
    }

    /// Returns the arguments of the program itself.
    fn own(&self) -> Vec<&str> {
        let Some(test) = &self.test else {
            // Cargo passes this argument to a benchmark by itself.
            let arguments = self.arguments.iter().map(String::as_str);
            return arguments.filter(|it| *it != "--bench").collect();
        };
        let mut own = if self.is_of_rustdoc() {
            vec![filter(test, &self.documented)]
        } else {
            vec!["--exact", test]
        };
        if self.is_told("--ignored") || self.is_told("--include-ignored") {
            own.push("--include-ignored");
        }
        own
    }

    fn is_of_rustdoc(&self) -> bool {
        is_of_rustdoc(&self.program)
    }

    fn is_told(&self, argument: &str) -> bool {
        self.arguments.iter().any(|it| it == argument)
    }

    /// Returns cargo's command, the target and the profile. `None` if the program does not lie
    /// where cargo puts programs.
    fn target(&self, package: &str) -> Option<(&'static str, Vec<String>, &str)> {
        let stem = self.program.file_stem()?.to_str()?;
        // Rustdoc may put the programs of documentation tests into any directory.
        if self.is_of_rustdoc() {
            return Some(("test", vec![DOC.to_owned()], "debug"));
        }
        let within = self.program.strip_prefix(self.directory.as_ref()?).ok()?;
        let parts = parts(within)?;
        let target = |kind: &str, name: &str| vec![kind.to_owned(), name.to_owned()];
        match (unnumbered(stem), &parts[..]) {
            // Only binaries and examples that cargo builds to be run have no number in their names.
            (None, &[profile, _]) => Some(("run", target("--bin", stem), profile)),
            (None, &[profile, "examples", _]) => Some(("run", target("--example", stem), profile)),
            (Some(crate_name), &[profile, "deps" | "examples", _]) => {
                let verb = if self.is_told("--bench") {
                    "bench"
                } else {
                    "test"
                };
                let target = tested(self.source.as_ref()?, crate_name, package)?;
                Some((verb, target, profile))
            }
            _ => None,
        }
    }

    /// Returns the platform that the build names: its directory is marked like the target directory
    /// that contains it.
    fn platform(&self) -> Option<&str> {
        let directory = self.directory.as_ref()?;
        let outer = target_directory(directory)?;
        let name = directory.file_name()?.to_str()?;
        (directory.parent() == Some(&outer) && name.matches('-').count() > 1).then_some(name)
    }
}

/// Returns cargo's arguments to test the target with this root source file.
fn tested(source: &Path, crate_name: &str, package: &str) -> Option<Vec<String>> {
    let file = source.with_extension("");
    let (kind, name) = match parts(&file)?[..] {
        ["src", "lib"] => return Some(vec!["--lib".to_owned()]),
        ["src", "main"] => ("--bin", package),
        ["src", "bin", name] | ["src", "bin", name, "main"] => ("--bin", name),
        ["tests", name] | ["tests", name, "main"] => ("--test", name),
        ["examples", name] | ["examples", name, "main"] => ("--example", name),
        ["benches", name] | ["benches", name, "main"] => ("--bench", name),
        _ => return None,
    };
    // The manifest may give the target another name. The compiler's names contain `_` for `-`.
    let name = if name.replace('-', "_") == crate_name {
        name
    } else {
        crate_name
    };
    Some(vec![kind.to_owned(), name.to_owned()])
}

/// Returns the root source file of the program, relative to this package: the first file in the
/// compiler's list. The list has paths relative to the root of the workspace.
fn source(program: &Path, package: &Path) -> Option<PathBuf> {
    let noted = std::fs::read_to_string(program.with_extension("d")).ok()?;
    let (_, sources) = noted.lines().next()?.split_once(".d: ")?;
    let source = Path::new(sources.split(' ').next()?);
    let mut parts = source.components();
    // Finds the longest suffix of the path that exists in the package.
    loop {
        let rest = parts.as_path();
        if rest.is_relative() && package.join(rest).is_file() {
            return Some(rest.to_owned());
        }
        parts.next()?;
    }
}

/// Returns a word of the test's name that is in no other name, or the word with its line. Rustdoc
/// takes a filter with a space for two filters, and runs a test that matches either of them, so the
/// whole name would select no test or every test.
fn filter<'a>(test: &'a str, all: &[String]) -> &'a str {
    let is_alone = |word: &&str| all.iter().filter(|name| name.contains(*word)).count() <= 1;
    let mut words = test.rsplit(' ');
    let line = words.clone().next().unwrap_or(test);
    words.find(is_alone).unwrap_or(line)
}

/// Returns the names of the tests of which rustdoc has made this program, from the source of the
/// harness beside it. Rustdoc does not promise to keep that source, or its form; a source in
/// another form yields no names.
fn documented(program: &Path) -> Vec<String> {
    let beside = program.parent().and_then(|it| std::fs::read_dir(it).ok());
    let paths = beside.into_iter().flatten().flatten().map(|it| it.path());
    let sources = paths.filter(|path| path.extension().is_some_and(|it| it == "rs"));
    let names = sources
        .filter_map(|source| Some(names(&std::fs::read_to_string(source).ok()?)))
        .find(|names| !names.is_empty());
    names.unwrap_or_default()
}

/// Returns the names of the tests in rustdoc's harness, by their numbers: the first text of each
/// test.
fn names(harness: &str) -> Vec<String> {
    let tests = harness.split("TestDescAndFn::new_doctest(").skip(1);
    let name = |test: &str| {
        let (name, _) = test.trim_start().strip_prefix('"')?.split_once('"')?;
        Some(name.to_owned())
    };
    tests.map_while(name).collect()
}

fn parts(path: &Path) -> Option<Vec<&str>> {
    path.iter().map(|part| part.to_str()).collect()
}

/// Quotes the words as a line for a shell.
fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    let words = words.into_iter().map(|word| {
        if word.chars().all(plain) && !word.is_empty() {
            word.to_owned()
        } else {
            in_quotes(word)
        }
    });
    words.collect::<Vec<String>>().join(" ")
}

fn in_quotes(word: &str) -> String {
    if word.contains(['"', '$', '`', '\\', '!']) {
        format!("'{}'", word.replace('\'', r"'\''"))
    } else {
        format!("\"{word}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the command for a program at this path in `/w/target`, with this root source file.
    fn command(place: &str, source: &str, change: impl FnOnce(&mut Run)) -> String {
        let mut run = Run {
            program: Path::new("/w/target").join(place),
            test: Some("a::b".to_owned()),
            package: Some("some-queue".to_owned()),
            source: (!source.is_empty()).then(|| source.into()),
            directory: Some("/w/target".into()),
            ..Run::default()
        };
        change(&mut run);
        run.command()
    }

    const NUMBER: &str = "5cf10258fc0aab4e";

    #[test]
    fn each_kind_of_target_is_named() {
        for (name, source, named) in [
            ("deps/races", "tests/races.rs", "test --test races"),
            (
                "deps/all_races",
                "tests/all-races.rs",
                "test --test all-races",
            ),
            ("deps/races", "tests/races/main.rs", "test --test races"),
            ("deps/other", "tests/races.rs", "test --test other"),
            ("deps/some_queue", "src/lib.rs", "test --lib"),
            ("deps/some_queue", "src/main.rs", "test --bin some-queue"),
            ("deps/two", "src/bin/two.rs", "test --bin two"),
            (
                "examples/try_it",
                "examples/try-it.rs",
                "test --example try-it",
            ),
            ("deps/speed", "benches/speed.rs", "test --bench speed"),
        ] {
            let told = command(&format!("debug/{name}-{NUMBER}"), source, |_| ());
            assert_eq!(told, format!("cargo {named} -- --exact a::b"));
        }
    }

    #[test]
    fn what_was_built_to_be_run_is_run_with_its_arguments() {
        let with = |run: &mut Run| {
            run.test = None;
            run.arguments = vec!["--bench".to_owned(), "it's $5".to_owned()];
        };
        let told = command("debug/examples/try-it", "", with);
        assert_eq!(told, r"cargo run --example try-it -- 'it'\''s $5'");
        let told = command("release/two", "", |run| run.test = None);
        assert_eq!(told, "cargo run --bin two --release");
    }

    #[test]
    fn package_profile_platform_and_flags_are_told_where_they_are_not_what_cargo_takes_anyhow() {
        let lib = format!("small/deps/some_queue-{NUMBER}");
        let told = command(&lib, "src/lib.rs", |run| {
            run.member = true;
            run.flags = Some("--cfg dpor".to_owned());
            run.arguments = vec!["--ignored".to_owned()];
        });
        assert_eq!(
            told,
            "RUSTFLAGS=\"--cfg dpor\" cargo test -p some-queue --lib --profile small -- \
             --exact a::b --include-ignored"
        );
        let bench = format!("release/deps/speed-{NUMBER}");
        let told = command(&bench, "benches/speed.rs", |run| {
            run.test = None;
            run.arguments = vec!["--bench".to_owned()];
        });
        assert_eq!(told, "cargo bench --bench speed");
    }

    #[test]
    fn settings_that_decide_whether_it_fails_are_repeated() {
        let with = |run: &mut Run| {
            run.settings = vec![
                ("DPOR_MAX_BRANCHES", " 50 ".to_owned()),
                ("DPOR_CHECK_LEAKS", "0".to_owned()),
            ];
            run.flags = Some("--cfg dpor".to_owned());
        };
        let told = command(
            &format!("debug/deps/races-{NUMBER}"),
            "tests/races.rs",
            with,
        );
        assert_eq!(
            told,
            "DPOR_MAX_BRANCHES=50 DPOR_CHECK_LEAKS=0 RUSTFLAGS=\"--cfg dpor\" \
             cargo test --test races -- --exact a::b"
        );
    }

    #[test]
    fn a_test_in_the_documentation_is_one() {
        let with = |run: &mut Run| {
            run.program = "/elsewhere/rustdoctest1/rust_out".into();
            run.test = Some("src/lib.rs - one (line 2)".to_owned());
            run.flags = Some("--cfg dpor".to_owned());
            run.doc_flags = run.flags.clone();
        };
        let own = |told: String| told.replace("\"--cfg dpor\"", "_");
        assert_eq!(
            own(command("", "", with)),
            "RUSTFLAGS=_ RUSTDOCFLAGS=_ cargo test --doc -- \"2)\""
        );
        let lib = format!("debug/deps/some_queue-{NUMBER}");
        let library = |run: &mut Run| run.doc_flags = Some("--cfg dpor".to_owned());
        let told = command(&lib, "src/lib.rs", library);
        assert_eq!(told, "cargo test --lib -- --exact a::b");
    }

    #[test]
    fn one_of_many_tests_in_the_documentation_is_told_by_the_word_that_it_has_alone() {
        let all = [
            "a.rs - Ring (line 2)",
            "a.rs - Ring::push (line 12)",
            "b.rs - (line 12)",
        ];
        let all = all.map(str::to_owned);
        assert_eq!(
            filter(&all[0], &all),
            "2)",
            "none is alone, and this is in few"
        );
        assert_eq!(filter(&all[1], &all), "Ring::push");
        assert_eq!(filter(&all[2], &all), "b.rs");
        assert_eq!(filter(&all[1], &all[..1]), "12)");
        assert_eq!(filter(&all[1], &[]), "12)", "nothing is known");

        let with = |run: &mut Run| {
            run.program = "/elsewhere/rustdoctest1/rust_out".into();
            run.test = Some(all[1].clone());
            run.documented = all.to_vec();
        };
        assert_eq!(command("", "", with), "cargo test --doc -- Ring::push");
    }

    #[test]
    fn the_names_of_the_tests_in_the_documentation_are_in_their_harness() {
        let harness = "mod __doctest_0 {\npub const TEST: test::TestDescAndFn = \
                       test::TestDescAndFn::new_doctest(\n\"a.rs - one (line 2)\", false, \"a.rs\", 2,\n}\n\
                       mod __doctest_1 {\npub const TEST: test::TestDescAndFn = \
                       test::TestDescAndFn::new_doctest(\n\"a.rs - two (line 9)\", false, \"a.rs\", 9,\n}";
        assert_eq!(
            names(harness),
            ["a.rs - one (line 2)", "a.rs - two (line 9)"]
        );
        assert!(names("fn main() {}").is_empty());
        // If one test has another form, no name may move to another number, so there are no names.
        let odd = harness.replacen("\n\"a", "\nname(\"a", 1);
        assert!(names(&odd).is_empty());
    }

    #[test]
    fn what_cannot_be_known_is_left_open() {
        let unknown = "cargo test a::b";
        assert_eq!(command("elsewhere", "", |_| ()), unknown);
        let odd = format!("debug/deps/races-{NUMBER}");
        assert_eq!(command(&odd, "checks/races.rs", |_| ()), unknown);
        assert_eq!(command(&odd, "", |_| ()), unknown);
        let told = command(&odd, "tests/races.rs", |run| run.test = None);
        assert_eq!(told, "cargo test --test races");
        let by_hand = |run: &mut Run| run.package = None;
        let told = command("debug/deps/races-1", "tests/races.rs", by_hand);
        assert_eq!(told, "/w/target/debug/deps/races-1 --exact a::b");
    }

    #[test]
    fn the_program_that_runs_here_is_found() {
        let program = std::env::current_exe().expect("a file");
        let found = source(&program, Path::new(env!("CARGO_MANIFEST_DIR")));
        assert_eq!(found.as_deref(), Some(Path::new("src/lib.rs")));
        let told = super::command(Some("some::test"));
        assert!(told.contains("cargo test --lib "), "{told}");
        assert!(told.ends_with(" -- --exact some::test"), "{told}");
        // A model may run on a thread that is no test's thread.
        for thread in ["a big stack", "big-stack", "main"] {
            let told = super::command(Some(thread));
            assert!(!told.contains(thread), "{told}");
        }
    }

    #[test]
    fn a_member_of_a_workspace_is_one_with_a_lock_file_of_its_own_too() {
        let root = std::env::temp_dir().join(format!("dpor-{}-workspace", std::process::id()));
        let member = root.join("queue");
        std::fs::create_dir_all(&member).unwrap();
        let write = |at: &Path, name: &str, text: &str| std::fs::write(at.join(name), text);
        write(&root, "Cargo.lock", "").unwrap();
        write(&root, "Cargo.toml", "[workspace]\nmembers = [\"queue\"]\n").unwrap();
        write(&member, "Cargo.toml", "[lints]\nworkspace = true\n").unwrap();
        let mut found = vec![is_member(&root), is_member(&member)];
        write(&member, "Cargo.lock", "").unwrap();
        found.push(is_member(&member));
        // The package is alone, or the root of another workspace.
        write(&root, "Cargo.toml", "[package]\n").unwrap();
        found.extend([is_member(&member), is_member(&root)]);
        write(&root, "Cargo.toml", "[workspace]\n").unwrap();
        write(&member, "Cargo.toml", "[workspace]\n").unwrap();
        found.push(is_member(&member));
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, [false, true, true, false, false, false]);
    }
}
