//! Which orderings do small algorithms need, and does the printed command replay each failure?
// The feature has other signatures, which `loom_signatures` tests.

use std::ptr;
use std::sync::Arc;

use dpor::cell::UnsafeCell;
use dpor::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use dpor::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, fence};
use dpor::{Builder, FailureKind, Memory, OrderingsReport, hint, thread};

use crate::children::process_of;

/// The table of a program: for each ordering the line of the source, the operation, the ordering as
/// written, the weakest one, and each weaker one with its failure. Each failure is replayed.
fn table(f: impl Fn() + Send + Sync + Copy + 'static) -> Vec<String> {
    let report = Builder::new()
        .orderings(f)
        .unwrap_or_else(|failure| panic!("{failure}"));
    println!("{report}\n");
    for fails in report.places.iter().flat_map(|place| &place.fails) {
        let mut builder = Builder::new();
        builder.weakened = Some(fails.weakened.clone());
        builder.replay = Some(fails.schedule.clone());
        let failure = builder.explore(f).expect_err("it fails again");
        assert_eq!(failure.kind(), fails.kind, "{failure}");
        let text = failure.to_string();
        let line = format!("\nweakened   {}: the source", fails.weakened);
        assert!(text.contains(&line), "{text}");
        assert!(!text.contains("as a test"), "{text}");
        // Each of them is shown without the other places that were weaker by then.
        assert!(!fails.weakened.contains(','), "{}", fails.weakened);
    }
    lines(&report)
}

fn lines(report: &OrderingsReport) -> Vec<String> {
    let source = std::fs::read_to_string(file!()).expect("the tests run in the package");
    let source: Vec<&str> = source.lines().collect();
    let rows = report.places.iter().map(|place| {
        assert_eq!(place.file, file!());
        let line = source[place.line as usize - 1].trim();
        let weakest = place
            .weakest
            .map_or("none".to_owned(), |it| format!("{it:?}"));
        let fails: Vec<String> = (place.fails.iter())
            .map(|it| match it.order {
                Some(order) => format!("{order:?}: {:?}", it.kind),
                None => format!("none: {:?}", it.kind),
            })
            .collect();
        let (operation, written) = (place.operation, place.written);
        let fails = fails.join(", ");
        format!("{line} | {operation} {written:?} -> {weakest} | {fails}")
    });
    rows.collect()
}

fn message_passing(store: Ordering, load: Ordering, data_orders: (Ordering, Ordering)) {
    let shared = Arc::new((AtomicUsize::new(0), AtomicBool::new(false)));
    let theirs = shared.clone();
    let writer = thread::spawn(move || {
        let (data, flag) = &*theirs;
        data.store(42, data_orders.0);
        flag.store(true, store);
    });
    let (data, flag) = &*shared;
    if flag.load(load) {
        assert_eq!(data.load(data_orders.1), 42);
    }
    writer.join().unwrap();
}

#[test]
fn message_passing_needs_a_release_and_an_acquire() {
    assert_eq!(
        table(|| message_passing(Release, Acquire, (Relaxed, Relaxed))),
        [
            "flag.store(true, store); | store Release -> Release | Relaxed: Panic",
            "if flag.load(load) { | load Acquire -> Acquire | Relaxed: Panic",
        ]
    );
}

#[test]
fn message_passing_needs_no_seq_cst() {
    assert_eq!(
        table(|| message_passing(SeqCst, SeqCst, (SeqCst, SeqCst))),
        [
            "data.store(42, data_orders.0); | store SeqCst -> Relaxed | ",
            "flag.store(true, store); | store SeqCst -> Release | Relaxed: Panic",
            "if flag.load(load) { | load SeqCst -> Acquire | Relaxed: Panic",
            "assert_eq!(data.load(data_orders.1), 42); | load SeqCst -> Relaxed | ",
        ]
    );
}

