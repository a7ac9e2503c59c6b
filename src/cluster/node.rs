//! What a machine reports about itself before it runs anything.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use captime_limit::{Level, MemoryControl};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::journal::Machine;
use crate::quantity::{counted, seconds};

/// How long Slurm's controller may take to answer. One that is down must not keep the agent from saying hello.
const PATIENCE: Duration = Duration::from_secs(10);

/// A node, as its agent describes it.
///
/// Every field except the version has a default: an agent of another version must still be able to introduce itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeFacts {
    /// The version of captime there.
    pub captime: String,
    /// The name that Slurm gave the node, or the host's.
    #[serde(default)]
    pub name: String,
    /// The process of the agent.
    #[serde(default)]
    pub process: u32,
    /// The machine. `cpus` are those that captime may use.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// How processes are kept together.
    #[serde(default)]
    pub level: Option<Level>,
    /// How memory is limited.
    #[serde(default)]
    pub memory: Option<MemoryControl>,
    /// Seconds until the allocation ends, if known.
    #[serde(default)]
    pub time_left: Option<f64>,
}

impl NodeFacts {
    /// This machine. Finding out what it can enforce takes a few milliseconds.
    pub fn here() -> Self {
        let detected = captime_limit::detect();
        let mut machine = Machine::here();
        machine.cpus = given_cpus().count;
        Self {
            captime: env!("CARGO_PKG_VERSION").to_owned(),
            name: variable("SLURMD_NODENAME").unwrap_or_else(|| machine.host.clone()),
            process: std::process::id(),
            machine: Some(machine),
            level: Some(detected.level),
            memory: Some(detected.memory),
            time_left: time_left(),
        }
    }
}

/// A node that is ready.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeStatus {
    /// Its name.
    pub node: String,
    /// How many pulls at a time.
    pub slots: usize,
    /// What its agent says about it.
    #[serde(flatten)]
    pub facts: NodeFacts,
    /// Which limits are enforced.
    pub enforcement: Value,
    /// CPUs to which another captime there has pinned its slots.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared_cpus: Vec<usize>,
}

/// One line for people: `node n1: 2 slots, 2 CPUs, level cgroup2, memory enforced by cgroup2, 58m left`.
impl std::fmt::Display for NodeStatus {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            node, slots, facts, ..
        } = self;
        write!(to, "node {node}: {}", counted(*slots as u64, "slot"))?;
        if let Some(machine) = &facts.machine {
            write!(to, ", {}", counted(machine.cpus as u64, "CPU"))?;
            if machine.host != *node {
                write!(to, " of {}", machine.host)?;
            }
        }
        if let Some(level) = facts.level {
            write!(to, ", level {level}")?;
        }
        if let Some(memory) = facts.memory {
            write!(to, ", memory {memory}")?;
        }
        if let Some(left) = facts.time_left {
            write!(to, ", {} left", seconds(left.floor()))?;
        }
        if !self.shared_cpus.is_empty() {
            let shared = self.shared_cpus.iter().map(ToString::to_string);
            let shared = shared.collect::<Vec<_>>().join(", ");
            write!(to, ", shares CPUs {shared} with another captime")?;
        }
        Ok(())
    }
}
/// The CPUs that captime may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenCpus {
    /// How many.
    pub count: usize,
    /// Which ones, if known. Not known if an engine grants two of 64 CPUs without naming them.
    pub which: Option<Vec<usize>>,
}

/// The CPUs that the engine and the kernel grant here.
pub fn given_cpus() -> GivenCpus {
    let allowed: Vec<usize> = match sched_getaffinity(Pid::from_raw(0)) {
        Ok(set) => (0..CpuSet::count())
            .filter(|&cpu| set.is_set(cpu).unwrap_or(false))
            .collect(),
        Err(_) => vec![0],
    };
    given(
        allowed,
        variable("SLURM_CPUS_ON_NODE").and_then(|text| text.parse().ok()),
    )
}

fn given(allowed: Vec<usize>, granted: Option<usize>) -> GivenCpus {
    match granted {
        Some(granted) if granted > 0 && granted < allowed.len() => GivenCpus {
            count: granted,
            which: None,
        },
        _ => GivenCpus {
            count: allowed.len().max(1),
            which: Some(allowed),
        },
    }
}

/// Seconds until the surrounding Slurm allocation ends. `None` outside of one, or without a limit.
pub fn time_left() -> Option<f64> {
    let job = variable("SLURM_JOB_ID")?;
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .ok()?;
    // Newer versions of Slurm set a variable.
    if let Some(end) = variable("SLURM_JOB_END_TIME").and_then(|end| end.parse::<u64>().ok()) {
        return Some(Duration::from_secs(end).saturating_sub(now).as_secs_f64());
    }
    let mut asking = Command::new("squeue");
    asking.args(["--noheader", "--jobs", &job, "--format", "%L"]);
    seconds_of(answer_within(&mut asking, PATIENCE)?.trim())
}

/// What a command prints, if that is little and it ends in time.
fn answer_within(command: &mut Command, patience: Duration) -> Option<String> {
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
    let since = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if since.elapsed() > patience {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut answer = String::new();
    child.stdout?.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// `D-HH:MM:SS`, `HH:MM:SS` or `MM:SS` as seconds; none for `UNLIMITED` and the like.
fn seconds_of(text: &str) -> Option<f64> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (days.parse::<u64>().ok()?, clock),
        None => (0, text),
    };
    let parts: Vec<u64> = clock
        .split(':')
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    let seconds = match parts[..] {
        [minutes, seconds] => minutes * 60 + seconds,
        [hours, minutes, seconds] => (hours * 60 + minutes) * 60 + seconds,
        _ => return None,
    };
    Some((days * 86400 + seconds) as f64)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_squeue_prints_is_read() {
        assert_eq!(seconds_of("4:59"), Some(299.0));
        assert_eq!(seconds_of("1:00:00"), Some(3600.0));
        assert_eq!(seconds_of("2-00:00:01"), Some(172_801.0));
        for other in ["UNLIMITED", "NOT_SET", "INVALID", "", "x-1:00"] {
            assert_eq!(seconds_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_command_that_does_not_answer_is_ended() {
        let mut asking = Command::new("echo");
        let answer = answer_within(asking.arg("4:59"), Duration::from_mins(1));
        assert_eq!(answer.as_deref(), Some("4:59\n"));
        let since = Instant::now();
        let mut silent = Command::new("sleep");
        let answer = answer_within(silent.arg("60"), Duration::from_millis(50));
        assert_eq!(answer, None);
        assert!(since.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn cpus_that_an_engine_counts_but_does_not_name_are_not_pinned_to() {
        let some = given(vec![0, 1, 2, 3], Some(2));
        assert_eq!((some.count, some.which), (2, None));
        let all = given(vec![4, 5], Some(2));
        assert_eq!((all.count, all.which), (2, Some(vec![4, 5])));
        assert_eq!(given(vec![0, 1], Some(64)).count, 2);
        assert_eq!(given(vec![0, 1], None).count, 2);
    }

    #[test]
    fn an_agent_of_another_version_can_say_so() {
        let node: NodeFacts =
            serde_json::from_str(r#"{"captime":"9.0.0","colour":"red"}"#).unwrap();
        assert_eq!(node.captime, "9.0.0");
        assert_eq!(node.level, None);
    }
}
