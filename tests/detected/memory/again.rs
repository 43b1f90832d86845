//! Is a pointer found that is taken for another one, because its block has the address of a freed
//! block?

use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use dpor::sync::Arc;
use dpor::sync::atomic::{AtomicBool, AtomicPtr};
use dpor::{AssumptionKind, Builder, FailureKind, Report, Thorough, thread};

struct Node {
    value: u32,
    next: AtomicPtr<Node>,
}

fn node(value: u32) -> *mut Node {
    let next = AtomicPtr::new(null_mut());
    Box::into_raw(Box::new(Node { value, next }))
}

/// A stack, with a pointer that one thread protects from being freed.
struct Stack {
    top: AtomicPtr<Node>,
    hazard: AtomicPtr<Node>,
}

impl Stack {
    fn push(&self, node: *mut Node) {
        loop {
            let top = self.top.load(SeqCst);
            // SAFETY: the caller owns the node.
            unsafe { (*node).next.store(top, Relaxed) };
            if (self.top.compare_exchange(top, node, SeqCst, SeqCst)).is_ok() {
                return;
            }
        }
    }

    /// Pops a node. `protects` says how long its pointer is protected, if at all.
    fn pop(&self, protects: Option<Until>) -> *mut Node {
        loop {
            let top = self.top.load(SeqCst);
            if top.is_null() {
                return top;
            }
            if protects.is_some() {
                self.hazard.store(top, SeqCst);
                if self.top.load(SeqCst) != top {
                    continue;
                }
            }
            // SAFETY: the node is protected, or the caller is the only one that frees nodes.
            let next = unsafe { (*top).next.load(Relaxed) };
            if protects == Some(Until::Read) {
                self.hazard.store(null_mut(), SeqCst);
            }
            let popped = self.top.compare_exchange(top, next, SeqCst, SeqCst);
            if popped.is_ok() {
                return top;
            }
        }
    }
}

/// How long a popping thread protects a node: until it has read the node, or taken it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Read,
    Taken,
}

/// One thread pops a node. Main pops both nodes, frees the first one unless it is protected, and
/// pushes a third one.
fn stack(until: Until) {
    let (first, second) = (node(1), node(2));
    // SAFETY: no other thread has the node.
    unsafe { (*first).next.store(second, Relaxed) };
    let stack = Arc::new(Stack {
        top: AtomicPtr::new(first),
        hazard: AtomicPtr::new(null_mut()),
    });
    let theirs = stack.clone();
    let other = thread::spawn(move || {
        let popped = theirs.pop(Some(until));
        // SAFETY: this thread has popped the node.
        (!popped.is_null()).then(|| unsafe { Box::from_raw(popped) })
    });
    let mut values = Vec::new();
    let mut kept = Vec::new();
    for nth in 0..2 {
        let popped = stack.pop(None);
        if popped.is_null() {
            continue;
        }
        // SAFETY: main has popped the node, and the other thread only reads `next`.
        values.push(unsafe { (*popped).value });
        if nth == 0 && stack.hazard.load(SeqCst) != popped {
            // SAFETY: no thread has a pointer to the node, and reads it.
            drop(unsafe { Box::from_raw(popped) });
        } else {
            kept.push(popped);
        }
    }
    stack.push(node(3));
    let theirs = other.join().unwrap();
    values.extend(theirs.as_ref().map(|node| node.value));
    loop {
        let popped = stack.pop(None);
        if popped.is_null() {
            break;
        }
        // SAFETY: the node may have been popped before, and then it is kept.
        values.push(unsafe { (*popped).value });
        assert!(!kept.contains(&popped), "popped twice: {values:?}");
        kept.push(popped);
    }
    values.sort_unstable();
    assert_eq!(values, [1, 2, 3]);
    // SAFETY: each node was popped once.
    kept.into_iter()
        .for_each(|node| drop(unsafe { Box::from_raw(node) }));
}

fn unless(thorough: Thorough) -> Builder {
    let mut builder = Builder::new();
    builder.thorough = thorough;
    builder
}

/// The lines of code at the places of the assumption that blocks do not come again.
fn assumed(report: &Report) -> Vec<&'static str> {
    let [assumed] = &report.assumptions[..] else {
        panic!("{report}");
    };
    assert_eq!(assumed.kind, AssumptionKind::BlocksAgain);
    let code = |place: &String| {
        let line = place.split(':').nth(1).expect("a line");
        let line: usize = line.parse().expect("a number");
        let source = include_str!("again.rs").lines();
        source.map(str::trim).nth(line - 1).expect("a line")
    };
    assumed.places.iter().map(code).collect()
}

#[test]
fn a_stack_that_takes_a_new_node_for_a_freed_one_is_found_by_default() {
    let body = || stack(Until::Read);
    let report = unless(Thorough::Off).explore(body);
    let report = report.expect("no node comes again");
    assert!(report.complete);
    assert_eq!(
        assumed(&report),
        [
            "if (self.top.compare_exchange(top, node, SeqCst, SeqCst)).is_ok() {",
            "self.hazard.store(top, SeqCst);",
        ]
    );
    let failure = Builder::new()
        .explore(body)
        .expect_err("a node comes again");
    assert_eq!(failure.kind(), FailureKind::Panic, "{failure}");
    assert!(failure.schedule().starts_with("v2 again "), "{failure}");
    let text = failure.to_string();
    let why = format!(
        "thorough   {} executions have passed without blocks at the addresses of freed ones; \
         an allocator may give a thread the block that it has freed last",
        report.executions
    );
    assert!(text.contains(&why), "{text}");
    let mut builder = Builder::new();
    builder.replay = Some(failure.schedule().to_owned());
    let again = builder.explore(body).expect_err("the same failure");
    assert_eq!(again.schedule(), failure.schedule());
    assert_eq!(again.kind(), failure.kind());
}

