//! What does a build without some of the features leave out, and what does it say of that?
//!
//! Each feature has one module that is replaced without it, by a file `off.rs`. Such a file does
//! nothing that a test notices: a setting that asks for more is refused here, at the model.

use crate::config::{Builder, Summary};

/// What the program's own log says.
const LOG: bool = cfg!(feature = "log");
/// Data for other programs.
pub(crate) const JSON: bool = cfg!(feature = "json");
/// Pages.
const PAGE: bool = cfg!(feature = "page");
/// What stops and goes on.
const CHECKPOINT: bool = cfg!(feature = "checkpoint");

/// Refuses a setting that asks for what this build leaves out.
pub(crate) fn check(settings: &Builder) -> Result<(), String> {
    let named = |is_set: bool, name: &'static str| is_set.then_some(name);
    let filter = named(settings.log_filter.is_some(), "log_filter (DPOR_LOG)");
    let names_summary = matches!(settings.summary, Summary::File(_));
    let summary = named(names_summary, "summary (DPOR_SUMMARY)");
    let pages = named(
        settings.report_dir.is_some(),
        "report_dir (DPOR_REPORT_DIR)",
    );
    let file = settings.checkpoint_file.is_some();
    let file = named(file, "checkpoint_file (DPOR_CHECKPOINT_FILE)");
    let workers = settings.workers.is_some_and(|workers| workers > 1);
    let workers = named(workers, "workers (DPOR_WORKERS)");
    let shard = named(settings.shard.is_some(), "shard (DPOR_SHARD)");
    let task = named(settings.task.is_some(), "task (DPOR_TASK)");
    for (is_built, feature, asked) in [
        (LOG, "log", filter),
        (JSON, "json", summary.or(task)),
        (PAGE, "page", pages),
        (
            CHECKPOINT,
            "checkpoint",
            file.or(workers).or(shard).or(task),
        ),
    ] {
        if let (false, Some(setting)) = (is_built, asked) {
            return Err(format!(
                "{setting}: this build of dpor leaves its feature `{feature}` out; `cargo dpor` has it, or \
                 add `features = [\"{feature}\"]` to the dependency on dpor"
            ));
        }
    }
    Ok(())
}
