//! The parsers of untrusted input, for the fuzz targets in `crates/fuzz`.

use crate::rt::engine::checkpoint::decode;
use crate::rt::event::schedule::Schedule;
use crate::rt::object::machine::{Limits, Machine};
use crate::rt::statics::image::Image;

/// Parses a schedule. A schedule that parses is printed and parsed again, and must be the same.
///
/// # Panics
///
/// If the second schedule differs from the first.
pub fn schedule(text: &str) {
    if let Ok(schedule) = Schedule::parse(text) {
        let printed = schedule.to_string();
        let again = Schedule::parse(&printed).expect("a printed schedule parses");
        assert_eq!(again.to_string(), printed);
    }
}

/// Decodes the part of a checkpoint that the engine writes.
pub fn checkpoint(bytes: &[u8]) {
    let _ = decode(bytes, &mut Machine::new(Limits::default()), &Image);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fuzz targets need a nightly compiler. This test needs none: it checks that the targets
    /// compile and do not panic on a few inputs.
    #[test]
    fn a_few_inputs_of_the_fuzz_targets_are_parsed_without_a_panic() {
        for text in [
            "",
            "v2",
            "v2 main*3 main.1*3 main*3",
            "v2 main*0",
            "v9 x",
            "v2 (main main.1)*4",
        ] {
            schedule(text);
        }
        for length in 0..64 {
            for fill in [0, 1, 2, 0x7f, 0xff] {
                checkpoint(&vec![fill; length]);
            }
        }
    }
}