#[test]
fn a_stack_that_protects_its_nodes_passes_though_blocks_come_again() {
    let report = Builder::new().check(|| stack(Until::Taken));
    assert!(report.complete && report.assumptions.is_empty(), "{report}");
    let kinds: Vec<_> = (report.further.iter())
        .map(|it| (it.kind, it.complete))
        .collect();
    assert_eq!(kinds, [(AssumptionKind::BlocksAgain, true)]);
}

/// A thread that replaces the value of a slot, and one that takes an equal pointer for an equal
/// value.
fn replaced(reuses_its_own: bool) {
    let boxed = |value: u64| Box::into_raw(Box::new(value));
    let slot = Arc::new(AtomicPtr::new(boxed(1)));
    let begins = Arc::new(AtomicBool::new(false));
    let ends = Arc::new(AtomicBool::new(false));
    let theirs = (slot.clone(), begins.clone(), ends.clone());
    let writer = thread::spawn(move || {
        let (slot, begins, ends) = theirs;
        begins.store(true, SeqCst);
        let old = slot.swap(null_mut(), SeqCst);
        // SAFETY: no other thread reads the value, nor frees it.
        let free = move |old: *mut u64| drop(unsafe { Box::from_raw(old) });
        if reuses_its_own {
            free(old);
            slot.store(boxed(2), SeqCst);
        } else {
            let old = old as usize;
            thread::spawn(move || free(old as *mut u64)).join().unwrap();
            slot.store(boxed(2), SeqCst);
        }
        ends.store(true, SeqCst);
    });
    let first = slot.load(SeqCst);
    if !begins.load(SeqCst) && ends.load(SeqCst) {
        assert_ne!(slot.load(SeqCst), first, "an equal pointer");
    }
    writer.join().unwrap();
    // SAFETY: the writer has put it there.
    drop(unsafe { Box::from_raw(slot.load(SeqCst)) });
}

#[test]
fn an_equal_pointer_is_no_equal_value() {
    let report = unless(Thorough::Off).check(|| replaced(true));
    assert_eq!(assumed(&report), ["slot.store(boxed(2), SeqCst);"]);
    let failure = Builder::new().explore(|| replaced(true));
    let failure = failure.expect_err("an equal pointer");
    assert!(
        failure.to_string().contains("an equal pointer"),
        "{failure}"
    );
    // A block that another thread has freed does not come again.
    let report = Builder::new().check(|| replaced(false));
    assert!(report.complete && report.further.is_empty(), "{report}");
}

/// A thread remembers the top of a stack and the node below it. Meanwhile the other one pops the
/// top, frees it and pushes a new node (arc-swap#210, heapless#153).
fn remembered() {
    let linked = |next: usize| {
        let made = node(0);
        // SAFETY: no other thread has the node.
        unsafe { (*made).next.store(next as *mut Node, Relaxed) };
        made as usize
    };
    let bottom = linked(0);
    let top = linked(bottom);
    let head = Arc::new(AtomicPtr::new(top as *mut Node));
    let theirs = head.clone();
    let other = thread::spawn(move || {
        let (top, bottom) = (top as *mut Node, bottom as *mut Node);
        if theirs
            .compare_exchange(top, bottom, SeqCst, SeqCst)
            .is_err()
        {
            return false;
        }
        // SAFETY: it was popped, and the other thread compares its address only.
        drop(unsafe { Box::from_raw(top) });
        theirs.store(linked(bottom as usize) as *mut Node, SeqCst);
        true
    });
    let (from, to) = (top as *mut Node, bottom as *mut Node);
    let popped = head.compare_exchange(from, to, SeqCst, SeqCst).is_ok();
    let pushed = other.join().unwrap();
    assert!(!(popped && pushed), "the new node is popped");
    if popped {
        // SAFETY: it was popped.
        drop(unsafe { Box::from_raw(from) });
    }
    let mut at = head.load(SeqCst);
    while !at.is_null() {
        // SAFETY: no other thread has the stack any more.
        at = unsafe { Box::from_raw(at) }.next.load(SeqCst);
    }
}

#[test]
fn a_node_that_is_remembered_by_its_address_is_found_by_default() {
    let failure = Builder::new().explore(remembered).expect_err("a new node");
    assert!(
        failure.to_string().contains("the new node is popped"),
        "{failure}"
    );
    assert!(unless(Thorough::Off).check(remembered).complete);
}

#[test]
fn a_block_whose_address_no_atomic_has_held_does_not_come_again() {
    let report = Builder::new().check(|| {
        let slot = AtomicPtr::new(null_mut());
        thread::scope(|s| {
            s.spawn(|| slot.store(Box::into_raw(Box::new(1_u64)), SeqCst));
            drop(Box::new(2_u64));
            slot.load(SeqCst);
        });
        // SAFETY: the thread has put it there.
        drop(unsafe { Box::from_raw(slot.load(SeqCst)) });
    });
    assert!(report.complete && report.further.is_empty(), "{report}");
}
