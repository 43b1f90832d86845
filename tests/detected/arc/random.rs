//! Is every reference that is taken too late by a pointer found, and none that is in time?
//!
//! Threads of random programs take references by a pointer to what they may have a reference to or not, and give up their own. All
//! interleavings of a few numbers say whether something is done to a block that is freed; then an exploration has to fail,
//! and otherwise not. `DPOR_POINTERS` says how many programs there are to be, and `DPOR_POINTERS_FROM` the first one's seed.

use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Weak};
use dpor::{Builder, thread};

use crate::drawn::{Numbers, setting, smallest, without_one};

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Takes a reference by the pointer.
    Clone,
    /// Takes a weak one by the pointer.
    Downgrade,
    /// Gives up one of its own, if it has any.
    Drop,
    DropWeak,
    /// Takes a reference by a weak one of its own, if it has any.
    Upgrade,
    /// Sets a flag that all threads have.
    Set,
    /// Leaves out the next step if the flag is not set.
    IfSet,
}

#[derive(Clone, Debug)]
struct Program {
    threads: Vec<Vec<Step>>,
    /// How many references each thread has at the beginning.
    owned: Vec<usize>,
    /// Which kind of value is counted.
    value: usize,
}

fn draw(seed: u64) -> Program {
    let mut numbers = Numbers(seed);
    let threads = 2 + usize::from(numbers.below(3) == 0);
    let most = if threads == 2 { 4 } else { 2 };
    let step = |numbers: &mut Numbers| match numbers.below(12) {
        0..4 => Step::Clone,
        4 | 5 => Step::Drop,
        6 => Step::Downgrade,
        7 => Step::Upgrade,
        8 => Step::DropWeak,
        9 | 10 => Step::Set,
        _ => Step::IfSet,
    };
    let thread = |numbers: &mut Numbers| {
        let steps = 1 + numbers.below(most);
        (0..steps).map(|_| step(numbers)).collect()
    };
    let steps = (0..threads).map(|_| thread(&mut numbers)).collect();
    let mut owned: Vec<usize> = (0..threads).map(|_| numbers.below(2)).collect();
    if owned.iter().all(|&owned| owned == 0) {
        owned[0] = 1;
    }
    Program {
        threads: steps,
        owned,
        value: numbers.below(4),
    }
}

/// Where an interleaving is.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    next: Vec<usize>,
    owned: Vec<usize>,
    weak: Vec<usize>,
    is_set: bool,
}

impl State {
    fn strong(&self) -> usize {
        self.owned.iter().sum()
    }

    fn is_freed(&self) -> bool {
        self.strong() == 0 && self.weak.iter().all(|&weak| weak == 0)
    }
}

/// Whether an interleaving does something to a freed block; `None` if none does, but one takes a reference to what weak ones keep
/// and is gone. That is wrong as well, and says nothing of blocks.
fn goes_wrong(program: &Program) -> Option<bool> {
    let threads = program.threads.len();
    let mut to_do = vec![State {
        next: vec![0; threads],
        owned: program.owned.clone(),
        weak: vec![0; threads],
        is_set: false,
    }];
    let (mut seen, mut revives) = (HashSet::new(), false);
    while let Some(state) = to_do.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        for (me, steps) in program.threads.iter().enumerate() {
            let mut after = state.clone();
            let step = match steps.get(state.next[me]) {
                Some(&step) => {
                    after.next[me] += 1;
                    step
                }
                // At its end it gives up all that it has.
                None if state.weak[me] > 0 => Step::DropWeak,
                None if state.owned[me] > 0 => Step::Drop,
                None => continue,
            };
            match step {
                Step::Clone | Step::Downgrade if state.is_freed() => return Some(true),
                Step::Clone | Step::Downgrade if state.strong() == 0 => {
                    revives = true;
                    continue;
                }
                Step::Clone => after.owned[me] += 1,
                Step::Downgrade => after.weak[me] += 1,
                Step::Drop => after.owned[me] = state.owned[me].saturating_sub(1),
                Step::DropWeak => after.weak[me] = state.weak[me].saturating_sub(1),
                Step::Upgrade if state.weak[me] > 0 && state.strong() > 0 => after.owned[me] += 1,
                Step::Upgrade => {}
                Step::Set => after.is_set = true,
                Step::IfSet if state.is_set => {}
                Step::IfSet => after.next[me] = (after.next[me] + 1).min(steps.len()),
            }
            to_do.push(after);
        }
    }
    (!revives).then_some(false)
}

