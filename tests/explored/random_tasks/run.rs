//! What does a program show of an execution?
//!
//! Each task logs what its steps gave it. What was seen is complete when the last task has let go of it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Waker};

use dpor::future::{JoinHandle, block_on, spawn};
use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex};

use super::program::{FLAGS, Program, Step, TASKS_MAX};

/// A log for each task, and whether it came to its end.
pub type Outcome = Vec<(Vec<usize>, bool)>;

/// Puts what was seen into `all` when the execution is over, whichever way.
struct Keep<F: FnMut(Outcome)> {
    seen: StdMutex<Outcome>,
    keep: StdMutex<F>,
}

impl<F: FnMut(Outcome)> Drop for Keep<F> {
    fn drop(&mut self) {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        (self.keep.lock().unwrap())(seen);
    }
}

/// Writes the log of a task.
type Log = StdArc<dyn Fn(usize, Option<usize>) + Send + Sync>;

/// What all tasks share.
struct World {
    program: Program,
    atomic: AtomicUsize,
    flags: [Mutex<(bool, Vec<Waker>)>; FLAGS],
    log: Log,
}

/// Runs the program once, inside a model, and gives `keep` what was seen.
pub fn run(program: &Program, keep: impl FnMut(Outcome) + Send + 'static) {
    let kept = Keep {
        seen: StdMutex::new(vec![Default::default(); program.0.len()]),
        keep: StdMutex::new(keep),
    };
    let log: Log = StdArc::new(move |task, seen| {
        let mut all = kept.seen.lock().unwrap();
        match seen {
            Some(seen) => all[task].0.push(seen),
            None => all[task].1 = true,
        }
    });
    let world = Arc::new(World {
        program: program.clone(),
        atomic: AtomicUsize::new(0),
        flags: Default::default(),
        log,
    });
    block_on(task(0, world));
}

/// The task of this number.
fn task(me: usize, world: Arc<World>) -> Pin<Box<dyn Future<Output = usize> + Send>> {
    Box::pin(async move {
        let mut handles = [const { None }; TASKS_MAX];
        for step in world.program.0[me].clone() {
            let seen = perform(&world, &mut handles, step).await;
            (world.log)(me, Some(seen));
        }
        (world.log)(me, None);
        50 + me
    })
}

async fn perform(
    world: &Arc<World>,
    handles: &mut [Option<JoinHandle<usize>>; TASKS_MAX],
    step: Step,
) -> usize {
    match step {
        Step::Add => world.atomic.fetch_add(1, SeqCst),
        Step::Spawn(child) => {
            handles[child] = Some(spawn(task(child, world.clone())));
            0
        }
        Step::Await(child) => match handles[child].take() {
            Some(handle) => handle.await,
            None => 999,
        },
        Step::Block(child) => match handles[child].take() {
            Some(handle) => block_on(handle),
            None => 999,
        },
        Step::Join(child) => match handles[child].take() {
            Some(handle) => handle.join().expect("it does not panic"),
            None => 999,
        },
        Step::IsFinished(child) => match &handles[child] {
            Some(handle) => handle.is_finished().into(),
            None => 999,
        },
        Step::Drop(child) => {
            handles[child] = None;
            0
        }
        Step::Set(flag) => {
            let waiting = {
                let mut flag = world.flags[flag].lock().unwrap();
                flag.0 = true;
                std::mem::take(&mut flag.1)
            };
            waiting.into_iter().for_each(Waker::wake);
            0
        }
        Step::WaitFor(flag) => {
            poll_fn(|context| look(world, flag, context)).await;
            0
        }
        Step::Either(child, flag) => {
            let done = poll_fn(|context| {
                if let Some(handle) = &mut handles[child]
                    && let Poll::Ready(output) = pin!(handle).poll(context)
                {
                    return Poll::Ready(Some(output));
                }
                look(world, flag, context).map(|()| None)
            })
            .await;
            if done.is_some() {
                handles[child] = None;
            }
            done.unwrap_or(0)
        }
        Step::Yield => {
            let mut is_second = false;
            poll_fn(|context| {
                if !is_second {
                    is_second = true;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(())
            })
            .await;
            0
        }
    }
}

/// Whether the flag is set; who finds that it is not is woken when it is.
fn look(world: &World, flag: usize, context: &mut Context<'_>) -> Poll<()> {
    let mut flag = world.flags[flag].lock().unwrap();
    if flag.0 {
        return Poll::Ready(());
    }
    flag.1.push(context.waker().clone());
    Poll::Pending
}
