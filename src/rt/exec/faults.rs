//! How does an execution end if a thread uses memory that is not mapped, or writes to memory that
//! is read-only?
//!
//! Many a bug of a lock-free structure ends in the use of a null pointer, or of a pointer that was
//! read from memory that is gone. The system ends the process for such a use, and then no report
//! says which execution it was. So a handler of `SIGSEGV` and `SIGBUS` leaves the thread where it
//! is, for good, as after an overflow of its stack ([`coroutine`](crate::rt::coroutine)), and the
//! execution fails.
//!
//! The handler does so only where the exploration can continue safely:
//!
//! - The code of a thread of the model runs. Within the runtime, parts of the runtime are borrowed.
//! - The thread is not in the allocator that lies behind the tracking one. That allocator would be
//!   left with its lock held, and later calls would wait for the lock. There the handler only
//!   reports in which execution the fault was ([`process_exit`](super::process_exit)).
//! - A use of memory has caused the signal. A process that sends the signal by `kill` wants this
//!   process to end.
//!
//! Every other signal goes to a handler that was installed before: on the stack of a generator to
//! `generator`'s, which handles overflows, and on any other stack to the handler before that one,
//! which is std's. (`generator`'s handler panics there.)

#[cfg(unix)]
pub(crate) use unix::{install, prepare_thread};

/// On Windows the vectored exception handlers are `generator`'s alone.
#[cfg(not(unix))]
pub(crate) fn install(generator_s: impl FnOnce()) {
    generator_s();
}

#[cfg(not(unix))]
pub(crate) fn prepare_thread() {}

#[cfg(unix)]
mod unix {
    use std::backtrace::Backtrace;
    use std::cell::OnceCell;
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::OnceLock;

    use libc::{
        SA_ONSTACK, SA_SIGINFO, SIGBUS, SIGSEGV, SS_DISABLE, SS_ONSTACK, c_int, c_void, sigaction,
        sigaltstack, siginfo_t, stack_t,
    };

    use crate::rt::coroutine::Fault;
    use crate::rt::exec::context::with_any;
    use crate::rt::exec::process_exit;
    use crate::rt::{coroutine, heap};

    const SIGNALS: [c_int; 2] = [SIGSEGV, SIGBUS];

    /// The actions for each of the [`SIGNALS`] before `generator` installed its handlers, and the
    /// actions of `generator`.
    static FIRST: [OnceLock<sigaction>; 2] = [OnceLock::new(), OnceLock::new()];
    static GENERATOR_S: [OnceLock<sigaction>; 2] = [OnceLock::new(), OnceLock::new()];

    /// The code of a signal for an address that is not canonical: the processor reports no address.
    /// (Linux)
    const BY_KERNEL: c_int = 0x80;

    /// The size of the handler's stack in bytes. The stack that std gives a thread is too small to
    /// capture a backtrace of the program.
    const STACK: usize = 64 << 10;

    /// The stack of the handler on this OS thread.
    struct Stack(Box<[MaybeUninit<u8>]>);

    thread_local! {
        static ALTERNATIVE: OnceCell<Option<Stack>> = const { OnceCell::new() };
    }

    /// Prepares this OS thread for models.
    pub(crate) fn prepare_thread() {
        // An OS thread that is ending does without the stack.
        let _ = ALTERNATIVE.try_with(|stack| {
            stack.get_or_init(Stack::install);
        });
    }

    impl Stack {
        /// `None` if the thread has a stack that is large enough, or the system grants none.
        fn install() -> Option<Stack> {
            let before = Stack::current()?;
            let enabled = before.ss_flags & SS_DISABLE == 0;
            if enabled && before.ss_size >= STACK || before.ss_flags & SS_ONSTACK != 0 {
                return None;
            }
            let mut memory = Box::new_uninit_slice(STACK);
            let stack = stack_t {
                ss_sp: memory.as_mut_ptr().cast(),
                ss_flags: 0,
                ss_size: STACK,
            };
            // SAFETY: the memory lives until this value is dropped, and `drop` unregisters the
            // stack first.
            let set = unsafe { sigaltstack(&raw const stack, ptr::null_mut()) };
            (set == 0).then_some(Stack(memory))
        }

        /// The alternative signal stack of this OS thread.
        fn current() -> Option<stack_t> {
            let mut found = MaybeUninit::<stack_t>::zeroed();
            // SAFETY: a pointer to a variable of this type, which is written; all zeroes are a
            // value of it.
            unsafe {
                let asked = sigaltstack(ptr::null(), found.as_mut_ptr());
                (asked == 0).then(|| found.assume_init())
            }
        }
    }

    impl Drop for Stack {
        /// The OS thread ends. If std has put its own stack back meanwhile, this one is not
        /// registered any more.
        fn drop(&mut self) {
            let is_ours = |stack: &stack_t| stack.ss_sp.cast_const().cast() == self.0.as_ptr();
            if let Some(mut stack) = Stack::current().filter(is_ours) {
                stack.ss_flags = SS_DISABLE;
                // SAFETY: the OS thread has no alternative stack then, as before std made one.
                unsafe { sigaltstack(&raw const stack, ptr::null_mut()) };
            }
        }
    }

