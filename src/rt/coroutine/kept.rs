//! What happens to the stacks of an exploration that has ended?
//!
//! The process keeps them for later explorations, on any OS thread: a new stack costs as much as a
//! small execution, and many tests have few executions. The number of kept stacks is limited to the
//! needs of small explorations. The first few stay with their OS thread as long as it lives,
//! because the stacks of the process have a lock, and an exploration takes that lock twice.

use std::mem::take;
use std::sync::{Mutex, PoisonError};

use crate::rt::coroutine::Coroutine;
use crate::rt::pooled::{Empty, Pooled, pooled};

/// The number of bytes of stacks that the process keeps at most.
const MOST: usize = 8 << 20;

/// The number of stacks that are taken at once, and that stay with their OS thread if they are not
/// large.
pub(super) const FEW: usize = 4;
const LARGE: usize = MOST / 8;

/// The idle stacks of an exploration, which the next one reuses.
pub(super) struct Spare {
    /// Stacks that all have one size.
    pub(super) stacks: Vec<Coroutine>,
    /// The stacks of threads that have requested more, which stay with no OS thread.
    pub(super) larger: Vec<Coroutine>,
    /// The destination of the stacks that do not stay with the OS thread.
    pub(super) kept: &'static Kept,
}

pooled!(Spare);

impl Default for Spare {
    fn default() -> Spare {
        Spare {
            stacks: Vec::new(),
            larger: Vec::new(),
            kept: &KEPT,
        }
    }
}

impl Spare {
    /// The stacks that the last exploration has left to an exploration with stacks of this size in
    /// bytes.
    #[inline]
    pub(super) fn of(bytes: usize) -> Pooled<Spare> {
        let mut spare = Pooled::<Spare>::default();
        if spare.stacks.last().is_some_and(|it| it.bytes() != bytes) {
            spare.leave(0);
        }
        spare
    }

    /// Leaves all but the first stacks to any OS thread.
    fn leave(&mut self, from: usize) {
        if self.stacks.len() > from {
            self.kept.keep(self.stacks.drain(from..));
        }
        if !self.larger.is_empty() {
            self.kept.keep(take(&mut self.larger));
        }
    }
}

impl Empty for Spare {
    #[inline]
    fn empty(&mut self) {
        let stays = |stack: &Coroutine| stack.bytes() <= LARGE;
        self.leave(if self.stacks.first().is_some_and(stays) {
            FEW
        } else {
            0
        });
    }
}

impl Drop for Spare {
    /// The OS thread ends.
    fn drop(&mut self) {
        self.leave(0);
    }
}

/// Idle stacks, the latest last.
pub(super) struct Kept(Mutex<Vec<Idle>>);

/// A stack without a body.
struct Idle(Coroutine);

// SAFETY: on an idle stack there are only the frames of `Control::serve` and below, suspended in a
// switch. They refer to the control block only. All owners of that block are in the coroutine and
// on the stack, and move with it. They keep nothing that belongs to an OS thread: `generator` looks
// up its list of running generators anew in each switch, an idle generator is not in it, and its
// own `Generator` is `Send`; the `LocalGenerator` used here differs only in that its closure may
// own values that are not `Send`, and the closure here owns none besides the block.
unsafe impl Send for Idle {}

/// The idle stacks of this process.
pub(super) static KEPT: Kept = Kept::new();

impl Kept {
    pub(super) const fn new() -> Kept {
        Kept(Mutex::new(Vec::new()))
    }

    /// Adds the latest stacks of this size in bytes, at most `most` of them, to `stacks`.
    pub(super) fn take(&self, bytes: usize, most: usize, stacks: &mut Vec<Coroutine>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..most {
            let Some(at) = kept.iter().rposition(|idle| idle.bytes() == bytes) else {
                return;
            };
            stacks.push(kept.remove(at).0);
        }
    }

