//! More than one machine: agents on other nodes run pulls and enforce the limits there. This process alone decides and
//! writes the journal.
//!
//! An engine (`places`: Slurm, ssh, any command) starts `captime agent` on a node and provides a stream to it. `frames`
//! defines the bytes on the stream and `message` their meaning. `link` is the orchestrator's end of one stream, `agent`
//! the other end. `fleet` gives each pull to a node and takes it back when the node is lost; `pool` starts all of that
//! and makes it one pool of slots. `node` and `files` are what a node reports about itself and what it must have.

pub mod agent;
mod files;
mod fleet;
pub mod frames;
mod link;
pub mod message;
mod node;
pub mod places;
mod pool;
mod session;

pub use files::FileMark;
pub use fleet::{FleetNotice, Work};
pub use link::Place;
pub use node::{GivenCpus, NodeFacts, NodeStatus, given_cpus, time_left};
pub use pool::{Agents, Cluster};
pub use session::{StartError, StartedSlots, open_work, start_slots};

/// Why there are no agents.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// captime does not run in a Slurm allocation.
    #[error("`slots: {{slurm: auto}}` needs a Slurm allocation, and this process runs in none")]
    NoAllocation,
    /// Slurm refused.
    #[error("Slurm does not say which nodes are allocated: {why}")]
    Slurm {
        /// Its message.
        why: String,
    },
    /// No agent could be started.
    #[error("no node can be used{}", listed(absent))]
    NoNode {
        /// The nodes, with the reasons.
        absent: Vec<(String, String)>,
    },
    /// captime's own program cannot be found, or the system refused a thread.
    #[error("cannot start agents: {0}")]
    System(std::io::Error),
}

fn listed(absent: &[(String, String)]) -> String {
    (absent.iter())
        .flat_map(|(node, why)| ["\n  ", node, ": ", why])
        .collect()
}

impl ClusterError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoAllocation => Some(
                "run `captime submit SCENARIO --nodes N --time 8h`, or start captime inside `salloc` or `sbatch`",
            ),
            Self::Slurm { .. } | Self::System(_) => None,
            Self::NoNode { .. } => {
                Some("fix the cause on at least one node, then run the same command again")
            }
        }
    }
}
