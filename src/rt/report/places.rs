//! Where in the user's program was this backtrace taken?
//!
//! The place is the innermost frame that belongs neither to this crate nor to the standard library.
//! std offers frames only as text. Where the text has no lines, because the program was built
//! without debug information, the report has no place either.

use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::source::Around;
use crate::rt::event::held::{Datum, Touched};
use crate::rt::event::id::ThreadId;
use crate::rt::event::verdict::Blocked;
use crate::rt::event::{Event, Site, Trace, is_of_std};

/// The places of a block's life, as far as they are known, and of a use of memory that is no block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub(crate) allocated: Option<String>,
    pub(crate) freed: Option<String>,
    pub(crate) again: Option<String>,
    /// Where memory was used that does not exist: "at" a line or "in" a function.
    pub(crate) faulted: Option<String>,
}

/// The callers of operations with a site outside the program, the data behind locks, and the
/// accesses to plain memory, as far as they are known. The key is the thread, and the index of the
/// operation's event in that thread; the event may not have happened yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers {
    places: BTreeMap<(ThreadId, u32), FileLine>,
    data: BTreeMap<(ThreadId, u32), Datum>,
    touched: Vec<Touched>,
}

impl Callers {
    /// Takes the places from the stacks of the calls. `site` is a place of the program.
    pub(crate) fn new<'a>(
        stacks: impl Iterator<Item = ((ThreadId, u32), &'a Backtrace)>,
        site: Site,
    ) -> Callers {
        let known = stacks.filter_map(|(event, stack)| Some((event, line(stack, site)?)));
        Callers {
            places: known.collect(),
            ..Callers::default()
        }
    }

    pub(crate) fn of_event(&self, event: &Event) -> Option<&FileLine> {
        self.places.get(&(event.thread, event.index))
    }

    /// Adds the data that an event has found or left.
    pub(crate) fn add_data(&mut self, event: (ThreadId, u32), datum: Datum) {
        self.data.insert(event, datum);
    }

    /// The data behind the lock that the event takes, releases or downgrades.
    pub(super) fn data(&self, event: &Event) -> Option<&Datum> {
        self.data.get(&(event.thread, event.index))
    }

    /// Sets the accesses to plain memory, in their order.
    pub(crate) fn set_touched(&mut self, touched: impl Iterator<Item = Touched>) {
        self.touched = touched.collect();
    }

    pub(super) fn touched(&self) -> &[Touched] {
        &self.touched
    }

    /// The place where a waiting thread called its operation. The events of the thread are in this
    /// trace.
    pub(crate) fn of_waiting(&self, waiting: &Blocked, trace: &Trace) -> Option<&FileLine> {
        let next = trace.positions_of(waiting.thread).len() as u32;
        self.places.get(&(waiting.thread, next))
    }
}

/// A line of the program.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct FileLine {
    pub(crate) file: String,
    pub(crate) line: u32,
}

/// The crate with the function in which the stack of a modelled thread begins.
const COROUTINE: &str = "generator";

/// Whether a frame belongs to this crate or to the standard library. With line tables alone
/// functions have no paths, so the file decides.
fn is_ours(function: &str, at: &str) -> bool {
    let crates = ["dpor::", "std::", "core::", "alloc::", "__r"];
    is_of_std(at) || crates.iter().any(|it| function.starts_with(it)) || is_in(at, file!())
}

/// Whether a file is in the crate that has the source file `compiled`. The path is relative to the
/// directory of the package that runs.
fn is_in(at: &str, compiled: &str) -> bool {
    let Some(root) = compiled.strip_suffix("rt/report/places.rs") else {
        return false;
    };
    let at = at.strip_prefix("./").unwrap_or(at);
    // As a member of a workspace, the crate was compiled in the workspace's directory.
    let member = !root.starts_with('/') && root != "src/" && at.contains(&format!("/{root}"));
    // A stack shows paths below the directory in which the program runs relative to that directory.
    let below = root.starts_with('/') && !at.starts_with('/');
    let is_below = || std::env::current_dir().is_ok_and(|it| it.join(at).starts_with(root));
    at.starts_with(root) || member || below && is_below()
}

/// The file and line of the user's innermost frame, as text. `site` is a place of the program.
pub(crate) fn of(trace: &Backtrace, site: Site) -> Option<String> {
    let place = innermost(&trace.to_string())?;
    Some(Compiled::with(site).seen(place))
}

/// The lines of the frames of the user's program, the innermost first. `site` is a place of the
/// program.
pub(crate) fn lines(trace: &Backtrace, site: Site) -> Vec<FileLine> {
    let line = |frame: Frame| FileLine {
        file: frame.file,
        line: frame.line,
    };
    all_of(trace, site).into_iter().map(line).collect()
}

/// A frame of the user's program.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: u32,
}

