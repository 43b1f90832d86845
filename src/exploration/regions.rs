//! How does a test say which of its parts are to be explored?

use crate::rt;

/// Switches exploration on for what follows, after [`stop_exploring`] or under
/// [`Builder::expect_explicit_explore`](crate::Builder::expect_explicit_explore).
///
/// Outside a model this does nothing.
pub fn explore() {
    rt::switch_exploration(true);
}

/// Switches exploration off for what follows, until [`explore`].
///
/// There, threads go on in one order, and choices have their first outcome. The report is then not
/// complete; its verdict is [`Verdict::Marked`](crate::Verdict::Marked), unless a limit or a bound
/// on preemptions, switches or delays left something out, too: then it is theirs, and
/// [`Report::excludes`](crate::Report::excludes) is true. Outside a model this does nothing.
///
/// ```
/// use dpor::sync::Mutex;
///
/// let explored = dpor::Builder::new().explore(|| {
///     let list = Mutex::new(Vec::new());
///     let push_both = || {
///         dpor::thread::scope(|scope| {
///             scope.spawn(|| list.lock().unwrap().push(1));
///             list.lock().unwrap().push(2);
///         });
///     };
///     dpor::stop_exploring();
///     push_both();
///     dpor::explore();
///     push_both();
/// });
/// let report = explored.expect("nothing fails");
/// assert_eq!((report.executions, report.complete), (2, false));
/// ```
pub fn stop_exploring() {
    rt::switch_exploration(false);
}

/// Switches exploration off for the rest of this execution.
///
/// Unlike after [`stop_exploring`], [`explore`] does not switch it on again. Outside a model this
/// does nothing.
pub fn skip_branch() {
    rt::skip_rest();
}
