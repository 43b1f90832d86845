//! The parts of which a process has one: the panic hook, signals, exit, the watchdog.

pub(crate) mod outside_use;
#[cfg(any(target_os = "linux", all(unix, target_pointer_width = "64")))]
pub(crate) mod page;
pub(crate) mod panic_hook;
pub(crate) mod raised;
pub(crate) mod watchdog;
