//! From a [`Launch`] to a running process.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::capture::Stream;
use super::contain::Contain;
use super::error::LimitError;
use super::launch::{Input, Launch, Limits, Output};
use super::sys::{self, ChildPlan, ChildPlanParts, CloneMode, Page, SpawnFailure, Spawned, Step};

/// Where programs are looked for without `PATH`, as `execvp` does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A started command and the reading ends of its output.
#[derive(Debug)]
pub(super) struct Started {
    pub child: Spawned,
    /// Of stdout and stderr, where captured.
    pub streams: [Option<Stream>; 2],
}

/// A command ready to start: everything that needs memory or descriptors has been done.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    plan: ChildPlan,
    launch: &'a Launch,
    limits: &'a Limits,
    sinks: [Sink; 2],
    /// Kept open until the start.
    _input: Option<OwnedFd>,
}

impl<'a> Prepared<'a> {
    /// Gets everything ready. `stdin` is what commands get that inherit it.
    pub(super) fn new(
        launch: &'a Launch,
        limits: &'a Limits,
        stdin: BorrowedFd<'_>,
        timer_slack: u64,
        contain: Contain,
    ) -> Result<Self, LimitError> {
        let program = launch.command.first().ok_or(LimitError::NoCommand)?;
        let environment = environment(&launch.env);
        let input = open_input(&launch.input)?;
        let sinks = Sink::open(&launch.output)?;
        let (own_stdout, own_stderr) = (io::stdout(), io::stderr());
        let descriptors = [
            input.as_ref().map_or(stdin.as_raw_fd(), AsRawFd::as_raw_fd),
            sinks[0].written().unwrap_or(own_stdout.as_raw_fd()),
            sinks[1].written().unwrap_or(own_stderr.as_raw_fd()),
        ];
        let plan = ChildPlan::new(ChildPlanParts {
            candidates: likely(candidates(program, &environment)?),
            arguments: texts("an argument", launch.command.iter().cloned())?,
            environment: texts("a variable", environment.into_iter().map(joined))?,
            descriptors,
            directory: launch
                .directory
                .as_ref()
                .map(|directory| text("the directory", directory.clone().into_os_string()))
                .transpose()?,
            cpus: limits.cpus.clone(),
            timer_slack,
            contain,
        });
        Ok(Self {
            plan,
            launch,
            limits,
            sinks,
            _input: input,
        })
    }

    /// Starts the command in `group`; returns once it has been executed.
    pub(super) fn start(
        mut self,
        group: Option<BorrowedFd<'_>>,
        page: &Page,
    ) -> Result<Started, LimitError> {
        let birth = match self.limits.memory {
            None => CloneMode::Shared,
            Some(_) => CloneMode::Copied,
        };
        let child = sys::spawn(&mut self.plan, group, page, birth)
            .map_err(|failure| explain(failure, self.launch, self.limits))?;
        Ok(Started {
            child,
            streams: self.sinks.map(Sink::into_stream),
        })
    }
}

fn explain(failure: SpawnFailure, launch: &Launch, limits: &Limits) -> LimitError {
    let command = launch
        .command
        .first()
        .map(|program| program.to_string_lossy().into_owned())
        .unwrap_or_default();
    match failure {
        SpawnFailure::Clone(errno) => LimitError::Spawn {
            command,
            errno: errno.into(),
            memory: limits.memory,
        },
        SpawnFailure::Child(_, errno) if is_memory(errno, launch, limits) => LimitError::Spawn {
            command,
            errno: libc::ENOMEM.into(),
            memory: limits.memory,
        },
        SpawnFailure::Child(Step::Exec, errno) => LimitError::Exec {
            command,
            errno: errno.into(),
        },
        SpawnFailure::Child(Step::Directory, errno) => LimitError::Directory {
            directory: launch
                .directory
                .as_deref()
                .map(|directory| directory.display().to_string())
                .unwrap_or_default(),
            errno: errno.into(),
        },
        SpawnFailure::Child(Step::Cpus, errno) => LimitError::Cpus {
            cpus: limits.cpus.clone().unwrap_or_default(),
            errno: errno.into(),
        },
        SpawnFailure::Child(Step::Descriptors, errno) => {
            LimitError::system("give the command its input and output", errno)
        }
        SpawnFailure::Child(Step::Contain, errno) => {
            LimitError::system("give the command its own `/tmp` and `/dev/shm`", errno)
        }
        SpawnFailure::Child(Step::Session, errno) => {
            LimitError::system("give the command its own session", errno)
        }
    }
}

