//! One pull of a command, from its configuration to what it brought.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::judge::{self, Used};
use super::reward::{self, Reading, Source};
use super::scratch::{self, Scratch};
use crate::round::{Limit, Pull};
use crate::scenario::{
    Command, FilledCommand, Filling, Guards, Piece, Resource, Reward, ScorePlace, ScoreScale,
    Stdin, Template,
};
use crate::space::Space;
use crate::target::wrapper::{self, WrapperStatus};
use crate::target::{Cancel, Ending, Failing, Guard, Measured, Outcome, Runner, Start};
use captime_limit::{Cause, Input, Launch, LimitError, Limits, Output, Report};

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

impl Commands {
    /// The command of a pull, with every placeholder filled in.
    pub fn fill(&self, start: &Start, scratch: &Path) -> FilledCommand {
        let configuration = start.configuration_in(&self.space);
        self.command
            .fill(&self.filling(&configuration, start, scratch))
    }

    fn filling<'a>(
        &'a self,
        configuration: &'a crate::space::Configuration,
        start: &Start,
        scratch: &'a Path,
    ) -> Filling<'a> {
        let pull = start.pull;
        let instance = pull
            .instance
            .and_then(|index| self.command.instances.get(index as usize));
        Filling {
            configuration,
            instance: instance.map(String::as_str),
            seed: start.seed,
            limit: self.handed(pull),
            cpu_limit: match self.of {
                Resource::Cpu => Some(pull.limit.get()),
                Resource::Wall | Resource::Work | Resource::Memory => self.guards.cpu,
            },
            round: start.round.0,
            scratch,
        }
    }

    /// The limit as the program gets it. A program that counts its work does so in whole numbers, and may refuse any other.
    fn handed(&self, pull: Pull) -> f64 {
        let limit = pull.limit.get();
        let is_counted = self.of == Resource::Work && self.command.consumption.is_some();
        if is_counted && limit >= 1.0 {
            limit.floor()
        } else {
            limit
        }
    }

    fn limits(&self, pull: Pull, cpus: Option<Vec<usize>>) -> Limits {
        let seconds =
            |value: Option<f64>| value.and_then(|value| Duration::try_from_secs_f64(value).ok());
        let limit = pull.limit.get();
        let smaller = |guard: Option<f64>| Some(guard.map_or(limit, |guard| guard.min(limit)));
        let (wall, cpu) = match self.of {
            // Kept by the program, which reports what it consumed.
            _ if self.command.consumption.is_some() => (self.guards.wall, self.guards.cpu),
            Resource::Wall => (smaller(self.guards.wall), self.guards.cpu),
            Resource::Cpu => (self.guards.wall, smaller(self.guards.cpu)),
            // Kept by the process itself.
            Resource::Work | Resource::Memory => (self.guards.wall, self.guards.cpu),
        };
        let memory = match self.of {
            Resource::Memory if self.command.consumption.is_none() => {
                smaller(self.guards.of(Resource::Memory)).map(|bytes| bytes.ceil() as u64)
            }
            _ => self.guards.memory,
        };
        Limits {
            wall: seconds(wall),
            cpu: seconds(cpu),
            memory,
            grace: seconds(Some(self.grace)).unwrap_or_default(),
            cpus,
        }
    }

    /// What a shell would run for this pull.
    pub fn shell_line(&self, start: &Start) -> String {
        let folder = self.scratch_folder(start);
        self.fill(start, &folder).shell_line()
    }

    /// The scratch folder of a pull, if it has one; else where it would be.
    fn scratch_folder(&self, start: &Start) -> PathBuf {
        if self.needs_scratch() {
            Scratch::folder(&self.scratch, start.round)
        } else {
            self.scratch.clone()
        }
    }

    /// Runs one pull. Cancelling it gives [`Ending::Stopped`].
    pub async fn run(
        &self,
        runner: &mut dyn Runner,
        start: &Start,
        cpus: Option<Vec<usize>>,
        cancel: &Cancel,
    ) -> Ending {
        let folder = self.scratch_folder(start);
        let scratch = self
            .needs_scratch()
            .then(|| Scratch::make(&self.scratch, start.round));
        let scratch = match scratch.transpose() {
            Ok(scratch) => scratch,
            Err(error) => return lost(format!("cannot make a scratch folder: {error}")),
        };
        let filled = self.fill(start, &folder);
        let input = match (&filled.stdin, &scratch) {
            (Stdin::Empty, _) | (Stdin::Text(_), None) => Ok(Input::Empty),
            (Stdin::File(path), _) => Ok(Input::File(filled.directory.join(path))),
            (Stdin::Text(text), Some(scratch)) => scratch.write("stdin", text).map(Input::File),
        };
        let input = match input {
            Ok(input) => input,
            Err(error) => return lost(format!("cannot write what the command reads: {error}")),
        };
        let launch = Launch {
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
        let limits = self.limits(start.pull, cpus);
        let ending = match runner.run(&launch, &limits, cancel).await {
            Ok(report) => {
                let ending = self.judged(start, &report, &folder);
                self.unless_gone(ending, &report, &launch)
            }
            Err(error) => not_run(start.pull, &error, self.is_program_fixed()),
        };
        match scratch {
            Some(scratch) => {
                scratch.remove().await;
                self.unless_full(ending)
            }
            None => ending,
        }
    }

    /// A pull that failed while its scratch disk is full says nothing, unless it filled the disk itself. Its own files are
    /// gone by now.
    fn unless_full(&self, ending: Ending) -> Ending {
        let crashed = match &ending {
            Ending::Brought(outcome) => outcome.failure.as_ref(),
            _ => None,
        };
        match crashed.filter(|failing| failing.guard.is_none()) {
            Some(failing) if scratch::is_full(&self.scratch) => lost(format!(
                "{}, and the disk of `{}` is full",
                failing.reason,
                self.scratch.display()
            )),
            _ => ending,
        }
    }

    /// A pull that failed because its program has disappeared says nothing: a script that was removed before its
    /// interpreter could open it.
    fn unless_gone(&self, ending: Ending, report: &Report, launch: &Launch) -> Ending {
        let ended_badly =
            report.cause == Cause::None && report.exit_code.is_some_and(|exit| exit != 0);
        match ending {
            Ending::Brought(mut outcome)
                if ended_badly
                    && outcome.failure.is_some()
                    && self.is_program_fixed()
                    && !captime_limit::is_program_there(launch) =>
            {
                let program = launch.command[0].to_string_lossy();
                if let Some(failing) = &mut outcome.failure {
                    failing.reason = format!("{}; `{program}` is no longer there", failing.reason);
                }
                Ending::NotStarted(outcome)
            }
            ending => ending,
        }
    }

    fn judged(&self, start: &Start, report: &Report, scratch: &Path) -> Ending {
        let (mut used, missing) = self.used(start, report, scratch);
        let reading = if used.is_past {
            Err(Failing::new("past its limit"))
        } else {
            match (report.exit_code, &self.command.reward) {
                (Some(_), Reward::Wrapper { scale }) => {
                    let result = wrapped(report, *scale, start.pull.limit);
                    used.is_past = result == Ok(None);
                    result.and_then(|found| {
                        let (reading, answer) = found.ok_or_else(|| Failing::new("out of time"))?;
                        let wrong = answer.map(|answer| self.contradicted(start, &answer, &answer));
                        wrong.transpose().map_err(Failing::new)?;
                        Ok(reading)
                    })
                }
                (Some(exit), _) => self
                    .reading(start, exit, report, scratch)
                    .map_err(Failing::new),
                (None, _) => Err(Failing::new("no exit code")),
            }
        };
        let limit = self.handed(start.pull);
        let ended = report.cause == Cause::None && report.exit_code.is_some();
        let is_reported = self.command.consumption.is_some();
        // A program that gives up at its limit says so by its exit code, or by giving no score.
        used.is_past |= is_reported
            && ended
            && reading.is_err()
            && used.amount.is_some_and(|used| used >= limit);
        let reading = reading.and_then(|reading| match missing {
            Some(why) => Err(Failing::new(format!("cannot read the consumption: {why}"))),
            None => Ok(reading),
        });
        judge::ending(report, start.pull, used, reading)
    }

    /// What a run consumed: as measured, or as it says itself; and why that cannot be read, if so.
    fn used(&self, start: &Start, report: &Report, scratch: &Path) -> (Used, Option<String>) {
        let Some(source) = &self.command.consumption else {
            let used = Used::of(report, start.pull, self.of);
            let is_vague = self.of == Resource::Memory && !report.memory_exact;
            let why = is_vague.then(|| "memory was not measured exactly".to_owned());
            return (used, why);
        };
        let read = |found: Option<Source<'_>>| reward::consumption(&source.form, found);
        match self.with_source(start, report, scratch, &source.place, read) {
            Ok(amount) => (
                Used {
                    amount: Some(amount),
                    is_past: report.cause == Cause::None && start.pull.limit.is_passed_by(amount),
                },
                None,
            ),
            Err(why) => (
                Used {
                    amount: None,
                    is_past: false,
                },
                Some(why),
            ),
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
        let reading = match reward {
            Reward::Exit(_) | Reward::Wrapper { .. } => read(None),
            // Nothing is read from a command that says it failed.
            Reward::Score { .. } if !success.contains(&exit) => read(None),
            Reward::Score { source, .. } => {
                self.with_source(start, report, scratch, &source.place, read)
            }
        }?;
        match reward {
            Reward::Exit(_) => {
                self.contradicted(start, &exit.to_string(), &format!("exit code {exit}"))?;
            }
            Reward::Score { .. } | Reward::Wrapper { .. } => {
                self.contradicted(start, &reading.text, &reading.text)?;
            }
        }
        Ok(reading)
    }

    /// Refuses an answer that is known to be wrong. `said` describes the answer in the message.
    fn contradicted(&self, start: &Start, answer: &str, said: &str) -> Result<(), String> {
        let Command {
            expect, instances, ..
        } = &self.command;
        let instance = start.pull.instance.map(|place| place as usize);
        let instance = instance.and_then(|place| instances.get(place));
        let (Some(expect), Some(instance)) = (expect, instance) else {
            return Ok(());
        };
        match expect.contradicts(instance, answer) {
            Some(right) => Err(format!(
                "wrong answer: {said}, but {} is expected",
                right.join(" or ")
            )),
            None => Ok(()),
        }
    }

    /// Reads from where a number is.
    fn with_source<T>(
        &self,
        start: &Start,
        report: &Report,
        scratch: &Path,
        place: &ScorePlace,
        read: impl FnOnce(Option<Source<'_>>) -> Result<T, String>,
    ) -> Result<T, String> {
        match place {
            ScorePlace::Stdout => read(report.stdout.as_ref().map(Source::Stream)),
            ScorePlace::Stderr => read(report.stderr.as_ref().map(Source::Stream)),
            ScorePlace::File(path) => {
                let configuration = start.configuration_in(&self.space);
                let path = path.fill(&self.filling(&configuration, start, scratch));
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
    pub(crate) fn is_program_fixed(&self) -> bool {
        let program = self.command.arguments.templates.first();
        let is_text = |piece: &Piece| matches!(piece, Piece::Text(_));
        program.is_some_and(|program| program.pieces().iter().all(is_text))
    }

    fn needs_scratch(&self) -> bool {
        let uses = |template: &Template| template.uses(&Piece::Scratch);
        let Command {
            arguments,
            env,
            stdin,
            reward,
            consumption,
            ..
        } = &self.command;
        let source = match reward {
            Reward::Score { source, .. } => Some(source),
            Reward::Exit(_) | Reward::Wrapper { .. } => None,
        };
        let mut sources = source.into_iter().chain(consumption);
        arguments.templates.iter().any(uses)
            || env.iter().any(|(_, value)| uses(value))
            || match stdin {
                Stdin::Empty => false,
                Stdin::File(path) => uses(path),
                Stdin::Text(_) => true,
            }
            || sources.any(|source| matches!(&source.place, ScorePlace::File(path) if uses(path)))
    }
}

/// What the result line of a wrapper says: a reward and the answer if it names one, or nothing if it ran out of time.
///
/// Wrappers report how a run ended on that line, so their exit code says nothing.
fn wrapped(
    report: &Report,
    scale: Option<ScoreScale>,
    limit: Limit,
) -> Result<Option<(Reading, Option<String>)>, Failing> {
    let stdout = report.stdout.as_ref().map_or_else(String::new, |kept| {
        let (head, tail) = (&kept.head, &kept.tail);
        // What was dropped lies between lines of its own.
        let gap: &[u8] = if kept.dropped_bytes > 0 { b"\n" } else { b"" };
        String::from_utf8_lossy(&[head, gap, tail].concat()).into_owned()
    });
    let result = wrapper::result_of(&stdout)
        .ok_or_else(|| Failing::new("the wrapper printed no result line"))?;
    let said = |what: &str| {
        let more = result.misc.trim();
        Failing::new(match more {
            "" => what.to_owned(),
            more => format!("{what}: {more}"),
        })
    };
    // GenericWrapper4AC reports a run that is out of memory as one that is out of time.
    let is_out_of_memory = result.misc.contains("memory limit was exceeded");
    let answer = match result.status {
        WrapperStatus::Timeout if !is_out_of_memory => return Ok(None),
        WrapperStatus::Crashed => return Err(said("the wrapper reports a crash")),
        WrapperStatus::Abort => return Err(said("the wrapper asks to stop this configuration")),
        WrapperStatus::Memout | WrapperStatus::Timeout => {
            let failing = said("the wrapper reports that memory ran out");
            let guard = Some(Guard::Memory);
            return Err(Failing { guard, ..failing });
        }
        WrapperStatus::Sat => Some("SAT".to_owned()),
        WrapperStatus::Unsat => Some("UNSAT".to_owned()),
        WrapperStatus::Success => None,
    };
    // Success past the cutoff counts as out of time, as for ParamILS and SMAC.
    if (result.runtime).is_some_and(|runtime| limit.is_passed_by(runtime)) {
        return Ok(None);
    }
    let text = result.line;
    let Some(scale) = scale else {
        let reading = Reading {
            text,
            score: None,
            reward: 1.0,
            is_clamped: false,
        };
        return Ok(Some((reading, answer)));
    };
    let cost = result
        .cost
        .ok_or_else(|| Failing::new("the wrapper reports no cost"))?;
    let (reward, is_clamped) = scale.reward(cost);
    let reading = Reading {
        text,
        score: Some(cost),
        reward,
        is_clamped,
    };
    Ok(Some((reading, Some(cost.to_string()))))
}

/// A pull that could not be run, through no fault of its own.
fn lost(why: String) -> Ending {
    Ending::Lost { why }
}

/// A pull that the runner refused. If the command is at fault, the pull failed. Otherwise it is lost.
fn not_run(pull: Pull, error: &LimitError, is_always_the_same: bool) -> Ending {
    let why = error.to_string();
    if !error.is_caused_by_command() {
        return lost(why);
    }
    let outcome = Outcome::failed(pull, Failing::new(why), Some(0.0), Measured::default());
    let is_elsewhere = match error {
        LimitError::Exec { errno, .. } => errno.0 != libc::E2BIG && is_always_the_same,
        LimitError::Directory { .. } => is_always_the_same,
        _ => false,
    };
    if is_elsewhere {
        Ending::NotStarted(Box::new(outcome))
    } else {
        Ending::Brought(Box::new(outcome))
    }
}
