//! Shows: the ABA bug of a Treiber stack whose nodes are indices that are used again.
//! Prints: the report, then how many executions the version with a counter in the head has.

use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::Arc;
use dpor::sync::atomic::AtomicUsize;
use dpor::{Builder, thread};

/// A stack of the nodes 1 and 2; 0 is the end. The head is a node, plus 16 for every change if
/// `tagged`.
struct Stack {
    head: AtomicUsize,
    next: [AtomicUsize; 3],
    tagged: bool,
}

impl Stack {
    fn replace(&self, head: usize, node: usize) -> bool {
        let new = if self.tagged { (head & !15) + 16 } else { 0 } + node;
        self.head
            .compare_exchange(head, new, SeqCst, SeqCst)
            .is_ok()
    }

    fn pop(&self) -> Option<usize> {
        loop {
            let head = self.head.load(SeqCst);
            let node = head & 15;
            if node == 0 {
                return None;
            }
            let next = self.next[node].load(SeqCst);
            if self.replace(head, next) {
                return Some(node);
            }
        }
    }

    fn push(&self, node: usize) {
        loop {
            let head = self.head.load(SeqCst);
            self.next[node].store(head & 15, SeqCst);
            if self.replace(head, node) {
                return;
            }
        }
    }
}

fn pop_and_push_back(tagged: bool) {
    let next = [0, 2, 0].map(AtomicUsize::new);
    let head = AtomicUsize::new(1);
    let stack = Arc::new(Stack { head, next, tagged });
    let shared = stack.clone();
    let other = thread::spawn(move || {
        // Takes both nodes and gives the first one back.
        let taken = [shared.pop(), shared.pop()];
        if let [Some(first), Some(_)] = taken {
            shared.push(first);
        }
        taken
    });
    let mine = stack.pop();
    let [a, b] = other.join().unwrap();
    let kept = if b.is_some() { b } else { a };
    let left = stack.pop();
    let fine = left.is_none() || (left != mine && left != kept);
    assert!(fine, "node {left:?} is owned twice");
}

fn main() {
    let failure = Builder::new()
        .explore(|| pop_and_push_back(false))
        .expect_err("the bug is found");
    println!("{failure}\n");
    let fixed = Builder::new().explore(|| pop_and_push_back(true));
    let executions = fixed.expect("no bug is left").executions;
    println!("fixed: {executions} executions, all of them fine");
}
