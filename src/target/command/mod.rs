//! A program as target: one supervisor per slot, the reward from its exit code or its output.

mod judge;
mod reward;
mod scratch;
mod trial;

pub use reward::{Reading, Source};
pub use trial::{Commands, Trial};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Ended, Ends, Job, Target};
use crate::limit::{Canceller, LimitError, Setup, Supervisor};

/// How often a run that was told to end, but may not have begun, is told again.
const INSIST: Duration = Duration::from_millis(5);

/// Runs commands in slots.
#[derive(Debug)]
pub struct CommandTarget {
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    jobs: UnboundedSender<Job>,
    is_stopped: Arc<AtomicBool>,
    canceller: Canceller,
}

impl CommandTarget {
    /// Starts a supervisor per slot; `cpus` are those of each slot, if they have their own.
    pub async fn start(
        commands: Arc<Commands>,
        setup: &Setup,
        slots: usize,
        cpus: Option<Vec<Vec<usize>>>,
        ends: Ends,
    ) -> Result<(Self, serde_json::Value), LimitError> {
        let mut all = vec![];
        let mut enforcement = serde_json::Value::Null;
        for number in 0..slots {
            let supervisor = Supervisor::start(setup).await?;
            enforcement = serde_json::json!({
                "level": supervisor.level(),
                "memory": supervisor.memory_control(),
            });
            let (jobs, inbox) = unbounded_channel();
            let is_stopped = Arc::new(AtomicBool::new(false));
            let canceller = supervisor.canceller();
            let worker = Worker {
                commands: Arc::clone(&commands),
                supervisor,
                cpus: cpus.as_ref().and_then(|cpus| cpus.get(number).cloned()),
                is_stopped: Arc::clone(&is_stopped),
                ends: ends.clone(),
            };
            tokio::spawn(worker.work(inbox));
            all.push(Slot {
                jobs,
                is_stopped,
                canceller,
            });
        }
        Ok((Self { slots: all }, enforcement))
    }
}

impl Target for CommandTarget {
    fn start(&mut self, job: Job) {
        let slot = &self.slots[job.slot];
        slot.is_stopped.store(false, Ordering::SeqCst);
        // Its worker ends only when this sender is gone.
        let _ = slot.jobs.send(job);
    }

    fn stop(&mut self, slot: usize) {
        self.slots[slot].is_stopped.store(true, Ordering::SeqCst);
        self.slots[slot].canceller.cancel();
    }
}

/// One slot at work.
struct Worker {
    commands: Arc<Commands>,
    supervisor: Supervisor,
    cpus: Option<Vec<usize>>,
    is_stopped: Arc<AtomicBool>,
    ends: Ends,
}

impl Worker {
    async fn work(mut self, mut inbox: UnboundedReceiver<Job>) {
        while let Some(job) = inbox.recv().await {
            let canceller = self.supervisor.canceller();
            let run = self
                .commands
                .run(&mut self.supervisor, &job, self.cpus.clone());
            tokio::pin!(run);
            let trial = loop {
                tokio::select! {
                    biased;
                    trial = &mut run => break trial,
                    () = tokio::time::sleep(INSIST), if self.is_stopped.load(Ordering::SeqCst) => canceller.cancel(),
                    () = stopped(&self.is_stopped), if !self.is_stopped.load(Ordering::SeqCst) => {}
                }
            };
            let ended = Ended {
                slot: job.slot,
                round: job.round,
                ending: trial.ending,
            };
            if self.ends.send(ended).is_err() {
                break;
            }
        }
        self.supervisor.close().await;
    }
}

/// Looks at the flag now and then: it is raised once a session, and cancelling by itself is at once.
async fn stopped(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
