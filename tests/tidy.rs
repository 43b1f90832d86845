//! Does the code have the structure that `docs/ARCHITECTURE.md` says it has?
//!
//! The test reads the `use` graph: which file imports from which other file, by the `use` declarations
//! and the paths that begin with `crate`, `super` or `self`. Code under `#[cfg(test)]` is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

/// The rooms, from the bottom to the top. An import points from a room to one in an earlier row.
/// The rooms of one row do not import from each other.
const LAYERS: &[&[&str]] = &[
    &["rt::rare"],
    &["rt::plural", "rt::pooled", "rt::thread_main"],
    &["rt::event"],
    &["rt::shim", "rt::relation", "rt::loops"],
    &["rt::object"],
    &["rt::race", "rt::memory"],
    &["rt::lifetime"],
    &["rt::engine"],
    &["rt::report"],
    &["rt::process"],
    &["rt::coroutine"],
    &["rt::heap"],
    &["rt::statics"],
    &["rt::exec"],
    &["rt"],
    &["config"],
    &["alloc", "hint", "time"],
    &["cell", "collections", "sync"],
    &["atomically", "thread"],
    &["future", "lazy_static"],
    &["verdict"],
    &["diagnose"],
    &["exploration"],
    &["engine", "orderings"],
    &["model"],
    &["bench", "fuzzing", "crate"],
];

/// Imports between rooms that point the wrong way. The list may only shrink.
const UPWARD: &[(&str, &str)] = &[
    ("diagnose", "exploration"),
    ("rt::lifetime", "rt::engine"),
    ("verdict", "diagnose"),
    ("verdict", "exploration"),
];

/// Cycles of files. The list may only shrink.
const CYCLES: &[&[&str]] = &[
    &["config", "config::environment"],
    &[
        "diagnose::minimize",
        "diagnose::orderings",
        "diagnose::reproduce",
        "verdict::failure",
    ],
    &["future", "future::task"],
    &[
        "rt::coroutine",
        "rt::coroutine::kept",
        "rt::coroutine::overflow",
    ],
    &[
        "rt::engine::driver",
        "rt::engine::driver::repeat",
        "rt::engine::driver::steps",
        "rt::lifetime::delayed_use",
    ],
    &[
        "rt::engine::strategies::bound",
        "rt::engine::strategies::bound::left_out",
        "rt::engine::strategies::bound::parked",
    ],
    &["rt::event", "rt::event::fence"],
    &["rt::exec::over", "rt::exec::process_exit"],
    &["rt::exec::run", "rt::exec::run::ending"],
    &[
        "rt::heap",
        "rt::heap::attached",
        "rt::heap::guarded",
        "rt::heap::watched",
    ],
    &["rt::loops::spin", "rt::loops::spin::round"],
    &["rt::memory", "rt::memory::graph"],
    &[
        "rt::memory::search",
        "rt::memory::search::ended",
        "rt::memory::search::needed",
        "rt::memory::search::plan",
    ],
    &[
        "rt::object::machine",
        "rt::object::machine::awaits",
        "rt::object::machine::execute",
        "rt::object::machine::learnt",
        "rt::object::machine::solo_run",
        "rt::object::machine::transition",
        "rt::object::machine::waits",
    ],
    &[
        "rt::report::execution",
        "rt::report::execution::misuse",
        "rt::report::execution::outcome",
        "rt::report::execution::told",
    ],
    &["rt::report::source", "rt::report::source::iterated"],
    &[
        "rt::report::words",
        "rt::report::words::receivers",
        "rt::report::words::timeouts",
    ],
    &["sync::arc", "sync::arc::clone", "sync::arc::weak"],
    &[
        "thread",
        "thread::handle",
        "thread::job",
        "thread::scoped",
        "thread::spawn",
    ],
];

/// A crate, and the only file that may name it.
const ONLY: &[(&str, &str)] = &[
    ("generator::", "src/rt/coroutine.rs"),
    ("scoped_tls::", "src/rt/exec/context.rs"),
    ("tracing::", "src/rt/exec/log.rs"),
    ("tracing_subscriber::", "src/rt/exec/log.rs"),
    ("indicatif::", "src/exploration/progress/bar.rs"),
    ("console::", "src/exploration/progress/bar.rs"),
    ("postcard::", "src/rt/engine/checkpoint/graphs.rs"),
    ("serde_json_core::", "src/rt/report/json.rs"),
];