/// Whether it was the memory limit that kept a command from starting. `execve` says "argument list too long" too when it
/// gets no page to copy the arguments to; few arguments cannot be too long.
fn is_memory(errno: i32, launch: &Launch, limits: &Limits) -> bool {
    const FEW_BYTES: usize = 64 << 10;
    let own: usize = std::env::vars_os()
        .map(|(name, value)| name.len() + value.len() + 2)
        .sum();
    let given = launch.command.iter().map(|argument| argument.len() + 1);
    let set = launch
        .env
        .iter()
        .map(|(name, value)| name.len() + value.len() + 2);
    let bytes = own + given.chain(set).sum::<usize>();
    limits.memory.is_some()
        && (errno == libc::ENOMEM || (errno == libc::E2BIG && bytes < FEW_BYTES))
}

/// The environment of this process with these variables on top.
fn environment(set: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let mut all: Vec<_> = std::env::vars_os()
        .filter(|(name, _)| set.iter().all(|(other, _)| other != name))
        .collect();
    for (at, (name, value)) in set.iter().enumerate() {
        // Of a variable given twice the last counts.
        if set[at + 1..].iter().all(|(later, _)| later != name) {
            all.push((name.clone(), value.clone()));
        }
    }
    all
}

fn joined((name, value): (OsString, OsString)) -> OsString {
    let mut text = name;
    text.push("=");
    text.push(value);
    text
}

/// The files that may be meant by `program`, in the order in which they are tried.
fn candidates(
    program: &OsStr,
    environment: &[(OsString, OsString)],
) -> Result<Vec<CString>, LimitError> {
    if program.is_empty() || program.as_bytes().contains(&b'/') {
        return Ok(vec![text("the command", program.to_owned())?]);
    }
    let path = environment
        .iter()
        .find(|(name, _)| name == "PATH")
        .map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value);
    path.as_bytes()
        .split(|&byte| byte == b':')
        .map(|folder| {
            let folder: &[u8] = if folder.is_empty() { b"." } else { folder };
            let file = Path::new(OsStr::from_bytes(folder)).join(program);
            text("the command", file.into_os_string())
        })
        .collect()
}

/// Those of the files that may be there, if any may: an attempt to execute a file costs more than to look for it.
fn likely(files: Vec<CString>) -> Vec<CString> {
    let may_be_there = |file: &CString| {
        let path = Path::new(OsStr::from_bytes(file.as_bytes()));
        // Other paths depend on the directory of the command.
        !path.is_absolute() || path.try_exists().unwrap_or(true)
    };
    if files.len() <= 1 {
        return files;
    }
    let there: Vec<CString> = files
        .iter()
        .filter(|file| may_be_there(file))
        .cloned()
        .collect();
    if there.is_empty() { files } else { there }
}

/// Whether there is still a file that `launch` could run.
///
/// For scripts: the kernel finds one and starts its interpreter, and that opens it once more.
pub fn is_program_there(launch: &Launch) -> bool {
    let folder = launch.directory.as_deref().unwrap_or(Path::new("."));
    let is_there = |file: CString| {
        folder
            .join(OsStr::from_bytes(file.as_bytes()))
            .try_exists()
            // Not known is not known to be gone.
            .unwrap_or(true)
    };
    launch.command.first().is_some_and(|program| {
        candidates(program, &environment(&launch.env))
            .is_ok_and(|files| files.into_iter().any(is_there))
    })
}

fn text(what: &str, bytes: OsString) -> Result<CString, LimitError> {
    CString::new(bytes.into_vec()).map_err(|error| LimitError::Nul {
        what: what.to_owned(),
        text: String::from_utf8_lossy(&error.into_vec()).replace('\0', "\\0"),
    })
}

fn texts(what: &str, all: impl Iterator<Item = OsString>) -> Result<Vec<CString>, LimitError> {
    all.map(|bytes| text(what, bytes)).collect()
}

/// Opens what the command reads; `None` if it inherits stdin.
fn open_input(input: &Input) -> Result<Option<OwnedFd>, LimitError> {
    let path = match input {
        Input::Inherit => return Ok(None),
        Input::Empty => Path::new("/dev/null"),
        Input::File(path) => path,
    };
    // A named pipe without a writer must not block this process. The command reads it in the ordinary way.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = rustix::fs::open(path, flags, Mode::empty()).and_then(|file| {
        rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
        Ok(file)
    });
    opened.map(Some).map_err(|error| LimitError::Input {
        path: path.display().to_string(),
        errno: error.into(),
    })
}

