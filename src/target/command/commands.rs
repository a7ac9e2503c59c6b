//! One pull of a command, from its configuration to what it brought, with everything on the way kept for showing.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::judge::{self, Used};
use super::reward::{self, Reading, Source};
use super::scratch::Scratch;
use crate::limit::{self, Cause, Input, LimitError, Limits, Output, Report, Supervisor};
use crate::round::Pull;
use crate::scenario::{
    self, Command, Filling, Guards, LaunchStdin, Piece, Resource, Reward, ScorePlace, Stdin,
    Template,
};
use crate::space::Space;
use crate::target::{Ending, Failing, Measured, Outcome, Start};

/// The commands of a scenario.
#[derive(Debug, Clone)]
pub struct Commands {
    /// What to run.
    pub command: Command,
    /// The arms.
    pub space: Space,
    /// What the policy limits.
    pub of: Resource,
    /// The fixed bounds.
    pub guards: Guards,
    /// Seconds to tidy up after SIGTERM.
    pub grace: f64,
    /// Where rounds have their scratch folders.
    pub scratch: PathBuf,
}

/// A pull that was run.
#[derive(Debug)]
pub struct CommandRun {
    /// What a shell would run.
    pub line: String,
    /// What the limiter says of it, if it ran at all.
    pub report: Option<Report>,
    /// The reward with the text it was read from, or why there is none.
    pub reading: Result<Reading, String>,
    /// What it brought.
    pub ending: Ending,
}

impl Commands {
    /// The command of a pull, with every placeholder filled in.
    pub fn launch(&self, pull: Pull, round: u64, seed: u64, scratch: &Path) -> scenario::Launch {
        let configuration = self.space.configuration(pull.arm);
        self.command
            .launch(&self.filling(&configuration, pull, round, seed, scratch))
    }

