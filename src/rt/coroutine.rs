//! How is a stack suspended, resumed and ended?
//!
//! A [`Pool`] provides stacks, each as a [`Coroutine`]. [`Coroutine::put`] puts a closure, the
//! *body*, on the stack; [`Coroutine::resume`] runs the body until it calls [`suspend`], ends,
//! panics or overflows. [`Pool::recycle`] takes the stack back for the next body. This is the only
//! file that names the `generator` crate. These facts about the crate (0.8.11, and 0.8.12 except
//! where noted) determine the design:
//!
//! - A generator is made once per stack and never started anew. Its code is the loop in
//!   [`Control::serve`]: take a body, run it under `catch_unwind`, switch back. A new stack costs
//!   system calls and page faults, 6 µs to make and as much to give back in our measurements. The
//!   next body on an existing stack costs 25 ns from start to end, and a switch there and back 11
//!   ns. The loop also begins each body at the same depth, so a variable of the same code has the
//!   same distance from the top of the stack in each execution.
//! - A generator that is dropped while frames are alive on it unwinds them with the process-wide
//!   panic hook swapped out (not in 0.8.12), which disturbs tests that run in parallel. So a
//!   suspended stack is never dropped: it is resumed until its body has ended, or leaked. An idle
//!   stack has only the frames of the loop. The loop is told to return, and a generator that has
//!   returned is dropped without effect on the hook.
//! - The first generator of a process installs a panic hook and a signal handler. [`prepare`]
//!   chooses the moment.
//! - The first generator that an OS thread resumes allocates a block that stays. [`prepare_thread`]
//!   does that before anything is recorded.
//! - A generator that has "local data" reports neither a panic nor an overflow by unwinding out of
//!   `resume`. This file catches panics itself and detects an overflow in [`Control::state`]. So
//!   each generator is given local data (any pointer but null), and a switch needs no landing pad.
//!
//! [`overflow`] describes what happens if a stack is too small.

use std::any::Any;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::rc::Rc;
use std::sync::Once;
use std::thread;

use generator::{Gn, LocalGenerator, Scope};

#[cfg(unix)]
pub(crate) use crate::rt::coroutine::fault::Fault;
use crate::rt::coroutine::kept::{FEW, Spare};
pub(crate) use crate::rt::coroutine::overflow::is_overflow;
pub(crate) use crate::rt::coroutine::overflow::{
    ROOM, largest_stack, leave_room, leave_room_on_coroutine,
};
pub(crate) use crate::rt::coroutine::stretch::Stretch;
use crate::rt::pooled::Pooled;
use crate::rt::process::outside_use;
use crate::rt::rare::{Roomy, cold_path, mostly};
use crate::rt::thread_main::{ThreadMain, Work};

/// The payload of a panic.
pub(crate) type Payload = Box<dyn Any + Send>;

/// The result of a [`Coroutine::resume`].
#[derive(Debug)]
pub(crate) enum Resumed {
    /// The body called [`suspend`] and can be resumed.
    Suspended,
    /// The body has ended; `Err` if it panicked. The stack can be recycled.
    Finished(Result<(), Payload>),
    /// The body ran into the guard page below its stack, which is unusable now: see the module's
    /// documentation.
    Overflowed,
    /// The body has accessed memory that is not mapped, or not for this access. Its stack is
    /// unusable, too.
    Faulted(Fault),
    /// The body has aborted, in a mode in which an abort does not end the process. Its stack is
    /// unusable, too.
    #[cfg_attr(
        not(unix),
        expect(dead_code, reason = "nothing comes back from an abort there")
    )]
    Aborted,
}

/// The stacks of one exploration, all of one size except for those of threads that have requested
/// more. The idle ones at its end are [`kept`] for another exploration.
pub(crate) struct Pool {
    stack_bytes: usize,
    idle: Pooled<Spare>,
    /// See [`Pool::got_after`].
    got_after: u64,
    ends: &'static ThreadEnds,
    /// The number of executions that have begun on these stacks.
    pub(crate) executions: u64,
}

impl Pool {
    /// A pool without stacks. `stack_bytes`, the size of each, is rounded up to full pages; the
    /// guard page is added to that. [`prepare`] must have been called.
    pub(crate) fn new(stack_bytes: usize, ends: &'static ThreadEnds) -> Pool {
        let stack_bytes = stack_bytes.next_multiple_of(PAGE);
        let mut pool = Pool {
            stack_bytes,
            idle: Spare::of(stack_bytes),
            got_after: 0,
            ends,
            executions: 0,
        };
        pool.got();
        pool
    }

