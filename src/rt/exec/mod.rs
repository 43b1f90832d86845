//! How does a closure become an exploration?
//!
//! [`run`] plays one closure through all executions that an explorer asks for: every modelled thread
//! is a [`coroutine`], and a shim's operation is announced through [`announce`].

pub(crate) mod accesses;
pub(crate) mod announce;
pub(crate) mod aside;
pub(crate) mod callers;
pub(crate) mod came_to;
pub(crate) mod contents;
pub(crate) mod context;
pub(crate) mod coroutine;
mod ends;
pub(crate) mod faults;
pub(crate) mod frees;
mod front;
pub(crate) mod heap;
pub(crate) mod held;
pub(crate) mod hook;
pub(crate) mod image;
mod life;
pub(crate) mod locals;
pub(crate) mod log;
mod memory;
pub(crate) mod objects;
mod older;
pub(crate) mod outsiders;
pub(crate) mod own_state;
#[cfg(any(target_os = "linux", all(unix, target_pointer_width = "64")))]
mod page;
mod panics;
pub(crate) mod put_back;
mod raised;
pub(crate) mod rooted;
pub(crate) mod run;
pub(crate) mod seat;
mod segments;
pub(crate) mod short;
pub(crate) mod statics;
mod step;
pub(crate) mod unseen;
pub(crate) mod unshown;
pub(crate) mod unwinding;
pub(crate) mod watchdog;
