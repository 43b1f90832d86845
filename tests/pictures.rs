//! Is a failure told to programs as fully as to people, and are its pictures of the same execution?

use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::task::{Poll, Waker};

use dpor::cell::UnsafeCell;
use dpor::future::{AtomicWaker, block_on};
use dpor::sync::atomic::{AtomicBool, AtomicUsize};
use dpor::sync::{Arc, Barrier, Condvar, Mutex, OnceLock, RwLock, mpsc};
use dpor::{Builder, Failure, thread};
use serde_json::Value;

mod support;

fn failure(f: impl Fn() + Send + Sync + 'static) -> Box<Failure> {
    Builder::new().explore(f).expect_err("the model fails")
}

fn parsed(failure: &Failure) -> Value {
    serde_json::from_str(&failure.json()).expect("it is JSON")
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field]
        .as_array()
        .unwrap_or_else(|| panic!("`{field}` is a list in {value}"))
}

/// The first event whose words contain `words`.
fn event<'a>(execution: &'a Value, words: &str) -> &'a Value {
    let mut events = list(execution, "events").iter();
    let found = events.find(|event| event["words"].as_str().is_some_and(|w| w.contains(words)));
    found.unwrap_or_else(|| panic!("no event `{words}` in {execution:#}"))
}

fn lost_update() {
    let x = Arc::new(AtomicUsize::new(0));
    let shared = x.clone();
    let other = thread::Builder::new()
        .name("writer".to_owned())
        .spawn(move || shared.store(shared.load(SeqCst) + 1, SeqCst))
        .expect("it spawns");
    x.store(x.load(SeqCst) + 1, SeqCst);
    other.join().unwrap();
    assert_eq!(x.load(SeqCst), 2, "an update was lost");
}

#[test]
fn the_json_of_a_failure_reads_back_with_every_field_that_is_promised() {
    let failure = failure(lost_update);
    let execution = parsed(&failure);
    let fields = |value: &Value| {
        let object = value.as_object().expect("an object");
        object.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        fields(&execution),
        [
            "again",
            "command",
            "dpor",
            "events",
            "execution",
            "format",
            "log",
            "objects",
            "outcome",
            "pair",
            "races",
            "schedule",
            "simplified",
            "test",
            "threads"
        ]
    );
    assert_eq!(execution["format"], 1);
    assert_eq!(execution["dpor"], env!("CARGO_PKG_VERSION"));
    assert_eq!(execution["schedule"], failure.schedule());
    assert_eq!(
        execution["test"],
        "the_json_of_a_failure_reads_back_with_every_field_that_is_promised"
    );
    assert!(execution["execution"].as_u64() > Some(0));

    let outcome = &execution["outcome"];
    assert_eq!(
        fields(outcome),
        [
            "block",
            "data_race",
            "divergence",
            "earlier_panics",
            "kind",
            "leaked",
            "leaked_blocks",
            "message",
            "misuse",
            "place",
            "sentence",
            "thread",
            "waiting"
        ]
    );
    assert_eq!(outcome["kind"], "panic");
    assert_eq!(outcome["thread"], 0);
    let message = outcome["message"].as_str().expect("text");
    assert!(message.contains("an update was lost"), "{message}");
    let text = outcome["place"]["text"].as_str();
    assert!(text.is_some_and(|text| text.starts_with("assert_eq!(x.load")));

    let threads = list(&execution, "threads");
    assert_eq!(threads.len(), 2);
    assert_eq!(threads[0]["path"], "main");
    assert_eq!(threads[0]["spawned_by"], Value::Null);
    assert_eq!(threads[1]["path"], "main.1");
    assert_eq!(threads[1]["name"], "writer");
    assert_eq!(
        threads[1]["spawned_by"],
        event(&execution, "spawn")["number"]
    );

    let mut objects = list(&execution, "objects").iter();
    let x = objects.position(|object| object["kind"] == "AtomicUsize");
    let x = x.expect("x is an object");
    let object = &list(&execution, "objects")[x];
    assert_eq!(
        fields(object),
        ["initial", "kind", "memory", "name", "owner", "place"]
    );
    assert_eq!(
        (&object["memory"], &object["owner"]),
        (&"heap".into(), &0.into())
    );
    assert_eq!(object["initial"], "0");

    let events = list(&execution, "events");
    assert_eq!(events.len(), failure.events().len());
    for (index, (event, told)) in events.iter().zip(failure.events()).enumerate() {
        assert_eq!(
            fields(event),
            [
                "after",
                "alternative",
                "alternatives",
                "clock",
                "enabled_by",
                "found",
                "holds",
                "nth",
                "number",
                "object",
                "operation",
                "ordering",
                "place",
                "reads_from",
                "succeeded",
                "thread",
                "words"
            ]
        );
        assert_eq!(event["number"], index + 1);
        assert_eq!(event["words"], told.what);
        // A thread's end is told where the thread was spawned.
        if event["operation"] != "end" {
            assert_eq!(event["place"]["line"], told.place.line());
            assert_eq!(event["place"]["column"], told.place.column());
        }
        // A thread's own component counts its events.
        let own = event["thread"].as_u64().expect("a number") as usize;
        assert_eq!(list(event, "clock").len(), threads.len());
        assert_eq!(event["clock"][own], event["nth"]);
    }
    let store = event(&execution, ":= 1");
    assert_eq!(store["operation"], "store");
    assert_eq!(store["ordering"], "SeqCst");
    assert_eq!(
        (&store["holds"], &store["object"]),
        (&"1".into(), &x.into())
    );
    let last = events.last().expect("events");
    assert_eq!(
        (&last["operation"], &last["found"]),
        (&"load".into(), &1.into())
    );
    // The last load reads from the later of the two stores, which was the one that lost the other.
    let stores = events.iter().filter(|event| event["operation"] == "store");
    let stores: Vec<&Value> = stores.map(|event| &event["number"]).collect();
    assert_eq!(stores.len(), 2);
    assert_eq!(&last["reads_from"], stores[1]);
    let races = list(&execution, "races");
    let race = serde_json::json!({ "first": stores[0], "second": stores[1] });
    assert!(races.contains(&race), "{races:?} has {race}");
}

