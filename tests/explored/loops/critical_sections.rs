//! When has a thread changed something under a lock, and when has it only looked?

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::Ordering::SeqCst;

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex, MutexGuard, RwLock, mpsc};
use dpor::{FailureKind, hint, thread};

use super::{Locked, count, fails};

/// Main puts something into this, and a thread takes it out as soon as it finds it there.
fn polled<T: Send + Sync + 'static>(
    empty: fn() -> T,
    put: fn(&T),
    take: fn(&T) -> Option<u32>,
) -> impl Fn() + Send + Sync + Clone {
    move || {
        let shared = Arc::new(empty());
        let theirs = shared.clone();
        let poller = thread::spawn(move || {
            loop {
                if let Some(found) = take(&theirs) {
                    return found;
                }
                hint::spin_loop();
            }
        });
        put(&shared);
        assert_eq!(poller.join().expect("no thread panics"), 7);
    }
}

#[test]
fn a_thread_that_finds_nothing_to_take_has_only_looked() {
    let queue = polled(
        || Mutex::new(VecDeque::new()),
        |queue| queue.lock().unwrap().push_back(7),
        |queue| queue.lock().unwrap().pop_front(),
    );
    let stack = polled(
        || Mutex::new(vec![]),
        |stack| stack.lock().unwrap().push(7),
        |stack| stack.lock().unwrap().pop(),
    );
    let slot = polled(
        || RwLock::new(None),
        |slot| *slot.write().unwrap() = Some(7),
        |slot| slot.write().unwrap().take(),
    );
    // It is put there before the first, second, third, fourth look, or while the thread waits. Before its first hint nobody
    // asks whether the data has changed that a thread has had for itself.
    assert_eq!((count(queue), count(stack), count(slot)), (5, 5, 5));
    let flag = polled(
        || Mutex::new(Cell::new(false)),
        |flag| flag.lock().unwrap().set(true),
        |flag| flag.lock().unwrap().get().then_some(7),
    );
    assert_eq!(count(flag), 4);
}

/// What main sees in three looks at what another thread changes five times under a lock, with a hint after each.
fn seen<T: Send + 'static>(
    zero: impl Fn() -> T + Send + Sync + 'static,
    add: fn(MutexGuard<'_, T>),
    get: fn(&T) -> u32,
) -> BTreeSet<[u32; 3]> {
    let seen = dpor::outcomes(move || {
        let shared = Arc::new(Mutex::new(zero()));
        let theirs = shared.clone();
        let adder = thread::spawn(move || {
            for _ in 0..5 {
                add(theirs.lock().unwrap());
                thread::yield_now();
            }
        });
        let seen = [(); 3].map(|()| get(&shared.lock().unwrap()));
        adder.join().expect("no thread panics");
        seen
    });
    seen.into_keys().collect()
}

#[test]
fn what_a_thread_changes_in_a_critical_section_is_a_change_wherever_it_is() {
    let all: BTreeSet<[u32; 3]> = (0..216u32)
        .map(|n| [n / 36, n / 6 % 6, n % 6])
        .filter(|seen| seen.is_sorted())
        .collect();
    assert_eq!(all.len(), 56);
    assert_eq!(seen(|| 0, |mut n| *n += 1, |n| *n), all);
    assert_eq!(
        seen(|| Cell::new(0), |n| n.set(n.get() + 1), Cell::get),
        all
    );
    assert_eq!(seen(|| vec![0], |mut n| n[0] += 1, |n| n[0]), all);
    let boxes = || Box::new((Box::new(0), "apart"));
    assert_eq!(seen(boxes, |mut n| *n.0 += 1, |n| *n.0), all);
    // More than is looked at.
    let large = || (vec![0; 100_000], 0);
    assert_eq!(seen(large, |mut n| n.0[9] += 1, |n| n.0[9]), all);
    let many = || (0..100).map(|_| Box::new(0)).collect::<Vec<_>>();
    assert_eq!(seen(many, |mut n| *n[99] += 1, |n| *n[99]), all);
}

#[test]
fn what_a_thread_changes_on_the_stack_of_another_one_is_a_change() {
    let seen = dpor::outcomes(|| {
        let mut count = 0;
        let lock = Mutex::new(&mut count);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..5 {
                    **lock.lock().unwrap() += 1;
                    thread::yield_now();
                }
            });
            **lock.lock().unwrap()
        })
    });
    assert_eq!(seen.into_keys().collect::<Vec<u32>>(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn who_changes_what_is_behind_a_lock_of_its_own_in_each_round_goes_on() {
    for rounds in [1, 9, 30] {
        let seen = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
        let noted = seen.clone();
        let counted = count(move || {
            let shared = Arc::new((Locked::new(), AtomicUsize::new(0)));
            let theirs = shared.clone();
            let counts = thread::spawn(move || {
                while theirs.0.with(|number| {
                    *number += 1;
                    *number < rounds
                }) {
                    thread::yield_now();
                }
                theirs.1.store(1, SeqCst);
            });
            noted.lock().unwrap().insert(shared.1.load(SeqCst));
            counts.join().unwrap();
        });
        assert_eq!(*seen.lock().unwrap(), BTreeSet::from([0, 1]), "{rounds}");
        assert_eq!(counted, 2, "{rounds}");
    }
}

/// A thread does this in each of so many rounds unless it sees that it need not, and fails if it has done all of them
/// before main has said anything. So it fails only if it does not wait before that.
fn does_all_rounds<T: Send + 'static>(
    rounds: usize,
    make: fn() -> T,
    round: fn(&T),
) -> impl Fn() + Send + Sync {
    move || {
        let shared: Arc<[AtomicUsize; 2]> = Arc::default();
        let theirs = shared.clone();
        let data = make();
        let other = thread::spawn(move || {
            for _ in 0..rounds {
                round(&data);
                if theirs[0].load(SeqCst) == 1 {
                    return;
                }
                thread::yield_now();
            }
            assert_eq!(theirs[1].load(SeqCst), 1);
        });
        shared[1].store(1, SeqCst);
        shared[0].store(1, SeqCst);
        other.join().expect("no thread panics");
    }
}

#[test]
fn who_takes_and_puts_back_and_sends_a_message_in_each_round_goes_on() {
    type Channel = (mpsc::Sender<()>, mpsc::Receiver<()>);
    let make = || -> (AtomicUsize, Channel) { (AtomicUsize::new(0), mpsc::channel()) };
    let round = |(taken, (sender, _)): &(AtomicUsize, Channel)| {
        taken.swap(1, SeqCst);
        taken.swap(0, SeqCst);
        sender.send(()).expect("the receiver is there");
    };
    fails(FailureKind::Panic, does_all_rounds(8, make, round));
}

#[test]
fn who_starts_a_thread_in_each_round_goes_on() {
    let round = |(): &()| thread::spawn(|| ()).join().expect("no thread panics");
    fails(FailureKind::Panic, does_all_rounds(6, || (), round));
}

#[test]
fn who_moves_a_pointer_on_within_its_block_in_each_round_goes_on() {
    struct At(Box<[u8; 64]>, Mutex<*const u8>);
    // SAFETY: nobody uses what the pointer points to.
    unsafe impl Send for At {}
    let make = || {
        let block = Box::new([0; 64]);
        let at = Mutex::new(block.as_ptr());
        At(block, at)
    };
    let round = |it: &At| {
        let mut at = it.1.lock().unwrap();
        *at = at.wrapping_add(1);
        assert_ne!(*at, it.0.as_ptr());
    };
    fails(FailureKind::Panic, does_all_rounds(8, make, round));
}
