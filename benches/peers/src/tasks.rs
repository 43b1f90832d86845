//! The programs of tasks that are measured.
//!
//! The checker `interweave`, also an optimal DPOR, runs only futures. So these programs are written
//! once as futures, as the body of a macro. The module around the macro defines a `World`, which
//! holds the tasks, and `Cells`, atomics by number. For the other checkers a task is a thread that
//! blocks on its future ([`threads`]). A step is an operation on a cell.

macro_rules! tasks {
    () => {
        fn readers(world: &mut World<'_>, n: usize) {
            let x = cells(world, 1);
            for i in 0..=n {
                let x = x.clone();
                spawn(world, async move {
                    match i {
                        0 => x.store(0, 1).await,
                        _ => _ = x.load(0).await,
                    }
                });
            }
        }

        fn lastzero(world: &mut World<'_>, n: usize) {
            let a = cells(world, n + 1);
            for i in 0..=n {
                let a = a.clone();
                spawn(world, async move {
                    match i {
                        0 => {
                            let mut at = n;
                            while a.load(at).await != 0 {
                                at -= 1;
                            }
                        }
                        i => {
                            let before = a.load(i - 1).await;
                            a.store(i, before + 1).await;
                        }
                    }
                });
            }
        }

        fn indexer(world: &mut World<'_>, threads: usize) {
            let table = cells(world, 128);
            for t in 0..threads {
                let table = table.clone();
                spawn(world, async move {
                    for m in 0..4 {
                        let w = (m + 1) * 11 + t;
                        let mut h = 7 * w % 128;
                        while table.compare_exchange(h, 0, w).await.is_err() {
                            h = (h + 1) % 128;
                        }
                    }
                });
            }
        }

        fn lost_update(world: &mut World<'_>, threads: usize) {
            let x = cells(world, 1);
            for _ in 0..threads {
                let x = x.clone();
                spawn(world, async move {
                    let before = x.load(0).await;
                    x.store(0, before + 1).await;
                });
            }
        }

        /// Runs the program of this name, which is in [`NAMES`](crate::tasks::NAMES).
        fn program(world: &mut World<'_>, name: &str) {
            match name {
                "readers(3), tasks" => readers(world, 3),
                "readers(13), tasks" => readers(world, 13),
                "lastzero(10), tasks" => lastzero(world, 10),
                "indexer(12), tasks" => indexer(world, 12),
                "lost_update(3), tasks" => lost_update(world, 3),
                other => panic!("there is no program called {other}"),
            }
        }
    };
}
pub(crate) use tasks;

pub(crate) const NAMES: [&str; 5] = [
    "readers(3), tasks",
    "readers(13), tasks",
    "lastzero(10), tasks",
    "indexer(12), tasks",
    "lost_update(3), tasks",
];

/// Tasks as threads of this crate.
macro_rules! threads {
    ($krate:ident) => {
        use std::marker::PhantomData;

        use $krate::sync::Arc;
        use $krate::sync::atomic::{AtomicUsize, Ordering::SeqCst};

        use crate::measure::step;

        crate::tasks::tasks!();

        #[derive(Default)]
        struct World<'a> {
            tasks: Vec<$krate::thread::JoinHandle<()>>,
            /// The main thread holds the cells, too, until the tasks have ended. Otherwise the task
            /// that drops them last would free them, and which task that is would add executions.
            cells: Vec<Cells>,
            as_if: PhantomData<&'a ()>,
        }

        /// Runs the program of this name.
        pub(super) fn run(name: &str) {
            let mut world = World::default();
            program(&mut world, name);
            for task in world.tasks {
                task.join().expect("no task panics");
            }
        }

        fn spawn(world: &mut World<'_>, task: impl Future<Output = ()> + Send + 'static) {
            let run = move || $krate::future::block_on(task);
            world.tasks.push($krate::thread::spawn(run));
        }

        #[derive(Clone)]
        struct Cells(Arc<Vec<AtomicUsize>>);

        fn cells(world: &mut World<'_>, n: usize) -> Cells {
            let cells = Cells(Arc::new((0..n).map(|_| AtomicUsize::new(0)).collect()));
            world.cells.push(cells.clone());
            cells
        }

        impl Cells {
            async fn load(&self, i: usize) -> usize {
                step(1);
                self.0[i].load(SeqCst)
            }

            async fn store(&self, i: usize, value: usize) {
                step(1);
                self.0[i].store(value, SeqCst);
            }

            async fn compare_exchange(
                &self,
                i: usize,
                current: usize,
                new: usize,
            ) -> Result<usize, usize> {
                step(1);
                self.0[i].compare_exchange(current, new, SeqCst, SeqCst)
            }
        }
    };
}
pub(crate) use threads;
