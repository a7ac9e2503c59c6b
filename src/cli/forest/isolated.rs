//! A fit in its own process, killed at the limit: the only way to limit an engine that cannot be stopped.
//!
//! The process runs this command again, for one split. The limit applies to the whole process, including reading the
//! file.

use std::ffi::OsString;
use std::time::Duration;

use crate::cli::{Failure, runtime};
use captime_forest::engine::EngineKind;
use captime_forest::{Allowance, Dataset, ForestReport, Resource};
use captime_limit::{Captured, Cause, Launch, LimitError, Limits, Output, Setup, Supervisor};

/// Enough for a report with the importance of every column.
const OUTPUT: u64 = 8 << 20;

/// Runs fits in separate processes, one after another.
pub(super) struct Isolated {
    runtime: tokio::runtime::Runtime,
    supervisor: Supervisor,
}

impl Isolated {
    pub(super) fn start() -> Result<Self, Failure> {
        let runtime = runtime()?;
        let supervisor = runtime
            .block_on(Supervisor::start(&Setup::default()))
            .map_err(limit_failure)?;
        Ok(Self {
            runtime,
            supervisor,
        })
    }

    /// Fits one split, by number from 0.
    pub(super) fn run(
        &mut self,
        split: u32,
        data: &Dataset,
        engine: EngineKind,
        allowance: Option<Allowance>,
    ) -> Result<ForestReport, Failure> {
        let launch = Launch {
            output: Output::Capture { limit: OUTPUT },
            ..Launch::new(command(split)?)
        };
        let limits = limits(allowance);
        let ended = self
            .runtime
            .block_on(self.supervisor.run(&launch, &limits))
            .map_err(limit_failure)?;
        if ended.cause.is_limit() {
            let (wall, cpu) = (ended.wall_seconds, ended.cpu_seconds);
            return Ok(ForestReport::stopped(data, engine, wall, cpu));
        }
        let text =
            |captured: &Option<Captured>| captured.as_ref().map(Captured::text).unwrap_or_default();
        if ended.cause == Cause::None && ended.exit_code == Some(0) {
            return serde_json::from_str(&text(&ended.stdout)).map_err(|error| {
                Failure::internal(format!("the process of the fit wrote no report: {error}"))
            });
        }
        let said = text(&ended.stderr);
        let said = said.trim().trim_start_matches("captime: ");
        Err(match (ended.exit_code, ended.signal) {
            (Some(2), _) => Failure::usage(said),
            (Some(code), _) => {
                Failure::internal(format!("the fit ended with exit code {code}: {said}"))
            }
            (None, signal) => {
                let signal = signal.unwrap_or(0);
                Failure::internal(format!("the fit was ended by signal {signal}: {said}"))
            }
        })
    }

    pub(super) fn close(self) {
        self.runtime.block_on(self.supervisor.close());
    }
}

/// This command again, for one split.
fn command(split: u32) -> Result<Vec<OsString>, Failure> {
    let mut command = vec![std::env::current_exe()?.into_os_string(), "forest".into()];
    command.push(format!("--only-split={split}").into());
    command.extend(std::env::args_os().skip(2));
    Ok(command)
}

fn limits(allowance: Option<Allowance>) -> Limits {
    let mut limits = Limits::default();
    if let Some(Allowance { resource, amount }) = allowance {
        // A limit that does not fit into a duration is no limit.
        let time = Duration::try_from_secs_f64(amount).ok();
        match resource {
            Resource::Wall => limits.wall = time,
            Resource::Cpu => limits.cpu = time,
            // The process itself counts work.
            Resource::Work => {}
        }
    }
    limits
}

fn limit_failure(error: LimitError) -> Failure {
    Failure::internal(&error).hint(error.hint())
}
