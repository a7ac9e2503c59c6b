//! A small `timeout`: `cargo run -p captime-limit --example exec -- LEVEL CONTAIN WALL CPU MEMORY COMMAND...`, where `-` is the best level or
//! containment, or no limit. Prints the report as JSON on stderr. The process is nothing but a limiter, so it can use [`Foreground`].

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use captime_limit::{Foreground, Launch, Limits};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ([level, contain, wall, cpu, memory], command) = words
        .split_first_chunk::<5>()
        .ok_or("five words, then the command")?;
    let seconds = |text: &str| match text {
        "-" => Ok(None),
        text => text
            .parse()
            .map(|seconds| Some(Duration::from_secs_f64(seconds))),
    };
    let run = Foreground {
        launch: Launch::new(command),
        limits: Limits {
            wall: seconds(wall)?,
            cpu: seconds(cpu)?,
            memory: (memory != "-").then(|| memory.parse()).transpose()?,
            ..Limits::default()
        },
        level: level.parse().ok(),
        contain: contain.parse().ok(),
        stop_on_stdin_eof: false,
    };
    let finished = run.run();
    let report = serde_json::to_string(&finished.result)?;
    writeln!(std::io::stderr(), "{report}")?;
    Ok(match finished.result {
        Ok(report) if report.cause.is_limit() => ExitCode::from(124),
        Ok(report) => ExitCode::from(report.exit_code.unwrap_or(137) as u8),
        Err(_) => ExitCode::from(125),
    })
}
