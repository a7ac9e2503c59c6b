//! Parses the command line, calls the library, prints the error and its hint, and sets the exit code. Nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    captime::cli::main()
}
