//! From a report of the limiter to what the policy sees: the table of outcomes.

use serde::Deserialize;

use super::reward::Reading;
use crate::round::{Observation, Pull};
use crate::scenario::Resource;
use crate::target::{Ending, Failing, Guard, Inexact, Measured, Outcome};
use captime_limit::{Cause, Report};

/// What is kept of a failed command's stderr, in bytes.
const STDERR: usize = 2000;

/// What a run used of the limited resource, and whether it is over its limit, however it ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    /// None where it is not known: the work of a process that was killed is not counted.
    pub(super) amount: Option<f64>,
    pub(super) is_past: bool,
}

impl Used {
    pub(super) fn of(report: &Report, pull: Pull, of: Resource) -> Self {
        let (amount, is_stopped) = match of {
            Resource::Wall => (Some(report.wall_seconds), report.cause == Cause::Wall),
            Resource::Cpu => (Some(report.cpu_seconds), report.cause == Cause::Cpu),
            Resource::Memory => {
                let peak = report.peak_memory_bytes as f64;
                (Some(peak), report.cause == Cause::Memory)
            }
            Resource::Work => match counted(report) {
                Some(counted) => (Some(counted.work), counted.stopped),
                None => (None, false),
            },
        };
        let is_over = amount.is_some_and(|amount| pull.limit.is_passed_by(amount));
        Self {
            amount,
            is_past: is_stopped || (report.cause == Cause::None && is_over),
        }
    }
}

/// What the process of a forest says of its work; no other command counts it, and the check refuses such a limit for them.
#[derive(Debug, Deserialize)]
struct Counted {
    work: f64,
    stopped: bool,
}

fn counted(report: &Report) -> Option<Counted> {
    let said = report.stdout.as_ref()?;
    serde_json::from_slice(&said.head).ok()
}

/// What a run brought; `reading` is its reward, or why there is none, for a run that ended by itself within its limit.
pub(super) fn ending(
    report: &Report,
    pull: Pull,
    used: Used,
    reading: Result<Reading, Failing>,
) -> Ending {
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
        Outcome::failed(pull, failing, used.amount, measured)
    };
    let outcome = match report.cause {
        Cause::Cancelled => return Ending::Stopped,
        _ if used.is_past => {
            let seen = Observation::censored(pull, pull.limit.get());
            Outcome::of(
                seen.unwrap_or(Observation::failed(pull)),
                used.amount,
                measured,
            )
        }
        Cause::Memory => failed("hit the memory guard".into(), Some(Guard::Memory)),
        Cause::Wall => failed("hit the wall guard".into(), Some(Guard::Wall)),
        Cause::Cpu => failed("hit the cpu guard".into(), Some(Guard::Cpu)),
        Cause::None => match (report.signal, reading, used.amount) {
            (Some(signal), ..) => failed(format!("ended by signal {}", signal_name(signal)), None),
            (None, Err(failing), _) => failed(failing.reason, failing.guard),
            (None, Ok(_), None) => {
                failed("the process did not say how much work it did".into(), None)
            }
            (None, Ok(reading), Some(amount)) => {
                match Observation::ended(pull, reading.reward, amount) {
                    Ok(observation) => Outcome {
                        score: reading.score,
                        is_clamped: reading.is_clamped,
                        read: Some(reading.text),
                        ..Outcome::of(observation, used.amount, measured)
                    },
                    Err(error) => failed(error.to_string(), None),
                }
            }
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