/// Rooms that are pure: each is a function of its arguments.
const PURE: &[&str] = &[
    "src/rt/event",
    "src/rt/memory",
    "src/rt/relation",
    "src/rt/loops",
    "src/rt/object",
    "src/rt/race",
    "src/rt/lifetime",
    "src/rt/engine",
];

/// What a pure room does not name.
const IMPURE: &[&str] = &["std::env", "std::fs", "thread_local!", "std::thread"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a folder of the crate") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The folders with sources of the library, and of the commands beside it.
const SOURCES: &[&str] = &[
    "src",
    "tests",
    "benches",
    "examples",
    "crates/cargo-dpor/src",
    "crates/cargo-dpor/tests",
    "crates/dpor-fleet/src",
    "crates/dpor-fleet/tests",
];

/// The files under these folders, each as (path from the root of the crate, text).
fn texts(folders: &[&str]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for folder in folders {
        sources(&root().join(folder), &mut files);
    }
    files.sort();
    let text = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a readable file");
        let name = path.strip_prefix(root()).expect("inside").display();
        (name.to_string(), text)
    };
    files.into_iter().map(text).collect()
}

/// `src/rt/event/id.rs` is `["rt", "event", "id"]`.
fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_start_matches("src/").trim_end_matches(".rs");
    let mut names: Vec<String> = path.split('/').map(str::to_owned).collect();
    if matches!(names.last().map(String::as_str), Some("mod" | "lib")) {
        names.pop();
    }
    names
}

fn is_test(module: &[String]) -> bool {
    let names = ["tests", "testing", "obligations"];
    module.iter().any(|name| names.contains(&name.as_str()))
}

/// Collects the paths that one file names, as written.
#[derive(Default)]
struct Paths {
    /// Each with the inline modules that it stands in.
    found: Vec<(usize, Vec<String>)>,
    inline_modules: usize,
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    let is_test = |attribute: &syn::Attribute| match &attribute.meta {
        syn::Meta::List(list) => {
            let tokens = list.tokens.to_string();
            list.path.is_ident("cfg") && (tokens == "test" || tokens.starts_with("all (test ,"))
        }
        _ => false,
    };
    attributes.iter().any(is_test)
}

impl Paths {
    fn tree(&mut self, prefix: &mut Vec<String>, tree: &syn::UseTree) {
        let mut add = |last: Option<String>| {
            let path = prefix.iter().cloned().chain(last).collect();
            self.found.push((self.inline_modules, path));
        };
        match tree {
            syn::UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.tree(prefix, &path.tree);
                prefix.pop();
            }
            syn::UseTree::Name(name) if name.ident == "self" => add(None),
            syn::UseTree::Name(name) => add(Some(name.ident.to_string())),
            syn::UseTree::Rename(rename) if rename.ident == "self" => add(None),
            syn::UseTree::Rename(rename) => add(Some(rename.ident.to_string())),
            syn::UseTree::Glob(_) => add(None),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(prefix, tree);
                }
            }
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) && item.content.is_some() {
            self.inline_modules += 1;
            visit::visit_item_mod(self, item);
            self.inline_modules -= 1;
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.tree(&mut Vec::new(), &item.tree);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if names.len() > 1 && matches!(names[0].as_str(), "crate" | "super" | "self") {
            self.found.push((self.inline_modules, names));
        }
        visit::visit_path(self, path);
    }

    // The visibility `pub(in crate::rt)` imports nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

type Graph = BTreeMap<String, BTreeSet<String>>;

/// For each file, by its module path, the files that it imports from.
fn imports() -> Graph {
    let texts = texts(&["src"]);
    let modules: BTreeSet<String> = texts
        .iter()
        .map(|(file, _)| name(&module_of(file)))
        .collect();
    let mut graph = Graph::new();
    for (file, text) in &texts {
        let module = module_of(file);
        if is_test(&module) {
            continue;
        }
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut paths = Paths::default();
        paths.visit_file(&parsed);
        let found = paths.found.iter();
        let targets = found.filter_map(|(inline, path)| target(&modules, &module, *inline, path));
        let others = targets.filter(|other| *other != name(&module));
        graph.insert(name(&module), others.collect());
    }
    graph
}

