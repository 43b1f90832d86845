//! Does every text that parses as a schedule print as a schedule that is the same?
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| dpor::fuzzing::schedule(text));
