//! Starts the agents of a run, and offers them as one pool of slots.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::ClusterError;
use super::fleet::{self, FleetNotice, FleetTarget, Work};
use super::link::Place;
use super::node::NodeStatus;
use crate::target::{Ended, SlotPool, Target};

/// How long a run waits at the start for nodes that have not answered when others have.
const LATECOMERS: Duration = Duration::from_secs(15);

/// The agents of a run, as a target.
pub struct Cluster {
    /// Starts and stops pulls.
    pub target: Box<dyn Target>,
    /// Where their ends arrive.
    pub ends: UnboundedReceiver<Ended>,
    /// What happens to nodes.
    pub notices: UnboundedReceiver<FleetNotice>,
    /// The nodes that were ready at the start.
    pub nodes: Vec<NodeStatus>,
    /// The others, with the reason.
    pub absent: Vec<(String, String)>,
    left: oneshot::Receiver<()>,
}

impl Cluster {
    /// Starts an agent in every place, and waits until those that answer are ready. Call it inside a tokio runtime.
    pub async fn start(places: Vec<Place>, work: Work) -> Result<Self, ClusterError> {
        let (commands, inbox) = unbounded_channel();
        let (ends_to, ends) = unbounded_channel();
        let (notices_to, mut notices) = unbounded_channel();
        let order: Vec<String> = places.iter().map(|place| place.name.clone()).collect();
        let (left_to, left) = oneshot::channel();
        // On its own thread: no decision of a policy, however slow, may delay a heartbeat.
        let run = async move {
            fleet::run(places, work, inbox, ends_to, notices_to).await;
            let _ = left_to.send(());
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ClusterError::System)?;
        std::thread::Builder::new()
            .name("nodes".to_owned())
            .spawn(move || {
                captime_limit::wake_promptly();
                runtime.block_on(run);
            })
            .map_err(ClusterError::System)?;
        let mut nodes = vec![];
        let mut absent = BTreeMap::new();
        let mut until = None;
        while nodes.len() + absent.len() < order.len() {
            let notice = match until {
                Some(until) => tokio::time::timeout_at(until, notices.recv()).await,
                None => Ok(notices.recv().await),
            };
            match notice {
                Ok(Some(FleetNotice::Up(status))) => {
                    absent.remove(&status.node);
                    nodes.push(*status);
                    until.get_or_insert(Instant::now() + LATECOMERS);
                }
                Ok(Some(
                    FleetNotice::Down { node, why } | FleetNotice::Withdrawn { node, why },
                )) => {
                    nodes.retain(|status| status.node != node);
                    absent.insert(node, why);
                }
                Ok(Some(FleetNotice::Slots(_) | FleetNotice::Over { .. })) => {}
                Ok(None) | Err(_) => break,
            }
        }
        // In the order of the scenario, not in that of their answers.
        nodes.sort_by_key(|status: &NodeStatus| order.iter().position(|name| *name == status.node));
        let cluster = Self {
            target: Box::new(FleetTarget { commands }),
            ends,
            notices,
            nodes,
            absent: absent.into_iter().collect(),
            left,
        };
        if cluster.nodes.is_empty() {
            let absent = cluster.absent.clone();
            cluster.close().await;
            return Err(ClusterError::NoNode { absent });
        }
        Ok(cluster)
    }

    /// How many pulls may run at a time on the nodes that were ready at the start.
    pub fn slots(&self) -> usize {
        self.nodes.iter().map(|node| node.slots).sum()
    }

    /// Its slots, for a driver, and a handle to wait for the agents to leave.
    pub fn into_pool(self, enforcement: Value) -> (SlotPool, Agents) {
        let slots = self.slots();
        let mut notices = self.notices;
        let (to, changes) = unbounded_channel();
        tokio::spawn(async move {
            while let Some(notice) = notices.recv().await {
                if to.send(notice.into()).is_err() {
                    break;
                }
            }
        });
        let pool = SlotPool {
            target: self.target,
            ends: self.ends,
            slots,
            enforcement,
            cpus: crate::target::CpuClaim::default(),
            changes: Some(changes),
        };
        (pool, Agents(Some(self.left)))
    }

    /// Ends all agents and waits until they have left.
    pub async fn close(self) {
        drop(self.target);
        let _ = self.left.await;
    }
}

/// The agents of a pool. There are none if its slots are on this machine.
#[derive(Default)]
pub struct Agents(Option<oneshot::Receiver<()>>);

impl Agents {
    /// Waits until all of them have left. They leave when their pool is dropped.
    pub async fn left(self) {
        if let Some(left) = self.0 {
            let _ = left.await;
        }
    }
}
