//! Ctrl-C, and the signal that ends a process.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use shared_child::SharedChild;

static ASKED: AtomicBool = AtomicBool::new(false);

/// The programs that run now.
static CHILDREN: Mutex<Vec<Arc<SharedChild>>> = Mutex::new(Vec::new());

/// Begins to listen.
pub(crate) fn listen() -> Result<()> {
    let end = || {
        ASKED.store(true, SeqCst);
        let children = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
        for child in &*children {
            // A child that cannot be killed has ended.
            let _ = child.kill();
        }
    };
    ctrlc::set_handler(end).context("signals cannot be handled")
}

/// Whether the process is to end.
pub(crate) fn asked() -> bool {
    ASKED.load(SeqCst)
}

/// Waits for a child, which is killed if the process is to end.
pub(crate) fn wait(child: SharedChild) -> std::io::Result<std::process::ExitStatus> {
    let child = Arc::new(child);
    let children = || CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
    children().push(child.clone());
    if asked() {
        let _ = child.kill();
    }
    let status = child.wait();
    children().retain(|other| !Arc::ptr_eq(other, &child));
    status
}