#[test]
fn store_buffering_needs_both_fences() {
    fn program() {
        let shared = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs[0].store(1, Relaxed);
            fence(SeqCst);
            theirs[1].load(Relaxed)
        });
        shared[1].store(1, Relaxed);
        fence(SeqCst); // main's
        let mine = shared[0].load(Relaxed);
        assert_ne!((mine, other.join().unwrap()), (0, 0));
    }
    assert_eq!(
        table(program),
        [
            "fence(SeqCst); | fence SeqCst -> SeqCst | AcqRel: Panic",
            "fence(SeqCst); // main's | fence SeqCst -> SeqCst | AcqRel: Panic",
        ]
    );
}

struct SpinLock {
    locked: AtomicBool,
    data: UnsafeCell<usize>,
}

// SAFETY: the lock gives access to one thread at a time, which the models check.
unsafe impl Sync for SpinLock {}

impl SpinLock {
    fn add_one(&self) {
        while self.locked.swap(true, AcqRel) {
            hint::spin_loop();
        }
        // SAFETY: the lock is held.
        self.data.with_mut(|data| unsafe { *data += 1 });
        self.locked.store(false, SeqCst);
    }
}

#[test]
fn a_spin_lock_needs_acquire_and_release() {
    fn program() {
        let lock = Arc::new(SpinLock {
            locked: AtomicBool::new(false),
            data: UnsafeCell::new(0),
        });
        let theirs = lock.clone();
        let other = thread::spawn(move || theirs.add_one());
        lock.add_one();
        other.join().unwrap();
    }
    assert_eq!(
        table(program),
        [
            "while self.locked.swap(true, AcqRel) { | rmw AcqRel -> Acquire | Relaxed: DataRace",
            "self.locked.store(false, SeqCst); | store SeqCst -> Release | Relaxed: DataRace",
        ]
    );
}

/// A count of references to data, each of which has its own thread.
struct Counted {
    count: AtomicUsize,
    data: UnsafeCell<usize>,
}

// SAFETY: the last reference alone writes to the data, which the models check.
unsafe impl Sync for Counted {}

impl Counted {
    fn read_and_drop(&self) {
        // SAFETY: this reference keeps the data alive.
        self.data.with(|data| assert_eq!(unsafe { *data }, 1));
        if self.count.fetch_sub(1, Release) == 1 {
            fence(Acquire);
            // SAFETY: it was the last reference.
            self.data.with_mut(|data| unsafe { *data = 0 });
        }
    }
}

#[test]
fn a_count_of_references_needs_release_and_an_acquire_fence() {
    fn program() {
        let counted = Arc::new(Counted {
            count: AtomicUsize::new(1),
            data: UnsafeCell::new(1),
        });
        counted.count.fetch_add(1, Relaxed);
        let theirs = counted.clone();
        let other = thread::spawn(move || theirs.read_and_drop());
        counted.read_and_drop();
        other.join().unwrap();
    }
    assert_eq!(
        table(program),
        [
            "if self.count.fetch_sub(1, Release) == 1 { | rmw Release -> Release | Relaxed: DataRace",
            "fence(Acquire); | fence Acquire -> Acquire | none: DataRace",
        ]
    );
}

struct Node {
    /// The value, and the node below this one.
    data: UnsafeCell<(usize, *const Node)>,
}

impl Node {
    fn new(value: usize) -> Node {
        Node {
            data: UnsafeCell::new((value, ptr::null())),
        }
    }
}

/// Treiber's stack, with nodes that live as long as the stack.
struct Stack {
    top: AtomicPtr<Node>,
    nodes: [Node; 2],
}

// SAFETY: nodes are written before they are published alone, which the models check.
unsafe impl Sync for Stack {}
// SAFETY: the pointers lead to the nodes of the stack.
unsafe impl Send for Stack {}

impl Stack {
    fn push(&self, node: &Node) {
        let mut top = self.top.load(SeqCst);
        loop {
            // SAFETY: no other thread knows the node.
            node.data.with_mut(|data| unsafe { (*data).1 = top });
            let node = ptr::from_ref(node).cast_mut();
            match self.top.compare_exchange(top, node, SeqCst, SeqCst) {
                Ok(_) => return,
                Err(found) => top = found,
            }
        }
    }

