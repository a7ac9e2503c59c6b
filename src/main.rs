//! Parses, calls, prints the error and its hint, and sets the exit code; nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    captime::cli::main()
}
