//! Functions by which a test switches exploration off and on.

use crate::rt;

/// Switches exploration on for the code that follows, after [`stop_exploring`] or under
/// [`Builder::expect_explicit_explore`](crate::Builder::expect_explicit_explore).
///
/// Outside a model this does nothing.
pub fn explore() {
    rt::switch_exploration(true);
}

/// Switches exploration off for the code that follows, until [`explore`].
///
/// There, threads run in one order, and choices have their first outcome. The report is then not
/// complete; its verdict is [`Verdict::Marked`](crate::Verdict::Marked). If a limit, or a bound on
/// preemptions, switches or delays, left executions out, too, the verdict is that of the limit or
/// the bound, and [`Report::excludes`](crate::Report::excludes) is true. Outside a model this does
/// nothing.
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
/// [`explore`] does not switch it on again, unlike after [`stop_exploring`]. Outside a model this
/// does nothing.
pub fn skip_branch() {
    rt::skip_rest();
}