#[test]
fn direct_predecessors_and_clocks_are_the_same_order() {
    for (_, bug, _) in support::bugs::BUGS {
        check_order(&parsed(&failure(bug)));
    }
}

fn check_order(execution: &Value) {
    let events = list(execution, "events");
    // What the direct predecessors reach, going backwards.
    let mut reached: Vec<Vec<usize>> = Vec::new();
    for event in events {
        let mut all: Vec<usize> = Vec::new();
        // What is later cannot be reached from what is earlier, so this order finds what is not direct.
        for before in list(event, "after").iter().rev() {
            let before = before.as_u64().expect("a number") as usize;
            assert!(!all.contains(&before), "{before} is not direct in {event}");
            all.extend(&reached[before - 1]);
            all.push(before);
        }
        all.sort_unstable();
        all.dedup();
        reached.push(all);
    }
    for (event, before) in events.iter().zip(&reached) {
        let happens_before = |other: &&Value| {
            let thread = other["thread"].as_u64().expect("a number") as usize;
            other["number"] != event["number"]
                && event["clock"][thread].as_u64() >= other["nth"].as_u64()
        };
        let clocks = events.iter().filter(happens_before);
        let clocks: Vec<usize> = clocks
            .map(|e| e["number"].as_u64().expect("one") as usize)
            .collect();
        assert_eq!(before, &clocks, "{event}");
    }
}

/// The last event of this operation was let happen by one of that operation.
fn linked(execution: &Value, of: &str, to: &str) {
    let events = list(execution, "events");
    let event = events.iter().rfind(|event| event["operation"] == of);
    let event = event.unwrap_or_else(|| panic!("there is a {of}"));
    let by = event["enabled_by"].as_u64();
    let by = by.unwrap_or_else(|| panic!("{event} is enabled by one"));
    assert_eq!(events[by as usize - 1]["operation"], to, "{event}");
}

