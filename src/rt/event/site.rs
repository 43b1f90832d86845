//! At which place in the program is an operation?
//!
//! An operation that the program did not write itself is in a file that does not help the reader of
//! a report. Then the report says what kind of code it is instead.

use std::panic::Location;

/// The place of an operation in the program.
pub(crate) type Site = &'static Location<'static>;

/// The words for a file that does not belong to the program. A destructor has no caller, and
/// neither have the callbacks of std.
pub(crate) fn foreign(file: &str) -> Option<&'static str> {
    let here = file!().strip_suffix("rt/event/site.rs");
    if here.is_some_and(|source| file.starts_with(source)) {
        Some("in a drop")
    } else {
        is_of_std(file).then_some("in std")
    }
}

/// Whether a file, as the compiler or a stack trace names it, belongs to the standard library. With
/// the source installed (`rust-src`), the file has the name of its place there.
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