    fn pop(&self) -> Option<usize> {
        let mut top = self.top.load(SeqCst);
        while !top.is_null() {
            // SAFETY: nodes live as long as the stack.
            let (value, next) = unsafe { (*top).data.with(|data| *data) };
            let next = next.cast_mut();
            match self.top.compare_exchange(top, next, SeqCst, SeqCst) {
                Ok(_) => return Some(value),
                Err(found) => top = found,
            }
        }
        None
    }
}

#[test]
fn a_treiber_stack_publishes_its_nodes() {
    fn program() {
        let stack = Arc::new(Stack {
            top: AtomicPtr::default(),
            nodes: [Node::new(1), Node::new(2)],
        });
        let theirs = stack.clone();
        let other = thread::spawn(move || theirs.push(&theirs.nodes[0]));
        stack.push(&stack.nodes[1]);
        assert!(stack.pop().is_some());
        other.join().unwrap();
        assert!(stack.pop().is_some());
    }
    assert_eq!(
        table(program),
        [
            "let mut top = self.top.load(SeqCst); | load SeqCst -> Relaxed | ",
            "match self.top.compare_exchange(top, node, SeqCst, SeqCst) { | compare_exchange success SeqCst -> Release | Relaxed: DataRace",
            "match self.top.compare_exchange(top, node, SeqCst, SeqCst) { | compare_exchange failure SeqCst -> Relaxed | ",
            "let mut top = self.top.load(SeqCst); | load SeqCst -> Acquire | Relaxed: DataRace",
            "match self.top.compare_exchange(top, next, SeqCst, SeqCst) { | compare_exchange success SeqCst -> Relaxed | ",
            "match self.top.compare_exchange(top, next, SeqCst, SeqCst) { | compare_exchange failure SeqCst -> Acquire | Relaxed: DataRace",
        ]
    );
}

fn seqlock_write(all: &[AtomicUsize; 3]) {
    let [seq, a, b] = all;
    seq.store(1, Relaxed);
    fence(Release);
    a.store(1, Relaxed);
    b.store(1, Relaxed);
    seq.store(2, Release);
}

fn seqlock_read(all: &[AtomicUsize; 3]) {
    let [seq, a, b] = all;
    let before = seq.load(Acquire);
    let data = (a.load(Relaxed), b.load(Relaxed));
    fence(Acquire);
    if before == seq.load(Relaxed) && before % 2 == 0 {
        assert_eq!(data.0, data.1);
    }
}

#[test]
fn a_seqlock_needs_both_fences() {
    fn program() {
        let all = Arc::new([const { AtomicUsize::new(0) }; 3]);
        let theirs = all.clone();
        let writer = thread::spawn(move || seqlock_write(&theirs));
        seqlock_read(&all);
        writer.join().unwrap();
    }
    assert_eq!(
        table(program),
        [
            "fence(Release); | fence Release -> Release | none: Panic",
            "seq.store(2, Release); | store Release -> Release | Relaxed: Panic",
            "let before = seq.load(Acquire); | load Acquire -> Acquire | Relaxed: Panic",
            "fence(Acquire); | fence Acquire -> Acquire | none: Panic",
        ]
    );
}

struct Peterson {
    wants: [AtomicBool; 2],
    turn: AtomicUsize,
    data: UnsafeCell<usize>,
}

// SAFETY: one thread at a time is in the critical section, which the models check.
unsafe impl Sync for Peterson {}

impl Peterson {
    fn add_one(&self, me: usize) {
        self.wants[me].store(true, Release);
        fence(SeqCst); // before turn
        self.turn.store(1 - me, Release);
        fence(SeqCst); // behind turn
        while self.wants[1 - me].load(Acquire) && self.turn.load(Relaxed) == 1 - me {
            hint::spin_loop();
        }
        // SAFETY: this thread alone is in the critical section.
        self.data.with_mut(|data| unsafe { *data += 1 });
        self.wants[me].store(false, Release);
    }
}