/// The command's end of one output stream, and the reading end if it is captured.
#[derive(Debug)]
enum Sink {
    /// Inherited.
    Ours,
    File(OwnedFd),
    Pipe(Stream, io::PipeWriter),
}

impl Sink {
    /// Both streams of one command.
    fn open(output: &Output) -> Result<[Self; 2], LimitError> {
        match output {
            Output::Inherit => Ok([Self::Ours, Self::Ours]),
            Output::Discard => Self::file(Path::new("/dev/null")),
            Output::File(path) => Self::file(path),
            Output::Capture { limit } => Ok([Self::pipe(*limit)?, Self::pipe(*limit)?]),
        }
    }

    fn file(path: &Path) -> Result<[Self; 2], LimitError> {
        // A named pipe without a reader must not block this process.
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::TRUNC
            | OFlags::APPEND
            | OFlags::CLOEXEC
            | OFlags::NONBLOCK;
        let failed = |error: rustix::io::Errno| LimitError::Output {
            path: path.display().to_string(),
            errno: error.into(),
        };
        let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
        rustix::fs::fcntl_setfl(&file, OFlags::APPEND).map_err(failed)?;
        let again = rustix::io::dup(&file).map_err(failed)?;
        Ok([Self::File(file), Self::File(again)])
    }

    fn pipe(limit: u64) -> Result<Self, LimitError> {
        let (reader, writer) =
            io::pipe().map_err(|error| LimitError::system("make a pipe for the output", error))?;
        rustix::io::ioctl_fionbio(&reader, true)
            .map_err(|error| LimitError::system("make a pipe for the output", error))?;
        Ok(Self::Pipe(Stream::new(reader, limit), writer))
    }

    /// The descriptor the command gets, unless it inherits one.
    fn written(&self) -> Option<i32> {
        match self {
            Self::Ours => None,
            Self::File(file) => Some(file.as_raw_fd()),
            Self::Pipe(_, writer) => Some(writer.as_raw_fd()),
        }
    }

    /// The reading end; closes the command's.
    fn into_stream(self) -> Option<Stream> {
        match self {
            Self::Pipe(stream, _) => Some(stream),
            Self::Ours | Self::File(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_looked_for_on_the_path_of_the_command() {
        let environment = [("PATH".into(), "/a::/b".into())];
        let found = candidates(OsStr::new("x"), &environment).unwrap();
        assert_eq!(found, [c"/a/x", c"./x", c"/b/x"].map(CString::from));
        let direct = candidates(OsStr::new("./x"), &environment).unwrap();
        assert_eq!(direct, [CString::from(c"./x")]);
    }

    #[test]
    fn a_program_is_there_as_long_as_one_of_its_files_is() {
        let folder = tempfile::tempdir().unwrap();
        let mut launch = Launch::new(["./x"]);
        launch.directory = Some(folder.path().to_owned());
        assert!(!is_program_there(&launch));
        std::fs::write(folder.path().join("x"), "").unwrap();
        assert!(is_program_there(&launch));
        launch.command = vec!["x".into()];
        assert!(!is_program_there(&launch), "not on the path");
        launch.env = vec![("PATH".into(), "/nowhere:".into())];
        assert!(is_program_there(&launch));
    }

    #[test]
    fn a_limit_that_leaves_no_page_for_the_arguments_is_told_from_too_many_arguments() {
        let limits = Limits {
            memory: Some(128 << 10),
            ..Limits::default()
        };
        let few = Launch::new(["sleep", "20"]);
        let many = Launch::new(vec!["x".repeat(100_000); 100]);
        let failed = |launch: &Launch, limits: &Limits| {
            explain(SpawnFailure::Child(Step::Exec, libc::E2BIG), launch, limits)
        };
        let is_memory = |error: &LimitError| {
            error
                .hint()
                .is_some_and(|hint| hint.contains("memory limit"))
        };
        assert!(is_memory(&failed(&few, &limits)));
        assert!(!is_memory(&failed(&many, &limits)));
        assert!(!is_memory(&failed(&few, &Limits::default())));
    }

    #[test]
    fn variables_replace_ours_and_the_last_one_counts() {
        let set = [
            ("PATH".into(), "/first".into()),
            ("PATH".into(), "/second".into()),
        ];
        let all = environment(&set);
        let paths: Vec<_> = all.iter().filter(|(name, _)| name == "PATH").collect();
        assert_eq!(paths, [&("PATH".into(), "/second".into())]);
    }
}
