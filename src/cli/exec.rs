//! `captime exec`: one command under limits, with a report.
//!
//! It is started as often as `timeout`, so it must start as fast. [`Exec::read_plainly`] reads a command line in the
//! usual form before clap builds its tree. Anything else goes through clap, which then explains what is wrong.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::quantity;
use captime_limit::{
    Cause, Contain, Finished, Foreground, Input, Launch, Level, LimitError, Limits, Output, Report,
};

use super::Failure;

const AFTER_HELP: &str = "\
Examples:
  captime exec --wall 2.5s -- sleep 10
  captime exec --cpu 60s --memory 2GiB --report run.json -- solver instance.cnf
  captime exec --wall 1m --output-limit 64KiB --report - -- ./flaky --seed 1

The report is one JSON object: cause (none, wall, cpu, memory, cancelled), exit_code, signal, wall_seconds, cpu_seconds, \
user_seconds, system_seconds, peak_memory_bytes, left_behind, level, contain, cpu_exact, memory_exact, command, and stdout and \
stderr if captured. If cpu_exact or memory_exact is false, that number is a lower bound.

Exit codes: the command's own; 124 a limit ended it; 128 + signal a signal ended it (also if the signal went to captime); \
125 captime itself failed; 126 the command cannot be executed; 127 command not found. To be certain, use `--report`.";

/// Run one command under limits and report what it used.
///
/// Ends the whole process tree when the command ends, when it reaches a limit, and when captime is interrupted or killed.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Exec {
    /// Wall-clock time from the start of the command: 2.5s, 100ms, 1h 30m
    #[arg(long, value_name = "TIME", value_parser = time)]
    wall: Option<Duration>,
    /// CPU time of the whole process tree
    #[arg(long, value_name = "TIME", value_parser = time)]
    cpu: Option<Duration>,
    /// Memory of the whole process tree: 200MiB, 2GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// Time between SIGTERM and SIGKILL
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "0s")]
    grace: Duration,
    /// How to enforce the limits: auto, cgroup2 or subreaper
    #[arg(long, value_name = "LEVEL", value_parser = level, default_value = "auto")]
    level: Choice,
    /// What to keep the command from: off, pids (other processes), full (also network and temporary files), or auto
    #[arg(long, value_name = "WHAT", value_parser = contain, default_value = "auto")]
    contain: Wish,
    /// CPUs to run on, such as 0,2-3
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    cpus: Option<CpuList>,
    /// Write the report to FILE; `-` prints it as the last line of stderr
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Capture stdout and stderr into the report, at most this many bytes of each
    #[arg(long, value_name = "SIZE", value_parser = size)]
    output_limit: Option<u64>,
    /// The command's stdin; `-` passes captime's own stdin on [default: empty]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Set an environment variable of the command; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<Variable>,
    /// The folder to run the command in [default: the current one]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Stop when captime's own stdin ends, for launchers at the other end of a connection
    #[arg(long)]
    stop_on_stdin_eof: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// A level, or the best there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice(Option<Level>);

/// A containment, or what is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wish(Option<Contain>);

/// CPUs by number.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CpuList(Vec<usize>);

/// An environment variable and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable(String, String);

/// A time span on the command line.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let seconds =
        quantity::parse_seconds(text).map_err(|error| format!("{error}; {}", error.hint()))?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is no time span"))
}

fn size(text: &str) -> Result<u64, String> {
    quantity::parse_bytes(text).map_err(|error| format!("{error}; {}", error.hint()))
}

fn level(text: &str) -> Result<Choice, String> {
    if text == "auto" {
        return Ok(Choice(None));
    }
    text.parse()
        .map(|level| Choice(Some(level)))
        .map_err(|()| "write auto, cgroup2 or subreaper".to_owned())
}

fn contain(text: &str) -> Result<Wish, String> {
    if text == "auto" {
        return Ok(Wish(None));
    }
    text.parse()
        .map(|contain| Wish(Some(contain)))
        .map_err(|()| "write auto, off, pids or full".to_owned())
}

fn variable(text: &str) -> Result<Variable, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !text.contains('\0') => {
            Ok(Variable(name.to_owned(), value.to_owned()))
        }
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

fn cpu_list(text: &str) -> Result<CpuList, String> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|&cpu| cpu < 1024);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => cpus.extend(first..=last),
            _ => return Err("write CPU numbers like 0,2-3".to_owned()),
        }
    }
    Ok(CpuList(cpus))
}