#[test]
fn peterson_needs_both_fences() {
    fn program() {
        let shared = Arc::new(Peterson {
            wants: [AtomicBool::new(false), AtomicBool::new(false)],
            turn: AtomicUsize::new(0),
            data: UnsafeCell::new(0),
        });
        let theirs = shared.clone();
        let other = thread::spawn(move || theirs.add_one(1));
        shared.add_one(0);
        other.join().unwrap();
    }
    assert_eq!(
        table(program),
        [
            "self.wants[me].store(true, Release); | store Release -> Relaxed | ",
            "fence(SeqCst); // before turn | fence SeqCst -> SeqCst | AcqRel: DataRace",
            "self.turn.store(1 - me, Release); | store Release -> Relaxed | ",
            "fence(SeqCst); // behind turn | fence SeqCst -> SeqCst | AcqRel: DataRace",
            "while self.wants[1 - me].load(Acquire) && self.turn.load(Relaxed) == 1 - me { | load Acquire -> Acquire | Relaxed: DataRace",
            "self.wants[me].store(false, Release); | store Release -> Release | Relaxed: DataRace",
        ]
    );
}

/// Data of two threads; the second one to come reads both.
struct Meeting {
    came: AtomicUsize,
    data: [UnsafeCell<usize>; 2],
}

// SAFETY: the data is read once both threads have written it, which the models check.
unsafe impl Sync for Meeting {}

impl Meeting {
    fn come(&self, me: usize) {
        // SAFETY: each thread writes its own data.
        self.data[me].with_mut(|data| unsafe { *data = 1 });
        if self.came.fetch_add(1, AcqRel) == 1 {
            // SAFETY: the other thread has written its data.
            self.data[1 - me].with(|data| assert_eq!(unsafe { *data }, 1));
        }
    }
}

#[test]
fn both_weaker_orderings_of_acq_rel_are_tried() {
    fn program() {
        let meeting = Arc::new(Meeting {
            came: AtomicUsize::new(0),
            data: [UnsafeCell::new(0), UnsafeCell::new(0)],
        });
        let theirs = meeting.clone();
        let other = thread::spawn(move || theirs.come(1));
        meeting.come(0);
        other.join().unwrap();
    }
    let row = "if self.came.fetch_add(1, AcqRel) == 1 { | rmw AcqRel -> AcqRel | Acquire: DataRace, Release: DataRace";
    assert_eq!(table(program), [row]);
}

#[test]
fn the_loads_of_a_fetch_update_have_one_ordering() {
    fn program() {
        let count = Arc::new(AtomicUsize::new(0));
        let theirs = count.clone();
        let add = |count: &AtomicUsize| count.fetch_update(AcqRel, Acquire, |it| Some(it + 1));
        let other = thread::spawn(move || add(&theirs));
        let mine = add(&count);
        assert_ne!(mine, other.join().unwrap());
    }
    let line =
        "let add = |count: &AtomicUsize| count.fetch_update(AcqRel, Acquire, |it| Some(it + 1));";
    assert_eq!(
        table(program),
        [
            format!("{line} | fetch_update set AcqRel -> Relaxed | "),
            format!("{line} | fetch_update fetch Acquire -> Relaxed | "),
        ]
    );
}

#[test]
fn a_test_that_fails_as_it_is_has_no_table() {
    let failure = Builder::new()
        .orderings(|| message_passing(Relaxed, Acquire, (Relaxed, Relaxed)))
        .expect_err("it fails");
    assert_eq!(failure.kind(), FailureKind::Panic);
    assert!(failure.schedule().starts_with("v2 c11 "));
    assert!(!failure.to_string().contains("\nweakened "), "{failure}");
}

#[test]
fn orderings_that_the_settings_replace_stay_replaced() {
    let program = || message_passing(SeqCst, Acquire, (Relaxed, Relaxed));
    let report = Builder::new().orderings(program).expect("it passes");
    let place = &report.places[0];
    assert_eq!(place.written, SeqCst);
    let mut builder = Builder::new();
    let entry = format!("{}:{}=Release", place.file, place.line);
    builder.weakened = Some(entry.clone());
    let report = builder.orderings(program).expect("it passes");
    let [store, load] = &report.places[..] else {
        panic!("{report}")
    };
    assert_eq!((store.written, store.weakest), (Release, Some(Release)));
    assert!(load.fails[0].weakened.starts_with(&format!("{entry},")));
}

fn right() {
    message_passing(Release, Acquire, (Relaxed, Relaxed));
}

