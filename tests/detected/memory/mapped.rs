//! What if an atomic or a lock lies in memory that the test has mapped, which no allocator has handed out?

use std::ptr::without_provenance_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use dpor::sync::atomic::AtomicUsize;
use dpor::sync::{Arc, Mutex};
use dpor::{FailureKind, thread};

use super::{fails, passes};

/// A page, as of a ring that is mapped twice.
struct Mapping(*mut libc::c_void);

// SAFETY: what is in it may be used by several threads, and it is unmapped by one.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

#[derive(Default)]
struct InIt {
    counter: AtomicUsize,
    lock: Mutex<u32>,
}

impl Mapping {
    fn new() -> Mapping {
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED_NOREPLACE,
        );
        // What is at another address is another object, and other tests map memory, too.
        let at = without_provenance_mut(1 << 45);
        // SAFETY: a new mapping where there is none changes nothing that there is.
        let start = unsafe { libc::mmap(at, 4096, access, flags, -1, 0) };
        assert_eq!(start, at);
        // SAFETY: there is room for it.
        unsafe { start.cast::<InIt>().write(InIt::default()) };
        Mapping(start)
    }

    fn get(&self) -> &InIt {
        // SAFETY: it was written there, and is mapped as long as this lives.
        unsafe { &*self.0.cast() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nobody has a reference to it any more.
        unsafe {
            self.0.cast::<InIt>().drop_in_place();
            libc::munmap(self.0, 4096);
        }
    }
}

#[test]
fn what_is_unmapped_by_the_execution_is_not_written_to_behind_it() {
    let executions = passes(|| {
        let ours = Arc::new(Mapping::new());
        let theirs = ours.clone();
        let work = |at: &InIt| {
            at.counter.fetch_add(1, AcqRel);
            *at.lock.lock().unwrap() += 1;
        };
        let other = thread::spawn(move || work(theirs.get()));
        work(ours.get());
        other.join().unwrap();
        let counted = ours.get().counter.load(Acquire);
        assert_eq!((counted, *ours.get().lock.lock().unwrap()), (2, 2));
    });
    assert!(executions > 2, "{executions}");
}

#[test]
fn a_write_to_memory_that_is_only_to_be_read_is_a_failure() {
    static TABLE: [usize; 4] = [1, 2, 3, 4];
    let writes: [fn(&AtomicUsize); 3] = [
        |at| at.store(7, Release),
        |at| _ = at.fetch_add(1, AcqRel),
        |at| _ = at.compare_exchange(1, 5, AcqRel, Relaxed),
    ];
    for write in writes {
        fails(FailureKind::MemoryFault, move || {
            let other = thread::spawn(move || {
                // SAFETY: none, which is what is to be found: a wild pointer leads there.
                write(unsafe { &*(&raw const TABLE).cast() });
            });
            other.join().unwrap();
        });
    }
}