    /// Notes that the pool has received idle stacks.
    #[inline]
    fn got(&mut self) {
        // Up to now the stacks may have belonged to another exploration, and threads outside of the
        // model may have used them.
        self.got_after = outside_use::noted();
    }

    /// An idle stack, or a new one. `None` if the system has no memory for a new stack.
    #[inline]
    pub(crate) fn stack(&mut self) -> Option<Coroutine> {
        match self.idle.stacks.pop() {
            Some(idle) => Some(idle),
            None => self.another(self.stack_bytes),
        }
    }

    /// [`Pool::stack`] with at least this size.
    #[cold]
    pub(crate) fn stack_of(&mut self, bytes: usize) -> Option<Coroutine> {
        let bytes = self.bytes_for(bytes);
        if bytes == self.stack_bytes {
            return self.stack();
        }
        let larger = &mut self.idle.larger;
        match larger.iter().position(|idle| idle.bytes() == bytes) {
            Some(at) => Some(larger.swap_remove(at)),
            None => self.another(bytes),
        }
    }

    /// The size of the stack for a thread that needs this number of bytes. No stack is larger than
    /// [`largest_stack`].
    pub(crate) fn bytes_for(&self, bytes: usize) -> usize {
        let bytes = bytes.min(largest_stack()).next_multiple_of(PAGE);
        bytes.max(self.stack_bytes)
    }

    /// A stack that was not idle in this pool. If the process keeps more stacks, some more become
    /// idle here, because access to them takes a lock.
    #[cold]
    fn another(&mut self, bytes: usize) -> Option<Coroutine> {
        let few = if bytes == self.stack_bytes { FEW } else { 1 };
        let Spare { stacks, kept, .. } = &mut *self.idle;
        let before = stacks.len();
        kept.take(bytes, few, stacks);
        if stacks.len() == before {
            stacks.push(Coroutine::new(bytes, self.ends)?);
        }
        self.got();
        self.idle.stacks.pop()
    }

    /// The number of uses from outside before the pool received its newest stack.
    pub(crate) fn got_after(&self) -> u64 {
        self.got_after
    }

    /// A stack with this body on it.
    #[cfg(test)]
    pub(crate) fn start(&mut self, body: ThreadMain) -> Coroutine {
        let coroutine = self.stack().expect("there is memory for a stack");
        coroutine.put(body);
        coroutine
    }

    #[cfg(test)]
    /// The number of stacks of the usual size that have no body.
    pub(crate) fn idle(&self) -> usize {
        self.idle.stacks.len()
    }

    /// Keeps a stack for the next body. Its last body has returned.
    #[inline(always)]
    pub(crate) fn put_back(&mut self, idle: Coroutine) {
        if mostly!(idle.bytes() == self.stack_bytes) {
            self.idle.stacks.put(idle)
        } else {
            self.idle.larger.push(idle)
        }
    }

    /// Takes a stack back. A body that has not begun is dropped without being run. A stack that is
    /// suspended or has overflowed cannot be used again and is abandoned.
    #[inline(always)]
    pub(crate) fn recycle(&mut self, coroutine: Coroutine) {
        match coroutine.0.state.get() {
            State::Idle => self.put_back(coroutine),
            State::Ready => self.recycle_unbegun(coroutine),
            State::Running | State::Suspended => coroutine.abandon(),
        }
    }

    /// [`Pool::recycle`] for a body that has not begun.
    #[cold]
    fn recycle_unbegun(&mut self, coroutine: Coroutine) {
        coroutine.0.state.set(State::Idle);
        let not_begun = coroutine.0.body.take();
        self.put_back(coroutine);
        drop(not_begun);
    }
}

/// A body on a stack. Each start and each end of a thread moves it, so it is only a pointer.
///
/// Dropping a coroutine gives its memory back if no frame of a body is on the stack, and leaks it
/// otherwise: other code may have pointers to the stack, for example a list in a static, or an OS
/// thread of a scope of std's. Only its guard page is [opened](overflow::open_guard).
pub(crate) struct Coroutine(Rc<Control>);