#[test]
fn the_printed_command_replays_the_failure() {
    if std::env::var("DPOR_REPLAY").is_ok() {
        // The child.
        dpor::orderings(right);
        return;
    }
    let report = dpor::orderings(right);
    let place = &report.places[0];
    assert_eq!((place.operation, place.is_needed()), ("store", true));
    let fails = &place.fails[0];
    assert!(report.to_string().contains(&fails.replay), "{report}");
    let of_name = |name: &str| {
        let begin = format!("{name}=\"");
        let (_, rest) = fails.replay.split_once(&begin).expect("it is there");
        rest.split_once('"').expect("it ends").0
    };
    let output = process_of("orderings::the_printed_command_replays_the_failure")
        .env("DPOR_WEAKEN", of_name("DPOR_WEAKEN"))
        .env("DPOR_REPLAY", of_name("DPOR_REPLAY"))
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    for expected in [
        "panic: main panicked",
        "  left: 0\n right: 42",
        &fails.replay,
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn the_variable_has_each_model_tell_its_orderings() {
    const NAME: &str = "orderings::the_variable_has_each_model_tell_its_orderings";
    if std::env::var("DPOR_ORDERINGS").is_ok() {
        // The child.
        dpor::model(right);
        return;
    }
    let output = process_of(NAME)
        .env("DPOR_ORDERINGS", "1")
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("\ndpor: weakest orderings of the model at tests/c11/orderings.rs:"),
        "{text}"
    );
    assert!(text.contains("needed (Relaxed fails: panic)"), "{text}");
    let (_, file) = text.split_once("\nkept in ").expect("it names the file");
    let file = file.lines().next().unwrap_or_default();
    let kept = std::fs::read_to_string(file).expect("the file is there");
    let line = kept
        .lines()
        .rfind(|line| line.contains(NAME))
        .expect("the model's line");
    let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let orderings = line["orderings"].as_array().expect("a list");
    let row = |of: &serde_json::Value| {
        let text = |key: &str| of[key].as_str().expect("text").to_owned();
        let fails = of["fails"][0]["ordering"]
            .as_str()
            .expect("text")
            .to_owned();
        [text("operation"), text("written"), text("weakest"), fails]
    };
    assert_eq!(
        orderings.iter().map(row).collect::<Vec<_>>(),
        [
            ["store", "Release", "Release", "Relaxed"],
            ["load", "Acquire", "Acquire", "Relaxed"]
        ]
    );
}

#[test]
fn a_setting_that_does_not_fit_c11_leaves_the_search_out() {
    let mut builder = Builder::new();
    builder.weakest_orderings = true;
    builder.algorithm = dpor::Algorithm::Source;
    builder.check(right);
}

#[test]
fn orderings_are_replaced_under_sequential_consistency_too() {
    fn program() {
        let lock = Arc::new(Meeting {
            came: AtomicUsize::new(0),
            data: [UnsafeCell::new(0), UnsafeCell::new(0)],
        });
        let theirs = lock.clone();
        let other = thread::spawn(move || {
            // From here on the object is known, and the fast path would do.
            theirs.came.store(0, Relaxed);
            // SAFETY: the flag is not set yet.
            theirs.data[0].with_mut(|data| unsafe { *data = 1 });
            theirs.came.store(1, Release);
        });
        if lock.came.load(Acquire) == 1 {
            // SAFETY: the flag is set.
            lock.data[0].with(|data| assert_eq!(unsafe { *data }, 1));
        }
        other.join().unwrap();
    }
    const STORE: u32 = line!() - 8;
    let mut builder = Builder::new();
    builder.memory = Memory::Sc;
    builder.check(program);
    builder.weakened = Some(format!("{}:{STORE}=Relaxed", file!()));
    let failure = builder.explore(program).expect_err("nothing is published");
    assert_eq!(failure.kind(), FailureKind::DataRace);
}

#[test]
#[should_panic(expected = "weakened (DPOR_WEAKEN): `src/a.rs:3=Strong`: expected a place")]
fn a_malformed_entry_is_named() {
    let mut builder = Builder::new();
    builder.weakened = Some("src/a.rs:3=Strong".to_owned());
    builder.check(|| {});
}
