//! The orchestrator's end of the stream to one agent: starts the agent, greets it, listens to it, and restarts it when
//! it is lost.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

use super::frames::{self, FrameError, FrameReader};
use super::message::{FromAgent, Open, PullEnd, ToAgent};
use super::node::NodeFacts;
use super::places::is_allocation_over;
use crate::round::Round;

/// How long an agent may take to say hello, and be silent until it is ready. A Slurm step may have to wait for its
/// node.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long an agent may take to leave.
const FAREWELL: Duration = Duration::from_secs(12);

/// How many seconds to wait before an agent is restarted, by the number of failed attempts in a row.
const PAUSES: [u64; 6] = [1, 2, 5, 10, 30, 60];

/// How a shell exits that does not find a program.
const NOT_FOUND: i32 = 127;

/// How many bytes to keep of what an agent's command writes to stderr.
const STDERR: usize = 2000;

/// Where an agent runs, and the command that connects to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its name for people: a host, a node, or the command.
    pub name: String,
    /// Connects its stdin and stdout with those of `captime agent`.
    pub command: Vec<String>,
    /// How many pulls at a time. By default, the agent decides.
    pub slots: Option<usize>,
}

/// What happened to a link.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LinkEvent {
    /// The agent is ready.
    Up {
        node: Box<NodeFacts>,
        slots: usize,
        enforcement: Value,
        shared_cpus: Vec<usize>,
    },
    /// A pull ended.
    Ended {
        slot: usize,
        round: Round,
        end: Box<PullEnd>,
    },
    /// The agent is lost, with everything it was running. It is restarted after a pause.
    Down { why: String },
    /// Pulls cannot run there, and trying again would not help.
    Withdrawn { why: String },
    /// The agent has left, as requested.
    Closed,
}

/// What all links of a run share.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub(super) open: Open,
    pub(super) lost_after: Duration,
}

/// One link. It works until its commands end.
pub(super) struct Link {
    pub(super) place: Place,
    pub(super) number: usize,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: UnboundedReceiver<ToAgent>,
    pub(super) events: UnboundedSender<(usize, LinkEvent)>,
}

/// How a connection ended.
enum Broken {
    /// It may work the next time.
    Lost(String),
    /// It will not.
    Useless(String),
    /// The run is over.
    Over,
}

impl From<FrameError> for Broken {
    fn from(error: FrameError) -> Self {
        let error = match error {
            FrameError::Stream(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                FrameError::Closed
            }
            error => error,
        };
        let hint = error.hint().map(|hint| format!(" ({hint})"));
        let why = format!("{error}{}", hint.unwrap_or_default());
        match error {
            FrameError::Stray { .. } | FrameError::Version { .. } | FrameError::Unreadable(_) => {
                Self::Useless(why)
            }
            _ => Self::Lost(why),
        }
    }
}

impl Link {
    fn tell(&self, event: LinkEvent) {
        // The receiver is gone once the run is over.
        let _ = self.events.send((self.number, event));
    }

    /// Keeps the link up until the run is over or the node turns out to be useless.
    pub(super) async fn keep(mut self) {
        let mut failures = 0;
        loop {
            let mut was_up = false;
            match self.connect(&mut was_up).await {
                Broken::Over => break,
                Broken::Useless(why) => {
                    self.tell(LinkEvent::Withdrawn { why });
                    break;
                }
                Broken::Lost(why) => self.tell(LinkEvent::Down { why }),
            }
            failures = if was_up { 1 } else { failures + 1 };
            let pause = Duration::from_secs(PAUSES[(failures - 1).min(PAUSES.len() - 1)]);
            if self.is_over_within(pause).await {
                break;
            }
        }
        self.tell(LinkEvent::Closed);
    }

