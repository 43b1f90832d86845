//! How does a closure become an exploration?
//!
//! [`run`] plays one closure through all executions that an explorer asks for. Every modelled
//! thread is a [`coroutine`](crate::rt::coroutine), and a shim announces its operation through
//! [`announce`].

pub(crate) mod accesses;
pub(crate) mod announce;
pub(crate) mod aside;
pub(crate) mod blocks;
pub(crate) mod callers;
pub(crate) mod clock;
pub(crate) mod context;
pub(crate) mod crash_report;
pub(crate) mod current;
pub(crate) mod delay;
pub(crate) mod fast_path;
pub(crate) mod faults;
pub(crate) mod frees;
mod front;
pub(crate) mod glue;
pub(crate) mod held;
pub(crate) mod interrupts;
pub(crate) mod locals;
#[cfg(feature = "log")]
pub(crate) mod log;
#[cfg(not(feature = "log"))]
#[path = "log/off.rs"]
pub(crate) mod log;
pub(crate) mod memory;
pub(crate) mod objects;
pub(crate) mod outsiders;
pub(crate) mod over;
pub(crate) mod panics;
pub(crate) mod permitted;
pub(crate) mod pooled_runtime;
pub(crate) mod process_exit;
mod quiet_glue;
pub(crate) mod recorded_outcome;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod settings;
pub(crate) mod state_capture;
mod step;
pub(crate) mod suppressed_races;
pub(crate) mod thread_op;
pub(crate) mod time;
pub(crate) mod unwinding;
pub(crate) mod updates;
