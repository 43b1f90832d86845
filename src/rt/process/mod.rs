//! What one process has once: the panic hook, signals, exit, the watchdog.

pub(crate) mod panic_hook;
pub(crate) mod raised;
pub(crate) mod watchdog;
