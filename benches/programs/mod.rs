//! Which programs are measured?
//!
//! Those of [`text`], on `dpor`. Nobody counts their steps here, since events are counted.

#![allow(dead_code, reason = "each bench measures a part of them")]

mod text;

text::texts!(dpor);

fn step(_steps: usize) {}

fn check(holds: bool) {
    assert!(holds);
}
