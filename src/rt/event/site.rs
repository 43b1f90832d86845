//! Where in the program does an operation stand?
//!
//! What the program did not write itself stands in a file that nobody wants to see: then it is told
//! what it is instead.

use std::panic::Location;

/// Where in the program an operation stands.
pub(crate) type Site = &'static Location<'static>;

/// What to say of a file that is none of the program's. A destructor has no caller, and neither has
/// what std calls.
pub(crate) fn foreign(file: &str) -> Option<&'static str> {
    let here = file!().strip_suffix("rt/event/site.rs");
    match here.is_some_and(|source| file.starts_with(source)) {
        true => Some("in a drop"),
        false => is_of_std(file).then_some("in std"),
    }
}

/// Whether a file, as the compiler or a stack names it, is one of the standard library's. Where its
/// source is installed (`rust-src`), it is named by where that lies.
pub(crate) fn is_of_std(file: &str) -> bool {
    file.starts_with("/rustc/") || file.contains("/rustlib/src/rust/library/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_std_is_known_whether_its_source_is_installed_or_not() {
        let installed = "/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library";
        for root in ["/rustc/59807616/library", installed] {
            let file = format!("{root}/core/src/iter/traits/iterator.rs");
            assert_eq!(foreign(&file), Some("in std"), "{file}");
        }
        assert_eq!(foreign("src/library/core.rs"), Some("in a drop"));
        assert_eq!(foreign("tests/library/core.rs"), None);
    }
}