/// All frames of the user's program with a known place, the innermost first. `site` is a place of
/// the program.
pub(super) fn all_of(trace: &Backtrace, site: Site) -> Vec<Frame> {
    let text = trace.to_string();
    let compiled = Compiled::with(site);
    let frame = |(_, at): (&str, Option<&str>)| {
        let (place, column) = at?.rsplit_once(':')?;
        let (file, line) = place.rsplit_once(':')?;
        let file = file.strip_prefix("./").unwrap_or(file);
        Some(Frame {
            file: compiled.seen(file.to_owned()),
            line: line.parse().ok()?,
            column: column.parse().ok()?,
        })
    };
    frames(&text).filter_map(frame).collect()
}

/// The directory in which the program runs, and the directory from which the compiler saw the
/// program, if both are known.
struct Compiled(Option<(PathBuf, PathBuf)>);

impl Compiled {
    /// The two directories for the program that contains `site`.
    fn with(site: Site) -> Compiled {
        let directory = std::env::current_dir().ok();
        let root = || Around::this_process().root(Path::new(site.file()));
        // A file that was compiled by its absolute path gives no directory.
        let root = directory.and_then(|directory| Some((root()?, directory)));
        Compiled(root.filter(|(root, _)| !root.as_os_str().is_empty()))
    }

    /// Translates a place of a stack to the path that the compiler uses.
    fn seen(&self, place: String) -> String {
        let seen =
            |(root, directory): &(PathBuf, PathBuf)| seen_from(root, &directory.join(&place));
        self.0.as_ref().and_then(seen).unwrap_or(place)
    }
}

/// Translates a place to the path that the compiler uses, if the place is in the directory `root`.
/// A stack has paths relative to the package.
fn seen_from(root: &Path, place: &Path) -> Option<String> {
    let place = place.strip_prefix(root).ok()?;
    Some(place.to_str()?.to_owned())
}

/// The file and line of the user's innermost frame.
fn line(trace: &Backtrace, site: Site) -> Option<FileLine> {
    let place = of(trace, site)?;
    let (file, line) = place.rsplit_once(':')?;
    Some(FileLine {
        file: file.to_owned(),
        line: line.parse().ok()?,
    })
}

fn innermost(text: &str) -> Option<String> {
    frames(text).find_map(|(_, at)| {
        let at = at?;
        let place = at.strip_prefix("./").unwrap_or(at);
        // The column does not help: it points into the call.
        let (file_and_line, column) = place.rsplit_once(':')?;
        Some(match column.parse::<u32>() {
            Ok(_) if file_and_line.contains(':') => file_and_line.to_owned(),
            _ => place.to_owned(),
        })
    })
}

/// The user's frames in the text of a modelled thread's backtrace, the innermost first: the
/// function and its place.
fn frames(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut lines = text.lines().map(str::trim).peekable();
    let all = std::iter::from_fn(move || {
        loop {
            let line = lines.next()?;
            if let Some((number, function)) = line.split_once(": ")
                && number.parse::<u32>().is_ok()
            {
                let at = lines.peek().and_then(|next| next.strip_prefix("at "));
                return Some((function, at));
            }
        }
    });
    // Frames further out belong to no modelled thread.
    let in_thread = all.take_while(|(function, at)| {
        let in_file = at.is_some_and(|at| at.contains(&format!("/{COROUTINE}-")));
        path(function).split("::").next() != Some(COROUTINE) && !in_file
    });
    in_thread.filter(|(function, at)| !is_ours(path(function), at.unwrap_or_default()))
}

/// The user's frames of a panic as std prints them, the innermost first; `None` if no frame is
/// known. With `RUST_BACKTRACE=full`, all that std knows of the stack.
pub(crate) fn of_panic(trace: &Backtrace) -> Option<String> {
    let text = trace.to_string();
    if std::env::var("RUST_BACKTRACE").is_ok_and(|asked| asked == "full") {
        Some(text.trim_end().to_owned())
    } else {
        numbered(frames(&text))
    }
}