impl Exec {
    /// Reads `--flag VALUE`, `--flag=VALUE` and the command. `None` for anything else, which is left to clap.
    fn read_plainly(arguments: &[OsString]) -> Option<Self> {
        let mut exec = Self {
            wall: None,
            cpu: None,
            memory: None,
            grace: Duration::ZERO,
            level: Choice(None),
            contain: Wish(None),
            cpus: None,
            report: None,
            output_limit: None,
            input: None,
            env: Vec::new(),
            directory: None,
            stop_on_stdin_eof: false,
            command: Vec::new(),
        };
        let mut seen = Vec::new();
        let mut at = 0;
        while let Some(argument) = arguments.get(at) {
            let bytes = argument.as_encoded_bytes();
            at += 1;
            if bytes == b"--" {
                exec.command = arguments[at..].to_vec();
                break;
            }
            if !bytes.starts_with(b"-") || bytes == b"-" {
                exec.command = arguments[at - 1..].to_vec();
                break;
            }
            let text = argument.to_str()?;
            let (flag, given) = match text.split_once('=') {
                Some((flag, value)) => (flag, Some(OsStr::new(value))),
                None => (text, None),
            };
            if seen.contains(&flag) && flag != "--env" {
                return None;
            }
            seen.push(flag);
            if flag == "--stop-on-stdin-eof" && given.is_none() {
                exec.stop_on_stdin_eof = true;
                continue;
            }
            let value = if let Some(value) = given {
                value
            } else {
                at += 1;
                arguments.get(at - 1)?
            };
            // An empty value, or one that looks like a flag, is left to clap.
            if value.is_empty() || value.as_encoded_bytes().starts_with(b"--") {
                return None;
            }
            exec.set(flag, value)?;
        }
        (!exec.command.is_empty()).then_some(exec)
    }

    fn set(&mut self, flag: &str, value: &OsStr) -> Option<()> {
        let text = || value.to_str();
        let is_negative = value.as_encoded_bytes().starts_with(b"-");
        match flag {
            "--report" if !is_negative || value == "-" => self.report = Some(value.into()),
            "--input" if !is_negative || value == "-" => self.input = Some(value.into()),
            _ if is_negative => return None,
            "--env" => self.env.push(variable(text()?).ok()?),
            "--directory" => self.directory = Some(value.into()),
            "--wall" => self.wall = Some(time(text()?).ok()?),
            "--cpu" => self.cpu = Some(time(text()?).ok()?),
            "--memory" => self.memory = Some(size(text()?).ok()?),
            "--grace" => self.grace = time(text()?).ok()?,
            "--level" => self.level = level(text()?).ok()?,
            "--contain" => self.contain = contain(text()?).ok()?,
            "--cpus" => self.cpus = Some(cpu_list(text()?).ok()?),
            "--output-limit" => self.output_limit = Some(size(text()?).ok()?),
            _ => return None,
        }
        Some(())
    }

    fn foreground(&self) -> Foreground {
        Foreground {
            launch: Launch {
                command: self.command.clone(),
                env: (self.env.iter())
                    .map(|Variable(name, value)| (name.into(), value.into()))
                    .collect(),
                directory: self.directory.clone(),
                input: match &self.input {
                    None => Input::Empty,
                    Some(path) if path == Path::new("-") => Input::Inherit,
                    Some(path) => Input::File(path.clone()),
                },
                output: match self.output_limit {
                    None => Output::Inherit,
                    Some(limit) => Output::Capture { limit },
                },
            },
            limits: Limits {
                wall: self.wall,
                cpu: self.cpu,
                memory: self.memory,
                grace: self.grace,
                cpus: self.cpus.as_ref().map(|list| list.0.clone()),
            },
            level: self.level.0,
            contain: self.contain.0,
            stop_on_stdin_eof: self.stop_on_stdin_eof,
        }
    }
}

/// Runs `captime exec` if its arguments are in the usual form. Returns the exit status.
pub(super) fn quickly(arguments: &[OsString]) -> Option<u8> {
    Exec::read_plainly(arguments).map(|exec| run(&exec))
}

/// Runs one command and returns the exit status.
pub(super) fn run(exec: &Exec) -> u8 {
    let run = exec.foreground();
    let ended = check(exec, &run)
        .and_then(|()| Destination::open(exec.report.as_deref()))
        .map(|to| finish(run.run(), &run, to));
    if exec.memory.is_some() {
        captime_limit::leave_shelter();
    }
    ended.unwrap_or_else(|failure| {
        failure.print(&mut std::io::stderr().lock());
        125
    })
}

/// Refuses what makes no sense before anything is started.
fn check(exec: &Exec, run: &Foreground) -> Result<(), Failure> {
    run.limits.check().map_err(failure)?;
    if exec.stop_on_stdin_eof && run.launch.input == Input::Inherit {
        return Err(Failure::usage(
            "`--stop-on-stdin-eof` and `--input -` both need stdin",
        ));
    }
    Ok(())
}

fn failure(error: LimitError) -> Failure {
    Failure::internal(&error).hint(error.hint())
}

/// Where the report goes. Opened before the run, so that a bad path is noticed in time.
enum Destination {
    Nowhere,
    Stderr,
    File(File, PathBuf),
}

impl Destination {
    fn open(path: Option<&Path>) -> Result<Self, Failure> {
        match path {
            None => Ok(Self::Nowhere),
            Some(path) if path == Path::new("-") => Ok(Self::Stderr),
            Some(path) => File::options()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(path)
                .map(|file| Self::File(file, path.to_owned()))
                .map_err(|error| {
                    Failure::internal(format!(
                        "cannot write the report `{}`: {error}",
                        path.display()
                    ))
                }),
        }
    }

