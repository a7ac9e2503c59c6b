//! `captime agent`: runs pulls on this node for a captime elsewhere.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream as Pair;
use std::path::{Path, PathBuf};

use clap::Args;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::{Exit, Failure, exit_code};
use crate::cluster::agent::serve;
use crate::cluster::{NodeFacts, open_work};
use crate::orchestrator::Signals;

const EXAMPLES: &str = "\
Examples:
  captime agent                           wait for frames on stdin, with scratch folders in /tmp
  captime agent --scratch /local/ssd      the same, with scratch folders on another disk

In a scenario:
  slots: {slurm: auto}                    an agent per node of the allocation
  slots: {ssh: [alpha, beta]}             an agent per host
  slots: {launch: [[docker, exec, -i, box, captime, agent]]}";

/// Run pulls on this node for captime on another machine.
///
/// You do not start agents yourself: `captime run` does, for a scenario that names nodes in `slots`. An agent exchanges
/// frames on stdin and stdout. When its stdin closes, it ends every process that it started and exits.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit_code::PLAIN))]
pub struct AgentArgs {
    /// Where to make scratch folders; by default $SLURM_TMPDIR, $TMPDIR or /tmp
    #[arg(long, value_name = "FOLDER")]
    scratch: Option<PathBuf>,
}

/// The beginning of the name of every agent's folder.
const PREFIX: &str = "captime-agent-";

/// Runs the command.
pub fn run(args: &AgentArgs) -> Result<Exit, Failure> {
    let (input, output) = take_streams().map_err(Failure::internal)?;
    let parent = args.scratch.clone().unwrap_or_else(|| {
        let of = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        of("SLURM_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from)
    });
    sweep(&parent);
    let folder = tempfile::Builder::new()
        .prefix(PREFIX)
        .tempdir_in(&parent)
        .map_err(|error| Failure::cannot_write(&parent, error))?;
    // Held as long as this process lives.
    let lock = File::create(folder.path().join("lock")).and_then(|lock| {
        lock.lock()?;
        Ok(lock)
    });
    let lock = lock.map_err(|error| Failure::cannot_write(folder.path(), error))?;
    captime_limit::wake_promptly();
    let runtime = super::runtime()?;
    let scratch = folder.path().to_owned();
    let left = runtime.block_on(async move {
        let mut signals = Signals::listen()?;
        let (input, output) = (to_async(input)?, from_async(output)?);
        let stopped = async move { signals.next().await };
        let open = |open| open_work(open, scratch);
        Ok::<_, std::io::Error>(serve(input, output, NodeFacts::here(), stopped, open).await)
    });
    drop((folder, lock));
    // A read that waits for the other side ends with the process.
    runtime.shutdown_background();
    let left = left.map_err(Failure::internal)?;
    if left.is_regular() {
        Ok(Exit::Done)
    } else {
        Err(Failure::internal(left))
    }
}

/// Takes stdin and stdout for the frames. Anything else that this process, or one that it starts, writes to stdout goes
/// to stderr.
fn take_streams() -> std::io::Result<(File, File)> {
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    let output = std::io::stdout().as_fd().try_clone_to_owned()?;
    let nothing = File::open("/dev/null")?;
    nix::unistd::dup2_stdin(&nothing)?;
    nix::unistd::dup2_stdout(std::io::stderr().as_fd())?;
    Ok((input.into(), output.into()))
}

/// Makes any input stream asynchronous. A pipe is opened once more, because its mode may be shared with other processes.
/// Other streams, such as files, which epoll refuses, get a thread that reads them.
fn to_async(mut input: File) -> std::io::Result<Box<dyn AsyncRead + Unpin>> {
    let again = opened_again(&input, OpenOptions::new().read(true));
    if let Ok(receiver) = again.and_then(pipe::Receiver::from_file) {
        return Ok(Box::new(receiver));
    }
    let (ours, mut theirs) = Pair::pair()?;
    std::thread::Builder::new().spawn(move || pump(&mut input, &mut theirs))?;
    ours.set_nonblocking(true)?;
    Ok(Box::new(UnixStream::from_std(ours)?))
}

/// The same for an output stream.
fn from_async(mut output: File) -> std::io::Result<Box<dyn AsyncWrite + Unpin + Send>> {
    let again = opened_again(&output, OpenOptions::new().write(true));
    if let Ok(sender) = again.and_then(pipe::Sender::from_file) {
        return Ok(Box::new(sender));
    }
    let (ours, mut theirs) = Pair::pair()?;
    std::thread::Builder::new().spawn(move || pump(&mut theirs, &mut output))?;
    ours.set_nonblocking(true)?;
    Ok(Box::new(UnixStream::from_std(ours)?))
}

/// Opens a pipe once more. Nothing else is opened: a file would begin at its start, and a terminal would be shared anyway.
fn opened_again(stream: &File, how: &mut OpenOptions) -> std::io::Result<File> {
    if !stream.metadata()?.file_type().is_fifo() {
        return Err(ErrorKind::Unsupported.into());
    }
    let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
    how.custom_flags(libc::O_NONBLOCK).open(path)
}

/// Passes on bytes as soon as they arrive. `io::copy` would splice, and a splice between a pipe and a socket may wait
/// for more.
fn pump(from: &mut impl Read, to: &mut impl Write) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
}

/// Removes the folders of agents that were killed.
fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let is_agents = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_agents
            && is_folder
            && let Ok(lock) = File::open(entry.path().join("lock"))
            && lock.try_lock().is_ok()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
