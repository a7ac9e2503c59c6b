#![no_main]

#[path = "../inputs.rs"]
#[allow(dead_code, reason = "every target uses one of them")]
mod inputs;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| inputs::journal(bytes));