/// What is dropped in a step of its own.
struct Seen(AtomicUsize);

impl Drop for Seen {
    fn drop(&mut self) {
        self.0.store(1, SeqCst);
    }
}

/// What is dropped in no step.
struct Unseen;

impl Drop for Unseen {
    fn drop(&mut self) {}
}

/// A thread of a program, with the references that it has at the beginning.
fn thread<T>(steps: &[Step], mut owned: Vec<Arc<T>>, pointer: usize, flag: &AtomicUsize) {
    let mut weak: Vec<Weak<T>> = Vec::new();
    // SAFETY: whether there is a reference by now is what the test is about.
    let shared = || ManuallyDrop::new(unsafe { Arc::from_raw(pointer as *const T) });
    let mut steps = steps.iter();
    while let Some(step) = steps.next() {
        match step {
            Step::Clone => owned.push(Arc::clone(&shared())),
            Step::Downgrade => weak.push(Arc::downgrade(&shared())),
            Step::Drop => drop(owned.pop()),
            Step::DropWeak => drop(weak.pop()),
            Step::Upgrade => owned.extend(weak.last().and_then(Weak::upgrade)),
            Step::Set => flag.store(1, SeqCst),
            Step::IfSet if flag.load(SeqCst) == 1 => {}
            Step::IfSet => _ = steps.next(),
        }
    }
    while let Some(one) = weak.pop() {
        drop(one);
    }
    while let Some(one) = owned.pop() {
        drop(one);
    }
}

fn run<T: Send + Sync + 'static>(program: &Program, value: T) {
    let all: usize = program.owned.iter().sum();
    let first = Arc::new(value);
    let mut references: Vec<_> = (1..all).map(|_| first.clone()).collect();
    references.push(first);
    let pointer = Arc::as_ptr(&references[0]).addr();
    let flag = std::sync::Arc::new(AtomicUsize::new(0));
    let threads = program.threads.iter().zip(&program.owned);
    let threads: Vec<_> = threads
        .map(|(steps, &owned)| {
            let owned = references.split_off(references.len() - owned);
            let (steps, flag) = (steps.clone(), flag.clone());
            thread::spawn(move || thread(&steps, owned, pointer, &flag))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// What is wrong with the exploration of the program; `None` if nothing can be said of it.
fn verdict(program: &Program) -> Option<Result<bool, String>> {
    let goes_wrong = goes_wrong(program)?;
    let mut builder = Builder::new();
    builder.simplify = 0;
    let body = program.clone();
    let explored = builder.explore(move || match body.value {
        0 => run(&body, 1),
        1 => run(&body, Box::new(1)),
        2 => run(&body, Unseen),
        _ => run(&body, Seen(AtomicUsize::new(0))),
    });
    Some(match explored {
        Ok(_) if goes_wrong => Err("a use of a freed block is missed".to_owned()),
        Err(failure) if !goes_wrong => Err(failure.to_string()),
        _ => Ok(goes_wrong),
    })
}

#[test]
fn references_by_pointers_are_taken_in_time_if_no_interleaving_frees_the_block_before() {
    let (from, count) = (
        setting("DPOR_POINTERS_FROM", 0),
        setting("DPOR_POINTERS", 2_000),
    );
    let (mut right, mut wrong) = (0, 0);
    for seed in from..from + count {
        let program = draw(seed);
        match verdict(&program) {
            None => {}
            Some(Ok(false)) => right += 1,
            Some(Ok(true)) => wrong += 1,
            Some(Err(_)) => {
                let simpler = |program: &Program| {
                    let less = without_one(&program.threads);
                    let less = less.map(|threads| Program {
                        threads,
                        ..program.clone()
                    });
                    less.collect()
                };
                let program = smallest(program, simpler, |program| {
                    matches!(verdict(program), Some(Err(_)))
                });
                let why = verdict(&program).map(|it| it.expect_err("it is wrong"));
                panic!("seed {seed}: {}\n{program:#?}", why.unwrap_or_default());
            }
        }
    }
    eprintln!("{right} programs are right, {wrong} are wrong");
    assert!(right > count / 4 && wrong > count / 4, "{right}, {wrong}");
}