/// The name of a module; that of the root is `crate`.
fn name(module: &[String]) -> String {
    match module {
        [] => "crate".to_owned(),
        _ => module.join("::"),
    }
}

/// The file that a path leads to, if it is one of this crate's that is no test.
fn target(
    modules: &BTreeSet<String>,
    module: &[String],
    inline: usize,
    path: &[String],
) -> Option<String> {
    let supers = path.iter().take_while(|name| *name == "super").count();
    let absolute: Vec<String> = match path.first()?.as_str() {
        "crate" => path[1..].to_vec(),
        "self" if inline > 0 => return None,
        "self" => module.iter().chain(&path[1..]).cloned().collect(),
        "super" => {
            let up = supers.saturating_sub(inline);
            let base = &module[..module.len().checked_sub(up)?];
            base.iter().chain(&path[supers..]).cloned().collect()
        }
        first => {
            let child = module.iter().cloned().chain([first.to_owned()]);
            if !modules.contains(&name(&child.collect::<Vec<_>>())) {
                return None;
            }
            module.iter().chain(path).cloned().collect()
        }
    };
    (0..=absolute.len())
        .rev()
        .map(|length| &absolute[..length])
        .find(|prefix| modules.contains(&name(prefix)))
        .filter(|prefix| !is_test(prefix))
        .map(name)
}

/// The room of a file: the longest name in [`LAYERS`] that its module path begins with.
fn room(file: &str) -> (usize, &'static str) {
    let rooms = LAYERS.iter().enumerate();
    let rooms = rooms.flat_map(|(layer, rooms)| rooms.iter().map(move |room| (layer, *room)));
    rooms
        .filter(|(_, room)| file == *room || file.starts_with(&format!("{room}::")))
        .max_by_key(|(_, room)| room.len())
        .unwrap_or_else(|| panic!("{file} is in no room of LAYERS"))
}

#[test]
fn imports_point_one_way() {
    let mut wrong = BTreeSet::new();
    for (file, others) in imports() {
        let (layer, here) = room(&file);
        for other in &others {
            let (below, there) = room(other);
            if here != there && below >= layer {
                wrong.insert((here, there));
            }
        }
    }
    let known: BTreeSet<(&str, &str)> = UPWARD.iter().copied().collect();
    let new: Vec<_> = wrong.difference(&known).collect();
    assert!(new.is_empty(), "imports that point upwards: {new:#?}");
    let gone: Vec<_> = known.difference(&wrong).collect();
    assert!(gone.is_empty(), "UPWARD may shrink by {gone:#?}");
}

/// The strongly connected components of more than one file. [Tarjan 1972]
fn cycles(graph: &Graph) -> Vec<Vec<&str>> {
    struct Walk<'a> {
        graph: &'a Graph,
        number: BTreeMap<&'a str, (usize, usize)>,
        stack: Vec<&'a str>,
        cycles: Vec<Vec<&'a str>>,
    }
    impl<'a> Walk<'a> {
        /// Returns the least number that can be reached from `file`.
        fn visit(&mut self, file: &'a str) -> usize {
            let number = self.number.len();
            self.number.insert(file, (number, number));
            self.stack.push(file);
            let mut least = number;
            for other in &self.graph[file] {
                let other = other.as_str();
                match self.number.get(other) {
                    None => least = least.min(self.visit(other)),
                    Some(&(number, _)) if self.stack.contains(&other) => least = least.min(number),
                    Some(_) => {}
                }
            }
            if least == number {
                let from = self
                    .stack
                    .iter()
                    .rposition(|&at| at == file)
                    .expect("on the stack");
                let mut cycle = self.stack.split_off(from);
                cycle.sort_unstable();
                if cycle.len() > 1 {
                    self.cycles.push(cycle);
                }
            }
            least
        }
    }
    let mut walk = Walk {
        graph,
        number: BTreeMap::new(),
        stack: Vec::new(),
        cycles: Vec::new(),
    };
    for file in graph.keys() {
        if !walk.number.contains_key(file.as_str()) {
            walk.visit(file);
        }
    }
    walk.cycles.sort_unstable();
    walk.cycles
}

