//! The programs that the benches measure.
//!
//! They are those of [`text`], on `dpor`. Their steps are not counted here, because the benches
//! count events.

#![allow(dead_code, reason = "each bench measures a part of them")]

mod text;

text::texts!(dpor);

fn step(_steps: usize) {}

fn check(holds: bool) {
    assert!(holds);
}
