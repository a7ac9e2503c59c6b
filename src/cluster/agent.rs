//! The agent: runs pulls on its node for an orchestrator at the other end of a stream.
//!
//! It exits, and ends every process it started, as soon as the stream closes, the orchestrator falls silent, or the
//! engine asks it to stop with a signal. If it is killed, its supervisors do the same.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use super::frames::{self, FrameError, FrameReader};
use super::message::{FromAgent, Open, ToAgent};
use super::node::NodeFacts;
use crate::round::ArmId;
use crate::space::{self, Configuration};
use crate::target::{Ended, Ending, Serving, SlotPool, Start};

/// How long the end of a pull that died of a signal is held back. An engine that ends a job signals the pulls and the
/// agent at the same time. A pull that died of that is lost, not failed.
const HOLD: Duration = Duration::from_millis(300);

/// How long pulls may take to end when the agent exits.
const LAST: Duration = Duration::from_secs(10);

/// How long to wait for the first message.
const PATIENCE: Duration = Duration::from_mins(1);

/// Makes the slots of this node, or says why it cannot run the pulls.
pub type Opening = Pin<Box<dyn Future<Output = Result<SlotPool, String>>>>;

/// Why an agent exited.
#[derive(Debug, thiserror::Error)]
pub enum Left {
    /// The orchestrator said so, or closed the stream.
    #[error("the orchestrator has ended the session")]
    Dismissed,
    /// The orchestrator said nothing for too long.
    #[error("nothing was heard from the orchestrator for {} s", seconds.round())]
    Silence {
        /// How many seconds.
        seconds: f64,
    },
    /// The engine, or the user, asked the agent to stop.
    #[error("the agent was asked to stop by a signal")]
    Signal,
    /// The stream carried something unexpected.
    #[error(transparent)]
    Stream(FrameError),
    /// The orchestrator is of another version.
    #[error("the orchestrator is captime {theirs}, this agent is captime {ours}")]
    Version {
        /// The orchestrator's version.
        theirs: String,
        /// This agent's version.
        ours: String,
    },
    /// A message came out of turn.
    #[error("a message came out of turn: {0}")]
    OutOfTurn(&'static str),
}

impl Left {
    /// Whether this is a normal end for an agent.
    pub fn is_regular(&self) -> bool {
        matches!(self, Self::Dismissed)
    }
}

/// Serves an orchestrator until one of the two leaves. When this returns, no pull is running.
pub async fn serve<R, W>(
    input: R,
    output: W,
    node: NodeFacts,
    stopped: impl Future<Output = ()>,
    open: impl FnOnce(Open) -> Opening,
) -> Left
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (to, outbox) = unbounded_channel();
    let writer = tokio::spawn(write(output, outbox));
    let mut agent = Agent {
        reader: FrameReader::new(input),
        to,
        heard: Instant::now(),
        lost_after: PATIENCE,
        held: VecDeque::new(),
        serving: None,
        arms: HashMap::new(),
    };
    let left = agent.work(node, stopped, open).await;
    agent.end_all().await;
    if !left.is_regular() {
        agent.say(FromAgent::Leaving {
            why: left.to_string(),
        });
    }
    drop(agent);
    // The other side may have stopped reading.
    let _ = tokio::time::timeout(Duration::from_secs(1), writer).await;
    left
}

async fn write<W: AsyncWrite + Unpin>(mut output: W, mut outbox: UnboundedReceiver<FromAgent>) {
    while let Some(message) = outbox.recv().await {
        if frames::send(&mut output, &message).await.is_err() {
            return;
        }
    }
}

struct Agent<R> {
    reader: FrameReader<R>,
    to: UnboundedSender<FromAgent>,
    heard: Instant,
    lost_after: Duration,
    /// Ends that are held back, each with the time until which.
    held: VecDeque<(Instant, Ended)>,
    serving: Option<Serving<()>>,
    /// The arms of an open space that have been received.
    arms: HashMap<ArmId, Arc<Configuration>>,
}

impl<R: AsyncRead + Unpin> Agent<R> {
    fn say(&self, message: FromAgent) {
        // If the stream is gone, reading from it will show that.
        let _ = self.to.send(message);
    }