    /// Keeps these idle stacks, and gives back the oldest ones beyond the limit.
    pub(super) fn keep(&self, stacks: impl IntoIterator<Item = Coroutine>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(stacks.into_iter().map(Idle));
        // Usually there is room for all.
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
        // To give a stack back, its loop runs to its end. That happens without the lock.
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
    use super::*;
    use crate::rt::coroutine::suspend;
    use crate::rt::coroutine::tests::finished;
    use crate::rt::exec::run::stacks;
    use crate::rt::thread_main::ThreadMain;
    use std::thread;

    const STACK: usize = 64 * 1024;

    fn stack(bytes: usize) -> Coroutine {
        Coroutine::new(bytes, &crate::rt::exec::thread_op::ENDS).expect("there is memory for it")
    }

    /// Runs this number of bodies at once in an exploration with stacks of this size, and returns
    /// the addresses of the stacks.
    fn at_once<const BODIES: usize>(kept: &'static Kept, bytes: usize) -> [(usize, usize); BODIES] {
        let mut pool = stacks(bytes);
        pool.idle.kept = kept;
        let mut all = [(); BODIES].map(|()| pool.start(ThreadMain::of(suspend)));
        for _ in 0..2 {
            for stack in &mut all {
                stack.resume();
            }
        }
        let mut at = all.each_ref().map(Coroutine::stack);
        all.into_iter().for_each(|stack| pool.recycle(stack));
        at.sort_unstable();
        at
    }

    fn all(kept: &Kept) -> Vec<usize> {
        kept.0.lock().unwrap().iter().map(Idle::bytes).collect()
    }

    #[test]
    fn a_few_stacks_stay_with_their_os_thread_as_long_as_it_lives() {
        static HERE: Kept = Kept::new();
        let ends = thread::spawn(|| {
            let first = at_once::<FEW>(&HERE, STACK);
            assert_eq!(first, at_once(&HERE, STACK));
            assert_eq!(all(&HERE), []);
            at_once::<{ FEW + 1 }>(&HERE, STACK);
            assert_eq!(all(&HERE), [STACK]);
            at_once::<1>(&HERE, 2 * STACK);
            assert_eq!(all(&HERE), [STACK; FEW + 1], "other sizes are others");
        });
        ends.join().unwrap();
        let last = [vec![STACK; FEW + 1], vec![2 * STACK]].concat();
        assert_eq!(all(&HERE), last);
        at_once::<1>(&HERE, 2 * LARGE);
        assert_eq!(all(&HERE), [last, vec![2 * LARGE]].concat());
    }

    #[test]
    fn an_exploration_on_another_os_thread_has_the_same_stacks() {
        static HERE: Kept = Kept::new();
        let two = |bytes| thread::spawn(move || at_once::<2>(&HERE, bytes)).join();
        let first = two(STACK).unwrap();
        assert_eq!(all(&HERE), [STACK; 2]);
        assert_eq!(first, two(STACK).unwrap());
        two(2 * STACK).unwrap();
        assert_eq!(all(&HERE).len(), 4, "other sizes are others");
        assert_eq!(first, two(STACK).unwrap());
    }

    #[test]
    fn a_body_that_comes_later_runs_on_a_stack_that_was_kept() {
        let kept = Kept::new();
        kept.keep([stack(STACK)]);
        let pool = |stack| {
            let mut pool = stacks(STACK);
            pool.idle.stacks.push(stack);
            pool
        };
        let told = thread::scope(|scope| {
            let ran = scope.spawn(|| {
                let (tell, told) = std::sync::mpsc::channel();
                let mut taken = Vec::new();
                kept.take(STACK, 1, &mut taken);
                let mut pool = pool(taken.remove(0));
                let mut stack = pool.start(ThreadMain::of(move || tell.send(7).unwrap()));
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
        let sizes = || all(&kept);
        kept.keep([stack(STACK), stack(MOST / 2)]);
        assert_eq!(sizes(), [STACK, MOST / 2]);
        kept.keep([stack(MOST / 2)]);
        assert_eq!(sizes(), [MOST / 2, MOST / 2]);
        kept.keep([stack(MOST + STACK)]);
        assert_eq!(
            sizes(),
            [MOST / 2, MOST / 2],
            "what is too large makes room for none"
        );
    }
}
