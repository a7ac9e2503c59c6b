//! The engines: how each of them connects to an agent.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::ClusterError;
use super::link::Place;
use crate::scenario::shell_word;

/// One agent on every node of the surrounding Slurm allocation.
pub fn slurm() -> Result<Vec<Place>, ClusterError> {
    let variable = |name: &'static str| {
        std::env::var(name)
            .ok()
            .filter(|value| !value.is_empty())
            .ok_or(ClusterError::NoAllocation)
    };
    let job = variable("SLURM_JOB_ID")?;
    let list = variable("SLURM_JOB_NODELIST")?;
    let cpus =
        cpus_per_node(&variable("SLURM_JOB_CPUS_PER_NODE")?).ok_or(ClusterError::NoAllocation)?;
    let asked = Command::new("scontrol")
        .args(["show", "hostnames", &list])
        .stdin(Stdio::null())
        .output();
    let hosts = match asked {
        Ok(answer) if answer.status.success() => {
            String::from_utf8_lossy(&answer.stdout).into_owned()
        }
        Ok(answer) => {
            let why = String::from_utf8_lossy(&answer.stderr).trim().to_owned();
            return Err(ClusterError::Slurm { why });
        }
        Err(error) => {
            let why = format!("cannot run `scontrol`: {error}");
            return Err(ClusterError::Slurm { why });
        }
    };
    let captime = this_program()?;
    Ok(hosts
        .lines()
        .zip(cpus.iter().copied().chain(std::iter::repeat(1)))
        .map(|(node, cpus)| on_node(&job, node, cpus, &captime))
        .collect())
}

/// Whether `srun` says that the allocation is no longer there, so that trying again would not help.
pub(super) fn is_allocation_over(said: &str) -> bool {
    let over = ["has expired", "already completing or completed"];
    said.contains("srun: ") && over.iter().any(|words| said.contains(words))
}

fn on_node(job: &str, node: &str, cpus: usize, captime: &str) -> Place {
    let words = [
        "srun",
        // Shares the allocation with whatever else runs in it: only the agent uses it.
        "--overlap",
        "--jobid",
        job,
        "--nodes=1",
        "--ntasks=1",
        &format!("--cpus-per-task={cpus}"),
        &format!("--nodelist={node}"),
        "--unbuffered",
        "--quiet",
        captime,
        "agent",
    ];
    Place {
        name: node.to_owned(),
        command: words.iter().map(ToString::to_string).collect(),
        slots: None,
    }
}

/// `2(x3),4` as 2, 2, 2, 4.
fn cpus_per_node(text: &str) -> Option<Vec<usize>> {
    let mut all = vec![];
    for part in text.split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse::<usize>().ok()?),
            None => (part, 1),
        };
        if times > 1_000_000 {
            return None;
        }
        all.extend(std::iter::repeat_n(count.parse::<usize>().ok()?, times));
    }
    Some(all)
}

/// An agent on a host, by ssh, which must not ask for a password.
pub fn ssh(host: &str, slots: Option<usize>, captime: Option<&str>) -> Place {
    // The shell on the other side splits its argument into words.
    let remote = format!("exec {} agent", shell_word(captime.unwrap_or("captime")));
    let words = [
        "ssh",
        "-T",
        "-o",
        "BatchMode=yes",
        "-o",
        "ConnectTimeout=10",
        "-o",
        "LogLevel=ERROR",
        "--",
        host,
        &remote,
    ];
    Place {
        name: host.to_owned(),
        command: words.iter().map(ToString::to_string).collect(),
        slots,
    }
}

/// An agent behind any command that connects a stream.
pub fn launch(command: &[String], slots: Option<usize>, number: usize) -> Place {
    let program = command.first().map_or("", String::as_str);
    let program = program.rsplit('/').next().unwrap_or(program);
    Place {
        name: format!("{program}-{number}"),
        command: command.to_vec(),
        slots,
    }
}

fn this_program() -> Result<String, ClusterError> {
    let path: PathBuf = std::env::current_exe().map_err(ClusterError::System)?;
    path.into_os_string()
        .into_string()
        .map_err(|path| ClusterError::Slurm {
            why: format!(
                "the path of captime is not UTF-8: {}",
                path.to_string_lossy()
            ),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_an_allocation_are_counted_by_node() {
        assert_eq!(cpus_per_node("2(x3),4"), Some(vec![2, 2, 2, 4]));
        assert_eq!(cpus_per_node("64"), Some(vec![64]));
        for wrong in ["", "x", "2(x", "2(x99999999999)", "2(3)"] {
            assert_eq!(cpus_per_node(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_allocation_that_is_over_is_known_by_what_srun_says() {
        assert!(is_allocation_over(
            "srun: error: Slurm job 8 has expired; srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 8"
        ));
        assert!(is_allocation_over(
            "srun: error: Unable to create step for job 8: Job/step already completing or completed"
        ));
        assert!(!is_allocation_over("srun: error: Node failure on n1"));
        assert!(!is_allocation_over("ssh: your password has expired"));
    }

    #[test]
    fn commands_are_words_and_hosts_no_options() {
        let place = ssh(
            "-oProxyCommand=evil",
            Some(2),
            Some("/opt/my tools/captime"),
        );
        let at = place.command.iter().position(|word| word == "--").unwrap();
        assert_eq!(place.command[at + 1], "-oProxyCommand=evil");
        assert_eq!(place.command[at + 2], "exec '/opt/my tools/captime' agent");
        let place = on_node("7", "n1", 2, "/opt/captime");
        assert_eq!(place.name, "n1");
        assert_eq!(place.command[0], "srun");
        assert!(
            place
                .command
                .ends_with(&["/opt/captime".into(), "agent".into()])
        );
    }
}
