//! How does a test say which of its parts are to be explored?

use crate::rt;

/// Explores what comes from here on, after [`stop_exploring`] or where
/// [`Builder::expect_explicit_explore`](crate::Builder::expect_explicit_explore) is set. Outside a model this does nothing.
pub fn explore() {
    rt::switch_exploration(true);
}

/// Does not explore what comes from here on, until [`explore`]: threads go on in one order, and
/// choices have their first outcome. The report's verdict is then [`Verdict::Marked`](crate::Verdict::Marked) and not
/// complete. Outside a model this does nothing.
pub fn stop_exploring() {
    rt::switch_exploration(false);
}

/// Does not explore what comes from here on in this execution; unlike [`stop_exploring`], not even
/// after [`explore`]. Outside a model this does nothing.
pub fn skip_branch() {
    rt::skip_rest();
}
