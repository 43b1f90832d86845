//! What becomes of a thread that uses memory that is not there, or writes to what may only be read?
//!
//! A pointer that is null, or was read from memory that is gone, is what many a bug of a lock-free
//! structure comes to, and the system ends the process for it: then nothing tells which execution
//! it was. So a handler of `SIGSEGV` and `SIGBUS` leaves the thread where it is, for good, like one
//! whose stack has overflowed ([`coroutine`](crate::rt::coroutine)), and the execution fails.
//!
//! That is done only where it can end well:
//!
//! - The code of a thread of the model runs. In the middle of the runtime something of it is
//!   borrowed.
//! - It is not in the allocator that lies behind the tracking one, which would be left with its
//!   lock held, and from then on wait for that. There it is only told in which execution that was
//!   ([`ends`](super::process_exit)).
//! - A use of memory has caused the signal. Whoever sends it by `kill` wants the process to end.
//!
//! Everything else goes to a handler that was there before: on the stack of a generator to
//! `generator`'s, which sees to overflows, and on any other to the one that was there before that,
//! which is std's. (`generator`'s panics there.)

#[cfg(unix)]
pub(crate) use unix::{install, prepare_thread};

/// The vectored exception handlers of Windows are `generator`'s alone.
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

    /// What was done at each of the [`SIGNALS`] before there was a handler of `generator`'s, and
    /// what that does.
    static FIRST: [OnceLock<sigaction>; 2] = [OnceLock::new(), OnceLock::new()];
    static GENERATOR_S: [OnceLock<sigaction>; 2] = [OnceLock::new(), OnceLock::new()];

    /// The address was no address at all, so the processor has told none. (Linux)
    const BY_KERNEL: c_int = 0x80;

    /// How many bytes of stack the handler has. What std gives a thread is too little to look at
    /// the stack of the program.
    const STACK: usize = 64 << 10;

    /// The stack of the handler on this OS thread.
    struct Stack(Box<[MaybeUninit<u8>]>);

    thread_local! {
        static ALTERNATIVE: OnceCell<Option<Stack>> = const { OnceCell::new() };
    }

    /// Makes ready for models on this OS thread.
    pub(crate) fn prepare_thread() {
        // A thread that is at its end has to do without.
        let _ = ALTERNATIVE.try_with(|stack| {
            stack.get_or_init(Stack::install);
        });
    }

    impl Stack {
        /// `None` if there is one that is large enough, or the system has none for us.
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
            // SAFETY: the memory lives until this is dropped, where it is no stack any more.
            let set = unsafe { sigaltstack(&raw const stack, ptr::null_mut()) };
            (set == 0).then_some(Stack(memory))
        }

        /// The stack of handlers on this OS thread.
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
        /// The thread ends. If std has put its own one back meanwhile, ours is used no more.
        fn drop(&mut self) {
            let is_ours = |stack: &stack_t| stack.ss_sp.cast_const().cast() == self.0.as_ptr();
            if let Some(mut stack) = Stack::current().filter(is_ours) {
                stack.ss_flags = SS_DISABLE;
                // SAFETY: a thread without such a stack is what it was before std made one.
                unsafe { sigaltstack(&raw const stack, ptr::null_mut()) };
            }
        }
    }

    /// Installs `generator`'s handlers, which the function does, and ours in front of them. To be
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

    /// Notes what is done at each of the signals.
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
    /// Only for the system, which gives valid pointers.
    unsafe extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the system gives a pointer to what it says of the signal.
        let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
        let address = (code != BY_KERNEL).then_some(address);
        // The codes of signals that others send are not positive.
        let is_use = code > 0 && !coroutine::is_overflow(address);
        let asked_in_vain = heap::asked().filter(|_| is_use);
        if let Some(asked) = asked_in_vain {
            process_exit::tell_of_allocator(asked);
        }
        let is_program_s = is_use
            && asked_in_vain.is_none()
            && with_any(|runtime| {
                // What is allocated from now on is not the program's.
                runtime.running.get() && runtime.heap.record(false)
            }) == Some(true);
        if is_program_s {
            // SAFETY: the system gives a pointer to what the thread was at, where it does not go
            // on.
            let at = unsafe { step_into(context) };
            let was_called = at.is_some() && at == address;
            let fault = Fault {
                address,
                was_called,
                stack: Backtrace::force_capture(),
            };
            // SAFETY: the thread was in the middle of code of the program: the runtime is not
            // borrowed, and the allocator not locked. Nothing on the stack of this handler is ever
            // used again.
            unsafe { coroutine::leave(signal, Some(fault)) };
        }
        // `generator`'s would make a backtrace of what it knows nothing of, and ask the allocator
        // for all that takes.
        let is_generator_s = code > 0 && coroutine::is_on_generator() && asked_in_vain.is_none();
        let others = match is_generator_s {
            true => &GENERATOR_S,
            false => &FIRST,
        };
        // SAFETY: it is called as the system would have called it.
        unsafe { go_to(others, signal, info, context) };
    }

    /// Has the thread stand one byte further. A backtrace is made of the places that functions
    /// return to, and looks one byte before each, to come to the calls. Before the instruction that
    /// has caused a fault there may be one of no line. Gives the address of that instruction, where
    /// it is known.
    ///
    /// # Safety
    ///
    /// The pointer is the one that a handler is given, and the thread does not go on from there.
    unsafe fn step_into(context: *mut c_void) -> Option<usize> {
        #[cfg(all(
            target_os = "linux",
            any(target_arch = "x86_64", target_arch = "aarch64")
        ))]
        // SAFETY: that is what it points to, and nobody else uses it now.
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

    /// Does what one of these does at this signal.
    ///
    /// # Safety
    ///
    /// As [`handle`].
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
                // SAFETY: it ends the process when the handler returns and the signal comes again.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            (action, Some(before)) if before.sa_flags & SA_SIGINFO != 0 => {
                type Handler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                // SAFETY: the flag says that the handler has this signature.
                unsafe { std::mem::transmute::<usize, Handler>(action)(signal, info, context) };
            }
            (action, _) => {
                type Handler = unsafe extern "C" fn(c_int);
                // SAFETY: without the flag it has this one.
                unsafe { std::mem::transmute::<usize, Handler>(action)(signal) };
            }
        }
    }
}
