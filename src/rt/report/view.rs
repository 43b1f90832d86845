//! What is a report made from, and how does it name a place?

use super::places::{Callers, FileLine, Life};
use crate::rt::event::id::ThreadId;
use crate::rt::event::said::Said;
use crate::rt::event::verdict::{self, Blocked, End, Pair, Reproduction};
use crate::rt::event::{Event, Site, Trace, foreign};
use crate::rt::object::machine::Machine;

/// The most bytes of a path that is shown whole.
const PATH_MAX: usize = 40;

/// The facts that a report is made from.
pub(crate) struct View<'a> {
    pub(crate) end: &'a End,
    pub(crate) trace: &'a Trace,
    pub(crate) machine: &'a Machine,
    /// The names that the program gave to threads.
    pub(crate) given: &'a [(ThreadId, String)],
    /// The panic's text, and its file, line and column.
    pub(crate) panic: Option<Panic<'a>>,
    /// The panics before the failure.
    pub(crate) earlier: &'a [verdict::Panic],
    /// The facts about the block that the failure is about.
    pub(crate) life: &'a Life,
    /// The callers of operations with a site outside the program.
    pub(crate) callers: &'a Callers,
    /// The output of the program's log.
    pub(crate) log: &'a [Said],
    /// The pair of operations that the failure hangs on.
    pub(crate) pair: Option<&'a Pair>,
    /// The result of running the schedule again.
    pub(crate) again: Reproduction,
    /// Whether this execution is a simpler one than the execution that was found.
    pub(crate) simplified: bool,
    /// The number of executions, this one included.
    pub(crate) executions: u64,
    pub(crate) schedule: &'a str,
    /// The name of the test, if the OS thread has it.
    pub(crate) test: Option<String>,
    /// The command that replays the schedule.
    pub(crate) replay: &'a str,
}

/// A panic's text, and its file, line and column.
pub(crate) type Panic<'a> = (&'a str, Option<(&'a str, u32, u32)>);

pub(super) fn place(site: Site) -> String {
    match foreign(site.file()) {
        Some(somewhere) => somewhere.to_owned(),
        None => format!("{}:{}", short(site.file()), site.line()),
    }
}

/// The place of an event.
pub(super) fn place_of(view: &View<'_>, event: &Event) -> String {
    match view.callers.of_event(event) {
        Some(caller) => in_short(caller),
        None => place(event.site),
    }
}

/// The place where a thread waits.
pub(super) fn place_of_waiting(view: &View<'_>, waiting: &Blocked) -> String {
    match view.callers.of_waiting(waiting, view.trace) {
        Some(caller) => in_short(caller),
        None => place(waiting.site),
    }
}

fn in_short(FileLine { file, line }: &FileLine) -> String {
    format!("{}:{line}", short(file))
}

/// The place of an action, as words behind the action.
pub(super) fn at(site: Site) -> String {
    behind(place(site))
}

/// A place, as words behind an action.
pub(super) fn behind(place: String) -> String {
    match place.starts_with("in ") {
        true => place,
        false => format!("at {place}"),
    }
}

/// A path as the report shows it: whole, so that a terminal and an editor find the file; a long
/// path from the folder of its package on. Without that folder a place in another crate,
/// `src/lib.rs`, would look like one in the tested crate.
pub(super) fn short(file: &str) -> &str {
    if file.len() <= PATH_MAX {
        return file;
    }
    // Cargo's own folder for downloaded crates is called `src`, too.
    let source = file
        .rfind("/src/")
        .filter(|&at| !file[..at].ends_with("/registry"));
    let folder = source.or_else(|| file.rfind('/'));
    let before = folder.and_then(|at| file[..at].rfind('/'));
    before.map_or(file, |at| &file[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_long_path_is_told_from_the_folder_of_its_package() {
        let registry = "/home/me/.cargo/registry/src/index.crates.io-0123456789abcdef";
        for (path, told) in [
            ("queue-1.0.0/lib.rs", "queue-1.0.0/lib.rs"),
            ("queue-1.0.0/src/lib.rs", "queue-1.0.0/src/lib.rs"),
            (
                "queue-1.0.0/src/sync/once.rs",
                "queue-1.0.0/src/sync/once.rs",
            ),
        ] {
            assert_eq!(short(&format!("{registry}/{path}")), told);
        }
        // If no part of the path marks the beginning of the package, the last two parts are shown.
        assert_eq!(
            short("/home/me/a/long/way/to/the/package/tests/loom.rs"),
            "tests/loom.rs"
        );
        assert_eq!(short("src/lib.rs"), "src/lib.rs");
    }
}
