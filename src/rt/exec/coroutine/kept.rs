//! What becomes of the stacks of an exploration that has ended?
//!
//! They are kept for later ones, on whatever OS threads those run: a new stack costs as much as a small
//! execution, and many tests have few executions. No more are kept than small explorations need.

use std::sync::{Mutex, PoisonError};

use super::Coroutine;

/// How many bytes of stacks are kept at most.
const MOST: usize = 8 << 20;

/// Idle stacks, the latest last.
pub(super) struct Kept(Mutex<Vec<Idle>>);

/// A stack without a body.
struct Idle(Coroutine);

// SAFETY: on an idle stack there are only the frames of `Control::serve` and below, suspended in a switch.
// What they refer to is the control block, all of whose owners are in the coroutine and on the stack, and
// move with it. They keep nothing that belongs to an OS thread: `generator` looks up its list of running
// generators anew in each switch, an idle one is not in it, and its own `Generator` is `Send`; the
// `LocalGenerator` that we use differs in nothing but that its closure may own what is not, which ours
// does not besides the block.
unsafe impl Send for Idle {}

/// Those of this process.
pub(super) static KEPT: Kept = Kept::new();

impl Kept {
    pub(super) const fn new() -> Kept {
        Kept(Mutex::new(Vec::new()))
    }

    /// Adds the latest stacks of this size in bytes, `most` of them at most, to these.
    pub(super) fn take(&self, bytes: usize, most: usize, stacks: &mut Vec<Coroutine>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..most {
            let Some(at) = kept.iter().rposition(|idle| idle.bytes() == bytes) else {
                return;
            };
            stacks.push(kept.remove(at).0);
        }
    }

    /// Keeps these idle stacks, and gives back the oldest ones for which there is no room.
    pub(super) fn keep(&self, stacks: &mut Vec<Coroutine>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(stacks.drain(..).map(Idle));
        // Mostly there is room for all.
        if kept.iter().map(Idle::bytes).sum::<usize>() <= MOST {
            return;
        }
        let mut room = MOST;
        let (mut fitting, mut others) = (Vec::new(), Vec::new());
        for idle in kept.drain(..).rev() {
            match room.checked_sub(idle.bytes()) {
                Some(left) => {
                    room = left;
                    fitting.push(idle);
                }
                None => others.push(idle),
            }
        }
        fitting.reverse();
        *kept = fitting;
        // To give one back is to run it to its end, which is done without the lock.
        drop(kept);
        drop(others);
    }
}

impl Idle {
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::finished;
    use super::super::{Pool, suspend};
    use super::*;
    use crate::rt::Body;
    use std::thread;

    const STACK: usize = 64 * 1024;

    /// Runs two bodies at once in an exploration with stacks of this size, and says where the stacks are.
    fn two(kept: &'static Kept, bytes: usize) -> [(usize, usize); 2] {
        let mut pool = Pool::new(bytes, Body::run);
        pool.kept = kept;
        let mut both = [pool.start(Body::of(suspend)), pool.start(Body::of(suspend))];
        for _ in 0..2 {
            for stack in &mut both {
                stack.resume();
            }
        }
        let mut at = both.each_ref().map(Coroutine::stack);
        both.into_iter().for_each(|stack| pool.recycle(stack));
        at.sort_unstable();
        at
    }

    #[test]
    fn an_exploration_on_another_os_thread_has_the_same_stacks() {
        static HERE: Kept = Kept::new();
        let first = two(&HERE, STACK);
        assert_eq!(HERE.0.lock().unwrap().len(), 2);
        let second = thread::spawn(|| two(&HERE, STACK)).join().unwrap();
        assert_eq!(first, second);
        two(&HERE, 2 * STACK);
        assert_eq!(HERE.0.lock().unwrap().len(), 4, "other sizes are others");
        assert_eq!(first, two(&HERE, STACK));
    }

    #[test]
    fn a_body_that_comes_later_runs_on_a_stack_that_was_kept() {
        let kept = Kept::new();
        kept.keep(&mut vec![Coroutine::new(STACK)]);
        let pool = |stack| {
            let mut pool = Pool::new(STACK, Body::run);
            pool.idle.push(stack);
            pool
        };
        let told = thread::scope(|scope| {
            let ran = scope.spawn(|| {
                let (tell, told) = std::sync::mpsc::channel();
                let mut taken = Vec::new();
                kept.take(STACK, 1, &mut taken);
                let mut pool = pool(taken.remove(0));
                let mut stack = pool.start(Body::of(move || tell.send(7).unwrap()));
                finished(stack.resume());
                told.recv().unwrap()
            });
            ran.join().unwrap()
        });
        assert_eq!(told, 7);
        assert!(kept.0.lock().unwrap().is_empty());
    }

    #[test]
    fn the_oldest_stacks_make_room_for_the_latest() {
        let kept = Kept::new();
        let sizes = || -> Vec<usize> { kept.0.lock().unwrap().iter().map(Idle::bytes).collect() };
        kept.keep(&mut vec![Coroutine::new(STACK), Coroutine::new(MOST / 2)]);
        assert_eq!(sizes(), [STACK, MOST / 2]);
        kept.keep(&mut vec![Coroutine::new(MOST / 2)]);
        assert_eq!(sizes(), [MOST / 2, MOST / 2]);
        kept.keep(&mut vec![Coroutine::new(MOST + STACK)]);
        assert_eq!(
            sizes(),
            [MOST / 2, MOST / 2],
            "what is too large makes room for none"
        );
    }
}