#[test]
fn a_park_a_barrier_a_full_channel_and_a_lock_for_all_name_it_too() {
    let execution = parsed(&failure(|| {
        let shared = Arc::new((Barrier::new(2), RwLock::new(0)));
        let (send, receive) = mpsc::sync_channel(1);
        let main = thread::current();
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            main.unpark();
            theirs.0.wait();
            *theirs.1.write().unwrap() = 1;
            send.send(1).unwrap();
            send.send(2).unwrap();
        });
        thread::park();
        shared.0.wait();
        assert_eq!(receive.recv().unwrap() + receive.recv().unwrap(), 3);
        other.join().unwrap();
        panic!("{}", shared.1.read().unwrap());
    }));
    linked(&execution, "park", "unpark");
    linked(&execution, "barrier_leave", "barrier_arrive");
    linked(&execution, "read", "unlock_write");
    linked(&execution, "send", "recv");
    linked(&execution, "recv", "send");
}

#[test]
fn an_event_names_the_one_that_let_it_happen() {
    let execution = parsed(&failure(|| {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let (send, receive) = mpsc::channel();
        let shared = pair.clone();
        let other = thread::spawn(move || {
            receive.recv().unwrap();
            *shared.0.lock().unwrap() = true;
            shared.1.notify_one();
        });
        let mut ready = pair.0.lock().unwrap();
        send.send(()).unwrap();
        while !*ready {
            ready = pair.1.wait(ready).unwrap();
        }
        drop(ready);
        other.join().unwrap();
        panic!("seen");
    }));
    let link = |of: &str, to: &str| linked(&execution, of, to);
    link("recv", "send");
    link("lock", "unlock");
    link("awake", "notify_one");
    link("join", "end");
    let receive = event(&execution, "receive message 0");
    assert_eq!(receive["reads_from"], receive["enabled_by"]);
    // Nothing but its spawn lets the first event of a thread happen.
    let stores = parsed(&failure(lost_update));
    let events = list(&stores, "events");
    let first = events.iter().find(|e| e["thread"] == 1 && e["nth"] == 1);
    let spawn = first.expect("one")["enabled_by"]
        .as_u64()
        .expect("an event");
    assert_eq!(events[spawn as usize - 1]["operation"], "spawn");
    let notify = event(&execution, "notify_one");
    assert_eq!(notify["holds"], "notified: main");
}

struct Slot {
    data: UnsafeCell<u32>,
    ready: AtomicBool,
}

// SAFETY: the model finds that this is a lie: `ready` does not order the accesses to `data`.
unsafe impl Sync for Slot {}

#[test]
fn the_pair_that_the_failure_hangs_on_is_told() {
    let failure = failure(lost_update);
    let execution = parsed(&failure);
    let pair = &execution["pair"];
    let number = |field: &str| pair[field].as_u64().expect("an event") as usize;
    let (first, second) = (number("first"), number("second"));
    let events = list(&execution, "events");
    let (one, other) = (&events[first - 1], &events[second - 1]);
    assert_eq!(one["object"], other["object"]);
    assert_ne!(one["thread"], other["thread"]);
    assert_eq!(pair["words"], other["words"]);
    let arrow = format!("  e{first} -> e{second} [color=red, style=bold");
    assert!(failure.dot().contains(&arrow), "{}", failure.dot());
}

fn unordered_flag() {
    let slot = Arc::new(Slot {
        data: UnsafeCell::new(0),
        ready: AtomicBool::new(false),
    });
    let theirs = slot.clone();
    let other = thread::spawn(move || {
        // SAFETY: the model stops before an access that is not ordered with another one.
        theirs.data.with_mut(|data| unsafe { *data = 1 });
        theirs.ready.store(true, Relaxed);
    });
    if slot.ready.load(Relaxed) {
        // SAFETY: as above.
        slot.data.with(|data| unsafe { *data });
    }
    other.join().unwrap();
}

