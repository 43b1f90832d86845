//! Runs the programs of tasks on `interweave`.

use std::rc::Rc;

use interweave::{Atomic, Observer, Step, StepCx};

use crate::measure::{Measured, execution, measure, step};

crate::tasks::tasks!();

type World<'a> = interweave::World<'a>;

fn spawn<'a>(world: &mut World<'a>, task: impl Future<Output = ()> + 'a) {
    world.spawn("task", async move {
        task.await;
        Ok(())
    });
}

#[derive(Clone)]
struct Cells(Rc<[Atomic<usize>]>);

fn cells(world: &mut World<'_>, n: usize) -> Cells {
    Cells((0..n).map(|_| world.atomic("cell", 0)).collect())
}

impl Cells {
    async fn load(&self, i: usize) -> usize {
        self.0[i].load().await
    }

    async fn store(&self, i: usize, value: usize) {
        self.0[i].store(value).await;
    }

    async fn compare_exchange(&self, i: usize, current: usize, new: usize) -> Result<usize, usize> {
        self.0[i].compare_exchange(current, new).await
    }
}

/// Counts complete executions and their steps. Repeated parts of executions do not count.
struct Count;

impl Observer for Count {
    fn step(&mut self, at: Step<'_>, _: StepCx<'_, '_>) {
        if let Step::Maximal { trace, .. } = at {
            execution();
            step(trace.len());
        }
    }
}

/// Explores the program of this name to its end; there is no time limit.
pub(crate) fn explore(name: &'static str) -> Measured {
    measure(|| {
        let set_up = |world: &mut World<'_>| program(world, name);
        let found = interweave::explore(&set_up, &mut Count);
        assert!(found.is_ok(), "none of these programs fails");
        true
    })
}