    /// Installs `generator`'s handlers by calling `generator_s`, and ours in front of them. To be
    /// called once.
    pub(crate) fn install(generator_s: impl FnOnce()) {
        note(&FIRST);
        generator_s();
        note(&GENERATOR_S);
        for signal in SIGNALS {
            // SAFETY: all zeroes are a value of this type, and the handler has the signature that
            // `SA_SIGINFO` says.
            unsafe {
                let mut action = MaybeUninit::<sigaction>::zeroed().assume_init();
                action.sa_flags = SA_SIGINFO | SA_ONSTACK;
                action.sa_sigaction = handle as *const () as usize;
                sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
    }

    /// Notes the present action for each of the signals.
    fn note(actions: &[OnceLock<sigaction>; 2]) {
        for (signal, action) in SIGNALS.into_iter().zip(actions) {
            let mut found = MaybeUninit::<sigaction>::zeroed();
            // SAFETY: a pointer to a variable of this type, which is written; all zeroes are a
            // value of it.
            unsafe {
                if sigaction(signal, ptr::null(), found.as_mut_ptr()) == 0 {
                    let _ = action.set(found.assume_init());
                }
            }
        }
    }

    /// The handler.
    ///
    /// # Safety
    ///
    /// Only the system calls this function, with valid pointers.
    unsafe extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the system gives a pointer to its description of the signal.
        let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
        let address = (code != BY_KERNEL).then_some(address);
        // The codes of signals that another process or thread sends are not positive.
        let is_use = code > 0 && !coroutine::is_overflow(address);
        let asked_in_vain = heap::asked().filter(|_| is_use);
        if let Some(asked) = asked_in_vain {
            process_exit::tell_of_allocator(asked);
        }
        let is_program_s = is_use
            && asked_in_vain.is_none()
            && with_any(|runtime| {
                // Allocations from now on are not the program's.
                runtime.running.get() && runtime.heap.record(false)
            }) == Some(true);
        if is_program_s {
            // SAFETY: the system gives a pointer to the context of the thread, which does not
            // continue there.
            let at = unsafe { step_into(context) };
            let was_called = at.is_some() && at == address;
            let fault = Fault {
                address,
                was_called,
                stack: Backtrace::force_capture(),
            };
            // SAFETY: the thread was in code of the program, so the runtime is not borrowed and the
            // allocator is not locked. The stack of this handler is never used again.
            unsafe { coroutine::leave(signal, Some(fault)) };
        }
        // `generator`'s handler would capture a backtrace of a fault that it does not know, and
        // would ask the allocator for the memory of that backtrace.
        let is_generator_s = code > 0 && coroutine::is_on_generator() && asked_in_vain.is_none();
        let others = if is_generator_s { &GENERATOR_S } else { &FIRST };
        // SAFETY: the function calls the handler as the system would have called it.
        unsafe { go_to(others, signal, info, context) };
    }

    /// Moves the program counter of the thread one byte forward. A backtrace consists of return
    /// addresses, and its printing looks one byte before each of them to find the call. The byte
    /// before the instruction that has caused the fault may belong to no line of the source.
    /// Returns the address of that instruction, where it is known.
    ///
    /// # Safety
    ///
    /// The pointer is the one that a handler is given, and the thread does not continue there.
    unsafe fn step_into(context: *mut c_void) -> Option<usize> {
        #[cfg(all(
            target_os = "linux",
            any(target_arch = "x86_64", target_arch = "aarch64")
        ))]
        // SAFETY: the pointer is to a `ucontext_t`, and no other code uses that now.
        unsafe {
            let at = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext;
            #[cfg(target_arch = "x86_64")]
            {
                let stood = at.gregs[libc::REG_RIP as usize];
                at.gregs[libc::REG_RIP as usize] = stood.wrapping_add(1);
                Some(stood as usize)
            }
            #[cfg(target_arch = "aarch64")]
            {
                let stood = at.pc;
                at.pc = stood.wrapping_add(1);
                Some(stood as usize)
            }
        }
        #[cfg(not(all(
            target_os = "linux",
            any(target_arch = "x86_64", target_arch = "aarch64")
        )))]
        {
            let _ = context;
            None
        }
    }

    /// Does what one of these actions does for this signal.
    ///
    /// # Safety
    ///
    /// The same as for [`handle`].
    unsafe fn go_to(
        actions: &[OnceLock<sigaction>; 2],
        signal: c_int,
        info: *mut siginfo_t,
        context: *mut c_void,
    ) {
        let known = SIGNALS.iter().position(|&known| known == signal);
        let before = known.and_then(|at| actions[at].get());
        let action = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
        match (action, before) {
            (libc::SIG_IGN, _) => {}
            (libc::SIG_DFL, _) | (_, None) => {
                // SAFETY: the default action ends the process when the handler returns and the
                // signal is raised again.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            (action, Some(before)) if before.sa_flags & SA_SIGINFO != 0 => {
                type Handler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                // SAFETY: the flag says that the handler has this signature.
                unsafe { std::mem::transmute::<usize, Handler>(action)(signal, info, context) };
            }
            (action, _) => {
                type Handler = unsafe extern "C" fn(c_int);
                // SAFETY: without the flag the handler has this signature.
                unsafe { std::mem::transmute::<usize, Handler>(action)(signal) };
            }
        }
    }
}