#[test]
fn a_data_race_has_both_accesses_and_the_events_that_were_too_weak() {
    let execution = parsed(&failure(unordered_flag));
    let outcome = &execution["outcome"];
    assert_eq!(outcome["kind"], "data_race");
    let race = &outcome["data_race"];
    assert_eq!(
        (&race["first"]["thread"], &race["first"]["effect"]),
        (&1.into(), &"write".into())
    );
    assert_eq!(
        (&race["second"]["thread"], &race["second"]["effect"]),
        (&0.into(), &"read".into())
    );
    let load = event(&execution, "ready = true");
    assert_eq!(race["second"]["after"], load["number"]);
    let weak = serde_json::json!({ "first": load["reads_from"], "second": load["number"] });
    assert_eq!(race["weak"], weak);
    assert_eq!(
        (&race["lasts_through"], &race["goes_on"]),
        (&().into(), &false.into())
    );
}

#[test]
fn an_access_that_lasts_says_through_which_event_or_that_it_goes_on() {
    let raced = |joins: bool| {
        let execution = parsed(&failure(move || {
            let slot = Arc::new(Slot {
                data: UnsafeCell::new(0),
                ready: AtomicBool::new(false),
            });
            let theirs = slot.clone();
            let mut other = Some(thread::spawn(move || {
                if theirs.ready.load(Relaxed) {
                    // SAFETY: the model stops before an access that is not ordered with another one.
                    theirs.data.with_mut(|data| unsafe { *data = 1 });
                }
            }));
            slot.data.with(|_| {
                slot.ready.store(true, Relaxed);
                if joins && let Some(other) = other.take() {
                    other.join().unwrap();
                }
            });
            if let Some(other) = other {
                other.join().unwrap();
            }
        }));
        let race = execution["outcome"]["data_race"].clone();
        (race, event(&execution, "ready := true")["number"].clone())
    };
    let (race, store) = raced(false);
    assert_eq!(
        (&race["lasts_through"], &race["goes_on"]),
        (&store, &false.into())
    );
    let (race, _) = raced(true);
    assert_eq!(
        (&race["lasts_through"], &race["goes_on"]),
        (&().into(), &true.into())
    );
}

/// An atomic behind a pointer that its owner has given back.
fn used_after_free() {
    let pointer = Box::into_raw(Box::new(AtomicUsize::new(7)));
    let address = pointer as usize;
    let other = thread::spawn(move || {
        // SAFETY: the model stops before an access to memory that has been freed.
        unsafe { &*(address as *const AtomicUsize) }.load(SeqCst)
    });
    // SAFETY: it comes from `Box::into_raw`; the model stops if another thread uses it afterwards.
    drop(unsafe { Box::from_raw(pointer) });
    other.join().unwrap();
}

#[test]
fn a_wrong_use_of_memory_has_the_block_and_who_freed_it() {
    let failure = failure(used_after_free);
    let execution = parsed(&failure);
    let outcome = &execution["outcome"];
    assert_eq!(
        (&outcome["kind"], &outcome["thread"]),
        (&"use_after_free".into(), &1.into())
    );
    let block = &outcome["block"];
    assert_eq!((&block["size"], &block["thread"]), (&8.into(), &0.into()));
    let place = block["allocated"]
        .as_str()
        .expect("tests have debug information");
    assert!(place.starts_with("tests/pictures.rs:"), "{place}");
    let misuse = &outcome["misuse"];
    assert_eq!(
        (&misuse["thread"], &misuse["freed_by"]),
        (&1.into(), &0.into())
    );
    let words = misuse["words"].as_str().expect("text");
    assert!(words.starts_with("load "), "{words}");
    assert!(
        failure.dot().contains("misuse [label="),
        "{}",
        failure.dot()
    );
}

#[test]
fn a_block_that_is_left_has_its_size_and_its_place() {
    let execution = parsed(&failure(|| {
        let left = Box::leak(Box::new(AtomicUsize::new(0)));
        left.store(1, SeqCst);
    }));
    let outcome = &execution["outcome"];
    assert_eq!(outcome["kind"], "leak");
    let blocks = list(outcome, "leaked_blocks");
    assert_eq!(blocks.len(), 1);
    assert_eq!(
        (&blocks[0]["size"], &blocks[0]["align"]),
        (&8.into(), &8.into())
    );
    assert_eq!(blocks[0], outcome["block"]);
}

