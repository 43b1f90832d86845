//! The log of a build without the feature `log`: it hears nothing.

use crate::rt::event::said::Said;

/// Which lines are shown. A setting that names some is refused.
#[derive(Clone)]
pub(crate) struct Filter;

impl Filter {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the filter of the feature may be malformed"
    )]
    pub(crate) fn parse(_: &str) -> Result<Filter, String> {
        Ok(Filter)
    }
}

pub(crate) struct Log {
    keeps: bool,
}

impl Log {
    pub(crate) fn new(_: Option<Filter>, keeps: bool) -> Log {
        Log { keeps }
    }

    pub(crate) fn quiet(&self) -> Log {
        Log { keeps: true }
    }

    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    pub(crate) fn was_missed(&self) -> bool {
        false
    }

    pub(crate) fn lines(&self) -> Vec<Said> {
        Vec::new()
    }

    #[inline]
    pub(crate) fn clear(&self) {}

    #[inline]
    pub(crate) fn listen<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }
}