    /// Waits. True if the run is over before.
    async fn is_over_within(&mut self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        loop {
            // Messages meant for the lost agent are void: its pulls were given to others.
            match tokio::time::timeout_at(until, self.commands.recv()).await {
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    async fn connect(&mut self, was_up: &mut bool) -> Broken {
        let mut engine = match AgentProcess::start(&self.place.command) {
            Ok(engine) => engine,
            Err(error) => {
                let program = self.place.command.first().map_or("", String::as_str);
                return Broken::Lost(format!("cannot start `{program}`: {error}"));
            }
        };
        let broken = match self.talk(&mut engine, was_up).await {
            Ok(()) => Broken::Over,
            Err(broken) => broken,
        };
        let is_farewell = matches!(broken, Broken::Over);
        let (status, said) = engine.end(is_farewell).await;
        match broken {
            Broken::Lost(_) if is_allocation_over(&said) => {
                Broken::Useless("the allocation has ended".into())
            }
            // A shell on the other side found no captime.
            Broken::Lost(_) if status.and_then(|status| status.code()) == Some(NOT_FOUND) => {
                Broken::Lost(format!(
                    "captime was not found there ({said}); install it, or give its path in the scenario"
                ))
            }
            // The engine's own message is more useful than the end of a stream.
            Broken::Lost(why) => Broken::Lost(match (status, said) {
                // An agent that could say why it leaves has said it on both streams.
                (_, said) if said.contains(&why) => why,
                (_, said) if !said.is_empty() => format!("{why}: {said}"),
                (Some(status), _) => format!("{why} ({status})"),
                (None, _) => why,
            }),
            broken => broken,
        }
    }

    /// Greets the agent, then carries messages both ways; `Ok` when the run is over.
    async fn talk(&mut self, engine: &mut AgentProcess, was_up: &mut bool) -> Result<(), Broken> {
        let lost_after = self.shared.lost_after;
        let patience = PATIENCE.max(lost_after);
        let hello = ToAgent::Hello {
            captime: env!("CARGO_PKG_VERSION").to_owned(),
            lost_after: lost_after.as_secs_f64(),
        };
        let open = Open {
            slots: self.place.slots,
            ..self.shared.open.clone()
        };
        let opening = async {
            frames::send(&mut engine.stdin, &hello).await?;
            let node = match next_within(engine, patience).await? {
                FromAgent::Hello(node) => node,
                FromAgent::Leaving { why } => return Err(Broken::Lost(why)),
                other => return Err(out_of_turn(&other)),
            };
            if node.captime != env!("CARGO_PKG_VERSION") {
                return Err(Broken::Useless(format!(
                    "captime {} is installed there and {} here; install the same version on both",
                    node.captime,
                    env!("CARGO_PKG_VERSION"),
                )));
            }
            frames::send(&mut engine.stdin, &ToAgent::Open(Box::new(open))).await?;
            loop {
                // A node may take long to check its files, but it sends heartbeats meanwhile.
                match next_within(engine, patience).await? {
                    FromAgent::Beat => {
                        frames::send(&mut engine.stdin, &ToAgent::Beat).await?;
                    }
                    FromAgent::Opened {
                        slots,
                        enforcement,
                        shared_cpus,
                    } => {
                        return Ok(LinkEvent::Up {
                            node,
                            slots,
                            enforcement,
                            shared_cpus,
                        });
                    }
                    FromAgent::Refused { why } => return Err(Broken::Useless(why)),
                    FromAgent::Leaving { why } => return Err(Broken::Lost(why)),
                    other => return Err(out_of_turn(&other)),
                }
            }
        };
        let up = tokio::select! {
            opened = opening => opened?,
            () = over(&mut self.commands) => return Ok(()),
        };
        *was_up = true;
        self.tell(up);
        self.carry(engine, lost_after).await
    }

    async fn carry(
        &mut self,
        engine: &mut AgentProcess,
        lost_after: Duration,
    ) -> Result<(), Broken> {
        let mut beat = tokio::time::interval(lost_after / 5);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                message = engine.reader.next() => {
                    heard = Instant::now();
                    match message? {
                        FromAgent::Ended { slot, round, end } => {
                            self.tell(LinkEvent::Ended { slot, round, end });
                        }
                        FromAgent::Beat => {}
                        FromAgent::Leaving { why } => return Err(Broken::Lost(why)),
                        other => return Err(out_of_turn(&other)),
                    }
                }
                command = self.commands.recv() => {
                    let Some(command) = command else {
                        let _ = write_within(engine, &ToAgent::Bye, Duration::from_secs(1)).await;
                        return Ok(());
                    };
                    write_within(engine, &command, lost_after).await?;
                }
                _ = beat.tick() => {
                    let silent = heard.elapsed();
                    if silent > lost_after {
                        return Err(Broken::Lost(format!("nothing heard for {} s", silent.as_secs())));
                    }
                    write_within(engine, &ToAgent::Beat, lost_after).await?;
                }
            }
        }
    }
}

/// Writes, or gives up: a stream that accepts no more bytes is as good as lost.
async fn write_within(
    engine: &mut AgentProcess,
    message: &ToAgent,
    limit: Duration,
) -> Result<(), Broken> {
    match tokio::time::timeout(limit, frames::send(&mut engine.stdin, message)).await {
        Ok(sent) => Ok(sent?),
        Err(_) => Err(Broken::Lost("it no longer reads its input".into())),
    }
}

async fn next_within(engine: &mut AgentProcess, limit: Duration) -> Result<FromAgent, Broken> {
    match tokio::time::timeout(limit, engine.reader.next()).await {
        Ok(message) => Ok(message?),
        Err(_) => Err(Broken::Lost("it does not answer".into())),
    }
}

fn out_of_turn(message: &FromAgent) -> Broken {
    let text = serde_json::to_string(message).unwrap_or_default();
    let shown: String = text.chars().take(100).collect();
    Broken::Useless(format!("it sent a message out of turn: {shown}"))
}

/// Waits until no more commands can come.
async fn over(commands: &mut UnboundedReceiver<ToAgent>) {
    while commands.recv().await.is_some() {}
}

/// The running command that connects to an agent.
struct AgentProcess {
    child: Child,
    stdin: ChildStdin,
    reader: FrameReader<ChildStdout>,
    /// The end of what it wrote to stderr.
    said: Arc<Mutex<Vec<u8>>>,
    listener: tokio::task::JoinHandle<()>,
}

impl AgentProcess {
    fn start(command: &[String]) -> std::io::Result<Self> {
        let missing = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let (program, arguments) = command.split_first().ok_or_else(missing)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for captime alone, which then tells the agents.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let said = Arc::new(Mutex::new(vec![]));
        let listener = tokio::spawn(listen(stderr, Arc::clone(&said)));
        Ok(Self {
            child,
            stdin,
            reader: FrameReader::new(stdout),
            said,
            listener,
        })
    }