fn held_for_ever() {
    let lock = Arc::new(Mutex::new(()));
    let kept = lock.lock().unwrap();
    let shared = lock.clone();
    let other = thread::spawn(move || drop(shared.lock()));
    other.join().unwrap();
    drop(kept);
}

#[test]
fn a_deadlock_has_the_threads_that_wait_and_who_holds_what() {
    let execution = parsed(&failure(held_for_ever));
    let waiting = list(&execution["outcome"], "waiting");
    assert_eq!(waiting.len(), 2);
    let main = waiting
        .iter()
        .find(|it| it["thread"] == 0)
        .expect("main waits");
    assert_eq!(
        (&main["operation"], &main["held_by"]),
        (&"join".into(), &Value::Null)
    );
    let child = waiting
        .iter()
        .find(|it| it["thread"] == 1)
        .expect("main.1 waits");
    assert_eq!(
        (&child["operation"], &child["held_by"]),
        (&"lock".into(), &0.into())
    );
    let object = child["object"].as_u64().expect("a lock") as usize;
    assert_eq!(list(&execution, "objects")[object]["kind"], "Mutex");
}

#[test]
fn no_place_of_the_crate_itself_is_given_as_the_tests_own() {
    dpor::thread_local! {
        static LOCAL: AtomicUsize = AtomicUsize::new(0);
    }
    struct Borrowed(*const AtomicUsize);
    // SAFETY: whether it may be used is what is to be found; the model keeps the memory.
    unsafe impl Send for Borrowed {}
    impl Borrowed {
        fn get(&self) -> &AtomicUsize {
            // SAFETY: as above.
            unsafe { &*self.0 }
        }
    }
    let mut builder = Builder::new();
    // Nothing is run again, so nobody looks at the stacks, which know more.
    builder.simplify = 0;
    let failure = builder.explore(|| {
        let owner = thread::spawn(|| {
            let (sender, receiver) = mpsc::channel::<()>();
            drop((sender, receiver));
            OnceLock::new().get_or_init(|| ());
            let borrowed = Borrowed(LOCAL.with(std::ptr::from_ref));
            thread::spawn(move || borrowed.get().store(1, Relaxed))
        });
        owner.join().unwrap().join().unwrap();
    });
    let failure = failure.expect_err("the variable has gone");
    let text = failure.to_string();
    assert!(
        !text.contains("gen_impl") && !text.contains("src/"),
        "{text}"
    );
    let execution: Value = serde_json::from_str(&failure.json()).expect("JSON");
    let mut in_drops = 0;
    let things = ["events", "objects"].map(|name| list(&execution, name));
    for thing in things.iter().copied().flatten() {
        let place = &thing["place"];
        let own = |file: &str| !file.starts_with("tests/pictures.rs");
        let file = place["file"].as_str().expect("a file");
        assert_eq!(own(file), !place["instead"].is_null(), "{thing}");
        if place["instead"] == "in a drop" {
            assert_eq!(place["text"], Value::Null, "{thing}");
            let operation = thing["operation"].as_str();
            in_drops += usize::from(operation.is_some_and(|it| it.ends_with("_drop")));
            assert_ne!(operation, Some("once_end"), "{thing}");
        }
    }
    assert_eq!(in_drops, 2, "{text}");
    assert!(failure.dot().contains("\\nin a drop"), "{}", failure.dot());
}

/// Wakes whoever waits, when it is dropped.
struct WakesAll(fn(&Condvar), Arc<Condvar>);

impl Drop for WakesAll {
    fn drop(&mut self) {
        self.0(&self.1);
    }
}