    fn write(self, value: &impl serde::Serialize) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(value).map_err(Failure::internal)?;
        line.push(b'\n');
        match self {
            Self::Nowhere => Ok(()),
            Self::Stderr => std::io::stderr()
                .write_all(&line)
                .map_err(Failure::internal),
            Self::File(mut file, path) => file.write_all(&line).map_err(|error| {
                Failure::internal(format!(
                    "cannot write the report `{}`: {error}",
                    path.display()
                ))
            }),
        }
    }
}

/// The report if there was no run.
#[derive(serde::Serialize)]
struct NoRun<'a> {
    error: String,
    command: Vec<std::borrow::Cow<'a, str>>,
}

/// Writes the report and returns the exit status.
fn finish(finished: Finished, run: &Foreground, to: Destination) -> u8 {
    let (written, status) = match &finished.result {
        Ok(report) => {
            if let Some(line) = limit_hit(report, &run.limits) {
                let _ = writeln!(std::io::stderr(), "captime: {line}");
            }
            (to.write(report), status(report, finished.asked_by))
        }
        Err(error) => {
            failure(error.clone()).print(&mut std::io::stderr().lock());
            let command = &run.launch.command;
            let no_run = NoRun {
                error: error.to_string(),
                command: command.iter().map(|part| part.to_string_lossy()).collect(),
            };
            (to.write(&no_run), error.exit_status())
        }
    };
    match written {
        Ok(()) => status,
        Err(failure) => {
            failure.print(&mut std::io::stderr().lock());
            125
        }
    }
}

/// One line for people about a limit that ended the run.
fn limit_hit(report: &Report, limits: &Limits) -> Option<String> {
    let seconds = |limit: Option<Duration>| limit.unwrap_or_default().as_secs_f64();
    let used = match report.cause {
        Cause::Wall => format!(
            "wall limit of {} s reached after {:.3} s",
            seconds(limits.wall),
            report.wall_seconds
        ),
        Cause::Cpu => format!(
            "CPU limit of {} s reached: {:.3} s used",
            seconds(limits.cpu),
            report.cpu_seconds
        ),
        Cause::Memory => format!(
            "memory limit of {} reached",
            bytesize::ByteSize(limits.memory.unwrap_or_default())
                .display()
                .iec()
        ),
        Cause::None | Cause::Cancelled => return None,
    };
    Some(match (report.left_behind, report.exit_code) {
        (_, Some(code)) => format!("{used}; the command had ended with exit code {code}"),
        (0, None) => format!("{used}; ended the command"),
        (1, None) => format!("{used}; ended the command and 1 more process"),
        (others, None) => format!("{used}; ended the command and {others} more processes"),
    })
}

fn status(report: &Report, asked_by: Option<i32>) -> u8 {
    let by_signal = |signal: i32| u8::try_from(128 + signal).unwrap_or(255);
    match (report.cause, report.exit_code, report.signal) {
        (cause, ..) if cause.is_limit() => 124,
        (Cause::Cancelled, ..) => by_signal(asked_by.unwrap_or(libc::SIGTERM)),
        (_, Some(code), _) => code as u8,
        (_, None, signal) => by_signal(signal.unwrap_or(libc::SIGKILL)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use proptest::prelude::*;

    #[derive(Parser)]
    struct Whole {
        #[command(flatten)]
        exec: Exec,
    }

    fn by_clap(arguments: &[OsString]) -> Option<Exec> {
        let whole = [OsString::from("exec")]
            .into_iter()
            .chain(arguments.to_vec());
        Whole::try_parse_from(whole).ok().map(|whole| whole.exec)
    }

    proptest! {
        #[test]
        fn the_quick_reader_never_disagrees_with_clap(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "--wall", "--wall=2.5s", "--cpu", "--memory", "--memory=1GiB", "--grace", "--level", "--cpus",
                    "--level=subreaper", "--report", "--report=-", "--input", "--output-limit=5", "--stop-on-stdin-eof",
                    "--stop-on-stdin-eof=1", "--contain", "--contain=pids", "off", "--", "-", "-x", "--help", "--nonsense", "1s", "200MiB", "auto", "cgroup2",
                    "0,2-3", "file", "sh", "", "-1s", "--wall=", "--input=-", "--env", "--env=A=1", "B=2", "=", "--directory", "--directory=/",
                ]),
                0..7,
            ),
        ) {
            let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
            if let Some(read) = Exec::read_plainly(&words) {
                prop_assert_eq!(Some(read), by_clap(&words));
            }
        }
    }

    #[test]
    fn the_ordinary_form_is_read_quickly() {
        let words = [
            "--wall",
            "2.5s",
            "--memory=200MiB",
            "--report",
            "-",
            "--",
            "sh",
            "-c",
            "x",
        ];
        let words = words.map(OsString::from);
        let exec = Exec::read_plainly(&words).unwrap();
        assert_eq!(exec.wall, Some(Duration::from_millis(2500)));
        assert_eq!(exec.memory, Some(200 << 20));
        assert_eq!(exec.command, ["sh", "-c", "x"]);
    }
}