    /// Ends the command, gracefully if there is time. Returns its status and the end of its stderr.
    async fn end(self, is_farewell: bool) -> (Option<ExitStatus>, String) {
        let Self {
            mut child,
            stdin,
            reader,
            said,
            listener,
        } = self;
        drop(stdin);
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        // A lost agent that is still running sees its stream close. The command gets a moment to pass that on.
        let patience = if is_farewell {
            FAREWELL
        } else {
            Duration::from_millis(500)
        };
        let mut status = tokio::time::timeout(patience, child.wait()).await;
        drop(reader);
        for (signal, wait) in [(Signal::SIGTERM, 2), (Signal::SIGKILL, 5)] {
            if status.is_ok() {
                break;
            }
            if let Some(group) = group {
                let _ = killpg(Pid::from_raw(group), signal);
            }
            status = tokio::time::timeout(Duration::from_secs(wait), child.wait()).await;
        }
        let _ = tokio::time::timeout(Duration::from_millis(200), listener).await;
        let said = said.lock().map(|said| last_lines(&said));
        (status.ok().and_then(Result::ok), said.unwrap_or_default())
    }
}

async fn listen(mut stderr: ChildStderr, said: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        tracing::debug!(text = %String::from_utf8_lossy(&buffer[..count]), "an agent's stderr");
        let Ok(mut said) = said.lock() else { return };
        said.extend_from_slice(&buffer[..count]);
        let surplus = said.len().saturating_sub(STDERR);
        said.drain(..surplus);
    }
}

/// The last two non-blank lines, as one.
fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let shown = lines[lines.len().saturating_sub(2)..].join("; ");
    shown
        .chars()
        .map(|letter| if letter.is_control() { '?' } else { letter })
        .collect()
}