#[test]
fn operations_that_others_call_stand_where_the_program_has_them_called() {
    let failure = failure(|| {
        let (sender, receiver) = mpsc::channel();
        let waker = Arc::new(AtomicWaker::new());
        let notifies = WakesAll(Condvar::notify_all, Arc::new(Condvar::new()));
        let theirs = waker.clone();
        thread::spawn(move || {
            drop((notifies, sender.send(())));
            block_on(poll_fn(|context| {
                theirs.register_by_ref(context.waker());
                sender.send(()).expect("main receives");
                Poll::<()>::Pending
            }));
        });
        for _ in receiver.iter().take(2) {}
        waker.take_waker().iter().for_each(Waker::wake_by_ref);
        for () in receiver {}
    });
    let text = failure.to_string();
    // Only a build that knows its lines has something to look at.
    if !cfg!(debug_assertions) {
        return;
    }
    let execution: Value = serde_json::from_str(&failure.json()).expect("JSON");
    let stands = |place: &Value| {
        assert_eq!(place["file"], "tests/pictures.rs", "{text}");
        assert_eq!(place["instead"], Value::Null, "{text}");
        place["text"].as_str().expect("a line").to_owned()
    };
    for (words, line) in [
        ("notify_all", "self.0(&self.1);"),
        (
            "wake main.1's task",
            "waker.take_waker().iter().for_each(Waker::wake_by_ref);",
        ),
        ("receive message 0", "for _ in receiver.iter().take(2) {}"),
    ] {
        assert_eq!(stands(&event(&execution, words)["place"]), line, "{text}");
    }
    let waiting = list(&execution["outcome"], "waiting");
    let main = waiting.iter().find(|it| it["thread"] == 0);
    let place = &main.expect("main waits")["place"];
    assert_eq!(stands(place), "for () in receiver {}", "{text}");
    let here = format!("at tests/pictures.rs:{}\n", place["line"]);
    assert!(text.contains(&here), "{text}");
}

#[test]
fn a_schedule_that_is_malformed_has_an_outcome_and_no_events() {
    let mut builder = Builder::new();
    builder.replay = Some("v1 rain".to_owned());
    let failure = builder.explore(lost_update).expect_err("malformed");
    let execution = parsed(&failure);
    assert_eq!(execution["outcome"]["kind"], "schedule");
    let sentence = execution["outcome"]["sentence"].as_str().expect("text");
    assert!(sentence.contains("expected a thread"), "{sentence}");
    assert_eq!(list(&execution, "events").len(), 0);
}

#[test]
fn every_event_is_on_a_line_of_its_own() {
    let failure = failure(lost_update);
    let text = failure.json();
    let events = failure.events().len();
    let lines = text
        .lines()
        .filter(|line| line.starts_with("  {\"number\":"));
    assert_eq!(lines.count(), events, "{text}");
}

#[test]
fn the_format_is_described_field_by_field() {
    let described = include_str!("../docs/REPORTS.md");
    fn names(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    found.push(name.clone());
                    names(value, found);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| names(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for failing in [unordered_flag, used_after_free, held_for_ever] {
        names(&parsed(&failure(failing)), &mut found);
    }
    for name in found {
        assert!(
            described.contains(&format!("`{name}`")),
            "docs/REPORTS.md lacks `{name}`"
        );
    }
    let kinds = include_str!("../src/rt/report/execution/kinds.rs");
    for word in kinds.split('"').skip(1).step_by(2) {
        assert!(
            described.contains(&format!("`{word}`")),
            "docs/REPORTS.md lacks `{word}`"
        );
    }
}

/// `text` with the lines of places in this file as `_`: they change whenever the file does.
fn without_lines(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("pictures.rs:") {
        let (before, after) = rest.split_at(at + "pictures.rs:".len());
        out.push_str(before);
        out.push('_');
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out + rest
}

#[test]
fn the_graph_of_a_data_race_has_every_arrow_once_and_the_race_in_red() {
    let found = without_lines(&failure(unordered_flag).dot());
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reports/data_race.dot");
    if std::env::var_os("DPOR_BLESS").is_some() {
        std::fs::write(golden, &found).expect("it can be written");
    }
    let expected = std::fs::read_to_string(golden).expect("it is there");
    pretty_assertions::assert_eq!(found, expected, "DPOR_BLESS=1 writes {golden} anew");
}

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
    let name = "a_directory_gets_the_failure_in_three_forms_and_the_report_says_where";
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
    let stem = format!("tests_pictures.rs-{line}");
    let names = ["-2.dot", "-2.html", "-2.json", ".dot", ".html", ".json"];
    assert_eq!(folder.files(), names.map(|name| format!("{stem}{name}")));
}