    fn filling<'a>(
        &'a self,
        configuration: &'a crate::space::Configuration,
        pull: Pull,
        round: u64,
        seed: u64,
        scratch: &'a Path,
    ) -> Filling<'a> {
        let instance = pull
            .instance
            .and_then(|index| self.command.instances.get(index as usize));
        Filling {
            configuration,
            instance: instance.map(String::as_str),
            seed,
            limit: pull.limit.get(),
            cpu_limit: match self.of {
                Resource::Cpu => Some(pull.limit.get()),
                Resource::Wall | Resource::Work => self.guards.cpu,
            },
            round,
            scratch,
        }
    }

    fn limits(&self, pull: Pull, cpus: Option<Vec<usize>>) -> Limits {
        let seconds =
            |value: Option<f64>| value.and_then(|value| Duration::try_from_secs_f64(value).ok());
        let limit = pull.limit.get();
        let smaller = |guard: Option<f64>| Some(guard.map_or(limit, |guard| guard.min(limit)));
        let (wall, cpu) = match self.of {
            Resource::Wall => (smaller(self.guards.wall), self.guards.cpu),
            Resource::Cpu => (self.guards.wall, smaller(self.guards.cpu)),
            // Kept by the process itself.
            Resource::Work => (self.guards.wall, self.guards.cpu),
        };
        Limits {
            wall: seconds(wall),
            cpu: seconds(cpu),
            memory: self.guards.memory,
            grace: seconds(Some(self.grace)).unwrap_or_default(),
            cpus,
        }
    }

    /// Runs one pull. Ending the supervisor's run from elsewhere gives [`Ending::Stopped`].
    pub async fn run(
        &self,
        supervisor: &mut Supervisor,
        start: &Start,
        cpus: Option<Vec<usize>>,
    ) -> CommandRun {
        let scratch = if self.needs_scratch() {
            Some(Scratch::make(&self.scratch, start.round))
        } else {
            None
        };
        let scratch = match scratch.transpose() {
            Ok(scratch) => scratch,
            Err(error) => {
                return lost(
                    String::new(),
                    format!("cannot make a scratch folder: {error}"),
                );
            }
        };
        let folder = scratch
            .as_ref()
            .map_or(self.scratch.as_path(), Scratch::path);
        let filled = self.launch(start.pull, start.round.0, start.seed, folder);
        let line = filled.shell_line();
        let input = match (&filled.stdin, &scratch) {
            (LaunchStdin::Empty, _) | (LaunchStdin::Text(_), None) => Ok(Input::Empty),
            (LaunchStdin::File(path), _) => Ok(Input::File(path.clone())),
            (LaunchStdin::Text(text), Some(scratch)) => {
                scratch.write("stdin", text).map(Input::File)
            }
        };
        let input = match input {
            Ok(input) => input,
            Err(error) => {
                return lost(
                    line,
                    format!("cannot write what the command reads: {error}"),
                );
            }
        };
        let launch = limit::Launch {
            command: filled.arguments.iter().map(Into::into).collect(),
            env: filled
                .env
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            directory: Some(filled.directory.clone()),
            input,
            output: Output::Capture {
                limit: self.command.output_limit,
            },
        };
        let result = supervisor
            .run(&launch, &self.limits(start.pull, cpus))
            .await;
        let done = match result {
            Ok(report) => self.unless_gone(self.judged(start, line, report, folder), &launch),
            Err(error) => not_run(start.pull, line, &error, self.is_program_fixed()),
        };
        if let Some(scratch) = scratch {
            scratch.remove().await;
        }
        done
    }

    /// A run that failed is none where its program has meanwhile gone: a script whose interpreter came too late to open it.
    fn unless_gone(&self, mut done: CommandRun, launch: &limit::Launch) -> CommandRun {
        let ended_badly = |report: &Report| {
            report.cause == Cause::None && report.exit_code.is_some_and(|exit| exit != 0)
        };
        if let Ending::Brought(outcome) = &mut done.ending
            && let Some(failing) = &mut outcome.failure
            && done.report.as_ref().is_some_and(ended_badly)
            && self.is_program_fixed()
            && !limit::is_program_there(launch)
        {
            let program = launch.command[0].to_string_lossy();
            failing.reason = format!("{}; `{program}` is no longer there", failing.reason);
            done.ending = Ending::NotStarted(outcome.clone());
        }
        done
    }

    fn judged(&self, start: &Start, line: String, report: Report, scratch: &Path) -> CommandRun {
        let used = Used::of(&report, start.pull, self.of);
        let reading = if used.is_past {
            Err("past its limit".to_owned())
        } else {
            match report.exit_code {
                Some(exit) => self.reading(start, exit, &report, scratch),
                None => Err("no exit code".to_owned()),
            }
        };
        let ending = judge::ending(
            &report,
            start.pull,
            used,
            reading.as_ref().map_err(String::as_str),
        );
        CommandRun {
            line,
            report: Some(report),
            reading,
            ending,
        }
    }

    fn reading(
        &self,
        start: &Start,
        exit: i32,
        report: &Report,
        scratch: &Path,
    ) -> Result<Reading, String> {
        let Command {
            reward, success, ..
        } = &self.command;
        let read = |source: Option<Source<'_>>| reward::read(reward, success, exit, source);
        match reward {
            Reward::Exit(_) => read(None),
            // Nothing is read from a command that says it failed.
            Reward::Score { .. } if !success.contains(&exit) => read(None),
            Reward::Score {
                place: ScorePlace::Stdout,
                ..
            } => read(report.stdout.as_ref().map(Source::Stream)),
            Reward::Score {
                place: ScorePlace::Stderr,
                ..
            } => read(report.stderr.as_ref().map(Source::Stream)),
            Reward::Score {
                place: ScorePlace::File(path),
                ..
            } => {
                let configuration = self.space.configuration(start.pull.arm);
                let path = path.fill(&self.filling(
                    &configuration,
                    start.pull,
                    start.round.0,
                    start.seed,
                    scratch,
                ));
                let content = self.content(&path)?;
                read(Some(Source::File(&content)))
            }
        }
    }

    /// What a command wrote to a file, as much as would be kept of its output.
    fn content(&self, path: &str) -> Result<Vec<u8>, String> {
        let cannot = |error: std::io::Error| format!("cannot read `{path}`: {error}");
        // Without waiting for the other end of a pipe that the command may have put there.
        let file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(self.command.directory.join(path))
            .map_err(cannot)?;
        if !file.metadata().map_err(cannot)?.is_file() {
            return Err(format!("`{path}` is not a plain file"));
        }
        let mut content = vec![];
        let most = self.command.output_limit;
        file.take(most + 1)
            .read_to_end(&mut content)
            .map_err(cannot)?;
        if content.len() as u64 > most {
            return Err(format!("`{path}` is longer than {most} bytes"));
        }
        Ok(content)
    }

    /// Whether the program is the same for every pull, so that it cannot be an arm's fault if it is not there.
    fn is_program_fixed(&self) -> bool {
        let program = self.command.arguments.templates.first();
        let is_text = |piece: &Piece| matches!(piece, Piece::Text(_));
        program.is_some_and(|program| program.pieces().iter().all(is_text))
    }

    fn needs_scratch(&self) -> bool {
        let uses = |template: &Template| template.pieces().contains(&Piece::Scratch);
        let Command {
            arguments,
            env,
            stdin,
            reward,
            ..
        } = &self.command;
        arguments.templates.iter().any(uses)
            || env.iter().any(|(_, value)| uses(value))
            || match stdin {
                Stdin::Empty => false,
                Stdin::File(path) => uses(path),
                Stdin::Text(_) => true,
            }
            || matches!(reward, Reward::Score { place: ScorePlace::File(path), .. } if uses(path))
    }
}

/// A pull that could not be run, and not by its own fault.
fn lost(line: String, why: String) -> CommandRun {
    CommandRun {
        line,
        report: None,
        reading: Err(why.clone()),
        ending: Ending::Lost { why },
    }
}

/// A pull that the limiter refused: the command's fault is a failure, ours is a lost pull.
fn not_run(pull: Pull, line: String, error: &LimitError, is_always_the_same: bool) -> CommandRun {
    let why = error.to_string();
    let is_fault = matches!(
        error,
        LimitError::Exec { .. }
            | LimitError::Directory { .. }
            | LimitError::Input { .. }
            | LimitError::Nul { .. }
    );
    if !is_fault {
        return lost(line, why);
    }
    let failing = Failing {
        reason: why.clone(),
        guard: None,
        stderr: String::new(),
    };
    let outcome = Box::new(Outcome::failed(
        pull,
        failing,
        Some(0.0),
        Measured::default(),
    ));
    let is_elsewhere = match error {
        LimitError::Exec { errno, .. } => errno.0 != libc::E2BIG && is_always_the_same,
        LimitError::Directory { .. } => is_always_the_same,
        _ => false,
    };
    CommandRun {
        line,
        report: None,
        reading: Err(why),
        ending: if is_elsewhere {
            Ending::NotStarted(outcome)
        } else {
            Ending::Brought(outcome)
        },
    }
}
