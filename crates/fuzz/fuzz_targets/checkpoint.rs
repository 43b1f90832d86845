//! Is a damaged checkpoint refused, whatever its bytes are?
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dpor::fuzzing::checkpoint(bytes));
