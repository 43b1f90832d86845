//! Which effects of an execution must no other execution see?
//!
//! The effects on memory that is older than the execution, such as statics: when the execution has
//! ended, this memory gets back its earlier contents. The same holds for the effects of destructors
//! while the execution is torn down, when their operations are no events any more.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::rt::shim::Memory;

use crate::rt::exec::context::{Inner, Runtime, drop_locals, with, with_any};
use crate::rt::process::watchdog::Phase;
use crate::rt::statics;
use crate::rt::statics::external_state::Older;

/// The most rounds in which a value that is put back may drop a value that uses memory that was put
/// back before.
const ROUNDS: usize = 100;

/// [`with`] for memory that has to be put back when the execution has ended. It also works while
/// the execution is torn down, because no other execution may see the effects of destructors that
/// run then.
#[cold]
#[inline(never)]
pub(super) fn with_older<R>(f: impl FnOnce(&Runtime, &mut Inner) -> R) -> Option<R> {
    let ends = |runtime: &Runtime| runtime.stopping.get() && !runtime.aside.get();
    if with_any(ends) != Some(true) {
        return with(|runtime| f(runtime, &mut runtime.inner.borrow_mut())).ok();
    }
    with_any(|runtime| {
        let recorded = runtime.heap.record(false);
        let result = f(runtime, &mut runtime.inner.borrow_mut());
        runtime.heap.record(recorded);
        result
    })
}

/// Keeps the bytes of a shim that is older than the execution.
///
/// # Panics
///
/// If the shim's data may own a resource: its bytes cannot simply be put back.
#[inline]
#[track_caller]
pub(crate) fn keep_pristine(object: usize, memory: Memory) {
    // Mostly an execution uses no memory that is older than itself.
    let all_is_new = |runtime: &Runtime| {
        let inner = runtime.inner.try_borrow();
        inner.is_ok_and(|inner| inner.table.older.addresses().len() == 0)
    };
    if with_any(all_is_new) != Some(true) {
        keep_older(object, memory);
    }
}

/// [`keep_pristine`] where there is memory that is older than the execution.
#[track_caller]
fn keep_older(object: usize, memory: Memory) {
    let refused = with_older(|runtime, inner| {
        if !inner.table.is_elsewhere(object) || inner.table.keeps(memory.start) {
            return false;
        }
        let owns = memory.drop.is_some() && !(memory.fresh && statics::are_constant(&memory));
        if !owns {
            inner.table.keep(memory);
        }
        // Destructors at the end of an execution are not reported.
        owns && !runtime.stopping.get()
    });
    assert!(
        refused != Some(true),
        "a lock that is older than the model holds data that owns something, so it cannot be put \
         back to its initial value after each execution; make it inside the closure, or make it a \
         `static` that is only used inside of models (in a lazy cell of std or of another crate it is \
         made at run time: `dpor::sync::LazyLock` and `OnceLock` begin anew in each execution)"
    );
}

/// Calls `undo` with `start` when the execution has ended, if `object` is older than it.
pub(crate) fn undo_at_end(object: usize, start: *mut u8, size: usize, undo: unsafe fn(*mut u8)) {
    // Where no model runs, no memory is put back.
    with_older(|_, inner| {
        if inner.table.is_elsewhere(object) {
            inner.table.undo_at_end(start, size, undo);
        }
    });
}

/// Puts back the earlier contents of memory that is older than the execution. The present contents
/// may be dropped.
#[inline(always)]
pub(super) fn put_back_statics(runtime: &Runtime) {
    let mut inner = runtime.inner.borrow_mut();
    if !inner.table.older.is_empty() {
        // Frees during the unwinding of the stacks have not been handled yet.
        let table = &mut inner.table;
        runtime
            .heap
            .drain_freed(|start, length| table.forget(start, length));
    }
    inner.table.forget_all();
    if !inner.table.older.is_empty() {
        let older = std::mem::take(&mut inner.table.older);
        drop(inner);
        put_back_older(runtime, older);
    }
}

/// [`put_back_statics`] where there is such memory.
#[inline(never)]
fn put_back_older(runtime: &Runtime, mut older: Older) {
    runtime.stopping.set(true);
    runtime.in_vain.set(0);
    runtime.pulse.go_into(Phase::PutsBack);
    runtime.heap.record(true);
    let mut panicked = None;
    // The rest is put back all the same.
    let mut caught = |payload| {
        panicked.get_or_insert(payload);
        true
    };
    for _ in 0..ROUNDS {
        loop {
            let in_progress = older.next_dropped();
            let next = AssertUnwindSafe(|| older.put_back_next());
            if !catch_unwind(next).unwrap_or_else(&mut caught) {
                break;
            }
            runtime.heap.drain_freed(|start, length| {
                older.forget(start..start + length);
            });
            // A destructor may have changed memory that is not put back yet, and that the execution
            // has changed, too.
            let met = &mut runtime.inner.borrow_mut().table.older;
            if !met.is_empty() {
                met.leave_to(&older, in_progress);
            }
        }
        // The destructors here use the thread-local variables of the thread that ran last.
        catch_unwind(drop_locals).unwrap_or_else(|payload| {
            caught(payload);
        });
        // The destructors may have used more memory, and dropping that may use more again.
        let more = &mut runtime.inner.borrow_mut().table.older;
        std::mem::swap(more, &mut older);
        if older.is_empty() {
            break;
        }
    }
    runtime.locals.borrow_mut().reset();
    runtime.heap.record(false);
    runtime.stopping.set(false);
    if let Some(payload) = panicked {
        resume_unwind(payload);
    }
}