    async fn work(
        &mut self,
        node: NodeFacts,
        stopped: impl Future<Output = ()>,
        open: impl FnOnce(Open) -> Opening,
    ) -> Left {
        let ours = node.captime.clone();
        let mut hello = Some(node);
        let mut open = Some(open);
        let mut opening: Option<Opening> = None;
        let mut beat = tokio::time::interval(PATIENCE);
        tokio::pin!(stopped);
        loop {
            let release = self.held.front().map(|(until, _)| *until);
            tokio::select! {
                biased;
                () = &mut stopped => return Left::Signal,
                message = self.reader.next::<ToAgent>() => {
                    self.heard = Instant::now();
                    match message {
                        Ok(ToAgent::Hello { captime, lost_after }) => {
                            let Some(node) = hello.take() else {
                                return Left::OutOfTurn("hello");
                            };
                            self.say(FromAgent::Hello(Box::new(node)));
                            if captime != ours {
                                return Left::Version { theirs: captime, ours };
                            }
                            self.lost_after = Duration::try_from_secs_f64(lost_after)
                                .unwrap_or(PATIENCE)
                                .max(Duration::from_millis(50));
                            beat = tokio::time::interval(self.lost_after / 5);
                        }
                        Ok(ToAgent::Open(work)) => {
                            let Some(open) = open.take().filter(|_| hello.is_none()) else {
                                return Left::OutOfTurn("open");
                            };
                            opening = Some(open(*work));
                        }
                        Ok(ToAgent::Arm { arm, configuration }) => {
                            let configuration = configuration.into_iter().filter_map(|(name, value)| {
                                Some((name, space::Value::from_json(&value)?))
                            });
                            self.arms.insert(arm, Arc::new(configuration.collect()));
                        }
                        Ok(ToAgent::Pull { slot, round, pull, seed, is_sent }) => {
                            let configuration = self.arms.get(&pull.arm).filter(|_| is_sent).cloned();
                            let start = Start { slot, round, pull, seed, configuration };
                            if !(self.serving.as_mut()).is_some_and(|serving| serving.start(start, ())) {
                                return Left::OutOfTurn("pull");
                            }
                        }
                        Ok(ToAgent::Stop { slot }) => {
                            if let Some(serving) = &mut self.serving {
                                serving.stop(slot);
                            }
                        }
                        Ok(ToAgent::Beat) => {}
                        Ok(ToAgent::Bye) | Err(FrameError::Closed) => return Left::Dismissed,
                        Err(error) => return Left::Stream(error),
                    }
                }
                Some(ended) = next_end(&mut self.serving) => self.ended(ended),
                opened = opened(&mut opening) => {
                    opening = None;
                    match opened {
                        Ok(pool) => {
                            self.say(FromAgent::Opened {
                                slots: pool.slots,
                                enforcement: pool.enforcement.clone(),
                                shared_cpus: pool.cpus.shared.clone(),
                            });
                            self.serving = Some(Serving::new(pool));
                        }
                        // The orchestrator closes the stream.
                        Err(why) => self.say(FromAgent::Refused { why }),
                    }
                }
                Some(()) = released(release) => {
                    if let Some((_, ended)) = self.held.pop_front() {
                        self.tell(ended);
                    }
                }
                _ = beat.tick() => {
                    if self.heard.elapsed() > self.lost_after {
                        return Left::Silence { seconds: self.heard.elapsed().as_secs_f64() };
                    }
                    if hello.is_none() {
                        self.say(FromAgent::Beat);
                    }
                }
            }
        }
    }

    fn ended(&mut self, ended: Ended) {
        if may_have_been_signalled(&ended.ending) {
            self.held.push_back((Instant::now() + HOLD, ended));
        } else {
            self.tell(ended);
        }
    }

    fn tell(&mut self, ended: Ended) {
        if let Some(serving) = &mut self.serving {
            serving.release(ended.slot);
        }
        self.say(FromAgent::Ended {
            slot: ended.slot,
            round: ended.round,
            end: Box::new(ended.ending.into()),
        });
    }

    /// Ends everything that runs, and waits for it.
    async fn end_all(&mut self) {
        let Some(mut serving) = self.serving.take() else {
            return;
        };
        for (_, ended) in self.held.drain(..) {
            serving.release(ended.slot);
        }
        serving.stop_all();
        let _ = tokio::time::timeout(LAST, serving.until_idle()).await;
        serving.close().await;
    }
}

