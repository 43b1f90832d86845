//! Do ends of threads, scopes, thread-locals, statics and caught panics behave as in std?

use crate::children;
mod detached;
mod drops;
mod ends;
mod held;
mod left_stacks;
mod locals;
mod older;
mod panics;
mod put_back;
mod scopes;
mod stack_size;
mod statics;

use dpor::Builder;

fn count(f: impl Fn() + Send + Sync + 'static) -> u64 {
    let report = Builder::new().check(f);
    assert!(report.complete);
    assert_eq!(report.pruned, 0);
    report.executions
}
