//! From a report of the limiter to what the policy sees: the table of outcomes.

use super::reward::Reading;
use crate::limit::{Cause, Report};
use crate::round::{Observation, Pull};
use crate::scenario::Resource;
use crate::target::{Ending, Failing, Guard, Inexact, Measured, Outcome};

/// What is kept of a failed command's stderr, in bytes.
const STDERR: usize = 2000;

/// What a command used of the limited resource.
pub(super) fn consumption(report: &Report, of: Resource) -> f64 {
    match of {
        Resource::Wall => report.wall_seconds,
        // Commands do no counted work; the check refuses such a limit for them.
        Resource::Cpu | Resource::Work => report.cpu_seconds,
    }
}

/// Whether the run is over its limit, whoever ended it.
pub(super) fn is_past(report: &Report, pull: Pull, of: Resource) -> bool {
    let is_stopped = match of {
        Resource::Wall => report.cause == Cause::Wall,
        Resource::Cpu | Resource::Work => report.cause == Cause::Cpu,
    };
    is_stopped || (report.cause == Cause::None && consumption(report, of) > pull.limit.get())
}

/// What a run brought; `reading` is its reward, or why there is none, for a run that ended by itself within its limit.
pub(super) fn ending(
    report: &Report,
    pull: Pull,
    of: Resource,
    reading: Result<&Reading, &str>,
) -> Ending {
    let used = consumption(report, of);
    let measured = Measured {
        wall: Some(report.wall_seconds),
        cpu: Some(report.cpu_seconds),
        memory: Some(report.peak_memory_bytes),
        exit: report.exit_code,
        signal: report.signal,
        inexact: Inexact {
            cpu: !report.cpu_exact,
            memory: !report.memory_exact,
        },
    };
    let failed = |reason: String, guard: Option<Guard>| {
        let failing = Failing {
            reason,
            guard,
            stderr: stderr_tail(report),
        };
        Outcome::failed(pull, failing, Some(used), measured)
    };
    let outcome = match report.cause {
        Cause::Cancelled => return Ending::Stopped,
        _ if is_past(report, pull, of) => Outcome {
            observation: Observation::censored(pull, pull.limit.get())
                .unwrap_or(Observation::failed(pull)),
            failure: None,
            consumption: Some(used),
            score: None,
            is_clamped: false,
            measured,
        },
        Cause::Memory => failed("hit the memory guard".into(), Some(Guard::Memory)),
        Cause::Wall => failed("hit the wall guard".into(), Some(Guard::Wall)),
        Cause::Cpu => failed("hit the cpu guard".into(), Some(Guard::Cpu)),
        Cause::None => match (report.signal, reading) {
            (Some(signal), _) => failed(format!("ended by signal {}", signal_name(signal)), None),
            (None, Err(reason)) => failed(reason.to_owned(), None),
            (None, Ok(reading)) => match Observation::ended(pull, reading.reward, used) {
                Ok(observation) => Outcome {
                    observation,
                    failure: None,
                    consumption: Some(used),
                    score: reading.score,
                    is_clamped: reading.is_clamped,
                    measured,
                },
                Err(error) => failed(error.to_string(), None),
            },
        },
    };
    Ending::Brought(Box::new(outcome))
}

/// `11 (SIGSEGV)`.
fn signal_name(signal: i32) -> String {
    match nix::sys::signal::Signal::try_from(signal) {
        Ok(name) => format!("{signal} ({name})"),
        Err(_) => signal.to_string(),
    }
}

/// The end of what it wrote to stderr, from the beginning of a line.
fn stderr_tail(report: &Report) -> String {
    let Some(kept) = &report.stderr else {
        return String::new();
    };
    let bytes = if kept.dropped_bytes > 0 {
        &kept.tail
    } else {
        &kept.head
    };
    let start = bytes.len().saturating_sub(STDERR);
    let mut tail = &bytes[start..];
    if start > 0
        && let Some(line) = tail.iter().position(|&byte| byte == b'\n')
    {
        tail = &tail[line + 1..];
    }
    String::from_utf8_lossy(tail).trim_end().to_owned()
}