#[test]
fn files_import_each_other_in_no_cycle() {
    let graph = imports();
    let found = cycles(&graph);
    let mut known: Vec<Vec<&str>> = CYCLES.iter().map(|cycle| cycle.to_vec()).collect();
    known.sort_unstable();
    assert_eq!(
        found, known,
        "CYCLES lists each cycle of files, and may only shrink"
    );
}

fn is_code(line: &str) -> bool {
    !line.trim_start().starts_with("//")
}

#[test]
fn pure_rooms_are_pure_and_a_foreign_crate_has_one_file() {
    let mut wrong = Vec::new();
    for (file, text) in texts(&["src"]) {
        if is_test(&module_of(&file)) {
            continue;
        }
        let pure = PURE.iter().any(|room| file.starts_with(room));
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
        for line in code.lines().filter(|line| is_code(line)) {
            let names = IMPURE.iter().filter(|name| pure && line.contains(**name));
            wrong.extend(names.map(|name| format!("{file}: {name}")));
            let only = ONLY
                .iter()
                .filter(|(name, only)| line.contains(name) && file != *only);
            wrong.extend(only.map(|(name, only)| format!("{file}: only {only} may name {name}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A test that is skipped in silence rots: `support/needs.rs` tells of it.
#[test]
fn no_test_is_skipped_in_silence() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    sources(&root.join("tests"), &mut files);
    let (ignored, printed) = (concat!("#[", "ignore"), concat!("println!(\"", "skip"));
    for file in files {
        let text = fs::read_to_string(&file).expect("a readable file");
        for skips in [ignored, printed] {
            assert!(!text.contains(skips), "{}: {skips}", file.display());
        }
    }
}

#[test]
fn every_file_begins_with_the_concept_that_it_holds() {
    for (file, text) in texts(&["src", "crates/cargo-dpor/src", "crates/dpor-fleet/src"]) {
        assert!(text.starts_with("//!"), "{file} does not begin with `//!`");
    }
}

/// The files that a document names in backticks; `{a,b}.rs` is two.
fn named_files(document: &str) -> Vec<String> {
    let quoted = document.split('`').skip(1).step_by(2);
    let words = quoted.filter_map(|quoted| quoted.split([' ', ':']).next());
    let rust = words.filter_map(|name| name.strip_suffix(".rs"));
    rust.filter(|name| !name.contains('<'))
        .flat_map(|name| match name.split_once('{') {
            None => vec![format!("{name}.rs")],
            Some((before, rest)) => {
                let names = rest.trim_end_matches('}').split(',');
                names.map(|name| format!("{before}{name}.rs")).collect()
            }
        })
        .collect()
}

#[test]
fn the_documents_name_files_that_there_are() {
    let files: Vec<String> = texts(&["src", "tests", "examples", "benches"])
        .into_iter()
        .map(|(file, _)| format!("/{file}"))
        .collect();
    for document in ["docs/ARCHITECTURE.md", "docs/ALGORITHMS.md"] {
        let text = fs::read_to_string(root().join(document)).expect("the document");
        let named = named_files(&text);
        assert!(named.len() > 20, "{document}: {named:?}");
        let exists = |name: &&String| files.iter().any(|file| file.ends_with(&format!("/{name}")));
        let missing: Vec<_> = named.iter().filter(|name| !exists(name)).collect();
        assert!(missing.is_empty(), "{document} names {missing:?}");
    }
}

/// Words that leave the subject of a sentence open.
const OPEN_WORDS: &[&str] = &["who", "whom", "whose", "whoever", "nobody", "somebody"];

/// Files with comments or sentences that have open words, and how many. The list may only shrink.
const OPEN_WORDS_LEFT: &[(&str, usize)] = &[
    ("docs/DEPENDENCY.md", 1),
    ("docs/REAL_BUGS.md", 7),
    ("docs/REPORTS.md", 1),
    ("docs/SURFACE.md", 1),
    ("examples/atomic_waker.rs", 2),
    ("examples/deadlock.rs", 1),
    ("examples/once_init.rs", 1),
    ("examples/renamed/src/lib.rs", 1),
    ("examples/renamed/tests/surface.rs", 3),
    ("examples/setup/src/lib.rs", 1),
    ("examples/setup/src/slot.rs", 3),
    ("examples/treiber_stack.rs", 1),
    ("src/rt/report/unnumbered.rs", 1),
    ("tests/detected/arc/destructors.rs", 1),
    ("tests/detected/arc/mod.rs", 1),
    ("tests/detected/arc/pointers.rs", 2),
    ("tests/detected/arc/sole_owner.rs", 1),
    ("tests/detected/arc/weak.rs", 1),
    ("tests/verdict/checkpoint/mod.rs", 1),
    ("tests/explored/counts.rs", 2),
    ("tests/detected/data_races/duration.rs", 2),
    ("tests/detected/data_races/handed_over.rs", 6),
    ("tests/detected/data_races/litmus.rs", 4),
    ("tests/detected/data_races/mod.rs", 1),
    ("tests/detected/data_races/publication.rs", 9),
    ("tests/detected/data_races/report.rs", 1),
    ("tests/surface/drop_in.rs", 1),
    ("tests/surface/drop_in/cells.rs", 2),
    ("tests/surface/drop_in/locks.rs", 1),
    ("tests/surface/drop_in/once.rs", 1),
    ("tests/surface/drop_in/threads.rs", 1),
    ("tests/surface/drop_in_atomic.rs", 1),
    ("tests/verdict/failures/causes.rs", 3),
    ("tests/verdict/failures/deadlocks.rs", 1),
    ("tests/verdict/failures/faults.rs", 3),
    ("tests/verdict/failures/leaks.rs", 1),
    ("tests/verdict/failures/livelocks.rs", 1),
    ("tests/verdict/failures/replay.rs", 1),
    ("tests/verdict/failures/simplify.rs", 1),
    ("tests/explored/futures.rs", 6),
    ("tests/in_a_destructor.rs", 1),
    ("tests/verdict/kills.rs", 1),
    ("tests/verdict/limits/hints.rs", 2),
    ("tests/verdict/limits/hotspots.rs", 1),
    ("tests/verdict/limits/patience.rs", 1),
    ("tests/verdict/limits/replay.rs", 5),
    ("tests/verdict/limits/settings.rs", 1),
    ("tests/verdict/limits/stopped.rs", 1),
    ("tests/surface/loom_signatures.rs", 5),
    ("tests/explored/loops/awaits.rs", 4),
    ("tests/explored/loops/critical_sections.rs", 2),
    ("tests/explored/loops/fairness.rs", 1),
    ("tests/explored/loops/giving_up.rs", 4),
    ("tests/explored/loops/hintless.rs", 3),
    ("tests/explored/loops/livelocks.rs", 4),
    ("tests/explored/loops/mod.rs", 1),
    ("tests/explored/loops/max_rounds.rs", 2),
    ("tests/explored/loops/polling.rs", 4),
    ("tests/explored/loops/waiting.rs", 1),
    ("tests/mappings.rs", 1),
    ("tests/detected/memory/counted.rs", 6),
    ("tests/detected/memory/given_away.rs", 2),
    ("tests/detected/memory/in_place.rs", 2),
    ("tests/detected/memory/leaks.rs", 11),
    ("tests/detected/memory/mod.rs", 1),
    ("tests/detected/memory/mapped.rs", 1),
    ("tests/detected/memory/passed_on.rs", 2),
    ("tests/detected/memory/raw_uses.rs", 17),
    ("tests/detected/memory/retired.rs", 3),
    ("tests/detected/memory/stacks.rs", 4),
    ("tests/detected/memory/unsync.rs", 5),
    ("tests/detected/memory/use_after_free.rs", 2),
    ("tests/explored/outcomes/barrier.rs", 3),
    ("tests/explored/outcomes/condvar.rs", 3),
    ("tests/explored/outcomes/mixed.rs", 1),
    ("tests/explored/outcomes/once.rs", 1),
    ("tests/explored/outcomes/rwlock.rs", 2),
    ("tests/explored/outcomes/said.rs", 1),
    ("tests/explored/outcomes/spurious.rs", 2),
    ("tests/detected/outsiders.rs", 2),
    ("tests/detected/owners.rs", 1),
    ("tests/reports/pictures/mod.rs", 1),
    ("tests/reports/pictures/places.rs", 2),
    ("tests/reports/progress.rs", 3),
    ("tests/explored/published.rs", 5),
    ("tests/explored/random_awaits.rs", 4),
    ("tests/explored/random_live/priced.rs", 2),
    ("tests/explored/random_live/program.rs", 9),
    ("tests/explored/random_live/run.rs", 5),
    ("tests/explored/random_live/searches.rs", 1),
    ("tests/explored/random_live/std_says.rs", 14),
    ("tests/explored/random_live/steps.rs", 2),
    ("tests/explored/random_live/world.rs", 1),
    ("tests/detected/random_races/draw.rs", 4),
    ("tests/detected/random_races/oracle.rs", 6),
    ("tests/detected/random_races/oracle/primitives.rs", 4),
    ("tests/detected/random_races/orderings.rs", 1),
    ("tests/detected/random_races/places.rs", 2),
    ("tests/detected/random_races/program.rs", 3),
    ("tests/detected/random_races/run.rs", 3),
    ("tests/explored/random_tasks/run.rs", 1),
    ("tests/explored/random_tasks/says.rs", 6),
    ("tests/real_bugs/futex_wait.rs", 2),
    ("tests/real_bugs/latch.rs", 1),
    ("tests/real_bugs/list_channel.rs", 2),
    ("tests/real_bugs/once_cell.rs", 1),
    ("tests/real_bugs/once_wait.rs", 1),
    ("tests/real_bugs/shared_notify.rs", 1),
    ("tests/real_bugs/spin_rwlock.rs", 1),
    ("tests/detected/reclamation.rs", 4),
    ("tests/refused.rs", 1),
    ("tests/reports/elements.rs", 4),
    ("tests/reports/failures.rs", 1),
    ("tests/reports/main.rs", 1),
    ("tests/reports/pointers.rs", 3),
    ("tests/reports/values.rs", 2),
    ("tests/reports/waits.rs", 1),
    ("tests/reports/shown.rs", 1),
    ("tests/support/needs.rs", 1),
    ("tests/support/portable.rs", 1),
    ("tests/surface/loom.rs", 1),
    ("tests/explored/threads/detached.rs", 2),
    ("tests/explored/threads/drops.rs", 2),
    ("tests/explored/threads/ends.rs", 2),
    ("tests/explored/threads/held.rs", 2),
    ("tests/explored/threads/put_back.rs", 2),
    ("tests/explored/threads/scopes.rs", 2),
    ("tests/explored/threads/statics.rs", 2),
    ("tests/verdict/unwinding/for_ever.rs", 3),
    ("tests/verdict/unwinding/last_words.rs", 2),
    ("tests/verdict/unwinding/mod.rs", 2),
];

/// Files with comment lines of more than 100 columns, and how many. The list may only shrink.
const LONG_COMMENTS_LEFT: &[(&str, usize)] = &[
    ("examples/atomic_waker.rs", 1),
    ("examples/lost_update.rs", 1),
    ("examples/mpsc_workers.rs", 1),
    ("examples/once_init.rs", 1),
    ("examples/renamed/src/lib.rs", 1),
    ("examples/rwlock_cache.rs", 1),
    ("examples/setup/src/lib.rs", 2),
    ("examples/setup/src/slot.rs", 2),
    ("src/config/mod.rs", 1),
    ("src/rt/heap/blocks.rs", 1),
    ("tests/detected/arc/pointers.rs", 1),
    ("tests/detected/arc/random.rs", 4),
    ("tests/detected/arc/weak.rs", 1),
    ("tests/explored/bounds.rs", 3),
    ("tests/reports/browser.rs", 2),
    ("tests/verdict/checkpoint/mod.rs", 1),
    ("tests/verdict/checkpoint/parts.rs", 3),
    ("tests/explored/counts.rs", 3),
    ("tests/detected/data_races/duration.rs", 1),
    ("tests/detected/data_races/handed_over.rs", 4),
    ("tests/detected/data_races/litmus.rs", 2),
    ("tests/detected/data_races/mod.rs", 1),
    ("tests/detected/data_races/orderings.rs", 1),
    ("tests/detected/data_races/publication.rs", 2),
    ("tests/detected/data_races/report.rs", 4),
    ("tests/surface/drop_in.rs", 2),
    ("tests/surface/drop_in/traits.rs", 1),
    ("tests/surface/drop_in_atomic.rs", 2),
    ("tests/verdict/failures/determinism.rs", 3),
    ("tests/verdict/failures/panics.rs", 1),
    ("tests/verdict/failures/replay.rs", 2),
    ("tests/verdict/failures/simplify.rs", 3),
    ("tests/explored/futures.rs", 4),
    ("tests/in_a_destructor.rs", 1),
    ("tests/verdict/kills.rs", 8),
    ("tests/verdict/limits/hints.rs", 3),
    ("tests/verdict/limits/mod.rs", 2),
    ("tests/verdict/limits/max_failures.rs", 4),
    ("tests/verdict/limits/patience.rs", 1),
    ("tests/verdict/limits/replay.rs", 3),
    ("tests/verdict/limits/stopped.rs", 1),
    ("tests/surface/loom_signatures.rs", 2),
    ("tests/explored/loops/awaits.rs", 7),
    ("tests/explored/loops/critical_sections.rs", 3),
    ("tests/explored/loops/fairness.rs", 2),
    ("tests/explored/loops/giving_up.rs", 9),
    ("tests/explored/loops/hintless.rs", 3),
    ("tests/explored/loops/livelocks.rs", 2),
    ("tests/explored/loops/mod.rs", 1),
    ("tests/explored/loops/max_rounds.rs", 2),
    ("tests/explored/loops/polling.rs", 3),
    ("tests/explored/loops/waiting.rs", 6),
    ("tests/mappings.rs", 5),
    ("tests/detected/memory/counted.rs", 7),
    ("tests/detected/memory/given_away.rs", 2),
    ("tests/detected/memory/in_place.rs", 2),
    ("tests/detected/memory/late.rs", 3),
    ("tests/detected/memory/leaks.rs", 3),
    ("tests/detected/memory/mod.rs", 1),
    ("tests/detected/memory/mapped.rs", 1),
    ("tests/detected/memory/passed_on.rs", 3),
    ("tests/detected/memory/raw_uses.rs", 6),
    ("tests/detected/memory/retired.rs", 2),
    ("tests/detected/memory/stacks.rs", 2),
    ("tests/detected/memory/unfreed.rs", 1),
    ("tests/detected/memory/unsync.rs", 1),
    ("tests/detected/memory/use_after_free.rs", 4),
    ("tests/explored/outcomes/condvar.rs", 3),
    ("tests/explored/outcomes/mixed.rs", 1),
    ("tests/explored/outcomes/said.rs", 1),
    ("tests/explored/outcomes/seen_as.rs", 2),
    ("tests/explored/outcomes/spurious.rs", 2),
    ("tests/detected/outsiders.rs", 2),
    ("tests/detected/owners.rs", 3),
    ("tests/reports/pictures/order.rs", 1),
    ("tests/reports/pictures/outcomes.rs", 1),
    ("tests/reports/progress.rs", 1),
    ("tests/explored/published.rs", 6),
    ("tests/explored/random_awaits.rs", 6),
    ("tests/explored/random_live.rs", 6),
    ("tests/explored/random_live/priced.rs", 5),
    ("tests/explored/random_live/program.rs", 7),
    ("tests/explored/random_live/run.rs", 4),
    ("tests/explored/random_live/searches.rs", 2),
    ("tests/explored/random_live/std_says.rs", 5),
    ("tests/explored/random_live/traces.rs", 3),
    ("tests/explored/random_live/world.rs", 1),
    ("tests/detected/random_races/draw.rs", 7),
    ("tests/detected/random_races/happens_before.rs", 6),
    ("tests/detected/random_races/mod.rs", 7),
    ("tests/detected/random_races/oracle.rs", 4),
    ("tests/detected/random_races/oracle/primitives.rs", 2),
    ("tests/detected/random_races/orderings.rs", 6),
    ("tests/detected/random_races/places.rs", 1),
    ("tests/detected/random_races/program.rs", 4),
    ("tests/detected/random_races/run.rs", 4),
    ("tests/explored/random_tasks/mod.rs", 3),
    ("tests/explored/random_tasks/program.rs", 1),
    ("tests/explored/random_tasks/run.rs", 1),
    ("tests/explored/random_tasks/says.rs", 1),
    ("tests/real_bugs/broadcast.rs", 1),
    ("tests/real_bugs/closed_twice.rs", 7),
    ("tests/real_bugs/freed_channel.rs", 6),
    ("tests/real_bugs/futex_wait.rs", 1),
    ("tests/real_bugs/latch.rs", 2),
    ("tests/real_bugs/lazy_cell.rs", 1),
    ("tests/real_bugs/list_channel.rs", 3),
    ("tests/real_bugs/main.rs", 3),
    ("tests/real_bugs/once_cell.rs", 7),
    ("tests/real_bugs/once_wait.rs", 3),
    ("tests/real_bugs/oneshot.rs", 1),
    ("tests/real_bugs/shared_notify.rs", 1),
    ("tests/real_bugs/shared_waker.rs", 7),
    ("tests/real_bugs/spin_rwlock.rs", 7),
    ("tests/real_bugs/strategies.rs", 1),
    ("tests/real_bugs/thread_ids.rs", 5),
    ("tests/detected/reclamation.rs", 5),
    ("tests/refused.rs", 3),
    ("tests/reports/elements.rs", 4),
    ("tests/reports/main.rs", 1),
    ("tests/reports/waits.rs", 1),
    ("tests/reports/shown.rs", 1),
    ("tests/support/children.rs", 1),
    ("tests/support/drawn.rs", 1),
    ("tests/support/needs.rs", 4),
    ("tests/support/portable.rs", 1),
    ("tests/explored/threads/ends.rs", 3),
    ("tests/explored/threads/older.rs", 1),
    ("tests/explored/threads/put_back.rs", 1),
    ("tests/explored/threads/scopes.rs", 1),
    ("tests/explored/threads/statics.rs", 1),
    ("tests/tidy.rs", 1),
    ("tests/verdict/unwinding/for_ever.rs", 1),
    ("tests/verdict/unwinding/last_words.rs", 6),
    ("tests/verdict/unwinding/mod.rs", 3),
];

/// The comment in a line of Rust, if there is one.
fn comment(line: &str) -> Option<&str> {
    // A `//` within a string is most often part of an address.
    let from = line
        .match_indices("//")
        .find(|(at, _)| !line[..*at].ends_with(':'))?
        .0;
    Some(&line[from..])
}

/// How many of the items that `find` counts in a file are more than `known` says.
fn compare(found: impl Iterator<Item = (String, usize)>, known: &[(&str, usize)], what: &str) {
    let found: BTreeMap<String, usize> = found.filter(|(_, count)| *count > 0).collect();
    let known: BTreeMap<String, usize> = known
        .iter()
        .map(|(file, count)| ((*file).to_owned(), *count))
        .collect();
    assert_eq!(
        found, known,
        "{what}: the list of what is left may only shrink"
    );
}

#[test]
fn comments_name_their_subjects() {
    let rust = texts(SOURCES).into_iter();
    let mut documents = Vec::new();
    for entry in fs::read_dir(root().join("docs")).expect("the documents") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&path).expect("a document");
            let name = path.strip_prefix(root()).expect("inside").display();
            documents.push((name.to_string(), text));
        }
    }
    for name in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        let text = fs::read_to_string(root().join(name)).expect("a document");
        documents.push((name.to_owned(), text));
    }
    let count = |text: &str| {
        let words = text.split(|c: char| !c.is_alphabetic());
        words
            .filter(|word| OPEN_WORDS.contains(&word.to_lowercase().as_str()))
            .count()
    };
    let rust = rust
        .filter(|(file, _)| file != "tests/tidy.rs")
        .map(|(file, text)| {
            let words = text.lines().filter_map(comment).map(count).sum();
            (file, words)
        });
    let documents = documents.into_iter().map(|(file, text)| {
        let words = count(&text);
        (file, words)
    });
    compare(rust.chain(documents), OPEN_WORDS_LEFT, "open words");
}

#[test]
fn comments_are_at_most_100_columns_wide() {
    let rust = texts(SOURCES).into_iter();
    let long = rust.map(|(file, text)| {
        let comments = text
            .lines()
            .filter(|line| line.trim_start().starts_with("//"));
        let long = comments.filter(|line| line.chars().count() > 100).count();
        (file, long)
    });
    compare(long, LONG_COMMENTS_LEFT, "wide comments");
}
