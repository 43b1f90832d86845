//! A build without the feature `page` makes none: a setting that asks for some is refused.

use crate::rt::report::execution::Execution;

pub(crate) fn render(_: &Execution) -> String {
    unreachable!("dpor bug: the feature `page` is off, and a page was asked for")
}
