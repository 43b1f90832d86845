//! Where in the source does a step operate on an atomic?
//!
//! A report names the operations by their places, and the same place counts as the same operation of the program. So each
//! step has a place of its own, as in a program that somebody has written.

use std::panic::Location;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use dpor::sync::atomic::{AtomicPtr, AtomicUsize};

use super::program::Op;

/// No thread has more steps.
pub const STEPS: usize = 16;

/// What is done at a place.
pub struct Here<T> {
    location: &'static Location<'static>,
    /// Does what the operation says, and gives what it has found, if it reads.
    pub number: fn(&AtomicUsize, Op) -> Option<usize>,
    /// Puts a pointer there or gets it, with this ordering.
    pub store: fn(&AtomicPtr<T>, *mut T, Ordering),
    pub load: fn(&AtomicPtr<T>, Ordering) -> *mut T,
    pub take: fn(&AtomicPtr<T>, Ordering) -> *mut T,
}

/// A place: of all operations in it the one where this is written.
macro_rules! at {
    () => {
        Here {
            location: Location::caller(),
            number: |it, op| match op {
                Op::Load(_, order) => Some(it.load(order)),
                Op::Store(_, value, order) => {
                    it.store(value, order);
                    None
                }
                Op::Add(_, order) => Some(it.fetch_add(1, order)),
                Op::Swap(_, value, order) => Some(it.swap(value, order)),
                Op::Exchange(_, [expected, new], [success, failure]) => {
                    let result = it.compare_exchange(expected, new, success, failure);
                    Some(result.unwrap_or_else(|found| found))
                }
                Op::Update(_, [set, fetch]) => {
                    let result = it.fetch_update(set, fetch, |value| Some(value + 1));
                    Some(result.expect("it always adds"))
                }
                op => unreachable!("{op:?} is performed elsewhere"),
            },
            store: |it, value, order| it.store(value, order),
            load: |it, order| it.load(order),
            take: |it, order| it.swap(null_mut(), order),
        }
    };
}

/// By thread and step.
// Each has a column of its own.
#[rustfmt::skip]
const fn all<T>() -> [[Here<T>; STEPS]; 4] {
    [
        [at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!()],
        [at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!()],
        [at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!()],
        [at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!(), at!()],
    ]
}

/// The place of this step of this thread.
pub fn of<T: 'static>(thread: usize, step: usize) -> &'static Here<T> {
    let all = const { &all::<T>() };
    &all[thread][step]
}

/// The thread and the step whose place has this line and column.
pub fn step_at(line: u64, column: u64) -> Option<(usize, usize)> {
    let mut all = (0..4).flat_map(|thread| (0..STEPS).map(move |step| (thread, step)));
    all.find(|&(thread, step)| {
        let location = of::<u8>(thread, step).location;
        (u64::from(location.line()), u64::from(location.column())) == (line, column)
    })
}
