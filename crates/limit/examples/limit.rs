//! `cargo run -p captime-limit --example limit -- SECONDS COMMAND...`: runs a command under a wall-clock limit and says what it used.

use std::io::Write;
use std::time::Duration;

use captime_limit::{Input, Launch, Limits, blocking};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().ok_or("name a limit in seconds")?.parse()?;
    let launch = Launch {
        input: Input::Inherit,
        ..Launch::new(arguments)
    };
    let limits = Limits {
        wall: Some(Duration::try_from_secs_f64(seconds)?),
        ..Limits::default()
    };
    let report = blocking::run(&launch, &limits)?;
    writeln!(
        std::io::stderr(),
        "ended by {:?} after {:.3} s: {:.3} s of CPU time, {} KiB of memory, {} processes left behind",
        report.cause,
        report.wall_seconds,
        report.cpu_seconds,
        report.peak_memory_bytes >> 10,
        report.left_behind,
    )?;
    Ok(())
}