impl Coroutine {
    /// A coroutine with a stack of this size. `None` if the system has no memory for the stack.
    fn new(stack_bytes: usize, ends: &'static ThreadEnds) -> Option<Coroutine> {
        let control = Rc::new(Control {
            state: Cell::new(State::Idle),
            body: Cell::new(None),
            instead: Cell::new(None),
            panic: Cell::new(None),
            fault: Cell::new(None),
            aborted: Cell::new(false),
            scope: Cell::new(ptr::null_mut()),
            generator: Cell::new(None),
            bytes: stack_bytes,
            bottom: Cell::new(0),
            top: Cell::new(0),
            roomy: Cell::default(),
            ends,
        });
        let served = Rc::clone(&control);
        // The size is counted in words. It is a multiple of the page size and thus even; an odd
        // number of words would make the crate write to every page of the stack.
        let words = stack_bytes / size_of::<usize>();
        let new = AssertUnwindSafe(|| {
            Gn::<()>::new_scoped_opt_local(words, move |mut scope: Scope<(), ()>| {
                served.scope.set((&raw mut scope).cast());
                served.serve();
            })
        });
        ASKS.set(true);
        let made = catch_unwind(new);
        ASKS.set(false);
        let generator = made.ok()?;
        // The generator keeps its registers in a record at the very top of the stack, less than
        // a page below it.
        let record = generator.into_raw();
        // SAFETY: the pointer comes from `into_raw` of a generator of this type and is used once.
        let mut generator = unsafe { LocalGenerator::<'static, (), ()>::from_raw(record) };
        generator.set_local_data(Rc::as_ptr(&control).cast_mut().cast());
        let (words, _) = generator.stack_usage();
        let top = (record.addr() + 1).next_multiple_of(PAGE);
        control.generator.set(Some(ManuallyDrop::new(generator)));
        let bottom = top - words * size_of::<usize>();
        control.bottom.set(bottom);
        control.top.set(top);
        control.roomy.set(Stretch::above((bottom, top), ROOM));
        Some(Coroutine(control))
    }

    /// Puts `body` on the stack, which has none. The body does not run yet.
    #[inline]
    pub(crate) fn put(&self, body: ThreadMain) {
        self.0.body.set(Some(body));
        self.0.state.set(State::Ready);
    }

    /// Runs the body until it suspends or ends. Must not be called again once the body has ended or
    /// overflowed; doing so panics.
    #[inline(always)]
    pub(crate) fn resume(&mut self) -> Resumed {
        self.run_on();
        self.came_back()
    }

    /// [`Coroutine::resume`] without its result, which [`Coroutine::came_back`] returns. A caller
    /// with work in between does not pay for composing the result and taking it apart again.
    #[inline(always)]
    pub(crate) fn run_on(&mut self) {
        let control = &*self.0;
        assert!(
            matches!(control.state.get(), State::Ready | State::Suspended),
            "dpor bug: resumed a coroutine that has nothing to run"
        );
        control.state.set(State::Running);
        // A body may itself run coroutines, so the outer coroutine becomes current again.
        let outer = CURRENT.replace(control);
        control.go_over();
        CURRENT.set(outer);
    }

    /// The reason why the body does not run any more.
    #[inline(always)]
    pub(crate) fn came_back(&mut self) -> Resumed {
        let control = &*self.0;
        match control.state.get() {
            State::Suspended => Resumed::Suspended,
            State::Idle => Resumed::Finished(match control.panic.take() {
                None => Ok(()),
                Some(payload) => Err(payload),
            }),
            // Only a signal handler leaves the stack in this state. Our handler sets the reason,
            // and the handler of an overflow does not.
            State::Running | State::Ready => match control.fault.take() {
                Some(fault) => Resumed::Faulted(fault),
                None if control.aborted.take() => Resumed::Aborted,
                None => Resumed::Overflowed,
            },
        }
    }

    /// The lowest address of the stack, and the address behind its highest byte. The latter is on
    /// a page boundary, and the first frame of each body is at the same distance from it.
    pub(crate) fn stack(&self) -> (usize, usize) {
        (self.0.bottom.get(), self.0.top.get())
    }

    /// The part of the stack that has [`ROOM`] below it.
    #[inline]
    pub(crate) fn roomy(&self) -> Stretch {
        self.0.roomy.get()
    }

    /// The requested size of the stack in bytes. The stack may be larger, where pages are large.
    #[inline]
    fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Abandons a suspended stack: its memory is leaked, and nothing on it is ever dropped.
    pub(crate) fn abandon(self) {
        // Dropping does the right thing in each state; the name is for the reader of the caller.
        drop(self);
    }
}

impl Drop for Coroutine {
    fn drop(&mut self) {
        match self.0.state.get() {
            State::Ready | State::Idle => {}
            State::Running | State::Suspended => return overflow::open_guard(self.0.bottom.get()),
        }
        // The loop returns when it finds no body. A body that has never begun is dropped last of
        // all, so that a panic of its destructor does not leave a stack half ended.
        let _not_begun = self.0.body.take();
        self.0.go_over();
        let Some(generator) = self.0.generator.take() else {
            return;
        };
        let (size, used) = generator.stack_usage();
        // `generator` panics if it drops a generator and the lowest words of the stack were written
        // to.
        if generator.is_done() && used < size {
            drop(ManuallyDrop::into_inner(generator));
        }
    }
}

/// Switches back to the caller of `resume` for the coroutine that runs here, on its stack; returns
/// when the coroutine is resumed again. Panics if no coroutine runs on this OS thread.
#[inline]
pub(crate) fn suspend() {
    let current = CURRENT.get();
    assert!(!current.is_null(), "dpor bug: nothing to suspend");
    // SAFETY: `resume` put the pointer there, borrows the coroutine that owns the control block,
    // and takes the pointer away before it returns; this code runs inside of that `resume`.
    let control = unsafe { &*current };
    control.switch_back(State::Suspended);
}

/// Makes this OS thread count one panic less: the panic of a stack that was abandoned in the middle
/// of its unwinding, which no code will ever catch.
///
/// An OS thread counts a panic up when it begins and down when it is caught. So this function
/// begins a panic on an OS thread that ends, on a stack that is suspended while it unwinds, and
/// catches the panic on this OS thread. Returns false if the system provides no OS thread or no
/// stack.
#[cold]
pub(crate) fn forget_panic() -> bool {
    /// No runtime is notified of the ends of these threads.
    static NO_ENDS: ThreadEnds = ThreadEnds {
        returns: || {},
        unwinds: || {},
    };
    /// A stack that only its owner has a pointer to.
    struct Alone(Coroutine);
    // SAFETY: all pointers to the control block move with it, and the other OS thread has ended
    // when this one continues.
    unsafe impl Send for Alone {}
    fn unwind() {
        struct Suspend;
        impl Drop for Suspend {
            fn drop(&mut self) {
                suspend();
            }
        }
        let _suspend = Suspend;
        resume_unwind(Box::new(()));
    }
    let begun = thread::Builder::new().spawn(|| {
        let mut alone = Alone(Coroutine::new(SMALL, &NO_ENDS)?);
        alone.0.0.instead.set(Some(unwind));
        // SAFETY: it is a constant.
        alone.0.put(unsafe { Work::body(&|| ()) });
        alone.0.resume();
        Some(alone)
    });
    let Ok(begun) = begun else {
        return false;
    };
    let Ok(begun) = begun.join() else {
        unreachable!("dpor bug: a panic could not be begun");
    };
    let Some(mut begun) = begun else {
        return false;
    };
    begun.0.resume();
    true
}

/// A size that suffices for a stack that only unwinds.
const SMALL: usize = 64 << 10;

/// Whether this OS thread is on the stack of a generator, of this crate or of another user.
#[cfg(unix)]
pub(crate) fn is_on_generator() -> bool {
    generator::is_generator()
}

/// Leaves the coroutine that runs on this OS thread for good, at its current point, in the handler
/// of this signal. Returns if there is none.
///
/// # Safety
///
/// Only in a handler on the alternative signal stack, or of a signal that code on this stack has
/// raised itself, and only where no code on the stack is in the middle of work that it has to
/// finish, because it never does.
#[cfg(unix)]
pub(crate) unsafe fn leave(signal: libc::c_int, fault: Option<Fault>) {
    let current = CURRENT.get();
    if current.is_null() {
        return;
    }
    // SAFETY: as in `suspend`.
    let control = unsafe { &*current };
    control.fault.set(fault);
    control.aborted.set(signal == libc::SIGABRT);
    // The system assumes that the handler runs until it returns, and blocks the signal.
    // SAFETY: all zeroes are a value of this type, and the pointers are to variables of it.
    unsafe {
        let mut signals = std::mem::MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const signals, ptr::null_mut());
    }
    control.switch_back(State::Running);
    // No code resumes a coroutine that has not suspended.
    std::process::abort();
}