/// Whether a pull may have died of the signals that an engine sends to a whole job. A pull that captime killed at its
/// limit has not.
fn may_have_been_signalled(ending: &Ending) -> bool {
    let Ending::Brought(outcome) = ending else {
        return false;
    };
    let has_crashed = (outcome.failure.as_ref()).is_some_and(|failing| failing.guard.is_none());
    has_crashed
        && matches!(
            outcome.measured.signal,
            Some(libc::SIGTERM | libc::SIGKILL | libc::SIGINT | libc::SIGHUP)
        )
}

async fn next_end(serving: &mut Option<Serving<()>>) -> Option<Ended> {
    serving.as_mut()?.ended().await
}

async fn opened(opening: &mut Option<Opening>) -> Result<SlotPool, String> {
    match opening {
        Some(opening) => opening.await,
        None => std::future::pending().await,
    }
}

async fn released(until: Option<Instant>) -> Option<()> {
    tokio::time::sleep_until(until?).await;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{Limit, Pull, Round};
    use crate::target::{Ends, Measured, Outcome, Target};
    use serde_json::Value;
    use std::sync::Mutex;
    use tokio::io::{DuplexStream, duplex, split};

    /// Ends pulls on request, and remembers what was started and stopped.
    #[derive(Clone)]
    struct Puppet {
        ends: Ends,
        log: Arc<Mutex<Vec<String>>>,
    }

    impl Target for Puppet {
        fn start(&mut self, start: Start) {
            self.log
                .lock()
                .unwrap()
                .push(format!("start {}", start.round));
        }
        fn stop(&mut self, slot: usize) {
            self.log.lock().unwrap().push(format!("stop {slot}"));
            let _ = self.ends.send(Ended {
                slot,
                round: Round(1),
                ending: Ending::Stopped,
            });
        }
    }

    struct TestAgent {
        reader: FrameReader<tokio::io::ReadHalf<DuplexStream>>,
        to: tokio::io::WriteHalf<DuplexStream>,
        agent: tokio::task::JoinHandle<Left>,
        puppet: Puppet,
        signal: tokio::sync::oneshot::Sender<()>,
    }

    fn node(version: &str) -> NodeFacts {
        NodeFacts {
            captime: version.into(),
            name: "n1".into(),
            process: 1,
            machine: None,
            level: None,
            memory: None,
            time_left: None,
        }
    }

    async fn test_agent() -> TestAgent {
        let (ours, theirs) = duplex(1 << 16);
        let mut puppet = None;
        let pool = SlotPool::new(2, |ends| {
            let log = Arc::default();
            Box::new(puppet.insert(Puppet { ends, log }).clone())
        });
        let puppet = puppet.unwrap();
        let (signal, signalled) = tokio::sync::oneshot::channel();
        let (input, output) = split(theirs);
        let agent = tokio::task::spawn_local(async move {
            let open = move |_: Open| -> Opening { Box::pin(std::future::ready(Ok(pool))) };
            let stopped = async {
                if signalled.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            serve(input, output, node("1"), stopped, open).await
        });
        let (from, mut to) = split(ours);
        let mut reader = FrameReader::new(from);
        let hello = ToAgent::Hello {
            captime: "1".into(),
            lost_after: 0.5,
        };
        frames::send(&mut to, &hello).await.unwrap();
        let FromAgent::Hello(node) = reader.next().await.unwrap() else {
            panic!("no hello")
        };
        assert_eq!(node.name, "n1");
        let open = Open {
            file: "a.yaml".into(),
            folder: ".".into(),
            scenario: Value::Null,
            slots: None,
            files: vec![],
        };
        frames::send(&mut to, &ToAgent::Open(Box::new(open)))
            .await
            .unwrap();
        let mut agent_under_test = TestAgent {
            reader,
            to,
            agent,
            puppet,
            signal,
        };
        assert!(matches!(
            agent_under_test.next().await,
            FromAgent::Opened { slots: 2, .. }
        ));
        agent_under_test
    }

    impl TestAgent {
        /// The next message that is not a heartbeat.
        async fn next(&mut self) -> FromAgent {
            loop {
                match self.reader.next().await.unwrap() {
                    FromAgent::Beat => {}
                    message => return message,
                }
            }
        }

        async fn pull(&mut self, slot: usize) {
            let message = ToAgent::Pull {
                slot,
                round: Round(1),
                pull: pull(),
                seed: 1,
                is_sent: false,
            };
            frames::send(&mut self.to, &message).await.unwrap();
            while self.puppet.log.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        }
    }

    fn pull() -> Pull {
        Pull::new(ArmId::from_index(0), Limit::new(1.0).unwrap())
    }

    fn ended_by(signal: i32) -> Ended {
        Ended {
            slot: 0,
            round: Round(1),
            ending: Ending::Brought(Box::new(Outcome::failed(
                pull(),
                crate::target::Failing::new("ended by a signal"),
                None,
                Measured {
                    signal: Some(signal),
                    ..Measured::default()
                },
            ))),
        }
    }

    async fn within(test: impl Future<Output = ()>) {
        tokio::task::LocalSet::new().run_until(test).await;
    }

    #[tokio::test]
    async fn a_closed_stream_ends_what_runs() {
        within(async {
            let mut agent_under_test = test_agent().await;
            agent_under_test.pull(1).await;
            let log = Arc::clone(&agent_under_test.puppet.log);
            drop((agent_under_test.to, agent_under_test.reader));
            assert!(agent_under_test.agent.await.unwrap().is_regular());
            assert_eq!(*log.lock().unwrap(), ["start 1", "stop 1"]);
        })
        .await;
    }

    #[tokio::test]
    async fn silence_ends_what_runs() {
        within(async {
            let mut agent_under_test = test_agent().await;
            agent_under_test.pull(0).await;
            let left = (&mut agent_under_test.agent).await.unwrap();
            assert!(matches!(left, Left::Silence { .. }), "{left}");
            assert_eq!(
                agent_under_test.puppet.log.lock().unwrap().last().unwrap(),
                "stop 0"
            );
        })
        .await;
    }

    #[tokio::test]
    async fn a_pull_that_dies_with_the_job_is_not_reported_as_failed() {
        within(async {
            let mut agent_under_test = test_agent().await;
            agent_under_test.pull(0).await;
            agent_under_test
                .puppet
                .ends
                .send(ended_by(libc::SIGTERM))
                .unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            agent_under_test.signal.send(()).unwrap();
            assert!(matches!(
                agent_under_test.agent.await.unwrap(),
                Left::Signal
            ));
            let message = loop {
                match agent_under_test.reader.next().await.unwrap() {
                    FromAgent::Beat => {}
                    message => break message,
                }
            };
            assert!(matches!(message, FromAgent::Leaving { .. }), "{message:?}");
        })
        .await;
    }

    #[tokio::test]
    async fn a_pull_that_dies_of_a_signal_alone_is_reported_a_little_later() {
        within(async {
            let mut agent_under_test = test_agent().await;
            agent_under_test.pull(0).await;
            agent_under_test
                .puppet
                .ends
                .send(ended_by(libc::SIGKILL))
                .unwrap();
            assert!(matches!(
                agent_under_test.next().await,
                FromAgent::Ended { .. }
            ));
            // The slot is free again.
            agent_under_test.pull(0).await;
        })
        .await;
    }

    #[tokio::test]
    async fn a_pull_in_a_slot_that_is_taken_is_out_of_turn() {
        within(async {
            let mut agent_under_test = test_agent().await;
            agent_under_test.pull(0).await;
            agent_under_test.pull(0).await;
            assert!(matches!(
                agent_under_test.agent.await.unwrap(),
                Left::OutOfTurn("pull")
            ));
        })
        .await;
    }

    #[tokio::test]
    async fn another_version_is_refused_and_both_are_named() {
        let (ours, theirs) = duplex(1 << 12);
        let (input, output) = split(theirs);
        let (_, mut to) = split(ours);
        let hello = ToAgent::Hello {
            captime: "2".into(),
            lost_after: 1.0,
        };
        frames::send(&mut to, &hello).await.unwrap();
        let open = |_: Open| -> Opening { unreachable!("versions differ") };
        let left = serve(input, output, node("1"), std::future::pending(), open).await;
        assert_eq!(
            left.to_string(),
            "the orchestrator is captime 2, this agent is captime 1"
        );
    }
}