fn numbered<'a>(frames: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> Option<String> {
    let lines = frames.enumerate().map(|(number, (function, at))| {
        let at = at.map_or(String::new(), |at| format!("\n             at {at}"));
        format!("{number:>4}: {function}{at}")
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A function's path; the path of a method begins with its type.
fn path(function: &str) -> &str {
    function.trim_start_matches('<')
}

/// Where the program used memory that does not exist: the line, or the function where lines are
/// unknown, as in a release build without debug information.
pub(crate) fn of_fault(trace: &Backtrace, site: Site) -> Option<String> {
    let text = trace.to_string();
    let mut named = frames(&text).filter(|(function, _)| *function != "<unknown>");
    let line = of(trace, site);
    // If the processor has stopped in the middle of a line, the debug information may have no line
    // for the function.
    Some(match (named.next(), line) {
        (Some((function, None)), Some(line)) => format!("in {function}, called at {line}"),
        (_, Some(line)) => format!("at {line}"),
        (Some((function, _)), None) => format!("in {function}"),
        (None, None) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_frame_of_the_user_is_found() {
        let text = "   0: dpor::heap::Heap::look\n             at ./src/heap.rs:300:13\n   \
                    1: <dpor::alloc::tracking::Tracking<A> as core::alloc::GlobalAlloc>::alloc\n             \
                    at ./src/alloc/tracking.rs:70:9\n   2: alloc::alloc::alloc\n             \
                    at /rustc/abc/library/alloc/src/alloc.rs:95:9\n   3: no_place\n   4: \
                    <stack::Stack<T> as stack::Push>::push\n             at ./tests/stack.rs:41:20\n   \
                    5: stack::main\n             at ./tests/stack.rs:60:5\n";
        assert_eq!(innermost(text), Some("tests/stack.rs:41".to_owned()));
        let told = "   0: no_place\n   1: <stack::Stack<T> as stack::Push>::push\n             at \
                    ./tests/stack.rs:41:20\n   2: stack::main\n             at ./tests/stack.rs:60:5";
        assert_eq!(numbered(frames(text)).as_deref(), Some(told));
        assert_eq!(numbered(frames("   0: std::rt::begin\n")), None);
        // A destructor of a thread-local variable; no frame of the user's program calls it.
        let text = "   0: dpor::locals::Locals::end\n             at ./src/locals.rs:60:9\n   \
                    1: {crate}::gen_impl::GeneratorImpl<A,T>::init_code::{{closure}}\n             \
                    at /home/me/.cargo/registry/src/index/generator-0.8.12/src/gen_impl.rs:511:21\n   \
                    2: stack::main\n             at ./tests/stack.rs:60:5\n";
        assert_eq!(innermost(&text.replace("{crate}", COROUTINE)), None);
        assert_eq!(innermost("   0: <unknown>\n"), None);
        // Without debug information.
        let text = "   0: dpor::faults::unix::handle\n   1: <unknown>\n   2: \
                    <stack::Stack<T> as stack::Push>::push\n   3: {crate}::detail::gen::gen_init\n   4: \
                    stack::main\n";
        let text = text.replace("{crate}", COROUTINE);
        let functions: Vec<&str> = frames(&text).map(|(function, _)| function).collect();
        assert_eq!(
            functions,
            ["<unknown>", "<stack::Stack<T> as stack::Push>::push"]
        );
        assert_eq!(innermost(&text), None);
        assert_eq!(innermost("disabled backtrace"), None);
    }

    #[test]
    fn files_of_this_crate_are_known_wherever_it_is_compiled() {
        let registry = "/home/me/.cargo/registry/src/index/dpor-0.1.0/src/";
        for (root, ours, other) in [
            ("src/", "./src/alloc/tracking.rs:70", "./tests/stack.rs:41"),
            (
                "dpor/src/",
                "/w/dpor/src/alloc/tracking.rs:70",
                "./src/stack.rs:41",
            ),
            (
                registry,
                &format!("{registry}cell/mod.rs:3"),
                "./src/stack.rs:41",
            ),
        ] {
            let compiled = format!("{root}rt/report/places.rs");
            assert!(is_in(ours, &compiled), "{root}");
            assert!(!is_in(other, &compiled), "{root}");
        }
        // A path below the directory in which the program runs.
        let here = std::env::current_dir().unwrap();
        let compiled = format!("{}/vendored/src/rt/report/places.rs", here.display());
        assert!(is_in("./vendored/src/alloc/tracking.rs:70", &compiled));
        assert!(!is_in("./src/stack.rs:41", &compiled));
        let text = "   0: look\n             at /rustc/abc/library/alloc/src/alloc.rs:95:9\n   \
                    1: push\n             at ./tests/stack.rs:41:20\n";
        assert_eq!(innermost(text), Some("tests/stack.rs:41".to_owned()));
    }

    #[test]
    fn a_place_in_a_workspace_is_seen_from_its_root() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let member = package.join("tests");
        // As if the folder of the tests were a package, and this package the workspace.
        let seen = |place: &str| seen_from(package, &member.join(place));
        assert_eq!(seen("bounds.rs:3").as_deref(), Some("tests/bounds.rs:3"));
        let other = package.join("src/lib.rs:7");
        assert_eq!(
            seen(&other.to_string_lossy()).as_deref(),
            Some("src/lib.rs:7")
        );
        assert_eq!(seen("/elsewhere/lib.rs:7"), None);
    }

    #[test]
    fn the_text_of_std_is_understood() {
        // With another name in another folder this test counts as the user's code, so its frame is
        // found if the text has the expected form.
        let text = Backtrace::force_capture().to_string();
        let text = text
            .replace("dpor::", "user::")
            .replace("./src/", "./theirs/");
        // A release build has no debug information, and so no places.
        if !cfg!(debug_assertions) && !text.contains("places.rs:") {
            return;
        }
        let place = innermost(&text).expect("a frame");
        assert!(place.starts_with("theirs/rt/report/places.rs:"), "{place}");
    }
}