/// Makes `generator` install its panic hook and its signal handler now, once per process. A panic
/// hook that is set afterwards comes before `generator`'s, which only suppresses the messages of
/// the panics that `generator` itself raises. `install` has to call its argument, and may install
/// handlers before and after the call.
pub(crate) fn prepare(install: fn(&dyn Fn())) {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        install(&|| {
            // The hook is set on a thread of its own, because a thread that is panicking cannot
            // change the panic hook, and a destructor may run a model.
            let installed = thread::spawn(|| {
                Gn::<()>::new_scoped_local(|_: Scope<(), ()>| ()).resume();
            });
            installed
                .join()
                .expect("dpor bug: a generator without code failed");
        });
    });
}

/// Makes `generator` allocate now the block that it needs once for each OS thread. This block is
/// not the program's: an allocation in the middle of the first execution would take a place among
/// the program's blocks, and in no other execution.
pub(crate) fn prepare_thread() {
    generator::is_generator();
}

/// The smallest page size of any supported system. Stacks begin and end at multiples of the real
/// page size, which is a multiple of this.
const PAGE: usize = 4096;

thread_local! {
    /// The coroutine that runs on this OS thread. Set only during its `resume`.
    static CURRENT: Cell<*const Control> = const { Cell::new(ptr::null()) };
    /// Whether this OS thread requests the memory of a stack from the system at the moment.
    static ASKS: Cell<bool> = const { Cell::new(false) };
}

