//! Who panicked, where, and what must not be printed twice?
//!
//! One hook is installed, once per process. It asks whether this OS thread is running the code of a
//! modelled thread; then it keeps the message for the report and prints nothing. Any other panic
//! goes to the hook that was there before. It is never taken out again, so models in parallel tests
//! do not get into each other's way.

use std::sync::Once;

use super::context::with_any;

/// What the hook kept of a panic.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) text: String,
    pub(crate) location: Option<(String, u32, u32)>,
}

/// Installs the hook if it is not installed yet.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        super::coroutine::prepare();
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let message = || {
                let payload = info.payload();
                let text = payload
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned())
                    .or_else(|| payload.downcast_ref::<String>().cloned())
                    .unwrap_or_else(|| "a payload that is not text".to_owned());
                let location = info
                    .location()
                    .map(|l| (l.file().to_owned(), l.line(), l.column()));
                Message { text, location }
            };
            if !keep(message) {
                before(info);
            }
        }));
    });
}

/// A panic has begun. If that is in the code of a modelled thread, keeps the message and answers true.
fn keep(message: impl FnOnce() -> Message) -> bool {
    let kept = with_any(|runtime| {
        if !runtime.running.get() {
            return false;
        }
        runtime.message.set(Some(message()));
        runtime.unwinding.begin(runtime.current.get());
        true
    });
    kept == Some(true)
}