/// Whether this OS thread makes a stack. The crate panics if the system has no memory for the
/// stack, which is reported in another way.
pub(crate) fn asks_for_a_stack() -> bool {
    ASKS.get()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// A body waits for its first `resume`.
    Ready,
    /// A body waits for its next `resume`.
    Suspended,
    /// No body.
    Idle,
    /// A body runs, or has overflowed or faulted.
    Running,
}

/// The state that the two sides of a switch share: the owner of the stack and the code on it.
struct Control {
    state: Cell<State>,
    body: Cell<Option<ThreadMain>>,
    /// A function that is called instead of a body.
    instead: Cell<Option<fn()>>,
    /// The payload if the last body panicked.
    panic: Cell<Option<Payload>>,
    /// The invalid memory access of the body.
    fault: Cell<Option<Fault>>,
    /// Whether the body has aborted.
    aborted: Cell<bool>,
    /// The generator's end of the switch, in a frame at the top of the stack.
    scope: Cell<*mut Scope<'static, 'static, (), ()>>,
    /// The owner's end of the switch. Dropped only when its code has returned.
    generator: Cell<Option<ManuallyDrop<LocalGenerator<'static, (), ()>>>>,
    /// The requested size in bytes.
    bytes: usize,
    /// The lowest address of the stack, and the address behind its highest byte.
    bottom: Cell<usize>,
    top: Cell<usize>,
    /// The part of the stack above the lowest [`ROOM`] bytes.
    roomy: Cell<Stretch>,
    ends: &'static ThreadEnds,
}

/// The functions that are called behind the code of each thread, on its stack.
pub(crate) struct ThreadEnds {
    /// Called if the code has returned.
    pub(crate) returns: fn(),
    /// Called if the code unwinds.
    pub(crate) unwinds: fn(),
}

impl Control {
    /// The code of each stack: runs one body after the other, until it is resumed without one.
    #[inline(always)]
    fn serve(&self) {
        while let Some(body) = self.body.take() {
            let run = || match self.instead.get() {
                None => self.run(body),
                Some(instead) => {
                    cold_path();
                    instead();
                }
            };
            // An unwind cannot cross the switch, so it ends here.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
                cold_path();
                self.panic.set(Some(payload));
            }
            self.switch_back(State::Idle);
        }
    }

    /// Runs the code of a thread, and the work of its runtime behind it.
    ///
    /// This function is inlined into the code that each stack runs, so that the code of a thread
    /// returns there and nowhere else. A processor predicts return addresses from the calls it has
    /// seen, and after a switch these are the calls of another stack. But an idle stack moves to
    /// another OS thread, and the compiler may look up only once per function where the
    /// thread-locals of its OS thread are. So no inlined code may access a thread-local; every
    /// access is in a called function.
    #[inline(always)]
    fn run(&self, body: ThreadMain) {
        /// The body unwinds if this is dropped.
        struct Unwinds(fn());
        impl Drop for Unwinds {
            #[cold]
            fn drop(&mut self) {
                (self.0)();
            }
        }
        let unwinds = Unwinds(self.ends.unwinds);
        body.run();
        std::mem::forget(unwinds);
        (self.ends.returns)();
    }

    /// Switches to the code on the stack, until that switches back. Must not be called on this
    /// stack.
    #[inline]
    fn go_over(&self) {
        let Some(mut generator) = self.generator.take() else {
            panic!("dpor bug: a stack without a generator");
        };
        generator.resume();
        self.generator.set(Some(generator));
    }

    /// Must be called on the stack of this control block.
    #[inline]
    fn switch_back(&self, state: State) {
        self.state.set(state);
        // SAFETY: the closure of the generator set the pointer to a variable of its own before it
        // called `serve`, which has frames on this stack now; no other reference to that variable
        // exists.
        unsafe { (*self.scope.get()).yield_with(()) }
    }
}

mod fault;
mod kept;
mod overflow;
mod stretch;
#[cfg(test)]
mod tests;
